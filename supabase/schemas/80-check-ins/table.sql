-- Check-ins: every scan is a row that holds its verdict. Whoever scans adds the event, and a code or an attendee, by the API (operations.sql)
-- or in Studio; the triggers of rules.sql judge it and let the attendee in; those of notifications.sql tell of it.
-- Append-only: an acceptance can be undone once, and no row is ever deleted.

create type public.check_in_result as enum ('accepted', 'rejected');
create type public.check_in_reason as enum (
  'not_found', 'wrong_event', 'already_checked_in', 'cancelled', 'unpaid', 'event_cancelled', 'not_admitted_here', 'point_closed',
  'not_inside', 'turned_away'
);
create type public.check_in_direction as enum ('entry', 'exit');

create table public.check_ins (
  event_id uuid not null,
  attendee_id uuid,
  code text,
  check_in_point_id uuid,
  direction public.check_in_direction not null default 'entry',
  result public.check_in_result not null,
  reason public.check_in_reason,
  scanned_at timestamptz not null default now(),
  exited_at timestamptz,
  undone_at timestamptz,
  device text,
  admitted boolean,
  source public.request_source not null default private.current_source(),
  api_key_id uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  scan_id text,
  earlier_check_in_id uuid,
  admission_key text,
  constraint check_ins_pkey primary key (id),
  constraint check_ins_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint check_ins_attendee_id_fkey foreign key (attendee_id) references public.attendees (id),
  constraint check_ins_check_in_point_id_fkey foreign key (check_in_point_id) references public.check_in_points (id),
  constraint check_ins_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete set null,
  constraint check_ins_code_is_1_to_200_characters check (length(code) between 1 and 200),
  constraint check_ins_device_is_one_line check (length(btrim(device)) between 1 and 100 and device !~ '[[:cntrl:]]'),
  constraint check_ins_scan_id_is_1_to_100_characters check (length(scan_id) between 1 and 100),
  constraint check_ins_result_has_a_reason_or_an_attendee check (case result
    when 'rejected' then reason is not null and num_nonnulls(undone_at, admission_key) = 0
    else reason is null and attendee_id is not null and (admission_key is null or direction = 'entry' and undone_at is null)
  end)
);
comment on constraint check_ins_device_is_one_line on public.check_ins is
  'device is one line of 1 to 100 characters. Write at least one letter, and no line breaks.';
comment on table public.check_ins is 'Every scan at the door, accepted or rejected. Add a row with event_id, and code or attendee_id, to check in by hand. Set undone_at to undo an accepted check-in.';
comment on column public.check_ins.attendee_id is 'Holder of the ticket. Empty if no ticket has the code, or no attendee the id.';
-- Not filled in from the attendee: whoever names an attendee learns no ticket code.
comment on column public.check_ins.code is 'Scanned text, up to 200 characters, even if no ticket has this code. Empty if attendee_id was sent instead.';
comment on column public.check_ins.check_in_point_id is 'The check-in point of the scan. Empty: the whole event.';
comment on column public.check_ins.direction is 'entry or exit.';
comment on column public.check_ins.result is 'accepted or rejected.';
comment on column public.check_ins.reason is 'Why it was rejected. Empty when accepted.';
comment on column public.check_ins.scanned_at is 'Time of the scan: after the event was created, and not in the future.';
comment on column public.check_ins.exited_at is 'For an entry: when an exit scan ended it. Kept by Usher.';
comment on column public.check_ins.undone_at is 'When the check-in was undone. Set it to undo.';
comment on column public.check_ins.device is 'Name of the scanner or entrance.';
comment on column public.check_ins.admitted is 'Whether an offline scanner let the person in.';
comment on column public.check_ins.api_key_id is 'The API key that scanned, if any.';
comment on column public.check_ins.scan_id is 'Identifier from an offline scanner, up to 100 characters. A scan sent twice counts once.';
comment on column public.check_ins.earlier_check_in_id is 'For already_checked_in: the entry that counts. For an exit: the entry it ends.';
comment on column public.check_ins.admission_key is
  'Internal: the entry that each attendee has once: the check-in point or event, with the day if once_per_day. Emptied when undone, or ended by an exit at a point with re_entry or at the event.';

-- At most one standing acceptance per attendee, check-in point and day, whatever else goes wrong.
create unique index check_ins_one_acceptance_idx on public.check_ins (attendee_id, admission_key)
  where admission_key is not null;
create index check_ins_check_in_point_id_idx on public.check_ins (check_in_point_id, attendee_id) where check_in_point_id is not null;
-- For api.list_check_in_conflicts.
create index check_ins_event_id_conflicts_idx on public.check_ins (event_id, id) where admitted and result = 'rejected';
create unique index check_ins_event_id_scan_id_key on public.check_ins (event_id, scan_id) where scan_id is not null;
create index check_ins_attendee_id_idx on public.check_ins (attendee_id);
-- For private.event_summary.
create index check_ins_event_id_exits_idx on public.check_ins (event_id) where direction = 'exit';
-- For private.page_of_check_ins.
create index check_ins_event_id_result_idx on public.check_ins (event_id, result, id);
create index check_ins_organisation_id_result_idx on public.check_ins (organisation_id, result, id);
create index check_ins_api_key_id_idx on public.check_ins (api_key_id);

select private.keep_table('public.check_ins', filled => '{organisation_id,result}', derived => null);

create policy check_ins_select_own on public.check_ins for select to scope_checkin_write, scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy check_ins_insert_own on public.check_ins for insert to scope_checkin_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy check_ins_update_own on public.check_ins for update to scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_ins_select_membership on public.check_ins for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy check_ins_insert_membership on public.check_ins for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager,door}')));
create policy check_ins_update_membership on public.check_ins for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door}')));
grant select on public.check_ins to scope_checkin_write, scope_attendees_read;
grant select (
  id, organisation_id, event_id, check_in_point_id, attendee_id, direction, result, reason, earlier_check_in_id, device, scan_id, admitted,
  source, api_key_id, scanned_at, exited_at, undone_at, created_at, updated_at
) on public.check_ins to authenticated;
grant insert (event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at)
  on public.check_ins to scope_checkin_write;
grant insert (event_id, check_in_point_id, code, attendee_id, direction, device) on public.check_ins to authenticated;
grant update (undone_at) on public.check_ins to scope_checkin_write, authenticated;
