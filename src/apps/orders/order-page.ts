// The page at /o/TOKEN for the buyer of an order, with its receipt and its tickets on paper: no key, no cookie. The token stands in e-mails
// to the buyer alone. It is only read.

import { type Request, type Response, Router } from 'express'
import { allowOnly, notFound, readerOf, type SecretPageParts, secretPages, sendPage } from '../secret-page.ts'
import { qrAddress } from '../tickets/ticket-page.ts'
import { type OrderPage, orderFacts } from './order-page-facts.ts'
import { orderPage, receiptPage, ticketsPage } from './order-page-html.ts'

const ticketsPerPage = 100

export function orderPageRouter(parts: SecretPageParts): Router {
  const find = readerOf<OrderPage>('get_order_page', parts)
  const read = async (req: Request, res: Response) => orderFacts(await find(req, res))

  // Addresses in the pages are relative, so one with a slash at its end leads nowhere.
  const router = Router({ strict: true })
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
  router.all(
    ['/o/:token', '/o/:token/receipt', '/o/:token/tickets'],
    allowOnly('GET, HEAD', 'An order page is only read.'),
  )
  return secretPages('/o', router)
}
