// The page at /w/TOKEN of an offer of the waiting list: a GET shows it, and each button is a POST that answers with the page. The token is
// in the e-mails of the offer alone.

import { type Request, type Response, Router } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { momentOf } from '../../guests/event-time.ts'
import { amountOf, type Facts, factsOf, type Subject, whenLines, whereLines } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import { oneLine } from '../../guests/plain-text.ts'
import { fill, type Words } from '../../guests/words/index.ts'
import { allowOnly, readerOf, refuseOtherSites, type SecretPageParts, secretPages, sendPage } from '../secret-page.ts'
import { contactOf, entry, head, type SentPage, stillPage } from './ticket-page-html.ts'

/** As `api.get_offer_page` returns it. */
type OfferPage = Subject & {
  ticket_type: { name: string; price: number }
  offer: {
    name: string
    /** Of an accepted offer that of its ticket. */
    status: 'offered' | 'expired' | 'active' | 'awaiting_payment' | 'cancelled'
    expires_at: string
  }
  order: { reference: string | null; amount_due: number | null; payment_due_at: string | null }
}

export function offerPageRouter(parts: SecretPageParts): Router {
  const { dataApi, tokens } = parts
  const read = readerOf<OfferPage>('get_offer_page', parts)

  const act =
    (operation: 'take_offer' | 'decline_offer', input: object = {}) =>
    async (req: Request<{ token: string }>, res: Response) => {
      await read(req, res)
      res.locals.operation = operation
      const { token } = req.params
      try {
        await dataApi.rpc(operation, { token, ...input }, await tokens.forGuest())
      } catch (error) {
        if (!(error instanceof ApiError && [409, 422].includes(error.status))) throw error
        const page = await read(req, res)
        // Of what was taken, declined or expired meanwhile, or has a price now, the page itself says so.
        if (page.offer.status === 'offered')
          return sendPage(res.status(409), offerPage(page, token, error.status === 409))
      }
      res.redirect(303, `../${token}`)
    }

  const router = Router()
  router.get('/w/:token', async (req, res) => {
    const page = await read(req, res)
    // Addresses in the page are relative, for a proxy may strip a path.
    if (req.path.endsWith('/')) return void res.redirect(301, `../${req.params.token}`)
    sendPage(res, offerPage(page, req.params.token))
  })
  router.all('/w/:token', allowOnly('GET, HEAD', 'This page is read, or one of its buttons pressed.'))
  router.post('/w/:token/take', refuseOtherSites, act('take_offer', { pays: false }))
  router.post('/w/:token/order', refuseOtherSites, act('take_offer', { pays: true }))
  router.post('/w/:token/decline', refuseOtherSites, act('decline_offer'))
  return secretPages('/w', router)
}

function offerPage(page: OfferPage, token: string, isRefused = false): SentPage {
  const facts = factsOf(page)
  const { words, event, palette } = facts
  const { ticket_type: type } = page
  const [status = '', ...more] = said(page, facts, isRefused)
  const isOpen = page.offer.status === 'offered' && page.event.status !== 'cancelled'
  const main = html`<main class="ticket">
      ${head(facts)}
      <p class="status" role="status" dir="auto">${status}</p>
      ${more.map((sentence) => html`<p class="contact">${sentence}</p>`)}
      <dl>
        ${entry(words.when, whenLines(facts.time, words))}
        ${entry(words.where, whereLines(facts, words))}
        ${entry(words.ticket, [oneLine(type.name)])}
        ${type.price > 0 && entry(words.total, [amountOf(type.price, page.event.currency, words)])}
      </dl>
      ${isOpen && !isRefused && buttons(words, type.price > 0, token)}
      ${contactOf(facts)}
    </main>`
  const title = fill(words.subject, { headline: words.kinds.waiting_list_offer.headline, event })
  return stillPage(title, main, words, palette)
}

/** The sentence that matters, and what follows from it. */
function said({ event, offer, order }: OfferPage, { words, reference }: Facts, isRefused: boolean): string[] {
  const { taken, reserved, expired, declined, refused } = words.offer
  const moment = (time: string) => momentOf(time, event.timezone, words)
  if (event.status === 'cancelled') return [words.page.eventCancelled]
  if (isRefused) return [refused]
  switch (offer.status) {
    case 'offered':
      return [fill(words.kinds.waiting_list_offer.offer, { name: oneLine(offer.name), date: moment(offer.expires_at) })]
    case 'active':
      return [taken]
    case 'awaiting_payment': {
      const { pay, payBy, ticketsFollow } = words.kinds.order_confirmation
      const due = order.payment_due_at
      const amount = amountOf(order.amount_due ?? 0, event.currency, words)
      const request = fill(due ? payBy : pay, { amount, date: due ? moment(due) : '', reference })
      return [request, `${reserved} ${ticketsFollow}`]
    }
    case 'expired':
      return [expired]
    case 'cancelled':
      return [declined]
  }
}

/** Declining asks once more, without a script. */
function buttons({ offer }: Words, isPaid: boolean, token: string): Html {
  return html`<p class="contact">${isPaid ? offer.invoice : offer.free}</p>
      <form class="emails" method="post" action="${token}/${isPaid ? 'order' : 'take'}"><button class="main">${isPaid ? offer.order : offer.take}</button></form>
      <details>
        <summary>${offer.decline}</summary>
        <p>${offer.ask}</p>
        <form method="post" action="${token}/decline"><button class="final">${offer.decline}</button></form>
      </details>`
}
