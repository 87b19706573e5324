// public.move_event, which Studio and members call: what moves along, and who may move an event.

import { expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'

/** In Berlin, a week before the clocks are put back. */
async function fair() {
  const organisation = await createOrganisation()
  const { id } = await row<{ id: string }>(
    `insert into public.events (organisation_id, name, starts_at, ends_at, timezone)
     values ($1, 'Fair', '2090-10-27 09:00 Europe/Berlin', '2090-10-27 18:00 Europe/Berlin', 'Europe/Berlin') returning id`,
    [organisation.id],
  )
  await studio.query(
    `insert into public.ticket_types (event_id, name, sales_start_at, sales_end_at)
     values ($1, 'Seat', '2020-01-01 00:00 Europe/Berlin', '2090-10-26 12:00 Europe/Berlin')`,
    [id],
  )
  await studio.query(
    `insert into public.promo_codes (event_id, code, percent_off, valid_until)
     values ($1, 'EARLY', 10, '2090-10-20 00:00 Europe/Berlin')`,
    [id],
  )
  await studio.query(
    `insert into public.check_in_points (event_id, name, opens_at, closes_at)
     values ($1, 'Gate', '2090-10-27 08:00 Europe/Berlin', '2090-10-27 18:00 Europe/Berlin')`,
    [id],
  )
  await studio.query("update public.events set status = 'published' where id = $1", [id])
  return id
}

test('an event moves with its doors and what has not begun or ended of sales and codes, and says its start', async () => {
  const id = await fair()
  expect(await row("select public.move_event($1, '2090-11-03 09:30 Europe/Berlin') as start", [id])).toEqual({
    start: '2090-11-03 09:30 Europe/Berlin',
  })
  const { times } = await row<{ times: string[] }>(
    `select array(
       select to_char(m at time zone 'Europe/Berlin', 'YYYY-MM-DD HH24:MI')
       from unnest(array[e.ends_at, t.sales_start_at, t.sales_end_at, c.valid_until, p.opens_at, p.closes_at]) with ordinality u (m, n)
       order by n
     ) as times
     from public.events e
     join public.ticket_types t on t.event_id = e.id
     join public.promo_codes c on c.event_id = e.id
     join public.check_in_points p on p.event_id = e.id
     where e.id = $1`,
    [id],
  )
  expect(times).toEqual([
    '2090-11-03 18:30',
    '2020-01-01 00:00',
    '2090-11-02 12:30',
    '2090-10-27 00:30',
    '2090-11-03 08:30',
    '2090-11-03 18:30',
  ])
})

test('a move that cannot be is refused, and nothing is moved', async () => {
  const id = await fair()
  const move = (of: string, to: string | null) => refusalOf(studio.query('select public.move_event($1, $2)', [of, to]))
  expect(await move(id, null)).toMatchObject({ code: 'validation_failed', param: 'starts_at' })
  expect(await move(id, '9999-12-30 23:00Z')).toMatchObject({ code: 'validation_failed' })
  expect(await move('00000000-0000-0000-0000-000000000000', '2090-11-03Z')).toMatchObject({ code: 'not_found' })
  const undated = await row<{ id: string }>(
    `insert into public.events (organisation_id, name) select organisation_id, 'Some day' from public.events where id = $1 returning id`,
    [id],
  )
  expect(await move(undated.id, '2090-11-03Z')).toMatchObject({ code: 'validation_failed', param: 'starts_at' })
  const { opens } = await row<{ opens: Date }>(
    'select opens_at as opens from public.check_in_points where event_id = $1',
    [id],
  )
  expect(opens.toISOString()).toBe('2090-10-27T06:00:00.000Z')
})

test('nothing that is to come moves into the past, so a move back restores what moved', async () => {
  const id = await fair()
  const times = async () =>
    (
      await studio.query(
        `select e.starts_at, e.ends_at, t.sales_end_at, c.valid_until from public.events e
         join public.ticket_types t on t.event_id = e.id join public.promo_codes c on c.event_id = e.id where e.id = $1`,
        [id],
      )
    ).rows
  const before = await times()
  const move = (to: Date) => studio.query('select public.move_event($1, $2)', [id, to])
  const days = (n: number) => new Date(Date.now() + n * 86_400_000)
  expect(await refusalOf(move(days(-1)))).toMatchObject({ code: 'validation_failed', param: 'starts_at' })
  // The promo code ends a week before the event.
  expect(await refusalOf(move(days(3)))).toMatchObject({ code: 'validation_failed', param: 'valid_until' })
  expect(await times()).toEqual(before)
  await move(days(10))
  await move(new Date('2090-10-27T07:00:00Z'))
  expect(await times()).toEqual(before)
})
