-- one form and repairs, enum values. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

alter type public.api_key_kind add value 'person' after 'grant';

alter type public.audit_action add value 'confirmed' after 'deleted';

alter type public.summary_interval add value 'week' after 'day';
