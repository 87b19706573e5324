// What hostile requests are about: an organisation with one of everything, and the secrets of a person and of a client. Requests use a stage
// up, so there is a new one every so often.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { scopes } from '../../../src/operations/operation.ts'
import { createOrganisation, guest } from '../../evaluation/organisation.ts'
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
  const one = async (sql: string, values: unknown[] = []) =>
    Object.values((await database.query<Record<string, string>>(sql, values)).rows[0] ?? {})[0] as string
  await database.query(
    "insert into public.plans (name, rate_limit_per_minute) values ('hostile', 10000000) on conflict do nothing",
  )
  const organisation = await createOrganisation(database, apiUrl)
  await database.query("update public.organisations set plan = 'hostile' where id = $1", [organisation.id])
  const keys = {
    full: await organisation.key('Hostile'),
    asking: await organisation.key('Hostile', scopes, 'asked'),
    few: await organisation.key('Hostile', ['events:read']),
  }
  const personKey = await organisation.personKey()

  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  const dates = { starts: inDays(1), ends: inDays(2) }
  const ticketTypes = {
    Free: {},
    Priced: { price: 4900, quantity: 400 },
    Scarce: { quantity: 1 },
    Offered: { quantity: 1 },
  }
  const mainEvent = await organisation.event({ name: 'Main', ...dates, capacity: 500, ticketTypes })
  const main = mainEvent.id
  const sparse = { ...dates, ticketTypes: { Draft: { price: 100, quantity: 5 } } }
  const { id: draft } = await organisation.event({ name: 'Draft', ...sparse, status: 'draft' })
  const { id: plain } = await organisation.event({ name: 'Plain', ...sparse })
  const { Free: free = '', Priced: priced = '', Scarce: scarce = '', Offered: offered = '' } = mainEvent.ticketTypes
  const add = async (ticketType: string, paid?: number): Promise<Guest> => {
    const person = { name: 'Guest', email: 'guest@example.com', ticketType }
    const order = await organisation.order(mainEvent, { guests: [person], ...(paid !== undefined && { paid }) })
    const [attendee = ''] = order.attendeeIds
    const code = await one('select ticket_code from public.attendees where id = $1', [attendee])
    return { order: order.id, attendee, code }
  }
  const guests = [await add('Free'), await add('Free'), await add('Scarce')]
  // The first has paid a part, the fourth all, and the fifth did not in time.
  const payers: Guest[] = []
  for (const paid of [2000, 0, 0, 4900, 0]) payers.push(await add('Priced', paid))
  await database.query('update public.orders set payment_due_at = now() where id = $1', [payers[4]?.order])
  await database.query('select private.expire_orders($1)', [[payers[4]?.order]])
  const payment = await one('select id from public.payments where order_id = $1', [payers[0]?.order])
  await organisation.waits(mainEvent, 'Scarce', guest('Ann'))
  // A place is offered to the second who waits.
  await add('Offered')
  await organisation.waits(mainEvent, 'Offered', guest('Bea'))
  await database.query('update public.ticket_types set quantity = 2 where id = $1', [offered])
  const entryOf = (type: string) => one('select id from public.waiting_list_entries where ticket_type_id = $1', [type])
  const [entry, offer] = [await entryOf(scarce), await entryOf(offered)]
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
    [organisation.id],
  )
  await add('Free')
  await one('select private.enqueue_deliveries()')
  const delivery = await one('select id from public.webhook_deliveries where webhook_endpoint_id = $1', [endpoint])
  const ticketToken = await one('select ticket_token from public.attendees where id = $1', [guests[0]?.attendee])
  const optOutToken = await one('select private.opt_out_token(a) from public.attendees a where a.id = $1', [
    guests[0]?.attendee,
  ])
  const question = await one(
    `insert into public.questions (event_id, key, label, type, options, required, sensitive, delete_after_days)
     values ($1, 'diet', 'Diet?', 'one_of', '[{"key": "vegan", "label": "Vegan"}]', true, false, null),
       ($1, 'note', 'A note?', 'long_text', null, false, true, 30) returning id`,
    [main],
  )
  await one('update public.events set guests_may = enum_range(null::public.guest_act) where id = $1', [main])
  const [by, slug] = await Promise.all([
    one('select o.slug from public.organisations o where o.id = $1', [organisation.id]),
    one("update public.events set registration_page = 'public' where id = $1 returning slug", [main]),
  ])
  const eventPath = `/e/${by}/${slug}`
  const guestPath = async (guest?: Guest) =>
    `/g/${await one('select private.guest_token(a) from public.attendees a where a.id = $1', [guest?.attendee])}`
  const [own, passedOn, givenBack] = [guests[0], guests[1], payers[3]]
  const orderToken = await one('select private.order_token(o) from public.orders o where o.id = $1', [payers[1]?.order])
  const offerToken = await one('select private.offer_token(w) from public.waiting_list_entries w where w.id = $1', [
    offer,
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
    question: [question],
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
  const pages: Stage['pages'] = [
    { path: `/t/${ticketToken}`, form: {} },
    { path: `/t/${ticketToken}/ticket.ics`, form: {} },
    { path: `/t/${ticketToken}/emails/off`, form: {} },
    { path: `/u/${optOutToken}`, form: {} },
    { path: await guestPath(own), form: { act: 'correct', name: 'Guest', company: 'Engines' } },
    {
      path: await guestPath(own),
      form: { act: 'answer', asked: 'diet', 'answer.diet': 'vegan', 'answer.note': 'None' },
    },
    { path: await guestPath(passedOn), form: { act: 'pass_on', name: 'Ann', email: 'ann@example.com' } },
    { path: await guestPath(givenBack), form: { act: 'give_back' } },
    { path: `/o/${orderToken}`, form: {} },
    { path: `/w/${offerToken}`, form: {} },
    { path: `/w/${offerToken}/order`, form: {} },
    { path: `/w/${offerToken}/decline`, form: {} },
    { path: `${eventPath}?t.${free}=2&t.${priced}=1&code=SPRING&lang=de`, form: {} },
    { path: `${eventPath}/event.ics`, form: {} },
    // Of all guests that an order may have.
    { path: eventPath, form: { act: 'register', [`t.${free}`]: '50', total: '0', [`g.${free}.0.name`]: 'Ann' } },
    {
      path: eventPath,
      form: {
        ...{ act: 'register', [`t.${free}`]: '1', code: '', total: '0', key: randomUUID(), website: '' },
        ...{
          [`g.${free}.0.name`]: 'Cleo',
          [`g.${free}.0.email`]: 'cleo@example.com',
          [`g.${free}.0.asked`]: 'diet',
          [`g.${free}.0.answer.diet`]: 'vegan',
        },
      },
    },
    {
      path: eventPath,
      form: {
        act: 'wait',
        ticket_type_id: scarce,
        [`w.${scarce}.name`]: 'Dan',
        [`w.${scarce}.email`]: 'dan@example.com',
      },
    },
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
