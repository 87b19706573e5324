// Who is notified: one delivery for each endpoint of the organisation that is enabled and subscribed to the type when the notification is
// written, made by the courier. And whatever happens to an endpoint meanwhile, the change that is notified goes through.

import { expect, test } from 'vitest'
import { during, studio } from '../../support/database.ts'
import { interfaces, overRest } from '../../support/interfaces.ts'
import { createOrganisation } from '../../support/organisation.ts'
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
