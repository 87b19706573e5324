-- What the audit trail keeps of webhook endpoints.

select private.audit_changes('public.webhook_endpoints', 'webhook_endpoint');
