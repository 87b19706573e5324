// `usher import` against the API: what is imported, what is refused and why, and what becomes of it when something breaks in the middle.

import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { cleanUp, freePort, spawnUsher, temporaryFolder, usher, waitFor } from './support.ts'

let folder: string
beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(cleanUp)

let files = 0
function file(content: string | Uint8Array, name = `list-${++files}.csv`): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

type List = { organisation: TestOrganisation; event: TestEvent; key: string }
async function arrange(): Promise<List> {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  return { organisation, event, key: await organisation.key('events:read', 'attendees:write', 'attendees:read') }
}

const environmentOf = ({ key }: Pick<List, 'key'>, url = inject('apiUrl')) => ({ USHER_URL: url, USHER_KEY: key })
const run = (list: List, path: string, ...more: string[]) =>
  usher(['import', path, '--event', list.event.id, ...more], folder, environmentOf(list))

/** How a command ended, and what it said on standard error. */
const expectSaid = ({ code, stderr }: { code: number | null; stderr: string }, expected: number, said: RegExp) =>
  expect([code, stderr]).toEqual([expected, expect.stringMatching(said)])

async function attendeesOf({ event }: List) {
  const { rows } = await studio.query(
    `select a.name, a.email, a.company, a.external_id, a.metadata, t.name as ticket_type
     from public.attendees a join public.ticket_types t on t.id = a.ticket_type_id
     where a.event_id = $1 order by a.id`,
    [event.id],
  )
  return rows
}

const textOf = (path: string) => readFileSync(path, 'utf8')

test('a German list is refused in Latin-1, and imported as it stands in UTF-8, and a second time nobody is', async () => {
  const list = await arrange()
  await list.event.ticketType({ name: 'Förderer' })
  const text =
    'Vorname;Nachname;E-Mail;Firma;Ticketart;Telefon\r\nZoë;Müller;zoe@example.com;"Müller; Söhne";förderer;\'+1\r\n=1+1;;sum@example.com;;General;2\r\n;;;;;\r\n'
  expectSaid(await run(list, file(Buffer.from(text, 'latin1')), '--yes'), 2, /is not UTF-8: see line 2\..+"CSV UTF-8"/)
  const path = file(`\ufeff${text}`)
  const first = await run(list, path, '--yes', '--metadata', '--map', 'Telefon=metadata.phone')
  expect([first.code, first.stdout]).toEqual([0, '2 guests in Test event: 2 new, 0 changed, 0 already there.\n'])
  expect(first.stderr).toMatch(/utf-8, separated by semicolon\n/)
  expect(first.stderr).toMatch(/Zoë Müller +zoe@example\.com +Müller; Söhne +Förderer +\{"phone":"\+1",/)
  expect(await attendeesOf(list)).toEqual([
    {
      name: 'Zoë Müller',
      email: 'zoe@example.com',
      company: 'Müller; Söhne',
      external_id: null,
      metadata: { phone: '+1', first_name: 'Zoë', last_name: 'Müller' },
      ticket_type: 'Förderer',
    },
    {
      name: '=1+1',
      email: 'sum@example.com',
      company: null,
      external_id: null,
      metadata: { phone: '2', first_name: '=1+1' },
      ticket_type: 'General',
    },
  ])

  const second = await run(list, path, '--yes', '--json')
  const counts = { created: 0, updated: 0, unchanged: 2, refused: 0, left_out: 0 }
  expect([second.code, JSON.parse(second.stdout)]).toEqual([
    0,
    { event_id: list.event.id, ...counts, refused_file: null, complete: true },
  ])
  expect(await attendeesOf(list)).toHaveLength(2)
})

test('a guest with an external_id is brought up to date, whatever else of them is new; tickets with a price are given away aloud', async () => {
  const list = await arrange()
  await list.event.ticketType({ name: 'Paid', price: 4900 })
  const into = (content: string) =>
    run(
      list,
      file(`id,name,email,company\n${content}`),
      '--yes',
      '--external-id-prefix',
      'crm/',
      '--ticket-type',
      'Paid',
    )
  const { stderr } = await into('7,Mary Jackson,mary@example.com,NASA\n')
  expect(stderr).toMatch(/Tickets are complimentary [\s\S]+\nWarning: .+\n$/)
  const changed = await into('7,Mary W. Jackson,mw@example.com,\n')
  expect(changed.stdout).toBe('1 guest in Test event: 0 new, 1 changed, 0 already there.\n')
  expect(await attendeesOf(list)).toMatchObject([
    { name: 'Mary W. Jackson', email: 'mw@example.com', company: 'NASA', external_id: 'crm/7' },
  ])
})

test('who does not come is left out, and counted by reason; short rows, and names in two columns, are read', async () => {
  const list = await arrange()
  const path = file(
    'name,First name,Last name,email,metadata.diet,Attendee Status,RSVP\n' +
      'Zed,,,zed@example.com,vegan\n' +
      ',Ada,Lovelace,ada@example.com\n' +
      'Gone,,,gone@example.com,,Cancelled,\n' +
      'Ill,,,ill@example.com,,Attending,Abgesagt\n' +
      'Away,,,away@example.com,,CANCELLED,yes\n' +
      'Erased,,,erased@erased.invalid,,Attending,\n' +
      ',\u202eZo\u00eb,M\u00fcller,zoe@example.com,,Attending,\n',
  )
  const told = /skipped: 1 Cancelled, 1 Abgesagt, 1 CANCELLED, 1 erased\.\n/
  const dry = await run(list, path, '--dry-run')
  expect([dry.code, dry.stdout, dry.stderr]).toEqual([
    0,
    expect.stringContaining('3 new, 0 already there, 0 refused'),
    expect.stringMatching(told),
  ])
  const { code, stdout, stderr } = await run(list, path, '--yes', '--json')
  expect([code, JSON.parse(stdout), stderr]).toMatchObject([
    0,
    { created: 3, refused: 0, left_out: 4, complete: true },
    expect.stringMatching(told),
  ])
  // Whose letters tell whether the encoding is right comes first.
  expect(stderr).toMatch(/\n {2}name .+\n {3}Zo\u00eb M\u00fcller .+\n {2}Zed .+\n {2}Ada Lovelace /)
  expect(stderr).not.toContain('\u202e')
  expect(await attendeesOf(list)).toMatchObject([
    { name: 'Zed', metadata: { diet: 'vegan' } },
    { name: 'Ada Lovelace', metadata: { first_name: 'Ada', last_name: 'Lovelace' } },
    { email: 'zoe@example.com' },
  ])
})

test('a dry run foresees each refusal, and the file of the refused is mended and imported', async () => {
  const list = await arrange()
  const { event } = list
  await event.ticketType({ name: 'VIP', quantity: 1 })
  await event.ticketType({ name: 'Press' })
  await run(
    list,
    file('name,email\nGone,gone@example.com\nKnown,known@example.com\nOther,other@example.com\n'),
    '--yes',
    '--ticket-type',
    'General',
  )
  await studio.query("update public.attendees set status = 'cancelled' where event_id = $1 and name = 'Gone'", [
    event.id,
  ])
  const path = file(
    '\ufeffname,email,ticket type,note\n' +
      'Gone,gone@example.com,General,a\n' +
      'Known,known@example.com,VIP,b\n' +
      'Other,OTHER@example.com,,c\n' +
      'First,first@example.com,vip,d\n' +
      'Second,second@example.com,VIP,e\n' +
      'Typing,typing@example,General,f\n' +
      'Wide,wide@example.com,General,g,h\n' +
      'Narrow,narrow@example.com\n' +
      'Odd,odd@example.com,Pres,"i\nj"\n' +
      'Typeless,typeless@example.com,,k\n' +
      'First,FIRST@example.com,General,l\n' +
      'Good,good@example.com,Press,m\n',
    'guests.csv',
  )
  const refused = [2, 3, 6, 7, 8, 9, 10, 12, 13]

  const before = await attendeesOf(list)
  const dry = await run(list, path, '--dry-run')
  expect(dry.code).toBe(1)
  expect(dry.stdout.match(/(?<=^line )\d+/gm)?.map(Number)).toEqual(refused)
  expect(dry.stdout).toMatch(/: 2 new, 1 already there, 9 refused\. Nothing was changed\.\n$/)
  expect(await attendeesOf(list)).toEqual(before)

  const real = await run(list, path, '--yes')
  expect([real.code, real.stdout]).toEqual([
    1,
    `3 guests in Test event: 2 new, 1 changed, 0 already there.\n9 refused, see ${join(folder, 'guests.refused.csv')}: mend them there, and import that file.\n`,
  ])
  const text = textOf(join(folder, 'guests.refused.csv'))
  expect(text.startsWith('\ufefferror,name,email,ticket type,note\r\n')).toBe(true)
  expect(text.split('\r\n').slice(1, -1)).toEqual([
    expect.stringMatching(/cancelled.+\(cancelled\)"?,Gone,gone@example\.com,General,a$/),
    expect.stringMatching(/\(read_only_field\)"?,Known,known@example\.com,VIP,b$/),
    expect.stringMatching(/\(sold_out\)"?,Second,second@example\.com,VIP,e$/),
    'email must be an e-mail address,Typing,typing@example,General,f',
    '"The row has 5 cells, but the header has 4.",Wide,wide@example.com,General,g,h',
    expect.stringMatching(/has no ticket type.+,Narrow,narrow@example\.com$/),
    '"The event has no ticket type Pres. Ticket types: General, VIP, Press.",Odd,odd@example.com,Pres,"i\nj"',
    expect.stringMatching(/has no ticket type.+,Typeless,typeless@example\.com,,k$/),
    expect.stringMatching(
      /^"?An earlier guest of the list has this e-mail address and name\..+,First,FIRST@example\.com,General,l$/,
    ),
  ])

  const mended = text.replace('typing@example,', 'typing@example.com,').replace('Pres,', 'Press,')
  const again = await run(list, file(mended, 'guests.refused.csv'), '--yes')
  expect(again.stdout).toContain(`7 refused, see ${join(folder, 'guests.refused-2.csv')}`)
  expect(textOf(join(folder, 'guests.refused.csv'))).toBe(mended)
  expect(textOf(join(folder, 'guests.refused-2.csv'))).toMatch(/^\ufefferror,name,email,ticket type,note\r\n.+,Gone,/)
  expect((await attendeesOf(list)).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['Good', 'Typing', 'Odd', 'First']),
  )
})

test('a file for the refused that is there already is not touched', async () => {
  const list = await arrange()
  const precious = file('precious')
  expectSaid(
    await run(list, file('name,email\na,b\n'), '--yes', '--refused', precious),
    2,
    /exists already\. Choose another file/,
  )
  expect(textOf(precious)).toBe('precious')
})

/** `forward` has the request carried out; what it returns sends the answer, perhaps with other data. */
type Handler = (res: ServerResponse, forward: () => Promise<(data?: (sent: Import) => Import) => void>) => unknown
type Import = { results: unknown[]; remaining: number }

/** The API behind a network on which something happens to each import in turn; then no more. */
async function behind(handlers: Handler[]): Promise<string> {
  const { hostname, port } = new URL(inject('apiUrl'))
  const server = createServer(async (req, res) => {
    const forward = async () => {
      const upstream = request({ hostname, port, method: req.method, path: req.url, headers: req.headers })
      req.pipe(upstream)
      const [answer] = (await once(upstream, 'response')) as [IncomingMessage]
      const body = Buffer.concat(await Array.fromAsync(answer)).toString()
      return (data?: (sent: Import) => Import) => {
        if (data === undefined) return void res.writeHead(answer.statusCode ?? 502, answer.headers).end(body)
        res.writeHead(200).end(JSON.stringify({ data: data(JSON.parse(body).data) }))
      }
    }
    const handler = req.method === 'POST' ? handlers.shift() : undefined
    if (handler) await handler(res, forward)
    else (await forward())()
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return url
}

test('limits, error pages and lost answers are waited for, and each guest counts once', async () => {
  const list = await arrange()
  const refusal = { error: { code: 'rate_limited', message: 'Too many requests.', retryable: true } }
  const url = await behind([
    (res) => res.writeHead(429, { 'Retry-After': '0' }).end(JSON.stringify(refusal)),
    (res) => res.writeHead(502, { 'Retry-After': '0' }).end('<html>Bad Gateway</html>'),
    // Carried out, and never heard of.
    async (res, forward) => {
      await forward()
      res.destroy()
    },
  ])
  const args = ['import', file('name,email\nMary,mary@example.com\nAda,ada@example.com\n'), '--event', list.event.id]
  const { code, stdout, stderr } = await usher([...args, '--yes'], folder, environmentOf(list, url))
  expect([code, stdout]).toEqual([0, '2 guests in Test event: 2 new, 0 changed, 0 already there.\n'])
  expect(stderr).toMatch(/An answer with status 502\.|No answer/)
  expect(await attendeesOf(list)).toHaveLength(2)
})

// Rows of 75 kB, of which a call takes 27: three calls. The largest that metadata may be, so that a call is as large as it may be, too.
const wide = () => {
  const keys = Array.from({ length: 50 }, (_, i) => `metadata.key ${i}`)
  const rows = Array.from({ length: 60 }, (_, i) => [
    `Guest ${i}`,
    `guest-${i}@example.com`,
    ...keys.map(() => '€'.repeat(500)),
  ])
  return [['name', 'email', ...keys], ...rows].map((cells) => cells.join(',')).join('\n')
}

test('who comes again in another call is refused as in the same one, whatever the form of the name', async () => {
  const list = await arrange()
  const rows = wide().split('\n')
  rows[1] = rows[1]?.replace('Guest 0,', 'Zo\u00eb O\u2019Leary,') ?? ''
  const again = rows[1].replace('Zo\u00eb O\u2019Leary,', "Zoe\u0308  O'LEARY,")
  const { stdout } = await run(list, file([...rows, again].join('\n'), 'again.csv'), '--yes')
  expect(stdout).toMatch(/^60 guests in Test event: 60 new, 0 changed, 0 already there\.\n1 refused/)
  expect(textOf(join(folder, 'again.refused.csv'))).toContain('Line 2 has the same e-mail address and name')
  expect(await attendeesOf(list)).toHaveLength(60)
})

test('what there was no time for is sent again, in a call of its own or in smaller ones', async () => {
  const list = await arrange()
  const refusal = { error: { code: 'out_of_time', message: 'That took too long.', retryable: false } }
  const url = await behind([
    (res) => res.writeHead(503).end(JSON.stringify(refusal)),
    // Of two, for three were too many.
    async (_, forward) =>
      (await forward())(({ results, ...data }) => ({ ...data, results: results.slice(0, 1), remaining: 1 })),
  ])
  const path = file(`name,email\n${[1, 2, 3].map((n) => `Guest ${n},guest-${n}@example.com\n`).join('')}`)
  const args = ['import', path, '--event', list.event.id, '--yes']
  const { code, stdout } = await usher(args, folder, environmentOf(list, url))
  expect([code, stdout]).toEqual([0, '3 guests in Test event: 2 new, 0 changed, 1 already there.\n'])
  expect(await attendeesOf(list)).toHaveLength(3)
})

test('an import that is stopped, killed and run again imports everybody once', async () => {
  const list = await arrange()
  const path = file(wide())
  const args = ['import', path, '--event', list.event.id, '--yes']
  const start = (url: string) => spawnUsher(args, { dataDir: folder, env: environmentOf(list, url) })

  // Ctrl-C during the first call.
  let running: ReturnType<typeof start>
  const throughSlow = await behind([
    async (_, forward) => {
      running.child.kill('SIGINT')
      await waitFor(() => running.stderr().includes('Stopping after'))
      ;(await forward())()
    },
  ])
  running = start(throughSlow)
  const stopped = await running.ended
  expect(stopped.code).toBe(1)
  const imported = Number(/^(\d+) guests in Test event: \1 new/.exec(stopped.stdout)?.[1])
  expect(stopped.stderr).toContain(`${60 - imported} of 60 rows are left. Run the same command again`)
  expect(await attendeesOf(list)).toHaveLength(imported)

  // Killed when the second call is done, of which it does not hear.
  const throughDead = await behind([
    async (_, forward) => (await forward())(),
    async (_, forward) => {
      await forward()
      running.child.kill('SIGKILL')
    },
  ])
  running = start(throughDead)
  expect(await running.ended).toMatchObject({ code: null, signal: 'SIGKILL' })
  const after = (await attendeesOf(list)).length
  expect([after > imported, after < 60]).toEqual([true, true])

  const last = await run(list, path, '--yes')
  expect([last.code, last.stdout]).toEqual([
    0,
    `60 guests in Test event: ${60 - after} new, 0 changed, ${after} already there.\n`,
  ])
  const names = (await attendeesOf(list)).map(({ name }) => name)
  expect(new Set(names).size).toBe(60)
  expect(names).toHaveLength(60)
})

test('in a terminal it asks first, and imports nobody without a yes', async () => {
  const list = await arrange()
  const args = ['import', file('name,email\nMary,mary@example.com\n'), '--event', list.event.id]
  const answering = (answer: string) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    stdin.end(answer)
    return usher(args, folder, environmentOf(list), stdin)
  }
  for (const answer of ['\n', 'no\n', '']) {
    expectSaid(await answering(answer), 1, /Import 1 guest into Test event\? \[y\/N\] [\s\S]*Nobody was imported\.\n$/)
  }
  expect(await attendeesOf(list)).toEqual([])
  expect(await answering('y\n')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 new') })
})

test('the event is found by slug or name, and e-mails are sent on request only', async () => {
  const list = await arrange()
  const { slug } = await row<{ slug: string }>(
    "update public.events set name = 'Data Days' where id = $1 returning slug",
    [list.event.id],
  )
  const namesake = await list.organisation.event()
  await studio.query('update public.events set name = $2 where id = $1', [namesake.id, slug])
  const send = (event: string, content: string, ...more: string[]) =>
    usher(['import', file(content), '--event', event, '--yes', ...more], folder, environmentOf(list))
  expect((await send(slug, 'name,email\nMary,mary@example.com\n')).code).toBe(0)
  expect((await send('data days', 'name,email\nAda,ada@example.com\n', '--send-email')).code).toBe(0)
  const { rows } = await studio.query(
    'select name, ticket_email_status from public.attendees where event_id = $1 order by id',
    [list.event.id],
  )
  expect(rows).toEqual([
    { name: 'Mary', ticket_email_status: 'not_requested' },
    { name: 'Ada', ticket_email_status: 'queued' },
  ])
})

test('whoever has the database needs no key: one is made for the import, and revoked', async () => {
  const { event, organisation } = await arrange()
  const path = file('name,email\nMary,mary@example.com\n')
  const env = { DATABASE_URL: inject('databaseUrl'), PUBLIC_URL: inject('apiUrl') }
  const outcome = await usher(['import', path, '--event', event.id, '--yes'], folder, env)
  expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('1 new') })
  const keys = await studio.query(
    "select revoked_at is not null as revoked from public.api_keys where organisation_id = $1 and name = 'usher import'",
    [organisation.id],
  )
  expect(keys.rows).toEqual([{ revoked: true }])
})

describe('what cannot work ends with a sentence before anything is sent', () => {
  let list: List
  beforeAll(async () => {
    list = await arrange()
  })
  const good = 'name,email\nMary,mary@example.com\n'

  test.each<[string, string | Uint8Array, string[], NodeJS.ProcessEnv, number, RegExp]>([
    ['a workbook', 'PK\u0003\u0004', [], {}, 2, /is a workbook/],
    [
      'a ticket type that is not there',
      good,
      ['--ticket-type', 'Genral'],
      {},
      2,
      /no ticket type Genral\. Ticket types: General\./,
    ],
    ['a key with a typing error', good, [], { USHER_KEY: 'usher_live_x' }, 2, /USHER_KEY contains no complete API key/],
    ['no key', good, [], { USHER_KEY: '' }, 2, /A key is needed.+USHER_KEY.+--key-file/],
    ['no address', good, [], { USHER_URL: '' }, 2, /No Usher runs on .+--url https.+USHER_URL/],
    ['an address of something else', good, ['--url', 'ftp://example.com'], {}, 2, /is not the address of an Usher/],
  ])('%s', async (_, content, options, env, code, complaint) => {
    const args = ['import', file(content), '--event', list.event.id, '--yes', ...options]
    const outcome = await usher(args, folder, { ...environmentOf(list), ...env })
    expect([outcome.code, outcome.stdout]).toEqual([code, ''])
    expect(outcome.stderr).toMatch(complaint)
  })

  test('an event that is not there names those that are, a draft says what is missing', async () => {
    const draft = await list.organisation.event({ status: 'draft' })
    await studio.query("update public.events set slug = 'data-days', name = 'Data Days' where id = $1", [draft.id])
    const path = file(good)
    const into = (event: string) => usher(['import', path, '--event', event, '--yes'], folder, environmentOf(list))
    expect(await into('datadays-2027')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Events: data-days, /),
    })
    expect(await into('data-days')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is a draft.+Publish data-days/),
    })
  })

  test('several ticket types, and none chosen', async () => {
    const several = await arrange()
    await several.event.ticketType({ name: 'VIP' })
    expectSaid(
      await run(several, file(good), '--yes'),
      2,
      /It has: General, VIP\. Choose one for all with --ticket-type/,
    )
  })

  test('a key that lacks a scope, and one that is revoked', async () => {
    const key = await list.organisation.key('events:read')
    expectSaid(await run({ ...list, key }, file(good), '--yes'), 2, /lacks the scope attendees:write/)
    const { body } = await rest(key)('GET', '/me')
    await studio.query('update public.api_keys set revoked_at = now() where id = $1', [body.data.id])
    expectSaid(await run({ ...list, key }, file(good), '--yes'), 2, /revoked/)
  })

  test('nobody who could be asked, a key from standard input among them', async () => {
    expectSaid(await run(list, file(good)), 2, /there is no prompt\. Add --yes, or --dry-run/)
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    stdin.end(`${list.key}\n`)
    const args = ['import', file(good), '--event', list.event.id, '--key-file', '-', '--dry-run']
    const piped = await usher(args, folder, { USHER_URL: inject('apiUrl') }, stdin)
    expect(piped).toMatchObject({ code: 0, stdout: expect.stringContaining('1 new, 0 already there') })
  })

  test('an address at which nothing is, or something else', async () => {
    const path = file(good)
    const at = (url: string) => usher(['import', path, '--event', 'x', '--yes'], folder, environmentOf(list, url))
    expectSaid(await at(`http://127.0.0.1:${await freePort()}`), 1, /Usher cannot be reached at .+ECONNREFUSED/)
    const server = await listenOnLoopback(createServer((_, res) => res.writeHead(404).end('<html>')))
    onTestFinished(server.close)
    expectSaid(await at(server.url), 2, /is not Usher/)
  })

  test('and nobody was imported by any of these', async () => {
    expect(await attendeesOf(list)).toEqual([])
  })
})
