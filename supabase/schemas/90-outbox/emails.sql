-- E-mails to guests: a row each, added in the transaction of what it tells of (`emails.sql` of a room), leased, sent and settled by the
-- courier (email-claims.sql). What became of a ticket is shown on its attendee as ticket_email. An order with send_email false gets none,
-- unless everybody is to be told.

-- Whom a change or a cancellation is told: those whose orders have e-mails, or all. As of attendees, so of buyers.
create type public.notify as enum ('nobody', 'mailed', 'everybody');

-- What an organiser adds to what is told, in their own words: blank is none, and one that nobody would read is refused.
create function private.sound_message(message text, notify public.notify) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  message := nullif(btrim(message, E' \t\r\n'), '');
  if message is not null and coalesce(notify, 'nobody') = 'nobody' then
    perform private.refuse_value('message', 'A message needs recipients.', 'Set notify to mailed or everybody.');
  elsif length(message) > 1000 then
    perform private.refuse_value('message', 'A message can have at most 1000 characters.', 'Put the rest on a page, and link to it here.');
  end if;
  return message;
end
$$;

-- Somebody to be told, as a guest, as a buyer or as one who waits, and why they are not; null: they are.
create type private.recipient as (
  organisation_id uuid,
  attendee_id uuid,
  waiting_list_entry_id uuid,
  order_id uuid,
  email_lower text,
  reason text,
  -- Whether their order has e-mails.
  is_mailed boolean,
  -- Tickets that were cancelled together are told of together.
  cancelled_at timestamptz
);

create table public.emails (
  kind public.email_kind not null default 'ticket',
  status public.email_status not null default 'queued',
  sent_to text,
  attendee_id uuid,
  order_id uuid,
  sent_at timestamptz,
  last_error text,
  message text,
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  last_attempt_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  payment_id uuid,
  waiting_list_entry_id uuid,
  organiser_message_id uuid,
  message_id text,
  is_mailing boolean not null generated always as (
    kind not in ('ticket', 'order_confirmation', 'payment_received', 'payment_voided', 'ticket_cancelled', 'ticket_passed_on', 'waiting_list_offer')
  ) stored,
  previous jsonb,
  content jsonb,
  sent_code text,
  sent_with uuid,
  claim uuid,
  claimed_until timestamptz,
  constraint emails_pkey primary key (id),
  constraint emails_attendee_id_fkey foreign key (attendee_id) references public.attendees (id) on delete cascade,
  constraint emails_order_id_fkey foreign key (order_id) references public.orders (id) on delete cascade,
  constraint emails_payment_id_fkey foreign key (payment_id) references public.payments (id) on delete cascade,
  constraint emails_organiser_message_id_fkey foreign key (organiser_message_id) references public.messages (id) on delete cascade,
  constraint emails_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint emails_have_a_next_attempt_while_queued check ((status = 'queued') = (next_attempt_at is not null)),
  constraint emails_to_guests_name_one check (
    attendee_id is not null or kind not in (
      'ticket', 'ticket_cancelled', 'ticket_passed_on', 'event_changed', 'event_cancelled', 'answers_reminder', 'organiser_message'
    )
  ),
  constraint emails_to_buyers_name_an_order check (
    order_id is not null or kind not in (
      'order_confirmation', 'payment_received', 'payment_voided', 'payment_reminder', 'order_expired', 'order_cancelled'
    )
  ),
  constraint emails_of_payments_name_one check (payment_id is not null or kind not in ('payment_received', 'payment_voided')),
  constraint emails_of_messages_name_one check (organiser_message_id is not null or kind <> 'organiser_message'),
  constraint emails_to_the_waiting_list_name_an_entry check (
    waiting_list_entry_id is not null or kind not in ('waiting_list_offer', 'waiting_list_cancelled')
  )
);
comment on table public.emails is 'E-mails to attendees and buyers, pending and sent. Written by Usher only. Set status to cancelled to stop one, or to queued to send it again. For a ticket, set ticket_email_status of the attendee.';
comment on column public.emails.kind is 'Kind of e-mail: ticket, order_confirmation, payment_received and so on.';
comment on column public.emails.status is 'queued, sent, delivered, bounced, failed or cancelled. Set it to cancelled to stop the e-mail, or to queued to send it again or retry at once. For a sent ticket, use its attendee.';
comment on column public.emails.sent_to is 'Address it was sent to. For ticket_passed_on, the former holder, from the start.';
comment on column public.emails.attendee_id is 'The recipient, if an attendee.';
comment on column public.emails.order_id is 'The order whose buyer receives it, if a buyer.';
comment on column public.emails.sent_at is 'When the mail service accepted it.';
comment on column public.emails.last_error is 'Why it failed or bounced.';
comment on column public.emails.message is 'The organiser''s own words, at most 1000 characters.';
comment on column public.emails.attempts is 'Attempts since it was last queued.';
comment on column public.emails.next_attempt_at is 'Time of the next attempt. Empty once settled.';
comment on column public.emails.last_attempt_at is 'Time of the last attempt.';
comment on column public.emails.payment_id is 'The received or voided payment.';
comment on column public.emails.waiting_list_entry_id is 'The waiting-list entry that receives it, if any.';
comment on column public.emails.organiser_message_id is 'The message that it brings: a row of messages.';
comment on column public.emails.message_id is 'Message id at the mail service.';
comment on column public.emails.is_mailing is 'Internal: a kind that an event may send by the thousand: changes, cancellation, reminders, expiries. Other e-mails of the organisation go first. Generated.';
comment on column public.emails.previous is 'Internal: for event_changed: what the attendees knew before, as in the JSON of the event.';
comment on column public.emails.content is 'Internal: in a test organisation, what was composed in place of being sent: subject, text, HTML and attachments.';
comment on column public.emails.sent_code is 'Internal: for a ticket: the code when it was leased. If it changed in flight, another e-mail follows.';
comment on column public.emails.sent_with is 'Internal: for tickets sent together: the row of the e-mail that carries them, itself included.';
comment on column public.emails.claim is 'Internal: lease under which it is being sent.';
comment on column public.emails.claimed_until is 'Internal: end of the courier''s lease.';

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
-- For private.page_of_emails. Without kind and status: claims would be planned with these where the statistics know of nothing.
create index emails_organisation_id_id_idx on public.emails (organisation_id, id);
-- For private.is_told_otherwise, too.
create index emails_organiser_message_id_idx on public.emails (organiser_message_id, lower(sent_to)) where organiser_message_id is not null;
create index emails_sent_with_idx on public.emails (sent_with) where sent_with is not null;
create index emails_message_id_idx on public.emails (message_id) where message_id is not null;
-- For api.purge.
create index emails_created_at_idx on public.emails (created_at);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('emails', 'sent_to', 'null', null),
  ('emails', 'last_error', 'null', null),
  ('emails', 'content', 'null', null),
  ('emails', 'message', 'null', null);

-- The status that somebody sets: queued sends any e-mail once more, cancelled keeps one from being sent. What is overtaken meanwhile is
-- cancelled as ever when it is claimed. One that waits after a failure is due at once, a ticket too; what is being sent is left alone. One
-- that is cancelled has no next attempt, and the attendee says so of a ticket, which can then be queued again.
create function private.tg_emails__set_status() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if tg_when = 'AFTER' then
    update public.attendees a set ticket_email_status = 'cancelled' where a.id = new.attendee_id and a.ticket_email_status = 'queued';
    return null;
  elsif new.status = 'cancelled' and old.status <> 'queued' then
    perform private.refuse(
      409, 'invalid_transition', 'Only a queued e-mail can be cancelled.', 'status',
      jsonb_build_object('from', old.status, 'to', new.status), 'Leave it: it records a sent e-mail.'
    );
  elsif new.kind = 'ticket' and new.status = 'queued' and old.status <> 'queued' then
    perform private.refuse(
      409, 'read_only_field', 'Send a ticket again from its attendee, not by the status of its e-mail.', 'status',
      hint => 'Set ticket_email_status of the attendee to queued.'
    );
  elsif new.status = 'queued' then
    new.attempts := 0;
    new.last_error := null;
  end if;
  new.next_attempt_at := case new.status when 'queued' then now() end;
  new.claim := null;
  new.claimed_until := null;
  return new;
end
$$;
create trigger emails_100_set_status before update of status on public.emails
  for each row when (
    new.status = 'queued' and (old.status <> 'queued' or old.claim is null and old.last_error is not null)
    or new.status = 'cancelled' and old.status <> 'cancelled' and private.is_typed()
  )
  execute function private.tg_emails__set_status();
create trigger emails_500_cancel_ticket after update of status on public.emails
  for each row when (new.status = 'cancelled' and old.status = 'queued' and new.kind = 'ticket' and private.is_typed())
  execute function private.tg_emails__set_status();
create trigger emails_100_append_only before delete on public.emails
  for each row when (private.is_typed())
  execute function private.tg__assert_append_only('E-mails are a log and are never deleted.', 'Set status to cancelled instead.');
-- Nobody adds rows by hand, and what the log says is for the purge to take out.
select private.keep_table('public.emails', required => '{}', fixed => '{organisation_id}', derived => null);

create function private.bounce_json(
  kind public.email_kind, event_id uuid, order_id uuid, attendee_id uuid, "to" text, status public.email_status, sent_at timestamptz, error text,
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
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      new.kind, coalesce(o.event_id, w.event_id), o.id, new.attendee_id, new.sent_to, new.status, new.sent_at, new.last_error,
      new.waiting_list_entry_id
    ),
    coalesce(o.id, new.waiting_list_entry_id)
  from (select coalesce(new.order_id, (select a.order_id from public.attendees a where a.id = new.attendee_id)) as order_id) e
  left join public.orders o on o.id = e.order_id
  left join public.waiting_list_entries w on w.id = new.waiting_list_entry_id;
  return null;
end
$$;
create trigger emails_600_notify_bounce after update of status on public.emails
  for each row when (new.kind <> 'ticket' and new.status in ('bounced', 'failed') and new.status <> old.status)
  execute function private.tg_emails__notify_bounce();

create policy emails_select_own on public.emails for select to scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy emails_select_membership on public.emails for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select (
  id, organisation_id, kind, attendee_id, order_id, payment_id, waiting_list_entry_id, organiser_message_id, status, attempts, next_attempt_at, sent_to, sent_at, message_id, last_error, message, created_at, updated_at,
  last_attempt_at
) on public.emails to authenticated;
grant select (
  id, organisation_id, kind, attendee_id, order_id, waiting_list_entry_id, status, attempts, next_attempt_at, sent_to, sent_at, last_error,
  content, sent_with, created_at, updated_at
) on public.emails to scope_attendees_read;
