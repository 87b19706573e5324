// A database that dies or is suspended under a running Usher: callers get 503, nothing that was refused is done later, and service
// resumes when it is back. Each has an Usher of its own.

import { readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { readConfig } from '../../src/cli/config.ts'
import { type Running, start } from '../../src/cli/start.ts'
import { createDatabaseHealth } from '../../src/gateway/database-health.ts'
import { createProbe } from '../../src/gateway/database-probe.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createLog } from '../../src/process/log.ts'
import { familyOf } from '../cli/support.ts'
import { makeDataDirectory, recordOf } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { startSupabaseGateway } from '../support/supabase-gateway.ts'

let dataDir: string
let usher: Running
let send: ReturnType<typeof rest>
let logged = ''
beforeAll(async () => {
  dataDir = await makeDataDirectory()
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logged += chunk.toString()
      done()
    },
  })
  usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('warn', destination), () => {})
  send = rest(usher.demo?.key ?? '', usher.url)
})
afterAll(async () => {
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const statusOf = (path: string) => fetch(`${usher.url}${path}`).then(({ status }) => status)
const pidOf = (part: 'postgres' | 'postgrest') => recordOf(dataDir)[part]?.pid ?? 0

let guests = 0
async function register(again?: string) {
  if (again === undefined) guests += 1
  const email = again ?? `guest-${guests}@example.com`
  const guest = { ticket_type_id: usher.demo?.ticketTypeId, name: 'Mary Jackson', email }
  const { status, body } = await send('POST', `/events/${usher.demo?.eventId}/registrations`, guest, {
    'Idempotency-Key': email,
  })
  return { email, status, code: body.error?.code as string | undefined, retryable: body.error?.retryable }
}

type Answer = { status: number; code?: string | undefined }

const whoAmI = async (): Promise<Answer> => {
  const { status, body } = await send('GET', '/me')
  return { status, code: body.error?.code }
}

/** A call that was under way when the connection broke may have been carried out, and is told so. */
const refusal = {
  status: 503,
  code: expect.stringMatching(/^(temporarily_unavailable|outcome_unknown)$/),
}

async function expectRunningAgain(name: string): Promise<void> {
  expect(await statusOf('/health')).toBe(200)
  await expect.poll(() => statusOf('/ready')).toBe(200)
  await expect
    .poll(() => logged)
    .toContain(`"msg":"${name} ended unexpectedly (signal SIGKILL). Starting it again (attempt 1) …"`)
  await expect.poll(() => logged).toContain(`"msg":"${name} runs again."`)
  expect(await Promise.race([usher.failed, 'it goes on'])).toBe('it goes on')
}

test('when Postgres dies calls are answered with 503 until it runs again, and then as before', async () => {
  const answers: Answer[] = []
  const refusals = () => answers.filter(({ status }) => status !== 200 && status !== 201)
  let back = false
  const callers = [() => register(), whoAmI, () => register()].map(async (call) => {
    while (!back) {
      answers.push(await call())
      await sleep(50)
    }
  })
  await sleep(100)
  // It may be back so soon that every call succeeds when it is repeated: then once more.
  for (let kills = 0; kills < 3 && refusals().length === 0; kills++) {
    const killed = pidOf('postgres')
    process.kill(killed, 'SIGKILL')
    // The record has no process while there is none.
    await expect.poll(() => ![0, killed].includes(pidOf('postgres'))).toBe(true)
    await expect.poll(() => statusOf('/ready')).toBe(200)
  }
  const seen = answers.length
  await expect.poll(() => answers.slice(seen).filter(({ status }) => status === 201).length).toBeGreaterThan(5)
  back = true
  await Promise.all(callers)

  expect(refusals().length).toBeGreaterThan(0)
  for (const refused of refusals()) expect(refused).toMatchObject(refusal)
  await expectRunningAgain('Postgres')
})

test('an on-sale in which PostgREST is killed registers once whoever was told so, and whoever repeats', async () => {
  await query('update public.events set capacity = null')
  await query('update public.ticket_types set quantity = null')
  const answers: Awaited<ReturnType<typeof register>>[] = []
  const wasRefused = () => answers.some(({ status }) => status !== 201)
  const callers = Array.from({ length: 24 }, async () => {
    do answers.push(await register())
    while (!wasRefused())
  })
  let back = false
  const reads: Answer[] = []
  const reading = (async () => {
    for (; !back; await sleep(50)) reads.push(await whoAmI())
  })()
  // In the middle: all callers wait for a batch.
  await expect.poll(() => answers.length, { interval: 1 }).toBeGreaterThanOrEqual(24)
  const killed = pidOf('postgrest')
  process.kill(killed, 'SIGKILL')
  await Promise.all(callers)
  await expect.poll(() => ![0, killed].includes(pidOf('postgrest'))).toBe(true)
  await expectRunningAgain('PostgREST')
  back = true
  await reading
  expect(await whoAmI()).toMatchObject({ status: 200 })
  for (const read of reads.filter(({ status }) => status !== 200)) expect(read).toMatchObject(refusal)

  const acknowledged = answers.filter(({ status }) => status === 201)
  const refused = answers.filter(({ status }) => status !== 201)
  expect(refused.length).toBeGreaterThan(0)
  for (const answer of refused) expect(answer).toMatchObject({ ...refusal, retryable: true })
  const emails = (of: { email: string }[]) => of.map(({ email }) => email).sort()
  expect((await registered(emails(acknowledged))).sort()).toEqual(emails(acknowledged))

  const repeated = await Promise.all(refused.map(({ email }) => register(email)))
  expect(repeated.map(({ status }) => status)).toEqual(refused.map(() => 201))
  expect((await registered(emails(answers))).sort()).toEqual(emails(answers))
})

describe.runIf(process.platform === 'linux').each(['postgres', 'postgrest'] as const)(
  'while %s is suspended',
  (part) => {
    test('calls are refused after a while, and what is refused is not done later', async () => {
      // First itself, which then begets no others.
      const parent = pidOf(part)
      process.kill(parent, 'SIGSTOP')
      const suspended = familyOf(parent)
      const signal = (name: NodeJS.Signals) => suspended.forEach((pid) => void sendSignal(pid, name))
      signal('SIGSTOP')
      onTestFinished(() => signal('SIGCONT'))
      // Whoever calls first finds out.
      const first = register()
      await expect.poll(() => statusOf('/ready'), { interval: 500 }).toBe(503)
      expect(await statusOf('/health')).toBe(200)
      await expect.poll(isRefused, { interval: 500 }).toBe(true)

      const refused = await Promise.all(Array.from({ length: 10 }, () => register()))
      expect(refused).toEqual(
        refused.map(({ email }) => ({ email, status: 503, code: 'temporarily_unavailable', retryable: true })),
      )
      signal('SIGCONT')
      await expect.poll(() => statusOf('/ready')).toBe(200)
      await first
      // Connections that broke meanwhile may each refuse a call: a client repeats it.
      const email = 'afterwards@example.com'
      await expect.poll(() => register(email)).toMatchObject({ status: 201 })
      expect(await registered([...refused.map(({ email }) => email), email])).toEqual([email])
    })
  },
)

/** Nothing, to a process that has ended meanwhile. */
function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Whether a call is answered, and does not wait. */
async function isRefused(): Promise<boolean> {
  const signal = AbortSignal.timeout(1_000)
  const headers = { Authorization: `Bearer ${usher.demo?.key}` }
  return fetch(`${usher.url}/api/v1/me`, { headers, signal }).then(
    ({ status }) => status === 503,
    () => false,
  )
}

const registered = async (emails: string[]): Promise<string[]> =>
  (await query('select email from public.attendees where email = any ($1)', [emails])).map(({ email }) => email)

async function query(sql: string, values: unknown[] = []): Promise<{ email: string }[]> {
  const { postgres } = recordOf(dataDir)
  const secrets = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as { postgresPassword: string }
  const client = new pg.Client({
    host: '127.0.0.1',
    port: postgres?.port ?? 0,
    user: 'postgres',
    password: secrets.postgresPassword,
    database: 'postgres',
  })
  await client.connect()
  const { rows } = await client.query(sql, values)
  await client.end()
  return rows
}

describe('the probe', () => {
  async function counted() {
    let requests = 0
    const gateway = await startSupabaseGateway(inject('dataApiUrl'), 'key', 0, () => {
      requests += 1
    })
    onTestFinished(gateway.close)
    const tokens = await createTokens({ secret: inject('jwtSecret') })
    const probe = createProbe({ url: `${gateway.url}/rest/v1`, projectKey: 'key' }, tokens)
    return { health: createDatabaseHealth(probe), requests: () => requests }
  }

  test('is shared by all who ask, and kept for about a second', async () => {
    const { health, requests } = await counted()
    expect(await Promise.all(Array.from({ length: 100 }, () => health.isReady()))).toEqual(Array(100).fill(true))
    expect(await health.isReady()).toBe(true)
    expect(requests()).toBe(1)
    await sleep(1_100)
    await health.isReady()
    expect(requests()).toBe(2)
  })

  test('is not made while nothing waits or fails', async () => {
    const { health, requests } = await counted()
    for (let i = 0; i < 20; i += 1) await health.during(() => sleep(50))
    await sleep(1_000)
    expect(requests()).toBe(0)
  })

  test('is made once a second while a call waits', async () => {
    const { health, requests } = await counted()
    const began = performance.now()
    await health.during(() => sleep(3_000))
    expect(requests()).toBeGreaterThanOrEqual(1)
    expect(requests()).toBeLessThanOrEqual((performance.now() - began) / 1_000 + 1)
  })

  test('that is not answered is no readiness', async () => {
    const silent = await listenOnLoopback(createServer(() => {}))
    onTestFinished(silent.close)
    const tokens = await createTokens({ secret: inject('jwtSecret') })
    expect(await createDatabaseHealth(createProbe({ url: silent.url }, tokens)).isReady()).toBe(false)
  })
})
