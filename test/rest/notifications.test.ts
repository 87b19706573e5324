// The log of what happened, read over REST: its order, reading on, pages, filters, and what a key may see of it.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { during, row, studio } from '../support/database.ts'
import { overRest } from '../support/interfaces.ts'
import { type Notification, readOn, readUntil } from '../support/notifications.ts'
import { once } from '../support/once.ts'
import { createOrganiser } from '../support/organiser.ts'
import { addEndpoint, enqueued } from '../support/outbox.ts'
import { problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const renameTo = (name: string) => edit('events', event.id, 'name = $2', [name])
  return { organisation, event, send, actions: overRest(send, event), renameTo }
}

const names = (seen: Notification[]) =>
  seen.flatMap(({ type, data }) => (type === 'event.updated' && 'name' in data ? [data.name] : []))
const types = (seen: Notification[]) => [...new Set(seen.map(({ type }) => type))].sort()

test('notifications are listed oldest first, and read on from the last one seen', async () => {
  const { send, renameTo } = await arrange()
  for (const name of ['1', '2', '3', '4']) await renameTo(name)
  const seen = await readUntil(send, (all) => names(all).length === 4)
  expect(seen.map(({ type }) => type)).toEqual(['event.published', ...Array(4).fill('event.updated')])
  expect(names(seen)).toEqual(['1', '2', '3', '4'])

  const [third, last] = [seen[3]?.id ?? '', seen[4]?.id ?? '']
  expect(names(await readOn(send, { after: third }))).toEqual(['4'])
  const { body } = await send('GET', `/notifications?after=${last}`)
  expect(body).toEqual({ data: [], has_more: false, next_cursor: null })
  await renameTo('5')
  expect(names(await readUntil(send, (all) => all.length > 0, { after: last }))).toEqual(['5'])
})

test('since a time are listed those of what began then or later, whoever was first to write or to end', async () => {
  const { event, send, renameTo } = await arrange()
  const clock = async () => (await row<{ now: string }>('select clock_timestamp()::text as now')).now.replace(' ', 'T')
  const rename = 'update public.events set name = $2 where id = $1'
  const other = await arrange()
  await renameTo('before')
  let since = ''
  await during(async (earlier) => {
    await earlier.query('select now()')
    since = `${await clock()}:00`
    await during(async (later) => {
      await later.query('select now()')
      await renameTo('first')
      await later.query(rename, [event.id, 'second'])
      await later.query('commit')
    })
    await earlier.query(rename, [event.id, 'begun before'])
    await earlier.query('commit')
  })
  await renameTo('third')
  const all = ['before', 'first', 'second', 'begun before', 'third']
  expect(names(await readUntil(send, (seen) => names(seen).length === 5))).toEqual(all)
  expect(names(await readOn(send, { created_after: since }))).toEqual(['first', 'second', 'third'])
  const paged: string[] = []
  for (let query = { created_after: since, limit: '1' }; ; ) {
    const { body } = await send('GET', `/notifications?${new URLSearchParams(query)}`)
    paged.push(...names(body.data))
    if (!body.has_more) break
    query = { ...query, ...{ cursor: body.next_cursor } }
  }
  expect(paged).toEqual(['first', 'second', 'third'])

  const seen = await readOn(send)
  const after = seen.find(({ data }) => 'name' in data && data.name === 'first')?.id ?? ''
  expect(names(await readOn(send, { created_after: since, after }))).toEqual(['second', 'third'])
  expect(names(await readOn(send, { created_after: '1900-01-01T00:00:00Z' }))).toEqual(all)
  expect(await readOn(send, { created_after: '9998-01-01T00:00:00Z' })).toEqual([])
  expect(await readOn(other.send, { created_after: since })).toEqual([])
})

test('a notification is what the object was then, whatever became of it', async () => {
  const { event, send, renameTo } = await arrange()
  await renameTo('Then')
  const then = (await send('GET', `/events/${event.id}`)).body.data
  await renameTo('Now')
  const seen = await readUntil(send, (all) => names(all).length === 2)
  expect(seen[1]).toEqual({
    object: 'notification',
    id: expect.any(String),
    type: 'event.updated',
    created_at: then.updated_at,
    data: then,
  })
})

test('walking pages of 3 while more happens neither skips nor repeats', async () => {
  const { send, renameTo } = await arrange()
  const expected = ['1', '2', '3', '4', '5', '6', '7', '8']
  for (const name of expected) await renameTo(name)
  await readUntil(send, (all) => names(all).length === 8)

  const seen: Notification[] = []
  let cursor: string | null = null
  let more = 8
  do {
    const { body } = await send('GET', `/notifications?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`)
    expect(body.data.length).toBeLessThanOrEqual(3)
    seen.push(...body.data)
    cursor = body.next_cursor
    expect(body.has_more).toBe(cursor !== null)
    // Five pages are enough to have walked past what there was at first.
    if (more < 18) for (let i = 0; i < 2; i++) await renameTo(String(++more))
  } while (cursor !== null)

  const rest = await readUntil(send, (all) => seen.length + all.length > more, { after: seen.at(-1)?.id ?? '' })
  const all = [...seen, ...rest]
  expect(names(all)).toEqual(Array.from({ length: more }, (_, i) => String(i + 1)))
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
})

test('a cursor goes on where after began', async () => {
  const { send, renameTo } = await arrange()
  for (const name of ['1', '2', '3', '4', '5']) await renameTo(name)
  const [, first] = await readUntil(send, (all) => names(all).length === 5)
  const page = await send('GET', `/notifications?after=${first?.id}&limit=2`)
  const next = await send('GET', `/notifications?after=${first?.id}&limit=2&cursor=${page.body.next_cursor}`)
  expect([names(page.body.data), names(next.body.data)]).toEqual([
    ['2', '3'],
    ['4', '5'],
  ])
  expect(next.body).toMatchObject({ has_more: false, next_cursor: null })
})

test('one type is listed alone, also on from one of another type', async () => {
  const { send, actions, renameTo } = await arrange()
  await renameTo('1')
  await actions.register()
  await renameTo('2')
  const seen = await readUntil(send, (all) => all.length === 5)
  expect(names(await readOn(send, { type: 'event.updated' }))).toEqual(['1', '2'])
  expect(types(await readOn(send, { type: 'order.created' }))).toEqual(['order.created'])
  const completed = seen.find(({ type }) => type === 'order.completed')
  expect(names(await readOn(send, { type: 'event.updated', after: completed?.id ?? '' }))).toEqual(['2'])
  expect(await readOn(send, { type: 'attendee.updated' })).toEqual([])
})

/** One of each kind of object happened, and all of it shows. */
async function everythingHappened() {
  const { organisation, send, actions } = await arrange()
  const endpointId = await addEndpoint(organisation.id)
  const orderId = await actions.register()
  const [guest] = (await send('GET', `/attendees?order_id=${orderId}`)).body.data
  await actions.scan(guest.ticket_code)
  expect((await send('POST', `/webhook-endpoints/${endpointId}/test`)).status).toBe(201)
  const all = await readUntil(send, (seen) => seen.length === 5)
  return { organisation, all }
}
const happened = once(everythingHappened)

test.each([
  [['events:write'], ['webhook_endpoint.test']],
  [
    ['events:write', 'events:read'],
    ['event.published', 'webhook_endpoint.test'],
  ],
  [
    ['events:write', 'orders:read'],
    ['order.completed', 'order.created', 'webhook_endpoint.test'],
  ],
  [
    ['events:write', 'attendees:read'],
    ['attendee.checked_in', 'webhook_endpoint.test'],
  ],
  // Writing is not reading.
  [['events:write', 'orders:write', 'attendees:write', 'checkin:write'], ['webhook_endpoint.test']],
] as const)('a key with %j sees %j, as notifications and as deliveries', async (scopes, expected) => {
  const { organisation, all } = await happened()
  const send = rest(await organisation.key(...scopes))
  expect(types(await readOn(send))).toEqual(expected)
  await enqueued(organisation.id)
  const deliveries = (await send('GET', '/webhook-deliveries')).body.data as { type: string }[]
  // The event was published before there was an endpoint.
  expect([...new Set(deliveries.map(({ type }) => type))].sort()).toEqual(
    expected.filter((type) => type !== 'event.published'),
  )

  const unreadable = all.find(({ type }) => !(expected as readonly string[]).includes(type))
  expect(problemOf(await send('GET', `/notifications?after=${unreadable?.id}`))).toEqual([404, 'not_found', 'after'])
})

test('a key that lost a scope sees no more of what needs it, from the next request on', async () => {
  const { organisation } = await happened()
  const key = await organisation.key('events:write', 'orders:read')
  const send = rest(key)
  expect(types(await readOn(send))).toContain('order.created')
  await studio.query("update public.api_keys set scopes = '{events:write}' where prefix = $1", [prefixOf(key)])
  expect(types(await readOn(send))).toEqual(['webhook_endpoint.test'])
})

test("another organisation's notifications are neither listed nor read on from", async () => {
  const [ours, theirs] = [await arrange(), await arrange()]
  await theirs.renameTo('Theirs')
  const [foreign] = await readUntil(theirs.send, (all) => names(all).length === 1)
  expect(names(await readOn(ours.send))).toEqual([])
  for (const id of [foreign?.id, randomUUID()]) {
    expect(problemOf(await ours.send('GET', `/notifications?after=${id}`))).toEqual([404, 'not_found', 'after'])
  }
})
