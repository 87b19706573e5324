-- check keys without the hook. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function private.assert_checked()
  returns void
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if current_setting('request.path', true) <> '' then
    perform private.check_request();
  end if;
end
$$;

create or replace function private.check_request()
  returns void
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- See private.assert_checked. What is refused below is rolled back with this.
  v_is_checked constant text := set_config('usher.checked', 'on', true);
  v_claims jsonb := private.claims();
  v_role text := v_claims ->> 'role';
  v_scope public.api_scope;
  v_headers json;
  v_key public.api_keys;
begin
  -- Whoever else calls the Data API of this project is none of Usher's business.
  if v_role is null or v_role <> 'api_key' and v_role not like 'scope\_%' then
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

create or replace function private.claims()
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if coalesce(current_setting('usher.checked', true), '') <> 'on' then
    perform private.assert_checked();
  end if;
  return coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb;
end
$$;

create or replace function private.current_organisation_id()
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if coalesce(current_setting('usher.checked', true), '') <> 'on' then
    perform private.assert_checked();
  end if;
  return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'organisation_id')::uuid;
end
$$;

revoke all on function private.assert_checked() from public;

grant execute on function private.assert_checked() to api_key, authenticated;
