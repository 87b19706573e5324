-- What the audit trail keeps of promo codes.

create trigger promo_codes_700_audit_insert after insert on public.promo_codes
  referencing new table as new_rows for each statement execute function private.tg__audit('promo_code', 'id', 'versioned');
create trigger promo_codes_700_audit_update after update on public.promo_codes
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('promo_code', 'id', 'versioned');
create trigger promo_codes_700_audit_delete after delete on public.promo_codes
  referencing old table as old_rows for each statement execute function private.tg__audit('promo_code', 'id', 'versioned');
