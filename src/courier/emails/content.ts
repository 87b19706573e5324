// What an e-mail of each kind says. Those to buyers: to-buyers.ts.

import { momentOf } from '../../guests/event-time.ts'
import {
  actsLabel,
  announcedFacts,
  type Facts,
  isOnlineOnly,
  spacedCode,
  whenLines,
  whereLines,
} from '../../guests/facts.ts'
import { whatOfTheMoney, withRefund } from '../../guests/money.ts'
import {
  type Announced,
  calendarMethodOf,
  type GuestLink,
  type HeldTicket,
  isToAttendee,
  isToBuyer,
  type Of,
  type PendingEmail,
  type PendingNotice,
  type PendingToAttendee,
  ticketsOf,
} from '../../guests/pending.ts'
import { linesOf, oneLine } from '../../guests/plain-text.ts'
import { fill } from '../../guests/words/index.ts'
import type { EmailKind } from '../../operations/email-kinds.ts'
import {
  type Block,
  details,
  guestLines,
  lineOf,
  linkTo,
  orderLink,
  orderRow,
  sentences,
  ticketRow,
  unique,
  whenAndWhere,
} from './blocks.ts'
import { headlineToBuyer, toBuyer } from './to-buyers.ts'

/** Of what an e-mail tells: whether it is good, is to be noted, or takes something away. */
export type Tone = 'plain' | 'good' | 'notice' | 'bad'

export type Content = {
  blocks: Block[]
  /** Sentences in small print at the end. */
  closing: string[]
  subject: string
  /** With which the subject begins, too. */
  headline: string
  tone: Tone
  /** What a list of e-mails shows beside the subject. */
  preview: string
  /** How the organiser is reached: a sentence, which the address follows. */
  contact: { sentence: string; address: string | undefined }
  /** Where such e-mails are switched off. */
  optOut: { label: string; url: string } | undefined
}

const tones: Partial<Record<EmailKind, Tone>> = {
  payment_received: 'good',
  waiting_list_offer: 'good',
  payment_voided: 'notice',
  payment_reminder: 'notice',
  answers_reminder: 'notice',
  event_changed: 'notice',
  order_expired: 'bad',
  order_cancelled: 'bad',
  event_cancelled: 'bad',
  ticket_cancelled: 'bad',
  ticket_passed_on: 'notice',
  waiting_list_cancelled: 'bad',
}

export function contentOf(pending: PendingEmail, facts: Facts): Content {
  const { words } = facts
  const headline = headlineOf(pending, facts)
  return {
    subject: pending.kind === 'organiser_message' ? headline : fill(words.subject, { headline, event: facts.event }),
    headline,
    tone: tones[pending.kind] ?? 'plain',
    preview: [facts.time?.lines.join(', ') ?? words.toBeAnnounced, whereLines(facts, words)[0]].join(', '),
    blocks: withMessage(blocksOf(pending, facts), pending, facts),
    closing: closingOf(pending, facts),
    contact: {
      sentence: fill(facts.replyTo === undefined ? words.ask : words.reply, { organisation: facts.organisation }),
      address: facts.replyTo,
    },
    optOut:
      isToAttendee(pending) && pending.opt_out_url ? { label: words.optOut.link, url: pending.opt_out_url } : undefined,
  }
}

function headlineOf(pending: PendingEmail, facts: Facts): string {
  const { kinds } = facts.words
  if (isToBuyer(pending)) return headlineToBuyer(pending, facts)
  if (pending.kind === 'ticket' && pending.others.length > 0)
    return fill(kinds.ticket.several, { count: `${pending.others.length + 1}` })
  if (pending.kind === 'organiser_message')
    return fill(kinds.organiser_message.headline, { subject: oneLine(pending.organiser_message.subject) })
  return withRefund(kinds[pending.kind].headline, 'money' in pending ? pending.money : null, facts.words)
}

/** What the organiser adds stands after what it is about. */
function withMessage(blocks: Block[], { message }: PendingEmail, { words, organisation }: Facts): Block[] {
  const lines = linesOf(message ?? '')
  if (lines.length === 0) return blocks
  const at = blocks.findIndex(({ type }) => type !== 'sentences' && type !== 'changes')
  const quote: Block = { type: 'quote', label: fill(words.message, { organisation }), lines }
  return blocks.toSpliced(at, 0, quote)
}

/** How to enter, or what the calendar file does. */
function closingOf(pending: PendingEmail, facts: Facts): string[] {
  const { words, time } = facts
  if (!isToAttendee(pending)) return []
  if (pending.kind !== 'ticket') {
    const method = time && calendarMethodOf(pending)
    return method === undefined ? [] : [method === 'CANCEL' ? words.calendarRemoves : words.calendarUpdates]
  }
  if (pending.others.length > 0) return [words.kinds.ticket.oneEach]
  return [isOnlineOnly(facts) ? words.keepAtHand : words.showAtTheDoor, time ? words.attachedWithDate : words.attached]
}

function blocksOf(pending: PendingEmail, facts: Facts): Block[] {
  if (isToBuyer(pending)) return toBuyer(pending, facts)
  switch (pending.kind) {
    case 'ticket':
      return ticket(pending, facts)
    case 'event_changed':
      return eventChanged(pending, facts)
    case 'answers_reminder':
      return answersReminder(pending, facts)
    case 'organiser_message':
      return organiserMessage(pending, facts)
    case 'ticket_cancelled':
      return ticketCancelled(pending, facts)
    case 'ticket_passed_on':
      return ticketPassedOn(pending, facts)
    case 'waiting_list_offer':
    case 'waiting_list_cancelled':
      return toWaiting(pending, facts)
    default:
      return notice(pending, facts)
  }
}

function ticket(pending: Of<'ticket'>, facts: Facts): Block[] {
  const types = typesOf(pending)
  const stubs = ticketsOf(pending).flatMap(
    ({ ticket_code, name, company, ticket_url, guest, ticket_type }, number): Block[] => [
      {
        ...{ type: 'ticket', number, code: spacedCode(ticket_code), holder: oneLine(name) },
        company: oneLine(company ?? '') || undefined,
      },
      ...linksOf({ ticket_url, guest }, facts),
      ...(types.length > 1 ? [details(ticketRow([oneLine(ticket_type)], facts))] : []),
    ],
  )
  const order = details(...(types.length > 1 ? [] : [ticketRow(types, facts)]), orderRow(facts))
  return [whenAndWhere(facts), ...stubs, order, ...notes(facts)]
}

const notes = ({ note, words, organisation }: Facts): Block[] =>
  note ? [{ type: 'notes', label: fill(words.message, { organisation }), text: note.text }] : []

const eventChanged = ({ previous, holders }: Of<'event_changed'>, facts: Facts): Block[] => [
  ...whatChanged(previous, facts),
  sentences(...whatHolds(holders, facts)),
  ...ticketLinks(holders, facts),
  heldTickets(holders, facts),
]

function whatChanged(previous: Announced, facts: Facts): [] | [Block, Block] {
  const { words } = facts
  const before = announcedFacts(previous, words)
  const rows = [
    { label: words.event, before: [before.event], now: [facts.event] },
    { label: words.when, before: whenLines(before.time, words), now: whenLines(facts.time, words) },
    { label: words.where, before: whereLines(before, words), now: whereLines(facts, words) },
    { label: words.online, before: onlineLines(before), now: onlineLines(facts) },
  ]
  const changes = rows.filter((row) => row.before.join('\n') !== row.now.join('\n'))
  return changes.length === 0 ? [] : [sentences(words.kinds.event_changed.note), { type: 'changes', changes }]
}

/** Which of the tickets are good, and which are yet to be paid. */
function whatHolds(holders: HeldTicket[], { words }: Facts): string[] {
  const { valid, unpaid } = words.kinds.event_changed
  const { several } = words
  const count = holders.filter(({ status }) => status === 'active').length
  if (count === 0) return [holders.length > 1 ? several.unpaid : unpaid]
  return [count > 1 ? several.valid : valid, ...(count < holders.length ? [several.othersUnpaid] : [])]
}

// As many as a ticket e-mail has; the pages of more are in those.
const mostLinks = 10

function ticketLinks(holders: HeldTicket[], facts: Facts): Block[] {
  const [first, ...others] = holders
  if (first !== undefined && others.length === 0) return linksOf(first, facts)
  if (holders.length > mostLinks) return []
  return holders.flatMap((holder) => linksOf(holder, facts, lineOf(holder)))
}

/** Every ticket of an address, with the orders. Those that read the same are counted. */
function heldTickets(holders: HeldTicket[], { words, reference }: Facts): Block {
  const isOnePerson = unique(holders.map(({ name }) => name)).length === 1
  const lines = guestLines(holders.map((holder) => (isOnePerson ? oneLine(holder.ticket_type) : lineOf(holder))))
  const tickets = unique(lines).map((name) => {
    const { length } = lines.filter((line) => line === name)
    return length === 1 ? name : fill(words.line, { quantity: `${length}`, name })
  })
  const references = unique([reference, ...holders.map((holder) => oneLine(holder.reference))])
  return details(
    { label: words.ticket, lines: tickets, isList: tickets.length > 1 },
    { label: words.order, lines: references, isList: references.length > 1 },
  )
}

function ticketCancelled(pending: Of<'ticket_cancelled'>, facts: Facts): Block[] {
  const { words } = facts
  const { one, several } = words.kinds.ticket_cancelled
  const { holders } = pending
  const names = new Intl.ListFormat(words.locale).format(holders.map(({ name }) => oneLine(name)))
  return [
    sentences(fill(holders.length === 1 ? one : several, { names }), ...whatOfTheMoney(pending.money, words)),
    whenAndWhere(facts),
    details(ticketRow(typesOf(pending), facts), orderRow(facts)),
    ...orderLink(pending, facts),
  ]
}

const ticketPassedOn = (pending: Of<'ticket_passed_on'>, facts: Facts): Block[] => [
  sentences(fill(facts.words.kinds.ticket_passed_on.passedOn, { event: facts.event })),
  whenAndWhere(facts),
  details(ticketRow(typesOf(pending), facts), orderRow(facts)),
]

function answersReminder(pending: Of<'answers_reminder'>, facts: Facts): Block[] {
  const { words, organisation } = facts
  const { missing, answer, reply } = words.kinds.answers_reminder
  const { answer_url: url } = pending
  const how = url === null ? [fill(reply, { organisation })] : []
  return [
    sentences(fill(missing, { name: oneLine(pending.attendee.name) }), ...how),
    details({ label: words.guest.questions, lines: pending.questions.map(oneLine), isList: true }),
    ...linkTo(url, answer, 'button'),
    whenAndWhere(facts),
    details(ticketRow([oneLine(pending.ticket_type.name)], facts), orderRow(facts)),
  ]
}

const organiserMessage = (
  { organiser_message: { message }, holders }: Of<'organiser_message'>,
  facts: Facts,
): Block[] => [{ type: 'notes', label: undefined, text: message }, whenAndWhere(facts), ...ticketLinks(holders, facts)]

const notice = (pending: PendingNotice, facts: Facts): Block[] => [
  sentences(facts.words.kinds[pending.kind].notice, ...whatOfTheMoney(pending.money, facts.words)),
  whenAndWhere(facts),
  ...ticketLinks(pending.holders, facts),
  heldTickets(pending.holders, facts),
  ...orderLink(pending, facts),
]

/** Of the tickets that an e-mail is about. */
export const typesOf = (pending: PendingToAttendee): string[] => unique(typeNamesOf(pending).map(oneLine))

function typeNamesOf(pending: PendingToAttendee): string[] {
  if (pending.kind === 'ticket_passed_on') return [pending.ticket_type.name]
  return (pending.kind === 'ticket' ? ticketsOf(pending) : pending.holders).map(({ ticket_type }) => ticket_type)
}

const toWaiting = (pending: Of<'waiting_list_offer' | 'waiting_list_cancelled'>, facts: Facts): Block[] => [
  ...(pending.kind === 'waiting_list_offer'
    ? offered(pending, facts)
    : [sentences(facts.words.kinds.waiting_list_cancelled.notice)]),
  whenAndWhere(facts),
  details(ticketRow([oneLine(pending.waiting_list_entry.ticket_type.name)], facts)),
]

function offered(pending: Of<'waiting_list_offer'>, facts: Facts): Block[] {
  const { words, organisation, replyTo } = facts
  const { name, offer_expires_at } = pending.waiting_list_entry
  const { offer, again, page, reply, ask, after } = words.kinds.waiting_list_offer
  const changed = pending.previous === null ? [] : whatChanged(pending.previous, facts)
  const date = momentOf(offer_expires_at, pending.event.timezone, words)
  const said = fill(changed.length > 0 ? again : offer, { name: oneLine(name), date })
  const how = pending.offer_url === null ? [fill(replyTo ? reply : ask, { organisation })] : []
  return [sentences(said, ...how, after), ...linkTo(pending.offer_url, page, 'button'), ...changed]
}

/** @param ticket which one, where there are several. */
const linksOf = (
  { ticket_url, guest }: Pick<HeldTicket, 'ticket_url' | 'guest'>,
  facts: Facts,
  ticket?: string,
): Block[] => [...linkTo(ticket_url, named(facts.words.openTicket, ticket)), ...guestLinks(guest, facts, ticket)]

const named = (label: string, ticket?: string) => (ticket ? `${label} – ${ticket}` : label)

/** To the page where its holder acts, worded by what can be done there. */
function guestLinks(guest: GuestLink | null, { words }: Facts, ticket?: string): Block[] {
  if (guest === null) return []
  const { url, acts, open } = guest
  const { answerOne, answerSeveral, change, passOn, giveBack } = words.guest
  const done = [
    (acts.includes('correct') || acts.includes('answer')) && change,
    acts.includes('pass_on') && passOn,
    acts.includes('give_back') && giveBack,
  ].filter((act) => act !== false)
  return [
    ...(open > 0 ? [fill(open === 1 ? answerOne : answerSeveral, { count: `${open}` })] : []),
    ...(done.length > 0 ? [actsLabel(done, words)] : []),
  ].flatMap((label) => linkTo(url, named(label, ticket)))
}

const onlineLines = ({ onlineUrl }: Pick<Facts, 'onlineUrl'>) => (onlineUrl ? [onlineUrl] : [])
