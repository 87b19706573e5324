// Who may come in, over REST. Keys are changed the way an organiser changes them: as rows.

import { expect, test } from 'vitest'
import { createKey, prefixOf } from '../../src/gateway/api-key.ts'
import { operations } from '../../src/operations/index.ts'
import { row, studio } from '../support/database.ts'
import { jsonHeaders, post } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { appOfThisFile } from '../support/own-app.ts'
import { type RestAnswer, rest as restTo } from '../support/rest.ts'

// Wrong keys are counted per address: they are sent to an app of this file's own.
const { url } = await appOfThisFile()
const rest = (key: string | undefined) => restTo(key, url)

const change = (key: string, assignment: string) =>
  studio.query(`update public.api_keys set ${assignment} where prefix = $1`, [prefixOf(key)])

function expectRefused(answer: RestAnswer, code: string, what?: string): void {
  expect([answer.status, answer.body.error?.code, answer.body.error?.retryable], what).toEqual([401, code, false])
  expect(answer.body.error.hint).toBeTruthy()
  expect(answer.headers.get('www-authenticate')).toBe(
    code === 'missing_api_key' ? 'Bearer realm="usher"' : 'Bearer realm="usher", error="invalid_token"',
  )
}

/** A key the gateway has resolved a moment ago, and remembers. */
async function usedKey(): Promise<string> {
  const key = await (await createOrganisation()).key()
  expect((await rest(key)('GET', '/me')).status).toBe(200)
  return key
}

const with_ = (authorization: string) => rest(undefined)('GET', '/me', undefined, { Authorization: authorization })

test.each([['Bearer'], ['Bearer a b'], ['Basic dXNoZXI6bGl2ZQ=='], [createKey()]])(
  'Authorization: %s carries no key',
  async (authorization) => {
    expectRefused(await with_(authorization), 'missing_api_key')
  },
)

test.each([
  ['that is no key at all', () => 'hello'],
  ['cut short', () => createKey().slice(0, -1)],
  ['with a wrong checksum', () => createKey().replace(/.$/, (last) => (last === '0' ? '1' : '0'))],
  ['that nobody was given', createKey],
])('a key %s is refused as invalid_api_key', async (_how, make) => {
  expectRefused(await rest(make())('GET', '/me'), 'invalid_api_key')
})

test('a key for people calls nothing, over REST or MCP, remembered or not, and once it is revoked it says that', async () => {
  const key = await (await createOrganisation()).personKey()
  for (const _ of ['first', 'remembered']) {
    const { status, body } = await rest(key)('GET', '/me')
    expect([status, body.error]).toMatchObject([
      403,
      { code: 'key_for_people', hint: expect.stringContaining('--name') },
    ])
    const overMcp = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, jsonHeaders(key), { apiUrl: url })
    expect(overMcp).toMatchObject({ status: 403, body: { error: { code: 'key_for_people' } } })
  }
  await change(key, 'revoked_at = now()')
  expectRefused(await rest(key)('GET', '/me'), 'api_key_revoked')
})

test('the word Bearer may be written in any case', async () => {
  const key = await (await createOrganisation()).key()
  expect((await with_(`bearer ${key}`)).status).toBe(200)
  expect((await with_(`BEARER   ${key}`)).status).toBe(200)
})

test.each([
  ['revoked', 'revoked_at = now()', 'api_key_revoked'],
  ['expired', 'expires_at = now()', 'api_key_expired'],
])(
  'a key %s is refused on its very next request, and from then on: remembered or never used',
  async (_how, set, code) => {
    for (const key of [await usedKey(), await (await createOrganisation()).key()]) {
      await change(key, set)
      expectRefused(await rest(key)('GET', '/me'), code)
      expectRefused(await rest(key)('GET', '/me'), code)
    }
  },
)

test('every operation is closed to a key revoked a moment ago', async () => {
  const organisation = await createOrganisation()
  const { id } = await organisation.event()
  for (const { name, method, path } of operations) {
    const key = await organisation.key()
    expect((await rest(key)('GET', '/me')).status).toBe(200)
    await change(key, 'revoked_at = now()')
    // Whoever is let in is told of what is missing or not found.
    const answer = await rest(key)(method, path.replace(/\{\w+\}/g, id), method === 'GET' ? undefined : {})
    expectRefused(answer, 'api_key_revoked', name)
  }
})

test('a key that expires while it is remembered works until then and not after', async () => {
  const key = await usedKey()
  await change(key, "expires_at = now() + interval '3 seconds'")
  expect((await rest(key)('GET', '/me')).status).toBe(200)
  await studio.query(
    'select pg_sleep(extract(epoch from expires_at - clock_timestamp())) from public.api_keys where prefix = $1',
    [prefixOf(key)],
  )
  expectRefused(await rest(key)('GET', '/me'), 'api_key_expired')
})

test('a key whose row is deleted is a key nobody was given', async () => {
  const key = await usedKey()
  await studio.query('delete from public.api_keys where prefix = $1', [prefixOf(key)])
  expectRefused(await rest(key)('GET', '/me'), 'invalid_api_key')
})

test('revoking one key leaves the others of the organisation alone', async () => {
  const organisation = await createOrganisation()
  const [revoked, other] = [await organisation.key(), await organisation.key()]
  await change(revoked, 'revoked_at = now()')
  expectRefused(await rest(revoked)('GET', '/me'), 'api_key_revoked')
  expect((await rest(other)('GET', '/me')).status).toBe(200)
})

test('the use of a key is stamped on its row', async () => {
  const { before } = await row<{ before: Date }>('select now() as before')
  const key = await usedKey()
  const { last_used_at } = await row<{ last_used_at: Date }>(
    'select last_used_at from public.api_keys where prefix = $1',
    [prefixOf(key)],
  )
  expect(last_used_at.getTime()).toBeGreaterThanOrEqual(before.getTime())
})
