-- What is notified of a ticket type: that it is sold out. Security definer: no role may write the outbox.

-- No place of a ticket type is left where there was one: the last was taken, or held for an offer of the waiting list, or the quantity
-- lowered to what is taken. Where its event was full before, that was said then.
create function private.tg_ticket_types__notify_sold_out() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- No `when` of the trigger: Postgres reads and plans it for each ticket that is issued, which costs twice as much.
  if new.quantity is null or new.quantity = 0 or new.quantity_sold + new.quantity_held < new.quantity
    or old.quantity_sold + old.quantity_held >= old.quantity then
    return null;
  end if;
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new), new.id);
  return null;
end
$$;
create trigger ticket_types_600_notify_sold_out after update of quantity, quantity_sold on public.ticket_types
  for each row execute function private.tg_ticket_types__notify_sold_out();
