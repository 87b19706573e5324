import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { row } from '../support/database.ts'
import type { TestEvent } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

async function door() {
  const { organisation, event, send } = await createOrganiser({}, 'checkin:write')
  const guest = async (name: string, company: string | null = null, at: TestEvent = event) => {
    const added = await at.guest()
    await edit('attendees', added.attendeeId, 'name = $2, company = $3, email = $4', [
      name,
      company,
      'hidden@example.com',
    ])
    return added
  }
  const search = (text: string, more = '') =>
    send('GET', `/events/${event.id}/door/attendees?search=${encodeURIComponent(text)}${more}`)
  const namesFor = async (text: string) => (await search(text)).body.data.map(({ name }: { name: string }) => name)
  return { organisation, event, send, guest, search, namesFor }
}

test('people are found by parts of name and company, whatever the case and accents, newest first', async () => {
  const { guest, namesFor } = await door()
  await guest('Zoë Müller', 'Café Über')
  await guest('Anna Mueller-Łoś', 'Example')
  await guest('Bob O’Neil 100%', null)
  expect(await namesFor('muller')).toEqual(['Zoë Müller'])
  // As the page at the door finds them.
  for (const written of ['MÜLLER', 'mueller'])
    expect(await namesFor(written)).toEqual(['Anna Mueller-Łoś', 'Zoë Müller'])
  expect(await namesFor('los')).toEqual(['Anna Mueller-Łoś'])
  expect(await namesFor('cafe zoe')).toEqual(['Zoë Müller'])
  expect(await namesFor('zoe example')).toEqual([])
  expect(await namesFor('ell')).toEqual(['Anna Mueller-Łoś'])
  expect(await namesFor('100%')).toEqual(['Bob O’Neil 100%'])
  expect(await namesFor('%%%')).toEqual([])
})

test('an order is found by its reference, and nobody by e-mail address or ticket code', async () => {
  const { guest, namesFor } = await door()
  const { orderId, code } = await guest('Mary Jackson')
  await guest('Somebody else')
  const { reference } = await row<{ reference: string }>('select reference from public.orders where id = $1', [orderId])
  expect(await namesFor(reference.toLowerCase())).toEqual(['Mary Jackson'])
  expect(await namesFor('hidden@example')).toEqual([])
  expect(await namesFor(code)).toEqual([])
})

test('a person who is found is checked in by attendee_id, and is then shown as such', async () => {
  const { event, send, guest, search } = await door()
  const { attendeeId, code } = await guest('Mary Jackson', 'Langley')
  const { status, body } = await search('jackson')
  expect(status).toBe(200)
  expect(body).toEqual({
    data: [
      {
        object: 'door_attendee',
        id: attendeeId,
        event_id: event.id,
        name: 'Mary Jackson',
        company: 'Langley',
        status: 'active',
        ticket_type: { object: 'ticket_type', id: event.ticketTypeId, name: 'General' },
        checked_in_at: null,
        answers: {},
      },
    ],
    has_more: false,
    next_cursor: null,
  })
  const checkedIn = await send('POST', '/check-ins', { event_id: event.id, attendee_id: attendeeId })
  expect((await search('jackson')).body.data).toEqual([checkedIn.body.data.attendee])
  expect(JSON.stringify([body, checkedIn.body])).not.toMatch(new RegExp(`${code}|hidden@`))
})

test('a search stays within its event and its organisation', async () => {
  const [ours, theirs] = [await door(), await door()]
  const elsewhere = await ours.organisation.event()
  await ours.guest('Mary Jackson', null, elsewhere)
  await theirs.guest('Mary Jackson')
  expect(await ours.namesFor('jackson')).toEqual([])
  for (const eventId of [theirs.event.id, randomUUID()]) {
    expect(problemOf(await ours.send('GET', `/events/${eventId}/door/attendees?search=jackson`))).toEqual([
      404,
      'not_found',
      'event_id',
    ])
  }
})

test('many are found in pages', async () => {
  const { guest, search } = await door()
  for (const i of [1, 2, 3]) await guest(`Guest ${i}`)
  const first = (await search('guest', '&limit=2')).body
  expect(first.data.map(({ name }: { name: string }) => name)).toEqual(['Guest 3', 'Guest 2'])
  expect(first.has_more).toBe(true)
  const second = (await search('guest', `&limit=2&cursor=${first.next_cursor}`)).body
  expect(second).toMatchObject({ data: [{ name: 'Guest 1' }], has_more: false, next_cursor: null })
})
