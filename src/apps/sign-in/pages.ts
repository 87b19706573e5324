// The pages of a sign-in: where a key is pasted, what a client asks for, and what was allowed.

import { type Html, html } from '../../guests/html.ts'
import { clip, oneLine } from '../../guests/plain-text.ts'
import type { Scope } from '../../operations/operation.ts'
import {
  dayOf,
  entry,
  type Form,
  hidden,
  otherKeyButton,
  type Page,
  page,
  problem,
  scopeSentences,
  sentencesOf,
  signedInAs,
  unverified,
} from './page.ts'
import type { SignIn, SignInGrant } from './sign-in.ts'

// Joiners too: an emoji may fall into its parts.
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** One line, without what changes the direction of the text around it. */
export const nameOfClient = (name: string | undefined, host: string): string =>
  clip(oneLine((name ?? '').replace(unseen, '').replace(/(\p{M}{2})\p{M}+/gu, '$1')), 80) ||
  clip(oneLine(host), 80) ||
  'MCP'

/** @param mayRefuse whether a client waits for an answer. */
export const loginPage = ({ error, formToken }: Form, lead?: string | Html, mayRefuse = false): Page =>
  page(
    'Sign in to Usher',
    html`${lead !== undefined && html`<p>${lead}</p>`}${problem(error)}
      <form method="post">
        ${hidden(formToken)}
        <label for="key">API key</label>
        <input id="key" name="key" type="password" required autofocus maxlength="200" autocomplete="off" autocapitalize="off"
          spellcheck="false" aria-describedby="hint">
        <p class="help" id="hint">Your personal key for your organisation; it starts with usher_live_ or usher_test_. No client ever
          sees it.</p>
        <button class="main" name="action" value="sign_in">Sign in</button>
        ${mayRefuse && html`<button name="action" value="deny" formnovalidate>Refuse</button>`}
      </form>`,
  )

export const clientLoginPage = (client: string, form: Form): Page =>
  loginPage(form, html`<bdi>${client}</bdi> wants to use Usher for you. Sign in, then decide what it may do.`, true)

export type Consent = {
  client: string
  /** Its metadata document. */
  describedAt: string | undefined
  returnsTo: { host: string; isOnDevice: boolean }
  redirectUri: string
  signIn: SignIn
  /** To be decided on now. */
  asked: Scope[]
  /** Allowed in this browser before, and asked for again. */
  before: Scope[]
  /** It has a grant in this browser, which is to get the rest. */
  isExtended: boolean
}

export function consentPage(consent: Consent, { error, formToken }: Form): Page {
  const { client, describedAt, returnsTo, redirectUri, signIn, asked, before } = consent
  const nothing = asked.length === 0 && before.length === 0
  const [start, end] = before.length > 0 && asked.length > 0 ? ['Give ', ' more access?'] : ['Allow ', ' to use Usher?']
  return page(
    // There are no elements in a title.
    `${start}\u2068${client}\u2069${end}`,
    html`${problem(error)}
      <dl>
        <div><dt>Client</dt><dd><bdi>${client}</bdi></dd>${unverified}</div>
        ${entry('Described at', describedAt)}
        ${entry('Returns you to', returnsTo.isOnDevice ? `a program on this device (${returnsTo.host})` : returnsTo.host)}
        ${signedInAs(signIn)}
      </dl>
      <form method="post">
        ${hidden(formToken)}
        ${before.length > 0 && html`<p class="help">Already allowed: ${sentencesOf(before)}.</p>`}
        ${asked.length > 0 && html`<fieldset><legend>It may${before.length > 0 && ' also'}</legend>${asked.map(box)}</fieldset>`}
        ${nothing ? noScopes : terms(consent)}
        <button name="action" value="deny">Refuse</button>
        ${otherKeyButton}
      </form>`,
    { heading: html`${start}<bdi>${client}</bdi>${end}`, formTargets: targetsOf(redirectUri) },
  )
}

const noScopes = html`<p class="status bad">Your key has none of the scopes that the client asks for. Use another key, or refuse.</p>`

// What only reads is ticked.
const box = (scope: Scope) => html`<label class="choice">
          <input type="checkbox" name="scope" value="${scope}"${scope.endsWith(':read') && html` checked`}>
          <span>${scopeSentences[scope]}</span>
        </label>`

export const daysOffered = [1, 7, 30] as const

const terms = ({ signIn: { api_key }, isExtended }: Consent) => html`<label for="days">Valid for</label>
        <select id="days" name="days">${daysOffered.map(daysOption)}</select>
        <p class="help">${isExtended && 'What you allowed this client before will end at the same time.'}
          ${api_key.expires_at !== null && `Access ends on ${dayOf(api_key.expires_at)} at the latest, when your key expires.`}
          <a href="../grants">You can revoke it at any time.</a></p>
        <button class="main" name="action" value="allow">Allow</button>`

const daysOption = (days: number) =>
  html`<option value="${String(days)}"${days === 30 && html` selected`}>${days === 1 ? '1 day' : `${days} days`}</option>`

export const grantsPage = (signIn: SignIn, { error, formToken }: Form): Page =>
  page(
    'Clients that you allowed',
    html`${problem(error)}
      <dl>${signedInAs(signIn)}</dl>
      <p>${signIn.grants.length > 0 ? 'These clients use Usher with this key.' : 'No client may use Usher with this key.'}</p>
      ${signIn.grants.map((grant) => grantSection(grant, formToken))}
      <form method="post">${hidden(formToken)}<button name="action" value="sign_out">Sign out</button></form>`,
  )

const grantSection = (grant: SignInGrant, formToken: string) => html`<section>
        <h2><bdi>${grant.name}</bdi></h2>
        <dl>
          ${entry('Returns you to', grant.returns_to)}
          ${entry('It may', sentencesOf(grant.scopes))}
          ${entry('Allowed on', dayOf(grant.created_at))}
          ${entry('Last used', grant.last_used_at === null ? 'never' : dayOf(grant.last_used_at))}
          ${entry('Ends on', dayOf(grant.expires_at))}
        </dl>
        <form method="post">
          ${hidden(formToken)}<input type="hidden" name="grant_id" value="${grant.id}">
          <button name="action" value="end">Revoke<span class="help"> · <bdi>${grant.name}</bdi></span></button>
        </form>
      </section>`

/** Chromium holds redirects that follow a form against this too, and a client may send the browser on from where it is returned to. */
function targetsOf(redirectUri: string): `'self' ${string}` {
  const { protocol } = new URL(redirectUri)
  return `'self' https:${protocol === 'https:' ? '' : ` ${protocol}`}`
}
