-- What the audit trail keeps of check-ins and their points: an undone check-in, and what organisers change.

create trigger check_ins_700_audit_update after update on public.check_ins
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('check_in', 'id', 'plain');
create trigger check_in_points_700_audit_insert after insert on public.check_in_points
  referencing new table as new_rows for each statement execute function private.tg__audit('check_in_point', 'id', 'versioned');
create trigger check_in_points_700_audit_update after update on public.check_in_points
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('check_in_point', 'id', 'versioned');
create trigger check_in_points_700_audit_delete after delete on public.check_in_points
  referencing old table as old_rows for each statement execute function private.tg__audit('check_in_point', 'id', 'versioned');
