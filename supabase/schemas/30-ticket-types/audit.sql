-- What the audit trail keeps of ticket types.

create trigger ticket_types_700_audit_insert after insert on public.ticket_types
  referencing new table as new_rows for each statement execute function private.tg__audit('ticket_type', 'id', 'versioned');
create trigger ticket_types_700_audit_update after update on public.ticket_types
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('ticket_type', 'id', 'versioned');
create trigger ticket_types_700_audit_delete after delete on public.ticket_types
  referencing old table as old_rows for each statement execute function private.tg__audit('ticket_type', 'id', 'versioned');
