-- one form and repairs, of emails. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

drop trigger emails_100_send_again on public.emails;

-- squawk-ignore require-concurrent-index-deletion
drop index public.emails_organisation_id_idx;

-- squawk-ignore require-concurrent-index-creation
create index emails_organisation_id_id_idx on public.emails using btree (organisation_id, id);

create trigger emails_100_append_only
  before delete on public.emails
  for each row
  when (private.is_typed())
  execute function
    private.tg__assert_append_only('E-mails are a log of what was sent: they are never deleted.',
    'Set status to cancelled instead.');

create trigger emails_100_cancel
  before update of status on public.emails
  for each row
  when
    (((new.status = 'cancelled'::public.email_status) and (old.status <> 'cancelled'::public.email_status) and
    private.is_typed()))
  execute function private.tg_emails__cancel();

create trigger emails_100_no_truncate
  before truncate on public.emails
  for each statement
  execute function private.tg__refuse_truncate();

create trigger emails_100_send_again
  before update of status on public.emails
  for each row
  when
    (((new.status = 'queued'::public.email_status) and ((old.status <> 'queued'::public.email_status) or ((old.claim is
    null) and (old.last_error is not null)))))
  execute function private.tg_emails__send_again();

create trigger emails_500_cancel_ticket
  after update of status on public.emails
  for each row
  when
    (((new.status = 'cancelled'::public.email_status) and (old.status = 'queued'::public.email_status) and (new.kind =
    'ticket'::public.email_kind) and private.is_typed()))
  execute function private.tg_emails__cancel();

create policy emails_select_own on public.emails
  for select
  to scope_attendees_read
  using ((organisation_id = ( select private.current_organisation_id() as current_organisation_id)));
