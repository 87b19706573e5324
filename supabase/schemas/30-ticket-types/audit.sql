-- What the audit trail keeps of ticket types.

select private.audit_changes('public.ticket_types', 'ticket_type');
