// The waiting list: what becomes of an entry, whoever moves it. Only Usher offers, and only a ticket accepts.

import { studio } from '../support/database.ts'
import type { TestOrganisation } from '../support/organisation.ts'
import { edit } from '../support/studio.ts'
import {
  type Cell,
  columnOf,
  done,
  type Interfaces,
  invalid,
  refused,
  type Subject,
  savedAsItIs,
  testStateMachine,
  unchanged,
} from './state-machine.ts'

type Waiting = Subject & { entryId: string }

/** An entry of an event whose only place is taken, after something was done to it. */
const entryThat =
  (work: (it: Waiting, attendeeId: string) => Promise<unknown> = async () => {}) =>
  async (organisation: TestOrganisation): Promise<Waiting> => {
    const event = await organisation.event({ quantity: 1 })
    const { attendeeId } = await event.guest()
    const { rows } = await studio.query<{ id: string }>(
      `insert into public.waiting_list_entries (event_id, ticket_type_id, name, email)
       values ($1, $2, 'Annie', 'annie@example.com') returning id`,
      [event.id, event.ticketTypeId],
    )
    const it = { event, entryId: rows[0]?.id ?? '' }
    await work(it, attendeeId)
    return it
  }

const offer = (attendeeId: string) => edit('attendees', attendeeId, "status = 'cancelled'")
const set = ({ entryId }: Waiting, assignments: string) => edit('waiting_list_entries', entryId, assignments)
const overdue = "offer_expires_at = now() - interval '1 hour'"

const states = {
  waiting: entryThat(),
  offered: entryThat((_, attendeeId) => offer(attendeeId)),
  'offered, its deadline over': entryThat(async (it, attendeeId) => {
    await offer(attendeeId)
    await set(it, overdue)
  }),
  accepted: entryThat(async (it, attendeeId) => {
    await offer(attendeeId)
    await accepting.sql(it, studio)
  }),
  expired: entryThat(async (it, attendeeId) => {
    await offer(attendeeId)
    await set(it, overdue)
    await set(it, "status = 'expired'")
  }),
  cancelled: entryThat((it) => set(it, "status = 'cancelled'")),
}

const accepting: Interfaces<Waiting> = {
  rest: (send, { entryId }) => send('POST', `/waiting-list-entries/${entryId}/accept`),
  sql: ({ event, entryId }, hand) =>
    hand.query(
      `with o as (
         insert into public.orders (event_id, name, email) values ($1, 'Annie', 'annie@example.com') returning id
       )
       insert into public.attendees (event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email)
       select $1, o.id, $2, $3, 'Annie', 'annie@example.com' from o`,
      [event.id, event.ticketTypeId, entryId],
    ),
}

const sqlTo =
  (status: string): Interfaces<Waiting>['sql'] =>
  ({ entryId }, hand) =>
    edit('waiting_list_entries', entryId, 'status = $2', [status], hand)

/** No operation does it: the field is not taken. */
const byHand = (status: string): Interfaces<Waiting> => ({
  offered: false,
  rest: (send, { entryId }) => send('PATCH', `/waiting-list-entries/${entryId}`, { status }),
  sql: sqlTo(status),
})

const givesBack = { 'ticket_type.quantity_held': 0 }
const accepted = {
  'waiting_list_entry.status': 'accepted',
  'order 2.status': 'completed',
  'order 2.payment_status': 'not_required',
  'order 2.total': 0,
  'attendee 2.status': 'active',
  'attendee 2.price': 0,
  'attendee 2.discount': 0,
  'attendee 2.ticket_email_status': 'queued',
  'ticket_type.quantity_sold': 1,
  ...givesBack,
}
const cancelled = (also = {}) => done({ 'waiting_list_entry.status': 'cancelled', ...also })
const all = ['waiting', 'offered', 'accepted', 'expired', 'cancelled']
const noneFrom = (from: string, cells: Record<string, Cell>): Record<string, Cell> => ({
  ...Object.fromEntries(all.map((to) => [`to ${to}`, to === from ? unchanged : invalid(from, to)])),
  ...cells,
})
const notOffered = (status: string) => refused('not_offered', { param: 'waiting_list_entry_id', details: { status } })
const tooLate = refused('offer_expired', {
  param: 'waiting_list_entry_id',
  details: { offer_expires_at: 'waiting_list_entry.offer_expires_at' },
})

testStateMachine({
  name: 'a waiting-list entry',
  dimensions: [
    { values: 'waiting_list_status', read: columnOf(({ entryId }: Waiting) => entryId, 'status'), settable: true },
  ],
  states,
  transitions: {
    'to waiting': byHand('waiting'),
    'to offered': byHand('offered'),
    'to accepted': byHand('accepted'),
    'to expired': byHand('expired'),
    'to cancelled': {
      rest: (send, { entryId }) => send('POST', `/waiting-list-entries/${entryId}/cancel`),
      sql: sqlTo('cancelled'),
    },
    accepting,
  },
  table: {
    waiting: noneFrom('waiting', { 'to cancelled': cancelled(), accepting: notOffered('waiting') }),
    offered: noneFrom('offered', { 'to cancelled': cancelled(givesBack), accepting: done(accepted) }),
    'offered, its deadline over': noneFrom('offered', {
      'to expired': done({ 'waiting_list_entry.status': 'expired', ...givesBack }),
      'to cancelled': cancelled(givesBack),
      accepting: tooLate,
    }),
    accepted: noneFrom('accepted', { accepting: notOffered('accepted') }),
    expired: noneFrom('expired', { accepting: tooLate }),
    cancelled: noneFrom('cancelled', { 'to cancelled': savedAsItIs('cancelled'), accepting: notOffered('cancelled') }),
  },
})
