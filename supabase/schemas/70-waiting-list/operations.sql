-- Operations on the waiting list. The rules are in the triggers of 70-waiting-list/table.sql and offers.sql, so that they hold for Studio
-- as well.

create function api.list_waiting_list_entries(
  event_id uuid,
  ticket_type_id uuid default null,
  status public.waiting_list_status default null,
  email text default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_after uuid := coalesce(private.decode_cursor(cursor), '00000000-0000-0000-0000-000000000000');
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_waiting_list_entries.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  v_items := array(
    select private.waiting_list_entry_json(w)
    from public.waiting_list_entries w
    where w.event_id = list_waiting_list_entries.event_id
      and w.id > v_after
      and (list_waiting_list_entries.ticket_type_id is null or w.ticket_type_id = list_waiting_list_entries.ticket_type_id)
      and (list_waiting_list_entries.status is null or w.status = list_waiting_list_entries.status)
      and (list_waiting_list_entries.email is null or w.email_lower = lower(list_waiting_list_entries.email))
    order by w.id
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_waiting_list_entries is
  'Waiting list of an event, oldest first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_waiting_list_entries to scope_attendees_read;

create function api.get_waiting_list_entry(waiting_list_entry_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  select w.* into v_entry from public.waiting_list_entries w where w.id = get_waiting_list_entry.waiting_list_entry_id;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  return private.waiting_list_entry_json(v_entry);
end
$$;
comment on function api.get_waiting_list_entry is 'One waiting-list entry. 404 not_found.';
grant execute on function api.get_waiting_list_entry to scope_attendees_read;

create function api.join_waiting_list(
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text default null,
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
  v_entry public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.waiting_list_entries (event_id, ticket_type_id, name, email, company, send_email, external_id, metadata)
  values (
    join_waiting_list.event_id, join_waiting_list.ticket_type_id, join_waiting_list.name, join_waiting_list.email,
    join_waiting_list.company, coalesce(join_waiting_list.send_email, true), join_waiting_list.external_id,
    coalesce(join_waiting_list.metadata, '{}')
  )
  returning * into v_entry;
  if private.is_page() then
    perform private.assert_page_takes_entry(v_entry);
  end if;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.join_waiting_list is
  'Adds a person to the waiting list of a sold-out ticket type: 201. 404 not_found; 409 not_sold_out, event_not_published, event_ended, ticket_type_archived, sales_not_started, sales_ended, quantity_not_allowed, already_exists (email, external_id); 422 validation_failed.';
grant execute on function api.join_waiting_list to scope_attendees_write;

-- Locks an entry for an edit, after its event, so that a cancellation of the event waits. Security definer: whoever registers may not
-- read the event.
create function private.lock_waiting_list_entry(waiting_list_entry_id uuid) returns public.waiting_list_entries
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  perform private.lock_event_shared(w.event_id)
  from public.waiting_list_entries w
  where w.id = lock_waiting_list_entry.waiting_list_entry_id and not private.is_foreign(w.organisation_id);
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  select w.* into v_entry
  from public.waiting_list_entries w
  where w.id = lock_waiting_list_entry.waiting_list_entry_id
  for no key update;
  return v_entry;
end
$$;
grant execute on function private.lock_waiting_list_entry to scope_attendees_write;

create function api.update_waiting_list_entry(
  waiting_list_entry_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
  v_new public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  v_entry := private.lock_waiting_list_entry(waiting_list_entry_id);
  perform private.assert_version(v_entry.version, if_version);

  v_new := jsonb_populate_record(v_entry, private.with_merged_metadata(changes, v_entry.metadata));
  update public.waiting_list_entries w set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    offer_expires_at = v_new.offer_expires_at,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where w.id = v_entry.id
  returning * into v_entry;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.update_waiting_list_entry is
  'Changes fields of a waiting-list entry, such as the deadline of its offer: 200. 404 not_found; 409 read_only_field, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_waiting_list_entry to scope_attendees_write;

-- Registers the person who is offered a place: the outcome.
create function private.register_offered(
  entry public.waiting_list_entries,
  payment_method public.payment_method,
  promo_code text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  -- Once more when the attendee is added, with the entry locked.
  perform private.assert_offered(entry);
  return (private.register(array[private.with_guests(jsonb_build_object(
    'event_id', entry.event_id, 'ticket_type_id', entry.ticket_type_id, 'waiting_list_entry_id', entry.id,
    'name', entry.name, 'email', entry.email, 'company', entry.company, 'send_email', entry.send_email,
    'external_id', entry.external_id, 'metadata', entry.metadata, 'payment_method', payment_method, 'promo_code', promo_code,
    'idempotency_key', idempotency_key, 'request_fingerprint', request_fingerprint
  ))]))[1];
end
$$;
grant execute on function private.register_offered to scope_attendees_write;

create function api.accept_waiting_list_offer(
  waiting_list_entry_id uuid,
  payment_method public.payment_method default null,
  promo_code text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_entry from public.waiting_list_entries w where w.id = accept_waiting_list_offer.waiting_list_entry_id;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  return private.register_offered(v_entry, payment_method, promo_code, idempotency_key, request_fingerprint);
end
$$;
comment on function api.accept_waiting_list_offer is
  'Accepts an offer and registers the person, complimentary unless payment_method is given: 201 with the order and its attendee. 404 not_found; 409 not_offered, offer_expired, event_not_published, event_ended, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id).';
grant execute on function api.accept_waiting_list_offer to scope_attendees_write;

create function api.cancel_waiting_list_entry(
  waiting_list_entry_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_entry public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  v_entry := private.lock_waiting_list_entry(waiting_list_entry_id);
  -- The guard lets Studio save a row unchanged; an operation that would change nothing is an error.
  if v_entry.status = 'cancelled' then
    perform private.refuse(
      409, 'invalid_transition', 'This person is no longer on the waiting list.', 'status',
      jsonb_build_object('from', v_entry.status, 'to', 'cancelled')
    );
  end if;
  update public.waiting_list_entries w set status = 'cancelled' where w.id = v_entry.id returning * into v_entry;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.cancel_waiting_list_entry is
  'Removes a person from the waiting list. An offered place goes to the next: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_waiting_list_entry to scope_attendees_write;
