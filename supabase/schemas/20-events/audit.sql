-- What the audit trail keeps of events.

select private.audit_changes('public.events', 'event');
