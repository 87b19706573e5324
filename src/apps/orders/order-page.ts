// The page at /o/TOKEN for the buyer of an order, with its receipt and its tickets on paper: no key, no cookie. The token stands in e-mails
// to the buyer alone. It is only read.

import { type Request, type Response, Router } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import type { Words } from '../../guests/words/index.ts'
import { methodNotAllowed } from '../../http/middleware/errors.ts'
import { answerError, readerOf, type SecretPageParts, sendPage, setSecretHeaders } from '../secret-page.ts'
import { qrAddress } from '../tickets/ticket-page.ts'
import { onlySaying, type SentPage, stillPage } from '../tickets/ticket-page-html.ts'
import { type OrderPage, orderFacts } from './order-page-facts.ts'
import { orderPage, receiptPage, ticketsPage } from './order-page-html.ts'

const ticketsPerPage = 100

export function orderPageRouter(parts: SecretPageParts): Router {
  const find = readerOf<OrderPage>({ read: 'get_order_page', isToken, notFound }, parts)
  const read = async (req: Request, res: Response) => orderFacts(await find(req, res))

  // Addresses in the pages are relative, so one with a slash at its end leads nowhere.
  const router = Router({ strict: true })
  router.use('/o', setSecretHeaders)
  router.get('/o/:token', async (req, res) => sendPage(res, orderPage(await read(req, res), req.params.token)))
  router.get('/o/:token/receipt', async (req, res) => {
    const facts = await read(req, res)
    if (!facts.hasReceipt) return void res.redirect(302, `../${req.params.token}`)
    sendPage(res, receiptPage(facts, req.params.token))
  })
  router.get('/o/:token/tickets', async (req, res) => {
    const facts = await read(req, res)
    if (facts.printed.length === 0) return void res.redirect(302, `../${req.params.token}`)
    const pages = Math.ceil(facts.printed.length / ticketsPerPage)
    const page = Number(req.query.page ?? 1)
    if (!(Number.isInteger(page) && page >= 1 && page <= pages)) throw notFound()
    const shown = facts.printed.slice((page - 1) * ticketsPerPage, page * ticketsPerPage)
    const tickets = await Promise.all(shown.map(async (ticket) => ({ ...ticket, qr: await qrAddress(ticket.code) })))
    sendPage(res, ticketsPage(facts, req.params.token, { tickets, page, pages }))
  })
  router.all(['/o/:token', '/o/:token/receipt', '/o/:token/tickets'], ({ method }) => {
    throw methodNotAllowed(method, 'GET, HEAD', 'An order page is only read.')
  })
  router.use('/o', () => {
    throw notFound()
  })
  router.use('/o', answerError(noPage))
  return router
}

const isToken = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const notFound = () => new ApiError(404, 'not_found', 'There is no such order.')

function noPage(kind: 'unknown' | 'busy', words: Words): SentPage {
  const { unknownTitle, unknown, busy } = words.orderPage
  const [title, sentence] = kind === 'unknown' ? [unknownTitle, unknown] : [words.page.busyTitle, busy]
  return stillPage(title, onlySaying(title, sentence), words)
}
