// Filters by time have one form in all operations: `…_after` includes its moment, so that a sync that repeats the last time it saw loses
// no row of the same moment, and `…_before` does not. The names they had before are refused.

import { expect, test } from 'vitest'
import { operations } from '../../src/operations/index.ts'
import { atOrAfter, before } from '../../src/operations/lists.ts'
import { row } from '../support/database.ts'
import { connectV1 } from '../support/mcp.ts'
import { createOrganiser } from '../support/organiser.ts'

const filters = operations.flatMap(({ name, input }) =>
  Object.entries(input.shape)
    .filter(([field]) => /(^since|_since|^until|_after|_before)$/.test(field))
    .map(([field, schema]) => ({ name, field, schema })),
)

test('every filter by time is one of two fields', () => {
  expect(filters.length).toBeGreaterThan(10)
  for (const { name, field, schema } of filters) {
    const expected = field.endsWith('_after') ? atOrAfter : field.endsWith('_before') ? before : undefined
    expect(schema, `${name} ${field}`).toBe(expected)
  }
})

test.each([
  ['/events', 'starts', 'select starts_at as at from public.events where id = $1'],
  ['/orders', 'due', 'select payment_due_at as at from public.orders where event_id = $1'],
  ['/orders', 'updated', 'select updated_at as at from public.orders where event_id = $1'],
  ['/attendees', 'updated', 'select updated_at as at from public.attendees where event_id = $1'],
  ['/payments', 'received', 'select received_at as at from public.payments where event_id = $1'],
  [
    '/notifications',
    'created',
    "select created_at as at from public.notifications where type = 'payment.recorded' and data ->> 'event_id' = $1::uuid::text",
  ],
  [
    '/audit-entries',
    'created',
    'select a.created_at as at from public.audit_entries a join public.payments p on p.id = a.object_id where p.event_id = $1',
  ],
])('%s: %s_after includes its moment, and %s_before does not', async (path, of, sql) => {
  const { event, send } = await createOrganiser()
  const { orderId } = await event.payer()
  await send('POST', `/orders/${orderId}/payments`, { amount: 900 })
  await row('update public.orders set payment_due_at = $2 where id = $1 returning id', [
    orderId,
    '2040-05-01T12:00:00Z',
  ])
  const { at } = await row<{ at: string }>(
    `select to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from (${sql}) t`,
    [event.id],
  )
  const declared = filters.filter(({ name, field }) => name === operationAt(path) && field.startsWith(`${of}_`))
  const found = async (query: string) => (await send('GET', `${path}?${query}`)).body.data.length
  await expect.poll(() => found(`${of}_after=${at}`)).toBeGreaterThan(0)
  for (const { field } of declared.filter(({ field }) => field.endsWith('_before'))) {
    const all = await found(`${field}=9000-01-01T00:00:00Z`)
    expect([all, await found(`${field}=${at}`)]).toEqual([all, all - 1])
  }
})

const operationAt = (path: string) => operations.find((o) => o.method === 'GET' && o.path === path)?.name

test.each([
  ['list_orders', 'updated_since', 'updated_after'],
  ['list_attendees', 'updated_since', 'updated_after'],
  ['list_notifications', 'created_since', 'created_after'],
  ['export_orders', 'updated_since', 'updated_after'],
  ['redeliver_webhooks', 'since', 'updated_after'],
  ['redeliver_webhooks', 'until', 'created_before'],
])('%s refuses %s, and says that it is %s, over REST and MCP', async (name, former, now) => {
  const { organisation, event, send } = await createOrganiser()
  const { method = '', path = '' } = operations.find((operation) => operation.name === name) ?? {}
  const time = '2027-05-01T12:00:00Z'
  const args = path.includes('{webhook_endpoint_id}') ? { webhook_endpoint_id: event.id } : {}
  const at = path.replace('{webhook_endpoint_id}', event.id)
  const answer =
    method === 'GET' ? await send('GET', `${at}?${former}=${time}`) : await send(method, at, { [former]: time })
  const refusal = expect.objectContaining({
    code: 'validation_failed',
    param: former,
    message: expect.stringContaining('is not a known field'),
    hint: expect.stringContaining(`Send ${now} in place of ${former}.`),
  })
  expect([answer.status, answer.body.error]).toEqual([422, refusal])
  const mcp = await connectV1(await organisation.key())
  expect(await mcp.refusal(name, { ...args, [former]: time })).toEqual(refusal)
})

test('a field that is unknown, and never was a filter here, has no such hint', async () => {
  const { send } = await createOrganiser()
  const { body } = await send('GET', '/events?updated_since=2027-05-01T12:00:00Z')
  expect(body.error.hint).toBe('Correct the named fields. Nothing was changed.')
})
