-- Imports: up to 1,000 guests of an event in one call, with a verdict for each. A guest is matched by external_id; one without, or whose
-- external_id is new, by e-mail address and name within the event.

-- Attendees whose given fields differ are changed in one statement; a refusal divides the list, as for a batch of calls. Each
-- call is a change of private.change_attendees.
create function private.update_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcomes json[];
begin
  with changed as materialized (select c.id, c.order_id, c.status from private.change_attendees(calls) c)
  select array_agg(
    json_build_object('status', 200, 'data', json_build_object('id', k.id, 'order_id', k.order_id, 'status', k.status))
    order by u.place
  )
  into v_outcomes
  from unnest(calls) with ordinality u (call, place)
  join changed k on k.id = (u.call ->> 'attendee_id')::uuid;
  return v_outcomes;
end
$$;
grant execute on function private.update_attendee_calls to scope_attendees_write;

-- The answers of private.answer_calls with their errors as the operations answer them. One that is only {} was refused by nothing
-- that a caller can mend, so it is tried again without a savepoint, for its error to end the import.
create function private.import_calls(operation text, calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_answers json[] := case when calls = '{}' then '{}' else private.answer_calls(operation, calls) end;
begin
  for i in 1..cardinality(v_answers) loop
    if v_answers[i]::text = '{}' then
      execute format('select private.%I($1)', operation) using calls[i:i];
      set constraints all immediate;
      raise exception 'The outcome of a guest depends on another.' using errcode = 'serialization_failure';
    end if;
  end loop;
  return v_answers;
end
$$;
grant execute on function private.import_calls to scope_attendees_write;

-- One line of text, as a name is.
create function private.is_line(value jsonb, max_length integer) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return jsonb_typeof(value) = 'string'
    and private.is_one_line(value #>> '{}', max_length);
end
$$;
grant execute on function private.is_line to scope_attendees_write;

-- An empty text of an optional line is none, as an empty cell is in Studio: exports of other systems have one where they know nothing.
create function private.without_empty_lines(guest jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
declare
  v_field text;
begin
  foreach v_field in array '{company,external_id}'::text[] loop
    if guest -> v_field = '""' then
      guest := jsonb_set(guest, array[v_field], 'null');
    end if;
  end loop;
  return guest;
end
$$;
grant execute on function private.without_empty_lines to scope_attendees_write;

-- What is wrong with the form of a guest, as the error of a verdict; null if nothing is. The constraints say the same, but of the
-- statement that adds many.
create function private.error_of_guest(guest jsonb) returns json
language plpgsql immutable set search_path = ''
as $$
declare
  v_known jsonb;
  v_fields jsonb := '[]';
begin
  -- Most guests have these fields alone, in form.
  if jsonb_typeof(guest) = 'object' then
    if guest - '{name,email,external_id}'::text[] = '{}' and private.is_line(guest -> 'name', 200)
      and jsonb_typeof(guest -> 'email') = 'string' and private.is_email_address(guest ->> 'email')
      and (guest -> 'external_id' is null or private.is_line(guest -> 'external_id', 255)) then
      return null;
    end if;
  end if;
  v_known := to_jsonb(jsonb_populate_record(null::private.guest, '{}')) - 'waiting_list_entry_id';
  if jsonb_typeof(guest) <> 'object' then
    v_fields := '[{"param": null, "message": "A guest is an object with a name and an email."}]';
  else
    if private.is_line(guest -> 'name', 200) is not true then
      v_fields := v_fields || '{"param": "name", "message": "A name is one line of 1 to 200 characters."}'::jsonb;
    end if;
    if coalesce(guest ->> 'email', '') = '' then
      v_fields := v_fields || '{"param": "email", "message": "An email is required."}'::jsonb;
    elsif jsonb_typeof(guest -> 'email') is distinct from 'string' or not private.is_email_address(guest ->> 'email') then
      v_fields := v_fields || jsonb_build_object(
        'param', 'email', 'message', 'This is not an e-mail address. ' || private.hint_for_address(guest ->> 'email')
      );
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', l.field, 'message', format(
        '%s %s is one line of 1 to %s characters.', case when l.field ~ '^[aeiou]' then 'An' else 'A' end, l.field, l.characters
      ))), '[]')
      from (values ('company', 200), ('external_id', 255)) l (field, characters)
      where guest ->> l.field is not null and not private.is_line(guest -> l.field, l.characters)
    );
    if guest ? 'metadata' and not private.is_metadata(guest -> 'metadata') then
      v_fields := v_fields || '{"param": "metadata", "message": "Metadata is a flat object of at most 50 keys with text, numbers that are kept exactly, true, false or null."}'::jsonb;
    end if;
    if guest ? 'ticket_type_id' and (
      guest ->> 'ticket_type_id' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
    ) is not true then
      v_fields := v_fields || '{"param": "ticket_type_id", "message": "This is not the id of a ticket type."}'::jsonb;
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', left(f.name, 100), 'message', 'A guest has no such field.')), '[]')
      from (
        select n.name from jsonb_object_keys(guest) n (name)
        where not v_known ? n.name
        order by n.name
        limit 10
      ) f
    );
  end if;
  if v_fields = '[]' then
    return null;
  end if;
  return json_build_object(
    'code', 'validation_failed', 'message', v_fields -> 0 -> 'message', 'param', v_fields -> 0 -> 'param',
    'details', json_build_object('fields', v_fields), 'hint', 'Correct the fields named in details.fields, and send the guest again.'
  );
end
$$;
grant execute on function private.error_of_guest to scope_attendees_write;

-- What is wrong with each guest of a list by itself, or beside an earlier one; null: nothing. Two who have no external_id to tell them
-- apart are never taken for one person.
create function private.errors_of_guests(guests jsonb) returns json[]
language plpgsql immutable set search_path = ''
as $$
begin
  return array(
    select coalesce(g.error, case
      when g.has_external_id_before then json_build_object(
        'code', 'already_exists', 'message', 'An earlier guest of the list has this external_id.', 'param', 'external_id',
        'hint', 'Send each external_id once.'
      )
      when g.has_person_before then json_build_object(
        'code', 'already_exists', 'message', 'An earlier guest of the list has this e-mail address and name.', 'param', 'email',
        'hint', 'If they are two people, give each an external_id.'
      )
    end)
    from (
      select
        g.place,
        g.error,
        g.external_id is not null
          and count(*) over (partition by g.error is null, g.external_id order by g.place) > 1 as has_external_id_before,
        count(*) over same_person > 1
          and (g.external_id is null or count(*) filter (where g.external_id is null) over same_person > 0) as has_person_before
      from (
        select
          g.place,
          private.error_of_guest(g.guest) as error,
          g.guest ->> 'external_id' as external_id,
          lower(g.guest ->> 'email') as email,
          private.person_form(g.guest ->> 'name') as name
        from jsonb_array_elements(guests) with ordinality g (guest, place)
      ) g
      window same_person as (partition by g.error is null, g.email, g.name order by g.place)
    ) g
    order by g.place
  );
end
$$;
grant execute on function private.errors_of_guests to scope_attendees_write;

-- The attendee of the calling key's organisation that a guest of a list is, by external_id, or else by e-mail address and name at the event:
-- by key, with a plan of its own for each way. One who is not cancelled comes first, and then the earliest. A guest whose external_id is new
-- may have been registered elsewhere, in Studio, say, and so without one; with a ticket of another type it is another ticket. Security
-- definer: under row level security the planner may read the whole organisation for each guest.
create function private.attendee_of_guest(
  event_id uuid, ticket_type_id uuid, guest jsonb, taken uuid[] default '{}'
) returns public.attendees
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_external_id text := guest ->> 'external_id';
  v_ticket_type_id text := lower(coalesce(guest ->> 'ticket_type_id', attendee_of_guest.ticket_type_id::text));
  v_email text := lower(guest ->> 'email');
  v_form text := private.person_form(guest ->> 'name');
  -- What is searched begins with the name. Where an address has 2,000 guests, an import of 1,000 more ends by it, and not in time without.
  v_searched text := private.search_form(v_form) || ' ';
  v_attendee public.attendees;
begin
  if v_external_id is null then
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = v_organisation_id
      and a.email_lower = v_email
      and a.event_id = attendee_of_guest.event_id
      and starts_with(a.search_text, v_searched)
      and private.person_form(a.name) = v_form
    order by a.status = 'cancelled', a.id
    limit 1;
    return v_attendee;
  end if;

  select a.* into v_attendee
  from public.attendees a
  where a.organisation_id = v_organisation_id and a.external_id = v_external_id;
  if not found then
    -- Among the newest of the address: that of an office may have thousands.
    select f.* into v_attendee
    from (
      select a.*
      from public.attendees a
      where a.organisation_id = v_organisation_id and a.email_lower = v_email
      order by a.organisation_id desc, a.email_lower desc, a.id desc
      limit 100
    ) f
    where f.event_id = attendee_of_guest.event_id
      and private.person_form(f.name) = v_form
      and f.external_id is null
      and f.status <> 'cancelled'
      and f.id <> all (taken)
      and coalesce(f.ticket_type_id::text = v_ticket_type_id, true)
    order by f.id
    limit 1;
  end if;
  return v_attendee;
end
$$;
grant execute on function private.attendee_of_guest to scope_attendees_write;

-- Locks what the guests of a list are matched by, in one order: another import of the same guests waits, and so does a registration with
-- one of the external_ids.
create function private.lock_guests(event_id uuid, guests jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_lock_key integer;
begin
  for v_lock_key in
    select private.lock_key_of_external_id('attendee', g ->> 'external_id') from jsonb_array_elements(guests) g where g ->> 'external_id' is not null
    union
    select hashtext(concat_ws(' ', lock_guests.event_id, 'guest', lower(g.guest ->> 'email'), private.person_form(g.guest ->> 'name')))
    from jsonb_array_elements(guests) g (guest)
    where g.guest ->> 'external_id' is null
    order by 1
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
end
$$;
grant execute on function private.lock_guests to scope_attendees_write;

-- The event lock, the orders of the attendees that the guests are, for a cancellation of one locks its attendees in any order, and then the
-- attendees, before any ticket type: see 20-events/locks.sql. Security definer: a key with attendees:write has no right to orders.
create function private.lock_attendees_of_import(event_id uuid, ticket_type_id uuid, guests jsonb) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_guest jsonb;
  v_id uuid;
  v_ids uuid[] := '{}';
begin
  perform private.lock_event_shared(event_id);
  for v_guest in select g.guest from jsonb_array_elements(guests) g (guest) loop
    v_id := (private.attendee_of_guest(event_id, ticket_type_id, v_guest, v_ids)).id;
    if v_id is not null then
      v_ids := v_ids || v_id;
    end if;
  end loop;
  if v_ids = '{}' then
    return;
  end if;
  perform 1
  from public.orders o
  where o.id = any (array(select a.order_id from public.attendees a where a.id = any (v_ids)))
  order by o.id
  for share;
  perform 1 from public.attendees a where a.id = any (v_ids) order by a.id for no key update;
end
$$;
grant execute on function private.lock_attendees_of_import to scope_attendees_write;

-- The verdict on a guest of whom private.answer_calls reports an error. Its details are the JSON that private.refuse wrote.
create function private.refused_guest(answer json) returns json
language plpgsql immutable set search_path = ''
as $$
declare
  v_detail json := answer #>> '{error,details}';
  v_param text := v_detail ->> 'param';
begin
  return json_build_object('result', 'refused', 'error', json_build_object(
    'code', v_detail -> 'code',
    'message', answer #> '{error,message}',
    -- The guest was sent as a group of one.
    'param', regexp_replace(v_param, '^attendees\.0\.', ''),
    'details', v_detail -> 'details',
    'hint', nullif(answer #>> '{error,hint}', '')
  ));
end
$$;
grant execute on function private.refused_guest to scope_attendees_write;

-- The verdicts on a part of a list, whose locks are held. `errors` has what is known to be wrong with each guest. Guests who are no attendee
-- yet are registered, one order each, complimentary; an attendee is given the fields that the guest names. Fields left out stay as they are.
-- What is refused leaves the others as they are.
create function private.import_guests(
  event_id uuid, ticket_type_id uuid, send_email boolean, guests jsonb[], errors json[]
) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_guest jsonb;
  v_attendee public.attendees;
  v_identified uuid[] := '{}';
  v_changes jsonb;
  v_error json;
  v_verdicts json[] := array_fill(null::json, array[cardinality(guests)]);
  v_added integer[] := '{}';
  v_added_calls jsonb[] := '{}';
  v_changed integer[] := '{}';
  v_changed_calls jsonb[] := '{}';
  v_is_at_former_address boolean[] := '{}';
  v_answers json[];
  v_answer json;
begin
  for v_place in 1..cardinality(guests) loop
    v_guest := guests[v_place];
    v_attendee := private.attendee_of_guest(import_guests.event_id, import_guests.ticket_type_id, v_guest, v_identified);
    v_error := errors[v_place];
    v_changes := case when v_error is null then v_guest - '{ticket_type_id,external_id}'::text[] end;
    if v_error is null and v_attendee.id is not null and v_attendee.external_id is null and v_guest ->> 'external_id' is not null then
      -- Another guest of the list with this e-mail address and name is another attendee.
      v_identified := v_identified || v_attendee.id;
      v_changes := v_guest - 'ticket_type_id';
    end if;
    if v_error is not null then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', v_error);
    elsif v_attendee.id is null and coalesce(v_guest ->> 'ticket_type_id', import_guests.ticket_type_id::text) is null then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'validation_failed', 'message', 'A new attendee needs a ticket type.', 'param', 'ticket_type_id',
        'hint', 'Give each new attendee a ticket_type_id, or one beside the list.'
      ));
    elsif v_attendee.id is null then
      v_added := v_added || v_place;
      v_added_calls := v_added_calls || jsonb_build_object(
        'event_id', import_guests.event_id,
        'ticket_type_id', import_guests.ticket_type_id,
        'send_email', coalesce(import_guests.send_email, false),
        'attendees', jsonb_build_array(private.with_merged_metadata(v_guest, '{}'))
      );
    elsif v_attendee.event_id <> import_guests.event_id then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'already_exists', 'message', 'An attendee of another event has this external_id.', 'param', 'external_id',
        'details', json_build_object('id', v_attendee.id), 'hint', 'Use one external_id for each person and event.'
      ));
    elsif v_attendee.status = 'cancelled' then
      -- Not registered anew: a sync that sends whom it knows would undo every cancellation.
      v_verdicts[v_place] := json_build_object('result', 'refused', 'attendee_id', v_attendee.id, 'error', json_build_object(
        'code', 'cancelled', 'message', 'The ticket of this guest was cancelled.',
        'param', case when v_guest ->> 'external_id' is null then 'email' else 'external_id' end,
        'hint', 'If they come after all, register them with register_attendee, which takes the same external_id.'
      ));
    elsif v_attendee.ticket_type_id <> (v_guest ->> 'ticket_type_id')::uuid then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'attendee_id', v_attendee.id, 'error', json_build_object(
        'code', 'read_only_field', 'message', 'The ticket type of an attendee cannot be changed.', 'param', 'ticket_type_id',
        'hint', 'Cancel the attendee, and register the person again.'
      ));
    elsif jsonb_populate_record(v_attendee, private.with_merged_metadata(v_changes, v_attendee.metadata)) is not distinct from v_attendee then
      v_verdicts[v_place] := json_build_object(
        'result', 'unchanged', 'attendee_id', v_attendee.id, 'order_id', v_attendee.order_id, 'status', v_attendee.status
      );
    else
      v_changed := v_changed || v_place;
      v_changed_calls := v_changed_calls || (v_changes || jsonb_build_object('attendee_id', v_attendee.id));
      v_is_at_former_address := v_is_at_former_address
        || private.is_at_former_address(v_attendee, jsonb_populate_record(v_attendee, v_changes));
    end if;
  end loop;

  v_answers := private.import_calls('update_attendee_calls', v_changed_calls);
  for i in 1..cardinality(v_changed) loop
    v_answer := v_answers[i] #> '{outcome,data}';
    v_verdicts[v_changed[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'updated', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status',
      'is_at_former_address', v_is_at_former_address[i]
    ) end;
  end loop;

  v_answers := private.import_calls('register', v_added_calls);
  for i in 1..cardinality(v_added) loop
    v_answer := v_answers[i] #> '{outcome,data,attendees,0}';
    v_verdicts[v_added[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'created', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;
  return v_verdicts;
end
$$;
grant execute on function private.import_guests to scope_attendees_write;

-- In parts, until all are judged or the time is up: what remains is then sent again, in a list of its own or in the same one.
create function api.import_attendees(
  event_id uuid,
  attendees jsonb,
  ticket_type_id uuid default null,
  send_email boolean default null,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  -- As many as a batch of registrations: larger parts are no cheaper.
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_has_empty_lines constant boolean := attendees::text like '%""%';
  v_guests jsonb[] := array(
    select case when v_has_empty_lines then private.without_empty_lines(g.guest) else g.guest end
    from jsonb_array_elements(attendees) with ordinality g (guest, place)
    order by g.place
  );
  v_sent integer := cardinality(v_guests);
  v_errors json[];
  v_verdicts json[] := '{}';
  v_judged integer := 0;
  v_ticket_type_ids uuid[];
  v_digest text := md5(attendees::text);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if v_has_empty_lines then
    attendees := to_jsonb(v_guests);
  end if;
  if v_sent not between 1 and 1000 then
    perform private.refuse_value('attendees', 'An import has 1 to 1000 attendees.', 'Send the rest in further calls.');
  end if;
  if not exists (select from public.events e where e.id = import_attendees.event_id) then
    perform private.refuse_not_found('event_id');
  end if;

  -- Locks in the order of 20-events/locks.sql.
  perform private.limit_lock_waits();
  perform private.lock_guests(event_id, attendees);
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_guests := v_guests[:c_part];
    attendees := to_jsonb(v_guests);
  end if;
  perform private.limit_lock_waits();
  perform private.lock_attendees_of_import(event_id, ticket_type_id, attendees);

  v_errors := private.errors_of_guests(attendees);
  begin
    loop
      perform private.limit_lock_waits();
      begin
        v_verdicts := v_verdicts || private.import_guests(
          event_id, ticket_type_id, send_email, v_guests[v_judged + 1:v_judged + c_part],
          v_errors[v_judged + 1:v_judged + c_part]
        );
      exception
        when lock_not_available then
          if v_judged = 0 then
            raise;
          end if;
          -- What is judged stays; somebody else has what the rest needs.
          exit;
      end;
      v_judged := cardinality(v_verdicts);
      exit when v_judged = cardinality(v_guests) or private.is_time_up();
    end loop;

    -- An import takes no payment.
    v_ticket_type_ids := array(
      select distinct coalesce(v_guests[v.place] ->> 'ticket_type_id', import_attendees.ticket_type_id::text)::uuid
      from unnest(v_verdicts) with ordinality v (verdict, place)
      where v.verdict ->> 'result' = 'created'
    );
    v_outcome := private.with_warnings(
      (
        select json_build_object('status', 200, 'data', json_build_object(
          'object', 'attendee_import',
          'event_id', import_attendees.event_id,
          'dry_run', coalesce(dry_run, false),
          'created', count(*) filter (where v.verdict ->> 'result' = 'created'),
          'updated', count(*) filter (where v.verdict ->> 'result' = 'updated'),
          'unchanged', count(*) filter (where v.verdict ->> 'result' = 'unchanged'),
          'refused', count(*) filter (where v.verdict ->> 'result' = 'refused'),
          'remaining', v_sent - v_judged,
          'results', json_agg(
            json_build_object(
              'external_id', case when jsonb_typeof(v_guests[v.place] -> 'external_id') = 'string' then left(v_guests[v.place] ->> 'external_id', 255) end,
              'result', v.verdict -> 'result',
              -- Of what is rolled back there is nothing to look up.
              'attendee_id', case when dry_run is not true or v.verdict ->> 'result' <> 'created' then v.verdict -> 'attendee_id' end,
              'order_id', case when dry_run is not true or v.verdict ->> 'result' <> 'created' then v.verdict -> 'order_id' end,
              'status', v.verdict -> 'status',
              'error', v.verdict -> 'error'
            )
            order by v.place
          )
        ))
        from unnest(v_verdicts) with ordinality v (verdict, place)
      ),
      private.warning_of_gifts(v_ticket_type_ids),
      private.warning_of_former_addresses((
        select count(*) from unnest(v_verdicts) v (verdict) where (v.verdict ->> 'is_at_former_address')::boolean
      ))
    );
    perform private.undo_if_dry_run(dry_run);
    if send_email then
      perform private.assert_notice_confirmed(
        'import_attendees', jsonb_build_object('event_id', event_id, 'ticket_type_id', ticket_type_id, 'digest', v_digest),
        json_build_object('told', v_outcome #> '{data,created}')
      );
    end if;
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.import_attendees is
  'Registers or updates up to 1000 guests of an event, matched by external_id, or by e-mail address and name, with a verdict for each that it reached in time, or says what it would do: 200. A refused guest has the error of register_attendee or update_attendee, or cancelled. 404 not_found; 422 validation_failed, idempotency_key_reused.';
grant execute on function api.import_attendees to scope_attendees_write;
