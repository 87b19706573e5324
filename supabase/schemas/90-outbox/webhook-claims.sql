-- The courier's side of webhooks: claim what is due, send it, settle the result. A claim is a lease: when it runs out another
-- courier claims the row, and a result under the old claim is ignored. When to retry is decided here. All security definer: the
-- courier has no right to any table, and may call only the api functions that are granted to it.

-- Webhooks due to enabled endpoints, by their turn within the endpoint and then by age. So that slow or dead endpoints delay no
-- other, an endpoint has v_most_per_endpoint in flight, and one while it is failing; an organisation has half of what a courier
-- sends at a time, and all failing endpoints together a quarter. One courier claims at a time: two would not count each other's
-- claims. Claimed rows are due again when the lease runs out. A small batch is fanned out first, so that a webhook costs no
-- further call; api.fan_out_webhooks does the rest.
-- No cached plan: one made for few rows would be used for many. The plan uses the indexes whatever the statistics say: a
-- backlog builds up between two of their updates.
create function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = ''

as $$
declare
  v_most_per_endpoint constant integer := 4;
  -- Half and a quarter of `concurrency` in src/courier/webhooks.ts (64 webhooks per courier): change them together.
  v_most_per_organisation constant integer := 32;
  v_most_failing constant integer := 16;
  -- Deliveries to fan out first: about 10 ms.
  v_fan_out constant integer := 200;
  -- Ten attempts are made. A row that is claimed far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_claimed json;
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 0);
  perform private.fan_out(v_fan_out);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with endpoints as materialized (
      select
        w.id,
        w.organisation_id,
        w.failing_since is not null as failing,
        w.last_failed_at,
        c.in_flight,
        sum(c.in_flight) over (partition by w.organisation_id) as in_flight_of_organisation,
        sum(c.in_flight) over (partition by w.organisation_id, w.failing_since is not null) as in_flight_of_its_kind
      from public.webhook_endpoints w
      cross join lateral (
        select count(*)::integer as in_flight
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.claimed_until > v_now
      ) c
      where w.status = 'enabled'
    ),
    due as (
      select
        d.id, d.next_attempt_at, e.in_flight + d.place as turn, e.organisation_id, e.in_flight_of_organisation,
        e.failing, e.last_failed_at, e.in_flight_of_its_kind
      from endpoints e
      cross join lateral (
        select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
        from (
          select d.id, d.next_attempt_at
          from public.webhook_deliveries d
          where d.webhook_endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= v_now
          order by d.webhook_endpoint_id, d.next_attempt_at
          limit greatest(case when e.failing then 1 else v_most_per_endpoint end - e.in_flight, 0)
        ) f
      ) d
    ),
    -- Failing endpoints are limited first, and organisations after that, so that failing ones delay no other. Among them
    -- organisations take turns, and the endpoint that has not been tried for longest comes first: a single failure among a
    -- thousand is soon over.
    failing as (
      select
        d.*,
        row_number() over (order by d.turn_of_organisation, d.last_failed_at nulls first, d.next_attempt_at, d.id) as place_of_failing
      from (
        select
          d.*,
          d.in_flight_of_its_kind + row_number() over (
            partition by d.organisation_id order by d.last_failed_at nulls first, d.next_attempt_at, d.id
          ) as turn_of_organisation
        from due d
        where d.failing
      ) d
    ),
    admitted as (
      select d.id, d.next_attempt_at, d.turn, d.organisation_id, d.in_flight_of_organisation from due d where not d.failing
      union all
      select f.id, f.next_attempt_at, f.turn, f.organisation_id, f.in_flight_of_organisation
      from failing f
      where f.place_of_failing <= v_most_failing - (select coalesce(sum(e.in_flight), 0) from endpoints e where e.failing)
    ),
    placed as (
      select
        d.*,
        row_number() over (partition by d.organisation_id order by d.turn, d.next_attempt_at, d.id) as place_of_organisation
      from admitted d
    )
    select p.id
    from placed p
    where p.in_flight_of_organisation + p.place_of_organisation <= v_most_per_organisation
    order by p.turn, p.next_attempt_at
    limit claim_webhooks."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  -- Skips locked rows rather than wait: other couriers wait for the lock that this transaction holds.
  update public.webhook_deliveries d
  set status = 'failed', last_error = format('Gave up after %s attempts without a recorded result.', v_most_claims)
  where d.id in (
    select f.id from public.webhook_deliveries f
    where f.id = any (v_candidates) and coalesce(f.next_attempt_at <= v_now, false) and f.attempts >= v_most_claims
    for no key update skip locked
  );

  -- Still pending and due. An expression, so that the planner does not scan the index of everything due; an array, because a
  -- join might scan it, too.
  v_candidates := array(
    select d.id
    from public.webhook_deliveries d
    where d.id = any (v_candidates) and coalesce(d.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  with claimed as (
    update public.webhook_deliveries d
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = d.attempts + 1,
      last_attempt_at = v_now
    where d.id = any (v_candidates)
    returning d.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'webhook_endpoint_id', w.id,
      'url', w.url,
      'secrets', (
        select json_agg(s.secret order by s.expires_at desc nulls first)
        from private.webhook_secrets s
        where s.webhook_endpoint_id = w.id and (s.expires_at is null or s.expires_at > v_now)
      ),
      'webhook_id', n.id,
      'type', n.type,
      'timestamp', private.rfc3339(n.created_at),
      'data', n.data
    )),
    '[]'
  ) into v_claimed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_claimed;
end
$$;
comment on function api.claim_webhooks is
  'Webhooks that are due, claimed for lease_seconds: [{ id, claim, attempt, webhook_endpoint_id, url, secrets, webhook_id, type, timestamp, data }].';
grant execute on function api.claim_webhooks to courier;

-- One batch of the fan-out, about 100 ms, which a courier repeats while there is a backlog. One transaction: if the courier
-- dies in it, nothing is done.
create function api.fan_out_webhooks("limit" integer default 2000) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return private.fan_out("limit");
end
$$;
comment on function api.fan_out_webhooks is
  'Fans out about "limit" webhook deliveries of notifications in the queue: whether there is more to do at once.';
grant execute on function api.fan_out_webhooks to courier;

-- Returned unsent, or aborted, by a courier that is stopping: it was not an attempt, and is due at once.
create function api.release_webhook(webhook_delivery_id uuid, claim uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.webhook_deliveries d
  set claim = null, claimed_until = null, next_attempt_at = now(), attempts = d.attempts - 1
  where d.id = release_webhook.webhook_delivery_id and d.claim = release_webhook.claim and d.status = 'pending';
end
$$;
comment on function api.release_webhook is 'Returns a claimed webhook, for another courier to send.';
grant execute on function api.release_webhook to courier;

-- The delay after the attempt of this number; null after the last. A fifth more or less, so that what failed together is not
-- retried together.
create function private.retry_delay(attempts integer, pauses interval[]) returns interval
language plpgsql volatile set search_path = ''
as $$
begin
  return (0.8 + 0.4 * random()) * pauses[attempts];
end
$$;

-- Whether a webhook is due to the endpoint: one look-up, however many there are.
create function private.has_due_webhooks(webhook_endpoint_id uuid) returns boolean
language plpgsql stable set search_path = ''

as $$
begin
  return exists (
    select from public.webhook_deliveries d
    where d.webhook_endpoint_id = has_due_webhooks.webhook_endpoint_id
      and d.status = 'pending'
      and d.next_attempt_at <= now()
  );
end
$$;

-- The results of a batch of attempts, in the order in which they came: the response of the endpoint, or why there was none. 2xx
-- is delivered, 410 is final, anything else is retried, not before the endpoint asks for it. An endpoint that has failed for
-- five days is disabled. A result from a URL that the endpoint had when the webhook was claimed, and has no longer, is logged but
-- does not count: the new URL has attempts of its own. The plan uses the indexes whatever the statistics say.
create function api.settle_webhooks(results json) returns json
language plpgsql volatile security definer set search_path = ''

as $$
declare
  -- Ten attempts within about three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'id')::uuid from json_array_elements(results) r);
  v_endpoint_ids uuid[];
  v_organisation_ids uuid[];
  v_settled_ids uuid[];
  v_troubled_ids uuid[];
  v_result record;
  v_endpoint public.webhook_endpoints;
  v_failing_since timestamptz;
  v_reason text;
  v_disabled_ids uuid[] := '{}';
begin
  -- Endpoints are locked before their deliveries, as everywhere.
  v_endpoint_ids := array(select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = any (v_ids));
  v_endpoint_ids := array(
    select w.id from public.webhook_endpoints w where w.id = any (v_endpoint_ids) order by w.id for no key update
  );

  with settled as (
    update public.webhook_deliveries d
    set claim = null,
      claimed_until = null,
      attempts = case when r.url_changed and not r.delivered then 0 else d.attempts end,
      last_response_status = r.response_status,
      last_response_body = left(r.response_body, 1024),
      last_response_milliseconds = r.milliseconds,
      last_error = r.error,
      delivered_at = case when r.delivered then now() else d.delivered_at end,
      status = case
        when r.delivered then 'delivered'
        when r.url_changed then 'pending'
        when r.response_status = 410 or d.attempts > cardinality(v_pauses) then 'failed'
        else 'pending'
      end::public.webhook_delivery_status,
      next_attempt_at = case
        when r.url_changed then now()
        else greatest(
          now() + private.retry_delay(d.attempts, v_pauses),
          now() + make_interval(secs => least(coalesce(r.retry_after_seconds, 0), 86400))
        )
      end
    from (
      select
        g.*,
        coalesce(g.response_status between 200 and 299, false) as delivered,
        coalesce(w.url <> g.url, false) as url_changed,
        w.failing_since
      from json_to_recordset(results) g (
        id uuid, claim uuid, url text, response_status integer, response_body text, milliseconds integer, error text,
        retry_after_seconds integer
      )
      cross join lateral (
        select w.url, w.failing_since
        from public.webhook_endpoints w
        where w.id = (select o.webhook_endpoint_id from public.webhook_deliveries o where o.id = g.id)
      ) w
    ) r
    -- By the ids, and an expression, so that the planner does not scan the index of everything pending.
    where d.id = any (v_ids) and d.id = r.id and d.claim = r.claim and coalesce(d.status = 'pending', false)
    returning d.id, d.webhook_endpoint_id, r.url_changed, r.delivered, r.failing_since
  )
  select
    array_agg(s.id) filter (where not s.url_changed),
    array_agg(s.webhook_endpoint_id) filter (where not s.url_changed and (not s.delivered or s.failing_since is not null))
  into v_settled_ids, v_troubled_ids
  from settled s;

  for v_result in
    select g.id, d.webhook_endpoint_id, g.response_status, coalesce(g.response_status between 200 and 299, false) as delivered
    from rows from (json_to_recordset(results) as (id uuid, response_status integer)) with ordinality g (id, response_status, place)
    join public.webhook_deliveries d on d.id = g.id
    where d.id = any (v_ids) and g.id = any (v_settled_ids) and coalesce(d.webhook_endpoint_id = any (v_troubled_ids), false)
    order by g.place
  loop
    select w.* into v_endpoint from public.webhook_endpoints w where w.id = v_result.webhook_endpoint_id;
    if v_result.delivered then
      update public.webhook_endpoints w set failing_since = null where w.id = v_endpoint.id and w.failing_since is not null;
      continue;
    end if;
    -- A failure 30 hours after the previous one starts a new series: a retry comes sooner, so nothing was sent meanwhile.
    v_failing_since := case
      when v_endpoint.last_failed_at > now() - interval '30 hours' then coalesce(v_endpoint.failing_since, now()) else now()
    end;
    v_reason := case
      when v_endpoint.status = 'disabled' then null
      when v_result.response_status = 410 then 'It answered 410 Gone.'
      when v_failing_since < now() - interval '5 days' then 'No delivery succeeded for five days.'
    end;
    if v_reason is null then
      update public.webhook_endpoints w set failing_since = v_failing_since, last_failed_at = now() where w.id = v_endpoint.id;
    else
      update public.webhook_endpoints w
      set failing_since = v_failing_since, last_failed_at = now(), status = 'disabled', disabled_reason = v_reason
      where w.id = v_endpoint.id;
      v_disabled_ids := v_disabled_ids || v_result.id;
    end if;
  end loop;

  -- Whether the places that are free now may have something to take: of their organisations, and of all that are failing.
  v_organisation_ids := array(select w.organisation_id from public.webhook_endpoints w where w.id = any (v_endpoint_ids));
  return json_build_object(
    'disabled', v_disabled_ids,
    'more', exists (
      select from public.webhook_endpoints w
      where w.organisation_id = any (v_organisation_ids) and w.status = 'enabled' and private.has_due_webhooks(w.id)
    ) or (v_troubled_ids is not null and exists (
      select from public.webhook_endpoints w
      where w.failing_since is not null and w.status = 'enabled' and private.has_due_webhooks(w.id)
    ))
  );
end
$$;
comment on function api.settle_webhooks is
  'Records the results of sending claimed webhooks, [{ id, claim, url, milliseconds, response_status, response_body, retry_after_seconds, error }]: { disabled, more }, the deliveries whose result disabled their endpoint, and whether more may be due in their place. A result is ignored if another claim has replaced its own.';
grant execute on function api.settle_webhooks to courier;
