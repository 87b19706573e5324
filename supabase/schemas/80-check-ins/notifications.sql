-- What is notified of check-ins. Security definer: no role may write the outbox, and a role that scans may not read all that is told.

-- The attendee as the scan has left them, with the scan.
create function private.arrival_json(check_in public.check_ins) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
  v_point json;
begin
  select a.* into v_attendee from public.attendees a where a.id = check_in.attendee_id;
  if check_in.check_in_point_id is not null then
    select json_build_object('id', p.id, 'name', p.name) into v_point from public.check_in_points p where p.id = check_in.check_in_point_id;
  end if;
  -- As text, for json keeps the order of its fields and cannot be appended to.
  return (left(
    private.attendee_json(
      v_attendee, true, (select t.name from public.ticket_types t where t.id = v_attendee.ticket_type_id),
      (select o.reference from public.orders o where o.id = v_attendee.order_id), false
    )::text, -1
  ) || ', "check_in" : ' || json_build_object(
    'id', check_in.id,
    'direction', check_in.direction,
    'check_in_point', v_point,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'device', check_in.device
  ) || '}')::json;
end
$$;

create function private.tg_check_ins__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    n.organisation_id,
    case n.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type,
    private.arrival_json(row(n.*)::public.check_ins),
    (select a.order_id from public.attendees a where a.id = n.attendee_id)
  from new_rows n
  where n.result = 'accepted';
  return null;
end
$$;
create trigger check_ins_600_notify_insert after insert on public.check_ins
  referencing new table as new_rows
  for each statement execute function private.tg_check_ins__notify_insert();

create function private.tg_check_ins__notify_undo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select a.organisation_id, 'attendee.check_in_undone', private.arrival_json(new), a.order_id
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;
create trigger check_ins_600_notify_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify_undo();
