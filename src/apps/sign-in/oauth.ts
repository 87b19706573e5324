// OAuth for clients of MCP, in one piece: its metadata, its authorization server at /oauth, and who may call /api/mcp/connect. The library
// behind it is loaded when somebody first signs in.

import { type ErrorRequestHandler, type RequestHandler, Router } from 'express'
import type { RateLimitRequestHandler } from 'express-rate-limit'
import { ApiError } from '../../gateway/api-error.ts'
import { gatewayRpc } from '../../gateway/gateway-rpc.ts'
import { clip, oneLine } from '../../guests/plain-text.ts'
import { addressesAt, createAddresses, oauthPath } from '../../http/addresses.ts'
import { beginError } from '../../http/middleware/errors.ts'
import { noteRoute } from '../../http/middleware/log-requests.ts'
import { scopes } from '../../operations/operation.ts'
import { createDocumentFetcher, type FetchDocument } from '../../process/outbound/fetch-document.ts'
import { authenticateClient } from './connect.ts'
import { interactionRouter } from './interaction.ts'
import { allowAnySite, metadataRouter } from './metadata.ts'
import { addressesOfPage, answerError, beginPage, limitTo, type PageParts, stepsPerMinute } from './page-requests.ts'
import { createProviders, laterAnswer, passOn } from './provider.ts'
import { createSignIns } from './sign-in.ts'

export type OAuthParts = PageParts & {
  /** Shared with the API: wrong keys and wrong tokens of an address count together. */
  failures: RateLimitRequestHandler
  /** For metadata documents of clients. */
  fetchDocument?: FetchDocument
}

// Each costs rows, or a request to somebody else.
const registrationsPerMinute = 20
// Clients that run in a data centre come from few addresses, for many people.
const tokenRequestsPerMinute = 1_200

export function createOAuth(parts: OAuthParts): { router: Router; authenticate: RequestHandler } {
  const { dataApi, tokens, log, publicUrl, failures, fetchDocument = createDocumentFetcher() } = parts
  const addressesOf = createAddresses(publicUrl)
  const rpc = gatewayRpc(dataApi, tokens)
  const providerOf = createProviders({
    rpc,
    fetchDocument,
    cookieSecret: tokens.secretFor('cookies of sign-ins'),
    log,
  })

  const router = Router()
  router.use(metadataRouter(addressesOf, publicUrl === undefined ? '' : addressesAt(publicUrl).path))

  const server = Router({ caseSensitive: true, strict: true })
  server.use(beginPage(addressesOf))
  const toLibrary: RequestHandler = async (req, res) => {
    const addresses = addressesOfPage(req)
    noteRoute(req, res, oauthPath + (req.path.split('/').length > 2 ? '/auth/{uid}' : req.path))
    await passOn(await providerOf(addresses), addresses, req, res)
  }
  server.get('/auth', limitTo(stepsPerMinute, log), settleRequest, toLibrary)
  server.get('/auth/:uid', limitTo(stepsPerMinute, log), toLibrary)
  const endpoints = ['/register', '/token', '/revoke']
  server.use(endpoints, allowAnySite)
  server.post('/register', limitTo(registrationsPerMinute, log), toLibrary)
  server.post(['/token', '/revoke'], limitTo(tokenRequestsPerMinute, log), toLibrary)
  server.use(endpoints, answerClient)
  server.use(limitTo(stepsPerMinute, log), interactionRouter(rpc, createSignIns(parts), providerOf))
  server.use(answerError)
  router.use(oauthPath, server)

  return { router, authenticate: authenticateClient(dataApi, tokens, failures, addressesOf) }
}

const maximumState = 2_000

const known = [
  'response_type',
  'client_id',
  'redirect_uri',
  'state',
  'code_challenge',
  'code_challenge_method',
  'resource',
  'prompt',
]

/**
 * What the library gets of an authorization request. Members of OpenID Connect are dropped, for some clients send them anyway. A request for
 * no scope of Usher's is one for all of them: the person decides.
 */
const settleRequest: RequestHandler = (req, _res, next) => {
  if (req.url.length > 8_000) throw new ApiError(400, 'bad_request', 'The request is too long.')
  const sent = new URL(req.url, 'http://usher.invalid').searchParams
  for (const [name, value] of sent) {
    if (value.includes('\0'))
      throw new ApiError(400, 'bad_request', `${clip(oneLine(name), 40)} contains a null character.`)
  }
  if ((sent.get('state') ?? '').length > maximumState)
    throw new ApiError(400, 'bad_request', `state must have at most ${maximumState} characters.`, { param: 'state' })
  const settled = new URLSearchParams([...sent].filter(([name]) => known.includes(name)))
  const asked = sent.getAll('scope').flatMap((each) => each.split(' '))
  const wanted = scopes.filter((scope) => asked.includes(scope))
  settled.set('scope', (wanted.length > 0 ? wanted : scopes).join(' '))
  req.url = `/auth?${settled}`
  next()
}

/** As the library answers errors: clients read no others there (RFC 6749, section 5.2). */
const answerClient: ErrorRequestHandler = (error, req, res, _next) => {
  const answer = beginError(error, req, res)
  if (answer === undefined) return
  res.status(answer.status)
  if (answer.status === 429 || answer.status >= 500) return void res.json(laterAnswer(answer.message))
  res.json({ error: 'invalid_request', error_description: answer.message })
}
