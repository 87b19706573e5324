// Who is notified: one delivery for each enabled endpoint of the organisation that is subscribed to the type, made by
// the fan-out. And whatever happens to an endpoint meanwhile, the change that is notified goes through.

import { expect, test } from 'vitest'
import { during, row, studio } from '../../support/database.ts'
import { interfaces, overRest } from '../../support/interfaces.ts'
import { addEndpoint, fanOut } from '../../support/outbox.ts'
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
  await fanOut(organisationId)
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
  ['commit', 0],
  ['rollback', 2],
])('an endpoint that is being deleted fails no registration: after a %s it has %i pending', async (end, pending) => {
  const { organisation, actions } = await outboxFixture(overRest)
  const id = await addEndpoint(organisation.id)
  await during(async (organiser) => {
    await organiser.query('delete from public.webhook_endpoints where id = $1', [id])
    const registration = actions.register()
    await new Promise((resolve) => setTimeout(resolve, 150))
    await organiser.query(end)
    expect(await registration).toEqual(expect.any(String))
  })
  await fanOut(organisation.id)
  const { n } = await row<{ n: number }>(
    'select count(*)::int as n from public.webhook_deliveries where webhook_endpoint_id = $1',
    [id],
  )
  expect(n).toBe(pending)
})
