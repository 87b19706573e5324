// The courier of `usher start` is a process of its own: it is started again when it dies, ends with its parent, and asks the database
// little while there is nothing to do.

import { fork } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { startDeliveries } from '../../src/cli/deliveries.ts'
import { createCourierRpc } from '../../src/gateway/courier-rpc.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { createCourierProbe } from '../../src/gateway/database-probe.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { findRunningStack } from '../../src/local/stack.ts'
import { createLog } from '../../src/process/log.ts'
import { isRunning, type ProcessIdentity } from '../../src/process/processes.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import {
  cleanUp,
  environment,
  familyOf,
  identify,
  repository,
  type Started,
  serversOf,
  startUsher,
  temporaryFolder,
  waitFor,
} from './support.ts'

// Names of the environment that are none of the courier's, beside those that turn something on.
const secrets = {
  SUPABASE_JWT_SECRET: 'not-for-the-courier-of-usher-start',
  SUPABASE_SIGNING_KEY: JSON.stringify(
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
  ),
  DATABASE_URL: 'postgresql://postgres:not-for-the-courier@127.0.0.1:1/postgres',
  POSTMARK_WEBHOOK_SECRET: 'not-for-the-courier',
  USHER_JWT_SECRET: 'not-for-the-courier',
  USHER_SIGNING_KEY: 'not-for-the-courier',
}
const kept = { TZ: 'Europe/Berlin', NO_PROXY: 'localhost' }

let dataDir: string
let started: Started
let database: pg.Client
beforeAll(async () => {
  dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  const file = join(temporaryFolder(), 'secrets.env')
  writeFileSync(file, 'COURIER_SECRET=not-for-the-courier\n')
  const command = [process.execPath, '--stack-trace-limit=20', '--env-file', file, join(repository, 'bin/usher.js')]
  started = await startUsher({ dataDir, env: { ...secrets, ...kept }, command })
  database = new pg.Client((await findRunningStack(dataDir))?.databaseUrl)
  await database.connect()
})
afterAll(async () => {
  await database?.end()
  await cleanUp()
})

/** Null: it does not run, or not yet. */
function courier(): ProcessIdentity | null {
  const [pid] = familyOf(started.child.pid as number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('courier-main.ts')
    } catch {
      return false
    }
  })
  return pid === undefined ? null : identify(pid)
}

const emails = () => {
  try {
    return readdirSync(join(dataDir, 'mail')).filter((name) => name.endsWith('.eml')).length
  } catch {
    return 0
  }
}

/** As in Studio: nobody tells the courier. */
const registerBySql = () =>
  database.query(
    `with ordered as (
       insert into public.orders (event_id, name, email) select id, 'Mary Jackson', 'mary@example.com' from public.events limit 1
       returning id, event_id
     )
     insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, (select t.id from public.ticket_types t where t.event_id = o.event_id limit 1), 'Mary Jackson', 'mary@example.com'
     from ordered o`,
  )

test('a ticket of a row that was typed is sent, and so is one after the courier was killed', async () => {
  await registerBySql()
  await expect.poll(emails).toBe(1)
  const killed = courier() ?? expect.unreachable()
  process.kill(killed.pid, 'SIGKILL')
  await waitFor(() => started.stderr().includes('The courier runs again.'))
  expect(isRunning(killed)).toBe(false)
  expect(started.stderr()).toContain('The courier stopped unexpectedly (signal SIGKILL). Restarting it')
  await registerBySql()
  await expect.poll(emails).toBe(2)
  await waitFor(() => started.stderr().includes('"msg":"e-mail"'))
})

const inProc = (pid: number, name: 'environ' | 'cmdline') => readFileSync(`/proc/${pid}/${name}`, 'utf8').split('\0')

test('it has no secret but those that it uses, and what Node was told', () => {
  const { pid } = courier() ?? expect.unreachable()
  const own = inProc(pid, 'environ').map((variable) => variable.split('=')[0] as string)
  const given = Object.keys({ ...environment(dataDir, { ...secrets, ...kept }), COURIER_SECRET: '' })
  expect(given.filter((name) => name !== 'TMPDIR' && own.includes(name)).sort()).toEqual(
    ['HOME', 'PATH', ...Object.keys(kept)].sort(),
  )
  expect(inProc(pid, 'cmdline').slice(1, -1)).toEqual([
    '--disable-warning=ExperimentalWarning',
    '--stack-trace-limit=20',
    join(repository, 'src/cli/courier-main.ts'),
  ])
})

test('its probe needs no token but its own', async () => {
  const { dataApiUrl: url, jwtSecret } = (await findRunningStack(dataDir)) ?? expect.unreachable()
  const probeWith = async (secret: string) => {
    const { forCourier, inPlaceOf } = await createTokens({ secret })
    return createCourierProbe({ url }, { forCourier, inPlaceOf })(AbortSignal.timeout(60_000))
  }
  expect(await probeWith(jwtSecret)).toMatchObject({ kind: 'answered' })
  expect(await probeWith('a secret of another installation')).toMatchObject({ kind: 'misconfigured', check: 'token' })
})

test('while the database does not answer it makes no calls, and then goes on', async () => {
  const [postgres] = serversOf(dataDir)
  const paused = familyOf(postgres?.pid ?? expect.unreachable())
  const before = emails()
  for (const pid of paused) process.kill(pid, 'SIGSTOP')
  try {
    await waitFor(() => /does not answer probes.*"msg":"poll failed"/.test(started.stderr()))
  } finally {
    for (const pid of paused) process.kill(pid, 'SIGCONT')
  }
  await registerBySql()
  await expect.poll(emails).toBe(before + 1)
})

test('it ends without a word when it was not wanted any more before it began', async () => {
  const child = fork(join(repository, 'src/cli/courier-main.ts'), {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const said = [child.stdout, child.stderr].map((stream) => stream?.toArray())
  child.disconnect()
  expect(await once(child, 'exit')).toEqual([0, null])
  expect((await Promise.all(said)).flat()).toEqual([])
})

test('while nothing is due, a courier makes one call for all of its queues', async () => {
  const { dataApiUrl, jwtSecret } = (await findRunningStack(dataDir)) ?? expect.unreachable()
  const tokens = await createTokens({ secret: jwtSecret })
  const call = createCourierRpc(new DataApi({ url: dataApiUrl }, tokens), tokens)
  const calls: string[] = []
  const polls = () => calls.filter((fn) => fn === 'poll_queues').length
  expect(await call('poll_queues', {})).toEqual([])
  const { stop } = startDeliveries(
    { ...readConfig({ USHER_DATA_DIR: dataDir }), ownPorts: [] },
    async (fn, args) => {
      calls.push(fn)
      return call(fn, args)
    },
    createLog('silent'),
  )
  await expect.poll(polls).toBeGreaterThan(3)
  await stop()
  const others = calls.filter((fn) => fn !== 'poll_queues').sort()
  // Each of them at intervals of its own, of which the first began with the start.
  expect(others).toEqual(['enforce_payment_deadlines', 'erased_emails', 'expire_waiting_list_offers', 'purge'])
})

test('it ends when its parent is killed', async () => {
  const left = courier() ?? expect.unreachable()
  await database.end()
  started.child.kill('SIGKILL')
  await started.ended
  await waitFor(() => !isRunning(left))
  // The next start ends what else was left.
  await startUsher({ dataDir })
})
