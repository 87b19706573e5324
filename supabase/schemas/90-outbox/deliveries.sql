-- Webhook deliveries: one notification for one webhook endpoint. A notification is queued as it is inserted; the courier makes its deliveries,
-- leases and sends them, and settles each with the answer (webhook-claims.sql).

create type public.webhook_delivery_status as enum ('pending', 'delivered', 'failed', 'cancelled');

create table public.webhook_deliveries (
  type public.notification_type not null,
  example_type public.notification_type,
  status public.webhook_delivery_status not null default 'pending',
  webhook_endpoint_id uuid not null,
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  last_attempt_at timestamptz,
  last_response_status integer,
  last_response_milliseconds integer,
  last_response_body text,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  notification_id uuid not null,
  claim uuid,
  claimed_until timestamptz,
  constraint webhook_deliveries_pkey primary key (id),
  constraint webhook_deliveries_notification_id_fkey foreign key (notification_id, organisation_id)
    references public.notifications (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_attempts_are_not_negative check (attempts >= 0),
  constraint webhook_deliveries_pending_have_a_next_attempt check ((status = 'pending') = (next_attempt_at is not null)),
  constraint webhook_deliveries_last_response_body_is_an_excerpt check (length(last_response_body) <= 1024)
);
comment on table public.webhook_deliveries is 'Delivery of one notification to one webhook endpoint, with its result.';
comment on column public.webhook_deliveries.type is 'The type of the notification.';
comment on column public.webhook_deliveries.example_type is 'Of a test: the type whose documented example is sent.';
comment on column public.webhook_deliveries.status is 'Set it to pending to send it again.';
comment on column public.webhook_deliveries.webhook_endpoint_id is 'Where it is sent.';
comment on column public.webhook_deliveries.attempts is 'Attempts since it was last queued.';
comment on column public.webhook_deliveries.next_attempt_at is 'Time of the next attempt. Empty once settled.';
comment on column public.webhook_deliveries.last_attempt_at is 'Time of the last attempt.';
comment on column public.webhook_deliveries.last_response_status is 'HTTP status of the last response.';
comment on column public.webhook_deliveries.last_response_milliseconds is 'Response time of the endpoint.';
comment on column public.webhook_deliveries.last_response_body is 'The first 1024 characters of the response.';
comment on column public.webhook_deliveries.last_error is 'Why there was no response.';
comment on column public.webhook_deliveries.delivered_at is 'When it was delivered.';
comment on column public.webhook_deliveries.notification_id is 'The notification that is sent. Its id is the webhook-id.';
comment on column public.webhook_deliveries.claim is 'Internal: lease under which it is being sent. A result with another lease is ignored.';
comment on column public.webhook_deliveries.claimed_until is 'Internal: end of the courier''s lease.';

-- For private.page_of_webhook_deliveries. The type before the status: with the endpoint and the status alone, the claim of what is
-- pending would at times be planned with it.
create index webhook_deliveries_webhook_endpoint_id_type_status_idx
  on public.webhook_deliveries (webhook_endpoint_id, type, status, id);
create index webhook_deliveries_organisation_id_type_status_idx
  on public.webhook_deliveries (organisation_id, type, status, id);
-- At most one delivery per notification and endpoint, whatever else goes wrong.
create unique index webhook_deliveries_notification_id_webhook_endpoint_id_key
  on public.webhook_deliveries (notification_id, webhook_endpoint_id);
-- No index on next_attempt_at alone: the planner would prefer it at times, and scan what is due to all endpoints for what is
-- due to one.
create index webhook_deliveries_webhook_endpoint_id_next_attempt_at_idx
  on public.webhook_deliveries (webhook_endpoint_id, next_attempt_at) where status = 'pending';
create index webhook_deliveries_webhook_endpoint_id_claimed_idx
  on public.webhook_deliveries (webhook_endpoint_id) where claimed_until is not null;
-- For api.purge.
create index webhook_deliveries_created_at_idx on public.webhook_deliveries (created_at);

-- A notification is queued for the endpoints that are enabled and subscribed at that moment. They are read, and neither locked nor referenced, so
-- that a change of one holds up no registration. Security definer: a role that writes need not see endpoints.
create function private.tg_notifications__queue() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  new.queued_for := (
    select array_agg(w.id)
    from public.webhook_endpoints w
    where w.organisation_id = new.organisation_id
      and w.status = 'enabled'
      and new.type = any (private.subscribed_types(w.types))
      -- Reads the data only for an endpoint that chose events.
      and (
        w.event_ids = '{}'
        or coalesce(new.data ->> 'event_id', case new.data ->> 'object' when 'event' then new.data ->> 'id' end)::uuid = any (w.event_ids)
      )
  );
  return new;
end
$$;
create trigger notifications_500_queue before insert on public.notifications
  for each row execute function private.tg_notifications__queue();

-- Makes the deliveries of what is queued: about a thousand at a time, which the organisations share. So a cancelled event delays no other, and a
-- claim ends in time however much waits after an outage.
create function private.enqueue_deliveries() returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_ids constant uuid[] := array(
    with recursive organisation as (
      (
        select n.organisation_id as id from public.notifications n
        where n.queued_for is not null
        order by n.organisation_id, n.id
        limit 1
      )
      union all
      select m.id
      from organisation o
      cross join lateral (
        select n.organisation_id as id from public.notifications n
        where n.queued_for is not null and n.organisation_id > o.id
        order by n.organisation_id, n.id
        limit 1
      ) m
    )
    select q.id
    from organisation o
    cross join lateral (
      select n.id from public.notifications n
      where n.queued_for is not null and n.organisation_id = o.id
      order by n.organisation_id, n.id
      limit greatest(1, 1000 / (
        (select count(*) from organisation) * (select 1 + count(*) from public.webhook_endpoints w where w.organisation_id = o.id)
      ))
      for no key update skip locked
    ) q
  );
begin
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  select n.organisation_id, q.id, n.id, n.type
  from public.notifications n
  cross join unnest(n.queued_for) q (id)
  where n.id = any (v_ids);
  update public.notifications n set queued_for = null where n.id = any (v_ids);
end
$$;

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('webhook_deliveries', 'last_response_body', 'null', null);

-- Nothing is sent to a disabled endpoint, nor of a type that it no longer subscribes to.
create function private.assert_sendable(webhook_endpoint_id uuid, type public.notification_type) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint from public.webhook_endpoints w where w.id = assert_sendable.webhook_endpoint_id;
  if v_webhook_endpoint.status = 'disabled' then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id',
      hint => 'Enable it first' || case when private.is_by_hand() then '.' else ': update_webhook_endpoint.' end
    );
  elsif type <> 'webhook_endpoint.test' and type <> all (private.subscribed_types(v_webhook_endpoint.types)) then
    perform private.refuse(
      409, 'type_not_subscribed', 'The webhook endpoint no longer subscribes to this type.', 'type',
      hint => 'Add the type to the endpoint first.'
    );
  end if;
end
$$;
grant execute on function private.assert_sendable to scope_events_write;

-- Setting a delivery to pending starts its attempts anew; a settled one has no next attempt.
create function private.tg_webhook_deliveries__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status = 'pending' and old.status <> 'pending' then
    perform private.assert_sendable(new.webhook_endpoint_id, new.type);
    new.attempts := 0;
    new.next_attempt_at := coalesce(new.next_attempt_at, now());
  elsif new.status = 'pending' and new.attempts = 0 and old.attempts > 0 then
    -- Redelivered while it is in flight: the result of that attempt is ignored.
    new.claim := null;
  elsif new.status <> 'pending' then
    new.next_attempt_at := null;
    new.claim := null;
    new.claimed_until := null;
  end if;
  return new;
end
$$;
create trigger webhook_deliveries_100_guard before update on public.webhook_deliveries
  for each row execute function private.tg_webhook_deliveries__guard();
select private.keep_table('public.webhook_deliveries', required => '{}', derived => null);

-- Pending deliveries of types that the endpoint no longer subscribes to are cancelled; those of a deleted endpoint go with it.
-- Security definer: no role may write the outbox.
create function private.tg_webhook_endpoints__drop_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'DELETE' then
    delete from public.webhook_deliveries d where d.webhook_endpoint_id = old.id;
  elsif new.types is distinct from old.types then
    update public.webhook_deliveries d set status = 'cancelled'
    where d.webhook_endpoint_id = new.id and d.status = 'pending'
      and d.type <> all (array_append(private.subscribed_types(new.types), 'webhook_endpoint.test'));
  end if;
  return null;
end
$$;
create trigger webhook_endpoints_500_drop_deliveries after delete or update of types on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__drop_deliveries();

create policy webhook_deliveries_select_own on public.webhook_deliveries for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy webhook_deliveries_update_own on public.webhook_deliveries for update to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy webhook_deliveries_select_membership on public.webhook_deliveries for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.webhook_deliveries to scope_events_write, authenticated;
grant update (status, attempts, next_attempt_at) on public.webhook_deliveries to scope_events_write;

create function private.webhook_delivery_json(webhook_delivery public.webhook_deliveries) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_delivery',
    'id', webhook_delivery.id,
    'webhook_endpoint_id', webhook_delivery.webhook_endpoint_id,
    'notification_id', webhook_delivery.notification_id,
    'type', webhook_delivery.type,
    'status', webhook_delivery.status,
    'attempts', webhook_delivery.attempts,
    'next_attempt_at', private.rfc3339(webhook_delivery.next_attempt_at),
    'last_attempt_at', private.rfc3339(webhook_delivery.last_attempt_at),
    'last_response', case when webhook_delivery.last_response_status is not null then json_build_object(
      'status', webhook_delivery.last_response_status,
      'body', webhook_delivery.last_response_body,
      'milliseconds', webhook_delivery.last_response_milliseconds
    ) end,
    'last_error', webhook_delivery.last_error,
    'delivered_at', private.rfc3339(webhook_delivery.delivered_at),
    'created_at', private.rfc3339(webhook_delivery.created_at),
    'updated_at', private.rfc3339(webhook_delivery.updated_at)
  );
end
$$;
grant execute on function private.webhook_delivery_json to scope_events_write;
