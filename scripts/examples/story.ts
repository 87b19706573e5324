// One event from draft to end over REST: the examples of the documentation. A new operation adds a step; then run `npm run examples`.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { createKey } from '../../src/gateway/api-key.ts'
import type { Example } from '../../src/http/openapi/examples.ts'
import { createOrganisation, issueKey } from '../../src/local/admin.ts'
import { type Scope, scopes } from '../../src/operations/operation.ts'
import { notificationTypes } from '../../src/operations/webhook-endpoints.ts'
import { createNormaliser } from './normaliser.ts'
import { createPlayer, type Player } from './player.ts'

export type Story = { examples: Example[]; notifications: Record<string, { timestamp: string; data: object }> }

/** @param databaseUrl as the role Studio uses: for the organisation, its keys, and what an organiser does there. */
export async function tellStory(apiUrl: string, databaseUrl: string): Promise<Story> {
  const database = new pg.Client({ connectionString: databaseUrl })
  await database.connect()
  try {
    const normaliser = createNormaliser()
    const slug = `story-${randomUUID()}`
    normaliser.know(slug, 'harbour-events')
    const organisation = await createOrganisation(database, { name: 'Harbour Events', slug, plan: 'standard' })
    const keyFor = (name: string, granted: readonly Scope[] = scopes) =>
      issueKey(database, { organisation: slug, name, scopes: granted })
    const key = await keyFor('CRM')
    const player = createPlayer({ apiUrl, key, normaliser, database, organisationId: organisation.id })

    await player.chapter('2027-02-01T09:00:00Z')
    await arriving(player, await keyFor('Door scanners', ['checkin:write']), await exhaustedKey(database, apiUrl))
    const event = await planning(player)
    const endpointId = await subscribing(player)
    await publishing(player, event)

    await player.chapter('2027-05-20T10:00:00Z')
    const codes = await registering(player, event)
    await correcting(player, event)
    await invoicing(player, event)
    await chasing(player, event)

    await player.chapter('2027-06-12T07:45:00Z')
    await checkingIn(player, event, codes)

    await player.chapter('2027-06-12T17:00:00Z')
    await makeDeliveries(database, organisation.id)
    await lookingBack(player, endpointId)
    await exporting(player, event)
    await passing(player, event, database, organisation.id)
    await closing(player, event)
    return { examples: player.recorded, notifications: await notified(player) }
  } finally {
    await database.end()
  }
}

type Event = { id: string; rainDateId: string; standardId: string; captainsTableId: string }

async function arriving({ show, refuse }: Player, doorKey: string, exhausted: string): Promise<void> {
  await show('get_api_key', 'A key with every scope', {})
  await refuse('get_api_key', 'invalid_api_key', 'No such key', {}, { key: createKey() })
  await refuse('get_api_key', 'rate_limited', 'More requests than the plan allows', {}, { key: exhausted })
  const input = { name: 'Open Harbour Day' }
  await refuse('create_event', 'missing_scope', 'A key for the door only', input, { key: doorKey })
  await refuse('create_event', 'malformed_json', 'No JSON', {}, { text: '{ "name": ' })
  await refuse('create_event', 'unsupported_media_type', 'A form', {}, { text: 'name=x', type: 'text/plain' })
  await refuse('create_event', 'payload_too_large', 'Too long', {}, { text: JSON.stringify('x'.repeat(300_000)) })
}

async function planning({ play, show, refuse }: Player): Promise<Event> {
  const { data: event } = await show('create_event', 'A draft, its dates to follow', {
    name: 'Open Harbour Day',
    description: 'Ships, cranes and workshops, open for a day.',
    timezone: 'Europe/Berlin',
    locale: 'de',
    venue: { name: 'Old Gasworks', address: 'Kaistrasse 1', city: 'Hamburg', postcode: '20457', country: 'DE' },
    external_id: 'crm-4711',
    metadata: { season: 'summer' },
  })
  await refuse('create_event', 'validation_failed', 'Every bad field at once', {
    name: '',
    timezone: 'Europe/Berlin',
    capacity: 0,
  })
  await refuse('create_event', 'already_exists', 'A second one for the same record', {
    name: 'Harbour',
    external_id: 'crm-4711',
  })
  await refuse('publish_event', 'event_not_publishable', 'No dates yet', { event_id: event.id })
  await show('update_event', 'Dates and capacity', {
    event_id: event.id,
    changes: { starts_at: '2027-06-12T10:00:00+02:00', ends_at: '2027-06-12T18:00:00+02:00', capacity: 300 },
    if_version: event.version,
  })
  const stale = { event_id: event.id, changes: { capacity: 250 }, if_version: event.version }
  await refuse('update_event', 'version_mismatch', 'Somebody else was faster', stale)

  const { data: standard } = await show('create_ticket_type', 'Two hundred to be paid for', {
    event_id: event.id,
    name: 'Standard',
    price: 4900,
    quantity: 200,
  })
  const { data: table } = await play('create_ticket_type', 'One seat', {
    event_id: event.id,
    name: "Captain's table",
    quantity: 1,
  })
  await show('update_ticket_type', 'A description', {
    ticket_type_id: standard.id,
    changes: { description: 'All ships and workshops.', max_per_order: 6 },
  })
  const { data: promoCode } = await show('create_promo_code', 'A tenth off', {
    event_id: event.id,
    code: 'EARLYBIRD',
    percent_off: 10,
    valid_until: '2027-05-31T23:59:59+02:00',
    max_redemptions: 50,
  })
  await show('create_promo_code', 'Five euros off an order', {
    event_id: event.id,
    code: 'FIVER',
    amount_off: 500,
    ticket_type_ids: [standard.id],
  })
  await show('update_promo_code', 'More of them', { promo_code_id: promoCode.id, changes: { max_redemptions: 80 } })
  await show('list_promo_codes', 'All of an event', { event_id: event.id })
  await show('get_promo_code', 'One', { promo_code_id: promoCode.id })

  const { data: plan } = await show('apply_event', 'A plan, of a rain date', {
    changes: {
      name: 'Open Harbour Day, rain date',
      starts_at: '2027-06-13T10:00:00+02:00',
      ends_at: '2027-06-13T18:00:00+02:00',
      timezone: 'Europe/Berlin',
    },
    ticket_types: [{ name: 'Standard' }, { name: 'Gala', price: 9900, sales_end_at: '2027-06-10T18:00:00+02:00' }],
  })
  const { data: rainDate } = await show('apply_event', 'The plan is applied', { plan_id: plan.plan_id })
  await refuse('apply_event', 'plan_outdated', 'It was applied before', { plan_id: plan.plan_id })
  return { id: event.id, rainDateId: rainDate.event.id, standardId: standard.id, captainsTableId: table.id }
}

async function publishing({ play, show, refuse }: Player, event: Event): Promise<void> {
  const guest = { ticket_type_id: event.standardId, name: 'Mary Jackson', email: 'mary@example.com' }
  const tooEarly = { event_id: event.id, ...guest }
  await refuse('register_attendee', 'event_not_published', 'The event is a draft', tooEarly)
  await show('publish_event', 'Open for registrations', { event_id: event.id })
  await refuse('publish_event', 'invalid_transition', 'Published already', { event_id: event.id })
  await play('publish_event', 'The rain date as well', { event_id: event.rainDateId })
  await show('unpublish_event', 'A dry run', { event_id: event.rainDateId, dry_run: true })
  await show('list_events', 'What is published', { status: 'published' })
  await show('get_event', 'One', { event_id: event.id })
  const unknown = { event_id: '01926b5c-0000-7000-8000-000000000000' }
  await refuse('get_event', 'not_found', 'An unknown identifier', unknown)
}

async function registering({ play, show, refuse }: Player, event: Event): Promise<string[]> {
  const to = (ticketTypeId: string) => ({ event_id: event.id, ticket_type_id: ticketTypeId })
  const mary = { name: 'Mary Jackson', email: 'mary@example.com', company: 'Langley' }
  const once = { idempotency_key: 'crm-contact-815' }
  const { data: order } = await show('register_attendee', 'A guest', { ...to(event.standardId), ...mary, ...once })
  const another = { ...to(event.standardId), ...mary, name: 'Mary Winston Jackson', ...once }
  await refuse('register_attendee', 'idempotency_key_reused', 'The same key for another request', another)

  const dorothy = { name: 'Dorothy Vaughan', email: 'dorothy@example.com' }
  const seat = to(event.captainsTableId)
  const { data: seated } = await play('register_attendee', 'The only seat', { ...seat, ...dorothy })
  const annie = { name: 'Annie Easley', email: 'annie@example.com' }
  await refuse('register_attendee', 'sold_out', 'No seat left', { ...seat, ...annie })
  const unknown = { ...to('01926b5c-0000-7000-8000-000000000000'), ...annie }
  await refuse('register_attendee', 'not_found', 'No ticket type of this event', unknown)

  await waiting({ play, show, refuse }, event)
  await show('list_ticket_types', 'What is left', { event_id: event.id })
  await show('get_ticket_type', 'Sold out', { ticket_type_id: event.captainsTableId })
  return [order, seated].map(({ attendees }) => attendees[0].ticket_code)
}

async function waiting({ play, show, refuse }: Pick<Player, 'play' | 'show' | 'refuse'>, event: Event): Promise<void> {
  const annie = { event_id: event.id, name: 'Annie Easley', email: 'annie@example.com' }
  const seat = { ...annie, ticket_type_id: event.captainsTableId }
  await refuse('join_waiting_list', 'not_sold_out', 'Tickets are left', { ...annie, ticket_type_id: event.standardId })
  const { data: entry } = await show('join_waiting_list', 'The next seat', seat)
  const next = { ...seat, name: 'Evelyn Boyd', email: 'evelyn@example.com' }
  const { data: second } = await play('join_waiting_list', 'The one after', next)
  const hers = { waiting_list_entry_id: entry.id }
  await refuse('accept_waiting_list_offer', 'not_offered', 'Too early', hers)
  await play('update_ticket_type', 'Another seat', { ticket_type_id: event.captainsTableId, changes: { quantity: 2 } })
  await show('list_waiting_list_entries', 'Offered to the first', { event_id: event.id })
  const changes = { offer_expires_at: '2027-06-01T12:00:00+02:00' }
  await show('update_waiting_list_entry', 'More time', { ...hers, changes })
  await show('accept_waiting_list_offer', 'She comes', hers)
  await show('get_waiting_list_entry', 'Accepted', hers)
  await show('cancel_waiting_list_entry', 'Does not want to wait', { waiting_list_entry_id: second.id })
}

async function correcting({ play, show, refuse }: Player, event: Event): Promise<void> {
  const ticket = { event_id: event.id, ticket_type_id: event.standardId }
  const annie = { ...ticket, name: 'Annie Easley', email: 'annie@example.com' }
  const { data: order } = await play('register_attendee', 'To be transferred', annie)
  const [{ id: attendeeId }] = order.attendees
  await show('update_attendee', 'Transferred to somebody else', {
    attendee_id: attendeeId,
    changes: { name: 'Evelyn Boyd', email: 'evelyn@example.com', reissue_ticket: true },
  })
  await show('resend_ticket', 'Once more', { attendee_id: attendeeId })
  const { data: emails } = await show('list_emails', 'Whether somebody got their ticket', { attendee_id: attendeeId })
  await show('get_email', 'Of a live organisation, without what it says', { email_id: emails[0].id })
  await show('resend_email', 'One of them again', { email_id: emails[0].id })
  await show('list_attendees', 'A page of two', { limit: 2 })
  await show('list_attendees', 'Somebody by parts of a name and an address', { search: 'JACK example.com' })
  await show('get_attendee', 'One', { attendee_id: attendeeId })
  await show('get_ticket_qr', 'What the QR code holds', { attendee_id: attendeeId })
  await show('cancel_attendee', 'For good', { attendee_id: attendeeId })
  await refuse('resend_ticket', 'ticket_not_active', 'Cancelled before', { attendee_id: attendeeId })

  const katherine = { ...ticket, name: 'Katherine Johnson', email: 'katherine@example.com' }
  const { data: declined } = await play('register_attendee', 'To be cancelled', katherine)
  await show('cancel_order', 'A dry run', { order_id: declined.id, dry_run: true, notify: 'everybody' })
  await show('cancel_order', 'For good', { order_id: declined.id })
  await show('erase_attendee', 'Who wants to be forgotten', { attendee_id: declined.attendees[0].id })

  const names = ['Dorothy Vaughan', 'Mary Vaughan']
  const vaughans = names.map((name) => ({ name, email: 'vaughan@example.com' }))
  await play('register_attendee', 'A family', { ...ticket, ...vaughans[0], attendees: vaughans })
  await show('find_person', 'Two people of one address', { email: 'vaughan@example.com' })
  await refuse('erase_person', 'several_people', 'Whose address is that of others', { email: 'vaughan@example.com' })
  await show('erase_person', 'Everything about one of them', { email: 'vaughan@example.com', names: names.slice(0, 1) })
}

async function invoicing({ show, refuse }: Player, event: Event): Promise<void> {
  const group = {
    event_id: event.id,
    ticket_type_id: event.standardId,
    name: 'Christine Darden',
    email: 'christine@example.com',
    company: 'Langley',
    payment_method: 'invoice',
    attendees: [
      { name: 'Melba Roy', email: 'melba@example.com', external_id: 'crm-contact-820' },
      { name: 'Raye Montague', email: 'raye@example.com' },
    ],
  }
  const early = { ...group, promo_code: 'earlybird' }
  const { data: order } = await show('register_attendee', 'A group, to be paid by invoice', early)
  const seven = { ...group, attendees: Array.from({ length: 7 }, () => group.attendees[1]) }
  await refuse('register_attendee', 'quantity_not_allowed', 'More than six in one order', seven)
  const [{ id: attendeeId }] = order.attendees
  await refuse('get_ticket_qr', 'ticket_not_active', 'Not paid for yet', { attendee_id: attendeeId })
  const changes = { payment_due_at: '2027-06-03T23:59:59+02:00' }
  await show('update_order', 'A deadline for the payment', { order_id: order.id, changes, if_version: order.version })
  await show('update_order', 'The invoice goes to the company', {
    order_id: order.id,
    changes: { email: 'accounts@example.com', metadata: { invoice: '2027-118' } },
  })
  await paying({ show, refuse }, event, order.id)
  await show('import_attendees', 'From a CRM', {
    event_id: event.id,
    ticket_type_id: event.standardId,
    attendees: [
      { external_id: 'crm-contact-820', name: 'Melba Roy Mouton', email: 'melba@example.com' },
      { external_id: 'crm-contact-821', name: 'Evelyn Boyd', email: 'evelyn@example.com', company: 'IBM' },
    ],
  })
}

async function chasing({ play, show, refuse, expireOrder }: Player, event: Event): Promise<void> {
  const valerie = { name: 'Valerie Thomas', email: 'valerie@example.com', payment_method: 'invoice' }
  const ticket = { event_id: event.id, ticket_type_id: event.standardId }
  const { data: order } = await play('register_attendee', 'Who will not pay in time', { ...ticket, ...valerie })
  const hers = { order_id: order.id }
  const gladys = { ...hers, ticket_type_id: event.standardId, name: 'Gladys West', email: 'gladys@example.com' }
  await show('add_attendee', 'A guest more', gladys)
  await show('send_payment_reminder', 'To the buyer, now', hers)
  await show('send_payment_reminders', 'To all who have to pay', { event_id: event.id })
  await expireOrder(order.id)
  await refuse('add_attendee', 'order_expired', 'Too late', gladys)
  await refuse('record_invoice_payment', 'order_expired', 'Too late', { ...hers, amount: order.amount_due })
  await show('list_orders', 'What is overdue', { overdue: true, limit: 1 })
  await show('reopen_order', 'More time', { ...hers, payment_due_at: '2027-06-03T23:59:59+02:00', notify: 'mailed' })
}

type Showing = Pick<Player, 'show' | 'refuse'>

async function paying({ show, refuse }: Showing, event: Event, orderId: string): Promise<void> {
  const invoice = { order_id: orderId, method: 'bank_transfer', external_reference: 'INV-2027-031' }
  await show('record_invoice_payment', 'A part of it', { ...invoice, amount: 2000, currency: 'EUR' })
  await refuse('record_invoice_payment', 'overpayment', 'More than is due', { ...invoice, amount: 8820 })
  await show('record_invoice_payment', 'The rest', { ...invoice, amount: 6820, received_at: '2027-05-20T06:30:00Z' })
  const { data: paid } = await show('get_order', 'Paid', { order_id: orderId })
  await show('list_payments', 'Of one order', { order_id: orderId })
  await show('void_payment', 'Recorded by mistake', {
    payment_id: paid.payments[0].id,
    reason: 'Meant for another order',
  })
  await refuse('record_refund', 'payment_due', 'Something is still due', { order_id: orderId, amount: 2000 })
  await show('record_invoice_payment', 'The right amount', { ...invoice, amount: 2000 })
  await show('record_refund', 'A part of it, which is due again', {
    order_id: orderId,
    amount: 500,
    external_reference: 'CN-2027-004',
  })
  await show('list_orders', 'A page of two', { event_id: event.id, limit: 2 })
  await show('get_event_summary', 'So far', { event_id: event.id })
}

async function checkingIn({ play, show, refuse }: Player, event: Event, [mary, dorothy]: string[]): Promise<void> {
  const { data: checkIn } = await show('check_in', 'Come in', { event_id: event.id, code: mary, device: 'Gate 1' })
  await refuse('check_in', 'already_checked_in', 'A second time', { event_id: event.id, code: mary, device: 'Gate 2' })
  await show('find_attendees', 'Who has no ticket at hand', { event_id: event.id, search: 'mary' })
  await refuse('check_in', 'not_found', 'No ticket has this code', { event_id: event.id, code: 'NOBODY' })
  await show('undo_check_in', 'Scanned by mistake', { check_in_id: checkIn.id })
  await refuse('undo_check_in', 'check_in_already_undone', 'Undone before', { check_in_id: checkIn.id })
  await show('check_in_batch', 'Two scans made offline', {
    event_id: event.id,
    scans: [
      { scan_id: 'gate-2-0001', code: dorothy, scanned_at: '2027-06-12T09:31:05+02:00', device: 'Gate 2' },
      { scan_id: 'gate-2-0002', code: dorothy, scanned_at: '2027-06-12T09:31:40+02:00', device: 'Gate 2' },
    ],
  })
  await show('list_check_ins', 'The latest two', { limit: 2 })
  const { data: diet } = await show('create_question', 'Diet, in two languages', {
    event_id: event.id,
    key: 'diet',
    type: 'one_of',
    label: 'Diet',
    translations: { de: { label: 'Ernährung', options: { everything: 'Alles' } } },
    options: [
      { key: 'everything', label: 'Everything' },
      { key: 'vegan', label: 'Vegan' },
    ],
    at_door: true,
    required: true,
  })
  await show('list_questions', 'One', { event_id: event.id })
  const lamp = { event_id: event.id, subject: 'Bring a lamp', message: 'It is **dark** outside.', status: 'active' }
  await show('message_attendees', 'Who would be told', { ...lamp, dry_run: true })
  await show('remind_unanswered', 'Who would be reminded', { event_id: event.id, dry_run: true })
  const archived = { question_id: diet.id, changes: { status: 'archived' }, if_version: 1 }
  await show('update_question', 'No longer asked', archived)
  const mainGate = { event_id: event.id, name: 'Main gate', admission: 're_entry' }
  const { data: gate } = await show('create_check_in_point', 'A gate that lets in again', mainGate)
  const hours = { opens_at: '2027-06-12T13:00:00+02:00', closes_at: '2027-06-12T15:00:00+02:00' }
  const afternoon = { event_id: event.id, name: 'Workshop', ...hours }
  const { data: workshop } = await show('create_check_in_point', 'A workshop', afternoon)
  await show('list_check_in_points', 'Both', { event_id: event.id })
  const ofWorkshop = { check_in_point_id: workshop.id }
  const renamed = { ...ofWorkshop, changes: { name: 'Orbits by hand' }, if_version: 1 }
  await show('update_check_in_point', 'Renamed', renamed)
  await show('get_check_in_point', 'One', ofWorkshop)
  const marys = { event_id: event.id, code: mary }
  await refuse('check_in', 'point_closed', 'Too early', { ...marys, ...ofWorkshop })
  const atGate = { ...marys, check_in_point_id: gate.id }
  await refuse('check_in', 'not_inside', 'Leaving before coming', { ...atGate, direction: 'exit' })
  await play('check_in', 'At the gate', atGate)
  await show('check_in', 'Leaving', { ...atGate, direction: 'exit' })
  const scan = { code: dorothy, check_in_point_id: gate.id, admitted: true }
  await play('check_in_batch', 'Two devices without a network', {
    event_id: event.id,
    scans: [
      { ...scan, scan_id: 'gate-1-0001', scanned_at: '2027-06-12T10:02:00+02:00', device: 'Gate 1' },
      { ...scan, scan_id: 'gate-2-0003', scanned_at: '2027-06-12T10:03:00+02:00', device: 'Gate 2' },
    ],
  })
  await show('list_check_in_conflicts', 'Let in twice', { event_id: event.id })
  await show('get_door_list', 'From the start', { event_id: event.id })
  await refuse('delete_check_in_point', 'in_use', 'With scans', { check_in_point_id: gate.id })
  const { data: mistake } = await play('create_check_in_point', 'A mistake', { event_id: event.id, name: 'Gate' })
  await show('delete_check_in_point', 'Without scans', { check_in_point_id: mistake.id })
}

async function subscribing({ play, show, refuse }: Player): Promise<string> {
  const { data: endpoint } = await show('create_webhook_endpoint', 'The CRM', {
    url: 'https://crm.example.com/usher',
    types: ['order.completed', 'attendee.checked_in'],
    description: 'CRM',
  })
  const plain = { url: 'http://crm.example.com/usher', types: ['order.completed'] }
  await refuse('create_webhook_endpoint', 'validation_failed', 'Not https', plain)
  const webhook = { webhook_endpoint_id: endpoint.id }
  await show('update_webhook_endpoint', 'Another type', {
    ...webhook,
    changes: { types: ['order.completed', 'order.cancelled', 'attendee.checked_in'] },
  })
  await show('rotate_webhook_secret', 'A new secret', { ...webhook, overlap_hours: 48 })
  await show('test_webhook_endpoint', 'A test', webhook)
  await show('get_webhook_endpoint', 'One', webhook)
  const { data: old } = await play('create_webhook_endpoint', 'The CRM before', {
    url: 'https://old.example.com',
    types: ['event.updated'],
  })
  await show('list_webhook_endpoints', 'All there are', {})
  await show('delete_webhook_endpoint', 'The one before', { webhook_endpoint_id: old.id })
  return endpoint.id
}

/** As the courier does, some at a time. */
async function makeDeliveries(database: pg.ClientBase, organisationId: string): Promise<void> {
  const queued = 'select from public.notifications n where n.queued_for is not null and n.organisation_id = $1'
  while ((await database.query(queued, [organisationId])).rowCount)
    await database.query('select private.enqueue_deliveries()')
}

async function lookingBack({ show, refuse, untilListed }: Player, endpointId: string): Promise<void> {
  const { data } = await show('list_webhook_deliveries', 'The latest two of a type', {
    webhook_endpoint_id: endpointId,
    type: 'order.completed',
    limit: 2,
  })
  await show('redeliver_webhook', 'Once more', { webhook_delivery_id: data[0].id })
  const outage = { webhook_endpoint_id: endpointId, updated_after: '2027-06-12T07:00:00Z' }
  await show('redeliver_webhooks', 'After an outage', outage)
  await untilListed('/notifications?type=order.completed')
  for (const type of ['order.completed', 'order.updated', 'attendee.created'])
    await show('list_notifications', `The first ${type}`, { type, limit: 1 })
  await show('list_audit_entries', 'The latest two', { limit: 2 })
  await untilListed('/requests?status=403')
  await show('list_requests', 'What was forbidden', { status: 403 })
  await refuse('list_notifications', 'not_found', 'No longer kept', { after: '01926b5c-0000-7000-8000-000000000000' })
}

async function exporting({ show, refuse }: Player, event: Event): Promise<void> {
  const inSeptember = { received_after: '2026-09-01T00:00:00+02:00', received_before: '2026-10-01T00:00:00+02:00' }
  await show('export_attendees', 'Everybody who comes', { event_id: event.id, status: 'active' })
  await show('export_orders', 'Some columns', { event_id: event.id, fields: ['reference', 'total_decimal'] })
  await show('export_payments', 'The books of a month', inSeptember)
  await show('export_check_ins', 'All scans', { event_id: event.id })
  await refuse('export_attendees', 'validation_failed', 'No such column', { fields: ['ticket_url'] })
}

/** What only time and a mail server do. */
async function passing({ play }: Player, event: Event, database: pg.ClientBase, organisationId: string): Promise<void> {
  const rain = { event_id: event.rainDateId }
  const { data: boat } = await play('create_ticket_type', 'One place', { ...rain, name: 'Boat trip', quantity: 1 })
  const seat = { ...rain, ticket_type_id: boat.id }
  await play('register_attendee', 'On the boat', { ...seat, name: 'Annie Easley', email: 'annie@example.com' })
  await play('join_waiting_list', 'For the boat', { ...seat, name: 'Evelyn Boyd', email: 'evelyn@example.com' })
  await play('update_ticket_type', 'Another place', { ticket_type_id: boat.id, changes: { quantity: 2 } })
  for (const change of [
    "waiting_list_entries set offer_expires_at = now() where status = 'offered'",
    "waiting_list_entries set status = 'expired' where status = 'offered'",
    "attendees set ticket_email_status = 'bounced' where name = 'Annie Easley' and status = 'active'",
  ])
    await database.query(`update public.${change} and organisation_id = $1`, [organisationId])
}

/** The first notification of each type. */
async function notified({ play, untilListed }: Player): Promise<Story['notifications']> {
  const notifications: Story['notifications'] = {}
  for (const type of notificationTypes) {
    await untilListed(`/notifications?type=${type}`)
    const { data } = await play('list_notifications', type, { type, limit: 1 })
    notifications[type] = { timestamp: data[0].created_at, data: data[0].data }
  }
  return notifications
}

async function closing({ play, show, refuse }: Player, event: Event): Promise<void> {
  await refuse('unpublish_event', 'event_has_orders', 'Too late', { event_id: event.id })
  await refuse('delete_event', 'in_use', 'It has orders', { event_id: event.id })
  const { data: copy } = await play('create_event', 'A mistake', { name: 'Open Harbour Day' })
  await show('delete_event', 'A draft', { event_id: copy.id })
  await show('complete_event', 'It is over', { event_id: event.id })
  await show('cancel_event', 'A dry run', { event_id: event.rainDateId, dry_run: true })
  await show('cancel_event', 'For good', { event_id: event.rainDateId })
}

/** A key that has made the one request a minute that its plan allows. */
async function exhaustedKey(database: pg.ClientBase, apiUrl: string): Promise<string> {
  const [plan, slug] = [`story-${randomUUID()}`.slice(0, 40), `story-${randomUUID()}`]
  await database.query('insert into public.plans (name, rate_limit_per_minute) values ($1, 1)', [plan])
  await createOrganisation(database, { name: slug, slug, plan })
  const key = await issueKey(database, { organisation: slug, name: 'Busy', scopes })
  await fetch(`${apiUrl}/api/v1/me`, { headers: { Authorization: `Bearer ${key}` } })
  return key
}
