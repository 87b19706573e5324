-- What the audit trail keeps of promo codes.

select private.audit_changes('public.promo_codes', 'promo_code');
