// What the buyer of an order is told when it is cancelled: that it is not to be paid, and what is returned. Once, where they are guests as
// well, and counted as everybody else.

import { expect, test } from 'vitest'
import { asPurge, studio } from '../../support/database.ts'
import { edit } from '../../support/studio.ts'
import { emailFixture, reasons } from './email-fixture.ts'

async function arrange() {
  const fixture = await emailFixture()
  const { organisation, event, send } = fixture
  const ticketTypeId = await event.ticketType({ price: 5000 })
  /** An order at 50.00 for each guest, to be paid by the buyer. */
  const order = async (buyer: string, guests: string[], more: Record<string, unknown> = {}) => {
    const { body } = await send('POST', `/events/${event.id}/registrations`, {
      ...{ name: 'Desk', email: buyer, payment_method: 'invoice', ticket_type_id: ticketTypeId },
      attendees: guests.map((email) => ({ name: email.split('@')[0], email })),
      ...more,
    })
    const { id, reference, attendees } = body.data
    return { id: id as string, reference, attendees: attendees.map(({ id }: { id: string }) => id) as string[] }
  }
  const pay = (id: string, amount: number) => send('POST', `/orders/${id}/payments`, { amount })
  const cancel = async (path: string, body: object) => (await send('POST', `${path}/cancel`, body)).body.effect
  /** Those queued since the last look, as `kind address`, with what they say of the money. */
  const told = async () => {
    const { rows } = await studio.query(
      `with gone as (delete from public.emails e using ${asPurge} where organisation_id = $1 returning e.*)
       select e.kind || ' ' || coalesce(a.email, o.email, w.email) as who, private.pending_email_json(e) -> 'money' as money
       from gone e
       left join public.attendees a on a.id = e.attendee_id
       left join public.orders o on o.id = e.order_id
       left join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
       where e.kind <> 'ticket' order by 1`,
      [organisation.id],
    )
    return rows.map(({ who, money }) => (money ? [who, money.amount_unpaid, money.amount_refundable] : who))
  }
  return { ...fixture, ticketTypeId, order, pay, cancel, told }
}

const guests = ['ada@example.com', 'bob@example.com']

test('a buyer who is no guest is told that the order is cancelled, and what becomes of the money', async () => {
  const { order, pay, cancel, told } = await arrange()
  const tell = { notify: 'mailed' }
  const unpaid = await order('desk@example.com', guests)
  const partly = await order('desk@example.com', guests)
  await pay(partly.id, 3000)
  const paid = await order('desk@example.com', guests)
  await pay(paid.id, 10_000)
  await told()

  const dry = await cancel(`/orders/${unpaid.id}`, { ...tell, dry_run: true })
  const effect = await cancel(`/orders/${unpaid.id}`, tell)
  expect(effect).toMatchObject({ attendees: 2, emails: 3, told: 3, not_told: [] })
  expect({ ...dry, dry_run: false }).toEqual(effect)
  const guestsAreTold = guests.map((email) => `ticket_cancelled ${email}`)
  expect(await told()).toEqual([['order_cancelled desk@example.com', 10_000, 0], ...guestsAreTold])
  await cancel(`/orders/${partly.id}`, tell)
  expect(await told()).toEqual([['order_cancelled desk@example.com', 7000, 3000], ...guestsAreTold])
  await cancel(`/orders/${paid.id}`, tell)
  expect(await told()).toEqual([['order_cancelled desk@example.com', 0, 10_000], ...guestsAreTold])
})

test('a buyer who is a guest learns of the money with the ticket, and no other guest does', async () => {
  const { order, pay, cancel, told } = await arrange()
  const both = await order('Ada@example.com', guests)
  await pay(both.id, 3000)
  await told()
  expect(await cancel(`/orders/${both.id}`, { notify: 'mailed' })).toMatchObject({ emails: 2, told: 2, not_told: [] })
  expect(await told()).toEqual([['ticket_cancelled ada@example.com', 7000, 3000], 'ticket_cancelled bob@example.com'])
})

test('the last ticket that is cancelled cancels the order, whose buyer is told with its holder', async () => {
  const { order, cancel, told } = await arrange()
  const { attendees } = await order('desk@example.com', ['ada@example.com'])
  await told()
  const effect = await cancel(`/attendees/${attendees[0]}`, { notify: 'mailed' })
  expect(effect).toMatchObject({ orders: 1, attendees: 1, emails: 2, told: 2, not_told: [] })
  expect(await told()).toEqual([['order_cancelled desk@example.com', 5000, 0], 'ticket_cancelled ada@example.com'])
})

test('nobody is told who was asked for no money, who has no address or whose order is not e-mailed', async () => {
  const { event, send, order, cancel, told } = await arrange()
  const { body } = await send('POST', `/events/${event.id}/registrations`, {
    ...{ name: 'Desk', email: 'desk@example.com', ticket_type_id: event.ticketTypeId },
    attendees: [{ name: 'Ada', email: 'ada@example.com' }],
  })
  const [nowhere, silent, erased] = [
    await order('desk@door.invalid', guests),
    await order('desk@example.com', guests, { send_email: false }),
    await order('gone@example.com', guests),
  ]
  await send('POST', '/people/erase', { email: 'gone@example.com' })
  await told()
  expect(await cancel(`/orders/${body.data.id}`, { notify: 'everybody' })).toMatchObject({ told: 1, not_told: [] })
  const without = await cancel(`/orders/${nowhere.id}`, { notify: 'everybody' })
  expect([without.told, reasons(without)]).toEqual([2, { no_address: 1 }])
  const forgotten = await cancel(`/orders/${erased.id}`, { notify: 'everybody' })
  expect([forgotten.told, reasons(forgotten)]).toEqual([2, { erased: 1 }])
  await told()
  const dry = await cancel(`/orders/${silent.id}`, { notify: 'mailed', dry_run: true })
  expect([dry.told, reasons(dry)]).toEqual([0, { send_email_false: 3 }])
  expect(await cancel(`/orders/${silent.id}`, { notify: 'everybody' })).toMatchObject({ told: 3, not_told: [] })
  expect(await told()).toEqual([
    ['order_cancelled desk@example.com', 10_000, 0],
    ...guests.map((email) => `ticket_cancelled ${email}`),
  ])
})

test('a cancelled event is told to its buyers, each order, and to whoever is a guest as well with the event', async () => {
  const { event, send, order, pay, cancel, told } = await arrange()
  const first = await order('desk@example.com', ['ada@example.com'])
  await order('desk@example.com', ['bob@example.com'])
  await pay(first.id, 5000)
  // Ada pays for Eve, and has one e-mail; Desk has one for each order.
  await order('ada@example.com', ['eve@example.com'])
  await send('POST', `/events/${event.id}/registrations`, {
    ...{ ticket_type_id: event.ticketTypeId, name: 'Zoe', email: 'zoe@example.com' },
  })
  await told()
  const tell = { notify: 'everybody' }
  const dry = await cancel(`/events/${event.id}`, { ...tell, dry_run: true })
  const effect = await cancel(`/events/${event.id}`, tell)
  expect(effect).toMatchObject({ attendees: 4, emails: 6, told: 6, not_told: [] })
  expect({ ...dry, dry_run: false }).toEqual(effect)
  expect(await told()).toEqual([
    ['event_cancelled ada@example.com', 5000, 0],
    'event_cancelled bob@example.com',
    'event_cancelled eve@example.com',
    'event_cancelled zoe@example.com',
    ['order_cancelled desk@example.com', 0, 5000],
    ['order_cancelled desk@example.com', 5000, 0],
  ])
})

test('a buyer who waits for a place as well is told of the order, and once', async () => {
  const { event, send, order, cancel, told } = await arrange()
  const ticket_type_id = await event.ticketType({ quantity: 1 })
  await send('POST', `/events/${event.id}/registrations`, { ticket_type_id, name: 'Zoe', email: 'zoe@example.com' })
  await send('POST', `/events/${event.id}/waiting-list`, { ticket_type_id, name: 'Desk', email: 'desk@example.com' })
  await order('desk@example.com', ['ada@example.com'])
  await told()
  expect(await cancel(`/events/${event.id}`, { notify: 'everybody' })).toMatchObject({ emails: 3, told: 4 })
  expect(await told()).toEqual([
    'event_cancelled ada@example.com',
    'event_cancelled zoe@example.com',
    ['order_cancelled desk@example.com', 5000, 0],
  ])
})

test('of a cancelled event the mailed buyers are told first, and everybody after tells the others of theirs', async () => {
  const { event, order, cancel, told } = await arrange()
  await order('desk@example.com', ['ada@example.com'])
  await order('desk@example.com', ['bob@example.com'], { send_email: false })
  await told()
  const mailed = await cancel(`/events/${event.id}`, { notify: 'mailed' })
  expect([mailed.emails, mailed.told, reasons(mailed)]).toEqual([2, 3, { send_email_false: 1 }])
  expect(await told()).toEqual(['event_cancelled ada@example.com', ['order_cancelled desk@example.com', 5000, 0]])
  const everybody = await studio.query("select public.notify_attendees($1, 'everybody') as emails", [event.id])
  expect(everybody.rows).toEqual([{ emails: 2 }])
  expect(await told()).toEqual(['event_cancelled bob@example.com', ['order_cancelled desk@example.com', 5000, 0]])
})

test('the lines of a cancelled order are what was cancelled with it, as its total', async () => {
  const { organisation, order, cancel } = await arrange()
  const { id, attendees } = await order('desk@example.com', guests)
  await cancel(`/attendees/${attendees[0]}`, {})
  await cancel(`/orders/${id}`, { notify: 'mailed' })
  const { rows } = await studio.query(
    `select private.pending_email_json(e) #>> '{order,total}' as total, private.pending_email_json(e) -> 'lines' as lines
     from public.emails e where e.organisation_id = $1 and e.kind = 'order_cancelled'`,
    [organisation.id],
  )
  expect(rows).toMatchObject([{ total: '5000', lines: [{ quantity: 1, total: 5000 }] }])
})

test('where the order stays and was not paid, the buyer is told anew what it comes to, guest or not', async () => {
  const { organisation, order, pay, cancel, told } = await arrange()
  const amounts = async () =>
    (
      await studio.query(
        `select (private.pending_email_json(e) #>> '{order,amount_due}')::int as due from public.emails e
         where e.organisation_id = $1 and e.kind = 'order_confirmation' order by e.id`,
        [organisation.id],
      )
    ).rows.map(({ due }) => due)
  const tell = { notify: 'mailed' }
  const others = await order('desk@example.com', guests)
  const own = await order('ada@example.com', guests)
  await told()
  const effect = await cancel(`/attendees/${others.attendees[0]}`, tell)
  expect(effect).toMatchObject({ attendees: 1, emails: 2, told: 2, not_told: [] })
  expect(await amounts()).toEqual([5000])
  expect(await told()).toEqual(['order_confirmation desk@example.com', 'ticket_cancelled ada@example.com'])

  const dry = await cancel(`/attendees/${own.attendees[0]}`, { ...tell, dry_run: true })
  expect(dry).toMatchObject({ emails: 2, told: 1, not_told: [] })
  expect({ ...dry, dry_run: false }).toEqual(await cancel(`/attendees/${own.attendees[0]}`, tell))
  expect(await told()).toEqual(['order_confirmation ada@example.com', 'ticket_cancelled ada@example.com'])

  // What was paid completes it now.
  const partly = await order('desk@example.com', guests)
  await pay(partly.id, 5000)
  await told()
  await cancel(`/attendees/${partly.attendees[0]}`, tell)
  expect(await amounts()).toEqual([0])
  // Of several that are cancelled at once one e-mail is enough.
  const many = await order('many@example.com', [...guests, 'eve@example.com'])
  await told()
  for (const id of many.attendees.slice(1)) expect(await cancel(`/attendees/${id}`, tell)).toMatchObject({ emails: 2 })
  expect(await amounts()).toEqual([5000])
})

test('whoever has paid, or is not e-mailed, is not asked to pay anew', async () => {
  const { event, order, pay, cancel, told, send } = await arrange()
  const paid = await order('desk@example.com', guests)
  await pay(paid.id, 10_000)
  const silent = await order('desk@example.com', guests, { send_email: false })
  const untold = await order('desk@example.com', guests)
  await studio.query('update public.orders set email = $2 where id = $1', [silent.id, 'silent@example.com'])
  const { body } = await send('POST', `/events/${event.id}/registrations`, {
    ...{ name: 'Desk', email: 'desk@example.com', ticket_type_id: event.ticketTypeId },
    attendees: guests.map((email) => ({ name: 'Guest', email })),
  })
  await told()
  await cancel(`/attendees/${paid.attendees[0]}`, { notify: 'everybody' })
  await cancel(`/attendees/${body.data.attendees[0].id}`, { notify: 'everybody' })
  await cancel(`/attendees/${untold.attendees[0]}`, {})
  const effect = await cancel(`/attendees/${silent.attendees[0]}`, { notify: 'mailed' })
  expect([effect.told, reasons(effect)]).toEqual([0, { send_email_false: 2 }])
  expect(await told()).toEqual(['ticket_cancelled ada@example.com', 'ticket_cancelled ada@example.com'])
  expect(await cancel(`/attendees/${silent.attendees[1]}`, { notify: 'everybody' })).toMatchObject({ told: 2 })
})

test('in Studio the holders of cancelled tickets and the buyer are told when somebody asks, each once', async () => {
  const { organisation, order, told } = await arrange()
  const notify = async (id: string, whom = 'mailed') =>
    (await studio.query('select public.notify_cancelled($1, $2) as emails', [id, whom])).rows[0].emails
  const whoIsTold = async () =>
    (
      await studio.query(
        `select e.kind || ' ' || coalesce(a.email, o.email) as who from public.emails e
         left join public.attendees a on a.id = e.attendee_id left join public.orders o on o.id = e.order_id
         where e.organisation_id = $1 order by e.id`,
        [organisation.id],
      )
    ).rows.map(({ who }) => who)
  const { id, attendees } = await order('desk@example.com', ['ada@example.com', 'ada@example.com', 'bob@example.com'])
  await told()
  expect(await notify(id)).toBe(0)
  await edit('attendees', attendees[0] ?? '', "status = 'cancelled'")
  expect([await notify(id, 'nobody'), await notify(id), await notify(id)]).toEqual([0, 2, 0])
  expect(await whoIsTold()).toEqual(['ticket_cancelled ada@example.com', 'order_confirmation desk@example.com'])

  // Ada knows of one ticket, not of the other; Bob's e-mail comes back, and he is told again.
  await edit('orders', id, "status = 'cancelled'")
  expect([await notify(id), await notify(id)]).toEqual([3, 0])
  const later = ['ticket_cancelled ada@example.com', 'ticket_cancelled bob@example.com']
  expect((await whoIsTold()).slice(2)).toEqual([...later, 'order_cancelled desk@example.com'])
  await studio.query(
    "update public.emails set status = 'bounced', next_attempt_at = null where attendee_id = $1 and kind = 'ticket_cancelled'",
    [attendees[2]],
  )
  expect([await notify(id), await notify(id)]).toEqual([1, 0])

  // Tickets that were cancelled one after another are told whole.
  const apart = await order('ada@example.com', ['ada@example.com', 'ada@example.com'])
  await told()
  for (const attendee of apart.attendees) await edit('attendees', attendee, "status = 'cancelled'")
  expect([await notify(apart.id), await notify(apart.id)]).toEqual([2, 0])
  const money = ['ticket_cancelled ada@example.com', 5000, 0]
  expect(await told()).toEqual([money, money])
})

test('a holder who cannot be told makes no second confirmation of the order', async () => {
  const { order, told, sent } = await arrange()
  const { id, attendees } = await order('desk@example.com', ['kid@door.invalid', 'bob@example.com'])
  await told()
  await studio.query("update public.attendees set status = 'cancelled' where id = $1", [attendees[0]])
  const notify = async () => (await studio.query('select public.notify_cancelled($1) as n', [id])).rows[0].n
  expect(await notify()).toBe(1)
  expect(await notify()).toBe(0)
  await sent()
  expect(await notify()).toBe(0)
  expect(await told()).toEqual(['order_confirmation desk@example.com'])
})

test('whoever was told of another order only is told of their own ticket with everybody', async () => {
  const { event, order, cancel, told, sent } = await arrange()
  await order('ada@example.com', ['ada@example.com'], { send_email: false })
  await order('ada@example.com', ['bob@example.com'])
  await told()
  await cancel(`/events/${event.id}`, { notify: 'nobody' })
  await studio.query("select public.notify_attendees($1, 'mailed')", [event.id])
  await sent()
  await studio.query("select public.notify_attendees($1, 'everybody')", [event.id])
  expect(await told()).toContainEqual(['event_cancelled ada@example.com', expect.any(Number), 0])
})
