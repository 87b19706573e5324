-- What the audit trail keeps of organisations, members and API keys.

select private.audit_changes('public.organisations', 'organisation');
select private.audit_changes('public.organisation_members', 'member', id_column => 'user_id');
select private.audit_changes('public.api_keys', 'api_key');
