// What is kept is what was sent, or it is refused by name: nothing of metadata changes on its way. A change is merged into what is there.

import { describe, expect, test } from 'vitest'
import { clients, type HttpAnswer, jsonHeaders, post } from '../support/mcp.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'

const [current = clients[0]] = clients.filter(({ revision }) => revision === '2026-07-28')

const event = (metadata: string) => `{"name":"Fair","metadata":${metadata}}`

const anyKey = async () => (await createOrganisation()).key()
const refusing = once(anyKey)
/** Of an organisation that has events. */
const accepting = once(anyKey)

async function overMcp(key: string, metadata: string): Promise<Record<string, unknown>> {
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_event","arguments":${event(metadata)}}}`
  const { body }: HttpAnswer = await post(text, jsonHeaders(key))
  const { result } = body as { result: { content: { text: string }[] } }
  return JSON.parse(result.content[0]?.text ?? '')
}

test.each([
  ['9007199254740992', 'visits'],
  ['-9007199254740992', 'visits'],
  ['12345678901234567', 'visits'],
  ['1e300', 'visits'],
  ['1e999', 'visits'],
  ['0.12345678901234567890', 'visits'],
  ['1234567890.1234567890', 'visits'],
  ['3.14159265358979323846', 'visits'],
  ['1e-400', 'visits'],
  [`0.${'1'.repeat(300)}`, 'visits'],
])('a number that cannot be kept exactly is refused by name: %s', async (number, name) => {
  const key = await refusing()
  const { status, body } = await rest(key)('POST', '/events', event(`{"${name}":${number}}`))
  expect(problemOf({ status, body })).toEqual(invalid(`metadata.${name}`))
  expect(body.error.message).toMatch(
    /must be a number that can be stored exactly: a whole number between -9007199254740991 and/,
  )
  expect(await overMcp(key, `{"${name}":${number}}`)).toMatchObject({
    error: { code: 'validation_failed', param: `metadata.${name}`, message: body.error.message },
  })
})

test('an amount of too many digits is refused by name as well', async () => {
  const send = rest(await accepting())
  const { status, body } = await send('POST', '/events', '{"name":"Fair","capacity":10.00000000000000001}')
  expect([status, body.error.param]).toEqual([422, 'capacity'])
})

test('every other number, text and name is kept as it was sent, over REST and over MCP', async () => {
  const key = await accepting()
  const metadata = {
    largest: 9007199254740991,
    smallest: -9007199254740991,
    tenth: 0.1,
    sum: 0.30000000000000004,
    small: 1.5e-10,
    pi: Math.PI,
    digits: '12345678901234567890',
    constructor: 'kept',
    toString: 1,
    hasOwnProperty: null,
    valueOf: false,
    prototype: 'a',
    '2': 'two',
    'Zo\u00eb \u{1f600}': '\u{1f600}',
  }
  const text = JSON.stringify(metadata).replace('"tenth":0.1,', '"tenth":0.1000000000000000000,')
  const { status, body } = await rest(key)('POST', '/events', event(text))
  expect(status).toBe(201)
  expect(body.data.metadata).toEqual(metadata)
  expect((await rest(key)('GET', `/events/${body.data.id}`)).body.data.metadata).toEqual(metadata)
  const { data } = (await overMcp(key, text)) as { data: { id: string } }
  expect((await rest(key)('GET', `/events/${data.id}`)).body.data.metadata).toEqual(metadata)
})

test.each([
  ['{"name":"Fair","metadata":{"a":1,"__proto__":{"admin":true}}}', 'metadata.__proto__'],
  ['{"name":"Fair","metadata":{"\\u005f_proto__":1}}', 'metadata.__proto__'],
  ['{"name":"Fair","venue":{"__proto__":null}}', 'venue.__proto__'],
  ['{"name":"Fair","__proto__":{"slug":"x"}}', '__proto__'],
])('__proto__ is refused by name rather than dropped: %s', async (text, param) => {
  const key = await refusing()
  expect(problemOf(await rest(key)('POST', '/events', text))).toEqual(invalid(param))
  const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_event","arguments":${text}}}`
  const answer = await post(call, jsonHeaders(key))
  expect(JSON.stringify(answer.body)).toContain(`\\"param\\":\\"${param}\\"`)
  expect((await rest(key)('GET', '/events')).body.data).toEqual([])
})

test('__proto__ is refused in a change and in a list, too', async () => {
  const { event, send } = await createOrganiser()
  const changed = await send('PATCH', `/events/${event.id}`, '{"metadata":{"__proto__":1}}')
  expect([changed.status, changed.body.error.param]).toEqual([422, 'metadata.__proto__'])
  const guests = '{"attendees":[{"name":"A","email":"a@example.com","metadata":{"__proto__":1}}]}'
  const registered = await send('POST', `/events/${event.id}/registrations`, guests)
  expect([registered.status, registered.body.error.param]).toEqual([422, 'attendees.0.metadata.__proto__'])
})

test('a time of 200 decimals is refused by its own name, and one of nine is taken', async () => {
  const key = await accepting()
  const time = (decimals: number) => `2027-01-01T00:00:00.${'1'.repeat(decimals)}Z`
  const { status, body } = await rest(key)('POST', '/events', { name: 'Fair', starts_at: time(200) })
  expect([status, body.error.param]).toEqual([422, 'starts_at'])
  expect((await rest(key)('POST', '/events', { name: 'Fair', starts_at: time(9) })).status).toBe(201)
  const mcp = await current?.connect(key)
  expect((await mcp?.refusal('list_orders', { updated_after: time(200) }))?.param).toBe('updated_after')
})

test('lengths are counted in characters, as the database counts them', async () => {
  const send = rest(await accepting())
  const { status, body } = await send('POST', '/events', { name: '\u{1f600}'.repeat(200) })
  expect([status, body.data?.name]).toEqual([201, '\u{1f600}'.repeat(200)])
  expect((await send('POST', '/events', { name: '\u{1f600}'.repeat(201) })).body.error.param).toBe('name')
})

describe('a change of metadata', () => {
  const organisationOfAll = once(async () => {
    const { event, send } = await createOrganiser({ quantity: 1 })
    const { orderId, attendeeId } = await event.guest()
    const ada = { ticket_type_id: event.ticketTypeId, name: 'Ada', email: 'ada@example.com' }
    const waiting = await send('POST', `/events/${event.id}/waiting-list`, ada)
    const paths = {
      event: `/events/${event.id}`,
      'ticket type': `/ticket-types/${event.ticketTypeId}`,
      order: `/orders/${orderId}`,
      attendee: `/attendees/${attendeeId}`,
      'entry of the waiting list': `/waiting-list-entries/${waiting.body.data.id}`,
    }
    return { send, paths }
  })

  test.each(['event', 'ticket type', 'order', 'attendee', 'entry of the waiting list'] as const)(
    'of an %s keeps the keys that it does not name; null removes one, and what changes nothing is no edit',
    async (kind) => {
      const { send, paths } = await organisationOfAll()
      const patch = async (metadata: object) => (await send('PATCH', paths[kind], { metadata })).body
      await patch({ diet: 'vegan', table: 4, vip: true })
      const { data } = await patch({ table: null, diet: 'none', bus: false, unknown: null })
      expect(data.metadata).toEqual({ diet: 'none', vip: true, bus: false })
      for (const same of [{}, { diet: 'none' }, { table: null }]) {
        expect((await patch(same)).data).toMatchObject({ metadata: data.metadata, version: data.version })
      }
      // The limit is that of the result, and what is removed with it makes room.
      const many = Object.fromEntries(Array.from({ length: 48 }, (_, i) => [`key ${i}`, i]))
      expect((await patch(many)).error).toMatchObject({ code: 'validation_failed', param: 'metadata' })
      expect((await send('GET', paths[kind])).body.data).toEqual(data)
      expect((await patch({ ...many, vip: null })).data.metadata).toEqual({ diet: 'none', bus: false, ...many })
      // Each knows a key of its own.
      await patch(Object.fromEntries(Object.keys(many).map((key) => [key, null])))
      await Promise.all(Array.from({ length: 12 }, (_, i) => patch({ [`system ${i}`]: i })))
      const { body } = await send('GET', paths[kind])
      expect(Object.keys(body.data.metadata)).toHaveLength(14)
    },
  )
})
