-- one form and repairs, of organisation_members. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- A name that is invisible was allowed, and would break the constraint.
update public.organisation_members set name = null where private.person_form(name) = '';

alter table public.organisation_members
  drop constraint organisation_members_name_is_one_line;

alter table public.organisation_members
  add constraint organisation_members_name_is_one_line check (private.is_one_line(name, 200)) not valid;
