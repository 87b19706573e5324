// What is owed, and by when: list_orders by payment status and by deadline. What its pages cost is in test/database/list-costs.test.ts.

import { beforeAll, expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'
import { addOrder, edit, pay } from '../support/studio.ts'

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

let organisation: TestOrganisation
let send: ReturnType<typeof rest>
let event: TestEvent
let other: TestEvent
/** What was ordered, by what became of it. */
const ids: Record<string, string> = {}

const names = async (query: string) => {
  const { status, body } = await send('GET', `/orders?${query}`)
  expect([status, query]).toEqual([200, query])
  const byId = Object.fromEntries(Object.entries(ids).map(([name, id]) => [id, name]))
  return (body.data as { id: string }[]).map(({ id }) => byId[id])
}

/** To the microsecond, as the list goes by it. */
const dueOf = async (name: string) =>
  (
    await row<{ due: string }>(
      `select to_char(payment_due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as due from public.orders where id = $1`,
      [ids[name]],
    )
  ).due

beforeAll(async () => {
  organisation = await createOrganisation()
  ;[event, other] = [await organisation.event(), await organisation.event()]
  send = rest(await organisation.key())
  const order = async (name: string, due: string | null, { paid = 0, of = event } = {}) => {
    const { id } = await addOrder(of, { subtotal: 3000, ticketTypeIds: [await of.ticketType()] })
    await edit('orders', id, 'payment_due_at = $2, email = $3', [due, `${name}@example.com`])
    if (paid > 0) await pay(id, paid)
    ids[name] = id
    return id
  }
  // None is set before now: those that are over become so one after the other. In Postgres, the time of the statement.
  const over = 'now'
  await studio.query('select private.expire_orders($1)', [[await order('expired', over)]])
  // The courier leaves out what is paid in part; it took that once.
  const inPart = await order('expiredInPart', over, { paid: 1000 })
  await edit('orders', inPart, "status = 'cancelled', cancellation_reason = 'expired'")
  // Its money was booked by mistake.
  await studio.query(
    'insert into public.payment_voids (payment_id) select id from public.payments where order_id = $1',
    [await order('voided', over, { paid: 3000 })],
  )
  await order('soon', inDays(2))
  await order('late', over, { paid: 500 })
  await order('elsewhere', inDays(1), { of: other })
  await order('open', null)
  // None of these is to be paid by a deadline any more.
  await order('paid', over, { paid: 3000 })
  await edit('orders', await order('cancelled', over), "status = 'cancelled'")
})

test('who owes money is one call, by several payment statuses', async () => {
  const owing = ['open', 'elsewhere', 'late', 'soon', 'voided']
  expect(await names('payment_status=awaiting_payment,partially_paid')).toEqual(owing)
  expect(await names('payment_status=awaiting_payment&payment_status=partially_paid')).toEqual(owing)
  expect(await names('payment_status=partially_paid')).toEqual(['late'])
  expect(await names(`event_id=${event.id}&payment_status=refund_due,paid`)).toEqual(['paid', 'expiredInPart'])
})

test('what is overdue is what was not paid by its deadline, the longest first, expired or not', async () => {
  expect(await names('overdue=true')).toEqual(['expired', 'expiredInPart', 'voided', 'late'])
  expect(await names('overdue=true&status=cancelled')).toEqual(['expired', 'expiredInPart'])
  expect(await names('overdue=true&status=pending')).toEqual(['late'])
  expect(await names('overdue=true&payment_status=refund_due,partially_paid')).toEqual(['expiredInPart', 'late'])
  expect(await names(`overdue=true&event_id=${other.id}`)).toEqual([])
  const { body } = await send('GET', `/orders?overdue=true&limit=1&due_after=${await dueOf('expiredInPart')}`)
  expect(body.data).toMatchObject([
    { status: 'cancelled', cancellation_reason: 'expired', payment_status: 'refund_due', total: 3000 },
  ])
})

test('what is to be paid by a time is found by it, and by whatever else', async () => {
  expect(await names(`due_after=${inDays(0)}`)).toEqual(['elsewhere', 'soon'])
  expect(await names(`due_before=${inDays(0)}`)).toEqual(await names('overdue=true'))
  expect(await names(`due_after=${await dueOf('late')}&due_before=${inDays(1.5)}`)).toEqual(['late', 'elsewhere'])
  expect(await names(`due_before=${inDays(9)}&event_id=${event.id}&status=pending`)).toEqual(['late', 'soon'])
  for (const rest of [
    'email=LATE@example.com',
    'search=late@example',
    `updated_after=${inDays(-1)}&email=late@example.com`,
  ])
    expect(await names(`overdue=true&${rest}`), rest).toEqual(['late'])
  expect(await names('overdue=true&updated_after=2999-01-01T00:00:00Z')).toEqual([])
  const { body } = await send('GET', `/orders/${ids.soon}`)
  expect(await names(`overdue=true&reference=${body.data.reference}`)).toEqual([])
  expect(await names(`due_before=${inDays(9)}&reference=${body.data.reference}`)).toEqual(['soon'])
  // The first is included, the last is not.
  const at = body.data.payment_due_at
  expect(await names(`due_after=${at}`)).toEqual(['soon'])
  expect(await names(`due_after=${inDays(1.5)}&due_before=${at}`)).toEqual([])
})

test('pages go on by the deadline, and a cursor of another order is refused', async () => {
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await send('GET', `/orders?overdue=true&limit=1${cursor}`)
    seen.push(...body.data.map(({ id }: { id: string }) => id))
    cursor = body.has_more ? `&cursor=${body.next_cursor}` : ''
  } while (cursor !== '')
  expect(seen).toEqual([ids.expired, ids.expiredInPart, ids.voided, ids.late])

  const byDeadline = (await send('GET', '/orders?overdue=true&limit=1')).body.next_cursor
  const newestFirst = (await send('GET', '/orders?limit=1')).body.next_cursor
  for (const query of [`cursor=${byDeadline}`, `overdue=true&cursor=${newestFirst}`]) {
    const { status, body } = await send('GET', `/orders?${query}`)
    expect([status, body.error.param]).toEqual([422, 'cursor'])
  }
})

test.each([
  ['due_before=friday', 'due_before', /RFC 3339/],
  ['due_after=2027-13-01T00:00:00Z', 'due_after', /RFC 3339/],
  ['due_after=2027-05-02T00:00:00Z&due_before=2027-05-01T00:00:00Z', 'due_after', /before due_before/],
  ['due_after=2027-05-01T00:00:00Z&due_before=2027-05-01T00:00:00Z', 'due_after', /before due_before/],
  ['overdue=perhaps', 'overdue', /true/],
  ['overdue=false', 'overdue', /left out/],
  ['payment_status=', 'payment_status', /one of/],
  ['payment_status=paid,soon,late', 'payment_status', /^payment_status must be one of [^;]*, not "soon"$/],
  ['overdue=true&overdue=true', 'overdue', /twice/],
])('%s is refused', async (query, param, message) => {
  const { status, body } = await send('GET', `/orders?${query}`)
  expect(problemOf({ status, body })).toEqual(invalid(param))
  expect(body.error.message).toMatch(message)
})
