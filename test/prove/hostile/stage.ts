// What hostile requests are about: an organisation with one of everything, and the secrets of a person and of a client. Requests use a stage
// up, so there is a new one every so often.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { issueKey } from '../../../src/local/admin.ts'
import { scopes } from '../../../src/operations/operation.ts'
import { callback, formTokenOf, Jar, pkce, requestUrl, walkToConsent } from '../../http/oauth/walk.ts'
import type { Random } from '../random.ts'

type Guest = { order: string; attendee: string; code: string }

export type Stage = {
  events: string[]
  keys: { full: string; asking: string; few: string }
  /** A value for a field of this name: an id, a code, an address. Undefined for other names. */
  named(name: string, random: Random): string | undefined
  /** Cursors of lists, as they were answered. */
  cursors: string[]
  /** Addresses of pages, with a form of theirs where they have one. */
  pages: { path: string; form: Record<string, string> }[]
  cookie: string
  client: { id: string; redirectUri: string; request: string }
}

/** @param apiUrl where the secrets of pages are made, as their users would. */
export async function setStage(database: pg.Client, apiUrl: string): Promise<Stage> {
  const slug = `hostile-${randomUUID()}`
  const one = async (sql: string, values: unknown[] = []) =>
    Object.values((await database.query<Record<string, string>>(sql, values)).rows[0] ?? {})[0] as string
  await database.query(
    "insert into public.plans (name, rate_limit_per_minute) values ('hostile', 10000000) on conflict do nothing",
  )
  const organisation = await one(
    "insert into public.organisations (name, slug, plan) values ('Hostile', $1, 'hostile') returning id",
    [slug],
  )
  const keyOf = (confirmations: 'asked' | 'none', of: readonly string[]) =>
    issueKey(database, { organisation: slug, name: 'Hostile', scopes: of, confirmations })
  const keys = {
    full: await keyOf('none', scopes),
    asking: await keyOf('asked', scopes),
    few: await keyOf('none', ['events:read']),
  }
  const personKey = await issueKey(database, { organisation: slug, name: 'Hostile', scopes, kind: 'person' })

  const event = async (name: string, capacity: number | null) =>
    one(
      `insert into public.events (organisation_id, name, slug, starts_at, ends_at, timezone, capacity)
       values ($1, $2, $3, now() + interval '1 day', now() + interval '2 days', 'Europe/Berlin', $4) returning id`,
      [organisation, name, `event-${randomUUID()}`, capacity],
    )
  const type = (of: string, name: string, quantity: number | null, price: number) =>
    one('insert into public.ticket_types (event_id, name, quantity, price) values ($1, $2, $3, $4) returning id', [
      of,
      name,
      quantity,
      price,
    ])
  const main = await event('Main', 500)
  const draft = await event('Draft', null)
  const [free, priced, scarce] = [
    await type(main, 'Free', null, 0),
    await type(main, 'Priced', 400, 4900),
    await type(main, 'Scarce', 1, 0),
  ]
  const plain = await event('Plain', null)
  for (const without of [draft, plain]) await type(without, 'Draft', 5, 100)
  await database.query("update public.events set status = 'published' where id = any ($1)", [[main, plain]])
  const guest = async (ticketType: string, method: 'invoice' | null = null): Promise<Guest> => {
    const order = await one(
      "insert into public.orders (event_id, name, email, payment_method) values ($1, 'Guest', 'guest@example.com', $2) returning id",
      [main, method],
    )
    const attendee = await one(
      "insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Guest', 'guest@example.com') returning id",
      [order, ticketType],
    )
    return { order, attendee, code: await one('select ticket_code from public.attendees where id = $1', [attendee]) }
  }
  const guests = [await guest(free), await guest(free), await guest(scarce)]
  const payers: Guest[] = []
  for (let i = 0; i < 5; i++) payers.push(await guest(priced, 'invoice'))
  // The fourth has paid, the fifth did not in time.
  await database.query('insert into public.payments (order_id, amount) values ($1, 4900)', [payers[3]?.order])
  await database.query('update public.orders set payment_due_at = now() where id = $1', [payers[4]?.order])
  await database.query('select private.expire_orders($1)', [[payers[4]?.order]])
  const payment = await one('insert into public.payments (order_id, amount) values ($1, 2000) returning id', [
    payers[0]?.order,
  ])
  const entry = await one(
    "insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, 'Ann', 'ann@example.com') returning id",
    [main, scarce],
  )
  // A place is offered to the second who waits.
  const offered = await type(main, 'Offered', 1, 0)
  await guest(offered)
  const offer = await one(
    "insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, 'Bea', 'bea@example.com') returning id",
    [main, offered],
  )
  await database.query('update public.ticket_types set quantity = 2 where id = $1', [offered])
  const promo = await one(
    "insert into public.promo_codes (event_id, code, percent_off) values ($1, 'SPRING', 20) returning id",
    [main],
  )
  const point = await one(
    "insert into public.check_in_points (event_id, name, admission) values ($1, 'Gate', 're_entry') returning id",
    [main],
  )
  const checkIn = await one('insert into public.check_ins (event_id, code) values ($1, $2) returning id', [
    main,
    guests[1]?.code,
  ])
  const endpoint = await one(
    `insert into public.webhook_endpoints (organisation_id, url, types)
     values ($1, 'https://hooks.example.com', '{order.created,order.completed}') returning id`,
    [organisation],
  )
  await guest(free)
  await one('select private.enqueue_deliveries()')
  const delivery = await one('select id from public.webhook_deliveries where webhook_endpoint_id = $1', [endpoint])
  const ticketToken = await one('select ticket_token from public.attendees where id = $1', [guests[0]?.attendee])
  const optOutToken = await one('select private.opt_out_token(a) from public.attendees a where a.id = $1', [
    guests[0]?.attendee,
  ])
  const reference = await one('select reference from public.orders where id = $1', [payers[1]?.order])

  const orders = [...guests, ...payers].map(({ order }) => order)
  const attendees = [...guests, ...payers].map(({ attendee }) => attendee)
  const codes = [...guests, ...payers].map(({ code }) => code)
  const values: Record<string, string[]> = {
    event: [main, main, main, main, draft, plain],
    ticket_type: [free, free, priced, scarce],
    promo_code_id: [promo],
    promo_code: ['SPRING'],
    order: [...orders, reference],
    attendee: attendees,
    check_in_point: [point],
    point: [point],
    check_in: [checkIn],
    payment: [payment],
    waiting_list_entry: [entry, offer],
    entry: [entry, offer],
    webhook_endpoint: [endpoint],
    endpoint: [endpoint],
    webhook_delivery: [delivery],
    code: [...codes, ...codes, 'NOBODY'],
    email: ['guest@example.com', 'ann@example.com'],
  }
  const named = (name: string, random: Random) => random.pick(values[name] ?? values[name.replace(/_ids?$/, '')] ?? [])

  const call = async (key: string, method: string, path: string, body?: unknown) => {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const answer = await fetch(apiUrl + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return answer.text()
  }
  const cursors: string[] = []
  for (const list of ['/events', '/orders', '/attendees', '/audit-entries', `/events/${main}/ticket-types`]) {
    const { next_cursor } = JSON.parse(await call(keys.full, 'GET', `/api/v1${list}?limit=1`))
    if (typeof next_cursor === 'string') cursors.push(next_cursor)
  }
  const exported = JSON.parse(await call(keys.full, 'POST', '/api/v1/exports/attendees', { event_id: main }))
  const params = { name: 'cancel_event', arguments: { event_id: main } }
  const asked = await call(keys.asking, 'POST', '/api/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const confirmation = /\/confirm\/[0-9a-f-]{36}/.exec(asked)?.[0] ?? ''
  const jar = new Jar(apiUrl)
  const { clientId, at } = await walkToConsent(personKey, { jar, scope: 'events:read' })
  const withToken = async (path: string, form: Record<string, string>) => ({
    path,
    form: { ...form, form_token: formTokenOf(await jar.ask(path)) },
  })
  const pages = [
    { path: `/t/${ticketToken}`, form: {} },
    { path: `/t/${ticketToken}/ticket.ics`, form: {} },
    { path: `/t/${ticketToken}/emails/off`, form: {} },
    { path: `/u/${optOutToken}`, form: {} },
    { path: new URL(exported.data.url).pathname, form: {} },
    await withToken(confirmation, { action: 'confirm' }),
    await withToken(at, { action: 'allow', scope: 'events:read', days: '7' }),
    await withToken('/oauth/grants', { action: 'end', grant_id: randomUUID() }),
  ]
  const cookie = [...jar.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const request = requestUrl(clientId, pkce().challenge, { scope: 'events:read' })
  const client = { id: clientId, redirectUri: callback, request }
  return { events: [main, draft, plain], keys, named, cursors, pages, cookie, client }
}
