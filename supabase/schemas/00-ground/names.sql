-- Names where ids are wanted: over MCP an argument that is an id also takes what the object is called, and REST takes the reference of an
-- order in the place of its id. Matches are exact, in the form of a search (private.search_form), of the caller's organisation, and of the
-- event that the same call names. What several objects are called is refused, for people choose their own names. An id is never
-- looked up as a name: nobody can take over what it stands for.

-- What objects are called, and what candidates show of them: the file names.sql of a room has those of its objects. `finds` and `shows` are
-- SQL of a row `o`. In `finds`, $1 is the organisation, $2 the event, $3 the name, $4 its form and $5 the id where it is one; each uses an
-- index. `finders` and `readers`: the scopes of which a key needs one, for it finds nothing by what it may not read. Null: every key.
create table private.object_names (
  kind text not null,
  name text not null,
  -- Called as its kind, in the plural.
  "table" text not null generated always as (regexp_replace(kind || 's', 'ys$', 'ies')) stored,
  finders public.api_scope[],
  finds text,
  readers public.api_scope[],
  shows text,
  constraint object_names_pkey primary key (kind, name)
);
comment on table private.object_names is 'Names that stand in for ids, and the fields shown of each candidate when several objects share one.';
revoke all on private.object_names from anon, authenticated, service_role;
alter table private.object_names enable row level security;

-- At most eleven that are called so in each way, the newest first. What is called so in two ways is one object. What has the form of an id is
-- an identifier: nobody takes it over by calling themselves so.
create function private.objects_called(
  kind text, name text, organisation_id uuid, event_id uuid, scopes public.api_scope[]
) returns table (id uuid, matches text)
language plpgsql stable set search_path = ''
as $$
declare
  v_id uuid := case when name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then name::uuid end;
  v_finds text := (
    select string_agg(
      format(
        -- Not by the indexes of the organisation, whatever the statistics say: each condition has its own.
        '(select o.id, %L as matches from public.%I o where %s and (o.organisation_id = $1) is true %s limit 11)',
        n.name, n."table", n.finds, case when n.kind not in ('event', 'webhook_endpoint') then 'and ($2 is null or o.event_id = $2)' end
      ),
      ' union all '
    )
    from private.object_names n
    where n.kind = replace(objects_called.kind, '_reference', '') and n.finds is not null
      and (n.finders is null or n.finders && scopes)
      and (objects_called.kind <> 'order_reference' or n.name = 'reference')
      and (v_id is null or n.name not in ('name', 'email'))
  );
begin
  if v_finds is null then
    perform private.refuse_value('names', 'There is no such kind of object.');
  end if;
  return query execute format(
    $sql$
      with found as materialized (%s)
      select distinct on (f.id) f.*
      from found f
      where $5 is null or f.matches = 'id' or not exists (select from found i where i.matches = 'id')
      order by f.id desc, array_position('{id,reference}', f.matches)
    $sql$,
    v_finds
  ) using organisation_id, event_id, name, private.search_form(name), v_id;
end
$$;

-- As a candidate shows it, to a key with these scopes.
create function private.object_shown(kind text, id uuid, scopes public.api_scope[]) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_shown jsonb;
begin
  execute (
    select format(
      'select jsonb_build_object(''object'', %L, %s) from public.%I o where o.id = $1',
      object_shown.kind, string_agg(format('%L, %s', n.name, n.shows), ', '), n."table"
    )
    from private.object_names n
    where n.kind = object_shown.kind and n.shows is not null and (n.readers is null or n.readers && scopes)
    group by n."table"
  ) into v_shown using id, scopes;
  return v_shown;
end
$$;

create function private.refuse_ambiguous(param text, candidates jsonb, more boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    422, 'ambiguous_name', 'More than one object has this name.', param,
    jsonb_strip_nulls(jsonb_build_object('candidates', candidates, 'more', case when more then true end)),
    'Ask the person which one they mean, and send its id.'
  );
end
$$;
grant execute on function private.refuse_ambiguous to scope_events_write;

-- Refuses, or answers the one object that is called so. `by_id`: what cannot be undone takes people and their orders by nothing that somebody
-- chose, for it could be somebody else's. Security definer: under row level security no look-up by name uses an index.
create function private.resolve_name(kind text, name text, event_id uuid, param text, by_id boolean default false) returns uuid
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 10;
  v_kind constant text := replace(kind, '_reference', '');
  v_role constant text := private.claims() ->> 'role';
  v_scopes constant public.api_scope[] :=
    coalesce(private.current_scopes(), case when v_role like 'scope\_%' then array[replace(replace(v_role, 'scope_', ''), '_', ':')::public.api_scope] end, '{}');
  v_ids uuid[];
  v_matches text[];
  v_candidates jsonb;
begin
  select array_agg(f.id), array_agg(f.matches) into v_ids, v_matches
  from private.objects_called(kind, btrim(name), private.current_organisation_id(), event_id, v_scopes) f;
  if v_ids is null then
    perform private.refuse(404, 'not_found', 'No object that this key can look up has this name.', param);
  elsif cardinality(v_ids) = 1 and not (by_id and v_matches[1] not in ('id', 'reference')) then
    return v_ids[1];
  end if;
  v_candidates := (
    select jsonb_agg(private.object_shown(v_kind, f.id, v_scopes) || jsonb_build_object('matches', f.matches) order by f.place)
    from unnest(v_ids[:v_most], v_matches[:v_most]) with ordinality f (id, matches, place)
  );
  if cardinality(v_ids) > 1 then
    perform private.refuse_ambiguous(param, v_candidates, cardinality(v_ids) > v_most);
  end if;
  perform private.refuse(
    422, 'id_needed', 'Irreversible operations accept an id or an order reference, not a name.', param,
    jsonb_build_object('candidates', v_candidates),
    'Confirm the candidate with the person, and send its id.'
  );
end
$$;
grant execute on function private.resolve_name to api_key;

-- What calls an operation with each of the arguments in the list $1, and answers a list in their order. Arguments become values as the
-- Data API makes them. Calls that would begin after $2 are answered null.
create function private.statement_of_calls(operation text, arguments text[], reads boolean default false) returns text
language plpgsql stable set search_path = ''
as $$
declare
  v_function pg_catalog.pg_proc;
  v_columns text;
begin
  -- Operations run as their caller; those that write take an idempotency key.
  select p.* into v_function
  from pg_catalog.pg_proc p
  where p.pronamespace = 'api'::regnamespace and p.proname = operation and not p.prosecdef
    and (p.provolatile = 's' and p.proname <> 'read_calls' or not reads and 'idempotency_key' = any (p.proargnames));
  if not found then
    perform private.refuse_value('operation', 'There is no operation with this name.');
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
grant execute on function private.statement_of_calls to api_key;

-- A call of an operation whose arguments name objects: each of `names` is { param, kind, name, id, judged, by_id }, where `id` stands in `args`
-- in place of the id that is found. One of a list that is `judged` item by item stays where nothing is found: its item is refused for it. It
-- runs as its caller, so the grants and policies of the operation hold. An idempotency key is answered before names are looked up: they may
-- mean something else since.
create function api.call_by_names(operation text, names jsonb, args json) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_answer json;
  v_answers json[];
  v_args text := args;
  v_event_id uuid;
  v_name record;
  v_id uuid;
begin
  if jsonb_array_length(names) not between 1 and 2000 then
    perform private.refuse_value('names', 'A call has 1 to 2000 names.');
  end if;
  v_answer := private.replay_outcome(args ->> 'idempotency_key', args ->> 'request_fingerprint');
  if v_answer is not null then
    return v_answer;
  end if;

  -- The event first, within which the others are looked up.
  for v_name in
    select n.*, n.param in ('event', 'event_id') as is_event
    from rows from (jsonb_to_recordset(names) as (param text, kind text, name text, id text, judged boolean, by_id boolean))
      with ordinality n (param, kind, name, id, judged, by_id, place)
    order by is_event desc, n.place
  loop
    if v_event_id is null and not v_name.is_event then
      v_event_id := args ->> 'event_id';
    end if;
    begin
      v_id := private.resolve_name(v_name.kind, v_name.name, v_event_id, v_name.param, v_name.by_id is true);
    exception when sqlstate 'PT404' or sqlstate 'PT422' then
      if v_name.judged is not true then
        raise;
      end if;
      continue;
    end;
    if v_name.is_event then
      v_event_id := v_id;
    end if;
    v_args := replace(v_args, '"' || v_name.id || '"', '"' || v_id || '"');
  end loop;

  execute private.statement_of_calls(operation, array(select json_object_keys(args)))
  into v_answers using json_build_array(v_args::json), timestamptz 'infinity';
  return v_answers[1];
end
$$;
comment on function api.call_by_names is
  'Resolves the names { param, kind, name, id, by_id } to ids in args, then calls the operation as its caller. 404 not_found; 422 ambiguous_name with candidates, id_needed.';
grant execute on function api.call_by_names to api_key;
