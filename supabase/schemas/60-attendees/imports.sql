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
  with changed as (select c.id, c.order_id, c.status from private.change_attendees(calls) c)
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
      raise exception 'The outcome for this guest depends on another guest of the list.' using errcode = 'serialization_failure';
    end if;
  end loop;
  return v_answers;
end
$$;
grant execute on function private.import_calls to scope_attendees_write;

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
    if guest - '{name,email,external_id}'::text[] = '{}' and jsonb_typeof(guest -> 'name') = 'string' and private.is_one_line(guest ->> 'name', 200)
      and jsonb_typeof(guest -> 'email') = 'string' and private.is_email_address(guest ->> 'email')
      and (
        guest -> 'external_id' is null
        or jsonb_typeof(guest -> 'external_id') = 'string' and private.is_one_line(guest ->> 'external_id', 255)
      ) then
      return null;
    end if;
  end if;
  v_known := to_jsonb(jsonb_populate_record(null::private.guest, '{}')) - 'waiting_list_entry_id';
  if jsonb_typeof(guest) <> 'object' then
    v_fields := '[{"param": null, "message": "A guest is an object with a name and an email."}]';
  else
    if (jsonb_typeof(guest -> 'name') = 'string' and private.is_one_line(guest ->> 'name', 200)) is not true then
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
      where guest ->> l.field is not null and not (jsonb_typeof(guest -> l.field) = 'string' and private.is_one_line(guest ->> l.field, l.characters))
    );
    if guest ? 'metadata' and not private.is_metadata(guest -> 'metadata') then
      v_fields := v_fields || '{"param": "metadata", "message": "Metadata is a flat object of at most 50 keys with text, numbers that are kept exactly, true, false or null."}'::jsonb;
    end if;
    if jsonb_typeof(coalesce(nullif(guest -> 'answers', 'null'), '{}')) <> 'object' then
      v_fields := v_fields || '{"param": "answers", "message": "Answers are an object by the keys of the questions."}'::jsonb;
    end if;
    if guest ? 'ticket_type_id' and (
      guest ->> 'ticket_type_id' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
    ) is not true then
      v_fields := v_fields || '{"param": "ticket_type_id", "message": "This is not the id of a ticket type."}'::jsonb;
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', left(f.name, 100), 'message', 'There is no such field of a guest.')), '[]')
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
  v_searched text;
  v_attendee public.attendees;
begin
  if v_external_id is null then
    -- What is searched begins with the name. Where an address has 2,000 guests, an import of 1,000 more ends by it, and not in time without.
    v_searched := private.search_form(v_form) || ' ';
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
  where a.external_id = v_external_id and a.organisation_id is not distinct from v_organisation_id;
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

-- The verdict on a guest who was written, by the answer of private.answer_calls. The details of an error are the JSON that private.refuse
-- wrote.
create function private.verdict_on_answer(result text, answer json, attendee json, is_at_former_address boolean default null) returns json
language plpgsql immutable set search_path = ''
as $$
declare
  v_detail json;
begin
  if attendee is not null then
    return json_build_object(
      'result', result, 'attendee_id', attendee -> 'id', 'order_id', attendee -> 'order_id', 'status', attendee -> 'status',
      'is_at_former_address', is_at_former_address
    );
  end if;
  v_detail := answer #>> '{error,details}';
  return json_build_object('result', 'refused', 'error', json_build_object(
    'code', v_detail -> 'code',
    'message', answer #> '{error,message}',
    -- The guest was sent as a group of one.
    'param', regexp_replace(v_detail ->> 'param', '^attendees\.0\.', ''),
    'details', v_detail -> 'details',
    'hint', nullif(answer #>> '{error,hint}', '')
  ));
end
$$;
grant execute on function private.verdict_on_answer to scope_attendees_write;

-- The verdict on a guest that nothing has to be written for; null: the guest is added, or an attendee changed. `attendee` is whom the guest
-- is, `changed` what would become of them.
create function private.verdict_on_guest(
  event_id uuid, ticket_type_id uuid, guest jsonb, attendee public.attendees, changed public.attendees
) returns json
language plpgsql immutable set search_path = ''
as $$
declare
  v_is_elsewhere constant boolean := attendee.event_id <> verdict_on_guest.event_id;
  -- Code, message, param and hint.
  v_refusal constant text[] := case
    when attendee.id is null then case when coalesce(guest ->> 'ticket_type_id', ticket_type_id::text) is null then array[
      'validation_failed', 'A new attendee needs a ticket type.', 'ticket_type_id', 'Send ticket_type_id for each new attendee, or once beside the list.'
    ] end
    when v_is_elsewhere then array[
      'already_exists', 'An attendee of another event has this external_id.', 'external_id', 'Use one external_id for each person and event.'
    ]
    -- Not registered anew: a sync that sends whom it knows would undo every cancellation.
    when attendee.status = 'cancelled' then array[
      'cancelled', 'The ticket of this guest was cancelled.', case when guest ->> 'external_id' is null then 'email' else 'external_id' end,
      'To register them again, call register_attendee with the same external_id.'
    ]
    when attendee.ticket_type_id <> (guest ->> 'ticket_type_id')::uuid then array[
      'read_only_field', 'The ticket type of an attendee cannot be changed.', 'ticket_type_id',
      'Cancel the attendee, and register the person again.'
    ]
  end;
begin
  if v_refusal is not null then
    return json_strip_nulls(json_build_object(
      'result', 'refused', 'attendee_id', case when not v_is_elsewhere then attendee.id end, 'error', json_build_object(
        'code', v_refusal[1], 'message', v_refusal[2], 'param', v_refusal[3],
        'details', case when v_is_elsewhere then json_build_object('id', attendee.id) end, 'hint', v_refusal[4]
      )
    ));
  elsif attendee.id is not null and changed is not distinct from attendee then
    return json_build_object('result', 'unchanged', 'attendee_id', attendee.id, 'order_id', attendee.order_id, 'status', attendee.status);
  end if;
  return null;
end
$$;
grant execute on function private.verdict_on_guest to scope_attendees_write;

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
  v_changed public.attendees;
  v_identified uuid[] := '{}';
  v_changes jsonb;
  v_verdicts json[] := '{}';
  v_added integer[] := '{}';
  v_added_calls jsonb[] := '{}';
  v_edited integer[] := '{}';
  v_edited_calls jsonb[] := '{}';
  v_answers json[];
begin
  for v_place in 1..cardinality(guests) loop
    v_guest := guests[v_place];
    v_verdicts[v_place] := case when errors[v_place] is not null then json_build_object('result', 'refused', 'error', errors[v_place]) end;
    continue when errors[v_place] is not null;
    v_attendee := private.attendee_of_guest(import_guests.event_id, import_guests.ticket_type_id, v_guest, v_identified);
    v_changes := v_guest - 'ticket_type_id';
    if v_attendee.external_id is not null or v_guest ->> 'external_id' is null then
      v_changes := v_changes - 'external_id';
    elsif v_attendee.id is not null then
      -- Another guest of the list with this e-mail address and name is another attendee.
      v_identified := v_identified || v_attendee.id;
    end if;
    if jsonb_strip_nulls(v_attendee.answers || v_attendee.sensitive_answers || v_guest -> 'answers') = v_attendee.answers || v_attendee.sensitive_answers then
      v_changes := v_changes - 'answers';
    end if;
    v_changed := jsonb_populate_record(v_attendee, private.with_merged_metadata(v_changes, v_attendee.metadata));
    v_verdicts[v_place] := private.verdict_on_guest(import_guests.event_id, import_guests.ticket_type_id, v_guest, v_attendee, v_changed);
    continue when v_verdicts[v_place] is not null;
    if v_attendee.id is null then
      v_added := v_added || v_place;
      v_added_calls := v_added_calls || jsonb_build_object(
        'event_id', import_guests.event_id,
        'ticket_type_id', import_guests.ticket_type_id,
        'send_email', coalesce(import_guests.send_email, false),
        'attendees', jsonb_build_array(private.with_merged_metadata(v_guest, '{}'))
      );
    else
      v_edited := v_edited || v_place;
      v_edited_calls := v_edited_calls || (v_changes || jsonb_build_object('attendee_id', v_attendee.id));
      v_verdicts[v_place] := json_build_object('is_at_former_address', private.is_at_former_address(v_attendee, v_changed));
    end if;
  end loop;

  v_answers := private.import_calls('update_attendee_calls', v_edited_calls);
  for i in 1..cardinality(v_edited) loop
    v_verdicts[v_edited[i]] := private.verdict_on_answer(
      'updated', v_answers[i], v_answers[i] #> '{outcome,data}', (v_verdicts[v_edited[i]] ->> 'is_at_former_address')::boolean
    );
  end loop;
  v_answers := private.import_calls('register', v_added_calls);
  for i in 1..cardinality(v_added) loop
    v_verdicts[v_added[i]] := private.verdict_on_answer('created', v_answers[i], v_answers[i] #> '{outcome,data,attendees,0}');
  end loop;
  return v_verdicts;
end
$$;
grant execute on function private.import_guests to scope_attendees_write;

-- In parts, until all are judged or the time is up.
create function private.import_in_parts(event_id uuid, ticket_type_id uuid, send_email boolean, guests jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  -- As many as a batch of registrations: larger parts are no cheaper.
  c_part constant integer := 50;
  v_errors constant json[] := private.errors_of_guests(to_jsonb(guests));
  v_verdicts json[] := '{}';
  v_judged integer := 0;
begin
  loop
    perform private.limit_lock_waits();
    begin
      v_verdicts := v_verdicts || private.import_guests(
        event_id, ticket_type_id, send_email, guests[v_judged + 1:v_judged + c_part], v_errors[v_judged + 1:v_judged + c_part]
      );
    exception
      when lock_not_available then
        if v_judged = 0 then
          raise;
        end if;
        -- What is judged stays; somebody else has what the rest needs.
        return v_verdicts;
    end;
    v_judged := cardinality(v_verdicts);
    if v_judged = cardinality(guests) or private.is_time_up() then
      return v_verdicts;
    end if;
  end loop;
end
$$;
grant execute on function private.import_in_parts to scope_attendees_write;

create function private.attendee_import_json(event_id uuid, dry_run boolean, sent integer, guests jsonb[], verdicts json[]) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'attendee_import',
      'event_id', event_id,
      'dry_run', coalesce(dry_run, false),
      'created', count(*) filter (where v.verdict ->> 'result' = 'created'),
      'updated', count(*) filter (where v.verdict ->> 'result' = 'updated'),
      'unchanged', count(*) filter (where v.verdict ->> 'result' = 'unchanged'),
      'refused', count(*) filter (where v.verdict ->> 'result' = 'refused'),
      'remaining', sent - cardinality(verdicts),
      'results', json_agg(
        json_build_object(
          'external_id', case when jsonb_typeof(guests[v.place] -> 'external_id') = 'string' then left(guests[v.place] ->> 'external_id', 255) end,
          'result', v.verdict -> 'result',
          -- Of what is rolled back there is nothing to look up.
          'attendee_id', case when dry_run is not true or v.verdict ->> 'result' <> 'created' then v.verdict -> 'attendee_id' end,
          'order_id', case when dry_run is not true or v.verdict ->> 'result' <> 'created' then v.verdict -> 'order_id' end,
          'status', v.verdict -> 'status',
          'error', v.verdict -> 'error'
        )
        order by v.place
      )
    )
    from unnest(verdicts) with ordinality v (verdict, place)
  );
end
$$;
grant execute on function private.attendee_import_json to scope_attendees_write;

-- What remains when the time is up is sent again, in a list of its own or in the same one.
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
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_has_empty_lines constant boolean := attendees::text like '%""%';
  -- An empty text of an optional line is none, as an empty cell is in Studio: exports of other systems have one where they know nothing.
  v_guests jsonb[] := array(
    select case when v_has_empty_lines and jsonb_typeof(g.guest) = 'object' then g.guest || (
      select coalesce(jsonb_object_agg(f, null), '{}') from unnest('{company,external_id}'::text[]) f where g.guest -> f = '""'
    ) else g.guest end
    from jsonb_array_elements(attendees) with ordinality g (guest, place)
    order by g.place
  );
  v_sent integer := cardinality(v_guests);
  v_verdicts json[];
begin
  if v_outcome is not null then
    return v_outcome;
  elsif v_sent not between 1 and 1000 then
    perform private.refuse_value('attendees', 'An import has 1 to 1000 attendees.', 'Send the rest in further calls.');
  elsif not exists (select from public.events e where e.id = import_attendees.event_id) then
    perform private.refuse_not_found('event_id');
  end if;

  -- Locks in the order of 20-events/locks.sql.
  perform private.limit_lock_waits();
  -- What the guests of a list are matched by, in one order: another import of the same guests waits, and so does a registration with one of
  -- the external_ids.
  perform pg_advisory_xact_lock(6, k.lock_key)
  from (
    select case
      when g ->> 'external_id' is not null then private.lock_key_of_external_id('attendee', g ->> 'external_id')
      else hashtext(concat_ws(' ', import_attendees.event_id, 'guest', lower(g ->> 'email'), private.person_form(g ->> 'name')))
    end as lock_key
    from unnest(v_guests) g
    group by 1
    order by 1
  ) k;
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_guests := v_guests[:50];
  end if;
  perform private.limit_lock_waits();
  perform private.lock_attendees_of_import(event_id, ticket_type_id, to_jsonb(v_guests));
  begin
    v_verdicts := private.import_in_parts(event_id, ticket_type_id, send_email, v_guests);
    v_outcome := private.with_warnings(
      json_build_object('status', 200, 'data', private.attendee_import_json(event_id, dry_run, v_sent, v_guests, v_verdicts)),
      -- An import takes no payment.
      private.warning_of_gifts(array(
        select distinct coalesce(v_guests[v.place] ->> 'ticket_type_id', import_attendees.ticket_type_id::text)::uuid
        from unnest(v_verdicts) with ordinality v (verdict, place)
        where v.verdict ->> 'result' = 'created'
      )),
      private.warning_of_former_addresses((
        select count(*) from unnest(v_verdicts) v (verdict) where (v.verdict ->> 'is_at_former_address')::boolean
      ))
    );
    perform private.undo_if_dry_run(dry_run);
    if send_email then
      perform private.assert_notice_confirmed(
        'import_attendees', jsonb_build_object('event_id', event_id, 'ticket_type_id', ticket_type_id, 'digest', md5(attendees::text)),
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
  'Registers or updates up to 1000 guests of an event, matched by external_id, or by e-mail address and name. Answers a result for each guest it reached in time, or reports the effect: 200. A refused guest has an error of register_attendee or update_attendee, or cancelled. 404 not_found; 422 validation_failed, idempotency_key_reused.';
grant execute on function api.import_attendees to scope_attendees_write;
