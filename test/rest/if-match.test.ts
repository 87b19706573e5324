// If-Match and Idempotency-Key over REST, and the arguments they are over MCP.

import { expect, test } from 'vitest'
import { clients } from '../support/mcp.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'

const [current = clients[0]] = clients.filter(({ revision }) => revision === '2026-07-28')

const caller = once(async () => {
  const organisation = await createOrganisation()
  return organisation.key()
})

async function arrange() {
  const key = await caller()
  const send = rest(key)
  const { body } = await send('POST', '/events', { name: 'Fair' })
  const path = `/events/${body.data.id}`
  const change = (ifMatch: string, name = 'Fair') => send('PATCH', path, { name }, { 'If-Match': ifMatch })
  return { key, send, path, id: body.data.id as string, change }
}

const refusing = once(arrange)

test.each([
  ['"1"', 200],
  ['W/"1"', 200],
  [`"1-${'x'.repeat(22)}"`, 200],
  ['*', 200],
  ['"7", "1"', 200],
  ['"one", "1"', 200],
  ['"7" , W/"1","8"', 200],
  [', "1",, "2" ,', 200],
  [
    [...Array(19).keys()]
      .map((i) => `"${i + 100}"`)
      .join(', ')
      .concat(', "1"'),
    200,
  ],
  ['"2"', 412],
  ['"2", "3", W/"4"', 412],
  ['"0"', 412],
  ['"1-x"', 412],
  [`"2-${'x'.repeat(22)}"`, 412],
  ['"one"', 412],
  ['"12345678901"', 412],
])('an object of version 1 and If-Match: %s are answered %i', async (ifMatch, expected) => {
  const { change } = await (expected === 200 ? arrange : refusing)()
  const { status, body } = await change(ifMatch, 'Fair 2')
  expect(status).toBe(expected)
  if (expected === 200) return expect(body.data).toMatchObject({ name: 'Fair 2', version: 2 })
  expect(body.error).toMatchObject({ code: 'version_mismatch', param: 'If-Match', details: { version: 1 } })
})

test.each(['two', '1', '"1" "2"', '"1", two', ',', '"1", *', "'1'", Array(21).fill('"1"').join()])(
  'If-Match: %s is refused by its name',
  async (ifMatch) => {
    const { change, send, path } = await refusing()
    expect(problemOf(await change(ifMatch, 'Fair 2'))).toEqual(invalid('If-Match'))
    expect((await send('GET', path)).body.data.name).toBe('Fair')
  },
)

test('an ETag answers 304 while the answer is the same, and makes a change while the version is', async () => {
  const { send, path } = await arrange()
  const ticketType = await send('POST', `${path}/ticket-types`, { name: 'General' })
  const { id } = ticketType.body.data
  const read = (ifNoneMatch?: string) =>
    send('GET', `/ticket-types/${id}`, undefined, {
      ...(ifNoneMatch !== undefined && { 'If-None-Match': ifNoneMatch }),
    })
  const first = await read()
  const etag = first.headers.get('etag') ?? ''
  expect(etag).toBe(ticketType.headers.get('etag'))
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await read(known)
    expect([again.status, again.headers.get('etag'), again.body]).toEqual([304, etag, undefined])
  }
  await send('PATCH', path, { starts_at: '2027-06-01T18:00:00Z', ends_at: '2027-06-01T23:00:00Z' })
  await send('POST', `${path}/publish`)
  const guest = { ticket_type_id: id, name: 'Mary Jackson', email: 'mary@example.com' }
  expect((await send('POST', `${path}/registrations`, guest)).status).toBe(201)
  const sold = await read(etag)
  expect([sold.status, sold.body.data.quantity_sold, sold.body.data.version]).toEqual([200, 1, 1])
  expect(sold.headers.get('etag')).not.toBe(etag)

  const change = (name: string) => send('PATCH', `/ticket-types/${id}`, { name }, { 'If-Match': etag })
  expect((await change('Regular')).status).toBe(200)
  expect((await change('Other')).status).toBe(412)
})

test('over MCP one version is taken, and both are called by the names of the arguments', async () => {
  const { key, id } = await arrange()
  const mcp = await current?.connect(key)
  const change = { event_id: id, changes: { name: 'Fair 2' } }
  expect(await mcp?.call('update_event', { ...change, if_version: 1 })).toMatchObject({ data: { name: 'Fair 2' } })
  expect(await mcp?.refusal('update_event', { ...change, if_version: 1 })).toMatchObject({
    code: 'version_mismatch',
    param: 'if_version',
    details: { version: 2 },
  })
  expect(await mcp?.refusal('update_event', { ...change, if_version: 'two' })).toMatchObject({
    code: 'validation_failed',
    param: 'if_version',
    message: 'if_version must be a whole number',
  })
  await mcp?.call('create_event', { name: 'Other', idempotency_key: 'once' })
  expect(await mcp?.refusal('create_event', { name: 'Another', idempotency_key: 'once' })).toMatchObject({
    code: 'idempotency_key_reused',
    param: 'idempotency_key',
  })
})

test('the names of the arguments are no fields of a body: there they are refused by name', async () => {
  const { send, path } = await arrange()
  for (const field of ['if_version', 'idempotency_key']) {
    const { status, body } = await send('PATCH', path, { name: 'Fair 2', [field]: 1 })
    expect([status, body.error.param]).toEqual([422, field])
  }
})
