import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

type Guest = Record<string, unknown>

async function importer(ticketType: Record<string, unknown> = {}) {
  const organisation = await createOrganisation()
  const { id, ticketTypeId, ticketType: addTicketType } = await organisation.event()
  if (ticketType.quantity !== undefined) {
    await edit('ticket_types', ticketTypeId, 'quantity = $2', [ticketType.quantity])
  }
  const send = rest(await organisation.key('attendees:write', 'attendees:read'))
  const importGuests = (attendees: Guest[], more: Guest = {}, headers = {}) =>
    send('POST', `/events/${id}/attendees/import`, { ticket_type_id: ticketTypeId, attendees, ...more }, headers)
  return { organisation, id, ticketTypeId, addTicketType, send, importGuests }
}

const guest = (n: number, more: Guest = {}): Guest => ({
  external_id: `contact-${n}`,
  name: `Guest ${n}`,
  email: `guest-${n}@example.com`,
  ...more,
})
const guests = (count: number) => Array.from({ length: count }, (_, n) => guest(n))
const results = (body: { data: { results: { result: string }[] } }) => body.data.results.map(({ result }) => result)

async function countsOf(eventId: string) {
  return row(
    `select
       (select count(*)::integer from public.orders o where o.event_id = $1) as orders,
       (select count(*)::integer from public.attendees a where a.event_id = $1) as attendees,
       (select sum(t.quantity_sold)::integer from public.ticket_types t where t.event_id = $1) as sold`,
    [eventId],
  )
}

test('a list is imported, changed and imported again, with a result for each guest in order', async () => {
  const { id, importGuests, send } = await importer()
  const first = await importGuests(guests(3))
  expect([first.status, results(first.body)]).toEqual([200, ['created', 'created', 'created']])
  expect(first.body.data).toMatchObject({ object: 'attendee_import', event_id: id, created: 3, updated: 0, refused: 0 })

  const second = await importGuests([guest(2), guest(0, { company: 'NASA', metadata: { table: 4 } }), guest(3)])
  expect(results(second.body)).toEqual(['unchanged', 'updated', 'created'])
  expect(second.body.data.results[0].attendee_id).toBe(first.body.data.results[2].attendee_id)
  const { body } = await send('GET', `/attendees/${first.body.data.results[0].attendee_id}`)
  expect(body.data).toMatchObject({
    company: 'NASA',
    metadata: { table: 4 },
    ticket_email: { status: 'not_requested' },
  })
  expect(await countsOf(id)).toEqual({ orders: 4, attendees: 4, sold: 4 })

  const again = await importGuests([guest(2), guest(0), guest(3)])
  expect(results(again.body), 'fields left out stay as they are').toEqual(['unchanged', 'unchanged', 'unchanged'])
})

test('an import merges metadata: null removes a key, and the same list again changes nothing', async () => {
  const { importGuests, send } = await importer()
  const list = [guest(0, { metadata: { diet: 'vegan', table: null } }), guest(1)]
  const first = await importGuests(list)
  const again = await importGuests(list)
  expect([results(first.body), results(again.body)]).toEqual([
    ['created', 'created'],
    ['unchanged', 'unchanged'],
  ])
  const { attendee_id: id } = first.body.data.results[0]
  await send('PATCH', `/attendees/${id}`, { metadata: { bus: true } })
  expect(results((await importGuests(list)).body)).toEqual(['unchanged', 'unchanged'])
  const merged = await importGuests([guest(0, { metadata: { diet: null, table: 4 } })])
  expect(results(merged.body)).toEqual(['updated'])
  expect((await send('GET', `/attendees/${id}`)).body.data.metadata).toEqual({ bus: true, table: 4 })

  const many = Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`key ${i}`, i]))
  const { body } = await importGuests([guest(0, { metadata: many }), guest(1, { metadata: many })])
  expect(results(body)).toEqual(['refused', 'updated'])
  expect(body.data.results[0].error).toMatchObject({ code: 'validation_failed', param: 'metadata' })
})

test('a dry run answers what an import would, and changes nothing', async () => {
  const { id, addTicketType, importGuests } = await importer()
  const vip = await addTicketType({ quantity: 1 })
  await importGuests(guests(2))
  const before = await countsOf(id)
  const list = [
    guest(0),
    guest(1, { company: 'NASA' }),
    ...[2, 3].map((n) => guest(n, { ticket_type_id: vip })),
    guest(4, { email: 'x' }),
  ]

  const tried = await importGuests(list, { dry_run: true, send_email: true })
  expect(results(tried.body)).toEqual(['unchanged', 'updated', 'created', 'refused', 'refused'])
  expect(tried.body.data).toMatchObject({
    dry_run: true,
    created: 1,
    updated: 1,
    unchanged: 1,
    refused: 2,
    remaining: 0,
  })
  expect(tried.body.data.results[1].attendee_id).not.toBeNull()
  expect(tried.body.data.results[2]).toMatchObject({ attendee_id: null, order_id: null, error: null })
  expect(await countsOf(id)).toEqual(before)

  const done = await importGuests(list)
  expect([results(done.body), done.body.data.dry_run]).toEqual([results(tried.body), false])
})

test('what is refused has the error of a call of its own, and does not stop the others', async () => {
  const { organisation, id, importGuests } = await importer({ quantity: 5 })
  const elsewhere = await organisation.event()
  const send = rest(await organisation.key('attendees:write'))
  await send('POST', `/events/${elsewhere.id}/attendees/import`, {
    ticket_type_id: elsewhere.ticketTypeId,
    attendees: [guest(100)],
  })
  const { body } = await importGuests([
    guest(100),
    guest(0),
    guest(1, { ticket_type_id: randomUUID() }),
    ...[2, 3, 4, 5, 6, 7].map((n) => guest(n)),
  ])
  expect(results(body)).toEqual([
    'refused',
    'created',
    'refused',
    'created',
    'created',
    'created',
    'created',
    'refused',
    'refused',
  ])
  expect(body.data.results.flatMap(({ error }: { error: Guest | null }) => error ?? [])).toMatchObject([
    { code: 'already_exists', param: 'external_id' },
    { code: 'not_found', param: 'ticket_type_id' },
    { code: 'sold_out', param: 'ticket_type_id' },
    { code: 'sold_out', param: 'ticket_type_id' },
  ])
  expect(await countsOf(id)).toEqual({ orders: 5, attendees: 5, sold: 5 })

  const other = await organisation.event()
  const { ticketTypeId } = other
  const moved = await importGuests([guest(0, { ticket_type_id: ticketTypeId })])
  expect(moved.body.data.results[0]).toMatchObject({ result: 'refused', error: { code: 'read_only_field' } })
})

// As lists of several systems write one person.
const forms = [
  'Zo\u00eb O\u2019Leary-Sm\u00eeth',
  "Zoe\u0308 O'Leary-Smi\u0302th",
  "ZO\u00cb  O'LEARY\u2013SM\u00ceTH",
  '\u200bZo\u00eb\u00a0O\u02bcLeary\u2011Sm\u00eeth ',
  'Zo\u00eb\u2003O`Leary\u2212S\u00adm\u00eeth',
  '\uff3ao\u00eb O\u00b4Leary-Sm\u00eeth',
]

test('a person in another form of their name is who they were, but without their accents somebody else', async () => {
  const { id, importGuests } = await importer()
  const guestOf = (name: string) => ({ name, email: 'zoe@example.com' })
  const { body } = await importGuests(forms.map(guestOf))
  expect(results(body)).toEqual(['created', ...forms.slice(1).map(() => 'refused')])
  expect(body.data.results[1].error).toMatchObject({ code: 'already_exists', param: 'email' })
  for (const form of forms) {
    const again = await importGuests([guestOf(form)])
    expect(again.body.data.results, form).toMatchObject([
      { attendee_id: body.data.results[0].attendee_id, result: expect.stringMatching(/^(updated|unchanged)$/) },
    ])
  }
  expect(results((await importGuests([guestOf("Zoe O'Leary-Smith")])).body)).toEqual(['created'])
  expect(await countsOf(id)).toMatchObject({ attendees: 2 })
})

describe('a guest whose external_id is new', () => {
  const mary = { name: 'Mary Jackson', email: 'mary@example.com' }

  test('is whoever was registered elsewhere without one, whose ticket has it from then on', async () => {
    const { id, ticketTypeId, importGuests, send } = await importer()
    const { rows } = await studio.query(
      "insert into public.registrations (event_id, ticket_type_id, name, email) values ($1, $2, 'Mary Jackson', 'Mary@example.com') returning attendee_id",
      [id, ticketTypeId],
    )
    const contact = { ...mary, external_id: 'contact-1', company: 'NASA' }
    const { body } = await importGuests([contact])
    expect(body.data.results).toMatchObject([{ result: 'updated', attendee_id: rows[0].attendee_id }])
    const attendee = (await send('GET', `/attendees/${rows[0].attendee_id}`)).body.data
    expect(attendee).toMatchObject({ external_id: 'contact-1', company: 'NASA' })
    expect(results((await importGuests([contact])).body)).toEqual(['unchanged'])
    expect(await countsOf(id)).toMatchObject({ attendees: 1 })
  })

  test('is somebody else beside a person with another, a cancelled ticket, and one of another type', async () => {
    const { id, addTicketType, importGuests, send } = await importer()
    const workshop = await addTicketType()
    const first = await importGuests([mary])
    expect(results((await importGuests([{ ...mary, external_id: 'w' }], { ticket_type_id: workshop })).body)).toEqual([
      'created',
    ])
    // Of two in one list the first is the person who is there.
    const two = await importGuests(['a', 'b'].map((external_id) => ({ ...mary, external_id })))
    expect(results(two.body)).toEqual(['updated', 'created'])
    expect(two.body.data.results[0].attendee_id).toBe(first.body.data.results[0].attendee_id)
    expect(results((await importGuests([{ ...mary, external_id: 'c' }])).body)).toEqual(['created'])

    // Two of one name who are there are two of the list.
    const { send: office, ...second } = await importer()
    const register = () =>
      office('POST', `/events/${second.id}/registrations`, { ticket_type_id: second.ticketTypeId, ...mary })
    await register()
    await register()
    const twins = ['y', 'z'].map((external_id) => ({ ...mary, external_id }))
    expect(results((await second.importGuests(twins)).body)).toEqual(['updated', 'updated'])

    const jane = { name: 'Jane', email: 'jane@example.com' }
    const { body } = await importGuests([jane])
    await send('POST', `/attendees/${body.data.results[0].attendee_id}/cancel`)
    expect(results((await importGuests([{ ...jane, external_id: 'd' }])).body)).toEqual(['created'])
    expect(await countsOf(id)).toMatchObject({ attendees: 6 })
  })
})

test('tickets are e-mailed only when the call says so', async () => {
  const { importGuests, send } = await importer()
  const { body } = await importGuests(guests(1), { send_email: true })
  const { body: attendee } = await send('GET', `/attendees/${body.data.results[0].attendee_id}`)
  expect(attendee.data.ticket_email.status).not.toBe('not_requested')
})

test('imports of the same guests at the same moment register each once', async () => {
  const { id, importGuests } = await importer()
  const crowd = guests(200)
  // A slow machine has no time for all of them in one call.
  const importAll = async (list: Guest[]) => {
    const tally = { created: 0, refused: 0 }
    for (let rest = list; rest.length > 0; ) {
      const { status, body } = await importGuests(rest)
      if (status === 503 && body.error.retryable) continue
      expect(status).toBe(200)
      tally.created += body.data.created
      tally.refused += body.data.refused
      rest = rest.slice(body.data.results.length)
      expect(body.data.remaining).toBe(rest.length)
    }
    return tally
  }
  const tallies = await Promise.all([crowd, crowd.toReversed(), crowd.slice(60)].map(importAll))
  expect(tallies.map(({ created }) => created).reduce((sum, n) => sum + n)).toBe(200)
  expect(tallies.map(({ refused }) => refused)).toEqual([0, 0, 0])
  expect(await countsOf(id)).toEqual({ orders: 200, attendees: 200, sold: 200 })
})

test('an empty text of an optional line is none, as exports of other systems have it', async () => {
  const { importGuests, send } = await importer()
  const { name, email } = guest(1)
  const list = [
    guest(0, { company: '', metadata: { note: '' } }),
    { name, email, external_id: '' },
    { name: 'Other', email, external_id: '' },
  ]
  const first = await importGuests(list)
  expect(results(first.body)).toEqual(['created', 'created', 'created'])
  const known = (await send('GET', `/attendees/${first.body.data.results[0].attendee_id}`)).body.data
  expect([known.company, known.metadata]).toEqual([null, { note: '' }])
  expect(results((await importGuests(list)).body)).toEqual(['unchanged', 'unchanged', 'unchanged'])
  await importGuests([guest(0, { company: 'NASA' })])
  expect(results((await importGuests([guest(0, { company: '' })])).body)).toEqual(['updated'])
  expect((await send('GET', `/attendees/${known.id}`)).body.data.company).toBe(null)
})

test('a guest without an address is told that one is required, with a wrong one that it is none', async () => {
  const { importGuests } = await importer()
  const { name } = guest(1)
  const { body } = await importGuests([{ name }, { name, email: null }, { name, email: '' }, { name, email: 'x' }])
  expect(body.data.results.map(({ error }: { error: Guest }) => [error.param, error.message])).toEqual([
    ...Array(3).fill(['email', 'An email is required.']),
    ['email', 'This is not an e-mail address. Write it as in name@example.com.'],
  ])
})

describe('a guest of the wrong form is refused by itself, with the field', () => {
  const { email, name } = guest(1) as { email: string; name: string }
  const wrongs: [string, unknown, string | null][] = [
    ['an address that is none', guest(1, { email: 'guest at example.com' }), 'email'],
    ['no address', { external_id: 'contact-1', name }, 'email'],
    ['no name', guest(1, { name: undefined }), 'name'],
    ['an empty name', guest(1, { name: '  ' }), 'name'],
    ['a name of spaces that do not break', guest(1, { name: '\u00a0\u2003' }), 'name'],
    ['a name of which nothing is seen', guest(1, { name: '\u3164\u2800\u00ad\u200e' }), 'name'],
    ['a name of two lines', guest(1, { name: 'a\nb' }), 'name'],
    ['a name that is too long', guest(1, { name: 'x'.repeat(201) }), 'name'],
    ['a name that Postgres cannot hold', guest(1, { name: 'a\0b' }), 'name'],
    ['half a character', guest(1, { name: 'a\ud800' }), 'name'],
    ['a company that is a number', guest(1, { company: 7 }), 'company'],
    ['an external_id that is a list', guest(1, { external_id: [1] }), 'external_id'],
    ['an external_id that is too long', guest(1, { external_id: 'x'.repeat(256) }), 'external_id'],
    ['a ticket type that is no id', guest(1, { ticket_type_id: 'vip' }), 'ticket_type_id'],
    ['metadata that is not flat', guest(1, { metadata: { a: { b: 1 } } }), 'metadata'],
    ['metadata with half a character in a name', guest(1, { metadata: { 'a\ud800': 1 } }), 'metadata'],
    ['metadata with a dangerous name', guest(1, { metadata: JSON.parse('{"__proto__": 1}') }), 'metadata'],
    ['an unknown field', guest(1, { unknown: '1' }), 'unknown'],
    ['text', 'guest@example.com', null],
    ['a list', [email, name], null],
    ['nothing', null, null],
  ]

  test('beside the others of its list', async () => {
    const { id, importGuests } = await importer()
    const { status, body } = await importGuests([
      guest(0),
      ...wrongs.map(([_what, wrong], n) =>
        // Each is somebody else, so that none of them is refused for being there already.
        wrong instanceof Object && 'external_id' in wrong && wrong.external_id === 'contact-1'
          ? { ...wrong, external_id: `wrong-${n}` }
          : (wrong as Guest),
      ),
      guest(2),
    ])
    expect([status, results(body)]).toEqual([200, ['created', ...wrongs.map(() => 'refused'), 'created']])
    const errors = body.data.results
      .slice(1, -1)
      .map(({ error }: { error: { code: string; param: string | null } }) => error)
    expect(wrongs.map(([what], n) => [what, errors[n].code, errors[n].param])).toEqual(
      wrongs.map(([what, , param]) => [what, 'validation_failed', param]),
    )
    expect(await countsOf(id)).toEqual({ orders: 2, attendees: 2, sold: 2 })
  })

  test('a number in metadata that would not be kept', async () => {
    const { send, id, ticketTypeId } = await importer()
    const wrong = JSON.stringify({
      ticket_type_id: ticketTypeId,
      attendees: [guest(0, { metadata: { n: 0 } }), guest(1)],
    })
    const { body } = await send(
      'POST',
      `/events/${id}/attendees/import`,
      wrong.replace('"n":0', '"n":12345678901234567891'),
    )
    expect(results(body)).toEqual(['refused', 'created'])
    expect(body.data.results[0].error.param).toBe('metadata')
  })

  test('an external_id twice', async () => {
    const { importGuests } = await importer()
    const { body } = await importGuests([guest(1), guest(2), guest(1, { name: 'Somebody else' })])
    expect(results(body)).toEqual(['created', 'created', 'refused'])
    expect(body.data.results[2].error).toMatchObject({ code: 'already_exists', param: 'external_id' })
  })
})

describe('guests without an external_id', () => {
  const nameless = (n: number, more: Guest = {}) => guest(n, { external_id: undefined, ...more })

  test('are matched by e-mail address and name at the event', async () => {
    const { organisation, importGuests, send, id } = await importer()
    const elsewhere = await organisation.event()
    await send('POST', `/events/${elsewhere.id}/attendees/import`, {
      ticket_type_id: elsewhere.ticketTypeId,
      attendees: [nameless(0)],
    })
    const first = await importGuests([nameless(0), nameless(1), guest(2)])
    expect(results(first.body)).toEqual(['created', 'created', 'created'])
    expect(first.body.data.results[0].external_id).toBe(null)
    const again = await importGuests([
      nameless(0),
      nameless(1, { email: 'Guest-1@Example.com', company: 'NASA' }),
      nameless(1, { name: 'Their partner' }),
      nameless(2),
    ])
    expect(results(again.body)).toEqual(['unchanged', 'updated', 'created', 'unchanged'])
    expect(again.body.data.results[1].attendee_id).toBe(first.body.data.results[1].attendee_id)
    expect(await countsOf(id)).toEqual({ orders: 4, attendees: 4, sold: 4 })
    const { body } = await send('GET', '/attendees?external_id=contact-2')
    expect(body.data).toHaveLength(1)
  })

  test('and with one address and name are two people, of whom the second is refused', async () => {
    const { id, importGuests } = await importer()
    const { body } = await importGuests([
      nameless(0),
      nameless(0, { company: 'NASA' }),
      nameless(0, { external_id: 'contact-0' }),
      nameless(1, { external_id: 'one' }),
      nameless(1, { external_id: 'other' }),
    ])
    // Two external_ids tell the last two apart.
    expect(results(body)).toEqual(['created', 'refused', 'refused', 'created', 'created'])
    expect(body.data.results[1].error).toMatchObject({ code: 'already_exists', param: 'email' })
    expect(await countsOf(id)).toEqual({ orders: 3, attendees: 3, sold: 3 })
  })
})

describe('a guest who was cancelled and comes again', () => {
  test('is refused by an import, which says how, and registered under the same external_id by a registration', async () => {
    const { id, ticketTypeId, importGuests, send } = await importer()
    const one = {
      ticket_type_id: ticketTypeId,
      name: 'Guest 0',
      email: 'guest-0@example.com',
      external_id: 'contact-0',
    }
    const { body: first } = await send('POST', `/events/${id}/registrations`, one)
    const [cancelled] = first.data.attendees
    await send('POST', `/attendees/${cancelled.id}/cancel`)
    const { body } = await importGuests([guest(0), guest(1)])
    expect(results(body)).toEqual(['refused', 'created'])
    expect(body.data.results[0]).toMatchObject({
      attendee_id: cancelled.id,
      error: { code: 'cancelled', param: 'external_id', hint: expect.stringContaining('register_attendee') },
    })

    const { status, body: second } = await send('POST', `/events/${id}/registrations`, one)
    expect([status, second.data.external_id, second.data.attendees[0].external_id]).toEqual([
      201,
      'contact-0',
      'contact-0',
    ])
    const { body: found } = await send('GET', '/attendees?external_id=contact-0')
    expect(found.data.map((attendee: { id: string }) => attendee.id)).toEqual([second.data.attendees[0].id])
    const { body: before } = await send('GET', `/attendees/${cancelled.id}`)
    expect(before.data).toMatchObject({ status: 'cancelled', external_id: null })
    expect(results((await importGuests([guest(0)])).body)).toEqual(['unchanged'])
    const again = await send('POST', `/events/${id}/registrations`, one)
    expect([again.status, again.body.error.code]).toEqual([409, 'already_exists'])
  })

  test('does not get the external_id of an order with money to return, which finance looks up by it', async () => {
    const organisation = await createOrganisation()
    const { id, ticketType } = await organisation.event()
    const send = rest(await organisation.key())
    const priced = {
      ticket_type_id: await ticketType({ price: 4900 }),
      name: 'Guest 0',
      email: 'guest-0@example.com',
      external_id: 'INV-1',
      payment_method: 'invoice',
    }
    const register = () => send('POST', `/events/${id}/registrations`, priced)
    const { data: order } = (await register()).body
    await send('POST', `/orders/${order.id}/payments`, { amount: 4900, method: 'bank_transfer' })
    await send('POST', `/orders/${order.id}/cancel`)
    const refused = await register()
    expect([refused.status, refused.body.error]).toMatchObject([
      409,
      {
        code: 'already_exists',
        details: { object: 'order', id: order.id },
        hint: 'A cancelled order keeps it until its money is refunded. You can also give that order another external_id.',
      },
    ])
    await send('POST', `/orders/${order.id}/refunds`, { amount: 4900, method: 'bank_transfer' })
    expect((await register()).status).toBe(201)
  })
})

describe('a list that is wrong as a whole is refused, and leaves nothing', () => {
  test.each<[string, (n: number) => Guest[], string]>([
    ['1,001 guests, one of them wrong', () => [...guests(1000), {}], 'attendees'],
    ['no guest', () => [], 'attendees'],
    ['no list', () => ({ 0: guest(1) }) as unknown as Guest[], 'attendees'],
    ['an unknown field beside a wrong guest', () => [{}], 'notify'],
  ])('%s', async (_what, list, param) => {
    const { id, importGuests } = await importer()
    expect(problemOf(await importGuests(list(0), param === 'notify' ? { notify: true } : {}))).toEqual(invalid(param))
    expect(await countsOf(id)).toEqual({ orders: 0, attendees: 0, sold: 0 })
  })

  test('but not one of 1,000, whatever is wrong with each', async () => {
    const { body } = await (await importer()).importGuests(Array.from({ length: 1000 }, () => ({})))
    expect(body.data).toMatchObject({ created: 0, refused: 1000, remaining: 0 })
  })

  test('more than 2 MiB; other routes take 256 KiB', async () => {
    const { id, importGuests, send, ticketTypeId } = await importer()
    // Each is refused, for what is counted here is read before.
    const large = (count: number) => guests(count).map((g) => ({ ...g, unknown: '1'.repeat(25_000) }))
    const within = await importGuests(large(80))
    expect([within.status, within.body.data?.refused]).toEqual([200, 80])
    const beyond = await importGuests(large(85))
    expect([beyond.status, beyond.body.error.code]).toEqual([413, 'payload_too_large'])
    const elsewhere = await send('POST', `/events/${id}/registrations`, {
      ticket_type_id: ticketTypeId,
      attendees: large(11),
    })
    expect(elsewhere.status).toBe(413)
  })
})
