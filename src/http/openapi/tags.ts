// The chapters of the documentation: which object belongs to which, in the order they are read in. Whoever adds a resource
// adds it here; until then it stands under its own name, and a test says so.

import type { Operation } from '../../operation.ts'
import { answeredObject, kindOf } from './objects.ts'

type Tag = { name: string; description: string; kinds: string[] }

const chapters: readonly Tag[] = [
  { name: 'API key', description: 'The key that is calling: whose it is and what it may do.', kinds: ['api_key'] },
  {
    name: 'Events',
    description:
      'A draft is published, and in the end completed or cancelled. People are registered while it is published.',
    kinds: ['event'],
  },
  {
    name: 'Ticket types',
    description: 'What there is to be had at an event, at which price, and how much of it is left.',
    kinds: ['ticket_type'],
  },
  { name: 'Promo codes', description: 'Discount codes of an event.', kinds: ['promo_code'] },
  {
    name: 'Orders',
    description: 'Registrations with their attendees, and the payments that complete them.',
    kinds: ['order'],
  },
  {
    name: 'Attendees',
    description: 'The people and their tickets: corrected, transferred, sent again, cancelled.',
    kinds: ['attendee', 'ticket_qr'],
  },
  {
    name: 'Check-ins',
    description: 'The door: every scan is judged and logged, and every ticket lets in once.',
    kinds: ['check_in', 'check_in_batch'],
  },
  {
    name: 'Webhooks',
    description: 'Addresses that hear of what happens, what was sent to them, and the log of all there was to hear.',
    kinds: ['webhook_endpoint', 'webhook_delivery', 'webhook_redelivery', 'notification'],
  },
]

export const tags = chapters.map(({ name, description }) => ({ name, description }))

export function tagOf(operation: Operation): string {
  const kind = kindOf(answeredObject(operation)) ?? operation.name
  return chapters.find(({ kinds }) => kinds.includes(kind))?.name ?? kind
}
