-- What the authorization server remembers between two requests: sign-ins that are under way, codes and tokens. Each is found by the SHA-256
-- of its kind and its secret; the secret itself is nowhere in the database.

create table private.oauth_records (
  id_hash bytea not null,
  kind text not null,
  grant_id uuid,
  payload jsonb not null,
  consumed_at timestamptz,
  is_renewed boolean not null default false,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  constraint oauth_records_pkey primary key (id_hash),
  constraint oauth_records_grant_id_fkey foreign key (grant_id) references public.api_keys (id) on delete cascade,
  constraint oauth_records_kind_is_known check (
    kind in ('Interaction', 'Session', 'AuthorizationCode', 'AccessToken', 'RefreshToken', 'ReplayDetection')
  ),
  constraint oauth_records_id_hash_is_sha256 check (octet_length(id_hash) = 32),
  constraint oauth_records_payload_is_bounded check (octet_length(payload::text) <= 32768)
);
comment on table private.oauth_records is 'Pending sign-ins, codes and tokens, without their secrets.';
comment on column private.oauth_records.is_renewed is 'For a used refresh token: whether its sign-in has a newer one.';

-- Newest last: of each grant the newest access tokens are kept.
create index oauth_records_grant_id_idx on private.oauth_records (grant_id, kind, created_at) where grant_id is not null;
-- For api.purge.
create index oauth_records_expires_at_idx on private.oauth_records (expires_at);

alter table private.oauth_records enable row level security;

-- Security definer: the gateway may write no table.
create function api.save_oauth_record(
  kind text, id_hash text, payload jsonb, expires_in integer, grant_id uuid default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.oauth_records as r (kind, id_hash, payload, expires_at, grant_id)
  values (
    save_oauth_record.kind, decode(save_oauth_record.id_hash, 'hex'), save_oauth_record.payload,
    now() + make_interval(secs => save_oauth_record.expires_in), save_oauth_record.grant_id
  )
  on conflict on constraint oauth_records_pkey do update set payload = excluded.payload, expires_at = excluded.expires_at;

  -- Of one sign-in, which all its tokens know the time of: a grant may have several, that renew on their own.
  update private.oauth_records r set is_renewed = true
  where save_oauth_record.kind = 'RefreshToken'
    and r.grant_id = save_oauth_record.grant_id and r.kind = 'RefreshToken' and r.consumed_at is not null and not r.is_renewed
    and r.payload -> 'iiat' = save_oauth_record.payload -> 'iiat'
    and coalesce((r.payload ->> 'rotations')::integer, 0) < coalesce((save_oauth_record.payload ->> 'rotations')::integer, 0);

  -- Whoever renews without end fills no table. Refresh tokens stay, for a used one tells of a thief: see api.consume_oauth_record.
  delete from private.oauth_records r
  where r.id_hash = any (array(
    select o.id_hash from private.oauth_records o
    where o.grant_id = save_oauth_record.grant_id and o.kind = 'AccessToken'
    order by o.created_at desc offset 100 limit 100 for update skip locked
  ));
end
$$;
comment on function api.save_oauth_record is 'Stores or replaces a record for expires_in seconds. For the gateway.';
grant execute on function api.save_oauth_record to gateway;

-- Whether it was used, and a second use is an attack. A refresh token counts as used only 10 seconds later, for clients renew in parallel, and
-- once there is a newer one: else the client never got it, and has to try again.
create function private.is_used_up(known private.oauth_records) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  if known.consumed_at is null or known.kind <> 'RefreshToken' then
    return known.consumed_at is not null;
  end if;
  return known.is_renewed and known.consumed_at < now() - interval '10 seconds';
end
$$;

-- Security definer: the gateway may read no table.
create function api.find_oauth_record(kind text, id_hash text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select r.payload || jsonb_strip_nulls(jsonb_build_object(
      'exp', extract(epoch from r.expires_at)::bigint,
      'consumed', case when private.is_used_up(r) then extract(epoch from r.consumed_at)::bigint end
    ))
    from private.oauth_records r
    where r.id_hash = decode(find_oauth_record.id_hash, 'hex') and r.kind = find_oauth_record.kind
  );
end
$$;
comment on function api.find_oauth_record is 'A record, with exp and consumed in seconds, or null. For the gateway.';
grant execute on function api.find_oauth_record to gateway;

-- Of two requests with one code, one finds it unused. Refresh tokens are counted with their grant: 20 a minute, and 2,000 in all, which is
-- every 20 minutes of 30 days.
-- Security definer: the gateway may write no table.
create function api.consume_oauth_record(kind text, id_hash text) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_record private.oauth_records;
begin
  select r.* into v_record
  from private.oauth_records r
  where r.id_hash = decode(consume_oauth_record.id_hash, 'hex') and r.kind = consume_oauth_record.kind
  for update;
  if v_record.id_hash is null or private.is_used_up(v_record) then
    return false;
  end if;

  if v_record.kind = 'RefreshToken' then
    if (
      select count(*) from private.oauth_records o where o.grant_id = v_record.grant_id and o.kind = 'RefreshToken'
    ) >= 2000 then
      return false;
    end if;
    update private.oauth_grants g
    set
      refreshes = case when g.refreshes_since > now() - interval '1 minute' then g.refreshes + 1 else 1 end,
      refreshes_since = case when g.refreshes_since > now() - interval '1 minute' then g.refreshes_since else now() end
    where g.api_key_id = v_record.grant_id
      and (g.refreshes < 20 or g.refreshes_since < now() - interval '1 minute');
    if not found then
      perform private.refuse(
        429, 'rate_limited', 'The tokens were renewed too often.', hint => 'Wait a minute. An access token is valid for an hour.'
      );
    end if;
  end if;
  -- Parallel requests do not prolong the 10 seconds.
  update private.oauth_records r set consumed_at = now()
  where r.id_hash = v_record.id_hash and (r.consumed_at is null or r.consumed_at < now() - interval '10 seconds');
  return true;
end
$$;
comment on function api.consume_oauth_record is
  'Marks a code or refresh token as used. false on a second use, or if the grant has 2,000 refresh tokens. 429 if a grant is renewed too often. For the gateway.';
grant execute on function api.consume_oauth_record to gateway;

-- Security definer: the gateway may write no table.
create function api.delete_oauth_record(kind text, id_hash text) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  delete from private.oauth_records r
  where r.id_hash = decode(delete_oauth_record.id_hash, 'hex') and r.kind = delete_oauth_record.kind;
end
$$;
comment on function api.delete_oauth_record is 'Deletes a record. For the gateway.';
grant execute on function api.delete_oauth_record to gateway;

-- As api.resolve_api_key, for a client with an access token. What it may is both what the token is for and what the grant has now; what the
-- person could still allow is what their key has.
-- Security definer: the gateway may read no table.
create function api.resolve_access_token(id_hash text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_record private.oauth_records;
  v_key public.api_keys;
begin
  select r.* into v_record
  from private.oauth_records r
  where r.id_hash = decode(resolve_access_token.id_hash, 'hex') and r.kind = 'AccessToken' and r.expires_at > now();
  select k.* into v_key from public.api_keys k where k.id = v_record.grant_id;
  if not private.is_usable_key(v_key) then
    perform private.refuse(
      401, 'invalid_access_token', 'The access token is not valid: it has expired, or its grant has ended.',
      hint => 'Renew it with the refresh token, or sign in again.'
    );
  end if;

  update public.api_keys k set last_used_at = now()
  where k.id = v_key.id and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute');

  return (
    select json_build_object(
      'api_key_id', v_key.id,
      'family_id', v_key.family_id,
      'organisation_id', v_key.organisation_id,
      'scopes', to_jsonb(array(
        select s from unnest(v_key.scopes) s where s::text = any (string_to_array(v_record.payload ->> 'scope', ' '))
      )),
      'rate_limit_per_minute', p.rate_limit_per_minute,
      'access_token', json_build_object(
        'resource', v_record.payload ->> 'aud',
        'expires_in', extract(epoch from v_record.expires_at - now()),
        'allowable', to_jsonb(m.scopes),
        'parent_family_id', m.family_id
      )
    )
    from public.organisations o
    join public.plans p on p.name = o.plan
    join public.api_keys m on m.id = v_key.parent_id
    where o.id = v_key.organisation_id
  );
end
$$;
comment on function api.resolve_access_token is
  'The principal behind an access token, as from api.resolve_api_key, with access_token: { resource, expires_in, allowable, parent_family_id }. 401 when it is unknown or has ended. For the gateway.';
grant execute on function api.resolve_access_token to gateway;
