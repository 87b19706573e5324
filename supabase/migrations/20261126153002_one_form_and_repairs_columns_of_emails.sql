-- one form and repairs: columns of emails. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

alter table public.emails
  add column message text;
