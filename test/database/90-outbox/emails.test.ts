// Which e-mails there are besides tickets, to whom, and when: in the transaction of what they tell of, and only if somebody asked.

import { expect, test, vi } from 'vitest'
import { asPurge, during, row, studio } from '../../support/database.ts'
import type { TestOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { rolledBack } from '../as-courier.ts'
import { dueAlone, emailFixture, reasons } from './email-fixture.ts'

async function arrange() {
  const fixture = await emailFixture()
  const priced = await fixture.event.ticketType({ price: 4900 })
  const invoice = (email: string, more: Record<string, unknown> = {}) =>
    fixture.register(email, { ticket_type_id: priced, payment_method: 'invoice', ...more })
  return { ...fixture, invoice }
}

type Row = { kind: string; to: string; status: string; previous: { venue: unknown; name: string } | null; wait: number }

/** Those that are no tickets, the oldest first. `wait`: minutes until it is due. */
async function emailsOf(organisation: TestOrganisation): Promise<Row[]> {
  const { rows } = await studio.query(
    `select e.kind, coalesce(a.email, o.email) as to, e.status, e.previous,
       round(extract(epoch from e.next_attempt_at - e.created_at) / 60)::integer as wait
     from public.emails e
     left join public.attendees a on a.id = e.attendee_id
     left join public.orders o on o.id = e.order_id
     where e.organisation_id = $1 and e.kind <> 'ticket' order by e.id`,
    [organisation.id],
  )
  return rows
}

const brief = (rows: Row[]) => rows.map(({ kind, to }) => `${kind} ${to}`)

test('the buyer of an invoice order gets a confirmation, and a receipt for each payment', async () => {
  const { organisation, send, register, invoice } = await arrange()
  await register('guest@example.com')
  const { orderId } = await invoice('buyer@example.com')
  await send('POST', `/orders/${orderId}/payments`, { amount: 900 })
  await send('POST', `/orders/${orderId}/payments`, { amount: 4000 })
  expect(brief(await emailsOf(organisation))).toEqual([
    'order_confirmation buyer@example.com',
    'payment_received buyer@example.com',
    'payment_received buyer@example.com',
  ])
})

test('an e-mail names whom it is about, and the last receipt alone says that all is paid', async () => {
  const { organisation, event, send } = await arrange()
  const type = await event.ticketType({ price: 4900 })
  const guests = ['Ada', 'Grace'].map((name) => ({ name, email: 'desk@example.com' }))
  const { body } = await send('POST', `/events/${event.id}/registrations`, {
    ...{ name: 'Desk', email: 'desk@example.com', payment_method: 'invoice', ticket_type_id: type },
    attendees: [...guests, { name: 'Katherine', email: 'katherine@example.com' }],
  })
  const order = `/orders/${body.data.id}`
  const shown = async (kind: string, path: string) =>
    (
      await studio.query(
        `select private.pending_email_json(e) #> $3 as shown from public.emails e
         where e.organisation_id = $1 and e.kind = $2 order by e.id`,
        [organisation.id, kind, path.split('.')],
      )
    ).rows.map(({ shown }) => shown)
  const names = (people: { name: string }[]) => people.map(({ name }) => name)
  expect((await shown('order_confirmation', 'guests')).map(names)).toEqual([['Ada', 'Grace', 'Katherine']])

  for (const amount of [900, 13_800]) await send('POST', `${order}/payments`, { amount })
  expect(await shown('payment_received', 'payment.is_latest')).toEqual([false, true])
  const last = await row<{ id: string }>(
    'select id from public.payments where order_id = $1 order by id desc limit 1',
    [body.data.id],
  )
  await send('POST', `/payments/${last.id}/void`, {})
  expect(await shown('payment_received', 'payment.is_latest')).toEqual([true, true])

  await send('POST', `${order}/cancel`, { notify: 'mailed' })
  const holders = await shown('ticket_cancelled', 'holders')
  expect(holders.map(names).sort((a, b) => b.length - a.length)).toEqual([['Ada', 'Grace'], ['Katherine']])
})

test('an order without e-mails has none of any kind', async () => {
  const { organisation, event, send, invoice } = await arrange()
  const { orderId } = await invoice('buyer@example.com', { send_email: false })
  await send('POST', `/orders/${orderId}/payments`, { amount: 900 })
  const changed = await send('PATCH', `/events/${event.id}`, { name: 'Another', notify: 'mailed' })
  expect(changed.body.effect).toEqual({
    ...{ dry_run: false, orders: 1, attendees: 1, emails: 0, told: 0, refund_due: 0, waiting_list: 0, currency: 'EUR' },
    not_told: [{ reason: 'send_email_false', count: 1 }],
  })
  const cancelled = await send('POST', `/orders/${orderId}/cancel`, { notify: 'mailed' })
  expect(cancelled.body.effect).toMatchObject({ attendees: 1, emails: 0 })
  expect(await emailsOf(organisation)).toEqual([])
})

test('an order that is added in Studio is confirmed later, once it has its tickets', async () => {
  const { organisation, event } = await arrange()
  const { id: orderId } = await row<{ id: string }>(
    "insert into public.orders (event_id, name, email, payment_method) values ($1, 'Ada', 'ada@example.com', 'invoice') returning id",
    [event.id],
  )
  const priced = await event.ticketType({ price: 4900 })
  expect(await emailsOf(organisation)).toMatchObject([{ kind: 'order_confirmation', wait: 10 }])
  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    const due = async () => {
      await client.query("update public.emails set next_attempt_at = '2000-01-01' where order_id = $1", [orderId])
      return ((await asCourier('select api.claim_emails(1000)')) as { order: { id: string } }[]).filter(
        ({ order }) => order.id === orderId,
      )
    }
    expect(await due()).toEqual([])
    // Not for ever.
    await client.query('savepoint empty')
    await client.query("update public.emails set created_at = now() - interval '25 hours' where order_id = $1", [
      orderId,
    ])
    expect(await due()).toEqual([])
    expect((await client.query('select status from public.emails where order_id = $1', [orderId])).rows).toEqual([
      { status: 'cancelled' },
    ])
    await client.query('rollback to empty')
    await client.query(
      "insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Ada', 'ada@example.com')",
      [orderId, priced],
    )
    expect(await due()).toMatchObject([
      {
        kind: 'order_confirmation',
        attendee: null,
        order: { total: 4900, amount_due: 4900 },
        lines: [{ name: 'General', quantity: 1, price: 4900, discount: 0, total: 4900 }],
      },
    ])
  })
})

test('nobody is told of a change unless somebody asks', async () => {
  const { organisation, event, send, register } = await arrange()
  const { attendeeId } = await register('ada@example.com')
  await send('PATCH', `/events/${event.id}`, { name: 'Another' })
  await send('POST', `/attendees/${attendeeId}/cancel`)
  await register('bob@example.com')
  await send('POST', `/events/${event.id}/cancel`)
  expect(await emailsOf(organisation)).toEqual([])
})

test('changes within ten minutes are one e-mail for each address, with the first old and the last new', async () => {
  const { organisation, event, send, register } = await arrange()
  const first = await register('ada@example.com')
  for (const email of ['Ada@Example.com', 'bob@example.com']) await register(email)
  const cancelled = await register('gone@example.com')
  await send('POST', `/attendees/${cancelled.attendeeId}/cancel`)
  const change = (changes: object) => send('PATCH', `/events/${event.id}`, changes)

  const dry = await change({ name: 'Second', notify: 'mailed', dry_run: true })
  // What it would change is not shown as if it were so.
  expect([dry.body.effect, dry.body.data.name]).toEqual([
    {
      dry_run: true,
      orders: 3,
      attendees: 3,
      emails: 2,
      told: 3,
      not_told: [],
      refund_due: 0,
      waiting_list: 0,
      currency: 'EUR',
    },
    'Test event',
  ])
  expect(await emailsOf(organisation)).toEqual([])

  await change({ name: 'Second' })
  const told = await change({ venue: { city: 'Köln' }, notify: 'mailed' })
  expect(told.body.effect).toMatchObject({ dry_run: false, emails: 2 })
  // Neither a field that nobody was told of, nor the same again, makes another.
  expect((await change({ description: 'Long', notify: 'mailed' })).body.effect.emails).toBe(0)
  expect((await change({ name: 'Third', notify: 'mailed' })).body.effect.emails).toBe(2)
  await register('eve@example.com')
  expect((await change({ name: 'Fourth', notify: 'mailed' })).body.effect.emails).toBe(3)
  const emails = await emailsOf(organisation)
  expect(brief(emails)).toEqual([
    'event_changed ada@example.com',
    'event_changed bob@example.com',
    'event_changed eve@example.com',
  ])
  expect(emails.map(({ previous, wait }) => [previous?.name, previous?.venue, wait])).toEqual([
    ['Test event', null, 10],
    ['Test event', null, 10],
    ['Third', expect.objectContaining({ city: 'Köln' }), 10],
  ])

  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    const claim = async () => {
      await client.query(
        "update public.emails set next_attempt_at = '2000-01-01' where organisation_id = $1 and kind = 'event_changed' and status = 'queued'",
        [organisation.id],
      )
      const all = (await asCourier('select api.claim_emails(1000)')) as {
        event: { id: string; name: string }
        kind: string
        attendee: { email: string }
        previous: { name: string }
      }[]
      return all.filter((email) => email.event.id === event.id && email.kind === 'event_changed')
    }
    // Ada is told although she cancelled one of her tickets; Eve is not any more: what she was told is again true.
    await client.query("update public.events set name = 'Third' where id = $1", [event.id])
    await client.query("update public.attendees set status = 'cancelled' where id = $1", [first.attendeeId])
    const claimed = await claim()
    expect(claimed.map(({ attendee, previous, event }) => [attendee.email, previous.name, event.name]).sort()).toEqual([
      ['Ada@Example.com', 'Test event', 'Third'],
      ['bob@example.com', 'Test event', 'Third'],
    ])
    // What changes while they are on their way is another e-mail.
    await client.query("update public.events set name = 'Fifth' where id = $1", [event.id])
    const { rows } = await client.query('select public.notify_attendees($1) as emails', [event.id])
    expect(rows[0].emails).toBe(3)
  })
})

test('whoever holds a place is told of the cancellation of the event, once for each address', async () => {
  const { organisation, event, send, register, invoice } = await arrange()
  await register('ada@example.com')
  await register('ada@example.com')
  await invoice('buyer@example.com')
  await register('silent@example.com', { send_email: false })
  const gone = await register('gone@example.com')
  await send('POST', `/attendees/${gone.attendeeId}/cancel`)
  const ask = { dry_run: true, notify: 'mailed' }
  const effect = {
    ...{ dry_run: true, orders: 4, attendees: 4, emails: 2, told: 3, refund_due: 0, waiting_list: 0, currency: 'EUR' },
    not_told: [{ reason: 'send_email_false', count: 1 }],
  }
  expect((await send('POST', `/events/${event.id}/cancel`, ask)).body.effect).toEqual(effect)
  await send('POST', `/events/${event.id}/cancel`)
  expect(brief(await emailsOf(organisation))).toEqual(['order_confirmation buyer@example.com'])

  // In Studio it is said afterwards, and twice makes no difference.
  const notify = async () =>
    (await studio.query('select public.notify_attendees($1) as emails', [event.id])).rows[0].emails
  expect([await notify(), await notify()]).toEqual([2, 0])
  expect(brief(await emailsOf(organisation)).slice(1)).toEqual([
    'event_cancelled ada@example.com',
    'event_cancelled buyer@example.com',
  ])
  // Nor does it once the e-mails are older than their retention.
  await studio.query(
    `delete from public.emails using ${asPurge} where organisation_id = $1 and kind = 'event_cancelled'`,
    [organisation.id],
  )
  expect(await notify()).toBe(0)
})

test('what is edited while an event is completed is told once it is published again', async () => {
  const { organisation, event, send, register } = await arrange()
  await register('ada@example.com')
  await send('POST', `/events/${event.id}/complete`)
  const edited = await send('PATCH', `/events/${event.id}`, { name: 'Another', notify: 'mailed' })
  expect(edited.body.effect).toMatchObject({ attendees: 1, emails: 0 })
  await send('POST', `/events/${event.id}/publish`)
  const told = await send('PATCH', `/events/${event.id}`, { notify: 'mailed' })
  expect(told.body.effect).toMatchObject({ attendees: 1, emails: 1 })
  expect(await emailsOf(organisation)).toMatchObject([{ kind: 'event_changed', to: 'ada@example.com' }])
})

test('a buyer, an attendee or somebody who waits under .invalid is e-mailed nothing, and is when corrected in time', async () => {
  const { organisation, event, send, invoice } = await arrange()
  const type = await event.ticketType({ price: 4900, quantity: 1 })
  const { orderId } = await invoice('desk@door.invalid', { ticket_type_id: type })
  const corrected = await invoice('other@door.invalid')
  await studio.query("update public.orders set email = 'buyer@example.com' where id = $1", [corrected.orderId])
  const payment = await send('POST', `/orders/${orderId}/payments`, { amount: 900 })
  const waiting = { ticket_type_id: type, name: 'Kid', email: 'kid@door.invalid' }
  const joined = await send('POST', `/events/${event.id}/waiting-list`, waiting)
  expect([payment.status, joined.status]).toEqual([201, 201])
  // Refused while the places of the event are being counted.
  await vi.waitUntil(async () => (await send('PATCH', `/ticket-types/${type}`, { quantity: 2 })).status === 200)
  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    const claimed = (await asCourier('select api.claim_emails(100)')) as { kind: string }[]
    expect(claimed.map(({ kind }) => kind)).toEqual(['order_confirmation'])
    const { rows } = await client.query(
      "select kind from public.emails where organisation_id = $1 and status = 'cancelled' order by id",
      [organisation.id],
    )
    expect(rows.map(({ kind }) => kind)).toEqual(['order_confirmation', 'payment_received', 'waiting_list_offer'])
    // Of a receipt that nobody was sent nothing is taken back.
    await client.query('insert into public.payment_voids (payment_id) values ($1)', [payment.body.data.payments[0].id])
    const voided = await client.query(
      "select from public.emails where organisation_id = $1 and kind = 'payment_voided'",
      [organisation.id],
    )
    expect(voided.rowCount).toBe(0)
  })
  const told = await send('POST', `/events/${event.id}/cancel`, { notify: 'everybody', dry_run: true })
  expect(told.body.effect.not_told).toEqual([{ reason: 'no_address', count: 3 }])
})

test('whoever is told mailed first and everybody after tells each once, of what each does not know', async () => {
  const { organisation, event, send, register, change, sent } = await arrange()
  await register('ada@example.com')
  await register('ada@example.com', { send_email: false })
  await register('bob@example.com', { send_email: false })
  await register('walk-in@door.invalid', { send_email: false })
  const first = await change({ name: 'Second', notify: 'mailed' })
  expect([first.emails, first.told, reasons(first)]).toEqual([1, 2, { send_email_false: 1, no_address: 1 }])
  await sent()
  const again = await change({ notify: 'mailed' })
  expect([again.emails, reasons(again)]).toEqual([0, { told_before: 2, send_email_false: 1, no_address: 1 }])
  const all = await change({ notify: 'everybody' })
  expect([all.emails, all.told, reasons(all)]).toEqual([1, 1, { told_before: 2, no_address: 1 }])
  await sent()
  expect(reasons(await change({ notify: 'everybody' }))).toEqual({ nothing_to_tell: 4 })

  // Of two changes the mailed know the first.
  await change({ name: 'Third', notify: 'mailed' })
  await sent()
  const later = await change({ name: 'Fourth', notify: 'everybody' })
  expect([later.emails, later.told]).toEqual([2, 3])
  const { rows } = await studio.query(
    `select a.email, e.previous ->> 'name' as name from public.emails e join public.attendees a on a.id = e.attendee_id
     where e.organisation_id = $1 and e.kind = 'event_changed' and e.status = 'queued' order by 1`,
    [organisation.id],
  )
  expect(rows).toEqual([
    { email: 'ada@example.com', name: 'Third' },
    { email: 'bob@example.com', name: 'Second' },
  ])

  const cancelled = await send('POST', `/events/${event.id}/cancel`, { notify: 'mailed' })
  expect(reasons(cancelled.body.effect)).toEqual({ send_email_false: 1, no_address: 1 })
  expect((await studio.query("select public.notify_attendees($1, 'everybody')", [event.id])).rows).toEqual([
    { notify_attendees: 1 },
  ])
})

test('everybody is everybody but the erased, and each who is not told is counted by the reason', async () => {
  const { organisation, send, register, change } = await arrange()
  await register('ada@example.com')
  const silent = { send_email: false }
  // Whoever shares an address with somebody who is told is told.
  await register('ada@example.com', silent)
  await register('bob@example.com', silent)
  const erased = await register('eve@example.com')
  await send('POST', `/attendees/${erased.attendeeId}/erase`)
  await change({ name: 'Another' })
  await register('late@example.com')

  const tried = (notify: unknown) => change({ notify, dry_run: true })
  const without = (...reasons: string[]) => reasons.map((reason) => ({ reason, count: 1 }))
  expect(await tried('nobody')).toMatchObject({ told: 0, not_told: [{ reason: 'notify_nobody', count: 5 }] })
  expect(await tried('mailed')).toMatchObject({
    ...{ attendees: 5, emails: 1, told: 2 },
    not_told: without('erased', 'registered_since', 'send_email_false'),
  })
  const told = { emails: 2, told: 3, not_told: without('erased', 'registered_since') }
  expect(await tried('everybody')).toMatchObject(told)
  expect(await change({ notify: 'everybody' })).toMatchObject(told)
  expect(await change({ notify: 'everybody' })).toMatchObject({
    ...{ emails: 0, told: 0 },
    not_told: [{ reason: 'nothing_to_tell', count: 5 }],
  })
  expect(brief(await emailsOf(organisation))).toEqual([
    'event_changed ada@example.com',
    'event_changed bob@example.com',
  ])
  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    await client.query(`select set_config('request.jwt.claims', '{"public_url": "https://usher.example"}', true)`)
    const all = (await asCourier('select api.claim_emails(1000)')) as {
      kind: string
      attendee: { email: string; ticket_url: string | null }
    }[]
    // The ticket of an order that is not e-mailed stays with whoever hands it out.
    const links = all.flatMap(({ kind, attendee }) =>
      kind === 'event_changed' ? [[attendee.email, attendee.ticket_url === null]] : [],
    )
    expect(links.sort()).toEqual([
      ['ada@example.com', false],
      ['bob@example.com', true],
    ])
  })
})

test('a cancelled event is told to those on its waiting list, once each, and not again', async () => {
  const { organisation, event, send } = await arrange()
  const ticketTypeId = await event.ticketType({ quantity: 2 })
  const guest = (email: string) => ({ ticket_type_id: ticketTypeId, name: 'Ada', email })
  const registered: string[] = []
  for (const email of ['ada@example.com', 'bob@example.com']) {
    const { body } = await send('POST', `/events/${event.id}/registrations`, guest(email))
    registered.push(body.data.attendees[0].id)
  }
  const join = async (email: string, more = {}) =>
    (await send('POST', `/events/${event.id}/waiting-list`, { ...guest(email), ...more })).body.data.id as string
  await join('offered@example.com')
  // A guest who waits for another place is told once.
  await join('ada@example.com')
  await join('silent@example.com', { send_email: false })
  await join('waits@example.com')
  await send('POST', `/waiting-list-entries/${await join('gone@example.com')}/cancel`)
  await send('POST', `/attendees/${registered[1]}/cancel`)

  const cancel = async (body: object) => (await send('POST', `/events/${event.id}/cancel`, body)).body.effect
  expect(await cancel({ dry_run: true, notify: 'mailed' })).toMatchObject({
    ...{ attendees: 1, emails: 3, told: 4 },
    not_told: [{ reason: 'send_email_false', count: 1 }],
  })
  expect(await cancel({ notify: 'everybody' })).toMatchObject({ emails: 4, told: 5, not_told: [] })
  const { rows } = await studio.query(
    `select e.kind, coalesce(a.email, w.email) as to from public.emails e
     left join public.attendees a on a.id = e.attendee_id
     left join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
     where e.organisation_id = $1 and e.kind in ('event_cancelled', 'waiting_list_cancelled') order by 2`,
    [organisation.id],
  )
  expect(rows.map(({ kind, to }) => `${kind} ${to}`)).toEqual([
    'event_cancelled ada@example.com',
    'waiting_list_cancelled offered@example.com',
    'waiting_list_cancelled silent@example.com',
    'waiting_list_cancelled waits@example.com',
  ])
  expect((await row('select public.notify_attendees($1, $2) as emails', [event.id, 'everybody'])).emails).toBe(0)
})

test('a voided payment is told to whoever was sent its receipt', async () => {
  const { organisation, send, invoice } = await arrange()
  const pay = async (email: string, more = {}) => {
    const { orderId } = await invoice(email, more)
    const paid = await send('POST', `/orders/${orderId}/payments`, { amount: 900 })
    const paymentId = paid.body.data.payments[0].id as string
    const receipt = (set: string) => studio.query(`update public.emails set ${set} where payment_id = $1`, [paymentId])
    return { paymentId, receipt }
  }
  const told = async (status: string) => {
    const { paymentId, receipt } = await pay(`${status}@example.com`)
    await receipt(`status = '${status}', next_attempt_at = null`)
    await send('POST', `/payments/${paymentId}/void`)
  }
  for (const status of ['sent', 'delivered', 'bounced', 'failed']) await told(status)
  const queued = await pay('queued@example.com')
  await send('POST', `/payments/${queued.paymentId}/void`)
  const silent = await pay('silent@example.com', { send_email: false })
  await send('POST', `/payments/${silent.paymentId}/void`)
  // So long ago that the retention has removed it.
  const old = await pay('old@example.com')
  await studio.query(`delete from public.emails using ${asPurge} where payment_id = $1`, [old.paymentId])
  await send('POST', `/payments/${old.paymentId}/void`)
  // In flight at the void, and then not sent.
  const inFlight = await pay('in-flight@example.com')
  await inFlight.receipt('claim = gen_random_uuid()')
  await send('POST', `/payments/${inFlight.paymentId}/void`)
  await studio.query("update public.emails set claim = null where payment_id = $1 and kind = 'payment_received'", [
    inFlight.paymentId,
  ])

  const voids = (await emailsOf(organisation)).filter(({ kind }) => kind === 'payment_voided')
  expect(brief(voids)).toEqual(
    ['sent', 'delivered', 'old', 'in-flight'].map((name) => `payment_voided ${name}@example.com`),
  )
  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    const claimed = (await asCourier('select api.claim_emails(1000)')) as { kind: string; order: { email: string } }[]
    expect(claimed.flatMap(({ kind, order }) => (kind === 'payment_voided' ? [order.email] : [])).sort()).toEqual(
      ['delivered', 'old', 'sent'].map((name) => `${name}@example.com`),
    )
  })
})

test('an effect says what becomes refundable, to keys that read orders', async () => {
  const { organisation, event, send, invoice } = await arrange()
  const { orderId, attendeeId } = await invoice('buyer@example.com')
  await send('POST', `/orders/${orderId}/payments`, { amount: 4900 })
  await invoice('unpaid@example.com')
  const paths = [`/attendees/${attendeeId}/cancel`, `/orders/${orderId}/cancel`, `/events/${event.id}/cancel`]
  const effects = async (as: typeof send, to: string[]) => {
    const answers = []
    for (const path of to) answers.push((await as('POST', path, { dry_run: true })).body)
    return answers
  }
  const tried = await effects(send, paths)
  expect(tried.map(({ effect }) => [effect.refund_due, effect.currency])).toEqual(paths.map(() => [4900, 'EUR']))
  expect(tried.map(({ data }) => data.status)).toEqual(['active', 'completed', 'published'])
  const [attendees, events] = [
    rest(await organisation.key('attendees:write')),
    rest(await organisation.key('events:write')),
  ]
  expect((await effects(attendees, [paths[0] as string]))[0].effect).toMatchObject({ refund_due: null })
  expect((await effects(events, [paths[2] as string]))[0].effect).toMatchObject({ refund_due: null })
  expect((await send('POST', paths[1] as string)).body.effect).toMatchObject({ refund_due: 4900 })
  // What was refundable before is nothing that this cancellation does.
  expect((await effects(send, [paths[2] as string]))[0].effect).toMatchObject({ refund_due: 0 })
})

test('an e-mail that has become untrue is not sent', async () => {
  const { organisation, send, invoice } = await arrange()
  const { orderId } = await invoice('buyer@example.com')
  const paid = await send('POST', `/orders/${orderId}/payments`, { amount: 900 })
  await send('POST', `/payments/${paid.body.data.payments[0].id}/void`)
  await send('POST', `/orders/${orderId}/cancel`)
  await during(async (client) => {
    await dueAlone(client, organisation)
    await client.query('select api.claim_emails(1000)')
    const { rows } = await client.query(
      'select kind, status from public.emails where organisation_id = $1 order by id',
      [organisation.id],
    )
    expect(rows).toEqual([
      { kind: 'order_confirmation', status: 'cancelled' },
      { kind: 'payment_received', status: 'cancelled' },
    ])
  })
})

test('what waits after failures is due at once by its status, in Studio, of every kind, but for what is being sent', async () => {
  const { organisation, register, invoice } = await arrange()
  await register('ada@example.com')
  await invoice('ada@example.com')
  await register('bob@example.com')
  await rolledBack(async (client) => {
    const fail = (kind: string, address: string, more = '') =>
      client.query(
        `update public.emails e set attempts = 5, last_error = 'Wrong password.', next_attempt_at = now() + interval '1 day' ${more}
         where organisation_id = $1 and kind = $2
           and (select o.email from public.orders o
             where o.id = coalesce(e.order_id, (select a.order_id from public.attendees a where a.id = e.attendee_id))) = $3`,
        [organisation.id, kind, address],
      )
    await fail('ticket', 'ada@example.com')
    await fail('order_confirmation', 'ada@example.com')
    await fail('ticket', 'bob@example.com', ", claim = gen_random_uuid(), claimed_until = now() + interval '1 minute'")
    await client.query("update public.emails set status = 'queued' where organisation_id = $1", [organisation.id])
    const { rows } = await client.query(
      `select distinct attempts, next_attempt_at <= now() as due, claim is not null as in_hand from public.emails
       where organisation_id = $1 order by 1`,
      [organisation.id],
    )
    expect(rows).toEqual([
      { attempts: 0, due: true, in_hand: false },
      { attempts: 5, due: false, in_hand: true },
    ])
  })
})

test('a bounce of any kind is notified of, with what the mail service says', async () => {
  const { organisation, invoice } = await arrange()
  const { orderId } = await invoice('buyer@example.com')
  await rolledBack(async (client, asCourier) => {
    const sent = await client.query(
      `update public.emails
       set status = 'sent', attempts = 1, next_attempt_at = null, sent_to = 'buyer@example.com', message_id = 'its-id'
       where order_id = $1 returning id`,
      [orderId],
    )
    await asCourier("select api.record_email_event('its-id', 'bounced', 'No such mailbox', $1, 1)", [sent.rows[0].id])
    const { rows } = await client.query(
      "select data from public.notifications where organisation_id = $1 and type = 'email.bounced'",
      [organisation.id],
    )
    expect(rows.map(({ data }) => data)).toMatchObject([
      {
        kind: 'order_confirmation',
        order_id: orderId,
        attendee_id: null,
        to: 'buyer@example.com',
        error: 'No such mailbox',
      },
    ])
  })
})

test('told counts whom an e-mail reaches: by one that waits as well, and not where all is as it was', async () => {
  const { organisation, event, send, register } = await arrange()
  await register('ada@example.com')
  await register('sue@example.com', { send_email: false })
  const change = async (body: object) => {
    const { emails, told, not_told } = (await send('PATCH', `/events/${event.id}`, body)).body.effect
    return { emails, told, not_told }
  }
  await change({ name: 'Second', notify: 'everybody' })
  expect(await change({ name: 'Third', notify: 'mailed' })).toEqual({ emails: 2, told: 2, not_told: [] })
  const nobody = { emails: 0, told: 0, not_told: [{ reason: 'nothing_to_tell', count: 2 }] }
  expect(await change({ name: 'Test event', notify: 'everybody' })).toEqual(nobody)
  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    expect(
      await asCourier(
        "select count(*)::integer from json_array_elements(api.claim_emails(10)) e where e ->> 'kind' = 'event_changed'",
      ),
    ).toBe(0)
  })
  await studio.query("update public.emails set status = 'cancelled' where organisation_id = $1 and status = 'queued'", [
    organisation.id,
  ])
  await send('PATCH', `/events/${event.id}`, { name: 'Unsaid' })
  expect(await change({ name: 'Test event', notify: 'everybody' })).toEqual(nobody)
})
