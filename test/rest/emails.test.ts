// What became of e-mails, and one again, over REST: as an organiser sees and does it in the table.

import { expect, test } from 'vitest'
import type { Scope } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf, rest } from '../support/rest.ts'

type Email = { id: string; kind: string; to: string | null; status: string }

async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const priced = await event.ticketType({ price: 4900 })
  const register = async (name: string, more: object = {}) => {
    const email = `${name.toLowerCase()}@example.com`
    const guest = { ticket_type_id: event.ticketTypeId, name, email, ...more }
    const { data } = (await send('POST', `/events/${event.id}/registrations`, guest)).body
    return { orderId: data.id as string, attendeeId: data.attendees[0].id as string }
  }
  const list = async (query = '') => (await send('GET', `/emails${query}`)).body.data as Email[]
  const brief = async (query = '') => (await list(query)).map(({ kind, to, status }) => `${kind} ${to} ${status}`)
  const settle = (id: string | undefined, set: string) =>
    studio.query(`update public.emails set ${set} where id = $1`, [id])
  const resend = (id: string | undefined) => send('POST', `/emails/${id}/resend`)
  return {
    organisation,
    event,
    send,
    list,
    brief,
    settle,
    resend,
    ada: await register('Ada'),
    bob: await register('Bob', { ticket_type_id: priced, payment_method: 'invoice' }),
  }
}

test('e-mails are listed newest first by any of the filters, with envelope and status and without content', async () => {
  const { send, list, brief, settle, ada, bob } = await arrange()
  expect(await brief()).toEqual(['order_confirmation null queued', 'ticket ada@example.com queued'])
  await send('POST', `/orders/${bob.orderId}/payments`, { amount: 4900 })
  const all = ['ticket bob@example.com queued', 'payment_received null queued', 'order_confirmation null queued']
  expect((await brief(`?order_id=${bob.orderId}`)).sort()).toEqual(all.toSorted())
  expect(await brief(`?attendee_id=${bob.attendeeId}`)).toEqual([all[0]])
  expect(await brief(`?attendee_id=${bob.attendeeId}&order_id=${ada.orderId}`)).toEqual([])
  expect(await brief('?kind=order_confirmation')).toEqual([all[2]])
  const [ticket] = await list(`?attendee_id=${ada.attendeeId}`)
  await settle(
    ticket?.id,
    "status = 'bounced', sent_to = 'old@example.com', sent_at = now(), next_attempt_at = null, attempts = 1, last_error = '550'",
  )
  expect(await list('?status=bounced')).toEqual([
    {
      ...{ object: 'email', id: ticket?.id, kind: 'ticket', status: 'bounced', to: 'old@example.com', error: '550' },
      ...{ order_id: ada.orderId, attendee_id: ada.attendeeId, waiting_list_entry_id: null, attempts: 1 },
      ...{ next_attempt_at: null, sent_at: expect.any(String) },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    },
  ])
  const first = (await send('GET', '/emails?limit=3')).body
  const rest = (await send('GET', `/emails?limit=3&cursor=${first.next_cursor}`)).body
  expect([first.data.length, rest.data.length, rest.has_more]).toEqual([3, 1, false])
  expect([...first.data, ...rest.data]).toEqual(await list())
})

test('an e-mail that came to nothing is sent again, a ticket too, and one in flight or that waits is left as it is', async () => {
  const { list, settle, resend, bob, ada } = await arrange()
  const [confirmation] = await list(`?order_id=${bob.orderId}`)
  const [ticket] = await list(`?attendee_id=${ada.attendeeId}`)
  await settle(confirmation?.id, "status = 'failed', next_attempt_at = null, attempts = 13, last_error = '550'")
  const again = await resend(confirmation?.id)
  expect([again.status, again.body.data]).toEqual([
    200,
    expect.objectContaining({ id: confirmation?.id, status: 'queued', attempts: 0, error: null }),
  ])
  await settle(confirmation?.id, "claim = gen_random_uuid(), claimed_until = now() + interval '1 minute', attempts = 1")
  expect((await resend(confirmation?.id)).body.data).toMatchObject({ status: 'queued', attempts: 1 })

  await settle(ticket?.id, "status = 'cancelled'")
  const { body } = await resend(ticket?.id)
  expect(body.data).toMatchObject({ kind: 'ticket', status: 'queued', to: 'ada@example.com' })
  expect(body.data.id).not.toBe(ticket?.id)
  expect((await resend(ticket?.id)).body.data).toEqual(body.data)
})

const sent = "status = 'sent', sent_to = 'bob@example.com', sent_at = now(), next_attempt_at = null"

test('the address of a buyer is for keys that read orders', async () => {
  const { organisation, list, settle, bob } = await arrange()
  const [confirmation] = await list(`?order_id=${bob.orderId}`)
  await settle(confirmation?.id, "sent_to = 'buyer@example.com', last_error = 'buyer@example.com is full'")
  const shownTo = async (...scopes: Scope[]) =>
    (await rest(await organisation.key(...scopes))('GET', `/emails?order_id=${bob.orderId}`)).body.data
  expect(await shownTo('attendees:read')).toMatchObject([{ to: null, error: null }])
  expect(await shownTo('attendees:read', 'orders:read')).toMatchObject([
    { to: 'buyer@example.com', error: 'buyer@example.com is full' },
  ])
})

test('a reminder is not sent again, because its own operation bounds how often', async () => {
  const { send, list, settle, resend, bob } = await arrange()
  await send('POST', `/orders/${bob.orderId}/payment-reminder`)
  const [reminder] = await list('?kind=payment_reminder')
  await settle(reminder?.id, sent)
  expect((await resend(reminder?.id)).body.error).toMatchObject({
    code: 'email_obsolete',
    hint: expect.stringContaining('send_payment_reminder'),
  })
})

test('what an e-mail says no longer is not sent again', async () => {
  const { send, list, settle, resend, bob } = await arrange()
  const [confirmation] = await list(`?order_id=${bob.orderId}`)
  await settle(confirmation?.id, sent)
  expect((await resend(confirmation?.id)).status).toBe(200)
  await settle(confirmation?.id, sent)
  await send('POST', `/orders/${bob.orderId}/cancel`)
  const { status, body } = await resend(confirmation?.id)
  expect(problemOf({ status, body })).toEqual([409, 'email_obsolete', 'email_id'])
  expect(await list('?status=sent')).toHaveLength(1)
})
