-- Operations on the waiting list, what it notifies of, and what the courier does for it. The rules are in 49_waiting_list.sql.

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
grant execute on function private.waiting_list_entry_json(public.waiting_list_entries) to scope_attendees_read, scope_attendees_write;

-- Security definer: no role may write the outbox. An acceptance is notified of at the end of the transaction, when there is an attendee.
create function private.tg_waiting_list_entries__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    ('waiting_list_entry.' || case new.status when 'waiting' then 'created' else new.status::text end)::public.notification_type,
    private.waiting_list_entry_json(new)
  );
  if new.status = 'offered' and new.send_email then
    perform private.queue_waiting_list_emails(array[new.id]);
  end if;
  return null;
end
$$;
create trigger waiting_list_entries_600_notify_insert after insert on public.waiting_list_entries
  for each row execute function private.tg_waiting_list_entries__notify();
create trigger waiting_list_entries_600_notify_update after update on public.waiting_list_entries
  for each row when (new.status <> old.status and new.status <> 'accepted')
  execute function private.tg_waiting_list_entries__notify();
create constraint trigger waiting_list_entries_600_notify_accepted after update on public.waiting_list_entries
  deferrable initially deferred
  for each row when (new.status = 'accepted' and old.status <> 'accepted')
  execute function private.tg_waiting_list_entries__notify();

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
  v_bytes integer := private.page_bytes();
  v_entry public.waiting_list_entries;
  v_item json;
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_waiting_list_entries.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  for v_entry in
    select w.*
    from public.waiting_list_entries w
    where w.event_id = list_waiting_list_entries.event_id
      and w.id > v_after
      and (list_waiting_list_entries.ticket_type_id is null or w.ticket_type_id = list_waiting_list_entries.ticket_type_id)
      and (list_waiting_list_entries.status is null or w.status = list_waiting_list_entries.status)
      and (list_waiting_list_entries.email is null or w.email_lower = lower(list_waiting_list_entries.email))
    order by w.id
    limit v_size + 1
  loop
    v_item := private.waiting_list_entry_json(v_entry);
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_waiting_list_entries(uuid, uuid, public.waiting_list_status, text, text, integer) is
  'The waiting list of an event, first come first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_waiting_list_entries(uuid, uuid, public.waiting_list_status, text, text, integer)
  to scope_attendees_read;

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
comment on function api.get_waiting_list_entry(uuid) is 'One entry of a waiting list. 404 not_found.';
grant execute on function api.get_waiting_list_entry(uuid) to scope_attendees_read;

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

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;
comment on function api.join_waiting_list(uuid, uuid, text, text, text, boolean, text, jsonb, text, text) is
  'Adds a person to the waiting list of a sold-out ticket type: 201. 404 not_found; 409 not_sold_out, event_not_published, event_ended, ticket_type_archived, sales_not_started, sales_ended, quantity_not_allowed, already_exists (email, external_id); 422 validation_failed.';
grant execute on function api.join_waiting_list(uuid, uuid, text, text, text, boolean, text, jsonb, text, text) to scope_attendees_write;

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
grant execute on function private.lock_waiting_list_entry(uuid) to scope_attendees_write;

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

  v_new := jsonb_populate_record(v_entry, changes);
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
comment on function api.update_waiting_list_entry(uuid, jsonb, integer[], text, text) is
  'Changes fields of an entry of a waiting list, such as the deadline of its offer: 200. 404 not_found; 409 read_only_field, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_waiting_list_entry(uuid, jsonb, integer[], text, text) to scope_attendees_write;

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
  v_guests jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_entry from public.waiting_list_entries w where w.id = accept_waiting_list_offer.waiting_list_entry_id;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  -- Once more when the attendee is added, with the entry locked.
  perform private.assert_offered(v_entry);

  v_guests := jsonb_build_array(jsonb_build_object(
    'waiting_list_entry_id', v_entry.id, 'name', v_entry.name, 'email', v_entry.email, 'company', v_entry.company,
    'external_id', v_entry.external_id, 'metadata', v_entry.metadata
  ));
  if v_entry.external_id is not null then
    perform private.lock_external_ids(v_entry.organisation_id, v_entry.external_id, v_guests);
  end if;
  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 201, 'data', (private.add_registrations(array[row(
      private.uuid_v7(), v_entry.event_id, v_entry.ticket_type_id, v_entry.name, v_entry.email, v_entry.company, v_guests,
      payment_method, promo_code, v_entry.send_email, v_entry.external_id, v_entry.metadata, idempotency_key, request_fingerprint
    )::private.registration]))[1])
  );
end
$$;
comment on function api.accept_waiting_list_offer(uuid, public.payment_method, text, text, text) is
  'Registers the person whom the waiting list offers a place, complimentary unless payment_method is given: 201 with the order and its attendee. 404 not_found; 409 not_offered, offer_expired, event_not_published, event_ended, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id).';
grant execute on function api.accept_waiting_list_offer(uuid, public.payment_method, text, text, text) to scope_attendees_write;

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
comment on function api.cancel_waiting_list_entry(uuid, text, text) is
  'Takes a person off the waiting list; a place that was offered goes to the next: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_waiting_list_entry(uuid, text, text) to scope_attendees_write;

-- Expires offers of one event after their deadline, which offers the places to whoever waits next: { expired, has_more }. One event at
-- a time, for its locks; an event or an entry that another transaction has locked is left for later, and holds up nobody else.
create function api.expire_waiting_list_offers() returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 100;
  v_event_id uuid;
  v_expired integer := 0;
begin
  -- Nobody reads an offer where e-mails are held.
  if private.is_held() then
    return json_build_object('expired', 0, 'has_more', false);
  end if;
  for v_event_id in
    select w.event_id
    from public.waiting_list_entries w
    where w.status = 'offered' and w.offer_expires_at <= now()
    group by w.event_id
    order by min(w.offer_expires_at)
  loop
    -- As private.lock_event_shared, without waiting.
    continue when not pg_try_advisory_xact_lock_shared(1, hashtext(v_event_id::text));
    update public.waiting_list_entries w set status = 'expired'
    where w.id = any (array(
      select d.id
      from public.waiting_list_entries d
      where d.event_id = v_event_id and d.status = 'offered' and d.offer_expires_at <= now()
      order by d.id
      limit v_most
      for no key update skip locked
    ));
    get diagnostics v_expired = row_count;
    exit when v_expired > 0;
  end loop;
  return json_build_object(
    'expired', v_expired,
    'has_more', v_expired > 0 and exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
  );
end
$$;
comment on function api.expire_waiting_list_offers() is
  'Expires offers of the waiting list after their deadline, some at a time, and offers their places to the next: { expired, has_more }. For the courier.';
grant execute on function api.expire_waiting_list_offers() to courier;

-- What the e-mail of an offer shows besides its event.
create function private.waiting_list_offer_json(waiting_list_entry_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select private.waiting_list_entry_json(w) from public.waiting_list_entries w where w.id = waiting_list_offer_json.waiting_list_entry_id
  );
end
$$;

-- Erases the entries of a person, with every copy: see private.erase_person.
create function private.erase_waiting_list_entries(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_entry public.waiting_list_entries;
begin
  for v_entry in
    update public.waiting_list_entries w
    set name = 'Erased', email = 'erased@erased.invalid', company = null, external_id = null, metadata = '{}',
      status = case when w.status in ('waiting', 'offered') then 'cancelled' else w.status end
    where w.id = any (entry_ids)
    returning w.*
  loop
    perform private.erase_copies(v_entry.organisation_id, v_entry.id, null, v_entry.created_at);
  end loop;
end
$$;
