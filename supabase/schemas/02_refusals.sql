-- What every function below leans on: who is calling, how a refusal is raised, how an id, a code, a time and a page look.

-- The claims of the verified token, as PostgREST puts them; {} for a person at the SQL editor.
create function private.claims() returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb;
end
$$;
grant execute on function private.claims() to api_key, authenticated;

create function private.current_organisation_id() returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return (private.claims() ->> 'organisation_id')::uuid;
end
$$;
grant execute on function private.current_organisation_id() to api_key;

create function private.current_api_key_id() returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return (private.claims() ->> 'api_key_id')::uuid;
end
$$;
grant execute on function private.current_api_key_id() to api_key, authenticated;

-- The one way to say no. The message is a constant ASCII sentence that an organiser in Studio understands (PostgREST puts
-- it into the HTTP reason phrase, so it never holds what a user sent); a program reads `code` and `param` in the detail.
-- SQLSTATE PT409 makes the Data API answer 409. Everything the transaction did is rolled back.
create function private.refuse(
  status integer,
  code text,
  message text,
  param text default null,
  details jsonb default null,
  hint text default null
) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  raise exception using
    errcode = 'PT' || status,
    message = message,
    detail = jsonb_strip_nulls(jsonb_build_object('code', code, 'param', param, 'details', details)),
    hint = coalesce(hint, '');
end
$$;
grant execute on function private.refuse(integer, text, text, text, jsonb, text) to api_key, authenticated;

-- The same answer for what does not exist and for what belongs to another organisation.
create function private.refuse_not_found(param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    404, 'not_found', 'There is no such object in your organisation.', param,
    hint => 'Check the identifier, and that the key belongs to the organisation that owns the object.'
  );
end
$$;
grant execute on function private.refuse_not_found(text) to api_key, authenticated;

-- For triggers that look further than their caller may: neither an API key nor a person who is signed in has any business
-- with rows of another organisation, and they must not learn from an error that those exist.
create function private.is_foreign(organisation_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
begin
  if organisation_id is null or organisation_id <> (v_claims ->> 'organisation_id')::uuid then
    return true;
  end if;
  -- By itself: an expression with a query in it costs every registration, even where the query is not run.
  if v_claims ->> 'role' = 'authenticated' then
    return organisation_id not in (select private.member_organisation_ids());
  end if;
  return false;
end
$$;

create function private.assert_not_foreign(organisation_id uuid, param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if private.is_foreign(organisation_id) then
    perform private.refuse_not_found(param);
  end if;
end
$$;

-- A value that a constraint would refuse, in a sentence: a constraint answers with the whole row. The constraint stays behind.
create function private.refuse_value(param text, message text, hint text default null) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    422, 'validation_failed', message, param,
    jsonb_build_object('fields', jsonb_build_array(jsonb_build_object('param', param, 'message', message))), hint
  );
end
$$;
grant execute on function private.refuse_value(text, text, text) to api_key, authenticated;

-- Who registers, and who comes: for the guards of orders and attendees.
create function private.assert_valid_contact(name text, email text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if name is null or length(btrim(name)) not between 1 and 200 or name ~ '[[:cntrl:]]' then
    perform private.refuse_value('name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.');
  end if;
  if email is null or not private.is_email_address(email) then
    perform private.refuse_value('email', 'This is not an e-mail address.', 'Write it as in name@example.com.');
  end if;
end
$$;

-- Another object has the value. One that was added by the same transaction goes with the refusal, so its id is not told.
-- A new row is asked about for API keys only: by hand it may say `on conflict`, which the unique index decides.
create function private.refuse_taken(param text, id uuid, created_at timestamptz) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'already_exists', format('Another object has this %s already.', param), param,
    case when created_at <> now() then jsonb_build_object('id', id) end
  );
end
$$;
grant execute on function private.refuse_taken(text, uuid, timestamptz) to api_key, authenticated;

-- The first field of a new row that is not as Usher gives it. Both are rows as JSON; the second has only the given fields.
create function private.assert_as_given("row" jsonb, given jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'read_only_field', 'Usher gives a new row this field itself.', g.key, hint => 'Leave it out.'
  )
  from jsonb_each(given) g
  where jsonb_strip_nulls("row") -> g.key <> g.value;
end
$$;

-- UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits of what is left of the microseconds (its method 3), then
-- random. So ids sort by creation, also the guests of one registration, and keyset pages walk them. PostgreSQL has its own
-- from version 18 on.
create function private.uuid_v7() returns uuid
language plpgsql volatile set search_path = ''
as $$
declare
  v_microseconds bigint := extract(epoch from clock_timestamp()) * 1000000;
begin
  return (
    lpad(to_hex(v_microseconds / 1000), 12, '0')
    || '7'
    || lpad(to_hex(v_microseconds % 1000 * 4096 / 1000), 3, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 17)
  )::uuid;
end
$$;
grant execute on function private.uuid_v7() to api_key, authenticated;

-- Crockford's base 32 leaves out I, L, O and U, so that a code survives being read aloud and typed. Five bits a character,
-- drawn through sha256 from one random UUID (122 bits): safe up to 24 characters.
create function private.random_code(length integer) returns text
language plpgsql volatile set search_path = ''
as $$
begin
  return (
    select string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (get_byte(r.bytes, i) & 31), 1), '')
    from (select sha256(uuid_send(gen_random_uuid())) as bytes) r, generate_series(0, length - 1) i
  );
end
$$;

-- RFC 3339, UTC, milliseconds, whatever time zone the session is in.
create function private.rfc3339(moment timestamptz) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end
$$;
grant execute on function private.rfc3339(timestamptz) to api_key, authenticated;

-- What a header of an e-mail can hold without quotes or another alphabet: all that zod's z.email() takes, and a little more.
create function private.is_email_address(address text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(address) <= 254
    and address ~ '^[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$';
end
$$;
grant execute on function private.is_email_address(text) to api_key, authenticated;

-- Whether a number is the same after a client has read it as a double and written it again. Whole numbers beyond 2^53 - 1
-- are not, and below the least double Postgres would refuse the cast.
create function private.is_double(number numeric) returns boolean
language plpgsql immutable set search_path = '' set extra_float_digits = 1
as $$
begin
  return case
    when number = 0 then true
    when abs(number) > 9007199254740991 or abs(number) < 4e-324 then false
    else number::float8::text::numeric = number
  end;
end
$$;
grant execute on function private.is_double(numeric) to api_key, authenticated;

-- Metadata is a flat object of at most 50 keys, so that every system can hold it and nobody builds a database inside. It holds
-- nothing that a JSON client would change or lose: no number that is no double, and no key that JavaScript takes for another.
create function private.is_metadata(value jsonb) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when jsonb_typeof(value) <> 'object' then false
    else (
      select count(*) <= 50
        and coalesce(bool_and(
          length(e.key) between 1 and 40
          and e.key <> '__proto__'
          and coalesce(length(e.value #>> '{}'), 0) <= 500
          and case jsonb_typeof(e.value)
            when 'number' then private.is_double((e.value #>> '{}')::numeric)
            else jsonb_typeof(e.value) in ('string', 'boolean', 'null')
          end
        ), true)
      from jsonb_each(value) e
    )
  end;
end
$$;
grant execute on function private.is_metadata(jsonb) to api_key, authenticated;

-- A cursor is the last id of a page in base64url: opaque to the caller, checked here. Ids never change, so a walk neither
-- skips nor repeats a row that existed throughout, whatever is edited meanwhile.
create function private.encode_cursor(id uuid) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return rtrim(translate(encode(uuid_send(id), 'base64'), '+/', '-_'), '=');
end
$$;
grant execute on function private.encode_cursor(uuid) to api_key;

create function private.decode_cursor(cursor text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  if cursor !~ '^[A-Za-z0-9_-]{22}$' then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not one that a list answered.', 'cursor',
      hint => 'Send next_cursor of the previous page unchanged, or leave the cursor out to start again.'
    );
  end if;
  return encode(decode(translate(cursor, '-_', '+/') || '==', 'base64'), 'hex')::uuid;
end
$$;
grant execute on function private.decode_cursor(text) to api_key;

create function private.page_size("limit" integer) returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return greatest(1, least(coalesce("limit", 50), 100));
end
$$;
grant execute on function private.page_size(integer) to api_key;

-- How many bytes the items of a page may have together; a list stops there, with at least one item.
create function private.page_bytes() returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return 1048576;
end
$$;
grant execute on function private.page_bytes() to api_key;

-- A list operation makes items until there is one more than the page holds, in number or in bytes; the surplus item says that
-- there is more. Answers are json rather than jsonb throughout: the fields keep the order in which they are written.
create function private.page(items json[], size integer) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_kept integer := least(coalesce(cardinality(items), 0), size);
  v_bytes integer := private.page_bytes();
  v_sum bigint := 0;
begin
  if pg_column_size(items) > v_bytes then
    for i in 1..v_kept loop
      v_sum := v_sum + pg_column_size(items[i]);
      if v_sum > v_bytes and i > 1 then
        v_kept := i - 1;
        exit;
      end if;
    end loop;
  end if;
  return json_build_object(
    'data', coalesce(to_json(items[1:v_kept]), '[]'),
    'has_more', coalesce(cardinality(items), 0) > v_kept,
    'next_cursor', case when cardinality(items) > v_kept then private.encode_cursor((items[v_kept] ->> 'id')::uuid) end
  );
end
$$;
grant execute on function private.page(json[], integer) to api_key;

-- Fields that are fixed once the row exists, named as arguments of a trigger `before update of` those very columns, so that
-- no other update pays for it.
create function private.tg__assert_unchanged() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_column text;
begin
  foreach v_column in array tg_argv loop
    if to_jsonb(new) -> v_column is distinct from to_jsonb(old) -> v_column then
      perform private.refuse(409, 'read_only_field', 'This field is fixed once the row exists.', v_column);
    end if;
  end loop;
  return new;
end
$$;

-- Fields that Usher keeps itself, named after a hint as arguments of a trigger on those very columns. Saving a row as it is
-- passes; another value would be overwritten without a word. A new row has none of them.
create function private.tg__assert_derived_untouched() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_column text;
begin
  foreach v_column in array tg_argv[1:] loop
    if to_jsonb(new) -> v_column is distinct from coalesce(to_jsonb(old) -> v_column, 'null')
      -- What SQL that keeps updated_at itself sets it to is what it becomes.
      and not (v_column = 'updated_at' and (to_jsonb(new) ->> v_column)::timestamptz is not distinct from now()) then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', v_column, hint => tg_argv[0]
      );
    end if;
  end loop;
  return new;
end
$$;

create function private.tg__assert_name() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.name is null or length(btrim(new.name)) not between 1 and 200 or new.name ~ '[[:cntrl:]]' then
    perform private.refuse_value('name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.');
  end if;
  return new;
end
$$;

-- For triggers whose `when` says which value is refused. Arguments: param, message and, if there is one, a hint.
create function private.tg__refuse_value() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_value(tg_argv[0], tg_argv[1], tg_argv[2]);
  return new;
end
$$;

-- What is in use is not deleted. Arguments: message, hint, and each `table.column` that may refer to the row. The foreign keys
-- stay behind it.
create function private.tg__assert_not_in_use() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_reference text;
  v_in_use boolean;
begin
  foreach v_reference in array tg_argv[2:] loop
    execute format(
      'select exists (select from public.%I where %I = $1)', split_part(v_reference, '.', 1), split_part(v_reference, '.', 2)
    ) into v_in_use using old.id;
    if v_in_use then
      perform private.refuse(409, 'in_use', tg_argv[0], hint => tg_argv[1]);
    end if;
  end loop;
  return old;
end
$$;

-- Truncating fires no row triggers, so that counts and logs would miss it.
create function private.tg__refuse_truncate() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(409, 'append_only', 'This table cannot be emptied at one stroke.', hint => 'Delete or cancel rows instead.');
end
$$;

create function private.tg__set_updated_at() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.updated_at := now();
  return new;
end
$$;

-- The version of a row is the ETag of its object: whoever edits it may say which version they saw.
create function private.tg__count_version() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;

-- Null is no condition; of a list any may match.
create function private.assert_version(version integer, if_versions integer[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if version <> all (if_versions) then
    perform private.refuse(
      412, 'version_mismatch', 'The object was changed since you read it.', 'if_version',
      jsonb_build_object('version', version), 'Read it again, and apply your change to what it is now.'
    );
  end if;
end
$$;
grant execute on function private.assert_version(integer, integer[]) to api_key;

-- What a dry run ends with, so that everything it did is undone: it is raised, and caught by the operation itself.
create function private.undo_dry_run() returns void
language plpgsql volatile set search_path = ''
as $$
begin
  raise exception using errcode = 'UD001', message = 'Dry run.';
end
$$;
grant execute on function private.undo_dry_run() to api_key;
