// What somebody with SQL or in the grid may do to what was sent, happened and was changed: cancel an e-mail, and nothing else.

import { expect, test } from 'vitest'
import { asPurge, refusalOf, row, studio } from '../../support/database.ts'
import { truncate } from '../../support/outbox.ts'
import { rolledBack } from '../as-courier.ts'
import { emailFixture } from './email-fixture.ts'

const appendOnly = { sqlstate: 'PT409', code: 'append_only' }

async function arrange() {
  const fixture = await emailFixture()
  return { ...fixture, guest: await fixture.event.guest() }
}

test.each([
  ['emails', 'delete from public.emails where organisation_id = $1'],
  ['notifications', 'delete from public.notifications where organisation_id = $1'],
  ['notifications', `update public.notifications set data = '{"name": "Eve"}' where organisation_id = $1`],
  ['audit_entries', 'delete from public.audit_entries where organisation_id = $1'],
  ['audit_entries', "update public.audit_entries set actor = 'courier' where organisation_id = $1"],
])('a person keeps the rows of %s: %s', async (table, sql) => {
  const { organisation } = await arrange()
  const counted = () =>
    row(`select count(*)::integer from public.${table} where organisation_id = $1`, [organisation.id])
  const before = await counted()
  expect(await refusalOf(studio.query(sql, [organisation.id]))).toMatchObject(appendOnly)
  expect(await counted()).toEqual(before)
  expect(before).not.toEqual({ count: 0 })
})

test.each(['emails', 'notifications cascade', 'audit_entries', 'email_opt_outs'])(
  'a person truncates no log: %s',
  async (tables) => {
    expect(await refusalOf(truncate(`public.${tables}`))).toMatchObject(appendOnly)
  },
)

test('the purge and an erasure that somebody calls with SQL take out of logs what they take', async () => {
  const { organisation, guest } = await arrange()
  await rolledBack(async (client) => {
    await client.query('select public.erase_attendee($1)', [guest.attendeeId])
    const { rows } = await client.query(
      "select data ->> 'name' as name from public.notifications where organisation_id = $1 and type = 'order.created'",
      [organisation.id],
    )
    expect(rows).toEqual([{ name: 'Erased' }])
    expect(await client.query("select current_setting('usher.erasing') as erasing")).toMatchObject({
      rows: [{ erasing: '' }],
    })
  })
  await rolledBack(async (client) => {
    for (const table of ['notifications', 'audit_entries', 'emails']) {
      await client.query(
        `update public.${table} set created_at = now() - interval '9 years' from ${asPurge} where organisation_id = $1`,
        [organisation.id],
      )
    }
    await client.query("update public.emails set status = 'cancelled' where organisation_id = $1", [organisation.id])
    await client.query("select set_config('usher.erasing', '', true), api.purge(3000, 1000, 3000)")
    for (const table of ['notifications', 'audit_entries', 'emails']) {
      const { rows } = await client.query(`select from public.${table} where organisation_id = $1`, [organisation.id])
      expect(rows, table).toEqual([])
    }
  })
})

test('a ticket whose e-mail was cancelled by its status alone says so, and is sent once asked for again', async () => {
  const { guest } = await arrange()
  const emails = async () =>
    (
      await studio.query('select status, claim from public.emails where attendee_id = $1 order by id', [
        guest.attendeeId,
      ])
    ).rows
  await studio.query(
    `update public.emails set claim = gen_random_uuid(), claimed_until = now() + interval '1 minute' where attendee_id = $1`,
    [guest.attendeeId],
  )
  await studio.query("update public.emails set status = 'cancelled' where attendee_id = $1", [guest.attendeeId])
  expect(await emails()).toEqual([{ status: 'cancelled', claim: null }])
  const state = 'select ticket_email_status as state from public.attendees where id = $1'
  expect(await row(state, [guest.attendeeId])).toEqual({ state: 'cancelled' })

  await studio.query("update public.attendees set ticket_email_status = 'queued' where id = $1", [guest.attendeeId])
  expect((await emails()).map(({ status }) => status)).toEqual(['cancelled', 'queued'])
  await studio.query(
    "update public.emails set status = 'sent', next_attempt_at = null where attendee_id = $1 and status = 'queued'",
    [guest.attendeeId],
  )
  expect(
    await refusalOf(
      studio.query("update public.emails set status = 'cancelled' where attendee_id = $1 and status = 'sent'", [
        guest.attendeeId,
      ]),
    ),
  ).toMatchObject({ code: 'invalid_transition', details: { from: 'sent', to: 'cancelled' } })
})

test('whom the e-mail of a change did not reach is told the next from what they knew, and nobody else is', async () => {
  const { event, register, change } = await arrange()
  await register('bob@example.com')
  const settle = (set: string, address: string) =>
    studio.query(
      `update public.emails e set ${set} from public.attendees a
       where a.id = e.attendee_id and a.event_id = $1 and a.email = $2 and e.kind = 'event_changed' and e.status = 'queued'`,
      [event.id, address],
    )
  const known = async () =>
    (
      await studio.query(
        `select a.email, e.previous ->> 'name' as name from public.emails e join public.attendees a on a.id = e.attendee_id
         where a.event_id = $1 and e.kind = 'event_changed' and e.status = 'queued' order by 1`,
        [event.id],
      )
    ).rows.map(({ email, name }) => `${email} ${name}`)
  await change({ name: 'Second', notify: 'mailed' })
  await settle("status = 'cancelled'", 'guest@example.com')
  await settle("status = 'sent', next_attempt_at = null", 'bob@example.com')
  await change({ name: 'Third', notify: 'mailed' })
  expect(await known()).toEqual(['bob@example.com Second', 'guest@example.com Test event'])

  await settle("status = 'failed', next_attempt_at = null", 'guest@example.com')
  await settle("status = 'sent', next_attempt_at = null", 'bob@example.com')
  await change({ name: 'Fourth', notify: 'mailed' })
  expect(await known()).toEqual(['bob@example.com Third', 'guest@example.com Test event'])
})
