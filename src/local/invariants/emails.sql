-- What is to be e-mailed is queued, and what somebody switched off is not.
select 'a ticket that is to be e-mailed is queued' as "check", 'attendees' as "table", a.id, a.ticket_email_status::text as stored, 'an e-mail that is queued' as expected
from public.attendees a
where (
    a.ticket_email_status = 'queued'
      and not exists (select from public.emails m where m.attendee_id = a.id and m.kind = 'ticket' and m.status = 'queued')
    or a.ticket_email_status = 'waiting' and a.status = 'active'
  )
  and a.ticket_type_id in (table asked_types)
union all
select 'the buyer of an order that expired is told so once', 'orders', o.id, m.times::text, m.expected::text
from public.orders o
cross join lateral (
  select
    (select count(*) from public.emails m where m.order_id = o.id and m.kind = 'order_expired' and m.created_at = o.cancelled_at) as times,
    case when o.cancellation_reason = 'expired' and o.send_email then 1 else 0 end as expected
) m
where o.cancelled_at > now() - interval '23 hours' and m.times <> m.expected and o.event_id in (table asked_events)
union all
-- One that is being queued at that moment is cancelled when it is claimed, hence the minute.
select 'whoever switched off the messages of an event is queued none after that', 'emails', m.id, concat_ws(' ', m.kind, m.status), 'none'
from public.email_opt_outs u
join public.attendees a on a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
join public.emails m on m.attendee_id = a.id
where private.can_be_switched_off(m.kind)
  and m.created_at > u.created_at + interval '1 minute'
  -- It may have been queued for whoever had the ticket before.
  and (m.status = 'queued' and a.updated_at <= m.created_at or lower(m.sent_to) = u.email_lower)
  and u.event_id in (table asked_events)
union all
select 'no address is sent a message twice', 'messages', m.organiser_message_id, count(*)::text, '1'
from public.emails m
join public.attendees a on a.id = m.attendee_id
where m.kind = 'organiser_message' and m.status in ('sent', 'delivered') and a.ticket_type_id in (table asked_types)
group by m.organiser_message_id, lower(m.sent_to)
having count(*) > 1
union all
select 'whoever switched off the messages of an event has a ticket of it', 'email_opt_outs', u.event_id, 'none', 'a ticket'
from public.email_opt_outs u
where u.event_id in (table asked_events)
  and not exists (
    select from public.attendees a
    where a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
  )
