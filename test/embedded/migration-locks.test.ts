// A migration on a database that is in use: it gives up soon where it gets no lock, for writers wait behind it, and is tried again.

import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { withClient } from '../../src/local/client.ts'
import { applyMigrations } from '../../src/local/migrate.ts'
import { startOwnDatabase } from '../support/own-database.ts'
import { cleanUp, temporaryFolder } from './support.ts'

afterEach(cleanUp)

test('a migration that waits behind a long transaction lets writers pass, and is tried again', async () => {
  const projectDir = join(temporaryFolder(), 'project')
  mkdirSync(projectDir)
  cpSync(join(import.meta.dirname, '../../supabase'), join(projectDir, 'supabase'), { recursive: true })
  writeFileSync(
    join(projectDir, 'supabase/migrations/29990101000000_two_columns.sql'),
    `set local lock_timeout = '200ms';
     alter table public.plans add column first text;
     alter table public.organisations add column second text;`,
  )
  const database = await startOwnDatabase()
  const columns = () =>
    withClient(database.databaseUrl, async (client) => {
      const { rows } = await client.query<{ name: string }>(
        "select column_name as name from information_schema.columns where column_name in ('first', 'second') and table_schema = 'public'",
      )
      return rows.map(({ name }) => name).toSorted()
    })
  try {
    const said: string[] = []
    await withClient(database.databaseUrl, async (reader) => {
      await reader.query('begin')
      await reader.query('select from public.organisations')
      await applyMigrations(database.databaseUrl, {
        projectDir,
        progress(message) {
          said.push(message)
          if (!message.includes('Trying again')) return
          // Nothing of it is there, nor does anybody wait for it: then the long transaction ends.
          void withClient(database.databaseUrl, async (writer) => {
            expect(await columns()).toEqual([])
            await writer.query("insert into public.organisations (name, slug) values ('Meanwhile', 'meanwhile')")
          }).finally(() => reader.query('commit'))
        },
      })
    })
    expect(said[0]).toBe('Applying 1 migration …')
    expect(said[1]).toContain('Trying again')
    expect(await columns()).toEqual(['first', 'second'])
    await withClient(database.databaseUrl, async (client) => {
      expect((await client.query("select from public.organisations where slug = 'meanwhile'")).rowCount).toBe(1)
    })
  } finally {
    await database.remove()
  }
})
