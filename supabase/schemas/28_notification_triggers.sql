-- The triggers that write notifications of orders, payments, attendees, ticket e-mails, check-ins, ticket types and events.
-- All security definer: no role may write the outbox.

-- Orders notify at the end of the transaction: only then are their attendees and payments complete. Triggers on statements cannot be
-- deferred, so a statement that creates, completes or cancels orders leaves a row here, whose deferred trigger notifies of all of
-- them at once. An order without attendees is not notified of: one added in Studio is announced by the transaction that adds its first.
create table private.order_notices (
  id uuid not null default gen_random_uuid(),
  types public.notification_type[] not null,
  order_ids uuid[] not null,
  constraint order_notices_pkey primary key (id)
);
comment on table private.order_notices is 'Orders that the running transaction notifies of when it ends. Rows are deleted before it commits.';
alter table private.order_notices enable row level security;

create function private.tg_orders__notice() returns trigger
language plpgsql volatile security definer set search_path = ''
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
    case
      when n.status = 'completed' then '{order.completed}'
      -- Both: who is subscribed to cancellations misses none.
      when n.cancellation_reason = 'expired' then '{order.cancelled,order.expired}'
      else '{order.cancelled}'
    end::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status, n.cancellation_reason from new_rows n where n.status in ('completed', 'cancelled')
    except
    select o.id, o.status, o.cancellation_reason from old_rows o
  ) n
  group by n.status, n.cancellation_reason;
  return null;
end
$$;
create trigger orders_600_notice_insert after insert on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__notice();
create trigger orders_600_notice_update after update on public.orders
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_orders__notice();

create function private.tg_order_notices__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
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
create constraint trigger order_notices_600_notify after insert on private.order_notices
  deferrable initially deferred
  for each row execute function private.tg_order_notices__notify();

-- Announces an order that gets its first attendees, and notifies of those added to an order that was announced before. Those of a new
-- order are in its order.created. Fires before the totals, whose changes notify of other attendees.
create function private.tg_attendees__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
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
create trigger attendees_350_notify_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__notify_insert();

-- The plan is cached, and made for the one row of the first call: without nested loops it serves the 25,000 rows of a cancelled
-- event as well.
create function private.tg_attendees__notify_update() returns trigger
language plpgsql volatile security definer set search_path = '' set enable_nestloop = off
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
create trigger attendees_350_notify_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__notify_update();

-- An attendee with the scan that is notified of. Security definer: it reads what the role that scans may not.
create function private.arrival_json(attendee public.attendees, check_in public.check_ins) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  -- As text, for json keeps the order of its fields and cannot be appended to.
  return (left(private.attendee_json(attendee, with_url => false)::text, -1) || ', "check_in" : ' || json_build_object(
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

create function private.tg_check_ins__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    n.organisation_id,
    case n.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type,
    private.arrival_json(row(a.*)::public.attendees, row(n.*)::public.check_ins)
  from new_rows n
  -- One index look-up per row under any plan.
  cross join lateral (select a.* from public.attendees a where a.id = n.attendee_id offset 0) a
  where n.result = 'accepted'
  order by n.id;
  return null;
end
$$;
create trigger check_ins_600_notify_insert after insert on public.check_ins
  referencing new table as new_rows
  for each statement execute function private.tg_check_ins__notify_insert();

create function private.tg_check_ins__notify_undo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select a.organisation_id, 'attendee.check_in_undone', private.arrival_json(a, new)
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;
create trigger check_ins_600_notify_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify_undo();

create function private.tg_payments__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'payment.recorded', private.payment_json(new));
  return null;
end
$$;
create trigger payments_600_notify after insert on public.payments
  for each row execute function private.tg_payments__notify();

create function private.tg_payment_voids__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select p.organisation_id, 'payment.voided', private.payment_json(p) from public.payments p where p.id = new.payment_id;
  return null;
end
$$;
create trigger payment_voids_600_notify after insert on public.payment_voids
  for each row execute function private.tg_payment_voids__notify();

create function private.tg_refunds__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'refund.recorded', private.refund_json(new));
  return null;
end
$$;
create trigger refunds_600_notify after insert on public.refunds
  for each row execute function private.tg_refunds__notify();

create function private.tg_attendees__notify_bounce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      'ticket', new.event_id, new.order_id, new.id, new.email, new.ticket_email_status, new.ticket_email_sent_at, new.ticket_email_last_error
    )
  );
  return null;
end
$$;
create trigger attendees_600_notify_bounce after update of ticket_email_status on public.attendees
  for each row when (new.ticket_email_status in ('bounced', 'failed') and new.ticket_email_status <> old.ticket_email_status)
  execute function private.tg_attendees__notify_bounce();

-- No place of a ticket type is left where there was one: the last was taken, or held for an offer of the waiting list, or the quantity
-- lowered to what is taken. Where its event was full before, that was said then.
create function private.tg_ticket_types__notify_sold_out() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new));
  return null;
end
$$;
create trigger ticket_types_600_notify_sold_out after update of quantity, quantity_sold on public.ticket_types
  for each row when (
    new.quantity > 0
    and new.quantity_sold + new.quantity_held >= new.quantity
    and (old.quantity is null or old.quantity_sold + old.quantity_held < old.quantity)
  )
  execute function private.tg_ticket_types__notify_sold_out();

-- The event itself has become full: sold out are all of its ticket types on sale that had places left. The caller has the lock under
-- which the places of an event are counted, so this costs registrations nothing more.
create function private.notify_of_full_event(event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select t.organisation_id, 'ticket_type.sold_out', t.data
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

create function private.tg_events__notify_full() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_taken bigint := private.places_taken(new.id);
begin
  if v_taken >= new.capacity and (old.capacity is null or v_taken < old.capacity) then
    perform private.notify_of_full_event(new.id);
  end if;
  return null;
end
$$;
create trigger events_600_notify_full after update of capacity on public.events
  for each row when (new.capacity < old.capacity or new.capacity is not null and old.capacity is null)
  execute function private.tg_events__notify_full();

create function private.tg_events__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- An update that changes nothing notifies of nothing.
  if new.version = old.version then
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
create trigger events_600_notify after update on public.events
  for each row execute function private.tg_events__notify();
