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
export const deletable = allowed('delete')

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
  'public.questions': 'required = true',
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
  'public.questions': 'event_id',
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

/** A row that could be added to a table of a tenant. `newcomer` belongs to nobody yet. */
export const rows: Record<string, (tenant: Tenant, newcomer: Claims) => Record<string, unknown>> = {
  organisation_members: ({ id }, { sub }) => ({ organisation_id: id, user_id: sub }),
  events: ({ id }) => ({ organisation_id: id, name: 'New', slug: `new-${randomUUID()}` }),
  ticket_types: ({ id, event }) => ({ organisation_id: id, event_id: event.id, name: 'New' }),
  promo_codes: ({ id, event }) => ({
    ...{ organisation_id: id, event_id: event.id },
    ...{ code: `NEW-${randomUUID()}`, percent_off: 10 },
  }),
  orders: ({ id, event }) => ({ organisation_id: id, event_id: event.id, ...guest() }),
  attendees: ({ id, event, orderId }) => ({
    ...{ organisation_id: id, event_id: event.id, order_id: orderId, ticket_type_id: event.ticketTypeId },
    ...guest(),
  }),
  payments: ({ pricedOrderId }) => ({ order_id: pricedOrderId, amount: 100 }),
  payment_voids: ({ paymentId }) => ({ payment_id: paymentId }),
  refunds: ({ paidOrderId }) => ({ order_id: paidOrderId, amount: 100 }),
  webhook_endpoints: ({ id }) => ({ organisation_id: id, url: 'https://new.example.com', types: ['order.created'] }),
  waiting_list_entries: ({ id, event, soldOutTicketTypeId }) => ({
    ...{ organisation_id: id, event_id: event.id, ticket_type_id: soldOutTicketTypeId },
    ...guest(),
  }),
  questions: ({ id, event }) => ({
    ...{ organisation_id: id, event_id: event.id, key: `q${randomUUID().slice(0, 8)}`, label: 'New' },
  }),
  check_in_points: ({ id, event }) => ({ organisation_id: id, event_id: event.id, name: 'New' }),
  check_ins: ({ event }) => ({ event_id: event.id, code: 'any code' }),
}
const guest = () => ({ name: 'Guest', email: `${randomUUID()}@example.com` })

/** The same as a statement and its values, by `public.events` and so on. */
export const additions = Object.fromEntries(
  Object.entries(rows).map(([table, rowOf]) => [
    `public.${table}`,
    (tenant: Tenant, newcomer: Claims): [sql: string, values: unknown[]] => {
      const added = rowOf(tenant, newcomer)
      const columns = Object.keys(added)
      const values = columns.map((_, i) => `$${i + 1}`)
      return [`insert into public.${table} (${columns.join()}) values (${values.join()})`, Object.values(added)]
    },
  ]),
)
