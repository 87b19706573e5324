// Every page of the quickstart and the guides, run as a newcomer would: on an Usher of its own, from the line that `npm start`
// prints. The rules are in test/README.md, "Samples".

import { spawnSync } from 'node:child_process'
import crypto from 'node:crypto'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { findRunningStack } from '../../src/local/stack.ts'
import {
  cleanUp,
  environment,
  freePort,
  repository,
  type Started,
  startUsher,
  temporaryFolder,
} from '../cli/support.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { startHubspot } from '../support/hubspot.ts'
import { rest } from '../support/rest.ts'
import { expected, fencesOf, runSamples } from './samples.ts'

const pages = globSync(['docs/quickstart.md', 'docs/guides/**/*.md'], { cwd: repository }).sort()
const read = (page: string) => readFileSync(join(repository, page), 'utf8')
const isMissing = (command: string) => spawnSync(command, ['--version']).error !== undefined

let folder: string
let usher: Started
let databaseUrl: string
let printed: Record<string, string>

beforeAll(async () => {
  folder = temporaryFolder()
  const dataDir = await copyDataDirectory(join(folder, 'data'))
  usher = await startUsher({ dataDir })
  databaseUrl = (await findRunningStack(dataDir))?.databaseUrl ?? ''
  const [, line = ''] = await vi.waitUntil(() => /^ *export (.*)\n/m.exec(usher.stdout()), 30_000)
  printed = Object.fromEntries(line.split(' ').map((pair) => pair.split('=')))
})
afterAll(cleanUp)

/** An event as the demo's, without guests, in place of the demo's. */
async function freshEvent(): Promise<Record<string, string>> {
  const send = rest(printed.USHER_KEY, usher.url)
  const make = async (path: string, sent = {}): Promise<string> => {
    const { body } = await send('POST', path, sent)
    expect(body).toMatchObject({ data: { id: expect.any(String) } })
    return body.data.id
  }
  const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  const dates = { starts_at: day(30), ends_at: day(31), timezone: 'Europe/Berlin' }
  const EVENT = await make('/events', { name: 'Lantern Conference', ...dates, capacity: 250, currency: 'EUR' })
  const path = `/events/${EVENT}/ticket-types`
  const TICKET_TYPE = await make(path, { name: 'Community', quantity: 200 })
  const PAID_TICKET_TYPE = await make(path, { name: 'Professional', price: 14900, quantity: 50 })
  await make(path, { name: 'Front row', price: 29900, quantity: 3 })
  await make(`/events/${EVENT}/publish`)
  return { EVENT, TICKET_TYPE, PAID_TICKET_TYPE }
}

test.for(pages)('%s', async (page, { skip }) => {
  const hubspot = await startHubspot()
  onTestFinished(hubspot.close)
  const text = read(page)
    .replace(/\b4100\b/g, `${await freePort()}`)
    .replaceAll('https://api.hubapi.com', hubspot.url)
  const missing = fencesOf(text).some(({ language }) => language === 'bash') && ['bash', 'curl', 'jq'].find(isMissing)
  if (missing) skip(`${missing} is not installed`)
  const own = join(folder, page.replaceAll('/', '-'))
  mkdirSync(own)
  const env = environment(usher.dataDir, { ...printed, ...(await freshEvent()) })
  await runSamples(text, own, env, databaseUrl)
})

test('an answer is held against its sample, which says where it leaves something out', () => {
  const answer = { id: '01a1', total: 4900, attendees: [{ name: 'Mary' }, { name: 'Ada' }], note: null }
  for (const sample of [
    '{ "id": "01…", "total": 4900, "attendees": [{ "name": "Mary" }, …], "note": "…" }',
    '{ "total": 4900, … }',
  ])
    expect(answer).toEqual(expected(sample))
  for (const sample of ['{ "total": 4900 }', '{ "total": 4800, … }', '{ "attendees": [{ "name": "Mary" }], … }'])
    expect(answer).not.toEqual(expected(sample))
})

test('a page that does not hold is refused, by its line', async () => {
  const own = temporaryFolder()
  const fence = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`
  const page = fence('bash', 'NAME=Ada') + fence('ts', 'const one = 1') + fence('bash', 'jq -n "{name: \\"$NAME\\"}"')
  const run = (rest: string) => runSamples(page + rest, own, environment(''), '')
  await expect(run(fence('json', '{ "name": "Mary" }'))).rejects.toThrow('line 10: expected { name: ')
})

/** A genuine webhook, then a changed body, another secret, and one of ten minutes ago. */
function webhooksToVerify() {
  const [secret, former, other] = [7, 8, 9].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`)
  const body = JSON.stringify({ type: 'order.completed', data: { name: 'Zoë' } })
  const signedAt = (time: Date) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
    'webhook-signature': [former, secret].map((one = '') => new Webhook(one).sign('msg_1', time, body)).join(' '),
  })
  const genuine = { secret, body, headers: signedAt(new Date()) }
  return [
    genuine,
    { ...genuine, body: body.replace('Zoë', 'Eve') },
    { ...genuine, secret: other },
    { ...genuine, headers: signedAt(new Date(Date.now() - 600_000)) },
  ]
}
const verdicts = ['Zoë', 'not signed with this secret', 'not signed with this secret', 'too old']

const verifiers = pages.flatMap((page) =>
  fencesOf(read(page))
    .filter(({ text }) => /(def|function) verify\(/.test(text))
    .map(({ language, text }) => ({ page, language, text })),
)
test.for(verifiers)('$page verifies webhooks in $language', ({ language, text }, { skip }) => {
  const [command, main] = language === 'php' ? ['php', inPhp] : ['python3', inPython]
  if (isMissing(command)) skip(`${command} is not installed`)
  const file = join(temporaryFolder(), 'verify')
  writeFileSync(file, text + main)
  const { stdout, stderr } = spawnSync(command, [file], { input: JSON.stringify(webhooksToVerify()), encoding: 'utf8' })
  expect([stderr, stdout]).toEqual(['', [...verdicts, ''].join('\n')])
})

test('the Code node of n8n verifies webhooks', async () => {
  const code = fencesOf(read('docs/guides/n8n.md')).find(({ language }) => language === 'js')?.text ?? ''
  // What n8n's task runner gives to code, whose `this` is the global object: no crypto, no process.
  const run = ({ secret = '', body = '', headers = {} }) =>
    runInNewContext(`(async function () { ${code.replace('whsec_…', secret)} })()`, {
      $input: { first: () => ({ json: { headers, body: JSON.parse(body) }, binary: { data: {} } }) },
      helpers: {
        getBinaryDataBuffer: async (item: number, name: string) => item === 0 && name === 'data' && Buffer.from(body),
      },
      require: (name: string) => (name === 'crypto' ? crypto : undefined),
      Buffer,
    })
  const said: string[] = []
  for (const webhook of webhooksToVerify())
    said.push(
      await run(webhook).then(
        ([{ json }]: [{ json: { data: { name: string } } }]) => json.data.name,
        (error: Error) => error.message,
      ),
    )
  expect(said).toEqual(verdicts)
  expect(await run(webhooksToVerify()[0] ?? {})).toMatchObject([{ json: { id: 'msg_1', type: 'order.completed' } }])
})

const inPython = `
import sys
for case in json.load(sys.stdin):
    try:
        print(verify(case["secret"], case["body"].encode(), case["headers"])["data"]["name"])
    except ValueError as error:
        print(error)
`
const inPhp = `
foreach (json_decode(stream_get_contents(STDIN), true) as $case) {
    try {
        echo verify($case['secret'], $case['body'], $case['headers'])['data']['name'], "\\n";
    } catch (UnexpectedValueException $error) {
        echo $error->getMessage(), "\\n";
    }
}
`
