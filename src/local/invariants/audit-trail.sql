-- What somebody did is in the audit trail, of which what is younger than a day is kept for certain.
with done as (
  select 'orders' as "table", 'order'::public.audit_object as object, o.id, 'created'::public.audit_action as action, o.created_at as at
  from public.orders o
  where o.event_id in (table asked_events)
  union all
  select 'payments', 'payment', p.id, 'created', p.created_at
  from public.payments p
  where p.event_id in (table asked_events)
  union all
  select 'payment_voids', 'payment_void', v.id, 'created', v.created_at
  from public.payment_voids v
  join public.payments p on p.id = v.payment_id
  where p.event_id in (table asked_events)
  union all
  select 'refunds', 'refund', r.id, 'created', r.created_at
  from public.refunds r
  where r.event_id in (table asked_events)
  union all
  select 'check_ins', 'check_in', c.id, 'updated', c.undone_at
  from public.check_ins c
  where c.event_id in (table asked_events)
  union all
  select 'waiting_list_entries', 'waiting_list_entry', w.id, 'created', w.created_at
  from public.waiting_list_entries w
  where w.event_id in (table asked_events)
)
select 'what somebody did is in the audit trail' as "check", d."table", d.id, 'none' as stored, d.object || ' ' || d.action as expected
from done d
where d.at > now() - interval '23 hours'
  and not exists (
    select from public.audit_entries e
    where e.object_id = d.id and e.object_type = d.object and e.action = d.action
  )
