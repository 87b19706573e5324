-- What people allowed clients. A grant is a row of public.api_keys, which decides what it may and how long; here stands what OAuth wants to
-- know besides.

create table private.oauth_grants (
  api_key_id uuid not null,
  client_id text not null,
  returns_to text not null,
  resource text not null,
  sign_in_hash bytea,
  refreshes integer not null default 0,
  refreshes_since timestamptz not null default now(),
  constraint oauth_grants_pkey primary key (api_key_id),
  constraint oauth_grants_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete cascade,
  constraint oauth_grants_sign_in_hash_fkey foreign key (sign_in_hash)
    references private.oauth_sign_ins (secret_hash) on delete set null
);
comment on table private.oauth_grants is
  'OAuth details of each grant: client, redirect address, resource, the browser that authorised it, and token renewals within a minute.';

create index oauth_grants_sign_in_hash_idx on private.oauth_grants (sign_in_hash) where sign_in_hash is not null;

alter table private.oauth_grants enable row level security;

-- Security definer: the gateway may read no table.
create function api.get_sign_in(secret_hash text) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
begin
  if v_key.id is null then
    return null;
  end if;
  return (
    select json_build_object(
      'api_key', json_build_object(
        'id', v_key.id,
        'name', v_key.name,
        'prefix', v_key.prefix,
        'scopes', to_jsonb(v_key.scopes),
        'expires_at', private.rfc3339(v_key.expires_at)
      ),
      'organisation', json_build_object('id', o.id, 'name', o.name),
      'created_at', private.rfc3339(s.created_at),
      -- Those that can be used, newest first. There are 100 at most: see api.allow_client.
      'grants', (
        select coalesce(json_agg(
          json_build_object(
            'id', k.id,
            'name', k.name,
            'client_id', g.client_id,
            'returns_to', g.returns_to,
            'scopes', to_jsonb(k.scopes),
            'created_at', private.rfc3339(k.created_at),
            'last_used_at', private.rfc3339(k.last_used_at),
            'expires_at', private.rfc3339(k.expires_at),
            'is_of_this_browser', coalesce(g.sign_in_hash = s.secret_hash, false)
          )
          order by k.id desc
        ), '[]')
        from public.api_keys k
        join private.oauth_grants g on g.api_key_id = k.id
        where k.parent_id = v_key.id and k.revoked_at is null and k.expires_at > now()
      )
    )
    from private.oauth_sign_ins s
    join public.organisations o on o.id = v_key.organisation_id
    where s.secret_hash = decode(get_sign_in.secret_hash, 'hex')
  );
end
$$;
comment on function api.get_sign_in is
  'The sign-in of a browser: { api_key, organisation, created_at, grants }. null without a sign-in or a valid key. For the gateway.';
grant execute on function api.get_sign_in to gateway;

-- What the person does here, they do with the key that they signed in with: the audit trail says so.
create function private.act_as(key public.api_keys) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform set_config(
    'request.jwt.claims',
    (private.claims() || jsonb_build_object('api_key_id', key.id, 'organisation_id', key.organisation_id, 'source', 'api'))::text,
    true
  );
end
$$;

-- A client that asks for more in the browser in which it was allowed something gets it added to that grant.
-- Security definer: the gateway may read and write no table.
create function api.allow_client(
  secret_hash text,
  client_id text,
  name text,
  returns_to text,
  resource text,
  scopes public.api_scope[],
  days integer
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most_grants constant integer := 100;
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
  v_expires_at timestamptz := now() + make_interval(days => least(greatest(days, 1), 30));
  v_grant public.api_keys;
begin
  if v_key.id is null then
    perform private.refuse(401, 'invalid_api_key', 'Nobody is signed in.', hint => 'Sign in with a key for people.');
  end if;
  -- Before any of its grants, as whoever revokes it. Who allows twice at once finds the grant of the first.
  perform from public.api_keys k where k.id = v_key.id for no key update;
  perform private.act_as(v_key);

  select k.* into v_grant
  from private.oauth_grants g
  join public.api_keys k on k.id = g.api_key_id
  where g.sign_in_hash = decode(allow_client.secret_hash, 'hex')
    and g.client_id = allow_client.client_id
    and g.resource = allow_client.resource
    and g.returns_to = allow_client.returns_to
    and k.parent_id = v_key.id
    and private.is_usable_key(k)
  order by k.id desc
  limit 1
  for no key update of k;

  if found then
    update public.api_keys k
    set
      scopes = (select array_agg(distinct s order by s) from unnest(v_grant.scopes || allow_client.scopes) s),
      expires_at = v_expires_at
    where k.id = v_grant.id
    returning k.* into v_grant;
  else
    if (select count(*) from public.api_keys k where k.parent_id = v_key.id and private.is_usable_key(k)) >= v_most_grants then
      perform private.refuse(
        409, 'too_many_grants', format('A key has at most %s active grants.', v_most_grants),
        hint => 'End some of them at /oauth/grants, or sign in with another key.'
      );
    end if;
    insert into public.api_keys (organisation_id, kind, parent_id, name, prefix, scopes, expires_at)
    values (
      v_key.organisation_id, 'grant', v_key.id, allow_client.name,
      'usher_grant_' || left(replace(gen_random_uuid()::text, '-', ''), 12), allow_client.scopes, v_expires_at
    )
    returning * into v_grant;
    insert into private.oauth_grants (api_key_id, client_id, returns_to, resource, sign_in_hash)
    values (
      v_grant.id, allow_client.client_id, allow_client.returns_to, allow_client.resource,
      decode(allow_client.secret_hash, 'hex')
    );
  end if;

  update private.oauth_clients c set used_at = now() where c.client_id = allow_client.client_id;
  return json_build_object('id', v_grant.id);
end
$$;
comment on function api.allow_client is
  'Creates a grant for a client, as the person signed in: { id }. 401 without a sign-in; 409 too_many_grants; 422 for a scope that their key lacks. For the gateway.';
grant execute on function api.allow_client to gateway;

-- Security definer: the gateway may read and write no table.
create function api.end_grant(secret_hash text, grant_id uuid) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
begin
  if v_key.id is null then
    return false;
  end if;
  perform private.act_as(v_key);
  update public.api_keys k set revoked_at = now()
  where k.id = end_grant.grant_id and k.parent_id = v_key.id and k.revoked_at is null;
  return found;
end
$$;
comment on function api.end_grant is
  'Ends a grant of the signed-in key. Returns whether there was one. For the gateway.';
grant execute on function api.end_grant to gateway;

-- Security definer: the gateway may read no table.
create function api.find_oauth_grant(grant_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'client_id', g.client_id,
      'resource', g.resource,
      'scopes', to_jsonb(k.scopes),
      'created_at', extract(epoch from k.created_at)::bigint,
      'expires_at', extract(epoch from k.expires_at)::bigint
    )
    from public.api_keys k
    join private.oauth_grants g on g.api_key_id = k.id
    where k.id = find_oauth_grant.grant_id and private.is_usable_key(k)
  );
end
$$;
comment on function api.find_oauth_grant is
  'An active grant: { client_id, resource, scopes, created_at, expires_at }, with times in seconds, or null. For the gateway.';
grant execute on function api.find_oauth_grant to gateway;

-- Security definer: the gateway may write no table.
create function api.revoke_oauth_grant(grant_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_grant public.api_keys;
begin
  select k.* into v_grant
  from public.api_keys k
  where k.id = revoke_oauth_grant.grant_id and k.kind = 'grant' and k.revoked_at is null
  for no key update;
  if not found then
    return;
  end if;
  perform private.act_as(v_grant);
  update public.api_keys k set revoked_at = now() where k.id = v_grant.id;
end
$$;
comment on function api.revoke_oauth_grant is
  'Ends a grant at the request of its client, or because one of its tokens was used twice. For the gateway.';
grant execute on function api.revoke_oauth_grant to gateway;
