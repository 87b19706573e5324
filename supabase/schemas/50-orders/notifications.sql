-- What is notified of orders, their payments, and the corrections of these. All security definer: no role may write the outbox.

-- Nothing is told of an order without attendees, nor of one that was deleted.
create function private.notify_of_order(order_id uuid, types public.notification_type[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select o.organisation_id, t.type, o.data, notify_of_order.order_id
  from (
    select
      o.organisation_id,
      private.order_json(
        o,
        a.attendees,
        case when o.amount_paid + o.amount_voided > 0 then private.order_payments_json(o.id) else '[]' end,
        case when o.amount_refunded > 0 then private.order_refunds_json(o.id) else '[]' end
      ) as data
    from public.orders o
    cross join lateral (select private.attendees_of_order_json(o.id, o.reference) as attendees) a
    where o.id = notify_of_order.order_id and json_array_length(a.attendees) > 0
    -- Built once for both types.
    offset 0
  ) o
  cross join unnest(types) t (type);
end
$$;

-- Orders are told of at the end of the transaction: only then are their attendees and payments complete. A new one is announced with its
-- attendees: see 60-attendees/notifications.sql.
create function private.tg_orders__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.notify_of_order(new.id, case
    when new.status = 'completed' then '{order.completed}'
    when new.status = 'pending' then '{order.reopened}'
    -- Both: who is subscribed to cancellations misses none.
    when new.cancellation_reason = 'expired' then '{order.cancelled,order.expired}'
    else '{order.cancelled}'
  end::public.notification_type[]);
  return null;
end
$$;
create constraint trigger orders_600_notify after update on public.orders
  deferrable initially deferred
  for each row when (new.status <> old.status)
  execute function private.tg_orders__notify();

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
