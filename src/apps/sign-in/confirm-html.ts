// The HTML of the page on which a person confirms: what will happen, in numbers, to whom, and who asks for it.

import { amountOf } from '../../guests/facts.ts'
import { html } from '../../guests/html.ts'
import { notesHtml } from '../../guests/notes.ts'
import { clip, linesOf, oneLine } from '../../guests/plain-text.ts'
import { wordsOf } from '../../guests/words/index.ts'
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
  signedInAs,
  unverified,
} from './page.ts'
import type { SignIn } from './sign-in.ts'

type PersonToErase = { name: string; tickets: number; orders: number; waiting_list: number; is_member: boolean }

/** As `api.get_confirmation` returns it. What follows `expires_at` is null for a key that may not confirm. */
export type Confirmation = {
  state: 'open' | 'confirmed' | 'spent' | 'expired'
  operation: string
  scope: Scope
  may_confirm: boolean
  asked_by: { name: string; prefix: string; kind: 'key' | 'grant' }
  expires_at: string
  effect: Effect | null
  changes: Record<string, unknown> | null
  /** What guests read: [before, now] */
  news: Record<string, [unknown, unknown]> | null
  message: string | null
  message_subject: string | null
  /** The filter of a message: by name of the argument. */
  audience: Record<string, unknown> | null
  steps: Step[] | null
  more_steps: number | null
  subject:
    | (Record<'event' | 'slug' | 'starts_at' | 'timezone' | 'order' | 'person', string | null> & {
        people: PersonToErase[] | null
      })
    | null
}

/** Of apply_event: what is new has values, what is changed [before, now]. */
type Step = { action: string; kind: string; name: string | null; changes?: Record<string, unknown> }

type Effect = {
  orders?: number
  attendees?: number
  waiting_list?: number
  told?: number
  not_told?: { reason: string; count: number }[]
  /** null: the key of whoever looks may not see it. */
  refund_due?: number | null
  refunded?: number
  currency?: string
}

export function confirmationPage(asked: Confirmation, signIn: SignIn, form: Form): Page {
  const { state, asked_by, may_confirm, scope } = asked
  if (state === 'expired') return unknownPage(form)
  if (state === 'spent')
    return statePage('Done', 'The confirmed operation was carried out. You can close this page.', form)
  const [question, act] = questionOf(asked)
  const isConfirmed = state === 'confirmed'
  const confirmed = html`<p>Go back to the assistant and tell it that you confirmed. Nothing has happened yet: the assistant has
        to repeat its request.</p>
      <p>${question}</p>`
  return page(
    isConfirmed ? 'Confirmed' : question,
    html`${problem(form.error)}
      ${isConfirmed && confirmed}
      <dl>
        <div><dt>Requested by</dt><dd><bdi>${clip(oneLine(asked_by.name), 100)}</bdi></dd>
          <dd class="help">${asked_by.prefix}…</dd>${asked_by.kind === 'grant' && unverified}</div>
        ${may_confirm && factsOf(asked)}
        ${signedInAs(signIn)}
      </dl>
      ${!may_confirm && html`<p class="status bad">Your key may not do this. It needs the scope ${scope}: ${scopeSentences[scope]}.</p>`}
      <form method="post">
        ${hidden(form.formToken)}
        ${may_confirm && decision(asked, act)}
        ${otherKeyButton}
      </form>`,
  )
}

function decision({ state, operation, expires_at }: Confirmation, act: string) {
  const minutes = Math.max(1, Math.floor((Date.parse(expires_at) - Date.now()) / 60_000))
  const validity = html`<p class="help">Valid once, for another ${minutes === 1 ? 'minute' : `${minutes} minutes`}.</p>`
  if (state === 'confirmed')
    return html`${validity}<button name="action" value="refuse">Withdraw the confirmation</button>`
  // Until its end it can be published again.
  const isFinal = operation !== 'complete_event'
  return html`${validity}${isFinal && html`<p class="status bad">This cannot be undone.</p>`}
        <button class="main final" name="action" value="confirm">${act}</button>
        <button name="action" value="refuse">Refuse</button>`
}

/** For one that is over, of another organisation, or was never there: which, it does not tell. */
export const unknownPage = (form: Form): Page =>
  statePage(
    'There is nothing to confirm here',
    'The request has expired, was refused, or belongs to another organisation. Ask the assistant for a new link, or use another key.',
    form,
  )

const statePage = (title: string, sentence: string, { error, formToken }: Form): Page =>
  page(
    title,
    html`${problem(error)}<p>${sentence}</p>
      <form method="post">${hidden(formToken)}${otherKeyButton}</form>`,
  )

function questionOf({ operation, subject }: Confirmation): [question: string, act: string] {
  const [event, person, order] = [quoted(subject?.event), quoted(subject?.person), subject?.order ?? '…']
  switch (operation) {
    case 'cancel_event':
      return [`Cancel ${event}?`, 'Cancel the event']
    case 'complete_event':
      return [`Complete ${event} before it starts?`, 'Close registrations']
    case 'update_event':
    case 'apply_event':
      return [`E-mail the guests of ${event} about the changes?`, 'E-mail the guests']
    case 'cancel_order':
      return [`Cancel order ${order} and e-mail its guests?`, 'Cancel the order']
    case 'cancel_attendee':
      return [`Cancel the ticket of ${person} and e-mail the guests?`, 'Cancel the ticket']
    case 'erase_attendee':
    case 'erase_person':
      return [`Erase ${person} permanently?`, `Erase ${clip(oneLine(subject?.person ?? '…'), 100)}’s data`]
    case 'import_attendees':
      return [`E-mail the new guests of ${event} their tickets?`, 'E-mail the tickets']
    case 'send_payment_reminders':
      return [`Remind the buyers of ${event} to pay?`, 'Send the reminders']
    case 'remind_unanswered':
      return [`Remind the guests of ${event} to answer its questions?`, 'Send the reminders']
    case 'message_attendees':
      return [`Send this message to the guests of ${event}?`, 'Send the message']
    case 'record_refund':
      return [`Record a refund for order ${order}?`, 'Record the refund']
    default:
      return [`Carry out ${operation}?`, 'Confirm']
  }
}

function factsOf({ operation, subject, effect, changes, news, steps, more_steps, ...asked }: Confirmation) {
  const { event, slug, starts_at, timezone, order, person, people } = subject ?? {}
  const { orders, attendees, waiting_list, told, not_told = [], refund_due, refunded, currency = '' } = effect ?? {}
  const notTold = not_told.reduce((sum, { count }) => sum + count, 0)
  const day = starts_at && dayOf(starts_at, 'full', timezone ?? 'UTC')
  return html`${
    // Others may have its name, or may have had it before; hardly with the same day.
    entry('Event', event && [`${clip(oneLine(event), 200)} (${slug})`, day].filter(Boolean).join(', '))
  }
        ${entry('Order', order)}
        ${entry('Person', person && clip(oneLine(person), 200))}
        ${entry('People to erase', ...(people ?? []).map((each, n) => (n < mostPeople ? personOf(each) : '…')))}
        ${entry(
          'Effect',
          // A count of none is said where there might have been some.
          orders !== undefined && `${counted(orders, 'order')} will be affected`,
          attendees !== undefined && `${counted(attendees, 'ticket')} will be affected`,
          waiting_list && `${counted(waiting_list, 'person', 'people')} on the waiting list will be affected`,
          told !== undefined &&
            !operation.startsWith('erase_') &&
            `${counted(told, 'person', 'people')} will be e-mailed`,
          notTold && `${counted(notTold, 'person', 'people')} will not be e-mailed${reasonsOf(not_told)}`,
        )}
        ${entry('To be refunded', refund_due && amountOf(refund_due, currency, wordsOf('en')))}
        ${entry('To be refunded', refund_due === null && 'Your key may not see this amount')}
        ${entry('Refund', refunded !== undefined && amountOf(refunded, currency, wordsOf('en')))}
        ${entry('Changes', changesOf(changes ?? {}, false))}
        ${entry('Sent to guests', news && (changesOf(news, true) || 'Nothing new'))}
        ${messageOf(asked)}
        ${entry('Steps', ...(steps ?? []).map(stepOf), more_steps && `… and ${numbers.format(more_steps)} more`)}`
}

function messageOf({
  message,
  message_subject,
  audience,
}: Pick<Confirmation, 'message' | 'message_subject' | 'audience'>) {
  if (message_subject === null) return entry('Message to guests', ...linesOf(message ?? ''))
  return html`${entry('Only guests with', changesOf(audience ?? {}, false))}
        ${entry('Subject', oneLine(message_subject))}
        <div><dt>Message to guests</dt><dd class="notes">${notesHtml(message ?? '')}</dd></div>`
}

const reasons: Record<string, string> = {
  switched_off: 'unsubscribed',
  told_before: 'had this before',
  send_email_false: 'e-mails switched off for their order',
  no_address: 'no e-mail address',
}

const reasonsOf = (not_told: { reason: string; count: number }[]): string => {
  const texts = not_told.map(
    ({ reason, count }) => `${reasons[reason] ?? reason.replaceAll('_', ' ')}: ${numbers.format(count)}`,
  )
  return texts.length > 0 ? ` (${texts.join(', ')})` : ''
}

const quoted = (text: string | null | undefined) => (text ? `“${clip(oneLine(text), 100)}”` : '…')

function personOf({ name, tickets, orders, waiting_list, is_member }: PersonToErase): string {
  const counts = [
    `tickets: ${numbers.format(tickets)}`,
    `orders: ${numbers.format(orders)}`,
    ...(waiting_list > 0 ? [`waiting list: ${numbers.format(waiting_list)}`] : []),
  ]
  return `${clip(oneLine(name), 100)} (${counts.join(', ')})${is_member ? ', member of the organisation' : ''}`
}

const kinds: Record<string, string> = {
  event: 'Event',
  ticket_type: 'Ticket type',
  promo_code: 'Promo code',
  question: 'Question',
  check_in_point: 'Check-in point',
}
const actions: Record<string, string> = { create: 'new', change: 'changed', archive: 'archived' }

function stepOf({ action, kind, name, changes = {} }: Step): string {
  const title = `${kinds[kind] ?? kind} ${quoted(name)}: ${actions[action] ?? action}`
  const what = changesOf(changes, action !== 'create')
  return what ? `${title} (${what})` : title
}

const mostChanges = 12
const mostPeople = 20

// The longest name is shown whole.
const mostCharacters = 250

function textOf(value: unknown): string {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return Object.entries(value)
      .filter(([, part]) => part !== null)
      .map(([name, part]) => `${name} ${textOf(part)}`)
      .join(', ')
  return clip(oneLine(typeof value === 'string' ? value : value === null ? '–' : JSON.stringify(value)), mostCharacters)
}

/** Names of fields are those of the interface. */
function changesOf(changes: Record<string, unknown>, arePairs: boolean): string {
  const all = Object.entries(changes)
  const parts = all.slice(0, mostChanges).map(([name, value]) => {
    const texts = arePairs ? (value as unknown[]).map(textOf) : [textOf(value)]
    return `${name}: ${texts.join(' → ')}`
  })
  return [...parts, ...(all.length > mostChanges ? ['…'] : [])].join('; ')
}

const numbers = new Intl.NumberFormat('en-GB')

const counted = (count: number, one: string, many = `${one}s`): string =>
  `${numbers.format(count)} ${count === 1 ? one : many}`
