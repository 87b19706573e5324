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
  name text not null,
  email text not null,
  company text,
  status public.waiting_list_status not null default 'waiting',
  event_id uuid not null,
  ticket_type_id uuid not null,
  offered_at timestamptz,
  offer_expires_at timestamptz,
  send_email boolean not null default true,
  external_id text,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  email_lower text not null generated always as (lower(email)) stored,
  constraint waiting_list_entries_pkey primary key (id),
  constraint waiting_list_entries_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint waiting_list_entries_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint waiting_list_entries_name_is_one_line check (private.is_one_line(name, 200)),
  constraint waiting_list_entries_email_is_an_address check (
    email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(email) <= 254
  ),
  constraint waiting_list_entries_company_is_one_line check (private.is_one_line(company, 200)),
  constraint waiting_list_entries_offered_at_is_set_with_an_offer check (status not in ('offered', 'accepted', 'expired') or offered_at is not null),
  constraint waiting_list_entries_offer_expires_at_is_set_with_an_offer check (
    status not in ('offered', 'accepted', 'expired') or offer_expires_at is not null
  ),
  constraint waiting_list_entries_offer_expires_at_is_finite check (
    offer_expires_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint waiting_list_entries_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint waiting_list_entries_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on constraint waiting_list_entries_offer_expires_at_is_set_with_an_offer on public.waiting_list_entries is
  'An offer needs a deadline. Move it, or cancel the entry.';
comment on table public.waiting_list_entries is 'People waiting for a place of a sold-out ticket type, in the order of their ids. Set status to cancelled to remove one.';
comment on column public.waiting_list_entries.name is 'Name of the person.';
comment on column public.waiting_list_entries.email is 'Address the offer is sent to.';
comment on column public.waiting_list_entries.company is 'Company of the person: one line of up to 200 characters.';
comment on column public.waiting_list_entries.status is 'waiting, offered, accepted, expired or cancelled.';
comment on column public.waiting_list_entries.ticket_type_id is 'The ticket type the person is waiting for.';
comment on column public.waiting_list_entries.offered_at is 'When a place was offered. Kept by Usher.';
comment on column public.waiting_list_entries.offer_expires_at is 'Deadline of the offer. Can be moved while it is open.';
comment on column public.waiting_list_entries.send_email is 'Whether the offer, and later the ticket, is e-mailed.';
comment on column public.waiting_list_entries.external_id is 'Your own identifier, up to 255 characters, unique within the organisation.';
comment on column public.waiting_list_entries.metadata is 'Your own flat JSON object, at most 50 keys.';
comment on column public.waiting_list_entries.id is 'Identifier: a version 7 UUID, which contains the time of joining and so the order of the list.';
comment on column public.waiting_list_entries.version is 'Number of edits. Kept by Usher.';
comment on column public.waiting_list_entries.email_lower is 'Internal: the address in lower case, for look-ups. Generated.';

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

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('waiting_list_entries', 'name', '"Erased"', 'name'),
  ('waiting_list_entries', 'email', '"erased@erased.invalid"', 'email'),
  ('waiting_list_entries', 'company', 'null', 'company'),
  ('waiting_list_entries', 'external_id', 'null', 'external_id'),
  ('waiting_list_entries', 'metadata', '{}', 'metadata');

alter table public.attendees add constraint attendees_waiting_list_entry_id_fkey
  foreign key (waiting_list_entry_id) references public.waiting_list_entries (id);
alter table public.emails add constraint emails_waiting_list_entry_id_fkey
  foreign key (waiting_list_entry_id) references public.waiting_list_entries (id) on delete cascade;
create unique index attendees_waiting_list_entry_id_key on public.attendees (waiting_list_entry_id)
  where waiting_list_entry_id is not null;

-- Security definer: it reads events and ticket types beyond what a registering key may see.
create function private.tg_waiting_list_entries__join() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events := private.lock_own_event_shared(new.event_id);
  v_ticket_type public.ticket_types;
begin
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
      409, 'quantity_not_allowed', 'The waiting list is for single tickets, and this type needs more in each order.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', v_ticket_type.id, 'min_per_order', v_ticket_type.min_per_order), "row" => to_jsonb(new)
    );
  -- There is no place left, and nobody else is giving one back at this moment.
  elsif (
    v_ticket_type.quantity_sold + v_ticket_type.quantity_held >= v_ticket_type.quantity
    or private.places_taken(v_event.id) >= v_event.capacity
  ) is not true then
    perform private.refuse(
      409, 'not_sold_out', 'Tickets of this type are still available.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', v_ticket_type.id), 'Register the person instead.'
    );
  end if;
  -- Made under the locks: the order of ids is that of joining.
  new.id := private.uuid_v7();
  return new;
end
$$;

create function private.tg_waiting_list_entries__refuse_transition() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'invalid_transition', 'A waiting-list entry cannot change from its current status to this one.', 'status',
    jsonb_build_object('from', old.status, 'to', new.status),
    'Allowed: waiting or offered to cancelled; offered to expired after its deadline. Usher makes the offers.', "row" => to_jsonb(new)
  );
end
$$;

-- Before the unique indexes, whose errors would make two of these wait for one another.
create function private.tg_waiting_list_entries__assert_free() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.status in ('waiting', 'offered') then
    perform private.refuse_taken('email', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.ticket_type_id = new.ticket_type_id and w.email_lower = lower(new.email) and w.status in ('waiting', 'offered')
      and w.id <> new.id;
  end if;
  perform private.refuse_taken('external_id', w.id, w.created_at, w.xmin)
  from public.waiting_list_entries w
  where w.organisation_id = new.organisation_id and w.external_id = new.external_id and w.id <> new.id;
  return new;
end
$$;

select private.keep_table('public.waiting_list_entries', filled => '{organisation_id}',
  fixed => '{organisation_id,event_id,ticket_type_id}', versioned => true, contact => true,
  in_use => array['The entry is in use: an attendee accepted its offer.', 'Erase or cancel the attendee instead.', 'attendees.waiting_list_entry_id']);
create trigger waiting_list_entries_100_over before delete on public.waiting_list_entries
  for each row when (old.status in ('waiting', 'offered') and not private.is_deleted_wholly(old.organisation_id))
  execute function private.tg__refuse(409, 'in_use', 'This person is still on the waiting list.', 'Set status to cancelled first.');
create trigger waiting_list_entries_100_join before insert on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__join();
create trigger waiting_list_entries_110_transition before update of status on public.waiting_list_entries
  for each row when (new.status <> old.status and (
    (old.status, new.status) not in (
      ('waiting', 'cancelled'), ('waiting', 'offered'), ('offered', 'cancelled'), ('offered', 'accepted'), ('offered', 'expired')
    )
    or new.status = 'expired' and new.offer_expires_at > now()
    -- Triggers offer and accept.
    or new.status in ('offered', 'accepted') and private.is_typed()
  ))
  execute function private.tg_waiting_list_entries__refuse_transition();
create trigger waiting_list_entries_120_deadline before update of offer_expires_at on public.waiting_list_entries
  for each row when (
    new.offer_expires_at is distinct from old.offer_expires_at
    and (old.status, new.status) not in (('waiting', 'offered'), ('offered', 'offered'))
  )
  execute function private.tg__refuse(
    409, 'read_only_field', 'Only the deadline of an open offer can be moved.', 'Leave it as it is.', 'offer_expires_at'
  );
create trigger waiting_list_entries_130_free before insert or update of email, external_id on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__assert_free();

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

-- position counts those of the same ticket type who wait, from 1.
create function private.waiting_list_entry_json(entry public.waiting_list_entries) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee_id uuid;
  v_order_id uuid;
begin
  if entry.status = 'accepted' then
    select a.id, a.order_id into v_attendee_id, v_order_id from public.attendees a where a.waiting_list_entry_id = entry.id;
  end if;
  return json_build_object(
    'object', 'waiting_list_entry',
    'id', entry.id,
    'event_id', entry.event_id,
    'ticket_type_id', entry.ticket_type_id,
    'ticket_type', json_build_object(
      'id', entry.ticket_type_id, 'name', (select t.name from public.ticket_types t where t.id = entry.ticket_type_id)
    ),
    'name', entry.name,
    'email', entry.email,
    'company', entry.company,
    'status', entry.status,
    'position', case when entry.status = 'waiting' then (
      select count(*)
      from public.waiting_list_entries w
      where w.ticket_type_id = entry.ticket_type_id and w.status = 'waiting' and w.id <= entry.id
    ) end,
    'offered_at', private.rfc3339(entry.offered_at),
    'offer_expires_at', private.rfc3339(entry.offer_expires_at),
    'order_id', v_order_id,
    'attendee_id', v_attendee_id,
    'external_id', entry.external_id,
    'metadata', entry.metadata,
    'version', entry.version,
    'created_at', private.rfc3339(entry.created_at),
    'updated_at', private.rfc3339(entry.updated_at)
  );
end
$$;
grant execute on function private.waiting_list_entry_json to scope_attendees_read, scope_attendees_write;
