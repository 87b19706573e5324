-- Reads: calls of any operations that read, by one key in one role, that reach the gateway while others are in flight, as one RPC.
-- It runs them as its caller, so the grants and policies of each hold; all see the snapshot of the one statement.

-- What runs calls of one operation with these arguments, given as they are in $1, and answers a list in their order. Arguments become
-- values as the Data API makes them. Calls that would begin after $2 are answered null.
create function private.statement_of_reads(operation text, arguments text[]) returns text
language plpgsql stable set search_path = ''
as $$
declare
  v_function pg_catalog.pg_proc;
  v_columns text;
begin
  -- Operations that read are stable, and run as their caller.
  select p.* into v_function
  from pg_catalog.pg_proc p
  where p.pronamespace = 'api'::regnamespace and p.proname = operation
    and p.provolatile = 's' and not p.prosecdef and p.proname <> 'read_calls';
  if not found then
    perform private.refuse_value('operation', 'There is no read of this name.');
  end if;

  -- Of an argument that the function lacks Postgres says so.
  select string_agg(format('%I %s', a.name, coalesce(format_type(t.type, null), 'text')), ', ') into v_columns
  from unnest(arguments) a (name)
  left join unnest(v_function.proargnames, v_function.proargtypes::oid[]) t (name, type) using (name);

  return format(
    'select array(select case when clock_timestamp() < $2 then api.%I(%s) end from %s)',
    operation,
    (select string_agg(format('%1$I => a.%1$I', a.name), ', ') from unnest(arguments) a (name)),
    coalesce('json_to_recordset($1) a (' || v_columns || ')', 'json_array_elements($1)')
  );
end
$$;
grant execute on function private.statement_of_reads to api_key;

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
    select c.call ->> 'operation' as operation, n.names, array_agg(c.place) as places, array_agg(c.call -> 'args') as args
    from json_array_elements(calls) with ordinality c (call, place),
      lateral (select array(select json_object_keys(c.call -> 'args') order by 1) as names) n
    group by 1, 2
    order by min(c.place)
  loop
    begin
      execute private.statement_of_reads(v_alike.operation, v_alike.names)
      into v_results using array_to_json(v_alike.args), v_end;
      for i in 1..cardinality(v_results) loop
        v_answers[v_alike.places[i]] := case
          when v_results[i] is null then '{}' else json_build_object('answer', v_results[i])
        end;
      end loop;
    exception when others then
      -- The calls that are refused are found one by one.
      for i in 1..cardinality(v_alike.args) loop
        begin
          execute private.statement_of_reads(v_alike.operation, v_alike.names)
          into v_results using json_build_array(v_alike.args[i]), v_end;
          v_answers[v_alike.places[i]] := case
            when v_results[1] is null then '{}' else json_build_object('answer', v_results[1])
          end;
        exception when others then
          get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
          v_answers[v_alike.places[i]] := case
            when sqlstate not like 'PT%' then '{}'
            else json_build_object('error', json_build_object(
              'code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint
            ))
          end;
        end;
      end loop;
    end;
  end loop;
  return array_to_json(v_answers);
end
$$;
comment on function api.read_calls is
  'Answers each of a list of { operation, args } with { answer }, with { error } as the Data API reports it, or with {}: it is to be called on its own, because it came too late in a list that took long, or what it met is no refusal.';
grant execute on function api.read_calls to api_key;
