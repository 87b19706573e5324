-- The fan-out of notifications behind the commit, for any number of webhook endpoints; statements that change many orders or
-- attendees; turns of organisations among ticket e-mails; one order of locks; pages that are bounded in bytes.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion

set local lock_timeout = '5s';
set local statement_timeout = '300s';

-- It has parameters more, which whoever is of the version before leaves out.
drop function api.list_ticket_types(uuid);

drop trigger notifications_500_owe_deliveries on public.notifications;
drop function private.tg_notifications__owe_deliveries();
drop trigger orders_600_notify_insert on public.orders;
drop trigger orders_600_notify_update on public.orders;
drop function private.tg_orders__notify();
drop trigger attendees_600_notify_insert on public.attendees;
drop trigger attendees_600_notify_update on public.attendees;
drop function private.tg_attendees__notify();
drop trigger attendees_500_owe_ticket_email_insert on public.attendees;
drop trigger attendees_500_owe_ticket_email_update on public.attendees;

-- 01_request.sql

create or replace function private.rfc3339(moment timestamptz) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end
$$;

create function private.page_bytes() returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return 1048576;
end
$$;
grant execute on function private.page_bytes() to api_key;

create or replace function private.page(items json[], size integer) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_kept integer := least(coalesce(cardinality(items), 0), size);
  v_bytes integer := private.page_bytes();
  v_sum bigint := 0;
begin
  if pg_column_size(items) > v_bytes then
    for i in 1..v_kept loop
      v_sum := v_sum + pg_column_size(items[i]);
      if v_sum > v_bytes and i > 1 then
        v_kept := i - 1;
        exit;
      end if;
    end loop;
  end if;
  return json_build_object(
    'data', coalesce(to_json(items[1:v_kept]), '[]'),
    'has_more', coalesce(cardinality(items), 0) > v_kept,
    'next_cursor', case when cardinality(items) > v_kept then private.encode_cursor((items[v_kept] ->> 'id')::uuid) end
  );
end
$$;

-- 05_events.sql

create or replace function api.list_events(
  status public.event_status default null,
  external_id text default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_event public.events;
  v_item json;
  v_items json[];
begin
  for v_event in
    select e.*
    from public.events e
    where (list_events.status is null or e.status = list_events.status)
      and (list_events.external_id is null or e.external_id = list_events.external_id)
      and (v_before is null or e.id < v_before)
    order by e.id desc
    limit v_size + 1
  loop
    v_item := private.event_json(v_event);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

-- 06_ticket_types.sql

create function api.list_ticket_types(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size(coalesce("limit", 100));
  v_last_id uuid := private.decode_cursor(cursor);
  v_last public.ticket_types;
  v_event public.events;
  v_places_left bigint;
  v_bytes integer := private.page_bytes();
  v_ticket_type public.ticket_types;
  v_item json;
  v_items json[];
begin
  select e.* into v_event from public.events e where e.id = list_ticket_types.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  if v_last_id is not null then
    select t.* into v_last from public.ticket_types t where t.id = v_last_id and t.event_id = v_event.id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such ticket type of the event any more.', 'cursor', hint => 'Leave it out to start again.'
      );
    end if;
  end if;

  select v_event.capacity - coalesce(sum(t.quantity_sold), 0) into v_places_left
  from public.ticket_types t
  where t.event_id = v_event.id;

  for v_ticket_type in
    select t.*
    from public.ticket_types t
    where t.event_id = v_event.id
      and (v_last_id is null or (t.position, t.id) > (v_last.position, v_last.id))
    order by t.position, t.id
    limit v_size + 1
  loop
    v_item := private.ticket_type_json(v_ticket_type, v_event.currency, v_places_left);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_ticket_types(uuid, text, integer) is
  'Ticket types of an event in the organiser''s order: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_ticket_types(uuid, text, integer) to scope_events_read;

-- 07_promo_codes.sql

create or replace function api.list_promo_codes(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_promo_code public.promo_codes;
  v_item json;
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_promo_codes.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  for v_promo_code in
    select c.*
    from public.promo_codes c
    where c.event_id = list_promo_codes.event_id and (v_before is null or c.id < v_before)
    order by c.id desc
    limit v_size + 1
  loop
    v_item := private.promo_code_json(v_promo_code);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

-- 09_attendees.sql

-- Pages that are written from now on.
alter table public.orders set (fillfactor = 50);
alter table public.attendees set (fillfactor = 50);

create or replace function private.tg_orders__update_attendees() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Arrays and no join: its plan would be that of the first call, and after a cancelled event scan the table for every order.
  v_completed uuid[] := array(select n.id from new_rows n where n.status = 'completed');
  v_cancelled uuid[] := array(select n.id from new_rows n where n.status = 'cancelled');
begin
  if v_completed <> '{}' then
    update public.attendees a set status = 'active' where a.order_id = any (v_completed) and a.status = 'awaiting_payment';
  end if;
  if v_cancelled <> '{}' then
    update public.attendees a set status = 'cancelled' where a.order_id = any (v_cancelled) and a.status <> 'cancelled';
  end if;
  return null;
end
$$;

-- 10_totals.sql

create or replace function private.tg_attendees__add_up() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order_ids uuid[];
  v_uses private.use_move[] := '{}';
  v_move record;
begin
  if tg_op = 'INSERT' then
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    v_uses := array(select row(n.promo_code_id, 1)::private.use_move from new_rows n where n.promo_code_id is not null);
  elsif tg_op = 'DELETE' then
    v_order_ids := array(select distinct o.order_id from old_rows o where o.status <> 'cancelled');
    v_uses := array(
      select row(o.promo_code_id, -1)::private.use_move
      from old_rows o
      where o.promo_code_id is not null and o.status <> 'cancelled'
    );
  else
    -- Who is cancelled and was not. No join of the two: its plan would be that of the first call, which sees one row, and a
    -- nested loop over the ten thousand of a cancelled event takes minutes.
    select coalesce(array_agg(distinct c.order_id), '{}'),
      coalesce(array_agg(row(c.promo_code_id, -1)::private.use_move) filter (where c.promo_code_id is not null), '{}')
    into v_order_ids, v_uses
    from (
      select n.id, n.order_id, n.promo_code_id from new_rows n where n.status = 'cancelled'
      except
      select o.id, o.order_id, o.promo_code_id from old_rows o where o.status = 'cancelled'
    ) c;
    -- An order that is cancelled keeps its totals: where an event is cancelled, none is left to be locked and added up.
    v_order_ids := array(select o.id from public.orders o where o.id = any (v_order_ids) and o.status <> 'cancelled');
  end if;

  if v_order_ids <> '{}' then
    -- Locked before they are added up: an update that waits for a row sees its new version, but goes on with the sums it had.
    perform 1 from public.orders o where o.id = any (v_order_ids) order by o.id for no key update;
    update public.orders o
    set subtotal = s.subtotal, discount_total = s.discount_total
    from (
      select a.order_id, sum(a.price) as subtotal, sum(a.discount) as discount_total
      from public.attendees a
      where a.order_id = any (v_order_ids) and a.status <> 'cancelled'
      group by a.order_id
    ) s
    where o.id = s.order_id
      and o.status <> 'cancelled'
      -- A new ticket may complete an order also where it costs nothing.
      and (tg_op = 'INSERT' and o.status = 'pending' or (o.subtotal, o.discount_total) <> (s.subtotal, s.discount_total));
    if tg_op <> 'INSERT' then
      update public.orders o
      set status = 'cancelled'
      where o.id = any (v_order_ids)
        and o.status <> 'cancelled'
        and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
    elsif exists (
      select from public.orders o
      where o.id = any (v_order_ids)
        and o.promo_code_id is not null
        and not exists (select from public.attendees a where a.order_id = o.id and a.promo_code_id is not null)
    ) then
      perform private.refuse(
        409, 'promo_code_not_applicable', 'The promo code is not for any of these tickets.', 'promo_code',
        hint => 'Its ticket_type_ids say what it is for; free tickets use no code.'
      );
    end if;
  end if;

  for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
    perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
  end loop;
  return null;
end
$$;

-- 13_order_operations.sql

create or replace function api.list_orders(
  event_id uuid default null,
  status public.order_status default null,
  payment_status public.payment_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_order public.orders;
  v_item json;
  v_items json[];
begin
  for v_order in
    select o.*
    from public.orders o
    where (list_orders.event_id is null or o.event_id = list_orders.event_id)
      and (list_orders.status is null or o.status = list_orders.status)
      and (list_orders.payment_status is null or o.payment_status = list_orders.payment_status)
      and (list_orders.email is null or o.email_lower = lower(list_orders.email))
      and (list_orders.reference is null or o.reference = upper(list_orders.reference))
      and (list_orders.external_id is null or o.external_id = list_orders.external_id)
      and (updated_since is null or o.updated_at >= updated_since)
      and (v_before is null or o.id < v_before)
    order by o.id desc
    limit v_size + 1
  loop
    v_item := private.order_with_all(v_order);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

-- 14_attendee_operations.sql

create or replace function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.ticket_email_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  -- First, so that the list is walked by the index on order_id.
  v_referred uuid := (select o.id from public.orders o where o.reference = upper(list_attendees.reference));
  v_bytes integer := private.page_bytes();
  v_attendee public.attendees;
  v_item json;
  v_items json[];
begin
  for v_attendee in
    select a.*
    from public.attendees a
    where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
      and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
      and (list_attendees.reference is null or a.order_id = v_referred)
      and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
      and (list_attendees.status is null or a.status = list_attendees.status)
      and (checked_in is null or (a.checked_in_at is not null) = checked_in)
      and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
      and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
      and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
      and (updated_since is null or a.updated_at >= updated_since)
      and (v_before is null or a.id < v_before)
    order by a.id desc
    limit v_size + 1
  loop
    v_item := private.attendee_json(v_attendee);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

-- 16_check_ins.sql

create or replace function api.list_check_ins(
  event_id uuid default null,
  attendee_id uuid default null,
  result public.check_in_result default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_check_in public.check_ins;
  v_item json;
  v_items json[];
begin
  for v_check_in in
    select c.*
    from public.check_ins c
    where (list_check_ins.event_id is null or c.event_id = list_check_ins.event_id)
      and (list_check_ins.attendee_id is null or c.attendee_id = list_check_ins.attendee_id)
      and (list_check_ins.result is null or c.result = list_check_ins.result)
      and (v_before is null or c.id < v_before)
    order by c.id desc
    limit v_size + 1
  loop
    v_item := private.check_in_json(v_check_in);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function private.lock_orders_of(event_id uuid, codes text[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.pass_gate(event_id);
  perform 1
  from public.orders o
  where o.id in (
    select a.order_id from public.attendees a
    where a.organisation_id = private.current_organisation_id() and a.ticket_code = any (codes)
  )
  order by o.id
  for share;
  perform 1
  from public.attendees a
  where a.organisation_id = private.current_organisation_id() and a.ticket_code = any (codes)
  order by a.id
  for no key update;
end
$$;

-- 17_webhook_endpoints.sql

create or replace function api.list_webhook_endpoints(cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_webhook_endpoint public.webhook_endpoints;
  v_item json;
  v_items json[];
begin
  for v_webhook_endpoint in
    select w.*
    from public.webhook_endpoints w
    where v_before is null or w.id < v_before
    order by w.id desc
    limit v_size + 1
  loop
    v_item := private.webhook_endpoint_json(v_webhook_endpoint);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

-- 18_notifications.sql

drop index public.webhook_deliveries_next_attempt_at_idx;
drop index public.webhook_deliveries_notification_id_idx;
create unique index webhook_deliveries_notification_id_webhook_endpoint_id_key
  on public.webhook_deliveries (notification_id, webhook_endpoint_id);
comment on table public.webhook_deliveries is 'One notification for one webhook endpoint, and how sending it went. Added by the courier, a moment after the notification.';

create table private.notification_queue (
  organisation_id uuid not null,
  transaction_id xid8 not null,
  after_id uuid,
  created_at timestamptz not null default now(),
  constraint notification_queue_pkey primary key (organisation_id, transaction_id)
);
comment on table private.notification_queue is 'Transactions whose notifications await their fan-out to webhook deliveries.';
comment on column private.notification_queue.after_id is 'The last notification of it that was fanned out, in the order of ids.';
alter table private.notification_queue enable row level security;

-- Also where there is no endpoint: one that another transaction adds at this moment may be owed what this one commits.
create function private.tg_notifications__queue() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.notification_queue (organisation_id, transaction_id)
  select distinct n.organisation_id, n.transaction_id from new_rows n where n.type <> 'webhook_endpoint.test'
  on conflict do nothing;
  return null;
end
$$;
create trigger notifications_500_queue after insert on public.notifications
  referencing new table as new_rows
  for each statement execute function private.tg_notifications__queue();

-- What each endpoint was subscribed to, and when: a row for every change of that. "When" is a snapshot rather than a time: the
-- change counts for each transaction that had not been committed when it was made. So whoever subscribes and then reads misses
-- nothing, and the order is that of commits, which no clock knows.
create table private.webhook_subscriptions (
  id uuid not null default private.uuid_v7(),
  "position" integer not null,
  webhook_endpoint_id uuid not null,
  organisation_id uuid not null,
  types public.notification_type[] not null,
  is_enabled boolean not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  snapshot pg_snapshot not null default pg_current_snapshot(),
  constraint webhook_subscriptions_pkey primary key (id),
  constraint webhook_subscriptions_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade
);
comment on table private.webhook_subscriptions is 'Each change of what a webhook endpoint is subscribed to, for the fan-out of what happened before.';
comment on column private.webhook_subscriptions."position" is 'The order of changes, which a clock that is set back does not keep.';
create index webhook_subscriptions_webhook_endpoint_id_position_idx
  on private.webhook_subscriptions (webhook_endpoint_id, "position");
create index webhook_subscriptions_organisation_id_idx on private.webhook_subscriptions (organisation_id);
alter table private.webhook_subscriptions enable row level security;

-- Behind a lock that fan-out of the organisation holds shared, and before the snapshot is taken: a fan-out has either committed,
-- or finds the change. Before 500, so that deliveries of a type that is given up are all there to be cancelled.
create function private.tg_webhook_endpoints__record_subscription() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_change private.webhook_subscriptions;
  v_removed private.webhook_subscriptions;
begin
  perform pg_advisory_xact_lock(8, hashtext(new.organisation_id::text));
  insert into private.webhook_subscriptions (webhook_endpoint_id, organisation_id, "position", types, is_enabled)
  values (
    new.id,
    new.organisation_id,
    (select coalesce(max(s."position"), 0) + 1 from private.webhook_subscriptions s where s.webhook_endpoint_id = new.id),
    new.types,
    new.status = 'enabled'
  )
  returning * into v_change;
  -- The change before it is kept only for a transaction in the queue that came between the two, so that whoever changes an
  -- endpoint again and again leaves no more rows than there are such transactions.
  delete from private.webhook_subscriptions s
  where s.webhook_endpoint_id = new.id
    and s."position" = (
      select max(l."position") from private.webhook_subscriptions l
      where l.webhook_endpoint_id = new.id and l."position" < v_change."position"
    )
    and not exists (
      select from private.notification_queue q
      where q.organisation_id = new.organisation_id
        and (
          q.transaction_id in (s.transaction_id, v_change.transaction_id)
          or (pg_visible_in_snapshot(q.transaction_id, v_change.snapshot) and not pg_visible_in_snapshot(q.transaction_id, s.snapshot))
        )
    )
  returning s.* into v_removed;
  if found then
    -- The types that it had given up stay given up.
    update private.webhook_subscriptions s
    set types = array(select t from unnest(s.types) t where t = any (v_removed.types))
    where s.webhook_endpoint_id = new.id and s."position" < v_removed."position" and not s.types <@ v_removed.types;
  end if;
  return null;
end
$$;
create trigger webhook_endpoints_400_record_subscription_insert after insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__record_subscription();
create trigger webhook_endpoints_400_record_subscription_update after update on public.webhook_endpoints
  for each row when ((new.types, new.status) is distinct from (old.types, old.status))
  execute function private.tg_webhook_endpoints__record_subscription();

create type private.webhook_subscription as (
  webhook_endpoint_id uuid, types public.notification_type[], after_id uuid, before_id uuid
);

-- The subscriptions that hold for the notifications of a committed transaction. after_id and before_id are set where that
-- transaction changed the endpoint itself: then what it did before and after counts. A type that was given up since is left out:
-- its deliveries would have been cancelled.
create function private.subscriptions_at(organisation_id uuid, transaction_id xid8) returns private.webhook_subscription[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select row(
      c.webhook_endpoint_id,
      case when c.next_id is null then c.types else array(
        select t from unnest(c.types) t
        where not exists (
          select from private.webhook_subscriptions l
          where l.webhook_endpoint_id = c.webhook_endpoint_id and l."position" > c."position" and t <> all (l.types)
        )
      ) end,
      case when c.transaction_id = subscriptions_at.transaction_id then c.id end,
      case when c.next_transaction_id = subscriptions_at.transaction_id then c.next_id end
    )::private.webhook_subscription
    from (
      select
        s.*,
        lead(s.id) over changes as next_id,
        lead(s.transaction_id) over changes as next_transaction_id,
        lead(s.snapshot) over changes as next_snapshot
      from private.webhook_subscriptions s
      where s.organisation_id = subscriptions_at.organisation_id
      window changes as (partition by s.webhook_endpoint_id order by s."position")
    ) c
    where c.is_enabled
      and (
        c.transaction_id = subscriptions_at.transaction_id
        or not pg_visible_in_snapshot(subscriptions_at.transaction_id, c.snapshot)
      )
      and (
        c.next_id is null
        or c.next_transaction_id = subscriptions_at.transaction_id
        or pg_visible_in_snapshot(subscriptions_at.transaction_id, c.next_snapshot)
      )
  );
end
$$;

-- Fans out what an organisation has in the queue, oldest transaction first, until there are about so many deliveries: how many
-- it did. It waits for nobody: while an endpoint of the organisation is being changed or deleted, or another courier has the
-- transaction, it leaves that for later. The plan is that of the indexes, whatever statistics say: each batch reads its own part.
create function private.fan_out_organisation(organisation_id uuid, "limit" integer) returns integer
language plpgsql volatile security definer set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  v_endpoints integer;
  v_queued private.notification_queue;
  v_subscriptions private.webhook_subscription[];
  v_most integer;
  v_ids uuid[];
  v_rows integer;
  v_done integer := 0;
  v_started constant timestamptz := clock_timestamp();
begin
  if not pg_try_advisory_xact_lock_shared(8, hashtext(organisation_id::text)) then
    return 0;
  end if;
  select count(*) into v_endpoints
  from (
    select from public.webhook_endpoints w
    where w.organisation_id = fan_out_organisation.organisation_id
    for key share skip locked
  ) w;
  if v_endpoints <> (
    select count(*) from public.webhook_endpoints w where w.organisation_id = fan_out_organisation.organisation_id
  ) then
    return 0;
  end if;

  -- By time as well, so that every call ends well within its statement and keeps what it did.
  while v_done < "limit" and (v_done = 0 or clock_timestamp() < v_started + interval '300 milliseconds') loop
    select q.* into v_queued
    from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
    order by q.transaction_id
    limit 1
    for update skip locked;
    exit when not found;

    v_ids := '{}';
    v_rows := 0;
    v_most := 1;
    v_subscriptions := private.subscriptions_at(organisation_id, v_queued.transaction_id);
    if v_subscriptions <> '{}' then
      v_most := greatest(("limit" - v_done) / cardinality(v_subscriptions), 1);
      v_ids := array(
        select n.id
        from public.notifications n
        where n.organisation_id = fan_out_organisation.organisation_id
          and n.transaction_id = v_queued.transaction_id
          and n.id > coalesce(v_queued.after_id, '00000000-0000-0000-0000-000000000000')
        order by n.id
        limit v_most
      );
      -- As of the moment at which it happened, so that what is older is sent first, and found by that time.
      insert into public.webhook_deliveries (
        organisation_id, webhook_endpoint_id, notification_id, type, next_attempt_at, created_at, updated_at
      )
      select n.organisation_id, s.webhook_endpoint_id, n.id, n.type, n.created_at, n.created_at, n.created_at
      from public.notifications n
      join unnest(v_subscriptions) s on n.type = any (s.types)
      where n.id = any (v_ids)
        and (s.after_id is null or n.id > s.after_id)
        and (s.before_id is null or n.id < s.before_id)
      order by n.id, s.webhook_endpoint_id
      on conflict (notification_id, webhook_endpoint_id) do nothing;
      get diagnostics v_rows = row_count;
    end if;

    if cardinality(v_ids) < v_most then
      delete from private.notification_queue q
      where q.organisation_id = v_queued.organisation_id and q.transaction_id = v_queued.transaction_id;
    else
      update private.notification_queue q set after_id = v_ids[v_most]
      where q.organisation_id = v_queued.organisation_id and q.transaction_id = v_queued.transaction_id;
    end if;
    v_done := v_done + greatest(v_rows, cardinality(v_ids), 1);
  end loop;
  return v_done;
end
$$;

-- Fans out about so many deliveries, an equal share for each organisation that has something in the queue: whether there is
-- more that can be done at once. Organisations are found by a loose index scan, so that nobody's backlog is read.
create function private.fan_out("limit" integer) returns boolean
language plpgsql volatile security definer set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  v_organisation_ids uuid[] := array(
    with recursive queued as (
      (
        select q.organisation_id, q.transaction_id
        from private.notification_queue q
        order by q.organisation_id, q.transaction_id
        limit 1
      )
      union all
      select n.organisation_id, n.transaction_id
      from queued
      cross join lateral (
        select q.organisation_id, q.transaction_id
        from private.notification_queue q
        where q.organisation_id > queued.organisation_id
        order by q.organisation_id, q.transaction_id
        limit 1
      ) n
    )
    select queued.organisation_id from queued order by queued.transaction_id limit fan_out."limit"
  );
  v_organisation_id uuid;
  v_share integer;
  v_done integer := 0;
  v_started constant timestamptz := clock_timestamp();
begin
  if v_organisation_ids = '{}' then
    return false;
  end if;
  -- Snapshots of another cluster say nothing of transactions of this one: stop rather than lose webhooks.
  if exists (
    select from private.webhook_subscriptions s
    where s.organisation_id = any (v_organisation_ids) and pg_snapshot_xmax(s.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
  ) then
    raise exception 'The database was restored from a dump: run "select private.after_restore()" once, as postgres.';
  end if;
  v_share := greatest("limit" / cardinality(v_organisation_ids), 1);
  foreach v_organisation_id in array v_organisation_ids loop
    exit when v_done > 0 and clock_timestamp() > v_started + interval '1 second';
    v_done := v_done + private.fan_out_organisation(v_organisation_id, v_share);
  end loop;
  return v_done > 0 and exists (select from private.notification_queue);
end
$$;

-- A dump that is restored into another cluster begins the count of transactions anew. Run once, by whoever restored it, before
-- couriers start: fans out what is queued, by the numbers of the cluster before, and puts the log and the subscriptions first.
create function private.after_restore() returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_organisation_id uuid;
begin
  for v_organisation_id in select distinct q.organisation_id from private.notification_queue q loop
    while private.fan_out_organisation(v_organisation_id, 10000) > 0 loop
      null;
    end loop;
  end loop;
  if exists (select from private.notification_queue) then
    raise exception 'Webhook endpoints are being edited: stop everything that uses the database, and run it again.';
  end if;
  update public.notifications n set transaction_id = '0' where n.transaction_id <> '0';
  delete from private.webhook_subscriptions s
  where exists (
    select from private.webhook_subscriptions l
    where l.webhook_endpoint_id = s.webhook_endpoint_id and l."position" > s."position"
  );
  update private.webhook_subscriptions s set transaction_id = '0', snapshot = '1:1:' where s.transaction_id <> '0';
  return 'Done: the log and the webhooks go on from here.';
end
$$;

-- Orders notify when the transaction ends: only then are their attendees and payments all there. A new order has a deferred
-- trigger of its own. Triggers on statements cannot be deferred, so a statement that completes or cancels orders leaves one row
-- here, whose deferred trigger notifies of all of them at once.
create table private.order_notices (
  id uuid not null default gen_random_uuid(),
  types public.notification_type[] not null,
  order_ids uuid[] not null,
  constraint order_notices_pkey primary key (id)
);
comment on table private.order_notices is 'Orders that the running transaction tells of when it ends. Nobody else ever sees a row.';
alter table private.order_notices enable row level security;

create function private.tg_orders__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_data json;
begin
  select o.* into v_order from public.orders o where o.id = new.id;
  if found then
    v_data := private.order_json(
      v_order,
      private.attendees_of_order_json(v_order.id),
      case when v_order.amount_paid > 0 then private.order_payments_json(v_order.id) else '[]' end
    );
    insert into public.notifications (organisation_id, type, data)
    select v_order.organisation_id, t.type, v_data
    from unnest(
      case new.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[]
    ) t (type);
  end if;
  return null;
end
$$;
create constraint trigger orders_600_notify_insert after insert on public.orders
  deferrable initially deferred
  for each row execute function private.tg_orders__notify_insert();

create function private.tg_orders__notice() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- No join of the two: see tg_attendees__add_up.
  insert into private.order_notices (types, order_ids)
  select
    array[case n.status when 'completed' then 'order.completed' else 'order.cancelled' end]::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status from new_rows n where n.status in ('completed', 'cancelled')
    except
    select o.id, o.status from old_rows o
  ) n
  group by n.status;
  return null;
end
$$;
create trigger orders_600_notice_update after update on public.orders
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_orders__notice();

create function private.tg_order_notices__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select o.organisation_id, t.type, o.data
  from unnest(new.order_ids) n (order_id)
  -- One index look-up an order, however many there are; an order that is gone is not told of.
  cross join lateral (
    select
      o.organisation_id,
      private.order_json(
        o,
        private.attendees_of_order_json(o.id),
        case when o.amount_paid > 0 then private.order_payments_json(o.id) else '[]' end
      ) as data
    from public.orders o
    where o.id = n.order_id
    offset 0
  ) o
  cross join unnest(new.types) t (type);
  delete from private.order_notices n where n.id = new.id;
  return null;
end
$$;
create constraint trigger order_notices_600_notify after insert on private.order_notices
  deferrable initially deferred
  for each row execute function private.tg_order_notices__notify();

-- Who comes with a new order is told of with it; who is added to one that was there is told of here. Before the totals, whose
-- changes tell of others.
create function private.tg_attendees__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- A scalar subquery is a look-up for each row under any plan.
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
    insert into public.notifications (organisation_id, type, data)
    select n.organisation_id, 'attendee.updated', private.attendee_json(row(n.*)::public.attendees)
    from new_rows n
    where (select o.created_at from public.orders o where o.id = n.order_id) <> now()
    order by n.id;
  end if;
  return null;
end
$$;
create trigger attendees_350_notify_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__notify_insert();

-- The plan is kept, and made for the one row of the first call: without nested loops it serves the 25,000 of a cancelled event
-- as well.
create function private.tg_attendees__notify_update() returns trigger
language plpgsql volatile security definer set search_path = '' set enable_nestloop = off
as $$
begin
  -- Every change of these columns counts the version: a check-in, say, leaves nothing to compare.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  select
    n.organisation_id,
    case when n.status = 'cancelled' and o.status <> 'cancelled' then 'attendee.cancelled' else 'attendee.updated' end::public.notification_type,
    private.attendee_json(row(n.*)::public.attendees)
  from new_rows n
  join old_rows o on o.id = n.id
  where (n.name, n.email, n.company, n.status, n.ticket_type_id, n.ticket_code, n.external_id, n.metadata)
    is distinct from
    (o.name, o.email, o.company, o.status, o.ticket_type_id, o.ticket_code, o.external_id, o.metadata)
  order by n.id;
  return null;
end
$$;
create trigger attendees_350_notify_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__notify_update();

-- What each endpoint is subscribed to from now on. Behind the trigger, which waited for those that were being changed.
insert into private.webhook_subscriptions (webhook_endpoint_id, organisation_id, "position", types, is_enabled)
select w.id, w.organisation_id, 1, w.types, w.status = 'enabled' from public.webhook_endpoints w;

create or replace function api.list_notifications(
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
  v_bytes integer := private.page_bytes();
  v_notification public.notifications;
  v_item json;
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

  for v_notification in
    select n.*
    from public.notifications n
    where (v_last_id is null or (n.transaction_id, n.id) > (v_last.transaction_id, v_last.id))
      and (list_notifications.type is null or n.type = list_notifications.type)
      and n.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    order by n.transaction_id, n.id
    limit v_size + 1
  loop
    v_item := json_build_object(
      'object', 'notification',
      'id', v_notification.id,
      'type', v_notification.type,
      'created_at', private.rfc3339(v_notification.created_at),
      'data', v_notification.data
    );
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_webhook_deliveries(
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
  v_bytes integer := private.page_bytes();
  v_webhook_delivery public.webhook_deliveries;
  v_item json;
  v_items json[];
begin
  for v_webhook_delivery in
    select d.*
    from public.webhook_deliveries d
    where (list_webhook_deliveries.webhook_endpoint_id is null or d.webhook_endpoint_id = list_webhook_deliveries.webhook_endpoint_id)
      and (list_webhook_deliveries.notification_id is null or d.notification_id = list_webhook_deliveries.notification_id)
      and (list_webhook_deliveries.type is null or d.type = list_webhook_deliveries.type)
      and (list_webhook_deliveries.status is null or d.status = list_webhook_deliveries.status)
      and (v_before is null or d.id < v_before)
    order by d.id desc
    limit v_size + 1
  loop
    v_item := private.webhook_delivery_json(v_webhook_delivery);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.redeliver_webhook(
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

  -- The endpoint before its deliveries, as whoever changes it has them.
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

create or replace function api.redeliver_webhooks(
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

  -- The endpoint before its deliveries, as whoever changes it has them.
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = redeliver_webhooks.webhook_endpoint_id
  for no key update;
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

-- 19_courier.sql

create or replace function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  v_each constant integer := 4;
  v_half constant integer := 32;
  v_quarter constant integer := 16;
  -- Deliveries to fan out: some 10 ms.
  v_fan_out constant integer := 200;
  -- Ten attempts are made; what was claimed far more often than that kills its couriers, or they cannot settle.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_owed json;
begin
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
        c.under_way,
        sum(c.under_way) over (partition by w.organisation_id) as under_way_of_organisation,
        sum(c.under_way) over (partition by w.organisation_id, w.failing_since is not null) as under_way_of_its_like
      from public.webhook_endpoints w
      cross join lateral (
        select count(*)::integer as under_way
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.claimed_until > v_now
      ) c
      where w.status = 'enabled'
    ),
    due as (
      select
        d.id, d.next_attempt_at, e.under_way + d.place as turn, e.organisation_id, e.under_way_of_organisation,
        e.failing, e.last_failed_at, e.under_way_of_its_like
      from endpoints e
      cross join lateral (
        select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
        from (
          select d.id, d.next_attempt_at
          from public.webhook_deliveries d
          where d.webhook_endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= v_now
          order by d.webhook_endpoint_id, d.next_attempt_at
          limit greatest(case when e.failing then 1 else v_each end - e.under_way, 0)
        ) f
      ) d
    ),
    -- Those that are failing make no other wait: first they are fewer, and then an organisation has its share. Among themselves
    -- organisations take turns, and whoever was not tried for longest comes first: one failure among a thousand is soon over.
    failing as (
      select
        d.*,
        row_number() over (order by d.turn_of_organisation, d.last_failed_at nulls first, d.next_attempt_at, d.id) as place_of_failing
      from (
        select
          d.*,
          d.under_way_of_its_like + row_number() over (
            partition by d.organisation_id order by d.last_failed_at nulls first, d.next_attempt_at, d.id
          ) as turn_of_organisation
        from due d
        where d.failing
      ) d
    ),
    but_few_failing as (
      select d.id, d.next_attempt_at, d.turn, d.organisation_id, d.under_way_of_organisation from due d where not d.failing
      union all
      select f.id, f.next_attempt_at, f.turn, f.organisation_id, f.under_way_of_organisation
      from failing f
      where f.place_of_failing <= v_quarter - (select coalesce(sum(e.under_way), 0) from endpoints e where e.failing)
    ),
    placed as (
      select
        d.*,
        row_number() over (partition by d.organisation_id order by d.turn, d.next_attempt_at, d.id) as place_of_organisation
      from but_few_failing d
    )
    select p.id
    from placed p
    where p.under_way_of_organisation + p.place_of_organisation <= v_half
    order by p.turn, p.next_attempt_at
    limit claim_webhooks."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  -- Waits for nobody, for it holds what others wait for.
  update public.webhook_deliveries d
  set status = 'failed', last_error = 'It was sent again and again, and nobody could say how it went.'
  where d.id in (
    select f.id from public.webhook_deliveries f
    where f.id = any (v_candidates) and coalesce(f.next_attempt_at <= v_now, false) and f.attempts >= v_most_claims
    for no key update skip locked
  );

  -- Still pending and due: as an expression, which is no reason to walk all that is. By array, for a join might walk them, too.
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
  ) into v_owed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_owed;
end
$$;

create function api.fan_out_webhooks("limit" integer default 2000) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return private.fan_out("limit");
end
$$;
comment on function api.fan_out_webhooks(integer) is
  'Makes webhook deliveries, about "limit" of them, of notifications that await it: whether there is more to do at once.';
grant execute on function api.fan_out_webhooks(integer) to courier;

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
      select
        'webhooks' as kind,
        coalesce(sum(d.owed), 0) as owed,
        min(d.oldest) as oldest,
        min(d.due) as due
      from (
        select d.owed, d.oldest, case when w.failing_since is null and not d.busy then d.due end as due
        from (
          select
            d.webhook_endpoint_id,
            count(*) as owed,
            min(d.created_at) as oldest,
            min(d.next_attempt_at) as due,
            coalesce(bool_or(d.claimed_until > now()), false) as busy
          from public.webhook_deliveries d
          where d.status = 'pending'
          group by d.webhook_endpoint_id
        ) d
        join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
        union all
        select n.owed, q.created_at, q.created_at
        from private.notification_queue q
        cross join lateral (
          select count(*) as owed
          from public.notifications n
          where n.organisation_id = q.organisation_id
            and n.transaction_id = q.transaction_id
            and n.id > coalesce(q.after_id, '00000000-0000-0000-0000-000000000000')
        ) n
        where exists (
          select from public.webhook_endpoints w where w.organisation_id = q.organisation_id and w.status = 'enabled'
        )
      ) d
      union all
      select 'ticket_emails', count(*), min(e.created_at), min(e.next_attempt_at)
      from public.ticket_emails e
      where e.status = 'queued'
    ) k
  );
end
$$;

-- 20_ticket_emails.sql

alter table public.ticket_emails add column last_attempt_at timestamptz;
drop index public.ticket_emails_next_attempt_at_idx;
create index ticket_emails_organisation_id_next_attempt_at_idx on public.ticket_emails (organisation_id, next_attempt_at)
  where status = 'queued';
create index ticket_emails_organisation_id_claimed_idx on public.ticket_emails (organisation_id) where claimed_until is not null;
create index ticket_emails_organisation_id_last_attempt_at_idx on public.ticket_emails (organisation_id, last_attempt_at)
  where last_attempt_at is not null;

create or replace function private.tg_attendees__owe_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_no_longer uuid[];
begin
  if tg_op = 'INSERT' then
    insert into public.ticket_emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
  elsif exists (select from new_rows n where n.ticket_email_status = 'queued')
    or exists (select from old_rows o where o.ticket_email_status = 'queued') then
    -- No joins of the two: see tg_attendees__add_up.
    insert into public.ticket_emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued';
    v_no_longer := array(
      select o.id from old_rows o where o.ticket_email_status = 'queued'
      except
      select n.id from new_rows n where n.ticket_email_status = 'queued'
    );
    if v_no_longer <> '{}' then
      update public.ticket_emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
      where e.attendee_id = any (v_no_longer) and e.status = 'queued';
    end if;
  end if;
  return null;
end
$$;
create trigger attendees_340_owe_ticket_email_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__owe_ticket_email();
create trigger attendees_340_owe_ticket_email_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__owe_ticket_email();

create or replace function private.organisations_with_queued_emails() returns uuid[]
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
begin
  return array(
    with recursive queued as (
      (
        select e.organisation_id from public.ticket_emails e where e.status = 'queued' order by e.organisation_id limit 1
      )
      union all
      select n.organisation_id
      from queued q
      cross join lateral (
        select e.organisation_id
        from public.ticket_emails e
        where e.status = 'queued' and e.organisation_id > q.organisation_id
        order by e.organisation_id
        limit 1
      ) n
    )
    select queued.organisation_id from queued
  );
end
$$;

create or replace function api.claim_ticket_emails("limit" integer, lease_seconds integer default 600) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  -- Thirteen attempts are made; what was claimed far more often than that kills its couriers, or they cannot settle.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_owed json;
begin
  perform pg_advisory_xact_lock(4, 1);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with due as (
      select
        d.id,
        d.next_attempt_at,
        u.under_way + row_number() over (partition by o.organisation_id order by d.next_attempt_at, d.id) as turn,
        l.last_attempt_at
      from unnest(private.organisations_with_queued_emails()) o (organisation_id)
      cross join lateral (
        select count(*) as under_way
        from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.claimed_until > v_now
      ) u
      left join lateral (
        select e.last_attempt_at
        from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.last_attempt_at is not null
        order by e.organisation_id desc, e.last_attempt_at desc
        limit 1
      ) l on true
      cross join lateral (
        select e.id, e.next_attempt_at
        from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.status = 'queued' and e.next_attempt_at <= v_now
        order by e.organisation_id, e.next_attempt_at
        limit claim_ticket_emails."limit"
      ) d
    )
    select d.id
    from due d
    order by d.turn, d.last_attempt_at nulls first, d.next_attempt_at, d.id
    limit claim_ticket_emails."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  perform api.settle_ticket_email(
    e.id, e.claim, error => 'It was sent again and again, and nobody could say how it went.', permanent => true
  )
  from public.ticket_emails e
  where e.id = any (v_candidates) and e.attempts >= v_most_claims and e.claim is not null;

  -- Still queued and due: as an expression, which is no reason to walk all that is. By array, for a join might walk them, too.
  v_candidates := array(
    select e.id
    from public.ticket_emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  with claimed as (
    update public.ticket_emails e
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = e.attempts + 1,
      last_attempt_at = v_now,
      (sent_to, sent_code) = (select a.email, a.ticket_code from public.attendees a where a.id = e.attendee_id)
    where e.id = any (v_candidates)
      and (select a.status from public.attendees a where a.id = e.attendee_id) = 'active'
    returning e.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'organisation', json_build_object('name', g.name, 'reply_to', g.reply_to_email),
      'event', private.event_json(v),
      'ticket_type', json_build_object('name', t.name),
      'order', json_build_object('reference', o.reference),
      'attendee', json_build_object(
        'id', a.id, 'name', a.name, 'email', a.email, 'company', a.company, 'ticket_code', a.ticket_code
      )
    )),
    '[]'
  ) into v_owed
  from claimed c
  join public.attendees a on a.id = c.attendee_id
  join public.orders o on o.id = a.order_id
  join public.ticket_types t on t.id = a.ticket_type_id
  join public.events v on v.id = a.event_id
  join public.organisations g on g.id = a.organisation_id;
  return v_owed;
end
$$;

-- 21_housekeeping.sql

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
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = o.organisation_id and q.transaction_id = o.transaction_id
      )
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
  v_purged := v_purged + v_rows;

  -- A subscription that ended with a change is needed for transactions that had been committed by then.
  delete from private.webhook_subscriptions s
  where s.id in (
    select c.id
    from (
      select
        s.id,
        s.organisation_id,
        lead(s.transaction_id) over changes as next_transaction_id,
        lead(s.snapshot) over changes as next_snapshot
      from private.webhook_subscriptions s
      window changes as (partition by s.webhook_endpoint_id order by s."position")
    ) c
    where c.next_snapshot is not null
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = c.organisation_id
          and (q.transaction_id = c.next_transaction_id or pg_visible_in_snapshot(q.transaction_id, c.next_snapshot))
      )
    limit purge."limit"
  );
  get diagnostics v_rows = row_count;
  return v_purged + v_rows;
end
$$;

-- 22_courier_schedule.sql

create or replace function private.call_courier(in_any_case boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if not in_any_case
    and not exists (
      select from public.webhook_endpoints w
      cross join lateral (
        select from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.status = 'pending' and d.next_attempt_at <= now()
        limit 1
      ) d
      where w.status = 'enabled'
    )
    -- What happens where nobody is subscribed can wait for the call that is made in any case.
    and not exists (
      select from public.webhook_endpoints w
      where w.status = 'enabled'
        and exists (select from private.notification_queue q where q.organisation_id = w.organisation_id)
    )
    and not exists (
      select from unnest(private.organisations_with_queued_emails()) o (organisation_id)
      cross join lateral (
        select from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.status = 'queued' and e.next_attempt_at <= now()
        limit 1
      ) e
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
    -- Longer than a run takes, so that its answer is kept.
    timeout_milliseconds => 60000
  );
end
$$;
