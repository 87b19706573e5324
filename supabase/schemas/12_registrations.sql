-- Registering a guest: one complimentary order with one attendee, completed at once. Everything that must hold (event
-- published, places left, sale open) is held by the triggers of orders and attendees, so that a row added in Studio meets
-- the same rules.

create function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text default null,
  send_email boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_order public.orders;
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  if not exists (
    select from public.ticket_types t
    where t.id = register_attendee.ticket_type_id and t.event_id = register_attendee.event_id
  ) then
    perform private.refuse_not_found('ticket_type_id');
  end if;

  insert into public.orders (organisation_id, event_id, name, email, company, send_email)
  values (
    v_organisation_id, register_attendee.event_id, register_attendee.name, register_attendee.email,
    register_attendee.company, coalesce(register_attendee.send_email, true)
  )
  returning * into v_order;

  insert into public.attendees (organisation_id, event_id, order_id, ticket_type_id, name, email, company)
  values (
    v_organisation_id, v_order.event_id, v_order.id, register_attendee.ticket_type_id,
    v_order.name, v_order.email, v_order.company
  )
  returning * into v_attendee;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object(
      'status', 201,
      'data', private.order_json(v_order, json_build_array(private.attendee_json(v_attendee)), '[]')
    )
  );
end
$$;
comment on function api.register_attendee(uuid, uuid, text, text, text, boolean, text, text) is
  'Issues a complimentary ticket: 201 with the order and its attendee. 404 not_found; 409 event_not_published, sold_out, ticket_type_archived, sales_not_started, sales_ended; 422 idempotency_key_reused.';
grant execute on function api.register_attendee(uuid, uuid, text, text, text, boolean, text, text)
  to scope_attendees_write;
