// What `supabase gen types` makes of the database: rows as the documentation adds them have to compile, with supabase-js.

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const resolve = createRequire(import.meta.url).resolve
const supabase = join(dirname(resolve('supabase/package.json')), 'dist/supabase.js')

async function generateTypes(): Promise<string> {
  const env = {
    ...process.env,
    PGSSLMODE: 'disable',
    SUPABASE_TELEMETRY_DISABLED: '1',
    SUPABASE_NO_UPDATE_NOTIFIER: '1',
  }
  const args = ['gen', 'types', 'typescript', `--remote=${inject('databaseUrl')}`, '--schema=public']
  const { stdout } = await run(process.execPath, [supabase, ...args], { env, maxBuffer: 10_000_000 })
  return stdout
}

// As docs/guides/studio.md says what a row needs; whatever is left out is filled in.
const program = (attendee: string) => `
import { createClient } from '@supabase/supabase-js'
import type { Database } from './database.ts'

const supabase = createClient<Database>('https://example.com', 'key')
const id = '00000000-0000-0000-0000-000000000000'
await supabase.from('events').insert({ name: 'Opening night', starts_at: '2030-05-01T18:00:00Z' })
await supabase.from('ticket_types').insert({ event_id: id, name: 'Guest', price: 4900, quantity: 10 })
await supabase.from('promo_codes').insert({ event_id: id, code: 'EARLY', percent_off: 20 })
await supabase.from('orders').insert({ event_id: id, name: 'Mary Jackson', email: 'mary@example.com', payment_method: 'invoice' })
await supabase.from('attendees').insert(${attendee})
await supabase.from('registrations').insert({ event_id: id, ticket_type_id: id, name: 'Mary Jackson', email: 'mary@example.com' })
await supabase.from('payments').insert({ order_id: id, amount: 4900 })
await supabase.from('payment_voids').insert({ payment_id: id })
await supabase.from('refunds').insert({ order_id: id, amount: 4900 })
await supabase.from('waiting_list_entries').insert({ event_id: id, ticket_type_id: id, name: 'Mary Jackson', email: 'mary@example.com' })
await supabase.from('check_in_points').insert({ event_id: id, name: 'Gate' })
await supabase.from('check_ins').insert({ event_id: id, code: 'XXXX' })
await supabase.from('webhook_endpoints').insert({ url: 'https://example.com', types: ['order.completed'] })
await supabase.from('orders').update({ status: 'cancelled' }).eq('reference', 'XXXXXXXX')
const { data } = await supabase.rpc('create_api_key', { name: 'CRM', scopes: ['events:read'] })
console.log(data)
`

test('rows as they are documented compile with generated types, and incomplete ones do not', async () => {
  // Below the project, where the packages are found.
  const folder = await mkdtemp(join(import.meta.dirname, '.generated-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'database.ts'), await generateTypes())
  await writeFile(
    join(folder, 'complete.ts'),
    program("{ order_id: id, ticket_type_id: id, name: 'Mary Jackson', email: 'mary@example.com' }"),
  )
  await writeFile(join(folder, 'incomplete.ts'), program("{ ticket_type_id: id, name: 'Mary Jackson' }"))
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../../tsconfig.json',
      include: ['*.ts'],
      compilerOptions: { tsBuildInfoFile: 'tsbuildinfo' },
    }),
  )
  const tsc = join(dirname(resolve('@typescript/native/package.json')), 'bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '-p', folder, '--pretty', 'false']).catch((error) => error)
  const complaints = stdout.split('\n').filter((line: string) => line.includes('error'))
  expect(complaints).toEqual([expect.stringMatching(/incomplete\.ts.*{ ticket_type_id: string; name: string; }/)])
}, 60_000)
