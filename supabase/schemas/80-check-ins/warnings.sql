-- What a check-in is warned of. The door decides who comes in: it is never refused.

-- The outcome of scans, the first of which was accepted at scanned_at.
create function private.with_warning_of_early_scan(outcome json, scanned_at timestamptz, starts_at timestamptz) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  if scanned_at < starts_at - interval '1 day' then
    return private.with_warnings(outcome, private.warning(
      'check_in_early', 'The event starts more than a day later. Undo the check-in if it was a test.'
    ));
  end if;
  return outcome;
end
$$;
grant execute on function private.with_warning_of_early_scan to scope_checkin_write;
