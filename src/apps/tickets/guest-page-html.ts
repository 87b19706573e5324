// The HTML of the guest page: forms that work without a script. It shows no sensitive answer.

import type * as z from 'zod'
import { countries } from '../../guests/countries.ts'
import { momentOf } from '../../guests/event-time.ts'
import { actsLabel, amountOf, countryName, whenLines } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import { noteOf } from '../../guests/notes.ts'
import { oneLine } from '../../guests/plain-text.ts'
import { fill, type Words } from '../../guests/words/index.ts'
import type { guestActs } from '../../operations/events.ts'
import { type Locale, locales } from '../../operations/locales.ts'
import type { QuestionSchema } from '../../operations/questions.ts'
import type { Form } from '../secret-page.ts'
import { pageFacts, type TicketPage } from './ticket-page-facts.ts'
import { contactOf, entry, head, notesOf, onlySaying, type SentPage, stillPage } from './ticket-page-html.ts'

export type Act = (typeof guestActs)[number]

/** `answer` is null of a sensitive question, too. `is_open`: it can be answered, or its answer changed. */
type Question = Pick<z.infer<typeof QuestionSchema>, 'key' | 'label' | 'help' | 'type' | 'options'> & {
  required: boolean
  sensitive: boolean
  translations: Record<string, { label?: string; help?: string; options?: Record<string, string> }>
  answer: unknown
  is_answered: boolean
  is_open: boolean
}

/** As `api.get_guest_page` returns it. */
export type GuestPage = TicketPage & { ticket_token: string; acts: Act[]; questions: Question[] }

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
    { ...line, name: 'name', label: words.name, values: [attendee.name], required: true },
    { ...line, name: 'company', label: words.company, values: [attendee.company ?? ''] },
  ]
  const save = questions.some(({ is_open }) => is_open) ? guest.save : undefined
  const fields = questions.map((question) => fieldOf(question, facts))
  const link = (act: View) =>
    acts.includes(act) && html`<a class="action" href="${token}?act=${act}">${nameOf(act, words)}</a>`
  return html`<dl>
        ${entry(words.when, whenLines(facts.time, words))}
        ${entry(words.ticket, [facts.ticketType], html`<a class="action" href="../t/${page.ticket_token}">${words.openTicket}</a>`)}
      </dl>
      ${facts.state.endsWith('cancelled') ? undefined : notesOf(facts)}
      ${questions.length > 0 && formOf('answer', guest.questions, save, token, inputs(fields, words, mistake, 'answer'))}
      ${acts.includes('correct') && formOf('correct', guest.details, guest.save, token, inputs(details, words, mistake, 'correct'))}
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
    { ...line, name: 'name', label: words.name, type: 'text' },
    { ...line, name: 'email', label: guest.email, type: 'email' },
  ]
  const [note, fields] = act === 'give_back' ? [guest.giveBackNote, []] : [guest.passOnNote, newGuest]
  const date = momentOf(guests_may_until ?? (starts_at as string), timezone, words)
  const notes = [note, ...refundOf(facts, refund), fill(guest.until, { date })].map((said) => html`<p>${said}</p>`)
  return html`${formOf(act, title, title, token, [...notes, ...inputs(fields, words, mistake, act)])}
      <p class="actions"><a class="action" href="${token}">${guest.back}</a></p>`
}

function refundOf({ words, state }: GuestFacts, refund: Shown['refund']): string[] {
  if (!refund) return []
  const { amount, currency } = refund
  if (amount === null) return [words.guest.refundToBuyer]
  if (amount > 0) return [fill(words.kinds.order_cancelled.rest, { amount: amountOf(amount, currency, words) })]
  return state === 'awaiting_payment' ? [] : [words.guest.noRefund]
}

const formOf = (act: Act, title: string, button: string | undefined, token: string, parts: Html[]): Html =>
  html`<form class="fields" id="${act}" method="post" action="${token}" accept-charset="utf-8">
        <h2>${title}</h2>
        <input type="hidden" name="act" value="${act}">
        ${parts}
        ${button && html`<p><button class="main">${button}</button></p>`}
      </form>`

type Field = {
  name: string
  type: Question['type']
  label: string | Html
  help?: string | Html | undefined
  /** Of one that is answered by ticking. */
  choices?: { key: string; label: string | Html }[] | undefined
  values: string[]
  required: boolean
  /** Its key, where it is one that can be answered. */
  asked?: string | undefined
  disabled?: boolean
}

/** A question in the language of the page, as far as it is translated. */
function fieldOf(question: Question, { words, page }: GuestFacts): Field {
  const { key, type, options, sensitive, is_answered, is_open, answer } = question
  const locale = words.locale.slice(0, 2)
  const own = question.translations[locale] ?? {}
  const inWords = (translated: string | undefined, written: string) =>
    html`<span lang="${translated === undefined ? page.event.locale : locale}" dir="auto">${oneLine(translated ?? written)}</span>`
  const { yes, no, answered } = words.guest
  const yesOrNo = [
    { key: 'true', label: yes },
    { key: 'false', label: no },
  ]
  const chosen = options?.map(({ key, label }) => ({ key, label: inWords(own.options?.[key], label) }))
  const isHidden = sensitive && is_answered
  const help = own.help ?? question.help
  return {
    name: `answer.${key}`,
    type,
    label: inWords(own.label, question.label),
    help: (isHidden && answered) || (help === null ? undefined : inWords(own.help, help)),
    choices: type === 'yes_no' ? yesOrNo : chosen,
    values: [answer ?? []].flat().map(String),
    required: question.required && !isHidden,
    asked: is_open ? key : undefined,
    disabled: !is_open,
  }
}

/** As they are, or as they were sent with a mistake, to which the browser goes. */
const inputs = (fields: Field[], words: Words, mistake: Shown['mistake'], act: Act): Html[] =>
  fields.map((field) => {
    const { form, param } = mistake?.act === act && !field.disabled ? mistake : {}
    const values = form ? [form[field.name] ?? []].flat() : field.values
    const isWrong = param === field.name || (field.asked !== undefined && param === `answers.${field.asked}`)
    return inputOf({ ...field, values }, isWrong ? mistakeIn(field, values, words) : undefined, words)
  })

function mistakeIn({ type }: Field, values: string[], { guest }: Words): string {
  const typed = values.join('').trim()
  if (typed === '') return guest.missing
  // No other limit is lower.
  if (typed.length > 200) return guest.shorten
  return type === 'phone' ? guest.phone : guest.wrong
}

function inputOf(
  { name, type, label, help, choices, values, required, asked, disabled }: Field,
  error: string | undefined,
  words: Words,
) {
  const named = html`${label}${!required && html` <span class="optional">(${words.guest.optional})</span>`}`
  const about = [help && `${name}-help`, error && `${name}-error`].filter(Boolean).join(' ')
  const described = html`${about && html` aria-describedby="${about}"`}${disabled && html` disabled`}`
  const focus = error !== undefined && html` autofocus`
  const below = html`${help && html`<p class="help" id="${name}-help">${help}</p>`}
          ${error && html`<p class="mistake" id="${name}-error">${error}</p>`}
          ${asked && html`<input type="hidden" name="asked" value="${asked}">`}`
  if (choices !== undefined) {
    const kind = type === 'several_of' ? 'checkbox' : 'radio'
    return html`<fieldset class="field"${described}>
          <legend>${named}</legend>
          ${choices.map(
            ({ key, label }, i) =>
              html`<label class="choice"><input type="${kind}" name="${name}" value="${key}"${values.includes(key) && html` checked`}${
                required && kind === 'radio' && html` required`
              }${i === 0 && focus}> ${label}</label>`,
          )}
          ${below}
        </fieldset>`
  }
  const attributes = html` id="${name}" name="${name}" dir="auto"${required && html` required`}${described}${focus}${
    focus && html` aria-invalid="true"`
  }`
  return html`<div class="field">
          <label for="${name}">${named}</label>
          ${control(type, attributes, values[0] ?? '', words)}
          ${below}
        </div>`
}

const inputTypes: Record<string, string> = { number: 'number', date: 'date', email: 'email', phone: 'tel' }

function control(type: Question['type'], attributes: Html, value: string, { locale, guest }: Words): Html {
  if (type === 'long_text') return html`<textarea rows="4" maxlength="5000"${attributes}>${value}</textarea>`
  if (type !== 'country')
    return html`<input type="${inputTypes[type] ?? 'text'}" value="${value}" maxlength="500" step="any"${attributes}>`
  const named = countries.map((key): [string, string] => [key, countryName(key, locale) ?? key])
  const sorted = named.sort(([, a], [, b]) => a.localeCompare(b, locale))
  return html`<select${attributes}><option value="">${guest.choose}</option>${sorted.map(
    ([key, name]) => html`<option value="${key}"${key === value && html` selected`}>${name}</option>`,
  )}</select>`
}
