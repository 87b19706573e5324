// What an e-mail of each kind says, as blocks that the HTML and the text part render each in its way.

import { dayOf, momentOf } from '../../guests/event-time.ts'
import {
  amountOf,
  announcedFacts,
  type Facts,
  isOnlineOnly,
  spacedCode,
  whenLines,
  whereLines,
} from '../../guests/facts.ts'
import {
  type Announced,
  type CancelledMoney,
  type HeldTicket,
  isCancellation,
  isToAttendee,
  isToBuyer,
  type PendingEmail,
  type PendingNotice,
  type PendingTicket,
  type PendingToAttendee,
  type PendingToBuyer,
} from '../../guests/pending.ts'
import { linesOf, oneLine } from '../../guests/plain-text.ts'
import { fill } from '../../guests/words/index.ts'
import type { EmailKind } from '../../operations/email-kinds.ts'

/** Lines under a label; the first one is set off, but in a list. */
export type Detail = { label: string; lines: string[]; link?: string | undefined; isList?: boolean }

export type Block =
  | { type: 'details'; details: Detail[] }
  | { type: 'ticket'; number: number; code: string; holder: string; company: string | undefined }
  | { type: 'changes'; changes: { label: string; before: string[]; now: string[] }[] }
  | { type: 'amounts'; rows: { label: string; amount: string; isTotal?: boolean }[] }
  | { type: 'sentences'; sentences: string[] }
  | { type: 'quote'; label: string; lines: string[] }
  | { type: 'link'; label: string; url: string }

/** Of what an e-mail tells: whether it is good, is to be noted, or takes something away. */
export type Tone = 'plain' | 'good' | 'notice' | 'bad'

export type Content = {
  subject: string
  /** With which the subject begins, too. */
  headline: string
  tone: Tone
  /** What a list of e-mails shows beside the subject. */
  preview: string
  blocks: Block[]
  /** Sentences in small print at the end. */
  closing: string[]
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
  event_changed: 'notice',
  order_expired: 'bad',
  order_cancelled: 'bad',
  event_cancelled: 'bad',
  ticket_cancelled: 'bad',
  waiting_list_cancelled: 'bad',
}

export function contentOf(pending: PendingEmail, facts: Facts): Content {
  const { words } = facts
  const headline = headlineOf(pending, facts)
  return {
    subject: fill(words.subject, { headline, event: facts.event }),
    headline,
    tone: tones[pending.kind] ?? 'plain',
    preview: previewOf(facts),
    ...withMessage(bodyOf(pending, facts), pending, facts),
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
  if (pending.kind === 'ticket' && pending.others.length > 0)
    return fill(kinds.ticket.several, { count: `${pending.others.length + 1}` })
  const isUndated = pending.kind === 'payment_reminder' && !isDated(pending, facts)
  return fill(isUndated ? kinds.payment_reminder.undatedHeadline : kinds[pending.kind].headline, {
    reference: facts.reference,
    date: deadlineOf(pending, facts) ?? '',
  })
}

/** What the organiser adds stands after what it is about. */
function withMessage({ blocks, closing }: Body, { message }: PendingEmail, { words, organisation }: Facts): Body {
  const lines = linesOf(message ?? '')
  if (lines.length === 0) return { blocks, closing }
  const at = blocks.findIndex(({ type }) => type !== 'sentences' && type !== 'changes')
  const quote: Block = { type: 'quote', label: fill(words.message, { organisation }), lines }
  return { blocks: blocks.toSpliced(at, 0, quote), closing }
}

type Of<Kind extends EmailKind> = Extract<PendingEmail, { kind: Kind }>
type Body = Pick<Content, 'blocks' | 'closing'>

function bodyOf(pending: PendingEmail, facts: Facts): Body {
  switch (pending.kind) {
    case 'ticket':
      return ticket(pending, facts)
    case 'event_changed':
      return eventChanged(pending, facts)
    case 'ticket_cancelled':
      return ticketCancelled(pending, facts)
    case 'order_confirmation':
      return orderConfirmation(pending, facts)
    case 'payment_received':
      return paymentReceived(pending, facts)
    case 'payment_voided':
      return paymentVoided(pending, facts)
    case 'payment_reminder':
      return paymentReminder(pending, facts)
    case 'order_expired':
      return orderExpired(pending, facts)
    case 'order_cancelled':
      return orderCancelled(pending, facts)
    case 'waiting_list_offer':
      return waitingListOffer(pending, facts)
    case 'waiting_list_cancelled':
      return waitingListCancelled(pending, facts)
    default:
      return notice(pending, facts)
  }
}

function ticket(pending: PendingTicket, facts: Facts): Body {
  const { words } = facts
  const tickets = ticketsOf(pending)
  const isOne = tickets.length === 1
  const types = typesOf(pending)
  const stubs = tickets.flatMap((each, number): Block[] => [
    {
      type: 'ticket',
      number,
      code: spacedCode(each.ticket_code),
      holder: oneLine(each.name),
      company: oneLine(each.company ?? '') || undefined,
    },
    ...ticketLink(each.ticket_url, facts),
    ...(types.length > 1 ? [ticketTypes([oneLine(each.ticket_type)], facts)] : []),
  ])
  const closing = isOne
    ? [
        isOnlineOnly(facts) ? words.keepAtHand : words.showAtTheDoor,
        facts.time ? words.attachedWithDate : words.attached,
      ]
    : [words.kinds.ticket.oneEach]
  return {
    blocks: [whenAndWhere(facts), ...stubs, types.length > 1 ? orderOnly(facts) : ticketAndOrder(types, facts)],
    closing,
  }
}

/** All that go to one address together. */
export const ticketsOf = ({ attendee, ticket_type, others }: PendingTicket) => [
  { ...attendee, ticket_type: ticket_type.name },
  ...others,
]

function eventChanged(pending: Of<'event_changed'>, facts: Facts): Body {
  return {
    blocks: [
      ...whatChanged(pending.previous, facts),
      sentences(...whatHolds(pending.holders, facts)),
      ...ticketLinks(pending.holders, facts),
      heldTickets(pending.holders, facts),
    ],
    closing: calendarSentence(pending, facts),
  }
}

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
  if (first !== undefined && others.length === 0) return ticketLink(first.ticket_url, facts)
  if (holders.length > mostLinks) return []
  return holders.flatMap((holder) => ticketLink(holder.ticket_url, facts, lineOf(holder)))
}

const lineOf = ({ name, ticket_type }: { name: string; ticket_type: string }) => oneLine(`${name} – ${ticket_type}`)

/** Every ticket of an address, with the orders. Those that read the same are counted. */
function heldTickets(holders: HeldTicket[], { words, reference }: Facts): Block {
  const isOnePerson = unique(holders.map(({ name }) => name)).length === 1
  const lines = holders
    .slice(0, mostGuests)
    .map((holder) => (isOnePerson ? oneLine(holder.ticket_type) : lineOf(holder)))
  const counted = unique(lines).map((name) => {
    const { length } = lines.filter((line) => line === name)
    return length === 1 ? name : fill(words.line, { quantity: `${length}`, name })
  })
  const references = unique([reference, ...holders.map((holder) => oneLine(holder.reference))])
  const label = (label: string, lines: string[]): Detail => ({ label, lines, isList: lines.length > 1 })
  return {
    type: 'details',
    details: [
      label(words.ticket, holders.length > mostGuests ? [...counted, '…'] : counted),
      label(words.order, references),
    ],
  }
}

function ticketCancelled(pending: Of<'ticket_cancelled'>, facts: Facts): Body {
  const { words } = facts
  const { one, several } = words.kinds.ticket_cancelled
  const { holders } = pending
  const names = new Intl.ListFormat(words.locale).format(holders.map(({ name }) => oneLine(name)))
  return {
    blocks: [
      sentences(fill(holders.length === 1 ? one : several, { names }), ...whatOfTheMoney(pending.money, facts)),
      whenAndWhere(facts),
      ticketAndOrder(typesOf(pending), facts),
    ],
    closing: calendarSentence(pending, facts),
  }
}

const notice = (pending: PendingNotice, facts: Facts): Body => ({
  blocks: [
    sentences(facts.words.kinds[pending.kind].notice, ...whatOfTheMoney(pending.money, facts)),
    whenAndWhere(facts),
    ...ticketLinks(pending.holders, facts),
    heldTickets(pending.holders, facts),
  ],
  closing: calendarSentence(pending, facts),
})

/** Of the tickets that an e-mail is about. */
export const typesOf = (pending: PendingToAttendee): string[] =>
  unique(
    (pending.kind === 'ticket' ? ticketsOf(pending) : pending.holders).map(({ ticket_type }) => oneLine(ticket_type)),
  )

/** What its calendar file does. None: whoever has not paid has no entry yet, and the entry stays while the mailbox has another ticket. */
export function calendarMethodOf(pending: PendingToAttendee): 'PUBLISH' | 'CANCEL' | undefined {
  if (isCancellation(pending)) return pending.attendee.has_another_ticket ? undefined : 'CANCEL'
  return pending.kind === 'ticket' || pending.holders.some(({ status }) => status === 'active') ? 'PUBLISH' : undefined
}

function calendarSentence(pending: PendingToAttendee, { time, words }: Facts): string[] {
  const method = calendarMethodOf(pending)
  if (time === undefined || method === undefined) return []
  return [method === 'CANCEL' ? words.calendarRemoves : words.calendarUpdates]
}

function waitingListOffer(
  { waiting_list_entry: entry, event, previous }: Of<'waiting_list_offer'>,
  facts: Facts,
): Body {
  const { words, organisation, replyTo } = facts
  const { offer, again, reply, ask, after } = words.kinds.waiting_list_offer
  const date = momentOf(entry.offer_expires_at, event.timezone, words)
  const changed = previous === null ? [] : whatChanged(previous, facts)
  const said = [
    fill(changed.length > 0 ? again : offer, { name: oneLine(entry.name), date }),
    fill(replyTo ? reply : ask, { organisation }),
    after,
  ]
  return toWaiting(entry, facts, said, changed)
}

function waitingListCancelled({ waiting_list_entry: entry }: Of<'waiting_list_cancelled'>, facts: Facts): Body {
  return toWaiting(entry, facts, [facts.words.kinds.waiting_list_cancelled.notice])
}

function toWaiting(
  entry: Of<'waiting_list_cancelled'>['waiting_list_entry'],
  facts: Facts,
  said: string[],
  changed: Block[] = [],
): Body {
  return {
    blocks: [
      sentences(...said),
      ...changed,
      whenAndWhere(facts),
      ticketTypes([oneLine(entry.ticket_type.name)], facts),
    ],
    closing: [],
  }
}

function orderConfirmation(pending: Of<'order_confirmation'>, facts: Facts): Body {
  const { order, guests } = pending
  const { thanks, pay, payBy, ticketsFollow, nothingDue } = facts.words.kinds.order_confirmation
  const { reference } = facts
  const amount = moneyOf(pending, facts)(order.amount_due)
  const date = deadlineOf(pending, facts)
  const request = date ? fill(payBy, { amount, date, reference }) : fill(pay, { amount, reference })
  return toBuyer(
    pending,
    facts,
    [fill(thanks, { name: oneLine(order.name) })],
    [
      ...(order.amount_due > 0
        ? [sentences(request, ticketsFollow), ...paymentInstructions(pending, facts)]
        : [sentences(nothingDue)]),
      ...guestList(guests, facts),
    ],
  )
}

// As private.pending_email_json.
const mostGuests = 100

/** Whom an order is for, with their ticket types where these differ. */
function guestList(guests: Of<'order_confirmation'>['guests'], { words }: Facts): Block[] {
  const isOneType = unique(guests.map(({ ticket_type }) => ticket_type)).length === 1
  const named = guests.slice(0, mostGuests).map((guest) => (isOneType ? oneLine(guest.name) : lineOf(guest)))
  const lines = guests.length > mostGuests ? [...named, '…'] : named
  return lines.length > 0 ? [{ type: 'details', details: [{ label: words.guests, lines, isList: true }] }] : []
}

function paymentReceived(pending: Of<'payment_received'>, facts: Facts): Body {
  const { order, payment, event } = pending
  const { received, complete, incomplete } = facts.words.kinds.payment_received
  const money = moneyOf(pending, facts)
  const date = dayOf(payment.received_at, event.timezone, facts.words)
  return toBuyer(
    pending,
    facts,
    [
      fill(received, { amount: money(payment.amount), date, name: oneLine(order.name) }),
      // Of an order that was cancelled since, nothing is due and no ticket is sent; what another payment completed, its receipt says.
      ...(order.status === 'cancelled' || (order.amount_due === 0 && !payment.is_latest)
        ? []
        : [order.amount_due > 0 ? fill(incomplete, { amount: money(order.amount_due) }) : complete]),
    ],
    order.amount_due > 0 ? paymentInstructions(pending, facts) : [],
  )
}

function paymentVoided(pending: Of<'payment_voided'>, facts: Facts): Body {
  const { order, payment, event } = pending
  const { voided, due } = facts.words.kinds.payment_voided
  const money = moneyOf(pending, facts)
  const date = dayOf(payment.received_at, event.timezone, facts.words)
  return toBuyer(
    pending,
    facts,
    [
      fill(voided, { amount: money(payment.amount), date, name: oneLine(order.name) }),
      ...(order.amount_due > 0 ? [fill(due, { amount: money(order.amount_due) })] : []),
    ],
    order.amount_due > 0 ? paymentInstructions(pending, facts) : [],
  )
}

/** What is completed keeps its tickets, even where something is due again. */
const isDated = (pending: PendingToBuyer, facts: Facts) =>
  pending.order.status === 'pending' && deadlineOf(pending, facts) !== undefined

function paymentReminder(pending: PendingToBuyer, facts: Facts): Body {
  const { reminder, consequence, undated, reserved } = facts.words.kinds.payment_reminder
  const { reference } = facts
  const { status, amount_due, amount_paid, amount_refunded } = pending.order
  const amount = moneyOf(pending, facts)(amount_due)
  const date = deadlineOf(pending, facts) ?? ''
  return toBuyer(
    pending,
    facts,
    [
      isDated(pending, facts) ? fill(reminder, { amount, date, reference }) : fill(undated, { amount, reference }),
      // An order that is paid in part does not expire.
      ...(status === 'pending' && amount_paid > amount_refunded
        ? [reserved]
        : isDated(pending, facts)
          ? [consequence]
          : []),
    ],
    paymentInstructions(pending, facts),
  )
}

function orderExpired(pending: PendingToBuyer, facts: Facts): Body {
  const { expired, doNotPay } = facts.words.kinds.order_expired
  return toBuyer(pending, facts, [expired, doNotPay])
}

function orderCancelled(pending: Of<'order_cancelled'>, facts: Facts): Body {
  const { requested, eventCancelled } = facts.words.kinds.order_cancelled
  const { event, reference } = facts
  const cancelled = pending.order.cancellation_reason === 'event_cancelled' ? eventCancelled : requested
  return toBuyer(pending, facts, [fill(cancelled, { event, reference }), ...whatOfTheMoney(pending.money, facts)])
}

/** Said to the contact of a cancelled order, and to nobody else. */
function whatOfTheMoney(cancelled: CancelledMoney | null, { words }: Facts): string[] {
  if (cancelled === null) return []
  const { amount_unpaid, amount_refundable, amount_retained, currency } = cancelled
  const { doNotPay, refund, retained, rest } = words.kinds.order_cancelled
  const money = (amount: number) => amountOf(amount, currency, words)
  return [
    ...(amount_unpaid > 0 ? [doNotPay] : []),
    ...(amount_retained > 0 ? [fill(retained, { retained: money(amount_retained) })] : []),
    ...(amount_refundable > 0 ? [fill(amount_retained > 0 ? rest : refund, { amount: money(amount_refundable) })] : []),
  ]
}

/** @param payment blocks about paying, after the amounts. */
function toBuyer(pending: PendingToBuyer, facts: Facts, said: string[], payment: Block[] = []): Body {
  return {
    blocks: [
      sentences(...said),
      whenAndWhere(facts),
      { type: 'amounts', rows: amountRows(pending, facts) },
      ...payment,
      orderOnly(facts),
    ],
    closing: [],
  }
}

const moneyOf =
  ({ order }: PendingToBuyer, { words }: Facts) =>
  (amount: number) =>
    amountOf(amount, order.currency, words)

function amountRows(pending: PendingToBuyer, facts: Facts) {
  const { order, lines } = pending
  const { words } = facts
  const money = moneyOf(pending, facts)
  const row = (label: string, amount: number) => ({ label, amount: money(amount) })
  return [
    ...lines.map(({ quantity, name, price }) =>
      row(fill(words.line, { quantity: `${quantity}`, name: oneLine(name) }), quantity * price),
    ),
    ...(order.discount_total > 0 ? [row(words.discount, -order.discount_total)] : []),
    { ...row(words.total, order.total), isTotal: true },
    ...(order.amount_paid > 0 ? [row(words.paid, order.amount_paid - order.amount_refunded)] : []),
    ...(order.amount_paid > 0 && order.amount_due > 0 ? [{ ...row(words.due, order.amount_due), isTotal: true }] : []),
  ]
}

function paymentInstructions({ organisation }: PendingToBuyer, { words }: Facts): Block[] {
  const lines = linesOf(organisation.payment_instructions ?? '')
  return lines.length > 0 ? [{ type: 'details', details: [{ label: words.howToPay, lines }] }] : []
}

/** When an order is to be paid, in the zone of its event; undefined once the buyer was reminded after it. */
function deadlineOf(pending: PendingEmail, facts: Facts): string | undefined {
  if (!isToBuyer(pending)) return undefined
  const { payment_due_at: due, payment_reminded_at: reminded } = pending.order
  return due && !(reminded && reminded >= due) ? momentOf(due, pending.event.timezone, facts.words) : undefined
}

const sentences = (...said: string[]): Block => ({ type: 'sentences', sentences: said })

const unique = (lines: string[]): string[] => [...new Set(lines)]

const onlineLines = ({ onlineUrl }: Pick<Facts, 'onlineUrl'>) => (onlineUrl ? [onlineUrl] : [])

const whenAndWhere = (facts: Facts): Block => ({
  type: 'details',
  details: [
    { label: facts.words.when, lines: whenLines(facts.time, facts.words) },
    { label: facts.words.where, lines: whereLines(facts, facts.words), link: facts.onlineUrl },
  ],
})

const ticketAndOrder = (ticketTypes: string[], { words, reference }: Facts): Block => ({
  type: 'details',
  details: [
    { label: words.ticket, lines: ticketTypes },
    { label: words.order, lines: [reference] },
  ],
})

const ticketTypes = (lines: string[], { words }: Facts): Block => ({
  type: 'details',
  details: [{ label: words.ticket, lines }],
})

const orderOnly = ({ words, reference }: Facts): Block => ({
  type: 'details',
  details: [{ label: words.order, lines: [reference] }],
})

/** @param ticket which one, where there are several. */
const ticketLink = (url: string | null, { words }: Facts, ticket?: string): Block[] =>
  url === null ? [] : [{ type: 'link', label: ticket ? `${words.openTicket} – ${ticket}` : words.openTicket, url }]

const previewOf = (facts: Facts): string =>
  [facts.time?.lines.join(', ') ?? facts.words.toBeAnnounced, whereLines(facts, facts.words)[0]].join(', ')
