-- one form and repairs: what went. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- A call that waited goes on with the functions that it began with: wait for these calls. Within a block, for the command line begins no
-- transaction by name.
do $$
begin
  lock table public.attendees in access exclusive mode;
end
$$;

drop function private.as_ticket_code(text);

drop function private.is_month_for_day(date, date);

drop function private.reference_form(text);

drop function private.refuse_month_for_day(timestamp with time zone, uuid);
