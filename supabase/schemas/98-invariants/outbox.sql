-- Invariants of the outbox: what happened was notified of, queued or fanned out, e-mailed, and is in the audit trail. Logs are purged,
-- at the earliest after a day, so only what is younger can be held against them: look once a day, and everything is looked at once.

create function private.verify_outbox(event_id uuid) returns setof private.disagreement
language plpgsql stable set search_path = ''
as $$
declare
  v_since timestamptz := now() - interval '23 hours';
  v_order_ids uuid[] := array(select o.id from public.orders o where o.event_id = verify_outbox.event_id);
begin
  return query
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
    where (o.created_at > v_since or o.completed_at > v_since or o.cancelled_at > v_since)
      and (verify_outbox.event_id is null or o.event_id = verify_outbox.event_id)
      -- One that was added by hand is announced with its first ticket.
      and exists (select from public.attendees a where a.order_id = o.id)
    union all
    select 'payments', p.id, 'payment.recorded', p.order_id, p.id::text, p.created_at
    from public.payments p
    where p.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'payment_voids', v.id, 'payment.voided', p.order_id, p.id::text, v.created_at
    from public.payment_voids v
    join public.payments p on p.id = v.payment_id
    where v.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'refunds', r.id, 'refund.recorded', r.order_id, r.id::text, r.created_at
    from public.refunds r
    where r.created_at > v_since and (verify_outbox.event_id is null or r.event_id = verify_outbox.event_id)
    union all
    select 'attendees', a.id, h.type, a.order_id, a.id::text, h.at
    from public.attendees a
    cross join lateral (
      values ('attendee.cancelled'::public.notification_type, a.cancelled_at), ('attendee.erased', a.erased_at)
    ) h (type, at)
    where (a.cancelled_at > v_since or a.erased_at > v_since)
      and (verify_outbox.event_id is null or a.order_id = any (v_order_ids))
    union all
    select 'check_ins', c.id, h.type, a.order_id, c.id::text, h.at
    from public.check_ins c
    join public.attendees a on a.id = c.attendee_id
    cross join lateral (
      values
        (case c.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type, c.created_at),
        ('attendee.check_in_undone', c.undone_at)
    ) h (type, at)
    where c.result = 'accepted' and (c.created_at > v_since or c.undone_at > v_since)
      and (verify_outbox.event_id is null or c.event_id = verify_outbox.event_id)
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
    where w.created_at > v_since and (verify_outbox.event_id is null or w.event_id = verify_outbox.event_id)
  ),
  told as (
    select n.type, n.subject_id, n.created_at,
      -- Of an arrival the scan; of what follows from a payment the payment.
      case
        when n.type in ('attendee.checked_in', 'attendee.checked_out', 'attendee.check_in_undone') then n.data #>> '{check_in,id}'
        when n.type in ('order.created', 'order.completed', 'order.cancelled', 'order.expired') then n.subject_id::text
        else n.data ->> 'id'
      end as object_id
    from public.notifications n
    where n.created_at > v_since
  )
  select 'what happened has its notification', h."table", h.id, 'none', h.type::text
  from happened h
  where h.at > v_since and h.type is not null
    and not exists (select from told t where t.object_id = h.object_id and t.type = h.type and t.subject_id = h.subject_id);

  return query
  select
    'a notification is found by its subject', 'notifications', n.id, n.subject_id::text, w.subject_id::text
  from public.notifications n
  cross join lateral private.subject_of_notification(n.type, n.data) w (subject_id)
  -- Of people, and not compared above.
  where n.created_at > v_since and n.type in ('attendee.updated', 'email.bounced', 'order.reopened')
    and n.subject_id is distinct from w.subject_id
    and (verify_outbox.event_id is null or w.subject_id = any (v_order_ids));

  return query
  select
    'a notification waits for its fan-out, or has a delivery for each endpoint that was subscribed', 'notifications', n.id, 'none',
    'a delivery to ' || s.webhook_endpoint_id
  from public.notifications n
  join private.webhook_subscriptions s on s.organisation_id = n.organisation_id and n.type = any (s.types)
  where n.created_at > v_since and n.type <> 'webhook_endpoint.test'
    and (verify_outbox.event_id is null or n.subject_id = any (v_order_ids))
    -- Endpoints that have been what they are since before it: which of several subscriptions holds, the fan-out alone decides.
    and s.is_enabled and s.event_ids = '{}' and not pg_visible_in_snapshot(n.transaction_id, s.snapshot) and n.transaction_id <> s.transaction_id
    and not exists (
      select from private.webhook_subscriptions l where l.webhook_endpoint_id = s.webhook_endpoint_id and l.id <> s.id
    )
    and not exists (
      select from public.webhook_deliveries d where d.notification_id = n.id and d.webhook_endpoint_id = s.webhook_endpoint_id
    )
    and not exists (
      select from private.notification_queue q where q.organisation_id = n.organisation_id and q.transaction_id = n.transaction_id
    );

  return query
  select 'a ticket that is to be e-mailed is queued', 'attendees', a.id, a.ticket_email_status::text, 'an e-mail that is queued'
  from public.attendees a
  where (
      a.ticket_email_status = 'queued'
        and not exists (select from public.emails m where m.attendee_id = a.id and m.kind = 'ticket' and m.status = 'queued')
      or a.ticket_email_status = 'waiting' and a.status = 'active'
    )
    and (verify_outbox.event_id is null or a.order_id = any (v_order_ids));

  -- One that is being queued at that moment is cancelled when it is claimed, hence the minute.
  return query
  select 'whoever switched off the messages of an event is queued none after that', 'emails', m.id, concat_ws(' ', m.kind, m.status), 'none'
  from public.email_opt_outs u
  join public.attendees a on a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
  join public.emails m on m.attendee_id = a.id
  where private.can_be_switched_off(m.kind)
    and m.created_at > u.created_at + interval '1 minute'
    -- It may have been queued for whoever had the ticket before.
    and (m.status = 'queued' and a.updated_at <= m.created_at or lower(m.sent_to) = u.email_lower)
    and (verify_outbox.event_id is null or u.event_id = verify_outbox.event_id);

  return query
  select 'whoever switched off the messages of an event has a ticket of it', 'email_opt_outs', u.event_id, 'none', 'a ticket'
  from public.email_opt_outs u
  where (verify_outbox.event_id is null or u.event_id = verify_outbox.event_id)
    and not exists (
      select from public.attendees a
      where a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
    );

  return query
  with done as (
    select 'orders' as "table", 'order'::public.audit_object as object, o.id, o.id as object_id, 'created'::public.audit_action as action
    from public.orders o
    where o.created_at > v_since and (verify_outbox.event_id is null or o.event_id = verify_outbox.event_id)
    union all
    select 'payments', 'payment', p.id, p.id, 'created'
    from public.payments p
    where p.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'payment_voids', 'payment_void', v.id, v.id, 'created'
    from public.payment_voids v
    join public.payments p on p.id = v.payment_id
    where v.created_at > v_since and (verify_outbox.event_id is null or p.event_id = verify_outbox.event_id)
    union all
    select 'refunds', 'refund', r.id, r.id, 'created'
    from public.refunds r
    where r.created_at > v_since and (verify_outbox.event_id is null or r.event_id = verify_outbox.event_id)
    union all
    select 'check_ins', 'check_in', c.id, c.id, 'updated'
    from public.check_ins c
    where c.undone_at > v_since and (verify_outbox.event_id is null or c.event_id = verify_outbox.event_id)
    union all
    select 'waiting_list_entries', 'waiting_list_entry', w.id, w.id, 'created'
    from public.waiting_list_entries w
    where w.created_at > v_since and (verify_outbox.event_id is null or w.event_id = verify_outbox.event_id)
  )
  select 'what somebody did is in the audit trail', d."table", d.id, 'none', d.object || ' ' || d.action
  from done d
  where not exists (
    select from public.audit_entries e
    where e.object_id = d.object_id and e.object_type = d.object and e.action = d.action
  );
end
$$;
