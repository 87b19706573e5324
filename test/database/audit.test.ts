// The audit trail: one entry for each thing that somebody does, with what changed, and with no entry for what follows from it.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

type Entry = { action: string; object_type: string; object_id: string; actor: string; source: string; changes: unknown }

async function arrange() {
  const organisation = await createOrganisation()
  const key = await organisation.key()
  const send = rest(key)
  const event = await organisation.event()
  const entries = async (query = ''): Promise<Entry[]> => (await send('GET', `/audit-entries${query}`)).body.data
  let seen = (await entries('?limit=100')).length
  /** What was added since the last call, oldest first. */
  const news = async () => {
    const all = await entries('?limit=100')
    const added = all.slice(0, all.length - seen).toReversed()
    seen = all.length
    return added.map(({ action, object_type, actor, source, changes }) => [action, object_type, actor, source, changes])
  }
  return { organisation, key, send, event, entries, news }
}

test('each write over the API and in Studio is an entry, with what it changed', async () => {
  const { organisation, send, event, news } = await arrange()
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  const { data: order } = (await send('POST', `/events/${event.id}/registrations`, guest)).body
  const [attendee] = order.attendees
  const created = (type: string, actor = 'api_key', source = 'api') => ['created', type, actor, source, null]
  expect(await news(), 'a registration').toEqual([created('order')])

  await send('PATCH', `/attendees/${attendee.id}`, { name: 'Katherine Johnson', reissue_ticket: true })
  expect(await news(), 'a transfer').toEqual([
    [
      'updated',
      'attendee',
      'api_key',
      'api',
      { name: { from: 'Mary Jackson', to: 'Katherine Johnson' }, ticket_code: {} },
    ],
  ])

  const { ticket_code } = (await send('GET', `/attendees/${attendee.id}`)).body.data
  const checkIn = (await send('POST', '/check-ins', { event_id: event.id, code: ticket_code })).body.data
  expect(await news(), 'a scan, which is a log of its own').toEqual([])
  await send('POST', `/check-ins/${checkIn.id}/undo`)
  expect(await news()).toMatchObject([['updated', 'check_in', 'api_key', 'api', { undone_at: { from: null } }]])

  await studio.query("update public.attendees set company = 'NASA' where id = $1", [attendee.id])
  expect(await news()).toEqual([['updated', 'attendee', 'studio', 'studio', { company: { from: null, to: 'NASA' } }]])
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Guest', 'g@example.com')`,
    [order.id, event.ticketTypeId],
  )
  expect(await news(), 'one more in an order').toEqual([created('attendee', 'studio', 'studio')])

  const { data: endpoint } = (
    await send('POST', '/webhook-endpoints', { url: 'https://hooks.example.com', types: ['event.updated'] })
  ).body
  await send('POST', `/webhook-endpoints/${endpoint.id}/rotate-secret`)
  expect(await news()).toEqual([
    created('webhook_endpoint'),
    ['updated', 'webhook_endpoint', 'api_key', 'api', { secret: {} }],
  ])

  await send('POST', `/events/${event.id}/cancel`)
  expect(await news(), 'its orders and tickets follow').toMatchObject([
    ['updated', 'event', 'api_key', 'api', { status: { from: 'published', to: 'cancelled' } }],
  ])
  await studio.query('delete from public.webhook_endpoints where organisation_id = $1', [organisation.id])
  expect(await news()).toMatchObject([
    ['deleted', 'webhook_endpoint', 'studio', 'studio', { url: { from: 'https://hooks.example.com' } }],
  ])
})

test('payments and their corrections are entries, and what they do to the order is not', async () => {
  const { send, event, news } = await arrange()
  const { orderId } = await event.payer()
  await news()
  const pay = async (amount: number) =>
    (await send('POST', `/orders/${orderId}/payments`, { amount })).body.data.payments
  const [first] = await pay(900)
  await send('POST', `/payments/${first.id}/void`)
  await pay(4900)
  await send('POST', `/orders/${orderId}/refunds`, { amount: 100 })
  expect((await news()).map(([action, type]) => `${action} ${type}`)).toEqual([
    'created payment',
    'created payment_void',
    'created payment',
    'created refund',
  ])
})

test('no value of a secret, a key or a ticket code is in an entry, whoever wrote it', async () => {
  const { organisation, send, event } = await arrange()
  const guest = await event.guest()
  await send('PATCH', `/attendees/${guest.attendeeId}`, { reissue_ticket: true })
  await studio.query("update public.api_keys set name = 'Renamed', revoked_at = null where organisation_id = $1", [
    organisation.id,
  ])
  await studio.query('delete from public.attendees where id = $1', [guest.attendeeId])
  const { rows } = await studio.query<{ text: string }>(
    'select e::text as text from public.audit_entries e where e.organisation_id = $1',
    [organisation.id],
  )
  const codes = await row<{ codes: string[] }>('select array[$1::text] as codes', [guest.code])
  for (const { text } of rows) {
    expect(text).not.toMatch(/[0-9a-f]{64}|whsec_/)
    for (const code of codes.codes) expect(text).not.toContain(code)
  }
  expect(rows.length).toBeGreaterThan(5)
})

test('a key lists entries about what it may read, of its own organisation, and pages through them', async () => {
  const { organisation, event, entries } = await arrange()
  const guest = await event.guest()
  await studio.query("update public.attendees set company = 'NASA' where id = $1", [guest.attendeeId])
  const stranger = rest(await (await createOrganisation()).key())
  expect((await stranger('GET', `/audit-entries?object_id=${guest.attendeeId}`)).body.data).toEqual([])

  const typesSeenWith = async (...scopes: Parameters<typeof organisation.key>) => {
    const { body } = await rest(await organisation.key(...scopes))('GET', '/audit-entries?limit=100')
    return [...new Set(body.data.map((entry: Entry) => entry.object_type))].sort()
  }
  expect(await typesSeenWith('events:write')).toEqual([])
  expect(await typesSeenWith('events:write', 'events:read')).toEqual(['event', 'ticket_type'])
  expect(await typesSeenWith('events:write', 'orders:read')).toEqual(['order'])
  expect(await typesSeenWith('events:write', 'attendees:read')).toEqual(['attendee'])

  expect(await entries(`?object_id=${guest.attendeeId}`)).toMatchObject([
    { object_type: 'attendee', action: 'updated' },
    { object_type: 'attendee', action: 'created' },
  ])
  expect((await entries('?object_type=ticket_type')).map(({ object_id }) => object_id)).toEqual([event.ticketTypeId])
  const all = await entries('?limit=100')
  const paged: Entry[] = []
  const send = rest(await organisation.key())
  for (let cursor = ''; ; ) {
    const { body } = await send('GET', `/audit-entries?limit=1${cursor}`)
    paged.push(...body.data)
    if (!body.has_more) break
    cursor = `&cursor=${body.next_cursor}`
  }
  expect(paged).toEqual(all)
})
