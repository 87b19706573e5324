-- The uniform rules of a table, from one statement in its file: private.keep_table makes the triggers, comments the columns that all tables have,
-- and takes all rights from everybody before the file grants some. The triggers fire among the table's own by their numbers: 010 blanks,
-- 050 columns that are not edited, 100 truncate, 120 listed ticket types, 130 values that another row has, 500 the person, 800 mistakes
-- explained, 900 updated_at and version. What a person types pays for them; what
-- Usher derives, or an operation of a key writes, pays for the last one alone.

-- Argument: as JSON, the columns with the sentence and the hint that refuse another value. What a new row has in sums is nothing yet.
create function private.tg__assert_kept() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_column record;
begin
  for v_column in
    select c.key as name, c.value as said, to_jsonb(new) -> c.key as value from jsonb_each(tg_argv[0]::jsonb) c
  loop
    if (case tg_op
      when 'INSERT' then v_column.value not in ('null', '0', 'false')
      else v_column.value is distinct from to_jsonb(old) -> v_column.name
        -- SQL that sets updated_at = now() itself passes: that is the value it gets.
        and not (v_column.name = 'updated_at' and (v_column.value #>> '{}')::timestamptz is not distinct from now())
    end) then
      perform private.refuse(409, 'read_only_field', v_column.said ->> 0, v_column.name, hint => v_column.said ->> 1, "row" => to_jsonb(new));
    end if;
  end loop;
  return new;
end
$$;

-- Each table with updated_at has a function of its own, which private.keep_table makes of this: comparing two rows as JSON, which one function
-- for all would have to, takes as long as writing one. A row that is saved as it was keeps updated_at. The version is the ETag of the object; an
-- edit may name the version it is based on. What is generated is not compared: NEW does not have it yet.
create function private.create_count_of_edits("table" name, columns text[], counted text[]) returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_name constant text := format('tg_%s__count_edit', "table");
begin
  execute format(
    $sql$
      create function private.%I() returns trigger
      language plpgsql volatile set search_path = ''
      as $body$
      begin
        if (%s) is distinct from (%s) then
          new.updated_at := now();
          %s
        end if;
        return new;
      end
      $body$
    $sql$,
    v_name,
    (select string_agg('new.' || quote_ident(c), ', ') from unnest(columns) c),
    (select string_agg('old.' || quote_ident(c), ', ') from unnest(columns) c),
    case when counted is not null then format(
      'new.version := old.version + ((%s) is distinct from (%s))::integer;',
      (select string_agg('new.' || quote_ident(c), ', ') from unnest(counted) c),
      (select string_agg('old.' || quote_ident(c), ', ') from unnest(counted) c)
    ) end
  );
  return v_name;
end
$$;

-- What the columns are that all tables have.
create function private.comment_columns("table" regclass) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_column record;
begin
  for v_column in
    select c.name, c.comment
    from (
      values
        ('id', 'Identifier: a version 7 UUID, which contains the time of creation.'),
        ('organisation_id', 'The organisation it belongs to.'),
        ('event_id', 'The event it belongs to.'),
        ('source', 'Where it came from: the REST API, MCP, or Studio.'),
        ('version', 'Number of edits; the ETag over REST. Kept by Usher.'),
        ('created_at', 'When the row was added.'),
        ('updated_at', 'When the row was last changed. Kept by Usher.')
    ) c (name, comment)
    join pg_catalog.pg_attribute a on a.attrelid = "table" and a.attname = c.name
    where col_description("table", a.attnum) is null
  loop
    execute format('comment on column %s.%I is %L', "table", v_column.name, v_column.comment);
  end loop;
end
$$;

create function private.keep_table(
  "table" regclass,
  -- False: nobody writes rows of it by hand.
  typed boolean default true,
  -- Columns that a trigger fills in, and that whoever adds a row may leave out.
  filled text[] default '{}',
  -- Columns that a new row cannot do without. Null: all that are not null, and have neither a default nor a trigger that fills them in.
  required text[] default null,
  -- Columns that are fixed once the row exists, and hints for some of them.
  fixed text[] default '{}',
  fixed_hints jsonb default '{}',
  -- Columns that Usher keeps, with a hint where there is more to say than to leave them. So it does version, created_at and updated_at;
  -- null: another rule speaks of these.
  derived jsonb default '{}',
  -- Columns that triggers add up, from nothing in a new row, with the sentence that refuses them and a hint behind it.
  sums jsonb default '{}',
  versioned boolean default false,
  -- Columns whose change is no edit, beside those that are fixed or derived.
  uncounted text[] default '{}',
  -- Columns whose change leaves updated_at as it is.
  exempt text[] default '{}',
  -- Columns whose value no other row of the organisation may have. Of rows that people add, the trigger of mistakes refuses it.
  not_taken text[] default '{}',
  -- Whether name and email are a person's.
  contact boolean default false,
  -- Whether a new row belongs to the organisation of its event; false: to the only one that may be meant.
  of_event boolean default null,
  -- The sentence and the hint that refuse to delete a row that is referenced, and each `table.column` that may refer to it.
  in_use text[] default null,
  -- The sentence that refuses to change or delete a row of a log, and a hint behind it.
  append_only text default null
) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_name constant name := (select c.relname from pg_catalog.pg_class c where c.oid = "table");
  v_own text[];
  v_kept jsonb;
  v_trigger record;
begin
  perform private.comment_columns("table");
  -- Default privileges of a Supabase project grant every new table to these three roles.
  execute format('revoke all on %s from anon, authenticated, service_role', "table");
  execute format('alter table %s enable row level security', "table");
  for i in 1..cardinality(filled) loop
    -- `supabase gen types` takes a column that is not null and has no default for required. This one gives no value; Postgres does not keep
    -- a default that is written as null.
    execute format('alter table %s alter column %I set default nullif(%3$L, %3$L)::%4$s', "table", filled[i], '', (
      select format_type(a.atttypid, a.atttypmod) from pg_catalog.pg_attribute a where a.attrelid = "table" and a.attname = filled[i]
    ));
  end loop;
  select
    array_agg(a.attname::text order by a.attnum) filter (where a.attgenerated = ''),
    coalesce(required, array_agg(a.attname::text order by a.attnum) filter (where a.attnotnull and not a.atthasdef), '{}')
  into v_own, required
  from pg_catalog.pg_attribute a
  where a.attrelid = "table" and a.attnum > 0 and not a.attisdropped;
  v_kept := (
    select coalesce(jsonb_object_agg(k.name, jsonb_build_array(k.sentence, k.hint)), '{}')
    from (
      select c as name, 'This field is fixed once the row exists.' as sentence, fixed_hints ->> c as hint from unnest(fixed) c
      union all
      select c, 'Usher keeps this field itself; it cannot be edited.', coalesce(derived ->> c, 'Leave it as it is.')
      from unnest(v_own) c
      where derived ? c or derived is not null and c in ('version', 'created_at', 'updated_at')
    ) k
  );

  for v_trigger in
    select t.*
    from (
      values
        (true, '010_blank_is_empty', 'insert or update', 'tg__take_blank_as_empty', required),
        (true, '050_kept', (select 'update of ' || string_agg(quote_ident(k), ', ') from jsonb_object_keys(v_kept) k), 'tg__assert_kept', array[v_kept::text]),
        (
          true, '050_sums', (select 'insert or update of ' || string_agg(quote_ident(k), ', ') from jsonb_object_keys(sums) k), 'tg__assert_kept',
          array[(select jsonb_object_agg(s.key, private.sentences(s.value)) from jsonb_each_text(sums) s)::text]
        ),
        (
          false, '050_organisation', case when of_event is not null then 'insert' end,
          case when of_event then 'tg__inherit_organisation' else 'tg__fill_organisation' end, '{}'
        ),
        (false, '120_ticket_types', case when 'ticket_type_ids' = any (v_own) then 'insert or update of ticket_type_ids' end, 'tg__assert_ticket_types', '{}'),
        (
          false, '130_not_taken', (select 'insert or update of ' || string_agg(quote_ident(c), ', ') from unnest(not_taken) c), 'tg__assert_not_taken', not_taken
        ),
        (false, '500_contact', case when contact then 'insert or update of name, email' end, 'tg__assert_contact', '{}'),
        (false, '100_in_use', case when in_use <> '{}' then 'delete' end, 'tg__assert_not_in_use', in_use),
        (false, '100_append_only', case when append_only <> '' then 'update or delete' end, 'tg__assert_append_only', private.sentences(append_only)),
        -- Truncate fires no row triggers, so counts and logs would miss it.
        (
          false, '100_no_truncate', 'truncate', 'tg__refuse',
          array['409', 'append_only', 'This table cannot be truncated.', 'Delete or cancel rows instead.']
        ),
        (true, '800_explain', 'insert or update', 'tg__explain_mistakes', '{}'),
        (
          false, '900_edited',
          case when 'updated_at' = any (v_own) then 'update' || coalesce(
            (select ' of ' || string_agg(quote_ident(c), ', ') from unnest(v_own) c where exempt <> '{}' and c <> all (exempt)), ''
          ) end,
          case when 'updated_at' = any (v_own) then private.create_count_of_edits(v_name, v_own, case when versioned then array(
            select c from unnest(v_own) c where c <> all (array['version', 'updated_at'] || exempt || uncounted) and not v_kept ? c
          ) end) end,
          '{}'
        )
    ) t (is_typed, name, event, function, arguments)
    where t.event is not null and (typed or not t.is_typed)
  loop
    execute format(
      'create trigger %I before %s on %s for each %s execute function private.%I(%s)',
      v_name || '_' || v_trigger.name, v_trigger.event, "table",
      case when v_trigger.is_typed then 'row when (private.is_typed())' when v_trigger.event = 'truncate' then 'statement' else 'row' end,
      v_trigger.function,
      (select string_agg(quote_literal(a), ', ' order by a.place) from unnest(v_trigger.arguments) with ordinality a (a, place))
    );
  end loop;
end
$$;

-- Postgres refuses a write to a view of several tables with SQLSTATE 55000, before it looks at privileges, and PostgREST makes a 500 of that.
-- With this trigger a member is refused for want of the privilege, as with a table, and an organiser in Studio reads a sentence.
create function private.keep_view("view" regclass, message text default 'This view is read-only.', writes text default 'insert or update or delete')
returns void
language plpgsql volatile set search_path = ''
as $$
begin
  execute format(
    'create trigger %I instead of %s on %s for each row execute function private.tg__refuse(405, ''method_not_allowed'', %L, %L)',
    (select c.relname from pg_catalog.pg_class c where c.oid = "view") || '_100_read_only', writes, "view", message,
    'Change rows of the tables it shows.'
  );
end
$$;
