-- Webhook endpoints that fail, and who changed what, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.failing_webhook_endpoints with (security_invoker = true) as
select
  w.url,
  w.description,
  w.status,
  w.disabled_reason,
  w.failing_since,
  d.last_attempt_at,
  d.last_response_status,
  d.last_error,
  w.id as webhook_endpoint_id,
  w.organisation_id
from public.webhook_endpoints w
left join lateral (
  select d.last_response_status, d.last_error, d.last_attempt_at
  from public.webhook_deliveries d
  where d.webhook_endpoint_id = w.id and d.last_attempt_at is not null and d.status <> 'delivered'
  order by d.id desc
  limit 1
) d on true
where w.failing_since is not null or w.disabled_reason is not null
order by w.failing_since nulls last;
comment on view public.failing_webhook_endpoints is 'Failing webhook endpoints, with the last failure.';
comment on column public.failing_webhook_endpoints.url is 'Where it is sent.';
comment on column public.failing_webhook_endpoints.description is 'What receives the webhooks.';
comment on column public.failing_webhook_endpoints.status is 'enabled or disabled.';
comment on column public.failing_webhook_endpoints.disabled_reason is 'Why Usher disabled it. Empty if a person or an API key did.';
comment on column public.failing_webhook_endpoints.failing_since is 'Since when no delivery has succeeded.';
comment on column public.failing_webhook_endpoints.last_attempt_at is 'When the last delivery that failed was tried.';
comment on column public.failing_webhook_endpoints.last_response_status is 'HTTP status of its response. Empty: there was none.';
comment on column public.failing_webhook_endpoints.last_error is 'Why there was no response.';
comment on column public.failing_webhook_endpoints.webhook_endpoint_id is 'The webhook endpoint.';
comment on column public.failing_webhook_endpoints.organisation_id is 'The organisation it belongs to.';
select private.keep_view('public.failing_webhook_endpoints');

revoke all on public.failing_webhook_endpoints from anon, authenticated, service_role;
grant select on public.failing_webhook_endpoints to authenticated;

create view public.audit_trail with (security_invoker = true) as
select
  e.created_at,
  e.actor,
  private.actor_name(e) as actor_name,
  e.source,
  e.action,
  e.object_type,
  e.object_id,
  e.changes,
  e.id,
  e.organisation_id
from public.audit_entries e
order by e.id desc;
comment on view public.audit_trail is 'Audit entries, newest first, with the name of the key or the name or address of the member.';
comment on column public.audit_trail.created_at is 'When it was done.';
comment on column public.audit_trail.actor is 'API key, signed-in member, Studio or SQL user, or courier.';
comment on column public.audit_trail.actor_name is 'Name of the key, or name or address of the member.';
comment on column public.audit_trail.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.audit_trail.action is 'created, updated or deleted.';
comment on column public.audit_trail.object_type is 'Kind of object.';
comment on column public.audit_trail.object_id is 'The object; for a member, their user_id.';
comment on column public.audit_trail.changes is 'For an update, each changed field as { from, to }. For a deletion, each field as { from }.';
comment on column public.audit_trail.id is 'Identifier of the entry.';
comment on column public.audit_trail.organisation_id is 'The organisation it belongs to.';
select private.keep_view('public.audit_trail');

revoke all on public.audit_trail from anon, authenticated, service_role;
grant select on public.audit_trail to authenticated;

-- The secret of an endpoint that was added as a row, or of any: shown here, once, as a new one. Security definer: no role may read secrets.
create function public.rotate_webhook_secret(webhook_endpoint_id uuid, overlap_hours integer default 24) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = rotate_webhook_secret.webhook_endpoint_id
  for no key update;
  if not found or (
    private.claims() ->> 'role' is not null and v_webhook_endpoint.organisation_id not in (select private.organisations_as('{owner,manager}'))
  ) then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  if overlap_hours is null or overlap_hours not between 0 and 168 then
    perform private.refuse_value('overlap_hours', 'The overlap is from 0 to 168 hours.', 'Use 0 if the old secret has leaked.');
  end if;
  return json_build_object(
    'webhook_endpoint_id', v_webhook_endpoint.id, 'url', v_webhook_endpoint.url,
    'secret', private.replace_webhook_secret(v_webhook_endpoint.id, overlap_hours)
  );
end
$$;
comment on function public.rotate_webhook_secret is
  'Gives a webhook endpoint a new secret, as an owner or manager: { webhook_endpoint_id, url, secret }. It is shown only here. The old one also signs for overlap_hours.';
revoke all on function public.rotate_webhook_secret from public, anon, service_role;
grant execute on function public.rotate_webhook_secret to authenticated;

-- The id of an endpoint: see 20-events/studio.sql.
create function public.the_webhook_endpoint(url text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(select w.id from public.webhook_endpoints w where w.url = btrim(the_webhook_endpoint.url) limit 2),
    'There is no webhook endpoint with this address.', 'Several webhook endpoints have this address.', 'url'
  );
end
$$;
comment on function public.the_webhook_endpoint is 'The id of the webhook endpoint with this address. Refuses an unknown address.';
revoke all on function public.the_webhook_endpoint from public, anon, service_role;
grant execute on function public.the_webhook_endpoint to authenticated;
