-- Ticket types: what can be had for an event, at which price, how often.

create type public.ticket_type_status as enum ('active', 'archived');
create type public.ticket_type_visibility as enum ('public', 'hidden');

create table public.ticket_types (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  name text not null,
  description text,
  price bigint not null default 0,
  quantity integer,
  quantity_sold integer not null default 0,
  min_per_order integer not null default 1,
  max_per_order integer,
  sales_start_at timestamptz,
  sales_end_at timestamptz,
  visibility public.ticket_type_visibility not null default 'public',
  status public.ticket_type_status not null default 'active',
  position integer not null default 0,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint ticket_types_pkey primary key (id),
  constraint ticket_types_id_event_id_key unique (id, event_id),
  constraint ticket_types_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint ticket_types_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint ticket_types_description_is_bounded check (length(description) <= 20000),
  constraint ticket_types_price_is_bounded check (price between 0 and 100000000000),
  constraint ticket_types_quantity_is_not_negative check (quantity >= 0),
  constraint ticket_types_quantity_sold_is_not_negative check (quantity_sold >= 0),
  constraint ticket_types_are_not_oversold check (quantity_sold <= quantity),
  constraint ticket_types_max_per_order_is_at_least_min_per_order check (min_per_order >= 1 and max_per_order >= min_per_order),
  constraint ticket_types_sales_start_at_and_sales_end_at_are_finite check (
    sales_start_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and sales_end_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint ticket_types_sales_end_at_is_after_sales_start_at check (sales_end_at > sales_start_at),
  constraint ticket_types_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint ticket_types_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.ticket_types is 'Kinds of ticket of an event. Archive one to stop it being issued; tickets already issued stay good.';
comment on column public.ticket_types.price is 'In minor units (cents) of the event''s currency. 0 is free.';
comment on column public.ticket_types.quantity is 'How many there are. Empty: no limit. Cannot be set below quantity_sold.';
comment on column public.ticket_types.quantity_sold is 'Tickets that hold a place. Counted from the attendees, not edited.';
comment on column public.ticket_types.min_per_order is 'How many of them an order that has any must have at least.';
comment on column public.ticket_types.max_per_order is 'How many of them an order may have. Empty: no limit.';
comment on column public.ticket_types.position is 'Where it stands in the list of the event''s ticket types, from 0.';

create unique index ticket_types_organisation_id_external_id_key on public.ticket_types (organisation_id, external_id)
  where external_id is not null;
create index ticket_types_event_id_idx on public.ticket_types (event_id, position, id);

-- Rows below an event belong to the event's organisation; whoever adds one need not say so.
create function private.tg__inherit_organisation() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.organisation_id is null then
    select e.organisation_id into new.organisation_id from public.events e where e.id = new.event_id;
  end if;
  return new;
end
$$;

create function private.tg_ticket_types__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Depth 1 is a statement of a person or an API; the count itself comes from the trigger on attendees, one deeper.
  if pg_trigger_depth() = 1
    and new.quantity_sold is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_sold end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_sold is counted from the attendees and cannot be edited.', 'quantity_sold',
      hint => 'Add or cancel attendees instead.'
    );
  end if;
  if tg_op = 'UPDATE' and new.quantity is distinct from old.quantity and new.quantity >= 0 and new.quantity < new.quantity_sold then
    perform private.refuse(
      409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued.', 'quantity',
      jsonb_build_object('quantity_sold', new.quantity_sold)
    );
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else new.external_id is distinct from old.external_id end) then
    perform private.refuse_taken('external_id', t.id, t.created_at)
    from public.ticket_types t
    where t.organisation_id = new.organisation_id and t.external_id = new.external_id and t.id <> new.id;
  end if;
  return new;
end
$$;
create trigger ticket_types_050_derived before update of version, created_at, updated_at on public.ticket_types
  for each row execute function private.tg__assert_derived_untouched('Leave it as it is.', 'version', 'created_at', 'updated_at');
create trigger ticket_types_100_in_use before delete on public.ticket_types
  for each row execute function private.tg__assert_not_in_use(
    'The ticket type is in use: there are attendees with it.', 'Archive it instead: set its status to archived.',
    'attendees.ticket_type_id'
  );
create trigger ticket_types_050_organisation before insert on public.ticket_types
  for each row execute function private.tg__inherit_organisation();
create trigger ticket_types_050_fixed before update of organisation_id, event_id on public.ticket_types
  for each row execute function private.tg__assert_unchanged('organisation_id', 'event_id');
create trigger ticket_types_100_guard before insert or update on public.ticket_types
  for each row execute function private.tg_ticket_types__guard();
create trigger ticket_types_300_name before insert or update of name on public.ticket_types
  for each row execute function private.tg__assert_name();
create trigger ticket_types_300_price before insert or update of price on public.ticket_types
  for each row when (new.price not between 0 and 100000000000)
  execute function private.tg__refuse_value(
    'price', 'A price is from 0 to 100000000000.', 'It is in minor units: 4900 is 49.00. 0 is free.'
  );
create trigger ticket_types_300_quantity before insert or update of quantity on public.ticket_types
  for each row when (new.quantity < 0)
  execute function private.tg__refuse_value('quantity', 'A quantity is at least 0.', 'Leave it empty for no limit.');
create trigger ticket_types_300_per_order before insert or update of min_per_order, max_per_order on public.ticket_types
  for each row when (new.min_per_order < 1 or new.max_per_order < new.min_per_order)
  execute function private.tg__refuse_value(
    'max_per_order', 'An order has from min_per_order, which is at least 1, to max_per_order tickets of a type.',
    'Leave max_per_order empty for no limit.'
  );
create trigger ticket_types_300_sales_end_at before insert or update of sales_start_at, sales_end_at on public.ticket_types
  for each row when (new.sales_end_at <= new.sales_start_at)
  execute function private.tg__refuse_value(
    'sales_end_at', 'A sale ends after it starts.', 'Change sales_start_at and sales_end_at together.'
  );
create trigger ticket_types_900_updated_at before update on public.ticket_types
  for each row execute function private.tg__set_updated_at();
-- Not for quantity_sold: an organiser's edit must not fail because somebody bought a ticket meanwhile.
create trigger ticket_types_900_version before update of
    name, description, price, quantity, min_per_order, max_per_order, sales_start_at, sales_end_at,
    visibility, status, position, external_id, metadata
  on public.ticket_types
  for each row execute function private.tg__count_version();

-- How many people hold a ticket of the event. Volatile, so that it sees what was committed before its caller got the event lock.
create function private.places_taken(event_id uuid) returns bigint
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select coalesce(sum(t.quantity_sold), 0) from public.ticket_types t where t.event_id = places_taken.event_id
  );
end
$$;

revoke all on public.ticket_types from anon, authenticated, service_role;

alter table public.ticket_types enable row level security;
create policy ticket_types_select_own on public.ticket_types for select
  to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_insert_own on public.ticket_types for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_update_own on public.ticket_types for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy ticket_types_select_membership on public.ticket_types for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy ticket_types_insert_membership on public.ticket_types for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
create policy ticket_types_update_membership on public.ticket_types for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.ticket_types to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id, event_id) on public.ticket_types to scope_attendees_write;
grant select (id, organisation_id, name) on public.ticket_types to scope_checkin_write, scope_attendees_read;
grant insert (
  organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;
grant update (
  name, description, price, quantity, min_per_order, max_per_order, sales_start_at,
  sales_end_at, visibility, status, position, external_id, metadata
) on public.ticket_types to scope_events_write, authenticated;

-- places_left: what the event's own capacity still allows, or null.
create function private.ticket_type_json(ticket_type public.ticket_types, currency text, places_left bigint)
returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'ticket_type',
      'id', ticket_type.id,
      'event_id', ticket_type.event_id,
      'name', ticket_type.name,
      'description', ticket_type.description,
      'price', ticket_type.price,
      'currency', currency,
      'quantity', ticket_type.quantity,
      'quantity_sold', ticket_type.quantity_sold,
      'quantity_available', a.available,
      'min_per_order', ticket_type.min_per_order,
      'max_per_order', ticket_type.max_per_order,
      'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
      'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
      'visibility', ticket_type.visibility,
      'status', ticket_type.status,
      'sales_status', case
        when ticket_type.status = 'archived' then 'archived'
        when now() >= (select e.ends_at from public.events e where e.id = ticket_type.event_id) then 'ended'
        when now() < ticket_type.sales_start_at then 'upcoming'
        when now() >= ticket_type.sales_end_at then 'ended'
        when a.available = 0 then 'sold_out'
        else 'on_sale'
      end,
      'position', ticket_type.position,
      'external_id', ticket_type.external_id,
      'metadata', ticket_type.metadata,
      'version', ticket_type.version,
      'created_at', private.rfc3339(ticket_type.created_at),
      'updated_at', private.rfc3339(ticket_type.updated_at)
    )
    from (
      -- The lesser of what there is; null, which least passes over, is no limit. greatest would pass it over, too.
      select least(
        ticket_type.quantity - ticket_type.quantity_sold,
        case when places_left < 0 then 0 else places_left end
      ) as available
    ) a
  );
end
$$;
grant execute on function private.ticket_type_json(public.ticket_types, text, bigint) to scope_events_read, scope_events_write;

-- One ticket type with what it takes from its event.
create function private.ticket_type_json(ticket_type public.ticket_types) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.ticket_type_json(
      ticket_type,
      e.currency,
      e.capacity - (select coalesce(sum(t.quantity_sold), 0) from public.ticket_types t where t.event_id = e.id)
    )
    from public.events e
    where e.id = ticket_type.event_id
  );
end
$$;
grant execute on function private.ticket_type_json(public.ticket_types) to scope_events_read, scope_events_write;

-- In the organiser's order. A cursor is the id of the last one, and stands for wherever that is now. A hundred when no limit is
-- given: an event has a handful, and whoever asks for no page gets them all.
create function api.list_ticket_types(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size(coalesce("limit", 100));
  v_last_id uuid := private.decode_cursor(cursor);
  v_last public.ticket_types;
  v_event public.events;
  v_places_left bigint;
  v_bytes integer := private.page_bytes();
  v_ticket_type public.ticket_types;
  v_item json;
  v_items json[];
begin
  select e.* into v_event from public.events e where e.id = list_ticket_types.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  if v_last_id is not null then
    select t.* into v_last from public.ticket_types t where t.id = v_last_id and t.event_id = v_event.id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such ticket type of the event any more.', 'cursor', hint => 'Leave it out to start again.'
      );
    end if;
  end if;

  select v_event.capacity - coalesce(sum(t.quantity_sold), 0) into v_places_left
  from public.ticket_types t
  where t.event_id = v_event.id;

  for v_ticket_type in
    select t.*
    from public.ticket_types t
    where t.event_id = v_event.id
      and (v_last_id is null or (t.position, t.id) > (v_last.position, v_last.id))
    order by t.position, t.id
    limit v_size + 1
  loop
    v_item := private.ticket_type_json(v_ticket_type, v_event.currency, v_places_left);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_ticket_types(uuid, text, integer) is
  'Ticket types of an event in the organiser''s order: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_ticket_types(uuid, text, integer) to scope_events_read;

create function api.get_ticket_type(ticket_type_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  select t.* into v_ticket_type from public.ticket_types t where t.id = get_ticket_type.ticket_type_id;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  return private.ticket_type_json(v_ticket_type);
end
$$;
comment on function api.get_ticket_type(uuid) is 'One ticket type. 404 not_found.';
grant execute on function api.get_ticket_type(uuid) to scope_events_read;

create function api.create_ticket_type(
  event_id uuid,
  name text,
  description text default null,
  price bigint default null,
  quantity integer default null,
  min_per_order integer default null,
  max_per_order integer default null,
  sales_start_at timestamptz default null,
  sales_end_at timestamptz default null,
  visibility public.ticket_type_visibility default null,
  "position" integer default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_ticket_type public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_ticket_type.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.ticket_types (
    organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order,
    sales_start_at, sales_end_at, visibility, position, external_id, metadata
  )
  values (
    v_organisation_id, create_ticket_type.event_id, create_ticket_type.name, create_ticket_type.description,
    coalesce(create_ticket_type.price, 0), create_ticket_type.quantity,
    coalesce(create_ticket_type.min_per_order, 1), create_ticket_type.max_per_order,
    create_ticket_type.sales_start_at, create_ticket_type.sales_end_at,
    coalesce(create_ticket_type.visibility, 'public'), coalesce(create_ticket_type.position, 0),
    create_ticket_type.external_id, coalesce(create_ticket_type.metadata, '{}')
  )
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 201, 'data', private.ticket_type_json(v_ticket_type))
  );
end
$$;
comment on function api.create_ticket_type(uuid, text, text, bigint, integer, integer, integer, timestamptz, timestamptz, public.ticket_type_visibility, integer, text, jsonb, text, text) is
  'Adds a ticket type to an event: 201. 404 not_found; 409 already_exists (external_id); 422 validation_failed.';
grant execute on function api.create_ticket_type(uuid, text, text, bigint, integer, integer, integer, timestamptz, timestamptz, public.ticket_type_visibility, integer, text, jsonb, text, text)
  to scope_events_write;

create function api.update_ticket_type(
  ticket_type_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_ticket_type public.ticket_types;
  v_new public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select t.* into v_ticket_type from public.ticket_types t where t.id = update_ticket_type.ticket_type_id for no key update;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.assert_version(v_ticket_type.version, if_version);

  v_new := jsonb_populate_record(v_ticket_type, changes);
  update public.ticket_types t set
    name = v_new.name,
    description = v_new.description,
    price = v_new.price,
    quantity = v_new.quantity,
    min_per_order = v_new.min_per_order,
    max_per_order = v_new.max_per_order,
    sales_start_at = v_new.sales_start_at,
    sales_end_at = v_new.sales_end_at,
    visibility = v_new.visibility,
    status = v_new.status,
    position = v_new.position,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where t.id = v_ticket_type.id
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.ticket_type_json(v_ticket_type))
  );
end
$$;
comment on function api.update_ticket_type(uuid, jsonb, integer[], text, text) is
  'Changes fields of a ticket type (status archived stops it being issued): 200. 404 not_found; 409 quantity_below_sold, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_ticket_type(uuid, jsonb, integer[], text, text) to scope_events_write;
