// update_order: the contact, the identifier and the metadata of an order. Its deadline is in test/database/50-orders/payment-deadlines.test.ts.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf, rest } from '../support/rest.ts'

/** An order of 49.00 EUR whose buyer is its attendee, Guest, guest@example.com. */
async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const { orderId, attendeeId } = await event.payer()
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
    expect(problemOf(await change(changes)), JSON.stringify(changes)).toEqual([status, code, param])
  }
  const stale = await change({ name: 'Ada' }, { 'If-Match': `"${before.version - 1}"` })
  expect([stale.status, stale.body.error.code]).toEqual([412, 'version_mismatch'])
  expect((await send('GET', `/orders/${orderId}`)).body.data).toEqual(before)
  const present = await change({ name: 'Ada' }, { 'If-Match': `"${before.version}"` })
  expect(present.body.data).toMatchObject({ name: 'Ada', version: before.version + 1 })
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
