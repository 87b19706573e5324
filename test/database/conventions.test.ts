// What holds for everything in the database, whoever adds it: closed by default, explained, and named so that a refusal
// can be read. All of it is asked of the catalogue, so there is nothing to keep up here.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { confirmationFunctions, functionsIn, oauthFunctions, tablesIn } from './catalogue.ts'

/** The first column of a query that finds what breaks a rule. */
async function offenders(sql: string): Promise<string[]> {
  const { rows } = await studio.query({ text: sql, rowMode: 'array' })
  return rows.map(([name]) => String(name))
}

const ours = (oid: string) => `${oid}::regnamespace::text in ('public', 'private', 'api')`

test('every function runs on an empty search path', async () => {
  const functions = await functionsIn('api', 'private')
  expect(functions.length).toBeGreaterThan(0)
  expect(functions.filter((f) => !f.settings.includes('search_path=""')).map((f) => f.name)).toEqual([])
})

test('no function is open to everybody, nor to anon, but the one that PostgREST runs before any request', async () => {
  const functions = await functionsIn('api', 'private', 'public')
  const open = functions.filter((f) => f.callers.includes('public') || f.callers.includes('anon'))
  expect(open.map((f) => `${f.schema}.${f.name}`)).toEqual(['private.check_request'])
})

test('every function plans by key, whatever the session or the role says', async () => {
  const unplanned = await offenders(
    `select p.oid::regprocedure from pg_proc p
     where p.pronamespace::regnamespace::text in ('api', 'private') and p.prosrc ~ '\\mfrom (public|private)\\.[a-z_]+ '
       and (p.proconfig::text !~ 'enable_seqscan=off' or p.proconfig::text !~ 'plan_cache_mode=')`,
  )
  expect(unplanned).toEqual([])
})

test('every table, view and column of schema public says what it is', async () => {
  const { rows } = await studio.query<{ name: string }>(
    `select concat_ws('.', c.relname, a.attname) as name
     from pg_class c
     left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v')
       and (col_description(c.oid, a.attnum) is null and a.attnum is not null or obj_description(c.oid, 'pg_class') is null)
     order by 1`,
  )
  expect(rows).toEqual([])
})

test('functions of schema public are for people who sign in, though Supabase would open them to everybody', async () => {
  const functions = await functionsIn('public')
  expect(functions.filter(({ callers }) => callers.join() !== 'authenticated').map(({ name }) => name)).toEqual([])
  // The others are in what the advisors say.
  expect(functions.filter(({ securityDefiner }) => !securityDefiner).map(({ name }) => name)).toEqual([
    'accept_offer',
    'revoke_api_key',
    'the_attendee',
    'the_event',
    'the_member',
    'the_order',
    'the_organisation',
    'the_payment',
    'the_ticket_type',
    'the_waiting_list_entry',
    'the_webhook_endpoint',
  ])
})

test('the functions that lend somebody the rights of their owner are these', async () => {
  const lent = (await functionsIn('api', 'private')).filter((f) => f.securityDefiner && f.callers.length > 0)
  expect(Object.fromEntries(lent.map((f) => [`${f.schema}.${f.name}`, f.callers]))).toEqual({
    ...Object.fromEntries([...oauthFunctions, ...confirmationFunctions].map((name) => [`api.${name}`, ['gateway']])),
    'api.announce_installation': ['courier'],
    'api.carry_out_cancellation': ['courier'],
    'api.claim_cancellations': ['courier'],
    'api.claim_emails': ['courier'],
    'api.claim_webhooks': ['courier'],
    'api.enforce_payment_deadlines': ['courier'],
    'api.erased_emails': ['courier'],
    'api.expire_waiting_list_offers': ['courier'],
    'api.get_ticket_page': ['gateway'],
    'api.get_export_link': ['gateway'],
    'api.get_opt_out': ['gateway'],
    'api.opt_out': ['gateway'],
    'api.switch_ticket_emails': ['gateway'],
    'api.outbox_depth': ['courier'],
    'api.poll_queues': ['courier'],
    'api.purge': ['courier'],
    'api.record_email_event': ['courier'],
    'api.release_webhook': ['courier'],
    'api.resolve_api_key': ['gateway'],
    'api.settle_email': ['courier'],
    'api.settle_emails': ['courier'],
    'api.settle_webhooks': ['courier'],
    // Of the organisation of the caller, by key whatever the statistics say; what this transaction has added, of the second.
    'private.attendee_of_guest': ['scope_attendees_write'],
    'private.outcomes_of_registrations': ['scope_attendees_write'],
    'private.actor_name': ['authenticated', 'scope_events_write'],
    // Of members whose rows the caller reads.
    'private.member_contact': ['authenticated'],
    'private.affected_by_event': ['scope_events_write'],
    'private.effect_of_change': ['scope_orders_write'],
    'private.cancel_later': ['scope_events_write'],
    'private.check_request': ['public'],
    // Refuses, or spends a confirmation of the calling key.
    'private.assert_confirmed': ['api_key'],
    'private.door_list': ['scope_checkin_write'],
    'private.event_summary': ['scope_events_read'],
    // Plans of the family of the calling key.
    'private.keep_event_plan': ['scope_events_write'],
    'private.open_event_plan': ['scope_events_write'],
    // Ids only; the rows are read under the policies of the caller.
    'private.erase_attendee': ['scope_attendees_write'],
    // Of the organisation of the caller, by the address.
    'private.erase_people': ['scope_attendees_write'],
    'private.find_people': ['scope_attendees_read'],
    'private.page_of_attendees': ['scope_attendees_read'],
    'private.attendees_found': ['scope_attendees_read'],
    // Of an order that is being added.
    'private.confirm_now': ['authenticated'],
    'private.attendees_of_order': ['scope_attendees_read'],
    'private.page_of_audit_entries': ['scope_events_write'],
    'private.page_of_check_ins': ['scope_attendees_read'],
    'private.page_of_door_attendees': ['scope_checkin_write'],
    'private.page_of_due_orders': ['scope_orders_read'],
    'private.page_of_emails': ['scope_attendees_read'],
    'private.page_of_events': ['scope_events_read'],
    'private.page_of_events_by_start': ['scope_events_read'],
    'private.page_of_notifications': ['scope_events_write'],
    'private.page_of_orders': ['scope_orders_read'],
    'private.page_of_payment_lines': ['scope_orders_read'],
    'private.page_of_webhook_deliveries': ['scope_events_write'],
    'private.lock_attendees_of_import': ['scope_attendees_write'],
    'private.lock_event_of': ['scope_attendees_write'],
    'private.lock_order_of': ['scope_attendees_write'],
    'private.lock_tickets': ['scope_checkin_write'],
    'private.lock_waiting_list_entry': ['scope_attendees_write'],
    // Ids of the organisation of the caller.
    'private.matching_orders': ['scope_orders_read'],
    // Links of the calling key.
    'private.may_listen': ['authenticated'],
    'private.member_organisation_ids': ['authenticated'],
    'private.assert_own_objects': ['scope_attendees_read', 'scope_orders_read'],
    'private.audit_export': ['scope_attendees_read', 'scope_orders_read'],
    'private.export_link': ['scope_attendees_read', 'scope_orders_read'],
    'private.names_of': ['scope_attendees_read', 'scope_attendees_write'],
    'private.organisations_as': ['authenticated'],
    'private.new_webhook_secret': ['scope_events_write'],
    'private.notify_of_cancelled_tickets': ['scope_attendees_write', 'scope_orders_write'],
    'private.is_asking': ['api_key'],
    'private.is_internal_url': ['authenticated', 'scope_events_write'],
    'private.news_of_event': ['scope_events_write'],
    'private.notify_of_event': ['scope_events_write'],
    'private.notify_test': ['scope_events_write'],
    // Of the organisation of the caller.
    'private.whole_order_json': ['scope_orders_read', 'scope_orders_write'],
    'private.places_taken': ['scope_events_write'],
    'private.record_outcome': ['api_key'],
    'private.retain_of': ['scope_attendees_write'],
    'private.remind_buyer': ['scope_orders_write'],
    'private.remind_buyers': ['scope_orders_write'],
    'private.reopen_order': ['scope_orders_write'],
    'private.replace_webhook_secret': ['scope_events_write'],
    'private.replay_outcome': ['api_key'],
    'private.resend_email': ['scope_attendees_write'],
    // Of events whose orders, tickets or scans the key may see.
    'private.timezones_of': ['api_key'],
    'private.warning_of_deadline': ['scope_orders_write'],
    'private.warning_of_gifts': ['scope_attendees_write'],
    'private.warning_of_waiting_list': ['scope_events_write'],
    'private.warnings_of_attendee': ['scope_attendees_write'],
    'private.warnings_of_payment': ['scope_orders_write'],
    'private.warnings_of_refund': ['scope_orders_write'],
    // One object, or candidates as the scopes of the key show them.
    'private.resolve_name': ['api_key'],
  })
})

test('every table has row level security', async () => {
  expect((await tablesIn('public', 'private')).length).toBeGreaterThan(0)
  expect(
    await offenders(
      `select c.oid::regclass from pg_class c
       where ${ours('c.relnamespace')} and c.relkind in ('r', 'p', 'f') and not c.relrowsecurity`,
    ),
  ).toEqual([])
})

test('schema api holds functions and nothing else', async () => {
  expect(await tablesIn('api')).toEqual([])
})

test('every table says in a comment what it is for', async () => {
  expect(
    await offenders(
      `select c.oid::regclass from pg_class c
       where ${ours('c.relnamespace')} and c.relkind in ('r', 'p') and obj_description(c.oid, 'pg_class') is null`,
    ),
  ).toEqual([])
})

test('a constraint is named after its table: _pkey, _fkey, _key, or a sentence that it starts', async () => {
  expect(
    await offenders(
      `select format('%s on %s', k.conname, c.relname)
       from pg_constraint k join pg_class c on c.oid = k.conrelid
       where ${ours('k.connamespace')} and not coalesce(case k.contype
         when 'p' then k.conname = c.relname || '_pkey'
         when 'f' then starts_with(k.conname, c.relname || '_') and k.conname ~ '_fkey$'
         when 'u' then starts_with(k.conname, c.relname || '_') and k.conname ~ '_key$'
         when 'c' then starts_with(k.conname, c.relname || '_') and k.conname ~ '^[a-z0-9_]+$'
           and substr(k.conname, length(c.relname) + 2) ~ '_' and k.conname !~ '_check\\d*$'
         when 't' then true -- a constraint trigger, named as a trigger
         when 'n' then true -- not null has a name from Postgres 18 on
       end, false)`,
    ),
  ).toEqual([])
})

test('an index is named after its table and ends in _idx, or in _key where it is unique', async () => {
  expect(
    await offenders(
      `select i.indexrelid::regclass
       from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
       where ${ours('c.relnamespace')}
         and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.conrelid = i.indrelid)
         and not (starts_with(x.relname, c.relname || '_') and (x.relname ~ '_idx$' or i.indisunique and x.relname ~ '_key$'))`,
    ),
  ).toEqual([])
})

test('every foreign key has an index that starts with its first column', async () => {
  const foreignKeys = await offenders(
    `select k.conname from pg_constraint k
     where k.contype = 'f' and ${ours('k.connamespace')} and not exists (
       select from pg_index i
       join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
       where i.indrelid = k.conrelid and i.indisvalid and i.indkey[0] = k.conkey[1]
         and coalesce(pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname), true))`,
  )
  // A handful of plans, which nobody deletes while an organisation is on one.
  expect(foreignKeys).toEqual(['organisations_plan_fkey'])
})

test('a trigger is named after its table and its place in the order, and runs a function named tg_', async () => {
  expect(
    await offenders(
      `select format('%s on %s', t.tgname, c.relname)
       from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
       where not t.tgisinternal and ${ours('c.relnamespace')}
         and not (t.tgname ~ ('^' || c.relname || '_[0-9]{3}_[a-z_]+$')
           and p.pronamespace = 'private'::regnamespace and p.proname ~ '^tg_([a-z_]+_)?_[a-z_]+$')`,
    ),
  ).toEqual([])
})

test('a policy is named after its table and what it allows, and is for one verb and named roles', async () => {
  expect(
    await offenders(
      `select format('%s on %s', p.polname, c.relname)
       from pg_policy p join pg_class c on c.oid = p.polrelid
       where not starts_with(p.polname, c.relname || '_' ||
           case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
             else 'every verb' end || '_')
         or 0 = any (p.polroles)`,
    ),
  ).toEqual([])
})
