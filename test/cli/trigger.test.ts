// `usher trigger` and `usher listen` out of the packed tarball, on the machine's own Node, against an Usher that sends: each type happens, and what
// listen forwards is what the courier sends.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { type Running, start } from '../../src/cli/start.ts'
import { recipes } from '../../src/cli/trigger/recipes.ts'
import { subscribableTypes } from '../../src/operations/webhook-endpoints.ts'
import { createLog } from '../../src/process/log.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { cleanUp, repository, spawnUsher, temporaryFolder, usher } from './support.ts'

const types = Object.keys(recipes)
// npm runs the tests with a Node of its own.
const itsPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

let folder: string
let dataDir: string
let running: Running
let receiver: WebhookReceiver
let environment: NodeJS.ProcessEnv
let send: ReturnType<typeof rest>
let tarball: string
beforeAll(async () => {
  folder = temporaryFolder()
  dataDir = join(folder, 'data')
  await copyDataDirectory(dataDir)
  running = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent'), () => {})
  receiver = await startWebhookReceiver()
  await usher(['organisations', 'create', '--name', 'Trial', '--slug', 'trial', '--test'], dataDir)
  const made = await usher(['keys', 'create', '--organisation', 'trial', '--name', 'CI', '--scopes', 'all'], dataDir)
  const key = made.stdout.trim()
  environment = { USHER_URL: running.url, USHER_KEY: key, XDG_STATE_HOME: folder, PATH: itsPath }
  send = rest(key, running.url)
})
afterAll(async () => {
  await cleanUp()
  await receiver.close()
  await running.stop()
})

/** As somebody runs it who has nothing but the tarball: without a network, and with an empty cache. */
const packed = (...args: string[]) =>
  spawnUsher(['--yes', '--offline', '--cache', join(folder, 'cache'), '--package', tarball, 'usher', ...args], {
    dataDir: folder,
    env: environment,
    command: ['npx'],
    cwd: folder,
    detached: true,
  })

test('npm pack makes a tarball of plain JavaScript without dependencies, and leaves the checkout as it was', () => {
  const before = readFileSync(join(repository, 'package.json'), 'utf8')
  const npm = ['pack', '--pack-destination', folder]
  const [name = ''] = execFileSync('npm', npm, { cwd: repository, stdio: 'pipe' })
    .toString()
    .trim()
    .split('\n')
    .slice(-1)
  tarball = join(folder, name)
  expect(readFileSync(join(repository, 'package.json'), 'utf8')).toBe(before)
  const files = execFileSync('tar', ['-tf', tarball]).toString().trim().split('\n')
  expect(files.sort()).toEqual(['package/package.json', 'package/usher.js'])
  const manifest = JSON.parse(execFileSync('tar', ['-xOf', tarball, 'package/package.json']).toString())
  expect(Object.keys(manifest).filter((field) => /dependencies/i.test(field))).toEqual([])
  expect(JSON.parse(before).devDependencies.rolldown).toBe(
    createRequire(import.meta.url)('rolldown/package.json').version,
  )
})

test('what the packed listen forwards is what the courier sends, and a receiver of 20 lines verifies it', async () => {
  const types = subscribableTypes
  const { body } = await send('POST', '/webhook-endpoints', { url: `${receiver.url}/courier`, types })
  const listening = packed('listen', '--forward-to', `${receiver.url}/listen`)
  await expect.poll(listening.stderr).toContain('Ctrl-C')
  expect(await packed('trigger', 'refund.recorded').ended).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^POST \/api\/v1\/events {2}event \S+\n[\s\S]+\nrefund\.recorded is in the log of Trial\.\n$/,
    ),
  })
  const heard = (path: string) => receiver.received.filter((webhook) => webhook.path === path)
  const typesOf = (path: string) => new Set(heard(path).map(({ body }) => JSON.parse(body).type))
  await expect.poll(() => typesOf('/listen')).toContain('refund.recorded')
  await expect.poll(() => typesOf('/courier')).toEqual(typesOf('/listen'))

  const secrets = { '/courier': body.data.secret, '/listen': /whsec_\S+/.exec(listening.stderr())?.[0] ?? '' }
  for (const forwarded of heard('/listen')) {
    const sent = heard('/courier').find(({ headers }) => headers['webhook-id'] === forwarded.headers['webhook-id'])
    expect(forwarded.verified(secrets['/listen'])).toEqual(sent?.verified(secrets['/courier']))
    expect(forwarded.body).toBe(sent?.body)
    const varying = { 'webhook-timestamp': null, 'webhook-signature': null }
    expect({ ...forwarded.headers, ...varying }).toEqual({ ...sent?.headers, ...varying })
  }
  // As a terminal does it at Ctrl-C: to npx and all that it started.
  process.kill(-(listening.child.pid ?? 0), 'SIGINT')
  await listening.ended
})

test.each(types)('trigger %s', async (type) => {
  const count = async () => (await send('GET', `/notifications?limit=100&type=${type}`)).body.data.length
  const before = await count()
  expect(await usher(['trigger', type], folder, environment)).toMatchObject({ code: 0, stderr: '' })
  await expect.poll(count).toBeGreaterThan(before)
})

test('the example of a type arrives marked as a test, and the log has no such change', async () => {
  const [type, log] = ['event.cancelled', '/notifications?limit=100&type=event.cancelled'] as const
  const before = (await send('GET', log)).body.data
  const { body } = await send('POST', '/webhook-endpoints', {
    url: `${receiver.url}/example`,
    types: ['order.created'],
  })
  const { id, secret } = body.data
  const tested = await send('POST', `/webhook-endpoints/${id}/test`, { type })
  expect(tested.body.data).toMatchObject({ type: 'webhook_endpoint.test', status: 'pending' })
  const arrived = () => receiver.received.find(({ path }) => path === '/example')
  await expect.poll(arrived).toBeDefined()
  const { [type]: example } = JSON.parse(readFileSync(join(repository, 'docs/reference/notifications.json'), 'utf8'))
  expect(arrived()?.verified(secret)).toMatchObject({ type, livemode: false, data: example.data })
  expect((await send('GET', log)).body.data).toEqual(before)
  expect((await send('POST', `/webhook-endpoints/${id}/test`, { type: 'order.eaten' })).body.error.param).toBe('type')
})

test('an unknown type and a live organisation are refused, and nothing is written', async () => {
  const unknown = await usher(['trigger', 'order.eaten'], folder, environment)
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining(types.join(', ')) })
  const { key = '' } = running.demo ?? {}
  const audit = async () => (await rest(key, running.url)('GET', '/audit-entries?limit=1')).body.data[0].id
  const before = await audit()
  const refused = await usher(['trigger', 'order.completed'], folder, { ...environment, USHER_KEY: key })
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('is a live organisation') })
  expect(await audit()).toBe(before)
})
