// The guest page at /g/TOKEN, to which the e-mails of the holder of a ticket link: a GET shows forms, and a POST does what one of them asks
// for. What is allowed and what a good answer is, the database decides.

import { type Request, Router } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { guestActs } from '../../operations/events.ts'
import { answersOf, textOf } from '../fields.ts'
import {
  allowOnly,
  type Form,
  formOf,
  notFound,
  readerOf,
  refuseOtherSites,
  type SecretPageParts,
  secretPages,
  sendPage,
} from '../secret-page.ts'
import { type Act, type GuestPage, guestFacts, guestPage, passedOnPage, type Shown } from './guest-page-html.ts'

type Question = GuestPage['questions'][number]
/** As `api.act_as_guest` returns it. */
type Done = { done: boolean; refund?: Shown['refund'] }

export function guestPageRouter(parts: SecretPageParts): Router {
  const { dataApi, tokens } = parts
  const read = readerOf<GuestPage>('get_guest_page', parts)
  async function act(token: string, act: Act, fields: object, dry_run = false): Promise<Done> {
    const done = await dataApi.rpc('act_as_guest', { token, act, fields, dry_run }, await tokens.forGuest())
    if (!done) throw notFound()
    return done as Done
  }

  const factsFor = (req: Request, page: GuestPage) => guestFacts(page, (offered) => req.acceptsLanguages(offered))

  const router = Router()
  router.get('/g/:token', async (req, res) => {
    const page = await read(req, res)
    const { token } = req.params
    // Addresses in the page are relative, for a proxy may strip a path.
    if (req.path.endsWith('/')) return void res.redirect(301, `../${token}`)
    const view = (['give_back', 'pass_on'] as const).find((act) => act === req.query.act && page.acts.includes(act))
    const { refund } = view === 'give_back' ? await act(token, view, {}, true) : {}
    const said = 'saved' in req.query ? 'saved' : undefined
    sendPage(res, guestPage(factsFor(req, page), token, { view, refund, said }))
  })
  router.post('/g/:token', refuseOtherSites)
  router.post('/g/:token', async (req, res) => {
    const page = await read(req, res)
    res.locals.operation = 'act_as_guest'
    const { token } = req.params
    const show = (status: number, page: GuestPage, shown: Shown) =>
      sendPage(res.status(status), guestPage(factsFor(req, page), token, shown))
    const form = await formOf(req, res)
    if (form === undefined) return show(413, page, { said: 'shorten' })
    const asked = guestActs.find((act) => act === form.act)
    if (asked === undefined) throw notFound()
    try {
      const { done } = await act(token, asked, fieldsOf(asked, form, page))
      if (!done) return show(409, await read(req, res), { said: 'closed' })
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 422)) throw error
      const isShown = ({ key, is_open }: Question) => is_open && `answers.${key}` === error.param
      // It may be closed since it was read.
      const now = await read(req, res)
      const isClosed = asked === 'answer' && !now.questions.some(isShown)
      const view = asked === 'pass_on' ? asked : undefined
      const mistake = { act: asked, param: error.param ?? '', form }
      return show(isClosed ? 409 : 422, now, { view, mistake, said: isClosed ? 'closed' : undefined })
    }
    // Its link has ended.
    if (asked === 'pass_on') return sendPage(res, passedOnPage(factsFor(req, page)))
    res.redirect(303, asked === 'give_back' ? token : `${token}?saved`)
  })
  router.all('/g/:token', allowOnly('GET, HEAD, POST', 'This page is read, or one of its forms sent.'))
  return secretPages('/g', router)
}

function fieldsOf(act: Act, form: Form, { questions }: GuestPage): object {
  const typed = (field: string) => textOf(form[field]) ?? null
  if (act === 'correct') return { name: typed('name'), company: typed('company') }
  if (act === 'pass_on') return { name: typed('name'), email: typed('email') }
  return act === 'answer' ? answersToKeep(form, questions) : {}
}

/** A sensitive answer is not shown: what is left empty stays. */
function answersToKeep(form: Form, questions: Question[]): Record<string, unknown> {
  const isKept = (key: string) => questions.some((each) => each.key === key && each.sensitive && each.is_answered)
  const answers = Object.entries(answersOf(form, questions))
  return Object.fromEntries(answers.filter(([key, answer]) => answer !== null || !isKept(key)))
}
