-- Erasing the person of one ticket: see 95-people/erasure.sql. By their address: 95-people/operations.sql.

-- Erases everywhere, and counts what it changed. Security definer: no role may write the logs. The order of the attendee is erased as well
-- where the person is its contact: the name is theirs, or the address, if nobody else of the order has it. So are entries of the waiting list
-- of the event that have the name under the address, and the one by which the ticket came.
create function private.erase_attendee(attendee_id uuid, dry_run boolean default null) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_form text;
  v_is_alone boolean;
  v_erasing private.erasing;
  v_erased private.erased;
begin
  perform private.lock_event_shared(a.event_id) from public.attendees a where a.id = erase_attendee.attendee_id;
  select o.* into v_order
  from public.orders o
  where o.id = (select a.order_id from public.attendees a where a.id = erase_attendee.attendee_id)
  for no key update;
  -- All of the order at once: where its contact is erased, what is searched of each changes.
  perform from public.attendees a where a.order_id = v_order.id order by a.id for no key update;
  select a.* into v_attendee from public.attendees a where a.id = erase_attendee.attendee_id;
  if v_attendee.erased_at is not null then
    perform private.refuse(409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Nothing is left to erase.');
  end if;
  v_form := private.search_form(v_attendee.name);
  v_is_alone := not exists (
    select from public.attendees a
    where a.order_id = v_order.id and a.email_lower = v_attendee.email_lower and private.search_form(a.name) <> v_form
  );
  v_erasing := row(
    v_attendee.organisation_id, v_attendee.email_lower, array[v_form],
    array(select m from private.members_of_address(v_attendee.organisation_id, v_attendee.email_lower, array[v_form]) m),
    array[v_attendee.id],
    case when private.search_form(v_order.name) = v_form or v_is_alone and v_order.email_lower = v_attendee.email_lower
      then array[v_order.id] else '{}' end,
    array(
      select w.id from public.waiting_list_entries w
      where w.event_id = v_attendee.event_id
        and (
          w.id = v_attendee.waiting_list_entry_id
          or w.email_lower = v_attendee.email_lower and private.search_form(w.name) = v_form
        )
    ),
    '{}'
  );
  v_erased := private.erase_rows(v_erasing);
  return json_build_object(
    'object', 'erasure',
    'attendee_id', v_attendee.id,
    'order_id', v_attendee.order_id,
    'event_id', v_attendee.event_id,
    'erased_at', case when dry_run is not true then private.rfc3339(now()) end,
    'attendees', v_erased.attendees,
    'orders', v_erased.orders,
    'waiting_list_entries', v_erased.waiting_list_entries,
    'notifications', v_erased.notifications,
    'webhook_deliveries', v_erased.webhook_deliveries,
    'ticket_emails', v_erased.emails,
    'audit_entries', v_erased.audit_entries,
    'idempotency_records', v_erased.idempotency_records,
    'kept', private.kept_of(v_erasing)
  );
end
$$;
grant execute on function private.erase_attendee to scope_attendees_write;

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
  begin
    -- Under the caller's policies.
    select a.currency into v_currency from public.attendees a where a.id = erase_attendee.attendee_id;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    v_receipt := private.erase_attendee(attendee_id, dry_run);
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
    perform private.assert_confirmed('erase_attendee', jsonb_build_object('attendee_id', attendee_id), v_outcome -> 'effect');
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.erase_attendee is
  'Erases the personal data of an attendee, here and in every copy, or reports the effect: 200 with a receipt. 404 not_found; 409 attendee_erased.';
grant execute on function api.erase_attendee to scope_attendees_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.erase_attendee(attendee_id uuid) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.attendees a where a.id = erase_attendee.attendee_id and private.is_managed(a.organisation_id)
  ) then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.erase_attendee(attendee_id);
end
$$;
comment on function public.erase_attendee is
  'Erases the personal data of an attendee: name, e-mail address and all other personal fields, in the order if they are its contact, and in every log. Returns a receipt. Figures, money and the ticket stay.';
revoke all on function public.erase_attendee from public, anon, service_role;
grant execute on function public.erase_attendee to authenticated;

-- Which of these e-mails are of somebody who was erased: where no mail service is configured, the courier keeps them as files.
create function api.erased_emails(ids uuid[]) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select e.id
    from public.emails e
    where e.id = any (ids)
      and (
        private.is_erased(e)
        -- Of tickets that went in one e-mail, and of guests whom an e-mail to the buyer names.
        or exists (select from public.emails o where o.sent_with = e.id and private.is_erased(o))
        or exists (select from public.attendees a where a.order_id = e.order_id and a.erased_at > e.created_at)
        -- What tells of the tickets of an address: whose they were is not known any more, so all of the event that are older.
        or e.kind <> 'ticket' and exists (
          select
          from public.attendees h
          join public.attendees a on a.event_id = h.event_id and a.erased_at > e.created_at
          where h.id = e.attendee_id
        )
      )
  );
end
$$;
comment on function api.erased_emails is 'E-mails among the given whose recipient was erased. For the courier.';
grant execute on function api.erased_emails to courier;
