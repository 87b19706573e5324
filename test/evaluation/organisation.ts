// An organisation in which an errand is run, and what an organiser has in it before: added as rows, or by other keys over REST. Imports
// nothing of vitest: `npm run evaluate` uses it too.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type Confirmations, issueKey } from '../../src/local/admin.ts'
import { type Scope, scopes } from '../../src/operations/operation.ts'

// Errands are about next year, so that they never are about the past.
export const year = new Date().getUTCFullYear() + 1

export type Database = Pick<pg.Pool, 'query'>

type TicketType = {
  price?: number
  quantity?: number
  sales_end_at?: string
}
type NewEvent = {
  name: string
  starts: string
  ends: string
  ticketTypes: Record<string, TicketType>
  capacity?: number
  venue?: string
  status?: 'draft' | 'published'
}
export type ArrangedEvent = { id: string; ticketTypes: Record<string, string> }

type Guest = { name: string; email: string; company?: string; ticketType?: string }
type NewOrder = {
  /** The first is the buyer, unless one is named. */
  guests: Guest[]
  buyer?: Omit<Guest, 'ticketType'>
  /** By invoice, with what was paid of it in minor units. Left out: complimentary. */
  paid?: number
  sendEmail?: boolean
}
export type ArrangedOrder = { id: string; reference: string; attendeeIds: string[] }

const ticketsOfConferences = { Standard: { price: 4900 }, VIP: { price: 59900 } }

export type Organisation = Awaited<ReturnType<typeof createOrganisation>>

export async function createOrganisation(database: Database, apiUrl: string) {
  const row = async <Row extends pg.QueryResultRow>(sql: string, values: unknown[]): Promise<Row> =>
    (await database.query<Row>(sql, values)).rows[0] as Row
  const slug = `errand-${randomUUID()}`
  const { id } = await row<{ id: string }>(
    "insert into public.organisations (name, slug, plan) values ('Harbour Events', $1, 'enterprise') returning id",
    [slug],
  )
  const key = (name: string, granted: readonly Scope[] = scopes, confirmations: Confirmations = 'none') =>
    issueKey(database as pg.ClientBase, { organisation: slug, name, scopes: [...granted], confirmations })

  /** In Berlin, in euros. Times are anything that Postgres reads. */
  async function event({ name, starts, ends, ticketTypes, capacity, venue, status = 'published' }: NewEvent) {
    const event = await row<{ id: string }>(
      `insert into public.events (organisation_id, name, starts_at, ends_at, timezone, capacity, venue_name, created_at)
         values ($1, $2, $3, $4, 'Europe/Berlin', $5, $6, now() - interval '7 days') returning id`,
      [id, name, starts, ends, capacity, venue],
    )
    const ids: Record<string, string> = {}
    for (const [position, [type, { price = 0, quantity, sales_end_at }]] of Object.entries(ticketTypes).entries()) {
      const added = await row<{ id: string }>(
        `insert into public.ticket_types (event_id, name, price, quantity, sales_end_at, position)
           values ($1, $2, $3, $4, $5, $6) returning id`,
        [event.id, type, price, quantity, sales_end_at, position],
      )
      ids[type] = added.id
    }
    if (status === 'published') {
      await database.query("update public.events set status = 'published' where id = $1", [event.id])
    }
    return { id: event.id, ticketTypes: ids } satisfies ArrangedEvent
  }

  return {
    id,
    database,
    apiUrl,
    row,
    key,
    personKey: () =>
      issueKey(database as pg.ClientBase, {
        organisation: slug,
        name: 'Jane Doe',
        scopes: [...scopes],
        kind: 'person',
      }),

    /** What somebody else did over REST before. */
    async as(keyName: string, method: string, path: string, body: object): Promise<void> {
      const response = await fetch(`${apiUrl}/api/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${await key(keyName)}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
    },

    event,
    /** Two days in May, as most errands have them. */
    conference: (name = 'Rust Days', ticketTypes: NewEvent['ticketTypes'] = ticketsOfConferences) =>
      event({ name, starts: `${year}-05-14T09:00:00+02:00`, ends: `${year}-05-15T18:00:00+02:00`, ticketTypes }),

    async waits(of: ArrangedEvent, ticketType: string, { name, email }: Guest): Promise<void> {
      await database.query(
        'insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, $3, $4)',
        [of.id, of.ticketTypes[ticketType], name, email],
      )
    },

    async order(event: ArrangedEvent, { guests, buyer, paid, sendEmail = true }: NewOrder): Promise<ArrangedOrder> {
      const contact = buyer ?? (guests[0] as Guest)
      const order = await row<{ id: string; reference: string }>(
        `insert into public.orders (event_id, name, email, company, payment_method, send_email)
         values ($1, $2, $3, $4, $5, $6) returning id, reference`,
        [event.id, contact.name, contact.email, contact.company, paid === undefined ? null : 'invoice', sendEmail],
      )
      const attendeeIds: string[] = []
      for (const { name, email, company, ticketType } of guests) {
        const type = event.ticketTypes[ticketType ?? (Object.keys(event.ticketTypes)[0] as string)]
        const attendee = await row<{ id: string }>(
          'insert into public.attendees (order_id, ticket_type_id, name, email, company) values ($1, $2, $3, $4, $5) returning id',
          [order.id, type, name, email, company],
        )
        attendeeIds.push(attendee.id)
      }
      if (paid) {
        await database.query(
          "insert into public.payments (order_id, amount, method, external_reference) values ($1, $2, 'bank_transfer', $3)",
          [order.id, paid, `SEPA-${order.reference}`],
        )
      }
      return { ...order, attendeeIds }
    },

    /** A scan that was accepted. */
    async checkIn(event: ArrangedEvent, attendeeId: string | undefined, ago = '0 minutes'): Promise<void> {
      await database.query(
        'insert into public.check_ins (event_id, attendee_id, scanned_at) values ($1, $2, now() - $3::interval)',
        [event.id, attendeeId, ago],
      )
    },

    /** What was to be e-mailed until now has been, so that what the errand e-mails stands out. */
    async allSent(): Promise<void> {
      await database.query(
        `update public.emails set status = 'sent', sent_at = now(), next_attempt_at = null
         where organisation_id = $1 and status = 'queued'`,
        [id],
      )
      await database.query(
        `update public.attendees set ticket_email_status = 'sent', ticket_email_sent_at = now()
         where organisation_id = $1 and ticket_email_status = 'queued'`,
        [id],
      )
    },
  }
}

/** A guest of whom only the name matters. */
export const guest = (name: string, ticketType?: string): Guest => ({
  name,
  email: `${name.toLowerCase().replaceAll(/[^a-z]+/g, '.')}@example.com`,
  ...(ticketType !== undefined && { ticketType }),
})
