// What tenancy is tested by: for each table a way to read all of it, to edit all of it and to add to it, so that whoever
// acts meets nothing but the policies.

import { randomUUID } from 'node:crypto'
import { row } from '../support/database.ts'
import type { Actor, Claims } from './actor.ts'
import { privilegesOf, sharedTables, tables, type Verb } from './expected-privileges.ts'
import type { Tenant } from './tenant-fixture.ts'

const allowed = (verb: Verb) => (role: string) =>
  Object.keys(tables).filter((table) => privilegesOf(role, table)[verb] !== undefined)

/** Tables whose rows belong to somebody and that the role may read, edit or add to. */
export const readable = (role: string) => allowed('select')(role).filter((table) => !sharedTables.includes(table))
export const editable = allowed('update')
export const extensible = allowed('insert')

/** The column that says whose a row is. */
const owner = (table: string) => (table === 'public.organisations' ? 'id' : 'organisation_id')

/** How many rows of each organisation an actor sees. */
export async function seen({ rows }: Actor, table: string): Promise<Record<string, number>> {
  const found = await rows<{ organisation: string; n: number }>(
    `select ${owner(table)} as organisation, count(*)::int as n from ${table} group by 1`,
  )
  return Object.fromEntries(found.map(({ organisation, n }) => [organisation, n]))
}

/** How many rows there are of an organisation, as Studio counts them. */
export async function held(table: string, tenant: Tenant): Promise<number> {
  const sql = `select count(*)::int as n from ${table} where ${owner(table)} = $1`
  return (await row<{ n: number }>(sql, [tenant.id])).n
}

/** Each value is one that any row of a tenant could be given. */
export const edits: Record<string, string> = {
  'public.organisations': "name = 'Renamed'",
  'public.organisation_members': "role = 'owner'",
  'public.api_keys': "name = 'Renamed'",
  'public.events': "name = 'Renamed'",
  'public.ticket_types': "name = 'Renamed'",
  'public.promo_codes': 'percent_off = 30',
  'public.orders': "status = 'cancelled'",
  'public.attendees': "name = 'Renamed'",
  'public.waiting_list_entries': "name = 'Renamed'",
  'public.check_in_points': "name = 'Renamed'",
  'public.check_ins': 'undone_at = now()',
  'public.webhook_endpoints': "description = 'Renamed'",
  'public.webhook_deliveries': 'next_attempt_at = now()',
}

/** Without a condition, so that it reaches whatever the policy for edits lets it reach: the one for reading has no say. */
export const editAll = (table: string) => `update ${table} set ${edits[table]}`

/** Tables whose triggers look further than an API key or a person may: of another organisation's event or order, they say
 * what an operation would say. Elsewhere it is the policy that refuses. */
export const refusedAsNotFound: Record<string, string> = {
  'public.promo_codes': 'event_id',
  'public.orders': 'event_id',
  'public.attendees': 'order_id',
  'public.waiting_list_entries': 'event_id',
  'public.check_in_points': 'event_id',
  'public.check_ins': 'event_id',
  'public.payments': 'order_id',
  'public.payment_voids': 'payment_id',
  'public.refunds': 'order_id',
}

/** Where a role sees only the rows that it is adding. */
export const seesOnlyNew: Record<string, string[]> = {
  scope_attendees_write: ['public.orders'],
}

/** A row of a tenant's, as a statement and its values. `newcomer` belongs to nobody yet. */
export const additions: Record<string, (tenant: Tenant, newcomer: Claims) => [sql: string, values: unknown[]]> = {
  'public.organisation_members': (tenant, newcomer) => [
    'insert into public.organisation_members (organisation_id, user_id) values ($1, $2)',
    [tenant.id, newcomer.sub],
  ],
  'public.events': (tenant) => [
    "insert into public.events (organisation_id, name, slug) values ($1, 'New', $2)",
    [tenant.id, `new-${randomUUID()}`],
  ],
  'public.ticket_types': (tenant) => [
    "insert into public.ticket_types (organisation_id, event_id, name) values ($1, $2, 'New')",
    [tenant.id, tenant.event.id],
  ],
  'public.promo_codes': (tenant) => [
    'insert into public.promo_codes (organisation_id, event_id, code, percent_off) values ($1, $2, $3, 10)',
    [tenant.id, tenant.event.id, `NEW-${randomUUID()}`],
  ],
  'public.orders': (tenant) => [
    `insert into public.orders (organisation_id, event_id, name, email)
     values ($1, $2, 'Guest', 'guest@example.com')`,
    [tenant.id, tenant.event.id],
  ],
  'public.attendees': (tenant) => [
    `insert into public.attendees (organisation_id, event_id, order_id, ticket_type_id, name, email)
     values ($1, $2, $3, $4, 'Guest', 'guest@example.com')`,
    [tenant.id, tenant.event.id, tenant.orderId, tenant.event.ticketTypeId],
  ],
  'public.payments': (tenant) => [
    'insert into public.payments (order_id, amount) values ($1, 100)',
    [tenant.pricedOrderId],
  ],
  'public.payment_voids': (tenant) => ['insert into public.payment_voids (payment_id) values ($1)', [tenant.paymentId]],
  'public.refunds': (tenant) => [
    'insert into public.refunds (order_id, amount) values ($1, 100)',
    [tenant.paidOrderId],
  ],
  'public.webhook_endpoints': (tenant) => [
    "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, 'https://new.example.com', '{order.created}')",
    [tenant.id],
  ],
  'public.waiting_list_entries': (tenant) => [
    `insert into public.waiting_list_entries (organisation_id, event_id, ticket_type_id, name, email)
     values ($1, $2, $3, 'Guest', $4)`,
    [tenant.id, tenant.event.id, tenant.soldOutTicketTypeId, `${randomUUID()}@example.com`],
  ],
  'public.check_in_points': (tenant) => [
    "insert into public.check_in_points (organisation_id, event_id, name) values ($1, $2, 'New')",
    [tenant.id, tenant.event.id],
  ],
  'public.check_ins': (tenant) => [
    "insert into public.check_ins (event_id, code) values ($1, 'any code')",
    [tenant.event.id],
  ],
}
