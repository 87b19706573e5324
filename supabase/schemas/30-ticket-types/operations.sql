-- Operations on ticket types. The rules are in 30-ticket-types/table.sql and rules.sql, so that they hold for Studio as well.

-- In the organiser's order. A cursor is the id of the last item, and stands for the present position of that item. The
-- default limit is 100: an event has a handful, so a caller that does not page gets all of them.
create function api.list_ticket_types(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size(coalesce("limit", 100));
  v_last_id uuid := private.decode_cursor(cursor);
  v_last public.ticket_types;
  v_event public.events;
  v_places_left bigint;
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
        404, 'not_found', 'The ticket type of this cursor no longer exists.', 'cursor', hint => 'Leave it out to start again.'
      );
    end if;
  end if;

  select v_event.capacity - coalesce(sum(t.quantity_sold + t.quantity_held), 0) into v_places_left
  from public.ticket_types t
  where t.event_id = v_event.id;

  v_items := array(
    select private.ticket_type_json(t, v_event, v_places_left)
    from public.ticket_types t
    where t.event_id = v_event.id
      and (v_last_id is null or (t.position, t.id) > (v_last.position, v_last.id))
    order by t.position, t.id
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_ticket_types is
  'Ticket types of an event in the organiser''s order: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_ticket_types to scope_events_read;

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
comment on function api.get_ticket_type is 'One ticket type. 404 not_found.';
grant execute on function api.get_ticket_type to scope_events_read;

create function api.create_ticket_type(
  event_id uuid,
  name text,
  description text default null,
  price bigint default null,
  quantity integer default null,
  min_per_order integer default null,
  max_per_order integer default null,
  -- As written: see private.warning_of_offset.
  sales_start_at text default null,
  sales_end_at text default null,
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
    create_ticket_type.sales_start_at::timestamptz, create_ticket_type.sales_end_at::timestamptz,
    coalesce(create_ticket_type.visibility, 'public'), coalesce(create_ticket_type.position, 0),
    create_ticket_type.external_id, coalesce(create_ticket_type.metadata, '{}')
  )
  returning * into v_ticket_type;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 201, 'data', private.ticket_type_json(v_ticket_type)),
    private.warning_of_price(v_ticket_type),
    private.warning_of_offset(jsonb_build_object('sales_start_at', sales_start_at, 'sales_end_at', sales_end_at), v_ticket_type.event_id)
  ));
end
$$;
comment on function api.create_ticket_type is
  'Adds a ticket type to an event: 201. 404 not_found; 409 already_exists (external_id); 422 validation_failed.';
grant execute on function api.create_ticket_type to scope_events_write;

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

  -- More places are offered to the waiting list, for which the capacity lock comes before the ticket type.
  if changes ?| '{quantity,status,sales_end_at}' then
    perform private.lock_event_capacity(t.event_id) from public.ticket_types t where t.id = update_ticket_type.ticket_type_id;
  end if;
  select t.* into v_ticket_type from public.ticket_types t where t.id = update_ticket_type.ticket_type_id for no key update;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.assert_version(v_ticket_type.version, if_version);

  v_new := jsonb_populate_record(v_ticket_type, private.with_merged_metadata(changes, v_ticket_type.metadata));
  update public.ticket_types t set
    (
      name, description, price, quantity, min_per_order, max_per_order, sales_start_at, sales_end_at, visibility, status, position,
      external_id, metadata
    ) = (
      v_new.name, v_new.description, v_new.price, v_new.quantity, v_new.min_per_order, v_new.max_per_order, v_new.sales_start_at,
      v_new.sales_end_at, v_new.visibility, v_new.status, v_new.position, v_new.external_id, v_new.metadata
    )
  where t.id = v_ticket_type.id
  returning * into v_ticket_type;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 200, 'data', private.ticket_type_json(v_ticket_type)),
    case when changes ? 'price' then private.warning_of_price(v_ticket_type) end,
    private.warning_of_offset(changes, v_ticket_type.event_id)
  ));
end
$$;
comment on function api.update_ticket_type is
  'Changes fields of a ticket type (status archived stops sales): 200. 404 not_found; 409 quantity_below_sold, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_ticket_type to scope_events_write;
