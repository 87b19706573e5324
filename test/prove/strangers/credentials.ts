// What somebody may send in the place of a valid key, and what has to be answered.

import { randomBytes } from 'node:crypto'
import { createKey, prefixOf } from '../../../src/gateway/api-key.ts'
import { issueKey } from '../../../src/local/admin.ts'
import { type Scope, scopes } from '../../../src/operations/operation.ts'
import { codeGrant, decide, Jar, walkToConsent } from '../../http/oauth/walk.ts'
import { row, studio } from '../../support/database.ts'

export type Credential = {
  what: string
  key: string | undefined
  /** Where it is sent: the two addresses of MCP take different credentials. */
  to: readonly Interface[]
  status: number
  code: string
  /** Of WWW-Authenticate. */
  challenge?: RegExp
  /** Where the refusal says more than that it is not valid. */
  hint?: string
}

/** MCP with keys and with tokens; REST, its pictures and its files. */
export type Interface = 'rest' | 'png' | 'svg' | 'csv' | 'mcp' | 'connect'
const withKeys = ['rest', 'png', 'svg', 'csv', 'mcp'] as const

export const issueKeyOf = (organisationId: string, ...chosen: Scope[]): Promise<string> =>
  issue(organisationId, 'key', chosen)

async function issue(organisationId: string, kind: 'key' | 'person', chosen: Scope[] = []): Promise<string> {
  const { slug } = await row<{ slug: string }>('select slug from public.organisations where id = $1', [organisationId])
  return issueKey(studio, {
    organisation: slug,
    name: 'test',
    scopes: chosen.length > 0 ? chosen : scopes,
    ...(kind === 'person' ? { kind } : { confirmations: 'none' }),
  })
}

const invalid = { status: 401, code: 'invalid_api_key', challenge: /error="invalid_token"/ }
const invalidToken = {
  status: 401,
  code: 'invalid_access_token',
  challenge: /error="invalid_token".*resource_metadata=/,
}
const unknownToken = { ...invalidToken, hint: 'it has expired, or its grant has ended' }

const change = (key: string, assignment: string) =>
  studio.query(`update public.api_keys set ${assignment} where prefix = $1`, [prefixOf(key)])

/**
 * Of an organisation, so that it would be let in with a valid one.
 *
 * @param elsewhereUrl another API on the same database: its tokens are for another audience.
 */
export async function credentialsOf(
  organisationId: string,
  apiUrl: string,
  elsewhereUrl: string,
): Promise<Credential[]> {
  const key = () => issueKeyOf(organisationId)
  const [valid, revoked, expired, deleted] = [await key(), await key(), await key(), await key()]
  await change(revoked, 'revoked_at = now()')
  await change(expired, "expires_at = now() - interval '1 second'")
  await studio.query('delete from public.api_keys where prefix = $1', [prefixOf(deleted)])
  const wrongEnd = valid.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  const unknown = createKey()
  const person = await issue(organisationId, 'person')
  const token = await tokenOf(person, apiUrl)
  const foreign = await tokenOf(person, elsewhereUrl)
  const ended = await tokenOf(person, apiUrl)
  await studio.query(
    'update public.api_keys k set revoked_at = now() from private.oauth_grants g where g.api_key_id = k.id and g.client_id = $1',
    [ended.clientId],
  )
  const tokens = ['connect'] as const
  const garbage = randomBytes(24).toString('hex')
  const spliced = prefixOf(valid) + unknown.slice(prefixOf(unknown).length)
  const noKey = { status: 401, code: 'missing_api_key', challenge: /^Bearer realm="usher"$/ }
  const noToken = { status: 401, code: 'missing_access_token', challenge: /resource_metadata=/ }
  const keyAsToken = { ...invalidToken, hint: 'Send API keys to /api/mcp' }
  const random = randomBytes(32).toString('base64url')
  return [
    { what: 'no key', key: undefined, to: withKeys, ...noKey },
    { what: 'no token', key: undefined, to: tokens, ...noToken },
    { what: 'garbage', key: garbage, to: withKeys, ...invalid },
    { what: 'garbage', key: garbage, to: tokens, ...invalidToken },
    { what: 'a wrong checksum', key: wrongEnd, to: withKeys, ...invalid },
    { what: 'the prefix of a key, and another end', key: spliced, to: withKeys, ...invalid },
    { what: 'a key that nobody has', key: unknown, to: withKeys, ...invalid },
    { what: 'a deleted key', key: deleted, to: withKeys, ...invalid },
    { what: 'a revoked key', key: revoked, to: withKeys, ...invalid, code: 'api_key_revoked' },
    { what: 'an expired key', key: expired, to: withKeys, ...invalid, code: 'api_key_expired' },
    { what: 'a key for people', key: person, to: withKeys, status: 403, code: 'key_for_people' },
    { what: 'a token in the place of a key', key: token.token, to: withKeys, ...invalid },
    { what: 'a key in the place of a token', key: valid, to: tokens, ...keyAsToken },
    { what: 'a token for another audience', key: foreign.token, to: tokens, ...invalidToken },
    { what: 'a token that nobody has', key: random, to: tokens, ...unknownToken },
    { what: 'a token whose grant was ended', key: ended.token, to: tokens, ...unknownToken },
  ]
}

/** Everything but the scope that an operation needs. */
export async function withoutScope(organisationId: string, scope: Scope, apiUrl: string): Promise<Credential[]> {
  const others = scopes.filter((other) => other !== scope)
  const missing = { status: 403, code: 'missing_scope' }
  const { token } = await tokenOf(await issue(organisationId, 'person'), apiUrl, others)
  return [
    { what: 'every other scope', key: await issueKeyOf(organisationId, ...others), to: withKeys, ...missing },
    {
      what: 'a token with every other scope',
      key: token,
      to: ['connect'],
      ...missing,
      challenge: /error="insufficient_scope"/,
    },
  ]
}

async function tokenOf(
  key: string,
  apiUrl: string,
  allowed: readonly Scope[] = scopes,
): Promise<{ token: string; clientId: string }> {
  const walk = await walkToConsent(key, { jar: new Jar(apiUrl) })
  const { body } = await codeGrant(walk, await decide(walk, { scope: [...allowed] }))
  if (body.access_token === undefined) throw new Error(JSON.stringify(body))
  return { token: body.access_token, clientId: walk.clientId }
}
