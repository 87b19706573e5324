-- The courier as an edge function, what is owed as figures, and answers of addresses that an endpoint no longer has.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.

set local lock_timeout = '5s';
set local statement_timeout = '60s';

-- Each has a parameter more, which whoever is of the version before leaves out.
drop function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer);
drop function api.record_ticket_email_event(text, public.ticket_email_status, text);
drop function api.list_attendees(
  uuid, uuid, uuid, public.attendee_status, boolean, text, text, text, timestamptz, text, integer
);

-- Reading, correcting, transferring and cancelling attendees, and their tickets.

create or replace function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.ticket_email_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  -- First, so that the list is walked by the index on order_id.
  v_referred uuid := (select o.id from public.orders o where o.reference = upper(list_attendees.reference));
  v_items json[];
begin
  select array_agg(private.attendee_json(p) order by p.id desc) into v_items
  from (
    select a.*
    from public.attendees a
    where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
      and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
      and (list_attendees.reference is null or a.order_id = v_referred)
      and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
      and (list_attendees.status is null or a.status = list_attendees.status)
      and (checked_in is null or (a.checked_in_at is not null) = checked_in)
      and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
      and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
      and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
      and (updated_since is null or a.updated_at >= updated_since)
      and (v_before is null or a.id < v_before)
    order by a.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_attendees(
  uuid, uuid, uuid, public.attendee_status, boolean, public.ticket_email_status, text, text, text, timestamptz, text, integer
) is
  'Attendees of the organisation, newest first, by any of the filters: { data, has_more, next_cursor }.';

grant execute on function api.list_attendees(
  uuid, uuid, uuid, public.attendee_status, boolean, public.ticket_email_status, text, text, text, timestamptz, text, integer
) to scope_attendees_read;

create or replace function private.tg_webhook_endpoints__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_most_endpoints constant integer := 50;
begin
  if tg_op = 'INSERT' then
    -- One at a time, or two would count without each other.
    perform pg_advisory_xact_lock(5, hashtext(new.organisation_id::text));
    if (select count(*) from public.webhook_endpoints w where w.organisation_id = new.organisation_id) >= v_most_endpoints then
      perform private.refuse(
        409, 'too_many_webhook_endpoints', format('An organisation has at most %s webhook endpoints.', v_most_endpoints),
        hint => 'Delete one that is not needed, or let one endpoint hear of more types.'
      );
    end if;
  end if;
  -- What was owed before is still sent, so the types before count, too. Anybody may make an endpoint be silent.
  if private.current_api_key_id() is not null then
    if tg_op = 'INSERT' then
      perform private.require_scopes_to_read(new.types);
    elsif (new.url, new.types) is distinct from (old.url, old.types) or (old.status = 'disabled' and new.status = 'enabled') then
      perform private.require_scopes_to_read(new.types || old.types);
    end if;
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if new.status = 'enabled' then
    new.disabled_reason := null;
    -- Enabled again, or at another address, it gets its five days again.
    if tg_op = 'UPDATE' and (old.status = 'disabled' or new.url <> old.url) then
      new.failing_since := null;
    end if;
  end if;
  return new;
end
$$;

create or replace function private.webhook_endpoint_json(webhook_endpoint public.webhook_endpoints, secret text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_endpoint',
    'id', webhook_endpoint.id,
    'url', webhook_endpoint.url,
    'description', webhook_endpoint.description,
    'types', webhook_endpoint.types,
    'status', webhook_endpoint.status,
    'disabled_reason', webhook_endpoint.disabled_reason,
    'failing_since', private.rfc3339(webhook_endpoint.failing_since),
    'secret', secret,
    'version', webhook_endpoint.version,
    'created_at', private.rfc3339(webhook_endpoint.created_at),
    'updated_at', private.rfc3339(webhook_endpoint.updated_at)
  );
end
$$;

comment on function api.create_webhook_endpoint(text, public.notification_type[], text, text, text) is
  'Adds a webhook endpoint: 201 with it and its secret, which is not shown again. 403 missing_scope; 409 too_many_webhook_endpoints; 422 validation_failed.';

-- The courier's side of the outbox: it claims what is due, sends it, and says how that went. A claim is a lease: whoever dies
-- with it leaves it to the next, and what they say afterwards does not count. When to try again is decided here.
-- All security definer: the courier has no right to any table, and these are the only functions it may call.

-- What is due to endpoints that are enabled, first what would be the first of its endpoint, and then the oldest. So that those
-- that are slow or dead hold up nobody else, an endpoint has a few under way at a time, and one at a time while it is failing;
-- an organisation has half of what a courier carries, and all that are failing together a quarter. One courier claims at a
-- time, or two would each count without the other. Claimed rows are due again when the lease runs out.
-- No plan is kept: one made while there was little would be used when there is much.
create or replace function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = force_custom_plan
as $$
declare
  v_each constant integer := 4;
  v_half constant integer := 32;
  v_quarter constant integer := 16;
  -- Ten attempts are made; what was claimed far more often than that kills its couriers, or they cannot settle.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_owed json;
begin
  perform pg_advisory_xact_lock(4, 0);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with endpoints as materialized (
      select
        w.id,
        w.organisation_id,
        w.failing_since is not null as failing,
        w.last_failed_at,
        c.under_way,
        sum(c.under_way) over (partition by w.organisation_id) as under_way_of_organisation,
        sum(c.under_way) over (partition by w.organisation_id, w.failing_since is not null) as under_way_of_its_like
      from public.webhook_endpoints w
      cross join lateral (
        select count(*)::integer as under_way
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.claimed_until > v_now
      ) c
      where w.status = 'enabled'
    ),
    due as (
      select
        d.id, d.next_attempt_at, e.under_way + d.place as turn, e.organisation_id, e.under_way_of_organisation,
        e.failing, e.last_failed_at, e.under_way_of_its_like
      from endpoints e
      cross join lateral (
        select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
        from (
          select d.id, d.next_attempt_at
          from public.webhook_deliveries d
          where d.webhook_endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= v_now
          order by d.webhook_endpoint_id, d.next_attempt_at
          limit greatest(case when e.failing then 1 else v_each end - e.under_way, 0)
        ) f
      ) d
    ),
    -- Those that are failing make no other wait: first they are fewer, and then an organisation has its share. Among themselves
    -- organisations take turns, and whoever was not tried for longest comes first: one failure among a thousand is soon over.
    failing as (
      select
        d.*,
        row_number() over (order by d.turn_of_organisation, d.last_failed_at nulls first, d.next_attempt_at, d.id) as place_of_failing
      from (
        select
          d.*,
          d.under_way_of_its_like + row_number() over (
            partition by d.organisation_id order by d.last_failed_at nulls first, d.next_attempt_at, d.id
          ) as turn_of_organisation
        from due d
        where d.failing
      ) d
    ),
    but_few_failing as (
      select d.id, d.next_attempt_at, d.turn, d.organisation_id, d.under_way_of_organisation from due d where not d.failing
      union all
      select f.id, f.next_attempt_at, f.turn, f.organisation_id, f.under_way_of_organisation
      from failing f
      where f.place_of_failing <= v_quarter - (select coalesce(sum(e.under_way), 0) from endpoints e where e.failing)
    ),
    placed as (
      select
        d.*,
        row_number() over (partition by d.organisation_id order by d.turn, d.next_attempt_at, d.id) as place_of_organisation
      from but_few_failing d
    )
    select p.id
    from placed p
    where p.under_way_of_organisation + p.place_of_organisation <= v_half
    order by p.turn, p.next_attempt_at
    limit claim_webhooks."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  update public.webhook_deliveries d
  set status = 'failed', last_error = 'It was sent again and again, and nobody could say how it went.'
  where d.id = any (v_candidates) and d.status = 'pending' and d.attempts >= v_most_claims;

  with due as (
    select d.id
    from public.webhook_deliveries d
    where d.id = any (v_candidates) and d.status = 'pending' and d.next_attempt_at <= v_now
    for no key update skip locked
  ),
  claimed as (
    update public.webhook_deliveries d
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = d.attempts + 1,
      last_attempt_at = v_now
    from due
    where d.id = due.id
    returning d.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'webhook_endpoint_id', w.id,
      'url', w.url,
      'secrets', (
        select json_agg(s.secret order by s.expires_at desc nulls first)
        from private.webhook_secrets s
        where s.webhook_endpoint_id = w.id and (s.expires_at is null or s.expires_at > v_now)
      ),
      'webhook_id', n.id,
      'type', n.type,
      'timestamp', private.rfc3339(n.created_at),
      'data', n.data
    )),
    '[]'
  ) into v_owed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_owed;
end
$$;

comment on function api.claim_webhooks(integer, integer) is
  'Webhooks that are due, claimed for lease_seconds: [{ id, claim, attempt, webhook_endpoint_id, url, secrets, webhook_id, type, timestamp, data }].';

-- Given back unsent, or broken off, by a courier that is told to stop: it was not an attempt, and is due at once.
create or replace function api.release_webhook(webhook_delivery_id uuid, claim uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.webhook_deliveries d
  set claim = null, claimed_until = null, next_attempt_at = now(), attempts = d.attempts - 1
  where d.id = release_webhook.webhook_delivery_id and d.claim = release_webhook.claim and d.status = 'pending';
end
$$;

comment on function api.release_webhook(uuid, uuid) is 'Gives a claimed webhook back, for another courier to send.';

grant execute on function api.release_webhook(uuid, uuid) to courier;

-- What the endpoint answered, or why it did not. 2xx is delivered; 410 says never again; everything else is tried again, not
-- before the endpoint asks for it. An endpoint that has failed for five days is disabled. What another address of it answered,
-- which it had when the webhook was claimed, is kept in the log and held against nobody: the new one has attempts of its own.
create or replace function api.settle_webhook(
  webhook_delivery_id uuid,
  claim uuid,
  response_status integer default null,
  response_body text default null,
  milliseconds integer default null,
  error text default null,
  retry_after_seconds integer default null,
  url text default null
) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_delivered constant boolean := coalesce(response_status between 200 and 299, false);
  -- Ten attempts within some three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_endpoint public.webhook_endpoints;
  v_moved boolean;
  v_failing_since timestamptz;
  v_reason text;
begin
  -- The endpoint before its deliveries, as whoever changes or deletes it has them.
  select w.* into v_endpoint
  from public.webhook_endpoints w
  where w.id = (
    select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = settle_webhook.webhook_delivery_id
  )
  for no key update;
  v_moved := coalesce(v_endpoint.url <> settle_webhook.url, false);

  update public.webhook_deliveries d
  set claim = null,
    claimed_until = null,
    attempts = case when v_moved and not v_delivered then 0 else d.attempts end,
    last_response_status = settle_webhook.response_status,
    last_response_body = left(settle_webhook.response_body, 1024),
    last_response_milliseconds = milliseconds,
    last_error = settle_webhook.error,
    delivered_at = case when v_delivered then now() else d.delivered_at end,
    status = case
      when v_delivered then 'delivered'
      when v_moved then 'pending'
      when response_status = 410 or d.attempts > cardinality(v_pauses) then 'failed'
      else 'pending'
    end::public.webhook_delivery_status,
    next_attempt_at = case
      when v_moved then now()
      else greatest(
        now() + private.retry_delay(d.attempts, v_pauses), now() + make_interval(secs => least(coalesce(retry_after_seconds, 0), 86400))
      )
    end
  where d.id = settle_webhook.webhook_delivery_id and d.claim = settle_webhook.claim and d.status = 'pending';
  if not found or v_moved then
    return false;
  end if;

  if v_delivered then
    update public.webhook_endpoints w set failing_since = null where w.id = v_endpoint.id and w.failing_since is not null;
    return false;
  end if;
  -- A failure long after the one before it, for nothing was sent meanwhile, is the first of a new series: a retry comes within
  -- thirty hours.
  v_failing_since := case
    when v_endpoint.last_failed_at > now() - interval '30 hours' then coalesce(v_endpoint.failing_since, now()) else now()
  end;
  v_reason := case
    when v_endpoint.status = 'disabled' then null
    when response_status = 410 then 'It answered 410 Gone.'
    when v_failing_since < now() - interval '5 days' then 'Nothing that was sent to it for five days succeeded.'
  end;
  if v_reason is null then
    update public.webhook_endpoints w set failing_since = v_failing_since, last_failed_at = now() where w.id = v_endpoint.id;
    return false;
  end if;
  update public.webhook_endpoints w
  set failing_since = v_failing_since, last_failed_at = now(), status = 'disabled', disabled_reason = v_reason
  where w.id = v_endpoint.id;
  return true;
end
$$;

comment on function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer, text) is
  'Says how sending a claimed webhook went: whether that disabled its endpoint. Nothing happens when the claim has passed to somebody else.';

grant execute on function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer, text) to courier;

-- What is owed, by kind, for whoever watches: how much, since when the oldest of it, and how late the couriers are. What waits
-- for its own endpoint, which is failing or busy, waits for no courier; and what an endpoint that is disabled would get is
-- owed to nobody.
create or replace function api.outbox_depth() returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'owed', k.owed,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0)
    ))
    from (
      select
        'webhooks' as kind,
        coalesce(sum(d.owed), 0) as owed,
        min(d.oldest) as oldest,
        min(d.due) filter (where w.failing_since is null and not d.busy) as due
      from (
        select
          d.webhook_endpoint_id,
          count(*) as owed,
          min(d.created_at) as oldest,
          min(d.next_attempt_at) as due,
          coalesce(bool_or(d.claimed_until > now()), false) as busy
        from public.webhook_deliveries d
        where d.status = 'pending'
        group by d.webhook_endpoint_id
      ) d
      join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
      union all
      select 'ticket_emails', count(*), min(e.created_at), min(e.next_attempt_at)
      from public.ticket_emails e
      where e.status = 'queued'
    ) k
  );
end
$$;

comment on function api.outbox_depth() is
  'What is owed: [{ kind, owed, oldest_seconds, late_seconds }], late being how long what is due has waited.';

grant execute on function api.outbox_depth() to courier;

-- What is due, oldest first, with all that the e-mail says. Security definer, like its twins in 19_courier.sql.
create or replace function api.claim_ticket_emails("limit" integer, lease_seconds integer default 600) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Thirteen attempts are made; what was claimed far more often than that kills its couriers, or they cannot settle.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_until constant timestamptz := now() + make_interval(secs => lease_seconds);
  v_owed json;
begin
  perform api.settle_ticket_email(
    e.id, e.claim, error => 'It was sent again and again, and nobody could say how it went.', permanent => true
  )
  from public.ticket_emails e
  where e.status = 'queued' and e.next_attempt_at <= now() and e.attempts >= v_most_claims and e.claim is not null;

  with due as (
    select e.id
    from public.ticket_emails e
    where e.status = 'queued' and e.next_attempt_at <= now()
    order by e.next_attempt_at
    limit claim_ticket_emails."limit"
    for no key update skip locked
  ),
  claimed as (
    update public.ticket_emails e
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = e.attempts + 1,
      sent_to = a.email,
      sent_code = a.ticket_code
    from due
    join public.ticket_emails d on d.id = due.id
    join public.attendees a on a.id = d.attendee_id
    where e.id = due.id and a.status = 'active'
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
  ) into v_owed
  from claimed c
  join public.attendees a on a.id = c.attendee_id
  join public.orders o on o.id = a.order_id
  join public.ticket_types t on t.id = a.ticket_type_id
  join public.events v on v.id = a.event_id
  join public.organisations g on g.id = a.organisation_id;
  return v_owed;
end
$$;

-- Sent, with what the mail service calls it; or failed, for good or for now. Transient failures are tried again for five days:
-- a password that expired on a Friday costs nobody a ticket.
create or replace function api.settle_ticket_email(
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

-- What the mail service tells later: delivered, or bounced and why. It knows an e-mail by its own id, and by ours with the number
-- of the attempt if these were sent along; by ours it may tell sooner than the courier that sent it, or in place of one that
-- died with its claim. What it tells of an attempt that another has followed is no news: that may have had another address.
create or replace function api.record_ticket_email_event(
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

-- Answers how many rows went, so that the caller goes on while there are more. What is still owed is kept, however old, unless
-- its endpoint is disabled.
create or replace function api.purge(retention_days integer default 30, "limit" integer default 1000) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_before timestamptz := now() - make_interval(days => greatest(retention_days, 1));
  v_purged integer;
  v_rows integer;
begin
  delete from private.idempotency_records r
  where (r.family_id, r.idempotency_key) in (
    select e.family_id, e.idempotency_key from private.idempotency_records e
    where e.expires_at < now() order by e.expires_at limit purge."limit" for update skip locked
  );
  get diagnostics v_purged = row_count;

  delete from public.webhook_deliveries d
  where d.id in (
    select o.id from public.webhook_deliveries o
    where o.created_at < v_before
      and (
        o.status <> 'pending'
        or exists (select from public.webhook_endpoints w where w.id = o.webhook_endpoint_id and w.status = 'disabled')
      )
    order by o.created_at limit purge."limit" for update skip locked
  );
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.notifications n
  where n.id in (
    select o.id from public.notifications o
    where o.created_at < v_before
      and not exists (select from public.webhook_deliveries d where d.notification_id = o.id)
    order by o.created_at limit purge."limit" for update skip locked
  );
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.ticket_emails e
  where e.id in (
    select o.id from public.ticket_emails o
    where o.created_at < v_before and o.status <> 'queued' order by o.created_at limit purge."limit" for update skip locked
  );
  get diagnostics v_rows = row_count;
  return v_purged + v_rows;
end
$$;

-- Who calls the courier where it is an edge function: pg_cron, through pg_net, with what Vault keeps. Where a project has not
-- enabled these, as the embedded stack has not, there is nothing to call and nothing to schedule.

-- Calls the function if something is due, or in any case. A row of net._http_response tells what it answered.
create or replace function private.call_courier(in_any_case boolean default false) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if not in_any_case
    and not exists (
      select from public.webhook_endpoints w
      cross join lateral (
        select from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.status = 'pending' and d.next_attempt_at <= now()
        limit 1
      ) d
      where w.status = 'enabled'
    )
    and not exists (select from public.ticket_emails e where e.status = 'queued' and e.next_attempt_at <= now())
  then
    return;
  end if;
  perform net.http_post(
    url => (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_url'),
    headers => jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_secret')
    ),
    -- Longer than a run takes, so that its answer is kept.
    timeout_milliseconds => 60000
  );
end
$$;

-- Answers in a sentence what it did, for whoever runs it in the SQL editor. Run again, it replaces what it scheduled.
create or replace function private.schedule_courier(url text, secret text, every text default '10 seconds') returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_missing text := concat_ws(
    ', ',
    case when to_regprocedure('cron.schedule(text,text,text)') is null then 'pg_cron' end,
    case when to_regprocedure('net.http_post(text,jsonb,jsonb,jsonb,integer)') is null then 'pg_net' end,
    case when to_regclass('vault.decrypted_secrets') is null then 'supabase_vault' end
  );
begin
  if v_missing <> '' then
    return format('Not scheduled: enable the extensions %s first, or have something else call the function.', v_missing);
  end if;
  delete from vault.secrets s where s.name in ('usher_courier_url', 'usher_courier_secret');
  perform vault.create_secret(url, 'usher_courier_url');
  perform vault.create_secret(secret, 'usher_courier_secret');
  perform cron.schedule('usher-courier', every, 'select private.call_courier()');
  -- It purges as well, also when nothing is due. What pg_cron notes of each call it would keep for ever.
  perform cron.schedule('usher-courier-housekeeping', '*/10 * * * *', $job$
    select private.call_courier(in_any_case => true);
    delete from cron.job_run_details r using cron.job j
    where j.jobid = r.jobid and j.jobname like 'usher-courier%' and r.end_time < now() - interval '7 days'
  $job$);
  return format('Scheduled: the courier is called every %s if something is due.', every);
end
$$;
