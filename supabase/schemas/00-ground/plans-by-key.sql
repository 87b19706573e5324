-- After all functions of api and private: how their statements are planned, in one place, by pattern of name; no function says so itself.

-- Plans are cached for the life of a connection. One that reads the whole of a table while it is small would still do so when it
-- has a million rows. Rows are read by key, so no plan gets better by knowing the values either; without a generic one each connection plans
-- each statement five times, and some at every call. What is switched off costs so much to the planner that it would compile the rest.
-- Settings of authenticator would do, but reach every request of the project, and a plan is shared by the roles of a connection.
do $$
declare
  v_function record;
begin
  for v_function in
    select p.oid::regprocedure as signature, s.name, (array_agg(s.value order by s.place desc))[1] as value
    from pg_catalog.pg_proc p
    join (
      values
        (1, '.', 'enable_seqscan', 'off'),
        (2, '.', 'jit', 'off'),
        (3, '.', 'plan_cache_mode', 'force_generic_plan'),
        -- Pages end at their limit, in the order of an index; so does the look for the same guest among those of the last ten minutes, which by
        -- primary key would read all of these for each guest (half the rate of an on-sale, until the next analyze).
        (4, '^page_of_|^rows_of_address$|^outcomes_of_registrations$', 'enable_sort', 'off'),
        (5, '^page_of_|^rows_of_address$|^outcomes_of_registrations$', 'enable_incremental_sort', 'off'),
        -- What the courier asks all the time ends at the first row, or after a batch of them, in the order of an index.
        (6, '^(due|enqueue|poll|organisations_with|endpoints_with|webhooks_by|claim|settle)_|^purge$', 'enable_bitmapscan', 'off'),
        (7, '^(due|enqueue|poll|organisations_with|endpoints_with|webhooks_by|claim)_|^purge$', 'enable_sort', 'off'),
        (8, '^(poll|organisations_with|endpoints_with)_', 'enable_incremental_sort', 'off'),
        (9, '^settle_|^erase_|^purge$', 'enable_hashjoin', 'off'),
        (10, '^settle_|^erase_|^purge$', 'enable_mergejoin', 'off'),
        -- A claim reads as many rows as its values say.
        (11, '^(claim|due|webhooks_by)_', 'plan_cache_mode', 'force_custom_plan'),
        -- It calls what is due, and what each shows, in an order that no index has.
        (12, '^claim_emails$', 'enable_sort', 'on'),
        -- One row or the 25,000 of a cancelled event, by one plan.
        (13, '^tg_attendees__notify_update$|^tg__audit$', 'enable_nestloop', 'off')
    ) s (place, names, name, value) on p.proname ~ s.names
    where p.pronamespace in ('api'::regnamespace, 'private'::regnamespace) and p.prosrc ~* '\m(from|insert|update|execute)\M'
    group by p.oid, s.name
    order by p.proname, p.oid, s.name
  loop
    execute pg_catalog.format('alter function %s set %I = %L', v_function.signature, v_function.name, v_function.value);
  end loop;
end
$$;
