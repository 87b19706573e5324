// A dump that is restored into another cluster, where transactions are counted anew: simulated by snapshots from far ahead.

import pg from 'pg'
import { expect, test } from 'vitest'
import { startOwnDatabase } from '../../support/own-database.ts'

test('after a restore the courier stops until it is acknowledged, then no webhook is lost, and none is sent until it is released', async () => {
  const database = await startOwnDatabase()
  const client = new pg.Client({ connectionString: database.databaseUrl })
  const one = async (sql: string) => Object.values((await client.query(sql)).rows[0] ?? {})[0]
  const rename = (name: string) => client.query('update public.events set name = $1', [name])
  try {
    await client.connect()
    await client.query(`
      insert into public.organisations (name, slug) values ('A', 'a');
      insert into public.events (organisation_id, name) select id, 'E' from public.organisations;
      insert into public.webhook_endpoints (organisation_id, url, types)
      select id, 'https://example.com/', '{event.updated}' from public.organisations;
    `)
    await rename('Queued')
    const far = 9_000_000_000
    await client.query(`
      update private.webhook_subscriptions set transaction_id = '${far}', snapshot = '${far + 1}:${far + 1}:';
      update public.notifications set transaction_id = '${far + 5}', subject_id = null;
      update private.notification_queue set transaction_id = '${far + 5}';
    `)
    await client.query(
      "insert into private.installations (system_identifier, names) values (1, '{address:http://kong:8000}')",
    )
    await expect(client.query('select private.fan_out(100)')).rejects.toThrow('select private.after_restore()')
    expect(await one('select count(*)::integer from private.notification_queue')).toBe(1)

    expect(await one('select private.after_restore()')).toMatch(
      /^Done: .+ held until you run "select private.release_deliveries\(\)"\.$/,
    )
    expect(await one('select count(*)::integer from public.webhook_deliveries')).toBe(1)
    expect(await one('select subject_id = (select id from public.events) from public.notifications')).toBe(true)
    await rename('New')
    await client.query('select private.fan_out(100)')
    expect(await one('select count(*)::integer from public.webhook_deliveries')).toBe(2)
    expect(await one('select count(*)::integer from private.notification_queue')).toBe(0)
    expect(await one('select api.claim_webhooks(100)')).toEqual([])
    expect(await one('select private.release_deliveries()')).toMatch(/^Released/)
    expect(await one('select api.claim_webhooks(100)')).toHaveLength(2)
  } finally {
    await client.end()
    await database.remove()
  }
})
