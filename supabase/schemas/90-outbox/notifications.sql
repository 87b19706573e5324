-- The log of notifications. A change writes its notifications in its own transaction, queued for their deliveries (deliveries.sql). Nothing is
-- sent from here.

create table public.notifications (
  created_at timestamptz not null default now(),
  type public.notification_type not null,
  data json not null,
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  subject_id uuid,
  transaction_id xid8 not null default pg_current_xact_id(),
  queued_for uuid[],
  constraint notifications_pkey primary key (id),
  constraint notifications_id_organisation_id_key unique (id, organisation_id),
  constraint notifications_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);
comment on table public.notifications is 'Log of changes, oldest first, from which webhooks are sent. Written by Usher only.';
comment on column public.notifications.type is 'What happened.';
comment on column public.notifications.data is 'The object in the JSON shape of the API at that time: an order with its attendees, without ticket codes.';
comment on column public.notifications.subject_id is
  'Internal: look-up for erasure: its order, its waiting-list entry, or the object itself.';
comment on column public.notifications.transaction_id is
  'Internal: ids are assigned before the commit and may become visible out of order. The log is therefore in the order of transactions, and shows only those older than every open one, so a reader that continues misses none.';
comment on column public.notifications.queued_for is 'Internal: webhook endpoints whose deliveries the courier has yet to add.';

create trigger notifications_100_append_only before update of created_at, type, data, id, organisation_id or delete on public.notifications
  for each row when (private.is_typed())
  execute function private.tg__assert_append_only('Notifications are a log: they are never changed or deleted.');
select private.keep_table('public.notifications', typed => false);

create index notifications_organisation_id_transaction_id_id_idx on public.notifications (organisation_id, transaction_id, id);
-- For private.page_of_notifications.
create index notifications_organisation_id_type_idx on public.notifications (organisation_id, type, transaction_id, id);
-- For private.erase_notifications.
create index notifications_subject_id_type_idx on public.notifications (subject_id, type);
-- For private.enqueue_deliveries.
create index notifications_queued_idx on public.notifications (organisation_id, id) where queued_for is not null;
-- For api.purge.
create index notifications_created_at_idx on public.notifications (created_at);

-- An API key reads notifications of the objects that it may read.
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
grant execute on function private.readable_types to scope_events_write;

create policy notifications_select_own on public.notifications for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy notifications_select_membership on public.notifications for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.notifications to scope_events_write;
grant select (id, organisation_id, type, created_at) on public.notifications to authenticated;

-- Ids of the notifications of a page, oldest first: see 00-ground/pages.sql.
create function private.page_of_notifications(
  types public.notification_type[], after_transaction_id xid8, after_id uuid, created_after timestamptz, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_before_transaction_id xid8 := pg_snapshot_xmin(pg_current_snapshot());
  v_since timestamptz := coalesce(created_after, '-infinity');
  v_since_id uuid := private.first_uuid_v7(created_after);
  v_since_transaction_id xid8;
begin
  -- What was written before that time, by whomever, has a transaction that is older than all which began from then on. Of a hundred such
  -- the latest, for one of them may have run for long.
  if v_since_id is not null then
    select max(w.transaction_id) into v_since_transaction_id
    from (select n.transaction_id from public.notifications n where n.id < v_since_id order by n.id desc limit 100) w;
    if (coalesce(v_since_transaction_id, '0'), v_since_id) > (after_transaction_id, after_id) then
      after_transaction_id := coalesce(v_since_transaction_id, '0');
      after_id := v_since_id;
    end if;
  end if;
  return array(
    select f.id
    from unnest(types) t (type)
    cross join lateral (
      select n.transaction_id, n.id
      from public.notifications n
      where n.organisation_id = any (v_organisation_ids)
        and n.type = t.type
        and (n.transaction_id, n.id) > (after_transaction_id, after_id)
        and n.transaction_id < v_before_transaction_id
        and n.created_at >= v_since
      order by n.organisation_id, n.transaction_id, n.id
      limit size
    ) f
    order by f.transaction_id, f.id
    limit size
  );
end
$$;
grant execute on function private.page_of_notifications to scope_events_write;

-- Oldest first, to continue from the last one seen: `after` is the id of a notification, which is also the webhook-id of its
-- deliveries; `cursor` walks the pages as in any list.
create function api.list_notifications(
  type public.notification_type default null,
  after uuid default null,
  created_after timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_notification public.notifications;
  v_item json;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is past its retention.',
        case when cursor is null then 'after' else 'cursor' end,
        hint => 'Leave it out to start from the oldest.'
      );
    end if;
  end if;

  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_notifications.type);
  end if;
  v_ids := private.page_of_notifications(
    v_types, coalesce(v_last.transaction_id, '0'), coalesce(v_last.id, '00000000-0000-0000-0000-000000000000'), created_after, v_size + 1
  );
  for v_notification in
    select n.* from public.notifications n where n.id = any (v_ids)
    order by n.transaction_id, n.id
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
comment on function api.list_notifications is
  'Notifications that the key may read, oldest first, optionally after an id or since a time: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_notifications to scope_events_write;
