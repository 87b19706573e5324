-- Messages to attendees in the organiser's own words (90-outbox/messages.sql), each address once.

-- The attendees whom the filter names, as recipients of a message. Who has an e-mail of it that did not fail has had it.
create function private.recipients_of_message(
  message public.messages, ticket_type_id uuid, status public.attendee_status, checked_in boolean, answer text, unanswered boolean
) returns private.recipient[]
language plpgsql stable set search_path = ''
as $$
declare
  v_answer jsonb := private.answer_sought(message.event_id, answer, unanswered);
  v_told text[] := array(
    select case e.status when 'queued' then a.email_lower else lower(e.sent_to) end
    from public.emails e
    join public.attendees a on a.id = e.attendee_id
    where e.organiser_message_id = message.id and e.status not in ('cancelled', 'failed', 'bounced')
  );
  v_attendee_ids uuid[] := array(
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = message.event_id
      and (recipients_of_message.ticket_type_id is null or t.id = recipients_of_message.ticket_type_id)
      and case when recipients_of_message.status is null then a.status <> 'cancelled' else a.status = recipients_of_message.status end
      and (recipients_of_message.checked_in is null or a.checked_in = recipients_of_message.checked_in)
      and (v_answer is null or a.answers @> v_answer)
      and (unanswered is not true or private.unanswered(a) <> '{}')
  );
begin
  return array(
    select row(
      r.organisation_id, r.attendee_id, null, null, r.email_lower,
      coalesce(r.reason, case when r.email_lower in (select unnest(v_told)) then 'told_before' end), r.is_mailed, null
    )::private.recipient
    from unnest(private.recipients(v_attendee_ids, 'mailed', kind => 'organiser_message')) r
  );
end
$$;

-- Queues the e-mails of a message for those who have not had it: what private.told_of answers, and { emails, id, ticket_type }. Security
-- definer: no role may write e-mails.
create function private.message_guests(
  event_id uuid,
  subject text,
  message text,
  ticket_type_id uuid,
  status public.attendee_status,
  checked_in boolean,
  answer text,
  unanswered boolean
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events := private.lock_own_event_shared(event_id);
  v_ticket_type text;
  v_message public.messages;
  v_recipients private.recipient[];
  v_emails integer;
begin
  if v_event.status not in ('published', 'completed') then
    perform private.refuse(
      409, 'event_not_published', 'Messages are sent only while the event is published or completed.', 'event_id',
      jsonb_build_object('status', v_event.status), 'Publish the event first. To write about a cancellation, send message with it.'
    );
  elsif ticket_type_id is not null then
    select t.name into v_ticket_type from public.ticket_types t where t.id = message_guests.ticket_type_id and t.event_id = v_event.id;
    if not found then
      perform private.refuse_not_found('ticket_type_id');
    end if;
  end if;
  subject := btrim(subject, E' \t\r\n');
  message := btrim(message, E' \t\r\n');
  -- One call after the other, so that the second sees the e-mails of the first.
  perform pg_advisory_xact_lock(7, hashtext(v_event.id::text));
  select m.* into v_message
  from public.messages m
  where m.event_id = v_event.id and m.subject = message_guests.subject and m.message = message_guests.message
  for no key update;
  if not found then
    insert into public.messages (organisation_id, event_id, subject, message)
    values (v_event.organisation_id, v_event.id, message_guests.subject, message_guests.message)
    returning * into v_message;
  end if;

  v_recipients := private.recipients_of_message(v_message, ticket_type_id, status, checked_in, answer, unanswered);
  insert into public.emails (organisation_id, kind, attendee_id, organiser_message_id)
  select r.organisation_id, 'organiser_message', r.attendee_id, v_message.id
  from unnest(private.addressees(v_recipients)) r;
  get diagnostics v_emails = row_count;
  return private.told_of(v_recipients) || jsonb_build_object('emails', v_emails, 'id', v_message.id, 'ticket_type', v_ticket_type);
end
$$;
grant execute on function private.message_guests to scope_attendees_write;

create function api.message_attendees(
  event_id uuid,
  subject text,
  message text,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  answer text default null,
  unanswered boolean default null,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_sent jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    v_sent := private.message_guests(event_id, subject, message, ticket_type_id, status, checked_in, answer, unanswered);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object(
          'orders', 0, 'attendees', v_sent -> 'told', 'refund_due', 0,
          'currency', (select e.currency from public.events e where e.id = message_attendees.event_id)
        ),
        v_sent
      ),
      'data', json_build_object(
        'object', 'message', 'id', case when dry_run is not true then v_sent ->> 'id' end, 'event_id', event_id, 'subject', subject,
        'told', v_sent -> 'told'
      )
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_confirmed(
      'message_attendees',
      jsonb_build_object(
        'event_id', event_id, 'subject', subject, 'message', message, 'ticket_type_id', ticket_type_id,
        'audience', jsonb_strip_nulls(jsonb_build_object(
          'ticket_type', v_sent -> 'ticket_type', 'status', status, 'checked_in', checked_in, 'answer', answer, 'unanswered', nullif(unanswered, false)
        ))
      ),
      json_build_object('told', v_sent -> 'told', 'not_told', v_sent -> 'not_told')
    );
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.message_attendees is
  'E-mails a message to the attendees whom the filters name, each address once however often it is sent, or reports the effect: 200 with the number told. 404 not_found; 409 event_not_published; 422 validation_failed, idempotency_key_reused.';
grant execute on function api.message_attendees to scope_attendees_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.message_attendees(
  event_id uuid,
  subject text,
  message text,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  answer text default null,
  unanswered boolean default null
) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.events e where e.id = message_attendees.event_id and private.is_managed(e.organisation_id)
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.message_guests(event_id, subject, message, ticket_type_id, status, checked_in, answer, unanswered) ->> 'told';
end
$$;
comment on function public.message_attendees is
  'E-mails a message to the attendees of an event, or to those with a ticket type, a status, checked in or not, with an answer such as diet:vegan, or with unanswered questions. Opt-outs are respected, and the same message reaches nobody twice. Returns the number of people e-mailed.';
revoke all on function public.message_attendees from public, anon, service_role;
grant execute on function public.message_attendees to authenticated;
