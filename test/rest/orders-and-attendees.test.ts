import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

const ids = (body: { data: { id: string }[] }) => body.data.map(({ id }) => id)

test('orders are listed with their attendees, newest first, by any of the filters', async () => {
  const { organisation, event, send } = await createOrganiser()
  const other = await organisation.event()
  const [first, second] = [await event.guest(), await other.guest()]
  await edit('orders', first.orderId, "external_id = 'crm-7', email = 'Ada@Example.com'")
  const { reference } = await row<{ reference: string }>('select reference from public.orders where id = $1', [
    first.orderId,
  ])

  const all = await send('GET', '/orders')
  expect(ids(all.body)).toEqual([second.orderId, first.orderId])
  expect(all.body.data[1].attendees).toMatchObject([{ id: first.attendeeId, name: 'Guest' }])
  for (const query of [
    `event_id=${event.id}`,
    'external_id=crm-7',
    'email=ada@example.COM',
    `reference=${reference.toLowerCase()}`,
  ]) {
    expect(ids((await send('GET', `/orders?${query}`)).body), query).toEqual([first.orderId])
  }
  expect(ids((await send('GET', '/orders?status=cancelled')).body)).toEqual([])
  expect(ids((await send('GET', '/orders?payment_status=not_required')).body)).toHaveLength(2)
  expect(ids((await send('GET', '/orders?updated_after=2999-01-01T00:00:00Z')).body)).toEqual([])
})

test('a payment is found by its reference, on however many orders it is', async () => {
  const { event, send } = await createOrganiser()
  const orders = [await event.payer(), await event.payer(), await event.payer()]
  const pay = (orderId: string, external_reference: string) =>
    send('POST', `/orders/${orderId}/payments`, { amount: 2000, external_reference })
  const found = async (query: string) => ids((await send('GET', `/orders?${query}`)).body)
  const [a = '', b = '', c = ''] = orders.map(({ orderId }) => orderId)
  await pay(a, 'BANK-1')
  await pay(c, 'BANK-1')
  await pay(c, 'BANK-1')
  await pay(b, 'bank-1')

  expect(await found('payment_reference=BANK-1')).toEqual([c, a])
  expect(await found('payment_reference=BANK-1&payment_status=paid')).toEqual([])
  const first = await send('GET', '/orders?payment_reference=BANK-1&limit=1')
  const next = `/orders?payment_reference=BANK-1&limit=1&cursor=${first.body.next_cursor}`
  expect([ids(first.body), ids((await send('GET', next)).body)]).toEqual([[c], [a]])
  await edit('orders', a, "payment_due_at = '2028-01-02Z'")
  await edit('orders', c, "payment_due_at = '2029-01-01Z'")
  expect(await found('payment_reference=BANK-1&due_before=2030-01-01T00:00:00Z')).toEqual([a, c])
  const stranger = await createOrganiser()
  expect(ids((await stranger.send('GET', '/orders?payment_reference=BANK-1')).body)).toEqual([])
})

test('a sync by updated_after finds what changed, whenever it was created', async () => {
  const { event, send } = await createOrganiser()
  const [old, other] = [await event.guest(), await event.guest()]
  const { body } = await send('GET', `/attendees/${other.attendeeId}`)
  await new Promise((resolve) => setTimeout(resolve, 5))
  await edit('attendees', old.attendeeId, "name = 'Renamed'")
  const since = new Date(Date.parse(body.data.updated_at) + 1).toISOString()
  expect(ids((await send('GET', `/attendees?updated_after=${since}`)).body)).toEqual([old.attendeeId])
})

test('walking orders and attendees by pages while they are changed neither skips nor repeats', async () => {
  const { event, send } = await createOrganiser()
  const guests = []
  for (let i = 0; i < 8; i++) guests.unshift(await event.guest())
  for (const [path, expected] of [
    ['/orders', guests.map((g) => g.orderId)],
    ['/attendees', guests.map((g) => g.attendeeId)],
  ] as const) {
    const seen: string[] = []
    let cursor = ''
    for (let page = 0; page < 8; page++) {
      const { body } = await send('GET', `${path}?limit=3${cursor && `&cursor=${cursor}`}`)
      seen.push(...ids(body))
      await event.guest()
      await studio.query("update public.attendees set name = name || '!' where event_id = $1", [event.id])
      if (!body.has_more) break
      cursor = body.next_cursor
    }
    expect(seen.filter((id) => expected.includes(id))).toEqual(expected)
    guests.length = 8
  }
})

test('whoever may read orders only learns no ticket code', async () => {
  const { organisation, event } = await createOrganiser()
  const { orderId, code } = await event.guest()
  const send = rest(await organisation.key('orders:read', 'orders:write'))
  for (const answer of [
    await send('GET', `/orders/${orderId}`),
    await send('GET', '/orders'),
    await send('POST', `/orders/${orderId}/cancel`, { dry_run: true }),
  ]) {
    expect(answer.status).toBe(200)
    expect(JSON.stringify(answer.body)).not.toContain(code)
  }
})

test('attendees are found by event, order, status, address, reference and whether they are inside', async () => {
  const { organisation, event, send } = await createOrganiser()
  const other = await organisation.event()
  const [here, elsewhere] = [await event.guest(), await other.guest()]
  await send('POST', '/check-ins', { event_id: event.id, code: here.code })
  const { reference } = await row<{ reference: string }>('select reference from public.orders where id = $1', [
    here.orderId,
  ])
  for (const query of [
    `event_id=${event.id}`,
    `order_id=${here.orderId}`,
    `ticket_type_id=${event.ticketTypeId}`,
    `reference=${reference}`,
    'checked_in=true',
  ]) {
    expect(ids((await send('GET', `/attendees?${query}`)).body), query).toEqual([here.attendeeId])
  }
  expect(ids((await send('GET', '/attendees?checked_in=false')).body)).toEqual([elsewhere.attendeeId])
  expect(ids((await send('GET', '/attendees?email=Guest@Example.com&status=active')).body)).toHaveLength(2)
  expect((await send('GET', '/attendees?checked_in=maybe')).body.error.param).toBe('checked_in')
  await edit('attendees', elsewhere.attendeeId, "ticket_email_status = 'bounced'")
  expect(ids((await send('GET', '/attendees?ticket_email_status=bounced')).body)).toEqual([elsewhere.attendeeId])
})

test('a corrected attendee keeps the ticket; a transferred one gets a new code and the old one stops working', async () => {
  const { event, send } = await createOrganiser()
  const { attendeeId, code } = await event.guest()
  const path = `/attendees/${attendeeId}`
  const corrected = await send('PATCH', path, { name: 'Mary Jackson', company: 'NASA' })
  expect(corrected.body.data).toMatchObject({ name: 'Mary Jackson', company: 'NASA', ticket_code: code, version: 2 })

  const transferred = await send('PATCH', path, {
    name: 'Ada',
    email: 'ada@example.com',
    company: null,
    reissue_ticket: true,
  })
  expect(transferred.body.data).toMatchObject({
    name: 'Ada',
    company: null,
    ticket_email: { status: 'queued' },
    version: 3,
  })
  const newCode = transferred.body.data.ticket_code
  expect(newCode).not.toBe(code)

  const scan = (scanned: string) => send('POST', '/check-ins', { event_id: event.id, code: scanned })
  expect((await scan(code)).body.error.code).toBe('not_found')
  expect((await scan(newCode)).status).toBe(200)
  const tooLate = await send('PATCH', path, { reissue_ticket: true })
  expect([tooLate.status, tooLate.body.error.code]).toEqual([409, 'ticket_not_reissuable'])
})

test('an attendee gets another ticket type at the price that they have, if it has a place', async () => {
  const { organisation, event, send } = await createOrganiser()
  const { attendeeId, code } = await event.payer({ price: 4900 })
  const vip = await event.ticketType({ quantity: 1, price: 9900, name: 'VIP' })
  const same = await event.ticketType({ price: 4900, name: 'Balcony' })
  const elsewhere = await organisation.event()
  const from = (await send('GET', `/attendees/${attendeeId}`)).body.data.ticket_type.id
  const move = (ticket_type_id: string, attendee = attendeeId) =>
    send('PATCH', `/attendees/${attendee}`, { ticket_type_id })

  const { status, body } = await move(vip)
  expect([status, body.warnings?.map(({ code }: { code: string }) => code)]).toEqual([200, ['price_kept']])
  expect(body.data).toMatchObject({ ticket_type: { id: vip, name: 'VIP' }, price: 4900, ticket_code: code, version: 2 })
  expect([await event.sold(from), await event.sold(vip)]).toEqual([0, 1])

  const other = await event.guest()
  expect((await move(vip, other.attendeeId)).body.error).toMatchObject({ code: 'sold_out', param: 'ticket_type_id' })
  expect((await move(elsewhere.ticketTypeId)).body.error).toMatchObject({ code: 'not_found', param: 'ticket_type_id' })
  expect((await move(same)).body.warnings).toBeUndefined()
  expect([await event.sold(vip), await event.sold(same)]).toEqual([0, 1])
  await edit('ticket_types', vip, "status = 'archived'")
  expect((await move(vip)).body.error.code).toBe('ticket_type_archived')
})

test('the log of the door shows every scan, newest first, also those turned away', async () => {
  const { event, send } = await createOrganiser()
  const { attendeeId, code } = await event.guest()
  for (const scanned of ['nobody', code, code]) await send('POST', '/check-ins', { event_id: event.id, code: scanned })
  const { body } = await send('GET', `/check-ins?event_id=${event.id}`)
  expect(body.data.map((c: { reason: string | null }) => c.reason)).toEqual(['already_checked_in', null, 'not_found'])
  expect((await send('GET', `/check-ins?attendee_id=${attendeeId}&result=accepted`)).body.data).toHaveLength(1)
})
