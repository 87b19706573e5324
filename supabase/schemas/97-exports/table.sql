-- Links to exports: a page from which a person downloads a file that a key asked for. A link is worth what its key is worth at the moment
-- of the download, and says so for a quarter of an hour.

create table private.export_links (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  api_key_id uuid not null,
  token_hash bytea not null,
  operation text not null,
  arguments jsonb not null,
  source public.request_source not null default private.current_source(),
  downloads integer not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '15 minutes',
  constraint export_links_pkey primary key (id),
  constraint export_links_token_hash_key unique (token_hash),
  constraint export_links_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete cascade,
  constraint export_links_token_hash_is_sha256 check (octet_length(token_hash) = 32),
  constraint export_links_downloads_are_bounded check (downloads between 0 and 20)
);
comment on table private.export_links is
  'Links to exports, by the SHA-256 of their token. The arguments say which rows and columns, and hold nothing of any person.';

create index export_links_api_key_id_idx on private.export_links (api_key_id);
-- For api.purge.
create index export_links_expires_at_idx on private.export_links (expires_at);

alter table private.export_links enable row level security;

create function private.hash_of_export_token(token text) returns bytea
language plpgsql immutable set search_path = ''
as $$
begin
  return sha256(convert_to(token, 'UTF8'));
end
$$;

-- An export has no row that a trigger could tell of: who asked for what, or downloaded it once more.
create function private.audit_export(
  export_id uuid, action public.audit_action, changes jsonb
) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, source, changes)
  values (
    private.current_organisation_id(), action, 'export', export_id, private.audit_actor(), private.current_api_key_id(),
    private.current_source(), changes
  );
end
$$;

create function private.export_as_changes(operation text, arguments jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return jsonb_build_object(
    'operation', jsonb_build_object('from', null, 'to', operation), 'arguments', jsonb_build_object('from', null, 'to', arguments)
  );
end
$$;

-- The columns of a file, in the order of its view.
create function private.export_columns(operation text) returns text[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select a.attname::text
    from pg_catalog.pg_attribute a
    where a.attrelid = case operation
        when 'export_attendees' then 'public.attendee_export'
        when 'export_orders' then 'public.order_export'
        when 'export_payments' then 'public.payment_export'
        when 'export_check_ins' then 'public.check_in_export'
      end::regclass
      and a.attnum > 0 and a.attname <> 'organisation_id'
    order by a.attnum
  );
end
$$;

-- Null where the database does not know where the API is, as private.ticket_url.
create function private.export_url(token text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.claims() ->> 'public_url' || '/exports/' || token;
end
$$;

create function private.export_json(id uuid, token text, expires_at timestamptz, "rows" bigint, columns json) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'export',
    'id', id,
    'url', private.export_url(token),
    'expires_at', private.rfc3339(expires_at),
    'good_for_minutes', greatest(extract(epoch from expires_at - now())::integer / 60, 0),
    'rows', "rows",
    'columns', columns
  );
end
$$;

-- The outcome of making a link. The token is in the answer alone.
-- Security definer: no role may read links.
create function private.make_export_link(
  operation text, arguments jsonb, "rows" bigint, idempotency_key text, request_fingerprint text
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_token text := private.random_token();
  v_link private.export_links;
  v_columns json;
begin
  insert into private.export_links (organisation_id, api_key_id, token_hash, operation, arguments)
  values (
    private.current_organisation_id(), private.current_api_key_id(), private.hash_of_export_token(v_token), make_export_link.operation,
    jsonb_strip_nulls(make_export_link.arguments)
  )
  returning * into v_link;
  perform private.audit_export(v_link.id, 'created', private.export_as_changes(v_link.operation, v_link.arguments));

  v_columns := coalesce(v_link.arguments -> 'fields', to_jsonb(private.export_columns(v_link.operation)));
  perform private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 201, 'data', private.export_json(v_link.id, null, v_link.expires_at, "rows", v_columns))
  );
  return json_build_object('status', 201, 'data', private.export_json(v_link.id, v_token, v_link.expires_at, "rows", v_columns));
end
$$;
grant execute on function private.make_export_link to scope_attendees_read, scope_orders_read;

-- A recorded outcome lacks the token, which is stored nowhere. While the link is good it gets another, and the former is void: whoever
-- repeats a call has not seen its answer.
-- Security definer, for the same reason.
create function private.repeat_export_link(outcome json) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_data json := outcome -> 'data';
  v_token text := private.random_token();
begin
  update private.export_links l set token_hash = private.hash_of_export_token(v_token)
  where l.id = (v_data ->> 'id')::uuid and l.api_key_id = private.current_api_key_id() and l.expires_at > now();
  if not found then
    return outcome;
  end if;
  return json_build_object(
    'replayed', true,
    'status', 201,
    'data', private.export_json(
      (v_data ->> 'id')::uuid, v_token, (v_data ->> 'expires_at')::timestamptz, (v_data ->> 'rows')::bigint, v_data -> 'columns'
    )
  );
end
$$;
grant execute on function private.repeat_export_link to scope_attendees_read, scope_orders_read;

-- Security definer: the gateway may read no table. The key is checked once more in each transaction of the download, with its scope.
create function api.get_export_link(token_hash text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'id', l.id,
      'operation', l.operation,
      'arguments', l.arguments,
      'source', l.source,
      'expires_at', private.rfc3339(l.expires_at),
      'organisation', json_build_object('name', o.name, 'accent_colour', o.accent_colour),
      'event', (
        select e.name from public.events e
        where e.id = (l.arguments ->> 'event_id')::uuid and e.organisation_id = l.organisation_id
      ),
      'principal', json_build_object(
        'api_key_id', k.id,
        'family_id', k.family_id,
        'organisation_id', k.organisation_id,
        'scopes', to_jsonb(k.scopes),
        'rate_limit_per_minute', p.rate_limit_per_minute
      )
    )
    from private.export_links l
    join public.api_keys k on k.id = l.api_key_id
    join public.organisations o on o.id = k.organisation_id
    join public.plans p on p.name = o.plan
    where l.token_hash = decode(get_export_link.token_hash, 'hex') and l.expires_at > now() and private.is_usable_key(k)
  );
end
$$;
comment on function api.get_export_link is
  'What a link to an export is good for: { id, operation, arguments, source, expires_at, organisation, event, principal }. Takes the SHA-256 of its token in hex. null where there is none, or its key is no longer valid. For the gateway.';
grant execute on function api.get_export_link to gateway;

-- Security definer: no role may write links or the audit trail.
create function private.begin_export(operation text, arguments jsonb, link_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_downloads integer;
begin
  if link_id is null then
    perform private.audit_export(private.uuid_v7(), 'created', private.export_as_changes(operation, jsonb_strip_nulls(arguments)));
    return;
  end if;
  select l.downloads into v_downloads
  from private.export_links l
  where l.id = link_id and l.api_key_id = private.current_api_key_id() and l.expires_at > now() and l.downloads < 20
  for update;
  if not found then
    perform private.refuse_not_found('link_id');
  end if;
  update private.export_links l set downloads = l.downloads + 1 where l.id = link_id;
  perform private.audit_export(
    link_id, 'updated', jsonb_build_object('downloads', jsonb_build_object('from', v_downloads, 'to', v_downloads + 1))
  );
end
$$;
grant execute on function private.begin_export to scope_attendees_read, scope_orders_read;

create function api.begin_export(operation text, arguments jsonb, link_id uuid default null) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.begin_export(operation, arguments, link_id);
  return '{}';
end
$$;
comment on function api.begin_export is
  'Keeps in the audit trail that an export is read, and counts it for its link: {}. 404 not_found for a link that has expired or was used 20 times. For the gateway.';
grant execute on function api.begin_export to scope_attendees_read, scope_orders_read;
