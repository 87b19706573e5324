-- What a change of an order does to its attendees.

-- Tickets follow the status of their order. Once a statement, so that cancelling an event is one update of its attendees.
create function private.tg_orders__update_attendees() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Arrays, not a join: a join would keep the plan of its first call, which after a cancelled event scans the table for
  -- every order.
  v_completed uuid[];
  v_cancelled uuid[];
begin
  select array_agg(n.id) filter (where n.status = 'completed'), array_agg(n.id) filter (where n.status = 'cancelled')
  into v_completed, v_cancelled
  from new_rows n;
  if v_completed is not null then
    update public.attendees a set status = 'active' where a.order_id = any (v_completed) and a.status = 'awaiting_payment';
  end if;
  if v_cancelled is not null then
    update public.attendees a set status = 'cancelled' where a.order_id = any (v_cancelled) and a.status <> 'cancelled';
  end if;
  return null;
end
$$;
create trigger orders_500_update_attendees after update on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__update_attendees();

-- The guard of attendees writes it anew. An erasure does so for all its orders at once.
create function private.tg_orders__update_search_text() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.attendees a set search_text = '' where a.order_id = new.id;
  return null;
end
$$;
create trigger orders_500_update_search_text after update of name, email, company, external_id on public.orders
  for each row when (
    (new.name, new.email, new.company, new.external_id) is distinct from (old.name, old.email, old.company, old.external_id)
    and current_setting('usher.erasing', true) is distinct from 'on'
  )
  execute function private.tg_orders__update_search_text();
