-- one form and repairs: constraints on the rows that are there. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '5min';

alter table public.api_keys validate constraint api_keys_grant_has_a_parent_and_an_end;

alter table public.api_keys validate constraint api_keys_prefix_is_of_its_kind;

alter table public.api_keys validate constraint api_keys_name_is_one_line;

alter table public.check_in_points validate constraint check_in_points_name_is_one_line;

alter table public.events validate constraint events_name_is_one_line;

alter table public.organisation_members validate constraint organisation_members_name_is_one_line;

alter table public.organisations validate constraint organisations_name_is_one_line;

alter table public.waiting_list_entries validate constraint waiting_list_entries_company_is_one_line;

alter table public.waiting_list_entries validate constraint waiting_list_entries_name_is_one_line;
