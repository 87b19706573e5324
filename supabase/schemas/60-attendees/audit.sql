-- What the audit trail keeps of attendees. Those of a new order belong to its entry; only people add to another.

create function private.tg_attendees__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id)
  select n.organisation_id, 'created', 'attendee', n.id
  from new_rows n
  where (select o.created_at from public.orders o where o.id = n.order_id) <> now();
  return null;
end
$$;
create trigger attendees_700_audit_insert after insert on public.attendees
  referencing new table as new_rows for each statement when (private.is_typed()) execute function private.tg_attendees__audit_insert();
select private.audit_changes('public.attendees', 'attendee', events => '{update,delete}');
