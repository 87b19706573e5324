// A page of a list ends early where its items are large: about a mebibyte, with has_more. Following next_cursor finds every item
// once.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf, rest } from '../support/rest.ts'

type Page = { data: { id: string }[]; has_more: boolean; next_cursor: string | null }

const mebibyte = 1024 * 1024
/** As much as metadata may hold: 50 keys of 500 characters of three bytes. */
const fullMetadata = Object.fromEntries(
  Array.from({ length: 50 }, (_, i) => [`key ${i} `.padEnd(40, '-'), '€'.repeat(500)]),
)

/** Ids of all pages, each of which is held against the bound. */
async function walk(send: ReturnType<typeof rest>, path: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor: string | null = null; ; ) {
    const { status, body } = await send('GET', `${path}${cursor === null ? '' : `&cursor=${cursor}`}`)
    const page = body as Page
    expect(status).toBe(200)
    expect(page.data.length).toBeGreaterThan(0)
    if (page.data.length > 1) expect(JSON.stringify(page.data).length).toBeLessThan(1.1 * mebibyte)
    expect(page.has_more).toBe(page.next_cursor !== null)
    pages.push(page.data.map(({ id }) => id))
    if (page.next_cursor === null) return pages
    cursor = page.next_cursor
  }
}

test('12 orders with all the metadata there may be are walked in pages of a mebibyte, and each is found once', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { rows: orders } = await studio.query<{ id: string }>(
    `insert into public.orders (event_id, name, email, metadata)
     select $1, 'Guest', 'g@example.com', $2 from generate_series(1, 12) returning id`,
    [event.id, fullMetadata],
  )
  const { rows: attendees } = await studio.query<{ id: string }>(
    `insert into public.attendees (order_id, ticket_type_id, name, email, metadata)
     select o, $2, 'Guest', 'g@example.com', $3 from unnest($1::uuid[]) o, generate_series(1, 3) returning id`,
    [orders.map(({ id }) => id), event.ticketTypeId, fullMetadata],
  )
  const send = rest(await organisation.key())
  for (const [path, rows] of [
    ['/orders?limit=100', orders],
    ['/attendees?limit=100', attendees],
  ] as const) {
    const pages = await walk(send, path)
    expect(pages.length).toBeGreaterThan(2)
    expect(pages.flat()).toEqual(
      rows
        .map(({ id }) => id)
        .toSorted()
        .reverse(),
    )
  }
  const log = await send('GET', '/notifications?limit=100')
  expect(JSON.stringify(log.body.data).length).toBeLessThan(1.1 * mebibyte)
})

test('an item that is larger than a page is a page of its own, and the last page says so', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await studio.query(
    `insert into public.orders (event_id, name, email) select $1, 'Guest', 'g@example.com' from generate_series(1, 2)`,
    [event.id],
  )
  const { rows } = await studio.query<{ id: string }>(
    'select id from public.orders where event_id = $1 order by id desc',
    [event.id],
  )
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email, metadata)
     select o, $2, 'Guest', 'g@example.com', $3 from unnest($1::uuid[]) o, generate_series(1, 20)`,
    [rows.map(({ id }) => id), event.ticketTypeId, fullMetadata],
  )
  expect(await walk(rest(await organisation.key()), '/orders?limit=100')).toEqual(rows.map(({ id }) => [id]))
})

test('ticket types are walked in the order of the organiser, a hundred at a time when no limit is given', async () => {
  const { organisation, event, send } = await createOrganiser()
  await studio.query(
    `insert into public.ticket_types (event_id, name, position)
     select $1, 'Type ' || i, i % 4 from generate_series(1, 119) i`,
    [event.id],
  )
  const { rows } = await studio.query<{ id: string }>(
    'select id from public.ticket_types where event_id = $1 order by position, id',
    [event.id],
  )
  const ids = rows.map(({ id }) => id)
  const path = `/events/${event.id}/ticket-types`
  expect(await walk(send, `${path}?`)).toEqual([ids.slice(0, 100), ids.slice(100)])
  expect((await walk(send, `${path}?limit=7`)).flat()).toEqual(ids)
  const other = await organisation.event()
  const { next_cursor } = (await send('GET', `${path}?limit=7`)).body
  expect(problemOf(await send('GET', `/events/${other.id}/ticket-types?cursor=${next_cursor}`))).toEqual([
    404,
    'not_found',
    'cursor',
  ])
  expect(
    (await row<{ n: number }>('select count(*)::int as n from public.ticket_types where event_id = $1', [event.id])).n,
  ).toBe(120)
})
