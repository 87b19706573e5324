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
  v_moves private.place_move[];
  v_move private.place_move;
  v_event public.events;
  v_event_id uuid;
  v_taken bigint;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := '{}';
begin
  -- In the order in which everybody takes the locks: events, and in each its ticket types.
  if tg_op = 'INSERT' then
    v_moves := array(
      select row(n.event_id, n.ticket_type_id, count(*), -count(n.waiting_list_entry_id))::private.place_move
      from new_rows n
      group by n.event_id, n.ticket_type_id
      order by n.event_id, n.ticket_type_id
    );
  else
    v_moves := array(
      select row(m.event_id, m.ticket_type_id, sum(m.places), 0)::private.place_move
      from (
        select o.event_id, o.ticket_type_id, -1 as places from old_rows o where o.status <> 'cancelled'
        union all
        select n.event_id, n.ticket_type_id, 1 from new_rows n where n.status <> 'cancelled'
      ) m
      group by m.event_id, m.ticket_type_id
      having sum(m.places) <> 0
      order by m.event_id, m.ticket_type_id
    );
  end if;

  foreach v_move in array v_moves loop
    if v_move.places > 0 and v_event.id is distinct from v_move.event_id then
      if tg_op = 'UPDATE' then
        perform private.lock_event_shared(v_move.event_id);
      end if;
      select e.* into v_event from public.events e where e.id = v_move.event_id;
      perform private.assert_takes_registrations(v_event);
      if v_event.capacity is not null then
        v_limited := v_limited || v_event;
      end if;
    elsif v_move.places < 0 and v_move.event_id <> all (v_given_back) then
      v_given_back := v_given_back || v_move.event_id;
    end if;
  end loop;
  if v_limited <> '{}' or v_given_back <> '{}' then
    perform private.lock_event_capacity(e.id)
    from (select l.id from unnest(v_limited) l union select g.id from unnest(v_given_back) g (id) order by 1) e;
  end if;

  foreach v_move in array v_moves loop
    perform private.move_places(v_move.ticket_type_id, v_move.places, v_move.held);
  end loop;

  foreach v_event in array v_limited loop
    v_taken := private.places_taken(v_event.id);
    if v_taken > v_event.capacity then
      perform private.refuse(
        409, 'sold_out', 'The event is full.', 'event_id',
        hint => 'Raise the capacity of the event.'
          || private.way_to_held_place((select sum(t.quantity_held) from public.ticket_types t where t.event_id = v_event.id))
      );
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
  for each statement when (current_setting('usher.moves_places', true) = 'on')
  execute function private.tg_attendees__count_places();
