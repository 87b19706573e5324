-- API keys: created once, shown once, stored as a SHA-256 hash. The gateway resolves a hash to a principal; from then on
-- every request carries the key's id in its token and is checked again in its own transaction, so a revocation takes effect
-- at once.

-- A grant is what a person allowed a client by OAuth (15-oauth): a key without a secret of its own, made from another key. It never
-- may more, nor lasts longer, than that key. A person's key signs in on pages and calls nothing, so no program that holds a key, or was
-- granted one, can confirm what it asks for. A page's key has no secret either: the registration page of one event calls with it, and Postgres
-- decides what such a call may do (60-attendees/event-page.sql).
create type public.api_key_kind as enum ('key', 'grant', 'person', 'page');
-- Whether a person confirms what the key asks for over MCP and cannot be undone (16-confirmations).
create type public.api_key_confirmations as enum ('asked', 'none');

create table public.api_keys (
  name text not null,
  scopes public.api_scope[] not null,
  kind public.api_key_kind not null default 'key',
  confirmations public.api_key_confirmations not null default 'asked',
  prefix text not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  parent_id uuid,
  event_id uuid,
  family_id uuid not null,
  constraint api_keys_pkey primary key (id),
  constraint api_keys_prefix_key unique (prefix),
  constraint api_keys_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  -- Its grants are deleted by a trigger: a cascade within one table would take the place of the statement that the audit trail is to keep.
  constraint api_keys_parent_id_fkey foreign key (parent_id) references public.api_keys (id) deferrable initially deferred,
  constraint api_keys_grant_has_a_parent_and_an_end check (
    (kind = 'grant') = (parent_id is not null) and (kind <> 'grant' or expires_at is not null)
  ),
  -- A page is closed by revoking its key.
  constraint api_keys_page_has_an_event_and_no_end check (
    (kind = 'page') = (event_id is not null) and (kind <> 'page' or expires_at is null)
  ),
  constraint api_keys_grant_asks check (kind = 'key' or confirmations = 'asked'),
  constraint api_keys_name_is_one_line check (private.is_one_line(name, 200)),
  constraint api_keys_prefix_is_of_its_kind check (
    prefix ~ case when kind in ('grant', 'page') then format('^usher_%s_[0-9a-z]{12}$', kind) else '^usher_(live|test)_[0-9A-Za-z]{8}$' end
  ),
  constraint api_keys_scopes_are_chosen check (cardinality(scopes) > 0 and array_position(scopes, null) is null)
);
comment on constraint api_keys_name_is_one_line on public.api_keys is
  'A name is one line of 1 to 200 characters. Write at least one letter, and no line breaks.';
comment on table public.api_keys is 'API keys of an organisation, without their secrets. Set revoked_at to refuse a key from its next request on.';
comment on column public.api_keys.name is 'Name for people: the purpose of a key, the name of a person, or the name that the client gave itself.';
comment on column public.api_keys.scopes is 'Scopes of the key: at least one.';
comment on column public.api_keys.kind is 'key: for a program. person: for signing in on pages; programs cannot call with it. grant: access that a person gave to a client. page: for the registration page of an event; revoke it to close the page.';
comment on column public.api_keys.confirmations is
  'asked: over MCP, a person confirms irreversible operations. none: for programs that run unattended. A grant always asks.';
comment on column public.api_keys.prefix is 'First 19 characters of the key, for recognition. The key itself is not stored.';
comment on column public.api_keys.expires_at is 'When the key expires. Empty: never.';
comment on column public.api_keys.revoked_at is 'Set it to revoke the key at once and for good.';
comment on column public.api_keys.last_used_at is 'Updated at most once a minute.';
comment on column public.api_keys.parent_id is 'For a grant: the key that the person signed in with. The grant loses scopes, and ends, with that key.';
comment on column public.api_keys.event_id is 'For a page: its event.';
comment on column public.api_keys.family_id is
  'Internal: shared by keys that rotation replaces. Idempotency keys and the rate limit belong to the family, so a rotation between two attempts doubles neither an order nor the allowance. A grant has its own family, and shares the rate limit of its parent.';

create index api_keys_organisation_id_idx on public.api_keys (organisation_id);
create unique index api_keys_event_id_key on public.api_keys (event_id) where event_id is not null and revoked_at is null;
create index api_keys_event_id_idx on public.api_keys (event_id) where event_id is not null;
create index api_keys_parent_id_idx on public.api_keys (parent_id) where parent_id is not null;
-- For api.purge.
create index api_keys_unused_grants_idx on public.api_keys (least(revoked_at, expires_at)) where kind = 'grant' and last_used_at is null;

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

-- Scopes of the calling key as they are now; of a grant those that the access token is for, too: the grant may have got others since. The
-- claim is looked for in the text first, for the token of a key has none, and to parse it costs more than the rest.
create function private.current_scopes() returns public.api_scope[]
language plpgsql stable set search_path = ''
as $$
declare
  v_scopes public.api_scope[];
begin
  select k.scopes into v_scopes from public.api_keys k where k.id = private.current_api_key_id();
  if current_setting('request.jwt.claims', true) like '%"scopes"%' then
    return array(select s from unnest(v_scopes) s where private.claims() -> 'scopes' ? s::text);
  end if;
  return v_scopes;
end
$$;
grant execute on function private.current_scopes to api_key;

-- Whether it is told of money.
create function private.reads_orders() returns boolean
language plpgsql stable set search_path = ''
as $$ begin return coalesce('orders:read' = any (private.current_scopes()), false); end $$;
grant execute on function private.reads_orders to scope_attendees_read;

create function private.is_usable_key(key public.api_keys) returns boolean
language plpgsql stable set search_path = ''
as $$ begin return key.id is not null and key.revoked_at is null and coalesce(key.expires_at > now(), true); end $$;
-- The guard asks, also where an owner changes a grant.
grant execute on function private.is_usable_key to authenticated;

-- 401 for a key that is unknown, revoked or expired.
create function private.assert_usable_key(key public.api_keys) returns void
language plpgsql stable set search_path = ''
as $$
begin
  if private.is_usable_key(key) then
    return;
  elsif key.id is null then
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
declare
  v_parent public.api_keys;
begin
  if tg_op = 'INSERT' then
    new.family_id := coalesce(new.family_id, new.id);
    if new.kind in ('key', 'person')
      and (new.prefix like 'usher\_test\_%') <> (select o.is_test from public.organisations o where o.id = new.organisation_id) then
      perform private.refuse_value(
        'prefix', 'The prefix of a key says whether its organisation is a test one.', 'usher_test_ if it is, otherwise usher_live_.'
      );
    end if;
  elsif old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at then
    perform private.refuse(
      409, 'api_key_revoked', 'A revoked API key stays revoked.', 'revoked_at', hint => 'Create a new key.'
    );
  elsif old.revoked_at is null and new.revoked_at is not null then
    -- Always now(), whatever moment was given: a key is revoked or it is not. A later end is set in expires_at.
    new.revoked_at := now();
  end if;

  if new.kind = 'grant' and (tg_op = 'INSERT' or not new.scopes <@ old.scopes or new.expires_at is distinct from least(new.expires_at, old.expires_at)) then
    -- Locked, so that a change of the key waits for the grant, and then finds it.
    select k.* into v_parent from public.api_keys k where k.id = new.parent_id for share;
    if v_parent.kind = 'grant' or v_parent.organisation_id <> new.organisation_id or not private.is_usable_key(v_parent) then
      perform private.refuse(
        409, 'api_key_revoked', 'The API key behind this grant is no longer valid.', 'parent_id', hint => 'Sign in with another key.'
      );
    elsif not new.scopes <@ v_parent.scopes then
      perform private.refuse_value(
        'scopes', 'A grant cannot have a scope that its key lacks.', 'Add the scope to that key first.'
      );
    end if;
    new.expires_at := least(new.expires_at, v_parent.expires_at);
  end if;
  return new;
end
$$;

-- What a key loses, its grants lose in the same transaction, so private.check_request looks at the grant alone. The tokens of a grant go
-- with it: nobody looks at them again.
-- Security definer: whoever may revoke a grant may not see its tokens.
create function private.tg_api_keys__limit_grants() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'DELETE' then
    delete from public.api_keys g where g.parent_id = old.id;
  elsif new.kind <> 'grant' then
    update public.api_keys g
    set
      revoked_at = case when new.revoked_at is not null or not g.scopes && new.scopes then now() end,
      scopes = case when g.scopes && new.scopes then array(select s from unnest(g.scopes) s where s = any (new.scopes)) else g.scopes end,
      expires_at = least(g.expires_at, new.expires_at)
    where g.parent_id = new.id and g.revoked_at is null and g.expires_at > now();
  elsif new.revoked_at is not null then
    delete from private.oauth_records r where r.grant_id = new.id;
  end if;
  return null;
end
$$;

select private.keep_table('public.api_keys', filled => '{family_id}', fixed => '{prefix}',
  derived => '{"organisation_id": null, "kind": null, "parent_id": null, "event_id": null}', exempt => '{last_used_at}');
create trigger api_keys_100_guard before insert or update on public.api_keys
  for each row execute function private.tg_api_keys__guard();
create trigger api_keys_950_limit_grants after delete or update of scopes, expires_at, revoked_at on public.api_keys
  for each row execute function private.tg_api_keys__limit_grants();

create policy api_keys_select_itself on public.api_keys for select to api_key
  using (id = (select private.current_api_key_id()));
create policy api_keys_select_ownership on public.api_keys for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
create policy api_keys_update_ownership on public.api_keys for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
grant select on public.api_keys to api_key, authenticated;
grant update (name, scopes, confirmations, expires_at, revoked_at) on public.api_keys to authenticated;

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

  perform private.assert_usable_key(v_key);

  update public.api_keys k set last_used_at = now()
  where k.id = v_key.id and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute');

  return (
    select json_build_object(
      'api_key_id', v_key.id,
      'kind', v_key.kind,
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
  'The principal behind a key: { api_key_id, kind, family_id, organisation_id, scopes, rate_limit_per_minute }. Takes the SHA-256 of the key in hex. 401 when the key is unknown, revoked or expired.';
grant execute on function api.resolve_api_key to gateway;

-- PostgREST runs it first in every request, in the same transaction and as the role of the token. It checks the key as it is
-- now: the gateway may cache a principal for a minute, this function may not.
-- Security definer: it must see the key whatever the role may see.
create function private.check_request() returns void
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_claims constant jsonb := coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}');
  v_role constant text := v_claims ->> 'role';
  v_headers jsonb;
  v_organisation_id uuid;
  v_scope public.api_scope;
  v_is_usable boolean;
  v_kind public.api_key_kind;
  v_scopes public.api_scope[];
begin
  -- Whoever else calls the Data API of this project is none of Usher's business.
  if v_role is null or v_role <> 'api_key' and v_role not like 'scope\_%' then
    perform set_config('usher.checked', 'on', true);
    return;
  end if;
  -- Schema public is behind the Data API for people who sign in. A key calls functions of schema api, and nothing else.
  v_headers := current_setting('request.headers', true);
  if current_setting('request.path', true) not like '/rpc/%'
    or coalesce(v_headers ->> 'content-profile', 'api') <> 'api'
    or coalesce(v_headers ->> 'accept-profile', 'api') <> 'api' then
    perform private.refuse(403, 'forbidden', 'API keys call functions of schema api only.');
  end if;

  v_organisation_id := v_claims ->> 'organisation_id';
  select private.is_usable_key(k), k.kind, k.scopes into v_is_usable, v_kind, v_scopes
  from public.api_keys k
  where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = v_organisation_id;
  if v_is_usable is not true then
    perform private.assert_usable_key((
      select k from public.api_keys k where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = v_organisation_id
    ));
  elsif v_kind = 'person' then
    perform private.refuse(
      403, 'key_for_people', 'This API key is for a person to sign in with on pages.', hint => 'Create a key for the program.'
    );
  elsif v_kind = 'page' and not (
    v_claims ->> 'source' = 'page' and current_setting('request.path', true) ~ '^/rpc/(register_attendees?|join_waiting_list|explain_rule)$'
  ) then
    perform private.refuse(403, 'forbidden', 'The key of a page registers guests, and nothing else.');
  end if;

  if v_role <> 'api_key' then
    v_scope := replace(replace(v_role, 'scope_', ''), '_', ':');
    if v_scope <> all (v_scopes) then
      perform private.refuse(
        403, 'missing_scope', 'The API key lacks the scope this operation needs.',
        details => jsonb_build_object('scope', v_scope),
        hint => 'Use a key that has the scope, or add the scope to this key.'
      );
    end if;
  end if;
  -- Last: what is refused is not checked.
  perform set_config('usher.checked', v_organisation_id::text, true);
end
$$;
comment on function private.check_request is 'PostgREST pre-request: refuses a revoked, expired or down-scoped key, or a key for people, in the transaction of the request.';
-- Every role of the project runs it, anon and the project's own included. What else is in the schema is granted by name.
grant usage on schema private to public;
grant execute on function private.check_request to public;

-- A project has one such function. One that is there already goes on, and is to call this one.
do $$
begin
  if exists (
    select from pg_catalog.pg_db_role_setting s, unnest(s.setconfig) c (setting)
    where s.setrole = 'authenticator'::regrole and c.setting like 'pgrst.db\_pre\_request=%'
      and c.setting not in ('pgrst.db_pre_request=', 'pgrst.db_pre_request=private.check_request')
  ) then
    raise warning 'This project has its own pre-request function. Begin it with "perform private.check_request()".';
  else
    alter role authenticator set pgrst.db_pre_request = 'private.check_request';
  end if;
end
$$;

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
      'scopes', to_jsonb(private.current_scopes()),
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
  family_id uuid default null,
  confirmations public.api_key_confirmations default 'asked',
  kind public.api_key_kind default 'key'
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

  insert into public.api_keys (organisation_id, family_id, name, prefix, scopes, expires_at, confirmations, kind)
  values (
    v_organisation_id, create_api_key.family_id, create_api_key.name, create_api_key.prefix,
    create_api_key.scopes, create_api_key.expires_at, create_api_key.confirmations, create_api_key.kind
  )
  returning * into v_key;

  insert into private.api_key_hashes (api_key_id, key_hash) values (v_key.id, create_api_key.key_hash);
  return v_key;
end
$$;

-- The new key takes over name, kind, scopes, confirmations, expiry and family; the old one works until the overlap ends.
create function private.rotate_api_key(prefix text, new_prefix text, new_key_hash bytea, overlap interval)
returns public.api_keys
language plpgsql volatile set search_path = ''
as $$
declare
  v_old public.api_keys;
begin
  select k.* into v_old from public.api_keys k where k.prefix = rotate_api_key.prefix for no key update;
  if not found then
    perform private.refuse(404, 'not_found', 'There is no API key with this prefix.', 'prefix', hint => 'List the prefixes with: usher keys list.');
  end if;
  perform private.assert_usable_key(v_old);
  if v_old.kind = 'grant' then
    perform private.refuse(
      409, 'api_key_rotated', 'A grant has no key to rotate. Its client renews the tokens.', 'prefix',
      hint => 'Revoke it; the person can sign in again.'
    );
  elsif v_old.kind = 'page' then
    perform private.refuse(409, 'api_key_rotated', 'The key of a page has no secret to rotate.', 'prefix');
  end if;
  if exists (select from public.api_keys k where k.family_id = v_old.family_id and k.id > v_old.id) then
    perform private.refuse(
      409, 'api_key_rotated', 'This API key was rotated before and is about to expire.', 'prefix',
      hint => 'Rotate the key that replaced it. List keys with: usher keys list.'
    );
  end if;

  update public.api_keys k set expires_at = least(k.expires_at, now() + overlap) where k.id = v_old.id;

  return private.create_api_key(
    (select o.slug from public.organisations o where o.id = v_old.organisation_id),
    v_old.name, v_old.scopes, new_prefix, new_key_hash, v_old.expires_at, v_old.family_id, v_old.confirmations, v_old.kind
  );
end
$$;
