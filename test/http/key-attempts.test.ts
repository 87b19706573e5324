// Wrong keys are counted per address. All tests share one address: those that need it over its limit share an app, and so a counter, and
// the others have one of their own.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { createKey } from '../../src/gateway/api-key.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { appOfThisFile, ownApp } from '../support/own-app.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { watchedDataApi } from '../support/watched-data-api.ts'

const allowed = 60

async function guess(url: string, times: number): Promise<Array<[number, string]>> {
  const answers: Array<[number, string]> = []
  for (let i = 0; i < times; i += 1) {
    // Half are well-formed and cost a look-up, half are not even keys.
    const { status, body } = await rest(i % 2 === 0 ? createKey() : 'guess', url)('GET', '/me')
    answers.push([status, body.error.code])
  }
  return answers
}

/** The app in front of PostgREST, which counts how often keys are resolved, and how many at once. */
async function counted(serve = ownApp, atTheEnd = onTestFinished as (close: () => Promise<void>) => void) {
  const seen = { resolved: 0, underWay: 0, most: 0 }
  const dataApi = await watchedDataApi(async (fn, res) => {
    if (fn === 'resolve_api_key') {
      seen.resolved += 1
      seen.underWay += 1
      seen.most = Math.max(seen.most, seen.underWay)
      res.once('close', () => {
        seen.underWay -= 1
      })
    }
    await sleep(5)
  })
  atTheEnd(dataApi.close)
  return { seen, ...(await serve({ dataApiUrl: dataApi.url })) }
}

const shared = await counted(appOfThisFile, afterAll)
let overSince = Number.NEGATIVE_INFINITY

/** An app for which the address of the tests is over its limit, and stays so: it is for a minute. */
async function overLimit() {
  const isFresh = overSince === Number.NEGATIVE_INFINITY
  const isOver = performance.now() - overSince < 20_000
  const over = isFresh || isOver ? shared : await counted(ownApp, onTestFinished)
  if (isFresh) overSince = performance.now()
  if (!isOver) await guess(over.url, allowed)
  Object.assign(over.seen, { resolved: 0, most: 0 })
  return over
}

test('after sixty wrong keys an address is refused with too_many_failures, but valid keys still pass, known or new', async () => {
  const { url } = await ownApp()
  const organisation = await createOrganisation()
  const [known, unused] = [await organisation.key(), await organisation.key()]
  expect((await rest(known, url)('GET', '/me')).status).toBe(200)

  expect(await guess(url, allowed)).toEqual(Array(allowed).fill([401, 'invalid_api_key']))
  const { status, headers, body } = await rest(createKey(), url)('GET', '/me')
  expect([status, body.error.code, body.error.retryable]).toEqual([429, 'too_many_failures', true])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)

  expect((await rest(known, url)('GET', '/me')).status).toBe(200)
  expect((await rest(unused, url)('GET', '/me')).status).toBe(200)
})

test('REST and MCP count together: sixty wrong keys over REST are sixty for MCP', async () => {
  const { url } = await overLimit()
  const { status, body } = await post(toolCall('get_api_key'), jsonHeaders(createKey()), { apiUrl: url })
  expect([status, body]).toEqual([429, { error: expect.objectContaining({ code: 'too_many_failures' }) }])
})

test('wrong keys sent all at once are counted, too', async () => {
  const { url } = await ownApp()
  await Promise.all(Array.from({ length: allowed + 20 }, () => rest(createKey(), url)('GET', '/me')))
  expect((await rest(createKey(), url)('GET', '/me')).body.error.code).toBe('too_many_failures')
})

test('a request that forgot its key is no guess: it is told so every time', async () => {
  const { url } = await overLimit()
  const { status, body } = await rest(undefined, url)('GET', '/me')
  expect([status, body.error.code]).toEqual([401, 'missing_api_key'])
})

test('behind a proxy that is trusted, addresses are told apart', async () => {
  const { url } = await ownApp({ trustProxy: 'loopback' })
  const from = (address: string, key = createKey()) =>
    rest(key, url)('GET', '/me', undefined, { 'X-Forwarded-For': address })
  for (let i = 0; i < allowed; i += 1) await from('203.0.113.7', 'guess')
  expect((await from('203.0.113.7')).body.error.code).toBe('too_many_failures')
  expect((await from('203.0.113.8')).body.error.code).toBe('invalid_api_key')
})

const codesOf = (answers: RestAnswer[]) => {
  const codes: Record<string, number> = {}
  for (const { body } of answers) codes[body.error.code] = (codes[body.error.code] ?? 0) + 1
  return codes
}

test('of keys that are tried all at once, eight at most are looked up at a time, and hardly more than are allowed', async () => {
  const { url, seen } = await counted()
  const answers = await Promise.all(Array.from({ length: 300 }, () => rest(createKey(), url)('GET', '/me')))
  expect(seen.most).toBeGreaterThan(1)
  expect(seen.most).toBeLessThanOrEqual(8)
  // Sixty, those under way then, those that may wait for their turn, and those that came while these were served.
  expect(seen.resolved).toBeLessThan(200)
  const codes = codesOf(answers)
  expect(codes.invalid_api_key).toBe(allowed)
  expect(codes.too_many_failures).toBe(300 - allowed)
})

test('a valid new key still gets in beside wrong ones of an address over its limit', async () => {
  const { url } = await overLimit()
  const key = await (await createOrganisation()).key()
  const [valid, ...answers] = await Promise.all([
    rest(key, url)('GET', '/me'),
    ...Array.from({ length: 20 }, () => rest(createKey(), url)('GET', '/me')),
  ])
  expect(valid.status).toBe(200)
  expect(codesOf(answers)).toEqual({ too_many_failures: 20 })
})

test('keys that are tried one after another by an address over its limit are looked up at a slow pace', async () => {
  const { url, seen } = await overLimit()
  const started = performance.now()
  for (let i = 0; i < 4; i++) await rest(createKey(), url)('GET', '/me')
  // With a pause of 250 ms after each.
  expect(seen.resolved).toBe(4)
  expect(performance.now() - started).toBeGreaterThan(4 * 240)
})

test('requests that arrive together with one new key take one place, however many they are', async () => {
  const { url, seen } = await overLimit()
  const key = await (await createOrganisation()).key()
  const answers = await Promise.all(Array.from({ length: 100 }, () => rest(key, url)('GET', '/me')))
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  expect(seen.resolved).toBe(1)
})

test('keys of one address wait, and are all served, while it has sent nothing invalid', async () => {
  const { url, seen } = await counted()
  const organisation = await createOrganisation()
  const keys = await Promise.all(Array.from({ length: 60 }, () => organisation.key()))
  const answers = await Promise.all(keys.map((key) => rest(key, url)('GET', '/me')))
  expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200))
  expect(seen.most).toBeGreaterThan(1)
  expect(seen.most).toBeLessThanOrEqual(8)
})

test('with no trusted proxy, X-Forwarded-For gives nobody a fresh start', async () => {
  const { url } = await overLimit()
  const { body } = await rest(createKey(), url)('GET', '/me', undefined, { 'X-Forwarded-For': '203.0.113.9' })
  expect(body.error.code).toBe('too_many_failures')
})
