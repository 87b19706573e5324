-- Erasing a person: what identifies an attendee is replaced wherever it stands, the copies in logs included. Figures, money and the
-- ticket stay.

-- A document in which the person is erased: their attendee, and their order where they are its contact.
-- `fields`: what replaces each field, as private.erased_fields() has it.
create function private.without_person(document jsonb, attendee_id uuid, order_id uuid, fields jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
declare
  v_is_person boolean;
begin
  if jsonb_typeof(document) = 'array' then
    return (
      select coalesce(jsonb_agg(private.without_person(e.value, attendee_id, order_id, fields) order by e.place), '[]')
      from jsonb_array_elements(document) with ordinality e (value, place)
    );
  elsif jsonb_typeof(document) <> 'object' then
    return document;
  end if;
  v_is_person := document ->> 'id' in (attendee_id::text, order_id::text) or document ->> 'attendee_id' = attendee_id::text
    or document ->> 'object' = 'email' and document ->> 'attendee_id' is null and document ->> 'order_id' = order_id::text
    or document ->> 'waiting_list_entry_id' = attendee_id::text;
  return (
    select coalesce(jsonb_object_agg(
      f.key,
      case
        when v_is_person and fields ? f.key then fields -> f.key
        -- Of an e-mail that could not be delivered.
        when v_is_person and f.key = 'to' then fields -> 'email'
        when v_is_person and f.key in ('last_error', 'error') then 'null'
        when v_is_person and f.key = 'ticket_email' then f.value || '{"last_error": null}'
        else private.without_person(f.value, attendee_id, order_id, fields)
      end
    ), '{}')
    from jsonb_each(document) f
  );
end
$$;

-- Erases what logs and queues hold of a person, and of the order whose contact they are: counts of what it changed.
-- `person_id` is that of an attendee or of an entry of a waiting list. `subject_ids` are the order and the entry that are theirs: by these
-- their copies are found, so that no log of the organisation is read, whatever the statistics say.
create function private.erase_copies(
  organisation_id uuid,
  person_id uuid,
  order_id uuid,
  subject_ids uuid[],
  out notifications integer,
  out webhook_deliveries integer,
  out emails integer,
  out audit_entries integer,
  out idempotency_records integer
)
language plpgsql volatile security definer set search_path = ''
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_fields jsonb := private.erased_fields();
  v_notification_ids uuid[];
begin
  v_notification_ids := array(
    select n.id
    from public.notifications n
    where n.subject_id = any (subject_ids)
      -- Not like, which takes six times as long.
      and (strpos(n.data::text, person_id::text) > 0 or strpos(n.data::text, erase_copies.order_id::text) > 0)
  );
  notifications := cardinality(v_notification_ids);
  update public.notifications n
  set data = private.without_person(n.data::jsonb, person_id, erase_copies.order_id, v_fields)::json
  where n.id = any (v_notification_ids);
  -- A response may repeat what was sent. What is in flight is sent once more, and its response of now is not recorded.
  execute format(
    'update public.webhook_deliveries d set %s, claim = null
     where d.notification_id = any ($1) and (d.last_response_body is not null or d.claim is not null)',
    private.erasing_assignments('webhook_deliveries')
  ) using v_notification_ids;
  get diagnostics webhook_deliveries = row_count;
  -- What is in flight is cancelled as well, so that its result, which may have the address in it, is not recorded.
  execute format(
    $sql$update public.emails e
    set %s, claim = null, claimed_until = null, next_attempt_at = null,
      status = case e.status when 'queued' then 'cancelled' else e.status end
    where e.attendee_id = $1 or e.waiting_list_entry_id = $1 or e.order_id = $2$sql$,
    private.erasing_assignments('emails')
  ) using person_id, order_id;
  get diagnostics emails = row_count;
  update public.audit_entries e
  set changes = (
    select jsonb_object_agg(f.key, case when v_fields ? f.key then '{}' else f.value end)
    from jsonb_each(e.changes) f
  )
  where e.object_id in (person_id, erase_copies.order_id) and e.changes ?| array(select jsonb_object_keys(v_fields));
  get diagnostics audit_entries = row_count;
  update private.idempotency_records r
  set outcome = private.without_person(r.outcome::jsonb, person_id, erase_copies.order_id, v_fields)::json
  where r.organisation_id = erase_copies.organisation_id
    -- Of one of the orders, or of several or none: the expression of the index.
    and case r.outcome #>> '{data,object}'
      when 'order' then r.outcome #>> '{data,id}'
      when 'attendee' then r.outcome #>> '{data,order_id}'
      else ''
    end = any (array_append(subject_ids::text[], ''))
    and (strpos(r.outcome::text, person_id::text) > 0 or strpos(r.outcome::text, erase_copies.order_id::text) > 0);
  get diagnostics idempotency_records = row_count;
end
$$;

-- Erases everywhere, and counts what it changed. Security definer: no role may write the logs. The order of the attendee is erased as
-- well where the person is its contact: the e-mail address or the name is theirs.
create function private.erase_person(attendee_id uuid, dry_run boolean default null) returns json
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_order_id uuid;
  v_orders integer := 0;
  v_copies record;
begin
  perform private.lock_event_shared(a.event_id) from public.attendees a where a.id = erase_person.attendee_id;
  select o.* into v_order
  from public.orders o
  where o.id = (select a.order_id from public.attendees a where a.id = erase_person.attendee_id)
  for no key update;
  select a.* into v_attendee from public.attendees a where a.id = erase_person.attendee_id for no key update;
  if v_attendee.erased_at is not null then
    perform private.refuse(409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Nothing is left to erase.');
  end if;
  v_order_id := case when v_order.email_lower = v_attendee.email_lower or lower(v_order.name) = lower(v_attendee.name) then v_order.id end;

  perform set_config('usher.erasing', 'on', true);
  execute format(
    $sql$update public.attendees a
    set %s, erased_at = now(),
      ticket_email_status = case when a.ticket_email_status in ('waiting', 'queued') then 'cancelled' else a.ticket_email_status end
    where a.id = $1$sql$,
    private.erasing_assignments('attendees')
  ) using v_attendee.id;
  if v_order_id is not null then
    execute format('update public.orders o set %s where o.id = $1', private.erasing_assignments('orders')) using v_order_id;
    get diagnostics v_orders = row_count;
  end if;
  perform set_config('usher.erasing', '', true);
  perform private.erase_waiting_list_entries(array(
    select w.id from public.waiting_list_entries w
    where w.event_id = v_attendee.event_id
      and (w.id = v_attendee.waiting_list_entry_id or w.email_lower = v_attendee.email_lower)
  ));

  v_copies := private.erase_copies(
    v_attendee.organisation_id, v_attendee.id, v_order_id, array[v_attendee.order_id, v_attendee.waiting_list_entry_id]
  );
  return json_build_object(
    'object', 'erasure',
    'attendee_id', v_attendee.id,
    'order_id', v_attendee.order_id,
    'event_id', v_attendee.event_id,
    'erased_at', case when dry_run is not true then private.rfc3339(now()) end,
    'attendees', 1,
    'orders', v_orders,
    'notifications', v_copies.notifications,
    'webhook_deliveries', v_copies.webhook_deliveries,
    'ticket_emails', v_copies.emails,
    'audit_entries', v_copies.audit_entries,
    'idempotency_records', v_copies.idempotency_records
  );
end
$$;
grant execute on function private.erase_person to scope_attendees_write;

create function api.erase_attendee(
  attendee_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_currency text;
  v_receipt json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('attendee_id');
  end if;
  begin
    -- Under the caller's policies.
    select a.currency into v_currency from public.attendees a where a.id = erase_attendee.attendee_id;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    v_receipt := private.erase_person(attendee_id, dry_run);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object('orders', v_receipt -> 'orders', 'attendees', 1, 'refund_due', 0, 'currency', v_currency),
        '{"not_told": []}'
      ),
      'data', v_receipt
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.erase_attendee is
  'Erases what identifies an attendee, here and in every copy, or reports what it would erase: 200 with a receipt. 404 not_found; 409 attendee_erased.';
grant execute on function api.erase_attendee to scope_attendees_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.erase_attendee(attendee_id uuid) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.attendees a
    where a.id = erase_attendee.attendee_id
      and (
        private.claims() ->> 'role' is distinct from 'authenticated'
        or a.organisation_id in (select private.organisations_as('{owner,manager}'))
      )
  ) then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.erase_person(attendee_id);
end
$$;
comment on function public.erase_attendee is
  'Erases what identifies an attendee: name, e-mail address and all other personal fields, also in the order where they are its contact, and in every log. Answers a receipt. Figures, money and the ticket stay.';
revoke all on function public.erase_attendee from public, anon, service_role;
grant execute on function public.erase_attendee to authenticated;

-- Which of these e-mails are of somebody who was erased: where no mail service is configured, the courier keeps them as files.
create function api.erased_emails(ids uuid[]) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select e.id from public.emails e where e.id = any (ids) and private.is_erased(e)
  );
end
$$;
comment on function api.erased_emails is 'Those of the given e-mails whose recipient was erased. For the courier.';
grant execute on function api.erased_emails to courier;
