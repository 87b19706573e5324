-- Payment deadlines: an order that is to be paid has payment_due_at, from payment_due_days of its event or set by hand. The courier
-- reminds the buyer once of each deadline, and cancels the order as expired after it, unless a part was paid: that one stays pending until a
-- person decides. A payment counts until that happens; after that the order may be reopened.

-- An order whose deadline the courier has to look at: payment_check_at is empty for all others.
create index orders_payment_check_at_idx on public.orders (organisation_id, payment_check_at, id)
  where payment_check_at is not null;
-- For private.page_of_due_orders: orders of which something is due, and those that have expired.
create index orders_organisation_id_due_idx on public.orders (organisation_id, status, payment_status, payment_due_at, id)
  where payment_status in ('awaiting_payment', 'partially_paid') or cancellation_reason = 'expired';
create index orders_event_id_due_idx on public.orders (event_id, status, payment_status, payment_due_at, id)
  where payment_status in ('awaiting_payment', 'partially_paid') or cancellation_reason = 'expired';

create function private.refuse_expired("order" public.orders) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'order_expired', 'The order was not paid by its deadline and has expired.', 'order_id',
    jsonb_build_object(
      'payment_due_at', private.rfc3339("order".payment_due_at), 'cancelled_at', private.rfc3339("order".cancelled_at)
    ),
    'Call reopen_order with a new deadline while there are places; else return money that came too late.'
  );
end
$$;

-- What was typed is shown as it was read: 10.12.2026 may be 12 October, and whose order expires is told within seconds.
create function private.refuse_past_deadline("order" public.orders) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_value(
    'payment_due_at',
    format(
      'payment_due_at was read as %s, which is %s.',
      (select private.clock_time("order".payment_due_at, e.timezone) from public.events e where e.id = "order".event_id),
      case when "order".payment_due_at < "order".created_at then 'before the order was made' else 'in the past' end
    ),
    'Write the year first, as in 2026-12-10 18:00 Europe/Berlin. If the order is to expire now: expire_now in update_order, now() by hand.'
  );
end
$$;

-- After orders_100_guard, which says what the status is. Security definer: it reads the event.
create function private.tg_orders__guard_deadline() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- How long before the deadline the buyer is reminded.
  v_lead interval := '72 hours';
  v_is_paid_in_part boolean := new.status = 'pending' and new.amount_paid > new.amount_refunded;
  -- Of an order that somebody adds with the time at which it was made elsewhere, the days of the event may be over.
  v_is_computed boolean := tg_op = 'INSERT' and new.payment_due_at is null;
  v_before timestamptz;
  v_next timestamptz;
begin
  if tg_op = 'INSERT' then
    if new.status = 'pending' and new.payment_due_at is null then
      select new.created_at + make_interval(hours => 24 * e.payment_due_days) into new.payment_due_at
      from public.events e
      where e.id = new.event_id;
    end if;
    -- Not at once where the deadline is near from the beginning: in the middle.
    v_lead := least(v_lead, greatest(new.payment_due_at - new.created_at, interval '0') / 2);
  else
    v_before := old.payment_due_at;
    if old.status = 'cancelled' and new.status = 'pending' then
      v_lead := least(v_lead, (new.payment_due_at - now()) / 2);
    end if;
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_reminded_at is distinct from now() then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'payment_reminded_at',
        hint => 'Call send_payment_reminder to remind the buyer now.'
      );
    end if;
    -- One by hand stands for the courier's own of the next day as well.
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_remind_at <= now() + interval '1 day' then
      new.payment_remind_at := null;
    end if;
    -- An order that comes to nothing is complete with its first ticket: nobody has anything to pay by a deadline.
    if old.status = 'pending' and new.status = 'completed' and new.subtotal = new.discount_total and new.amount_paid = 0 then
      new.payment_due_at := null;
      new.payment_remind_at := null;
      v_before := null;
    end if;
    -- What was overdue and paid in part is not paid at all: the buyer learns of it, and has time.
    if new.status = 'pending' and old.amount_paid > old.amount_refunded and new.amount_paid = new.amount_refunded
      and new.payment_due_at <= now() then
      new.payment_due_at := now() + v_lead;
    end if;
  end if;
  if new.payment_due_at is distinct from v_before then
    if new.cancellation_reason = 'expired' then
      perform private.refuse_expired(new);
    elsif new.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order has no payment deadline.', 'payment_due_at');
    elsif new.status = 'completed' then
      perform private.refuse(
        409, 'order_completed', 'A completed order keeps its tickets: a payment deadline would have no effect.', 'payment_due_at',
        hint => 'Cancel the order if it is not to be paid any more.'
      );
    end if;
    if new.payment_due_at < now() and not v_is_computed then
      perform private.refuse_past_deadline(new);
    end if;
    new.payment_reminded_at := null;
    new.payment_remind_at := case when new.send_email then new.payment_due_at - v_lead end;
    -- Nobody is reminded twice a day, unless the deadline is too near for that.
    if tg_op = 'UPDATE' and new.payment_remind_at is not null then
      v_next := private.next_reminder_at(new.id);
      if v_next > new.payment_remind_at and v_next < new.payment_due_at - interval '12 hours' then
        new.payment_remind_at := v_next;
      end if;
    end if;
  end if;
  -- The buyer who paid a part is reminded again when the deadline comes.
  if v_is_paid_in_part and new.send_email and new.payment_remind_at is null
    and (new.payment_reminded_at < new.payment_due_at - interval '1 day') is not false then
    new.payment_remind_at := new.payment_due_at;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid - new.amount_refunded < new.subtotal - new.discount_total
      then least(new.payment_remind_at, case when not v_is_paid_in_part then new.payment_due_at end)
  end;
  return new;
end
$$;
-- Where a payment completes the order, orders_100_guard empties payment_check_at.
create trigger orders_200_deadline
  before insert or update of
    status, subtotal, discount_total, payment_due_at, payment_remind_at, payment_reminded_at, payment_check_at
  on public.orders
  for each row when (new.payment_method is not null or new.payment_due_at is not null)
  execute function private.tg_orders__guard_deadline();
create trigger orders_200_deadline_of_paid
  before update of amount_paid on public.orders
  for each row when (new.status = 'pending' and new.payment_due_at is not null)
  execute function private.tg_orders__guard_deadline();

-- Cancels those of the orders that are overdue and unpaid: they are given, and may have been paid or given more time meanwhile. Those that another
-- transaction has locked are left for later. One statement, whose triggers take further locks in the order of all writes.
create function private.expire_orders(order_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  v_ids := array(
    select o.id
    from public.orders o
    where o.id = any (order_ids) and o.payment_check_at is not null and o.payment_due_at <= now() and o.amount_paid = o.amount_refunded
    order by o.id
    for no key update skip locked
  );
  if v_ids <> '{}' then
    update public.orders o set status = 'cancelled', cancellation_reason = 'expired' where o.id = any (v_ids);
  end if;
  return v_ids;
end
$$;

-- Reminds the buyers of those of the orders for which it is time.
create function private.remind_of_payments(order_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  v_ids := array(
    select o.id
    from public.orders o
    where o.id = any (order_ids) and o.payment_check_at <= now() and (o.payment_due_at > now() or o.amount_paid > o.amount_refunded)
    order by o.id
    for no key update skip locked
  );
  if v_ids <> '{}' then
    update public.orders o set payment_reminded_at = now() where o.id = any (v_ids);
    perform private.queue_order_emails('payment_reminder', v_ids);
  end if;
  return v_ids;
end
$$;

-- Organisations with unpaid orders that have a deadline, by a loose index scan: one look-up each, however many orders there are. Only
-- one index has the order that is asked for.
create function private.organisations_with_deadlines() returns uuid[]
language plpgsql stable set search_path = ''

as $$
begin
  return array(
    with recursive found as (
      (
        select o.organisation_id
        from public.orders o
        where o.payment_check_at is not null
        order by o.organisation_id, o.payment_check_at
        limit 1
      )
      union all
      select n.organisation_id
      from found f
      cross join lateral (
        select o.organisation_id
        from public.orders o
        where o.payment_check_at is not null and o.organisation_id > f.organisation_id
        order by o.organisation_id, o.payment_check_at
        limit 1
      ) n
    )
    select found.organisation_id from found
  );
end
$$;

-- For the courier, every ten seconds. Organisations take turns, each with what has been due longest, so that one with thousands of overdue
-- orders does not hold up the others.
create function api.enforce_payment_deadlines("limit" integer default 100) returns json
language plpgsql volatile security definer set search_path = ''

as $$
declare
  v_due uuid[];
begin
  -- Nobody is reminded where e-mails are held, so nobody is late there.
  if private.is_held() then
    return json_build_object('expired', 0, 'reminded', 0, 'has_more', false);
  end if;
  v_due := array(
    with due as (
      select
        d.id, d.payment_check_at, row_number() over (partition by o.organisation_id order by d.payment_check_at, d.id) as turn
      from unnest(private.organisations_with_deadlines()) o (organisation_id)
      cross join lateral (
        select d.id, d.payment_check_at
        from public.orders d
        where d.organisation_id = o.organisation_id and d.payment_check_at <= now()
        order by d.organisation_id, d.payment_check_at, d.id
        limit enforce_payment_deadlines."limit"
      ) d
    )
    select d.id from due d order by d.turn, d.payment_check_at, d.id limit enforce_payment_deadlines."limit"
  );
  return json_build_object(
    'expired', cardinality(private.expire_orders(v_due)),
    'reminded', cardinality(private.remind_of_payments(v_due)),
    'has_more', cardinality(v_due) >= enforce_payment_deadlines."limit"
  );
end
$$;
comment on function api.enforce_payment_deadlines is
  'Reminds of payment deadlines and cancels unpaid orders after them, at most "limit": { expired, reminded, has_more }. For the courier.';
grant execute on function api.enforce_payment_deadlines to courier;
