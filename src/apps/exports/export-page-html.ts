// The HTML of the page of a link to an export: a form with one button, without a script. It is in English, as the API is.

import { paletteOf } from '../../guests/colours.ts'
import { type Html, html } from '../../guests/html.ts'
import { hashOf, type SentPage, styleOf } from '../tickets/ticket-page-html.ts'

export type { SentPage }

export type ExportPageFacts = {
  title: string
  organisation: { name: string; accent_colour: string | null }
  /** Name of the event that the file is about, if it is about one. */
  event: string | null
  /** RFC 3339. */
  expiresAt: string
}

const buttonStyle = `
form {
  padding: 0.5rem 1.25rem 0;
}
button {
  padding: 0.75rem 1.25rem;
  border: 0;
  border-radius: 0.5rem;
  background: var(--accent);
  color: var(--on-accent);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}
`

/** The page loads nothing, and sends its form to this server. */
export const policyOfExport = (style: string): string =>
  [
    "default-src 'none'",
    `style-src ${hashOf(style)}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')

export function exportPage({ title, organisation, event, expiresAt }: ExportPageFacts): SentPage {
  const main = html`<main class="ticket">
      <header>
        <p class="from" dir="auto">${organisation.name}</p>
        <h1>${title}</h1>
      </header>
      <dl>
        ${event !== null && html`<div><dt>Event</dt><dd dir="auto">${event}</dd></div>`}
        <div><dt>File</dt><dd>CSV, for a spreadsheet</dd></div>
        <div><dt>The link works until</dt><dd>${expiresAt.slice(11, 16)} UTC</dd></div>
      </dl>
      <form method="post"><button>Download</button></form>
      <p class="contact">The file holds personal data. Pass it on only to those who need it.</p>
    </main>`
  return document(title, main, organisation.accent_colour)
}

/** For a link that leads to no file, the same for each, and for one whose file cannot be sent now. */
export function noExportPage(kind: 'unknown' | 'busy'): SentPage {
  const [title, sentence] =
    kind === 'unknown'
      ? ['No such export', 'This link has expired, or never led to anything. Ask for a new one.']
      : ['Not now', 'The file cannot be sent right now. Go back, and try again in a minute.']
  return document(
    title,
    html`<main class="ticket none"><header><h1>${title}</h1></header><p class="status">${sentence}</p></main>`,
    null,
  )
}

// Before anything that a person typed, so that nothing of theirs is taken for it.
const place = '/* style */'

function document(title: string, main: Html, accent: string | null): SentPage {
  const style = styleOf(paletteOf(accent)) + buttonStyle
  const page = html`<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <meta name="referrer" content="no-referrer">
    <style>/* style */</style>
    <title>${title}</title>
  </head>
  <body>
    ${main}
  </body>
</html>
`
    .toString()
    .replace(place, () => style)
  return { html: page, policy: policyOfExport(style) }
}
