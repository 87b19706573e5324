-- Money and states of an order, recounted from its tickets, payments, voids and refunds.
with lines as (
  select
    a.order_id,
    count(*) as tickets,
    count(*) filter (where a.status <> 'cancelled') as standing,
    coalesce(sum(a.price) filter (where a.status <> 'cancelled'), 0)::bigint as subtotal,
    coalesce(sum(a.discount) filter (where a.status <> 'cancelled'), 0)::bigint as discount,
    -- A cancelled ticket was a line of its order until then, hence those that were cancelled together with it.
    coalesce(sum(a.price) filter (where a.cancelled_at = o.cancelled_at), 0)::bigint as last_subtotal,
    coalesce(sum(a.discount) filter (where a.cancelled_at = o.cancelled_at), 0)::bigint as last_discount,
    sum(a.price)::bigint as prices,
    sum(a.price - a.discount)::bigint as cost,
    bool_or(a.status = 'active') as has_active,
    bool_or(a.status = 'awaiting_payment') as has_awaiting
  from public.attendees a
  join public.orders o on o.id = a.order_id
  where a.ticket_type_id in (table asked_types)
  group by a.order_id
),
received as (
  select
    p.order_id,
    coalesce(sum(p.amount) filter (where v.id is null), 0)::bigint as paid,
    coalesce(sum(p.amount) filter (where v.id is not null), 0)::bigint as voided
  from public.payments p
  left join public.payment_voids v on v.payment_id = p.id
  where p.event_id in (table asked_events)
  group by p.order_id
),
returned as (
  select r.order_id, sum(r.amount)::bigint as refunded
  from public.refunds r
  where r.event_id in (table asked_events)
  group by r.order_id
),
counted as (
  select
    o.id, o.status, o.payment_status, o.payment_method, o.subtotal, o.discount_total, o.total, o.amount_paid, o.amount_voided, o.amount_refunded,
    o.amount_retained, o.completed_at, o.cancelled_at, o.cancellation_reason, o.payment_due_at, o.payment_remind_at, o.payment_reminded_at,
    o.payment_check_at,
    coalesce(l.tickets, 0) as tickets, coalesce(l.standing, 0) as standing, coalesce(l.subtotal, 0) as line_subtotal,
    coalesce(l.discount, 0) as line_discount, coalesce(l.last_subtotal, 0) as last_subtotal, coalesce(l.last_discount, 0) as last_discount,
    coalesce(l.prices, 0) as prices, coalesce(l.cost, 0) as cost, coalesce(l.has_active, false) as has_active,
    coalesce(l.has_awaiting, false) as has_awaiting,
    coalesce(p.paid, 0) as paid, coalesce(p.voided, 0) as voided, coalesce(r.refunded, 0) as refunded,
    o.amount_paid - o.amount_refunded as kept,
    case o.status when 'cancelled' then 0 else o.total end as due,
    -- What is paid in part does not expire.
    case when o.status = 'pending' and o.amount_paid - o.amount_refunded < o.total
      then least(o.payment_remind_at, case when o.amount_paid = o.amount_refunded then o.payment_due_at end) end as check_at,
    -- What is older may have lost what it is held against: tickets may be deleted, and logs are purged after a day at the earliest.
    o.created_at > now() - interval '23 hours' and not d.has_lost as is_new,
    o.cancelled_at > now() - interval '23 hours' and not d.has_lost as is_newly_cancelled
  from public.orders o
  left join lines l on l.order_id = o.id
  left join received p on p.order_id = o.id
  left join returned r on r.order_id = o.id
  left join (
    select distinct e.changes #>> '{order_id,from}' as order_id, true as has_lost
    from public.audit_entries e
    where e.object_type = 'attendee' and e.action = 'deleted' and e.created_at > now() - interval '23 hours'
  ) x on x.order_id = o.id::text
  cross join lateral (select x.has_lost is not null as has_lost) d
  where o.event_id in (table asked_events)
)
select 'totals are the sums of the tickets that stand' as "check", 'orders' as "table", o.id,
  concat_ws(' ', o.subtotal, o.discount_total, o.total) as stored,
  concat_ws(' ', o.line_subtotal, o.line_discount, o.line_subtotal - o.line_discount) as expected
from counted o
where o.status <> 'cancelled'
  and (o.subtotal, o.discount_total, o.total) <> (o.line_subtotal, o.line_discount, o.line_subtotal - o.line_discount)
union all
select 'totals of a cancelled order are those it had', 'orders', o.id,
  concat_ws(' ', o.subtotal, o.discount_total), concat_ws(' ', o.last_subtotal, o.last_discount)
from counted o
where o.status = 'cancelled' and (o.subtotal, o.discount_total) <> (o.last_subtotal, o.last_discount)
  and (o.subtotal < o.last_subtotal or o.discount_total < o.last_discount or o.is_newly_cancelled)
union all
select 'complimentary tickets cost nothing', 'orders', o.id, o.prices::text, '0'
from counted o
where o.payment_method is null and o.prices > 0
union all
select 'amount_paid is the sum of the payments that are not voided, and the rest is amount_voided', 'orders', o.id,
  concat_ws(' ', o.amount_paid, o.amount_voided), concat_ws(' ', o.paid, o.voided)
from counted o
where (o.amount_paid, o.amount_voided) <> (o.paid, o.voided)
union all
select 'amount_refunded is the sum of the refunds, and at most what was paid', 'orders', o.id,
  o.amount_refunded::text, least(o.refunded, o.paid)::text
from counted o
where o.amount_refunded > o.amount_paid or o.amount_refunded <> o.refunded
union all
select 'an order retains at most what it would have to refund', 'orders', o.id,
  o.amount_retained::text, 'at most ' || greatest(o.kept - o.due, 0)
from counted o
where o.amount_retained > greatest(o.kept - o.due, 0)
union all
select 'nobody paid more than the order ever cost', 'orders', o.id, o.kept::text, 'at most ' || o.cost
from counted o
where o.kept > o.cost and o.is_new
union all
select 'an order is completed when nothing is due, and not before', 'orders', o.id, o.status::text,
  case o.status when 'pending' then 'completed' else 'pending' end
from counted o
where o.status = 'pending' and o.kept >= o.total and o.tickets > 0
  or o.status = 'completed' and o.amount_paid + o.amount_voided < o.total
union all
select 'an order has the moments of its status', 'orders', o.id,
  concat_ws(', ', 'completed_at ' || o.completed_at, 'cancelled_at ' || o.cancelled_at), 'those of ' || o.status
from counted o
where (o.status = 'cancelled') <> (o.cancelled_at is not null)
  or o.status = 'completed' and o.completed_at is null
  or o.status = 'pending' and o.completed_at is not null
union all
select 'a cancelled order says why, and one that expired had a deadline, which was over', 'orders', o.id,
  coalesce(o.cancellation_reason::text, 'no reason'), 'one that fits'
from counted o
where (o.status = 'cancelled') <> (o.cancellation_reason is not null)
  or o.cancellation_reason = 'expired' and (o.completed_at is not null or o.payment_due_at is null or o.payment_due_at > o.cancelled_at)
union all
select 'the courier looks at each deadline of what is due, and at no other', 'orders', o.id,
  coalesce(o.payment_check_at::text, 'never'), coalesce(o.check_at::text, 'never')
from counted o
where o.payment_check_at is distinct from o.check_at
union all
select 'Usher reminds of a deadline before it, and not within a day of a reminder', 'orders', o.id,
  o.payment_remind_at::text, 'before ' || coalesce(o.payment_due_at::text, 'nothing')
from counted o
where o.payment_due_at is null and o.payment_remind_at is not null
  or o.payment_remind_at <= o.payment_reminded_at + interval '1 day'
  or o.payment_remind_at > o.payment_due_at
union all
select 'tickets of a pending order wait', 'orders', o.id, 'active', 'awaiting_payment'
from counted o
where o.status = 'pending' and o.has_active
union all
select 'tickets of a completed order are good', 'orders', o.id, 'awaiting_payment', 'active'
from counted o
where o.status = 'completed' and o.has_awaiting
union all
select 'tickets of a cancelled order are cancelled', 'orders', o.id, 'not cancelled', 'cancelled'
from counted o
where o.status = 'cancelled' and (o.has_active or o.has_awaiting)
union all
-- One that was added by hand may have no ticket yet.
select 'an order that stands has a ticket that does', 'orders', o.id, o.status::text, 'cancelled'
from counted o
where o.status <> 'cancelled' and o.standing = 0 and o.tickets > 0
union all
select 'payment_status follows from status and amounts', 'orders', o.id, o.payment_status::text,
  format(
    'what follows from %s, total %s, paid %s, refunded %s, retained %s', o.status, o.total, o.amount_paid, o.amount_refunded, o.amount_retained
  )
from counted o
where o.payment_status::text <> case
    when o.kept < o.due then case o.kept when 0 then 'awaiting_payment' else 'partially_paid' end
    when o.kept > case o.status when 'completed' then o.total else 0 end + o.amount_retained then 'refund_due'
    when o.kept > o.amount_retained or o.amount_paid > 0 and o.amount_refunded = 0 then 'paid'
    when o.amount_paid > 0 then 'refunded'
    else 'not_required'
  end
