-- What becomes of a scan, in the order in which the triggers fire. Insert: judge writes the verdict into the row, end_entry lets an exit end
-- its entry, and after the statement admit writes to the attendees. Update: append_only lets undone_at alone change, take_back asks whether
-- it may, and undo lets an exit's entry stand again. All security definer that touch attendees: a key with checkin:write may not.

-- Why a scan is rejected; null: it is accepted. Whoever leaves is asked for nothing but an entry. A point that is named and not given was
-- deleted since the scan.
create function private.verdict(
  scan public.check_ins, event public.events, attendee public.attendees, point public.check_in_points
) returns public.check_in_reason
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when event.status = 'cancelled' and scan.direction = 'entry' then 'event_cancelled'
    when attendee.id is null then 'not_found'
    when attendee.event_id <> event.id then 'wrong_event'
    when scan.direction = 'exit' and scan.earlier_check_in_id is null then 'not_inside'
    when scan.direction = 'exit' then case when not scan.admitted then 'turned_away' end
    when attendee.status = 'cancelled' then 'cancelled'
    when attendee.status = 'awaiting_payment' then 'unpaid'
    when num_nonnulls(scan.check_in_point_id, point.id) = 1 or point.status = 'archived' then 'point_closed'
    when scan.scanned_at < point.opens_at or scan.scanned_at >= point.closes_at then 'point_closed'
    when point.ticket_type_ids <> '{}' and attendee.ticket_type_id <> all (point.ticket_type_ids) then 'not_admitted_here'
    when scan.earlier_check_in_id is not null then 'already_checked_in'
    when not scan.admitted then 'turned_away'
  end::public.check_in_reason;
end
$$;

-- Locked, so that the scans of a ticket are judged one after the other. Not `=` beside the id or the code: of a table that was never analysed the
-- planner might prefer an index that begins with the organisation, and read all its tickets.
create function private.lock_scanned_attendee(scan public.check_ins) returns public.attendees
language plpgsql volatile set search_path = ''
as $$
declare
  -- Worked out once, whichever index the planner takes.
  v_code text := private.code_form(scan.code);
  v_attendee public.attendees;
begin
  if scan.code is null then
    select a.* into v_attendee from public.attendees a
    where a.id = scan.attendee_id and a.organisation_id is not distinct from scan.organisation_id
    for no key update;
  else
    select a.* into v_attendee from public.attendees a
    where a.ticket_code = v_code and a.organisation_id is not distinct from scan.organisation_id
    for no key update;
  end if;
  return v_attendee;
end
$$;

create function private.tg_check_ins__judge() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_attendee public.attendees;
  v_point public.check_in_points;
begin
  if num_nonnulls(new.code, new.attendee_id) = 0 then
    perform private.refuse_value('code', 'Send the ticket code or attendee_id.');
  elsif num_nonnulls(new.code, new.attendee_id) = 2 then
    perform private.refuse_value('attendee_id', 'Send either the ticket code or attendee_id, not both.');
  end if;

  select e.* into v_event from public.events e where e.id = new.event_id and not private.is_foreign(e.organisation_id);
  if not found then
    perform private.refuse_not_found('event_id');
  elsif new.scanned_at < v_event.created_at and new.scan_id is null then
    perform private.refuse_value('scanned_at', 'scanned_at is before the event was created.', 'Leave scanned_at out to use the current time.');
  end if;
  new.organisation_id := v_event.organisation_id;
  -- A scanner's clock may be wrong: no scan is later than now, or earlier than its event.
  new.scanned_at := case when new.scanned_at between v_event.created_at and now() then new.scanned_at else now() end;

  v_attendee := private.lock_scanned_attendee(new);
  new.attendee_id := v_attendee.id;

  if new.check_in_point_id is not null then
    -- Locked, so that its admission is the one that the key is made by: see private.tg_check_in_points__assert_unused.
    select p.* into v_point from public.check_in_points p where p.id = new.check_in_point_id and p.event_id = new.event_id for key share;
    -- A scan made offline is logged all the same: the person may be in, and the others of its batch are not to wait.
    if not found and new.scan_id is null then
      perform private.refuse_not_found('check_in_point_id');
    end if;
  end if;
  new.admission_key := concat_ws('/', coalesce(v_point.id::text, 'event'), case v_point.admission
    when 'once_per_day' then to_char(new.scanned_at at time zone v_event.timezone, 'YYYY-MM-DD')
  end);

  -- What it meets: an entry one that used the same admission up, an exit the last one there that nobody has left. The same statement may
  -- hold it: it is in the log already, while its attendee is updated at the end.
  select c.id into new.earlier_check_in_id
  from public.check_ins c
  where c.attendee_id = v_attendee.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    and case new.direction
      when 'entry' then c.admission_key = new.admission_key
      else c.check_in_point_id is not distinct from new.check_in_point_id and c.exited_at is null
    end
  order by c.scanned_at desc, c.id desc
  limit 1;

  new.reason := private.verdict(new, v_event, v_attendee, v_point);
  new.result := case when new.reason is null then 'accepted' else 'rejected' end;
  new.check_in_point_id := v_point.id;
  new.exited_at := null;
  new.undone_at := null;
  if new.reason <> 'already_checked_in' then
    new.earlier_check_in_id := null;
  end if;
  if new.direction = 'exit' or new.result = 'rejected' then
    new.admission_key := null;
  end if;
  return new;
end
$$;
create trigger check_ins_100_judge before insert on public.check_ins
  for each row execute function private.tg_check_ins__judge();

create function private.tg_check_ins__end_entry() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.check_ins c
  set
    exited_at = greatest(c.scanned_at, new.scanned_at),
    -- The event as such lets in again, as a point with re_entry does.
    admission_key = case
      when exists (select from public.check_in_points p where p.id = new.check_in_point_id and p.admission <> 're_entry') then c.admission_key
    end
  where c.id = new.earlier_check_in_id;
  return new;
end
$$;
create trigger check_ins_200_end_entry before insert on public.check_ins
  for each row when (new.direction = 'exit' and new.result = 'accepted') execute function private.tg_check_ins__end_entry();

-- What the entries that stand say of attendees. Whoever leaves where they came in first has left what they entered since: a gate is around
-- its workshops. An exit at an inner point may write the row as it is: private.door_list finds what changed by it.
-- By their ids rather than by a join, whose plan would be that of the first call.
create function private.count_entries(attendee_ids uuid[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  update public.attendees a
  set (updated_at, checked_in_at, inside) = (
    select now(), min(e.scanned_at), coalesce(bool_or(e.exited_at is null and (e.left_at > e.scanned_at) is not true), false)
    from (
      select
        c.scanned_at, c.exited_at,
        max(c.exited_at) over (order by c.scanned_at, c.id rows between unbounded preceding and 1 preceding) as left_at
      from public.check_ins c
      where c.attendee_id = a.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) e
  )
  where a.id = any (attendee_ids);
end
$$;

-- Once a statement, so that a batch is one update of its attendees. Security definer: a key with checkin:write may not update them.
create function private.tg_check_ins__admit() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.count_entries(array(select n.attendee_id from new_rows n where n.result = 'accepted'));
  return null;
end
$$;
create trigger check_ins_500_admit after insert on public.check_ins
  referencing new table as new_rows
  for each statement execute function private.tg_check_ins__admit();

create trigger check_ins_100_append_only before update on public.check_ins
  for each row when (
    private.is_typed() and to_jsonb(new) - '{undone_at,updated_at}'::text[] <> to_jsonb(old) - '{undone_at,updated_at}'::text[]
  )
  execute function private.tg__assert_append_only('Check-ins are a log: only undone_at can be set.', 'Set undone_at to undo an accepted check-in.');
create trigger check_ins_100_never_deleted before delete on public.check_ins
  for each row execute function private.tg__assert_append_only(
    'Check-ins are a log: they are never deleted.', 'Set undone_at to undo an accepted check-in.'
  );

create function private.tg_check_ins__take_back() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if old.result = 'rejected' then
    perform private.refuse(409, 'check_in_not_accepted', 'A rejected check-in cannot be undone.', 'check_in_id', "row" => to_jsonb(old));
  elsif old.undone_at is not null then
    perform private.refuse(
      409, 'check_in_already_undone', 'This check-in is already undone.', 'check_in_id',
      jsonb_build_object('undone_at', private.rfc3339(old.undone_at)), "row" => to_jsonb(old)
    );
  end if;
  new.undone_at := now();
  new.admission_key := null;
  return new;
end
$$;
create trigger check_ins_200_take_back before update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__take_back();

-- Undoing an exit lets its entry stand again.
create function private.tg_check_ins__undo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key text;
begin
  if new.direction = 'exit' then
    -- Where an exit emptied it, it had no day.
    select coalesce(c.admission_key, c.check_in_point_id::text, 'event') into v_key
    from public.check_ins c
    where c.id = new.earlier_check_in_id and c.undone_at is null;
    if exists (
      select from public.check_ins c
      where c.attendee_id = new.attendee_id and c.admission_key = v_key and c.id <> new.earlier_check_in_id
    ) then
      perform private.refuse(
        409, 'already_checked_in', 'The person has checked in again since.', 'check_in_id', hint => 'Undo the later check-in first.', "row" => to_jsonb(new)
      );
    end if;
    update public.check_ins c set exited_at = null, admission_key = v_key
    where c.id = new.earlier_check_in_id and c.undone_at is null;
  end if;
  perform private.count_entries(array[new.attendee_id]);
  return null;
end
$$;
create trigger check_ins_500_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at)
  execute function private.tg_check_ins__undo();
