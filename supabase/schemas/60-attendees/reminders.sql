-- Reminders of required questions that guests have not answered: by hand, to each guest once a day at most.

-- Reminds the guests of an event who have questions to answer. Returns them with the reason of those who are not reminded. Security definer:
-- no role may write e-mails.
create function private.remind_guests(event_id uuid) returns private.recipient[]
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events := private.lock_own_event_shared(event_id);
  v_recipients private.recipient[];
begin
  if v_event.status <> 'published' then
    perform private.refuse(
      409, 'event_not_published', 'Guests are reminded only while the event is published.', 'event_id',
      jsonb_build_object('status', v_event.status), 'Publish the event first; a cancelled or completed event stays closed.'
    );
  elsif v_event.ends_at <= now() then
    perform private.refuse_ended('event_id', v_event.ends_at);
  end if;
  -- Locked, so that a second call waits for the first, and then sees its e-mails.
  perform from public.questions q where q.event_id = v_event.id order by q.id for no key update;
  v_recipients := private.recipients(
    array(
      select a.id
      from public.ticket_types t
      join public.attendees a on a.ticket_type_id = t.id and a.status <> 'cancelled'
      where t.event_id = v_event.id and private.unanswered(a) <> '{}'
    ),
    'mailed'
  );
  v_recipients := array(
    select row(
      r.organisation_id, r.attendee_id, null, null, r.email_lower,
      coalesce(r.reason, case when exists (
        select from public.emails e
        where e.attendee_id = r.attendee_id and e.kind = 'answers_reminder' and e.created_at > now() - interval '1 day'
          and e.status not in ('cancelled', 'failed', 'bounced')
      ) then 'reminded_recently' end),
      r.is_mailed, null
    )::private.recipient
    from unnest(v_recipients) r
  );
  insert into public.emails (organisation_id, kind, attendee_id)
  select r.organisation_id, 'answers_reminder', r.attendee_id
  from unnest(v_recipients) r
  where r.reason is null
  order by r.attendee_id;
  return v_recipients;
end
$$;
grant execute on function private.remind_guests to scope_attendees_write;

create function api.remind_unanswered(
  event_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_reminded integer;
  v_not_told jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select coalesce(sum(c.guests) filter (where c.reason is null), 0), coalesce(
      jsonb_agg(jsonb_build_object('reason', c.reason, 'count', c.guests) order by c.reason) filter (where c.reason is not null), '[]'
    )
    into v_reminded, v_not_told
    from (select r.reason, count(*) as guests from unnest(private.remind_guests(event_id)) r group by r.reason) c;
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object(
          'orders', 0, 'attendees', v_reminded, 'refund_due', 0,
          'currency', (select e.currency from public.events e where e.id = event_id)
        ),
        jsonb_build_object('emails', v_reminded, 'told', v_reminded, 'not_told', v_not_told)
      ),
      'data', json_build_object('object', 'answer_reminders', 'event_id', event_id, 'reminded', v_reminded)
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'remind_unanswered', jsonb_build_object('event_id', event_id), json_build_object('told', v_reminded)
    );
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.remind_unanswered is
  'E-mails the guests of an event who have required questions to answer, or reports the effect: 200 with the number reminded. 404 not_found; 409 event_not_published, event_ended; 422 idempotency_key_reused.';
grant execute on function api.remind_unanswered to scope_attendees_write;
