-- What the audit trail keeps of the waiting list.

create trigger waiting_list_entries_700_audit_insert after insert on public.waiting_list_entries
  referencing new table as new_rows for each statement execute function private.tg__audit('waiting_list_entry', 'id', 'versioned');
create trigger waiting_list_entries_700_audit_update after update on public.waiting_list_entries
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg__audit('waiting_list_entry', 'id', 'versioned');
