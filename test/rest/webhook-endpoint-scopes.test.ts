// A key may subscribe an endpoint only to types that it may read: nothing leaks through a webhook.

import { expect, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import type { Scope } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addEndpoint, enqueued } from '../support/outbox.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

const url = 'https://hooks.example.com/usher'

const needs = [
  ['order.created', 'orders:read'],
  ['order.updated', 'orders:read'],
  ['order.completed', 'orders:read'],
  ['order.cancelled', 'orders:read'],
  ['attendee.created', 'attendees:read'],
  ['attendee.checked_in', 'attendees:read'],
  ['attendee.checked_out', 'attendees:read'],
  ['attendee.check_in_undone', 'attendees:read'],
  ['attendee.updated', 'attendees:read'],
  ['attendee.cancelled', 'attendees:read'],
  ['attendee.erased', 'attendees:read'],
  ['event.published', 'events:read'],
  ['event.updated', 'events:read'],
  ['event.cancelled', 'events:read'],
  ['payment.recorded', 'orders:read'],
  ['payment.voided', 'orders:read'],
  ['refund.recorded', 'orders:read'],
  ['email.bounced', 'attendees:read'],
  ['ticket_type.sold_out', 'events:read'],
] as const satisfies [string, Scope][]

function expectMissing(scope: Scope, { status, body }: RestAnswer) {
  expect([status, body.error.code, body.error.details]).toEqual([403, 'missing_scope', { scope }])
}

/** An organisation with an endpoint that is subscribed to orders, and a key that may write endpoints and read events alone. */
async function arrange() {
  const organisation = await createOrganisation()
  const id = await addEndpoint(organisation.id, ['order.created', 'event.updated'])
  const read = async () =>
    (
      await studio.query(
        `select w.*, array(select s.secret from private.webhook_secrets s where s.webhook_endpoint_id = w.id) as secrets
         from public.webhook_endpoints w where w.organisation_id = $1`,
        [organisation.id],
      )
    ).rows
  return {
    organisation,
    id,
    path: `/webhook-endpoints/${id}`,
    /** As they are in the database, secrets and all: what a refusal must leave as it was. */
    read,
    send: rest(await organisation.key('events:write', 'events:read')),
  }
}

/** An organisation, and a caller for each set of scopes that is asked for. */
const callers = once(async () => {
  const organisation = await createOrganisation()
  const known = new Map<string, Promise<string>>()
  return {
    organisation,
    with: async (...scopes: Scope[]) => {
      const name = scopes.join()
      const key = known.get(name) ?? organisation.key(...scopes)
      known.set(name, key)
      return rest(await key)
    },
  }
})

test.each(needs)('%s is subscribed to with %s, and not without', async (type, scope) => {
  const { organisation, with: callerWith } = await callers()
  const subscribe = async (...scopes: Scope[]) =>
    (await callerWith('events:write', ...scopes))('POST', '/webhook-endpoints', { url, types: [type] })
  expectMissing(scope, await subscribe())
  // Nor with all the others.
  const others = (['events:read', 'orders:read', 'attendees:read'] as const).filter((other) => other !== scope)
  expectMissing(scope, await subscribe(...others, 'orders:write', 'attendees:write', 'checkin:write'))
  const { rows } = await studio.query(
    'select from public.webhook_endpoints where organisation_id = $1 and $2 = any(types)',
    [organisation.id, type],
  )
  expect(rows).toHaveLength(0)
  expect((await subscribe(scope)).status).toBe(201)
})

test.each([
  [{ types: ['event.updated', 'attendee.updated'] }, 'attendees:read'],
  [{ url: 'https://elsewhere.example.com' }, 'orders:read'],
  [{ status: 'enabled' }, 'orders:read'],
  [{ url: 'https://elsewhere.example.com', types: ['order.created'] }, 'orders:read'],
] as const)(
  'an endpoint that is subscribed to more than the key may read is not changed to %j',
  async (changes, scope) => {
    const { id, path, send, read } = await arrange()
    if ('status' in changes) {
      await edit('webhook_endpoints', id, "status = 'disabled'")
    }
    const before = await read()
    expectMissing(scope, await send('PATCH', path, changes))
    expect(await read()).toEqual(before)
  },
)

// What was pending before would go to the new address.
test('an endpoint is not sent elsewhere by giving up, with the same change, what the key may not read', async () => {
  const { organisation, path, send, read } = await arrange()
  await (await organisation.event()).guest()
  const before = await read()
  expectMissing(
    'orders:read',
    await send('PATCH', path, { url: 'https://elsewhere.example.com', types: ['event.updated'] }),
  )
  expect(await read()).toEqual(before)
})

test('what an endpoint is not subscribed to any more is not sent to it, nor pending again', async () => {
  const { organisation, id, path, send } = await arrange()
  await (await organisation.event()).guest()
  await enqueued(organisation.id)
  const all = rest(await organisation.key())
  expect((await all('PATCH', path, { types: ['event.updated'] })).status).toBe(200)
  const { rows } = await studio.query<{ id: string; status: string }>(
    "select id, status from public.webhook_deliveries where webhook_endpoint_id = $1 and type = 'order.created'",
    [id],
  )
  expect(rows.map(({ status }) => status)).toEqual(['cancelled'])
  expect((await send('PATCH', path, { url: 'https://elsewhere.example.com' })).status).toBe(200)
  const again = await all('POST', `/webhook-deliveries/${rows[0]?.id}/redeliver`)
  expect([again.status, again.body.error.code]).toEqual([409, 'type_not_subscribed'])
})

test('an endpoint may be made silent and described by a key that may not read what it is subscribed to', async () => {
  const { path, send } = await arrange()
  const { status, body } = await send('PATCH', path, { status: 'disabled', description: 'Leaks' })
  expect([status, body.data.status, body.data.description]).toEqual([200, 'disabled', 'Leaks'])
  expectMissing('orders:read', await send('PATCH', path, { status: 'enabled' }))
})

test('a new secret of an endpoint is not shown to a key that may not read what is signed with it', async () => {
  const { path, send, read } = await arrange()
  const before = await read()
  expectMissing('orders:read', await send('POST', `${path}/rotate-secret`))
  expect(await read()).toEqual(before)
})

test('a key that loses a scope loses its say over what needed it, from the next request on', async () => {
  const { organisation, path } = await arrange()
  const key = await organisation.key('events:write', 'events:read', 'orders:read')
  const send = rest(key)
  expect((await send('PATCH', path, { url })).status).toBe(200)
  await studio.query("update public.api_keys set scopes = '{events:write,events:read}' where prefix = $1", [
    prefixOf(key),
  ])
  expectMissing('orders:read', await send('PATCH', path, { url: 'https://elsewhere.example.com' }))
  expectMissing('orders:read', await send('POST', `${path}/rotate-secret`))
  expectMissing('orders:read', await send('POST', '/webhook-endpoints', { url, types: ['order.created'] }))
})

test('a key sees, tries and deletes endpoints, whatever they are subscribed to', async () => {
  const { id, path, send, read } = await arrange()
  expect((await send('GET', path)).body.data).toMatchObject({ id, types: ['order.created', 'event.updated'] })
  expect((await send('POST', `${path}/test`)).status).toBe(201)
  expect((await send('DELETE', path)).status).toBe(200)
  expect(await read()).toEqual([])
})
