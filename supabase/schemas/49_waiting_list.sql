-- The waiting list: people who want a place of a ticket type that has none left. Whoever came first is offered the next place that is
-- given back, with a deadline, and the place is held for them. A place that is given back is offered in the transaction that gives it
-- back, so nobody who registers directly can take it.
--
-- waiting -> offered -> accepted | expired; waiting or offered -> cancelled. Only Usher offers; an attendee with waiting_list_entry_id
-- accepts.
--
-- Locks: an entry that is offered comes after the order and before the promo code, one that waits comes last, after the ticket type.
-- Whoever has locked one that waits waits for nothing else. Joining and giving places back hold the capacity lock of the event.

create type public.waiting_list_status as enum ('waiting', 'offered', 'accepted', 'expired', 'cancelled');

create table public.waiting_list_entries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  ticket_type_id uuid not null,
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  send_email boolean not null default true,
  status public.waiting_list_status not null default 'waiting',
  offered_at timestamptz,
  offer_expires_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint waiting_list_entries_pkey primary key (id),
  constraint waiting_list_entries_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint waiting_list_entries_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint waiting_list_entries_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint waiting_list_entries_email_is_an_address check (
    email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(email) <= 254
  ),
  constraint waiting_list_entries_company_is_one_line check (length(btrim(company)) between 1 and 200 and company !~ '[[:cntrl:]]'),
  constraint waiting_list_entries_offers_have_a_deadline check (
    status not in ('offered', 'accepted', 'expired') or (offered_at is not null and offer_expires_at is not null)
  ),
  constraint waiting_list_entries_offer_expires_at_is_finite check (
    offer_expires_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint waiting_list_entries_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint waiting_list_entries_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.waiting_list_entries is 'People who wait for a place of a sold-out ticket type, in the order of their ids. Take somebody off by setting status to cancelled.';
comment on column public.waiting_list_entries.id is 'Identifier, a UUID of version 7: it holds the time of joining, and with it the order of the list.';
comment on column public.waiting_list_entries.organisation_id is 'The organisation that it belongs to.';
comment on column public.waiting_list_entries.event_id is 'The event that it belongs to.';
comment on column public.waiting_list_entries.ticket_type_id is 'The ticket type that the person waits for.';
comment on column public.waiting_list_entries.name is 'Name of the person.';
comment on column public.waiting_list_entries.email is 'Address that the offer is sent to.';
comment on column public.waiting_list_entries.email_lower is 'The address in lower case, for look-ups. Generated.';
comment on column public.waiting_list_entries.company is 'Company of the person.';
comment on column public.waiting_list_entries.send_email is 'Whether the offer, and later the ticket, is e-mailed.';
comment on column public.waiting_list_entries.status is 'waiting, offered, accepted, expired or cancelled.';
comment on column public.waiting_list_entries.offered_at is 'When a place was offered. Kept by Usher.';
comment on column public.waiting_list_entries.offer_expires_at is 'Until when the offered place is held. May be moved while it is offered.';
comment on column public.waiting_list_entries.external_id is 'The organiser''s own identifier, unique within the organisation.';
comment on column public.waiting_list_entries.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.waiting_list_entries.version is 'Number of edits. Kept by Usher.';
comment on column public.waiting_list_entries.created_at is 'When the row was added.';
comment on column public.waiting_list_entries.updated_at is 'When the row was last changed. Kept by Usher.';

create unique index waiting_list_entries_organisation_id_external_id_key on public.waiting_list_entries (organisation_id, external_id)
  where external_id is not null;
-- Nobody waits twice for the same.
create unique index waiting_list_entries_ticket_type_id_email_lower_key on public.waiting_list_entries (ticket_type_id, email_lower)
  where status in ('waiting', 'offered');
create index waiting_list_entries_event_id_id_idx on public.waiting_list_entries (event_id, id);
create index waiting_list_entries_event_id_waiting_idx on public.waiting_list_entries (event_id, id) where status = 'waiting';
create index waiting_list_entries_ticket_type_id_status_idx on public.waiting_list_entries (ticket_type_id, status, id);
create index waiting_list_entries_offer_expires_at_idx on public.waiting_list_entries (offer_expires_at) where status = 'offered';
-- For api.purge.
create index waiting_list_entries_updated_at_idx on public.waiting_list_entries (updated_at) where status in ('expired', 'cancelled');

alter table public.attendees add constraint attendees_waiting_list_entry_id_fkey
  foreign key (waiting_list_entry_id) references public.waiting_list_entries (id);
alter table public.emails add constraint emails_waiting_list_entry_id_fkey
  foreign key (waiting_list_entry_id) references public.waiting_list_entries (id) on delete cascade;
create unique index attendees_waiting_list_entry_id_key on public.attendees (waiting_list_entry_id)
  where waiting_list_entry_id is not null;

-- Who joins has to wait: there is no place left, and nobody else is giving one back at this moment.
create function private.assert_sold_out(event public.events, ticket_type public.ticket_types) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if ticket_type.quantity_sold + ticket_type.quantity_held >= ticket_type.quantity
    or private.places_taken(event.id) >= event.capacity then
    return;
  end if;
  perform private.refuse(
    409, 'not_sold_out', 'There are tickets of this type left.', 'ticket_type_id',
    jsonb_build_object('ticket_type_id', ticket_type.id), 'Register the person instead.'
  );
end
$$;

-- Security definer: it reads events and ticket types beyond what a registering key may see.
create function private.tg_waiting_list_entries__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_ticket_type public.ticket_types;
begin
  if tg_op = 'INSERT' then
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    if new.status <> 'waiting' or num_nonnulls(new.offered_at, new.offer_expires_at) > 0 then
      perform private.assert_as_given(
        to_jsonb(new), jsonb_build_object('status', 'waiting', 'offered_at', null, 'offer_expires_at', null)
      );
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    perform private.assert_takes_registrations(v_event);
    perform private.lock_event_capacity(new.event_id);
    select t.* into v_ticket_type
    from public.ticket_types t
    where t.id = new.ticket_type_id and t.event_id = new.event_id
    for no key update;
    if not found then
      perform private.refuse_not_found('ticket_type_id');
    end if;
    perform private.assert_on_sale(v_ticket_type);
    if v_ticket_type.min_per_order > 1 then
      perform private.refuse(
        409, 'quantity_not_allowed', 'The waiting list is for one ticket, and an order has more of this type.', 'ticket_type_id',
        jsonb_build_object('ticket_type_id', v_ticket_type.id, 'min_per_order', v_ticket_type.min_per_order)
      );
    end if;
    perform private.assert_sold_out(v_event, v_ticket_type);
    -- Made under the locks: the order of ids is that of joining.
    new.id := private.uuid_v7();
  else
    -- Depth 1 is a statement of a person or an operation; triggers offer and accept one level deeper.
    if new.status <> old.status and not (
      (old.status, new.status) in (('waiting', 'cancelled'), ('offered', 'cancelled'))
      or (old.status, new.status) = ('offered', 'expired') and new.offer_expires_at <= now()
      or (old.status, new.status) in (('waiting', 'offered'), ('offered', 'accepted')) and pg_trigger_depth() > 1
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An entry of the waiting list cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: waiting or offered to cancelled; offered to expired after its deadline. Places are offered by Usher.'
      );
    end if;
    if new.offer_expires_at is distinct from old.offer_expires_at
      and (old.status, new.status) not in (('waiting', 'offered'), ('offered', 'offered')) then
      perform private.refuse(
        409, 'read_only_field', 'Only an offer that stands has a deadline to be moved.', 'offer_expires_at', hint => 'Leave it as it is.'
      );
    elsif new.status = 'offered' and new.offer_expires_at is null then
      perform private.refuse_value('offer_expires_at', 'An offer has a deadline.', 'Move it, or cancel the entry.');
    end if;
  end if;

  -- Before the unique indexes, whose errors would make two of these wait for one another.
  if new.status in ('waiting', 'offered') and (tg_op = 'INSERT' or lower(new.email) <> old.email_lower) then
    perform private.refuse_taken('email', w.id, w.created_at)
    from public.waiting_list_entries w
    where w.ticket_type_id = new.ticket_type_id and w.email_lower = lower(new.email) and w.status in ('waiting', 'offered')
      and w.id <> new.id;
  end if;
  if tg_op = 'INSERT' or new.external_id is distinct from old.external_id then
    perform private.refuse_taken('external_id', w.id, w.created_at)
    from public.waiting_list_entries w
    where w.organisation_id = new.organisation_id and w.external_id = new.external_id and w.id <> new.id;
  end if;
  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
  end if;
  return new;
end
$$;

create function private.tg_waiting_list_entries__assert_over() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if old.status in ('waiting', 'offered') then
    perform private.refuse(
      409, 'in_use', 'This person is still on the waiting list.', hint => 'Set status to cancelled first.'
    );
  end if;
  return old;
end
$$;

create trigger waiting_list_entries_050_fixed before update of organisation_id, event_id, ticket_type_id on public.waiting_list_entries
  for each row execute function private.tg__assert_unchanged('organisation_id', 'event_id', 'ticket_type_id');
create trigger waiting_list_entries_050_derived before update of version, created_at, updated_at on public.waiting_list_entries
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger waiting_list_entries_100_in_use before delete on public.waiting_list_entries
  for each row execute function private.tg__assert_not_in_use(
    'The entry is in use: an attendee accepted its offer.', 'Erase or cancel the attendee instead.', 'attendees.waiting_list_entry_id'
  );
create trigger waiting_list_entries_100_over before delete on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__assert_over();
create trigger waiting_list_entries_100_guard before insert or update on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__guard();
create trigger waiting_list_entries_100_no_truncate before truncate on public.waiting_list_entries
  for each statement execute function private.tg__refuse_truncate();
create trigger waiting_list_entries_900_updated_at before update on public.waiting_list_entries
  for each row execute function private.tg__set_updated_at('email_lower');
create trigger waiting_list_entries_900_version before update on public.waiting_list_entries
  for each row when (
    new.name is distinct from old.name or new.email is distinct from old.email or new.company is distinct from old.company
    or new.send_email is distinct from old.send_email or new.status is distinct from old.status
    or new.offered_at is distinct from old.offered_at or new.offer_expires_at is distinct from old.offer_expires_at
    or new.external_id is distinct from old.external_id or new.metadata is distinct from old.metadata
  )
  execute function private.tg__count_version();

create trigger waiting_list_entries_700_audit_insert after insert on public.waiting_list_entries
  referencing new table as new_rows for each statement execute function private.tg__audit('waiting_list_entry', 'id', 'versioned');
create trigger waiting_list_entries_700_audit_update after update on public.waiting_list_entries
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg__audit('waiting_list_entry', 'id', 'versioned');

revoke all on public.waiting_list_entries from anon, authenticated, service_role;

alter table public.waiting_list_entries enable row level security;
create policy waiting_list_entries_select_own on public.waiting_list_entries for select to scope_attendees_read, scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy waiting_list_entries_insert_own on public.waiting_list_entries for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy waiting_list_entries_update_own on public.waiting_list_entries for update to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy waiting_list_entries_select_membership on public.waiting_list_entries for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy waiting_list_entries_insert_membership on public.waiting_list_entries for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy waiting_list_entries_update_membership on public.waiting_list_entries for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.waiting_list_entries to scope_attendees_read, scope_attendees_write, authenticated;
grant insert (organisation_id, event_id, ticket_type_id, name, email, company, send_email, external_id, metadata)
  on public.waiting_list_entries to scope_attendees_write, authenticated;
grant update (name, email, company, send_email, status, offer_expires_at, external_id, metadata)
  on public.waiting_list_entries to scope_attendees_write, authenticated;

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
      409, 'not_offered', 'No place is offered to this person.', 'waiting_list_entry_id', jsonb_build_object('status', entry.status),
      'Whoever waits is offered a place when it is their turn.'
    );
  end if;
end
$$;
grant execute on function private.assert_offered(public.waiting_list_entries) to scope_attendees_write;

-- Locks the offer that a new attendee accepts, and accepts it. Their place is the one that is held: see tg_attendees__count_places.
create function private.accept_offer(attendee public.attendees) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  select w.* into v_entry
  from public.waiting_list_entries w
  where w.id = attendee.waiting_list_entry_id and w.event_id = attendee.event_id
  for no key update;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  perform private.assert_offered(v_entry);
  if v_entry.ticket_type_id <> attendee.ticket_type_id then
    perform private.refuse_value(
      'ticket_type_id', 'The offer is for another ticket type.', 'Register the ticket type of the waiting list entry.'
    );
  end if;
  update public.waiting_list_entries w set status = 'accepted' where w.id = v_entry.id;
end
$$;

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
    select n.ticket_type_id, count(*)::integer as places
    from new_rows n
    where n.id = any (v_released)
    group by n.ticket_type_id
    order by n.ticket_type_id
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

-- More places of a ticket type, or its sale goes on. The row is locked, so nobody joins its waiting list meanwhile. Operations have the
-- capacity lock by now; an edit by hand does not, and whoever has it may wait for the row. So the edit gives way, before Postgres ends
-- one of the two as a deadlock, after a second.
create function private.tg_ticket_types__offer() returns trigger
language plpgsql volatile security definer set search_path = '' set lock_timeout = '300ms'
as $$
begin
  if exists (select from public.waiting_list_entries w where w.ticket_type_id = new.id and w.status = 'waiting') then
    perform private.lock_event_capacity(new.event_id);
    perform private.offer_places(new.event_id);
  end if;
  return null;
exception when lock_not_available then
  perform private.refuse(
    503, 'temporarily_unavailable', 'Tickets of this event are issued or given back at this very moment.', hint => 'Save it again.'
  );
end
$$;
create trigger ticket_types_500_offer after update of quantity, status, sales_end_at on public.ticket_types
  for each row when ((new.quantity, new.status, new.sales_end_at) is distinct from (old.quantity, old.status, old.sales_end_at))
  execute function private.tg_ticket_types__offer();

-- More places of the event, or it goes on for longer. A change of the capacity holds the exclusive event lock.
create function private.tg_events__offer() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.lock_event_capacity(new.id);
  perform 1 from public.ticket_types t where t.event_id = new.id order by t.id for no key update;
  perform private.offer_places(new.id);
  return null;
end
$$;
create trigger events_500_offer after update on public.events
  for each row when (
    new.status = 'published' and (new.status, new.capacity, new.ends_at) is distinct from (old.status, old.capacity, old.ends_at)
  )
  execute function private.tg_events__offer();

-- Nobody waits for an event that is cancelled or completed. After its orders, whose tickets lock ticket types first.
create function private.tg_events__close_waiting_list() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.waiting_list_entries w set status = 'cancelled' where w.event_id = new.id and w.status in ('waiting', 'offered');
  return null;
end
$$;
create trigger events_550_close_waiting_list after update on public.events
  for each row when (new.status in ('cancelled', 'completed') and new.status <> old.status)
  execute function private.tg_events__close_waiting_list();
