-- Ticket e-mails: one row per e-mail, added when a ticket is queued, claimed and settled by the courier like a webhook. The
-- result is shown on the attendee as ticket_email.

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
  last_attempt_at timestamptz,
  constraint ticket_emails_pkey primary key (id),
  constraint ticket_emails_attendee_id_fkey foreign key (attendee_id) references public.attendees (id) on delete cascade,
  constraint ticket_emails_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint ticket_emails_queued_have_a_next_attempt check ((status = 'queued') = (next_attempt_at is not null))
);
comment on table public.ticket_emails is 'Ticket e-mails, pending and sent. Written by Usher only; queue one by setting ticket_email_status of the attendee.';
comment on column public.ticket_emails.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.ticket_emails.organisation_id is 'The organisation that it belongs to.';
comment on column public.ticket_emails.attendee_id is 'Whose ticket it is.';
comment on column public.ticket_emails.status is 'queued, sent, delivered, bounced, failed or cancelled.';
comment on column public.ticket_emails.attempts is 'How often it was tried since it was last queued.';
comment on column public.ticket_emails.next_attempt_at is 'When it is tried next. Empty once it is settled.';
comment on column public.ticket_emails.claim is 'Identifies the claim under which it is being sent.';
comment on column public.ticket_emails.claimed_until is 'Until when a courier has it in hand.';
comment on column public.ticket_emails.sent_at is 'When the mail service took it.';
comment on column public.ticket_emails.last_error is 'Why it was not sent or came back.';
comment on column public.ticket_emails.created_at is 'When the row was added.';
comment on column public.ticket_emails.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.ticket_emails.last_attempt_at is 'When it was last tried.';
comment on column public.ticket_emails.sent_to is 'The address of the attendee when it was claimed.';
comment on column public.ticket_emails.sent_code is 'The ticket code when it was claimed: if the code changed while the e-mail was in flight, another one follows.';
comment on column public.ticket_emails.message_id is 'Its identifier at the mail service.';

-- No index on next_attempt_at alone: see webhook_deliveries.
create index ticket_emails_organisation_id_next_attempt_at_idx on public.ticket_emails (organisation_id, next_attempt_at)
  where status = 'queued';
create index ticket_emails_organisation_id_claimed_idx on public.ticket_emails (organisation_id) where claimed_until is not null;
create index ticket_emails_organisation_id_last_attempt_at_idx on public.ticket_emails (organisation_id, last_attempt_at)
  where last_attempt_at is not null;
create index ticket_emails_attendee_id_idx on public.ticket_emails (attendee_id);
create index ticket_emails_organisation_id_idx on public.ticket_emails (organisation_id);
create index ticket_emails_message_id_idx on public.ticket_emails (message_id) where message_id is not null;
-- For api.purge.
create index ticket_emails_created_at_idx on public.ticket_emails (created_at);

create trigger ticket_emails_900_updated_at before update on public.ticket_emails
  for each row execute function private.tg__set_updated_at();

-- Once per statement, so that cancelling an event cancels its queued e-mails in one update. Fires before the totals, whose
-- changes queue others. Security definer: no role may write ticket_emails.
create function private.tg_attendees__queue_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_dequeued_ids uuid[];
begin
  if tg_op = 'INSERT' then
    insert into public.ticket_emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
  elsif exists (select from new_rows n where n.ticket_email_status = 'queued')
    or exists (select from old_rows o where o.ticket_email_status = 'queued') then
    -- Not joins of the two transition tables: see tg_attendees__add_up.
    insert into public.ticket_emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued';
    v_dequeued_ids := array(
      select o.id from old_rows o where o.ticket_email_status = 'queued'
      except
      select n.id from new_rows n where n.ticket_email_status = 'queued'
    );
    if v_dequeued_ids <> '{}' then
      update public.ticket_emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
      where e.attendee_id = any (v_dequeued_ids) and e.status = 'queued';
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

revoke all on public.ticket_emails from anon, authenticated, service_role;

alter table public.ticket_emails enable row level security;
create policy ticket_emails_select_membership on public.ticket_emails for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select (
  id, organisation_id, attendee_id, status, attempts, next_attempt_at, sent_to, sent_at, message_id, last_error, created_at, updated_at,
  last_attempt_at
) on public.ticket_emails to authenticated;
