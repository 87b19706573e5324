-- The outbox. A change writes its notifications and one row of a queue in its own transaction, however many webhook endpoints
-- there are. Behind the commit the courier fans them out: one delivery for each endpoint that was subscribed. Nothing is sent
-- from here.

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
comment on table public.webhook_deliveries is 'One notification for one webhook endpoint, and how sending it went. Added by the courier, a moment after the notification.';
comment on column public.webhook_deliveries.claim is 'Names the courier that is sending it; what another courier says of it does not count.';
comment on column public.webhook_deliveries.status is 'Set it to pending to have it sent once more.';
comment on column public.webhook_deliveries.last_response_body is 'The first 1024 characters of what the endpoint answered.';

create index webhook_deliveries_webhook_endpoint_id_idx on public.webhook_deliveries (webhook_endpoint_id, id desc);
-- At most one delivery of a notification for an endpoint, whatever else goes wrong.
create unique index webhook_deliveries_notification_id_webhook_endpoint_id_key
  on public.webhook_deliveries (notification_id, webhook_endpoint_id);
create index webhook_deliveries_organisation_id_id_idx on public.webhook_deliveries (organisation_id, id desc);
-- None on next_attempt_at alone: it would be preferred at times, and walk what is due to everybody for what is due to one.
create index webhook_deliveries_webhook_endpoint_id_next_attempt_at_idx
  on public.webhook_deliveries (webhook_endpoint_id, next_attempt_at) where status = 'pending';
create index webhook_deliveries_webhook_endpoint_id_claimed_idx
  on public.webhook_deliveries (webhook_endpoint_id) where claimed_until is not null;

-- Nothing is sent to an endpoint that is disabled, nor of a type that it does not subscribe to any more.
create function private.assert_sendable(webhook_endpoint_id uuid, type public.notification_type) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint from public.webhook_endpoints w where w.id = assert_sendable.webhook_endpoint_id;
  if v_webhook_endpoint.status = 'disabled' then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id', hint => 'Enable it first.'
    );
  elsif type <> 'webhook_endpoint.test' and type <> all (v_webhook_endpoint.types) then
    perform private.refuse(
      409, 'type_not_subscribed', 'The webhook endpoint does not subscribe to this type any more.', 'type',
      hint => 'Add the type to the endpoint first.'
    );
  end if;
end
$$;
grant execute on function private.assert_sendable(uuid, public.notification_type) to scope_events_write;

-- Setting a delivery to pending owes it once more, from the beginning; a settled one has no next attempt.
create function private.tg_webhook_deliveries__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status = 'pending' and old.status <> 'pending' then
    perform private.assert_sendable(new.webhook_endpoint_id, new.type);
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

-- What an endpoint does not subscribe to any more, it is not sent any more either. Security definer, like all that follows: the
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

-- Transactions whose notifications are not fanned out yet: one row each, however much happened in it. No foreign key: checking
-- it would cost every write something, and what went with its organisation is merely not found.
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

  -- The endpoint before its deliveries, as whoever changes it has them.
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
  perform private.assert_sendable(webhook_endpoint_id, 'webhook_endpoint.test');

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_delivery_json(private.notify_test(webhook_endpoint_id))
  ));
end
$$;
comment on function api.test_webhook_endpoint(uuid, text, text) is
  'Owes a webhook endpoint a notification of type webhook_endpoint.test: 201 with the delivery. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.test_webhook_endpoint(uuid, text, text) to scope_events_write;
