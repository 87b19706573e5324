// What `api.claim_emails` returns: an e-mail of any kind, with everything that it shows.

import type * as z from 'zod'
import type { AttendeeSchema } from '../operations/attendees.ts'
import type { EmailKind } from '../operations/email-kinds.ts'
import type { EventSchema, guestActs } from '../operations/events.ts'
import type { OrderSchema, PaymentSchema } from '../operations/orders.ts'

type Event = z.infer<typeof EventSchema>
type Order = z.infer<typeof OrderSchema>

type Common = {
  id: string
  claim: string
  attempt: number
  organisation: {
    name: string
    reply_to: string | null
    accent_colour: string | null
    payment_instructions: string | null
    logo_url: string | null
    is_test: boolean
  }
  event: Event
  /** Where the buyer sees the order; null where the courier has no PUBLIC_URL, and in e-mails to others. */
  order_url: string | null
  /** What the organiser adds in their own words. */
  message: string | null
}

/** The page where the holder of a ticket acts, with what it offers and how many questions it asks. */
export type GuestLink = { url: string; acts: (typeof guestActs)[number][]; open: number }

export type PendingAttendee = {
  id: string
  name: string
  email: string
  company: string | null
  status: z.infer<typeof AttendeeSchema>['status']
  /** Of the page of the ticket; null where the courier has no PUBLIC_URL, and of a cancellation. */
  ticket_url: string | null
  /** Of a ticket e-mail; null where the page offers nothing. */
  guest: GuestLink | null
  /** Whether the mailbox holds another ticket of the event that is not cancelled. */
  has_another_ticket: boolean
  /** Also of what nobody edits, as the state of its e-mail: the calendar file goes by it. */
  updated_at: string
}

type ToAttendee = Common & {
  ticket_type: { name: string }
  attendee: PendingAttendee
  order: Pick<Order, 'reference'>
  /** Where such e-mails are switched off; null where the courier has no PUBLIC_URL, and of a kind that cannot be. */
  opt_out_url: string | null
}

/** Tickets of one type and price. Amounts in minor units, `total` after the discount. */
export type OrderLine = { name: string; quantity: number; price: number; discount: number; total: number }

type ToBuyer = Common & { order: Order; lines: OrderLine[] }

type OfPayment = ToBuyer & { payment: z.infer<typeof PaymentSchema> }

/** The entry as in the API. */
type ToWaiting = Common & {
  waiting_list_entry: { id: string; name: string; email: string; ticket_type: { name: string } }
}

/** What attendees are told of an event. */
export type Announced = Pick<Event, 'name' | 'starts_at' | 'ends_at' | 'timezone' | 'venue' | 'online_url'>

/** A ticket of the same order that goes to the same address with it. */
export type OtherTicket = Pick<PendingAttendee, 'name' | 'company' | 'ticket_url' | 'guest'> & {
  /** Of its own row, which is settled with the same result. */
  email_id: string
  ticket_type: string
  ticket_code: string
}

export type PendingTicket = ToAttendee & {
  kind: 'ticket'
  attendee: { ticket_code: string }
  others: OtherTicket[]
}

/** Whose ticket of which type. */
type Holder = { name: string; ticket_type: string }

/** One of the tickets of an address that an e-mail tells of. */
export type HeldTicket = Holder &
  Pick<PendingAttendee, 'status' | 'ticket_url' | 'guest'> & {
    /** Of its order. */
    reference: string
  }

/** What becomes of the money of what was cancelled, in minor units: what is not to be paid any more, what is kept, and what is returned. */
export type CancelledMoney = {
  currency: string
  amount_unpaid: number
  amount_retained: number
  amount_refundable: number
}

/** `money`: of a cancellation, for the contact of an order that it took; else null. */
type ToHolder = ToAttendee & { holders: HeldTicket[]; money: CancelledMoney | null }

/** Those that show something of their own. */
type Particular =
  | PendingTicket
  | (ToHolder & { kind: 'event_changed'; previous: Announced })
  | (ToHolder & { kind: 'ticket_cancelled' })
  // To whoever had the ticket before.
  | (ToAttendee & { kind: 'ticket_passed_on' })
  | (ToHolder & {
      kind: 'answers_reminder'
      questions: string[]
      /** Where they are answered; null where the courier has no PUBLIC_URL. */
      answer_url: string | null
    })
  | (ToHolder & { kind: 'organiser_message'; organiser_message: { subject: string; message: string } })
  | (ToBuyer & { kind: 'order_confirmation'; guests: Holder[] })
  | (ToBuyer & { kind: 'payment_reminder' | 'order_expired' })
  | (ToBuyer & { kind: 'order_cancelled'; money: CancelledMoney })
  | (OfPayment & { kind: 'payment_received'; payment: { is_latest: boolean } })
  | (OfPayment & { kind: 'payment_voided' })
  // `previous`: of an offer that is repeated because the event changed.
  | (ToWaiting & {
      kind: 'waiting_list_offer'
      waiting_list_entry: { offer_expires_at: string }
      /** Of the page where it is taken; null where the courier has no PUBLIC_URL. */
      offer_url: string | null
      previous: Announced | null
    })
  | (ToWaiting & { kind: 'waiting_list_cancelled' })

/** A kind that is not named above says one thing to attendees, and shows event and ticket. */
type Notice<Kind = Exclude<EmailKind, Particular['kind']>> = Kind extends EmailKind ? ToHolder & { kind: Kind } : never

export type PendingNotice = Notice
export type PendingEmail = Particular | PendingNotice
export type Of<Kind extends EmailKind> = Extract<PendingEmail, { kind: Kind }>

export type PendingToAttendee = Extract<PendingEmail, { attendee: PendingAttendee }>
export type PendingToBuyer = Extract<PendingEmail, { lines: OrderLine[] }>

// What does not belong to a kind is null.
export const isToBuyer = (pending: PendingEmail): pending is PendingToBuyer =>
  'lines' in pending && pending.lines !== null

export const isToAttendee = (pending: PendingEmail): pending is PendingToAttendee =>
  'attendee' in pending && pending.attendee !== null

/** All that go to one address together. */
export const ticketsOf = ({ attendee, ticket_type, others }: PendingTicket) => [
  { ...attendee, ticket_type: ticket_type.name },
  ...others,
]

/** What its calendar file does. None: whoever has not paid has no entry yet, and the entry stays while the mailbox has another ticket. */
export function calendarMethodOf(pending: PendingToAttendee): 'PUBLISH' | 'CANCEL' | undefined {
  if (pending.kind === 'event_cancelled' || pending.kind === 'ticket_cancelled' || pending.kind === 'ticket_passed_on')
    return pending.attendee.has_another_ticket ? undefined : 'CANCEL'
  if (pending.kind === 'answers_reminder' || pending.kind === 'organiser_message') return undefined
  return pending.kind === 'ticket' || pending.holders.some(({ status }) => status === 'active') ? 'PUBLISH' : undefined
}
