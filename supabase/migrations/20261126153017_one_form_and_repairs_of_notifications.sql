-- one form and repairs, of notifications. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

create trigger notifications_100_append_only
  before delete or update of created_at, type, data, id, organisation_id on public.notifications
  for each row
  when (private.is_typed())
  execute function private.tg__assert_append_only('Notifications are a log: they are never changed or deleted.');

create trigger notifications_100_no_truncate
  before truncate on public.notifications
  for each statement
  execute function private.tg__refuse_truncate();
