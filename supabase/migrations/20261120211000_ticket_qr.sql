-- The QR code of a ticket as an operation. Read supabase/schemas instead: this is what is applied, that is what is explained.
set local lock_timeout = '5s';
set local statement_timeout = '60s';

-- Nobody is handed a ticket that would not let them in.
create or replace function private.refuse_inactive_ticket(status public.attendee_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'ticket_not_active', 'Only the ticket of an active attendee is handed out.', 'status',
    jsonb_build_object('status', status), 'A cancelled ticket stays cancelled; an unpaid one is good when it is paid.'
  );
end
$$;

grant execute on function private.refuse_inactive_ticket(public.attendee_status) to scope_attendees_read, scope_attendees_write;

create or replace function api.get_ticket_qr(attendee_id uuid) returns json
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

comment on function api.get_ticket_qr(uuid) is 'What the QR code of a ticket holds. 404 not_found; 409 ticket_not_active.';

grant execute on function api.get_ticket_qr(uuid) to scope_attendees_read;

create or replace function api.resend_ticket(attendee_id uuid, idempotency_key text default null, request_fingerprint text default null)
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
