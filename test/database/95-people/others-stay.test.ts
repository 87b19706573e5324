// What an erasure leaves to others: the e-mails of an address that several have, their place on the waiting list, and locks of what is not
// erased.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint, enqueued } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'

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

/** Does `work` in an open transaction, starts `other`, and goes on once that is over or waits for the transaction. */
async function beside<T>(
  work: (client: pg.PoolClient) => Promise<unknown>,
  other: () => Promise<T>,
  then: (client: pg.PoolClient) => Promise<unknown> = async () => {},
): Promise<T> {
  return during(async (client) => {
    const { pid } = (await client.query('select pg_backend_pid() as pid')).rows[0]
    await work(client)
    let over = false
    const answered = other().finally(() => {
      over = true
    })
    const isWaitedFor = async () =>
      over ||
      (await studio.query('select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))', [pid])).rowCount !== 0
    await expect.poll(isWaitedFor).toBe(true)
    await then(client)
    await client.query('commit')
    return answered
  })
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
  const erased = await beside(
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

test('an erasure that others keep waiting for switched off e-mails says that it may be sent again', async () => {
  const { event, send, ticket } = await arrange()
  await ticket('Bob', 'bob@example.com')
  await during(async (client) => {
    await client.query("select set_config('usher.switches_on', 'on', true)")
    await client.query("insert into public.email_opt_outs (event_id, email) values ($1, 'bob@example.com')", [event.id])
    await client.query("update public.email_opt_outs set email = 'ann@example.com' where event_id = $1", [event.id])
    await client.query('commit')
  })
  const erase = () => send('POST', '/people/erase', { email: 'ann@example.com' })
  const kept = await during(async (client) => {
    await client.query('select from public.email_opt_outs where event_id = $1 for update', [event.id])
    return erase()
  })
  expect(kept.body.error).toMatchObject({ code: 'temporarily_unavailable', retryable: true })
  expect((await erase()).status).toBe(200)
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
    const erased = await beside(
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

test('an erasure in parts locks the endpoints in the order of their ids, as the courier does', async () => {
  const { organisation, event } = await arrange()
  const [first, second] = [await addEndpoint(organisation.id), await addEndpoint(organisation.id)]
  expect([second, first].toSorted()).toEqual([first, second])
  await studio.query(
    `insert into public.registrations (event_id, ticket_type_id, name, email)
     select $1, $2, 'Ann', 'ann@example.com' from generate_series(1, 230)`,
    [event.id, event.ticketTypeId],
  )
  await enqueued(organisation.id)
  // The first has only what the second part is about.
  await studio.query(
    `delete from public.webhook_deliveries d using public.notifications n
     where d.webhook_endpoint_id = $1 and n.id = d.notification_id and n.subject_id in (
       select o.id from public.orders o where o.organisation_id = $2 order by o.id limit 200
     )`,
    [first, organisation.id],
  )
  const lock = (id: string) => (client: pg.PoolClient) =>
    client.query('select from public.webhook_endpoints where id = $1 for no key update', [id])
  const erased = await beside(
    lock(first),
    () =>
      row("select public.erase_person('ann@example.com', organisation_id => $1) ->> 'attendees' as attendees", [
        organisation.id,
      ]),
    lock(second),
  )
  expect(erased).toEqual({ attendees: '230' })
})

test('which e-mails are of somebody who was erased costs no more where many were erased at another event', async () => {
  const { organisation, event, write, ticket } = await arrange()
  await ticket('Ann', 'ann@example.com')
  await write('PATCH', `/events/${event.id}`, { name: 'Another', notify: 'mailed' })
  const other = await organisation.event()
  await during(async (client) => {
    const { rows: emails } = await client.query(
      "select id from public.emails where organisation_id = $1 and kind = 'event_changed'",
      [organisation.id],
    )
    const pages = async () => {
      const call = `select api.erased_emails('{${emails[0].id}}')`
      await client.query(call)
      const { rows } = await client.query(`explain (analyze, buffers, format json) ${call}`)
      const { Plan: plan } = rows[0]['QUERY PLAN'][0]
      return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    }
    const before = await pages()
    await client.query(
      `insert into public.registrations (event_id, ticket_type_id, name, email)
       select $1, $2, 'Bob', 'bob@example.com' from generate_series(1, 150)`,
      [other.id, other.ticketTypeId],
    )
    await client.query('select public.erase_person($1, organisation_id => $2)', ['bob@example.com', organisation.id])
    expect(await pages()).toBeLessThan(before + 10)
  })
})
