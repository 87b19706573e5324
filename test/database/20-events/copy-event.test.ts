// public.copy_event, which Studio and members call: what a copy has, at which times, and who may make one.

import { expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'

/** In Berlin, in winter: 5 March 2027, 18:00 to 2 a.m. */
async function ball() {
  const organisation = await createOrganisation()
  const { id } = await row<{ id: string }>(
    `insert into public.events (organisation_id, name, starts_at, ends_at, timezone, currency, external_id, venue_city, capacity, metadata)
     values ($1, 'Ball', '2027-03-05 18:00 Europe/Berlin', '2027-03-06 02:00 Europe/Berlin', 'Europe/Berlin', 'CHF', $2, 'Bern', 90, '{"a": 1}')
     returning id`,
    [organisation.id, `ball-${organisation.slug}`],
  )
  const type = async (name: string, more = 'null, null, null') =>
    (
      await row<{ id: string }>(
        `insert into public.ticket_types (event_id, name, price, external_id, sales_start_at, sales_end_at)
         values ($1, $2, 2500, ${more}) returning id`,
        [id, name],
      )
    ).id
  const early = await type(
    'Early',
    `'x-${organisation.slug}', '2027-02-01 00:00 Europe/Berlin', '2027-03-03 18:00 Europe/Berlin'`,
  )
  const old = await type('Old')
  const door = await type('Door')
  await studio.query("update public.ticket_types set status = 'archived' where id = $1", [old])
  await studio.query(
    `insert into public.promo_codes (event_id, code, percent_off, ticket_type_ids, valid_until) values
       ($1, 'EARLY', 10, array[$2, $3]::uuid[], '2027-03-03 18:00 Europe/Berlin'), ($1, 'OLD', 10, array[$3]::uuid[], null)`,
    [id, early, old],
  )
  await studio.query(
    "insert into public.promo_codes (event_id, code, percent_off, status) values ($1, 'OFF', 10, 'disabled')",
    [id],
  )
  await studio.query(
    `insert into public.check_in_points (event_id, name, ticket_type_ids, opens_at, admission)
     values ($1, 'Gate', array[$2]::uuid[], '2027-03-05 17:00 Europe/Berlin', 're_entry')`,
    [id, door],
  )
  await studio.query("update public.events set status = 'published' where id = $1", [id])
  return { organisation, id }
}

const copied = (id: string) =>
  row(
    `select e.name, e.slug like 'ball%' as has_slug, e.status, e.external_id, e.currency, e.venue_city, e.capacity, e.metadata,
       array(
         select format('%s %s %s %s %s', t.name, t.price, t.external_id, t.sales_start_at at time zone e.timezone, t.sales_end_at at time zone e.timezone)
         from public.ticket_types t where t.event_id = e.id order by t.name
       ) as ticket_types,
       array(
         select format('%s %s until %s for %s', c.code, c.percent_off, c.valid_until at time zone e.timezone, array(
           select t.name from public.ticket_types t where t.id = any (c.ticket_type_ids) and t.event_id = e.id
         ))
         from public.promo_codes c where c.event_id = e.id
       ) as promo_codes,
       array(
         select format('%s %s from %s for %s', p.name, p.admission, p.opens_at at time zone e.timezone, array(
           select t.name from public.ticket_types t where t.id = any (p.ticket_type_ids) and t.event_id = e.id
         ))
         from public.check_in_points p where p.event_id = e.id
       ) as points,
       format('%s to %s', e.starts_at at time zone e.timezone, e.ends_at at time zone e.timezone) as times
     from public.events e where e.id = $1`,
    [id],
  )

test('a copy in summer has the same hours on the same days before it, and what can be used', async () => {
  const { id } = await ball()
  const { copy } = await row<{ copy: string }>(
    "select public.copy_event($1, '2027-06-11 18:00 Europe/Berlin', 'Ball in June') as copy",
    [id],
  )
  expect(await copied(copy)).toEqual({
    name: 'Ball in June',
    has_slug: true,
    status: 'draft',
    external_id: null,
    currency: 'CHF',
    venue_city: 'Bern',
    capacity: 90,
    metadata: { a: 1 },
    times: '2027-06-11 18:00:00 to 2027-06-12 02:00:00',
    ticket_types: ['Door 2500   ', 'Early 2500  2027-05-10 00:00:00 2027-06-09 18:00:00'],
    promo_codes: ['EARLY 10.00 until 2027-06-09 18:00:00 for {Early}'],
    points: ['Gate re_entry from 2027-06-11 17:00:00 for {Door}'],
  })
})

test('a copy at another hour moves its times by as much, and has the name of the event if none is given', async () => {
  const { id } = await ball()
  const { copy } = await row<{ copy: string }>(
    "select public.copy_event($1, '2027-03-28 20:30 Europe/Berlin') as copy",
    [id],
  )
  expect(await copied(copy)).toMatchObject({
    name: 'Ball',
    times: '2027-03-28 20:30:00 to 2027-03-29 04:30:00',
    points: ['Gate re_entry from 2027-03-28 19:30:00 for {Door}'],
  })
})

test('a copy says when it starts on the clock of its event, whatever the zone of the session', async () => {
  const { id } = await ball()
  const notices: (string | undefined)[] = []
  await during(async (client) => {
    const listen = ({ message }: { message: string | undefined }) => notices.push(message)
    client.on('notice', listen)
    await client.query("set local timezone to 'UTC'")
    await client.query("select public.copy_event($1, '2027-12-16 09:00')", [id])
    client.off('notice', listen)
  })
  expect(notices).toEqual(['The copy starts at 2027-12-16 10:00 Europe/Berlin.'])
})

test('what the tables refuse is refused as by them, and nothing is left', async () => {
  const { id, organisation } = await ball()
  const copy = (startsAt: string | null, name: string) =>
    refusalOf(studio.query('select public.copy_event($1, $2, $3)', [id, startsAt, name]))
  expect(await copy(null, 'X')).toMatchObject({ code: 'validation_failed', param: 'starts_at' })
  expect(await copy('2027-06-11 18:00Z', ' ')).toMatchObject({ code: 'validation_failed', param: 'name' })
  expect(await row('select count(*)::int from public.events where organisation_id = $1', [organisation.id])).toEqual({
    count: 1,
  })
})
