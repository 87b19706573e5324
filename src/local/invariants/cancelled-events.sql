-- What a cancelled event leaves.
select 'a cancelled event has no order that stands' as "check", 'orders' as "table", o.id, o.status::text as stored, 'cancelled' as expected
from public.events e
join public.orders o on o.event_id = e.id
where e.status = 'cancelled' and o.status <> 'cancelled' and e.id in (table asked_events)
union all
select 'nobody waits for an event that is cancelled', 'waiting_list_entries', w.id, w.status::text, 'cancelled'
from public.events e
join public.waiting_list_entries w on w.event_id = e.id
where e.status = 'cancelled' and w.status in ('waiting', 'offered') and e.id in (table asked_events)
