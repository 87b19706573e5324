-- orders with their attendees. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function private.tg_attendees__notify_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
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

    insert into public.notifications (organisation_id, type, data)
    -- The row as it is: its discount may have been set after it was added.
    select n.organisation_id, 'attendee.updated', (select private.attendee_json(a, with_url => false) from public.attendees a where a.id = n.id)
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
  as $$
begin
  -- Every change of these columns increments the version; a check-in, for example, leaves nothing to compare.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
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
    )
  from new_rows n
  join old_rows o on o.id = n.id
  where (n.name, n.email, n.company, n.status, n.ticket_type_id, n.ticket_code, n.external_id, n.metadata, n.erased_at)
    is distinct from
    (o.name, o.email, o.company, o.status, o.ticket_type_id, o.ticket_code, o.external_id, o.metadata, o.erased_at)
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

create or replace function private.tg_order_notices__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select o.organisation_id, t.type, o.data
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

create or replace function private.tg_orders__confirm()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  insert into public.emails (organisation_id, kind, order_id, next_attempt_at)
  select
    n.organisation_id,
    'order_confirmation',
    n.id,
    now() + case
      when n.source = 'studio' and current_setting('usher.registers', true) is distinct from 'on' then interval '10 minutes'
      else '0'
    end
  from new_rows n
  where n.payment_method is not null and n.send_email
  order by n.id;
  return null;
end
$$;

create or replace function private.tg_registrations__register()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
declare
  v_given jsonb;
  v_kept text;
begin
  if num_nonnulls(new.order_id, new.reference, new.attendee_id, new.status, new.created_at) > 0 then
    v_given := jsonb_strip_nulls(to_jsonb(new));
    foreach v_kept in array '{order_id,reference,attendee_id,status,created_at}'::text[] loop
      if v_given ? v_kept then
        perform private.refuse(
          409, 'read_only_field', 'Usher sets this field of a new row itself.', v_kept, hint => 'Leave it out.'
        );
      end if;
    end loop;
  end if;
  if not exists (select from public.events e where e.id = new.event_id) then
    perform private.refuse_not_found('event_id');
  elsif not exists (select from public.ticket_types t where t.id = new.ticket_type_id and t.event_id = new.event_id) then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  new.send_email := coalesce(new.send_email, true);
  new.metadata := coalesce(new.metadata, '{}');

  -- The order is confirmed at once.
  perform set_config('usher.registers', 'on', true);
  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    new.organisation_id, new.event_id, new.name, new.email, new.company, new.send_email, new.payment_method, new.promo_code,
    new.external_id, new.metadata
  )
  returning id, organisation_id, reference, promo_code, created_at
  into new.order_id, new.organisation_id, new.reference, new.promo_code, new.created_at;
  perform set_config('usher.registers', 'off', true);
  insert into public.attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata)
  values (
    new.order_id, new.ticket_type_id, new.waiting_list_entry_id, new.name, new.email, new.company, new.external_id, new.metadata
  )
  returning id into new.attendee_id;
  select a.status into new.status from public.attendees a where a.id = new.attendee_id;
  return new;
end
$$;

create view public.registrations with (security_invoker=true) as
  select a.organisation_id,
    a.event_id,
    a.ticket_type_id,
    a.name,
    a.email,
    a.company,
    o.payment_method,
    o.promo_code,
    o.send_email,
    a.waiting_list_entry_id,
    a.external_id,
    a.metadata,
    o.id as order_id,
    o.reference,
    a.id as attendee_id,
    a.status,
    a.created_at
   from (public.attendees a
     join public.orders o on ((o.id = a.order_id)));

revoke all on table public.registrations from anon;

revoke all on table public.registrations from service_role;

create trigger registrations_100_register
  instead of insert on public.registrations
  for each row
  execute function private.tg_registrations__register();

comment on view public.registrations is 'Attendees with their orders. Add a row to register a guest: event, ticket type, name, e-mail, and payment_method invoice if it is to be paid.';

revoke all on function private.tg_registrations__register() from public;

revoke all on table public.registrations from authenticated;

grant insert, select on table public.registrations to authenticated;
