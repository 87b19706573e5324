// `usher listen` as a process, between the API and a receiver: what it forwards, what it keeps, and what becomes of it when either breaks.

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import * as http from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest'
import { emptyTestOrganisation } from '../../src/local/admin.ts'
import { studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { hang, reset, startWebhookReceiver, status, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { cleanUp, end, freePort, spawnUsher, temporaryFolder, usher } from './support.ts'

let organisation: TestOrganisation
let event: TestEvent
let environment: NodeJS.ProcessEnv
let folder: string
let receiver: WebhookReceiver
beforeEach(async () => {
  organisation = await createOrganisation({ isTest: true })
  event = await organisation.event()
  folder = temporaryFolder()
  environment = { USHER_URL: inject('apiUrl'), USHER_KEY: await organisation.key(), XDG_STATE_HOME: folder }
  receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
})
afterAll(cleanUp)

/** Once it reads the log. */
async function listen(args: string[] = [], env: NodeJS.ProcessEnv = {}) {
  const to = ['--forward-to', `${receiver.url}/hooks`]
  const started = spawnUsher(['listen', ...to, ...args], { dataDir: folder, env: { ...environment, ...env } })
  await expect.poll(started.stderr).toContain('Ctrl-C')
  return started
}

/** It may come later into the log than into the table: older transactions, also of other tests, have to end first. */
const untilLogged = ({ orderId }: { orderId: string }) =>
  expect
    .poll(async () => JSON.stringify((await rest(environment.USHER_KEY)('GET', '/notifications?limit=100')).body))
    .toContain(orderId)

const secretIn = (said: string) => /whsec_\S+/.exec(said)?.[0] ?? expect.fail(said)
/** What was received, in order: the type and whom or what it is about. */
const heard = () => receiver.received.map(({ body }) => JSON.parse(body)).map(({ type, data }) => [type, data.id])
const ofGuest = ({ orderId }: { orderId: string }) => [
  ['order.created', orderId],
  ['order.completed', orderId],
]
/** The words of each line but the time: type, id, status. */
const lines = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => line.split('  ').slice(1, 4))

test('it begins now, keeps its secret and its place for one person, and goes on there after Ctrl-C', async () => {
  await untilLogged(await event.guest())
  const first = await listen()
  const second = await event.guest()
  await expect.poll(heard).toEqual(ofGuest(second))
  const [name = ''] = readdirSync(join(folder, 'usher')).filter((each) => each.endsWith('.json'))
  const file = join(folder, 'usher', name)
  const newest = String(receiver.received.at(-1)?.headers['webhook-id'])
  await expect.poll(() => readFileSync(file, 'utf8')).toContain(newest)
  first.child.kill('SIGINT')
  expect((await first.ended).signal).toBe('SIGINT')

  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file, 'utf8')).not.toContain(environment.USHER_KEY)

  const third = await event.guest()
  const again = await listen()
  await expect.poll(heard).toEqual([...ofGuest(second), ...ofGuest(third)])
  const secret = secretIn(first.stderr())
  expect(secretIn(again.stderr())).toBe(secret)
  expect((await usher(['listen', '--print-secret'], folder, environment)).stdout).toBe(`${secret}\n`)
  for (const webhook of receiver.received) expect(webhook.verified(secret)).toMatchObject({ livemode: false })
  await end(again.child)

  await untilLogged(await event.guest())
  const fromNow = await listen(['--from-now'])
  const last = await event.guest()
  await expect.poll(heard).toEqual([second, third, last].flatMap(ofGuest))
  await end(fromNow.child)
})

test('what a receiver does not accept is shown and sent again, and what comes later waits for it', async () => {
  const answers = [status(500), hang, reset, status(302, { Location: '/' }), status(204)]
  receiver.answerWith((response, webhook) => (answers.length > 1 ? answers.shift() : answers[0])?.(response, webhook))
  const { child, stdout, stderr } = await listen(['--types', 'order.completed'])
  const guests = [await event.guest(), await event.guest()]
  await expect.poll(() => lines(stdout())).toHaveLength(6)
  const [[, first = ''] = [], second] = [lines(stdout())[0], lines(stdout())[5]]
  expect(lines(stdout())).toEqual([
    ...['500', 'time-out', 'ECONNRESET', '302', '204'].map((answer) => ['order.completed', first, answer]),
    ['order.completed', second?.[1], '204'],
  ])
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([...Array(5).fill(first), second?.[1]])
  expect(heard().at(-1)).toEqual(['order.completed', guests[1]?.orderId])
  expect(stderr().match(/again in \d s/g)).toEqual(['again in 1 s', 'again in 2 s', 'again in 4 s', 'again in 8 s'])
  await end(child)
})

test('--replay sends one again, once', async () => {
  const { child, stdout } = await listen(['--types', 'order.completed'])
  const { orderId } = await event.guest()
  await expect.poll(heard).toEqual([['order.completed', orderId]])
  await expect.poll(stdout).toContain('204')
  await end(child)
  const id = lines(stdout())[0]?.[1] ?? ''
  const replay = (which: string) =>
    usher(['listen', '--forward-to', receiver.url, '--replay', which], folder, environment)
  expect(await replay(id)).toMatchObject({ code: 0, stderr: '' })
  expect(heard()).toEqual(Array(2).fill(['order.completed', orderId]))
  receiver.answerWith(status(500))
  expect((await replay(id)).code).toBe(1)
  expect(receiver.received).toHaveLength(3)
  for (const unknown of ['018f0000-0000-7000-8000-000000000000', 'nonsense'])
    expect(await replay(unknown)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`no notification ${unknown}`),
    })
})

test('it goes on when the API comes back, and when its place is no longer in the log', async () => {
  const sockets = new Set<Socket>()
  const { hostname, port } = new URL(inject('apiUrl'))
  const proxy = createServer((socket) => {
    sockets.add(socket)
    socket
      .on('error', () => {})
      .pipe(connect(Number(port), hostname).on('error', () => {}))
      .pipe(socket)
  })
  const itsPort = await freePort()
  const open = () => new Promise<void>((resolve) => proxy.listen(itsPort, '127.0.0.1', resolve))
  const close = () =>
    new Promise((resolve) => {
      proxy.close(resolve)
      for (const socket of sockets) socket.destroy()
    })
  await open()
  const { child, stderr } = await listen([], { USHER_URL: `http://127.0.0.1:${itsPort}` })
  const before = await event.guest()
  await expect.poll(heard).toEqual(ofGuest(before))

  await close()
  const meanwhile = await event.guest()
  await expect.poll(stderr).toMatch(/No answer \(.+\)\. Trying again/)
  await open()
  await expect.poll(heard).toEqual([before, meanwhile].flatMap(ofGuest))
  expect(stderr()).toContain('answers again')

  await emptyTestOrganisation(studio as never, organisation.slug)
  const later = await (await organisation.event()).guest()
  await expect.poll(heard).toEqual(expect.arrayContaining(ofGuest(later)))
  expect(stderr()).toContain('The log no longer has')
  await end(child)
  await close()
})

test('a key that is revoked ends it, and what cannot work does not begin', async () => {
  const { ended, stderr } = await listen()
  await studio.query('update public.api_keys set revoked_at = now() where organisation_id = $1', [organisation.id])
  await expect.poll(stderr).toContain('revoked')
  const revoked = { code: 1, stderr: expect.stringContaining('The API key was revoked.') }
  expect(await ended).toMatchObject(revoked)

  const run = (args: string[], env: NodeJS.ProcessEnv = {}) =>
    usher(['listen', ...args], folder, { ...environment, USHER_KEY: key, ...env })
  const key = await organisation.key()
  const doorKey = await organisation.key('checkin:write')
  const to = ['--forward-to', receiver.url]
  for (const [args, env, code, said] of [
    [to, { USHER_KEY: doorKey }, 1, /lacks the scope/],
    [to, { USHER_KEY: key.slice(0, -1) }, 2, /no complete API key/],
    [to, { USHER_KEY: '' }, 2, /set USHER_KEY/],
    [to, { USHER_URL: '' }, 2, /set USHER_URL/],
    [to, { USHER_URL: 'usher' }, 2, /not the address of an Usher/],
    [to, { USHER_URL: `http://127.0.0.1:${await freePort()}` }, 1, /cannot be reached/],
    [to, { USHER_URL: receiver.url }, 2, /is not Usher/],
    [to, { XDG_STATE_HOME: '/dev/null' }, 1, /set XDG_STATE_HOME/],
    [[], {}, 2, /--forward-to http/],
    [['--forward-to', 'localhost:4242'], {}, 2, /--forward-to http/],
    [[...to, '--types', 'order.eaten'], {}, 2, /Types are order\.created, /],
  ] as const)
    expect(await run([...args], env), String(said)).toMatchObject({ code, stderr: expect.stringMatching(said) })
  expect(receiver.received.filter(({ method }) => method === 'POST')).toEqual([])
})

test('two of one key forward everything twice, and neither hinders the other', async () => {
  const both = [await listen(), await listen()]
  for (let i = 0; i < 20; i++) await event.guest()
  await expect.poll(() => heard().length, { interval: 20 }).toBe(80)
  for (const { child, stderr } of both) {
    expect([child.exitCode, stderr()]).toEqual([null, expect.not.stringContaining('Error')])
    await end(child)
  }
})

test('a file without a secret is refused', async () => {
  await end((await listen()).child)
  const [name = ''] = readdirSync(join(folder, 'usher'))
  for (const content of ['null', '[]', '{}']) {
    writeFileSync(join(folder, 'usher', name), content)
    const ended = await usher(['listen', '--forward-to', receiver.url], folder, environment)
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('it has no signing secret. Remove it') })
  }
})

/** An API that answers each call so, after the first, which says whose key it is. */
async function startApi(answer: (response: http.ServerResponse) => void) {
  let calls = 0
  const me = { data: { prefix: 'usher_test_00000000', organisation: { name: 'Acme\x1b[31m' } } }
  const api = http.createServer((_, response) => {
    calls += 1
    if (calls === 1) response.end(JSON.stringify(me))
    else answer(response)
  })
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void api.close())
  return { url: `http://127.0.0.1:${(api.address() as AddressInfo).port}`, calls: () => calls }
}

test('nothing that an API answers reaches the terminal as a command to it', async () => {
  const error = { code: 'x', message: 'No\x1b[31m', hint: '\x9b31m', retryable: false }
  const page = { data: [{ id: '\x1b[2J', type: 'a\x1b]0;b\x07', created_at: 'c\x1b', data: {} }], has_more: false }
  for (const [statusCode, body] of [
    [400, { error }],
    [200, page],
  ] as const) {
    const { url } = await startApi((response) => response.writeHead(statusCode).end(JSON.stringify(body)))
    const { stdout, stderr, child } = spawnUsher(['listen', '--forward-to', receiver.url], {
      dataDir: folder,
      env: { ...environment, USHER_URL: url },
    })
    await expect.poll(() => stdout() + stderr()).toMatch(/No |Acme/)
    await end(child)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    expect(stdout() + stderr()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
  }
})

test('an API that asks for a wait of years is not called meanwhile', async () => {
  const error = { code: 'x', message: 'Busy.', retryable: true }
  const api = await startApi((response) =>
    response.writeHead(503, { 'Retry-After': '999999999' }).end(JSON.stringify({ error })),
  )
  const { stderr, child } = spawnUsher(['listen', '--forward-to', receiver.url], {
    dataDir: folder,
    env: { ...environment, USHER_URL: api.url },
  })
  await expect.poll(stderr).toContain('again in 86400 s')
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(api.calls()).toBe(2)
  await end(child)
})
