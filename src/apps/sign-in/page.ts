// The frame of the pages of a sign-in and of a confirmation: documents in English that load nothing and need no script. What clients and
// guests wrote is only ever text.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Response } from 'express'
import { type Html, html } from '../../guests/html.ts'
import { paletteOf, propertiesOf } from '../../guests/look.ts'
import { clip, oneLine } from '../../guests/plain-text.ts'
import type { Scope } from '../../operations/operation.ts'
import { sendPage } from '../secret-page.ts'
import { policyOf, type SentPage } from '../tickets/ticket-page-html.ts'

export type Page = SentPage

/** What a page with a form says of it. */
export type Form = {
  /** What went wrong with the form that was sent last. */
  error?: string | undefined
  formToken: string
}

/** Where the browser may go on from a form: Usher itself, and from there back to the client. */
type FormTargets = "'self'" | `'self' ${string}`

const read = (path: string) => readFileSync(join(import.meta.dirname, path), 'utf8')
const style = propertiesOf(paletteOf(null)) + read('../sheet.css') + read('page.css')

// Before anything that a client wrote, so that nothing of it is taken for it.
const place = '/* style */'

export function page(
  title: string,
  content: Html,
  { heading = title, formTargets = "'self'" }: { heading?: string | Html; formTargets?: FormTargets } = {},
): Page {
  const text = html`<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <style>/* style */</style>
    <title>${title}</title>
  </head>
  <body>
    <main class="ticket">
      <header><h1>${heading}</h1></header>
      <div>
      ${content}
      </div>
    </main>
  </body>
</html>
`
  return { html: text.toString().replace(place, () => style), policy: policyOf({ style, formTargets }) }
}

export const send = (res: Response, page: Page, status = 200): void => sendPage(res.status(status), page)

/** @param detail for whoever made the client. */
export const failurePage = (sentence: string, detail?: string): Page =>
  page(
    'Usher cannot continue',
    html`<p>${sentence}</p>${detail !== undefined && html`<p class="help">${clip(oneLine(detail), 300)}</p>`}`,
  )

export const clientFailed = 'The client sent a request that Usher cannot accept. Go back to the client and start again.'
export const tooManyRequests = 'Too many requests came from your network. Wait a minute and try again.'
export const formOutdated = 'This page was out of date. Please try again.'

/** What a client with a scope may do. */
export const scopeSentences: Record<Scope, string> = {
  'events:read': 'see events, ticket types and promo codes',
  'orders:read': 'see orders, payments and who bought',
  'attendees:read': 'see attendees and their contact details',
  'events:write': 'create, change and cancel events',
  'attendees:write': 'register people, and change, transfer and erase them',
  'checkin:write': 'check tickets in at the door',
  'orders:write': 'change and cancel orders, and record payments and refunds',
}

export const sentencesOf = (scopes: Scope[]): string => scopes.map((scope) => scopeSentences[scope]).join('; ')

/** A fact, each of its texts on a line of its own; nothing where there is no text. */
export function entry(name: string, ...texts: (string | false | 0 | null | undefined)[]) {
  const lines = texts.flatMap((text) => (text ? [html`<dd><bdi>${text}</bdi></dd>`] : []))
  return lines.length > 0 && html`<div><dt>${name}</dt>${lines}</div>`
}

/** Also on the page of a confirmation: who asks may be a client. */
export const unverified = html`<dd class="help">The client chose this name itself; Usher has not verified it.</dd>`

type Named = { organisation: { name: string }; api_key: { name: string; prefix: string } }

export const signedInAs = ({ organisation, api_key }: Named) => html`
        ${entry('Organisation', organisation.name)}
        ${entry('Signed in with key', `${api_key.name} (${api_key.prefix}…)`)}`

export const hidden = (formToken: string) => html`<input type="hidden" name="form_token" value="${formToken}">`
export const problem = (error: string | undefined) =>
  error !== undefined && html`<p class="status bad" role="alert">${error}</p>`
export const otherKeyButton = html`<button name="action" value="sign_out">Use another key</button>`

export const dayOf = (instant: string, dateStyle: 'long' | 'full' = 'long', timeZone = 'UTC'): string =>
  new Intl.DateTimeFormat('en-GB', { dateStyle, timeZone }).format(new Date(instant))
