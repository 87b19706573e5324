-- What apply_event, public.copy_event and public.move_event do: match, move, copy, change and add what belongs to an event, step by step.
-- Whether it is a plan or done for good, 20-events/plans.sql decides.

-- What may be written of each table; the first names the row.
create function private.planned_fields("table" text) returns text[]
language plpgsql immutable set search_path = ''
as $$
begin
  return case "table"
    when 'events' then array[
      'name', 'slug', 'description', 'starts_at', 'ends_at', 'timezone', 'locale', 'venue_name', 'venue_address', 'venue_city',
      'venue_postcode', 'venue_country', 'online_url', 'capacity', 'waiting_list_offer_hours', 'currency', 'payment_due_days',
      'external_id', 'metadata'
    ]
    when 'ticket_types' then array[
      'name', 'description', 'price', 'quantity', 'min_per_order', 'max_per_order', 'sales_start_at', 'sales_end_at', 'visibility',
      'position', 'external_id', 'metadata', 'status'
    ]
    when 'promo_codes' then array[
      'code', 'percent_off', 'amount_off', 'valid_from', 'valid_until', 'max_redemptions', 'ticket_type_ids', 'status'
    ]
    when 'check_in_points' then array['name', 'ticket_type_ids', 'opens_at', 'closes_at', 'admission', 'status']
  end;
end
$$;
grant execute on function private.planned_fields to scope_events_write;

-- The members of `fields` that may be written, in the form that the columns give them.
create function private.planned_row("table" text, fields jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_row jsonb;
begin
  execute format('select to_jsonb(r) from jsonb_populate_record(null::public.%I, $1) r', "table") into v_row using fields;
  return (
    select coalesce(jsonb_object_agg(f.key, f.value), '{}')
    from jsonb_each(v_row) f
    where fields ? f.key and f.key = any (private.planned_fields("table"))
  );
end
$$;
grant execute on function private.planned_row to scope_events_write;

-- Adds a row; what `fields` does not name gets the defaults of the table.
create function private.add_row("table" text, parent text, parent_id uuid, fields jsonb) returns uuid
language plpgsql volatile set search_path = ''
as $$
declare
  v_columns text := (select string_agg(format('%I', c), ', ') from jsonb_object_keys(fields || jsonb_build_object(parent, parent_id)) c);
  v_id uuid;
begin
  execute format('insert into public.%1$I (%2$s) select %2$s from jsonb_populate_record(null::public.%1$I, $1) returning id', "table", v_columns)
  into v_id using fields || jsonb_build_object(parent, parent_id);
  return v_id;
end
$$;
grant execute on function private.add_row to scope_events_write;

-- What the names of rows are compared by: a promo code as buyers type it.
create function private.form_of_name("table" text, name text) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return case "table" when 'promo_codes' then lower(normalize(name, nfc)) else private.search_form(btrim(name)) end;
end
$$;
grant execute on function private.form_of_name to scope_events_write;

-- The rows of an event, in their order, each with its name as it is compared: all, those in use, or of these those that have times. All of
-- them are matched, copied or moved, each in a savepoint, so there is a limit.
create function private.rows_of_event("table" text, event_id uuid, in_use boolean, timed boolean) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_most constant integer := 500;
  v_fields text[] := private.planned_fields("table");
  v_times text := (select string_agg(format('r.%I', f), ', ') from unnest(v_fields) f where f ~ '_at$|^valid_');
  v_rows jsonb;
begin
  execute format(
    'select coalesce(jsonb_agg(to_jsonb(r) || jsonb_build_object(''folded'', private.form_of_name(%L, r.%I)) order by r.%I, r.id), ''[]'')
     from (
       select r.* from public.%I r
       where r.event_id = $1 and (not $2 or r.status = ''active'') and (not $3 or num_nonnulls(%s) > 0)
       limit $4
     ) r',
    "table", v_fields[1], case "table" when 'ticket_types' then 'position' else 'created_at' end, "table", v_times
  )
  into v_rows using event_id, in_use, timed, v_most + 1;
  if jsonb_array_length(v_rows) > v_most then
    perform private.refuse_value(
      "table", 'The event has more than 500 of these, which is too many for one plan.',
      'Change them one by one. A copy leaves them out if this list is empty and archive_missing is true.'
    );
  end if;
  return v_rows;
end
$$;
grant execute on function private.rows_of_event to scope_events_write;

-- Where in `rows` each id, external_id and name stands, so that matching a list costs no more for a long one.
create function private.places_by_name(rows jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(k.key, k.places), '{}')
    from (
      select k.key, jsonb_agg(distinct r.n - 1) as places
      from jsonb_array_elements(rows) with ordinality r (r, n)
      cross join unnest(array['#' || (r.r ->> 'id'), '=' || (r.r ->> 'external_id'), '~' || (r.r ->> 'folded')]) k (key)
      where k.key is not null
      group by k.key
    ) k
  );
end
$$;
grant execute on function private.places_by_name to scope_events_write;

-- The one of `rows` that has this reference: an id, which is never taken for a name, an external_id, or a name as it is searched. One in
-- use wins over others. Null: none.
create function private.row_meant(rows jsonb, places jsonb, reference text, param text, "table" text default 'ticket_types') returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_found jsonb[] := array(
    select rows -> p.place
    from (
      select jsonb_array_elements_text(places -> ('=' || reference))::integer as place
      union
      select jsonb_array_elements_text(places -> ('~' || private.form_of_name("table", reference)))::integer
    ) p
    order by p.place
  );
  v_in_use jsonb[];
begin
  if places ? ('#' || reference) then
    return rows -> (places -> ('#' || reference) ->> 0)::integer;
  elsif cardinality(v_found) < 2 then
    return v_found[1];
  end if;
  v_in_use := array(select r from unnest(v_found) r where r ->> 'status' = 'active');
  if cardinality(v_in_use) <> 1 then
    perform private.refuse_ambiguous(param, (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'id', r -> 'id', 'name', r -> 'name', 'status', r -> 'status', 'price', r -> 'price', 'external_id', r -> 'external_id'
      )))
      from unnest(v_found[1:10]) r
    ));
  end if;
  return v_in_use[1];
end
$$;
grant execute on function private.row_meant to scope_events_write;

-- What of `rows` an item of a list is: what its id names, else its external_id, else its name unless that row has another external_id.
create function private.row_of_item("table" text, rows jsonb, places jsonb, item jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_label text := (private.planned_fields("table"))[1];
  v_place jsonb := places -> ('=' || (item ->> 'external_id')) -> 0;
  v_row jsonb;
begin
  if item ? 'id' then
    v_row := private.row_meant(rows, places, item ->> 'id', 'id', "table");
    if v_row is null then
      perform private.refuse(
        404, 'not_found', 'The event has nothing with this id, external_id or name.', 'id',
        jsonb_build_object('names', (
          select coalesce(jsonb_agg(n.name), '[]') from (select r -> v_label as name from jsonb_array_elements(rows) r limit 10) n
        )),
        'Leave id out to add it as new.'
      );
    end if;
  elsif v_place is not null then
    v_row := rows -> v_place::integer;
  elsif item ->> v_label is not null then
    v_row := private.row_meant(rows, places, item ->> v_label, v_label, "table");
    if v_row ->> 'external_id' is not null and item ->> 'external_id' is not null then
      v_row := null;
    end if;
  end if;
  return v_row;
end
$$;
grant execute on function private.row_of_item to scope_events_write;

-- By how much everything moves, and between which zones. A copy moves all its times. Of an event that moves itself, sales and codes that
-- have begun or ended stay so: a sale that runs goes on. A door opens with the event. Nothing that is to come moves into the past, so a move
-- back finds all that moved.
create type private.event_move as (distance interval, from_zone text, to_zone text, is_copy boolean);

-- The times of a row as they move, at the same hour of the event's day on either side of a change of daylight saving time.
create function private.moved_times("row" jsonb, move private.event_move) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_time record;
  v_times jsonb := '{}';
begin
  for v_time in
    select
      f.key as field, f.value::timestamptz as before,
      ((f.value::timestamptz at time zone move.from_zone) + move.distance) at time zone move.to_zone as after
    from jsonb_each_text("row") f
    where f.key in ('starts_at', 'ends_at', 'sales_start_at', 'sales_end_at', 'valid_from', 'valid_until', 'opens_at', 'closes_at')
      and f.value is not null
      and move.distance is not null
      and (move.is_copy or f.key in ('starts_at', 'ends_at', 'opens_at', 'closes_at') or f.value::timestamptz > now())
    order by f.key desc
  loop
    if not move.is_copy and v_time.before > now() and v_time.after <= now() then
      perform private.refuse_value(
        v_time.field, format('With this move, %s would be in the past.', v_time.field),
        format('Move the event less far, or change %s first.', v_time.field)
      );
    end if;
    v_times := v_times || jsonb_build_object(v_time.field, v_time.after);
  end loop;
  return v_times;
end
$$;
grant execute on function private.moved_times to scope_events_write;

-- How far an event moves: by a duration, to a day at the same hour, or to a time. Always days and hours from the start, so that all times
-- keep their distance to it.
create function private.move_distance(event public.events, "to" text, timezone text) returns interval
language plpgsql stable set search_path = ''
as $$
declare
  v_start timestamp := event.starts_at at time zone event.timezone;
begin
  if v_start is null then
    perform private.refuse_value('move', 'The event has no start from which it could move.', 'Set starts_at and ends_at in changes.');
  end if;
  return case
    when "to" ~ '^-P' then v_start - substr("to", 2)::interval
    when "to" ~ '^P' then v_start + "to"::interval
    when "to" ~ '^\d{4}-\d{2}-\d{2}$' then "to"::date + v_start::time
    else "to"::timestamptz at time zone timezone
  end - v_start;
exception when data_exception then
  perform private.refuse_value('move', 'This is no duration, day or time.', 'P7D, 2027-05-03 or 2027-05-03T10:00:00+02:00, for example.');
end
$$;
grant execute on function private.move_distance to scope_events_write;

-- How the event of a plan moves; without a distance if it stays.
create function private.move_of_plan(base public.events, arguments jsonb, is_copy boolean) returns private.event_move
language plpgsql stable set search_path = ''
as $$
declare
  v_starts_at text := arguments #>> '{changes,starts_at}';
  v_move private.event_move := (null, base.timezone, coalesce(arguments #>> '{changes,timezone}', base.timezone), is_copy);
begin
  if arguments ? 'move' then
    if base.id is null then
      perform private.refuse_value('move', 'Only an event that exists, or the copy of one, moves.', 'Name it as event or copy_of.');
    end if;
    v_move.distance := private.move_distance(base, arguments ->> 'move', v_move.to_zone);
    if arguments -> 'changes' ? 'starts_at'
      and v_move.distance is distinct from private.move_distance(base, v_starts_at, v_move.to_zone) then
      perform private.refuse_value('move', 'The event would move to another time than starts_at says.', 'Send move or starts_at.');
    end if;
  elsif is_copy and base.starts_at is not null then
    if v_starts_at is null then
      perform private.refuse_value(
        'move', 'A copy needs a start of its own.', 'Send move, such as P52W or 2028-05-03, or starts_at in changes.'
      );
    end if;
    v_move.distance := private.move_distance(base, v_starts_at, v_move.to_zone);
  end if;
  return v_move;
end
$$;
grant execute on function private.move_of_plan to scope_events_write;

-- A time as people at the event read it: 2027-05-03T10:00:00+02:00.
create function private.zoned_time(moment timestamptz, timezone text) returns text
language plpgsql stable set search_path = ''
as $$
declare
  v_offset interval := (moment at time zone timezone) - (moment at time zone 'UTC');
begin
  return to_char(moment at time zone timezone, 'YYYY-MM-DD"T"HH24:MI:SS')
    || case when v_offset < interval '0' then '-' else '+' end
    || to_char(greatest(v_offset, -v_offset), 'HH24:MI');
end
$$;
grant execute on function private.zoned_time to scope_events_write;

-- Fields as a plan says them: money in words, times in the event's zone, ticket types by their names, long texts and lists cut.
create function private.plan_words(fields jsonb, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(
      case f.key when 'ticket_type_ids' then 'ticket_types' else f.key end,
      case
        when f.value = 'null' then f.value
        when f.key in ('price', 'amount_off') then to_jsonb(private.money_text((f.value #>> '{}')::bigint, event.currency))
        when f.key ~ '_at$|^valid_' then to_jsonb(private.zoned_time((f.value #>> '{}')::timestamptz, event.timezone))
        when f.key = 'ticket_type_ids' then (
          select coalesce(jsonb_agg(coalesce(t.name, '…')), '[]')
          from jsonb_array_elements_text(f.value) with ordinality i (id, place)
          left join lateral (select t.name from public.ticket_types t where t.id = i.id::uuid and i.place <= 10 offset 0) t on true
          where i.place <= 11
        )
        when length(f.value #>> '{}') > 100 then to_jsonb(left(f.value #>> '{}', 100) || '…')
        else f.value
      end
    ), '{}')
    from jsonb_each(fields) f
  );
end
$$;
grant execute on function private.plan_words to scope_events_write;
grant execute on function private.money_text to scope_events_write;

-- A new row as a plan says it, without what goes without saying.
create function private.plan_of_new(label text, fields jsonb, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_usual constant jsonb :=
    '{"status": "active", "visibility": "public", "min_per_order": 1, "waiting_list_offer_hours": 24}';
begin
  return private.plan_words(
    (
      select coalesce(jsonb_object_agg(f.key, f.value), '{}')
      from jsonb_each(fields) f
      where f.key not in (label, 'position')
        and f.value not in ('null', '{}', '[]')
        and f.value is distinct from v_usual -> f.key
    ),
    event
  );
end
$$;
grant execute on function private.plan_of_new to scope_events_write;

-- The ticket types, of `rows`, that a list of names, ids or external_ids means. `copies` has what became of those of a copied event;
-- names in `refused` are of ticket types that could not be added, which is said already.
create function private.ticket_types_meant(rows jsonb, places jsonb, names jsonb, copies jsonb, refused text[]) returns uuid[]
language plpgsql stable set search_path = ''
as $$
declare
  v_name text;
  v_row jsonb;
  v_ids uuid[] := '{}';
begin
  for v_name in select * from jsonb_array_elements_text(names) loop
    v_row := private.row_meant(rows, places, coalesce(copies ->> v_name, v_name), 'ticket_types');
    if v_row is not null then
      v_ids := v_ids || (v_row ->> 'id')::uuid;
    elsif private.search_form(btrim(v_name)) <> all (refused) then
      perform private.refuse(
        422, 'validation_failed', 'A ticket type of the list is none of the event.', 'ticket_types',
        jsonb_build_object('ticket_types', (
          select coalesce(jsonb_agg(n.name), '[]') from (select r -> 'name' as name from jsonb_array_elements(rows) r limit 10) n
        )),
        'Name one of details.ticket_types, or add it to ticket_types.'
      );
    end if;
  end loop;
  return array(select distinct i from unnest(v_ids) i order by i);
end
$$;
grant execute on function private.ticket_types_meant to scope_events_write;

-- What is changed of a row, as [old, new].
create function private.plan_changes(old_row jsonb, fields jsonb, was public.events, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(n.key, jsonb_build_array(o.value, n.value))
    from jsonb_each(private.plan_words(private.with_merged_metadata(fields, old_row -> 'metadata'), event)) n
    left join jsonb_each(private.plan_words(
      (select jsonb_object_agg(f.key, old_row -> f.key) from jsonb_object_keys(fields) f (key)), was
    )) o using (key)
  );
end
$$;
grant execute on function private.plan_changes to scope_events_write;

-- What differs from the row; null if nothing does.
create function private.fields_to_change("table" text, old_row jsonb, fields jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_row jsonb := private.planned_row("table", fields);
begin
  return (
    select jsonb_object_agg(f.key, v_row -> f.key)
    from jsonb_each(private.with_merged_metadata(v_row, old_row -> 'metadata')) f
    where f.value is distinct from old_row -> f.key
  );
end
$$;
grant execute on function private.fields_to_change to scope_events_write;

-- One row as it is to be: changed where the event has it, else added. Answers its step; `unchanged` where there is nothing to do.
create function private.carry_out_item(
  "table" text, event public.events, was public.events, "row" jsonb, fields jsonb, is_copy boolean
) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_label text := (private.planned_fields("table"))[1];
  v_fields jsonb;
  v_id uuid := "row" ->> 'id';
begin
  if "row" is null or is_copy then
    v_fields := private.planned_row("table", coalesce("row" - 'external_id', '{}') || private.with_merged_metadata(fields, "row" -> 'metadata'));
    if v_fields ->> v_label is null then
      perform private.refuse_value(v_label, 'What is to be added needs a name, or a promo code its code.');
    end if;
    v_id := private.add_row("table", 'event_id', event.id, v_fields);
    return jsonb_build_object(
      'action', 'create', 'kind', rtrim("table", 's'), 'name', v_fields -> v_label, 'id', v_id,
      -- How often a point lets a ticket in is fixed with its first scan, so its default is said.
      'changes', private.plan_of_new(v_label, case "table" when 'check_in_points' then '{"admission": "once"}' else '{}' end::jsonb || v_fields, event)
    );
  end if;

  v_fields := private.fields_to_change("table", "row", fields);
  if v_fields is null then
    return jsonb_build_object('action', 'unchanged', 'id', v_id);
  end if;
  case "table"
    when 'ticket_types' then perform api.update_ticket_type(v_id, v_fields);
    when 'promo_codes' then perform api.update_promo_code(v_id, v_fields);
    when 'check_in_points' then perform api.update_check_in_point(v_id, v_fields);
  end case;
  return jsonb_strip_nulls(jsonb_build_object(
    'action', case when v_fields ->> 'status' in ('archived', 'disabled') then 'archive' else 'change' end,
    'kind', rtrim("table", 's'), 'name', "row" -> v_label, 'id', v_id,
    -- Said, because a change alone does not bring it back.
    'status', case when not v_fields ? 'status' and "row" ->> 'status' <> 'active' then "row" -> 'status' end
  )) || jsonb_build_object('changes', private.plan_changes("row", v_fields, was, event));
end
$$;
grant execute on function private.carry_out_item to scope_events_write;

-- The event's own fields: added, copied or changed.
create function private.carry_out_fields(
  organisation_id uuid, base public.events, changes jsonb, move private.event_move
) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_fields jsonb := private.moved_times(to_jsonb(base) - array(select jsonb_object_keys(changes)), move)
    || changes || case when changes ? 'venue' then private.venue_columns(changes -> 'venue') else '{}' end;
  v_event public.events;
  v_id uuid;
begin
  if base.id is not null and not move.is_copy then
    v_fields := private.fields_to_change('events', to_jsonb(base), v_fields);
    if v_fields is null then
      return jsonb_build_object('action', 'unchanged', 'id', base.id);
    end if;
    v_event := private.change_event(base, v_fields);
    return jsonb_build_object(
      'action', 'change', 'kind', 'event', 'name', base.name, 'id', base.id,
      'changes', private.plan_changes(to_jsonb(base), v_fields, base, v_event)
    );
  end if;
  v_fields := private.with_merged_metadata(v_fields, to_jsonb(base.metadata));
  if move.is_copy then
    -- Its slug is made from its name, and an external_id belongs to one event.
    v_fields := (to_jsonb(base) - '{slug,external_id}'::text[]) || v_fields;
  end if;
  v_fields := private.planned_row('events', v_fields);
  if v_fields ->> 'name' is null then
    perform private.refuse_value(
      'name', 'A new event needs a name.', 'Name it in changes; to change an event that exists, name that as event.'
    );
  end if;
  v_id := private.add_row('events', 'organisation_id', organisation_id, v_fields);
  select e.* into v_event from public.events e where e.id = v_id;
  return jsonb_build_object(
    'action', 'create', 'kind', 'event', 'name', v_event.name, 'id', v_event.id,
    'changes', private.plan_of_new('name', v_fields, v_event) || jsonb_build_object('status', v_event.status)
  );
end
$$;
grant execute on function private.carry_out_fields to scope_events_write;

-- What is allowed and yet likely to be meant otherwise.
create function private.plan_warnings(base public.events, event public.events, source_id uuid, moves boolean) returns jsonb[]
language plpgsql stable set search_path = ''
as $$
declare
  -- When all is done: a ticket type may have been raised as well.
  v_warnings jsonb[] := case when base.id = event.id
    then array[private.warning_of_capacity(base, event), private.warning_of_timezone(base, event)] else '{}' end;
begin
  if (base.id is null or source_id is not null) and exists (
    select from public.events e
    where e.organisation_id = event.organisation_id and e.id <> event.id and private.search_form(e.name) = private.search_form(event.name)
  ) then
    v_warnings := v_warnings || private.warning(
      'name_taken', 'Another event has this name. To change that one, name it as event.'
    );
  end if;
  if base.id = event.id and not moves then
    v_warnings := v_warnings || private.warning_of_windows(base, event);
  end if;
  return v_warnings;
end
$$;
grant execute on function private.plan_warnings to scope_events_write;

-- The same of a step. `written` are its fields as they were sent.
create function private.step_warnings("table" text, id uuid, written jsonb, event public.events) returns jsonb[]
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events := event;
  v_ticket_type public.ticket_types;
  v_promo_code public.promo_codes;
begin
  if "table" = 'events' then
    select e.* into v_event from public.events e where e.id = step_warnings.id;
  elsif "table" = 'ticket_types' and written ? 'price' then
    select t.* into v_ticket_type from public.ticket_types t where t.id = step_warnings.id;
  elsif "table" = 'promo_codes' and written ? 'percent_off' then
    select c.* into v_promo_code from public.promo_codes c where c.id = step_warnings.id;
  end if;
  return array[
    private.warning_of_offset_in(written, v_event.timezone),
    case when v_ticket_type.id is not null then private.warning_of_price(v_ticket_type) end,
    case when v_promo_code.id is not null then private.warning_of_percentage(v_promo_code) end
  ];
end
$$;
grant execute on function private.step_warnings to scope_events_write;

-- Nobody registers meanwhile, and what is changed is locked in the order of 20-events/locks.sql.
create function private.lock_event_of_plan(event_id uuid, arguments jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform from public.events e where e.id = lock_event_of_plan.event_id for no key update;
  perform private.lock_event_exclusive(event_id);
  if arguments ?| '{promo_codes,move}' then
    perform from public.promo_codes c where c.event_id = lock_event_of_plan.event_id order by c.id for no key update;
  end if;
  perform private.lock_event_capacity(event_id);
  perform from public.ticket_types t where t.event_id = lock_event_of_plan.event_id order by t.id for no key update;
end
$$;
grant execute on function private.lock_event_of_plan to scope_events_write;

-- Does what the arguments of apply_event say, to an event, a copy of one, or a new one, and answers what was read, each step, and the event.
-- Each step has a savepoint, so that all refusals are named; whoever calls it rolls back if there are any.
create function private.carry_out_event(arguments jsonb, organisation_id uuid, event_id uuid, source_id uuid) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_lists constant text[] := '{ticket_types,promo_codes,check_in_points}';
  v_changes jsonb := coalesce(arguments -> 'changes', '{}') - 'status';
  v_status public.event_status := arguments #>> '{changes,status}';
  v_is_copy boolean := source_id is not null;
  v_only_listed boolean := coalesce((arguments ->> 'archive_missing')::boolean, false);
  v_base public.events;
  v_event public.events;
  v_move private.event_move;
  v_rows jsonb := '{}';
  v_places jsonb;
  v_types jsonb;
  v_type_places jsonb;
  v_read jsonb := '{}';
  v_table text;
  v_is_listed boolean;
  v_pass integer;
  v_items jsonb;
  v_item jsonb;
  v_row jsonb;
  v_fields jsonb;
  v_name text;
  v_key text;
  v_step jsonb;
  v_steps jsonb[] := '{}';
  v_unchanged integer := 0;
  v_refusals integer := 0;
  v_taken text[] := '{}';
  v_refused text[] := '{}';
  v_copies jsonb := '{}';
  v_notice jsonb;
  v_warnings jsonb[] := '{}';
  v_state text;
  v_message text;
  v_detail text;
  v_hint text;
  v_rule text;
begin
  if event_id is not null then
    perform private.lock_event_of_plan(event_id, arguments);
  end if;
  select e.* into v_base from public.events e where e.id = coalesce(event_id, source_id);
  v_move := private.move_of_plan(v_base, arguments, v_is_copy);

  if v_base.id is not null then
    v_read := jsonb_build_object('event', v_base.version);
    foreach v_table in array v_lists loop
      -- What a copy leaves out is not read.
      continue when v_is_copy and v_only_listed and arguments -> v_table = '[]';
      v_is_listed := arguments ? v_table or v_table = 'ticket_types' and arguments ?| v_lists;
      if v_is_listed or v_move.distance is not null or v_is_copy then
        v_items := private.rows_of_event(
          v_table, v_base.id, v_is_copy or not v_is_listed, not (v_is_copy or v_is_listed)
        );
        if v_is_copy then
          -- A copy is in the same order, whichever row is added first.
          v_items := (
            select coalesce(jsonb_agg(r || jsonb_build_object('position', n - 1) order by n), '[]')
            from jsonb_array_elements(v_items) with ordinality i (r, n)
          );
        end if;
        v_rows := v_rows || jsonb_build_object(v_table, v_items);
        v_read := v_read || jsonb_build_object(v_table, (
          select md5(string_agg(concat(r ->> 'id', r ->> 'version'), ' ' order by r ->> 'id')) from jsonb_array_elements(v_rows -> v_table) r
        ));
      end if;
    end loop;
  end if;

  foreach v_table in array '{events}' || v_lists || '{status}' loop
    v_places := private.places_by_name(coalesce(v_rows -> v_table, '[]'));
    -- First what the list names, then the other rows of the event or of the one that is copied.
    for v_pass in 1..2 loop
      v_items := case
        when v_table in ('events', 'status') then case v_pass when 1 then '[{}]' else '[]' end::jsonb
        when v_pass = 1 then coalesce(arguments -> v_table, '[]')
        when case when v_only_listed and arguments ? v_table then not v_is_copy else v_is_copy or v_move.distance is not null end then (
          select coalesce(jsonb_agg(r), '[]')
          from jsonb_array_elements(v_rows -> v_table) r
          where r ->> 'status' = 'active' and r ->> 'id' <> all (v_taken)
        )
        else '[]'
      end;
      for v_item in select i from jsonb_array_elements(v_items) i loop
        begin
          v_row := case v_pass when 2 then v_item end;
          v_name := coalesce(v_item ->> 'code', v_item ->> 'name', v_item ->> 'id');
          if v_table = 'events' then
            v_name := coalesce(v_changes ->> 'name', v_base.name);
            v_step := private.carry_out_fields(organisation_id, v_base, v_changes, v_move);
          elsif v_table = 'status' then
            continue when v_refusals > 0 or coalesce(v_status, v_event.status) = v_event.status;
            v_name := v_event.name;
            perform private.set_event_status(v_event.id, v_status);
            v_step := jsonb_build_object(
              'action', 'change', 'kind', 'event', 'name', v_event.name, 'id', v_event.id,
              'changes', jsonb_build_object('status', jsonb_build_array(v_event.status, v_status))
            );
          else
            v_fields := '{}';
            if v_pass = 1 then
              v_row := private.row_of_item(v_table, coalesce(v_rows -> v_table, '[]'), v_places, v_item);
              -- Twice in the list: the same row, or two new ones of one name.
              v_key := coalesce(v_row ->> 'id', concat_ws(' ', v_table, private.form_of_name(v_table, v_name), v_item ->> 'external_id'));
              if v_key = any (v_taken) then
                perform private.refuse_value(
                  (private.planned_fields(v_table))[1], 'The list has this twice.', 'Leave one out, or tell them apart by id or external_id.'
                );
              end if;
              v_taken := v_taken || v_key;
              if num_nonnulls(v_item ->> 'percent_off', v_item ->> 'amount_off') = 1 then
                -- One kind of discount takes the place of the other.
                v_fields := '{"percent_off": null, "amount_off": null}';
              end if;
              v_fields := v_fields || (v_item - '{id,ticket_types}'::text[]);
              if v_item ? 'ticket_types' then
                v_fields := v_fields || jsonb_build_object(
                  'ticket_type_ids', private.ticket_types_meant(v_types, v_type_places, v_item -> 'ticket_types', v_copies, v_refused)
                );
              end if;
            end if;
            if v_pass = 2 and v_only_listed and arguments ? v_table then
              v_fields := jsonb_build_object('status', case v_table when 'promo_codes' then 'disabled' else 'archived' end);
            else
              v_fields := coalesce(private.moved_times(v_row - array(select jsonb_object_keys(v_fields)), v_move), '{}') || v_fields;
            end if;
            if v_is_copy and v_row is null then
              v_fields := jsonb_build_object('position', jsonb_array_length(v_rows -> v_table)) || v_fields;
            end if;
            if v_is_copy and v_row -> 'ticket_type_ids' <> '[]' and not v_fields ? 'ticket_type_ids' then
              v_fields := v_fields || jsonb_build_object('ticket_type_ids', (
                select coalesce(jsonb_agg(v_copies -> i order by v_copies ->> i), '[]')
                from jsonb_array_elements_text(v_row -> 'ticket_type_ids') i
                where v_copies ? i
              ));
              -- It was for ticket types that are not copied; with none it would be for all.
              if v_fields -> 'ticket_type_ids' = '[]' and v_pass = 1 then
                perform private.refuse_value(
                  'ticket_types', 'The ticket types that it is for are not copied.', 'Name ticket_types for it; an empty list is for all.'
                );
              end if;
              continue when v_fields -> 'ticket_type_ids' = '[]';
            end if;
            v_step := private.carry_out_item(v_table, v_event, v_base, v_row, v_fields, v_is_copy);
            if v_is_copy and v_table = 'ticket_types' and v_row is not null then
              v_copies := v_copies || jsonb_build_object(v_row ->> 'id', v_step -> 'id');
            end if;
          end if;
        exception when others then
          get stacked diagnostics
            v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint,
            v_rule = constraint_name;
          -- Of two that take one value at once the gateway calls the second again, which is refused as it is elsewhere.
          if v_state !~ '^(PT4|22|23)' or v_state = '23505' then
            raise;
          end if;
          v_refusals := v_refusals + 1;
          v_refused := array_remove(v_refused || array[private.search_form(v_name), private.search_form(v_item ->> 'external_id')], null);
          v_step := jsonb_build_object(
            'action', 'refuse', 'kind', rtrim(case v_table when 'status' then 'events' else v_table end, 's'), 'name', v_name,
            'error', case
              -- The message of a value is not said in details as well.
              when v_state like 'PT4%' then (v_detail::jsonb - case when v_detail::jsonb -> 'details' ? 'fields' then 'details' else '' end)
                || jsonb_strip_nulls(jsonb_build_object('message', v_message, 'hint', nullif(v_hint, '')))
              -- The sentence of the constraint. The row that Postgres would show stays out.
              else jsonb_build_object(
                'code', 'validation_failed', 'message', 'It breaks a rule of the database: ' || coalesce(nullif(v_rule, ''), v_state)
              ) || jsonb_strip_nulls(to_jsonb(private.rule_of(v_rule)))
            end
          );
        end;
        if v_pass = 1 and v_step ->> 'action' in ('create', 'change') and v_table <> 'status' then
          v_warnings := v_warnings || private.step_warnings(
            v_table, (v_step ->> 'id')::uuid, case v_table when 'events' then v_changes else v_item end, v_event
          );
        end if;
        if v_step ->> 'action' = 'unchanged' then
          -- Of the event only if it was to be something.
          v_unchanged := v_unchanged + (v_table <> 'events' or v_changes <> '{}')::integer;
        else
          v_steps := v_steps || v_step;
        end if;
        if v_table = 'events' then
          select e.* into v_event from public.events e where e.id = coalesce((v_step ->> 'id')::uuid, carry_out_event.event_id);
        end if;
      end loop;
    end loop;
    -- Without the event there is nothing to add to.
    exit when v_event.id is null;
    if v_table = 'ticket_types' and arguments ?| v_lists then
      v_types := private.rows_of_event(v_table, v_event.id, false, false);
      v_type_places := private.places_by_name(v_types);
    end if;
  end loop;

  if v_refusals = 0 and event_id is not null then
    v_notice := private.notify_of_event(event_id, (arguments ->> 'notify')::public.notify);
  end if;
  select e.* into v_event from public.events e where e.id = v_event.id;
  return jsonb_build_object(
    'warnings', to_jsonb(array(
      select distinct w from unnest(v_warnings || private.plan_warnings(v_base, v_event, source_id, v_move.distance is not null)) w
      where w is not null
      limit 20
    )),
    'read', v_read, 'steps', to_jsonb(v_steps), 'unchanged', v_unchanged, 'refusals', v_refusals, 'notice', v_notice,
    -- What is only added concerns nobody who is there.
    'affected', case when event_id is not null and v_base.id is not null then private.affected_by_event(event_id) || case
      when v_notice is null and not exists (select from unnest(v_steps) s where s ->> 'action' in ('change', 'archive'))
        then '{"orders": 0, "attendees": 0}'::jsonb
      else '{}'
    end end,
    'news', case when event_id is not null and v_event.id is not null and private.is_asking() then private.news_of_event(v_base, v_event, v_notice) end,
    'event', jsonb_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status,
      'starts_at', private.zoned_time(v_event.starts_at, v_event.timezone), 'ends_at', private.zoned_time(v_event.ends_at, v_event.timezone), 'timezone', v_event.timezone
    )
  );
end
$$;
grant execute on function private.carry_out_event to scope_events_write;
