-- What is notified of orders, their payments, and the corrections of these. All security definer: no role may write the outbox.

-- Orders notify at the end of the transaction: only then are their attendees and payments complete. Triggers on statements cannot be
-- deferred, so a statement that creates, completes, cancels or reopens orders leaves a row here, whose deferred trigger notifies of all of
-- them at once. An order without attendees is not notified of: one added in Studio is announced by the transaction that adds its first.
-- Operations that register announce new orders themselves: see private.announce_registrations.
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
    -- Whoever registers announces.
    if current_setting('usher.announces', true) = 'on' then
      return null;
    end if;
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
      when n.status = 'pending' then '{order.reopened}'
      -- Both: who is subscribed to cancellations misses none.
      when n.cancellation_reason = 'expired' then '{order.cancelled,order.expired}'
      else '{order.cancelled}'
    end::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status, n.cancellation_reason from new_rows n
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
      select o as "order", o.id, o.organisation_id, o.amount_paid, o.amount_voided, o.amount_refunded, t.attendees
      from public.orders o
      -- As private.attendees_of_order_json, without a call for each order: a cancelled event has thousands.
      cross join lateral (
        select json_agg(
          private.attendee_json(a.attendee, false, (select t.name from public.ticket_types t where t.id = a.ticket_type_id), o.reference)
          order by a.id
        ) as attendees
        from (select a.id, a.ticket_type_id, a as attendee from public.attendees a where a.order_id = o.id offset 0) a
      ) t
      where o.id = n.order_id
      offset 0
    ) a
    where a.attendees is not null
    offset 0
  ) o
  cross join unnest(new.types) t (type);
  delete from private.order_notices n where n.id = new.id;
  -- Whoever is added to them from now on is notified of; so is an order that has no attendees yet.
  perform set_config('usher.adds_to_order', 'on', true);
  return null;
end
$$;
create constraint trigger order_notices_600_notify after insert on private.order_notices
  deferrable initially deferred
  for each row execute function private.tg_order_notices__notify();

create function private.tg_payments__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'payment.recorded', private.payment_json(new, null), new.order_id);
  return null;
end
$$;
create trigger payments_600_notify after insert on public.payments
  for each row execute function private.tg_payments__notify();

create function private.tg_payment_voids__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select p.organisation_id, 'payment.voided', private.payment_json(p, new.created_at), p.order_id from public.payments p where p.id = new.payment_id;
  return null;
end
$$;
create trigger payment_voids_600_notify after insert on public.payment_voids
  for each row execute function private.tg_payment_voids__notify();

create function private.tg_refunds__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'refund.recorded', private.refund_json(new), new.order_id);
  return null;
end
$$;
create trigger refunds_600_notify after insert on public.refunds
  for each row execute function private.tg_refunds__notify();
