-- one form and repairs, of events. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '5min';

-- A name that is invisible was allowed, and would break the constraint.
update public.events set name = 'Unnamed' where private.person_form(name) = '';

alter table public.events
  drop constraint events_name_is_one_line;

create trigger events_050_cancelling
  before insert or update of cancelling_since on public.events
  for each row
  when (private.is_by_hand())
  execute function
    private.tg__assert_derived_untouched('To cancel the event set its status to cancelled.', 'cancelling_since');

alter table public.events
  add constraint events_name_is_one_line check (private.is_one_line(name, 200)) not valid;

-- Its expression compares by another form.
-- squawk-ignore require-concurrent-reindex
reindex index public.events_organisation_id_name_idx;
