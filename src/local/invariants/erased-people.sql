-- Nothing that identifies an erased person is left, in their row or in any copy.
with attendee_fields as (
  -- An order and an entry may be edited afterwards, but then they are called something else.
  select jsonb_object_agg(c.field, c.erased_as) as fields,
    jsonb_object_agg(c.field, c.erased_as) filter (where c.field in ('name', 'email')) as contact
  from private.personal_columns c
  where c.field is not null and c.table_name = 'attendees'
),
attendees as (
  select a.*
  from public.attendees a
  where a.erased_at is not null and a.ticket_type_id in (table asked_types)
),
-- Whoever was erased, the subject of what notifies of them, and the fields that they have in no copy any more.
erased as (
  select a.id, a.order_id as subject_id, a.organisation_id, f.fields
  from attendees a, attendee_fields f
  union all
  select o.id, o.id, o.organisation_id, f.contact
  from public.orders o, attendee_fields f
  where o.email_lower = lower(f.contact ->> 'email') and o.name = f.contact ->> 'name' and o.event_id in (table asked_events)
  union all
  select w.id, w.id, w.organisation_id, f.contact
  from public.waiting_list_entries w, attendee_fields f
  where w.email_lower = lower(f.contact ->> 'email') and w.name = f.contact ->> 'name' and w.event_id in (table asked_events)
),
-- Each row that is theirs.
theirs as (
  select 'attendees' as "table", a.id, to_jsonb(a) as whole
  from attendees a
  union all
  -- Where they were its contact: erased with them, and not edited since.
  select 'orders', o.id, to_jsonb(o)
  from attendees a
  join public.orders o on o.id = a.order_id and o.updated_at = a.erased_at and o.name = 'Erased'
  union all
  select 'waiting_list_entries', w.id, to_jsonb(w)
  from attendees a
  join public.waiting_list_entries w on w.id = a.waiting_list_entry_id and w.updated_at = a.erased_at
  union all
  select 'emails', m.id, to_jsonb(m)
  from attendees a
  join public.emails m on m.attendee_id = a.id
),
-- Documents that may say something of them, with the row that they would say it of.
documents as (
  select 'an erased person is gone from notifications' as "check", 'notifications' as "table", n.id, 'their data' as stored,
    n.data::jsonb as document, e.id as person_id, e.fields
  from erased e
  join public.notifications n on n.subject_id = e.subject_id
  union all
  select 'an erased person is gone from answers that are replayed', 'idempotency_records', e.id, r.idempotency_key, r.outcome::jsonb, e.id, e.fields
  from (
    select
      i.organisation_id, i.idempotency_key, i.outcome,
      coalesce(private.people_in(i.outcome)::text[], array[private.subject_of_outcome(i.outcome)]) as subjects
    from private.idempotency_records i
  ) r
  cross join lateral unnest(r.subjects) s (subject)
  join erased e on s.subject in (e.id::text, e.subject_id::text) and e.organisation_id = r.organisation_id
)
select 'an erased person is gone from their rows' as "check", t."table", t.id, c.column_name::text as stored,
  coalesce(c.erased_as #>> '{}', 'empty') as expected
from theirs t
join private.personal_columns c on c.table_name = t."table"
where coalesce(t.whole -> c.column_name, 'null') <> c.erased_as
union all
select 'an erased person is gone from the addresses of what was sent', 'emails', m.id, m.sent_to, 'empty'
from erased e
join public.emails m on e.id = coalesce(m.order_id, m.waiting_list_entry_id)
where m.attendee_id is null and m.sent_to is not null
union all
select d."check", d."table", d.id, d.stored, 'erased'
from documents d
where exists (
  select from jsonb_path_query(
    d.document, 'strict $.** ? (@.type() == "object" && (@.id == $id || @.attendee_id == $id))', jsonb_build_object('id', d.person_id), true
  ) p (part)
  join jsonb_each(d.fields) f on p.part ? f.key and p.part -> f.key <> f.value
)
union all
select 'an erased person is gone from responses to webhooks', 'webhook_deliveries', d.id, 'a response of before', 'empty'
from attendees a
join public.notifications n on n.subject_id = a.order_id and n.data::jsonb @? format('strict $.** ? (@.id == "%s")', a.id)::jsonpath
join public.webhook_deliveries d on d.notification_id = n.id
where d.last_response_body is not null and d.last_attempt_at < a.erased_at
union all
select 'an erased person is gone from the audit trail', 'audit_entries', e.id, f.key, '{}'
from erased p
join public.audit_entries e on e.object_id = p.id
cross join lateral jsonb_each(e.changes) f
where p.fields ? f.key and f.value <> '{}'
