-- Discounts, and the uses of promo codes.
select 'a discount is of a code and at most the price' as "check", 'attendees' as "table", a.id,
  a.discount::text as stored, format('at most %s, with a code', a.price) as expected
from public.attendees a
where (a.discount not between 0 and a.price or a.discount > 0 and a.promo_code_id is null)
  and a.ticket_type_id in (table asked_types)
union all
-- An order keeps what it has when the amount of its code is changed.
select 'an order has at most the amount off of its code', 'orders', o.id, s.discount::text, 'at most ' || c.amount_off
from public.orders o
join public.promo_codes c on c.id = o.promo_code_id
cross join lateral (
  select sum(a.discount) as discount from public.attendees a where a.order_id = o.id and a.status <> 'cancelled'
) s
where s.discount > c.amount_off
  and o.created_at > now() - interval '23 hours'
  and not exists (
    select from public.audit_entries e
    where e.object_id = c.id and e.object_type = 'promo_code' and e.changes ?| '{amount_off,percent_off}'
  )
  and o.event_id in (table asked_events)
union all
select d."check", 'promo_codes', c.id, d.stored, d.expected
from public.promo_codes c
left join (
  select a.promo_code_id, count(*) as times
  from public.attendees a
  where a.promo_code_id is not null and a.status <> 'cancelled' and a.ticket_type_id in (table asked_types)
  group by a.promo_code_id
) u on u.promo_code_id = c.id
cross join lateral (
  select 'times_redeemed is how many tickets have the code' as "check", c.times_redeemed::text as stored, coalesce(u.times, 0)::text as expected
  where c.times_redeemed <> coalesce(u.times, 0)
  union all
  select 'no more uses of a code than it allows', u.times::text, 'at most ' || c.max_redemptions
  where u.times > c.max_redemptions
) d
where c.event_id in (table asked_events)
