// Who switched off the news of an event: what they still get, how they are counted, who may switch it on again, and when
// they are forgotten. The pages are in test/http/opt-out-page.test.ts.

import { expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { pendingChange } from '../../support/opt-outs.ts'
import type { TestOrganisation } from '../../support/organisation.ts'
import { actAs } from '../actor.ts'
import { rolledBack } from '../as-courier.ts'
import { join, signUp } from '../tenant-fixture.ts'
import { dueAlone, emailFixture } from './email-fixture.ts'

const switchEmails = (attendeeId: string, on: boolean) =>
  studio.query(
    `select api.switch_ticket_emails(a.ticket_token, $2)
     from (select set_config('request.jwt.claims', '{"role": "gateway"}', true) offset 0) as_gateway
     cross join public.attendees a
     where a.id = $1`,
    [attendeeId, on],
  )

const optOutsOf = async (organisation: TestOrganisation): Promise<string[]> =>
  (
    await studio.query('select email_lower from public.email_opt_outs where organisation_id = $1 order by 1', [
      organisation.id,
    ])
  ).rows.map(({ email_lower }) => email_lower)

const kindsOf = async (organisation: TestOrganisation) =>
  (
    await studio.query(
      `select e.kind || ' ' || a.email as told from public.emails e join public.attendees a on a.id = e.attendee_id
       where e.organisation_id = $1 and e.kind <> 'ticket' order by e.id`,
      [organisation.id],
    )
  ).rows.map(({ told }) => told)

test('whoever switched off is told of no change, whomever it is told to, is counted, and is told of the cancellation', async () => {
  const { organisation, event, send, register, change } = await emailFixture()
  const quiet = await register('Quiet@example.com')
  // Another ticket of the address, and one that nobody e-mails.
  await register('quiet@example.com', { send_email: false })
  await register('ada@example.com')
  await register('bob@example.com', { send_email: false })
  await switchEmails(quiet.attendeeId, false)

  const switchedOff = { reason: 'switched_off', count: 2 }
  expect(await change({ name: 'Second', notify: 'mailed' })).toMatchObject({
    ...{ emails: 1, told: 1 },
    not_told: [switchedOff, { reason: 'send_email_false', count: 1 }],
  })
  expect(await change({ notify: 'everybody' })).toMatchObject({
    ...{ emails: 2, told: 1 },
    not_told: [switchedOff, { reason: 'told_before', count: 1 }],
  })
  expect(await kindsOf(organisation)).toEqual(['event_changed ada@example.com', 'event_changed bob@example.com'])

  await switchEmails(quiet.attendeeId, true)
  // Bob reads it, too: his e-mail waits.
  expect(await change({ name: 'Third', notify: 'mailed' })).toMatchObject({ emails: 3, told: 4 })
  await switchEmails(quiet.attendeeId, false)
  const cancelled = await send('POST', `/events/${event.id}/cancel`, { notify: 'everybody' })
  expect(cancelled.body.effect).toMatchObject({ emails: 3, told: 4, not_told: [] })
})

test('an e-mail that waits when its address switches off is neither sent nor counted', async () => {
  const { organisation, register, change } = await emailFixture()
  const { attendeeId: id } = await register('ada@example.com')
  expect(await change({ name: 'Second', notify: 'mailed' })).toMatchObject({ emails: 1, told: 1 })
  await switchEmails(id, false)
  expect(await change({ name: 'Third', notify: 'mailed' })).toMatchObject({
    ...{ emails: 0, told: 0 },
    not_told: [{ reason: 'switched_off', count: 1 }],
  })
  await rolledBack(async (client, asCourier) => {
    await dueAlone(client, organisation)
    const claimed = (await asCourier('select api.claim_emails(10)')) as { kind: string }[]
    expect(claimed.map(({ kind }) => kind)).toEqual(['ticket'])
    const { rows } = await client.query(
      "select status from public.emails where organisation_id = $1 and kind = 'event_changed'",
      [organisation.id],
    )
    expect(rows).toEqual([{ status: 'cancelled' }])
  })
})

test('an address is quiet at one event of one organisation', async () => {
  const [here, elsewhere] = [await emailFixture(), await emailFixture()]
  const next = await here.organisation.event()
  const { attendeeId: id } = await here.register('ada@example.com')
  await elsewhere.register('ada@example.com')
  const guest = { ticket_type_id: next.ticketTypeId, name: 'Ada', email: 'ada@example.com' }
  await here.send('POST', `/events/${next.id}/registrations`, guest)
  await switchEmails(id, false)
  const told = async ({ send }: typeof here, eventId: string) =>
    (await send('PATCH', `/events/${eventId}`, { name: 'Another', notify: 'mailed' })).body.effect.told
  expect([
    await told(here, here.event.id),
    await told(here, next.id),
    await told(elsewhere, elsewhere.event.id),
  ]).toEqual([0, 1, 1])
})

test('an organiser sees who switched off, may note it for a guest, and switches nobody on', async () => {
  const { organisation, event, register } = await emailFixture()
  await register('ada@example.com')
  await studio.query("insert into public.email_opt_outs (event_id, email) values ($1, 'Ada@Example.com')", [event.id])
  expect(await optOutsOf(organisation)).toEqual(['ada@example.com'])
  expect(
    await refusalOf(
      studio.query("insert into public.email_opt_outs (event_id, email) values ($1, 'adda@example.com')", [event.id]),
    ),
  ).toMatchObject({ code: 'validation_failed', param: 'email' })
  const refused = { sqlstate: 'PT409', code: 'read_only_field', param: 'email' }
  for (const statement of [
    'delete from public.email_opt_outs where event_id = $1',
    "update public.email_opt_outs set email = 'bob@example.com' where event_id = $1",
  ])
    expect(await refusalOf(studio.query(statement, [event.id]))).toMatchObject(refused)

  for (const [role, sees] of [
    ['manager', 1],
    ['viewer', 0],
  ] as const) {
    const member = await signUp()
    await join(organisation.id, member, role)
    await actAs('authenticated', member, async ({ rows, attempt }) => {
      expect(await rows('select email from public.email_opt_outs')).toHaveLength(sees)
      expect(await attempt('delete from public.email_opt_outs')).toBe('42501')
    })
  }
  expect(await optOutsOf(organisation)).toEqual(['ada@example.com'])
})

test('it is forgotten with the last ticket that has the address: erased, corrected or deleted', async () => {
  const { organisation, send, register } = await emailFixture()
  const [first, second] = [await register('ada@example.com'), await register('ada@example.com')]
  const corrected = await register('typo@example.com')
  const deleted = await register('gone@example.com')
  for (const { attendeeId } of [first, corrected, deleted]) await switchEmails(attendeeId, false)
  await send('POST', `/attendees/${first.attendeeId}/erase`)
  await send('PATCH', `/attendees/${corrected.attendeeId}`, { company: 'NASA' })
  expect(await optOutsOf(organisation)).toEqual(['ada@example.com', 'gone@example.com', 'typo@example.com'])

  await send('POST', `/attendees/${second.attendeeId}/erase`)
  await send('PATCH', `/attendees/${corrected.attendeeId}`, { email: 'right@example.com' })
  await send('POST', `/attendees/${deleted.attendeeId}/cancel`)
  await studio.query('delete from public.attendees where id = $1', [deleted.attendeeId])
  expect(await optOutsOf(organisation)).toEqual([])
})

test('one e-mail names every ticket that its address has at the event, in whatever order', async () => {
  const { organisation, event, send, register, change } = await emailFixture()
  const supporter = await event.ticketType({ name: 'Supporter' })
  const priced = await event.ticketType({ name: 'Priced', price: 4900 })
  const first = await register('Desk@example.com')
  const silent = await register('desk@example.com', { name: 'Bob', ticket_type_id: supporter, send_email: false })
  const unpaid = await register('desk@example.com', { name: 'Eve', ticket_type_id: priced, payment_method: 'invoice' })
  const gone = await register('desk@example.com', { name: 'Gone' })
  await send('POST', `/attendees/${gone.attendeeId}/cancel`)
  const next = await organisation.event()
  const guest = { ticket_type_id: next.ticketTypeId, name: 'Next', email: 'desk@example.com' }
  await send('POST', `/events/${next.id}/registrations`, guest)

  const holders = async (kind: string) => {
    const { rows } = await studio.query(
      `select private.pending_email_json(e) -> 'holders' as holders from public.emails e
       where e.organisation_id = $1 and e.kind = $2`,
      [organisation.id, kind],
    )
    expect(rows).toHaveLength(1)
    return rows[0].holders as { name: string; ticket_type: string; reference: string; status: string }[]
  }
  const referenceOf = async ({ orderId }: { orderId: string }) =>
    (await row<{ reference: string }>('select reference from public.orders where id = $1', [orderId])).reference
  expect(await change({ name: 'Another', notify: 'mailed' })).toMatchObject({ emails: 1, told: 3 })
  const all = [
    { name: 'Ada', ticket_type: 'General', reference: await referenceOf(first), status: 'active' },
    { name: 'Bob', ticket_type: 'Supporter', reference: await referenceOf(silent), status: 'active' },
    { name: 'Eve', ticket_type: 'Priced', reference: await referenceOf(unpaid), status: 'awaiting_payment' },
  ]
  expect(await holders('event_changed')).toMatchObject(all)

  await send('POST', `/events/${event.id}/cancel`, { notify: 'mailed' })
  expect(await holders('event_cancelled')).toMatchObject(all.map((held) => ({ ...held, status: 'cancelled' })))
})

test('of an address with more than a hundred tickets a hundred and one are read, and only mailed tickets are linked', async () => {
  const { organisation, event, send, register, change } = await emailFixture()
  await register('desk@example.com', { send_email: false })
  const attendees = Array.from({ length: 50 }, (_, i) => ({ name: `Guest ${i}`, email: 'desk@example.com' }))
  for (let i = 0; i < 3; i++)
    await send('POST', `/events/${event.id}/registrations`, {
      ...{ ticket_type_id: event.ticketTypeId, name: 'Desk', email: 'desk@example.com', attendees },
    })
  expect(await change({ name: 'Another', notify: 'mailed' })).toMatchObject({ emails: 1, told: 151 })
  const { attendee_id } = await row<{ attendee_id: string }>(
    "select attendee_id from public.emails where organisation_id = $1 and kind = 'event_changed'",
    [organisation.id],
  )
  const { holders } = await pendingChange(attendee_id, 'https://usher.example')
  expect(holders).toHaveLength(101)
  expect(holders.map(({ ticket_url }) => ticket_url === null)).toEqual(holders.map((_, i) => i === 0))
})
