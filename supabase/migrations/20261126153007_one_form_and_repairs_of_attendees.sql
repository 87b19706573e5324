-- one form and repairs, of attendees. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '15min';

drop trigger attendees_100_checked_in on public.attendees;

-- squawk-ignore require-concurrent-index-deletion
drop index public.attendees_organisation_id_states_idx;

-- squawk-ignore require-concurrent-index-deletion
drop index public.attendees_ticket_type_id_states_idx;

-- squawk-ignore require-concurrent-index-creation
create index attendees_organisation_id_states_idx on public.attendees
  using btree (organisation_id, status, checked_in, inside, ticket_email_status, id);

-- squawk-ignore require-concurrent-index-creation
create index attendees_ticket_type_id_states_idx on public.attendees
  using btree (ticket_type_id, status, checked_in, inside, ticket_email_status, id) include (created_at, checked_in_at);

create trigger attendees_100_checked_in
  before update of checked_in_at, inside on public.attendees
  for each row
  execute function private.tg_attendees__guard_checked_in();

-- Who is inside: whoever has an entry that no exit ended, nor one of an earlier entry. Kept by check-ins from now on.
alter table public.attendees disable trigger attendees_100_checked_in;

update public.attendees a set inside = true
from (
  select e.attendee_id
  from (
    select
      c.attendee_id, c.scanned_at, c.exited_at,
      max(c.exited_at) over (
        partition by c.attendee_id order by c.scanned_at, c.id rows between unbounded preceding and 1 preceding
      ) as left_at
    from public.check_ins c
    where c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
  ) e
  group by e.attendee_id
  having bool_or(e.exited_at is null and (e.left_at > e.scanned_at) is not true)
) i
where a.id = i.attendee_id;

alter table public.attendees enable trigger attendees_100_checked_in;

-- What is searched has another form where letters are beyond ASCII or blanks are double: the guard makes it anew.
update public.attendees set search_text = '' where octet_length(search_text) > length(search_text) or search_text ~ '  |`';
