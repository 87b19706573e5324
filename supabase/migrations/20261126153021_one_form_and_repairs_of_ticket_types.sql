-- one form and repairs, of ticket_types. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '5min';

-- A name that is invisible was allowed, and would break the constraint.
update public.ticket_types set name = 'Unnamed' where private.person_form(name) = '';

-- Its expression compares by another form.
-- squawk-ignore require-concurrent-reindex
reindex index public.ticket_types_organisation_id_name_idx;
