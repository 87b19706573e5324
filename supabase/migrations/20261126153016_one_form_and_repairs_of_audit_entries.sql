-- one form and repairs, of audit_entries. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

create trigger audit_entries_100_append_only
  before delete or update on public.audit_entries
  for each row
  when (private.is_typed())
  execute function private.tg__assert_append_only('The audit trail is never changed or deleted.');

create trigger audit_entries_100_no_truncate
  before truncate on public.audit_entries
  for each statement
  execute function private.tg__refuse_truncate();
