-- What a change of an event, or of what belongs to one, is warned of.

-- Times as they were written, by field. One in UTC was converted by whoever wrote it; another offset should be that of the zone.
create function private.warning_of_offset_in(written jsonb, timezone text) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.warning('offset_not_of_zone', format(
      '%s was written as %s, which is %s in %s, the time zone of the event.',
      f.key, f.value, to_char(f.value::timestamptz at time zone warning_of_offset_in.timezone, 'YYYY-MM-DD HH24:MI'), warning_of_offset_in.timezone
    ))
    from jsonb_each_text(written) f
    where f.key ~ '(_at|^valid_from|^valid_until)$'
      and f.value ~ 'T.*[+-](?!00:00)[0-9:]{5}$'
      and f.value::timestamptz at time zone warning_of_offset_in.timezone <> left(f.value, -6)::timestamp
    order by f.key desc
    limit 1
  );
end
$$;
grant execute on function private.warning_of_offset_in to scope_events_write;

create function private.warning_of_offset(written jsonb, event_id uuid) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return case when written::text ~ 'T[0-9:.]+[+-]' then private.warning_of_offset_in(
    written, (select e.timezone from public.events e where e.id = warning_of_offset.event_id)
  ) end;
end
$$;
grant execute on function private.warning_of_offset to scope_events_write;

-- More places of the event make none of a ticket type that has issued all of its own. Places that are held for the waiting list are just
-- being given.
create function private.warning_of_capacity(before public.events, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if before.capacity is null or event.capacity <= before.capacity then
    return null;
  end if;
  return (
    select private.warning('ticket_type_sold_out', format(
      'The event has more places, but %s of its ticket types stay sold out: raise their quantity.', count(*)
    ))
    from public.ticket_types t
    where t.event_id = event.id and private.is_on_sale(t) and t.quantity <= t.quantity_sold
    having count(*) > 0
  );
end
$$;
grant execute on function private.warning_of_capacity to scope_events_write;

-- In another time zone the same moments have other hours, which guests were told.
create function private.warning_of_timezone(before public.events, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if before.status <> 'published' or event.timezone = before.timezone or event.starts_at is distinct from before.starts_at then
    return null;
  end if;
  return private.warning('hours_moved', format(
    'The event starts at the same moment, and by the clock at %s instead of %s. If it is to keep its hours, change starts_at and ends_at.',
    private.clock_time(event.starts_at, event.timezone), private.clock_time(before.starts_at, before.timezone)
  ));
end
$$;
grant execute on function private.warning_of_timezone to scope_events_write;

-- Of a waiting list that ends with the event, asked before it does. Security definer: a key for events may not read who waits.
create function private.warning_of_waiting_list(event_id uuid) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_waiting integer;
  v_offered integer;
begin
  select count(*), count(*) filter (where w.status = 'offered') into v_waiting, v_offered
  from public.waiting_list_entries w
  where w.event_id = warning_of_waiting_list.event_id
    and w.status in ('waiting', 'offered')
    and w.organisation_id = private.current_organisation_id();
  if v_waiting = 0 then
    return null;
  end if;
  return private.warning('waiting_list_ended', format(
    'The waiting list ended with the event: %s, and nobody was told. Publishing the event again does not bring it back.',
    case v_waiting when 1 then '1 person was on it' else v_waiting || ' people were on it' end
      || case when v_offered > 0 then format(', %s with an offer of a place', v_offered) else '' end
  ));
end
$$;
grant execute on function private.warning_of_waiting_list to scope_events_write;

-- An event whose start or end is written moves by itself. What apply_event would have moved along stays where it was, and so does a door that
-- now closes before the end.
create function private.warning_of_windows(before public.events, event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if event.starts_at <> before.starts_at and (
    exists (
      select from public.ticket_types t
      where t.event_id = event.id and t.status = 'active' and (t.sales_start_at > now() or t.sales_end_at > now())
    )
    or exists (
      select from public.promo_codes c
      where c.event_id = event.id and c.status = 'active' and (c.valid_from > now() or c.valid_until > now())
    )
    or exists (
      select from public.check_in_points p
      where p.event_id = event.id and p.status = 'active' and coalesce(p.opens_at, p.closes_at) is not null
    )
  ) then
    return private.warning(
      'windows_stay', 'Sales, promo codes and check-in points keep their times. To move all with the event, use apply_event with move.'
    );
  elsif event.ends_at > before.ends_at and exists (
    select from public.check_in_points p
    where p.event_id = event.id and p.status = 'active' and p.closes_at >= before.ends_at and p.closes_at < event.ends_at
  ) then
    return private.warning('windows_stay', 'A check-in point keeps its times, and now closes before the event ends. Change its closes_at.');
  end if;
  return null;
end
$$;
grant execute on function private.warning_of_windows to scope_events_write;
