-- The courier's side of webhooks: lease what is due, send it, settle the result. When a lease runs out another courier leases the row, and a
-- result under the old one is ignored. When to retry is decided here. All security definer: the courier has no right to any table, and may
-- call only the api functions that are granted to it.

-- The endpoints that have pending deliveries, and when the first of each is due: a loose index scan, which reads no backlog.
create function private.endpoints_with_webhooks() returns table (webhook_endpoint_id uuid, due_at timestamptz)
language plpgsql stable set search_path = ''
as $$
begin
  return query
  with recursive pending as (
    (
      select d.webhook_endpoint_id, d.next_attempt_at
      from public.webhook_deliveries d
      where d.status = 'pending'
      order by d.webhook_endpoint_id, d.next_attempt_at
      limit 1
    )
    union all
    select n.webhook_endpoint_id, n.next_attempt_at
    from pending p
    cross join lateral (
      select d.webhook_endpoint_id, d.next_attempt_at
      from public.webhook_deliveries d
      where d.status = 'pending' and d.webhook_endpoint_id > p.webhook_endpoint_id
      order by d.webhook_endpoint_id, d.next_attempt_at
      limit 1
    ) n
  )
  select p.webhook_endpoint_id, p.next_attempt_at from pending p;
end
$$;

-- Deliveries that are due to enabled endpoints: organisations take turns, and within one its endpoints. So that slow or dead endpoints delay no
-- other, an endpoint has four in flight, and one while it is failing; an organisation has half of what a courier sends at a time, and all
-- failing endpoints together a quarter. Those of endpoints that are gone come as well, to be cancelled.
create function private.webhooks_by_turn("limit" integer) returns uuid[]
language plpgsql volatile set search_path = ''
as $$
declare
  -- Half and a quarter of `concurrency` in src/courier/webhooks.ts (64 webhooks per courier): change them together.
  v_most_per_organisation constant integer := 32;
  v_most_failing constant integer := 16;
  v_now constant timestamptz := clock_timestamp();
begin
  return array(
    with endpoint as (
      select
        p.webhook_endpoint_id as id, w.organisation_id, w.last_failed_at, c.in_flight,
        w.failing_since is not null as failing,
        sum(c.in_flight) over (partition by w.organisation_id) as of_organisation,
        sum(c.in_flight) over (partition by w.organisation_id, w.failing_since is not null) as of_its_kind,
        sum(c.in_flight) filter (where w.failing_since is not null) over () as of_failing
      from private.endpoints_with_webhooks() p
      left join public.webhook_endpoints w on w.id = p.webhook_endpoint_id
      cross join lateral (
        select count(*)::integer as in_flight
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = p.webhook_endpoint_id and d.claimed_until > v_now
      ) c
      where w.id is null or w.status = 'enabled'
    ),
    due as (
      select
        e.*, d.id as delivery_id, d.next_attempt_at,
        e.in_flight + row_number() over (partition by e.id order by d.next_attempt_at) as turn,
        -- Among failing endpoints the one that has not been tried for longest comes first: a failure among a thousand is soon over.
        e.of_its_kind + row_number() over (
          partition by e.organisation_id, e.failing order by e.last_failed_at nulls first, d.next_attempt_at, d.id
        ) as turn_of_organisation
      from endpoint e
      cross join lateral (
        select d.id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= v_now
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit greatest(case when e.failing then 1 else 4 end - e.in_flight, 0)
      ) d
    ),
    -- Failing endpoints are limited first, and organisations after that, so that failing ones delay no other.
    admitted as (
      select d.*, row_number() over (
        partition by d.failing order by d.turn_of_organisation, d.last_failed_at nulls first, d.next_attempt_at, d.delivery_id
      ) as place
      from due d
    ),
    placed as (
      select a.*, row_number() over (partition by a.organisation_id order by a.turn, a.next_attempt_at, a.delivery_id) as place_of_organisation
      from admitted a
      where not a.failing or a.of_failing + a.place <= v_most_failing
    )
    select p.delivery_id
    from placed p
    where p.of_organisation + p.place_of_organisation <= v_most_per_organisation
    order by p.of_organisation + p.place_of_organisation, p.next_attempt_at
    limit webhooks_by_turn."limit"
  );
end
$$;

-- Makes the deliveries of what is queued, and leases what is due, in turns. One courier at a time: two would not count each other's leases. Leased rows are due again when the lease
-- runs out.
create function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_ids uuid[];
  v_claimed json;
begin
  perform pg_advisory_xact_lock(4, 0);
  perform private.enqueue_deliveries();
  if private.is_held() then
    return '[]';
  end if;
  v_ids := private.webhooks_by_turn("limit");
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);
  -- Skips locked rows rather than wait: other couriers wait for the lock that this transaction holds.
  v_ids := array(
    select d.id from public.webhook_deliveries d
    where d.id = any (v_ids) and coalesce(d.next_attempt_at <= v_now, false)
    for no key update skip locked
  );

  -- What a change of its endpoint has overtaken. And ten attempts are made: what is leased far more often crashes its couriers, or they cannot
  -- settle it.
  update public.webhook_deliveries d set status = 'cancelled'
  where d.id = any (v_ids) and not exists (
    select from public.webhook_endpoints w
    where w.id = d.webhook_endpoint_id and d.type = any (array_append(private.subscribed_types(w.types), 'webhook_endpoint.test'))
  );
  update public.webhook_deliveries d
  set status = 'failed', last_error = 'Given up after 20 attempts without a recorded result.'
  where d.id = any (v_ids) and d.attempts >= 20 and coalesce(d.status = 'pending', false);

  with claimed as (
    update public.webhook_deliveries d
    set claim = v_claim, claimed_until = v_until, next_attempt_at = v_until, attempts = d.attempts + 1, last_attempt_at = v_now
    where d.id = any (v_ids) and coalesce(d.status = 'pending', false)
    returning d.*
  )
  select coalesce(json_agg(json_build_object(
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
    'example', c.example_type,
    'timestamp', private.rfc3339(n.created_at),
    'livemode', (select not o.is_test from public.organisations o where o.id = n.organisation_id),
    'data', n.data
  )), '[]') into v_claimed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_claimed;
end
$$;
comment on function api.claim_webhooks is
  'Leases due webhooks for lease_seconds: [{ id, claim, attempt, webhook_endpoint_id, url, secrets, webhook_id, type, example, timestamp, livemode, data }].';
grant execute on function api.claim_webhooks to courier;

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
comment on function api.release_webhook is 'Returns a leased webhook, for another courier to send.';
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

create type private.webhook_result as (
  webhook_delivery_id uuid, webhook_endpoint_id uuid, place bigint, delivered boolean, gone boolean
);

-- Records results on their deliveries: 2xx is delivered, 410 is final, anything else is retried, not before the endpoint asks for it. Answers
-- those that count for the endpoint. One from a URL that it had when the webhook was leased, and has no longer, does not: the new URL has
-- attempts of its own.
create function private.settle_deliveries(results json) returns setof private.webhook_result
language plpgsql volatile set search_path = ''
as $$
declare
  -- Ten attempts within about three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'id')::uuid from json_array_elements(results) r);
begin
  return query
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
        when not r.url_changed and (r.response_status = 410 or d.attempts > cardinality(v_pauses)) then 'failed'
        else 'pending'
      end::public.webhook_delivery_status,
      next_attempt_at = case
        when r.url_changed then now()
        else now() + greatest(
          private.retry_delay(d.attempts, v_pauses), make_interval(secs => least(coalesce(r.retry_after_seconds, 0), 86400))
        )
      end
    from (
      select
        g.*,
        coalesce(g.response_status between 200 and 299, false) as delivered,
        g.url is not null and exists (
          select from public.webhook_deliveries o
          join public.webhook_endpoints w on w.id = o.webhook_endpoint_id
          where o.id = g.id and w.url <> g.url
        ) as url_changed
      from rows from (json_to_recordset(results) as (
        id uuid, claim uuid, url text, response_status integer, response_body text, milliseconds integer, error text,
        retry_after_seconds integer
      )) with ordinality g (id, claim, url, response_status, response_body, milliseconds, error, retry_after_seconds, place)
    ) r
    -- By the ids, and an expression, so that the planner does not scan the index of everything pending.
    where d.id = any (v_ids) and d.id = r.id and d.claim = r.claim and coalesce(d.status = 'pending', false)
    returning d.id, d.webhook_endpoint_id, r.place, r.delivered, coalesce(r.response_status = 410, false) as gone, r.url_changed
  )
  select s.id, s.webhook_endpoint_id, s.place, s.delivered, s.gone from settled s where not s.url_changed;
end
$$;

-- The results of a batch of attempts, in the order in which they came: the response of the endpoint, or why there was none. An endpoint that
-- answers 410, or has failed for five days, is disabled.
create function api.settle_webhooks(results json) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids constant uuid[] := array(select (r ->> 'id')::uuid from json_array_elements(results) r);
  v_endpoint_ids uuid[] := array(select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = any (v_ids));
  v_organisation_ids uuid[];
  v_disabled_ids uuid[];
  v_troubled boolean;
begin
  -- Endpoints are locked before their deliveries, as everywhere.
  v_organisation_ids := array(
    select w.organisation_id from public.webhook_endpoints w where w.id = any (v_endpoint_ids) order by w.id for no key update
  );

  with result as (
    select
      r.webhook_endpoint_id,
      max(r.place) filter (where r.delivered) as delivered_at,
      max(r.place) filter (where not r.delivered) as failed_at,
      bool_or(r.gone) as gone,
      (array_agg(r.webhook_delivery_id order by r.delivered, r.gone desc, r.place desc))[1] as last_failed_id
    from private.settle_deliveries(results) r
    group by r.webhook_endpoint_id
  ),
  troubled as (
    select
      r.*,
      w.status = 'disabled' as was_disabled,
      -- A failure 30 hours after the previous one starts a new series: a retry comes sooner, so nothing was sent meanwhile.
      case when r.delivered_at is null and w.last_failed_at > now() - interval '30 hours' then w.failing_since end as failing_since
    from result r
    join public.webhook_endpoints w on w.id = r.webhook_endpoint_id
    where r.failed_at is not null or w.failing_since is not null
  ),
  judged as (
    update public.webhook_endpoints w
    set failing_since = case when t.failed_at > coalesce(t.delivered_at, 0) then coalesce(t.failing_since, now()) end,
      last_failed_at = case when t.failed_at is null then w.last_failed_at else now() end,
      status = case when t.gone or t.failing_since < now() - interval '5 days' then 'disabled' else w.status end,
      disabled_reason = case
        when w.status = 'disabled' then w.disabled_reason
        when t.gone then 'It answered 410 Gone.'
        when t.failing_since < now() - interval '5 days' then 'No delivery succeeded for five days.'
      end
    from troubled t
    where w.id = t.webhook_endpoint_id
    returning case when w.status = 'disabled' and not t.was_disabled then t.last_failed_id end as disabled_by
  )
  select array_remove(coalesce(array_agg(j.disabled_by), '{}'), null), count(*) > 0 into v_disabled_ids, v_troubled from judged j;

  -- Whether the places that are free now may have something to take: of their organisations, and of all that are failing.
  v_endpoint_ids := array(
    select w.id from public.webhook_endpoints w where w.organisation_id = any (v_organisation_ids) and w.status = 'enabled'
    union all
    select w.id from public.webhook_endpoints w where v_troubled and w.failing_since is not null and w.status = 'enabled'
  );
  return json_build_object('disabled', v_disabled_ids, 'more', exists (
    select from public.webhook_deliveries d
    where d.webhook_endpoint_id = any (v_endpoint_ids) and d.status = 'pending' and d.next_attempt_at <= now()
    union all
    select from public.notifications n where n.queued_for is not null
  ));
end
$$;
comment on function api.settle_webhooks is
  'Records the results of leased webhooks, [{ id, claim, url, milliseconds, response_status, response_body, retry_after_seconds, error }]: { disabled, more }. disabled: deliveries whose result disabled their endpoint. more: others may be due. A result is ignored if another lease has replaced its own.';
grant execute on function api.settle_webhooks to courier;
