-- Ticket types: what an event offers, at which price, how many, and when. Never oversold.

create type public.ticket_type_status as enum ('active', 'archived');
create type public.ticket_type_visibility as enum ('public', 'hidden');

create table public.ticket_types (
  name text not null,
  event_id uuid not null,
  price bigint not null default 0,
  quantity integer,
  quantity_sold integer not null default 0,
  quantity_held integer not null default 0,
  status public.ticket_type_status not null default 'active',
  visibility public.ticket_type_visibility not null default 'public',
  sales_start_at timestamptz,
  sales_end_at timestamptz,
  min_per_order integer not null default 1,
  max_per_order integer,
  description text,
  position integer not null default 0,
  external_id text,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  constraint ticket_types_pkey primary key (id),
  constraint ticket_types_id_event_id_key unique (id, event_id),
  constraint ticket_types_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint ticket_types_name_is_one_line check (private.is_one_line(name, 200)),
  constraint ticket_types_description_is_bounded check (length(description) <= 20000),
  constraint ticket_types_price_is_bounded check (price between 0 and 100000000000),
  constraint ticket_types_quantity_is_not_negative check (quantity >= 0),
  constraint ticket_types_quantity_sold_and_held_fit check (
    quantity_sold >= 0 and quantity_held >= 0 and quantity_sold + quantity_held <= quantity
  ),
  constraint ticket_types_max_per_order_is_from_min_per_order check (min_per_order >= 1 and max_per_order >= min_per_order),
  constraint ticket_types_sales_end_at_is_after_sales_start_at check (sales_end_at > sales_start_at),
  constraint ticket_types_sales_start_at_and_sales_end_at_are_finite check (
    sales_start_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and sales_end_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint ticket_types_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint ticket_types_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on constraint ticket_types_name_is_one_line on public.ticket_types is
  'A name is one line of 1 to 200 characters. Write at least one letter, and no line breaks.';
comment on constraint ticket_types_price_is_bounded on public.ticket_types is
  'A price must be from 0 to 100000000000. It is in minor units: 4900 is 49.00. 0 is free.';
comment on constraint ticket_types_quantity_is_not_negative on public.ticket_types is
  'A quantity must be at least 0. Leave it empty for no limit.';
comment on constraint ticket_types_max_per_order_is_from_min_per_order on public.ticket_types is
  'An order must allow at least 1 ticket of a type, and max_per_order must not be below min_per_order. Leave max_per_order empty for no limit.';
comment on constraint ticket_types_sales_end_at_is_after_sales_start_at on public.ticket_types is
  'Sales must end after they start. Change sales_start_at and sales_end_at together.';
comment on constraint ticket_types_external_id_is_bounded on public.ticket_types is 'external_id has 1 to 255 characters.';
comment on constraint ticket_types_metadata_is_flat on public.ticket_types is
  'Metadata is a flat object of at most 50 keys. Its values are text, numbers that are kept exactly, true, false or null.';
comment on table public.ticket_types is 'Kinds of ticket of an event. Archive one to stop its sale; issued tickets stay valid.';
comment on column public.ticket_types.name is 'Name for people.';
comment on column public.ticket_types.price is 'In minor units (cents) of the event''s currency: 49.90 is 4990. 0 is free.';
comment on column public.ticket_types.quantity is 'Maximum number of tickets. Empty: no limit. Cannot be below quantity_sold plus quantity_held.';
comment on column public.ticket_types.quantity_sold is 'Tickets that take a place. Counted from the attendees, not edited.';
comment on column public.ticket_types.quantity_held is 'Places held for waiting-list offers. Counted by Usher, not edited.';
comment on column public.ticket_types.status is 'active or archived. An archived type is no longer issued.';
comment on column public.ticket_types.visibility is 'public or hidden: whether a shop should show it.';
comment on column public.ticket_types.sales_start_at is 'Start of sales. Empty: when the event is published.';
comment on column public.ticket_types.sales_end_at is 'End of sales. Empty: the end of the event.';
comment on column public.ticket_types.min_per_order is 'Minimum number of tickets of this type in an order with any.';
comment on column public.ticket_types.max_per_order is 'Maximum number of tickets of this type in an order. Empty: no limit.';
comment on column public.ticket_types.description is 'Text for people, up to 20000 characters.';
comment on column public.ticket_types.position is 'Its position in the list of the event''s ticket types, from 0.';
comment on column public.ticket_types.external_id is 'Your own identifier, unique within the organisation.';
comment on column public.ticket_types.metadata is 'Your own flat JSON object, at most 50 keys.';

create unique index ticket_types_organisation_id_external_id_key on public.ticket_types (organisation_id, external_id)
  where external_id is not null;
create index ticket_types_event_id_idx on public.ticket_types (event_id, position, id);

-- An organiser's edit must not fail because a ticket was issued meanwhile: the counters are not versioned.
select private.keep_table('public.ticket_types', filled => '{organisation_id}', fixed => '{organisation_id,event_id}',
  sums => '{
    "quantity_sold": "quantity_sold is counted from the attendees and cannot be edited. Add or cancel attendees instead.",
    "quantity_held": "quantity_held is counted from the offers of the waiting list and cannot be edited. Cancel entries of the waiting list instead."
  }', versioned => true, uncounted => '{quantity_sold,quantity_held}', not_taken => '{external_id}', of_event => true,
  in_use => array[
    'The ticket type is in use: it has attendees, or people on its waiting list.',
    'Archive it instead: set its status to archived.',
    'attendees.ticket_type_id', 'waiting_list_entries.ticket_type_id'
  ]);

create policy ticket_types_select_own on public.ticket_types for select
  to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_insert_own on public.ticket_types for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_update_own on public.ticket_types for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_select_membership on public.ticket_types for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy ticket_types_insert_membership on public.ticket_types for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy ticket_types_update_membership on public.ticket_types for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.ticket_types to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id, event_id, name) on public.ticket_types to scope_attendees_write;
grant select (id, organisation_id, name) on public.ticket_types to scope_checkin_write, scope_attendees_read;
grant insert (
  organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;
grant update (
  name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;

-- How many can still be issued; null: no limit. places_left: what the event's own capacity still allows, null without one.
create function private.quantity_available(ticket_type public.ticket_types, places_left bigint) returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  -- Null is no limit, and least() ignores it. So would greatest(places_left, 0), and turn no limit into 0.
  return least(
    ticket_type.quantity - ticket_type.quantity_sold - ticket_type.quantity_held,
    case when places_left < 0 then 0 else places_left end
  );
end
$$;
grant execute on function private.quantity_available to scope_events_read, scope_events_write, authenticated;

-- A caller that has read the event gives it, and the places that it has left, as private.quantity_available takes them.
create function private.ticket_type_json(
  ticket_type public.ticket_types, event public.events default null, places_left bigint default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_available integer;
begin
  if event is null then
    select e.* into event from public.events e where e.id = ticket_type.event_id;
    select event.capacity - coalesce(sum(t.quantity_sold + t.quantity_held), 0) into places_left
    from public.ticket_types t
    where t.event_id = event.id;
  end if;
  v_available := private.quantity_available(ticket_type, places_left);
  return json_build_object(
    'object', 'ticket_type',
    'id', ticket_type.id,
    'event_id', ticket_type.event_id,
    'name', ticket_type.name,
    'description', ticket_type.description,
    'price', ticket_type.price,
    'currency', event.currency,
    'quantity', ticket_type.quantity,
    'quantity_sold', ticket_type.quantity_sold,
    'quantity_held', ticket_type.quantity_held,
    'quantity_available', v_available,
    'min_per_order', ticket_type.min_per_order,
    'max_per_order', ticket_type.max_per_order,
    'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
    'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
    'visibility', ticket_type.visibility,
    'status', ticket_type.status,
    'sales_status', case
      when ticket_type.status = 'archived' then 'archived'
      when now() >= event.ends_at then 'ended'
      when now() < ticket_type.sales_start_at then 'upcoming'
      when now() >= ticket_type.sales_end_at then 'ended'
      when v_available = 0 then 'sold_out'
      else 'on_sale'
    end,
    'position', ticket_type.position,
    'external_id', ticket_type.external_id,
    'metadata', ticket_type.metadata,
    'version', ticket_type.version,
    'created_at', private.rfc3339(ticket_type.created_at),
    'updated_at', private.rfc3339(ticket_type.updated_at)
  );
end
$$;
grant execute on function private.ticket_type_json to scope_events_read, scope_events_write;
