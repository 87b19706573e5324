-- Webhook endpoints that fail, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.failing_webhook_endpoints with (security_invoker = true) as
select
  w.organisation_id,
  w.id as webhook_endpoint_id,
  w.url,
  w.description,
  w.status,
  w.failing_since,
  w.disabled_reason,
  d.last_response_status,
  d.last_error,
  d.last_attempt_at
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
comment on view public.failing_webhook_endpoints is 'Webhook endpoints that do not answer as they should, with the last failure.';
create trigger failing_webhook_endpoints_100_read_only instead of insert or update or delete on public.failing_webhook_endpoints
  for each row execute function private.tg__refuse_write();

revoke all on public.failing_webhook_endpoints from anon, authenticated, service_role;
grant select on public.failing_webhook_endpoints to authenticated;
