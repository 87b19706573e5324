-- What the audit trail keeps of the waiting list.

select private.audit_changes('public.waiting_list_entries', 'waiting_list_entry', events => '{insert,update}');
