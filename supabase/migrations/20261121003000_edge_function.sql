-- The courier as an edge function, what is owed as figures, and answers of addresses that an endpoint no longer has.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.

set local lock_timeout = '5s';
set local statement_timeout = '60s';

-- Each has a parameter more, which a courier of the version before leaves out.
drop function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer);
drop function api.record_ticket_email_event(text, public.ticket_email_status, text);

-- The courier's side of the outbox: it claims what is due, sends it, and says how that went. A claim is a lease: whoever dies
-- with it leaves it to the next, and what they say afterwards does not count. When to try again is decided here.
-- All security definer: the courier has no right to any table, and these are the only functions it may call.

-- What is due to endpoints that are enabled: to each a few at a time, and to one that is failing one at a time, so that those
-- that are slow or dead hold up nobody else; first what would be the first of its endpoint, and then the oldest. One courier
-- claims at a time, or two would each give an endpoint its few. Claimed rows are due again when the lease runs out.
create or replace function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_owed json;
  v_claim uuid := gen_random_uuid();
  v_until timestamptz := now() + make_interval(secs => lease_seconds);
  v_candidates uuid[];
begin
  perform pg_advisory_xact_lock(4, 0);
  v_candidates := array(
    select d.id
    from public.webhook_endpoints w
    cross join lateral (
      select count(*)::integer as under_way
      from public.webhook_deliveries d
      where d.webhook_endpoint_id = w.id and d.claimed_until > now()
    ) c
    cross join lateral (
      select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
      from (
        select d.id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.status = 'pending' and d.next_attempt_at <= now()
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit greatest(case when w.failing_since is null then 4 else 1 end - c.under_way, 0)
      ) f
    ) d
    where w.status = 'enabled'
    order by c.under_way + d.place, d.next_attempt_at
    limit claim_webhooks."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  with due as (
    select d.id
    from public.webhook_deliveries d
    where d.id = any (v_candidates) and d.status = 'pending' and d.next_attempt_at <= now()
    for no key update skip locked
  ),
  claimed as (
    update public.webhook_deliveries d
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = d.attempts + 1,
      last_attempt_at = now()
    from due
    where d.id = due.id
    returning d.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'url', w.url,
      'secrets', (
        select json_agg(s.secret order by s.expires_at desc nulls first)
        from private.webhook_secrets s
        where s.webhook_endpoint_id = w.id and (s.expires_at is null or s.expires_at > now())
      ),
      'webhook_id', n.id,
      'type', n.type,
      'timestamp', private.rfc3339(n.created_at),
      'data', n.data
    )),
    '[]'
  ) into v_owed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_owed;
end
$$;

-- What the endpoint answered, or why it did not. 2xx is delivered; 410 says never again; everything else is tried again, not
-- before the endpoint asks for it. An endpoint that has failed for five days is disabled. What another address of it answered,
-- which it had when the webhook was claimed, is in the log of the delivery and held against nobody.
create or replace function api.settle_webhook(
  webhook_delivery_id uuid,
  claim uuid,
  response_status integer default null,
  response_body text default null,
  milliseconds integer default null,
  error text default null,
  retry_after_seconds integer default null,
  url text default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_delivered boolean := coalesce(response_status between 200 and 299, false);
  v_gone boolean := coalesce(response_status = 410, false);
  -- Ten attempts within some three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_endpoint public.webhook_endpoints;
  v_failing_since timestamptz;
  v_reason text;
begin
  -- The endpoint before its deliveries, as whoever changes or deletes it has them.
  select w.* into v_endpoint
  from public.webhook_endpoints w
  where w.id = (
    select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = settle_webhook.webhook_delivery_id
  )
  for no key update;
  if v_endpoint.url <> settle_webhook.url then
    v_gone := false;
  end if;

  update public.webhook_deliveries d
  set claim = null,
    claimed_until = null,
    last_response_status = settle_webhook.response_status,
    last_response_body = left(settle_webhook.response_body, 1024),
    last_response_milliseconds = milliseconds,
    last_error = settle_webhook.error,
    delivered_at = case when v_delivered then now() else d.delivered_at end,
    status = case
      when v_delivered then 'delivered'
      when v_gone or d.attempts > cardinality(v_pauses) then 'failed'
      else 'pending'
    end::public.webhook_delivery_status,
    next_attempt_at = greatest(
      now() + private.retry_delay(d.attempts, v_pauses), now() + make_interval(secs => least(coalesce(retry_after_seconds, 0), 86400))
    )
  where d.id = settle_webhook.webhook_delivery_id and d.claim = settle_webhook.claim and d.status = 'pending';
  if not found or v_endpoint.url <> settle_webhook.url then
    return;
  end if;

  if v_delivered then
    update public.webhook_endpoints w set failing_since = null where w.id = v_endpoint.id and w.failing_since is not null;
    return;
  end if;
  -- A failure long after the one before it, for nothing was sent meanwhile, is the first of a new series: a retry comes within
  -- thirty hours.
  v_failing_since := case
    when v_endpoint.last_failed_at > now() - interval '30 hours' then coalesce(v_endpoint.failing_since, now()) else now()
  end;
  v_reason := case
    when v_endpoint.status = 'disabled' then null
    when v_gone then 'It answered 410 Gone.'
    when v_failing_since < now() - interval '5 days' then 'Nothing that was sent to it for five days succeeded.'
  end;
  if v_reason is null then
    update public.webhook_endpoints w set failing_since = v_failing_since, last_failed_at = now() where w.id = v_endpoint.id;
  else
    update public.webhook_endpoints w
    set failing_since = v_failing_since, last_failed_at = now(), status = 'disabled', disabled_reason = v_reason
    where w.id = v_endpoint.id;
  end if;
end
$$;

comment on function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer, text) is
  'Says how sending a claimed webhook went; nothing happens when the claim has passed to somebody else.';

grant execute on function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer, text) to courier;

-- What is owed, by kind, for whoever watches: how much, since when the oldest of it, and how late what is due is. What an
-- endpoint that is disabled would get is owed to nobody.
create or replace function api.outbox_depth() returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'owed', k.owed,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0)
    ))
    from (
      select 'webhooks' as kind, count(*) as owed, min(d.created_at) as oldest, min(d.next_attempt_at) as due
      from public.webhook_deliveries d
      join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
      where d.status = 'pending'
      union all
      select 'ticket_emails', count(*), min(e.created_at), min(e.next_attempt_at)
      from public.ticket_emails e
      where e.status = 'queued'
    ) k
  );
end
$$;

comment on function api.outbox_depth() is
  'What is owed: [{ kind, owed, oldest_seconds, late_seconds }], late being how long what is due has waited.';

grant execute on function api.outbox_depth() to courier;

-- What the mail service tells later: delivered, or bounced and why. It knows an e-mail by its own id, and by ours if that was
-- sent along; by ours it may tell sooner than the courier that sent it, or in place of one that died with its claim.
create or replace function api.record_ticket_email_event(
  message_id text,
  status public.ticket_email_status,
  error text default null,
  ticket_email_id uuid default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_email public.ticket_emails;
  v_claim constant uuid := gen_random_uuid();
begin
  if ticket_email_id is not null then
    select e.* into v_email from public.ticket_emails e where e.id = record_ticket_email_event.ticket_email_id;
  else
    select e.* into v_email from public.ticket_emails e where e.message_id = record_ticket_email_event.message_id;
  end if;
  if not found or status not in ('delivered', 'bounced') then
    return;
  end if;
  -- The attendee before the e-mail, as whoever settles it has them.
  perform 1 from public.attendees a where a.id = v_email.attendee_id for no key update;

  -- Whoever is sending it loses the claim: it has been sent.
  update public.ticket_emails e set claim = v_claim where e.id = v_email.id and e.status = 'queued' and e.attempts > 0;
  if found then
    perform api.settle_ticket_email(v_email.id, v_claim, record_ticket_email_event.message_id);
  end if;

  update public.ticket_emails e
  set status = record_ticket_email_event.status, last_error = record_ticket_email_event.error
  where e.id = v_email.id and e.status in ('sent', 'delivered')
  returning * into v_email;
  if not found then
    return;
  end if;
  -- Of the latest that was sent: what becomes of an earlier one is no news.
  update public.attendees a
  set ticket_email_status = v_email.status, ticket_email_last_error = v_email.last_error
  where a.id = v_email.attendee_id
    and a.ticket_email_status in ('sent', 'delivered')
    and not exists (
      select from public.ticket_emails l
      where l.attendee_id = a.id and l.id > v_email.id and l.status not in ('cancelled', 'failed')
    );
end
$$;

comment on function api.record_ticket_email_event(text, public.ticket_email_status, text, uuid) is
  'Says what became of an e-mail that was sent: delivered or bounced. Known by our id, or without it by message_id.';

grant execute on function api.record_ticket_email_event(text, public.ticket_email_status, text, uuid) to courier;

-- Answers how many rows went, so that the caller goes on while there are more. What is still owed is kept, however old, unless
-- its endpoint is disabled.
create or replace function api.purge(retention_days integer default 30, "limit" integer default 1000) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_before timestamptz := now() - make_interval(days => greatest(retention_days, 1));
  v_purged integer;
  v_rows integer;
begin
  delete from private.idempotency_records r
  where (r.family_id, r.idempotency_key) in (
    select e.family_id, e.idempotency_key from private.idempotency_records e
    where e.expires_at < now() order by e.expires_at limit purge."limit" for update skip locked
  );
  get diagnostics v_purged = row_count;

  delete from public.webhook_deliveries d
  where d.id in (
    select o.id from public.webhook_deliveries o
    where o.created_at < v_before
      and (
        o.status <> 'pending'
        or exists (select from public.webhook_endpoints w where w.id = o.webhook_endpoint_id and w.status = 'disabled')
      )
    order by o.created_at limit purge."limit" for update skip locked
  );
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.notifications n
  where n.id in (
    select o.id from public.notifications o
    where o.created_at < v_before
      and not exists (select from public.webhook_deliveries d where d.notification_id = o.id)
    order by o.created_at limit purge."limit" for update skip locked
  );
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.ticket_emails e
  where e.id in (
    select o.id from public.ticket_emails o
    where o.created_at < v_before and o.status <> 'queued' order by o.created_at limit purge."limit" for update skip locked
  );
  get diagnostics v_rows = row_count;
  return v_purged + v_rows;
end
$$;

-- Who calls the courier where it is an edge function: pg_cron, through pg_net, with what Vault keeps. Where a project has not
-- enabled these, as the embedded stack has not, there is nothing to call and nothing to schedule.

-- Calls the function if something is due, or in any case. A row of net._http_response tells what it answered.
create or replace function private.call_courier(in_any_case boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if not in_any_case
    and not exists (
      select from public.webhook_deliveries d
      join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
      where d.status = 'pending' and d.next_attempt_at <= now()
    )
    and not exists (select from public.ticket_emails e where e.status = 'queued' and e.next_attempt_at <= now())
  then
    return;
  end if;
  perform net.http_post(
    url => (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_url'),
    headers => jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_secret')
    ),
    -- Longer than a run takes, so that its answer is kept.
    timeout_milliseconds => 60000
  );
end
$$;

-- Answers in a sentence what it did, for whoever runs it in the SQL editor. Run again, it replaces what it scheduled.
create or replace function private.schedule_courier(url text, secret text, every text default '10 seconds') returns text
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
    return format('Not scheduled: enable the extensions %s first, or have something else call the function.', v_missing);
  end if;
  delete from vault.secrets s where s.name in ('usher_courier_url', 'usher_courier_secret');
  perform vault.create_secret(url, 'usher_courier_url');
  perform vault.create_secret(secret, 'usher_courier_secret');
  perform cron.schedule('usher-courier', every, 'select private.call_courier()');
  -- It purges as well, also when nothing is due.
  perform cron.schedule('usher-courier-housekeeping', '*/10 * * * *', 'select private.call_courier(in_any_case => true)');
  return format('Scheduled: the courier is called every %s if something is due.', every);
end
$$;
