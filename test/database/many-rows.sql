-- 30,000 rows of one organisation in every table that is listed, and in those that a person is erased from, in the states in which most rows are. No statistics are
-- ever gathered; triggers are off, for what they do is not what is tested, and foreign keys are not checked.
set session_replication_role = replica;
do $$
declare
  v_table text;
begin
  foreach v_table in array array['api_keys', 'events', 'ticket_types', 'orders', 'attendees', 'payments', 'check_ins', 'notifications', 'webhook_endpoints', 'webhook_deliveries'] loop
    execute format('alter table public.%I set (autovacuum_enabled = false)', v_table);
    execute format('alter table public.%I disable trigger user', v_table);
  end loop;
end
$$;

create function pg_temp.id(kind integer, i integer) returns uuid language sql immutable
return ('0190000' || kind || '-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid;
create temp table c as select '01900000-0000-7000-8000-000000000001'::uuid as organisation_id;

insert into public.organisations (id, name, slug) select organisation_id, 'Large', 'large' from c;
insert into public.events (id, organisation_id, name, slug, status, starts_at, ends_at, external_id)
select pg_temp.id(1, i), organisation_id, 'Event', 'event-' || i, 'published', '2098-12-31Z', '2099-01-01Z', 'crm-' || i
from c, generate_series(1, 30000) i;
insert into public.ticket_types (id, organisation_id, event_id, name)
select pg_temp.id(2, 1), organisation_id, pg_temp.id(1, 1), 'Type' from c;
insert into public.api_keys (id, organisation_id, family_id, name, prefix, scopes)
select organisation_id, organisation_id, organisation_id, 'Key', 'usher_live_' || repeat('0', 8), enum_range(null::public.api_scope) from c;
insert into public.orders (id, organisation_id, event_id, reference, status, name, email, currency, external_id)
select pg_temp.id(3, i), organisation_id, pg_temp.id(1, 1), lpad(i::text, 8, '0'), 'completed', 'Guest',
  'guest' || i || '@example.com', 'EUR', 'crm-' || i
from c, generate_series(1, 30000) i;
insert into public.attendees (
  id, organisation_id, event_id, order_id, ticket_type_id, name, email, currency, ticket_code, ticket_token, ticket_email_status, external_id,
  search_text
)
select pg_temp.id(4, i), organisation_id, pg_temp.id(1, 1), pg_temp.id(3, i), pg_temp.id(2, 1), 'Guest',
  'guest' || i || '@example.com', 'EUR', lpad(i::text, 16, '0'), md5(i::text), 'sent', 'crm-' || i,
  'guest' || case i % 10000 when 7 then ' muller' else '' end || ' ' || lpad(i::text, 8, '0') || E'\tguest' || i || '@example.com crm-' || i || E'\n'
from c, generate_series(1, 30000) i;
insert into public.payments (id, organisation_id, event_id, order_id, amount, currency, received_at)
select pg_temp.id(9, i), organisation_id, pg_temp.id(1, 1), pg_temp.id(3, i), 1, 'EUR', '2026-01-01Z' from c, generate_series(1, 30000) i;
insert into public.check_ins (id, organisation_id, event_id, attendee_id, code, result)
select pg_temp.id(7, i), organisation_id, pg_temp.id(1, 1), pg_temp.id(4, i), 'code', 'accepted' from c, generate_series(1, 30000) i;
insert into public.webhook_endpoints (id, organisation_id, url, types)
select pg_temp.id(5, 1), organisation_id, 'https://example.com', '{order.completed}' from c;
insert into public.notifications (id, organisation_id, type, data, subject_id, transaction_id)
select pg_temp.id(6, i), organisation_id, 'order.completed', json_build_object('object', 'order', 'id', pg_temp.id(3, i)), pg_temp.id(3, i), '3'
from c, generate_series(1, 30000) i;
insert into public.webhook_deliveries (id, organisation_id, webhook_endpoint_id, notification_id, type, status, next_attempt_at)
select pg_temp.id(8, i), organisation_id, pg_temp.id(5, 1), pg_temp.id(6, i), 'order.completed', 'delivered', null
from c, generate_series(1, 30000) i;
insert into public.emails (organisation_id, attendee_id, status, next_attempt_at)
select organisation_id, pg_temp.id(4, i), 'sent', null from c, generate_series(1, 30000) i;
insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source, changes)
select organisation_id, 'updated', 'attendee', pg_temp.id(4, i), 'studio', 'studio', '{"name": {}}' from c, generate_series(1, 30000) i;
insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
select organisation_id, organisation_id, i::text, '', json_build_object('data', json_build_object('object', 'order', 'id', pg_temp.id(3, i), 'name', 'Guest'))
from c, generate_series(1, 30000) i;
