// Supabase Realtime is not part of the embedded stack. Here its functions and its table are defined as the documentation of Supabase has
// them, in a transaction that is rolled back; what is sent is kept.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'

async function whereRealtimeIs<T>(
  body: string,
  work: (query: (sql: string, values?: unknown[]) => Promise<unknown[]>) => Promise<T>,
) {
  const client = await studio.connect()
  try {
    await client.query(`begin;
      create schema realtime;
      create table realtime.sent (payload jsonb, event text, topic text, private boolean);
      create table realtime.messages (topic text not null, extension text not null);
      alter table realtime.messages enable row level security;
      grant usage on schema realtime to authenticated;
      grant select on realtime.messages to authenticated;
      create function realtime.topic() returns text language sql stable as $$ select current_setting('realtime.topic', true) $$;
      grant execute on function realtime.topic to authenticated;
      create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
      language plpgsql as $$ begin ${body} end $$;`)
    return await work(async (sql, values = []) => (await client.query(sql, values)).rows)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

test('an arrival is broadcast to who may listen to the event, without the code; a rejection is not', async () => {
  const event = await (await createOrganisation()).event()
  const guest = await event.guest()
  await whereRealtimeIs('insert into realtime.sent values (payload, event, topic, private);', async (query) => {
    const scan = 'insert into public.check_ins (event_id, code) values ($1, $2)'
    await query(scan, [event.id, guest.code])
    await query(scan, [event.id, guest.code])
    expect(await query('select * from realtime.sent')).toEqual([
      {
        topic: `arrivals:${event.id}`,
        event: 'arrivals',
        private: true,
        payload: {
          event_id: event.id,
          arrivals: [expect.objectContaining({ attendee_id: guest.attendeeId, name: 'Guest', company: null })],
        },
      },
    ])
    expect(JSON.stringify(await query('select payload from realtime.sent'))).not.toContain(guest.code)
  })
})

test('an exit and an undone entry are broadcast, so that a screen can count who is in', async () => {
  const event = await (await createOrganisation()).event()
  const guest = await event.guest()
  await whereRealtimeIs('insert into realtime.sent values (payload, event, topic, private);', async (query) => {
    await query("insert into public.check_in_points (event_id, name, admission) values ($1, 'Gate', 're_entry')", [
      event.id,
    ])
    const scan = `insert into public.check_ins (event_id, code, direction, check_in_point_id)
      select $1, $2, $3, id from public.check_in_points where event_id = $1 returning id`
    await query(scan, [event.id, guest.code, 'entry'])
    await query(scan, [event.id, guest.code, 'exit'])
    const [again] = (await query(scan, [event.id, guest.code, 'entry'])) as { id: string }[]
    await query('update public.check_ins set undone_at = now() where id = $1', [again?.id])
    const sent = (await query('select event, payload from realtime.sent')) as { event: string; payload: object }[]
    expect(sent.map(({ event }) => event)).toEqual(['arrivals', 'exits', 'arrivals', 'undone'])
    expect(sent.at(-1)?.payload).toMatchObject({
      event_id: event.id,
      undone: [{ check_in_id: again?.id, attendee_id: guest.attendeeId, direction: 'entry' }],
    })
  })
})

test('many scans at once are broadcast in messages that Realtime takes', async () => {
  const event = await (await createOrganisation()).event()
  await whereRealtimeIs('insert into realtime.sent values (payload, event, topic, private);', async (query) => {
    await query(
      `with "order" as (
         insert into public.orders (event_id, name, email) values ($1, 'Buyer', 'buyer@example.com') returning id
       )
       insert into public.attendees (order_id, ticket_type_id, name, company, email)
       select id, $2, repeat('\u{1F389}', 200), repeat('"', 200), 'guest@example.com' from "order", generate_series(1, 250)`,
      [event.id, event.ticketTypeId],
    )
    await query(
      'insert into public.check_ins (event_id, attendee_id) select event_id, id from public.attendees where event_id = $1',
      [event.id],
    )
    const sent = (await query(
      "select jsonb_array_length(payload -> 'arrivals') as people, octet_length(payload::text) as bytes from realtime.sent",
    )) as { people: number; bytes: number }[]
    expect(sent.map(({ people }) => people)).toEqual([100, 100, 50])
    expect(Math.max(...sent.map(({ bytes }) => bytes))).toBeLessThan(256_000)
  })
})

test('members may listen to broadcasts of their events, once Realtime is there and set up', async () => {
  const [organisation, another] = [await createOrganisation(), await createOrganisation()]
  const [ours, theirs] = [await organisation.event(), await another.event()]
  await whereRealtimeIs('', async (query) => {
    const userId = randomUUID()
    await query('insert into auth.users (id) values ($1)', [userId])
    await query("insert into public.organisation_members (organisation_id, user_id, role) values ($1, $2, 'door')", [
      organisation.id,
      userId,
    ])
    await query("insert into realtime.messages values ('x', 'broadcast'), ('x', 'presence')")
    await query("select set_config('request.jwt.claims', $1, true)", [
      JSON.stringify({ role: 'authenticated', sub: userId }),
    ])
    const heard = async (eventId: string) => {
      await query("select set_config('realtime.topic', $1, true), set_config('role', 'authenticated', true)", [
        `arrivals:${eventId}`,
      ])
      const rows = await query('select extension from realtime.messages')
      await query('reset role')
      return rows
    }
    expect(await heard(ours.id)).toEqual([])
    // Once more is no error: a project may be set up again.
    for (let i = 0; i < 2; i += 1) {
      expect(await query('select private.set_up_realtime() as done')).toEqual([{ done: true }])
    }
    expect(await heard(ours.id)).toEqual([{ extension: 'broadcast' }])
    expect(await heard(theirs.id)).toEqual([])
  })
})

test('a broadcast that fails keeps nobody out', async () => {
  const event = await (await createOrganisation()).event()
  const guest = await event.guest()
  await whereRealtimeIs("raise exception 'no partition';", async (query) => {
    const rows = await query('insert into public.check_ins (event_id, code) values ($1, $2) returning result', [
      event.id,
      guest.code,
    ])
    expect(rows).toEqual([{ result: 'accepted' }])
  })
})
