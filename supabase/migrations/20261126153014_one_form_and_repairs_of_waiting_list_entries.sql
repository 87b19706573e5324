-- one form and repairs, of waiting_list_entries. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '5min';

-- A name that is invisible was allowed, and would break the constraint.
update public.waiting_list_entries set name = 'Unnamed' where private.person_form(name) = '';

update public.waiting_list_entries set company = null where private.person_form(company) = '';

alter table public.waiting_list_entries
  drop constraint waiting_list_entries_company_is_one_line;

alter table public.waiting_list_entries
  drop constraint waiting_list_entries_name_is_one_line;

alter table public.waiting_list_entries
  add constraint waiting_list_entries_company_is_one_line check (private.is_one_line(company, 200)) not valid;

alter table public.waiting_list_entries
  add constraint waiting_list_entries_name_is_one_line check (private.is_one_line(name, 200)) not valid;

-- Its expression compares by another form.
-- squawk-ignore require-concurrent-reindex
reindex index public.waiting_list_entries_organisation_id_name_idx;
