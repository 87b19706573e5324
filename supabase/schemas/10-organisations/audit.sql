-- What the audit trail keeps of organisations, members and API keys.

create trigger organisations_700_audit_insert after insert on public.organisations
  referencing new table as new_rows for each statement execute function private.tg__audit('organisation', 'id', 'plain');
create trigger organisations_700_audit_update after update on public.organisations
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('organisation', 'id', 'plain');
create trigger organisations_700_audit_delete after delete on public.organisations
  referencing old table as old_rows for each statement execute function private.tg__audit('organisation', 'id', 'plain');
create trigger organisation_members_700_audit_insert after insert on public.organisation_members
  referencing new table as new_rows for each statement execute function private.tg__audit('member', 'user_id', 'plain');
create trigger organisation_members_700_audit_update after update on public.organisation_members
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('member', 'user_id', 'plain');
create trigger organisation_members_700_audit_delete after delete on public.organisation_members
  referencing old table as old_rows for each statement execute function private.tg__audit('member', 'user_id', 'plain');
create trigger api_keys_700_audit_insert after insert on public.api_keys
  referencing new table as new_rows for each statement execute function private.tg__audit('api_key', 'id', 'plain');
create trigger api_keys_700_audit_update after update on public.api_keys
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg__audit('api_key', 'id', 'plain');
create trigger api_keys_700_audit_delete after delete on public.api_keys
  referencing old table as old_rows for each statement execute function private.tg__audit('api_key', 'id', 'plain');
