-- invariants of opt outs and erasure. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create type private.erased_row as (
  id uuid,
  subject_id uuid,
  organisation_id uuid,
  fields jsonb
);

create or replace function private.verify_former_holders (
  event_id uuid,
  contact jsonb
)
  returns setof private.disagreement
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set jit to 'off'
  set enable_seqscan to 'off'
  as $$
declare
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_former_holders.event_id);
begin
  return query
  select 'a former holder who was erased is gone from all sides of a change', 'audit_entries', e.id, 'some of their data', 'all or nothing'
  from public.audit_entries e
  where e.object_type = 'attendee' and e.changes ?& '{name,email}'
    and (
      (e.changes -> 'name' ? 'from') <> (e.changes -> 'email' ? 'from')
      or e.action = 'updated' and (e.changes -> 'name' ? 'to') <> (e.changes -> 'email' ? 'to')
    )
    and (
      verify_former_holders.event_id is null
      or exists (select from public.attendees a where a.id = e.object_id and a.ticket_type_id = any (v_type_ids))
    );

  return query
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
  select 'a former holder who was erased is gone from notifications', 'notifications', d.id, 'their data', 'erased'
  from (
    select n.id, n.data, a.id as attendee_id
    from held h
    join public.attendees a on a.id = h.object_id
    join public.notifications n on n.subject_id = a.order_id
      -- A change that waited for another one has a time before it. No statement of the API takes a minute.
      and n.created_at > coalesce(h.since + interval '1 minute', '-infinity')
      and n.created_at < coalesce(h.until - interval '1 minute', 'infinity')
    where verify_former_holders.event_id is null or a.ticket_type_id = any (v_type_ids)
    -- Else every notification is read for it.
    offset 0
  ) d
  where private.says_something_of(d.data::jsonb, d.attendee_id, contact);
end
$$;

create or replace function private.verify_outbox (
  event_id uuid
)
  returns setof private.disagreement
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set jit to 'off'
  set enable_seqscan to 'off'
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
    and not exists (select from told t where t.object_id = h.object_id and t.type = h.type);

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

create or replace function private.verify_people (
  event_id uuid
)
  returns setof private.disagreement
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set jit to 'off'
  set enable_seqscan to 'off'
  as $$
declare
  v_fields constant jsonb := (
    select jsonb_object_agg(c.field, c.erased_as) from private.personal_columns c where c.field is not null and c.table_name = 'attendees'
  );
  -- An order and an entry may be edited afterwards, but then they are called something else.
  v_contact constant jsonb := (select jsonb_object_agg(f.key, f.value) from jsonb_each(v_fields) f where f.key in ('name', 'email'));
  v_table name;
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_people.event_id);
  v_attendees public.attendees[];
  v_buyers private.erased_row[];
  v_waited private.erased_row[];
  v_erased private.erased_row[];
begin
  v_attendees := array(
    select a
    from public.attendees a
    where a.erased_at is not null and (verify_people.event_id is null or a.ticket_type_id = any (v_type_ids))
  );
  v_buyers := array(
    select row(o.id, o.id, o.organisation_id, v_contact)::private.erased_row
    from public.orders o
    where o.email = v_contact ->> 'email' and o.name = v_contact ->> 'name'
      and (verify_people.event_id is null or o.event_id = verify_people.event_id)
  );
  v_waited := array(
    select row(w.id, w.id, w.organisation_id, v_contact)::private.erased_row
    from public.waiting_list_entries w
    where w.email = v_contact ->> 'email' and w.name = v_contact ->> 'name'
      and (verify_people.event_id is null or w.event_id = verify_people.event_id)
  );
  v_erased := v_buyers || v_waited || array(
    select row(a.id, a.order_id, a.organisation_id, v_fields)::private.erased_row from unnest(v_attendees) a
  );

  -- Each column that is declared, of whatever is theirs.
  foreach v_table in array '{attendees,orders,waiting_list_entries,emails}'::name[] loop
    return query execute format(
      $sql$
        select 'an erased person is gone from their rows', %L, t.id, c.column_name::text, coalesce(c.erased_as #>> '{}', 'empty')
        from unnest($1) a
        join public.%I t on %s
        join private.personal_columns c on c.table_name = %1$L
        where coalesce(to_jsonb(t) -> c.column_name, 'null') <> c.erased_as
      $sql$,
      v_table, v_table,
      case v_table
        when 'attendees' then 't.id = a.id'
        -- Where they were its contact: erased with them, and not edited since.
        when 'orders' then $on$t.id = a.order_id and t.updated_at = a.erased_at and t.name = 'Erased'$on$
        when 'waiting_list_entries' then 't.id = a.waiting_list_entry_id and t.updated_at = a.erased_at'
        else 't.attendee_id = a.id'
      end
    ) using v_attendees;
  end loop;

  return query
  select 'an erased person is gone from the addresses of what was sent', 'emails', m.id, m.sent_to, 'empty'
  from (
    select m.* from unnest(v_buyers) b join public.emails m on m.order_id = b.id
    union all
    select m.* from unnest(v_waited) w join public.emails m on m.waiting_list_entry_id = w.id
  ) m
  where m.attendee_id is null and m.sent_to is not null;

  return query
  select 'an erased person is gone from notifications', 'notifications', n.id, 'their data', 'erased'
  from unnest(v_erased) a
  join public.notifications n on n.subject_id = a.subject_id
  where private.says_something_of(n.data::jsonb, a.id, a.fields);

  return query
  select 'an erased person is gone from responses to webhooks', 'webhook_deliveries', d.id, 'a response of before', 'empty'
  from unnest(v_attendees) a
  join public.notifications n on n.subject_id = a.order_id and n.data::jsonb @? format('strict $.** ? (@.id == "%s")', a.id)::jsonpath
  join public.webhook_deliveries d on d.notification_id = n.id
  where d.last_response_body is not null and d.last_attempt_at < a.erased_at;

  return query
  select 'an erased person is gone from the audit trail', 'audit_entries', e.id, f.key, '{}'
  from unnest(v_erased) a
  join public.audit_entries e on e.object_id = a.id
  cross join lateral jsonb_each(e.changes) f
  where a.fields ? f.key and f.value <> '{}';

  if v_erased <> '{}' then
    return query
    select 'an erased person is gone from answers that are replayed', 'idempotency_records', d.id, d.idempotency_key, 'erased'
    from (
      select k.id, k.fields, r.idempotency_key, r.outcome
      from (
        -- Once for each record, and not for each that somebody may be in.
        select
          i.organisation_id, i.idempotency_key, i.outcome,
          case when private.is_of_many(i.outcome) then private.people_in(i.outcome)::text[] else array[private.subject_of_outcome(i.outcome)] end
            as subjects
        from private.idempotency_records i
        offset 0
      ) r
      cross join lateral unnest(r.subjects) s (subject)
      join (
        select a.id, a.organisation_id, a.fields, a.id::text as subject from unnest(v_erased) a
        union all
        select a.id, a.organisation_id, a.fields, a.subject_id::text from unnest(v_erased) a where a.subject_id <> a.id
      ) k on k.subject = s.subject and k.organisation_id = r.organisation_id
      -- Else each record is read for each of them.
      offset 0
    ) d
    where private.says_something_of(d.outcome::jsonb, d.id, d.fields);
  end if;

  return query select * from private.verify_former_holders(event_id, v_contact);
end
$$;

revoke all on function private.verify_former_holders(uuid, jsonb) from public;
