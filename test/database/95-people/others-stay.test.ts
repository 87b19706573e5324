// What an erasure leaves to others: the e-mails of an address that several have, their place on the waiting list, and locks of what is not
// erased.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import { meanwhile } from '../meanwhile.ts'

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key())
  const write = async (method: string, path: string, body: object = {}) => {
    const answer = await send(method, path, body, { 'Idempotency-Key': randomUUID() })
    expect([path, answer.body.error]).toEqual([path, undefined])
    return answer.body.data
  }
  const register = (body: object) =>
    write('POST', `/events/${event.id}/registrations`, { ticket_type_id: event.ticketTypeId, ...body })
  const ticket = async (name: string, email: string) =>
    (await register({ name, email })).attendees[0] as { id: string; order_id: string }
  return { organisation, event, send, write, register, ticket }
}

/** Who will be told what, of an event: the kind, the name that its e-mail begins with, and the address. */
async function pendingOf(eventId: string): Promise<string[]> {
  const { rows } = await studio.query<{ told: string }>(
    `select concat_ws(' ', e.kind, a.name, a.email) as told
     from public.emails e join public.attendees a on a.id = e.attendee_id
     where a.event_id = $1 and e.kind <> 'ticket' and e.status = 'queued' order by 1`,
    [eventId],
  )
  return rows.map(({ told }) => told)
}

test.each(['event_changed', 'event_cancelled', 'ticket_cancelled'])(
  'where one of an address is erased or leaves it, the others are told all the same: %s',
  async (kind) => {
    const { event, write, register } = await arrange()
    const guests = [
      { name: 'Ann', email: 'desk@example.com' },
      { name: 'Bob', email: 'Desk@example.com' },
      { name: 'Cleo', email: 'cleo@example.com' },
    ]
    const order = await register({ name: 'Buyer', email: 'buyer@example.com', attendees: guests })
    const ann = order.attendees.find(({ name }: { name: string }) => name === 'Ann')
    if (kind === 'ticket_cancelled') await write('POST', `/orders/${order.id}/cancel`, { notify: 'mailed' })
    else if (kind === 'event_changed')
      await write('PATCH', `/events/${event.id}`, { name: 'Another', notify: 'mailed' })
    else await write('POST', `/events/${event.id}/cancel`, { notify: 'mailed' })
    expect(await pendingOf(event.id)).toEqual([`${kind} Ann desk@example.com`, `${kind} Cleo cleo@example.com`])

    await write('PATCH', `/attendees/${ann.id}`, { email: 'ann@example.com' })
    const others = [`${kind} Bob Desk@example.com`, `${kind} Cleo cleo@example.com`]
    expect(await pendingOf(event.id)).toEqual([`${kind} Ann ann@example.com`, ...others])
    await write('PATCH', `/attendees/${ann.id}`, { email: 'cleo@example.com' })
    await write('POST', '/people/erase', { email: 'cleo@example.com', names: ['Cleo'] })
    expect(await pendingOf(event.id)).toContain(`${kind} Ann cleo@example.com`)
    await write('POST', '/people/erase', { email: 'cleo@example.com' })
    expect(await pendingOf(event.id)).toEqual([`${kind} Bob Desk@example.com`])
  },
)

test('of two tickets that are erased at once, the address that switched off its e-mails is forgotten', async () => {
  const { organisation, event, send, ticket } = await arrange()
  const [first, second] = [await ticket('Ann', 'ann@example.com'), await ticket('Ann', 'ann@example.com')]
  await studio.query("insert into public.email_opt_outs (event_id, email) values ($1, 'ann@example.com')", [event.id])
  const erased = await meanwhile(
    (client) => client.query('select public.erase_attendee($1)', [first.id]),
    () => send('POST', `/attendees/${second.id}/erase`),
  )
  expect(erased.status).toBe(200)
  const { rowCount } = await studio.query('select from public.email_opt_outs where organisation_id = $1', [
    organisation.id,
  ])
  expect(rowCount).toBe(0)
})

test('an address that has nothing but switched off e-mails is erased, and only then not found', async () => {
  const { organisation, event, ticket } = await arrange()
  await ticket('Bob', 'bob@example.com')
  await during(async (client) => {
    // As erasures left it that ran beside each other. Nobody sees it: it is rolled back. Without a lock of the table, for which erasures of
    // other tests would wait.
    await client.query("select set_config('usher.switches_on', 'on', true)")
    await client.query("insert into public.email_opt_outs (event_id, email) values ($1, 'bob@example.com')", [event.id])
    await client.query("update public.email_opt_outs set email = 'ann@example.com' where event_id = $1", [event.id])
    const erase = () =>
      client.query("select public.erase_person('ANN@example.com', organisation_id => $1) as receipt", [organisation.id])
    expect((await erase()).rows).toMatchObject([{ receipt: { people: 0, attendees: 0 } }])
    expect(await refusalOf(erase())).toMatchObject({ sqlstate: 'PT404', param: 'email' })
  })
})

test('erasing the person of a ticket takes nobody else of the address off the waiting list', async () => {
  const { event, write, ticket } = await arrange()
  const full = await event.ticketType({ quantity: 1 })
  const also = await event.ticketType({ quantity: 1 })
  for (const ticketTypeId of [full, also]) await event.guest({ ticketTypeId })
  const join = async (ticketTypeId: string, name: string) =>
    (
      await write('POST', `/events/${event.id}/waiting-list`, {
        ...{ ticket_type_id: ticketTypeId, name, email: 'desk@example.com' },
      })
    ).id as string
  const [bob, ann] = [await join(full, 'Bob'), await join(also, 'ANN')]
  const { id } = await ticket('Ann', 'desk@example.com')
  expect(await write('POST', `/attendees/${id}/erase`)).toMatchObject({ waiting_list_entries: 1 })
  const entry = (of: string) => row('select name, status from public.waiting_list_entries where id = $1', [of])
  expect([await entry(bob), await entry(ann)]).toEqual([
    { name: 'Bob', status: 'waiting' },
    { name: 'Erased', status: 'cancelled' },
  ])
})

test('an erasure waits for no webhook endpoint that has nothing of the person to send', async () => {
  const { organisation, send, ticket } = await arrange()
  await addEndpoint(organisation.id)
  await ticket('Ann', 'ann@example.com')
  const other = await addEndpoint(organisation.id)
  const { status } = await during(async (client) => {
    await client.query('select from public.webhook_endpoints where id = $1 for update', [other])
    return send('POST', '/people/erase', { email: 'ann@example.com' })
  })
  expect(status).toBe(200)
})

// In SQL, for the API tries what ended in a deadlock once more.
test.each(["public.erase_person('ann@example.com', organisation_id => organisation_id)", 'public.erase_attendee(id)'])(
  'tickets of an order whose contact is erased are locked in the order of their ids: %s',
  async (erase) => {
    const { register } = await arrange()
    const ann = { name: 'Ann', email: 'ann@example.com' }
    const { attendees } = await register({ ...ann, attendees: [{ name: 'Bob', email: 'bob@example.com' }, ann] })
    const idOf = (name: string) => attendees.find((attendee: { name: string }) => attendee.name === name).id as string
    const ids = [idOf('Bob'), idOf('Ann')]
    expect(ids).toEqual(ids.toSorted())
    const lock = (id?: string) => (client: pg.PoolClient) =>
      client.query('select from public.attendees where id = $1 for no key update', [id])
    const erased = await meanwhile(
      lock(ids[0]),
      () => row(`select ${erase} ->> 'attendees' as attendees from public.attendees where id = $1`, [ids[1]]),
      lock(ids[1]),
    )
    expect(erased).toEqual({ attendees: '1' })
  },
)

test('e-mails that name others of an address are deleted from the folder with whoever is erased', async () => {
  const { event, write, ticket } = await arrange()
  await ticket('Ann', 'desk@example.com')
  const bob = await ticket('Bob', 'desk@example.com')
  await write('PATCH', `/events/${event.id}`, { name: 'Another', notify: 'mailed' })
  const elsewhere = await arrange()
  await elsewhere.ticket('Ann', 'desk@example.com')
  await elsewhere.write('PATCH', `/events/${elsewhere.event.id}`, { name: 'Another', notify: 'mailed' })
  const changes = async (eventId: string) =>
    (
      await row<{ ids: string[] }>(
        `select array_agg(e.id) as ids from public.emails e join public.attendees a on a.id = e.attendee_id
         where a.event_id = $1 and e.kind = 'event_changed'`,
        [eventId],
      )
    ).ids
  const [ids, others] = [await changes(event.id), await changes(elsewhere.event.id)]
  expect([ids.length, others.length]).toEqual([1, 1])
  const erased = async () =>
    (await row<{ erased: string[] }>('select api.erased_emails($1) as erased', [[...ids, ...others]])).erased
  expect(await erased()).toEqual([])
  await write('POST', `/attendees/${bob.id}/erase`)
  expect(await erased()).toEqual(ids)
})
