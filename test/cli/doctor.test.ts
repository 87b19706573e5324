// `usher doctor` finds each deliberate fault of a project, and nothing else, and names what mends it. The project is the embedded stack
// behind a stand-in of Supabase's gateway; the other services are real servers.

import { execFile, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { checkDatabase } from '../../src/cli/doctor/check-database.ts'
import { checkMail, checkTrustProxy } from '../../src/cli/doctor/check-services.ts'
import { examine } from '../../src/cli/doctor/doctor.ts'
import { withDatabase } from '../../src/local/admin.ts'
import { findPostgrest } from '../../src/local/binaries.ts'
import { findDataDirectory } from '../../src/local/data-directory.ts'
import { seedDemo } from '../../src/local/demo.ts'
import { readSecrets } from '../../src/local/secrets.ts'
import { type EmbeddedStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { startMailServer } from '../courier/mail-server.ts'
import { refused, startPostmark } from '../courier/postmark-server.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { appOfThisFile } from '../support/own-app.ts'
import { startSupabaseGateway } from '../support/supabase-gateway.ts'
import { cleanUp, freePort, temporaryFolder, usher, usherProcess } from './support.ts'

const publishableKey = 'sb_publishable_for_the_tests'
const otherKey = JSON.stringify(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }))

let folder: string
let stack: EmbeddedStack
let gateway: Awaited<ReturnType<typeof startSupabaseGateway>>
let sound: NodeJS.ProcessEnv
beforeAll(async () => {
  folder = temporaryFolder()
  stack = await startEmbeddedStack({ dataDir: await copyDataDirectory(join(folder, 'project')), progress: () => {} })
  gateway = await startSupabaseGateway(stack.dataApiUrl, publishableKey)
  await withDatabase(stack.databaseUrl, seedDemo)
})
afterAll(async () => {
  await gateway.close()
  await stack.stop()
  await cleanUp()
})
const api = appOfThisFile()
beforeAll(async () => {
  sound = {
    SUPABASE_URL: gateway.url,
    SUPABASE_PUBLISHABLE_KEY: publishableKey,
    SUPABASE_JWT_SECRET: stack.jwtSecret,
    DATABASE_URL: stack.databaseUrl,
    PUBLIC_URL: (await api).url,
  }
})

/** What is not as it should be, but for the mail service, which only some tests have. */
async function faults(changes: NodeJS.ProcessEnv) {
  const findings = await examine({ ...sound, ...changes })
  const found = findings.filter(({ status, check }) => status !== 'ok' && check !== 'mail')
  // Where the baseline is the only migration, a history without it is that of a project with tables of its own.
  return found[0]?.check === 'migration_history' ? found.filter(({ check }) => check !== 'names') : found
}

/** The role that PostgREST connects as; it has the setting of the pre-request hook. */
function asAuthenticator(databaseUrl: string): string {
  const directory = findDataDirectory(join(folder, 'project'))
  const url = new URL(databaseUrl)
  url.username = 'authenticator'
  url.password = (directory && readSecrets(directory)?.authenticatorPassword) ?? ''
  return url.href
}

/** A PostgREST of the test's own, with another idea of what it serves. */
async function serve(environment: NodeJS.ProcessEnv): Promise<{ SUPABASE_URL: string }> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const child = spawn(findPostgrest(), [], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      PGRST_SERVER_HOST: '127.0.0.1',
      PGRST_SERVER_PORT: String(port),
      PGRST_ADMIN_SERVER_PORT: String(adminPort),
      PGRST_DB_URI: asAuthenticator(stack.databaseUrl),
      PGRST_DB_SCHEMAS: 'api',
      PGRST_DB_ANON_ROLE: 'anon',
      PGRST_JWT_SECRET: stack.jwtSecret,
      ...environment,
    },
  })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  const ready = () =>
    fetch(`http://127.0.0.1:${adminPort}/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(ready).toBe(true)
  const before = await startSupabaseGateway(`http://127.0.0.1:${port}`, publishableKey)
  onTestFinished(before.close)
  return { SUPABASE_URL: before.url }
}

async function run(...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: stack.databaseUrl })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** Changes the project for one test. */
async function change(broken: string, mended: string): Promise<void> {
  const reload = "notify pgrst, 'reload schema'"
  await run(broken, reload)
  onTestFinished(() => run(mended, reload))
}

async function emptyDatabase(): Promise<string> {
  await run('create database empty')
  onTestFinished(() => run('drop database empty with (force)'))
  const url = new URL(stack.databaseUrl)
  url.pathname = '/empty'
  const client = new Client({ connectionString: url.href })
  await client.connect()
  await client.query('create schema api')
  await client.end()
  return asAuthenticator(url.href)
}

/** The API under a host that it does not know. */
async function underAnotherHost(): Promise<string> {
  const { port } = new URL((await api).url)
  const forwarder = createServer((socket) => {
    const upstream = connect(Number(port), '127.0.0.1')
    socket.on('error', () => upstream.destroy()).pipe(upstream)
    upstream.on('error', () => socket.destroy()).pipe(socket)
  }).listen(0, '127.0.0.2')
  await once(forwarder, 'listening')
  onTestFinished(() => void forwarder.close())
  return `http://127.0.0.2:${(forwarder.address() as AddressInfo).port}`
}

const wrongPassword = () => stack.databaseUrl.replace(/:[^:@]+@/, ':x@')

function tenMinutesFast(): NodeJS.ProcessEnv {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 })
  onTestFinished(() => void vi.useRealTimers())
  return {}
}

const nothing = async () => `127.0.0.1:${await freePort()}`

test('of a sound project it finds no fault', async () => {
  expect(await faults({})).toEqual([])
})

test('--deep recounts what is derived, and names what is not as counted', async () => {
  const deep = async () => (await examine(sound, true)).filter(({ check }) => check === 'invariants')
  expect(await deep()).toMatchObject([{ status: 'ok' }])
  const count = (by: number) =>
    run(
      'alter table public.ticket_types disable trigger user',
      `update public.ticket_types set quantity_sold = quantity_sold + ${by} where name = (select min(name) from public.ticket_types)`,
      'alter table public.ticket_types enable trigger user',
    )
  await count(1)
  onTestFinished(() => count(-1))
  const found = await deep()
  expect(found).toMatchObject([{ status: 'failed' }])
  expect(found[0]?.message).toMatch(
    /^Violated: quantity_sold is how many hold a ticket\. In ticket_types: [0-9a-f-]{36}: \d+, expected \d+\.$/,
  )
})

test('a signing key as the Supabase CLI prints it works once its public half was imported', async () => {
  const cli = join(dirname(createRequire(import.meta.url).resolve('supabase/package.json')), 'dist/supabase.js')
  const env = { ...process.env, SUPABASE_TELEMETRY_DISABLED: '1', SUPABASE_NO_UPDATE_NOTIFIER: '1' }
  const args = [cli, 'gen', 'signing-key', '--algorithm', 'ES256']
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, cwd: folder })
  const key = stdout.split('\n').find((line) => line.startsWith('{')) ?? ''
  const { d: _, ...publicKey } = JSON.parse(key)
  const project = await serve({ PGRST_JWT_SECRET: JSON.stringify({ keys: [{ ...publicKey, key_ops: ['verify'] }] }) })
  expect(await faults({ ...project, SUPABASE_SIGNING_KEY: key })).toEqual([])
})

describe('it finds, and says how to mend,', () => {
  test.each<[string, () => NodeJS.ProcessEnv | Promise<NodeJS.ProcessEnv>, string, RegExp]>([
    ['a variable that is missing', () => ({ SUPABASE_PUBLISHABLE_KEY: '' }), 'configuration', /\.env\.example/],
    ['a trusted proxy that may be anybody', () => ({ TRUST_PROXY: 'true' }), 'trust_proxy', /number of proxies/],
    ['metrics on the port of the API', () => ({ PORT: '3000', METRICS_PORT: '3000' }), 'metrics', /METRICS_PORT to/],
    ['a project that is away', async () => ({ SUPABASE_URL: `http://${await nothing()}` }), 'data_api', /paused/],
    ['an address of something else', () => ({ SUPABASE_URL: `${gateway.url}/x` }), 'data_api', /https:\/\/PROJECT/],
    [
      'another publishable key',
      () => ({ SUPABASE_PUBLISHABLE_KEY: 'x' }),
      'project_key',
      /SUPABASE_PUBLISHABLE_KEY to/,
    ],
    ['another JWT secret', () => ({ SUPABASE_JWT_SECRET: 'x'.repeat(40) }), 'token', /SUPABASE_JWT_SECRET to its/],
    ['a signing key not imported', () => ({ SUPABASE_SIGNING_KEY: otherKey }), 'token', /_SIGNING_KEY to .+ imported/],
    ['a clock that is ten minutes fast', tenMinutesFast, 'clock', /Correct the clock/],
    [
      'a schema that is not exposed',
      () => serve({ PGRST_DB_SCHEMAS: 'public' }),
      'schemas',
      /npx supabase config push/,
    ],
    [
      'a project without the migrations',
      async () => serve({ PGRST_DB_URI: await emptyDatabase() }),
      'migrations',
      /npx supabase db push --remote/,
    ],
    [
      'a pre-request hook that is not set',
      () => serve({ PGRST_DB_CONFIG: 'false' }),
      'pre_request',
      /set pgrst\.db_pre/,
    ],
    [
      'a wrong password of the database',
      () => ({ DATABASE_URL: wrongPassword() }),
      'database',
      /string of the role postg/,
    ],
    ['Redis that is away', async () => ({ REDIS_URL: `redis://${await nothing()}` }), 'redis', /REDIS_URL/],
    ['a public URL that leads nowhere', async () => ({ PUBLIC_URL: `http://${await nothing()}` }), 'public_url', /DNS/],
    ['a public URL of something else', () => ({ PUBLIC_URL: gateway.url }), 'public_url', /Set PUBLIC_URL/],
    [
      'a host that MCP refuses',
      async () => ({ PUBLIC_URL: await underAnotherHost() }),
      'mcp',
      /ALLOWED_HOSTS=127\.0\.0\.2/,
    ],
  ])('%s', async (_, arrange, check, fix) => {
    await expectFault(await arrange(), check, fix)
  })

  test.each<[string, broken: string, mended: string, check: string, RegExp]>([
    [
      'a function that is of another release',
      'alter function api.get_order rename to get_orders',
      'alter function api.get_orders rename to get_order',
      'migrations',
      /npx supabase db push --remote/,
    ],
    [
      'a role that the Data API may not become',
      'revoke scope_orders_read from authenticator',
      'grant scope_orders_read to authenticator with set true',
      'roles',
      /grant scope_orders_read to authenticator/,
    ],
    [
      'a role that may not execute the function of an operation',
      'revoke execute on function api.get_event(uuid) from scope_events_read',
      'grant execute on function api.get_event(uuid) to scope_events_read',
      'grants',
      /grant execute on function api\.get_event\(uuid\) to scope_events_read;/,
    ],
    [
      'Realtime that came after the migrations',
      'create schema realtime; create table realtime.messages ()',
      'drop schema realtime cascade',
      'realtime',
      /select private\.set_up_realtime\(\);/,
    ],
    [
      'a migration that is not applied',
      `create table public.kept_history as table supabase_migrations.schema_migrations;
       delete from supabase_migrations.schema_migrations where version = (select max(version) from public.kept_history)`,
      `insert into supabase_migrations.schema_migrations select * from public.kept_history order by version desc limit 1;
       drop table public.kept_history`,
      'migration_history',
      /npx supabase db push --remote/,
    ],
    [
      'no key that works',
      "update api_keys set expires_at = now() where kind <> 'page'",
      'update api_keys set expires_at = null',
      'keys',
      /npx usher keys create/,
    ],
    [
      'an organisation to which no guest can write',
      'update organisations set reply_to_email = null',
      "update organisations set reply_to_email = 'hello@demo.example'",
      'contacts',
      /--organisation demo --reply-to-email/,
    ],
  ])('%s', async (_, broken, mended, check, fix) => {
    await change(broken, mended)
    await expectFault({}, check, fix)
  })
})

/** Once PostgREST has reloaded: each look is a whole examination. */
const expectFault = (changes: NodeJS.ProcessEnv, check: string, fix: RegExp) =>
  expect.poll(() => faults(changes), { interval: 500 }).toMatchObject([{ check, fix: expect.stringMatching(fix) }])
test('it warns of e-mails that a mail service refuses after the login, with the error but without the address in it', async () => {
  await run(
    `insert into emails (organisation_id, attendee_id, attempts, last_error, last_attempt_at, next_attempt_at)
     select organisation_id, id, 4, 'SMTP: 553 <tickets@demo.example> is not yours', now(), now() + interval '1 day' from attendees limit 1`,
  )
  onTestFinished(() => run("update emails set status = 'cancelled'"))
  expect(await faults({})).toEqual([
    {
      check: 'emails',
      status: 'warning',
      message: '1 e-mail has failed and is being retried. Last error: SMTP: 553 <…@demo.example> is not yours',
      fix: expect.stringContaining('"No mail leaves"'),
    },
  ])
})

test('objects of an application that a first `db push` would fail on are named, one by one', async () => {
  const projectUrl = await emptyDatabase()
  const url = Object.assign(new URL(stack.databaseUrl), { pathname: new URL(projectUrl).pathname }).href
  await withDatabase(url, (client) =>
    client.query(`
      create table public.events (id bigint primary key);
      create type public.order_status as enum ('new');
      create function public.find_person(text) returns int language sql return 1;
      create table public.menus (id bigint primary key)`),
  )
  const findings = await checkDatabase(url, undefined)
  expect(findings).toContainEqual({
    check: 'names',
    status: 'failed',
    message:
      'The project already has objects that Usher creates: function find_person(text), public.events, schema api, type public.order_status.',
    fix: expect.stringContaining('docs/operate/supabase.md'),
  })
})

test('a database of another project is told from one that is away', async () => {
  const pooler = 'postgresql://postgres.abcdefghijklmnopqrst:x@127.0.0.1:9/postgres'
  const [finding] = await checkDatabase(pooler, 'https://bbcdefghijklmnopqrst.supabase.co/rest/v1')
  expect(finding).toMatchObject({ check: 'database', fix: 'Take both from the same project.' })
})

test('a proxy that would get the calls on this machine is named, of the embedded stack', async () => {
  const proxied = { HTTP_PROXY: 'http://proxy.example:3128', NODE_USE_ENV_PROXY: '1' }
  const embedded = { USHER_DATA_DIR: join(folder, 'none') }
  const found = async (environment: NodeJS.ProcessEnv) =>
    (await examine(environment)).filter(({ check }) => check === 'proxy')
  expect(await found({ ...embedded, ...proxied })).toMatchObject([
    { check: 'proxy', status: 'failed', fix: 'Set NO_PROXY=127.0.0.1,localhost as well.' },
  ])
  expect(await found({ ...embedded, ...proxied, NO_PROXY: 'localhost,127.0.0.1' })).toEqual([])
  expect(await found({ ...sound, ...proxied })).toEqual([])
})

test('a public URL with TLS tells of a proxy, which must be named', () => {
  const publicUrl = 'https://usher.example.com'
  expect(checkTrustProxy({ publicUrl, trustProxy: false })).toMatchObject([{ check: 'trust_proxy', status: 'warning' }])
  expect(checkTrustProxy({ publicUrl, trustProxy: 1 })).toEqual([])
  expect(checkTrustProxy({ publicUrl: 'http://usher.internal', trustProxy: false })).toEqual([])
})

describe('mail', () => {
  const sending = { MAIL_FROM: 'tickets@example.com' }
  const mailOf = (changes: NodeJS.ProcessEnv) => checkMail(readConfig({ ...sound, ...sending, ...changes }))

  test('an SMTP login that is refused is told from a server that is away, and the password is shown nowhere', async () => {
    const server = await startMailServer({
      authOptional: false,
      onAuth: ({ password }, _session, callback) =>
        password === 'right' ? callback(null, { user: 'usher' }) : callback(new Error(`no ${password}`)),
    })
    const url = (password: string) => server.url.replace('//', `//usher:${password}@`)
    expect(await mailOf({ SMTP_URL: url('right') })).toMatchObject({ status: 'ok' })
    expect(server.received).toEqual([])
    const wrong = await mailOf({ SMTP_URL: url('hunter2') })
    expect(wrong).toMatchObject({ status: 'failed', message: expect.stringContaining('refuses the login') })
    expect(JSON.stringify(wrong)).not.toContain('hunter2')
    const away = await mailOf({ SMTP_URL: `smtp://${await nothing()}` })
    expect(away).toMatchObject({ status: 'failed', fix: expect.stringContaining('host and port in SMTP_URL') })
  })

  test('a Postmark token that is refused', async () => {
    const { options } = await startPostmark(refused(401, 10))
    const database = { kind: 'embedded', dataDir: 'none' } as const
    expect(await checkMail({ mail: { postmarkToken: 'x' }, database }, options)).toMatchObject({
      status: 'failed',
      fix: expect.stringContaining('POSTMARK_SERVER_TOKEN'),
    })
  })

  test('no mail service is a warning', async () => {
    expect(await mailOf({})).toMatchObject({ status: 'warning', fix: expect.stringContaining('SMTP_URL') })
  })
})

describe('the command', () => {
  test('ends with 0 while nothing failed, and prints a line for each check', async () => {
    const { code, stdout, stderr } = await usherProcess(['doctor'], join(folder, 'none'), sound)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^ok {7}token {14}The project accepts the tokens/m)
    expect(stdout).toMatch(/^warning {2}mail .+\n +→ Set POSTMARK_SERVER_TOKEN/m)
  })

  test('ends with 1 if a check failed; --json prints an array', async () => {
    const { code, stdout } = await usher(['doctor', '--json'], join(folder, 'none'))
    expect([code, JSON.parse(stdout).find(({ check }: { check: string }) => check === 'data_api')]).toEqual([
      1,
      {
        check: 'data_api',
        status: 'failed',
        message: `No Usher runs on ${join(folder, 'none')}.`,
        fix: 'Start it with `npm start`, or set SUPABASE_URL to a Supabase project.',
      },
    ])
  })
})
