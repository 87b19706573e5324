// The authorization server, which is oidc-provider: authorization code with S256, refresh, revocation, registration, resource indicators and
// client id metadata documents. Everything else that it can do is off. It knows nothing of keys: what a person allows is decided in
// interaction.ts and in SQL.

import { generateKeyPairSync } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import type { Request, Response } from 'express'
import { LRUCache } from 'lru-cache'
import type { Configuration, JWK, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Logger } from 'pino'
import { ApiError } from '../../gateway/api-error.ts'
import { createCache } from '../../gateway/cache.ts'
import type { GatewayRpc } from '../../gateway/gateway-rpc.ts'
import { type Addresses, cookieNameAt, oauthPath } from '../../http/addresses.ts'
import { addressOf } from '../../http/middleware/secret-lookups.ts'
import { scopes } from '../../operations/operation.ts'
import type { FetchDocument } from '../../process/outbound/fetch-document.ts'
import { createAdapter } from './adapter.ts'
import { type ClientMetadata, settleMetadata } from './client-metadata.ts'
import { clientAuthentication, signingAlgorithms } from './metadata.ts'
import { clientFailed, failurePage } from './page.ts'

export type ProviderParts = {
  rpc: GatewayRpc
  fetchDocument: FetchDocument
  /** Signs cookies; the same in all processes. */
  cookieSecret: string
  log: Logger
}

export type ProviderOf = (addresses: Addresses) => Promise<Provider>

const documentsPerMinute = 20
const minute = 60
const hour = 60 * minute
const interactionSeconds = 15 * minute
const codeSeconds = 2 * minute
const accessTokenSeconds = hour

/** One for each issuer, made when it is first needed: the library costs 0.1 s of processor time and 10 MB. */
export function createProviders(parts: ProviderParts): ProviderOf {
  // Without PUBLIC_URL the Host header says which: anybody may make one up.
  const providers = createCache<Promise<Provider>>(10)
  return (addresses) => {
    const known = providers.get(addresses.issuer)
    if (known !== undefined) return known
    const provider = createProvider(addresses, parts)
    providers.set(addresses.issuer, provider)
    provider.catch(() => providers.delete(addresses.issuer))
    return provider
  }
}

/** The library's own ending of a request, with the addresses that others see: a proxy may have stripped a path, or TLS. */
export function passOn(provider: Provider, { origin, path }: Addresses, req: Request, res: Response): Promise<void> {
  const { host, protocol } = new URL(origin)
  req.originalUrl = path + oauthPath + req.url
  Object.assign(req.headers, { 'x-forwarded-host': host, 'x-forwarded-proto': protocol.replace(':', '') })
  return provider.callback()(req, res)
}

async function createProvider(addresses: Addresses, parts: ProviderParts): Promise<Provider> {
  const library = await import('oidc-provider')
  const { InvalidGrant, InvalidTarget } = library.errors
  const { interactionPolicy } = library
  const { allowFetch, fetch } = boundFetches(parts.fetchDocument)
  // A code or refresh token was used a second time, or is one too many, which ends its grant.
  const onReplay = (grant_id: string | undefined) =>
    parts.log.warn(
      { grant_id },
      'a code or refresh token was used twice, or renewed 2,000 times: the grant has ended, its tokens may be stolen',
    )
  const onError = (err: unknown) => parts.log.error({ err }, 'sign-in failed')
  const adapter = createAdapter(parts.rpc, (grantId) => {
    onReplay(grantId)
    return new InvalidGrant('it was used before, or its grant was renewed too often')
  })
  // The library gives each a path of its own.
  const nameOf = (name: string) => cookieNameAt(addresses, name).replace('__Host-', '__Secure-')
  const provider = new library.Provider(addresses.issuer, {
    adapter,
    ...quiet,
    jwks: { keys: [unusedKey()] },
    cookies: {
      keys: [parts.cookieSecret],
      names: {
        session: nameOf('usher_oauth'),
        interaction: nameOf('usher_oauth_step'),
        resume: nameOf('usher_oauth_resume'),
      },
      long: { httpOnly: true, sameSite: 'lax', path: `${addresses.path}${oauthPath}` },
      short: { httpOnly: true, sameSite: 'lax' },
    },
    routes: { authorization: '/auth', token: '/token', registration: '/register', revocation: '/revoke' },
    pkce: { required: () => true },
    ttl: {
      AuthorizationCode: codeSeconds,
      Interaction: interactionSeconds,
      // It connects the steps of one sign-in, no more. Who is signed in is in a cookie of Usher's own.
      Session: interactionSeconds,
      Grant: hour,
      IdToken: hour,
      AccessToken: (context) => Math.min(accessTokenSeconds, secondsLeft(context)),
      RefreshToken: (context) => secondsLeft(context),
    },
    features: {
      ...off,
      revocation: {
        enabled: true,
        allowedPolicy: async (_context, client, token) => token.clientId === client.clientId,
      },
      registration: { enabled: true, issueRegistrationAccessToken: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: async (_context, _client, oneOf) => (Array.isArray(oneOf) ? oneOf : addresses.resource),
        useGrantedResource: async () => true,
        async getResourceServerInfo({ oidc }, resource) {
          if (Array.isArray(oidc.params?.resource)) throw new InvalidTarget('only one resource can be asked for')
          if (!isResource(resource, addresses)) throw new InvalidTarget()
          return { scope: scopes.join(' '), audience: addresses.resource, accessTokenFormat: 'opaque' }
        },
      },
      clientIdMetadataDocument: {
        enabled: true,
        ack: 'draft-02',
        allowFetch: async (context) => allowFetch(context?.req),
      },
    },
    fetch,
    fetchResponseBodyLimits: { 'client_id metadata document': 16 * 1024, jwks_uri: 64 * 1024 },
    clientDefaults: { token_endpoint_auth_method: 'none', id_token_signed_response_alg: 'ES256' },
    clientAuthMethods: [...clientAuthentication],
    // One property, so that the function is called once.
    extraClientMetadata: {
      properties: ['software_id'],
      validator(_context, _name, _value, metadata) {
        const settled = metadata as unknown as ClientMetadata & { invalidate(message: string): never }
        settleMetadata(settled, (message) => settled.invalidate(message))
      },
    },
    interactions: {
      policy: policyOf(interactionPolicy),
      url: async (_context, { uid }) => `${addresses.path}${oauthPath}/sign-in/${uid}`,
    },
    findAccount: async (_context, sub) => ({ accountId: sub, claims: async () => ({ sub }) }),
    loadExistingGrant: async ({ oidc }) => {
      const id = oidc.result?.consent?.grantId
      return id === undefined ? undefined : oidc.provider.Grant.find(id)
    },
    renderError: (context, { error, error_description }) => showError(context, error, error_description),
  } as Configuration)
  provider.proxy = true
  // Anybody can be a client: without a person's decision nobody is sent on, except to a program on the device (RFC 9700, section 4.11.2).
  provider.use(async (context, next) => {
    await next()
    const to = String(context.response.get('Location') ?? '')
    if (context.oidc?.route !== 'authorization' || to.startsWith('/') || !URL.canParse(to) || /^http:/.test(to)) return
    const { searchParams, hash } = new URL(to)
    const answer = searchParams.has('error') ? searchParams : new URLSearchParams(hash.slice(1))
    context.remove('Location')
    context.status = 400
    showError(context, answer.get('error'), answer.get('error_description'))
  })
  provider.on('grant.revoked', ({ oidc }, grantId) => {
    if (oidc.route === 'token') onReplay(grantId)
  })
  provider.on('server_error', (context, error) => {
    if (!(error instanceof ApiError && error.status === 429)) onError(error)
    if (!(error instanceof ApiError)) return
    context.status = error.status === 429 ? 429 : 503
    context.set('Retry-After', error.headers['Retry-After'] ?? '60')
    // Of `server_error` a client makes a new sign-in. This it tries again. A person gets a page.
    if (typeof context.body === 'object') context.body = laterAnswer(error.message)
  })
  // Koa's own: without a listener it prints.
  ;(provider as EventEmitter).on('error', onError)
  return provider
}

type ErrorContext = Pick<KoaContextWithOIDC, 'type' | 'body' | 'set'>

/** Answers a person, who cannot be sent back to a client. */
function showError(context: ErrorContext, ...detail: (string | null | undefined)[]): void {
  const { html, policy } = failurePage(clientFailed, detail.filter(Boolean).join(': '))
  context.type = 'html'
  context.set('Content-Security-Policy', policy)
  context.body = html
}

/** What the library fetches at addresses that strangers gave. */
function boundFetches(fetchDocument: FetchDocument) {
  // By address, per minute: each is a request to somebody else, and one that fails is not remembered.
  const fetches = createCache<number>(10_000, { ttl: 60_000, noUpdateTTL: true })
  const allowFetch = (req: unknown): boolean => {
    if (req === undefined) return true
    const address = addressOf(req as Request)
    const count = (fetches.get(address) ?? 0) + 1
    fetches.set(address, count)
    return count <= documentsPerMinute
  }
  // Anybody can have a key set fetched, in the name of its client. It is kept by its address, and nothing is counted that strangers share:
  // who sends bad assertions neither floods a host nor locks out its clients. A failure is kept shortly, so that a host can recover.
  const keySets = new LRUCache<string, Awaited<ReturnType<FetchDocument>>>({
    max: 1_000,
    ttl: 60_000,
    ignoreFetchAbort: true,
    async fetchMethod(url, _stale, { options }) {
      const answer = await fetchDocument(url).catch(() => new Response(null, { status: 502 }))
      if (!answer.ok) options.ttl = 5_000
      return answer
    },
  })
  async function fetch(url: URL | string, options?: RequestInit): ReturnType<FetchDocument> {
    const { href } = new URL(url)
    // A metadata document, which the library keeps, and allowFetch counts.
    if (options?.redirect === 'manual') return fetchDocument(href)
    return (await keySets.forceFetch(href)).clone()
  }
  return { allowFetch, fetch }
}

/** As RFC 6749, section 5.2, for what a client should try again. */
export const laterAnswer = (description: string) => ({
  error: 'temporarily_unavailable',
  error_description: description,
})

/** A client may have been configured with toolsets in its query; the port and the path must be ours. */
function isResource(given: string, { resource }: Addresses): boolean {
  const [url, own] = [URL.parse(given), new URL(resource)]
  return (
    url !== null && url.origin === own.origin && url.pathname.replace(/\/$/, '') === own.pathname && url.hash === ''
  )
}

/** Until the grant ends. A token cannot outlive it. */
function secondsLeft({ oidc }: { oidc: { entities: { Grant?: { exp?: number } } } }): number {
  const { exp = 0 } = oidc.entities.Grant ?? {}
  return Math.max(1, exp - Math.floor(Date.now() / 1000))
}

/** Every request is consented to on a page of Usher: there may be another client behind the same id. */
function policyOf({ Check, Prompt }: typeof import('oidc-provider').interactionPolicy) {
  const unless = (name: 'login' | 'consent') =>
    new Prompt(
      { name, requestable: true },
      new Check(`no_${name}`, 'a person has to decide', (context) => context.oidc.result?.[name] === undefined),
    )
  return [unless('login'), unless('consent')]
}

const off = {
  devInteractions: { enabled: false },
  dPoP: { enabled: false },
  pushedAuthorizationRequests: { enabled: false },
  rpInitiatedLogout: { enabled: false },
  userinfo: { enabled: false },
}

/** Settings of what is off, which the library warns of, or lists, where they are left out. */
const quiet = {
  claims: {},
  scopes: [],
  responseTypes: ['code'],
  clientBasedCORS: () => false,
  expiresWithSession: async () => false,
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
  enabledJWA: { idTokenSigningAlgValues: ['ES256'], clientAuthSigningAlgValues: [...signingAlgorithms] },
} satisfies Partial<Configuration>

/** Tokens are opaque: nothing is signed with it. */
const unusedKey = (): JWK =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }) as JWK
