// What a caller is answered when the connection to the database breaks, or Postgres ends the transaction for another: whether the request
// may be sent again, and that it then happens once.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { during, studio } from '../support/database.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { appOfThisFile, ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { type Breaks, raised, watchedDataApi } from '../support/watched-data-api.ts'

/** PostgREST, but the next calls of functions other than resolve_api_key are carried out and answered as told, in order. */
async function startBreaking() {
  const told: { carryOut: boolean; breaks: Breaks }[] = []
  const asked: string[] = []
  const dataApi = await watchedDataApi((fn, res) => {
    asked.push(fn)
    const next = fn === 'resolve_api_key' ? undefined : told.shift()
    if (next?.carryOut !== false) return next?.breaks
    next.breaks(res)
  })
  return { told, asked, ...dataApi }
}

const dataApi = await startBreaking()
const { url } = await appOfThisFile({ dataApiUrl: dataApi.url })
let organisation: TestOrganisation
let key: string
beforeAll(async () => {
  organisation = await createOrganisation()
  key = await organisation.key()
})
afterAll(dataApi.close)

/** An event, and what becomes of the next calls. */
async function arrange(api = { dataApi, url }) {
  const { told, asked } = api.dataApi
  const event = await organisation.event()
  const send = rest(key, api.url)
  told.length = 0
  expect((await send('GET', '/me')).status).toBe(200)
  asked.length = 0
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  return {
    ...{ event, send, asked },
    carriedOutAnd: (breaks: Breaks) => told.push({ carryOut: true, breaks }),
    insteadOf: (breaks: Breaks) => told.push({ carryOut: false, breaks }),
    register: (idempotencyKey?: string) =>
      send('POST', `/events/${event.id}/registrations`, guest, {
        ...(idempotencyKey !== undefined && { 'Idempotency-Key': `${event.id} ${idempotencyKey}` }),
      }),
    registerOverMcp: async (idempotencyKey: string) => {
      const args = { event_id: event.id, ...guest, idempotency_key: `${event.id} ${idempotencyKey}` }
      const { body } = await post(toolCall('register_attendee', args), jsonHeaders(key), { apiUrl: api.url })
      const { content } = (body as { result: { content: [{ text: string }] } }).result
      return JSON.parse(content[0].text)
    },
  }
}

async function pidsWaitingFor(pid: number | undefined): Promise<number[]> {
  const found = await studio.query<{ pid: number }>(
    'select pid from pg_stat_activity where $1 = any(pg_blocking_pids(pid))',
    [pid],
  )
  return found.rows.map((waiting) => waiting.pid)
}

const breakages: [string, Breaks][] = [
  ['resets the connection', (res) => res.destroy()],
  [
    'breaks off in the answer',
    (res) => res.writeHead(200, { 'Content-Length': 100 }).write('{"data', () => res.destroy()),
  ],
  ['says what PostgREST says of a lost connection', raised(400, '', '')],
  ['is a gateway that says 502', (res) => res.writeHead(502).end('<html>Bad Gateway</html>')],
  ['is a gateway that says 504', raised(504, '', 'The upstream server is timing out')],
  ['says 57P01', raised(500, '57P01', 'terminating connection due to administrator command')],
  ['says 08006', raised(503, '08006', 'server closed the connection unexpectedly')],
  ['says that PostgREST lost its connection', raised(503, 'PGRST001')],
  ['says nothing that anybody knows', raised(500, 'PGRSTX00')],
]

test.each(breakages)(
  'a write whose way back %s is of unknown outcome, and under its key it happens once; a read may be repeated',
  async (_what, breaks) => {
    const { carriedOutAnd, register, send, event } = await arrange()
    carriedOutAnd(breaks)
    const lost = await register('one')
    expect([lost.status, lost.body.error.code, lost.body.error.retryable]).toEqual([503, 'outcome_unknown', true])
    expect(lost.headers.get('retry-after')).toBe('1')
    const again = await register('one')
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(await event.sold()).toBe(1)

    // Without a key nobody is told to repeat it.
    carriedOutAnd(breaks)
    const { status, body } = await register()
    expect([status, body.error.code, body.error.retryable]).toEqual([503, 'outcome_unknown', false])
    expect(body.error.hint).toContain('Check whether it was carried out')
    expect(await event.sold()).toBe(2)

    carriedOutAnd(breaks)
    const read = await send('GET', '/me')
    expect([read.status, read.body.error.code, read.body.error.retryable]).toEqual([503, 'outcome_unknown', true])
  },
)

test('over MCP as well a write is of unknown outcome, and under its key it happens once', async () => {
  const { carriedOutAnd, registerOverMcp, event } = await arrange()
  carriedOutAnd((res) => res.destroy())
  const { error } = await registerOverMcp('one')
  expect([error.code, error.retryable]).toEqual(['outcome_unknown', true])
  await registerOverMcp('one')
  expect(await event.sold()).toBe(1)
})

test('a database that kills the connection in the middle of a write leaves nothing behind, and the write can be repeated', async () => {
  const { register, event } = await arrange()
  const lost = await during(async (client) => {
    await client.query('select from public.ticket_types where id = $1 for update', [event.ticketTypeId])
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const registering = register('one')
    await expect.poll(() => pidsWaitingFor(rows[0]?.pid)).toHaveLength(1)
    await studio.query('select pg_terminate_backend($1)', await pidsWaitingFor(rows[0]?.pid))
    return registering
  })
  expect([lost.status, lost.body.error.code, lost.body.error.retryable]).toEqual([503, 'outcome_unknown', true])
  expect(await event.sold()).toBe(0)
  expect((await register('one')).status).toBe(201)
  expect((await register('one')).headers.get('idempotent-replayed')).toBe('true')
  expect(await event.sold()).toBe(1)
})

test('a request that never left is no unknown outcome', async () => {
  const own = await startBreaking()
  const { register } = await arrange({ dataApi: own, ...(await ownApp({ dataApiUrl: own.url })) })
  await own.close()
  const { status, body } = await register()
  expect([status, body.error.code, body.error.retryable]).toEqual([503, 'temporarily_unavailable', true])
})

test.each<[what: string, code: string, message?: string]>([
  ['lock timeout', '55P03'],
  ['too many connections', '53300'],
  ['full disk', '53100'],
  ['file that may not grow', 'XX000', 'could not extend file "base/5/16431": File too large'],
  ['start of the server', '57P03'],
  ['lack of a connection', 'PGRST003'],
])('a %s rolled back: it can be repeated, and the gateway does not do so by itself', async (_what, code, message) => {
  const { insteadOf, register, asked } = await arrange()
  insteadOf(raised(503, code, message))
  const { status, body } = await register()
  expect([status, body.error.code, body.error.retryable]).toEqual([503, 'temporarily_unavailable', true])
  expect(asked).toEqual(['register_attendee'])
})

test('a statement that ran out of its time is never sent again as it is: the answer says what to send instead', async () => {
  const { insteadOf, register, send, event, asked } = await arrange()
  const outOfTime = async (request: () => ReturnType<typeof send>, instead: RegExp) => {
    insteadOf(raised(500, '57014'))
    const { status, headers, body } = await request()
    expect([status, body.error.code, body.error.retryable]).toEqual([503, 'out_of_time', false])
    expect([headers.get('retry-after'), body.error.hint]).toEqual([null, expect.stringMatching(instead)])
  }
  await outOfTime(register, /Find the blocking change/)
  await outOfTime(() => send('GET', '/attendees?search=jackson'), /smaller limit/)
  const attendees = [{ name: 'Mary Jackson', email: 'mary@example.com', external_id: 'one' }]
  await outOfTime(() => send('POST', `/events/${event.id}/attendees/import`, { attendees }), /in parts/)
  // It may be what others wait for.
  await outOfTime(() => send('PATCH', `/events/${event.id}`, { name: 'Another' }), /too large for one request/)
  expect(asked).toEqual(['register_attendee', 'list_attendees', 'import_attendees', 'update_event'])
})

test.each([
  ['deadlock', '40P01'],
  ['serialisation failure', '40001'],
  ['race for something unique', '23505'],
])('a %s is tried once more', async (_what, code) => {
  const { insteadOf, register, asked, event } = await arrange()
  insteadOf(raised(409, code))
  expect((await register()).status).toBe(201)
  expect(asked).toEqual(['register_attendee', 'register_attendee'])
  expect(await event.sold()).toBe(1)
})

test('a second deadlock is told, as one that may be tried again', async () => {
  const { insteadOf, register, asked } = await arrange()
  for (let i = 0; i < 2; i++) insteadOf(raised(500, '40P01'))
  const { status, body } = await register()
  expect([status, body.error.code, body.error.retryable]).toEqual([503, 'temporarily_unavailable', true])
  expect(asked).toHaveLength(2)
})
