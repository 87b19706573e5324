// A dump that is restored into another cluster, where transactions are counted anew: simulated by numbers from far ahead.

import pg from 'pg'
import { expect, test } from 'vitest'
import { startOwnDatabase } from '../../support/own-database.ts'

test('after a restore the log goes on once it is acknowledged, no webhook is lost, and none is sent until it is released', async () => {
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
    await client.query("update public.notifications set transaction_id = '9000000000'")
    await client.query(
      "insert into private.installations (system_identifier, names) values (1, '{address:http://kong:8000}')",
    )
    expect(await one('select private.after_restore()')).toMatch(
      /^Done: .+ held until you run "select private.release_deliveries\(\)"\.$/,
    )
    await rename('New')
    const log = await client.query('select data from public.notifications order by transaction_id')
    expect(log.rows.map(({ data }) => data.name)).toEqual(['Queued', 'New'])
    expect(await one('select api.claim_webhooks(100)')).toEqual([])
    expect(await one('select private.release_deliveries()')).toMatch(/^Released/)
    expect(await one('select api.claim_webhooks(100)')).toHaveLength(2)
  } finally {
    await client.end()
    await database.remove()
  }
})
