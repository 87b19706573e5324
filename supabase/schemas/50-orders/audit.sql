-- What the audit trail keeps of orders and money.

-- A registration is one entry, of its order: the attendees of a new order belong to it.
create function private.tg_orders__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Once for all orders, as the columns would have it by default.
  v_actor public.audit_actor := private.audit_actor();
  v_api_key_id uuid := private.current_api_key_id();
  v_user_id uuid := case v_actor when 'member' then private.claims() ->> 'sub' end;
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
  select n.organisation_id, 'created', 'order', n.id, v_actor, v_api_key_id, v_user_id, n.source
  from new_rows n;
  return null;
end
$$;
create trigger orders_700_audit_insert after insert on public.orders
  referencing new table as new_rows for each statement execute function private.tg_orders__audit_insert();
select private.audit_changes('public.orders', 'order', events => '{update,delete}');

select private.audit_changes('public.payments', 'payment', events => '{insert}');
select private.audit_changes('public.payment_voids', 'payment_void', events => '{insert}');
select private.audit_changes('public.refunds', 'refund', events => '{insert}');
