// What is purged and what is kept. In a transaction that is rolled back: purging knows no organisations.

import { expect, test } from 'vitest'
import { asPurge } from '../../support/database.ts'
import { waitingListEntry } from '../../support/operation-arguments.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint, enqueued } from '../../support/outbox.ts'
import { rolledBack } from '../as-courier.ts'

const tables = ['private.idempotency_records', 'public.webhook_deliveries', 'public.notifications', 'public.emails']

test('what is older than its retention goes, a few at a time; what is pending or newer stays', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoint(organisation.id, ['order.created'])
  for (let i = 0; i < 3; i++) await event.guest()
  await enqueued(organisation.id)
  await rolledBack(async (client, asCourier) => {
    const counts = async () => {
      const counted = tables.map((table) => `(select count(*)::int from ${table} where organisation_id = $1)`)
      return (await client.query(`select array[${counted}] as counts`, [organisation.id])).rows[0].counts
    }
    const age = (table: string, and = '') =>
      client.query(
        `update ${table} set created_at = now() - interval '8 days' from ${asPurge} where organisation_id = $1 ${and}`,
        [organisation.id],
      )
    const purge = (days: number, limit: number) => asCourier('select api.purge($1, $2)', [days, limit])
    for (const [key, expiry] of [
      ['old', "now() - interval '1 second'"],
      ['new', "now() + interval '1 hour'"],
    ]) {
      await client.query(
        `insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome, expires_at)
         values ($1, $1, $2, 'f', '{}', ${expiry})`,
        [organisation.id, key],
      )
    }
    // One record expired; three orders are notified, created and completed, and so are their guests; three e-mails are pending.
    await purge(7, 100_000)
    const [records, deliveries, notifications, emails] = await counts()
    expect([records, deliveries, emails]).toEqual([1, 3, 3])

    await age('public.webhook_deliveries')
    await age('public.notifications')
    await age('public.emails')
    // Pending still, however old: with their notifications.
    await purge(7, 100_000)
    expect(await counts()).toEqual([1, 3, 3, 3])

    await client.query("update public.webhook_deliveries set status = 'delivered' where organisation_id = $1", [
      organisation.id,
    ])
    await client.query("update public.emails set status = 'sent', next_attempt_at = null where organisation_id = $1", [
      organisation.id,
    ])
    await purge(9, 100_000)
    expect(await counts()).toEqual([1, 3, 3, 3])
    expect(notifications).toBeGreaterThan(3)
    // Notifications go when the last of their deliveries has gone.
    expect(await purge(7, 2)).toBe(2 + 2 + 2)
    expect(await purge(7, 2)).toBe(1 + 1 + 1)
    expect(await counts()).toEqual([1, 0, 0, 0])
    expect(await purge(7, 2)).toBe(0)
  })
})

test('entries of the audit trail have a retention of their own', async () => {
  const organisation = await createOrganisation()
  await organisation.event()
  await rolledBack(async (client, asCourier) => {
    await client.query(
      `update public.audit_entries set created_at = now() - interval '8 days' from ${asPurge}
       where organisation_id = $1 and object_type = 'event'`,
      [organisation.id],
    )
    const left = async () =>
      (
        await client.query<{ object_type: string }>(
          'select distinct object_type from public.audit_entries where organisation_id = $1 order by 1',
          [organisation.id],
        )
      ).rows.map(({ object_type }) => object_type)
    await asCourier('select api.purge(1, 100000, 9)')
    expect(await left()).toEqual(['organisation', 'event', 'ticket_type'])
    await asCourier('select api.purge(1, 100000, 7)')
    expect(await left()).toEqual(['organisation', 'ticket_type'])
  })
})

test('what is pending for a disabled endpoint goes, too, when it is old', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const endpoint = await addEndpoint(organisation.id, ['order.created'])
  await event.guest()
  await enqueued(organisation.id)
  await rolledBack(async (client, asCourier) => {
    const pending = async () => {
      await asCourier('select api.purge(7, 100000)')
      const sql = 'select count(*)::int as n from public.webhook_deliveries where webhook_endpoint_id = $1'
      return (await client.query(sql, [endpoint])).rows[0].n
    }
    await client.query("update public.webhook_endpoints set status = 'disabled' where id = $1", [endpoint])
    expect(await pending()).toBe(1)
    await client.query(
      "update public.webhook_deliveries set created_at = now() - interval '8 days' where webhook_endpoint_id = $1",
      [endpoint],
    )
    expect(await pending()).toBe(0)
  })
})

test('a waiting-list entry that came to nothing goes when it is old, and one that waits stays', async () => {
  const event = await (await createOrganisation()).event()
  const [waits, left] = [await waitingListEntry(event), await waitingListEntry(event, 'left@example.com')]
  await rolledBack(async (client, asCourier) => {
    await client.query("update public.waiting_list_entries set name = 'Ann', status = 'cancelled' where id = $1", [
      left,
    ])
    const kept = async () => {
      await asCourier('select api.purge(7, 100000)')
      return (
        await client.query('select id from public.waiting_list_entries where id = any ($1) order by id', [
          [waits, left],
        ])
      ).rows
    }
    expect(await kept()).toEqual([{ id: waits }, { id: left }])
    await client.query('alter table public.waiting_list_entries disable trigger user')
    await client.query(
      "update public.waiting_list_entries set updated_at = now() - interval '8 days' where id = any ($1)",
      [[waits, left]],
    )
    await client.query('alter table public.waiting_list_entries enable trigger user')
    expect(await kept()).toEqual([{ id: waits }])
    const { rows } = await client.query(
      "select changes from public.audit_entries where object_id = $1 and action = 'updated'",
      [left],
    )
    expect(rows).toEqual([{ changes: { status: { from: 'waiting', to: 'cancelled' } } }])
  })
})
