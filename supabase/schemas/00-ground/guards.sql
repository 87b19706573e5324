-- Trigger functions that several tables share. private.tg__assert_* raise unless the condition in their name holds;
-- private.tg__refuse_* always raise.

create function private.refuse_changed("row" jsonb, old_row jsonb, columns text[], hint text default null) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_column text;
begin
  foreach v_column in array columns loop
    if "row" -> v_column is distinct from old_row -> v_column then
      perform private.refuse(409, 'read_only_field', 'This field is fixed once the row exists.', v_column, hint => refuse_changed.hint, "row" => "row");
    end if;
  end loop;
end
$$;
grant execute on function private.refuse_changed to api_key, authenticated;

-- Arguments: columns that are fixed once the row exists. The trigger is `before update of` the same columns, so that no
-- other update pays for it.
create function private.tg__assert_unchanged() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_changed(to_jsonb(new), to_jsonb(old), tg_argv);
  return new;
end
$$;

-- Arguments: a hint, then columns that Usher maintains. Writing back the present value passes; any other value is refused,
-- because it would be overwritten silently. On insert they must be null.
create function private.tg__assert_derived_untouched() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_column text;
begin
  foreach v_column in array tg_argv[1:] loop
    if to_jsonb(new) -> v_column is distinct from coalesce(to_jsonb(old) -> v_column, 'null')
      -- SQL that sets updated_at = now() itself passes: that is the value it gets.
      and not (v_column = 'updated_at' and (to_jsonb(new) ->> v_column)::timestamptz is not distinct from now()) then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', v_column, hint => tg_argv[0], "row" => to_jsonb(new)
      );
    end if;
  end loop;
  return new;
end
$$;

create function private.tg__assert_name() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.assert_valid_name(new.name, to_jsonb(new));
  return new;
end
$$;

-- ticket_type_ids are of the event. Asked only when the list is set: a row whose ticket type was deleted can still be edited.
create function private.tg__assert_ticket_types() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.ticket_type_ids = old.ticket_type_ids then
    return new;
  end if;
  new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
  if exists (
    select from unnest(new.ticket_type_ids) i (id)
    where not exists (
      select from public.ticket_types t
      where t.id = i.id and t.event_id = new.event_id and t.organisation_id = new.organisation_id
    )
  ) then
    perform private.refuse_value(
      'ticket_type_ids', 'A listed ticket type does not belong to the event.', 'List the ticket types of the event to find their identifiers.',
      to_jsonb(new)
    );
  end if;
  return new;
end
$$;

-- Refuses to delete a row that is referenced. Arguments: message, hint, and each `table.column` that may refer to the row.
-- The foreign keys remain behind it.
create function private.tg__assert_not_in_use() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_reference text;
  v_in_use boolean;
begin
  foreach v_reference in array tg_argv[2:] loop
    execute format(
      'select exists (select from public.%I where %I = %L)',
      split_part(v_reference, '.', 1), split_part(v_reference, '.', 2), coalesce(to_jsonb(old) ->> 'id', to_jsonb(old) ->> 'name')
    ) into v_in_use;
    if v_in_use then
      perform private.refuse(409, 'in_use', tg_argv[0], hint => tg_argv[1], "row" => to_jsonb(old));
    end if;
  end loop;
  return old;
end
$$;

-- For triggers whose `when` says which value is refused. Arguments: param, message and an optional hint.
create function private.tg__refuse_value() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_value(tg_argv[0], tg_argv[1], tg_argv[2], to_jsonb(new));
  return new;
end
$$;

-- Truncate fires no row triggers, so counts and logs would miss it.
create function private.tg__refuse_truncate() returns trigger
language plpgsql volatile set search_path = ''
as $$ begin perform private.refuse(409, 'append_only', 'This table cannot be truncated.', hint => 'Delete or cancel rows instead.'); end $$;

-- Rows below an event belong to its organisation, so an insert may leave the organisation out.
create function private.tg__inherit_organisation() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_organisation_id uuid;
begin
  if new.organisation_id is null or private.is_by_hand() then
    select e.organisation_id into v_organisation_id from public.events e where e.id = new.event_id;
    if new.organisation_id is null and v_organisation_id is null and private.is_by_hand() then
      perform private.refuse_not_found('event_id');
    elsif new.organisation_id <> v_organisation_id then
      perform private.refuse_other_organisation();
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_organisation_id);
  end if;
  return new;
end
$$;

-- A row that is saved as it is keeps its updated_at. Most tables say so in the trigger's `when`. It cannot refer to a row with generated
-- columns: NEW has none of them yet. Nor does a table have one whose rows triggers write: Postgres plans a `when` for each statement. Such
-- tables have arguments, the columns that are not compared. What triggers write, one level deeper, always changes something, and is not
-- compared: registrations and payments do not pay for it.
create function private.tg__set_updated_at() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if tg_nargs > 0 and pg_trigger_depth() = 1 and to_jsonb(new) - tg_argv = to_jsonb(old) - tg_argv then
    return new;
  end if;
  new.updated_at := now();
  return new;
end
$$;

-- The version is the ETag of the object; an edit may name the version it is based on. The `when` of each trigger, or on orders and
-- attendees the guard, says which columns are edited: a value that is written as it was is no edit.
create function private.tg__count_version() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;

-- Arguments: the message, and a hint where there is one. Erasure and the purge take out of logs what is to be forgotten.
create function private.tg__assert_append_only() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Deleting an API key empties recorded_by.
  if tg_op = 'UPDATE' and to_jsonb(new) ->> 'recorded_by' is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
    return new;
  elsif tg_op = 'DELETE' and private.is_deleted_wholly(old.organisation_id) then
    return old;
  elsif current_setting('usher.erasing', true) = 'on' then
    return coalesce(new, old);
  end if;
  perform private.refuse(409, 'append_only', tg_argv[0], hint => tg_argv[1], "row" => to_jsonb(old));
  return null;
end
$$;

-- A row without an organisation gets the only one that may be meant. An API key names its own.
create function private.tg__fill_organisation() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.organisation_id is null and private.current_api_key_id() is null then
    new.organisation_id := private.organisation_meant(null, '{owner,manager}');
  end if;
  return new;
end
$$;

-- Postgres refuses a write to a view of several tables with SQLSTATE 55000, before it looks at privileges, and PostgREST makes a 500 of that.
-- With these triggers a member is refused for want of the privilege, as with a table, and an organiser in Studio reads a sentence.
create function private.tg__refuse_write() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    405, 'method_not_allowed', coalesce(tg_argv[0], 'This is a view: it is only read.'), hint => 'Change the rows of the tables that it shows.'
  );
  return null;
end
$$;
