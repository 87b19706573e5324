// What clients do to an event, in scripts drawn at random, and what they may be answered. Whom a command is about is a
// number: which order or attendee that is, is known only when its turn comes (client.ts).

import fc from 'fast-check'

/** Plain objects, which print as they are written. */
const record = <T>(fields: { [Field in keyof T]: fc.Arbitrary<T[Field]> }) =>
  fc.record<T>(fields, { noNullPrototype: true })

/** `whom` counts what is known by then, from the oldest and round again: low numbers, so that clients want the same ones. */
const whom = fc.nat(11)
const ticketType = fc.nat(2)
const dryRun = fc.boolean()

const register = record({
  do: fc.constant('register'),
  /** Ticket types of the guests. */
  guests: fc.array(ticketType, { minLength: 1, maxLength: 4 }),
  pays: fc.constantFrom('nothing', 'full price', 'by promo code', 'by promo code'),
})
const registerOnPage = record({ do: fc.constant('register_on_page'), ticketType })
const pay = record({ do: fc.constant('pay'), whom, part: fc.constantFrom('all', 'all', 'half', 'one') })
/** A deadline that is over, one to come, or none. */
const setDeadline = record({
  do: fc.constant('set_deadline'),
  whom,
  to: fc.constantFrom('now', 'now', '2041-01-01T00:00:00Z', null),
})
/** What the courier does of deadlines, for the orders of the event. */
const enforceDeadlines = record({ do: fc.constant('enforce_deadlines') })
const remind = record({ do: fc.constant('remind'), whom })
const reopen = record({ do: fc.constant('reopen'), whom, dryRun })
const cancelOrder = record({ do: fc.constant('cancel_order'), whom, dryRun })
const cancelAttendee = record({ do: fc.constant('cancel_attendee'), whom, dryRun })
const transfer = record({ do: fc.constant('transfer'), whom })
const resend = record({ do: fc.constant('resend'), whom })
const join = record({ do: fc.constant('join'), ticketType })
const accept = record({ do: fc.constant('accept'), whom, pays: fc.boolean() })
const leave = record({ do: fc.constant('leave'), whom })
const letExpire = record({ do: fc.constant('let_expire'), whom })
/** By the links of e-mails. */
const press = record({
  do: fc.constant('press'),
  whom,
  act: fc.constantFrom('correct', 'answer', 'give_back', 'pass_on'),
})
const settle = record({ do: fc.constantFrom('take', 'decline'), whom })
const checkIn = record({ do: fc.constant('check_in'), whom })
const checkInByOldCode = record({ do: fc.constant('check_in_by_old_code'), whom })
const point = fc.nat(1)
const checkInAtPoint = record({
  do: fc.constant('check_in_at_point'),
  whom,
  point,
  direction: fc.constantFrom('entry', 'entry', 'exit'),
})
const checkInBatch = record({
  do: fc.constant('check_in_batch'),
  whom: fc.array(whom, { minLength: 2, maxLength: 5 }),
})
const undo = record({ do: fc.constant('undo'), whom })
const setQuantity = record({
  do: fc.constant('set_quantity'),
  ticketType,
  to: fc.option(fc.integer({ min: 0, max: 8 })),
})
const setPrice = record({ do: fc.constant('set_price'), ticketType, to: fc.integer({ min: 0, max: 9999 }) })
const setCapacity = record({ do: fc.constant('set_capacity'), to: fc.option(fc.integer({ min: 1, max: 14 })) })
const setLimit = record({ do: fc.constant('set_max_redemptions'), to: fc.option(fc.integer({ min: 1, max: 8 })) })
const setCode = record({ do: fc.constant('set_promo_code'), to: fc.constantFrom('active', 'active', 'disabled') })
const cancelEvent = record({ do: fc.constant('cancel_event'), dryRun: fc.constant(true) })

const command = fc.oneof(
  { weight: 12, arbitrary: register },
  { weight: 6, arbitrary: registerOnPage },
  { weight: 8, arbitrary: pay },
  { weight: 4, arbitrary: setDeadline },
  { weight: 4, arbitrary: enforceDeadlines },
  { weight: 1, arbitrary: remind },
  { weight: 5, arbitrary: reopen },
  { weight: 3, arbitrary: cancelOrder },
  { weight: 5, arbitrary: cancelAttendee },
  { weight: 4, arbitrary: transfer },
  { weight: 8, arbitrary: join },
  { weight: 8, arbitrary: accept },
  { weight: 2, arbitrary: leave },
  { weight: 3, arbitrary: letExpire },
  { weight: 8, arbitrary: press },
  { weight: 6, arbitrary: settle },
  { weight: 6, arbitrary: checkIn },
  { weight: 8, arbitrary: checkInAtPoint },
  { weight: 2, arbitrary: checkInByOldCode },
  { weight: 3, arbitrary: checkInBatch },
  { weight: 4, arbitrary: undo },
  { weight: 1, arbitrary: resend },
  { weight: 1, arbitrary: setQuantity },
  { weight: 1, arbitrary: setPrice },
  { weight: 1, arbitrary: setCapacity },
  { weight: 1, arbitrary: setLimit },
  { weight: 1, arbitrary: setCode },
  { weight: 1, arbitrary: cancelEvent },
)

type Generated = typeof command extends fc.Arbitrary<infer Value> ? Value : never
export type Command = Exclude<Generated, { do: 'cancel_event' }> | { do: 'cancel_event'; dryRun: boolean }

/** What each is refused with when somebody else was faster, or a limit is reached: nothing else, and nothing is our fault. */
export const mayBeRefused = {
  register: [
    'sold_out',
    'quantity_not_allowed',
    'promo_code_used_up',
    'promo_code_disabled',
    'promo_code_not_applicable',
    'event_not_published',
  ],
  // page_422: what was free when the page was read has a price by now.
  register_on_page: ['page_closed', 'page_422'],
  join: ['not_sold_out', 'event_not_published'],
  accept: [
    'not_offered',
    'offer_expired',
    'event_not_published',
    'promo_code_used_up',
    'promo_code_disabled',
    'promo_code_not_applicable',
  ],
  leave: ['invalid_transition'],
  let_expire: ['read_only_field'],
  // not_found: passed on meanwhile. page_closed: cancelled, or used.
  press: ['not_found', 'page_closed'],
  take: ['page_closed'],
  decline: [],
  pay: ['nothing_due', 'overpayment', 'order_expired'],
  // validation_failed: what is paid in part does not expire.
  set_deadline: ['order_completed', 'order_cancelled', 'order_expired', 'validation_failed'],
  enforce_deadlines: [],
  remind: ['nothing_due', 'order_cancelled', 'order_expired', 'reminded_recently'],
  reopen: ['invalid_transition', 'order_cancelled', 'event_not_published', 'sold_out', 'promo_code_used_up'],
  cancel_order: ['invalid_transition'],
  cancel_attendee: ['invalid_transition'],
  transfer: ['ticket_not_reissuable'],
  resend: ['ticket_not_active'],
  // not_found: the ticket was transferred since its code was read.
  check_in: ['not_found', 'already_checked_in', 'cancelled', 'unpaid', 'event_cancelled'],
  check_in_at_point: ['not_found', 'already_checked_in', 'cancelled', 'unpaid', 'event_cancelled', 'not_inside'],
  check_in_by_old_code: ['not_found', 'event_cancelled'],
  check_in_batch: [],
  // already_checked_in: an exit is undone, and the person came in again.
  undo: ['check_in_not_accepted', 'check_in_already_undone', 'already_checked_in'],
  set_quantity: ['quantity_below_sold'],
  set_price: [],
  set_capacity: ['capacity_below_sold'],
  set_max_redemptions: ['limit_below_redeemed'],
  set_promo_code: [],
  cancel_event: ['invalid_transition'],
} satisfies Record<Command['do'], string[]>

/** All clients begin with one ticket each, and so rush for the last places of the event though their ticket types differ. */
const oneTicket = record({
  do: fc.constant('register'),
  guests: fc.tuple(ticketType),
  pays: fc.constantFrom('nothing', 'full price', 'by promo code'),
})
const script = fc
  .tuple(oneTicket, fc.array(command, { minLength: 4, maxLength: 12, size: 'max' }))
  .map(([first, rest]): Command[] => [first, ...rest])

/** An event with few places, and what its clients do to it at the same time. */
export const day = record({
  quantities: fc.tuple(...[0, 1, 2].map(() => fc.integer({ min: 2, max: 6 }))),
  capacity: fc.option(fc.integer({ min: 5, max: 10 })),
  maxRedemptions: fc.integer({ min: 1, max: 5 }),
  discount: fc.oneof(
    fc.record({ percent_off: fc.integer({ min: 1, max: 10_000 }).map((hundredths) => hundredths / 100) }),
    fc.record({ amount_off: fc.integer({ min: 1, max: 12_000 }) }),
  ),
  scripts: fc.array(script, { minLength: 4, maxLength: 6, size: 'max' }),
  /** At the end of the first script, while the others may still be busy. */
  isCancelled: fc.nat(4).map((n) => n === 0),
})
export type Day = typeof day extends fc.Arbitrary<infer Value> ? Value : never
