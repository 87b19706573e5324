-- Check-ins: every scan is a row that holds its verdict. A caller adds the event, and a code or an attendee, through the API or in
-- Studio; the trigger finds the attendee, locks them, and sets accepted, or rejected with a reason.
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
  constraint check_ins_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete set null
);

-- What holds for every check-in, whoever writes it. One function: Postgres plans each check constraint anew for every statement.
create function private.is_sound_check_in(check_in public.check_ins) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return
    length(check_in.code) between 1 and 200
    and (check_in.device is null or private.is_sound_line('device', check_in.device, 100))
    and length(check_in.scan_id) between 1 and 100
    and case check_in.result
      when 'accepted' then check_in.reason is null and check_in.attendee_id is not null
        and (check_in.admission_key is null or check_in.direction = 'entry' and check_in.undone_at is null)
      else check_in.reason is not null and num_nonnulls(check_in.undone_at, check_in.admission_key) = 0
    end;
end
$$;
grant execute on function private.is_sound_check_in to api_key, authenticated;
alter table public.check_ins add constraint check_ins_are_sound check (private.is_sound_check_in(check_ins));
comment on table public.check_ins is 'Every scan at the door, accepted or not. Add a row with event_id, and code or attendee_id, to check in by hand; set undone_at to take an acceptance back.';
comment on column public.check_ins.event_id is 'The event that it belongs to.';
comment on column public.check_ins.attendee_id is 'Whose ticket it is. Empty where no ticket has the code, or no attendee the id that was named.';
-- Not filled in from the attendee: whoever names an attendee learns no ticket code.
comment on column public.check_ins.code is 'The text that was scanned, up to 200 characters, even if no ticket has this code. Empty where the attendee was named instead.';
comment on column public.check_ins.check_in_point_id is 'The check-in point where it was scanned. Empty: the event as such.';
comment on column public.check_ins.direction is 'entry or exit.';
comment on column public.check_ins.result is 'accepted or rejected.';
comment on column public.check_ins.reason is 'Why it was rejected. Empty when accepted.';
comment on column public.check_ins.scanned_at is 'When it was scanned: between when the event was made and now.';
comment on column public.check_ins.exited_at is 'Of an entry: when the person left by an exit scan. Kept by Usher.';
comment on column public.check_ins.undone_at is 'When the acceptance was taken back. Set it to do so.';
comment on column public.check_ins.device is 'Scanner or entrance, for people.';
comment on column public.check_ins.admitted is 'What an offline scanner said: whether it let the person in.';
comment on column public.check_ins.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.check_ins.api_key_id is 'The API key that scanned, where it was one.';
comment on column public.check_ins.created_at is 'When the row was added.';
comment on column public.check_ins.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.check_ins.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.check_ins.organisation_id is 'The organisation that it belongs to.';
comment on column public.check_ins.scan_id is 'Identifier given by an offline scanner, up to 100 characters, so that a scan sent twice counts once.';
comment on column public.check_ins.earlier_check_in_id is 'Of a rejection as already_checked_in the entry that stood; of an exit the entry that it ends.';
comment on column public.check_ins.admission_key is
  'Internal: what an entry uses up, once for each attendee: the check-in point, or event, and at a point with once_per_day the day. Emptied when it is undone, or ended by an exit at a point with re_entry, or at the event.';

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

-- Security definer: it locks the attendee and reads its ticket code, which a key with checkin:write may not, and ends the entry of
-- an exit.
create function private.tg_check_ins__judge() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_code text := private.code_form(new.code);
  v_ticket_type_id uuid;
  v_timezone text;
  v_starts_at text;
  v_is_too_early boolean;
  v_point public.check_in_points;
  v_point_is_gone boolean;
begin
  if num_nonnulls(new.code, new.attendee_id) <> 1 then
    if new.code is null then
      perform private.refuse_value('code', 'Give the code of the ticket, or attendee_id.');
    end if;
    perform private.refuse_value('attendee_id', 'Give either the code of the ticket or attendee_id, not both.');
  elsif new.code is null then
    -- Locked at once, so that it keeps the code by which it is found below. Not `=`: the planner might prefer an index that begins with the
    -- organisation.
    select a.ticket_code into v_code
    from public.attendees a
    where a.id = new.attendee_id
      and a.organisation_id is not distinct from (
        select e.organisation_id from public.events e where e.id = new.event_id and not private.is_foreign(e.organisation_id)
      )
    for no key update;
  end if;

  -- One statement, for each costs a scan as much as what it reads. No attendee is locked before the event is known to be the caller's.
  select
    e.organisation_id, e.timezone, a.id, a.ticket_type_id,
    -- A scanner's clock may be wrong: no scan is later than now, or earlier than its event.
    case when new.scanned_at between e.created_at and now() then new.scanned_at else now() end,
    new.scanned_at < e.created_at and new.scan_id is null,
    -- Whoever leaves is asked for nothing but an entry.
    case
      when e.status = 'cancelled' and new.direction = 'entry' then 'event_cancelled'
      when a.id is null then 'not_found'
      when a.event_id <> e.id then 'wrong_event'
      when new.direction = 'exit' then null
      when a.status = 'cancelled' then 'cancelled'
      when a.status = 'awaiting_payment' then 'unpaid'
    end::public.check_in_reason,
    'accepted'::public.check_in_result, 'event', null::uuid, null::timestamptz, null::timestamptz,
    -- For api.check_in, which warns of an early scan.
    set_config('usher.starts_at', e.starts_at::text, true)
  into
    new.organisation_id, v_timezone, new.attendee_id, v_ticket_type_id, new.scanned_at, v_is_too_early, new.reason,
    new.result, new.admission_key, new.earlier_check_in_id, new.exited_at, new.undone_at, v_starts_at
  from public.events e
  left join lateral (
    select h.id, h.event_id, h.status, h.ticket_type_id
    from public.attendees h
    where h.organisation_id = e.organisation_id and h.ticket_code = v_code
    for no key update
  ) a on true
  where e.id = new.event_id and not private.is_foreign(e.organisation_id);
  if not found then
    perform private.refuse_not_found('event_id');
  elsif v_is_too_early then
    perform private.refuse_value('scanned_at', 'scanned_at is before the event was made.', 'Leave scanned_at out: it is then now.');
  end if;

  if new.check_in_point_id is not null then
    -- Locked, so that its admission is the one that the key is made by: see tg_check_in_points__assert_unused.
    select p.* into v_point
    from public.check_in_points p
    where p.id = new.check_in_point_id and p.event_id = new.event_id
    for key share;
    if found then
      new.admission_key := concat_ws(
        '/', v_point.id,
        case v_point.admission when 'once_per_day' then to_char(new.scanned_at at time zone v_timezone, 'YYYY-MM-DD') end
      );
    else
      -- A scan made offline is logged all the same: the person may be in, and the others of its batch are not to wait.
      if new.scan_id is null then
        perform private.refuse_not_found('check_in_point_id');
      end if;
      new.check_in_point_id := null;
      v_point_is_gone := true;
    end if;
    if new.reason is null and new.direction = 'entry' then
      new.reason := case
        when v_point_is_gone or v_point.status = 'archived' or new.scanned_at < v_point.opens_at or new.scanned_at >= v_point.closes_at
          then 'point_closed'
        when v_point.ticket_type_ids <> '{}' and v_ticket_type_id <> all (v_point.ticket_type_ids) then 'not_admitted_here'
      end::public.check_in_reason;
    end if;
  end if;

  -- The same statement may hold an earlier scan of the ticket: it is in the log already, while the attendee is updated at its end.
  if new.reason is null and new.direction = 'entry' then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.admission_key = new.admission_key;
    if found then
      new.reason := 'already_checked_in';
    end if;
  elsif new.reason is null then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.check_in_point_id is not distinct from new.check_in_point_id
      and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null and c.exited_at is null
    order by c.scanned_at desc, c.id desc
    limit 1;
    if not found or v_point_is_gone then
      new.earlier_check_in_id := null;
      new.reason := 'not_inside';
    end if;
  end if;

  -- Of an entry that is accepted, as most are, all is said.
  if new.reason is not null or new.direction = 'exit' or not new.admitted then
    if new.reason is null and not new.admitted then
      new.earlier_check_in_id := null;
      new.reason := 'turned_away';
    end if;
    new.admission_key := null;
    if new.reason is not null then
      new.result := 'rejected';
    else
      update public.check_ins c
      set
        exited_at = greatest(c.scanned_at, new.scanned_at),
        -- The event as such lets in again, as a point with re_entry does.
        admission_key = case when coalesce(v_point.admission, 're_entry') <> 're_entry' then c.admission_key end
      where c.id = new.earlier_check_in_id;
    end if;
  end if;
  return new;
end
$$;
create trigger check_ins_010_blank_is_empty before insert or update on public.check_ins
  for each row when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id');
create trigger check_ins_800_explain before insert or update on public.check_ins
  for each row when (private.is_typed())
  execute function private.tg__explain_mistakes();
create trigger check_ins_100_judge before insert on public.check_ins
  for each row execute function private.tg_check_ins__judge();

-- What the entries that stand say of attendees. Whoever leaves where they came in first has left what they entered since: a gate is around
-- its workshops. An exit at an inner point may write the row as it is: private.door_list finds what changed by it.
-- By their ids rather than by a join, whose plan would be that of the first call.
create function private.count_entries(attendee_ids uuid[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  update public.attendees a
  set (checked_in_at, inside) = (
    select min(e.scanned_at), coalesce(bool_or(e.exited_at is null and (e.left_at > e.scanned_at) is not true), false)
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

create function private.tg_check_ins__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_free text[] := '{undone_at,updated_at,api_key_id}';
begin
  if tg_op = 'DELETE' then
    if private.is_deleted_wholly(old.organisation_id) then
      return old;
    end if;
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: they are never deleted.', hint => 'Set undone_at to take an acceptance back.', "row" => to_jsonb(old)
    );
  end if;
  -- Deleting an API key empties api_key_id of its scans, and an exit ends its entry; besides undone_at, no other column may change.
  if pg_trigger_depth() > 1 then
    v_free := v_free || '{exited_at,admission_key}';
  end if;
  if to_jsonb(new) - v_free <> to_jsonb(old) - v_free
    or (new.api_key_id is not null and new.api_key_id is distinct from old.api_key_id) then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: only undone_at can be set.', hint => 'Set undone_at to take an acceptance back.',
      "row" => to_jsonb(old)
    );
  end if;
  if new.undone_at is distinct from old.undone_at then
    if old.result = 'rejected' then
      perform private.refuse(409, 'check_in_not_accepted', 'A rejected check-in cannot be undone.', 'check_in_id', "row" => to_jsonb(old));
    elsif old.undone_at is not null then
      perform private.refuse(
        409, 'check_in_already_undone', 'This check-in was undone before.', 'check_in_id',
        jsonb_build_object('undone_at', private.rfc3339(old.undone_at)), "row" => to_jsonb(old)
      );
    end if;
    new.undone_at := now();
    new.admission_key := null;
  end if;
  return new;
end
$$;
create trigger check_ins_100_guard before update or delete on public.check_ins
  for each row execute function private.tg_check_ins__guard();
create trigger check_ins_100_no_truncate before truncate on public.check_ins
  for each statement execute function private.tg__refuse_truncate();
create trigger check_ins_900_updated_at before update on public.check_ins
  for each row execute function private.tg__set_updated_at();

-- Undoing an exit lets its entry stand again. Security definer, as tg_check_ins__admit.
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
        409, 'already_checked_in', 'The person came in again since.', 'check_in_id', hint => 'Undo the later check-in first.', "row" => to_jsonb(new)
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

revoke all on public.check_ins from anon, authenticated, service_role;

alter table public.check_ins enable row level security;
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
grant insert (id, event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at) on public.check_ins to scope_checkin_write;
grant insert (event_id, check_in_point_id, code, attendee_id, direction, device) on public.check_ins to authenticated;
grant update (undone_at) on public.check_ins to scope_checkin_write, authenticated;

-- An attendee as the door sees them: without e-mail address and ticket code.
create function private.door_attendee_json(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'door_attendee',
      'id', a.id,
      'event_id', a.event_id,
      'name', a.name,
      'company', a.company,
      'status', a.status,
      'ticket_type', json_build_object('object', 'ticket_type', 'id', t.id, 'name', t.name),
      'checked_in_at', private.rfc3339(a.checked_in_at)
    )
    from public.attendees a
    join public.ticket_types t on t.id = a.ticket_type_id
    where a.id = door_attendee_json.attendee_id
  );
end
$$;
grant execute on function private.door_attendee_json to scope_checkin_write, scope_attendees_read;

create function private.check_in_json(check_in public.check_ins) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_earlier json;
begin
  if check_in.earlier_check_in_id is not null then
    select json_build_object('id', c.id, 'scanned_at', private.rfc3339(c.scanned_at), 'device', c.device) into v_earlier
    from public.check_ins c
    where c.id = check_in.earlier_check_in_id;
  end if;
  return json_build_object(
    'object', 'check_in',
    'id', check_in.id,
    'event_id', check_in.event_id,
    'result', check_in.result,
    'reason', check_in.reason,
    'direction', check_in.direction,
    'check_in_point_id', check_in.check_in_point_id,
    'admitted', check_in.admitted,
    'earlier', v_earlier,
    'exited_at', private.rfc3339(check_in.exited_at),
    'attendee', private.door_attendee_json(check_in.attendee_id),
    'device', check_in.device,
    'scan_id', check_in.scan_id,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'undone_at', private.rfc3339(check_in.undone_at),
    'created_at', private.rfc3339(check_in.created_at),
    'updated_at', private.rfc3339(check_in.updated_at)
  );
end
$$;
grant execute on function private.check_in_json to scope_checkin_write, scope_attendees_read;
