-- The audit trail: who changed what, when and from where, written by triggers. It holds what somebody did, not what followed from
-- it: cancelling an event is one entry, not one for each of its orders. Values of secrets and ticket codes are left out.

create type public.audit_action as enum ('created', 'updated', 'deleted', 'confirmed');
create type public.audit_actor as enum ('api_key', 'member', 'studio', 'courier', 'guest');
create type public.audit_object as enum (
  'organisation', 'member', 'api_key', 'event', 'ticket_type', 'promo_code', 'order', 'payment', 'payment_void', 'refund',
  'attendee', 'question', 'check_in', 'check_in_point', 'webhook_endpoint', 'waiting_list_entry', 'export'
);

create function private.audit_actor() returns public.audit_actor
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb;
begin
  if length(current_setting('usher.checked', true)) = 36 then
    return 'api_key';
  end if;
  v_claims := private.claims();
  return case
    when v_claims ? 'api_key_id' then 'api_key'
    when v_claims ->> 'role' = 'courier' then 'courier'
    when v_claims ? 'guest' then 'guest'
    when v_claims ->> 'role' = 'authenticated' then 'member'
    else 'studio'
  end::public.audit_actor;
end
$$;

-- No foreign keys: an entry outlives what it is about. Whoever acts is filled in.
create table public.audit_entries (
  created_at timestamptz not null default now(),
  actor public.audit_actor not null default private.audit_actor(),
  source public.request_source not null default private.current_source(),
  action public.audit_action not null,
  object_type public.audit_object not null,
  object_id uuid not null,
  changes jsonb,
  api_key_id uuid default private.current_api_key_id(),
  user_id uuid default (case private.audit_actor() when 'member' then private.claims() ->> 'sub' end)::uuid,
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  constraint audit_entries_pkey primary key (id)
);
comment on table public.audit_entries is 'Audit trail: who changed which object, when and from where. Written by Usher only.';
comment on column public.audit_entries.created_at is 'When it was done.';
comment on column public.audit_entries.actor is 'API key, signed-in member, Studio or SQL user, courier, or guest on a page.';
comment on column public.audit_entries.action is 'created, updated, deleted, or confirmed by a person over MCP.';
comment on column public.audit_entries.object_type is 'Kind of object.';
comment on column public.audit_entries.object_id is 'The object; for a member, their user_id.';
comment on column public.audit_entries.changes is
  'For an update, each changed field as { from, to }. For a deletion, each field as { from }. Empty for a new object. For an export, its operation and arguments. For a confirmation, its operation. Secrets and ticket codes have no values.';
comment on column public.audit_entries.api_key_id is 'The API key, if any.';
comment on column public.audit_entries.user_id is 'The member, if any.';

create index audit_entries_organisation_id_object_type_idx on public.audit_entries (organisation_id, object_type, id);
create index audit_entries_object_id_idx on public.audit_entries (object_id, id);
-- For private.rows_of_address: what passed from one address to another.
create index audit_entries_organisation_id_former_email_idx on public.audit_entries (organisation_id, lower(changes #>> '{email,from}'), id)
  where changes #>> '{email,from}' is not null;
-- For api.purge.
create index audit_entries_created_at_idx on public.audit_entries (created_at);

create trigger audit_entries_100_append_only before update or delete on public.audit_entries
  for each row when (private.is_typed())
  execute function private.tg__assert_append_only('The audit trail is never changed or deleted.');
select private.keep_table('public.audit_entries', typed => false);

-- What differs between two versions of a row, but for the fields that Usher keeps itself.
create function private.changes_between(old_row jsonb, new_row jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(
      f.key,
      case
        when f.key in ('ticket_code', 'code', 'sensitive_answers') then '{}'
        when new_row = '{}' then jsonb_build_object('from', f.value)
        else jsonb_build_object('from', f.value, 'to', new_row -> f.key)
      end
    )
    from jsonb_each(old_row) f
    where f.value is distinct from coalesce(new_row -> f.key, 'null')
      and f.key not in (
        'version', 'created_at', 'updated_at', 'last_used_at', 'email_lower', 'checked_in', 'inside', 'quantity_sold', 'quantity_held', 'times_redeemed',
        'search_text', 'failing_since', 'last_failed_at', 'ticket_email_status', 'ticket_email_sent_at', 'ticket_email_last_error',
        'admission_key', 'ticket_token', 'payment_remind_at', 'payment_reminded_at', 'payment_check_at'
      )
  );
end
$$;

-- Arguments: the object, the column of its id, and whether each change of its fields increments its version.
create function private.tg__audit() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'UPDATE' and tg_argv[2] = 'versioned' then
    if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
      return null;
    end if;
  end if;
  if tg_op = 'INSERT' then
    insert into public.audit_entries (organisation_id, action, object_type, object_id)
    select
      coalesce(n.row ->> 'organisation_id', n.row ->> 'id')::uuid, 'created', tg_argv[0]::public.audit_object, (n.row ->> tg_argv[1])::uuid
    from (select to_jsonb(r) as row from new_rows r) n;
  elsif tg_op = 'DELETE' then
    insert into public.audit_entries (organisation_id, action, object_type, object_id, changes)
    select
      coalesce(o.row ->> 'organisation_id', o.row ->> 'id')::uuid, 'deleted', tg_argv[0]::public.audit_object, (o.row ->> tg_argv[1])::uuid,
      private.changes_between(o.row, '{}')
    from (select to_jsonb(r) as row from old_rows r) o;
  else
    insert into public.audit_entries (organisation_id, action, object_type, object_id, changes)
    select
      coalesce(n.row ->> 'organisation_id', n.row ->> 'id')::uuid, 'updated', tg_argv[0]::public.audit_object, (n.row ->> tg_argv[1])::uuid,
      c.changes
    from (select to_jsonb(r) as row from new_rows r) n
    join (select to_jsonb(r) as row from old_rows r) o
      on concat_ws(' ', o.row ->> 'organisation_id', o.row ->> tg_argv[1]) = concat_ws(' ', n.row ->> 'organisation_id', n.row ->> tg_argv[1])
    cross join lateral (select private.changes_between(o.row, n.row) as changes) c
    where c.changes is not null;
  end if;
  return null;
end
$$;

-- Makes the triggers that keep the trail of a table. What another trigger does is a consequence, and has no entry. A table that counts
-- versions has an entry for each new version.
create function private.audit_changes(
  "table" regclass, object_type public.audit_object, id_column name default 'id', events text[] default '{insert,update,delete}'
) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_name name := (select c.relname from pg_catalog.pg_class c where c.oid = "table");
  v_counts text := case
    when exists (select from pg_catalog.pg_attribute a where a.attrelid = "table" and a.attname = 'version') then 'versioned'
    else 'plain'
  end;
  v_event text;
begin
  foreach v_event in array events loop
    execute format(
      'create trigger %I after %s on %s referencing %s for each statement when (private.is_typed(by_anyone => true)) execute function private.tg__audit(%L, %L, %L)',
      v_name || '_700_audit_' || v_event, v_event, "table",
      case v_event
        when 'insert' then 'new table as new_rows'
        when 'update' then 'old table as old_rows new table as new_rows'
        else 'old table as old_rows'
      end,
      object_type, id_column, v_counts
    );
  end loop;
end
$$;

-- What a key may list entries about: what its scopes read. Of members, keys and organisations none does.
create function private.auditable_objects() returns public.audit_object[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select t
    from unnest(enum_range(null::public.audit_object)) t
    where case
      when t in ('event', 'ticket_type', 'promo_code', 'question', 'check_in_point') then 'events:read'
      when t in ('order', 'payment', 'payment_void', 'refund') then 'orders:read'
      when t in ('attendee', 'check_in', 'waiting_list_entry', 'export') then 'attendees:read'
      when t = 'webhook_endpoint' then 'events:write'
    end::public.api_scope = any (private.current_scopes())
  );
end
$$;
grant execute on function private.auditable_objects to scope_events_write;

create policy audit_entries_select_own on public.audit_entries for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and object_type = any ((select private.auditable_objects())::public.audit_object[])
  );
create policy audit_entries_select_ownership on public.audit_entries for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
grant select on public.audit_entries to scope_events_write, authenticated;

-- The name of the key, or the name or else the address of the member, as it is now: a revoked key has it still, what was deleted as its last
-- entry says. Security definer: whoever reads entries has no right to keys, nor to users of Auth.
create function private.actor_name(entry public.audit_entries) returns text
language plpgsql stable security definer set search_path = ''
as $$
begin
  return case entry.actor
    when 'api_key' then coalesce(
      (select k.name from public.api_keys k where k.id = entry.api_key_id),
      (
        select d.changes #>> '{name,from}'
        from public.audit_entries d
        where d.object_id = entry.api_key_id and d.object_type = 'api_key' and d.action = 'deleted'
          and d.organisation_id = entry.organisation_id
      )
    )
    when 'member' then (
      select coalesce(c.name, d.changes #>> '{name,from}', c.email, d.changes #>> '{email,from}')
      from private.member_contact(entry.organisation_id, entry.user_id) c
      left join lateral (
        select d.changes from public.audit_entries d
        where d.object_id = entry.user_id and d.object_type = 'member' and d.action = 'deleted'
          and d.organisation_id = entry.organisation_id
        order by d.id desc
        limit 1
      ) d on true
    )
  end;
end
$$;
grant execute on function private.actor_name to scope_events_write, authenticated;

-- Ids of the entries of a page, newest first: see 00-ground/pages.sql.
create function private.page_of_audit_entries(
  object_types public.audit_object[], object_id uuid, created_after timestamptz, before uuid, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_since timestamptz := coalesce(created_after, '-infinity');
  -- An entry is written after its transaction began, which is its time.
  v_after uuid := coalesce(private.first_uuid_v7(created_after), '00000000-0000-0000-0000-000000000000');
begin
  if page_of_audit_entries.object_id is not null then
    return array(
      select e.id from public.audit_entries e
      where e.object_id = page_of_audit_entries.object_id and e.id < before and e.id > v_after
        and e.created_at >= v_since
      order by e.object_id desc, e.id desc
      limit size
    );
  end if;
  return array(
    select f.id
    from unnest(object_types) t (object_type)
    cross join lateral (
      select e.id
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.object_type = t.object_type
        and e.id < before and e.id > v_after and e.created_at >= v_since
      order by e.organisation_id desc, e.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_audit_entries to scope_events_write;

create function api.list_audit_entries(
  object_type public.audit_object default null,
  object_id uuid default null,
  created_after timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_types public.audit_object[] := private.auditable_objects();
  v_ids uuid[];
  v_items json[];
begin
  if object_type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_audit_entries.object_type);
  end if;
  v_ids := private.page_of_audit_entries(
    v_types, list_audit_entries.object_id, list_audit_entries.created_after, v_before, v_size + 1
  );
  v_items := array(
    select json_build_object(
      'object', 'audit_entry',
      'id', e.id,
      'action', e.action,
      'object_type', e.object_type,
      'object_id', e.object_id,
      'actor', e.actor,
      'actor_name', private.actor_name(e),
      'api_key_id', e.api_key_id,
      'user_id', e.user_id,
      'source', e.source,
      'changes', e.changes,
      'created_at', private.rfc3339(e.created_at)
    )
    from public.audit_entries e
    where e.id = any (v_ids) and e.object_type = any (v_types)
    order by e.id desc
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_audit_entries is
  'Audit entries of objects that the key may read, newest first: { data, has_more, next_cursor }.';
grant execute on function api.list_audit_entries to scope_events_write;
