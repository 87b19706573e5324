-- The courier's side of ticket e-mails, as 32_courier.sql is of webhooks.

-- Organisations that have e-mails queued, by a loose index scan: one look-up each, however many there are.
create function private.organisations_with_queued_emails() returns uuid[]
language plpgsql stable set search_path = ''
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
begin
  return array(
    with recursive queued as (
      (
        select e.organisation_id from public.ticket_emails e where e.status = 'queued' order by e.organisation_id limit 1
      )
      union all
      select n.organisation_id
      from queued q
      cross join lateral (
        select e.organisation_id
        from public.ticket_emails e
        where e.status = 'queued' and e.organisation_id > q.organisation_id
        order by e.organisation_id
        limit 1
      ) n
    )
    select queued.organisation_id from queued
  );
end
$$;

-- What is due, with all that the e-mail says. Organisations take turns: first whoever has the fewest under way, then whoever was
-- served the longest ago, and of one organisation its oldest. One courier claims at a time, or two would each count without the
-- other. Nobody's backlog is read: of each organisation no more than are claimed.
-- Security definer, like its twins in 32_courier.sql. The plan is that of the indexes, whatever statistics say: a mailing comes
-- between two of their updates, and reading and sorting what seems to be little takes minutes then.
create function api.claim_ticket_emails("limit" integer, lease_seconds integer default 600) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_custom_plan
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
declare
  -- Thirteen attempts are made; what was claimed far more often than that kills its couriers, or they cannot settle.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_claimed json;
begin
  perform pg_advisory_xact_lock(4, 1);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with due as (
      select
        d.id,
        d.next_attempt_at,
        u.under_way + row_number() over (partition by o.organisation_id order by d.next_attempt_at, d.id) as turn,
        l.last_attempt_at
      from unnest(private.organisations_with_queued_emails()) o (organisation_id)
      cross join lateral (
        select count(*) as under_way
        from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.claimed_until > v_now
      ) u
      left join lateral (
        select e.last_attempt_at
        from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.last_attempt_at is not null
        order by e.organisation_id desc, e.last_attempt_at desc
        limit 1
      ) l on true
      cross join lateral (
        select e.id, e.next_attempt_at
        from public.ticket_emails e
        where e.organisation_id = o.organisation_id and e.status = 'queued' and e.next_attempt_at <= v_now
        order by e.organisation_id, e.next_attempt_at
        limit claim_ticket_emails."limit"
      ) d
    )
    select d.id
    from due d
    order by d.turn, d.last_attempt_at nulls first, d.next_attempt_at, d.id
    limit claim_ticket_emails."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  perform api.settle_ticket_email(
    e.id, e.claim, error => 'It was sent again and again, and nobody could say how it went.', permanent => true
  )
  from public.ticket_emails e
  where e.id = any (v_candidates) and e.attempts >= v_most_claims and e.claim is not null;

  -- Still queued and due: as an expression, which is no reason to walk all that is. By array, for a join might walk them, too.
  v_candidates := array(
    select e.id
    from public.ticket_emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  with claimed as (
    update public.ticket_emails e
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = e.attempts + 1,
      last_attempt_at = v_now,
      (sent_to, sent_code) = (select a.email, a.ticket_code from public.attendees a where a.id = e.attendee_id)
    where e.id = any (v_candidates)
      and (select a.status from public.attendees a where a.id = e.attendee_id) = 'active'
    returning e.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'organisation', json_build_object('name', g.name, 'reply_to', g.reply_to_email),
      'event', private.event_json(v),
      'ticket_type', json_build_object('name', t.name),
      'order', json_build_object('reference', o.reference),
      'attendee', json_build_object(
        'id', a.id, 'name', a.name, 'email', a.email, 'company', a.company, 'ticket_code', a.ticket_code
      )
    )),
    '[]'
  ) into v_claimed
  from claimed c
  join public.attendees a on a.id = c.attendee_id
  join public.orders o on o.id = a.order_id
  join public.ticket_types t on t.id = a.ticket_type_id
  join public.events v on v.id = a.event_id
  join public.organisations g on g.id = a.organisation_id;
  return v_claimed;
end
$$;
comment on function api.claim_ticket_emails(integer, integer) is
  'Ticket e-mails that are due, claimed for lease_seconds: [{ id, claim, attempt, organisation, event, ticket_type, order, attendee }].';
grant execute on function api.claim_ticket_emails(integer, integer) to courier;

-- Sent, with what the mail service calls it; or failed, for good or for now. Transient failures are tried again for five days:
-- a password that expired on a Friday costs nobody a ticket.
create function api.settle_ticket_email(
  ticket_email_id uuid,
  claim uuid,
  message_id text default null,
  error text default null,
  permanent boolean default false
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_pauses constant interval[] :=
    '{30 seconds,2 minutes,10 minutes,30 minutes,2 hours,6 hours,12 hours,12 hours,12 hours,24 hours,24 hours,24 hours}';
  v_email public.ticket_emails;
  v_attendee public.attendees;
begin
  -- The attendee before the e-mail, as whoever cancels or re-issues the ticket has them.
  select a.* into v_attendee
  from public.attendees a
  where a.id = (select e.attendee_id from public.ticket_emails e where e.id = settle_ticket_email.ticket_email_id)
  for no key update;

  update public.ticket_emails e
  set claim = null,
    claimed_until = null,
    status = case
      when error is null then 'sent'
      when permanent or e.attempts > cardinality(v_pauses) then 'failed'
      else 'queued'
    end::public.ticket_email_status,
    sent_at = case when error is null then now() end,
    message_id = settle_ticket_email.message_id,
    last_error = settle_ticket_email.error,
    next_attempt_at = case
      when error is not null and not permanent then now() + private.retry_delay(e.attempts, v_pauses)
    end
  where e.id = settle_ticket_email.ticket_email_id and e.claim = settle_ticket_email.claim and e.status = 'queued'
  returning * into v_email;
  if not found or v_attendee.ticket_email_status <> 'queued' then
    return;
  end if;

  if v_email.status = 'queued' then
    update public.attendees a set ticket_email_last_error = v_email.last_error where a.id = v_attendee.id;
  elsif (v_email.sent_code, v_email.sent_to) <> (v_attendee.ticket_code, v_attendee.email) then
    -- Overtaken by a new code or address while it was under way: the ticket is still owed.
    insert into public.ticket_emails (organisation_id, attendee_id) values (v_attendee.organisation_id, v_attendee.id);
  else
    update public.attendees a
    set ticket_email_status = v_email.status,
      ticket_email_sent_at = coalesce(v_email.sent_at, a.ticket_email_sent_at),
      ticket_email_last_error = v_email.last_error
    where a.id = v_attendee.id;
  end if;
end
$$;
comment on function api.settle_ticket_email(uuid, uuid, text, text, boolean) is
  'Says how sending a claimed ticket e-mail went; nothing happens when the claim has passed to somebody else.';
grant execute on function api.settle_ticket_email(uuid, uuid, text, text, boolean) to courier;

-- What the mail service tells later: delivered, or bounced and why. It knows an e-mail by its own id, and by ours with the number
-- of the attempt if these were sent along; by ours it may tell sooner than the courier that sent it, or in place of one that
-- died with its claim. What it tells of an attempt that another has followed is no news: that may have had another address.
create function api.record_ticket_email_event(
  message_id text,
  status public.ticket_email_status,
  error text default null,
  ticket_email_id uuid default null,
  attempt integer default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_email public.ticket_emails;
  v_claim constant uuid := gen_random_uuid();
begin
  if ticket_email_id is not null then
    select e.* into v_email from public.ticket_emails e where e.id = record_ticket_email_event.ticket_email_id;
  else
    select e.* into v_email from public.ticket_emails e where e.message_id = record_ticket_email_event.message_id;
  end if;
  if not found or status is null or status not in ('delivered', 'bounced') then
    return;
  end if;
  -- The attendee before the e-mail, as whoever settles it has them.
  perform 1 from public.attendees a where a.id = v_email.attendee_id for no key update;

  -- It has been sent: whoever is sending it loses the claim, and whoever gave it up was wrong.
  update public.ticket_emails e set claim = v_claim
  where e.id = v_email.id and e.status = 'queued' and e.attempts = record_ticket_email_event.attempt;
  if found then
    perform api.settle_ticket_email(v_email.id, v_claim, record_ticket_email_event.message_id);
  end if;
  update public.ticket_emails e
  set status = 'sent', sent_at = now(), message_id = record_ticket_email_event.message_id
  where e.id = v_email.id and e.status = 'failed' and e.attempts = record_ticket_email_event.attempt;

  update public.ticket_emails e
  set status = record_ticket_email_event.status, last_error = record_ticket_email_event.error
  where e.id = v_email.id
    and e.status in ('sent', 'delivered')
    and e.attempts = coalesce(record_ticket_email_event.attempt, e.attempts)
  returning * into v_email;
  if not found then
    return;
  end if;
  -- Of the latest that was sent: what becomes of an earlier one is no news.
  update public.attendees a
  set ticket_email_status = v_email.status,
    ticket_email_sent_at = coalesce(v_email.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = v_email.last_error
  where a.id = v_email.attendee_id
    and a.ticket_email_status in ('sent', 'delivered', 'failed')
    and not exists (
      select from public.ticket_emails l
      where l.attendee_id = a.id and l.id > v_email.id and l.status not in ('cancelled', 'failed')
    );
end
$$;
comment on function api.record_ticket_email_event(text, public.ticket_email_status, text, uuid, integer) is
  'Says what became of an e-mail that was sent: delivered or bounced. Known by our id and the attempt, or without these by message_id.';
grant execute on function api.record_ticket_email_event(text, public.ticket_email_status, text, uuid, integer) to courier;
