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
grant execute on function private.refuse_not_found(text) to api_key;

-- For triggers that look further than their caller may: neither an API key nor a person who is signed in has any business
-- with rows of another organisation, and they must not learn from an error that those exist.
create function private.refuse_foreign(organisation_id uuid, param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if organisation_id is null
    or organisation_id <> private.current_organisation_id()
    or (private.claims() ->> 'role' = 'authenticated'
      and organisation_id not in (select private.member_organisation_ids())) then
    perform private.refuse_not_found(param);
  end if;
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
language plpgsql immutable set search_path = ''
as $$
begin
  return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end
$$;
grant execute on function private.rfc3339(timestamptz) to api_key, authenticated;

-- Metadata is a flat object of at most 50 keys, so that every system can hold it and nobody builds a database inside.
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
          and jsonb_typeof(e.value) in ('string', 'number', 'boolean', 'null')
          and coalesce(length(e.value #>> '{}'), 0) <= 500
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

-- A list operation reads one row more than the page holds; the surplus row says that there is more.
-- Answers are json rather than jsonb throughout: the fields keep the order in which they are written.
create function private.page(items json[], size integer) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return json_build_object(
    'data', coalesce(to_json(items[1:size]), '[]'),
    'has_more', coalesce(cardinality(items), 0) > size,
    'next_cursor', case when cardinality(items) > size then private.encode_cursor((items[size] ->> 'id')::uuid) end
  );
end
$$;
grant execute on function private.page(json[], integer) to api_key;

-- Fields that are fixed once the row exists, named as arguments of a trigger `before update of` those very columns, so that
-- no other update pays for it.
create function private.tg__refuse_change() returns trigger
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

-- Truncating fires no row triggers, so that counts and logs would not hear of it.
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

create function private.require_version(version integer, if_version integer) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if version <> if_version then
    perform private.refuse(
      412, 'version_mismatch', 'The object was changed since you read it.', 'if_version',
      jsonb_build_object('version', version), 'Read it again, and apply your change to what it is now.'
    );
  end if;
end
$$;
grant execute on function private.require_version(integer, integer) to api_key;

-- What a dry run ends with, so that everything it did is undone: it is raised, and caught by the operation itself.
create function private.undo_dry_run() returns void
language plpgsql volatile set search_path = ''
as $$
begin
  raise exception using errcode = 'UD001', message = 'Dry run.';
end
$$;
grant execute on function private.undo_dry_run() to api_key;
