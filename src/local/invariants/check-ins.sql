-- The door: who is in, recounted from the scans that stand.
with scans as (
  select c.*
  from public.check_ins c
  where c.result = 'accepted' and c.undone_at is null and c.event_id in (table asked_events)
),
entries as (
  select c.attendee_id, min(c.scanned_at) as first_at, bool_or(c.exited_at is null and (c.left_at > c.scanned_at) is not true) as is_inside
  from (
    select
      c.*,
      max(c.exited_at) over (
        partition by c.attendee_id order by c.scanned_at, c.id rows between unbounded preceding and 1 preceding
      ) as left_at
    from scans c
    where c.direction = 'entry'
  ) c
  group by c.attendee_id
)
select
  case when a.checked_in_at is distinct from n.first_at then 'checked_in_at is the first entry that stands' else 'inside is an entry that nobody left' end
    as "check",
  'attendees' as "table", a.id, concat_ws(' ', a.checked_in_at, a.inside) as stored, concat_ws(' ', n.first_at, n.is_inside) as expected
from public.attendees a
left join entries n on n.attendee_id = a.id
where (a.checked_in_at is distinct from n.first_at or a.inside <> coalesce(n.is_inside, false))
  and a.ticket_type_id in (table asked_types)
union all
select
  'nobody came in twice at one point, on one day, without leaving where that lets in again', 'attendees', c.attendee_id, count(*)::text, '1'
from scans c
join public.events e on e.id = c.event_id
left join public.check_in_points p on p.id = c.check_in_point_id
where c.direction = 'entry'
  and (coalesce(p.admission, 're_entry') <> 're_entry' or c.exited_at is null)
  -- Days are those of the time zone of the event, which may be another since.
  and (p.admission is distinct from 'once_per_day' or c.scanned_at > now() - interval '23 hours')
group by c.attendee_id, c.check_in_point_id, case p.admission when 'once_per_day' then (c.scanned_at at time zone e.timezone)::date end
having count(*) > 1
union all
select
  'who left has an exit that stands, and who is inside has none', 'check_ins', c.id,
  coalesce('left at ' || c.exited_at, 'inside'), case when x.earlier_check_in_id is null then 'inside' else 'left' end
from scans c
left join (select distinct x.earlier_check_in_id from scans x where x.direction = 'exit') x on x.earlier_check_in_id = c.id
where c.direction = 'entry' and (c.exited_at is not null) <> (x.earlier_check_in_id is not null)
