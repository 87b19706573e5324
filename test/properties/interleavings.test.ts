// Counters are what a count of the rows says, and money adds up, whatever clients do to one event at the same time: register, pay,
// cancel, transfer, scan, undo, register on a page, press the forms of their tickets, and an organiser who changes limits under them. Places,
// uses of the promo code and tickets are few, so that limits are met and everybody is after the same rows.

import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { afterAll, inject, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { appOfThisFile } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { problemsOfBooks } from './books.ts'
import { carryOut, type Known, type Send } from './client.ts'
import { type Command, type Day, day } from './commands.ts'
import { guestActs } from './guest-model.ts'
import { brokenRules } from './invariants.ts'
import { expectProperty, withTime } from './property.ts'

const usualRuns = 9

// Those who send forms have an address each.
const { url: behindProxy } = await appOfThisFile({ trustProxy: true })

/** An event for the day, with an order of each kind to begin with. */
async function openDoors({ quantities, capacity, maxRedemptions, discount }: Day, send: Send): Promise<Known> {
  const data = async (...request: Parameters<Send>) => {
    const { status, body } = await send(...request)
    if (status >= 300) throw new Error(`${request.slice(0, 2).join(' ')}: ${status} ${JSON.stringify(body)}`)
    return body.data
  }
  const { id: eventId, registration_url } = await data('POST', '/events', {
    name: 'Small event',
    starts_at: '2040-01-01T10:00:00Z',
    ends_at: '2040-01-01T18:00:00Z',
    capacity,
    guests_may: guestActs,
    registration_page: 'by_link',
  })
  await data('POST', `/events/${eventId}/questions`, { key: 'note', label: 'A note?' })
  const ticketTypeIds: string[] = []
  for (const [i, quantity] of quantities.entries()) {
    const type = { name: 'Ticket', price: [4999, 333, 0][i], quantity, ...(i === 1 && { max_per_order: 3 }) }
    ticketTypeIds.push((await data('POST', `/events/${eventId}/ticket-types`, type)).id)
  }
  const pointIds: string[] = []
  for (const admission of ['once', 're_entry']) {
    pointIds.push((await data('POST', `/events/${eventId}/check-in-points`, { name: admission, admission })).id)
  }
  const promoCode = await data('POST', `/events/${eventId}/promo-codes`, {
    code: 'FRIENDS',
    ...discount,
    max_redemptions: maxRedemptions,
    // Not for the second ticket type, so that a group may use it in part.
    ticket_type_ids: [ticketTypeIds[0], ticketTypeIds[2]],
  })
  await data('POST', `/events/${eventId}/publish`)
  return {
    eventId,
    pageUrl: registration_url.replace(inject('apiUrl'), behindProxy),
    ticketTypeIds,
    pointIds,
    promoCodeId: promoCode.id,
    promoCode: promoCode.code,
    orderIds: [],
    attendees: [],
    oldCodes: [],
    checkInIds: [],
    entryIds: [],
    isCancelled: false,
    done: { orders: 0, attendees: 0, paid: 0, payments: 0, accepted: 0, undone: 0 },
    wrong: [],
    trace: [],
    tally: {},
  }
}

const firstGuests: Command[] = [
  { do: 'register', guests: [0, 0], pays: 'full price' },
  { do: 'register', guests: [1], pays: 'nothing' },
  { do: 'register', guests: [0], pays: 'by promo code' },
]

async function invariantsBrokenBy(eventId: string): Promise<string[]> {
  return (await brokenRules(eventId)).map((broken) => `Not so: ${JSON.stringify(broken)}`)
}

/** Recounts for as long as the clients are busy: every moment that can be seen has to be right. */
async function watch(eventId: string, busy: Promise<unknown>): Promise<string[]> {
  let isBusy = true
  void busy.finally(() => {
    isBusy = false
  })
  const broken: string[] = []
  while (isBusy && broken.length === 0) {
    broken.push(...(await invariantsBrokenBy(eventId)))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return broken
}

/** What the database holds of all that was answered as done. */
const heldOf = (eventId: string) =>
  row<Known['done']>(
    `select
       (select count(*)::int from public.orders where event_id = $1) as orders,
       (select count(*)::int from public.attendees where event_id = $1) as attendees,
       (select coalesce(sum(amount), 0)::int from public.payments where event_id = $1) as paid,
       (select count(*)::int from public.payments where event_id = $1) as payments,
       (select count(*)::int from public.check_ins where event_id = $1 and result = 'accepted') as accepted,
       (select count(*)::int from public.check_ins where event_id = $1 and undone_at is not null) as undone`,
    [eventId],
  )

/** Attendees who have another code than the last they were given, or are cancelled though nobody did it, or are not. */
async function notAsAnswered({ eventId, attendees, isCancelled }: Known): Promise<string[]> {
  const { rows } = await studio.query<{ id: string; ticket_code: string; cancelled: boolean }>(
    "select id, ticket_code, status = 'cancelled' as cancelled from public.attendees where event_id = $1",
    [eventId],
  )
  const held = new Map(rows.map((attendee) => [attendee.id, attendee]))
  return attendees
    .filter((attendee) => {
      const found = held.get(attendee.id)
      return (
        found?.ticket_code !== attendee.code ||
        (!attendee.isReopened && found.cancelled !== (isCancelled || attendee.isCancelled))
      )
    })
    .map((attendee) => `Answered: ${JSON.stringify(attendee)}, but held: ${JSON.stringify(held.get(attendee.id))}`)
}

/** When all is quiet: the invariants, the books, and whether what was answered is what is there. */
async function problemsAfter(known: Known, key: string): Promise<string[]> {
  const [broken, unbalanced, unlike, held] = await Promise.all([
    invariantsBrokenBy(known.eventId),
    problemsOfBooks(known.eventId, key),
    notAsAnswered(known),
    heldOf(known.eventId),
  ])
  const same = isDeepStrictEqual(held, known.done)
  return [
    ...broken,
    ...unbalanced,
    ...unlike,
    ...(same ? [] : [`Answered as done: ${JSON.stringify(known.done)}, but held: ${JSON.stringify(held)}`]),
  ]
}

const tally: Known['tally'] = {}

test(
  'counters and money are what a count of the rows says, at every moment, whatever clients do at the same time',
  withTime(usualRuns),
  async () => {
    const organisation = await createOrganisation()
    const key = await organisation.key()
    const clients = await Promise.all(Array.from({ length: 6 }, async () => rest(await organisation.key())))
    const organiser = clients[0] as Send

    await expectProperty(
      usualRuns,
      fc.asyncProperty(day, async (day) => {
        const known = await openDoors(day, organiser)
        await carryOut(firstGuests, 'before', organiser, known)
        const [first = [], ...others] = day.scripts
        const ending: Command[] = day.isCancelled ? [{ do: 'cancel_event', dryRun: false }] : []
        const busy = Promise.all(
          [[...first, ...ending], ...others].map((script, i) =>
            carryOut(script, `client ${i}`, clients[i % clients.length] as Send, known),
          ),
        )
        const broken = await watch(known.eventId, busy)
        await busy
        for (const [outcome, times] of Object.entries(known.tally)) tally[outcome] = (tally[outcome] ?? 0) + times

        const problems = [...known.wrong, ...broken, ...(await problemsAfter(known, key))]
        if (problems.length > 0) {
          throw new Error(`${problems.join('\n')}\n\nAnswered, in this order:\n${known.trace.join('\n')}`)
        }
      }),
      { endOnFailure: true },
    )
  },
)

// Of a soak one wants to know what it met, and how often.
afterAll(() => {
  if (process.env.USHER_PROPERTY_RUNS) console.table(tally)
})
