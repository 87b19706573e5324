-- Names where ids are wanted: over MCP an argument that is an id also takes what the object is called, and REST takes the reference of an
-- order in the place of its id. Matches are exact, in the form of a search (private.search_form), of the caller's organisation, and of the
-- event that the same call names. What several objects are called is refused, for people choose their own names. An id is never
-- looked up as a name: nobody can take over what it stands for.
--
-- The file names.sql of a room has the function that finds its objects, private.find_<kind>. It is called by private.resolve_name alone,
-- which is security definer, because under row level security no look-up by name uses an index. So each compares the organisation, and
-- gives only what the scopes of the key let it read: without them, it finds nothing by what a person chose, and shows ids.

-- `id` is the name where it is one. `nearest`: what resembles the name, because nothing is called so.
create type private.name_query as (
  organisation_id uuid,
  scopes public.api_scope[],
  name text,
  form text,
  id uuid,
  event_id uuid,
  nearest boolean
);

-- `matches` is what the name is of the object: its id, reference, external_id, name, … `shown` tells it apart from others.
create type private.candidate as (id uuid, matches text, likeness real, shown jsonb);

-- A pattern for search_text of attendees (60-attendees/table.sql), which begins with their name and a space; null without any letter or
-- digit, for which the index of trigrams would read all there are.
create function private.name_pattern(form text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  if form !~ '[^ -/:-@[-`{-~]' then
    return null;
  end if;
  return regexp_replace(form, '([\\%_])', '\\\1', 'g') || ' %';
end
$$;

-- Patterns for private.search_attendees, of what resembles a name: halves of its longest words, one of which is right in most misspelt ones.
-- Of an e-mail address what stands before the @, for many people share the rest.
create function private.near_patterns(form text) returns text[]
language plpgsql immutable set search_path = ''
as $$
begin
  return array(
    select distinct h.half
    from (
      select w.word from regexp_split_to_table(split_part(form, '@', 1), '[^[:alnum:]]+') w (word) where length(w.word) >= 3 order by length(w.word) desc, w.word limit 3
    ) w
    cross join lateral (
      values (left(w.word, greatest(3, length(w.word) / 2))), (right(w.word, greatest(3, length(w.word) / 2)))
    ) h (half)
  );
end
$$;

-- What is alike enough to be shown as the nearest.
create function private.is_near(likeness real) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return likeness >= 0.2;
end
$$;

create function private.refuse_ambiguous(param text, candidates jsonb, more boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    422, 'ambiguous_name', 'Several objects are called so.', param,
    jsonb_strip_nulls(jsonb_build_object('candidates', candidates, 'more', case when more then true end)),
    'Send the id of the one that is meant; ask the person which it is.'
  );
end
$$;
grant execute on function private.refuse_ambiguous to scope_events_write;

-- Refuses, or answers the one object that is called so. Security definer: see above.
create function private.resolve_name(kind text, name text, event_id uuid, param text) returns private.candidate
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 10;
  v_role text := private.claims() ->> 'role';
  v_find text;
  v_query private.name_query := row(
    private.current_organisation_id(),
    case
      when kind = 'order_reference' then '{}'
      else coalesce(private.current_scopes(), case when v_role like 'scope\_%' then array[private.scope_of_role(v_role)] end, '{}')
    end,
    btrim(name),
    private.search_form(btrim(name)),
    case when btrim(name) ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then btrim(name)::uuid end,
    resolve_name.event_id,
    false
  );
  v_found private.candidate[];
  v_by_id boolean;
begin
  if kind not in (
    'event', 'ticket_type', 'promo_code', 'order', 'order_reference', 'attendee', 'waiting_list_entry', 'check_in_point', 'webhook_endpoint'
  ) then
    perform private.refuse_value('names', 'There is no such kind of object.');
  end if;
  v_find := format('select array(select row(f.*)::private.candidate from private.%I($1) f)', 'find_' || replace(kind, '_reference', ''));
  execute v_find into v_found using v_query;
  v_by_id := exists (select from unnest(v_found) f where f.matches = 'id');
  -- Called so in two ways it is one object; an id or a reference names it most surely.
  v_found := array(
    select row(o.*)::private.candidate
    from (
      select distinct on (f.id) f.*
      from unnest(v_found) f
      where (kind <> 'order_reference' or f.matches = 'reference')
        -- What has the form of an id is an identifier: nobody takes it over by calling themselves so.
        and (v_query.id is null or f.matches = 'id' or not v_by_id and f.matches not in ('name', 'email'))
      order by f.id desc, array_position('{id,reference}', f.matches)
    ) o
    order by o.id desc
  );

  if cardinality(v_found) = 0 then
    v_query.nearest := true;
    execute v_find into v_found using v_query;
    perform private.refuse(
      404, 'not_found', 'Nothing that this key may look up is called so.', param,
      case when cardinality(v_found) > 0 then jsonb_build_object('nearest', (
        select jsonb_agg(f.shown order by f.likeness desc, f.id desc) from unnest(v_found) f
      )) end
    );
  elsif cardinality(v_found) > 1 then
    perform private.refuse_ambiguous(
      param,
      (select jsonb_agg(f.shown || jsonb_build_object('matches', f.matches)) from unnest(v_found[:v_most]) f),
      cardinality(v_found) > v_most
    );
  end if;
  return v_found[1];
end
$$;
grant execute on function private.resolve_name to api_key;

-- For operations that cannot be undone, on people and their orders: whoever can choose a name could choose somebody else's.
create function private.assert_not_by_name(param text) returns void
language plpgsql stable set search_path = ''
as $$
declare
  v_candidate jsonb := nullif(current_setting('usher.named', true), '')::jsonb -> param;
begin
  if v_candidate is not null then
    perform private.refuse(
      422, 'id_needed', 'What cannot be undone takes an id, or the reference of an order.', param,
      jsonb_build_object('candidates', jsonb_build_array(v_candidate)),
      'Make sure with the person that the candidate is meant, and send its id.'
    );
  end if;
end
$$;
grant execute on function private.assert_not_by_name to api_key;

-- What calls an operation with these arguments, given as they are in $1. Arguments become values as the Data API makes them.
create function private.statement_of_call(operation text, arguments text[]) returns text
language plpgsql stable set search_path = ''
as $$
declare
  v_function pg_catalog.pg_proc;
begin
  -- Operations run as their caller; those that write take an idempotency key.
  select p.* into v_function
  from pg_catalog.pg_proc p
  where p.pronamespace = 'api'::regnamespace and p.proname = operation and not p.prosecdef
    and (p.provolatile = 's' and p.proname <> 'read_calls' or 'idempotency_key' = any (p.proargnames));
  if not found then
    perform private.refuse_value('operation', 'There is no operation of this name.');
  end if;
  return format(
    'select api.%I(%s) from json_to_record($1) a (%s)',
    operation,
    (select string_agg(format('%1$I => a.%1$I', a.name), ', ') from unnest(arguments) a (name)),
    -- Of an argument that the function lacks Postgres says so.
    (
      select string_agg(format('%I %s', a.name, coalesce(format_type(t.type, null), 'text')), ', ')
      from unnest(arguments) a (name)
      left join unnest(v_function.proargnames, v_function.proargtypes::oid[]) t (name, type) using (name)
    )
  );
end
$$;
grant execute on function private.statement_of_call to api_key;

-- A call of an operation whose arguments name objects: each of `names` is { param, kind, name, id, judged }, where `id` stands in `args` in
-- place of the id that is found. One of a list that is `judged` item by item stays where nothing is found: its item is refused for it. It runs as its caller, so the grants and policies of the operation hold. An idempotency key is answered before
-- names are looked up: they may mean something else since.
create function api.call_by_names(operation text, names jsonb, args json) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_answer json;
  v_args text := args;
  v_event_id uuid;
  v_name record;
  v_found private.candidate;
  v_chosen jsonb := '{}';
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
    select n.name ->> 'param' as param, n.name ->> 'kind' as kind, n.name ->> 'name' as name, n.name ->> 'id' as id,
      coalesce((n.name ->> 'judged')::boolean, false) as judged
    from jsonb_array_elements(names) with ordinality n (name, place)
    order by (n.name ->> 'param') in ('event', 'event_id') desc, n.place
  loop
    if v_event_id is null and v_name.param not in ('event', 'event_id') then
      v_event_id := args ->> 'event_id';
    end if;
    begin
      v_found := private.resolve_name(v_name.kind, v_name.name, v_event_id, v_name.param);
    exception when sqlstate 'PT404' or sqlstate 'PT422' then
      if not v_name.judged then
        raise;
      end if;
      continue;
    end;
    if v_name.param in ('event', 'event_id') then
      v_event_id := v_found.id;
    end if;
    if v_found.matches not in ('id', 'reference') then
      v_chosen := v_chosen || jsonb_build_object(v_name.param, v_found.shown || jsonb_build_object('matches', v_found.matches));
    end if;
    v_args := replace(v_args, '"' || v_name.id || '"', '"' || v_found.id || '"');
  end loop;
  perform set_config('usher.named', v_chosen::text, true);

  execute private.statement_of_call(operation, array(select json_object_keys(args))) into v_answer using v_args::json;
  return v_answer;
end
$$;
comment on function api.call_by_names is
  'Calls an operation, as its caller, with the ids of what { param, kind, name, id } name in place of each id in args. 404 not_found with the nearest; 422 ambiguous_name with candidates, id_needed.';
grant execute on function api.call_by_names to api_key;
