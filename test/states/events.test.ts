// Events: draft, published, cancelled, completed, and what each step asks for and takes along.

import { EventSchema } from '../../src/operations/events.ts'
import { studio } from '../support/database.ts'
import type { TestEvent, TestOrganisation } from '../support/organisation.ts'
import { addOrder, addPromoCode, edit, remove } from '../support/studio.ts'
import { registeredGuest, registering } from './registering.ts'
import {
  columnOf,
  done,
  type Interfaces,
  invalid,
  refused,
  type Subject,
  savedAsItIs,
  testStateMachine,
} from './state-machine.ts'

/** An event to which something was done, to bring it where it is to be. */
const eventThat =
  (status: 'draft' | 'published', work: (event: TestEvent) => Promise<unknown> = async () => {}) =>
  async (organisation: TestOrganisation) => {
    const event = await organisation.event({ status })
    await work(event)
    return { event }
  }

const set = (assignments: string) => (event: TestEvent) => edit('events', event.id, assignments)

const verb = (name: string, status: string): Interfaces<Subject> => ({
  rest: (send, { event }) => send('POST', `/events/${event.id}/${name}`),
  sql: ({ event }, hand) => edit('events', event.id, 'status = $2', [status], hand),
})

const published = done({ 'event.status': 'published', 'event.published_at': 'set' })
const unpublished = done({ 'event.status': 'draft', 'event.published_at': null })
const completed = done({ 'event.status': 'completed', 'event.completed_at': 'set' })
const reopened = done({ 'event.status': 'published', 'event.completed_at': null })
const deleted = done({ event: 'gone', ticket_type: 'gone' })
const cancelled = { 'event.status': 'cancelled', 'event.cancelled_at': 'set' }

const ended = "starts_at = now() - interval '2 hours', ends_at = now() - interval '1 hour'"
const endedBefore = refused('event_ended', { param: 'ends_at', details: { ends_at: 'event.ends_at' } })
const needs = (param: string) => refused('event_not_publishable', { param })
const hasOrders = refused('event_has_orders', { param: 'status' })
const isInUse = refused('in_use')
const isNoDraft = (status: string) => refused('in_use', { param: 'status', details: { status } })

/** What can be done with any draft, whatever it lacks. */
const drafts = {
  'to draft': savedAsItIs('draft'),
  'to cancelled': invalid('draft', 'cancelled'),
  'to completed': invalid('draft', 'completed'),
  deletion: deleted,
}

const status = {
  values: 'event_status',
  read: columnOf(({ event }: Subject) => event.id, 'status'),
}

testStateMachine({
  name: 'an event',
  dimensions: [{ ...status, settable: true }],
  states: {
    draft: eventThat('draft'),
    'draft, without a start': eventThat('draft', set('starts_at = null')),
    'draft, without an end': eventThat('draft', set('ends_at = null')),
    'draft, that has ended': eventThat('draft', set(ended)),
    'draft, without a ticket type': eventThat('draft', ({ ticketTypeId }) => remove('ticket_types', ticketTypeId)),
    'draft, with an archived ticket type only': eventThat('draft', ({ ticketTypeId }) =>
      edit('ticket_types', ticketTypeId, "status = 'archived'"),
    ),
    'draft, with a promo code': eventThat('draft', (event) => addPromoCode(event, 10)),
    'draft, with a scan': eventThat('draft', ({ id }) =>
      studio.query("insert into public.check_ins (event_id, code) values ($1, 'NONE')", [id]),
    ),
    published: eventThat('published'),
    'published, with an order of two that is partly paid': eventThat('published', (event) =>
      addOrder(event, { subtotal: 4900, paid: 100, ticketTypeIds: [event.ticketTypeId, event.ticketTypeId] }),
    ),
    cancelled: eventThat('published', set("status = 'cancelled'")),
    'cancelled, with its guest': eventThat('published', async (event) => {
      await event.guest()
      await edit('events', event.id, "status = 'cancelled'")
    }),
    completed: eventThat('published', set("status = 'completed'")),
    'completed, with its guest': eventThat('published', async (event) => {
      await event.guest()
      await edit('events', event.id, "status = 'completed'")
    }),
    'completed, and ended': eventThat('published', async ({ id }) => {
      await edit('events', id, "status = 'completed'")
      await edit('events', id, ended)
    }),
  },
  transitions: {
    'to draft': verb('unpublish', 'draft'),
    'to published': verb('publish', 'published'),
    'to cancelled': verb('cancel', 'cancelled'),
    'to completed': verb('complete', 'completed'),
    deletion: {
      rest: (send, { event }) => send('DELETE', `/events/${event.id}`),
      sql: ({ event }, hand) => remove('events', event.id, hand),
    },
  },
  table: {
    draft: { ...drafts, 'to published': published },
    'draft, without a start': { ...drafts, 'to published': needs('starts_at') },
    'draft, without an end': { ...drafts, 'to published': needs('starts_at') },
    'draft, that has ended': { ...drafts, 'to published': endedBefore },
    'draft, without a ticket type': {
      ...drafts,
      'to published': needs('ticket_types'),
      deletion: done({ event: 'gone' }),
    },
    'draft, with an archived ticket type only': { ...drafts, 'to published': needs('ticket_types') },
    'draft, with a promo code': {
      ...drafts,
      'to published': published,
      deletion: done({ event: 'gone', ticket_type: 'gone', promo_code: 'gone' }),
    },
    'draft, with a scan': { ...drafts, 'to published': published, deletion: isInUse },
    published: {
      'to draft': unpublished,
      'to published': savedAsItIs('published'),
      'to cancelled': done(cancelled),
      'to completed': completed,
      deletion: isNoDraft('published'),
    },
    'published, with an order of two that is partly paid': {
      'to draft': hasOrders,
      'to published': savedAsItIs('published'),
      'to cancelled': done({
        ...cancelled,
        'order.status': 'cancelled',
        'order.cancelled_at': 'set',
        'order.cancellation_reason': 'event_cancelled',
        'order.payment_status': 'refund_due',
        'attendee.status': 'cancelled',
        'attendee.cancelled_at': 'set',
        'attendee.ticket_email_status': 'cancelled',
        'attendee 2.status': 'cancelled',
        'attendee 2.cancelled_at': 'set',
        'attendee 2.ticket_email_status': 'cancelled',
        'ticket_type.quantity_sold': 0,
      }),
      'to completed': completed,
      deletion: isInUse,
    },
    cancelled: gone('cancelled'),
    'cancelled, with its guest': { ...gone('cancelled'), deletion: isInUse },
    // Until its end: whoever completed the wrong event takes it back.
    completed: { ...gone('completed'), 'to published': reopened },
    'completed, with its guest': { ...gone('completed'), 'to published': reopened, deletion: isInUse },
    'completed, and ended': { ...gone('completed'), 'to published': endedBefore },
  },
})

/** There is no way back from here. */
function gone(from: 'cancelled' | 'completed') {
  const to = (status: string) => (status === from ? savedAsItIs(status) : invalid(from, status))
  return {
    'to draft': to('draft'),
    'to published': to('published'),
    'to cancelled': to('cancelled'),
    'to completed': to('completed'),
    deletion: isNoDraft(from),
  }
}

const ongoing = "starts_at = now() - interval '1 hour'"

// The ticket costs nothing, so that nobody waits for a payment.
const open = { 'registering a guest': registeredGuest(), 'registering a payer': registeredGuest() }
const hasEnded = refused('event_ended', { param: 'event_id', details: { ends_at: 'event.ends_at' } })
const over = { 'registering a guest': hasEnded, 'registering a payer': hasEnded }
const closed = (status: string) => {
  const cell = refused('event_not_published', { param: 'event_id', details: { status } })
  return { 'registering a guest': cell, 'registering a payer': cell }
}

// The phase of an event is the clock's; it is the organiser who closes it.
testStateMachine({
  name: 'an event to register for',
  dimensions: [
    status,
    {
      values: EventSchema.shape.phase.options,
      read: async ({ event }, _before, send) => (await send('GET', `/events/${event.id}`)).body.data.phase,
    },
  ],
  unreachable: {
    'draft ongoing': 'nothing of a draft takes place',
    'draft ended': 'nothing of a draft takes place',
  },
  states: {
    'draft upcoming': eventThat('draft'),
    'draft upcoming, that would have ended': eventThat('draft', set(ended)),
    'published upcoming': eventThat('published'),
    'published ongoing': eventThat('published', set(ongoing)),
    'published ended': eventThat('published', set(ended)),
    'cancelled upcoming': eventThat('published', set("status = 'cancelled'")),
    'cancelled ongoing': eventThat('published', set(`status = 'cancelled', ${ongoing}`)),
    'cancelled ended': eventThat('published', set(`status = 'cancelled', ${ended}`)),
    'completed upcoming': eventThat('published', set("status = 'completed'")),
    'completed ongoing': eventThat('published', set(`status = 'completed', ${ongoing}`)),
    'completed ended': eventThat('published', set(`status = 'completed', ${ended}`)),
  },
  transitions: {
    'registering a guest': registering(),
    'registering a payer': registering({ payment_method: 'invoice' }),
  },
  table: {
    'draft upcoming': closed('draft'),
    'draft upcoming, that would have ended': closed('draft'),
    'published upcoming': open,
    'published ongoing': open,
    'published ended': over,
    'cancelled upcoming': closed('cancelled'),
    'cancelled ongoing': closed('cancelled'),
    'cancelled ended': closed('cancelled'),
    'completed upcoming': closed('completed'),
    'completed ongoing': closed('completed'),
    'completed ended': closed('completed'),
  },
})
