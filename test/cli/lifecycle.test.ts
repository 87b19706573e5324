// Stopping, however it comes about: nothing stays behind, and the data is there at the next start.

import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import {
  cleanUp,
  end,
  freePort,
  identityOf,
  processesOn,
  repository,
  runningAmong,
  type Started,
  serversOf,
  spawnUsher,
  startUsher,
  temporaryFolder,
  usher,
  waitFor,
} from './support.ts'

// One data directory for all of them, as it is for a person: each test starts where the one before stopped.
let dataDir: string
let port: number
let first: { key: string; orderId: string }
let last: Started

beforeAll(async () => {
  dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  port = await freePort()
})
afterAll(cleanUp)
afterEach(() => expect(processesOn(dataDir)).toEqual([]))

const start = async (options: Partial<Parameters<typeof startUsher>[0]> = {}) => {
  last = await startUsher({ dataDir, port, ...options })
  // Of a test that failed half-way: the next one wants the data directory.
  onTestFinished(() => end(last.child))
  return last
}

/** Nothing of it is left. */
async function stopWith(signal: NodeJS.Signals, started = last): Promise<void> {
  const servers = serversOf(dataDir)
  expect(servers).toHaveLength(2)
  expect(runningAmong(servers)).toHaveLength(2)
  started.child.kill(signal)
  expect(await started.ended).toMatchObject({ code: 0, signal: null })
  expect(runningAmong(servers)).toEqual([])
  expect(processesOn(dataDir)).toEqual([])
}

/** The guest who was registered and let in at the first start is still in, and cannot come in again. */
async function expectDataThere(url: string): Promise<void> {
  const send = rest(first.key, url)
  const { body } = await send('GET', '/events')
  const [event] = body.data
  expect(body.data).toHaveLength(1)
  const again = await send('POST', `/events/${event.id}/registrations`, await guestOf(send, event.id), {
    'Idempotency-Key': 'the-guest',
  })
  expect([again.body.data.id, again.headers.get('idempotent-replayed')]).toEqual([first.orderId, 'true'])
  const scan = await send('POST', '/check-ins', {
    event_id: event.id,
    code: again.body.data.attendees[0].ticket_code,
  })
  expect([scan.status, scan.body.error.code]).toEqual([409, 'already_checked_in'])

  const { stdout } = await usher(['keys', 'list', '--organisation', 'demo', '--json'], dataDir)
  expect(JSON.parse(stdout)).toMatchObject([{ prefix: prefixOf(first.key), organisation: 'demo' }])
}

async function guestOf(send: ReturnType<typeof rest>, eventId: string): Promise<Record<string, unknown>> {
  const { body } = await send('GET', `/events/${eventId}/ticket-types`)
  return { ticket_type_id: body.data[0].id, name: 'Katherine Johnson', email: 'katherine@example.com' }
}

test('SIGTERM ends it with 0 and leaves no process behind', async () => {
  const { url, stdout } = await start()
  await expect.poll(stdout).toContain('usher_live_')
  const key = /usher_live_\w+/.exec(stdout())?.[0] ?? ''
  const send = rest(key, url)
  const { body } = await send('GET', '/events')
  const eventId: string = body.data[0].id
  const registered = await send('POST', `/events/${eventId}/registrations`, await guestOf(send, eventId), {
    'Idempotency-Key': 'the-guest',
  })
  const code: string = registered.body.data.attendees[0].ticket_code
  expect((await send('POST', '/check-ins', { event_id: eventId, code })).status).toBe(200)
  first = { key, orderId: registered.body.data.id }

  await stopWith('SIGTERM')
  await expect(fetch(`${url}/health`)).rejects.toThrow()
})

test('another start finds the data there, prints no new key, and Ctrl-C ends it as well', async () => {
  const { url, stdout } = await start()
  await expect.poll(stdout).toContain('npx usher keys create --organisation demo')
  expect(stdout()).not.toContain('usher_live_')
  await expectDataThere(url)
  await stopWith('SIGINT')
})

test('killed outright, it starts again on what it left behind, with the data there', async () => {
  const killed = await start()
  const orphans = serversOf(dataDir)
  killed.child.kill('SIGKILL')
  expect(await killed.ended).toMatchObject({ signal: 'SIGKILL' })
  expect(processesOn(dataDir)).toHaveLength(2)

  const { url } = await start()
  expect(runningAmong(orphans)).toEqual([])
  await expectDataThere(url)
  await stopWith('SIGTERM')
})

test('a request under way when the terminal is closed is answered first', async () => {
  const { url, child, ended, stderr } = await start()
  const servers = serversOf(dataDir)
  const send = rest(first.key, url)
  const eventId: string = (await send('GET', '/events')).body.data[0].id
  const guest = await guestOf(send, eventId)

  // An organiser edits the event and has not saved yet: a registration waits for that.
  const { stdout } = await usher(['db-url'], dataDir)
  const organiser = new pg.Client({ connectionString: stdout.trim() })
  await organiser.connect()
  await organiser.query('begin')
  await organiser.query('update public.events set capacity = 500 where id = $1', [eventId])
  const registration = send('POST', `/events/${eventId}/registrations`, guest, { Connection: 'close' })
  const waiting = () =>
    organiser.query('select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))')
  await expect.poll(async () => (await waiting()).rowCount).toBe(1)
  child.kill('SIGHUP')
  await waitFor(() => stderr().includes('Stopping'))
  await organiser.query('commit')
  await organiser.end()

  expect((await registration).status).toBe(201)
  expect(await ended).toMatchObject({ code: 0 })
  expect(runningAmong(servers)).toEqual([])
})

test.concurrent.each(['Creating the database', 'Applying'])(
  'SIGTERM while it says "%s" ends everything',
  async (moment) => {
    const folder = join(temporaryFolder(), 'data')
    const { child, stderr, ended } = spawnUsher(['start'], { dataDir: folder, env: { PORT: String(await freePort()) } })
    await waitFor(() => stderr().includes(moment))
    child.kill('SIGTERM')
    await ended
    expect(processesOn(folder)).toEqual([])
  },
)

// The limits are not worth a start that waits for them, nor one that cannot be interrupted.
test('a Redis that cannot be reached does not keep it from starting, or from saying so', async () => {
  const folder = await copyDataDirectory(join(temporaryFolder(), 'data'))
  const env = {
    PORT: String(await freePort()),
    REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    LOG_LEVEL: 'silent',
  }
  const { child, stdout, stderr, ended } = spawnUsher(['start'], { dataDir: folder, env })
  const isReady = () => stdout().startsWith('Usher is ready')
  const saysSo = () => child.exitCode === 1 && stderr().includes('REDIS_URL')
  await waitFor(() => isReady() || saysSo()).finally(() => child.kill('SIGTERM'))
  await ended
  expect(processesOn(folder)).toEqual([])
})

test('npm start passes SIGTERM on, and everything ends with it', async () => {
  const started = await start({ command: ['npm'], args: ['start'], cwd: repository })
  const servers = serversOf(dataDir)
  const npm = identityOf(started.child)
  expect(runningAmong(servers)).toHaveLength(2)
  await expectDataThere(started.url)

  started.child.kill('SIGTERM')
  await once(started.child, 'close')
  await waitFor(() => runningAmong([npm, ...servers]).length === 0)
  await expect(fetch(`${started.url}/health`)).rejects.toThrow()
})
