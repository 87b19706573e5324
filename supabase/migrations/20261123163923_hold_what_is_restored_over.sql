-- hold what is restored over. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

alter table private.installations
  drop constraint installations_is_one_row;

alter table private.installations
  drop constraint installations_pkey;

-- It was true in the one row that there is.
alter table private.installations
  -- squawk-ignore ban-drop-column
  drop column is_only;

create or replace function api.announce_installation()
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_names text[] := private.announced_names();
  v_system_identifier bigint := (select c.system_identifier from pg_control_system() c);
begin
  if v_names is null then
    return json_build_object('held', private.is_held());
  end if;
  if not exists (select from private.installations) then
    -- Of two that are the first, one waits, and finds the row of the other.
    lock table private.installations in share row exclusive mode;
    insert into private.installations (system_identifier, names)
    select v_system_identifier, v_names
    where not exists (select from private.installations);
  end if;

  update private.installations i
  set newcomers = array(select distinct n.name from unnest(i.newcomers || v_names) n (name) limit 50)
  where not v_names <@ i.newcomers and not private.is_at_home(i, v_names);
  -- The names of a file system that does not keep them would become ever more.
  update private.installations i
  set system_identifier = v_system_identifier,
    newcomers = '{}',
    names = array(
      select n.name
      from unnest(v_names || i.newcomers || i.names) with ordinality n (name, place)
      group by n.name order by min(n.place) limit 50
    )
  where (i.system_identifier <> v_system_identifier or i.newcomers <> '{}' or not v_names <@ i.names) and private.is_at_home(i, v_names);
  return json_build_object('held', private.is_held());
end
$$;

create or replace function private.is_held()
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_names constant text[] := private.announced_names();
begin
  return exists (select from private.installations i where not private.is_at_home(i, v_names));
end
$$;

alter table private.installations
  -- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
  add constraint installations_pkey primary key (system_identifier, created_at);
