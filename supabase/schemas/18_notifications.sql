-- The outbox. What happens is written down in the transaction in which it happens, once as a notification, and once as a
-- delivery for each webhook endpoint that wants to hear of it. Nothing is sent from here: the courier does that.

create table public.notifications (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  type public.notification_type not null,
  data json not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  created_at timestamptz not null default now(),
  constraint notifications_pkey primary key (id),
  constraint notifications_id_organisation_id_key unique (id, organisation_id),
  constraint notifications_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);
comment on table public.notifications is 'What happened, oldest first: the outbox, readable as a log. Written by Usher alone.';
comment on column public.notifications.data is 'The object as the API answered it then: an order as it was at the end of that transaction, and without ticket codes.';
comment on column public.notifications.transaction_id is
  'Ids are given before a transaction ends and may become visible out of order; whoever reads on from the last they saw must miss none. So the log is in the order of transactions, and shows those before which none is open.';

create index notifications_organisation_id_transaction_id_id_idx on public.notifications (organisation_id, transaction_id, id);

create type public.webhook_delivery_status as enum ('pending', 'delivered', 'failed', 'cancelled');

create table public.webhook_deliveries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  webhook_endpoint_id uuid not null,
  notification_id uuid not null,
  type public.notification_type not null,
  status public.webhook_delivery_status not null default 'pending',
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  claim uuid,
  claimed_until timestamptz,
  last_attempt_at timestamptz,
  last_response_status integer,
  last_response_body text,
  last_response_milliseconds integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_deliveries_pkey primary key (id),
  constraint webhook_deliveries_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id, organisation_id)
    references public.webhook_endpoints (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_notification_id_fkey foreign key (notification_id, organisation_id)
    references public.notifications (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_attempts_are_not_negative check (attempts >= 0),
  constraint webhook_deliveries_pending_have_a_next_attempt check ((status = 'pending') = (next_attempt_at is not null)),
  constraint webhook_deliveries_last_response_body_is_an_excerpt check (length(last_response_body) <= 1024)
);
comment on table public.webhook_deliveries is 'One notification for one webhook endpoint, and how sending it went.';
comment on column public.webhook_deliveries.claim is 'Names the courier that is sending it; what another courier says of it does not count.';
comment on column public.webhook_deliveries.status is 'Set it to pending to have it sent once more.';
comment on column public.webhook_deliveries.last_response_body is 'The first 1024 characters of what the endpoint answered.';

create index webhook_deliveries_webhook_endpoint_id_idx on public.webhook_deliveries (webhook_endpoint_id, id desc);
create index webhook_deliveries_notification_id_idx on public.webhook_deliveries (notification_id);
create index webhook_deliveries_organisation_id_id_idx on public.webhook_deliveries (organisation_id, id desc);
create index webhook_deliveries_next_attempt_at_idx on public.webhook_deliveries (next_attempt_at) where status = 'pending';
create index webhook_deliveries_webhook_endpoint_id_next_attempt_at_idx
  on public.webhook_deliveries (webhook_endpoint_id, next_attempt_at) where status = 'pending';
create index webhook_deliveries_webhook_endpoint_id_claimed_idx
  on public.webhook_deliveries (webhook_endpoint_id) where claimed_until is not null;

-- Nothing is sent to an endpoint that is disabled, nor of a type that it does not hear of any more.
create function private.refuse_unsendable(webhook_endpoint_id uuid, type public.notification_type) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint from public.webhook_endpoints w where w.id = refuse_unsendable.webhook_endpoint_id;
  if v_webhook_endpoint.status = 'disabled' then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id', hint => 'Enable it first.'
    );
  elsif type <> 'webhook_endpoint.test' and type <> all (v_webhook_endpoint.types) then
    perform private.refuse(
      409, 'type_not_subscribed', 'The webhook endpoint does not hear of this type any more.', 'type',
      hint => 'Add the type to the endpoint first.'
    );
  end if;
end
$$;
grant execute on function private.refuse_unsendable(uuid, public.notification_type) to scope_events_write;

-- Setting a delivery to pending owes it once more, from the beginning; a settled one has no next attempt.
create function private.tg_webhook_deliveries__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status = 'pending' and old.status <> 'pending' then
    perform private.refuse_unsendable(new.webhook_endpoint_id, new.type);
    new.attempts := 0;
    new.next_attempt_at := coalesce(new.next_attempt_at, now());
  elsif new.status = 'pending' and new.attempts = 0 and old.attempts > 0 then
    -- Owed once more while it is under way: what becomes of that attempt does not count any more.
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
create trigger webhook_deliveries_900_updated_at before update on public.webhook_deliveries
  for each row execute function private.tg__set_updated_at();

-- What an endpoint does not hear of any more, it is not sent any more either. Security definer, like all that follows: the
-- outbox is nobody's to write.
create function private.tg_webhook_endpoints__cancel_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.webhook_deliveries d set status = 'cancelled'
  where d.webhook_endpoint_id = new.id
    and d.status = 'pending'
    and d.type <> 'webhook_endpoint.test'
    and d.type <> all (new.types);
  return null;
end
$$;
create trigger webhook_endpoints_500_cancel_deliveries after update on public.webhook_endpoints
  for each row when (new.types is distinct from old.types)
  execute function private.tg_webhook_endpoints__cancel_deliveries();

create function private.tg_notifications__owe_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  select n.organisation_id, w.id, n.id, n.type
  from new_rows n
  join public.webhook_endpoints w on w.organisation_id = n.organisation_id
  where w.status = 'enabled' and n.type = any (w.types)
  order by w.id
  -- An endpoint that is being deleted is waited for, and then owed nothing if it is gone: nothing that happens may fail by it.
  for key share of w;
  return null;
end
$$;
create trigger notifications_500_owe_deliveries after insert on public.notifications
  referencing new table as new_rows
  for each statement execute function private.tg_notifications__owe_deliveries();

-- Orders tell of themselves when the transaction ends: only then are their attendees and payments all there.
create function private.tg_orders__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_types public.notification_type[] := case new.status
    when 'completed' then '{order.completed}'
    when 'cancelled' then '{order.cancelled}'
    else '{}'
  end;
  v_data json;
begin
  if tg_op = 'INSERT' then
    v_types := 'order.created'::public.notification_type || v_types;
  end if;
  select o.* into v_order from public.orders o where o.id = new.id;
  if not found then
    return null;
  end if;
  v_data := private.order_json(
    v_order, private.attendees_of_order_json(v_order.id), private.order_payments_json(v_order.id)
  );
  insert into public.notifications (organisation_id, type, data)
  select v_order.organisation_id, t.type, v_data from unnest(v_types) t (type);
  return null;
end
$$;
create constraint trigger orders_600_notify_insert after insert on public.orders
  deferrable initially deferred
  for each row execute function private.tg_orders__notify();
create constraint trigger orders_600_notify_update after update on public.orders
  deferrable initially deferred
  for each row when (new.status <> old.status) execute function private.tg_orders__notify();

-- Who comes with a new order is told of with it; who is added to one that was there is told of here.
create function private.tg_attendees__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' and exists (select from public.orders o where o.id = new.order_id and o.created_at = now()) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when tg_op = 'UPDATE' and new.status = 'cancelled' and old.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(new)
  );
  return null;
end
$$;
create trigger attendees_600_notify_insert after insert on public.attendees
  for each row execute function private.tg_attendees__notify();
create trigger attendees_600_notify_update after update on public.attendees
  for each row when (
    (new.name, new.email, new.company, new.status, new.ticket_type_id, new.ticket_code, new.external_id, new.metadata)
    is distinct from
    (old.name, old.email, old.company, old.status, old.ticket_type_id, old.ticket_code, old.external_id, old.metadata)
  )
  execute function private.tg_attendees__notify();

create function private.tg_check_ins__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    a.organisation_id,
    case tg_op when 'INSERT' then 'attendee.checked_in' else 'attendee.check_in_undone' end::public.notification_type,
    private.attendee_json(a)
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;
create trigger check_ins_600_notify_insert after insert on public.check_ins
  for each row when (new.result = 'accepted') execute function private.tg_check_ins__notify();
create trigger check_ins_600_notify_update after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify();

create function private.tg_events__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- A row that is saved as it was is no news.
  if to_jsonb(new) - 'version' - 'updated_at' = to_jsonb(old) - 'version' - 'updated_at' then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new)
  );
  return null;
end
$$;
create trigger events_600_notify after update on public.events
  for each row execute function private.tg_events__notify();

revoke all on public.notifications, public.webhook_deliveries from anon, authenticated, service_role;

-- A key reads of the log what it might read of the objects.
create function private.readable_types() returns public.notification_type[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select t from unnest(enum_range(null::public.notification_type)) t
    where private.scope_to_read(t) = any (private.current_scopes())
  );
end
$$;
grant execute on function private.readable_types() to scope_events_write;

alter table public.notifications enable row level security;
create policy notifications_select_own on public.notifications for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy notifications_select_membership on public.notifications for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.notifications to scope_events_write, authenticated;

alter table public.webhook_deliveries enable row level security;
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
  using (organisation_id in (select private.member_organisation_ids()));
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
grant execute on function private.webhook_delivery_json(public.webhook_deliveries) to scope_events_write;

-- Oldest first, to read on from the last one seen: `after` is the id of a notification, which is also the webhook-id of what
-- was delivered; `cursor` walks the pages as in any list.
create function api.list_notifications(
  type public.notification_type default null,
  after uuid default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is no longer kept.',
        case when cursor is null then 'after' else 'cursor' end,
        hint => 'Leave it out to start from the oldest that is kept.'
      );
    end if;
  end if;

  select array_agg(p.item order by p.transaction_id, p.id) into v_items
  from (
    select
      n.transaction_id,
      n.id,
      json_build_object(
        'object', 'notification',
        'id', n.id,
        'type', n.type,
        'created_at', private.rfc3339(n.created_at),
        'data', n.data
      ) as item
    from public.notifications n
    where (v_last_id is null or (n.transaction_id, n.id) > (v_last.transaction_id, v_last.id))
      and (list_notifications.type is null or n.type = list_notifications.type)
      and n.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    order by n.transaction_id, n.id
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_notifications(public.notification_type, uuid, text, integer) is
  'What happened, oldest first, from after the notification that is named, as far as the key may read it: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_notifications(public.notification_type, uuid, text, integer) to scope_events_write;

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
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.webhook_delivery_json(p) order by p.id desc) into v_items
  from (
    select d.*
    from public.webhook_deliveries d
    where (list_webhook_deliveries.webhook_endpoint_id is null or d.webhook_endpoint_id = list_webhook_deliveries.webhook_endpoint_id)
      and (list_webhook_deliveries.notification_id is null or d.notification_id = list_webhook_deliveries.notification_id)
      and (list_webhook_deliveries.type is null or d.type = list_webhook_deliveries.type)
      and (list_webhook_deliveries.status is null or d.status = list_webhook_deliveries.status)
      and (v_before is null or d.id < v_before)
    order by d.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_webhook_deliveries(uuid, uuid, public.notification_type, public.webhook_delivery_status, text, integer) is
  'Deliveries to webhook endpoints, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_webhook_deliveries(uuid, uuid, public.notification_type, public.webhook_delivery_status, text, integer)
  to scope_events_write;

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

  select d.* into v_webhook_delivery
  from public.webhook_deliveries d
  where d.id = redeliver_webhook.webhook_delivery_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_delivery_id');
  end if;
  perform private.refuse_unsendable(v_webhook_delivery.webhook_endpoint_id, v_webhook_delivery.type);
  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id = v_webhook_delivery.id
  returning * into v_webhook_delivery;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_delivery_json(v_webhook_delivery))
  );
end
$$;
comment on function api.redeliver_webhook(uuid, text, text) is
  'Owes a delivery once more, whatever became of it, with the same webhook-id: 200. 404 not_found; 409 webhook_endpoint_disabled, type_not_subscribed.';
grant execute on function api.redeliver_webhook(uuid, text, text) to scope_events_write;

-- All that failed since a time, say after an outage of the endpoint; at most ten thousand at once, the oldest first.
create function api.redeliver_webhooks(
  webhook_endpoint_id uuid,
  since timestamptz,
  until timestamptz default null,
  status public.webhook_delivery_status default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
  v_redelivered integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = redeliver_webhooks.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.refuse_unsendable(webhook_endpoint_id, 'webhook_endpoint.test');

  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id in (
    select f.id
    from public.webhook_deliveries f
    where f.webhook_endpoint_id = v_webhook_endpoint.id
      and f.status = coalesce(redeliver_webhooks.status, 'failed')
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
comment on function api.redeliver_webhooks(uuid, timestamptz, timestamptz, public.webhook_delivery_status, text, text) is
  'Owes a webhook endpoint once more what failed since a time, at most 10,000: 200 with how many. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.redeliver_webhooks(uuid, timestamptz, timestamptz, public.webhook_delivery_status, text, text)
  to scope_events_write;

-- Tells one endpoint of itself. Security definer: the outbox is nobody's to write.
create function private.notify_test(webhook_endpoint_id uuid) returns public.webhook_deliveries
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
  insert into public.notifications (organisation_id, type, data)
  values (v_webhook_endpoint.organisation_id, 'webhook_endpoint.test', private.webhook_endpoint_json(v_webhook_endpoint))
  returning id into v_notification_id;
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  values (v_webhook_endpoint.organisation_id, v_webhook_endpoint.id, v_notification_id, 'webhook_endpoint.test')
  returning * into v_webhook_delivery;
  return v_webhook_delivery;
end
$$;
grant execute on function private.notify_test(uuid) to scope_events_write;

create function api.test_webhook_endpoint(
  webhook_endpoint_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
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
  perform private.refuse_unsendable(webhook_endpoint_id, 'webhook_endpoint.test');

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_delivery_json(private.notify_test(webhook_endpoint_id))
  ));
end
$$;
comment on function api.test_webhook_endpoint(uuid, text, text) is
  'Owes a webhook endpoint a notification of type webhook_endpoint.test: 201 with the delivery. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.test_webhook_endpoint(uuid, text, text) to scope_events_write;
