// A data directory from before the baseline migration: refused with a sentence that says what to do, and left as it is.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from 'pg'
import { afterEach, expect, test } from 'vitest'
import { findPostgres } from '../../src/local/binaries.ts'
import { databaseUrlFor, withClient } from '../../src/local/client.ts'
import { openDataDirectory } from '../../src/local/data-directory.ts'
import { startDatabase } from '../../src/local/database-server.ts'
import { readSecrets } from '../../src/local/secrets.ts'
import { processesOn } from '../cli/support.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { cleanUp, start, temporaryFolder } from './support.ts'

afterEach(cleanUp)

const versions = ['20261120000000', '20261122180000']

test('data from before the baseline is refused and left alone', async () => {
  const dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  await withDatabase(dataDir, async (client) => {
    await client.query("create table public.kept as select 'still here' as note")
    await client.query('delete from supabase_migrations.schema_migrations')
    await client.query('insert into supabase_migrations.schema_migrations (version) select unnest($1::text[])', [
      versions,
    ])
  })
  const files = readdirSync(dataDir)
  const kept = readFileSync(join(dataDir, 'secrets.json'), 'utf8')

  const refusal = await start(dataDir).catch((error: Error) => error.message)
  expect(refusal).toMatch(
    /from a version before the first release.*Nothing in it was changed\. Set USHER_DATA_DIR to another folder/,
  )
  expect(refusal).not.toContain('newer Usher')

  expect(processesOn(dataDir)).toEqual([])
  expect(readdirSync(dataDir).filter((name) => name !== 'lock')).toEqual(files)
  expect(readFileSync(join(dataDir, 'secrets.json'), 'utf8')).toBe(kept)
  const inside = await withDatabase(dataDir, async (client) => {
    const { rows } = await client.query(`
      select (select note from public.kept) as note,
        (select array_agg(m.version order by m.version) from supabase_migrations.schema_migrations m) as versions`)
    return rows[0]
  })
  expect(inside).toEqual({ note: 'still here', versions })
})

/** Postgres on the data directory, without migrations. */
async function withDatabase<T>(dataDir: string, use: (client: Client) => Promise<T>): Promise<T> {
  const directory = openDataDirectory(dataDir)
  const secrets = readSecrets(directory)
  if (secrets === null) throw new Error('the secrets are gone')
  const binaries = await findPostgres()
  const { signal } = new AbortController()
  const server = await startDatabase({ directory, binaries, secrets, durable: false, progress: () => {}, signal })
  try {
    return await withClient(databaseUrlFor('postgres', secrets.postgresPassword, server.port), use)
  } finally {
    await server.stop()
  }
}
