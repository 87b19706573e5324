// Refresh tokens: renewed by several at once, too often, after an answer that was lost, and by a thief.

import { pino } from 'pino'
import { beforeAll, expect, test } from 'vitest'
import { recordHash } from '../../../src/apps/sign-in/adapter.ts'
import { prefixOf } from '../../../src/gateway/api-key.ts'
import { row, studio } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { appOfThisFile } from '../../support/own-app.ts'
import { edit } from '../../support/studio.ts'
import { callWith, codeGrant, decide, Jar, refreshGrant, signIn, walkToConsent } from './walk.ts'

const lines: string[] = []
const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) })
const { url } = await appOfThisFile({ trustProxy: true, log })

let organisation: TestOrganisation
beforeAll(async () => {
  organisation = await createOrganisation()
})

async function signedIn() {
  const key = await organisation.personKey()
  const signedIn = await signIn(url, key)
  const { id: grantId } = await row<{ id: string }>(
    "select g.id from public.api_keys g join public.api_keys k on k.id = g.parent_id where g.kind = 'grant' and k.prefix = $1",
    [prefixOf(key)],
  )
  return { ...signedIn, grantId }
}

/** As if it had been used so long ago. */
const usedAgo = (token: string, interval: string) =>
  studio.query(
    "update private.oauth_records set consumed_at = now() - $2::interval where id_hash = decode($1, 'hex')",
    [recordHash('RefreshToken', token), interval],
  )

const recordsOf = async (grantId: string) =>
  (await row<{ n: number }>('select count(*)::int as n from private.oauth_records where grant_id = $1', [grantId])).n

test('renewed twice at once, as clients of MCP do, a token gives both what they ask for', async () => {
  const { walk, refresh_token } = await signedIn()
  const answers = await Promise.all([refreshGrant(walk, refresh_token), refreshGrant(walk, refresh_token)])
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  for (const { body } of answers) {
    expect((await callWith(body.access_token, url)).status).toBe(200)
    expect((await refreshGrant(walk, body.refresh_token as string)).status).toBe(200)
  }
})

test('a renewal that broke off can be done again, once', async () => {
  const { walk, refresh_token } = await signedIn()
  // Nothing newer was saved.
  await usedAgo(refresh_token, '1 hour')
  expect((await refreshGrant(walk, refresh_token)).status).toBe(200)
  await usedAgo(refresh_token, '11 seconds')
  expect((await refreshGrant(walk, refresh_token)).body.error).toBe('invalid_grant')
})

test('a grant is renewed twenty times a minute at most, and a client is told to wait', async () => {
  const { walk, grantId, refresh_token } = await signedIn()
  let token = refresh_token
  for (let i = 0; i < 20; i++) token = (await refreshGrant(walk, token)).body.refresh_token as string
  const refused = await refreshGrant(walk, token)
  expect(refused).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } })
  expect(refused.body.error_description).toContain('too often')
  await studio.query(
    "update private.oauth_grants set refreshes_since = now() - interval '61 seconds' where api_key_id = $1",
    [grantId],
  )
  expect((await refreshGrant(walk, token)).status).toBe(200)
})

test('a renewal of one sign-in that broke off can be done again, whatever another sign-in of the grant renewed', async () => {
  const key = await organisation.personKey()
  const jar = new Jar(url)
  const first = await walkToConsent(key, { jar })
  const x = (await codeGrant(first, await decide(first))).body
  const y = await walkToConsent(key, { jar, clientId: first.clientId })
  const { refresh_token } = (await codeGrant(y, await decide(y))).body as { refresh_token: string }
  // A sign-in is told by its second.
  await studio.query(
    `update private.oauth_records set payload = payload || '{"iiat": 1}' where id_hash = decode($1, 'hex')`,
    [recordHash('RefreshToken', x.refresh_token as string)],
  )
  await usedAgo(refresh_token, '11 seconds')
  const renewed = (await refreshGrant(first, x.refresh_token as string)).body.refresh_token as string
  expect((await refreshGrant(first, renewed)).status).toBe(200)
  expect((await refreshGrant(y, refresh_token)).status).toBe(200)
})

/** As many more as a grant might get within weeks. */
const addTokens = (kind: string, count: number, grantId: string) =>
  studio.query(
    `select api.save_oauth_record($1, encode(sha256(convert_to($2 || $1 || n, 'UTF8')), 'hex'), '{}', 60, $2::uuid)
     from generate_series(1, $3::integer) n`,
    [kind, grantId, count],
  )

test('of a grant the newest hundred access tokens are kept, and every refresh token', async () => {
  const { walk, grantId, refresh_token } = await signedIn()
  const { body } = await refreshGrant(walk, refresh_token)
  await usedAgo(refresh_token, '11 seconds')
  await addTokens('RefreshToken', 120, grantId)
  await addTokens('AccessToken', 120, grantId)
  // The code, 100 access tokens, and all that renew.
  expect(await recordsOf(grantId)).toBe(1 + 100 + 2 + 120)
  // So a thief who renews often is noticed all the same, and nothing of the family is left.
  expect((await refreshGrant(walk, refresh_token)).body.error).toBe('invalid_grant')
  expect((await refreshGrant(walk, body.refresh_token as string)).body.error).toBe('invalid_grant')
  expect((await callWith(body.access_token, url)).status).toBe(401)
})

test('a grant with 2,000 refresh tokens ends when it is renewed, and the log says so', async () => {
  const { walk, grantId, refresh_token } = await signedIn()
  await addTokens('RefreshToken', 1_998, grantId)
  const { body } = await refreshGrant(walk, refresh_token)
  expect((await refreshGrant(walk, body.refresh_token as string)).body.error).toBe('invalid_grant')
  expect(await recordsOf(grantId)).toBe(0)
  expect(lines.filter((line) => line.includes(grantId)).join()).toContain('renewed 2,000 times')
})

test('of a grant that was ended no token is kept', async () => {
  const { grantId, access_token } = await signedIn()
  expect(await recordsOf(grantId)).toBe(3)
  await edit('api_keys', grantId, 'revoked_at = now()')
  expect(await recordsOf(grantId)).toBe(0)
  expect((await callWith(access_token, url)).status).toBe(401)
})

test('what a thief gives away is in the log, without the token', async () => {
  const code = await signedIn()
  expect((await codeGrant(code.walk, code.answer)).body.error).toBe('invalid_grant')
  const token = await signedIn()
  await refreshGrant(token.walk, token.refresh_token)
  await usedAgo(token.refresh_token, '11 seconds')
  await refreshGrant(token.walk, token.refresh_token)
  for (const { grantId, answer, access_token, refresh_token } of [code, token]) {
    const said = lines.filter((line) => line.includes(grantId))
    expect(said.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, grant_id: grantId }])
    for (const secret of [answer.searchParams.get('code') as string, access_token, refresh_token])
      expect(lines.join('')).not.toContain(secret)
  }
})

test('what somebody was about to do is forgotten when it ends, and of a code it is known for an hour', async () => {
  const walk = await walkToConsent(await organisation.personKey(), { jar: new Jar(url) })
  const { answer, ...done } = await signedIn()
  const interaction = recordHash('Interaction', walk.at.split('/').at(-1) as string)
  const code = recordHash('AuthorizationCode', answer.searchParams.get('code') as string)
  const kept = async () =>
    (
      await studio.query(
        `select encode(id_hash, 'hex') as hash from private.oauth_records where encode(id_hash, 'hex') = any ($1)`,
        [[interaction, code]],
      )
    ).rows.map(({ hash }) => hash)
  expect((await kept()).length).toBe(2)
  await studio.query(
    `update private.oauth_records set expires_at = now() - interval '1 second' where encode(id_hash, 'hex') = any ($1)`,
    [[interaction, code]],
  )
  await studio.query('select api.purge(30, 1000)')
  expect(await kept()).toEqual([code])
  expect((await callWith(done.access_token, url)).status).toBe(200)
})
