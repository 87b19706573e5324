// How much slower a registration is while the tickets of another organisation are drawn and sent, and whether each of these arrives once.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Effort } from './compare.ts'
import { countFaults } from './counts.ts'
import { load } from './load.ts'
import { courierOf, cpuMs } from './processes.ts'
import { fixed, judged, type Outcome, spread, times } from './report.ts'
import { addOrganiser, type Organiser, type Stack, startStack } from './stack.ts'
import { registration, subjects } from './subjects.ts'

const emails = 20_000
const connections = 8

/** An SMTP server, a process of its own, so that it does not delay the load generator. */
async function startMailbox() {
  const program = `
    const { SMTPServer } = require('smtp-server')
    const arrived = []
    const server = new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'], disableReverseLookup: true,
      onData: (stream, { envelope }, done) => stream.resume().on('end', () => { arrived.push(envelope.rcptTo[0].address); done() }) })
    server.listen(0, '127.0.0.1', () => console.log(server.server.address().port))
    process.stdin.on('data', () => console.log(JSON.stringify([arrived.length, new Set(arrived).size]))).on('close', () => process.exit())`
  const server = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(server.stdout)
  const [port] = await once(lines, 'line')
  return {
    url: `smtp://127.0.0.1:${port}`,
    async count(): Promise<{ arrived: number; addresses: number }> {
      const line = once(lines, 'line')
      server.stdin.write('?')
      const [arrived, addresses] = JSON.parse((await line)[0])
      return { arrived, addresses }
    },
    close: () => void server.stdin.end(),
  }
}

async function queueTickets({ database }: Stack, { eventId, ticketTypeIds }: Organiser): Promise<void> {
  await database.query(
    `with added as (
       insert into public.orders (event_id, name, email) select $1, 'Bulk', 'bulk@example.com' from generate_series(1, $3::integer / 50)
       returning id
     )
     insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, 'Bulk', o.id || '-' || i || '@example.com' from added o, generate_series(1, 50) i`,
    [eventId, ticketTypeIds[0], emails],
  )
}

const queued = async ({ database }: Stack): Promise<number> =>
  (await database.query("select count(*)::integer as n from public.emails where status = 'queued'")).rows[0].n

export async function whileMailing(_: Stack, { rounds, seconds }: Effort): Promise<Outcome> {
  const mailbox = await startMailbox()
  try {
    const stack = await startStack(undefined, undefined, { SMTP_URL: mailbox.url, MAIL_FROM: 'tickets@usher.example' })
    const [organiser, sender] = [await addOrganiser(stack), await addOrganiser(stack)]
    const usher = await subjects.usher(stack)
    const make = await usher.open(organiser)
    const acknowledged: string[] = []
    let nth = 0
    const register = async () => {
      const { p99 } = await load({
        url: usher.url,
        connections,
        seconds,
        request: () => make(registration(organiser, nth++)),
        onAnswer: (status, body) => status === 201 && acknowledged.push(JSON.parse(body).data.id),
      })
      return p99
    }
    await register()
    const alone: number[] = []
    for (let i = 0; i < rounds; i++) alone.push(await register())

    await queueTickets(stack, sender)
    const courier = courierOf(stack.pids.node) ?? Number.NaN
    const [began, clock] = [performance.now(), cpuMs(courier)]
    const during: number[] = []
    for (let i = 0; i < rounds; i++) {
      const p99 = await register()
      if ((await queued(stack)) > 0) during.push(p99)
    }
    while ((await queued(stack)) > 0) await sleep(200)
    const rate = (emails * 1000) / (performance.now() - began)
    const { arrived, addresses } = await mailbox.count()
    const found = await countFaults(stack, 'registrations', [organiser], acknowledged)
    const slower = spread(during.map((p99) => p99 / spread(alone).median))
    console.log(
      `  p99 of a registration at ${connections} connections: ${fixed(spread(alone).median)} ms alone, ${fixed(spread(during).median)} ms meanwhile`,
    )
    console.log(`  ${fixed(rate)} e-mails/s, ${fixed((cpuMs(courier) - clock) / emails)} ms of the courier each`)
    return {
      figures: { alone, during, rate },
      faults: {
        ...found,
        lost: found.lost + emails - addresses,
        duplicated: found.duplicated + arrived - addresses,
        unsold: 0,
      },
      targets: [judged('p99 meanwhile ≤ 1.5× that alone', times(slower), slower.median, { atMost: 1.5 })],
    }
  } finally {
    mailbox.close()
  }
}
