// The embedded stack from outside: real Postgres, real PostgREST, real signals.

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createTokens } from '../../src/gateway/tokens.ts'
import { withClient } from '../../src/local/client.ts'
import { openDataDirectory } from '../../src/local/data-directory.ts'
import { applyMigrations } from '../../src/local/migrate.ts'
import { type EmbeddedStack, findRunningStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { StartError } from '../../src/process/start-error.ts'
import { processesOn } from '../cli/support.ts'
import { copyDataDirectory, recordOf } from '../support/data-directory.ts'
import {
  cleanUp,
  copyOf,
  privateFolder,
  runningAmong,
  serversOf,
  start,
  startElsewhere,
  startStranger,
  temporaryFolder,
} from './support.ts'

// A data directory after its first start, copied by every test that can begin from there.
let home: string
let firstStart: { dataDir: string; databaseUrl: string; jwtSecret: string }
// The stack of a restart on a copy of that data, for tests that only look. It has the port, which the other copies therefore lack.
let shared: EmbeddedStack
const messagesOfShared: string[] = []

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'usher embedded home-'))
  const dataDir = await copyDataDirectory(join(home, 'first'))
  const stack = await start(dataDir)
  await query(stack.databaseUrl, "create table public.kept (note text); insert into public.kept values ('still here')")
  await stack.stop()
  firstStart = { dataDir, databaseUrl: stack.databaseUrl, jwtSecret: stack.jwtSecret }
  shared = await startEmbeddedStack({
    dataDir: relative('', copyOf(dataDir, home)),
    progress: (message) => messagesOfShared.push(message),
  })
})
afterEach(cleanUp)
afterAll(async () => {
  await shared.stop()
  rmSync(home, { recursive: true, force: true })
})

/** Resolves at once when it has ended already. */
const ended = (child: ChildProcess) => child.exitCode ?? child.signalCode ?? once(child, 'close')

async function query(databaseUrl: string, sql: string): Promise<unknown[]> {
  return withClient(databaseUrl, async (client) => {
    const result = await client.query(sql)
    return Array.isArray(result) ? result.at(-1).rows : result.rows
  })
}

test('a first start makes a database and a Data API, however often it was raced, killed or interrupted before', async () => {
  const dataDir = join(privateFolder(home, 'private parent'), 'not there', 'data')
  const racers = [startElsewhere(dataDir), startElsewhere(dataDir)]
  const said = await Promise.all(racers.map(({ line }) => line(/Creating the database|already running/)))
  expect(said.filter((sentence) => sentence.includes('already running'))).toHaveLength(1)
  const killed = racers[said.findIndex((sentence) => sentence.startsWith('Creating'))]
  killed?.child.kill('SIGKILL')
  await Promise.all(racers.map(({ child }) => ended(child)))
  expect(existsSync(join(dataDir, 'database'))).toBe(false)

  const interrupted = startElsewhere(dataDir)
  await interrupted.line(/Applying/)
  const servers = serversOf(dataDir)
  interrupted.child.kill('SIGINT')
  await interrupted.line(/Interrupted\. Everything started was stopped/)
  await ended(interrupted.child)
  expect(servers).toHaveLength(1)
  expect(runningAmong(servers)).toEqual([])

  const messages: string[] = []
  const starts = await Promise.allSettled([start(dataDir, messages), start(dataDir, messages)])
  const [stack] = starts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  expect(starts.filter(({ status }) => status === 'rejected')).toHaveLength(1)
  expect(messages.at(-1)).toBe('Starting PostgREST …')
  expect(readdirSync(dataDir).filter((name) => name.includes('partial'))).toEqual([])
  expect(await query(stack?.databaseUrl ?? '', 'select current_user::text as role')).toEqual([{ role: 'postgres' }])
  const { status } = await fetch(`${stack?.dataApiUrl}/rpc/there_is_no_such_function`)
  expect([401, 404]).toContain(status)
})

test('secrets are readable by their owner alone, and so is the data directory', () => {
  expect(statSync(join(firstStart.dataDir, 'secrets.json')).mode & 0o777).toBe(0o600)
  expect(statSync(firstStart.dataDir).mode & 0o777).toBe(0o700)
  const secrets = JSON.parse(readFileSync(join(firstStart.dataDir, 'secrets.json'), 'utf8')) as Record<string, string>
  for (const secret of Object.values(secrets)) expect(secret.length).toBeGreaterThanOrEqual(32)
})

test('a secret of tokens that was removed is made anew, and tokens of the old one are refused', async () => {
  const dataDir = copyOf(firstStart.dataDir)
  const file = join(dataDir, 'secrets.json')
  const { jwtSecret, ...passwords } = JSON.parse(readFileSync(file, 'utf8'))
  expect(jwtSecret).toBe(firstStart.jwtSecret)
  writeFileSync(file, JSON.stringify(passwords))
  const stack = await start(dataDir)
  const renewed = JSON.parse(readFileSync(file, 'utf8'))
  expect(renewed).toEqual({ ...passwords, jwtSecret: stack.jwtSecret })
  expect([stack.jwtSecret.length >= 32, stack.jwtSecret !== jwtSecret]).toEqual([true, true])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const statusOf = async (secret: string) => {
    const tokens = await createTokens({ secret })
    const answer = await fetch(`${stack.dataApiUrl}/rpc/outbox_depth`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${await tokens.forCourier()}` },
    })
    return answer.status
  }
  expect([await statusOf(jwtSecret), await statusOf(stack.jwtSecret)]).toEqual([401, 200])
})

test('postgres is no superuser, and can do what migrations on hosted Supabase can', async () => {
  const [role] = await query(
    shared.databaseUrl,
    "select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication from pg_roles where rolname = 'postgres'",
  )
  expect(role).toEqual({
    rolsuper: false,
    rolcreaterole: true,
    rolcreatedb: true,
    rolbypassrls: true,
    rolreplication: true,
  })
  await query(
    shared.databaseUrl,
    `begin;
     create role scope_of_a_test nologin;
     grant scope_of_a_test to authenticator;
     alter role authenticator set pgrst.db_pre_request = 'public.any';
     create schema schema_of_a_test;
     create table schema_of_a_test.members (user_id uuid primary key references auth.users (id));
     insert into auth.users (id, email) values ('00000000-0000-4000-8000-000000000001', 'someone@example.com');
     insert into schema_of_a_test.members select id from auth.users;
     create extension citext with schema extensions;
     rollback`,
  )
  await expect(query(shared.databaseUrl, 'alter role postgres superuser')).rejects.toMatchObject({ code: '42501' })
  await expect(query(shared.databaseUrl, 'create table auth.mine ()')).rejects.toMatchObject({ code: '42501' })
})

test('tables in public are open to the roles of the Data API, whose claims auth.uid(), auth.role() and auth.jwt() read', async () => {
  const open = await query(
    shared.databaseUrl,
    "select role from unnest(array['anon', 'authenticated', 'service_role']) as role where has_table_privilege(role, 'public.kept', 'delete')",
  )
  expect(open).toHaveLength(3)
  const id = '00000000-0000-4000-8000-000000000001'
  const claims = JSON.stringify({ sub: id, role: 'authenticated', email: 'someone@example.com' })
  const [seen] = await query(
    shared.databaseUrl,
    `begin;
     select set_config('request.jwt.claims', '${claims}', true);
     set local role authenticated;
     select auth.uid() as id, auth.role() as role, auth.jwt() ->> 'email' as email`,
  )
  expect(seen).toEqual({ id, role: 'authenticated', email: 'someone@example.com' })
})

test('a restart keeps the data, the connection string and the token secret, and takes no new migrations', async () => {
  expect(shared.databaseUrl).toBe(firstStart.databaseUrl)
  expect(shared.jwtSecret).toBe(firstStart.jwtSecret)
  expect(await query(shared.databaseUrl, 'select note from public.kept')).toEqual([{ note: 'still here' }])
  expect(messagesOfShared).toEqual(['Starting Postgres …', 'Starting PostgREST …'])
})

test('records of dead processes, a taken port and what a killed first start left harm nobody, and a stop leaves no process', async () => {
  const dataDir = copyOf(firstStart.dataDir)
  const stranger = startStranger()
  const pid = stranger.pid ?? 0
  const outdated = { pid, command: 'of another program' }
  writeFileSync(
    join(dataDir, 'running.json'),
    JSON.stringify({
      usher: { pid },
      postgres: { ...outdated, port: 1 },
      postgrest: { ...outdated, pid: 4_194_300 },
      ready: true,
    }),
  )
  writeFileSync(
    join(dataDir, 'database', 'postmaster.pid'),
    [pid, join(dataDir, 'database'), '1700000000', '5432', '', '127.0.0.1', '        1         1', 'ready   ', ''].join(
      '\n',
    ),
  )
  writeFileSync(join(privateFolder(dataDir, 'database.partial-ABCDEF'), 'password'), 'secret')
  expect(await findRunningStack(join(dataDir, 'nowhere'))).toBeNull()
  expect(await findRunningStack(dataDir)).toBeNull()

  const stack = await start(dataDir)
  expect(stranger.exitCode ?? stranger.signalCode).toBeNull()
  expect(new URL(stack.databaseUrl).port).not.toBe(new URL(shared.databaseUrl).port)
  expect(await query(stack.databaseUrl, 'select note from public.kept')).toEqual([{ note: 'still here' }])
  expect(readdirSync(dataDir).filter((name) => name.includes('partial'))).toEqual([])
  expect(await findRunningStack(dataDir)).toEqual({
    databaseUrl: stack.databaseUrl,
    dataApiUrl: stack.dataApiUrl,
    jwtSecret: stack.jwtSecret,
    record: recordOf(dataDir),
  })

  const servers = serversOf(dataDir)
  expect(runningAmong(servers)).toHaveLength(2)
  await Promise.all([stack.stop(), stack.stop()])
  expect(runningAmong(servers)).toEqual([])
  expect(await Promise.race([stack.failed, 'no failure'])).toBe('no failure')
  expect(await findRunningStack(dataDir)).toBeNull()
})

test('a second start is refused with the number of the process, and takes its place once that was killed', async () => {
  const dataDir = copyOf(firstStart.dataDir)
  const other = startElsewhere(dataDir)
  await other.line(/databaseUrl/)
  const refused = await start(dataDir).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(StartError)
  expect((refused as Error).message).toBe(
    `Usher is already running on ${dataDir} (process ${other.child.pid}). ` +
      'Stop it first, or set USHER_DATA_DIR to another folder.',
  )
  const orphans = serversOf(dataDir)
  other.child.kill('SIGKILL')
  await once(other.child, 'close')
  expect(runningAmong(orphans)).toHaveLength(2)
  // Without the record they are recognised by their command line, and others at work on the same files are not.
  unlinkSync(join(dataDir, 'running.json'))
  const readers = [startStranger(join(dataDir, 'postgrest.conf')), startStranger('-D', join(dataDir, 'database'))]

  const messages: string[] = []
  const stack = await start(dataDir, messages)
  expect(runningAmong(orphans)).toEqual([])
  for (const reader of readers) expect(reader.exitCode ?? reader.signalCode).toBeNull()
  expect(await query(stack.databaseUrl, 'select note from public.kept')).toEqual([{ note: 'still here' }])

  // A stop while a part is being started again leaves nothing of it.
  const servers = serversOf(dataDir)
  for (const { pid } of servers) process.kill(pid, 'SIGKILL')
  await expect.poll(() => messages.join()).toContain('Restarting it')
  const others = serversOf(dataDir)
  await stack.stop()
  expect(runningAmong([...servers, ...others])).toEqual([])
  for (const reader of readers) reader.kill()
  await expect.poll(() => processesOn(dataDir)).toEqual([])
})

test('when Postgres or PostgREST ends unasked, it is started again in its place, on the same port, until that does not help', async () => {
  const dataDir = copyOf(firstStart.dataDir)
  const messages: string[] = []
  const stack = await start(dataDir, messages)
  const ask = () => fetch(`${stack.dataApiUrl}/rpc/there_is_no_such_function`).then((answer) => answer.status)
  for (const [name, part] of [
    ['Postgres', 'postgres'],
    ['PostgREST', 'postgrest'],
  ] as const) {
    const { [part]: killed, ...others } = recordOf(dataDir)
    process.kill(killed?.pid ?? 0, 'SIGKILL')

    await expect.poll(() => messages.at(-1)).toBe(`${name} runs again.`)
    expect(messages.at(-2)).toBe(`${name} stopped unexpectedly (signal SIGKILL). Restarting it (attempt 1) …`)
    const { [part]: replacement, ...same } = recordOf(dataDir)
    expect(same).toEqual(others)
    expect(replacement).toMatchObject({ ...killed, pid: expect.any(Number) })
    expect(replacement?.pid).not.toBe(killed?.pid)

    expect(await query(stack.databaseUrl, 'select note from public.kept')).toEqual([{ note: 'still here' }])
    await expect.poll(() => ask().catch(() => 0)).toSatisfy((code) => code === 401 || code === 404)
    expect(await Promise.race([stack.failed, 'no failure'])).toBe('no failure')
  }

  const servers = serversOf(dataDir)
  const squatted = recordOf(dataDir).postgrest
  const squatter = createServer().on('error', () => {})
  const retake = setInterval(() => !squatter.listening && squatter.listen(squatted?.port, '127.0.0.1'), 1)
  process.kill(squatted?.pid ?? 0, 'SIGKILL')
  try {
    expect(await stack.failed).toMatch(/^PostgREST stopped unexpectedly \([\s\S]+ and could not be restarted\./)
  } finally {
    clearInterval(retake)
    squatter.close()
  }
  expect(messages.filter((message) => /^PostgREST [\s\S]* Restarting it/.test(message))).toHaveLength(5)
  await stack.stop()
  expect(runningAmong(servers)).toEqual([])
})

test('data from a newer Usher is left alone, and so is a database whose secrets are lost', async () => {
  const newer = "insert into supabase_migrations.schema_migrations (version) values ('29990101000000')"
  await query(shared.databaseUrl, newer)
  // What a start does, and before-baseline.test.ts has it refused there.
  await expect(applyMigrations(shared.databaseUrl)).rejects.toThrow(/from a newer Usher.*29990101000000/)

  const dataDir = temporaryFolder()
  mkdirSync(join(dataDir, 'database'))
  await expect(start(dataDir)).rejects.toThrow(/secrets\.json is missing/)
})

test('a folder that holds other things keeps its mode, an empty one becomes private', () => {
  const [used, empty] = [join(temporaryFolder(), 'used'), join(temporaryFolder(), 'empty')]
  for (const folder of [used, empty]) mkdirSync(folder, { mode: 0o755 })
  writeFileSync(join(used, 'letter.txt'), 'mine')
  for (const folder of [used, empty]) openDataDirectory(folder)
  expect(statSync(used).mode & 0o777).toBe(0o755)
  expect(statSync(empty).mode & 0o777).toBe(0o700)
})
