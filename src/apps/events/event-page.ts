// The registration page of an event at /e/ORGANISATION/EVENT: no key in the browser, no cookie, no script. A form is one call of
// register_attendee, or of join_waiting_list, with the key of the page. What it may do, the database decides (60-attendees/event-page.sql).
// Tickets go by e-mail alone: nothing of an answer is shown.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Request, type RequestHandler, type Response, Router } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { createCache } from '../../gateway/cache.ts'
import { Caller } from '../../gateway/caller.ts'
import { call, type Gateway } from '../../gateway/calls.ts'
import type { Principal } from '../../gateway/principals.ts'
import { createLookups } from '../../http/middleware/secret-lookups.ts'
import { type Locale, locales } from '../../operations/locales.ts'
import type { Operation } from '../../operations/operation.ts'
import { answersOf, textOf } from '../fields.ts'
import {
  allowOnly,
  type Form,
  formOf,
  notFound,
  refuseOtherSites,
  type SecretPageParts,
  secretPages,
} from '../secret-page.ts'
import {
  type Choice,
  choiceOf,
  type EventFacts,
  type EventPage,
  eventCalendar,
  eventFacts,
  queryOf,
  questionsOf,
  ticketsOf,
  withOnlyType,
} from './event-page-facts.ts'
import { eventPage, results, type Said, type Shown, trap } from './event-page-html.ts'

export type EventPageParts = SecretPageParts & {
  gateway: Gateway
  operations: readonly Operation[]
  /** Limits the forms of an address. */
  limitForms: RequestHandler
  mailFrom: string
  /** Base of its own address; undefined: as it was asked for. */
  publicUrl: string | undefined
}

const compress = promisify(gzip)

// An on-sale opens a page a thousand times a second; what is left may be a second old.
const freshMs = 1_000
const slug = /^[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?$/

export function eventPageRouter(parts: EventPageParts): Router {
  const { gateway, limitForms, countFailure, mailFrom, publicUrl, operations } = parts
  const operationOf = (name: string) => operations.find((operation) => operation.name === name) as Operation
  const find = finderOf(parts)

  /** The page as the query or a form chooses it. */
  async function read(req: Request, res: Response, chosen = req.query as Form): Promise<EventFacts> {
    res.locals.operation = 'get_event_page'
    const typed = choiceOf(chosen)
    // Good codes are counted with wrong ones: whoever guesses must not tell them apart by what is refused.
    if (typed.code !== '') await passed(countFailure, req, res)
    const asTyped = await find(req, res, typed)
    const choice = withOnlyType(typed, asTyped)
    const page = choice === typed ? asTyped : await find(req, res, choice)
    res.vary('Accept-Language')
    if (page.event.registration_page === 'public') res.removeHeader('X-Robots-Tag')
    // Its policy says who may frame it, which the older header cannot.
    if (page.organisation.embed_origins.length > 0) res.removeHeader('X-Frame-Options')
    const accepted = req.acceptsLanguages([page.event.locale, ...locales]) as Locale | false
    return eventFacts(page, choice, choice.lang ?? (accepted || page.event.locale))
  }

  async function send(req: Request, res: Response, facts: EventFacts, shown?: Shown): Promise<void> {
    const { organisation, event } = req.params
    const url = `${publicUrl ?? `${req.protocol}://${req.get('Host')}`}/e/${organisation}/${event}`
    const { html, policy } = eventPage(facts, { url, slug: event as string }, shown)
    const isCompressed = req.acceptsEncodings('gzip', 'identity') === 'gzip'
    res.vary('Accept-Encoding').set('Content-Security-Policy', policy).type('html')
    // A form of many guests says the same of each.
    if (isCompressed) res.set('Content-Encoding', 'gzip').send(await compress(html))
    else res.send(html)
  }

  async function act(req: Request, res: Response, form: Form): Promise<void> {
    const facts = await read(req, res, form)
    const waitingFor = form.act === 'wait' ? textOf(form.ticket_type_id) : undefined
    const isEmpty = Object.keys(facts.choice.tickets).length === 0
    if (waitingFor === undefined && (form.act !== 'register' || isEmpty)) {
      const said = isEmpty && facts.choice.code === '' ? 'badNumber' : undefined
      return send(req, res.status(form.act === 'register' ? 409 : 200), facts, {
        said,
        sent: { form, isWrong: () => false },
      })
    }
    const done: Said = waitingFor !== undefined ? 'waiting' : form.total === '0' ? 'registered' : 'ordered'
    // A machine learns nothing.
    if (textOf(form[trap]) === undefined) {
      const caller = callerOf(facts.page)
      const [operation, input] =
        waitingFor === undefined
          ? [operationOf('register_attendee'), registrationOf(form, facts)]
          : [operationOf('join_waiting_list'), entryOf(form, facts, waitingFor)]
      Object.assign(res.locals, { caller, operation: operation.name })
      try {
        await passed(limitForms, req, res)
        await call(gateway, operation, caller, input, textOf(form.key))
      } catch (error) {
        const shown = shownOf(error, form, waitingFor)
        if (shown === undefined) throw error
        const { status } = error as ApiError
        if (shown.said !== 'waiting')
          return send(req, res.status(status === 404 ? 409 : status), await read(req, res, form), {
            ...shown,
            waitingFor,
          })
      }
    }
    res.redirect(303, `${req.params.event}${queryOf({ ...facts.choice, tickets: {} }, { done })}`)
  }

  const router = Router({ strict: true })
  const path = '/e/:organisation/:event'
  router.get(path, async (req, res) => {
    const said = results.find((result) => result === req.query.done)
    await send(req, res, await read(req, res), { said })
  })
  router.get(`${path}/event.ics`, async (req, res) => {
    const calendar = eventCalendar((await read(req, res)).page, mailFrom)
    if (calendar === undefined) throw notFound()
    res.type('text/calendar; charset=utf-8; method=PUBLISH').set('Content-Disposition', 'inline; filename="event.ics"')
    res.send(calendar)
  })
  router.post(path, refuseOtherSites, async (req, res) => {
    const form = await formOf(req, res)
    if (form === undefined) return send(req, res.status(413), await read(req, res), { said: 'shorten' })
    await act(req, res, form)
  })
  router.all([path, `${path}/event.ics`], allowOnly('GET, HEAD, POST', 'This page is read, or its form sent.'))
  return secretPages('/e', router)
}

/** @throws what a limiter refuses with. */
const passed = (limiter: RequestHandler, req: Request, res: Response): Promise<void> =>
  new Promise((counted, refused) => limiter(req, res, (error?: unknown) => (error ? refused(error) : counted())))

/** Reads a page. Addresses that lead nowhere are counted, as secrets are; a page is asked for once a second for each choice. */
function finderOf({ dataApi, tokens, countFailure }: SecretPageParts) {
  const fresh = createCache<Promise<EventPage>>(1_000, { ttl: freshMs })
  const lookups = createLookups<EventPage>(
    {
      isWellFormed: () => true,
      async resolve(asked) {
        const args: Record<string, unknown> = JSON.parse(asked)
        const isPossible = slug.test(`${args.organisation}`) && slug.test(`${args.event}`)
        const found = isPossible && (await dataApi.rpc('get_event_page', args, await tokens.forGuest()))
        if (!found) throw notFound()
        return found as EventPage
      },
    },
    countFailure,
  )
  return ({ params }: Request, res: Response, { code, tickets }: Choice): Promise<EventPage> => {
    const { organisation, event } = params
    const asked = JSON.stringify({ organisation, event, code, tickets })
    const known = fresh.get(asked)
    if (known !== undefined) return known
    const found = lookups.resolve(asked, res.req as Request, res)
    fresh.set(asked, found)
    found.catch(() => fresh.delete(asked))
    return found
  }
}

/** The key of a page has no secret: whoever has the page may send its form. */
function callerOf({ key }: EventPage): Caller {
  const principal: Principal = { ...key, kind: 'page', scopes: ['attendees:write'], rate_limit_per_minute: 0 }
  const resolve = async () => principal
  return new Caller('', 'page', principal, false, { known: () => principal, resolve, forget() {} })
}

function registrationOf(form: Form, facts: EventFacts): Record<string, unknown> {
  const { page, isPaid, usesCode, isBadCode, choice } = facts
  // One that is not good any more may have been so when this form was sent first.
  const isCoded = usesCode || isBadCode
  const tickets = ticketsOf(choice)
  const yours = textOf(form[`${tickets[0]?.prefix}email`])
  return {
    event_id: page.event.id,
    attendees: tickets.map(({ id, prefix }) => {
      const [name, email, company] = ['name', 'email', 'company'].map((field) => textOf(form[prefix + field]))
      const answers = Object.entries(answersOf(form, questionsOf(page, id), prefix)).filter(
        ([, answer]) => answer !== null,
      )
      return {
        ...{ ticket_type_id: id, name, email: email ?? yours },
        ...(company !== undefined && { company }),
        ...(answers.length > 0 && { answers: Object.fromEntries(answers) }),
      }
    }),
    ...((isPaid || isCoded) && { payment_method: 'invoice' }),
    ...(isCoded && { promo_code: choice.code }),
    // What the form showed.
    expected_total: Number(form.total),
  }
}

const entryOf = (form: Form, { page }: EventFacts, ticket_type_id: string): Record<string, unknown> => ({
  ...{ event_id: page.event.id, ticket_type_id },
  ...{ name: textOf(form[`w.${ticket_type_id}.name`]), email: textOf(form[`w.${ticket_type_id}.email`]) },
})

const saidOf: Record<string, Said> = {
  rate_limited: 'tooMany',
  sold_out: 'taken',
  quantity_not_allowed: 'badNumber',
  total_changed: 'changed',
  idempotency_key_reused: 'sentBefore',
}

/** What a refusal is to whoever sent the form; undefined: it is none of theirs. */
function shownOf(error: unknown, form: Form, waitingFor: string | undefined): Shown | undefined {
  if (!(error instanceof ApiError && error.status < 500)) return undefined
  const { status, code, param = '' } = error
  // Whoever asks learns nothing of who else is on the list.
  if (waitingFor !== undefined && code === 'already_exists') return { said: 'waiting' }
  const isOfCode = code.startsWith('promo_code') || param === 'promo_code'
  // A ticket that was free when the form was made has a price now.
  const isOfPrice = ['payment_method', 'expected_total'].includes(param)
  const isOfField = status === 422 && !isOfCode && !isOfPrice
  const said = saidOf[code] ?? (isOfCode ? 'badCode' : isOfPrice ? 'changed' : isOfField ? 'check' : 'notPossible')
  const { fields = [{ param }] } = (error.details ?? {}) as { fields?: { param: string }[] }
  // A trigger names no guest.
  const isWrong = (field: string) => said === 'check' && fields.some((bad) => `.${field}`.endsWith(`.${bad.param}`))
  return { said, sent: { form, isWrong } }
}
