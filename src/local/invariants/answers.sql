-- Answers are kept by the key of a question, and those of sensitive questions apart from all that leaves the database.
select 'an answer is of a question of the event, and a sensitive one is apart' as "check", 'attendees' as "table", a.id,
  g.key || ' in ' || g.kept_in as stored, coalesce(case when q.sensitive then 'sensitive_answers' else 'answers' end, 'no answer') as expected
from public.attendees a
cross join lateral (
  select k.key, 'answers' as kept_in from jsonb_object_keys(a.answers) k (key)
  union all
  select k.key, 'sensitive_answers' from jsonb_object_keys(a.sensitive_answers) k (key)
) g
left join public.questions q on q.event_id = a.event_id and q.key = g.key
where a.ticket_type_id in (table asked_types)
  and (q.id is null or q.sensitive <> (g.kept_in = 'sensitive_answers'))
union all
select 'a sensitive answer is in no notification', 'notifications', n.id, q.key, 'none'
from public.questions q
join public.attendees a on a.event_id = q.event_id
join public.notifications n on n.subject_id in (a.id, a.order_id)
where q.sensitive and q.event_id in (select e.id from asked_events e)
  and jsonb_path_exists(n.data::jsonb, '$.**.answers ? (@.keyvalue().key == $key)', jsonb_build_object('key', q.key))
union all
select 'a sensitive answer is in no audit entry', 'audit_entries', t.id, 'its answers', '{}'
from public.audit_entries t
where t.object_type = 'attendee' and t.changes -> 'sensitive_answers' <> '{}'
  and t.object_id in (select a.id from public.attendees a where a.ticket_type_id in (table asked_types))
