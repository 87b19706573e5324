-- What a check-in is warned of. The door decides who comes in: it is never refused.

create function private.warning_of_early_scan(scanned_at timestamptz, starts_at timestamptz) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return case when scanned_at < starts_at - interval '1 day' then private.warning(
    'check_in_early', 'The event starts more than a day later. Undo the check-in if it was a test.'
  ) end;
end
$$;
grant execute on function private.warning_of_early_scan to scope_checkin_write;
