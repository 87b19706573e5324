// Wrong keys are counted per address. Each test has an app, and so a counter, of its own: all tests share one address.

import { expect, test } from 'vitest'
import { createKey } from '../../src/gateway/api-key.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { ownApp } from './own-app.ts'

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

test('the doors count together: sixty wrong keys over REST are sixty for MCP', async () => {
  const { url } = await ownApp()
  await guess(url, allowed)
  const { status, body } = await post(toolCall('get_api_key'), jsonHeaders(createKey()), { apiUrl: url })
  expect([status, body]).toEqual([429, { error: expect.objectContaining({ code: 'too_many_failures' }) }])
})

test('wrong keys sent all at once are counted, too', async () => {
  const { url } = await ownApp()
  await Promise.all(Array.from({ length: allowed + 20 }, () => rest(createKey(), url)('GET', '/me')))
  expect((await rest(createKey(), url)('GET', '/me')).body.error.code).toBe('too_many_failures')
})

test('a request that forgot its key is no guess: it is told so every time', async () => {
  const { url } = await ownApp()
  await guess(url, allowed)
  const { status, body } = await rest(undefined, url)('GET', '/me')
  expect([status, body.error.code]).toEqual([401, 'missing_api_key'])
})

test('behind a proxy that is trusted, addresses are told apart', async () => {
  const { url } = await ownApp({ trustProxy: 'loopback' })
  const from = (address: string) => rest(createKey(), url)('GET', '/me', undefined, { 'X-Forwarded-For': address })
  for (let i = 0; i < allowed; i += 1) await from('203.0.113.7')
  expect((await from('203.0.113.7')).body.error.code).toBe('too_many_failures')
  expect((await from('203.0.113.8')).body.error.code).toBe('invalid_api_key')
})

test('with no trusted proxy, X-Forwarded-For gives nobody a fresh start', async () => {
  const { url } = await ownApp()
  await guess(url, allowed)
  const { body } = await rest(createKey(), url)('GET', '/me', undefined, { 'X-Forwarded-For': '203.0.113.9' })
  expect(body.error.code).toBe('too_many_failures')
})
