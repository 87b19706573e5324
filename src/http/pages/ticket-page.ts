// The ticket page at /t/TOKEN, for whoever has the link: no key, no cookie. Unknown, malformed and dead tokens have one answer. Must log no
// token, and let nothing but the page itself keep it.

import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import { LRUCache } from 'lru-cache'
import { ApiError, toApiError } from '../../gateway/api-error.ts'
import type { DataApi } from '../../gateway/data-api.ts'
import type { Tokens } from '../../gateway/tokens.ts'
import { logosOf } from '../../guests/logo-images.ts'
import { languages, wordsOf } from '../../guests/words/index.ts'
import { qrPictures } from '../../operations/ticket-qr.ts'
import type { limitFailures } from '../middleware/authenticate.ts'
import { apiErrorOfExpress, methodNotAllowed } from '../middleware/errors.ts'
import { digestOf, isKnown } from '../middleware/etag.ts'
import { logError } from '../middleware/log-requests.ts'
import { createLookups } from '../middleware/secret-lookups.ts'
import { pageCalendar, pageFacts, type TicketPage } from './ticket-page-facts.ts'
import { noTicketPage, pageFiles, policyOf, type SentPage, ticketPage } from './ticket-page-html.ts'

export type TicketPageParts = {
  dataApi: DataApi
  tokens: Tokens
  /** Shared with the API. */
  countFailure: ReturnType<typeof limitFailures>
  mailFrom: string
}

// refresh.ts and service-worker.ts go by it: an answer without it, such as the 404 of a proxy, says nothing of the ticket.
const verdictHeader = 'Usher-Ticket'

// An open page asks three times a minute. One ticket must not keep the database busy; each process counts for itself.
const opensPerMinute = 120

export function ticketPageRouter({ dataApi, tokens, countFailure, mailFrom }: TicketPageParts): Router {
  const lookups = createLookups<TicketPage>(
    {
      isWellFormed: isToken,
      async resolve(token) {
        const page = isToken(token) && (await dataApi.rpc('get_ticket_page', { token }, await tokens.forGateway()))
        if (!page) throw noTicket()
        return page as TicketPage
      },
    },
    countFailure,
  )
  const logoOf = logosOf(async (fn, args) => dataApi.rpc(fn, args, await tokens.forGateway()))
  // By token, of those that were valid: invalid ones are counted by their address.
  const opened = new LRUCache<string, number>({ max: 50_000, ttl: 60_000, noUpdateTTL: true })
  const find = async (req: Request, res: Response) => {
    res.locals.operation = 'get_ticket_page'
    const token = req.params.token as string
    if ((opened.get(token) ?? 0) >= opensPerMinute) throw openedTooOften()
    const page = await lookups.resolve(token, req, res)
    opened.set(token, (opened.get(token) ?? 0) + 1)
    return page
  }

  const router = Router()
  router.use('/t', setHeaders)
  router.get(
    '/t/service-worker.js',
    (_req, res) => void res.type('js').set('Cache-Control', 'no-cache').send(pageFiles().serviceWorker),
  )
  router.get('/t/:token', async (req, res) => {
    const page = await find(req, res)
    // Addresses in the page are relative, for a proxy may strip a path.
    if (req.path.endsWith('/')) return void res.redirect(301, `../${req.params.token}`)
    const etag = etagOf(page)
    res.set({ ETag: etag, [verdictHeader]: 'found' })
    if (isKnown(etag, req.get('If-None-Match'))) return void res.status(304).end()
    const { ticket_code } = page.attendee
    // Drawn in a thirtieth of the time that a PNG takes, and sharp on paper.
    const picture = ticket_code === null ? undefined : await qrPictures.svg.draw({ ticket_code })
    const logo = await logoOf(page.organisation)
    const pictures = {
      qr: picture && dataUrl('image/svg+xml', Buffer.from(picture).toString('base64')),
      logo: logo && dataUrl(logo.content_type, logo.content),
    }
    send(res, ticketPage(pageFacts(page), req.params.token, pictures))
  })
  router.get('/t/:token/ticket.ics', async (req, res) => {
    const page = await find(req, res)
    const calendar = pageCalendar(page, mailFrom)
    if (calendar === undefined) throw noTicket()
    res
      .type('text/calendar; charset=utf-8; method=PUBLISH')
      // Telephones offer an entry that is shown to their calendar, and only save one that is an attachment.
      .set('Content-Disposition', 'inline; filename="event.ics"')
      .send(calendar)
  })
  router.all(['/t/:token', '/t/:token/ticket.ics'], ({ method }) => {
    throw methodNotAllowed(method, 'GET, HEAD', 'A ticket page is only read.')
  })
  router.use('/t', () => {
    throw noTicket()
  })
  router.use('/t', answerError)
  return router
}

const send = (res: Response, { html, policy }: SentPage): void =>
  void res.set('Content-Security-Policy', policy).type('html').send(html)

const dataUrl = (type: string, base64: string): string => `data:${type};base64,${base64}`

const isToken = (text: string): boolean => /^[0-9a-f]{32}$/.test(text)

const noTicket = () => new ApiError(404, 'not_found', 'There is no such ticket.')

const openedTooOften = () =>
  new ApiError(429, 'rate_limited', 'The ticket page was opened too often.', { headers: { 'Retry-After': '60' } })

const setHeaders: RequestHandler = (_req, res, next) => {
  res.set({
    // Of what is no page; a page has its own.
    'Content-Security-Policy': policyOf(''),
    'Cache-Control': 'private, no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Robots-Tag': 'noindex',
  })
  next()
}

/** Of what the page shows, so that nothing is drawn for a browser that has it. */
const etagOf = (page: TicketPage): string => `"${digestOf(pageFiles().version + JSON.stringify(page))}"`

/** As server.ts answers errors, but for people. */
const answerError: ErrorRequestHandler = (error, req, res, _next) => {
  const answer = apiErrorOfExpress(error) ?? toApiError(error)
  if (answer.status >= 500) logError(req, res, answer.cause ?? error, answer.message)
  if (res.headersSent) return void res.destroy()
  // A path that cannot be decoded leads to no ticket either.
  const isUnknown = answer.status < 429 && answer.status !== 405
  res.locals.code = isUnknown ? 'not_found' : answer.code
  res.set(answer.headers)
  if (answer.status === 405) return void res.status(405).type('text').send(answer.message)
  // Of which event it is nobody knows.
  const words = wordsOf(req.acceptsLanguages(Object.keys(languages)) || undefined)
  res.status(isUnknown ? 404 : answer.status)
  if (isUnknown) res.set(verdictHeader, 'unknown')
  send(res, noTicketPage(isUnknown ? 'unknown' : 'busy', words))
}
