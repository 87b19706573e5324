// find_person and erase_person: whoever stands under an e-mail address, wherever it is.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { join as joinAs, signUp } from '../database/tenant-fixture.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { addEndpoint, enqueued, listenIn } from '../support/outbox.ts'
import { problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'
import { tracesFromNow } from '../support/traces.ts'

type Send = ReturnType<typeof rest>

async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const register = async (body: object, key: string = randomUUID()) => {
    const answer = await send(
      'POST',
      `/events/${event.id}/registrations`,
      { ticket_type_id: event.ticketTypeId, ...body },
      { 'Idempotency-Key': key },
    )
    expect(answer.status).toBe(201)
    return answer.body.data
  }
  return { organisation, event, send, register }
}

const find = async (send: Send, email: string) =>
  (await send('GET', `/people?email=${encodeURIComponent(email)}`)).body.data

/** A buyer's address on three guests, of whom one is written in two ways. */
async function arrangeGroup() {
  const { register, ...rest } = await arrange()
  const order = await register({
    name: 'Bob Smith',
    email: 'bob@example.com',
    company: 'Acme',
    attendees: [
      { name: 'Bob Smith', email: 'bob@example.com' },
      { name: 'Zoë  Müller', email: 'Bob@Example.com', company: 'Beta' },
      { name: 'Ann Lee', email: 'bob@example.com' },
      { name: 'Tim Wu', email: 'tim@example.com' },
    ],
  })
  await register({ name: 'ZOE MULLER', email: 'bob@example.com' })
  return { ...rest, order }
}

test('one address may be that of several people, each with what tells them apart', async () => {
  const { send, event, order } = await arrangeGroup()
  const found = await find(send, ' BOB@example.com ')
  expect(found).toMatchObject({ object: 'person', email: 'bob@example.com', hidden: 0, more: false })
  expect(found.people).toMatchObject([
    { name: 'ZOE MULLER', companies: ['Beta'], attendees: 2, orders: 1, waiting_list_entries: 0, passed_on: 0 },
    { name: 'Ann Lee', companies: [], attendees: 1, orders: 0 },
    { name: 'Bob Smith', companies: ['Acme'], attendees: 1, orders: 1 },
  ])
  expect(found.people[2].records).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({ object: 'order', id: order.id, event: { id: event.id, name: 'Test event' } }),
    ]),
  )
  expect((await find(send, 'bob+x@example.com')).people).toEqual([])
})

test('a member is found by what was typed of them, as they are erased', async () => {
  const { organisation, send, register } = await arrange()
  await register({ name: 'Ann Lee', email: 'desk@example.com' })
  const type = async (name: string | null) => {
    const member = await signUp()
    await joinAs(organisation.id, member, 'door')
    const typed = 'update public.organisation_members set name = $2, email = $3 where user_id = $1'
    await studio.query(typed, [member.sub, name, 'Desk@example.com'])
    return member.sub
  }
  const [ann, bob, , removed] = [await type('ann lee'), await type('Bob'), await type(null), await type('Zoe')]
  await studio.query('delete from public.organisation_members where user_id = $1', [removed])
  const { people } = await find(send, 'desk@example.com')
  type Record = { object: string; id: string; passed_on: boolean; event: object | null }
  const membersOf = ({ records }: { records: Record[] }) => records.filter(({ object }) => object === 'member')
  expect(people.toSorted((one: { name: string }, other: { name: string }) => (one.name > other.name ? 1 : -1))).toEqual(
    [
      expect.objectContaining({ name: '', attendees: 0, members: 1, passed_on: 0 }),
      expect.objectContaining({ name: 'Bob', attendees: 0, members: 1, passed_on: 0 }),
      expect.objectContaining({ name: 'Zoe', attendees: 0, members: 0, passed_on: 1 }),
      expect.objectContaining({ name: 'ann lee', attendees: 1, members: 1, passed_on: 0 }),
    ],
  )
  const ids = people.flatMap((one: { records: Record[] }) => membersOf(one)).map(({ id }: Record) => id)
  expect(ids).toEqual(expect.arrayContaining([ann, bob, removed]))
  expect(people.flatMap(membersOf).filter(({ event }: Record) => event !== null)).toEqual([])

  // The guest alone has the address, so she is meant; and whoever has no name goes with her.
  const erased = await send('POST', '/people/erase', { email: 'desk@example.com' })
  expect([erased.status, erased.body.data]).toMatchObject([200, { people: 1, attendees: 1, remaining: 0 }])
  expect((await find(send, 'desk@example.com')).people).toMatchObject([{ name: 'Zoe' }, { name: 'Bob' }])
  const several = await send('POST', '/people/erase', { email: 'desk@example.com' })
  expect(several.body.error).toMatchObject({
    code: 'several_people',
    details: { count: 2, people: [{ name: 'Zoe' }, { name: 'Bob' }] },
  })
  const all = await send('POST', '/people/erase', { email: 'desk@example.com', everyone: true })
  expect(all.body.data).toMatchObject({ people: 2, attendees: 0, remaining: 0 })
  expect((await find(send, 'desk@example.com')).people).toEqual([])
})

test('where several people have the address, none is erased until it is said who', async () => {
  const { organisation, send, order } = await arrangeGroup()
  const refused = await send('POST', '/people/erase', { email: 'bob@example.com' })
  expect([refused.status, refused.body.error]).toMatchObject([
    409,
    {
      code: 'several_people',
      param: 'names',
      details: { count: 3, people: [{ name: 'ZOE MULLER', attendees: 2 }, { name: 'Ann Lee' }, { name: 'Bob Smith' }] },
    },
  ])
  const writer = rest(await organisation.key('attendees:write'))
  const blind = await writer('POST', '/people/erase', { email: 'bob@example.com' })
  expect(blind.body.error).toMatchObject({ code: 'several_people', details: { count: 3 } })
  expect(JSON.stringify(blind.body)).not.toMatch(/smith|lee|zoe/i)
  expect(problemOf(await send('POST', '/people/erase', { email: 'bob@example.com', names: ['Adam', 'Eve'] }))).toEqual([
    404,
    'not_found',
    'names',
  ])
  const { body } = await send('GET', `/orders/${order.id}`)
  expect(body.data.attendees.map(({ name }: { name: string }) => name).toSorted()).toEqual(
    ['Ann Lee', 'Bob Smith', 'Tim Wu', 'Zoë  Müller'].toSorted(),
  )
})

test('of several people the one who is named goes, and the others keep their address', async () => {
  const { organisation, send, order } = await arrangeGroup()
  // One of her tickets passed on; and a ticket of another came back.
  const idOf = (name: string) => order.attendees.find((attendee: { name: string }) => attendee.name === name).id
  await send('PATCH', `/attendees/${idOf('Tim Wu')}`, { name: 'Zoë Müller', email: 'bob@example.com' })
  await send('PATCH', `/attendees/${idOf('Tim Wu')}`, { name: 'Tim Wu', email: 'tim@example.com' })
  await edit('attendees', idOf('Ann Lee'), "ticket_email_status = 'failed'")
  const erased = await send('POST', '/people/erase', { email: 'bob@example.com', names: [' zoë MULLER '] })
  const { rows: bounces } = await studio.query(
    "select data ->> 'to' as to from public.notifications where organisation_id = $1 and type = 'email.bounced'",
    [organisation.id],
  )
  expect(bounces).toEqual([{ to: 'bob@example.com' }])
  const { rows: told } = await studio.query(
    `select data ->> 'name' as name from public.notifications
     where organisation_id = $1 and type = 'attendee.updated' order by transaction_id`,
    [organisation.id],
  )
  expect(told).toEqual([{ name: 'Erased' }, { name: 'Tim Wu' }])
  expect([erased.status, erased.body]).toMatchObject([
    200,
    {
      data: {
        object: 'person_erasure',
        people: 1,
        attendees: 2,
        orders: 1,
        remaining: 0,
        kept: expect.arrayContaining([expect.objectContaining({ what: 'other_people', count: 2 })]),
      },
      effect: { dry_run: false, attendees: 2, orders: 1, refund_due: 0, currency: 'EUR' },
    },
  ])
  const after = (await send('GET', `/orders/${order.id}`)).body.data
  expect(after).toMatchObject({ name: 'Bob Smith', email: 'bob@example.com', company: 'Acme' })
  expect(after.attendees.map(({ name, email }: Record<string, string>) => `${name} ${email}`).toSorted()).toEqual([
    'Ann Lee bob@example.com',
    'Bob Smith bob@example.com',
    'Erased erased@erased.invalid',
    'Tim Wu tim@example.com',
  ])
  // The contact, by their name, and then whoever is left.
  await send('POST', '/people/erase', { email: 'bob@example.com', names: ['Bob Smith'] })
  expect((await send('GET', `/orders/${order.id}`)).body.data).toMatchObject({ name: 'Erased', company: null })
  const last = await send('POST', '/people/erase', { email: 'bob@example.com' })
  expect(last.body.data).toMatchObject({ people: 1, attendees: 1, orders: 0 })
  expect(problemOf(await send('POST', '/people/erase', { email: 'bob@example.com' }))).toEqual([
    404,
    'not_found',
    'email',
  ])
})

test('of several names those that nobody has, or nobody any more, do not keep the others', async () => {
  const { send } = await arrangeGroup()
  await send('POST', '/people/erase', { email: 'bob@example.com', names: ['Ann Lee'] })
  const again = await send('POST', '/people/erase', { email: 'bob@example.com', names: ['Ann Lee', 'Bob Smith'] })
  expect([again.status, again.body.data]).toMatchObject([
    200,
    {
      people: 1,
      kept: expect.arrayContaining([
        expect.objectContaining({ what: 'names_not_found', count: 1 }),
        expect.objectContaining({ what: 'other_people', count: 1 }),
      ]),
    },
  ])
})

test('a ticket that names the same person under another address keeps it, and everyone is all of one address', async () => {
  const { send, register } = await arrange()
  const other = await register({ name: 'Ann Lee', email: 'ann@work.example' })
  await register({ name: 'Ann Lee', email: 'ann@example.com' })
  await register({ name: 'Ann Lees', email: 'ann@example.com' })
  const dry = await send('POST', '/people/erase', { email: 'ANN@example.com', everyone: true, dry_run: true })
  expect(dry.body).toMatchObject({
    data: { people: 2, attendees: 2, orders: 2, erased_at: null },
    effect: { dry_run: true },
  })
  expect((await find(send, 'ann@example.com')).people).toHaveLength(2)
  const { body } = await send('POST', '/people/erase', { email: 'ANN@example.com', everyone: true })
  expect(body.data).toMatchObject({ ...dry.body.data, erased_at: expect.any(String) })
  expect((await find(send, 'ann@example.com')).people).toEqual([])
  expect((await send('GET', `/orders/${other.id}`)).body.data).toMatchObject({ email: 'ann@work.example' })
})

test('what a key learns of a person depends on what it may read', async () => {
  const { organisation, register } = await arrange()
  await register({
    name: 'Petra Klein',
    email: 'petra@example.com',
    attendees: [{ name: 'Ada Chan', email: 'petra@example.com' }],
  })
  const reader = rest(await organisation.key('attendees:read'))
  expect(await find(reader, 'petra@example.com')).toMatchObject({
    people: [{ name: 'Ada Chan', records: [{ object: 'attendee' }] }],
    hidden: 1,
  })
  const foreign = rest(await (await createOrganisation()).key())
  expect((await find(foreign, 'petra@example.com')).people).toEqual([])
  expect((await foreign('POST', '/people/erase', { email: 'petra@example.com' })).status).toBe(404)
  // Of whoever may erase and not read: the receipt names nobody, nor does it say who is a member.
  const writer = rest(await organisation.key('attendees:write'))
  const user = await row<{ id: string }>(
    "insert into auth.users (id, email) values (gen_random_uuid(), 'petra@example.com') returning id",
  )
  await studio.query(
    "insert into public.organisation_members (organisation_id, user_id, role) values ($1, $2, 'owner')",
    [organisation.id, user.id],
  )
  const [blind, seeing] = [writer, rest(await organisation.key('attendees:write', 'attendees:read'))]
  const request = { email: 'petra@example.com', everyone: true, dry_run: true }
  const kept = async (send: Send) =>
    (await send('POST', '/people/erase', request)).body.data.kept.map(({ what }: { what: string }) => what)
  expect(await kept(blind)).toEqual(['orders', 'tickets', 'sent'])
  expect(await kept(seeing)).toEqual(['orders', 'tickets', 'members', 'sent'])
  await studio.query('delete from auth.users where id = $1', [user.id])
})

test.each([
  [{ email: 'nobody' }, 422, 'validation_failed', 'email'],
  [{ email: '' }, 422, 'validation_failed', 'email'],
  [{ email: 'who@example.com', names: [] }, 422, 'validation_failed', 'names'],
  [{ email: 'who@example.com', names: ['A'], everyone: true }, 422, 'validation_failed', 'everyone'],
  [{ email: 'who@example.com' }, 404, 'not_found', 'email'],
  [{ email: 'gone+x@example.com' }, 404, 'not_found', 'email'],
  [{ email: 'jürgen@münchen.example' }, 404, 'not_found', 'email'],
  [{ email: 'erased@erased.invalid', everyone: true }, 404, 'not_found', 'email'],
])('%j is refused', async (body, status, code, param) => {
  const { send, register } = await arrange()
  const { attendees } = await register({ name: 'Gone', email: 'gone@example.com' })
  await send('POST', `/attendees/${attendees[0].id}/erase`)
  expect(problemOf(await send('POST', '/people/erase', body))).toEqual([status, code, param])
})

// In no other test's rows, nor in the words of any table.
const mark = randomUUID().slice(0, 8)
const jane = {
  name: `Wilhelmina${mark} Fleming`,
  email: `Wilhelmina-${mark}@Harvard.example`,
  company: `Observatory ${mark} Ltd`,
}
const more = (n: number) => ({ external_id: `contact-${mark}-${n}`, metadata: { phone: `+1 ${mark} ${n}` } })
const answers = { badge: `Mina ${mark}`, health: `Asthma ${mark}` }

/** A person in every place that there is. Answers what is theirs, and whom they dealt with. */
async function everywhere(organisation: TestOrganisation) {
  const event = await organisation.event({ quantity: 12 })
  const priced = await event.ticketType({ price: 4900 })
  const send = rest(await organisation.key())
  const endpointId = await addEndpoint(organisation.id)
  const write = async (method: string, path: string, body: object = {}, refusal?: string) => {
    const answer = await send(method, path, body, { 'Idempotency-Key': randomUUID() })
    expect([path, answer.body.error?.code]).toEqual([path, refusal])
    return answer.body.data
  }
  const register = (body: object) =>
    write('POST', `/events/${event.id}/registrations`, { ticket_type_id: event.ticketTypeId, ...body })
  for (const [key, own] of [
    ['badge', { at_door: true }],
    ['health', { sensitive: true, delete_after_days: 9 }],
  ] as const)
    await write('POST', `/events/${event.id}/questions`, { key, label: 'Question', ...own })
  // Three tickets: her own, one to be paid, and one that another person bought.
  const own = await register({ ...jane, attendees: [{ ...jane, ...more(1), answers }], ...more(2) })
  const paid = await register({ ...jane, ticket_type_id: priced, payment_method: 'invoice' })
  await write('PATCH', `/orders/${paid.id}`, { payment_due_at: '2030-01-01T00:00:00Z' })
  await write('POST', `/orders/${paid.id}/payments`, { amount: 900, currency: 'EUR', external_reference: 'INV-1' })
  const payment = await write('POST', `/orders/${paid.id}/payments`, { amount: 4000, currency: 'EUR' })
  await write('POST', `/orders/${paid.id}/refunds`, { amount: 100 })
  const gift = await register({
    name: 'Bob Smith',
    email: 'bob@example.com',
    attendees: [jane, { name: 'Ann Lee', email: 'ann@example.com' }],
  })
  // What she bought for somebody else, and a ticket of hers that passed to somebody else.
  const bought = await register({ ...jane, attendees: [{ name: 'Tim Wu', email: 'tim@example.com' }] })
  const passed = await register({
    name: 'Cy Young',
    email: 'cy@example.com',
    attendees: [{ ...jane, ...more(3), answers }],
  })
  const [passedId] = passed.attendees.map(({ id }: { id: string }) => id)
  // A ticket that was deleted.
  const gone = await register({
    name: 'Lee Ray',
    email: 'lee@example.com',
    attendees: [jane, { name: 'Kim Ray', email: 'kim@example.com' }],
  })
  await write('POST', `/attendees/${gone.attendees[0].id}/cancel`)
  await studio.query('delete from public.attendees where id = $1', [gone.attendees[0].id])
  await write('POST', '/check-ins', { event_id: event.id, code: passed.attendees[0].ticket_code })
  const [ownId, giftId] = [own.attendees[0].id, gift.attendees[0].id]

  // Edits, imports, and the door.
  await write('PATCH', `/attendees/${ownId}`, { company: `${jane.company} (Boston)` })
  await write('PATCH', `/attendees/${ownId}`, { company: jane.company, metadata: { phone: `+2 ${mark}` } })
  await write('POST', `/attendees/${ownId}/ticket-email`)
  const attendees = [{ ...jane, external_id: `contact-${mark}-1`, company: `${mark} Inc` }]
  await write('POST', `/events/${event.id}/attendees/import`, { attendees })
  const { id: elsewhere, ticketTypeId } = await organisation.event()
  await write('POST', `/events/${elsewhere}/attendees/import`, { ticket_type_id: ticketTypeId, attendees })
  const scan = { event_id: event.id, code: own.attendees[0].ticket_code }
  const checkIn = await write('POST', '/check-ins', scan)
  await write('POST', '/check-ins', scan, 'already_checked_in')
  await write('POST', `/check-ins/${checkIn.id}/undo`)
  await write('POST', '/check-ins/batch', {
    event_id: event.id,
    scans: [{ scan_id: 's1', code: gift.attendees[0].ticket_code, scanned_at: '2026-01-01T10:00:00Z' }],
  })
  await write('POST', `/attendees/${giftId}/cancel`)
  // Waiting lists: one who waits, one whose offer was accepted, one who was taken off.
  const full = await event.ticketType({ quantity: 1 })
  await register({ ticket_type_id: full, name: 'First', email: 'first@example.com' })
  const join = (body: object) =>
    write('POST', `/events/${event.id}/waiting-list`, { ticket_type_id: full, ...jane, ...body })
  const entry = await join(more(4))
  await write('PATCH', `/waiting-list-entries/${entry.id}`, { company: `${mark} GmbH` })
  await edit('ticket_types', full, 'quantity = 2')
  await write('POST', `/waiting-list-entries/${entry.id}/accept`)
  const left = await join({})
  await write('POST', `/waiting-list-entries/${left.id}/cancel`)
  await join(more(5))

  await studio.query('insert into public.email_opt_outs (event_id, email) values ($1, $2)', [event.id, jane.email])
  // She helps at the door, and her account has no name: now, until she was removed, and until the account was.
  const typed = 'update public.organisation_members set name = $2, email = $3 where user_id = $1'
  for (const gone of ['', 'public.organisation_members where user_id', 'auth.users where id']) {
    const person = await signUp()
    await joinAs(organisation.id, person, 'door')
    await studio.query(typed, [person.sub, jane.name, `other-${mark}@example.com`])
    await studio.query(typed, [person.sub, jane.name, jane.email])
    if (gone) await studio.query(`delete from ${gone} = $1`, [person.sub])
  }
  await enqueued(organisation.id)
  await studio.query(
    `update public.webhook_deliveries d
     set last_response_status = 200, last_response_milliseconds = 1, last_response_body = $2
     from public.notifications n
     where d.webhook_endpoint_id = $1 and n.id = d.notification_id
       and (n.data::text ilike '%' || $3 || '%' or n.data ->> 'order_id' = any ($4))`,
    [endpointId, `Thank you, ${jane.name}`, mark, [paid.id]],
  )
  const { rows: deliveries } = await studio.query<{ id: string; type: string }>(
    `select id, type from public.webhook_deliveries
     where webhook_endpoint_id = $1 and type in ('order.created', 'payment.recorded')`,
    [endpointId],
  )
  for (const { id } of deliveries) await write('POST', `/webhook-deliveries/${id}/redeliver`)
  // E-mails that were sent, that came back, and that failed with the address in the error.
  await studio.query(
    `update public.emails set status = 'sent', next_attempt_at = null, attempts = 1, sent_at = now(), sent_to = $2,
       message = 'Get well, ' || $2
     where organisation_id = $1 and status = 'queued'
       and (attendee_id = any ($3) or order_id = any ($4) or waiting_list_entry_id is not null)`,
    [organisation.id, jane.email, [ownId, passedId], [own.id, paid.id, bought.id]],
  )
  // As a test organisation keeps them, also those to others.
  await studio.query(
    "update public.emails set content = jsonb_build_object('text', $2::text) where organisation_id = $1",
    [organisation.id, `For ${jane.name} and others`],
  )
  await studio.query("update public.attendees set ticket_email_status = 'sent' where id = any ($1)", [
    [ownId, passedId],
  ])
  await studio.query(
    `select api.record_email_event(e.id::text, 'bounced', $2, e.id, e.attempts) from public.emails e
     where e.organisation_id = $1 and e.status = 'sent'`,
    [organisation.id, `550 <${jane.email}> unknown`],
  )
  await write('PATCH', `/attendees/${ownId}`, { company: `${jane.company} again` })
  const cy = {
    name: 'Cy Young',
    email: 'cy@example.com',
    company: null,
    external_id: null,
    metadata: { phone: null },
    answers: { badge: null, health: null },
  }
  await write('PATCH', `/attendees/${passedId}`, { ...cy, reissue_ticket: false })
  await edit('orders', own.id, 'company = $2, name = name', [`${mark} AG`])
  return { event, send, endpointId, payment, passedId, orders: [own, paid, gift, bought, passed] }
}

test('after the erasure of a person no column of the database holds a part of their name, their address or anything else of them', async () => {
  const tracesOf = await tracesFromNow()
  const organisation = await createOrganisation({ isTest: true })
  const { send, orders, passedId } = await everywhere(organisation)
  const before = await tracesOf(mark)
  const { rows: personal } = await studio.query<{ column: string }>(
    `select format('%I.%I.%I', 'public', c.table_name, c.column_name) as column from private.personal_columns c`,
  )
  const logs = ['public.notifications.data', 'public.audit_entries.changes', 'private.idempotency_records.outcome']
  expect(before).toEqual(expect.arrayContaining([...personal.map(({ column }) => bare(column)), ...logs.map(bare)]))

  const figures = () =>
    studio.query(
      `select o.id, o.total::int, o.status, o.amount_paid::int, array_agg(a.status order by a.id) as tickets,
         array_agg(a.checked_in order by a.id) as checked_in
       from public.orders o join public.attendees a on a.order_id = o.id
       where o.id = any ($1) group by o.id order by o.id`,
      [orders.map(({ id }) => id)],
    )
  const untouched = (await figures()).rows
  const found = await find(send, jane.email)
  expect(found.people).toMatchObject([
    { name: jane.name, attendees: 4, orders: 4, waiting_list_entries: 3, members: 1, passed_on: 4 },
  ])
  const dry = await send('POST', '/people/erase', { email: jane.email, dry_run: true })
  expect(await tracesOf(mark)).toEqual(before)

  const news = await listenIn(organisation.id)
  const { status, body } = await send('POST', '/people/erase', { email: jane.email }, { 'Idempotency-Key': 'erase' })
  expect([status, body.data]).toMatchObject([200, { ...dry.body.data, erased_at: expect.any(String) }])
  expect(await tracesOf(mark)).toEqual([])
  expect((await figures()).rows).toEqual(untouched)
  expect(body.data.kept.map(({ what, count }: { what: string; count: number }) => [what, count])).toEqual([
    ['orders', 5],
    ['tickets', 4],
    ['check_ins', 3],
    ['payment_notes', 1],
    ['sent', null],
  ])
  expect((await news()).filter(({ type }) => type === 'attendee.erased')).toHaveLength(4)
  // Whoever has the ticket now, and whoever bought for her, stay.
  expect((await send('GET', `/attendees/${passedId}`)).body.data).toMatchObject({
    name: 'Cy Young',
    email: 'cy@example.com',
  })
  expect((await send('GET', `/orders/${orders[2].id}`)).body.data).toMatchObject({ name: 'Bob Smith' })
  expect((await find(send, jane.email)).people).toEqual([])
  const replayed = await send('POST', '/people/erase', { email: jane.email }, { 'Idempotency-Key': 'erase' })
  expect([replayed.headers.get('idempotent-replayed'), replayed.body.data]).toEqual(['true', body.data])
})

/** As a table is called in the search path. */
const bare = (column: string) => column.replace(/^public\./, '')
