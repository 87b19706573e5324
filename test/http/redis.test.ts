// Several instances of the API share their limits through Redis. Skipped where there is no redis-server (Debian:
// `apt-get install redis-server`).

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { pino } from 'pino'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createKey } from '../../src/gateway/api-key.ts'
import { createLimitStores } from '../../src/http/middleware/rate-limit.ts'
import { freePort } from '../../src/local/ports.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { ownApp } from '../support/own-app.ts'
import { organisationAllowed } from '../support/plan.ts'
import { rest } from '../support/rest.ts'

const silent = pino({ level: 'silent' })
const installed = spawnSync('redis-server', ['--version']).status === 0

type Redis = { url: string; process: ChildProcess }

async function startRedis(port?: number): Promise<Redis> {
  port ??= await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const process = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  for await (const chunk of process.stdout) if (String(chunk).includes('Ready to accept connections')) break
  process.stdout.resume()
  return { url: `redis://127.0.0.1:${port}`, process }
}

async function stop({ process }: Redis): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  process.kill('SIGKILL')
  await once(process, 'exit')
}

/** One instance of the API, with its own connection to Redis. */
async function copyOfTheApp({ url }: Redis, log = silent): Promise<string> {
  const stores = await createLimitStores(url, log)
  onTestFinished(stores.close)
  return (await ownApp({ stores })).url
}

const title = installed ? 'with Redis' : 'with Redis (skipped: there is no redis-server)'
describe.skipIf(!installed)(title, () => {
  let redis: Redis
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => stop(redis))

  test('an app on Redis starts without complaint', async () => {
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => complaints.mockRestore())
    await copyOfTheApp(redis)
    expect(complaints.mock.calls.map(([complaint]) => String(complaint))).toEqual([])
  })

  test('two copies share one bucket for each key, over REST and MCP', async () => {
    const [one, two] = [await copyOfTheApp(redis), await copyOfTheApp(redis)]
    const key = await (await organisationAllowed(5)).key()
    const overRest = (url: string) => rest(key, url)('GET', '/me')
    const overMcp = (url: string) => post(toolCall('get_api_key'), jsonHeaders(key), { apiUrl: url })

    const answers = [
      await overRest(one),
      await overMcp(two),
      await overRest(two),
      await overMcp(one),
      await overRest(one),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])

    const sixth = await overRest(two)
    expect([sixth.status, sixth.body.error.code]).toEqual([429, 'rate_limited'])
    expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await overMcp(one)).status).toBe(429)

    const stranger = await (await organisationAllowed(5)).key()
    expect((await rest(stranger, two)('GET', '/me')).headers.get('ratelimit')).toContain('r=4')
  })

  test('wrong keys count together, whichever copy they were tried at, also for one that has seen none', async () => {
    const [one, two, three] = [await copyOfTheApp(redis), await copyOfTheApp(redis), await copyOfTheApp(redis)]
    for (let i = 0; i < 30; i += 1) {
      expect((await rest(createKey(), one)('GET', '/me')).status).toBe(401)
      expect((await rest(createKey(), two)('GET', '/me')).status).toBe(401)
    }
    const answers = await Promise.all(Array.from({ length: 40 }, () => rest(createKey(), three)('GET', '/me')))
    expect(answers.every(({ status, body }) => status === 429 && body.error.code === 'too_many_failures')).toBe(true)
    const key = await (await organisationAllowed(5)).key()
    expect((await rest(key, three)('GET', '/me')).status).toBe(200)
  })

  test('Redis is told the id of a key, never the key', async () => {
    const url = await copyOfTheApp(redis)
    const key = await (await organisationAllowed(5)).key()
    await rest(key, url)('GET', '/me')
    const client = await createClient({ url: redis.url }).connect()
    onTestFinished(() => client.destroy())
    const names = await client.keys('usher:requests:*')
    expect(names.length).toBeGreaterThan(0)
    expect(names.join(' ')).not.toContain('usher_live_')
  })

  /** Two copies on a Redis of their own, and the log of the first. */
  async function copiesOn() {
    const own = await startRedis()
    onTestFinished(() => stop(own))
    const lines: string[] = []
    const log = pino({ base: null }, { write: (line: string) => void lines.push(line) })
    const [one, two] = [await copyOfTheApp(own, log), await copyOfTheApp(own)]
    const me = (key: string, url: string) => rest(key, url)('GET', '/me')
    return {
      ...{ own, one, two },
      says: (what: string) => lines.filter((line) => line.includes(what)).length,
      async statuses(key: string, ...urls: string[]) {
        const answers: number[] = []
        for (const url of urls) answers.push((await me(key, url)).status)
        return answers
      },
      async togetherAgain() {
        const fresh = await (await organisationAllowed(9)).key()
        await me(fresh, one)
        return (await me(fresh, two)).headers.get('ratelimit')
      },
    }
  }

  test('while Redis is away each copy limits for itself and says so, and together again when it is back', async () => {
    const { own, one, two, says, statuses, togetherAgain } = await copiesOn()
    const key = await (await organisationAllowed(2)).key()
    expect(await statuses(key, one, two, one)).toEqual([200, 200, 429])
    await stop(own)
    expect(await statuses(key, one, one, one)).toEqual([200, 200, 429])
    expect(await statuses(key, two, two, two)).toEqual([200, 200, 429])
    expect(says('Redis is unreachable')).toBe(1)

    const again = await startRedis(Number(new URL(own.url).port))
    onTestFinished(() => stop(again))
    await expect.poll(togetherAgain).toContain('r=7')
    expect(says('Redis is reachable again')).toBe(1)
  })

  test('while Redis is silent each copy limits for itself and says so, and together again when it answers', async () => {
    const { own, one, two, says, togetherAgain } = await copiesOn()
    own.process.kill('SIGSTOP')
    const key = await (await organisationAllowed(2)).key()
    for (const url of [one, two]) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => rest(key, url)('GET', '/me')))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429, 429, 429, 429])
    }
    expect(says('Redis does not answer')).toBe(1)

    own.process.kill('SIGCONT')
    await expect.poll(togetherAgain).toContain('r=7')
    expect(says('Redis answers again')).toBe(1)
  })
})

test('with no REDIS_URL each copy counts for itself', async () => {
  expect(await createLimitStores(undefined, silent)).toEqual({ close: expect.any(Function) })
})
