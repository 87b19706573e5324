// The commands against one Usher that runs throughout, whose demo was made by its start.

import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { start } from '../../src/cli/start.ts'
import { createKey as createKeyText, isWellFormedKey, prefixOf } from '../../src/gateway/api-key.ts'
import { createOrganisation, issueKey, revokeKey, withDatabase } from '../../src/local/admin.ts'
import { findRunningStack } from '../../src/local/stack.ts'
import { scopes } from '../../src/operations/operation.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { cleanUp, type Started, startUsher, temporaryFolder, usher, usherProcess, waitFor } from './support.ts'

let running: Started
beforeAll(async () => {
  running = await startUsher({ dataDir: await copyDataDirectory(join(temporaryFolder(), 'data')) })
  // The ready line is not the last one.
  await waitFor(() => running.stdout().includes('/check-ins'))
})
afterAll(cleanUp)

const run = (...args: string[]) => usher(args, running.dataDir)
const runProcess = (...args: string[]) => usherProcess(args, running.dataDir)
const as = (key: string) => rest(key, running.url)

// What a test only needs to be there is made without a command.
async function onDatabase<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  const url = (await findRunningStack(running.dataDir))?.databaseUrl
  if (url === undefined) throw new Error('Usher does not run')
  return withDatabase(url, work)
}

async function organisation(): Promise<string> {
  const slug = `test-${randomUUID()}`
  await onDatabase((client) => createOrganisation(client, { name: 'Test', slug }))
  return slug
}

const createKey = (slug: string, more: { expiresAt?: Date } = {}): Promise<string> =>
  onDatabase((client) => issueKey(client, { organisation: slug, name: 'Test key', scopes, ...more }))

const revoke = (key: string) => onDatabase((client) => revokeKey(client, prefixOf(key)))

const statusOf = async (key: string) => (await as(key)('GET', '/me')).status

describe('the first start', () => {
  test('says on standard output where it is ready, and tells its progress on standard error', async () => {
    expect(running.stdout()).toMatch(
      /^Usher is ready at (http:\/\/127\.0\.0\.1:\d+) {3}REST \1\/api\/v1 {3}MCP \1\/api\/mcp {3}Docs \1\/docs\n/,
    )
    expect(running.stderr()).toMatch(/^Starting Postgres/)
    const health = await fetch(`${running.url}/health`)
    expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }])
  })

  test('prints curl lines that work as pasted: a registration answers 201, a check-in 200', () => {
    const lines = running.stdout().match(/^ {2}curl (?:.*\\\n)*.*$/gm) ?? []
    const statuses = lines.map((line) => {
      const { stdout } = spawnSync('bash', ['-c', `${line} --silent --show-error --write-out '\\n%{http_code}'`], {
        encoding: 'utf8',
      })
      return stdout.split('\n').at(-1)
    })
    expect(statuses).toEqual(['201', '200'])
  })

  test('fills the event of the printed commands into its documentation', async () => {
    const [, eventId = 'none'] = /events\/([\w-]+)\/registrations/.exec(running.stdout()) ?? []
    const document = await fetch(`${running.url}/openapi.json`)
    expect(await document.text()).toContain(eventId)
  })

  test('prints one key, of the organisation demo and with every scope, and on a line of its own one for a person', async () => {
    const keys = running.stdout().match(/usher_live_\w+/g) ?? []
    expect(new Set(keys).size).toBe(2)
    // The first and the last that is printed are the one that calls.
    expect(keys.at(-1)).toBe(keys[0])
    const [, own = ''] = /^Your own key, .*: (usher_live_\w+)$/m.exec(running.stdout()) ?? []
    expect((await as(own)('GET', '/me')).body.error.code).toBe('key_for_people')
    const { body } = await as(keys[0] ?? '')('GET', '/me')
    expect(body.data).toMatchObject({ organisation: { slug: 'demo' }, scopes: [...scopes] })
  })

  test('logs each request on standard error, without the key', async () => {
    const key = running.stdout().match(/usher_live_\w+/)?.[0] ?? ''
    await as(key)('GET', '/me', undefined, { 'X-Request-Id': 'look-for-me' })
    await expect.poll(() => running.stderr()).toContain('"request_id":"look-for-me"')
    expect(running.stderr()).not.toContain(key)
    expect(running.stdout()).not.toContain('look-for-me')
  })
})

describe.concurrent('organisations create', () => {
  test('says what was created, --json prints it, --plan chooses its plan', async () => {
    const slug = `test-${randomUUID()}`
    const { code, stdout, stderr } = await run('organisations', 'create', '--name', 'Acme', '--slug', slug)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(new RegExp(`^Created organisation ${slug} \\([0-9a-f-]{36}\\) on plan standard\\.\n$`))

    const other = `${slug}-2`
    const asJson = await run(
      ...['organisations', 'create', '--name', 'Acme Events', '--slug', other, '--plan', 'enterprise', '--json'],
    )
    expect(JSON.parse(asJson.stdout)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Acme Events',
      slug: other,
      plan: 'enterprise',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
  })
})

test('a test organisation gets test keys, also when one is rotated, and can be emptied', async () => {
  const slug = `test-${randomUUID()}`
  const { stdout } = await run('organisations', 'create', '--name', 'Acme', '--slug', slug, '--test')
  expect(stdout).toMatch(new RegExp(`^Created test organisation ${slug} `))
  const key = await createKey(slug)
  expect(key).toMatch(/^usher_test_/)
  expect((await run('keys', 'rotate', key)).stdout).toMatch(/^usher_test_/)
  const empty = (of: string) => run('organisations', 'empty', '--organisation', of)
  expect(await empty(slug)).toMatchObject({ code: 0, stdout: `Emptied organisation ${slug}. Rows by table: none.\n` })
  expect(await empty(await organisation())).toMatchObject({
    code: 1,
    stderr: 'A live organisation is not emptied. Look in organisations for the one with is_test.\n',
  })
})

describe.concurrent('what is refused ends with 1 and a sentence:', () => {
  test.each([
    ['organisations create --name Again --slug demo', /^An organisation already has this slug\. Choose another/],
    [
      'organisations create --name Acme --slug Acme',
      /^--slug takes lower-case letters, digits and hyphens, at most 63/,
    ],
    ['organisations create --name= --slug blank', /^--name, or --person, takes one line of 1 to 200 characters\.$/],
    [
      'organisations create --name Acme --slug acme --plan gold',
      /^There is no such plan\. The table public\.plans lists/,
    ],
    ['organisations update --organisation demo --plan gold', /^There is no such plan\. The table public\.plans lists/],
    [
      'organisations update --organisation demo --accent-colour red',
      /^In accent_colour: .+ #26306b, or leave it empty/,
    ],
    ['organisations update --organisation nobody --name Acme', /^There is no organisation nobody\.$/],
    ['keys create --organisation nobody --name x --scopes all', /^There is no organisation with this slug\. Create it/],
    ['keys list --organisation nobody', /^There is no organisation nobody\.$/],
    ['keys revoke usher_live_00000000', /^There is no API key usher_live_00000000\. List them with: usher keys list/],
    ['keys rotate usher_live_00000000', /^There is no API key /],
    ['keys revoke sk_live_of_another_service', /^There is no such API key(?!.*sk_live)/],
  ])('%s', async (args, complaint) => {
    const { code, stdout, stderr } = await run(...args.split(' '))
    expect([code, stdout, stderr.trimEnd()]).toEqual([1, '', expect.stringMatching(complaint)])
  })
})

test('import finds the Usher that runs here, and needs no key', async () => {
  const list = join(temporaryFolder(), 'guests.csv')
  writeFileSync(list, 'name,email,ticket type\nKatherine Johnson,kj@example.com,Professional\n')
  const { code, stdout } = await run('import', list, '--event', 'Lantern Conference', '--yes')
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^1 guest in Lantern Conference: 1 new,/)])
})

describe.concurrent('organisations update', () => {
  test('changes what is given, and clears what is empty', async () => {
    const slug = await organisation()
    const update = (...options: string[]) => run('organisations', 'update', '--organisation', slug, ...options)
    const first = await update(
      '--accent-colour',
      '#8A1C3B',
      '--payment-instructions',
      'IBAN DE00\nwithin 14 days',
      '--seller-details',
      'Acme',
    )
    expect([first.code, first.stdout]).toEqual([0, `Changed organisation ${slug}.\n`])
    await update('--confirm-refunds-above', '10000')
    const { stdout } = await update('--payment-instructions', '', '--reply-to-email', 'desk@acme.example', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      slug,
      name: 'Test',
      accent_colour: '#8a1c3b',
      payment_instructions: null,
      confirm_refunds_above: '10000',
      reply_to_email: 'desk@acme.example',
      logo_url: null,
      seller_details: 'Acme',
      tax_note: null,
    })
  })

  test('moves it to another plan, whose limit its keys have', async () => {
    const slug = await organisation()
    const limit = async () => {
      const answer = await fetch(`${running.url}/api/v1/me`, {
        headers: { Authorization: `Bearer ${await createKey(slug)}` },
      })
      return answer.headers.get('RateLimit-Policy') ?? answer.headers.get('RateLimit')
    }
    expect(await limit()).toMatch(/q=6000;/)
    const { stdout } = await run('organisations', 'update', '--organisation', slug, '--plan', 'starter', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ slug, plan: 'starter', name: 'Test' })
    expect(await limit()).toMatch(/q=600;/)
  })
})

describe.concurrent('organisations list', () => {
  test('shows slug, plan, the keys that work and the name of each', async () => {
    const slug = await organisation()
    await createKey(slug)
    await revoke(await createKey(slug))
    const { code, stdout } = await run('organisations', 'list')
    expect([code, stdout.split('\n')]).toEqual([0, expect.arrayContaining([`${slug}\tstandard\t1\tTest`])])
    const asJson = await run('organisations', 'list', '--json')
    expect(JSON.parse(asJson.stdout)).toContainEqual({
      id: expect.any(String),
      slug,
      name: 'Test',
      plan: 'standard',
      keys: 1,
      created_at: expect.any(String),
    })
  })
})

describe.concurrent('organisations delete', () => {
  test('deletes all of it once its slug is repeated, and says how much that was', async () => {
    const slug = await organisation()
    const key = await createKey(slug)
    const remove = (confirm: string) => run('organisations', 'delete', '--organisation', slug, '--confirm', confirm)
    expect(await remove('another')).toEqual({
      code: 2,
      stdout: '',
      stderr: `Nothing was deleted: repeat the slug with --confirm ${slug}.\n`,
    })
    expect(await remove(slug)).toEqual({
      code: 1,
      stdout: '',
      stderr: `The organisation is in use: the API key ${prefixOf(key)} is not revoked. Revoke its keys first.\n`,
    })
    await revoke(key)
    const { code, stdout } = await remove(slug)
    expect(code).toBe(0)
    expect(stdout).toMatch(
      new RegExp(`^Deleted organisation ${slug}\\. Rows by table: .*api_keys 1, .*organisations 1`),
    )
    expect((await run('organisations', 'list')).stdout).not.toContain(slug)
    expect((await remove(slug)).stderr).toBe(`There is no organisation ${slug}.\n`)
  })
})

describe.concurrent('door-link', () => {
  test('prints a link whose key checks people in until a day after the event, and does nothing else', async () => {
    const slug = await organisation()
    const { id } = (
      await onDatabase((client) =>
        client.query<{ id: string }>(
          `insert into public.events (organisation_id, name, slug, timezone, starts_at, ends_at)
           select id, 'Fair', 'fair', 'America/Jamaica', now(), now() + interval '1 hour' from public.organisations where slug = $1
           returning id`,
          [slug],
        ),
      )
    ).rows[0] as { id: string }
    await onDatabase((client) =>
      client.query(
        `insert into public.events (organisation_id, name) select id, 'Kölner Lichter' from public.organisations where slug = $1`,
        [slug],
      ),
    )
    const { code, stdout, stderr } = await runProcess('door-link', '--organisation', slug, '--event', 'fair')
    expect(code).toBe(0)
    const link = new URL(stdout.trim())
    // On whatever port the server runs, and by the clock of the event.
    expect([link.origin, link.pathname, link.search]).toEqual([running.url, '/door', ''])
    expect(stderr).toMatch(/Valid until \w{3}, \d+ \w+ \d{4}, \d\d:\d\d GMT-5\. /)
    const { event, key } = Object.fromEntries(new URLSearchParams(link.hash.slice(1)))
    expect(event).toBe(id)
    expect(stderr).toContain('▀')
    expect(stderr).not.toContain(key)
    const { body } = await as(key ?? '')('GET', '/me')
    expect(body.data.scopes).toEqual(['checkin:write'])
    const hours = (Date.parse(body.data.expires_at) - Date.now()) / 3_600_000
    expect([hours > 24, hours < 26]).toEqual([true, true])
    expect((await as(key ?? '')('GET', `/events/${id}/door-list`)).status).toBe(200)
    expect((await as(key ?? '')('GET', '/attendees')).status).toBe(403)

    const selling = await run('door-link', '--organisation', slug, '--event', 'fair', '--walk-ins', '--json')
    const ofSelling = new URLSearchParams(new URL(JSON.parse(selling.stdout).link).hash.slice(1)).get('key') ?? ''
    expect((await as(ofSelling)('GET', '/me')).body.data.scopes.toSorted()).toEqual([
      'attendees:write',
      'checkin:write',
      'events:read',
      'orders:write',
    ])

    const points = await onDatabase((client) =>
      client.query<{ id: string }>(
        "insert into public.check_in_points (event_id, name) values ($1, 'North gate'), ($1, 'Lounge') returning id",
        [id],
      ),
    )
    const atPoint = await run('door-link', '--organisation', slug, '--event', 'fair', '--point', 'n\u00f6rth\u00a0Gate')
    expect(new URLSearchParams(new URL(atPoint.stdout.trim()).hash.slice(1)).get('point')).toBe(points.rows[0]?.id)
    const nowhere = await run('door-link', '--organisation', slug, '--event', 'fair', '--point', 'South')
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ''])
    expect(nowhere.stderr).toBe(
      'The event has no active check-in point South. Give one of these:\n  North gate\n  Lounge\n',
    )

    const unknown = await run('door-link', '--organisation', slug, '--event', 'unfair')
    expect([unknown.code, unknown.stdout]).toEqual([1, ''])
    const today = new Date().toLocaleDateString('sv-SE', { timeZone: 'America/Jamaica' })
    expect(unknown.stderr).toBe(
      `The organisation ${slug} has no event unfair. Give one of these:\n  fair (${today})\n  koelner-lichter (no date)\n`,
    )
    const like = await run('door-link', '--organisation', slug, '--event', 'Kölner')
    expect(like.stderr).toMatch(/these:\n {2}koelner-lichter \(no date\)\n {2}fair /)
  })
})

describe.concurrent('keys create', () => {
  test('prints the key and nothing else, and the key works at once', async () => {
    const slug = await organisation()
    const { code, stdout, stderr } = await runProcess(
      ...['keys', 'create', '--organisation', slug, '--name', 'CRM', '--scopes', 'all'],
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^usher_live_[0-9A-Za-z]{38}\n$/)
    expect(isWellFormedKey(stdout.trim())).toBe(true)
    const { body } = await as(stdout.trim())('GET', '/me')
    expect(body.data).toMatchObject({ name: 'CRM', scopes: [...scopes], organisation: { slug }, expires_at: null })
  })

  test('--confirmations says whether a person confirms what it asks for over MCP, and a new key does so', async () => {
    const slug = await organisation()
    const create = (...options: string[]) =>
      run('keys', 'create', '--organisation', slug, '--name', 'CRM', '--scopes', 'all', ...options)
    await create()
    const { stdout } = await create('--confirmations', 'none')
    await run('keys', 'rotate', stdout.trim().slice(0, 19))
    const listed = await run('keys', 'list', '--organisation', slug, '--json')
    expect(JSON.parse(listed.stdout).map((key: { confirmations: string }) => key.confirmations)).toEqual([
      'asked',
      'none',
      'none',
    ])
    const { code, stderr } = await create('--confirmations', 'never')
    expect([code, stderr]).toEqual([2, expect.stringContaining('Allowed choices are asked, none.')])
  })

  test('--scopes grants what is listed, --expires ends it in time, --json says the prefix as well', async () => {
    const slug = await organisation()
    const { stdout } = await run(
      ...['keys', 'create', '--organisation', slug, '--name', 'Door', '--scopes', 'events:read, checkin:write'],
      ...['--expires', '90d', '--json'],
    )
    const printed = JSON.parse(stdout)
    expect(printed).toEqual({ key: expect.any(String), prefix: prefixOf(printed.key) })
    const { body } = await as(printed.key)('GET', '/me')
    expect(body.data.scopes).toEqual(['events:read', 'checkin:write'])
    const days = (Date.parse(body.data.expires_at) - Date.now()) / 86_400_000
    expect(days).toBeGreaterThan(89.9)
    expect(days).toBeLessThanOrEqual(90)
  })

  test('--person makes a key for somebody who signs in, which rotation and the list know', async () => {
    const slug = await organisation()
    const create = (...options: string[]) =>
      run('keys', 'create', '--organisation', slug, '--scopes', 'events:read', ...options)
    const { code, stdout, stderr } = await create('--person', 'Jane Doe')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^usher_live_[0-9A-Za-z]{38}\n$/)
    expect((await as(stdout.trim())('GET', '/me')).body.error.code).toBe('key_for_people')
    await run('keys', 'rotate', stdout.trim())
    await create('--name', 'CRM')
    const listed = (await run('keys', 'list', '--organisation', slug)).stdout.trimEnd().split('\n')
    expect(listed.map((line) => line.split('\t').slice(3))).toEqual([
      ['Jane Doe', 'person'],
      ['Jane Doe', 'person'],
      ['CRM', 'key'],
    ])
    for (const [wrong, named] of [
      [[], '--name for a program, or --person'],
      [['--person', 'Jane Doe', '--name', 'CRM'], '--name'],
      [['--person', 'Jane Doe', '--confirmations', 'none'], '--confirmations'],
    ] as const)
      expect(await create(...wrong)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(named) })
  })
})

describe.concurrent('keys list', () => {
  test('shows prefix, state, scopes, name and kind of each key, and never a whole key', async () => {
    const slug = await organisation()
    const [active, ending, revoked] = [
      await createKey(slug),
      await createKey(slug, { expiresAt: new Date(Date.now() + 86_400_000) }),
      await createKey(slug),
    ]
    await revoke(revoked)

    const { code, stdout } = await run('keys', 'list', '--organisation', slug)
    expect(code).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => line.split('\t'))).toEqual([
      [prefixOf(active), 'active', scopes.join(','), 'Test key', 'key'],
      [prefixOf(ending), expect.stringMatching(/^until \d{4}-/), scopes.join(','), 'Test key', 'key'],
      [prefixOf(revoked), expect.stringMatching(/^revoked \d{4}-.+Z$/), scopes.join(','), 'Test key', 'key'],
    ])

    const asJson = await run('keys', 'list', '--organisation', slug, '--json')
    expect(JSON.parse(asJson.stdout)).toMatchObject([
      { prefix: prefixOf(active), name: 'Test key', organisation: slug, scopes: [...scopes], revoked_at: null },
      { prefix: prefixOf(ending), expires_at: expect.any(String) },
      { prefix: prefixOf(revoked), revoked_at: expect.any(String) },
    ])
    for (const key of [active, ending, revoked]) expect(stdout + asJson.stdout).not.toContain(key)
  })

  test('of an organisation without keys prints nothing, or an empty array', async () => {
    const slug = await organisation()
    expect(await run('keys', 'list', '--organisation', slug)).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(await run('keys', 'list', '--organisation', slug, '--json')).toMatchObject({ code: 0, stdout: '[]\n' })
  })
})

describe.concurrent('keys revoke', () => {
  test('refuses the key from its next request on, and may be repeated', async () => {
    const slug = await organisation()
    const key = await createKey(slug)
    expect(await statusOf(key)).toBe(200)
    const { code, stdout } = await run('keys', 'revoke', prefixOf(key))
    expect([code, stdout]).toEqual([0, `Revoked ${prefixOf(key)} (Test key) of ${slug}.\n`])
    const { status, body } = await as(key)('GET', '/me')
    expect([status, body.error.code]).toEqual([401, 'api_key_revoked'])

    const again = await run('keys', 'revoke', prefixOf(key), '--json')
    expect(again.code).toBe(0)
    expect(JSON.parse(again.stdout)).toMatchObject({ prefix: prefixOf(key), revoked_at: expect.any(String) })
  })

  test('takes a whole key, shows no more than its beginning, and says when it was revoked before', async () => {
    const slug = await organisation()
    const key = await createKey(slug)
    const first = await run('keys', 'revoke', `${key} `)
    expect([first.code, first.stdout]).toEqual([0, `Revoked ${prefixOf(key)} (Test key) of ${slug}.\n`])
    expect(await statusOf(key)).toBe(401)
    const again = await run('keys', 'revoke', key)
    expect(again.stdout).toMatch(
      new RegExp(`^${prefixOf(key)} \\(Test key\\) of ${slug} is already revoked, since \\d{4}-\\S+Z\\.\n$`),
    )
    const unknown = createKeyText()
    for (const command of ['revoke', 'rotate']) {
      const { code, stdout, stderr } = await run('keys', command, unknown)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^There is no API key usher_live_/)
      expect(stderr).not.toContain(unknown)
    }
  })
})

describe.concurrent('keys rotate', () => {
  test('--overlap 0s prints a new key, and the old one is refused at once, by its prefix or whole', async () => {
    const slug = await organisation()
    for (const named of [prefixOf, (key: string) => key]) {
      const old = await createKey(slug)
      expect(await statusOf(old)).toBe(200)
      const { code, stdout, stderr } = await run('keys', 'rotate', named(old), '--overlap', '0s')
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(/^usher_live_[0-9A-Za-z]{38}\n$/)
      expect([await statusOf(old), await statusOf(stdout.trim())]).toEqual([401, 200])
    }
  })

  test('keeps the old key for a day when nothing is said, and refuses a revoked one', async () => {
    const old = await createKey(await organisation())
    const { stdout } = await run('keys', 'rotate', prefixOf(old), '--json')
    const printed = JSON.parse(stdout)
    expect(printed.prefix).toBe(prefixOf(printed.key))
    expect([await statusOf(old), await statusOf(printed.key)]).toEqual([200, 200])
    const hours = (Date.parse((await as(old)('GET', '/me')).body.data.expires_at) - Date.now()) / 3_600_000
    expect([hours > 23.9, hours <= 24]).toEqual([true, true])
    await revoke(old)
    const revoked = await run('keys', 'rotate', prefixOf(old))
    expect(revoked).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^The API key was revoked\. /) })
  })
})

test('db-url connects as postgres, which is no superuser and sees what organisers see', async () => {
  const { code, stdout, stderr } = await run('db-url')
  expect([code, stderr]).toEqual([0, ''])
  const client = new pg.Client({ connectionString: stdout.trim() })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select current_user::text as role, r.rolsuper as superuser, (select count(*)::int from public.organisations where slug = 'demo') as demo
       from pg_roles r where r.rolname = current_user`,
    )
    expect(rows).toEqual([{ role: 'postgres', superuser: false, demo: 1 }])
  } finally {
    await client.end()
  }
})

test('DATABASE_URL names another database, whatever runs here', async () => {
  const { stdout } = await run('db-url')
  const elsewhere = join(temporaryFolder(), 'nothing here')
  const { code, stdout: listed } = await usher(['keys', 'list', '--organisation', 'demo'], elsewhere, {
    DATABASE_URL: stdout.trim(),
  })
  expect(code).toBe(0)
  expect(listed).toContain('First steps')
})

const secondStart = (environment: NodeJS.ProcessEnv) => {
  const config = readConfig({ USHER_DATA_DIR: running.dataDir, ...environment })
  return start(config, pino({ level: 'silent' }), () => {}).catch((error) => error.message)
}

test('a second start says which process has the folder, also where it wants the same port; the first goes on', async () => {
  expect(await secondStart({ PORT: '0' })).toBe(
    `Usher is already running on ${running.dataDir} (process ${running.child.pid}). Stop it first, or set USHER_DATA_DIR to another folder.`,
  )
  expect(await secondStart({ PORT: new URL(running.url).port })).toMatch(/^Usher is already running on .+ PORT/)
  expect((await fetch(`${running.url}/health`)).status).toBe(200)
})
