-- What is notified of orders, their payments, and the corrections of these. All security definer: no role may write the outbox.

-- Nothing is told of an order without attendees, nor of one that was deleted. A complimentary order is complete before it has attendees, so
-- its creation tells of both; any other one completes, and says so, after that.
create function private.notify_of_orders(order_ids uuid[], types public.notification_type[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select o.organisation_id, t.type, o.data, o.id
  from (
    select
      o.id, o.organisation_id, o.payment_method, i.place,
      private.order_json(o, a.attendees) as data
    from unnest(order_ids) with ordinality i (id, place)
    join public.orders o on o.id = i.id
    -- A join, and no call for each order: a cancelled event has thousands.
    cross join lateral (
      select json_agg(private.attendee_json(a, false, t.name, o.reference) order by a.id) as attendees
      from public.attendees a
      join public.ticket_types t on t.id = a.ticket_type_id
      where a.order_id = o.id
    ) a
    where a.attendees is not null
    -- Built once for both types.
    offset 0
  ) o
  cross join unnest(types) with ordinality t (type, place)
  where t.type <> 'order.completed' or types = '{order.completed}' or o.payment_method is null
  order by o.place, t.place;
end
$$;

-- Orders are told of at the end of the transaction: only then are their attendees and payments complete. A new one is announced with its
-- attendees: see 60-attendees/notifications.sql.
create function private.tg_orders__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.notify_of_orders(array[new.id], case
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
  -- Of a cancelled event: 20-events/effects.sql.
  for each row when (new.status <> old.status and new.cancellation_reason is distinct from 'event_cancelled')
  execute function private.tg_orders__notify();

-- Any other edit of an order that was there before, once a transaction: neither of a version that a later edit replaces, nor of one that
-- another type has told.
create function private.tg_orders__notify_update() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (select from public.orders o where o.id = new.id and o.version = new.version) and not exists (
    select from public.notifications n
    where n.subject_id = new.id
      and n.type in ('order.created', 'order.completed', 'order.cancelled', 'order.expired', 'order.reopened')
      and (n.data ->> 'version')::integer = new.version
  ) then
    perform private.notify_of_orders(array[new.id], '{order.updated}');
  end if;
  return null;
end
$$;
create constraint trigger orders_610_notify_update after update on public.orders
  deferrable initially deferred
  for each row when (new.version <> old.version and new.status = old.status and new.created_at <> now())
  execute function private.tg_orders__notify_update();

-- Arguments: the type, and the column that has the payment.
create function private.tg__notify_of_payment() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select p.organisation_id, tg_argv[0]::public.notification_type, private.payment_json(p, v.created_at), p.order_id
  from public.payments p
  left join public.payment_voids v on v.payment_id = p.id
  where p.id = (to_jsonb(new) ->> tg_argv[1])::uuid;
  return null;
end
$$;
create trigger payments_600_notify after insert on public.payments
  for each row execute function private.tg__notify_of_payment('payment.recorded', 'id');
create trigger payment_voids_600_notify after insert on public.payment_voids
  for each row execute function private.tg__notify_of_payment('payment.voided', 'payment_id');

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
