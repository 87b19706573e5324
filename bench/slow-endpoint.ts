// Measures whether webhook endpoints that hang delay another one: `npm run bench:slow-endpoint`, or with `-- 40` for the number that hang.
// Registers guests at a steady rate on a new stack and measures the time from each registration to its webhook at a good endpoint: alone,
// beside the endpoints that hang (once these have timed out), and alone again, which shows a warm-up of the machine. Prints p50 and p95
// of each, and their ratio.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../src/cli/config.ts'
import { start } from '../src/cli/start.ts'
import { createLog } from '../src/process/log.ts'

const guests = 300
const registrationIntervalMs = 40
const hanging = Number(process.argv[2] ?? 1)

const arrivals = new Map<string, number>()
const receiver = createServer((req, res) => {
  let body = ''
  req.on('data', (chunk) => {
    body += chunk
  })
  req.on('end', () => {
    // Reads the request and never answers.
    if (req.url === '/hangs') return
    arrivals.set(JSON.parse(body).data.id, performance.now())
    res.writeHead(204).end()
  })
})
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`

const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const config = readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' })
const usher = await start(config, createLog('silent'), () => {})
try {
  if (usher.demo === null) throw new Error('The first start has no demo.')
  const { key, eventId } = usher.demo
  const send = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${usher.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as { data: { id: string } }
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
    return answer.data
  }
  await send('PATCH', `/events/${eventId}`, { capacity: null })
  const ticketType = await send('POST', `/events/${eventId}/ticket-types`, { name: 'Bench' })
  const endpoint = (path: string) =>
    send('POST', '/webhook-endpoints', { url: `${receiverUrl}${path}`, types: ['order.completed'] })

  async function measure(): Promise<{ p50: number; p95: number }> {
    const registered: [id: string, at: number][] = []
    const working: Promise<void>[] = []
    for (let i = 0; i < guests; i++) {
      const body = { ticket_type_id: ticketType.id, name: `Guest ${i}`, email: 'guest@example.com', send_email: false }
      working.push(
        send('POST', `/events/${eventId}/registrations`, body).then(({ id }) => {
          registered.push([id, performance.now()])
        }),
      )
      await sleep(registrationIntervalMs)
    }
    await Promise.all(working)
    for (let i = 0; i < 200 && registered.some(([id]) => !arrivals.has(id)); i++) await sleep(50)
    // A webhook may arrive before the answer to its registration.
    const times = registered.map(([id, at]) => Math.max((arrivals.get(id) ?? Number.POSITIVE_INFINITY) - at, 0))
    const sorted = times.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] as number
    return { p50: at(0.5), p95: at(0.95) }
  }

  await endpoint('/answers')
  await measure()
  const alone = await measure()
  const slow = await Promise.all(Array.from({ length: hanging }, () => endpoint('/hangs')))
  await measure()
  await sleep(config.webhookTimeoutSeconds * 1000)
  const beside = await measure()
  for (const { id } of slow) await send('DELETE', `/webhook-endpoints/${id}`)
  const again = await measure()

  const line = (name: string, { p50, p95 }: { p50: number; p95: number }) =>
    console.log(`${name.padEnd(28)} p50 ${p50.toFixed(1)} ms   p95 ${p95.toFixed(1)} ms`)
  line('alone', alone)
  line(`beside ${hanging} that hang${hanging === 1 ? 's' : ''}`, beside)
  line('alone again', again)
  console.log(`p95 beside / alone           ${(beside.p95 / Math.max(alone.p95, again.p95)).toFixed(2)}`)
} finally {
  await usher.stop()
  receiver.closeAllConnections()
  receiver.close()
  await rm(dataDir, { recursive: true, force: true })
}
