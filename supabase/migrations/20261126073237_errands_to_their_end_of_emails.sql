-- errands to their end, of e-mails. Written by `npm run db:migration` from supabase/schemas, and parted from the migration
-- before.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- One table, and no other meanwhile: claims of e-mails read attendees and orders after e-mails, and registrations write these before.
drop trigger emails_100_send_again on public.emails;

create trigger emails_100_send_again
  before update of status on public.emails
  for each row
  when
    (((new.status = 'queued'::public.email_status) and ((old.status <> 'queued'::public.email_status) or ((old.claim is
    null) and (old.last_error is not null))) and private.is_by_hand()))
  execute function private.tg_emails__send_again();

comment on column public.emails.status is 'queued, sent, delivered, bounced, failed or cancelled. Set it to queued to send the e-mail once more, or at once where it waits after a failure; a ticket that was sent by its attendee.';
