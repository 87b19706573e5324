// Starting and stopping, however it comes about, as a process, through npm and in a terminal: everything ends, no child is left, and the
// data is there at the next start.

import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { hasTerminals, openTerminal, type Terminal } from '../support/pseudo-terminal.ts'
import { rest } from '../support/rest.ts'
import {
  cleanUp,
  end,
  environment,
  familyOf,
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

const ctrlC = '\x03'

// One data directory for all of them, as it is for a person: each test starts where the one before stopped.
let dataDir: string
let port: number
let url: string
let first: { key: string; orderId: string }

beforeAll(async () => {
  dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  port = await freePort()
  url = `http://127.0.0.1:${port}`
})
afterAll(cleanUp)

const start = (options: Partial<Parameters<typeof startUsher>[0]> = {}) => startUsher({ dataDir, port, ...options })

/** For one test. If that fails half-way, the next one wants the data directory. */
async function startForTest(options?: Parameters<typeof start>[0]): Promise<Started> {
  const started = await start(options)
  onTestFinished(() => end(started.child))
  return started
}

function terminalOf(command: string): Terminal {
  const terminal = openTerminal(command, { cwd: repository, env: environment(dataDir, { PORT: String(port) }) })
  onTestFinished(() => end(terminal.child))
  return terminal
}

/** Children that heed nothing but SIGKILL. */
function suspend(): ReturnType<typeof serversOf> {
  const servers = serversOf(dataDir)
  for (const { pid } of servers) for (const one of familyOf(pid)) process.kill(one, 'SIGSTOP')
  return servers
}

/** Npm and the terminal may go before Usher does. A run that was ended rather than stopped leaves its record. */
async function expectNothingLeft(): Promise<void> {
  const record = join(dataDir, 'running.json')
  // First what is looked up at once: there are hundreds of processes.
  await waitFor(() => !existsSync(record) && processesOn(dataDir).length === 0)
}

/** The guest who was registered and let in at the first start is still in, and cannot come in again. */
async function expectDataThere(): Promise<void> {
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
  expect(JSON.parse(stdout)).toMatchObject([
    { organisation: 'demo', kind: 'page' },
    { prefix: prefixOf(first.key), organisation: 'demo', kind: 'key' },
    { organisation: 'demo', kind: 'person' },
  ])
}

async function guestOf(send: ReturnType<typeof rest>, eventId: string): Promise<Record<string, unknown>> {
  const { body } = await send('GET', `/events/${eventId}/ticket-types`)
  return { ticket_type_id: body.data[0].id, name: 'Katherine Johnson', email: 'katherine@example.com' }
}

describe('the first start, with a PUBLIC_URL', () => {
  const base = 'https://tickets.example.com/usher'
  let started: Started
  beforeAll(async () => {
    started = await start({ env: { PUBLIC_URL: `${base}/` } })
    await waitFor(() => started.stdout().includes('/check-ins'))
  })
  afterAll(() => end(started.child))

  test('prints links below it, and its host is one that MCP clients may use', async () => {
    expect(started.stdout()).toContain(
      `Usher is ready at ${base}   REST ${base}/api/v1   MCP ${base}/api/mcp   Docs ${base}/docs\n`,
    )
    // A proxy on this machine may pass everybody's requests on as its own.
    await waitFor(() => started.stderr().includes('E-mails are not sent but written to'))
    expect(started.stdout()).not.toContain('/mail')
    expect((await fetch(`${url}/mail`)).status).toBe(404)
    const posted = [...started.stdout().matchAll(/curl -X POST (\S+)/g)].map(([, link]) => link)
    expect(posted).toEqual([expect.stringMatching(`^${base}/api/v1/events/`), `${base}/api/v1/check-ins`])

    const key = /usher_live_\w+/.exec(started.stdout())?.[0]
    expect(started.stdout()).toContain(
      `claude mcp add --transport http usher ${base}/api/mcp --header 'Authorization: Bearer ${key}'\n`,
    )
    const ask = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { Host: host, Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
        const options = { port, path: '/api/mcp', method: 'POST', headers }
        request(options, (answer) => resolve(answer.resume().statusCode ?? 0))
          .on('error', reject)
          .end('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
      })
    expect([await ask('tickets.example.com'), await ask('other.example.com')]).toEqual([200, 403])
    // For commands that are called without it.
    const { api } = JSON.parse(readFileSync(join(dataDir, 'running.json'), 'utf8'))
    expect(api).toMatchObject({ port, publicUrl: base })
  })

  test('lets a courier join it, which stops cleanly, however often it is told to', async () => {
    const courier = spawnUsher(['courier'], { dataDir })
    await waitFor(() => courier.stdout().includes('The courier is ready'))
    for (let i = 0; i < 5; i += 1) {
      courier.child.kill(i % 2 === 0 ? 'SIGINT' : 'SIGTERM')
      await sleep(5)
    }
    expect(await courier.ended).toMatchObject({ code: 0, signal: null })
  })

  test('ends with 0 on SIGTERM and leaves no process behind', async () => {
    const key = /usher_live_\w+/.exec(started.stdout())?.[0] ?? ''
    const send = rest(key, url)
    const { body } = await send('GET', '/events')
    const eventId: string = body.data[0].id
    const registered = await send('POST', `/events/${eventId}/registrations`, await guestOf(send, eventId), {
      'Idempotency-Key': 'the-guest',
    })
    const code: string = registered.body.data.attendees[0].ticket_code
    expect((await send('POST', '/check-ins', { event_id: eventId, code })).status).toBe(200)
    first = { key, orderId: registered.body.data.id }

    const servers = serversOf(dataDir)
    expect(runningAmong(servers)).toHaveLength(2)
    started.child.kill('SIGTERM')
    expect(await started.ended).toMatchObject({ code: 0, signal: null })
    expect(runningAmong(servers)).toEqual([])
    expect(processesOn(dataDir)).toEqual([])
    await expect(fetch(`${url}/health`)).rejects.toThrow()
  })
})

test('killed outright, it starts again with the data there and no new key; children that hang end with it', async () => {
  const killed = await startForTest()
  await expect.poll(killed.stdout).toContain('npx usher keys create --organisation demo')
  expect(killed.stdout()).not.toContain('usher_live_')
  const orphans = serversOf(dataDir)
  killed.child.kill('SIGKILL')
  expect(await killed.ended).toMatchObject({ signal: 'SIGKILL' })
  expect(processesOn(dataDir)).toHaveLength(2)

  const { child, ended } = await startForTest()
  expect(runningAmong(orphans)).toEqual([])
  await expectDataThere()
  const servers = process.platform === 'linux' ? suspend() : serversOf(dataDir)
  child.kill('SIGTERM')
  await ended
  expect(runningAmong(servers)).toEqual([])
  expect(processesOn(dataDir)).toEqual([])
})

// A machine of continuous integration has to have one, or these tests would be skipped without anybody noticing.
describe.skipIf(!hasTerminals && process.env.CI !== 'true')('in a terminal', () => {
  const directly = `'${process.execPath}' bin/usher.js start`

  // The signal comes twice: from the terminal, and from npm.
  test('npm start logs lines for a person, and two Ctrl-C end everything', async () => {
    const terminal = terminalOf('npm start')
    await waitFor(() => terminal.screen().includes('npx usher keys create'))
    expect(runningAmong(serversOf(dataDir))).toHaveLength(2)
    await expectDataThere()
    await expect.poll(terminal.screen).toMatch(/INFO.*: .*request GET \/api\/v1\/events 200/)
    expect(terminal.screen()).not.toContain('{"level"')
    terminal.type(ctrlC)
    await sleep(100)
    terminal.type(ctrlC)
    await expectNothingLeft()
    await terminal.ended
  })

  test('a request under way when the terminal is closed is answered first', async () => {
    const terminal = terminalOf(directly)
    await waitFor(() => terminal.screen().includes('Usher is ready'))
    const send = rest(first.key, url)
    const eventId: string = (await send('GET', '/events')).body.data[0].id
    const guest = await guestOf(send, eventId)

    // An organiser edits the event and has not saved yet: a registration waits for that.
    const { stdout } = await usher(['db-url'], dataDir)
    const organiser = new pg.Client({ connectionString: stdout.trim() })
    await organiser.connect()
    await organiser.query('begin')
    await organiser.query('update public.events set capacity = 500 where id = $1', [eventId])
    const register = () => send('POST', `/events/${eventId}/registrations`, guest, { Connection: 'close' })
    let early: unknown
    const registration = register().then(async (answer) => {
      early = answer.body
      // As a client does, of a database that is still busy with its first calls.
      return answer.status === 503 ? register() : answer
    })
    const waiting = () =>
      organiser.query('select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))')
    await expect.poll(async () => ({ waiting: (await waiting()).rowCount, early })).toMatchObject({ waiting: 1 })
    terminal.child.kill('SIGKILL')
    const answers = () =>
      fetch(`${url}/health`).then(
        () => true,
        () => false,
      )
    await expect.poll(answers).toBe(false)
    await organiser.query('commit')
    await organiser.end()

    expect((await registration).status).toBe(201)
    await expectNothingLeft()
    await terminal.ended
  })
})

test.runIf(process.platform === 'linux')(
  'a second signal within five seconds changes nothing, one later forces it, and leaves no child',
  async () => {
    const { child, stderr, ended } = await startForTest({ env: { LOG_LEVEL: 'silent' } })
    const servers = suspend()
    child.kill('SIGTERM')
    await sleep(2_000)
    child.kill('SIGTERM')
    await sleep(200)
    expect(runningAmong([identityOf(child)])).toHaveLength(1)
    expect(stderr()).not.toContain('Stopping at once')
    await sleep(3_000)
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 1, signal: null })
    expect(stderr()).toContain('Stopping at once')
    expect(runningAmong(servers)).toEqual([])
    expect(processesOn(dataDir)).toEqual([])
  },
)

test('npm start passes SIGTERM on, and everything ends with it, also when the whole group gets more of them', async () => {
  const started = await startForTest({ command: ['npm'], args: ['start'], cwd: repository, detached: true })
  const servers = serversOf(dataDir)
  const npm = identityOf(started.child)
  expect(runningAmong(servers)).toHaveLength(2)
  await expectDataThere()
  // For the test after this one.
  const { stdout } = await usher(['db-url'], dataDir)
  await forgetOneMigration(stdout.trim())

  started.child.kill('SIGTERM')
  await waitFor(() => started.stderr().includes('Stopping'))
  for (let i = 0; i < 2; i += 1) {
    try {
      process.kill(-npm.pid, 'SIGTERM')
    } catch {
      // It has ended already.
    }
    await sleep(20)
  }
  expect(await started.ended).toMatchObject({ code: 0 })
  await waitFor(() => runningAmong([npm, ...servers]).length === 0)
  await expectNothingLeft()
  await expect(fetch(`${url}/health`)).rejects.toThrow()
})

async function forgetOneMigration(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(
    `delete from supabase_migrations.schema_migrations
     where version = (select max(version) from supabase_migrations.schema_migrations)`,
  )
  await client.end()
}

test.each([
  ['Applying', () => dataDir],
  ['Creating the database', () => join(temporaryFolder(), 'data')],
])('SIGTERM while it says "%s" ends everything', async (moment, folderOf) => {
  const folder = folderOf()
  const { child, stderr, ended } = spawnUsher(['start'], { dataDir: folder, env: { PORT: String(port) } })
  await waitFor(() => stderr().includes(moment))
  child.kill('SIGTERM')
  await ended
  expect(stderr()).toContain('Interrupted')
  expect(processesOn(folder)).toEqual([])
})
