-- The guest page: what the holder of a ticket does at /g/TOKEN, by the link that their e-mails alone have (ticket-page.sql). The event says what
-- guests may do; a question that is open is answered whatever it says, for the organiser asks. Each act is done by the function that does it
-- for a key, and the token is checked again under the lock.

-- Those of the acts for which it is not too late.
create function private.acts_in_time(attendee public.attendees, event public.events, acts public.guest_act[]) returns public.guest_act[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select a
    from unnest(acts) a
    cross join lateral (select a in ('give_back', 'pass_on') as parts) g
    where attendee.status <> 'cancelled' and event.status <> 'cancelled' and event.cancelling_since is null
      and now() < coalesce(event.guests_may_until, case when g.parts then event.starts_at else event.ends_at end)
      and not (g.parts and attendee.checked_in_at is not null)
    order by a
  );
end
$$;

-- What the holder may do now, and the questions that the page shows: those that were answered, and those that can be.
-- Of a sensitive answer it is known that there is one.
create function private.guest_rights(attendee public.attendees, out acts public.guest_act[], out questions jsonb)
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_is_open boolean;
begin
  select e.* into v_event from public.events e where e.id = attendee.event_id;
  acts := private.acts_in_time(attendee, v_event, v_event.guests_may);
  v_is_open := private.acts_in_time(attendee, v_event, '{answer}') <> '{}';
  questions := (
    select coalesce(jsonb_agg(
      to_jsonb(q) - '{event_id,organisation_id,ticket_type_ids,at_door,delete_after_days,ask,position,status,version,created_at,updated_at}'::text[]
        || jsonb_build_object('answer', case when not q.sensitive then g.answer end, 'is_answered', g.answer is not null, 'is_open', o.is_open)
      order by q.position, q.id
    ), '[]')
    from public.questions q
    cross join lateral (select (attendee.answers || attendee.sensitive_answers) -> q.key as answer) g
    cross join lateral (select case
      when g.answer is not null then 'answer' = any (acts)
      else v_is_open and (q.required or q.ask <> 'registration')
    end as is_open) o
    where q.event_id = attendee.event_id and q.status = 'active'
      and (q.ticket_type_ids = '{}' or attendee.ticket_type_id = any (q.ticket_type_ids))
      and (g.answer is not null or o.is_open)
  );
end
$$;

-- What an e-mail says of the page: { url, acts, open }, `open` the number of questions to answer. Null where the page offers nothing, or the
-- session does not know where it is.
create function private.guest_link_json(attendee public.attendees) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_build_object('url', l.url, 'acts', r.acts, 'open', o.open)
    from private.guest_rights(attendee) r
    cross join lateral (
      select count(*) as open from jsonb_array_elements(r.questions) q where (q ->> 'is_open')::boolean and not (q ->> 'is_answered')::boolean
    ) o
    cross join lateral (select private.link_url('g', private.guest_token(attendee)) as url) l
    where l.url is not null and (r.acts <> '{}' or o.open > 0)
  );
end
$$;

-- Security definer, these two: the gateway may read no table.
create function api.get_guest_page(token text) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee public.attendees := private.attendee_of_link(token);
begin
  return (
    select api.get_ticket_page(v_attendee.ticket_token)::jsonb
      || jsonb_build_object('ticket_token', v_attendee.ticket_token, 'acts', r.acts, 'questions', r.questions)
    from private.guest_rights(v_attendee) r
  );
end
$$;
comment on function api.get_guest_page is
  'Content of the guest page of a token: that of the ticket page, and { ticket_token, acts, questions }, or null. For the gateway.';
grant execute on function api.get_guest_page to gateway;

-- Writes the answers of a form: an object by key, null takes an answer back. What a required question lacks is refused here, what is wrong
-- with an answer by the table.
create function private.answer_as_guest(attendee public.attendees, answers jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_questions jsonb := (
    select jsonb_object_agg(q ->> 'key', q)
    from jsonb_array_elements((private.guest_rights(attendee)).questions) q
    where (q ->> 'is_open')::boolean
  );
  v_key text;
begin
  v_key := (select k from jsonb_object_keys(answers) k where (v_questions ? k) is not true limit 1);
  if v_key is not null then
    perform private.refuse_value('answers.' || left(v_key, 40), 'This question cannot be answered on the page.');
  end if;
  v_key := (
    select q.key
    from jsonb_each(v_questions) q
    where (q.value ->> 'required')::boolean
      and case when answers ? q.key then answers -> q.key = 'null' else not (q.value ->> 'is_answered')::boolean end
    limit 1
  );
  if v_key is not null then
    perform private.refuse_value('answers.' || v_key, 'This question needs an answer.');
  end if;
  update public.attendees a set answers = a.answers || answer_as_guest.answers where a.id = attendee.id;
end
$$;

-- The ticket stays, with its id, its price and its order; whoever had it keeps nothing of it, and leaves nothing to the next. Their last e-mail
-- has their address, which the attendee has no more.
create function private.pass_on(attendee public.attendees, name text, email text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if private.takes_no_mail(email) then
    perform private.refuse_value('email', 'The ticket cannot be e-mailed to this address.');
  end if;
  update public.attendees a set
    name = pass_on.name,
    email = pass_on.email,
    company = null,
    external_id = null,
    metadata = '{}',
    answers = '{}',
    sensitive_answers = '{}',
    ticket_code = null
  where a.id = attendee.id;
  if not private.takes_no_mail(attendee.email) then
    insert into public.emails (organisation_id, kind, attendee_id, sent_to)
    values (attendee.organisation_id, 'ticket_passed_on', attendee.id, attendee.email);
  end if;
end
$$;

create function api.act_as_guest(token text, act public.guest_act, fields jsonb default '{}', dry_run boolean default null) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_attendee public.attendees := private.attendee_of_link(token);
  v_effect json;
begin
  -- The order before its ticket, as everywhere. Passed on while this waited, the ticket is somebody else's.
  perform private.lock_order_of(v_attendee.id);
  perform from public.attendees a where a.id = v_attendee.id for no key update;
  v_attendee := private.attendee_of_link(token);
  if v_attendee.id is null then
    return null;
  elsif act <> 'answer' and act <> all ((private.guest_rights(v_attendee)).acts) then
    -- A form that is sent twice has done what it says.
    return json_build_object('done', act = 'give_back' and v_attendee.status = 'cancelled' and dry_run is not true);
  end if;
  case act
    when 'correct' then
      if private.is_one_line(fields ->> 'company', 200) is false then
        perform private.refuse_value('company', 'company is one line of 1 to 200 characters.');
      end if;
      update public.attendees a set name = fields ->> 'name', company = fields ->> 'company' where a.id = v_attendee.id;
    when 'answer' then perform private.answer_as_guest(v_attendee, fields);
    when 'pass_on' then perform private.pass_on(v_attendee, fields ->> 'name', fields ->> 'email');
    when 'give_back' then v_effect := api.cancel_attendee(v_attendee.id, dry_run, 'mailed') -> 'effect';
  end case;
  return json_build_object(
    'done', true,
    -- What a ticket with a price brings back. The buyer alone is told the amount.
    'refund', case when v_attendee.price > v_attendee.discount then json_build_object(
      'currency', v_attendee.currency,
      'amount', (select v_effect -> 'refund_due' from public.orders o where o.id = v_attendee.order_id and o.email_lower = v_attendee.email_lower)
    ) end
  );
end
$$;
comment on function api.act_as_guest is
  'Does what the holder of a ticket asks for on the guest page, or reports what returning it brings back: { done, refund }; null where no ticket has the token. done is false where the event does not allow it now. 422 validation_failed. For the gateway.';
grant execute on function api.act_as_guest to gateway;
