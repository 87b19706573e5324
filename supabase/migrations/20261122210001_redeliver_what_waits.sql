-- redeliver what waits. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function api.redeliver_webhooks (
  webhook_endpoint_id uuid,
  since timestamp with time zone,
  until timestamp with time zone default null::timestamp with time zone,
  status public.webhook_delivery_status default null::public.webhook_delivery_status,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
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
      and f.type = any (v_webhook_endpoint.types)
      and f.created_at >= since
      and (until is null or f.created_at < until)
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

comment on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
  with time zone, public.webhook_delivery_status, text, text) is 'Queues again what failed for a webhook endpoint since a time, and makes due what waits for its next attempt, at most 10,000: 200 with how many. 404 not_found; 409 webhook_endpoint_disabled.';
