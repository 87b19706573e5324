// What an errand of an assistant costs in tokens: the list of tools, and each call with its answer.

import { expect, test } from 'vitest'
import { negotiating } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { countTokens } from '../support/tokens.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are held against their schemas by the caller.
type Data = any

const budget = 9_000
const names = ['Ada', 'Barbara', 'Chien', 'Dorothy', 'Edsger', 'Frances', 'Grace', 'Hedy', 'Ida', 'Joan']

test('an assistant sets an event up, registers ten, checks three in by name and sums up, within its context', async ({
  annotate,
}) => {
  const organisation = await createOrganisation()
  const key = await organisation.key('events:read', 'events:write', 'attendees:write', 'checkin:write')
  const mcp = await negotiating(key)
  const read: string[] = []
  const data = async (name: string, args: object): Promise<Data> => {
    const answer = await mcp.call(name, { ...args })
    read.push(JSON.stringify([name, args, answer]))
    return answer.data
  }

  const event = await data('create_event', {
    name: 'Reading Evening',
    starts_at: '2027-06-12T18:00:00+02:00',
    ends_at: '2027-06-12T21:00:00+02:00',
    timezone: 'Europe/Berlin',
  })
  const { id: ticket_type_id } = await data('create_ticket_type', { event_id: event.id, name: 'Guest', quantity: 20 })
  await data('publish_event', { event_id: event.id })
  await data('register_attendee', {
    event_id: event.id,
    ticket_type_id,
    attendees: names.map((name) => ({ name: `${name} Reader`, email: `${name.toLowerCase()}@example.com` })),
    idempotency_key: 'reading-evening',
  })
  for (const name of ['Ada', 'Grace', 'Joan']) {
    const [person]: Data[] = await data('find_attendees', { event_id: event.id, search: name })
    await data('check_in', { event_id: event.id, attendee_id: person.id })
  }
  const { tickets } = await data('get_event_summary', { event_id: event.id })
  expect(tickets).toMatchObject({ sold: 10, checked_in: 3 })

  const listed = countTokens(JSON.stringify(mcp.tools))
  const tokens = listed + countTokens(read.join('\n'))
  await annotate(`${listed} tokens of tools and ${tokens - listed} tokens of calls and answers`)
  expect(tokens).toBeLessThan(budget)
})
