// For each operation, arguments that succeed on a published event. A new operation needs a line here.

import { randomUUID } from 'node:crypto'
import { idOf, row, studio } from './database.ts'
import type { TestEvent } from './organisation.ts'
import { enqueued } from './outbox.ts'

type Arguments = Record<string, unknown>

export const examples: Record<string, (event: TestEvent) => Arguments | Promise<Arguments>> = {
  get_api_key: () => ({}),
  list_events: () => ({
    status: 'published',
    search: 'test',
    phase: 'upcoming',
    starts_after: '2026-01-01T00:00:00Z',
    sort: 'starts_at',
    limit: 10,
  }),
  get_event: ({ id }) => ({ event_id: id }),
  get_event_summary: ({ id }) => ({ event_id: id, interval: 'hour' }),
  apply_event: ({ id }) => ({
    event: id,
    move: 'P7D',
    changes: { description: null },
    ticket_types: [{ name: 'general', price: 4900 }, { name: 'VIP' }],
    promo_codes: [{ code: 'SPRING', percent_off: 10, ticket_types: ['VIP'] }],
    check_in_points: [{ name: 'Door', admission: 'once_per_day' }],
    questions: [{ key: 'diet', label: 'Diet?' }],
    archive_missing: false,
    notify: 'mailed',
  }),
  create_event: () => ({
    name: 'Garden party',
    starts_at: '2027-06-01T18:00:00+02:00',
    ends_at: '2027-06-01T23:00:00+02:00',
    timezone: 'Europe/Berlin',
    locale: 'de',
    guest_notes: { de: 'Bitte **Ausweis** mitbringen.' },
    venue: { name: 'Orangery', country: 'DE' },
    capacity: 80,
    payment_due_days: 14,
    metadata: { season: 'summer', indoor: false },
  }),
  update_event: ({ id }) => ({ event_id: id, changes: { name: 'Garden party', description: null }, if_version: 2 }),
  publish_event: async ({ id }) => {
    await studio.query("update public.events set status = 'draft' where id = $1", [id])
    return { event_id: id }
  },
  unpublish_event: ({ id }) => ({ event_id: id, dry_run: false }),
  cancel_event: async (event) => {
    await event.guest()
    return { event_id: event.id, dry_run: true }
  },
  complete_event: ({ id }) => ({ event_id: id }),
  delete_event: async ({ id, ticketTypeId }) => {
    // Somebody waits, and is taken off the list.
    await studio.query("update public.events set status = 'published' where id = $1", [id])
    await studio.query('update public.ticket_types set quantity = 0 where id = $1', [ticketTypeId])
    await studio.query(
      `insert into public.waiting_list_entries (event_id, ticket_type_id, name, email)
       select $1, $2, 'Ann', gen_random_uuid() || '@example.com'`,
      [id, ticketTypeId],
    )
    await studio.query("update public.events set status = 'draft' where id = $1", [id])
    return { event_id: id }
  },
  list_ticket_types: ({ id }) => ({ event_id: id, limit: 5 }),
  get_ticket_type: ({ ticketTypeId }) => ({ ticket_type_id: ticketTypeId }),
  create_ticket_type: ({ id }) => ({ event_id: id, name: 'Early bird', price: 4900, quantity: 20 }),
  update_ticket_type: ({ ticketTypeId }) => ({ ticket_type_id: ticketTypeId, changes: { status: 'archived' } }),
  list_promo_codes: async (event) => {
    await promoCode(event)
    return { event_id: event.id, limit: 5 }
  },
  get_promo_code: async (event) => ({ promo_code_id: await promoCode(event) }),
  create_promo_code: ({ id, ticketTypeId }) => ({
    event_id: id,
    code: 'SPRING-10',
    percent_off: 12.5,
    ticket_type_ids: [ticketTypeId],
  }),
  update_promo_code: async (event) => ({
    promo_code_id: await promoCode(event),
    changes: { status: 'disabled', valid_until: '2027-01-01T00:00:00Z' },
  }),
  register_attendee: ({ id, ticketTypeId }) => ({
    event_id: id,
    ticket_type_id: ticketTypeId,
    name: 'Mary Jackson',
    email: 'mary@example.com',
    company: 'NASA',
    send_email: false,
  }),
  add_attendee: async (event) => ({
    order_id: (await event.payer()).orderId,
    ticket_type_id: event.ticketTypeId,
    name: 'Mary Jackson',
    email: 'mary@example.com',
  }),
  import_attendees: ({ id, ticketTypeId }) => ({
    event_id: id,
    ticket_type_id: ticketTypeId,
    attendees: [{ external_id: 'contact-1', name: 'Mary Jackson', email: 'mary@example.com' }],
  }),
  join_waiting_list: async ({ id, ticketTypeId }) => {
    await sellOut(ticketTypeId)
    return {
      event_id: id,
      ticket_type_id: ticketTypeId,
      name: 'Mary Jackson',
      email: 'mary@example.com',
      send_email: false,
      metadata: { vip: true },
    }
  },
  list_waiting_list_entries: async (event) => {
    await waitingListEntry(event)
    return { event_id: event.id, ticket_type_id: event.ticketTypeId, status: 'waiting', email: 'ANNIE@example.com' }
  },
  get_waiting_list_entry: async (event) => ({ waiting_list_entry_id: await waitingListEntry(event) }),
  update_waiting_list_entry: async (event) => ({
    waiting_list_entry_id: await waitingListEntry(event),
    changes: { name: 'Annie J. Easley', company: null },
    if_version: 1,
  }),
  accept_waiting_list_offer: async (event) => {
    const entry = await waitingListEntry(event)
    await studio.query('update public.ticket_types set quantity = quantity + 1 where id = $1', [event.ticketTypeId])
    return { waiting_list_entry_id: entry, payment_method: 'invoice' }
  },
  cancel_waiting_list_entry: async (event) => ({ waiting_list_entry_id: await waitingListEntry(event) }),
  list_orders: async (event) => {
    await event.guest()
    return {
      event_id: event.id,
      search: 'GUE exämple',
      status: 'completed',
      payment_status: ['not_required', 'paid'],
      updated_after: '2026-01-01T00:00:00Z',
    }
  },
  get_order: async (event) => ({ order_id: (await event.guest()).orderId }),
  list_payments: async (event) => {
    await paidIn(event)
    return { event_id: event.id, received_after: '2026-01-01T00:00:00Z' }
  },
  update_order: async (event) => ({
    order_id: (await event.payer()).orderId,
    changes: { payment_due_at: '2027-05-01T12:00:00Z' },
    if_version: 2,
  }),
  remind_unanswered: async (event) => {
    await event.guest()
    await studio.query(
      "insert into public.questions (event_id, key, label, required) values ($1, 'diet_' || left(md5(random()::text), 8), 'Diet?', true)",
      [event.id],
    )
    return { event_id: event.id, dry_run: false }
  },
  message_attendees: async (event) => {
    await event.guest()
    return { event_id: event.id, subject: 'Bring a lamp', message: 'It is **dark**.', status: 'active', dry_run: false }
  },
  send_payment_reminder: async (event) => ({ order_id: (await event.payer()).orderId, dry_run: false }),
  send_payment_reminders: async (event) => ({
    event_id: event.id,
    order_ids: [(await event.payer()).orderId],
    dry_run: false,
  }),
  reopen_order: async (event) => {
    const { orderId } = await event.payer()
    await studio.query('update public.orders set payment_due_at = now() where id = $1', [orderId])
    await studio.query('select private.expire_orders($1)', [[orderId]])
    return { order_id: orderId, payment_due_at: '2040-05-01T12:00:00Z', notify: 'mailed' }
  },
  record_invoice_payment: async (event) => ({
    order_id: (await event.payer()).orderId,
    amount: 900,
    method: 'bank_transfer',
    currency: 'EUR',
    external_reference: 'INV-7',
  }),
  erase_attendee: async (event) => ({ attendee_id: (await event.guest()).attendeeId, dry_run: true }),
  find_person: async (event) => {
    await event.guest()
    return { email: 'GUEST@example.com' }
  },
  erase_person: async (event) => {
    await event.guest()
    return { email: 'guest@example.com', names: ['Guest'], dry_run: true }
  },
  void_payment: async (event) => ({ payment_id: await paidIn(event), reason: 'Typed twice' }),
  record_refund: async (event) => {
    const paymentId = await paidIn(event)
    const { order_id } = await row<{ order_id: string }>('select order_id from public.payments where id = $1', [
      paymentId,
    ])
    return { order_id, amount: 4900, external_reference: 'CN-7' }
  },
  cancel_order: async (event) => ({ order_id: (await event.guest()).orderId, dry_run: true }),
  list_attendees: async (event) => {
    await event.guest()
    return { event_id: event.id, search: 'gue exämple', checked_in: false, email: 'GUEST@example.com' }
  },
  get_attendee: async (event) => ({ attendee_id: (await event.guest()).attendeeId }),
  get_ticket_qr: async (event) => ({ attendee_id: (await event.guest()).attendeeId }),
  update_attendee: async (event) => ({
    attendee_id: (await event.guest()).attendeeId,
    changes: { name: 'Mary Jackson', company: null, reissue_ticket: true },
  }),
  cancel_attendee: async (event) => ({ attendee_id: (await event.guest()).attendeeId }),
  resend_ticket: async (event) => ({ attendee_id: (await event.guest()).attendeeId }),
  list_emails: async (event) => {
    const { attendeeId, orderId } = await event.guest()
    return { order_id: orderId, attendee_id: attendeeId, kind: 'ticket', status: 'queued', limit: 5 }
  },
  get_email: async (event) => ({
    email_id: await idOf('select id from public.emails where attendee_id = $1', [(await event.guest()).attendeeId]),
  }),
  resend_email: async (event) => ({
    email_id: await idOf('select id from public.emails where attendee_id = $1', [(await event.guest()).attendeeId]),
  }),
  list_questions: async (event) => {
    await question(event)
    return { event_id: event.id }
  },
  create_question: ({ id, ticketTypeId }) => ({
    event_id: id,
    key: 'workshops',
    type: 'several_of',
    label: 'Which workshops?',
    translations: { de: { label: 'Welche Workshops?', options: { orbits: 'Umlaufbahnen' } } },
    help: 'As many as you like.',
    options: [{ key: 'orbits', label: 'Orbits' }],
    ask: 'registration',
    required: true,
    ticket_type_ids: [ticketTypeId],
    at_door: true,
    sensitive: false,
    position: 1,
  }),
  update_question: async (event) => ({
    question_id: await question(event),
    changes: { label: 'Food?', help: null, status: 'archived' },
    if_version: 1,
  }),
  list_check_in_points: async (event) => {
    await checkInPoint(event)
    return { event_id: event.id, limit: 5 }
  },
  get_check_in_point: async (event) => ({ check_in_point_id: await checkInPoint(event) }),
  create_check_in_point: ({ id, ticketTypeId }) => ({
    event_id: id,
    name: 'Saturday',
    ticket_type_ids: [ticketTypeId],
    opens_at: '2027-05-01T08:00:00+02:00',
    closes_at: '2027-05-01T20:00:00+02:00',
    admission: 're_entry',
  }),
  update_check_in_point: async (event) => ({
    check_in_point_id: await checkInPoint(event),
    changes: { name: 'Gate 2', closes_at: null, status: 'archived' },
    if_version: 1,
  }),
  delete_check_in_point: async (event) => ({ check_in_point_id: await checkInPoint(event) }),
  get_door_list: async (event) => {
    await acceptedScan(event)
    return { event_id: event.id }
  },
  list_check_in_conflicts: ({ id }) => ({ event_id: id }),
  list_check_ins: async (event) => {
    await acceptedScan(event)
    return { event_id: event.id, result: 'accepted' }
  },
  find_attendees: async (event) => {
    await event.guest()
    return { event_id: event.id, search: 'guest' }
  },
  check_in: async (event) => ({ event_id: event.id, code: (await event.guest()).code, device: 'Gate 1' }),
  check_in_batch: async (event) => ({
    event_id: event.id,
    scans: [
      { scan_id: 'a-2', code: 'nobody', scanned_at: '2026-11-01T10:01:00Z' },
      { scan_id: 'a-1', code: (await event.guest()).code, scanned_at: '2026-11-01T10:00:00Z', device: 'Gate 1' },
    ],
  }),
  list_webhook_endpoints: async (event) => {
    await webhookEndpoint(event)
    return { limit: 10 }
  },
  get_webhook_endpoint: async (event) => ({ webhook_endpoint_id: await webhookEndpoint(event) }),
  create_webhook_endpoint: () => ({
    url: 'https://hooks.example.com/usher?tenant=7',
    types: ['order.completed', 'attendee.checked_in'],
    description: 'CRM',
  }),
  update_webhook_endpoint: async (event) => ({
    webhook_endpoint_id: await webhookEndpoint(event),
    changes: { status: 'disabled', types: ['event.updated'], description: null },
    if_version: 1,
  }),
  delete_webhook_endpoint: async (event) => ({ webhook_endpoint_id: await webhookEndpoint(event) }),
  rotate_webhook_secret: async (event) => ({ webhook_endpoint_id: await webhookEndpoint(event), overlap_hours: 1 }),
  test_webhook_endpoint: async (event) => ({
    webhook_endpoint_id: await webhookEndpoint(event),
    type: 'order.expired',
  }),
  list_webhook_deliveries: async (event) => {
    const endpoint = await webhookEndpoint(event)
    await event.guest()
    return { webhook_endpoint_id: endpoint, type: 'order.completed', status: 'pending' }
  },
  redeliver_webhook: async (event) => {
    const endpoint = await webhookEndpoint(event)
    await event.guest()
    const of = 'select organisation_id as organisation from public.webhook_endpoints where id = $1'
    await enqueued((await row<{ organisation: string }>(of, [endpoint])).organisation)
    const delivery = 'select id from public.webhook_deliveries where webhook_endpoint_id = $1'
    return { webhook_delivery_id: await idOf(delivery, [endpoint]) }
  },
  redeliver_webhooks: async (event) => ({
    webhook_endpoint_id: await webhookEndpoint(event),
    updated_after: '2026-01-01T00:00:00Z',
    created_before: '2030-01-01T00:00:00+01:00',
    status: 'delivered',
  }),
  export_attendees: ({ id }) => ({ event_id: id, status: 'active', fields: ['name', 'email', 'metadata.diet'] }),
  export_orders: ({ id }) => ({ event_id: id, payment_status: 'paid' }),
  export_payments: () => ({
    received_after: '2026-09-01T00:00:00+02:00',
    received_before: '2026-10-01T00:00:00+02:00',
  }),
  export_check_ins: ({ id }) => ({ event_id: id, result: 'accepted' }),
  list_requests: () => ({ failed: true, route: '/api/v1/me' }),
  list_audit_entries: () => ({ object_type: 'event', limit: 10 }),
  list_notifications: async (event) => {
    await event.guest()
    return { type: 'order.created' }
  },
  undo_check_in: async (event) => ({ check_in_id: await acceptedScan(event) }),
}

const promoCode = ({ id }: TestEvent) =>
  idOf('insert into public.promo_codes (event_id, code, percent_off) values ($1, $2, 20) returning id', [
    id,
    randomUUID(),
  ])

const webhookEndpoint = ({ id }: TestEvent) =>
  idOf(
    `insert into public.webhook_endpoints (organisation_id, url, types)
     select e.organisation_id, 'https://hooks.example.com', '{order.created,order.completed}'
     from public.events e where e.id = $1 returning id`,
    [id],
  )

const question = ({ id }: TestEvent) =>
  idOf("insert into public.questions (event_id, key, label) values ($1, 'diet', 'Diet?') returning id", [id])

const checkInPoint = ({ id }: TestEvent) =>
  idOf("insert into public.check_in_points (event_id, name) values ($1, 'Gate 1') returning id", [id])

/** A guest let in by hand, in Studio. */
async function acceptedScan(event: TestEvent): Promise<string> {
  const { code } = await event.guest()
  return idOf('insert into public.check_ins (event_id, code) values ($1, $2) returning id', [event.id, code])
}

/** A payment that completed its order. */
async function paidIn(event: TestEvent): Promise<string> {
  const { orderId } = await event.payer()
  return idOf('insert into public.payments (order_id, amount) values ($1, 4900) returning id', [orderId])
}

const sellOut = (ticketTypeId: string) =>
  studio.query('update public.ticket_types set quantity = quantity_sold + quantity_held where id = $1', [ticketTypeId])

/** Somebody who waits for the ticket type of the event. */
export async function waitingListEntry(event: TestEvent, email = `${randomUUID()}@example.com`): Promise<string> {
  await sellOut(event.ticketTypeId)
  return idOf(
    `insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, 'Annie Easley', $3) returning id`,
    [event.id, event.ticketTypeId, email],
  )
}
