// The Security and Performance Advisors of Supabase, as a project's dashboard shows them: `supabase db advisors`.

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'

const repository = join(import.meta.dirname, '../..')

type Advice = { name: string; level: 'INFO' | 'WARN' | 'ERROR'; metadata: { schema: string; name: string } }

async function advice(): Promise<Advice[]> {
  const { stdout } = await promisify(execFile)(
    join(repository, 'node_modules/.bin/supabase'),
    ['db', 'advisors', `--remote=${inject('databaseUrl')}`, '--level', 'info', '--output-format', 'json'],
    {
      cwd: repository,
      env: { ...process.env, SUPABASE_TELEMETRY_DISABLED: '1', SUPABASE_NO_UPDATE_NOTIFIER: '1' },
      maxBuffer: 1 << 24,
    },
  )
  return JSON.parse(stdout).results
}

const explained: Record<string, string> = {
  unindexed_foreign_keys: 'composite keys: an index on one of the columns does, and rows of plans are not deleted',
  unused_index: 'says how much a database was used',
  rls_enabled_no_policy: 'tables of private, which only functions of their owner read',
}

test('the advisors find nothing but what is explained', async () => {
  const found = await advice()
  expect(found.filter(({ name, level }) => level !== 'INFO' || !(name in explained))).toEqual([])
  const withoutPolicy = found.filter(({ name }) => name === 'rls_enabled_no_policy')
  expect([...new Set(withoutPolicy.map(({ metadata }) => metadata.schema))]).toEqual(['private'])
})
