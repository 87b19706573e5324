// An organisation with a row in every table, and the people around it: what tenancy is tested with. Two of them, and
// whatever one sees of the other is a leak.

import { randomUUID } from 'node:crypto'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { enqueued } from '../support/outbox.ts'
import type { Claims } from './actor.ts'

export type Tenant = {
  id: string
  event: TestEvent
  soldOutTicketTypeId: string
  orderId: string
  /** Pending, with something due. */
  pricedOrderId: string
  /** A payment of it. */
  paymentId: string
  paidOrderId: string
  attendeeId: string
  checkInId: string
  keyId: string
  /** What the token of a call with its API key says. */
  claims: Claims
  /** What the tokens of its people say. */
  owner: Claims
  member: Claims
}

export async function createTenant({ isTest = false } = {}): Promise<Tenant> {
  const organisation = await createOrganisation({ isTest })
  const event = await organisation.event()
  await studio.query(
    `insert into public.webhook_endpoints (organisation_id, url, types) select $1, 'https://hooks.example.com', '{order.created}'`,
    [organisation.id],
  )
  const guest = await event.guest()
  await studio.query(
    'insert into public.email_opt_outs (event_id, email) select a.event_id, a.email from public.attendees a where a.event_id = $1',
    [event.id],
  )
  await studio.query("select public.message_attendees($1, 'Hello', 'Bring a lamp.')", [event.id])
  const checkIn = await row<{ id: string }>(
    `insert into public.check_ins (event_id, code) select $1, $2 returning id`,
    [event.id, guest.code],
  )
  await studio.query(`insert into public.promo_codes (event_id, code, percent_off) select $1, 'FRIENDS', 20`, [
    event.id,
  ])
  await studio.query(`insert into public.check_in_points (event_id, name) select $1, 'Gate'`, [event.id])
  await studio.query(`insert into public.questions (event_id, key, label) select $1, 'diet', 'Diet'`, [event.id])
  const soldOutTicketTypeId = await event.ticketType({ quantity: 0 })
  await studio.query(
    `insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) select $1, $2, 'Guest', 'guest@example.com'`,
    [event.id, soldOutTicketTypeId],
  )
  const priced = await event.payer()
  await studio.query(`insert into public.payments (order_id, amount) select $1, 100`, [priced.orderId])
  const refunded = await event.payer()
  await studio.query(
    `with first as (insert into public.payments (order_id, amount) select $1, 1 returning id)
     insert into public.payment_voids (payment_id) select id from first`,
    [refunded.orderId],
  )
  await studio.query(`insert into public.payments (order_id, amount) select $1, 4900`, [refunded.orderId])
  await studio.query(`insert into public.refunds (order_id, amount) select $1, 100`, [refunded.orderId])
  const paid = await row<{ id: string }>('select id from public.payments where order_id = $1', [priced.orderId])
  const [key, owner, member] = await Promise.all([
    row<{ id: string; family_id: string }>('select id, family_id from public.api_keys where prefix = $1', [
      prefixOf(await organisation.key()),
    ]),
    signUp(),
    signUp(),
  ])
  // A second key, which the first must not see.
  await organisation.key('events:read')
  await studio.query(
    `insert into private.requests (organisation_id, api_key_id, source, method, status, duration_ms, request_id, created_at)
     values ($1, $2, 'api', 'GET', 200, 1, 'first', now())`,
    [organisation.id, key.id],
  )
  await Promise.all([join(organisation.id, owner, 'owner'), join(organisation.id, member, 'manager')])
  await enqueued(organisation.id)

  return {
    id: organisation.id,
    event,
    soldOutTicketTypeId,
    orderId: guest.orderId,
    pricedOrderId: priced.orderId,
    paymentId: paid.id,
    paidOrderId: refunded.orderId,
    attendeeId: guest.attendeeId,
    checkInId: checkIn.id,
    keyId: key.id,
    claims: { organisation_id: organisation.id, api_key_id: key.id, family_id: key.family_id, source: 'api' },
    owner,
    member,
  }
}

/** Somebody who can sign in, and belongs to nobody yet. */
export async function signUp(): Promise<Claims> {
  const sub = randomUUID()
  await studio.query("insert into auth.users (id, aud, role) values ($1, 'authenticated', 'authenticated')", [sub])
  return { sub }
}

export async function join(
  organisationId: string,
  person: Claims,
  role: 'owner' | 'manager' | 'door' | 'viewer',
): Promise<void> {
  await studio.query(`insert into public.organisation_members (organisation_id, user_id, role) select $1, $2, $3`, [
    organisationId,
    person.sub,
    role,
  ])
}
