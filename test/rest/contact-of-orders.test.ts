// update_order: the contact, the identifier and the metadata of an order. Its deadline is in test/database/50-orders/payment-deadlines.test.ts.

import { expect, test } from 'vitest'
import type { Scope } from '../../src/operations/operation.ts'
import { actAs } from '../database/actor.ts'
import { row, studio } from '../support/database.ts'
import { clients, connectForAll } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

/** An order of 49.00 EUR whose buyer is its attendee, Guest, guest@example.com. */
async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { orderId, attendeeId } = await event.payer()
  const send = rest(await organisation.key())
  const change = (changes: object, headers = {}) => send('PATCH', `/orders/${orderId}`, changes, headers)
  const pay = (amount: number) => send('POST', `/orders/${orderId}/payments`, { amount })
  return { organisation, event, orderId, attendeeId, send, change, pay }
}

test('the contact of an order is corrected, and what is sent later goes there', async () => {
  const { orderId, attendeeId, send, change, pay } = await arrange()
  const { status, body } = await change({ name: 'Ada Lovelace', email: 'ada@engines.example', company: 'Engines Ltd' })
  expect([status, body.warnings, body.data]).toMatchObject([
    200,
    undefined,
    {
      name: 'Ada Lovelace',
      email: 'ada@engines.example',
      company: 'Engines Ltd',
      attendees: [{ id: attendeeId, name: 'Guest', email: 'guest@example.com', ticket_code: null }],
    },
  ])
  await pay(900)
  const { rows } = await studio.query(
    `select e.kind, private.pending_email_json(e) #>> '{order,email}' as email from public.emails e
     where e.order_id = $1 order by e.kind`,
    [orderId],
  )
  expect(rows).toEqual(
    ['order_confirmation', 'payment_received'].map((kind) => ({ kind, email: 'ada@engines.example' })),
  )
  const found = await send('GET', '/orders?search=engines%20lovelace')
  expect(found.body.data.map(({ id }: { id: string }) => id)).toEqual([orderId])
  const trail = await send('GET', `/audit-entries?object_id=${orderId}`)
  expect(trail.body.data).toContainEqual(
    expect.objectContaining({
      action: 'updated',
      actor: 'api_key',
      changes: expect.objectContaining({ email: { from: 'guest@example.com', to: 'ada@engines.example' } }),
    }),
  )
})

test('a paid or cancelled order takes a company, an identifier and metadata; null clears, and what is left out stays', async () => {
  const { send, change, pay, orderId } = await arrange()
  await pay(4900)
  const full = { company: 'Engines Ltd', external_id: 'INV-2031-7', metadata: { cost_centre: 12 } }
  expect((await change(full)).body.data).toMatchObject({ ...full, name: 'Guest', status: 'completed' })
  await send('POST', `/orders/${orderId}/cancel`)
  const cleared = await change({ company: null, external_id: null })
  expect(cleared.body.data).toMatchObject({ ...full, company: null, external_id: null, status: 'cancelled' })
  expect((await change({ metadata: { cost_centre: null } })).body.data.metadata).toEqual({})
})

test('what an order does not take is refused, and changes nothing', async () => {
  const { event, send, change, pay, orderId } = await arrange()
  const { orderId: other } = await event.payer()
  await send('PATCH', `/orders/${other}`, { external_id: 'INV-1' })
  await pay(4900)
  const before = (await send('GET', `/orders/${orderId}`)).body.data
  const refused: [object, number, string, string | undefined][] = [
    [{ email: 'nobody' }, 422, 'validation_failed', 'email'],
    [{ name: null }, 422, 'validation_failed', 'name'],
    [{ email: null }, 422, 'validation_failed', 'email'],
    [{ metadata: null }, 422, 'validation_failed', 'metadata'],
    [{ company: ' ' }, 422, 'validation_failed', 'company'],
    [{ status: 'cancelled' }, 422, 'validation_failed', 'status'],
    [{ name: 'Ada', external_id: 'INV-1' }, 409, 'already_exists', 'external_id'],
    [{ name: 'Ada', payment_due_at: '2031-01-01T12:00:00Z' }, 409, 'order_completed', 'payment_due_at'],
  ]
  for (const [changes, status, code, param] of refused) {
    const answer = await change(changes)
    expect([answer.status, answer.body.error.code, answer.body.error.param], JSON.stringify(changes)).toEqual([
      status,
      code,
      param,
    ])
  }
  const stale = await change({ name: 'Ada' }, { 'If-Match': `"${before.version - 1}"` })
  expect([stale.status, stale.body.error.code]).toEqual([412, 'version_mismatch'])
  expect((await send('GET', `/orders/${orderId}`)).body.data).toEqual(before)
  const present = await change({ name: 'Ada' }, { 'If-Match': `"${before.version}"` })
  expect(present.body.data).toMatchObject({ name: 'Ada', version: before.version + 1 })
})

test('orders:write is enough, and no other scope; a deadline after the event is warned of only where it is changed', async () => {
  const { organisation, orderId } = await arrange()
  const path = `/orders/${orderId}`
  const late = { payment_due_at: '2099-01-01T12:00:00Z' }
  const send = rest(await organisation.key('orders:write'))
  expect((await send('PATCH', path, late)).body.warnings).toMatchObject([{ code: 'due_after_event' }])
  const { status, body } = await send('PATCH', path, { company: 'Engines Ltd' })
  expect([status, body.warnings, body.data.attendees[0].ticket_code]).toEqual([200, undefined, null])
  const others = rest(await organisation.key('orders:read', 'attendees:read', 'attendees:write', 'events:write'))
  expect((await others('PATCH', path, { company: null })).status).toBe(403)
  const stranger = rest(await (await createOrganisation()).key())
  expect((await stranger('PATCH', path, { company: null })).body.error.code).toBe('not_found')
})

test.each(clients.slice(0, 1))('over MCP the answer shows the contact as it is now', async ({ connect }) => {
  const { organisation, orderId } = await arrange()
  const { mcp, close } = await connectForAll(connect, await organisation.key())
  const changes = { email: 'ada@engines.example', company: 'Engines Ltd', external_id: 'INV-7' }
  const { data } = (await mcp.call('update_order', { order: orderId, changes })) as { data: object }
  expect(data).toMatchObject({ name: 'Guest', ...changes })
  await close()
})

test('an attendee whose order keeps the address that they had is warned of, to a key that may see orders', async () => {
  const { organisation, event, attendeeId, change } = await arrange()
  /** What is said of the attendee, who had this name and address and now has others. */
  const warned = async (
    former: object,
    present: object,
    scopes: Scope[] = ['attendees:write', 'orders:write'],
    of = attendeeId,
  ) => {
    await organisation.key(...scopes)
    const key = await row<{ id: string }>(
      'select id from public.api_keys where organisation_id = $1 order by id desc limit 1',
      [organisation.id],
    )
    const claims = { organisation_id: organisation.id, api_key_id: key.id }
    const sql = `select w ->> 'code' as code
       from public.attendees a
       cross join unnest(private.warnings_of_attendee(jsonb_populate_record(a, $2), jsonb_populate_record(a, $3))) w
       where a.id = $1
       order by w is null
       limit 1`
    return actAs('scope_attendees_write', claims, async ({ rows }) => {
      const [answer] = await rows<{ code: string | null }>(sql, [of, former, present])
      return answer?.code
    })
  }
  const corrected = [{ email: 'Guest@example.com' }, { email: 'ada@engines.example' }] as const
  expect(await warned(...corrected)).toBe('buyer_has_former_address')
  expect(await warned(...corrected, ['attendees:write', 'orders:read'])).toBe('buyer_has_former_address')
  expect(await warned({ ...corrected[0], name: ' GUE\u00adST\u200b' }, corrected[1])).toBe('buyer_has_former_address')
  // Else a key for attendees could guess who paid.
  expect(await warned(...corrected, ['attendees:write', 'attendees:read'])).toBeNull()
  expect(await warned({ name: 'Somebody else', email: 'guest@example.com' }, corrected[1])).toBeNull()
  expect(await warned({ email: 'other@example.com' }, corrected[1])).toBeNull()
  expect(await warned(corrected[0], { name: 'Ada', email: 'guest@EXAMPLE.com' })).toBeNull()
  // Nobody is told of the money of an order that costs nothing.
  const { attendeeId: guest } = await event.guest()
  expect(await warned(...corrected, ['attendees:write', 'orders:write'], guest)).toBeNull()
  await change({ email: 'ada@engines.example' })
  expect(await warned(...corrected)).toBeNull()
})

test('whoever corrects the address of an attendee is told that the buyer has the former one', async () => {
  const { organisation, attendeeId, send, change } = await arrange()
  const correct = async (changes: object, as = send) => {
    const { status, body } = await as('PATCH', `/attendees/${attendeeId}`, changes)
    return [status, (body.warnings ?? []).map(({ code }: { code: string }) => code)]
  }
  const withoutOrders = rest(await organisation.key('attendees:write'))
  expect(await correct({ email: 'right@example.com' }, withoutOrders)).toEqual([200, []])
  expect(await correct({ email: 'guest@example.com' })).toEqual([200, []])
  expect(await correct({ email: 'right@example.com' })).toEqual([200, ['buyer_has_former_address']])
  await change({ email: 'right@example.com' })
  expect(await correct({ email: 'new@example.com', name: 'Eve' })).toEqual([200, ['buyer_has_former_address']])
  await change({ name: 'Another', email: 'buyer@example.com' })
  expect(await correct({ email: 'newer@example.com' })).toEqual([200, []])
})
