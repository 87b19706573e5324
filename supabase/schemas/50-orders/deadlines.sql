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
    'Call reopen_order with a new deadline while places are left. Otherwise return late payments.'
  );
end
$$;

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
  'Sends reminders before payment deadlines and cancels unpaid orders after them, at most "limit": { expired, reminded, has_more }. For the courier.';
grant execute on function api.enforce_payment_deadlines to courier;
