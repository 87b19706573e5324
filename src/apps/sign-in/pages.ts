// The HTML of the pages of a sign-in: documents that load nothing and need no script. What a client says of itself is only ever text.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Html, html } from '../../guests/html.ts'
import { clip, oneLine } from '../../guests/plain-text.ts'
import { fill } from '../../guests/words/index.ts'
import type { Scope } from '../../operations/operation.ts'
import type { SignIn, SignInGrant } from './sign-in.ts'
import type { SignInWords } from './words.ts'

/** A page, and the Content-Security-Policy under which it is sent. */
export type SignInPage = { html: string; policy: string }

/** Where the browser may go on from a form: Usher itself, and from there back to the client. */
type FormTargets = "'self'" | `'self' ${string}`

let style: string | undefined
const styleOfPages = () => {
  style ??= readFileSync(join(import.meta.dirname, 'page.css'), 'utf8')
  return style
}

const policyOf = (formTargets: FormTargets): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(styleOfPages()).digest('base64')}'`,
    "base-uri 'none'",
    `form-action ${formTargets}`,
    "frame-ancestors 'none'",
  ].join('; ')

// Joiners too: an emoji may fall into its parts.
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** One line, without what changes the direction of the text around it. */
export const nameOfClient = (name: string | undefined, host: string): string =>
  clip(oneLine((name ?? '').replace(unseen, '').replace(/(\p{M}{2})\p{M}+/gu, '$1')), 80) ||
  clip(oneLine(host), 80) ||
  'MCP'

/** A sentence with the name of the client: neither changes the direction of the other. */
function named(sentence: string, client: string): Html {
  const [before = '', after = ''] = sentence.split('{client}')
  return html`${before}<bdi>${client}</bdi>${after}`
}

export function loginPage(
  words: SignInWords,
  {
    client,
    lead: given,
    error,
    formToken,
  }: { client?: string | undefined; lead?: string; error?: string | undefined; formToken: string },
): SignInPage {
  const said = client === undefined ? given : named(words.signInFor, client)
  const lead = said !== undefined && html`<p>${said}</p>`
  return page(
    words,
    words.signInTo,
    html`${lead}${problem(error)}
      <form method="post">
        ${hidden(formToken)}
        <label for="key">${words.key}</label>
        <input id="key" name="key" type="password" required autofocus autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="200" aria-describedby="hint">
        <p class="hint" id="hint">${words.keyHint}</p>
        <button class="main" name="action" value="sign_in">${words.signIn}</button>
        ${client !== undefined && html`<button name="action" value="deny" formnovalidate>${words.deny}</button>`}
      </form>`,
  )
}

export type Consent = {
  client: string
  /** Its metadata document. */
  describedAt: string | undefined
  returnsTo: { host: string; isOnDevice: boolean }
  redirectUri: string
  signIn: SignIn
  /** To be decided on now. */
  asked: Scope[]
  ticked: Scope[]
  /** Allowed in this browser before, and asked for again. */
  before: Scope[]
  /** It has a grant in this browser, which is to get the rest. */
  isExtended: boolean
}

export function consentPage(
  words: SignInWords,
  consent: Consent,
  { error, formToken }: { error?: string | undefined; formToken: string },
): SignInPage {
  const { client, describedAt, returnsTo, signIn, asked, before } = consent
  const nothing = asked.length === 0 && before.length === 0
  const title = before.length > 0 && asked.length > 0 ? words.allowMoreTitle : words.allowTitle
  return page(
    words,
    // There are no elements in a title.
    fill(title, { client: `\u2068${client}\u2069` }),
    html`${problem(error)}
      <dl>
        <div><dt>${words.client}</dt><dd><bdi>${client}</bdi></dd>
          <dd class="soft">${words.unverified}</dd></div>
        ${describedAt !== undefined && entry(words.describedAt, describedAt)}
        ${entry(words.returnsTo, returnsTo.isOnDevice ? fill(words.onDevice, { host: returnsTo.host }) : returnsTo.host)}
        ${entry(words.organisation, signIn.organisation.name)}
        ${entry(words.signedInWith, `${signIn.api_key.name} (${signIn.api_key.prefix}…)`)}
      </dl>
      <form method="post">
        ${hidden(formToken)}
        ${before.length > 0 && html`<p class="soft">${words.allowedBefore}: ${before.map((scope) => words.scopeSentences[scope]).join('; ')}.</p>`}
        ${asked.length > 0 && html`<fieldset><legend>${before.length > 0 ? words.newScopes : words.scopes}</legend>${asked.map((scope) => box(scope, words, consent.ticked.includes(scope)))}</fieldset>`}
        ${nothing && html`<p class="error">${words.nothingToAllow}</p>`}
        ${!nothing && terms(words, consent)}
        ${!nothing && html`<button class="main" name="action" value="allow">${words.allow}</button>`}
        <button name="action" value="deny">${words.deny}</button>
        <button name="action" value="sign_out">${words.otherKey}</button>
      </form>`,
    targetsOf(consent.redirectUri),
    named(title, client),
  )
}

export const daysOffered = [1, 7, 30] as const

const terms = (
  words: SignInWords,
  { signIn: { api_key }, isExtended }: Consent,
) => html`<label for="days">${words.end}</label>
        <select id="days" name="days">${daysOffered.map((days) => html`<option value="${String(days)}"${days === 30 && html` selected`}>${fill(days === 1 ? words.day : words.days, { days: String(days) })}</option>`)}</select>
        <p class="hint">${isExtended && `${words.endOfAll} `}${api_key.expires_at !== null && `${fill(words.keyEnds, { date: day(api_key.expires_at, words) })} `}<a href="../grants">${words.takeBack}</a></p>`

const box = (scope: Scope, words: SignInWords, isTicked: boolean) =>
  html`<label class="box"><input type="checkbox" name="scope" value="${scope}"${isTicked && html` checked`}><span>${words.scopeSentences[scope]}</span></label>`

export function grantsPage(
  words: SignInWords,
  signIn: SignIn,
  { error, formToken }: { error?: string | undefined; formToken: string },
): SignInPage {
  const { grants } = signIn
  return page(
    words,
    words.grantsTitle,
    html`${problem(error)}
      <dl>${entry(words.organisation, signIn.organisation.name)}${entry(words.signedInWith, `${signIn.api_key.name} (${signIn.api_key.prefix}…)`)}</dl>
      <p>${grants.length > 0 ? words.grantsLead : words.noGrants}</p>
      ${grants.map((grant) => grantSection(grant, words, formToken))}
      <form method="post">${hidden(formToken)}<button name="action" value="sign_out">${words.signOut}</button></form>`,
  )
}

const grantSection = (grant: SignInGrant, words: SignInWords, formToken: string) => html`<section>
        <h2><bdi>${grant.name}</bdi></h2>
        <dl>
          ${entry(words.returnsTo, grant.returns_to)}
          ${entry(words.scopes, grant.scopes.map((scope) => words.scopeSentences[scope]).join('; '))}
          ${entry(words.allowedOn, day(grant.created_at, words))}
          ${entry(words.lastUsed, grant.last_used_at === null ? words.never : day(grant.last_used_at, words))}
          ${entry(words.endsOn, day(grant.expires_at, words))}
        </dl>
        <form method="post">${hidden(formToken)}<input type="hidden" name="grant_id" value="${grant.id}"><button name="action" value="end">${words.endGrant}<span class="soft"> · <bdi>${grant.name}</bdi></span></button></form>
      </section>`

/** For a person who cannot be sent back to the client. @param detail in English, for whoever made the client. */
export const failurePage = (words: SignInWords, sentence: string, detail?: string): SignInPage =>
  page(
    words,
    words.failedTitle,
    html`<p>${sentence}</p>${detail !== undefined && html`<p class="soft" lang="en">${clip(oneLine(detail), 300)}</p>`}`,
  )

const day = (moment: string, { locale }: SignInWords): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(moment))

export const entry = (name: string, value: string) => html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`
export const hidden = (formToken: string) => html`<input type="hidden" name="form_token" value="${formToken}">`
export const problem = (error: string | undefined) =>
  error !== undefined && html`<p class="error" role="alert">${error}</p>`

/** Chromium holds redirects that follow a form against this too, and a client may send the browser on from where it is returned to. */
function targetsOf(redirectUri: string): FormTargets {
  const { protocol } = new URL(redirectUri)
  return `'self' https:${protocol === 'https:' ? '' : ` ${protocol}`}`
}

// Before anything that a client wrote, so that nothing of it is taken for it.
const place = '/* style */'

export function page(
  words: Pick<SignInWords, 'locale'>,
  title: string,
  content: Html,
  formTargets: FormTargets = "'self'",
  heading: string | Html = title,
): SignInPage {
  const text = html`<!DOCTYPE html>
<html lang="${words.locale.slice(0, 2)}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <style>/* style */</style>
    <title>${title}</title>
  </head>
  <body>
    <main>
      <h1>${heading}</h1>
      ${content}
    </main>
  </body>
</html>
`
  return { html: text.toString().replace(place, () => styleOfPages()), policy: policyOf(formTargets) }
}
