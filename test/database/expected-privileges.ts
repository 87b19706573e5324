// Which role may do what with which table, stated independently of the schema files, so that an extra grant, column or table is
// noticed. What is not listed is not allowed.

export const verbs = ['select', 'insert', 'update', 'delete'] as const
export type Verb = (typeof verbs)[number]

/** `*` is the whole table, anything else the columns that are named. */
export type Privileges = Partial<Record<Verb, string>>

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
  private: ['api_key', 'authenticated', 'courier', 'gateway', 'service_role'],
}

const eventColumns = `name, slug, description, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, currency, payment_due_days, external_id, metadata`

const ticketTypeColumns = `name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata`

const checkInPointColumns = 'name, ticket_type_ids, opens_at, closes_at, admission, status'
const paymentColumns = 'order_id, method, amount, currency, received_at, external_reference'
const refundColumns = 'order_id, method, amount, currency, refunded_at, external_reference'

const promoCodeColumns =
  'code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, status'

const waitingListColumns = 'name, email, company, send_email, external_id, metadata'

const webhookEndpointColumns = 'url, description, types, event_ids'

export const views = [
  'arrivals',
  'door_list',
  'event_sales',
  'failing_webhook_endpoints',
  'registrations',
  'undelivered_tickets',
  'unpaid_orders',
].map((name) => `public.${name}`)

/** By table and role. Rights that a role inherits are not repeated. */
export const tables: Record<string, Record<string, Privileges>> = {
  'public.plans': {
    api_key: { select: '*' },
    authenticated: { select: '*' },
  },
  'public.organisations': {
    api_key: { select: '*' },
    authenticated: { select: '*', update: 'name, slug, reply_to_email, accent_colour, logo_url, payment_instructions' },
  },
  'public.organisation_members': {
    authenticated: { select: '*', insert: 'organisation_id, user_id, role', update: 'role', delete: '*' },
  },
  'public.api_keys': {
    api_key: { select: '*' },
    authenticated: { select: '*', update: 'name, scopes, expires_at, revoked_at' },
  },
  'public.events': {
    authenticated: {
      select: '*',
      insert: `organisation_id, ${eventColumns}`,
      update: `status, ${eventColumns}`,
    },
    scope_events_read: { select: '*' },
    scope_events_write: {
      select: '*',
      insert: `organisation_id, ${eventColumns}`,
      update: `status, ${eventColumns}`,
      delete: '*',
    },
    scope_attendees_read: { select: 'id, organisation_id' },
    scope_attendees_write: { select: 'id, organisation_id, currency' },
    scope_checkin_write: { select: 'id, organisation_id, name, status' },
  },
  'public.ticket_types': {
    authenticated: {
      select: '*',
      insert: `organisation_id, event_id, ${ticketTypeColumns}`,
      update: ticketTypeColumns,
    },
    scope_events_read: { select: '*' },
    scope_events_write: {
      select: '*',
      insert: `organisation_id, event_id, ${ticketTypeColumns}`,
      update: ticketTypeColumns,
    },
    scope_attendees_read: { select: 'id, organisation_id, name' },
    scope_attendees_write: { select: 'id, organisation_id, event_id, name' },
    scope_checkin_write: { select: 'id, organisation_id, name' },
  },
  'public.promo_codes': {
    authenticated: {
      select: '*',
      insert: `organisation_id, event_id, ${promoCodeColumns}`,
      update: promoCodeColumns,
    },
    scope_events_read: { select: '*' },
    scope_events_write: {
      select: '*',
      insert: `organisation_id, event_id, ${promoCodeColumns}`,
      update: promoCodeColumns,
    },
  },
  'public.orders': {
    authenticated: {
      select: '*',
      insert:
        'organisation_id, event_id, name, email, company, send_email, payment_method, payment_due_at, promo_code, external_id, metadata',
      update: 'name, email, company, status, payment_due_at, external_id, metadata',
    },
    scope_orders_read: { select: '*' },
    scope_orders_write: { select: '*', update: 'status, payment_due_at' },
    scope_attendees_read: { select: 'id, organisation_id, reference' },
    scope_attendees_write: {
      select: '*',
      insert:
        'id, organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata',
    },
  },
  'public.attendees': {
    // Not the ticket code: members share one role, and viewers must not see it. See public.ticket_codes.
    authenticated: {
      select:
        'id, organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, email_lower, company, price, discount, currency, promo_code_id, status, checked_in_at, checked_in, ticket_email_status, ticket_email_sent_at, ticket_email_last_error, cancelled_at, erased_at, external_id, metadata, version, created_at, updated_at',
      insert:
        'organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata',
      update: 'name, email, company, status, ticket_code, ticket_email_status, external_id, metadata',
    },
    scope_attendees_read: { select: '*' },
    scope_attendees_write: {
      select: '*',
      insert:
        'organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata',
      update: 'name, email, company, status, ticket_code, ticket_email_status, external_id, metadata',
    },
    // Not the e-mail address: the door learns who stands before it, not how to reach them.
    scope_checkin_write: {
      select: 'id, organisation_id, event_id, ticket_type_id, name, company, status, checked_in_at',
    },
  },
  'public.waiting_list_entries': {
    authenticated: {
      select: '*',
      insert: `organisation_id, event_id, ticket_type_id, ${waitingListColumns}`,
      update: `status, offer_expires_at, ${waitingListColumns}`,
    },
    scope_attendees_read: { select: '*' },
    scope_attendees_write: {
      select: '*',
      insert: `organisation_id, event_id, ticket_type_id, ${waitingListColumns}`,
      update: `status, offer_expires_at, ${waitingListColumns}`,
    },
  },
  'public.payments': {
    authenticated: { select: '*', insert: paymentColumns },
    scope_orders_read: { select: '*' },
    scope_orders_write: { select: '*', insert: paymentColumns },
  },
  'public.payment_voids': {
    authenticated: { select: '*', insert: 'payment_id, reason' },
    scope_orders_read: { select: '*' },
    scope_orders_write: { select: '*', insert: 'payment_id, reason' },
  },
  'public.refunds': {
    authenticated: { select: '*', insert: refundColumns },
    scope_orders_read: { select: '*' },
    scope_orders_write: { select: '*', insert: refundColumns },
  },
  'public.check_in_points': {
    authenticated: {
      select: '*',
      insert: `organisation_id, event_id, ${checkInPointColumns}`,
      update: checkInPointColumns,
    },
    scope_events_read: { select: '*' },
    scope_events_write: {
      select: '*',
      insert: `organisation_id, event_id, ${checkInPointColumns}`,
      update: checkInPointColumns,
      delete: '*',
    },
  },
  'public.check_ins': {
    authenticated: {
      select:
        'id, organisation_id, event_id, check_in_point_id, attendee_id, direction, result, reason, earlier_check_in_id, device, scan_id, admitted, source, api_key_id, scanned_at, exited_at, undone_at, created_at, updated_at',
      insert: 'event_id, check_in_point_id, code, attendee_id, direction, device',
      update: 'undone_at',
    },
    scope_attendees_read: { select: '*' },
    scope_checkin_write: {
      select: '*',
      insert: 'id, event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at',
      update: 'undone_at',
    },
  },
  'public.webhook_endpoints': {
    authenticated: {
      select: '*',
      insert: `organisation_id, ${webhookEndpointColumns}`,
      update: `status, ${webhookEndpointColumns}`,
      delete: '*',
    },
    scope_events_write: {
      select: '*',
      insert: `organisation_id, ${webhookEndpointColumns}`,
      update: `status, ${webhookEndpointColumns}`,
      delete: '*',
    },
  },
  'public.audit_entries': {
    authenticated: { select: '*' },
    scope_events_write: { select: '*' },
  },
  'public.notifications': {
    authenticated: { select: 'id, organisation_id, type, created_at' },
    scope_events_write: { select: '*' },
  },
  'public.webhook_deliveries': {
    authenticated: { select: '*' },
    scope_events_write: { select: '*', update: 'status, attempts, next_attempt_at' },
  },
  'public.emails': {
    authenticated: {
      select:
        'id, organisation_id, kind, attendee_id, order_id, payment_id, waiting_list_entry_id, status, attempts, next_attempt_at, sent_to, sent_at, message_id, last_error, created_at, updated_at, last_attempt_at',
    },
  },
  'private.webhook_secrets': {},
  'private.organisation_logos': {},
  'private.api_key_hashes': {},
  'private.idempotency_records': {},
  'private.personal_columns': {},
  'private.installations': {},
  'private.notification_queue': {},
  'private.webhook_subscriptions': {},
  'private.order_notices': {},
  'private.unannounced_changes': {},
}

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
