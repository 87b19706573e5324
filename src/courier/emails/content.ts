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
  isCancellation,
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

/** Lines under a label; the first one is set off. */
export type Detail = { label: string; lines: string[]; link?: string | undefined }

export type Block =
  | { type: 'details'; details: Detail[] }
  | { type: 'ticket'; code: string; holder: string; company: string | undefined }
  | { type: 'changes'; changes: { label: string; before: string[]; now: string[] }[] }
  | { type: 'amounts'; rows: { label: string; amount: string; isTotal?: boolean }[] }
  | { type: 'sentences'; sentences: string[] }
  | { type: 'link'; label: string; url: string }

export type Content = {
  subject: string
  /** The line above the name of the event in the text part. */
  title: string
  /** What a list of e-mails shows beside the subject. */
  preview: string
  blocks: Block[]
  /** Sentences in small print at the end. */
  closing: string[]
}

export function contentOf(pending: PendingEmail, facts: Facts): Content {
  const { words } = facts
  const kind = words.kinds[pending.kind]
  return {
    title: kind.title,
    preview: previewOf(facts),
    ...bodyOf(pending, facts),
    subject: fill(kind.subject, {
      event: facts.event,
      reference: facts.reference,
      date: deadlineOf(pending, facts) ?? '',
    }),
  }
}

type Of<Kind extends EmailKind> = Extract<PendingEmail, { kind: Kind }>
type Body = Pick<Content, 'blocks' | 'closing'>

function bodyOf(pending: PendingEmail, facts: Facts): Body {
  switch (pending.kind) {
    case 'ticket':
      return ticket(pending, facts)
    case 'event_changed':
      return eventChanged(pending, facts)
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
  const { attendee, ticket_type } = pending
  return {
    blocks: [
      whenAndWhere(facts),
      {
        type: 'ticket',
        code: spacedCode(attendee.ticket_code),
        holder: oneLine(attendee.name),
        company: oneLine(attendee.company ?? '') || undefined,
      },
      ...ticketLink(pending, facts),
      ticketAndOrder(ticket_type.name, facts),
    ],
    closing: [
      isOnlineOnly(facts) ? words.keepAtHand : words.showAtTheDoor,
      facts.time ? words.attachedWithDate : words.attached,
      contact(facts),
    ],
  }
}

function eventChanged(pending: Of<'event_changed'>, facts: Facts): Body {
  const { words } = facts
  const { note, valid } = words.kinds.event_changed
  const before = announcedFacts(pending.previous, words)
  const rows = [
    { label: words.event, before: [before.event], now: [facts.event] },
    { label: words.when, before: whenLines(before.time, words), now: whenLines(facts.time, words) },
    { label: words.where, before: whereLines(before, words), now: whereLines(facts, words) },
    { label: words.online, before: onlineLines(before), now: onlineLines(facts) },
  ]
  return {
    blocks: [
      sentences(note),
      { type: 'changes', changes: rows.filter((row) => row.before.join('\n') !== row.now.join('\n')) },
      sentences(valid),
      ...ticketLink(pending, facts),
      ticketAndOrder(pending.ticket_type.name, facts),
    ],
    closing: [...(facts.time ? [words.calendarUpdates] : []), contact(facts)],
  }
}

function notice(pending: PendingNotice, facts: Facts): Body {
  const { words } = facts
  return {
    blocks: [
      sentences(words.kinds[pending.kind].notice),
      whenAndWhere(facts),
      ...ticketLink(pending, facts),
      ticketAndOrder(pending.ticket_type.name, facts),
    ],
    closing: [...calendarSentence(pending, facts), contact(facts)],
  }
}

function calendarSentence(pending: PendingNotice, { time, words }: Facts): string[] {
  if (time === undefined) return []
  if (!isCancellation(pending)) return [words.calendarUpdates]
  return pending.attendee.has_another_ticket ? [] : [words.calendarRemoves]
}

function waitingListOffer({ waiting_list_entry: entry, event }: Of<'waiting_list_offer'>, facts: Facts): Body {
  const { words, organisation, replyTo } = facts
  const { offer, reply, ask, after } = words.kinds.waiting_list_offer
  const date = momentOf(entry.offer_expires_at, event.timezone, words.locale)
  return toWaiting(entry, facts, [
    fill(offer, { name: oneLine(entry.name), date }),
    fill(replyTo ? reply : ask, { organisation }),
    after,
  ])
}

function waitingListCancelled({ waiting_list_entry: entry }: Of<'waiting_list_cancelled'>, facts: Facts): Body {
  return toWaiting(entry, facts, [facts.words.kinds.waiting_list_cancelled.notice])
}

function toWaiting(entry: Of<'waiting_list_cancelled'>['waiting_list_entry'], facts: Facts, said: string[]): Body {
  return {
    blocks: [
      sentences(...said),
      whenAndWhere(facts),
      { type: 'details', details: [{ label: facts.words.ticket, lines: [oneLine(entry.ticket_type.name)] }] },
    ],
    closing: [contact(facts)],
  }
}

function orderConfirmation(pending: PendingToBuyer, facts: Facts): Body {
  const { order } = pending
  const { thanks, pay, payBy, ticketsFollow, nothingDue } = facts.words.kinds.order_confirmation
  const { reference } = facts
  const amount = moneyOf(pending, facts)(order.amount_due)
  const date = deadlineOf(pending, facts)
  const request = date ? fill(payBy, { amount, date, reference }) : fill(pay, { amount, reference })
  return toBuyer(
    pending,
    facts,
    [fill(thanks, { name: oneLine(order.name) })],
    order.amount_due > 0
      ? [sentences(request, ticketsFollow), ...paymentInstructions(pending, facts)]
      : [sentences(nothingDue)],
  )
}

function paymentReceived(pending: Of<'payment_received'>, facts: Facts): Body {
  const { order, payment, event } = pending
  const { received, complete, incomplete } = facts.words.kinds.payment_received
  const money = moneyOf(pending, facts)
  const date = dayOf(payment.received_at, event.timezone, facts.words.locale)
  return toBuyer(
    pending,
    facts,
    [
      fill(received, { amount: money(payment.amount), date, name: oneLine(order.name) }),
      // Of an order that was cancelled since, nothing is due and no ticket is sent.
      ...(order.status === 'cancelled'
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
  const date = dayOf(payment.received_at, event.timezone, facts.words.locale)
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

function paymentReminder(pending: PendingToBuyer, facts: Facts): Body {
  const { reminder, consequence } = facts.words.kinds.payment_reminder
  const { reference } = facts
  const amount = moneyOf(pending, facts)(pending.order.amount_due)
  const date = deadlineOf(pending, facts) ?? ''
  return toBuyer(
    pending,
    facts,
    [fill(reminder, { amount, date, reference }), consequence],
    paymentInstructions(pending, facts),
  )
}

function orderExpired(pending: PendingToBuyer, facts: Facts): Body {
  const { expired, doNotPay, refund } = facts.words.kinds.order_expired
  const { amount_refundable } = pending.order
  const amount = moneyOf(pending, facts)(amount_refundable)
  return toBuyer(pending, facts, [expired, doNotPay, ...(amount_refundable > 0 ? [fill(refund, { amount })] : [])])
}

/** @param payment blocks about paying, after the amounts. */
function toBuyer(pending: PendingToBuyer, facts: Facts, said: string[], payment: Block[] = []): Body {
  return {
    blocks: [
      sentences(...said),
      whenAndWhere(facts),
      { type: 'amounts', rows: amountRows(pending, facts) },
      ...payment,
      { type: 'details', details: [{ label: facts.words.order, lines: [facts.reference] }] },
    ],
    closing: [contact(facts)],
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

/** When an order is to be paid, in the zone of its event. */
function deadlineOf(pending: PendingEmail, facts: Facts): string | undefined {
  const due = isToBuyer(pending) ? pending.order.payment_due_at : undefined
  return due ? momentOf(due, pending.event.timezone, facts.words.locale) : undefined
}

const sentences = (...said: string[]): Block => ({ type: 'sentences', sentences: said })

const contact = ({ words, replyTo, organisation }: Facts) => fill(replyTo ? words.reply : words.ask, { organisation })

const onlineLines = ({ onlineUrl }: Pick<Facts, 'onlineUrl'>) => (onlineUrl ? [onlineUrl] : [])

const whenAndWhere = (facts: Facts): Block => ({
  type: 'details',
  details: [
    { label: facts.words.when, lines: whenLines(facts.time, facts.words) },
    { label: facts.words.where, lines: whereLines(facts, facts.words), link: facts.onlineUrl },
  ],
})

const ticketAndOrder = (ticketType: string, { words, reference }: Facts): Block => ({
  type: 'details',
  details: [
    { label: words.ticket, lines: [oneLine(ticketType)] },
    { label: words.order, lines: [reference] },
  ],
})

const ticketLink = ({ attendee }: PendingToAttendee, { words }: Facts): Block[] =>
  attendee.ticket_url === null ? [] : [{ type: 'link', label: words.openTicket, url: attendee.ticket_url }]

const previewOf = (facts: Facts): string =>
  [facts.time?.lines.join(', ') ?? facts.words.toBeAnnounced, whereLines(facts, facts.words)[0]].join(', ')
