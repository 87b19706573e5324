-- The courier's side of e-mails, of every kind, as 90-outbox/webhook-claims.sql for webhooks: claim, settle, and record later reports.

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
    when 'payment_received' then exists (select from public.payment_voids v where v.payment_id = email.payment_id)
    when 'payment_voided' then not private.has_receipt(email.payment_id)
    when 'event_cancelled' then false
    -- Of any other kind: who has no good ticket of a published event is told nothing of it.
    else v_attendee.id is not null and (
      v_attendee.status <> 'active' or (select e.status <> 'published' from public.events e where e.id = v_attendee.event_id)
    )
  end;
end
$$;

-- The other tickets of an order that one address has, from among the fifty before and the fifty after: neither an order nor an address of
-- thousands is read.
create function private.tickets_beside(attendee public.attendees) returns uuid[]
language plpgsql stable set search_path = ''

as $$
begin
  return array(
    (
      select case when n.order_id = attendee.order_id then n.id end
      from public.attendees n
      where n.organisation_id = attendee.organisation_id and n.email_lower = attendee.email_lower and n.id < attendee.id
      order by n.organisation_id desc, n.email_lower desc, n.id desc
      limit 50
    )
    union all
    (
      select case when n.order_id = attendee.order_id then n.id end
      from public.attendees n
      where n.organisation_id = attendee.organisation_id and n.email_lower = attendee.email_lower and n.id > attendee.id
      order by n.organisation_id, n.email_lower, n.id
      limit 50
    )
  );
end
$$;

-- The tickets that go with one in its e-mail: of the same order, waiting for the same address; ten of them together at most. All have been
-- tried as often, so that a report on the attempt is one on each. None of those that are taken already.
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
  v_others := array(
    select a.id
    from public.attendees a
    where a.id = any (private.tickets_beside(v_attendee)) and coalesce(a.ticket_email_status = 'queued', false)
  );
  if v_others = '{}' then
    return '{}';
  end if;
  return array(
    select e.id
    from public.emails e
    where e.attendee_id = any (v_others)
      and e.kind = 'ticket'
      and e.attempts = v_email.attempts
      and e.id <> all (taken)
      -- An expression, so that the planner does not scan the index of everything queued.
      and coalesce(e.status = 'queued' and (e.claim is null or e.next_attempt_at <= clock_timestamp()), false)
    limit 9
  );
end
$$;

-- The tickets of an event that one address has, from among five hundred before and after: an address may have thousands, of other events.
create function private.tickets_of_address(attendee public.attendees) returns uuid[]
language plpgsql stable set search_path = ''

as $$
begin
  return array(
    (
      select case when n.event_id = attendee.event_id then n.id end
      from public.attendees n
      where n.organisation_id = attendee.organisation_id and n.email_lower = attendee.email_lower and n.id <= attendee.id
      order by n.organisation_id desc, n.email_lower desc, n.id desc
      limit 500
    )
    union all
    (
      select case when n.event_id = attendee.event_id then n.id end
      from public.attendees n
      where n.organisation_id = attendee.organisation_id and n.email_lower = attendee.email_lower and n.id > attendee.id
      order by n.organisation_id, n.email_lower, n.id
      limit 500
    )
  );
end
$$;

-- Whose tickets an e-mail to an address tells of: of a cancellation those that were cancelled together, of one ticket or an order those of
-- the order; else all that are good or to be paid. The first hundred, and one more where there are more. A link only where the ticket is
-- e-mailed.
create function private.holders_json(kind public.email_kind, attendee public.attendees) returns json
language plpgsql stable set search_path = ''

as $$
declare
  v_ids uuid[] := case kind
    when 'ticket_cancelled' then attendee.id || private.tickets_beside(attendee)
    else private.tickets_of_address(attendee)
  end;
begin
  return (
    select json_agg(json_build_object(
      'name', h.name,
      'ticket_type', t.name,
      'reference', o.reference,
      'status', h.status,
      'ticket_url', case when h.status <> 'cancelled' and o.send_email then private.ticket_url(h.ticket_token) end
    ) order by h.id)
    from (
      select a.*
      from public.attendees a
      where a.id = any (v_ids)
        and a.erased_at is null
        and case when kind in ('ticket_cancelled', 'event_cancelled') then a.cancelled_at = attendee.cancelled_at else a.status <> 'cancelled' end
      order by a.id
      limit 101
    ) h
    join public.ticket_types t on t.id = h.ticket_type_id
    join public.orders o on o.id = h.order_id
  );
end
$$;

-- The orders of the event of an attendee whose contact has their address, from among five hundred before and after their own: an address
-- may have thousands, of other events.
create function private.orders_of_address(attendee public.attendees) returns uuid[]
language plpgsql stable set search_path = ''

as $$
begin
  return array(
    (
      select case when o.event_id = attendee.event_id then o.id end
      from public.orders o
      where o.organisation_id = attendee.organisation_id and o.email_lower = attendee.email_lower and o.id <= attendee.order_id
      order by o.organisation_id desc, o.email_lower desc, o.id desc
      limit 500
    )
    union all
    (
      select case when o.event_id = attendee.event_id then o.id end
      from public.orders o
      where o.organisation_id = attendee.organisation_id and o.email_lower = attendee.email_lower and o.id > attendee.order_id
      order by o.organisation_id, o.email_lower, o.id
      limit 500
    )
  );
end
$$;

-- What becomes of the money of orders that were cancelled: what was still to be paid, and what is to be returned; null where nobody was
-- asked to pay. For whoever is told of their cancellation.
create function private.cancelled_money_json(order_ids uuid[]) returns json
language plpgsql stable set search_path = ''

as $$
begin
  return (
    select json_build_object(
      'currency', min(o.currency),
      -- What was returned after the cancellation was not to be paid again.
      'amount_unpaid', sum(greatest(o.total - o.amount_paid + (
        select coalesce(sum(r.amount), 0) from public.refunds r where r.order_id = o.id and r.created_at < o.cancelled_at
      ), 0))::bigint,
      'amount_retained', sum(o.amount_retained)::bigint,
      'amount_refundable', sum(private.amount_refundable(o))::bigint
    )
    from public.orders o
    where o.id = any (order_ids) and o.status = 'cancelled' and o.payment_method is not null
    having count(*) > 0
  );
end
$$;

-- The same for one who is told of tickets: of the orders whose contact has the address and which were cancelled, of a ticket its own, of the
-- event those that it took with it.
create function private.cancelled_money_of(kind public.email_kind, attendee public.attendees) returns json
language plpgsql stable set search_path = ''

as $$
begin
  return private.cancelled_money_json(array(
    select o.id
    from public.orders o
    where o.id = any (case kind
        when 'ticket_cancelled' then array[attendee.order_id]
        when 'event_cancelled' then private.orders_of_address(attendee)
      end)
      and o.email_lower = attendee.email_lower
      and (kind = 'ticket_cancelled' or o.cancelled_at = attendee.cancelled_at)
  ));
end
$$;

-- Whom an order is for: the first hundred, and one more where there are more.
create function private.guests_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object('name', g.name, 'ticket_type', t.name) order by g.id), '[]')
    from (
      select a.id, a.name, a.ticket_type_id
      from public.attendees a
      where a.order_id = guests_json.order_id and a.status <> 'cancelled'
      order by a.id
      limit 101
    ) g
    join public.ticket_types t on t.id = g.ticket_type_id
  );
end
$$;

-- A ticket that goes with another, by its row of e-mails.
create function private.other_ticket_json(email_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee
  from public.attendees a
  where a.id = (select e.attendee_id from public.emails e where e.id = other_ticket_json.email_id);
  return json_build_object(
    'email_id', email_id,
    'name', v_attendee.name,
    'company', v_attendee.company,
    'ticket_type', (select t.name from public.ticket_types t where t.id = v_attendee.ticket_type_id),
    'ticket_code', v_attendee.ticket_code,
    'ticket_url', private.ticket_url(v_attendee.ticket_token)
  );
end
$$;

-- An e-mail with everything that it shows. It goes to the attendee, or to the contact of the order. Whoever claims plans each time: this
-- reads by key, and need not.
create function private.pending_email_json(email public.emails) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_event public.events;
  v_offer json;
  v_others uuid[];
begin
  if email.sent_with is not null then
    v_others := array(
      select e.id
      from public.emails e
      where e.sent_with = email.id and e.id <> email.id and coalesce(e.claim = email.claim, false)
    );
  end if;
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = coalesce(email.order_id, v_attendee.order_id);
  v_offer := private.waiting_list_offer_json(email.waiting_list_entry_id);
  select e.* into v_event from public.events e where e.id = coalesce(v_order.event_id, (v_offer ->> 'event_id')::uuid);
  return json_build_object(
    'id', email.id,
    'claim', email.claim,
    'attempt', email.attempts,
    'kind', email.kind,
    'organisation', (
      select json_build_object(
        'name', g.name,
        'reply_to', g.reply_to_email,
        'accent_colour', g.accent_colour,
        'payment_instructions', g.payment_instructions,
        'logo_url', g.logo_url
      )
      from public.organisations g
      where g.id = email.organisation_id
    ),
    'event', private.event_json(v_event),
    'previous', email.previous,
    'message', email.message,
    'ticket_type', (select json_build_object('name', t.name) from public.ticket_types t where t.id = v_attendee.ticket_type_id),
    'attendee', case when v_attendee.id is not null then json_build_object(
      'id', v_attendee.id,
      'name', v_attendee.name,
      'email', v_attendee.email,
      'company', v_attendee.company,
      'status', v_attendee.status,
      'ticket_code', case email.kind when 'ticket' then v_attendee.ticket_code end,
      -- Where the tickets of the order are not e-mailed, no other e-mail brings one.
      'ticket_url', case when email.kind = 'ticket' or email.kind not in ('event_cancelled', 'ticket_cancelled') and v_order.send_email
        then private.ticket_url(v_attendee.ticket_token) end,
      -- A calendar keeps the entry of the event while its mailbox has another ticket.
      'has_another_ticket', exists (
        select from public.attendees a
        where a.organisation_id = v_attendee.organisation_id and a.email_lower = v_attendee.email_lower
          and a.event_id = v_attendee.event_id and a.id <> v_attendee.id and a.status <> 'cancelled'
      ),
      -- The calendar entry is as new as the last change of the event or the ticket.
      'updated_at', private.rfc3339(v_attendee.updated_at)
    ) end,
    'order', case when email.order_id is null then json_build_object('reference', v_order.reference)
      else private.order_json(v_order, '[]', '[]', '[]') end,
    'others', case email.kind when 'ticket' then (
      select coalesce(json_agg(private.other_ticket_json(i) order by i), '[]') from unnest(v_others) i
    ) end,
    'holders', case when v_attendee.id is not null and email.kind <> 'ticket' then private.holders_json(email.kind, v_attendee) end,
    'money', case
      when email.kind = 'order_cancelled' then private.cancelled_money_json(array[v_order.id])
      when email.kind in ('ticket_cancelled', 'event_cancelled') then private.cancelled_money_of(email.kind, v_attendee)
    end,
    'guests', case email.kind when 'order_confirmation' then private.guests_json(v_order.id) end,
    'lines', case when email.order_id is not null then private.order_lines_json(v_order.id) end,
    'payment', (
      select private.payment_json(p, v.created_at)::jsonb || jsonb_build_object('is_latest', not exists (
        select from public.payments l
        where l.order_id = p.order_id
          and l.id > p.id
          and not exists (select from public.payment_voids v where v.payment_id = l.id)
      ))
      from public.payments p
      left join public.payment_voids v on v.payment_id = p.id
      where p.id = email.payment_id
    ),
    'waiting_list_entry', v_offer,
    'opt_out_url', case when private.can_be_switched_off(email.kind) then private.opt_out_url(v_attendee) end
  );
end
$$;

-- What is due, with everything that the e-mail shows. Organisations take turns: first the one with the fewest in flight, then
-- the one served longest ago, and of each its oldest e-mail; a mailing waits for the others, so that a ticket does not. One
-- courier claims at a time: two would not count each other's claims. No backlog is read: of each organisation at most "limit"
-- rows, and as many of a mailing.
-- Security definer, as 90-outbox/webhook-claims.sql. The plan uses the indexes whatever the statistics say: a mailing arrives between two of
-- their updates, and reading and sorting what is estimated as few rows then takes minutes.
create function api.claim_emails("limit" integer, lease_seconds integer default 600) returns json
language plpgsql volatile security definer set search_path = ''

as $$
declare
  -- Thirteen attempts are made. A row that is claimed far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  -- What goes with others, beyond "limit".
  v_more_left integer := 36;
  v_id uuid;
  v_more uuid[];
  -- All that is taken, and for each with which it goes.
  v_taken uuid[] := '{}';
  v_with uuid[] := '{}';
  v_claimed public.emails[];
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 1);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
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
        where e.organisation_id = o.organisation_id and e.claimed_until > v_now
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
        where e.organisation_id = o.organisation_id
          and e.status = 'queued'
          and e.is_mailing = m.is_mailing
          and e.next_attempt_at <= v_now
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit claim_emails."limit"
      ) d
    )
    select d.id
    from due d
    order by d.turn, d.last_attempt_at nulls first, d.next_attempt_at, d.id
    limit claim_emails."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  -- With what goes with them. Those for which there is no room are left for the next claim, rather than split.
  foreach v_id in array v_candidates loop
    continue when v_id = any (v_taken);
    v_more := private.goes_with(v_id, v_taken);
    continue when cardinality(v_more) > v_more_left;
    v_more_left := v_more_left - cardinality(v_more);
    v_taken := v_taken || v_id || v_more;
    v_with := v_with || v_id || array_fill(v_id, array[cardinality(v_more)]);
  end loop;
  v_candidates := v_taken;

  perform api.settle_email(
    e.id, e.claim, error => format('Gave up after %s attempts without a recorded result.', v_most_claims), permanent => true
  )
  from public.emails e
  where e.id = any (v_candidates) and e.attempts >= v_most_claims and e.claim is not null;

  -- A ticket whose retry comes a little later goes with the first.
  update public.emails e set next_attempt_at = v_now
  where e.id = any (
    array(
      select e.id
      from public.emails e
      where e.id = any (v_candidates) and coalesce(e.next_attempt_at > v_now and e.claim is null, false)
      for no key update skip locked
    )
  );
  -- Still queued and due. An expression, so that the planner does not scan the index of everything due; an array, because a
  -- join might scan it, too.
  v_candidates := array(
    select e.id
    from public.emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  -- One e-mail tells all tickets of an address: where its own was cancelled since, it tells another.
  update public.emails e
  set attendee_id = coalesce(
    (
      select a.id
      from public.attendees c
      join public.attendees a
        on a.organisation_id = c.organisation_id and a.email_lower = c.email_lower and a.event_id = c.event_id
      where c.id = e.attendee_id
        and a.status <> 'cancelled'
      limit 1
    ),
    e.attendee_id
  )
  where e.id = any (v_candidates)
    and e.kind = 'event_changed'
    and (select a.status from public.attendees a where a.id = e.attendee_id) = 'cancelled';
  update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
  where e.id = any (v_candidates) and private.is_obsolete(e);
  -- An order that has no tickets yet is confirmed when it has.
  update public.emails e set next_attempt_at = v_now + interval '10 minutes'
  where e.id = any (v_candidates)
    and e.kind = 'order_confirmation'
    and e.next_attempt_at is not null
    and not exists (select from public.attendees a where a.order_id = e.order_id);
  with parts as materialized (
    select e.id, min(e.id::text) over w as sent_with, count(*) over w as tickets
    from public.emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    window w as (partition by v_with[array_position(v_taken, e.id)])
  ),
  claimed as (
    update public.emails e
    set claim = v_claim,
      sent_with = (select p.sent_with::uuid from parts p where p.id = e.id and p.tickets > 1),
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = e.attempts + 1,
      last_attempt_at = v_now,
      sent_to = coalesce(
        (select a.email from public.attendees a where a.id = e.attendee_id), (select o.email from public.orders o where o.id = e.order_id),
        (select w.email from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
      ),
      sent_code = case e.kind when 'ticket' then (select a.ticket_code from public.attendees a where a.id = e.attendee_id) end
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    returning e.*
  )
  select array_agg(row(c.*)::public.emails) into v_claimed from claimed c where coalesce(c.sent_with, c.id) = c.id;
  -- A statement of its own, which sees what is claimed.
  return (select coalesce(json_agg(private.pending_email_json(row(c.*)::public.emails)), '[]') from unnest(v_claimed) c);
end
$$;
comment on function api.claim_emails is
  'E-mails that are due, of every kind, claimed for lease_seconds: [{ id, claim, attempt, kind, organisation, event, previous, message, ticket_type, attendee, others, holders, guests, order, lines, payment, waiting_list_entry, opt_out_url }]. "others" are tickets that go in the same e-mail; each is settled by its email_id.';
grant execute on function api.claim_emails to courier;

-- The results of a batch of attempts: sent, with the message_id of the mail service; or failed, permanently or for now. Transient
-- failures are retried for five days: an SMTP password that expires on a Friday loses no ticket. The plan uses the indexes whatever the
-- statistics say.
create function api.settle_emails(results json) returns void
language plpgsql volatile security definer set search_path = ''

as $$
declare
  v_pauses constant interval[] :=
    '{30 seconds,2 minutes,10 minutes,30 minutes,2 hours,6 hours,12 hours,12 hours,12 hours,24 hours,24 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'email_id')::uuid from json_array_elements(results) r);
  v_attendee_ids uuid[] := array(select e.attendee_id from public.emails e where e.id = any (v_ids) and e.kind = 'ticket');
  v_tickets public.emails[];
begin
  -- Attendees are locked before their e-mails, as when tickets are cancelled or re-issued. Only a ticket changes them.
  v_attendee_ids := array(
    select a.id from public.attendees a where a.id = any (v_attendee_ids) order by a.id for no key update
  );

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
      last_error = r.error,
      next_attempt_at = case
        when r.error is not null and r.permanent is not true then now() + private.retry_delay(e.attempts, v_pauses)
      end
    from json_to_recordset(results) r (email_id uuid, claim uuid, message_id text, error text, permanent boolean)
    -- By the ids, and an expression, so that the planner does not scan the index of everything queued.
    where e.id = any (v_ids) and e.id = r.email_id and e.claim = r.claim and coalesce(e.status = 'queued', false)
    returning e.*
  )
  select array_agg(row(s.*)::public.emails) into v_tickets from settled s where s.kind = 'ticket';
  if v_tickets is null then
    return;
  end if;

  -- The code or address changed while the e-mail was in flight: queue another one.
  insert into public.emails (organisation_id, attendee_id)
  select a.organisation_id, a.id
  from unnest(v_tickets) t
  join public.attendees a on a.id = t.attendee_id
  where a.ticket_email_status = 'queued' and t.status <> 'queued' and (t.sent_code, t.sent_to) <> (a.ticket_code, a.email);

  update public.attendees a
  set ticket_email_status = t.status,
    ticket_email_sent_at = coalesce(t.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = t.last_error
  from unnest(v_tickets) t
  where a.id = any (v_attendee_ids)
    and a.id = t.attendee_id
    and a.ticket_email_status = 'queued'
    and t.status <> 'queued'
    and coalesce((t.sent_code, t.sent_to) = (a.ticket_code, a.email), true);
  -- What is tried again stays queued. The status is not written: that is to ask for it at once, see 60-attendees/emails.sql.
  if exists (select from unnest(v_tickets) t where t.status = 'queued') then
    update public.attendees a set ticket_email_last_error = t.last_error
    from unnest(v_tickets) t
    where a.id = any (v_attendee_ids) and a.id = t.attendee_id and a.ticket_email_status = 'queued' and t.status = 'queued';
  end if;
end
$$;
comment on function api.settle_emails is
  'Records the results of sending claimed e-mails: [{ email_id, claim, message_id }], a failed one with error and permanent. Ignored where another claim has replaced it.';
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
  'Records the result of sending a claimed e-mail, as api.settle_emails.';
grant execute on function api.settle_email to courier;

-- A report of the mail service on the e-mail of one row.
create function private.record_email_event(
  email_id uuid,
  message_id text,
  status public.email_status,
  error text,
  attempt integer
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_email public.emails;
  v_claim constant uuid := gen_random_uuid();
begin
  select e.* into v_email from public.emails e where e.id = record_email_event.email_id;

  -- The report proves that it was sent: a courier that still holds it loses its claim, and a recorded failure is corrected.
  update public.emails e set claim = v_claim
  where e.id = v_email.id and e.status = 'queued' and e.attempts = record_email_event.attempt;
  if found then
    perform api.settle_email(v_email.id, v_claim, record_email_event.message_id);
  end if;
  update public.emails e
  set status = 'sent', sent_at = now(), message_id = record_email_event.message_id
  where e.id = v_email.id and e.status = 'failed' and e.attempts = record_email_event.attempt;

  update public.emails e
  -- The error often has the address in it.
  set status = record_email_event.status,
    last_error = case when not private.is_erased(e) then record_email_event.error end
  where e.id = v_email.id
    and e.status in ('sent', 'delivered')
    and e.attempts = coalesce(record_email_event.attempt, e.attempts)
  returning * into v_email;
  if not found or v_email.kind <> 'ticket' then
    return;
  end if;
  -- Only the latest e-mail that was sent counts: a report on an earlier one leaves the attendee as it is.
  update public.attendees a
  set ticket_email_status = v_email.status,
    ticket_email_sent_at = coalesce(v_email.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = v_email.last_error
  where a.id = v_email.attendee_id
    and a.ticket_email_status in ('sent', 'delivered', 'failed')
    and not exists (
      select from public.emails l
      where l.attendee_id = a.id and l.kind = 'ticket' and l.id > v_email.id and l.status not in ('cancelled', 'failed')
    );
end
$$;

-- What the mail service reports later: delivered, or bounced and why. It names an e-mail by its message_id, or by our id with
-- the number of the attempt if these were sent along. By our id a report may come before the courier settles, or in place of a
-- courier that died with its claim. A report on an attempt that another has followed is ignored: that may have gone to another
-- address. Tickets that went together are told together.
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
  v_ids uuid[];
  v_id uuid;
begin
  if status is null or status not in ('delivered', 'bounced') then
    return;
  elsif email_id is not null then
    v_ids := array(
      select e.id from public.emails e where e.id = record_email_event.email_id
      union
      select e.id from public.emails e where e.sent_with = record_email_event.email_id
    );
  else
    v_ids := array(select e.id from public.emails e where e.message_id = record_email_event.message_id);
  end if;
  -- Attendees are locked before their e-mails, as in api.settle_emails.
  perform from public.attendees a
  where a.id = any (array(select e.attendee_id from public.emails e where e.id = any (v_ids)))
  order by a.id
  for no key update;
  foreach v_id in array v_ids loop
    perform private.record_email_event(v_id, message_id, status, error, attempt);
  end loop;
end
$$;
comment on function api.record_email_event is
  'Records the report of the mail service on an e-mail: delivered or bounced. Identified by our id and the attempt, or without these by message_id.';
grant execute on function api.record_email_event to courier;
