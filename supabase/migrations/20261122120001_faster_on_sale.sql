-- faster on sale. Written by `npm run db:migration` from supabase/schemas.
-- Nothing is released yet, so there are no tables that people wait for while it runs.
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion, adding-field-with-default
-- squawk-ignore-file adding-foreign-key-constraint, constraint-missing-not-valid

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop trigger orders_600_notify_insert on public.orders;

drop index public.attendees_event_id_idx;

drop index public.attendees_organisation_id_email_lower_idx;

drop index public.attendees_organisation_id_id_idx;

drop index public.attendees_promo_code_id_idx;

drop index public.attendees_ticket_type_id_idx;

drop index public.check_ins_event_id_idx;

drop index public.check_ins_organisation_id_id_idx;

drop index public.events_organisation_id_id_idx;

drop index public.events_organisation_id_status_id_idx;

drop index public.orders_event_id_idx;

drop index public.orders_organisation_id_email_lower_idx;

drop index public.orders_organisation_id_id_idx;

drop index public.orders_promo_code_id_idx;

drop index public.webhook_deliveries_organisation_id_id_idx;

drop index public.webhook_deliveries_webhook_endpoint_id_idx;

alter table public.attendees
  drop constraint attendees_order_id_fkey;

drop function private.tg_orders__notify_insert();

alter role authenticator set enable_seqscan to 'off';

alter table public.attendees
  add column checked_in boolean generated always as ((checked_in_at is not null)) stored not null;

create type private.registration_call as (
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text,
  attendees jsonb,
  payment_method public.payment_method,
  promo_code text,
  send_email boolean,
  external_id text,
  metadata jsonb,
  idempotency_key text,
  request_fingerprint text
);

create type private.registration as (
  order_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text,
  guests jsonb,
  payment_method public.payment_method,
  promo_code text,
  send_email boolean,
  external_id text,
  metadata jsonb
);

create or replace function api.check_in_many (
  calls jsonb
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_event_id uuid;
begin
  -- As check_in_batch does: tickets are locked in one order before the first is judged.
  for v_event_id in select distinct (c ->> 'event_id')::uuid from unnest(v_calls) c order by 1 loop
    perform private.lock_orders_of(v_event_id, array(select private.as_ticket_code(c ->> 'code') from unnest(v_calls) c));
  end loop;
  return to_json(private.answer_calls('check_in_calls', v_calls));
end
$$;

create or replace function api.list_attendees (
  event_id uuid default null::uuid,
  order_id uuid default null::uuid,
  ticket_type_id uuid default null::uuid,
  status public.attendee_status default null::public.attendee_status,
  checked_in boolean default null::boolean,
  ticket_email_status public.ticket_email_status default null::public.ticket_email_status,
  email text default null::text,
  reference text default null::text,
  external_id text default null::text,
  updated_since timestamp with time zone default null::timestamp with time zone,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_order_id uuid := order_id;
  v_chunk integer := v_size + 1;
  v_read integer := 0;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_attendee public.attendees;
  v_item json;
  v_items json[] := '{}';
begin
  if reference is not null then
    select o.id into v_order_id from public.orders o where o.reference = upper(list_attendees.reference);
  end if;
  loop
    if reference is not null and v_order_id is null then
      v_ids := '{}';
    elsif external_id is not null then
      v_ids := array(select a.id from public.attendees a where a.external_id = list_attendees.external_id);
    else
      -- Most pages of what was updated since a time are among the newest anyway; where they are not, little was.
      v_ids := private.find_attendees(
        v_order_id, list_attendees.event_id, list_attendees.ticket_type_id, list_attendees.status, list_attendees.checked_in,
        list_attendees.ticket_email_status, list_attendees.email,
        case when v_read > 1000 then updated_since end, v_before, v_chunk
      );
    end if;
    for v_attendee in
      select a.*
      from unnest(v_ids) i (id)
      cross join lateral (select a.* from public.attendees a where a.id = i.id offset 0) a
      where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
        and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
        and (reference is null or a.order_id = v_order_id)
        and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
        and (list_attendees.status is null or a.status = list_attendees.status)
        and (list_attendees.checked_in is null or a.checked_in = list_attendees.checked_in)
        and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
        and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
        and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
        and (updated_since is null or a.updated_at >= updated_since)
        and a.id < v_before
      order by a.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.attendee_json(v_attendee);
      v_items := v_items || v_item;
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1
      or v_order_id is not null or external_id is not null or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
    v_read := v_read + v_chunk;
    v_chunk := 1000;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_check_ins (
  event_id uuid default null::uuid,
  attendee_id uuid default null::uuid,
  result public.check_in_result default null::public.check_in_result,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_ids uuid[] := private.find_check_ins(
    list_check_ins.attendee_id, list_check_ins.event_id, list_check_ins.result, v_before, v_size + 1
  );
  v_bytes integer := private.page_bytes();
  v_check_in public.check_ins;
  v_item json;
  v_items json[];
begin
  for v_check_in in
    select c.*
    from unnest(v_ids) i (id)
    cross join lateral (select c.* from public.check_ins c where c.id = i.id offset 0) c
    where (list_check_ins.event_id is null or c.event_id = list_check_ins.event_id)
      and (list_check_ins.result is null or c.result = list_check_ins.result)
      and c.id < v_before
    order by c.id desc
    limit v_size + 1
  loop
    v_item := private.check_in_json(v_check_in);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_events (
  status public.event_status default null::public.event_status,
  external_id text default null::text,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_event public.events;
  v_item json;
  v_items json[];
begin
  if external_id is not null then
    v_ids := array(select e.id from public.events e where e.external_id = list_events.external_id);
  else
    v_ids := private.find_events(list_events.status, v_before, v_size + 1);
  end if;
  for v_event in
    select e.*
    from unnest(v_ids) i (id)
    cross join lateral (select e.* from public.events e where e.id = i.id offset 0) e
    where (list_events.status is null or e.status = list_events.status) and e.id < v_before
    order by e.id desc
  loop
    v_item := private.event_json(v_event);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_notifications (
  type public.notification_type default null::public.notification_type,
  after uuid default null::uuid,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_notification public.notifications;
  v_item json;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is no longer kept.',
        case when cursor is null then 'after' else 'cursor' end,
        hint => 'Leave it out to start from the oldest that is kept.'
      );
    end if;
  end if;

  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_notifications.type);
  end if;
  v_ids := private.find_notifications(
    v_types, coalesce(v_last.transaction_id, '0'), coalesce(v_last.id, '00000000-0000-0000-0000-000000000000'), v_size + 1
  );
  for v_notification in
    select n.*
    from unnest(v_ids) i (id)
    cross join lateral (select n.* from public.notifications n where n.id = i.id offset 0) n
    order by n.transaction_id, n.id
  loop
    v_item := json_build_object(
      'object', 'notification',
      'id', v_notification.id,
      'type', v_notification.type,
      'created_at', private.rfc3339(v_notification.created_at),
      'data', v_notification.data
    );
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_orders (
  event_id uuid default null::uuid,
  status public.order_status default null::public.order_status,
  payment_status public.payment_status default null::public.payment_status,
  email text default null::text,
  reference text default null::text,
  external_id text default null::text,
  updated_since timestamp with time zone default null::timestamp with time zone,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_chunk integer := v_size + 1;
  v_read integer := 0;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_order public.orders;
  v_item json;
  v_items json[] := '{}';
begin
  loop
    if reference is not null then
      v_ids := array(select o.id from public.orders o where o.reference = upper(list_orders.reference));
    elsif external_id is not null then
      v_ids := array(select o.id from public.orders o where o.external_id = list_orders.external_id);
    else
      -- Most pages of what was updated since a time are among the newest anyway; where they are not, little was.
      v_ids := private.find_orders(
        list_orders.event_id, list_orders.status, list_orders.payment_status, list_orders.email,
        case when v_read > 1000 then updated_since end, v_before, v_chunk
      );
    end if;
    for v_order in
      select o.*
      from unnest(v_ids) i (id)
      cross join lateral (select o.* from public.orders o where o.id = i.id offset 0) o
      where (list_orders.event_id is null or o.event_id = list_orders.event_id)
        and (list_orders.status is null or o.status = list_orders.status)
        and (list_orders.payment_status is null or o.payment_status = list_orders.payment_status)
        and (list_orders.email is null or o.email_lower = lower(list_orders.email))
        and (list_orders.external_id is null or o.external_id = list_orders.external_id)
        and (updated_since is null or o.updated_at >= updated_since)
        and o.id < v_before
      order by o.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.order_with_all(v_order);
      v_items := v_items || v_item;
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1
      or reference is not null or external_id is not null or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
    v_read := v_read + v_chunk;
    v_chunk := 1000;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_promo_codes (
  event_id uuid,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_promo_code public.promo_codes;
  v_item json;
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_promo_codes.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  for v_promo_code in
    select c.*
    from public.promo_codes c
    where c.event_id = list_promo_codes.event_id and c.id < v_before
    order by c.id desc
    limit v_size + 1
  loop
    v_item := private.promo_code_json(v_promo_code);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_webhook_deliveries (
  webhook_endpoint_id uuid default null::uuid,
  notification_id uuid default null::uuid,
  type public.notification_type default null::public.notification_type,
  status public.webhook_delivery_status default null::public.webhook_delivery_status,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_webhook_delivery public.webhook_deliveries;
  v_item json;
  v_items json[];
begin
  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_webhook_deliveries.type);
  end if;
  v_ids := private.find_webhook_deliveries(
    list_webhook_deliveries.notification_id, list_webhook_deliveries.webhook_endpoint_id, v_types, list_webhook_deliveries.status,
    v_before, v_size + 1
  );
  for v_webhook_delivery in
    select d.*
    from unnest(v_ids) i (id)
    cross join lateral (select d.* from public.webhook_deliveries d where d.id = i.id offset 0) d
    where (list_webhook_deliveries.webhook_endpoint_id is null or d.webhook_endpoint_id = list_webhook_deliveries.webhook_endpoint_id)
      and (list_webhook_deliveries.type is null or d.type = list_webhook_deliveries.type)
      and (list_webhook_deliveries.status is null or d.status = list_webhook_deliveries.status)
      and d.id < v_before
    order by d.id desc
    limit v_size + 1
  loop
    v_item := private.webhook_delivery_json(v_webhook_delivery);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_webhook_endpoints (
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_bytes integer := private.page_bytes();
  v_webhook_endpoint public.webhook_endpoints;
  v_item json;
  v_items json[];
begin
  for v_webhook_endpoint in
    select w.*
    from public.webhook_endpoints w
    where w.id < v_before
    order by w.id desc
    limit v_size + 1
  loop
    v_item := private.webhook_endpoint_json(v_webhook_endpoint);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.register_attendee (
  event_id uuid,
  ticket_type_id uuid default null::uuid,
  name text default null::text,
  email text default null::text,
  company text default null::text,
  attendees jsonb default null::jsonb,
  payment_method public.payment_method default null::public.payment_method,
  promo_code text default null::text,
  send_email boolean default null::boolean,
  external_id text default null::text,
  metadata jsonb default null::jsonb,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_organisation_id uuid;
  v_foreign record;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group has 1 to 50 attendees.', 'attendees');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  select g.place - 1 as index, g.guest ? 'ticket_type_id' as names_its_own into v_foreign
  from jsonb_array_elements(v_guests) with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce((g.guest ->> 'ticket_type_id')::uuid, register_attendee.ticket_type_id)
      and t.event_id = register_attendee.event_id
  )
  order by g.place
  limit 1;
  if found then
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  if external_id is not null or attendees is not null then
    perform private.lock_external_ids(v_organisation_id, external_id, v_guests);
  end if;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 201, 'data', (private.add_registrations(array[row(
      private.uuid_v7(), event_id, ticket_type_id, name, email, company, v_guests, payment_method, promo_code, send_email, external_id,
      metadata
    )::private.registration]))[1])
  );
end
$$;

create or replace function api.register_attendees (
  calls jsonb
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_key integer;
begin
  for v_key in
    select distinct hashtext(concat_ws(' ', private.current_organisation_id(), i.kind, i.external_id))
    from unnest(v_calls) c
    cross join lateral (
      select 'order' as kind, c ->> 'external_id' as external_id where c ? 'attendees'
      union all
      select 'attendee', g ->> 'external_id' from jsonb_array_elements(coalesce(c -> 'attendees', jsonb_build_array(c))) g
    ) i
    where i.external_id is not null
    order by 1
  loop
    perform pg_advisory_xact_lock(6, v_key);
  end loop;
  return to_json(private.answer_calls('register_attendee_calls', v_calls));
end
$$;

create or replace function api.settle_webhook (
  webhook_delivery_id uuid,
  claim uuid,
  response_status integer default null::integer,
  response_body text default null::text,
  milliseconds integer default null::integer,
  error text default null::text,
  retry_after_seconds integer default null::integer,
  url text default null::text
)
  returns boolean
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  return json_array_length(api.settle_webhooks(json_build_array(json_build_object(
    'id', webhook_delivery_id,
    'claim', claim,
    'url', url,
    'milliseconds', milliseconds,
    'response_status', response_status,
    'response_body', response_body,
    'retry_after_seconds', retry_after_seconds,
    'error', error
  ))) -> 'disabled') > 0;
end
$$;

create or replace function api.settle_webhooks (
  results json
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set plan_cache_mode to 'force_generic_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_hashjoin to 'off'
  set enable_mergejoin to 'off'
  as $$
declare
  -- Ten attempts within about three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'id')::uuid from json_array_elements(results) r);
  v_endpoint_ids uuid[];
  v_organisation_ids uuid[];
  v_settled_ids uuid[];
  v_troubled_ids uuid[];
  v_result record;
  v_endpoint public.webhook_endpoints;
  v_failing_since timestamptz;
  v_reason text;
  v_disabled_ids uuid[] := '{}';
begin
  -- Endpoints are locked before their deliveries, as everywhere.
  v_endpoint_ids := array(select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = any (v_ids));
  v_endpoint_ids := array(
    select w.id from public.webhook_endpoints w where w.id = any (v_endpoint_ids) order by w.id for no key update
  );

  with settled as (
    update public.webhook_deliveries d
    set claim = null,
      claimed_until = null,
      attempts = case when r.url_changed and not r.delivered then 0 else d.attempts end,
      last_response_status = r.response_status,
      last_response_body = left(r.response_body, 1024),
      last_response_milliseconds = r.milliseconds,
      last_error = r.error,
      delivered_at = case when r.delivered then now() else d.delivered_at end,
      status = case
        when r.delivered then 'delivered'
        when r.url_changed then 'pending'
        when r.response_status = 410 or d.attempts > cardinality(v_pauses) then 'failed'
        else 'pending'
      end::public.webhook_delivery_status,
      next_attempt_at = case
        when r.url_changed then now()
        else greatest(
          now() + private.retry_delay(d.attempts, v_pauses),
          now() + make_interval(secs => least(coalesce(r.retry_after_seconds, 0), 86400))
        )
      end
    from (
      select
        g.*,
        coalesce(g.response_status between 200 and 299, false) as delivered,
        coalesce(w.url <> g.url, false) as url_changed,
        w.failing_since
      from json_to_recordset(results) g (
        id uuid, claim uuid, url text, response_status integer, response_body text, milliseconds integer, error text,
        retry_after_seconds integer
      )
      cross join lateral (
        select w.url, w.failing_since
        from public.webhook_endpoints w
        where w.id = (select o.webhook_endpoint_id from public.webhook_deliveries o where o.id = g.id)
      ) w
    ) r
    -- By the ids, and an expression, so that the planner does not scan the index of everything pending.
    where d.id = any (v_ids) and d.id = r.id and d.claim = r.claim and coalesce(d.status = 'pending', false)
    returning d.id, d.webhook_endpoint_id, r.url_changed, r.delivered, r.failing_since
  )
  select
    array_agg(s.id) filter (where not s.url_changed),
    array_agg(s.webhook_endpoint_id) filter (where not s.url_changed and (not s.delivered or s.failing_since is not null))
  into v_settled_ids, v_troubled_ids
  from settled s;

  for v_result in
    select g.id, d.webhook_endpoint_id, g.response_status, coalesce(g.response_status between 200 and 299, false) as delivered
    from rows from (json_to_recordset(results) as (id uuid, response_status integer)) with ordinality g (id, response_status, place)
    join public.webhook_deliveries d on d.id = g.id
    where d.id = any (v_ids) and g.id = any (v_settled_ids) and coalesce(d.webhook_endpoint_id = any (v_troubled_ids), false)
    order by g.place
  loop
    select w.* into v_endpoint from public.webhook_endpoints w where w.id = v_result.webhook_endpoint_id;
    if v_result.delivered then
      update public.webhook_endpoints w set failing_since = null where w.id = v_endpoint.id and w.failing_since is not null;
      continue;
    end if;
    -- A failure 30 hours after the previous one starts a new series: a retry comes sooner, so nothing was sent meanwhile.
    v_failing_since := case
      when v_endpoint.last_failed_at > now() - interval '30 hours' then coalesce(v_endpoint.failing_since, now()) else now()
    end;
    v_reason := case
      when v_endpoint.status = 'disabled' then null
      when v_result.response_status = 410 then 'It answered 410 Gone.'
      when v_failing_since < now() - interval '5 days' then 'No delivery succeeded for five days.'
    end;
    if v_reason is null then
      update public.webhook_endpoints w set failing_since = v_failing_since, last_failed_at = now() where w.id = v_endpoint.id;
    else
      update public.webhook_endpoints w
      set failing_since = v_failing_since, last_failed_at = now(), status = 'disabled', disabled_reason = v_reason
      where w.id = v_endpoint.id;
      v_disabled_ids := v_disabled_ids || v_result.id;
    end if;
  end loop;

  -- Whether the places that are free now may have something to take: of their organisations, and of all that are failing.
  v_organisation_ids := array(select w.organisation_id from public.webhook_endpoints w where w.id = any (v_endpoint_ids));
  return json_build_object(
    'disabled', v_disabled_ids,
    'more', exists (
      select from public.webhook_endpoints w
      where w.organisation_id = any (v_organisation_ids) and w.status = 'enabled' and private.has_due_webhooks(w.id)
    ) or (v_troubled_ids is not null and exists (
      select from public.webhook_endpoints w
      where w.failing_since is not null and w.status = 'enabled' and private.has_due_webhooks(w.id)
    ))
  );
end
$$;

create or replace function private.add_registrations (
  registrations private.registration[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_orders public.orders[];
  v_attendees public.attendees[];
begin
  with added as (
    insert into public.orders (id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata)
    select
      r.order_id,
      r.event_id,
      coalesce(r.name, r.guests #>> '{0,name}'),
      coalesce(r.email, r.guests #>> '{0,email}'),
      case when coalesce(r.name, r.email, r.company) is null then r.guests #>> '{0,company}' else r.company end,
      coalesce(r.send_email, true),
      r.payment_method,
      r.promo_code,
      r.external_id,
      coalesce(r.metadata, '{}')
    from unnest(registrations) r
    returning *
  )
  select array_agg(row(a.*)::public.orders) into v_orders from added a;

  with added as (
    insert into public.attendees (event_id, order_id, ticket_type_id, name, email, company, external_id, metadata)
    select
      r.event_id, r.order_id, coalesce(g.ticket_type_id, r.ticket_type_id), g.name, g.email, g.company, g.external_id,
      coalesce(g.metadata, '{}')
    from unnest(registrations) r
    cross join lateral jsonb_to_recordset(r.guests) g (
      ticket_type_id uuid, name text, email text, company text, external_id text, metadata jsonb
    )
    returning *
  )
  select array_agg(row(a.*)::public.attendees) into v_attendees from added a;

  -- The triggers of attendees have set the totals of an order that is to be paid, and with them its status and its tickets'.
  if exists (select from unnest(registrations) r where r.payment_method is not null) then
    v_orders := array(select o from public.orders o where o.id = any (array(select r.id from unnest(v_orders) r)));
    v_attendees := array(select a from public.attendees a where a.id = any (array(select r.id from unnest(v_attendees) r)));
  end if;

  return array(
    select private.order_json(row(o.*)::public.orders, a.attendees, '[]')
    from unnest(registrations) with ordinality r
    join unnest(v_orders) o on o.id = r.order_id
    join (
      select a.order_id, json_agg(private.attendee_json(row(a.*)::public.attendees) order by a.id) as attendees
      from unnest(v_attendees) a
      group by a.order_id
    ) a on a.order_id = r.order_id
    order by r.ordinality
  );
end
$$;

create or replace function private.answer_calls (
  operation text,
  calls jsonb[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_half integer := cardinality(calls) / 2;
  v_outcomes json[];
  v_message text;
  v_detail text;
  v_hint text;
begin
  begin
    set constraints all deferred;
    execute format('select private.%I($1)', operation) into v_outcomes using calls;
    -- What deferred triggers do, or refuse, is part of the attempt.
    set constraints all immediate;
    return array(select json_build_object('outcome', o.outcome) from unnest(v_outcomes) with ordinality o (outcome, place) order by o.place);
  exception
    when serialization_failure or deadlock_detected or lock_not_available then
      raise;
    when others then
      if cardinality(calls) = 1 then
        get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
        -- refuse_taken leaves out the id of an object of the same transaction, which here may be that of another call.
        if sqlstate not like 'PT%' or v_detail::jsonb ->> 'code' = 'already_exists' and v_detail::jsonb -> 'details' is null then
          return array['{}'::json];
        end if;
        return array[json_build_object('error', json_build_object(
          'code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint
        ))];
      end if;
  end;
  return private.answer_calls(operation, calls[:v_half]) || private.answer_calls(operation, calls[v_half + 1:]);
end
$$;

create or replace function private.before_cursor (
  cursor text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return coalesce(private.decode_cursor(cursor), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
end
$$;

create or replace function private.calls_of_batch (
  calls jsonb
)
  returns jsonb[]
  language plpgsql
  set search_path to ''
  as $$
begin
  if jsonb_array_length(calls) not between 1 and 100 then
    perform private.refuse_value('calls', 'A batch has 1 to 100 calls.');
  end if;
  perform private.lock_idempotency_key(c ->> 'idempotency_key')
  from jsonb_array_elements(calls) c
  where c ? 'idempotency_key'
  order by c ->> 'idempotency_key';
  return array(select c.call from jsonb_array_elements(calls) with ordinality c (call, place) order by c.place);
end
$$;

create or replace function private.check_in_calls (
  calls jsonb[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_call record;
  v_outcomes json[];
begin
  for v_call in
    select r.*
    from unnest(calls) with ordinality c (call, place)
    cross join lateral jsonb_to_record(c.call) r (
      event_id uuid, code text, device text, idempotency_key text, request_fingerprint text
    )
    order by c.place
  loop
    v_outcomes := v_outcomes || api.check_in(
      v_call.event_id, v_call.code, v_call.device, v_call.idempotency_key, v_call.request_fingerprint
    );
  end loop;
  return v_outcomes;
end
$$;

create or replace function private.event_effect (
  event_id uuid,
  dry_run boolean
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = event_effect.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  return json_build_object(
    'dry_run', coalesce(dry_run, false),
    'orders', (
      select count(*) from public.orders o where o.event_id = v_event.id and o.status <> 'cancelled'
    ),
    'attendees', (
      select count(*)
      from public.ticket_types t
      join public.attendees a on a.ticket_type_id = t.id
      where t.event_id = v_event.id and a.status <> 'cancelled'
    )
  );
end
$$;

create or replace function private.fan_out_organisation (
  organisation_id uuid,
  "limit" integer
)
  returns integer
  language plpgsql
  security definer
  set search_path to ''
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  as $$
declare
  v_none constant uuid := '00000000-0000-0000-0000-000000000000';
  v_endpoints integer;
  v_last_change xid8;
  v_first xid8;
  v_transactions xid8[];
  v_subscriptions private.webhook_subscription[];
  v_batch_size integer;
  v_share integer;
  v_taken integer;
  v_rows integer;
  v_done integer := 0;
  v_started constant timestamptz := clock_timestamp();
begin
  if not pg_try_advisory_xact_lock_shared(8, hashtext(organisation_id::text)) then
    return 0;
  end if;
  select count(*) into v_endpoints
  from (
    select from public.webhook_endpoints w
    where w.organisation_id = fan_out_organisation.organisation_id
    for key share skip locked
  ) w;
  if v_endpoints <> (
    select count(*) from public.webhook_endpoints w where w.organisation_id = fan_out_organisation.organisation_id
  ) then
    return 0;
  end if;
  -- No endpoint changes while this transaction holds the lock.
  select coalesce(max(greatest(s.transaction_id, pg_snapshot_xmax(s.snapshot))), '0') into v_last_change
  from private.webhook_subscriptions s
  where s.organisation_id = fan_out_organisation.organisation_id;

  -- Limited by time as well, so that every call ends well within its statement timeout and keeps what it did.
  while v_done < "limit" and (v_done = 0 or clock_timestamp() < v_started + interval '300 milliseconds') loop
    select q.transaction_id into v_first
    from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
    order by q.transaction_id
    limit 1
    for update skip locked;
    exit when not found;

    v_subscriptions := private.subscriptions_at(organisation_id, v_first);
    v_batch_size := greatest(("limit" - v_done) / greatest(cardinality(v_subscriptions), 1), 1);
    v_transactions := array[v_first];
    if v_first > v_last_change then
      v_transactions := array(
        select q.transaction_id
        from private.notification_queue q
        where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id >= v_first
        order by q.transaction_id
        -- Without a subscription a row is only removed, which costs little; with one, most transactions have few notifications.
        limit case when v_subscriptions = '{}' then 10 * v_batch_size else (v_batch_size + 3) / 4 end
        for update skip locked
      );
    end if;

    if v_subscriptions = '{}' then
      delete from private.notification_queue q
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions);
      v_done := v_done + (cardinality(v_transactions) + 9) / 10;
      continue;
    end if;

    -- Each transaction has an equal share, so that a batch never reads more than it does.
    v_share := greatest(v_batch_size / cardinality(v_transactions), 1);
    -- Dated when the change happened, so that older deliveries are sent first, and a redelivery by time finds them.
    with taken as materialized (
      select n.id, n.organisation_id, n.type, n.created_at
      from private.notification_queue q
      cross join lateral (
        select n.id, n.organisation_id, n.type, n.created_at
        from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        limit v_share
      ) n
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions)
    ),
    made as (
      insert into public.webhook_deliveries (
        organisation_id, webhook_endpoint_id, notification_id, type, next_attempt_at, created_at, updated_at
      )
      select n.organisation_id, s.webhook_endpoint_id, n.id, n.type, n.created_at, n.created_at, n.created_at
      from taken n
      join unnest(v_subscriptions) s on n.type = any (s.types)
      where (s.after_id is null or n.id > s.after_id) and (s.before_id is null or n.id < s.before_id)
      on conflict (notification_id, webhook_endpoint_id) do nothing
      returning id
    )
    select (select count(*) from taken), (select count(*) from made) into v_taken, v_rows;

    -- Fewer than its share: it is finished.
    delete from private.notification_queue q
    where q.organisation_id = fan_out_organisation.organisation_id
      and q.transaction_id = any (v_transactions)
      and not exists (
        select from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        offset v_share - 1
      );
    if v_taken >= v_share then
      update private.notification_queue q
      set after_id = (
        select n.id
        from public.notifications n
        where n.organisation_id = q.organisation_id
          and n.transaction_id = q.transaction_id
          and n.id > coalesce(q.after_id, v_none)
        order by n.id
        offset v_share - 1
        limit 1
      )
      where q.organisation_id = fan_out_organisation.organisation_id and q.transaction_id = any (v_transactions);
    end if;
    v_done := v_done + greatest(v_rows, v_taken, 1);
  end loop;
  return v_done;
end
$$;

create or replace function private.find_attendees (
  order_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  status public.attendee_status,
  checked_in boolean,
  ticket_email_status public.ticket_email_status,
  email text,
  updated_since timestamp with time zone,
  before uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_email_lower text := lower(email);
  v_event_id uuid;
  v_ticket_type_ids uuid[];
  v_statuses public.attendee_status[] :=
    case when find_attendees.status is null then enum_range(null::public.attendee_status) else array[find_attendees.status] end;
  v_checked_in boolean[] := case when find_attendees.checked_in is null then '{f,t}' else array[find_attendees.checked_in] end;
  v_email_statuses public.ticket_email_status[] :=
    case when find_attendees.ticket_email_status is null then enum_range(null::public.ticket_email_status)
    else array[find_attendees.ticket_email_status] end;
begin
  if find_attendees.order_id is not null then
    return array(select a.id from public.attendees a where a.order_id = find_attendees.order_id);
  elsif v_email_lower is not null then
    return array(
      select a.id
      from public.attendees a
      where a.organisation_id = any (v_organisation_ids)
        and a.email_lower = v_email_lower
        and a.id < before
      order by a.organisation_id desc, a.id desc
      limit size
    );
  elsif updated_since is not null then
    return array(
      with changed as materialized (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids) and a.updated_at >= updated_since
        order by a.organisation_id, a.updated_at, a.id
      )
      select c.id from changed c where c.id < before order by c.id desc limit size
    );
  end if;
  if find_attendees.event_id is null and find_attendees.ticket_type_id is null then
    return array(
      select f.id
      from unnest(v_statuses) s (status)
      cross join unnest(v_checked_in) c (checked_in)
      cross join unnest(v_email_statuses) e (status)
      cross join lateral (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids)
          and a.status = s.status
          and a.checked_in = c.checked_in
          and a.ticket_email_status = e.status
          and a.id < before
        order by a.organisation_id desc, a.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  end if;
  if find_attendees.ticket_type_id is null then
    v_event_id := find_attendees.event_id;
    v_ticket_type_ids := array(select t.id from public.ticket_types t where t.event_id = v_event_id);
  else
    select t.event_id into v_event_id from public.ticket_types t where t.id = find_attendees.ticket_type_id;
    v_ticket_type_ids := array[find_attendees.ticket_type_id];
  end if;
  if v_event_id <> find_attendees.event_id
    or not exists (select from public.events e where e.id = v_event_id and e.organisation_id = any (v_organisation_ids)) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_ticket_type_ids) t (id)
    cross join unnest(v_statuses) s (status)
    cross join unnest(v_checked_in) c (checked_in)
    cross join unnest(v_email_statuses) e (status)
    cross join lateral (
      select a.id
      from public.attendees a
      where a.ticket_type_id = any (array[t.id])
        and a.status = s.status
        and a.checked_in = c.checked_in
        and a.ticket_email_status = e.status
        and a.id < before
      order by a.ticket_type_id desc, a.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.find_check_ins (
  attendee_id uuid,
  event_id uuid,
  result public.check_in_result,
  before uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_results public.check_in_result[] :=
    case when find_check_ins.result is null then enum_range(null::public.check_in_result) else array[find_check_ins.result] end;
begin
  if find_check_ins.attendee_id is not null then
    return array(select c.id from public.check_ins c where c.attendee_id = find_check_ins.attendee_id);
  elsif find_check_ins.event_id is null then
    return array(
      select f.id
      from unnest(v_results) r (result)
      cross join lateral (
        select c.id
        from public.check_ins c
        where c.organisation_id = any (v_organisation_ids)
          and c.result = r.result
          and c.id < before
        order by c.organisation_id desc, c.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.events e where e.id = find_check_ins.event_id and e.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_results) r (result)
    cross join lateral (
      select c.id
      from public.check_ins c
      where c.event_id = any (array[find_check_ins.event_id])
        and c.result = r.result
        and c.id < before
      order by c.event_id desc, c.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.find_events (
  status public.event_status,
  before uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.event_status[] :=
    case when find_events.status is null then enum_range(null::public.event_status) else array[find_events.status] end;
begin
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join lateral (
      select e.id
      from public.events e
      where e.organisation_id = any (v_organisation_ids)
        and e.status = s.status
        and e.id < before
      order by e.organisation_id desc, e.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.find_notifications (
  types public.notification_type[],
  after_transaction_id xid8,
  after_id uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_before_transaction_id xid8 := pg_snapshot_xmin(pg_current_snapshot());
begin
  return array(
    select f.id
    from unnest(types) t (type)
    cross join lateral (
      select n.transaction_id, n.id
      from public.notifications n
      where n.organisation_id = any (v_organisation_ids)
        and n.type = t.type
        and (n.transaction_id, n.id) > (after_transaction_id, after_id)
        and n.transaction_id < v_before_transaction_id
      order by n.organisation_id, n.transaction_id, n.id
      limit size
    ) f
    order by f.transaction_id, f.id
    limit size
  );
end
$$;

create or replace function private.find_orders (
  event_id uuid,
  status public.order_status,
  payment_status public.payment_status,
  email text,
  updated_since timestamp with time zone,
  before uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_email_lower text := lower(email);
  v_statuses public.order_status[] :=
    case when find_orders.status is null then enum_range(null::public.order_status) else array[find_orders.status] end;
  v_payment_statuses public.payment_status[] :=
    case when find_orders.payment_status is null then enum_range(null::public.payment_status) else array[find_orders.payment_status] end;
begin
  if v_email_lower is not null then
    return array(
      select o.id
      from public.orders o
      where o.organisation_id = any (v_organisation_ids)
        and o.email_lower = v_email_lower
        and o.id < before
      order by o.organisation_id desc, o.id desc
      limit size
    );
  elsif updated_since is not null then
    return array(
      with changed as materialized (
        select o.id
        from public.orders o
        where o.organisation_id = any (v_organisation_ids) and o.updated_at >= updated_since
        order by o.organisation_id, o.updated_at, o.id
      )
      select c.id from changed c where c.id < before order by c.id desc limit size
    );
  end if;
  if find_orders.event_id is null then
    return array(
      select f.id
      from unnest(v_statuses) s (status)
      cross join unnest(v_payment_statuses) p (status)
      cross join lateral (
        select o.id
        from public.orders o
        where o.organisation_id = any (v_organisation_ids)
          and o.status = s.status
          and o.payment_status = p.status
          and o.id < before
        order by o.organisation_id desc, o.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.events e where e.id = find_orders.event_id and e.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join unnest(v_payment_statuses) p (status)
    cross join lateral (
      select o.id
      from public.orders o
      where o.event_id = any (array[find_orders.event_id])
        and o.status = s.status
        and o.payment_status = p.status
        and o.id < before
      order by o.event_id desc, o.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.find_webhook_deliveries (
  notification_id uuid,
  webhook_endpoint_id uuid,
  types public.notification_type[],
  status public.webhook_delivery_status,
  before uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.webhook_delivery_status[] :=
    case when find_webhook_deliveries.status is null then enum_range(null::public.webhook_delivery_status)
    else array[find_webhook_deliveries.status] end;
begin
  if find_webhook_deliveries.notification_id is not null then
    return array(
      select d.id from public.webhook_deliveries d where d.notification_id = find_webhook_deliveries.notification_id
    );
  elsif find_webhook_deliveries.webhook_endpoint_id is null then
    return array(
      select f.id
      from unnest(types) t (type)
      cross join unnest(v_statuses) s (status)
      cross join lateral (
        select d.id
        from public.webhook_deliveries d
        where d.organisation_id = any (v_organisation_ids)
          and d.type = t.type
          and d.status = s.status
          and d.id < before
        order by d.organisation_id desc, d.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  elsif not exists (
    select from public.webhook_endpoints w
    where w.id = find_webhook_deliveries.webhook_endpoint_id and w.organisation_id = any (v_organisation_ids)
  ) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(types) t (type)
    cross join unnest(v_statuses) s (status)
    cross join lateral (
      select d.id
      from public.webhook_deliveries d
      where d.webhook_endpoint_id = any (array[find_webhook_deliveries.webhook_endpoint_id])
        and d.type = t.type
        and d.status = s.status
        and d.id < before
      order by d.webhook_endpoint_id desc, d.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.has_due_webhooks (
  webhook_endpoint_id uuid
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  as $$
begin
  return exists (
    select from public.webhook_deliveries d
    where d.webhook_endpoint_id = has_due_webhooks.webhook_endpoint_id
      and d.status = 'pending'
      and d.next_attempt_at <= now()
  );
end
$$;

create or replace function private.lock_idempotency_key (
  idempotency_key text
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(private.claims() ->> 'family_id' || ' ' || idempotency_key, 0));
end
$$;

create or replace function private.random_code (
  length integer
)
  returns text
  language plpgsql
  set search_path to ''
  as $$
declare
  v_bytes bytea := sha256(uuid_send(gen_random_uuid()));
  v_code text := '';
begin
  for i in 0..length - 1 loop
    v_code := v_code || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (get_byte(v_bytes, i) & 31), 1);
  end loop;
  return v_code;
end
$$;

create or replace function private.register_attendee_calls (
  calls jsonb[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_calls private.registration_call[] := array(
    select jsonb_populate_record(null::private.registration_call, c.call)
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
  v_call private.registration_call := v_calls[1];
  v_registrations private.registration[];
  v_orders json[];
begin
  if cardinality(calls) = 1 then
    return array[api.register_attendee(
      v_call.event_id, v_call.ticket_type_id, v_call.name, v_call.email, v_call.company, v_call.attendees, v_call.payment_method,
      v_call.promo_code, v_call.send_email, v_call.external_id, v_call.metadata, v_call.idempotency_key, v_call.request_fingerprint
    )];
  end if;

  -- A key that is sent twice, and an outcome to replay, are for calls that are alone.
  if (select count(c.idempotency_key) <> count(distinct c.idempotency_key) from unnest(v_calls) c) then
    raise exception 'divide';
  end if;
  foreach v_call in array v_calls loop
    if private.replay_outcome(v_call.idempotency_key, v_call.request_fingerprint) is not null then
      raise exception 'divide';
    end if;
    v_call.attendees := coalesce(v_call.attendees, jsonb_build_array(jsonb_build_object(
      'name', v_call.name, 'email', v_call.email, 'company', v_call.company, 'external_id', v_call.external_id,
      'metadata', v_call.metadata
    )));
    v_registrations := v_registrations || row(
      private.uuid_v7(), v_call.event_id, v_call.ticket_type_id, v_call.name, v_call.email, v_call.company, v_call.attendees,
      v_call.payment_method, v_call.promo_code, v_call.send_email, v_call.external_id, v_call.metadata
    )::private.registration;
  end loop;
  if exists (
    select from unnest(v_registrations) r
    cross join lateral jsonb_array_elements(r.guests) g
    where jsonb_array_length(r.guests) > 50 or not exists (
      select from public.ticket_types t
      where t.id = coalesce((g ->> 'ticket_type_id')::uuid, r.ticket_type_id) and t.event_id = r.event_id
    )
  ) then
    raise exception 'divide';
  end if;

  v_orders := private.add_registrations(v_registrations);
  return array(
    select private.record_outcome(
      c.idempotency_key, c.request_fingerprint, json_build_object('status', 201, 'data', v_orders[c.ordinality])
    )
    from unnest(v_calls) with ordinality c
    order by c.ordinality
  );
end
$$;

create or replace function private.replay_outcome (
  idempotency_key text,
  request_fingerprint text
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_family_id uuid := (private.claims() ->> 'family_id')::uuid;
  v_record private.idempotency_records;
begin
  if idempotency_key is null or v_family_id is null then
    return null;
  end if;

  perform private.lock_idempotency_key(idempotency_key);
  select r.* into v_record
  from private.idempotency_records r
  where r.family_id = v_family_id
    and r.idempotency_key = replay_outcome.idempotency_key
    and r.expires_at > now();
  if not found then
    return null;
  end if;

  if v_record.request_fingerprint is distinct from private.fingerprint_for_role(replay_outcome.request_fingerprint) then
    perform private.refuse(
      422, 'idempotency_key_reused', 'This idempotency key was used for a different request.', 'idempotency_key',
      hint => 'Repeat the first request unchanged, or send a new key.'
    );
  end if;
  -- Built as text, so that the fields keep their order.
  return ('{"replayed": true, ' || substr(v_record.outcome::text, 2))::json;
end
$$;

create or replace function private.tg_attendees__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order public.orders;
begin
  if tg_op = 'INSERT' then
    -- The event lock before the order, as everywhere. The order is locked so that it is neither cancelled nor completed
    -- without this ticket, and so that its totals are updated by one transaction at a time.
    perform private.lock_event_shared(o.event_id) from public.orders o where o.id = new.order_id;
    select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
    perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
    end if;
    -- The fields that Usher sets: price, status, ticket code and the status of the ticket e-mail.
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency or new.event_id <> v_order.event_id or new.organisation_id <> v_order.organisation_id
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.checked_in_at, new.cancelled_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'event_id', v_order.event_id, 'organisation_id', v_order.organisation_id,
        'promo_code_id', null, 'ticket_code', null, 'checked_in_at', null, 'cancelled_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Create a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.ticket_email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is derived from the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = new.organisation_id and a.external_id = new.external_id and a.id <> new.id;
    end if;

    if new.ticket_code is null then
      -- Reissue: the new code is e-mailed to the present holder.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A used or cancelled ticket cannot be reissued.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person again.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' then 'not_requested'
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.ticket_email_status;
    elsif new.ticket_code <> old.ticket_code then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.', 'ticket_code', hint => 'Clear it to generate a new one.'
      );
    end if;

    -- Status transitions, then the status of the ticket e-mail.
    if new.status <> old.status then
      if old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
        perform private.refuse(
          409, 'invalid_transition', 'An attendee cannot go from its present status to this one.', 'status',
          jsonb_build_object('from', old.status, 'to', new.status),
          'Allowed: awaiting_payment to active or cancelled; active to cancelled.'
        );
      end if;
      if new.status = 'active' then
        select o.* into v_order from public.orders o where o.id = new.order_id for share;
        if v_order.status <> 'completed' then
          perform private.refuse(
            409, 'payment_due', 'The ticket becomes active when its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and new.status <> 'active' then
      perform private.refuse_inactive_ticket(new.status);
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.ticket_email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
  end if;

  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create or replace function private.tg_orders__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_event public.events;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid) <> (0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(new.reference, new.promo_code_id, new.completed_at, new.cancelled_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
  else
    -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'The totals are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
          hint => 'Create a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
  end if;

  -- Derived fields: completion, payment status and timestamps.
  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' and new.amount_paid = 0 then 'awaiting_payment'
    when new.status = 'pending' then 'partially_paid'
    when new.status = 'cancelled' and new.amount_paid > 0 then 'refund_due'
    when new.status = 'cancelled' then 'not_required'
    when new.amount_paid > new.subtotal - new.discount_total then 'refund_due'
    when new.amount_paid > 0 then 'paid'
    else 'not_required'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create or replace function private.tg_orders__notice()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if tg_op = 'INSERT' then
    insert into private.order_notices (types, order_ids)
    select
      case n.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(n.id order by n.id)
    from new_rows n
    group by n.status;
    return null;
  end if;
  -- Not a join of the two transition tables: see tg_attendees__add_up.
  insert into private.order_notices (types, order_ids)
  select
    array[case n.status when 'completed' then 'order.completed' else 'order.cancelled' end]::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status from new_rows n where n.status in ('completed', 'cancelled')
    except
    select o.id, o.status from old_rows o
  ) n
  group by n.status;
  return null;
end
$$;

create or replace function private.uuid_v7()
  returns uuid
  language plpgsql
  set search_path to ''
  as $$
declare
  v_microseconds bigint := date_part('epoch', clock_timestamp()) * 1000000;
begin
  return encode(
    overlay(
      uuid_send(gen_random_uuid())
      placing int8send((v_microseconds / 1000 << 16) | x'7000'::bigint | (v_microseconds % 1000 * 4096 / 1000))
      from 1 for 8
    ),
    'hex'
  )::uuid;
end
$$;

alter table public.attendees
  add constraint attendees_order_id_fkey foreign key (order_id) references public.orders(id);

create index attendees_organisation_id_email_lower_idx on public.attendees
  using btree (organisation_id, email_lower, id);

create index attendees_organisation_id_states_idx on public.attendees
  using btree (organisation_id, status, checked_in, ticket_email_status, id);

create index attendees_organisation_id_updated_at_idx on public.attendees using btree (organisation_id, updated_at, id);

create index attendees_promo_code_id_idx on public.attendees using btree (promo_code_id)
  where (promo_code_id is not null);

create index attendees_ticket_type_id_states_idx on public.attendees
  using btree (ticket_type_id, status, checked_in, ticket_email_status, id);

create index check_ins_event_id_result_idx on public.check_ins using btree (event_id, result, id);

create index check_ins_organisation_id_result_idx on public.check_ins using btree (organisation_id, result, id);

create index events_organisation_id_status_id_idx on public.events using btree (organisation_id, status, id);

create index notifications_organisation_id_type_idx on public.notifications
  using btree (organisation_id, type, transaction_id, id);

create index orders_event_id_states_idx on public.orders using btree (event_id, status, payment_status, id);

create index orders_organisation_id_email_lower_idx on public.orders using btree (organisation_id, email_lower, id);

create index orders_organisation_id_states_idx on public.orders
  using btree (organisation_id, status, payment_status, id);

create index orders_organisation_id_updated_at_idx on public.orders using btree (organisation_id, updated_at, id);

create index orders_promo_code_id_idx on public.orders using btree (promo_code_id)
  where (promo_code_id is not null);

create index promo_codes_event_id_id_idx on public.promo_codes using btree (event_id, id desc);

create index webhook_deliveries_organisation_id_type_status_idx on public.webhook_deliveries
  using btree (organisation_id, type, status, id);

create index webhook_deliveries_webhook_endpoint_id_type_status_idx on public.webhook_deliveries
  using btree (webhook_endpoint_id, type, status, id);

create trigger orders_600_notice_insert
  after insert on public.orders referencing new table as new_rows
  for each statement
  execute function private.tg_orders__notice();

comment on function api.check_in_many(jsonb) is 'Calls of check_in by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';

comment on function api.register_attendees(jsonb) is 'Calls of register_attendee by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';

comment on function api.settle_webhooks(json) is 'Records the results of sending claimed webhooks, [{ id, claim, url, milliseconds, response_status, response_body, retry_after_seconds, error }]: { disabled, more }, the deliveries whose result disabled their endpoint, and whether more may be due in their place. A result is ignored if another claim has replaced its own.';

revoke all on function api.check_in_many(jsonb) from public;

grant execute on function api.check_in_many(jsonb) to scope_checkin_write;

revoke all on function api.register_attendees(jsonb) from public;

grant execute on function api.register_attendees(jsonb) to scope_attendees_write;

revoke all on function api.settle_webhooks(json) from public;

grant execute on function api.settle_webhooks(json) to courier;

revoke all on function private.add_registrations(private.registration[]) from public;

grant execute on function private.add_registrations(private.registration[]) to scope_attendees_write;

revoke all on function private.answer_calls(text, jsonb[]) from public;

grant execute on function private.answer_calls(text, jsonb[]) to api_key;

revoke all on function private.before_cursor(text) from public;

grant execute on function private.before_cursor(text) to api_key;

revoke all on function private.calls_of_batch(jsonb) from public;

grant execute on function private.calls_of_batch(jsonb) to api_key;

revoke all on function private.check_in_calls(jsonb[]) from public;

grant execute on function private.check_in_calls(jsonb[]) to scope_checkin_write;

revoke all
  on function
    private.find_attendees(uuid, uuid, uuid, public.attendee_status, boolean, public.ticket_email_status, text,
    timestamp with time zone, uuid, integer)
  from public;

grant execute
  on function
    private.find_attendees(uuid, uuid, uuid, public.attendee_status, boolean, public.ticket_email_status, text,
    timestamp with time zone, uuid, integer)
  to scope_attendees_read;

revoke all on function private.find_check_ins(uuid, uuid, public.check_in_result, uuid, integer) from public;

grant execute
  on function private.find_check_ins(uuid, uuid, public.check_in_result, uuid, integer)
  to scope_attendees_read;

revoke all on function private.find_events(public.event_status, uuid, integer) from public;

grant execute on function private.find_events(public.event_status, uuid, integer) to scope_events_read;

revoke all on function private.find_notifications(public.notification_type[], xid8, uuid, integer) from public;

grant execute
  on function private.find_notifications(public.notification_type[], xid8, uuid, integer)
  to scope_events_write;

revoke all
  on function private.find_orders(uuid, public.order_status, public.payment_status, text, timestamp
    with time zone, uuid, integer)
  from public;

grant execute
  on function private.find_orders(uuid, public.order_status, public.payment_status, text, timestamp
    with time zone, uuid, integer)
  to scope_orders_read;

revoke all
  on function
    private.find_webhook_deliveries(uuid, uuid, public.notification_type[], public.webhook_delivery_status, uuid,
    integer)
  from public;

grant execute
  on function
    private.find_webhook_deliveries(uuid, uuid, public.notification_type[], public.webhook_delivery_status, uuid,
    integer)
  to scope_events_write;

revoke all on function private.has_due_webhooks(uuid) from public;

revoke all on function private.lock_idempotency_key(text) from public;

grant execute on function private.lock_idempotency_key(text) to api_key;

revoke all on function private.register_attendee_calls(jsonb[]) from public;

grant execute on function private.register_attendee_calls(jsonb[]) to scope_attendees_write;

revoke all (id) on table public.orders from scope_attendees_write;

grant insert (id) on table public.orders to scope_attendees_write;
