// What organisers call or set in Studio, and no test of a resource does: see docs/guides/studio.md.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addEndpoint, listenIn } from '../support/outbox.ts'
import { addOrder, edit } from '../support/studio.ts'

test('accept_offer registers the person who was offered a place, and e-mails the ticket', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ quantity: 1 })
  const { attendeeId } = await event.guest()
  const { id } = await row<{ id: string }>(
    `insert into public.waiting_list_entries (event_id, ticket_type_id, name, email)
     values ($1, $2, 'Ida', 'ida@example.com') returning id`,
    [event.id, event.ticketTypeId],
  )
  await edit('attendees', attendeeId, "status = 'cancelled'")
  const told = await listenIn(organisation.id)
  const { reference } = await row<{ reference: string }>('select public.accept_offer($1) as reference', [id])
  expect((await told()).map(({ type }) => type)).toEqual([
    'order.completed',
    'order.created',
    'waiting_list_entry.accepted',
  ])
  const { rows } = await studio.query(
    `select a.name, e.kind from public.orders o join public.attendees a on a.order_id = o.id
     join public.emails e on e.attendee_id = a.id where o.reference = $1`,
    [reference],
  )
  expect(rows).toEqual([{ name: 'Ida', kind: 'ticket' }])
})

test('rotate_webhook_secret shows the new secret', async () => {
  const endpoint = await addEndpoint((await createOrganisation()).id)
  const { answer } = await row<{ answer: { secret: string } }>('select public.rotate_webhook_secret($1) as answer', [
    endpoint,
  ])
  const { rows } = await studio.query(
    'select secret from private.webhook_secrets where webhook_endpoint_id = $1 and expires_at is null',
    [endpoint],
  )
  expect(rows).toEqual([{ secret: answer.secret }])
})

test('send_payment_reminders says whom it reminds, and who was reminded of late', async () => {
  const event = await (await createOrganisation()).event()
  const [one] = [await addOrder(event, { subtotal: 3000 }), await addOrder(event, { subtotal: 3000 })]
  await studio.query('select public.send_payment_reminder($1)', [one.id])
  const { rows } = await studio.query('select result from public.send_payment_reminders($1) order by result', [
    event.id,
  ])
  expect(rows).toEqual([{ result: 'reminded' }, { result: 'reminded_recently' }])
})

test('an e-mail that was sent is sent once more when its status is set to queued', async () => {
  const event = await (await createOrganisation()).event()
  const { id } = await addOrder(event, { subtotal: 3000 })
  const set = (status: string, next: string) =>
    row<{ status: string; due: boolean }>(
      `update public.emails set status = '${status}' ${next} where order_id = $1 and kind = 'order_confirmation'
       returning status, next_attempt_at <= now() as due`,
      [id],
    )
  await set('sent', ', next_attempt_at = null, attempts = 1, sent_at = now()')
  expect(await set('queued', '')).toEqual({ status: 'queued', due: true })
})
