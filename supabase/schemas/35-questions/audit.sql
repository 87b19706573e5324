-- What the audit trail keeps of questions.

select private.audit_changes('public.questions', 'question');
