// A database from before the rules became narrower is brought to them, with whatever it holds.

import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { applyMigrations } from '../../src/embedded/migrate.ts'
import { startScratchDatabase } from '../../src/embedded/scratch.ts'

const root = join(import.meta.dirname, '..', '..')
const narrower = '20261122010000'

/** A project with those migrations that came before. */
function projectBefore(): string {
  const folder = mkdtempSync(join(tmpdir(), 'usher-upgrade-'))
  cpSync(join(root, 'supabase', 'config.toml'), join(folder, 'supabase', 'config.toml'))
  for (const name of readdirSync(join(root, 'supabase', 'migrations'))) {
    if (name < narrower)
      cpSync(join(root, 'supabase', 'migrations', name), join(folder, 'supabase', 'migrations', name))
  }
  return folder
}

test('addresses that nobody can reply to are let go, and metadata keeps what it says', {
  timeout: 60_000,
}, async () => {
  const before = projectBefore()
  const database = await startScratchDatabase(new AbortController().signal)
  const client = new pg.Client({ connectionString: database.databaseUrl })
  const all = async (sql: string) => (await client.query({ text: sql, rowMode: 'array' })).rows
  try {
    await applyMigrations(database.databaseUrl, { projectDir: before })
    await client.connect()
    await client.query(`
      insert into public.organisations (name, slug, reply_to_email)
      values ('A', 'a', 'a@b,c'), ('B', 'b', 'x@y..z'), ('C', 'c', 'desk@example.com'), ('D', 'd', null);
      insert into public.events (organisation_id, name, slug, starts_at, ends_at)
      select id, 'E', 'e', now() + interval '1 day', now() + interval '2 days' from public.organisations where slug = 'a';
      insert into public.ticket_types (event_id, name) select id, 'T' from public.events;
      update public.events set status = 'published';
      insert into public.orders (event_id, name, email) select id, 'G', 'guest@example.com' from public.events;
      insert into public.attendees (order_id, ticket_type_id, name, email, metadata)
      select o.id, t.id, 'G', 'm\u00fcller@example.com', '{"big": 9007199254740993, "fine": 0.1, "text": "x", "__proto__": 1}'
      from public.orders o, public.ticket_types t;
    `)
    await applyMigrations(database.databaseUrl, { projectDir: root })
    expect(await all('select slug, reply_to_email from public.organisations order by slug')).toEqual([
      ['a', null],
      ['b', null],
      ['c', 'desk@example.com'],
      ['d', null],
    ])
    expect(await all('select metadata from public.attendees')).toEqual([
      [{ big: '9007199254740993', fine: 0.1, text: 'x' }],
    ])
    // Whoever has an address from before comes in all the same; only a new one is held against the rule.
    expect(
      await all(`insert into public.check_ins (event_id, code) select event_id, ticket_code from public.attendees
        returning result`),
    ).toEqual([['accepted']])
    await client.query("update public.attendees set company = 'NASA', email = email")
  } finally {
    await client.end()
    await database.remove()
    rmSync(before, { recursive: true, force: true })
  }
})
