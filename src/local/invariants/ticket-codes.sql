-- A unique index sees to it; one that was damaged does not.
select 'no two tickets have one code' as "check", 'attendees' as "table", min(a.id::text)::uuid as id, count(*)::text as stored, '1' as expected
from public.attendees a
where a.ticket_type_id in (table asked_types)
group by a.organisation_id, a.ticket_code
having count(*) > 1
