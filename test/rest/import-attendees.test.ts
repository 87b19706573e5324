import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

type Guest = Record<string, unknown>

async function importer(ticketType: Record<string, unknown> = {}) {
  const organisation = await createOrganisation()
  const { id, ticketTypeId } = await organisation.event()
  if (ticketType.quantity !== undefined) {
    await studio.query('update public.ticket_types set quantity = $2 where id = $1', [
      ticketTypeId,
      ticketType.quantity,
    ])
  }
  const send = rest(await organisation.key('attendees:write', 'attendees:read'))
  const importGuests = (attendees: Guest[], more: Guest = {}, headers = {}) =>
    send('POST', `/events/${id}/attendees/import`, { ticket_type_id: ticketTypeId, attendees, ...more }, headers)
  return { organisation, id, ticketTypeId, send, importGuests }
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

  const second = await importGuests([
    guest(2),
    guest(0, { company: 'NASA', metadata: { table: 4 } }),
    guest(3),
    guest(1, { name: undefined, email: 'new@example.com' }),
  ])
  // A guest without a name is no guest, so the whole list is refused, and nothing happens.
  expect([second.status, second.body.error.param]).toEqual([422, 'attendees.3.name'])

  const third = await importGuests([guest(2), guest(0, { company: 'NASA', metadata: { table: 4 } }), guest(3)])
  expect(results(third.body)).toEqual(['unchanged', 'updated', 'created'])
  expect(third.body.data.results[0].attendee_id).toBe(first.body.data.results[2].attendee_id)
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

test('tickets are e-mailed only when the call says so', async () => {
  const { importGuests, send } = await importer()
  const { body } = await importGuests(guests(1), { send_email: true })
  const { body: attendee } = await send('GET', `/attendees/${body.data.results[0].attendee_id}`)
  expect(attendee.data.ticket_email.status).not.toBe('not_requested')
})

test('imports of the same thousand guests at the same moment register each once', async () => {
  const { id, importGuests } = await importer()
  const crowd = guests(1000)
  const answers = await Promise.all([
    importGuests(crowd),
    importGuests(crowd.toReversed()),
    importGuests(crowd.slice(300)),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(answers.map(({ body }) => body.data.created).reduce((sum, n) => sum + n)).toBe(1000)
  expect(answers.map(({ body }) => body.data.refused)).toEqual([0, 0, 0])
  expect(await countsOf(id)).toEqual({ orders: 1000, attendees: 1000, sold: 1000 })
})

test('an idempotency key replays the results', async () => {
  const { importGuests } = await importer()
  const key = { 'Idempotency-Key': randomUUID() }
  const first = await importGuests(guests(2), {}, key)
  const replayed = await importGuests(guests(2), {}, key)
  expect(replayed.headers.get('idempotent-replayed')).toBe('true')
  expect(replayed.body).toEqual(first.body)
})

describe('a list that is wrong as a whole is refused, and leaves nothing', () => {
  test.each<[string, (n: number) => Guest[], string]>([
    ['an external_id twice', () => [guest(1), guest(2), guest(1)], 'attendees.2.external_id'],
    ['1,001 guests', () => guests(1001), 'attendees'],
    ['no guest', () => [], 'attendees'],
    ['a guest without external_id', () => [guest(1), guest(2, { external_id: undefined })], 'attendees.1.external_id'],
    ['an unknown field', () => [guest(1, { phone: '1' })], 'attendees.0.phone'],
  ])('%s', async (_what, list, param) => {
    const { id, importGuests } = await importer()
    const { status, body } = await importGuests(list(0))
    expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', param])
    expect(await countsOf(id)).toEqual({ orders: 0, attendees: 0, sold: 0 })
  })

  test('more than 2 MiB; other routes take 256 KiB', async () => {
    const { id, importGuests, send, ticketTypeId } = await importer()
    const large = guests(1000).map((g) => ({
      ...g,
      metadata: { a: 'x'.repeat(490), b: 'y'.repeat(490), c: 'z'.repeat(490) },
    }))
    const within = await importGuests(large)
    expect([within.status, within.body.data?.created]).toEqual([200, 1000])
    const beyond = await importGuests(
      large.map((g) => ({ ...g, metadata: { ...g.metadata, d: 'd'.repeat(490), e: 'e'.repeat(490) } })),
    )
    expect([beyond.status, beyond.body.error.code]).toEqual([413, 'payload_too_large'])
    const elsewhere = await send('POST', `/events/${id}/registrations`, {
      ticket_type_id: ticketTypeId,
      attendees: large,
    })
    expect(elsewhere.status).toBe(413)
  })
})
