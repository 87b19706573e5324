-- Imports: up to 1,000 guests of an event in one call, matched by external_id, with a verdict for each.

-- Attendees whose given fields differ are changed in one statement; a refusal divides the list, as for a batch of calls. Each
-- call is { attendee_id, name, email, company, metadata }, already complete.
create function private.update_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcomes json[];
begin
  with changed as (
    update public.attendees a
    set name = c.name, email = c.email, company = c.company, metadata = c.metadata
    from unnest(calls) u (call)
    cross join lateral jsonb_to_record(u.call) c (attendee_id uuid, name text, email text, company text, metadata jsonb)
    where a.id = c.attendee_id
    returning a.id, a.order_id, a.status
  )
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
grant execute on function private.update_attendee_calls(jsonb[]) to scope_attendees_write;

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
grant execute on function private.import_calls(text, jsonb[]) to scope_attendees_write;

-- Guests without an attendee of their external_id are registered, one order each, complimentary; the attendee of an external_id is
-- given the fields that the guest names. Fields left out stay as they are. What is refused leaves the others as they are.
create function api.import_attendees(
  event_id uuid,
  attendees jsonb,
  ticket_type_id uuid default null,
  send_email boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_twice bigint;
  v_guest record;
  v_verdicts json[];
  v_added bigint[] := '{}';
  v_added_calls jsonb[] := '{}';
  v_changed bigint[] := '{}';
  v_changed_calls jsonb[] := '{}';
  v_answers json[];
  v_answer json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if jsonb_array_length(attendees) not between 1 and 1000 then
    perform private.refuse_value('attendees', 'An import has 1 to 1000 attendees.', 'Send the rest in further calls.');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = import_attendees.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  select max(g.place) - 1 into v_twice
  from jsonb_array_elements(attendees) with ordinality g (guest, place)
  group by g.guest ->> 'external_id'
  having count(*) > 1
  order by 1
  limit 1;
  if found then
    perform private.refuse_value(
      format('attendees.%s.external_id', v_twice), 'Another attendee of the list has the same external_id.', 'Send each external_id once.'
    );
  end if;

  -- Locks in the order of 20_places.sql; a registration with one of the external_ids waits, or is found below.
  perform private.lock_external_ids(v_organisation_id, null, attendees);
  perform private.lock_attendees_of_import(event_id, array(select g ->> 'external_id' from jsonb_array_elements(attendees) g));

  for v_guest in
    select g.place, g.guest, a.id, a.event_id, a.order_id, a.ticket_type_id, a.status, a.name, a.email, a.company, a.metadata
    from jsonb_array_elements(attendees) with ordinality g (guest, place)
    left join lateral (
      select a.* from public.attendees a
      where a.organisation_id = v_organisation_id and a.external_id = g.guest ->> 'external_id'
      offset 0
    ) a on true
    order by g.place
  loop
    if v_guest.id is null and coalesce(v_guest.guest ->> 'ticket_type_id', import_attendees.ticket_type_id::text) is null then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'validation_failed', 'message', 'A new attendee needs a ticket type.', 'param', 'ticket_type_id',
        'hint', 'Give each new attendee a ticket_type_id, or one beside the list.'
      ));
    elsif v_guest.id is null then
      v_added := v_added || v_guest.place;
      v_added_calls := v_added_calls || jsonb_build_object(
        'event_id', import_attendees.event_id,
        'ticket_type_id', import_attendees.ticket_type_id,
        'send_email', coalesce(import_attendees.send_email, false),
        'attendees', jsonb_build_array(v_guest.guest)
      );
    elsif v_guest.event_id <> import_attendees.event_id then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'already_exists', 'message', 'An attendee of another event has this external_id.', 'param', 'external_id',
        'details', json_build_object('id', v_guest.id), 'hint', 'Use one external_id for each person and event.'
      ));
    elsif v_guest.ticket_type_id <> (v_guest.guest ->> 'ticket_type_id')::uuid then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'attendee_id', v_guest.id, 'error', json_build_object(
        'code', 'read_only_field', 'message', 'The ticket type of an attendee cannot be changed.', 'param', 'ticket_type_id',
        'hint', 'Cancel the attendee, and register the person again.'
      ));
    elsif (v_guest.name, v_guest.email, v_guest.company, v_guest.metadata) is not distinct from (
      coalesce(v_guest.guest ->> 'name', v_guest.name),
      coalesce(v_guest.guest ->> 'email', v_guest.email),
      case when v_guest.guest ? 'company' then v_guest.guest ->> 'company' else v_guest.company end,
      coalesce(v_guest.guest -> 'metadata', v_guest.metadata)
    ) then
      v_verdicts[v_guest.place] := json_build_object(
        'result', 'unchanged', 'attendee_id', v_guest.id, 'order_id', v_guest.order_id, 'status', v_guest.status
      );
    else
      v_changed := v_changed || v_guest.place;
      v_changed_calls := v_changed_calls || (jsonb_build_object(
        'attendee_id', v_guest.id, 'name', v_guest.name, 'email', v_guest.email, 'company', v_guest.company,
        'metadata', v_guest.metadata
      ) || (v_guest.guest - 'ticket_type_id' - 'external_id'));
    end if;
  end loop;

  v_answers := private.import_calls('update_attendee_calls', v_changed_calls);
  for i in 1..cardinality(v_changed) loop
    v_answer := v_answers[i] #> '{outcome,data}';
    v_verdicts[v_changed[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'updated', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;

  v_answers := private.import_calls('register_attendee_calls', v_added_calls);
  for i in 1..cardinality(v_added) loop
    v_answer := v_answers[i] #> '{outcome,data,attendees,0}';
    v_verdicts[v_added[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'created', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    (
      select json_build_object('status', 200, 'data', json_build_object(
        'object', 'attendee_import',
        'event_id', import_attendees.event_id,
        'created', count(*) filter (where v.verdict ->> 'result' = 'created'),
        'updated', count(*) filter (where v.verdict ->> 'result' = 'updated'),
        'unchanged', count(*) filter (where v.verdict ->> 'result' = 'unchanged'),
        'refused', count(*) filter (where v.verdict ->> 'result' = 'refused'),
        'results', json_agg(
          json_build_object(
            'external_id', attendees -> (v.place - 1)::integer -> 'external_id',
            'result', v.verdict -> 'result',
            'attendee_id', v.verdict -> 'attendee_id',
            'order_id', v.verdict -> 'order_id',
            'status', v.verdict -> 'status',
            'error', v.verdict -> 'error'
          )
          order by v.place
        )
      ))
      from unnest(v_verdicts) with ordinality v (verdict, place)
    )
  );
end
$$;
comment on function api.import_attendees(uuid, jsonb, uuid, boolean, text, text) is
  'Registers or updates up to 1000 guests of an event, matched by external_id, with a verdict for each: 200. A refused guest has the error of register_attendee or update_attendee. 404 not_found; 422 validation_failed, idempotency_key_reused.';
grant execute on function api.import_attendees(uuid, jsonb, uuid, boolean, text, text) to scope_attendees_write;

-- The event lock, the orders of the attendees, for a cancellation of one locks its attendees in any order, and then the attendees,
-- before any ticket type: see 20_places.sql. Security definer: a key with attendees:write has no right to orders.
create function private.lock_attendees_of_import(event_id uuid, external_ids text[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.lock_event_shared(event_id);
  perform 1
  from public.orders o
  where o.id = any (array(
    select a.order_id from public.attendees a
    where a.organisation_id = private.current_organisation_id() and a.external_id = any (external_ids)
  ))
  order by o.id
  for share;
  perform 1
  from public.attendees a
  where a.organisation_id = private.current_organisation_id() and a.external_id = any (external_ids)
  order by a.id
  for no key update;
end
$$;
grant execute on function private.lock_attendees_of_import(uuid, text[]) to scope_attendees_write;

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
grant execute on function private.refused_guest(json) to scope_attendees_write;
