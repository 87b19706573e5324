// The programs of docs/integrators.md, run as they stand there.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'

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

test('the sync with a CRM brings contacts in, and changes back', async () => {
  const program = programIn('ts')
  expect(program.split('\n').length).toBeLessThanOrEqual(61)
  const { createSync } = await import(pathToFileURL(save('sync.ts', program)).href)
  const organisation = await createOrganisation()
  const { id: eventId, ticketTypeId } = await organisation.event({ quantity: 1201 })
  const key = await organisation.key('attendees:write', 'attendees:read')
  const { push, pull } = createSync({ url: inject('apiUrl'), key, eventId, ticketTypeId })

  const contacts = Array.from({ length: 1202 }, (_, n) => ({
    id: `contact-${n}`,
    name: `Contact ${n}`,
    email: `contact-${n}@example.com`,
  }))
  const refused = await push(contacts)
  expect(refused).toMatchObject([{ external_id: 'contact-1201', error: { code: 'sold_out' } }])

  const saved = new Map<string, { name: string }>()
  const remember = async (attendee: { external_id: string; name: string }) =>
    void saved.set(attendee.external_id, attendee)
  const since = await pull(null, remember)
  expect(saved.size).toBe(1201)
  await push([{ ...contacts[7], name: 'Renamed' }])
  await pull(since, remember)
  expect(saved.get('contact-7')?.name).toBe('Renamed')
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
