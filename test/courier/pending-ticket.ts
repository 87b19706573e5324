// A ticket e-mail as the database hands it to the courier, to be varied by tests.

import { randomUUID } from 'node:crypto'
import type { PendingTicket } from '../../src/guests/pending.ts'

export const sender = 'tickets@usher.example'

/** What a test changes of the event, the attendee and the rest; the remainder is an evening in Cologne. */
export type Changes = {
  [Key in 'organisation' | 'event' | 'ticket_type' | 'order' | 'attendee']?: Partial<PendingTicket[Key]>
} & { others?: PendingTicket['others'] }

export function pendingTicket(changes: Changes = {}): PendingTicket {
  return {
    id: randomUUID(),
    claim: randomUUID(),
    kind: 'ticket',
    attempt: 1,
    organisation: {
      name: 'Literaturhaus Köln',
      reply_to: 'hello@literaturhaus.example',
      accent_colour: null,
      payment_instructions: null,
      logo_url: null,
      is_test: false,
      ...changes.organisation,
    },
    event: {
      object: 'event',
      id: randomUUID(),
      name: 'Lange Nacht der Übersetzung',
      slug: 'lange-nacht',
      description: null,
      guest_notes: {},
      status: 'published',
      phase: 'upcoming',
      starts_at: '2027-05-01T17:00:00Z',
      ends_at: '2027-05-01T20:30:00Z',
      timezone: 'Europe/Berlin',
      locale: 'en',
      venue: {
        name: 'Altes Pfandhaus',
        address: 'Kartäuserwall 20',
        city: 'Köln',
        postcode: '50678',
        country: 'DE',
      },
      online_url: null,
      waiting_list_offer_hours: 24,
      guests_may: [],
      guests_may_until: null,
      registration_page: 'off',
      registration_url: null,
      capacity: null,
      currency: 'EUR',
      payment_due_days: null,
      published_at: '2027-01-02T00:00:00Z',
      cancelling_since: null,
      cancelled_at: null,
      completed_at: null,
      external_id: null,
      metadata: {},
      version: 3,
      created_at: '2027-01-01T00:00:00Z',
      updated_at: '2027-02-01T12:00:00Z',
      ...changes.event,
    },
    message: null,
    ticket_type: { name: 'Regular', ...changes.ticket_type },
    order: { reference: 'K7Q2M9XD', ...changes.order },
    attendee: {
      id: randomUUID(),
      name: 'Ada Lovelace',
      email: 'ada@engines.example',
      company: 'Analytical Engines',
      status: 'active',
      ticket_url: null,
      guest: null,
      has_another_ticket: false,
      updated_at: '2027-02-01T12:00:00Z',
      ticket_code: '7K3MQ9ZTB2XW4D8H',
      ...changes.attendee,
    },
    others: changes.others ?? [],
    opt_out_url: null,
    order_url: null,
  }
}
