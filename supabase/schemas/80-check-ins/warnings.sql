-- What a check-in is warned of. The door decides who comes in: it is never refused.

create function private.warning_of_early_scan(event_id uuid, scanned_at timestamptz) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if exists (
    select from public.events e
    where e.id = warning_of_early_scan.event_id and e.starts_at > warning_of_early_scan.scanned_at + interval '1 day'
  ) then
    return private.warning('check_in_early', 'The event starts in more than a day. If this was a test, undo the check-in.');
  end if;
  return null;
end
$$;
grant execute on function private.warning_of_early_scan to scope_checkin_write;
