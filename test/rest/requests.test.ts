// The log of requests, as its readers find it: a line for each answered call, theirs alone, and nothing of what was sent.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { during } from '../support/database.ts'
import { connectV1 } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

type Send = ReturnType<typeof rest>

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const key = await organisation.key()
  return { organisation, event, key, send: rest(key), path: `/events/${event.id}/registrations` }
}

const list = async (send: Send, query: object): Promise<Record<string, unknown>[]> =>
  (await send('GET', `/requests?${new URLSearchParams({ ...query })}`)).body.data

/** Once there are so many: lines are written after their answers. */
async function untilListed(send: Send, query: object, count = 1) {
  await expect.poll(() => list(send, query)).toHaveLength(count)
  return list(send, query)
}

const guest = { name: 'Mary Jackson', email: 'mary' }

test('a refused call is found by the id in its answer, and says why without what was sent', async () => {
  const { event, send, path } = await arrange()
  const sent = { ...guest, ticket_type_id: event.ticketTypeId }
  const { body } = await send('POST', path, sent, { 'Idempotency-Key': 'crm-4711' })
  const { request_id } = body.error
  expect(await untilListed(send, { request_id })).toEqual([
    {
      object: 'request',
      id: expect.any(String),
      request_id,
      source: 'api',
      method: 'POST',
      route: '/api/v1/events/{event_id}/registrations',
      status: 422,
      code: 'validation_failed',
      param: 'email',
      duration_ms: expect.any(Number),
      api_key_id: expect.any(String),
      idempotency_key: 'crm-4711',
      created_at: expect.any(String),
    },
  ])
})

test('over MCP an assistant finds why its call failed, by tool and with the code that it saw', async () => {
  const { event, key } = await arrange()
  const mcp = await connectV1(key)
  const args = { event: event.id, ticket_type: event.ticketTypeId, ...guest, idempotency_key: 'a\u0000b' }
  const { request_id, code } = await mcp.refusal('register_attendee', { ...args, idempotency_key: 'first' })
  await mcp.refusal('register_attendee', args)
  await mcp.call('get_api_key')

  const line = { request_id, source: 'mcp', route: 'register_attendee', status: 422, code, param: 'email' }
  const own = async (args: object) => (await mcp.call('list_requests', { ...args })).data
  await expect.poll(() => own({ request_id })).toEqual([expect.objectContaining(line)])
  expect(await own({ request_id, fields: ['idempotency_key'] })).toMatchObject([{ idempotency_key: 'first' }])
  await expect.poll(() => own({ route: 'get_api_key' })).toEqual([expect.objectContaining({ status: 200 })])
  // One line for each call of a tool: none for the handshake and the list of tools.
  const routes = ((await own({ limit: 100 })) as { route: string }[]).map(({ route }) => route)
  expect(new Set(routes)).toEqual(new Set(['register_attendee', 'get_api_key', 'list_requests']))
})

test('a key sees its own requests, one with events:write those of its organisation, and none those of another', async () => {
  const [ours, theirs] = [await arrange(), await arrange()]
  const door = rest(await ours.organisation.key('checkin:write'))
  const id = randomUUID()
  const ids = { 'X-Request-Id': id }
  await ours.send('GET', '/me', undefined, ids)
  await door('GET', '/me', undefined, ids)
  await theirs.send('GET', '/nowhere', undefined, ids)

  const query = { request_id: id }
  const [ofDoor, ofOurs] = await untilListed(ours.send, query, 2)
  expect(ofDoor?.api_key_id).not.toBe(ofOurs?.api_key_id)
  expect(await untilListed(door, query)).toEqual([ofDoor])
  // Whose id it is makes no difference.
  const [ofTheirs] = await untilListed(theirs.send, query)
  expect(ofTheirs).toMatchObject({ route: null, status: 404, code: 'unknown_path' })
  expect([ofOurs?.id, ofDoor?.id]).not.toContain(ofTheirs?.id)
})

test('lines are filtered by status and route, newest first, page by page', async () => {
  const { event, send } = await arrange()
  const answered = [
    await send('GET', '/events'),
    await send('GET', `/events/${event.id}`),
    await send('GET', `/events/${randomUUID()}`),
    await send('GET', `/events/${event.id}`, undefined, { 'If-None-Match': 'a' }),
  ]
  const [all, own, missing, again] = answered.map(({ headers }) => headers.get('x-request-id'))
  const found = async (query: object) => (await list(send, query)).map(({ request_id }) => request_id)
  const route = '/api/v1/events/{event_id}'
  await untilListed(send, { route }, 3)
  expect(await found({ route })).toEqual([again, missing, own])
  expect(await found({ route, failed: false })).toEqual([again, own])
  expect(await found({ failed: true })).toEqual([missing])
  expect(await found({ status: 404 })).toEqual([missing])
  expect(await found({ route: '/api/v1/events' })).toEqual([all])

  const { body: first } = await send('GET', `/requests?${new URLSearchParams({ route, limit: '2' })}`)
  expect(first.has_more).toBe(true)
  expect(await found({ route, cursor: first.next_cursor })).toEqual([own])
})

test('a key that is sent by mistake is not in the log', async () => {
  const { key, send, path } = await arrange()
  await send('GET', `/me?${key}=1`)
  await send('POST', path, guest, { 'Idempotency-Key': key })
  const lines = await untilListed(send, { failed: true }, 2)
  expect(lines.map(({ param }) => param)).toEqual([expect.any(String), null])
  expect(JSON.stringify(lines)).not.toContain(key.slice(0, 19))
})

test('an organisation that is being emptied loses its lines, and holds up those of no other', async () => {
  const [emptied, other] = [await arrange(), await arrange()]
  await during(async (client) => {
    await client.query('select from public.organisations where id = $1 for update', [emptied.organisation.id])
    await emptied.send('GET', '/me')
    const id = randomUUID()
    await other.send('GET', '/me', undefined, { 'X-Request-Id': id })
    await untilListed(other.send, { request_id: id })
  })
})
