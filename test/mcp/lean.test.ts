// How much a model reads of an answer, with rows as full as organisers fill them, and what it can ask for besides.

import { beforeAll, expect, test } from 'vitest'
import { restRequestOf } from '../../scripts/support/rest-request.ts'
import { operations } from '../../src/operations/index.ts'
import { isList } from '../../src/operations/operation.ts'
import { row, studio } from '../support/database.ts'
import { connectForAll, connectV1, type McpCaller } from '../support/mcp.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { enqueued } from '../support/outbox.ts'
import { differences } from '../support/projection.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'
import { countTokens } from '../support/tokens.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are held against their declaration by the caller.
type Data = any

const lists = operations.filter((operation) => isList(operation) && operation.mcp !== false)
const tokens = (value: unknown) => countTokens(JSON.stringify(value))
const budget = 3_000
const rows = Array.from({ length: 20 }, (_, i) => i)
const words = 'An evening with readings, music and a long table in the old gasworks by the harbour. '
const notes = { dietary: 'vegetarian, no nuts', badge: 'Speaker', table: 12, hotel: true }

let organisation: TestOrganisation
let event: TestEvent
let key: string
let mcp: McpCaller

beforeAll(async () => {
  // The first count takes so long that an idle connection would be closed meanwhile.
  countTokens('')
  organisation = await createOrganisation()
  key = await organisation.key()
  const send = async (name: string, args: object): Promise<Data> => {
    const { method, path, body, headers } = restRequestOf(name, { ...args })
    const answer = await rest(key)(method, path, body, headers)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body.data
  }
  for (const n of rows) {
    await send('create_event', {
      name: `Conference of the Northern Libraries ${2027 + n}`,
      description: words.repeat(200),
      starts_at: '2027-06-12T09:00:00+02:00',
      ends_at: '2027-06-13T18:00:00+02:00',
      timezone: 'Europe/Berlin',
      venue: { name: 'Kongresszentrum am Hafen', address: 'Am Sandtorkai 12', city: 'Hamburg', country: 'DE' },
      online_url: 'https://stream.example.com/conference-of-the-northern-libraries',
      capacity: 400,
      external_id: `crm-event-${n}`,
      metadata: notes,
    })
  }
  event = await organisation.event()
  await edit('events', event.id, 'description = $2, capacity = 5000', [words.repeat(200)])
  const event_id = event.id
  const times = { opens_at: '2027-06-12T08:00:00+02:00', closes_at: '2027-06-13T20:00:00+02:00' }
  const paid = await send('create_ticket_type', { event_id, name: 'Two-day ticket with dinner', price: 29_900 })
  const closed = await send('create_ticket_type', { event_id, name: 'Workshop on Saturday', quantity: 0 })
  for (const n of rows) {
    await send('create_ticket_type', {
      event_id,
      name: `Early bird of block ${n}, with dinner`,
      description: words.repeat(20),
      price: 24_900,
      quantity: 50,
      sales_start_at: '2026-01-01T09:00:00+01:00',
      sales_end_at: '2027-01-31T23:59:00+01:00',
      metadata: notes,
    })
    await send('create_promo_code', {
      event_id,
      code: `LIBRARIANS-2027-${n}`,
      percent_off: 12.5,
      valid_from: '2026-01-01T09:00:00+01:00',
      valid_until: '2027-01-31T23:59:00+01:00',
      max_redemptions: 100,
      ticket_type_ids: [paid.id, closed.id],
    })
    await send('create_check_in_point', {
      event_id,
      name: `Gate ${n} at the harbour`,
      ...times,
      ticket_type_ids: [paid.id],
      admission: 'once_per_day',
    })
    await send('create_question', {
      event_id,
      key: `dinner_${n}`,
      label: `What would you like to eat on evening ${n}?`,
      type: 'one_of',
      options: ['meat', 'fish', 'vegan'].map((key) => ({ key, label: `The ${key} menu` })),
      translations: { de: { label: `Was möchten Sie am Abend ${n} essen?`, options: { vegan: 'Das vegane Menü' } } },
    })
    const guests = ['Katharina von Hohenfels', 'Emmanuel Okonkwo-Reyes', 'Marie-Claire Dubois'].map((name, i) => ({
      name: `${name} ${n}`,
      email: `guest.number.${n}.${i}@northern-libraries.example.com`,
      company: 'Stadtbibliothek Hamburg',
      external_id: `crm-contact-${n}-${i}`,
      metadata: notes,
    }))
    const order = await send('register_attendee', {
      event_id,
      ticket_type_id: paid.id,
      name: 'Accounts of Stadtbibliothek Hamburg',
      email: 'accounts.payable@northern-libraries.example.com',
      company: 'Stadtbibliothek Hamburg',
      payment_method: 'invoice',
      attendees: guests,
      external_id: `crm-order-${n}`,
      metadata: notes,
    })
    await send('record_invoice_payment', { order_id: order.id, amount: 9_900, external_reference: `RE-2027-000${n}` })
    const half = await send('record_invoice_payment', { order_id: order.id, amount: order.total - 9_900 })
    await send('check_in', {
      event_id,
      code: half.attendees[0].ticket_code ?? order.attendees[0].ticket_code,
      device: 'Scanner at gate 3',
    })
    await send('join_waiting_list', {
      event_id,
      ticket_type_id: closed.id,
      ...guests[0],
      email: `waits.${n}@northern-libraries.example.com`,
    })
    await send('create_webhook_endpoint', {
      url: `https://hooks.northern-libraries.example.com/usher/${n}?tenant=7`,
      types: ['order.created', 'order.completed', 'attendee.checked_in', 'event.updated', 'payment.recorded'],
      description: 'CRM of the organisers: orders and arrivals',
    })
    await send('update_event', { event_id, changes: { description: `${n} ${words.repeat(200)}` } })
  }
  await edit('events', event.id, 'name = $2', ['Conference of the Northern Libraries'])
  await enqueued(organisation.id)
  await studio.query(
    `update public.webhook_deliveries set status = 'failed', attempts = 12, last_attempt_at = now(),
       last_response_status = 502, last_response_body = $2, last_response_milliseconds = 1200
     where organisation_id = $1`,
    [organisation.id, '<html><body>Bad gateway</body></html>'.repeat(27).slice(0, 1000)],
  )
  // Admitted by a scanner without a network, though they had come in.
  await studio.query(
    `insert into public.check_ins (event_id, code, scan_id, admitted, device, scanned_at)
     select a.event_id, a.ticket_code, 'scan-' || a.id, true, 'Scanner at gate 4', now()
     from public.attendees a where a.event_id = $1 and a.checked_in_at is not null`,
    [event.id],
  )
  const connected = await connectForAll(connectV1, key)
  mcp = connected.mcp
  return connected.close
})

const argumentsOf = (name: string): Record<string, unknown> => {
  const path = operations.find((operation) => operation.name === name)?.path
  return {
    ...(path?.includes('{event_id}') && { event_id: event.id }),
    ...(name === 'find_attendees' && { search: 'Katharina' }),
  }
}

test.for(lists.map(({ name }) => name))('%s answers a full page within the budget', async (name, { annotate }) => {
  const args = argumentsOf(name)
  const page = async () => (await mcp.call(name, args)).data as unknown[]
  await expect.poll(async () => (await page()).length).toBe(20)
  const answer = await mcp.call(name, args)
  const { method, path } = restRequestOf(name, { ...args, limit: 20 })
  const whole = (await rest(key)(method, path)).body
  // Counted once: it takes most of the time of this file.
  const [lean, full] = [tokens(answer), tokens(whole)]
  await annotate(`${lean} tokens, over REST ${full}`)
  console.log(`| ${name} | ${full} | ${lean} |`)
  expect(differences(answer, whole)).toEqual([])
  expect(lean).toBeLessThanOrEqual(budget)
})

const namesIn = (items: unknown) => [...new Set((items as Data[]).flatMap((item) => Object.keys(item)))].sort()

test('a list answers the fields that are named, and all with *', async () => {
  const chosen = await mcp.call('list_orders', { fields: ['reference', 'amount_paid_text', 'attendees'], limit: 2 })
  expect(namesIn(chosen.data)).toEqual(['amount_paid', 'amount_paid_text', 'attendees', 'id', 'reference'])
  const all = await mcp.call('list_orders', { fields: ['*'], limit: 2 })
  expect(namesIn(all.data)).toEqual(expect.arrayContaining(['metadata', 'payments', 'version', 'created_at']))
  expect(await mcp.call('list_orders', { fields: ['all'], limit: 2 })).toEqual(all)
})

test.each([
  [['colour']],
  [['reference', 7]],
  [[]],
  ['reference'],
  [{ reference: true }],
  [Array.from({ length: 200 }, () => 'id')],
])('fields %j are refused, and the answer names those there are', async (fields) => {
  const refusal = await mcp.refusal('list_orders', { fields })
  expect(refusal).toMatchObject({ code: 'validation_failed', param: 'fields' })
  expect(refusal.message).toMatch(/must be a list of object, id, event_id, reference, .*, or \["\*"\] for all/)
})

test('what is no list takes no fields, and a scope that is missing comes first', async () => {
  expect(await mcp.refusal('get_event', { event_id: event.id, fields: ['id'] })).toMatchObject({ param: 'fields' })
  const narrow = await connectV1(await organisation.key('events:read'))
  expect(await narrow.refusal('list_orders', { fields: ['colour'] })).toMatchObject({
    code: 'missing_scope',
    details: { scope: 'orders:read' },
  })
})

test('a long text is cut in a list, with a mark that says how it is had whole', async () => {
  const search = 'Libraries 2030'
  const [cut]: Data = (await mcp.call('list_events', { search, fields: ['*'] })).data
  expect(cut.description).toBe(
    `${words.slice(0, 80)}… [${words.length * 200 - 80} more characters: name the field in fields]`,
  )
  const [whole]: Data = (await mcp.call('list_events', { search, fields: ['description'] })).data
  expect(whole).toMatchObject({ description: words.repeat(200) })
  const { data: one }: Data = await mcp.call('get_event', { event_id: cut.id })
  expect(one.description).toBe(whole.description)
})

test('of many identifiers a list has the first, and says how many more there are', async () => {
  const { data: types }: Data = await mcp.call('list_ticket_types', { event_id: event.id, fields: ['id'] })
  const ids: string[] = types.map(({ id }: Data) => id)
  const { id } = (await rest(key)('POST', `/events/${event.id}/check-in-points`, { name: 'VIP', ticket_type_ids: ids }))
    .body.data
  const pointIn = async (args: object) => {
    const { data }: Data = await mcp.call('list_check_in_points', { event_id: event.id, limit: 100, ...args })
    return data.find((point: Data) => point.id === id).ticket_type_ids
  }
  expect(await pointIn({})).toEqual([...ids.slice(0, 4), '… [16 more: name the field in fields]'])
  expect(await pointIn({ fields: ['id', 'ticket_type_ids'] })).toEqual(ids)
})

test('money is said in words beside the minor units, and the times of an event on its own clock', async () => {
  const [first]: Data = (await mcp.call('list_events', { search: 'Libraries 2030' })).data
  expect(first).toMatchObject({
    starts_at: '2027-06-12T09:00:00+02:00',
    ends_at: '2027-06-13T18:00:00+02:00',
    when: 'Sat 12 Jun 2027 09:00 to Sun 13 Jun 2027 18:00 Europe/Berlin',
  })
  const [order]: Data = (await mcp.call('list_orders', { event_id: event.id, limit: 1 })).data
  expect(order).toMatchObject({ total: 89_700, total_text: 'EUR 897.00', amount_due: 0 })
  expect(order).not.toHaveProperty('amount_due_text')
})

test('a payment and a refund answer the money of the order, and not its attendees', async () => {
  const { orderId } = await event.payer()
  const paid: Data = await mcp.call('record_invoice_payment', { order_id: orderId, amount: 4900 })
  const money = { total: 4900, total_text: 'EUR 49.00', amount_paid: 4900, amount_paid_text: 'EUR 49.00' }
  const zero = { amount_due: 0, amount_refunded: 0, amount_retained: 0, amount_refundable: 0 }
  const status = { status: 'completed', payment_status: 'paid' }
  expect(paid.data).toEqual({ id: orderId, reference: expect.any(String), ...status, ...money, ...zero })
  const refunded: Data = await mcp.call('record_refund', { order_id: orderId, amount: 900 })
  expect(refunded.data).toMatchObject({ amount_refunded: 900, amount_refunded_text: 'EUR 9.00' })
  expect(refunded.data).not.toHaveProperty('attendees')
})

test('a change answers what was changed, besides what tells the object', async () => {
  const { data }: Data = await mcp.call('update_event', {
    event_id: event.id,
    changes: { online_url: 'https://example.com/stream' },
  })
  expect(data).toMatchObject({ id: event.id, status: 'published', online_url: 'https://example.com/stream' })
  expect(data).not.toHaveProperty('description')
})

test('orders say which event and which buyer they are of, to whoever may read events', async () => {
  const {
    data: [order],
  }: Data = await mcp.call('list_orders', { search: 'Accounts of', limit: 1 })
  const { name } = await row<{ name: string }>('select name from public.events where id = $1', [event.id])
  expect(order).toMatchObject({ event_id: event.id, event: name, amount_paid: expect.any(Number) })
  expect((await mcp.call('get_order', { order: order.id })).data).toMatchObject({ event: name })
  const { orderId } = await event.payer()
  const changes = { payment_due_at: '2030-01-01T12:00:00Z' }
  const { data }: Data = await mcp.call('update_order', { order: orderId, changes })
  expect(data).toMatchObject({ event: name, name: 'Guest', email: 'guest@example.com' })

  const narrow = await connectV1(await organisation.key('orders:read'))
  const { data: rows }: Data = await narrow.call('list_orders', { limit: 1 })
  expect(rows[0]).not.toHaveProperty('event')
})

test('rows of one event that was asked for do not repeat it, unless the field is named', async () => {
  for (const name of ['list_orders', 'list_attendees']) {
    const [given, named]: Data[] = [
      await mcp.call(name, { event: event.id, limit: 2 }),
      await mcp.call(name, { event_id: event.id, limit: 2, fields: ['event_id'] }),
    ]
    expect(namesIn(given.data).filter((field) => field.startsWith('event'))).toEqual([])
    expect(namesIn(named.data)).toEqual(['event', 'event_id', 'id'])
  }
})

test('times of what belongs to an event are those of its zone, to a key that may not read events as well', async () => {
  const narrow = await connectV1(await organisation.key('attendees:read', 'orders:read'))
  const zoneOfFirst = async (name: string, field: string) => {
    const { data }: Data = await narrow.call(name, { event_id: event.id, fields: [field], limit: 1 })
    return data[0][field].slice(19)
  }
  const winterOrSummer = /^[+]0[12]:00$/
  expect(await zoneOfFirst('list_attendees', 'created_at')).toMatch(winterOrSummer)
  await edit('events', event.id, "timezone = 'Asia/Kolkata'")
  // The moment is right in either zone, which may be remembered for a while.
  expect(await zoneOfFirst('list_orders', 'created_at')).toMatch(/^[+]0(1:00|2:00|5:30)$/)
})
