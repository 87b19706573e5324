// What a write is warned of: what was done all the same, and probably not meant. One place, over REST and MCP, alone and in a batch.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

async function arrange() {
  const { organisation, event, key, send } = await createOrganiser()
  /** The codes of the warnings of a write, which was carried out. */
  const warned = async (method: string, path: string, body: object, as = send): Promise<string[]> => {
    const answer = await as(method, path, body)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    const { warnings } = answer.body as { warnings?: { code: string; message: string }[] }
    expect(warnings).not.toEqual([])
    for (const { message } of warnings ?? []) expect(message).toMatch(/^[A-Za-z0-9].{20,}\.$/)
    return (warnings ?? []).map(({ code }) => code)
  }
  return { organisation, event, key, send, warned }
}

test.each([
  ['EUR', 299, ['price_low']],
  ['EUR', 999, ['price_low']],
  ['EUR', 1000, []],
  ['EUR', 0, []],
  ['JPY', 9, ['price_low']],
  ['JPY', 299, []],
  ['KWD', 9999, ['price_low']],
  ['KWD', 10_000, []],
])('in %s, a first price of %i minor units: %j', async (currency, price, expected) => {
  const { organisation, warned, send } = await arrange()
  const draft = await organisation.event({ status: 'draft' })
  await send('PATCH', `/events/${draft.id}`, { currency })
  const path = `/events/${draft.id}/ticket-types`
  expect(await warned('POST', path, { name: 'Seat', price })).toEqual(expected)
})

test('a low price is warned of while no other says what is usual, and says what to send', async () => {
  const { event, send, warned } = await arrange()
  const path = `/events/${event.id}/ticket-types`
  const { body } = await send('POST', path, { name: 'VIP', price: 299 })
  expect(body.warnings).toEqual([
    {
      code: 'price_low',
      message: 'The price is EUR 2.99 because prices are in minor units. For EUR 299.00, send 29900.',
    },
  ])
  const vip = `/ticket-types/${body.data.id}`
  expect(await warned('PATCH', vip, { name: 'Very important' })).toEqual([])
  expect(await warned('PATCH', vip, { price: 350 })).toEqual(['price_low'])
  await send('PATCH', vip, { price: 29_900 })
  expect(await warned('POST', path, { name: 'Cloakroom', price: 200 })).toEqual([])
})

test('a percentage below 1 is warned of', async () => {
  const { event, send, warned } = await arrange()
  const path = `/events/${event.id}/promo-codes`
  const { body } = await send('POST', path, { code: 'QUARTER', percent_off: 0.25 })
  expect(body.warnings).toEqual([
    { code: 'percent_off_low', message: 'The code takes off 0.25 percent. To take off a quarter, send 25.' },
  ])
  expect(await warned('PATCH', `/promo-codes/${body.data.id}`, { max_redemptions: 5 })).toEqual([])
  expect(await warned('PATCH', `/promo-codes/${body.data.id}`, { percent_off: 0.5 })).toEqual(['percent_off_low'])
  expect(await warned('POST', path, { code: 'ONE', percent_off: 1 })).toEqual([])
  expect(await warned('POST', path, { code: 'OFF', amount_off: 1 })).toEqual([])
})

test('more capacity is warned of while a ticket type stays sold out', async () => {
  const { organisation, warned } = await arrange()
  const event = await organisation.event({ capacity: 1, quantity: 1 })
  await event.guest()
  const path = `/events/${event.id}`
  expect(await warned('PATCH', path, { capacity: 5, dry_run: true })).toEqual(['ticket_type_sold_out'])
  expect(await warned('PATCH', path, { capacity: 5 })).toEqual(['ticket_type_sold_out'])
  expect(await warned('PATCH', path, { capacity: null })).toEqual(['ticket_type_sold_out'])
  expect(await warned('PATCH', path, { capacity: 5 })).toEqual([])
  expect(await warned('PATCH', path, { name: 'Another' })).toEqual([])
  await warned('PATCH', `/ticket-types/${event.ticketTypeId}`, { quantity: 2 })
  expect(await warned('PATCH', path, { capacity: 6 })).toEqual([])
})

test('an offset that the zone does not have on that day is warned of, wherever a time of an event is written', async () => {
  const { event, send, warned } = await arrange()
  const winter = (offset: string) => `2031-11-05T19:00:00${offset}`
  const { body } = await send('POST', '/events', {
    name: 'Gala',
    timezone: 'Europe/Berlin',
    starts_at: winter('+02:00'),
  })
  expect(body.warnings).toEqual([
    {
      code: 'offset_not_of_zone',
      message: `starts_at was sent as ${winter('+02:00')}, which is 2031-11-05 18:00 in Europe/Berlin, the time zone of the event.`,
    },
  ])
  // Without a zone the event has that of UTC.
  expect(await warned('POST', '/events', { name: 'Gala', starts_at: winter('+01:00') })).toEqual(['offset_not_of_zone'])
  for (const offset of ['+01:00', 'Z', '+00:00', '-00:00', '.250+01:00']) {
    const fields = { starts_at: winter(offset), ends_at: '2031-11-05T23:30+01:00' }
    expect(await warned('POST', '/events', { name: 'Gala', timezone: 'Europe/Berlin', ...fields }), offset).toEqual([])
  }
  const summer = '2031-07-05T19:00:00+01:00'
  expect(await warned('PATCH', `/events/${body.data.id}`, { ends_at: summer, starts_at: null })).toEqual([
    'offset_not_of_zone',
  ])
  // The zone that the event then has.
  expect(await warned('PATCH', `/events/${body.data.id}`, { ends_at: summer, timezone: 'Europe/London' })).toEqual([])

  const below = `/events/${event.id}`
  const made = [
    [`${below}/ticket-types`, 'ticket-types', 'sales_end_at', { name: 'Early' }],
    [`${below}/promo-codes`, 'promo-codes', 'valid_until', { code: 'SUMMER', percent_off: 10 }],
    [`${below}/check-in-points`, 'check-in-points', 'closes_at', { name: 'Gate' }],
  ] as const
  for (const [path, kind, field, fields] of made) {
    const created = await send('POST', path, { ...fields, [field]: summer })
    expect(created.body.warnings, path).toMatchObject([{ code: 'offset_not_of_zone' }])
    expect(await warned('PATCH', `/${kind}/${created.body.data.id}`, { [field]: winter('+02:00') })).toEqual([
      'offset_not_of_zone',
    ])
    expect(await warned('PATCH', `/${kind}/${created.body.data.id}`, { [field]: winter('+01:00') })).toEqual([])
  }
})

test('a payment whose reference was seen before is warned of, and named by its order', async () => {
  const { organisation, event, send, warned } = await arrange()
  const [first, second] = [await event.payer(), await event.payer()]
  const pay = (orderId: string, external_reference?: string) =>
    [`/orders/${orderId}/payments`, { amount: 100, external_reference }] as const
  expect(await warned('POST', ...pay(first.orderId))).toEqual([])
  expect(await warned('POST', ...pay(first.orderId))).toEqual([])
  expect(await warned('POST', ...pay(first.orderId, 'BANK-1'))).toEqual([])
  expect((await send('POST', ...pay(first.orderId, 'BANK-1'))).body.warnings).toEqual([
    { code: 'reference_repeated', message: 'Another payment of this order has the same external_reference.' },
  ])
  const { reference } = (await send('GET', `/orders/${first.orderId}`)).body.data
  expect((await send('POST', ...pay(second.orderId, 'BANK-1'))).body.warnings).toEqual([
    { code: 'reference_repeated', message: `A payment of order ${reference} has the same external_reference.` },
  ])
  // Neither what was voided counts, nor another organisation.
  const { body } = await send('POST', ...pay(second.orderId, 'BANK-2'))
  const payment = body.data.payments.find((p: { external_reference: string }) => p.external_reference === 'BANK-2')
  await send('POST', `/payments/${payment.id}/void`)
  expect(await warned('POST', ...pay(second.orderId, 'BANK-2'))).toEqual([])
  const other = await createOrganisation()
  const { orderId } = await (await other.event()).payer()
  expect(await warned('POST', ...pay(orderId, 'BANK-1'), rest(await other.key()))).toEqual([])
  expect(organisation.id).not.toBe(other.id)
})

test('a refund whose reference another refund has is warned of, and one of a payment is its own', async () => {
  const { organisation, event, send, warned } = await arrange()
  const cancelled = async () => {
    const { orderId } = await event.payer()
    await send('POST', `/orders/${orderId}/payments`, { amount: 4900, external_reference: `CN-1/${orderId}` })
    const { reference } = (await send('POST', `/orders/${orderId}/cancel`)).body.data
    return { orderId, reference }
  }
  const [first, second] = [await cancelled(), await cancelled()]
  const refund = (orderId: string, external_reference?: string) =>
    [`/orders/${orderId}/refunds`, { amount: 100, external_reference }] as const
  expect(await warned('POST', ...refund(first.orderId, `CN-1/${first.orderId}`))).toEqual([])
  expect(await warned('POST', ...refund(first.orderId))).toEqual([])
  expect(await warned('POST', ...refund(first.orderId, 'CN-2'))).toEqual([])
  expect((await send('POST', ...refund(first.orderId, 'CN-2'))).body.warnings).toEqual([
    { code: 'reference_repeated', message: 'Another refund of this order has the same external_reference.' },
  ])
  expect((await send('POST', ...refund(second.orderId, 'CN-2'))).body.warnings).toEqual([
    { code: 'reference_repeated', message: `A refund of order ${first.reference} has the same external_reference.` },
  ])
  const writer = rest(await organisation.key('orders:write'))
  expect((await writer('POST', ...refund(second.orderId, `CN-1/${first.orderId}`))).body.warnings).toMatchObject([
    { message: 'A refund of another order has the same external_reference.' },
  ])
})

test.each([
  ['EUR', 4900, 49, ['amount_low']],
  ['EUR', 4900, 48, []],
  ['EUR', 4900, 4900, []],
  ['JPY', 4900, 49, []],
  ['KWD', 49_000, 490, []],
  ['KWD', 49_000, 49, ['amount_low']],
])(
  'in %s, of %i minor units that are due, a payment of %i, or a refund of it: %j',
  async (currency, price, amount, expected) => {
    const { organisation, send, warned } = await arrange()
    const event = await organisation.event({ status: 'draft' })
    await send('PATCH', `/events/${event.id}`, { currency })
    await send('POST', `/events/${event.id}/publish`)
    const { orderId } = await event.payer({ price })
    expect(await warned('POST', `/orders/${orderId}/payments`, { amount })).toEqual(expected)
    // What is left is no hundredth of itself.
    if (amount < price)
      expect(await warned('POST', `/orders/${orderId}/payments`, { amount: price - amount })).toEqual([])
    await send('POST', `/orders/${orderId}/cancel`)
    expect(await warned('POST', `/orders/${orderId}/refunds`, { amount })).toEqual(expected)
  },
)

test('a low amount says what to send, of a payment and of a refund', async () => {
  const { event, send } = await arrange()
  const { orderId } = await event.payer()
  const { body } = await send('POST', `/orders/${orderId}/payments`, { amount: 49 })
  expect(body.warnings).toEqual([
    {
      code: 'amount_low',
      message:
        'EUR 0.49 is recorded, and EUR 49.00 was due. Amounts are in minor units. If that is the amount received, void this payment and record 4900.',
    },
  ])
  await send('POST', `/orders/${orderId}/payments`, { amount: 4851 })
  await send('POST', `/orders/${orderId}/cancel`)
  const refunded = await send('POST', `/orders/${orderId}/refunds`, { amount: 49 })
  expect(refunded.body.warnings).toEqual([
    {
      code: 'amount_low',
      message:
        'EUR 0.49 is recorded, and EUR 49.00 was to be returned. Amounts are in minor units. If that is the amount returned, record another refund of 4851.',
    },
  ])
})

test('money that came before the order, or went before any came, is warned of', async () => {
  const { event, send, warned } = await arrange()
  const hours = (ago: number) => new Date(Date.now() - ago * 3_600_000).toISOString()
  const { orderId } = await event.payer()
  const pay = (amount: number, received_at?: string) =>
    warned('POST', `/orders/${orderId}/payments`, { amount, received_at })
  expect(await pay(100, hours(23))).toEqual([])
  expect(await pay(100)).toEqual([])
  const year = await send('POST', `/orders/${orderId}/payments`, { amount: 100, received_at: hours(25) })
  expect(year.body.warnings).toMatchObject([{ code: 'received_before_order' }])
  const refund = (refunded_at?: string) => warned('POST', `/orders/${orderId}/refunds`, { amount: 100, refunded_at })
  await send('POST', `/orders/${orderId}/cancel`)
  expect(await refund(hours(48))).toEqual([])
  expect(await refund(hours(50))).toEqual(['refunded_before_payment'])
  expect(await refund()).toEqual([])
})

test('a refund that makes something due again is warned of, and one of what was to be returned is not', async () => {
  const { event, send, warned } = await arrange()
  const paid = async () => {
    const { orderId } = await event.payer()
    await send('POST', `/orders/${orderId}/payments`, { amount: 4900 })
    return orderId
  }
  const refunding = (orderId: string, amount: number) => [`/orders/${orderId}/refunds`, { amount }] as const
  const stands = await paid()
  const { body } = await send('POST', ...refunding(stands, 1000))
  expect([body.data.amount_due, body.warnings]).toEqual([
    1000,
    [{ code: 'due_again', message: expect.stringMatching(/^EUR 10.00 is due again and reminders will ask for it, /) }],
  ])
  const { body: more } = await send('POST', ...refunding(stands, 500))
  expect(more.warnings).toMatchObject([{ code: 'due_again', message: expect.stringMatching(/^EUR 5.00 /) }])
  const cancelled = await paid()
  await send('POST', `/orders/${cancelled}/cancel`)
  expect(await warned('POST', ...refunding(cancelled, 1000))).toEqual([])
})

test('a person who is registered twice within ten minutes is warned of, and so is a ticket with a price that is given away', async () => {
  const { organisation, event, send, warned } = await arrange()
  const priced = await event.ticketType({ price: 4900 })
  const path = `/events/${event.id}/registrations`
  const guest = (name: string, more = {}) => ({
    ticket_type_id: event.ticketTypeId,
    name,
    email: `${name}@example.com`,
    ...more,
  })
  expect(await warned('POST', path, guest('ada'))).toEqual([])
  expect(await warned('POST', path, guest('ada', { name: 'Grace' }))).toEqual([])
  expect(await warned('POST', path, guest('bob'))).toEqual([])
  expect(await warned('POST', path, guest('ADA'))).toEqual(['person_repeated'])
  const group = [guest('eve'), guest('dan'), guest('eve')]
  expect(await warned('POST', path, { attendees: group })).toEqual(['person_repeated'])
  const leary = (name: string) => guest('leary', { name })
  expect(await warned('POST', path, leary('Zo\u00eb O\u2019Leary'))).toEqual([])
  expect(await warned('POST', path, leary(" Zoe\u0308  O'Leary\u200b"))).toEqual(['person_repeated'])
  // Another event, one who was cancelled, and one of long ago are no repetition.
  const other = await organisation.event()
  expect(
    await warned('POST', `/events/${other.id}/registrations`, guest('bob', { ticket_type_id: other.ticketTypeId })),
  ).toEqual([])
  const { body } = await send('POST', path, guest('cay'))
  await send('POST', `/attendees/${body.data.attendees[0].id}/cancel`)
  expect(await warned('POST', path, guest('cay'))).toEqual([])
  await studio.query(
    `insert into public.attendees (id, order_id, ticket_type_id, name, email)
     select private.first_uuid_v7(now() - interval '11 minutes'), order_id, ticket_type_id, 'Old', 'old@example.com'
     from public.attendees where event_id = $1 and status = 'active' limit 1`,
    [event.id],
  )
  expect(await warned('POST', path, guest('old'))).toEqual([])

  expect(await warned('POST', path, guest('fay', { ticket_type_id: priced }))).toEqual(['ticket_given_away'])
  expect(await warned('POST', path, guest('gil', { ticket_type_id: priced, payment_method: 'invoice' }))).toEqual([])
  expect(await warned('POST', path, guest('fay', { ticket_type_id: priced }))).toEqual([
    'ticket_given_away',
    'person_repeated',
  ])
  const imported = (ticket_type_id: string, email: string) =>
    warned('POST', `/events/${event.id}/attendees/import`, { ticket_type_id, attendees: [{ name: 'Hal', email }] })
  expect(await imported(event.ticketTypeId, 'hal@example.com')).toEqual([])
  expect(await imported(priced, 'hal@example.com')).toEqual([])
  expect(await imported(priced, 'ian@example.com')).toEqual(['ticket_given_away'])
})

test('a check-in more than a day before the start is warned of, and let in', async () => {
  const { event, send, warned } = await arrange()
  const scan = async () => ({ event_id: event.id, code: (await event.guest()).code })
  expect(await warned('POST', '/check-ins', await scan())).toEqual([])
  const soon = new Date().toISOString()
  await edit('events', event.id, "starts_at = now() + interval '25 hours', ends_at = now() + interval '26 hours'")
  const early = await scan()
  const { body } = await send('POST', '/check-ins', early)
  expect([body.data.result, body.warnings]).toMatchObject(['accepted', [{ code: 'check_in_early' }]])
  expect((await send('POST', '/check-ins', early)).body.warnings).toBeUndefined()
  const batch = (code: string, scan_id: string) =>
    warned('POST', '/check-ins/batch', { event_id: event.id, scans: [{ scan_id, code, scanned_at: soon }] })
  expect(await batch((await event.guest()).code, 'one')).toEqual(['check_in_early'])
  expect(await batch('NONE', 'two')).toEqual([])
})

test('a replay is warned as the first call was, and calls of a batch each of their own', async () => {
  const { event, send } = await arrange()
  const priced = await event.ticketType({ price: 4900 })
  const register = (name: string, ticket_type_id: string, key: string) =>
    send(
      'POST',
      `/events/${event.id}/registrations`,
      { ticket_type_id, name, email: `${name}@example.com` },
      { 'Idempotency-Key': key },
    )
  const codes = ({ body }: { body: { warnings?: { code: string }[] } }) => body.warnings?.map(({ code }) => code)
  expect(codes(await register('first', priced, 'a'))).toEqual(['ticket_given_away'])
  const again = await register('first', priced, 'a')
  expect([again.headers.get('idempotent-replayed'), codes(again)]).toEqual(['true', ['ticket_given_away']])
  const all = await Promise.all(
    Array.from({ length: 24 }, (_, i) => register(`guest-${i}`, i % 3 === 0 ? priced : event.ticketTypeId, `b${i}`)),
  )
  expect(all.map(codes)).toEqual(all.map((_, i) => (i % 3 === 0 ? ['ticket_given_away'] : undefined)))
})

test('an address is corrected after the ticket was e-mailed to the former one', async () => {
  const { event, send, warned } = await arrange()
  const sent = async (name: string) => {
    const email = `${name}@former.example`
    const guest = { ticket_type_id: event.ticketTypeId, name, email, external_id: `${event.id}/${name}` }
    const { body } = await send('POST', `/events/${event.id}/registrations`, guest)
    await edit('attendees', body.data.attendees[0].id, "ticket_email_status = 'sent'")
    return { id: body.data.attendees[0].id as string, email }
  }
  const [ada, bob, cleo] = [await sent('Ada'), await sent('Bob'), await sent('Cleo')]
  const change = (of: { id: string }, changes: object) => warned('PATCH', `/attendees/${of.id}`, changes)

  expect(await change(ada, { company: 'Analytical', email: ada.email.toUpperCase() })).toEqual([])
  expect(await change(ada, { email: 'ada@right.example' })).toEqual(['ticket_at_former_address'])
  expect(await change(bob, { name: 'Eve', email: 'eve@right.example', reissue_ticket: true })).toEqual([])
  expect(await change(bob, { email: 'eve@righter.example' }), 'the new code has not been sent').toEqual([])

  const list = ['Cleo', 'Dan'].map((name) => ({
    external_id: `${event.id}/${name}`,
    name,
    email: `${name}@new.example`,
  }))
  const path = `/events/${event.id}/attendees/import`
  const whole = { ticket_type_id: event.ticketTypeId, attendees: list }
  expect(await warned('POST', path, { ...whole, dry_run: true })).toContain('ticket_at_former_address')
  expect(await warned('POST', path, whole)).toContain('ticket_at_former_address')
  expect(await warned('POST', path, whole)).toEqual([])
  expect((await send('GET', `/attendees/${cleo.id}`)).body.data.ticket_email.status).toBe('sent')
})

test('an event is completed while people wait for it, or hold an offer', async () => {
  const { organisation, send, warned } = await arrange()
  const event = await organisation.event({ quantity: 1 })
  const { attendeeId } = await event.guest()
  for (const name of ['Ada', 'Bob']) {
    const person = { ticket_type_id: event.ticketTypeId, name, email: `${name}@example.com` }
    await send('POST', `/events/${event.id}/waiting-list`, person)
  }
  await send('POST', `/attendees/${attendeeId}/cancel`)
  expect(await warned('POST', `/events/${event.id}/complete`, {})).toEqual(['waiting_list_ended'])
  const quiet = await organisation.event()
  expect(await warned('POST', `/events/${quiet.id}/complete`, {})).toEqual([])
})

test('an event that moves by itself leaves its sales, codes and doors behind, and says so', async () => {
  const { event, send, warned } = await arrange()
  const path = `/events/${event.id}`
  const day = (days: number, hours = 0) => new Date(Date.UTC(2090, 0, 1 + days, hours)).toISOString()
  expect(await warned('PATCH', path, { starts_at: day(0, 9), ends_at: day(0, 18) })).toEqual([])
  const point = (
    await send('POST', `${path}/check-in-points`, { name: 'Gate', opens_at: day(0, 8), closes_at: day(0, 18) })
  ).body.data.id
  expect(await warned('PATCH', path, { name: 'Fair' })).toEqual([])
  expect(await warned('PATCH', path, { starts_at: day(0, 9) })).toEqual([])
  expect(await warned('PATCH', path, { starts_at: day(7, 9), ends_at: day(7, 18), dry_run: true })).toEqual([
    'windows_stay',
  ])
  expect(await warned('PATCH', path, { starts_at: day(7, 9), ends_at: day(7, 18) })).toEqual(['windows_stay'])
  await send('PATCH', `/check-in-points/${point}`, { opens_at: day(7, 8), closes_at: day(7, 18) })
  expect(await warned('PATCH', path, { ends_at: day(7, 17) })).toEqual([])
  expect(await warned('PATCH', path, { ends_at: day(7, 19) })).toEqual(['windows_stay'])
  // What is not used any more, or over by now, would not be moved.
  await send('PATCH', `/check-in-points/${point}`, { status: 'archived' })
  await studio.query("update public.ticket_types set sales_start_at = '2020-01-01Z' where event_id = $1", [event.id])
  expect(await warned('PATCH', path, { starts_at: day(6, 9) })).toEqual([])
  await studio.query("update public.ticket_types set sales_end_at = '2089-01-01Z' where event_id = $1", [event.id])
  expect(await warned('PATCH', path, { starts_at: day(5, 9) })).toEqual(['windows_stay'])
})

test('a time zone that is changed moves the hours of a published event, and nothing is said of a draft', async () => {
  const { event, organisation, warned } = await arrange()
  const path = `/events/${event.id}`
  expect(await warned('PATCH', path, { timezone: 'Asia/Tokyo' })).toEqual(['hours_moved'])
  expect(await warned('PATCH', path, { timezone: 'Asia/Tokyo' })).toEqual([])
  const moved = { timezone: 'Europe/Berlin', starts_at: '2091-01-01T09:00:00Z', ends_at: '2091-01-01T18:00:00Z' }
  expect(await warned('PATCH', path, moved)).toEqual([])
  const draft = await organisation.event({ status: 'draft' })
  expect(await warned('PATCH', `/events/${draft.id}`, { timezone: 'Asia/Tokyo' })).toEqual([])
})

test('somebody who is offered a place and is registered beside the offer holds two, and both ways out are named', async () => {
  const { organisation, send, warned } = await arrange()
  const event = await organisation.event({ quantity: 1 })
  const { attendeeId } = await event.guest()
  const path = `/events/${event.id}/registrations`
  const ada = { ticket_type_id: event.ticketTypeId, name: 'Ada', email: 'Ada@example.com' }
  const { id } = (await send('POST', `/events/${event.id}/waiting-list`, { ...ada, email: 'ada@example.com' })).body
    .data
  await send('POST', `/attendees/${attendeeId}/cancel`)

  const { body } = await send('POST', path, ada)
  expect(body.error).toMatchObject({ code: 'sold_out', hint: expect.stringContaining('accept_waiting_list_offer') })
  const studioHint = () =>
    studio
      .query('insert into public.registrations (event_id, ticket_type_id, name, email) values ($1, $2, $3, $4)', [
        event.id,
        event.ticketTypeId,
        ada.name,
        ada.email,
      ])
      .then(() => '')
      .catch(({ hint }) => hint)
  expect(await studioHint()).toContain('accept_offer(')
  await edit('ticket_types', event.ticketTypeId, 'quantity = null')
  await send('PATCH', `/events/${event.id}`, { capacity: 1 })
  expect((await send('POST', path, ada)).body.error).toMatchObject({
    code: 'sold_out',
    hint: expect.stringMatching(/^Raise the capacity of the event\. .*accept_waiting_list_offer/),
  })
  expect(await studioHint()).toMatch(/^Raise the capacity of the event\. .*accept_offer\(/)

  await send('PATCH', `/events/${event.id}`, { capacity: null })
  expect(await warned('POST', path, { ...ada, name: 'Grace', email: 'grace@example.com' })).toEqual([])
  expect(await warned('POST', path, ada)).toEqual(['has_offer'])
  expect(await warned('POST', `/waiting-list-entries/${id}/accept`, {})).toEqual(['person_repeated'])
})
