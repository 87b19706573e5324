// What an organiser adds in their own words to what guests are told.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const messages = async () =>
    (
      await studio.query(
        `select kind, message from public.emails
         where organisation_id = $1 and kind <> 'ticket' and status = 'queued' and not (kind = 'order_confirmation' and message is null)
         order by id`,
        [organisation.id],
      )
    ).rows.map(({ kind, message }) => [kind, message])
  const addGuest = async (email: string) => {
    const { rows } = await studio.query(
      `with o as (insert into public.orders (event_id, name, email) values ($1, 'Guest', $3) returning id)
       insert into public.attendees (order_id, ticket_type_id, name, email) select id, $2, 'Guest', $3 from o returning id, order_id`,
      [event.id, event.ticketTypeId, email],
    )
    return rows[0] as { id: string; order_id: string }
  }
  return { event, messages, addGuest, send: rest(await organisation.key()) }
}

test('a message stands in each e-mail of the call, and the later one in an e-mail that waits', async () => {
  const { event, messages, addGuest, send } = await arrange()
  await addGuest('one@example.com')
  const change = (body: object) => send('PATCH', `/events/${event.id}`, { notify: 'everybody', ...body })
  await change({ name: 'Second', message: '  First words.\n\nMore of them.\n' })
  expect(await messages()).toEqual([['event_changed', 'First words.\n\nMore of them.']])
  await addGuest('two@example.com')
  await change({ name: 'Third' })
  await change({ name: 'Fourth', message: '   ' })
  expect(await messages()).toEqual([
    ['event_changed', 'First words.\n\nMore of them.'],
    ['event_changed', null],
  ])
  await change({ name: 'Fifth', message: 'Later words.' })
  const later = ['event_changed', 'Later words.']
  expect(await messages()).toEqual([later, later])
  await change({ name: 'Sixth', message: 'Not in a dry run.', dry_run: true })
  expect(await messages()).toEqual([later, later])
  await send('POST', `/events/${event.id}/cancel`, { notify: 'everybody', message: 'It is off.' })
  expect((await messages()).filter(([kind]) => kind === 'event_cancelled')).toEqual([
    ['event_cancelled', 'It is off.'],
    ['event_cancelled', 'It is off.'],
  ])
})

test('also of a ticket or an order that is cancelled, and to a buyer whose order is confirmed anew', async () => {
  const { event, messages, addGuest, send } = await arrange()
  const [one, two] = [await addGuest('one@example.com'), await addGuest('two@example.com')]
  await send('POST', `/attendees/${one.id}/cancel`, { notify: 'everybody', message: 'As you asked.' })
  await send('POST', `/orders/${two.order_id}/cancel`, { notify: 'everybody', message: 'Double booking.' })
  const { orderId } = await event.payer()
  const { rows } = await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select order_id, ticket_type_id, 'Other', 'other@example.com' from public.attendees where order_id = $1 returning id`,
    [orderId],
  )
  await send('POST', `/attendees/${rows[0].id}/cancel`, { notify: 'everybody', message: 'One less.' })
  expect((await messages()).sort()).toEqual([
    ['order_confirmation', 'One less.'],
    ['ticket_cancelled', 'As you asked.'],
    ['ticket_cancelled', 'Double booking.'],
    ['ticket_cancelled', 'One less.'],
  ])
})

test('one that nobody would read, or that is too long, is refused', async () => {
  const { event, addGuest, send } = await arrange()
  const { id } = await addGuest('one@example.com')
  for (const path of [`/events/${event.id}/cancel`, `/attendees/${id}/cancel`]) {
    for (const body of [
      { message: 'To whom?' },
      { message: 'To whom?', notify: 'nobody' },
      { message: 'x'.repeat(1_001), notify: 'mailed' },
    ]) {
      const { status, body: answer } = await send('POST', path, body)
      expect([status, answer.error.param]).toEqual([422, 'message'])
    }
  }
  expect((await send('PATCH', `/events/${event.id}`, { name: 'New', message: 'To whom?' })).body.error.param).toBe(
    'message',
  )
  expect((await send('POST', `/attendees/${id}/cancel`, { message: ' ' })).status).toBe(200)
})
