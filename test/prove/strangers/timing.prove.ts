// Whether the time of an answer tells what exists: another organisation's id from one that nobody has, and the beginning of a key from any
// other. Samples of both alternate in a random order. What the test can find, it shows by a delay of that size.

import { crc32 } from 'node:zlib'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { restRequestOf } from '../../../scripts/support/rest-request.ts'
import { createKey, isWellFormedKey, prefixOf } from '../../../src/gateway/api-key.ts'
import { studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { appOfThisFile } from '../../support/own-app.ts'
import { createRandom } from '../random.ts'
import { compareTimes, threshold } from './statistics.ts'
import { createThem, type Them } from './them.ts'
import { twinOf } from './trespass.ts'

const pairs = 1500
const { url } = await appOfThisFile({ trustProxy: true })
const dispatcher = new Agent({ connections: 1, pipelining: 1 })
afterAll(() => dispatcher.close())
const random = createRandom(inject('seed') ?? 1)

let them: Them
let key: string
beforeAll(async () => {
  them = await createThem()
  const ours = await createOrganisation()
  await ours.event()
  key = await ours.key()
})

type Sent = { method: string; path: string; headers?: Record<string, string>; body?: unknown }

/** Microseconds. */
async function time({ method, path, headers, body }: Sent, bearer: string): Promise<number> {
  const start = performance.now()
  const response = await request(url + path, {
    dispatcher,
    method: method as 'GET',
    headers: {
      Authorization: `Bearer ${bearer}`,
      // Whoever guesses keys is slowed down by address, which would hide what is measured.
      'X-Forwarded-For': `10.${random.below(256)}.${random.below(256)}.${random.below(256)}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  await response.body.dump()
  return (performance.now() - start) * 1000
}

async function compare(theirs: () => Promise<number>, nobodys: () => Promise<number>, count = pairs) {
  const samples: [number[], number[]] = [[], []]
  for (let i = 0; i < 200; i++) await (i % 2 === 0 ? theirs() : nobodys())
  for (let i = 0; i < count; i++) {
    const first = random.below(2)
    for (const which of [first, 1 - first] as const) samples[which]?.push(await (which === 0 ? theirs() : nobodys()))
  }
  return compareTimes(...samples)
}

const say = ({ t, difference, found }: ReturnType<typeof compareTimes>, count = pairs) =>
  `t ${t.toFixed(1)}, ${difference.toFixed(0)} µs apart; ${count} pairs would have shown ${found.toFixed(0)} µs in 95 of 100 runs`

const operation =
  (name: string, argument: string, more: () => Record<string, unknown> = () => ({})) =>
  (id: string) => {
    const { path, ...rest } = restRequestOf(name, { [argument]: id, ...more() })
    return { ...rest, path: `/api/v1${path}` }
  }
const tool = (name: string, argument: string) => (id: string) => ({
  method: 'POST',
  path: '/api/mcp',
  body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { [argument]: id } } },
})

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** With a checksum that is right, or it would be refused before it is looked up. */
function keyBeginning(prefix: string): string {
  const body = prefix + Array.from({ length: 24 }, () => base62[random.below(62)]).join('')
  let [rest, digits] = [crc32(body), '']
  for (let i = 0; i < 6; i++) [rest, digits] = [Math.floor(rest / 62), base62[rest % 62] + digits]
  if (!isWellFormedKey(body + digits)) throw new Error('the checksum of keys was changed')
  return body + digits
}

const ofGuest = () => ({ ticket_type_id: them.names.ticket_type[0], name: 'Ann', email: 'ann@example.com' })
const cases: [what: string, of: (them: Them) => string | undefined, sent: (id: string) => Sent][] = [
  ['get_event', ({ names }) => names.event[0], operation('get_event', 'event_id')],
  ['get_order by its reference', ({ names }) => names.order[1], operation('get_order', 'order_id')],
  ['list_attendees of an event', ({ names }) => names.event[0], operation('list_attendees', 'event_id')],
  ['cancel_attendee', ({ names }) => names.attendee[0], operation('cancel_attendee', 'attendee_id')],
  ['undo_check_in', ({ names }) => names.check_in[0], operation('undo_check_in', 'check_in_id')],
  ['void_payment', ({ names }) => names.payment[0], operation('void_payment', 'payment_id')],
  ['register_attendee', ({ names }) => names.event[0], operation('register_attendee', 'event_id', ofGuest)],
  ['get_attendee over MCP, by an address', ({ names }) => names.attendee.at(-1), tool('get_attendee', 'attendee')],
]

/** What is theirs, against what is nobody's. */
const compareWith = (sent: (id: string) => Sent, value: string) =>
  compare(
    () => time(sent(value), key),
    () => time(sent(twinOf(value, them)), key),
  )

test.for(cases)("%s takes as long for another organisation's as for nobody's", async ([, of, sent], { task }) => {
  const result = await compareWith(sent, of(them) as string)
  task.meta.figures = say(result)
  expect(Math.abs(result.t), say(result)).toBeLessThan(threshold)
})

test('a key is refused as late when it begins as one that exists', async ({ task }) => {
  const me = { method: 'GET', path: '/api/v1/me' }
  const result = await compare(
    () => time(me, keyBeginning(prefixOf(them.key))),
    () => time(me, createKey()),
  )
  task.meta.figures = say(result)
  expect(Math.abs(result.t), say(result)).toBeLessThan(threshold)
})

test('it would have been noticed: the same with a delay where the event exists', async ({ task }) => {
  const value = them.names.event[0] as string
  const sent = operation('get_event', 'event_id')
  const measure = () => compareWith(sent, value)
  const { found } = await measure()
  const { rows } = await studio.query<{ text: string }>(
    "select pg_get_functiondef('api.get_event(uuid)'::regprocedure) as text",
  )
  const text = rows[0]?.text ?? ''
  // Half as much again, so that one run shows it as surely as can be.
  const delay = Math.ceil(1.5 * found)
  const slowed = text.replace(
    "perform private.refuse_not_found('event_id');",
    `if get_event.event_id = '${value}' then
      declare v_until timestamptz := clock_timestamp() + interval '${delay} microseconds';
      begin while clock_timestamp() < v_until loop end loop; end;
    end if;
    perform private.refuse_not_found('event_id');`,
  )
  expect(slowed).not.toBe(text)
  await studio.query(slowed)
  try {
    const result = await measure()
    task.meta.figures = `a delay of ${delay} µs: ${say(result)}`
    expect(result.t, say(result)).toBeGreaterThan(threshold)
  } finally {
    await studio.query(text)
  }
})
