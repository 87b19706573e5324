-- The caller of a request, read from the claims of its verified token. usher.checked is empty until private.check_request has looked at the
-- request; then it is 'on', or for a key the id of its organisation, so that what is asked most needs no claims.

-- The claims as PostgREST sets them; {} in a session without a token, such as the SQL editor of Studio. Of a request that nothing has
-- checked the key is checked here: PostgREST runs private.check_request before each request, unless it could not read its settings when it
-- last connected; it then goes on without it, and a revoked key would be good until the next time.
create function private.claims() returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if coalesce(current_setting('usher.checked', true), '') = '' and current_setting('request.path', true) <> '' then
    perform private.check_request();
  end if;
  return coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb;
end
$$;
grant execute on function private.claims to api_key, authenticated;

create function private.current_organisation_id() returns uuid
language plpgsql stable set search_path = ''
as $$
declare
  v_checked constant text := current_setting('usher.checked', true);
begin
  if length(v_checked) = 36 then
    return v_checked::uuid;
  end if;
  return (private.claims() ->> 'organisation_id')::uuid;
end
$$;
grant execute on function private.current_organisation_id to api_key;

create function private.current_api_key_id() returns uuid
language plpgsql stable set search_path = ''
as $$ begin return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'api_key_id')::uuid; end $$;
grant execute on function private.current_api_key_id to api_key, authenticated;

-- Whether the registration page of an event calls, with its own key. A guest who takes an offer on a page has none.
create function private.is_page() returns boolean
language plpgsql stable set search_path = ''
as $$ begin return private.current_source() = 'page' and private.current_api_key_id() is not null; end $$;
grant execute on function private.is_page to api_key;

create type public.request_source as enum ('api', 'mcp', 'studio', 'page');

-- Whether a person writes a row: in Studio, in the SQL editor, or signed in. Not an API key, the gateway or the courier.
create function private.is_by_hand() returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  if length(current_setting('usher.checked', true)) = 36 then
    return false;
  end if;
  return coalesce(nullif(current_setting('request.jwt.claims', true), '')::json ->> 'role', 'authenticated') = 'authenticated';
end
$$;
grant execute on function private.is_by_hand to api_key, courier, authenticated;

-- Whether a person, or anyone, writes this very row, and not a trigger of what they wrote. For conditions of triggers, which Postgres reads and plans anew
-- for every statement: the shorter they are, the cheaper.
create function private.is_typed(by_anyone boolean default false) returns boolean
language plpgsql stable set search_path = ''
as $$ begin return pg_trigger_depth() = 0 and (by_anyone or private.is_by_hand()); end $$;
grant execute on function private.is_typed to api_key, courier, authenticated;

-- How a row was created: the token says api or mcp; a session without a token is a person.
create function private.current_source() returns public.request_source
language plpgsql stable set search_path = ''
as $$
begin
  return coalesce(nullif(current_setting('request.jwt.claims', true), '')::json ->> 'source', 'studio')::public.request_source;
end
$$;
grant execute on function private.current_source to api_key, authenticated;
