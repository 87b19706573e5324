-- The locks of an event, under which its places are counted and its status, capacity and currency change.

-- The event lock. Registrations hold it shared; a change of status, capacity or currency holds it exclusively until the end of
-- the transaction, so a cancellation never misses a registration in flight. An advisory lock rather than a row lock, because
-- its queue is fair: during an on-sale some transaction always holds the row shared, and the organiser's edit would starve.
-- Where the event has a capacity, registrations go one by one under a second lock: two transactions that hold the first one
-- shared could never both upgrade it. Whatever gives places back takes it as well, and then offers them to the waiting list.
-- Lock order, everywhere: external_ids of a registration, event row, event lock, its messages, order, attendee, switched-off e-mails of an address,
-- offer of the waiting list, promo code, capacity lock of the event, ticket type; several of a kind in the order of their ids, ticket
-- types and switched-off e-mails in that of their events first.
create function private.lock_event_exclusive(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(1, hashtext(event_id::text));
end
$$;
grant execute on function private.lock_event_exclusive to scope_events_write;

create function private.lock_event_shared(event_id uuid) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
begin
  perform pg_advisory_xact_lock_shared(1, hashtext(event_id::text));
  -- Read under the lock: no other transaction can change it now.
  select e.* into v_event from public.events e where e.id = lock_event_shared.event_id;
  return v_event;
end
$$;

-- The same for an event to which a row is added. Whose it is comes first: nobody waits for what another organisation does, for that would
-- tell them that the event is there.
create function private.lock_own_event_shared(event_id uuid) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
begin
  perform private.assert_not_foreign((select e.organisation_id from public.events e where e.id = lock_own_event_shared.event_id), 'event_id');
  v_event := private.lock_event_shared(event_id);
  -- Deleted meanwhile.
  if v_event.id is null then
    perform private.refuse_not_found('event_id');
  end if;
  return v_event;
end
$$;

create function private.lock_event_capacity(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(2, hashtext(event_id::text));
end
$$;
grant execute on function private.lock_event_capacity to scope_events_write;

-- Tickets of the event that are not cancelled, and offers. Volatile, so that it sees what was committed before its caller got the event lock.
create function private.places_taken(event_id uuid) returns bigint
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.event_id = places_taken.event_id
  );
end
$$;
grant execute on function private.places_taken to scope_events_write;
