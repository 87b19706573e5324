// Measures what invalid keys cost other callers: `node bench/attack-false-keys.ts [keys] [checkout]`. Starts Usher on loopback, sends that
// many well-formed but unknown keys from one address while a valid key calls GET /me, and prints the number of key look-ups in the
// database and the latency of /me without and with the attack.

import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

const keys = Math.min(Number(process.argv[2] ?? 3_000), 20_000)
const root = resolve(process.argv[3] ?? join(import.meta.dirname, '..'))
const concurrency = 64
const calls = 300

const load = <T>(path: string): Promise<T> => import(join(root, path))
const { readConfig } = await load<typeof import('../src/cli/config.ts')>('src/cli/config.ts')
const { createLog } = await load<typeof import('../src/process/log.ts')>('src/process/log.ts')
const { createKey } = await load<typeof import('../src/gateway/api-key.ts')>('src/gateway/api-key.ts')
const { start } = await load<typeof import('../src/cli/start.ts')>('src/cli/start.ts')
const { findRunningStack } = await load<typeof import('../src/local/stack.ts')>('src/local/stack.ts')

const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent'), () => {})
const stack = await findRunningStack(dataDir)
if (stack === null || usher.demo === null) throw new Error('The first start has no stack or no demo.')
const database = new pg.Client(stack.databaseUrl)
await database.connect()
const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
const own = new Agent({ keepAlive: true, maxSockets: 1 })
try {
  const key = usher.demo.key
  const me = () => status(key, own)
  for (let i = 0; i < calls; i++) await me()
  const line = (name: string, times: number[]) => {
    const sorted = times.toSorted((a, b) => a - b)
    const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN).toFixed(1)
    console.log(`/me ${name.padEnd(24)} p50 ${at(0.5)} ms   p95 ${at(0.95)} ms   of ${sorted.length}`)
  }

  const alone: number[] = []
  for (let i = 0; i < calls; i++) alone.push(await timed(me))
  line('alone', alone)

  const before = await keyLookUps()
  const started = performance.now()
  const answers = new Map<number, number>()
  let left = keys
  const attack = Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) {
        const code = await status(createKey(), agent)
        answers.set(code, (answers.get(code) ?? 0) + 1)
      }
    }),
  )
  let over = false
  void attack.then(() => {
    over = true
  })
  const beside: number[] = []
  while (!over) beside.push(await timed(me))
  await attack
  const seconds = (performance.now() - started) / 1000
  line('during the attack', beside)
  console.log(`${keys} false keys in ${seconds.toFixed(1)} s, answered ${JSON.stringify(Object.fromEntries(answers))}`)
  // A backend writes its statistics when it is idle, at most a second later.
  await sleep(2_000)
  console.log(`looked up in the database       ${(await keyLookUps()) - before}`)
} finally {
  agent.destroy()
  own.destroy()
  await database.end()
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
}

/** The number of scans of the table of key hashes: one for each key that is resolved. */
async function keyLookUps(): Promise<number> {
  const { rows } = await database.query(
    "select (seq_scan + coalesce(idx_scan, 0))::int as scans from pg_stat_all_tables where relname = 'api_key_hashes'",
  )
  return rows[0].scans
}

function status(key: string, through: Agent): Promise<number> {
  return new Promise((done, failed) => {
    const req = request(
      `${usher.url}/api/v1/me`,
      { headers: { Authorization: `Bearer ${key}` }, agent: through },
      (res) => {
        res.resume().on('end', () => done(res.statusCode ?? 0))
      },
    )
    req.on('error', failed).end()
  })
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
