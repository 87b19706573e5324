// Registrations with money: tickets to be paid, promo codes, groups in one order, and what cancelling does to totals.

import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

async function boxOffice({ price = 4900, currency = 'EUR' } = {}) {
  const { event, send } = await createOrganiser()
  await edit('events', event.id, 'currency = $2', [currency])
  const ticketTypeId = await event.ticketType({ price })
  const register = (body: object, headers = {}) => send('POST', `/events/${event.id}/registrations`, body, headers)
  return {
    event,
    ticketTypeId,
    send,
    register,
    invoice: (body: object = {}) =>
      register({
        ticket_type_id: ticketTypeId,
        name: 'Mary Jackson',
        email: 'mary@example.com',
        payment_method: 'invoice',
        ...body,
      }),
    pay: (orderId: string, amount: number) => send('POST', `/orders/${orderId}/payments`, { amount }),
    promoCode: async (body: object = {}) =>
      (await send('POST', `/events/${event.id}/promo-codes`, { code: `P-${randomUUID()}`, percent_off: 20, ...body }))
        .body.data,
    limit: (assignments: string) => edit('ticket_types', ticketTypeId, `${assignments}`),
  }
}

const refusing = once(boxOffice)

const guests = (n: number) => Array.from({ length: n }, (_, i) => ({ name: `Guest ${i}`, email: `g${i}@example.com` }))

describe('a registration by invoice', () => {
  test('of a free ticket has nothing to pay and is completed at once', async () => {
    const { event, invoice } = await boxOffice()
    expect((await invoice({ ticket_type_id: event.ticketTypeId })).body.data).toMatchObject({
      status: 'completed',
      payment_status: 'not_required',
      payment_method: 'invoice',
      total: 0,
      attendees: [{ status: 'active', ticket_email: { status: 'queued' } }],
    })
  })

  test('without a payment method costs nothing, whatever the price', async () => {
    const { ticketTypeId, register } = await boxOffice()
    const { body } = await register({ ticket_type_id: ticketTypeId, name: 'Mary', email: 'mary@example.com' })
    expect(body.data).toMatchObject({
      status: 'completed',
      payment_method: null,
      total: 0,
      attendees: [{ status: 'active', price: 0, currency: 'EUR' }],
    })
  })

  test('keeps the price it was made at', async () => {
    const { send, invoice, limit } = await boxOffice()
    const { id } = (await invoice()).body.data
    await limit('price = 9900')
    expect((await send('GET', `/orders/${id}`)).body.data).toMatchObject({ total: 4900, attendees: [{ price: 4900 }] })
  })

  // 0, 2 and 3 decimals: an amount is minor units in all of them.
  test.each([
    ['JPY', 5001, 15, 750, 4251],
    ['EUR', 4999, 12.5, 625, 4374],
    ['KWD', 12345, 33.33, 4115, 8230],
  ])(
    'in %s of %i less %f %% has a discount of %i and costs %i',
    async (currency, price, percentOff, discount, total) => {
      const { invoice, promoCode } = await boxOffice({ price, currency })
      const { code } = await promoCode({ percent_off: percentOff })
      expect((await invoice({ promo_code: code })).body.data).toMatchObject({
        currency,
        subtotal: price,
        discount_total: discount,
        total,
        attendees: [{ price, discount, currency }],
      })
    },
  )
})

describe('a promo code', () => {
  test('takes its percentage off each ticket, half up, whatever its case, and is counted in tickets', async () => {
    const { ticketTypeId, send, register, promoCode } = await boxOffice({ price: 333 })
    const promo = await promoCode({ code: 'SPRING-50', percent_off: 50 })
    const { body } = await register({
      ticket_type_id: ticketTypeId,
      payment_method: 'invoice',
      promo_code: 'spring-50',
      attendees: guests(3),
    })
    // 166.5 is 167 on each of three; 50 % of the sum would have been 500 (499.5).
    expect(body.data).toMatchObject({
      promo_code: 'SPRING-50',
      subtotal: 999,
      discount_total: 501,
      total: 498,
      attendees: [{ discount: 167 }, { discount: 167 }, { discount: 167 }],
    })
    expect((await send('GET', `/promo-codes/${promo.id}`)).body.data.times_redeemed).toBe(3)
  })

  test('for some ticket types is used by those and leaves the others at their price', async () => {
    const { event, ticketTypeId, send, register, promoCode } = await boxOffice()
    const other = await event.ticketType({ price: 1000 })
    const promo = await promoCode({ ticket_type_ids: [other], percent_off: 10 })
    const { body } = await register({
      ticket_type_id: ticketTypeId,
      payment_method: 'invoice',
      promo_code: promo.code,
      attendees: [...guests(1), { ...guests(1)[0], ticket_type_id: other }],
    })
    expect(body.data).toMatchObject({ subtotal: 5900, discount_total: 100 })
    expect(body.data.attendees.map((a: { discount: number }) => a.discount)).toEqual([0, 100])
    expect((await send('GET', `/promo-codes/${promo.id}`)).body.data.times_redeemed).toBe(1)
  })

  test('of an amount takes it off the order, spread over the tickets it is for, and is counted in tickets', async () => {
    const { event, ticketTypeId, send, register, promoCode } = await boxOffice({ price: 1000 })
    const [dear, other] = [await event.ticketType({ price: 2000 }), await event.ticketType({ price: 500 })]
    const promo = await promoCode({ percent_off: undefined, amount_off: 1001, ticket_type_ids: [ticketTypeId, dear] })
    const [guest] = guests(1)
    const { body } = await register({
      ticket_type_id: ticketTypeId,
      payment_method: 'invoice',
      promo_code: promo.code,
      attendees: [guest, { ...guest, ticket_type_id: other }, guest, { ...guest, ticket_type_id: dear }],
    })
    // Of 4000 that it is for: 250.25, 250.25 and 500.5, which has the largest remainder.
    expect(body.data).toMatchObject({ subtotal: 4500, discount_total: 1001, total: 3499 })
    expect(body.data.attendees.map((a: { discount: number }) => a.discount)).toEqual([250, 0, 250, 501])
    expect((await send('GET', `/promo-codes/${promo.id}`)).body.data.times_redeemed).toBe(3)

    // A ticket takes its share with it, and the others keep theirs.
    await send('POST', `/attendees/${body.data.attendees[3].id}/cancel`)
    expect((await send('GET', `/orders/${body.data.id}`)).body.data).toMatchObject({
      subtotal: 2500,
      discount_total: 500,
    })
    expect((await send('GET', `/promo-codes/${promo.id}`)).body.data.times_redeemed).toBe(2)
  })

  test('that makes none of the tickets cheaper is refused', async () => {
    const { event, invoice, promoCode } = await boxOffice()
    const { code } = await promoCode({ ticket_type_ids: [event.ticketTypeId] })
    for (const ticket_type_id of [undefined, event.ticketTypeId]) {
      const { status, body } = await invoice({ promo_code: code, ...(ticket_type_id && { ticket_type_id }) })
      expect([status, body.error.code]).toEqual([409, 'promo_code_not_applicable'])
    }
  })

  test('that does not exist, or belongs to another event, is not found', async () => {
    const { invoice } = await boxOffice()
    const { code } = await (await boxOffice()).promoCode()
    for (const promo_code of ['NOSUCH', code]) {
      expect(problemOf(await invoice({ promo_code }))).toEqual([404, 'not_found', 'promo_code'])
    }
  })

  test('needs a payment method', async () => {
    const { ticketTypeId, register, promoCode } = await boxOffice()
    const { code } = await promoCode()
    const { status, body } = await register({
      ticket_type_id: ticketTypeId,
      name: 'Mary',
      email: 'm@example.com',
      promo_code: code,
    })
    expect([status, body.error.param]).toEqual([422, 'promo_code'])
    expect(body.error.message).toBe('A promo code needs a payment method.')
  })

  test('of which one use is left goes to one of many who want it', async () => {
    const { event, ticketTypeId, send, invoice, promoCode } = await boxOffice()
    const promo = await promoCode({ max_redemptions: 5 })
    const answers = await Promise.all(Array.from({ length: 12 }, () => invoice({ promo_code: promo.code })))
    expect(answers.map((a) => a.status).sort()).toEqual([...Array(5).fill(201), ...Array(7).fill(409)])
    expect((await send('GET', `/promo-codes/${promo.id}`)).body.data).toMatchObject({
      times_redeemed: 5,
      state: 'used_up',
    })
    expect(await event.sold(ticketTypeId)).toBe(5)
  })
})

describe('a group', () => {
  const office = once(boxOffice)

  test('of fifty is one order, in the order it was sent in, and the first is the buyer', async () => {
    const { event, ticketTypeId, register } = await boxOffice()
    const attendees = guests(50).map((guest, i) => ({
      ...guest,
      company: 'NASA',
      external_id: `g-${i}`,
      metadata: { i },
    }))
    const { status, body } = await register({ ticket_type_id: ticketTypeId, attendees })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ name: 'Guest 0', email: 'g0@example.com', company: 'NASA', external_id: null })
    expect(
      body.data.attendees.map(({ name, email, company, external_id, metadata }: Record<string, unknown>) => ({
        name,
        email,
        company,
        external_id,
        metadata,
      })),
    ).toEqual(attendees)
    expect(new Set(body.data.attendees.map((a: { ticket_code: string }) => a.ticket_code)).size).toBe(50)
    expect(await event.sold(ticketTypeId)).toBe(50)
  })

  test('may be bought by somebody who does not come', async () => {
    const { ticketTypeId, register } = await boxOffice()
    const { body } = await register({
      ticket_type_id: ticketTypeId,
      name: 'Katherine Johnson',
      email: 'kj@example.com',
      external_id: 'deal-7',
      metadata: { deal: 7 },
      attendees: guests(2),
    })
    expect(body.data).toMatchObject({
      name: 'Katherine Johnson',
      email: 'kj@example.com',
      company: null,
      external_id: 'deal-7',
      metadata: { deal: 7 },
      attendees: [
        { name: 'Guest 0', external_id: null, metadata: {} },
        { name: 'Guest 1', external_id: null, metadata: {} },
      ],
    })
  })

  test('has a company beside the list for the buyer, whoever that is', async () => {
    const { ticketTypeId, register } = await boxOffice()
    const attendees = guests(2).map((guest) => ({ ...guest, company: 'NASA' }))
    const companyOf = async (body: object) =>
      (await register({ ticket_type_id: ticketTypeId, attendees, ...body })).body.data.company
    expect(await companyOf({})).toBe('NASA')
    expect(await companyOf({ company: 'Acme' })).toBe('Acme')
    expect(await companyOf({ email: 'buyer@example.com', company: 'Acme' })).toBe('Acme')
    expect(await companyOf({ name: 'Buyer' })).toBeNull()
  })

  test('is of at most fifty, whoever asks', async () => {
    const { event, ticketTypeId } = await boxOffice()
    const sql = 'select api.register_attendee($1, $2, attendees => $3)'
    for (const attendees of [[], guests(51)]) {
      await expect(studio.query(sql, [event.id, ticketTypeId, JSON.stringify(attendees)])).rejects.toThrow(
        'A group must have 1 to 50 attendees.',
      )
    }
  })

  test('is registered whole or not at all', async () => {
    const { event, ticketTypeId, send, register, limit } = await boxOffice()
    await limit('quantity = 2')
    const { status, body } = await register({ ticket_type_id: ticketTypeId, attendees: guests(3) })
    expect([status, body.error.code, body.error.details]).toEqual([409, 'sold_out', { ticket_type_id: ticketTypeId }])
    expect(await event.sold(ticketTypeId)).toBe(0)
    expect((await send('GET', `/orders?event_id=${event.id}`)).body.data).toEqual([])
  })

  test.each([
    ['min_per_order = 2, max_per_order = 3', 1, 409],
    ['min_per_order = 2, max_per_order = 3', 2, 201],
    ['min_per_order = 2, max_per_order = 3', 3, 201],
    ['min_per_order = 2, max_per_order = 3', 4, 409],
    ['max_per_order = 1', 1, 201],
    ['max_per_order = 1', 2, 409],
  ])('with %s and %i tickets is answered %i', async (limits, n, expected) => {
    const { event, register } = await office()
    const ticketTypeId = await event.ticketType({ price: 4900 })
    await edit('ticket_types', ticketTypeId, `${limits}`)
    const { status, body } = await register({ ticket_type_id: ticketTypeId, attendees: guests(n) })
    expect(status).toBe(expected)
    if (expected === 409) {
      expect(body.error).toMatchObject({
        code: 'quantity_not_allowed',
        param: 'ticket_type_id',
        details: { ticket_type_id: ticketTypeId },
      })
    }
    expect(await event.sold(ticketTypeId)).toBe(expected === 201 ? n : 0)
  })

  test.each([
    [{ attendees: [] }, ['attendees']],
    [{ attendees: guests(51) }, ['attendees']],
    [{ attendees: guests(1) }, ['attendees']],
    [
      { attendees: [{ name: '', email: 'x' }, {}] },
      ['attendees.0.name', 'attendees.0.email', 'attendees.1.name', 'attendees.1.email'],
    ],
    [{ payment_method: 'barter' }, ['payment_method', 'ticket_type_id', 'name', 'email']],
  ])('that is malformed is refused with every bad field: %#', async (body, fields) => {
    const answer = await (await refusing()).register(body)
    expect(answer.status).toBe(422)
    expect(answer.body.error.details.fields.map((f: { param: string }) => f.param)).toEqual(fields)
  })

  test('names the guest whose ticket type is not one of the event', async () => {
    const { ticketTypeId, register } = await boxOffice()
    const { ticketTypeId: foreign } = await boxOffice()
    expect(
      problemOf(
        await register({
          ticket_type_id: ticketTypeId,
          attendees: [guests(1)[0], { ...guests(1)[0], ticket_type_id: foreign }],
        }),
      ),
    ).toEqual([404, 'not_found', 'attendees.1.ticket_type_id'])
  })

  test('whose external_id is taken is refused', async () => {
    const { ticketTypeId, register } = await boxOffice()
    const attendees = guests(2).map((guest) => ({ ...guest, external_id: 'same' }))
    expect(problemOf(await register({ ticket_type_id: ticketTypeId, attendees }))).toEqual([
      409,
      'already_exists',
      'external_id',
    ])
  })
})

test('a single registration carries the external_id and metadata on the order and its attendee', async () => {
  const { send, invoice } = await boxOffice()
  const { id } = (await invoice({ external_id: 'crm-1', metadata: { vip: true } })).body.data
  for (const path of ['/orders', '/attendees']) {
    const { data } = (await send('GET', `${path}?external_id=crm-1`)).body
    expect(data).toMatchObject([{ external_id: 'crm-1', metadata: { vip: true } }])
  }
  expect((await send('GET', `/orders/${id}`)).body.data.attendees).toHaveLength(1)
})

describe('cancelling', () => {
  test('one ticket takes its price off what is due, and gives back its place and its use of the code', async () => {
    const { event, ticketTypeId, send, register, promoCode, pay } = await boxOffice()
    const promo = await promoCode({ percent_off: 10 })
    const { id, attendees } = (
      await register({
        ticket_type_id: ticketTypeId,
        payment_method: 'invoice',
        promo_code: promo.code,
        attendees: guests(3),
      })
    ).body.data
    const { effect } = (await send('POST', `/attendees/${attendees[0].id}/cancel`)).body
    expect(effect).toMatchObject({ dry_run: false, orders: 1, attendees: 1, emails: 0, refund_due: 0 })
    expect((await send('GET', `/orders/${id}`)).body.data).toMatchObject({
      status: 'pending',
      subtotal: 9800,
      discount_total: 980,
      amount_due: 8820,
    })
    expect((await send('GET', `/promo-codes/${promo.id}`)).body.data.times_redeemed).toBe(2)
    expect(await event.sold(ticketTypeId)).toBe(2)
    expect((await pay(id, 8820)).body.data.status).toBe('completed')
  })
})

describe('in Studio', () => {
  test('tickets of one statement share an amount off, and one that is added later takes what is left of it', async () => {
    const { event, ticketTypeId, send, promoCode } = await boxOffice({ price: 1000 })
    const promo = await promoCode({ percent_off: undefined, amount_off: 2500 })
    const order = await row<{ id: string }>(
      `insert into public.orders (event_id, name, email, payment_method, promo_code)
       values ($1, 'Mary', 'mary@example.com', 'invoice', $2) returning id`,
      [event.id, promo.code],
    )
    const add = async (n: number) =>
      studio.query(
        `insert into public.attendees (order_id, ticket_type_id, name, email)
         select $1, $2, 'Guest ' || n, 'guest@example.com' from generate_series(1, $3) n`,
        [order.id, ticketTypeId, n],
      )
    const standing = async () => {
      const { discount_total, attendees } = (await send('GET', `/orders/${order.id}`)).body.data
      const those = attendees.filter((a: { status: string }) => a.status !== 'cancelled')
      return {
        discount_total,
        each: those.map((a: { discount: number }) => a.discount),
        ids: those.map((a: { id: string }) => a.id),
      }
    }
    await add(3)
    expect(await standing()).toMatchObject({ discount_total: 2500, each: [834, 833, 833] })
    // Nothing is left of it, until a ticket that had a share is cancelled.
    await add(1)
    const { each, ids } = await standing()
    expect(each).toEqual([834, 833, 833, 0])
    await edit('attendees', ids[0], "status = 'cancelled'")
    expect(await standing()).toMatchObject({ discount_total: 1666, each: [833, 833, 0] })
    await add(2)
    expect(await standing()).toMatchObject({ discount_total: 2500, each: [833, 833, 0, 417, 417] })
    expect(await row('select times_redeemed from public.promo_codes where id = $1', [promo.id])).toEqual({
      times_redeemed: 5,
    })
    // Each ticket that is added to the order is notified of with the discount that it has.
    const told = await studio.query<{ discount: number }>(
      `select (n.data ->> 'discount')::int as discount from public.notifications n
       where n.type = 'attendee.created' and n.data -> 'order' ->> 'id' = $1 order by n.id`,
      [order.id],
    )
    expect(told.rows.map(({ discount }) => discount)).toEqual([0, 417, 417])
    // What was registered keeps its discount when the code changes; the next ticket takes no more than is left of the new amount.
    await send('PATCH', `/promo-codes/${promo.id}`, { amount_off: 2000 })
    await add(1)
    expect(await standing()).toMatchObject({ discount_total: 2500, each: [833, 833, 0, 417, 417, 0] })
  })

  test('tickets added to one order at the same moment take no more than its amount off', async () => {
    const { event, ticketTypeId, send, promoCode } = await boxOffice({ price: 1000 })
    const { code } = await promoCode({ percent_off: undefined, amount_off: 1500 })
    const { id } = await row<{ id: string }>(
      `insert into public.orders (event_id, name, email, payment_method, promo_code)
       values ($1, 'Mary', 'mary@example.com', 'invoice', $2) returning id`,
      [event.id, code],
    )
    const add = () =>
      studio.query(
        `insert into public.attendees (order_id, ticket_type_id, name, email)
         select $1, $2, 'Guest ' || n, 'guest@example.com' from generate_series(1, 2) n`,
        [id, ticketTypeId],
      )
    await Promise.all([add(), add(), add(), add()])
    expect((await send('GET', `/orders/${id}`)).body.data).toMatchObject({ subtotal: 8000, discount_total: 1500 })
  })

  test('a paid order takes no more tickets that cost something, and free ones still', async () => {
    const { event, ticketTypeId, invoice, pay } = await boxOffice()
    const { id } = (await invoice()).body.data
    await pay(id, 4900)
    const add = (of: string) =>
      row(
        `insert into public.attendees (order_id, ticket_type_id, name, email)
         values ($1, $2, 'Mary', 'mary@example.com') returning status`,
        [id, of],
      )
    await expect(add(ticketTypeId)).rejects.toThrow('A completed order takes no more paid tickets.')
    expect(await add(event.ticketTypeId)).toEqual({ status: 'active' })
  })
})
