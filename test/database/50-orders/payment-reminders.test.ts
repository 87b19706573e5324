// Reminders of payments by hand: whom they reach, how often, and that nobody is reminded of what was paid a moment ago. Other tests share
// the database, so what the courier does for all orders is asked here of one.

import { expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { addOrder, edit, pay, read } from '../../support/studio.ts'
import { meanwhile } from '../meanwhile.ts'

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const overRest = (send: ReturnType<typeof rest>) => async (id: string) => {
  const { status, body } = await send('POST', `/orders/${id}/payment-reminder`)
  return status < 300 ? null : body.error
}
const inStudio = async (id: string) => {
  const { mailed } = await row<{ mailed: string }>('select public.send_payment_reminder($1) as mailed', [id]).catch(
    async (error) => ({ mailed: await refusalOf(Promise.reject(error)) }),
  )
  return mailed === 'buyer@example.com' ? null : mailed
}

const unpaid = (event: TestEvent, options = {}) => addOrder(event, { subtotal: 3000, ...options })

/** Of the reminders of an order, those that would go out now. */
const toSend = async (id: string) =>
  (
    await row<{ count: number }>(
      `select count(*)::int from public.emails e
       where e.order_id = $1 and e.kind = 'payment_reminder' and not private.is_obsolete(e)`,
      [id],
    )
  ).count

test('the buyer is reminded now, with a deadline or without, and of a payment that was voided', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key('orders:read', 'orders:write'))
  const [open, dated, voided] = [await unpaid(event), await unpaid(event), await unpaid(event, { paid: 3000 })]
  await edit('orders', dated.id, 'payment_due_at = $2', [inDays(10)])
  await studio.query(
    'insert into public.payment_voids (payment_id) select p.id from public.payments p where p.order_id = $1',
    [voided.id],
  )
  for (const { id } of [open, dated, voided]) {
    const tried = await send('POST', `/orders/${id}/payment-reminder`, { dry_run: true })
    expect([tried.status, tried.body.data.payment_reminded_at, await toSend(id)]).toEqual([200, null, 0])
    const done = await send('POST', `/orders/${id}/payment-reminder`)
    expect(done.body).toMatchObject({
      data: { id, payment_reminded_at: expect.any(String) },
      effect: { dry_run: false, orders: 1, emails: 1, told: 1, not_told: [] },
    })
    expect(tried.body.effect).toEqual({ ...done.body.effect, dry_run: true })
    expect(await toSend(id)).toBe(1)
  }
})

test('once a day at most, whoever reminds, and the refusal says when again', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const remind = overRest(rest(await organisation.key('orders:write')))
  const [byHand, byUsher] = [await unpaid(event), await unpaid(event)]
  await edit('orders', byUsher.id, 'payment_due_at = $2', [inDays(2)])
  await studio.query('select private.remind_of_payments($1)', [[byUsher.id]])
  expect(await inStudio(byHand.id)).toBeNull()
  for (const { id } of [byHand, byUsher]) {
    const { next_reminder_at } = await row<{ next_reminder_at: string }>(
      `select private.rfc3339(max(created_at) + interval '1 day') as next_reminder_at
       from public.emails where order_id = $1 and kind = 'payment_reminder'`,
      [id],
    )
    const refusal = await remind(id)
    expect(refusal).toMatchObject({ code: 'reminded_recently', details: { next_reminder_at } })
    expect(refusal.hint).toContain(next_reminder_at)
    expect(await inStudio(id)).toMatchObject({ code: 'reminded_recently' })
    // A deadline that was moved since does not change that.
    await edit('orders', id, 'payment_due_at = $2', [inDays(9)])
    expect(await remind(id)).toMatchObject({ code: 'reminded_recently' })

    await studio.query("update public.emails set created_at = created_at - interval '1 day' where order_id = $1", [id])
    expect(await remind(id)).toBeNull()
  }
  // One that did not arrive is none.
  await studio.query(
    "update public.emails set status = 'bounced', next_attempt_at = null where order_id = $1 and kind = 'payment_reminder'",
    [byHand.id],
  )
  expect(await remind(byHand.id)).toBeNull()
})

test("a reminder by hand stands for the courier's own of the next day, and for no other", async () => {
  const event = await (await createOrganisation()).event()
  const [near, far] = [await unpaid(event), await unpaid(event)]
  await edit('orders', near.id, 'payment_due_at = $2', [inDays(3.5)])
  await edit('orders', far.id, 'payment_due_at = $2', [inDays(30)])
  for (const { id } of [near, far]) expect(await inStudio(id)).toBeNull()
  expect(await read('orders', near.id, 'payment_remind_at')).toEqual({ payment_remind_at: null })
  expect(await read('orders', far.id, 'payment_due_at - payment_remind_at as lead')).toMatchObject({
    lead: { days: 3 },
  })
  // The deadline comes nearer: the courier would remind at once, and waits for a day to pass.
  await edit('orders', far.id, 'payment_due_at = $2', [inDays(2)])
  expect(
    await read(
      'orders',
      far.id,
      "payment_remind_at - interval '1 day' = (select max(e.created_at) from public.emails e where e.order_id = orders.id and e.kind = 'payment_reminder') as waits",
    ),
  ).toEqual({ waits: true })
})

test('nobody is reminded of what is not to be paid, or where no e-mail is wanted', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const remind = overRest(rest(await organisation.key('orders:write')))
  const overdue = await unpaid(event)
  const expired = await unpaid(event)
  const cancelled = await unpaid(event)
  const erased = await unpaid(event)
  await edit('orders', cancelled.id, "status = 'cancelled'")
  for (const { id } of [overdue, expired]) await edit('orders', id, 'payment_due_at = now()')
  await studio.query('select private.expire_orders($1)', [[expired.id]])
  await edit('attendees', erased.attendeeIds[0] as string, "name = 'Buyer', email = 'buyer@example.com'")
  await studio.query('select public.erase_attendee($1)', [erased.attendeeIds[0]])
  const refusals = {
    nothing_due: [(await unpaid(event, { paid: 3000 })).id, (await addOrder(event)).id],
    order_cancelled: [cancelled.id],
    order_expired: [overdue.id, expired.id],
    buyer_not_mailed: [(await unpaid(event, { sendEmail: false })).id, erased.id],
  }
  for (const [code, ids] of Object.entries(refusals)) {
    for (const id of ids) {
      expect(await remind(id)).toMatchObject({ code })
      expect(await inStudio(id)).toMatchObject({ code })
      expect(await toSend(id)).toBe(0)
    }
  }
  const stranger = overRest(rest(await (await createOrganisation()).key('orders:write')))
  expect(await stranger(overdue.id)).toMatchObject({ code: 'not_found' })
})

test('a payment of the same moment is waited for, and a reminder that was overtaken does not go out', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const remind = overRest(rest(await organisation.key('orders:write')))
  const [first, second] = [await unpaid(event), await unpaid(event)]
  const refusal = await meanwhile(
    (payer) => pay(first.id, 3000, payer),
    () => remind(first.id),
  )
  expect(refusal).toMatchObject({ code: 'nothing_due' })

  expect(await remind(second.id)).toBeNull()
  expect(await toSend(second.id)).toBe(1)
  await pay(second.id, 3000)
  expect(await toSend(second.id)).toBe(0)
})

test('twenty at once make one e-mail, and under one key one answer', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key('orders:write'))
  const { id } = await unpaid(event)
  const once = { 'Idempotency-Key': 'remind-them' }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => send('POST', `/orders/${id}/payment-reminder`, {}, i < 5 ? once : {})),
  )
  const done = answers.filter(({ status }) => status === 200)
  expect(answers.filter(({ body }) => body.error?.code === 'reminded_recently')).toHaveLength(20 - done.length)
  expect(new Set(done.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  expect(await toSend(id)).toBe(1)
})

test('all who have something to pay are reminded in one call, and it says who was not and why', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key('orders:write'))
  const remind = async (body = {}) => {
    const { status, body: answer } = await send('POST', `/events/${event.id}/payment-reminders`, body)
    return status < 300 ? answer : answer.error
  }
  const [late, early, reminded] = [await unpaid(event), await unpaid(event, { paid: 1000 }), await unpaid(event)]
  await edit('orders', late.id, 'payment_due_at = $2', [inDays(20)])
  await edit('orders', early.id, 'payment_due_at = $2', [inDays(5)])
  expect(await inStudio(reminded.id)).toBeNull()
  const silent = await unpaid(event)
  await edit('orders', silent.id, 'send_email = false')
  await unpaid(event, { paid: 3000 })
  const elsewhere = await unpaid(await organisation.event())

  const expected = {
    object: 'payment_reminders',
    event_id: event.id,
    reminded: 2,
    not_reminded: 2,
    remaining: 0,
    results: [
      { order_id: early.id, amount_due: 2000, currency: 'EUR', result: 'reminded', code: null, next_reminder_at: null },
      { order_id: late.id, amount_due: 3000, result: 'reminded', code: null },
      {
        order_id: reminded.id,
        result: 'not_reminded',
        code: 'reminded_recently',
        next_reminder_at: expect.any(String),
      },
      { order_id: silent.id, result: 'not_reminded', code: 'buyer_not_mailed', next_reminder_at: null },
    ],
  }
  const effect = {
    ...{ dry_run: false, orders: 2, emails: 2, told: 2, currency: 'EUR' },
    not_told: [
      { reason: 'buyer_not_mailed', count: 1 },
      { reason: 'reminded_recently', count: 1 },
    ],
  }
  expect(await remind({ dry_run: true })).toMatchObject({ data: expected, effect: { ...effect, dry_run: true } })
  expect(await Promise.all([late.id, early.id].map(toSend))).toEqual([0, 0])
  expect(await remind()).toMatchObject({ data: expected, effect })
  expect(await Promise.all([late.id, early.id, reminded.id, silent.id].map(toSend))).toEqual([1, 1, 1, 0])

  expect(await remind()).toMatchObject({ data: { reminded: 0, not_reminded: 4 } })
  const open = await unpaid(event)
  expect(await remind({ order_ids: [open.id, late.id] })).toMatchObject({
    data: {
      reminded: 1,
      not_reminded: 1,
      results: [
        { order_id: open.id, result: 'reminded' },
        { order_id: late.id, code: 'reminded_recently' },
      ],
    },
  })
  for (const id of [elsewhere.id, (await unpaid(await (await createOrganisation()).event())).id]) {
    expect(await remind({ order_ids: [open.id, id] })).toMatchObject({ code: 'not_found', param: 'order_ids' })
  }
})

test('a payment of this moment is seen before all are reminded', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key('orders:write'))
  const [paid, open] = [await unpaid(event), await unpaid(event)]
  const { body } = await meanwhile(
    (payer) => pay(paid.id, 3000, payer),
    () => send('POST', `/events/${event.id}/payment-reminders`),
  )
  expect(body.data).toMatchObject({ reminded: 1, results: [{ order_id: open.id }] })
  expect([await toSend(paid.id), await toSend(open.id)]).toEqual([0, 1])
})
