-- The courier's side of e-mails: claim_emails leases what is due, with what it shows (email-contents.sql); settle_emails records what became
-- of it, and record_email_event what the mail service says later. A result under a lease that another has replaced is ignored. All security
-- definer, as 90-outbox/webhook-claims.sql.

-- Organisations with queued e-mails, by a loose index scan: one look-up each, however many e-mails there are. Only
-- one index has the order that is asked for.
create function private.organisations_with_queued_emails() returns uuid[]
language plpgsql stable set search_path = ''

as $$
begin
  return array(
    with recursive queued as (
      (
        select e.organisation_id
        from public.emails e
        where e.status = 'queued'
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit 1
      )
      union all
      select n.organisation_id
      from queued q
      cross join lateral (
        select e.organisation_id
        from public.emails e
        where e.status = 'queued' and e.organisation_id > q.organisation_id
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit 1
      ) n
    )
    select queued.organisation_id from queued
  );
end
$$;

-- Whether the person that it is for was erased, or, of one that was sent, the person whom it went to.
create function private.is_erased(email public.emails) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
begin
  return email.sent_at is not null and email.sent_to is null
    or exists (select from public.attendees a where a.id = email.attendee_id and a.erased_at is not null)
    or exists (select from public.orders o where o.id = email.order_id and o.email = private.erased_fields() ->> 'email')
    or exists (
      select from public.waiting_list_entries w where w.id = email.waiting_list_entry_id and w.email = private.erased_fields() ->> 'email'
    );
end
$$;

-- Whether another e-mail has brought its message to the address, or is to: a cancelled one may have been queued again after the message was.
create function private.is_told_otherwise(email public.emails, attendee public.attendees) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return exists (
    select from public.emails o
    where o.organiser_message_id = email.organiser_message_id and lower(o.sent_to) = attendee.email_lower
      and o.status in ('sent', 'delivered') and o.id <> email.id
  ) or exists (
    select from public.emails o
    where o.attendee_id = any (private.tickets_of_address(email.kind, attendee)) and o.organiser_message_id = email.organiser_message_id
      and coalesce(o.status = 'queued', false) and o.id <> email.id and (o.claim is not null or o.id < email.id)
  );
end
$$;

-- Whether there is nothing left to tell: the ticket, order or payment is no more what the e-mail says, or the event is again what it was.
create function private.is_obsolete(email public.emails) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
begin
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = email.order_id;
  if private.is_erased(email) or private.can_be_switched_off(email.kind) and private.has_opted_out(v_attendee) then
    return true;
  end if;
  -- Of a ticket the attendee says so: see 60-attendees/rules.sql.
  if email.kind <> 'ticket' and private.takes_no_mail(coalesce(
    v_attendee.email, v_order.email, (select w.email from public.waiting_list_entries w where w.id = email.waiting_list_entry_id)
  )) then
    return true;
  end if;
  return case email.kind
    when 'ticket' then v_attendee.status <> 'active'
    when 'ticket_cancelled' then v_attendee.status <> 'cancelled'
    when 'ticket_passed_on' then email.sent_to is null
    when 'event_changed' then v_attendee.status = 'cancelled' or (
      select e.status not in ('published', 'completed') or private.announced(e) = email.previous from public.events e where e.id = v_attendee.event_id
    )
    -- One that is left without tickets for a day is not confirmed.
    when 'order_confirmation' then v_order.status = 'cancelled' or (
      email.created_at < now() - interval '1 day' and not exists (select from public.attendees a where a.order_id = v_order.id)
    )
    -- A deadline that was moved or cleared since is not the one that it reminds of.
    when 'payment_reminder' then private.amount_due(v_order) = 0 or v_order.payment_reminded_at is null
      or v_order.status = 'pending' and v_order.amount_paid = v_order.amount_refunded and coalesce(v_order.payment_due_at <= now(), false)
    when 'order_expired' then v_order.status <> 'cancelled'
    when 'order_cancelled' then v_order.status <> 'cancelled'
    when 'waiting_list_offer' then (
      select w.status <> 'offered' or w.offer_expires_at <= now()
      from public.waiting_list_entries w where w.id = email.waiting_list_entry_id
    )
    when 'answers_reminder' then private.unanswered(v_attendee) = '{}' or (
      select e.status <> 'published' or coalesce(e.ends_at <= now(), false) from public.events e where e.id = v_attendee.event_id
    )
    when 'payment_received' then exists (select from public.payment_voids v where v.payment_id = email.payment_id)
    when 'payment_voided' then not private.has_receipt(email.payment_id)
    when 'event_cancelled' then false
    -- Who was written to as cancelled is told all the same.
    when 'organiser_message' then coalesce(v_attendee.cancelled_at > email.created_at, false) or private.is_told_otherwise(email, v_attendee)
      or (select e.status not in ('published', 'completed') from public.events e where e.id = v_attendee.event_id)
    -- Of any other kind: who has no good ticket of a published event is told nothing of it.
    else v_attendee.id is not null and (
      v_attendee.status <> 'active' or (select e.status <> 'published' from public.events e where e.id = v_attendee.event_id)
    )
  end;
end
$$;

-- Ids of what is due, in turn: of the organisations first the one with the fewest in flight, then the one served longest ago, and of each its
-- oldest; a mailing waits for the others, so that a ticket does not. No backlog is read: of each organisation at most "limit" rows, and as
-- many of a mailing.
create function private.due_emails("limit" integer, at timestamptz, keeps_tests boolean) returns uuid[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    with due as (
      select
        d.id,
        d.next_attempt_at,
        u.in_flight + row_number() over (partition by o.organisation_id order by d.is_mailing, d.next_attempt_at, d.id) as turn,
        l.last_attempt_at
      from unnest(private.organisations_with_queued_emails()) o (organisation_id)
      cross join lateral (
        select count(*) as in_flight
        from public.emails e
        where e.organisation_id = o.organisation_id and e.claimed_until > at
      ) u
      left join lateral (
        select e.last_attempt_at
        from public.emails e
        where e.organisation_id = o.organisation_id and e.last_attempt_at is not null
        order by e.organisation_id desc, e.last_attempt_at desc
        limit 1
      ) l on true
      cross join (values (false), (true)) m (is_mailing)
      cross join lateral (
        select e.id, e.is_mailing, e.next_attempt_at
        from public.emails e
        where e.organisation_id = o.organisation_id and e.status = 'queued' and e.is_mailing = m.is_mailing and e.next_attempt_at <= at
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit due_emails."limit"
      ) d
      where keeps_tests or not (select g.is_test from public.organisations g where g.id = o.organisation_id)
    )
    select d.id
    from due d
    order by d.turn, d.last_attempt_at nulls first, d.next_attempt_at, d.id
    limit due_emails."limit"
  );
end
$$;

-- The tickets that go with one in its e-mail: of the same order, waiting for the same address; ten of them together at most. All have been
-- tried as often, so that a report on the attempt is one on each.
create function private.goes_with(email_id uuid, taken uuid[]) returns uuid[]
language plpgsql stable set search_path = ''
as $$
declare
  v_email public.emails;
  v_attendee public.attendees;
  v_others uuid[];
begin
  select e.* into v_email from public.emails e where e.id = goes_with.email_id and e.kind = 'ticket';
  select a.* into v_attendee from public.attendees a where a.id = v_email.attendee_id;
  -- Ids, not a join, which may read everything that is queued. So may a plain condition on the status, here and below. A registration has
  -- at most fifty attendees; whoever is added to an order beyond them goes alone.
  v_others := array(
    select a.id
    from (select a.* from public.attendees a where a.order_id = v_attendee.order_id order by a.id limit 50) a
    where a.email_lower = v_attendee.email_lower and a.id <> v_attendee.id and a.ticket_email_status = 'queued'
  );
  return array(
    select e.id
    from public.emails e
    where e.attendee_id = any (v_others) and e.kind = 'ticket' and e.attempts = v_email.attempts and e.id <> all (taken)
      and coalesce(e.status = 'queued' and (e.claim is null or e.next_attempt_at <= clock_timestamp()), false)
    limit 9
  );
end
$$;

-- Locks those that are still to be sent, and answers their ids. What there is nothing left to tell of is cancelled.
create function private.lock_emails(ids uuid[], at timestamptz) returns uuid[]
language plpgsql volatile set search_path = ''
as $$
begin
  ids := array(
    select e.id
    from public.emails e
    where e.id = any (ids) and coalesce(e.status = 'queued' and (e.claim is null or e.next_attempt_at <= at), false)
    for no key update skip locked
  );
  -- One e-mail tells all tickets of an address: where its own was cancelled since, it tells another.
  update public.emails e
  set attendee_id = coalesce(
    (
      select a.id
      from public.attendees o
      join public.attendees a on a.id = any (private.tickets_of_address(e.kind, o))
      where o.id = e.attendee_id and a.status <> 'cancelled'
      limit 1
    ),
    e.attendee_id
  )
  where e.id = any (ids) and e.kind = 'event_changed'
    and (select a.status from public.attendees a where a.id = e.attendee_id) = 'cancelled';
  update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
  where e.id = any (ids) and private.is_obsolete(e);
  -- An order that has no tickets yet is confirmed when it has.
  update public.emails e set next_attempt_at = at + interval '10 minutes'
  where e.id = any (ids)
    and e.kind = 'order_confirmation'
    and coalesce(e.status = 'queued', false)
    and not private.has_tickets(e.order_id);
  return array(
    select e.id
    from public.emails e
    where e.id = any (ids) and coalesce(e.status = 'queued', false)
      and (e.kind <> 'order_confirmation' or e.next_attempt_at <= at)
  );
end
$$;

-- One courier leases at a time: two would not count each other's leases. One that does not say that it keeps the e-mails of test
-- organisations, such as an edge function of the version before, would send them, and gets none.
create function api.claim_emails("limit" integer, lease_seconds integer default 600, keeps_tests boolean default false) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Thirteen attempts are made. A row that is leased far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  -- Beyond "limit", what goes with others.
  v_room integer := 36;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_id uuid;
  v_more uuid[];
  -- All of them, and for each with which it goes.
  v_ids uuid[] := '{}';
  v_leads uuid[] := '{}';
  v_locked uuid[];
  v_with uuid[];
  v_leased public.emails[];
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 1);
  v_now := clock_timestamp();
  -- With what goes with them. Those for which there is no room are left for the next lease, rather than split.
  foreach v_id in array private.due_emails("limit", v_now, keeps_tests) loop
    continue when v_id = any (v_ids);
    v_more := private.goes_with(v_id, v_ids);
    continue when cardinality(v_more) > v_room;
    v_room := v_room - cardinality(v_more);
    v_ids := v_ids || v_id || v_more;
    v_leads := v_leads || array_fill(v_id, array[1 + cardinality(v_more)]);
  end loop;

  perform api.settle_email(
    e.id, e.claim, error => format('Given up after %s attempts without a recorded result.', v_most_claims), permanent => true
  )
  from public.emails e
  where e.id = any (v_ids) and e.attempts >= v_most_claims and e.claim is not null;

  select array_agg(l.id), array_agg(case when l.tickets > 1 then l.first end) into v_locked, v_with
  from (
    select i.id, min(i.id::text) over w::uuid as first, count(*) over w as tickets
    from unnest(private.lock_emails(v_ids, v_now)) i (id)
    window w as (partition by v_leads[array_position(v_ids, i.id)])
  ) l;

  with leased as (
    update public.emails e
    set claim = v_claim,
      sent_with = v_with[array_position(v_locked, e.id)],
      claimed_until = v_now + make_interval(secs => lease_seconds),
      next_attempt_at = v_now + make_interval(secs => lease_seconds),
      attempts = e.attempts + 1,
      last_attempt_at = v_now,
      sent_to = coalesce(
        case e.kind when 'ticket_passed_on' then e.sent_to end,
        (select a.email from public.attendees a where a.id = e.attendee_id), (select o.email from public.orders o where o.id = e.order_id),
        (select w.email from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
      ),
      sent_code = case e.kind when 'ticket' then (select a.ticket_code from public.attendees a where a.id = e.attendee_id) end
    where e.id = any (v_locked)
    returning e.*
  )
  select array_agg(row(l.*)::public.emails) into v_leased from leased l where coalesce(l.sent_with, l.id) = l.id;
  -- A statement of its own, which sees what is leased.
  return (select coalesce(json_agg(private.pending_email_json(row(l.*)::public.emails)), '[]') from unnest(v_leased) l);
end
$$;
comment on function api.claim_emails is
  'Leases due e-mails of every kind for lease_seconds: [{ id, claim, attempt, kind, organisation, event, previous, message, organiser_message, ticket_type, attendee, others, holders, guests, order, order_url, lines, payment, waiting_list_entry, offer_url, questions, answer_url, opt_out_url }]. "others" are tickets in the same e-mail, each settled by its email_id.';
grant execute on function api.claim_emails to courier;

-- What became of tickets that were sent, on their attendees, who are locked; of the latest e-mail only. Where the code or the address changed
-- while it was in flight, another follows.
create function private.settle_tickets(tickets public.emails[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  tickets := array(
    select t
    from unnest(tickets) t
    where not exists (
      select from public.emails l
      where l.attendee_id = t.attendee_id and l.kind = 'ticket' and l.id > t.id and l.status not in ('cancelled', 'failed')
    )
  );
  with another as (
    insert into public.emails (organisation_id, attendee_id)
    select a.organisation_id, a.id
    from unnest(tickets) t
    join public.attendees a on a.id = t.attendee_id
    where a.ticket_email_status = 'queued' and t.status <> 'queued' and (t.sent_code, t.sent_to) <> (a.ticket_code, a.email)
    returning attendee_id
  )
  update public.attendees a
  set ticket_email_status = t.status,
    ticket_email_sent_at = coalesce(t.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = t.last_error
  from unnest(tickets) t
  where a.id = t.attendee_id
    and t.status <> 'queued'
    and a.ticket_email_status in ('queued', 'sent', 'delivered', 'failed')
    and a.id not in (select n.attendee_id from another n);
  -- What is tried again stays queued. The status is not written: that is to ask for it at once, see 60-attendees/emails.sql.
  update public.attendees a set ticket_email_last_error = t.last_error
  from unnest(tickets) t
  where a.id = t.attendee_id and a.ticket_email_status = 'queued' and t.status = 'queued';
end
$$;

-- Transient failures are retried for five days: an SMTP password that expires on a Friday loses no ticket.
create function api.settle_emails(results json) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_pauses constant interval[] :=
    '{30 seconds,2 minutes,10 minutes,30 minutes,2 hours,6 hours,12 hours,12 hours,12 hours,24 hours,24 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'email_id')::uuid from json_array_elements(results) r);
  v_tickets public.emails[];
begin
  -- Attendees are locked before their e-mails, as when tickets are cancelled or re-issued.
  perform from public.attendees a
  where a.id = any (array(select e.attendee_id from public.emails e where e.id = any (v_ids) and e.kind = 'ticket'))
  order by a.id
  for no key update;
  with settled as (
    update public.emails e
    set claim = null,
      claimed_until = null,
      status = case
        when r.error is null then 'sent'
        when r.permanent or e.attempts > cardinality(v_pauses) then 'failed'
        else 'queued'
      end::public.email_status,
      sent_at = case when r.error is null then now() end,
      message_id = r.message_id,
      content = case when r.error is null then r.content else e.content end,
      last_error = r.error,
      next_attempt_at = case
        when r.error is not null and r.permanent is not true then now() + private.retry_delay(e.attempts, v_pauses)
      end
    from json_to_recordset(results) r (email_id uuid, claim uuid, message_id text, content jsonb, error text, permanent boolean)
    where e.id = any (v_ids) and e.id = r.email_id and e.claim = r.claim and coalesce(e.status = 'queued', false)
    returning e.*
  )
  select array_agg(row(s.*)::public.emails) into v_tickets from settled s where s.kind = 'ticket';
  perform private.settle_tickets(v_tickets);
end
$$;
comment on function api.settle_emails is
  'Records the results of leased e-mails: [{ email_id, claim, message_id }], with content for one that is kept, or error and permanent for a failed one. Ignored if another lease has replaced it.';
grant execute on function api.settle_emails to courier;

create function api.settle_email(
  email_id uuid,
  claim uuid,
  message_id text default null,
  error text default null,
  permanent boolean default false
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform api.settle_emails(json_build_array(json_build_object(
    'email_id', email_id, 'claim', claim, 'message_id', message_id, 'error', error, 'permanent', permanent
  )));
end
$$;
comment on function api.settle_email is
  'Records the result of a leased e-mail, as api.settle_emails.';
grant execute on function api.settle_email to courier;

-- What the mail service reports later: delivered, or bounced and why. It names an e-mail by its message_id, or by our id with
-- the number of the attempt if these were sent along. By our id a report may come before the courier settles, or in place of a
-- courier that died with its lease: it proves that the e-mail was sent, whatever was recorded. A report on an attempt that another has
-- followed is ignored: that may have gone to another address. Tickets that went together are told together.
create function api.record_email_event(
  message_id text,
  status public.email_status,
  error text default null,
  email_id uuid default null,
  attempt integer default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[] := case
    when email_id is null then array(select e.id from public.emails e where e.message_id = record_email_event.message_id)
    else email_id || array(select e.id from public.emails e where e.sent_with = record_email_event.email_id)
  end;
  v_tickets public.emails[];
begin
  if status is null or status not in ('delivered', 'bounced') then
    return;
  end if;
  -- Locked first, as in api.settle_emails.
  perform from public.attendees a
  where a.id = any (array(select e.attendee_id from public.emails e where e.id = any (v_ids) and e.kind = 'ticket'))
  order by a.id
  for no key update;
  with reported as (
    update public.emails e
    set status = record_email_event.status,
      sent_at = coalesce(e.sent_at, now()),
      message_id = coalesce(e.message_id, record_email_event.message_id),
      -- The error often has the address in it.
      last_error = case when e.sent_to is not null and not private.is_erased(e) then record_email_event.error end,
      next_attempt_at = null,
      claim = null,
      claimed_until = null
    where e.id = any (v_ids)
      and case
        when e.status in ('sent', 'delivered') then e.attempts = coalesce(attempt, e.attempts)
        when e.status in ('queued', 'failed') then e.attempts = attempt
        else false
      end
    returning e.*
  )
  select array_agg(row(r.*)::public.emails) into v_tickets from reported r where r.kind = 'ticket';
  perform private.settle_tickets(v_tickets);
end
$$;
comment on function api.record_email_event is
  'Records a report of the mail service: delivered or bounced. Identified by our id and the attempt, otherwise by message_id.';
grant execute on function api.record_email_event to courier;
