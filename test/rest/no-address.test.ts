// Guests without an address: theirs is under .invalid, which takes no mail (RFC 2606). Their tickets are not e-mailed until they have one.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'

const nobody = 'kid@door.invalid'

async function arrange() {
  const { event, send } = await createOrganiser()
  const register = async (email: string, more: object = {}) => {
    const guest = { ticket_type_id: event.ticketTypeId, name: 'Kid', email, ...more }
    const { body } = await send('POST', `/events/${event.id}/registrations`, guest)
    return { orderId: body.data.id as string, id: body.data.attendees[0].id as string }
  }
  const change = async (id: string, changes: object) => (await send('PATCH', `/attendees/${id}`, changes)).body
  const state = async (id: string) => (await send('GET', `/attendees/${id}`)).body.data.ticket_email.status
  /** The tickets that are on their way to an attendee, or were. */
  const tickets = async (id: string) =>
    (
      await studio.query("select status from public.emails where attendee_id = $1 and kind = 'ticket' order by id", [
        id,
      ])
    ).rows.map(({ status }) => status)
  return { event, send, register, change, state, tickets }
}

test('a ticket for an address under .invalid is not e-mailed, nor when it is reissued', async () => {
  const { register, change, state, tickets } = await arrange()
  const { id } = await register('Kid@Door.INVALID')
  expect(await state(id)).toBe('not_requested')
  await change(id, { reissue_ticket: true })
  expect([await state(id), await tickets(id)]).toEqual(['not_requested', []])
  // A domain that only ends so, in its last part or before, takes mail.
  for (const email of ['a@notinvalid.example', 'a@x.invalid.example'])
    expect(await state((await register(email)).id)).toBe('queued')
})

test('whose address is corrected to one that takes mail is sent the ticket', async () => {
  const { event, send, register, change, state, tickets } = await arrange()
  const { id } = await register(nobody)
  await change(id, { name: 'Still a kid', email: 'other@door.invalid' })
  expect(await state(id)).toBe('not_requested')
  await change(id, { email: 'parent@example.com' })
  expect([await state(id), await tickets(id)]).toEqual(['queued', ['queued']])

  // Once it is paid.
  const price = await event.ticketType({ price: 4900 })
  const unpaid = await register(nobody, { ticket_type_id: price, payment_method: 'invoice' })
  await change(unpaid.id, { email: 'parent@example.com' })
  expect(await state(unpaid.id)).toBe('waiting')
  await send('POST', `/orders/${unpaid.orderId}/payments`, { amount: 4900 })
  expect([await state(unpaid.id), await tickets(unpaid.id)]).toEqual(['queued', ['queued']])

  // Not of an order without e-mails, nor of a ticket that is cancelled.
  const silent = await register(nobody, { send_email: false })
  const gone = await register(nobody)
  await send('POST', `/attendees/${gone.id}/cancel`)
  for (const { id } of [silent, gone]) {
    await change(id, { email: 'parent@example.com' })
    expect([await state(id), await tickets(id)]).toEqual(['not_requested', []])
  }
})

test('whose address is taken away is not sent the ticket that waits', async () => {
  const { register, change, state, tickets } = await arrange()
  const { id } = await register('parent@example.com')
  await change(id, { email: nobody })
  expect([await state(id), await tickets(id)]).toEqual(['not_requested', ['cancelled']])
})

test('resending a ticket that has no address is refused, and says what to do', async () => {
  const { send, register, change } = await arrange()
  const { id } = await register(nobody)
  const { status, body } = await send('POST', `/attendees/${id}/ticket-email`)
  expect([status, body.error]).toEqual([
    409,
    expect.objectContaining({
      code: 'no_address',
      param: 'email',
      hint: 'Correct the address. If that does not send the ticket, queue it again.',
    }),
  ])
  await change(id, { email: 'parent@example.com' })
  expect((await send('POST', `/attendees/${id}/ticket-email`)).status).toBe(200)
})
