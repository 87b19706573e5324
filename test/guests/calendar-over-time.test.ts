// What the calendar of a guest shows after everything that one address is sent of an event, as the database hands it to the courier.

import { setTimeout } from 'node:timers/promises'
import ICAL from 'ical.js'
import { expect, test } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import type { PendingEmail } from '../../src/guests/pending.ts'
import { sender } from '../courier/pending-ticket.ts'
import { row } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'

/** Keeps of an entry what is newest by RFC 5546 (2.1.5): the highest sequence, and of one sequence the latest stamp. */
function calendar() {
  let kept: { sequence: number; stamp: string; shows: string } | undefined
  return {
    take(file: string) {
      const component = new ICAL.Component(ICAL.parse(file))
      const entry = component.getFirstSubcomponent('vevent') as ICAL.Component
      const { sequence, startDate } = new ICAL.Event(entry)
      const stamp = String(entry.getFirstPropertyValue('dtstamp'))
      if (kept && (sequence < kept.sequence || (sequence === kept.sequence && stamp < kept.stamp))) return
      const isCancelled = component.getFirstPropertyValue('method') === 'CANCEL'
      kept = { sequence, stamp, shows: isCancelled ? 'nothing' : startDate.toJSDate().toISOString() }
    },
    shows: () => kept?.shows,
    sequence: () => kept?.sequence ?? 0,
  }
}

async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const entry = calendar()
  const register = async (more: object = {}) => {
    const guest = { ticket_type_id: event.ticketTypeId, name: 'Ada', email: 'ada@example.com', ...more }
    const { body } = await send('POST', `/events/${event.id}/registrations`, guest)
    return body.data as { id: string; attendees: [{ id: string; ticket_url: string }] }
  }
  /** The latest e-mail of a kind arrives; whether it has a calendar file. */
  const receive = async (kind: PendingEmail['kind']): Promise<boolean> => {
    const { pending } = await row<{ pending: PendingEmail }>(
      `select private.pending_email_json(e) as pending from public.emails e
       where e.organisation_id = $1 and e.kind = $2 order by e.id desc limit 1`,
      [organisation.id, kind],
    )
    // As it is claimed.
    const email = { ...pending, claim: pending.id, ...('others' in pending && { others: pending.others ?? [] }) }
    const { attachments } = await composeEmail(email as PendingEmail, sender)
    const file = attachments.find(({ filename }) => filename.endsWith('.ics'))
    if (file) entry.take(file.content.toString())
    return file !== undefined
  }
  return { event, send, entry, register, receive }
}

test('whoever cancelled and registers again has the event in the calendar again', async () => {
  const { event, send, entry, register, receive } = await arrange()
  const [before, moved] = ['2030-05-01T17:00:00.000Z', '2030-05-02T18:00:00.000Z']
  const move = (starts_at: string) =>
    send('PATCH', `/events/${event.id}`, { starts_at, ends_at: '2030-05-03T20:00:00.000Z', notify: 'mailed' })
  const cancel = (id: string) => send('POST', `/attendees/${id}/cancel`, { notify: 'everybody' })
  expect((await move(before)).body).toMatchObject({ data: { starts_at: before } })

  const first = await register()
  await receive('ticket')
  expect(entry.shows()).toBe(before)
  await move(moved)
  await receive('event_changed')
  expect(entry.shows()).toBe(moved)
  await cancel(first.attendees[0].id)
  await receive('ticket_cancelled')
  expect(entry.shows()).toBe('nothing')
  const { version } = (await send('GET', `/events/${event.id}`)).body.data
  expect(entry.sequence(), 'more than the sequences of before, which were versions').toBeGreaterThan(version + 1000)

  const again = await register()
  await receive('ticket')
  expect(entry.shows()).toBe(moved)

  const another = await register()
  await receive('ticket')
  await cancel(another.attendees[0].id)
  expect(await receive('ticket_cancelled'), 'the entry is that of the ticket which stands').toBe(false)
  expect(entry.shows()).toBe(moved)

  await cancel(again.attendees[0].id)
  await receive('ticket_cancelled')
  expect(entry.shows()).toBe('nothing')
  const last = await register()
  const page = await fetch(`${last.attendees[0].ticket_url}/ticket.ics`)
  entry.take(await page.text())
  expect(entry.shows(), 'by the file of the ticket page').toBe(moved)
})

test('a ticket that is older than the cancellation is put into the calendar of its new address', async () => {
  const { send, entry, register, receive } = await arrange()
  const mistyped = await register({ email: 'aba@example.com' })
  const ticket = await register()
  await receive('ticket')
  await setTimeout(1100)
  await send('POST', `/attendees/${ticket.attendees[0].id}/cancel`, { notify: 'everybody' })
  await receive('ticket_cancelled')
  expect(entry.shows()).toBe('nothing')
  const path = `/attendees/${mistyped.attendees[0].id}`
  await send('PATCH', path, { email: 'ada@example.com' })
  await send('POST', `${path}/ticket-email`)
  await receive('ticket')
  expect(entry.shows()).not.toBe('nothing')
})
