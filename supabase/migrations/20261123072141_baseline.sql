-- The whole database, as supabase/schemas described it when this baseline was made: those files, in the order of supabase/config.toml.
-- Read the schemas instead: they are kept current, and later migrations change what is below.

set local lock_timeout = '5s';
set local statement_timeout = '60s';

-- schemas/00-ground/roles.sql

-- Roles, and the schemas that they may use. One role for each scope of API keys, one for what any key may do, one for the gateway before
-- it knows the key, and one for the courier. The gateway calls the database as the one role that an operation declares, so what a key may
-- do is written in grants and policies, never in the gateway.
-- Roles are shared by all databases of a cluster, so each is created only where it is missing.

do $$
declare
  v_role text;
begin
  foreach v_role in array array[
    'gateway',
    'api_key',
    'scope_events_read',
    'scope_orders_read',
    'scope_attendees_read',
    'scope_events_write',
    'scope_attendees_write',
    'scope_checkin_write',
    'scope_orders_write',
    'courier'
  ] loop
    if not exists (select from pg_catalog.pg_roles r where r.rolname = v_role) then
      execute pg_catalog.format('create role %I nologin', v_role);
    end if;
    -- A scope role may do whatever any valid key may do.
    if v_role like 'scope\_%' then
      execute pg_catalog.format('grant api_key to %I', v_role);
    end if;
    -- PostgREST logs in as authenticator, which inherits nothing and switches to the role that the token names.
    execute pg_catalog.format('grant %I to authenticator', v_role);
  end loop;
end
$$;

comment on role gateway is 'The gateway before authentication: may resolve a key hash and read a ticket page, and nothing else.';
comment on role api_key is 'Any valid API key. Every scope_* role inherits it.';
comment on role courier is 'The delivery worker: claims and settles pending webhook deliveries and ticket e-mails.';

create schema api;
comment on schema api is 'One function per operation: the only schema the Data API exposes.';

create schema private;
comment on schema private is 'Key hashes, idempotency records and the helpers of policies, triggers and operations. Never exposed.';

-- PostgreSQL grants execute on every new function to public. Only the form without a schema revokes that default; from here
-- on a function can be executed only by the roles granted beside it.
alter default privileges revoke execute on functions from public;

grant usage on schema api to gateway, api_key, courier;
grant usage on schema private to gateway, api_key, courier, authenticated, service_role;

create type public.api_scope as enum (
  'events:read',
  'orders:read',
  'attendees:read',
  'events:write',
  'attendees:write',
  'checkin:write',
  'orders:write'
);

-- scope_events_read stands for events:read, and so on for all seven.
create function private.scope_of_role(role text) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return replace(substr(role, length('scope_') + 1), '_', ':')::public.api_scope;
end
$$;

-- Plans are cached for the life of a connection. One that reads the whole of a table while it is small would still do so when it
-- has a million rows.
alter role authenticator set enable_seqscan = off;
-- Rows are read by key, so no plan gets better by knowing the values; without this each connection plans each statement five times, and
-- some at every call.
alter role authenticator set plan_cache_mode = force_generic_plan;

-- schemas/00-ground/claims.sql

-- The caller of a request, read from the claims of its verified token.

-- The claims as PostgREST sets them; {} in a session without a token, such as the SQL editor of Studio.
create function private.claims() returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb;
end
$$;
grant execute on function private.claims to api_key, authenticated;

create function private.current_organisation_id() returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'organisation_id')::uuid;
end
$$;
grant execute on function private.current_organisation_id to api_key;

create function private.current_api_key_id() returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'api_key_id')::uuid;
end
$$;
grant execute on function private.current_api_key_id to api_key, authenticated;

create type public.request_source as enum ('api', 'mcp', 'studio');

-- How a row was created: the token says api or mcp; a session without a token is a person.
create function private.current_source() returns public.request_source
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce(nullif(current_setting('request.jwt.claims', true), '')::json ->> 'source', 'studio')::public.request_source;
end
$$;
grant execute on function private.current_source to api_key, authenticated;

-- schemas/00-ground/values.sql

-- Generators, formats and validity of values: ids, codes, times, e-mail and web addresses, money and metadata. Reads no table.

-- UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits of sub-millisecond precision (its method 3), then random bits.
-- Ids sort by creation, also within one registration; keyset pages rely on it. PostgreSQL has its own from version 18 on.
create function private.uuid_v7() returns uuid
language plpgsql volatile set search_path = ''
as $$
declare
  v_microseconds bigint := date_part('epoch', clock_timestamp()) * 1000000;
begin
  return encode(
    overlay(
      uuid_send(gen_random_uuid())
      placing int8send((v_microseconds / 1000 << 16) | x'7000'::bigint | (v_microseconds % 1000 * 4096 / 1000))
      from 1 for 8
    ),
    'hex'
  )::uuid;
end
$$;
grant execute on function private.uuid_v7 to api_key, authenticated;

-- Less than any that is made from then on.
create function private.first_uuid_v7(moment timestamptz) returns uuid
language plpgsql immutable strict set search_path = ''
as $$
begin
  return (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
end
$$;

-- Crockford's base 32 leaves out I, L, O and U, so that a code can be read aloud and typed. Five bits a character, taken from the sha256 of
-- one random UUID (122 bits): safe up to 24 characters. In base 64, folded to upper case, a letter is twice as likely as any other
-- character; these become the digits in pairs, and the letters that are left out the other digits, so that all are equally likely.
create function private.random_code(length integer) returns text
language plpgsql volatile set search_path = ''
as $$
begin
  return translate(
    upper(left(encode(sha256(uuid_send(gen_random_uuid())), 'base64'), length) collate "C"), 'ILOU0123456789+/', '0123445566778899'
  );
end
$$;

-- 128 bits in hex: no character that a mail program might take for the end of a link.
create function private.random_token() returns text
language plpgsql volatile set search_path = ''
as $$
begin
  return encode(substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16), 'hex');
end
$$;

-- RFC 3339 in UTC with milliseconds, independent of the time zone of the session.
create function private.rfc3339(moment timestamptz) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end
$$;
grant execute on function private.rfc3339 to api_key, authenticated;

-- Addresses that fit an e-mail header without quotes or another alphabet: everything that zod's z.email() accepts, and a
-- little more.
create function private.is_email_address(address text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(address) <= 254
    and address ~ '^[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$';
end
$$;
grant execute on function private.is_email_address to api_key, authenticated;

-- Whom orders, attendees and entries of the waiting list are for.
create function private.is_contact(name text, email text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return coalesce(length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]' and private.is_email_address(email), false);
end
$$;

-- Where the courier may be sent: https without credentials, for the address is shown. http only for localhost, where the courier allows that.
create function private.is_courier_url(url text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(url) <= 2000
    and url ~ '^(https://([^][/?#@:[:space:][:cntrl:]]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?([/?#][^[:space:][:cntrl:]]*)?$';
end
$$;
grant execute on function private.is_courier_url to api_key, authenticated;

-- The currencies that are paid with: ISO 4217 List One as of February 2026 (six-group.com, taken from the repository
-- datasets/currency-codes), without its codes for funds, metals, units of account and tests.
create function private.is_currency(code text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return code = any ('{
    AED,AFN,ALL,AMD,AOA,ARS,AUD,AWG,AZN,BAM,BBD,BDT,BHD,BIF,BMD,BND,BOB,BRL,BSD,BTN,BWP,BYN,BZD,CAD,CDF,CHF,CLP,CNY,COP,CRC,
    CUP,CVE,CZK,DJF,DKK,DOP,DZD,EGP,ERN,ETB,EUR,FJD,FKP,GBP,GEL,GHS,GIP,GMD,GNF,GTQ,GYD,HKD,HNL,HTG,HUF,IDR,ILS,INR,IQD,IRR,
    ISK,JMD,JOD,JPY,KES,KGS,KHR,KMF,KPW,KRW,KWD,KYD,KZT,LAK,LBP,LKR,LRD,LSL,LYD,MAD,MDL,MGA,MKD,MMK,MNT,MOP,MRU,MUR,MVR,MWK,
    MXN,MYR,MZN,NAD,NGN,NIO,NOK,NPR,NZD,OMR,PAB,PEN,PGK,PHP,PKR,PLN,PYG,QAR,RON,RSD,RUB,RWF,SAR,SBD,SCR,SDG,SEK,SGD,SHP,SLE,
    SOS,SRD,SSP,STN,SVC,SYP,SZL,THB,TJS,TMT,TND,TOP,TRY,TTD,TWD,TZS,UAH,UGX,USD,UYU,UZS,VED,VES,VND,VUV,WST,XAF,XCD,XCG,XOF,
    XPF,YER,ZAR,ZMW,ZWG
  }'::text[]);
end
$$;

-- An address that people open: without credentials, which everybody would see, and without characters that are invisible or turn
-- the direction of the text, which make it look like another one.
create function private.is_web_url(url text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(url) <= 2000
    and url ~ '^https?://[^/?#@\\[:space:]]+([/?#][^[:space:]]*)?$'
    and url !~ '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]';
end
$$;

-- Whether a number survives being read and written as a double. Integers beyond 2^53 - 1 do not, and below the least double
-- Postgres rejects the cast.
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
grant execute on function private.is_double to api_key, authenticated;

-- Metadata is a flat object of at most 50 keys: every system can store it, and it does not become a database of its own. It
-- contains nothing that a JSON client would change or lose: no number that is not a double, and no key __proto__, which
-- JavaScript treats as the prototype.
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
grant execute on function private.is_metadata to api_key, authenticated;

-- How many minor units one of the currency has (ISO 4217).
create function private.minor_units(currency text) returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when currency in (
      'BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'
    ) then 1
    when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then 1000
    else 100
  end;
end
$$;
grant execute on function private.minor_units to scope_events_write, authenticated;

-- "EUR 49.00".
create function private.money_text(amount bigint, currency text) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_units integer := private.minor_units(currency);
begin
  return currency || ' ' || round(amount / v_units::numeric, length(v_units::text) - 1);
end
$$;
grant execute on function private.money_text to scope_events_write, authenticated;

-- schemas/00-ground/refusals.sql

-- Raising errors. private.refuse_* always raises; private.assert_* raises unless the condition in its name holds.

-- Every error that a caller reads is raised here. The message is a constant ASCII sentence that an organiser in Studio
-- understands: PostgREST puts it into the HTTP reason phrase, so it never contains user input. Programs read `code` and
-- `param` in the detail. SQLSTATE PT409 makes the Data API answer 409. The transaction is rolled back.
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
grant execute on function private.refuse to api_key, authenticated;

-- One answer for an object that does not exist and for one of another organisation: the error does not reveal which.
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
grant execute on function private.refuse_not_found to api_key, authenticated;

-- A readable error for a value that a check constraint would reject too: the constraint's own error contains the whole row.
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
grant execute on function private.refuse_value to api_key, authenticated;

-- For checks of tables: what people write into fields that have no trigger of their own. Null is allowed.
create function private.is_sound_line(param text, value text, characters integer) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  if value is not null and (length(btrim(value)) not between 1 and characters or value ~ '[[:cntrl:]]') then
    perform private.refuse_value(
      param, format('%s is one line of 1 to %s characters.', param, characters), 'Write at least one letter, and no line breaks.'
    );
  end if;
  return true;
end
$$;
grant execute on function private.is_sound_line to api_key, authenticated;

create function private.is_sound_extra(external_id text, metadata jsonb) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  if length(external_id) not between 1 and 255 then
    perform private.refuse_value('external_id', 'external_id has 1 to 255 characters.');
  elsif metadata <> '{}' and not private.is_metadata(metadata) then
    perform private.refuse_value(
      'metadata', 'Metadata is a flat object of at most 50 keys.', 'Its values are text, numbers that are kept exactly, true, false or null.'
    );
  end if;
  return true;
end
$$;
grant execute on function private.is_sound_extra to api_key, authenticated;

-- A value that another object already has. An object added by the same transaction is rolled back with the error, so its id
-- is left out. On insert, the guards check for API keys only: SQL by hand may use `on conflict`, which the unique index
-- decides.
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
grant execute on function private.refuse_taken to api_key, authenticated;

-- For security definer triggers, which see more than their caller. A row of another organisation counts as missing, for API
-- keys and signed-in members alike, so that no error reveals that it exists.
create function private.is_foreign(organisation_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
begin
  if organisation_id is null or organisation_id <> (v_claims ->> 'organisation_id')::uuid then
    return true;
  end if;
  -- A statement of its own: an expression that contains a query costs every registration, even where the query is not run.
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

create function private.assert_valid_name(name text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if name is null or length(btrim(name)) not between 1 and 200 or name ~ '[[:cntrl:]]' then
    perform private.refuse_value('name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.');
  end if;
end
$$;
grant execute on function private.assert_valid_name to api_key, authenticated;

-- For a name and an address of which private.is_contact is not true.
create function private.refuse_contact(name text, email text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.assert_valid_name(name);
  perform private.refuse_value('email', 'This is not an e-mail address.', 'Write it as in name@example.com.');
end
$$;

-- Refuses a new row in which a field that Usher sets is neither null nor as given. Both arguments are rows as JSON; `given`
-- has only the fields to check.
create function private.assert_as_given("row" jsonb, given jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'read_only_field', 'Usher sets this field of a new row itself.', g.key, hint => 'Leave it out.'
  )
  from jsonb_each(given) g
  where jsonb_strip_nulls("row") -> g.key <> g.value;
end
$$;

-- Null means no condition; otherwise one of the listed versions must match.
create function private.assert_version(version integer, if_versions integer[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if version <> all (if_versions) then
    perform private.refuse(
      412, 'version_mismatch', 'The object was changed since you read it.', 'if_version',
      jsonb_build_object('version', version), 'Read it again, and apply your change to the current version.'
    );
  end if;
end
$$;
grant execute on function private.assert_version to api_key;

-- schemas/00-ground/pages.sql

-- Pages of a list: the cursor, and the limits in rows and in bytes.
--
-- A list with filters by status first finds the ids of its page (private.page_of_attendees and its like), then reads these rows
-- under the caller's policies. The index of such a list has every status before the id, and a page is merged from one range for
-- each combination of them, so that it costs the same whatever matches, and however little. Three things keep the planner
-- from any other way, on tables that were never analysed and in generic plans as well:
-- * The finders are security definer, and compare the organisation themselves. Equality of enums is not leakproof, so under
--   row level security no index on a status is used.
-- * They switch off sorting, and order by the first column of the index before the id. That column is compared with
--   `= any`, for after an equality the planner leaves it out of the order, and the primary key has the order of the id as well.
-- * Conditions that are optional select the query, or the list of values of a status; none is part of an index condition.

-- A cursor is the last id of a page in base64url: opaque to clients, validated here. Ids never change, so paging neither
-- skips nor repeats a row that exists throughout, whatever is edited meanwhile.
create function private.encode_cursor(id uuid) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return rtrim(translate(encode(uuid_send(id), 'base64'), '+/', '-_'), '=');
end
$$;
grant execute on function private.encode_cursor to api_key;

create function private.decode_cursor(cursor text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  if cursor !~ '^[A-Za-z0-9_-]{22}$' then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not valid.', 'cursor',
      hint => 'Send next_cursor of the previous page unchanged, or leave the cursor out to start again.'
    );
  end if;
  return encode(decode(translate(cursor, '-_', '+/') || '==', 'base64'), 'hex')::uuid;
end
$$;
grant execute on function private.decode_cursor to api_key;

-- Where a list that is newest first continues: its ids are less than this. Never null, for an index condition cannot be optional.
create function private.before_cursor(cursor text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce(private.decode_cursor(cursor), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
end
$$;
grant execute on function private.before_cursor to api_key;

create function private.page_size("limit" integer) returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return greatest(1, least(coalesce("limit", 50), 100));
end
$$;
grant execute on function private.page_size to api_key;

-- Most bytes that the items of a page have together; a page has at least one item, however large.
create function private.page_bytes() returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return 1048576;
end
$$;
grant execute on function private.page_bytes to api_key;

-- A list that is by start has the start in its cursors as well, so that they are 32 characters and no other list takes them. It is the
-- start that was shown: paging goes on from there, even if the event was moved or deleted meanwhile. No start is infinity.
create type private.start_position as (starts_at timestamptz, id uuid);

create function private.encode_start_cursor("position" private.start_position) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return translate(encode(timestamptz_send("position".starts_at) || uuid_send("position".id), 'base64'), '+/', '-_');
end
$$;
grant execute on function private.encode_start_cursor to scope_events_read;

-- Where such a list continues; before the first without a cursor. Never null, as private.before_cursor.
create function private.after_start_cursor(cursor text) returns private.start_position
language plpgsql stable set search_path = ''
as $$
declare
  v_bytes bytea;
  v_microseconds bigint;
  v_position private.start_position := row('-infinity', '00000000-0000-0000-0000-000000000000');
begin
  if cursor is null then
    return v_position;
  end if;
  if cursor ~ '^[A-Za-z0-9_-]{32}$' then
    v_bytes := decode(translate(cursor, '-_', '+/'), 'base64');
    -- Since 2000, as Postgres sends a time. Days and the rest apart, for an interval of microseconds alone is not exact.
    v_microseconds := ('x' || encode(substr(v_bytes, 1, 8), 'hex'))::bit(64)::bigint;
    v_position.id := encode(substr(v_bytes, 9), 'hex')::uuid;
    if v_microseconds = 9223372036854775807 then
      v_position.starts_at := 'infinity';
      return v_position;
    elsif v_microseconds / 86400000000 between -40000 and 3000000 then
      v_position.starts_at := (
        timestamp '2000-01-01'
        + make_interval(days => (v_microseconds / 86400000000)::integer)
        + (v_microseconds % 86400000000) * interval '1 microsecond'
      ) at time zone 'UTC';
      return v_position;
    end if;
  end if;
  perform private.refuse(
    422, 'validation_failed', 'The cursor is not valid.', 'cursor',
    hint => 'Send next_cursor of the previous page in the same order unchanged, or leave the cursor out to start again.'
  );
end
$$;
grant execute on function private.after_start_cursor to scope_events_read;

-- A list operation builds one item more than the page has; where items are large (events, orders, attendees, notifications), it stops
-- at the first that is too much in bytes. The surplus item shows that there is more. Answers are json, not jsonb, throughout: the fields
-- keep the order in which they are written.
--
-- Whoever does not continue after the id of the last item gives the cursor of each item.
create function private.page(items json[], size integer, cursors text[] default null) returns json
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
    'next_cursor', case
      when cardinality(items) > v_kept then coalesce(cursors[v_kept], private.encode_cursor((items[v_kept] ->> 'id')::uuid))
    end
  );
end
$$;
grant execute on function private.page to api_key;

-- schemas/00-ground/search.sql

-- Searching people by any part of a name, an e-mail address, a company or an identifier, whatever its case and accents. Each attendee
-- has one text to be searched (attendees.search_text), with an index of its trigrams. Two things shape that index:
-- * Under row level security the planner uses no trigram index, for its operators are not leakproof. So a security definer function
--   finds ids, as for every list (00-ground/pages.sql), and compares the organisation itself.
-- * It has the hash of the organisation beside the trigrams, so that a search costs the same whatever other organisations have. No other
--   index has that hash, so the planner has no other way.

-- Both are trusted, so the role postgres of a hosted project may create them.
create extension if not exists pg_trgm with schema extensions;
create extension if not exists btree_gin with schema extensions;

-- The form in which texts are compared: lower case, in the compatibility decomposition of Unicode, without combining accents. Some Latin
-- letters have no decomposition; they become what is typed in their place.
create function private.search_form(text text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  if octet_length(text) > length(text) then
    text := translate(regexp_replace(normalize(text, nfkd), '[\u0300-\u036f]', '', 'g'), 'øØłŁđĐðÐħĦıŧŦ', 'ooLLddddhhitt');
    text := replace(replace(replace(text, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
    text := replace(replace(replace(replace(text, 'Æ', 'ae'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th');
  end if;
  return lower(text);
end
$$;
-- Members add and edit rows of tables with indexes by it.
grant execute on function private.search_form to api_key, authenticated;

-- The words of a search as patterns for `like all`, the longest first: these read least of the index. Refuses what would match nearly
-- everything.
create function private.search_patterns(search text) returns text[]
language plpgsql stable set search_path = ''
as $$
declare
  v_patterns text[] := array(
    select '%' || regexp_replace(w.word, '([\\%_])', '\\\1', 'g') || '%'
    from (select distinct w.word from regexp_split_to_table(private.search_form(search), '\s+') w (word)) w
    where w.word <> ''
    order by length(w.word) desc, w.word
  );
begin
  if length(btrim(search)) > 100 or coalesce(length(v_patterns[1]), 0) < 5 then
    perform private.refuse_value(
      'search', 'A search has 3 to 100 characters, with a word of at least 3.', 'Write more of the name or the e-mail address.'
    );
  end if;
  return v_patterns;
end
$$;
grant execute on function private.search_patterns to api_key;

-- schemas/00-ground/time-limits.sql

-- The time that a statement has: statement_timeout, 8 s for the roles of the API. Work on a list ends before it, and says what remains.

-- Whether a third of it is used up: the rest is for the part in hand and the answer on a slow machine, and for whoever waits for this one's
-- locks and has a part to do after it. Without a time-out there is no end.
create function private.is_time_up() returns boolean
language plpgsql volatile set search_path = ''
as $$
declare
  v_limit interval := current_setting('statement_timeout');
begin
  return v_limit > interval '0' and clock_timestamp() > statement_timestamp() + v_limit / 3;
end
$$;
grant execute on function private.is_time_up to scope_attendees_write, scope_checkin_write;

-- From now on, a wait for a lock ends while there is time for a part: called before each wait, for they add up. Whoever holds the lock goes
-- on meanwhile, so the same request may be sent again, which is no help to a statement that has too much to do.
create function private.limit_lock_waits() returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_limit interval := current_setting('statement_timeout');
  v_left interval := statement_timestamp() + v_limit * 0.6 - clock_timestamp();
begin
  if v_limit > interval '0' then
    -- Any statement may wait a moment, as for a table that another one extends.
    perform set_config('lock_timeout', ceil(greatest(date_part('epoch', v_left), 1) * 1000)::text, true);
  end if;
end
$$;
grant execute on function private.limit_lock_waits to scope_attendees_write, scope_checkin_write;

-- schemas/00-ground/guards.sql

-- Trigger functions that several tables share. private.tg__assert_* raise unless the condition in their name holds;
-- private.tg__refuse_* always raise.

-- Arguments: columns that are fixed once the row exists. The trigger is `before update of` the same columns, so that no
-- other update pays for it.
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

-- Arguments: a hint, then columns that Usher maintains. Writing back the present value passes; any other value is refused,
-- because it would be overwritten silently. On insert they must be null.
create function private.tg__assert_derived_untouched() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_column text;
begin
  foreach v_column in array tg_argv[1:] loop
    if to_jsonb(new) -> v_column is distinct from coalesce(to_jsonb(old) -> v_column, 'null')
      -- SQL that sets updated_at = now() itself passes: that is the value it gets.
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
  perform private.assert_valid_name(new.name);
  return new;
end
$$;

-- Refuses to delete a row that is referenced. Arguments: message, hint, and each `table.column` that may refer to the row.
-- The foreign keys remain behind it.
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

-- For triggers whose `when` says which value is refused. Arguments: param, message and an optional hint.
create function private.tg__refuse_value() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_value(tg_argv[0], tg_argv[1], tg_argv[2]);
  return new;
end
$$;

-- Truncate fires no row triggers, so counts and logs would miss it.
create function private.tg__refuse_truncate() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(409, 'append_only', 'This table cannot be truncated.', hint => 'Delete or cancel rows instead.');
end
$$;

-- Rows below an event belong to its organisation, so an insert may leave the organisation out.
create function private.tg__inherit_organisation() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.organisation_id is null then
    select e.organisation_id into new.organisation_id from public.events e where e.id = new.event_id;
  end if;
  return new;
end
$$;

-- A row that is saved as it is keeps its updated_at. Most tables say so in the trigger's `when`, which cannot refer to a row with
-- generated columns: NEW has none of them yet, so they are the arguments here. What triggers write, one level deeper, always changes
-- something, and is not compared: registrations and payments do not pay for it.
create function private.tg__set_updated_at() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if tg_nargs > 0 and pg_trigger_depth() = 1 and to_jsonb(new) - tg_argv = to_jsonb(old) - tg_argv then
    return new;
  end if;
  new.updated_at := now();
  return new;
end
$$;

-- The version is the ETag of the object; an edit may name the version it is based on. The `when` of each trigger, or on orders and
-- attendees the guard, says which columns are edited: a value that is written as it was is no edit.
create function private.tg__count_version() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;

-- Arguments: the message, and a hint where there is one.
create function private.tg__assert_append_only() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Deleting an API key empties recorded_by.
  if tg_op = 'UPDATE' and new.recorded_by is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
    return new;
  end if;
  perform private.refuse(409, 'append_only', tg_argv[0], hint => tg_argv[1]);
  return null;
end
$$;

-- A row without an organisation gets the only one that may be meant. An API key names its own.
create function private.tg__fill_organisation() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.organisation_id is null and private.current_api_key_id() is null then
    new.organisation_id := private.organisation_meant(null, '{owner,manager}');
  end if;
  return new;
end
$$;

-- Postgres refuses a write to a view of several tables with SQLSTATE 55000, before it looks at privileges, and PostgREST makes a 500 of that.
-- With these triggers a member is refused for want of the privilege, as with a table, and an organiser in Studio reads a sentence.
create function private.tg__refuse_write() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    405, 'method_not_allowed', 'This is a view: it is only read.', hint => 'Change the rows of the tables that it shows.'
  );
  return null;
end
$$;

-- schemas/00-ground/personal-data.sql

-- Personal data: each column that holds something of a person is declared here, by the file of its table, with what stands in its place
-- once the person is erased. Erasure and the purge read the declarations, for what the audit trail holds as well.
-- test/database/60-attendees/personal-data.test.ts asks for a decision about every column of a table of people.

create table private.personal_columns (
  table_name name not null,
  column_name name not null,
  -- What an erased row has instead. A JSON null is an empty column.
  erased_as jsonb not null,
  -- Its name in answers and in the data of notifications. Null: it is in none.
  field text,
  constraint personal_columns_pkey primary key (table_name, column_name)
);
comment on table private.personal_columns is 'Columns that hold something of a person, and what replaces it when the person is erased.';
revoke all on private.personal_columns from anon, authenticated, service_role;
alter table private.personal_columns enable row level security;

-- The set list of an update that erases rows of a table.
create function private.erasing_assignments("table" name) returns text
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select string_agg(format('%I = %L', c.column_name, c.erased_as #>> '{}'), ', ' order by c.column_name)
    from private.personal_columns c
    where c.table_name = "table"
  );
end
$$;

-- Fields of a document, with what replaces them.
create function private.erased_fields() returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (select jsonb_object_agg(c.field, c.erased_as) from private.personal_columns c where c.field is not null);
end
$$;

-- schemas/00-ground/batches.sql

-- Batches: calls of one operation by one key that reach the gateway while others are in flight, as one RPC. Each gets the outcome,
-- the idempotency record and the error that a call of its own would have given.

-- The calls in their order, their idempotency keys locked in one order for all batches.
create function private.calls_of_batch(calls jsonb) returns jsonb[]
language plpgsql volatile set search_path = ''
as $$
begin
  if jsonb_array_length(calls) not between 1 and 100 then
    perform private.refuse_value('calls', 'A batch has 1 to 100 calls.');
  end if;
  perform private.lock_idempotency_key(c ->> 'idempotency_key')
  from jsonb_array_elements(calls) c
  where c ? 'idempotency_key'
  order by c ->> 'idempotency_key';
  return array(select c.call from jsonb_array_elements(calls) with ordinality c (call, place) order by c.place);
end
$$;
grant execute on function private.calls_of_batch to api_key;

-- Answers each call with { outcome }, or { error } as the Data API reports it, or {}: the call is to be sent on its own, because
-- what refused it may be another call of the batch, or passing. `operation` names a function in schema private that answers an
-- outcome for each call, or raises. The batch is tried as a whole; when something in it is refused, calls are tried one by one, and
-- after four successes by twice as many after each. So a call is tried twice where many are refused, as once tickets are sold out, and
-- hardly three times where one is.
create function private.answer_calls(operation text, calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_answers json[] := '{}';
  v_size integer := cardinality(calls);
  v_successes integer := 0;
  v_tried jsonb[];
  v_outcomes json[];
  v_message text;
  v_detail text;
  v_hint text;
begin
  while cardinality(v_answers) < cardinality(calls) loop
    v_tried := calls[cardinality(v_answers) + 1:cardinality(v_answers) + v_size];
    begin
      set constraints all deferred;
      execute format('select private.%I($1)', operation) into v_outcomes using v_tried;
      -- What deferred triggers do, or refuse, is part of the attempt.
      set constraints all immediate;
      v_answers := v_answers || array(
        select json_build_object('outcome', o.outcome) from unnest(v_outcomes) with ordinality o (outcome, place) order by o.place
      );
      v_successes := v_successes + 1;
      if v_successes >= 4 then
        v_size := 2 * v_size;
      end if;
    exception
      when serialization_failure or deadlock_detected or lock_not_available then
        raise;
      when others then
        v_size := 1;
        v_successes := 0;
        if cardinality(v_tried) = 1 then
          get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
          -- refuse_taken leaves out the id of an object of the same transaction, which here may be that of another call.
          v_answers := v_answers || case
            when sqlstate not like 'PT%' or v_detail::jsonb ->> 'code' = 'already_exists' and v_detail::jsonb -> 'details' is null
              then '{}'::json
            else json_build_object('error', json_build_object(
              'code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint
            ))
          end;
        end if;
    end;
  end loop;
  return v_answers;
end
$$;
grant execute on function private.answer_calls to api_key;

-- schemas/00-ground/read-calls.sql

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

-- schemas/00-ground/warnings.sql

-- Warnings: what was done, and probably not meant. They refuse nothing, and stand in the outcome beside the object. The rules are in the file
-- warnings.sql of each room, each a function that answers a warning or null.

create function private.warning(code text, message text) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return jsonb_build_object('code', code, 'message', message);
end
$$;
grant execute on function private.warning to api_key;

-- The outcome with those that are not null.
create function private.with_warnings(outcome json, variadic warnings jsonb[]) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  warnings := array_remove(warnings, null);
  if warnings = '{}' then
    return outcome;
  end if;
  -- Built as text, so that the fields keep their order.
  return (left(outcome::text, -1) || ', "warnings": ' || to_json(warnings) || '}')::json;
end
$$;
grant execute on function private.with_warnings to api_key;

-- schemas/10-organisations/table.sql

-- Organisations own everything; nothing is visible across them. A plan sets the rate limit of their API keys; members are
-- the people who sign in.

-- What members may do is in docs/organisers.md, "People who sign in", and in the policies of each table.
create type public.organisation_role as enum ('owner', 'manager', 'door', 'viewer');

create table public.plans (
  name text not null,
  rate_limit_per_minute integer not null,
  constraint plans_pkey primary key (name),
  constraint plans_name_is_a_slug check (name ~ '^[a-z][a-z0-9_-]{0,39}$'),
  constraint plans_rate_limit_is_positive check (rate_limit_per_minute > 0)
);
comment on table public.plans is 'Plans of organisations, with their limits. Add a row to offer another plan.';
comment on column public.plans.name is 'Short name: lower-case letters, digits, hyphens and underscores.';
comment on column public.plans.rate_limit_per_minute is 'Requests a minute for each API key of an organisation on this plan.';

insert into public.plans (name, rate_limit_per_minute) values
  ('starter', 600),
  ('standard', 6000),
  ('enterprise', 60000);

create table public.organisations (
  id uuid not null default private.uuid_v7(),
  name text not null,
  slug text not null,
  plan text not null default 'standard',
  reply_to_email text,
  accent_colour text,
  logo_url text,
  logo_error text,
  payment_instructions text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint organisations_pkey primary key (id),
  constraint organisations_slug_key unique (slug),
  constraint organisations_plan_fkey foreign key (plan) references public.plans (name),
  constraint organisations_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint organisations_reply_to_email_is_an_address check (private.is_email_address(reply_to_email)),
  constraint organisations_accent_colour_is_hexadecimal check (accent_colour ~ '^#[0-9a-f]{6}$'),
  constraint organisations_logo_url_is_https check (private.is_courier_url(logo_url)),
  constraint organisations_payment_instructions_are_bounded check (length(payment_instructions) <= 2000),
  constraint organisations_slug_is_a_slug check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')
);
comment on table public.organisations is 'Owners of events. Nothing is visible across organisations.';
comment on column public.organisations.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.organisations.name is 'Name for people; tickets are sent in it.';
comment on column public.organisations.plan is 'Its plan: requests per minute of each key.';
comment on column public.organisations.created_at is 'When the row was added.';
comment on column public.organisations.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.organisations.reply_to_email is 'Where answers to ticket e-mails go.';
comment on column public.organisations.accent_colour is 'Colour of its e-mails and ticket pages, such as #26306b. Empty: that of Usher.';
comment on column public.organisations.logo_url is 'Where its logo is: PNG or JPEG, at most 256 KiB and 2000 by 2000 pixels. Fetched when it changes.';
comment on column public.organisations.logo_error is 'What is wrong with the logo. Empty: nothing. Kept by Usher.';
comment on column public.organisations.payment_instructions is 'How to pay an invoice, for the buyer: account, deadline, reference.';
comment on column public.organisations.slug is 'Short name for addresses and the command line: lower-case letters, digits and hyphens.';

create table public.organisation_members (
  organisation_id uuid not null,
  user_id uuid not null,
  role public.organisation_role not null default 'viewer',
  created_at timestamptz not null default now(),
  constraint organisation_members_pkey primary key (organisation_id, user_id),
  constraint organisation_members_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint organisation_members_user_id_fkey foreign key (user_id)
    references auth.users (id) on delete cascade
);
comment on table public.organisation_members is 'People who may sign in for an organisation, and in which role: owner, manager, door or viewer.';
comment on column public.organisation_members.organisation_id is 'The organisation.';
comment on column public.organisation_members.user_id is 'The person, of auth.users.';
comment on column public.organisation_members.role is 'What they may do: owner, manager, door or viewer.';
comment on column public.organisation_members.created_at is 'When the row was added.';

create index organisation_members_user_id_idx on public.organisation_members (user_id);

-- Security definer: a policy on organisation_members that reads organisation_members would recurse.
create function private.member_organisation_ids() returns setof uuid
language sql stable security definer set search_path = ''
as $$
  select m.organisation_id from public.organisation_members m where m.user_id = (select auth.uid())
$$;
grant execute on function private.member_organisation_ids to authenticated;

-- Organisations of the caller in one of these roles. Security definer for the same reason.
create function private.organisations_as(roles public.organisation_role[]) returns setof uuid
language sql stable security definer set search_path = ''
as $$
  select m.organisation_id from public.organisation_members m
  where m.user_id = (select auth.uid()) and m.role = any (roles)
$$;
grant execute on function private.organisations_as to authenticated;

-- A member cannot take the last owner away, themselves included; Studio can. One change of owners at a time. Security definer: a
-- member may lock no organisation.
create function private.tg_organisation_members__keep_an_owner() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if private.claims() ->> 'role' is distinct from 'authenticated' or tg_op = 'UPDATE' and new.role = 'owner' then
    return coalesce(new, old);
  end if;
  perform 1 from public.organisations o where o.id = old.organisation_id for no key update;
  if not exists (
    select from public.organisation_members m
    where m.organisation_id = old.organisation_id and m.user_id <> old.user_id and m.role = 'owner'
  ) then
    perform private.refuse(
      409, 'last_owner', 'An organisation keeps at least one owner.', 'role', hint => 'Make somebody else an owner first.'
    );
  end if;
  return coalesce(new, old);
end
$$;
create trigger organisation_members_100_keep_an_owner before update or delete on public.organisation_members
  for each row when (old.role = 'owner') execute function private.tg_organisation_members__keep_an_owner();

-- A field that Studio leaves blank is empty.
create function private.tg_organisations__normalise() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.accent_colour := nullif(lower(btrim(new.accent_colour)), '');
  new.logo_url := nullif(btrim(new.logo_url), '');
  new.payment_instructions := nullif(btrim(new.payment_instructions, E' \t\r\n'), '');
  return new;
end
$$;

create trigger organisations_050_derived before update of created_at, updated_at on public.organisations
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'created_at', 'updated_at');
create trigger organisations_050_logo_error before insert or update of logo_error on public.organisations
  for each row when (pg_trigger_depth() = 0)
  execute function private.tg__assert_derived_untouched('Set logo_url again to have the logo fetched again.', 'logo_error');
create trigger organisations_100_in_use before delete on public.organisations
  for each row execute function private.tg__assert_not_in_use(
    'The organisation is in use: it has events.', 'Revoke its API keys and remove its members instead.', 'events.organisation_id'
  );
create trigger organisations_200_normalise before insert or update of accent_colour, logo_url, payment_instructions on public.organisations
  for each row execute function private.tg_organisations__normalise();
create trigger organisations_300_name before insert or update of name on public.organisations
  for each row execute function private.tg__assert_name();
create trigger organisations_300_reply_to_email before insert or update of reply_to_email on public.organisations
  for each row when (not private.is_email_address(new.reply_to_email))
  execute function private.tg__refuse_value(
    'reply_to_email', 'This is not an e-mail address.', 'Write it as in name@example.com, or leave it empty.'
  );
create trigger organisations_300_accent_colour before insert or update of accent_colour on public.organisations
  for each row when (new.accent_colour !~ '^#[0-9a-f]{6}$')
  execute function private.tg__refuse_value(
    'accent_colour', 'A colour is written as # and six hexadecimal digits.', 'Write it as in #26306b, or leave it empty.'
  );
create trigger organisations_300_logo_url before insert or update of logo_url on public.organisations
  for each row when (not private.is_courier_url(new.logo_url))
  execute function private.tg__refuse_value(
    'logo_url', 'The URL of a logo is an https address without a password.', 'Give the address of a PNG or JPEG, or leave it empty.'
  );
create trigger organisations_300_payment_instructions before insert or update of payment_instructions on public.organisations
  for each row when (length(new.payment_instructions) > 2000)
  execute function private.tg__refuse_value(
    'payment_instructions', 'Payment instructions have at most 2000 characters.', 'Write less, or link to a page.'
  );
create trigger organisations_900_updated_at before update on public.organisations
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();

-- Default privileges of a Supabase project grant every new table to these three roles, so each table revokes them first.
revoke all on public.plans, public.organisations, public.organisation_members from anon, authenticated, service_role;

alter table public.plans enable row level security;
create policy plans_select_all on public.plans for select to api_key, authenticated using (true);
grant select on public.plans to api_key, authenticated;

alter table public.organisations enable row level security;
create policy organisations_select_own on public.organisations for select to api_key
  using (id = (select private.current_organisation_id()));
create policy organisations_select_membership on public.organisations for select to authenticated
  using (id in (select private.member_organisation_ids()));
create policy organisations_update_ownership on public.organisations for update to authenticated
  using (id in (select private.organisations_as('{owner}')));
grant select on public.organisations to api_key, authenticated;
grant update (name, slug, reply_to_email, accent_colour, logo_url, payment_instructions) on public.organisations to authenticated;

alter table public.organisation_members enable row level security;
create policy organisation_members_select_membership on public.organisation_members for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy organisation_members_insert_ownership on public.organisation_members for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner}')));
create policy organisation_members_update_ownership on public.organisation_members for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
create policy organisation_members_delete_ownership on public.organisation_members for delete to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
grant select, delete on public.organisation_members to authenticated;
grant insert (organisation_id, user_id, role) on public.organisation_members to authenticated;
grant update (role) on public.organisation_members to authenticated;

-- schemas/00-ground/idempotency.sql

-- Idempotency: the first outcome of a write is stored in the same transaction as its effect, and replayed when the request
-- is repeated. An error rolls back effect and record alike, so repeating the request tries again.

create table private.idempotency_records (
  organisation_id uuid not null,
  family_id uuid not null,
  idempotency_key text not null,
  request_fingerprint text not null,
  outcome json not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '24 hours',
  constraint idempotency_records_pkey primary key (family_id, idempotency_key),
  constraint idempotency_records_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint idempotency_records_key_is_bounded check (length(idempotency_key) between 1 and 255)
);
comment on table private.idempotency_records is 'First outcomes of writes, for 24 hours. An idempotency key belongs to a family of API keys: it survives a rotation, and another integration cannot collide with it.';

-- By the order, where the outcome tells of no other: for private.erase_copies.
create index idempotency_records_organisation_id_order_id_idx on private.idempotency_records (
  organisation_id,
  (
    case outcome #>> '{data,object}'
      when 'order' then outcome #>> '{data,id}'
      when 'attendee' then outcome #>> '{data,order_id}'
      else ''
    end
  )
);
create index idempotency_records_expires_at_idx on private.idempotency_records (expires_at);

alter table private.idempotency_records enable row level security;

-- The role is part of the fingerprint: an outcome is never replayed to another scope, whatever fingerprint comes with the
-- key.
create function private.fingerprint_for_role(request_fingerprint text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return concat_ws(' ', private.claims() ->> 'role', request_fingerprint);
end
$$;

-- Until the end of the transaction. Nothing to lock without a key of the API.
create function private.lock_idempotency_key(idempotency_key text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(private.claims() ->> 'family_id' || ' ' || idempotency_key, 0));
end
$$;
grant execute on function private.lock_idempotency_key to api_key;

-- The outcome to replay, or null to go ahead. A concurrent request with the same key waits here until the first ends, and
-- then finds its record.
-- Security definer, as record_outcome is: records are read and written only through these two.
create function private.replay_outcome(idempotency_key text, request_fingerprint text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_family_id uuid;
  v_record private.idempotency_records;
begin
  if idempotency_key is null then
    return null;
  end if;
  v_family_id := (private.claims() ->> 'family_id')::uuid;
  if v_family_id is null then
    return null;
  end if;

  perform private.lock_idempotency_key(idempotency_key);
  select r.* into v_record
  from private.idempotency_records r
  where r.family_id = v_family_id
    and r.idempotency_key = replay_outcome.idempotency_key
    and r.expires_at > now();
  if not found then
    return null;
  end if;

  if v_record.request_fingerprint is distinct from private.fingerprint_for_role(replay_outcome.request_fingerprint) then
    perform private.refuse(
      422, 'idempotency_key_reused', 'This idempotency key was used for a different request.', 'idempotency_key',
      hint => 'Repeat the first request unchanged, or send a new key.'
    );
  end if;
  -- Built as text, so that the fields keep their order.
  return ('{"replayed": true, ' || substr(v_record.outcome::text, 2))::json;
end
$$;
grant execute on function private.replay_outcome to api_key;

-- Stores the outcome under the key and returns it. An expired record that is not purged yet is overwritten. A dry run has no
-- effect and stores nothing.
create function private.record_outcome(
  idempotency_key text,
  request_fingerprint text,
  outcome json,
  dry_run boolean default null
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if idempotency_key is not null and dry_run is not true and private.claims() ? 'family_id' then
    insert into private.idempotency_records as r
      (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
    values (
      private.current_organisation_id(),
      (private.claims() ->> 'family_id')::uuid,
      record_outcome.idempotency_key,
      private.fingerprint_for_role(record_outcome.request_fingerprint),
      record_outcome.outcome
    )
    on conflict on constraint idempotency_records_pkey do update
      set request_fingerprint = excluded.request_fingerprint,
        outcome = excluded.outcome,
        created_at = excluded.created_at,
        expires_at = excluded.expires_at;
  end if;
  return outcome;
end
$$;
grant execute on function private.record_outcome to api_key;

-- Last step of a dry run: raises UD001, which the operation itself catches, so that all its effects are rolled back.
create function private.undo_if_dry_run(dry_run boolean) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if dry_run then
    raise exception using errcode = 'UD001', message = 'Dry run.';
  end if;
end
$$;
grant execute on function private.undo_if_dry_run to api_key;

-- What a write does besides its object. `affected` has orders, attendees, refund_due and currency; `notice` is what private.tell answers, or
-- why nobody is told.
create function private.effect_json(dry_run boolean, affected jsonb, notice jsonb default null) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return json_build_object(
    'dry_run', coalesce(dry_run, false),
    'orders', affected -> 'orders',
    'attendees', affected -> 'attendees',
    'waiting_list', coalesce(affected -> 'waiting_list', '0'),
    'emails', coalesce(notice -> 'emails', '0'),
    'told', coalesce(notice -> 'told', '0'),
    'not_told', coalesce(notice -> 'not_told', case (affected ->> 'attendees')::integer when 0 then '[]' else jsonb_build_array(
      jsonb_build_object('reason', coalesce(notice ->> 'nobody_because', 'notify_nobody'), 'count', affected -> 'attendees')
    ) end),
    'refund_due', affected -> 'refund_due',
    'currency', affected -> 'currency'
  );
end
$$;
grant execute on function private.effect_json to api_key;

-- schemas/10-organisations/api-keys.sql

-- API keys: created once, shown once, stored as a SHA-256 hash. The gateway resolves a hash to a principal; from then on
-- every request carries the key's id in its token and is checked again in its own transaction, so a revocation takes effect
-- at once.

create table public.api_keys (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  family_id uuid not null,
  name text not null,
  prefix text not null,
  scopes public.api_scope[] not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint api_keys_pkey primary key (id),
  constraint api_keys_prefix_key unique (prefix),
  constraint api_keys_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint api_keys_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint api_keys_prefix_is_of_a_live_key check (prefix ~ '^usher_live_[0-9A-Za-z]{8}$'),
  constraint api_keys_scopes_are_chosen check (cardinality(scopes) > 0 and array_position(scopes, null) is null)
);
comment on table public.api_keys is 'API keys of an organisation, without their secrets. Set revoked_at to refuse a key from its next request on.';
comment on column public.api_keys.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.api_keys.organisation_id is 'The organisation that it belongs to.';
comment on column public.api_keys.name is 'What it is for, for people.';
comment on column public.api_keys.scopes is 'What it may do.';
comment on column public.api_keys.expires_at is 'From when on it is refused. Empty: it does not expire.';
comment on column public.api_keys.revoked_at is 'Set it to refuse the key at once, for good.';
comment on column public.api_keys.created_at is 'When the row was added.';
comment on column public.api_keys.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.api_keys.family_id is
  'Shared by keys that replace one another by rotation. Idempotency keys and the rate limit belong to the family, so a rotation between two tries doubles neither an order nor the allowance.';
comment on column public.api_keys.prefix is 'First characters of the key, to recognise it by. The key itself is not stored.';
comment on column public.api_keys.last_used_at is 'Stamped at most once a minute.';

create index api_keys_organisation_id_idx on public.api_keys (organisation_id);

-- In schema private: no table that an organiser may read contains anything of the secret.
create table private.api_key_hashes (
  key_hash bytea not null,
  api_key_id uuid not null,
  constraint api_key_hashes_pkey primary key (key_hash),
  constraint api_key_hashes_api_key_id_key unique (api_key_id),
  constraint api_key_hashes_api_key_id_fkey foreign key (api_key_id)
    references public.api_keys (id) on delete cascade,
  constraint api_key_hashes_key_hash_is_sha256 check (octet_length(key_hash) = 32)
);
comment on table private.api_key_hashes is 'SHA-256 of each whole API key.';

alter table private.api_key_hashes enable row level security;

-- Scopes of the calling key as they are now.
create function private.current_scopes() returns public.api_scope[]
language plpgsql stable set search_path = ''
as $$
begin
  return (select k.scopes from public.api_keys k where k.id = private.current_api_key_id());
end
$$;
grant execute on function private.current_scopes to api_key;

-- Whether it is told of money.
create function private.reads_orders() returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce('orders:read' = any (private.current_scopes()), false);
end
$$;

create function private.is_usable_key(key public.api_keys) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return key.id is not null and key.revoked_at is null and coalesce(key.expires_at > now(), true);
end
$$;

-- 401 for a key that is unknown, revoked or expired.
create function private.refuse_key(key public.api_keys) returns void
language plpgsql stable set search_path = ''
as $$
begin
  if key.id is null then
    perform private.refuse(401, 'invalid_api_key', 'The API key is not valid.', hint => 'Send a live key of your organisation.');
  elsif key.revoked_at is not null then
    perform private.refuse(401, 'api_key_revoked', 'The API key was revoked.', hint => 'Use another key, or create one.');
  end if;
  perform private.refuse(401, 'api_key_expired', 'The API key has expired.', hint => 'Use another key, or create one.');
end
$$;

create function private.tg_api_keys__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    new.family_id := coalesce(new.family_id, new.id);
  elsif old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at then
    perform private.refuse(
      409, 'api_key_revoked', 'A revoked API key stays revoked.', 'revoked_at', hint => 'Create a new key.'
    );
  elsif old.revoked_at is null and new.revoked_at is not null then
    -- Always now(), whatever moment was given: a key is revoked or it is not. A later end is set in expires_at.
    new.revoked_at := now();
  end if;
  return new;
end
$$;
create trigger api_keys_050_derived before update of created_at, updated_at on public.api_keys
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'created_at', 'updated_at');
create trigger api_keys_100_guard before insert or update on public.api_keys
  for each row execute function private.tg_api_keys__guard();
create trigger api_keys_300_name before insert or update of name on public.api_keys
  for each row execute function private.tg__assert_name();
create trigger api_keys_900_updated_at before update of name, scopes, expires_at, revoked_at on public.api_keys
  for each row execute function private.tg__set_updated_at();

revoke all on public.api_keys from anon, authenticated, service_role;

alter table public.api_keys enable row level security;
create policy api_keys_select_itself on public.api_keys for select to api_key
  using (id = (select private.current_api_key_id()));
create policy api_keys_select_ownership on public.api_keys for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
create policy api_keys_update_ownership on public.api_keys for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
grant select on public.api_keys to api_key, authenticated;
grant update (name, scopes, expires_at, revoked_at) on public.api_keys to authenticated;

-- Security definer: gateway may read no table. last_used_at is stamped here and not in check_request, because most requests
-- are reads, in transactions that may not write; the gateway resolves a key again every minute.
create function api.resolve_api_key(key_hash text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key public.api_keys;
begin
  select k.* into v_key
  from private.api_key_hashes h
  join public.api_keys k on k.id = h.api_key_id
  where h.key_hash = decode(resolve_api_key.key_hash, 'hex');

  if not private.is_usable_key(v_key) then
    perform private.refuse_key(v_key);
  end if;

  update public.api_keys k set last_used_at = now()
  where k.id = v_key.id and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute');

  return (
    select json_build_object(
      'api_key_id', v_key.id,
      'family_id', v_key.family_id,
      'organisation_id', v_key.organisation_id,
      'scopes', to_jsonb(v_key.scopes),
      'rate_limit_per_minute', p.rate_limit_per_minute
    )
    from public.organisations o
    join public.plans p on p.name = o.plan
    where o.id = v_key.organisation_id
  );
end
$$;
comment on function api.resolve_api_key is
  'The principal behind a key: { api_key_id, family_id, organisation_id, scopes, rate_limit_per_minute }. Takes the SHA-256 of the key in hex. 401 when the key is unknown, revoked or expired.';
grant execute on function api.resolve_api_key to gateway;

-- PostgREST runs it first in every request, in the same transaction and as the role of the token. It checks the key as it is
-- now: the gateway may cache a principal for a minute, this function may not.
-- Security definer: it must see the key whatever the role may see.
create function private.check_request() returns void
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
  v_role text := v_claims ->> 'role';
  v_scope public.api_scope;
  v_headers json;
  v_key public.api_keys;
begin
  if v_role <> 'api_key' and v_role not like 'scope\_%' then
    return;
  end if;
  -- Schema public is behind the Data API for people who sign in. A key calls functions of schema api, and nothing else.
  v_headers := current_setting('request.headers', true);
  if current_setting('request.path', true) not like '/rpc/%'
    or coalesce(v_headers ->> 'content-profile', 'api') <> 'api'
    or coalesce(v_headers ->> 'accept-profile', 'api') <> 'api' then
    perform private.refuse(403, 'forbidden', 'API keys call functions of schema api only.');
  end if;

  select k.* into v_key
  from public.api_keys k
  where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = (v_claims ->> 'organisation_id')::uuid;

  if not private.is_usable_key(v_key) then
    perform private.refuse_key(v_key);
  end if;

  if v_role <> 'api_key' then
    v_scope := private.scope_of_role(v_role);
    if v_scope <> all (v_key.scopes) then
      perform private.refuse(
        403, 'missing_scope', 'The API key lacks the scope this operation needs.',
        details => jsonb_build_object('scope', v_scope),
        hint => 'Use a key that has the scope, or add the scope to this key.'
      );
    end if;
  end if;
end
$$;
comment on function private.check_request is 'PostgREST pre-request: refuses a revoked, expired or down-scoped key inside the request''s own transaction.';
grant execute on function private.check_request to gateway, api_key, courier, authenticated, service_role;

alter role authenticator set pgrst.db_pre_request = 'private.check_request';

create function api.get_api_key() returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'api_key',
      'id', k.id,
      'name', k.name,
      'prefix', k.prefix,
      'scopes', to_jsonb(k.scopes),
      'organisation', json_build_object(
        'object', 'organisation',
        'id', o.id,
        'name', o.name,
        'slug', o.slug,
        'plan', o.plan
      ),
      'rate_limit_per_minute', p.rate_limit_per_minute,
      'expires_at', private.rfc3339(k.expires_at),
      'created_at', private.rfc3339(k.created_at),
      'updated_at', private.rfc3339(k.updated_at)
    )
    from public.api_keys k
    join public.organisations o on o.id = k.organisation_id
    join public.plans p on p.name = o.plan
    where k.id = (select private.current_api_key_id())
  );
end
$$;
comment on function api.get_api_key is 'The calling key: its organisation, scopes and rate limit.';
grant execute on function api.get_api_key to api_key;

-- For the command line, which generates the key and passes its hash: the key itself never reaches the database.
create function private.create_api_key(
  organisation_slug text,
  name text,
  scopes public.api_scope[],
  prefix text,
  key_hash bytea,
  expires_at timestamptz default null,
  family_id uuid default null
) returns public.api_keys
language plpgsql volatile set search_path = ''
as $$
declare
  v_organisation_id uuid;
  v_key public.api_keys;
begin
  select o.id into v_organisation_id from public.organisations o where o.slug = organisation_slug;
  if not found then
    perform private.refuse(
      404, 'not_found', 'There is no organisation with this slug.', 'organisation',
      hint => 'Create it first: usher organisations create.'
    );
  end if;

  insert into public.api_keys (organisation_id, family_id, name, prefix, scopes, expires_at)
  values (
    v_organisation_id, create_api_key.family_id, create_api_key.name, create_api_key.prefix,
    create_api_key.scopes, create_api_key.expires_at
  )
  returning * into v_key;

  insert into private.api_key_hashes (api_key_id, key_hash) values (v_key.id, create_api_key.key_hash);
  return v_key;
end
$$;

-- The new key takes over name, scopes, expiry and family; the old one works until the overlap ends.
create function private.rotate_api_key(prefix text, new_prefix text, new_key_hash bytea, overlap interval)
returns public.api_keys
language plpgsql volatile set search_path = ''
as $$
declare
  v_old public.api_keys;
begin
  select k.* into v_old from public.api_keys k where k.prefix = rotate_api_key.prefix for no key update;
  if not found then
    perform private.refuse(404, 'not_found', 'There is no API key with this prefix.', 'prefix', hint => 'usher keys list shows them.');
  end if;
  if not private.is_usable_key(v_old) then
    perform private.refuse_key(v_old);
  end if;
  if exists (select from public.api_keys k where k.family_id = v_old.family_id and k.id > v_old.id) then
    perform private.refuse(
      409, 'api_key_rotated', 'This API key was rotated before and is about to expire.', 'prefix',
      hint => 'Rotate the key that replaced it: usher keys list shows it.'
    );
  end if;

  update public.api_keys k set expires_at = least(k.expires_at, now() + overlap) where k.id = v_old.id;

  return private.create_api_key(
    (select o.slug from public.organisations o where o.id = v_old.organisation_id),
    v_old.name, v_old.scopes, new_prefix, new_key_hash, v_old.expires_at, v_old.family_id
  );
end
$$;

-- schemas/20-events/table.sql

-- Events: draft -> published -> cancelled | completed; back to draft only while there is no order, and from completed back to published
-- until the end. A draft may be deleted.

create type public.event_status as enum ('draft', 'published', 'cancelled', 'completed');
-- The current time relative to the event; worked out, never stored. A draft is upcoming, whatever its dates: nothing takes place before
-- it is published.
create type public.event_phase as enum ('upcoming', 'ongoing', 'ended');
-- The languages of guests: the same as in src/operations/locales.ts.
create type public.locale as enum ('en', 'de', 'fr', 'es', 'nl');

create table public.events (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  name text not null,
  slug text not null,
  description text,
  status public.event_status not null default 'draft',
  starts_at timestamptz,
  ends_at timestamptz,
  timezone text not null default 'UTC',
  locale public.locale not null default 'en',
  venue_name text,
  venue_address text,
  venue_city text,
  venue_postcode text,
  venue_country text,
  online_url text,
  capacity integer,
  waiting_list_offer_hours integer not null default 24,
  currency text not null default 'EUR',
  payment_due_days integer,
  published_at timestamptz,
  cancelled_at timestamptz,
  completed_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint events_pkey primary key (id),
  constraint events_id_organisation_id_key unique (id, organisation_id),
  constraint events_organisation_id_fkey foreign key (organisation_id) references public.organisations (id),
  constraint events_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint events_slug_is_a_slug check (slug ~ '^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$'),
  constraint events_description_is_bounded check (length(description) <= 20000),
  constraint events_starts_at_and_ends_at_are_finite check (
    starts_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ends_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint events_ends_at_is_after_starts_at check (ends_at > starts_at),
  constraint events_starts_at_and_ends_at_are_set_unless_draft check (status = 'draft' or (starts_at is not null and ends_at is not null)),
  constraint events_venue_is_bounded check (
    length(venue_name) <= 200 and length(venue_address) <= 500
    and length(venue_city) <= 200 and length(venue_postcode) <= 20
  ),
  constraint events_venue_country_is_iso_3166 check (venue_country ~ '^[A-Z]{2}$'),
  constraint events_online_url_is_http check (online_url ~ '^https?://[^[:space:]]+$' and length(online_url) <= 2000),
  constraint events_capacity_is_positive check (capacity > 0),
  constraint events_waiting_list_offer_hours_are_some check (waiting_list_offer_hours between 1 and 720),
  constraint events_currency_is_iso_4217 check (currency ~ '^[A-Z]{3}$'),
  constraint events_payment_due_days_is_1_to_365 check (payment_due_days between 1 and 365),
  constraint events_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint events_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.events is 'Events that people attend. A draft until it has dates and a ticket type and is published.';
comment on column public.events.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.events.organisation_id is 'The organisation that it belongs to.';
comment on column public.events.name is 'Name for people.';
comment on column public.events.slug is 'Short name for addresses: lower-case letters, digits and hyphens; made from the name when left out.';
comment on column public.events.description is 'Text for people.';
comment on column public.events.status is 'draft, published, then cancelled or completed; a completed one may be published again until its end. A draft without orders can be deleted.';
comment on column public.events.starts_at is 'When it starts. Needed to publish.';
comment on column public.events.ends_at is 'When it ends. Needed to publish.';
comment on column public.events.venue_name is 'Name of the place.';
comment on column public.events.venue_address is 'Street and number.';
comment on column public.events.venue_city is 'City.';
comment on column public.events.venue_postcode is 'Postcode.';
comment on column public.events.venue_country is 'ISO 3166 code, two capital letters.';
comment on column public.events.online_url is 'Where it is to be followed on the Internet: http or https, without a user name or password.';
comment on column public.events.published_at is 'When it was last published. Kept by Usher.';
comment on column public.events.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.events.completed_at is 'When it was completed. Kept by Usher.';
comment on column public.events.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.events.created_at is 'When the row was added.';
comment on column public.events.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.events.capacity is 'How many people may hold a ticket, over all ticket types. Empty: only the quantities of the ticket types limit it.';
comment on column public.events.waiting_list_offer_hours is 'For how many hours a place is held for whom the waiting list offers it, 1 to 720.';
comment on column public.events.currency is 'ISO 4217. All prices and orders of the event are in it. A change leaves the numbers of prices and discounts as they are: change them, too. Fixed once there is an order.';
comment on column public.events.payment_due_days is 'How many days an order that is to be paid has until it expires, 1 to 365. Empty: no deadline. Counts for orders made from then on.';
comment on column public.events.timezone is 'IANA name of the zone the event is held in, such as Europe/Berlin.';
comment on column public.events.locale is 'Language in which guests are written to.';
comment on column public.events.external_id is 'Your own identifier, unique within the organisation.';
comment on column public.events.metadata is 'Flat JSON object of your own, at most 50 keys.';

-- Partial indexes, whose columns Postgres does not count as keys: an edit of slug or external_id then does not take the row
-- lock that conflicts with the foreign keys of concurrent registrations.
create unique index events_organisation_id_slug_key on public.events (organisation_id, slug) where slug <> '';
create unique index events_organisation_id_external_id_key on public.events (organisation_id, external_id)
  where external_id is not null;

-- For private.page_of_events and private.page_of_events_by_start.
create index events_organisation_id_status_id_idx on public.events (organisation_id, status, id);
create index events_organisation_id_status_starts_at_idx
  on public.events (organisation_id, status, coalesce(starts_at, 'infinity'::timestamptz), id);

create function private.refuse_transition("from" public.event_status, "to" public.event_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'invalid_transition', 'An event cannot go from its present status to this one.', 'status',
    jsonb_build_object('from', "from", 'to', "to"),
    'Allowed: draft to published; published to draft, cancelled or completed; completed to published until its end.'
  );
end
$$;
grant execute on function private.refuse_transition to scope_events_write;

-- No ticket is issued for an event that has ended, and none is published.
create function private.refuse_ended(param text, ends_at timestamptz) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'event_ended', 'The event has ended.', param, jsonb_build_object('ends_at', private.rfc3339(ends_at)),
    'Give the event a later ends_at first.'
  );
end
$$;

-- Checked for a new order, and for each place that is taken.
create function private.assert_takes_registrations(event public.events) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if event.status <> 'published' then
    perform private.refuse(
      409, 'event_not_published', 'People can be registered only while the event is published.', 'event_id',
      jsonb_build_object('status', event.status), 'Publish the event first; a cancelled or completed event stays closed.'
    );
  elsif event.ends_at <= now() then
    perform private.refuse_ended('event_id', event.ends_at);
  end if;
end
$$;

-- A name in the letters of a slug: "Köln" is koeln, and "Ærø" aeroe. Where two dots only part vowels, as in Noël and reünie, they go.
create function private.slug_form(name text, locale public.locale) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_letters text[] := '{{ø,oe},{Ø,oe}}';
  v_letter text[];
begin
  name := normalize(name, nfc);
  if locale not in ('fr', 'es', 'nl') then
    v_letters := v_letters || '{{ä,ae},{Ä,ae},{ö,oe},{Ö,oe},{ü,ue},{Ü,ue}}'::text[];
  end if;
  foreach v_letter slice 1 in array v_letters loop
    name := replace(name, v_letter[1], v_letter[2]);
  end loop;
  return trim(both '-' from left(trim(both '-' from regexp_replace(private.search_form(name), '[^a-z0-9]+', '-', 'g')), 90));
end
$$;

-- The slug of a name, with six random characters appended where another event has it.
create function private.free_event_slug(organisation_id uuid, name text, locale public.locale) returns text
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_slug text := coalesce(nullif(private.slug_form(name, locale), ''), 'event');
begin
  if exists (
    select from public.events e where e.organisation_id = free_event_slug.organisation_id and e.slug = v_slug
  ) then
    v_slug := v_slug || '-' || lower(private.random_code(6));
  end if;
  return v_slug;
end
$$;

-- Security definer: it counts orders and tickets, which the editing role may not be allowed to read.
create function private.tg_events__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name, new.locale));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    -- Registrations hold the event lock shared: none is in flight during the checks below.
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.lock_event_exclusive(new.id);
    end if;

    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed'), ('completed', 'published')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
      );
    end if;

    if old.status <> 'published' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      -- Of an event that is published again all may be archived, as they may be while it is published.
      if old.status = 'draft' and not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    -- Currency and capacity, against what is sold already.
    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity then
      -- A raised quantity is offered to the waiting list without the event lock.
      perform private.lock_event_capacity(new.id);
      if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
        perform private.refuse(
          409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
          jsonb_build_object('places_taken', private.places_taken(new.id))
        );
      end if;
    end if;
  end if;

  -- Unique values. Row level security refuses a foreign row only after this trigger, so nothing is looked up for one: the
  -- answer would reveal values of another organisation.
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else (new.slug, new.external_id) is distinct from (old.slug, old.external_id) end)
    and not private.is_foreign(new.organisation_id) then
    perform private.refuse_taken('slug', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.external_id = new.external_id and e.id <> new.id;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- pg_timezone_names reads files, in some 20 ms, so a zone that another event has is accepted without it.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- A value that stays is not checked: a currency is withdrawn, and an address may be from before the rule.
  if (tg_op = 'INSERT' or new.currency <> old.currency) and not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'The currency is not an ISO 4217 currency in use.', 'Write its three capital letters, such as EUR.'
    );
  end if;
  if (tg_op = 'INSERT' or new.online_url is distinct from old.online_url) and not private.is_web_url(new.online_url) then
    perform private.refuse_value(
      'online_url',
      'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters.',
      'Copy the address again, and leave out what stands before an @ in the name of the server.'
    );
  end if;

  -- The timestamps follow the status.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  new.cancelled_at := case when new.status = 'cancelled' then case when old.status = 'cancelled' then old.cancelled_at else now() end end;
  new.completed_at := case when new.status = 'completed' then case when old.status = 'completed' then old.completed_at else now() end end;
  return new;
end
$$;

-- Deletes a draft with all that was set up for it. The row is locked, and a draft takes nobody, so no order is being made meanwhile.
-- Security definer: whoever deletes an event may not read orders, nor delete what belongs to it.
create function private.tg_events__delete() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (select from public.orders o where o.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: it has orders.',
      hint => case
        when old.status in ('draft', 'published') then 'Cancel it instead: set its status to cancelled.'
        else 'Leave it: its orders stay for those who look them up.'
      end
    );
  elsif old.status <> 'draft' then
    perform private.refuse(
      409, 'in_use', 'The event is in use: only a draft can be deleted.', 'status', jsonb_build_object('status', old.status),
      case old.status
        when 'published' then 'Take it back to draft first, or cancel it.'
        when 'completed' then 'Leave it; until its end it can be published again, and taken back to draft.'
        else 'Leave it: a cancelled event stays for those who look it up.'
      end
    );
  elsif exists (select from public.check_ins c where c.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: tickets were scanned at it, and the log of the door is kept.',
      hint => 'Leave it a draft, or publish and cancel it.'
    );
  end if;
  -- People who wait are taken off the list first, as anybody is.
  update public.waiting_list_entries w set status = 'cancelled' where w.event_id = old.id and w.status in ('waiting', 'offered');
  -- The audit trail forgets them, as when an entry is purged.
  update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
  from public.waiting_list_entries w
  where w.event_id = old.id and e.object_id = w.id and e.changes is not null;
  delete from public.waiting_list_entries w where w.event_id = old.id;
  delete from public.check_in_points p where p.event_id = old.id;
  delete from public.promo_codes c where c.event_id = old.id;
  delete from public.ticket_types t where t.event_id = old.id;
  return old;
end
$$;

create trigger events_050_fill_organisation before insert on public.events
  for each row execute function private.tg__fill_organisation();
create trigger events_050_fixed before update of organisation_id on public.events
  for each row execute function private.tg__assert_unchanged('organisation_id');
create trigger events_050_derived_insert before insert on public.events
  for each row when (num_nonnulls(new.published_at, new.cancelled_at, new.completed_at) > 0)
  execute function private.tg__assert_derived_untouched('Set the status later instead.', 'published_at', 'cancelled_at', 'completed_at');
create trigger events_050_derived_update
  before update of published_at, cancelled_at, completed_at, version, created_at, updated_at on public.events
  for each row execute function private.tg__assert_derived_untouched(
    'Leave it as it is; the timestamps of an event follow its status.',
    'published_at', 'cancelled_at', 'completed_at', 'version', 'created_at', 'updated_at'
  );
create trigger events_100_delete before delete on public.events
  for each row execute function private.tg_events__delete();
create trigger events_100_guard before insert or update on public.events
  for each row execute function private.tg_events__guard();
create trigger events_300_name before insert or update of name on public.events
  for each row execute function private.tg__assert_name();
create trigger events_300_starts_at before update of starts_at on public.events
  for each row when (new.status <> 'draft' and new.starts_at is null)
  execute function private.tg__refuse_value('starts_at', 'Only a draft can be without a start.', 'Set another start instead.');
create trigger events_300_ends_at before update of ends_at on public.events
  for each row when (new.status <> 'draft' and new.ends_at is null)
  execute function private.tg__refuse_value('ends_at', 'Only a draft can be without an end.', 'Set another end instead.');
create trigger events_300_ends_at_is_after_starts_at before insert or update of starts_at, ends_at on public.events
  for each row when (new.ends_at <= new.starts_at)
  execute function private.tg__refuse_value('ends_at', 'An event ends after it starts.', 'Change starts_at and ends_at together.');
create trigger events_300_capacity before insert or update of capacity on public.events
  for each row when (new.capacity <= 0)
  execute function private.tg__refuse_value('capacity', 'A capacity is at least 1.', 'Leave it empty for no limit.');
create trigger events_300_waiting_list_offer_hours before insert or update of waiting_list_offer_hours on public.events
  for each row when (new.waiting_list_offer_hours not between 1 and 720)
  execute function private.tg__refuse_value('waiting_list_offer_hours', 'An offer of the waiting list is held for 1 to 720 hours.');
create trigger events_300_payment_due_days before insert or update of payment_due_days on public.events
  for each row when (new.payment_due_days not between 1 and 365)
  execute function private.tg__refuse_value('payment_due_days', 'A payment deadline is 1 to 365 days.', 'Leave it empty for no deadline.');
create trigger events_900_updated_at before update on public.events
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();
create trigger events_900_version before update on public.events
  for each row when (
    new.name is distinct from old.name or new.slug is distinct from old.slug
    or new.description is distinct from old.description or new.status is distinct from old.status
    or new.starts_at is distinct from old.starts_at or new.ends_at is distinct from old.ends_at
    or new.timezone is distinct from old.timezone or new.locale is distinct from old.locale
    or new.venue_name is distinct from old.venue_name or new.venue_address is distinct from old.venue_address
    or new.venue_city is distinct from old.venue_city or new.venue_postcode is distinct from old.venue_postcode
    or new.venue_country is distinct from old.venue_country or new.online_url is distinct from old.online_url
    or new.capacity is distinct from old.capacity
    or new.waiting_list_offer_hours is distinct from old.waiting_list_offer_hours
    or new.currency is distinct from old.currency or new.payment_due_days is distinct from old.payment_due_days
    or new.external_id is distinct from old.external_id or new.metadata is distinct from old.metadata
  )
  execute function private.tg__count_version();

revoke all on public.events from anon, authenticated, service_role;

alter table public.events enable row level security;
-- Registration and check-in read the event, too; the column grants limit what they see of it.
create policy events_select_own on public.events for select
  to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_insert_own on public.events for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy events_update_own on public.events for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_delete_own on public.events for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_select_membership on public.events for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy events_insert_membership on public.events for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy events_update_membership on public.events for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.events to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id) on public.events to scope_attendees_read;
grant select (id, organisation_id, currency) on public.events to scope_attendees_write;
grant select (id, organisation_id, name, status, starts_at) on public.events to scope_checkin_write;
grant insert (
  organisation_id, name, slug, description, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, currency, payment_due_days, external_id, metadata
) on public.events to scope_events_write, authenticated;
grant update (
  name, slug, description, status, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, currency, payment_due_days, external_id, metadata
) on public.events to scope_events_write, authenticated;
grant delete on public.events to scope_events_write;

create function private.event_phase(event public.events) returns public.event_phase
language plpgsql stable set search_path = ''
as $$
begin
  return case
    when event.status = 'draft' or now() < event.starts_at then 'upcoming'
    when now() < event.ends_at then 'ongoing'
    else 'ended'
  end::public.event_phase;
end
$$;
grant execute on function private.event_phase to scope_events_read, scope_events_write;

create function private.event_json(event public.events) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'event',
    'id', event.id,
    'name', event.name,
    'slug', event.slug,
    'description', event.description,
    'status', event.status,
    'phase', private.event_phase(event),
    'starts_at', private.rfc3339(event.starts_at),
    'ends_at', private.rfc3339(event.ends_at),
    'timezone', event.timezone,
    'locale', event.locale,
    'venue', case
      when num_nonnulls(
        event.venue_name, event.venue_address, event.venue_city, event.venue_postcode, event.venue_country
      ) > 0 then json_build_object(
        'name', event.venue_name,
        'address', event.venue_address,
        'city', event.venue_city,
        'postcode', event.venue_postcode,
        'country', event.venue_country
      )
    end,
    'online_url', event.online_url,
    'capacity', event.capacity,
    'waiting_list_offer_hours', event.waiting_list_offer_hours,
    'currency', event.currency,
    'payment_due_days', event.payment_due_days,
    'published_at', private.rfc3339(event.published_at),
    'cancelled_at', private.rfc3339(event.cancelled_at),
    'completed_at', private.rfc3339(event.completed_at),
    'external_id', event.external_id,
    'metadata', event.metadata,
    'version', event.version,
    'created_at', private.rfc3339(event.created_at),
    'updated_at', private.rfc3339(event.updated_at)
  );
end
$$;
grant execute on function private.event_json to scope_events_read, scope_events_write;

-- schemas/20-events/locks.sql

-- The locks of an event, under which its places are counted and its status, capacity and currency change.

-- The event lock. Registrations hold it shared; a change of status, capacity or currency holds it exclusively until the end of
-- the transaction, so a cancellation never misses a registration in flight. An advisory lock rather than a row lock, because
-- its queue is fair: during an on-sale some transaction always holds the row shared, and the organiser's edit would starve.
-- Where the event has a capacity, registrations go one by one under a second lock: two transactions that hold the first one
-- shared could never both upgrade it. Whatever gives places back takes it as well, and then offers them to the waiting list.
-- Lock order, everywhere: external_ids of a registration, event row, event lock, order, attendee, offer of the waiting list, promo
-- code, capacity lock of the event, ticket type; several of a kind in the order of their ids, ticket
-- types in that of their events first.
create function private.lock_event_exclusive(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(1, hashtext(event_id::text));
end
$$;
grant execute on function private.lock_event_exclusive to scope_events_write;

create function private.lock_event_shared(event_id uuid) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
begin
  perform pg_advisory_xact_lock_shared(1, hashtext(event_id::text));
  -- Read under the lock: no other transaction can change it now.
  select e.* into v_event from public.events e where e.id = lock_event_shared.event_id;
  return v_event;
end
$$;

create function private.lock_event_capacity(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(2, hashtext(event_id::text));
end
$$;
grant execute on function private.lock_event_capacity to scope_events_write;

-- Tickets of the event that are not cancelled, and offers. Volatile, so that it sees what was committed before its caller got the event lock.
create function private.places_taken(event_id uuid) returns bigint
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.event_id = places_taken.event_id
  );
end
$$;

-- schemas/30-ticket-types/table.sql

-- Ticket types: what an event offers, at which price, how many, and when. Never oversold.

create type public.ticket_type_status as enum ('active', 'archived');
create type public.ticket_type_visibility as enum ('public', 'hidden');

create table public.ticket_types (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  name text not null,
  description text,
  price bigint not null default 0,
  quantity integer,
  quantity_sold integer not null default 0,
  quantity_held integer not null default 0,
  min_per_order integer not null default 1,
  max_per_order integer,
  sales_start_at timestamptz,
  sales_end_at timestamptz,
  visibility public.ticket_type_visibility not null default 'public',
  status public.ticket_type_status not null default 'active',
  position integer not null default 0,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint ticket_types_pkey primary key (id),
  constraint ticket_types_id_event_id_key unique (id, event_id),
  constraint ticket_types_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id)
);

-- What holds for every ticket type, whoever writes it. One function: Postgres plans each check constraint anew for every statement.
create function private.is_sound_ticket_type(ticket_type public.ticket_types) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return
    length(btrim(ticket_type.name)) between 1 and 200 and ticket_type.name !~ '[[:cntrl:]]'
    and length(ticket_type.description) <= 20000
    and ticket_type.price between 0 and 100000000000
    and ticket_type.quantity >= 0
    and ticket_type.quantity_sold >= 0
    and ticket_type.quantity_held >= 0
    and ticket_type.quantity_sold + ticket_type.quantity_held <= ticket_type.quantity
    and ticket_type.min_per_order >= 1 and ticket_type.max_per_order >= ticket_type.min_per_order
    and ticket_type.sales_start_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ticket_type.sales_end_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ticket_type.sales_end_at > ticket_type.sales_start_at
    and private.is_sound_extra(ticket_type.external_id, ticket_type.metadata);
end
$$;
grant execute on function private.is_sound_ticket_type to api_key, authenticated;
alter table public.ticket_types add constraint ticket_types_are_sound check (private.is_sound_ticket_type(ticket_types));
comment on table public.ticket_types is 'Kinds of ticket of an event. Archive one to stop issuing it; tickets already issued stay valid.';
comment on column public.ticket_types.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.ticket_types.organisation_id is 'The organisation that it belongs to.';
comment on column public.ticket_types.event_id is 'The event that it belongs to.';
comment on column public.ticket_types.name is 'Name for people.';
comment on column public.ticket_types.description is 'Text for people.';
comment on column public.ticket_types.sales_start_at is 'When its sale starts. Empty: as soon as the event is published.';
comment on column public.ticket_types.sales_end_at is 'When its sale ends. Empty: with the event.';
comment on column public.ticket_types.visibility is 'public or hidden: whether a shop should show it.';
comment on column public.ticket_types.status is 'active or archived; an archived one is issued no more.';
comment on column public.ticket_types.external_id is 'The organiser''s own identifier, unique within the organisation.';
comment on column public.ticket_types.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.ticket_types.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.ticket_types.created_at is 'When the row was added.';
comment on column public.ticket_types.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.ticket_types.price is 'In minor units (cents) of the event''s currency. 0 is free.';
comment on column public.ticket_types.quantity is 'How many can be issued. Empty: no limit. Cannot be set below quantity_sold and quantity_held together.';
comment on column public.ticket_types.quantity_sold is 'Tickets that hold a place. Counted from the attendees, not edited.';
comment on column public.ticket_types.quantity_held is 'Places held for offers of the waiting list. Counted by Usher, not edited.';
comment on column public.ticket_types.min_per_order is 'Fewest tickets of this type in an order that has any.';
comment on column public.ticket_types.max_per_order is 'Most tickets of this type in an order. Empty: no limit.';
comment on column public.ticket_types.position is 'Its position in the list of the event''s ticket types, from 0.';

create unique index ticket_types_organisation_id_external_id_key on public.ticket_types (organisation_id, external_id)
  where external_id is not null;
create index ticket_types_event_id_idx on public.ticket_types (event_id, position, id);

create function private.tg_ticket_types__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.quantity_sold is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_sold end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_sold is counted from the attendees and cannot be edited.', 'quantity_sold',
      hint => 'Add or cancel attendees instead.'
    );
  elsif new.quantity_held is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_held end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_held is counted from the offers of the waiting list and cannot be edited.', 'quantity_held',
      hint => 'Cancel entries of the waiting list instead.'
    );
  end if;
  if tg_op = 'UPDATE' and new.quantity is distinct from old.quantity and new.quantity >= 0 and new.quantity < new.quantity_sold + new.quantity_held then
    perform private.refuse(
      409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued, and held for the waiting list.', 'quantity',
      jsonb_strip_nulls(jsonb_build_object('quantity_sold', new.quantity_sold, 'quantity_held', nullif(new.quantity_held, 0)))
    );
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else new.external_id is distinct from old.external_id end) then
    perform private.refuse_taken('external_id', t.id, t.created_at)
    from public.ticket_types t
    where t.organisation_id = new.organisation_id and t.external_id = new.external_id and t.id <> new.id;
  end if;
  return new;
end
$$;
create trigger ticket_types_050_derived before update of version, created_at, updated_at on public.ticket_types
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger ticket_types_050_organisation before insert on public.ticket_types
  for each row execute function private.tg__inherit_organisation();
create trigger ticket_types_050_fixed before update of organisation_id, event_id on public.ticket_types
  for each row execute function private.tg__assert_unchanged('organisation_id', 'event_id');
create trigger ticket_types_100_in_use before delete on public.ticket_types
  for each row execute function private.tg__assert_not_in_use(
    'The ticket type is in use: there are attendees with it, or people who wait for it.', 'Archive it instead: set its status to archived.',
    'attendees.ticket_type_id', 'waiting_list_entries.ticket_type_id'
  );
create trigger ticket_types_100_guard before insert on public.ticket_types
  for each row execute function private.tg_ticket_types__guard();
-- Not for the counters, which triggers move.
create trigger ticket_types_100_guard_update before update on public.ticket_types
  for each row when (pg_trigger_depth() = 0) execute function private.tg_ticket_types__guard();
create trigger ticket_types_300_name before insert or update of name on public.ticket_types
  for each row execute function private.tg__assert_name();
create trigger ticket_types_300_price before insert or update of price on public.ticket_types
  for each row when (new.price not between 0 and 100000000000)
  execute function private.tg__refuse_value(
    'price', 'A price is from 0 to 100000000000.', 'It is in minor units: 4900 is 49.00. 0 is free.'
  );
create trigger ticket_types_300_quantity before insert or update of quantity on public.ticket_types
  for each row when (new.quantity < 0)
  execute function private.tg__refuse_value('quantity', 'A quantity is at least 0.', 'Leave it empty for no limit.');
create trigger ticket_types_300_per_order before insert or update of min_per_order, max_per_order on public.ticket_types
  for each row when (new.min_per_order < 1 or new.max_per_order < new.min_per_order)
  execute function private.tg__refuse_value(
    'max_per_order', 'An order has from min_per_order, which is at least 1, to max_per_order tickets of a type.',
    'Leave max_per_order empty for no limit.'
  );
create trigger ticket_types_300_sales_end_at before insert or update of sales_start_at, sales_end_at on public.ticket_types
  for each row when (new.sales_end_at <= new.sales_start_at)
  execute function private.tg__refuse_value(
    'sales_end_at', 'A sale ends after it starts.', 'Change sales_start_at and sales_end_at together.'
  );
create trigger ticket_types_900_updated_at before update on public.ticket_types
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();
-- Not for quantity_sold: an organiser's edit must not fail because a ticket was issued meanwhile.
create trigger ticket_types_900_version
  before update of
    name, description, price, quantity, min_per_order, max_per_order, sales_start_at, sales_end_at, visibility, status, position, external_id,
    metadata
  on public.ticket_types
  for each row when (
    new.name is distinct from old.name or new.description is distinct from old.description
    or new.price is distinct from old.price or new.quantity is distinct from old.quantity
    or new.min_per_order is distinct from old.min_per_order or new.max_per_order is distinct from old.max_per_order
    or new.sales_start_at is distinct from old.sales_start_at or new.sales_end_at is distinct from old.sales_end_at
    or new.visibility is distinct from old.visibility or new.status is distinct from old.status
    or new.position is distinct from old.position or new.external_id is distinct from old.external_id
    or new.metadata is distinct from old.metadata
  )
  execute function private.tg__count_version();

revoke all on public.ticket_types from anon, authenticated, service_role;

alter table public.ticket_types enable row level security;
create policy ticket_types_select_own on public.ticket_types for select
  to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_insert_own on public.ticket_types for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_update_own on public.ticket_types for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_select_membership on public.ticket_types for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy ticket_types_insert_membership on public.ticket_types for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy ticket_types_update_membership on public.ticket_types for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.ticket_types to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id, event_id, name) on public.ticket_types to scope_attendees_write;
grant select (id, organisation_id, name) on public.ticket_types to scope_checkin_write, scope_attendees_read;
grant insert (
  organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;
grant update (
  name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;

-- places_left: what the event's own capacity still allows; null without one.
create function private.ticket_type_json(ticket_type public.ticket_types, currency text, places_left bigint)
returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'ticket_type',
      'id', ticket_type.id,
      'event_id', ticket_type.event_id,
      'name', ticket_type.name,
      'description', ticket_type.description,
      'price', ticket_type.price,
      'currency', currency,
      'quantity', ticket_type.quantity,
      'quantity_sold', ticket_type.quantity_sold,
      'quantity_held', ticket_type.quantity_held,
      'quantity_available', a.available,
      'min_per_order', ticket_type.min_per_order,
      'max_per_order', ticket_type.max_per_order,
      'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
      'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
      'visibility', ticket_type.visibility,
      'status', ticket_type.status,
      'sales_status', case
        when ticket_type.status = 'archived' then 'archived'
        when now() >= (select e.ends_at from public.events e where e.id = ticket_type.event_id) then 'ended'
        when now() < ticket_type.sales_start_at then 'upcoming'
        when now() >= ticket_type.sales_end_at then 'ended'
        when a.available = 0 then 'sold_out'
        else 'on_sale'
      end,
      'position', ticket_type.position,
      'external_id', ticket_type.external_id,
      'metadata', ticket_type.metadata,
      'version', ticket_type.version,
      'created_at', private.rfc3339(ticket_type.created_at),
      'updated_at', private.rfc3339(ticket_type.updated_at)
    )
    from (
      -- Null is no limit, and least() ignores it. So would greatest(places_left, 0), and turn no limit into 0.
      select least(
        ticket_type.quantity - ticket_type.quantity_sold - ticket_type.quantity_held,
        case when places_left < 0 then 0 else places_left end
      ) as available
    ) a
  );
end
$$;
grant execute on function private.ticket_type_json(public.ticket_types, text, bigint) to scope_events_read, scope_events_write;

-- One ticket type, with the currency and the places left of its event.
create function private.ticket_type_json(ticket_type public.ticket_types) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.ticket_type_json(
      ticket_type,
      e.currency,
      e.capacity - (select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.event_id = e.id)
    )
    from public.events e
    where e.id = ticket_type.event_id
  );
end
$$;
grant execute on function private.ticket_type_json(public.ticket_types) to scope_events_read, scope_events_write;

-- schemas/30-ticket-types/places.sql

-- Places of a ticket type: whether it is on sale, and the counters that no registration exceeds.

create function private.is_on_sale(ticket_type public.ticket_types) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return ticket_type.status = 'active'
    and now() >= coalesce(ticket_type.sales_start_at, '-infinity')
    and now() < coalesce(ticket_type.sales_end_at, 'infinity');
end
$$;
grant execute on function private.is_on_sale to scope_events_write;

create function private.refuse_not_on_sale(ticket_type public.ticket_types) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if ticket_type.status = 'archived' then
    perform private.refuse(
      409, 'ticket_type_archived', 'This ticket type is archived and no longer issued.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id),
      hint => 'Choose an active ticket type.'
    );
  elsif now() < ticket_type.sales_start_at then
    perform private.refuse(
      409, 'sales_not_started', 'The sale of this ticket type has not started.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id, 'sales_start_at', private.rfc3339(ticket_type.sales_start_at))
    );
  end if;
  perform private.refuse(
    409, 'sales_ended', 'The sale of this ticket type has ended.', 'ticket_type_id',
    jsonb_build_object('ticket_type_id', ticket_type.id, 'sales_end_at', private.rfc3339(ticket_type.sales_end_at))
  );
end
$$;

-- Takes places of one ticket type, or releases them if negative, exactly under any concurrency; `held` is how many more are held for
-- offers, so that an offer which is accepted moves one from there. The update locks the row, so two buyers of the last place wait for
-- each other; it comes as late in the transaction as possible.
-- Security definer: callers may not change the counters.
create function private.move_places(ticket_type_id uuid, places integer, held integer default 0) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
  v_left integer;
begin
  update public.ticket_types t set quantity_sold = t.quantity_sold + places, quantity_held = t.quantity_held + held
  where t.id = move_places.ticket_type_id
    and (places + held <= 0 or t.quantity is null or t.quantity_sold + t.quantity_held + places + held <= t.quantity)
  returning * into v_ticket_type;
  if not found then
    select t.* into v_ticket_type from public.ticket_types t where t.id = move_places.ticket_type_id;
    v_left := v_ticket_type.quantity - v_ticket_type.quantity_sold - v_ticket_type.quantity_held;
    perform private.refuse(
      409, 'sold_out', 'There are not enough tickets of this type left.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      -- The waiting list takes nobody while a ticket is left, nor for a type that is issued in groups.
      hint => case
        when v_left >= v_ticket_type.min_per_order then 'Register fewer people, choose another ticket type, or raise its quantity.'
        when v_ticket_type.min_per_order > 1 then 'Choose another ticket type, or raise its quantity.'
        else 'Choose another ticket type, raise its quantity, or join the waiting list.'
      end
    );
  end if;
  if places > 0 and not private.is_on_sale(v_ticket_type) then
    perform private.refuse_not_on_sale(v_ticket_type);
  end if;
end
$$;

-- schemas/40-promo-codes/table.sql

-- Promo codes: a percentage off each ticket, or an amount off the order, for some or all ticket types of an event, limited in time
-- and in uses. Never overused.

create type public.promo_code_status as enum ('active', 'disabled');

create table public.promo_codes (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  code text not null,
  percent_off numeric(5, 2),
  amount_off bigint,
  valid_from timestamptz,
  valid_until timestamptz,
  max_redemptions integer,
  times_redeemed integer not null default 0,
  ticket_type_ids uuid[] not null default '{}',
  status public.promo_code_status not null default 'active',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint promo_codes_pkey primary key (id),
  constraint promo_codes_id_event_id_key unique (id, event_id),
  constraint promo_codes_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint promo_codes_code_is_one_word check (code ~ '^[[:graph:]]{1,50}$'),
  constraint promo_codes_percent_off_is_a_percentage check (percent_off > 0 and percent_off <= 100),
  constraint promo_codes_amount_off_is_bounded check (amount_off between 1 and 100000000000),
  constraint promo_codes_have_one_discount check (num_nonnulls(percent_off, amount_off) = 1),
  constraint promo_codes_valid_until_is_after_valid_from check (valid_until > valid_from),
  constraint promo_codes_valid_from_and_valid_until_are_finite check (
    valid_from between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and valid_until between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint promo_codes_max_redemptions_is_positive check (max_redemptions > 0),
  constraint promo_codes_times_redeemed_is_not_negative check (times_redeemed >= 0),
  constraint promo_codes_are_not_overused check (times_redeemed <= max_redemptions),
  constraint promo_codes_ticket_type_ids_are_bounded check (cardinality(ticket_type_ids) <= 100)
);
comment on table public.promo_codes is 'Discounts that buyers claim by a code. Disable one to refuse it from now on.';
comment on column public.promo_codes.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.promo_codes.organisation_id is 'The organisation that it belongs to.';
comment on column public.promo_codes.event_id is 'The event that it belongs to.';
comment on column public.promo_codes.valid_from is 'From when on it is taken. Empty: at once.';
comment on column public.promo_codes.valid_until is 'Until when it is taken. Empty: without end.';
comment on column public.promo_codes.status is 'active or disabled.';
comment on column public.promo_codes.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.promo_codes.created_at is 'When the row was added.';
comment on column public.promo_codes.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.promo_codes.code is 'What the buyer types; case does not matter.';
comment on column public.promo_codes.percent_off is 'Taken off each ticket: above 0, up to 100, with at most two decimals. Empty: amount_off.';
comment on column public.promo_codes.amount_off is 'Taken off each order, in minor units, spread over the tickets that use it. Empty: percent_off.';
comment on column public.promo_codes.max_redemptions is 'How many tickets may use it. Empty: no limit.';
comment on column public.promo_codes.times_redeemed is 'Tickets that use it: those it is for, however much it takes off them. Counted from the attendees, not edited.';
comment on column public.promo_codes.ticket_type_ids is 'Ticket types it applies to. Empty: all of the event.';

create unique index promo_codes_event_id_code_key on public.promo_codes (event_id, lower(code));
create index promo_codes_event_id_id_idx on public.promo_codes (event_id, id desc);

-- Takes uses of a code (negative: returns them), exactly, under any concurrency: the row update makes two buyers of the last
-- use wait for one another.
-- Security definer: a key that registers may not update promo codes.
create function private.move_redemptions(promo_code_id uuid, uses integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_promo_code public.promo_codes;
begin
  update public.promo_codes c set times_redeemed = c.times_redeemed + uses
  where c.id = move_redemptions.promo_code_id
    and (uses < 0 or c.max_redemptions is null or c.times_redeemed + uses <= c.max_redemptions)
  returning * into v_promo_code;
  if not found then
    perform private.refuse(
      409, 'promo_code_used_up', 'The promo code does not have enough uses left for these tickets.', 'promo_code',
      hint => 'Register without it, or raise its max_redemptions.'
    );
  end if;

  if uses < 0 then
    return;
  elsif v_promo_code.status = 'disabled' then
    perform private.refuse(
      409, 'promo_code_disabled', 'The promo code is disabled.', 'promo_code', hint => 'Register without it, or enable it.'
    );
  elsif now() < v_promo_code.valid_from then
    perform private.refuse(
      409, 'promo_code_not_started', 'The promo code is not valid yet.', 'promo_code',
      jsonb_build_object('valid_from', private.rfc3339(v_promo_code.valid_from))
    );
  elsif now() >= v_promo_code.valid_until then
    perform private.refuse(
      409, 'promo_code_expired', 'The promo code has expired.', 'promo_code',
      jsonb_build_object('valid_until', private.rfc3339(v_promo_code.valid_until))
    );
  end if;
end
$$;

-- Not security definer: row level security hides another organisation's event, so it counts as missing.
create function private.tg_promo_codes__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Depth 1 is a statement of a person or an operation; the trigger that counts redemptions runs one level deeper.
  if pg_trigger_depth() = 1
    and new.times_redeemed is distinct from (case when tg_op = 'INSERT' then 0 else old.times_redeemed end) then
    perform private.refuse(
      409, 'read_only_field', 'times_redeemed is counted from the attendees and cannot be edited.', 'times_redeemed'
    );
  end if;
  -- Before the unique index, whose error would reveal that a code of another organisation exists.
  if tg_op = 'INSERT' and not exists (
    select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else lower(new.code) <> lower(old.code) end) then
    perform private.refuse_taken('code', c.id, c.created_at)
    from public.promo_codes c
    where c.event_id = new.event_id and lower(c.code) = lower(new.code) and c.id <> new.id;
  end if;
  -- Only when the list is set: a code whose ticket type was deleted can still be edited and disabled.
  if tg_op = 'INSERT' or new.ticket_type_ids <> old.ticket_type_ids then
    new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
    if exists (
      select from unnest(new.ticket_type_ids) i (id)
      where not exists (
        select from public.ticket_types t
        where t.id = i.id and t.event_id = new.event_id and t.organisation_id = new.organisation_id
      )
    ) then
      perform private.refuse(
        422, 'validation_failed', 'A listed ticket type does not belong to the event.', 'ticket_type_ids',
        hint => 'List the ticket types of the event to find their identifiers.'
      );
    end if;
  end if;
  if tg_op = 'UPDATE' and new.max_redemptions < new.times_redeemed and new.max_redemptions is distinct from old.max_redemptions then
    perform private.refuse(
      409, 'limit_below_redeemed', 'The limit cannot be less than the uses already made.', 'max_redemptions',
      jsonb_build_object('times_redeemed', new.times_redeemed)
    );
  end if;
  return new;
end
$$;
create trigger promo_codes_050_fixed before update of organisation_id, event_id on public.promo_codes
  for each row execute function private.tg__assert_unchanged('organisation_id', 'event_id');
create trigger promo_codes_050_organisation before insert on public.promo_codes
  for each row execute function private.tg__inherit_organisation();
create trigger promo_codes_050_derived before update of version, created_at, updated_at on public.promo_codes
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger promo_codes_100_in_use before delete on public.promo_codes
  for each row execute function private.tg__assert_not_in_use(
    'The promo code is in use: there are orders with it.', 'Disable it instead: set its status to disabled.',
    'orders.promo_code_id', 'attendees.promo_code_id'
  );
create trigger promo_codes_100_guard before insert or update on public.promo_codes
  for each row execute function private.tg_promo_codes__guard();
create trigger promo_codes_300_percent_off before insert or update of percent_off on public.promo_codes
  for each row when (new.percent_off <= 0 or new.percent_off > 100)
  execute function private.tg__refuse_value('percent_off', 'A discount is above 0 and at most 100 percent.', '25 takes a quarter off.');
create trigger promo_codes_300_amount_off before insert or update of amount_off on public.promo_codes
  for each row when (new.amount_off not between 1 and 100000000000)
  execute function private.tg__refuse_value(
    'amount_off', 'An amount off is from 1 to 100000000000.', 'It is in minor units: 500 is 5.00.'
  );
create trigger promo_codes_300_no_discount before insert or update of percent_off, amount_off on public.promo_codes
  for each row when (num_nonnulls(new.percent_off, new.amount_off) = 0)
  execute function private.tg__refuse_value('percent_off', 'A promo code has a percentage or an amount off.', 'Set percent_off or amount_off.');
create trigger promo_codes_300_two_discounts before insert or update of percent_off, amount_off on public.promo_codes
  for each row when (num_nonnulls(new.percent_off, new.amount_off) = 2)
  execute function private.tg__refuse_value(
    'amount_off', 'A promo code has a percentage or an amount off, not both.', 'Set the other one to null in the same change.'
  );
create trigger promo_codes_300_valid_until before insert or update of valid_from, valid_until on public.promo_codes
  for each row when (new.valid_until <= new.valid_from)
  execute function private.tg__refuse_value(
    'valid_until', 'A promo code ends after it starts.', 'Change valid_from and valid_until together.'
  );
create trigger promo_codes_300_max_redemptions before insert or update of max_redemptions on public.promo_codes
  for each row when (new.max_redemptions <= 0)
  execute function private.tg__refuse_value(
    'max_redemptions', 'A promo code has at least 1 use.', 'Leave it empty for no limit, or disable the code.'
  );
create trigger promo_codes_900_updated_at before update on public.promo_codes
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();
create trigger promo_codes_900_version before update on public.promo_codes
  for each row when (
    new.code is distinct from old.code or new.percent_off is distinct from old.percent_off
    or new.amount_off is distinct from old.amount_off or new.valid_from is distinct from old.valid_from
    or new.valid_until is distinct from old.valid_until or new.max_redemptions is distinct from old.max_redemptions
    or new.ticket_type_ids is distinct from old.ticket_type_ids or new.status is distinct from old.status
  )
  execute function private.tg__count_version();

revoke all on public.promo_codes from anon, authenticated, service_role;

alter table public.promo_codes enable row level security;
create policy promo_codes_select_own on public.promo_codes for select to scope_events_read, scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_insert_own on public.promo_codes for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_update_own on public.promo_codes for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_select_membership on public.promo_codes for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy promo_codes_insert_membership on public.promo_codes for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy promo_codes_update_membership on public.promo_codes for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.promo_codes to scope_events_read, scope_events_write, authenticated;
grant insert (
  organisation_id, event_id, code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, status
) on public.promo_codes to scope_events_write, authenticated;
grant update (
  code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, status
) on public.promo_codes to scope_events_write, authenticated;

create function private.promo_code_json(promo_code public.promo_codes) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'promo_code',
    'id', promo_code.id,
    'event_id', promo_code.event_id,
    'code', promo_code.code,
    'percent_off', promo_code.percent_off::float8,
    'amount_off', promo_code.amount_off,
    'valid_from', private.rfc3339(promo_code.valid_from),
    'valid_until', private.rfc3339(promo_code.valid_until),
    'max_redemptions', promo_code.max_redemptions,
    'times_redeemed', promo_code.times_redeemed,
    'ticket_type_ids', promo_code.ticket_type_ids,
    'status', promo_code.status,
    'state', case
      when promo_code.status = 'disabled' then 'disabled'
      when now() < promo_code.valid_from then 'upcoming'
      when now() >= promo_code.valid_until then 'expired'
      when promo_code.times_redeemed >= promo_code.max_redemptions then 'used_up'
      else 'valid'
    end,
    'version', promo_code.version,
    'created_at', private.rfc3339(promo_code.created_at),
    'updated_at', private.rfc3339(promo_code.updated_at)
  );
end
$$;
grant execute on function private.promo_code_json to scope_events_read, scope_events_write;

-- schemas/50-orders/table.sql

-- Orders: pending -> completed -> cancelled, or pending -> cancelled. An order completes when nothing is due.
-- Its amounts are derived: the totals from its tickets (60-attendees/totals.sql), what was paid, voided and refunded from its payments and
-- their corrections (50-orders/payments.sql).

create type public.order_status as enum ('pending', 'completed', 'cancelled');
create type public.payment_status as enum ('not_required', 'awaiting_payment', 'partially_paid', 'paid', 'refund_due', 'refunded');
create type public.payment_method as enum ('invoice', 'bank_transfer', 'card', 'cash', 'other');
create type public.cancellation_reason as enum ('requested', 'expired', 'event_cancelled');

-- Fillfactor 50 leaves half of each page free: an update then stays on its page and, unless it changes a status or a time that lists
-- filter by, writes to none of the indexes.
create table public.orders (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  reference text not null,
  status public.order_status not null default 'pending',
  payment_status public.payment_status not null default 'not_required',
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  send_email boolean not null default true,
  currency text not null,
  subtotal bigint not null default 0,
  discount_total bigint not null default 0,
  total bigint not null generated always as (subtotal - discount_total) stored,
  amount_paid bigint not null default 0,
  amount_voided bigint not null default 0,
  amount_refunded bigint not null default 0,
  payment_method public.payment_method,
  payment_due_at timestamptz,
  payment_remind_at timestamptz,
  payment_reminded_at timestamptz,
  payment_check_at timestamptz,
  promo_code text,
  promo_code_id uuid,
  source public.request_source not null default private.current_source(),
  completed_at timestamptz,
  cancelled_at timestamptz,
  cancellation_reason public.cancellation_reason,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint orders_pkey primary key (id),
  constraint orders_id_event_id_organisation_id_key unique (id, event_id, organisation_id),
  constraint orders_organisation_id_reference_key unique (organisation_id, reference),
  constraint orders_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint orders_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id)
) with (fillfactor = 50);

-- What holds for every order, whoever writes it, beside what its guard sees to. One function: Postgres plans each check constraint anew for
-- every statement.
create function private.is_sound_order("order" public.orders) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return
    ("order".company is null or private.is_sound_line('company', "order".company, 200))
    and private.is_sound_extra("order".external_id, "order".metadata)
    and "order".subtotal >= "order".discount_total and "order".discount_total >= 0
    -- It held when the order was completed, and neither voids nor refunds change it.
    and ("order".status <> 'completed' or "order".amount_paid + "order".amount_voided >= "order".subtotal - "order".discount_total)
    and "order".amount_voided >= 0 and "order".amount_refunded between 0 and "order".amount_paid
    and "order".payment_due_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ("order".status = 'cancelled') = ("order".cancellation_reason is not null);
end
$$;
grant execute on function private.is_sound_order to api_key, authenticated;
alter table public.orders add constraint orders_are_sound check (private.is_sound_order(orders));
comment on table public.orders is 'Registrations: the contact, and the amounts due and paid. The people who come are its attendees.';
comment on column public.orders.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.orders.organisation_id is 'The organisation that it belongs to.';
comment on column public.orders.event_id is 'The event that it belongs to.';
comment on column public.orders.status is 'pending, completed when nothing is due, or cancelled.';
comment on column public.orders.payment_status is 'Follows from status and amounts. Kept by Usher.';
comment on column public.orders.name is 'Name of the contact, who is the buyer.';
comment on column public.orders.email is 'E-mail address of the contact.';
comment on column public.orders.email_lower is 'The address in lower case, for look-ups. Generated.';
comment on column public.orders.company is 'Company of the contact.';
comment on column public.orders.currency is 'ISO 4217 code, three capital letters.';
comment on column public.orders.total is 'subtotal minus discount_total. Generated.';
comment on column public.orders.promo_code_id is 'The promo code that was used. Kept by Usher.';
comment on column public.orders.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.orders.completed_at is 'When it was completed. Kept by Usher.';
comment on column public.orders.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.orders.cancellation_reason is 'Why it was cancelled: requested by somebody, expired unpaid, or event_cancelled. Kept by Usher.';
comment on column public.orders.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled order gives it to one that is made under it by the API.';
comment on column public.orders.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.orders.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.orders.created_at is 'When the row was added.';
comment on column public.orders.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.orders.reference is 'Short code that can be read over the telephone: no I, L, O or U. Generated by Usher.';
comment on column public.orders.send_email is 'Whether its tickets are e-mailed to the attendees.';
comment on column public.orders.amount_paid is 'Sum of the payments that are not voided, not edited.';
comment on column public.orders.amount_voided is 'Sum of the payments that were voided, not edited.';
comment on column public.orders.amount_refunded is 'Sum of the refunds, not edited. What is due is total, less amount_paid, plus amount_refunded.';
comment on column public.orders.subtotal is 'Sum of the prices of its tickets, not edited. In minor units of currency, like all amounts. A cancelled order keeps its last value.';
comment on column public.orders.discount_total is 'Sum of the discounts of its tickets, not edited.';
comment on column public.orders.payment_method is 'How it is paid. Empty: its tickets are complimentary. Once there is a payment: the method of the latest.';
comment on column public.orders.payment_due_at is 'When it is to be paid by. After that a pending order is cancelled as expired. Empty: no deadline. Set from payment_due_days of the event; change it to give more time.';
comment on column public.orders.payment_remind_at is 'When the buyer is to be reminded of payment_due_at; empty once they were. Kept by Usher.';
comment on column public.orders.payment_reminded_at is 'When the buyer was reminded of payment_due_at. Kept by Usher.';
comment on column public.orders.payment_check_at is 'When the courier next looks at the deadline: to remind, then to cancel. Kept by Usher.';
comment on column public.orders.promo_code is 'The code that the buyer gave; case does not matter. Needs a payment method.';

create unique index orders_organisation_id_external_id_key on public.orders (organisation_id, external_id)
  where external_id is not null;
create index orders_promo_code_id_idx on public.orders (promo_code_id) where promo_code_id is not null;
-- For private.page_of_orders.
create index orders_organisation_id_states_idx on public.orders (organisation_id, status, payment_status, id);
create index orders_event_id_states_idx on public.orders (event_id, status, payment_status, id);
create index orders_organisation_id_email_lower_idx on public.orders (organisation_id, email_lower, id);
create index orders_organisation_id_updated_at_idx on public.orders (organisation_id, updated_at, id);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('orders', 'name', '"Erased"', 'name'),
  ('orders', 'email', '"erased@erased.invalid"', 'email'),
  ('orders', 'company', 'null', 'company'),
  ('orders', 'external_id', 'null', 'external_id'),
  ('orders', 'metadata', '{}', 'metadata');

-- Whether nothing is due. An order that is to be paid completes only once it has tickets.
-- The generated column total has no value yet in a BEFORE trigger, hence the difference.
create function private.is_settled("order" public.orders) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  -- Statements of their own: an expression that contains a query costs every order, even where the query is not run.
  if "order".amount_paid - "order".amount_refunded < "order".subtotal - "order".discount_total then
    return false;
  elsif "order".payment_method is null then
    return true;
  end if;
  return exists (select from public.attendees a where a.order_id = "order".id);
end
$$;

-- What is still to be paid: what the tickets cost, less the money that was received and not returned. Nothing of a cancelled order.
create function private.amount_due("order" public.orders) returns bigint
language plpgsql immutable set search_path = ''
as $$
begin
  return case "order".status when 'cancelled' then 0 else greatest(
    "order".subtotal - "order".discount_total - "order".amount_paid + "order".amount_refunded,
    0
  ) end;
end
$$;
grant execute on function private.amount_due to scope_attendees_write, scope_orders_read, scope_orders_write, authenticated;

-- What was received beyond what is owed, and not refunded yet: everything of a cancelled order.
create function private.amount_refundable("order" public.orders) returns bigint
language plpgsql immutable set search_path = ''
as $$
begin
  return greatest(
    "order".amount_paid - "order".amount_refunded
      - case "order".status when 'cancelled' then 0 else "order".subtotal - "order".discount_total end,
    0
  );
end
$$;
grant execute on function private.amount_refundable to scope_attendees_write, scope_orders_read, scope_orders_write;

-- What cancelling an order would add to it.
create function private.refundable_if_cancelled("order" public.orders) returns bigint
language plpgsql immutable set search_path = ''
as $$
begin
  return "order".amount_paid - "order".amount_refunded - private.amount_refundable("order");
end
$$;

-- Security definer: it reads events, promo codes and references beyond what a registering key may see.
create function private.tg_orders__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_holder public.orders;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_event_shared(new.event_id);
    if private.is_foreign(v_event.organisation_id) then
      perform private.refuse_not_found('event_id');
    end if;
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      select o.* into v_holder
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
      if v_holder.status = 'cancelled' and v_holder.amount_paid = v_holder.amount_refunded then
        -- As of a cancelled attendee: see tg_attendees__guard. Money that is to be returned is looked up by the identifier.
        update public.orders o set external_id = null where o.id = v_holder.id and o.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', v_holder.id, v_holder.created_at);
      end if;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid, new.amount_voided, new.amount_refunded) <> (0, 0, 0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(
        new.reference, new.promo_code_id, new.completed_at, new.cancelled_at, new.cancellation_reason, new.payment_remind_at,
        new.payment_reminded_at, new.payment_check_at
      ) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'amount_voided', 0, 'amount_refunded', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null,
        'cancellation_reason', null, 'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      if new.payment_method is null then
        perform private.refuse_value('promo_code', 'A promo code needs a payment method.', 'Send payment_method, or leave promo_code out.');
      end if;
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
  else
    -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.amount_voided, new.amount_refunded) <> (old.amount_voided, old.amount_refunded) then
        perform private.refuse(
          409, 'read_only_field', 'Voids and refunds are rows of their own, added up here.', 'amount_refunded',
          hint => 'Add a row to payment_voids or refunds instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'The totals are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
          hint => 'Create a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;

  -- Derived fields: completion, payment status and timestamps.
  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded = new.amount_paid then 'refunded'
    else 'paid'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  -- The reason comes with the cancellation; expired has to be true.
  if tg_op = 'UPDATE' and pg_trigger_depth() = 1 and new.cancellation_reason is distinct from old.cancellation_reason
    and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
      is distinct from ('cancelled', 'expired', 'pending', true) then
    perform private.refuse(
      409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'cancellation_reason',
      hint => 'Set status to cancelled instead.'
    );
  end if;
  if new.status = 'cancelled' then
    new.cancellation_reason := coalesce(new.cancellation_reason, 'requested');
  end if;
  if tg_op = 'UPDATE'
    and (
      new.name, new.email, new.company, new.status, new.subtotal, new.amount_paid, new.amount_refunded, new.payment_due_at, new.external_id,
      new.metadata
    ) is distinct from (
      old.name, old.email, old.company, old.status, old.subtotal, old.amount_paid, old.amount_refunded, old.payment_due_at, old.external_id,
      old.metadata
    ) then
    new.version := old.version + 1;
  end if;
  return new;
end
$$;
create trigger orders_050_fixed
  before update of organisation_id, event_id, reference, currency, promo_code, promo_code_id on public.orders
  for each row execute function private.tg__assert_unchanged(
    'organisation_id', 'event_id', 'reference', 'currency', 'promo_code', 'promo_code_id'
  );
create trigger orders_050_derived
  before update of payment_status, payment_remind_at, payment_check_at, completed_at, cancelled_at, version, created_at, updated_at
  on public.orders
  for each row execute function private.tg__assert_derived_untouched(
    'Record a payment, or set status to cancelled, instead.',
    'payment_status', 'payment_remind_at', 'payment_check_at', 'completed_at', 'cancelled_at', 'version', 'created_at', 'updated_at'
  );
create trigger orders_100_in_use before delete on public.orders
  for each row execute function private.tg__assert_not_in_use(
    'The order is in use: it has attendees or payments.', 'Cancel it instead: set its status to cancelled.',
    'attendees.order_id', 'payments.order_id'
  );
create trigger orders_100_guard before insert or update on public.orders
  for each row execute function private.tg_orders__guard();
create trigger orders_900_updated_at before update on public.orders
  for each row execute function private.tg__set_updated_at('email_lower', 'total');
revoke all on public.orders from anon, authenticated, service_role;

alter table public.orders enable row level security;
-- A registering key sees only the order that its own transaction creates.
create policy orders_select_new on public.orders for select to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()) and created_at = now());
create policy orders_select_own on public.orders for select to scope_orders_read, scope_orders_write, scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy orders_update_own on public.orders for update to scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy orders_insert_own on public.orders for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy orders_select_membership on public.orders for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy orders_insert_membership on public.orders for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy orders_update_membership on public.orders for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.orders to scope_orders_read, scope_orders_write, scope_attendees_write, authenticated;
-- list_attendees finds attendees by the reference of their order.
grant select (id, organisation_id, reference) on public.orders to scope_attendees_read;
grant update (status, payment_due_at) on public.orders to scope_orders_write;
grant insert (
  id, organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
) on public.orders to scope_attendees_write;
grant insert (
  organisation_id, event_id, name, email, company, send_email, payment_method, payment_due_at, promo_code, external_id, metadata
) on public.orders to authenticated;
grant update (name, email, company, status, payment_due_at, external_id, metadata) on public.orders to authenticated;

create function private.order_json("order" public.orders, attendees json, payments json, refunds json default '[]') returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'order',
    'id', "order".id,
    'event_id', "order".event_id,
    'reference', "order".reference,
    'status', "order".status,
    'payment_status', "order".payment_status,
    'name', "order".name,
    'email', "order".email,
    'company', "order".company,
    'currency', "order".currency,
    'subtotal', "order".subtotal,
    'discount_total', "order".discount_total,
    'total', "order".total,
    'amount_paid', "order".amount_paid,
    'amount_due', private.amount_due("order"),
    'amount_refunded', "order".amount_refunded,
    'amount_refundable', private.amount_refundable("order"),
    'payment_method', "order".payment_method,
    'payment_due_at', private.rfc3339("order".payment_due_at),
    'payment_reminded_at', private.rfc3339("order".payment_reminded_at),
    'promo_code', "order".promo_code,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'refunds', refunds,
    'completed_at', private.rfc3339("order".completed_at),
    'cancelled_at', private.rfc3339("order".cancelled_at),
    'cancellation_reason', "order".cancellation_reason,
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', private.rfc3339("order".created_at),
    'updated_at', private.rfc3339("order".updated_at)
  );
end
$$;
grant execute on function private.order_json to scope_attendees_write, scope_orders_read, scope_orders_write;

-- schemas/60-attendees/table.sql

-- Attendees: the people who come, each with a ticket code. An attendee who is not cancelled is a line of the order
-- (60-attendees/totals.sql) and holds a place (60-attendees/places.sql).

create type public.attendee_status as enum ('active', 'awaiting_payment', 'cancelled');
-- Of the ticket e-mail of an attendee, and of each row of emails.
create type public.email_status as enum (
  'not_requested', 'waiting', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'cancelled'
);

-- Fillfactor 50, as for orders.
create table public.attendees (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  order_id uuid not null,
  ticket_type_id uuid not null,
  waiting_list_entry_id uuid,
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  price bigint not null default 0,
  discount bigint not null default 0,
  currency text not null,
  promo_code_id uuid,
  status public.attendee_status not null default 'active',
  ticket_code text not null,
  ticket_token text not null,
  checked_in_at timestamptz,
  checked_in boolean not null generated always as (checked_in_at is not null) stored,
  ticket_email_status public.email_status not null default 'queued',
  ticket_email_sent_at timestamptz,
  ticket_email_last_error text,
  cancelled_at timestamptz,
  erased_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  search_text text not null default '',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint attendees_pkey primary key (id),
  constraint attendees_organisation_id_ticket_code_key unique (organisation_id, ticket_code),
  constraint attendees_ticket_token_key unique (ticket_token),
  -- The guard keeps event_id and organisation_id those of the order. A key of three columns would be looked up by whichever index
  -- the planner preferred while the table was small, and then read every order of the organisation for each attendee.
  constraint attendees_order_id_fkey foreign key (order_id) references public.orders (id),
  constraint attendees_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint attendees_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id)
) with (fillfactor = 50);

-- What holds for every attendee, whoever writes it, beside what its guard sees to. One function: Postgres plans each check constraint anew for
-- every statement.
create function private.is_sound_attendee(attendee public.attendees) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return attendee.discount between 0 and attendee.price
    and (attendee.company is null or private.is_sound_line('company', attendee.company, 200))
    and private.is_sound_extra(attendee.external_id, attendee.metadata);
end
$$;
grant execute on function private.is_sound_attendee to api_key, authenticated;
alter table public.attendees add constraint attendees_are_sound check (private.is_sound_attendee(attendees));
comment on table public.attendees is 'The people who come. Cancel one by setting status to cancelled: this frees the place, and check-in no longer accepts the ticket. Only a cancelled one can be deleted.';
comment on column public.attendees.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.attendees.organisation_id is 'The organisation that it belongs to.';
comment on column public.attendees.event_id is 'The event that it belongs to.';
comment on column public.attendees.order_id is 'The order that it is part of.';
comment on column public.attendees.ticket_type_id is 'The kind of ticket.';
comment on column public.attendees.waiting_list_entry_id is 'The entry of the waiting list whose offer this ticket accepts.';
comment on column public.attendees.name is 'Name of the person.';
comment on column public.attendees.email is 'Address that the ticket is sent to.';
comment on column public.attendees.email_lower is 'The address in lower case, for look-ups. Generated.';
comment on column public.attendees.company is 'Company of the person.';
comment on column public.attendees.currency is 'ISO 4217 code, three capital letters.';
comment on column public.attendees.promo_code_id is 'The promo code that was used. Kept by Usher.';
comment on column public.attendees.status is 'active, awaiting_payment, or cancelled.';
comment on column public.attendees.checked_in is 'Whether they are in. Generated.';
comment on column public.attendees.ticket_email_status is 'State of the ticket e-mail. Set it to queued to send it once more.';
comment on column public.attendees.ticket_email_sent_at is 'When the ticket e-mail was last sent. Kept by Usher.';
comment on column public.attendees.ticket_email_last_error is 'Why it was not sent or came back. Kept by Usher.';
comment on column public.attendees.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.attendees.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled attendee gives it to whoever is registered under it by the API.';
comment on column public.attendees.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.attendees.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.attendees.created_at is 'When the row was added.';
comment on column public.attendees.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.attendees.ticket_code is 'Content of the QR code: 80 random bits, generated by Usher. Clear it to generate a new one; check-in then no longer accepts the old one.';
comment on column public.attendees.ticket_token is 'Secret in the address of the ticket page. Goes with the ticket code: a new one for each. Kept by Usher.';
comment on column public.attendees.price is 'Price of the ticket when it was registered, in minor units; 0 where the order has no payment method.';
comment on column public.attendees.discount is 'Discount of the promo code on the price: a percentage is rounded half up, an amount is spread over the tickets of the order.';
comment on column public.attendees.search_text is 'What searches look at, kept by Usher: what the door may see, a tab, the rest of the attendee, and on a second line the contact of the order where it differs.';
comment on column public.attendees.erased_at is 'When what identified the person was erased, here and in every copy: see the function erase_attendee.';
comment on column public.attendees.checked_in_at is 'Time of the accepted check-in. Derived from check_ins, not edited.';

create unique index attendees_organisation_id_external_id_key on public.attendees (organisation_id, external_id)
  where external_id is not null;
create index attendees_order_id_idx on public.attendees (order_id);
-- The columns that are included are for private.event_summary, which reads no table of attendees.
create index attendees_promo_code_id_idx on public.attendees (promo_code_id) include (status, discount)
  where promo_code_id is not null;
-- For private.page_of_attendees.
create index attendees_organisation_id_states_idx
  on public.attendees (organisation_id, status, checked_in, ticket_email_status, id);
create index attendees_ticket_type_id_states_idx
  on public.attendees (ticket_type_id, status, checked_in, ticket_email_status, id) include (created_at, checked_in_at);
create index attendees_organisation_id_email_lower_idx on public.attendees (organisation_id, email_lower, id);
create index attendees_organisation_id_updated_at_idx on public.attendees (organisation_id, updated_at, id);
-- For private.search_attendees. What is new waits in a list of at most 1 MB, which every search reads, so that a registration is not
-- delayed by some fifty entries.
create index attendees_search_text_idx on public.attendees
  using gin (uuid_hash(organisation_id), search_text extensions.gin_trgm_ops) with (gin_pending_list_limit = 1024);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('attendees', 'name', '"Erased"', 'name'),
  ('attendees', 'email', '"erased@erased.invalid"', 'email'),
  ('attendees', 'company', 'null', 'company'),
  ('attendees', 'external_id', 'null', 'external_id'),
  ('attendees', 'metadata', '{}', 'metadata'),
  ('attendees', 'ticket_email_last_error', 'null', null);

-- Check-in accepts active tickets only, so a QR code or an e-mail of any other ticket is refused.
create function private.refuse_inactive_ticket(status public.attendee_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'ticket_not_active', 'The ticket is not active.', 'status',
    jsonb_build_object('status', status), 'A cancelled ticket stays cancelled; an unpaid one becomes active when it is paid.'
  );
end
$$;
grant execute on function private.refuse_inactive_ticket to scope_attendees_read, scope_attendees_write;

-- Security definer: it reads orders and ticket types beyond what a registering key may see.
create function private.tg_attendees__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_holder public.attendees;
begin
  if tg_op = 'INSERT' then
    select o.* into v_order from public.orders o where o.id = new.order_id;
    if private.is_foreign(v_order.organisation_id) then
      perform private.refuse_not_found('order_id');
    end if;
    -- A new order is seen by this transaction alone, which has the event lock since it added it. Any other is locked, so that it is neither
    -- cancelled nor completed without this ticket, and so that its totals are updated by one transaction at a time: the event lock before
    -- the order, as everywhere.
    if v_order.created_at <> now() then
      perform private.lock_event_shared(v_order.event_id);
      select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
      if not found then
        perform private.refuse_not_found('order_id');
      end if;
      perform set_config('usher.adds_to_order', 'on', true);
    end if;
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      select a.* into v_holder
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
      if v_holder.status = 'cancelled' then
        -- The person comes after all: their identifier goes with the new ticket.
        update public.attendees a set external_id = null where a.id = v_holder.id and a.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', v_holder.id, v_holder.created_at);
      end if;
    end if;
    -- The fields that Usher sets: price, status, ticket code and the status of the ticket e-mail.
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency or new.event_id <> v_order.event_id or new.organisation_id <> v_order.organisation_id
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.ticket_token, new.checked_in_at, new.cancelled_at, new.erased_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'event_id', v_order.event_id, 'organisation_id', v_order.organisation_id,
        'promo_code_id', null, 'ticket_code', null, 'ticket_token', null, 'checked_in_at', null, 'cancelled_at', null, 'erased_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    if new.waiting_list_entry_id is not null then
      perform private.accept_offer(new);
    end if;
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Create a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.ticket_token := private.random_token();
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is derived from the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.erased_at is distinct from old.erased_at and pg_trigger_depth() = 1 and current_setting('usher.erasing', true) is distinct from 'on' then
      perform private.refuse(
        409, 'read_only_field', 'A person is erased by a function, which finds every copy.', 'erased_at', hint => 'Call erase_attendee.'
      );
    elsif old.erased_at is not null
      and ((new.name, new.email, new.company, new.external_id, new.metadata)
        is distinct from (old.name, old.email, old.company, old.external_id, old.metadata)
        or new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued') then
      perform private.refuse(
        409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Register the person who comes instead.'
      );
    end if;

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = new.organisation_id and a.external_id = new.external_id and a.id <> new.id;
    end if;

    if new.ticket_code is null then
      -- Reissue: the new code is e-mailed to the present holder.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A used or cancelled ticket cannot be reissued.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person again.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_token := private.random_token();
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' or old.erased_at is not null then old.ticket_email_status
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.email_status;
    elsif new.ticket_code <> old.ticket_code or new.ticket_token is distinct from old.ticket_token then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.',
        case when new.ticket_code <> old.ticket_code then 'ticket_code' else 'ticket_token' end,
        hint => 'Clear ticket_code to generate a new one.'
      );
    end if;

    -- Status transitions, then the status of the ticket e-mail.
    if new.status <> old.status then
      if old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
        perform private.refuse(
          409, 'invalid_transition', 'An attendee cannot go from its present status to this one.', 'status',
          jsonb_build_object('from', old.status, 'to', new.status),
          'Allowed: awaiting_payment to active or cancelled; active to cancelled.'
        );
      end if;
      if new.status = 'active' then
        select o.* into v_order from public.orders o where o.id = new.order_id for share;
        if v_order.status <> 'completed' then
          perform private.refuse(
            409, 'payment_due', 'The ticket becomes active when its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and new.status <> 'active' then
      perform private.refuse_inactive_ticket(new.status);
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;

    -- checked_in_at and the state of the e-mail are not edited.
    if (new.name, new.email, new.company, new.status, new.ticket_type_id, new.ticket_code, new.external_id, new.metadata, new.erased_at)
      is distinct from
      (old.name, old.email, old.company, old.status, old.ticket_type_id, old.ticket_code, old.external_id, old.metadata, old.erased_at) then
      new.version := old.version + 1;
    end if;
    -- For the triggers on the statement, which fire only where something is left for them.
    if (new.status = 'cancelled') <> (old.status = 'cancelled') or new.ticket_type_id <> old.ticket_type_id then
      perform set_config('usher.moves_places', 'on', true);
    end if;
    if (new.ticket_email_status = 'queued') <> (old.ticket_email_status = 'queued') then
      perform set_config('usher.queues_tickets', 'on', true);
    end if;
  end if;

  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;

  if tg_op = 'INSERT'
    or (new.name, new.email, new.company, new.external_id, new.search_text)
      is distinct from (old.name, old.email, old.company, old.external_id, old.search_text) then
    if tg_op = 'UPDATE' then
      select o.* into v_order from public.orders o where o.id = new.order_id;
    end if;
    new.search_text := private.search_form(
      concat_ws(' ', new.name, new.company, v_order.reference) || E'\t' || concat_ws(' ', new.email, new.external_id) || E'\n'
        || concat_ws(
          ' ', nullif(v_order.name, new.name), nullif(v_order.email, new.email), nullif(v_order.company, new.company),
          nullif(v_order.external_id, new.external_id)
        )
    );
  end if;

  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

-- A ticket that stands is cancelled first: that takes it off the order, gives its place back and notifies. Nothing then hangs on a
-- deletion, so no trigger adds up or counts one.
create function private.tg_attendees__assert_over() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if old.status <> 'cancelled' then
    perform private.refuse(
      409, 'in_use', 'A ticket that stands cannot be deleted: its order and everybody who was told of it count on it.',
      hint => 'Set status to cancelled instead; to remove what identifies the person, call erase_attendee.'
    );
  end if;
  return old;
end
$$;

create trigger attendees_050_fixed
  before update of organisation_id, event_id, order_id, waiting_list_entry_id, price, currency, promo_code_id on public.attendees
  for each row execute function private.tg__assert_unchanged(
    'organisation_id', 'event_id', 'order_id', 'waiting_list_entry_id', 'price', 'currency', 'promo_code_id'
  );
-- At depth 1 a trigger spreads an amount off: see 60-attendees/totals.sql.
create trigger attendees_050_fixed_discount before update of discount on public.attendees
  for each row when (pg_trigger_depth() = 0) execute function private.tg__assert_unchanged('discount');
create trigger attendees_050_derived before update of cancelled_at, version, created_at, updated_at on public.attendees
  for each row execute function private.tg__assert_derived_untouched(
    'Set status to cancelled to cancel the ticket.', 'cancelled_at', 'version', 'created_at', 'updated_at'
  );
create trigger attendees_100_in_use before delete on public.attendees
  for each row execute function private.tg__assert_not_in_use(
    'The attendee is in use: there are check-ins with their ticket.', 'Cancel the ticket instead: set status to cancelled.',
    'check_ins.attendee_id'
  );
create trigger attendees_100_over before delete on public.attendees
  for each row execute function private.tg_attendees__assert_over();
create trigger attendees_100_guard before insert or update on public.attendees
  for each row execute function private.tg_attendees__guard();
create trigger attendees_100_no_truncate before truncate on public.attendees
  for each statement execute function private.tg__refuse_truncate();
create trigger attendees_900_updated_at before update on public.attendees
  for each row execute function private.tg__set_updated_at('email_lower', 'checked_in');
revoke all on public.attendees from anon, authenticated, service_role;

alter table public.attendees enable row level security;
create policy attendees_select_own on public.attendees for select
  to scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy attendees_update_own on public.attendees for update to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy attendees_insert_own on public.attendees for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy attendees_select_membership on public.attendees for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy attendees_insert_membership on public.attendees for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy attendees_update_membership on public.attendees for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.attendees to scope_attendees_read, scope_attendees_write;
-- Members share one role, and viewers must not see what admits a person: see public.ticket_codes.
grant select (
  id, organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, email_lower, company, price, discount, currency, promo_code_id,
  status, checked_in_at, checked_in, ticket_email_status, ticket_email_sent_at, ticket_email_last_error, cancelled_at, erased_at, external_id,
  metadata, version, created_at, updated_at
) on public.attendees to authenticated;
-- Check-in shows who holds a ticket, not how to reach them.
grant select (
  id, organisation_id, event_id, ticket_type_id, name, company, status, checked_in_at
) on public.attendees to scope_checkin_write;
grant insert (
  organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata
) on public.attendees to scope_attendees_write, authenticated;
grant update (name, email, company, status, ticket_code, ticket_email_status, external_id, metadata) on public.attendees
  to scope_attendees_write, authenticated;

-- Changes the fields that people edit, of any number of attendees in one statement. A change is { attendee_id } and the fields to change;
-- reissue_ticket clears the ticket code.
create function private.change_attendees(changes jsonb[]) returns setof public.attendees
language plpgsql volatile set search_path = '' set enable_seqscan = off
as $$
begin
  return query
  update public.attendees a set
    (name, email, company, external_id, metadata) = (
      select n.name, n.email, n.company, n.external_id, n.metadata from jsonb_populate_record(a, c.change) n
    ),
    ticket_code = case when (c.change ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  from unnest(changes) c (change)
  where a.id = (c.change ->> 'attendee_id')::uuid
  returning a.*;
end
$$;
grant execute on function private.change_attendees to scope_attendees_write;

-- What an attendee's ticket type and order are called. Security definer: whoever reads an attendee may know this much of them.
create function private.names_of(attendee public.attendees, out ticket_type_name text, out reference text)
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
begin
  if not private.is_foreign(attendee.organisation_id) then
    select t.name into ticket_type_name from public.ticket_types t where t.id = attendee.ticket_type_id and t.event_id = attendee.event_id;
    select o.reference into names_of.reference from public.orders o where o.id = attendee.order_id;
  end if;
end
$$;
grant execute on function private.names_of to scope_attendees_read, scope_attendees_write;

-- The ticket code admits its holder: with_code only for roles that handle tickets. with_url is false in webhooks. Whoever builds many
-- gives the names.
create function private.attendee_json(
  attendee public.attendees,
  with_code boolean default true,
  ticket_type_name text default null,
  reference text default null,
  with_url boolean default true
) returns json
language plpgsql stable set search_path = ''
as $$
begin
  if ticket_type_name is null then
    select n.ticket_type_name, n.reference into ticket_type_name, reference from private.names_of(attendee) n;
  end if;
  return json_build_object(
    'object', 'attendee',
    'id', attendee.id,
    'order_id', attendee.order_id,
    'event_id', attendee.event_id,
    'ticket_type_id', attendee.ticket_type_id,
    'order', json_build_object('id', attendee.order_id, 'reference', reference),
    'ticket_type', json_build_object('id', attendee.ticket_type_id, 'name', ticket_type_name),
    'name', attendee.name,
    'email', attendee.email,
    'company', attendee.company,
    'price', attendee.price,
    'discount', attendee.discount,
    'currency', attendee.currency,
    'status', attendee.status,
    'ticket_code', case when with_code then attendee.ticket_code end,
    'ticket_url', case when with_code and with_url and attendee.erased_at is null then private.ticket_url(attendee.ticket_token) end,
    'checked_in_at', private.rfc3339(attendee.checked_in_at),
    'ticket_email', json_build_object(
      'status', attendee.ticket_email_status,
      'sent_at', private.rfc3339(attendee.ticket_email_sent_at),
      'last_error', attendee.ticket_email_last_error
    ),
    'cancelled_at', private.rfc3339(attendee.cancelled_at),
    'erased_at', private.rfc3339(attendee.erased_at),
    'external_id', attendee.external_id,
    'metadata', attendee.metadata,
    'version', attendee.version,
    'created_at', private.rfc3339(attendee.created_at),
    'updated_at', private.rfc3339(attendee.updated_at)
  );
end
$$;
grant execute on function private.attendee_json to scope_attendees_read, scope_attendees_write;

-- schemas/50-orders/payments.sql

-- Payments: what was received for an order, one row each. The sum of those that are not voided is amount_paid of the order, which
-- completes when nothing is due. Append-only: a wrong payment is voided, money that was returned is a refund, each by a row.

-- What holds for every payment: one function, as of orders.
create function private.is_sound_payment(amount bigint, received_at timestamptz, external_reference text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return amount > 0
    and received_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and (external_reference is null or private.is_sound_line('external_reference', external_reference, 255));
end
$$;
grant execute on function private.is_sound_payment to api_key, authenticated;

create table public.payments (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  order_id uuid not null,
  method public.payment_method not null default 'invoice',
  amount bigint not null,
  currency text not null,
  received_at timestamptz not null default now(),
  external_reference text,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  constraint payments_pkey primary key (id),
  constraint payments_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint payments_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint payments_are_sound check (private.is_sound_payment(amount, received_at, external_reference))
);
comment on table public.payments is 'Money received for orders. Add a row to record a payment; the order completes when nothing is due. A wrong one is taken back by a row in payment_voids.';
comment on column public.payments.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.payments.organisation_id is 'The organisation that it belongs to.';
comment on column public.payments.event_id is 'The event that it belongs to.';
comment on column public.payments.order_id is 'The order that was paid for.';
comment on column public.payments.method is 'How it was paid.';
comment on column public.payments.currency is 'ISO 4217 code, three capital letters.';
comment on column public.payments.received_at is 'When the money was received; at most a day ahead.';
comment on column public.payments.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.payments.created_at is 'When the row was added.';
comment on column public.payments.amount is 'In minor units of currency, which is the order''s.';
comment on column public.payments.external_reference is 'Its reference in another system, such as an invoice number or a bank reference.';
comment on column public.payments.recorded_by is 'The API key that recorded it. Empty if it was recorded by hand.';

create index payments_order_id_idx on public.payments (order_id);
create index payments_recorded_by_idx on public.payments (recorded_by);
-- For private.warning_of_reference.
create index payments_organisation_id_external_reference_idx on public.payments (organisation_id, external_reference)
  where external_reference is not null;

-- Security definer: it updates the order, of which a key with orders:write may change only the status.
create function private.tg_payments__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  if private.is_foreign(v_order.organisation_id) then
    perform private.refuse_not_found('order_id');
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_due := private.amount_due(v_order);

  -- A completed order is payable again once a payment was voided, or money for a ticket that stands was returned.
  if v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status <> 'pending' and v_due = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record at most what is due, and refund the rest.'
    );
  end if;

  -- Before the insert, so that a second payment in the same statement sees the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method
  where o.id = v_order.id;
  return new;
end
$$;
create trigger payments_100_guard before insert on public.payments
  for each row execute function private.tg_payments__guard();
-- A day for clocks that differ, and for dates of another time zone.
create trigger payments_300_received_at before insert on public.payments
  for each row when (new.received_at > now() + interval '1 day')
  execute function private.tg__refuse_value(
    'received_at', 'received_at is more than a day ahead.', 'Record the payment when the money is there.'
  );
create trigger payments_100_append_only before update or delete on public.payments
  for each row execute function private.tg__assert_append_only(
    'Payments are a log: they are never changed or deleted.',
    'Add a row to payment_voids to take a wrong payment back, or to refunds for money that was returned.'
  );
create trigger payments_100_no_truncate before truncate on public.payments
  for each statement execute function private.tg__refuse_truncate();

revoke all on public.payments from anon, authenticated, service_role;

alter table public.payments enable row level security;
create policy payments_select_own on public.payments for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy payments_insert_own on public.payments for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy payments_select_membership on public.payments for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy payments_insert_membership on public.payments for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.payments to scope_orders_read, scope_orders_write, authenticated;
grant insert (order_id, method, amount, currency, received_at, external_reference) on public.payments
  to scope_orders_write, authenticated;

-- Voids: payments that were recorded by mistake. A completed order stays completed, with its tickets, and is payable again.
create table public.payment_voids (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  payment_id uuid not null,
  reason text,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  constraint payment_voids_pkey primary key (id),
  constraint payment_voids_payment_id_key unique (payment_id),
  constraint payment_voids_payment_id_fkey foreign key (payment_id) references public.payments (id),
  constraint payment_voids_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint payment_voids_reason_is_one_line check (length(btrim(reason)) between 1 and 255 and reason !~ '[[:cntrl:]]')
);
comment on table public.payment_voids is 'Payments that were recorded by mistake. Add a row with payment_id to take one back: its order is payable again, and a completed one keeps its tickets.';
comment on column public.payment_voids.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.payment_voids.organisation_id is 'The organisation that it belongs to.';
comment on column public.payment_voids.payment_id is 'The payment that is taken back.';
comment on column public.payment_voids.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.payment_voids.created_at is 'When the row was added.';
comment on column public.payment_voids.reason is 'Why, for people.';
comment on column public.payment_voids.recorded_by is 'The API key that voided it. Empty if it was voided by hand.';

create index payment_voids_recorded_by_idx on public.payment_voids (recorded_by);

-- Money that was returned.
create table public.refunds (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  order_id uuid not null,
  method public.payment_method not null default 'bank_transfer',
  amount bigint not null,
  currency text not null,
  refunded_at timestamptz not null default now(),
  external_reference text,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  constraint refunds_pkey primary key (id),
  constraint refunds_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint refunds_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint refunds_amount_is_positive check (amount > 0),
  constraint refunds_refunded_at_is_finite check (refunded_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'),
  constraint refunds_external_reference_is_one_line check (
    length(btrim(external_reference)) between 1 and 255 and external_reference !~ '[[:cntrl:]]'
  )
);
comment on table public.refunds is 'Money returned for orders that are paid or cancelled. Add a row to record a refund; refund_due ends when nothing is left to refund. What is returned for a ticket that stands is due again.';
comment on column public.refunds.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.refunds.organisation_id is 'The organisation that it belongs to.';
comment on column public.refunds.event_id is 'The event that it belongs to.';
comment on column public.refunds.order_id is 'The order whose money was returned.';
comment on column public.refunds.method is 'How it was returned.';
comment on column public.refunds.currency is 'ISO 4217 code, three capital letters.';
comment on column public.refunds.refunded_at is 'When the money was returned; at most a day ahead.';
comment on column public.refunds.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.refunds.created_at is 'When the row was added.';
comment on column public.refunds.amount is 'In minor units of currency, which is the order''s. At most what was paid and not refunded yet.';
comment on column public.refunds.external_reference is 'Its reference in another system, such as a credit note or a bank reference.';
comment on column public.refunds.recorded_by is 'The API key that recorded it. Empty if it was recorded by hand.';

create index refunds_order_id_idx on public.refunds (order_id);
create index refunds_recorded_by_idx on public.refunds (recorded_by);

-- Security definer: it updates the order, as tg_payments__guard does.
create function private.tg_payment_voids__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_amount bigint;
begin
  select o.* into v_order
  from public.orders o
  where o.id = (select p.order_id from public.payments p where p.id = new.payment_id)
  for no key update;
  if private.is_foreign(v_order.organisation_id) then
    perform private.refuse_not_found('payment_id');
  end if;
  select p.amount into v_amount from public.payments p where p.id = new.payment_id;
  if exists (select from public.payment_voids v where v.payment_id = new.payment_id) then
    perform private.refuse(409, 'payment_voided', 'This payment was voided before.', 'payment_id');
  elsif v_order.amount_paid - v_amount < v_order.amount_refunded then
    perform private.refuse(
      409, 'payment_refunded', 'More was refunded than would be left of the payments.', 'payment_id',
      jsonb_build_object('amount_refunded', v_order.amount_refunded),
      'A payment whose money was returned stays: it was received.'
    );
  end if;
  new.organisation_id := v_order.organisation_id;
  update public.orders o
  set amount_paid = o.amount_paid - v_amount, amount_voided = o.amount_voided + v_amount
  where o.id = v_order.id;
  return new;
end
$$;
create trigger payment_voids_100_guard before insert on public.payment_voids
  for each row execute function private.tg_payment_voids__guard();

-- Security definer, for the same reason.
create function private.tg_refunds__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_left bigint;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  if private.is_foreign(v_order.organisation_id) then
    perform private.refuse_not_found('order_id');
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_left := v_order.amount_paid - v_order.amount_refunded;
  if v_order.status <> 'cancelled' and (v_order.status = 'pending' or v_order.amount_paid < v_order.total) then
    perform private.refuse(
      409, 'payment_due', 'Something is still due for this order.', 'order_id', jsonb_build_object('status', v_order.status),
      'Cancel the order first, or void the payment if it was recorded by mistake.'
    );
  elsif v_left = 0 then
    perform private.refuse(409, 'nothing_refundable', 'Nothing was paid for this order that is not refunded yet.', 'order_id');
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The refund is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_left then
    perform private.refuse(
      409, 'refund_too_high', 'The refund is more than what was paid and not refunded yet.', 'amount',
      jsonb_build_object('amount_left', v_left), 'Record at most amount_left.'
    );
  end if;
  update public.orders o set amount_refunded = o.amount_refunded + new.amount where o.id = v_order.id;
  return new;
end
$$;
create trigger refunds_100_guard before insert on public.refunds
  for each row execute function private.tg_refunds__guard();
create trigger refunds_300_refunded_at before insert on public.refunds
  for each row when (new.refunded_at > now() + interval '1 day')
  execute function private.tg__refuse_value(
    'refunded_at', 'refunded_at is more than a day ahead.', 'Record the refund when the money is sent.'
  );

create trigger payment_voids_100_append_only before update or delete on public.payment_voids
  for each row execute function private.tg__assert_append_only('Corrections of payments are a log: they are never changed or deleted.');
create trigger refunds_100_append_only before update or delete on public.refunds
  for each row execute function private.tg__assert_append_only('Corrections of payments are a log: they are never changed or deleted.');
create trigger payment_voids_100_no_truncate before truncate on public.payment_voids
  for each statement execute function private.tg__refuse_truncate();
create trigger refunds_100_no_truncate before truncate on public.refunds
  for each statement execute function private.tg__refuse_truncate();

revoke all on public.payment_voids, public.refunds from anon, authenticated, service_role;

alter table public.payment_voids enable row level security;
create policy payment_voids_select_own on public.payment_voids for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy payment_voids_insert_own on public.payment_voids for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy payment_voids_select_membership on public.payment_voids for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy payment_voids_insert_membership on public.payment_voids for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.payment_voids to scope_orders_read, scope_orders_write, authenticated;
grant insert (payment_id, reason) on public.payment_voids to scope_orders_write, authenticated;

alter table public.refunds enable row level security;
create policy refunds_select_own on public.refunds for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy refunds_insert_own on public.refunds for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy refunds_select_membership on public.refunds for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy refunds_insert_membership on public.refunds for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.refunds to scope_orders_read, scope_orders_write, authenticated;
grant insert (order_id, method, amount, currency, refunded_at, external_reference) on public.refunds
  to scope_orders_write, authenticated;

create function private.payment_json(payment public.payments) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'payment',
    'id', payment.id,
    'order_id', payment.order_id,
    'event_id', payment.event_id,
    'method', payment.method,
    'amount', payment.amount,
    'currency', payment.currency,
    'received_at', private.rfc3339(payment.received_at),
    'external_reference', payment.external_reference,
    'source', payment.source,
    'voided_at', (select private.rfc3339(v.created_at) from public.payment_voids v where v.payment_id = payment.id),
    'created_at', private.rfc3339(payment.created_at)
  );
end
$$;
grant execute on function private.payment_json to scope_orders_read, scope_orders_write;

-- Security definer, as that of refunds: notifications and answers have it, and a query that meets row level security is planned anew
-- whenever the role changes.
create function private.order_payments_json(order_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(private.payment_json(p) order by p.id), '[]')
    from public.payments p
    where p.order_id = order_payments_json.order_id and not private.is_foreign(p.organisation_id)
  );
end
$$;
grant execute on function private.order_payments_json to scope_orders_read, scope_orders_write;

create function private.refund_json(refund public.refunds) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'refund',
    'id', refund.id,
    'order_id', refund.order_id,
    'event_id', refund.event_id,
    'method', refund.method,
    'amount', refund.amount,
    'currency', refund.currency,
    'refunded_at', private.rfc3339(refund.refunded_at),
    'external_reference', refund.external_reference,
    'source', refund.source,
    'created_at', private.rfc3339(refund.created_at)
  );
end
$$;
grant execute on function private.refund_json to scope_orders_read, scope_orders_write;

create function private.order_refunds_json(order_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(private.refund_json(r) order by r.id), '[]')
    from public.refunds r
    where r.order_id = order_refunds_json.order_id and not private.is_foreign(r.organisation_id)
  );
end
$$;
grant execute on function private.order_refunds_json to scope_orders_read, scope_orders_write;

-- schemas/80-check-ins/points.sql

-- Check-in points, and the operations on them: gates, days and workshops of an event, each of which admits a ticket by a rule of its own.
-- What the rule means for a scan is in 80-check-ins/table.sql.

create type public.check_in_admission as enum ('once', 'once_per_day', 're_entry');
create type public.check_in_point_status as enum ('active', 'archived');

create table public.check_in_points (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  name text not null,
  ticket_type_ids uuid[] not null default '{}',
  opens_at timestamptz,
  closes_at timestamptz,
  admission public.check_in_admission not null default 'once',
  status public.check_in_point_status not null default 'active',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint check_in_points_pkey primary key (id),
  constraint check_in_points_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint check_in_points_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint check_in_points_ticket_type_ids_are_bounded check (cardinality(ticket_type_ids) <= 100),
  constraint check_in_points_opens_at_and_closes_at_are_finite check (
    opens_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and closes_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint check_in_points_closes_at_is_after_opens_at check (closes_at > opens_at)
);
comment on table public.check_in_points is 'Gates, days and workshops of an event at which tickets are scanned. Archive one to close it for good.';
comment on column public.check_in_points.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.check_in_points.organisation_id is 'The organisation that it belongs to.';
comment on column public.check_in_points.event_id is 'The event that it belongs to.';
comment on column public.check_in_points.name is 'Name for people.';
comment on column public.check_in_points.ticket_type_ids is 'Ticket types that it admits. Empty: all of the event.';
comment on column public.check_in_points.opens_at is 'Scans before it are rejected. Empty: open from the start.';
comment on column public.check_in_points.closes_at is 'Scans from then on are rejected. Empty: open to the end.';
comment on column public.check_in_points.admission is 'once; once_per_day, in the time zone of the event; or re_entry: an exit scan lets the ticket in again. Fixed once there are scans.';
comment on column public.check_in_points.status is 'active or archived; an archived one admits nobody.';
comment on column public.check_in_points.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.check_in_points.created_at is 'When the row was added.';
comment on column public.check_in_points.updated_at is 'When the row was last changed. Kept by Usher.';

create index check_in_points_event_id_id_idx on public.check_in_points (event_id, id);

-- Security definer: whoever edits a point may not read the scans, and locks other points while they are counted.
create function private.tg_check_in_points__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 100;
begin
  if tg_op = 'INSERT' then
    if not exists (
      select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id
    ) or private.is_foreign(new.organisation_id) then
      perform private.refuse_not_found('event_id');
    end if;
    -- The door list has all of them on each page.
    if (select count(*) from public.check_in_points p where p.event_id = new.event_id) >= v_most then
      perform private.refuse_value(
        'event_id', 'An event has at most 100 check-in points.', 'Delete those at which nothing was scanned, or change one.'
      );
    end if;
  end if;
  -- Only when the list is set: a point whose ticket type was deleted can still be edited and archived.
  if tg_op = 'INSERT' or new.ticket_type_ids <> old.ticket_type_ids then
    new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
    if exists (
      select from unnest(new.ticket_type_ids) i (id)
      where not exists (select from public.ticket_types t where t.id = i.id and t.event_id = new.event_id)
    ) then
      perform private.refuse_value(
        'ticket_type_ids', 'A listed ticket type does not belong to the event.',
        'List the ticket types of the event to find their identifiers.'
      );
    end if;
  end if;
  return new;
end
$$;

-- Acceptances are unique by a key that the admission determines. Scans hold the point `for key share` while they are judged.
-- Security definer, as the guard.
create function private.tg_check_in_points__assert_unused() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1 from public.check_in_points p where p.id = old.id for update;
  if exists (select from public.check_ins c where c.check_in_point_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'Tickets were scanned at this check-in point.', case tg_op when 'UPDATE' then 'admission' else 'check_in_point_id' end,
      hint => case tg_op
        when 'UPDATE' then 'Its admission is fixed: archive it, and create another.'
        else 'Archive it instead: set its status to archived.'
      end
    );
  end if;
  return case tg_op when 'UPDATE' then new else old end;
end
$$;
create trigger check_in_points_050_fixed before update of organisation_id, event_id on public.check_in_points
  for each row execute function private.tg__assert_unchanged('organisation_id', 'event_id');
create trigger check_in_points_050_organisation before insert on public.check_in_points
  for each row execute function private.tg__inherit_organisation();
create trigger check_in_points_050_derived before update of version, created_at, updated_at on public.check_in_points
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger check_in_points_100_guard before insert or update on public.check_in_points
  for each row execute function private.tg_check_in_points__guard();
create trigger check_in_points_100_in_use before delete on public.check_in_points
  for each row execute function private.tg_check_in_points__assert_unused();
create trigger check_in_points_200_admission before update on public.check_in_points
  for each row when (new.admission <> old.admission) execute function private.tg_check_in_points__assert_unused();
create trigger check_in_points_300_name before insert or update of name on public.check_in_points
  for each row execute function private.tg__assert_name();
create trigger check_in_points_300_closes_at before insert or update of opens_at, closes_at on public.check_in_points
  for each row when (new.closes_at <= new.opens_at)
  execute function private.tg__refuse_value(
    'closes_at', 'A check-in point closes after it opens.', 'Change opens_at and closes_at together.'
  );
create trigger check_in_points_900_updated_at before update on public.check_in_points
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();
create trigger check_in_points_900_version before update on public.check_in_points
  for each row when (
    new.name is distinct from old.name or new.ticket_type_ids is distinct from old.ticket_type_ids
    or new.opens_at is distinct from old.opens_at or new.closes_at is distinct from old.closes_at
    or new.admission is distinct from old.admission or new.status is distinct from old.status
  )
  execute function private.tg__count_version();

revoke all on public.check_in_points from anon, authenticated, service_role;

alter table public.check_in_points enable row level security;
create policy check_in_points_select_own on public.check_in_points for select to scope_events_read, scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_insert_own on public.check_in_points for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_update_own on public.check_in_points for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_delete_own on public.check_in_points for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_select_membership on public.check_in_points for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy check_in_points_insert_membership on public.check_in_points for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy check_in_points_update_membership on public.check_in_points for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.check_in_points to scope_events_read, scope_events_write, authenticated;
grant insert (organisation_id, event_id, name, ticket_type_ids, opens_at, closes_at, admission, status)
  on public.check_in_points to scope_events_write, authenticated;
grant update (name, ticket_type_ids, opens_at, closes_at, admission, status)
  on public.check_in_points to scope_events_write, authenticated;
grant delete on public.check_in_points to scope_events_write;

create function private.check_in_point_json(point public.check_in_points) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'check_in_point',
    'id', point.id,
    'event_id', point.event_id,
    'name', point.name,
    'ticket_type_ids', point.ticket_type_ids,
    'opens_at', private.rfc3339(point.opens_at),
    'closes_at', private.rfc3339(point.closes_at),
    'admission', point.admission,
    'status', point.status,
    'version', point.version,
    'created_at', private.rfc3339(point.created_at),
    'updated_at', private.rfc3339(point.updated_at)
  );
end
$$;
grant execute on function private.check_in_point_json to scope_events_read, scope_events_write;

create function api.list_check_in_points(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_after uuid := coalesce(private.decode_cursor(cursor), '00000000-0000-0000-0000-000000000000');
begin
  if not exists (select from public.events e where e.id = list_check_in_points.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.page(
    array(
      select private.check_in_point_json(p)
      from public.check_in_points p
      where p.event_id = list_check_in_points.event_id and p.id > v_after
      order by p.id
      limit v_size + 1
    ),
    v_size
  );
end
$$;
comment on function api.list_check_in_points is
  'Check-in points of an event, the oldest first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_check_in_points to scope_events_read;

create function api.get_check_in_point(check_in_point_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_point public.check_in_points;
begin
  select p.* into v_point from public.check_in_points p where p.id = get_check_in_point.check_in_point_id;
  if not found then
    perform private.refuse_not_found('check_in_point_id');
  end if;
  return private.check_in_point_json(v_point);
end
$$;
comment on function api.get_check_in_point is 'One check-in point. 404 not_found.';
grant execute on function api.get_check_in_point to scope_events_read;

create function api.create_check_in_point(
  event_id uuid,
  name text,
  ticket_type_ids uuid[] default null,
  -- As written: see private.warning_of_offset.
  opens_at text default null,
  closes_at text default null,
  admission public.check_in_admission default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_point public.check_in_points;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_check_in_point.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.check_in_points (organisation_id, event_id, name, ticket_type_ids, opens_at, closes_at, admission)
  values (
    v_organisation_id, create_check_in_point.event_id, create_check_in_point.name, coalesce(create_check_in_point.ticket_type_ids, '{}'),
    create_check_in_point.opens_at::timestamptz, create_check_in_point.closes_at::timestamptz, coalesce(create_check_in_point.admission, 'once')
  )
  returning * into v_point;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 201, 'data', private.check_in_point_json(v_point)),
      private.warning_of_offset(jsonb_build_object('opens_at', opens_at, 'closes_at', closes_at), v_point.event_id)
    )
  );
end
$$;
comment on function api.create_check_in_point is 'Adds a check-in point to an event: 201. 404 not_found; 422 validation_failed.';
grant execute on function api.create_check_in_point to scope_events_write;

create function api.update_check_in_point(
  check_in_point_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_point public.check_in_points;
  v_new public.check_in_points;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select p.* into v_point from public.check_in_points p where p.id = update_check_in_point.check_in_point_id for no key update;
  if not found then
    perform private.refuse_not_found('check_in_point_id');
  end if;
  perform private.assert_version(v_point.version, if_version);

  v_new := jsonb_populate_record(v_point, changes);
  update public.check_in_points p set
    name = v_new.name,
    ticket_type_ids = v_new.ticket_type_ids,
    opens_at = v_new.opens_at,
    closes_at = v_new.closes_at,
    admission = v_new.admission,
    status = v_new.status
  where p.id = v_point.id
  returning * into v_point;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 200, 'data', private.check_in_point_json(v_point)),
      private.warning_of_offset(changes, v_point.event_id)
    )
  );
end
$$;
comment on function api.update_check_in_point is
  'Changes fields of a check-in point (status archived closes it for good): 200. 404 not_found; 409 in_use; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_check_in_point to scope_events_write;

create function api.delete_check_in_point(
  check_in_point_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  delete from public.check_in_points p where p.id = delete_check_in_point.check_in_point_id;
  if not found then
    perform private.refuse_not_found('check_in_point_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'check_in_point', 'id', check_in_point_id, 'deleted', true)
  ));
end
$$;
comment on function api.delete_check_in_point is 'Deletes a check-in point at which nothing was scanned: 200. 404 not_found; 409 in_use.';
grant execute on function api.delete_check_in_point to scope_events_write;

-- schemas/80-check-ins/table.sql

-- Check-ins: every scan is a row that holds its verdict. A caller adds the event, and a code or an attendee, through the API or in
-- Studio; the trigger finds the attendee, locks them, and sets accepted, or rejected with a reason.
-- Append-only: an acceptance can be undone once, and no row is ever deleted.

create type public.check_in_result as enum ('accepted', 'rejected');
create type public.check_in_reason as enum (
  'not_found', 'wrong_event', 'already_checked_in', 'cancelled', 'unpaid', 'event_cancelled', 'not_admitted_here', 'point_closed',
  'not_inside', 'turned_away'
);
create type public.check_in_direction as enum ('entry', 'exit');

create table public.check_ins (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  check_in_point_id uuid,
  attendee_id uuid,
  code text,
  direction public.check_in_direction not null default 'entry',
  result public.check_in_result not null,
  reason public.check_in_reason,
  earlier_check_in_id uuid,
  admission_key text,
  device text,
  scan_id text,
  admitted boolean,
  source public.request_source not null default private.current_source(),
  api_key_id uuid default private.current_api_key_id(),
  scanned_at timestamptz not null default now(),
  exited_at timestamptz,
  undone_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint check_ins_pkey primary key (id),
  constraint check_ins_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint check_ins_attendee_id_fkey foreign key (attendee_id) references public.attendees (id),
  constraint check_ins_check_in_point_id_fkey foreign key (check_in_point_id) references public.check_in_points (id),
  constraint check_ins_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete set null
);

-- What holds for every check-in, whoever writes it. One function: Postgres plans each check constraint anew for every statement.
create function private.is_sound_check_in(check_in public.check_ins) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return
    length(check_in.code) between 1 and 200
    and (check_in.device is null or private.is_sound_line('device', check_in.device, 100))
    and length(check_in.scan_id) between 1 and 100
    and (check_in.result = 'rejected') = (check_in.reason is not null)
    and (check_in.result = 'rejected' or check_in.attendee_id is not null)
    and (check_in.undone_at is null or check_in.result = 'accepted')
    and (check_in.admission_key is null or (check_in.result = 'accepted' and check_in.direction = 'entry' and check_in.undone_at is null));
end
$$;
grant execute on function private.is_sound_check_in to api_key, authenticated;
alter table public.check_ins add constraint check_ins_are_sound check (private.is_sound_check_in(check_ins));
comment on table public.check_ins is 'Every scan at the door, accepted or not. Add a row with event_id, and code or attendee_id, to check in by hand; set undone_at to take an acceptance back.';
comment on column public.check_ins.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.check_ins.organisation_id is 'The organisation that it belongs to.';
comment on column public.check_ins.event_id is 'The event that it belongs to.';
comment on column public.check_ins.result is 'accepted or rejected.';
comment on column public.check_ins.device is 'Scanner or entrance, for people.';
comment on column public.check_ins.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.check_ins.api_key_id is 'The API key that scanned, where it was one.';
comment on column public.check_ins.scanned_at is 'When it was scanned.';
comment on column public.check_ins.undone_at is 'When the acceptance was taken back. Set it to do so.';
comment on column public.check_ins.created_at is 'When the row was added.';
comment on column public.check_ins.updated_at is 'When the row was last changed. Kept by Usher.';
-- Not filled in from the attendee: whoever names an attendee learns no ticket code.
comment on column public.check_ins.code is 'The text that was scanned, even if no ticket has this code. Empty where the attendee was named instead.';
comment on column public.check_ins.attendee_id is 'Whose ticket it is. Empty where no ticket has the code, or no attendee the id that was named.';
comment on column public.check_ins.scan_id is 'Identifier given by an offline scanner, so that a scan sent twice counts once.';
comment on column public.check_ins.reason is 'Why it was rejected. Empty when accepted.';
comment on column public.check_ins.check_in_point_id is 'The check-in point where it was scanned. Empty: the event as such.';
comment on column public.check_ins.direction is 'entry or exit.';
comment on column public.check_ins.admitted is 'What an offline scanner said: whether it let the person in.';
comment on column public.check_ins.earlier_check_in_id is 'Of a rejection as already_checked_in the entry that stood; of an exit the entry that it ends.';
comment on column public.check_ins.exited_at is 'Of an entry: when the person left by an exit scan. Kept by Usher.';
comment on column public.check_ins.admission_key is
  'What an entry uses up, once for each attendee: the check-in point, or event, and at a point with once_per_day the day. Emptied when it is undone, or ended by an exit at a point with re_entry.';

-- At most one standing acceptance per attendee, check-in point and day, whatever else goes wrong.
create unique index check_ins_one_acceptance_idx on public.check_ins (attendee_id, admission_key)
  where admission_key is not null;
create index check_ins_check_in_point_id_idx on public.check_ins (check_in_point_id, attendee_id) where check_in_point_id is not null;
-- For api.list_check_in_conflicts.
create index check_ins_event_id_conflicts_idx on public.check_ins (event_id, id) where admitted and result = 'rejected';
create unique index check_ins_event_id_scan_id_key on public.check_ins (event_id, scan_id) where scan_id is not null;
create index check_ins_attendee_id_idx on public.check_ins (attendee_id);
-- For private.page_of_check_ins.
create index check_ins_event_id_result_idx on public.check_ins (event_id, result, id);
create index check_ins_organisation_id_result_idx on public.check_ins (organisation_id, result, id);
create index check_ins_api_key_id_idx on public.check_ins (api_key_id);

-- A typed code may be in lower case, with spaces or hyphens.
create function private.as_ticket_code(code text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  return upper(regexp_replace(code, '[[:space:]-]', '', 'g'));
end
$$;
grant execute on function private.as_ticket_code to scope_checkin_write;

-- Security definer: it locks the attendee and reads its ticket code, which a key with checkin:write may not, and ends the entry of
-- an exit.
create function private.tg_check_ins__judge() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_attendee public.attendees;
  v_point public.check_in_points;
  v_point_is_gone boolean := false;
  v_code text := private.as_ticket_code(new.code);
  v_key text;
begin
  if new.code is null and new.attendee_id is null then
    perform private.refuse_value('code', 'Give the code of the ticket, or attendee_id.');
  elsif new.code is not null and new.attendee_id is not null then
    perform private.refuse_value('attendee_id', 'Give either the code of the ticket or attendee_id, not both.');
  end if;

  select e.* into v_event from public.events e where e.id = new.event_id;
  if private.is_foreign(v_event.organisation_id) then
    perform private.refuse_not_found('event_id');
  end if;
  new.organisation_id := v_event.organisation_id;
  -- A scanner's clock may be ahead: no scan is later than now.
  new.scanned_at := least(new.scanned_at, now());

  if new.code is null then
    -- Not `=`: the planner might prefer an index that begins with the organisation.
    select a.* into v_attendee
    from public.attendees a
    where a.id = new.attendee_id and a.organisation_id is not distinct from new.organisation_id
    for no key update;
  else
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = new.organisation_id and a.ticket_code = v_code
    for no key update;
  end if;
  new.attendee_id := v_attendee.id;

  if new.check_in_point_id is not null then
    -- Locked, so that its admission is the one that the key is made by: see tg_check_in_points__assert_unused.
    select p.* into v_point from public.check_in_points p where p.id = new.check_in_point_id for key share;
    if v_point.event_id is distinct from new.event_id then
      -- A scan made offline is logged all the same: the person may be in, and the others of its batch are not to wait.
      if new.scan_id is null then
        perform private.refuse_not_found('check_in_point_id');
      end if;
      new.check_in_point_id := null;
      v_point_is_gone := true;
    end if;
  end if;
  v_key := concat_ws(
    '/', coalesce(new.check_in_point_id::text, 'event'),
    case v_point.admission when 'once_per_day' then to_char(new.scanned_at at time zone v_event.timezone, 'YYYY-MM-DD') end
  );

  -- Whoever leaves is asked for nothing but an entry.
  new.reason := case
    when v_event.status = 'cancelled' and new.direction = 'entry' then 'event_cancelled'
    when v_attendee.id is null then 'not_found'
    when v_attendee.event_id <> new.event_id then 'wrong_event'
    when new.direction = 'exit' then null
    when v_attendee.status = 'cancelled' then 'cancelled'
    when v_attendee.status = 'awaiting_payment' then 'unpaid'
    when v_point_is_gone or v_point.status = 'archived' or new.scanned_at < v_point.opens_at or new.scanned_at >= v_point.closes_at
      then 'point_closed'
    when v_point.ticket_type_ids <> '{}' and v_attendee.ticket_type_id <> all (v_point.ticket_type_ids) then 'not_admitted_here'
  end::public.check_in_reason;
  -- The same statement may hold an earlier scan of the ticket: it is in the log already, while the attendee is updated at its end.
  new.earlier_check_in_id := null;
  if new.reason is null and new.direction = 'entry' then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.admission_key = v_key;
    if found then
      new.reason := 'already_checked_in';
    end if;
  elsif new.reason is null then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.check_in_point_id is not distinct from new.check_in_point_id
      and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null and c.exited_at is null
    order by c.scanned_at desc, c.id desc
    limit 1;
    if not found or v_point_is_gone then
      new.earlier_check_in_id := null;
      new.reason := 'not_inside';
    end if;
  end if;
  if new.reason is null and not new.admitted then
    new.earlier_check_in_id := null;
    new.reason := 'turned_away';
  end if;

  new.result := case when new.reason is null then 'accepted' else 'rejected' end::public.check_in_result;
  new.admission_key := case when new.result = 'accepted' and new.direction = 'entry' then v_key end;
  new.exited_at := null;
  new.undone_at := null;
  if new.result = 'accepted' and new.direction = 'exit' then
    update public.check_ins c
    set
      exited_at = greatest(c.scanned_at, new.scanned_at),
      admission_key = case when v_point.admission = 're_entry' then null else c.admission_key end
    where c.id = new.earlier_check_in_id;
  end if;
  return new;
end
$$;
create trigger check_ins_100_judge before insert on public.check_ins
  for each row execute function private.tg_check_ins__judge();

-- Once a statement, so that a batch is one update of its attendees. Security definer: a key with checkin:write may not update them.
-- By their ids rather than by a join, whose plan would be that of the first call.
create function private.tg_check_ins__admit() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_attendee_ids uuid[];
  v_times timestamptz[];
begin
  select array_agg(f.attendee_id), array_agg(f.scanned_at) into v_attendee_ids, v_times
  from (
    select n.attendee_id, min(n.scanned_at) filter (where n.direction = 'entry') as scanned_at
    from new_rows n
    where n.result = 'accepted'
    group by n.attendee_id
  ) f;
  -- An exit writes the row as it is: private.door_list finds what changed by it.
  if v_attendee_ids is not null then
    update public.attendees a
    set checked_in_at = least(a.checked_in_at, v_times[array_position(v_attendee_ids, a.id)])
    where a.id = any (v_attendee_ids);
  end if;
  return null;
end
$$;
create trigger check_ins_500_admit after insert on public.check_ins
  referencing new table as new_rows
  for each statement execute function private.tg_check_ins__admit();

create function private.tg_check_ins__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_free text[] := '{undone_at,updated_at,api_key_id}';
begin
  if tg_op = 'DELETE' then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: they are never deleted.', hint => 'Set undone_at to take an acceptance back.'
    );
  end if;
  -- Deleting an API key empties api_key_id of its scans, and an exit ends its entry; besides undone_at, no other column may change.
  if pg_trigger_depth() > 1 then
    v_free := v_free || '{exited_at,admission_key}';
  end if;
  if to_jsonb(new) - v_free <> to_jsonb(old) - v_free
    or (new.api_key_id is not null and new.api_key_id is distinct from old.api_key_id) then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: only undone_at can be set.', hint => 'Set undone_at to take an acceptance back.'
    );
  end if;
  if new.undone_at is distinct from old.undone_at then
    if old.result = 'rejected' then
      perform private.refuse(409, 'check_in_not_accepted', 'A rejected check-in cannot be undone.', 'check_in_id');
    elsif old.undone_at is not null then
      perform private.refuse(
        409, 'check_in_already_undone', 'This check-in was undone before.', 'check_in_id',
        jsonb_build_object('undone_at', private.rfc3339(old.undone_at))
      );
    end if;
    new.undone_at := now();
    new.admission_key := null;
  end if;
  return new;
end
$$;
create trigger check_ins_100_guard before update or delete on public.check_ins
  for each row execute function private.tg_check_ins__guard();
create trigger check_ins_100_no_truncate before truncate on public.check_ins
  for each statement execute function private.tg__refuse_truncate();
create trigger check_ins_900_updated_at before update on public.check_ins
  for each row execute function private.tg__set_updated_at();

-- Undoing an exit lets its entry stand again. Security definer, as tg_check_ins__admit.
create function private.tg_check_ins__undo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key text;
begin
  if new.direction = 'exit' then
    -- Where an exit emptied it, it had no day.
    select coalesce(c.admission_key, c.check_in_point_id::text, 'event') into v_key
    from public.check_ins c
    where c.id = new.earlier_check_in_id and c.undone_at is null;
    if exists (
      select from public.check_ins c
      where c.attendee_id = new.attendee_id and c.admission_key = v_key and c.id <> new.earlier_check_in_id
    ) then
      perform private.refuse(
        409, 'already_checked_in', 'The person came in again since.', 'check_in_id', hint => 'Undo the later check-in first.'
      );
    end if;
    update public.check_ins c set exited_at = null, admission_key = v_key
    where c.id = new.earlier_check_in_id and c.undone_at is null;
  end if;
  update public.attendees a
  set checked_in_at = (
    select min(c.scanned_at)
    from public.check_ins c
    where c.attendee_id = a.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
  )
  where a.id = new.attendee_id;
  return null;
end
$$;
create trigger check_ins_500_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at)
  execute function private.tg_check_ins__undo();

revoke all on public.check_ins from anon, authenticated, service_role;

alter table public.check_ins enable row level security;
create policy check_ins_select_own on public.check_ins for select to scope_checkin_write, scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy check_ins_insert_own on public.check_ins for insert to scope_checkin_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy check_ins_update_own on public.check_ins for update to scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_ins_select_membership on public.check_ins for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy check_ins_insert_membership on public.check_ins for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager,door}')));
create policy check_ins_update_membership on public.check_ins for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door}')));
grant select on public.check_ins to scope_checkin_write, scope_attendees_read;
grant select (
  id, organisation_id, event_id, check_in_point_id, attendee_id, direction, result, reason, earlier_check_in_id, device, scan_id, admitted,
  source, api_key_id, scanned_at, exited_at, undone_at, created_at, updated_at
) on public.check_ins to authenticated;
grant insert (id, event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at) on public.check_ins to scope_checkin_write;
grant insert (event_id, check_in_point_id, code, attendee_id, direction, device) on public.check_ins to authenticated;
grant update (undone_at) on public.check_ins to scope_checkin_write, authenticated;

-- An attendee as the door sees them: without e-mail address and ticket code.
create function private.door_attendee_json(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'door_attendee',
      'id', a.id,
      'event_id', a.event_id,
      'name', a.name,
      'company', a.company,
      'status', a.status,
      'ticket_type', json_build_object('object', 'ticket_type', 'id', t.id, 'name', t.name),
      'checked_in_at', private.rfc3339(a.checked_in_at)
    )
    from public.attendees a
    join public.ticket_types t on t.id = a.ticket_type_id
    where a.id = door_attendee_json.attendee_id
  );
end
$$;
grant execute on function private.door_attendee_json to scope_checkin_write, scope_attendees_read;

create function private.check_in_json(check_in public.check_ins) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'check_in',
    'id', check_in.id,
    'event_id', check_in.event_id,
    'result', check_in.result,
    'reason', check_in.reason,
    'direction', check_in.direction,
    'check_in_point_id', check_in.check_in_point_id,
    'admitted', check_in.admitted,
    'earlier', case when check_in.earlier_check_in_id is not null then (
      select json_build_object('id', c.id, 'scanned_at', private.rfc3339(c.scanned_at), 'device', c.device)
      from public.check_ins c
      where c.id = check_in.earlier_check_in_id
    ) end,
    'exited_at', private.rfc3339(check_in.exited_at),
    'attendee', private.door_attendee_json(check_in.attendee_id),
    'device', check_in.device,
    'scan_id', check_in.scan_id,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'undone_at', private.rfc3339(check_in.undone_at),
    'created_at', private.rfc3339(check_in.created_at),
    'updated_at', private.rfc3339(check_in.updated_at)
  );
end
$$;
grant execute on function private.check_in_json to scope_checkin_write, scope_attendees_read;

-- schemas/90-outbox/endpoints.sql

-- Webhook endpoints: URLs that are notified of the types they subscribe to. Webhooks are signed with a secret per endpoint
-- (https://www.standardwebhooks.com), which is shown at creation and rotation and never again.

-- The first part of a type names the object in its data, which has the JSON shape of the API.
create type public.notification_type as enum (
  'order.created',
  'order.completed',
  'order.cancelled',
  'order.expired',
  'attendee.checked_in',
  'attendee.checked_out',
  'attendee.check_in_undone',
  'attendee.updated',
  'attendee.cancelled',
  'attendee.erased',
  'event.published',
  'event.updated',
  'event.cancelled',
  'payment.recorded',
  'payment.voided',
  'refund.recorded',
  'email.bounced',
  'ticket_type.sold_out',
  'waiting_list_entry.created',
  'waiting_list_entry.offered',
  'waiting_list_entry.accepted',
  'waiting_list_entry.expired',
  'waiting_list_entry.cancelled',
  'webhook_endpoint.test'
);
create type public.webhook_endpoint_status as enum ('enabled', 'disabled');

create table public.webhook_endpoints (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  url text not null,
  description text,
  types public.notification_type[] not null,
  event_ids uuid[] not null default '{}',
  status public.webhook_endpoint_status not null default 'enabled',
  disabled_reason text,
  failing_since timestamptz,
  last_failed_at timestamptz,
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_endpoints_pkey primary key (id),
  constraint webhook_endpoints_id_organisation_id_key unique (id, organisation_id),
  constraint webhook_endpoints_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint webhook_endpoints_url_is_https check (private.is_courier_url(url)),
  constraint webhook_endpoints_description_is_one_line check (
    length(btrim(description)) between 1 and 200 and description !~ '[[:cntrl:]]'
  ),
  constraint webhook_endpoints_types_are_chosen check (
    cardinality(types) > 0 and array_position(types, null) is null and 'webhook_endpoint.test' <> all (types)
  ),
  constraint webhook_endpoints_event_ids_are_few check (cardinality(event_ids) <= 100 and array_position(event_ids, null) is null),
  constraint webhook_endpoints_disabled_reason_is_bounded check (length(disabled_reason) <= 500)
);
comment on table public.webhook_endpoints is 'URLs that are notified of what happens. Set status to disabled to stop sending; delete the row to remove it with its deliveries.';
comment on column public.webhook_endpoints.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.webhook_endpoints.organisation_id is 'The organisation that it belongs to.';
comment on column public.webhook_endpoints.description is 'What receives the webhooks, for people.';
comment on column public.webhook_endpoints.status is 'enabled or disabled.';
comment on column public.webhook_endpoints.last_failed_at is 'When a delivery last failed. Kept by the courier.';
comment on column public.webhook_endpoints.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.webhook_endpoints.created_at is 'When the row was added.';
comment on column public.webhook_endpoints.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.webhook_endpoints.url is 'An https address. http only for localhost, in development.';
comment on column public.webhook_endpoints.types is 'The types of notification it is subscribed to.';
comment on column public.webhook_endpoints.event_ids is 'Only what belongs to one of these events is sent. Empty: all events.';
comment on column public.webhook_endpoints.failing_since is 'Since when no delivery has succeeded. Kept by the courier.';
comment on column public.webhook_endpoints.disabled_reason is 'Why Usher disabled it. Empty if a person or an API key did.';

create index webhook_endpoints_organisation_id_id_idx on public.webhook_endpoints (organisation_id, id desc);

-- The current secret, and for a while after a rotation the previous one.
create table private.webhook_secrets (
  id uuid not null default private.uuid_v7(),
  webhook_endpoint_id uuid not null,
  secret text not null,
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint webhook_secrets_pkey primary key (id),
  constraint webhook_secrets_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade,
  constraint webhook_secrets_secret_is_standard check (secret ~ '^whsec_[A-Za-z0-9+/]{43}=$')
);
comment on table private.webhook_secrets is 'Secrets that sign webhooks. Signing needs the plain text, so it is stored as it is, in a table that no role may read.';

create index webhook_secrets_webhook_endpoint_id_idx on private.webhook_secrets (webhook_endpoint_id);
alter table private.webhook_secrets enable row level security;

-- The scope that a key needs to subscribe to a type: the one that reads its object.
create function private.scope_to_read(type public.notification_type) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return case split_part(type::text, '.', 1)
    when 'order' then 'orders:read'
    when 'payment' then 'orders:read'
    when 'refund' then 'orders:read'
    when 'attendee' then 'attendees:read'
    when 'email' then 'attendees:read'
    when 'waiting_list_entry' then 'attendees:read'
    when 'event' then 'events:read'
    when 'ticket_type' then 'events:read'
    else 'events:write'
  end::public.api_scope;
end
$$;
grant execute on function private.scope_to_read to scope_events_write;

-- An API key may subscribe only to what it may read. The same holds when it changes the URL.
create function private.assert_scopes_to_read(types public.notification_type[]) returns void
language plpgsql stable set search_path = ''
as $$
declare
  v_missing public.api_scope;
begin
  select private.scope_to_read(t) into v_missing
  from unnest(types) t
  where private.scope_to_read(t) <> all (private.current_scopes())
  limit 1;
  if found then
    perform private.refuse(
      403, 'missing_scope', 'The API key lacks a scope that is needed to read what the endpoint subscribes to.', 'types',
      jsonb_build_object('scope', v_missing), 'Use a key that has the scope, or choose other types.'
    );
  end if;
end
$$;
grant execute on function private.assert_scopes_to_read to scope_events_write;

-- 256 bits: sha256 of two random UUIDs, in the format of the libraries for Standard Webhooks.
create function private.add_webhook_secret(webhook_endpoint_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.webhook_secrets (webhook_endpoint_id, secret)
  values (
    add_webhook_secret.webhook_endpoint_id,
    'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
  );
end
$$;

create function private.tg_webhook_endpoints__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_most_endpoints constant integer := 50;
begin
  if tg_op = 'INSERT' then
    -- One at a time: two concurrent inserts would not count each other.
    perform pg_advisory_xact_lock(5, hashtext(new.organisation_id::text));
    if (select count(*) from public.webhook_endpoints w where w.organisation_id = new.organisation_id) >= v_most_endpoints then
      perform private.refuse(
        409, 'too_many_webhook_endpoints', format('An organisation has at most %s webhook endpoints.', v_most_endpoints),
        hint => 'Delete one that is not needed, or let one endpoint subscribe to more types.'
      );
    end if;
  end if;
  -- What is already pending is still sent, so the old types count, too. Disabling needs none of these scopes.
  if private.current_api_key_id() is not null then
    if tg_op = 'INSERT' then
      perform private.assert_scopes_to_read(new.types);
    elsif (new.url, new.types) is distinct from (old.url, old.types) or (old.status = 'disabled' and new.status = 'enabled') then
      perform private.assert_scopes_to_read(new.types || old.types);
    end if;
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if tg_op = 'INSERT' or new.event_ids is distinct from old.event_ids then
    new.event_ids := array(select distinct e from unnest(new.event_ids) e order by e);
    if cardinality(new.event_ids) > 100 then
      perform private.refuse_value('event_ids', 'An endpoint names at most 100 events.', 'Leave event_ids empty for all events.');
    end if;
    if exists (
      -- One of a draft that was deleted since may stay.
      select from unnest(new.event_ids) i (id)
      where i.id <> all (coalesce(old.event_ids, '{}'))
        and not exists (select from public.events e where e.id = i.id and e.organisation_id = new.organisation_id)
    ) then
      perform private.refuse_not_found('event_ids');
    end if;
  end if;
  if new.status = 'enabled' then
    new.disabled_reason := null;
    -- Once enabled again or given a new URL, an endpoint has five days again before it is disabled.
    if tg_op = 'UPDATE' and (old.status = 'disabled' or new.url <> old.url) then
      new.failing_since := null;
    end if;
  end if;
  return new;
end
$$;
create trigger webhook_endpoints_050_fill_organisation before insert on public.webhook_endpoints
  for each row execute function private.tg__fill_organisation();
create trigger webhook_endpoints_050_fixed before update of organisation_id on public.webhook_endpoints
  for each row execute function private.tg__assert_unchanged('organisation_id');
create trigger webhook_endpoints_050_derived before update of version, created_at, updated_at on public.webhook_endpoints
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger webhook_endpoints_100_guard before insert or update on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__guard();
create trigger webhook_endpoints_300_url before insert or update of url on public.webhook_endpoints
  for each row when (not private.is_courier_url(new.url))
  execute function private.tg__refuse_value(
    'url', 'The URL of a webhook endpoint is an https address without a password.', 'http is allowed for localhost only.'
  );
create trigger webhook_endpoints_900_updated_at before update on public.webhook_endpoints
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();
create trigger webhook_endpoints_900_version before update on public.webhook_endpoints
  for each row when (
    new.url is distinct from old.url or new.description is distinct from old.description
    or new.types is distinct from old.types or new.event_ids is distinct from old.event_ids
    or new.status is distinct from old.status
  )
  execute function private.tg__count_version();

-- Security definer: no role may write secrets.
create function private.tg_webhook_endpoints__add_secret() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.add_webhook_secret(new.id);
  return null;
end
$$;
create trigger webhook_endpoints_500_add_secret after insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__add_secret();

revoke all on public.webhook_endpoints from anon, authenticated, service_role;

alter table public.webhook_endpoints enable row level security;
create policy webhook_endpoints_select_own on public.webhook_endpoints for select to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_insert_own on public.webhook_endpoints for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_update_own on public.webhook_endpoints for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_delete_own on public.webhook_endpoints for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_select_membership on public.webhook_endpoints for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy webhook_endpoints_insert_membership on public.webhook_endpoints for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy webhook_endpoints_update_membership on public.webhook_endpoints for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy webhook_endpoints_delete_membership on public.webhook_endpoints for delete to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select, delete on public.webhook_endpoints to scope_events_write, authenticated;
grant insert (organisation_id, url, description, types, event_ids) on public.webhook_endpoints to scope_events_write, authenticated;
grant update (url, description, types, event_ids, status) on public.webhook_endpoints to scope_events_write, authenticated;

create function private.webhook_endpoint_json(webhook_endpoint public.webhook_endpoints, secret text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_endpoint',
    'id', webhook_endpoint.id,
    'url', webhook_endpoint.url,
    'description', webhook_endpoint.description,
    'types', webhook_endpoint.types,
    'event_ids', webhook_endpoint.event_ids,
    'status', webhook_endpoint.status,
    'disabled_reason', webhook_endpoint.disabled_reason,
    'failing_since', private.rfc3339(webhook_endpoint.failing_since),
    'secret', secret,
    'version', webhook_endpoint.version,
    'created_at', private.rfc3339(webhook_endpoint.created_at),
    'updated_at', private.rfc3339(webhook_endpoint.updated_at)
  );
end
$$;
grant execute on function private.webhook_endpoint_json to scope_events_write;

-- schemas/90-outbox/notifications.sql

-- The log of notifications. A change writes its notifications and one row of a queue in its own transaction, however many
-- webhook endpoints there are; after the commit the courier fans them out to one delivery per subscribed endpoint. Nothing is
-- sent from here.

create table public.notifications (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  type public.notification_type not null,
  data json not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  created_at timestamptz not null default now(),
  subject_id uuid generated always as (
    case
      -- An entry that was accepted names its order as well. The others of these would be found without: to read the JSON once is cheaper.
      when type in ('waiting_list_entry.accepted', 'order.created', 'order.completed', 'order.cancelled', 'order.expired') then data ->> 'id'
      else coalesce(data ->> 'order_id', data ->> 'id', data ->> 'waiting_list_entry_id')
    end::uuid
  ) stored,
  constraint notifications_pkey primary key (id),
  constraint notifications_id_organisation_id_key unique (id, organisation_id),
  constraint notifications_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);
comment on table public.notifications is 'The outbox, readable as a log of what happened, oldest first. Written by Usher only.';
comment on column public.notifications.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.notifications.organisation_id is 'The organisation that it belongs to.';
comment on column public.notifications.type is 'What happened.';
comment on column public.notifications.created_at is 'When the row was added.';
comment on column public.notifications.data is 'The object in the JSON shape of the API at that time: an order as of the end of the transaction, without ticket codes.';
comment on column public.notifications.transaction_id is
  'Ids are assigned before the commit and may become visible out of order; a reader that continues from the last one it saw must miss none. So the log is in the order of transactions, and shows only those older than every open one.';
comment on column public.notifications.subject_id is
  'What it is found by when a person is erased: the order that it belongs to, the entry of the waiting list, or the object itself.';

create index notifications_organisation_id_transaction_id_id_idx on public.notifications (organisation_id, transaction_id, id);
-- For private.page_of_notifications.
create index notifications_organisation_id_type_idx on public.notifications (organisation_id, type, transaction_id, id);
-- For private.erase_copies.
create index notifications_subject_id_idx on public.notifications (subject_id);
-- For api.purge.
create index notifications_created_at_idx on public.notifications (created_at);

-- An API key reads notifications of the objects that it may read.
create function private.readable_types() returns public.notification_type[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select t from unnest(enum_range(null::public.notification_type)) t
    where private.scope_to_read(t) = any (private.current_scopes())
  );
end
$$;
grant execute on function private.readable_types to scope_events_write;

revoke all on public.notifications from anon, authenticated, service_role;

alter table public.notifications enable row level security;
create policy notifications_select_own on public.notifications for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy notifications_select_membership on public.notifications for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.notifications to scope_events_write;
grant select (id, organisation_id, type, created_at) on public.notifications to authenticated;

-- Ids of the notifications of a page, oldest first: see 00-ground/pages.sql.
create function private.page_of_notifications(
  types public.notification_type[], after_transaction_id xid8, after_id uuid, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_before_transaction_id xid8 := pg_snapshot_xmin(pg_current_snapshot());
begin
  return array(
    select f.id
    from unnest(types) t (type)
    cross join lateral (
      select n.transaction_id, n.id
      from public.notifications n
      where n.organisation_id = any (v_organisation_ids)
        and n.type = t.type
        and (n.transaction_id, n.id) > (after_transaction_id, after_id)
        and n.transaction_id < v_before_transaction_id
      order by n.organisation_id, n.transaction_id, n.id
      limit size
    ) f
    order by f.transaction_id, f.id
    limit size
  );
end
$$;
grant execute on function private.page_of_notifications to scope_events_write;

-- Oldest first, to continue from the last one seen: `after` is the id of a notification, which is also the webhook-id of its
-- deliveries; `cursor` walks the pages as in any list.
create function api.list_notifications(
  type public.notification_type default null,
  after uuid default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_notification public.notifications;
  v_item json;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is no longer kept.',
        case when cursor is null then 'after' else 'cursor' end,
        hint => 'Leave it out to start from the oldest that is kept.'
      );
    end if;
  end if;

  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_notifications.type);
  end if;
  v_ids := private.page_of_notifications(
    v_types, coalesce(v_last.transaction_id, '0'), coalesce(v_last.id, '00000000-0000-0000-0000-000000000000'), v_size + 1
  );
  for v_notification in
    select n.*
    from unnest(v_ids) i (id)
    cross join lateral (select n.* from public.notifications n where n.id = i.id offset 0) n
    order by n.transaction_id, n.id
  loop
    v_item := json_build_object(
      'object', 'notification',
      'id', v_notification.id,
      'type', v_notification.type,
      'created_at', private.rfc3339(v_notification.created_at),
      'data', v_notification.data
    );
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_notifications is
  'Notifications that the key may read, oldest first, after a given one if any: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_notifications to scope_events_write;

-- schemas/90-outbox/fan-out.sql

-- The fan-out from notifications to webhook deliveries: the queue of transactions, the history of subscriptions, and the
-- fan-out itself. All but private.after_restore are security definer: no role may write the outbox.

-- Transactions whose notifications are not fanned out yet, one row each. No foreign key: checking it would slow every write,
-- and of a deleted organisation the fan-out finds nothing.
create table private.notification_queue (
  organisation_id uuid not null,
  transaction_id xid8 not null,
  after_id uuid,
  created_at timestamptz not null default now(),
  constraint notification_queue_pkey primary key (organisation_id, transaction_id)
);
comment on table private.notification_queue is 'Transactions whose notifications await their fan-out to webhook deliveries.';
comment on column private.notification_queue.after_id is 'The last notification of the transaction that was fanned out, in the order of ids.';
alter table private.notification_queue enable row level security;

-- Queued even without an endpoint: one that a concurrent transaction adds may be subscribed to what this one commits.
create function private.tg_notifications__queue() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.notification_queue (organisation_id, transaction_id)
  select distinct n.organisation_id, n.transaction_id from new_rows n where n.type <> 'webhook_endpoint.test'
  on conflict do nothing;
  return null;
end
$$;
create trigger notifications_500_queue after insert on public.notifications
  referencing new table as new_rows
  for each statement execute function private.tg_notifications__queue();

-- What each endpoint was subscribed to and when: one row per change. "When" is a snapshot rather than a time: the change counts
-- for each transaction that had not committed when it was made. So a client that subscribes and then reads misses nothing, and
-- the order is that of commits, which no clock records.
create table private.webhook_subscriptions (
  id uuid not null default private.uuid_v7(),
  "position" integer not null,
  webhook_endpoint_id uuid not null,
  organisation_id uuid not null,
  types public.notification_type[] not null,
  event_ids uuid[] not null,
  is_enabled boolean not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  snapshot pg_snapshot not null default pg_current_snapshot(),
  constraint webhook_subscriptions_pkey primary key (id),
  constraint webhook_subscriptions_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade
);
comment on table private.webhook_subscriptions is 'Each change of what a webhook endpoint is subscribed to, for the fan-out of earlier transactions.';
comment on column private.webhook_subscriptions."position" is 'The order of changes. Ids lose it when a clock is set back.';
create index webhook_subscriptions_webhook_endpoint_id_position_idx
  on private.webhook_subscriptions (webhook_endpoint_id, "position");
-- In the order of private.subscriptions_at, which would otherwise read those of all organisations in the order of the index above.
create index webhook_subscriptions_organisation_id_position_idx
  on private.webhook_subscriptions (organisation_id, webhook_endpoint_id, "position");
alter table private.webhook_subscriptions enable row level security;

-- Takes the lock that the fan-out of the organisation holds shared, and then the snapshot: a fan-out has either committed, or
-- sees the change. Fires before the triggers numbered 500, so that all deliveries of a removed type exist and can be cancelled.
create function private.tg_webhook_endpoints__record_subscription() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_change private.webhook_subscriptions;
  v_removed private.webhook_subscriptions;
begin
  perform pg_advisory_xact_lock(8, hashtext(new.organisation_id::text));
  insert into private.webhook_subscriptions (webhook_endpoint_id, organisation_id, "position", types, event_ids, is_enabled)
  values (
    new.id,
    new.organisation_id,
    (select coalesce(max(s."position"), 0) + 1 from private.webhook_subscriptions s where s.webhook_endpoint_id = new.id),
    new.types,
    new.event_ids,
    new.status = 'enabled'
  )
  returning * into v_change;
  -- The previous change is kept only if a transaction in the queue lies between the two, so that repeated changes leave no more
  -- rows than there are such transactions.
  delete from private.webhook_subscriptions s
  where s.webhook_endpoint_id = new.id
    and s."position" = (
      select max(l."position") from private.webhook_subscriptions l
      where l.webhook_endpoint_id = new.id and l."position" < v_change."position"
    )
    and not exists (
      select from private.notification_queue q
      where q.organisation_id = new.organisation_id
        and (
          q.transaction_id in (s.transaction_id, v_change.transaction_id)
          or (pg_visible_in_snapshot(q.transaction_id, v_change.snapshot) and not pg_visible_in_snapshot(q.transaction_id, s.snapshot))
        )
    )
  returning s.* into v_removed;
  if found then
    -- Types that it had removed stay removed.
    update private.webhook_subscriptions s
    set types = array(select t from unnest(s.types) t where t = any (v_removed.types))
    where s.webhook_endpoint_id = new.id and s."position" < v_removed."position" and not s.types <@ v_removed.types;
  end if;
  return null;
end
$$;
create trigger webhook_endpoints_400_record_subscription_insert after insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__record_subscription();
create trigger webhook_endpoints_400_record_subscription_update after update on public.webhook_endpoints
  for each row when ((new.types, new.event_ids, new.status) is distinct from (old.types, old.event_ids, old.status))
  execute function private.tg_webhook_endpoints__record_subscription();

create type private.webhook_subscription as (
  webhook_endpoint_id uuid, types public.notification_type[], event_ids uuid[], after_id uuid, before_id uuid
);

-- The subscriptions that hold for the notifications of a committed transaction. after_id and before_id are set if that
-- transaction changed the endpoint itself: then only what it did after, or before, the change counts. A type removed since is
-- left out: its deliveries would have been cancelled.
create function private.subscriptions_at(organisation_id uuid, transaction_id xid8) returns private.webhook_subscription[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select row(
      c.webhook_endpoint_id,
      case when c.next_id is null then c.types else array(
        select t from unnest(c.types) t
        where not exists (
          select from private.webhook_subscriptions l
          where l.webhook_endpoint_id = c.webhook_endpoint_id and l."position" > c."position" and t <> all (l.types)
        )
      ) end,
      c.event_ids,
      case when c.transaction_id = subscriptions_at.transaction_id then c.id end,
      case when c.next_transaction_id = subscriptions_at.transaction_id then c.next_id end
    )::private.webhook_subscription
    from (
      select
        s.*,
        lead(s.id) over changes as next_id,
        lead(s.transaction_id) over changes as next_transaction_id,
        lead(s.snapshot) over changes as next_snapshot
      from private.webhook_subscriptions s
      where s.organisation_id = subscriptions_at.organisation_id
      window changes as (partition by s.webhook_endpoint_id order by s."position")
    ) c
    where c.is_enabled
      and (
        c.transaction_id = subscriptions_at.transaction_id
        or not pg_visible_in_snapshot(subscriptions_at.transaction_id, c.snapshot)
      )
      and (
        c.next_id is null
        or c.next_transaction_id = subscriptions_at.transaction_id
        or pg_visible_in_snapshot(subscriptions_at.transaction_id, c.next_snapshot)
      )
  );
end
$$;

create function private.event_of_notification(notification_id uuid) returns uuid
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(n.data ->> 'event_id', case n.data ->> 'object' when 'event' then n.data ->> 'id' end)::uuid
    from public.notifications n
    where n.id = event_of_notification.notification_id
  );
end
$$;

-- Fans out the queue of one organisation, oldest transactions first, up to about "limit" deliveries; returns how many it did. It
-- never waits: while an endpoint of the organisation is being changed or deleted, or another courier has the transaction, it
-- leaves that for later. Transactions that began after the last change of an endpoint have the same subscriptions, and are done
-- together; each earlier one is done by itself. The plan uses the indexes whatever the statistics say: each batch reads only
-- its own part.
create function private.fan_out_organisation(organisation_id uuid, "limit" integer) returns integer
language plpgsql volatile security definer set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  v_none constant uuid := '00000000-0000-0000-0000-000000000000';
  v_endpoints integer;
  v_last_change xid8;
  v_first xid8;
  v_transactions xid8[];
  v_subscriptions private.webhook_subscription[];
  v_batch_size integer;
  v_share integer;
  v_taken integer;
  v_rows integer;
  v_done integer := 0;
  v_started constant timestamptz := clock_timestamp();
begin
  if not pg_try_advisory_xact_lock_shared(8, hashtext(organisation_id::text)) then
    return 0;
  end if;
  select count(*) into v_endpoints
  from (
    select from public.webhook_endpoints w
    where w.organisation_id = fan_out_organisation.organisation_id
    for key share skip locked
  ) w;
  if v_endpoints <> (
    select count(*) from public.webhook_endpoints w where w.organisation_id = fan_out_organisation.organisation_id
  ) then
    return 0;
  end if;
  -- No endpoint changes while this transaction holds the lock.
  select coalesce(max(greatest(s.transaction_id, pg_snapshot_xmax(s.snapshot))), '0') into v_last_change
  from private.webhook_subscriptions s
  where s.organisation_id = fan_out_organisation.organisation_id;

  -- Limited by time as well, so that every call ends well within its statement timeout and keeps what it did.
  while v_done < "limit" and (v_done = 0 or clock_timestamp() < v_started + interval '300 milliseconds') loop
    select q.transaction_id into v_first
    from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
    order by q.transaction_id
    limit 1
    for update skip locked;
    exit when not found;

    v_subscriptions := private.subscriptions_at(organisation_id, v_first);
    v_batch_size := greatest(("limit" - v_done) / greatest(cardinality(v_subscriptions), 1), 1);
    v_transactions := array[v_first];
    if v_first > v_last_change then
      v_transactions := array(
        select q.transaction_id
        from private.notification_queue q
        where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id >= v_first
        order by q.transaction_id
        -- Without a subscription a row is only removed, which costs little; with one, most transactions have few notifications.
        limit case when v_subscriptions = '{}' then 10 * v_batch_size else (v_batch_size + 3) / 4 end
        for update skip locked
      );
    end if;

    if v_subscriptions = '{}' then
      delete from private.notification_queue q
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions);
      v_done := v_done + (cardinality(v_transactions) + 9) / 10;
      continue;
    end if;

    -- Each transaction has an equal share, so that a batch never reads more than it does.
    v_share := greatest(v_batch_size / cardinality(v_transactions), 1);
    -- Dated when the change happened, so that older deliveries are sent first, and a redelivery by time finds them.
    with taken as materialized (
      select n.id, n.organisation_id, n.type, n.created_at
      from private.notification_queue q
      cross join lateral (
        select n.id, n.organisation_id, n.type, n.created_at
        from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        limit v_share
      ) n
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions)
    ),
    made as (
      insert into public.webhook_deliveries (
        organisation_id, webhook_endpoint_id, notification_id, type, next_attempt_at, created_at, updated_at
      )
      select n.organisation_id, s.webhook_endpoint_id, n.id, n.type, n.created_at, n.created_at, n.created_at
      from taken n
      join unnest(v_subscriptions) s on n.type = any (s.types)
      where (s.after_id is null or n.id > s.after_id)
        and (s.before_id is null or n.id < s.before_id)
        -- Reads the data only for an endpoint that chose events.
        and (s.event_ids = '{}' or private.event_of_notification(n.id) = any (s.event_ids))
      on conflict (notification_id, webhook_endpoint_id) do nothing
      returning id
    )
    select (select count(*) from taken), (select count(*) from made) into v_taken, v_rows;

    -- Fewer than its share: it is finished.
    delete from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
      and q.transaction_id = any (v_transactions)
      and not exists (
        select from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        offset v_share - 1
      );
    if v_taken >= v_share then
      update private.notification_queue q
      set after_id = (
        select n.id
        from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        offset v_share - 1
        limit 1
      )
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions);
    end if;
    v_done := v_done + greatest(v_rows, v_taken, 1);
  end loop;
  return v_done;
end
$$;

-- Fans out about "limit" deliveries, an equal share for each organisation in the queue; returns whether there is more to do at
-- once. Organisations are found by a loose index scan, which reads no backlog.
create function private.fan_out("limit" integer) returns boolean
language plpgsql volatile security definer set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  v_organisation_ids uuid[] := array(
    with recursive queued as (
      (
        select q.organisation_id, q.transaction_id
        from private.notification_queue q
        order by q.organisation_id, q.transaction_id
        limit 1
      )
      union all
      select n.organisation_id, n.transaction_id
      from queued
      cross join lateral (
        select q.organisation_id, q.transaction_id
        from private.notification_queue q
        where q.organisation_id > queued.organisation_id
        order by q.organisation_id, q.transaction_id
        limit 1
      ) n
    )
    select queued.organisation_id from queued order by queued.transaction_id limit fan_out."limit"
  );
  v_organisation_id uuid;
  v_share integer;
  v_done integer := 0;
  v_started constant timestamptz := clock_timestamp();
begin
  if v_organisation_ids = '{}' then
    return false;
  end if;
  -- Snapshots of another cluster say nothing about transactions of this one: stop rather than lose webhooks.
  if exists (
    select from private.webhook_subscriptions s
    where s.organisation_id = any (v_organisation_ids) and pg_snapshot_xmax(s.snapshot) > pg_snapshot_xmax(pg_current_snapshot())
  ) then
    raise exception 'The database was restored from a dump: run "select private.after_restore()" once, as postgres.';
  end if;
  v_share := greatest("limit" / cardinality(v_organisation_ids), 1);
  foreach v_organisation_id in array v_organisation_ids loop
    exit when v_done > 0 and clock_timestamp() > v_started + interval '1 second';
    v_done := v_done + private.fan_out_organisation(v_organisation_id, v_share);
  end loop;
  return v_done > 0 and exists (select from private.notification_queue);
end
$$;

-- A dump restored into another cluster starts the count of transactions anew. Run once after a restore, before couriers start:
-- fans out the queue by the transaction ids of the old cluster, and then dates the log and the subscriptions before every new
-- transaction.
create function private.after_restore() returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_organisation_id uuid;
begin
  for v_organisation_id in select distinct q.organisation_id from private.notification_queue q loop
    while private.fan_out_organisation(v_organisation_id, 10000) > 0 loop
      null;
    end loop;
  end loop;
  if exists (select from private.notification_queue) then
    raise exception 'Webhook endpoints are being edited: stop everything that uses the database, and run it again.';
  end if;
  update public.notifications n set transaction_id = '0' where n.transaction_id <> '0';
  delete from private.webhook_subscriptions s
  where exists (
    select from private.webhook_subscriptions l
    where l.webhook_endpoint_id = s.webhook_endpoint_id and l."position" > s."position"
  );
  update private.webhook_subscriptions s set transaction_id = '0', snapshot = '1:1:' where s.transaction_id <> '0';
  return 'Done: notifications and webhooks continue from here.'
    || case when private.is_held() then ' Deliveries are held until you run "select private.release_deliveries()".' else '' end;
end
$$;

-- schemas/90-outbox/deliveries.sql

-- Webhook deliveries: one notification for one webhook endpoint. Added by the fan-out, sent by the courier.

create type public.webhook_delivery_status as enum ('pending', 'delivered', 'failed', 'cancelled');

create table public.webhook_deliveries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  webhook_endpoint_id uuid not null,
  notification_id uuid not null,
  type public.notification_type not null,
  status public.webhook_delivery_status not null default 'pending',
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  claim uuid,
  claimed_until timestamptz,
  last_attempt_at timestamptz,
  last_response_status integer,
  last_response_body text,
  last_response_milliseconds integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_deliveries_pkey primary key (id),
  constraint webhook_deliveries_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id, organisation_id)
    references public.webhook_endpoints (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_notification_id_fkey foreign key (notification_id, organisation_id)
    references public.notifications (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_attempts_are_not_negative check (attempts >= 0),
  constraint webhook_deliveries_pending_have_a_next_attempt check ((status = 'pending') = (next_attempt_at is not null)),
  constraint webhook_deliveries_last_response_body_is_an_excerpt check (length(last_response_body) <= 1024)
);
comment on table public.webhook_deliveries is 'One notification for one webhook endpoint, and the result of sending it. Added by the courier, shortly after the notification.';
comment on column public.webhook_deliveries.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.webhook_deliveries.organisation_id is 'The organisation that it belongs to.';
comment on column public.webhook_deliveries.webhook_endpoint_id is 'Where it is sent.';
comment on column public.webhook_deliveries.notification_id is 'What is sent; also the webhook-id.';
comment on column public.webhook_deliveries.type is 'The type of the notification.';
comment on column public.webhook_deliveries.attempts is 'How often it was tried since it was last queued.';
comment on column public.webhook_deliveries.next_attempt_at is 'When it is tried next. Empty once it is settled.';
comment on column public.webhook_deliveries.claimed_until is 'Until when a courier has it in hand.';
comment on column public.webhook_deliveries.last_attempt_at is 'When it was last tried.';
comment on column public.webhook_deliveries.last_response_status is 'HTTP status of the last response.';
comment on column public.webhook_deliveries.last_response_milliseconds is 'How long the endpoint took.';
comment on column public.webhook_deliveries.last_error is 'Why there was no response.';
comment on column public.webhook_deliveries.delivered_at is 'When it was delivered.';
comment on column public.webhook_deliveries.created_at is 'When the row was added.';
comment on column public.webhook_deliveries.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.webhook_deliveries.claim is 'Identifies the claim under which it is being sent; a result under another claim is ignored.';
comment on column public.webhook_deliveries.status is 'Set it to pending to send it again.';
comment on column public.webhook_deliveries.last_response_body is 'The first 1024 characters of the response.';

-- For private.page_of_webhook_deliveries. The type before the status: with the endpoint and the status alone, the claim of what is
-- pending would at times be planned with it.
create index webhook_deliveries_webhook_endpoint_id_type_status_idx
  on public.webhook_deliveries (webhook_endpoint_id, type, status, id);
create index webhook_deliveries_organisation_id_type_status_idx
  on public.webhook_deliveries (organisation_id, type, status, id);
-- At most one delivery per notification and endpoint, whatever else goes wrong.
create unique index webhook_deliveries_notification_id_webhook_endpoint_id_key
  on public.webhook_deliveries (notification_id, webhook_endpoint_id);
-- No index on next_attempt_at alone: the planner would prefer it at times, and scan what is due to all endpoints for what is
-- due to one.
create index webhook_deliveries_webhook_endpoint_id_next_attempt_at_idx
  on public.webhook_deliveries (webhook_endpoint_id, next_attempt_at) where status = 'pending';
create index webhook_deliveries_webhook_endpoint_id_claimed_idx
  on public.webhook_deliveries (webhook_endpoint_id) where claimed_until is not null;
-- For api.purge.
create index webhook_deliveries_created_at_idx on public.webhook_deliveries (created_at);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('webhook_deliveries', 'last_response_body', 'null', null);

-- Nothing is sent to a disabled endpoint, nor of a type that it no longer subscribes to.
create function private.assert_sendable(webhook_endpoint_id uuid, type public.notification_type) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint from public.webhook_endpoints w where w.id = assert_sendable.webhook_endpoint_id;
  if v_webhook_endpoint.status = 'disabled' then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id', hint => 'Enable it first.'
    );
  elsif type <> 'webhook_endpoint.test' and type <> all (v_webhook_endpoint.types) then
    perform private.refuse(
      409, 'type_not_subscribed', 'The webhook endpoint does not subscribe to this type any more.', 'type',
      hint => 'Add the type to the endpoint first.'
    );
  end if;
end
$$;
grant execute on function private.assert_sendable to scope_events_write;

-- Setting a delivery to pending starts its attempts anew; a settled one has no next attempt.
create function private.tg_webhook_deliveries__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status = 'pending' and old.status <> 'pending' then
    perform private.assert_sendable(new.webhook_endpoint_id, new.type);
    new.attempts := 0;
    new.next_attempt_at := coalesce(new.next_attempt_at, now());
  elsif new.status = 'pending' and new.attempts = 0 and old.attempts > 0 then
    -- Redelivered while it is in flight: the result of that attempt is ignored.
    new.claim := null;
  elsif new.status <> 'pending' then
    new.next_attempt_at := null;
    new.claim := null;
    new.claimed_until := null;
  end if;
  return new;
end
$$;
create trigger webhook_deliveries_100_guard before update on public.webhook_deliveries
  for each row execute function private.tg_webhook_deliveries__guard();
create trigger webhook_deliveries_900_updated_at before update on public.webhook_deliveries
  for each row execute function private.tg__set_updated_at();

-- Cancels pending deliveries of types that the endpoint no longer subscribes to.
-- Security definer: no role may write the outbox.
create function private.tg_webhook_endpoints__cancel_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.webhook_deliveries d set status = 'cancelled'
  where d.webhook_endpoint_id = new.id
    and d.status = 'pending'
    and d.type <> 'webhook_endpoint.test'
    and d.type <> all (new.types);
  return null;
end
$$;
create trigger webhook_endpoints_500_cancel_deliveries after update on public.webhook_endpoints
  for each row when (new.types is distinct from old.types)
  execute function private.tg_webhook_endpoints__cancel_deliveries();

revoke all on public.webhook_deliveries from anon, authenticated, service_role;

alter table public.webhook_deliveries enable row level security;
create policy webhook_deliveries_select_own on public.webhook_deliveries for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy webhook_deliveries_update_own on public.webhook_deliveries for update to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );
create policy webhook_deliveries_select_membership on public.webhook_deliveries for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.webhook_deliveries to scope_events_write, authenticated;
grant update (status, attempts, next_attempt_at) on public.webhook_deliveries to scope_events_write;

create function private.webhook_delivery_json(webhook_delivery public.webhook_deliveries) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_delivery',
    'id', webhook_delivery.id,
    'webhook_endpoint_id', webhook_delivery.webhook_endpoint_id,
    'notification_id', webhook_delivery.notification_id,
    'type', webhook_delivery.type,
    'status', webhook_delivery.status,
    'attempts', webhook_delivery.attempts,
    'next_attempt_at', private.rfc3339(webhook_delivery.next_attempt_at),
    'last_attempt_at', private.rfc3339(webhook_delivery.last_attempt_at),
    'last_response', case when webhook_delivery.last_response_status is not null then json_build_object(
      'status', webhook_delivery.last_response_status,
      'body', webhook_delivery.last_response_body,
      'milliseconds', webhook_delivery.last_response_milliseconds
    ) end,
    'last_error', webhook_delivery.last_error,
    'delivered_at', private.rfc3339(webhook_delivery.delivered_at),
    'created_at', private.rfc3339(webhook_delivery.created_at),
    'updated_at', private.rfc3339(webhook_delivery.updated_at)
  );
end
$$;
grant execute on function private.webhook_delivery_json to scope_events_write;

-- schemas/90-outbox/installation.sql

-- The installation that the database belongs to, so that a copy of it sends nothing by itself: a copied data directory, or a dump
-- restored elsewhere, holds what the original has yet to send. There webhooks and e-mails are held until they are released.

-- One row, written by the first process that announces itself. A name tells where a process found the database: a data directory
-- or the address of a Supabase project. `project:` begins a name that leads to one project in the world.
create table private.installations (
  is_only boolean not null default true,
  system_identifier bigint not null,
  names text[] not null,
  newcomers text[] not null default '{}',
  created_at timestamptz not null default now(),
  constraint installations_pkey primary key (is_only),
  constraint installations_is_one_row check (is_only)
);
comment on table private.installations is 'Where deliveries are sent from: the Postgres cluster and the names of the installation. newcomers are names that announced themselves and are not known yet.';
alter table private.installations enable row level security;

-- The names in the caller's token. Null: it names none, as couriers of earlier versions do.
create function private.announced_names() returns text[]
language plpgsql stable set search_path = ''
as $$
begin
  return nullif(array(select jsonb_array_elements_text(private.claims() -> 'installation')), '{}');
end
$$;

-- Whether the caller is where deliveries are sent from. A cluster may be exchanged below a `project:` name, as in an upgrade of
-- Postgres; any other name, such as http://kong:8000, may be that of another cluster elsewhere.
create function private.is_at_home(installation private.installations, names text[]) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  if names is null or names && installation.names then
    return installation.system_identifier = (select c.system_identifier from pg_control_system() c)
      or exists (select from unnest(names) n (name) where n.name like 'project:%' and n.name = any (installation.names));
  end if;
  return false;
end
$$;

-- Whether deliveries are held for the caller. Reads one row: every claim asks.
create function private.is_held() returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_installation private.installations;
begin
  select i.* into v_installation from private.installations i;
  return v_installation.is_only is not null and not private.is_at_home(v_installation, private.announced_names());
end
$$;

-- The first names to be announced are those of the installation. Later ones are newcomers, and known as soon as a known one is
-- announced to the same database: the inner and the outer address of a project are one installation, while nobody announces the
-- names of the original to a copy.
create function api.announce_installation() returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_names text[] := private.announced_names();
  v_system_identifier bigint := (select c.system_identifier from pg_control_system() c);
  v_installation private.installations;
  v_is_at_home boolean;
begin
  if v_names is null then
    return json_build_object('held', private.is_held());
  end if;
  select i.* into v_installation from private.installations i;
  if not found then
    insert into private.installations (system_identifier, names) values (v_system_identifier, v_names) on conflict do nothing;
    select i.* into v_installation from private.installations i;
  end if;

  -- Not found: it was released meanwhile.
  v_is_at_home := not found or private.is_at_home(v_installation, v_names);
  if not v_is_at_home then
    update private.installations i
    set newcomers = array(select distinct n.name from unnest(i.newcomers || v_names) n (name) limit 50)
    where not v_names <@ i.newcomers;
  else
    -- The names of a file system that does not keep them would become ever more.
    update private.installations i
    set system_identifier = v_system_identifier,
      newcomers = '{}',
      names = array(
        select n.name
        from unnest(v_names || i.newcomers || i.names) with ordinality n (name, place)
        group by n.name order by min(n.place) limit 50
      )
    where i.system_identifier <> v_system_identifier or i.newcomers <> '{}' or not v_names <@ i.names;
  end if;
  return json_build_object('held', not v_is_at_home);
end
$$;
comment on function api.announce_installation is
  'Announces the names in the caller''s token: { held }, whether the database belongs to another installation, where webhooks and e-mails are held.';
grant execute on function api.announce_installation to courier;

-- Forgets the installation: the database belongs to the one that is announced next.
create function private.release_deliveries() returns text
language plpgsql volatile set search_path = ''
as $$
begin
  delete from private.installations;
  return 'Released: webhooks and e-mails are sent from here, also those that were pending when the database was copied.';
end
$$;

-- schemas/90-outbox/email-kinds.sql

-- The kinds of e-mail: the keys of `kinds` in src/guests/words/en.ts, written by
-- `npx vitest run test/guests/email-kinds.unit.test.ts -u`.

create type public.email_kind as enum (
  'ticket',
  'order_confirmation',
  'payment_received',
  'payment_voided',
  'payment_reminder',
  'order_expired',
  'event_changed',
  'event_cancelled',
  'ticket_cancelled',
  'waiting_list_offer',
  'waiting_list_cancelled'
);

-- schemas/90-outbox/emails.sql

-- E-mails: one row each, added in the transaction of what it tells of, claimed and settled by the courier like a webhook. The result
-- of a ticket is shown on the attendee as ticket_email. An order with send_email false gets none, unless everybody is to be told.

-- Whom a change or a cancellation is told: those whose orders have e-mails, or all.
create type public.notify as enum ('nobody', 'mailed', 'everybody');

-- Somebody to be told, and why they are not; null: they are.
create type private.recipient as (
  organisation_id uuid,
  attendee_id uuid,
  waiting_list_entry_id uuid,
  email_lower text,
  reason text
);

-- What holds for every e-mail: one function, as of orders. A queued one has a next attempt; each has a recipient.
create function private.is_sound_email(
  kind public.email_kind, status public.email_status, next_attempt_at timestamptz, attendee_id uuid, order_id uuid, payment_id uuid,
  waiting_list_entry_id uuid
) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  if (status = 'queued') <> (next_attempt_at is not null) then
    return false;
  elsif kind = 'ticket' then
    return attendee_id is not null;
  end if;
  return case
    when kind in ('order_confirmation', 'payment_reminder', 'order_expired') then order_id is not null
    when kind in ('payment_received', 'payment_voided') then order_id is not null and payment_id is not null
    when kind in ('waiting_list_offer', 'waiting_list_cancelled') then waiting_list_entry_id is not null
    else attendee_id is not null
  end;
end
$$;

create table public.emails (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  kind public.email_kind not null default 'ticket',
  is_mailing boolean not null generated always as (
    kind not in ('ticket', 'order_confirmation', 'payment_received', 'payment_voided', 'ticket_cancelled', 'waiting_list_offer')
  ) stored,
  attendee_id uuid,
  order_id uuid,
  payment_id uuid,
  waiting_list_entry_id uuid,
  previous jsonb,
  status public.email_status not null default 'queued',
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  claim uuid,
  claimed_until timestamptz,
  sent_to text,
  sent_code text,
  sent_at timestamptz,
  message_id text,
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  last_attempt_at timestamptz,
  sent_with uuid,
  constraint emails_pkey primary key (id),
  constraint emails_attendee_id_fkey foreign key (attendee_id) references public.attendees (id) on delete cascade,
  constraint emails_order_id_fkey foreign key (order_id) references public.orders (id) on delete cascade,
  constraint emails_payment_id_fkey foreign key (payment_id) references public.payments (id) on delete cascade,
  constraint emails_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint emails_are_sound
    check (private.is_sound_email(kind, status, next_attempt_at, attendee_id, order_id, payment_id, waiting_list_entry_id))
);
comment on table public.emails is 'E-mails to attendees and buyers, pending and sent. Written by Usher only; send a ticket once more by setting ticket_email_status of the attendee.';
comment on column public.emails.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.emails.organisation_id is 'The organisation that it belongs to.';
comment on column public.emails.kind is 'What it tells: ticket, order_confirmation, payment_received and so on.';
comment on column public.emails.is_mailing is 'Whether an event may have thousands at once: changes, cancellation, reminders, expiries. These wait for whatever else the organisation sends. Generated.';
comment on column public.emails.attendee_id is 'To whom it goes, where that is an attendee.';
comment on column public.emails.order_id is 'The order whose contact it goes to, where that is the buyer.';
comment on column public.emails.payment_id is 'The payment that was received, or voided.';
comment on column public.emails.waiting_list_entry_id is 'The entry of the waiting list to which it goes, where that is somebody who waits.';
comment on column public.emails.previous is 'Of event_changed: what the attendees knew before, as in the JSON of the event.';
comment on column public.emails.status is 'queued, sent, delivered, bounced, failed or cancelled.';
comment on column public.emails.attempts is 'How often it was tried since it was last queued.';
comment on column public.emails.next_attempt_at is 'When it is tried next. Empty once it is settled.';
comment on column public.emails.claim is 'Identifies the claim under which it is being sent.';
comment on column public.emails.claimed_until is 'Until when a courier has it in hand.';
comment on column public.emails.sent_at is 'When the mail service took it.';
comment on column public.emails.last_error is 'Why it was not sent or came back.';
comment on column public.emails.created_at is 'When the row was added.';
comment on column public.emails.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.emails.last_attempt_at is 'When it was last tried.';
comment on column public.emails.sent_to is 'The address that it went to, as of when it was claimed.';
comment on column public.emails.sent_code is 'Of a ticket: the code when it was claimed: if the code changed while the e-mail was in flight, another one follows.';
comment on column public.emails.sent_with is 'Of tickets that go to one address in one e-mail: the row whose e-mail that is, which names itself.';
comment on column public.emails.message_id is 'Its identifier at the mail service.';

-- No index on next_attempt_at alone: see webhook_deliveries.
create index emails_organisation_id_next_attempt_at_idx on public.emails (organisation_id, is_mailing, next_attempt_at)
  where status = 'queued';
create index emails_organisation_id_claimed_idx on public.emails (organisation_id) where claimed_until is not null;
create index emails_organisation_id_last_attempt_at_idx on public.emails (organisation_id, last_attempt_at)
  where last_attempt_at is not null;
create index emails_attendee_id_idx on public.emails (attendee_id);
create index emails_order_id_idx on public.emails (order_id) where order_id is not null;
create index emails_payment_id_idx on public.emails (payment_id) where payment_id is not null;
create index emails_waiting_list_entry_id_idx on public.emails (waiting_list_entry_id) where waiting_list_entry_id is not null;
create index emails_organisation_id_idx on public.emails (organisation_id);
create index emails_sent_with_idx on public.emails (sent_with) where sent_with is not null;
create index emails_message_id_idx on public.emails (message_id) where message_id is not null;
-- For api.purge.
create index emails_created_at_idx on public.emails (created_at);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('emails', 'sent_to', 'null', null),
  ('emails', 'last_error', 'null', null);

create trigger emails_900_updated_at before update on public.emails
  for each row execute function private.tg__set_updated_at();

create function private.bounce_json(
  kind public.email_kind, event_id uuid, order_id uuid, attendee_id uuid, "to" text, status public.email_status, sent_at timestamptz, error text,
  waiting_list_entry_id uuid default null
) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'email',
    'kind', kind,
    'event_id', event_id,
    'order_id', order_id,
    'attendee_id', attendee_id,
    'waiting_list_entry_id', waiting_list_entry_id,
    'to', "to",
    'status', status,
    'sent_at', private.rfc3339(sent_at),
    'error', error
  );
end
$$;

create function private.tg_emails__notify_bounce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      new.kind, coalesce(o.event_id, w.event_id), o.id, new.attendee_id, new.sent_to, new.status, new.sent_at, new.last_error,
      new.waiting_list_entry_id
    )
  from (select coalesce(new.order_id, (select a.order_id from public.attendees a where a.id = new.attendee_id)) as order_id) e
  left join public.orders o on o.id = e.order_id
  left join public.waiting_list_entries w on w.id = new.waiting_list_entry_id;
  return null;
end
$$;
create trigger emails_600_notify_bounce after update of status on public.emails
  for each row when (new.kind <> 'ticket' and new.status in ('bounced', 'failed') and new.status <> old.status)
  execute function private.tg_emails__notify_bounce();

revoke all on public.emails from anon, authenticated, service_role;

alter table public.emails enable row level security;
create policy emails_select_membership on public.emails for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select (
  id, organisation_id, kind, attendee_id, order_id, payment_id, waiting_list_entry_id, status, attempts, next_attempt_at, sent_to, sent_at, message_id, last_error, created_at, updated_at,
  last_attempt_at
) on public.emails to authenticated;

-- schemas/70-waiting-list/table.sql

-- The waiting list: people who want a place of a ticket type that has none left. Whoever came first is offered the next place that is
-- given back, with a deadline, and the place is held for them. A place that is given back is offered in the transaction that gives it
-- back, so nobody who registers directly can take it.
--
-- waiting -> offered -> accepted | expired; waiting or offered -> cancelled. Only Usher offers; an attendee with waiting_list_entry_id
-- accepts.
--
-- Locks: an entry that is offered comes after the order and before the promo code, one that waits comes last, after the ticket type.
-- Whoever has locked one that waits waits for nothing else. Joining and giving places back hold the capacity lock of the event.

create type public.waiting_list_status as enum ('waiting', 'offered', 'accepted', 'expired', 'cancelled');

create table public.waiting_list_entries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  ticket_type_id uuid not null,
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  send_email boolean not null default true,
  status public.waiting_list_status not null default 'waiting',
  offered_at timestamptz,
  offer_expires_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint waiting_list_entries_pkey primary key (id),
  constraint waiting_list_entries_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint waiting_list_entries_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint waiting_list_entries_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint waiting_list_entries_email_is_an_address check (
    email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(email) <= 254
  ),
  constraint waiting_list_entries_company_is_one_line check (length(btrim(company)) between 1 and 200 and company !~ '[[:cntrl:]]'),
  constraint waiting_list_entries_offers_have_a_deadline check (
    status not in ('offered', 'accepted', 'expired') or (offered_at is not null and offer_expires_at is not null)
  ),
  constraint waiting_list_entries_offer_expires_at_is_finite check (
    offer_expires_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint waiting_list_entries_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint waiting_list_entries_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.waiting_list_entries is 'People who wait for a place of a sold-out ticket type, in the order of their ids. Take somebody off by setting status to cancelled.';
comment on column public.waiting_list_entries.id is 'Identifier, a UUID of version 7: it holds the time of joining, and with it the order of the list.';
comment on column public.waiting_list_entries.organisation_id is 'The organisation that it belongs to.';
comment on column public.waiting_list_entries.event_id is 'The event that it belongs to.';
comment on column public.waiting_list_entries.ticket_type_id is 'The ticket type that the person waits for.';
comment on column public.waiting_list_entries.name is 'Name of the person.';
comment on column public.waiting_list_entries.email is 'Address that the offer is sent to.';
comment on column public.waiting_list_entries.email_lower is 'The address in lower case, for look-ups. Generated.';
comment on column public.waiting_list_entries.company is 'Company of the person.';
comment on column public.waiting_list_entries.send_email is 'Whether the offer, and later the ticket, is e-mailed.';
comment on column public.waiting_list_entries.status is 'waiting, offered, accepted, expired or cancelled.';
comment on column public.waiting_list_entries.offered_at is 'When a place was offered. Kept by Usher.';
comment on column public.waiting_list_entries.offer_expires_at is 'Until when the offered place is held. May be moved while it is offered.';
comment on column public.waiting_list_entries.external_id is 'The organiser''s own identifier, unique within the organisation.';
comment on column public.waiting_list_entries.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.waiting_list_entries.version is 'Number of edits. Kept by Usher.';
comment on column public.waiting_list_entries.created_at is 'When the row was added.';
comment on column public.waiting_list_entries.updated_at is 'When the row was last changed. Kept by Usher.';

create unique index waiting_list_entries_organisation_id_external_id_key on public.waiting_list_entries (organisation_id, external_id)
  where external_id is not null;
-- Nobody waits twice for the same.
create unique index waiting_list_entries_ticket_type_id_email_lower_key on public.waiting_list_entries (ticket_type_id, email_lower)
  where status in ('waiting', 'offered');
create index waiting_list_entries_event_id_id_idx on public.waiting_list_entries (event_id, id);
create index waiting_list_entries_event_id_waiting_idx on public.waiting_list_entries (event_id, id) where status = 'waiting';
create index waiting_list_entries_ticket_type_id_status_idx on public.waiting_list_entries (ticket_type_id, status, id);
create index waiting_list_entries_offer_expires_at_idx on public.waiting_list_entries (offer_expires_at) where status = 'offered';
-- For api.purge.
create index waiting_list_entries_updated_at_idx on public.waiting_list_entries (updated_at) where status in ('expired', 'cancelled');

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('waiting_list_entries', 'name', '"Erased"', 'name'),
  ('waiting_list_entries', 'email', '"erased@erased.invalid"', 'email'),
  ('waiting_list_entries', 'company', 'null', 'company'),
  ('waiting_list_entries', 'external_id', 'null', 'external_id'),
  ('waiting_list_entries', 'metadata', '{}', 'metadata');

alter table public.attendees add constraint attendees_waiting_list_entry_id_fkey
  foreign key (waiting_list_entry_id) references public.waiting_list_entries (id);
alter table public.emails add constraint emails_waiting_list_entry_id_fkey
  foreign key (waiting_list_entry_id) references public.waiting_list_entries (id) on delete cascade;
create unique index attendees_waiting_list_entry_id_key on public.attendees (waiting_list_entry_id)
  where waiting_list_entry_id is not null;

-- Who joins has to wait: there is no place left, and nobody else is giving one back at this moment.
create function private.assert_sold_out(event public.events, ticket_type public.ticket_types) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if ticket_type.quantity_sold + ticket_type.quantity_held >= ticket_type.quantity
    or private.places_taken(event.id) >= event.capacity then
    return;
  end if;
  perform private.refuse(
    409, 'not_sold_out', 'There are tickets of this type left.', 'ticket_type_id',
    jsonb_build_object('ticket_type_id', ticket_type.id), 'Register the person instead.'
  );
end
$$;

-- Security definer: it reads events and ticket types beyond what a registering key may see.
create function private.tg_waiting_list_entries__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_ticket_type public.ticket_types;
begin
  if tg_op = 'INSERT' then
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    if new.status <> 'waiting' or num_nonnulls(new.offered_at, new.offer_expires_at) > 0 then
      perform private.assert_as_given(
        to_jsonb(new), jsonb_build_object('status', 'waiting', 'offered_at', null, 'offer_expires_at', null)
      );
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    perform private.assert_takes_registrations(v_event);
    perform private.lock_event_capacity(new.event_id);
    select t.* into v_ticket_type
    from public.ticket_types t
    where t.id = new.ticket_type_id and t.event_id = new.event_id
    for no key update;
    if not found then
      perform private.refuse_not_found('ticket_type_id');
    end if;
    if not private.is_on_sale(v_ticket_type) then
      perform private.refuse_not_on_sale(v_ticket_type);
    end if;
    if v_ticket_type.min_per_order > 1 then
      perform private.refuse(
        409, 'quantity_not_allowed', 'The waiting list is for one ticket, and an order has more of this type.', 'ticket_type_id',
        jsonb_build_object('ticket_type_id', v_ticket_type.id, 'min_per_order', v_ticket_type.min_per_order)
      );
    end if;
    perform private.assert_sold_out(v_event, v_ticket_type);
    -- Made under the locks: the order of ids is that of joining.
    new.id := private.uuid_v7();
  else
    -- Depth 1 is a statement of a person or an operation; triggers offer and accept one level deeper.
    if new.status <> old.status and not (
      (old.status, new.status) in (('waiting', 'cancelled'), ('offered', 'cancelled'))
      or (old.status, new.status) = ('offered', 'expired') and new.offer_expires_at <= now()
      or (old.status, new.status) in (('waiting', 'offered'), ('offered', 'accepted')) and pg_trigger_depth() > 1
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An entry of the waiting list cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: waiting or offered to cancelled; offered to expired after its deadline. Places are offered by Usher.'
      );
    end if;
    if new.offer_expires_at is distinct from old.offer_expires_at
      and (old.status, new.status) not in (('waiting', 'offered'), ('offered', 'offered')) then
      perform private.refuse(
        409, 'read_only_field', 'Only an offer that stands has a deadline to be moved.', 'offer_expires_at', hint => 'Leave it as it is.'
      );
    elsif new.status = 'offered' and new.offer_expires_at is null then
      perform private.refuse_value('offer_expires_at', 'An offer has a deadline.', 'Move it, or cancel the entry.');
    end if;
  end if;

  -- Before the unique indexes, whose errors would make two of these wait for one another.
  if new.status in ('waiting', 'offered') and (tg_op = 'INSERT' or lower(new.email) <> old.email_lower) then
    perform private.refuse_taken('email', w.id, w.created_at)
    from public.waiting_list_entries w
    where w.ticket_type_id = new.ticket_type_id and w.email_lower = lower(new.email) and w.status in ('waiting', 'offered')
      and w.id <> new.id;
  end if;
  if tg_op = 'INSERT' or new.external_id is distinct from old.external_id then
    perform private.refuse_taken('external_id', w.id, w.created_at)
    from public.waiting_list_entries w
    where w.organisation_id = new.organisation_id and w.external_id = new.external_id and w.id <> new.id;
  end if;
  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;
  return new;
end
$$;

create function private.tg_waiting_list_entries__assert_over() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if old.status in ('waiting', 'offered') then
    perform private.refuse(
      409, 'in_use', 'This person is still on the waiting list.', hint => 'Set status to cancelled first.'
    );
  end if;
  return old;
end
$$;

create trigger waiting_list_entries_050_fixed before update of organisation_id, event_id, ticket_type_id on public.waiting_list_entries
  for each row execute function private.tg__assert_unchanged('organisation_id', 'event_id', 'ticket_type_id');
create trigger waiting_list_entries_050_derived before update of version, created_at, updated_at on public.waiting_list_entries
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger waiting_list_entries_100_in_use before delete on public.waiting_list_entries
  for each row execute function private.tg__assert_not_in_use(
    'The entry is in use: an attendee accepted its offer.', 'Erase or cancel the attendee instead.', 'attendees.waiting_list_entry_id'
  );
create trigger waiting_list_entries_100_over before delete on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__assert_over();
create trigger waiting_list_entries_100_guard before insert or update on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__guard();
create trigger waiting_list_entries_100_no_truncate before truncate on public.waiting_list_entries
  for each statement execute function private.tg__refuse_truncate();
create trigger waiting_list_entries_900_updated_at before update on public.waiting_list_entries
  for each row execute function private.tg__set_updated_at('email_lower');
create trigger waiting_list_entries_900_version before update on public.waiting_list_entries
  for each row when (
    new.name is distinct from old.name or new.email is distinct from old.email or new.company is distinct from old.company
    or new.send_email is distinct from old.send_email or new.status is distinct from old.status
    or new.offered_at is distinct from old.offered_at or new.offer_expires_at is distinct from old.offer_expires_at
    or new.external_id is distinct from old.external_id or new.metadata is distinct from old.metadata
  )
  execute function private.tg__count_version();

revoke all on public.waiting_list_entries from anon, authenticated, service_role;

alter table public.waiting_list_entries enable row level security;
create policy waiting_list_entries_select_own on public.waiting_list_entries for select to scope_attendees_read, scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy waiting_list_entries_insert_own on public.waiting_list_entries for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy waiting_list_entries_update_own on public.waiting_list_entries for update to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy waiting_list_entries_select_membership on public.waiting_list_entries for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy waiting_list_entries_insert_membership on public.waiting_list_entries for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy waiting_list_entries_update_membership on public.waiting_list_entries for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.waiting_list_entries to scope_attendees_read, scope_attendees_write, authenticated;
grant insert (organisation_id, event_id, ticket_type_id, name, email, company, send_email, external_id, metadata)
  on public.waiting_list_entries to scope_attendees_write, authenticated;
grant update (name, email, company, send_email, status, offer_expires_at, external_id, metadata)
  on public.waiting_list_entries to scope_attendees_write, authenticated;

-- position counts those of the same ticket type who wait, from 1.
create function private.waiting_list_entry_json(entry public.waiting_list_entries) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee_id uuid;
  v_order_id uuid;
begin
  if entry.status = 'accepted' then
    select a.id, a.order_id into v_attendee_id, v_order_id from public.attendees a where a.waiting_list_entry_id = entry.id;
  end if;
  return json_build_object(
    'object', 'waiting_list_entry',
    'id', entry.id,
    'event_id', entry.event_id,
    'ticket_type_id', entry.ticket_type_id,
    'ticket_type', json_build_object(
      'id', entry.ticket_type_id, 'name', (select t.name from public.ticket_types t where t.id = entry.ticket_type_id)
    ),
    'name', entry.name,
    'email', entry.email,
    'company', entry.company,
    'status', entry.status,
    'position', case when entry.status = 'waiting' then (
      select count(*)
      from public.waiting_list_entries w
      where w.ticket_type_id = entry.ticket_type_id and w.status = 'waiting' and w.id <= entry.id
    ) end,
    'offered_at', private.rfc3339(entry.offered_at),
    'offer_expires_at', private.rfc3339(entry.offer_expires_at),
    'order_id', v_order_id,
    'attendee_id', v_attendee_id,
    'external_id', entry.external_id,
    'metadata', entry.metadata,
    'version', entry.version,
    'created_at', private.rfc3339(entry.created_at),
    'updated_at', private.rfc3339(entry.updated_at)
  );
end
$$;
grant execute on function private.waiting_list_entry_json to scope_attendees_read, scope_attendees_write;

-- schemas/70-waiting-list/offers.sql

-- Offers: who is offered the next place, how long it is held, and what becomes of it.

-- Offers free places of an event to those who have waited longest. The caller has the capacity lock of the event, or its exclusive
-- lock, and the ticket types of which places became free.
create function private.offer_places(event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_places_left bigint;
  v_offered uuid[];
  v_entry_id uuid;
begin
  if not exists (
    select from public.waiting_list_entries w where w.event_id = offer_places.event_id and w.status = 'waiting'
  ) then
    return;
  end if;
  select e.* into v_event from public.events e where e.id = offer_places.event_id;
  if v_event.status <> 'published' or v_event.ends_at <= now() then
    return;
  end if;

  v_places_left := v_event.capacity - private.places_taken(event_id);
  if v_places_left <= 0 then
    return;
  end if;

  -- Of each ticket type as many as there are places left, and of these as many as the event has. No limit is null.
  v_offered := array(
    select l.id
    from public.ticket_types t
    cross join lateral (
      select w.id
      from public.waiting_list_entries w
      where w.ticket_type_id = t.id and w.status = 'waiting'
      order by w.id
      limit least(t.quantity - t.quantity_sold - t.quantity_held, v_places_left)
      for no key update
    ) l
    where t.event_id = offer_places.event_id and t.status = 'active' and (t.sales_end_at is null or t.sales_end_at > now())
    order by l.id
    limit v_places_left
  );
  update public.ticket_types t set quantity_held = t.quantity_held + o.places
  from (
    select w.ticket_type_id, count(*) as places from public.waiting_list_entries w where w.id = any (v_offered) group by w.ticket_type_id
  ) o
  where t.id = o.ticket_type_id;
  -- One by one: they are told in the order of the list.
  foreach v_entry_id in array v_offered loop
    update public.waiting_list_entries w
    set status = 'offered',
      offered_at = now(),
      offer_expires_at = least(
        greatest(now(), t.sales_start_at) + make_interval(hours => v_event.waiting_list_offer_hours), t.sales_end_at, v_event.ends_at
      )
    from public.ticket_types t
    where w.id = v_entry_id and t.id = w.ticket_type_id;
  end loop;
end
$$;

create function private.assert_offered(entry public.waiting_list_entries) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if entry.status = 'expired' or entry.status = 'offered' and entry.offer_expires_at <= now() then
    perform private.refuse(
      409, 'offer_expired', 'The offer has expired.', 'waiting_list_entry_id',
      jsonb_build_object('offer_expires_at', private.rfc3339(entry.offer_expires_at)), 'Join the waiting list again.'
    );
  elsif entry.status <> 'offered' then
    perform private.refuse(
      409, 'not_offered', 'No place is offered to this person.', 'waiting_list_entry_id', jsonb_build_object('status', entry.status),
      'Whoever waits is offered a place when it is their turn.'
    );
  end if;
end
$$;
grant execute on function private.assert_offered to scope_attendees_write;

-- Locks the offer that a new attendee accepts, and accepts it. Their place is the one that is held: see tg_attendees__count_places.
create function private.accept_offer(attendee public.attendees) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  select w.* into v_entry
  from public.waiting_list_entries w
  where w.id = attendee.waiting_list_entry_id and w.event_id = attendee.event_id
  for no key update;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  perform private.assert_offered(v_entry);
  if v_entry.ticket_type_id <> attendee.ticket_type_id then
    perform private.refuse_value(
      'ticket_type_id', 'The offer is for another ticket type.', 'Register the ticket type of the waiting list entry.'
    );
  end if;
  update public.waiting_list_entries w set status = 'accepted' where w.id = v_entry.id;
end
$$;

-- An offer that is not accepted gives its place back, to whoever waits next. Locks as a cancelled ticket does.
create function private.tg_waiting_list_entries__release() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_released uuid[] := array(
    select o.id from old_rows o where o.status = 'offered'
    except
    select n.id from new_rows n where n.status in ('offered', 'accepted')
  );
  v_event_ids uuid[];
  v_event_id uuid;
  v_move record;
begin
  if v_released = '{}' then
    return null;
  end if;
  v_event_ids := array(select distinct n.event_id from new_rows n where n.id = any (v_released) order by n.event_id);
  foreach v_event_id in array v_event_ids loop
    perform private.lock_event_capacity(v_event_id);
  end loop;
  for v_move in
    select n.event_id, n.ticket_type_id, count(*)::integer as places
    from new_rows n
    where n.id = any (v_released)
    group by n.event_id, n.ticket_type_id
    order by n.event_id, n.ticket_type_id
  loop
    perform private.move_places(v_move.ticket_type_id, 0, -v_move.places);
  end loop;
  foreach v_event_id in array v_event_ids loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;
create trigger waiting_list_entries_500_release after update on public.waiting_list_entries
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_waiting_list_entries__release();

-- Expires offers of one event after their deadline, which offers the places to whoever waits next: { expired, has_more }. One event at
-- a time, for its locks; an event or an entry that another transaction has locked is left for later, and holds up nobody else.
create function api.expire_waiting_list_offers() returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 100;
  v_event_id uuid;
  v_expired integer := 0;
begin
  -- Nobody reads an offer where e-mails are held.
  if private.is_held() then
    return json_build_object('expired', 0, 'has_more', false);
  end if;
  for v_event_id in
    select w.event_id
    from public.waiting_list_entries w
    where w.status = 'offered' and w.offer_expires_at <= now()
    group by w.event_id
    order by min(w.offer_expires_at)
  loop
    -- As private.lock_event_shared, without waiting.
    continue when not pg_try_advisory_xact_lock_shared(1, hashtext(v_event_id::text));
    update public.waiting_list_entries w set status = 'expired'
    where w.id = any (array(
      select d.id
      from public.waiting_list_entries d
      where d.event_id = v_event_id and d.status = 'offered' and d.offer_expires_at <= now()
      order by d.id
      limit v_most
      for no key update skip locked
    ));
    get diagnostics v_expired = row_count;
    exit when v_expired > 0;
  end loop;
  return json_build_object(
    'expired', v_expired,
    'has_more', v_expired > 0 and exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
  );
end
$$;
comment on function api.expire_waiting_list_offers is
  'Expires offers of the waiting list after their deadline, some at a time, and offers their places to the next: { expired, has_more }. For the courier.';
grant execute on function api.expire_waiting_list_offers to courier;

-- schemas/90-outbox/audit-trail.sql

-- The audit trail: who changed what, when and from where, written by triggers. It holds what somebody did, not what followed from
-- it: cancelling an event is one entry, not one for each of its orders. Values of secrets and ticket codes are left out.

create type public.audit_action as enum ('created', 'updated', 'deleted');
create type public.audit_actor as enum ('api_key', 'member', 'studio', 'courier');
create type public.audit_object as enum (
  'organisation', 'member', 'api_key', 'event', 'ticket_type', 'promo_code', 'order', 'payment', 'payment_void', 'refund',
  'attendee', 'check_in', 'check_in_point', 'webhook_endpoint', 'waiting_list_entry'
);

-- No foreign keys: an entry outlives what it is about.
create table public.audit_entries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  action public.audit_action not null,
  object_type public.audit_object not null,
  object_id uuid not null,
  actor public.audit_actor not null,
  api_key_id uuid,
  user_id uuid,
  source public.request_source not null,
  changes jsonb,
  created_at timestamptz not null default now(),
  constraint audit_entries_pkey primary key (id)
);
comment on table public.audit_entries is 'Who changed what, when and from where. Written by Usher only.';
comment on column public.audit_entries.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.audit_entries.organisation_id is 'The organisation that it belongs to.';
comment on column public.audit_entries.action is 'created, updated or deleted.';
comment on column public.audit_entries.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.audit_entries.created_at is 'When it was done.';
comment on column public.audit_entries.object_type is 'What kind of object it is about.';
comment on column public.audit_entries.object_id is 'The object; of a member, their user_id.';
comment on column public.audit_entries.actor is 'An API key, a signed-in member, somebody in Studio or with SQL, or the courier.';
comment on column public.audit_entries.api_key_id is 'The API key, where it was one.';
comment on column public.audit_entries.user_id is 'The member, where it was one.';
comment on column public.audit_entries.changes is
  'Of an update each changed field as { from, to }; of a deletion each field as { from }. Empty for what was created: the object shows it. Secrets and ticket codes are named without values.';

create index audit_entries_organisation_id_object_type_idx on public.audit_entries (organisation_id, object_type, id);
create index audit_entries_object_id_idx on public.audit_entries (object_id, id);
-- For api.purge.
create index audit_entries_created_at_idx on public.audit_entries (created_at);

create function private.audit_actor() returns public.audit_actor
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
begin
  return case
    when v_claims ? 'api_key_id' then 'api_key'
    when v_claims ->> 'role' = 'courier' then 'courier'
    when v_claims ->> 'role' = 'authenticated' then 'member'
    else 'studio'
  end::public.audit_actor;
end
$$;

-- What differs between two versions of a row, but for the fields that Usher keeps itself.
create function private.changes_between(old_row jsonb, new_row jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(
      f.key,
      case
        when f.key in ('ticket_code', 'code') then '{}'
        when new_row = '{}' then jsonb_build_object('from', f.value)
        else jsonb_build_object('from', f.value, 'to', new_row -> f.key)
      end
    )
    from jsonb_each(old_row) f
    where f.value is distinct from coalesce(new_row -> f.key, 'null')
      and f.key not in (
        'version', 'created_at', 'updated_at', 'last_used_at', 'email_lower', 'checked_in', 'quantity_sold', 'quantity_held', 'times_redeemed',
        'search_text', 'failing_since', 'last_failed_at', 'ticket_email_status', 'ticket_email_sent_at', 'ticket_email_last_error',
        'admission_key', 'ticket_token', 'payment_remind_at', 'payment_reminded_at', 'payment_check_at'
      )
  );
end
$$;

-- Arguments: the object, the column of its id, and whether each change of its fields increments its version.
create function private.tg__audit() returns trigger
language plpgsql volatile security definer set search_path = '' set enable_nestloop = off
as $$
declare
  v_claims jsonb;
  v_actor public.audit_actor;
  v_api_key_id uuid;
  v_user_id uuid;
  v_source public.request_source;
begin
  if tg_op = 'UPDATE' and tg_argv[2] = 'versioned' then
    if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
      return null;
    end if;
  end if;
  v_claims := private.claims();
  v_actor := private.audit_actor();
  v_api_key_id := v_claims ->> 'api_key_id';
  v_user_id := case v_actor when 'member' then v_claims ->> 'sub' end;
  v_source := private.current_source();
  if tg_op = 'INSERT' then
    insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
    select
      case tg_argv[0] when 'organisation' then n.row ->> 'id' else n.row ->> 'organisation_id' end::uuid,
      'created', tg_argv[0]::public.audit_object, (n.row ->> tg_argv[1])::uuid, v_actor, v_api_key_id, v_user_id, v_source
    from (select to_jsonb(r) as row from new_rows r) n;
    return null;
  elsif tg_op = 'UPDATE' then
    insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source, changes)
    select
      case tg_argv[0] when 'organisation' then n.row ->> 'id' else n.row ->> 'organisation_id' end::uuid,
      'updated', tg_argv[0]::public.audit_object, (n.row ->> tg_argv[1])::uuid, v_actor, v_api_key_id, v_user_id, v_source, c.changes
    from (select to_jsonb(r) as row from new_rows r) n
    join (select to_jsonb(r) as row from old_rows r) o
      on concat_ws(' ', o.row ->> 'organisation_id', o.row ->> tg_argv[1]) = concat_ws(' ', n.row ->> 'organisation_id', n.row ->> tg_argv[1])
    cross join lateral (select private.changes_between(o.row, n.row) as changes) c
    where c.changes is not null;
    return null;
  end if;
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source, changes)
  select
    case tg_argv[0] when 'organisation' then o.row ->> 'id' else o.row ->> 'organisation_id' end::uuid,
    'deleted', tg_argv[0]::public.audit_object, (o.row ->> tg_argv[1])::uuid, v_actor, v_api_key_id, v_user_id, v_source, private.changes_between(o.row, '{}')
  from (select to_jsonb(r) as row from old_rows r) o;
  return null;
end
$$;

-- Makes the triggers that keep the trail of a table. What another trigger does is a consequence, and has no entry. A table that counts
-- versions has an entry for each new version.
create function private.audit_changes(
  "table" regclass, object_type public.audit_object, id_column name default 'id', events text[] default '{insert,update,delete}'
) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_name name := (select c.relname from pg_catalog.pg_class c where c.oid = "table");
  v_counts text := case
    when exists (select from pg_catalog.pg_attribute a where a.attrelid = "table" and a.attname = 'version') then 'versioned'
    else 'plain'
  end;
  v_event text;
begin
  foreach v_event in array events loop
    execute format(
      'create trigger %I after %s on %s referencing %s for each statement when (pg_trigger_depth() = 0) execute function private.tg__audit(%L, %L, %L)',
      v_name || '_700_audit_' || v_event, v_event, "table",
      case v_event
        when 'insert' then 'new table as new_rows'
        when 'update' then 'old table as old_rows new table as new_rows'
        else 'old table as old_rows'
      end,
      object_type, id_column, v_counts
    );
  end loop;
end
$$;

-- The scope that a key needs to list entries about an object: the one that reads it. Null: no key reads it.
create function private.scope_to_audit(object_type public.audit_object) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when object_type in ('event', 'ticket_type', 'promo_code', 'check_in_point') then 'events:read'
    when object_type in ('order', 'payment', 'payment_void', 'refund') then 'orders:read'
    when object_type in ('attendee', 'check_in', 'waiting_list_entry') then 'attendees:read'
    when object_type = 'webhook_endpoint' then 'events:write'
  end::public.api_scope;
end
$$;
grant execute on function private.scope_to_audit to scope_events_write;

create function private.auditable_objects() returns public.audit_object[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select t from unnest(enum_range(null::public.audit_object)) t
    where private.scope_to_audit(t) = any (private.current_scopes())
  );
end
$$;
grant execute on function private.auditable_objects to scope_events_write;

revoke all on public.audit_entries from anon, authenticated, service_role;

alter table public.audit_entries enable row level security;
create policy audit_entries_select_own on public.audit_entries for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and object_type = any ((select private.auditable_objects())::public.audit_object[])
  );
create policy audit_entries_select_ownership on public.audit_entries for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
grant select on public.audit_entries to scope_events_write, authenticated;

-- The name of the key or the address of the member, as it is now: a revoked key has it still, a deleted one as its last entry says. Security
-- definer: whoever reads entries has no right to keys, nor to users of Auth.
create function private.actor_name(entry public.audit_entries) returns text
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
begin
  return case entry.actor
    when 'api_key' then coalesce(
      (select k.name from public.api_keys k where k.id = entry.api_key_id),
      (
        select d.changes #>> '{name,from}'
        from public.audit_entries d
        where d.object_id = entry.api_key_id and d.object_type = 'api_key' and d.action = 'deleted'
          and d.organisation_id = entry.organisation_id
      )
    )
    when 'member' then (select u.email from auth.users u where u.id = entry.user_id)
  end;
end
$$;
grant execute on function private.actor_name to scope_events_write, authenticated;

-- Ids of the entries of a page, newest first: see 00-ground/pages.sql.
create function private.page_of_audit_entries(
  object_types public.audit_object[], object_id uuid, before uuid, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
begin
  if page_of_audit_entries.object_id is not null then
    return array(
      select e.id from public.audit_entries e
      where e.object_id = any (array[page_of_audit_entries.object_id]) and e.id < before
      order by e.object_id desc, e.id desc
      limit size
    );
  end if;
  return array(
    select f.id
    from unnest(object_types) t (object_type)
    cross join lateral (
      select e.id
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.object_type = t.object_type and e.id < before
      order by e.organisation_id desc, e.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_audit_entries to scope_events_write;

create function api.list_audit_entries(
  object_type public.audit_object default null,
  object_id uuid default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_types public.audit_object[] := private.auditable_objects();
  v_ids uuid[];
  v_items json[];
begin
  if object_type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_audit_entries.object_type);
  end if;
  v_ids := private.page_of_audit_entries(v_types, list_audit_entries.object_id, v_before, v_size + 1);
  v_items := array(
    select json_build_object(
      'object', 'audit_entry',
      'id', e.id,
      'action', e.action,
      'object_type', e.object_type,
      'object_id', e.object_id,
      'actor', e.actor,
      'actor_name', private.actor_name(e.entry),
      'api_key_id', e.api_key_id,
      'user_id', e.user_id,
      'source', e.source,
      'changes', e.changes,
      'created_at', private.rfc3339(e.created_at)
    )
    from unnest(v_ids) i (id)
    cross join lateral (select e.*, e as entry from public.audit_entries e where e.id = i.id offset 0) e
    where e.object_type = any (v_types)
    order by e.id desc
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_audit_entries is
  'Who changed what of the objects that the key may read, newest first: { data, has_more, next_cursor }.';
grant execute on function api.list_audit_entries to scope_events_write;

-- schemas/60-attendees/totals.sql

-- Totals: the price of a ticket, the number of tickets per order, the sums of an order, and the uses of its promo code.
-- Kept by triggers on attendees, so they hold wherever a row is changed.

-- The price of a ticket and its discount in minor units, so that an order is always the sum of its lines. A percentage is rounded half
-- up for each ticket. Of an amount off the order, a ticket takes what the tickets before it have left; those that one statement adds
-- share it afterwards. A promo code is used by the tickets it is for, unless they are free.
create function private.price_attendee(attendee public.attendees, "order" public.orders) returns public.attendees
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_percent_off numeric;
  v_amount_off bigint;
begin
  attendee.currency := "order".currency;
  attendee.price := 0;
  attendee.discount := 0;
  attendee.promo_code_id := null;
  if "order".payment_method is null then
    return attendee;
  end if;

  -- Only ticket types of this event: otherwise the totals would reveal the price of another organisation's ticket type.
  attendee.price := coalesce((
    select t.price from public.ticket_types t where t.id = attendee.ticket_type_id and t.event_id = "order".event_id
  ), 0);
  if "order".promo_code_id is not null and attendee.price > 0 then
    select c.percent_off, c.amount_off into v_percent_off, v_amount_off
    from public.promo_codes c
    where c.id = "order".promo_code_id
      and (c.ticket_type_ids = '{}' or attendee.ticket_type_id = any (c.ticket_type_ids));
    if found then
      attendee.promo_code_id := "order".promo_code_id;
      if v_amount_off is null then
        attendee.discount := round(attendee.price * v_percent_off / 100);
      else
        -- Sees the rows that the same statement has added already, and under the lock of the order those of others. What a cancelled
        -- ticket had is free again.
        attendee.discount := least(attendee.price, greatest(0, v_amount_off - coalesce((
          select sum(a.discount) from public.attendees a where a.order_id = "order".id and a.status <> 'cancelled'
        ), 0)));
        perform set_config('usher.spreads_amount_off', 'on', true);
      end if;
    end if;
  end if;
  return attendee;
end
$$;

-- Spreads what the tickets of one order and statement were given of an amount off, in proportion to their prices: each share is
-- rounded down, and the units that are left over go to the largest remainders, the earlier ticket first. So the shares add up
-- exactly, and none is above its price. Fires before the rows are notified of and added up, and only where price_attendee met an
-- amount: other registrations do not pay for it.
create function private.tg_attendees__spread_amount_off() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
  v_discounts bigint[];
begin
  perform set_config('usher.spreads_amount_off', 'off', true);
  select array_agg(s.id), array_agg(s.discount) into v_ids, v_discounts
  from (
    select
      r.id,
      r.given,
      r.share + (row_number() over (partition by r.order_id order by r.remainder desc, r.id) <= r.whole - sum(r.share) over (partition by r.order_id))::integer
        as discount
    from (
      -- Numeric: the product of two amounts exceeds a bigint.
      select
        l.id, l.order_id, l.given, l.whole,
        div(l.price * l.whole, l.subtotal) as share,
        mod(l.price * l.whole, l.subtotal) as remainder
      from (
        select
          n.id, n.order_id, n.price, n.discount as given,
          sum(n.discount) over (partition by n.order_id) as whole,
          sum(n.price) over (partition by n.order_id) as subtotal
        from new_rows n
        where (select c.amount_off from public.promo_codes c where c.id = n.promo_code_id) is not null
      ) l
    ) r
  ) s
  where s.discount <> s.given;
  -- By key, not by a join, whose plan would be that of the first call.
  if v_ids is not null then
    update public.attendees a set discount = v_discounts[array_position(v_ids, a.id)] where a.id = any (v_ids);
  end if;
  return null;
end
$$;
create trigger attendees_310_spread_amount_off after insert on public.attendees
  referencing new table as new_rows
  for each statement when (current_setting('usher.spreads_amount_off', true) = 'on')
  execute function private.tg_attendees__spread_amount_off();

-- min_per_order and max_per_order of a ticket type. Checked once per statement, so that a group counts as a whole.
create function private.tg_attendees__limit_per_order() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  -- Most ticket types have no limit.
  if not exists (
    select from new_rows n
    where (select t.min_per_order > 1 or t.max_per_order is not null from public.ticket_types t where t.id = n.ticket_type_id)
  ) then
    return null;
  end if;
  select t.* into v_ticket_type
  from (select distinct n.order_id, n.ticket_type_id from new_rows n) n
  join public.ticket_types t on t.id = n.ticket_type_id
  where (t.min_per_order > 1 or t.max_per_order is not null)
    and (
      select count(*) from public.attendees a
      where a.order_id = n.order_id and a.ticket_type_id = t.id and a.status <> 'cancelled'
    ) not between t.min_per_order and coalesce(t.max_per_order, 2147483647)
  limit 1;
  if found then
    perform private.refuse(
      409, 'quantity_not_allowed', 'An order cannot have this number of tickets of this type.', 'ticket_type_id',
      jsonb_build_object(
        'ticket_type_id', v_ticket_type.id,
        'min_per_order', v_ticket_type.min_per_order,
        'max_per_order', v_ticket_type.max_per_order
      ),
      'Register from min_per_order to max_per_order of them in one order.'
    );
  end if;
  return null;
end
$$;
create trigger attendees_300_limit_per_order after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__limit_per_order();

create type private.use_move as (promo_code_id uuid, uses integer);

-- Keeps the totals of orders and the uses of promo codes. An order that loses its last ticket is cancelled; a cancelled order
-- keeps its totals. Security definer: callers may not change these sums.
create function private.tg_attendees__add_up() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order_ids uuid[];
  v_uses private.use_move[] := '{}';
  v_move record;
begin
  if tg_op = 'INSERT' then
    -- Complimentary tickets have nothing to add up.
    if not exists (select from new_rows n where n.status = 'awaiting_payment' or n.price > 0) then
      return null;
    end if;
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    v_uses := array(select row(n.promo_code_id, 1)::private.use_move from new_rows n where n.promo_code_id is not null);
  else
    -- Attendees that became cancelled. Not a join of the two transition tables: its plan would be that of the first call, which
    -- sees one row, and a nested loop over the 10,000 rows of a cancelled event takes minutes.
    select coalesce(array_agg(distinct c.order_id), '{}'),
      coalesce(array_agg(row(c.promo_code_id, -1)::private.use_move) filter (where c.promo_code_id is not null), '{}')
    into v_order_ids, v_uses
    from (
      select n.id, n.order_id, n.promo_code_id from new_rows n where n.status = 'cancelled'
      except
      select o.id, o.order_id, o.promo_code_id from old_rows o where o.status = 'cancelled'
    ) c;
    -- A cancelled order keeps its totals, so cancelling an event locks and adds up no order here.
    v_order_ids := array(select o.id from public.orders o where o.id = any (v_order_ids) and o.status <> 'cancelled');
  end if;

  if v_order_ids <> '{}' then
    -- Lock before adding up: an update that waited for a row sees its new version, but uses the sums computed before the wait.
    perform 1 from public.orders o where o.id = any (v_order_ids) order by o.id for no key update;
    update public.orders o
    set subtotal = s.subtotal, discount_total = s.discount_total
    from (
      select a.order_id, sum(a.price) as subtotal, sum(a.discount) as discount_total
      from public.attendees a
      where a.order_id = any (v_order_ids) and a.status <> 'cancelled'
      group by a.order_id
    ) s
    where o.id = s.order_id
      and o.status <> 'cancelled'
      -- A new ticket may complete an order even if it is free.
      and (tg_op = 'INSERT' and o.status = 'pending' or (o.subtotal, o.discount_total) <> (s.subtotal, s.discount_total));
    if tg_op <> 'INSERT' then
      update public.orders o
      set status = 'cancelled'
      where o.id = any (v_order_ids)
        and o.status <> 'cancelled'
        and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
    elsif exists (
      select from public.orders o
      where o.id = any (v_order_ids)
        and o.promo_code_id is not null
        and not exists (select from public.attendees a where a.order_id = o.id and a.promo_code_id is not null)
    ) then
      perform private.refuse(
        409, 'promo_code_not_applicable', 'The promo code is not for any of these tickets.', 'promo_code',
        hint => 'Its ticket_type_ids say what it is for; free tickets use no code.'
      );
    end if;
  end if;

  if v_uses <> '{}' then
    for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
      perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
    end loop;
  end if;
  return null;
end
$$;
create trigger attendees_400_add_up_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__add_up();
create trigger attendees_400_add_up_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement when (current_setting('usher.moves_places', true) = 'on')
  execute function private.tg_attendees__add_up();

-- schemas/60-attendees/places.sql

-- Places: an attendee who is not cancelled holds one place of the ticket type and of the event, and so does an offer of the waiting
-- list. Triggers on attendees count them, wherever a row is changed, and never exceed the limits. The locks of the event, under which
-- this holds, are in 20-events/locks.sql; the counters in 30-ticket-types/places.sql.

create type private.place_move as (event_id uuid, ticket_type_id uuid, places integer, held integer);

-- Once per statement: cancelling an event of 10,000 attendees is one update per ticket type. Takes all event locks before all
-- ticket types, each in the order of their ids. What is given back is offered to the waiting list before anybody else can take it.
create function private.tg_attendees__count_places() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_moves private.place_move[];
  v_move private.place_move;
  v_event public.events;
  v_event_id uuid;
  v_taken bigint;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := '{}';
begin
  -- In the order in which everybody takes the locks: events, and in each its ticket types.
  if tg_op = 'INSERT' then
    v_moves := array(
      select row(n.event_id, n.ticket_type_id, count(*), -count(n.waiting_list_entry_id))::private.place_move
      from new_rows n
      group by n.event_id, n.ticket_type_id
      order by n.event_id, n.ticket_type_id
    );
  else
    v_moves := array(
      select row(m.event_id, m.ticket_type_id, sum(m.places), 0)::private.place_move
      from (
        select o.event_id, o.ticket_type_id, -1 as places from old_rows o where o.status <> 'cancelled'
        union all
        select n.event_id, n.ticket_type_id, 1 from new_rows n where n.status <> 'cancelled'
      ) m
      group by m.event_id, m.ticket_type_id
      having sum(m.places) <> 0
      order by m.event_id, m.ticket_type_id
    );
  end if;

  foreach v_move in array v_moves loop
    if v_move.places > 0 and v_event.id is distinct from v_move.event_id then
      v_event := private.lock_event_shared(v_move.event_id);
      perform private.assert_takes_registrations(v_event);
      if v_event.capacity is not null then
        v_limited := v_limited || v_event;
      end if;
    elsif v_move.places < 0 and v_move.event_id <> all (v_given_back) then
      v_given_back := v_given_back || v_move.event_id;
    end if;
  end loop;
  if v_limited <> '{}' or v_given_back <> '{}' then
    perform private.lock_event_capacity(e.id)
    from (select l.id from unnest(v_limited) l union select g.id from unnest(v_given_back) g (id) order by 1) e;
  end if;

  foreach v_move in array v_moves loop
    perform private.move_places(v_move.ticket_type_id, v_move.places, v_move.held);
  end loop;

  foreach v_event in array v_limited loop
    v_taken := private.places_taken(v_event.id);
    if v_taken > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    elsif v_taken = v_event.capacity then
      -- An accepted offer takes a place that was taken before.
      if (select sum(m.places + m.held) from unnest(v_moves) m where m.event_id = v_event.id) > 0 then
        perform private.notify_of_full_event(v_event.id);
      end if;
    end if;
  end loop;

  foreach v_event_id in array v_given_back loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;
create trigger attendees_500_count_places_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
create trigger attendees_500_count_places_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement when (current_setting('usher.moves_places', true) = 'on')
  execute function private.tg_attendees__count_places();

-- schemas/20-events/effects.sql

-- What a change of an event does to its orders and its waiting list.

-- Cancelling an event cancels its orders. The guard holds the exclusive event lock, so no registration is in flight.
create function private.tg_events__cancel_orders() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.orders o set status = 'cancelled', cancellation_reason = 'event_cancelled'
  where o.event_id = new.id and o.status <> 'cancelled';
  return null;
end
$$;
create trigger events_500_cancel_orders after update on public.events
  for each row when (new.status = 'cancelled' and old.status <> 'cancelled')
  execute function private.tg_events__cancel_orders();

-- More places of the event, or it goes on for longer. A change of the capacity holds the exclusive event lock.
create function private.tg_events__offer() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.lock_event_capacity(new.id);
  perform 1 from public.ticket_types t where t.event_id = new.id order by t.id for no key update;
  perform private.offer_places(new.id);
  return null;
end
$$;
create trigger events_500_offer after update on public.events
  for each row when (
    new.status = 'published' and (new.status, new.capacity, new.ends_at) is distinct from (old.status, old.capacity, old.ends_at)
  )
  execute function private.tg_events__offer();

-- Nobody waits for an event that is cancelled or completed. After its orders, whose tickets lock ticket types first.
create function private.tg_events__close_waiting_list() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.waiting_list_entries w set status = 'cancelled' where w.event_id = new.id and w.status in ('waiting', 'offered');
  return null;
end
$$;
create trigger events_550_close_waiting_list after update on public.events
  for each row when (new.status in ('cancelled', 'completed') and new.status <> old.status)
  execute function private.tg_events__close_waiting_list();

-- schemas/30-ticket-types/effects.sql

-- What a change of a ticket type does to the waiting list.

-- More places of a ticket type, or its sale goes on. The row is locked, so nobody joins its waiting list meanwhile. Operations have the
-- capacity lock by now; an edit by hand does not, and whoever has it may wait for the row. So the edit gives way, before Postgres ends
-- one of the two as a deadlock, after a second.
create function private.tg_ticket_types__offer() returns trigger
language plpgsql volatile security definer set search_path = '' set lock_timeout = '300ms'
as $$
begin
  if exists (select from public.waiting_list_entries w where w.ticket_type_id = new.id and w.status = 'waiting') then
    perform private.lock_event_capacity(new.event_id);
    perform private.offer_places(new.event_id);
  end if;
  return null;
exception when lock_not_available then
  perform private.refuse(
    503, 'temporarily_unavailable', 'Tickets of this event are issued or given back at this very moment.', hint => 'Save it again.'
  );
end
$$;
create trigger ticket_types_500_offer after update of quantity, status, sales_end_at on public.ticket_types
  for each row when ((new.quantity, new.status, new.sales_end_at) is distinct from (old.quantity, old.status, old.sales_end_at))
  execute function private.tg_ticket_types__offer();

-- schemas/50-orders/effects.sql

-- What a change of an order does to its attendees.

-- Tickets follow the status of their order. Once a statement, so that cancelling an event is one update of its attendees.
create function private.tg_orders__update_attendees() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Arrays, not a join: a join would keep the plan of its first call, which after a cancelled event scans the table for
  -- every order.
  v_completed uuid[] := array(select n.id from new_rows n where n.status = 'completed');
  v_cancelled uuid[] := array(select n.id from new_rows n where n.status = 'cancelled');
begin
  if v_completed <> '{}' then
    update public.attendees a set status = 'active' where a.order_id = any (v_completed) and a.status = 'awaiting_payment';
  end if;
  if v_cancelled <> '{}' then
    update public.attendees a set status = 'cancelled' where a.order_id = any (v_cancelled) and a.status <> 'cancelled';
  end if;
  return null;
end
$$;
create trigger orders_500_update_attendees after update on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__update_attendees();

-- The guard of attendees writes it anew.
create function private.tg_orders__update_search_text() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.attendees a set search_text = '' where a.order_id = new.id;
  return null;
end
$$;
create trigger orders_500_update_search_text after update of name, email, company, external_id on public.orders
  for each row when ((new.name, new.email, new.company, new.external_id) is distinct from (old.name, old.email, old.company, old.external_id))
  execute function private.tg_orders__update_search_text();

-- schemas/50-orders/deadlines.sql

-- Payment deadlines: an order that is to be paid has payment_due_at, from payment_due_days of its event or set by hand. The courier
-- reminds the buyer once of each deadline, and cancels the order as expired after it. A payment counts until that happens.

-- An order whose deadline the courier has to look at: payment_check_at is empty for all others.
create index orders_payment_check_at_idx on public.orders (organisation_id, payment_check_at, id)
  where payment_check_at is not null;

create function private.refuse_expired("order" public.orders) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'order_expired', 'The order was not paid by its deadline and has expired.', 'order_id',
    jsonb_build_object(
      'payment_due_at', private.rfc3339("order".payment_due_at), 'cancelled_at', private.rfc3339("order".cancelled_at)
    ),
    'Register the guests again while there are places; return money that came too late.'
  );
end
$$;

-- After orders_100_guard, which says what the status is. Security definer: it reads the event.
create function private.tg_orders__guard_deadline() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- How long before the deadline the buyer is reminded.
  v_lead interval := '72 hours';
  v_before timestamptz;
begin
  if tg_op = 'INSERT' then
    if new.status = 'pending' and new.payment_due_at is null then
      select new.created_at + make_interval(hours => 24 * e.payment_due_days) into new.payment_due_at
      from public.events e
      where e.id = new.event_id;
    end if;
    -- Not at once where the deadline is near from the beginning: in the middle.
    v_lead := least(v_lead, greatest(new.payment_due_at - new.created_at, interval '0') / 2);
  else
    v_before := old.payment_due_at;
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_reminded_at is distinct from now() then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'payment_reminded_at',
        hint => 'Change payment_due_at instead: the buyer is reminded of each deadline.'
      );
    end if;
    if new.payment_reminded_at is distinct from old.payment_reminded_at then
      new.payment_remind_at := null;
    end if;
    -- An order that comes to nothing is complete with its first ticket: nobody has anything to pay by a deadline.
    if old.status = 'pending' and new.status = 'completed' and new.subtotal = new.discount_total and new.amount_paid = 0 then
      new.payment_due_at := null;
      new.payment_remind_at := null;
      v_before := null;
    end if;
  end if;
  if new.payment_due_at is distinct from v_before then
    if new.cancellation_reason = 'expired' then
      perform private.refuse_expired(new);
    elsif new.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order has no payment deadline.', 'payment_due_at');
    elsif new.status = 'completed' then
      perform private.refuse(
        409, 'order_completed', 'A completed order keeps its tickets: a payment deadline would have no effect.', 'payment_due_at',
        hint => 'Cancel the order if it is not to be paid any more.'
      );
    end if;
    new.payment_reminded_at := null;
    new.payment_remind_at := case when new.send_email then new.payment_due_at - v_lead end;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid < new.subtotal - new.discount_total
      then least(new.payment_remind_at, new.payment_due_at)
  end;
  return new;
end
$$;
create trigger orders_200_deadline before insert or update on public.orders
  for each row when (new.payment_method is not null or new.payment_due_at is not null)
  execute function private.tg_orders__guard_deadline();

-- Cancels those of the orders that are overdue: they are given, and may have been paid or given more time meanwhile. Those that another
-- transaction has locked are left for later. One statement, whose triggers take further locks in the order of all writes.
create function private.expire_orders(order_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  v_ids := array(
    select o.id
    from public.orders o
    where o.id = any (order_ids) and o.payment_check_at is not null and o.payment_due_at <= now()
    order by o.id
    for no key update skip locked
  );
  if v_ids <> '{}' then
    update public.orders o set status = 'cancelled', cancellation_reason = 'expired' where o.id = any (v_ids);
  end if;
  return v_ids;
end
$$;

-- Reminds the buyers of those of the orders for which it is time.
create function private.remind_of_payments(order_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  v_ids := array(
    select o.id
    from public.orders o
    where o.id = any (order_ids) and o.payment_check_at <= now() and o.payment_due_at > now()
    order by o.id
    for no key update skip locked
  );
  if v_ids <> '{}' then
    update public.orders o set payment_reminded_at = now() where o.id = any (v_ids);
    perform private.queue_order_emails('payment_reminder', v_ids);
  end if;
  return v_ids;
end
$$;

-- Organisations with unpaid orders that have a deadline, by a loose index scan: one look-up each, however many orders there are. Only
-- one index has the order that is asked for.
create function private.organisations_with_deadlines() returns uuid[]
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off
as $$
begin
  return array(
    with recursive found as (
      (
        select o.organisation_id
        from public.orders o
        where o.payment_check_at is not null
        order by o.organisation_id, o.payment_check_at
        limit 1
      )
      union all
      select n.organisation_id
      from found f
      cross join lateral (
        select o.organisation_id
        from public.orders o
        where o.payment_check_at is not null and o.organisation_id > f.organisation_id
        order by o.organisation_id, o.payment_check_at
        limit 1
      ) n
    )
    select found.organisation_id from found
  );
end
$$;

-- For the courier, every ten seconds. Organisations take turns, each with what has been due longest, so that one with thousands of overdue
-- orders does not hold up the others.
create function api.enforce_payment_deadlines("limit" integer default 100) returns json
language plpgsql volatile security definer set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off
as $$
declare
  v_due uuid[];
begin
  -- Nobody is reminded where e-mails are held, so nobody is late there.
  if private.is_held() then
    return json_build_object('expired', 0, 'reminded', 0, 'has_more', false);
  end if;
  v_due := array(
    with due as (
      select
        d.id, d.payment_check_at, row_number() over (partition by o.organisation_id order by d.payment_check_at, d.id) as turn
      from unnest(private.organisations_with_deadlines()) o (organisation_id)
      cross join lateral (
        select d.id, d.payment_check_at
        from public.orders d
        where d.organisation_id = o.organisation_id and d.payment_check_at <= now()
        order by d.organisation_id, d.payment_check_at, d.id
        limit enforce_payment_deadlines."limit"
      ) d
    )
    select d.id from due d order by d.turn, d.payment_check_at, d.id limit enforce_payment_deadlines."limit"
  );
  return json_build_object(
    'expired', cardinality(private.expire_orders(v_due)),
    'reminded', cardinality(private.remind_of_payments(v_due)),
    'has_more', cardinality(v_due) >= enforce_payment_deadlines."limit"
  );
end
$$;
comment on function api.enforce_payment_deadlines is
  'Reminds of payment deadlines and cancels orders after them, at most "limit": { expired, reminded, has_more }. For the courier.';
grant execute on function api.enforce_payment_deadlines to courier;

-- schemas/20-events/notifications.sql

-- What is notified of an event: what happened to it, and that it is full. All security definer: no role may write the outbox.

-- The event itself has become full: sold out are all of its ticket types on sale that had places left. The caller has the lock under
-- which the places of an event are counted, so this costs registrations nothing more.
create function private.notify_of_full_event(event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select t.organisation_id, 'ticket_type.sold_out', t.data
  from (
    select t.organisation_id, t.position, t.id, private.ticket_type_json(t) as data
    from public.ticket_types t
    where t.event_id = notify_of_full_event.event_id
      and (t.quantity is null or t.quantity_sold + t.quantity_held < t.quantity)
  ) t
  where t.data ->> 'sales_status' = 'sold_out'
  order by t.position, t.id;
end
$$;

create function private.tg_events__notify_full() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_taken bigint := private.places_taken(new.id);
begin
  if v_taken >= new.capacity and (old.capacity is null or v_taken < old.capacity) then
    perform private.notify_of_full_event(new.id);
  end if;
  return null;
end
$$;
create trigger events_600_notify_full after update of capacity on public.events
  for each row when (new.capacity < old.capacity or new.capacity is not null and old.capacity is null)
  execute function private.tg_events__notify_full();

create function private.tg_events__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- An update that changes nothing notifies of nothing.
  if new.version = old.version then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new)
  );
  return null;
end
$$;
create trigger events_600_notify after update on public.events
  for each row execute function private.tg_events__notify();

-- schemas/30-ticket-types/notifications.sql

-- What is notified of a ticket type: that it is sold out. Security definer: no role may write the outbox.

-- No place of a ticket type is left where there was one: the last was taken, or held for an offer of the waiting list, or the quantity
-- lowered to what is taken. Where its event was full before, that was said then.
create function private.tg_ticket_types__notify_sold_out() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new));
  return null;
end
$$;
create trigger ticket_types_600_notify_sold_out after update of quantity, quantity_sold on public.ticket_types
  for each row when (
    new.quantity > 0
    and new.quantity_sold + new.quantity_held >= new.quantity
    and (old.quantity is null or old.quantity_sold + old.quantity_held < old.quantity)
  )
  execute function private.tg_ticket_types__notify_sold_out();

-- schemas/50-orders/notifications.sql

-- What is notified of orders, their payments, and the corrections of these. All security definer: no role may write the outbox.

-- Orders notify at the end of the transaction: only then are their attendees and payments complete. Triggers on statements cannot be
-- deferred, so a statement that creates, completes or cancels orders leaves a row here, whose deferred trigger notifies of all of
-- them at once. An order without attendees is not notified of: one added in Studio is announced by the transaction that adds its first.
create table private.order_notices (
  id uuid not null default gen_random_uuid(),
  types public.notification_type[] not null,
  order_ids uuid[] not null,
  constraint order_notices_pkey primary key (id)
);
comment on table private.order_notices is 'Orders that the running transaction notifies of when it ends. Rows are deleted before it commits.';
alter table private.order_notices enable row level security;

create function private.tg_orders__notice() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    insert into private.order_notices (types, order_ids)
    select
      case n.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(n.id order by n.id)
    from new_rows n
    group by n.status;
    return null;
  end if;
  -- Not a join of the two transition tables: see tg_attendees__add_up.
  insert into private.order_notices (types, order_ids)
  select
    case
      when n.status = 'completed' then '{order.completed}'
      -- Both: who is subscribed to cancellations misses none.
      when n.cancellation_reason = 'expired' then '{order.cancelled,order.expired}'
      else '{order.cancelled}'
    end::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status, n.cancellation_reason from new_rows n where n.status in ('completed', 'cancelled')
    except
    select o.id, o.status, o.cancellation_reason from old_rows o
  ) n
  group by n.status, n.cancellation_reason;
  return null;
end
$$;
create trigger orders_600_notice_insert after insert on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__notice();
create trigger orders_600_notice_update after update on public.orders
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_orders__notice();

create function private.tg_order_notices__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select o.organisation_id, t.type, o.data
  from unnest(new.order_ids) n (order_id)
  -- One index look-up per order, however many there are; a deleted order is skipped.
  cross join lateral (
    select
      a.organisation_id,
      private.order_json(
        a."order",
        a.attendees,
        case when a.amount_paid + a.amount_voided > 0 then private.order_payments_json(a.id) else '[]' end,
        case when a.amount_refunded > 0 then private.order_refunds_json(a.id) else '[]' end
      ) as data
    from (
      select o as "order", o.id, o.organisation_id, o.amount_paid, o.amount_voided, o.amount_refunded,
        private.attendees_of_order_json(o.id, o.reference) as attendees
      from public.orders o
      where o.id = n.order_id
      offset 0
    ) a
    where a.attendees::text <> '[]'
    offset 0
  ) o
  cross join unnest(new.types) t (type);
  delete from private.order_notices n where n.id = new.id;
  return null;
end
$$;
create constraint trigger order_notices_600_notify after insert on private.order_notices
  deferrable initially deferred
  for each row execute function private.tg_order_notices__notify();

create function private.tg_payments__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'payment.recorded', private.payment_json(new));
  return null;
end
$$;
create trigger payments_600_notify after insert on public.payments
  for each row execute function private.tg_payments__notify();

create function private.tg_payment_voids__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select p.organisation_id, 'payment.voided', private.payment_json(p) from public.payments p where p.id = new.payment_id;
  return null;
end
$$;
create trigger payment_voids_600_notify after insert on public.payment_voids
  for each row execute function private.tg_payment_voids__notify();

create function private.tg_refunds__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'refund.recorded', private.refund_json(new));
  return null;
end
$$;
create trigger refunds_600_notify after insert on public.refunds
  for each row execute function private.tg_refunds__notify();

-- schemas/60-attendees/notifications.sql

-- What is notified of attendees. All security definer: no role may write the outbox.

-- Announces an order that gets its first attendees, and notifies of those added to an order that was announced before. Those of a new
-- order are in its order.created. Fires before the totals, whose changes notify of other attendees.
create function private.tg_attendees__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_first uuid[];
begin
  -- A scalar subquery is one look-up per row under any plan.
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
    v_first := array(
      select n.order_id
      from (select r.order_id, count(*) as attendees from new_rows r group by r.order_id) n
      where (select count(*) from public.attendees a where a.order_id = n.order_id) = n.attendees
    );
    insert into private.order_notices (types, order_ids)
    select
      -- A complimentary order is complete before it has attendees; any other one completes, and says so, after this.
      case o.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(o.id order by o.id)
    from public.orders o
    where o.id = any (v_first)
      and o.id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    group by o.status;

    insert into public.notifications (organisation_id, type, data)
    -- The row as it is: its discount may have been set after it was added.
    select n.organisation_id, 'attendee.updated', (select private.attendee_json(a, with_url => false) from public.attendees a where a.id = n.id)
    from new_rows n
    where n.order_id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    order by n.id;
  end if;
  return null;
end
$$;
create trigger attendees_350_notify_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement when (current_setting('usher.adds_to_order', true) = 'on')
  execute function private.tg_attendees__notify_insert();

-- The plan is cached, and made for the one row of the first call: without nested loops it serves the 25,000 rows of a cancelled
-- event as well.
create function private.tg_attendees__notify_update() returns trigger
language plpgsql volatile security definer set search_path = '' set enable_nestloop = off
as $$
begin
  -- Every edit increments the version; a check-in, for example, is none.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  select
    n.organisation_id,
    case
      when n.erased_at is not null and o.erased_at is null then 'attendee.erased'
      when n.status = 'cancelled' and o.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(
      row(n.*)::public.attendees,
      true,
      (select t.name from public.ticket_types t where t.id = n.ticket_type_id),
      (select o.reference from public.orders o where o.id = n.order_id),
      false
    )
  from new_rows n
  join old_rows o on o.id = n.id
  where n.version <> o.version
    -- An attendee who is as new as what announces the order is in there as they are at the end.
    and not (
      n.created_at = now()
      and n.status <> 'cancelled'
      and n.erased_at is null
      and n.order_id in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    )
  order by n.id;
  return null;
end
$$;
create trigger attendees_350_notify_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__notify_update();

create function private.tg_attendees__notify_bounce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      'ticket', new.event_id, new.order_id, new.id, new.email, new.ticket_email_status, new.ticket_email_sent_at, new.ticket_email_last_error
    )
  );
  return null;
end
$$;
create trigger attendees_600_notify_bounce after update of ticket_email_status on public.attendees
  for each row when (new.ticket_email_status in ('bounced', 'failed') and new.ticket_email_status <> old.ticket_email_status)
  execute function private.tg_attendees__notify_bounce();

-- schemas/70-waiting-list/notifications.sql

-- What is notified of the waiting list.

-- Security definer: no role may write the outbox. An acceptance is notified of at the end of the transaction, when there is an attendee.
create function private.tg_waiting_list_entries__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    ('waiting_list_entry.' || case new.status when 'waiting' then 'created' else new.status::text end)::public.notification_type,
    private.waiting_list_entry_json(new)
  );
  if new.status = 'offered' and new.send_email then
    perform private.queue_waiting_list_emails(array[new.id]);
  end if;
  return null;
end
$$;
create trigger waiting_list_entries_600_notify_insert after insert on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__notify();
create trigger waiting_list_entries_600_notify_update after update on public.waiting_list_entries
  for each row when (new.status <> old.status and new.status <> 'accepted')
  execute function private.tg_waiting_list_entries__notify();
create constraint trigger waiting_list_entries_600_notify_accepted after update on public.waiting_list_entries
  deferrable initially deferred
  for each row when (new.status = 'accepted' and old.status <> 'accepted')
  execute function private.tg_waiting_list_entries__notify();

-- schemas/80-check-ins/notifications.sql

-- What is notified of check-ins. All security definer: no role may write the outbox.

-- An attendee with the scan that is notified of. Security definer: it reads what the role that scans may not.
create function private.arrival_json(attendee public.attendees, check_in public.check_ins) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  -- As text, for json keeps the order of its fields and cannot be appended to.
  return (left(private.attendee_json(attendee, with_url => false)::text, -1) || ', "check_in" : ' || json_build_object(
    'id', check_in.id,
    'direction', check_in.direction,
    'check_in_point', case when check_in.check_in_point_id is not null then (
      select json_build_object('id', p.id, 'name', p.name) from public.check_in_points p where p.id = check_in.check_in_point_id
    ) end,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'device', check_in.device
  ) || '}')::json;
end
$$;

create function private.tg_check_ins__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    n.organisation_id,
    case n.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type,
    private.arrival_json(row(a.*)::public.attendees, row(n.*)::public.check_ins)
  from new_rows n
  -- One index look-up per row under any plan.
  cross join lateral (select a.* from public.attendees a where a.id = n.attendee_id offset 0) a
  where n.result = 'accepted'
  order by n.id;
  return null;
end
$$;
create trigger check_ins_600_notify_insert after insert on public.check_ins
  referencing new table as new_rows
  for each statement execute function private.tg_check_ins__notify_insert();

create function private.tg_check_ins__notify_undo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select a.organisation_id, 'attendee.check_in_undone', private.arrival_json(a, new)
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;
create trigger check_ins_600_notify_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify_undo();

-- schemas/20-events/emails.sql

-- What guests are told of a change of their event, when, and by whom. What queues them is security definer: no role may write e-mails.

-- What attendees are told of an event, and told again when it changes.
create function private.announced(event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(f.key, f.value)
    from jsonb_each(private.event_json(event)::jsonb) f
    where f.key in ('name', 'starts_at', 'ends_at', 'timezone', 'venue', 'online_url')
  );
end
$$;

create table private.unannounced_changes (
  event_id uuid not null,
  previous jsonb not null,
  changed_at timestamptz not null default now(),
  mailed jsonb,
  constraint unannounced_changes_pkey primary key (event_id),
  constraint unannounced_changes_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade
);
comment on table private.unannounced_changes is 'Events that changed or were cancelled since their attendees were last told, with what these know, and when the last change was.';
comment on column private.unannounced_changes.mailed is 'What those know who have been told since, because their orders are e-mailed; null: nobody was told. The others know what is previous.';
alter table private.unannounced_changes enable row level security;

create function private.tg_events__note_change() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.unannounced_changes (event_id, previous) values (new.id, private.announced(old))
  on conflict on constraint unannounced_changes_pkey do update set changed_at = now();
  return null;
end
$$;
create trigger events_500_note_change after update on public.events
  for each row when (
    -- What is edited while the event is completed is to be told once it is published again.
    old.status in ('published', 'completed')
    and (
      new.status = 'cancelled'
      or new.status in ('published', 'completed')
      and (
        new.name is distinct from old.name
        or new.starts_at is distinct from old.starts_at
        or new.ends_at is distinct from old.ends_at
        or new.timezone is distinct from old.timezone
        or new.venue_name is distinct from old.venue_name
        or new.venue_address is distinct from old.venue_address
        or new.venue_city is distinct from old.venue_city
        or new.venue_postcode is distinct from old.venue_postcode
        or new.venue_country is distinct from old.venue_country
        or new.online_url is distinct from old.online_url
      )
    )
  )
  execute function private.tg_events__note_change();

-- Tells the attendees of an event what changed since they were last told, in ten minutes, so that changes which follow one another make
-- one e-mail, with the first old and the last new; or that it was cancelled, once, with whoever was on the waiting list. Whoever is told
-- `mailed` first and `everybody` after tells each once. The caller has locked the event. Answers as private.tell, or null where nobody is
-- to be told.
create function private.notify_of_event(event_id uuid, notify public.notify) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_change private.unannounced_changes;
  v_news jsonb;
  v_attendees uuid[];
  v_recipients private.recipient[];
  v_mailed private.recipient[];
  v_told_before private.recipient[] := '{}';
  v_pending text[] := '{}';
  v_kind public.email_kind := 'event_changed';
  v_send_at timestamptz := now() + interval '10 minutes';
  v_notice jsonb;
  v_first jsonb;
begin
  select e.* into v_event from public.events e where e.id = notify_of_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  elsif v_event.status not in ('published', 'cancelled') then
    return '{"nobody_because": "event_not_published"}';
  end if;
  select c.* into v_change from private.unannounced_changes c where c.event_id = v_event.id;
  if not found then
    return '{"nobody_because": "nothing_to_tell"}';
  end if;
  v_attendees := array(
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = v_event.id
      and case v_event.status when 'cancelled' then a.cancelled_at = v_event.cancelled_at else a.status <> 'cancelled' end
  );
  if v_event.status = 'cancelled' then
    v_news := '"cancelled"';
    v_kind := 'event_cancelled';
    v_send_at := now();
    v_recipients := private.recipients(v_attendees, notify) || private.recipients_on_waiting_list(v_event, notify);
  else
    v_news := private.announced(v_event);
    v_recipients := private.recipients(v_attendees, notify, v_change.changed_at);
    -- Locked, so that no courier takes one with what the event was before this transaction.
    v_pending := array(
      select (select a.email_lower from public.attendees a where a.id = e.attendee_id)
      from public.emails e
      where e.attendee_id = any (v_attendees) and e.kind = 'event_changed' and e.status = 'queued' and e.claim is null
      for no key update
    );
  end if;

  if v_change.mailed is not null then
    v_mailed := case v_event.status
      when 'cancelled' then private.recipients(v_attendees, 'mailed') || private.recipients_on_waiting_list(v_event, 'mailed')
      else private.recipients(v_attendees, 'mailed', v_change.changed_at)
    end;
    -- They know more than the others, or all of it.
    v_told_before := array(
      select row(
        r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.email_lower, case when v_change.mailed = v_news then 'told_before' end
      )::private.recipient
      from unnest(v_mailed) r
      where r.reason is null
    );
    v_first := private.tell(v_kind, v_told_before, v_change.mailed, v_send_at, v_pending);
    v_pending := array(
      select unnest(v_pending) union select r.email_lower from unnest(v_told_before) r where r.reason is null
    );
    -- The others. Whoever shares the address of somebody who was told was told. Joins by equality: there may be tens of thousands.
    v_recipients := array(
      select row(
        r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.email_lower, coalesce(t.reason, r.reason)
      )::private.recipient
      from unnest(v_recipients) with ordinality r
      left join (
        select distinct t.email_lower, t.reason from unnest(v_told_before) t where t.reason is not null
      ) t using (email_lower)
      where coalesce(r.attendee_id, r.waiting_list_entry_id) not in (
        select coalesce(t.attendee_id, t.waiting_list_entry_id) from unnest(v_told_before) t
      )
      order by r.ordinality
    );
  end if;
  v_notice := private.tell(v_kind, v_recipients, v_change.previous, v_send_at, v_pending);

  if exists (select from unnest(v_recipients) r where r.reason = 'send_email_false') then
    update private.unannounced_changes c set mailed = v_news where c.event_id = v_event.id;
  else
    delete from private.unannounced_changes c where c.event_id = v_event.id;
  end if;
  if v_first is not null then
    -- `emails` of the second has those of the first, as pending.
    v_notice := v_notice || jsonb_build_object(
      'told', (v_notice ->> 'told')::integer + (v_first ->> 'told')::integer,
      'not_told', (
        select coalesce(jsonb_agg(jsonb_build_object('reason', n.reason, 'count', n.count) order by n.count desc, n.reason), '[]')
        from (
          select n.reason, sum(n.count) as count
          from jsonb_to_recordset((v_first -> 'not_told') || (v_notice -> 'not_told')) n (reason text, count integer)
          group by n.reason
        ) n
      )
    );
  end if;
  return v_notice;
end
$$;
grant execute on function private.notify_of_event to scope_events_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.notify_attendees(event_id uuid, notify public.notify default 'mailed') returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform from public.events e
  where e.id = notify_attendees.event_id
    and (
      private.claims() ->> 'role' is distinct from 'authenticated'
      or e.organisation_id in (select private.organisations_as('{owner,manager}'))
    )
  for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return coalesce((private.notify_of_event(event_id, notify) ->> 'emails')::integer, 0);
end
$$;
comment on function public.notify_attendees is
  'Tells the attendees of an event by e-mail what changed since they were last told, ten minutes later, or that it was cancelled: mailed those whose orders have e-mails, everybody all of them. Returns how many e-mails.';
revoke all on function public.notify_attendees from public, anon, service_role;
grant execute on function public.notify_attendees to authenticated;

-- schemas/50-orders/emails.sql

-- What the buyer is told: that the order was placed, paid, or has expired, and that a receipt is taken back. What queues them is security definer: no role may write e-mails.

-- To the buyers of orders.
create function private.queue_order_emails(kind public.email_kind, order_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id)
  select o.organisation_id, queue_order_emails.kind, o.id
  from public.orders o
  where o.id = any (order_ids) and o.send_email
  order by o.id;
end
$$;

-- An order that somebody adds in Studio is confirmed a little later: its attendees are rows that follow it, unless it comes from the view
-- registrations.
create function private.tg_orders__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (select from new_rows n where n.payment_method is not null and n.send_email) then
    return null;
  end if;
  insert into public.emails (organisation_id, kind, order_id, next_attempt_at)
  select
    n.organisation_id,
    'order_confirmation',
    n.id,
    now() + case
      when n.source = 'studio' and current_setting('usher.registers', true) is distinct from 'on' then interval '10 minutes'
      else '0'
    end
  from new_rows n
  where n.payment_method is not null and n.send_email
  order by n.id;
  return null;
end
$$;
create trigger orders_500_confirm after insert on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__confirm();

create function private.tg_payments__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id, payment_id)
  select o.organisation_id, 'payment_received', o.id, new.id
  from public.orders o
  where o.id = new.order_id and o.send_email;
  return null;
end
$$;
create trigger payments_500_confirm after insert on public.payments
  for each row execute function private.tg_payments__confirm();

-- The receipt of a payment was sent, or is on its way: one that the retention has removed was sent.
create function private.has_receipt(payment_id uuid) returns boolean
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
begin
  return coalesce(
    (
      select bool_or(e.status in ('sent', 'delivered') or e.claim is not null)
      from public.emails e
      where e.payment_id = has_receipt.payment_id and e.kind = 'payment_received'
    ),
    true
  );
end
$$;

-- Whoever got the receipt of a payment is told that it was voided.
create function private.tg_payment_voids__tell() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- Locked, so that no courier takes the receipt between this transaction's look and its end.
  perform from public.emails e where e.payment_id = new.payment_id and e.kind = 'payment_received' for no key update;
  insert into public.emails (organisation_id, kind, order_id, payment_id)
  select o.organisation_id, 'payment_voided', o.id, new.payment_id
  from public.payments p
  join public.orders o on o.id = p.order_id
  where p.id = new.payment_id and o.send_email and private.has_receipt(new.payment_id);
  return null;
end
$$;
create trigger payment_voids_500_tell after insert on public.payment_voids
  for each row execute function private.tg_payment_voids__tell();

create function private.tg_orders__tell_of_expiry() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.queue_order_emails('order_expired', array[new.id]);
  return null;
end
$$;
create trigger orders_500_tell_of_expiry after update of cancellation_reason on public.orders
  for each row when (new.cancellation_reason = 'expired' and old.status = 'pending')
  execute function private.tg_orders__tell_of_expiry();

-- What an order is for, a line for each ticket type and price.
create function private.order_lines_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object(
      'name', l.name, 'quantity', l.quantity, 'price', l.price, 'discount', l.discount, 'total', l.quantity * l.price - l.discount
    ) order by l.first_id), '[]')
    from (
      select t.name, a.price, count(*) as quantity, sum(a.discount)::bigint as discount, min(a.id::text) as first_id
      from public.attendees a
      join public.ticket_types t on t.id = a.ticket_type_id
      join public.orders o on o.id = a.order_id
      where a.order_id = order_lines_json.order_id and (a.status <> 'cancelled' or o.status = 'cancelled')
      group by t.id, a.price
    ) l
  );
end
$$;

-- schemas/60-attendees/emails.sql

-- The ticket of an attendee, and what else an attendee is told.

-- Once per statement, so that cancelling an event cancels its queued e-mails in one update. Fires before the totals, whose
-- changes queue others. Security definer: no role may write emails.
create function private.tg_attendees__queue_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_dequeued_ids uuid[];
begin
  if tg_op = 'INSERT' then
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
  else
    -- Not joins of the two transition tables: see tg_attendees__add_up.
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued';
    v_dequeued_ids := array(
      select o.id from old_rows o where o.ticket_email_status = 'queued'
      except
      select n.id from new_rows n where n.ticket_email_status = 'queued'
    );
    if v_dequeued_ids <> '{}' then
      update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
      where e.attendee_id = any (v_dequeued_ids) and e.kind = 'ticket' and e.status = 'queued';
    end if;
  end if;
  return null;
end
$$;
create trigger attendees_340_queue_ticket_email_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__queue_ticket_email();
create trigger attendees_340_queue_ticket_email_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement when (current_setting('usher.queues_tickets', true) = 'on')
  execute function private.tg_attendees__queue_ticket_email();

-- Attendees as recipients: those whose ticket page an e-mail may link to first. `known_until`: whoever registered later knows nothing else.
-- Security definer, like all that follows: no role may write e-mails.
create function private.recipients(attendee_ids uuid[], notify public.notify, known_until timestamptz default 'infinity')
returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select row(a.organisation_id, a.id, null, a.email_lower, case
      when a.erased_at is not null then 'erased'
      -- A domain that cannot exist (RFC 2606): walk-ins at the door leave no address.
      when a.email_lower like '%.invalid' then 'no_address'
      when a.created_at > known_until then 'registered_since'
      when notify = 'mailed' and not a.send_email then 'send_email_false'
    end)::private.recipient
    from (
      select a.*, (select o.send_email from public.orders o where o.id = a.order_id) as send_email
      from public.attendees a
      where a.id = any (attendee_ids)
    ) a
    order by a.send_email desc, a.id
  );
end
$$;

-- One e-mail for each address, but for those that have one pending: { emails, told, not_told: [{ reason, count }] }. `emails` has those
-- pending; told and not_told count recipients, and who shares the address of somebody who is told is told.
create function private.tell(
  kind public.email_kind,
  recipients private.recipient[],
  previous jsonb default null,
  send_at timestamptz default now(),
  pending text[] default '{}'
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_emails integer;
begin
  insert into public.emails (organisation_id, kind, attendee_id, waiting_list_entry_id, previous, next_attempt_at)
  select distinct on (r.email_lower)
    r.organisation_id,
    case when r.attendee_id is null then 'waiting_list_cancelled' else tell.kind end,
    r.attendee_id,
    r.waiting_list_entry_id,
    tell.previous,
    send_at
  from unnest(recipients) with ordinality r
  where r.reason is null and r.email_lower not in (select unnest(pending))
  order by r.email_lower, r.ordinality;
  get diagnostics v_emails = row_count;
  return (
    select jsonb_build_object(
      'emails', cardinality(pending) + v_emails,
      'told', coalesce(sum(c.count) filter (where c.reason is null), 0),
      'not_told', coalesce(
        jsonb_agg(jsonb_build_object('reason', c.reason, 'count', c.count) order by c.count desc, c.reason) filter (where c.reason is not null),
        '[]'
      )
    )
    from (
      select a.reason, count(*)
      from (
        select case when not bool_or(r.reason is null) over (partition by r.email_lower) then r.reason end as reason
        from unnest(recipients) r
      ) a
      group by a.reason
    ) c
  );
end
$$;

-- Tells those whose tickets this transaction cancelled: of an order, or one of them. Answers as private.tell, or null where nobody is to
-- be told.
create function private.notify_of_cancelled_tickets(notify public.notify, order_id uuid, attendee_id uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  end if;
  return private.tell('ticket_cancelled', private.recipients(
    array(
      select a.id
      from public.attendees a
      where a.order_id = notify_of_cancelled_tickets.order_id
        and not private.is_foreign(a.organisation_id)
        and a.id = coalesce(notify_of_cancelled_tickets.attendee_id, a.id)
        and a.cancelled_at = now()
    ),
    notify
  ));
end
$$;
grant execute on function private.notify_of_cancelled_tickets to scope_orders_write, scope_attendees_write;

-- schemas/70-waiting-list/emails.sql

-- What is told to whoever waits: that a place is offered to them, and that the event was cancelled.

-- To people whom the waiting list offers a place. Security definer: no role may write e-mails.
create function private.queue_waiting_list_emails(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, waiting_list_entry_id)
  select w.organisation_id, 'waiting_list_offer', w.id
  from public.waiting_list_entries w
  where w.id = any (entry_ids)
  order by w.id;
end
$$;

-- Whom the cancellation of the event took off its waiting list, offers first, and nobody whom it had lost before.
create function private.recipients_on_waiting_list(event public.events, notify public.notify) returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select row(w.organisation_id, null, w.id, w.email_lower, case
      when w.email = private.erased_fields() ->> 'email' then 'erased'
      when notify = 'mailed' and not w.send_email then 'send_email_false'
    end)::private.recipient
    from public.waiting_list_entries w
    where w.event_id = event.id and w.status = 'cancelled' and w.updated_at = event.cancelled_at
    order by w.offered_at is null, w.id
  );
end
$$;

-- What an e-mail to them shows besides its event.
create function private.waiting_list_offer_json(waiting_list_entry_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select private.waiting_list_entry_json(w) from public.waiting_list_entries w where w.id = waiting_list_offer_json.waiting_list_entry_id
  );
end
$$;

-- schemas/10-organisations/audit.sql

-- What the audit trail keeps of organisations, members and API keys.

select private.audit_changes('public.organisations', 'organisation');
select private.audit_changes('public.organisation_members', 'member', id_column => 'user_id');
select private.audit_changes('public.api_keys', 'api_key');

-- schemas/20-events/audit.sql

-- What the audit trail keeps of events.

select private.audit_changes('public.events', 'event');

-- schemas/30-ticket-types/audit.sql

-- What the audit trail keeps of ticket types.

select private.audit_changes('public.ticket_types', 'ticket_type');

-- schemas/40-promo-codes/audit.sql

-- What the audit trail keeps of promo codes.

select private.audit_changes('public.promo_codes', 'promo_code');

-- schemas/50-orders/audit.sql

-- What the audit trail keeps of orders and money.

-- A registration is one entry, of its order: the attendees of a new order belong to it.
create function private.tg_orders__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_actor public.audit_actor := private.audit_actor();
  v_claims jsonb := private.claims();
  v_api_key_id uuid := v_claims ->> 'api_key_id';
  v_user_id uuid := case v_actor when 'member' then v_claims ->> 'sub' end;
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
  select n.organisation_id, 'created', 'order', n.id, v_actor, v_api_key_id, v_user_id, n.source
  from new_rows n;
  return null;
end
$$;
create trigger orders_700_audit_insert after insert on public.orders
  referencing new table as new_rows for each statement execute function private.tg_orders__audit_insert();
select private.audit_changes('public.orders', 'order', events => '{update,delete}');
select private.audit_changes('public.payments', 'payment', events => '{insert}');
select private.audit_changes('public.payment_voids', 'payment_void', events => '{insert}');
select private.audit_changes('public.refunds', 'refund', events => '{insert}');

-- schemas/60-attendees/audit.sql

-- What the audit trail keeps of attendees. Those of a new order belong to its entry.

create function private.tg_attendees__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_actor public.audit_actor;
begin
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
    v_actor := private.audit_actor();
    insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
    select
      n.organisation_id, 'created', 'attendee', n.id, v_actor, private.current_api_key_id(),
      case v_actor when 'member' then (private.claims() ->> 'sub')::uuid end, private.current_source()
    from new_rows n
    where (select o.created_at from public.orders o where o.id = n.order_id) <> now();
  end if;
  return null;
end
$$;
create trigger attendees_700_audit_insert after insert on public.attendees
  referencing new table as new_rows for each statement when (current_setting('usher.adds_to_order', true) = 'on')
  execute function private.tg_attendees__audit_insert();
select private.audit_changes('public.attendees', 'attendee', events => '{update,delete}');

-- schemas/70-waiting-list/audit.sql

-- What the audit trail keeps of the waiting list.

select private.audit_changes('public.waiting_list_entries', 'waiting_list_entry', events => '{insert,update}');

-- schemas/80-check-ins/audit.sql

-- What the audit trail keeps of check-ins and their points: an undone check-in, and what organisers change.

select private.audit_changes('public.check_ins', 'check_in', events => '{update}');
select private.audit_changes('public.check_in_points', 'check_in_point');

-- schemas/90-outbox/audit.sql

-- What the audit trail keeps of webhook endpoints, and that a secret was rotated.

-- A rotation of a secret, of which nothing but the fact is kept.
create function private.tg_webhook_secrets__audit() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_actor public.audit_actor := private.audit_actor();
begin
  insert into public.audit_entries (
    organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source, changes
  )
  select
    w.organisation_id, 'updated', 'webhook_endpoint', w.id, v_actor, private.current_api_key_id(),
    case v_actor when 'member' then (private.claims() ->> 'sub')::uuid end, private.current_source(), '{"secret": {}}'
  from public.webhook_endpoints w
  where w.id = new.webhook_endpoint_id and w.created_at <> now();
  return null;
end
$$;
create trigger webhook_secrets_700_audit after insert on private.webhook_secrets
  for each row execute function private.tg_webhook_secrets__audit();
select private.audit_changes('public.webhook_endpoints', 'webhook_endpoint');

-- schemas/20-events/warnings.sql

-- What a change of an event, or of what belongs to one, is warned of.

-- Times as they were written, by field. One in UTC was converted by whoever wrote it; another offset should be that of the zone.
create function private.warning_of_offset_in(written jsonb, timezone text) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.warning('offset_not_of_zone', format(
      '%s was written as %s, which is %s in %s, the time zone of the event.',
      f.key, f.value, to_char(f.value::timestamptz at time zone warning_of_offset_in.timezone, 'YYYY-MM-DD HH24:MI'), warning_of_offset_in.timezone
    ))
    from jsonb_each_text(written) f
    where f.key ~ '(_at|^valid_from|^valid_until)$'
      and f.value ~ 'T.*[+-](?!00:00)[0-9:]{5}$'
      and f.value::timestamptz at time zone warning_of_offset_in.timezone <> left(f.value, -6)::timestamp
    order by f.key desc
    limit 1
  );
end
$$;
grant execute on function private.warning_of_offset_in to scope_events_write;

create function private.warning_of_offset(written jsonb, event_id uuid) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return case when written::text ~ 'T[0-9:.]+[+-]' then private.warning_of_offset_in(
    written, (select e.timezone from public.events e where e.id = warning_of_offset.event_id)
  ) end;
end
$$;
grant execute on function private.warning_of_offset to scope_events_write;

-- More places of the event make none of a ticket type that has issued all of its own. Places that are held for the waiting list are just
-- being given.
create function private.warning_of_capacity(before public.events, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if before.capacity is null or event.capacity <= before.capacity then
    return null;
  end if;
  return (
    select private.warning('ticket_type_sold_out', format(
      'The event has more places, but %s of its ticket types stay sold out: raise their quantity.', count(*)
    ))
    from public.ticket_types t
    where t.event_id = event.id and private.is_on_sale(t) and t.quantity <= t.quantity_sold
    having count(*) > 0
  );
end
$$;
grant execute on function private.warning_of_capacity to scope_events_write;

-- schemas/30-ticket-types/warnings.sql

-- What a change of a ticket type is warned of.

-- 299 for 299.00. A price that stands beside others was probably meant: they say what is usual.
create function private.warning_of_price(ticket_type public.ticket_types) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_currency text;
begin
  if ticket_type.price not between 1 and 9999 then
    return null;
  end if;
  select e.currency into v_currency from public.events e where e.id = ticket_type.event_id;
  if ticket_type.price >= 10 * private.minor_units(v_currency) or exists (
    select from public.ticket_types t where t.event_id = ticket_type.event_id and t.price > 0 and t.id <> ticket_type.id
  ) then
    return null;
  end if;
  return private.warning('price_low', format(
    'The price is %s: prices are in minor units. For %s send %s.',
    private.money_text(ticket_type.price, v_currency),
    private.money_text(ticket_type.price * private.minor_units(v_currency), v_currency),
    ticket_type.price * private.minor_units(v_currency)
  ));
end
$$;
grant execute on function private.warning_of_price to scope_events_write;

-- schemas/40-promo-codes/warnings.sql

-- What a change of a promo code is warned of.

create function private.warning_of_percentage(promo_code public.promo_codes) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return case when promo_code.percent_off < 1 then private.warning(
    'percent_off_low', format('The code takes off %s percent: 25 takes a quarter off.', promo_code.percent_off::float8)
  ) end;
end
$$;
grant execute on function private.warning_of_percentage to scope_events_write;

-- schemas/50-orders/warnings.sql

-- What the payment of an order is warned of.

-- Asked before it is recorded. Partial payments may share the number of an invoice, so they are told of their order.
create function private.warning_of_reference(order_id uuid, external_reference text) returns jsonb
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
begin
  return (
    select private.warning('reference_repeated', case f.order_id
      when warning_of_reference.order_id then 'Another payment of this order has the same external_reference.'
      else format(
        'A payment of %s has the same external_reference.',
        case when private.reads_orders()
          then 'order ' || (select o.reference from public.orders o where o.id = f.order_id)
          else 'another order'
        end
      )
    end)
    from (
      select p.order_id
      from public.payments p
      where p.organisation_id = v_organisation_id
        and p.external_reference = warning_of_reference.external_reference
        and not exists (select from public.payment_voids v where v.payment_id = p.id)
      limit 1
    ) f
  );
end
$$;
grant execute on function private.warning_of_reference to scope_orders_write;

-- schemas/60-attendees/warnings.sql

-- What a registration is warned of.

create function private.warning_of_gift() returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return private.warning(
    'ticket_given_away', 'A ticket that has a price was given away. If it is to be paid, cancel it and register with payment_method.'
  );
end
$$;
grant execute on function private.warning_of_gift to scope_attendees_write;

-- The same of tickets of these types, none of which was paid for. Security definer: a registering key may not read prices.
create function private.warning_of_gifts(ticket_type_ids uuid[]) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
begin
  return case when exists (
    select from public.ticket_types t
    where t.id = any (ticket_type_ids) and t.organisation_id = private.current_organisation_id() and t.price > 0
  ) then private.warning_of_gift() end;
end
$$;
grant execute on function private.warning_of_gifts to scope_attendees_write;

create function private.warning_of_repetition() returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return private.warning(
    'person_repeated', 'A person of the same name and e-mail address was registered for this event within ten minutes. Cancel one of the two if it was meant once.'
  );
end
$$;
grant execute on function private.warning_of_repetition to scope_attendees_write;

-- schemas/80-check-ins/warnings.sql

-- What a check-in is warned of. The door decides who comes in: it is never refused.

create function private.warning_of_early_scan(scanned_at timestamptz, starts_at timestamptz) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return case when scanned_at < starts_at - interval '1 day' then private.warning(
    'check_in_early', 'The event starts more than a day later. Undo the check-in if it was a test.'
  ) end;
end
$$;
grant execute on function private.warning_of_early_scan to scope_checkin_write;

-- schemas/00-ground/names.sql

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

-- The form of a reference, an identifier that Usher generates: people read and type it.
create function private.reference_form(name text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  return upper(regexp_replace(name, '[[:space:]-]', '', 'g'));
end
$$;

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

-- Patterns for what resembles a name: halves of its longest words, one of which is right in most misspelt ones. Of an e-mail address
-- what stands before the @, for many people share the rest.
create function private.near_patterns(form text) returns text[]
language plpgsql immutable set search_path = ''
as $$
begin
  return array(
    select distinct '%' || regexp_replace(h.half, '([\\%_])', '\\\1', 'g') || '%'
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

-- schemas/20-events/names.sql

-- Finding events by what they are called: see 00-ground/names.sql.

create index events_organisation_id_name_idx on public.events (organisation_id, private.search_form(name));

-- An event as a candidate shows it, and as others show theirs. Who may not read events gets the id.
create function private.event_shown(event_id uuid, scopes public.api_scope[]) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  if not scopes && '{events:read,events:write,checkin:write}' then
    return jsonb_build_object('object', 'event', 'id', event_id);
  end if;
  select e.* into v_event from public.events e where e.id = event_shown.event_id;
  return jsonb_build_object('object', 'event', 'id', v_event.id, 'name', v_event.name, 'status', v_event.status)
    || case when scopes && '{events:read,events:write}'
      then jsonb_build_object('slug', v_event.slug, 'starts_at', private.rfc3339(v_event.starts_at))
      else '{}' end;
end
$$;

-- The newest events of an organisation, or the one that is given: among what belongs to them the nearest is looked for.
create function private.newest_events(query private.name_query) returns uuid[]
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
begin
  if query.event_id is not null then
    return array[query.event_id];
  end if;
  return array(
    select e.id
    from unnest(enum_range(null::public.event_status)) s (status)
    cross join lateral (
      select e.id from public.events e
      where e.organisation_id = any (array[query.organisation_id]) and e.status = s.status
      order by e.organisation_id desc, e.id desc
      limit 100
    ) e
  );
end
$$;

create function private.find_event(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_may_read boolean := query.scopes && '{events:read,events:write,checkin:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  if query.nearest then
    return query
    select n.id, 'nearest', n.likeness, private.event_shown(n.id, query.scopes)
    from (
      select e.id, greatest(
        extensions.similarity(private.search_form(e.name), query.form), extensions.similarity(e.slug, query.form)
      ) as likeness
      from public.events e
      where e.id = any (v_newest)
    ) n
    where private.is_near(n.likeness)
    order by n.likeness desc
    limit 5;
    return;
  end if;
  return query
  select f.id, f.matches, null::real, private.event_shown(f.id, query.scopes)
  from (
    select e.id, 'id' as matches from public.events e where e.id = query.id and e.organisation_id = query.organisation_id
    union all
    select e.id, 'slug' from public.events e
    where e.organisation_id = query.organisation_id and e.slug = query.form and e.slug <> ''
    union all
    select e.id, 'external_id' from public.events e
    where e.organisation_id = query.organisation_id and e.external_id = query.name
    union all
    (
      select e.id, 'name' from public.events e
      where v_may_read and e.organisation_id = query.organisation_id and private.search_form(e.name) = query.form
      limit 11
    )
  ) f;
end
$$;

-- schemas/30-ticket-types/names.sql

-- Finding ticket types by what they are called: see 00-ground/names.sql.

create index ticket_types_organisation_id_name_idx on public.ticket_types (organisation_id, private.search_form(name));

-- Every scope that has to do with tickets reads what they are called.
create function private.find_ticket_type(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write,attendees:read,attendees:write,checkin:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select t.id, 'id' as matches, null::real as likeness from public.ticket_types t where not query.nearest and t.id = query.id
      union all
      select t.id, 'external_id', null from public.ticket_types t
      where not query.nearest and t.organisation_id = query.organisation_id and t.external_id = query.name
      union all
      (
        select t.id, 'name', null from public.ticket_types t
        where not query.nearest and v_may_read and t.organisation_id = query.organisation_id
          and private.search_form(t.name) = query.form and (query.event_id is null or t.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select t.id, extensions.similarity(private.search_form(t.name), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select t.id, t.name from public.ticket_types t
            where t.event_id = any (array[e.id])
            order by t.event_id, t.position, t.id
            limit 50
          ) t
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'ticket_type', 'id', f.id)
    || case when v_may_read then jsonb_build_object('name', t.name) else '{}' end
    || case when query.scopes && '{events:read,events:write}' then jsonb_build_object('status', t.status, 'price', t.price) else '{}' end
    || jsonb_build_object('event', private.event_shown(t.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select t.* from public.ticket_types t where t.id = f.id offset 0) t
  where t.organisation_id = query.organisation_id and (query.event_id is null or t.event_id = query.event_id);
end
$$;

-- schemas/40-promo-codes/names.sql

-- Finding promo codes by their code: see 00-ground/names.sql.

create index promo_codes_organisation_id_code_idx on public.promo_codes (organisation_id, lower(code));

create function private.find_promo_code(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select c.id, 'id' as matches, null::real as likeness from public.promo_codes c where not query.nearest and c.id = query.id
      union all
      (
        select c.id, 'code', null from public.promo_codes c
        where not query.nearest and v_may_read and c.organisation_id = query.organisation_id and lower(c.code) = lower(query.name)
          and (query.event_id is null or c.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select c.id, extensions.similarity(lower(c.code), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select c.id, c.code from public.promo_codes c
            where c.event_id = any (array[e.id])
            order by c.event_id desc, c.id desc
            limit 50
          ) c
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'promo_code', 'id', f.id)
    || case when v_may_read then jsonb_build_object('code', c.code, 'status', c.status) else '{}' end
    || jsonb_build_object('event', private.event_shown(c.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select c.* from public.promo_codes c where c.id = f.id offset 0) c
  where c.organisation_id = query.organisation_id and (query.event_id is null or c.event_id = query.event_id);
end
$$;

-- schemas/50-orders/names.sql

-- Finding orders by what they are called: see 00-ground/names.sql. Their contact is in the search_text of their attendees.

create function private.find_order(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off set jit = off
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'orders:read' = any (query.scopes);
  v_pattern text := case when v_may_read then private.name_pattern(query.form) end;
  -- Where the contact is not the attendee, the contact follows a line feed.
  v_pattern_after text := '%' || E'\n' || left(v_pattern, -2) || '%';
  v_ids uuid[] := '{}';
  v_id uuid;
begin
  if query.nearest then
    v_ids := case when v_may_read then array(
      select a.order_id
      from unnest(private.near_patterns(query.form)) p (pattern)
      cross join lateral unnest(private.search_attendees(array[p.pattern], null, query.event_id)) s (id)
      cross join lateral (select a.order_id from public.attendees a where a.id = s.id offset 0) a
    ) end;
  elsif v_pattern is not null then
    -- One after the other, for an order may have any number of attendees.
    loop
      select a.order_id into v_id
      from unnest(array[v_pattern, v_pattern_after]) p (pattern)
      cross join lateral (
        select a.order_id, a.event_id
        from public.attendees a
        where uuid_hash(a.organisation_id) = uuid_hash(query.organisation_id)
          and a.search_text like p.pattern
          and (a.organisation_id = query.organisation_id) is true
        offset 0
      ) a
      cross join lateral (select o.name from public.orders o where o.id = a.order_id offset 0) o
      where (query.event_id is null or a.event_id = query.event_id)
        and a.order_id <> all (v_ids)
        and private.search_form(o.name) = query.form
      limit 1;
      exit when not found;
      v_ids := v_ids || v_id;
      exit when cardinality(v_ids) > 10;
    end loop;
  end if;
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select o.id, 'id' as matches, null::real as likeness from public.orders o where not query.nearest and o.id = query.id
      union all
      select o.id, 'reference', null from public.orders o
      where not query.nearest and o.organisation_id = query.organisation_id and o.reference = private.reference_form(query.name)
      union all
      select o.id, 'external_id', null from public.orders o
      where not query.nearest and o.organisation_id = query.organisation_id and o.external_id = query.name
      union all
      (
        select o.id, 'email', null from public.orders o
        where not query.nearest and v_may_read and o.organisation_id = query.organisation_id and o.email_lower = lower(query.name)
          and (query.event_id is null or o.event_id = query.event_id)
        limit 11
      )
      union all
      select i.id, 'name', null from unnest(v_ids) i (id) where not query.nearest
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select i.id, greatest(
            extensions.similarity(private.search_form(o.name), query.form), extensions.similarity(lower(o.reference), query.form)
          ) as likeness
          from (select distinct i.id from unnest(v_ids) i (id)) i
          cross join lateral (select o.name, o.reference from public.orders o where o.id = i.id offset 0) o
          where query.nearest
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select o.id, f.matches, f.likeness, jsonb_build_object('object', 'order', 'id', o.id)
    || case when v_may_read
      then jsonb_build_object(
        'reference', o.reference, 'name', o.name, 'email', o.email, 'status', o.status, 'payment_status', o.payment_status,
        'total', o.total, 'currency', o.currency
      )
      else '{}' end
    || jsonb_build_object('event', private.event_shown(o.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select o.* from public.orders o where o.id = f.id offset 0) o
  where o.organisation_id = query.organisation_id and (query.event_id is null or o.event_id = query.event_id);
end
$$;

-- schemas/60-attendees/names.sql

-- Finding attendees by what they are called: see 00-ground/names.sql. Who works at the door sees names and references, as find_attendees
-- does; without a right to read attendees they are found by what Usher or the caller gave them.

create function private.find_attendee(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off set jit = off
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'attendees:read' = any (query.scopes);
  v_may_see boolean := v_may_read or 'checkin:write' = any (query.scopes);
  v_may_write boolean := 'attendees:write' = any (query.scopes);
  v_pattern text := case when v_may_see and not query.nearest then private.name_pattern(query.form) end;
  v_near uuid[] := case when v_may_see and query.nearest then array(
    select distinct s.id
    from unnest(private.near_patterns(query.form)) p (pattern)
    cross join lateral unnest(
      private.search_attendees(array[p.pattern], case when v_may_read then E'\n' else E'\t' end, query.event_id)
    ) s (id)
  ) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select a.id, 'id' as matches, null::real as likeness from public.attendees a where not query.nearest and a.id = query.id
      union all
      (
        -- Of the order; where that has several tickets, they are the candidates.
        select a.id, 'reference', null
        from public.orders o
        cross join lateral (select a.id from public.attendees a where a.order_id = o.id limit 11) a
        where not query.nearest and o.organisation_id = query.organisation_id and o.reference = private.reference_form(query.name)
      )
      union all
      select a.id, 'external_id', null from public.attendees a
      where not query.nearest and (v_may_read or v_may_write) and a.organisation_id = query.organisation_id and a.external_id = query.name
      union all
      (
        select a.id, 'email', null from public.attendees a
        where not query.nearest and v_may_read and a.organisation_id = query.organisation_id and a.email_lower = lower(query.name)
          and (query.event_id is null or a.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select a.id, 'name', null from public.attendees a
        where uuid_hash(a.organisation_id) = uuid_hash(query.organisation_id)
          and a.search_text like v_pattern
          and (a.organisation_id = query.organisation_id) is true
          and (query.event_id is null or a.event_id = query.event_id)
          and private.search_form(a.name) = query.form
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select i.id, extensions.similarity(private.search_form(a.name), query.form) as likeness
          from unnest(v_near) i (id)
          cross join lateral (select a.name from public.attendees a where a.id = i.id offset 0) a
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select a.id, f.matches, f.likeness, jsonb_build_object('object', 'attendee', 'id', a.id)
    || case when v_may_see
      then jsonb_build_object('name', a.name, 'company', a.company, 'status', a.status, 'ticket_type', n.ticket_type_name)
      else '{}' end
    || case when v_may_read then jsonb_build_object('email', a.email, 'order', n.reference) else '{}' end
    || jsonb_build_object('event', private.event_shown(a.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select a.*, a as attendee from public.attendees a where a.id = f.id offset 0) a
  cross join lateral private.names_of(a.attendee) n
  where a.organisation_id = query.organisation_id and (query.event_id is null or a.event_id = query.event_id);
end
$$;

-- schemas/70-waiting-list/names.sql

-- Finding entries of the waiting list by the person who waits: see 00-ground/names.sql.

create index waiting_list_entries_organisation_id_email_lower_idx on public.waiting_list_entries (organisation_id, email_lower);
create index waiting_list_entries_organisation_id_name_idx
  on public.waiting_list_entries (organisation_id, private.search_form(name));

create function private.find_waiting_list_entry(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'attendees:read' = any (query.scopes);
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select w.id, 'id' as matches, null::real as likeness from public.waiting_list_entries w where not query.nearest and w.id = query.id
      union all
      select w.id, 'external_id', null from public.waiting_list_entries w
      where not query.nearest and w.organisation_id = query.organisation_id and w.external_id = query.name
      union all
      (
        select w.id, 'email', null from public.waiting_list_entries w
        where not query.nearest and v_may_read and w.organisation_id = query.organisation_id and w.email_lower = lower(query.name)
          and (query.event_id is null or w.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select w.id, 'name', null from public.waiting_list_entries w
        where not query.nearest and v_may_read and w.organisation_id = query.organisation_id
          and private.search_form(w.name) = query.form and (query.event_id is null or w.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select w.id, extensions.similarity(private.search_form(w.name), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select w.id, w.name from public.waiting_list_entries w
            where w.event_id = any (array[e.id])
            order by w.event_id desc, w.id desc
            limit 50
          ) w
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'waiting_list_entry', 'id', f.id)
    || case when v_may_read
      then jsonb_build_object(
        'name', w.name, 'email', w.email, 'status', w.status,
        'ticket_type', (select t.name from public.ticket_types t where t.id = w.ticket_type_id)
      )
      else '{}' end
    || jsonb_build_object('event', private.event_shown(w.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select w.* from public.waiting_list_entries w where w.id = f.id offset 0) w
  where w.organisation_id = query.organisation_id and (query.event_id is null or w.event_id = query.event_id);
end
$$;

-- schemas/80-check-ins/names.sql

-- Finding check-in points by their name: see 00-ground/names.sql.

create index check_in_points_organisation_id_name_idx on public.check_in_points (organisation_id, private.search_form(name));

create function private.find_check_in_point(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write,checkin:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select p.id, 'id' as matches, null::real as likeness from public.check_in_points p where not query.nearest and p.id = query.id
      union all
      (
        select p.id, 'name', null from public.check_in_points p
        where not query.nearest and v_may_read and p.organisation_id = query.organisation_id
          and private.search_form(p.name) = query.form and (query.event_id is null or p.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select p.id, extensions.similarity(private.search_form(p.name), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select p.id, p.name from public.check_in_points p
            where p.event_id = any (array[e.id])
            order by p.event_id, p.id
            limit 50
          ) p
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'check_in_point', 'id', f.id)
    || case when v_may_read then jsonb_build_object('name', p.name, 'status', p.status) else '{}' end
    || jsonb_build_object('event', private.event_shown(p.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select p.* from public.check_in_points p where p.id = f.id offset 0) p
  where p.organisation_id = query.organisation_id and (query.event_id is null or p.event_id = query.event_id);
end
$$;

-- schemas/90-outbox/names.sql

-- Finding webhook endpoints by their URL or description: see 00-ground/names.sql. An organisation has few (90-outbox/endpoints.sql).

create function private.find_webhook_endpoint(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
begin
  return query
  select n.id, n.matches, n.likeness, jsonb_build_object(
    'object', 'webhook_endpoint', 'id', n.id, 'url', left(n.url, 200), 'description', n.description, 'status', n.status
  )
  from (
    select
      w.id, w.url, w.description, w.status,
      case
        when query.nearest then 'nearest'
        when w.id = query.id then 'id'
        when private.search_form(w.url) = query.form then 'url'
        when private.search_form(w.description) = query.form then 'description'
      end as matches,
      greatest(
        extensions.similarity(private.search_form(left(w.url, 200)), query.form),
        extensions.similarity(private.search_form(w.description), query.form)
      ) as likeness
    from (
      select w.* from public.webhook_endpoints w
      where 'events:write' = any (query.scopes) and w.organisation_id = any (array[query.organisation_id])
      order by w.organisation_id, w.id desc
      limit 100
    ) w
  ) n
  where n.matches is not null and (not query.nearest or private.is_near(n.likeness))
  order by n.likeness desc
  limit case when query.nearest then 5 else 11 end;
end
$$;

-- schemas/10-organisations/logos.sql

-- Logos of organisations, for e-mails and ticket pages. The courier fetches what logo_url names once, checks it and stores it: what
-- guests open never loads anything from elsewhere.

-- The row of an organisation that has a logo_url; a change of it replaces the row, so that what is in flight of the old one is ignored.
create table private.organisation_logos (
  organisation_id uuid not null,
  url text not null,
  next_attempt_at timestamptz default now(),
  attempts integer not null default 0,
  claim uuid,
  content bytea,
  content_type text,
  width integer,
  height integer,
  error text,
  created_at timestamptz not null default now(),
  constraint organisation_logos_pkey primary key (organisation_id),
  constraint organisation_logos_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint organisation_logos_content_is_whole check (num_nonnulls(content, content_type, width, height) in (0, 4)),
  -- The limits of src/courier/fetch-logo.ts.
  constraint organisation_logos_content_is_bounded check (octet_length(content) between 1 and 262144),
  constraint organisation_logos_content_type_is_an_image check (content_type in ('image/png', 'image/jpeg')),
  constraint organisation_logos_size_is_bounded check (width between 1 and 2000 and height between 1 and 2000),
  constraint organisation_logos_error_is_bounded check (length(error) <= 500)
);
comment on table private.organisation_logos is 'Logos as fetched, and those to be fetched: next_attempt_at is empty once that is settled.';
create index organisation_logos_next_attempt_at_idx on private.organisation_logos (next_attempt_at) where next_attempt_at is not null;
alter table private.organisation_logos enable row level security;

-- Security definer: no role may write logos.
create function private.tg_organisations__queue_logo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' or new.logo_url is distinct from old.logo_url or old.logo_error is not null then
    delete from private.organisation_logos l where l.organisation_id = new.id;
    insert into private.organisation_logos (organisation_id, url) select new.id, new.logo_url where new.logo_url is not null;
  end if;
  return null;
end
$$;
create trigger organisations_500_queue_logo after insert or update of logo_url on public.organisations
  for each row execute function private.tg_organisations__queue_logo();

create function private.tg_organisation_logos__show_error() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.organisations o set logo_error = new.error
  where o.id = coalesce(new.organisation_id, old.organisation_id) and o.logo_error is distinct from new.error;
  return null;
end
$$;
create trigger organisation_logos_500_show_error after insert or delete or update of error on private.organisation_logos
  for each row execute function private.tg_organisation_logos__show_error();

create function api.claim_logos("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Four attempts are made. A row that is claimed more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 10;
  v_claimed json;
begin
  perform api.settle_logo(l.organisation_id, l.claim, error => 'The logo could not be fetched.', permanent => true)
  from private.organisation_logos l
  where l.next_attempt_at <= now() and l.attempts >= v_most_claims;

  with claimed as (
    update private.organisation_logos l
    set claim = gen_random_uuid(), attempts = l.attempts + 1, next_attempt_at = now() + make_interval(secs => lease_seconds)
    where l.organisation_id in (
      select d.organisation_id from private.organisation_logos d
      where d.next_attempt_at <= now() order by d.next_attempt_at limit claim_logos."limit" for update skip locked
    )
    returning l.organisation_id, l.claim, l.attempts, l.url
  )
  select coalesce(json_agg(json_build_object('id', c.organisation_id, 'claim', c.claim, 'attempt', c.attempts, 'url', c.url)), '[]')
  into v_claimed
  from claimed c;
  return v_claimed;
end
$$;
comment on function api.claim_logos is
  'Logos to be fetched, claimed for lease_seconds: [{ id, claim, attempt, url }], where id is that of the organisation.';
grant execute on function api.claim_logos to courier;

-- Stored, or failed, permanently or for now; ignored under an old claim. The organisation is locked before its logo, as when its
-- logo_url changes.
create function api.settle_logo(
  organisation_id uuid,
  claim uuid,
  content text default null,
  content_type text default null,
  width integer default null,
  height integer default null,
  error text default null,
  permanent boolean default false
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_pauses constant interval[] := '{30 seconds,5 minutes,1 hour}';
  v_logo private.organisation_logos;
  v_next_attempt_at timestamptz;
begin
  perform from public.organisations o where o.id = settle_logo.organisation_id for no key update;
  select l.* into v_logo
  from private.organisation_logos l
  where l.organisation_id = settle_logo.organisation_id and l.claim = settle_logo.claim
  for no key update;
  if not found then
    return;
  end if;
  if error is not null and not permanent then
    v_next_attempt_at := now() + private.retry_delay(v_logo.attempts, v_pauses);
  end if;
  update private.organisation_logos l
  set claim = null,
    content = decode(settle_logo.content, 'base64'),
    content_type = settle_logo.content_type,
    width = settle_logo.width,
    height = settle_logo.height,
    error = settle_logo.error || case when v_next_attempt_at is not null then ' Usher tries again.' else '' end,
    next_attempt_at = v_next_attempt_at
  where l.organisation_id = v_logo.organisation_id;
end
$$;
comment on function api.settle_logo is
  'Records a fetched logo (content in base64), or why it was not fetched. Ignored if another claim or logo_url has replaced this one.';
grant execute on function api.settle_logo to courier;

-- E-mails name the logo by this, so that a courier asks for it once.
create function private.logo_version(organisation_id uuid) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.rfc3339(l.created_at)
    from private.organisation_logos l
    where l.organisation_id = logo_version.organisation_id and l.content is not null
  );
end
$$;

create function api.get_logo(organisation_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'content_type', l.content_type,
      'content', translate(encode(l.content, 'base64'), E'\n', ''),
      'width', l.width,
      'height', l.height
    )
    from private.organisation_logos l
    where l.organisation_id = get_logo.organisation_id and l.content is not null
  );
end
$$;
comment on function api.get_logo is 'The logo of an organisation: { content_type, content (base64), width, height }, or null. For the courier and the ticket page.';
grant execute on function api.get_logo to courier, gateway;

-- schemas/10-organisations/workspace.sql

-- The workspace settings, for an owner who is signed in and for the SQL editor: organisations, members and API keys. All security
-- definer, because they write what members may not, and check the role themselves.

-- The organisation that a caller means: the one named, or the only one there is. Refuses one in which they have none of the roles.
-- In the SQL editor every organisation may be meant.
create function private.organisation_meant(organisation_id uuid, roles public.organisation_role[]) returns uuid
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  if private.claims() ->> 'role' = 'authenticated' then
    v_ids := array(select o from private.organisations_as(roles) o);
  else
    v_ids := array(select o.id from public.organisations o where organisation_id is null or o.id = organisation_id limit 2);
  end if;
  if organisation_id is null and cardinality(v_ids) = 1 then
    return v_ids[1];
  elsif organisation_id is null then
    perform private.refuse_value('organisation_id', 'Say which organisation.', 'There is more than one, or none.');
  elsif organisation_id <> all (v_ids) then
    perform private.refuse_not_found('organisation_id');
  end if;
  return organisation_id;
end
$$;

-- CRC-32 of IEEE 802.3, as zlib computes it.
create function private.crc32(data bytea) returns bigint
language plpgsql immutable set search_path = ''
as $$
declare
  v_crc bigint := x'ffffffff'::bigint;
begin
  for i in 0..length(data) - 1 loop
    v_crc := v_crc # get_byte(data, i);
    for bit in 1..8 loop
      v_crc := (v_crc >> 1) # (case when v_crc & 1 = 1 then x'edb88320'::bigint else 0 end);
    end loop;
  end loop;
  return v_crc # x'ffffffff'::bigint;
end
$$;

create function private.base62(number numeric, length integer) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_text text := '';
  v_rest numeric := number;
begin
  for i in 1..length loop
    v_text := substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (v_rest % 62)::integer + 1, 1) || v_text;
    v_rest := div(v_rest, 62);
  end loop;
  return v_text;
end
$$;

-- As src/gateway/api-key.ts makes them: 32 random characters, and a checksum of 6.
create function private.new_api_key() returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_random bytea := sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
  v_number numeric := 0;
  v_body text;
begin
  for i in 0..31 loop
    v_number := v_number * 256 + get_byte(v_random, i);
  end loop;
  v_body := 'usher_live_' || private.base62(v_number, 32);
  return v_body || private.base62(private.crc32(v_body::bytea), 6);
end
$$;

create function public.create_api_key(
  name text,
  scopes public.api_scope[],
  organisation_id uuid default null,
  expires_at timestamptz default null
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.organisation_meant(organisation_id, '{owner}');
  v_key text := private.new_api_key();
  v_row public.api_keys;
begin
  if coalesce(cardinality(scopes), 0) = 0 or array_position(scopes, null) is not null then
    perform private.refuse_value('scopes', 'A key has at least one scope.', 'events:read, for example.');
  elsif expires_at <= now() then
    perform private.refuse_value('expires_at', 'A key expires in the future.', 'Leave it empty for a key that does not expire.');
  end if;
  v_row := private.create_api_key(
    (select o.slug from public.organisations o where o.id = v_organisation_id), name, scopes, left(v_key, 19),
    sha256(v_key::bytea), expires_at
  );
  return json_build_object(
    'key', v_key, 'prefix', v_row.prefix, 'name', v_row.name, 'scopes', v_row.scopes, 'expires_at', private.rfc3339(v_row.expires_at)
  );
end
$$;
comment on function public.create_api_key is
  'Creates an API key, as its owner: { key, prefix, name, scopes, expires_at }. The key is shown here and never again.';
revoke all on function public.create_api_key from public, anon, service_role;
grant execute on function public.create_api_key to authenticated;

create function public.rotate_api_key(prefix text, overlap_hours integer default 24) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key text := private.new_api_key();
  v_row public.api_keys;
begin
  perform private.assert_owned_key(prefix);
  if overlap_hours is null or overlap_hours not between 0 and 720 then
    perform private.refuse_value('overlap_hours', 'The overlap is from 0 to 720 hours.', 'Use 0 if the old key has leaked.');
  end if;
  v_row := private.rotate_api_key(prefix, left(v_key, 19), sha256(v_key::bytea), make_interval(hours => overlap_hours));
  return json_build_object(
    'key', v_key, 'prefix', v_row.prefix, 'name', v_row.name, 'scopes', v_row.scopes, 'expires_at', private.rfc3339(v_row.expires_at)
  );
end
$$;
comment on function public.rotate_api_key is
  'Replaces an API key, given by its prefix; the old one works for overlap_hours more: { key, prefix, name, scopes, expires_at }. The key is shown here and never again.';
revoke all on function public.rotate_api_key from public, anon, service_role;
grant execute on function public.rotate_api_key to authenticated;

create function public.revoke_api_key(prefix text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_row public.api_keys;
begin
  perform private.assert_owned_key(prefix);
  update public.api_keys k set revoked_at = coalesce(k.revoked_at, now()) where k.prefix = revoke_api_key.prefix returning k.* into v_row;
  return json_build_object('prefix', v_row.prefix, 'name', v_row.name, 'revoked_at', private.rfc3339(v_row.revoked_at));
end
$$;
comment on function public.revoke_api_key is 'Revokes an API key, given by its prefix; its next request is refused: { prefix, name, revoked_at }.';
revoke all on function public.revoke_api_key from public, anon, service_role;
grant execute on function public.revoke_api_key to authenticated;

create function private.assert_owned_key(prefix text) returns void
language plpgsql stable security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.api_keys k
    where k.prefix = assert_owned_key.prefix
      and (
        private.claims() ->> 'role' is distinct from 'authenticated'
        or k.organisation_id in (select private.organisations_as('{owner}'))
      )
  ) then
    perform private.refuse_not_found('prefix');
  end if;
end
$$;

-- Supabase Auth sends invitations to sign up; this gives somebody who has an account a role in the organisation.
create function public.invite_member(
  email text,
  role public.organisation_role default 'viewer',
  organisation_id uuid default null
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.organisation_meant(organisation_id, '{owner}');
  v_user_id uuid;
begin
  select u.id into v_user_id from auth.users u where lower(u.email) = lower(btrim(invite_member.email));
  if not found then
    perform private.refuse(
      404, 'not_found', 'Nobody with this e-mail address has an account.', 'email',
      hint => 'Invite them in Studio, under Authentication, Users, Invite; then repeat this.'
    );
  end if;
  insert into public.organisation_members as m (organisation_id, user_id, role)
  values (v_organisation_id, v_user_id, invite_member.role)
  on conflict on constraint organisation_members_pkey do update set role = excluded.role;
  return json_build_object('organisation_id', v_organisation_id, 'user_id', v_user_id, 'role', invite_member.role);
end
$$;
comment on function public.invite_member is
  'Gives a person with an account a role in the organisation, or another role: { organisation_id, user_id, role }.';
revoke all on function public.invite_member from public, anon, service_role;
grant execute on function public.invite_member to authenticated;

-- A person who owns an organisation may found another; the first one comes from the SQL editor or the command line.
create function public.create_organisation(name text, slug text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_user_id uuid := case private.claims() ->> 'role' when 'authenticated' then auth.uid() end;
  v_organisation public.organisations;
begin
  if v_user_id is not null and not exists (select from private.organisations_as('{owner}')) then
    perform private.refuse(
      403, 'forbidden', 'Only an owner of an organisation may create another.', hint => 'Ask whoever runs this project.'
    );
  elsif exists (select from public.organisations o where o.slug = create_organisation.slug) then
    perform private.refuse(409, 'already_exists', 'Another organisation has this slug.', 'slug', hint => 'Choose another one.');
  elsif slug is null or slug !~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' then
    perform private.refuse_value('slug', 'A slug has lower-case letters, digits and hyphens, at most 63.', 'acme-events, for example.');
  end if;
  insert into public.organisations (name, slug) values (create_organisation.name, create_organisation.slug)
  returning * into v_organisation;
  if v_user_id is not null then
    insert into public.organisation_members (organisation_id, user_id, role) values (v_organisation.id, v_user_id, 'owner');
  end if;
  return json_build_object('id', v_organisation.id, 'name', v_organisation.name, 'slug', v_organisation.slug, 'plan', v_organisation.plan);
end
$$;
comment on function public.create_organisation is
  'Creates an organisation, of which the caller becomes an owner: { id, name, slug, plan }.';
revoke all on function public.create_organisation from public, anon, service_role;
grant execute on function public.create_organisation to authenticated;

-- schemas/20-events/operations.sql

-- Operations on events. The rules are in the triggers of 20-events/table.sql, so that they hold for Studio as well. Every change
-- of status goes through private.set_event_status.

create function private.event_matches(
  event public.events, starts_after timestamptz, starts_before timestamptz, phase public.event_phase, patterns text[]
) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return (starts_after is null or coalesce(event.starts_at >= starts_after, false))
    and (starts_before is null or coalesce(event.starts_at < starts_before, false))
    and (phase is null or private.event_phase(event) = phase)
    and (
      patterns is null
      or private.search_form(concat_ws(' ', event.name, event.slug, event.venue_name, event.venue_city)) like all (patterns)
    );
end
$$;
grant execute on function private.event_matches to scope_events_read;

-- Ids of the events of a page, newest first: see 00-ground/pages.sql. Dates, phase and search have no index: they are compared from the
-- newest on until the page is full, and an organisation has hundreds of events, not hundreds of thousands.
create function private.page_of_events(
  status public.event_status,
  starts_after timestamptz,
  starts_before timestamptz,
  phase public.event_phase,
  patterns text[],
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.event_status[] :=
    case when page_of_events.status is null then enum_range(null::public.event_status) else array[page_of_events.status] end;
begin
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join lateral (
      select e.id
      from public.events e
      where e.organisation_id = any (v_organisation_ids)
        and e.status = s.status
        and e.id < before
        and private.event_matches(e, starts_after, starts_before, phase, patterns)
      order by e.organisation_id desc, e.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_events to scope_events_read;

-- The same by start, those without one last.
create function private.page_of_events_by_start(
  status public.event_status,
  starts_after timestamptz,
  starts_before timestamptz,
  phase public.event_phase,
  patterns text[],
  after private.start_position,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.event_status[] := case
    when page_of_events_by_start.status is null then enum_range(null::public.event_status)
    else array[page_of_events_by_start.status]
  end;
  v_after_start timestamptz := after.starts_at;
  v_after_id uuid := after.id;
begin
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join lateral (
      select e.id, coalesce(e.starts_at, 'infinity') as starts_at
      from public.events e
      where e.organisation_id = any (v_organisation_ids)
        and e.status = s.status
        and (coalesce(e.starts_at, 'infinity'), e.id) > (v_after_start, v_after_id)
        and private.event_matches(e, starts_after, starts_before, phase, patterns)
      order by e.organisation_id, coalesce(e.starts_at, 'infinity'), e.id
      limit size
    ) f
    order by f.starts_at, f.id
    limit size
  );
end
$$;
grant execute on function private.page_of_events_by_start to scope_events_read;

-- In which zone the times of what belongs to an event are said, for whoever may see that: any key of the organisation. Security definer,
-- for no key reads events by the mere right to see their orders, tickets or scans.
create function private.timezones_of(event_ids uuid[]) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
begin
  return (
    select coalesce(json_object_agg(e.id, e.timezone), '{}')
    from unnest(event_ids[1:100]) i (id)
    cross join lateral (select e.* from public.events e where e.id = i.id offset 0) e
    where e.organisation_id = v_organisation_id
  );
end
$$;
grant execute on function private.timezones_of to api_key;

create function api.event_timezones(event_ids uuid[]) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return private.timezones_of(event_ids);
end
$$;
comment on function api.event_timezones is 'IANA time zones of events of the organisation: { id: timezone }, of at most 100.';
grant execute on function api.event_timezones to api_key;

create type public.event_sort as enum ('created_at', 'starts_at');

create function api.list_events(
  search text default null,
  status public.event_status default null,
  phase public.event_phase default null,
  starts_after timestamptz default null,
  starts_before timestamptz default null,
  external_id text default null,
  sort public.event_sort default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_by_start boolean := coalesce(sort = 'starts_at', false);
  v_before uuid := private.before_cursor(case when not v_by_start then cursor end);
  v_after private.start_position := private.after_start_cursor(case when v_by_start then cursor end);
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_event public.events;
  v_item json;
  v_items json[];
  v_cursors text[];
begin
  if external_id is not null then
    v_ids := array(select e.id from public.events e where e.external_id = list_events.external_id);
  elsif v_by_start then
    v_ids := private.page_of_events_by_start(
      list_events.status, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns, v_after, v_size + 1
    );
  else
    v_ids := private.page_of_events(
      list_events.status, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns, v_before, v_size + 1
    );
  end if;
  for v_event in
    select e.*
    from unnest(v_ids) with ordinality i (id, place)
    cross join lateral (select e.* from public.events e where e.id = i.id offset 0) e
    where (list_events.status is null or e.status = list_events.status)
      and e.id < v_before
      and (coalesce(e.starts_at, 'infinity'), e.id) > (v_after.starts_at, v_after.id)
      and private.event_matches(e, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns)
    order by i.place
  loop
    v_item := private.event_json(v_event);
    v_items := v_items || v_item;
    if v_by_start then
      v_cursors := v_cursors || private.encode_start_cursor((coalesce(v_event.starts_at, 'infinity'), v_event.id));
    end if;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size, v_cursors);
end
$$;
comment on function api.list_events is
  'Events of the organisation, newest first or by start, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_events to scope_events_read;

create function api.get_event(event_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = get_event.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return private.event_json(v_event);
end
$$;
comment on function api.get_event is 'One event. 404 not_found.';
grant execute on function api.get_event to scope_events_read;

-- The columns that a venue sets, by RFC 7396: a member that the object leaves out keeps its value, null clears it, and null
-- in place of the object clears all of them.
create function private.venue_columns(venue jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  if jsonb_typeof(venue) = 'object' then
    return (select coalesce(jsonb_object_agg('venue_' || m.key, m.value), '{}') from jsonb_each(venue) m);
  end if;
  return '{"venue_name": null, "venue_address": null, "venue_city": null, "venue_postcode": null, "venue_country": null}';
end
$$;
grant execute on function private.venue_columns to scope_events_write;

create function api.create_event(
  name text,
  slug text default null,
  description text default null,
  -- As written: see private.warning_of_offset.
  starts_at text default null,
  ends_at text default null,
  timezone text default null,
  locale public.locale default null,
  venue jsonb default null,
  online_url text default null,
  capacity integer default null,
  waiting_list_offer_hours integer default null,
  currency text default null,
  payment_due_days integer default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_venue public.events := jsonb_populate_record(null::public.events, private.venue_columns(venue));
  v_event public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.events (
    organisation_id, name, slug, description, starts_at, ends_at, timezone, locale,
    venue_name, venue_address, venue_city, venue_postcode, venue_country,
    online_url, capacity, waiting_list_offer_hours, currency, payment_due_days, external_id, metadata
  )
  values (
    private.current_organisation_id(), create_event.name, create_event.slug, create_event.description,
    create_event.starts_at::timestamptz, create_event.ends_at::timestamptz, coalesce(create_event.timezone, 'UTC'), coalesce(create_event.locale, 'en'),
    v_venue.venue_name, v_venue.venue_address, v_venue.venue_city, v_venue.venue_postcode, v_venue.venue_country,
    create_event.online_url, create_event.capacity, coalesce(create_event.waiting_list_offer_hours, 24),
    coalesce(create_event.currency, 'EUR'), create_event.payment_due_days,
    create_event.external_id, coalesce(create_event.metadata, '{}')
  )
  returning * into v_event;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 201, 'data', private.event_json(v_event)),
      private.warning_of_offset_in(jsonb_build_object('starts_at', starts_at, 'ends_at', ends_at), v_event.timezone)
    )
  );
end
$$;
comment on function api.create_event is 'Creates a draft event: 201. 409 already_exists (slug, external_id); 422 validation_failed.';
grant execute on function api.create_event to scope_events_write;

create function api.update_event(
  event_id uuid,
  changes jsonb,
  notify public.notify default null,
  dry_run boolean default null,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_event public.events;
  v_new public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  begin
    select e.* into v_event from public.events e where e.id = update_event.event_id for no key update;
    if not found then
      perform private.refuse_not_found('event_id');
    end if;
    perform private.assert_version(v_event.version, if_version);

    -- An absent key keeps its field, null clears it; the same holds for the members of the venue.
    v_new := jsonb_populate_record(
      v_event,
      changes || case when changes ? 'venue' then private.venue_columns(changes -> 'venue') else '{}' end
    );
    update public.events e set
      name = v_new.name,
      slug = v_new.slug,
      description = v_new.description,
      starts_at = v_new.starts_at,
      ends_at = v_new.ends_at,
      timezone = v_new.timezone,
      locale = v_new.locale,
      venue_name = v_new.venue_name,
      venue_address = v_new.venue_address,
      venue_city = v_new.venue_city,
      venue_postcode = v_new.venue_postcode,
      venue_country = v_new.venue_country,
      online_url = v_new.online_url,
      capacity = v_new.capacity,
      waiting_list_offer_hours = v_new.waiting_list_offer_hours,
      currency = v_new.currency,
      payment_due_days = v_new.payment_due_days,
      external_id = v_new.external_id,
      metadata = v_new.metadata
    where e.id = v_event.id
    returning * into v_new;
    v_outcome := case when notify is null and dry_run is not true
      then json_build_object('status', 200, 'data', private.event_json(v_new))
      else json_build_object(
        'status', 200,
        'effect', private.event_effect(event_id, dry_run, private.notify_of_event(event_id, notify)),
        'data', private.event_json(case when dry_run then v_event else v_new end)
      )
    end;
    v_outcome := private.with_warnings(
      v_outcome, private.warning_of_offset_in(changes, v_new.timezone), private.warning_of_capacity(v_event, v_new)
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.update_event is
  'Changes fields of an event; absent ones stay, null clears; tells its attendees, or reports the effect with the event as it is, if asked to: 200. 404 not_found; 409 capacity_below_sold, event_has_orders, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_event to scope_events_write;

-- The only path from status to status; the guard decides which are allowed.
create function private.set_event_status(event_id uuid, status public.event_status) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = set_event_status.event_id for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  -- The guard lets Studio save a row unchanged; an operation that would change nothing is an error.
  if v_event.status = set_event_status.status then
    perform private.refuse_transition(v_event.status, set_event_status.status);
  end if;
  update public.events e set status = set_event_status.status where e.id = v_event.id returning * into v_event;
  return v_event;
end
$$;
grant execute on function private.set_event_status to scope_events_write;

create function api.publish_event(event_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', private.event_json(private.set_event_status(event_id, 'published'))
  ));
end
$$;
comment on function api.publish_event is
  'Opens a draft event for registrations, or a completed one again until its end: 200. 404 not_found; 409 invalid_transition, event_not_publishable, event_ended.';
grant execute on function api.publish_event to scope_events_write;

create function api.complete_event(event_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', private.event_json(private.set_event_status(event_id, 'completed'))
  ));
end
$$;
comment on function api.complete_event is
  'Closes an event to further registrations, and its waiting list: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.complete_event to scope_events_write;

-- Orders and attendees that a change of an event affects, and what its cancellation makes refundable. Security definer: an editing key may
-- not read them. Money only for keys that read it.
create function private.affected_by_event(event_id uuid, is_cancelled boolean default false) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = affected_by_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  return jsonb_build_object(
    'orders', (
      select count(*) from public.orders o where o.event_id = v_event.id and o.status <> 'cancelled'
    ),
    'attendees', (
      select count(*)
      from public.ticket_types t
      join public.attendees a on a.ticket_type_id = t.id
      where t.event_id = v_event.id and a.status <> 'cancelled'
    ),
    -- Whose waiting ends with the event, or who was offered a place by what was changed.
    'waiting_list', (
      select count(*)
      from public.waiting_list_entries w
      where w.event_id = v_event.id
        and case when is_cancelled then w.status in ('waiting', 'offered') else w.status = 'offered' and w.offered_at = now() end
    ),
    'refund_due', case when not is_cancelled then 0 when private.reads_orders() then (
      select coalesce(sum(private.refundable_if_cancelled(o)), 0)
      from public.orders o
      where o.event_id = v_event.id and o.status <> 'cancelled' and o.amount_paid > 0
    ) end,
    'currency', v_event.currency
  );
end
$$;
grant execute on function private.affected_by_event to scope_events_write;

create function private.event_effect(event_id uuid, dry_run boolean, notice jsonb default null) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return private.effect_json(dry_run, private.affected_by_event(event_id), notice);
end
$$;
grant execute on function private.event_effect to scope_events_write;

create function api.unpublish_event(
  event_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_event public.events;
  v_new public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select e.* into v_event from public.events e where e.id = unpublish_event.event_id for no key update;
    v_new := private.set_event_status(event_id, 'draft');
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.event_effect(event_id, dry_run),
      'data', private.event_json(case when dry_run then v_event else v_new end)
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.unpublish_event is
  'Takes an event without orders back to draft, or reports the effect of doing so: 200. 404 not_found; 409 invalid_transition, event_has_orders.';
grant execute on function api.unpublish_event to scope_events_write;

create function api.cancel_event(
  event_id uuid,
  dry_run boolean default null,
  notify public.notify default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_affected jsonb;
  v_event public.events;
  v_new public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select e.* into v_event from public.events e where e.id = cancel_event.event_id for no key update;
    if not found then
      perform private.refuse_not_found('event_id');
    end if;
    -- Counted before they are cancelled, and under the exclusive event lock, so that the numbers are of what is cancelled.
    perform private.lock_event_exclusive(event_id);
    v_affected := private.affected_by_event(event_id, is_cancelled => true);
    v_new := private.set_event_status(event_id, 'cancelled');
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(dry_run, v_affected, private.notify_of_event(event_id, notify)),
      'data', private.event_json(case when dry_run then v_event else v_new end)
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.cancel_event is
  'Cancels an event with its orders and tickets, and tells its attendees if asked to, or reports the effect of doing so: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_event to scope_events_write;

create function api.delete_event(event_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  delete from public.events e where e.id = delete_event.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'event', 'id', event_id, 'deleted', true)
  ));
end
$$;
comment on function api.delete_event is
  'Deletes a draft without orders, with its ticket types, promo codes, check-in points and waiting list: 200. 404 not_found; 409 in_use.';
grant execute on function api.delete_event to scope_events_write;

-- schemas/20-events/studio.sql

-- The sales of each event: a view for organisers in Studio, and for members over the Data API. As all such views it runs with the rights of
-- whoever reads it, so each person sees the rows of their own organisations, and shows no ticket code.

create view public.event_sales with (security_invoker = true) as
select
  e.organisation_id,
  t.event_id,
  e.name as event,
  e.status,
  e.starts_at,
  t.id as ticket_type_id,
  t.name as ticket_type,
  private.money_text(t.price, e.currency) as price,
  t.quantity_sold as sold,
  t.quantity - t.quantity_sold - t.quantity_held as available,
  coalesce(a.checked_in, 0) as checked_in,
  private.money_text(coalesce(a.ordered, 0)::bigint, e.currency) as ordered
from public.events e
join public.ticket_types t on t.event_id = e.id
left join lateral (
  select count(*) filter (where a.checked_in) as checked_in, sum(a.price - a.discount) as ordered
  from public.attendees a
  where a.ticket_type_id = t.id and a.status <> 'cancelled'
) a on true
order by e.starts_at desc nulls first, e.id, t.position, t.id;
comment on view public.event_sales is 'Tickets sold of each ticket type, what they come to, and how many people are in.';
create trigger event_sales_100_read_only instead of insert or update or delete on public.event_sales
  for each row execute function private.tg__refuse_write();

revoke all on public.event_sales from anon, authenticated, service_role;
grant select on public.event_sales to authenticated;

-- schemas/20-events/summary.sql

-- The figures of an event in one answer. They are counted from its rows when they are asked for, so that a registration pays for no
-- counter; in one snapshot, so that they agree with one another.

create type public.summary_interval as enum ('hour', 'day');

-- The event is known to be the caller's. Security definer: a key with events:read has no right to attendees and orders, and gets
-- numbers of them; money only if it also has orders:read.
create function private.event_summary(event public.events, "interval" public.summary_interval) returns json
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set work_mem = '16MB' set jit = off
as $$
declare
  v_most_buckets constant integer := 200;
  v_most_rows constant integer := 200;
  v_ticket_type_ids uuid[] := array(
    select t.id from public.ticket_types t
    where t.event_id = event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  v_places_left bigint := event.capacity - (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.id = any (v_ticket_type_ids)
  );
  -- Without a check-in point nobody comes in twice: checked_in_at says all, and the check-ins are not read.
  v_has_points boolean := exists (select from public.check_in_points p where p.event_id = event.id);
  v_daily_point_ids uuid[] := array(
    select p.id from public.check_in_points p where p.event_id = event.id and p.admission = 'once_per_day'
  );
  v_with_money boolean := private.reads_orders();
  v_revenue json;
  v_summary json;
  v_today date := now() at time zone event.timezone;
begin
  if v_with_money then
    -- The other orders have nothing due and nothing paid.
    select json_build_object(
      'currency', event.currency,
      'due', coalesce(sum(private.amount_due(o)) filter (where o.payment_status in ('awaiting_payment', 'partially_paid')), 0),
      'paid', coalesce(sum(o.amount_paid), 0),
      'refunded', coalesce(sum(o.amount_refunded), 0),
      'refundable', coalesce(sum(private.amount_refundable(o)) filter (where o.payment_status = 'refund_due'), 0)
    ) into v_revenue
    from public.orders o
    where o.event_id = any (array[event.id])
      and o.organisation_id is not distinct from private.current_organisation_id()
      and o.status = any (enum_range(null::public.order_status))
      and o.payment_status = any ('{awaiting_payment,partially_paid,paid,refund_due,refunded}'::public.payment_status[]);
  end if;

  -- Attendees are read from an index alone. A quarter of an hour is a part of every hour and day, whatever the time zone.
  with groups as materialized (
    select
      a.ticket_type_id, a.status, a.checked_in, a.ticket_email_status,
      date_bin('15 minutes', a.created_at, timestamptz 'epoch') as registered,
      date_bin(
        '15 minutes', case when not v_has_points and a.status <> 'cancelled' then a.checked_in_at end, timestamptz 'epoch'
      ) as arrived,
      count(*) as tickets
    from public.attendees a
    where a.ticket_type_id = any (v_ticket_type_ids)
    group by grouping sets ((1, 2, 3, 4), (5), (6))
  ),
  -- Entries that stand are read once: of each person where they came in, and on which days, when first. Accepted is what has no
  -- reason; the result is not asked for, for there is an index in which it comes first.
  visits as materialized (
    select
      c.check_in_point_id, c.attendee_id, c.day,
      min(c.scanned_at) as arrived_at,
      bool_or(c.day = v_today) as came_today,
      bool_or(c.exited_at is null and (c.day = v_today or c.check_in_point_id <> all (v_daily_point_ids))) as is_inside
    from (
      select c.check_in_point_id, c.attendee_id, c.scanned_at, c.exited_at, (c.scanned_at at time zone event.timezone)::date as day
      from public.check_ins c
      where v_has_points and c.event_id = event.id and c.reason is null and c.direction = 'entry' and c.undone_at is null
        and c.attendee_id not in (
          select a.id from public.attendees a
          where a.ticket_type_id = any (v_ticket_type_ids) and a.status = 'cancelled' and a.checked_in
        )
    ) c
    group by grouping sets ((1, 2), (2, 3))
  ),
  kinds as (
    select
      t.id, t.name, t.position, t.status,
      least(t.quantity - t.quantity_sold - t.quantity_held, case when v_places_left < 0 then 0 else v_places_left end) as available,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled'), 0) as sold,
      coalesce(sum(g.tickets) filter (where g.status = 'awaiting_payment'), 0) as pending_payment,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled' and g.checked_in), 0) as checked_in,
      coalesce(sum(g.tickets) filter (where g.status = 'cancelled'), 0) as cancelled
    from public.ticket_types t
    left join groups g on g.ticket_type_id = t.id
    where t.id = any (v_ticket_type_ids)
    group by t.id
  ),
  points as (
    select
      p.id, p.name,
      (
        select coalesce(sum(k.sold), 0) from kinds k where p.ticket_type_ids = '{}' or k.id = any (p.ticket_type_ids)
      ) as expected,
      coalesce(i.arrived, 0) as arrived, coalesce(i.arrived_today, 0) as arrived_today, coalesce(i.inside, 0) as inside
    from public.check_in_points p
    left join (
      select
        v.check_in_point_id,
        count(*) as arrived,
        count(*) filter (where v.came_today) as arrived_today,
        count(*) filter (where v.is_inside) as inside
      from visits v
      where v.check_in_point_id is not null
      group by 1
    ) i on i.check_in_point_id = p.id
    where p.event_id = event.id and p.status = 'active'
  ),
  -- People, each once a day, by when they first came in on that day, wherever.
  arrivals as (
    select g.arrived, g.tickets as people from groups g where g.arrived is not null
    union all
    select date_bin('15 minutes', v.arrived_at, timestamptz 'epoch'), count(*) from visits v where v.day is not null group by 1
  ),
  buckets as (
    select
      date_trunc("interval"::text, s.starts_at, event.timezone) as starts_at,
      sum(s.registrations) as registrations,
      sum(s.arrivals) as arrivals
    from (
      select g.registered as starts_at, g.tickets as registrations, 0 as arrivals from groups g where g.registered is not null
      union all
      select a.arrived, 0, a.people from arrivals a
    ) s
    group by 1
    order by 1 desc
    limit v_most_buckets + 1
  )
  select json_build_object(
    'object', 'event_summary',
    'event_id', event.id,
    'tickets', (
      select json_build_object(
        'sold', coalesce(sum(k.sold), 0),
        -- Without a limit of the event, one active ticket type without a limit has no end.
        'available', least(
          case when v_places_left < 0 then 0 else v_places_left end,
          case when not coalesce(bool_or(k.available is null) filter (where k.status = 'active'), false)
            then coalesce(sum(k.available) filter (where k.status = 'active'), 0) end
        ),
        'pending_payment', coalesce(sum(k.pending_payment), 0),
        'checked_in', coalesce(sum(k.checked_in), 0),
        'cancelled', coalesce(sum(k.cancelled), 0)
      )
      from kinds k
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object(
        'id', k.id, 'name', k.name, 'sold', k.sold, 'available', k.available, 'pending_payment', k.pending_payment,
        'checked_in', k.checked_in, 'cancelled', k.cancelled
      ) order by k.position, k.id), '[]')
      from (select * from kinds k order by k.position, k.id limit v_most_rows) k
    ),
    'check_in_points', (
      select coalesce(json_agg(json_build_object(
        'id', p.id, 'name', p.name, 'expected', p.expected, 'arrived', p.arrived, 'arrived_today', p.arrived_today,
        'inside', p.inside
      ) order by p.id), '[]')
      from points p
    ),
    'revenue', v_revenue,
    'promo_codes', (
      select coalesce(json_agg(json_build_object(
        'id', c.id, 'code', c.code, 'times_redeemed', c.times_redeemed, 'max_redemptions', c.max_redemptions,
        'discount', case when v_with_money then (
          select coalesce(sum(a.discount), 0) from public.attendees a where a.promo_code_id = c.id and a.status <> 'cancelled'
        ) end
      ) order by c.times_redeemed desc, c.id), '[]')
      from (
        select c.* from public.promo_codes c
        where c.event_id = event.id
        order by c.times_redeemed desc, c.id
        limit v_most_rows
      ) c
    ),
    'ticket_emails', (
      select json_build_object(
        'bounced', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'bounced'), 0),
        'failed', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'failed'), 0)
      )
      from groups g
    ),
    'interval', "interval",
    'timezone', event.timezone,
    'timeline', (
      select coalesce(json_agg(json_build_object(
        'starts_at', private.rfc3339(b.starts_at), 'registrations', b.registrations, 'arrivals', b.arrivals
      ) order by b.starts_at), '[]')
      from (select * from buckets b order by b.starts_at desc limit v_most_buckets) b
    ),
    'timeline_is_complete', (select count(*) <= v_most_buckets from buckets)
  ) into v_summary;
  return v_summary;
end
$$;
grant execute on function private.event_summary to scope_events_read;

create function api.get_event_summary(event_id uuid, "interval" public.summary_interval default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = get_event_summary.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return private.event_summary(v_event, coalesce("interval", 'day'));
end
$$;
comment on function api.get_event_summary is
  'Figures of an event: tickets by type, money, arrivals over time, promo codes, e-mails that bounced. 404 not_found.';
grant execute on function api.get_event_summary to scope_events_read;

-- schemas/30-ticket-types/operations.sql

-- Operations on ticket types. The rules are in the triggers of 30-ticket-types/table.sql, so that they hold for Studio as well.

-- In the organiser's order. A cursor is the id of the last item, and stands for the present position of that item. The
-- default limit is 100: an event has a handful, so a caller that does not page gets all of them.
create function api.list_ticket_types(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size(coalesce("limit", 100));
  v_last_id uuid := private.decode_cursor(cursor);
  v_last public.ticket_types;
  v_event public.events;
  v_places_left bigint;
  v_items json[];
begin
  select e.* into v_event from public.events e where e.id = list_ticket_types.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  if v_last_id is not null then
    select t.* into v_last from public.ticket_types t where t.id = v_last_id and t.event_id = v_event.id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'The ticket type of this cursor no longer exists.', 'cursor', hint => 'Leave it out to start again.'
      );
    end if;
  end if;

  select v_event.capacity - coalesce(sum(t.quantity_sold + t.quantity_held), 0) into v_places_left
  from public.ticket_types t
  where t.event_id = v_event.id;

  v_items := array(
    select private.ticket_type_json(t, v_event.currency, v_places_left)
    from public.ticket_types t
    where t.event_id = v_event.id
      and (v_last_id is null or (t.position, t.id) > (v_last.position, v_last.id))
    order by t.position, t.id
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_ticket_types is
  'Ticket types of an event in the organiser''s order: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_ticket_types to scope_events_read;

create function api.get_ticket_type(ticket_type_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  select t.* into v_ticket_type from public.ticket_types t where t.id = get_ticket_type.ticket_type_id;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  return private.ticket_type_json(v_ticket_type);
end
$$;
comment on function api.get_ticket_type is 'One ticket type. 404 not_found.';
grant execute on function api.get_ticket_type to scope_events_read;

create function api.create_ticket_type(
  event_id uuid,
  name text,
  description text default null,
  price bigint default null,
  quantity integer default null,
  min_per_order integer default null,
  max_per_order integer default null,
  -- As written: see private.warning_of_offset.
  sales_start_at text default null,
  sales_end_at text default null,
  visibility public.ticket_type_visibility default null,
  "position" integer default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_ticket_type public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_ticket_type.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.ticket_types (
    organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order,
    sales_start_at, sales_end_at, visibility, position, external_id, metadata
  )
  values (
    v_organisation_id, create_ticket_type.event_id, create_ticket_type.name, create_ticket_type.description,
    coalesce(create_ticket_type.price, 0), create_ticket_type.quantity,
    coalesce(create_ticket_type.min_per_order, 1), create_ticket_type.max_per_order,
    create_ticket_type.sales_start_at::timestamptz, create_ticket_type.sales_end_at::timestamptz,
    coalesce(create_ticket_type.visibility, 'public'), coalesce(create_ticket_type.position, 0),
    create_ticket_type.external_id, coalesce(create_ticket_type.metadata, '{}')
  )
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 201, 'data', private.ticket_type_json(v_ticket_type)),
      private.warning_of_price(v_ticket_type),
      private.warning_of_offset(jsonb_build_object('sales_start_at', sales_start_at, 'sales_end_at', sales_end_at), v_ticket_type.event_id)
    )
  );
end
$$;
comment on function api.create_ticket_type is
  'Adds a ticket type to an event: 201. 404 not_found; 409 already_exists (external_id); 422 validation_failed.';
grant execute on function api.create_ticket_type to scope_events_write;

create function api.update_ticket_type(
  ticket_type_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_ticket_type public.ticket_types;
  v_new public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- More places are offered to the waiting list, for which the capacity lock comes before the ticket type.
  if changes ?| '{quantity,status,sales_end_at}' then
    perform private.lock_event_capacity(t.event_id) from public.ticket_types t where t.id = update_ticket_type.ticket_type_id;
  end if;
  select t.* into v_ticket_type from public.ticket_types t where t.id = update_ticket_type.ticket_type_id for no key update;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.assert_version(v_ticket_type.version, if_version);

  v_new := jsonb_populate_record(v_ticket_type, changes);
  update public.ticket_types t set
    name = v_new.name,
    description = v_new.description,
    price = v_new.price,
    quantity = v_new.quantity,
    min_per_order = v_new.min_per_order,
    max_per_order = v_new.max_per_order,
    sales_start_at = v_new.sales_start_at,
    sales_end_at = v_new.sales_end_at,
    visibility = v_new.visibility,
    status = v_new.status,
    position = v_new.position,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where t.id = v_ticket_type.id
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 200, 'data', private.ticket_type_json(v_ticket_type)),
      case when changes ? 'price' then private.warning_of_price(v_ticket_type) end,
      private.warning_of_offset(changes, v_ticket_type.event_id)
    )
  );
end
$$;
comment on function api.update_ticket_type is
  'Changes fields of a ticket type (status archived stops it being issued): 200. 404 not_found; 409 quantity_below_sold, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_ticket_type to scope_events_write;

-- schemas/40-promo-codes/operations.sql

-- Operations on promo codes. The rules are in the triggers of 40-promo-codes/table.sql, so that they hold for Studio as well.

create function api.list_promo_codes(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_promo_codes.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  v_items := array(
    select private.promo_code_json(c)
    from public.promo_codes c
    where c.event_id = list_promo_codes.event_id and c.id < v_before
    order by c.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_promo_codes is 'Promo codes of an event, newest first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_promo_codes to scope_events_read;

create function api.get_promo_code(promo_code_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_promo_code public.promo_codes;
begin
  select c.* into v_promo_code from public.promo_codes c where c.id = get_promo_code.promo_code_id;
  if not found then
    perform private.refuse_not_found('promo_code_id');
  end if;
  return private.promo_code_json(v_promo_code);
end
$$;
comment on function api.get_promo_code is 'One promo code. 404 not_found.';
grant execute on function api.get_promo_code to scope_events_read;

create function api.create_promo_code(
  event_id uuid,
  code text,
  percent_off numeric default null,
  amount_off bigint default null,
  -- As written: see private.warning_of_offset.
  valid_from text default null,
  valid_until text default null,
  max_redemptions integer default null,
  ticket_type_ids uuid[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_promo_code public.promo_codes;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_promo_code.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.promo_codes (
    organisation_id, event_id, code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids
  )
  values (
    v_organisation_id, create_promo_code.event_id, create_promo_code.code, create_promo_code.percent_off, create_promo_code.amount_off,
    create_promo_code.valid_from::timestamptz, create_promo_code.valid_until::timestamptz, create_promo_code.max_redemptions,
    coalesce(create_promo_code.ticket_type_ids, '{}')
  )
  returning * into v_promo_code;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 201, 'data', private.promo_code_json(v_promo_code)),
      private.warning_of_percentage(v_promo_code),
      private.warning_of_offset(jsonb_build_object('valid_from', valid_from, 'valid_until', valid_until), v_promo_code.event_id)
    )
  );
end
$$;
comment on function api.create_promo_code is
  'Adds a promo code to an event, with either percent_off or amount_off: 201. 404 not_found; 409 already_exists (code); 422 validation_failed.';
grant execute on function api.create_promo_code to scope_events_write;

create function api.update_promo_code(
  promo_code_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_promo_code public.promo_codes;
  v_new public.promo_codes;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select c.* into v_promo_code from public.promo_codes c where c.id = update_promo_code.promo_code_id for no key update;
  if not found then
    perform private.refuse_not_found('promo_code_id');
  end if;
  perform private.assert_version(v_promo_code.version, if_version);

  v_new := jsonb_populate_record(v_promo_code, changes);
  update public.promo_codes c set
    code = v_new.code,
    percent_off = v_new.percent_off,
    amount_off = v_new.amount_off,
    valid_from = v_new.valid_from,
    valid_until = v_new.valid_until,
    max_redemptions = v_new.max_redemptions,
    ticket_type_ids = v_new.ticket_type_ids,
    status = v_new.status
  where c.id = v_promo_code.id
  returning * into v_promo_code;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 200, 'data', private.promo_code_json(v_promo_code)),
      case when changes ? 'percent_off' then private.warning_of_percentage(v_promo_code) end,
      private.warning_of_offset(changes, v_promo_code.event_id)
    )
  );
end
$$;
comment on function api.update_promo_code is
  'Changes fields of a promo code (status disabled refuses it): 200. 404 not_found; 409 limit_below_redeemed, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_promo_code to scope_events_write;

-- schemas/50-orders/operations.sql

-- Operations on orders. The rules are in the triggers of 50-orders/table.sql, so that they hold for Studio as well. An order is
-- answered with its attendees and payments.

-- The attendees of an order without their ticket codes, which a key for orders may not see. The caller must have checked
-- access to the order.
create function private.attendees_of_order_json(order_id uuid, reference text) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(
      private.attendee_json(
        a, false, (select t.name from public.ticket_types t where t.id = a.ticket_type_id), attendees_of_order_json.reference
      )
      order by a.id
    ), '[]')
    from public.attendees a
    where a.order_id = attendees_of_order_json.order_id
  );
end
$$;

-- The same with that check, for keys that may read orders. Security definer: such a key has no other right to attendees.
create function private.order_attendees_json(order_id uuid, reference text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  if exists (
    select from public.orders o
    where o.id = order_attendees_json.order_id and o.organisation_id = private.current_organisation_id()
  ) then
    return private.attendees_of_order_json(order_id, reference);
  end if;
  return '[]';
end
$$;
grant execute on function private.order_attendees_json to scope_orders_read, scope_orders_write;

create function private.whole_order_json("order" public.orders) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return private.order_json(
    "order",
    private.order_attendees_json("order".id, "order".reference),
    private.order_payments_json("order".id),
    case when "order".amount_refunded > 0 then private.order_refunds_json("order".id) else '[]' end
  );
end
$$;
grant execute on function private.whole_order_json to scope_orders_read, scope_orders_write;

-- Ids of orders, newest first, among which those of a page are: see 00-ground/pages.sql. With an e-mail address, or of
-- those updated since a time, they match only that; otherwise they match exactly.
create function private.page_of_orders(
  event_id uuid,
  status public.order_status,
  payment_status public.payment_status,
  email text,
  updated_since timestamptz,
  patterns text[],
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_email_lower text := lower(email);
  v_statuses public.order_status[] :=
    case when page_of_orders.status is null then enum_range(null::public.order_status) else array[page_of_orders.status] end;
  v_payment_statuses public.payment_status[] :=
    case when page_of_orders.payment_status is null then enum_range(null::public.payment_status) else array[page_of_orders.payment_status] end;
begin
  if v_email_lower is not null then
    return array(
      select o.id
      from public.orders o
      where o.organisation_id = any (v_organisation_ids)
        and o.email_lower = v_email_lower
        and o.id < before
      order by o.organisation_id desc, o.id desc
      limit size
    );
  elsif patterns is not null then
    return array(
      select o.id
      from (
        select distinct a.order_id
        from unnest(private.search_attendees(patterns, null, page_of_orders.event_id, size => null)) f (id)
        cross join lateral (select a.order_id from public.attendees a where a.id = f.id offset 0) a
      ) f
      cross join lateral (select o.* from public.orders o where o.id = f.order_id offset 0) o
      where (page_of_orders.status is null or o.status = page_of_orders.status)
        and (page_of_orders.payment_status is null or o.payment_status = page_of_orders.payment_status)
        and (page_of_orders.updated_since is null or o.updated_at >= page_of_orders.updated_since)
        and o.id < before
      order by o.id desc
      limit size
    );
  elsif updated_since is not null then
    return array(
      with changed as materialized (
        select o.id
        from public.orders o
        where o.organisation_id = any (v_organisation_ids) and o.updated_at >= updated_since
        order by o.organisation_id, o.updated_at, o.id
      )
      select c.id from changed c where c.id < before order by c.id desc limit size
    );
  end if;
  if page_of_orders.event_id is null then
    return array(
      select f.id
      from unnest(v_statuses) s (status)
      cross join unnest(v_payment_statuses) p (status)
      cross join lateral (
        select o.id
        from public.orders o
        where o.organisation_id = any (v_organisation_ids)
          and o.status = s.status
          and o.payment_status = p.status
          and o.id < before
        order by o.organisation_id desc, o.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.events e where e.id = page_of_orders.event_id and e.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join unnest(v_payment_statuses) p (status)
    cross join lateral (
      select o.id
      from public.orders o
      where o.event_id = any (array[page_of_orders.event_id])
        and o.status = s.status
        and o.payment_status = p.status
        and o.id < before
      order by o.event_id desc, o.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_orders to scope_orders_read;

-- Those of the given orders of which an attendee, or the contact, matches every pattern. Security definer: a key for orders has no
-- right to attendees.
create function private.matching_orders(order_ids uuid[], patterns text[]) returns uuid[]
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
begin
  return array(
    select i.id
    from unnest(order_ids) i (id)
    where exists (
      select from public.attendees a
      where a.order_id = i.id
        and a.organisation_id is not distinct from private.current_organisation_id()
        and a.search_text like all (patterns)
    )
  );
end
$$;
grant execute on function private.matching_orders to scope_orders_read;

create function api.list_orders(
  event_id uuid default null,
  search text default null,
  status public.order_status default null,
  payment_status public.payment_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  v_chunk integer := v_size + 1;
  v_read integer := 0;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_order public.orders;
  v_item json;
  v_items json[] := '{}';
begin
  loop
    if reference is not null then
      v_ids := array(select o.id from public.orders o where o.reference = upper(list_orders.reference));
    elsif external_id is not null then
      v_ids := array(select o.id from public.orders o where o.external_id = list_orders.external_id);
    else
      -- Most pages of what was updated since a time, or of what a search matches, are among the newest anyway; where they are not,
      -- little was, or does.
      v_ids := private.page_of_orders(
        list_orders.event_id, list_orders.status, list_orders.payment_status, list_orders.email,
        case when v_read > 1000 then updated_since end, case when v_read > 1000 then v_patterns end, v_before, v_chunk
      );
    end if;
    for v_order in
      select o.*
      from unnest(case when v_patterns is null then v_ids else private.matching_orders(v_ids, v_patterns) end) i (id)
      cross join lateral (select o.* from public.orders o where o.id = i.id offset 0) o
      where (list_orders.event_id is null or o.event_id = list_orders.event_id)
        and (list_orders.status is null or o.status = list_orders.status)
        and (list_orders.payment_status is null or o.payment_status = list_orders.payment_status)
        and (list_orders.email is null or o.email_lower = lower(list_orders.email))
        and (list_orders.external_id is null or o.external_id = list_orders.external_id)
        and (updated_since is null or o.updated_at >= updated_since)
        and o.id < v_before
      order by o.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.whole_order_json(v_order);
      v_items := v_items || v_item;
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1
      or reference is not null or external_id is not null or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
    v_read := v_read + v_chunk;
    v_chunk := 1000;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_orders is
  'Orders of the organisation with their attendees, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_orders to scope_orders_read;

create function api.get_order(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = get_order.order_id;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  return private.whole_order_json(v_order);
end
$$;
comment on function api.get_order is 'One order with its attendees. 404 not_found.';
grant execute on function api.get_order to scope_orders_read;

create function api.record_invoice_payment(
  order_id uuid,
  amount bigint,
  method public.payment_method default null,
  currency text default null,
  received_at timestamptz default null,
  external_reference text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_warning jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.orders o where o.id = record_invoice_payment.order_id) then
    perform private.refuse_not_found('order_id');
  end if;
  if external_reference is not null then
    v_warning := private.warning_of_reference(order_id, external_reference);
  end if;
  insert into public.payments (order_id, amount, method, currency, received_at, external_reference)
  values (
    record_invoice_payment.order_id, record_invoice_payment.amount, coalesce(record_invoice_payment.method, 'invoice'),
    record_invoice_payment.currency, coalesce(record_invoice_payment.received_at, now()),
    record_invoice_payment.external_reference
  );
  select o.* into v_order from public.orders o where o.id = record_invoice_payment.order_id;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(json_build_object('status', 201, 'data', private.whole_order_json(v_order)), v_warning)
  );
end
$$;
comment on function api.record_invoice_payment is
  'Records money received for an order, which completes when nothing is due: 201 with the order. 404 not_found; 409 order_expired, nothing_due, wrong_currency, overpayment; 422 validation_failed.';
grant execute on function api.record_invoice_payment to scope_orders_write;

create function api.void_payment(
  payment_id uuid,
  reason text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.payments p where p.id = void_payment.payment_id) then
    perform private.refuse_not_found('payment_id');
  end if;
  insert into public.payment_voids (payment_id, reason) values (void_payment.payment_id, void_payment.reason);
  select o.* into v_order
  from public.orders o
  where o.id = (select p.order_id from public.payments p where p.id = void_payment.payment_id);

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.whole_order_json(v_order))
  );
end
$$;
comment on function api.void_payment is
  'Takes back a payment that was recorded by mistake; its order is payable again, and a completed one keeps its tickets: 201 with the order. 404 not_found; 409 payment_voided, payment_refunded; 422 validation_failed.';
grant execute on function api.void_payment to scope_orders_write;

create function api.record_refund(
  order_id uuid,
  amount bigint,
  method public.payment_method default null,
  currency text default null,
  refunded_at timestamptz default null,
  external_reference text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  perform private.assert_not_by_name('order_id');

  if not exists (select from public.orders o where o.id = record_refund.order_id) then
    perform private.refuse_not_found('order_id');
  end if;
  insert into public.refunds (order_id, amount, method, currency, refunded_at, external_reference)
  values (
    record_refund.order_id, record_refund.amount, coalesce(record_refund.method, 'bank_transfer'), record_refund.currency,
    coalesce(record_refund.refunded_at, now()), record_refund.external_reference
  );
  select o.* into v_order from public.orders o where o.id = record_refund.order_id;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.whole_order_json(v_order))
  );
end
$$;
comment on function api.record_refund is
  'Records money that was returned for a paid or cancelled order: 201 with the order. 404 not_found; 409 payment_due, nothing_refundable, wrong_currency, refund_too_high; 422 validation_failed.';
grant execute on function api.record_refund to scope_orders_write;

-- What cancelling an order affects. Security definer: a key for orders may not read attendees.
create function private.affected_by_order("order" public.orders) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select jsonb_build_object(
      'orders', 1,
      'attendees', count(*),
      'refund_due', private.refundable_if_cancelled("order"),
      'currency', "order".currency
    )
    from public.attendees a
    where a.order_id = "order".id
      and a.organisation_id = private.current_organisation_id()
      and a.status <> 'cancelled'
  );
end
$$;
grant execute on function private.affected_by_order to scope_orders_write;

create function api.cancel_order(
  order_id uuid,
  dry_run boolean default null,
  notify public.notify default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_affected jsonb;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('order_id');
  end if;
  begin
    select o.* into v_order from public.orders o where o.id = cancel_order.order_id for no key update;
    if not found then
      perform private.refuse_not_found('order_id');
    end if;
    if v_order.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This order is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    v_affected := private.affected_by_order(v_order);
    if dry_run then
      v_data := private.whole_order_json(v_order);
    end if;
    update public.orders o set status = 'cancelled' where o.id = v_order.id returning * into v_order;
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(dry_run, v_affected, private.notify_of_cancelled_tickets(notify, v_order.id)),
      'data', coalesce(v_data, private.whole_order_json(v_order))
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.cancel_order is
  'Cancels an order and its tickets, and tells its attendees if asked to, or reports the effect of doing so; what was paid becomes refund_due: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_order to scope_orders_write;

create function api.update_order(
  order_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select o.* into v_order from public.orders o where o.id = update_order.order_id for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  perform private.assert_version(v_order.version, if_version);
  update public.orders o
  set payment_due_at = (jsonb_populate_record(v_order, changes)).payment_due_at
  where o.id = v_order.id
  returning * into v_order;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.whole_order_json(v_order))
  );
end
$$;
comment on function api.update_order is
  'Sets, moves or clears the payment deadline of a pending order; one in the past is due now: 200. 404 not_found; 409 order_completed, order_cancelled, order_expired; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_order to scope_orders_write;

-- schemas/50-orders/studio.sql

-- Orders that are not paid, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.unpaid_orders with (security_invoker = true) as
select
  o.organisation_id,
  o.event_id,
  e.name as event,
  o.id as order_id,
  o.reference,
  o.name,
  o.email,
  o.company,
  private.money_text(o.total, o.currency) as total,
  private.money_text(o.amount_paid - o.amount_refunded, o.currency) as paid,
  private.money_text(private.amount_due(o), o.currency) as due,
  private.amount_due(o) as amount_due,
  o.currency,
  o.created_at,
  now() - o.created_at as age,
  o.payment_due_at
from public.orders o
join public.events e on e.id = o.event_id
where o.payment_status in ('awaiting_payment', 'partially_paid')
order by o.created_at;
comment on view public.unpaid_orders is 'Orders of which something is due, the oldest first. paid is what was received and not returned.';
create trigger unpaid_orders_100_read_only instead of insert or update or delete on public.unpaid_orders
  for each row execute function private.tg__refuse_write();

revoke all on public.unpaid_orders from anon, authenticated, service_role;
grant select on public.unpaid_orders to authenticated;

-- schemas/60-attendees/erasure.sql

-- Erasing a person: what identifies an attendee is replaced wherever it stands, the copies in logs included. Figures, money and the
-- ticket stay.

-- A document in which the person is erased: their attendee, and their order where they are its contact.
-- `fields`: what replaces each field, as private.erased_fields() has it.
create function private.without_person(document jsonb, attendee_id uuid, order_id uuid, fields jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
declare
  v_is_person boolean;
begin
  if jsonb_typeof(document) = 'array' then
    return (
      select coalesce(jsonb_agg(private.without_person(e.value, attendee_id, order_id, fields) order by e.place), '[]')
      from jsonb_array_elements(document) with ordinality e (value, place)
    );
  elsif jsonb_typeof(document) <> 'object' then
    return document;
  end if;
  v_is_person := document ->> 'id' in (attendee_id::text, order_id::text) or document ->> 'attendee_id' = attendee_id::text
    or document ->> 'object' = 'email' and document ->> 'attendee_id' is null and document ->> 'order_id' = order_id::text
    or document ->> 'waiting_list_entry_id' = attendee_id::text;
  return (
    select coalesce(jsonb_object_agg(
      f.key,
      case
        when v_is_person and fields ? f.key then fields -> f.key
        -- Of an e-mail that could not be delivered.
        when v_is_person and f.key = 'to' then fields -> 'email'
        when v_is_person and f.key in ('last_error', 'error') then 'null'
        when v_is_person and f.key = 'ticket_email' then f.value || '{"last_error": null}'
        else private.without_person(f.value, attendee_id, order_id, fields)
      end
    ), '{}')
    from jsonb_each(document) f
  );
end
$$;

-- Erases what logs and queues hold of a person, and of the order whose contact they are: counts of what it changed.
-- `person_id` is that of an attendee or of an entry of a waiting list. `subject_ids` are the order and the entry that are theirs: by these
-- their copies are found, so that no log of the organisation is read, whatever the statistics say.
create function private.erase_copies(
  organisation_id uuid,
  person_id uuid,
  order_id uuid,
  subject_ids uuid[],
  out notifications integer,
  out webhook_deliveries integer,
  out emails integer,
  out audit_entries integer,
  out idempotency_records integer
)
language plpgsql volatile security definer set search_path = ''
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_fields jsonb := private.erased_fields();
  v_notification_ids uuid[];
begin
  v_notification_ids := array(
    select n.id
    from public.notifications n
    where n.subject_id = any (subject_ids)
      -- Not like, which takes six times as long.
      and (strpos(n.data::text, person_id::text) > 0 or strpos(n.data::text, erase_copies.order_id::text) > 0)
  );
  notifications := cardinality(v_notification_ids);
  update public.notifications n
  set data = private.without_person(n.data::jsonb, person_id, erase_copies.order_id, v_fields)::json
  where n.id = any (v_notification_ids);
  -- A response may repeat what was sent. What is in flight is sent once more, and its response of now is not recorded.
  execute format(
    'update public.webhook_deliveries d set %s, claim = null
     where d.notification_id = any ($1) and (d.last_response_body is not null or d.claim is not null)',
    private.erasing_assignments('webhook_deliveries')
  ) using v_notification_ids;
  get diagnostics webhook_deliveries = row_count;
  -- What is in flight is cancelled as well, so that its result, which may have the address in it, is not recorded.
  execute format(
    $sql$update public.emails e
    set %s, claim = null, claimed_until = null, next_attempt_at = null,
      status = case e.status when 'queued' then 'cancelled' else e.status end
    where e.attendee_id = $1 or e.waiting_list_entry_id = $1 or e.order_id = $2$sql$,
    private.erasing_assignments('emails')
  ) using person_id, order_id;
  get diagnostics emails = row_count;
  update public.audit_entries e
  set changes = (
    select jsonb_object_agg(f.key, case when v_fields ? f.key then '{}' else f.value end)
    from jsonb_each(e.changes) f
  )
  where e.object_id in (person_id, erase_copies.order_id) and e.changes ?| array(select jsonb_object_keys(v_fields));
  get diagnostics audit_entries = row_count;
  update private.idempotency_records r
  set outcome = private.without_person(r.outcome::jsonb, person_id, erase_copies.order_id, v_fields)::json
  where r.organisation_id = erase_copies.organisation_id
    -- Of one of the orders, or of several or none: the expression of the index.
    and case r.outcome #>> '{data,object}'
      when 'order' then r.outcome #>> '{data,id}'
      when 'attendee' then r.outcome #>> '{data,order_id}'
      else ''
    end = any (array_append(subject_ids::text[], ''))
    and (strpos(r.outcome::text, person_id::text) > 0 or strpos(r.outcome::text, erase_copies.order_id::text) > 0);
  get diagnostics idempotency_records = row_count;
end
$$;

-- Erases everywhere, and counts what it changed. Security definer: no role may write the logs. The order of the attendee is erased as
-- well where the person is its contact: the e-mail address or the name is theirs.
create function private.erase_person(attendee_id uuid, dry_run boolean default null) returns json
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_order_id uuid;
  v_orders integer := 0;
  v_copies record;
begin
  perform private.lock_event_shared(a.event_id) from public.attendees a where a.id = erase_person.attendee_id;
  select o.* into v_order
  from public.orders o
  where o.id = (select a.order_id from public.attendees a where a.id = erase_person.attendee_id)
  for no key update;
  select a.* into v_attendee from public.attendees a where a.id = erase_person.attendee_id for no key update;
  if v_attendee.erased_at is not null then
    perform private.refuse(409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Nothing is left to erase.');
  end if;
  v_order_id := case when v_order.email_lower = v_attendee.email_lower or lower(v_order.name) = lower(v_attendee.name) then v_order.id end;

  perform set_config('usher.erasing', 'on', true);
  execute format(
    $sql$update public.attendees a
    set %s, erased_at = now(),
      ticket_email_status = case when a.ticket_email_status in ('waiting', 'queued') then 'cancelled' else a.ticket_email_status end
    where a.id = $1$sql$,
    private.erasing_assignments('attendees')
  ) using v_attendee.id;
  if v_order_id is not null then
    execute format('update public.orders o set %s where o.id = $1', private.erasing_assignments('orders')) using v_order_id;
    get diagnostics v_orders = row_count;
  end if;
  perform set_config('usher.erasing', '', true);
  perform private.erase_waiting_list_entries(array(
    select w.id from public.waiting_list_entries w
    where w.event_id = v_attendee.event_id
      and (w.id = v_attendee.waiting_list_entry_id or w.email_lower = v_attendee.email_lower)
  ));

  v_copies := private.erase_copies(
    v_attendee.organisation_id, v_attendee.id, v_order_id, array[v_attendee.order_id, v_attendee.waiting_list_entry_id]
  );
  return json_build_object(
    'object', 'erasure',
    'attendee_id', v_attendee.id,
    'order_id', v_attendee.order_id,
    'event_id', v_attendee.event_id,
    'erased_at', case when dry_run is not true then private.rfc3339(now()) end,
    'attendees', 1,
    'orders', v_orders,
    'notifications', v_copies.notifications,
    'webhook_deliveries', v_copies.webhook_deliveries,
    'ticket_emails', v_copies.emails,
    'audit_entries', v_copies.audit_entries,
    'idempotency_records', v_copies.idempotency_records
  );
end
$$;
grant execute on function private.erase_person to scope_attendees_write;

create function api.erase_attendee(
  attendee_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_currency text;
  v_receipt json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('attendee_id');
  end if;
  begin
    -- Under the caller's policies.
    select a.currency into v_currency from public.attendees a where a.id = erase_attendee.attendee_id;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    v_receipt := private.erase_person(attendee_id, dry_run);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object('orders', v_receipt -> 'orders', 'attendees', 1, 'refund_due', 0, 'currency', v_currency),
        '{"not_told": []}'
      ),
      'data', v_receipt
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.erase_attendee is
  'Erases what identifies an attendee, here and in every copy, or reports what it would erase: 200 with a receipt. 404 not_found; 409 attendee_erased.';
grant execute on function api.erase_attendee to scope_attendees_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.erase_attendee(attendee_id uuid) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.attendees a
    where a.id = erase_attendee.attendee_id
      and (
        private.claims() ->> 'role' is distinct from 'authenticated'
        or a.organisation_id in (select private.organisations_as('{owner,manager}'))
      )
  ) then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.erase_person(attendee_id);
end
$$;
comment on function public.erase_attendee is
  'Erases what identifies an attendee: name, e-mail address and all other personal fields, also in the order where they are its contact, and in every log. Answers a receipt. Figures, money and the ticket stay.';
revoke all on function public.erase_attendee from public, anon, service_role;
grant execute on function public.erase_attendee to authenticated;

-- Which of these e-mails are of somebody who was erased: where no mail service is configured, the courier keeps them as files.
create function api.erased_emails(ids uuid[]) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select e.id from public.emails e where e.id = any (ids) and private.is_erased(e)
  );
end
$$;
comment on function api.erased_emails is 'Those of the given e-mails whose recipient was erased. For the courier.';
grant execute on function api.erased_emails to courier;

-- schemas/60-attendees/operations.sql

-- Operations on attendees and their tickets. The rules are in the triggers of 60-attendees/table.sql, so that they hold for Studio
-- as well.

-- Ids of attendees of the organisation that match every pattern of private.search_patterns and the other conditions, newest first;
-- in their search_text before the first `until`: a tab for the door, null for all of it. Called by security definer functions only.
create function private.search_attendees(
  patterns text[],
  until text default E'\n',
  event_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.email_status default null,
  updated_since timestamptz default null,
  before uuid default 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  size integer default 50
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set jit = off
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  -- The index takes no array of patterns. Three words narrow enough; the others are compared.
  v_first text := patterns[1];
  v_second text := coalesce(patterns[2], v_first);
  v_third text := coalesce(patterns[3], v_first);
begin
  return array(
    -- Apart from the order, for which the planner would read the primary key.
    with found as materialized (
      select a.id
      from public.attendees a
      where uuid_hash(a.organisation_id) = uuid_hash(v_organisation_id)
        and a.search_text like v_first
        and a.search_text like v_second
        and a.search_text like v_third
        -- In brackets: no other index fits.
        and (a.organisation_id = v_organisation_id) is true
        and (a.id < before) is true
        and case when until is null then a.search_text else split_part(a.search_text, until, 1) end like all (patterns)
        and (search_attendees.event_id is null or a.event_id = search_attendees.event_id)
        and (search_attendees.ticket_type_id is null or a.ticket_type_id = search_attendees.ticket_type_id)
        and (search_attendees.status is null or a.status = search_attendees.status)
        and (search_attendees.checked_in is null or a.checked_in = search_attendees.checked_in)
        and (search_attendees.ticket_email_status is null or a.ticket_email_status = search_attendees.ticket_email_status)
        and (search_attendees.updated_since is null or a.updated_at >= search_attendees.updated_since)
    )
    select f.id from found f order by f.id desc limit size
  );
end
$$;

-- Ids of attendees, newest first, among which those of a page are: see 00-ground/pages.sql. Of an order, these are
-- all of it, in no order and of any organisation. With an e-mail address, or of those updated since a time, they match only that;
-- otherwise they match exactly. An event is read by its ticket types.
create function private.page_of_attendees(
  order_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  status public.attendee_status,
  checked_in boolean,
  ticket_email_status public.email_status,
  email text,
  updated_since timestamptz,
  patterns text[],
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_email_lower text := lower(email);
  v_event_id uuid;
  v_ticket_type_ids uuid[];
  v_statuses public.attendee_status[] :=
    case when page_of_attendees.status is null then enum_range(null::public.attendee_status) else array[page_of_attendees.status] end;
  v_checked_in boolean[] := case when page_of_attendees.checked_in is null then '{f,t}' else array[page_of_attendees.checked_in] end;
  v_email_statuses public.email_status[] :=
    case when page_of_attendees.ticket_email_status is null then enum_range(null::public.email_status)
    else array[page_of_attendees.ticket_email_status] end;
begin
  if page_of_attendees.order_id is not null then
    return array(select a.id from public.attendees a where a.order_id = page_of_attendees.order_id);
  elsif v_email_lower is not null then
    return array(
      select a.id
      from public.attendees a
      where a.organisation_id = any (v_organisation_ids)
        and a.email_lower = v_email_lower
        and a.id < before
      order by a.organisation_id desc, a.id desc
      limit size
    );
  elsif patterns is not null then
    return private.search_attendees(
      patterns, E'\n', page_of_attendees.event_id, page_of_attendees.ticket_type_id, page_of_attendees.status, page_of_attendees.checked_in,
      page_of_attendees.ticket_email_status, updated_since, before, size
    );
  elsif updated_since is not null then
    return array(
      with changed as materialized (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids) and a.updated_at >= updated_since
        order by a.organisation_id, a.updated_at, a.id
      )
      select c.id from changed c where c.id < before order by c.id desc limit size
    );
  end if;
  if page_of_attendees.event_id is null and page_of_attendees.ticket_type_id is null then
    return array(
      select f.id
      from unnest(v_statuses) s (status)
      cross join unnest(v_checked_in) c (checked_in)
      cross join unnest(v_email_statuses) e (status)
      cross join lateral (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids)
          and a.status = s.status
          and a.checked_in = c.checked_in
          and a.ticket_email_status = e.status
          and a.id < before
        order by a.organisation_id desc, a.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  end if;
  if page_of_attendees.ticket_type_id is null then
    v_event_id := page_of_attendees.event_id;
    v_ticket_type_ids := array(select t.id from public.ticket_types t where t.event_id = v_event_id);
  else
    select t.event_id into v_event_id from public.ticket_types t where t.id = page_of_attendees.ticket_type_id;
    v_ticket_type_ids := array[page_of_attendees.ticket_type_id];
  end if;
  if v_event_id <> page_of_attendees.event_id
    or not exists (select from public.events e where e.id = v_event_id and e.organisation_id = any (v_organisation_ids)) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_ticket_type_ids) t (id)
    cross join unnest(v_statuses) s (status)
    cross join unnest(v_checked_in) c (checked_in)
    cross join unnest(v_email_statuses) e (status)
    cross join lateral (
      select a.id
      from public.attendees a
      where a.ticket_type_id = any (array[t.id])
        and a.status = s.status
        and a.checked_in = c.checked_in
        and a.ticket_email_status = e.status
        and a.id < before
      order by a.ticket_type_id desc, a.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_attendees to scope_attendees_read;

create function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  search text default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.email_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_order_id uuid := order_id;
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  v_chunk integer := v_size + 1;
  v_read integer := 0;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_attendee public.attendees;
  v_item json;
  v_items json[] := '{}';
begin
  if reference is not null then
    select o.id into v_order_id from public.orders o where o.reference = upper(list_attendees.reference);
  end if;
  loop
    if reference is not null and v_order_id is null then
      v_ids := '{}';
    elsif external_id is not null then
      v_ids := array(select a.id from public.attendees a where a.external_id = list_attendees.external_id);
    else
      -- Most pages of what was updated since a time, or of what a search matches, are among the newest anyway; where they are not,
      -- little was, or does.
      v_ids := private.page_of_attendees(
        v_order_id, list_attendees.event_id, list_attendees.ticket_type_id, list_attendees.status, list_attendees.checked_in,
        list_attendees.ticket_email_status, list_attendees.email,
        case when v_read > 1000 then updated_since end, case when v_read > 1000 then v_patterns end, v_before, v_chunk
      );
    end if;
    for v_attendee in
      select a.*
      from unnest(v_ids) i (id)
      cross join lateral (select a.* from public.attendees a where a.id = i.id offset 0) a
      where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
        and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
        and (reference is null or a.order_id = v_order_id)
        and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
        and (list_attendees.status is null or a.status = list_attendees.status)
        and (list_attendees.checked_in is null or a.checked_in = list_attendees.checked_in)
        and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
        and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
        and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
        and (updated_since is null or a.updated_at >= updated_since)
        and (v_patterns is null or split_part(a.search_text, E'\n', 1) like all (v_patterns))
        and a.id < v_before
      order by a.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.attendee_json(v_attendee);
      v_items := v_items || v_item;
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1
      or v_order_id is not null or external_id is not null or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
    v_read := v_read + v_chunk;
    v_chunk := 1000;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_attendees is
  'Attendees of the organisation, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_attendees to scope_attendees_read;

create function api.get_attendee(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_attendee.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.attendee_json(v_attendee);
end
$$;
comment on function api.get_attendee is 'One attendee. 404 not_found.';
grant execute on function api.get_attendee to scope_attendees_read;

create function api.get_ticket_qr(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_ticket_qr.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  return json_build_object(
    'object', 'ticket_qr',
    'attendee_id', v_attendee.id,
    'event_id', v_attendee.event_id,
    'name', v_attendee.name,
    'ticket_code', v_attendee.ticket_code
  );
end
$$;
comment on function api.get_ticket_qr is 'Content of the QR code of a ticket. 404 not_found; 409 ticket_not_active.';
grant execute on function api.get_ticket_qr to scope_attendees_read;

create function api.update_attendee(
  attendee_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if (changes ->> 'reissue_ticket')::boolean then
    perform private.assert_not_by_name('attendee_id');
  end if;

  select a.* into v_attendee from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.assert_version(v_attendee.version, if_version);

  select c.* into v_attendee
  from private.change_attendees(array[changes || jsonb_build_object('attendee_id', v_attendee.id)]) c;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.update_attendee is
  'Corrects an attendee, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 attendee_erased, ticket_not_reissuable, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_attendee to scope_attendees_write;

-- Locks the order before its attendee, as everywhere: cancelling a ticket changes the totals of its order.
-- Security definer: a key for attendees has no right to orders.
create function private.lock_order_of(attendee_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1
  from public.orders o
  where o.organisation_id = private.current_organisation_id()
    and o.id = (select a.order_id from public.attendees a where a.id = lock_order_of.attendee_id)
  for no key update;
end
$$;
grant execute on function private.lock_order_of to scope_attendees_write;

-- What is to be returned of an order; null for keys that may not read it. Security definer, for the same reason.
create function private.refundable_of(order_id uuid) returns bigint
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select private.amount_refundable(o)
    from public.orders o
    where o.id = refundable_of.order_id and o.organisation_id = private.current_organisation_id() and private.reads_orders()
  );
end
$$;
grant execute on function private.refundable_of to scope_attendees_write;

create function api.cancel_attendee(
  attendee_id uuid,
  dry_run boolean default null,
  notify public.notify default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_affected jsonb;
  v_refundable bigint;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('attendee_id');
  end if;
  begin
    perform private.lock_order_of(attendee_id);
    select a.* into v_attendee from public.attendees a where a.id = cancel_attendee.attendee_id for no key update;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    if v_attendee.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This attendee is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    -- Whether the order changes, too: cancelling its last ticket cancels it, and cancelling one with a price lowers its
    -- totals.
    v_affected := jsonb_build_object('attendees', 1, 'currency', v_attendee.currency, 'orders', (v_attendee.price > 0 or not exists (
      select from public.attendees a
      where a.order_id = v_attendee.order_id and a.id <> v_attendee.id and a.status <> 'cancelled'
    ))::integer);
    v_refundable := private.refundable_of(v_attendee.order_id);
    if dry_run then
      v_data := private.attendee_json(v_attendee);
    end if;
    update public.attendees a set status = 'cancelled' where a.id = v_attendee.id returning * into v_attendee;
    v_affected := v_affected || jsonb_build_object('refund_due', private.refundable_of(v_attendee.order_id) - v_refundable);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run, v_affected, private.notify_of_cancelled_tickets(notify, v_attendee.order_id, v_attendee.id)
      ),
      'data', coalesce(v_data, private.attendee_json(v_attendee))
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.cancel_attendee is
  'Cancels one ticket and tells its holder if asked to, gives its place back and takes its price off the order, which is cancelled with its last ticket; or reports the effect of doing so: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_attendee to scope_attendees_write;

create function api.resend_ticket(attendee_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = resend_ticket.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.resend_ticket is
  'Queues the ticket e-mail of an attendee once more: 200. 404 not_found; 409 ticket_not_active, attendee_erased.';
grant execute on function api.resend_ticket to scope_attendees_write;

-- schemas/60-attendees/registrations.sql

-- Registration: one order with its attendees, either complimentary and completed at once, or payable and pending until paid.
-- The rules (event published, places left, sale open, promo code valid) are in the triggers of orders and attendees, so that a
-- row added in Studio meets the same ones.

-- The external_ids that a registration gives to its order and its guests, with the key of the lock of each.
create function private.external_ids_of(organisation_id uuid, order_external_id text, guests jsonb)
returns table (kind text, external_id text, lock_key integer)
language plpgsql stable set search_path = ''
as $$
begin
  return query
  select i.kind, i.external_id, hashtext(concat_ws(' ', external_ids_of.organisation_id, i.kind, i.external_id))
  from (
    select 'order' as kind, order_external_id as external_id
    union all
    select 'attendee', g.guest ->> 'external_id' from jsonb_array_elements(guests) g (guest)
  ) i
  where i.external_id is not null;
end
$$;
grant execute on function private.external_ids_of to scope_attendees_write;

-- Locks the external_ids of a registration in one global order: two groups that name the same ones crosswise would otherwise
-- each wait for an index entry of the other. Taken before every other lock of a registration, so that the second finds what the
-- first has added.
create function private.lock_external_ids(organisation_id uuid, order_external_id text, guests jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_external_id record;
begin
  for v_external_id in
    select i.lock_key, count(*) as times
    from private.external_ids_of(organisation_id, order_external_id, guests) i
    group by i.kind, i.external_id, i.lock_key
    order by i.lock_key
  loop
    if v_external_id.times > 1 then
      perform private.refuse(
        409, 'already_exists', 'Two attendees of the group have the same external_id.', 'external_id', hint => 'Send each external_id once.'
      );
    end if;
    perform pg_advisory_xact_lock(6, v_external_id.lock_key);
  end loop;
end
$$;
grant execute on function private.lock_external_ids to scope_attendees_write;

-- A guest of a registration, of an import or of the waiting list, as JSON has one.
create type private.guest as (
  ticket_type_id uuid,
  waiting_list_entry_id uuid,
  name text,
  email text,
  company text,
  external_id text,
  metadata jsonb
);

-- Fields of a guest that are one line, if they are given, with the most characters of each. For imports: the API checks all others.
create function private.lines_of_guest() returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return '{"company": 200, "external_id": 255}';
end
$$;
grant execute on function private.lines_of_guest to scope_attendees_write;

-- The arguments of a call of register_attendee, with the id of its order, and its guests in one form.
create type private.registration as (
  order_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text,
  guests jsonb,
  payment_method public.payment_method,
  promo_code text,
  send_email boolean,
  external_id text,
  metadata jsonb,
  idempotency_key text,
  request_fingerprint text
);

-- The outcomes of registrations: orders that this transaction has added for the calling key, as its triggers have left them, in the order of
-- their ids as given. Security definer: under row level security the planner may read the whole organisation for each.
create function private.registration_outcomes(order_ids uuid[]) returns json[]
language plpgsql stable security definer set search_path = '' set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_recent_id uuid := private.first_uuid_v7(now() - interval '10 minutes');
begin
  return array(
    select private.with_warnings(
      json_build_object('status', 201, 'data', private.order_json(o."order", a.attendees, '[]')),
      case when a.has_price and o.payment_method is null then private.warning_of_gift() end,
      case when a.is_repeated then private.warning_of_repetition() end
    )
    from unnest(order_ids) with ordinality i (id, place)
    cross join lateral (
      select o as "order", o.reference, o.payment_method, o.organisation_id, o.created_at from public.orders o where o.id = i.id offset 0
    ) o
    cross join lateral (
      select
        json_agg(private.attendee_json(a.attendee, true, t.name, o.reference) order by a.id) as attendees,
        bool_or(t.price > 0) as has_price,
        -- Ids tell the time. In the order of the one index of addresses: see 00-ground/pages.sql. Not `exists`, which may hash an organisation.
        bool_or((
          select true from public.attendees r
          where r.organisation_id = any (array[v_organisation_id]) and r.email_lower = a.email_lower and r.id >= v_recent_id and r.id < a.id
            and coalesce(r.event_id = a.event_id, false) and lower(r.name) = lower(a.name) and coalesce(r.status <> 'cancelled', false)
          order by r.organisation_id desc, r.id desc
          limit 1
        )) as is_repeated
      -- Apart, for the order of the aggregate would be had from the primary key, by reading it all.
      from (
        select a.id, a.event_id, a.ticket_type_id, a.email_lower, a.name, a as attendee from public.attendees a where a.order_id = i.id offset 0
      ) a
      cross join lateral (select t.name, t.price from public.ticket_types t where t.id = a.ticket_type_id offset 0) t
    ) a
    where o.organisation_id = v_organisation_id and o.created_at = now()
    order by i.place
  );
end
$$;
grant execute on function private.registration_outcomes to scope_attendees_write;

-- Adds all orders in one statement and all attendees in another, so that the triggers on statements run once. The events and ticket types
-- are known to be the caller's.
create function private.add_registrations(registrations private.registration[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  insert into public.orders (id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata)
  select
    r.order_id,
    r.event_id,
    coalesce(r.name, r.guests #>> '{0,name}'),
    coalesce(r.email, r.guests #>> '{0,email}'),
    case when coalesce(r.name, r.email, r.company) is null then r.guests #>> '{0,company}' else r.company end,
    coalesce(r.send_email, true),
    r.payment_method,
    r.promo_code,
    r.external_id,
    coalesce(r.metadata, '{}')
  from unnest(registrations) r;

  insert into public.attendees (
    event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata
  )
  select
    r.event_id, r.order_id, coalesce(g.ticket_type_id, r.ticket_type_id), g.waiting_list_entry_id, g.name, g.email, g.company, g.external_id,
    coalesce(g.metadata, '{}')
  from unnest(registrations) r
  cross join lateral jsonb_populate_recordset(null::private.guest, r.guests) g;
end
$$;
grant execute on function private.add_registrations to scope_attendees_write;

-- The same, with an outcome for each registration, in their order.
create function private.register(registrations private.registration[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.add_registrations(registrations);
  return private.registration_outcomes(array(select r.order_id from unnest(registrations) with ordinality r order by r.ordinality));
end
$$;
grant execute on function private.register to scope_attendees_write;

-- One guest, given by the top-level fields, or up to 50 in `attendees`, all or none. A guest of a group without ticket_type_id gets the top-level one. Top-level name, e-mail address
-- and company are the buyer's; without them the first guest is the buyer.
create function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_organisation_id uuid;
  v_foreign record;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group has 1 to 50 attendees.', 'attendees');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  select g.place - 1 as index, g.guest ? 'ticket_type_id' as names_its_own into v_foreign
  from jsonb_array_elements(v_guests) with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce((g.guest ->> 'ticket_type_id')::uuid, register_attendee.ticket_type_id)
      and t.event_id = register_attendee.event_id
  )
  order by g.place
  limit 1;
  if found then
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  if external_id is not null or attendees is not null then
    perform private.lock_external_ids(v_organisation_id, external_id, v_guests);
  end if;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    (private.register(array[row(
      private.uuid_v7(), event_id, ticket_type_id, name, email, company, v_guests, payment_method, promo_code, send_email, external_id,
      metadata, idempotency_key, request_fingerprint
    )::private.registration]))[1]
  );
end
$$;
comment on function api.register_attendee is
  'Registers a guest, or a group of up to 50: 201 with the order and its attendees, complimentary unless payment_method is given. 404 not_found; 409 event_not_published, event_ended, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';
grant execute on function api.register_attendee to scope_attendees_write;

-- The same for one guest, as a row: for members over the Data API, and whoever writes SQL. An order with its only attendee, by the rules of
-- their tables and the rights of the caller.
create view public.registrations with (security_invoker = true) as
select
  a.organisation_id,
  a.event_id,
  a.ticket_type_id,
  a.name,
  a.email,
  a.company,
  o.payment_method,
  o.promo_code,
  o.send_email,
  a.waiting_list_entry_id,
  a.external_id,
  a.metadata,
  o.id as order_id,
  o.reference,
  a.id as attendee_id,
  a.status,
  a.created_at
from public.attendees a
join public.orders o on o.id = a.order_id;
comment on view public.registrations is
  'Attendees with their orders. Add a row to register a guest: event, ticket type, name, e-mail, and payment_method invoice if it is to be paid.';

create function private.tg_registrations__register() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_given jsonb;
  v_kept text;
begin
  if num_nonnulls(new.order_id, new.reference, new.attendee_id, new.status, new.created_at) > 0 then
    v_given := jsonb_strip_nulls(to_jsonb(new));
    foreach v_kept in array '{order_id,reference,attendee_id,status,created_at}'::text[] loop
      if v_given ? v_kept then
        perform private.refuse(
          409, 'read_only_field', 'Usher sets this field of a new row itself.', v_kept, hint => 'Leave it out.'
        );
      end if;
    end loop;
  end if;
  if not exists (select from public.events e where e.id = new.event_id) then
    perform private.refuse_not_found('event_id');
  elsif not exists (select from public.ticket_types t where t.id = new.ticket_type_id and t.event_id = new.event_id) then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  new.send_email := coalesce(new.send_email, true);
  new.metadata := coalesce(new.metadata, '{}');

  -- The order is confirmed at once.
  perform set_config('usher.registers', 'on', true);
  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    new.organisation_id, new.event_id, new.name, new.email, new.company, new.send_email, new.payment_method, new.promo_code,
    new.external_id, new.metadata
  )
  returning id, organisation_id, reference, promo_code, created_at
  into new.order_id, new.organisation_id, new.reference, new.promo_code, new.created_at;
  perform set_config('usher.registers', 'off', true);
  insert into public.attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata)
  values (
    new.order_id, new.ticket_type_id, new.waiting_list_entry_id, new.name, new.email, new.company, new.external_id, new.metadata
  )
  returning id into new.attendee_id;
  select a.status into new.status from public.attendees a where a.id = new.attendee_id;
  return new;
end
$$;
create trigger registrations_100_register instead of insert on public.registrations
  for each row execute function private.tg_registrations__register();

revoke all on public.registrations from anon, authenticated, service_role;
grant select, insert on public.registrations to authenticated;

-- The operation's function of the same name in the plural. Locks that would otherwise be taken call by call are taken here, in one
-- order for all batches.
create function api.register_attendees(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_lock_key integer;
begin
  for v_lock_key in
    select distinct i.lock_key
    from unnest(v_calls) c
    cross join lateral private.external_ids_of(
      private.current_organisation_id(), c ->> 'external_id', private.guests_of_call(c)
    ) i
    where c ? 'external_id' or c ? 'attendees'
    order by i.lock_key
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
  return to_json(private.answer_calls('register_attendee_calls', v_calls));
end
$$;
comment on function api.register_attendees is
  'Calls of register_attendee by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.register_attendees to scope_attendees_write;

-- A single guest is given by the fields of the call itself.
create function private.guests_of_call(call jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return coalesce(call -> 'attendees', jsonb_build_array(call));
end
$$;
grant execute on function private.guests_of_call to scope_attendees_write;

-- Each with the id of its order.
create function private.registrations_of_calls(calls jsonb[]) returns private.registration[]
language plpgsql volatile set search_path = ''
as $$
begin
  return array(
    select jsonb_populate_record(
      null::private.registration,
      c.call || jsonb_build_object('order_id', private.uuid_v7(), 'guests', private.guests_of_call(c.call))
    )
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
end
$$;
grant execute on function private.registrations_of_calls to scope_attendees_write;

create function private.assert_known_ticket_types(registrations private.registration[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if exists (
    select from unnest(registrations) r
    cross join lateral jsonb_array_elements(r.guests) g
    where not exists (
      select from public.ticket_types t
      where t.id = coalesce((g ->> 'ticket_type_id')::uuid, r.ticket_type_id) and t.event_id = r.event_id
    )
  ) then
    raise exception 'divide';
  end if;
end
$$;
grant execute on function private.assert_known_ticket_types to scope_attendees_write;

-- Raises if anything is refused, without saying which call it was: a call that is alone gets the error of its operation.
create function private.register_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_registrations private.registration[] := private.registrations_of_calls(calls);
  v_one private.registration := v_registrations[1];
  v_outcomes json[];
begin
  if cardinality(calls) = 1 then
    return array[api.register_attendee(
      v_one.event_id, v_one.ticket_type_id, v_one.name, v_one.email, v_one.company, calls[1] -> 'attendees', v_one.payment_method,
      v_one.promo_code, v_one.send_email, v_one.external_id, v_one.metadata, v_one.idempotency_key, v_one.request_fingerprint
    )];
  end if;

  -- A key that is sent twice, an outcome to replay, and a group of the wrong size are for calls that are alone.
  if (
    select count(r.idempotency_key) <> count(distinct r.idempotency_key)
      or bool_or(private.replay_outcome(r.idempotency_key, r.request_fingerprint) is not null)
      or bool_or(jsonb_array_length(r.guests) not between 1 and 50)
    from unnest(v_registrations) r
  ) then
    raise exception 'divide';
  end if;
  perform private.assert_known_ticket_types(v_registrations);

  v_outcomes := private.register(v_registrations);
  return array(
    select private.record_outcome(r.idempotency_key, r.request_fingerprint, v_outcomes[r.ordinality])
    from unnest(v_registrations) with ordinality r
    order by r.ordinality
  );
end
$$;
grant execute on function private.register_attendee_calls to scope_attendees_write;

-- schemas/60-attendees/imports.sql

-- Imports: up to 1,000 guests of an event in one call, with a verdict for each. A guest is matched by external_id; one without, by
-- e-mail address and name within the event.

-- Attendees whose given fields differ are changed in one statement; a refusal divides the list, as for a batch of calls. Each
-- call is a change of private.change_attendees.
create function private.update_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcomes json[];
begin
  with changed as materialized (select c.id, c.order_id, c.status from private.change_attendees(calls) c)
  select array_agg(
    json_build_object('status', 200, 'data', json_build_object('id', k.id, 'order_id', k.order_id, 'status', k.status))
    order by u.place
  )
  into v_outcomes
  from unnest(calls) with ordinality u (call, place)
  join changed k on k.id = (u.call ->> 'attendee_id')::uuid;
  return v_outcomes;
end
$$;
grant execute on function private.update_attendee_calls to scope_attendees_write;

-- Guests who are no attendee yet, one order each. Like private.register_attendee_calls, but of each attendee only what a verdict needs.
create function private.import_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_registrations private.registration[];
begin
  if cardinality(calls) = 1 then
    return private.register_attendee_calls(calls);
  end if;
  v_registrations := private.registrations_of_calls(calls);
  perform private.assert_known_ticket_types(v_registrations);
  perform private.add_registrations(v_registrations);
  return private.new_attendees_json(array(select r.order_id from unnest(v_registrations) with ordinality r order by r.ordinality));
end
$$;
grant execute on function private.import_attendee_calls to scope_attendees_write;

-- The attendees of orders that this transaction has added for the calling key, one of each, in the order of the ids as given. Security definer, as private.registration_outcomes.
create function private.new_attendees_json(order_ids uuid[]) returns json[]
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
begin
  return array(
    select json_build_object('status', 201, 'data', json_build_object(
      'attendees', json_build_array(json_build_object('id', a.id, 'order_id', a.order_id, 'status', a.status))
    ))
    from unnest(order_ids) with ordinality i (id, place)
    cross join lateral (select a.* from public.attendees a where a.order_id = i.id offset 0) a
    where a.organisation_id = v_organisation_id and a.created_at = now()
    order by i.place
  );
end
$$;
grant execute on function private.new_attendees_json to scope_attendees_write;

-- The answers of private.answer_calls with their errors as the operations answer them. One that is only {} was refused by nothing
-- that a caller can mend, so it is tried again without a savepoint, for its error to end the import.
create function private.import_calls(operation text, calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_answers json[] := case when calls = '{}' then '{}' else private.answer_calls(operation, calls) end;
begin
  for i in 1..cardinality(v_answers) loop
    if v_answers[i]::text = '{}' then
      execute format('select private.%I($1)', operation) using calls[i:i];
      set constraints all immediate;
      raise exception 'The outcome of a guest depends on another.' using errcode = 'serialization_failure';
    end if;
  end loop;
  return v_answers;
end
$$;
grant execute on function private.import_calls to scope_attendees_write;

-- One line of text, as a name is.
create function private.is_line(value jsonb, max_length integer) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return jsonb_typeof(value) = 'string'
    and length(value #>> '{}') <= max_length
    and value #>> '{}' ~ '[^[:space:]\u00a0\u2000-\u200b\u3000\ufeff]'
    and value #>> '{}' !~ '[[:cntrl:]\u0080-\u009f]';
end
$$;
grant execute on function private.is_line to scope_attendees_write;

-- What is wrong with the form of a guest, as the error of a verdict; null if nothing is. The constraints say the same, but of the
-- statement that adds many.
create function private.error_of_guest(guest jsonb) returns json
language plpgsql immutable set search_path = ''
as $$
declare
  v_known jsonb;
  v_fields jsonb := '[]';
begin
  -- Most guests have these fields alone, in form.
  if jsonb_typeof(guest) = 'object' then
    if guest - '{name,email,external_id}'::text[] = '{}' and private.is_line(guest -> 'name', 200)
      and jsonb_typeof(guest -> 'email') = 'string' and private.is_email_address(guest ->> 'email')
      and (guest -> 'external_id' is null or private.is_line(guest -> 'external_id', 255)) then
      return null;
    end if;
  end if;
  v_known := to_jsonb(jsonb_populate_record(null::private.guest, '{}')) - 'waiting_list_entry_id';
  if jsonb_typeof(guest) <> 'object' then
    v_fields := '[{"param": null, "message": "A guest is an object with a name and an email."}]';
  else
    if private.is_line(guest -> 'name', 200) is not true then
      v_fields := v_fields || '{"param": "name", "message": "A name is one line of 1 to 200 characters."}'::jsonb;
    end if;
    if jsonb_typeof(guest -> 'email') is distinct from 'string' or not private.is_email_address(guest ->> 'email') then
      v_fields := v_fields || '{"param": "email", "message": "This is not an e-mail address."}'::jsonb;
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', l.field, 'message', format(
        '%s %s is one line of 1 to %s characters.', case when l.field ~ '^[aeiou]' then 'An' else 'A' end, l.field, l.characters
      ))), '[]')
      from json_each_text(private.lines_of_guest()) l (field, characters)
      where guest ->> l.field is not null and not private.is_line(guest -> l.field, l.characters::integer)
    );
    if guest ? 'metadata' and not private.is_metadata(guest -> 'metadata') then
      v_fields := v_fields || '{"param": "metadata", "message": "Metadata is a flat object of at most 50 keys with text, numbers that are kept exactly, true, false or null."}'::jsonb;
    end if;
    if guest ? 'ticket_type_id' and (
      guest ->> 'ticket_type_id' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
    ) is not true then
      v_fields := v_fields || '{"param": "ticket_type_id", "message": "This is not the id of a ticket type."}'::jsonb;
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', left(f.name, 100), 'message', 'A guest has no such field.')), '[]')
      from (
        select n.name from jsonb_object_keys(guest) n (name)
        where not v_known ? n.name
        order by n.name
        limit 10
      ) f
    );
  end if;
  if v_fields = '[]' then
    return null;
  end if;
  return json_build_object(
    'code', 'validation_failed', 'message', v_fields -> 0 -> 'message', 'param', v_fields -> 0 -> 'param',
    'details', json_build_object('fields', v_fields), 'hint', 'Correct the fields named in details.fields, and send the guest again.'
  );
end
$$;
grant execute on function private.error_of_guest to scope_attendees_write;

-- What is wrong with each guest of a list by itself, or beside an earlier one; null: nothing. Two who have no external_id to tell them
-- apart are never taken for one person.
create function private.errors_of_guests(guests jsonb) returns json[]
language plpgsql immutable set search_path = ''
as $$
begin
  return array(
    select coalesce(g.error, case
      when g.has_external_id_before then json_build_object(
        'code', 'already_exists', 'message', 'An earlier guest of the list has this external_id.', 'param', 'external_id',
        'hint', 'Send each external_id once.'
      )
      when g.has_person_before then json_build_object(
        'code', 'already_exists', 'message', 'An earlier guest of the list has this e-mail address and name.', 'param', 'email',
        'hint', 'If they are two people, give each an external_id.'
      )
    end)
    from (
      select
        g.place,
        g.error,
        g.external_id is not null
          and count(*) over (partition by g.error is null, g.external_id order by g.place) > 1 as has_external_id_before,
        count(*) over same_person > 1
          and (g.external_id is null or count(*) filter (where g.external_id is null) over same_person > 0) as has_person_before
      from (
        select
          g.place,
          private.error_of_guest(g.guest) as error,
          g.guest ->> 'external_id' as external_id,
          lower(g.guest ->> 'email') as email,
          lower(btrim(g.guest ->> 'name')) as name
        from jsonb_array_elements(guests) with ordinality g (guest, place)
      ) g
      window same_person as (partition by g.error is null, g.email, g.name order by g.place)
    ) g
    order by g.place
  );
end
$$;
grant execute on function private.errors_of_guests to scope_attendees_write;

-- The attendee of the calling key's organisation that a guest of a list is, by external_id, or else by e-mail address and name at the event:
-- by key, with a plan of its own for each way. One who is not cancelled comes first, and then the earliest. Security definer: under row level
-- security the planner may read the whole organisation for each guest.
create function private.attendee_of_guest(event_id uuid, guest jsonb) returns public.attendees
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_external_id text := guest ->> 'external_id';
  v_email text;
  v_name text;
  v_attendee public.attendees;
begin
  if v_external_id is not null then
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = v_organisation_id and a.external_id = v_external_id;
  else
    v_email := lower(guest ->> 'email');
    v_name := lower(btrim(guest ->> 'name'));
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = v_organisation_id
      and a.email_lower = v_email
      and a.event_id = attendee_of_guest.event_id
      and lower(a.name) = v_name
    order by a.status = 'cancelled', a.id
    limit 1;
  end if;
  return v_attendee;
end
$$;
grant execute on function private.attendee_of_guest to scope_attendees_write;

-- Locks what the guests of a list are matched by, in one order: another import of the same guests waits, and so does a registration with
-- one of the external_ids.
create function private.lock_guests(organisation_id uuid, event_id uuid, guests jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_lock_key integer;
begin
  for v_lock_key in
    select i.lock_key from private.external_ids_of(organisation_id, null, guests) i
    union
    select hashtext(concat_ws(' ', lock_guests.event_id, 'guest', lower(g.guest ->> 'email'), lower(btrim(g.guest ->> 'name'))))
    from jsonb_array_elements(guests) g (guest)
    where g.guest ->> 'external_id' is null
    order by 1
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
end
$$;
grant execute on function private.lock_guests to scope_attendees_write;

-- The event lock, the orders of the attendees that the guests are, for a cancellation of one locks its attendees in any order, and then the
-- attendees, before any ticket type: see 20-events/locks.sql. Security definer: a key with attendees:write has no right to orders.
create function private.lock_attendees_of_import(event_id uuid, guests jsonb) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  perform private.lock_event_shared(event_id);
  v_ids := array(
    select a.id
    from jsonb_array_elements(guests) g (guest)
    cross join lateral private.attendee_of_guest(lock_attendees_of_import.event_id, g.guest) a
    where a.id is not null
  );
  if v_ids = '{}' then
    return;
  end if;
  perform 1
  from public.orders o
  where o.id = any (array(select a.order_id from public.attendees a where a.id = any (v_ids)))
  order by o.id
  for share;
  perform 1 from public.attendees a where a.id = any (v_ids) order by a.id for no key update;
end
$$;
grant execute on function private.lock_attendees_of_import to scope_attendees_write;

-- The verdict on a guest of whom private.answer_calls reports an error. Its details are the JSON that private.refuse wrote.
create function private.refused_guest(answer json) returns json
language plpgsql immutable set search_path = ''
as $$
declare
  v_detail json := answer #>> '{error,details}';
  v_param text := v_detail ->> 'param';
begin
  return json_build_object('result', 'refused', 'error', json_build_object(
    'code', v_detail -> 'code',
    'message', answer #> '{error,message}',
    -- The guest was sent as a group of one.
    'param', regexp_replace(v_param, '^attendees\.0\.', ''),
    'details', v_detail -> 'details',
    'hint', nullif(answer #>> '{error,hint}', '')
  ));
end
$$;
grant execute on function private.refused_guest to scope_attendees_write;

-- The verdicts on a part of a list, whose locks are held. `errors` has what is known to be wrong with each guest. Guests who are no attendee
-- yet are registered, one order each, complimentary; an attendee is given the fields that the guest names. Fields left out stay as they are.
-- What is refused leaves the others as they are.
create function private.import_guests(
  event_id uuid, ticket_type_id uuid, send_email boolean, guests jsonb[], errors json[]
) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_guest jsonb;
  v_attendee public.attendees;
  v_changes jsonb;
  v_error json;
  v_verdicts json[] := array_fill(null::json, array[cardinality(guests)]);
  v_added integer[] := '{}';
  v_added_calls jsonb[] := '{}';
  v_changed integer[] := '{}';
  v_changed_calls jsonb[] := '{}';
  v_answers json[];
  v_answer json;
begin
  for v_place in 1..cardinality(guests) loop
    v_guest := guests[v_place];
    v_attendee := private.attendee_of_guest(import_guests.event_id, v_guest);
    v_error := errors[v_place];
    v_changes := case when v_error is null then v_guest - '{ticket_type_id,external_id}'::text[] end;
    if v_error is not null then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', v_error);
    elsif v_attendee.id is null and coalesce(v_guest ->> 'ticket_type_id', import_guests.ticket_type_id::text) is null then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'validation_failed', 'message', 'A new attendee needs a ticket type.', 'param', 'ticket_type_id',
        'hint', 'Give each new attendee a ticket_type_id, or one beside the list.'
      ));
    elsif v_attendee.id is null then
      v_added := v_added || v_place;
      v_added_calls := v_added_calls || jsonb_build_object(
        'event_id', import_guests.event_id,
        'ticket_type_id', import_guests.ticket_type_id,
        'send_email', coalesce(import_guests.send_email, false),
        'attendees', jsonb_build_array(v_guest)
      );
    elsif v_attendee.event_id <> import_guests.event_id then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'already_exists', 'message', 'An attendee of another event has this external_id.', 'param', 'external_id',
        'details', json_build_object('id', v_attendee.id), 'hint', 'Use one external_id for each person and event.'
      ));
    elsif v_attendee.status = 'cancelled' then
      -- Not registered anew: a sync that sends whom it knows would undo every cancellation.
      v_verdicts[v_place] := json_build_object('result', 'refused', 'attendee_id', v_attendee.id, 'error', json_build_object(
        'code', 'cancelled', 'message', 'The ticket of this guest was cancelled.',
        'param', case when v_guest ->> 'external_id' is null then 'email' else 'external_id' end,
        'hint', 'If they come after all, register them with register_attendee, which takes the same external_id.'
      ));
    elsif v_attendee.ticket_type_id <> (v_guest ->> 'ticket_type_id')::uuid then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'attendee_id', v_attendee.id, 'error', json_build_object(
        'code', 'read_only_field', 'message', 'The ticket type of an attendee cannot be changed.', 'param', 'ticket_type_id',
        'hint', 'Cancel the attendee, and register the person again.'
      ));
    elsif jsonb_populate_record(v_attendee, v_changes) is not distinct from v_attendee then
      v_verdicts[v_place] := json_build_object(
        'result', 'unchanged', 'attendee_id', v_attendee.id, 'order_id', v_attendee.order_id, 'status', v_attendee.status
      );
    else
      v_changed := v_changed || v_place;
      v_changed_calls := v_changed_calls || (v_changes || jsonb_build_object('attendee_id', v_attendee.id));
    end if;
  end loop;

  v_answers := private.import_calls('update_attendee_calls', v_changed_calls);
  for i in 1..cardinality(v_changed) loop
    v_answer := v_answers[i] #> '{outcome,data}';
    v_verdicts[v_changed[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'updated', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;

  v_answers := private.import_calls('import_attendee_calls', v_added_calls);
  for i in 1..cardinality(v_added) loop
    v_answer := v_answers[i] #> '{outcome,data,attendees,0}';
    v_verdicts[v_added[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'created', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;
  return v_verdicts;
end
$$;
grant execute on function private.import_guests to scope_attendees_write;

-- In parts, until all are judged or the time is up: what remains is then sent again, in a list of its own or in the same one.
create function api.import_attendees(
  event_id uuid,
  attendees jsonb,
  ticket_type_id uuid default null,
  send_email boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  -- As many as a batch of registrations: larger parts are no cheaper.
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_guests jsonb[] := array(select g.guest from jsonb_array_elements(attendees) with ordinality g (guest, place) order by g.place);
  v_sent integer := cardinality(v_guests);
  v_errors json[];
  v_verdicts json[] := '{}';
  v_judged integer := 0;
  v_ticket_type_ids uuid[];
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if v_sent not between 1 and 1000 then
    perform private.refuse_value('attendees', 'An import has 1 to 1000 attendees.', 'Send the rest in further calls.');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = import_attendees.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  -- Locks in the order of 20-events/locks.sql.
  perform private.limit_lock_waits();
  perform private.lock_guests(v_organisation_id, event_id, attendees);
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_guests := v_guests[:c_part];
    attendees := to_jsonb(v_guests);
  end if;
  perform private.limit_lock_waits();
  perform private.lock_attendees_of_import(event_id, attendees);

  v_errors := private.errors_of_guests(attendees);
  loop
    perform private.limit_lock_waits();
    begin
      v_verdicts := v_verdicts || private.import_guests(
        event_id, ticket_type_id, send_email, v_guests[v_judged + 1:v_judged + c_part],
        v_errors[v_judged + 1:v_judged + c_part]
      );
    exception
      when lock_not_available then
        if v_judged = 0 then
          raise;
        end if;
        -- What is judged stays; somebody else has what the rest needs.
        exit;
    end;
    v_judged := cardinality(v_verdicts);
    exit when v_judged = cardinality(v_guests) or private.is_time_up();
  end loop;

  -- An import takes no payment.
  v_ticket_type_ids := array(
    select distinct coalesce(v_guests[v.place] ->> 'ticket_type_id', import_attendees.ticket_type_id::text)::uuid
    from unnest(v_verdicts) with ordinality v (verdict, place)
    where v.verdict ->> 'result' = 'created'
  );
  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      (
        select json_build_object('status', 200, 'data', json_build_object(
          'object', 'attendee_import',
          'event_id', import_attendees.event_id,
          'created', count(*) filter (where v.verdict ->> 'result' = 'created'),
          'updated', count(*) filter (where v.verdict ->> 'result' = 'updated'),
          'unchanged', count(*) filter (where v.verdict ->> 'result' = 'unchanged'),
          'refused', count(*) filter (where v.verdict ->> 'result' = 'refused'),
          'remaining', v_sent - v_judged,
          'results', json_agg(
            json_build_object(
              'external_id', case when jsonb_typeof(v_guests[v.place] -> 'external_id') = 'string' then left(v_guests[v.place] ->> 'external_id', 255) end,
              'result', v.verdict -> 'result',
              'attendee_id', v.verdict -> 'attendee_id',
              'order_id', v.verdict -> 'order_id',
              'status', v.verdict -> 'status',
              'error', v.verdict -> 'error'
            )
            order by v.place
          )
        ))
        from unnest(v_verdicts) with ordinality v (verdict, place)
      ),
      private.warning_of_gifts(v_ticket_type_ids)
    )
  );
end
$$;
comment on function api.import_attendees is
  'Registers or updates up to 1000 guests of an event, matched by external_id, or by e-mail address and name, with a verdict for each that it reached in time: 200. A refused guest has the error of register_attendee or update_attendee, or cancelled. 404 not_found; 422 validation_failed, idempotency_key_reused.';
grant execute on function api.import_attendees to scope_attendees_write;

-- schemas/60-attendees/studio.sql

-- The codes of tickets, and tickets that did not arrive, for organisers. The view has the rights of whoever reads it: see
-- 20-events/studio.sql.

-- Ticket codes admit their holders, so no column of them is granted to members: viewers must not see them. Security definer: it reads what
-- members may not, and checks the role itself.
create function public.ticket_codes(event_id uuid)
returns table (
  attendee_id uuid, name text, company text, ticket_type text, status public.attendee_status, checked_in_at timestamptz, ticket_code text,
  ticket_path text
)
language plpgsql stable security definer set search_path = ''
as $$
begin
  if private.claims() ->> 'role' = 'authenticated' and not exists (
    select from public.events e
    where e.id = ticket_codes.event_id and e.organisation_id in (select private.organisations_as('{owner,manager,door}'))
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  return query
  select
    a.id, a.name, a.company, t.name, a.status, a.checked_in_at, a.ticket_code,
    case when a.erased_at is null then private.ticket_path(a.ticket_token) end
  from public.attendees a
  join public.ticket_types t on t.id = a.ticket_type_id
  where a.event_id = ticket_codes.event_id and a.status <> 'cancelled'
  order by lower(a.name), a.id;
end
$$;
comment on function public.ticket_codes is 'Who is expected at an event, with their ticket codes and the path of their ticket pages, by name: for owners, managers and the door.';
revoke all on function public.ticket_codes from public, anon, service_role;
grant execute on function public.ticket_codes to authenticated;

create view public.undelivered_tickets with (security_invoker = true) as
select
  a.organisation_id,
  a.event_id,
  e.name as event,
  a.id as attendee_id,
  a.name,
  a.email,
  a.ticket_email_status,
  a.ticket_email_last_error as error,
  a.ticket_email_sent_at as sent_at
from public.attendees a
join public.events e on e.id = a.event_id
where a.ticket_email_status in ('bounced', 'failed') and a.status <> 'cancelled'
order by a.event_id, lower(a.name), a.id;
comment on view public.undelivered_tickets is 'Tickets whose e-mail did not arrive, and why.';
create trigger undelivered_tickets_100_read_only instead of insert or update or delete on public.undelivered_tickets
  for each row execute function private.tg__refuse_write();

revoke all on public.undelivered_tickets from anon, authenticated, service_role;
grant select on public.undelivered_tickets to authenticated;

-- schemas/60-attendees/ticket-page.sql

-- The ticket page: what the holder of a ticket sees at /t/TOKEN, without a key. The token is attendees.ticket_token.

create function private.ticket_path(ticket_token text) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return '/t/' || ticket_token;
end
$$;
grant execute on function private.ticket_path to scope_attendees_read, scope_attendees_write;

-- The database does not know where the API is: its tokens say so. Null in a session without one.
create function private.ticket_url(ticket_token text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.claims() ->> 'public_url' || private.ticket_path(ticket_token);
end
$$;
grant execute on function private.ticket_url to scope_attendees_read, scope_attendees_write;

-- Null where no ticket has the token: it never existed, was replaced by a reissue, or its holder was erased. The ticket code is there only
-- while it admits.
-- Security definer: the gateway may read no table.
create function api.get_ticket_page(token text) returns json
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
begin
  return (
    select json_build_object(
      'organisation', json_build_object(
        'id', g.id,
        'name', g.name,
        'reply_to', g.reply_to_email,
        'accent_colour', g.accent_colour,
        'logo_version', private.logo_version(g.id)
      ),
      'event', private.event_json(e),
      'ticket_type', json_build_object('name', t.name),
      'order', json_build_object('reference', o.reference),
      'attendee', json_build_object(
        'id', a.id,
        'name', a.name,
        'company', a.company,
        'status', a.status,
        'ticket_code', case when a.status = 'active' and e.status <> 'cancelled' then a.ticket_code end,
        'checked_in_at', private.rfc3339(a.checked_in_at)
      )
    )
    from public.attendees a
    join public.events e on e.id = a.event_id
    join public.ticket_types t on t.id = a.ticket_type_id
    join public.orders o on o.id = a.order_id
    join public.organisations g on g.id = a.organisation_id
    where a.ticket_token = get_ticket_page.token and a.erased_at is null
  );
end
$$;
comment on function api.get_ticket_page is
  'What the ticket page of a token shows: { organisation, event, ticket_type, order, attendee }. null where no ticket has it. For the gateway.';
grant execute on function api.get_ticket_page to gateway;

-- schemas/70-waiting-list/erasure.sql

-- Erasing what the waiting list has of a person.

-- Erases the entries of a person, with every copy: see private.erase_person.
create function private.erase_waiting_list_entries(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_entry public.waiting_list_entries;
begin
  for v_entry in
    execute format(
      $sql$update public.waiting_list_entries w
      set %s, status = case when w.status in ('waiting', 'offered') then 'cancelled' else w.status end
      where w.id = any ($1)
      returning w.*$sql$,
      private.erasing_assignments('waiting_list_entries')
    ) using entry_ids
  loop
    perform private.erase_copies(v_entry.organisation_id, v_entry.id, null, array[v_entry.id]);
  end loop;
end
$$;

-- schemas/70-waiting-list/operations.sql

-- Operations on the waiting list. The rules are in the triggers of 70-waiting-list/table.sql and offers.sql, so that they hold for Studio
-- as well.

create function api.list_waiting_list_entries(
  event_id uuid,
  ticket_type_id uuid default null,
  status public.waiting_list_status default null,
  email text default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_after uuid := coalesce(private.decode_cursor(cursor), '00000000-0000-0000-0000-000000000000');
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_waiting_list_entries.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  v_items := array(
    select private.waiting_list_entry_json(w)
    from public.waiting_list_entries w
    where w.event_id = list_waiting_list_entries.event_id
      and w.id > v_after
      and (list_waiting_list_entries.ticket_type_id is null or w.ticket_type_id = list_waiting_list_entries.ticket_type_id)
      and (list_waiting_list_entries.status is null or w.status = list_waiting_list_entries.status)
      and (list_waiting_list_entries.email is null or w.email_lower = lower(list_waiting_list_entries.email))
    order by w.id
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_waiting_list_entries is
  'The waiting list of an event, first come first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_waiting_list_entries to scope_attendees_read;

create function api.get_waiting_list_entry(waiting_list_entry_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  select w.* into v_entry from public.waiting_list_entries w where w.id = get_waiting_list_entry.waiting_list_entry_id;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  return private.waiting_list_entry_json(v_entry);
end
$$;
comment on function api.get_waiting_list_entry is 'One entry of a waiting list. 404 not_found.';
grant execute on function api.get_waiting_list_entry to scope_attendees_read;

create function api.join_waiting_list(
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.waiting_list_entries (event_id, ticket_type_id, name, email, company, send_email, external_id, metadata)
  values (
    join_waiting_list.event_id, join_waiting_list.ticket_type_id, join_waiting_list.name, join_waiting_list.email,
    join_waiting_list.company, coalesce(join_waiting_list.send_email, true), join_waiting_list.external_id,
    coalesce(join_waiting_list.metadata, '{}')
  )
  returning * into v_entry;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.join_waiting_list is
  'Adds a person to the waiting list of a sold-out ticket type: 201. 404 not_found; 409 not_sold_out, event_not_published, event_ended, ticket_type_archived, sales_not_started, sales_ended, quantity_not_allowed, already_exists (email, external_id); 422 validation_failed.';
grant execute on function api.join_waiting_list to scope_attendees_write;

-- Locks an entry for an edit, after its event, so that a cancellation of the event waits. Security definer: whoever registers may not
-- read the event.
create function private.lock_waiting_list_entry(waiting_list_entry_id uuid) returns public.waiting_list_entries
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  perform private.lock_event_shared(w.event_id)
  from public.waiting_list_entries w
  where w.id = lock_waiting_list_entry.waiting_list_entry_id and not private.is_foreign(w.organisation_id);
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  select w.* into v_entry
  from public.waiting_list_entries w
  where w.id = lock_waiting_list_entry.waiting_list_entry_id
  for no key update;
  return v_entry;
end
$$;
grant execute on function private.lock_waiting_list_entry to scope_attendees_write;

create function api.update_waiting_list_entry(
  waiting_list_entry_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
  v_new public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  v_entry := private.lock_waiting_list_entry(waiting_list_entry_id);
  perform private.assert_version(v_entry.version, if_version);

  v_new := jsonb_populate_record(v_entry, changes);
  update public.waiting_list_entries w set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    offer_expires_at = v_new.offer_expires_at,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where w.id = v_entry.id
  returning * into v_entry;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.update_waiting_list_entry is
  'Changes fields of an entry of a waiting list, such as the deadline of its offer: 200. 404 not_found; 409 read_only_field, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_waiting_list_entry to scope_attendees_write;

create function api.accept_waiting_list_offer(
  waiting_list_entry_id uuid,
  payment_method public.payment_method default null,
  promo_code text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
  v_guests jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_entry from public.waiting_list_entries w where w.id = accept_waiting_list_offer.waiting_list_entry_id;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  -- Once more when the attendee is added, with the entry locked.
  perform private.assert_offered(v_entry);

  v_guests := jsonb_build_array(jsonb_build_object(
    'waiting_list_entry_id', v_entry.id, 'name', v_entry.name, 'email', v_entry.email, 'company', v_entry.company,
    'external_id', v_entry.external_id, 'metadata', v_entry.metadata
  ));
  if v_entry.external_id is not null then
    perform private.lock_external_ids(v_entry.organisation_id, v_entry.external_id, v_guests);
  end if;
  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    (private.register(array[row(
      private.uuid_v7(), v_entry.event_id, v_entry.ticket_type_id, v_entry.name, v_entry.email, v_entry.company, v_guests,
      payment_method, promo_code, v_entry.send_email, v_entry.external_id, v_entry.metadata, idempotency_key, request_fingerprint
    )::private.registration]))[1]
  );
end
$$;
comment on function api.accept_waiting_list_offer is
  'Registers the person whom the waiting list offers a place, complimentary unless payment_method is given: 201 with the order and its attendee. 404 not_found; 409 not_offered, offer_expired, event_not_published, event_ended, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id).';
grant execute on function api.accept_waiting_list_offer to scope_attendees_write;

create function api.cancel_waiting_list_entry(
  waiting_list_entry_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  perform private.assert_not_by_name('waiting_list_entry_id');

  v_entry := private.lock_waiting_list_entry(waiting_list_entry_id);
  -- The guard lets Studio save a row unchanged; an operation that would change nothing is an error.
  if v_entry.status = 'cancelled' then
    perform private.refuse(
      409, 'invalid_transition', 'This person is no longer on the waiting list.', 'status',
      jsonb_build_object('from', v_entry.status, 'to', 'cancelled')
    );
  end if;
  update public.waiting_list_entries w set status = 'cancelled' where w.id = v_entry.id returning * into v_entry;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.cancel_waiting_list_entry is
  'Takes a person off the waiting list; a place that was offered goes to the next: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_waiting_list_entry to scope_attendees_write;

-- schemas/80-check-ins/door-list.sql

-- The door list: what a scanner needs to decide without a network, in pages, and then what changed; and the report of its mistakes.

-- Ticket codes are sent as hashes, so that a lost telephone admits nobody. A code has 80 random bits, so the salt need not be secret;
-- it keeps the lists of two keys from being compared.
create function private.door_salt(event_id uuid) returns bytea
language plpgsql stable set search_path = ''
as $$
begin
  return substr(sha256(uuid_send(event_id) || uuid_send(private.current_api_key_id())), 1, 16);
end
$$;

create function private.base64url(bytes bytea) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return translate(encode(bytes, 'base64'), E'+/=\n', '-_');
end
$$;

-- Pages are in the order of the ids. What changed is found by the transaction that wrote the row last, its xmin: a cursor holds the
-- oldest one that was open when its first page was read, and all that came before it was in that list. So nothing is missed,
-- however long a transaction takes, and a row of a transaction that was open is sent twice. Every scan writes the row of its attendee.
-- xmin has 32 bits: a cursor that is two billion transactions old, or of another database, starts again.
-- A cursor: the salt (16 bytes), changes since (8), changes since for the next list (8), the last id of the page (16).
-- The event is known to be the caller's. Security definer: a key with checkin:write may not read ticket codes.
create function private.door_list(event_id uuid, cursor text) returns json
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  v_size constant integer := 1000;
  v_event public.events;
  v_ticket_type_ids uuid[];
  v_salt bytea := private.door_salt(event_id);
  v_salt_text text := private.base64url(v_salt);
  v_now bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_cursor bytea;
  v_since bigint := 0;
  v_next bigint;
  v_last uuid := '00000000-0000-0000-0000-000000000000';
  v_ids uuid[];
  v_has_more boolean;
begin
  if cursor !~ '^[A-Za-z0-9_-]{64}$' then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not valid.', 'cursor',
      hint => 'Send next_cursor of the previous answer unchanged, or leave the cursor out to start again.'
    );
  end if;
  v_cursor := decode(translate(cursor, '-_', '+/'), 'base64');
  if substr(v_cursor, 1, 16) = v_salt then
    v_since := ('x' || encode(substr(v_cursor, 17, 8), 'hex'))::bit(64)::bigint;
    v_next := ('x' || encode(substr(v_cursor, 25, 8), 'hex'))::bit(64)::bigint;
    v_last := encode(substr(v_cursor, 33, 16), 'hex')::uuid;
    if least(v_since, v_next) < 0 or greatest(v_since, v_next) > v_now or (v_since > 0 and v_now - v_since > 2000000000) then
      v_since := 0;
      v_last := '00000000-0000-0000-0000-000000000000';
    end if;
  end if;
  if v_last = '00000000-0000-0000-0000-000000000000' then
    v_next := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  end if;

  select e.* into v_event from public.events e where e.id = door_list.event_id and e.organisation_id is not distinct from private.current_organisation_id();
  v_ticket_type_ids := array(
    select t.id from public.ticket_types t
    where t.event_id = v_event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  -- `offset 0` keeps the planner from walking the primary key through everybody's attendees in the order of the page.
  if v_since = 0 then
    v_ids := array(
      select f.id
      from (select a.id from public.attendees a where a.ticket_type_id = any (v_ticket_type_ids) offset 0) f
      where f.id > v_last
      order by f.id
      limit v_size + 1
    );
  else
    v_ids := array(
      select f.id
      from (
        select a.id
        from public.attendees a
        where a.ticket_type_id = any (v_ticket_type_ids)
          and ((v_now - a.xmin::text::bigint) & 4294967295) <= v_now - v_since
        offset 0
      ) f
      where f.id > v_last
      order by f.id
      limit v_size + 1
    );
  end if;
  v_has_more := cardinality(v_ids) > v_size;

  return json_build_object(
    'object', 'door_list',
    'event', json_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status, 'starts_at', private.rfc3339(v_event.starts_at),
      'ends_at', private.rfc3339(v_event.ends_at), 'timezone', v_event.timezone,
      'accent_colour', (select o.accent_colour from public.organisations o where o.id = v_event.organisation_id)
    ),
    'server_time', private.rfc3339(clock_timestamp()),
    'salt', v_salt_text,
    'complete', v_since = 0,
    'tickets_total', (select count(*) from public.attendees a where a.ticket_type_id = any (v_ticket_type_ids)),
    'points', (
      select coalesce(json_agg(private.check_in_point_json(p) order by p.id), '[]')
      from public.check_in_points p where p.event_id = v_event.id
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object('id', t.id, 'name', t.name) order by t.position, t.id), '[]')
      from public.ticket_types t where t.id = any (v_ticket_type_ids)
    ),
    'tickets', (
      select coalesce(json_agg(json_build_object(
        'attendee_id', a.id,
        'code_hash', private.base64url(sha256(convert_to(v_salt_text || a.ticket_code, 'UTF8'))),
        'name', a.name,
        'company', a.company,
        'ticket_type_id', a.ticket_type_id,
        'status', a.status,
        'entries', case when a.checked_in then private.standing_entries(a.id) else '[]' end
      ) order by a.id), '[]')
      from unnest(v_ids[1:v_size]) i (id)
      cross join lateral (select a.* from public.attendees a where a.id = i.id offset 0) a
    ),
    'has_more', v_has_more,
    'next_cursor', private.base64url(
      v_salt || case when v_has_more
        then int8send(v_since) || int8send(v_next) || uuid_send(v_ids[v_size])
        else int8send(v_next) || int8send(v_next) || uuid_send('00000000-0000-0000-0000-000000000000')
      end
    )
  );
end
$$;
grant execute on function private.door_list to scope_checkin_write;

-- The entries by which a scanner decides: of those that an exit ended at a point with re_entry, the latest if nothing came after it.
create function private.standing_entries(attendee_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object(
      'check_in_point_id', f.check_in_point_id,
      'scanned_at', private.rfc3339(f.scanned_at),
      'exited_at', private.rfc3339(f.exited_at),
      'day', nullif(split_part(f.admission_key, '/', 2), '')
    ) order by f.id), '[]')
    from (
      select
        c.*,
        row_number() over (partition by c.check_in_point_id order by c.admission_key is null, c.scanned_at desc, c.id desc) as place
      from public.check_ins c
      where c.attendee_id = standing_entries.attendee_id
        and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) f
    where f.admission_key is not null or f.place = 1
  );
end
$$;

create function api.get_door_list(event_id uuid, cursor text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  if not exists (select from public.events e where e.id = get_door_list.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.door_list(event_id, cursor);
end
$$;
comment on function api.get_door_list is
  'What a scanner needs to decide alone, at most 1,000 tickets, or what changed since a cursor. 404 not_found; 422 validation_failed.';
grant execute on function api.get_door_list to scope_checkin_write;

-- Ids of the conflicts of a page, newest first. Security definer: under row-level security no index on an enum is used.
create function private.page_of_check_in_conflicts(event_id uuid, before uuid, size integer) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set jit = off
as $$
begin
  return array(
    select c.id
    from public.check_ins c
    where c.event_id = any (array[page_of_check_in_conflicts.event_id])
      and c.admitted and c.result = 'rejected'
      and c.organisation_id is not distinct from private.current_organisation_id()
      and c.id < before
    order by c.event_id desc, c.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_check_in_conflicts to scope_checkin_write;

create function api.list_check_in_conflicts(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
begin
  if not exists (select from public.events e where e.id = list_check_in_conflicts.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.page(
    array(
      select json_build_object(
        'object', 'check_in_conflict',
        'id', c.id,
        'event_id', c.event_id,
        'check_in', private.check_in_json(c),
        'earlier', (select private.check_in_json(e) from public.check_ins e where e.id = c.earlier_check_in_id)
      )
      from unnest(
        private.page_of_check_in_conflicts(list_check_in_conflicts.event_id, private.before_cursor(cursor), v_size + 1)
      ) with ordinality i (id, place)
      join public.check_ins c on c.id = i.id
      order by i.place
    ),
    v_size
  );
end
$$;
comment on function api.list_check_in_conflicts is
  'Scans that an offline scanner admitted and that were rejected, newest first, each with the entry that stood: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_check_in_conflicts to scope_checkin_write;

-- schemas/80-check-ins/operations.sql

-- Check-in operations: the log, checking in one ticket or a batch of offline scans, and undo.

-- Ids of the check-ins of a page, newest first: see 00-ground/pages.sql. Of an attendee, these are all there are, in no order and of
-- any organisation.
create function private.page_of_check_ins(
  attendee_id uuid, event_id uuid, result public.check_in_result, before uuid, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_results public.check_in_result[] :=
    case when page_of_check_ins.result is null then enum_range(null::public.check_in_result) else array[page_of_check_ins.result] end;
begin
  if page_of_check_ins.attendee_id is not null then
    return array(select c.id from public.check_ins c where c.attendee_id = page_of_check_ins.attendee_id);
  elsif page_of_check_ins.event_id is null then
    return array(
      select f.id
      from unnest(v_results) r (result)
      cross join lateral (
        select c.id
        from public.check_ins c
        where c.organisation_id = any (v_organisation_ids)
          and c.result = r.result
          and c.id < before
        order by c.organisation_id desc, c.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.events e where e.id = page_of_check_ins.event_id and e.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_results) r (result)
    cross join lateral (
      select c.id
      from public.check_ins c
      where c.event_id = any (array[page_of_check_ins.event_id])
        and c.result = r.result
        and c.id < before
      order by c.event_id desc, c.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_check_ins to scope_attendees_read;

create function api.list_check_ins(
  event_id uuid default null,
  attendee_id uuid default null,
  result public.check_in_result default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_ids uuid[] := private.page_of_check_ins(
    list_check_ins.attendee_id, list_check_ins.event_id, list_check_ins.result, v_before, v_size + 1
  );
  v_items json[];
begin
  v_items := array(
    select private.check_in_json(c.check_in)
    from unnest(v_ids) i (id)
    cross join lateral (
      select c.event_id, c.id, c.result, c as check_in
      from public.check_ins c
      where c.id = i.id offset 0
    ) c
    where (list_check_ins.event_id is null or c.event_id = list_check_ins.event_id)
      and (list_check_ins.result is null or c.result = list_check_ins.result)
      and c.id < v_before
    order by c.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_check_ins is 'The check-in log, newest first, rejected scans included: { data, has_more, next_cursor }.';
grant execute on function api.list_check_ins to scope_attendees_read;

-- Ids of the attendees of a page, newest first, each word of the search being in their name, their company or the reference of
-- their order: neither e-mail addresses nor external_ids count here, so that no search tells one. Security definer: a key with
-- checkin:write has no right to orders.
create function private.page_of_door_attendees(event_id uuid, search text, before uuid, size integer) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return private.search_attendees(
    private.search_patterns(search), E'\t', page_of_door_attendees.event_id, before => page_of_door_attendees.before, size => page_of_door_attendees.size
  );
end
$$;
grant execute on function private.page_of_door_attendees to scope_checkin_write;

create function api.find_attendees(
  event_id uuid, search text, cursor text default null, "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := least(private.page_size("limit"), 50);
begin
  if not exists (select from public.events e where e.id = find_attendees.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.page(
    array(
      select private.door_attendee_json(f.id)
      from unnest(
        private.page_of_door_attendees(find_attendees.event_id, search, private.before_cursor(cursor), v_size + 1)
      ) with ordinality f (id, place)
      order by f.place
    ),
    v_size
  );
end
$$;
comment on function api.find_attendees is
  'Attendees of an event by parts of name, company or order reference, newest first: { data, has_more, next_cursor }. 404 not_found; 422 validation_failed.';
grant execute on function api.find_attendees to scope_checkin_write;

-- The outcome of a scan. One that is rejected has the message that is read at the door: the transaction commits, for the scan is
-- logged; the status is not 2xx, so that a client that checks only the status admits no guest.
-- Built after the insert, so that it shows the attendee as updated by the scan.
create function private.check_in_outcome(check_in public.check_ins, starts_at timestamptz) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_json json := private.check_in_json(check_in);
  v_param text := case when check_in.code is null then 'attendee_id' else 'code' end;
begin
  if check_in.result = 'accepted' then
    return private.with_warnings(
      json_build_object('status', 200, 'data', v_json), private.warning_of_early_scan(check_in.scanned_at, starts_at)
    );
  end if;
  return json_build_object(
    'status', case check_in.reason when 'not_found' then 404 else 409 end,
    'error', json_build_object(
      'code', check_in.reason,
      'message', case check_in.reason
        when 'not_found' then case v_param when 'code' then 'No ticket has this code.' else 'No attendee has this id.' end
        when 'wrong_event' then 'This ticket is for another event.'
        when 'already_checked_in' then 'This ticket was checked in before.'
        when 'cancelled' then 'This ticket was cancelled.'
        when 'unpaid' then 'This ticket is not paid for yet.'
        when 'event_cancelled' then 'The event was cancelled.'
        when 'not_admitted_here' then 'This ticket is not for this check-in point.'
        when 'point_closed' then 'This check-in point is not open.'
        when 'not_inside' then 'This person has not come in here.'
      end,
      'param', case check_in.reason
        when 'event_cancelled' then 'event_id' when 'point_closed' then 'check_in_point_id' else v_param
      end,
      'details', json_build_object('check_in', v_json),
      'hint', case check_in.reason
        when 'not_found' then 'Scan again, or look the person up by name: find_attendees.'
        when 'wrong_event' then 'details.check_in.attendee.event_id is the event the ticket is for.'
        when 'already_checked_in' then 'details.check_in.earlier says when and where they came in.'
        when 'cancelled' then 'The person needs a new ticket.'
        when 'unpaid' then 'Record the payment of the order first.'
        when 'event_cancelled' then 'No ticket of this event can be checked in.'
        when 'not_admitted_here' then 'The check-in point lists the ticket types that it admits.'
        when 'point_closed' then 'Look at its opens_at, closes_at and status.'
        when 'not_inside' then 'There is no entry to end. Scan it as an entry to let them in.'
      end
    )
  );
end
$$;
grant execute on function private.check_in_outcome to scope_checkin_write;

create function api.check_in(
  event_id uuid,
  code text default null,
  attendee_id uuid default null,
  device text default null,
  check_in_point_id uuid default null,
  direction public.check_in_direction default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_check_in public.check_ins;
  v_starts_at timestamptz;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.starts_at into v_starts_at from public.events e where e.id = check_in.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.check_ins (event_id, check_in_point_id, code, attendee_id, direction, device)
  values (
    check_in.event_id, check_in.check_in_point_id, check_in.code, check_in.attendee_id, coalesce(check_in.direction, 'entry'),
    check_in.device
  )
  returning * into v_check_in;
  return private.record_outcome(idempotency_key, request_fingerprint, private.check_in_outcome(v_check_in, v_starts_at));
end
$$;
comment on function api.check_in is
  'Checks a ticket in, by its code or by attendee_id: 200 with the check-in. 404 not_found; 409 wrong_event, already_checked_in, cancelled, unpaid, event_cancelled, not_admitted_here, point_closed, not_inside, each logged and with the check-in in details; 422 validation_failed.';
grant execute on function api.check_in to scope_checkin_write;

-- A cancellation or a payment of an order locks the order, and then its attendees in any order. So a batch, which locks many
-- attendees, takes the event lock and the orders first, as everywhere, and holds them; then it locks all its attendees in the
-- order of their ids, before it judges the first scan: two batches, even of two events, take theirs in one order.
-- `scans` have a code or an attendee_id each. Security definer: a key with checkin:write has no right to orders.
create function private.lock_orders_of(event_id uuid, scans jsonb[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_codes text[] := array(select private.as_ticket_code(s ->> 'code') from unnest(scans) s);
  v_attendee_ids uuid[] := array(
    select a.id from public.attendees a where a.organisation_id = v_organisation_id and a.ticket_code = any (v_codes)
  ) || array(select (s ->> 'attendee_id')::uuid from unnest(scans) s where s ->> 'attendee_id' is not null);
begin
  perform private.lock_event_shared(event_id);
  perform 1
  from public.orders o
  where o.id = any (array(
    select a.order_id from public.attendees a
    where a.id = any (v_attendee_ids) and a.organisation_id is not distinct from v_organisation_id
  ))
  order by o.id
  for share;
  perform 1
  from public.attendees a
  where a.id = any (v_attendee_ids) and a.organisation_id is not distinct from v_organisation_id
  order by a.id
  for no key update;
end
$$;
grant execute on function private.lock_orders_of to scope_checkin_write;

-- Scans of an offline scanner, judged in the order in which they were made. Each has a scan_id given by the scanner; a known
-- one is answered again, so the same batch may be sent until it arrives. In parts, until all are judged or the time is up.
create function api.check_in_batch(
  event_id uuid,
  scans jsonb,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_scans jsonb[];
  v_judged integer := 0;
  v_known_ids text[];
  v_results json;
  v_accepted integer;
  v_first_at timestamptz;
  v_starts_at timestamptz;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  select e.starts_at into v_starts_at from public.events e where e.id = check_in_batch.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  v_scans := array(
    select s from jsonb_array_elements(scans) s order by (s ->> 'scanned_at')::timestamptz, s ->> 'scan_id'
  );

  -- One batch of an event at a time: no other may add a scan between the look-up and the insert.
  perform private.limit_lock_waits();
  perform pg_advisory_xact_lock(3, hashtext(check_in_batch.event_id::text));
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_scans := v_scans[:c_part];
  end if;
  perform private.limit_lock_waits();
  perform private.lock_orders_of(event_id, v_scans);
  v_known_ids := array(
    select c.scan_id
    from public.check_ins c
    where c.event_id = check_in_batch.event_id
      and c.scan_id = any (array(select s ->> 'scan_id' from unnest(v_scans) s))
  );

  loop
    insert into public.check_ins (
      event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at
    )
    select
      check_in_batch.event_id, s.check_in_point_id, s.code, s.attendee_id, coalesce(s.direction, 'entry'), s.device, s.scan_id, s.admitted,
      s.scanned_at
    from jsonb_to_recordset(to_jsonb(v_scans[v_judged + 1:v_judged + c_part])) s (
      scan_id text, check_in_point_id uuid, code text, attendee_id uuid, direction public.check_in_direction, admitted boolean,
      scanned_at timestamptz, device text
    )
    where s.scan_id <> all (v_known_ids)
    order by s.scanned_at, s.scan_id;
    v_judged := least(v_judged + c_part, cardinality(v_scans));
    exit when v_judged = cardinality(v_scans) or private.is_time_up();
  end loop;

  select
    json_agg(
      json_build_object(
        'scan_id', s.scan_id,
        'replayed', s.scan_id = any (v_known_ids),
        'check_in', private.check_in_json(row(c.*)::public.check_ins)
      )
      order by s.scanned_at, s.scan_id
    ),
    count(*) filter (where c.result = 'accepted'),
    min(c.scanned_at) filter (where c.result = 'accepted')
  into v_results, v_accepted, v_first_at
  from jsonb_to_recordset(to_jsonb(v_scans[:v_judged])) s (scan_id text, scanned_at timestamptz)
  cross join lateral (
    select c.* from public.check_ins c where c.event_id = check_in_batch.event_id and c.scan_id = s.scan_id offset 0
  ) c;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object(
        'status', 200,
        'data', json_build_object(
          'object', 'check_in_batch',
          'event_id', check_in_batch.event_id,
          'accepted', v_accepted,
          'rejected', json_array_length(v_results) - v_accepted,
          'remaining', jsonb_array_length(scans) - v_judged,
          'results', v_results
        )
      ),
      private.warning_of_early_scan(v_first_at, v_starts_at)
    )
  );
end
$$;
comment on function api.check_in_batch is
  'Judges up to 500 offline scans in the order of scanned_at, each once: 200 with a verdict for each that it reached in time. 404 not_found; 422 validation_failed.';
grant execute on function api.check_in_batch to scope_checkin_write;

-- The attendee before the scan, as a scan does that ends an entry. Security definer: a key with checkin:write may not lock attendees.
create function private.lock_attendee_of(check_in_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1
  from public.attendees a
  where a.id = (select c.attendee_id from public.check_ins c where c.id = check_in_id)
    and a.organisation_id is not distinct from private.current_organisation_id()
  for no key update;
end
$$;
grant execute on function private.lock_attendee_of to scope_checkin_write;

create function api.undo_check_in(
  check_in_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_check_in public.check_ins;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  perform private.lock_attendee_of(check_in_id);
  update public.check_ins c set undone_at = now() where c.id = undo_check_in.check_in_id
  returning * into v_check_in;
  if not found then
    perform private.refuse_not_found('check_in_id');
  end if;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 200, 'data', private.check_in_json(v_check_in))
  );
end
$$;
comment on function api.undo_check_in is
  'Takes an accepted check-in back, so that the ticket can be scanned again: 200. 404 not_found; 409 check_in_not_accepted, check_in_already_undone, already_checked_in (an exit, and they came in again).';
grant execute on function api.undo_check_in to scope_checkin_write;

create function api.check_in_many(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_event_id uuid;
begin
  -- As check_in_batch does: tickets are locked in one order before the first is judged.
  for v_event_id in select distinct (c ->> 'event_id')::uuid from unnest(v_calls) c order by 1 loop
    perform private.lock_orders_of(v_event_id, v_calls);
  end loop;
  return to_json(private.answer_calls('check_in_calls', v_calls));
end
$$;
comment on function api.check_in_many is
  'Calls of check_in by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.check_in_many to scope_checkin_write;

-- The arguments of a call of check_in, with the id of its check-in.
create type private.scan as (
  id uuid,
  event_id uuid,
  code text,
  attendee_id uuid,
  device text,
  check_in_point_id uuid,
  direction public.check_in_direction,
  idempotency_key text,
  request_fingerprint text
);

-- Raises as register_attendee_calls does. All scans are one statement, judged in the order of the calls.
create function private.check_in_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_scans private.scan[] := array(
    select jsonb_populate_record(null::private.scan, c.call || jsonb_build_object('id', private.uuid_v7()))
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
  v_one private.scan := v_scans[1];
  v_check_ins public.check_ins[];
  v_starts jsonb;
begin
  if cardinality(calls) = 1 then
    return array[api.check_in(
      v_one.event_id, v_one.code, v_one.attendee_id, v_one.device, v_one.check_in_point_id, v_one.direction, v_one.idempotency_key,
      v_one.request_fingerprint
    )];
  end if;

  select coalesce(jsonb_object_agg(e.id, e.starts_at), '{}') into v_starts
  from public.events e
  where e.id = any (array(select s.event_id from unnest(v_scans) s));
  -- A key that is sent twice, an outcome to replay, and an unknown event are for calls that are alone.
  if (
    select count(s.idempotency_key) <> count(distinct s.idempotency_key)
      or bool_or(private.replay_outcome(s.idempotency_key, s.request_fingerprint) is not null)
    from unnest(v_scans) s
  ) or not v_starts ?& array(select s.event_id::text from unnest(v_scans) s) then
    raise exception 'divide';
  end if;

  with added as (
    insert into public.check_ins (id, event_id, check_in_point_id, code, attendee_id, direction, device)
    select s.id, s.event_id, s.check_in_point_id, s.code, s.attendee_id, coalesce(s.direction, 'entry'), s.device
    from unnest(v_scans) with ordinality s
    order by s.ordinality
    returning *
  )
  select array_agg(row(a.*)::public.check_ins) into v_check_ins from added a;

  -- A ticket that is rejected and then let in was not in yet when it was rejected, which its attendee, read below, does not show.
  if exists (
    select from unnest(v_check_ins) with ordinality r
    join unnest(v_check_ins) with ordinality c on c.attendee_id = r.attendee_id and c.ordinality > r.ordinality
    where r.result = 'rejected' and c.result = 'accepted'
  ) then
    raise exception 'divide';
  end if;

  return array(
    select private.record_outcome(
      s.idempotency_key,
      s.request_fingerprint,
      private.check_in_outcome(row(c.*)::public.check_ins, (v_starts ->> s.event_id::text)::timestamptz)
    )
    from unnest(v_scans) with ordinality s
    join unnest(v_check_ins) c on c.id = s.id
    order by s.ordinality
  );
end
$$;
grant execute on function private.check_in_calls to scope_checkin_write;

-- schemas/80-check-ins/realtime.sql

-- Live arrivals for members, by Supabase Realtime where it is present: one message for each statement and event, on the private topic
-- arrivals:EVENT_ID. Not realtime.broadcast_changes, which sends the whole row, and with it what was scanned.
-- Security definer: whoever scans may not write messages.

create function private.tg_check_ins__broadcast() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_arrivals record;
begin
  if to_regnamespace('realtime') is null or to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then
    return null;
  end if;
  begin
    for v_arrivals in
      select n.event_id, jsonb_agg(jsonb_build_object(
        'check_in_id', n.id, 'attendee_id', a.id, 'name', a.name, 'company', a.company, 'ticket_type_id', a.ticket_type_id,
        'scanned_at', private.rfc3339(n.scanned_at)
      ) order by n.id) as people
      from new_rows n
      join public.attendees a on a.id = n.attendee_id
      where n.result = 'accepted' and n.direction = 'entry'
      group by n.event_id
    loop
      execute 'select realtime.send($1, $2, $3, true)'
      using
        jsonb_build_object('event_id', v_arrivals.event_id, 'arrivals', v_arrivals.people), 'arrivals', 'arrivals:' || v_arrivals.event_id;
    end loop;
  exception when others then
    -- Nobody is kept out because a screen does not move.
    raise warning 'Realtime: %', sqlerrm;
  end;
  return null;
end
$$;
create trigger check_ins_900_broadcast after insert on public.check_ins
  referencing new table as new_rows for each statement execute function private.tg_check_ins__broadcast();

-- Members may listen to the events of their organisations.
create function private.may_listen(topic text) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
begin
  return exists (
    select from public.events e
    where topic = 'arrivals:' || e.id
      and e.organisation_id in (select private.organisations_as('{owner,manager,door,viewer}'))
  );
end
$$;
grant execute on function private.may_listen to authenticated;

do $$
begin
  if to_regclass('realtime.messages') is not null then
    create policy usher_members_listen_to_arrivals on realtime.messages for select to authenticated
      using (private.may_listen((select realtime.topic())));
  end if;
end
$$;

-- schemas/80-check-ins/studio.sql

-- Who is expected at the door, and who came when, for organisers. With the rights of whoever reads them: see 20-events/studio.sql.

create view public.door_list with (security_invoker = true) as
select
  a.organisation_id,
  a.event_id,
  e.name as event,
  a.id as attendee_id,
  a.name,
  a.company,
  t.name as ticket_type,
  o.reference,
  a.status,
  a.checked_in_at
from public.attendees a
join public.events e on e.id = a.event_id
join public.ticket_types t on t.id = a.ticket_type_id
join public.orders o on o.id = a.order_id
where a.status <> 'cancelled'
order by a.event_id, lower(a.name), a.id;
comment on view public.door_list is 'Who is expected, by name. Ticket codes are in the function ticket_codes.';

-- Days and hours are without a time zone: one with it is shown in that of the session, which in Studio is UTC.
create view public.arrivals with (security_invoker = true) as
select
  f.organisation_id,
  f.event_id,
  f.event,
  f.check_in_point_id,
  p.name as check_in_point,
  f.arrived_at::date as day,
  date_trunc('hour', f.arrived_at) as hour,
  count(*) as arrived
from (
  select
    e.organisation_id,
    c.event_id,
    e.name as event,
    c.check_in_point_id,
    min(c.scanned_at at time zone e.timezone) as arrived_at
  from public.check_ins c
  join public.events e on e.id = c.event_id
  join public.attendees a on a.id = c.attendee_id
  where c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null and a.status <> 'cancelled'
  group by e.id, c.event_id, c.check_in_point_id, c.attendee_id, (c.scanned_at at time zone e.timezone)::date
) f
left join public.check_in_points p on p.id = f.check_in_point_id
group by f.organisation_id, f.event_id, f.event, f.check_in_point_id, p.name, f.arrived_at::date, date_trunc('hour', f.arrived_at)
order by f.event_id, hour, check_in_point, f.check_in_point_id;
comment on view public.arrivals is
  'How many people came in, by check-in point (empty: the event as such), day and hour of the event''s time zone. Each person counts once a day at each point.';
create trigger door_list_100_read_only instead of insert or update or delete on public.door_list
  for each row execute function private.tg__refuse_write();
create trigger arrivals_100_read_only instead of insert or update or delete on public.arrivals
  for each row execute function private.tg__refuse_write();

revoke all on public.door_list from anon, authenticated, service_role;
revoke all on public.arrivals from anon, authenticated, service_role;
grant select on public.door_list to authenticated;
grant select on public.arrivals to authenticated;

-- schemas/20-events/planned-steps.sql

-- What apply_event and public.copy_event do: match, move, copy, change and add what belongs to an event, step by step. Whether it is a plan
-- or done for good, 20-events/plans.sql decides.

-- What may be written of each table; the first names the row.
create function private.planned_fields("table" text) returns text[]
language plpgsql immutable set search_path = ''
as $$
begin
  return case "table"
    when 'events' then array[
      'name', 'slug', 'description', 'starts_at', 'ends_at', 'timezone', 'locale', 'venue_name', 'venue_address', 'venue_city',
      'venue_postcode', 'venue_country', 'online_url', 'capacity', 'waiting_list_offer_hours', 'currency', 'payment_due_days',
      'external_id', 'metadata'
    ]
    when 'ticket_types' then array[
      'name', 'description', 'price', 'quantity', 'min_per_order', 'max_per_order', 'sales_start_at', 'sales_end_at', 'visibility',
      'position', 'external_id', 'metadata', 'status'
    ]
    when 'promo_codes' then array[
      'code', 'percent_off', 'amount_off', 'valid_from', 'valid_until', 'max_redemptions', 'ticket_type_ids', 'status'
    ]
    when 'check_in_points' then array['name', 'ticket_type_ids', 'opens_at', 'closes_at', 'admission', 'status']
  end;
end
$$;
grant execute on function private.planned_fields to scope_events_write;

-- The members of `fields` that may be written, in the form that the columns give them.
create function private.planned_row("table" text, fields jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_row jsonb;
begin
  execute format('select to_jsonb(r) from jsonb_populate_record(null::public.%I, $1) r', "table") into v_row using fields;
  return (
    select coalesce(jsonb_object_agg(f.key, f.value), '{}')
    from jsonb_each(v_row) f
    where fields ? f.key and f.key = any (private.planned_fields("table"))
  );
end
$$;
grant execute on function private.planned_row to scope_events_write;

-- Adds a row; what `fields` does not name gets the defaults of the table.
create function private.add_row("table" text, parent text, parent_id uuid, fields jsonb) returns uuid
language plpgsql volatile set search_path = ''
as $$
declare
  v_columns text := (select string_agg(format('%I', c), ', ') from jsonb_object_keys(fields || jsonb_build_object(parent, parent_id)) c);
  v_id uuid;
begin
  execute format('insert into public.%1$I (%2$s) select %2$s from jsonb_populate_record(null::public.%1$I, $1) returning id', "table", v_columns)
  into v_id using fields || jsonb_build_object(parent, parent_id);
  return v_id;
end
$$;
grant execute on function private.add_row to scope_events_write;

-- The rows of an event, in their order, each with its name as it is compared: all, those in use, or of these those that have times. All of
-- them are matched, copied or moved, each in a savepoint, so there is a limit.
create function private.rows_of_event("table" text, event_id uuid, in_use boolean, timed boolean) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_most constant integer := 500;
  v_fields text[] := private.planned_fields("table");
  v_times text := (select string_agg(format('r.%I', f), ', ') from unnest(v_fields) f where f ~ '_at$|^valid_');
  v_rows jsonb;
begin
  execute format(
    'select coalesce(jsonb_agg(to_jsonb(r) || jsonb_build_object(''folded'', private.search_form(r.%I)) order by r.%I, r.id), ''[]'')
     from (
       select r.* from public.%I r
       where r.event_id = $1 and (not $2 or r.status = ''active'') and (not $3 or num_nonnulls(%s) > 0)
       limit $4
     ) r',
    v_fields[1], case "table" when 'ticket_types' then 'position' else 'created_at' end, "table", v_times
  )
  into v_rows using event_id, in_use, timed, v_most + 1;
  if jsonb_array_length(v_rows) > v_most then
    perform private.refuse_value(
      "table", 'The event has more than 500 of these, which is too many for one plan.',
      'Change them one by one. A copy leaves them out if this list is empty and archive_missing is true.'
    );
  end if;
  return v_rows;
end
$$;
grant execute on function private.rows_of_event to scope_events_write;

-- Where in `rows` each id, external_id and name stands, so that matching a list costs no more for a long one.
create function private.places_by_name(rows jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(k.key, k.places), '{}')
    from (
      select k.key, jsonb_agg(distinct r.n - 1) as places
      from jsonb_array_elements(rows) with ordinality r (r, n)
      cross join unnest(array['#' || (r.r ->> 'id'), '=' || (r.r ->> 'external_id'), '~' || (r.r ->> 'folded')]) k (key)
      where k.key is not null
      group by k.key
    ) k
  );
end
$$;
grant execute on function private.places_by_name to scope_events_write;

-- The one of `rows` that has this reference: an id, which is never taken for a name, an external_id, or a name as it is searched. One in
-- use wins over others. Null: none.
create function private.row_meant(rows jsonb, places jsonb, reference text, param text) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_found jsonb[] := array(
    select rows -> p.place
    from (
      select jsonb_array_elements_text(places -> ('=' || reference))::integer as place
      union
      select jsonb_array_elements_text(places -> ('~' || private.search_form(btrim(reference))))::integer
    ) p
    order by p.place
  );
  v_in_use jsonb[];
begin
  if places ? ('#' || reference) then
    return rows -> (places -> ('#' || reference) ->> 0)::integer;
  elsif cardinality(v_found) < 2 then
    return v_found[1];
  end if;
  v_in_use := array(select r from unnest(v_found) r where r ->> 'status' = 'active');
  if cardinality(v_in_use) <> 1 then
    perform private.refuse_ambiguous(param, (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'id', r -> 'id', 'name', r -> 'name', 'status', r -> 'status', 'price', r -> 'price', 'external_id', r -> 'external_id'
      )))
      from unnest(v_found[1:10]) r
    ));
  end if;
  return v_in_use[1];
end
$$;
grant execute on function private.row_meant to scope_events_write;

-- What of `rows` an item of a list is: what its id names, else its external_id, else its name unless that row has another external_id.
create function private.row_of_item("table" text, rows jsonb, places jsonb, item jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_label text := (private.planned_fields("table"))[1];
  v_place jsonb := places -> ('=' || (item ->> 'external_id')) -> 0;
  v_row jsonb;
begin
  if item ? 'id' then
    v_row := private.row_meant(rows, places, item ->> 'id', 'id');
    if v_row is null then
      perform private.refuse(
        404, 'not_found', 'The event has nothing with this id, external_id or name.', 'id',
        jsonb_build_object('names', (
          select coalesce(jsonb_agg(n.name), '[]') from (select r -> v_label as name from jsonb_array_elements(rows) r limit 10) n
        )),
        'Leave id out to add it as new.'
      );
    end if;
  elsif v_place is not null then
    v_row := rows -> v_place::integer;
  elsif item ->> v_label is not null then
    v_row := private.row_meant(rows, places, item ->> v_label, v_label);
    if v_row ->> 'external_id' is not null and item ->> 'external_id' is not null then
      v_row := null;
    end if;
  end if;
  return v_row;
end
$$;
grant execute on function private.row_of_item to scope_events_write;

-- By how much everything moves, and between which zones. A copy moves all its times. Of an event that moves itself, sales and codes that
-- have begun or ended stay so: a sale that runs goes on. A door opens with the event.
create type private.event_move as (distance interval, from_zone text, to_zone text, is_copy boolean);

-- The times of a row as they move, at the same hour of the event's day on either side of a change of daylight saving time.
create function private.moved_times("row" jsonb, move private.event_move) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(
      f.key, ((f.value::timestamptz at time zone move.from_zone) + move.distance) at time zone move.to_zone
    ), '{}')
    from jsonb_each_text("row") f
    where f.key in ('starts_at', 'ends_at', 'sales_start_at', 'sales_end_at', 'valid_from', 'valid_until', 'opens_at', 'closes_at')
      and f.value is not null
      and move.distance is not null
      and (move.is_copy or f.key in ('starts_at', 'ends_at', 'opens_at', 'closes_at') or f.value::timestamptz > now())
  );
end
$$;
grant execute on function private.moved_times to scope_events_write;

-- How far an event moves: by a duration, to a day at the same hour, or to a time. Always days and hours from the start, so that all times
-- keep their distance to it.
create function private.move_distance(event public.events, "to" text, timezone text) returns interval
language plpgsql stable set search_path = ''
as $$
declare
  v_start timestamp := event.starts_at at time zone event.timezone;
begin
  if v_start is null then
    perform private.refuse_value('move', 'The event has no start from which it could move.', 'Set starts_at and ends_at in changes.');
  end if;
  return case
    when "to" ~ '^-P' then v_start - substr("to", 2)::interval
    when "to" ~ '^P' then v_start + "to"::interval
    when "to" ~ '^\d{4}-\d{2}-\d{2}$' then "to"::date + v_start::time
    else "to"::timestamptz at time zone timezone
  end - v_start;
exception when data_exception then
  perform private.refuse_value('move', 'This is no duration, day or time.', 'P7D, 2027-05-03 or 2027-05-03T10:00:00+02:00, for example.');
end
$$;
grant execute on function private.move_distance to scope_events_write;

-- How the event of a plan moves; without a distance if it stays.
create function private.move_of_plan(base public.events, arguments jsonb, is_copy boolean) returns private.event_move
language plpgsql stable set search_path = ''
as $$
declare
  v_starts_at text := arguments #>> '{changes,starts_at}';
  v_move private.event_move := (null, base.timezone, coalesce(arguments #>> '{changes,timezone}', base.timezone), is_copy);
begin
  if arguments ? 'move' then
    if base.id is null then
      perform private.refuse_value('move', 'Only an event that exists, or the copy of one, moves.', 'Name it as event or copy_of.');
    end if;
    v_move.distance := private.move_distance(base, arguments ->> 'move', v_move.to_zone);
    if arguments -> 'changes' ? 'starts_at'
      and v_move.distance is distinct from private.move_distance(base, v_starts_at, v_move.to_zone) then
      perform private.refuse_value('move', 'The event would move to another time than starts_at says.', 'Send move or starts_at.');
    end if;
  elsif is_copy and base.starts_at is not null then
    if v_starts_at is null then
      perform private.refuse_value(
        'move', 'A copy needs a start of its own.', 'Send move, such as P52W or 2028-05-03, or starts_at in changes.'
      );
    end if;
    v_move.distance := private.move_distance(base, v_starts_at, v_move.to_zone);
  end if;
  return v_move;
end
$$;
grant execute on function private.move_of_plan to scope_events_write;

-- A time as people at the event read it: 2027-05-03T10:00:00+02:00.
create function private.zoned_time(moment timestamptz, timezone text) returns text
language plpgsql stable set search_path = ''
as $$
declare
  v_offset interval := (moment at time zone timezone) - (moment at time zone 'UTC');
begin
  return to_char(moment at time zone timezone, 'YYYY-MM-DD"T"HH24:MI:SS')
    || case when v_offset < interval '0' then '-' else '+' end
    || to_char(greatest(v_offset, -v_offset), 'HH24:MI');
end
$$;
grant execute on function private.zoned_time to scope_events_write;

-- Fields as a plan says them: money in words, times in the event's zone, ticket types by their names, long texts and lists cut.
create function private.plan_words(fields jsonb, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(
      case f.key when 'ticket_type_ids' then 'ticket_types' else f.key end,
      case
        when f.value = 'null' then f.value
        when f.key in ('price', 'amount_off') then to_jsonb(private.money_text((f.value #>> '{}')::bigint, event.currency))
        when f.key ~ '_at$|^valid_' then to_jsonb(private.zoned_time((f.value #>> '{}')::timestamptz, event.timezone))
        when f.key = 'ticket_type_ids' then (
          select coalesce(jsonb_agg(coalesce(t.name, '…')), '[]')
          from jsonb_array_elements_text(f.value) with ordinality i (id, place)
          left join lateral (select t.name from public.ticket_types t where t.id = i.id::uuid and i.place <= 10 offset 0) t on true
          where i.place <= 11
        )
        when length(f.value #>> '{}') > 100 then to_jsonb(left(f.value #>> '{}', 100) || '…')
        else f.value
      end
    ), '{}')
    from jsonb_each(fields) f
  );
end
$$;
grant execute on function private.plan_words to scope_events_write;
grant execute on function private.money_text to scope_events_write;

-- A new row as a plan says it, without what goes without saying.
create function private.plan_of_new(label text, fields jsonb, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_usual constant jsonb :=
    '{"status": "active", "visibility": "public", "min_per_order": 1, "admission": "once", "waiting_list_offer_hours": 24}';
begin
  return private.plan_words(
    (
      select coalesce(jsonb_object_agg(f.key, f.value), '{}')
      from jsonb_each(fields) f
      where f.key not in (label, 'position')
        and f.value not in ('null', '{}', '[]')
        and f.value is distinct from v_usual -> f.key
    ),
    event
  );
end
$$;
grant execute on function private.plan_of_new to scope_events_write;

-- The ticket types, of `rows`, that a list of names, ids or external_ids means. `copies` has what became of those of a copied event;
-- names in `refused` are of ticket types that could not be added, which is said already.
create function private.ticket_types_meant(rows jsonb, places jsonb, names jsonb, copies jsonb, refused text[]) returns uuid[]
language plpgsql stable set search_path = ''
as $$
declare
  v_name text;
  v_row jsonb;
  v_ids uuid[] := '{}';
begin
  for v_name in select * from jsonb_array_elements_text(names) loop
    v_row := private.row_meant(rows, places, coalesce(copies ->> v_name, v_name), 'ticket_types');
    if v_row is not null then
      v_ids := v_ids || (v_row ->> 'id')::uuid;
    elsif private.search_form(btrim(v_name)) <> all (refused) then
      perform private.refuse(
        422, 'validation_failed', 'A ticket type of the list is none of the event.', 'ticket_types',
        jsonb_build_object('ticket_types', (
          select coalesce(jsonb_agg(n.name), '[]') from (select r -> 'name' as name from jsonb_array_elements(rows) r limit 10) n
        )),
        'Name one of details.ticket_types, or add it to ticket_types.'
      );
    end if;
  end loop;
  return array(select distinct i from unnest(v_ids) i order by i);
end
$$;
grant execute on function private.ticket_types_meant to scope_events_write;

-- What is changed of a row, as [old, new].
create function private.plan_changes(old_row jsonb, fields jsonb, was public.events, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(n.key, jsonb_build_array(o.value, n.value))
    from jsonb_each(private.plan_words(fields, event)) n
    left join jsonb_each(private.plan_words(
      (select jsonb_object_agg(f.key, old_row -> f.key) from jsonb_object_keys(fields) f (key)), was
    )) o using (key)
  );
end
$$;
grant execute on function private.plan_changes to scope_events_write;

-- What differs from the row; null if nothing does.
create function private.fields_to_change("table" text, old_row jsonb, fields jsonb) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(f.key, f.value)
    from jsonb_each(private.planned_row("table", fields)) f
    where f.value is distinct from old_row -> f.key
  );
end
$$;
grant execute on function private.fields_to_change to scope_events_write;

-- One row as it is to be: changed where the event has it, else added. Answers its step; `unchanged` where there is nothing to do.
create function private.carry_out_item(
  "table" text, event public.events, was public.events, "row" jsonb, fields jsonb, is_copy boolean
) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_label text := (private.planned_fields("table"))[1];
  v_fields jsonb;
  v_id uuid := "row" ->> 'id';
begin
  if "row" is null or is_copy then
    v_fields := private.planned_row("table", coalesce("row" - 'external_id', '{}') || fields);
    if v_fields ->> v_label is null then
      perform private.refuse_value(v_label, 'What is to be added needs a name, or a promo code its code.');
    end if;
    v_id := private.add_row("table", 'event_id', event.id, v_fields);
    return jsonb_build_object(
      'action', 'create', 'kind', rtrim("table", 's'), 'name', v_fields -> v_label, 'id', v_id,
      'changes', private.plan_of_new(v_label, v_fields, event)
    );
  end if;

  v_fields := private.fields_to_change("table", "row", fields);
  if v_fields is null then
    return jsonb_build_object('action', 'unchanged', 'id', v_id);
  end if;
  case "table"
    when 'ticket_types' then perform api.update_ticket_type(v_id, v_fields);
    when 'promo_codes' then perform api.update_promo_code(v_id, v_fields);
    when 'check_in_points' then perform api.update_check_in_point(v_id, v_fields);
  end case;
  return jsonb_strip_nulls(jsonb_build_object(
    'action', case when v_fields ->> 'status' in ('archived', 'disabled') then 'archive' else 'change' end,
    'kind', rtrim("table", 's'), 'name', "row" -> v_label, 'id', v_id,
    -- Said, because a change alone does not bring it back.
    'status', case when not v_fields ? 'status' and "row" ->> 'status' <> 'active' then "row" -> 'status' end
  )) || jsonb_build_object('changes', private.plan_changes("row", v_fields, was, event));
end
$$;
grant execute on function private.carry_out_item to scope_events_write;

-- The event's own fields: added, copied or changed.
create function private.carry_out_fields(
  organisation_id uuid, base public.events, changes jsonb, move private.event_move
) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_fields jsonb := private.moved_times(to_jsonb(base), move)
    || changes || case when changes ? 'venue' then private.venue_columns(changes -> 'venue') else '{}' end;
  v_event public.events;
  v_id uuid;
begin
  if base.id is not null and not move.is_copy then
    v_fields := private.fields_to_change('events', to_jsonb(base), v_fields);
    if v_fields is null then
      return jsonb_build_object('action', 'unchanged', 'id', base.id);
    end if;
    perform api.update_event(base.id, v_fields);
    select e.* into v_event from public.events e where e.id = base.id;
    return jsonb_build_object(
      'action', 'change', 'kind', 'event', 'name', base.name, 'id', base.id,
      'changes', private.plan_changes(to_jsonb(base), v_fields, base, v_event)
    );
  end if;
  if move.is_copy then
    -- Its slug is made from its name, and an external_id belongs to one event.
    v_fields := (to_jsonb(base) - '{slug,external_id}'::text[]) || v_fields;
  end if;
  v_fields := private.planned_row('events', v_fields);
  if v_fields ->> 'name' is null then
    perform private.refuse_value(
      'name', 'A new event needs a name.', 'Name it in changes; to change an event that exists, name that as event.'
    );
  end if;
  v_id := private.add_row('events', 'organisation_id', organisation_id, v_fields);
  select e.* into v_event from public.events e where e.id = v_id;
  return jsonb_build_object(
    'action', 'create', 'kind', 'event', 'name', v_event.name, 'id', v_event.id,
    'changes', private.plan_of_new('name', v_fields, v_event)
  );
end
$$;
grant execute on function private.carry_out_fields to scope_events_write;

-- What is allowed and yet likely to be meant otherwise.
create function private.plan_warnings(base public.events, event public.events, source_id uuid, moves boolean) returns jsonb[]
language plpgsql stable set search_path = ''
as $$
declare
  -- When all is done: a ticket type may have been raised as well.
  v_warnings jsonb[] := array[case when base.id = event.id then private.warning_of_capacity(base, event) end];
begin
  if (base.id is null or source_id is not null) and exists (
    select from public.events e
    where e.organisation_id = event.organisation_id and e.id <> event.id and private.search_form(e.name) = private.search_form(event.name)
  ) then
    v_warnings := v_warnings || private.warning(
      'name_taken', 'Another event has this name. To change that one, name it as event.'
    );
  end if;
  if base.id is not null and source_id is null and not moves and event.starts_at <> base.starts_at and (
    exists (select from public.ticket_types t where t.event_id = event.id and coalesce(t.sales_start_at, t.sales_end_at) is not null)
    or exists (select from public.promo_codes c where c.event_id = event.id and coalesce(c.valid_from, c.valid_until) is not null)
    or exists (select from public.check_in_points p where p.event_id = event.id and coalesce(p.opens_at, p.closes_at) is not null)
  ) then
    v_warnings := v_warnings || private.warning(
      'windows_stay', 'Sales, promo codes and check-in points keep their times. To move all, send move in place of starts_at.'
    );
  end if;
  return v_warnings;
end
$$;
grant execute on function private.plan_warnings to scope_events_write;

-- The same of a step. `written` are its fields as they were sent.
create function private.step_warnings("table" text, id uuid, written jsonb, event public.events) returns jsonb[]
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events := event;
  v_ticket_type public.ticket_types;
  v_promo_code public.promo_codes;
begin
  if "table" = 'events' then
    select e.* into v_event from public.events e where e.id = step_warnings.id;
  elsif "table" = 'ticket_types' and written ? 'price' then
    select t.* into v_ticket_type from public.ticket_types t where t.id = step_warnings.id;
  elsif "table" = 'promo_codes' and written ? 'percent_off' then
    select c.* into v_promo_code from public.promo_codes c where c.id = step_warnings.id;
  end if;
  return array[
    private.warning_of_offset_in(written, v_event.timezone),
    case when v_ticket_type.id is not null then private.warning_of_price(v_ticket_type) end,
    case when v_promo_code.id is not null then private.warning_of_percentage(v_promo_code) end
  ];
end
$$;
grant execute on function private.step_warnings to scope_events_write;

-- Nobody registers meanwhile, and what is changed is locked in the order of 20-events/locks.sql.
create function private.lock_event_of_plan(event_id uuid, arguments jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform from public.events e where e.id = lock_event_of_plan.event_id for no key update;
  perform private.lock_event_exclusive(event_id);
  if arguments ?| '{promo_codes,move}' then
    perform from public.promo_codes c where c.event_id = lock_event_of_plan.event_id order by c.id for no key update;
  end if;
  perform private.lock_event_capacity(event_id);
  perform from public.ticket_types t where t.event_id = lock_event_of_plan.event_id order by t.id for no key update;
end
$$;
grant execute on function private.lock_event_of_plan to scope_events_write;

-- Does what the arguments of apply_event say, to an event, a copy of one, or a new one, and answers what was read, each step, and the event.
-- Each step has a savepoint, so that all refusals are named; whoever calls it rolls back if there are any.
create function private.carry_out_event(arguments jsonb, organisation_id uuid, event_id uuid, source_id uuid) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_lists constant text[] := '{ticket_types,promo_codes,check_in_points}';
  v_changes jsonb := coalesce(arguments -> 'changes', '{}') - 'status';
  v_status public.event_status := arguments #>> '{changes,status}';
  v_is_copy boolean := source_id is not null;
  v_only_listed boolean := coalesce((arguments ->> 'archive_missing')::boolean, false);
  v_base public.events;
  v_event public.events;
  v_move private.event_move;
  v_rows jsonb := '{}';
  v_places jsonb;
  v_types jsonb;
  v_type_places jsonb;
  v_read jsonb := '{}';
  v_table text;
  v_is_listed boolean;
  v_pass integer;
  v_items jsonb;
  v_item jsonb;
  v_row jsonb;
  v_fields jsonb;
  v_name text;
  v_key text;
  v_step jsonb;
  v_steps jsonb[] := '{}';
  v_unchanged integer := 0;
  v_refusals integer := 0;
  v_taken text[] := '{}';
  v_refused text[] := '{}';
  v_copies jsonb := '{}';
  v_notice jsonb;
  v_warnings jsonb[] := '{}';
  v_state text;
  v_message text;
  v_detail text;
  v_hint text;
  v_rule text;
begin
  if event_id is not null then
    perform private.lock_event_of_plan(event_id, arguments);
  end if;
  select e.* into v_base from public.events e where e.id = coalesce(event_id, source_id);
  v_move := private.move_of_plan(v_base, arguments, v_is_copy);

  if v_base.id is not null then
    v_read := jsonb_build_object('event', v_base.version);
    foreach v_table in array v_lists loop
      -- What a copy leaves out is not read.
      continue when v_is_copy and v_only_listed and arguments -> v_table = '[]';
      v_is_listed := arguments ? v_table or v_table = 'ticket_types' and arguments ?| v_lists;
      if v_is_listed or v_move.distance is not null or v_is_copy then
        v_items := private.rows_of_event(
          v_table, v_base.id, v_is_copy or not v_is_listed, not (v_is_copy or v_is_listed)
        );
        if v_is_copy then
          -- A copy is in the same order, whichever row is added first.
          v_items := (
            select coalesce(jsonb_agg(r || jsonb_build_object('position', n - 1) order by n), '[]')
            from jsonb_array_elements(v_items) with ordinality i (r, n)
          );
        end if;
        v_rows := v_rows || jsonb_build_object(v_table, v_items);
        v_read := v_read || jsonb_build_object(v_table, (
          select md5(string_agg(concat(r ->> 'id', r ->> 'version'), ' ' order by r ->> 'id')) from jsonb_array_elements(v_rows -> v_table) r
        ));
      end if;
    end loop;
  end if;

  foreach v_table in array '{events}' || v_lists || '{status}' loop
    v_places := private.places_by_name(coalesce(v_rows -> v_table, '[]'));
    -- First what the list names, then the other rows of the event or of the one that is copied.
    for v_pass in 1..2 loop
      v_items := case
        when v_table in ('events', 'status') then case v_pass when 1 then '[{}]' else '[]' end::jsonb
        when v_pass = 1 then coalesce(arguments -> v_table, '[]')
        when case when v_only_listed and arguments ? v_table then not v_is_copy else v_is_copy or v_move.distance is not null end then (
          select coalesce(jsonb_agg(r), '[]')
          from jsonb_array_elements(v_rows -> v_table) r
          where r ->> 'status' = 'active' and r ->> 'id' <> all (v_taken)
        )
        else '[]'
      end;
      for v_item in select i from jsonb_array_elements(v_items) i loop
        begin
          v_row := case v_pass when 2 then v_item end;
          v_name := coalesce(v_item ->> 'code', v_item ->> 'name', v_item ->> 'id');
          if v_table = 'events' then
            v_name := coalesce(v_changes ->> 'name', v_base.name);
            v_step := private.carry_out_fields(organisation_id, v_base, v_changes, v_move);
          elsif v_table = 'status' then
            continue when v_refusals > 0 or coalesce(v_status, v_event.status) = v_event.status;
            v_name := v_event.name;
            perform private.set_event_status(v_event.id, v_status);
            v_step := jsonb_build_object(
              'action', 'change', 'kind', 'event', 'name', v_event.name, 'id', v_event.id,
              'changes', jsonb_build_object('status', jsonb_build_array(v_event.status, v_status))
            );
          else
            v_fields := '{}';
            if v_pass = 1 then
              v_row := private.row_of_item(v_table, coalesce(v_rows -> v_table, '[]'), v_places, v_item);
              -- Twice in the list: the same row, or two new ones of one name.
              v_key := coalesce(v_row ->> 'id', concat_ws(' ', v_table, private.search_form(v_name), v_item ->> 'external_id'));
              if v_key = any (v_taken) then
                perform private.refuse_value(
                  (private.planned_fields(v_table))[1], 'The list has this twice.', 'Leave one out, or tell them apart by id or external_id.'
                );
              end if;
              v_taken := v_taken || v_key;
              if num_nonnulls(v_item ->> 'percent_off', v_item ->> 'amount_off') = 1 then
                -- One kind of discount takes the place of the other.
                v_fields := '{"percent_off": null, "amount_off": null}';
              end if;
              v_fields := v_fields || (v_item - '{id,ticket_types}'::text[]);
              if v_item ? 'ticket_types' then
                v_fields := v_fields || jsonb_build_object(
                  'ticket_type_ids', private.ticket_types_meant(v_types, v_type_places, v_item -> 'ticket_types', v_copies, v_refused)
                );
              end if;
            end if;
            if v_pass = 2 and v_only_listed and arguments ? v_table then
              v_fields := jsonb_build_object('status', case v_table when 'promo_codes' then 'disabled' else 'archived' end);
            else
              v_fields := coalesce(private.moved_times(v_row, v_move), '{}') || v_fields;
            end if;
            if v_is_copy and v_row is null then
              v_fields := jsonb_build_object('position', jsonb_array_length(v_rows -> v_table)) || v_fields;
            end if;
            if v_is_copy and v_row -> 'ticket_type_ids' <> '[]' and not v_fields ? 'ticket_type_ids' then
              v_fields := v_fields || jsonb_build_object('ticket_type_ids', (
                select coalesce(jsonb_agg(v_copies -> i order by v_copies ->> i), '[]')
                from jsonb_array_elements_text(v_row -> 'ticket_type_ids') i
                where v_copies ? i
              ));
              -- It was for ticket types that are not copied; with none it would be for all.
              if v_fields -> 'ticket_type_ids' = '[]' and v_pass = 1 then
                perform private.refuse_value(
                  'ticket_types', 'The ticket types that it is for are not copied.', 'Name ticket_types for it; an empty list is for all.'
                );
              end if;
              continue when v_fields -> 'ticket_type_ids' = '[]';
            end if;
            v_step := private.carry_out_item(v_table, v_event, v_base, v_row, v_fields, v_is_copy);
            if v_is_copy and v_table = 'ticket_types' and v_row is not null then
              v_copies := v_copies || jsonb_build_object(v_row ->> 'id', v_step -> 'id');
            end if;
          end if;
        exception when others then
          get stacked diagnostics
            v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint,
            v_rule = constraint_name;
          if v_state !~ '^(PT4|22|23)' then
            raise;
          end if;
          v_refusals := v_refusals + 1;
          v_refused := array_remove(v_refused || array[private.search_form(v_name), private.search_form(v_item ->> 'external_id')], null);
          v_step := jsonb_build_object(
            'action', 'refuse', 'kind', rtrim(case v_table when 'status' then 'events' else v_table end, 's'), 'name', v_name,
            'error', case
              when v_state like 'PT4%' then v_detail::jsonb
                || jsonb_strip_nulls(jsonb_build_object('message', v_message, 'hint', nullif(v_hint, '')))
              -- What no trigger says in a sentence. The row that Postgres would show stays out.
              else jsonb_build_object(
                'code', 'validation_failed', 'message', 'It breaks a rule of the database: ' || coalesce(nullif(v_rule, ''), v_state)
              )
            end
          );
        end;
        if v_pass = 1 and v_step ->> 'action' in ('create', 'change') and v_table <> 'status' then
          v_warnings := v_warnings || private.step_warnings(
            v_table, (v_step ->> 'id')::uuid, case v_table when 'events' then v_changes else v_item end, v_event
          );
        end if;
        if v_step ->> 'action' = 'unchanged' then
          v_unchanged := v_unchanged + 1;
        else
          v_steps := v_steps || v_step;
        end if;
        if v_table = 'events' then
          select e.* into v_event from public.events e where e.id = coalesce((v_step ->> 'id')::uuid, carry_out_event.event_id);
        end if;
      end loop;
    end loop;
    -- Without the event there is nothing to add to.
    exit when v_event.id is null;
    if v_table = 'ticket_types' and arguments ?| v_lists then
      v_types := private.rows_of_event(v_table, v_event.id, false, false);
      v_type_places := private.places_by_name(v_types);
    end if;
  end loop;

  if v_refusals = 0 and event_id is not null then
    v_notice := private.notify_of_event(event_id, (arguments ->> 'notify')::public.notify);
  end if;
  select e.* into v_event from public.events e where e.id = v_event.id;
  return jsonb_build_object(
    'warnings', to_jsonb(array(
      select distinct w from unnest(v_warnings || private.plan_warnings(v_base, v_event, source_id, v_move.distance is not null)) w
      where w is not null
      limit 20
    )),
    'read', v_read, 'steps', to_jsonb(v_steps), 'unchanged', v_unchanged, 'refusals', v_refusals, 'notice', v_notice,
    'affected', case when event_id is not null and v_base.id is not null then private.affected_by_event(event_id) end,
    'event', jsonb_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status,
      'starts_at', private.zoned_time(v_event.starts_at, v_event.timezone), 'ends_at', private.zoned_time(v_event.ends_at, v_event.timezone), 'timezone', v_event.timezone
    )
  );
end
$$;
grant execute on function private.carry_out_event to scope_events_write;

-- schemas/20-events/plans.sql

-- apply_event: an event as it is to be, with its ticket types, promo codes and check-in points, in one body. A plan is made by doing
-- everything and undoing it, so plan and act cannot differ, and the rules are those of the tables. public.copy_event does the same by hand.

create table private.event_plans (
  id text not null default lower(private.random_code(10)),
  organisation_id uuid not null,
  family_id uuid not null,
  arguments jsonb not null,
  event_id uuid,
  source_id uuid,
  read jsonb not null,
  steps_digest text not null,
  refusals integer not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '10 minutes',
  applied_at timestamptz,
  constraint event_plans_pkey primary key (id),
  constraint event_plans_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);
comment on table private.event_plans is 'What apply_event would do, for ten minutes, and for the family of API keys that asked. At most 50 of a family.';
comment on column private.event_plans.read is 'The versions of what the plan was made from, by kind.';
create index event_plans_organisation_id_idx on private.event_plans (organisation_id, created_at);
create index event_plans_expires_at_idx on private.event_plans (expires_at);
alter table private.event_plans enable row level security;

-- All ways in which a plan cannot be applied have one code; details.reason tells them apart.
create function private.refuse_plan(reason text, message text, details jsonb default '{}') returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'plan_outdated', message, 'plan_id', jsonb_build_object('reason', reason) || details,
    case reason
      when 'applied' then 'It is done: read the event to see it.'
      when 'refused' then 'Correct what its steps refuse, and leave out plan_id for a new plan.'
      when 'arguments' then 'Send plan_id alone, or the arguments of the plan unchanged; without plan_id they make a new plan.'
      else 'Leave out plan_id for a new plan, and look at what it says.'
    end
  );
end
$$;
grant execute on function private.refuse_plan to scope_events_write;

-- Keeps a plan, and drops the oldest ones of the organisation. Security definer, as what opens and closes one: plans are reached by these only.
create function private.keep_event_plan(arguments jsonb, event_id uuid, source_id uuid, result jsonb) returns private.event_plans
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 50;
  v_plan private.event_plans;
begin
  delete from private.event_plans p
  where p.id in (
    select o.id from private.event_plans o
    where o.organisation_id = private.current_organisation_id() and o.family_id = (private.claims() ->> 'family_id')::uuid
    order by o.applied_at is not null, o.created_at desc, o.id
    offset v_most - 1
    for update skip locked
  );
  insert into private.event_plans (organisation_id, family_id, arguments, event_id, source_id, read, steps_digest, refusals)
  values (
    private.current_organisation_id(), (private.claims() ->> 'family_id')::uuid, keep_event_plan.arguments, keep_event_plan.event_id,
    keep_event_plan.source_id, result -> 'read', md5((result -> 'steps')::text), (result ->> 'refusals')::integer
  )
  returning * into v_plan;
  return v_plan;
end
$$;
grant execute on function private.keep_event_plan to scope_events_write;

-- The plan, if it may be applied; locked, so that of two that apply it one finds it applied. `arguments` are those sent beside its id.
create function private.open_event_plan(plan_id text, arguments jsonb) returns private.event_plans
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_plan private.event_plans;
  v_differing text[];
begin
  select p.* into v_plan
  from private.event_plans p
  where p.id = plan_id
    and p.organisation_id = private.current_organisation_id()
    and p.family_id = (private.claims() ->> 'family_id')::uuid
  for update;
  if not found then
    perform private.refuse_plan('unknown', 'This API key has no such plan; plans are kept for ten minutes.');
  elsif v_plan.applied_at is not null then
    perform private.refuse_plan('applied', 'The plan was applied already.', jsonb_build_object('event_id', v_plan.event_id));
  elsif v_plan.expires_at <= now() then
    perform private.refuse_plan(
      'expired', 'The plan is older than ten minutes.', jsonb_build_object('expires_at', private.rfc3339(v_plan.expires_at))
    );
  end if;
  -- Those of the plan alone go without saying; an argument that is left out would be one that differs.
  if open_event_plan.arguments <> '{}' then
    v_differing := array(
      select coalesce(p.key, s.key)
      from jsonb_each(v_plan.arguments) p
      full join jsonb_each(open_event_plan.arguments) s using (key)
      where p.value is distinct from s.value
      order by 1
    );
    if v_differing <> '{}' then
      perform private.refuse_plan(
        'arguments', 'The arguments are not those of the plan.', jsonb_build_object('arguments', v_differing)
      );
    end if;
  end if;
  if v_plan.refusals > 0 then
    perform private.refuse_plan('refused', 'The plan has steps that are refused, so none of it can be applied.');
  end if;
  return v_plan;
end
$$;
grant execute on function private.open_event_plan to scope_events_write;

create function private.close_event_plan(plan_id text, event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update private.event_plans p set applied_at = now(), event_id = close_event_plan.event_id
  where p.id = plan_id and p.family_id = (private.claims() ->> 'family_id')::uuid;
end
$$;
grant execute on function private.close_event_plan to scope_events_write;

-- The event that has the external_id or the slug that is to be; null: none, so it is to be added.
create function private.event_known_by(external_id text, slug text) returns uuid
language plpgsql stable set search_path = ''
as $$
declare
  v_ids uuid[] := array(
    select e.id
    from public.events e
    where e.organisation_id = private.current_organisation_id()
      and (e.external_id = event_known_by.external_id or e.slug = event_known_by.slug)
  );
begin
  if cardinality(v_ids) > 1 then
    perform private.refuse_ambiguous('event', to_jsonb(v_ids));
  end if;
  return v_ids[1];
end
$$;
grant execute on function private.event_known_by to scope_events_write;

-- The members of an object in this order, which jsonb does not keep.
create function private.in_order(object jsonb, names text[]) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return (
    select json_object_agg(n.name, object -> n.name order by n.place)
    from unnest(names) with ordinality n (name, place)
    where object ? n.name
  );
end
$$;
grant execute on function private.in_order to scope_events_write;

-- Refuses what would be done if it is not what the plan said.
create function private.assert_as_planned(plan private.event_plans, result jsonb, steps jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_changed text[] := array(
    select r.key from jsonb_each(plan.read) r where r.value is distinct from result -> 'read' -> r.key order by r.key
  );
begin
  if v_changed <> '{}' then
    perform private.refuse_plan(
      'changed', 'What the plan is about was changed since.', jsonb_build_object('changed', v_changed)
    );
  elsif (result ->> 'refusals')::integer > 0 then
    perform private.refuse_plan(
      'changed', 'A step of the plan is refused by now.', jsonb_build_object('step', jsonb_path_query_first(steps, '$[*] ? (@.action == "refuse")'))
    );
  elsif md5(steps::text) <> plan.steps_digest then
    perform private.refuse_plan('changed', 'The plan would do something else by now.');
  end if;
end
$$;
grant execute on function private.assert_as_planned to scope_events_write;

create function api.apply_event(
  event text default null,
  copy_of text default null,
  move text default null,
  changes jsonb default null,
  ticket_types jsonb default null,
  promo_codes jsonb default null,
  check_in_points jsonb default null,
  archive_missing boolean default null,
  notify public.notify default null,
  plan_id text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_arguments jsonb := (
    select coalesce(jsonb_object_agg(a.key, a.value), '{}')
    from jsonb_each(jsonb_build_object(
      'event', event, 'copy_of', copy_of, 'move', move, 'changes', changes, 'ticket_types', ticket_types, 'promo_codes', promo_codes,
      'check_in_points', check_in_points, 'archive_missing', archive_missing, 'notify', notify
    )) a
    where a.value <> 'null'
  );
  v_most_steps constant integer := 100;
  v_plan private.event_plans;
  v_event_id uuid;
  v_source_id uuid;
  v_result jsonb;
  v_steps jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if plan_id is not null then
    v_plan := private.open_event_plan(plan_id, v_arguments);
    v_arguments := v_plan.arguments;
    v_event_id := v_plan.event_id;
    v_source_id := v_plan.source_id;
  else
    if v_arguments = '{}' then
      perform private.refuse_value('changes', 'There is nothing to plan.', 'Send changes, a list, move or copy_of.');
    elsif event is not null and copy_of is not null then
      perform private.refuse_value('event', 'A copy is a new event.', 'Leave event out, or copy_of.');
    end if;
    v_event_id := case
      when event is not null then (private.resolve_name('event', event, null, 'event')).id
      when copy_of is null then private.event_known_by(changes ->> 'external_id', changes ->> 'slug')
    end;
    v_source_id := case when copy_of is not null then (private.resolve_name('event', copy_of, null, 'copy_of')).id end;
  end if;

  begin
    v_result := private.carry_out_event(v_arguments, private.current_organisation_id(), v_event_id, v_source_id);
    v_steps := (
      select coalesce(jsonb_agg(s - 'id' order by s ->> 'action' <> 'refuse', n), '[]')
      from jsonb_array_elements(v_result -> 'steps') with ordinality s (s, n)
    );
    perform private.undo_if_dry_run(plan_id is null);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variables keep the answer.
  end;

  if plan_id is null then
    v_plan := private.keep_event_plan(v_arguments, v_event_id, v_source_id, v_result || jsonb_build_object('steps', v_steps));
  else
    perform private.assert_as_planned(v_plan, v_result, v_steps);
    perform private.close_event_plan(v_plan.id, (v_result #>> '{event,id}')::uuid);
    v_steps := (
      select coalesce(jsonb_agg(case s ->> 'action' when 'create' then s else s - 'id' end - 'changes' order by n), '[]')
      from jsonb_array_elements(v_result -> 'steps') with ordinality s (s, n)
    );
  end if;

  v_outcome := json_build_object(
    'object', 'event_plan',
    'plan_id', v_plan.id,
    'applied', plan_id is not null,
    'expires_at', private.rfc3339(v_plan.expires_at),
    'event', private.in_order(
      (v_result -> 'event') || case when plan_id is null and v_event_id is null then '{"id": null}' else '{}' end::jsonb,
      '{id,name,status,starts_at,ends_at,timezone}'
    ),
    'notify', v_arguments -> 'notify',
    'refusals', v_result -> 'refusals',
    'unchanged', v_result -> 'unchanged',
    'steps', (
      select coalesce(json_agg(private.in_order(s.s, '{action,kind,name,id,status,changes,error}') order by s.n), '[]')
      from jsonb_array_elements(v_steps) with ordinality s (s, n)
      where s.n <= v_most_steps
    ),
    'more_steps', greatest(jsonb_array_length(v_steps) - v_most_steps, 0)
  );
  return private.record_outcome(
    idempotency_key, request_fingerprint,
    (
      select json_object_agg(m.name, m.value order by m.place)
      from (
        values
          (1, 'status', to_json(200)),
          (2, 'data', v_outcome),
          (3, 'effect', case when v_event_id is not null then private.effect_json(plan_id is null, v_result -> 'affected', nullif(v_result -> 'notice', 'null')) end),
          (4, 'warnings', nullif(v_result -> 'warnings', '[]')::json)
      ) m (place, name, value)
      where m.value is not null
    ),
    plan_id is null
  );
end
$$;
comment on function api.apply_event is
  'Plans an event as it is to be, or applies the plan exactly: 200. 404 not_found; 409 plan_outdated; 422 ambiguous_name, validation_failed.';
grant execute on function api.apply_event to scope_events_write;

-- A copy of an event as a draft, at another start: for owners and managers who are signed in, and for the SQL editor. Returns its id.
create function public.copy_event(event_id uuid, starts_at timestamptz, name text default null) returns uuid
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid;
  v_result jsonb;
  v_error jsonb;
begin
  select e.organisation_id into v_organisation_id
  from public.events e
  where e.id = copy_event.event_id
    and (
      private.claims() ->> 'role' is distinct from 'authenticated'
      or e.organisation_id in (select private.organisations_as('{owner,manager}'))
    );
  if not found then
    perform private.refuse_not_found('event_id');
  elsif starts_at is null then
    perform private.refuse_value('starts_at', 'A copy needs a start of its own.');
  end if;
  v_result := private.carry_out_event(
    jsonb_build_object('changes', jsonb_strip_nulls(jsonb_build_object('starts_at', starts_at, 'name', name))),
    v_organisation_id, null, event_id
  );
  v_error := jsonb_path_query_first(v_result, '$.steps[*].error');
  if v_error is not null then
    perform private.refuse(
      case v_error ->> 'code' when 'validation_failed' then 422 when 'not_found' then 404 else 409 end, v_error ->> 'code', v_error ->> 'message', v_error ->> 'param', v_error -> 'details', v_error ->> 'hint'
    );
  end if;
  return v_result #>> '{event,id}';
end
$$;
comment on function public.copy_event is
  'Copies an event, with its ticket types, promo codes and check-in points, as a draft that starts at another time; all times move along. Returns the id of the copy.';
revoke all on function public.copy_event from public, anon, service_role;
grant execute on function public.copy_event to authenticated;

-- schemas/90-outbox/webhook-claims.sql

-- The courier's side of webhooks: claim what is due, send it, settle the result. A claim is a lease: when it runs out another
-- courier claims the row, and a result under the old claim is ignored. When to retry is decided here. All security definer: the
-- courier has no right to any table, and may call only the api functions that are granted to it.

-- Webhooks due to enabled endpoints, by their turn within the endpoint and then by age. So that slow or dead endpoints delay no
-- other, an endpoint has v_most_per_endpoint in flight, and one while it is failing; an organisation has half of what a courier
-- sends at a time, and all failing endpoints together a quarter. One courier claims at a time: two would not count each other's
-- claims. Claimed rows are due again when the lease runs out. A small batch is fanned out first, so that a webhook costs no
-- further call; api.fan_out_webhooks does the rest.
-- No cached plan: one made for few rows would be used for many. The plan uses the indexes whatever the statistics say: a
-- backlog builds up between two of their updates.
create function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  v_most_per_endpoint constant integer := 4;
  -- Half and a quarter of `concurrency` in src/courier/webhooks.ts (64 webhooks per courier): change them together.
  v_most_per_organisation constant integer := 32;
  v_most_failing constant integer := 16;
  -- Deliveries to fan out first: about 10 ms.
  v_fan_out constant integer := 200;
  -- Ten attempts are made. A row that is claimed far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_claimed json;
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 0);
  perform private.fan_out(v_fan_out);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with endpoints as materialized (
      select
        w.id,
        w.organisation_id,
        w.failing_since is not null as failing,
        w.last_failed_at,
        c.in_flight,
        sum(c.in_flight) over (partition by w.organisation_id) as in_flight_of_organisation,
        sum(c.in_flight) over (partition by w.organisation_id, w.failing_since is not null) as in_flight_of_its_kind
      from public.webhook_endpoints w
      cross join lateral (
        select count(*)::integer as in_flight
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.claimed_until > v_now
      ) c
      where w.status = 'enabled'
    ),
    due as (
      select
        d.id, d.next_attempt_at, e.in_flight + d.place as turn, e.organisation_id, e.in_flight_of_organisation,
        e.failing, e.last_failed_at, e.in_flight_of_its_kind
      from endpoints e
      cross join lateral (
        select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
        from (
          select d.id, d.next_attempt_at
          from public.webhook_deliveries d
          where d.webhook_endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= v_now
          order by d.webhook_endpoint_id, d.next_attempt_at
          limit greatest(case when e.failing then 1 else v_most_per_endpoint end - e.in_flight, 0)
        ) f
      ) d
    ),
    -- Failing endpoints are limited first, and organisations after that, so that failing ones delay no other. Among them
    -- organisations take turns, and the endpoint that has not been tried for longest comes first: a single failure among a
    -- thousand is soon over.
    failing as (
      select
        d.*,
        row_number() over (order by d.turn_of_organisation, d.last_failed_at nulls first, d.next_attempt_at, d.id) as place_of_failing
      from (
        select
          d.*,
          d.in_flight_of_its_kind + row_number() over (
            partition by d.organisation_id order by d.last_failed_at nulls first, d.next_attempt_at, d.id
          ) as turn_of_organisation
        from due d
        where d.failing
      ) d
    ),
    admitted as (
      select d.id, d.next_attempt_at, d.turn, d.organisation_id, d.in_flight_of_organisation from due d where not d.failing
      union all
      select f.id, f.next_attempt_at, f.turn, f.organisation_id, f.in_flight_of_organisation
      from failing f
      where f.place_of_failing <= v_most_failing - (select coalesce(sum(e.in_flight), 0) from endpoints e where e.failing)
    ),
    placed as (
      select
        d.*,
        row_number() over (partition by d.organisation_id order by d.turn, d.next_attempt_at, d.id) as place_of_organisation
      from admitted d
    )
    select p.id
    from placed p
    where p.in_flight_of_organisation + p.place_of_organisation <= v_most_per_organisation
    order by p.turn, p.next_attempt_at
    limit claim_webhooks."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  -- Skips locked rows rather than wait: other couriers wait for the lock that this transaction holds.
  update public.webhook_deliveries d
  set status = 'failed', last_error = format('Gave up after %s attempts without a recorded result.', v_most_claims)
  where d.id in (
    select f.id from public.webhook_deliveries f
    where f.id = any (v_candidates) and coalesce(f.next_attempt_at <= v_now, false) and f.attempts >= v_most_claims
    for no key update skip locked
  );

  -- Still pending and due. An expression, so that the planner does not scan the index of everything due; an array, because a
  -- join might scan it, too.
  v_candidates := array(
    select d.id
    from public.webhook_deliveries d
    where d.id = any (v_candidates) and coalesce(d.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  with claimed as (
    update public.webhook_deliveries d
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = d.attempts + 1,
      last_attempt_at = v_now
    where d.id = any (v_candidates)
    returning d.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'webhook_endpoint_id', w.id,
      'url', w.url,
      'secrets', (
        select json_agg(s.secret order by s.expires_at desc nulls first)
        from private.webhook_secrets s
        where s.webhook_endpoint_id = w.id and (s.expires_at is null or s.expires_at > v_now)
      ),
      'webhook_id', n.id,
      'type', n.type,
      'timestamp', private.rfc3339(n.created_at),
      'data', n.data
    )),
    '[]'
  ) into v_claimed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_claimed;
end
$$;
comment on function api.claim_webhooks is
  'Webhooks that are due, claimed for lease_seconds: [{ id, claim, attempt, webhook_endpoint_id, url, secrets, webhook_id, type, timestamp, data }].';
grant execute on function api.claim_webhooks to courier;

-- One batch of the fan-out, about 100 ms, which a courier repeats while there is a backlog. One transaction: if the courier
-- dies in it, nothing is done.
create function api.fan_out_webhooks("limit" integer default 2000) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return private.fan_out("limit");
end
$$;
comment on function api.fan_out_webhooks is
  'Fans out about "limit" webhook deliveries of notifications in the queue: whether there is more to do at once.';
grant execute on function api.fan_out_webhooks to courier;

-- Returned unsent, or aborted, by a courier that is stopping: it was not an attempt, and is due at once.
create function api.release_webhook(webhook_delivery_id uuid, claim uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.webhook_deliveries d
  set claim = null, claimed_until = null, next_attempt_at = now(), attempts = d.attempts - 1
  where d.id = release_webhook.webhook_delivery_id and d.claim = release_webhook.claim and d.status = 'pending';
end
$$;
comment on function api.release_webhook is 'Returns a claimed webhook, for another courier to send.';
grant execute on function api.release_webhook to courier;

-- The delay after the attempt of this number; null after the last. A fifth more or less, so that what failed together is not
-- retried together.
create function private.retry_delay(attempts integer, pauses interval[]) returns interval
language plpgsql volatile set search_path = ''
as $$
begin
  return (0.8 + 0.4 * random()) * pauses[attempts];
end
$$;

-- Whether a webhook is due to the endpoint: one look-up, however many there are.
create function private.has_due_webhooks(webhook_endpoint_id uuid) returns boolean
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
begin
  return exists (
    select from public.webhook_deliveries d
    where d.webhook_endpoint_id = has_due_webhooks.webhook_endpoint_id
      and d.status = 'pending'
      and d.next_attempt_at <= now()
  );
end
$$;

-- The results of a batch of attempts, in the order in which they came: the response of the endpoint, or why there was none. 2xx
-- is delivered, 410 is final, anything else is retried, not before the endpoint asks for it. An endpoint that has failed for
-- five days is disabled. A result from a URL that the endpoint had when the webhook was claimed, and has no longer, is logged but
-- does not count: the new URL has attempts of its own. The plan uses the indexes whatever the statistics say.
create function api.settle_webhooks(results json) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_generic_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  -- Ten attempts within about three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'id')::uuid from json_array_elements(results) r);
  v_endpoint_ids uuid[];
  v_organisation_ids uuid[];
  v_settled_ids uuid[];
  v_troubled_ids uuid[];
  v_result record;
  v_endpoint public.webhook_endpoints;
  v_failing_since timestamptz;
  v_reason text;
  v_disabled_ids uuid[] := '{}';
begin
  -- Endpoints are locked before their deliveries, as everywhere.
  v_endpoint_ids := array(select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = any (v_ids));
  v_endpoint_ids := array(
    select w.id from public.webhook_endpoints w where w.id = any (v_endpoint_ids) order by w.id for no key update
  );

  with settled as (
    update public.webhook_deliveries d
    set claim = null,
      claimed_until = null,
      attempts = case when r.url_changed and not r.delivered then 0 else d.attempts end,
      last_response_status = r.response_status,
      last_response_body = left(r.response_body, 1024),
      last_response_milliseconds = r.milliseconds,
      last_error = r.error,
      delivered_at = case when r.delivered then now() else d.delivered_at end,
      status = case
        when r.delivered then 'delivered'
        when r.url_changed then 'pending'
        when r.response_status = 410 or d.attempts > cardinality(v_pauses) then 'failed'
        else 'pending'
      end::public.webhook_delivery_status,
      next_attempt_at = case
        when r.url_changed then now()
        else greatest(
          now() + private.retry_delay(d.attempts, v_pauses),
          now() + make_interval(secs => least(coalesce(r.retry_after_seconds, 0), 86400))
        )
      end
    from (
      select
        g.*,
        coalesce(g.response_status between 200 and 299, false) as delivered,
        coalesce(w.url <> g.url, false) as url_changed,
        w.failing_since
      from json_to_recordset(results) g (
        id uuid, claim uuid, url text, response_status integer, response_body text, milliseconds integer, error text,
        retry_after_seconds integer
      )
      cross join lateral (
        select w.url, w.failing_since
        from public.webhook_endpoints w
        where w.id = (select o.webhook_endpoint_id from public.webhook_deliveries o where o.id = g.id)
      ) w
    ) r
    -- By the ids, and an expression, so that the planner does not scan the index of everything pending.
    where d.id = any (v_ids) and d.id = r.id and d.claim = r.claim and coalesce(d.status = 'pending', false)
    returning d.id, d.webhook_endpoint_id, r.url_changed, r.delivered, r.failing_since
  )
  select
    array_agg(s.id) filter (where not s.url_changed),
    array_agg(s.webhook_endpoint_id) filter (where not s.url_changed and (not s.delivered or s.failing_since is not null))
  into v_settled_ids, v_troubled_ids
  from settled s;

  for v_result in
    select g.id, d.webhook_endpoint_id, g.response_status, coalesce(g.response_status between 200 and 299, false) as delivered
    from rows from (json_to_recordset(results) as (id uuid, response_status integer)) with ordinality g (id, response_status, place)
    join public.webhook_deliveries d on d.id = g.id
    where d.id = any (v_ids) and g.id = any (v_settled_ids) and coalesce(d.webhook_endpoint_id = any (v_troubled_ids), false)
    order by g.place
  loop
    select w.* into v_endpoint from public.webhook_endpoints w where w.id = v_result.webhook_endpoint_id;
    if v_result.delivered then
      update public.webhook_endpoints w set failing_since = null where w.id = v_endpoint.id and w.failing_since is not null;
      continue;
    end if;
    -- A failure 30 hours after the previous one starts a new series: a retry comes sooner, so nothing was sent meanwhile.
    v_failing_since := case
      when v_endpoint.last_failed_at > now() - interval '30 hours' then coalesce(v_endpoint.failing_since, now()) else now()
    end;
    v_reason := case
      when v_endpoint.status = 'disabled' then null
      when v_result.response_status = 410 then 'It answered 410 Gone.'
      when v_failing_since < now() - interval '5 days' then 'No delivery succeeded for five days.'
    end;
    if v_reason is null then
      update public.webhook_endpoints w set failing_since = v_failing_since, last_failed_at = now() where w.id = v_endpoint.id;
    else
      update public.webhook_endpoints w
      set failing_since = v_failing_since, last_failed_at = now(), status = 'disabled', disabled_reason = v_reason
      where w.id = v_endpoint.id;
      v_disabled_ids := v_disabled_ids || v_result.id;
    end if;
  end loop;

  -- Whether the places that are free now may have something to take: of their organisations, and of all that are failing.
  v_organisation_ids := array(select w.organisation_id from public.webhook_endpoints w where w.id = any (v_endpoint_ids));
  return json_build_object(
    'disabled', v_disabled_ids,
    'more', exists (
      select from public.webhook_endpoints w
      where w.organisation_id = any (v_organisation_ids) and w.status = 'enabled' and private.has_due_webhooks(w.id)
    ) or (v_troubled_ids is not null and exists (
      select from public.webhook_endpoints w
      where w.failing_since is not null and w.status = 'enabled' and private.has_due_webhooks(w.id)
    ))
  );
end
$$;
comment on function api.settle_webhooks is
  'Records the results of sending claimed webhooks, [{ id, claim, url, milliseconds, response_status, response_body, retry_after_seconds, error }]: { disabled, more }, the deliveries whose result disabled their endpoint, and whether more may be due in their place. A result is ignored if another claim has replaced its own.';
grant execute on function api.settle_webhooks to courier;

-- schemas/90-outbox/delivery-operations.sql

-- Webhook delivery operations: list, redeliver one or many, and send a test.

-- Ids of the deliveries of a page, newest first: see 00-ground/pages.sql. Of a notification, these are all there are, in no order and of
-- any organisation.
create function private.page_of_webhook_deliveries(
  notification_id uuid,
  webhook_endpoint_id uuid,
  types public.notification_type[],
  status public.webhook_delivery_status,
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.webhook_delivery_status[] :=
    case when page_of_webhook_deliveries.status is null then enum_range(null::public.webhook_delivery_status)
    else array[page_of_webhook_deliveries.status] end;
begin
  if page_of_webhook_deliveries.notification_id is not null then
    return array(
      select d.id from public.webhook_deliveries d where d.notification_id = page_of_webhook_deliveries.notification_id
    );
  elsif page_of_webhook_deliveries.webhook_endpoint_id is null then
    return array(
      select f.id
      from unnest(types) t (type)
      cross join unnest(v_statuses) s (status)
      cross join lateral (
        select d.id
        from public.webhook_deliveries d
        where d.organisation_id = any (v_organisation_ids)
          and d.type = t.type
          and d.status = s.status
          and d.id < before
        order by d.organisation_id desc, d.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.webhook_endpoints w
    where w.id = page_of_webhook_deliveries.webhook_endpoint_id and w.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(types) t (type)
    cross join unnest(v_statuses) s (status)
    cross join lateral (
      select d.id
      from public.webhook_deliveries d
      where d.webhook_endpoint_id = any (array[page_of_webhook_deliveries.webhook_endpoint_id])
        and d.type = t.type
        and d.status = s.status
        and d.id < before
      order by d.webhook_endpoint_id desc, d.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_webhook_deliveries to scope_events_write;

create function api.list_webhook_deliveries(
  webhook_endpoint_id uuid default null,
  notification_id uuid default null,
  type public.notification_type default null,
  status public.webhook_delivery_status default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_items json[];
begin
  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_webhook_deliveries.type);
  end if;
  v_ids := private.page_of_webhook_deliveries(
    list_webhook_deliveries.notification_id, list_webhook_deliveries.webhook_endpoint_id, v_types, list_webhook_deliveries.status,
    v_before, v_size + 1
  );
  v_items := array(
    select private.webhook_delivery_json(d.delivery)
    from unnest(v_ids) i (id)
    cross join lateral (
      select d.id, d.status, d.type, d.webhook_endpoint_id, d as delivery
      from public.webhook_deliveries d
      where d.id = i.id offset 0
    ) d
    where (list_webhook_deliveries.webhook_endpoint_id is null or d.webhook_endpoint_id = list_webhook_deliveries.webhook_endpoint_id)
      and (list_webhook_deliveries.type is null or d.type = list_webhook_deliveries.type)
      and (list_webhook_deliveries.status is null or d.status = list_webhook_deliveries.status)
      and d.id < v_before
    order by d.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_webhook_deliveries is
  'Deliveries to webhook endpoints, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_webhook_deliveries to scope_events_write;

create function api.redeliver_webhook(
  webhook_delivery_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_delivery public.webhook_deliveries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- The endpoint is locked before its deliveries, as everywhere.
  perform 1
  from public.webhook_endpoints w
  where w.id = (
    select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = redeliver_webhook.webhook_delivery_id
  )
  for no key update;
  select d.* into v_webhook_delivery
  from public.webhook_deliveries d
  where d.id = redeliver_webhook.webhook_delivery_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_delivery_id');
  end if;
  perform private.assert_sendable(v_webhook_delivery.webhook_endpoint_id, v_webhook_delivery.type);
  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id = v_webhook_delivery.id
  returning * into v_webhook_delivery;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_delivery_json(v_webhook_delivery))
  );
end
$$;
comment on function api.redeliver_webhook is
  'Queues a delivery again, whatever its status, with the same webhook-id: 200. 404 not_found; 409 webhook_endpoint_disabled, type_not_subscribed.';
grant execute on function api.redeliver_webhook to scope_events_write;

-- All that failed since a time or waits for its next attempt, for example after an outage of the endpoint; at most 10,000 per
-- call, oldest first. What is due or in flight is left alone, so that a repeated call finds the rest.
create function api.redeliver_webhooks(
  webhook_endpoint_id uuid,
  since timestamptz,
  until timestamptz default null,
  status public.webhook_delivery_status default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_statuses public.webhook_delivery_status[] :=
    case when redeliver_webhooks.status is null then '{failed,pending}' else array[redeliver_webhooks.status] end;
  v_webhook_endpoint public.webhook_endpoints;
  v_redelivered integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- The endpoint is locked before its deliveries, as everywhere.
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = redeliver_webhooks.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_sendable(webhook_endpoint_id, 'webhook_endpoint.test');

  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id in (
    select f.id
    from public.webhook_deliveries f
    where f.webhook_endpoint_id = v_webhook_endpoint.id
      and f.status = any (v_statuses)
      and (f.status <> 'pending' or (f.next_attempt_at > now() and coalesce(f.claimed_until <= now(), true)))
      and f.type = any (v_webhook_endpoint.types)
      and f.created_at >= since
      and (until is null or f.created_at < until)
    order by f.id
    limit 10000
    for no key update
  );
  get diagnostics v_redelivered = row_count;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object(
      'object', 'webhook_redelivery', 'webhook_endpoint_id', webhook_endpoint_id, 'redelivered', v_redelivered
    )
  ));
end
$$;
comment on function api.redeliver_webhooks is
  'Queues again what failed for a webhook endpoint since a time, and makes due what waits for its next attempt, at most 10,000: 200 with how many. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.redeliver_webhooks to scope_events_write;

-- Adds a test notification with its one delivery. Security definer: no role may write the outbox.
create function private.notify_test(webhook_endpoint_id uuid) returns public.webhook_deliveries
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
  v_notification_id uuid;
  v_webhook_delivery public.webhook_deliveries;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = notify_test.webhook_endpoint_id and w.organisation_id = private.current_organisation_id();
  insert into public.notifications (organisation_id, type, data)
  values (v_webhook_endpoint.organisation_id, 'webhook_endpoint.test', private.webhook_endpoint_json(v_webhook_endpoint))
  returning id into v_notification_id;
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  values (v_webhook_endpoint.organisation_id, v_webhook_endpoint.id, v_notification_id, 'webhook_endpoint.test')
  returning * into v_webhook_delivery;
  return v_webhook_delivery;
end
$$;
grant execute on function private.notify_test to scope_events_write;

create function api.test_webhook_endpoint(
  webhook_endpoint_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.webhook_endpoints w where w.id = test_webhook_endpoint.webhook_endpoint_id) then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_sendable(webhook_endpoint_id, 'webhook_endpoint.test');

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_delivery_json(private.notify_test(webhook_endpoint_id))
  ));
end
$$;
comment on function api.test_webhook_endpoint is
  'Queues a notification of type webhook_endpoint.test for a webhook endpoint: 201 with the delivery. 404 not_found; 409 webhook_endpoint_disabled.';
grant execute on function api.test_webhook_endpoint to scope_events_write;

-- schemas/90-outbox/depth.sql

-- The depth of the outbox, for monitoring. Reads only.

-- What is pending, by kind: how much, the age of the oldest, and how late the couriers are. A delivery that waits for its own
-- endpoint, which is failing or busy, is not late; one for a disabled endpoint is not pending. A notification that awaits its
-- fan-out counts as one.
create function api.outbox_depth() returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_held boolean := private.is_held();
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'pending', k.pending,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0),
      'held', v_held
    ))
    from (
      select
        'webhooks' as kind,
        coalesce(sum(d.pending), 0) as pending,
        min(d.oldest) as oldest,
        min(d.due) as due
      from (
        select d.pending, d.oldest, case when w.failing_since is null and not d.busy then d.due end as due
        from (
          select
            d.webhook_endpoint_id,
            count(*) as pending,
            min(d.created_at) as oldest,
            min(d.next_attempt_at) as due,
            coalesce(bool_or(d.claimed_until > now()), false) as busy
          from public.webhook_deliveries d
          where d.status = 'pending'
          group by d.webhook_endpoint_id
        ) d
        join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
        union all
        select n.pending, q.created_at, q.created_at
        from private.notification_queue q
        cross join lateral (
          select count(*) as pending
          from public.notifications n
          where n.organisation_id = q.organisation_id
            and n.transaction_id = q.transaction_id
            and n.id > coalesce(q.after_id, '00000000-0000-0000-0000-000000000000')
        ) n
        where exists (
          select from public.webhook_endpoints w where w.organisation_id = q.organisation_id and w.status = 'enabled'
        )
      ) d
      union all
      select 'ticket_emails', count(*), min(e.created_at), min(e.next_attempt_at)
      from public.emails e
      where e.status = 'queued'
    ) k
  );
end
$$;
comment on function api.outbox_depth is
  'What is pending: [{ kind, pending, oldest_seconds, late_seconds, held }]. late_seconds is how long what is due has waited; held, whether the database belongs to another installation than the caller.';
grant execute on function api.outbox_depth to courier;

-- schemas/90-outbox/email-claims.sql

-- The courier's side of e-mails, of every kind, as 90-outbox/webhook-claims.sql for webhooks: claim, settle, and record later reports.

-- Organisations with queued e-mails, by a loose index scan: one look-up each, however many e-mails there are. Only
-- one index has the order that is asked for.
create function private.organisations_with_queued_emails() returns uuid[]
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off
as $$
begin
  return array(
    with recursive queued as (
      (
        select e.organisation_id
        from public.emails e
        where e.status = 'queued'
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit 1
      )
      union all
      select n.organisation_id
      from queued q
      cross join lateral (
        select e.organisation_id
        from public.emails e
        where e.status = 'queued' and e.organisation_id > q.organisation_id
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit 1
      ) n
    )
    select queued.organisation_id from queued
  );
end
$$;

-- Whether the person that it is for was erased.
create function private.is_erased(email public.emails) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
begin
  return exists (select from public.attendees a where a.id = email.attendee_id and a.erased_at is not null)
    or exists (select from public.orders o where o.id = email.order_id and o.email = private.erased_fields() ->> 'email')
    or exists (
      select from public.waiting_list_entries w where w.id = email.waiting_list_entry_id and w.email = private.erased_fields() ->> 'email'
    );
end
$$;

-- Whether there is nothing left to tell: the ticket, order or payment is no more what the e-mail says, or the event is again what it was.
create function private.is_obsolete(email public.emails) returns boolean
language plpgsql stable security definer set search_path = '' set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
begin
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = email.order_id;
  if private.is_erased(email) then
    return true;
  end if;
  return case email.kind
    when 'ticket' then v_attendee.status <> 'active'
    when 'ticket_cancelled' then v_attendee.status <> 'cancelled'
    when 'event_changed' then v_attendee.status = 'cancelled' or (
      select e.status not in ('published', 'completed') or private.announced(e) = email.previous from public.events e where e.id = v_attendee.event_id
    )
    -- One that is left without tickets for a day is not confirmed.
    when 'order_confirmation' then v_order.status = 'cancelled' or (
      email.created_at < now() - interval '1 day' and not exists (select from public.attendees a where a.order_id = v_order.id)
    )
    -- A deadline that was moved or cleared since is not the one that it reminds of.
    when 'payment_reminder' then
      v_order.status <> 'pending' or v_order.payment_reminded_at is null or v_order.payment_due_at <= now()
    when 'order_expired' then v_order.status <> 'cancelled'
    when 'waiting_list_offer' then (
      select w.status <> 'offered' or w.offer_expires_at <= now()
      from public.waiting_list_entries w where w.id = email.waiting_list_entry_id
    )
    when 'payment_received' then exists (select from public.payment_voids v where v.payment_id = email.payment_id)
    when 'payment_voided' then not private.has_receipt(email.payment_id)
    when 'event_cancelled' then false
    -- Of any other kind: who has no good ticket of a published event is told nothing of it.
    else v_attendee.id is not null and (
      v_attendee.status <> 'active' or (select e.status <> 'published' from public.events e where e.id = v_attendee.event_id)
    )
  end;
end
$$;

-- The other tickets of an order that one address has, from among the fifty before and the fifty after: neither an order nor an address of
-- thousands is read.
create function private.tickets_beside(attendee public.attendees) returns uuid[]
language plpgsql stable set search_path = '' set plan_cache_mode = force_generic_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off
as $$
begin
  return array(
    (
      select case when n.order_id = attendee.order_id then n.id end
      from public.attendees n
      where n.organisation_id = attendee.organisation_id and n.email_lower = attendee.email_lower and n.id < attendee.id
      order by n.organisation_id desc, n.email_lower desc, n.id desc
      limit 50
    )
    union all
    (
      select case when n.order_id = attendee.order_id then n.id end
      from public.attendees n
      where n.organisation_id = attendee.organisation_id and n.email_lower = attendee.email_lower and n.id > attendee.id
      order by n.organisation_id, n.email_lower, n.id
      limit 50
    )
  );
end
$$;

-- The tickets that go with one in its e-mail: of the same order, waiting for the same address; ten of them together at most. All have been
-- tried as often, so that a report on the attempt is one on each. None of those that are taken already.
create function private.goes_with(email_id uuid, taken uuid[]) returns uuid[]
language plpgsql stable set search_path = '' set plan_cache_mode = force_generic_plan
set enable_bitmapscan = off set enable_seqscan = off
as $$
declare
  v_email public.emails;
  v_attendee public.attendees;
  v_others uuid[];
begin
  select e.* into v_email from public.emails e where e.id = goes_with.email_id and e.kind = 'ticket';
  select a.* into v_attendee from public.attendees a where a.id = v_email.attendee_id;
  v_others := array(
    select a.id
    from public.attendees a
    where a.id = any (private.tickets_beside(v_attendee)) and coalesce(a.ticket_email_status = 'queued', false)
  );
  if v_others = '{}' then
    return '{}';
  end if;
  return array(
    select e.id
    from public.emails e
    where e.attendee_id = any (v_others)
      and e.kind = 'ticket'
      and e.attempts = v_email.attempts
      and e.id <> all (taken)
      -- An expression, so that the planner does not scan the index of everything queued.
      and coalesce(e.status = 'queued' and (e.claim is null or e.next_attempt_at <= clock_timestamp()), false)
    limit 9
  );
end
$$;

-- Whose tickets a cancellation tells of: those of its address that were cancelled together.
create function private.holders_json(attendee public.attendees) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_agg(json_build_object('name', a.name, 'ticket_type', t.name) order by a.id)
    from public.attendees a
    join public.ticket_types t on t.id = a.ticket_type_id
    where a.id = any (attendee.id || private.tickets_beside(attendee))
      and a.cancelled_at = attendee.cancelled_at
      and a.erased_at is null
  );
end
$$;

-- Whom an order is for: the first hundred, and one more where there are more.
create function private.guests_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object('name', g.name, 'ticket_type', t.name) order by g.id), '[]')
    from (
      select a.id, a.name, a.ticket_type_id
      from public.attendees a
      where a.order_id = guests_json.order_id and a.status <> 'cancelled'
      order by a.id
      limit 101
    ) g
    join public.ticket_types t on t.id = g.ticket_type_id
  );
end
$$;

-- A ticket that goes with another, by its row of e-mails.
create function private.other_ticket_json(email_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee
  from public.attendees a
  where a.id = (select e.attendee_id from public.emails e where e.id = other_ticket_json.email_id);
  return json_build_object(
    'email_id', email_id,
    'name', v_attendee.name,
    'company', v_attendee.company,
    'ticket_type', (select t.name from public.ticket_types t where t.id = v_attendee.ticket_type_id),
    'ticket_code', v_attendee.ticket_code,
    'ticket_url', private.ticket_url(v_attendee.ticket_token)
  );
end
$$;

-- An e-mail with everything that it shows. It goes to the attendee, or to the contact of the order. Whoever claims plans each time: this
-- reads by key, and need not.
create function private.pending_email_json(email public.emails) returns json
language plpgsql stable security definer set search_path = '' set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_event public.events;
  v_offer json;
  v_others uuid[];
begin
  if email.sent_with is not null then
    v_others := array(
      select e.id
      from public.emails e
      where e.sent_with = email.id and e.id <> email.id and coalesce(e.claim = email.claim, false)
    );
  end if;
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = coalesce(email.order_id, v_attendee.order_id);
  v_offer := private.waiting_list_offer_json(email.waiting_list_entry_id);
  select e.* into v_event from public.events e where e.id = coalesce(v_order.event_id, (v_offer ->> 'event_id')::uuid);
  return json_build_object(
    'id', email.id,
    'claim', email.claim,
    'attempt', email.attempts,
    'kind', email.kind,
    'organisation', (
      select json_build_object(
        'id', g.id,
        'name', g.name,
        'reply_to', g.reply_to_email,
        'accent_colour', g.accent_colour,
        'payment_instructions', g.payment_instructions,
        'logo_version', private.logo_version(g.id)
      )
      from public.organisations g
      where g.id = email.organisation_id
    ),
    'event', private.event_json(v_event),
    'previous', email.previous,
    'ticket_type', (select json_build_object('name', t.name) from public.ticket_types t where t.id = v_attendee.ticket_type_id),
    'attendee', case when v_attendee.id is not null then json_build_object(
      'id', v_attendee.id,
      'name', v_attendee.name,
      'email', v_attendee.email,
      'company', v_attendee.company,
      'status', v_attendee.status,
      'ticket_code', case email.kind when 'ticket' then v_attendee.ticket_code end,
      -- Where the tickets of the order are not e-mailed, no other e-mail brings one.
      'ticket_url', case when email.kind = 'ticket' or email.kind not in ('event_cancelled', 'ticket_cancelled') and v_order.send_email
        then private.ticket_url(v_attendee.ticket_token) end,
      -- A calendar keeps the entry of the event while its mailbox has another ticket.
      'has_another_ticket', exists (
        select from public.attendees a
        where a.organisation_id = v_attendee.organisation_id and a.email_lower = v_attendee.email_lower
          and a.event_id = v_attendee.event_id and a.id <> v_attendee.id and a.status <> 'cancelled'
      )
    ) end,
    'order', case when email.order_id is null then json_build_object('reference', v_order.reference)
      else private.order_json(v_order, '[]', '[]', '[]') end,
    'others', case email.kind when 'ticket' then (
      select coalesce(json_agg(private.other_ticket_json(i) order by i), '[]') from unnest(v_others) i
    ) end,
    'holders', case email.kind when 'ticket_cancelled' then private.holders_json(v_attendee) end,
    'guests', case email.kind when 'order_confirmation' then private.guests_json(v_order.id) end,
    'lines', case when email.order_id is not null then private.order_lines_json(v_order.id) end,
    'payment', (
      select private.payment_json(p)::jsonb || jsonb_build_object('is_latest', not exists (
        select from public.payments l
        where l.order_id = p.order_id
          and l.id > p.id
          and not exists (select from public.payment_voids v where v.payment_id = l.id)
      ))
      from public.payments p
      where p.id = email.payment_id
    ),
    'waiting_list_entry', v_offer
  );
end
$$;

-- What is due, with everything that the e-mail shows. Organisations take turns: first the one with the fewest in flight, then
-- the one served longest ago, and of each its oldest e-mail; a mailing waits for the others, so that a ticket does not. One
-- courier claims at a time: two would not count each other's claims. No backlog is read: of each organisation at most "limit"
-- rows, and as many of a mailing.
-- Security definer, as 90-outbox/webhook-claims.sql. The plan uses the indexes whatever the statistics say: a mailing arrives between two of
-- their updates, and reading and sorting what is estimated as few rows then takes minutes.
create function api.claim_emails("limit" integer, lease_seconds integer default 600) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  -- Thirteen attempts are made. A row that is claimed far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  -- What goes with others, beyond "limit".
  v_more_left integer := 36;
  v_id uuid;
  v_more uuid[];
  -- All that is taken, and for each with which it goes.
  v_taken uuid[] := '{}';
  v_with uuid[] := '{}';
  v_claimed public.emails[];
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 1);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with due as (
      select
        d.id,
        d.next_attempt_at,
        u.in_flight + row_number() over (partition by o.organisation_id order by d.is_mailing, d.next_attempt_at, d.id) as turn,
        l.last_attempt_at
      from unnest(private.organisations_with_queued_emails()) o (organisation_id)
      cross join lateral (
        select count(*) as in_flight
        from public.emails e
        where e.organisation_id = o.organisation_id and e.claimed_until > v_now
      ) u
      left join lateral (
        select e.last_attempt_at
        from public.emails e
        where e.organisation_id = o.organisation_id and e.last_attempt_at is not null
        order by e.organisation_id desc, e.last_attempt_at desc
        limit 1
      ) l on true
      cross join (values (false), (true)) m (is_mailing)
      cross join lateral (
        select e.id, e.is_mailing, e.next_attempt_at
        from public.emails e
        where e.organisation_id = o.organisation_id
          and e.status = 'queued'
          and e.is_mailing = m.is_mailing
          and e.next_attempt_at <= v_now
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit claim_emails."limit"
      ) d
    )
    select d.id
    from due d
    order by d.turn, d.last_attempt_at nulls first, d.next_attempt_at, d.id
    limit claim_emails."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  -- With what goes with them. Those for which there is no room are left for the next claim, rather than split.
  foreach v_id in array v_candidates loop
    continue when v_id = any (v_taken);
    v_more := private.goes_with(v_id, v_taken);
    continue when cardinality(v_more) > v_more_left;
    v_more_left := v_more_left - cardinality(v_more);
    v_taken := v_taken || v_id || v_more;
    v_with := v_with || v_id || array_fill(v_id, array[cardinality(v_more)]);
  end loop;
  v_candidates := v_taken;

  perform api.settle_email(
    e.id, e.claim, error => format('Gave up after %s attempts without a recorded result.', v_most_claims), permanent => true
  )
  from public.emails e
  where e.id = any (v_candidates) and e.attempts >= v_most_claims and e.claim is not null;

  -- A ticket whose retry comes a little later goes with the first.
  update public.emails e set next_attempt_at = v_now
  where e.id = any (
    array(
      select e.id
      from public.emails e
      where e.id = any (v_candidates) and coalesce(e.next_attempt_at > v_now and e.claim is null, false)
      for no key update skip locked
    )
  );
  -- Still queued and due. An expression, so that the planner does not scan the index of everything due; an array, because a
  -- join might scan it, too.
  v_candidates := array(
    select e.id
    from public.emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  -- One e-mail tells all tickets of an address: where its own was cancelled since, it tells another.
  update public.emails e
  set attendee_id = coalesce(
    (
      select a.id
      from public.attendees c
      join public.attendees a
        on a.organisation_id = c.organisation_id and a.email_lower = c.email_lower and a.event_id = c.event_id
      where c.id = e.attendee_id
        and a.status <> 'cancelled'
      limit 1
    ),
    e.attendee_id
  )
  where e.id = any (v_candidates)
    and e.kind = 'event_changed'
    and (select a.status from public.attendees a where a.id = e.attendee_id) = 'cancelled';
  update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
  where e.id = any (v_candidates) and private.is_obsolete(e);
  -- An order that has no tickets yet is confirmed when it has.
  update public.emails e set next_attempt_at = v_now + interval '10 minutes'
  where e.id = any (v_candidates)
    and e.kind = 'order_confirmation'
    and e.next_attempt_at is not null
    and not exists (select from public.attendees a where a.order_id = e.order_id);
  with parts as materialized (
    select e.id, min(e.id::text) over w as sent_with, count(*) over w as tickets
    from public.emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    window w as (partition by v_with[array_position(v_taken, e.id)])
  ),
  claimed as (
    update public.emails e
    set claim = v_claim,
      sent_with = (select p.sent_with::uuid from parts p where p.id = e.id and p.tickets > 1),
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = e.attempts + 1,
      last_attempt_at = v_now,
      sent_to = coalesce(
        (select a.email from public.attendees a where a.id = e.attendee_id), (select o.email from public.orders o where o.id = e.order_id),
        (select w.email from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
      ),
      sent_code = case e.kind when 'ticket' then (select a.ticket_code from public.attendees a where a.id = e.attendee_id) end
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    returning e.*
  )
  select array_agg(row(c.*)::public.emails) into v_claimed from claimed c where coalesce(c.sent_with, c.id) = c.id;
  -- A statement of its own, which sees what is claimed.
  return (select coalesce(json_agg(private.pending_email_json(row(c.*)::public.emails)), '[]') from unnest(v_claimed) c);
end
$$;
comment on function api.claim_emails is
  'E-mails that are due, of every kind, claimed for lease_seconds: [{ id, claim, attempt, kind, organisation, event, previous, ticket_type, attendee, others, holders, guests, order, lines, payment, waiting_list_entry }]. "others" are tickets that go in the same e-mail; each is settled by its email_id.';
grant execute on function api.claim_emails to courier;

-- The results of a batch of attempts: sent, with the message_id of the mail service; or failed, permanently or for now. Transient
-- failures are retried for five days: an SMTP password that expires on a Friday loses no ticket. The plan uses the indexes whatever the
-- statistics say.
create function api.settle_emails(results json) returns void
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_generic_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_pauses constant interval[] :=
    '{30 seconds,2 minutes,10 minutes,30 minutes,2 hours,6 hours,12 hours,12 hours,12 hours,24 hours,24 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'email_id')::uuid from json_array_elements(results) r);
  v_attendee_ids uuid[] := array(select e.attendee_id from public.emails e where e.id = any (v_ids) and e.kind = 'ticket');
  v_tickets public.emails[];
begin
  -- Attendees are locked before their e-mails, as when tickets are cancelled or re-issued. Only a ticket changes them.
  v_attendee_ids := array(
    select a.id from public.attendees a where a.id = any (v_attendee_ids) order by a.id for no key update
  );

  with settled as (
    update public.emails e
    set claim = null,
      claimed_until = null,
      status = case
        when r.error is null then 'sent'
        when r.permanent or e.attempts > cardinality(v_pauses) then 'failed'
        else 'queued'
      end::public.email_status,
      sent_at = case when r.error is null then now() end,
      message_id = r.message_id,
      last_error = r.error,
      next_attempt_at = case
        when r.error is not null and r.permanent is not true then now() + private.retry_delay(e.attempts, v_pauses)
      end
    from json_to_recordset(results) r (email_id uuid, claim uuid, message_id text, error text, permanent boolean)
    -- By the ids, and an expression, so that the planner does not scan the index of everything queued.
    where e.id = any (v_ids) and e.id = r.email_id and e.claim = r.claim and coalesce(e.status = 'queued', false)
    returning e.*
  )
  select array_agg(row(s.*)::public.emails) into v_tickets from settled s where s.kind = 'ticket';
  if v_tickets is null then
    return;
  end if;

  -- The code or address changed while the e-mail was in flight: queue another one.
  insert into public.emails (organisation_id, attendee_id)
  select a.organisation_id, a.id
  from unnest(v_tickets) t
  join public.attendees a on a.id = t.attendee_id
  where a.ticket_email_status = 'queued' and t.status <> 'queued' and (t.sent_code, t.sent_to) <> (a.ticket_code, a.email);

  update public.attendees a
  set ticket_email_status = t.status,
    ticket_email_sent_at = coalesce(t.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = t.last_error
  from unnest(v_tickets) t
  where a.id = any (v_attendee_ids)
    and a.id = t.attendee_id
    and a.ticket_email_status = 'queued'
    and (t.status = 'queued' or coalesce((t.sent_code, t.sent_to) = (a.ticket_code, a.email), true));
end
$$;
comment on function api.settle_emails is
  'Records the results of sending claimed e-mails: [{ email_id, claim, message_id }], a failed one with error and permanent. Ignored where another claim has replaced it.';
grant execute on function api.settle_emails to courier;

create function api.settle_email(
  email_id uuid,
  claim uuid,
  message_id text default null,
  error text default null,
  permanent boolean default false
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform api.settle_emails(json_build_array(json_build_object(
    'email_id', email_id, 'claim', claim, 'message_id', message_id, 'error', error, 'permanent', permanent
  )));
end
$$;
comment on function api.settle_email is
  'Records the result of sending a claimed e-mail, as api.settle_emails.';
grant execute on function api.settle_email to courier;

-- A report of the mail service on the e-mail of one row.
create function private.record_email_event(
  email_id uuid,
  message_id text,
  status public.email_status,
  error text,
  attempt integer
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_email public.emails;
  v_claim constant uuid := gen_random_uuid();
begin
  select e.* into v_email from public.emails e where e.id = record_email_event.email_id;

  -- The report proves that it was sent: a courier that still holds it loses its claim, and a recorded failure is corrected.
  update public.emails e set claim = v_claim
  where e.id = v_email.id and e.status = 'queued' and e.attempts = record_email_event.attempt;
  if found then
    perform api.settle_email(v_email.id, v_claim, record_email_event.message_id);
  end if;
  update public.emails e
  set status = 'sent', sent_at = now(), message_id = record_email_event.message_id
  where e.id = v_email.id and e.status = 'failed' and e.attempts = record_email_event.attempt;

  update public.emails e
  -- The error often has the address in it.
  set status = record_email_event.status,
    last_error = case when not private.is_erased(e) then record_email_event.error end
  where e.id = v_email.id
    and e.status in ('sent', 'delivered')
    and e.attempts = coalesce(record_email_event.attempt, e.attempts)
  returning * into v_email;
  if not found or v_email.kind <> 'ticket' then
    return;
  end if;
  -- Only the latest e-mail that was sent counts: a report on an earlier one leaves the attendee as it is.
  update public.attendees a
  set ticket_email_status = v_email.status,
    ticket_email_sent_at = coalesce(v_email.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = v_email.last_error
  where a.id = v_email.attendee_id
    and a.ticket_email_status in ('sent', 'delivered', 'failed')
    and not exists (
      select from public.emails l
      where l.attendee_id = a.id and l.kind = 'ticket' and l.id > v_email.id and l.status not in ('cancelled', 'failed')
    );
end
$$;

-- What the mail service reports later: delivered, or bounced and why. It names an e-mail by its message_id, or by our id with
-- the number of the attempt if these were sent along. By our id a report may come before the courier settles, or in place of a
-- courier that died with its claim. A report on an attempt that another has followed is ignored: that may have gone to another
-- address. Tickets that went together are told together.
create function api.record_email_event(
  message_id text,
  status public.email_status,
  error text default null,
  email_id uuid default null,
  attempt integer default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
  v_id uuid;
begin
  if status is null or status not in ('delivered', 'bounced') then
    return;
  elsif email_id is not null then
    v_ids := array(
      select e.id from public.emails e where e.id = record_email_event.email_id
      union
      select e.id from public.emails e where e.sent_with = record_email_event.email_id
    );
  else
    v_ids := array(select e.id from public.emails e where e.message_id = record_email_event.message_id);
  end if;
  -- Attendees are locked before their e-mails, as in api.settle_emails.
  perform from public.attendees a
  where a.id = any (array(select e.attendee_id from public.emails e where e.id = any (v_ids)))
  order by a.id
  for no key update;
  foreach v_id in array v_ids loop
    perform private.record_email_event(v_id, message_id, status, error, attempt);
  end loop;
end
$$;
comment on function api.record_email_event is
  'Records the report of the mail service on an e-mail: delivered or bounced. Identified by our id and the attempt, or without these by message_id.';
grant execute on function api.record_email_event to courier;

-- schemas/90-outbox/poll.sql

-- What is due, for couriers that poll: reads only, a few look-ups by key, whatever the statistics say.

-- Whether a webhook is due to an enabled endpoint: a loose index scan over the endpoints that have pending ones.
create function private.are_webhooks_due() returns boolean
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off
as $$
begin
  return exists (
    with recursive pending as (
      (
        select d.webhook_endpoint_id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.status = 'pending'
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit 1
      )
      union all
      select n.webhook_endpoint_id, n.next_attempt_at
      from pending p
      cross join lateral (
        select d.webhook_endpoint_id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.status = 'pending' and d.webhook_endpoint_id > p.webhook_endpoint_id
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit 1
      ) n
    )
    select from pending p
    where p.next_attempt_at <= now()
      and (select w.status = 'enabled' from public.webhook_endpoints w where w.id = p.webhook_endpoint_id)
  );
end
$$;

create function private.are_emails_due() returns boolean
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
begin
  return exists (
    select from unnest(private.organisations_with_queued_emails()) o (organisation_id)
    cross join (values (false), (true)) m (is_mailing)
    cross join lateral (
      select from public.emails e
      where e.organisation_id = o.organisation_id
        and e.status = 'queued'
        and e.is_mailing = m.is_mailing
        and e.next_attempt_at <= now()
      limit 1
    ) e
  );
end
$$;

create function private.are_logos_due() returns boolean
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off
as $$
begin
  return exists (select from private.organisation_logos l where l.next_attempt_at <= now());
end
$$;

create function private.are_notifications_queued() returns boolean
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
begin
  return exists (select from private.notification_queue q order by q.organisation_id, q.transaction_id limit 1);
end
$$;

-- The queues of src/courier/queues.ts, by name. Notifications are fanned out also while deliveries are held.
create function api.poll_queues() returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_held constant boolean := private.is_held();
begin
  return array_to_json(array_remove(
    array[
      case when private.are_notifications_queued() or (not v_held and private.are_webhooks_due()) then 'webhooks' end,
      case when not v_held and private.are_emails_due() then 'ticket_emails' end,
      case when private.are_logos_due() then 'logos' end
    ],
    null
  ));
end
$$;
comment on function api.poll_queues is
  'The names of the queues in which something is due: of webhooks, ticket_emails and logos. For the courier, once a second.';
grant execute on function api.poll_queues to courier;

-- schemas/90-outbox/endpoint-operations.sql

-- Webhook endpoint operations: list, get, create, update, delete, and rotate the secret.

-- The current secret if this transaction made it (creation and rotation), and otherwise null.
-- Security definer: no role may read secrets.
create function private.new_webhook_secret(webhook_endpoint_id uuid) returns text
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select s.secret
    from public.webhook_endpoints w
    join private.webhook_secrets s on s.webhook_endpoint_id = w.id
    where w.id = new_webhook_secret.webhook_endpoint_id
      and w.organisation_id = private.current_organisation_id()
      and s.expires_at is null
      and s.created_at = now()
  );
end
$$;
grant execute on function private.new_webhook_secret to scope_events_write;

create function api.list_webhook_endpoints(cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_items json[];
begin
  v_items := array(
    select private.webhook_endpoint_json(w)
    from public.webhook_endpoints w
    where w.id < v_before
    order by w.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_webhook_endpoints is 'Webhook endpoints of the organisation, newest first: { data, has_more, next_cursor }.';
grant execute on function api.list_webhook_endpoints to scope_events_write;

create function api.get_webhook_endpoint(webhook_endpoint_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = get_webhook_endpoint.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  return private.webhook_endpoint_json(v_webhook_endpoint);
end
$$;
comment on function api.get_webhook_endpoint is 'One webhook endpoint, without its secret. 404 not_found.';
grant execute on function api.get_webhook_endpoint to scope_events_write;

create function api.create_webhook_endpoint(
  url text,
  types public.notification_type[],
  event_ids uuid[] default null,
  description text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.webhook_endpoints (organisation_id, url, types, event_ids, description)
  values (
    private.current_organisation_id(), create_webhook_endpoint.url, create_webhook_endpoint.types,
    coalesce(create_webhook_endpoint.event_ids, '{}'), create_webhook_endpoint.description
  )
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object(
      'status', 201,
      'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
    )
  );
end
$$;
comment on function api.create_webhook_endpoint is
  'Adds a webhook endpoint: 201 with it and its secret, which is not shown again. 403 missing_scope; 404 not_found (event_ids); 409 too_many_webhook_endpoints; 422 validation_failed.';
grant execute on function api.create_webhook_endpoint to scope_events_write;

create function api.update_webhook_endpoint(
  webhook_endpoint_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
  v_new public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = update_webhook_endpoint.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_version(v_webhook_endpoint.version, if_version);

  v_new := jsonb_populate_record(v_webhook_endpoint, changes);
  update public.webhook_endpoints w set
    url = v_new.url,
    description = v_new.description,
    types = v_new.types,
    event_ids = v_new.event_ids,
    status = v_new.status
  where w.id = v_webhook_endpoint.id
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_endpoint_json(v_webhook_endpoint))
  );
end
$$;
comment on function api.update_webhook_endpoint is
  'Changes fields of a webhook endpoint (status enabled or disabled): 200. 403 missing_scope; 404 not_found; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_webhook_endpoint to scope_events_write;

create function api.delete_webhook_endpoint(
  webhook_endpoint_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  delete from public.webhook_endpoints w where w.id = delete_webhook_endpoint.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'webhook_endpoint', 'id', webhook_endpoint_id, 'deleted', true)
  ));
end
$$;
comment on function api.delete_webhook_endpoint is 'Deletes a webhook endpoint with its secrets and deliveries: 200. 404 not_found.';
grant execute on function api.delete_webhook_endpoint to scope_events_write;

-- The current secret signs beside its successor for overlap_hours; an older one stops now.
-- Security definer: no role may write secrets.
create function private.replace_webhook_secret(webhook_endpoint_id uuid, overlap_hours integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.assert_not_foreign(w.organisation_id, 'webhook_endpoint_id')
  from public.webhook_endpoints w
  where w.id = replace_webhook_secret.webhook_endpoint_id;
  delete from private.webhook_secrets s
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id and s.expires_at is not null;
  update private.webhook_secrets s set expires_at = now() + make_interval(hours => overlap_hours)
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id;
  perform private.add_webhook_secret(webhook_endpoint_id);
end
$$;
grant execute on function private.replace_webhook_secret to scope_events_write;

create function api.rotate_webhook_secret(
  webhook_endpoint_id uuid,
  overlap_hours integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = rotate_webhook_secret.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_scopes_to_read(v_webhook_endpoint.types);
  perform private.replace_webhook_secret(v_webhook_endpoint.id, least(greatest(coalesce(overlap_hours, 24), 0), 168));

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object(
      'status', 200,
      'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
    )
  );
end
$$;
comment on function api.rotate_webhook_secret is
  'Gives a webhook endpoint a new secret; the previous one signs beside it for overlap_hours (24): 200 with the new one, which is not shown again. 403 missing_scope; 404 not_found.';
grant execute on function api.rotate_webhook_secret to scope_events_write;

-- schemas/90-outbox/housekeeping.sql

-- Retention: idempotency records, plans, settled deliveries and e-mails, the log of notifications, entries of the waiting list that came to
-- nothing, and the audit trail. The courier purges them in small batches, so that no other transaction waits for long.

-- Returns how many rows it deleted, so that the caller repeats it while there are more. What is pending or awaits its fan-out
-- is kept, however old, unless its endpoint is disabled. Reads what is old by its time and deletes it by its key, whatever the statistics
-- say: a batch costs the same however much is kept.
create function api.purge(
  retention_days integer default 30, "limit" integer default 1000, audit_retention_days integer default 365
) returns integer
language plpgsql volatile security definer set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
as $$
declare
  v_before timestamptz := now() - make_interval(days => greatest(retention_days, 1));
  v_purged integer;
  v_rows integer;
begin
  delete from private.idempotency_records r
  where (r.family_id, r.idempotency_key) in (
    select e.family_id, e.idempotency_key from private.idempotency_records e
    where e.expires_at < now() order by e.expires_at limit purge."limit" for update skip locked
  );
  get diagnostics v_purged = row_count;

  -- A plan that was applied or is too old still says so for an hour.
  delete from private.event_plans p
  where p.id = any (array(
    select o.id from private.event_plans o
    where o.expires_at < now() - interval '1 hour' order by o.expires_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.webhook_deliveries d
  where d.id = any (array(
    select o.id from public.webhook_deliveries o
    where o.created_at < v_before
      and (
        o.status <> 'pending'
        or exists (select from public.webhook_endpoints w where w.id = o.webhook_endpoint_id and w.status = 'disabled')
      )
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.notifications n
  where n.id = any (array(
    select o.id from public.notifications o
    where o.created_at < v_before
      and not exists (select from public.webhook_deliveries d where d.notification_id = o.id)
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = o.organisation_id and q.transaction_id = o.transaction_id
      )
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.emails e
  where e.id = any (array(
    select o.id from public.emails o
    where o.created_at < v_before and o.status <> 'queued' order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  -- The audit trail is kept for longer, without the person.
  with purged as (
    delete from public.waiting_list_entries w
    where w.id = any (array(
      select o.id from public.waiting_list_entries o
      where o.updated_at < v_before and o.status in ('expired', 'cancelled')
      order by o.updated_at limit purge."limit" for update skip locked
    ))
    returning w.id
  ),
  forgotten as (
    update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
    from purged p
    where e.object_id = p.id and e.changes is not null
  )
  select count(*) into v_rows from purged;
  v_purged := v_purged + v_rows;

  delete from public.audit_entries e
  where e.id = any (array(
    select o.id from public.audit_entries o
    where o.created_at < now() - make_interval(days => greatest(audit_retention_days, 1))
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  -- Once everything else is done, because it reads the subscriptions of all endpoints. A replaced one is needed only for queued transactions
  -- that had committed before it was replaced.
  if v_purged >= "limit" then
    return v_purged;
  end if;
  delete from private.webhook_subscriptions s
  where s.id in (
    select c.id
    from (
      select
        s.id,
        s.organisation_id,
        lead(s.transaction_id) over changes as next_transaction_id,
        lead(s.snapshot) over changes as next_snapshot
      from private.webhook_subscriptions s
      window changes as (partition by s.webhook_endpoint_id order by s."position")
    ) c
    where c.next_snapshot is not null
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = c.organisation_id
          and (q.transaction_id = c.next_transaction_id or pg_visible_in_snapshot(q.transaction_id, c.next_snapshot))
      )
    limit purge."limit"
  );
  get diagnostics v_rows = row_count;
  return v_purged + v_rows;
end
$$;
comment on function api.purge is 'Deletes what is older than its retention, at most "limit" rows of each kind: how many rows it deleted.';
grant execute on function api.purge to courier;

-- schemas/90-outbox/schedule.sql

-- Schedules the courier where it is an edge function: pg_cron calls it through pg_net, with URL and secret from Vault. Where
-- these extensions are not enabled, as on the embedded stack, nothing is scheduled.

-- Calls the function if something is due, or in any case. Its response is in net._http_response.
create function private.call_courier(in_any_case boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if not in_any_case
    and not private.are_webhooks_due()
    -- What no endpoint is subscribed to can wait for the call that is made in any case.
    and not exists (
      select from public.webhook_endpoints w
      where w.status = 'enabled'
        and exists (select from private.notification_queue q where q.organisation_id = w.organisation_id)
    )
    and not private.are_emails_due()
    and not exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
    and not exists (
      select from unnest(private.organisations_with_deadlines()) o (organisation_id)
      cross join lateral (
        select from public.orders d
        where d.organisation_id = o.organisation_id and d.payment_check_at <= now()
        limit 1
      ) d
    )
    and not private.are_logos_due()
  then
    return;
  end if;
  perform net.http_post(
    url => (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_url'),
    headers => jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_secret')
    ),
    -- Longer than a run takes, so that its response is recorded.
    timeout_milliseconds => 60000
  );
end
$$;

-- Run in the SQL editor: returns a sentence that says what it did. Run again, it replaces the schedule.
create function private.schedule_courier(url text, secret text, every text default '10 seconds') returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_missing text := concat_ws(
    ', ',
    case when to_regprocedure('cron.schedule(text,text,text)') is null then 'pg_cron' end,
    case when to_regprocedure('net.http_post(text,jsonb,jsonb,jsonb,integer)') is null then 'pg_net' end,
    case when to_regclass('vault.decrypted_secrets') is null then 'supabase_vault' end
  );
begin
  if v_missing <> '' then
    return format('Not scheduled: enable the extensions %s first, or have something else call the function.', v_missing);
  end if;
  delete from vault.secrets s where s.name in ('usher_courier_url', 'usher_courier_secret');
  perform vault.create_secret(url, 'usher_courier_url');
  perform vault.create_secret(secret, 'usher_courier_secret');
  perform cron.schedule('usher-courier', every, 'select private.call_courier()');
  -- The courier also purges, even when nothing is due. pg_cron would keep its run details for ever.
  perform cron.schedule('usher-courier-housekeeping', '*/10 * * * *', $job$
    select private.call_courier(in_any_case => true);
    delete from cron.job_run_details r using cron.job j
    where j.jobid = r.jobid and j.jobname like 'usher-courier%' and r.end_time < now() - interval '7 days'
  $job$);
  return format('Scheduled: the courier is called every %s if something is due.', every);
end
$$;

-- schemas/90-outbox/studio.sql

-- Webhook endpoints that fail, and who changed what, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.failing_webhook_endpoints with (security_invoker = true) as
select
  w.organisation_id,
  w.id as webhook_endpoint_id,
  w.url,
  w.description,
  w.status,
  w.failing_since,
  w.disabled_reason,
  d.last_response_status,
  d.last_error,
  d.last_attempt_at
from public.webhook_endpoints w
left join lateral (
  select d.last_response_status, d.last_error, d.last_attempt_at
  from public.webhook_deliveries d
  where d.webhook_endpoint_id = w.id and d.last_attempt_at is not null and d.status <> 'delivered'
  order by d.id desc
  limit 1
) d on true
where w.failing_since is not null or w.disabled_reason is not null
order by w.failing_since nulls last;
comment on view public.failing_webhook_endpoints is 'Webhook endpoints that do not answer as they should, with the last failure.';
create trigger failing_webhook_endpoints_100_read_only instead of insert or update or delete on public.failing_webhook_endpoints
  for each row execute function private.tg__refuse_write();

revoke all on public.failing_webhook_endpoints from anon, authenticated, service_role;
grant select on public.failing_webhook_endpoints to authenticated;

create view public.audit_trail with (security_invoker = true) as
select
  e.organisation_id,
  e.created_at,
  e.actor,
  private.actor_name(e) as actor_name,
  e.source,
  e.action,
  e.object_type,
  e.object_id,
  e.changes,
  e.id
from public.audit_entries e
order by e.id desc;
comment on view public.audit_trail is 'Who changed what, newest first: the audit entries with the name of the key or the address of the member.';
create trigger audit_trail_100_read_only instead of insert or update or delete on public.audit_trail
  for each row execute function private.tg__refuse_write();

revoke all on public.audit_trail from anon, authenticated, service_role;
grant select on public.audit_trail to authenticated;
