-- Operations on attendees and their tickets. The rules are in the triggers of 17_attendees.sql, so that they hold for Studio
-- as well.

create function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.ticket_email_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  -- Looked up first, so that the list uses the index on order_id.
  v_order_id uuid := (select o.id from public.orders o where o.reference = upper(list_attendees.reference));
  v_bytes integer := private.page_bytes();
  v_attendee public.attendees;
  v_item json;
  v_items json[];
begin
  for v_attendee in
    select a.*
    from public.attendees a
    where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
      and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
      and (list_attendees.reference is null or a.order_id = v_order_id)
      and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
      and (list_attendees.status is null or a.status = list_attendees.status)
      and (checked_in is null or (a.checked_in_at is not null) = checked_in)
      and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
      and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
      and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
      and (updated_since is null or a.updated_at >= updated_since)
      and (v_before is null or a.id < v_before)
    order by a.id desc
    limit v_size + 1
  loop
    v_item := private.attendee_json(v_attendee);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_attendees(
  uuid, uuid, uuid, public.attendee_status, boolean, public.ticket_email_status, text, text, text, timestamptz, text, integer
) is
  'Attendees of the organisation, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_attendees(
  uuid, uuid, uuid, public.attendee_status, boolean, public.ticket_email_status, text, text, text, timestamptz, text, integer
) to scope_attendees_read;

create function api.get_attendee(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_attendee.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.attendee_json(v_attendee);
end
$$;
comment on function api.get_attendee(uuid) is 'One attendee. 404 not_found.';
grant execute on function api.get_attendee(uuid) to scope_attendees_read;

create function api.get_ticket_qr(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_ticket_qr.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  return json_build_object(
    'object', 'ticket_qr',
    'attendee_id', v_attendee.id,
    'event_id', v_attendee.event_id,
    'name', v_attendee.name,
    'ticket_code', v_attendee.ticket_code
  );
end
$$;
comment on function api.get_ticket_qr(uuid) is 'Content of the QR code of a ticket. 404 not_found; 409 ticket_not_active.';
grant execute on function api.get_ticket_qr(uuid) to scope_attendees_read;

create function api.update_attendee(
  attendee_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_new public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.assert_version(v_attendee.version, if_version);

  v_new := jsonb_populate_record(v_attendee, changes);
  update public.attendees a set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    external_id = v_new.external_id,
    metadata = v_new.metadata,
    ticket_code = case when (changes ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  where a.id = v_attendee.id
  returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.update_attendee(uuid, jsonb, integer[], text, text) is
  'Corrects an attendee, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 ticket_not_reissuable, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_attendee(uuid, jsonb, integer[], text, text) to scope_attendees_write;

-- Locks the order before its attendee, as everywhere: cancelling a ticket changes the totals of its order.
-- Security definer: a key for attendees has no right to orders.
create function private.lock_order_of(attendee_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1
  from public.orders o
  where o.organisation_id = private.current_organisation_id()
    and o.id = (select a.order_id from public.attendees a where a.id = lock_order_of.attendee_id)
  for no key update;
end
$$;
grant execute on function private.lock_order_of(uuid) to scope_attendees_write;

create function api.cancel_attendee(
  attendee_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_orders integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    perform private.lock_order_of(attendee_id);
    select a.* into v_attendee from public.attendees a where a.id = cancel_attendee.attendee_id for no key update;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    if v_attendee.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This attendee is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    -- Whether the order changes, too: cancelling its last ticket cancels it, and cancelling one with a price lowers its
    -- totals.
    v_orders := (v_attendee.price > 0 or not exists (
      select from public.attendees a
      where a.order_id = v_attendee.order_id and a.id <> v_attendee.id and a.status <> 'cancelled'
    ))::integer;
    update public.attendees a set status = 'cancelled' where a.id = v_attendee.id returning * into v_attendee;
    v_outcome := json_build_object(
      'status', 200,
      'effect', json_build_object('dry_run', coalesce(dry_run, false), 'orders', v_orders, 'attendees', 1),
      'data', private.attendee_json(v_attendee)
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.cancel_attendee(uuid, boolean, text, text) is
  'Cancels one ticket, gives its place back and takes its price off the order, which is cancelled with its last ticket; or reports the effect of doing so: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_attendee(uuid, boolean, text, text) to scope_attendees_write;

create function api.resend_ticket(attendee_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = resend_ticket.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.resend_ticket(uuid, text, text) is
  'Queues the ticket e-mail of an attendee once more: 200. 404 not_found; 409 ticket_not_active.';
grant execute on function api.resend_ticket(uuid, text, text) to scope_attendees_write;
