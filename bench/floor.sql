-- The floor of bench/single-call.ts: the same rows and the same answers with no rule at all. No trigger fires but foreign keys, nothing is
-- looked up that is not written, and each function is the shortest that Postgres can run. What an operation costs above it, its rules cost.

do $$
declare
  v_table regclass;
begin
  foreach v_table in array array[
    'public.orders', 'public.attendees', 'public.ticket_types', 'public.payments', 'public.check_ins', 'public.notifications',
    'public.audit_entries'
  ]::regclass[] loop
    execute format('alter table %s disable trigger user', v_table);
  end loop;
end
$$;

create or replace function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile security definer
set search_path = '' set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_organisation_id constant uuid := current_setting('usher.checked')::uuid;
  v_order public.orders;
  v_attendee public.attendees;
  v_data json;
begin
  insert into public.orders (
    organisation_id, event_id, name, email, send_email, reference, payment_method, subtotal, status, payment_status, completed_at, currency
  )
  values (
    v_organisation_id, event_id, name, email, send_email, private.random_code(8), payment_method,
    case when payment_method is null then 0 else 10000 end,
    case when payment_method is null then 'completed' else 'pending' end::public.order_status,
    case when payment_method is null then 'not_required' else 'awaiting_payment' end::public.payment_status,
    case when payment_method is null then now() end, 'EUR'
  )
  returning * into v_order;
  insert into public.attendees (
    organisation_id, event_id, order_id, ticket_type_id, name, email, price, status, ticket_code, ticket_token, ticket_email_status, currency,
    search_text
  )
  values (
    v_organisation_id, event_id, v_order.id, ticket_type_id, name, email, v_order.subtotal,
    case when payment_method is null then 'active' else 'awaiting_payment' end::public.attendee_status,
    private.random_code(16), private.random_token(), 'not_requested', 'EUR', name || email
  )
  returning * into v_attendee;
  update public.ticket_types t set quantity_sold = t.quantity_sold + 1 where t.id = ticket_type_id;
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source)
  values (v_organisation_id, 'created', 'order', v_order.id, 'api_key', 'api');
  v_data := private.order_json(
    v_order, json_build_array(private.attendee_json(v_attendee, false, 'Type', v_order.reference))
  );
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (v_organisation_id, 'order.created', v_data, v_order.id), (v_organisation_id, 'order.completed', v_data, v_order.id);
  return json_build_object('status', 201, 'data', private.order_json(
    v_order, json_build_array(private.attendee_json(v_attendee, true, 'Type', v_order.reference))
  ));
end
$$;

create or replace function api.check_in(
  event_id uuid,
  code text default null,
  attendee_id uuid default null,
  device text default null,
  check_in_point_id uuid default null,
  direction public.check_in_direction default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile security definer
set search_path = '' set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_organisation_id constant uuid := current_setting('usher.checked')::uuid;
  v_attendee public.attendees;
  v_check_in public.check_ins;
begin
  update public.attendees a set checked_in_at = now(), updated_at = now()
  where a.organisation_id = v_organisation_id and a.ticket_code = check_in.code
  returning * into v_attendee;
  insert into public.check_ins (organisation_id, event_id, attendee_id, code, result, admission_key)
  values (v_organisation_id, event_id, v_attendee.id, code, 'accepted', event_id::text)
  returning * into v_check_in;
  insert into public.notifications (organisation_id, type, data, subject_id)
  select v_organisation_id, 'attendee.checked_in', private.arrival_json(v_check_in, a, t.name, o.reference), o.id
  from public.attendees a
  join public.ticket_types t on t.id = a.ticket_type_id
  join public.orders o on o.id = a.order_id
  where a.id = v_attendee.id;
  return json_build_object('status', 200, 'data', private.check_in_json(v_check_in));
end
$$;

create or replace function api.record_invoice_payment(
  order_id uuid,
  amount bigint,
  method public.payment_method default null,
  currency text default null,
  received_at timestamptz default null,
  external_reference text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile security definer
set search_path = '' set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_organisation_id constant uuid := current_setting('usher.checked')::uuid;
  v_order public.orders;
  v_attendee public.attendees;
  v_payment public.payments;
  v_payment_data json;
  v_attendee_data json;
  v_data json;
begin
  update public.orders o
  set amount_paid = o.amount_paid + amount, status = 'completed', payment_status = 'paid', completed_at = now(), updated_at = now(),
    version = o.version + 1
  where o.id = record_invoice_payment.order_id
  returning * into v_order;
  update public.attendees a set status = 'active', version = a.version + 1, updated_at = now()
  where a.order_id = v_order.id
  returning * into v_attendee;
  insert into public.payments (organisation_id, event_id, order_id, amount, currency, method)
  values (v_organisation_id, v_order.event_id, v_order.id, amount, 'EUR', method)
  returning * into v_payment;
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source)
  values (v_organisation_id, 'created', 'payment', v_payment.id, 'api_key', 'api');
  v_payment_data := private.payment_json(v_payment, null);
  v_attendee_data := private.attendee_json(v_attendee, false, 'Type', v_order.reference);
  v_data := private.order_json(v_order, json_build_array(v_attendee_data));
  insert into public.notifications (organisation_id, type, data, subject_id)
  values
    (v_organisation_id, 'attendee.updated', v_attendee_data, v_order.id),
    (v_organisation_id, 'payment.recorded', v_payment_data, v_order.id),
    (v_organisation_id, 'order.completed', v_data, v_order.id);
  return json_build_object('status', 201, 'data', v_data);
end
$$;

create or replace function api.import_attendees(
  event_id uuid,
  attendees jsonb,
  ticket_type_id uuid default null,
  send_email boolean default null,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile security definer
set search_path = '' set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_organisation_id constant uuid := current_setting('usher.checked')::uuid;
  v_results json;
begin
  with guests as materialized (
    select private.uuid_v7() as order_id, g ->> 'name' as name, g ->> 'email' as email, g ->> 'external_id' as external_id
    from jsonb_array_elements(attendees) g
  ), new_orders as (
    insert into public.orders (
      id, organisation_id, event_id, name, email, send_email, reference, status, payment_status, completed_at, currency
    )
    select
      g.order_id, v_organisation_id, import_attendees.event_id, g.name, g.email, false, private.random_code(8), 'completed', 'not_required', now(),
      'EUR'
    from guests g
    returning *
  ), new_attendees as (
    insert into public.attendees (
      organisation_id, event_id, order_id, ticket_type_id, name, email, external_id, status, ticket_code, ticket_token, ticket_email_status,
      currency, search_text
    )
    select
      v_organisation_id, import_attendees.event_id, g.order_id, import_attendees.ticket_type_id, g.name, g.email, g.external_id, 'active',
      private.random_code(16), private.random_token(), 'not_requested', 'EUR', g.name || g.email
    from guests g
    returning *
  ), data as materialized (
    select
      a.id, a.external_id, o.id as order_id,
      private.order_json(o, json_build_array(private.attendee_json(a, false, 'Type', o.reference))) as data
    from new_attendees a
    join new_orders o on o.id = a.order_id
  ), entries as (
    insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source)
    select v_organisation_id, 'created', 'order', d.order_id, 'api_key', 'api' from data d
  ), news as (
    insert into public.notifications (organisation_id, type, data, subject_id)
    select v_organisation_id, t, d.data, d.order_id
    from data d cross join unnest('{order.created,order.completed}'::public.notification_type[]) t
  )
  select json_agg(json_build_object(
    'external_id', d.external_id, 'result', 'created', 'attendee_id', d.id, 'order_id', d.order_id, 'status', 'active', 'error', null
  )) into v_results
  from data d;
  update public.ticket_types t set quantity_sold = t.quantity_sold + jsonb_array_length(attendees) where t.id = ticket_type_id;
  return json_build_object('status', 200, 'data', json_build_object('results', v_results));
end
$$;
