// Supabase Realtime is not part of the embedded stack. Here its function is defined as the documentation of Supabase has it, in a
// transaction that is rolled back, and keeps what it is sent.

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
