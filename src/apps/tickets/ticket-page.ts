// The ticket page at /t/TOKEN, for whoever has the link: no key, no cookie. Unknown, malformed and dead tokens have one answer. Must log no
// token, and let nothing but the page itself keep it.

import { Router } from 'express'
import { digestOf, isKnown } from '../../http/middleware/etag.ts'
import { qrPictures } from '../../operations/ticket-qr.ts'
import { allowOnly, notFound, readerOf, type SecretPageParts, secretPages, sendPage } from '../secret-page.ts'
import { pageCalendar, pageFacts, type TicketPage } from './ticket-page-facts.ts'
import { noPage, pageFiles, ticketPage } from './ticket-page-html.ts'

// refresh.ts and service-worker.ts go by it: an answer without it, such as the 404 of a proxy, says nothing of the ticket.
const verdictHeader = 'Usher-Ticket'

export function ticketPageRouter({ mailFrom, ...parts }: SecretPageParts & { mailFrom: string }): Router {
  const { dataApi, tokens } = parts
  const find = readerOf<TicketPage>('get_ticket_page', parts)

  const router = Router()
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
    const qr = ticket_code === null ? undefined : await qrAddress(ticket_code)
    sendPage(res, ticketPage(pageFacts(page), req.params.token, { qr, logo: page.organisation.logo_url }))
  })
  router.get('/t/:token/ticket.ics', async (req, res) => {
    const page = await find(req, res)
    const calendar = pageCalendar(page, mailFrom)
    if (calendar === undefined) throw notFound()
    res
      .type('text/calendar; charset=utf-8; method=PUBLISH')
      // Telephones offer an entry that is shown to their calendar, and only save one that is an attachment.
      .set('Content-Disposition', 'inline; filename="event.ics"')
      .send(calendar)
  })
  router.all(['/t/:token', '/t/:token/ticket.ics'], allowOnly('GET, HEAD', 'A ticket page is only read.'))
  // A button each: what was pressed twice, or on two devices, is what it says.
  router.post(['/t/:token/emails/on', '/t/:token/emails/off'], async (req, res) => {
    await find(req, res)
    res.locals.operation = 'switch_ticket_emails'
    const { token } = req.params
    const emails = req.path.endsWith('/on')
    const isTicket = await dataApi.rpc('switch_ticket_emails', { token, emails }, await tokens.forGateway())
    if (!isTicket) throw notFound()
    res.redirect(303, `../../${token}`)
  })
  // Its script asks again.
  return secretPages('/t', router, (kind, words) => noPage(kind, words, {}), { [verdictHeader]: 'unknown' })
}

/** A data URL: drawn in a thirtieth of the time that a PNG takes, and sharp on paper. */
export const qrAddress = async (ticket_code: string): Promise<string> =>
  `data:image/svg+xml;base64,${Buffer.from(await qrPictures.svg.draw({ ticket_code })).toString('base64')}`

/** Of what the page shows, so that nothing is drawn for a browser that has it. */
const etagOf = (page: TicketPage): string => `"${digestOf(pageFiles().version + JSON.stringify(page))}"`
