// The chapters of the documentation, in order, with the objects that belong to each. A new resource must be added here: until then
// it has a chapter of its own, and a test fails.

import type { Operation } from '../../operations/operation.ts'
import { answeredObject, kindOf } from './objects.ts'

/** `guide` is a page, or a part of one: see ../guides.ts. */
type Tag = { name: string; description: string; guide: string; kinds: string[] }

const chapters: readonly Tag[] = [
  {
    name: 'API key',
    description: 'The calling key: its organisation and its scopes.',
    guide: 'concepts',
    kinds: ['api_key'],
  },
  {
    name: 'Events',
    description:
      'Events begin as drafts, are published, then completed or cancelled. Guests can register while an event is published.',
    guide: 'guides/set-up-an-event',
    kinds: ['event', 'event_summary', 'event_plan'],
  },
  {
    name: 'Ticket types',
    description: 'The kinds of tickets of an event, with their prices and availability.',
    guide: 'guides/set-up-an-event',
    kinds: ['ticket_type'],
  },
  {
    name: 'Promo codes',
    description: 'Discount codes of an event.',
    guide: 'guides/register-guests',
    kinds: ['promo_code'],
  },
  {
    name: 'Questions',
    description: 'Questions of an event to its guests. The answers are fields of the attendees.',
    guide: 'guides/questions',
    kinds: ['question', 'answer_reminders'],
  },
  {
    name: 'Orders',
    description: 'Registrations with their attendees, and the payments that complete them.',
    guide: 'guides/groups-and-invoices',
    kinds: ['order', 'payment', 'payment_reminders'],
  },
  {
    name: 'Attendees',
    description: 'People and their tickets: correct, transfer, resend, cancel.',
    guide: 'guides/register-guests',
    kinds: ['attendee', 'attendee_import', 'email', 'erasure', 'ticket_qr', 'person', 'person_erasure', 'message'],
  },
  {
    name: 'Waiting list',
    description: 'People waiting for a place of a sold-out ticket type, and their offers.',
    guide: 'guides/waiting-list',
    kinds: ['waiting_list_entry'],
  },
  {
    name: 'Check-ins',
    description: 'Scans at the door: each is accepted or rejected, and logged. Each ticket admits once.',
    guide: 'guides/check-in-by-api',
    kinds: ['check_in', 'check_in_batch', 'door_attendee', 'check_in_point', 'door_list', 'check_in_conflict'],
  },
  {
    name: 'Webhooks',
    description: 'Endpoints that receive notifications, their deliveries, and the log of all notifications.',
    guide: 'guides/webhooks',
    kinds: ['webhook_endpoint', 'webhook_delivery', 'webhook_redelivery', 'notification'],
  },
  {
    name: 'Exports',
    description: 'Files of attendees, orders, payments and check-ins, and links to them for people.',
    guide: 'guides/exports',
    kinds: ['export'],
  },
  {
    name: 'Audit trail',
    description: 'Changes by people and keys, with time and source.',
    guide: 'guides/find-and-list',
    kinds: ['audit_entry'],
  },
  {
    name: 'Requests',
    description: 'The log of requests: why a call failed, and which key made it.',
    guide: 'guides/find-a-request',
    kinds: ['request'],
  },
]

/** @param url of this server, or '' where it is not known. */
export const tagsAt = (url: string) =>
  chapters.map(({ name, description, guide }) => ({
    name,
    description,
    externalDocs: { description: 'Guide', url: `${url}/docs/${guide}` },
  }))

export function tagOf(operation: Operation): string {
  const kind = kindOf(answeredObject(operation)) ?? operation.name
  return chapters.find(({ kinds }) => kinds.includes(kind))?.name ?? kind
}
