-- What is notified of an event: what happened to it, and that it is full. All security definer: no role may write the outbox.

-- The event itself has become full: sold out are all of its ticket types on sale that had places left. The caller has the lock under
-- which the places of an event are counted, so this costs registrations nothing more.
create function private.notify_of_full_event(event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select t.organisation_id, 'ticket_type.sold_out', t.data, t.id
  from (
    select t.organisation_id, t.position, t.id, private.ticket_type_json(t) as data
    from public.ticket_types t
    where t.event_id = notify_of_full_event.event_id
      and (t.quantity is null or t.quantity_sold + t.quantity_held < t.quantity)
  ) t
  where t.data ->> 'sales_status' = 'sold_out'
  order by t.position, t.id;
end
$$;

create function private.tg_events__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_taken bigint;
begin
  -- An update that changes nothing notifies of nothing.
  if new.version = old.version then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new),
    new.id
  );
  if new.capacity < old.capacity or new.capacity is not null and old.capacity is null then
    v_taken := private.places_taken(new.id);
    if v_taken >= new.capacity and (old.capacity is null or v_taken < old.capacity) then
      perform private.notify_of_full_event(new.id);
    end if;
  end if;
  return null;
end
$$;
create trigger events_600_notify after update on public.events
  for each row execute function private.tg_events__notify();
