// The HTML of the registration page: the event, its ticket types, and a form for each guest. It works without a script and loads nothing but
// the logo.

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { momentOf } from '../../guests/event-time.ts'
import { amountOf, whenLines, whereLines } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import { fill, languages } from '../../guests/words/index.ts'
import { type Field, inputs, questionField, type Sent } from '../fields.ts'
import { contactOf, document, entry, head, type SentPage } from '../tickets/ticket-page-html.ts'
import { type EventFacts, queryOf, structuredData } from './event-page-facts.ts'

/** What was done, or why not: keys of words.eventPage. */
export const results = ['registered', 'ordered', 'waiting'] as const
export type Said =
  | (typeof results)[number]
  | 'taken'
  | 'badCode'
  | 'badNumber'
  | 'tooMany'
  | 'notPossible'
  | 'shorten'
  | 'check'
  | 'changed'
  | 'sentBefore'

export type Shown = { said?: Said | undefined; sent?: Sent | undefined; waitingFor?: string | undefined }

/** `url`: the address of the page; `slug`: the end of it, for relative addresses. */
type Place = { url: string; slug: string }

/** Nobody sees it, so only a machine fills it in. */
export const trap = 'website'

let style: string | undefined

export function eventPage(facts: EventFacts, place: Place, shown: Shown = {}): SentPage {
  const { words, event, palette, logo, page, state, time } = facts
  style ??= readFileSync(join(import.meta.dirname, 'browser/event.css'), 'utf8')
  const isDone = results.some((result) => result === shown.said)
  const main = html`<main class="ticket">
      ${head(facts, logo)}
      ${statusOf(facts, shown.said, isDone)}
      <dl>
        ${entry(words.when, whenLines(time, words))}
        ${entry(words.where, whereLines(facts, words))}
      </dl>
      ${facts.description.map((line) => html`<p class="words" dir="auto">${line}</p>`)}
      ${
        state !== 'cancelled' &&
        time &&
        html`<p class="actions"><a class="action" href="${place.slug}/event.ics" type="text/calendar">${words.page.calendar}</a></p>`
      }
      ${
        isDone &&
        html`<p class="actions"><a class="action" href="${place.slug}${queryOf({ ...facts.choice, tickets: {} })}">${words.eventPage.again}</a></p>`
      }
      ${state === 'open' && !isDone && forms(facts, place, shown)}
      ${contactOf(facts)}
      <p class="actions languages">${Object.entries(languages).map(
        ([lang, { locale, language }]) =>
          html`<a class="action" href="${place.slug}${queryOf({ ...facts.choice, lang: lang as EventFacts['choice']['lang'] })}" hreflang="${locale}" lang="${lang}"${
            locale === words.locale && html` aria-current="true"`
          }>${language}</a> `,
      )}</p>
    </main>`
  const isPublic = page.event.registration_page === 'public'
  return document(event, main, words, {
    ...{ palette, logo, style, script: '' },
    framedBy: page.organisation.embed_origins,
    meta: metaOf(facts, place.url, isPublic),
    data: isPublic ? structuredData(facts, place.url) : undefined,
  })
}

const metaOf = ({ event, time, words, logo }: EventFacts, url: string, isPublic: boolean): Html => {
  const when = time?.lines.join(', ') ?? words.toBeAnnounced
  return html`${!isPublic && html`<meta name="robots" content="noindex">`}
    <link rel="canonical" href="${url}">
    <meta name="description" content="${when}">
    <meta property="og:type" content="website">
    <meta property="og:title" content="${event}">
    <meta property="og:description" content="${when}">
    <meta property="og:url" content="${url}">
    ${logo !== null && html`<meta property="og:image" content="${logo}">`}`
}

function statusOf({ words, state, isBadCode, types }: EventFacts, said: Said | undefined, isDone: boolean): Html {
  const { eventPage: own, guest, page: ticket } = words
  const notice = said ?? (isBadCode ? 'badCode' : undefined)
  const closed = { cancelled: ticket.eventCancelled, ended: ticket.eventEnded, closed: own.closed, open: undefined }[
    state
  ]
  const isOff = state === 'open' && !types.some(({ sales_status }) => ['on_sale', 'sold_out'].includes(sales_status))
  const sentence = closed ?? (notice === 'shorten' ? guest.shorten : notice && own[notice]) ?? (isOff && own.notOnSale)
  const tone = isDone ? 'good' : closed === undefined ? 'notice' : 'bad'
  return html`${sentence && html`<p class="status ${tone}" role="status">${sentence}</p>`}`
}

/** One form, so that nothing that is typed is lost when the tickets change. */
function forms(facts: EventFacts, place: Place, shown: Shown): Html {
  const { types, guests, choice, page, words } = facts
  const { eventPage: own } = words
  const isOnSale = types.some(({ sales_status }) => sales_status === 'on_sale')
  const isChosen = guests.length > 0
  return html`<form class="fields" method="post" action="${place.slug}" accept-charset="utf-8">
        ${choice.lang && html`<input type="hidden" name="lang" value="${choice.lang}">`}
        <h2>${words.orderPage.tickets}</h2>
        <ul class="types">${types.map((type) => typeOf(type, facts))}</ul>
        ${
          isOnSale &&
          html`<div class="field"><label for="code">${own.code} <span class="optional">(${words.guest.optional})</span></label>
          <input id="code" name="code" value="${choice.code}" maxlength="50" autocomplete="off" autocapitalize="off" spellcheck="false">
          ${page.code !== null && html`<p class="help">${fill(own.codeUsed, { code: page.code })}</p>`}</div>
        <p><button name="act" value="choose" formnovalidate class="${!isChosen && 'main'}">${isChosen ? own.change : own.choose}</button></p>`
        }
        ${isChosen && guestFields(facts, shown)}
      </form>
      ${types.filter(isWaitedFor).map((type) => waitingForm(type, facts, place, shown))}`
}

type Type = EventFacts['types'][number]

const isWaitedFor = ({ sales_status, min_per_order, visibility }: Type) =>
  sales_status === 'sold_out' && min_per_order === 1 && visibility === 'public'

function typeOf(type: Type, { words, choice, page }: EventFacts): Html {
  const { eventPage: own } = words
  const { id, name, description, price, price_with_code, quantity_available, sales_status, sales_start_at } = type
  const { min_per_order, max_per_order } = type
  const { currency, timezone } = page.event
  const money = (amount: number) => (amount === 0 ? own.free : amountOf(amount, currency, words))
  const state = {
    on_sale: quantity_available === null ? undefined : fill(own.left, { count: `${quantity_available}` }),
    sold_out: own.soldOut,
    upcoming: sales_start_at !== null && fill(own.from, { date: momentOf(sales_start_at, timezone, words) }),
    ended: own.over,
    archived: own.over,
  }[sales_status]
  const least = min_per_order > 1 && fill(own.atLeast, { count: `${min_per_order}` })
  const most = Math.min(max_per_order ?? 50, quantity_available ?? 50, 50)
  const isOnSale = sales_status === 'on_sale'
  const about = html`<span dir="auto">${name}</span>
            <span class="price">${price_with_code < price && html`<s>${money(price)}</s> `}${money(price_with_code)}</span>
            <span class="help">${[state, least].filter(Boolean).join(' – ')}</span>`
  return html`<li>
          ${isOnSale ? html`<label for="t.${id}">${about}</label>` : html`<div>${about}</div>`}
          ${
            isOnSale &&
            html`<input id="t.${id}" name="t.${id}" type="number" inputmode="numeric" min="0" max="${`${most}`}" value="${`${choice.tickets[id] ?? 0}`}">`
          }
          ${description && html`<p class="help" dir="auto">${description}</p>`}
        </li>
        `
}

function guestFields(facts: EventFacts, { sent, waitingFor }: Shown): Html {
  const { words, guests, isPaid, page } = facts
  const { eventPage: own, offer, guest } = words
  const shown = waitingFor === undefined ? sent : undefined
  const fieldsets = guests.map(({ type, prefix, index, questions }, i) => {
    const company = {
      ...line,
      name: `${prefix}company`,
      param: 'company',
      label: words.company,
      autocomplete: 'organization',
    }
    const fields: Field[] = [
      ...contactFields(facts, prefix, i === 0, i > 0 ? own.emailOptional : undefined),
      ...(i === 0 ? [company] : []),
      ...questions.map((question) => questionField(question, words, page.event.locale, prefix)),
    ]
    const legend = i === 0 ? guest.details : fill(own.guest, { number: `${i + 1}` })
    return html`<fieldset class="guest">
          <legend>${legend}${facts.types.length > 1 && html` <span class="help" dir="auto">${type.name}</span>`}</legend>
          ${inputs(
            fields.map((field) => ({ ...field, param: `attendees.${index}.${field.param}` })),
            words,
            shown,
          )}
        </fieldset>
        `
  })
  const total = html`<p class="sum"><span>${words.total}</span> <b>${amountOf(page.total, page.event.currency, words)}</b></p>`
  return html`<input type="hidden" name="total" value="${`${page.total}`}">
        ${hiddenFields()}
        ${fieldsets}
        ${isPaid && total}
        <p class="help">${page.total > 0 ? own.invoice : own.byEmail}</p>
        <p><button class="main" name="act" value="register">${page.total > 0 ? offer.order : own.register}</button></p>`
}

function waitingForm({ id, name }: Type, facts: EventFacts, place: Place, { sent, waitingFor }: Shown): Html {
  const { words, choice } = facts
  const { eventPage: own } = words
  const prefix = `w.${id}.`
  const fields = contactFields(facts, prefix, true)
  const isOpen = waitingFor === id
  return html`<details${isOpen && html` open`}>
        <summary>${own.wait}: <span dir="auto">${name}</span></summary>
        <form class="fields" method="post" action="${place.slug}" accept-charset="utf-8">
          ${choice.lang && html`<input type="hidden" name="lang" value="${choice.lang}">`}
          <input type="hidden" name="act" value="wait"><input type="hidden" name="ticket_type_id" value="${id}">
          ${hiddenFields()}
          ${inputs(fields, words, isOpen ? sent : undefined)}
          <p class="help">${own.waitNote}</p>
          <p><button>${own.wait}</button></p>
        </form>
      </details>`
}

const line = { type: 'text' as const, values: [], required: false }

const contactFields = ({ words }: EventFacts, prefix: string, isYou: boolean, help?: string): Field[] => [
  {
    ...{ ...line, name: `${prefix}name`, param: 'name', label: words.name, required: true },
    ...(isYou && { autocomplete: 'name' }),
  },
  {
    ...{
      ...line,
      name: `${prefix}email`,
      param: 'email',
      type: 'email',
      label: words.guest.email,
      required: isYou,
      help,
    },
    ...(isYou && { autocomplete: 'email' }),
  },
]

/** Of one form: what was sent twice is done once. */
const hiddenFields = (): Html => html`<input type="hidden" name="key" value="${randomUUID()}">
          <p class="trap" aria-hidden="true"><label>Website <input name="${trap}" tabindex="-1" autocomplete="off"></label></p>`
