// The page of a link to an export, at /exports/TOKEN: for whoever has the link, without a key. Opening it spends nothing, for previews and
// crawlers open links; its button sends a POST, which is the file. Must log no token.

import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import { ApiError, toApiError } from '../../gateway/api-error.ts'
import { hashOf } from '../../gateway/api-key.ts'
import type { DataApi } from '../../gateway/data-api.ts'
import type { Exports } from '../../gateway/exports.ts'
import type { Principal } from '../../gateway/principals.ts'
import type { Source, Tokens } from '../../gateway/tokens.ts'
import { sendCsv } from '../../http/csv.ts'
import type { limitFailures } from '../../http/middleware/authenticate.ts'
import { apiErrorOfExpress, methodNotAllowed } from '../../http/middleware/errors.ts'
import { logError } from '../../http/middleware/log-requests.ts'
import { createLookups } from '../../http/middleware/secret-lookups.ts'
import type { Operation } from '../../operations/operation.ts'
import { exportPage, noExportPage, policyOfExport, type SentPage } from './export-page-html.ts'

/** As `api.get_export_link` returns it. */
type Link = {
  id: string
  operation: string
  arguments: Record<string, unknown>
  source: Source
  expires_at: string
  organisation: { name: string; accent_colour: string | null }
  event: string | null
  principal: Principal
}
type Found = Link & { declared: Operation }

export type ExportPageParts = {
  operations: readonly Operation[]
  dataApi: DataApi
  tokens: Tokens
  exports: Exports
  /** Shared with the API. */
  countFailure: ReturnType<typeof limitFailures>
}

export function exportPageRouter({ operations, dataApi, tokens, exports, countFailure }: ExportPageParts): Router {
  const lookups = createLookups<Found>(
    {
      isWellFormed: isToken,
      async resolve(token) {
        if (!isToken(token)) throw noExport()
        const args = { token_hash: hashOf(token) }
        const link = (await dataApi.rpc('get_export_link', args, await tokens.forGateway())) as Link | null
        const declared = operations.find(({ name, csv }) => name === link?.operation && csv !== undefined)
        // Without its scope the key could not make the link.
        if (!link || !declared?.scope || !link.principal.scopes.includes(declared.scope)) throw noExport()
        return { ...link, declared }
      },
    },
    countFailure,
  )
  const find = async (req: Request, res: Response) => {
    const link = await lookups.resolve(req.params.token as string, req, res)
    res.locals.operation = link.operation
    return link
  }

  const router = Router()
  router.use('/exports', setHeaders)
  router.get('/exports/:token', async (req, res) => {
    const { declared, organisation, event, expires_at } = await find(req, res)
    send(res, exportPage({ title: declared.title, organisation, event, expiresAt: expires_at }))
  })
  router.post('/exports/:token', async (req, res) => {
    const { declared, principal, source, id, arguments: args } = await find(req, res)
    // People open it in a spreadsheet, and Excel takes it for another encoding without the mark.
    await sendCsv(res, await exports.open(declared, principal, source, args, { id }), true)
  })
  router.all('/exports/:token', ({ method }) => {
    throw methodNotAllowed(method, 'GET, HEAD, POST', 'A link to an export is opened, or its file downloaded.')
  })
  router.use('/exports', () => {
    throw noExport()
  })
  router.use('/exports', answerError)
  return router
}

const send = (res: Response, { html, policy }: SentPage): void =>
  void res.set('Content-Security-Policy', policy).type('html').send(html)

const isToken = (text: string): boolean => /^[0-9a-f]{32}$/.test(text)

const noExport = () => new ApiError(404, 'not_found', 'There is no such export, or its link has expired.')

const setHeaders: RequestHandler = (_req, res, next) => {
  res.set({
    'Content-Security-Policy': policyOfExport(''),
    'Cache-Control': 'private, no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Robots-Tag': 'noindex',
  })
  next()
}

/** As server.ts answers errors, but for people. A key that is no longer valid leaves a link that is none. */
const answerError: ErrorRequestHandler = (error, req, res, _next) => {
  const answer = apiErrorOfExpress(error) ?? toApiError(error)
  if (answer.status >= 500) logError(req, res, answer.cause ?? error, answer.message)
  if (res.headersSent) return void res.destroy()
  const isUnknown = answer.status < 429 && answer.status !== 405
  res.locals.code = isUnknown ? 'not_found' : answer.code
  res.set(answer.headers)
  if (answer.status === 405) return void res.status(405).type('text').send(answer.message)
  res.status(isUnknown ? 404 : answer.status)
  send(res, noExportPage(isUnknown ? 'unknown' : 'busy'))
}
