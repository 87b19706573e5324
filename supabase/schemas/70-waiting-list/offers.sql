-- Offers: who is offered the next place, how long it is held, and what becomes of it.

-- Offers free places of an event to those who have waited longest. The caller has the capacity lock of the event, or its exclusive
-- lock, and the ticket types of which places became free.
create function private.offer_places(event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_places_left bigint;
  v_offered uuid[];
  v_entry_id uuid;
begin
  if not exists (
    select from public.waiting_list_entries w where w.event_id = offer_places.event_id and w.status = 'waiting'
  ) then
    return;
  end if;
  select e.* into v_event from public.events e where e.id = offer_places.event_id;
  if v_event.status <> 'published' or v_event.ends_at <= now() then
    return;
  end if;

  v_places_left := v_event.capacity - private.places_taken(event_id);
  if v_places_left <= 0 then
    return;
  end if;

  -- Of each ticket type as many as there are places left, and of these as many as the event has. No limit is null.
  v_offered := array(
    select l.id
    from public.ticket_types t
    cross join lateral (
      select w.id
      from public.waiting_list_entries w
      where w.ticket_type_id = t.id and w.status = 'waiting'
      order by w.id
      limit least(t.quantity - t.quantity_sold - t.quantity_held, v_places_left)
      for no key update
    ) l
    where t.event_id = offer_places.event_id and t.status = 'active' and (t.sales_end_at is null or t.sales_end_at > now())
    order by l.id
    limit v_places_left
  );
  update public.ticket_types t set quantity_held = t.quantity_held + o.places
  from (
    select w.ticket_type_id, count(*) as places from public.waiting_list_entries w where w.id = any (v_offered) group by w.ticket_type_id
  ) o
  where t.id = o.ticket_type_id;
  -- One by one: they are told in the order of the list.
  foreach v_entry_id in array v_offered loop
    update public.waiting_list_entries w
    set status = 'offered',
      offered_at = now(),
      offer_expires_at = least(
        greatest(now(), t.sales_start_at) + make_interval(hours => v_event.waiting_list_offer_hours), t.sales_end_at, v_event.ends_at
      )
    from public.ticket_types t
    where w.id = v_entry_id and t.id = w.ticket_type_id;
  end loop;
end
$$;

-- What a refusal adds for want of places while some are held: whoever is offered one gets it another way.
create function private.way_to_held_place(held bigint) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return case
    when coalesce(held, 0) = 0 then ''
    when private.is_by_hand()
      then $way$ For whoever is offered a place: select accept_offer(the_waiting_list_entry('who@example.com', 'my-event')).$way$
    else ' To take an offered place, call accept_waiting_list_offer.'
  end;
end
$$;

create function private.assert_offered(entry public.waiting_list_entries) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if entry.status = 'expired' or entry.status = 'offered' and entry.offer_expires_at <= now() then
    perform private.refuse(
      409, 'offer_expired', 'The offer has expired.', 'waiting_list_entry_id',
      jsonb_build_object('offer_expires_at', private.rfc3339(entry.offer_expires_at)), 'Join the waiting list again.'
    );
  elsif entry.status <> 'offered' then
    perform private.refuse(
      409, 'not_offered', 'This person has no offer.', 'waiting_list_entry_id', jsonb_build_object('status', entry.status),
      'Usher offers places in the order of the waiting list.'
    );
  end if;
end
$$;
grant execute on function private.assert_offered to scope_attendees_write;

-- An offer that is not accepted gives its place back, to whoever waits next. Locks as a cancelled ticket does.
create function private.tg_waiting_list_entries__release() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_released uuid[] := array(
    select o.id from old_rows o where o.status = 'offered'
    except
    select n.id from new_rows n where n.status in ('offered', 'accepted')
  );
  v_event_ids uuid[];
  v_event_id uuid;
  v_move record;
begin
  if v_released = '{}' then
    return null;
  end if;
  v_event_ids := array(select distinct n.event_id from new_rows n where n.id = any (v_released) order by n.event_id);
  foreach v_event_id in array v_event_ids loop
    perform private.lock_event_capacity(v_event_id);
  end loop;
  for v_move in
    select n.event_id, n.ticket_type_id, count(*)::integer as places
    from new_rows n
    where n.id = any (v_released)
    group by n.event_id, n.ticket_type_id
    order by n.event_id, n.ticket_type_id
  loop
    perform private.move_places(v_move.ticket_type_id, 0, -v_move.places);
  end loop;
  foreach v_event_id in array v_event_ids loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;
create trigger waiting_list_entries_500_release after update on public.waiting_list_entries
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_waiting_list_entries__release();

-- Expires offers of one event after their deadline, which offers the places to whoever waits next: { expired, has_more }. One event at
-- a time, for its locks; an event or an entry that another transaction has locked is left for later, and holds up nobody else.
create function api.expire_waiting_list_offers() returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 100;
  v_event_id uuid;
  v_expired integer := 0;
begin
  -- Nobody reads an offer where e-mails are held.
  if private.is_held() then
    return json_build_object('expired', 0, 'has_more', false);
  end if;
  for v_event_id in
    select w.event_id
    from public.waiting_list_entries w
    where w.status = 'offered' and w.offer_expires_at <= now()
    group by w.event_id
    order by min(w.offer_expires_at)
  loop
    -- As private.lock_event_shared, without waiting.
    continue when not pg_try_advisory_xact_lock_shared(1, hashtext(v_event_id::text));
    update public.waiting_list_entries w set status = 'expired'
    where w.id = any (array(
      select d.id
      from public.waiting_list_entries d
      where d.event_id = v_event_id and d.status = 'offered' and d.offer_expires_at <= now()
      order by d.id
      limit v_most
      for no key update skip locked
    ));
    get diagnostics v_expired = row_count;
    exit when v_expired > 0;
  end loop;
  return json_build_object(
    'expired', v_expired,
    'has_more', v_expired > 0 and exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
  );
end
$$;
comment on function api.expire_waiting_list_offers is
  'Expires waiting-list offers after their deadline, some at a time, and offers their places to the next: { expired, has_more }. For the courier.';
grant execute on function api.expire_waiting_list_offers to courier;
