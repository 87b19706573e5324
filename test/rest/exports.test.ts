// Files over REST: what is in them, who gets them, and how one ends that is not complete.

import { type IncomingMessage, request } from 'node:http'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { findColumns } from '../../src/cli/import/columns.ts'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { operations } from '../../src/operations/index.ts'
import { parseCsv } from '../support/csv.ts'
import { studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { rest } from '../support/rest.ts'
import { edit, pay } from '../support/studio.ts'

async function get(key: string, path: string, method = 'GET') {
  const answer = await fetch(`${inject('apiUrl')}/api/v1/exports/${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}` },
  })
  // `text()` would drop the byte order mark.
  const text = Buffer.from(await answer.arrayBuffer()).toString()
  return { status: answer.status, headers: answer.headers, text }
}

async function file(key: string, path: string) {
  const { status, text } = await get(key, path)
  expect(status, text).toBe(200)
  return parseCsv(text)
}

const refusal = async (key: string, path: string) => {
  const { status, text } = await get(key, path)
  return { status, ...(JSON.parse(text).error as { code: string; param?: string; message: string }) }
}

/** Guests that no test looks at one by one. */
const crowd = (event: TestEvent, guests: number, metadata: Record<string, string> = {}) =>
  studio.query(
    `with o as (insert into public.orders (event_id, name, email) values ($1, 'Crowd', 'crowd@example.com') returning id)
     insert into public.attendees (order_id, ticket_type_id, name, email, metadata)
     select o.id, $2, 'Guest ' || g, 'guest' || g || '@example.com', $4 from o, generate_series(1, $3) g`,
    [event.id, event.ticketTypeId, guests, metadata],
  )

describe('the file of attendees', () => {
  let organisation: TestOrganisation
  let event: TestEvent
  let key: string
  beforeAll(async () => {
    organisation = await createOrganisation()
    event = await organisation.event()
    key = await organisation.key()
    const guests: { name: string; company?: string; metadata?: object }[] = [
      { name: '=HYPERLINK("https://evil.example","x")', company: '@SUM(A1)' },
      { name: '-Dorothy', metadata: { note: '+49 30 1', seat: -5, diet: 'a;=b' } },
      { name: 'O"Neil, "Bob" 🎉', company: 'A;=1+1', metadata: { note: 'two\r\nlines', vegan: false } },
      { name: '＝Wide', company: "'Quoted'" },
    ]
    for (const [i, guest] of guests.entries()) {
      const { status } = await rest(key)('POST', `/events/${event.id}/registrations`, {
        ticket_type_id: event.ticketTypeId,
        email: `guest${i}@example.com`,
        ...guest,
      })
      expect(status).toBe(201)
    }
  })

  test('is CSV by RFC 4180 in UTF-8, newest first, in columns that never change', async () => {
    const { headers, text } = await get(key, `attendees?event_id=${event.id}`)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': expect.stringMatching(/^attachment; filename="attendees-\d{4}-\d\d-\d\d\.csv"$/),
      'usher-export-as-of': expect.stringMatching(/Z$/),
      'cache-control': 'no-store',
    })
    expect(text.split('\r\n', 1)[0]).toBe(
      'id,event_id,event,timezone,order_id,order_reference,ticket_type_id,ticket_type,name,email,company,status,price,price_decimal,discount,discount_decimal,currency,checked_in_at,checked_in_at_local,cancelled_at,cancelled_at_local,erased_at,erased_at_local,external_id,metadata,created_at,created_at_local,updated_at,updated_at_local,answers',
    )
    const rows = parseCsv(text)
    const { body } = await rest(key)('GET', `/attendees?event_id=${event.id}`)
    expect(rows.map(({ id }) => id)).toEqual(body.data.map(({ id }: { id: string }) => id))
    const [{ ticket_code, ticket_url }] = body.data
    for (const secret of [ticket_code, ticket_url.slice(-32)]) expect(text).not.toContain(secret)
    const [{ created_at = '', created_at_local = '' } = {}] = rows
    expect(created_at).toBe(body.data[0].created_at)
    const local = new Intl.DateTimeFormat('sv-SE', {
      timeZone: 'Europe/Berlin',
      dateStyle: 'short',
      timeStyle: 'medium',
    })
    expect(created_at_local).toBe(local.format(new Date(created_at)))
  })

  test('has ticket codes only where they are named, for a key that may see them', async () => {
    const { body } = await rest(key)('GET', `/attendees?event_id=${event.id}`)
    const codes = body.data.map(({ id, ticket_code }: Record<string, string>) => ({ id, ticket_code }))
    expect(await file(key, `attendees?event_id=${event.id}&fields=id,ticket_code`)).toEqual(codes)
    const ofOrders = await organisation.key('orders:read', 'events:read')
    expect((await refusal(ofOrders, 'attendees?fields=ticket_code')).code).toBe('missing_scope')
    expect(await refusal(ofOrders, 'orders?fields=ticket_code')).toMatchObject({ code: 'validation_failed' })
  })

  test('holds no formula, and keeps what people wrote otherwise', async () => {
    const rows = await file(
      key,
      `attendees?event_id=${event.id}&fields=name,company,metadata.note,metadata.seat,metadata.vegan`,
    )
    expect(rows.map((cells) => Object.values(cells))).toEqual([
      ["'＝Wide", "'Quoted'", '', '', ''],
      ['O"Neil, "Bob" 🎉', "A;'=1+1", 'two\r\nlines', '', 'false'],
      ["'-Dorothy", '', "'+49 30 1", '-5', ''],
      ['\'=HYPERLINK("https://evil.example","x")', "'@SUM(A1)", '', '', ''],
    ])
  })

  test('holds no formula in its first line either, and an import reads the name back', async () => {
    const { text } = await get(
      key,
      `attendees?event_id=${event.id}&fields=name,${encodeURIComponent('metadata.x;=1+1')}`,
    )
    const header = text.slice(0, text.indexOf('\r\n'))
    expect(header).toBe(`name,metadata.x;'=1+1`)
    const { metadata } = findColumns([...header.split(','), 'email'], new Map(), false)
    expect([...metadata.values()]).toEqual(['x;=1+1'])
  })

  test('has metadata as JSON, money in both forms, and a byte order mark where one is wanted', async () => {
    await edit('events', (await organisation.event()).id, "currency = 'KWD'")
    const priced = await organisation.event()
    await priced.payer({ price: 123_456 })
    const { text } = await get(
      key,
      `attendees?event_id=${priced.id}&bom=true&fields=price,price_decimal,currency,metadata`,
    )
    expect(text).toBe('\ufeffprice,price_decimal,currency,metadata\r\n123456,1234.56,EUR,\r\n')
    const [whole] = await file(key, `attendees?event_id=${event.id}&fields=metadata&updated_after=1990-01-01T00:00:00Z`)
    expect(whole).toEqual({ metadata: '' })
    const all = await file(key, `attendees?event_id=${event.id}&fields=name,metadata`)
    expect(all[2]?.metadata).not.toContain(';=')
    expect(JSON.parse(all[2]?.metadata ?? '')).toEqual({ note: '+49 30 1', seat: -5, diet: 'a;=b' })
  })

  test('takes the filters of the list', async () => {
    const [first] = await file(key, `attendees?event_id=${event.id}`)
    await rest(key)('POST', `/attendees/${first?.id}/cancel`, {})
    const names = async (query: string) =>
      (await file(key, `attendees?event_id=${event.id}&fields=name&${query}`)).map(({ name }) => name)
    expect(await names('status=cancelled')).toEqual(["'＝Wide"])
    expect(await names('checked_in=true')).toEqual([])
    expect(await names(`updated_after=${encodeURIComponent(first?.updated_at ?? '')}`)).toEqual(["'＝Wide"])
    expect(await names(`ticket_type_id=${await event.ticketType()}`)).toEqual([])
  })

  test.each([
    [
      'fields=ticket_url,price,code',
      'fields',
      /^fields must be id, event_id, [^;]*metadata.KEY or answers.KEY, \*_local or \*_decimal, not "ticket_url"$/,
    ],
    ['fields=name,metadata.', 'fields', /must be id, event_id, .*, not "metadata."$/],
    ['fields=', 'fields', /must be id, event_id/],
    ['status=gone', 'status', /must be one of active/],
    ['checked_in=maybe', 'checked_in', /must be true or false/],
    ['updated_after=yesterday', 'updated_after', /RFC 3339/],
    ['search=ann', 'search', /not a known field/],
    ['event_id=1', 'event_id', /identifier|UUID|id/i],
  ])('with %s is refused, and says what is allowed', async (query, param, message) => {
    expect(await refusal(key, `attendees?${query}`)).toMatchObject({
      status: 422,
      code: 'validation_failed',
      message: expect.stringMatching(message),
      param,
    })
  })
})

test.each([
  ['attendees', 'attendees:read'],
  ['orders', 'orders:read'],
  ['payments', 'orders:read'],
  ['check-ins', 'attendees:read'],
] as const)('the file of %s needs %s and no more, and holds nothing of anybody else', async (path, scope) => {
  const [ours, theirs] = [await createOrganisation(), await createOrganisation()]
  const [event, other] = [await ours.event(), await theirs.event()]
  for (const { orderId, code } of [await event.payer(), await other.payer()]) {
    await pay(orderId, 4900)
    await studio.query(
      'insert into public.check_ins (event_id, code) select a.event_id, a.ticket_code from public.attendees a where a.ticket_code = $1',
      [code],
    )
  }
  const key = await ours.key(scope)
  const rows = await file(key, path)
  expect(rows.map(({ event_id }) => event_id)).toEqual([event.id])
  expect(await refusal(key, `${path}?event_id=${other.id}`)).toMatchObject({
    status: 404,
    code: 'not_found',
    param: 'event_id',
  })
  const made = await rest(key)('POST', `/exports/${path}`, { event_id: other.id })
  expect([made.status, made.body.error.param]).toEqual([404, 'event_id'])
  if (path === 'attendees') {
    const ofTheirs = `${path}?ticket_type_id=${other.ticketTypeId}`
    expect(await refusal(key, ofTheirs)).toMatchObject({ status: 404, code: 'not_found', param: 'ticket_type_id' })
  }
  const lacking = await ours.key(scope === 'orders:read' ? 'attendees:read' : 'orders:read')
  expect(await refusal(lacking, path)).toMatchObject({ status: 403, code: 'missing_scope' })
  const declared = operations.find((operation) => operation.path === `/exports/${path}`) as {
    csv?: { columns: string[] }
  }
  expect(Object.keys(rows[0] ?? {})).toEqual(declared.csv?.columns)
  expect((await rest(key)('POST', `/exports/${path}`)).body.data.columns).toEqual(declared.csv?.columns)
})

test('the lines of payments add up to the figures of the event, and stand where they were booked', async () => {
  const { organisation, event, key, send } = await createOrganiser()
  const [{ orderId }, other] = [await event.payer({ price: 10_000 }), await event.payer()]
  const paid = (amount: number, received_at: string) =>
    send('POST', `/orders/${orderId}/payments`, { amount, received_at, external_reference: '=1+1' })
  await paid(2_500, '2026-08-31T23:59:59+02:00')
  const { body } = await paid(7_500, '2026-09-01T00:00:00+02:00')
  await send('POST', `/payments/${body.data.payments[1].id}/void`, { reason: 'wrong order' })
  await paid(7_500, '2026-09-15T12:00:00Z')
  await send('POST', `/orders/${orderId}/refunds`, { amount: 1_001, refunded_at: '2026-09-30T23:59:59+02:00' })
  await pay(other.orderId, 4_900)
  const elsewhere = await organisation.event()
  await pay((await elsewhere.payer()).orderId, 4_900)

  const lines = await file(key, `payments?event_id=${event.id}`)
  expect(lines.map(({ type, amount, amount_decimal }) => [type, amount, amount_decimal])).toEqual([
    ['payment', '2500', '25.00'],
    ['payment', '7500', '75.00'],
    ['payment', '7500', '75.00'],
    ['refund', '-1001', '-10.01'],
    ['void', '-7500', '-75.00'],
    ['payment', '4900', '49.00'],
  ])
  expect(lines[4]).toMatchObject({
    payment_id: body.data.payments[1].id,
    reason: 'wrong order',
    external_reference: "'=1+1",
  })
  const { revenue } = (await send('GET', `/events/${event.id}/summary`)).body.data
  const sum = (rows: Record<string, string>[]) => rows.reduce((total, { amount }) => total + Number(amount), 0)
  expect(sum(lines)).toBe(revenue.paid - revenue.refunded)
  expect(sum(lines.filter(({ type }) => type === 'refund'))).toBe(-revenue.refunded)
  expect(sum(await file(key, 'payments'))).toBe(sum(lines) + 4_900)

  const month = 'received_after=2026-09-01T00:00:00%2B02:00&received_before=2026-10-01T00:00:00%2B02:00'
  const september = await file(key, `payments?${month}`)
  expect(september.map(({ type, amount }) => [type, amount])).toEqual([
    ['payment', '7500'],
    ['payment', '7500'],
    ['refund', '-1001'],
  ])
})

test('payments of one moment are there once each, over several pages', async () => {
  const { event, key } = await createOrganiser()
  const { orderId } = await event.payer({ price: 1_000 })
  await studio.query(
    `insert into public.payments (order_id, amount, received_at)
     select $1, 1, '2026-09-01T00:00:00Z' from generate_series(1, 120)`,
    [orderId],
  )
  expect(new Set((await file(key, 'payments')).map(({ id }) => id)).size).toBe(120)
})

/** A client that has read the head of the answer, and waits. */
async function slowly(key: string, path: string): Promise<{ answer: IncomingMessage; body: Promise<string> }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${inject('apiUrl')}/api/v1/exports/${path}`, { headers: { Authorization: `Bearer ${key}` } }, resolve)
      .on('error', reject)
      .end()
  })
  const chunks: Buffer[] = []
  const body = new Promise<string>((resolve, reject) => {
    answer.on('error', reject)
    answer.on('end', () => resolve(Buffer.concat(chunks).toString()))
  })
  body.catch(() => {})
  answer.on('data', (chunk) => chunks.push(chunk)).pause()
  return { answer, body }
}

describe('a file that fits into no buffer', () => {
  // Loopback holds four megabytes at most.
  const guests = 900
  let organisation: TestOrganisation
  let event: TestEvent
  beforeAll(async () => {
    organisation = await createOrganisation()
    event = await organisation.event()
    const notes = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`note${i}`, 'x'.repeat(500)]))
    await crowd(event, guests, notes)
  })

  test('is complete for whoever reads it slowly: each row once, and none that was added meanwhile', async () => {
    const { answer, body } = await slowly(await organisation.key(), 'attendees')
    await crowd(event, 5)
    answer.resume()
    const rows = parseCsv(await body)
    expect([rows.length, new Set(rows.map(({ id }) => id)).size]).toEqual([guests, guests])
  })

  test('is cut off, and has no end, when the key is revoked or loses the scope', async () => {
    for (const change of ['revoked_at = now()', "scopes = '{orders:read}'"]) {
      const key = await organisation.key('attendees:read')
      const { answer, body } = await slowly(key, 'attendees')
      await studio.query(`update public.api_keys set ${change} where prefix = $1`, [prefixOf(key)])
      answer.resume()
      await expect(body).rejects.toMatchObject({ code: 'ECONNRESET' })
    }
  })

  test('two may be read at once, and one that is given up makes room', async () => {
    const key = await organisation.key()
    const [first, second] = [await slowly(key, 'attendees'), await slowly(key, 'attendees')]
    expect(await refusal(key, 'orders')).toMatchObject({ status: 429, code: 'too_many_exports' })
    first.answer.destroy()
    await expect.poll(async () => (await get(key, 'orders')).status).toBe(200)
    second.answer.destroy()
  })
})

test('the audit trail has who exported what, and a request for the head exports nothing', async () => {
  const { event, key } = await createOrganiser()
  const head = await get(key, `attendees?event_id=${event.id}`, 'HEAD')
  expect([head.status, head.headers.get('content-type'), head.text]).toEqual([200, 'text/csv; charset=utf-8', ''])
  expect((await get(key, 'attendees?status=gone', 'HEAD')).status).toBe(422)
  const entries = async () => (await rest(key)('GET', '/audit-entries?object_type=export')).body.data
  expect(await entries()).toEqual([])
  await get(key, `attendees?event_id=${event.id}&fields=name`)
  await get(key, 'payments?event_id=e7a4ae4c-0000-7000-8000-000000000000')
  expect(await entries()).toMatchObject([
    {
      action: 'created',
      actor: 'api_key',
      actor_name: 'test',
      source: 'api',
      changes: {
        operation: { from: null, to: 'export_attendees' },
        arguments: { from: null, to: { event_id: event.id, fields: ['name'] } },
      },
    },
  ])
})
