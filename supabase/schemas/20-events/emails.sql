-- What guests are told of a change of their event, when, and by whom. What queues them is security definer: no role may write e-mails.

-- What attendees are told of an event, and told again when it changes.
create function private.announced(event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(f.key, f.value)
    from jsonb_each(private.event_json(event)::jsonb) f
    where f.key in ('name', 'starts_at', 'ends_at', 'timezone', 'venue', 'online_url')
  );
end
$$;

create table private.unannounced_changes (
  event_id uuid not null,
  previous jsonb not null,
  changed_at timestamptz not null default now(),
  constraint unannounced_changes_pkey primary key (event_id),
  constraint unannounced_changes_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade
);
comment on table private.unannounced_changes is 'Events that changed or were cancelled since their attendees were last told, with what these know, and when the last change was.';
alter table private.unannounced_changes enable row level security;

create function private.tg_events__note_change() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.unannounced_changes (event_id, previous) values (new.id, private.announced(old))
  on conflict on constraint unannounced_changes_pkey do update set changed_at = now();
  return null;
end
$$;
create trigger events_500_note_change after update on public.events
  for each row when (
    -- What is edited while the event is completed is to be told once it is published again.
    old.status in ('published', 'completed')
    and (
      new.status = 'cancelled'
      or new.status in ('published', 'completed')
      and (
        new.name is distinct from old.name
        or new.starts_at is distinct from old.starts_at
        or new.ends_at is distinct from old.ends_at
        or new.timezone is distinct from old.timezone
        or new.venue_name is distinct from old.venue_name
        or new.venue_address is distinct from old.venue_address
        or new.venue_city is distinct from old.venue_city
        or new.venue_postcode is distinct from old.venue_postcode
        or new.venue_country is distinct from old.venue_country
        or new.online_url is distinct from old.online_url
      )
    )
  )
  execute function private.tg_events__note_change();

-- Tells the attendees of an event what changed since they were last told, in ten minutes, so that changes which follow one another make
-- one e-mail, with the first old and the last new; or that it was cancelled, once, with whoever was on the waiting list. The caller has
-- locked the event. Answers as private.tell, or null where nobody is to be told.
create function private.notify_of_event(event_id uuid, notify public.notify) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_change private.unannounced_changes;
  v_attendees uuid[];
begin
  select e.* into v_event from public.events e where e.id = notify_of_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  elsif v_event.status not in ('published', 'cancelled') then
    return '{"nobody_because": "event_not_published"}';
  end if;
  delete from private.unannounced_changes c where c.event_id = v_event.id returning c.* into v_change;
  if not found then
    return '{"nobody_because": "nothing_to_tell"}';
  end if;
  v_attendees := array(
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = v_event.id
      and case v_event.status when 'cancelled' then a.cancelled_at = v_event.cancelled_at else a.status <> 'cancelled' end
  );
  if v_event.status = 'cancelled' then
    return private.tell(
      'event_cancelled', private.recipients(v_attendees, notify) || private.recipients_on_waiting_list(v_event, notify)
    );
  end if;
  return private.tell(
    'event_changed',
    private.recipients(v_attendees, notify, v_change.changed_at),
    v_change.previous,
    now() + interval '10 minutes',
    -- Locked, so that no courier takes one with what the event was before this transaction.
    array(
      select (select a.email_lower from public.attendees a where a.id = e.attendee_id)
      from public.emails e
      where e.attendee_id = any (v_attendees) and e.kind = 'event_changed' and e.status = 'queued' and e.claim is null
      for no key update
    )
  );
end
$$;
grant execute on function private.notify_of_event to scope_events_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.notify_attendees(event_id uuid, notify public.notify default 'mailed') returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform from public.events e
  where e.id = notify_attendees.event_id
    and (
      private.claims() ->> 'role' is distinct from 'authenticated'
      or e.organisation_id in (select private.organisations_as('{owner,manager}'))
    )
  for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return coalesce((private.notify_of_event(event_id, notify) ->> 'emails')::integer, 0);
end
$$;
comment on function public.notify_attendees is
  'Tells the attendees of an event by e-mail what changed since they were last told, ten minutes later, or that it was cancelled: mailed those whose orders have e-mails, everybody all of them. Returns how many e-mails.';
revoke all on function public.notify_attendees from public, anon, service_role;
grant execute on function public.notify_attendees to authenticated;
