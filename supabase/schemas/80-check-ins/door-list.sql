-- The door list: what a scanner needs to decide without a network, in pages, and then what changed; and the report of its mistakes.

-- Ticket codes are sent as hashes, so that a lost telephone admits nobody. A code has 80 random bits, so the salt need not be secret;
-- it keeps the lists of two keys from being compared.
create function private.door_salt(event_id uuid) returns bytea
language plpgsql stable set search_path = ''
as $$
begin
  return substr(sha256(uuid_send(event_id) || uuid_send(private.current_api_key_id())), 1, 16);
end
$$;

create function private.base64url(bytes bytea) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return translate(encode(bytes, 'base64'), E'+/=\n', '-_');
end
$$;

-- Pages are in the order of the ids. What changed is found by the transaction that wrote the row last, its xmin: a cursor holds the
-- oldest one that was open when its first page was read, and all that came before it was in that list. So nothing is missed,
-- however long a transaction takes, and a row of a transaction that was open is sent twice. Every scan writes the row of its attendee.
-- xmin has 32 bits: a cursor that is two billion transactions old, or of another database, starts again.
-- A cursor: the salt (16 bytes), changes since (8), changes since for the next list (8), the last id of the page (16).
-- The event is known to be the caller's. Security definer: a key with checkin:write may not read ticket codes.
create function private.door_list(event_id uuid, cursor text) returns json
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_size constant integer := 1000;
  v_event public.events;
  v_ticket_type_ids uuid[];
  v_salt bytea := private.door_salt(event_id);
  v_salt_text text := private.base64url(v_salt);
  v_now bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_cursor bytea;
  v_since bigint := 0;
  v_next bigint;
  v_last uuid := '00000000-0000-0000-0000-000000000000';
  v_ids uuid[];
  v_has_more boolean;
  v_may_record_payments boolean := coalesce('orders:write' = any (private.current_scopes()), false);
begin
  if cursor !~ '^[A-Za-z0-9_-]{64}$' then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not valid.', 'cursor',
      hint => 'Send next_cursor of the previous answer unchanged, or leave the cursor out to start again.'
    );
  end if;
  v_cursor := decode(translate(cursor, '-_', '+/'), 'base64');
  if substr(v_cursor, 1, 16) = v_salt then
    v_since := ('x' || encode(substr(v_cursor, 17, 8), 'hex'))::bit(64)::bigint;
    v_next := ('x' || encode(substr(v_cursor, 25, 8), 'hex'))::bit(64)::bigint;
    v_last := encode(substr(v_cursor, 33, 16), 'hex')::uuid;
    if least(v_since, v_next) < 0 or greatest(v_since, v_next) > v_now or (v_since > 0 and v_now - v_since > 2000000000) then
      v_since := 0;
      v_last := '00000000-0000-0000-0000-000000000000';
    end if;
  end if;
  if v_last = '00000000-0000-0000-0000-000000000000' then
    v_next := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  end if;

  select e.* into v_event from public.events e where e.id = door_list.event_id and e.organisation_id is not distinct from private.current_organisation_id();
  v_ticket_type_ids := array(
    select t.id from public.ticket_types t
    where t.event_id = v_event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  -- `offset 0` keeps the planner from walking the primary key through everybody's attendees in the order of the page.
  if v_since = 0 then
    v_ids := array(
      select f.id
      from (select a.id from public.attendees a where a.ticket_type_id = any (v_ticket_type_ids) offset 0) f
      where f.id > v_last
      order by f.id
      limit v_size + 1
    );
  else
    v_ids := array(
      select f.id
      from (
        select a.id
        from public.attendees a
        where a.ticket_type_id = any (v_ticket_type_ids)
          and (
            ((v_now - a.xmin::text::bigint) & 4294967295) <= v_now - v_since
            -- What is due changes with the order alone.
            or v_may_record_payments and a.status = 'awaiting_payment' and exists (
              select from public.orders o
              where o.id = a.order_id and ((v_now - o.xmin::text::bigint) & 4294967295) <= v_now - v_since
            )
          )
        offset 0
      ) f
      where f.id > v_last
      order by f.id
      limit v_size + 1
    );
  end if;
  v_has_more := cardinality(v_ids) > v_size;

  return json_build_object(
    'object', 'door_list',
    'event', json_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status, 'starts_at', private.rfc3339(v_event.starts_at),
      'ends_at', private.rfc3339(v_event.ends_at), 'timezone', v_event.timezone,
      'accent_colour', (select o.accent_colour from public.organisations o where o.id = v_event.organisation_id)
    ),
    'server_time', private.rfc3339(clock_timestamp()),
    'salt', v_salt_text,
    'complete', v_since = 0,
    'tickets_total', (select count(*) from public.attendees a where a.ticket_type_id = any (v_ticket_type_ids)),
    'points', (
      select coalesce(json_agg(private.check_in_point_json(p) order by p.id), '[]')
      from public.check_in_points p where p.event_id = v_event.id
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object('id', t.id, 'name', t.name) order by t.position, t.id), '[]')
      from public.ticket_types t where t.id = any (v_ticket_type_ids)
    ),
    'tickets', (
      select coalesce(json_agg(json_build_object(
        'attendee_id', a.id,
        'code_hash', private.base64url(sha256(convert_to(v_salt_text || a.ticket_code, 'UTF8'))),
        'name', a.name,
        'company', a.company,
        'ticket_type_id', a.ticket_type_id,
        'status', a.status,
        -- Never changed, so that it is no change that the list would miss. The company of the order may be.
        'reference', (select o.reference from public.orders o where o.id = a.order_id),
        'order', case when v_may_record_payments and a.status = 'awaiting_payment' then (
          select json_build_object('id', o.id, 'amount_due', private.amount_due(o), 'currency', o.currency)
          from public.orders o where o.id = a.order_id
        ) end,
        'entries', case when a.checked_in then private.standing_entries(a.id) else '[]' end
      ) order by a.id), '[]')
      from unnest(v_ids[1:v_size]) i (id)
      cross join lateral (select a.* from public.attendees a where a.id = i.id offset 0) a
    ),
    'has_more', v_has_more,
    'next_cursor', private.base64url(
      v_salt || case when v_has_more
        then int8send(v_since) || int8send(v_next) || uuid_send(v_ids[v_size])
        else int8send(v_next) || int8send(v_next) || uuid_send('00000000-0000-0000-0000-000000000000')
      end
    )
  );
end
$$;
grant execute on function private.door_list to scope_checkin_write;

-- The entries by which a scanner decides, and by whose id it takes one back: of those that an exit ended at a point with re_entry, the latest
-- if nothing came after it.
create function private.standing_entries(attendee_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object(
      'check_in_point_id', f.check_in_point_id,
      'scanned_at', private.rfc3339(f.scanned_at),
      'exited_at', private.rfc3339(f.exited_at),
      'day', nullif(split_part(f.admission_key, '/', 2), ''),
      'check_in_id', f.id
    ) order by f.id), '[]')
    from (
      select
        c.*,
        row_number() over (partition by c.check_in_point_id order by c.admission_key is null, c.scanned_at desc, c.id desc) as place
      from public.check_ins c
      where c.attendee_id = standing_entries.attendee_id
        and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) f
    where f.admission_key is not null or f.place = 1
  );
end
$$;

create function api.get_door_list(event_id uuid, cursor text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  if not exists (select from public.events e where e.id = get_door_list.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.door_list(event_id, cursor);
end
$$;
comment on function api.get_door_list is
  'What a scanner needs to decide alone, at most 1,000 tickets, or what changed since a cursor. 404 not_found; 422 validation_failed.';
grant execute on function api.get_door_list to scope_checkin_write;

-- Ids of the conflicts of a page, newest first. Security definer: under row-level security no index on an enum is used.
create function private.page_of_check_in_conflicts(event_id uuid, before uuid, size integer) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
begin
  return array(
    select c.id
    from public.check_ins c
    where c.event_id = any (array[page_of_check_in_conflicts.event_id])
      and c.admitted and c.result = 'rejected'
      and c.organisation_id is not distinct from private.current_organisation_id()
      and c.id < before
    order by c.event_id desc, c.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_check_in_conflicts to scope_checkin_write;

create function api.list_check_in_conflicts(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
begin
  if not exists (select from public.events e where e.id = list_check_in_conflicts.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.page(
    array(
      select json_build_object(
        'object', 'check_in_conflict',
        'id', c.id,
        'event_id', c.event_id,
        'check_in', private.check_in_json(c),
        'earlier', (select private.check_in_json(e) from public.check_ins e where e.id = c.earlier_check_in_id)
      )
      from unnest(
        private.page_of_check_in_conflicts(list_check_in_conflicts.event_id, private.before_cursor(cursor), v_size + 1)
      ) with ordinality i (id, place)
      join public.check_ins c on c.id = i.id
      order by i.place
    ),
    v_size
  );
end
$$;
comment on function api.list_check_in_conflicts is
  'Scans that an offline scanner admitted and that were rejected, newest first, each with the entry that stood: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_check_in_conflicts to scope_checkin_write;
