-- The door list: what a scanner needs to decide without a network, in pages, and then what changed; and the report of its mistakes.

-- Where a list goes on. `since` and `next_since` are transactions: changes since the one are in this list, since the other in the next one.
create type private.door_position as (salt text, since bigint, next_since bigint, last_id uuid);

-- Ticket codes are sent as hashes, so that a lost telephone admits nobody. A code has 80 random bits, so the salt need not be secret;
-- it keeps the lists of two keys from being compared.
-- Pages are in the order of the ids. What changed is found by the transaction that wrote the row last, its xmin: a cursor holds the
-- oldest one that was open when its first page was read, and all that came before it was in that list. So nothing is missed,
-- however long a transaction takes, and a row of a transaction that was open is sent twice. Every scan writes the row of its attendee.
-- xmin has 32 bits: a cursor that is two billion transactions old, or of another database, starts again.
create function private.door_position(event_id uuid, cursor text) returns private.door_position
language plpgsql stable set search_path = ''
as $$
declare
  c_none constant uuid := '00000000-0000-0000-0000-000000000000';
  v_now bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_salt text := translate(
    encode(substr(sha256(uuid_send(event_id) || uuid_send(private.current_api_key_id())), 1, 16), 'base64'), '+/=', '-_'
  );
  v_parts text[] := regexp_match(cursor, '^([A-Za-z0-9_-]{22})_(\d{18})_(\d{18})_([0-9a-f]{32})$');
  v_position private.door_position := row(v_parts[1], v_parts[2], v_parts[3], v_parts[4]);
begin
  if cursor is not null and v_parts is null then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not valid.', 'cursor',
      hint => 'Send next_cursor of the previous answer unchanged, or leave the cursor out to start again.'
    );
  elsif (
    v_position.salt = v_salt and greatest(v_position.since, v_position.next_since) <= v_now
    and (v_position.since = 0 or v_now - v_position.since <= 2000000000)
  ) is not true then
    v_position := row(v_salt, 0, null, c_none);
  end if;
  if v_position.last_id = c_none then
    v_position.next_since := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  end if;
  return v_position;
end
$$;
grant execute on function private.door_position to scope_checkin_write;

create function private.door_ticket_json(attendee public.attendees, salt text, with_due boolean) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_order public.orders;
  v_entries json;
begin
  select o.* into v_order from public.orders o where o.id = attendee.order_id;
  if attendee.checked_in then
    -- The entries by which a scanner decides, and by whose id it takes one back: of those that an exit ended at a point with re_entry, the
    -- latest if nothing came after it.
    select json_agg(json_build_object(
      'check_in_point_id', f.check_in_point_id,
      'scanned_at', private.rfc3339(f.scanned_at),
      'exited_at', private.rfc3339(f.exited_at),
      'day', nullif(split_part(f.admission_key, '/', 2), ''),
      'check_in_id', f.id
    ) order by f.id) into v_entries
    from (
      select
        c.*,
        row_number() over (partition by c.check_in_point_id order by c.admission_key is null, c.scanned_at desc, c.id desc) as place
      from public.check_ins c
      where c.attendee_id = attendee.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) f
    where f.admission_key is not null or f.place = 1;
  end if;
  return json_build_object(
    'attendee_id', attendee.id,
    'code_hash', translate(encode(sha256(convert_to(salt || attendee.ticket_code, 'UTF8')), 'base64'), '+/=', '-_'),
    'name', attendee.name,
    'company', attendee.company,
    'ticket_type_id', attendee.ticket_type_id,
    'status', attendee.status,
    -- Never changed, so that it is no change that the list would miss. The company of the order may be.
    'reference', v_order.reference,
    'order', case when with_due and attendee.status = 'awaiting_payment' then
      json_build_object('id', v_order.id, 'amount_due', private.amount_due(v_order), 'currency', v_order.currency)
    end,
    'entries', coalesce(v_entries, '[]'),
    'answers', private.answers_at_door(attendee.id)
  );
end
$$;

-- Security definer: a key with checkin:write may not read ticket codes.
create function private.door_list(event_id uuid, "position" private.door_position) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  c_size constant integer := 1000;
  v_since constant bigint := "position".since;
  v_now bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_with_due boolean := coalesce('orders:write' = any (private.current_scopes()), false);
  v_ticket_type_ids uuid[] := array(
    select t.id from public.ticket_types t
    where t.event_id = door_list.event_id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  v_event public.events;
  v_organisation public.organisations;
  v_has_more boolean;
  v_ids uuid[] := array(
    select f.id
    from (
      select a.id
      from public.attendees a
      where a.ticket_type_id = any (v_ticket_type_ids)
        and (
          v_since = 0
          or ((v_now - a.xmin::text::bigint) & 4294967295) <= v_now - v_since
          -- What is due changes with the order alone.
          or v_with_due and a.status = 'awaiting_payment' and exists (
            select from public.orders o
            where o.id = a.order_id and ((v_now - o.xmin::text::bigint) & 4294967295) <= v_now - v_since
          )
        )
      -- Keeps the planner from walking the primary key through everybody's attendees in the order of the page.
      offset 0
    ) f
    where f.id > "position".last_id
    order by f.id
    limit c_size + 1
  );
begin
  select e.* into v_event from public.events e
  where e.id = door_list.event_id and e.organisation_id is not distinct from private.current_organisation_id();
  select o.* into v_organisation from public.organisations o where o.id = v_event.organisation_id;
  v_has_more := cardinality(v_ids) > c_size;
  return json_build_object(
    'object', 'door_list',
    'event', json_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status, 'starts_at', private.rfc3339(v_event.starts_at),
      'ends_at', private.rfc3339(v_event.ends_at), 'timezone', v_event.timezone,
      'accent_colour', v_organisation.accent_colour, 'livemode', not v_organisation.is_test
    ),
    'server_time', private.rfc3339(clock_timestamp()),
    'salt', "position".salt,
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
      select coalesce(json_agg(private.door_ticket_json(a, "position".salt, v_with_due) order by a.id), '[]')
      from public.attendees a where a.id = any (v_ids[1:c_size])
    ),
    'has_more', v_has_more,
    'next_cursor', concat_ws(
      '_', "position".salt, to_char(case when v_has_more then v_since else "position".next_since end, 'fm000000000000000000'),
      to_char("position".next_since, 'fm000000000000000000'),
      case when v_has_more then replace(v_ids[c_size]::text, '-', '') else repeat('0', 32) end
    )
  );
end
$$;
grant execute on function private.door_list to scope_checkin_write;

create function api.get_door_list(event_id uuid, cursor text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  if not exists (select from public.events e where e.id = get_door_list.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.door_list(event_id, private.door_position(event_id, cursor));
end
$$;
comment on function api.get_door_list is
  'Tickets for offline scanners, at most 1,000, or changes since a cursor. 404 not_found; 422 validation_failed.';
grant execute on function api.get_door_list to scope_checkin_write;

create function api.list_check_in_conflicts(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
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
      from public.check_ins c
      where c.event_id = list_check_in_conflicts.event_id and c.admitted and c.result = 'rejected' and c.id < v_before
      order by c.id desc
      limit v_size + 1
    ),
    v_size
  );
end
$$;
comment on function api.list_check_in_conflicts is
  'Rejected scans that an offline scanner admitted, newest first, each with the entry that counts: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_check_in_conflicts to scope_checkin_write;
