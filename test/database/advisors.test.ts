// The Security and Performance Advisors of Supabase, as a project's dashboard shows them: `supabase db advisors` runs them here.

import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'

const supabase = join(dirname(createRequire(import.meta.url).resolve('supabase/package.json')), 'dist/supabase.js')

type Advice = { name: string; level: 'ERROR' | 'WARN' | 'INFO'; detail: string; metadata: { schema?: string } }

async function advice(): Promise<Advice[]> {
  const args = ['db', 'advisors', `--remote=${inject('databaseUrl')}`, '--output-format=json', '--level=info']
  const env = {
    ...process.env,
    PGSSLMODE: 'disable',
    SUPABASE_TELEMETRY_DISABLED: '1',
    SUPABASE_NO_UPDATE_NOTIFIER: '1',
  }
  const options = { env, maxBuffer: 10_000_000, cwd: join(import.meta.dirname, '../..') }
  const { stdout } = await promisify(execFile)(process.execPath, [supabase, ...args], options)
  return JSON.parse(stdout).results
}

const explained: Record<string, string> = {
  unindexed_foreign_keys: 'composite keys: an index on one of the columns does, and rows of plans are not deleted',
  unused_index: 'says how much a database was used',
  rls_enabled_no_policy: 'tables of private, which only functions of their owner read',
}

test('the advisors find nothing that has to be mended', async () => {
  const found = await advice()
  expect(found.filter(({ level }) => level !== 'INFO')).toEqual([])
  expect(found.filter(({ name }) => !(name in explained))).toEqual([])
  const withoutPolicy = found.filter(({ name }) => name === 'rls_enabled_no_policy')
  expect([...new Set(withoutPolicy.map(({ metadata }) => metadata.schema))]).toEqual(['private'])
})
