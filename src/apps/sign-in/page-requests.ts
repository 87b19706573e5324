// What requests of the pages have in common: their address, their headers and form, their limit, and how errors are answered.

import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import type { Logger } from 'pino'
import { ApiError } from '../../gateway/api-error.ts'
import type { DataApi } from '../../gateway/data-api.ts'
import type { Principal } from '../../gateway/principals.ts'
import type { Tokens } from '../../gateway/tokens.ts'
import type { Addresses, AddressesOf } from '../../http/addresses.ts'
import { limitByAddress } from '../../http/middleware/authenticate.ts'
import { beginError } from '../../http/middleware/errors.ts'
import type { SecretLookups } from '../../http/middleware/secret-lookups.ts'
import { clientFailed, failurePage, send, tooManyRequests } from './page.ts'

export type PageParts = {
  dataApi: DataApi
  tokens: Tokens
  log: Logger
  publicUrl: string | undefined
  /** Of keys. */
  lookups: SecretLookups<Principal>
}

export const addressesOfPage = (req: Request): Addresses => (req.res as Response).locals.addresses as Addresses

/** Passes on where nobody may sign in. */
export const beginPage =
  (addressesOf: AddressesOf): RequestHandler =>
  (req, res, next) => {
    const addresses = addressesOf(req)
    if (addresses === undefined) return next('router')
    res.locals.addresses = addresses
    res.set({
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'X-Frame-Options': 'DENY',
      'X-Robots-Tag': 'noindex',
    })
    next()
  }

export const stepsPerMinute = 120

/** By address. */
export const limitTo = (perMinute: number, log: Logger): RequestHandler =>
  limitByAddress(perMinute, tooManyRequestsOfAddress, log)

const tooManyRequestsOfAddress = () =>
  new ApiError(429, 'rate_limited', 'Too many requests came from this address.', { headers: { 'Retry-After': '60' } })

export const form = express.urlencoded({ extended: false, limit: '16kb', parameterLimit: 50 })

export const bodyOf = (req: Request): Record<string, unknown> => (req.body as Record<string, unknown> | undefined) ?? {}

/** As server.ts answers errors, but for people where a page was asked for. */
export const answerError: ErrorRequestHandler = (error, req, res, next) => {
  if (req.accepts('json', 'html') !== 'html') return next(error)
  const answer = beginError(error, req, res)
  if (answer === undefined) return
  const sentence = answer.status === 429 ? tooManyRequests : clientFailed
  send(res, failurePage(sentence, answer.message), answer.status)
}
