-- Places: an attendee who is not cancelled holds one place of the ticket type and of the event, and so does an offer of the waiting
-- list. A trigger on attendees (totals.sql) counts them, wherever a row is changed, and never exceeds the limits. The locks of the event, under
-- which this holds, are in 20-events/locks.sql; the counters in 30-ticket-types/places.sql.

create type private.place_move as (event_id uuid, ticket_type_id uuid, places integer, held integer);

-- Takes places and gives them back, in the order in which everybody takes the locks: all events before all ticket types, each in the order of
-- their ids, in which `moves` come. What is given back is offered to the waiting list before anybody else can take it.
create function private.move_places_of_events(moves private.place_move[]) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_event_id uuid;
  v_event public.events;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := array(select distinct m.event_id from unnest(moves) m where m.places < 0 order by m.event_id);
  v_taken bigint;
begin
  for v_event_id in select distinct m.event_id from unnest(moves) m where m.places > 0 order by m.event_id loop
    v_event := private.lock_event_shared(v_event_id);
    perform private.assert_takes_registrations(v_event);
    if v_event.capacity is not null then
      v_limited := v_limited || v_event;
    end if;
  end loop;
  if v_limited <> '{}' or v_given_back <> '{}' then
    perform private.lock_event_capacity(e.id)
    from (select l.id from unnest(v_limited) l union select g.id from unnest(v_given_back) g (id) order by 1) e;
  end if;

  perform private.move_places(m.ticket_type_id, m.places, m.held) from unnest(moves) m;

  foreach v_event in array v_limited loop
    v_taken := private.places_taken(v_event.id);
    if v_taken > v_event.capacity then
      perform private.refuse(
        409, 'sold_out', 'The event is full.', 'event_id',
        hint => 'Raise the capacity of the event.'
          || private.way_to_held_place((select sum(t.quantity_held) from public.ticket_types t where t.event_id = v_event.id))
      );
    -- An accepted offer takes a place that was taken before.
    elsif v_taken = v_event.capacity and (select sum(m.places + m.held) from unnest(moves) m where m.event_id = v_event.id) > 0 then
      perform private.notify_of_full_event(v_event.id);
    end if;
  end loop;
  foreach v_event_id in array v_given_back loop
    perform private.offer_places(v_event_id);
  end loop;
end
$$;
