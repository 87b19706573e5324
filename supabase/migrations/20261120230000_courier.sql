-- The courier: claims and settles webhooks and ticket e-mails.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.

-- In one transaction, as the Supabase CLI applies it: whoever registers waits for a moment.
-- squawk-ignore-file require-concurrent-index-creation, constraint-missing-not-valid
set local lock_timeout = '5s';
set local statement_timeout = '60s';

alter table public.organisations
  add column reply_to_email text,
  add constraint organisations_reply_to_email_is_an_address check (
    reply_to_email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(reply_to_email) <= 254
  );
alter table public.webhook_endpoints
  add column failing_since timestamptz,
  add column last_failed_at timestamptz;
alter table public.webhook_deliveries
  add column claim uuid,
  add column claimed_until timestamptz;

grant usage on schema api to gateway, api_key, courier;

comment on column public.organisations.reply_to_email is 'Where answers to ticket e-mails go.';

grant update (name, slug, reply_to_email) on public.organisations to authenticated;

comment on column public.webhook_endpoints.failing_since is 'Since when nothing that was sent to it succeeded. Kept by the courier.';

create or replace function private.tg_webhook_endpoints__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
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

create or replace trigger webhook_endpoints_900_version before update of url, description, types, status on public.webhook_endpoints
  for each row execute function private.tg__count_version();

comment on column public.webhook_deliveries.claim is 'Names the courier that is sending it; what another courier says of it does not count.';

create index webhook_deliveries_webhook_endpoint_id_next_attempt_at_idx
  on public.webhook_deliveries (webhook_endpoint_id, next_attempt_at) where status = 'pending';

create index webhook_deliveries_webhook_endpoint_id_claimed_idx
  on public.webhook_deliveries (webhook_endpoint_id) where claimed_until is not null;

-- Setting a delivery to pending owes it once more, from the beginning; a settled one has no next attempt.
create or replace function private.tg_webhook_deliveries__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status = 'pending' and old.status <> 'pending' then
    perform private.refuse_unsendable(new.webhook_endpoint_id, new.type);
    new.attempts := 0;
    new.next_attempt_at := coalesce(new.next_attempt_at, now());
  elsif new.status = 'pending' and new.attempts = 0 and old.attempts > 0 then
    -- Owed once more while it is under way: what becomes of that attempt does not count any more.
    new.claim := null;
  elsif new.status <> 'pending' then
    new.next_attempt_at := null;
    new.claim := null;
    new.claimed_until := null;
  end if;
  return new;
end
$$;

-- All that failed since a time, say after an outage of the endpoint; at most ten thousand at once, the oldest first.
create or replace function api.redeliver_webhooks(
  webhook_endpoint_id uuid,
  since timestamptz,
  until timestamptz default null,
  status public.webhook_delivery_status default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
  v_redelivered integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = redeliver_webhooks.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.refuse_unsendable(webhook_endpoint_id, 'webhook_endpoint.test');

  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id in (
    select f.id
    from public.webhook_deliveries f
    where f.webhook_endpoint_id = v_webhook_endpoint.id
      and f.status = coalesce(redeliver_webhooks.status, 'failed')
      and f.type = any (v_webhook_endpoint.types)
      and f.created_at >= since
      and (until is null or f.created_at < until)
    order by f.id
    limit 10000
    for no key update
  );
  get diagnostics v_redelivered = row_count;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object(
      'object', 'webhook_redelivery', 'webhook_endpoint_id', webhook_endpoint_id, 'redelivered', v_redelivered
    )
  ));
end
$$;

comment on function api.redeliver_webhooks(uuid, timestamptz, timestamptz, public.webhook_delivery_status, text, text) is
  'Owes a webhook endpoint once more what failed since a time, at most 10,000: 200 with how many. 404 not_found; 409 webhook_endpoint_disabled.';

grant execute on function api.redeliver_webhooks(uuid, timestamptz, timestamptz, public.webhook_delivery_status, text, text)
  to scope_events_write;

-- The courier's side of the outbox: it claims what is due, sends it, and says how that went. A claim is a lease: whoever dies
-- with it leaves it to the next, and what they say afterwards does not count. When to try again is decided here.
-- All security definer: the courier has no right to any table, and these are the only functions it may call.

-- What is due to endpoints that are enabled: to each a few at a time, and to one that is failing one at a time, so that those
-- that are slow or dead hold up nobody else; first what would be the first of its endpoint, and then the oldest. Found without
-- locks, and then locked. Claimed rows are due again when the lease runs out.
create or replace function api.claim_webhooks("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_owed json;
  v_claim uuid := gen_random_uuid();
  v_until timestamptz := now() + make_interval(secs => lease_seconds);
  v_candidates uuid[];
begin
  v_candidates := array(
    select d.id
    from public.webhook_endpoints w
    cross join lateral (
      select count(*)::integer as under_way
      from public.webhook_deliveries d
      where d.webhook_endpoint_id = w.id and d.claimed_until > now()
    ) c
    cross join lateral (
      select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
      from (
        select d.id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.status = 'pending' and d.next_attempt_at <= now()
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit greatest(case when w.failing_since is null then 4 else 1 end - c.under_way, 0)
      ) f
    ) d
    where w.status = 'enabled'
    order by c.under_way + d.place, d.next_attempt_at
    limit claim_webhooks."limit" * 2 -- Another courier may be after the same.
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  with due as (
    select d.id
    from public.webhook_deliveries d
    where d.id = any (v_candidates) and d.status = 'pending' and d.next_attempt_at <= now()
    order by array_position(v_candidates, d.id)
    limit claim_webhooks."limit"
    for no key update skip locked
  ),
  claimed as (
    update public.webhook_deliveries d
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = d.attempts + 1,
      last_attempt_at = now()
    from due
    where d.id = due.id
    returning d.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'url', w.url,
      'secrets', (
        select json_agg(s.secret order by s.expires_at desc nulls first)
        from private.webhook_secrets s
        where s.webhook_endpoint_id = w.id and (s.expires_at is null or s.expires_at > now())
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
  'Webhooks that are due, claimed for lease_seconds: [{ id, claim, attempt, url, secrets, webhook_id, type, timestamp, data }].';

grant execute on function api.claim_webhooks(integer, integer) to courier;

-- How long to wait after the attempt of this number; null after the last. A fifth more or less, so that what failed together
-- does not come back together.
create or replace function private.retry_delay(attempts integer, pauses interval[]) returns interval
language plpgsql volatile set search_path = ''
as $$
begin
  return (0.8 + 0.4 * random()) * pauses[attempts];
end
$$;

-- What the endpoint answered, or why it did not. 2xx is delivered; 410 says never again; everything else is tried again, not
-- before the endpoint asks for it. An endpoint that has failed for five days is disabled.
create or replace function api.settle_webhook(
  webhook_delivery_id uuid,
  claim uuid,
  response_status integer default null,
  response_body text default null,
  milliseconds integer default null,
  error text default null,
  retry_after_seconds integer default null
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_delivered boolean := coalesce(response_status between 200 and 299, false);
  -- Ten attempts within some three days, as Standard Webhooks proposes.
  v_pauses constant interval[] := '{5 seconds,5 minutes,30 minutes,2 hours,5 hours,10 hours,14 hours,20 hours,24 hours}';
  v_delivery public.webhook_deliveries;
begin
  -- The endpoint before its deliveries, as whoever changes or deletes it has them.
  perform 1
  from public.webhook_endpoints w
  where w.id = (
    select d.webhook_endpoint_id from public.webhook_deliveries d where d.id = settle_webhook.webhook_delivery_id
  )
  for no key update;

  update public.webhook_deliveries d
  set claim = null,
    claimed_until = null,
    last_response_status = settle_webhook.response_status,
    last_response_body = left(settle_webhook.response_body, 1024),
    last_response_milliseconds = milliseconds,
    last_error = settle_webhook.error,
    delivered_at = case when v_delivered then now() else d.delivered_at end,
    status = case
      when v_delivered then 'delivered'
      when response_status = 410 or d.attempts > cardinality(v_pauses) then 'failed'
      else 'pending'
    end::public.webhook_delivery_status,
    next_attempt_at = greatest(
      now() + private.retry_delay(d.attempts, v_pauses), now() + make_interval(secs => least(coalesce(retry_after_seconds, 0), 86400))
    )
  where d.id = settle_webhook.webhook_delivery_id and d.claim = settle_webhook.claim and d.status = 'pending'
  returning * into v_delivery;
  if not found then
    return;
  end if;

  if v_delivered then
    update public.webhook_endpoints w set failing_since = null
    where w.id = v_delivery.webhook_endpoint_id and w.failing_since is not null;
  elsif response_status = 410 then
    update public.webhook_endpoints w set status = 'disabled', disabled_reason = 'It answered 410 Gone.'
    where w.id = v_delivery.webhook_endpoint_id and w.status = 'enabled';
  else
    -- A failure long after the one before it, for nothing was sent meanwhile, is the first of a new series: a retry comes
    -- within thirty hours.
    update public.webhook_endpoints w
    set failing_since = case
        when w.last_failed_at > now() - interval '30 hours' then coalesce(w.failing_since, now()) else now()
      end,
      last_failed_at = now()
    where w.id = v_delivery.webhook_endpoint_id;
    update public.webhook_endpoints w
    set status = 'disabled', disabled_reason = 'Nothing that was sent to it for five days succeeded.'
    where w.id = v_delivery.webhook_endpoint_id and w.status = 'enabled' and w.failing_since < now() - interval '5 days';
  end if;
end
$$;

comment on function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer) is
  'Says how sending a claimed webhook went; nothing happens when the claim has passed to somebody else.';

grant execute on function api.settle_webhook(uuid, uuid, integer, text, integer, text, integer) to courier;

-- Ticket e-mails: one row for each that is owed, written when a ticket is queued, claimed and settled by the courier like a
-- webhook. What became of it is shown on the attendee as ticket_email.

create table public.ticket_emails (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  attendee_id uuid not null,
  status public.ticket_email_status not null default 'queued',
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  claim uuid,
  claimed_until timestamptz,
  sent_to text,
  sent_code text,
  sent_at timestamptz,
  message_id text,
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint ticket_emails_pkey primary key (id),
  constraint ticket_emails_attendee_id_fkey foreign key (attendee_id) references public.attendees (id) on delete cascade,
  constraint ticket_emails_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint ticket_emails_queued_have_a_next_attempt check ((status = 'queued') = (next_attempt_at is not null))
);

comment on table public.ticket_emails is 'Ticket e-mails, owed and sent. Written by Usher alone; queue one by setting ticket_email_status of the attendee.';

comment on column public.ticket_emails.sent_to is 'The address it was claimed for, as the attendee had it then.';

comment on column public.ticket_emails.sent_code is 'The ticket code it was claimed with: an e-mail that was overtaken by a new code is followed by another.';

comment on column public.ticket_emails.message_id is 'What the mail service calls it.';

create index ticket_emails_next_attempt_at_idx on public.ticket_emails (next_attempt_at) where status = 'queued';

create index ticket_emails_attendee_id_idx on public.ticket_emails (attendee_id);

create index ticket_emails_organisation_id_idx on public.ticket_emails (organisation_id);

create index ticket_emails_message_id_idx on public.ticket_emails (message_id) where message_id is not null;

create or replace trigger ticket_emails_900_updated_at before update on public.ticket_emails
  for each row execute function private.tg__set_updated_at();

revoke all on public.ticket_emails from anon, authenticated, service_role;

alter table public.ticket_emails enable row level security;

create policy ticket_emails_select_membership on public.ticket_emails for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select on public.ticket_emails to authenticated;

-- Security definer: what is owed is nobody's to write.
create or replace function private.tg_attendees__owe_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.ticket_email_status = 'queued' then
    insert into public.ticket_emails (organisation_id, attendee_id) values (new.organisation_id, new.id);
  else
    update public.ticket_emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
    where e.attendee_id = new.id and e.status = 'queued';
  end if;
  return null;
end
$$;

create or replace trigger attendees_500_owe_ticket_email_insert after insert on public.attendees
  for each row when (new.ticket_email_status = 'queued')
  execute function private.tg_attendees__owe_ticket_email();

create or replace trigger attendees_500_owe_ticket_email_update after update on public.attendees
  for each row when (
    new.ticket_email_status <> old.ticket_email_status and 'queued' in (new.ticket_email_status, old.ticket_email_status)
  )
  execute function private.tg_attendees__owe_ticket_email();

-- What is due, oldest first, with all that the e-mail says. Security definer, like its twins in 19_courier.sql.
create or replace function api.claim_ticket_emails("limit" integer, lease_seconds integer default 600) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_owed json;
  v_claim uuid := gen_random_uuid();
  v_until timestamptz := now() + make_interval(secs => lease_seconds);
begin
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

comment on function api.claim_ticket_emails(integer, integer) is
  'Ticket e-mails that are due, claimed for lease_seconds: [{ id, claim, attempt, organisation, event, ticket_type, order, attendee }].';

grant execute on function api.claim_ticket_emails(integer, integer) to courier;

-- Sent, with what the mail service calls it; or failed, for good or for now. Transient failures are tried again for a day.
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
  v_pauses constant interval[] := '{30 seconds,2 minutes,10 minutes,30 minutes,2 hours,6 hours,12 hours}';
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

-- What the mail service tells later: delivered, or bounced and why.
create or replace function api.record_ticket_email_event(message_id text, status public.ticket_email_status, error text default null) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_email public.ticket_emails;
begin
  update public.ticket_emails e
  set status = record_ticket_email_event.status, last_error = record_ticket_email_event.error
  where e.message_id = record_ticket_email_event.message_id
    and e.status in ('sent', 'delivered')
    and record_ticket_email_event.status in ('delivered', 'bounced')
  returning * into v_email;
  if not found then
    return;
  end if;
  -- Of the latest that was sent: what becomes of an earlier one is no news.
  update public.attendees a
  set ticket_email_status = v_email.status, ticket_email_last_error = v_email.last_error
  where a.id = v_email.attendee_id
    and a.ticket_email_status in ('sent', 'delivered')
    and not exists (
      select from public.ticket_emails l
      where l.attendee_id = a.id and l.id > v_email.id and l.status not in ('cancelled', 'failed')
    );
end
$$;

comment on function api.record_ticket_email_event(text, public.ticket_email_status, text) is
  'Says what became of an e-mail that was sent: delivered or bounced.';

grant execute on function api.record_ticket_email_event(text, public.ticket_email_status, text) to courier;

-- What is kept for a while only: first outcomes under their idempotency keys, settled deliveries and e-mails, and the log of
-- notifications. Purged by the courier, a few at a time, so that nobody waits for it.

create index webhook_deliveries_created_at_idx on public.webhook_deliveries (created_at);

create index notifications_created_at_idx on public.notifications (created_at);

create index ticket_emails_created_at_idx on public.ticket_emails (created_at);

-- Answers how many rows went, so that the caller goes on while there are more. What is still owed is kept, however old.
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
    where o.created_at < v_before and o.status <> 'pending' order by o.created_at limit purge."limit" for update skip locked
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

comment on function api.purge(integer, integer) is
  'Deletes what is older than its retention, at most "limit" rows of each kind: how many it were.';

grant execute on function api.purge(integer, integer) to courier;

-- What was queued before there was a table of what is owed.
insert into public.ticket_emails (organisation_id, attendee_id)
select a.organisation_id, a.id from public.attendees a where a.ticket_email_status = 'queued' order by a.id;
