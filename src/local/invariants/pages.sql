-- The key of a registration page is good for one event.
select 'a page registers for its own event alone' as "check", 'orders' as "table", o.id, o.event_id::text as stored, k.event_id::text as expected
from public.orders o
join public.audit_entries e on e.object_id = o.id
join public.api_keys k on k.id = e.api_key_id
where o.source = 'page' and k.event_id <> o.event_id and o.event_id in (table asked_events)
