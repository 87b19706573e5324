-- E-mails: one row each, added in the transaction of what it tells of, claimed and settled by the courier like a webhook. The result
-- of a ticket is shown on the attendee as ticket_email. An order with send_email false gets none of any kind.

create type public.email_kind as enum (
  'ticket', 'order_confirmation', 'payment_received', 'payment_reminder', 'order_expired', 'event_changed', 'event_cancelled',
  'ticket_cancelled', 'waiting_list_offer'
);

create table public.emails (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  kind public.email_kind not null default 'ticket',
  is_mailing boolean not null generated always as (
    kind in ('event_changed', 'event_cancelled', 'payment_reminder', 'order_expired')
  ) stored,
  attendee_id uuid,
  order_id uuid,
  payment_id uuid,
  waiting_list_entry_id uuid,
  previous jsonb,
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
  last_attempt_at timestamptz,
  constraint emails_pkey primary key (id),
  constraint emails_attendee_id_fkey foreign key (attendee_id) references public.attendees (id) on delete cascade,
  constraint emails_order_id_fkey foreign key (order_id) references public.orders (id) on delete cascade,
  constraint emails_payment_id_fkey foreign key (payment_id) references public.payments (id) on delete cascade,
  constraint emails_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint emails_queued_have_a_next_attempt check ((status = 'queued') = (next_attempt_at is not null)),
  constraint emails_have_a_recipient check (case
    when kind in ('order_confirmation', 'payment_reminder', 'order_expired') then order_id is not null
    when kind = 'payment_received' then order_id is not null and payment_id is not null
    when kind = 'waiting_list_offer' then waiting_list_entry_id is not null
    else attendee_id is not null
  end)
);
comment on table public.emails is 'E-mails to attendees and buyers, pending and sent. Written by Usher only; send a ticket once more by setting ticket_email_status of the attendee.';
comment on column public.emails.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.emails.organisation_id is 'The organisation that it belongs to.';
comment on column public.emails.kind is 'What it tells: ticket, order_confirmation, payment_received and so on.';
comment on column public.emails.is_mailing is 'Whether an event may have thousands at once: changes, cancellation, reminders, expiries. These wait for whatever else the organisation sends. Generated.';
comment on column public.emails.attendee_id is 'To whom it goes, where that is an attendee.';
comment on column public.emails.order_id is 'The order whose contact it goes to, where that is the buyer.';
comment on column public.emails.payment_id is 'The payment that was received.';
comment on column public.emails.waiting_list_entry_id is 'The entry of the waiting list that it offers a place to.';
comment on column public.emails.previous is 'Of event_changed: what the attendees knew before, as in the JSON of the event.';
comment on column public.emails.status is 'queued, sent, delivered, bounced, failed or cancelled.';
comment on column public.emails.attempts is 'How often it was tried since it was last queued.';
comment on column public.emails.next_attempt_at is 'When it is tried next. Empty once it is settled.';
comment on column public.emails.claim is 'Identifies the claim under which it is being sent.';
comment on column public.emails.claimed_until is 'Until when a courier has it in hand.';
comment on column public.emails.sent_at is 'When the mail service took it.';
comment on column public.emails.last_error is 'Why it was not sent or came back.';
comment on column public.emails.created_at is 'When the row was added.';
comment on column public.emails.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.emails.last_attempt_at is 'When it was last tried.';
comment on column public.emails.sent_to is 'The address that it went to, as of when it was claimed.';
comment on column public.emails.sent_code is 'Of a ticket: the code when it was claimed: if the code changed while the e-mail was in flight, another one follows.';
comment on column public.emails.message_id is 'Its identifier at the mail service.';

-- No index on next_attempt_at alone: see webhook_deliveries.
create index emails_organisation_id_next_attempt_at_idx on public.emails (organisation_id, is_mailing, next_attempt_at)
  where status = 'queued';
create index emails_organisation_id_claimed_idx on public.emails (organisation_id) where claimed_until is not null;
create index emails_organisation_id_last_attempt_at_idx on public.emails (organisation_id, last_attempt_at)
  where last_attempt_at is not null;
create index emails_attendee_id_idx on public.emails (attendee_id);
create index emails_order_id_idx on public.emails (order_id) where order_id is not null;
create index emails_payment_id_idx on public.emails (payment_id) where payment_id is not null;
create index emails_waiting_list_entry_id_idx on public.emails (waiting_list_entry_id) where waiting_list_entry_id is not null;
create index emails_organisation_id_idx on public.emails (organisation_id);
create index emails_message_id_idx on public.emails (message_id) where message_id is not null;
-- For api.purge.
create index emails_created_at_idx on public.emails (created_at);

create trigger emails_900_updated_at before update on public.emails
  for each row execute function private.tg__set_updated_at();

-- Once per statement, so that cancelling an event cancels its queued e-mails in one update. Fires before the totals, whose
-- changes queue others. Security definer: no role may write emails.
create function private.tg_attendees__queue_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_dequeued_ids uuid[];
begin
  if tg_op = 'INSERT' then
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
  elsif exists (select from new_rows n where n.ticket_email_status = 'queued')
    or exists (select from old_rows o where o.ticket_email_status = 'queued') then
    -- Not joins of the two transition tables: see tg_attendees__add_up.
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued';
    v_dequeued_ids := array(
      select o.id from old_rows o where o.ticket_email_status = 'queued'
      except
      select n.id from new_rows n where n.ticket_email_status = 'queued'
    );
    if v_dequeued_ids <> '{}' then
      update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
      where e.attendee_id = any (v_dequeued_ids) and e.kind = 'ticket' and e.status = 'queued';
    end if;
  end if;
  return null;
end
$$;
create trigger attendees_340_queue_ticket_email_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__queue_ticket_email();
create trigger attendees_340_queue_ticket_email_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__queue_ticket_email();

-- To attendees, one for each address of an event; returns how many. Security definer, like all that follows: no role may write e-mails.
create function private.queue_attendee_emails(
  kind public.email_kind, attendee_ids uuid[], previous jsonb default null, send_at timestamptz default now()
) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_emails integer;
begin
  insert into public.emails (organisation_id, kind, attendee_id, previous, next_attempt_at)
  select distinct on (a.event_id, a.email_lower) a.organisation_id, queue_attendee_emails.kind, a.id, queue_attendee_emails.previous, send_at
  from public.attendees a
  where a.id = any (attendee_ids)
    and a.erased_at is null
    and (select o.send_email from public.orders o where o.id = a.order_id)
  order by a.event_id, a.email_lower, a.id;
  get diagnostics v_emails = row_count;
  return v_emails;
end
$$;

-- To the buyers of orders.
create function private.queue_order_emails(kind public.email_kind, order_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id)
  select o.organisation_id, queue_order_emails.kind, o.id
  from public.orders o
  where o.id = any (order_ids) and o.send_email
  order by o.id;
end
$$;

-- To people whom the waiting list offers a place.
create function private.queue_waiting_list_emails(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, waiting_list_entry_id)
  select w.organisation_id, 'waiting_list_offer', w.id
  from public.waiting_list_entries w
  where w.id = any (entry_ids)
  order by w.id;
end
$$;

-- An order that somebody adds in Studio is confirmed a little later: its attendees are rows that follow it, unless it comes from the view
-- registrations.
create function private.tg_orders__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id, next_attempt_at)
  select
    n.organisation_id,
    'order_confirmation',
    n.id,
    now() + case
      when n.source = 'studio' and current_setting('usher.registers', true) is distinct from 'on' then interval '10 minutes'
      else '0'
    end
  from new_rows n
  where n.payment_method is not null and n.send_email
  order by n.id;
  return null;
end
$$;
create trigger orders_500_confirm after insert on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__confirm();

create function private.tg_payments__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id, payment_id)
  select o.organisation_id, 'payment_received', o.id, new.id
  from public.orders o
  where o.id = new.order_id and o.send_email;
  return null;
end
$$;
create trigger payments_500_confirm after insert on public.payments
  for each row execute function private.tg_payments__confirm();

-- What attendees are told of an event, and told again when it changes.
create function private.announced(event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(f.key, f.value)
    from jsonb_each(private.event_json(event)::jsonb) f
    where f.key in ('name', 'starts_at', 'ends_at', 'timezone', 'venue', 'online_url')
  );
end
$$;

create table private.unannounced_changes (
  event_id uuid not null,
  previous jsonb not null,
  changed_at timestamptz not null default now(),
  constraint unannounced_changes_pkey primary key (event_id),
  constraint unannounced_changes_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade
);
comment on table private.unannounced_changes is 'Events that changed or were cancelled since their attendees were last told, with what these know, and when the last change was.';
alter table private.unannounced_changes enable row level security;

create function private.tg_events__note_change() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.unannounced_changes (event_id, previous) values (new.id, private.announced(old))
  on conflict on constraint unannounced_changes_pkey do update set changed_at = now();
  return null;
end
$$;
create trigger events_500_note_change after update on public.events
  for each row when (
    -- What is edited while the event is completed is to be told once it is published again.
    old.status in ('published', 'completed')
    and (
      new.status = 'cancelled'
      or new.status in ('published', 'completed')
      and (
        new.name is distinct from old.name
        or new.starts_at is distinct from old.starts_at
        or new.ends_at is distinct from old.ends_at
        or new.timezone is distinct from old.timezone
        or new.venue_name is distinct from old.venue_name
        or new.venue_address is distinct from old.venue_address
        or new.venue_city is distinct from old.venue_city
        or new.venue_postcode is distinct from old.venue_postcode
        or new.venue_country is distinct from old.venue_country
        or new.online_url is distinct from old.online_url
      )
    )
  )
  execute function private.tg_events__note_change();

-- Tells the attendees of an event what changed since they were last told, in ten minutes, so that changes which follow one another make
-- one e-mail, with the first old and the last new; or that it was cancelled, once. The caller has locked the event. Returns how many
-- e-mails.
create function private.notify_of_event(event_id uuid) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_change private.unannounced_changes;
  v_attendees uuid[];
  v_pending uuid[];
begin
  select e.* into v_event from public.events e where e.id = notify_of_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if v_event.status not in ('published', 'cancelled') then
    return 0;
  end if;
  delete from private.unannounced_changes c where c.event_id = v_event.id returning c.* into v_change;
  if not found then
    return 0;
  end if;
  if v_event.status = 'cancelled' then
    return private.queue_attendee_emails(
      'event_cancelled',
      array(
        select a.id
        from public.ticket_types t
        join public.attendees a on a.ticket_type_id = t.id
        where t.event_id = v_event.id and a.cancelled_at = v_event.cancelled_at
      )
    );
  end if;

  v_attendees := array(
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    -- Whoever registered since knows nothing else.
    where t.event_id = v_event.id and a.status <> 'cancelled' and a.created_at <= v_change.changed_at
  );
  -- Locked, so that no courier takes one with what the event was before this transaction.
  v_pending := array(
    select e.attendee_id
    from public.emails e
    where e.attendee_id = any (v_attendees) and e.kind = 'event_changed' and e.status = 'queued' and e.claim is null
    for no key update
  );
  return cardinality(v_pending) + private.queue_attendee_emails(
    'event_changed',
    array(
      select a.id
      from public.attendees a
      where a.id = any (v_attendees)
        and a.email_lower not in (select p.email_lower from public.attendees p where p.id = any (v_pending))
    ),
    v_change.previous,
    now() + interval '10 minutes'
  );
end
$$;
grant execute on function private.notify_of_event(uuid) to scope_events_write;

-- Tells those whose tickets this transaction cancelled: of an order, or one of them. Returns how many e-mails.
create function private.notify_of_cancelled_tickets(order_id uuid, attendee_id uuid default null) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return private.queue_attendee_emails(
    'ticket_cancelled',
    array(
      select a.id
      from public.attendees a
      where a.order_id = notify_of_cancelled_tickets.order_id
        and not private.is_foreign(a.organisation_id)
        and a.id = coalesce(notify_of_cancelled_tickets.attendee_id, a.id)
        and a.cancelled_at = now()
    )
  );
end
$$;
grant execute on function private.notify_of_cancelled_tickets(uuid, uuid) to scope_orders_write, scope_attendees_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.notify_attendees(event_id uuid) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform from public.events e
  where e.id = notify_attendees.event_id
    and (
      private.claims() ->> 'role' is distinct from 'authenticated'
      or e.organisation_id in (select private.organisations_as('{owner,manager}'))
    )
  for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return private.notify_of_event(event_id);
end
$$;
comment on function public.notify_attendees(uuid) is
  'Tells the attendees of an event by e-mail what changed since they were last told, ten minutes later, or that it was cancelled. Returns how many e-mails.';
revoke all on function public.notify_attendees(uuid) from public, anon, service_role;
grant execute on function public.notify_attendees(uuid) to authenticated;

create function private.bounce_json(
  kind public.email_kind, event_id uuid, order_id uuid, attendee_id uuid, "to" text, status public.ticket_email_status, sent_at timestamptz, error text,
  waiting_list_entry_id uuid default null
) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'email',
    'kind', kind,
    'event_id', event_id,
    'order_id', order_id,
    'attendee_id', attendee_id,
    'waiting_list_entry_id', waiting_list_entry_id,
    'to', "to",
    'status', status,
    'sent_at', private.rfc3339(sent_at),
    'error', error
  );
end
$$;

create function private.tg_emails__notify_bounce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      new.kind, coalesce(o.event_id, w.event_id), o.id, new.attendee_id, new.sent_to, new.status, new.sent_at, new.last_error,
      new.waiting_list_entry_id
    )
  from (select coalesce(new.order_id, (select a.order_id from public.attendees a where a.id = new.attendee_id)) as order_id) e
  left join public.orders o on o.id = e.order_id
  left join public.waiting_list_entries w on w.id = new.waiting_list_entry_id;
  return null;
end
$$;
create trigger emails_600_notify_bounce after update of status on public.emails
  for each row when (new.kind <> 'ticket' and new.status in ('bounced', 'failed') and new.status <> old.status)
  execute function private.tg_emails__notify_bounce();

revoke all on public.emails from anon, authenticated, service_role;

alter table public.emails enable row level security;
create policy emails_select_membership on public.emails for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select (
  id, organisation_id, kind, attendee_id, order_id, payment_id, waiting_list_entry_id, status, attempts, next_attempt_at, sent_to, sent_at, message_id, last_error, created_at, updated_at,
  last_attempt_at
) on public.emails to authenticated;
