// So many requests a minute for each key, as the plan says, in one bucket for REST and MCP.

import { expect, test } from 'vitest'
import { hashOf, prefixOf } from '../../src/gateway/api-key.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { organisationAllowed } from '../support/plan.ts'
import { rest } from '../support/rest.ts'

const perMinute = 5

test('REST and MCP share one bucket: the sixth request of five is answered 429 at either door', async () => {
  const organisation = await organisationAllowed(perMinute)
  const key = await organisation.key()
  const overRest = () => rest(key)('GET', '/me')
  const overMcp = () => post(toolCall('get_api_key'), jsonHeaders(key))

  const first = await overRest()
  expect(first.body.data.rate_limit_per_minute).toBe(perMinute)
  const allowed = [first, await overMcp(), await overRest(), await overMcp(), await overMcp()]
  expect(allowed.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])

  const sixth = await overRest()
  expect([sixth.status, sixth.body.error.code, sixth.body.error.retryable]).toEqual([429, 'rate_limited', true])
  expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(sixth.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  expect(sixth.headers.get('ratelimit')).toMatch(/^"5-in-1min"; r=0; t=\d+$/)
  expect(sixth.headers.get('ratelimit-policy')).toMatch(/^"5-in-1min"; q=5; w=60; /)

  const seventh = await overMcp()
  expect([seventh.status, seventh.body]).toEqual([
    429,
    { error: expect.objectContaining({ code: 'rate_limited', retryable: true }) },
  ])
  expect(Number(seventh.headers['retry-after'])).toBeGreaterThan(0)
})

test('what is left is told in RateLimit and RateLimit-Policy, whose partition key tells nothing of the API key', async () => {
  const organisation = await organisationAllowed(perMinute)
  const key = await organisation.key()

  const { headers } = await rest(key)('GET', '/me')
  expect(headers.get('ratelimit')).toMatch(/^"5-in-1min"; r=4; t=\d+$/)
  const policy = headers.get('ratelimit-policy') ?? ''
  expect(policy).toMatch(/^"5-in-1min"; q=5; w=60; pk=:[A-Za-z0-9+/]+=*:$/)

  const partition = /pk=:([^:]+):/.exec(policy)?.[1] ?? ''
  for (const said of [partition, Buffer.from(partition, 'base64').toString()]) {
    expect(said.length).toBeGreaterThan(0)
    expect(key).not.toContain(said)
    expect(said).not.toContain(prefixOf(key))
    expect(hashOf(key)).not.toContain(said)
  }

  const overMcp = await post(toolCall('get_api_key'), jsonHeaders(key))
  expect(overMcp.headers.ratelimit).toMatch(/^"5-in-1min"; r=3; t=\d+$/)
  expect(overMcp.headers['ratelimit-policy']).toBe(policy)
})

test('a key that used up its allowance takes nothing from another, of its own organisation or of a stranger', async () => {
  const organisation = await organisationAllowed(1)
  const [greedy, sibling] = [await organisation.key(), await organisation.key()]
  const stranger = await (await organisationAllowed(1)).key()

  expect((await rest(greedy)('GET', '/me')).status).toBe(200)
  expect((await rest(greedy)('GET', '/me')).status).toBe(429)
  expect((await rest(sibling)('GET', '/me')).status).toBe(200)
  expect((await rest(stranger)('GET', '/me')).status).toBe(200)
})

test('of more requests at once than are allowed, as many are answered as are allowed', async () => {
  const key = await (await organisationAllowed(perMinute)).key()
  const answers = await Promise.all(Array.from({ length: 12 }, () => rest(key)('GET', '/me')))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(perMinute)
})

test('requests that are refused count as well, so that nobody guesses at no price', async () => {
  const key = await (await organisationAllowed(perMinute)).key()
  for (let i = 0; i < perMinute; i += 1) expect((await rest(key)('GET', '/nowhere')).status).toBe(404)
  expect((await rest(key)('GET', '/me')).status).toBe(429)
})
