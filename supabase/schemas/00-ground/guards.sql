-- Trigger functions that several tables share. private.tg__assert_* raise unless the condition in their name holds;
-- private.tg__refuse always raises.

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
      'ticket_type_ids', 'A listed ticket type belongs to another event.', 'List the ticket types of the event to find their identifiers.',
      to_jsonb(new)
    );
  end if;
  return new;
end
$$;

-- Whether the organisation is being deleted with everything of it: what guards single rows lets its rows pass.
create function private.is_deleted_wholly(organisation_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$ begin return coalesce(current_setting('usher.deletes_organisation', true) = organisation_id::text, false); end $$;
grant execute on function private.is_deleted_wholly to api_key, authenticated;

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

-- Refuses a value that another row of the organisation has. Arguments: the columns. Row level security refuses a foreign row only after this
-- trigger, so nothing is looked up for one: the answer would reveal values of another organisation.
create function private.tg__assert_not_taken() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_column text;
  v_holder record;
begin
  if private.is_foreign(new.organisation_id) or tg_op = 'INSERT' and private.current_api_key_id() is null then
    return new;
  end if;
  foreach v_column in array tg_argv loop
    if tg_op = 'INSERT' or to_jsonb(new) -> v_column <> to_jsonb(old) -> v_column then
      execute format('select t.id, t.created_at, t.xmin from %s t where t.organisation_id = $1 and t.%I = $2 and t.id <> $3', tg_relid::regclass, v_column)
      into v_holder using new.organisation_id, to_jsonb(new) ->> v_column, new.id;
      if v_holder.id is not null then
        perform private.refuse_taken(v_column, v_holder.id, v_holder.created_at, v_holder.xmin);
      end if;
    end if;
  end loop;
  return new;
end
$$;

-- Whom orders, attendees and entries of the waiting list are for.
create function private.tg__assert_contact() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if private.is_one_line(new.name, 200) is not true then
    perform private.refuse_value(
      'name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.', to_jsonb(new)
    );
  elsif private.is_email_address(new.email) is not true then
    perform private.refuse_value(
      'email',
      case when new.email ~ '[^ -~]' then 'This e-mail address has a character that is invisible or not ASCII.' else 'This is not an e-mail address.' end,
      private.hint_for_address(new.email), to_jsonb(new)
    );
  end if;
  return new;
end
$$;

-- What the `when` of its trigger lets through. Arguments: status, code, message and hint; of a row perhaps the column that is at fault, and
-- those whose values are the details.
create function private.tg__refuse() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    tg_argv[0]::integer, tg_argv[1], tg_argv[2], tg_argv[4],
    (select jsonb_object_agg(c, to_jsonb(new) -> c) from unnest(tg_argv[5:]) c),
    tg_argv[3],
    case tg_when when 'BEFORE' then to_jsonb(coalesce(new, old)) end
  );
end
$$;

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
