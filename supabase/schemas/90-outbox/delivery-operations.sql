-- Webhook delivery operations: list, redeliver one or many, and send a test.

-- Ids of the deliveries of a page, newest first: see 00-ground/pages.sql. Of a notification, these are all there are, in no order.
create function private.page_of_webhook_deliveries(
  notification_id uuid,
  webhook_endpoint_id uuid,
  types public.notification_type[],
  status public.webhook_delivery_status,
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.webhook_delivery_status[] :=
    case when page_of_webhook_deliveries.status is null then enum_range(null::public.webhook_delivery_status)
    else array[page_of_webhook_deliveries.status] end;
begin
  if page_of_webhook_deliveries.notification_id is not null then
    return array(
      select d.id from public.webhook_deliveries d
      where d.notification_id = page_of_webhook_deliveries.notification_id
        and d.webhook_endpoint_id = coalesce(page_of_webhook_deliveries.webhook_endpoint_id, d.webhook_endpoint_id)
        and d.organisation_id = any (v_organisation_ids) and d.type = any (types) and d.status = any (v_statuses) and d.id < before
    );
  elsif page_of_webhook_deliveries.webhook_endpoint_id is null then
    return array(
      select f.id
      from unnest(types) t (type)
      cross join unnest(v_statuses) s (status)
      cross join lateral (
        select d.id
        from public.webhook_deliveries d
        where d.organisation_id = any (v_organisation_ids)
          and d.type = t.type
          and d.status = s.status
          and d.id < before
        order by d.organisation_id desc, d.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.webhook_endpoints w
    where w.id = page_of_webhook_deliveries.webhook_endpoint_id and w.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(types) t (type)
    cross join unnest(v_statuses) s (status)
    cross join lateral (
      select d.id
      from public.webhook_deliveries d
      where d.webhook_endpoint_id = page_of_webhook_deliveries.webhook_endpoint_id
        and d.type = t.type
        and d.status = s.status
        and d.id < before
      order by d.webhook_endpoint_id desc, d.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_webhook_deliveries to scope_events_write;

create function api.list_webhook_deliveries(
  webhook_endpoint_id uuid default null,
  notification_id uuid default null,
  type public.notification_type default null,
  status public.webhook_delivery_status default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_items json[];
begin
  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_webhook_deliveries.type);
  end if;
  v_ids := private.page_of_webhook_deliveries(
    list_webhook_deliveries.notification_id, list_webhook_deliveries.webhook_endpoint_id, v_types, list_webhook_deliveries.status,
    v_before, v_size + 1
  );
  v_items := array(
    select private.webhook_delivery_json(d.delivery)
    from unnest(v_ids) i (id)
    -- Fenced: with the conditions of the policy beside it, 327 pages were read instead of 150, by the organisation.
    cross join lateral (select d.id, d as delivery from public.webhook_deliveries d where d.id = i.id offset 0) d
    order by d.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_webhook_deliveries is
  'Deliveries to webhook endpoints, newest first, with optional filters: { data, has_more, next_cursor }.';
grant execute on function api.list_webhook_deliveries to scope_events_write;

create function api.redeliver_webhook(
  webhook_delivery_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_delivery public.webhook_deliveries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- The endpoint is locked before its deliveries, as everywhere.
  perform 1
  from public.webhook_endpoints w
  where w.id = (
    select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = redeliver_webhook.webhook_delivery_id
  )
  for no key update;
  select d.* into v_webhook_delivery
  from public.webhook_deliveries d
  where d.id = redeliver_webhook.webhook_delivery_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_delivery_id');
  end if;
  perform private.assert_sendable(v_webhook_delivery.webhook_endpoint_id, v_webhook_delivery.type);
  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id = v_webhook_delivery.id
  returning * into v_webhook_delivery;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_delivery_json(v_webhook_delivery))
  );
end
$$;
comment on function api.redeliver_webhook is
  'Queues a delivery again with the same webhook-id, whatever its status: 200. 404 not_found; 409 webhook_endpoint_disabled, type_not_subscribed.';
grant execute on function api.redeliver_webhook to scope_events_write;

-- All that failed, since a time if one is given, or waits for its next attempt, for example after an outage of the endpoint; at most 10,000
-- per call, oldest first. That time is one of the delivery: what an endpoint failed to take may be older than `failing_since`. What is due or in flight is left alone, so that a repeated call finds the rest.
create function api.redeliver_webhooks(
  webhook_endpoint_id uuid,
  updated_after timestamptz default null,
  created_before timestamptz default null,
  status public.webhook_delivery_status default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_statuses public.webhook_delivery_status[] :=
    case when redeliver_webhooks.status is null then '{failed,pending}' else array[redeliver_webhooks.status] end;
  v_webhook_endpoint public.webhook_endpoints;
  v_redelivered integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- The endpoint is locked before its deliveries, as everywhere.
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = redeliver_webhooks.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_sendable(webhook_endpoint_id, 'webhook_endpoint.test');

  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id in (
    select f.id
    from public.webhook_deliveries f
    where f.webhook_endpoint_id = v_webhook_endpoint.id
      and f.status = any (v_statuses)
      and (f.status <> 'pending' or (f.next_attempt_at > now() and coalesce(f.claimed_until <= now(), true)))
      and f.type = any (private.subscribed_types(v_webhook_endpoint.types))
      and (updated_after is null or f.updated_at >= updated_after)
      and (created_before is null or f.created_at < created_before)
    order by f.id
    limit 10000
    for no key update
  );
  get diagnostics v_redelivered = row_count;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object(
      'object', 'webhook_redelivery', 'webhook_endpoint_id', webhook_endpoint_id, 'redelivered', v_redelivered
    )
  ));
end
$$;
comment on function api.redeliver_webhooks is
  'Queues failed deliveries of a webhook endpoint again and retries waiting ones at once, at most 10,000: 200 with their number. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.redeliver_webhooks to scope_events_write;

-- Adds a test notification with its one delivery. The courier sends the example, if there is a type: the log keeps the test as what it is, so
-- nobody who reads it takes an example for a change. Security definer: no role may write the outbox.
create function private.notify_test(webhook_endpoint_id uuid, example_type public.notification_type) returns public.webhook_deliveries
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
  v_notification_id uuid;
  v_webhook_delivery public.webhook_deliveries;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = notify_test.webhook_endpoint_id and w.organisation_id = private.current_organisation_id();
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (v_webhook_endpoint.organisation_id, 'webhook_endpoint.test', private.webhook_endpoint_json(v_webhook_endpoint), v_webhook_endpoint.id)
  returning id into v_notification_id;
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type, example_type)
  values (v_webhook_endpoint.organisation_id, v_webhook_endpoint.id, v_notification_id, 'webhook_endpoint.test', example_type)
  returning * into v_webhook_delivery;
  return v_webhook_delivery;
end
$$;
grant execute on function private.notify_test to scope_events_write;

create function api.test_webhook_endpoint(
  webhook_endpoint_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null,
  type public.notification_type default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.webhook_endpoints w where w.id = test_webhook_endpoint.webhook_endpoint_id) then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_sendable(webhook_endpoint_id, 'webhook_endpoint.test');

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_delivery_json(private.notify_test(webhook_endpoint_id, type))
  ));
end
$$;
comment on function api.test_webhook_endpoint is
  'Queues a notification of type webhook_endpoint.test for a webhook endpoint, or the documented example of a type: 201 with the delivery. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.test_webhook_endpoint to scope_events_write;
