// The HTML of the guest page: forms that work without a script. It shows no sensitive answer.

import { momentOf } from '../../guests/event-time.ts'
import { actsLabel, amountOf, whenLines } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import { noteOf } from '../../guests/notes.ts'
import { fill, type Words } from '../../guests/words/index.ts'
import type { guestActs } from '../../operations/events.ts'
import { type Locale, locales } from '../../operations/locales.ts'
import { type Field, inputs, type Question, questionField, type Sent } from '../fields.ts'
import type { Form } from '../secret-page.ts'
import { pageFacts, type TicketPage } from './ticket-page-facts.ts'
import { contactOf, entry, head, notesOf, onlySaying, type SentPage, stillPage } from './ticket-page-html.ts'

export type Act = (typeof guestActs)[number]

/** `answer` is null of a sensitive question, too. `is_open`: it can be answered, or its answer changed. */
type GuestQuestion = Question & { sensitive: boolean; answer: unknown; is_answered: boolean; is_open: boolean }

/** As `api.get_guest_page` returns it. */
export type GuestPage = TicketPage & { ticket_token: string; acts: Act[]; questions: GuestQuestion[] }

/** What takes the ticket away has a view of its own. */
type View = 'give_back' | 'pass_on'

/** What a page shows beside the facts: one act alone, what was done, or what is wrong with a form. */
export type Shown = {
  view?: View | undefined
  said?: 'saved' | 'closed' | 'shorten' | undefined
  /** Of a ticket with a price. `amount` is null for whoever did not buy it. */
  refund?: { amount: number | null; currency: string } | null | undefined
  mistake?: { act: Act; param: string; form: Form }
}

type GuestFacts = ReturnType<typeof guestFacts>

/** In the language of the guest where questions are translated into it or there is a note in it, else in that of the event. */
export function guestFacts(page: GuestPage, accepted: (offered: Locale[]) => string | false) {
  const translated = locales.filter(
    (locale) => locale in page.event.guest_notes || page.questions.some(({ translations }) => locale in translations),
  )
  const chosen = accepted([page.event.locale, ...translated])
  const locale = translated.find((each) => each === chosen) ?? page.event.locale
  return { ...pageFacts({ ...page, event: { ...page.event, locale } }), note: noteOf(page.event, locale), page }
}

export function guestPage(facts: GuestFacts, token: string, shown: Shown): SentPage {
  const { words, state } = facts
  const { said, view } = shown
  const main = html`<main class="ticket ${state}">
      ${head(facts)}
      ${state === 'cancelled' && html`<p class="status">${words.page.cancelled}</p>`}
      ${state === 'event_cancelled' && html`<p class="status">${words.page.eventCancelled}</p>`}
      ${said && html`<p class="status" role="status">${words.guest[said]}</p>`}
      <p class="holder" dir="auto">${facts.attendee}</p>
      ${facts.company && html`<p class="company" dir="auto">${facts.company}</p>`}
      ${view === undefined ? forms(facts, token, shown) : acting(facts, token, view, shown)}
      ${contactOf(facts)}
    </main>`
  return stillPage(fill(words.page.title, { event: facts.event }), main, words, facts.palette)
}

export const passedOnPage = ({ words, palette, event }: GuestFacts): SentPage => {
  const said = fill(words.kinds.ticket_passed_on.passedOn, { event })
  return stillPage(fill(words.page.title, { event }), onlySaying(event, said), words, palette)
}

function forms(facts: GuestFacts, token: string, { mistake }: Shown): Html {
  const { words, page } = facts
  const { acts, questions, attendee } = page
  const { guest } = words
  const line = { type: 'text', required: false } as const
  const details = [
    { ...line, name: 'name', param: 'name', label: words.name, values: [attendee.name], required: true },
    { ...line, name: 'company', param: 'company', label: words.company, values: [attendee.company ?? ''] },
  ]
  const isAsked = questions.some(({ is_open }) => is_open)
  const save = (isMain: boolean): Button => ({ label: guest.save, kind: isMain && 'main' })
  const fields = questions.map((question) => fieldOf(question, facts))
  const link = (act: View) =>
    acts.includes(act) && html`<a class="action" href="${token}?act=${act}">${nameOf(act, words)}</a>`
  return html`<dl>
        ${entry(words.when, whenLines(facts.time, words))}
        ${entry(words.ticket, [facts.ticketType], html`<a class="action" href="../t/${page.ticket_token}">${words.openTicket}</a>`)}
      </dl>
      ${facts.state.endsWith('cancelled') ? undefined : notesOf(facts)}
      ${questions.length > 0 && formOf('answer', guest.questions, isAsked ? save(true) : undefined, token, inputs(fields, words, sentTo('answer', mistake)))}
      ${acts.includes('correct') && formOf('correct', guest.details, save(!isAsked), token, inputs(details, words, sentTo('correct', mistake)))}
      <p class="actions">${link('pass_on')} ${link('give_back')}</p>`
}

const nameOf = (act: View, words: Words) =>
  actsLabel([act === 'give_back' ? words.guest.giveBack : words.guest.passOn], words)

/** The form of an act that cannot be undone, with what it does. */
function acting(facts: GuestFacts, token: string, act: View, { refund, mistake }: Shown): Html {
  const { words, page } = facts
  const { guest } = words
  const { guests_may_until, starts_at, timezone } = page.event
  const title = nameOf(act, words)
  const line = { values: [], required: true }
  const newGuest: Field[] = [
    { ...line, name: 'name', param: 'name', label: words.name, type: 'text' },
    { ...line, name: 'email', param: 'email', label: guest.email, type: 'email' },
  ]
  const [note, fields] = act === 'give_back' ? [guest.giveBackNote, []] : [guest.passOnNote, newGuest]
  const date = momentOf(guests_may_until ?? (starts_at as string), timezone, words)
  const notes = [note, ...refundOf(facts, refund), fill(guest.until, { date })].map((said) => html`<p>${said}</p>`)
  const button: Button = { label: title, kind: act === 'give_back' ? 'final' : 'main' }
  return html`${formOf(act, title, button, token, [...notes, ...inputs(fields, words, sentTo(act, mistake))])}
      <p class="actions"><a class="action" href="${token}">${guest.back}</a></p>`
}

function refundOf({ words, state }: GuestFacts, refund: Shown['refund']): string[] {
  if (!refund) return []
  const { amount, currency } = refund
  if (amount === null) return [words.guest.refundToBuyer]
  if (amount > 0) return [fill(words.kinds.order_cancelled.rest, { amount: amountOf(amount, currency, words) })]
  return state === 'awaiting_payment' ? [] : [words.guest.noRefund]
}

type Button = { label: string; kind: 'main' | 'final' | false }

const formOf = (act: Act, title: string, button: Button | undefined, token: string, parts: Html[]): Html =>
  html`<form class="fields" id="${act}" method="post" action="${token}" accept-charset="utf-8">
        <h2>${title}</h2>
        <input type="hidden" name="act" value="${act}">
        ${parts}
        ${button && html`<p><button class="${button.kind}">${button.label}</button></p>`}
      </form>`

const sentTo = (act: Act, mistake: Shown['mistake']): Sent | undefined =>
  mistake?.act === act ? { form: mistake.form, isWrong: (param) => param === mistake.param } : undefined

/** A sensitive answer is not shown: it is known that there is one. */
function fieldOf(question: GuestQuestion, { words, page }: GuestFacts): Field {
  const { sensitive, is_answered, is_open, answer } = question
  const field = questionField(question, words, page.event.locale)
  const values = [answer ?? []].flat().map(String)
  const shown = sensitive && is_answered ? { help: words.guest.answered, required: false } : {}
  return { ...field, ...shown, values, ...(!is_open && { asked: undefined, disabled: true }) }
}
