-- After all functions of api and private: those with a statement that has a plan.

-- Plans are cached for the life of a connection. One that reads the whole of a table while it is small would still do so when it
-- has a million rows. Rows are read by key, so no plan gets better by knowing the values either; without a generic one each connection plans
-- each statement five times, and some at every call. Settings of authenticator would do, but reach every request of the project.
do $$
declare
  v_function record;
begin
  for v_function in
    select p.oid::regprocedure as signature, f.setting
    from pg_catalog.pg_proc p
    cross join (values ('enable_seqscan', 'off'), ('plan_cache_mode', 'force_generic_plan')) s (name, setting_value),
      lateral (select pg_catalog.format('%I = %L', s.name, s.setting_value) as setting) f
    where p.pronamespace in ('api'::regnamespace, 'private'::regnamespace)
      and p.prosrc ~* '\m(from|insert|update|execute)\M'
      and not exists (select from unnest(p.proconfig) c (setting) where starts_with(c.setting, s.name || '='))
    order by p.proname, p.oid, s.name
  loop
    execute pg_catalog.format('alter function %s set %s', v_function.signature, v_function.setting);
  end loop;
end
$$;
