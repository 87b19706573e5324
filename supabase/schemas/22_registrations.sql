-- Registration: one order with its attendees, either complimentary and completed at once, or payable and pending until paid.
-- The rules (event published, places left, sale open, promo code valid) are in the triggers of orders and attendees, so that a
-- row added in Studio meets the same ones.

-- Locks the external_ids of a registration in one global order: two groups that name the same ones crosswise would otherwise
-- each wait for an index entry of the other. Taken before every other lock of a registration, so that the second finds what the
-- first has added.
create function private.lock_external_ids(organisation_id uuid, order_external_id text, guests jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_external_id record;
begin
  for v_external_id in
    select hashtext(concat_ws(' ', organisation_id, i.kind, i.external_id)) as key, count(*) as times
    from (
      select 'order' as kind, order_external_id as external_id
      union all
      select 'attendee', g.guest ->> 'external_id' from jsonb_array_elements(guests) g (guest)
    ) i
    where i.external_id is not null
    group by i.kind, i.external_id
    order by 1
  loop
    if v_external_id.times > 1 then
      perform private.refuse(
        409, 'already_exists', 'Two attendees of the group have the same external_id.', 'external_id', hint => 'Send each external_id once.'
      );
    end if;
    perform pg_advisory_xact_lock(6, v_external_id.key);
  end loop;
end
$$;
grant execute on function private.lock_external_ids(uuid, text, jsonb) to scope_attendees_write;

-- One guest, given by the top-level fields, or up to 50 in `attendees`, all or none: [{ ticket_type_id, name, email, company,
-- external_id, metadata }]. A guest of a group without ticket_type_id gets the top-level one. Top-level name, e-mail address
-- and company are the buyer's; without them the first guest is the buyer.
create function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_organisation_id uuid;
  v_foreign record;
  v_order public.orders;
  v_attendees json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group has 1 to 50 attendees.', 'attendees');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  select g.place - 1 as index, g.guest ? 'ticket_type_id' as names_its_own into v_foreign
  from jsonb_array_elements(v_guests) with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce((g.guest ->> 'ticket_type_id')::uuid, register_attendee.ticket_type_id)
      and t.event_id = register_attendee.event_id
  )
  limit 1;
  if found then
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  if external_id is not null or attendees is not null then
    perform private.lock_external_ids(v_organisation_id, external_id, v_guests);
  end if;

  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    v_organisation_id,
    register_attendee.event_id,
    coalesce(register_attendee.name, v_guests #>> '{0,name}'),
    coalesce(register_attendee.email, v_guests #>> '{0,email}'),
    case
      when coalesce(register_attendee.name, register_attendee.email, register_attendee.company) is null
        then v_guests #>> '{0,company}'
      else register_attendee.company
    end,
    coalesce(register_attendee.send_email, true),
    register_attendee.payment_method,
    register_attendee.promo_code,
    register_attendee.external_id,
    coalesce(register_attendee.metadata, '{}')
  )
  returning * into v_order;

  insert into public.attendees (
    organisation_id, event_id, order_id, ticket_type_id, name, email, company, external_id, metadata
  )
  select
    v_organisation_id, v_order.event_id, v_order.id, coalesce(g.ticket_type_id, register_attendee.ticket_type_id),
    g.name, g.email, g.company, g.external_id, coalesce(g.metadata, '{}')
  from jsonb_to_recordset(v_guests) g (
    ticket_type_id uuid, name text, email text, company text, external_id text, metadata jsonb
  );

  -- The triggers of attendees have set the totals of the order, and with them its status.
  if v_order.payment_method is not null then
    select o.* into v_order from public.orders o where o.id = v_order.id;
  end if;
  select json_agg(private.attendee_json(a) order by a.id) into v_attendees
  from public.attendees a
  where a.order_id = v_order.id;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 201, 'data', private.order_json(v_order, v_attendees, '[]'))
  );
end
$$;
comment on function api.register_attendee(uuid, uuid, text, text, text, jsonb, public.payment_method, text, boolean, text, jsonb, text, text) is
  'Registers a guest, or a group of up to 50: 201 with the order and its attendees, complimentary unless payment_method is given. 404 not_found; 409 event_not_published, event_ended, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';
grant execute on function api.register_attendee(uuid, uuid, text, text, text, jsonb, public.payment_method, text, boolean, text, jsonb, text, text)
  to scope_attendees_write;
