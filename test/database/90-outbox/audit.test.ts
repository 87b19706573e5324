// The audit trail: one entry for each thing that somebody does, with what changed, and with no entry for what follows from it.

import { beforeAll, expect, test } from 'vitest'
import { prefixOf } from '../../../src/gateway/api-key.ts'
import { row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import type { Claims } from '../actor.ts'
import { send, sign } from '../data-api-client.ts'
import { additions, edits } from '../tenancy.ts'
import { createTenant, join, signUp, type Tenant } from '../tenant-fixture.ts'

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

test('no value of a secret, a key or a ticket code is in an entry, whoever wrote it', async () => {
  const { organisation, send, event } = await arrange()
  const guest = await event.guest()
  await send('PATCH', `/attendees/${guest.attendeeId}`, { reissue_ticket: true })
  await studio.query("update public.api_keys set name = 'Renamed', revoked_at = null where organisation_id = $1", [
    organisation.id,
  ])
  await studio.query("update public.attendees set status = 'cancelled' where id = $1", [guest.attendeeId])
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
  const { organisation, event, send, entries } = await arrange()
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
  const { body } = await send('GET', '/audit-entries?limit=1')
  const next = await entries(`?limit=100&cursor=${body.next_cursor}`)
  expect([...body.data, ...next]).toEqual(await entries('?limit=100'))
})

test('what was done since a time is listed alone', async () => {
  const { event, send, entries } = await arrange()
  const { body: renamed } = await send('PATCH', `/events/${event.id}`, { name: 'Mine' })
  await send('PATCH', `/events/${event.id}`, { name: 'Ours' })
  const changes = (await entries(`?created_after=${renamed.data.updated_at}`)).map((entry) => entry.changes)
  expect(changes).toMatchObject([{ name: { to: 'Ours' } }, { name: { to: 'Mine' } }])
})

const objects = {
  ...{ event: 'events', ticket_type: 'ticket_types', promo_code: 'promo_codes', check_in_point: 'check_in_points' },
  ...{ order: 'orders', attendee: 'attendees', payment: 'payments', payment_void: 'payment_voids', refund: 'refunds' },
  ...{ webhook_endpoint: 'webhook_endpoints', member: 'organisation_members' },
}

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant()
})

test.each(Object.entries(objects))('in Studio, %s: each step is one entry', async (type, name) => {
  const table = `public.${name}`
  const [sql, values] = additions[table]?.(tenant, await signUp()) ?? ['', []]
  const key = name === 'organisation_members' ? 'user_id' : 'id'
  const { id } = await row<{ id: string }>(`${sql} returning ${key} as id`, values)
  // A ticket that stands is not deleted.
  const change = name === 'attendees' ? "status = 'cancelled'" : edits[table]
  // What changes nothing is no entry.
  if (change) for (const _ of [1, 2]) await studio.query(`update ${table} set ${change} where ${key} = $1`, [id])
  const isDeleted = !/^(payment|refund)/.test(name)
  if (isDeleted) await studio.query(`delete from ${table} where ${key} = $1`, [id])
  const { rows } = await studio.query(
    'select action, actor, source, changes is null as bare from public.audit_entries where object_id = $1 and object_type = $2 order by id',
    [id, type],
  )
  const entry = (action: string, bare: boolean) => ({ action, actor: 'studio', source: 'studio', bare })
  expect(rows).toEqual([
    entry('created', true),
    ...(change ? [entry('updated', false)] : []),
    ...(isDeleted ? [entry('deleted', false)] : []),
  ])
})

test('edits of the organisation and of its keys are entries', async () => {
  const { organisation, news } = await arrange()
  await studio.query("update public.organisations set reply_to_email = 'a@example.com' where id = $1", [
    organisation.id,
  ])
  await studio.query("update public.api_keys set name = 'Renamed' where organisation_id = $1", [organisation.id])
  const { rows } = await studio.query(
    "select object_type from public.audit_entries where organisation_id = $1 and object_type in ('organisation', 'api_key') and action = 'updated' order by id",
    [organisation.id],
  )
  expect(rows).toEqual([{ object_type: 'organisation' }, { object_type: 'api_key' }])
  expect(await news(), 'of which keys read nothing').toEqual([])
})

test('members and the courier are named as such', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const person = await signUp()
  await join(organisation.id, person, 'owner')
  const token = await sign({ ...person, role: 'authenticated' } as Claims)
  await send(
    {
      method: 'PATCH',
      path: `/events?id=eq.${event.id}`,
      body: { name: 'Renamed' },
      headers: { 'Content-Profile': 'public' },
    },
    token,
  )
  const endpoint = await addEndpoint(organisation.id, ['event.updated'])
  const client = await studio.connect()
  try {
    await client.query(`begin; select set_config('request.jwt.claims', '{"role": "courier"}', true)`)
    await client.query(
      "update public.webhook_endpoints set status = 'disabled', disabled_reason = 'It answered 410 Gone.' where id = $1",
      [endpoint],
    )
    await client.query('commit')
  } finally {
    client.release()
  }
  const { rows } = await studio.query(
    "select object_type, actor, user_id from public.audit_entries where organisation_id = $1 and action = 'updated' and actor <> 'studio' order by id",
    [organisation.id],
  )
  expect(rows).toEqual([
    { object_type: 'event', actor: 'member', user_id: person.sub },
    { object_type: 'webhook_endpoint', actor: 'courier', user_id: null },
  ])
})

test('who did it has a name, over REST and in Studio: a key its own, also when it is gone, a member theirs, or else their address', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const keys = { door: await organisation.key(), gone: await organisation.key() }
  for (const key of Object.values(keys)) await rest(key)('PATCH', `/events/${event.id}`, { name: key.slice(-8) })
  const [owner, viewer] = [await signUp(), await signUp()]
  await Promise.all([join(organisation.id, owner, 'owner'), join(organisation.id, viewer, 'viewer')])
  const email = `${owner.sub}@example.com`
  await studio.query('update auth.users set email = $2 where id = $1', [owner.sub, email])
  const tokenOf = (who: Claims) => sign({ ...who, role: 'authenticated' } as Claims)
  const rename = { method: 'PATCH', path: `/events?id=eq.${event.id}`, body: { name: 'By hand' } }
  await send({ ...rename, headers: { 'Content-Profile': 'public' } }, await tokenOf(owner))
  await studio.query("update public.api_keys set name = 'Door scanners', revoked_at = now() where prefix = $1", [
    prefixOf(keys.door),
  ])
  await studio.query("update public.api_keys set name = 'Old shop' where prefix = $1", [prefixOf(keys.gone)])
  await studio.query('delete from public.api_keys where prefix = $1', [prefixOf(keys.gone)])

  // One whose account has a name, and one who was removed, and whose name was typed.
  const [named, gone] = [await signUp(), await signUp()]
  for (const person of [named, gone]) {
    await join(organisation.id, person, 'manager')
    await studio.query("update public.organisation_members set name = 'Grace Hopper' where user_id = $1", [person.sub])
    await send(
      { ...rename, body: { name: `By ${person.sub}` }, headers: { 'Content-Profile': 'public' } },
      await tokenOf(person),
    )
  }
  await studio.query(`update auth.users set raw_user_meta_data = '{"name": "Ada Lovelace"}' where id = $1`, [named.sub])
  await studio.query('delete from public.organisation_members where user_id = $1', [gone.sub])

  const byName = ['Door scanners', 'Old shop', email, 'Ada Lovelace', 'Grace Hopper']
  const read = rest(await organisation.key('events:write', 'events:read'))
  const { data } = (await read('GET', `/audit-entries?object_id=${event.id}`)).body
  // Those before are of whoever arranged this, in Studio.
  const updates = (data as { actor_name: string }[]).slice(0, 5)
  expect(updates.map(({ actor_name }) => actor_name)).toEqual(byName.toReversed())
  const seen = async (who: Claims) =>
    (
      await send(
        {
          path: `/audit_trail?object_id=eq.${event.id}&limit=5&select=actor_name`,
          headers: { 'Accept-Profile': 'public' },
        },
        await tokenOf(who),
      )
    ).body
  expect(await seen(owner)).toEqual(byName.toReversed().map((actor_name) => ({ actor_name })))
  expect(await seen(viewer)).toEqual([])
})
