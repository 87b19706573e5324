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
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '15 minutes',
  constraint export_links_pkey primary key (id),
  constraint export_links_token_hash_key unique (token_hash),
  constraint export_links_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete cascade,
  constraint export_links_token_hash_is_sha256 check (octet_length(token_hash) = 32)
);
comment on table private.export_links is
  'Links to exports, by the SHA-256 of their token. The arguments select rows and columns, without personal data.';

create index export_links_api_key_id_idx on private.export_links (api_key_id);
-- For api.purge.
create index export_links_expires_at_idx on private.export_links (expires_at);

alter table private.export_links enable row level security;

-- An export has no row that a trigger could tell of: who asked for what, or downloads it. Security definer: no role may write the trail.
create function private.audit_export(export_id uuid, action public.audit_action, operation text, arguments jsonb) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, changes)
  values (
    private.current_organisation_id(), action, 'export', export_id,
    jsonb_build_object(
      'operation', jsonb_build_object('from', null, 'to', operation),
      'arguments', jsonb_build_object('from', null, 'to', jsonb_strip_nulls(arguments))
    )
  );
end
$$;
grant execute on function private.audit_export to scope_attendees_read, scope_orders_read;

-- `url` is null where the database does not know where the API is, as private.ticket_url.
create function private.export_json(link private.export_links, token text, "rows" json, columns json) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'export',
    'id', link.id,
    'url', private.claims() ->> 'public_url' || '/exports/' || token,
    'expires_at', private.rfc3339(link.expires_at),
    'good_for_minutes', greatest(extract(epoch from link.expires_at - now())::integer / 60, 0),
    'rows', "rows",
    'columns', columns
  );
end
$$;

-- An event of somebody else has no rows; whoever names one is told. Security definer: not every scope reads them.
create function private.assert_own_objects(event_id uuid, ticket_type_id uuid default null) returns void
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
begin
  if event_id is not null
    and not exists (select from public.events e where e.id = assert_own_objects.event_id and e.organisation_id = v_organisation_id) then
    perform private.refuse_not_found('event_id');
  end if;
  if ticket_type_id is not null and not exists (
    select from public.ticket_types t where t.id = assert_own_objects.ticket_type_id and t.organisation_id = v_organisation_id
  ) then
    perform private.refuse_not_found('ticket_type_id');
  end if;
end
$$;
grant execute on function private.assert_own_objects to scope_attendees_read, scope_orders_read;

-- The outcome of an operation that makes a link to a file of the rows of a view with these ids, which are counted where they are at most
-- 10,000. The token is in the answer alone. A recorded outcome lacks it: while the link is good a repeated call gets another, and the former
-- is void, for whoever repeats a call has not seen its answer.
-- Security definer: no role may read links.
create function private.export_link(
  operation text, "view" regclass, arguments jsonb, ids uuid[], idempotency_key text, request_fingerprint text
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_data json := v_outcome -> 'data';
  v_token text := private.random_token();
  v_token_hash bytea := sha256(convert_to(v_token, 'UTF8'));
  v_link private.export_links;
  v_rows json := to_json(case when cardinality(ids) <= 10000 then cardinality(ids) end);
  v_columns json;
begin
  if v_outcome is not null then
    update private.export_links l set token_hash = v_token_hash
    where l.id = (v_data ->> 'id')::uuid and l.api_key_id = private.current_api_key_id() and l.expires_at > now()
    returning * into v_link;
    if not found then
      return v_outcome;
    end if;
    return json_build_object(
      'replayed', true, 'status', 201, 'data', private.export_json(v_link, v_token, v_data -> 'rows', v_data -> 'columns')
    );
  end if;

  perform private.assert_own_objects((arguments ->> 'event_id')::uuid, (arguments ->> 'ticket_type_id')::uuid);
  insert into private.export_links (organisation_id, api_key_id, token_hash, operation, arguments)
  values (
    private.current_organisation_id(), private.current_api_key_id(), v_token_hash, export_link.operation,
    jsonb_strip_nulls(export_link.arguments)
  )
  returning * into v_link;
  perform private.audit_export(v_link.id, 'created', v_link.operation, v_link.arguments);

  v_columns := coalesce(v_link.arguments -> 'fields', (
    select jsonb_agg(a.attname order by a.attnum)
    from pg_catalog.pg_attribute a
    where a.attrelid = "view" and a.attnum > 0 and a.attname <> 'organisation_id'
  ));
  perform private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 201, 'data', private.export_json(v_link, null, v_rows, v_columns))
  );
  return json_build_object('status', 201, 'data', private.export_json(v_link, v_token, v_rows, v_columns));
end
$$;
grant execute on function private.export_link to scope_attendees_read, scope_orders_read;

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
      'organisation', json_build_object('name', o.name, 'accent_colour', o.accent_colour, 'is_test', o.is_test),
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
  'The export behind a link: { id, operation, arguments, source, expires_at, organisation, event, principal }. Takes the SHA-256 of its token in hex. null if there is none, or its key is no longer valid. For the gateway.';
grant execute on function api.get_export_link to gateway;

create function api.begin_export(operation text, arguments jsonb, link_id uuid default null) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.audit_export(
    coalesce(link_id, private.uuid_v7()),
    case when link_id is null then 'created' else 'updated' end::public.audit_action,
    operation, arguments
  );
  return '{}';
end
$$;
comment on function api.begin_export is 'Records in the audit trail that an export is read, with its link if it has one: {}. For the gateway.';
grant execute on function api.begin_export to scope_attendees_read, scope_orders_read;
