-- Places of events and ticket types: sold, and held by offers.
with sold as (
  select a.ticket_type_id, count(*) as places
  from public.attendees a
  where a.status <> 'cancelled' and a.ticket_type_id in (table asked_types)
  group by a.ticket_type_id
),
offered as (
  select
    w.ticket_type_id, count(*) filter (where w.status = 'offered') as places,
    min(w.id::text) filter (where w.status = 'waiting')::uuid as first_waiting
  from public.waiting_list_entries w
  where w.status in ('offered', 'waiting') and w.ticket_type_id in (table asked_types)
  group by w.ticket_type_id
),
types as (
  select t.*, coalesce(s.places, 0) as sold, coalesce(h.places, 0) as held, h.first_waiting
  from public.ticket_types t
  left join sold s on s.ticket_type_id = t.id
  left join offered h on h.ticket_type_id = t.id
  where t.event_id in (table asked_events)
),
events as (
  select e.*, y.taken
  from public.events e
  join (select y.event_id, sum(y.sold + y.held) as taken from types y group by y.event_id) y on y.event_id = e.id
)
select 'quantity_sold is how many hold a ticket' as "check", 'ticket_types' as "table", t.id, t.quantity_sold::text as stored, t.sold::text as expected
from types t
where t.quantity_sold <> t.sold
union all
select 'quantity_held is how many offers stand', 'ticket_types', t.id, t.quantity_held::text, t.held::text
from types t
where t.quantity_held <> t.held
union all
select 'no more tickets and offers than there are of a type', 'ticket_types', t.id, (t.sold + t.held)::text, 'at most ' || t.quantity
from types t
where t.sold + t.held > t.quantity
union all
select 'no more tickets and offers than the event has places', 'events', e.id, e.taken::text, 'at most ' || e.capacity
from events e
where e.taken > e.capacity
union all
-- The first who waits stands for all: whoever comes after them would be told of as well. Where nobody is offered anything, places may be free.
select 'nobody waits for a place that is free', 'waiting_list_entries', t.first_waiting, 'waiting', 'offered'
from types t
join events e on e.id = t.event_id
where t.first_waiting is not null
  and e.status = 'published' and e.ends_at > now()
  and t.status = 'active' and (t.sales_end_at is null or t.sales_end_at > now())
  and (t.quantity is null or t.sold + t.held < t.quantity)
  and (e.capacity is null or e.taken < e.capacity)
