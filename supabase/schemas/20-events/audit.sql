-- What the audit trail keeps of events.

create trigger events_700_audit_insert after insert on public.events
  referencing new table as new_rows for each statement execute function private.tg__audit('event', 'id', 'versioned');
create trigger events_700_audit_update after update on public.events
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('event', 'id', 'versioned');
create trigger events_700_audit_delete after delete on public.events
  referencing old table as old_rows for each statement execute function private.tg__audit('event', 'id', 'versioned');
