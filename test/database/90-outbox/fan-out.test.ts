// The fan-out of notifications to webhook deliveries: exactly once under couriers that run beside one another and are killed,
// for exactly those subscriptions that held, and in turns of organisations.

import fc from 'fast-check'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { row, studio } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { addEndpoint, fanOut, lockOutbox } from '../../support/outbox.ts'

const connect = async () => {
  const client = new pg.Client({ connectionString: inject('databaseUrl') })
  // Some are killed.
  client.on('error', () => {})
  await client.connect()
  return client
}

const deliveriesOf = async (organisationId: string) =>
  (
    await studio.query<{ endpoint: string; notification: string }>(
      `select webhook_endpoint_id as endpoint, notification_id as notification from public.webhook_deliveries
       where organisation_id = $1`,
      [organisationId],
    )
  ).rows

/** Notifications of so many edits, all in one transaction. */
const manyEdits = (organisationId: string, edits: number) =>
  studio.query(
    `insert into public.notifications (organisation_id, type, data)
     select $1, 'event.updated', '{}' from generate_series(1, $2::integer)`,
    [organisationId, edits],
  )

test('each notification is fanned out exactly once by two couriers, one of which is killed in the middle', async () => {
  const organisation = await createOrganisation()
  for (let i = 0; i < 5; i++) await addEndpoint(organisation.id, ['event.updated'])
  for (let i = 0; i < 20; i++) await manyEdits(organisation.id, 5)
  // Ends in the middle of a transaction's deliveries.
  const batch = (client: pg.Client) => client.query('select private.fan_out_organisation($1, 18)', [organisation.id])

  const [victim, survivor] = await Promise.all([connect(), connect()])
  // A batch that nobody commits, and then its courier is gone.
  await batch(victim)
  await victim.query('begin')
  await batch(victim)
  const working = (async () => {
    for (let i = 0; i < 10; i++) await batch(survivor)
  })()
  const { rows } = await victim.query<{ pid: number }>('select pg_backend_pid() as pid')
  await studio.query('select pg_terminate_backend($1)', [rows[0]?.pid])
  await working
  const another = await connect()
  await Promise.all(
    [survivor, another].map(async (client) => {
      for (let i = 0; i < 15; i++) await batch(client)
    }),
  )
  await fanOut(organisation.id)

  const made = await deliveriesOf(organisation.id)
  expect(made).toHaveLength(20 * 5 * 5)
  expect(new Set(made.map(({ endpoint, notification }) => `${endpoint} ${notification}`)).size).toBe(20 * 5 * 5)
  await Promise.allSettled([victim, survivor, another].map((client) => client.end()))
})

type Change =
  | { kind: 'happens'; type: 'event.updated' | 'order.created' }
  | { kind: 'subscribes'; endpoint: number; types: string[] }
  | { kind: 'status'; endpoint: number; status: 'enabled' | 'disabled' }
  | { kind: 'created'; types: string[] }
  | { kind: 'deleted'; endpoint: number }
  | { kind: 'fanned out' }

const types = fc.constantFrom<string[]>(['event.updated'], ['order.created'], ['event.updated', 'order.created'])
const endpoint = fc.nat({ max: 3 })
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('happens' as const),
      type: fc.constantFrom('event.updated' as const, 'order.created' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('subscribes' as const), endpoint, types }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('status' as const),
      endpoint,
      status: fc.constantFrom('enabled' as const, 'disabled' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('created' as const), types }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleted' as const), endpoint }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fanned out' as const) }) },
)

/** What an outbox would hold that makes its deliveries at once: `endpoint notification`, cancelled where a type is given up. */
type Model = { id: string; types: string[]; enabled: boolean; pending: Map<string, string> }

async function apply(organisation: TestOrganisation, model: Model[], it: Change): Promise<void> {
  const of = (n: number) => model[n % Math.max(model.length, 1)]
  switch (it.kind) {
    case 'happens': {
      const { id } = await row<{ id: string }>(
        "insert into public.notifications (organisation_id, type, data) values ($1, $2, '{}') returning id",
        [organisation.id, it.type],
      )
      for (const e of model) if (e.enabled && e.types.includes(it.type)) e.pending.set(id, it.type)
      return
    }
    case 'subscribes': {
      const e = of(it.endpoint)
      if (!e) return
      await studio.query('update public.webhook_endpoints set types = $2::public.notification_type[] where id = $1', [
        e.id,
        it.types,
      ])
      e.types = it.types
      for (const [id, type] of e.pending) if (!it.types.includes(type)) e.pending.delete(id)
      return
    }
    case 'status': {
      const e = of(it.endpoint)
      if (!e) return
      await studio.query('update public.webhook_endpoints set status = $2 where id = $1', [e.id, it.status])
      e.enabled = it.status === 'enabled'
      return
    }
    case 'created': {
      const id = await addEndpoint(organisation.id, it.types)
      model.push({ id, types: it.types, enabled: true, pending: new Map() })
      return
    }
    case 'deleted': {
      const e = of(it.endpoint)
      if (!e) return
      await studio.query('delete from public.webhook_endpoints where id = $1', [e.id])
      model.splice(model.indexOf(e), 1)
      return
    }
    case 'fanned out':
      await fanOut(organisation.id)
  }
}

test('whenever it is fanned out, an endpoint gets what happened while it was enabled and subscribed, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 5, maxLength: 25 }), async (changes) => {
      const organisation = await createOrganisation()
      const model: Model[] = []
      await apply(organisation, model, { kind: 'created', types: ['event.updated'] })
      for (const it of changes) {
        await apply(organisation, model, it)
        // What is purged meanwhile is needed by nobody.
        if (it.kind === 'deleted') await studio.query('select api.purge(3650, 1000)')
      }
      await fanOut(organisation.id)
      const { rows } = await studio.query<{ key: string }>(
        `select webhook_endpoint_id || ' ' || notification_id as key from public.webhook_deliveries
         where organisation_id = $1 and status = 'pending'`,
        [organisation.id],
      )
      const expected = model.flatMap(({ id, pending }) =>
        [...pending.keys()].map((notification) => `${id} ${notification}`),
      )
      expect(rows.map(({ key }) => key).sort()).toEqual(expected.sort())
    }),
    { numRuns: 15 },
  )
})

test('what a long transaction commits goes to an endpoint that was added meanwhile, and to none that was disabled meanwhile', async () => {
  const organisation = await createOrganisation()
  const leaving = await addEndpoint(organisation.id, ['event.updated'])
  const writer = await connect()
  try {
    await writer.query('begin')
    await writer.query(
      "insert into public.notifications (organisation_id, type, data) values ($1, 'event.updated', '{}')",
      [organisation.id],
    )
    const coming = await addEndpoint(organisation.id, ['event.updated'])
    await studio.query("update public.webhook_endpoints set status = 'disabled' where id = $1", [leaving])
    await writer.query('commit')
    await fanOut(organisation.id)
    expect((await deliveriesOf(organisation.id)).map((d) => d.endpoint)).toEqual([coming])
  } finally {
    await writer.end()
  }
})

test('of a transaction that adds an endpoint itself, it gets what comes after', async () => {
  const organisation = await createOrganisation()
  const writer = await connect()
  const happens = (type: string) =>
    writer.query("insert into public.notifications (organisation_id, type, data) values ($1, $2, '{}')", [
      organisation.id,
      type,
    ])
  try {
    await writer.query('begin')
    await happens('event.published')
    const { rows } = await writer.query(
      `insert into public.webhook_endpoints (organisation_id, url, types)
       values ($1, 'https://a.example.com', '{event.published,event.updated,event.cancelled}') returning id`,
      [organisation.id],
    )
    await happens('event.updated')
    await writer.query("update public.webhook_endpoints set status = 'disabled' where id = $1", [rows[0].id])
    await happens('event.cancelled')
    await writer.query('commit')
  } finally {
    await writer.end()
  }
  await fanOut(organisation.id)
  const { rows } = await studio.query('select type from public.webhook_deliveries where organisation_id = $1', [
    organisation.id,
  ])
  expect(rows).toEqual([{ type: 'event.updated' }])
})

test.each([
  ['is edited', "update public.webhook_endpoints set types = '{order.created}' where id = $1", 0],
  ['is deleted', 'delete from public.webhook_endpoints where id = $1', 0],
])('while an endpoint %s, the fan-out waits for nobody, and is done afterwards', async (_what, sql, pending) => {
  const organisation = await createOrganisation()
  const other = await addEndpoint(organisation.id, ['event.updated'])
  const id = await addEndpoint(organisation.id, ['event.updated'])
  await manyEdits(organisation.id, 1)
  const organiser = await connect()
  try {
    await organiser.query('begin')
    await organiser.query(sql, [id])
    const done = await row<{ n: number }>('select private.fan_out_organisation($1, 100) as n', [organisation.id])
    expect(done.n).toBe(0)
    await organiser.query('commit')
  } finally {
    await organiser.end()
  }
  await fanOut(organisation.id)
  const made = await deliveriesOf(organisation.id)
  expect(made.filter(({ endpoint }) => endpoint === other)).toHaveLength(1)
  expect(made.filter(({ endpoint }) => endpoint === id)).toHaveLength(pending)
})

test('a backlog of one organisation keeps none from its turn: each batch has a share of every organisation', async () => {
  const [big, small] = [await createOrganisation(), await createOrganisation()]
  for (let i = 0; i < 10; i++) await addEndpoint(big.id, ['event.updated'])
  await addEndpoint(small.id, ['event.updated'])
  const client = await connect()
  try {
    await client.query('begin')
    // Nobody else has anything in the queue.
    await lockOutbox(client)
    await client.query('delete from private.notification_queue')
    await client.query(
      `insert into public.notifications (organisation_id, type, data)
       select $1, 'event.updated', '{}' from generate_series(1, 150)`,
      [big.id],
    )
    await client.query(
      "insert into public.notifications (organisation_id, type, data) values ($1, 'event.updated', '{}')",
      [small.id],
    )
    const counts = async () =>
      (
        await client.query(
          `select (select count(*)::int from public.webhook_deliveries where organisation_id = $1) as big,
             (select count(*)::int from public.webhook_deliveries where organisation_id = $2) as small`,
          [big.id, small.id],
        )
      ).rows[0]
    const batch = async () => (await client.query('select private.fan_out(200) as more')).rows[0].more
    let [batches, made] = [0, await counts()]
    // One, but on a slow machine: a batch is limited by time as well.
    while (made.small === 0 && batches < 5) {
      expect(await batch()).toBe(true)
      batches += 1
      made = await counts()
    }
    expect(made.small).toBe(1)
    expect(made.big % 10).toBe(0)
    expect(made.big).toBeGreaterThan(0)
    expect(made.big).toBeLessThanOrEqual(batches * 100)
    while (await batch());
    expect(await counts()).toEqual({ big: 1500, small: 1 })
  } finally {
    await client.query('rollback')
    await client.end()
  }
})

test('transactions since the last change of an endpoint are done together, each completely', async () => {
  const [deaf, listening] = [await createOrganisation(), await createOrganisation()]
  await addEndpoint(listening.id, ['event.updated'])
  const client = await connect()
  try {
    await client.query('begin')
    // Nobody else fans out meanwhile.
    await lockOutbox(client)
    const edits = (organisation: TestOrganisation, transaction: number, n: number) =>
      client.query(
        `insert into public.notifications (organisation_id, type, data, transaction_id)
         select $1, 'event.updated', '{}', (pg_current_xact_id()::text::bigint + $2)::text::xid8 from generate_series(1, $3::integer)`,
        [organisation.id, transaction, n],
      )
    for (let i = 1; i <= 50; i++) await edits(deaf, i, 1)
    await edits(listening, 1, 100)
    for (let i = 2; i <= 20; i++) await edits(listening, i, 1 + (i % 3))
    const batch = (organisation: TestOrganisation) =>
      client.query('select private.fan_out_organisation($1, 40)', [organisation.id])
    const queued = async ({ id }: TestOrganisation) =>
      (await client.query('select from private.notification_queue where organisation_id = $1', [id])).rowCount

    // Without an endpoint there is nothing to make of them.
    await batch(deaf)
    expect(await queued(deaf)).toBe(0)
    // Small ones do not wait for the large one before them.
    await batch(listening)
    expect(await queued(listening)).toBeLessThan(19)
    while ((await queued(listening)) !== 0) await batch(listening)
    const { rows } = await client.query(
      `select count(*)::integer as made, count(distinct notification_id)::integer as notifications
       from public.webhook_deliveries where organisation_id = $1`,
      [listening.id],
    )
    expect(rows[0]).toEqual({ made: 139, notifications: 139 })
  } finally {
    await client.query('rollback')
    await client.end()
  }
})

test('what awaits its fan-out is counted as pending, and kept however old', async () => {
  const organisation = await createOrganisation()
  await addEndpoint(organisation.id, ['event.updated'])
  const client = await connect()
  try {
    // One snapshot: what other tests subscribe to meanwhile is not counted.
    await client.query('begin isolation level repeatable read')
    await lockOutbox(client)
    const pending = async () =>
      (await client.query('select api.outbox_depth()->0 as webhooks')).rows[0].webhooks.pending
    const before = await pending()
    await client.query(
      `insert into public.notifications (organisation_id, type, data, created_at)
       select $1, 'event.updated', '{}', now() - interval '10 years' from generate_series(1, 3)`,
      [organisation.id],
    )
    expect(await pending()).toBe(before + 3)
    const kept = 'select count(*)::int as n from public.notifications where organisation_id = $1'
    await client.query('select api.purge(3650, 1000)')
    expect((await client.query(kept, [organisation.id])).rows).toEqual([{ n: 3 }])
    await client.query('select private.fan_out_organisation($1, 100)', [organisation.id])
    expect(await pending()).toBe(before + 3)
  } finally {
    await client.query('rollback')
    await client.end()
  }
})

test('whoever changes an endpoint again and again leaves one row of its history, and one for each that is still to be fanned out', async () => {
  const organisation = await createOrganisation()
  const id = await addEndpoint(organisation.id, ['event.updated'])
  const history = async () =>
    Number(
      (await row('select count(*) as n from private.webhook_subscriptions where webhook_endpoint_id = $1', [id])).n,
    )
  const toggle = async () => {
    await studio.query("update public.webhook_endpoints set status = 'disabled' where id = $1", [id])
    await studio.query("update public.webhook_endpoints set status = 'enabled' where id = $1", [id])
  }
  for (let i = 0; i < 20; i++) await toggle()
  expect(await history()).toBe(1)
  await manyEdits(organisation.id, 1)
  for (let i = 0; i < 20; i++) await toggle()
  expect(await history()).toBe(2)
  await fanOut(organisation.id)
  expect(await deliveriesOf(organisation.id)).toHaveLength(1)
})
