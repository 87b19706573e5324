-- calls read less. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

-- Keys first, which every request of theirs reads; then as triggers lead from one to the next, so that none of them and this wait for each
-- other. Within a block, for the command line begins no transaction by name.
do $$
begin
  lock table public.api_keys, public.events, public.orders, public.attendees, public.payments in access exclusive mode;
end
$$;

drop trigger api_keys_010_blank_is_empty on public.api_keys;

drop trigger api_keys_800_explain on public.api_keys;

drop trigger attendees_010_blank_is_empty on public.attendees;

drop trigger attendees_800_explain on public.attendees;

drop trigger check_in_points_010_blank_is_empty on public.check_in_points;

drop trigger check_in_points_800_explain on public.check_in_points;

drop trigger check_ins_010_blank_is_empty on public.check_ins;

drop trigger check_ins_800_explain on public.check_ins;

drop trigger email_opt_outs_010_blank_is_empty on public.email_opt_outs;

drop trigger email_opt_outs_800_explain on public.email_opt_outs;

drop trigger emails_010_blank_is_empty on public.emails;

drop trigger emails_800_explain on public.emails;

drop trigger events_010_blank_is_empty on public.events;

drop trigger events_800_explain on public.events;

drop trigger orders_010_blank_is_empty on public.orders;

drop trigger orders_800_explain on public.orders;

drop trigger organisation_members_010_blank_is_empty on public.organisation_members;

drop trigger organisation_members_800_explain on public.organisation_members;

drop trigger organisations_010_blank_is_empty on public.organisations;

drop trigger organisations_800_explain on public.organisations;

drop trigger payment_voids_010_blank_is_empty on public.payment_voids;

drop trigger payment_voids_800_explain on public.payment_voids;

drop trigger payments_010_blank_is_empty on public.payments;

drop trigger payments_800_explain on public.payments;

drop trigger plans_010_blank_is_empty on public.plans;

drop trigger plans_800_explain on public.plans;

drop trigger promo_codes_010_blank_is_empty on public.promo_codes;

drop trigger promo_codes_800_explain on public.promo_codes;

drop trigger refunds_010_blank_is_empty on public.refunds;

drop trigger refunds_800_explain on public.refunds;

drop trigger ticket_types_010_blank_is_empty on public.ticket_types;

drop trigger ticket_types_800_explain on public.ticket_types;

drop trigger waiting_list_entries_010_blank_is_empty on public.waiting_list_entries;

drop trigger waiting_list_entries_800_explain on public.waiting_list_entries;

drop trigger webhook_deliveries_010_blank_is_empty on public.webhook_deliveries;

drop trigger webhook_deliveries_800_explain on public.webhook_deliveries;

drop trigger webhook_endpoints_010_blank_is_empty on public.webhook_endpoints;

drop trigger webhook_endpoints_800_explain on public.webhook_endpoints;

drop function private.arrival_json(public.attendees, public.check_ins);

alter table public.notifications
  alter column subject_id drop expression;

create or replace function private.arrival_json (
  attendee public.attendees,
  check_in public.check_ins,
  ticket_type_name text default null::text,
  reference text default null::text
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- As text, for json keeps the order of its fields and cannot be appended to.
  return (left(private.attendee_json(attendee, true, ticket_type_name, reference, false)::text, -1) || ', "check_in" : ' || json_build_object(
    'id', check_in.id,
    'direction', check_in.direction,
    'check_in_point', case when check_in.check_in_point_id is not null then (
      select json_build_object('id', p.id, 'name', p.name) from public.check_in_points p where p.id = check_in.check_in_point_id
    ) end,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'device', check_in.device
  ) || '}')::json;
end
$$;

create or replace function private.audit_actor()
  returns public.audit_actor
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_claims jsonb;
begin
  if length(current_setting('usher.checked', true)) = 36 then
    return 'api_key';
  end if;
  v_claims := private.claims();
  return case
    when v_claims ? 'api_key_id' then 'api_key'
    when v_claims ->> 'role' = 'courier' then 'courier'
    when v_claims ->> 'role' = 'authenticated' then 'member'
    else 'studio'
  end::public.audit_actor;
end
$$;

create or replace function private.check_request()
  returns void
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_claims constant jsonb := coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}');
  v_role constant text := v_claims ->> 'role';
  v_headers jsonb;
  v_organisation_id uuid;
  v_scope public.api_scope;
  v_is_usable boolean;
  v_scopes public.api_scope[];
begin
  -- Whoever else calls the Data API of this project is none of Usher's business.
  if v_role is null or v_role <> 'api_key' and v_role not like 'scope\_%' then
    perform set_config('usher.checked', 'on', true);
    return;
  end if;
  -- Schema public is behind the Data API for people who sign in. A key calls functions of schema api, and nothing else.
  v_headers := current_setting('request.headers', true);
  if current_setting('request.path', true) not like '/rpc/%'
    or coalesce(v_headers ->> 'content-profile', 'api') <> 'api'
    or coalesce(v_headers ->> 'accept-profile', 'api') <> 'api' then
    perform private.refuse(403, 'forbidden', 'API keys call functions of schema api only.');
  end if;

  v_organisation_id := v_claims ->> 'organisation_id';
  select private.is_usable_key(k), k.scopes into v_is_usable, v_scopes
  from public.api_keys k
  where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = v_organisation_id;
  if v_is_usable is not true then
    perform private.refuse_key((
      select k from public.api_keys k where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = v_organisation_id
    ));
  end if;

  if v_role <> 'api_key' then
    v_scope := private.scope_of_role(v_role);
    if v_scope <> all (v_scopes) then
      perform private.refuse(
        403, 'missing_scope', 'The API key lacks the scope this operation needs.',
        details => jsonb_build_object('scope', v_scope),
        hint => 'Use a key that has the scope, or add the scope to this key.'
      );
    end if;
  end if;
  perform set_config('usher.checked', v_organisation_id::text, true);
end
$$;

create or replace function private.claims()
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if coalesce(current_setting('usher.checked', true), '') = '' then
    perform private.assert_checked();
  end if;
  return coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb;
end
$$;

create or replace function private.current_organisation_id()
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_checked constant text := current_setting('usher.checked', true);
begin
  if length(v_checked) = 36 then
    return v_checked::uuid;
  elsif coalesce(v_checked, '') = '' then
    perform private.assert_checked();
  end if;
  return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'organisation_id')::uuid;
end
$$;

create or replace function private.is_by_hand()
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if length(current_setting('usher.checked', true)) = 36 then
    return false;
  end if;
  return coalesce(nullif(current_setting('request.jwt.claims', true), '')::json ->> 'role', 'authenticated') = 'authenticated';
end
$$;

create or replace function private.is_foreign (
  organisation_id uuid
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_checked constant text := current_setting('usher.checked', true);
  v_claims jsonb;
begin
  if length(v_checked) = 36 then
    return organisation_id is distinct from v_checked::uuid;
  end if;
  v_claims := private.claims();
  if organisation_id is null or organisation_id <> (v_claims ->> 'organisation_id')::uuid then
    return true;
  end if;
  -- A statement of its own: an expression that contains a query costs every registration, even where the query is not run.
  if v_claims ->> 'role' = 'authenticated' then
    return organisation_id not in (select private.member_organisation_ids());
  end if;
  return false;
end
$$;

create or replace function private.is_typed()
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return pg_trigger_depth() = 0 and private.is_by_hand();
end
$$;

create or replace function private.lock_own_event_shared (
  event_id uuid
)
  returns public.events
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
begin
  perform private.assert_not_foreign((select e.organisation_id from public.events e where e.id = lock_own_event_shared.event_id), 'event_id');
  v_event := private.lock_event_shared(event_id);
  -- Deleted meanwhile.
  if v_event.id is null then
    perform private.refuse_not_found('event_id');
  end if;
  return v_event;
end
$$;

create or replace function private.notify_of_full_event (
  event_id uuid
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select t.organisation_id, 'ticket_type.sold_out', t.data, t.id
  from (
    select t.organisation_id, t.position, t.id, private.ticket_type_json(t) as data
    from public.ticket_types t
    where t.event_id = notify_of_full_event.event_id
      and (t.quantity is null or t.quantity_sold + t.quantity_held < t.quantity)
  ) t
  where t.data ->> 'sales_status' = 'sold_out'
  order by t.position, t.id;
end
$$;

create or replace function private.notify_test (
  webhook_endpoint_id uuid
)
  returns public.webhook_deliveries
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
  v_notification_id uuid;
  v_webhook_delivery public.webhook_deliveries;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = notify_test.webhook_endpoint_id and w.organisation_id = private.current_organisation_id();
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (v_webhook_endpoint.organisation_id, 'webhook_endpoint.test', private.webhook_endpoint_json(v_webhook_endpoint), v_webhook_endpoint.id)
  returning id into v_notification_id;
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  values (v_webhook_endpoint.organisation_id, v_webhook_endpoint.id, v_notification_id, 'webhook_endpoint.test')
  returning * into v_webhook_delivery;
  return v_webhook_delivery;
end
$$;

create or replace function private.tg_attendees__notify_bounce()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      'ticket', new.event_id, new.order_id, new.id, new.email, new.ticket_email_status, new.ticket_email_sent_at, new.ticket_email_last_error
    ),
    new.order_id
  );
  return null;
end
$$;

create or replace function private.tg_attendees__notify_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_first uuid[];
begin
  -- A scalar subquery is one look-up per row under any plan.
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
    v_first := array(
      select n.order_id
      from (select r.order_id, count(*) as attendees from new_rows r group by r.order_id) n
      where (select count(*) from public.attendees a where a.order_id = n.order_id) = n.attendees
    );
    insert into private.order_notices (types, order_ids)
    select
      -- A complimentary order is complete before it has attendees; any other one completes, and says so, after this.
      case o.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(o.id order by o.id)
    from public.orders o
    where o.id = any (v_first)
      and o.id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    group by o.status;

    insert into public.notifications (organisation_id, type, data, subject_id)
    -- The row as it is: its discount may have been set after it was added.
    select
      n.organisation_id, 'attendee.updated', (select private.attendee_json(a, with_url => false) from public.attendees a where a.id = n.id),
      n.order_id
    from new_rows n
    where n.order_id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    order by n.id;
  end if;
  return null;
end
$$;

create or replace function private.tg_attendees__notify_update()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_nestloop to 'off'
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- Every edit increments the version; a check-in, for example, is none.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    n.organisation_id,
    case
      when n.erased_at is not null and o.erased_at is null then 'attendee.erased'
      when n.status = 'cancelled' and o.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(
      row(n.*)::public.attendees,
      true,
      (select t.name from public.ticket_types t where t.id = n.ticket_type_id),
      (select o.reference from public.orders o where o.id = n.order_id),
      false
    ),
    n.order_id
  from new_rows n
  join old_rows o on o.id = n.id
  where n.version <> o.version
    -- An attendee who is as new as what announces the order is in there as they are at the end.
    and not (
      n.created_at = now()
      and n.status <> 'cancelled'
      and n.erased_at is null
      and n.order_id in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    )
  order by n.id;
  return null;
end
$$;

create or replace function private.tg_check_ins__notify_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    n.organisation_id,
    case n.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type,
    private.arrival_json(
      a.attendee,
      row(n.*)::public.check_ins,
      (select t.name from public.ticket_types t where t.id = a.ticket_type_id),
      (select o.reference from public.orders o where o.id = a.order_id)
    ),
    a.order_id
  from new_rows n
  -- One index look-up per row under any plan.
  cross join lateral (
    select a as attendee, a.ticket_type_id, a.order_id from public.attendees a where a.id = n.attendee_id offset 0
  ) a
  where n.result = 'accepted'
  order by n.id;
  return null;
end
$$;

create or replace function private.tg_check_ins__notify_undo()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select a.organisation_id, 'attendee.check_in_undone', private.arrival_json(a, new), a.order_id
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;

create or replace function private.tg_emails__notify_bounce()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      new.kind, coalesce(o.event_id, w.event_id), o.id, new.attendee_id, new.sent_to, new.status, new.sent_at, new.last_error,
      new.waiting_list_entry_id
    ),
    coalesce(o.id, new.waiting_list_entry_id)
  from (select coalesce(new.order_id, (select a.order_id from public.attendees a where a.id = new.attendee_id)) as order_id) e
  left join public.orders o on o.id = e.order_id
  left join public.waiting_list_entries w on w.id = new.waiting_list_entry_id;
  return null;
end
$$;

create or replace function private.tg_events__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- An update that changes nothing notifies of nothing.
  if new.version = old.version then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new),
    new.id
  );
  return null;
end
$$;

create or replace function private.tg_order_notices__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select o.organisation_id, t.type, o.data, n.order_id
  from unnest(new.order_ids) n (order_id)
  -- One index look-up per order, however many there are; a deleted order is skipped.
  cross join lateral (
    select
      a.organisation_id,
      private.order_json(
        a."order",
        a.attendees,
        case when a.amount_paid + a.amount_voided > 0 then private.order_payments_json(a.id) else '[]' end,
        case when a.amount_refunded > 0 then private.order_refunds_json(a.id) else '[]' end
      ) as data
    from (
      select o as "order", o.id, o.organisation_id, o.amount_paid, o.amount_voided, o.amount_refunded,
        private.attendees_of_order_json(o.id, o.reference) as attendees
      from public.orders o
      where o.id = n.order_id
      offset 0
    ) a
    where a.attendees::text <> '[]'
    offset 0
  ) o
  cross join unnest(new.types) t (type);
  delete from private.order_notices n where n.id = new.id;
  return null;
end
$$;

create or replace function private.tg_orders__audit_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_actor public.audit_actor := private.audit_actor();
  v_api_key_id uuid := private.current_api_key_id();
  v_user_id uuid;
begin
  if v_actor = 'member' then
    v_user_id := private.claims() ->> 'sub';
  end if;
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
  select n.organisation_id, 'created', 'order', n.id, v_actor, v_api_key_id, v_user_id, n.source
  from new_rows n;
  return null;
end
$$;

create or replace function private.tg_payment_voids__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select p.organisation_id, 'payment.voided', private.payment_json(p), p.order_id from public.payments p where p.id = new.payment_id;
  return null;
end
$$;

create or replace function private.tg_payments__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'payment.recorded', private.payment_json(new), new.order_id);
  return null;
end
$$;

create or replace function private.tg_refunds__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'refund.recorded', private.refund_json(new), new.order_id);
  return null;
end
$$;

create or replace function private.tg_ticket_types__notify_sold_out()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new), new.id);
  return null;
end
$$;

create or replace function private.tg_waiting_list_entries__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (
    new.organisation_id,
    ('waiting_list_entry.' || case new.status when 'waiting' then 'created' else new.status::text end)::public.notification_type,
    private.waiting_list_entry_json(new),
    new.id
  );
  if new.status = 'offered' and new.send_email then
    perform private.queue_waiting_list_emails(array[new.id]);
  end if;
  return null;
end
$$;

create or replace function private.verify_outbox (
  event_id uuid
)
  returns setof private.disagreement
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set jit to 'off'
  set enable_seqscan to 'off'
  as $$
declare
  v_since timestamptz := now() - interval '23 hours';
  v_order_ids uuid[] := array(select o.id from public.orders o where o.event_id = verify_outbox.event_id);
begin
  return query
  with happened as (
    select 'orders' as "table", o.id, h.type, o.id as subject_id, o.id::text as object_id, h.at
    from public.orders o
    cross join lateral (
      values
        ('order.created'::public.notification_type, o.created_at),
        ('order.completed', case when o.status = 'completed' then o.completed_at end),
        ('order.cancelled', o.cancelled_at),
        ('order.expired', case when o.cancellation_reason = 'expired' then o.cancelled_at end)
    ) h (type, at)
    where (o.created_at > v_since or o.completed_at > v_since or o.cancelled_at > v_since)
      and (verify_outbox.event_id is null or o.event_id = verify_outbox.event_id)
      -- One that was added by hand is announced with its first ticket.
      and exists (select from public.attendees a where a.order_id = o.id)
    union all
    select 'payments', p.id, 'payment.recorded', p.order_id, p.id::text, p.created_at
    from public.payments p
    where p.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'payment_voids', v.id, 'payment.voided', p.order_id, p.id::text, v.created_at
    from public.payment_voids v
    join public.payments p on p.id = v.payment_id
    where v.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'refunds', r.id, 'refund.recorded', r.order_id, r.id::text, r.created_at
    from public.refunds r
    where r.created_at > v_since and (verify_outbox.event_id is null or r.event_id = verify_outbox.event_id)
    union all
    select 'attendees', a.id, h.type, a.order_id, a.id::text, h.at
    from public.attendees a
    cross join lateral (
      values ('attendee.cancelled'::public.notification_type, a.cancelled_at), ('attendee.erased', a.erased_at)
    ) h (type, at)
    where (a.cancelled_at > v_since or a.erased_at > v_since)
      and (verify_outbox.event_id is null or a.order_id = any (v_order_ids))
    union all
    select 'check_ins', c.id, h.type, a.order_id, c.id::text, h.at
    from public.check_ins c
    join public.attendees a on a.id = c.attendee_id
    cross join lateral (
      values
        (case c.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type, c.created_at),
        ('attendee.check_in_undone', c.undone_at)
    ) h (type, at)
    where c.result = 'accepted' and (c.created_at > v_since or c.undone_at > v_since)
      and (verify_outbox.event_id is null or c.event_id = verify_outbox.event_id)
    union all
    select 'waiting_list_entries', w.id, h.type, w.id, w.id::text, h.at
    from public.waiting_list_entries w
    cross join lateral (
      values
        ('waiting_list_entry.created'::public.notification_type, w.created_at),
        ('waiting_list_entry.offered', w.offered_at),
        (
          case when w.status in ('accepted', 'expired', 'cancelled') then ('waiting_list_entry.' || w.status)::public.notification_type end,
          w.created_at
        )
    ) h (type, at)
    where w.created_at > v_since and (verify_outbox.event_id is null or w.event_id = verify_outbox.event_id)
  ),
  told as (
    select n.type, n.subject_id, n.created_at,
      -- Of an arrival the scan; of what follows from a payment the payment.
      case
        when n.type in ('attendee.checked_in', 'attendee.checked_out', 'attendee.check_in_undone') then n.data #>> '{check_in,id}'
        when n.type in ('order.created', 'order.completed', 'order.cancelled', 'order.expired') then n.subject_id::text
        else n.data ->> 'id'
      end as object_id
    from public.notifications n
    where n.created_at > v_since
  )
  select 'what happened has its notification', h."table", h.id, 'none', h.type::text
  from happened h
  where h.at > v_since and h.type is not null
    and not exists (select from told t where t.object_id = h.object_id and t.type = h.type and t.subject_id = h.subject_id);

  return query
  select
    'a notification waits for its fan-out, or has a delivery for each endpoint that was subscribed', 'notifications', n.id, 'none',
    'a delivery to ' || s.webhook_endpoint_id
  from public.notifications n
  join private.webhook_subscriptions s on s.organisation_id = n.organisation_id and n.type = any (s.types)
  where n.created_at > v_since and n.type <> 'webhook_endpoint.test'
    and (verify_outbox.event_id is null or n.subject_id = any (v_order_ids))
    -- Endpoints that have been what they are since before it: which of several subscriptions holds, the fan-out alone decides.
    and s.is_enabled and s.event_ids = '{}' and not pg_visible_in_snapshot(n.transaction_id, s.snapshot) and n.transaction_id <> s.transaction_id
    and not exists (
      select from private.webhook_subscriptions l where l.webhook_endpoint_id = s.webhook_endpoint_id and l.id <> s.id
    )
    and not exists (
      select from public.webhook_deliveries d where d.notification_id = n.id and d.webhook_endpoint_id = s.webhook_endpoint_id
    )
    and not exists (
      select from private.notification_queue q where q.organisation_id = n.organisation_id and q.transaction_id = n.transaction_id
    );

  return query
  select 'a ticket that is to be e-mailed is queued', 'attendees', a.id, a.ticket_email_status::text, 'an e-mail that is queued'
  from public.attendees a
  where (
      a.ticket_email_status = 'queued'
        and not exists (select from public.emails m where m.attendee_id = a.id and m.kind = 'ticket' and m.status = 'queued')
      or a.ticket_email_status = 'waiting' and a.status = 'active'
    )
    and (verify_outbox.event_id is null or a.order_id = any (v_order_ids));

  -- One that is being queued at that moment is cancelled when it is claimed, hence the minute.
  return query
  select 'whoever switched off the messages of an event is queued none after that', 'emails', m.id, concat_ws(' ', m.kind, m.status), 'none'
  from public.email_opt_outs u
  join public.attendees a on a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
  join public.emails m on m.attendee_id = a.id
  where private.can_be_switched_off(m.kind)
    and m.created_at > u.created_at + interval '1 minute'
    -- It may have been queued for whoever had the ticket before.
    and (m.status = 'queued' and a.updated_at <= m.created_at or lower(m.sent_to) = u.email_lower)
    and (verify_outbox.event_id is null or u.event_id = verify_outbox.event_id);

  return query
  select 'whoever switched off the messages of an event has a ticket of it', 'email_opt_outs', u.event_id, 'none', 'a ticket'
  from public.email_opt_outs u
  where (verify_outbox.event_id is null or u.event_id = verify_outbox.event_id)
    and not exists (
      select from public.attendees a
      where a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
    );

  return query
  with done as (
    select 'orders' as "table", 'order'::public.audit_object as object, o.id, o.id as object_id, 'created'::public.audit_action as action
    from public.orders o
    where o.created_at > v_since and (verify_outbox.event_id is null or o.event_id = verify_outbox.event_id)
    union all
    select 'payments', 'payment', p.id, p.id, 'created'
    from public.payments p
    where p.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'payment_voids', 'payment_void', v.id, v.id, 'created'
    from public.payment_voids v
    join public.payments p on p.id = v.payment_id
    where v.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'refunds', 'refund', r.id, r.id, 'created'
    from public.refunds r
    where r.created_at > v_since and (verify_outbox.event_id is null or r.event_id = verify_outbox.event_id)
    union all
    select 'check_ins', 'check_in', c.id, c.id, 'updated'
    from public.check_ins c
    where c.undone_at > v_since and (verify_outbox.event_id is null or c.event_id = verify_outbox.event_id)
    union all
    select 'waiting_list_entries', 'waiting_list_entry', w.id, w.id, 'created'
    from public.waiting_list_entries w
    where w.created_at > v_since and (verify_outbox.event_id is null or w.event_id = verify_outbox.event_id)
  )
  select 'what somebody did is in the audit trail', d."table", d.id, 'none', d.object || ' ' || d.action
  from done d
  where not exists (
    select from public.audit_entries e
    where e.object_id = d.object_id and e.object_type = d.object and e.action = d.action
  );
end
$$;

create or replace function private.with_warnings (
  outcome json,
  variadic warnings jsonb[]
)
  returns json
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  if num_nonnulls(variadic warnings) = 0 then
    return outcome;
  end if;
  -- Built as text, so that the fields keep their order.
  return (left(outcome::text, -1) || ', "warnings": ' || to_json(array_remove(warnings, null)) || '}')::json;
end
$$;

create trigger api_keys_010_blank_is_empty
  before insert or update on public.api_keys
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('organisation_id', 'name', 'prefix', 'scopes');

create trigger api_keys_800_explain
  before insert or update on public.api_keys
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger attendees_010_blank_is_empty
  before insert or update on public.attendees
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('order_id', 'ticket_type_id', 'name', 'email');

create trigger attendees_800_explain
  before insert or update on public.attendees
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger check_in_points_010_blank_is_empty
  before insert or update on public.check_in_points
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'name');

create trigger check_in_points_800_explain
  before insert or update on public.check_in_points
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger check_ins_010_blank_is_empty
  before insert or update on public.check_ins
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id');

create trigger check_ins_800_explain
  before insert or update on public.check_ins
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger email_opt_outs_010_blank_is_empty
  before insert or update on public.email_opt_outs
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'email');

create trigger email_opt_outs_800_explain
  before insert or update on public.email_opt_outs
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger emails_010_blank_is_empty
  before insert or update on public.emails
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty();

create trigger emails_800_explain
  before insert or update on public.emails
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger events_010_blank_is_empty
  before insert or update on public.events
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('name');

create trigger events_800_explain
  before insert or update on public.events
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger orders_010_blank_is_empty
  before insert or update on public.orders
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'name', 'email');

create trigger orders_800_explain
  before insert or update on public.orders
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger organisation_members_010_blank_is_empty
  before insert or update on public.organisation_members
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('organisation_id', 'user_id');

create trigger organisation_members_800_explain
  before insert or update on public.organisation_members
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger organisations_010_blank_is_empty
  before insert or update on public.organisations
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('name', 'slug');

create trigger organisations_800_explain
  before insert or update on public.organisations
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger payment_voids_010_blank_is_empty
  before insert or update on public.payment_voids
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('payment_id');

create trigger payment_voids_800_explain
  before insert or update on public.payment_voids
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger payments_010_blank_is_empty
  before insert or update on public.payments
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('order_id', 'amount');

create trigger payments_800_explain
  before insert or update on public.payments
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger plans_010_blank_is_empty
  before insert or update on public.plans
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('name', 'rate_limit_per_minute');

create trigger plans_800_explain
  before insert or update on public.plans
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger promo_codes_010_blank_is_empty
  before insert or update on public.promo_codes
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'code');

create trigger promo_codes_800_explain
  before insert or update on public.promo_codes
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger refunds_010_blank_is_empty
  before insert or update on public.refunds
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('order_id', 'amount');

create trigger refunds_800_explain
  before insert or update on public.refunds
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger ticket_types_010_blank_is_empty
  before insert or update on public.ticket_types
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'name');

create trigger ticket_types_800_explain
  before insert or update on public.ticket_types
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger waiting_list_entries_010_blank_is_empty
  before insert or update on public.waiting_list_entries
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'ticket_type_id', 'name', 'email');

create trigger waiting_list_entries_800_explain
  before insert or update on public.waiting_list_entries
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger webhook_deliveries_010_blank_is_empty
  before insert or update on public.webhook_deliveries
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty();

create trigger webhook_deliveries_800_explain
  before insert or update on public.webhook_deliveries
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger webhook_endpoints_010_blank_is_empty
  before insert or update on public.webhook_endpoints
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('url', 'types');

create trigger webhook_endpoints_800_explain
  before insert or update on public.webhook_endpoints
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

revoke all on function private.arrival_json(public.attendees, public.check_ins, text, text) from public;

revoke all on function private.is_typed() from public;

grant execute on function private.is_typed() to api_key, authenticated, courier;
