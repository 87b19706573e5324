// What happens at one event, from its making to the door, by any version of the API on any version of the schema. Each step is answered as
// it has to be, and its webhook comes.

import { setTimeout as sleep } from 'node:timers/promises'
import type { WebhookReceiver } from '../../support/webhook-receiver.ts'
import type { Attempt } from '../history.ts'

type Told = {
  apiUrl: string
  apiKey: string
  /** Of all keys of the run; and of this story. */
  prefix: string
  name: string
  history: Attempt[]
}

/** What was done, to be looked for at the receiver. */
export type Done = { orderIds: string[]; checkInId: string; problems: string[] }

// biome-ignore lint/suspicious/noExplicitAny: answers of an API are read as they come.
type Body = any

export async function tellStory({ apiUrl, apiKey, prefix, name, history }: Told): Promise<Done> {
  const problems: string[] = []
  async function step(status: number, method: string, path: string, body?: object, key?: string): Promise<Body> {
    const response = await fetch(`${apiUrl}/api/v1${path}`, {
      method,
      signal: AbortSignal.timeout(60_000),
      headers: {
        Authorization: `Bearer ${apiKey}`,
        'Content-Type': 'application/json',
        ...(key !== undefined && { 'Idempotency-Key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer: Body = await response.json()
    if (response.status !== status) {
      problems.push(`${name}: ${method} ${path} answered ${response.status} ${answer.error?.code ?? ''}, not ${status}`)
    }
    return answer.data ?? answer
  }
  const keyOf = (what: string) => `${prefix}-${name}-${what}`
  const note = (key: string, operation: string, more: Partial<Attempt>) =>
    history.push({ key, operation, start: 0, end: 0, outcome: 'ok', ...more })

  const event = await step(201, 'POST', '/events', {
    name: `Story ${name}`,
    starts_at: '2035-05-01T18:00:00Z',
    ends_at: '2035-05-01T22:00:00Z',
    timezone: 'Europe/London',
    currency: 'GBP',
  })
  const free = await step(201, 'POST', `/events/${event.id}/ticket-types`, { name: 'Guest' })
  const priced = await step(201, 'POST', `/events/${event.id}/ticket-types`, { name: 'Paying', price: 1500 })
  await step(200, 'POST', `/events/${event.id}/publish`, {})

  const register = async (key: string, ticketTypeId: string, more: object) => {
    const body = { ticket_type_id: ticketTypeId, metadata: { prove: key }, ...more }
    const order = await step(201, 'POST', `/events/${event.id}/registrations`, body, key)
    if (order.id) note(key, 'register', { id: order.id })
    return order
  }
  const guest = await register(keyOf('guest'), free.id, { name: 'Mary Jackson', email: `${name}-mary@example.com` })
  const bought = await register(keyOf('buyer'), priced.id, {
    name: 'Ada Chan',
    email: `${name}-ada@example.com`,
    payment_method: 'invoice',
  })
  const payment = { amount: bought.total, external_reference: keyOf('pay') }
  const paid = await step(201, 'POST', `/orders/${bought.id}/payments`, payment, keyOf('pay'))
  if (paid.status === 'completed') {
    note(keyOf('pay'), 'pay', { money: { orderId: bought.id, amount: bought.total } })
  } else problems.push(`${name}: a paid order is ${paid.status}`)

  const scan = { event_id: event.id, code: guest.attendees?.[0]?.ticket_code, device: keyOf('door') }
  const checkIn = await step(200, 'POST', '/check-ins', scan)
  if (checkIn.result === 'accepted') note(keyOf('door'), 'check in', { id: checkIn.id })
  else problems.push(`${name}: the scan of a good ticket is ${checkIn.result}`)
  await step(409, 'POST', '/check-ins', scan)
  await step(201, 'POST', '/exports/attendees', { event_id: event.id })
  const read = await step(200, 'GET', `/orders/${bought.id}`)
  if (read.amount_due !== 0) problems.push(`${name}: a paid order has ${read.amount_due} due`)
  return { orderIds: [guest.id, bought.id], checkInId: checkIn.id, problems }
}

/** Of a story: the webhooks that do not come. */
export async function missingWebhooks(done: Done, { received }: WebhookReceiver, seconds = 120): Promise<string[]> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const all: Body[] = received.map(({ body }) => JSON.parse(body))
    const missing = [
      ...done.orderIds.filter((id) => !all.some(({ type, data }) => type === 'order.completed' && data.id === id)),
      ...(all.some(({ type, data }) => type === 'attendee.checked_in' && data.check_in?.id === done.checkInId)
        ? []
        : [done.checkInId]),
    ]
    if (missing.length === 0 || Date.now() > deadline) return missing.map((id) => `no webhook tells of ${id}`)
    await sleep(100)
  }
}
