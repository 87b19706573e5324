// The programs of docs/integrators.md, run as they stand there.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs/integrators.md'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'usher-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

function programIn(language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (text === undefined) throw new Error(`No program in ${language}`)
  return text
}

function save(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** The API behind a network that breaks, and a proxy with an error page and a clock of its own: each once, then never. */
async function behindTrouble(): Promise<string> {
  const target = new URL(inject('apiUrl'))
  const troubles = [
    (req: IncomingMessage) => req.socket.destroy(),
    (_: IncomingMessage, res: ServerResponse) =>
      res.writeHead(502, { 'Retry-After': '0' }).end('<html>Bad Gateway</html>'),
  ]
  const server = createServer((req, res) => {
    const trouble = troubles.shift()
    if (trouble !== undefined) return void trouble(req, res)
    const { hostname, port } = target
    const upstream = request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, { ...answer.headers, date: 'Sat, 01 Jan 2028 12:00:00 GMT' })
      answer.pipe(res)
    })
    req.pipe(upstream)
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return url
}

test('the sync with a CRM brings contacts in, and changes back, for each of two events', async () => {
  const program = programIn('ts')
  expect(program.split('\n').length).toBeLessThanOrEqual(84)
  const { createSync } = await import(pathToFileURL(save('sync.ts', program)).href)
  const organisation = await createOrganisation()
  const key = await organisation.key('attendees:write', 'attendees:read')
  const send = rest(key)
  const event = await organisation.event({ quantity: 305 })
  const sync = (url: string, { id: eventId, ticketTypeId }: TestEvent) =>
    createSync({ url, key, eventId, ticketTypeId })
  const { push, pull } = sync(await behindTrouble(), event)

  const contacts = Array.from({ length: 1203 }, (_, n) => ({
    id: `contact-${n}`,
    name: `Contact ${n}`,
    // More than one import takes, of which most cost nothing.
    email: n >= 3 && n < 900 ? 'none' : `contact-${n}@example.com`,
  }))
  const refused = await push(contacts)
  expect(refused).toMatchObject([
    ...contacts
      .slice(3, 900)
      .map(({ id }) => ({ contact: { id }, error: { code: 'validation_failed', param: 'email' } })),
    { contact: { id: 'contact-1202' }, error: { code: 'sold_out' } },
  ])

  const saved = new Map<string, { id: string; name: string }>()
  const crm = {
    save: async (id: string, attendee: { id: string; name: string }) => void saved.set(id, attendee),
    forget: async (attendeeId: string) => {
      for (const [id, attendee] of saved) if (attendee.id === attendeeId) saved.delete(id)
    },
  }
  const since = await pull(null, crm)
  expect([saved.size, since]).toEqual([305, '2028-01-01T11:59:00.000Z'])

  const other = await organisation.event()
  const elsewhere = sync(inject('apiUrl'), other)
  expect(await elsewhere.push(contacts.slice(1000, 1002))).toEqual([])
  saved.clear()
  const started = await elsewhere.pull(null, crm)
  await elsewhere.push([{ ...contacts[1000], name: 'Renamed' }])
  // One person asks to be forgotten: the CRM is told before it sends what it has.
  await send('POST', `/attendees/${saved.get('contact-1001')?.id}/erase`, {})
  await elsewhere.pull(started, crm)
  expect([...saved].map(([id, { name }]) => [id, name])).toEqual([['contact-1000', 'Renamed']])
  expect(await elsewhere.push(contacts.filter(({ id }) => saved.has(id)))).toEqual([])
  const { body } = await send('GET', `/attendees?event_id=${other.id}&email=contact-1001@example.com`)
  expect(body.data, 'she is no guest again').toEqual([])
})

describe('a webhook is verified', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
  const body = JSON.stringify({ type: 'order.completed', data: { name: 'Zoë' } })
  const signedAt = (time: Date) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
    'webhook-signature': `${new Webhook(other).sign('msg_1', time, body)} ${new Webhook(secret).sign('msg_1', time, body)}`,
  })
  const now = new Date()
  const genuine = { secret, body, headers: signedAt(now) }
  const forged = [
    { ...genuine, body: body.replace('Zoë', 'Eve') },
    { ...genuine, secret: `whsec_${Buffer.alloc(32, 9).toString('base64')}` },
    { ...genuine, headers: signedAt(new Date(now.getTime() - 600_000)) },
  ]
  const main = {
    python: `
import sys
given = json.load(sys.stdin)
for case in given:
    try:
        print(verify(case["secret"], case["body"].encode(), case["headers"])["data"]["name"])
    except ValueError as error:
        print(error)
`,
    php: `
foreach (json_decode(stream_get_contents(STDIN), true) as $case) {
    try {
        echo verify($case['secret'], $case['body'], $case['headers'])['data']['name'], "\\n";
    } catch (UnexpectedValueException $error) {
        echo $error->getMessage(), "\\n";
    }
}
`,
  }

  for (const [language, command, file] of [
    ['python', 'python3', 'verify.py'],
    ['php', 'php', 'verify.php'],
  ] as const) {
    const isInstalled = spawnSync(command, ['--version']).status === 0
    test.skipIf(!isInstalled)(`in ${language}${isInstalled ? '' : `: ${command} is not installed`}`, () => {
      const path = save(file, programIn(language) + main[language])
      const { stdout, stderr } = spawnSync(command, [path], {
        input: JSON.stringify([genuine, ...forged]),
        encoding: 'utf8',
      })
      expect([stderr, stdout.trim().split('\n')]).toEqual([
        '',
        ['Zoë', 'not signed with this secret', 'not signed with this secret', 'too old'],
      ])
    })
  }
})
