-- Batches: calls of one operation by one key that reach the gateway while others are in flight, as one RPC. Each gets the outcome,
-- the idempotency record and the error that a call of its own would have given.

-- The calls in their order, their idempotency keys locked in one order for all batches.
create function private.calls_of_batch(calls jsonb) returns jsonb[]
language plpgsql volatile set search_path = ''
as $$
begin
  if jsonb_array_length(calls) not between 1 and 100 then
    perform private.refuse_value('calls', 'A batch has 1 to 100 calls.');
  end if;
  perform private.lock_idempotency_key(c ->> 'idempotency_key')
  from jsonb_array_elements(calls) c
  where c ? 'idempotency_key'
  order by c ->> 'idempotency_key';
  return array(select c.call from jsonb_array_elements(calls) with ordinality c (call, place) order by c.place);
end
$$;
grant execute on function private.calls_of_batch(jsonb) to api_key;

-- Answers each call with { outcome }, or { error } as the Data API reports it, or {}: the call is to be sent on its own, because
-- what refused it may be another call of the batch, or passing. `operation` names a function in schema private that answers an
-- outcome for each call, or raises. The batch is tried as a whole; when something in it is refused, calls are tried one by one, and
-- after four successes by twice as many after each. So a call is tried twice where many are refused, as once tickets are sold out, and
-- hardly three times where one is.
create function private.answer_calls(operation text, calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_answers json[] := '{}';
  v_size integer := cardinality(calls);
  v_successes integer := 0;
  v_tried jsonb[];
  v_outcomes json[];
  v_message text;
  v_detail text;
  v_hint text;
begin
  while cardinality(v_answers) < cardinality(calls) loop
    v_tried := calls[cardinality(v_answers) + 1:cardinality(v_answers) + v_size];
    begin
      set constraints all deferred;
      execute format('select private.%I($1)', operation) into v_outcomes using v_tried;
      -- What deferred triggers do, or refuse, is part of the attempt.
      set constraints all immediate;
      v_answers := v_answers || array(
        select json_build_object('outcome', o.outcome) from unnest(v_outcomes) with ordinality o (outcome, place) order by o.place
      );
      v_successes := v_successes + 1;
      if v_successes >= 4 then
        v_size := 2 * v_size;
      end if;
    exception
      when serialization_failure or deadlock_detected or lock_not_available then
        raise;
      when others then
        v_size := 1;
        v_successes := 0;
        if cardinality(v_tried) = 1 then
          get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
          -- refuse_taken leaves out the id of an object of the same transaction, which here may be that of another call.
          v_answers := v_answers || case
            when sqlstate not like 'PT%' or v_detail::jsonb ->> 'code' = 'already_exists' and v_detail::jsonb -> 'details' is null
              then '{}'::json
            else json_build_object('error', json_build_object(
              'code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint
            ))
          end;
        end if;
    end;
  end loop;
  return v_answers;
end
$$;
grant execute on function private.answer_calls(text, jsonb[]) to api_key;

-- The operation's function of the same name in the plural. Locks that would otherwise be taken call by call are taken here, in one
-- order for all batches.
create function api.register_attendees(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_lock_key integer;
begin
  for v_lock_key in
    select distinct i.lock_key
    from unnest(v_calls) c
    cross join lateral private.external_ids_of(
      private.current_organisation_id(), c ->> 'external_id', private.guests_of_call(c)
    ) i
    where c ? 'external_id' or c ? 'attendees'
    order by i.lock_key
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
  return to_json(private.answer_calls('register_attendee_calls', v_calls));
end
$$;
comment on function api.register_attendees(jsonb) is
  'Calls of register_attendee by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.register_attendees(jsonb) to scope_attendees_write;

-- A single guest is given by the fields of the call itself.
create function private.guests_of_call(call jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return coalesce(call -> 'attendees', jsonb_build_array(call));
end
$$;
grant execute on function private.guests_of_call(jsonb) to scope_attendees_write;

-- Raises if anything is refused, without saying which call it was: a call that is alone gets the error of its operation.
create function private.register_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_registrations private.registration[] := array(
    select jsonb_populate_record(
      null::private.registration,
      c.call || jsonb_build_object('order_id', private.uuid_v7(), 'guests', private.guests_of_call(c.call))
    )
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
  v_one private.registration := v_registrations[1];
  v_orders json[];
begin
  if cardinality(calls) = 1 then
    return array[api.register_attendee(
      v_one.event_id, v_one.ticket_type_id, v_one.name, v_one.email, v_one.company, calls[1] -> 'attendees', v_one.payment_method,
      v_one.promo_code, v_one.send_email, v_one.external_id, v_one.metadata, v_one.idempotency_key, v_one.request_fingerprint
    )];
  end if;

  -- A key that is sent twice, an outcome to replay, and a group of the wrong size are for calls that are alone.
  if (
    select count(r.idempotency_key) <> count(distinct r.idempotency_key)
      or bool_or(private.replay_outcome(r.idempotency_key, r.request_fingerprint) is not null)
      or bool_or(jsonb_array_length(r.guests) not between 1 and 50)
    from unnest(v_registrations) r
  ) or exists (
    select from unnest(v_registrations) r
    cross join lateral jsonb_array_elements(r.guests) g
    where not exists (
      select from public.ticket_types t
      where t.id = coalesce((g ->> 'ticket_type_id')::uuid, r.ticket_type_id) and t.event_id = r.event_id
    )
  ) then
    raise exception 'divide';
  end if;

  v_orders := private.add_registrations(v_registrations);
  return array(
    select private.record_outcome(
      r.idempotency_key, r.request_fingerprint, json_build_object('status', 201, 'data', v_orders[r.ordinality])
    )
    from unnest(v_registrations) with ordinality r
    order by r.ordinality
  );
end
$$;
grant execute on function private.register_attendee_calls(jsonb[]) to scope_attendees_write;

create function api.check_in_many(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_event_id uuid;
begin
  -- As check_in_batch does: tickets are locked in one order before the first is judged.
  for v_event_id in select distinct (c ->> 'event_id')::uuid from unnest(v_calls) c order by 1 loop
    perform private.lock_orders_of(v_event_id, v_calls);
  end loop;
  return to_json(private.answer_calls('check_in_calls', v_calls));
end
$$;
comment on function api.check_in_many(jsonb) is
  'Calls of check_in by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.check_in_many(jsonb) to scope_checkin_write;

-- The arguments of a call of check_in, with the id of its check-in.
create type private.scan as (
  id uuid,
  event_id uuid,
  code text,
  attendee_id uuid,
  device text,
  check_in_point_id uuid,
  direction public.check_in_direction,
  idempotency_key text,
  request_fingerprint text
);

-- Raises as register_attendee_calls does. All scans are one statement, judged in the order of the calls.
create function private.check_in_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_scans private.scan[] := array(
    select jsonb_populate_record(null::private.scan, c.call || jsonb_build_object('id', private.uuid_v7()))
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
  v_one private.scan := v_scans[1];
  v_check_ins public.check_ins[];
begin
  if cardinality(calls) = 1 then
    return array[api.check_in(
      v_one.event_id, v_one.code, v_one.attendee_id, v_one.device, v_one.check_in_point_id, v_one.direction, v_one.idempotency_key,
      v_one.request_fingerprint
    )];
  end if;

  -- A key that is sent twice, an outcome to replay, and an unknown event are for calls that are alone.
  if (
    select count(s.idempotency_key) <> count(distinct s.idempotency_key)
      or bool_or(private.replay_outcome(s.idempotency_key, s.request_fingerprint) is not null)
    from unnest(v_scans) s
  ) or exists (
    select from (select distinct s.event_id from unnest(v_scans) s) s
    where not exists (select from public.events e where e.id = s.event_id)
  ) then
    raise exception 'divide';
  end if;

  with added as (
    insert into public.check_ins (id, event_id, check_in_point_id, code, attendee_id, direction, device)
    select s.id, s.event_id, s.check_in_point_id, s.code, s.attendee_id, coalesce(s.direction, 'entry'), s.device
    from unnest(v_scans) with ordinality s
    order by s.ordinality
    returning *
  )
  select array_agg(row(a.*)::public.check_ins) into v_check_ins from added a;

  -- A ticket that is rejected and then let in was not in yet when it was rejected, which its attendee, read below, does not show.
  if exists (
    select from unnest(v_check_ins) with ordinality r
    join unnest(v_check_ins) with ordinality c on c.attendee_id = r.attendee_id and c.ordinality > r.ordinality
    where r.result = 'rejected' and c.result = 'accepted'
  ) then
    raise exception 'divide';
  end if;

  return array(
    select private.record_outcome(
      s.idempotency_key, s.request_fingerprint, private.check_in_outcome(row(c.*)::public.check_ins)
    )
    from unnest(v_scans) with ordinality s
    join unnest(v_check_ins) c on c.id = s.id
    order by s.ordinality
  );
end
$$;
grant execute on function private.check_in_calls(jsonb[]) to scope_checkin_write;
