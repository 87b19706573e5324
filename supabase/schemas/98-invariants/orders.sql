-- Invariants of orders: money and states, recounted from tickets, payments and their corrections.

-- A row that is not what a recount of others says. `stored` and `expected` are for people.
create type private.disagreement as ("check" text, "table" text, id uuid, stored text, expected text);

-- Custom plans, here and in the other files: a plan for one event is none for all of them.
create function private.verify_orders(event_id uuid) returns setof private.disagreement
language plpgsql stable set search_path = ''
as $$
declare
  -- What is older may have lost what it is held against: tickets may be deleted, and e-mails are kept for a day at least.
  v_since timestamptz := now() - interval '23 hours';
  v_order_ids uuid[] := array(select o.id from public.orders o where o.event_id = verify_orders.event_id);
begin
  return query
  with deleted as materialized (
    select e.changes #>> '{order_id,from}' as order_id
    from public.audit_entries e
    where e.object_type = 'attendee' and e.action = 'deleted' and e.created_at > v_since
  ),
  lines as (
    select
      a.order_id,
      count(*) as tickets,
      count(*) filter (where a.status <> 'cancelled') as standing,
      coalesce(sum(a.price) filter (where a.status <> 'cancelled'), 0)::bigint as subtotal,
      coalesce(sum(a.discount) filter (where a.status <> 'cancelled'), 0)::bigint as discount,
      -- A cancelled ticket was a line of its order until then, hence those that were cancelled together with it.
      coalesce(sum(a.price) filter (where a.cancelled_at = c.cancelled_at), 0)::bigint as last_subtotal,
      coalesce(sum(a.discount) filter (where a.cancelled_at = c.cancelled_at), 0)::bigint as last_discount,
      sum(a.price)::bigint as prices,
      sum(a.price - a.discount)::bigint as cost,
      bool_or(a.status = 'active') as has_active,
      bool_or(a.status = 'awaiting_payment') as has_awaiting
    from public.attendees a
    join public.orders c on c.id = a.order_id
    where verify_orders.event_id is null or a.order_id = any (v_order_ids)
    group by a.order_id
  ),
  received as (
    select
      p.order_id, coalesce(sum(p.amount) filter (where v.id is null), 0)::bigint as paid,
      coalesce(sum(p.amount) filter (where v.id is not null), 0)::bigint as voided
    from public.payments p
    left join public.payment_voids v on v.payment_id = p.id
    where verify_orders.event_id is null or p.order_id = any (v_order_ids)
    group by p.order_id
  ),
  returned as (
    select r.order_id, sum(r.amount)::bigint as refunded
    from public.refunds r
    where verify_orders.event_id is null or r.order_id = any (v_order_ids)
    group by r.order_id
  )
  select d.*
  from public.orders o
  left join lines l on l.order_id = o.id
  left join received p on p.order_id = o.id
  left join returned r on r.order_id = o.id
  cross join lateral (
    select
      coalesce(l.tickets, 0) as tickets, coalesce(l.standing, 0) as standing, coalesce(l.subtotal, 0) as subtotal,
      coalesce(l.discount, 0) as discount, coalesce(l.last_subtotal, 0) as last_subtotal, coalesce(l.last_discount, 0) as last_discount,
      coalesce(p.paid, 0) as paid, coalesce(p.voided, 0) as voided, coalesce(r.refunded, 0) as refunded,
      o.amount_paid - o.amount_refunded as kept,
      -- What is paid in part does not expire.
      least(o.payment_remind_at, case when o.amount_paid = o.amount_refunded then o.payment_due_at end) as check_at
  ) s
  -- Not a list of values, whose expressions Postgres prepares anew for each order.
  cross join lateral unnest(array[
    case when o.status <> 'cancelled' and (o.subtotal, o.discount_total, o.total) <> (s.subtotal, s.discount, s.subtotal - s.discount)
      then row(
        'totals are the sums of the tickets that stand', 'orders', o.id,
        concat_ws(' ', o.subtotal, o.discount_total, o.total), concat_ws(' ', s.subtotal, s.discount, s.subtotal - s.discount)
      )::private.disagreement end,
    case when o.status = 'cancelled' and (o.subtotal, o.discount_total) <> (s.last_subtotal, s.last_discount)
      and (
        o.subtotal < s.last_subtotal or o.discount_total < s.last_discount
        or o.cancelled_at > v_since and o.id::text not in (select e.order_id from deleted e where e.order_id is not null)
      )
      then row(
        'totals of a cancelled order are those it had', 'orders', o.id,
        concat_ws(' ', o.subtotal, o.discount_total), concat_ws(' ', s.last_subtotal, s.last_discount)
      )::private.disagreement end,
    case when o.payment_method is null and l.prices > 0 then row(
        'complimentary tickets cost nothing', 'orders', o.id,
        l.prices::text, '0'
      )::private.disagreement end,
    case when (o.amount_paid, o.amount_voided) <> (s.paid, s.voided)
      then row(
        'amount_paid is the sum of the payments that are not voided, and the rest is amount_voided', 'orders', o.id,
        concat_ws(' ', o.amount_paid, o.amount_voided), concat_ws(' ', s.paid, s.voided)
      )::private.disagreement end,
    case when o.amount_refunded > o.amount_paid or o.amount_refunded <> s.refunded
      then row(
        'amount_refunded is the sum of the refunds, and at most what was paid', 'orders', o.id,
        o.amount_refunded::text, least(s.refunded, s.paid)::text
      )::private.disagreement end,
    case when o.amount_retained > greatest(s.kept - case o.status when 'cancelled' then 0 else o.total end, 0) then row(
        'an order retains at most what it would have to refund', 'orders', o.id,
        o.amount_retained::text, 'at most ' || greatest(s.kept - case o.status when 'cancelled' then 0 else o.total end, 0)
      )::private.disagreement end,
    case when s.kept > coalesce(l.cost, 0) and o.created_at > v_since
      and o.id::text not in (select e.order_id from deleted e where e.order_id is not null)
      then row(
        'nobody paid more than the order ever cost', 'orders', o.id,
        s.kept::text, 'at most ' || coalesce(l.cost, 0)
      )::private.disagreement end,
    case when o.status = 'pending' and s.kept >= o.total and s.tickets > 0 then row(
        'an order is completed when nothing is due, and not before', 'orders', o.id,
        'pending', 'completed'
      )::private.disagreement
      when o.status = 'completed' and o.amount_paid + o.amount_voided < o.total then row(
        'an order is completed when nothing is due, and not before', 'orders', o.id,
        'completed', 'pending'
      )::private.disagreement end,
    case when (o.status = 'cancelled') <> (o.cancelled_at is not null)
        or o.status = 'completed' and o.completed_at is null
        or o.status = 'pending' and o.completed_at is not null
      then row(
        'an order has the moments of its status', 'orders', o.id,
        concat_ws(', ', 'completed_at ' || o.completed_at, 'cancelled_at ' || o.cancelled_at), 'those of ' || o.status
      )::private.disagreement end,
    case when (o.status = 'cancelled') <> (o.cancellation_reason is not null)
        or o.cancellation_reason = 'expired'
          and (o.completed_at is not null or o.payment_due_at is null or o.payment_due_at > o.cancelled_at)
      then row(
        'a cancelled order says why, and one that expired had a deadline, which was over', 'orders', o.id,
        coalesce(o.cancellation_reason::text, 'no reason'), 'one that fits'
      )::private.disagreement end,
    case when o.payment_check_at is distinct from
        case when o.status = 'pending' and s.kept < o.total then s.check_at end
      then row(
        'the courier looks at each deadline of what is due, and at no other', 'orders', o.id,
        coalesce(o.payment_check_at::text, 'never'),
        coalesce(case when o.status = 'pending' and s.kept < o.total then s.check_at end::text, 'never')
      )::private.disagreement end,
    case when o.payment_due_at is null and o.payment_remind_at is not null
        or o.payment_remind_at <= o.payment_reminded_at + interval '1 day'
        or o.payment_remind_at > o.payment_due_at
      then row(
        'Usher reminds of a deadline before it, and not within a day of a reminder', 'orders', o.id,
        o.payment_remind_at::text, 'before ' || coalesce(o.payment_due_at::text, 'nothing')
      )::private.disagreement end,
    case when o.status = 'pending' and l.has_active then row(
        'tickets of a pending order wait', 'orders', o.id,
        'active', 'awaiting_payment'
      )::private.disagreement end,
    case when o.status = 'completed' and l.has_awaiting then row(
        'tickets of a completed order are good', 'orders', o.id,
        'awaiting_payment', 'active'
      )::private.disagreement end,
    case when o.status = 'cancelled' and (l.has_active or l.has_awaiting) then row(
        'tickets of a cancelled order are cancelled', 'orders', o.id,
        'not cancelled', 'cancelled'
      )::private.disagreement end,
    -- One that was added by hand may have no ticket yet.
    case when o.status <> 'cancelled' and s.standing = 0 and s.tickets > 0 then row(
        'an order that stands has a ticket that does', 'orders', o.id,
        o.status::text, 'cancelled'
      )::private.disagreement end,
    case when o.payment_status::text <> case
        when o.status <> 'cancelled' and s.kept < o.total
          then case s.kept when 0 then 'awaiting_payment' else 'partially_paid' end
        when s.kept > case o.status when 'completed' then o.total else 0 end + o.amount_retained then 'refund_due'
        when s.kept > o.amount_retained or o.amount_paid > 0 and o.amount_refunded = 0 then 'paid'
        when o.amount_paid > 0 then 'refunded'
        else 'not_required'
      end
      then row(
        'payment_status follows from status and amounts', 'orders', o.id,
        o.payment_status::text,
        format(
          'what follows from %s, total %s, paid %s, refunded %s, retained %s', o.status, o.total, o.amount_paid, o.amount_refunded, o.amount_retained
        )
      )::private.disagreement end
  ]) d
  where d."check" is not null and (verify_orders.event_id is null or o.event_id = verify_orders.event_id);

  return query
  select 'a discount is of a code and at most the price', 'attendees', a.id, a.discount::text, format('at most %s, with a code', a.price)
  from public.attendees a
  where (a.discount not between 0 and a.price or a.discount > 0 and a.promo_code_id is null)
    and (verify_orders.event_id is null or a.order_id = any (v_order_ids));

  -- An order keeps what it has when the amount of its code is changed.
  return query
  select 'an order has at most the amount off of its code', 'orders', o.id, s.discount::text, 'at most ' || c.amount_off
  from public.orders o
  join public.promo_codes c on c.id = o.promo_code_id
  cross join lateral (
    select sum(a.discount) as discount from public.attendees a where a.order_id = o.id and a.status <> 'cancelled'
  ) s
  where s.discount > c.amount_off
    and o.created_at > v_since
    and not exists (
      select from public.audit_entries e
      where e.object_id = c.id and e.object_type = 'promo_code' and e.changes ?| '{amount_off,percent_off}'
    )
    and (verify_orders.event_id is null or o.event_id = verify_orders.event_id);

  return query
  select 'the buyer of an order that expired is told so once', 'orders', o.id, m.times::text, m.expected::text
  from public.orders o
  cross join lateral (
    select
      (select count(*) from public.emails m where m.order_id = o.id and m.kind = 'order_expired' and m.created_at = o.cancelled_at) as times,
      case when o.cancellation_reason = 'expired' and o.send_email then 1 else 0 end as expected
  ) m
  where o.cancelled_at > v_since and m.times <> m.expected
    and (verify_orders.event_id is null or o.event_id = verify_orders.event_id);

  return query
  select 'a cancelled event has no order that stands', 'orders', o.id, o.status::text, 'cancelled'
  from public.events e
  join public.orders o on o.event_id = e.id
  where e.status = 'cancelled' and o.status <> 'cancelled'
    and (verify_orders.event_id is null or e.id = verify_orders.event_id);
end
$$;
