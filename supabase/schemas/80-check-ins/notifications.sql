-- What is notified of check-ins. Security definer: no role may write the outbox, and a role that scans may not read all that is told.

-- The attendee as the scan has left them, with the scan. As text, for json keeps the order of its fields and cannot be appended to.
create function private.arrival_json(
  check_in public.check_ins, attendee public.attendees, ticket_type_name text, reference text
) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (left(
    private.attendee_json(attendee, true, ticket_type_name, reference, with_url => false)::text, -1
  ) || ', "check_in" : ' || json_build_object(
    'id', check_in.id,
    'direction', check_in.direction,
    'check_in_point', case when check_in.check_in_point_id is not null then (
      select json_build_object('id', p.id, 'name', p.name) from public.check_in_points p where p.id = check_in.check_in_point_id
    ) end,
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
    private.arrival_json(row(n.*)::public.check_ins, a, t.name, o.reference),
    o.id
  from new_rows n
  join public.attendees a on a.id = n.attendee_id
  join public.ticket_types t on t.id = a.ticket_type_id
  join public.orders o on o.id = a.order_id
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
  select a.organisation_id, 'attendee.check_in_undone', private.arrival_json(new, a, t.name, o.reference), o.id
  from public.attendees a
  join public.ticket_types t on t.id = a.ticket_type_id
  join public.orders o on o.id = a.order_id
  where a.id = new.attendee_id;
  return null;
end
$$;
create trigger check_ins_600_notify_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify_undo();
