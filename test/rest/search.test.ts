// search of list_attendees, list_orders and list_events: what it matches, and that it combines with the rest. What it costs is in
// test/database/list-costs.test.ts.

import { beforeAll, describe, expect, test } from 'vitest'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

let organisation: TestOrganisation
let event: TestEvent
let send: ReturnType<typeof rest>
let orders: Record<'single' | 'group', { id: string; reference: string }>

beforeAll(async () => {
  organisation = await createOrganisation()
  event = await organisation.event()
  send = rest(await organisation.key())
  const register = async (body: object) =>
    (await send('POST', `/events/${event.id}/registrations`, { ticket_type_id: event.ticketTypeId, ...body })).body.data
  const single = await register({
    name: 'Søren Müller-Groß',
    email: 'soren.mg@example.com',
    company: '100% Überbau_AG',
    external_id: 'CRM-0815',
  })
  const group = await register({
    name: 'Travel Desk',
    email: 'desk@agency.example',
    attendees: [
      { name: 'José Álvarez', email: 'jose@example.com' },
      { name: 'Zoë Nguyễn', email: 'zoe@example.net' },
    ],
  })
  orders = { single, group }
})

const namesFound = async (query: Record<string, string>) => {
  const { status, body } = await send('GET', `/attendees?${new URLSearchParams(query)}`)
  expect(status).toBe(200)
  return body.data.map((attendee: { name: string }) => attendee.name).toSorted()
}
const ordersFound = async (search: string) => {
  const { body } = await send('GET', `/orders?${new URLSearchParams({ search })}`)
  return body.data.map(({ id }: { id: string }) => (id === orders.single.id ? 'single' : 'group'))
}

test.each([
  ['muller', ['Søren Müller-Groß']],
  ['GROSS sören', ['Søren Müller-Groß']],
  ['r-gr', ['Søren Müller-Groß']],
  ['100%', ['Søren Müller-Groß']],
  ['u_a', ['Søren Müller-Groß']],
  ['l%r', []],
  ['crm-08', ['Søren Müller-Groß']],
  ['nguyen', ['Zoë Nguyễn']],
  ['example.com alv', ['José Álvarez']],
  ['alvarez zoe', []],
  ['example', ['José Álvarez', 'Søren Müller-Groß', 'Zoë Nguyễn']],
  // The buyer is of the order: a key for attendees does not learn who paid.
  ['travel desk', []],
])('attendees that match %j are %j', async (search, names) => {
  expect(await namesFound({ search })).toEqual(names)
})

describe('as bank lines write names', () => {
  let names: (search: string) => Promise<string[]>
  beforeAll(async () => {
    const ours = await createOrganisation()
    const { id, ticketTypeId } = await ours.event()
    const own = rest(await ours.key())
    const people = [
      ['Jürgen Müller', 'Müller & Söhne'],
      ['Karl Mueller', 'Größe + Maß AG'],
      ['Bauer', 'Haeuser GmbH'],
      ['Boer', 'Malmö'],
      ['Joel', 'Ægir'],
      ['Bö', 'Süd – Ost'],
    ] as const
    for (const [name, company] of people) {
      const guest = { ticket_type_id: ticketTypeId, name, company, email: 'x@y.example' }
      expect((await own('POST', `/events/${id}/registrations`, guest)).status).toBe(201)
    }
    names = async (search) => {
      const { status, body } = await own('GET', `/attendees?${new URLSearchParams({ search })}`)
      return status === 200
        ? body.data.map(({ name }: { name: string }) => name).toSorted()
        : [`${status} ${body.error.param}`]
    }
  })

  test.each([
    ['Mueller', ['Jürgen Müller', 'Karl Mueller']],
    ['MÜLLER KARL', ['Karl Mueller']],
    ['Mu\u0308ller karl', ['Karl Mueller']],
    // Written without the dots, it is no umlaut.
    ['muller', ['Jürgen Müller']],
    ['müller & söhne', ['Jürgen Müller']],
    ['groesse - mass', ['Karl Mueller']],
    ['MALMOE', ['Boer']],
    ['sued – ost', ['Bö']],
    // An e that is one.
    ['Bauer', ['Bauer']],
    ['Boer', ['Boer']],
    ['Joel', ['Joel']],
    // Beside a longer word a short one, too; by itself it has to be as it is written.
    ['boe ost', ['Bö']],
    ['Boe', ['Boer']],
    ['bö ost', ['Bö']],
    ['m(ue|x)ller', []],
    ['***:m.*', []],
    ['+++', []],
    ['mueller +++', ['Jürgen Müller', 'Karl Mueller']],
    ['+ & –', ['422 search']],
    ['bö + x', ['422 search']],
  ])('%j finds %j', async (search, expected) => {
    expect(await names(search)).toEqual(expected)
  })
})

test('a search is met by every apostrophe, dash, blank and form of a letter, on either side', async () => {
  const ours = await createOrganisation()
  const { id, ticketTypeId } = await ours.event()
  const own = rest(await ours.key())
  await edit('events', id, 'name = $2', ['Pints \u2019n\u2019 Pies'])
  const names = [
    'Bob O\u2019Leary',
    "Ann O'Leary",
    'Cy Smith\u2013Wesson',
    'Di  Smith-Wesson',
    'Eva Novakova\u0301',
    'Flo Nov\u00e1kov\u00e1',
  ]
  for (const name of names) {
    await own('POST', `/events/${id}/registrations`, { ticket_type_id: ticketTypeId, name, email: 'x@y.example' })
  }
  const found = async (path: string, search: string) =>
    (await own('GET', `${path}?${new URLSearchParams({ search })}`)).body.data
      .map(({ name }: { name: string }) => name)
      .toSorted()
  for (const path of ['/attendees', '/orders', `/events/${id}/door/attendees`]) {
    for (const sign of ["'", '\u2019', '\u2018', '\u02bc', '\u00b4', '`']) {
      expect([path, sign, await found(path, `o${sign}leary`)]).toEqual([path, sign, names.slice(0, 2).toSorted()])
    }
    for (const sign of ['-', '\u2013', '\u2011', '\u2212', '\u2014']) {
      expect([path, sign, await found(path, `smith${sign}wes`)]).toEqual([path, sign, names.slice(2, 4)])
    }
    for (const form of ['nov\u00e1kov\u00e1', 'nova\u0301kova\u0301', '\u200bnovakova\u00ad']) {
      expect([path, form, await found(path, form)]).toEqual([path, form, names.slice(4)])
    }
  }
  expect(await found('/events', "pints 'n' pies")).toHaveLength(1)
})

test('attendees are found by a part of the reference of their order, and by what they were changed to', async () => {
  expect(await namesFound({ search: orders.group.reference.slice(1, 6).toLowerCase() })).toEqual([
    'José Álvarez',
    'Zoë Nguyễn',
  ])
  const [{ id }] = (await send('GET', '/attendees?search=nguyen')).body.data
  await send('PATCH', `/attendees/${id}`, { name: 'Ada Lovelace', email: 'ada@example.net' })
  expect(await namesFound({ search: 'lovelace' })).toEqual(['Ada Lovelace'])
  expect(await namesFound({ search: 'nguyen' })).toEqual([])
  await send('PATCH', `/attendees/${id}`, { name: 'Zoë Nguyễn', email: 'zoe@example.net' })
})

test('a search combines with the other filters and with pages', async () => {
  const both = { search: 'example', event_id: event.id, status: 'active', updated_after: '2026-01-01T00:00:00Z' }
  expect(await namesFound(both)).toHaveLength(3)
  expect(await namesFound({ ...both, checked_in: 'true' })).toEqual([])
  expect(await namesFound({ ...both, email: 'JOSE@example.com' })).toEqual(['José Álvarez'])
  expect(await namesFound({ ...both, order_id: orders.single.id })).toEqual(['Søren Müller-Groß'])
  const first = (await send('GET', '/attendees?search=example&limit=2')).body
  const second = (await send('GET', `/attendees?search=example&limit=2&cursor=${first.next_cursor}`)).body
  expect([first.data.length, first.has_more, second.data.length, second.has_more]).toEqual([2, true, 1, false])
})

test('orders are found by their contact, their reference and their attendees', async () => {
  expect(await ordersFound('desk travel')).toEqual(['group'])
  expect(await ordersFound('alvarez')).toEqual(['group'])
  expect(await ordersFound('muller crm-0815')).toEqual(['single'])
  expect(await ordersFound('MUELLER & UEBERBAU_AG')).toEqual(['single'])
  expect(await ordersFound(orders.single.reference.slice(0, 4))).toContain('single')
  expect(await ordersFound('nobody')).toEqual([])
  await edit('orders', orders.group.id, "name = 'Agência São João'")
  expect(await ordersFound('sao joao')).toEqual(['group'])
  expect(await ordersFound('travel')).toEqual([])
})

test('events are found by name, place and phase', async () => {
  const ours = await createOrganisation()
  const own = rest(await ours.key())
  const add = async (body: object) => (await own('POST', '/events', body)).body.data.id as string
  const published = async (changes: object) => {
    const { id } = await ours.event()
    expect((await own('PATCH', `/events/${id}`, changes)).status).toBe(200)
    return id
  }
  const gala = await published({
    name: 'Gala',
    starts_at: '2020-05-01T18:00:00Z',
    ends_at: '2020-05-02T02:00:00Z',
    venue: { name: 'Théâtre', city: 'Besançon' },
  })
  const fair = await published({ name: 'Fair', starts_at: '2020-06-01T09:00:00Z', ends_at: '2099-06-01T18:00:00Z' })
  const later = await add({ name: 'Fair of the future', slug: 'fair-2099', external_id: 'f' })
  // Whatever its dates, a draft is still to come.
  const draft = await add({ name: 'Bazaar', starts_at: '2020-05-03T18:00:00Z', ends_at: '2020-05-03T20:00:00Z' })
  const found = async (query: string) =>
    (await own('GET', `/events?${query}`)).body.data.map(({ id }: { id: string }) => id)
  expect(await found('search=BESANCON theatre')).toEqual([gala])
  expect(await found('search=fair')).toEqual([later, fair])
  expect(await found('search=fair&phase=ongoing')).toEqual([fair])
  expect(await found('phase=ended')).toEqual([gala])
  expect(await found('phase=upcoming')).toEqual([draft, later])
  expect(await found('external_id=f&phase=ended')).toEqual([])
  expect(await found('starts_after=2020-05-01T18:00:00Z&starts_before=2020-06-01T09:00:00Z')).toEqual([draft, gala])
})

describe.each(['attendees', 'orders', 'events'])('GET /%s', (list) => {
  test.each(['ab', '%20a%20', 'ab cd ef', 'x'.repeat(101), 'x'.repeat(500), 'a%00bc'])(
    'search=%s is refused by name',
    async (search) => {
      expect(problemOf(await send('GET', `/${list}?search=${search}`))).toEqual(invalid('search'))
    },
  )
})
