// A whole event run over MCP alone, from its first draft to its end, the way an assistant would: nothing but tools, and what
// they answer: the whole of it with the v1 client, and a smaller one with the current client.

import { expect, test } from 'vitest'
import { connectV1, type McpCaller, negotiating } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { enqueued } from '../support/outbox.ts'
import { readPng } from '../support/qr.ts'
import { countTokens } from '../support/tokens.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are held against their schemas by the caller.
type Data = any

test('an event is run from draft to end', async () => {
  const organisation = await createOrganisation()
  const mcp = await connectV1(await organisation.key())
  const data = async (name: string, args: object): Promise<Data> => (await mcp.call(name, { ...args })).data
  expect((await data('get_api_key', {})).scopes).toContain('events:write')

  const { eventId, vipId, standardId } = await plan(mcp, data)
  const endpoint = await data('create_webhook_endpoint', {
    url: 'https://crm.example.com/usher',
    types: ['order.completed', 'attendee.checked_in'],
  })

  const guest = await data('register_attendee', {
    event_id: eventId,
    ticket_type_id: vipId,
    name: 'Mary Jackson',
    email: 'mary@example.com',
  })
  expect(guest).toMatchObject({ status: 'completed', total: 0, attendees: [{ name: 'Mary Jackson' }] })
  const group = await invoice(mcp, data, eventId, standardId)

  // Raye cannot come, and gives her ticket to Annie: Raye's code is worth nothing any more.
  const [melba, raye] = group.attendees
  const annie = await data('update_attendee', {
    attendee_id: raye.id,
    changes: { name: 'Annie Easley', email: 'annie@example.com', reissue_ticket: true },
  })
  await data('resend_ticket', { attendee_id: annie.id })

  await openDoors(mcp, data, eventId, { guest: guest.attendees[0], melba, annie, stale: raye.ticket_code })
  await cancelSome(mcp, data, eventId, group.id, annie.id)
  await enqueued(organisation.id)
  const { data: deliveries } = await mcp.call('list_webhook_deliveries', { webhook_endpoint_id: endpoint.id })
  expect((deliveries as Data[]).map(({ type }) => type).sort()).toEqual([
    'attendee.checked_in',
    'attendee.checked_in',
    'attendee.checked_in',
    'order.completed',
    'order.completed',
  ])
  await expect
    .poll(async () => (await typesOfLog(mcp)).filter((type) => type.startsWith('order.')))
    .toEqual(['order.created', 'order.completed', 'order.created', 'order.completed', 'order.cancelled'])

  expect(await data('complete_event', { event_id: eventId })).toMatchObject({ status: 'completed' })
  expect(
    await mcp.refusal('register_attendee', {
      event_id: eventId,
      ticket_type_id: vipId,
      name: 'L',
      email: 'l@example.com',
    }),
  ).toMatchObject({
    code: 'event_not_published',
  })
})

// What a model reads, in tokens: the list of tools once, and each call with its answer.
const budget = 9_000
const names = ['Ada', 'Barbara', 'Chien', 'Dorothy', 'Edsger', 'Frances', 'Grace', 'Hedy', 'Ida', 'Joan']

test('an assistant sets an event up, registers ten, checks three in by name and sums up, within its context', async ({
  annotate,
}) => {
  const organisation = await createOrganisation()
  const key = await organisation.key('events:read', 'events:write', 'attendees:write', 'checkin:write')
  const mcp = await negotiating(key)
  const read: string[] = []
  const data: Ask = async (name, args) => {
    const answer = await mcp.call(name, { ...args })
    read.push(JSON.stringify([name, args, answer]))
    return answer.data
  }

  const event = await data('create_event', {
    name: 'Reading Evening',
    starts_at: '2027-06-12T18:00:00+02:00',
    ends_at: '2027-06-12T21:00:00+02:00',
    timezone: 'Europe/Berlin',
  })
  const { id: ticket_type_id } = await data('create_ticket_type', { event_id: event.id, name: 'Guest', quantity: 20 })
  await data('publish_event', { event_id: event.id })
  await data('register_attendee', {
    event_id: event.id,
    ticket_type_id,
    attendees: names.map((name) => ({ name: `${name} Reader`, email: `${name.toLowerCase()}@example.com` })),
    idempotency_key: 'reading-evening',
  })
  for (const name of ['Ada', 'Grace', 'Joan']) await checkInByName(data, event.id, name)
  expect(await sumUp(data, event.id)).toEqual({ registered: 10, arrived: 3 })

  const listed = countTokens(JSON.stringify(mcp.tools))
  const tokens = listed + countTokens(read.join('\n'))
  await annotate(`${listed} tokens of tools and ${tokens - listed} tokens of calls and answers`)
  expect(tokens).toBeLessThan(budget)
})

/** Find the person, then admit them. */
async function checkInByName(data: Ask, eventId: string, name: string): Promise<void> {
  const [person]: Data[] = await data('find_attendees', { event_id: eventId, search: name })
  const { attendee } = await data('check_in', { event_id: eventId, attendee_id: person.id })
  expect(attendee).toMatchObject({ id: person.id, name: person.name })
}

async function sumUp(data: Ask, eventId: string): Promise<{ registered: number; arrived: number }> {
  const { tickets } = await data('get_event_summary', { event_id: eventId })
  return { registered: tickets.sold, arrived: tickets.checked_in }
}

type Ask = (name: string, args: object) => Promise<Data>

async function plan(mcp: McpCaller, data: Ask) {
  const event = await data('create_event', { name: 'Open Harbour Day', timezone: 'Europe/Berlin' })
  // Each refusal says what is missing, and the next call brings it.
  expect(await mcp.refusal('publish_event', { event_id: event.id })).toMatchObject({
    code: 'event_not_publishable',
    param: 'starts_at',
  })
  await data('update_event', {
    event_id: event.id,
    if_version: event.version,
    changes: {
      starts_at: '2027-06-12T10:00:00+02:00',
      ends_at: '2027-06-12T18:00:00+02:00',
      venue: { name: 'Old Gasworks', city: 'Hamburg', country: 'DE' },
    },
  })
  expect(await mcp.refusal('publish_event', { event_id: event.id })).toMatchObject({ param: 'ticket_types' })
  const vip = await data('create_ticket_type', { event_id: event.id, name: 'VIP', quantity: 1 })
  const standard = await data('create_ticket_type', { event_id: event.id, name: 'Standard', price: 4900, quantity: 1 })
  await data('create_promo_code', { event_id: event.id, code: 'EARLYBIRD', percent_off: 10 })
  expect(await data('publish_event', { event_id: event.id })).toMatchObject({ status: 'published' })
  return { eventId: event.id as string, vipId: vip.id as string, standardId: standard.id as string }
}

/** Two tickets where one is left: refused whole, so more are made, and then it is paid in two parts. */
async function invoice(mcp: McpCaller, data: Ask, eventId: string, standardId: string): Promise<Data> {
  const group = {
    event_id: eventId,
    ticket_type_id: standardId,
    payment_method: 'invoice',
    promo_code: 'earlybird',
    name: 'Accounts',
    email: 'accounts@example.com',
    attendees: [
      { name: 'Melba Roy', email: 'melba@example.com' },
      { name: 'Raye Montague', email: 'raye@example.com' },
    ],
    idempotency_key: 'deal-7',
  }
  expect(await mcp.refusal('register_attendee', group)).toMatchObject({ code: 'sold_out', param: 'ticket_type_id' })
  await data('update_ticket_type', { ticket_type_id: standardId, changes: { quantity: 10 } })
  const order = await data('register_attendee', group)
  expect(order).toMatchObject({
    status: 'pending',
    discount_total: 980,
    amount_due: 8820,
    amount_due_text: 'EUR 88.20',
  })

  const payment = { order_id: order.id, method: 'bank_transfer', currency: 'EUR' }
  await data('record_invoice_payment', { ...payment, amount: 5000, idempotency_key: 'first-half' })
  expect(await mcp.refusal('record_invoice_payment', { ...payment, amount: 5000 })).toMatchObject({
    code: 'overpayment',
    details: { amount_due: 3820 },
  })
  const paid = await data('record_invoice_payment', { ...payment, amount: 3820 })
  expect(paid).toMatchObject({ status: 'completed', payment_status: 'paid' })
  // Codes are told to those who handle tickets: registration answered them.
  return order
}

type Door = { guest: Data; melba: Data; annie: Data; stale: string }

async function openDoors(mcp: McpCaller, data: Ask, eventId: string, { guest, melba, annie, stale }: Door) {
  const [picture] = await mcp.pictures('get_ticket_qr', { attendee_id: guest.id })
  expect(readPng(picture ?? Buffer.alloc(0))).toBe(guest.ticket_code)
  const accepted = await data('check_in', { event_id: eventId, code: guest.ticket_code, device: 'Gate 1' })
  expect(await mcp.refusal('check_in', { event_id: eventId, code: guest.ticket_code })).toMatchObject({
    code: 'already_checked_in',
    details: { check_in: { attendee: { name: 'Mary Jackson' } } },
  })
  expect(await mcp.refusal('check_in', { event_id: eventId, code: stale })).toMatchObject({ code: 'not_found' })
  await data('undo_check_in', { check_in_id: accepted.id })
  const batch = await data('check_in_batch', {
    event_id: eventId,
    scans: [
      { scan_id: '2', code: melba.ticket_code, scanned_at: '2027-06-12T10:02:00+02:00' },
      { scan_id: '1', code: guest.ticket_code, scanned_at: '2027-06-12T10:01:00+02:00' },
    ],
  })
  expect(batch).toEqual({ accepted: 2, rejected: 0, remaining: 0 })
  const missing = await data('list_attendees', { event_id: eventId, checked_in: false })
  expect(missing.map(({ id }: Data) => id)).toEqual([annie.id])
}

async function cancelSome(mcp: McpCaller, data: Ask, eventId: string, orderId: string, attendeeId: string) {
  const tried = await mcp.call('cancel_attendee', { attendee_id: attendeeId, dry_run: true })
  expect(tried.effect).toMatchObject({ dry_run: true, orders: 1, attendees: 1, emails: 0, refund_due: 4410 })
  await data('cancel_attendee', { attendee_id: attendeeId })
  expect(await data('get_order', { order_id: orderId })).toMatchObject({
    status: 'completed',
    payment_status: 'refund_due',
    total: 4410,
  })
  await data('cancel_order', { order_id: orderId })
  const types = await data('list_ticket_types', { event_id: eventId })
  expect(types.map(({ name, quantity_sold }: Data) => [name, quantity_sold])).toEqual([
    ['VIP', 1],
    ['Standard', 0],
  ])
  const [promoCode] = await data('list_promo_codes', { event_id: eventId })
  expect(promoCode.times_redeemed).toBe(0)
}

/** Every type in the log, page by page. */
async function typesOfLog(mcp: McpCaller): Promise<string[]> {
  const types: string[] = []
  let page: Data = { has_more: true }
  while (page.has_more) {
    page = await mcp.call('list_notifications', page.next_cursor ? { cursor: page.next_cursor } : {})
    types.push(...page.data.map(({ type }: Data) => type))
  }
  return types
}
