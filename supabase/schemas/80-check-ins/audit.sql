-- What the audit trail keeps of check-ins and their points: an undone check-in, and what organisers change.

select private.audit_changes('public.check_ins', 'check_in', events => '{update}');
select private.audit_changes('public.check_in_points', 'check_in_point');
