// What the courier is handed and what becomes of what it says: claims that are leases, and settlements that decide when to try
// again. In a transaction that is rolled back, as the courier's role, since it claims from every organisation.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { PendingWebhook as Pending } from '../../../src/courier/send-webhook.ts'
import { studio } from '../../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../../support/organisation.ts'
import { addEndpoint, enqueued, lockOutbox } from '../../support/outbox.ts'
import { type AsCourier, first, rolledBack } from '../as-courier.ts'

/** Whether the result disabled the endpoint. */
const settleOne = async (asCourier: AsCourier, result: Record<string, unknown>) =>
  ((await asCourier('select api.settle_webhooks($1)', [JSON.stringify([result])])) as { disabled: unknown[] }).disabled
    .length > 0

const register = `insert into public.registrations (event_id, ticket_type_id, name, email)
  values ($1, $2, 'Guest', 'g@example.com')`

/** Registers a guest at each of these events, and enqueues the deliveries. */
async function happens(client: PoolClient, ...events: TestEvent[]): Promise<void> {
  for (const { id, ticketTypeId } of events) await client.query(register, [id, ticketTypeId])
  await client.query('set constraints all immediate')
  await client.query('select private.enqueue_deliveries()')
}

/** Endpoints that are subscribed to new orders, all at once. */
async function addEndpoints(organisationId: string, count: number): Promise<string[]> {
  const { rows } = await studio.query<{ id: string }>(
    `insert into public.webhook_endpoints (organisation_id, url, types)
     select $1, 'https://hooks.example.com/usher', '{order.created}' from generate_series(1, $2::integer) returning id`,
    [organisationId, count],
  )
  return rows.map(({ id }) => id)
}

// Of all tests that change it in a transaction only, which is rolled back.
let organisation: TestOrganisation
let event: TestEvent
let endpointId: string
beforeAll(async () => {
  organisation = await createOrganisation()
  event = await organisation.event()
  endpointId = await addEndpoint(organisation.id, ['order.created'])
})

const courierOf = (client: PoolClient, asCourier: AsCourier) => {
  const sql = async <T = Record<string, unknown>>(text: string, values: unknown[] = []) =>
    (await client.query(text, values)).rows as T[]
  return {
    organisationId: organisation.id,
    endpointId,
    sql,
    /** What is claimed of this organisation: ours are the oldest, so that they come first of their endpoints. */
    claim: async (limit = 1000) => {
      await sql(
        `update public.webhook_deliveries set next_attempt_at = '2000-01-01'
         where organisation_id = $1 and status = 'pending' and next_attempt_at <= now()`,
        [organisation.id],
      )
      const pending = (await asCourier('select api.claim_webhooks($1)', [limit])) as Pending[]
      const ours = await sql<{ id: string }>('select id from public.webhook_deliveries where organisation_id = $1', [
        organisation.id,
      ])
      return pending.filter(({ id }) => ours.some((d) => d.id === id))
    },
    /** Whether that disabled the endpoint. */
    settle: ({ id, claim }: Pick<Pending, 'id' | 'claim'>, how: Record<string, unknown>) => {
      const { status, body, error, retryAfter, url, milliseconds = 12 } = how
      const response = { response_status: status, response_body: body, retry_after_seconds: retryAfter }
      return settleOne(asCourier, { id, claim, ...response, milliseconds, error, url })
    },
    release: ({ id, claim }: Pick<Pending, 'id' | 'claim'>) =>
      asCourier('select api.release_webhook($1, $2)', [id, claim]),
  }
}
type Courier = ReturnType<typeof courierOf>

/** An organisation with one endpoint that is subscribed to new orders, and so many of those. */
async function withCourier(orders: number, work: (courier: Courier) => Promise<void>): Promise<void> {
  await rolledBack(async (client, asCourier) => {
    // Nothing else becomes pending or settled meanwhile.
    await lockOutbox(client)
    await happens(client, ...Array(orders).fill(event))
    await work(courierOf(client, asCourier))
  })
}

const deliveryOf = async ({ sql }: Courier, id: string) =>
  first(
    await sql<{ status: string; attempts: number; wait: number | null; claim: string | null }>(
      `select status, attempts, claim, claimed_until, last_response_status, last_response_body,
         last_response_milliseconds, last_error, delivered_at is not null as delivered,
         extract(epoch from next_attempt_at - now())::float8 as wait
       from public.webhook_deliveries where id = $1`,
      [id],
    ),
  )

const endpointOf = async ({ sql, endpointId }: Courier) =>
  first(
    await sql(
      `select status, disabled_reason, failing_since is not null as failing, version
       from public.webhook_endpoints where id = $1`,
      [endpointId],
    ),
  )

describe('a claim', () => {
  test('holds all that is to be sent, and is made once', async () => {
    await withCourier(1, async (courier) => {
      const pending = await courier.claim()
      expect(pending).toEqual([
        {
          id: expect.any(String),
          claim: expect.any(String),
          attempt: 1,
          webhook_endpoint_id: courier.endpointId,
          url: 'https://hooks.example.com/usher',
          secrets: [expect.stringMatching(/^whsec_/)],
          webhook_id: expect.any(String),
          type: 'order.created',
          timestamp: expect.stringMatching(/Z$/),
          example: null,
          livemode: true,
          data: expect.objectContaining({ object: 'order' }),
        },
      ])
      expect(await courier.claim()).toEqual([])
      // A lease: whoever died with it leaves it to the next.
      await courier.sql(
        'update public.webhook_deliveries set next_attempt_at = now(), claimed_until = now() where id = $1',
        [first(pending).id],
      )
      const again = first(await courier.claim())
      expect([again.id, again.attempt, again.webhook_id]).toEqual([first(pending).id, 2, first(pending).webhook_id])
      expect(again.claim).not.toBe(first(pending).claim)
    })
  })

  test('takes at most four of an endpoint at once, and the next when one of them is settled', async () => {
    await withCourier(6, async (courier) => {
      const pending = await courier.claim()
      expect(pending).toHaveLength(4)
      expect(await courier.claim()).toEqual([])
      await courier.settle(first(pending), { status: 200 })
      expect(await courier.claim()).toHaveLength(1)
    })
  })

  test('takes one at a time of an endpoint that is failing', async () => {
    await withCourier(5, async (courier) => {
      await courier.sql('update public.webhook_endpoints set failing_since = now() where id = $1', [courier.endpointId])
      const pending = await courier.claim()
      expect(pending).toHaveLength(1)
      expect(await courier.claim()).toEqual([])
      await courier.settle(first(pending), { status: 200 })
      expect(await courier.claim()).toHaveLength(4)
    })
  })

  test('takes nothing for an endpoint that is disabled until it is enabled again', async () => {
    await withCourier(1, async (courier) => {
      const set = (status: string) =>
        courier.sql('update public.webhook_endpoints set status = $2 where id = $1', [courier.endpointId, status])
      await set('disabled')
      expect(await courier.claim()).toEqual([])
      await set('enabled')
      expect(await courier.claim()).toHaveLength(1)
    })
  })

  test('has both secrets while one replaces the other, the new one first', async () => {
    await withCourier(1, async (courier) => {
      const secrets = async () =>
        (
          await courier.sql<{ secret: string }>(
            `select secret from private.webhook_secrets where webhook_endpoint_id = $1
             order by expires_at desc nulls first`,
            [courier.endpointId],
          )
        ).map(({ secret }) => secret)
      const [old] = await secrets()
      await courier.sql(
        "update private.webhook_secrets set expires_at = now() + interval '1 hour' where webhook_endpoint_id = $1",
        [courier.endpointId],
      )
      await courier.sql('insert into private.webhook_secrets (webhook_endpoint_id) values ($1)', [courier.endpointId])
      const both = await secrets()
      expect([both.length, both[1]]).toEqual([2, old])
      expect(first(await courier.claim()).secrets).toEqual(both)
    })
  })
})

describe('a settlement', () => {
  test('of 200, 204 or 299 is delivered', async () => {
    const statuses = [200, 204, 299]
    await withCourier(statuses.length, async (courier) => {
      const claimed = await courier.claim()
      expect(claimed).toHaveLength(3)
      for (const [i, pending] of claimed.entries()) {
        await courier.settle(pending, { status: statuses[i], body: 'OK' })
        expect(await deliveryOf(courier, pending.id)).toEqual({
          status: 'delivered',
          attempts: 1,
          claim: null,
          claimed_until: null,
          last_response_status: statuses[i],
          last_response_body: 'OK',
          last_response_milliseconds: 12,
          last_error: null,
          delivered: true,
          wait: null,
        })
      }
    })
  })

  test('of a failure is tried again, ever later, ten times within some three days', async () => {
    await withCourier(1, async (courier) => {
      const { id } = first(await courier.claim())
      const how = { status: 500 }
      const planned = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
      for (const [i, seconds] of planned.entries()) {
        if (i > 0) {
          await courier.sql('update public.webhook_deliveries set next_attempt_at = now() where id = $1', [id])
          await courier.claim()
        }
        const { claim } = await deliveryOf(courier, id)
        await courier.settle({ id, claim: String(claim) }, how)
        const { status, attempts, wait } = await deliveryOf(courier, id)
        expect([status, attempts]).toEqual(['pending', i + 1])
        expect(wait).toBeGreaterThanOrEqual(seconds * 0.79)
        expect(wait).toBeLessThanOrEqual(seconds * 1.21)
      }
      await courier.sql('update public.webhook_deliveries set next_attempt_at = now() where id = $1', [id])
      const last = first(await courier.claim())
      expect(last.attempt).toBe(10)
      await courier.settle(last, how)
      expect(await deliveryOf(courier, id)).toMatchObject({ status: 'failed', wait: null, delivered: false })
    })
  })

  test('that asks to be left alone for a while is tried again after it, within reason', async () => {
    const asked = [
      [60, 60],
      [1, 4],
      [9_999_999, 86_400],
    ] as const
    await withCourier(asked.length, async (courier) => {
      const claimed = await courier.claim()
      expect(claimed).toHaveLength(3)
      for (const [i, pending] of claimed.entries()) {
        const [retryAfter, atLeast] = asked[i] ?? [0, 0]
        await courier.settle(pending, { status: 429, retryAfter })
        const { wait } = await deliveryOf(courier, pending.id)
        expect(wait).toBeGreaterThanOrEqual(atLeast)
        expect(wait).toBeLessThanOrEqual(Math.max(atLeast, 6))
      }
    })
  })

  test('of 410 gives the delivery up and disables the endpoint, which says why', async () => {
    await withCourier(2, async (courier) => {
      const pending = first(await courier.claim(1))
      expect(await courier.settle(pending, { status: 410 })).toBe(true)
      expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'failed' })
      expect(await endpointOf(courier)).toMatchObject({ status: 'disabled', disabled_reason: 'It answered 410 Gone.' })
      expect(await courier.claim()).toEqual([])
    })
  })

  test('disables an endpoint that has failed for five days, and no earlier; a success begins anew', async () => {
    await withCourier(4, async (courier) => {
      const [one, two, three, four] = await courier.claim()
      if (!one || !two || !three || !four) throw new Error('four were pending')
      await courier.settle(one, { status: 500 })
      expect(await endpointOf(courier)).toMatchObject({ status: 'enabled', failing: true })
      await courier.settle(two, { status: 200 })
      expect(await endpointOf(courier)).toMatchObject({ status: 'enabled', failing: false, version: 1 })
      await courier.settle(three, { status: 500 })
      const failedBefore = (hours: number) =>
        courier.sql(
          `update public.webhook_endpoints set failing_since = now() - interval '121 hours',
             last_failed_at = now() - make_interval(hours => $2) where id = $1`,
          [courier.endpointId, hours],
        )
      await failedBefore(1)
      expect(await courier.settle(four, { error: 'No such host.' })).toBe(true)
      expect(await endpointOf(courier)).toMatchObject({
        status: 'disabled',
        disabled_reason: 'No delivery succeeded for five days.',
      })
      await courier.sql("update public.webhook_endpoints set status = 'enabled' where id = $1", [courier.endpointId])
      expect(await endpointOf(courier)).toMatchObject({ status: 'enabled', disabled_reason: null, failing: false })
    })
  })

  test.each([{ status: 410 }, { error: 'No such host.' }])(
    'of %j by an address that the endpoint no longer has is not held against the new one',
    async (how) => {
      await withCourier(1, async (courier) => {
        const pending = first(await courier.claim())
        await courier.sql("update public.webhook_endpoints set url = 'https://new.example.com/' where id = $1", [
          courier.endpointId,
        ])
        // The last attempt that the old one had.
        await courier.sql('update public.webhook_deliveries set attempts = 10 where id = $1', [pending.id])
        expect(await courier.settle(pending, { ...how, url: pending.url })).toBe(false)
        expect(await endpointOf(courier)).toMatchObject({ status: 'enabled', failing: false })
        expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'pending', claim: null, attempts: 0 })
        const again = first(await courier.claim())
        expect(again.url).toBe('https://new.example.com/')
        await courier.settle(again, { ...how, url: again.url })
        expect(await endpointOf(courier)).toMatchObject(
          how.status === 410 ? { status: 'disabled' } : { status: 'enabled', failing: true },
        )
      })
    },
  )

  test('by somebody whose claim has passed to another does not count', async () => {
    await withCourier(1, async (courier) => {
      const pending = first(await courier.claim())
      await courier.settle({ id: pending.id, claim: randomUUID() }, { status: 200 })
      expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'pending', claim: pending.claim })
      await courier.settle(pending, { status: 200 })
      await courier.settle(pending, { status: 500 })
      expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'delivered', last_response_status: 200 })
    })
  })
})

test('results of several deliveries are recorded together, each by its own claim and in their order', async () => {
  await withCourier(6, async (courier) => {
    const settle = async (results: Record<string, unknown>[]) =>
      first(
        await courier.sql<{ answer: unknown }>('select api.settle_webhooks($1) as answer', [JSON.stringify(results)]),
      ).answer
    const statuses = async () =>
      (
        await courier.sql<{ status: string; n: number }>(
          `select status, count(*)::integer as n from public.webhook_deliveries where organisation_id = $1 group by 1 order by 1`,
          [courier.organisationId],
        )
      ).map(({ status, n }) => `${n} ${status}`)

    const [a, b, c, d] = (await courier.claim()) as [Pending, Pending, Pending, Pending]
    const answer = await settle([
      { id: a.id, claim: a.claim, response_status: 500, milliseconds: 1 },
      { id: b.id, claim: b.claim, response_status: 204, milliseconds: 1 },
      { id: c.id, claim: randomUUID(), response_status: 204, milliseconds: 1 },
      { id: randomUUID(), claim: d.claim, response_status: 204, milliseconds: 1 },
    ])
    // Two of the six are due still.
    expect(answer).toEqual({ disabled: [], more: true })
    expect(await statuses()).toEqual(['5 pending', '1 delivered'])
    expect(await deliveryOf(courier, a.id)).toMatchObject({ claim: null, last_response_status: 500 })
    expect(await deliveryOf(courier, c.id)).toMatchObject({ claim: c.claim, last_response_status: null })
    // It succeeded last.
    expect(await endpointOf(courier)).toMatchObject({ status: 'enabled', failing: false })

    const [e, f] = (await courier.claim()) as [Pending, Pending]
    expect(
      await settle([
        { id: e.id, claim: e.claim, response_status: 200, milliseconds: 1 },
        { id: f.id, claim: f.claim, response_status: 410, milliseconds: 1 },
      ]),
    ).toEqual({ disabled: [f.id], more: false })
    expect(await statuses()).toEqual(['3 pending', '2 delivered', '1 failed'])
    expect(await endpointOf(courier)).toMatchObject({ status: 'disabled', disabled_reason: 'It answered 410 Gone.' })
  })
})

test('a failure long after the one before begins a new series, and does not disable the endpoint', async () => {
  await withCourier(1, async (courier) => {
    await courier.sql(
      `update public.webhook_endpoints set failing_since = now() - interval '60 days', last_failed_at = now() - interval '59 days'
       where id = $1`,
      [courier.endpointId],
    )
    await courier.settle(first(await courier.claim()), { status: 503 })
    expect(await endpointOf(courier)).toMatchObject({ status: 'enabled', failing: true })
  })
})

test('what is pending once more while it is under way is sent once more, whatever becomes of that attempt', async () => {
  await withCourier(1, async (courier) => {
    const pending = first(await courier.claim())
    await courier.sql('update public.webhook_deliveries set attempts = 0, next_attempt_at = now() where id = $1', [
      pending.id,
    ])
    await courier.settle(pending, { status: 200 })
    expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'pending', attempts: 0, claim: null })
  })
})

test('two couriers do not claim at once: one waits for the other, so that together they take no more of an endpoint', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoints(organisation.id, 3)
  for (let i = 0; i < 5; i++) await event.guest()
  await enqueued(organisation.id)
  const [one, other] = await Promise.all([studio.connect(), studio.connect()])
  const claim = async (client: typeof one) => {
    await client.query('begin')
    await client.query('set local role courier')
    const { pending } = (await client.query('select api.claim_webhooks(100000) as pending')).rows[0]
    await client.query('reset role')
    const { rows } = await client.query('select id from public.webhook_deliveries where organisation_id = $1', [
      organisation.id,
    ])
    return rows.filter(({ id }) => (pending as Pending[]).some((o) => o.id === id))
  }
  try {
    expect(await claim(one)).toHaveLength(3 * 4)
    const claimed = claim(other)
    expect(await Promise.race([claimed, sleep(100, 'waits')])).toBe('waits')
    await one.query('rollback')
    expect(await claimed).toHaveLength(3 * 4)
  } finally {
    await one.query('rollback')
    await other.query('rollback')
    one.release()
    other.release()
  }
})

test('what is given back is due at once, and has not been tried', async () => {
  await withCourier(1, async (courier) => {
    const pending = first(await courier.claim())
    await courier.release({ id: pending.id, claim: randomUUID() })
    expect(await deliveryOf(courier, pending.id)).toMatchObject({ attempts: 1, claim: pending.claim })
    await courier.release(pending)
    expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'pending', attempts: 0, claim: null })
    expect(await endpointOf(courier)).toMatchObject({ failing: false })
    const again = first(await courier.claim())
    expect([again.id, again.attempt]).toEqual([pending.id, 1])
    await courier.settle(again, { status: 200 })
    await courier.release(again)
    expect(await deliveryOf(courier, pending.id)).toMatchObject({ status: 'delivered', attempts: 1 })
  })
})

test('what is claimed again and again and never settled is given up', async () => {
  await withCourier(1, async (courier) => {
    const { id } = first(await courier.claim())
    await courier.sql('update public.webhook_deliveries set attempts = 20, next_attempt_at = now() where id = $1', [id])
    expect(await courier.claim()).toEqual([])
    expect(await deliveryOf(courier, id)).toMatchObject({
      status: 'failed',
      last_error: 'Given up after 20 attempts without a recorded result.',
    })
  })
})

test.each([
  ['an organisation', 'half', 32, 12, 4, null],
  ['all that are failing', 'a quarter', 16, 40, 1, 'now()'],
])('%s may have %s of what a courier carries', async (_what, _share, share, endpoints, each, failingSince) => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoints(organisation.id, endpoints)
  await rolledBack(async (client, asCourier) => {
    // Nobody else is under way, or failing, in this transaction, or begins to be.
    await lockOutbox(client)
    await client.query("update public.webhook_deliveries set claimed_until = null where status = 'pending'")
    await client.query('update public.webhook_endpoints set failing_since = null where organisation_id <> $1', [
      organisation.id,
    ])
    await client.query(
      `update public.webhook_endpoints set failing_since = ${failingSince} where organisation_id = $1`,
      [organisation.id],
    )
    await happens(client, ...Array(each).fill(event))
    const claim = async () => {
      const pending = (await asCourier('select api.claim_webhooks(100000)')) as Pending[]
      const { rows } = await client.query('select id from public.webhook_endpoints where organisation_id = $1', [
        organisation.id,
      ])
      return pending.filter((o) => rows.some(({ id }) => id === o.webhook_endpoint_id))
    }
    const pending = await claim()
    expect(pending).toHaveLength(share)
    expect(await claim()).toEqual([])
    for (const { id, claim } of pending.slice(0, 3)) {
      await settleOne(asCourier, { id, claim, response_status: 200 })
    }
    expect(await claim()).toHaveLength(3)
  })
})

test('endpoints that fail keep none of the organisation from its turn, however many and however old what is pending for them', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoints(organisation.id, 40)
  const good = await addEndpoint(organisation.id, ['order.created'])
  await rolledBack(async (client, asCourier) => {
    await client.query(
      'update public.webhook_endpoints set failing_since = now() where organisation_id = $1 and id <> $2',
      [organisation.id, good],
    )
    await happens(client, event)
    await client.query(
      `update public.webhook_deliveries set next_attempt_at = '2000-01-01' where organisation_id = $1 and webhook_endpoint_id <> $2`,
      [organisation.id, good],
    )
    const pending = (await asCourier('select api.claim_webhooks(100000)')) as Pending[]
    expect(pending.map((o) => o.webhook_endpoint_id)).toContain(good)
  })
})

test('an organisation with many endpoints keeps no other from its turn, however few places there are', async () => {
  const many = await createOrganisation()
  const one = await createOrganisation()
  const events = [await many.event(), await one.event()]
  await addEndpoints(many.id, 40)
  const lonely = await addEndpoint(one.id, ['order.created'])
  await rolledBack(async (client, asCourier) => {
    await lockOutbox(client)
    await client.query(
      "update public.webhook_deliveries set claimed_until = null, next_attempt_at = now() + interval '1 day' where status = 'pending'",
    )
    await happens(client, ...events)
    await client.query(
      "update public.webhook_deliveries set next_attempt_at = now() - interval '1 hour' where organisation_id = $1",
      [many.id],
    )
    const pending = (await asCourier('select api.claim_webhooks(20)')) as Pending[]
    expect(pending.map((o) => o.webhook_endpoint_id)).toContain(lonely)
  })
})

test('what a claim makes ready is bounded, and shared by the organisations that wait', async () => {
  const waiting = [await createOrganisation(), await createOrganisation()]
  for (const { id } of waiting) await addEndpoint(id, ['event.updated'])
  await rolledBack(async (client) => {
    const count = async (sql: string, id: string) => (await client.query(sql, [id])).rows[0].n as number
    for (const { id } of waiting) {
      await client.query(
        `insert into public.notifications (organisation_id, type, data)
         select $1, 'event.updated', '{}' from generate_series(1, 400)`,
        [id],
      )
    }
    await client.query('select private.enqueue_deliveries()')
    for (const { id } of waiting) {
      const made = await count(
        'select count(*)::int as n from public.webhook_deliveries where organisation_id = $1',
        id,
      )
      expect(made).toBeGreaterThan(0)
      expect(made).toBeLessThanOrEqual(250)
    }
  })
})

test('organisations whose endpoints fail take turns, however many there are and however old what is pending for them', async () => {
  const many = await createOrganisation()
  const one = await createOrganisation()
  const events = [await many.event(), await one.event()]
  const failing = new Set(await addEndpoints(many.id, 30))
  const unlucky = await addEndpoint(one.id, ['order.created'])
  await rolledBack(async (client, asCourier) => {
    await lockOutbox(client)
    await client.query(
      "update public.webhook_deliveries set claimed_until = null, next_attempt_at = now() + interval '1 day' where status = 'pending'",
    )
    await happens(client, ...events, events[0] as TestEvent)
    await client.query(
      `update public.webhook_endpoints set failing_since = now() - interval '1 hour', last_failed_at = now() - interval '1 hour'
       where organisation_id = $1`,
      [many.id],
    )
    await client.query(
      "update public.webhook_deliveries set next_attempt_at = now() - interval '1 hour' where organisation_id = $1",
      [many.id],
    )
    await client.query(
      'update public.webhook_endpoints set failing_since = now(), last_failed_at = now() where id = $1',
      [unlucky],
    )
    const claim = async () => (await asCourier('select api.claim_webhooks(100000)')) as Pending[]

    // The unlucky one's is not due yet, and the others have every place.
    await client.query(
      "update public.webhook_deliveries set next_attempt_at = now() + interval '5 seconds' where webhook_endpoint_id = $1",
      [unlucky],
    )
    // A claim also fans out what other tests notify of meanwhile.
    const before = (await claim()).filter((o) => failing.has(o.webhook_endpoint_id))
    expect(before).toHaveLength(16)
    await client.query('update public.webhook_deliveries set next_attempt_at = now() where webhook_endpoint_id = $1', [
      unlucky,
    ])
    const [settled] = before as [Pending]
    await settleOne(asCourier, { id: settled.id, claim: settled.claim, response_status: 500 })
    const after = (await claim()).map((o) => o.webhook_endpoint_id)
    expect(after.filter((id) => id === unlucky || failing.has(id))).toEqual([unlucky])
  })
})

test('what is pending can be counted, since when, and how late it is', async () => {
  await withCourier(2, async (courier) => {
    type Depth = { kind: string; pending: number; oldest_seconds: number; late_seconds: number }
    const depth = async () => {
      await courier.sql('set local role courier')
      const [{ depth }] = (await courier.sql('select api.outbox_depth() as depth')) as [{ depth: Depth[] }]
      await courier.sql('reset role')
      expect(depth.map(({ kind }) => kind)).toEqual(['webhooks', 'ticket_emails'])
      return depth[0] as Depth
    }
    const set = (assignments: string) =>
      courier.sql(`update public.webhook_endpoints set ${assignments} where id = $1`, [courier.endpointId])
    const year = 365 * 86_400
    // Older than whatever else is pending in this database.
    await courier.sql(
      `update public.webhook_deliveries set created_at = now() - interval '3 years', next_attempt_at = now() - interval '2 years'
       where organisation_id = $1`,
      [courier.organisationId],
    )
    const late = await depth()
    expect(late.oldest_seconds).toBeGreaterThan(2.9 * year)
    expect([late.late_seconds > 1.9 * year, late.late_seconds < 2.1 * year]).toEqual([true, true])

    // What waits for its own endpoint waits for no courier.
    await set('failing_since = now()')
    expect((await depth()).late_seconds).toBeLessThan(year)
    await set('failing_since = null')
    await courier.sql(
      `update public.webhook_deliveries set claimed_until = now() + interval '1 minute'
       where id = (select min(id::text)::uuid from public.webhook_deliveries where organisation_id = $1)`,
      [courier.organisationId],
    )
    expect(await depth()).toMatchObject({ pending: late.pending })
    expect((await depth()).late_seconds).toBeLessThan(year)

    await set("status = 'disabled'")
    const silent = await depth()
    expect(silent.pending).toBe(late.pending - 2)
    expect(silent.oldest_seconds).toBeLessThan(year)
  })
})
