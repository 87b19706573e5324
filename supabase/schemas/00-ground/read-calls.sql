-- Reads: calls of any operations that read, by one key in one role, that reach the gateway while others are in flight, as one RPC.
-- It runs them as its caller, so the grants and policies of each hold; all see the snapshot of the one statement.

-- The Data API gives it the time of its setting, not that of the role.
create function api.read_calls(calls json) returns json
language plpgsql stable set search_path = '' set statement_timeout = '1s'
as $$
declare
  -- Another call begins only while a fraction of that is used up.
  v_end timestamptz := statement_timestamp() + interval '0.2 s';
  v_answers json[];
  v_alike record;
  v_results json[];
  v_message text;
  v_detail text;
  v_hint text;
begin
  if json_array_length(calls) not between 1 and 100 then
    perform private.refuse_value('calls', 'A batch has 1 to 100 calls.');
  end if;

  -- One statement for all calls of an operation with the same arguments, because each is planned.
  for v_alike in
    select c.call ->> 'operation' as operation, n.names, array_agg(c.place) as places, array_agg(c.call) as calls
    from json_array_elements(calls) with ordinality c (call, place),
      lateral (select array(select json_object_keys(c.call -> 'args') order by 1) as names) n
    group by 1, 2
    order by min(c.place)
  loop
    begin
      execute private.statement_of_calls(v_alike.operation, v_alike.names, reads => true)
      into v_results using (select json_agg(c -> 'args') from unnest(v_alike.calls) c), v_end;
      for i in 1..cardinality(v_results) loop
        v_answers[v_alike.places[i]] := case
          when v_results[i] is null then '{}' else json_build_object('answer', v_results[i])
        end;
      end loop;
    exception when others then
      get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
      for i in 1..cardinality(v_alike.places) loop
        v_answers[v_alike.places[i]] := case
          -- The calls that are refused are found one by one.
          when cardinality(v_alike.places) > 1 then api.read_calls(json_build_array(v_alike.calls[i])) -> 0
          when sqlstate not like 'PT%' then '{}'
          else json_build_object('error', json_build_object('code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint))
        end;
      end loop;
    end;
  end loop;
  return array_to_json(v_answers);
end
$$;
comment on function api.read_calls is
  'Calls each { operation, args } of a list and answers { answer }, { error } as the Data API reports it, or {}. {}: call it alone, because the list ran out of time or the error was not a refusal.';
grant execute on function api.read_calls to api_key;
