// What an e-mail of each kind says, as blocks that the HTML and the text part render each in its way.

import { dayOf, type EventTime, momentOf } from '../event-time.ts'
import { linesOf, oneLine } from '../plain-text.ts'
import { amountOf, announcedFacts, type Facts, spacedCode } from './facts.ts'
import { isToBuyer, type OrderLine, type PendingEmail, type PendingToAttendee, type PendingToBuyer } from './pending.ts'
import { fill } from './words/index.ts'

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

function bodyOf(pending: PendingEmail, facts: Facts): Pick<Content, 'blocks' | 'closing'> {
  const { words } = facts
  const { kinds } = words
  switch (pending.kind) {
    case 'ticket': {
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
          facts.venue.length === 0 && facts.onlineUrl !== undefined ? words.keepAtHand : words.showAtTheDoor,
          facts.time ? words.attachedWithDate : words.attached,
          contact(facts),
        ],
      }
    }
    case 'event_changed': {
      const before = announcedFacts(pending.previous, words)
      const rows = [
        { label: words.event, before: [before.event], now: [facts.event] },
        { label: words.when, before: whenLines(before.time, facts), now: whenLines(facts.time, facts) },
        { label: words.where, before: whereLines(before, facts), now: whereLines(facts, facts) },
        { label: words.online, before: onlineLines(before), now: onlineLines(facts) },
      ]
      return {
        blocks: [
          { type: 'sentences', sentences: [kinds.event_changed.note] },
          { type: 'changes', changes: rows.filter((row) => row.before.join('\n') !== row.now.join('\n')) },
          { type: 'sentences', sentences: [kinds.event_changed.valid] },
          ...ticketLink(pending, facts),
          ticketAndOrder(pending.ticket_type.name, facts),
        ],
        closing: [...(facts.time ? [words.calendarUpdates] : []), contact(facts)],
      }
    }
    case 'event_cancelled':
    case 'ticket_cancelled':
      return {
        blocks: [
          { type: 'sentences', sentences: [kinds[pending.kind].invalid] },
          whenAndWhere(facts),
          ticketAndOrder(pending.ticket_type.name, facts),
        ],
        closing: [
          ...(facts.time && !pending.attendee.has_another_ticket ? [words.calendarRemoves] : []),
          contact(facts),
        ],
      }
    case 'waiting_list_offer': {
      const { name, ticket_type, offer_expires_at } = pending.waiting_list_entry
      const { offer, reply, ask, after } = kinds.waiting_list_offer
      const date = momentOf(offer_expires_at, pending.event.timezone, words.locale)
      return {
        blocks: [
          {
            type: 'sentences',
            sentences: [
              fill(offer, { name: oneLine(name), date }),
              fill(facts.replyTo ? reply : ask, { organisation: facts.organisation }),
              after,
            ],
          },
          whenAndWhere(facts),
          { type: 'details', details: [{ label: words.ticket, lines: [oneLine(ticket_type.name)] }] },
        ],
        closing: [contact(facts)],
      }
    }
    default:
      return bodyToBuyer(pending, facts)
  }
}

function bodyToBuyer(pending: PendingToBuyer, facts: Facts): Pick<Content, 'blocks' | 'closing'> {
  const { words, reference } = facts
  const { kinds } = words
  const { order, lines } = pending
  const money = (amount: number) => amountOf(amount, order.currency, words)
  const amounts: Block = { type: 'amounts', rows: amountRows(lines, pending, money, facts) }
  const name = oneLine(order.name)
  const due = money(order.amount_due)
  const date = deadlineOf(pending, facts)
  const instructions: Block[] = [paymentInstructions(pending, facts)].filter((block) => block !== undefined)
  const said = (...sentences: string[]): Block => ({ type: 'sentences', sentences })
  const closing = [contact(facts)]
  const details = whenAndWhere(facts)
  const orderDetail: Block = { type: 'details', details: [{ label: words.order, lines: [reference] }] }
  switch (pending.kind) {
    case 'order_confirmation': {
      const { thanks, pay, payBy, ticketsFollow, nothingDue } = kinds.order_confirmation
      const request = date ? fill(payBy, { amount: due, date, reference }) : fill(pay, { amount: due, reference })
      return {
        blocks: [
          said(fill(thanks, { name })),
          details,
          amounts,
          ...(order.amount_due > 0 ? [said(request, ticketsFollow), ...instructions] : [said(nothingDue)]),
          orderDetail,
        ],
        closing,
      }
    }
    case 'payment_received': {
      const { received, complete, incomplete } = kinds.payment_received
      const { amount, received_at } = pending.payment
      return {
        blocks: [
          said(
            fill(received, {
              amount: money(amount),
              date: dayOf(received_at, pending.event.timezone, words.locale),
              name,
            }),
            // Of an order that was cancelled since, nothing is due and no ticket is sent.
            ...(order.status === 'cancelled'
              ? []
              : [order.amount_due > 0 ? fill(incomplete, { amount: due }) : complete]),
          ),
          details,
          amounts,
          ...(order.amount_due > 0 ? instructions : []),
          orderDetail,
        ],
        closing,
      }
    }
    case 'payment_reminder': {
      const { reminder, consequence } = kinds.payment_reminder
      return {
        blocks: [
          said(fill(reminder, { amount: due, date: date ?? '', reference }), consequence),
          details,
          amounts,
          ...instructions,
          orderDetail,
        ],
        closing,
      }
    }
    case 'order_expired': {
      const { expired, doNotPay, refund } = kinds.order_expired
      return {
        blocks: [
          said(
            expired,
            doNotPay,
            ...(order.amount_refundable > 0 ? [fill(refund, { amount: money(order.amount_refundable) })] : []),
          ),
          details,
          amounts,
          orderDetail,
        ],
        closing,
      }
    }
  }
}

function amountRows(
  lines: OrderLine[],
  { order }: PendingToBuyer,
  money: (amount: number) => string,
  { words }: Facts,
) {
  const row = (label: string, amount: number) => ({ label, amount: money(amount) })
  return [
    ...lines.map(({ quantity, name, price }) =>
      row(fill(words.line, { quantity: `${quantity}`, name: oneLine(name) }), quantity * price),
    ),
    ...(order.discount_total > 0 ? [row(words.discount, -order.discount_total)] : []),
    { ...row(words.total, order.total), isTotal: true },
    ...(order.amount_paid > 0 ? [row(words.paid, order.amount_paid)] : []),
    ...(order.amount_paid > 0 && order.amount_due > 0 ? [{ ...row(words.due, order.amount_due), isTotal: true }] : []),
  ]
}

function paymentInstructions(pending: PendingEmail, { words }: Facts): Block | undefined {
  const lines = linesOf(pending.organisation.payment_instructions ?? '')
  return lines.length > 0 ? { type: 'details', details: [{ label: words.howToPay, lines }] } : undefined
}

/** When an order is to be paid, in the zone of its event. */
function deadlineOf(pending: PendingEmail, facts: Facts): string | undefined {
  const due = isToBuyer(pending) ? pending.order.payment_due_at : undefined
  return due ? momentOf(due, pending.event.timezone, facts.words.locale) : undefined
}

const contact = ({ words, replyTo, organisation }: Facts) => fill(replyTo ? words.reply : words.ask, { organisation })

const whenLines = (time: EventTime | undefined, { words }: Facts) =>
  time ? [...time.lines, time.zone] : [words.toBeAnnounced]

const whereLines = ({ venue, onlineUrl }: Pick<Facts, 'venue' | 'onlineUrl'>, { words }: Facts) =>
  venue.length > 0 ? venue : [onlineUrl ? words.online : words.toBeAnnounced]

const onlineLines = ({ onlineUrl }: Pick<Facts, 'onlineUrl'>) => (onlineUrl ? [onlineUrl] : [])

const whenAndWhere = (facts: Facts): Block => ({
  type: 'details',
  details: [
    { label: facts.words.when, lines: whenLines(facts.time, facts) },
    { label: facts.words.where, lines: whereLines(facts, facts), link: facts.onlineUrl },
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
  [facts.time?.lines.join(', ') ?? facts.words.toBeAnnounced, whereLines(facts, facts)[0]].join(', ')
