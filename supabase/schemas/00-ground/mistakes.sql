-- Mistakes of people who write rows: in Studio, in SQL, or signed in. What a constraint would refuse in the words of Postgres, with the
-- row, is refused before it in a sentence that names the column, and takes what is wanted from its comment. Everything is read from the
-- catalogue: a new column or constraint needs nothing here. API keys do not pay for it, nor do rows that triggers write
-- (private.is_typed); what their operations do not check before is left to the constraints.
-- test/database/mistakes-in-studio.test.ts types every mistake into every column.

-- A value that is wanted and not there.
create function private.refuse_empty("table" regclass, "column" name) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_what text := col_description(
    "table", (select a.attnum from pg_catalog.pg_attribute a where a.attrelid = "table" and a.attname = "column")
  );
  v_noun text := replace(regexp_replace("column", '_id$', ''), '_', ' ');
begin
  perform private.refuse_value(
    "column",
    case
      when "column" like '%\_id' then
        format('Choose %s %s: %s cannot be empty.', case when v_noun ~ '^[aeio]' then 'an' else 'a' end, v_noun, "column")
      else format('Fill in %s: %s', "column", v_what)
    end,
    v_what
  );
end
$$;
grant execute on function private.refuse_empty to authenticated;

create function private.refuse_other_organisation() returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_value(
    'organisation_id', 'organisation_id differs from the organisation of the event.', 'Leave organisation_id empty.'
  );
end
$$;
grant execute on function private.refuse_other_organisation to api_key, authenticated;

-- The values of a row, as JSON, that were written with blanks around them, without these; null where nothing else was written. A blank at the
-- end is not seen, and by a name with one nothing is found. Of texts of several lines only those that are blank. What is blank is what REST
-- trims, which is JavaScript's; a text of which nothing is seen is.
create function private.trimmed_values("row" jsonb, old_row jsonb default null) returns jsonb
language plpgsql immutable set search_path = ''
as $$
declare
  v_blanks constant text := '[ \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+';
begin
  return (
    select coalesce(jsonb_object_agg(e.key, nullif(t.trimmed, '')), '{}')
    from jsonb_each_text("row") e
    cross join lateral (
      select case when private.person_form(e.value) = '' then '' else regexp_replace(e.value, '^' || v_blanks || '|' || v_blanks || '$', '', 'g') end as trimmed
    ) t
    where (t.trimmed = '' or t.trimmed <> e.value and e.key <> all ('{description,payment_instructions,seller_details,tax_note,last_response_body}'))
      and "row" -> e.key is distinct from old_row -> e.key
  );
end
$$;
grant execute on function private.trimmed_values to authenticated;

-- Before the guards, and for every row, however many a transaction writes. A cleared cell of text is empty, however it is sent, and blanks
-- around a text are no part of it. Arguments: the columns that a new row cannot do without and that no trigger fills in.
create function private.tg__take_blank_as_empty() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_new jsonb := to_jsonb(new);
  v_old jsonb := to_jsonb(old);
  v_trimmed jsonb := private.trimmed_values(v_new, v_old);
  v_column name;
begin
  if v_trimmed <> '{}' then
    new := jsonb_populate_record(new, v_trimmed);
    v_new := v_new || v_trimmed;
  end if;
  -- Which columns are times is looked up where a value is infinite, or written with another year than most.
  if v_new::text ~ '": "(-?infinity"|\d{5,}-|9999-|(0\d|1[0-8])\d\d-|1900-|[^"]* BC")' and pg_stat_get_xact_tuples_inserted(tg_relid) + pg_stat_get_xact_tuples_updated(tg_relid) < 200 then
    for v_column in
      select a.attname
      from pg_catalog.pg_attribute a
      where a.attrelid = tg_relid and a.attnum > 0 and v_new -> a.attname is distinct from v_old -> a.attname
        and a.atttypid = 'timestamptz'::regtype
        and (v_new ->> a.attname)::timestamptz not between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    loop
      perform private.refuse_value(v_column, format('The time in %s must be between the years 1900 and 9999.', v_column), "row" => v_new);
    end loop;
  end if;
  if tg_op = 'INSERT' then
    foreach v_column in array coalesce(tg_argv, '{}') loop
      if v_new ->> v_column is null then
        perform private.refuse_empty(tg_relid, v_column);
      end if;
    end loop;
  end if;
  return new;
end
$$;

-- A sentence, and the hint behind it.
create function private.sentences(text text) returns text[]
language plpgsql immutable strict set search_path = ''
as $$ begin return regexp_match(text, '^(.*?[.])(?: (.*))?$'); end $$;
grant execute on function private.sentences to api_key, authenticated;

-- The rule that a check constraint states: its comment, which is a sentence and perhaps a hint behind it, and the column that it is about,
-- with which the name of the constraint begins. Null: it has no comment.
create function private.rule_of("constraint" name, out param name, out message text, out hint text)
language plpgsql stable set search_path = ''
as $$
begin
  select a.attname, s.parts[1], s.parts[2]
  into param, message, hint
  from pg_catalog.pg_constraint c
  join pg_catalog.pg_class t on t.oid = c.conrelid
  join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and starts_with(c.conname || '_', t.relname || '_' || a.attname || '_')
  cross join private.sentences(obj_description(c.oid, 'pg_constraint')) s (parts)
  where c.conname = rule_of."constraint" and c.connamespace = 'public'::regnamespace and c.contype = 'c' and s.parts is not null
  order by length(a.attname) desc
  limit 1;
end
$$;
grant execute on function private.rule_of to api_key, authenticated;

-- For whoever caught a check violation.
create function private.refuse_broken("constraint" name, "row" jsonb default null) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_rule record := private.rule_of("constraint");
begin
  if v_rule.message is not null then
    perform private.refuse_value(v_rule.param, v_rule.message, v_rule.hint, "row");
  end if;
end
$$;
grant execute on function private.refuse_broken to api_key, authenticated;

-- The gateway asks it for the sentence of the constraint that a call broke.
create function api.explain_rule("constraint" text) returns void
language plpgsql stable set search_path = ''
as $$ begin perform private.refuse_broken("constraint"::name); end $$;
comment on function api.explain_rule is 'Refuses with the sentence of a check constraint, as a call that broke it is to be refused. Answers nothing for one that has none.';
grant execute on function api.explain_rule to api_key;

-- Which of these conditions a row breaks first.
create function private.first_broken("table" regclass, conditions text[], "row" jsonb) returns integer
language plpgsql stable set search_path = ''
as $$
declare
  v_broken integer;
begin
  execute format(
    'select array_position(array[%s]::boolean[], false) from jsonb_populate_record(null::%s, $1) as %I',
    array_to_string(conditions, ', '), "table", split_part("table"::text, '.', 2)
  ) into v_broken using "row";
  return v_broken;
end
$$;
grant execute on function private.first_broken to authenticated;

-- Refuses a row that breaks a check constraint of what was written. Where this has no sentence, at fault is the column without which the row
-- would pass; else the first that was emptied, or of several one that has no default, and so was given.
create function private.assert_checks_hold("table" regclass, "row" jsonb, given jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_names name[];
  v_conditions text[];
  v_broken integer;
  v_column record;
begin
  select array_agg(c.conname order by c.conname), array_agg(pg_get_expr(c.conbin, c.conrelid) order by c.conname)
  into v_names, v_conditions
  from pg_catalog.pg_constraint c
  where c.conrelid = "table" and c.contype = 'c' and (0 = any (c.conkey) or exists (
    select from pg_catalog.pg_attribute a where a.attrelid = "table" and a.attnum = any (c.conkey) and given ? a.attname
  ));
  v_broken := private.first_broken("table", v_conditions, "row");
  if v_broken is null then
    return;
  end if;
  perform private.refuse_broken(v_names[v_broken], "row");
  select a.attname as name, col_description("table", a.attnum) as wanted, given ->> a.attname is null as is_empty
  into v_column
  from pg_catalog.pg_attribute a
  where a.attrelid = "table" and a.attnum > 0 and given ? a.attname
  order by private.first_broken("table", v_conditions[v_broken:v_broken], "row" - a.attname::text) is not null,
    given ->> a.attname is not null, a.atthasdef, a.attnum
  limit 1;
  if v_column.is_empty then
    perform private.refuse_empty("table", v_column.name);
  end if;
  perform private.refuse_value(
    v_column.name,
    case
      when jsonb_typeof(given -> v_column.name) = 'number' and (given ->> v_column.name)::numeric < 0 then
        format('The number in %s cannot be negative.', v_column.name)
      else format('This value is not valid for %s: %s', v_column.name, v_column.wanted)
    end
  );
end
$$;
grant execute on function private.assert_checks_hold to authenticated;

-- Refuses a value that another row has and may not share: all keys of what was written are looked up by one statement. SQL that says what
-- happens on conflict is left to the index; so is what the person may not read.
create function private.assert_not_taken("table" regclass, "row" jsonb, given jsonb, old_id text) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_query text;
  v_name text;
  v_id uuid;
begin
  if current_query() ~* '\mon\s+conflict\M' then
    return;
  end if;
  select string_agg(
    format(
      '(select %L, %s from %s t where %s and %s and %s limit 1)',
      i.name, case when "row" ? 'id' then 't.id' else 'null::uuid' end, "table", i.condition, i.is_equal,
      case when "row" ? 'id' and old_id is not null then format('t.id <> %L', old_id) else 'true' end
    ),
    ' union all ' order by i.indexrelid
  )
  into v_query
  from (
    select
      i.indexrelid,
      case
        when i.indpred is null then 'true'
        else format('%1$s and (select %1$s from jsonb_populate_record(null::%2$s, $1))', pg_get_expr(i.indpred, i.indrelid), "table")
      end as condition,
      (array_agg(k.name order by k.name in ('organisation_id', 'event_id'), k.position))[1] as name,
      -- A value is spelt out, for planning takes longer than the look-up. Null is never taken.
      string_agg(
        case when k.is_plain then format('t.%I = %L', k.name, "row" ->> k.name)
        else format('%1$s = (select %1$s from jsonb_populate_record(null::%2$s, $1))', k.expression, "table") end,
        ' and '
      ) as is_equal
    from pg_catalog.pg_index i
    cross join lateral (
      -- The column, of an expression the one that it is of.
      select n as position, e.expression, substring(e.expression from '(?:.*\()?"?(\w+)') as name,
        e.expression ~ '^"?\w+"?$' and jsonb_typeof("row" -> e.expression) not in ('array', 'object') as is_plain
      from generate_series(1, i.indnkeyatts) n
      cross join lateral (select pg_get_indexdef(i.indexrelid, n, true) as expression) e
    ) k
    where i.indrelid = "table" and i.indisunique
    group by i.indexrelid, i.indrelid, i.indpred
    having bool_or(given ? k.name) and bool_and(has_column_privilege("table", k.name, 'select'))
  ) i;
  execute coalesce(v_query, 'select null, null::uuid') into v_name, v_id using "row";
  if v_name is not null then
    perform private.refuse_taken(replace(v_name, '_lower', ''), v_id, 'epoch');
  end if;
end
$$;
grant execute on function private.assert_not_taken to authenticated;

-- Refuses a reference to a row that is not there. In the name of another organisation a member is refused by the policies.
create function private.assert_references_exist("table" regclass, "row" jsonb, given jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_query text;
  v_target text;
  v_names text[];
begin
  if private.claims() ->> 'role' = 'authenticated'
    and ("row" ->> 'organisation_id')::uuid not in (select private.member_organisation_ids()) then
    return;
  end if;
  select string_agg(
    format('(select %L, %L::text[] where not exists (select from %s t where %s))', k.target_name, k.names, k.target, k.condition),
    ' union all ' order by k.oid
  )
  into v_query
  from (
    select
      c.oid, c.confrelid::regclass as target, t.relname as target_name, array_agg(a.attname order by k.position) as names,
      string_agg(format('t.%I = %L', f.attname, "row" ->> a.attname), ' and ') as condition
    from pg_catalog.pg_constraint c
    join pg_catalog.pg_class t on t.oid = c.confrelid
    cross join lateral unnest(c.conkey, c.confkey) with ordinality k (own, foreign_, position)
    join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.own
    join pg_catalog.pg_attribute f on f.attrelid = c.confrelid and f.attnum = k.foreign_
    where c.conrelid = "table" and c.contype = 'f' and has_table_privilege(c.confrelid, 'select')
    group by c.oid, c.confrelid, t.relname
    having bool_or(given ? a.attname) and bool_and("row" ->> a.attname is not null)
  ) k;
  execute coalesce(v_query, 'select null, null::text[]') into v_target, v_names;
  if v_target is not null then
    perform private.refuse(
      404, 'not_found',
      format(
        'There is no %s with this %s.',
        replace(regexp_replace(regexp_replace(v_target, 'ies$', 'y'), 's$', ''), '_', ' '), array_to_string(v_names, ' and ')
      ),
      v_names[1], hint => format('Copy it from a row of %s.', v_target)
    );
  end if;
end
$$;
grant execute on function private.assert_references_exist to authenticated;

create function private.tg__explain_mistakes() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_new jsonb;
  v_old jsonb;
  v_given jsonb;
  v_detail text;
  v_hint text;
begin
  -- It takes milliseconds a row: a restore, or a script that writes a million, must not pay for it. The constraints hold for all.
  if pg_stat_get_xact_tuples_inserted(tg_relid) + pg_stat_get_xact_tuples_updated(tg_relid) >= 200 then
    return new;
  end if;
  v_old := to_jsonb(old);
  -- Generated columns have no value yet: those in lower case are what keys are made of.
  select to_jsonb(new) || coalesce(jsonb_object_agg(a.attname, lower(to_jsonb(new) ->> replace(a.attname, '_lower', ''))), '{}')
  into v_new
  from pg_catalog.pg_attribute a
  where a.attrelid = tg_relid and a.attgenerated <> '' and a.attname like '%\_lower';
  v_given := (
    select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(v_new) e where e.value is distinct from v_old -> e.key
  ) - array(select a.attname::text from pg_catalog.pg_attribute a where a.attrelid = tg_relid and a.attgenerated <> '' and a.attname not like '%\_lower');
  if tg_op = 'UPDATE' then
    perform private.refuse(
      409, 'read_only_field', format('%s identifies the row and cannot be changed.', a.attname), a.attname, hint => 'Add another row instead.'
    )
    from pg_catalog.pg_index i
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
    where i.indrelid = tg_relid and i.indisprimary and a.attgenerated = '' and v_given ? a.attname;
  end if;
  perform private.refuse_empty(tg_relid, a.attname)
  from pg_catalog.pg_attribute a
  where a.attrelid = tg_relid and a.attnum > 0 and a.attnotnull and v_given -> a.attname = 'null'
  order by a.attnum;
  perform private.assert_checks_hold(tg_relid, v_new, v_given);
  -- What no constraint bounds.
  perform private.refuse_value(e.key, case jsonb_typeof(e.value)
    when 'string' then format('The text in %s has at most 20000 characters.', e.key)
    else format('The number in %s cannot be negative.', e.key)
  end)
  from jsonb_each(v_given) e
  where case jsonb_typeof(e.value) when 'string' then length(e.value #>> '{}') > 20000 when 'number' then (e.value #>> '{}')::numeric < 0 end;
  perform private.assert_not_taken(tg_relid, v_new, v_given, v_old ->> 'id');
  perform private.assert_references_exist(tg_relid, v_new, v_given);
  return new;
exception when sqlstate 'PT404' or sqlstate 'PT409' or sqlstate 'PT422' then
  get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
  raise exception using
    errcode = sqlstate, message = sqlerrm, hint = v_hint, detail = jsonb_strip_nulls(v_detail::jsonb || jsonb_build_object(
    'row', jsonb_build_object('id', v_new -> 'id', 'name', v_new -> 'name', 'reference', v_new -> 'reference')
  ));
end
$$;
