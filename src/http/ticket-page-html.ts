// The HTML of the ticket page, one document that loads nothing: style, script and QR code are inside, so a kept copy is whole.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { type Html, html } from '../courier/html.ts'
import type { PageFacts } from './ticket-page-facts.ts'
import type { TicketPageWords } from './ticket-page-words.ts'

const file = (name: string) => readFileSync(join(import.meta.dirname, 'ticket-page', name), 'utf8')
const style = file('page.css')
const script = stripTypeScriptTypes(file('refresh.ts'))
export const serviceWorker = stripTypeScriptTypes(file('service-worker.ts'))

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** For Content-Security-Policy: the page runs and loads what is in it, and asks this server again. */
export const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  'img-src data:',
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Changes with the page's own files. */
export const version = createHash('sha256').update(style).update(script).digest('base64url')

/** @param qr the picture as a data URL; undefined where no code is to be shown. */
export function ticketPage(facts: PageFacts, token: string, qr: string | undefined, words: TicketPageWords): string {
  const { time, venue, onlineUrl, mapUrl, googleCalendarUrl } = facts
  const main = html`<main class="ticket ${facts.state}">
      <header>
        <p class="from" dir="auto">${facts.organisation}</p>
        <h1 dir="auto">${facts.event}</h1>
      </header>
      ${statusOf(facts, words)}
      ${
        qr !== undefined &&
        html`<figure>
        <img src="${qr}" alt="${words.qrCode(facts.code)}" width="480" height="480">
        <figcaption>${facts.code}</figcaption>
      </figure>`
      }
      <p class="holder" dir="auto">${facts.attendee}</p>
      ${facts.company && html`<p class="company" dir="auto">${facts.company}</p>`}
      <dl>
        ${entry(words.when, time ? [...time.lines, time.zone] : [words.toBeAnnounced])}
        ${entry(
          words.where,
          venue.length > 0 ? venue : [onlineUrl === undefined ? words.toBeAnnounced : words.online],
          onlineUrl !== undefined && html`<a href="${onlineUrl}" rel="noreferrer">${onlineUrl}</a>`,
          mapUrl !== undefined && html`<a class="action" href="${mapUrl}" rel="noreferrer">${words.map}</a>`,
        )}
        ${entry(words.ticket, [facts.ticketType])}
        ${entry(words.order, [facts.reference])}
      </dl>
      ${
        googleCalendarUrl !== undefined &&
        html`<p class="actions">
        <a class="action" href="${token}/ticket.ics" type="text/calendar">${words.calendar}</a>
        <a class="action" href="${googleCalendarUrl}" rel="noreferrer">${words.googleCalendar}</a>
      </p>`
      }
    </main>`
  return document(`${words.title}: ${facts.event}`, main, words)
}

/** The page for a link that leads to no ticket, the same for each, and the one for a ticket that cannot be shown now. */
export function noTicketPage(kind: 'unknown' | 'busy', words: TicketPageWords): string {
  const [title, sentence] = kind === 'unknown' ? [words.unknownTitle, words.unknown] : [words.busyTitle, words.busy]
  return document(
    title,
    html`<main class="ticket none"><header><h1>${title}</h1></header><p class="status">${sentence}</p></main>`,
    words,
  )
}

function statusOf({ state, ended, checkedIn, venue, onlineUrl }: PageFacts, words: TicketPageWords): Html {
  const valid = venue.length === 0 && onlineUrl !== undefined ? words.validOnline : words.valid
  const sentence = {
    valid,
    checked_in: words.checkedIn([...(checkedIn?.lines ?? []), checkedIn?.zone].join(', ')),
    awaiting_payment: words.awaitingPayment,
    cancelled: words.cancelled,
    event_cancelled: words.eventCancelled,
  }[state]
  return html`<p class="status">${sentence}</p>
      ${ended && state !== 'event_cancelled' && html`<p class="status ended">${words.eventEnded}</p>`}`
}

const entry = (name: string, lines: string[], ...links: (Html | false)[]) => html`<div>
          <dt>${name}</dt>
          ${lines.map((line) => html`<dd dir="auto">${line}</dd>`)}
          ${links.map((link) => link && html`<dd>${link}</dd>`)}
        </div>`

// Before anything that a person typed, so that nothing of theirs is taken for it.
const places = { style: '/* style */', script: '/* script */' }

// The organiser's colours and another language come in here: custom properties in the style (and its hash), words, and lang.
const document = (title: string, main: Html, words: TicketPageWords): string =>
  html`<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <meta name="referrer" content="no-referrer">
    <meta name="format-detection" content="telephone=no, date=no, address=no, email=no">
    <style>/* style */</style>
    <script type="module">/* script */</script>
    <title>${title}</title>
  </head>
  <body>
    ${main}
    <footer><p id="live" role="status" data-outdated="${words.outdated}"></p></footer>
  </body>
</html>
`
    .toString()
    .replace(places.style, () => style)
    .replace(places.script, () => script)
