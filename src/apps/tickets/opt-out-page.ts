// The page at /u/TOKEN, to which e-mails about changes link: a GET shows one button, and a POST switches these e-mails off, whoever sends
// it: the button, or a mail service for its user (RFC 8058). The token gives no other right.

import { type Response, Router } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { type Facts, factsOf, type Subject } from '../../guests/facts.ts'
import { html } from '../../guests/html.ts'
import type { Words } from '../../guests/words/index.ts'
import { methodNotAllowed } from '../../http/middleware/errors.ts'
import { answerError, readerOf, type SecretPageParts, sendPage, setSecretHeaders } from '../secret-page.ts'
import { onlySaying, stillPage } from './ticket-page-html.ts'

/** As `api.get_opt_out` and `api.opt_out` return it. `emails`: they are switched on. */
type OptOut = Subject & { emails: boolean }

export function optOutPageRouter(parts: SecretPageParts): Router {
  const read = readerOf<OptOut>({ read: 'get_opt_out', isToken, notFound }, parts)
  const send = (res: Response, { emails, ...subject }: OptOut) => sendPage(res, optOutPage(factsOf(subject), emails))

  const router = Router()
  router.use('/u', setSecretHeaders)
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
  router.all('/u/:token', ({ method }) => {
    throw methodNotAllowed(method, 'GET, HEAD, POST', 'This page is read, or its button pressed.')
  })
  router.use('/u', () => {
    throw notFound()
  })
  router.use('/u', answerError(noPage))
  return router
}

const isToken = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const notFound = () => new ApiError(404, 'not_found', 'There is no such link.')

function optOutPage({ words, organisation, event, palette }: Facts, emails: boolean) {
  const { title, ask, stays, button, done, again } = words.optOut
  const main = html`<main class="ticket">
      <header>
        <p class="from" dir="auto">${organisation}</p>
        <h1 dir="auto">${event}</h1>
      </header>
      <p class="status" role="status">${emails ? ask : done}</p>
      ${emails && html`<form class="emails" method="post"><button>${button}</button></form>`}
      <p class="contact">${stays}</p>
      ${!emails && html`<p class="contact">${again}</p>`}
    </main>`
  return stillPage(`${title}: ${event}`, main, words, palette)
}

function noPage(kind: 'unknown' | 'busy', words: Words) {
  const { unknownTitle, unknown, busy } = words.optOut
  const [title, sentence] = kind === 'unknown' ? [unknownTitle, unknown] : [words.page.busyTitle, busy]
  return stillPage(title, onlySaying(title, sentence), words)
}
