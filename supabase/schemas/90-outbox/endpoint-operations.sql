-- Webhook endpoint operations: list, get, create, update, delete, and rotate the secret.

-- The secret of an endpoint that this transaction added.
-- Security definer: no role may read secrets.
create function private.new_webhook_secret(webhook_endpoint_id uuid) returns text
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select s.secret
    from public.webhook_endpoints w
    join private.webhook_secrets s on s.webhook_endpoint_id = w.id
    where w.id = new_webhook_secret.webhook_endpoint_id
      and w.organisation_id = private.current_organisation_id()
      and s.expires_at is null
      and s.created_at = now()
  );
end
$$;
grant execute on function private.new_webhook_secret to scope_events_write;

create function api.list_webhook_endpoints(cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_items json[];
begin
  v_items := array(
    select private.webhook_endpoint_json(w)
    from public.webhook_endpoints w
    where w.id < v_before
    order by w.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_webhook_endpoints is 'Webhook endpoints of the organisation, newest first: { data, has_more, next_cursor }.';
grant execute on function api.list_webhook_endpoints to scope_events_write;

create function api.get_webhook_endpoint(webhook_endpoint_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = get_webhook_endpoint.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  return private.webhook_endpoint_json(v_webhook_endpoint);
end
$$;
comment on function api.get_webhook_endpoint is 'One webhook endpoint, without its secret. 404 not_found.';
grant execute on function api.get_webhook_endpoint to scope_events_write;

create function api.create_webhook_endpoint(
  url text,
  types public.notification_type[],
  event_ids uuid[] default null,
  description text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.webhook_endpoints (organisation_id, url, types, event_ids, description)
  values (
    private.current_organisation_id(), create_webhook_endpoint.url, create_webhook_endpoint.types,
    coalesce(create_webhook_endpoint.event_ids, '{}'), create_webhook_endpoint.description
  )
  returning * into v_webhook_endpoint;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
  ));
end
$$;
comment on function api.create_webhook_endpoint is
  'Adds a webhook endpoint: 201 with its secret, which is shown only here. 403 missing_scope; 404 not_found (event_ids); 409 too_many_webhook_endpoints; 422 validation_failed.';
grant execute on function api.create_webhook_endpoint to scope_events_write;

create function api.update_webhook_endpoint(
  webhook_endpoint_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
  v_new public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = update_webhook_endpoint.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_version(v_webhook_endpoint.version, if_version);

  v_new := jsonb_populate_record(v_webhook_endpoint, changes);
  update public.webhook_endpoints w set
    url = v_new.url,
    description = v_new.description,
    types = v_new.types,
    event_ids = v_new.event_ids,
    status = v_new.status
  where w.id = v_webhook_endpoint.id
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_endpoint_json(v_webhook_endpoint))
  );
end
$$;
comment on function api.update_webhook_endpoint is
  'Changes fields of a webhook endpoint (status enabled or disabled): 200. 403 missing_scope; 404 not_found; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_webhook_endpoint to scope_events_write;

create function api.delete_webhook_endpoint(
  webhook_endpoint_id uuid,
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

  delete from public.webhook_endpoints w where w.id = delete_webhook_endpoint.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'webhook_endpoint', 'id', webhook_endpoint_id, 'deleted', true)
  ));
end
$$;
comment on function api.delete_webhook_endpoint is 'Deletes a webhook endpoint with its secrets and deliveries: 200. 404 not_found.';
grant execute on function api.delete_webhook_endpoint to scope_events_write;

-- The new secret: the current one signs beside it for overlap_hours; an older one stops now. Of a rotation the audit trail keeps nothing but
-- the fact. Security definer: no role may write secrets.
create function private.replace_webhook_secret(webhook_endpoint_id uuid, overlap_hours integer) returns text
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := (select w.organisation_id from public.webhook_endpoints w where w.id = replace_webhook_secret.webhook_endpoint_id);
  v_secret text;
begin
  perform private.assert_not_foreign(v_organisation_id, 'webhook_endpoint_id');
  delete from private.webhook_secrets s
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id and s.expires_at is not null;
  update private.webhook_secrets s set expires_at = now() + make_interval(hours => overlap_hours)
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id;
  insert into private.webhook_secrets (webhook_endpoint_id) values (replace_webhook_secret.webhook_endpoint_id) returning secret into v_secret;
  insert into public.audit_entries (organisation_id, action, object_type, object_id, changes)
  values (v_organisation_id, 'updated', 'webhook_endpoint', replace_webhook_secret.webhook_endpoint_id, '{"secret": {}}');
  return v_secret;
end
$$;
grant execute on function private.replace_webhook_secret to scope_events_write;

create function api.rotate_webhook_secret(
  webhook_endpoint_id uuid,
  overlap_hours integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = rotate_webhook_secret.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_scopes_to_read(v_webhook_endpoint.types);

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_endpoint_json(
      v_webhook_endpoint, private.replace_webhook_secret(v_webhook_endpoint.id, least(greatest(coalesce(overlap_hours, 24), 0), 168))
    ))
  );
end
$$;
comment on function api.rotate_webhook_secret is
  'Gives a webhook endpoint a new secret. The old one also signs for overlap_hours (24): 200 with the new one, which is shown only here. 403 missing_scope; 404 not_found.';
grant execute on function api.rotate_webhook_secret to scope_events_write;
