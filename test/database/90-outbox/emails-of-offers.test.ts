// Who holds an offer of the waiting list while the event changes: they read what they would accept, once, whoever is told.

import { expect, test } from 'vitest'
import { studio } from '../../support/database.ts'
import { emailFixture } from './email-fixture.ts'

/** An event in which those named hold an offer each, the last one asked for no e-mails, and Zoe waits. */
async function arrange() {
  const fixture = await emailFixture()
  const { organisation, event, send, sent } = fixture
  const ticketTypeId = await event.ticketType({ quantity: 0 })
  const join = async (name: string, more: Record<string, unknown> = {}) =>
    send('POST', `/events/${event.id}/waiting-list`, {
      ...{ ticket_type_id: ticketTypeId, name, email: `${name.toLowerCase()}@example.com` },
      ...more,
    })
  await join('Ann')
  await join('Bob')
  await join('Sue', { send_email: false })
  // It gives way to whoever has the tables for a moment, as other tests do.
  const offer = (quantity: number) =>
    expect
      .poll(async () => (await send('PATCH', `/ticket-types/${ticketTypeId}`, { quantity })).body.data?.quantity)
      .toBe(quantity)
  await offer(3)
  await join('Zoe')
  await sent()
  /** `kind address` of what waits, and the minutes that it does. */
  const waiting = async () =>
    (
      await studio.query(
        `select e.kind || ' ' || coalesce(a.email, w.email) as who,
           round(extract(epoch from e.next_attempt_at - e.created_at) / 60)::integer as minutes
         from public.emails e
         left join public.attendees a on a.id = e.attendee_id
         left join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
         where e.organisation_id = $1 and e.status = 'queued' and e.kind <> 'ticket' order by 1`,
        [organisation.id],
      )
    ).rows.map(({ who, minutes }) => `${who} ${minutes}`)
  return { ...fixture, join, offer, waiting }
}

test('an offer is sent once more when the event is told to have changed, and waits for further changes', async () => {
  const { change, waiting, sent } = await arrange()
  expect(await change({ name: 'Unsaid', dry_run: true, notify: 'nobody' })).toMatchObject({ told: 0, emails: 0 })
  const said = { emails: 2, told: 2, not_told: [{ reason: 'send_email_false', count: 1 }] }
  expect(await change({ name: 'Second', notify: 'mailed', dry_run: true })).toMatchObject(said)
  expect(await waiting()).toEqual([])
  expect(await change({ name: 'Second', notify: 'mailed' })).toMatchObject(said)
  expect(await change({ name: 'Third', notify: 'mailed' })).toMatchObject(said)
  const both = ['waiting_list_offer ann@example.com 10', 'waiting_list_offer bob@example.com 10']
  expect(await waiting()).toEqual(both)

  await sent()
  expect(await change({ notify: 'everybody' })).toMatchObject({
    ...{ emails: 1, told: 1 },
    not_told: [{ reason: 'told_before', count: 2 }],
  })
  expect(await waiting()).toEqual(['waiting_list_offer sue@example.com 10'])
})

test('an offer that was made since the change, is over, or has been answered is not repeated', async () => {
  const { event, send, change, offer, sent, waiting } = await arrange()
  await change({ name: 'Second' })
  await offer(4)
  await sent()
  const entries = (await send('GET', `/events/${event.id}/waiting-list`)).body.data as { id: string; name: string }[]
  const idOf = (name: string) => entries.find((entry) => entry.name === name)?.id
  await send('POST', `/waiting-list-entries/${idOf('Ann')}/cancel`)
  expect(await change({ notify: 'mailed' })).toMatchObject({ emails: 1, told: 1 })
  expect(await waiting()).toEqual(['waiting_list_offer bob@example.com 10'])
  // What changes next, Zoe has not read either; Bob's offer is over by then.
  await sent()
  await studio.query(
    "update public.waiting_list_entries set offer_expires_at = now() - interval '1 minute' where id = $1",
    [idOf('Bob')],
  )
  expect(await change({ name: 'Third', notify: 'everybody' })).toMatchObject({ emails: 2, told: 2 })
  expect(await waiting()).toEqual(['waiting_list_offer sue@example.com 10', 'waiting_list_offer zoe@example.com 10'])
})

test('one that has not gone out yet is not queued again, and a guest who has an offer is told as a guest', async () => {
  const { event, send, change, waiting } = await arrange()
  await send('POST', `/events/${event.id}/registrations`, {
    ...{ ticket_type_id: event.ticketTypeId, name: 'Ann', email: 'ann@example.com' },
  })
  await studio.query(
    `update public.emails e set status = 'queued', next_attempt_at = e.created_at from public.waiting_list_entries w
     where w.id = e.waiting_list_entry_id and w.event_id = $1 and w.name in ('Ann', 'Bob')`,
    [event.id],
  )
  expect(await change({ name: 'Second', notify: 'mailed' })).toMatchObject({ emails: 2, told: 3 })
  expect(await waiting()).toEqual([
    'event_changed ann@example.com 10',
    'waiting_list_offer ann@example.com 0',
    'waiting_list_offer bob@example.com 0',
  ])
})

test('one that is repeated says what the event was, unless the first was never sent', async () => {
  const { organisation, change } = await arrange()
  await studio.query(
    `update public.emails e set status = 'queued', next_attempt_at = now() from public.waiting_list_entries w
     where w.id = e.waiting_list_entry_id and e.organisation_id = $1 and w.name = 'Bob'`,
    [organisation.id],
  )
  await studio.query("update public.emails set status = 'cancelled' where organisation_id = $1 and status = 'queued'", [
    organisation.id,
  ])
  expect(await change({ name: 'Second', notify: 'mailed' })).toMatchObject({ emails: 2, told: 2 })
  const { rows } = await studio.query(
    `select w.name, private.pending_email_json(e) #>> '{previous,name}' as previous
     from public.emails e join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
     where e.organisation_id = $1 and e.status = 'queued' order by 1`,
    [organisation.id],
  )
  expect(rows).toEqual([
    { name: 'Ann', previous: 'Test event' },
    { name: 'Bob', previous: null },
  ])
})
