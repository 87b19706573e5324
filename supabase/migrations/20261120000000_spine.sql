-- The spine: organisations, keys, events, ticket types, promo codes, orders, attendees, check-ins, and the operations upon them.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.

set local lock_timeout = '5s';
set local statement_timeout = '60s';

-- Who may knock. Every scope of an API key is a role of its own; the BFF calls the database as the one role an operation
-- declares, so what a key may do is written in grants and policies, not in the BFF.
-- Roles are shared by all databases of a cluster, so they are created only where they are missing.

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
  end loop;
end
$$;

comment on role gateway is 'The BFF before it knows who calls: it may resolve a key hash, and nothing else.';
comment on role api_key is 'Any valid API key. Every scope_* role inherits it.';
comment on role courier is 'The delivery worker: claims and settles what is owed to the outside.';

-- What any key may do, a scoped call may do too.
grant api_key to
  scope_events_read,
  scope_orders_read,
  scope_attendees_read,
  scope_events_write,
  scope_attendees_write,
  scope_checkin_write,
  scope_orders_write;

-- PostgREST logs in as authenticator, which inherits nothing and becomes the role that the token names.
grant
  gateway,
  api_key,
  scope_events_read,
  scope_orders_read,
  scope_attendees_read,
  scope_events_write,
  scope_attendees_write,
  scope_checkin_write,
  scope_orders_write,
  courier
to authenticator;

create schema api;
comment on schema api is 'One function per operation: the only schema the Data API exposes.';

create schema private;
comment on schema private is 'Key hashes, idempotency records and the helpers of policies, triggers and operations. Never exposed.';

-- PostgreSQL lets everyone execute a new function. The global form is the one that takes that away; from here on every
-- function is closed until a grant beside it opens it.
alter default privileges revoke execute on functions from public;

grant usage on schema api to gateway, api_key;
grant usage on schema private to gateway, api_key, courier, authenticated, service_role;
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

-- UUID version 7 (RFC 9562): 48 bits of milliseconds, then random, so that ids sort by creation and keyset pages walk
-- them. PostgreSQL has its own from version 18 on.
create function private.uuid_v7() returns uuid
language plpgsql volatile set search_path = ''
as $$
begin
  return (
    lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
    || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14)
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
-- Organisations own everything. A plan sets how fast their keys may call; members are the people who sign in.

create table public.plans (
  name text not null,
  rate_limit_per_minute integer not null,
  constraint plans_pkey primary key (name),
  constraint plans_name_is_a_slug check (name ~ '^[a-z][a-z0-9_-]{0,39}$'),
  constraint plans_rate_limit_is_positive check (rate_limit_per_minute > 0)
);
comment on table public.plans is 'What an organisation may use. Add a row to offer another plan.';
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
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint organisations_pkey primary key (id),
  constraint organisations_slug_key unique (slug),
  constraint organisations_plan_fkey foreign key (plan) references public.plans (name),
  constraint organisations_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint organisations_slug_is_a_slug check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')
);
comment on table public.organisations is 'The owners of events. Nothing is ever visible across organisations.';
comment on column public.organisations.slug is 'Short name for addresses and the command line: lower-case letters, digits and hyphens.';

create trigger organisations_900_updated_at before update on public.organisations
  for each row execute function private.tg__set_updated_at();

create type public.organisation_role as enum ('owner', 'member');

create table public.organisation_members (
  organisation_id uuid not null,
  user_id uuid not null,
  role public.organisation_role not null default 'member',
  created_at timestamptz not null default now(),
  constraint organisation_members_pkey primary key (organisation_id, user_id),
  constraint organisation_members_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint organisation_members_user_id_fkey foreign key (user_id)
    references auth.users (id) on delete cascade
);
comment on table public.organisation_members is 'Who may sign in for an organisation. Owners also manage members and API keys.';

create index organisation_members_user_id_idx on public.organisation_members (user_id);

-- Security definer: a policy on organisation_members that read organisation_members would call itself for ever.
create function private.member_organisation_ids() returns setof uuid
language sql stable security definer set search_path = ''
as $$
  select m.organisation_id from public.organisation_members m where m.user_id = (select auth.uid())
$$;
grant execute on function private.member_organisation_ids() to authenticated;

-- Security definer for the same reason.
create function private.owned_organisation_ids() returns setof uuid
language sql stable security definer set search_path = ''
as $$
  select m.organisation_id from public.organisation_members m
  where m.user_id = (select auth.uid()) and m.role = 'owner'
$$;
grant execute on function private.owned_organisation_ids() to authenticated;

-- The default privileges of a Supabase project open every new table to these three. Each table closes itself first.
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
  using (id in (select private.owned_organisation_ids()));
grant select on public.organisations to api_key, authenticated;
grant update (name, slug) on public.organisations to authenticated;

alter table public.organisation_members enable row level security;
create policy organisation_members_select_membership on public.organisation_members for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy organisation_members_insert_ownership on public.organisation_members for insert to authenticated
  with check (organisation_id in (select private.owned_organisation_ids()));
create policy organisation_members_update_ownership on public.organisation_members for update to authenticated
  using (organisation_id in (select private.owned_organisation_ids()));
create policy organisation_members_delete_ownership on public.organisation_members for delete to authenticated
  using (organisation_id in (select private.owned_organisation_ids()));
grant select, delete on public.organisation_members to authenticated;
grant insert (organisation_id, user_id, role) on public.organisation_members to authenticated;
grant update (role) on public.organisation_members to authenticated;
-- API keys: made once, shown once, kept as a SHA-256 hash. The gateway resolves a hash to a principal; from then on every
-- request carries the key's id in its token and is checked again in its own transaction, so a revocation holds at once.

create type public.api_scope as enum (
  'events:read',
  'orders:read',
  'attendees:read',
  'events:write',
  'attendees:write',
  'checkin:write',
  'orders:write'
);

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
comment on column public.api_keys.family_id is
  'Keys that replace one another by rotation share it. Idempotency keys and the rate limit belong to the family, so a rotation in the middle of a retry neither doubles an order nor the allowance.';
comment on column public.api_keys.prefix is 'First characters of the key, to recognise it by. The key itself is not stored anywhere.';
comment on column public.api_keys.last_used_at is 'Stamped at most once a minute.';

create index api_keys_organisation_id_idx on public.api_keys (organisation_id);

-- In private, so that no table an organiser may read holds anything of the secret.
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
    -- Now, whatever moment was meant: a key is revoked or it is not. For a later end there is expires_at.
    new.revoked_at := now();
  end if;
  return new;
end
$$;
create trigger api_keys_100_guard before insert or update on public.api_keys
  for each row execute function private.tg_api_keys__guard();
create trigger api_keys_900_updated_at before update of name, scopes, expires_at, revoked_at on public.api_keys
  for each row execute function private.tg__set_updated_at();

revoke all on public.api_keys from anon, authenticated, service_role;
alter table private.api_key_hashes enable row level security;

alter table public.api_keys enable row level security;
create policy api_keys_select_itself on public.api_keys for select to api_key
  using (id = (select private.current_api_key_id()));
create policy api_keys_select_ownership on public.api_keys for select to authenticated
  using (organisation_id in (select private.owned_organisation_ids()));
create policy api_keys_update_ownership on public.api_keys for update to authenticated
  using (organisation_id in (select private.owned_organisation_ids()));
grant select on public.api_keys to api_key, authenticated;
grant update (name, scopes, expires_at, revoked_at) on public.api_keys to authenticated;

-- The three ways a known key is of no use. Raises 401, or does nothing.
create function private.refuse_unusable_key(key public.api_keys) returns void
language plpgsql stable set search_path = ''
as $$
begin
  if key.id is null then
    perform private.refuse(401, 'invalid_api_key', 'The API key is not valid.', hint => 'Send a live key of your organisation.');
  elsif key.revoked_at is not null then
    perform private.refuse(401, 'api_key_revoked', 'The API key was revoked.', hint => 'Use another key, or create one.');
  elsif key.expires_at <= now() then
    perform private.refuse(401, 'api_key_expired', 'The API key has expired.', hint => 'Use another key, or create one.');
  end if;
end
$$;

-- Who holds this key? Security definer: gateway may read no table at all. Stamps the use of the key here, and not in the
-- check of every request, because most requests are reads, in transactions that may not write; a BFF resolves a key again
-- every minute.
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

  perform private.refuse_unusable_key(v_key);

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
comment on function api.resolve_api_key(text) is
  'The principal behind a key: { api_key_id, family_id, organisation_id, scopes, rate_limit_per_minute }. Takes the SHA-256 of the key in hex. 401 when the key is unknown, revoked or expired.';
grant execute on function api.resolve_api_key(text) to gateway;

-- Runs first in every request that PostgREST serves, in the same transaction and as the role of the token. A token of a
-- scope is worth no more than its key is now: the BFF may cache a principal for a minute, this may not.
-- Security definer: it must see the key whatever the role may see.
create function private.check_request() returns void
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
  v_role text := v_claims ->> 'role';
  v_key public.api_keys;
begin
  if v_role <> 'api_key' and v_role not like 'scope\_%' then
    return;
  end if;

  select k.* into v_key
  from public.api_keys k
  where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = (v_claims ->> 'organisation_id')::uuid;

  perform private.refuse_unusable_key(v_key);

  if v_role <> 'api_key' and not (private.scope_of_role(v_role) = any (v_key.scopes)) then
    perform private.refuse(
      403, 'missing_scope', 'The API key lacks the scope this operation needs.',
      details => jsonb_build_object('scope', private.scope_of_role(v_role)),
      hint => 'Use a key that has the scope, or add the scope to this key.'
    );
  end if;
end
$$;
comment on function private.check_request() is 'PostgREST pre-request: refuses a revoked, expired or down-scoped key inside the request''s own transaction.';
grant execute on function private.check_request() to gateway, api_key, courier, authenticated, service_role;

-- scope_events_read is events:read, and so on for all seven.
create function private.scope_of_role(role text) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return replace(substr(role, length('scope_') + 1), '_', ':')::public.api_scope;
end
$$;

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
comment on function api.get_api_key() is 'The calling key: its organisation, scopes and rate limit.';
grant execute on function api.get_api_key() to api_key;

-- For the command line, which makes the key and passes its hash: the key itself never reaches the database.
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
  perform private.refuse_unusable_key(v_old);
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
-- Idempotency: the first outcome of a write, kept with its effect in one transaction and answered again to whoever repeats
-- the request. A refusal that rolled back left no effect and no record, so repeating it simply tries again.

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
comment on table private.idempotency_records is 'First outcomes of writes, for 24 hours. A key belongs to a family of API keys: rotation keeps it, another integration cannot hit it.';

create index idempotency_records_organisation_id_idx on private.idempotency_records (organisation_id);
create index idempotency_records_expires_at_idx on private.idempotency_records (expires_at);

alter table private.idempotency_records enable row level security;

-- An answer given to one scope is never replayed to another, whatever fingerprint comes with the key.
create function private.fingerprint_for_role(request_fingerprint text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return concat_ws(' ', private.claims() ->> 'role', request_fingerprint);
end
$$;

-- Security definer, like its twin below: records are read and written only through these two.
-- Returns the outcome to answer again, or null to go ahead. Whoever sends the same key at the same time waits here until
-- the first is done, and then finds its record.
create function private.replay_outcome(idempotency_key text, request_fingerprint text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_family_id uuid := (private.claims() ->> 'family_id')::uuid;
  v_record private.idempotency_records;
begin
  if idempotency_key is null or v_family_id is null then
    return null;
  end if;

  perform pg_advisory_xact_lock(hashtextextended(v_family_id || ' ' || idempotency_key, 0));

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
  -- As text, so that the fields keep their order.
  return ('{"replayed": true, ' || substr(v_record.outcome::text, 2))::json;
end
$$;
grant execute on function private.replay_outcome(text, text) to api_key;

-- Keeps the outcome under the key and returns it. A record that expired, and that nobody has purged yet, gives way.
create function private.record_outcome(idempotency_key text, request_fingerprint text, outcome json) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if idempotency_key is not null and private.claims() ? 'family_id' then
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
grant execute on function private.record_outcome(text, text, json) to api_key;
-- Events: draft -> published -> cancelled | completed; back to draft only while nobody has an order.

create type public.event_status as enum ('draft', 'published', 'cancelled', 'completed');

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
  venue_name text,
  venue_address text,
  venue_city text,
  venue_postcode text,
  venue_country text,
  online_url text,
  capacity integer,
  currency text not null default 'EUR',
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
  constraint events_currency_is_iso_4217 check (currency ~ '^[A-Z]{3}$'),
  constraint events_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint events_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.events is 'Something people come to. Draft until it has dates and a ticket type and is published.';
comment on column public.events.capacity is 'How many people may hold a ticket, over all ticket types. Empty: no limit but theirs.';
comment on column public.events.currency is 'ISO 4217. All prices and orders of the event are in it; fixed once there is an order.';
comment on column public.events.timezone is 'IANA name of the zone the event is held in, such as Europe/Berlin.';
comment on column public.events.external_id is 'Your own identifier, unique within the organisation.';
comment on column public.events.metadata is 'Flat JSON object of your own, at most 50 keys.';

-- Partial, and so no keys in the eyes of Postgres: editing a slug or an external_id does not lock the row against whoever
-- registers and therefore refers to it.
create unique index events_organisation_id_slug_key on public.events (organisation_id, slug) where slug <> '';
create unique index events_organisation_id_external_id_key on public.events (organisation_id, external_id)
  where external_id is not null;

-- The keyset pages of list_events, with and without a status.
create index events_organisation_id_id_idx on public.events (organisation_id, id desc);
create index events_organisation_id_status_id_idx on public.events (organisation_id, status, id desc);

-- The gate of an event. Whoever registers passes it together with others; whoever changes status, capacity or currency
-- closes it until the end of the transaction. So a cancellation never misses a registration in flight. An advisory lock
-- rather than a row lock, because its queue is fair: in an on-sale there is always somebody holding the row shared, and the
-- organiser's edit would wait for ever.
-- Behind it, where the event has a capacity of its own, registrations go one by one: that is a second lock, because two
-- who hold the first together could never both make it their own.
-- Order of locks, everywhere: event row, gate, order, attendee, ticket type.
create function private.close_gate(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(1, hashtext(event_id::text));
end
$$;

grant execute on function private.close_gate(uuid) to scope_events_write;

create function private.pass_gate(event_id uuid) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
begin
  perform pg_advisory_xact_lock_shared(1, hashtext(event_id::text));
  -- Read only now, when nobody can change it.
  select e.* into v_event from public.events e where e.id = pass_gate.event_id;
  return v_event;
end
$$;

create function private.pass_gate_one_by_one(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(2, hashtext(event_id::text));
end
$$;

create function private.refuse_transition("from" public.event_status, "to" public.event_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'invalid_transition', 'An event cannot go from its present status to this one.', 'status',
    jsonb_build_object('from', "from", 'to', "to"),
    'Allowed: draft to published; published to draft, cancelled or completed.'
  );
end
$$;
grant execute on function private.refuse_transition(public.event_status, public.event_status) to scope_events_write;

-- A slug of the name, with a few random characters where another event has it.
create function private.free_event_slug(organisation_id uuid, name text) returns text
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_slug text := coalesce(
    nullif(trim(both '-' from left(trim(both '-' from regexp_replace(lower(name), '[^a-z0-9]+', '-', 'g')), 90)), ''), 'event'
  );
begin
  if exists (
    select from public.events e where e.organisation_id = free_event_slug.organisation_id and e.slug = v_slug
  ) then
    v_slug := v_slug || '-' || lower(private.random_code(6));
  end if;
  return v_slug;
end
$$;

-- Security definer: it counts orders and tickets that the editing role may not be allowed to read.
create function private.tg_events__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.close_gate(new.id);
    end if;

    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
      );
    end if;

    if old.status = 'draft' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity and new.capacity > 0 and new.capacity < private.places_taken(new.id) then
      perform private.refuse(
        409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
        jsonb_build_object('places_taken', private.places_taken(new.id))
      );
    end if;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    if not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- The moments belong to the status; nobody sets them by hand.
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
create trigger events_050_fixed before update of organisation_id on public.events
  for each row execute function private.tg__refuse_change('organisation_id');
create trigger events_100_guard before insert or update on public.events
  for each row execute function private.tg_events__guard();
create trigger events_900_updated_at before update on public.events
  for each row execute function private.tg__set_updated_at();
create trigger events_900_version before update on public.events
  for each row execute function private.tg__count_version();

revoke all on public.events from anon, authenticated, service_role;

alter table public.events enable row level security;
-- Registering and scanning need to know the event, too; what they may know of it is in the column grants.
create policy events_select_own on public.events for select
  to scope_events_read, scope_events_write, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_insert_own on public.events for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy events_update_own on public.events for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_select_membership on public.events for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy events_insert_membership on public.events for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
create policy events_update_membership on public.events for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.events to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id, currency) on public.events to scope_attendees_write;
grant select (id, organisation_id, name, status) on public.events to scope_checkin_write;
grant insert (
  organisation_id, name, slug, description, starts_at, ends_at, timezone, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, currency, external_id, metadata
) on public.events to scope_events_write, authenticated;
grant update (
  name, slug, description, status, starts_at, ends_at, timezone, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, currency, external_id, metadata
) on public.events to scope_events_write, authenticated;

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
    'phase', case
      when event.starts_at is null or now() < event.starts_at then 'upcoming'
      when event.ends_at is null or now() < event.ends_at then 'ongoing'
      else 'ended'
    end,
    'starts_at', private.rfc3339(event.starts_at),
    'ends_at', private.rfc3339(event.ends_at),
    'timezone', event.timezone,
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
    'currency', event.currency,
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
grant execute on function private.event_json(public.events) to scope_events_read, scope_events_write;

create function api.list_events(
  status public.event_status default null,
  external_id text default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.event_json(p) order by p.id desc) into v_items
  from (
    select e.*
    from public.events e
    where (list_events.status is null or e.status = list_events.status)
      and (list_events.external_id is null or e.external_id = list_events.external_id)
      and (v_before is null or e.id < v_before)
    order by e.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_events(public.event_status, text, text, integer) is
  'Events of the organisation, newest first, optionally of one status or with one external_id: { data, has_more, next_cursor }.';
grant execute on function api.list_events(public.event_status, text, text, integer) to scope_events_read;

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
comment on function api.get_event(uuid) is 'One event. 404 not_found.';
grant execute on function api.get_event(uuid) to scope_events_read;

-- A venue comes and goes as a whole: what its object leaves out is cleared.
create function private.venue_columns(venue jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return jsonb_build_object(
    'venue_name', venue -> 'name',
    'venue_address', venue -> 'address',
    'venue_city', venue -> 'city',
    'venue_postcode', venue -> 'postcode',
    'venue_country', venue -> 'country'
  );
end
$$;
grant execute on function private.venue_columns(jsonb) to scope_events_write;

create function api.create_event(
  name text,
  slug text default null,
  description text default null,
  starts_at timestamptz default null,
  ends_at timestamptz default null,
  timezone text default null,
  venue jsonb default null,
  online_url text default null,
  capacity integer default null,
  currency text default null,
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
    organisation_id, name, slug, description, starts_at, ends_at, timezone,
    venue_name, venue_address, venue_city, venue_postcode, venue_country,
    online_url, capacity, currency, external_id, metadata
  )
  values (
    private.current_organisation_id(), create_event.name, create_event.slug, create_event.description,
    create_event.starts_at, create_event.ends_at, coalesce(create_event.timezone, 'UTC'),
    v_venue.venue_name, v_venue.venue_address, v_venue.venue_city, v_venue.venue_postcode, v_venue.venue_country,
    create_event.online_url, create_event.capacity, coalesce(create_event.currency, 'EUR'),
    create_event.external_id, coalesce(create_event.metadata, '{}')
  )
  returning * into v_event;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.event_json(v_event))
  );
end
$$;
comment on function api.create_event(text, text, text, timestamptz, timestamptz, text, jsonb, text, integer, text, text, jsonb, text, text) is
  'Creates a draft event: 201. 409 already_exists (slug, external_id); 422 validation_failed.';
grant execute on function api.create_event(text, text, text, timestamptz, timestamptz, text, jsonb, text, integer, text, text, jsonb, text, text)
  to scope_events_write;

create function api.update_event(
  event_id uuid,
  changes jsonb,
  if_version integer default null,
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

  select e.* into v_event from public.events e where e.id = update_event.event_id for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  perform private.require_version(v_event.version, if_version);

  -- An absent key leaves its field, null clears it.
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
    venue_name = v_new.venue_name,
    venue_address = v_new.venue_address,
    venue_city = v_new.venue_city,
    venue_postcode = v_new.venue_postcode,
    venue_country = v_new.venue_country,
    online_url = v_new.online_url,
    capacity = v_new.capacity,
    currency = v_new.currency,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where e.id = v_event.id
  returning * into v_event;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.event_json(v_event))
  );
end
$$;
comment on function api.update_event(uuid, jsonb, integer, text, text) is
  'Changes fields of an event; absent ones stay, null clears: 200. 404 not_found; 409 capacity_below_sold, event_has_orders, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_event(uuid, jsonb, integer, text, text) to scope_events_write;

-- The one way from status to status; the guard says which are allowed.
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
  -- Studio may save a row as it is; a caller who cancels what is cancelled should hear of it.
  if v_event.status = set_event_status.status then
    perform private.refuse_transition(v_event.status, set_event_status.status);
  end if;
  update public.events e set status = set_event_status.status where e.id = v_event.id returning * into v_event;
  return v_event;
end
$$;
grant execute on function private.set_event_status(uuid, public.event_status) to scope_events_write;

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
comment on function api.publish_event(uuid, text, text) is
  'Opens a draft event for registrations: 200. 404 not_found; 409 invalid_transition, event_not_publishable.';
grant execute on function api.publish_event(uuid, text, text) to scope_events_write;

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
comment on function api.complete_event(uuid, text, text) is
  'Closes an event, so that nobody can be registered any more: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.complete_event(uuid, text, text) to scope_events_write;

-- How many orders and people a change of an event touches. Security definer: an editing key may not read them.
create function private.event_effect(event_id uuid, dry_run boolean) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = event_effect.event_id;
  perform private.refuse_foreign(v_event.organisation_id, 'event_id');
  return json_build_object(
    'dry_run', coalesce(dry_run, false),
    'orders', (
      select count(*) from public.orders o where o.event_id = v_event.id and o.status <> 'cancelled'
    ),
    'attendees', (
      select count(*) from public.attendees a where a.event_id = v_event.id and a.status <> 'cancelled'
    )
  );
end
$$;
grant execute on function private.event_effect(uuid, boolean) to scope_events_write;

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
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.event_effect(event_id, dry_run),
      'data', private.event_json(private.set_event_status(event_id, 'draft'))
    );
    if dry_run then
      perform private.undo_dry_run();
    end if;
  exception when sqlstate 'UD001' then
    null; -- Everything above is undone; what it would have answered is kept.
  end;
  if dry_run then
    return v_outcome; -- Nothing happened, so there is nothing to record.
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome);
end
$$;
comment on function api.unpublish_event(uuid, boolean, text, text) is
  'Takes an event without orders back to draft, or says what that would do: 200. 404 not_found; 409 invalid_transition, event_has_orders.';
grant execute on function api.unpublish_event(uuid, boolean, text, text) to scope_events_write;

create function api.cancel_event(
  event_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_effect json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    perform from public.events e where e.id = cancel_event.event_id for no key update;
    if not found then
      perform private.refuse_not_found('event_id');
    end if;
    -- Counted before there is nothing left to count, and behind the closed gate, so that it is what is cancelled.
    perform private.close_gate(event_id);
    v_effect := private.event_effect(event_id, dry_run);
    v_outcome := json_build_object(
      'status', 200,
      'effect', v_effect,
      'data', private.event_json(private.set_event_status(event_id, 'cancelled'))
    );
    if dry_run then
      perform private.undo_dry_run();
    end if;
  exception when sqlstate 'UD001' then
    null; -- Everything above is undone; what it would have answered is kept.
  end;
  if dry_run then
    return v_outcome; -- Nothing happened, so there is nothing to record.
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome);
end
$$;
comment on function api.cancel_event(uuid, boolean, text, text) is
  'Cancels an event and with it its orders and tickets, or says what that would do: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_event(uuid, boolean, text, text) to scope_events_write;
-- Ticket types: what can be had for an event, at which price, how often.

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
  min_per_order integer not null default 1,
  max_per_order integer not null default 10,
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
    references public.events (id, organisation_id),
  constraint ticket_types_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint ticket_types_description_is_bounded check (length(description) <= 20000),
  constraint ticket_types_price_is_bounded check (price between 0 and 100000000000),
  constraint ticket_types_quantity_is_not_negative check (quantity >= 0),
  constraint ticket_types_quantity_sold_is_not_negative check (quantity_sold >= 0),
  constraint ticket_types_are_not_oversold check (quantity_sold <= quantity),
  constraint ticket_types_max_per_order_is_at_least_min_per_order check (min_per_order >= 1 and max_per_order >= min_per_order),
  constraint ticket_types_sales_start_at_and_sales_end_at_are_finite check (
    sales_start_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and sales_end_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint ticket_types_sales_end_at_is_after_sales_start_at check (sales_end_at > sales_start_at),
  constraint ticket_types_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint ticket_types_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.ticket_types is 'Kinds of ticket of an event. Archive one to stop it being issued; tickets already issued stay good.';
comment on column public.ticket_types.price is 'In minor units (cents) of the event''s currency. 0 is free.';
comment on column public.ticket_types.quantity is 'How many there are. Empty: no limit. Cannot be set below quantity_sold.';
comment on column public.ticket_types.quantity_sold is 'Tickets that hold a place. Counted from the attendees, not edited.';
comment on column public.ticket_types.position is 'Where it stands in the list of the event''s ticket types, from 0.';

create unique index ticket_types_organisation_id_external_id_key on public.ticket_types (organisation_id, external_id)
  where external_id is not null;
create index ticket_types_event_id_idx on public.ticket_types (event_id, position, id);

-- Rows below an event belong to the event's organisation; whoever adds one need not say so.
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

create function private.tg_ticket_types__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Depth 1 is a statement of a person or an API; the count itself comes from the trigger on attendees, one deeper.
  if pg_trigger_depth() = 1
    and new.quantity_sold is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_sold end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_sold is counted from the attendees and cannot be edited.', 'quantity_sold',
      hint => 'Add or cancel attendees instead.'
    );
  end if;
  if tg_op = 'UPDATE' and new.quantity is distinct from old.quantity and new.quantity >= 0 and new.quantity < new.quantity_sold then
    perform private.refuse(
      409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued.', 'quantity',
      jsonb_build_object('quantity_sold', new.quantity_sold)
    );
  end if;
  return new;
end
$$;
create trigger ticket_types_050_organisation before insert on public.ticket_types
  for each row execute function private.tg__inherit_organisation();
create trigger ticket_types_050_fixed before update of organisation_id, event_id on public.ticket_types
  for each row execute function private.tg__refuse_change('organisation_id', 'event_id');
create trigger ticket_types_100_guard before insert or update on public.ticket_types
  for each row execute function private.tg_ticket_types__guard();
create trigger ticket_types_900_updated_at before update on public.ticket_types
  for each row execute function private.tg__set_updated_at();
-- Not for quantity_sold: an organiser's edit must not fail because somebody bought a ticket meanwhile.
create trigger ticket_types_900_version before update of
    name, description, price, quantity, min_per_order, max_per_order, sales_start_at, sales_end_at,
    visibility, status, position, external_id, metadata
  on public.ticket_types
  for each row execute function private.tg__count_version();

-- How many people hold a ticket of the event. Volatile, so that it sees what was committed before its caller got the gate.
create function private.places_taken(event_id uuid) returns bigint
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select coalesce(sum(t.quantity_sold), 0) from public.ticket_types t where t.event_id = places_taken.event_id
  );
end
$$;

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
  using (organisation_id in (select private.member_organisation_ids()));
create policy ticket_types_insert_membership on public.ticket_types for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
create policy ticket_types_update_membership on public.ticket_types for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.ticket_types to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id, event_id) on public.ticket_types to scope_attendees_write;
grant select (id, organisation_id, name) on public.ticket_types to scope_checkin_write, scope_attendees_read;
grant insert (
  organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;
grant update (
  name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;

-- places_left: what the event's own capacity still allows, or null.
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
      'quantity_available', a.available,
      'min_per_order', ticket_type.min_per_order,
      'max_per_order', ticket_type.max_per_order,
      'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
      'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
      'visibility', ticket_type.visibility,
      'status', ticket_type.status,
      'sales_status', case
        when ticket_type.status = 'archived' then 'archived'
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
      select least(ticket_type.quantity - ticket_type.quantity_sold, greatest(places_left, 0)) as available
    ) a
  );
end
$$;
grant execute on function private.ticket_type_json(public.ticket_types, text, bigint) to scope_events_read, scope_events_write;

-- One ticket type with what it takes from its event.
create function private.ticket_type_json(ticket_type public.ticket_types) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.ticket_type_json(
      ticket_type,
      e.currency,
      e.capacity - (select coalesce(sum(t.quantity_sold), 0) from public.ticket_types t where t.event_id = e.id)
    )
    from public.events e
    where e.id = ticket_type.event_id
  );
end
$$;
grant execute on function private.ticket_type_json(public.ticket_types) to scope_events_read, scope_events_write;

-- All of them at once: an event has a handful, and their order is the organiser's, which a cursor could not follow.
create function api.list_ticket_types(event_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
  v_places_left bigint;
  v_items json;
begin
  select e.* into v_event from public.events e where e.id = list_ticket_types.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  select v_event.capacity - coalesce(sum(t.quantity_sold), 0) into v_places_left
  from public.ticket_types t
  where t.event_id = v_event.id;

  select coalesce(
    json_agg(private.ticket_type_json(t, v_event.currency, v_places_left) order by t.position, t.id), '[]'
  ) into v_items
  from public.ticket_types t
  where t.event_id = v_event.id;

  return json_build_object('data', v_items, 'has_more', false, 'next_cursor', null);
end
$$;
comment on function api.list_ticket_types(uuid) is
  'All ticket types of an event in the organiser''s order: { data, has_more: false, next_cursor: null }. 404 not_found.';
grant execute on function api.list_ticket_types(uuid) to scope_events_read;

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
comment on function api.get_ticket_type(uuid) is 'One ticket type. 404 not_found.';
grant execute on function api.get_ticket_type(uuid) to scope_events_read;

create function api.create_ticket_type(
  event_id uuid,
  name text,
  description text default null,
  price bigint default null,
  quantity integer default null,
  min_per_order integer default null,
  max_per_order integer default null,
  sales_start_at timestamptz default null,
  sales_end_at timestamptz default null,
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
    coalesce(create_ticket_type.min_per_order, 1), coalesce(create_ticket_type.max_per_order, 10),
    create_ticket_type.sales_start_at, create_ticket_type.sales_end_at,
    coalesce(create_ticket_type.visibility, 'public'), coalesce(create_ticket_type.position, 0),
    create_ticket_type.external_id, coalesce(create_ticket_type.metadata, '{}')
  )
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 201, 'data', private.ticket_type_json(v_ticket_type))
  );
end
$$;
comment on function api.create_ticket_type(uuid, text, text, bigint, integer, integer, integer, timestamptz, timestamptz, public.ticket_type_visibility, integer, text, jsonb, text, text) is
  'Adds a ticket type to an event: 201. 404 not_found; 409 already_exists (external_id); 422 validation_failed.';
grant execute on function api.create_ticket_type(uuid, text, text, bigint, integer, integer, integer, timestamptz, timestamptz, public.ticket_type_visibility, integer, text, jsonb, text, text)
  to scope_events_write;

create function api.update_ticket_type(
  ticket_type_id uuid,
  changes jsonb,
  if_version integer default null,
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

  select t.* into v_ticket_type from public.ticket_types t where t.id = update_ticket_type.ticket_type_id for no key update;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.require_version(v_ticket_type.version, if_version);

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
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.ticket_type_json(v_ticket_type))
  );
end
$$;
comment on function api.update_ticket_type(uuid, jsonb, integer, text, text) is
  'Changes fields of a ticket type (status archived stops it being issued): 200. 404 not_found; 409 quantity_below_sold, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_ticket_type(uuid, jsonb, integer, text, text) to scope_events_write;
-- Promo codes: a percentage off the price of some or all ticket types of an event, for a while, so many times.

create type public.promo_code_status as enum ('active', 'disabled');

create table public.promo_codes (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  code text not null,
  percent_off numeric(5, 2) not null,
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
comment on table public.promo_codes is 'Discounts that buyers name by a code. Disable one to refuse it from now on.';
comment on column public.promo_codes.code is 'What the buyer types; upper and lower case are the same.';
comment on column public.promo_codes.percent_off is 'Above 0, up to 100, with at most two decimals.';
comment on column public.promo_codes.max_redemptions is 'How many tickets may have it. Empty: no limit.';
comment on column public.promo_codes.times_redeemed is 'Tickets that have it. Counted from the attendees, not edited.';
comment on column public.promo_codes.ticket_type_ids is 'Ticket types it is good for. Empty: all of the event.';

create unique index promo_codes_event_id_code_key on public.promo_codes (event_id, lower(code));

create function private.tg_promo_codes__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- Depth 1 is a statement of a person or an API; the count itself comes from a trigger, one deeper.
  if pg_trigger_depth() = 1
    and new.times_redeemed is distinct from (case when tg_op = 'INSERT' then 0 else old.times_redeemed end) then
    perform private.refuse(
      409, 'read_only_field', 'times_redeemed is counted from the attendees and cannot be edited.', 'times_redeemed'
    );
  end if;
  -- Only when the list is set: a ticket type that is deleted later leaves a code that can still be disabled.
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
        422, 'validation_failed', 'A ticket type of the list is not one of the event.', 'ticket_type_ids',
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
  for each row execute function private.tg__refuse_change('organisation_id', 'event_id');
create trigger promo_codes_050_organisation before insert on public.promo_codes
  for each row execute function private.tg__inherit_organisation();
create trigger promo_codes_100_guard before insert or update on public.promo_codes
  for each row execute function private.tg_promo_codes__guard();
create trigger promo_codes_900_updated_at before update on public.promo_codes
  for each row execute function private.tg__set_updated_at();
create trigger promo_codes_900_version before update of
    code, percent_off, valid_from, valid_until, max_redemptions, ticket_type_ids, status
  on public.promo_codes
  for each row execute function private.tg__count_version();

revoke all on public.promo_codes from anon, authenticated, service_role;

alter table public.promo_codes enable row level security;
create policy promo_codes_select_own on public.promo_codes for select to scope_events_read, scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_insert_own on public.promo_codes for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_update_own on public.promo_codes for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_select_membership on public.promo_codes for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy promo_codes_insert_membership on public.promo_codes for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
create policy promo_codes_update_membership on public.promo_codes for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.promo_codes to scope_events_read, scope_events_write, authenticated;
grant insert (
  organisation_id, event_id, code, percent_off, valid_from, valid_until, max_redemptions, ticket_type_ids, status
) on public.promo_codes to scope_events_write, authenticated;
grant update (
  code, percent_off, valid_from, valid_until, max_redemptions, ticket_type_ids, status
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
grant execute on function private.promo_code_json(public.promo_codes) to scope_events_read, scope_events_write;

create function api.list_promo_codes(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_promo_codes.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  select array_agg(private.promo_code_json(p) order by p.id desc) into v_items
  from (
    select c.*
    from public.promo_codes c
    where c.event_id = list_promo_codes.event_id and (v_before is null or c.id < v_before)
    order by c.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_promo_codes(uuid, text, integer) is
  'Promo codes of an event, newest first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_promo_codes(uuid, text, integer) to scope_events_read;

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
comment on function api.get_promo_code(uuid) is 'One promo code. 404 not_found.';
grant execute on function api.get_promo_code(uuid) to scope_events_read;

create function api.create_promo_code(
  event_id uuid,
  code text,
  percent_off numeric,
  valid_from timestamptz default null,
  valid_until timestamptz default null,
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
    organisation_id, event_id, code, percent_off, valid_from, valid_until, max_redemptions, ticket_type_ids
  )
  values (
    v_organisation_id, create_promo_code.event_id, create_promo_code.code, create_promo_code.percent_off,
    create_promo_code.valid_from, create_promo_code.valid_until, create_promo_code.max_redemptions,
    coalesce(create_promo_code.ticket_type_ids, '{}')
  )
  returning * into v_promo_code;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 201, 'data', private.promo_code_json(v_promo_code))
  );
end
$$;
comment on function api.create_promo_code(uuid, text, numeric, timestamptz, timestamptz, integer, uuid[], text, text) is
  'Adds a promo code to an event: 201. 404 not_found; 409 already_exists (code); 422 validation_failed.';
grant execute on function api.create_promo_code(uuid, text, numeric, timestamptz, timestamptz, integer, uuid[], text, text)
  to scope_events_write;

create function api.update_promo_code(
  promo_code_id uuid,
  changes jsonb,
  if_version integer default null,
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
  perform private.require_version(v_promo_code.version, if_version);

  v_new := jsonb_populate_record(v_promo_code, changes);
  update public.promo_codes c set
    code = v_new.code,
    percent_off = v_new.percent_off,
    valid_from = v_new.valid_from,
    valid_until = v_new.valid_until,
    max_redemptions = v_new.max_redemptions,
    ticket_type_ids = v_new.ticket_type_ids,
    status = v_new.status
  where c.id = v_promo_code.id
  returning * into v_promo_code;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.promo_code_json(v_promo_code))
  );
end
$$;
comment on function api.update_promo_code(uuid, jsonb, integer, text, text) is
  'Changes fields of a promo code (status disabled refuses it): 200. 404 not_found; 409 limit_below_redeemed, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_promo_code(uuid, jsonb, integer, text, text) to scope_events_write;
-- Orders: pending -> completed -> cancelled, or pending -> cancelled. An order completes when nothing is due.

create type public.order_status as enum ('pending', 'completed', 'cancelled');
create type public.payment_status as enum ('not_required', 'awaiting_payment', 'partially_paid', 'paid', 'refund_due');
create type public.request_source as enum ('api', 'mcp', 'studio');

-- By which door a row came in: the token says api or mcp; without a token it was a person.
create function private.current_source() returns public.request_source
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce(private.claims() ->> 'source', 'studio')::public.request_source;
end
$$;
grant execute on function private.current_source() to api_key, authenticated;

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
  payment_method text,
  source public.request_source not null default private.current_source(),
  completed_at timestamptz,
  cancelled_at timestamptz,
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
  constraint orders_reference_is_readable check (reference ~ '^[0-9A-HJKMNP-TV-Z]{8}$'),
  constraint orders_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint orders_email_is_an_address check (email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(email) <= 254),
  constraint orders_company_is_one_line check (length(btrim(company)) between 1 and 200 and company !~ '[[:cntrl:]]'),
  constraint orders_amounts_are_not_negative check (subtotal >= 0 and discount_total >= 0 and amount_paid >= 0),
  constraint orders_discount_is_at_most_the_subtotal check (discount_total <= subtotal),
  constraint orders_complete_when_nothing_is_due check (status <> 'completed' or amount_paid >= subtotal - discount_total),
  constraint orders_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint orders_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.orders is 'Who registered, and what is owed for it. The people who come are its attendees.';
comment on column public.orders.reference is 'Short and readable over the telephone: no I, L, O or U. Given by Usher.';
comment on column public.orders.send_email is 'Whether its tickets are e-mailed to the attendees.';
comment on column public.orders.amount_paid is 'Added up from the payments, not edited.';
comment on column public.orders.subtotal is 'In minor units of currency, like all amounts. 0 for complimentary tickets.';

create unique index orders_organisation_id_external_id_key on public.orders (organisation_id, external_id)
  where external_id is not null;
create index orders_event_id_idx on public.orders (event_id, id desc);
create index orders_organisation_id_id_idx on public.orders (organisation_id, id desc);
-- A column, because behind row level security no index on lower() is used: the function might leak what it is given.
create index orders_organisation_id_email_lower_idx on public.orders (organisation_id, email_lower);

-- Security definer: it reads event and references beyond what a registering key may see.
create function private.tg_orders__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
begin
  if tg_op = 'INSERT' then
    v_event := private.pass_gate(new.event_id);
    perform private.refuse_foreign(v_event.organisation_id, 'event_id');
    if v_event.status <> 'published' then
      perform private.refuse_unpublished(v_event.status);
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;
    new.status := 'pending';
    new.amount_paid := 0;

    loop
      new.reference := private.random_code(8);
      exit when not exists (
        select from public.orders o where o.organisation_id = new.organisation_id and o.reference = new.reference
      );
    end loop;
  else
    -- Depth 1 is a statement of a person or an API; the sum itself comes from the trigger on payments, one deeper.
    if pg_trigger_depth() = 1 and new.amount_paid <> old.amount_paid then
      perform private.refuse(
        409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
        hint => 'Add a payment instead.'
      );
    end if;
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and new.amount_paid < new.subtotal - new.discount_total then
      perform private.refuse(
        409, 'payment_due', 'An order completes when nothing is due.', 'status', hint => 'Record the payment instead.'
      );
    end if;
  end if;

  -- A generated column has no value yet in a BEFORE trigger, hence the sum in place of total.
  if new.status = 'pending' and new.amount_paid >= new.subtotal - new.discount_total then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'cancelled' and new.amount_paid > 0 then 'refund_due'
    when new.status = 'cancelled' then 'not_required'
    when new.subtotal - new.discount_total = 0 then 'not_required'
    when new.amount_paid >= new.subtotal - new.discount_total then 'paid'
    when new.amount_paid > 0 then 'partially_paid'
    else 'awaiting_payment'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;
create trigger orders_050_fixed before update of organisation_id, event_id, reference, currency on public.orders
  for each row execute function private.tg__refuse_change('organisation_id', 'event_id', 'reference', 'currency');
create trigger orders_100_guard before insert or update on public.orders
  for each row execute function private.tg_orders__guard();
create trigger orders_900_updated_at before update on public.orders
  for each row execute function private.tg__set_updated_at();
create trigger orders_900_version before update of name, email, company, status, amount_paid, external_id, metadata
  on public.orders
  for each row execute function private.tg__count_version();

-- An event that does not take place has no orders that stand. Behind its gate, closed by the guard: none is in flight.
create function private.tg_events__cancel_orders() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.orders o set status = 'cancelled' where o.event_id = new.id and o.status <> 'cancelled';
  return null;
end
$$;
create trigger events_500_cancel_orders after update on public.events
  for each row when (new.status = 'cancelled' and old.status <> 'cancelled')
  execute function private.tg_events__cancel_orders();

create function private.refuse_unpublished(status public.event_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'event_not_published', 'People can be registered only while the event is published.', 'event_id',
    jsonb_build_object('status', status), 'Publish the event first; a cancelled or completed event stays closed.'
  );
end
$$;

revoke all on public.orders from anon, authenticated, service_role;

alter table public.orders enable row level security;
-- A registering key sees the order that it is making, in this very transaction, and no other.
create policy orders_select_new on public.orders for select to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()) and created_at = now());
create policy orders_select_own on public.orders for select to scope_orders_read, scope_orders_write, scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy orders_update_own on public.orders for update to scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy orders_insert_own on public.orders for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy orders_select_membership on public.orders for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy orders_update_membership on public.orders for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.orders to scope_orders_read, scope_orders_write, scope_attendees_write, authenticated;
-- To find attendees by the reference of their order.
grant select (id, organisation_id, reference) on public.orders to scope_attendees_read;
grant update (status) on public.orders to scope_orders_write;
grant insert (organisation_id, event_id, name, email, company, send_email) on public.orders to scope_attendees_write;
grant update (name, email, company, status, external_id, metadata) on public.orders to authenticated;

create function private.order_json("order" public.orders, attendees json, payments json) returns json
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
    'amount_due', case when "order".status = 'cancelled' then 0 else "order".total - "order".amount_paid end,
    'payment_method', "order".payment_method,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'completed_at', private.rfc3339("order".completed_at),
    'cancelled_at', private.rfc3339("order".cancelled_at),
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', private.rfc3339("order".created_at),
    'updated_at', private.rfc3339("order".updated_at)
  );
end
$$;
grant execute on function private.order_json(public.orders, json, json) to scope_attendees_write, scope_orders_read, scope_orders_write;
-- Attendees: the people who come, each with a ticket code. An attendee who is not cancelled holds a place.

create type public.attendee_status as enum ('active', 'awaiting_payment', 'cancelled');
create type public.ticket_email_status as enum (
  'not_requested', 'waiting', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'cancelled'
);

create table public.attendees (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  order_id uuid not null,
  ticket_type_id uuid not null,
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  status public.attendee_status not null default 'active',
  ticket_code text not null,
  checked_in_at timestamptz,
  ticket_email_status public.ticket_email_status not null default 'queued',
  ticket_email_sent_at timestamptz,
  ticket_email_last_error text,
  cancelled_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint attendees_pkey primary key (id),
  constraint attendees_organisation_id_ticket_code_key unique (organisation_id, ticket_code),
  constraint attendees_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint attendees_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint attendees_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint attendees_email_is_an_address check (email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(email) <= 254),
  constraint attendees_company_is_one_line check (length(btrim(company)) between 1 and 200 and company !~ '[[:cntrl:]]'),
  constraint attendees_ticket_code_is_readable check (ticket_code ~ '^[0-9A-HJKMNP-TV-Z]{16}$'),
  constraint attendees_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint attendees_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.attendees is 'The people who come. Cancel one by setting status to cancelled: the place is free again and the ticket stops scanning.';
comment on column public.attendees.ticket_code is 'What the QR code holds: 80 random bits, given by Usher. Clear it to have a new one given; the old one then stops scanning.';
comment on column public.attendees.checked_in_at is 'When they came in. Kept by check_ins, not edited.';

create unique index attendees_organisation_id_external_id_key on public.attendees (organisation_id, external_id)
  where external_id is not null;
create index attendees_order_id_idx on public.attendees (order_id);
create index attendees_event_id_idx on public.attendees (event_id, id desc);
create index attendees_organisation_id_id_idx on public.attendees (organisation_id, id desc);
-- A column, because behind row level security no index on lower() is used: the function might leak what it is given.
create index attendees_organisation_id_email_lower_idx on public.attendees (organisation_id, email_lower);
create index attendees_ticket_type_id_idx on public.attendees (ticket_type_id);

-- Security definer: it reads order and ticket type beyond what a registering key may see.
create function private.tg_attendees__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  if tg_op = 'INSERT' then
    -- The gate before the order, as everywhere; then the order shared, so that it is not cancelled or completed past a
    -- ticket it does not know of.
    perform private.pass_gate(o.event_id) from public.orders o where o.id = new.order_id;
    select o.* into v_order from public.orders o where o.id = new.order_id for share;
    perform private.refuse_foreign(v_order.organisation_id, 'order_id');
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.checked_in_at := null;
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.ticket_email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is kept by the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.ticket_code is null then
      -- A ticket is re-issued: the new code goes to whoever holds it now.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A ticket that was used or cancelled cannot be issued anew.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person anew.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' then 'not_requested'
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.ticket_email_status;
    elsif new.ticket_code <> old.ticket_code then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are given, not chosen.', 'ticket_code', hint => 'Clear it to have a new one given.'
      );
    end if;

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
            409, 'payment_due', 'The ticket is good once its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.ticket_email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;
  end if;

  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;
create trigger attendees_050_fixed before update of organisation_id, event_id, order_id on public.attendees
  for each row execute function private.tg__refuse_change('organisation_id', 'event_id', 'order_id');
create trigger attendees_100_guard before insert or update on public.attendees
  for each row execute function private.tg_attendees__guard();
create trigger attendees_100_no_truncate before truncate on public.attendees
  for each statement execute function private.tg__refuse_truncate();
create trigger attendees_900_updated_at before update on public.attendees
  for each row execute function private.tg__set_updated_at();
-- Not for checked_in_at and the state of the e-mail: those are news, not edits.
create trigger attendees_900_version before update of
    name, email, company, status, ticket_type_id, ticket_code, external_id, metadata
  on public.attendees
  for each row execute function private.tg__count_version();

-- Takes places of one ticket type, or gives them back, exactly, under any concurrency. The update of the row is what makes
-- two buyers of the last place wait for one another, so it comes as late in the transaction as it can.
-- Security definer: counting is no right of whoever registers.
create function private.move_places(ticket_type_id uuid, places integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  update public.ticket_types t set quantity_sold = t.quantity_sold + places
  where t.id = move_places.ticket_type_id
    and (places < 0 or t.quantity is null or t.quantity_sold + places <= t.quantity)
  returning * into v_ticket_type;
  if not found then
    perform private.refuse(
      409, 'sold_out', 'There are not enough tickets of this type left.', 'ticket_type_id',
      hint => 'Choose another ticket type, or raise its quantity.'
    );
  end if;

  if places < 0 then
    return;
  elsif v_ticket_type.status = 'archived' then
    perform private.refuse(
      409, 'ticket_type_archived', 'This ticket type is archived and no longer issued.', 'ticket_type_id',
      hint => 'Choose an active ticket type.'
    );
  elsif now() < v_ticket_type.sales_start_at then
    perform private.refuse(
      409, 'sales_not_started', 'The sale of this ticket type has not started.', 'ticket_type_id',
      jsonb_build_object('sales_start_at', private.rfc3339(v_ticket_type.sales_start_at))
    );
  elsif now() >= v_ticket_type.sales_end_at then
    perform private.refuse(
      409, 'sales_ended', 'The sale of this ticket type has ended.', 'ticket_type_id',
      jsonb_build_object('sales_end_at', private.rfc3339(v_ticket_type.sales_end_at))
    );
  end if;
end
$$;

create type private.place_move as (event_id uuid, ticket_type_id uuid, places integer);

-- Once a statement, not once a row: cancelling an event of ten thousand is one update of each ticket type. All gates
-- before all ticket types, in the order of their ids.
create function private.tg_attendees__count_places() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_moves private.place_move[] := '{}';
  v_event_id uuid;
  v_event public.events;
  v_limited public.events[] := '{}';
  v_move record;
begin
  if tg_op in ('UPDATE', 'DELETE') then
    v_moves := v_moves || array(
      select row(o.event_id, o.ticket_type_id, -1)::private.place_move from old_rows o where o.status <> 'cancelled'
    );
  end if;
  if tg_op in ('INSERT', 'UPDATE') then
    v_moves := v_moves || array(
      select row(n.event_id, n.ticket_type_id, 1)::private.place_move from new_rows n where n.status <> 'cancelled'
    );
  end if;
  v_moves := array(
    select row(m.event_id, m.ticket_type_id, sum(m.places)::integer)::private.place_move
    from unnest(v_moves) m
    group by m.event_id, m.ticket_type_id
    having sum(m.places) <> 0
  );

  for v_event_id in select distinct m.event_id from unnest(v_moves) m where m.places > 0 order by m.event_id loop
    v_event := private.pass_gate(v_event_id);
    if v_event.status <> 'published' then
      perform private.refuse_unpublished(v_event.status);
    end if;
    if v_event.capacity is not null then
      perform private.pass_gate_one_by_one(v_event_id);
      v_limited := v_limited || v_event;
    end if;
  end loop;

  for v_move in select m.* from unnest(v_moves) m order by m.ticket_type_id loop
    perform private.move_places(v_move.ticket_type_id, v_move.places);
  end loop;

  foreach v_event in array v_limited loop
    if private.places_taken(v_event.id) > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    end if;
  end loop;
  return null;
end
$$;
create trigger attendees_500_count_places_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
create trigger attendees_500_count_places_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
create trigger attendees_500_count_places_delete after delete on public.attendees
  referencing old table as old_rows
  for each statement execute function private.tg_attendees__count_places();

-- What happens to an order happens to its tickets: for all orders of a statement at once, so that cancelling an event is
-- one update of its attendees.
create function private.tg_orders__update_attendees() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.attendees a
  set status = case n.status when 'cancelled' then 'cancelled' else 'active' end::public.attendee_status
  from new_rows n
  where a.order_id = n.id
    and (n.status = 'cancelled' and a.status <> 'cancelled' or n.status = 'completed' and a.status = 'awaiting_payment');
  return null;
end
$$;
create trigger orders_500_update_attendees after update on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__update_attendees();

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
  using (organisation_id in (select private.member_organisation_ids()));
create policy attendees_update_membership on public.attendees for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.attendees to scope_attendees_read, scope_attendees_write, authenticated;
-- The door learns who stands before it, not how to reach them.
grant select (
  id, organisation_id, event_id, ticket_type_id, name, company, status, checked_in_at
) on public.attendees to scope_checkin_write;
grant insert (organisation_id, event_id, order_id, ticket_type_id, name, email, company) on public.attendees
  to scope_attendees_write;
grant update (name, email, company, status, ticket_code, ticket_email_status, external_id, metadata) on public.attendees
  to scope_attendees_write;
grant update (name, email, company, status, ticket_code, external_id, metadata) on public.attendees to authenticated;

create function private.attendee_json(attendee public.attendees) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'attendee',
    'id', attendee.id,
    'order_id', attendee.order_id,
    'event_id', attendee.event_id,
    'ticket_type_id', attendee.ticket_type_id,
    'name', attendee.name,
    'email', attendee.email,
    'company', attendee.company,
    'status', attendee.status,
    'ticket_code', attendee.ticket_code,
    'checked_in_at', private.rfc3339(attendee.checked_in_at),
    'ticket_email', json_build_object(
      'status', attendee.ticket_email_status,
      'sent_at', private.rfc3339(attendee.ticket_email_sent_at),
      'last_error', attendee.ticket_email_last_error
    ),
    'cancelled_at', private.rfc3339(attendee.cancelled_at),
    'external_id', attendee.external_id,
    'metadata', attendee.metadata,
    'version', attendee.version,
    'created_at', private.rfc3339(attendee.created_at),
    'updated_at', private.rfc3339(attendee.updated_at)
  );
end
$$;
grant execute on function private.attendee_json(public.attendees) to scope_attendees_read, scope_attendees_write;

create function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  -- First, so that the list is walked by the index on order_id.
  v_referred uuid := (select o.id from public.orders o where o.reference = upper(list_attendees.reference));
  v_items json[];
begin
  select array_agg(private.attendee_json(p) order by p.id desc) into v_items
  from (
    select a.*
    from public.attendees a
    where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
      and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
      and (list_attendees.reference is null or a.order_id = v_referred)
      and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
      and (list_attendees.status is null or a.status = list_attendees.status)
      and (checked_in is null or (a.checked_in_at is not null) = checked_in)
      and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
      and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
      and (updated_since is null or a.updated_at >= updated_since)
      and (v_before is null or a.id < v_before)
    order by a.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_attendees(uuid, uuid, uuid, public.attendee_status, boolean, text, text, text, timestamptz, text, integer) is
  'Attendees of the organisation, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_attendees(uuid, uuid, uuid, public.attendee_status, boolean, text, text, text, timestamptz, text, integer)
  to scope_attendees_read;

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
comment on function api.get_attendee(uuid) is 'One attendee. 404 not_found.';
grant execute on function api.get_attendee(uuid) to scope_attendees_read;

create function api.update_attendee(
  attendee_id uuid,
  changes jsonb,
  if_version integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_new public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.require_version(v_attendee.version, if_version);

  v_new := jsonb_populate_record(v_attendee, changes);
  update public.attendees a set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    external_id = v_new.external_id,
    metadata = v_new.metadata,
    ticket_code = case when (changes ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  where a.id = v_attendee.id
  returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.update_attendee(uuid, jsonb, integer, text, text) is
  'Corrects an attendee, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 ticket_not_reissuable, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_attendee(uuid, jsonb, integer, text, text) to scope_attendees_write;

create function api.cancel_attendee(
  attendee_id uuid,
  dry_run boolean default null,
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
  begin
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
    update public.attendees a set status = 'cancelled' where a.id = v_attendee.id returning * into v_attendee;
    v_outcome := json_build_object(
      'status', 200,
      'effect', json_build_object('dry_run', coalesce(dry_run, false), 'orders', 0, 'attendees', 1),
      'data', private.attendee_json(v_attendee)
    );
    if dry_run then
      perform private.undo_dry_run();
    end if;
  exception when sqlstate 'UD001' then
    null; -- Everything above is undone; what it would have answered is kept.
  end;
  if dry_run then
    return v_outcome; -- Nothing happened, so there is nothing to record.
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome);
end
$$;
comment on function api.cancel_attendee(uuid, boolean, text, text) is
  'Cancels one ticket and gives its place back, or says what that would do: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_attendee(uuid, boolean, text, text) to scope_attendees_write;

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
    perform private.refuse(
      409, 'ticket_not_active', 'Only the ticket of an active attendee is sent.', 'status',
      jsonb_build_object('status', v_attendee.status), 'A cancelled ticket stays cancelled; an unpaid one is sent when it is paid.'
    );
  end if;
  update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.resend_ticket(uuid, text, text) is
  'Queues the ticket e-mail of an attendee once more: 200. 404 not_found; 409 ticket_not_active.';
grant execute on function api.resend_ticket(uuid, text, text) to scope_attendees_write;
-- Payments: what was received for an order, one row each. They add up to amount_paid of the order, which completes with the
-- last of them. Like the log of the door they are never changed or deleted: money that came in, came in.

create type public.payment_method as enum ('invoice', 'bank_transfer', 'card', 'cash', 'other');

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
  constraint payments_amount_is_positive check (amount > 0),
  constraint payments_received_at_is_finite check (
    received_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint payments_external_reference_is_one_line check (
    length(btrim(external_reference)) between 1 and 255 and external_reference !~ '[[:cntrl:]]'
  )
);
comment on table public.payments is 'Money received for orders. Add a row to record a payment; the order completes when nothing is due.';
comment on column public.payments.amount is 'In minor units of currency, which is the order''s.';
comment on column public.payments.external_reference is 'What the payment goes by elsewhere, such as the invoice or bank reference.';
comment on column public.payments.recorded_by is 'The API key that recorded it, if it was one.';

create index payments_order_id_idx on public.payments (order_id);
create index payments_recorded_by_idx on public.payments (recorded_by);

-- Security definer: it adds up the order, which a recording key may not change beyond its status.
create function private.tg_payments__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  if tg_op <> 'INSERT' then
    -- A key may be deleted, and then its payments forget it.
    if tg_op = 'UPDATE' and new.recorded_by is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
      return new;
    end if;
    perform private.refuse(
      409, 'append_only', 'Payments are a log: they are never changed or deleted.', hint => 'Cancel the order to mark what is to be refunded.'
    );
  end if;

  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  perform private.refuse_foreign(v_order.organisation_id, 'order_id');
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_due := v_order.total - v_order.amount_paid;

  if v_order.status <> 'pending' then
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

  -- Here and not after the insert, so that a second payment in the same statement finds the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method::text
  where o.id = v_order.id;
  return new;
end
$$;
create trigger payments_100_guard before insert or update or delete on public.payments
  for each row execute function private.tg_payments__guard();
create trigger payments_100_no_truncate before truncate on public.payments
  for each statement execute function private.tg__refuse_truncate();

revoke all on public.payments from anon, authenticated, service_role;

alter table public.payments enable row level security;
create policy payments_select_own on public.payments for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy payments_insert_own on public.payments for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy payments_select_membership on public.payments for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy payments_insert_membership on public.payments for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
grant select on public.payments to scope_orders_read, scope_orders_write, authenticated;
grant insert (order_id, method, amount, currency, received_at, external_reference) on public.payments
  to scope_orders_write, authenticated;

create function private.order_payments_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(
      json_agg(
        json_build_object(
          'object', 'payment',
          'id', p.id,
          'method', p.method,
          'amount', p.amount,
          'currency', p.currency,
          'received_at', private.rfc3339(p.received_at),
          'external_reference', p.external_reference,
          'source', p.source,
          'created_at', private.rfc3339(p.created_at)
        )
        order by p.id
      ),
      '[]'
    )
    from public.payments p
    where p.order_id = order_payments_json.order_id
  );
end
$$;
grant execute on function private.order_payments_json(uuid) to scope_orders_read, scope_orders_write;
-- Reading, paying and cancelling orders. An order is answered with its attendees and payments, so this stands behind all three.

-- The attendees of an order, for whoever may read orders: without the ticket codes, which let people in and are no business
-- of finance. Security definer: a key for orders has no other right to attendees.
create function private.order_attendees_json(order_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(
      json_agg(private.attendee_json(jsonb_populate_record(a, '{"ticket_code": null}')) order by a.id), '[]'
    )
    from public.attendees a
    where a.order_id = order_attendees_json.order_id
      and a.organisation_id = private.current_organisation_id()
  );
end
$$;
grant execute on function private.order_attendees_json(uuid) to scope_orders_read, scope_orders_write;

create function private.order_with_all("order" public.orders) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return private.order_json("order", private.order_attendees_json("order".id), private.order_payments_json("order".id));
end
$$;
grant execute on function private.order_with_all(public.orders) to scope_orders_read, scope_orders_write;

create function api.list_orders(
  event_id uuid default null,
  status public.order_status default null,
  payment_status public.payment_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.order_with_all(p) order by p.id desc) into v_items
  from (
    select o.*
    from public.orders o
    where (list_orders.event_id is null or o.event_id = list_orders.event_id)
      and (list_orders.status is null or o.status = list_orders.status)
      and (list_orders.payment_status is null or o.payment_status = list_orders.payment_status)
      and (list_orders.email is null or o.email_lower = lower(list_orders.email))
      and (list_orders.reference is null or o.reference = upper(list_orders.reference))
      and (list_orders.external_id is null or o.external_id = list_orders.external_id)
      and (updated_since is null or o.updated_at >= updated_since)
      and (v_before is null or o.id < v_before)
    order by o.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_orders(uuid, public.order_status, public.payment_status, text, text, text, timestamptz, text, integer) is
  'Orders of the organisation with their attendees, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_orders(uuid, public.order_status, public.payment_status, text, text, text, timestamptz, text, integer)
  to scope_orders_read;

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
  return private.order_with_all(v_order);
end
$$;
comment on function api.get_order(uuid) is 'One order with its attendees. 404 not_found.';
grant execute on function api.get_order(uuid) to scope_orders_read;

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
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.orders o where o.id = record_invoice_payment.order_id) then
    perform private.refuse_not_found('order_id');
  end if;
  insert into public.payments (order_id, amount, method, currency, received_at, external_reference)
  values (
    record_invoice_payment.order_id, record_invoice_payment.amount, coalesce(record_invoice_payment.method, 'invoice'),
    record_invoice_payment.currency, coalesce(record_invoice_payment.received_at, now()),
    record_invoice_payment.external_reference
  );
  select o.* into v_order from public.orders o where o.id = record_invoice_payment.order_id;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.order_with_all(v_order))
  );
end
$$;
comment on function api.record_invoice_payment(uuid, bigint, public.payment_method, text, timestamptz, text, text, text) is
  'Records money received for an order, which completes when nothing is due: 201 with the order. 404 not_found; 409 nothing_due, wrong_currency, overpayment; 422 validation_failed.';
grant execute on function api.record_invoice_payment(uuid, bigint, public.payment_method, text, timestamptz, text, text, text)
  to scope_orders_write;

-- How many people a change of an order touches. Security definer: a key for orders may not read attendees.
create function private.order_effect(order_id uuid, dry_run boolean) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select json_build_object('dry_run', coalesce(dry_run, false), 'orders', 1, 'attendees', count(*))
    from public.attendees a
    where a.order_id = order_effect.order_id
      and a.organisation_id = private.current_organisation_id()
      and a.status <> 'cancelled'
  );
end
$$;
grant execute on function private.order_effect(uuid, boolean) to scope_orders_write;

create function api.cancel_order(
  order_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_effect json;
begin
  if v_outcome is not null then
    return v_outcome;
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
    v_effect := private.order_effect(v_order.id, dry_run);
    update public.orders o set status = 'cancelled' where o.id = v_order.id returning * into v_order;
    v_outcome := json_build_object(
      'status', 200,
      'effect', v_effect,
      'data', private.order_with_all(v_order)
    );
    if dry_run then
      perform private.undo_dry_run();
    end if;
  exception when sqlstate 'UD001' then
    null; -- Everything above is undone; what it would have answered is kept.
  end;
  if dry_run then
    return v_outcome; -- Nothing happened, so there is nothing to record.
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome);
end
$$;
comment on function api.cancel_order(uuid, boolean, text, text) is
  'Cancels an order and its tickets, or says what that would do; what was paid becomes refund_due: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_order(uuid, boolean, text, text) to scope_orders_write;
-- Registering a guest: one complimentary order with one attendee, completed at once. Everything that must hold (event
-- published, places left, sale open) is held by the triggers of orders and attendees, so that a row added in Studio meets
-- the same rules.

create function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text default null,
  send_email boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_order public.orders;
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  if not exists (
    select from public.ticket_types t
    where t.id = register_attendee.ticket_type_id and t.event_id = register_attendee.event_id
  ) then
    perform private.refuse_not_found('ticket_type_id');
  end if;

  insert into public.orders (organisation_id, event_id, name, email, company, send_email)
  values (
    v_organisation_id, register_attendee.event_id, register_attendee.name, register_attendee.email,
    register_attendee.company, coalesce(register_attendee.send_email, true)
  )
  returning * into v_order;

  insert into public.attendees (organisation_id, event_id, order_id, ticket_type_id, name, email, company)
  values (
    v_organisation_id, v_order.event_id, v_order.id, register_attendee.ticket_type_id,
    v_order.name, v_order.email, v_order.company
  )
  returning * into v_attendee;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object(
      'status', 201,
      'data', private.order_json(v_order, json_build_array(private.attendee_json(v_attendee)), '[]')
    )
  );
end
$$;
comment on function api.register_attendee(uuid, uuid, text, text, text, boolean, text, text) is
  'Issues a complimentary ticket: 201 with the order and its attendee. 404 not_found; 409 event_not_published, sold_out, ticket_type_archived, sales_not_started, sales_ended; 422 idempotency_key_reused.';
grant execute on function api.register_attendee(uuid, uuid, text, text, text, boolean, text, text)
  to scope_attendees_write;
-- Check-ins: every scan is a row, and the row itself is the judgement. Whoever adds one, by the API or in Studio, gives
-- event and code; the trigger below finds the attendee, locks them, and says accepted or rejected and why.
-- Append-only: an acceptance can be undone once, and nothing is ever deleted.

create type public.check_in_result as enum ('accepted', 'rejected');
create type public.check_in_reason as enum (
  'not_found', 'wrong_event', 'already_checked_in', 'cancelled', 'unpaid', 'event_cancelled'
);

create table public.check_ins (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  attendee_id uuid,
  code text not null,
  result public.check_in_result not null,
  reason public.check_in_reason,
  device text,
  scan_id text,
  source public.request_source not null default private.current_source(),
  api_key_id uuid default private.current_api_key_id(),
  scanned_at timestamptz not null default now(),
  undone_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint check_ins_pkey primary key (id),
  constraint check_ins_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint check_ins_attendee_id_fkey foreign key (attendee_id) references public.attendees (id),
  constraint check_ins_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete set null,
  constraint check_ins_code_is_bounded check (length(code) between 1 and 200),
  constraint check_ins_device_is_one_line check (length(btrim(device)) between 1 and 100 and device !~ '[[:cntrl:]]'),
  constraint check_ins_scan_id_is_bounded check (length(scan_id) between 1 and 100),
  constraint check_ins_rejected_have_a_reason check ((result = 'rejected') = (reason is not null)),
  constraint check_ins_accepted_have_an_attendee check (result = 'rejected' or attendee_id is not null),
  constraint check_ins_undone_were_accepted check (undone_at is null or result = 'accepted')
);
comment on table public.check_ins is 'Every scan at the door, accepted or not. Add a row with event_id and code to scan by hand; set undone_at to take an acceptance back.';
comment on column public.check_ins.code is 'What was scanned, also when no ticket has such a code.';
comment on column public.check_ins.scan_id is 'What a scanner that works offline calls the scan, so that sending it twice counts once.';
comment on column public.check_ins.reason is 'Why it was rejected. Empty when accepted.';

-- One acceptance that stands, whatever else goes wrong.
create unique index check_ins_one_acceptance_idx on public.check_ins (attendee_id)
  where result = 'accepted' and undone_at is null;
create unique index check_ins_event_id_scan_id_key on public.check_ins (event_id, scan_id) where scan_id is not null;
create index check_ins_attendee_id_idx on public.check_ins (attendee_id);
create index check_ins_event_id_idx on public.check_ins (event_id, id desc);
create index check_ins_organisation_id_id_idx on public.check_ins (organisation_id, id desc);
create index check_ins_api_key_id_idx on public.check_ins (api_key_id);

-- Security definer: it changes the attendee, which a scanning key may not.
create function private.tg_check_ins__judge() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_attendee public.attendees;
begin
  select e.* into v_event from public.events e where e.id = new.event_id;
  perform private.refuse_foreign(v_event.organisation_id, 'event_id');
  new.organisation_id := v_event.organisation_id;
  -- A scanner's clock may be ahead of ours; nobody came in tomorrow.
  new.scanned_at := least(new.scanned_at, now());

  -- A code read aloud or typed may come in lower case, with blanks or hyphens.
  select a.* into v_attendee
  from public.attendees a
  where a.organisation_id = new.organisation_id
    and a.ticket_code = upper(regexp_replace(new.code, '[[:space:]-]', '', 'g'))
  for no key update;

  new.attendee_id := v_attendee.id;
  new.reason := case
    when v_event.status = 'cancelled' then 'event_cancelled'
    when v_attendee.id is null then 'not_found'
    when v_attendee.event_id <> new.event_id then 'wrong_event'
    when v_attendee.status = 'cancelled' then 'cancelled'
    when v_attendee.status = 'awaiting_payment' then 'unpaid'
    when v_attendee.checked_in_at is not null then 'already_checked_in'
  end::public.check_in_reason;
  new.result := case when new.reason is null then 'accepted' else 'rejected' end::public.check_in_result;
  new.undone_at := null;

  -- Here and not after the insert, so that a second scan in the same statement finds the first.
  if new.result = 'accepted' then
    update public.attendees a set checked_in_at = new.scanned_at where a.id = new.attendee_id;
  end if;
  return new;
end
$$;
create trigger check_ins_100_judge before insert on public.check_ins
  for each row execute function private.tg_check_ins__judge();

create function private.tg_check_ins__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if tg_op = 'DELETE' then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: they are never deleted.', hint => 'Set undone_at to take an acceptance back.'
    );
  end if;
  -- A key may be deleted, and then its scans forget it; nothing else is ever forgotten.
  if to_jsonb(new) - 'undone_at' - 'updated_at' - 'api_key_id' <> to_jsonb(old) - 'undone_at' - 'updated_at' - 'api_key_id'
    or (new.api_key_id is not null and new.api_key_id is distinct from old.api_key_id) then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: only undone_at can be set.', hint => 'Set undone_at to take an acceptance back.'
    );
  end if;
  if new.undone_at is distinct from old.undone_at then
    if old.result = 'rejected' then
      perform private.refuse(409, 'check_in_not_accepted', 'A rejected scan let nobody in: there is nothing to undo.', 'check_in_id');
    elsif old.undone_at is not null then
      perform private.refuse(
        409, 'check_in_already_undone', 'This check-in was undone before.', 'check_in_id',
        jsonb_build_object('undone_at', private.rfc3339(old.undone_at))
      );
    end if;
    new.undone_at := now();
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

-- Security definer, like the judgement.
create function private.tg_check_ins__undo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.attendees a set checked_in_at = null where a.id = new.attendee_id;
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
  using (organisation_id in (select private.member_organisation_ids()));
create policy check_ins_insert_membership on public.check_ins for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
create policy check_ins_update_membership on public.check_ins for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.check_ins to scope_checkin_write, scope_attendees_read, authenticated;
grant insert (event_id, code, device, scan_id, scanned_at) on public.check_ins to scope_checkin_write;
grant insert (event_id, code, device) on public.check_ins to authenticated;
grant update (undone_at) on public.check_ins to scope_checkin_write, authenticated;

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
    'attendee', (
      select json_build_object(
        'object', 'attendee',
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
      where a.id = check_in.attendee_id
    ),
    'device', check_in.device,
    'scan_id', check_in.scan_id,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'undone_at', private.rfc3339(check_in.undone_at),
    'created_at', private.rfc3339(check_in.created_at),
    'updated_at', private.rfc3339(check_in.updated_at)
  );
end
$$;
grant execute on function private.check_in_json(public.check_ins) to scope_checkin_write, scope_attendees_read;

-- What the person at the door reads. A rejected scan is not an error of the transaction, which commits the row of the log:
-- it is an outcome whose status is not 2xx, so that a careless client lets nobody in.
create function private.rejected_check_in(check_in json) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return json_build_object(
    'status', case check_in ->> 'reason' when 'not_found' then 404 else 409 end,
    'error', json_build_object(
      'code', check_in ->> 'reason',
      'message', case check_in ->> 'reason'
        when 'not_found' then 'No ticket has this code.'
        when 'wrong_event' then 'This ticket is for another event.'
        when 'already_checked_in' then 'This ticket was checked in before.'
        when 'cancelled' then 'This ticket was cancelled.'
        when 'unpaid' then 'This ticket is not paid for yet.'
        when 'event_cancelled' then 'The event was cancelled.'
      end,
      'param', case check_in ->> 'reason' when 'event_cancelled' then 'event_id' else 'code' end,
      'details', json_build_object('check_in', check_in),
      'hint', case check_in ->> 'reason'
        when 'not_found' then 'Scan again, or look the person up by name.'
        when 'wrong_event' then 'details.check_in.attendee.event_id is the event the ticket is for.'
        when 'already_checked_in' then 'details.check_in.attendee.checked_in_at says when they came in.'
        when 'cancelled' then 'The person needs a new ticket.'
        when 'unpaid' then 'Record the payment of the order first.'
        when 'event_cancelled' then 'Nobody can be checked in.'
      end
    )
  );
end
$$;
grant execute on function private.rejected_check_in(json) to scope_checkin_write;

create function api.check_in(
  event_id uuid,
  code text,
  device text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_check_in public.check_ins;
  v_json json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.events e where e.id = check_in.event_id) then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.check_ins (event_id, code, device)
  values (check_in.event_id, check_in.code, check_in.device)
  returning * into v_check_in;

  -- Read after the insert, so that it shows the attendee as the scan left them.
  v_json := private.check_in_json(v_check_in);
  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    case v_check_in.result
      when 'accepted' then json_build_object('status', 200, 'data', v_json)
      else private.rejected_check_in(v_json)
    end
  );
end
$$;
comment on function api.check_in(uuid, text, text, text, text) is
  'Checks a ticket in: 200 with the check-in. 404 not_found; 409 wrong_event, already_checked_in, cancelled, unpaid, event_cancelled, each logged and with the check-in in details.';
grant execute on function api.check_in(uuid, text, text, text, text) to scope_checkin_write;

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
comment on function api.undo_check_in(uuid, text, text) is
  'Takes an accepted check-in back, so that the ticket can be scanned again: 200. 404 not_found; 409 check_in_not_accepted, check_in_already_undone.';
grant execute on function api.undo_check_in(uuid, text, text) to scope_checkin_write;

create function api.list_check_ins(
  event_id uuid default null,
  attendee_id uuid default null,
  result public.check_in_result default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.check_in_json(p) order by p.id desc) into v_items
  from (
    select c.*
    from public.check_ins c
    where (list_check_ins.event_id is null or c.event_id = list_check_ins.event_id)
      and (list_check_ins.attendee_id is null or c.attendee_id = list_check_ins.attendee_id)
      and (list_check_ins.result is null or c.result = list_check_ins.result)
      and (v_before is null or c.id < v_before)
    order by c.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_check_ins(uuid, uuid, public.check_in_result, text, integer) is
  'The log of the door, newest first, rejected scans included: { data, has_more, next_cursor }.';
grant execute on function api.list_check_ins(uuid, uuid, public.check_in_result, text, integer) to scope_attendees_read;

-- Scans of a scanner that was offline, judged in the order in which they were made. Each has an id of the scanner's own, and
-- one that is known already is answered again, so the same batch may be sent until it arrives.
create function api.check_in_batch(
  event_id uuid,
  scans jsonb,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_scan record;
  v_check_in public.check_ins;
  v_known boolean;
  v_results json[] := '{}';
  v_accepted integer := 0;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if not exists (select from public.events e where e.id = check_in_batch.event_id) then
    perform private.refuse_not_found('event_id');
  end if;

  -- One batch of an event at a time: between looking for a known scan and adding it nobody else may add it.
  perform pg_advisory_xact_lock(3, hashtext(check_in_batch.event_id::text));

  for v_scan in
    select s.*
    from jsonb_to_recordset(scans) as s (scan_id text, code text, scanned_at timestamptz, device text)
    order by s.scanned_at, s.scan_id
  loop
    select c.* into v_check_in
    from public.check_ins c
    where c.event_id = check_in_batch.event_id and c.scan_id = v_scan.scan_id;
    v_known := found;
    if not v_known then
      insert into public.check_ins (event_id, code, device, scan_id, scanned_at)
      values (check_in_batch.event_id, v_scan.code, v_scan.device, v_scan.scan_id, v_scan.scanned_at)
      returning * into v_check_in;
    end if;
    v_accepted := v_accepted + (v_check_in.result = 'accepted')::integer;
    v_results := v_results || json_build_object(
      'scan_id', v_check_in.scan_id,
      'replayed', v_known,
      'check_in', private.check_in_json(v_check_in)
    );
  end loop;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object(
      'status', 200,
      'data', json_build_object(
        'object', 'check_in_batch',
        'event_id', check_in_batch.event_id,
        'accepted', v_accepted,
        'rejected', cardinality(v_results) - v_accepted,
        'results', to_json(v_results)
      )
    )
  );
end
$$;
comment on function api.check_in_batch(uuid, jsonb, text, text) is
  'Judges up to 500 offline scans in the order of scanned_at, each once: 200 with a verdict each. 404 not_found; 422 validation_failed.';
grant execute on function api.check_in_batch(uuid, jsonb, text, text) to scope_checkin_write;
