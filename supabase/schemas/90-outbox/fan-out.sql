-- The fan-out from notifications to webhook deliveries: the queue of transactions, the history of subscriptions, and the
-- fan-out itself. All but private.after_restore are security definer: no role may write the outbox.

-- Transactions whose notifications are not fanned out yet, one row each. No foreign key: checking it would slow every write,
-- and of a deleted organisation the fan-out finds nothing.
create table private.notification_queue (
  organisation_id uuid not null,
  transaction_id xid8 not null,
  after_id uuid,
  created_at timestamptz not null default now(),
  constraint notification_queue_pkey primary key (organisation_id, transaction_id)
);
comment on table private.notification_queue is 'Transactions whose notifications await their fan-out to webhook deliveries.';
comment on column private.notification_queue.after_id is 'The last notification of the transaction that was fanned out, in the order of ids.';
alter table private.notification_queue enable row level security;

-- Queued even without an endpoint: one that a concurrent transaction adds may be subscribed to what this one commits.
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

-- What each endpoint was subscribed to and when: one row per change. "When" is a snapshot rather than a time: the change counts
-- for each transaction that had not committed when it was made. So a client that subscribes and then reads misses nothing, and
-- the order is that of commits, which no clock records.
create table private.webhook_subscriptions (
  id uuid not null default private.uuid_v7(),
  "position" integer not null,
  webhook_endpoint_id uuid not null,
  organisation_id uuid not null,
  types public.notification_type[] not null,
  event_ids uuid[] not null,
  is_enabled boolean not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  snapshot pg_snapshot not null default pg_current_snapshot(),
  constraint webhook_subscriptions_pkey primary key (id),
  constraint webhook_subscriptions_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade
);
comment on table private.webhook_subscriptions is 'Each change of what a webhook endpoint is subscribed to, for the fan-out of earlier transactions.';
comment on column private.webhook_subscriptions."position" is 'The order of changes. Ids lose it when a clock is set back.';
create index webhook_subscriptions_webhook_endpoint_id_position_idx
  on private.webhook_subscriptions (webhook_endpoint_id, "position");
-- In the order of private.subscriptions_at, which would otherwise read those of all organisations in the order of the index above.
create index webhook_subscriptions_organisation_id_position_idx
  on private.webhook_subscriptions (organisation_id, webhook_endpoint_id, "position");
alter table private.webhook_subscriptions enable row level security;

-- Takes the lock that the fan-out of the organisation holds shared, and then the snapshot: a fan-out has either committed, or
-- sees the change. Fires before the triggers numbered 500, so that all deliveries of a removed type exist and can be cancelled.
create function private.tg_webhook_endpoints__record_subscription() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_change private.webhook_subscriptions;
  v_removed private.webhook_subscriptions;
begin
  perform pg_advisory_xact_lock(8, hashtext(new.organisation_id::text));
  insert into private.webhook_subscriptions (webhook_endpoint_id, organisation_id, "position", types, event_ids, is_enabled)
  values (
    new.id,
    new.organisation_id,
    (select coalesce(max(s."position"), 0) + 1 from private.webhook_subscriptions s where s.webhook_endpoint_id = new.id),
    new.types,
    new.event_ids,
    new.status = 'enabled'
  )
  returning * into v_change;
  -- The previous change is kept only if a transaction in the queue lies between the two, so that repeated changes leave no more
  -- rows than there are such transactions.
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
    -- Types that it had removed stay removed.
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
  for each row when ((new.types, new.event_ids, new.status) is distinct from (old.types, old.event_ids, old.status))
  execute function private.tg_webhook_endpoints__record_subscription();

create type private.webhook_subscription as (
  webhook_endpoint_id uuid, types public.notification_type[], event_ids uuid[], after_id uuid, before_id uuid
);

-- The subscriptions that hold for the notifications of a committed transaction. after_id and before_id are set if that
-- transaction changed the endpoint itself: then only what it did after, or before, the change counts. A type removed since is
-- left out: its deliveries would have been cancelled.
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
      c.event_ids,
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

create function private.event_of_notification(notification_id uuid) returns uuid
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(n.data ->> 'event_id', case n.data ->> 'object' when 'event' then n.data ->> 'id' end)::uuid
    from public.notifications n
    where n.id = event_of_notification.notification_id
  );
end
$$;

-- Fans out the queue of one organisation, oldest transactions first, up to about "limit" deliveries; returns how many it did. It
-- never waits: while an endpoint of the organisation is being changed or deleted, or another courier has the transaction, it
-- leaves that for later. Transactions that began after the last change of an endpoint have the same subscriptions, and are done
-- together; each earlier one is done by itself. The plan uses the indexes whatever the statistics say: each batch reads only
-- its own part.
create function private.fan_out_organisation(organisation_id uuid, "limit" integer) returns integer
language plpgsql volatile security definer set search_path = ''

as $$
declare
  v_none constant uuid := '00000000-0000-0000-0000-000000000000';
  v_endpoints integer;
  v_last_change xid8;
  v_first xid8;
  v_transactions xid8[];
  v_subscriptions private.webhook_subscription[];
  v_batch_size integer;
  v_share integer;
  v_taken integer;
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
  -- No endpoint changes while this transaction holds the lock.
  select coalesce(max(greatest(s.transaction_id, pg_snapshot_xmax(s.snapshot))), '0') into v_last_change
  from private.webhook_subscriptions s
  where s.organisation_id = fan_out_organisation.organisation_id;

  -- Limited by time as well, so that every call ends well within its statement timeout and keeps what it did.
  while v_done < "limit" and (v_done = 0 or clock_timestamp() < v_started + interval '300 milliseconds') loop
    select q.transaction_id into v_first
    from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
    order by q.transaction_id
    limit 1
    for update skip locked;
    exit when not found;

    v_subscriptions := private.subscriptions_at(organisation_id, v_first);
    v_batch_size := greatest(("limit" - v_done) / greatest(cardinality(v_subscriptions), 1), 1);
    v_transactions := array[v_first];
    if v_first > v_last_change then
      v_transactions := array(
        select q.transaction_id
        from private.notification_queue q
        where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id >= v_first
        order by q.transaction_id
        -- Without a subscription a row is only removed, which costs little; with one, most transactions have few notifications.
        limit case when v_subscriptions = '{}' then 10 * v_batch_size else (v_batch_size + 3) / 4 end
        for update skip locked
      );
    end if;

    if v_subscriptions = '{}' then
      delete from private.notification_queue q
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions);
      v_done := v_done + (cardinality(v_transactions) + 9) / 10;
      continue;
    end if;

    -- Each transaction has an equal share, so that a batch never reads more than it does.
    v_share := greatest(v_batch_size / cardinality(v_transactions), 1);
    -- Dated when the change happened, so that older deliveries are sent first, and a redelivery by time finds them.
    with taken as materialized (
      select n.id, n.organisation_id, n.type, n.created_at
      from private.notification_queue q
      cross join lateral (
        select n.id, n.organisation_id, n.type, n.created_at
        from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        limit v_share
      ) n
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions)
    ),
    made as (
      insert into public.webhook_deliveries (
        organisation_id, webhook_endpoint_id, notification_id, type, next_attempt_at, created_at, updated_at
      )
      select n.organisation_id, s.webhook_endpoint_id, n.id, n.type, n.created_at, n.created_at, n.created_at
      from taken n
      join unnest(v_subscriptions) s on n.type = any (s.types)
      where (s.after_id is null or n.id > s.after_id)
        and (s.before_id is null or n.id < s.before_id)
        -- Reads the data only for an endpoint that chose events.
        and (s.event_ids = '{}' or private.event_of_notification(n.id) = any (s.event_ids))
      on conflict (notification_id, webhook_endpoint_id) do nothing
      returning id
    )
    select (select count(*) from taken), (select count(*) from made) into v_taken, v_rows;

    -- Fewer than its share: it is finished.
    delete from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
      and q.transaction_id = any (v_transactions)
      and not exists (
        select from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        offset v_share - 1
      );
    if v_taken >= v_share then
      update private.notification_queue q
      set after_id = (
        select n.id
        from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        offset v_share - 1
        limit 1
      )
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions);
    end if;
    v_done := v_done + greatest(v_rows, v_taken, 1);
  end loop;
  return v_done;
end
$$;

-- Fans out about "limit" deliveries, an equal share for each organisation in the queue; returns whether there is more to do at
-- once. Organisations are found by a loose index scan, which reads no backlog.
create function private.fan_out("limit" integer) returns boolean
language plpgsql volatile security definer set search_path = ''

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
  -- Snapshots of another cluster say nothing about transactions of this one: stop rather than lose webhooks.
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

-- A dump restored into another cluster starts the count of transactions anew. Run once after a restore, before couriers start:
-- fans out the queue by the transaction ids of the old cluster, and then dates the log and the subscriptions before every new
-- transaction.
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
  -- A dump of the time when it was generated lacks it.
  update public.notifications n set subject_id = private.subject_of_notification(n.type, n.data) where n.subject_id is null;
  delete from private.webhook_subscriptions s
  where exists (
    select from private.webhook_subscriptions l
    where l.webhook_endpoint_id = s.webhook_endpoint_id and l."position" > s."position"
  );
  update private.webhook_subscriptions s set transaction_id = '0', snapshot = '1:1:' where s.transaction_id <> '0';
  return 'Done: notifications and webhooks continue from here.'
    || case when private.is_held() then ' Deliveries are held until you run "select private.release_deliveries()".' else '' end;
end
$$;
