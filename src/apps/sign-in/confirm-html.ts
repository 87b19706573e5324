// The HTML of the page on which a person confirms: what will happen, in numbers, to whom, and who asks for it. What clients and guests wrote
// is only ever text.

import { html } from '../../guests/html.ts'
import { currencyStyle, decimalsOf } from '../../guests/minor-units.ts'
import { clip, linesOf, oneLine } from '../../guests/plain-text.ts'
import { fill } from '../../guests/words/index.ts'
import type { Scope } from '../../operations/operation.ts'
import type { ConfirmWords } from './confirm-words.ts'
import { entry, hidden, page, problem, type SignInPage } from './pages.ts'
import type { SignIn } from './sign-in.ts'
import type { SignInWords } from './words.ts'

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

type Form = { error?: string | undefined; formToken: string }

export function confirmationPage(
  words: SignInWords,
  said: ConfirmWords,
  asked: Confirmation,
  { organisation, api_key }: SignIn,
  { error, formToken }: Form,
): SignInPage {
  const { state, asked_by } = asked
  if (state === 'spent') return statePage(words, said.spentTitle, said.spent, { error, formToken })
  if (state === 'expired') return statePage(words, said.unknownTitle, said.unknown, { error, formToken })
  const isConfirmed = state === 'confirmed'
  const minutes = Math.max(1, Math.floor((Date.parse(asked.expires_at) - Date.now()) / 60_000))
  return page(
    words,
    isConfirmed ? said.confirmedTitle : titleOf(asked, said),
    html`${problem(error)}
      ${isConfirmed && html`<p>${said.confirmed}</p><p>${titleOf(asked, said)}</p>`}
      <dl>
        <div><dt>${said.askedBy}</dt><dd><bdi>${clip(oneLine(asked_by.name), 100)}</bdi></dd><dd class="soft">${asked_by.prefix}… ${asked_by.kind === 'grant' && words.unverified}</dd></div>
        ${asked.may_confirm && factsOf(asked, said)}
        ${entry(words.organisation, organisation.name)}
        ${entry(words.signedInWith, `${api_key.name} (${api_key.prefix}…)`)}
      </dl>
      ${!asked.may_confirm && html`<p class="error">${fill(said.mayNot, { scope: words.scopeSentences[asked.scope] })}</p>`}
      <form method="post">
        ${hidden(formToken)}
        ${asked.may_confirm && html`<p class="hint">${fill(minutes === 1 ? said.minute : said.minutes, { minutes: String(minutes) })}</p>`}
        ${
          asked.may_confirm &&
          !isConfirmed &&
          html`${
            // Until its end it can be published again.
            asked.operation !== 'complete_event' && html`<p class="error">${said.final}</p>`
          }<button class="main final" name="action" value="confirm">${actOf(asked, said)}</button>`
        }
        ${asked.may_confirm && html`<button name="action" value="refuse">${isConfirmed ? said.takeBack : words.deny}</button>`}
        <button name="action" value="sign_out">${words.otherKey}</button>
      </form>`,
  )
}

/** For one that is over, of another organisation, or was never there: which, it does not tell. */
export const unknownPage = (words: SignInWords, said: ConfirmWords, form: Form): SignInPage =>
  statePage(words, said.unknownTitle, said.unknown, form)

const statePage = (words: SignInWords, title: string, sentence: string, { error, formToken }: Form) =>
  page(
    words,
    title,
    html`${problem(error)}<p>${sentence}</p>
      <form method="post">${hidden(formToken)}<button name="action" value="sign_out">${words.otherKey}</button></form>`,
  )

const quoted = (text: string | null | undefined, words: ConfirmWords) =>
  text ? fill(words.quoted, { text: clip(oneLine(text), 100) }) : '…'

const titleOf = ({ operation, subject }: Confirmation, said: ConfirmWords): string =>
  fill(said.titles[operation]?.[0] ?? said.anyTitle, {
    operation,
    event: quoted(subject?.event, said),
    person: quoted(subject?.person, said),
    order: subject?.order ?? '…',
  })

const actOf = ({ operation, subject }: Confirmation, said: ConfirmWords): string =>
  fill(said.titles[operation]?.[1] ?? said.confirm, { person: clip(oneLine(subject?.person ?? '…'), 100) })

function factsOf(
  { operation, subject, effect, changes, news, message, steps, more_steps }: Confirmation,
  said: ConfirmWords,
) {
  const { orders, attendees, waiting_list, told, not_told = [], refund_due, refunded, currency = '' } = effect ?? {}
  const notTold = not_told.reduce((sum, { count }) => sum + count, 0)
  // A count of none is said where there might have been some.
  const counts: [ConfirmWords['told'], number | undefined][] = [
    [said.orders, orders],
    [said.attendees, attendees],
    [said.waitingList, waiting_list || undefined],
    [said.told, operation.startsWith('erase_') ? undefined : told],
    [said.notTold, notTold || undefined],
  ]
  const numbers = counts.flatMap(([sentences, count]) => (count === undefined ? [] : [countOf(count, sentences, said)]))
  const amounts: [string, number | undefined][] = [
    [said.refundDue, refund_due || undefined],
    [said.refunded, refunded],
  ]
  const day = subject?.starts_at && dayOf(subject.starts_at, subject.timezone ?? 'UTC', said)
  return [
    // Others may have its name, or may have had it before; hardly with the same day.
    subject?.event
      ? [entry(said.event, [`${clip(oneLine(subject.event), 200)} (${subject.slug})`, day].filter(Boolean).join(', '))]
      : [],
    subject?.order ? [entry(said.order, subject.order)] : [],
    subject?.person ? [entry(said.person, clip(oneLine(subject.person), 200))] : [],
    subject?.people
      ? [
          entryOf(
            said.people,
            subject.people.map((each, n) => (n < mostPeople ? personOf(each, said) : '…')),
          ),
        ]
      : [],
    numbers.length === 0 ? [] : [entryOf(said.effect, numbers)],
    amounts.flatMap(([name, amount]) => (amount === undefined ? [] : [entry(name, amountOf(amount, currency, said))])),
    refund_due === null ? [entry(said.refundDue, said.unseen)] : [],
    changes === null || Object.keys(changes).length === 0 ? [] : [entry(said.changes, changesOf(changes, false))],
    news === null ? [] : [entry(said.news, changesOf(news, true) || said.nothingNew)],
    message ? [entryOf(said.message, linesOf(message))] : [],
    steps === null
      ? []
      : [entryOf(said.steps, [...steps.map((step) => stepOf(step, said)), ...moreOf(more_steps ?? 0, said)])],
  ].flat()
}

const entryOf = (name: string, lines: string[]) =>
  html`<div><dt>${name}</dt>${lines.map((line) => html`<dd><bdi>${line}</bdi></dd>`)}</div>`

const moreOf = (count: number, said: ConfirmWords) =>
  count > 0 ? [fill(said.more, { count: numberOf(count, said) })] : []

function personOf({ name, tickets, orders, waiting_list, is_member }: PersonToErase, said: ConfirmWords): string {
  const person = fill(waiting_list > 0 ? said.waitingPerson : said.onePerson, {
    name: clip(oneLine(name), 100),
    tickets: numberOf(tickets, said),
    orders: numberOf(orders, said),
    waiting_list: numberOf(waiting_list, said),
  })
  return is_member ? fill(said.member, { person }) : person
}

function stepOf({ action, kind, name, changes = {} }: Step, said: ConfirmWords): string {
  const title = fill(said.step, {
    kind: said.kinds[kind] ?? kind,
    name: quoted(name, said),
    action: said.actions[action] ?? action,
  })
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

const numberOf = (count: number, { locale }: ConfirmWords) => new Intl.NumberFormat(locale).format(count)

const countOf = (count: number, [one, many]: ConfirmWords['told'], said: ConfirmWords) =>
  fill(new Intl.PluralRules(said.locale).select(count) === 'one' ? one : many, { count: numberOf(count, said) })

const amountOf = (amount: number, currency: string, { locale }: ConfirmWords) =>
  new Intl.NumberFormat(locale, currencyStyle(currency)).format(amount / 10 ** decimalsOf(currency))

const dayOf = (instant: string, timeZone: string, { locale }: ConfirmWords) =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeZone }).format(new Date(instant))
