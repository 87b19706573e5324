// The door list: enough to decide alone, and changes that miss nothing.

import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'
import { pay } from '../support/studio.ts'

type Ticket = { attendee_id: string; code_hash: string; entries: unknown[]; status: string; name: string }

async function door() {
  const { organisation, event, key, send } = await createOrganiser({}, 'checkin:write')
  /** All pages from a cursor on. */
  const read = async (cursor?: string) => {
    const tickets: Ticket[] = []
    for (let next = cursor; ; ) {
      const { status, body } = await send('GET', `/events/${event.id}/door-list${next ? `?cursor=${next}` : ''}`)
      expect(status, JSON.stringify(body)).toBe(200)
      tickets.push(...body.data.tickets)
      next = body.data.next_cursor
      if (!body.data.has_more) return { ...body.data, tickets }
    }
  }
  return { organisation, event, key, send, read }
}

const hash = (salt: string, code: string) =>
  createHash('sha256')
    .update(salt + code)
    .digest('base64url')

test('the list has what a scanner needs, and no ticket code', async () => {
  const { event, send, read } = await door()
  const { rows } = await studio.query(
    "insert into public.check_in_points (event_id, name, admission) values ($1, 'Gate', 're_entry') returning id",
    [event.id],
  )
  const [inside, left, outside] = [await event.guest(), await event.guest(), await event.payer()]
  const scan = (code: string, direction = 'entry') =>
    send('POST', '/check-ins', { event_id: event.id, code, check_in_point_id: rows[0].id, direction })
  await scan(inside.code)
  for (const direction of ['entry', 'exit', 'entry', 'exit']) await scan(left.code, direction)
  const list = await read()
  expect(list).toMatchObject({
    object: 'door_list',
    event: { id: event.id, status: 'published', timezone: 'Europe/Berlin' },
    complete: true,
    tickets_total: 3,
    points: [{ id: rows[0].id, admission: 're_entry' }],
  })
  expect(list.ticket_types).toContainEqual({ id: event.ticketTypeId, name: 'General' })
  const entry = {
    check_in_point_id: rows[0].id,
    scanned_at: expect.any(String),
    day: null,
    check_in_id: expect.any(String),
  }
  expect(
    list.tickets.map(({ attendee_id, code_hash, status, entries }: Ticket) => [
      attendee_id,
      code_hash,
      status,
      entries,
    ]),
  ).toEqual([
    [inside.attendeeId, hash(list.salt, inside.code), 'active', [{ ...entry, exited_at: null }]],
    [left.attendeeId, hash(list.salt, left.code), 'active', [{ ...entry, exited_at: expect.any(String) }]],
    [outside.attendeeId, hash(list.salt, outside.code), 'awaiting_payment', []],
  ])
  expect(JSON.stringify(list)).not.toContain(inside.code)
})

test('changes since a cursor hold each change, also one whose transaction was open when the list was read', async () => {
  const { event, send, read } = await door()
  const [slow, scanned, undone, left, renamed] = await Promise.all(Array.from({ length: 5 }, () => event.guest()))
  const scan = async (code?: string, direction = 'entry') =>
    (await send('POST', '/check-ins', { event_id: event.id, code, direction })).body.data.id
  const entered = await scan(undone?.code)
  await scan(left?.code)
  const client = await studio.connect()
  const rename = 'update public.attendees set name = $2 where id = $1'
  let cursor: string
  try {
    await client.query('begin')
    await client.query(rename, [slow?.attendeeId, 'Slow'])
    cursor = (await read()).next_cursor
    await client.query('commit')
  } finally {
    client.release()
  }
  await scan(scanned?.code)
  await scan(left?.code, 'exit')
  await send('POST', `/check-ins/${entered}/undo`)
  await studio.query(rename, [renamed?.attendeeId, 'Renamed'])
  const added = await event.guest()
  const changes = await read(cursor)
  expect(changes).toMatchObject({ complete: false, tickets_total: 6 })
  const of = (guest?: { attendeeId: string }) =>
    changes.tickets.find(({ attendee_id }: Ticket) => attendee_id === guest?.attendeeId)
  expect(of(slow)).toMatchObject({ name: 'Slow' })
  expect(of(scanned)).toMatchObject({ entries: [{ exited_at: null }] })
  expect(of(left)).toMatchObject({ entries: [{ exited_at: expect.any(String) }] })
  expect(of(undone)).toMatchObject({ entries: [] })
  expect(of(renamed)).toMatchObject({ name: 'Renamed' })
  expect(of(added)).toMatchObject({ status: 'active' })
})

test('each ticket has the reference of its order', async () => {
  const { event, read } = await door()
  const { orderId } = await event.guest()
  const { rows } = await studio.query('select reference from public.orders where id = $1', [orderId])
  expect((await read()).tickets).toMatchObject([{ reference: rows[0].reference }])
})

test('what is due for an order is told to a key that may record payments, and whenever it changes', async () => {
  const { organisation, event, read } = await door()
  const { orderId } = await event.payer({ price: 4900 })
  expect((await read()).tickets).toMatchObject([{ status: 'awaiting_payment', order: null }])

  const send = rest(await organisation.key('checkin:write', 'orders:write'))
  const since = async (cursor = '') =>
    (await send('GET', `/events/${event.id}/door-list${cursor && `?cursor=${cursor}`}`)).body.data
  const whole = await since()
  expect(whole.tickets).toMatchObject([{ order: { id: orderId, amount_due: 4900, currency: 'EUR' } }])
  await pay(orderId, 900)
  // No ticket changed, and nothing did for a key that is not told.
  const partly = await since(whole.next_cursor)
  expect(partly.tickets).toMatchObject([{ order: { amount_due: 4000 } }])
  // What began before it may still change something, so it is told again until that is over.
  await expect.poll(async () => (await since((await since(partly.next_cursor)).next_cursor)).tickets).toEqual([])
  await pay(orderId, 4000)
  expect((await since(partly.next_cursor)).tickets).toMatchObject([{ status: 'active', order: null }])
})

test('a cursor of another event or key starts again; one that is none is refused', async () => {
  const { organisation, event, send, read } = await door()
  await event.guest()
  const { next_cursor, salt } = await read()
  const other = rest(await organisation.key('checkin:write'))
  const again = await other('GET', `/events/${event.id}/door-list?cursor=${next_cursor}`)
  expect(again.body.data).toMatchObject({ complete: true, tickets: [{ status: 'active' }] })
  expect(again.body.data.salt).not.toBe(salt)
  expect(problemOf(await send('GET', `/events/${event.id}/door-list?cursor=abc`))).toEqual(invalid('cursor'))
  const elsewhere = await (await createOrganisation()).event()
  expect((await send('GET', `/events/${elsewhere.id}/door-list`)).body.error).toMatchObject({
    code: 'not_found',
    param: 'event_id',
  })
})

test('pages of 1,000 tickets are compressed for whoever accepts it', async () => {
  const { event, key, read } = await door()
  await studio.query(
    `with o as (
       insert into public.orders (event_id, name, email, send_email) values ($1, 'Group', 'group@example.com', false) returning id
     )
     insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, 'Guest ' || i, 'guest@example.com' from o, generate_series(1, 1050) i`,
    [event.id, event.ticketTypeId],
  )
  const list = await read()
  expect(new Set(list.tickets.map(({ attendee_id }: Ticket) => attendee_id)).size).toBe(1050)
  const page = await new Promise<{ encoding: string | undefined; body: Buffer }>((resolve, reject) => {
    request(
      `${inject('apiUrl')}/api/v1/events/${event.id}/door-list`,
      { headers: { Authorization: `Bearer ${key}`, 'Accept-Encoding': 'gzip' } },
      (res) => {
        const chunks: Buffer[] = []
        res.on('data', (chunk) => chunks.push(chunk))
        res.on('end', () => resolve({ encoding: res.headers['content-encoding'], body: Buffer.concat(chunks) }))
      },
    )
      .on('error', reject)
      .end()
  })
  expect(page.encoding).toBe('gzip')
  expect(JSON.parse(gunzipSync(page.body).toString()).data).toMatchObject({ has_more: true, tickets: { length: 1000 } })
  // 20,000 tickets in 2 MB.
  expect(page.body.length).toBeLessThan(100_000)
})
