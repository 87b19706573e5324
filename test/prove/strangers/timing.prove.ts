// Whether the time of an answer tells another organisation's id from one that nobody has. Samples of both alternate in a random order. The
// last test shows that a delay of two milliseconds is found.

import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { restRequestOf } from '../../../scripts/support/rest-request.ts'
import { studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { appOfThisFile } from '../../support/own-app.ts'
import { createRandom } from '../random.ts'
import { createThem, type Them } from './them.ts'
import { twinOf } from './trespass.ts'

const pairs = 1500
/** Of dudect: chance exceeds it once in 150,000 comparisons. */
const threshold = 4.5
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
async function time({ method, path, headers, body }: Sent): Promise<number> {
  const start = performance.now()
  const response = await request(url + path, {
    dispatcher,
    method: method as 'GET',
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  await response.body.dump()
  return (performance.now() - start) * 1000
}

/** Compares what is theirs with what is nobody's. `t` above the threshold: their times differ. */
async function compare(sent: (id: string) => Sent, value: string) {
  const samples: [number[], number[]] = [[], []]
  const values = [value, twinOf(value, them)] as const
  for (let i = 0; i < 200; i++) await time(sent(values[i % 2 === 0 ? 0 : 1]))
  for (let i = 0; i < pairs; i++) {
    const first = random.below(2)
    for (const which of [first, 1 - first] as const) samples[which as 0].push(await time(sent(values[which as 0])))
  }
  return compareTimes(...samples)
}

/** Welch's t of the faster half: the noise of the slower one hides what is measured. */
function compareTimes(...samples: [number[], number[]]) {
  const limit = samples.flat().toSorted((x, y) => x - y)[pairs] ?? 0
  const [one, other] = samples.map((times) => {
    const kept = times.filter((time) => time < limit)
    const mean = kept.reduce((sum, time) => sum + time, 0) / kept.length
    const variance = kept.reduce((sum, time) => sum + (time - mean) ** 2, 0) / (kept.length - 1)
    return { mean, error: variance / kept.length }
  }) as [{ mean: number; error: number }, { mean: number; error: number }]
  const difference = one.mean - other.mean
  const t = difference / Math.sqrt(one.error + other.error)
  return { t, figures: `t ${t.toFixed(1)}, ${difference.toFixed(0)} µs apart` }
}

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

test.for(cases)("%s takes as long for another organisation's as for nobody's", async ([, of, sent], { task }) => {
  const { t, figures } = await compare(sent, of(them) as string)
  task.meta.figures = figures
  expect(Math.abs(t), figures).toBeLessThan(threshold)
})

test('a delay where the event exists is noticed', async ({ task }) => {
  const value = them.names.event[0] as string
  const { rows } = await studio.query<{ text: string }>(
    "select pg_get_functiondef('api.get_event(uuid)'::regprocedure) as text",
  )
  const text = rows[0]?.text ?? ''
  const refuse = "perform private.refuse_not_found('event_id');"
  const slowed = text.replace(
    refuse,
    `if get_event.event_id = '${value}' then perform pg_sleep(0.002); end if; ${refuse}`,
  )
  expect(slowed).not.toBe(text)
  await studio.query(slowed)
  try {
    const { t, figures } = await compare(operation('get_event', 'event_id'), value)
    task.meta.figures = figures
    expect(t, figures).toBeGreaterThan(threshold)
  } finally {
    await studio.query(text)
  }
})
