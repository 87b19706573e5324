// Which role may do what with which table, so that an extra grant, column or table is noticed. What is not listed is not allowed. The
// tables are in privileges.json: `npx vitest run test/database/roles.test.ts -u` writes it, and its diff is what to review.

import privileges from './privileges.json' with { type: 'json' }

export const verbs = ['select', 'insert', 'update', 'delete'] as const
export type Verb = (typeof verbs)[number]

/** `*` is the whole table, anything else the columns that are named. */
type Privileges = Partial<Record<Verb, string>>

/** Roles as they are granted to one another. `inherits` is what a role may do without asking; `becomes` is `set role`. */
export const roles: Record<string, { inherits?: string[]; becomes?: string[]; bypassesPolicies?: boolean }> = {
  anon: {},
  authenticated: {},
  service_role: { bypassesPolicies: true },
  gateway: {},
  api_key: {},
  scope_events_read: { inherits: ['api_key'], becomes: ['api_key'] },
  scope_orders_read: { inherits: ['api_key'], becomes: ['api_key'] },
  scope_attendees_read: { inherits: ['api_key'], becomes: ['api_key'] },
  scope_events_write: { inherits: ['api_key'], becomes: ['api_key'] },
  scope_attendees_write: { inherits: ['api_key'], becomes: ['api_key'] },
  scope_checkin_write: { inherits: ['api_key'], becomes: ['api_key'] },
  scope_orders_write: { inherits: ['api_key'], becomes: ['api_key'] },
  courier: {},
  authenticator: {
    becomes: [
      'anon',
      'api_key',
      'authenticated',
      'courier',
      'gateway',
      'scope_attendees_read',
      'scope_attendees_write',
      'scope_checkin_write',
      'scope_events_read',
      'scope_events_write',
      'scope_orders_read',
      'scope_orders_write',
      'service_role',
    ],
  },
}

/** USAGE, and never CREATE. */
export const schemas: Record<string, string[]> = {
  // Supabase's own doing: whoever could see into public can do nothing there without a grant on a table.
  public: ['anon', 'authenticated', 'public', 'service_role'],
  api: ['api_key', 'courier', 'gateway'],
  // Everybody, for the pre-request function.
  private: ['api_key', 'authenticated', 'courier', 'gateway', 'public', 'service_role'],
}

/** The rows of files, which keys read as well. */
export const exportReaders: Record<string, string> = {
  attendee_export: 'scope_attendees_read',
  check_in_export: 'scope_attendees_read',
  order_export: 'scope_orders_read',
  payment_export: 'scope_orders_read',
}

export const views = [
  'arrivals',
  'attendee_export',
  'audit_trail',
  'check_in_export',
  'door_list',
  'event_sales',
  'failing_webhook_endpoints',
  'members',
  'no_shows',
  'order_export',
  'payment_export',
  'registrations',
  'undelivered_tickets',
  'unpaid_orders',
].map((name) => `public.${name}`)

/** By table and role. Rights that a role inherits are not repeated. Generated: see roles.test.ts. */
export const tables: Record<string, Record<string, Privileges>> = privileges

/** Tables whose rows belong to nobody: whoever may read them reads all of them. */
export const sharedTables = ['public.plans']

/** What a role may do with a table, its own rights and those it inherits. */
export function privilegesOf(role: string, table: string): Privileges {
  const granted = tables[table]
  if (!granted) throw new Error(`${table} is not in the table of expected privileges`)
  const all = [role, ...(roles[role]?.inherits ?? [])].map((holder) => granted[holder] ?? {})
  return Object.fromEntries(
    verbs.flatMap((verb) => {
      const columns = all.flatMap((privileges) => privileges[verb] ?? [])
      return columns.length > 0 ? [[verb, columns.includes('*') ? '*' : columns.join(', ')]] : []
    }),
  )
}

/** The columns of a list, sorted, so that two lists can be compared. */
export const columnList = (columns: string): string[] =>
  columns
    .split(',')
    .map((column) => column.trim())
    .sort()
