// An organisation of a test's own, with as much in it as the test needs, added the way an organiser would: as rows.

import { randomUUID } from 'node:crypto'
import { issueKey } from '../../src/local/admin.ts'
import { type Scope, scopes } from '../../src/operations/operation.ts'
import { idOf, row, studio } from './database.ts'

export type TestOrganisation = {
  id: string
  slug: string
  /** A new API key with these scopes; with all of them when none are named. */
  key(...chosen: Scope[]): Promise<string>
  /** One with all scopes that has a person confirm what cannot be undone. */
  askingKey(...scopes: Scope[]): Promise<string>
  /** Jane Doe's, who signs in with it; with all scopes when none are named. */
  personKey(...scopes: Scope[]): Promise<string>
  /** A published event with one ticket type. */
  event(options?: EventOptions): Promise<TestEvent>
}

/** madeAt: before the times that its scans have. */
export type EventOptions = { capacity?: number; quantity?: number; status?: 'draft' | 'published'; madeAt?: string }

export type TicketTypeOptions = { quantity?: number; price?: number; name?: string }

export type TestGuest = { orderId: string; attendeeId: string; code: string }

export type TestEvent = {
  id: string
  ticketTypeId: string
  ticketType(options?: TicketTypeOptions): Promise<string>
  /** A guest with a ticket, added in Studio. */
  guest(options?: { ticketTypeId?: string }): Promise<TestGuest>
  /** The same, but the ticket costs 49.00 and is to be paid by invoice. */
  payer(options?: { price?: number }): Promise<TestGuest>
  sold(ticketTypeId?: string): Promise<number>
}

/** For a statement that selects from nothing, as those are that make a key. */
const ofKnownRight = {
  query: (sql: string, values: unknown[]) => studio.query(`${sql}`, values),
} as typeof studio

export async function createOrganisation({ plan = 'enterprise', isTest = false } = {}): Promise<TestOrganisation> {
  const slug = `test-${randomUUID()}`
  const id = await idOf(
    'insert into public.organisations (name, slug, plan, is_test) values ($1, $1, $2, $3) returning id',
    [slug, plan, isTest],
  )
  const keys =
    (more: { name: string; kind?: 'person'; confirmations?: 'none' }) =>
    (...chosen: Scope[]) =>
      issueKey(ofKnownRight, { organisation: slug, scopes: chosen.length > 0 ? chosen : scopes, ...more })
  return {
    id,
    slug,
    key: keys({ name: 'test', confirmations: 'none' }),
    personKey: keys({ name: 'Jane Doe', kind: 'person' }),
    askingKey: keys({ name: 'Assistant' }),
    event: (options) => createEvent(id, options),
  }
}

async function createEvent(
  organisationId: string,
  { capacity, quantity, status = 'published', madeAt = 'now' }: EventOptions = {},
): Promise<TestEvent> {
  const id = await idOf(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at, timezone, capacity, created_at)
     select $1, 'Test event', $2, now() + interval '1 day', now() + interval '2 days', 'Europe/Berlin', $3, $4 returning id`,
    [organisationId, `event-${randomUUID()}`, capacity ?? null, madeAt],
  )
  const ticketType = ({ quantity, price = 0, name = 'General' }: TicketTypeOptions = {}) =>
    idOf('insert into public.ticket_types (event_id, name, quantity, price) values ($1, $2, $3, $4) returning id', [
      id,
      name,
      quantity ?? null,
      price,
    ])
  const ticketTypeId = await ticketType(quantity === undefined ? {} : { quantity })
  if (status === 'published') await studio.query(`update public.events set status = 'published' where id = $1`, [id])

  const add = async (of: string, paymentMethod: 'invoice' | null): Promise<TestGuest> => {
    const orderId = await idOf(
      `insert into public.orders (event_id, name, email, payment_method)
       values ($1, 'Guest', 'guest@example.com', $2) returning id`,
      [id, paymentMethod],
    )
    const attendee = await row<{ id: string; ticket_code: string }>(
      `insert into public.attendees (order_id, ticket_type_id, name, email)
       select $1, $2, 'Guest', 'guest@example.com' returning id, ticket_code`,
      [orderId, of],
    )
    return { orderId, attendeeId: attendee.id, code: attendee.ticket_code }
  }

  return {
    id,
    ticketTypeId,
    ticketType,
    guest: (options = {}) => add(options.ticketTypeId ?? ticketTypeId, null),
    payer: async ({ price = 4900 } = {}) => add(await ticketType({ price }), 'invoice'),
    sold: async (of = ticketTypeId) =>
      (await row<{ quantity_sold: number }>('select quantity_sold from public.ticket_types where id = $1', [of]))
        .quantity_sold,
  }
}
