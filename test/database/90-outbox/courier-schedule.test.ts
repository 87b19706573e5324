// Who calls the courier where it is an edge function. The extensions for that are a hosted project's: here are functions of their
// names and arguments, which write down what they were called with, in a transaction that is rolled back.

import { expect, test } from 'vitest'
import { studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { lockOutbox } from '../../support/outbox.ts'
import { rolledBack } from '../as-courier.ts'

// https://github.com/citusdata/pg_cron, https://supabase.github.io/pg_net/api, https://supabase.com/docs/guides/database/vault
const extensions = `
  create schema cron;
  create table cron.job (jobid serial, jobname text primary key, schedule text, command text);
  create table cron.job_run_details (jobid integer, end_time timestamptz);
  create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql as $$
    insert into cron.job (jobname, schedule, command) values (job_name, schedule, command)
    on conflict (jobname) do update set schedule = excluded.schedule, command = excluded.command;
    select 1::bigint
  $$;
  create schema net;
  create table net.requests (url text, headers jsonb, timeout integer);
  create function net.http_post(
    url text, body jsonb default '{}', params jsonb default '{}',
    headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds integer default 5000
  ) returns bigint language sql as $$
    insert into net.requests values (url, headers, timeout_milliseconds);
    select 1::bigint
  $$;
  create schema vault;
  create table vault.secrets (id uuid default gen_random_uuid(), name text unique, secret text);
  create view vault.decrypted_secrets as select s.*, s.secret as decrypted_secret from vault.secrets s;
  create function vault.create_secret(
    new_secret text, new_name text default null, new_description text default '', new_key_id uuid default null
  ) returns uuid language sql as $$
    insert into vault.secrets (name, secret) values (new_name, new_secret) returning id
  $$;`

const schedule = "select private.schedule_courier('https://abc.supabase.co/functions/v1/courier', $1) as said"

test('where the extensions are not there, nothing is scheduled, in a sentence', async () => {
  const { rows } = await studio.query(schedule, ['secret'])
  expect(rows[0].said).toBe(
    'Not scheduled: enable the extensions pg_cron, pg_net, supabase_vault first, or call the function from elsewhere.',
  )
})

test('the function is called when something is due, and every ten minutes', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await event.guest()
  const { orderId } = await event.payer()
  await rolledBack(async (client) => {
    // Nothing else becomes pending or settled meanwhile.
    await lockOutbox(client, 'public.orders', 'public.notifications')
    await client.query('update public.orders set payment_due_at = null where payment_check_at <= now()')
    await client.query(
      "update public.waiting_list_entries set offer_expires_at = now() + interval '1 day' where status = 'offered'",
    )
    await client.query(extensions)
    const jobs = async () =>
      (await client.query('select jobname, schedule, command from cron.job order by jobname')).rows
    const called = async () => {
      await client.query('delete from net.requests')
      for (const { command } of await jobs()) await client.query(command)
      return (await client.query('select * from net.requests')).rows
    }
    await client.query(schedule, ['first'])
    const said = await client.query(schedule, ['second'])
    expect(said.rows[0].said).toBe('Scheduled: the courier is called every 10 seconds if something is due.')
    expect(await jobs()).toEqual([
      { jobname: 'usher-courier', schedule: '10 seconds', command: 'select private.call_courier()' },
      {
        jobname: 'usher-courier-housekeeping',
        schedule: '*/10 * * * *',
        command: expect.stringContaining('select private.call_courier(in_any_case => true);'),
      },
    ])
    const call = {
      url: 'https://abc.supabase.co/functions/v1/courier',
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer second' },
      timeout: 60_000,
    }
    expect(await called()).toEqual([call, call])
    await client.query(
      `insert into cron.job_run_details select jobid, now() - n * interval '2 days' from cron.job, generate_series(1, 5) n`,
    )
    await called()
    // Of two jobs, those of the last seven days.
    expect((await client.query('select * from cron.job_run_details')).rows).toHaveLength(2 * 3)
    await client.query('update public.notifications set queued_for = null where queued_for is not null')
    await client.query(
      "update public.webhook_deliveries set next_attempt_at = now() + interval '1 hour' where status = 'pending'",
    )
    await client.query("update public.emails set next_attempt_at = now() + interval '1 hour' where status = 'queued'")
    expect(await called()).toEqual([call])

    // An order that is to be reminded of, or that is overdue.
    const dueIn = (interval: string) =>
      client.query('update public.orders set payment_due_at = now() + $2::interval where id = $1', [orderId, interval])
    for (const interval of ['2 days', '0 seconds']) {
      await dueIn(interval)
      expect(await called()).toEqual([call, call])
    }
    await dueIn('30 days')
    expect(await called()).toEqual([call])

    // What happens is due where an endpoint is subscribed to it.
    const happens = () =>
      client.query(
        "insert into public.notifications (organisation_id, type, data) values ($1, 'event.updated', '{}')",
        [organisation.id],
      )
    await happens()
    expect(await called()).toEqual([call])
    await client.query(
      "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, 'https://a.example.com', '{event.updated}')",
      [organisation.id],
    )
    await happens()
    expect(await called()).toEqual([call, call])
  })
})
