-- The order of the waiting list, and what became of its offers.
select 'whoever waits joined after everybody who was offered the same' as "check", 'waiting_list_entries' as "table", w.id,
  'waiting' as stored, 'offered before ' || o.last_id as expected
from (
  select w.ticket_type_id, max(w.id::text)::uuid as last_id
  from public.waiting_list_entries w
  where w.offered_at is not null and w.event_id in (table asked_events)
  group by w.ticket_type_id
) o
join public.waiting_list_entries w on w.ticket_type_id = o.ticket_type_id and w.status = 'waiting' and w.id < o.last_id
union all
select 'an offer that was accepted has one attendee, and no other has any', 'waiting_list_entries', w.id, c.tickets::text, c.expected::text
from public.waiting_list_entries w
cross join lateral (
  select
    (select count(*) from public.attendees a where a.waiting_list_entry_id = w.id) as tickets,
    case w.status when 'accepted' then 1 else 0 end as expected
) c
where c.tickets <> c.expected
  -- A cancelled ticket may be deleted.
  and (
    c.tickets > 0
    or w.updated_at > now() - interval '23 hours' and not exists (
      select from public.audit_entries e
      where e.object_type = 'attendee' and e.action = 'deleted' and e.created_at > now() - interval '23 hours'
        and e.changes #>> '{waiting_list_entry_id,from}' = w.id::text
    )
  )
  and w.event_id in (table asked_events)
