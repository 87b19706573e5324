// The HTML of the ticket page, one document that loads nothing but the logo: style, script and QR code are inside, so a kept copy admits.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { type Facts, isOnlineOnly, whenLines, whereLines } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import { type Palette, paletteOf, propertiesOf } from '../../guests/look.ts'
import { notesHtml } from '../../guests/notes.ts'
import { fill, type Words } from '../../guests/words/index.ts'
import type { PageFacts } from './ticket-page-facts.ts'

const read = (name: string) => readFileSync(join(import.meta.dirname, 'browser', name), 'utf8')
export const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Files of the page, and a version that changes with them. */
function readFiles() {
  const [style, script] = [read('../../sheet.css') + read('page.css'), stripTypeScriptTypes(read('refresh.ts'))]
  const serviceWorker = stripTypeScriptTypes(read('service-worker.ts'))
  return { style, script, serviceWorker, version: hashOf(propertiesOf(paletteOf(null)) + style + script) }
}

let made: ReturnType<typeof readFiles> | undefined
/** Read on the first request, as those of the door page. */
export const pageFiles = () => {
  made ??= readFiles()
  return made
}

/** A page, and the Content-Security-Policy under which it is sent. */
export type SentPage = { html: string; policy: string }

/** `formTargets`: where the browser may go on from a form. `framedBy`: origins of pages that may show this one. */
type Allowed = {
  style?: string
  script?: string
  logo?: string | null
  formTargets?: string
  framedBy?: string[]
}

/** The page runs what is in it, if anything, loads nothing but the logo, and asks this server again. */
export const policyOf = ({
  style = '',
  script = '',
  logo = null,
  formTargets = "'self'",
  framedBy = [],
}: Allowed): string =>
  [
    "default-src 'none'",
    ...(script === '' ? [] : [`script-src ${hashOf(script)}`]),
    `style-src ${hashOf(style)}`,
    // A still page shows no code either.
    ...(script === '' && logo === null ? [] : [`img-src data:${logo === null ? '' : ` ${originOf(logo)}`}`]),
    ...(script === '' ? [] : ["connect-src 'self'", "worker-src 'self'"]),
    "base-uri 'none'",
    `form-action ${formTargets}`,
    `frame-ancestors ${framedBy.join(' ') || "'none'"}`,
  ].join('; ')

/** A host may have what ends a directive or a policy. */
const originOf = (url: string): string => (URL.parse(url)?.origin ?? '').replace(/[;,]/g, encodeURIComponent)

/** In the organiser's colours, which go first: on paper the style has others. */
const styleOf = (palette: Palette): string => propertiesOf(palette) + pageFiles().style

/** `qr`: a data URL; undefined where no code is to be shown. `logo`: its address. */
type Pictures = { qr: string | undefined; logo: string | null }

export function ticketPage(facts: PageFacts, token: string, { qr, logo }: Pictures): SentPage {
  const { words, onlineUrl, mapUrl, googleCalendarUrl } = facts
  const main = html`<main class="ticket ${facts.state}">
      ${head(facts, logo)}
      ${statusOf(facts)}
      ${qr !== undefined && codeFigure(qr, facts.code ?? '', words)}
      <p class="holder" dir="auto">${facts.attendee}</p>
      ${facts.company && html`<p class="company" dir="auto">${facts.company}</p>`}
      <dl>
        ${entry(words.when, whenLines(facts.time, words))}
        ${entry(
          words.where,
          whereLines(facts, words),
          onlineUrl !== undefined && html`<a class="address" href="${onlineUrl}" rel="noreferrer">${onlineUrl}</a>`,
          mapUrl !== undefined && html`<a class="action" href="${mapUrl}" rel="noreferrer">${words.page.map}</a>`,
        )}
        ${entry(words.ticket, [facts.ticketType])}
        ${entry(words.order, [facts.reference])}
      </dl>
      ${facts.state.endsWith('cancelled') ? undefined : notesOf(facts)}
      ${
        googleCalendarUrl !== undefined &&
        html`<p class="actions">
        <a class="action" href="${token}/ticket.ics" type="text/calendar">${words.page.calendar}</a>
        <a class="action" href="${googleCalendarUrl}" rel="noreferrer">${words.page.googleCalendar}</a>
      </p>`
      }
      ${emailsOf(facts, token)}
      ${contactOf(facts)}
    </main>`
  return document(fill(words.page.title, { event: facts.event }), main, words, { palette: facts.palette, logo })
}

/** The page for a link that leads nowhere, the same for each, and the one for what cannot be shown now. */
export function noPage(kind: 'unknown' | 'busy', words: Words, look: Look = { script: '' }): SentPage {
  const { unknownTitle, unknown, busyTitle, busy } = words.link
  const [title, sentence] = kind === 'unknown' ? [unknownTitle, unknown] : [busyTitle, busy]
  return document(title, onlySaying(title, sentence), words, look)
}

/** In place of a ticket. */
export const onlySaying = (title: string, sentence: string): Html =>
  html`<main class="ticket none"><header><h1>${title}</h1></header><p class="status">${sentence}</p></main>`

type Named = { organisation: string; event: string; test: string | undefined }

export const head = (
  { organisation, event, test }: Named,
  logo: string | null = null,
  title = event,
): Html => html`<header>
        ${logo !== null && html`<img class="logo" src="${logo}" alt="">`}
        <p class="from" dir="auto">${organisation}</p>
        <h1 dir="auto">${title}</h1>
      </header>${
        test !== undefined &&
        html`
      <p class="status notice">${test}</p>`
      }`

/** @param qr a data URL. */
export const codeFigure = (qr: string, code: string, words: Words): Html => html`<figure>
        <img src="${qr}" alt="${fill(words.qrCode, { code })}" width="480" height="480">
        <figcaption>${code}</figcaption>
        <button type="button"><span>${words.page.fullScreen}</span><span>${words.page.closeFullScreen}</span></button>
      </figure>`

function statusOf(facts: PageFacts): Html {
  const { words, state, ended, checkedIn } = facts
  const { page } = words
  const sentence = {
    valid: !ended && (isOnlineOnly(facts) ? words.keepAtHand : page.valid),
    checked_in: fill(page.checkedIn, { time: checkedIn ?? '' }),
    awaiting_payment: !ended && page.awaitingPayment,
    cancelled: page.cancelled,
    event_cancelled: page.eventCancelled,
  }[state]
  return html`${sentence && html`<p class="status">${sentence}</p>`}
      ${ended && state !== 'event_cancelled' && html`<p class="status ended">${page.eventEnded}</p>`}`
}

function emailsOf({ words, emails }: PageFacts, token: string): Html | undefined {
  if (emails === undefined) return undefined
  const { on, off, switchOn, switchOff } = words.optOut
  return html`<form class="emails" method="post" action="${token}/emails/${emails ? 'off' : 'on'}">
        <span>${emails ? on : off}</span> <button>${emails ? switchOff : switchOn}</button>
      </form>`
}

export function contactOf({ words, organisation, replyTo }: Pick<Facts, 'words' | 'organisation' | 'replyTo'>): Html {
  const sentence = fill(replyTo === undefined ? words.ask : words.write, { organisation })
  return html`<p class="contact">${sentence}${
    replyTo !== undefined && html` <a class="address" href="mailto:${replyTo}">${replyTo}</a>`
  }</p>`
}

/** What the organiser says in their own words. */
export function notesOf({
  words,
  organisation,
  note,
}: Pick<Facts, 'words' | 'organisation' | 'note'>): Html | undefined {
  if (note === undefined) return undefined
  return html`<section class="notes" lang="${note.locale}">
        <h2>${fill(words.message, { organisation })}</h2>
        ${notesHtml(note.text)}
      </section>`
}

export const entry = (name: string, lines: string[], ...links: (Html | false)[]) => html`<div>
          <dt>${name}</dt>
          ${lines.map((line) => html`<dd dir="auto">${line}</dd>`)}
          ${links.map((link) => link && html`<dd>${link}</dd>`)}
        </div>`

// Before anything that a person typed: that is found only on a page without script or data, and stays.
const places = { style: '/* style */', script: '/* script */', data: '/* data */' }

/** A page that does not ask again. */
export const stillPage = (title: string, main: Html, words: Words, palette?: Palette): SentPage =>
  document(title, main, words, { palette, script: '' })

/**
 * Beside what a page says: an order page has a style of its own after that of a ticket, and another script. `meta` and `data` (JSON-LD) are for
 * search engines and previews.
 */
type Look = Pick<Allowed, 'logo' | 'framedBy'> & {
  palette?: Palette | undefined
  style?: string
  script?: string
  meta?: Html
  data?: object | undefined
}

export function document(title: string, main: Html, words: Words, look: Look = {}): SentPage {
  const { palette = paletteOf(null), script = pageFiles().script, logo = null, framedBy = [], data } = look
  const { meta = html`<meta name="robots" content="noindex">` } = look
  const style = styleOf(palette) + (look.style ?? '')
  const page = html`<!DOCTYPE html>
<html lang="${words.locale.slice(0, 2)}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <meta name="referrer" content="no-referrer">
    <meta name="format-detection" content="telephone=no, date=no, address=no, email=no">
    <style>/* style */</style>
    ${script !== '' && html`<script type="module">/* script */</script>`}
    ${data && html`<script type="application/ld+json">/* data */</script>`}
    ${meta}
    <title>${title}</title>
  </head>
  <body>
    ${main}
    ${script !== '' && html`<footer><p id="live" role="status" data-outdated="${words.page.outdated}"></p></footer>`}
  </body>
</html>
`
    .toString()
    .replace(places.style, () => style)
    .replace(places.script, (typed) => script || typed)
    .replace(places.data, (typed) => (data === undefined ? typed : JSON.stringify(data).replaceAll('<', '\\u003c')))
  return { html: page, policy: policyOf({ style, script, logo, framedBy }) }
}
