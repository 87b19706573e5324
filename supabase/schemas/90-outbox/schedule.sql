-- Schedules the courier where it is an edge function: pg_cron calls it through pg_net, with URL and secret from Vault. Where
-- these extensions are not enabled, as on the embedded stack, nothing is scheduled.

-- Calls the function if something is due, or in any case. Its response is in net._http_response.
create function private.call_courier(in_any_case boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if not in_any_case
    and json_array_length(api.poll_queues()) = 0
    and not exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
    and not exists (
      select from unnest(private.organisations_with_deadlines()) o (organisation_id)
      cross join lateral (
        select from public.orders d
        where d.organisation_id = o.organisation_id and d.payment_check_at <= now()
        limit 1
      ) d
    )
  then
    return;
  end if;
  perform net.http_post(
    url => (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_url'),
    headers => jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_secret')
    ),
    -- Longer than a run takes, so that its response is recorded.
    timeout_milliseconds => 60000
  );
end
$$;

-- Run in the SQL editor: returns a sentence that says what it did. Run again, it replaces the schedule.
create function private.schedule_courier(url text, secret text, every text default '10 seconds') returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_missing text := concat_ws(
    ', ',
    case when to_regprocedure('cron.schedule(text,text,text)') is null then 'pg_cron' end,
    case when to_regprocedure('net.http_post(text,jsonb,jsonb,jsonb,integer)') is null then 'pg_net' end,
    case when to_regclass('vault.decrypted_secrets') is null then 'supabase_vault' end
  );
begin
  if v_missing <> '' then
    return format('Not scheduled: enable the extensions %s first, or call the function from elsewhere.', v_missing);
  end if;
  delete from vault.secrets s where s.name in ('usher_courier_url', 'usher_courier_secret');
  perform vault.create_secret(url, 'usher_courier_url');
  perform vault.create_secret(secret, 'usher_courier_secret');
  perform cron.schedule('usher-courier', every, 'select private.call_courier()');
  -- The courier also purges, even when nothing is due. pg_cron would keep its run details for ever.
  perform cron.schedule('usher-courier-housekeeping', '*/10 * * * *', $job$
    select private.call_courier(in_any_case => true);
    delete from cron.job_run_details r using cron.job j
    where j.jobid = r.jobid and j.jobname like 'usher-courier%' and r.end_time < now() - interval '7 days'
  $job$);
  return format('Scheduled: the courier is called every %s if something is due.', every);
end
$$;
