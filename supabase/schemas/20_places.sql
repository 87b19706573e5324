-- Places: an attendee who is not cancelled holds one place of the ticket type and of the event, and so does an offer of the waiting
-- list. Triggers on attendees count them, wherever a row is changed, and never exceed the limits. The locks of an event, under which
-- this holds, are here, too.

-- The event lock. Registrations hold it shared; a change of status, capacity or currency holds it exclusively until the end of
-- the transaction, so a cancellation never misses a registration in flight. An advisory lock rather than a row lock, because
-- its queue is fair: during an on-sale some transaction always holds the row shared, and the organiser's edit would starve.
-- Where the event has a capacity, registrations go one by one under a second lock: two transactions that hold the first one
-- shared could never both upgrade it. Whatever gives places back takes it as well, and then offers them to the waiting list.
-- Lock order, everywhere: external_ids of a registration, event row, event lock, order, attendee, offer of the waiting list, promo
-- code, capacity lock of the event, ticket type; several of a kind in the order of their ids.
create function private.lock_event_exclusive(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(1, hashtext(event_id::text));
end
$$;
grant execute on function private.lock_event_exclusive(uuid) to scope_events_write;

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

create function private.lock_event_capacity(event_id uuid) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(2, hashtext(event_id::text));
end
$$;
grant execute on function private.lock_event_capacity(uuid) to scope_events_write;

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

create function private.assert_on_sale(ticket_type public.ticket_types) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if ticket_type.status = 'archived' then
    perform private.refuse(
      409, 'ticket_type_archived', 'This ticket type is archived and no longer issued.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id),
      hint => 'Choose an active ticket type.'
    );
  elsif now() < ticket_type.sales_start_at then
    perform private.refuse(
      409, 'sales_not_started', 'The sale of this ticket type has not started.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id, 'sales_start_at', private.rfc3339(ticket_type.sales_start_at))
    );
  elsif now() >= ticket_type.sales_end_at then
    perform private.refuse(
      409, 'sales_ended', 'The sale of this ticket type has ended.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id, 'sales_end_at', private.rfc3339(ticket_type.sales_end_at))
    );
  end if;
end
$$;

-- Takes places of one ticket type, or releases them if negative, exactly under any concurrency; `held` is how many more are held for
-- offers, so that an offer which is accepted moves one from there. The update locks the row, so two buyers of the last place wait for
-- each other; it comes as late in the transaction as possible.
-- Security definer: callers may not change the counters.
create function private.move_places(ticket_type_id uuid, places integer, held integer default 0) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
  v_left integer;
begin
  update public.ticket_types t set quantity_sold = t.quantity_sold + places, quantity_held = t.quantity_held + held
  where t.id = move_places.ticket_type_id
    and (places + held <= 0 or t.quantity is null or t.quantity_sold + t.quantity_held + places + held <= t.quantity)
  returning * into v_ticket_type;
  if not found then
    select t.* into v_ticket_type from public.ticket_types t where t.id = move_places.ticket_type_id;
    v_left := v_ticket_type.quantity - v_ticket_type.quantity_sold - v_ticket_type.quantity_held;
    perform private.refuse(
      409, 'sold_out', 'There are not enough tickets of this type left.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      -- The waiting list takes nobody while a ticket is left, nor for a type that is issued in groups.
      hint => case
        when v_left >= v_ticket_type.min_per_order then 'Register fewer people, choose another ticket type, or raise its quantity.'
        when v_ticket_type.min_per_order > 1 then 'Choose another ticket type, or raise its quantity.'
        else 'Choose another ticket type, raise its quantity, or join the waiting list.'
      end
    );
  end if;
  if places > 0 then
    perform private.assert_on_sale(v_ticket_type);
  end if;
end
$$;

create type private.place_move as (event_id uuid, ticket_type_id uuid, places integer, held integer);

-- Once per statement: cancelling an event of 10,000 attendees is one update per ticket type. Takes all event locks before all
-- ticket types, each in the order of their ids. What is given back is offered to the waiting list before anybody else can take it.
create function private.tg_attendees__count_places() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_moves private.place_move[] := '{}';
  v_event_id uuid;
  v_event public.events;
  v_taken bigint;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := '{}';
  v_move record;
begin
  if tg_op = 'UPDATE' then
    v_moves := v_moves || array(
      select row(o.event_id, o.ticket_type_id, -1, 0)::private.place_move from old_rows o where o.status <> 'cancelled'
    );
  end if;
  v_moves := v_moves || array(
    select row(
      n.event_id, n.ticket_type_id, 1, case when tg_op = 'INSERT' and n.waiting_list_entry_id is not null then -1 else 0 end
    )::private.place_move
    from new_rows n
    where n.status <> 'cancelled'
  );
  v_moves := array(
    select row(m.event_id, m.ticket_type_id, sum(m.places)::integer, sum(m.held)::integer)::private.place_move
    from unnest(v_moves) m
    group by m.event_id, m.ticket_type_id
    having sum(m.places) <> 0
  );

  for v_move in
    select m.event_id, bool_or(m.places > 0) as takes, bool_or(m.places < 0) as gives_back
    from unnest(v_moves) m
    group by m.event_id
    order by m.event_id
  loop
    v_event := null;
    if v_move.takes then
      v_event := private.lock_event_shared(v_move.event_id);
      perform private.assert_takes_registrations(v_event);
      if v_event.capacity is not null then
        v_limited := v_limited || v_event;
      end if;
    end if;
    if v_move.gives_back then
      v_given_back := v_given_back || v_move.event_id;
    end if;
    if v_move.gives_back or v_event.capacity is not null then
      perform private.lock_event_capacity(v_move.event_id);
    end if;
  end loop;

  for v_move in select m.* from unnest(v_moves) m order by m.ticket_type_id loop
    perform private.move_places(v_move.ticket_type_id, v_move.places, v_move.held);
  end loop;

  foreach v_event in array v_limited loop
    v_taken := private.places_taken(v_event.id);
    if v_taken > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    elsif v_taken = v_event.capacity then
      -- An accepted offer takes a place that was taken before.
      if (select sum(m.places + m.held) from unnest(v_moves) m where m.event_id = v_event.id) > 0 then
        perform private.notify_of_full_event(v_event.id);
      end if;
    end if;
  end loop;

  foreach v_event_id in array v_given_back loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;
create trigger attendees_500_count_places_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
create trigger attendees_500_count_places_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
