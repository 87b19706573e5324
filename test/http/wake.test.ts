// The courier is woken by a write as soon as it is committed, over REST and MCP, and by nothing else.

import { expect, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'

test('a write that is committed wakes the courier; a read or a refusal does not', async () => {
  let wakes = 0
  const app = await ownApp({ onWritten: () => void wakes++ })
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const key = await organisation.key()
  const send = rest(key, app.url)

  await send('GET', '/events')
  await send('POST', `/events/${event.id}/registrations`, {})
  expect(wakes).toBe(0)
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  expect((await send('POST', `/events/${event.id}/registrations`, guest)).status).toBe(201)
  expect(wakes).toBe(1)

  const call = { name: 'register_attendee', arguments: { event_id: event.id, ...guest } }
  const answer = await fetch(`${app.url}/api/mcp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
  })
  expect(await answer.text()).not.toContain('isError')
  expect(wakes).toBe(2)
})
