// Who is notified: one delivery for each endpoint of the organisation that is enabled and subscribed to the type when the notification is
// written, made by the courier. And whatever happens to an endpoint meanwhile, the change that is notified goes through.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { during, row, studio } from '../../support/database.ts'
import { interfaces, overRest } from '../../support/interfaces.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { addEndpoint, enqueued, lockOutbox } from '../../support/outbox.ts'
import { outboxFixture } from '../outbox-fixture.ts'

type Pending = {
  webhook_endpoint_id: string
  type: string
  status: string
  attempts: number
  due: boolean
  joined: boolean
}

async function pendingOf(organisationId: string): Promise<Pending[]> {
  await enqueued(organisationId)
  const { rows } = await studio.query<Pending>(
    `select d.webhook_endpoint_id, d.type, d.status, d.attempts,
       d.next_attempt_at = d.created_at as due,
       n.type = d.type and n.organisation_id = d.organisation_id as joined
     from public.webhook_deliveries d join public.notifications n on n.id = d.notification_id
     where d.organisation_id = $1 order by d.type, d.webhook_endpoint_id`,
    [organisationId],
  )
  return rows
}

const pending = (webhook_endpoint_id: string, type: string): Pending => ({
  webhook_endpoint_id,
  type,
  status: 'pending',
  attempts: 0,
  due: true,
  joined: true,
})

const anEndpointOf = (organisationId: string) =>
  row<{ id: string }>('select id from public.webhook_endpoints where organisation_id = $1', [organisationId])

test.each(interfaces)(
  '%s, each enabled endpoint that is subscribed to the type gets one delivery',
  async (_where, open) => {
    const { organisation, actions } = await outboxFixture(open)
    const stranger = await outboxFixture(open)
    const orders = await addEndpoint(organisation.id, ['order.completed', 'order.created'])
    const created = await addEndpoint(organisation.id, ['order.created', 'event.updated'])
    await addEndpoint(organisation.id, ['order.cancelled', 'attendee.checked_in'])
    await addEndpoint(organisation.id, ['order.created'], 'disabled')
    await addEndpoint(stranger.organisation.id)

    await actions.register({ guests: 2 })
    expect(await pendingOf(organisation.id)).toEqual([
      pending(orders, 'order.created'),
      pending(created, 'order.created'),
      pending(orders, 'order.completed'),
    ])
    expect(await pendingOf(stranger.organisation.id)).toEqual([])
  },
)

test('an endpoint gets what happens while it is enabled, and not what happened before or meanwhile', async () => {
  const { organisation, actions } = await outboxFixture(overRest)
  const set = (status: string) =>
    studio.query('update public.webhook_endpoints set status = $2 where organisation_id = $1', [
      organisation.id,
      status,
    ])
  await actions.renameEvent('Before')
  const endpoint = await addEndpoint(organisation.id)
  await set('disabled')
  await actions.renameEvent('Meanwhile')
  expect(await pendingOf(organisation.id)).toEqual([])
  await set('enabled')
  await actions.renameEvent('After')
  expect(await pendingOf(organisation.id)).toEqual([pending(endpoint, 'event.updated')])
})

test('what is rolled back is notified to nobody', async () => {
  const { organisation, event } = await outboxFixture(overRest)
  await addEndpoint(organisation.id)
  await during((client) => client.query("update public.events set name = 'Renamed' where id = $1", [event.id]))
  expect(await pendingOf(organisation.id)).toEqual([])
})

test('many changes in one statement are notified each', async () => {
  const { organisation, event, registered, attendeesOf } = await outboxFixture(overRest)
  const orderId = await registered({ guests: 5 })
  const endpoint = await addEndpoint(organisation.id, ['attendee.updated'])
  await studio.query("update public.attendees set company = 'NASA' where event_id = $1", [event.id])
  expect(await attendeesOf(orderId)).toHaveLength(5)
  expect(await pendingOf(organisation.id)).toEqual(Array(5).fill(pending(endpoint, 'attendee.updated')))
})

test.each([
  [
    'edited',
    "update public.webhook_endpoints set url = 'https://other.example.com', types = '{event.updated}' where id = $1",
  ],
  ['disabled', "update public.webhook_endpoints set status = 'disabled' where id = $1"],
])('an endpoint that is being %s holds up no registration', async (_what, sql) => {
  const { organisation, actions } = await outboxFixture(overRest)
  const id = await addEndpoint(organisation.id)
  await during(async (organiser) => {
    await organiser.query(sql, [id])
    // Answered while the edit is still open.
    expect(await actions.register()).toEqual(expect.any(String))
  })
  expect((await anEndpointOf(organisation.id)).id).toBe(id)
})

test.each([
  ['commit', 'cancelled'],
  ['rollback', 'pending'],
])(
  'an endpoint that is being deleted fails no registration: after a %s what it was to get is %s',
  async (end, status) => {
    const { organisation, actions } = await outboxFixture(overRest)
    const id = await addEndpoint(organisation.id)
    await during(async (organiser) => {
      await organiser.query('delete from public.webhook_endpoints where id = $1', [id])
      // Answered while the deletion is still open.
      expect(await actions.register()).toEqual(expect.any(String))
      await organiser.query(end)
    })
    expect(await afterLeasing(organisation.id)).toEqual(Array(2).fill({ webhook_endpoint_id: id, status }))
  },
)

test('of a type that was given up meanwhile nothing is sent', async () => {
  const { organisation, actions } = await outboxFixture(overRest)
  const id = await addEndpoint(organisation.id, ['order.created', 'order.completed'])
  await during(async (organiser) => {
    await organiser.query("update public.webhook_endpoints set types = '{order.created}' where id = $1", [id])
    await actions.register()
    await organiser.query('commit')
  })
  expect(await afterLeasing(organisation.id)).toEqual(
    ['cancelled', 'pending'].map((status) => ({ webhook_endpoint_id: id, status })),
  )
})

/** What becomes of an organisation's deliveries when what is due is leased. */
async function afterLeasing(organisationId: string) {
  return during(async (client) => {
    await lockOutbox(client)
    const { rows: leased } = await client.query('select api.claim_webhooks(100000) as webhooks')
    const { rows } = await client.query(
      `select id, webhook_endpoint_id, status::text, claim is not null as leased
       from public.webhook_deliveries where organisation_id = $1 order by status::text`,
      [organisationId],
    )
    const sent = new Set(leased[0].webhooks.map(({ id }: { id: string }) => id))
    return rows.map(({ id, leased, ...delivery }) => {
      expect([leased, sent.has(id)]).toEqual(Array(2).fill(delivery.status === 'pending'))
      return delivery
    })
  })
}

type Change =
  | { kind: 'happens'; type: 'event.updated' | 'order.created' }
  | { kind: 'subscribes'; endpoint: number; types: string[] }
  | { kind: 'status'; endpoint: number; status: 'enabled' | 'disabled' }
  | { kind: 'created'; types: string[] }
  | { kind: 'deleted'; endpoint: number }

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
)

/** What is pending for an endpoint: types by notification. */
type Model = { id: string; types: string[]; enabled: boolean; pending: Map<string, string> }

async function apply(organisation: TestOrganisation, model: Model[], it: Change): Promise<void> {
  const of = (n: number) => model[n % Math.max(model.length, 1)]
  switch (it.kind) {
    case 'happens': {
      const { id } = await row<{ id: string }>(
        "insert into public.notifications (organisation_id, type, data) values ($1, $2, '{}') returning id",
        [organisation.id, it.type],
      )
      await enqueued(organisation.id)
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
  }
}

test('an endpoint gets what happened while it was enabled and subscribed, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 5, maxLength: 25 }), async (changes) => {
      const organisation = await createOrganisation()
      const model: Model[] = []
      await apply(organisation, model, { kind: 'created', types: ['event.updated'] })
      for (const it of changes) await apply(organisation, model, it)
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

test('of a transaction that adds an endpoint itself, it gets what comes after', async () => {
  const organisation = await createOrganisation()
  const writer = await studio.connect()
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
    writer.release()
  }
  await enqueued(organisation.id)
  const { rows } = await studio.query('select type from public.webhook_deliveries where organisation_id = $1', [
    organisation.id,
  ])
  expect(rows).toEqual([{ type: 'event.updated' }])
})
