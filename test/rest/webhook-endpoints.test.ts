// Webhook endpoints over REST: made, read, changed, deleted and tried; and what is refused as one.

import { describe, expect, test } from 'vitest'
import { othersOfLoopback, privateHosts, spellingsOfLoopback } from '../courier/hostile-hosts.ts'
import { rolledBack } from '../database/as-courier.ts'
import { row, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addEndpoint, enqueued, everyType, logOf } from '../support/outbox.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

const url = 'https://hooks.example.com/usher'

async function arrange() {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const create = (body: object = {}, headers = {}) =>
    send('POST', '/webhook-endpoints', { url, types: ['order.created'], ...body }, headers)
  return { organisation, send, create }
}

/** With one endpoint. */
const refusing = once(async () => {
  const it = await arrange()
  const { secret: _, ...endpoint } = (await it.create()).body.data
  return { ...it, endpoint }
})

const endpointsOf = async (organisationId: string) =>
  (
    await row<{ n: number }>('select count(*)::int as n from public.webhook_endpoints where organisation_id = $1', [
      organisationId,
    ])
  ).n

test('an endpoint is made with what was asked for, enabled', async () => {
  const { create, send } = await arrange()
  const { status, headers, body } = await create({ description: 'CRM', types: ['event.updated', 'order.created'] })
  expect([status, headers.get('etag')]).toEqual([201, expect.stringMatching(/^"1-/)])
  expect(body.data).toMatchObject({
    url,
    description: 'CRM',
    types: ['order.created', 'event.updated'],
    status: 'enabled',
    disabled_reason: null,
    version: 1,
  })
  expect((await send('GET', `/webhook-endpoints/${body.data.id}`)).body.data).toEqual({ ...body.data, secret: null })
})

test('an organisation has at most fifty, in Studio as well', async () => {
  const { organisation, create } = await arrange()
  await studio.query(
    `insert into public.webhook_endpoints (organisation_id, url, types)
     select $1, 'https://hooks.example.com/usher', '{order.created}' from generate_series(1, 50)`,
    [organisation.id],
  )
  const { status, body } = await create()
  expect([status, body.error.code]).toEqual([409, 'too_many_webhook_endpoints'])
  await expect(addEndpoint(organisation.id)).rejects.toThrow('at most 50 webhook endpoints')
  await studio.query(
    'delete from public.webhook_endpoints where id = (select id from public.webhook_endpoints where organisation_id = $1 limit 1)',
    [organisation.id],
  )
  expect((await create()).status).toBe(201)
})

test('an endpoint may subscribe to everything; a type named twice is subscribed to once', async () => {
  const { create } = await arrange()
  expect((await create({ types: everyType })).body.data.types).toEqual(everyType)
  expect((await create({ types: ['event.updated', 'event.updated'] })).body.data.types).toEqual(['event.updated'])
})

test('* stands alone for every type, and needs the scopes of all', async () => {
  const { organisation, create, send } = await arrange()
  const endpoint = (await create({ types: ['*'] })).body.data
  expect(endpoint.types).toEqual(['*'])
  const narrow = rest(await organisation.key('events:write', 'events:read', 'orders:read'))
  expect((await narrow('POST', '/webhook-endpoints', { url, types: ['*'] })).body.error).toMatchObject({
    code: 'missing_scope',
    details: { scope: 'attendees:read' },
  })

  const event = await organisation.event()
  await event.guest()
  // Not of the types: it has its delivery, and a second one would hold up all that is queued.
  expect((await send('POST', `/webhook-endpoints/${endpoint.id}/test`)).status).toBe(201)
  await enqueued(organisation.id)
  const deliveries = async () => (await send('GET', '/webhook-deliveries')).body.data
  expect((await deliveries()).map(({ type }: { type: string }) => type).sort()).toEqual([
    'event.published',
    'order.completed',
    'order.created',
    'webhook_endpoint.test',
  ])
  const { id } = (await deliveries()).find(({ type }: { type: string }) => type !== 'webhook_endpoint.test')
  expect((await send('POST', `/webhook-deliveries/${id}/redeliver`)).status).toBe(200)
  await send('PATCH', `/webhook-endpoints/${endpoint.id}`, { types: ['order.created'] })
  const statuses = (await deliveries()).map(({ type, status }: Record<string, string>) => `${type} ${status}`)
  expect(statuses.sort()).toEqual([
    'event.published cancelled',
    'order.completed cancelled',
    'order.created pending',
    'webhook_endpoint.test pending',
  ])
})

test('a change leaves out what stays, and null clears', async () => {
  const { create, send } = await arrange()
  const { id } = (await create({ description: 'CRM' })).body.data
  const path = `/webhook-endpoints/${id}`
  const changed = await send('PATCH', path, { url: 'https://other.example.com', types: ['event.updated'] })
  expect([changed.status, changed.headers.get('etag')]).toEqual([200, expect.stringMatching(/^"2-/)])
  expect(changed.body.data).toMatchObject({
    url: 'https://other.example.com',
    types: ['event.updated'],
    description: 'CRM',
    status: 'enabled',
    secret: null,
    version: 2,
  })
  expect((await send('PATCH', path, { description: null })).body.data).toMatchObject({ description: null, version: 3 })
  expect((await send('GET', path)).body.data).toMatchObject({ url: 'https://other.example.com', version: 3 })
})

test('an endpoint is disabled and enabled again, which forgets why it was', async () => {
  const { create, send } = await arrange()
  const { id } = (await create()).body.data
  const path = `/webhook-endpoints/${id}`
  expect((await send('PATCH', path, { status: 'disabled' })).body.data).toMatchObject({
    status: 'disabled',
    disabled_reason: null,
  })
  await edit('webhook_endpoints', id, "disabled_reason = 'It answered 410.'")
  expect((await send('GET', path)).body.data.disabled_reason).toBe('It answered 410.')
  expect((await send('PATCH', path, { status: 'enabled' })).body.data).toMatchObject({
    status: 'enabled',
    disabled_reason: null,
  })
})

describe('deleting an endpoint', () => {
  test('forgets it with its secret and deliveries, and not what happened', async () => {
    const { organisation, create, send } = await arrange()
    const event = await organisation.event()
    const { id } = (await create()).body.data
    const kept = await addEndpoint(organisation.id)
    await event.guest()
    await enqueued(organisation.id)
    const log = await logOf(organisation.id)

    const deleted = await send('DELETE', `/webhook-endpoints/${id}`)
    expect([deleted.status, deleted.body.data]).toEqual([200, { object: 'webhook_endpoint', id, deleted: true }])
    expect((await send('GET', `/webhook-endpoints/${id}`)).status).toBe(404)
    expect((await send('DELETE', `/webhook-endpoints/${id}`)).status).toBe(404)
    const deliveries = (await send('GET', '/webhook-deliveries')).body.data as { webhook_endpoint_id: string }[]
    expect(deliveries.map((d) => d.webhook_endpoint_id)).toEqual([kept, kept])
    expect(
      await row('select count(*)::int as n from private.webhook_secrets where webhook_endpoint_id = $1', [id]),
    ).toEqual({
      n: 0,
    })
    expect(await logOf(organisation.id)).toEqual(log)
  })

  test.each([
    ['a body', { dry_run: true }, {}, 'dry_run'],
    ['If-Match', undefined, { 'If-Match': '"1"' }, 'If-Match'],
  ])('takes no %s, rather than ignore it', async (_what, body, headers, param) => {
    const { organisation, create, send } = await arrange()
    const { id } = (await create()).body.data
    expect(problemOf(await send('DELETE', `/webhook-endpoints/${id}`, body, headers))).toEqual(invalid(param))
    expect(await endpointsOf(organisation.id)).toBe(1)
  })
})

describe('a test', () => {
  test('is pending for the one endpoint, whatever it is subscribed to, and describes that endpoint', async () => {
    const { organisation, create, send } = await arrange()
    const { secret: _, ...endpoint } = (await create()).body.data
    await addEndpoint(organisation.id)
    const tried = await send('POST', `/webhook-endpoints/${endpoint.id}/test`)
    expect(tried.status).toBe(201)
    expect(tried.body.data).toMatchObject({
      webhook_endpoint_id: endpoint.id,
      type: 'webhook_endpoint.test',
      status: 'pending',
      attempts: 0,
      next_attempt_at: expect.any(String),
      last_response: null,
      delivered_at: null,
    })
    expect((await send('GET', '/webhook-deliveries')).body.data).toEqual([tried.body.data])
    expect(await logOf(organisation.id)).toEqual([
      { type: 'webhook_endpoint.test', data: { ...endpoint, secret: null } },
    ])
  })
})

describe('an address', () => {
  const accepting = once(arrange)

  test.each([
    'https://example.com',
    'https://example.com:8443/hooks?source=usher#top',
    'https://9.9.9.9/',
    'https://172.32.0.1:8443',
    'https://[2620:fe::fe]/',
    'https://10.0.0.1.example.com/',
    'https://local.example.com',
    `https://example.com/${'x'.repeat(1980)}`,
  ])('may be %s', async (good) => {
    const { create } = await accepting()
    expect((await create({ url: good })).body.data.url).toBe(good)
  })

  test.each([
    'http://example.com',
    'http://localhost.example.com',
    'https://localhost/',
    'http://127.0.0.1:3000',
    'https://printer.LOCAL.:443/',
    'https://10.0.0.1/hooks',
    'http://127.0.0.1.example.com/',
    'http://localhost@example.com',
    'https://user:password@example.com/',
    'https://user@example.com',
    'ftp://example.com',
    'javascript:alert(1)',
    'example.com',
    'https://',
    'https:///hooks',
    'https://example.com/a b',
    'https://exa mple.com',
    'https://example.com/\nHost: evil',
    `https://example.com/${'x'.repeat(1981)}`,
    '',
    7,
    null,
  ])('may not be %j, whoever writes it', async (bad) => {
    const {
      organisation,
      create,
      send,
      endpoint: { id },
    } = await refusing()
    for (const answer of [await create({ url: bad }), await send('PATCH', `/webhook-endpoints/${id}`, { url: bad })]) {
      expect(problemOf(answer)).toEqual(invalid('url'))
    }
    expect((await send('GET', `/webhook-endpoints/${id}`)).body.data).toMatchObject({ url, version: 1 })
    expect(await endpointsOf(organisation.id)).toBe(1)

    const insert = studio.query(
      "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, $2, '{order.created}')",
      [organisation.id, bad],
    )
    await expect(insert).rejects.toMatchObject({ code: 'PT422' })
  })

  test.each([...spellingsOfLoopback, ...othersOfLoopback, ...privateHosts])(
    'may not be of %s, in Studio either',
    async (host) => {
      const { rows } = await studio.query('select private.is_internal_url($1) as internal', [`https://${host}/`])
      expect(rows).toEqual([{ internal: true }])
    },
  )

  test.each([
    ['inodes:1:2:3', true],
    ['address:http://127.0.0.1:54321', true],
    ['project:abcdefghijklmnopqrst', false],
  ])('of this machine is for developing, not where %s is the installation', async (name, may) => {
    const { organisation } = await accepting()
    await rolledBack(async (client) => {
      await client.query('insert into private.installations (system_identifier, names) values (1, $1)', [[name]])
      for (const local of [
        'http://localhost:3000/hooks',
        'http://127.0.0.1/',
        'http://[::1]:8080',
        'https://localhost',
      ]) {
        await client.query('savepoint before')
        const insert = client.query(
          "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, $2, '{order.created}')",
          [organisation.id, local],
        )
        expect(await insert.then(() => 'taken').catch((error) => error.code), local).toBe(may ? 'taken' : 'PT422')
        await client.query('rollback to before')
      }
    })
  })

  test('that leads here does not keep an endpoint from being disabled', async () => {
    const { organisation, send } = await accepting()
    const id = await addEndpoint(organisation.id)
    await rolledBack(async (client) => {
      await client.query("insert into private.installations (system_identifier, names) values (1, '{made:1}')")
      await client.query("update public.webhook_endpoints set url = 'http://localhost:1' where id = $1", [id])
      await client.query('delete from private.installations')
      await client.query('commit')
    })
    const { status, body } = await send('PATCH', `/webhook-endpoints/${id}`, { status: 'disabled' })
    expect([status, body.data?.url, body.data?.status]).toEqual([200, 'http://localhost:1', 'disabled'])
  })

  // No text, or no URL: nothing could ever be sent there.
  test.each([
    'https://example.com/\ud800',
    'https://example.com:port',
    'https://[',
    'https://%zz',
    'https://:443',
    'https://example.com:99999',
    'https://[::1',
    'https://example.com/\u0007',
    'https://example.com/\u0000',
  ])('may not be %j', async (bad) => {
    const { create } = await refusing()
    const { status, body } = await create({ url: bad })
    expect([status, body.error?.param]).toEqual([422, 'url'])
  })
})

test.each([
  [{ types: [] }, 'types'],
  [{ types: undefined }, 'types'],
  [{ types: 'order.created' }, 'types'],
  [{ types: ['order.paid'] }, 'types.0'],
  [{ types: ['order.created', 'webhook_endpoint.test'] }, 'types.1'],
  [{ types: ['*', 'order.created'] }, 'types'],
  [{ types: [null] }, 'types.0'],
  [{ description: 'x'.repeat(201) }, 'description'],
  [{ description: 'two\nlines' }, 'description'],
  [{ secret: 'whsec_mine' }, 'secret'],
  [{ status: 'disabled' }, 'status'],
])('an endpoint with %j is refused, naming %s, and none is made', async (body, param) => {
  const { organisation, create } = await refusing()
  expect(problemOf(await create(body))).toEqual(invalid(param))
  expect(await endpointsOf(organisation.id)).toBe(1)
})
