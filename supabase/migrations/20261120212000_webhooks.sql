-- Webhook endpoints, and the outbox: notifications and deliveries, written in the transaction of what they tell of.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.
set local lock_timeout = '5s';
set local statement_timeout = '60s';

drop function private.attendee_json(public.attendees);

-- What the calling key may do, as of now.
create or replace function private.current_scopes() returns public.api_scope[]
language plpgsql stable set search_path = ''
as $$
begin
  return (select k.scopes from public.api_keys k where k.id = private.current_api_key_id());
end
$$;

grant execute on function private.current_scopes() to api_key;

-- The ticket code lets people in, and is told only to those who handle tickets.
create or replace function private.attendee_json(attendee public.attendees, with_code boolean default true) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'attendee',
    'id', attendee.id,
    'order_id', attendee.order_id,
    'event_id', attendee.event_id,
    'ticket_type_id', attendee.ticket_type_id,
    'name', attendee.name,
    'email', attendee.email,
    'company', attendee.company,
    'price', attendee.price,
    'discount', attendee.discount,
    'currency', attendee.currency,
    'status', attendee.status,
    'ticket_code', case when with_code then attendee.ticket_code end,
    'checked_in_at', private.rfc3339(attendee.checked_in_at),
    'ticket_email', json_build_object(
      'status', attendee.ticket_email_status,
      'sent_at', private.rfc3339(attendee.ticket_email_sent_at),
      'last_error', attendee.ticket_email_last_error
    ),
    'cancelled_at', private.rfc3339(attendee.cancelled_at),
    'external_id', attendee.external_id,
    'metadata', attendee.metadata,
    'version', attendee.version,
    'created_at', private.rfc3339(attendee.created_at),
    'updated_at', private.rfc3339(attendee.updated_at)
  );
end
$$;

grant execute on function private.attendee_json(public.attendees, boolean) to scope_attendees_read, scope_attendees_write;

-- Reading, paying and cancelling orders. An order is answered with its attendees and payments, so this stands behind all three.

-- The attendees of an order without their ticket codes, which are no business of finance. Its callers have seen to it that
-- the order is theirs to read.
create or replace function private.attendees_of_order_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(private.attendee_json(a, with_code => false) order by a.id), '[]')
    from public.attendees a
    where a.order_id = attendees_of_order_json.order_id
  );
end
$$;

-- The same for whoever may read orders. Security definer: a key for orders has no other right to attendees.
create or replace function private.order_attendees_json(order_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  if exists (
    select from public.orders o
    where o.id = order_attendees_json.order_id and o.organisation_id = private.current_organisation_id()
  ) then
    return private.attendees_of_order_json(order_id);
  end if;
  return '[]';
end
$$;

-- Webhook endpoints: where an organisation wants to hear of what happens, and of which types. Signed with a secret of their
-- own (https://www.standardwebhooks.com), which is shown at creation and rotation and never again.

-- What can happen. The object of a type's name is what its data holds, as the API answers it.
create type public.notification_type as enum (
  'order.created',
  'order.completed',
  'order.cancelled',
  'attendee.checked_in',
  'attendee.check_in_undone',
  'attendee.updated',
  'attendee.cancelled',
  'event.published',
  'event.updated',
  'event.cancelled',
  'webhook_endpoint.test'
);

create type public.webhook_endpoint_status as enum ('enabled', 'disabled');

-- Whoever hears of an object must be allowed to read it.
create or replace function private.scope_to_read(type public.notification_type) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return case split_part(type::text, '.', 1)
    when 'order' then 'orders:read'
    when 'attendee' then 'attendees:read'
    when 'event' then 'events:read'
    else 'events:write'
  end::public.api_scope;
end
$$;

grant execute on function private.scope_to_read(public.notification_type) to scope_events_write;

create table public.webhook_endpoints (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  url text not null,
  description text,
  types public.notification_type[] not null,
  status public.webhook_endpoint_status not null default 'enabled',
  disabled_reason text,
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_endpoints_pkey primary key (id),
  constraint webhook_endpoints_id_organisation_id_key unique (id, organisation_id),
  constraint webhook_endpoints_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  -- No credentials in it, for it is shown in lists. Without TLS only to this machine, where the courier allows that.
  constraint webhook_endpoints_url_is_https check (
    url ~ '^(https://[^/?#@[:space:]]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?)([/?#][^[:space:]]*)?$'
    and length(url) <= 2000
  ),
  constraint webhook_endpoints_description_is_one_line check (
    length(btrim(description)) between 1 and 200 and description !~ '[[:cntrl:]]'
  ),
  constraint webhook_endpoints_types_are_chosen check (
    cardinality(types) > 0 and array_position(types, null) is null and 'webhook_endpoint.test' <> all (types)
  ),
  constraint webhook_endpoints_disabled_reason_is_bounded check (length(disabled_reason) <= 500)
);

comment on table public.webhook_endpoints is 'Addresses that hear of what happens. Set status to disabled to stop sending, delete the row to forget it.';

comment on column public.webhook_endpoints.url is 'An https address. http only for this machine, while developing.';

comment on column public.webhook_endpoints.types is 'What it hears of.';

comment on column public.webhook_endpoints.disabled_reason is 'Why Usher stopped sending. Empty where a person did.';

create index webhook_endpoints_organisation_id_id_idx on public.webhook_endpoints (organisation_id, id desc);

-- One that signs, and for a while after a rotation the one before it.
create table private.webhook_secrets (
  id uuid not null default private.uuid_v7(),
  webhook_endpoint_id uuid not null,
  secret text not null,
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint webhook_secrets_pkey primary key (id),
  constraint webhook_secrets_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade,
  constraint webhook_secrets_secret_is_standard check (secret ~ '^whsec_[A-Za-z0-9+/]{43}=$')
);

comment on table private.webhook_secrets is 'What webhooks are signed with. It has to be known to sign, so it is kept as it is, where no role may read it.';

create index webhook_secrets_webhook_endpoint_id_idx on private.webhook_secrets (webhook_endpoint_id);

alter table private.webhook_secrets enable row level security;

-- What an endpoint of a key is told, the key must be allowed to read, also when it changes where that goes.
create or replace function private.require_scopes_to_read(types public.notification_type[]) returns void
language plpgsql stable set search_path = ''
as $$
declare
  v_missing public.api_scope;
begin
  select private.scope_to_read(t) into v_missing
  from unnest(types) t
  where private.scope_to_read(t) <> all (private.current_scopes())
  limit 1;
  if found then
    perform private.refuse(
      403, 'missing_scope', 'The API key lacks a scope that reading what the endpoint hears of needs.', 'types',
      jsonb_build_object('scope', v_missing), 'Use a key that has the scope, or choose other types.'
    );
  end if;
end
$$;

grant execute on function private.require_scopes_to_read(public.notification_type[]) to scope_events_write;

create or replace function private.tg_webhook_endpoints__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if private.current_api_key_id() is not null then
    perform private.require_scopes_to_read(new.types);
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if new.status = 'enabled' then
    new.disabled_reason := null;
  end if;
  return new;
end
$$;

create or replace trigger webhook_endpoints_050_fixed before update of organisation_id on public.webhook_endpoints
  for each row execute function private.tg__refuse_change('organisation_id');

create or replace trigger webhook_endpoints_100_guard before insert or update on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__guard();

create or replace trigger webhook_endpoints_900_updated_at before update on public.webhook_endpoints
  for each row execute function private.tg__set_updated_at();

create or replace trigger webhook_endpoints_900_version before update on public.webhook_endpoints
  for each row execute function private.tg__count_version();

-- 256 bits, drawn through sha256 from two random UUIDs, in the form that libraries for Standard Webhooks take.
create or replace function private.add_webhook_secret(webhook_endpoint_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.webhook_secrets (webhook_endpoint_id, secret)
  values (
    add_webhook_secret.webhook_endpoint_id,
    'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
  );
end
$$;

-- Security definer: secrets are nobody's to write.
create or replace function private.tg_webhook_endpoints__add_secret() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.add_webhook_secret(new.id);
  return null;
end
$$;

create or replace trigger webhook_endpoints_500_add_secret after insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__add_secret();

revoke all on public.webhook_endpoints from anon, authenticated, service_role;

alter table public.webhook_endpoints enable row level security;

create policy webhook_endpoints_select_own on public.webhook_endpoints for select to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_insert_own on public.webhook_endpoints for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_update_own on public.webhook_endpoints for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_delete_own on public.webhook_endpoints for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_select_membership on public.webhook_endpoints for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

create policy webhook_endpoints_insert_membership on public.webhook_endpoints for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));

create policy webhook_endpoints_update_membership on public.webhook_endpoints for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

create policy webhook_endpoints_delete_membership on public.webhook_endpoints for delete to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select, delete on public.webhook_endpoints to scope_events_write, authenticated;

grant insert (organisation_id, url, description, types) on public.webhook_endpoints to scope_events_write, authenticated;

grant update (url, description, types, status) on public.webhook_endpoints to scope_events_write, authenticated;

create or replace function private.webhook_endpoint_json(webhook_endpoint public.webhook_endpoints, secret text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_endpoint',
    'id', webhook_endpoint.id,
    'url', webhook_endpoint.url,
    'description', webhook_endpoint.description,
    'types', webhook_endpoint.types,
    'status', webhook_endpoint.status,
    'disabled_reason', webhook_endpoint.disabled_reason,
    'secret', secret,
    'version', webhook_endpoint.version,
    'created_at', private.rfc3339(webhook_endpoint.created_at),
    'updated_at', private.rfc3339(webhook_endpoint.updated_at)
  );
end
$$;

grant execute on function private.webhook_endpoint_json(public.webhook_endpoints, text) to scope_events_write;

-- The secret that signs, if it was made in this very transaction: at creation and rotation, and never again.
-- Security definer: secrets are nobody's to read.
create or replace function private.new_webhook_secret(webhook_endpoint_id uuid) returns text
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

grant execute on function private.new_webhook_secret(uuid) to scope_events_write;

create or replace function api.list_webhook_endpoints(cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.webhook_endpoint_json(p) order by p.id desc) into v_items
  from (
    select w.*
    from public.webhook_endpoints w
    where v_before is null or w.id < v_before
    order by w.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_webhook_endpoints(text, integer) is
  'Webhook endpoints of the organisation, newest first: { data, has_more, next_cursor }.';

grant execute on function api.list_webhook_endpoints(text, integer) to scope_events_write;

create or replace function api.get_webhook_endpoint(webhook_endpoint_id uuid) returns json
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

comment on function api.get_webhook_endpoint(uuid) is 'One webhook endpoint, without its secret. 404 not_found.';

grant execute on function api.get_webhook_endpoint(uuid) to scope_events_write;

create or replace function api.create_webhook_endpoint(
  url text,
  types public.notification_type[],
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

  insert into public.webhook_endpoints (organisation_id, url, types, description)
  values (
    private.current_organisation_id(), create_webhook_endpoint.url, create_webhook_endpoint.types,
    create_webhook_endpoint.description
  )
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object(
      'status', 201,
      'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
    )
  );
end
$$;

comment on function api.create_webhook_endpoint(text, public.notification_type[], text, text, text) is
  'Adds a webhook endpoint: 201 with it and its secret, which is not shown again. 403 missing_scope; 422 validation_failed.';

grant execute on function api.create_webhook_endpoint(text, public.notification_type[], text, text, text) to scope_events_write;

create or replace function api.update_webhook_endpoint(
  webhook_endpoint_id uuid,
  changes jsonb,
  if_version integer default null,
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
  perform private.require_version(v_webhook_endpoint.version, if_version);

  v_new := jsonb_populate_record(v_webhook_endpoint, changes);
  update public.webhook_endpoints w set
    url = v_new.url,
    description = v_new.description,
    types = v_new.types,
    status = v_new.status
  where w.id = v_webhook_endpoint.id
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_endpoint_json(v_webhook_endpoint))
  );
end
$$;

comment on function api.update_webhook_endpoint(uuid, jsonb, integer, text, text) is
  'Changes fields of a webhook endpoint (status enabled or disabled): 200. 403 missing_scope; 404 not_found; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_webhook_endpoint(uuid, jsonb, integer, text, text) to scope_events_write;

create or replace function api.delete_webhook_endpoint(
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

comment on function api.delete_webhook_endpoint(uuid, text, text) is
  'Forgets a webhook endpoint with its secrets and deliveries: 200. 404 not_found.';

grant execute on function api.delete_webhook_endpoint(uuid, text, text) to scope_events_write;

-- The secret that signs goes on signing beside its successor for so many hours; any before it stops now.
-- Security definer: secrets are nobody's to write.
create or replace function private.replace_webhook_secret(webhook_endpoint_id uuid, overlap_hours integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.refuse_foreign(w.organisation_id, 'webhook_endpoint_id')
  from public.webhook_endpoints w
  where w.id = replace_webhook_secret.webhook_endpoint_id;
  delete from private.webhook_secrets s
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id and s.expires_at is not null;
  update private.webhook_secrets s set expires_at = now() + make_interval(hours => overlap_hours)
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id;
  perform private.add_webhook_secret(webhook_endpoint_id);
end
$$;

grant execute on function private.replace_webhook_secret(uuid, integer) to scope_events_write;

create or replace function api.rotate_webhook_secret(
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
  perform private.require_scopes_to_read(v_webhook_endpoint.types);
  perform private.replace_webhook_secret(v_webhook_endpoint.id, least(greatest(coalesce(overlap_hours, 24), 0), 168));

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object(
      'status', 200,
      'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
    )
  );
end
$$;

comment on function api.rotate_webhook_secret(uuid, integer, text, text) is
  'Gives a webhook endpoint a new secret; the one before it signs beside it for overlap_hours (24): 200 with the new one, which is not shown again. 403 missing_scope; 404 not_found.';

grant execute on function api.rotate_webhook_secret(uuid, integer, text, text) to scope_events_write;

-- The outbox. What happens is written down in the transaction in which it happens, once as a notification, and once as a
-- delivery for each webhook endpoint that wants to hear of it. Nothing is sent from here: the courier does that.

create table public.notifications (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  type public.notification_type not null,
  data json not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  created_at timestamptz not null default now(),
  constraint notifications_pkey primary key (id),
  constraint notifications_id_organisation_id_key unique (id, organisation_id),
  constraint notifications_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);

comment on table public.notifications is 'What happened, oldest first: the outbox, readable as a log. Written by Usher alone.';

comment on column public.notifications.data is 'The object as the API answered it at the end of that transaction; of an order without ticket codes.';

comment on column public.notifications.transaction_id is
  'Ids are given before a transaction ends and may become visible out of order; whoever reads on from the last they saw must miss none. So the log is in the order of transactions, and shows those before which none is open.';

create index notifications_organisation_id_transaction_id_id_idx on public.notifications (organisation_id, transaction_id, id);

create type public.webhook_delivery_status as enum ('pending', 'delivered', 'failed', 'cancelled');

create table public.webhook_deliveries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  webhook_endpoint_id uuid not null,
  notification_id uuid not null,
  type public.notification_type not null,
  status public.webhook_delivery_status not null default 'pending',
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  last_attempt_at timestamptz,
  last_response_status integer,
  last_response_body text,
  last_response_milliseconds integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_deliveries_pkey primary key (id),
  constraint webhook_deliveries_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id, organisation_id)
    references public.webhook_endpoints (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_notification_id_fkey foreign key (notification_id, organisation_id)
    references public.notifications (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_attempts_are_not_negative check (attempts >= 0),
  constraint webhook_deliveries_pending_have_a_next_attempt check ((status = 'pending') = (next_attempt_at is not null)),
  constraint webhook_deliveries_last_response_body_is_an_excerpt check (length(last_response_body) <= 1024)
);

comment on table public.webhook_deliveries is 'One notification for one webhook endpoint, and how sending it went.';

comment on column public.webhook_deliveries.last_response_body is 'The first 1024 characters of what the endpoint answered.';

create index webhook_deliveries_webhook_endpoint_id_idx on public.webhook_deliveries (webhook_endpoint_id, id desc);

create index webhook_deliveries_notification_id_idx on public.webhook_deliveries (notification_id);

create index webhook_deliveries_organisation_id_id_idx on public.webhook_deliveries (organisation_id, id desc);

create index webhook_deliveries_next_attempt_at_idx on public.webhook_deliveries (next_attempt_at) where status = 'pending';

create or replace trigger webhook_deliveries_900_updated_at before update on public.webhook_deliveries
  for each row execute function private.tg__set_updated_at();

-- Security definer, like all that follows: the outbox is nobody's to write.
create or replace function private.tg_notifications__owe_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  select n.organisation_id, w.id, n.id, n.type
  from new_rows n
  join public.webhook_endpoints w on w.organisation_id = n.organisation_id
  where w.status = 'enabled' and n.type = any (w.types);
  return null;
end
$$;

create or replace trigger notifications_500_owe_deliveries after insert on public.notifications
  referencing new table as new_rows
  for each statement execute function private.tg_notifications__owe_deliveries();

-- Orders tell of themselves when the transaction ends: only then are their attendees and payments all there.
create or replace function private.tg_orders__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_types public.notification_type[] := case new.status
    when 'completed' then '{order.completed}'
    when 'cancelled' then '{order.cancelled}'
    else '{}'
  end;
  v_data json;
begin
  if tg_op = 'INSERT' then
    v_types := 'order.created'::public.notification_type || v_types;
  end if;
  select o.* into v_order from public.orders o where o.id = new.id;
  if not found then
    return null;
  end if;
  v_data := private.order_json(
    v_order, private.attendees_of_order_json(v_order.id), private.order_payments_json(v_order.id)
  );
  insert into public.notifications (organisation_id, type, data)
  select v_order.organisation_id, t.type, v_data from unnest(v_types) t (type);
  return null;
end
$$;

create constraint trigger orders_600_notify_insert after insert on public.orders
  deferrable initially deferred
  for each row execute function private.tg_orders__notify();

create constraint trigger orders_600_notify_update after update on public.orders
  deferrable initially deferred
  for each row when (new.status <> old.status) execute function private.tg_orders__notify();

create or replace function private.tg_attendees__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    a.organisation_id,
    case
      when n.status = 'cancelled' and o.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(a)
  from new_rows n
  join old_rows o on o.id = n.id
  join public.attendees a on a.id = n.id
  where (n.name, n.email, n.company, n.status, n.ticket_type_id, n.ticket_code, n.external_id, n.metadata)
    is distinct from (o.name, o.email, o.company, o.status, o.ticket_type_id, o.ticket_code, o.external_id, o.metadata);
  return null;
end
$$;

create or replace trigger attendees_600_notify after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__notify();

create or replace function private.tg_check_ins__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    a.organisation_id,
    case tg_op when 'INSERT' then 'attendee.checked_in' else 'attendee.check_in_undone' end::public.notification_type,
    private.attendee_json(a)
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;

create or replace trigger check_ins_600_notify_insert after insert on public.check_ins
  for each row when (new.result = 'accepted') execute function private.tg_check_ins__notify();

create or replace trigger check_ins_600_notify_update after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify();

create or replace function private.tg_events__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- A row that is saved as it was is no news.
  if to_jsonb(new) - 'version' - 'updated_at' = to_jsonb(old) - 'version' - 'updated_at' then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new)
  );
  return null;
end
$$;

create or replace trigger events_600_notify after update on public.events
  for each row execute function private.tg_events__notify();

revoke all on public.notifications, public.webhook_deliveries from anon, authenticated, service_role;

-- A key reads of the log what it might read of the objects.
alter table public.notifications enable row level security;

create policy notifications_select_own on public.notifications for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and private.scope_to_read(type) = any ((select private.current_scopes())::public.api_scope[])
  );

create policy notifications_select_membership on public.notifications for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select on public.notifications to scope_events_write, authenticated;

alter table public.webhook_deliveries enable row level security;

create policy webhook_deliveries_select_own on public.webhook_deliveries for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and private.scope_to_read(type) = any ((select private.current_scopes())::public.api_scope[])
  );

create policy webhook_deliveries_update_own on public.webhook_deliveries for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_deliveries_select_membership on public.webhook_deliveries for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select on public.webhook_deliveries to scope_events_write, authenticated;

grant update (status, attempts, next_attempt_at) on public.webhook_deliveries to scope_events_write;

create or replace function private.webhook_delivery_json(webhook_delivery public.webhook_deliveries) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_delivery',
    'id', webhook_delivery.id,
    'webhook_endpoint_id', webhook_delivery.webhook_endpoint_id,
    'notification_id', webhook_delivery.notification_id,
    'type', webhook_delivery.type,
    'status', webhook_delivery.status,
    'attempts', webhook_delivery.attempts,
    'next_attempt_at', private.rfc3339(webhook_delivery.next_attempt_at),
    'last_attempt_at', private.rfc3339(webhook_delivery.last_attempt_at),
    'last_response', case when webhook_delivery.last_response_status is not null then json_build_object(
      'status', webhook_delivery.last_response_status,
      'body', webhook_delivery.last_response_body,
      'milliseconds', webhook_delivery.last_response_milliseconds
    ) end,
    'last_error', webhook_delivery.last_error,
    'delivered_at', private.rfc3339(webhook_delivery.delivered_at),
    'created_at', private.rfc3339(webhook_delivery.created_at),
    'updated_at', private.rfc3339(webhook_delivery.updated_at)
  );
end
$$;

grant execute on function private.webhook_delivery_json(public.webhook_deliveries) to scope_events_write;

-- Oldest first, to read on from the last one seen: `after` is the id of a notification, which is also the webhook-id of what
-- was delivered; `cursor` walks the pages as in any list.
create or replace function api.list_notifications(
  type public.notification_type default null,
  after uuid default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is no longer kept.', 'after',
        hint => 'Leave it out to start from the oldest that is kept.'
      );
    end if;
  end if;

  select array_agg(p.item order by p.transaction_id, p.id) into v_items
  from (
    select
      n.transaction_id,
      n.id,
      json_build_object(
        'object', 'notification',
        'id', n.id,
        'type', n.type,
        'created_at', private.rfc3339(n.created_at),
        'data', n.data
      ) as item
    from public.notifications n
    where (v_last_id is null or (n.transaction_id, n.id) > (v_last.transaction_id, v_last.id))
      and (list_notifications.type is null or n.type = list_notifications.type)
      and n.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    order by n.transaction_id, n.id
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_notifications(public.notification_type, uuid, text, integer) is
  'What happened, oldest first, from after the notification that is named, as far as the key may read it: { data, has_more, next_cursor }. 404 not_found.';

grant execute on function api.list_notifications(public.notification_type, uuid, text, integer) to scope_events_write;

create or replace function api.list_webhook_deliveries(
  webhook_endpoint_id uuid default null,
  notification_id uuid default null,
  type public.notification_type default null,
  status public.webhook_delivery_status default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.webhook_delivery_json(p) order by p.id desc) into v_items
  from (
    select d.*
    from public.webhook_deliveries d
    where (list_webhook_deliveries.webhook_endpoint_id is null or d.webhook_endpoint_id = list_webhook_deliveries.webhook_endpoint_id)
      and (list_webhook_deliveries.notification_id is null or d.notification_id = list_webhook_deliveries.notification_id)
      and (list_webhook_deliveries.type is null or d.type = list_webhook_deliveries.type)
      and (list_webhook_deliveries.status is null or d.status = list_webhook_deliveries.status)
      and (v_before is null or d.id < v_before)
    order by d.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_webhook_deliveries(uuid, uuid, public.notification_type, public.webhook_delivery_status, text, integer) is
  'Deliveries to webhook endpoints, newest first, by any of the filters: { data, has_more, next_cursor }.';

grant execute on function api.list_webhook_deliveries(uuid, uuid, public.notification_type, public.webhook_delivery_status, text, integer)
  to scope_events_write;

-- Nothing is sent to an endpoint that is disabled.
create or replace function private.refuse_disabled_endpoint(webhook_endpoint_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if exists (
    select from public.webhook_endpoints w
    where w.id = refuse_disabled_endpoint.webhook_endpoint_id and w.status = 'disabled'
  ) then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id', hint => 'Enable it first.'
    );
  end if;
end
$$;

grant execute on function private.refuse_disabled_endpoint(uuid) to scope_events_write;

create or replace function api.redeliver_webhook(
  webhook_delivery_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_delivery public.webhook_deliveries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select d.* into v_webhook_delivery
  from public.webhook_deliveries d
  where d.id = redeliver_webhook.webhook_delivery_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_delivery_id');
  end if;
  perform private.refuse_disabled_endpoint(v_webhook_delivery.webhook_endpoint_id);
  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id = v_webhook_delivery.id
  returning * into v_webhook_delivery;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_delivery_json(v_webhook_delivery))
  );
end
$$;

comment on function api.redeliver_webhook(uuid, text, text) is
  'Owes a delivery once more, whatever became of it, with the same webhook-id: 200. 404 not_found; 409 webhook_endpoint_disabled.';

grant execute on function api.redeliver_webhook(uuid, text, text) to scope_events_write;

-- Tells one endpoint of itself. Security definer: the outbox is nobody's to write.
create or replace function private.notify_test(webhook_endpoint_id uuid) returns public.webhook_deliveries
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
  v_notification_id uuid;
  v_webhook_delivery public.webhook_deliveries;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = notify_test.webhook_endpoint_id and w.organisation_id = private.current_organisation_id();
  insert into public.notifications (organisation_id, type, data)
  values (v_webhook_endpoint.organisation_id, 'webhook_endpoint.test', private.webhook_endpoint_json(v_webhook_endpoint))
  returning id into v_notification_id;
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  values (v_webhook_endpoint.organisation_id, v_webhook_endpoint.id, v_notification_id, 'webhook_endpoint.test')
  returning * into v_webhook_delivery;
  return v_webhook_delivery;
end
$$;

grant execute on function private.notify_test(uuid) to scope_events_write;

create or replace function api.test_webhook_endpoint(
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

  if not exists (select from public.webhook_endpoints w where w.id = test_webhook_endpoint.webhook_endpoint_id) then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.refuse_disabled_endpoint(webhook_endpoint_id);

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_delivery_json(private.notify_test(webhook_endpoint_id))
  ));
end
$$;

comment on function api.test_webhook_endpoint(uuid, text, text) is
  'Owes a webhook endpoint a notification of type webhook_endpoint.test: 201 with the delivery. 404 not_found; 409 webhook_endpoint_disabled.';

grant execute on function api.test_webhook_endpoint(uuid, text, text) to scope_events_write;
