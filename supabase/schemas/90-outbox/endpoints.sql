-- Webhook endpoints: URLs that are notified of the types they subscribe to. Webhooks are signed with a secret per endpoint
-- (https://www.standardwebhooks.com), which is shown at creation and rotation and never again.

-- The first part of a type names the object in its data, which has the JSON shape of the API. No notification has the type *: endpoints
-- subscribe to every type by it.
create type public.notification_type as enum (
  '*',
  'order.created',
  'order.updated',
  'order.completed',
  'order.cancelled',
  'order.expired',
  'order.reopened',
  'attendee.created',
  'attendee.checked_in',
  'attendee.checked_out',
  'attendee.check_in_undone',
  'attendee.updated',
  'attendee.cancelled',
  'attendee.erased',
  'event.published',
  'event.updated',
  'event.cancelled',
  'payment.recorded',
  'payment.voided',
  'refund.recorded',
  'email.bounced',
  'ticket_type.sold_out',
  'waiting_list_entry.created',
  'waiting_list_entry.offered',
  'waiting_list_entry.accepted',
  'waiting_list_entry.expired',
  'waiting_list_entry.cancelled',
  'webhook_endpoint.test'
);
create type public.webhook_endpoint_status as enum ('enabled', 'disabled');

create table public.webhook_endpoints (
  url text not null,
  description text,
  status public.webhook_endpoint_status not null default 'enabled',
  types public.notification_type[] not null,
  event_ids uuid[] not null default '{}',
  disabled_reason text,
  failing_since timestamptz,
  last_failed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  constraint webhook_endpoints_pkey primary key (id),
  constraint webhook_endpoints_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint webhook_endpoints_url_is_https check (private.is_courier_url(url)),
  constraint webhook_endpoints_description_is_one_line check (
    length(btrim(description)) between 1 and 200 and description !~ '[[:cntrl:]]'
  ),
  constraint webhook_endpoints_types_are_chosen check (
    cardinality(types) > 0 and array_position(types, null) is null and 'webhook_endpoint.test' <> all (types)
    and ('*' <> all (types) or cardinality(types) = 1)
  ),
  constraint webhook_endpoints_event_ids_are_few check (cardinality(event_ids) <= 100 and array_position(event_ids, null) is null),
  constraint webhook_endpoints_disabled_reason_is_bounded check (length(disabled_reason) <= 500)
);
comment on constraint webhook_endpoints_types_are_chosen on public.webhook_endpoints is
  'A webhook endpoint needs * alone, for every type, or at least one type, without webhook_endpoint.test.';
comment on constraint webhook_endpoints_url_is_https on public.webhook_endpoints is
  'The URL of a webhook endpoint is an https address without a password. http is allowed for localhost only.';
comment on table public.webhook_endpoints is 'URLs that receive webhooks. Set status to disabled to stop sending. Delete the row to remove it with its deliveries.';
comment on column public.webhook_endpoints.url is 'A public https address. In development also this machine, by http.';
comment on column public.webhook_endpoints.description is 'Description of the receiver: one line, up to 200 characters.';
comment on column public.webhook_endpoints.status is 'enabled or disabled.';
comment on column public.webhook_endpoints.types is 'Subscribed notification types: at least one, without webhook_endpoint.test. * alone: every type, also later ones.';
comment on column public.webhook_endpoints.event_ids is 'Send only notifications of these events. Empty: all events.';
comment on column public.webhook_endpoints.disabled_reason is 'Why Usher disabled it. Empty if a person or an API key did.';
comment on column public.webhook_endpoints.failing_since is 'Since when no delivery has succeeded. Kept by the courier.';
comment on column public.webhook_endpoints.last_failed_at is 'When a delivery last failed. Kept by the courier.';

create index webhook_endpoints_organisation_id_id_idx on public.webhook_endpoints (organisation_id, id desc);

-- The current secret, and for a while after a rotation the previous one.
create table private.webhook_secrets (
  id uuid not null default private.uuid_v7(),
  webhook_endpoint_id uuid not null,
  -- 256 bits: sha256 of two random UUIDs, in the format of the libraries for Standard Webhooks.
  secret text not null default 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64'),
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint webhook_secrets_pkey primary key (id),
  constraint webhook_secrets_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade,
  constraint webhook_secrets_secret_is_standard check (secret ~ '^whsec_[A-Za-z0-9+/]{43}=$')
);
comment on table private.webhook_secrets is 'Secrets that sign webhooks. Signing needs the plain text, so it is stored as it is, in a table that no role may read.';

create index webhook_secrets_webhook_endpoint_id_idx on private.webhook_secrets (webhook_endpoint_id);
alter table private.webhook_secrets enable row level security;

-- The types that an endpoint is sent, with later ones where it subscribes to all. A test is for one endpoint, and has its delivery already.
create function private.subscribed_types(types public.notification_type[]) returns public.notification_type[]
language plpgsql stable set search_path = ''
as $$
begin
  return case when '*' = any (types) then array_remove(enum_range(null::public.notification_type), 'webhook_endpoint.test') else types end;
end
$$;
grant execute on function private.subscribed_types to scope_events_write, authenticated;

-- The scope that a key needs to subscribe to a type: the one that reads its object.
create function private.scope_to_read(type public.notification_type) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return case split_part(type::text, '.', 1)
    when 'order' then 'orders:read'
    when 'payment' then 'orders:read'
    when 'refund' then 'orders:read'
    when 'attendee' then 'attendees:read'
    when 'email' then 'attendees:read'
    when 'waiting_list_entry' then 'attendees:read'
    when 'event' then 'events:read'
    when 'ticket_type' then 'events:read'
    else 'events:write'
  end::public.api_scope;
end
$$;
grant execute on function private.scope_to_read to scope_events_write;

-- An API key may subscribe only to what it may read. The same holds when it changes the URL.
create function private.assert_scopes_to_read(types public.notification_type[]) returns void
language plpgsql stable set search_path = ''
as $$
declare
  v_missing public.api_scope;
begin
  select private.scope_to_read(t) into v_missing
  from unnest(private.subscribed_types(types)) t
  where private.scope_to_read(t) <> all (private.current_scopes())
  limit 1;
  if found then
    perform private.refuse(
      403, 'missing_scope', 'The API key lacks a scope to read a subscribed type.', 'types',
      jsonb_build_object('scope', v_missing), 'Use a key that has the scope, or choose other types.'
    );
  end if;
end
$$;
grant execute on function private.assert_scopes_to_read to scope_events_write;

-- Whether an address leads, as it is written, to this machine, its network, or where no host can be. What a name leads to is judged when
-- something is sent there: see src/process/outbound/allowed-addresses.ts. A host whose last part is a number is an IP address, however it is written.
-- Loopback is for developing, where a stack recorded itself that is no hosted project.
create function private.is_internal_url(url text) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_host constant text := rtrim(
    translate(lower(normalize(substring(url from '^https?://(\[[^]]*\]|[^][/?#@:]*)'), nfkc)), '。', '.'), '.'
  );
  v_address inet;
begin
  if v_host ~ '(^|\.)localhost$' or v_host in ('127.0.0.1', '[::1]') then
    return not exists (
      select from private.installations i where not exists (select from unnest(i.names) n (name) where n.name like 'project:%')
    );
  elsif v_host ~ '\.local$' then
    return true;
  elsif v_host !~ '^\[|(^|\.)([0-9]+|0x[0-9a-f]*)$' then
    return false;
  elsif v_host ~ '(^|\.)0[0-9]' or v_host !~ '^([0-9]{1,3}\.){3}[0-9]{1,3}$|^\[' then
    return true;
  end if;
  v_address := btrim(v_host, '[]');
  return case family(v_address)
    when 4 then v_address <<= any ('{
      0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 168.63.129.16, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24,
      192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/3
    }'::inet[])
    else not v_address <<= '2000::/3' or v_address <<= any ('{2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20}'::inet[])
  end;
exception when invalid_text_representation then
  return true;
end
$$;
grant execute on function private.is_internal_url to scope_events_write, authenticated;

create function private.tg_webhook_endpoints__assert_few() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- The policy refuses one of another organisation, which nobody waits for.
  if not private.is_foreign(new.organisation_id) then
    -- One at a time: two concurrent inserts would not count each other.
    perform pg_advisory_xact_lock(5, hashtext(new.organisation_id::text));
    if (select count(*) from public.webhook_endpoints w where w.organisation_id = new.organisation_id) >= 50 then
      perform private.refuse(
        409, 'too_many_webhook_endpoints', 'An organisation has at most 50 webhook endpoints.',
        hint => 'Delete one, or subscribe one endpoint to more types.'
      );
    end if;
  end if;
  return new;
end
$$;
create trigger webhook_endpoints_100_few before insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__assert_few();

create function private.tg_webhook_endpoints__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- What is already pending is still sent, so the old types count, too. Disabling needs none of these scopes.
  if private.current_api_key_id() is not null and (
    tg_op = 'INSERT' or (new.url, new.types) is distinct from (old.url, old.types) or old.status = 'disabled' and new.status = 'enabled'
  ) then
    perform private.assert_scopes_to_read(new.types || old.types);
  end if;
  if (tg_op = 'INSERT' or new.url <> old.url) and private.is_internal_url(new.url) then
    perform private.refuse_value(
      'url', 'A webhook endpoint needs a public address, outside this machine and its network.',
      'Give its public https address. For development, npm start allows this machine.'
    );
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if tg_op = 'INSERT' or new.event_ids is distinct from old.event_ids then
    new.event_ids := array(select distinct e from unnest(new.event_ids) e order by e);
    if cardinality(new.event_ids) > 100 then
      perform private.refuse_value('event_ids', 'An endpoint names at most 100 events.', 'Leave event_ids empty for all events.');
    elsif exists (
      -- One of a draft that was deleted since may stay.
      select from unnest(new.event_ids) i (id)
      where i.id <> all (coalesce(old.event_ids, '{}'))
        and not exists (select from public.events e where e.id = i.id and e.organisation_id = new.organisation_id)
    ) then
      perform private.refuse_not_found('event_ids');
    end if;
  end if;
  if new.status = 'enabled' then
    new.disabled_reason := null;
    -- Once enabled again or given a new URL, an endpoint has five days again before it is disabled.
    if old.status = 'disabled' or new.url <> old.url then
      new.failing_since := null;
    end if;
  end if;
  return new;
end
$$;
create trigger webhook_endpoints_100_guard before insert or update on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__guard();
select private.keep_table('public.webhook_endpoints',
  filled => '{organisation_id}', fixed => '{organisation_id}', versioned => true, uncounted => '{disabled_reason,failing_since,last_failed_at}', of_event => false);

-- Security definer: no role may write secrets.
create function private.tg_webhook_endpoints__add_secret() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.webhook_secrets (webhook_endpoint_id) values (new.id);
  return null;
end
$$;
create trigger webhook_endpoints_500_add_secret after insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__add_secret();

create policy webhook_endpoints_select_own on public.webhook_endpoints for select to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_insert_own on public.webhook_endpoints for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_update_own on public.webhook_endpoints for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_delete_own on public.webhook_endpoints for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy webhook_endpoints_select_membership on public.webhook_endpoints for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy webhook_endpoints_insert_membership on public.webhook_endpoints for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy webhook_endpoints_update_membership on public.webhook_endpoints for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy webhook_endpoints_delete_membership on public.webhook_endpoints for delete to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select, delete on public.webhook_endpoints to scope_events_write, authenticated;
grant insert (organisation_id, url, description, types, event_ids) on public.webhook_endpoints to scope_events_write, authenticated;
grant update (url, description, types, event_ids, status) on public.webhook_endpoints to scope_events_write, authenticated;

create function private.webhook_endpoint_json(webhook_endpoint public.webhook_endpoints, secret text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_endpoint',
    'id', webhook_endpoint.id,
    'url', webhook_endpoint.url,
    'description', webhook_endpoint.description,
    'types', webhook_endpoint.types,
    'event_ids', webhook_endpoint.event_ids,
    'status', webhook_endpoint.status,
    'disabled_reason', webhook_endpoint.disabled_reason,
    'failing_since', private.rfc3339(webhook_endpoint.failing_since),
    'secret', secret,
    'version', webhook_endpoint.version,
    'created_at', private.rfc3339(webhook_endpoint.created_at),
    'updated_at', private.rfc3339(webhook_endpoint.updated_at)
  );
end
$$;
grant execute on function private.webhook_endpoint_json to scope_events_write;
