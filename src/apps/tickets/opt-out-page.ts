// The page at /u/TOKEN, to which news of an event link: a GET shows one button, and a POST switches these e-mails off, whoever sends
// it: the button, or a mail service for its user (RFC 8058). The token gives no other right.

import { type Response, Router } from 'express'
import { type Facts, factsOf, type Subject } from '../../guests/facts.ts'
import { html } from '../../guests/html.ts'
import { allowOnly, notFound, readerOf, type SecretPageParts, secretPages, sendPage } from '../secret-page.ts'
import { head, stillPage } from './ticket-page-html.ts'

/** As `api.get_opt_out` and `api.opt_out` return it. `emails`: they are switched on. */
type OptOut = Subject & { emails: boolean }

export function optOutPageRouter(parts: SecretPageParts): Router {
  const read = readerOf<OptOut>('get_opt_out', parts)
  const send = (res: Response, { emails, ...subject }: OptOut) => sendPage(res, optOutPage(factsOf(subject), emails))

  const router = Router()
  router.get('/u/:token', async (req, res) => send(res, await read(req, res)))
  // Answers the page itself: a mail service follows no redirect.
  router.post('/u/:token', async (req, res) => {
    await read(req, res)
    res.locals.operation = 'opt_out'
    const { token } = req.params
    const done = await parts.dataApi.rpc('opt_out', { token }, await parts.tokens.forGateway())
    if (!done) throw notFound()
    send(res, done as OptOut)
  })
  router.all('/u/:token', allowOnly('GET, HEAD, POST', 'This page is read, or its button pressed.'))
  return secretPages('/u', router)
}

function optOutPage(facts: Facts, emails: boolean) {
  const { words, event, palette } = facts
  const { title, ask, stays, button, done, again } = words.optOut
  const main = html`<main class="ticket">
      ${head(facts)}
      <p class="status" role="status">${emails ? ask : done}</p>
      ${emails && html`<form class="emails" method="post"><button class="main">${button}</button></form>`}
      <p class="contact">${stays}</p>
      ${!emails && html`<p class="contact">${again}</p>`}
    </main>`
  return stillPage(`${title}: ${event}`, main, words, palette)
}
