-- drop what errands to their end replaced. Written by `npm run db:migration` from supabase/schemas, and parted from the migration
-- before: a call that waited for its locks goes on with the functions that it began with.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- Waits for these calls. Within a block, for the command line begins no transaction by name.
do $$
begin
  lock table public.attendees in access exclusive mode;
end
$$;

drop function private.attendee_of_guest(uuid, jsonb);

drop function private.blank_values(jsonb, jsonb);

drop function private.lock_attendees_of_import(uuid, jsonb);

drop function private.page_of_audit_entries(public.audit_object[], uuid, uuid, integer);

drop function private.page_of_notifications(public.notification_type[], xid8, uuid, integer);

-- Tickets to addresses that take no mail are not sent from now on; nor are those that wait.
update public.attendees set ticket_email_status = 'not_requested'
where email_lower like '%.invalid' and ticket_email_status in ('queued', 'waiting');
