// delete_event: what goes with a draft, and what of it is kept. From which states an event can be deleted is in test/states/events.test.ts.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { remove } from '../support/studio.ts'

/** A draft with everything that it may have, and somebody who waited while it was published. */
async function draft() {
  const organisation = await createOrganisation()
  const { id } = await organisation.event({ quantity: 0 })
  const send = rest(await organisation.key())
  const { body: types } = await send('GET', `/events/${id}/ticket-types`)
  const add = async (path: string, body: object) => {
    const answer = await send('POST', `/events/${id}/${path}`, body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    return answer.body.data.id as string
  }
  const waiting = await add('waiting-list', { ticket_type_id: types.data[0].id, name: 'Ann', email: 'ann@example.com' })
  await add('promo-codes', { code: 'TEN', percent_off: 10, ticket_type_ids: [types.data[0].id] })
  await add('check-in-points', { name: 'Gate' })
  expect((await send('POST', `/events/${id}/unpublish`)).status).toBe(200)
  return { organisation, id, waiting, send }
}

const belongings = (id: string) =>
  row(
    `select
       (select count(*)::int from public.events where id = $1) as events,
       (select count(*)::int from public.ticket_types where event_id = $1) as ticket_types,
       (select count(*)::int from public.promo_codes where event_id = $1) as promo_codes,
       (select count(*)::int from public.check_in_points where event_id = $1) as check_in_points,
       (select count(*)::int from public.waiting_list_entries where event_id = $1) as waiting_list_entries`,
    [id],
  )
const nothing = { events: 0, ticket_types: 0, promo_codes: 0, check_in_points: 0, waiting_list_entries: 0 }

test('a draft goes with all that was set up for it, once, and whoever waited is taken off the list', async () => {
  const { organisation, id, waiting, send } = await draft()
  const again = { 'Idempotency-Key': 'once' }
  const { status, body } = await send('DELETE', `/events/${id}`, undefined, again)
  expect([status, body]).toEqual([200, { data: { object: 'event', id, deleted: true } }])
  expect(await belongings(id)).toEqual(nothing)
  expect((await send('DELETE', `/events/${id}`, undefined, again)).body).toEqual(body)
  expect((await send('DELETE', `/events/${id}`)).body.error).toMatchObject({ code: 'not_found', param: 'event_id' })

  const { rows } = await studio.query(
    "select data ->> 'id' as id from public.notifications where organisation_id = $1 and type = 'waiting_list_entry.cancelled'",
    [organisation.id],
  )
  expect(rows).toEqual([{ id: waiting }])
  const { body: trail } = await send('GET', `/audit-entries?object_id=${id}&limit=1`)
  expect(trail.data[0]).toMatchObject({ action: 'deleted', object_type: 'event' })
})

test('a draft that is deleted in Studio takes the same with it', async () => {
  const { id } = await draft()
  await remove('events', id)
  expect(await belongings(id)).toEqual(nothing)
})

test('a webhook endpoint of an event that is gone is not one of all events', async () => {
  const { id, send } = await draft()
  const url = 'https://example.com/hook'
  const { body } = await send('POST', '/webhook-endpoints', { url, types: ['event.updated'], event_ids: [id] })
  await send('DELETE', `/events/${id}`)
  const path = `/webhook-endpoints/${body.data.id}`
  expect((await send('GET', path)).body.data.event_ids).toEqual([id])
  expect((await send('PATCH', path, { description: 'Old' })).status).toBe(200)
})
