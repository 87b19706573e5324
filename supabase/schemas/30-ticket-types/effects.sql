-- What a change of a ticket type does to the waiting list.

-- Operations have the capacity lock when they lock the row; an edit by hand does not, and whoever has it may wait for the row. So the edit
-- gives way, before Postgres ends one of the two as a deadlock, after a second. The time-out is for this lock alone.
create function private.lock_capacity_after_row(event_id uuid) returns void
language plpgsql volatile set search_path = '' set lock_timeout = '300ms'
as $$
begin
  perform private.lock_event_capacity(event_id);
exception when lock_not_available then
  perform private.refuse(
    503, 'temporarily_unavailable', 'Tickets of this event are being issued or returned at this moment.', hint => 'Save it again.'
  );
end
$$;

-- More places of a ticket type, or its sale goes on. The row is locked, so nobody joins its waiting list meanwhile.
create function private.tg_ticket_types__offer() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (select from public.waiting_list_entries w where w.ticket_type_id = new.id and w.status = 'waiting') then
    perform private.lock_capacity_after_row(new.event_id);
    perform private.offer_places(new.event_id);
  end if;
  return null;
end
$$;
create trigger ticket_types_500_offer after update of quantity, status, sales_end_at on public.ticket_types
  for each row when ((new.quantity, new.status, new.sales_end_at) is distinct from (old.quantity, old.status, old.sales_end_at))
  execute function private.tg_ticket_types__offer();
