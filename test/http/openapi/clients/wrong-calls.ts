// Mistakes that must not compile: without its error a @ts-expect-error is one itself. Never run.

import createClient from 'openapi-fetch'
import type { components, paths } from './generated/usher-api.ts'

const client = createClient<paths>()
type Schemas = components['schemas']
type Registration = Schemas['RegistrationRequest']

const params = { path: { event_id: 'e' } }
const register = '/events/{event_id}/registrations'
const guest = { ticket_type_id: 't', name: 'Mary', email: 'mary@example.com' }

export const openapiFetch = () => {
  // openapi-fetch infers the type of its options, so a field too many shows only in a body of its named type.
  // @ts-expect-error: a misspelt field
  const misspelt: Registration = { ticket_type_id: 't', name: 'M', email: 'm@example.com', send_mail: false }
  // @ts-expect-error: no such field of the change
  const published: Schemas['UpdateEventRequest'] = { status: 'published' }
  void [misspelt, published]
  // @ts-expect-error: a number as body
  void client.POST(register, { params, body: 7 })
  // @ts-expect-error: no body
  void client.POST(register, { params })
  // @ts-expect-error: no ticket type
  void client.POST(register, { params, body: { name: 'Mary', email: 'mary@example.com' } })
  // @ts-expect-error: a guest of a group without an e-mail address
  void client.POST(register, { params, body: { attendees: [{ name: 'Mary' }] } })
  // @ts-expect-error: no such payment method
  void client.POST(register, { params, body: { ...guest, payment_method: 'cheque' } })
  // @ts-expect-error: no such query parameter
  void client.GET('/events', { params: { query: { state: 'published' } } })
  // @ts-expect-error: no such status
  void client.GET('/events', { params: { query: { status: 'open' } } })
  // @ts-expect-error: no event
  void client.GET('/events/{event_id}', {})
  // @ts-expect-error: no such path
  void client.GET('/event')
  // @ts-expect-error: a time that is a number
  void client.PATCH('/events/{event_id}', { params, body: { starts_at: 1_800_000_000 } })
  // @ts-expect-error: a code that is a number
  void client.POST('/check-ins', { body: { event_id: 'e', code: 7 } })
}

export function errors(conflict: Schemas['RegisterAttendeeConflict']) {
  switch (conflict.error.code) {
    case 'sold_out':
      return conflict.error.hint
    // @ts-expect-error: no answer of this operation
    case 'overpayment':
    // @ts-expect-error: a misspelt code
    case 'soldout':
      return conflict.error.message
  }
}
