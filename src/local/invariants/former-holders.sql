-- Who had a ticket until it passed to somebody else, and was erased: the trail has nothing of them, so it tells when they had it.
with changes as (
  select
    e.object_id,
    e.created_at,
    e.changes ? 'email' and not e.changes -> 'email' ? 'from' or e.changes ? 'name' and not e.changes -> 'name' ? 'from' as was_erased,
    e.changes ? 'email' and not e.changes -> 'email' ? 'to' or e.changes ? 'name' and not e.changes -> 'name' ? 'to' as became_erased,
    lag(e.created_at) over later as before_at,
    lead(e.created_at) over later as after_at
  from public.audit_entries e
  where e.object_type = 'attendee' and e.action = 'updated' and e.changes ?| '{name,email}'
  window later as (partition by e.object_id order by e.id)
),
held as (
  select c.object_id, c.before_at as since, c.created_at as until from changes c where c.was_erased
  union
  select c.object_id, c.created_at, c.after_at from changes c where c.became_erased
)
select 'a former holder who was erased is gone from all sides of a change' as "check", 'audit_entries' as "table", e.id,
  'some of their data' as stored, 'all or nothing' as expected
from public.audit_entries e
where e.object_type = 'attendee' and e.changes ?& '{name,email}'
  and (
    (e.changes -> 'name' ? 'from') <> (e.changes -> 'email' ? 'from')
    or e.action = 'updated' and (e.changes -> 'name' ? 'to') <> (e.changes -> 'email' ? 'to')
  )
  and ($1::uuid is null or e.object_id in (select a.id from public.attendees a where a.ticket_type_id in (table asked_types)))
union all
select 'a former holder who was erased is gone from notifications', 'notifications', n.id, 'their data', 'erased'
from held h
join public.attendees a on a.id = h.object_id
join public.notifications n on n.subject_id = a.order_id
  -- A change that waited for another one has a time before it. No statement of the API takes a minute.
  and n.created_at > coalesce(h.since + interval '1 minute', '-infinity')
  and n.created_at < coalesce(h.until - interval '1 minute', 'infinity')
where a.ticket_type_id in (table asked_types)
  and exists (
    select from jsonb_path_query(
      n.data::jsonb, 'strict $.** ? (@.type() == "object" && (@.id == $id || @.attendee_id == $id))', jsonb_build_object('id', a.id), true
    ) p (part)
    join private.personal_columns c on c.table_name = 'attendees' and c.field in ('name', 'email')
    where p.part ? c.field and p.part -> c.field <> c.erased_as
  )
