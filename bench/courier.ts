// Webhooks: a receiver on this machine, endpoints that are subscribed to it, and how fast the courier delivers what is pending.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Effort } from './compare.ts'
import { load } from './load.ts'
import { courierOf, cpuMs } from './processes.ts'
import { fixed, judged, type Outcome, spread, times } from './report.ts'
import { addOrganiser, type Organiser, registerInBulk, type Stack } from './stack.ts'
import { subjects } from './subjects.ts'

/** A process of its own, so that it does not delay the load generator. */
export async function startReceiver(): Promise<{ url: string; close(): void }> {
  const program = `require('node:http').createServer((req, res) => req.resume().on('end', () => res.writeHead(204).end()))
    .listen(0, '127.0.0.1', function () { console.log(this.address().port) }); process.stdin.on('close', () => process.exit()).resume()`
  const server = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [port] = await once(server.stdout, 'data')
  return { url: `http://127.0.0.1:${String(port).trim()}`, close: () => void server.stdin.end() }
}

/** Subscribes endpoints to registrations, up to this number. */
export async function subscribe(stack: Stack, { key, holder }: Organiser, receiver: string, endpoints: number) {
  const { rows } = await stack.database.query(
    'select count(*)::integer as n from public.webhook_endpoints where organisation_id = $1',
    [holder.organisation_id],
  )
  for (let i = rows[0].n; i < endpoints; i++) {
    const response = await fetch(`${stack.url}/api/v1/webhook-endpoints`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `${receiver}/${i}`, types: ['order.completed'] }),
    })
    if (!response.ok) throw new Error(`The endpoint was refused: ${await response.text()}`)
  }
}

const delivered = async ({ database }: Stack): Promise<number> =>
  (await database.query("select count(*)::integer as n from public.webhook_deliveries where status = 'delivered'"))
    .rows[0].n

const isPending = async ({ database }: Stack): Promise<boolean> =>
  (await database.query("select exists (select from public.webhook_deliveries where status = 'pending') as pending"))
    .rows[0].pending

/** Waits at most a minute. */
export async function untilDelivered(stack: Stack): Promise<void> {
  for (let tries = 0; tries < 300 && (await isPending(stack)); tries++) await sleep(200)
}

const organisations = 10
const endpointsEach = 5
const ordersEach = 2_000

export async function drainWebhooks(stack: Stack, { rounds, seconds }: Effort): Promise<Outcome> {
  const receiver = await startReceiver()
  try {
    const organisers: Organiser[] = []
    for (let i = 0; i < organisations; i++) {
      const organiser = await addOrganiser(stack)
      await subscribe(stack, organiser, receiver.url, endpointsEach)
      organisers.push(organiser)
    }
    const usher = await subjects.usher(stack)
    const request = (await usher.open(organisers[0] as Organiser))({ operation: 'get_api_key', args: {} })
    const api = async () => (await load({ url: usher.url, connections: 16, seconds, request })).p99
    await api()
    const alone: number[] = []
    for (let i = 0; i < rounds; i++) alone.push(await api())

    for (let orders = 0; orders < ordersEach; orders += 500) {
      for (const organiser of organisers) await registerInBulk(stack, organiser, 500)
    }
    const rates: number[] = []
    const cpu: number[] = []
    const courier = courierOf(stack.pids.node) ?? Number.NaN
    for (let i = 0; i < rounds; i++) {
      const [before, began, clock] = [await delivered(stack), performance.now(), cpuMs(courier)]
      await sleep(seconds * 1000)
      const done = (await delivered(stack)) - before
      rates.push((done * 1000) / (performance.now() - began))
      cpu.push((cpuMs(courier) - clock) / done)
    }
    const during: number[] = []
    for (let i = 0; i < rounds && (await isPending(stack)); i++) during.push(await api())
    const [rate, slower] = [spread(rates), spread(during.map((p99, i) => p99 / (alone[i] as number)))]
    const shown = `${fixed(rate.median)} (${fixed(rate.min)}–${fixed(rate.max)})`
    console.log(`  ${shown} webhooks/s, ${fixed(spread(cpu).median)} ms of Node each`)
    console.log(
      `  GET /me at 16 connections, p99: ${fixed(spread(alone).median)} ms alone, ${fixed(spread(during).median)} ms meanwhile`,
    )
    return {
      figures: { rates, alone, during },
      targets: [
        judged('webhooks/s ≥ 800', shown, rate.median, { atLeast: 800 }),
        judged('p99 of the API meanwhile ≤ 2× that alone', times(slower), slower.median, { atMost: 2 }),
      ],
    }
  } finally {
    receiver.close()
  }
}
