-- What the audit trail keeps of orders and money.

-- A registration is one entry, of its order: the attendees of a new order belong to it.
create function private.tg_orders__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_actor public.audit_actor := private.audit_actor();
  v_api_key_id uuid := private.current_api_key_id();
  v_user_id uuid;
begin
  if v_actor = 'member' then
    v_user_id := private.claims() ->> 'sub';
  end if;
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
  select n.organisation_id, 'created', 'order', n.id, v_actor, v_api_key_id, v_user_id, n.source
  from new_rows n;
  return null;
end
$$;
create trigger orders_700_audit_insert after insert on public.orders
  referencing new table as new_rows for each statement execute function private.tg_orders__audit_insert();
select private.audit_changes('public.orders', 'order', events => '{update,delete}');

-- A key may set neither source nor recorded_by of a payment: they are its own.
create function private.tg_payments__audit_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_actor public.audit_actor := private.audit_actor();
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
  values (
    new.organisation_id, 'created', 'payment', new.id, v_actor,
    case v_actor when 'api_key' then new.recorded_by end,
    case v_actor when 'member' then (private.claims() ->> 'sub')::uuid end,
    case v_actor when 'api_key' then new.source else private.current_source() end
  );
  return null;
end
$$;
create trigger payments_700_audit_insert after insert on public.payments
  for each row execute function private.tg_payments__audit_insert();
select private.audit_changes('public.payment_voids', 'payment_void', events => '{insert}');
select private.audit_changes('public.refunds', 'refund', events => '{insert}');
