-- What a change of an event does to its orders and its waiting list.

-- Cancelling an event cancels its orders, and tells of all of them at once. The guard holds the exclusive event lock, so no registration is in
-- flight.
create function private.tg_events__cancel_orders() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  with cancelled as (
    update public.orders o set status = 'cancelled', cancellation_reason = 'event_cancelled'
    where o.event_id = new.id and o.status <> 'cancelled'
    returning o.id
  )
  select array_agg(c.id order by c.id) into v_ids from cancelled c;
  perform private.notify_of_orders(v_ids, '{order.cancelled}');
  return null;
end
$$;
create trigger events_500_cancel_orders after update on public.events
  for each row when (new.status = 'cancelled' and old.status <> 'cancelled')
  execute function private.tg_events__cancel_orders();

-- Its waiting list: nobody waits for an event that is cancelled or completed, and more places, or a later end, are offered. After its orders,
-- whose tickets lock ticket types first. A change of status or capacity holds the exclusive event lock.
create function private.tg_events__waiting_list() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.status <> 'published' then
    update public.waiting_list_entries w set status = 'cancelled' where w.event_id = new.id and w.status in ('waiting', 'offered');
    return null;
  end if;
  perform private.lock_event_capacity(new.id);
  perform 1 from public.ticket_types t where t.event_id = new.id order by t.id for no key update;
  perform private.offer_places(new.id);
  return null;
end
$$;
create trigger events_550_waiting_list after update on public.events
  for each row when (
    new.status in ('cancelled', 'completed') and new.status <> old.status
    or new.status = 'published' and (new.status, new.capacity, new.ends_at) is distinct from (old.status, old.capacity, old.ends_at)
  )
  execute function private.tg_events__waiting_list();
