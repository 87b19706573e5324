-- errands to their end enum values. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

alter type public.email_kind add value 'order_cancelled' before 'event_changed';
