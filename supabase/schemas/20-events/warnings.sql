-- What a change of an event, or of what belongs to one, is warned of.

-- Times as they were written, by field. One in UTC was converted by whoever wrote it; another offset should be that of the zone.
create function private.warning_of_offset(written jsonb, event_id uuid) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_timezone text;
begin
  if written::text !~ 'T[0-9:.]+[+-]' then
    return null;
  end if;
  v_timezone := (select e.timezone from public.events e where e.id = warning_of_offset.event_id);
  return (
    select private.warning('offset_not_of_zone', format(
      '%s was sent as %s, which is %s in %s, the time zone of the event.',
      f.key, f.value, to_char(f.value::timestamptz at time zone v_timezone, 'YYYY-MM-DD HH24:MI'), v_timezone
    ))
    from jsonb_each_text(written) f
    where f.key ~ '(_at|^valid_from|^valid_until)$'
      and f.value ~ 'T.*[+-](?!00:00)[0-9:]{5}$'
      and f.value::timestamptz at time zone v_timezone <> left(f.value, -6)::timestamp
    order by f.key desc
    limit 1
  );
end
$$;
grant execute on function private.warning_of_offset to scope_events_write;

-- What is allowed and yet likely to be meant otherwise, when all is done: a ticket type may have been raised as well. `before` is the event as
-- it was, or the one of which it is a copy; `moves`: sales, promo codes and check-in points move with it.
create function private.warnings_of_event(before public.events, event public.events, moves boolean default false) returns jsonb[]
language plpgsql stable set search_path = ''
as $$
declare
  v_warnings jsonb[] := '{}';
begin
  if before.id is distinct from event.id then
    return array(
      select private.warning('name_taken', 'Another event has this name. To change that one, send it as event.')
      from public.events e
      where e.organisation_id = event.organisation_id and e.id <> event.id and private.search_form(e.name) = private.search_form(event.name)
      limit 1
    );
  end if;
  -- More places of the event make none of a ticket type that has issued all of its own. Places that are held for the waiting list are just
  -- being given.
  if event.capacity > before.capacity or event.capacity is null and before.capacity is not null then
    v_warnings := v_warnings || (
      select private.warning('ticket_type_sold_out', format(
        'The event has more places, but %s of its ticket types remain sold out: raise their quantity.', count(*)
      ))
      from public.ticket_types t
      where t.event_id = event.id and t.status = 'active' and t.quantity <= t.quantity_sold
        and now() >= coalesce(t.sales_start_at, '-infinity') and now() < coalesce(t.sales_end_at, 'infinity')
      having count(*) > 0
    );
  end if;
  -- What apply_event would have moved along stays where it was, and so does a door that now closes before the end.
  if not moves and event.starts_at <> before.starts_at and (
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
    v_warnings := v_warnings || private.warning(
      'windows_stay', 'Sales, promo codes and check-in points keep their times. To move all with the event, use apply_event with move.'
    );
  elsif not moves and event.ends_at > before.ends_at and exists (
    select from public.check_in_points p
    where p.event_id = event.id and p.status = 'active' and p.closes_at >= before.ends_at and p.closes_at < event.ends_at
  ) then
    v_warnings := v_warnings
      || private.warning('windows_stay', 'A check-in point keeps its times, and now closes before the event ends. Change its closes_at.');
  end if;
  -- In another time zone the same moments have other hours, which guests were told.
  if before.status = 'published' and event.timezone <> before.timezone and event.starts_at = before.starts_at then
    v_warnings := v_warnings || private.warning('hours_moved', format(
      'The event starts at the same moment, which is now %s local time instead of %s. To keep the local time, change starts_at and ends_at.',
      private.clock_time(event.starts_at, event.timezone), private.clock_time(before.starts_at, before.timezone)
    ));
  end if;
  return v_warnings;
end
$$;
grant execute on function private.warnings_of_event to scope_events_write;

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
    'The waiting list ended with the event: %s, without an e-mail. Publishing the event again does not restore it.',
    case v_waiting when 1 then '1 person was on it' else v_waiting || ' people were on it' end
      || case when v_offered > 0 then format(', %s with an offer of a place', v_offered) else '' end
  ));
end
$$;
grant execute on function private.warning_of_waiting_list to scope_events_write;
