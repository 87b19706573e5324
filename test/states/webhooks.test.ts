// Webhook endpoints and deliveries: disabled and enabled, and made pending once more, over REST and by SQL with the same outcome.

import { describe, expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { enqueued } from '../support/outbox.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import type { Hand } from '../support/studio.ts'

type Subject = { organisation: TestOrganisation; endpointId: string; deliveryId: string; key: string }

/** An endpoint that was told of one order, both then set to these. */
async function arrange(endpoint: string, delivery: string): Promise<Subject> {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { id: endpointId } = await row<{ id: string }>(
    `insert into public.webhook_endpoints (organisation_id, url, types)
     values ($1, 'https://hooks.example.com', '{order.created}') returning id`,
    [organisation.id],
  )
  await event.guest()
  await enqueued(organisation.id)
  const { id: deliveryId } = await row<{ id: string }>(
    `update public.webhook_deliveries set status = $2, attempts = 3 where webhook_endpoint_id = $1 returning id`,
    [endpointId, delivery],
  )
  await studio.query('update public.webhook_endpoints set status = $2 where id = $1', [endpointId, endpoint])
  return { organisation, endpointId, deliveryId, key: await organisation.key() }
}

async function takeSnapshot({ endpointId, deliveryId }: Subject, hand: Hand = studio) {
  const { rows } = await hand.query(
    `select w.status as endpoint, d.status as delivery, d.attempts, d.next_attempt_at is not null as due,
       (select count(*)::int from public.webhook_deliveries t where t.webhook_endpoint_id = w.id) as deliveries
     from public.webhook_endpoints w join public.webhook_deliveries d on d.id = $2 where w.id = $1`,
    [endpointId, deliveryId],
  )
  return rows[0]
}

/** What an edit in Studio changes, which is taken back: the same object is for REST then. */
const inStudio = (it: Subject, sql: string, values: unknown[]) =>
  during(async (client) => {
    await client.query('savepoint before')
    const refusal = await codeOfSql(client.query(sql, values))
    if (refusal !== null) await client.query('rollback to before')
    return { refusal, after: await takeSnapshot(it, client) }
  })

const codeOf = ({ status, body }: RestAnswer) => (status < 300 ? null : `${status} ${body.error.code}`)
const codeOfSql = async (work: Promise<unknown>) => {
  const [result] = await Promise.allSettled([work])
  if (result?.status !== 'rejected') return null
  const { sqlstate, code } = await refusalOf(Promise.reject(result.reason))
  return `${sqlstate.replace('PT', '')} ${code}`
}

const endpointStatuses = ['enabled', 'disabled'] as const
const deliveryStatuses = ['pending', 'delivered', 'failed', 'cancelled'] as const
const disabled = '409 webhook_endpoint_disabled'

test('every status there is is walked', async () => {
  expect(
    await row(
      `select enum_range(null::public.webhook_endpoint_status)::text[] as endpoints,
         enum_range(null::public.webhook_delivery_status)::text[] as deliveries`,
    ),
  ).toEqual({ endpoints: [...endpointStatuses], deliveries: [...deliveryStatuses] })
})

describe.each(endpointStatuses)('an endpoint that is %s', (from) => {
  test.each(endpointStatuses)('may be set to %s, and its deliveries wait', async (to) => {
    const it = await arrange(from, 'pending')
    const expected = { endpoint: to, delivery: 'pending', attempts: 3, due: true, deliveries: 1 }
    const update = 'update public.webhook_endpoints set status = $2 where id = $1'
    expect(await inStudio(it, update, [it.endpointId, to])).toEqual({ refusal: null, after: expected })
    const answer = await rest(it.key)('PATCH', `/webhook-endpoints/${it.endpointId}`, { status: to })
    expect(codeOf(answer)).toBeNull()
    expect(await takeSnapshot(it)).toEqual(expected)
  })

  test('is tested only while it is enabled; in Studio there is nothing to test it with', async () => {
    const it = await arrange(from, 'pending')
    const answer = await rest(it.key)('POST', `/webhook-endpoints/${it.endpointId}/test`)
    expect(codeOf(answer)).toBe(from === 'enabled' ? null : disabled)
    expect(await takeSnapshot(it)).toMatchObject({ endpoint: from, deliveries: from === 'enabled' ? 2 : 1 })
  })

  test.each(deliveryStatuses)(
    'has a delivery that is %s made pending once more while it is enabled',
    async (delivery) => {
      const it = await arrange(from, delivery)
      const untouched = { endpoint: from, delivery, attempts: 3, due: delivery === 'pending', deliveries: 1 }
      const pending = { ...untouched, delivery: 'pending', attempts: 0, due: true }
      const update = "update public.webhook_deliveries set status = 'pending' where id = $1"
      // A row that is saved as it is asks for nothing: it neither is refused nor starts anew.
      expect(await inStudio(it, update, [it.deliveryId])).toEqual({
        refusal: from === 'enabled' || delivery === 'pending' ? null : disabled,
        after: from === 'enabled' && delivery !== 'pending' ? pending : untouched,
      })
      const answer = await rest(it.key)('POST', `/webhook-deliveries/${it.deliveryId}/redeliver`)
      expect(codeOf(answer)).toBe(from === 'enabled' ? null : disabled)
      expect(await takeSnapshot(it)).toEqual(from === 'enabled' ? pending : untouched)
    },
  )

  test.each(deliveryStatuses)('has a delivery set to %s by hand, which is due only while it is pending', async (to) => {
    const it = await arrange('enabled', 'pending')
    await studio.query('update public.webhook_endpoints set status = $2 where id = $1', [it.endpointId, from])
    await studio.query('update public.webhook_deliveries set status = $2 where id = $1', [it.deliveryId, to])
    expect(await takeSnapshot(it)).toMatchObject({ delivery: to, due: to === 'pending' })
  })
})
