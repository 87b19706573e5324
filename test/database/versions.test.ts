// Versions count edits. An edit that names the versions it may be made of: any of them will do, and none is not the same as no
// condition. A value that is written as it was is no edit.

import { beforeAll, expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { actAs } from './actor.ts'
import { createTenant, type Tenant } from './tenant-fixture.ts'

const edits = {
  update_event: ['scope_events_write', 'events', '{"name": "Renamed"}'],
  update_ticket_type: ['scope_events_write', 'ticket_types', '{"name": "Renamed"}'],
  update_promo_code: ['scope_events_write', 'promo_codes', '{"percent_off": 30}'],
  update_webhook_endpoint: ['scope_events_write', 'webhook_endpoints', '{"description": "Renamed"}'],
  update_attendee: ['scope_attendees_write', 'attendees', '{"name": "Renamed"}'],
  update_order: ['scope_orders_write', 'orders', '{"name": "Renamed"}'],
} as const

let party: Tenant
beforeAll(async () => {
  party = await createTenant()
})

test.each(Object.entries(edits))(
  '%s is made of any version that is named',
  async (operation, [role, table, changes]) => {
    await actAs(role, party.claims, async ({ rows, touched, refusal }) => {
      const [object] = await rows<{ id: string; version: number }>(
        `select id, version from public.${table} order by id limit 1`,
      )
      const { id, version = 0 } = object ?? {}
      const update = `select api.${operation}($1, $2, if_version => $3)`
      for (const versions of [[version + 1], [version + 1, version - 1], []]) {
        expect(await refusal(update, [id, changes, versions])).toMatchObject({
          sqlstate: 'PT412',
          code: 'version_mismatch',
          details: { version },
        })
      }
      expect(await touched(update, [id, changes, [version + 1, version]])).toBe(1)
      expect(await touched(update, [id, changes, null])).toBe(1)
    })
  },
)

const sameAgain = {
  ...edits,
  update_order: ['scope_orders_write', 'orders', 'payment_due_at'],
  update_question: ['scope_events_write', 'questions', 'label'],
  update_check_in_point: ['scope_events_write', 'check_in_points', 'name'],
  update_waiting_list_entry: ['scope_attendees_write', 'waiting_list_entries', 'name'],
} as const

test('a change to the values that are there is no edit', async () => {
  for (const [operation, [role, table, changes]] of Object.entries(sameAgain)) {
    const [field = changes] = changes.startsWith('{') ? Object.keys(JSON.parse(changes)) : []
    await actAs(role, party.claims, async ({ rows, touched }) => {
      const read = () => rows<{ id: string }>(`select id, version, updated_at from public.${table} order by id limit 1`)
      const before = await read()
      const update = `select api.${operation}(t.id, jsonb_build_object($1::text, t.${field})) from public.${table} t where t.id = $2`
      expect(await touched(update, [field, before[0]?.id]), operation).toBe(1)
      expect(await read(), operation).toEqual(before)
    })
  }
})

/** Tables whose rows have a version, each with what somebody may write there, and the code that counts. */
async function versionedTables() {
  const { rows } = await studio.query<{ name: string; columns: string[]; code: string }>(
    `select c.relname as name, array_agg(distinct p.column_name::text) as columns,
       substring(min(pg_get_functiondef(to_regproc('private.tg_' || c.relname || '__count_edit'))) from 'new\\.version := .*') as code
     from pg_class c
     join pg_attribute v on v.attrelid = c.oid and v.attname = 'version'
     join information_schema.column_privileges p on p.table_schema = 'public' and p.table_name = c.relname
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
       and p.privilege_type = 'UPDATE' and (p.grantee = 'authenticated' or p.grantee like 'scope%')
     group by c.relname`,
  )
  return rows
}

test('whatever may be edited counts a version', async () => {
  // The state of an e-mail is no edit.
  const uncounted = (await versionedTables()).flatMap(({ name, columns, code }) =>
    columns
      .filter((column) => !new RegExp(`new\\.${column}\\b`).test(code.replaceAll('"', '')))
      .map((column) => `${name}.${column}`),
  )
  expect(uncounted).toEqual(['attendees.sensitive_answers', 'attendees.ticket_email_status'])
})

test('a row that is saved as it is keeps version and updated_at, and tells nobody', async () => {
  const party = await createTenant()
  const told = async () => {
    const counts = ['notifications', 'audit_entries'].map((log) =>
      studio.query(`select id from public.${log} where organisation_id = $1`, [party.id]),
    )
    return (await Promise.all(counts)).map(({ rowCount }) => rowCount)
  }
  const before = await told()
  const tables = await versionedTables()
  expect(tables.map(({ name }) => name).sort()).toEqual([
    'attendees',
    'check_in_points',
    'events',
    'orders',
    'promo_codes',
    'questions',
    'ticket_types',
    'waiting_list_entries',
    'webhook_endpoints',
  ])
  for (const { name, columns } of tables) {
    const read = async () =>
      (await studio.query(`select to_jsonb(t) as row from public.${name} t where organisation_id = $1`, [party.id]))
        .rows
    const stored = await read()
    const assignments = [...columns, 'version', 'updated_at'].map((column) => `${column} = ${column}`)
    await studio.query(`update public.${name} set ${assignments} where organisation_id = $1`, [party.id])
    expect(stored.length, name).toBeGreaterThan(0)
    expect(await read(), name).toEqual(expect.arrayContaining(stored))
  }
  expect(await told()).toEqual(before)
})
