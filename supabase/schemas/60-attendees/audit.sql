-- What the audit trail keeps of attendees. Those of a new order belong to its entry; only people add to another.

create function private.tg_attendees__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_actor public.audit_actor;
begin
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
    v_actor := private.audit_actor();
    insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
    select
      n.organisation_id, 'created', 'attendee', n.id, v_actor, private.current_api_key_id(),
      case v_actor when 'member' then (private.claims() ->> 'sub')::uuid end, private.current_source()
    from new_rows n
    where (select o.created_at from public.orders o where o.id = n.order_id) <> now();
  end if;
  return null;
end
$$;
create trigger attendees_700_audit_insert after insert on public.attendees
  referencing new table as new_rows for each statement when (private.is_typed()) execute function private.tg_attendees__audit_insert();
select private.audit_changes('public.attendees', 'attendee', events => '{update,delete}');
