-- What apply_event, public.copy_event and public.move_event do: match what a list names, move, copy, and call the operations that add and
-- change it. Each step has a savepoint and says what it changed, or why it is refused. Whether it stays, 20-events/plans.sql decides.

-- A kind of object: the list of it in a plan, the field that names one, and the status of one that is out of use.
create type private.plan_kind as (kind text, list text, label text, archived text);

-- An item of a list, or null for a row that no list names; the rows that it may mean; and whether the list has it already. The fields of the
-- event itself are an item, too, without a name.
create type private.plan_item as (item jsonb, name text, found jsonb[], is_again boolean);

-- A plan while it is carried out. `base` is the event as it was, or the one that is copied; `event` the one that is made or changed, as it is
-- by now. `distance` is by how much all moves; null: it stays. `rows` are the objects of the kind that is at hand, as they were, and
-- `items` what is to be done with them; `read` has the versions of all that were read. `types` are the ticket types by now, `copies` has the copy of each, `refused` the names of what could not be
-- added.
create type private.event_work as (
  arguments jsonb, organisation_id uuid, base public.events, event public.events, is_copy boolean, distance interval, rows jsonb,
  items private.plan_item[], read jsonb, types jsonb, copies jsonb, refused text[], steps jsonb[], warnings jsonb[], unchanged integer, refusals integer
);

-- What the names of objects are compared by: a promo code as buyers type it.
create function private.form_of_name(label text, name text) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return case label when 'code' then lower(normalize(name, nfc)) else private.search_form(btrim(name)) end;
end
$$;

-- The objects of an event in their order, as the API answers them, each with its name as it is compared: all, those in use, or of these those
-- that have times. Each is matched, copied or moved in a savepoint, so there is a limit.
create function private.rows_of_event(kind private.plan_kind, event_id uuid, in_use boolean, timed boolean) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_most constant integer := 500;
  v_rows jsonb;
begin
  execute format(
    'select coalesce(jsonb_agg(
       private.%1$s_json(r)::jsonb || jsonb_build_object(''folded'', private.form_of_name(%2$L, r.%2$I))
       order by (to_jsonb(r) ->> ''position'')::integer, r.id
     ), ''[]'')
     from (
       select r.* from public.%3$I r
       where r.event_id = $1 and (not $2 or r.status = ''active'') and (not $3 or to_jsonb(r)::text ~ ''"(sales|valid|opens|closes)_\w+": "'')
       limit $4
     ) r',
    kind.kind, kind.label, kind.list
  )
  into v_rows using event_id, in_use, timed, v_most + 1;
  if jsonb_array_length(v_rows) > v_most then
    perform private.refuse_value(
      kind.list, 'The event has more than 500 of these, too many for one plan.',
      'Change them one by one. A copy leaves them out if this list is empty and archive_missing is true.'
    );
  end if;
  return v_rows;
end
$$;

-- Those of `rows` that an item means: what its id names, else its external_id, else its name, unless that one has another external_id. An id
-- is never taken for a name, and of several that are called so the one in use wins.
create function private.rows_meant(rows jsonb, label text, item jsonb) returns jsonb[]
language plpgsql stable set search_path = ''
as $$
declare
  v_name text := coalesce(item ->> 'id', item ->> label);
  v_form text := private.form_of_name(label, v_name);
  v_external_id text := case when not item ? 'id' then item ->> 'external_id' end;
  v_found jsonb[] := array(select r from jsonb_array_elements(rows) r where r ->> 'external_id' = v_external_id);
begin
  if v_found = '{}' then
    v_found := array(
      select r from jsonb_array_elements(rows) r
      where v_name in (r ->> 'id', r ->> 'external_id') or r ->> 'folded' = v_form
      order by r ->> 'id' <> v_name, r ->> 'status' <> 'active'
    );
    if v_found[1] ->> 'id' = v_name or v_found[1] ->> 'status' = 'active' and v_found[2] ->> 'status' <> 'active' then
      v_found := v_found[:1];
    end if;
  end if;
  return case when cardinality(v_found) = 1 and v_found[1] ->> 'external_id' <> v_external_id then '{}' else v_found end;
end
$$;

create function private.refuse_several(meant jsonb[], param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if cardinality(meant) > 1 then
    perform private.refuse_ambiguous(param, (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'id', r -> 'id', 'name', r -> 'name', 'status', r -> 'status', 'price', r -> 'price', 'external_id', r -> 'external_id'
      )))
      from unnest(meant[:10]) r
    ));
  end if;
end
$$;

-- Reads the objects of a kind, where the plan is about them, and matches the items of its list with the rows that they mean. Then come the other
-- rows in use, where they are copied, moved or archived as well. Ticket types are named by the others as well.
create function private.read_items(work private.event_work, kind private.plan_kind) returns private.event_work
language plpgsql stable set search_path = ''
as $$
declare
  v_is_copy boolean := work.is_copy;
  v_is_listed boolean := work.arguments ? kind.list
    or kind.list = 'ticket_types' and work.arguments ?| '{promo_codes,check_in_points,questions}';
  v_archives boolean := work.arguments ? kind.list and coalesce((work.arguments ->> 'archive_missing')::boolean, false);
begin
  work.rows := '[]';
  if (work.base).id is not null
    and (v_is_copy or v_is_listed or work.distance is not null)
    -- What a copy leaves out is not read.
    and not (v_is_copy and v_archives and work.arguments -> kind.list = '[]') then
    work.rows := private.rows_of_event(kind, (work.base).id, v_is_copy or not v_is_listed, not (v_is_copy or v_is_listed));
    work.read := work.read || jsonb_build_object(kind.list, (
      select md5(string_agg(concat(r ->> 'id', r ->> 'version'), ' ' order by r ->> 'id')) from jsonb_array_elements(work.rows) r
    ));
    if v_is_copy then
      -- A copy is in the same order, whichever row is added first.
      work.rows := (
        select coalesce(jsonb_agg(r || jsonb_build_object('position', n - 1) order by n), '[]')
        from jsonb_array_elements(work.rows) with ordinality i (r, n)
      );
    end if;
  end if;
  work.items := array(
    select row(
      -- What a copy has in addition comes last.
      case when v_is_copy and f.found = '{}' then jsonb_build_object('position', jsonb_array_length(work.rows)) else '{}' end || i.item,
      n.name,
      f.found,
      -- The same row, or two new ones of one name.
      row_number() over (
        partition by case cardinality(f.found)
          when 1 then f.found[1] ->> 'id' else concat_ws(' ', private.form_of_name(kind.label, n.name), i.item ->> 'external_id')
        end
        order by i.place
      ) > 1
    )::private.plan_item
    from jsonb_array_elements(coalesce(work.arguments -> kind.list, '[]')) with ordinality i (item, place)
    cross join lateral (select coalesce(i.item ->> kind.label, i.item ->> 'id') as name) n
    cross join lateral (select private.rows_meant(work.rows, kind.label, i.item) as found) f
    order by i.place
  );
  if v_archives and not v_is_copy or not v_archives and (v_is_copy or work.distance is not null) then
    work.items := work.items || array(
      select row(null, r ->> kind.label, array[r], false)::private.plan_item
      from jsonb_array_elements(work.rows) with ordinality o (r, place)
      where r ->> 'status' = 'active'
        and not exists (select from unnest(work.items) i where cardinality(i.found) = 1 and i.found[1] ->> 'id' = r ->> 'id')
      order by o.place
    );
  end if;
  return work;
end
$$;

-- How far the event of a plan moves: by a duration, to a day at the same hour, or to a time; null: it stays. Always days and hours from the
-- start, so that all times keep their distance to it.
create function private.move_of_plan(base public.events, arguments jsonb, is_copy boolean) returns interval
language plpgsql stable set search_path = ''
as $$
declare
  v_timezone text := coalesce(arguments #>> '{changes,timezone}', base.timezone);
  v_starts_at text := arguments #>> '{changes,starts_at}';
  v_move text := coalesce(arguments ->> 'move', v_starts_at);
  -- The times that move are those of the answers, which are of milliseconds.
  v_start timestamp := date_trunc('milliseconds', base.starts_at) at time zone base.timezone;
  v_distance interval;
begin
  if arguments ? 'move' and base.id is null then
    perform private.refuse_value('move', 'Only an existing event, or a copy of one, can be moved.', 'Send event or copy_of.');
  elsif is_copy and v_start is not null and v_move is null then
    perform private.refuse_value(
      'move', 'A copy needs its own start.', 'Send move, such as P52W or 2028-05-03, or starts_at in changes.'
    );
  elsif not (arguments ? 'move' or is_copy and v_start is not null) then
    return null;
  elsif v_start is null then
    perform private.refuse_value('move', 'The event has no start to move from.', 'Set starts_at and ends_at in changes.');
  end if;
  v_distance := case
    when v_move ~ '^-P' then v_start - substr(v_move, 2)::interval
    when v_move ~ '^P' then v_start + v_move::interval
    when v_move ~ '^\d{4}-\d{2}-\d{2}$' then v_move::date + v_start::time
    else v_move::timestamptz at time zone v_timezone
  end - v_start;
  if arguments -> 'changes' ? 'starts_at' and v_start + v_distance is distinct from v_starts_at::timestamptz at time zone v_timezone then
    perform private.refuse_value('move', 'move and starts_at name different times.', 'Send move or starts_at.');
  end if;
  return v_distance;
exception when data_exception then
  perform private.refuse_value('move', 'This is not a duration, a day or a time.', 'Write it as in P7D, 2027-05-03 or 2027-05-03T10:00:00+02:00.');
end
$$;

-- The times of an object as they move, but for those that the plan sets: at the same hour of the event's day on either side of a change of
-- daylight saving time. A copy moves all its times. Of an event that moves itself, sales and codes that have begun or ended stay so: a sale
-- that runs goes on. A door opens with the event. Nothing that is to come moves into the past, so a move back finds all that moved.
create function private.moved_times(work private.event_work, "row" jsonb, fields jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_from text := (work.base).timezone;
  v_to text := coalesce(work.arguments #>> '{changes,timezone}', v_from);
  v_time record;
  v_times jsonb := '{}';
begin
  for v_time in
    select f.key as field, f.value::timestamptz as before, ((f.value::timestamptz at time zone v_from) + work.distance) at time zone v_to as after
    from jsonb_each_text("row") f
    where f.key ~ '^(starts|ends|sales_start|sales_end|opens|closes)_at$|^valid_(from|until)$|^guests_may_until$' and not fields ? f.key
      and (work.is_copy or f.key ~ '^(starts|ends|opens|closes)_' or f.value::timestamptz > now())
      and f.value is not null and work.distance is not null
    order by f.key desc
  loop
    if not work.is_copy and v_time.before > now() and v_time.after <= now() then
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
        when f.key ~ '_(at|until)$|^valid_' then to_jsonb(private.zoned_time((f.value #>> '{}')::timestamptz, event.timezone))
        when f.key = 'ticket_type_ids' then (
          select coalesce(jsonb_agg(coalesce((select t.name from public.ticket_types t where t.id = i.id::uuid and i.place <= 10), '…')), '[]')
          from jsonb_array_elements_text(f.value) with ordinality i (id, place)
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

-- What an operation made of the fields that it was given: [old, new] where they differ, null if none does. Of a new object the values,
-- without what goes without saying; how often a point lets a ticket in is fixed with its first scan, so that is said.
create function private.plan_changes(work private.event_work, before jsonb, after jsonb, fields jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_usual constant jsonb := '{"status": "active", "visibility": "public", "min_per_order": 1, "waiting_list_offer_hours": 24}';
begin
  if fields ? 'venue' then
    before := before || private.venue_columns(before -> 'venue');
    after := after || private.venue_columns(after -> 'venue');
    fields := fields - 'venue' || private.venue_columns(fields -> 'venue');
  end if;
  if before is null then
    return private.plan_words((
      select coalesce(jsonb_object_agg(f.key, after -> f.key), '{}')
      from jsonb_object_keys(fields || '{"status": 0, "admission": 0}') f (key)
      where f.key not in ('name', 'code', 'position')
        and after -> f.key not in ('null', '{}', '[]')
        and after -> f.key is distinct from v_usual -> f.key
    ), work.event);
  end if;
  fields := (
    select coalesce(jsonb_object_agg(f.key, after -> f.key), '{}')
    from jsonb_object_keys(fields) f (key) where after -> f.key is distinct from before -> f.key
  );
  return (
    select jsonb_object_agg(n.key, jsonb_build_array(o.value, n.value))
    from jsonb_each(private.plan_words(fields, work.event)) n
    join jsonb_each(private.plan_words((select jsonb_object_agg(f.key, before -> f.key) from jsonb_object_keys(fields) f (key)), work.base)) o using (key)
  );
end
$$;

-- Creates an object, or changes the one with this id, by its operation, and answers the outcome. Of the event itself by what its operations
-- do, which would ask for a confirmation of the notice and not know the organisation of whoever works by hand.
create function private.write_object(work private.event_work, kind private.plan_kind, id text, fields jsonb) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_arguments jsonb;
  v_outcomes json[];
  v_event public.events;
begin
  case
    when kind.kind <> 'event' then
      v_arguments := case when id is null then fields || jsonb_build_object('event_id', (work.event).id)
        else jsonb_build_object(kind.kind || '_id', id, 'changes', fields) end;
      execute private.statement_of_calls(
        case when id is null then 'create_' else 'update_' end || kind.kind, array(select jsonb_object_keys(v_arguments))
      ) into v_outcomes using json_build_array(v_arguments), timestamptz 'infinity';
      return v_outcomes[1];
    when id is null then v_event := private.add_event(work.organisation_id, fields);
    when fields ? 'status' then v_event := private.set_event_status(id::uuid, (fields ->> 'status')::public.event_status);
    else v_event := private.change_event(work.base, fields);
  end case;
  return jsonb_build_object(
    'data', private.event_json(v_event), 'warnings', jsonb_build_array(private.warning_of_offset(fields, v_event.id))
  );
end
$$;

-- The step of an object that is added, or copied from the one of another event: as it was but for `fields`.
create function private.step_that_adds(work private.event_work, kind private.plan_kind, copied jsonb, fields jsonb) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_all jsonb := coalesce(copied - '{event_id,external_id,slug}'::text[], '{}') || private.with_merged_metadata(fields, copied -> 'metadata');
  v_added jsonb;
  v_data jsonb;
begin
  if v_all ->> kind.label is null then
    perform private.refuse_value(
      kind.label,
      case kind.kind when 'event' then 'A new event needs a name.' else 'A new object needs a name, and a new promo code needs a code.' end,
      case kind.kind when 'event' then 'Name it in changes. To change an existing event, send event.' end
    );
  end if;
  -- What the operation takes.
  fields := (
    select jsonb_object_agg(f.key, f.value)
    from pg_catalog.pg_proc p
    join jsonb_each(v_all) f on f.key = any (p.proargnames)
    where p.pronamespace = 'api'::regnamespace and p.proname = 'create_' || kind.kind
  );
  v_added := private.write_object(work, kind, null, fields);
  v_data := v_added -> 'data';
  if kind.kind = 'event' then
    work.event := jsonb_populate_record(null::public.events, v_data);
  elsif v_all ->> 'status' <> v_data ->> 'status' then
    v_data := private.write_object(work, kind, v_data ->> 'id', jsonb_build_object('status', v_all -> 'status')) -> 'data';
  end if;
  return jsonb_build_object(
    'action', 'create', 'kind', kind.kind, 'name', v_data -> kind.label, 'id', v_data -> 'id',
    'changes', private.plan_changes(work, null, v_data, fields),
    'warnings', v_added -> 'warnings'
  );
end
$$;

-- The step of an object that is changed.
create function private.step_that_changes(work private.event_work, kind private.plan_kind, before jsonb, fields jsonb) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome jsonb := private.write_object(work, kind, before ->> 'id', fields);
  v_changes jsonb;
begin
  if kind.kind = 'event' then
    work.event := jsonb_populate_record(null::public.events, v_outcome -> 'data');
  end if;
  v_changes := private.plan_changes(work, before, v_outcome -> 'data', fields);
  if v_changes is null then
    return '{"action": "unchanged"}';
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'action', case v_changes #>> '{status,1}' when kind.archived then 'archive' else 'change' end,
    'kind', kind.kind, 'name', before -> kind.label,
    -- Said, because a change alone does not bring it back.
    'status', case when not v_changes ? 'status' and before ->> 'status' in ('archived', 'disabled') then before -> 'status' end
  )) || jsonb_build_object('changes', v_changes, 'warnings', v_outcome -> 'warnings');
end
$$;

-- The ticket types that a list of names, ids or external_ids means; of a copied event, what became of them.
create function private.ticket_types_meant(work private.event_work, names jsonb) returns uuid[]
language plpgsql stable set search_path = ''
as $$
declare
  v_name text;
  v_found jsonb[];
  v_ids uuid[] := '{}';
begin
  for v_name in select coalesce(work.copies ->> n, n) from jsonb_array_elements_text(names) n loop
    v_found := private.rows_meant(work.types, 'name', jsonb_build_object('id', v_name));
    perform private.refuse_several(v_found, 'ticket_types');
    -- Of one that could not be added that is said already.
    if v_found = '{}' and private.form_of_name('name', v_name) <> all (work.refused) then
      perform private.refuse(
        422, 'validation_failed', 'A listed ticket type is not one of the event.', 'ticket_types',
        jsonb_build_object('ticket_types', jsonb_path_query_array(work.types, '$[0 to 9].name')),
        'Name one of details.ticket_types, or add it to ticket_types.'
      );
    end if;
    v_ids := v_ids || (v_found[1] ->> 'id')::uuid;
  end loop;
  return array(select distinct i from unnest(v_ids) i where i is not null order by i);
end
$$;

-- One object, or the event itself, as it is to be: changed where it is there, else added. Null: there is nothing to do, or a copy leaves it out.
create function private.step_of_item(work private.event_work, kind private.plan_kind, item private.plan_item) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_row jsonb := item.found[1];
  v_fields jsonb := coalesce(item.item, '{}') - '{id,ticket_types}'::text[];
begin
  perform private.refuse_several(item.found, case when item.item ? 'id' then 'id' else kind.label end);
  if v_row is null and item.item ? 'id' then
    perform private.refuse(
      404, 'not_found', 'The event has nothing with this id, external_id or name.', 'id',
      jsonb_build_object('names', jsonb_path_query_array(work.rows, format('$[0 to 9].%s', kind.label)::jsonpath)),
      'Leave id out to add it as new.'
    );
  elsif item.is_again then
    perform private.refuse_value(kind.label, 'The list has this object twice.', 'Leave one out, or tell them apart by id or external_id.');
  elsif item.item is null and work.arguments ? kind.list and (work.arguments ->> 'archive_missing')::boolean then
    return private.step_that_changes(work, kind, v_row, jsonb_build_object('status', kind.archived));
  end if;

  if num_nonnulls(v_fields ->> 'percent_off', v_fields ->> 'amount_off') = 1 then
    -- One kind of discount takes the place of the other.
    v_fields := '{"percent_off": null, "amount_off": null}' || v_fields;
  elsif jsonb_typeof(v_fields -> 'venue') = 'object' then
    v_fields := v_fields || jsonb_build_object('venue', coalesce(nullif(v_row -> 'venue', 'null'), '{}') || (v_fields -> 'venue'));
  end if;
  if item.item ? 'ticket_types' then
    v_fields := v_fields || jsonb_build_object('ticket_type_ids', private.ticket_types_meant(work, item.item -> 'ticket_types'));
  elsif work.is_copy and v_row -> 'ticket_type_ids' <> '[]' then
    v_fields := v_fields || jsonb_build_object('ticket_type_ids', (
      select coalesce(jsonb_agg(work.copies -> i order by work.copies ->> i), '[]')
      from jsonb_array_elements_text(v_row -> 'ticket_type_ids') i
      where work.copies ? i
    ));
    -- It was for ticket types that are not copied; with none it would be for all.
    if v_fields -> 'ticket_type_ids' = '[]' then
      if item.item is not null then
        perform private.refuse_value(
          'ticket_types', 'The ticket types of this object are not copied.', 'Give it ticket_types. An empty list means all.'
        );
      end if;
      return null;
    end if;
  end if;
  v_fields := private.moved_times(work, v_row, v_fields) || v_fields;

  return case
    when v_row is null or work.is_copy then private.step_that_adds(work, kind, v_row, v_fields)
    when v_fields <> '{}' then private.step_that_changes(work, kind, v_row, v_fields)
    when kind.kind <> 'event' then '{"action": "unchanged"}'
  end;
end
$$;

-- A step in a savepoint, so that all refusals are named: what it did, or why it is refused.
create function private.take_step(work private.event_work, kind private.plan_kind, item private.plan_item) returns private.event_work
language plpgsql volatile set search_path = ''
as $$
declare
  v_step jsonb;
  v_state text;
  v_message text;
  v_detail text;
  v_hint text;
  v_rule text;
begin
  begin
    v_step := case
      when kind.kind = 'event' and item.item ? 'status' then private.step_that_changes(work, kind, item.found[1], item.item)
      else private.step_of_item(work, kind, item)
    end;
  exception when others then
    get stacked diagnostics
      v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint, v_rule = constraint_name;
    -- Of two that take one value at once the gateway calls the second again, which is refused as it is elsewhere.
    if v_state !~ '^(PT4|22|23)' or v_state = '23505' then
      raise;
    end if;
    work.refusals := work.refusals + 1;
    if kind.kind <> 'event' then
      work.refused := work.refused || array_remove(
        array[private.form_of_name('name', item.name), private.form_of_name('name', item.item ->> 'external_id')], null
      );
    end if;
    v_step := jsonb_build_object(
      'action', 'refuse', 'kind', kind.kind,
      'name', case kind.kind when 'event' then coalesce(work.arguments #>> '{changes,name}', (work.base).name) else item.name end,
      'error', case
        -- The message of a value is not said in details as well.
        when v_state like 'PT4%' then (v_detail::jsonb - case when v_detail::jsonb -> 'details' ? 'fields' then 'details' else '' end)
          || jsonb_strip_nulls(jsonb_build_object('message', v_message, 'hint', nullif(v_hint, '')))
        -- The sentence of the constraint. The row that Postgres would show stays out.
        else jsonb_build_object(
          'code', 'validation_failed', 'message', 'The database refuses it: ' || coalesce(nullif(v_rule, ''), v_state)
        ) || jsonb_strip_nulls(to_jsonb(private.rule_of(v_rule)))
      end
    );
  end;
  if v_step ->> 'action' = 'unchanged' then
    work.unchanged := work.unchanged + 1;
  elsif v_step is not null then
    work.steps := work.steps || (v_step - 'warnings');
    -- Of what a list names, not of what is copied or moved along.
    if jsonb_typeof(v_step -> 'warnings') = 'array' and item.item is not null then
      work.warnings := work.warnings || array(select jsonb_array_elements(v_step -> 'warnings'));
    end if;
    if v_step ? 'id' and item.found <> '{}' then
      work.copies := work.copies || jsonb_build_object(item.found[1] ->> 'id', v_step -> 'id');
    end if;
  end if;
  if kind.kind = 'event' then
    select e into work.event from public.events e where e.id = coalesce((work.event).id, (v_step ->> 'id')::uuid);
  end if;
  return work;
end
$$;

-- Does what the arguments of apply_event say, to an event, a copy of one, or a new one, and answers what was read, each step, and the event.
-- Whoever calls it rolls back if there are refusals.
create function private.carry_out_event(arguments jsonb, organisation_id uuid, event_id uuid, source_id uuid) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_event_kind constant private.plan_kind := ('event', 'events', 'name', null);
  v_status constant text := arguments #>> '{changes,status}';
  v_work private.event_work;
  v_kind private.plan_kind;
  v_item private.plan_item;
  v_event public.events;
  v_notice jsonb;
begin
  -- Nobody registers meanwhile, and what is changed is locked in the order of 20-events/locks.sql.
  if event_id is not null then
    perform from public.events e where e.id = carry_out_event.event_id for no key update;
    perform private.lock_event_exclusive(event_id);
    if arguments ?| '{promo_codes,move}' then
      perform from public.promo_codes c where c.event_id = carry_out_event.event_id order by c.id for no key update;
    end if;
    perform private.lock_event_capacity(event_id);
    perform from public.ticket_types t where t.event_id = carry_out_event.event_id order by t.id for no key update;
  end if;
  select e.* into v_event from public.events e where e.id = coalesce(event_id, source_id);
  v_work := row(
    arguments, organisation_id, v_event, case when source_id is null then v_event end,
    source_id is not null, private.move_of_plan(v_event, arguments, source_id is not null), null, null,
    case when v_event.id is null then '{}' else jsonb_build_object('event', v_event.version) end,
    '[]', '{}', '{}', '{}', '{}', 0, 0
  );

  v_item.item := coalesce(arguments -> 'changes', '{}') - 'status';
  v_item.found := case when v_event.id is null then '{}' else array[private.event_json(v_event)::jsonb] end;
  v_work := private.take_step(v_work, v_event_kind, v_item);
  -- Without the event there is nothing to add to.
  if (v_work.event).id is not null then
    -- In the order in which they are made. A kind joins by its line here, its api.create_… and its api.update_….
    for v_kind in
      values
        ('ticket_type', 'ticket_types', 'name', 'archived'),
        ('promo_code', 'promo_codes', 'code', 'disabled'),
        ('check_in_point', 'check_in_points', 'name', 'archived'),
        ('question', 'questions', 'key', 'archived')
    loop
      v_work := private.read_items(v_work, v_kind);
      foreach v_item in array v_work.items loop
        v_work := private.take_step(v_work, v_kind, v_item);
      end loop;
      if v_kind.list = 'ticket_types' and arguments ?| '{promo_codes,check_in_points,questions}' then
        v_work.types := private.rows_of_event(v_kind, (v_work.event).id, false, false);
      end if;
    end loop;
    -- Last of all.
    if v_work.refusals = 0 and v_status <> (v_work.event).status::text then
      v_item := row(jsonb_build_object('status', v_status), null, array[private.event_json(v_work.event)::jsonb], false);
      v_work := private.take_step(v_work, v_event_kind, v_item);
    end if;
  end if;

  if v_work.refusals = 0 and event_id is not null then
    v_notice := private.notify_of_event(event_id, (arguments ->> 'notify')::public.notify);
  end if;
  select e.* into v_event from public.events e where e.id = (v_work.event).id;
  return jsonb_build_object(
    'warnings', to_jsonb(array(
      select distinct w
      from unnest(v_work.warnings || private.warnings_of_event(v_work.base, v_event, v_work.distance is not null)) w
      where w <> 'null'
      limit 20
    )),
    'read', v_work.read,
    'steps', to_jsonb(array(select s from unnest(v_work.steps) with ordinality s (s, n) order by s ->> 'action' <> 'refuse', n)),
    -- What a plan promises: the steps, but for the ids that are given when it is applied.
    'steps_digest', md5(array(select s - 'id' from unnest(v_work.steps) with ordinality s (s, n) order by n)::text),
    'unchanged', v_work.unchanged, 'refusals', v_work.refusals, 'notice', v_notice,
    -- What is only added concerns nobody who is there.
    'affected', case when event_id is not null and v_event.id is not null then private.affected_by_event(event_id) || case
      when v_notice is null and not exists (select from unnest(v_work.steps) s where s ->> 'action' in ('change', 'archive'))
        then '{"orders": 0, "attendees": 0}'::jsonb else '{}' end
    end,
    'news', case when event_id is not null and v_event.id is not null and private.is_asking()
      then private.news_of_event(v_work.base, v_event, v_notice) end,
    'event', jsonb_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status, 'starts_at', private.zoned_time(v_event.starts_at, v_event.timezone),
      'ends_at', private.zoned_time(v_event.ends_at, v_event.timezone), 'timezone', v_event.timezone
    )
  );
end
$$;

grant execute on function
  private.form_of_name, private.rows_of_event, private.rows_meant, private.refuse_several, private.read_items, private.move_of_plan,
  private.moved_times, private.zoned_time, private.plan_words, private.plan_changes, private.write_object, private.step_that_adds,
  private.step_that_changes, private.ticket_types_meant, private.step_of_item, private.take_step, private.carry_out_event, private.money_text
to scope_events_write;
