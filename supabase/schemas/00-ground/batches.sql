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
grant execute on function private.calls_of_batch to api_key;

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
  v_state text;
  v_constraint text;
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
          get stacked diagnostics
            v_state = returned_sqlstate, v_constraint = constraint_name, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
          begin
            perform private.refuse_broken(v_constraint) where v_state = '23514';
          exception when sqlstate 'PT422' then
            get stacked diagnostics
              v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
          end;
          -- refuse_taken leaves out the id of an object of the same transaction, which here may be that of another call.
          v_answers := v_answers || case
            when v_state not like 'PT%' or v_detail::jsonb ->> 'code' = 'already_exists' and v_detail::jsonb -> 'details' is null
              then '{}'::json
            else json_build_object('error', json_build_object(
              'code', v_state, 'message', v_message, 'details', v_detail, 'hint', v_hint
            ))
          end;
        end if;
    end;
  end loop;
  return v_answers;
end
$$;
grant execute on function private.answer_calls to api_key;
