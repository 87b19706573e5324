// The door: what becomes of a scan, by the status of the event and of the ticket; and what can be taken back.

import { expect } from 'vitest'
import { studio } from '../support/database.ts'
import type { TestEvent, TestOrganisation } from '../support/organisation.ts'
import type { RestAnswer } from '../support/rest.ts'
import { edit, type Hand } from '../support/studio.ts'
import { columnOf, done, refused, type Send, same, testStateMachine, unchanged } from './state-machine.ts'

type Scanned = { id: string; reason: string | null }

const scan = async (event: TestEvent, code: string, hand: Hand = studio) => {
  const sql = 'insert into public.check_ins (event_id, code) values ($1, $2) returning id, reason'
  return (await hand.query<Scanned>(sql, [event.id, code])).rows[0] as Scanned
}
const undo = (id: string, hand?: Hand) => edit('check_ins', id, 'undone_at = now()', [], hand)
const setStatus = (table: 'events' | 'attendees', id: string, status: string) =>
  edit(table, id, 'status = $2', [status])

/** A code before a scanner. It is that of a ticket of the event, or of `elsewhere`, or of none. */
type Door = { event: TestEvent; elsewhere?: TestEvent; code: string; attendeeId?: string }

/** A ticket of the event, with what it went through before its present status, and before that of the event. */
const ticket =
  (status: string, eventStatus = 'published', past?: 'checked in' | 'checked in and out') =>
  async (organisation: TestOrganisation): Promise<Door> => {
    const event = await organisation.event()
    const { attendeeId, code } = await (status === 'awaiting_payment' ? event.payer() : event.guest())
    if (past) {
      const { id } = await scan(event, code)
      if (past === 'checked in and out') await undo(id)
    }
    if (status === 'cancelled') await setStatus('attendees', attendeeId, status)
    await setStatus('events', event.id, eventStatus)
    return { event, attendeeId, code }
  }

const strange =
  (code: 'unknown' | 'elsewhere', eventStatus = 'published') =>
  async (organisation: TestOrganisation): Promise<Door> => {
    const event = await organisation.event({ status: eventStatus === 'draft' ? 'draft' : 'published' })
    await setStatus('events', event.id, eventStatus)
    if (code === 'unknown') return { event, code: 'no such code' }
    const elsewhere = await organisation.event()
    return { event, elsewhere, ...(await elsewhere.guest()) }
  }

const accepted = (nth = '') => done({ [`check_in${nth}.result`]: 'accepted', 'attendee.checked_in_at': 'set' })

/** Logged with its reason, and otherwise without effect. */
const rejected = (reason: string, nth = '') =>
  same(`is rejected as ${reason}`, {
    refusal: { code: reason },
    changes: { [`check_in${nth}.result`]: 'rejected', [`check_in${nth}.reason`]: reason },
  })

testStateMachine({
  name: 'a code',
  dimensions: [
    { values: 'event_status', read: columnOf(({ event }: Door) => event.id, 'status') },
    {
      values: 'attendee_status',
      besides: ['unknown', 'elsewhere'],
      read: ({ elsewhere, attendeeId = '' }, before) => {
        if (elsewhere) return 'elsewhere'
        return before.get(attendeeId)?.row.status ?? 'unknown'
      },
    },
  ],
  unreachable: {
    'draft active': 'an event with orders is no draft again',
    'draft awaiting_payment': 'an event with orders is no draft again',
    'draft cancelled': 'an event with orders is no draft again',
    'cancelled active': 'an event is cancelled with its tickets',
    'cancelled awaiting_payment': 'an event is cancelled with its tickets',
  },
  states: {
    'draft unknown': strange('unknown', 'draft'),
    'draft elsewhere': strange('elsewhere', 'draft'),
    'published active': ticket('active'),
    'published active, checked in': ticket('active', 'published', 'checked in'),
    'published active, checked in and out': ticket('active', 'published', 'checked in and out'),
    'published awaiting_payment': ticket('awaiting_payment'),
    'published cancelled': ticket('cancelled'),
    'published cancelled, checked in': ticket('cancelled', 'published', 'checked in'),
    'published unknown': strange('unknown'),
    'published elsewhere': strange('elsewhere'),
    'completed active': ticket('active', 'completed'),
    'completed active, checked in': ticket('active', 'completed', 'checked in'),
    'completed awaiting_payment': ticket('awaiting_payment', 'completed'),
    'completed cancelled': ticket('cancelled', 'completed'),
    'completed unknown': strange('unknown', 'completed'),
    'completed elsewhere': strange('elsewhere', 'completed'),
    'cancelled cancelled': ticket('active', 'cancelled'),
    'cancelled cancelled, checked in': ticket('active', 'cancelled', 'checked in'),
    'cancelled unknown': strange('unknown', 'cancelled'),
    'cancelled elsewhere': strange('elsewhere', 'cancelled'),
  },
  transitions: {
    'scanning it': {
      rest: (send: Send, { event, code }: Door) => send('POST', '/check-ins', { event_id: event.id, code }),
      sql: ({ event, code }: Door, hand: Hand) => scan(event, code, hand),
      // A row of the log in SQL; over REST, the same row in an answer that is not 2xx.
      refusal: {
        rest: ({ status, body }: RestAnswer) => {
          if (status === 200) return null
          const { code, details } = body.error
          expect([status, details.check_in.reason]).toEqual([code === 'not_found' ? 404 : 409, code])
          return { code }
        },
        sql: (scanned) => {
          const { reason } = scanned as Scanned
          return reason === null ? null : { code: reason }
        },
      },
    },
  },
  table: {
    'draft unknown': { 'scanning it': rejected('not_found') },
    'draft elsewhere': { 'scanning it': rejected('wrong_event') },
    'published active': { 'scanning it': accepted() },
    'published active, checked in': { 'scanning it': rejected('already_checked_in', ' 2') },
    'published active, checked in and out': { 'scanning it': accepted(' 2') },
    'published awaiting_payment': { 'scanning it': rejected('unpaid') },
    'published cancelled': { 'scanning it': rejected('cancelled') },
    'published cancelled, checked in': { 'scanning it': rejected('cancelled', ' 2') },
    'published unknown': { 'scanning it': rejected('not_found') },
    'published elsewhere': { 'scanning it': rejected('wrong_event') },
    // Completed, it is closed to registrations; whoever has a ticket may still be let in, or be let in late.
    'completed active': { 'scanning it': accepted() },
    'completed active, checked in': { 'scanning it': rejected('already_checked_in', ' 2') },
    'completed awaiting_payment': { 'scanning it': rejected('unpaid') },
    'completed cancelled': { 'scanning it': rejected('cancelled') },
    'completed unknown': { 'scanning it': rejected('not_found') },
    'completed elsewhere': { 'scanning it': rejected('wrong_event') },
    'cancelled cancelled': { 'scanning it': rejected('event_cancelled') },
    'cancelled cancelled, checked in': { 'scanning it': rejected('event_cancelled', ' 2') },
    'cancelled unknown': { 'scanning it': rejected('event_cancelled') },
    'cancelled elsewhere': { 'scanning it': rejected('event_cancelled') },
  },
})

type Scan = { event: TestEvent; id: string }

/** The first scan of a guest, or of a code that nobody has, and what came after it. */
const scanThat =
  (work: (it: Scan & { code: string; attendeeId: string }) => Promise<unknown> = async () => {}, scanned?: string) =>
  async (organisation: TestOrganisation): Promise<Scan> => {
    const event = await organisation.event()
    const { attendeeId, code } = await event.guest()
    const { id } = await scan(event, scanned ?? code)
    await work({ event, id, code, attendeeId })
    return { event, id }
  }

const undone = done({ 'check_in.undone_at': 'set', 'attendee.checked_in_at': null })
const notAccepted = refused('check_in_not_accepted', { param: 'check_in_id' })
const alreadyUndone = refused('check_in_already_undone', {
  param: 'check_in_id',
  details: { undone_at: 'check_in.undone_at' },
})
const standing = { 'undoing it': undone, 'undoing that': unchanged }
const takenBack = { 'undoing it': alreadyUndone, 'undoing that': alreadyUndone }

testStateMachine({
  name: 'a check-in',
  dimensions: [
    {
      values: 'check_in_result',
      besides: ['undone'],
      read: ({ id }, before) => {
        const { result, undone_at } = before.get(id)?.row ?? {}
        return undone_at ? 'undone' : result
      },
    },
  ],
  states: {
    accepted: scanThat(),
    'accepted, of a ticket cancelled since': scanThat(({ attendeeId }) =>
      setStatus('attendees', attendeeId, 'cancelled'),
    ),
    'accepted, at an event cancelled since': scanThat(({ event }) => setStatus('events', event.id, 'cancelled')),
    rejected: scanThat(undefined, 'no such code'),
    'rejected, and accepted since': scanThat(({ event, code }) => scan(event, code), 'no such code'),
    undone: scanThat(({ id }) => undo(id)),
    'undone, and accepted anew': scanThat(async ({ event, id, code }) => {
      await undo(id)
      await scan(event, code)
    }),
  },
  transitions: {
    'undoing it': {
      rest: (send: Send, { id }: Scan) => send('POST', `/check-ins/${id}/undo`),
      sql: ({ id }: Scan, hand: Hand) => undo(id, hand),
    },
    'undoing that': {
      offered: false,
      rest: (send, { id }) => send('DELETE', `/check-ins/${id}/undo`),
      sql: ({ id }, hand) => edit('check_ins', id, 'undone_at = null', [], hand),
    },
  },
  table: {
    accepted: standing,
    'accepted, of a ticket cancelled since': standing,
    'accepted, at an event cancelled since': standing,
    rejected: { 'undoing it': notAccepted, 'undoing that': unchanged },
    'rejected, and accepted since': { 'undoing it': notAccepted, 'undoing that': unchanged },
    undone: takenBack,
    'undone, and accepted anew': takenBack,
  },
})
