// The organiser's own words on the pages of guests, from the API to the page.

import { expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { guestUrl } from '../support/guest-page.ts'
import { orderUrl } from '../support/order-links.ts'
import { createOrganiser } from '../support/organiser.ts'

async function arrange() {
  const { event, send } = await createOrganiser()
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Ada Lovelace', email: 'ada@example.com' }
  const { data } = (await send('POST', `/events/${event.id}/registrations`, guest)).body
  const [{ id, ticket_url }] = data.attendees
  const urls = [ticket_url, await guestUrl(id), await orderUrl(data.id, inject('apiUrl'))]
  const pages = (language = 'en') =>
    Promise.all(urls.map(async (url) => (await fetch(url, { headers: { 'Accept-Language': language } })).text()))
  const set = async (guest_notes: unknown) => (await send('PATCH', `/events/${event.id}`, { guest_notes })).body
  return { event, send, id, pages, set }
}

test('notes stand on each page of a guest, as text and in the language of the guest page', async () => {
  const { send, id, pages, set } = await arrange()
  expect((await pages()).join()).not.toContain('class="notes"')
  const notes = { en: 'Bring **ID**.\n\n<script>alert(1)</script>', fr: 'Une **lampe**.' }
  expect((await set(notes)).data.guest_notes).toEqual(notes)
  for (const page of await pages()) {
    expect(page).toMatch(/<section class="notes" lang="en">\s*<h2>Message from test-/)
    expect(page).toContain('<p dir="auto">Bring <strong>ID</strong>.</p>')
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
  }
  const [ticket, guest] = await pages('fr')
  expect(ticket).toContain('Bring <strong>ID</strong>')
  expect(guest).toMatch(/lang="fr">.*Une <strong>lampe<\/strong>/s)
  await send('POST', `/attendees/${id}/cancel`)
  expect((await pages()).join()).not.toContain('class="notes"')
})

test('a change replaces them all, null empties them, and a copy of the event has them', async () => {
  const { event, send, set } = await arrange()
  await set({ en: 'Bring ID.', de: 'Ausweis mitbringen.' })
  expect((await set({ de: 'Ausweis!' })).data.guest_notes).toEqual({ de: 'Ausweis!' })
  const plan = async (body: object) => (await send('POST', '/event-plans', body)).body.data
  const changed = await plan({ event: event.id, changes: { guest_notes: { en: 'Hello' } } })
  expect(changed.steps[0].changes).toEqual({ guest_notes: [{ de: 'Ausweis!' }, { en: 'Hello' }] })
  const { plan_id } = await plan({ copy_of: event.id, move: 'P7D', changes: { name: 'Copy' } })
  const copy = await plan({ plan_id })
  expect((await send('GET', `/events/${copy.event.id}`)).body.data.guest_notes).toEqual({ de: 'Ausweis!' })
  expect((await set(null)).data.guest_notes).toEqual({})
})

test.each([
  ['another language', { it: 'Ciao' }],
  ['nothing seen', { en: ' \n\u200b' }],
  ['too long', { en: 'x'.repeat(5001) }],
  ['no text', { en: 5 }],
  ['no object', 'Bring ID.'],
])('of %s they are refused, by REST and in SQL', async (_what, notes) => {
  const { event, set } = await arrange()
  const { error } = await set(notes)
  expect([error.code, error.param.split('.')[0]]).toEqual(['validation_failed', 'guest_notes'])
  const typed = studio.query('update public.events set guest_notes = $2 where id = $1', [
    event.id,
    JSON.stringify(notes),
  ])
  await expect(typed).rejects.toMatchObject({
    message: expect.stringContaining('guest_notes are texts of 1 to 5000 characters'),
  })
})
