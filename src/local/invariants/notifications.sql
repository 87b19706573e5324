-- What happened was notified of, and has its deliveries. Logs are purged, at the earliest after a day, so only what is younger can be held against
-- them: look once a day, and everything is looked at once.
with happened as (
  select 'orders' as "table", o.id, h.type, o.id as subject_id, o.id::text as object_id, h.at
  from public.orders o
  cross join lateral (
    values
      ('order.created'::public.notification_type, o.created_at),
      ('order.completed', case when o.status = 'completed' then o.completed_at end),
      ('order.cancelled', o.cancelled_at),
      ('order.expired', case when o.cancellation_reason = 'expired' then o.cancelled_at end)
  ) h (type, at)
  where o.event_id in (table asked_events)
    -- One that was added by hand is announced with its first ticket.
    and exists (select from public.attendees a where a.order_id = o.id)
  union all
  select 'payments', p.id, 'payment.recorded', p.order_id, p.id::text, p.created_at
  from public.payments p
  where p.event_id in (table asked_events)
  union all
  select 'payment_voids', v.id, 'payment.voided', p.order_id, p.id::text, v.created_at
  from public.payment_voids v
  join public.payments p on p.id = v.payment_id
  where p.event_id in (table asked_events)
  union all
  select 'refunds', r.id, 'refund.recorded', r.order_id, r.id::text, r.created_at
  from public.refunds r
  where r.event_id in (table asked_events)
  union all
  select 'attendees', a.id, h.type, a.order_id, a.id::text, h.at
  from public.attendees a
  cross join lateral (
    values
      ('attendee.cancelled'::public.notification_type, a.cancelled_at),
      ('attendee.erased', a.erased_at),
      (
        'attendee.created',
        case when exists (select from public.attendees f where f.order_id = a.order_id and f.created_at < a.created_at) then a.created_at end
      )
  ) h (type, at)
  where a.ticket_type_id in (table asked_types)
  union all
  select 'check_ins', c.id, h.type, a.order_id, c.id::text, h.at
  from public.check_ins c
  join public.attendees a on a.id = c.attendee_id
  cross join lateral (
    values
      (case c.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type, c.created_at),
      ('attendee.check_in_undone', c.undone_at)
  ) h (type, at)
  where c.result = 'accepted' and c.event_id in (table asked_events)
  union all
  select 'waiting_list_entries', w.id, h.type, w.id, w.id::text, h.at
  from public.waiting_list_entries w
  cross join lateral (
    values
      ('waiting_list_entry.created'::public.notification_type, w.created_at),
      ('waiting_list_entry.offered', w.offered_at),
      (
        case when w.status in ('accepted', 'expired', 'cancelled') then ('waiting_list_entry.' || w.status)::public.notification_type end,
        w.created_at
      )
  ) h (type, at)
  where w.created_at > now() - interval '23 hours' and w.event_id in (table asked_events)
)
select 'what happened has its notification' as "check", h."table", h.id, 'none' as stored, h.type::text as expected
from happened h
left join (
  select n.type, n.subject_id,
    -- Of an arrival the scan; of what follows from a payment the payment.
    case
      when n.type in ('attendee.checked_in', 'attendee.checked_out', 'attendee.check_in_undone') then n.data #>> '{check_in,id}'
      when n.type in ('order.created', 'order.completed', 'order.cancelled', 'order.expired') then n.subject_id::text
      else n.data ->> 'id'
    end as object_id
  from public.notifications n
  where n.created_at > now() - interval '23 hours'
) t using (object_id, type, subject_id)
where h.at > now() - interval '23 hours' and h.type is not null and t.type is null
union all
select 'a notification is found by its subject', 'notifications', n.id, n.subject_id::text, w.subject_id::text
from public.notifications n
cross join lateral (select coalesce(n.data ->> 'order_id', n.data ->> 'id', n.data ->> 'waiting_list_entry_id')::uuid as subject_id) w
-- Of people, and not compared above.
where n.created_at > now() - interval '23 hours' and n.type in ('attendee.updated', 'email.bounced', 'order.reopened', 'order.updated')
  and n.subject_id is distinct from w.subject_id
  and ($1::uuid is null or w.subject_id in (select o.id from public.orders o where o.event_id = $1))
union all
select
  'a notification has a delivery for each endpoint that was subscribed', 'notifications', n.id, 'none', 'a delivery to ' || w.id
from public.notifications n
join public.webhook_endpoints w on w.organisation_id = n.organisation_id and n.type = any (private.subscribed_types(w.types))
where n.created_at > now() - interval '23 hours'
  and ($1::uuid is null or n.subject_id in (select o.id from public.orders o where o.event_id = $1))
  -- Endpoints that have been what they are since well before it.
  and w.status = 'enabled' and w.event_ids = '{}' and w.updated_at < n.created_at - interval '1 minute'
  and not exists (
    select from public.webhook_deliveries d where d.notification_id = n.id and d.webhook_endpoint_id = w.id
  )
