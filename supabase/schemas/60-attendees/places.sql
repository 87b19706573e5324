-- Places: an attendee who is not cancelled holds one place of the ticket type and of the event, and so does an offer of the waiting
-- list. Triggers on attendees count them, wherever a row is changed, and never exceed the limits. The locks of the event, under which
-- this holds, are in 20-events/locks.sql; the counters in 30-ticket-types/places.sql.

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
