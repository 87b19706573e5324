// Webhooks and e-mails to receivers on this machine: how many a second, and how late they are in three situations, each on a stack of its
// own. Rounds take turns.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import type { Effort } from '../compare.ts'
import { latency } from '../load.ts'
import { fixed, judged, median, noFaults, type Outcome, printTable, ranged } from '../report.ts'
import {
  addOrganiser,
  atEnd,
  courierOf,
  cpuMs,
  cpuWithChildrenMs,
  type Organiser,
  registerInBulk,
  type Stack,
  startStack,
} from '../stack.ts'
import { registration, usher } from '../subjects.ts'
import type { Scenario } from './scenario.ts'

export const deliveries: Scenario = {
  name: 'deliveries',
  question: 'How many webhooks and e-mails a second, and does a slow endpoint or another organisation delay them?',
  run,
}

/** When each arrived: webhooks by path and order, e-mails by address. */
const arrivals = new Map<string, number[]>()
const arrive = (key: string) => arrivals.set(key, [...(arrivals.get(key) ?? []), performance.now()])

/** Answers at once, except below /hangs, where it never answers. */
async function startReceiver(): Promise<string> {
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part)
    if (req.url === '/hangs') return
    arrive(`${req.url} ${JSON.parse(Buffer.concat(parts).toString()).data.id}`)
    res.writeHead(204).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function startMailbox(): Promise<string> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onData: (stream, { envelope }, done) =>
      stream.resume().on('end', () => {
        for (const { address } of envelope.rcptTo) arrive(address)
        done()
      }),
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  atEnd(() => new Promise<void>((closed) => server.close(closed)))
  return `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`
}

const subscribe = ({ database }: Stack, { holder }: Organiser, url: string) =>
  database.query(
    "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, $2, '{order.completed}')",
    [holder.organisation_id, url],
  )

/** All that must arrive. */
const expected = new Set<string>()

async function untilArrived(keys: string[]): Promise<void> {
  for (const key of keys) expected.add(key)
  const givenUpAt = performance.now() + 120_000
  for (let missing = keys; missing.length > 0 && performance.now() < givenUpAt; ) {
    await sleep(50)
    missing = missing.filter((key) => !arrivals.has(key))
  }
}

type Situation = { name: string; stack: Stack; organiser: Organiser; before?(): Promise<string[]> }
type Delays = { webhook: number; email: number }

const registrationEveryMs = 40

/** Registers guests at a steady rate. Returns the p95 of the delay from the answer to the webhook and to the ticket e-mail. */
async function delaysOf({ stack, organiser }: Situation, seconds: number): Promise<Delays> {
  const request = await usher('', stack).open(organiser)
  const register = async (nth: number) => {
    const email = `live-${crypto.randomUUID()}@example.com`
    const { path, ...init } = request(registration(organiser, nth, { email, send_email: true }))
    const response = await fetch(stack.url + path, init)
    const answer = (await response.json()) as { data: { id: string } }
    if (!response.ok) throw new Error(`A registration answered ${JSON.stringify(answer)}`)
    return { webhook: `/good ${answer.data.id}`, email, at: performance.now() }
  }
  const registering: ReturnType<typeof register>[] = []
  for (let nth = 0; nth < (seconds * 1000) / registrationEveryMs; nth++) {
    registering.push(register(nth))
    await sleep(registrationEveryMs)
  }
  const registered = await Promise.all(registering)
  await untilArrived(registered.flatMap(({ webhook, email }) => [webhook, email]))
  // A webhook may arrive before the answer to its registration.
  const p95 = (kind: 'webhook' | 'email') =>
    latency(registered.map((one) => Math.max((arrivals.get(one[kind])?.[0] ?? Infinity) - one.at, 0))).p95
  return { webhook: p95('webhook'), email: p95('email') }
}

const endpointsEach = 5
type Backlog = { webhooks(): Promise<string[]>; emails(): Promise<string[]> }

/** Ten other organisations with five endpoints each, and one with tickets to e-mail. Both queue what takes some seconds. */
async function backlogOn(stack: Stack, receiver: string, seconds: number): Promise<Backlog> {
  const subscribed: Organiser[] = []
  while (subscribed.length < 10) {
    const organiser = await addOrganiser(stack)
    for (let i = 0; i < endpointsEach; i++) await subscribe(stack, organiser, `${receiver}/${i}`)
    subscribed.push(organiser)
  }
  const mailing = await addOrganiser(stack)
  return {
    async webhooks() {
      const keys: string[] = []
      for (const organiser of subscribed) {
        const orders = await registerInBulk(stack, organiser, seconds * 40)
        for (let i = 0; i < endpointsEach; i++) keys.push(...orders.map((id) => `/${i} ${id}`))
      }
      return keys
    },
    async emails() {
      const orders = await registerInBulk(stack, mailing, seconds * 200, { sendEmail: true })
      const { rows } = await stack.database.query('select email from public.attendees where order_id = any ($1)', [
        orders,
      ])
      return rows.map(({ email }) => email)
    },
  }
}

type Drained = { rate: number; courier: number; postgres: number }

/** Deliveries a second once everything is queued, and the CPU time of each in ms. */
async function drain(stack: Stack, keys: string[]): Promise<Drained> {
  const courier = courierOf(stack)
  const clocks = () => ({
    at: performance.now(),
    courier: cpuMs(courier),
    postgres: cpuWithChildrenMs(stack.pids.postgres),
  })
  const before = clocks()
  const count = keys.filter((key) => !arrivals.has(key)).length
  await untilArrived(keys)
  const after = clocks()
  return {
    rate: (count * 1000) / (after.at - before.at),
    courier: (after.courier - before.courier) / count,
    postgres: (after.postgres - before.postgres) / count,
  }
}

async function run({ rounds, seconds }: Effort): Promise<Outcome> {
  const [receiver, mailbox] = [await startReceiver(), await startMailbox()]
  const situation = async (name: string): Promise<Situation> => {
    const stack = await startStack(undefined, { SMTP_URL: mailbox, MAIL_FROM: 'tickets@usher.example' })
    const organiser = await addOrganiser(stack)
    await subscribe(stack, organiser, `${receiver}/good`)
    return { name, stack, organiser }
  }
  const alone = await situation('alone')
  const troubled = await situation('beside an endpoint that hangs and one that is dead')
  for (const url of [`${receiver}/hangs`, 'http://127.0.0.1:9/'])
    await subscribe(troubled.stack, troubled.organiser, url)
  const crowded = await situation("beside other organisations' backlog")
  const backlog = await backlogOn(crowded.stack, receiver, seconds)
  crowded.before = async () => [...(await backlog.webhooks()), ...(await backlog.emails())]

  const rates: Record<keyof Backlog, Drained[]> = { webhooks: [], emails: [] }
  const delays = new Map([alone, troubled, crowded].map((one) => [one, [] as Delays[]]))
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const kind of ['webhooks', 'emails'] as const) {
      const drained = await drain(crowded.stack, await backlog[kind]())
      if (round > 0) rates[kind].push(drained)
    }
    for (const [one, all] of delays) {
      const queued = (await one.before?.()) ?? []
      const found = await delaysOf(one, seconds)
      await untilArrived(queued)
      if (round > 0) all.push(found)
    }
  }

  printTable('Deliveries', [
    ['', 'per s', 'courier', 'postgres'],
    ...Object.entries(rates).map(([kind, all]) => [
      kind,
      ranged(all.map(({ rate }) => rate)),
      ...(['courier', 'postgres'] as const).map((part) => fixed(median(all.map((one) => one[part])))),
    ]),
  ])
  const of = (one: Situation, kind: keyof Delays) => delays.get(one)?.map((delay) => delay[kind]) ?? []
  printTable('Delay after the answer to a registration, p95 in ms', [
    ['', 'webhook', 'e-mail'],
    ...[...delays.keys()].map((one) => [one.name, ranged(of(one, 'webhook')), ranged(of(one, 'email'))]),
  ])
  const slower = (one: Situation, kind: keyof Delays) =>
    of(one, kind).map((ms, i) => ms / (of(alone, kind)[i] ?? Number.NaN))
  const times = [...arrivals.values()].map(({ length }) => length)
  return {
    targets: [
      judged(
        'Webhooks',
        rates.webhooks.map(({ rate }) => rate),
        { atLeast: 800 },
        '/s',
      ),
      judged(`p95 of a webhook ${troubled.name}`, slower(troubled, 'webhook'), { atMost: 1.5 }, '× alone'),
      judged(`p95 of an e-mail ${crowded.name}`, slower(crowded, 'email'), { atMost: 2 }, '× alone'),
    ],
    faults: {
      ...noFaults,
      lost: [...expected].filter((key) => !arrivals.has(key)).length,
      duplicated: times.reduce((sum, n) => sum + n - 1, 0),
    },
  }
}
