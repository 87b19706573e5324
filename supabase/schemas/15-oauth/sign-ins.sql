-- Browsers that are signed in: somebody pasted a key for people into Usher's own page. The cookie is a secret of its own, of which the SHA-256 is
-- kept. It is good for as long as the key is, and for 30 days at most.

create table private.oauth_sign_ins (
  secret_hash bytea not null,
  api_key_id uuid not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint oauth_sign_ins_pkey primary key (secret_hash),
  constraint oauth_sign_ins_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete cascade,
  constraint oauth_sign_ins_secret_hash_is_sha256 check (octet_length(secret_hash) = 32)
);
comment on table private.oauth_sign_ins is 'Browsers signed in with a key for people.';

create index oauth_sign_ins_api_key_id_idx on private.oauth_sign_ins (api_key_id);
-- For api.purge.
create index oauth_sign_ins_expires_at_idx on private.oauth_sign_ins (expires_at);

alter table private.oauth_sign_ins enable row level security;

-- The key of a browser that is signed in, as it is now; a row of nulls where the browser is not, or the key has ended or is a program's.
create function private.key_of_sign_in(secret_hash text) returns public.api_keys
language plpgsql stable set search_path = ''
as $$
declare
  v_key public.api_keys;
begin
  select k.* into v_key
  from private.oauth_sign_ins s
  join public.api_keys k on k.id = s.api_key_id
  where s.secret_hash = decode(key_of_sign_in.secret_hash, 'hex') and s.expires_at > now() and k.kind = 'person';
  if private.is_usable_key(v_key) then
    return v_key;
  end if;
  return null;
end
$$;

-- Security definer: the gateway may read and write no table.
create function api.start_sign_in(key_hash text, secret_hash text) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key public.api_keys;
  v_expires_at timestamptz;
begin
  select k.* into v_key
  from private.api_key_hashes h
  join public.api_keys k on k.id = h.api_key_id
  where h.key_hash = decode(start_sign_in.key_hash, 'hex');
  perform private.assert_usable_key(v_key);
  if v_key.kind <> 'person' then
    perform private.refuse(403, 'forbidden', 'This API key is for a program.', hint => 'Sign in with a key for people.');
  end if;

  insert into private.oauth_sign_ins (secret_hash, api_key_id, expires_at)
  values (
    decode(start_sign_in.secret_hash, 'hex'), v_key.id, least(now() + interval '30 days', v_key.expires_at)
  )
  returning expires_at into v_expires_at;
  return ceil(extract(epoch from v_expires_at - now()));
end
$$;
comment on function api.start_sign_in is
  'Signs a browser in with an API key. Returns for how many seconds. Takes the SHA-256 of the key and of the browser''s secret in hex. 401 when the key is unknown, revoked or expired; 403 when it is for a program. For the gateway.';
grant execute on function api.start_sign_in to gateway;

-- Security definer: the gateway may write no table.
create function api.end_sign_in(secret_hash text) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  delete from private.oauth_sign_ins s where s.secret_hash = decode(end_sign_in.secret_hash, 'hex');
end
$$;
comment on function api.end_sign_in is 'Signs a browser out. For the gateway.';
grant execute on function api.end_sign_in to gateway;
