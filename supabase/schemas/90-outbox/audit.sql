-- What the audit trail keeps of webhook endpoints, and that a secret was rotated.

-- A rotation of a secret, of which nothing but the fact is kept.
create function private.tg_webhook_secrets__audit() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, changes)
  select w.organisation_id, 'updated', 'webhook_endpoint', w.id, '{"secret": {}}'
  from public.webhook_endpoints w
  where w.id = new.webhook_endpoint_id and w.created_at <> now();
  return null;
end
$$;
create trigger webhook_secrets_700_audit after insert on private.webhook_secrets
  for each row execute function private.tg_webhook_secrets__audit();
select private.audit_changes('public.webhook_endpoints', 'webhook_endpoint');
