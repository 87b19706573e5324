// The HTML of the order page, its receipt and its tickets on paper, in the style of the ticket page. The receipt must not call itself an
// invoice, in any language.

import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { spacedCode, whenLines, whereLines } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import type { AmountRow } from '../../guests/money.ts'
import { fill } from '../../guests/words/index.ts'
import { codeFigure, contactOf, document, entry, head, notesOf, type SentPage } from '../tickets/ticket-page-html.ts'
import type { OrderFacts } from './order-page-facts.ts'

const read = (name: string) => readFileSync(join(import.meta.dirname, 'browser', name), 'utf8')
const readFiles = () => ({ style: read('order.css'), script: stripTypeScriptTypes(read('order.ts')) })
let files: ReturnType<typeof readFiles> | undefined

function sent(headline: string, main: Html, { words, event, palette, logo }: OrderFacts): SentPage {
  files ??= readFiles()
  return document(fill(words.subject, { headline, event }), main, words, { palette, logo, ...files })
}

export function orderPage(facts: OrderFacts, token: string): SentPage {
  const { words, isDue, isCancelled, amounts, payments, hasReceipt } = facts
  const { orderPage } = words
  const title = `${words.order} ${facts.reference}`
  const main = html`<main class="ticket order ${isCancelled ? 'cancelled' : isDue ? 'awaiting_payment' : 'valid'}">
      ${head(facts, facts.logo)}
      <div class="status">${facts.status.map((sentence) => html`<p>${sentence}</p>`)}</div>
      ${isDue && howToPay(facts)}
      <section>
        <h2>${title}</h2>
        ${amountTable(amounts)}
      </section>
      ${
        payments.length > 0 &&
        html`<section>
        <h2>${orderPage.payments}</h2>
        ${amountTable(payments)}
        ${hasReceipt && html`<p><a class="action" href="${token}/receipt">${orderPage.receipt}</a></p>`}
      </section>`
      }
      ${facts.tickets.length > 0 && ticketList(facts, token)}
      <dl>
        ${entry(words.when, whenLines(facts.time, words))}
        ${entry(words.where, whereLines(facts, words))}
      </dl>
      ${isCancelled ? undefined : notesOf(facts)}
      ${contactOf(facts)}
    </main>`
  return sent(title, main, facts)
}

function howToPay({ words, reference, howToPay }: OrderFacts): Html {
  const { orderPage } = words
  const copy = (text: string) => html` <button type="button" hidden data-copy="${text}"
          data-copied="${fill(orderPage.copied, { text })}" aria-label="${orderPage.copy}: ${text}">${orderPage.copy}</button>`
  const line = (parts: string[]) =>
    parts.map((part, i) => (i % 2 === 1 ? html`${part}${copy(part.replaceAll(' ', ''))}` : part))
  return html`<section>
        <h2>${words.howToPay}</h2>
        ${howToPay.map((parts) => html`<p dir="auto">${line(parts)}</p>`)}
        <p>${orderPage.reference} <b>${reference}</b>${copy(reference)}</p>
      </section>`
}

const amountTable = (rows: AmountRow[]): Html => html`<table>
          ${rows.map(
            ({ label, amount, isTotal }) =>
              html`<tr class="${isTotal && 'total'}"><th scope="row" dir="auto">${label}</th><td>${amount}</td></tr>
          `,
          )}
        </table>`

function ticketList({ words, tickets, hasMore, printed }: OrderFacts, token: string): Html {
  const { orderPage } = words
  const states = {
    active: orderPage.valid,
    awaiting_payment: orderPage.unpaid,
    cancelled: orderPage.ticketCancelled,
  }
  const link = (to: string, label: string, name: string) =>
    html`<a class="action" href="../${to}" aria-label="${label}: ${name}">${label}</a>`
  const row = ({ name, ticket_type, status, ticket_token, guest_token }: (typeof tickets)[number]) => html`<li>
          <p class="name" dir="auto">${name}</p>
          <p class="help" dir="auto">${ticket_type} – ${states[status]}</p>
          ${ticket_token !== null && link(`t/${ticket_token}`, orderPage.openTicket, name)}
          ${guest_token !== null && link(`g/${guest_token}`, orderPage.change, name)}
        </li>
        `
  return html`<section>
        <h2>${orderPage.tickets}</h2>
        ${printed.length > 0 && html`<p><a class="action" href="${token}/tickets">${orderPage.printTickets}</a></p>`}
        <ul>
        ${tickets.map(row)}
        ${hasMore && html`<li>…</li>`}
        </ul>
      </section>`
}

export function receiptPage(facts: OrderFacts, token: string): SentPage {
  const { words, logo, amounts, payments, taxNote } = facts
  const { orderPage } = words
  const main = html`<main class="ticket order receipt">
      ${head(facts, logo, orderPage.receipt)}
      <dl>
        ${entry(orderPage.seller, facts.seller)}
        ${entry(orderPage.buyer, facts.buyer)}
        ${entry(words.event, [facts.event, ...whenLines(facts.time, words)])}
        ${entry(words.order, [facts.reference, ...(facts.isCancelled ? [orderPage.cancelled] : [])])}
      </dl>
      <section>${amountTable(amounts)}</section>
      <section>
        <h2>${orderPage.payments}</h2>
        ${amountTable(payments)}
        ${taxNote.map((line) => html`<p dir="auto">${line}</p>`)}
      </section>
      ${paperActions(facts, token)}
    </main>`
  return sent(orderPage.receipt, main, facts)
}

/** Some of the tickets, each with a data URL of its code. */
type Printed = { tickets: (OrderFacts['printed'][number] & { qr: string })[]; page: number; pages: number }

export function ticketsPage(facts: OrderFacts, token: string, { tickets, page, pages }: Printed): SentPage {
  const { words } = facts
  const { orderPage } = words
  const stub = ({ name, company, ticket_type, code, qr }: Printed['tickets'][number]) => html`<article>
        <h2 class="holder" dir="auto">${name}</h2>
        ${company && html`<p class="company" dir="auto">${company}</p>`}
        ${codeFigure(qr, spacedCode(code), words)}
        <dl>
          ${entry(words.event, [facts.event, facts.organisation])}
          ${entry(words.ticket, [ticket_type])}
          ${entry(words.when, whenLines(facts.time, words))}
          ${entry(words.where, whereLines(facts, words))}
        </dl>
      </article>
      `
  const others = Array.from({ length: pages }, (_, i) => i + 1).filter((each) => each !== page)
  const link = (to: string) =>
    html`<a class="action" href="tickets?page=${to}">${fill(orderPage.page, { page: to, pages: `${pages}` })}</a> `
  const main = html`<main class="ticket order tickets">
      ${head(facts, facts.logo)}
      ${paperActions(facts, token)}
      ${tickets.map(stub)}
      ${others.length > 0 && html`<nav class="actions">${others.map((each) => link(`${each}`))}</nav>`}
    </main>`
  return sent(orderPage.tickets, main, facts)
}

const paperActions = ({ words: { orderPage, guest } }: OrderFacts, token: string): Html => html`<p class="actions">
        <button class="main print" type="button" hidden>${orderPage.print}</button>
        <a class="action" href="../${token}">${guest.back}</a>
      </p>`
