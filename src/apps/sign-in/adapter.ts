// Where the authorization server keeps what it remembers: in Postgres, so that several processes share it, and under hashes, so that nobody
// who reads the database holds a token. A grant is a row of api_keys, and is only read here.

import type { Adapter, AdapterPayload } from 'oidc-provider'
import { hashOf } from '../../gateway/api-key.ts'
import type { GatewayRpc } from '../../gateway/gateway-rpc.ts'

const refuse = () => Promise.reject(new Error('not supported'))
/** What the features that are switched on never call. */
const unsupported: Adapter = {
  upsert: refuse,
  find: refuse,
  findByUid: refuse,
  findByUserCode: refuse,
  consume: refuse,
  destroy: refuse,
  revokeByGrantId: refuse,
}

/** The hash under which a record is kept. */
export const recordHash = (kind: string, id: string): string => hashOf(`${kind} ${id}`)

/** Who signs in is no concern of the library: the grant says which key it is made from. */
export const account = 'key-holder'

/** As `api.find_oauth_grant` returns it. */
type Grant = { client_id: string; resource: string; scopes: string[]; created_at: number; expires_at: number }

const withGrant = new Set(['AuthorizationCode', 'AccessToken', 'RefreshToken'])

/** @param alreadyUsed the error for a code or refresh token of which another request was faster. */
export function createAdapter(
  rpc: GatewayRpc,
  alreadyUsed: (grantId: string | undefined) => Error,
): (kind: string) => Adapter {
  const revoke = async (grantId: string) => void (await rpc('revoke_oauth_grant', { grant_id: grantId }))

  function records(kind: string): Adapter {
    const named = (id: string) => ({ kind, id_hash: recordHash(kind, id) })
    const find = async (id: string) => {
      const payload = (await rpc('find_oauth_record', named(id))) as AdapterPayload | null
      if (payload === null) return undefined
      const { returnTo } = payload
      return { ...payload, jti: id, ...(typeof returnTo === 'string' && { returnTo: returnTo + id }) }
    }
    return {
      ...unsupported,
      find,
      async upsert(id, payload, expiresIn) {
        // The session's own secret is in `session`, and only the cookies of the interaction count.
        const { jti: _, session: __, ...rest } = payload
        const { returnTo } = rest
        // It ends in the id, which is the cookie.
        const kept = { ...rest, ...(typeof returnTo === 'string' && { returnTo: returnTo.slice(0, -id.length) }) }
        const grant = withGrant.has(kind) && payload.grantId !== undefined && { grant_id: payload.grantId }
        await rpc('save_oauth_record', { ...named(id), payload: kept, expires_in: expiresIn, ...grant })
      },
      async consume(id) {
        if ((await rpc('consume_oauth_record', named(id))) === true) return
        const { grantId } = (await find(id)) ?? {}
        if (grantId !== undefined) await revoke(grantId)
        throw alreadyUsed(grantId)
      },
      destroy: async (id) => void (await rpc('delete_oauth_record', named(id))),
      revokeByGrantId: revoke,
    }
  }

  const clients: Adapter = {
    ...unsupported,
    async find(id) {
      // Others have never been registered.
      if (!/^[A-Za-z0-9_-]{43}$/.test(id)) return undefined
      return ((await rpc('find_oauth_client', { client_id: id })) as AdapterPayload | null) ?? undefined
    },
    upsert: async (id, metadata) => void (await rpc('save_oauth_client', { client_id: id, metadata })),
  }

  const grants: Adapter = {
    ...unsupported,
    async find(id) {
      const grant = (await rpc('find_oauth_grant', { grant_id: id })) as Grant | null
      return grant === null ? undefined : payloadOf(id, grant)
    },
    destroy: revoke,
    revokeByGrantId: revoke,
  }

  return (kind) => (kind === 'Client' ? clients : kind === 'Grant' ? grants : records(kind))
}

const payloadOf = (id: string, { client_id, resource, scopes, created_at, expires_at }: Grant): AdapterPayload => ({
  jti: id,
  kind: 'Grant',
  accountId: account,
  clientId: client_id,
  resources: { [resource]: scopes.join(' ') },
  iat: created_at,
  exp: expires_at,
})
