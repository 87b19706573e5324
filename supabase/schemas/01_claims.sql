-- Who is calling, and from where.

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
