// What pages have in common whose address is a secret, such as /t/TOKEN: no key, no cookie. Unknown, malformed and dead tokens have one
// answer. Must log no token, and let nothing but the page itself keep it.

import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import { ApiError } from '../gateway/api-error.ts'
import { createCache } from '../gateway/cache.ts'
import type { DataApi } from '../gateway/data-api.ts'
import type { Tokens } from '../gateway/tokens.ts'
import { languages, wordsOf } from '../guests/words/index.ts'
import type { limitFailures } from '../http/middleware/authenticate.ts'
import { beginError, methodNotAllowed } from '../http/middleware/errors.ts'
import { createLookups } from '../http/middleware/secret-lookups.ts'
import { noPage, pageFiles, policyOf, type SentPage } from './tickets/ticket-page-html.ts'

/** A field that is repeated is a list. */
export type Form = Record<string, string | string[] | undefined>

export type SecretPageParts = {
  dataApi: DataApi
  tokens: Tokens
  /** Shared with the API. */
  countFailure: ReturnType<typeof limitFailures>
}

/** A function that answers what a token leads to, or null. */
type Read = 'get_ticket_page' | 'get_opt_out' | 'get_guest_page' | 'get_offer_page' | 'get_order_page'

// Of a ticket half as long as that of a link in e-mails alone.
export const isToken = (text: string): boolean => /^([0-9a-f]{32}){1,2}$/.test(text)

export const notFound = () => new ApiError(404, 'not_found', 'There is no such page.')

// An open page asks three times a minute. One token must not keep the database busy; each process counts for itself.
const opensPerMinute = 120

/** @returns what the token of a request leads to. It throws ApiError 404 or 429. */
export function readerOf<T>(
  read: Read,
  { dataApi, tokens, countFailure }: SecretPageParts,
): (req: Request, res: Response) => Promise<T> {
  const lookups = createLookups<T>(
    {
      isWellFormed: isToken,
      async resolve(token) {
        const found = isToken(token) && (await dataApi.rpc(read, { token }, await tokens.forGateway()))
        if (!found) throw notFound()
        return found as T
      },
    },
    countFailure,
  )
  // By token, of those that were valid: invalid ones are counted by their address.
  const opened = createCache<number>(50_000, { ttl: 60_000, noUpdateTTL: true })
  return async (req, res) => {
    res.locals.operation = read
    const token = req.params.token as string
    if ((opened.get(token) ?? 0) >= opensPerMinute) throw openedTooOften()
    const found = await lookups.resolve(token, req, res)
    opened.set(token, (opened.get(token) ?? 0) + 1)
    return found
  }
}

const parseForm = express.urlencoded({ extended: false, limit: '256kb', parameterLimit: 6000 })

/** The fields of a form that was posted, or undefined where it is too large. */
export const formOf = (req: Request, res: Response): Promise<Form | undefined> =>
  new Promise((resolve, reject) =>
    parseForm(req, res, (error?: { type?: string }) => {
      if (error?.type === 'entity.too.large' || error?.type === 'parameters.too.many') resolve(undefined)
      else if (error) reject(error)
      else resolve(req.body ?? {})
    }),
  )

const openedTooOften = () =>
  new ApiError(429, 'rate_limited', 'The page was opened too often.', { headers: { 'Retry-After': '60' } })

const setSecretHeaders: RequestHandler = (_req, res, next) => {
  res.set({
    // Of what is no page; a page has its own.
    'Content-Security-Policy': policyOf({ script: pageFiles().script }),
    'Cache-Control': 'private, no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Robots-Tag': 'noindex',
  })
  next()
}

/** A browser says where a form was that it sends; nothing else needs to. */
export const refuseOtherSites: RequestHandler = (req, _res, next) => {
  if (req.get('Sec-Fetch-Site') === 'cross-site') throw notFound()
  next()
}

export const sendPage = (res: Response, { html, policy }: SentPage): void =>
  void res.set('Content-Security-Policy', policy).type('html').send(html)

export const allowOnly =
  (allow: string, hint: string): RequestHandler =>
  ({ method }) => {
    throw methodNotAllowed(method, allow, hint)
  }

/** The routes of a kind of page, with what all kinds answer beside them. */
export const secretPages = (
  path: string,
  routes: Router,
  pageOf: typeof noPage = noPage,
  headersOfUnknown = {},
): Router =>
  Router()
    .use(path, setSecretHeaders)
    .use(routes)
    .use(path, () => {
      throw notFound()
    })
    .use(path, answerError(pageOf, headersOfUnknown))

/** As server.ts answers errors, but for people. @param pageOf the page for a token that leads nowhere, and for one that cannot be asked. */
const answerError =
  (pageOf: typeof noPage, headersOfUnknown: object): ErrorRequestHandler =>
  (error, req, res, _next) => {
    const answer = beginError(error, req, res)
    if (answer === undefined) return
    // A path that cannot be decoded leads nowhere either.
    const isUnknown = answer.status < 429 && answer.status !== 405
    if (isUnknown) res.locals.code = 'not_found'
    if (answer.status === 405) return void res.status(405).type('text').send(answer.message)
    // Of which event it is nobody knows.
    const words = wordsOf(req.acceptsLanguages(Object.keys(languages)) || undefined)
    res.status(isUnknown ? 404 : answer.status)
    if (isUnknown) res.set(headersOfUnknown)
    sendPage(res, pageOf(isUnknown ? 'unknown' : 'busy', words))
  }
