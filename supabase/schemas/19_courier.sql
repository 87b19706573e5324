-- The courier's side of the outbox: it claims what is due, sends it, and says how that went. A claim is a lease: whoever dies
-- with it leaves it to the next, and what they say afterwards does not count. When to try again is decided here.
-- All security definer: the courier has no right to any table, and these are the only functions it may call.

-- What is due to endpoints that are enabled: to each a few at a time, and to one that is failing one at a time, so that those
-- that are slow or dead hold up nobody else; first what would be the first of its endpoint, and then the oldest. One courier
-- claims at a time, or two would each give an endpoint its few. Claimed rows are due again when the lease runs out.
create function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
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
comment on function api.claim_webhooks(integer, integer) is
  'Webhooks that are due, claimed for lease_seconds: [{ id, claim, attempt, url, secrets, webhook_id, type, timestamp, data }].';
grant execute on function api.claim_webhooks(integer, integer) to courier;

-- How long to wait after the attempt of this number; null after the last. A fifth more or less, so that what failed together
-- does not come back together.
create function private.retry_delay(attempts integer, pauses interval[]) returns interval
language plpgsql volatile set search_path = ''
as $$
begin
  return (0.8 + 0.4 * random()) * pauses[attempts];
end
$$;

-- What the endpoint answered, or why it did not. 2xx is delivered; 410 says never again; everything else is tried again, not
-- before the endpoint asks for it. An endpoint that has failed for five days is disabled. What another address of it answered,
-- which it had when the webhook was claimed, is in the log of the delivery and held against nobody.
create function api.settle_webhook(
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
create function api.outbox_depth() returns json
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
