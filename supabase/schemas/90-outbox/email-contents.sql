-- What an e-mail shows: all that its composition needs, read by key when it is leased (email-claims.sql). src/guests/pending.ts has its form.

-- The tickets of one address that an e-mail tells of: of the order, or of the whole event.
create function private.tickets_of_address(kind public.email_kind, attendee public.attendees) returns uuid[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select a.id
    from public.attendees a
    where a.organisation_id = attendee.organisation_id and a.email_lower = attendee.email_lower and a.event_id = attendee.event_id
      and (kind <> 'ticket_cancelled' or a.order_id = attendee.order_id)
  );
end
$$;

-- Of an e-mail to an attendee who they are, and which tickets it tells of. Others go with a ticket in its e-mail. Holders have a ticket of the
-- address: of a cancellation those that were cancelled together, of one ticket or an order those of the order; else all that are good or to be
-- paid. The first hundred, and one more where there are more. A link only where the ticket is e-mailed.
create function private.guest_json(email public.emails, attendee public.attendees, is_mailed boolean) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_ids uuid[];
  v_others json;
  v_holders json;
begin
  if email.kind = 'ticket' then
    select coalesce(json_agg(json_build_object(
      'email_id', e.id,
      'name', a.name,
      'company', a.company,
      'ticket_type', t.name,
      'ticket_code', a.ticket_code,
      'ticket_url', private.ticket_url(a.ticket_token),
      'guest', private.guest_link_json(a)
    ) order by e.id), '[]') into v_others
    from public.emails e
    join public.attendees a on a.id = e.attendee_id
    join public.ticket_types t on t.id = a.ticket_type_id
    where e.sent_with = email.id and e.id <> email.id and e.claim = email.claim;
  elsif email.kind <> 'ticket_passed_on' then
    v_ids := private.tickets_of_address(email.kind, attendee);
    select json_agg(json_build_object(
      'name', h.name,
      'ticket_type', t.name,
      'reference', o.reference,
      'status', h.status,
      'ticket_url', case when h.status <> 'cancelled' and o.send_email then private.ticket_url(h.ticket_token) end,
      'guest', case when o.send_email then private.guest_link_json(row(h.*)::public.attendees) end
    ) order by h.id) into v_holders
    from (
      select a.*
      from public.attendees a
      where a.id = any (v_ids)
        and a.erased_at is null
        and case when email.kind in ('ticket_cancelled', 'event_cancelled') then a.cancelled_at = attendee.cancelled_at
          else a.status <> 'cancelled' end
      order by a.id
      limit 101
    ) h
    join public.ticket_types t on t.id = h.ticket_type_id
    join public.orders o on o.id = h.order_id;
  end if;
  return json_build_object(
    'attendee', json_build_object(
      'id', attendee.id,
      'name', attendee.name,
      'email', attendee.email,
      'company', attendee.company,
      'status', attendee.status,
      'ticket_code', case email.kind when 'ticket' then attendee.ticket_code end,
      -- Where the tickets of the order are not e-mailed, no other e-mail brings one.
      'ticket_url', case when email.kind = 'ticket' or email.kind not in ('event_cancelled', 'ticket_cancelled', 'ticket_passed_on') and is_mailed
        then private.ticket_url(attendee.ticket_token) end,
      'guest', case when email.kind = 'ticket' then private.guest_link_json(attendee) end,
      -- A calendar keeps the entry of the event while its mailbox has another ticket.
      'has_another_ticket', exists (
        select from public.attendees a
        where a.organisation_id = attendee.organisation_id and a.email_lower = attendee.email_lower
          and a.event_id = attendee.event_id and a.id <> attendee.id and a.status <> 'cancelled'
      ),
      -- The calendar entry is as new as the last change of the event or the ticket.
      'updated_at', private.rfc3339(attendee.updated_at)
    ),
    'others', v_others,
    'holders', v_holders
  );
end
$$;

-- What becomes of the money of what was cancelled: what was still to be paid, and what is to be returned; null where nobody was asked to pay.
-- For its buyer, who may be told as a guest: of a ticket that of its order, of the event that of the orders it took with it.
create function private.cancelled_money_json(email public.emails, attendee public.attendees) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_ids uuid[] := case email.kind
    when 'order_cancelled' then array[email.order_id]
    when 'ticket_cancelled' then array(
      select o.id from public.orders o where o.id = attendee.order_id and o.email_lower = attendee.email_lower
    )
    when 'event_cancelled' then array(
      select o.id
      from public.orders o
      where o.organisation_id = attendee.organisation_id and o.email_lower = attendee.email_lower and o.event_id = attendee.event_id
        and o.cancelled_at = attendee.cancelled_at
    )
  end;
begin
  return (
    select json_build_object(
      'currency', min(o.currency),
      -- What was returned after the cancellation was not to be paid again.
      'amount_unpaid', sum(greatest(o.total - o.amount_paid + (
        select coalesce(sum(r.amount), 0) from public.refunds r where r.order_id = o.id and r.created_at < o.cancelled_at
      ), 0))::bigint,
      'amount_retained', sum(o.amount_retained)::bigint,
      'amount_refundable', sum(private.amount_refundable(o))::bigint
    )
    from public.orders o
    where o.id = any (v_ids) and o.status = 'cancelled' and o.payment_method is not null
    having count(*) > 0
  );
end
$$;

-- It goes to the attendee, to the contact of the order, or to somebody who waits.
create function private.pending_email_json(email public.emails) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_entry public.waiting_list_entries;
  v_guest json;
  v_money json;
begin
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = coalesce(email.order_id, v_attendee.order_id);
  select w.* into v_entry from public.waiting_list_entries w where w.id = email.waiting_list_entry_id;
  -- For whoever had the ticket before.
  if email.kind = 'ticket_passed_on' then
    v_attendee.name := email.sent_to;
    v_attendee.email := email.sent_to;
    v_attendee.company := null;
    v_attendee.email_lower := lower(email.sent_to);
  end if;
  if v_attendee.id is not null then
    v_guest := private.guest_json(email, v_attendee, v_order.send_email);
  end if;
  v_money := private.cancelled_money_json(email, v_attendee);
  return json_build_object(
    'id', email.id,
    'claim', email.claim,
    'attempt', email.attempts,
    'kind', email.kind,
    'organisation', (
      select private.look_of(g) || jsonb_build_object('payment_instructions', g.payment_instructions)
      from public.organisations g
      where g.id = email.organisation_id
    ),
    'event', (select private.event_json(e) from public.events e where e.id = coalesce(v_order.event_id, v_entry.event_id)),
    'previous', email.previous,
    'message', email.message,
    'organiser_message', (select json_build_object('subject', m.subject, 'message', m.message) from public.messages m where m.id = email.organiser_message_id),
    'ticket_type', (select json_build_object('name', t.name) from public.ticket_types t where t.id = v_attendee.ticket_type_id),
    'attendee', v_guest -> 'attendee',
    'others', v_guest -> 'others',
    'holders', v_guest -> 'holders',
    'order', case when email.order_id is null then json_build_object('reference', v_order.reference)
      else private.order_json(v_order, '[]') end,
    'money', v_money,
    -- A guest may be told with a ticket that somebody else ordered.
    'order_url', case when email.order_id is not null or v_money is not null and v_order.email_lower = v_attendee.email_lower
      then private.link_url('o', private.order_token(v_order)) end,
    -- Whom the order is for: the first hundred, and one more where there are more.
    'guests', case email.kind when 'order_confirmation' then (
      select coalesce(json_agg(json_build_object('name', g.name, 'ticket_type', t.name) order by g.id), '[]')
      from (
        select a.id, a.name, a.ticket_type_id
        from public.attendees a
        where a.order_id = v_order.id and a.status <> 'cancelled'
        order by a.id
        limit 101
      ) g
      join public.ticket_types t on t.id = g.ticket_type_id
    ) end,
    'lines', case when email.order_id is not null then private.order_lines_json(v_order) end,
    'payment', (
      select private.payment_json(p, v.created_at)::jsonb || jsonb_build_object('is_latest', not exists (
        select from public.payments l
        where l.order_id = p.order_id and l.id > p.id and not exists (select from public.payment_voids v where v.payment_id = l.id)
      ))
      from public.payments p
      left join public.payment_voids v on v.payment_id = p.id
      where p.id = email.payment_id
    ),
    'waiting_list_entry', case when v_entry.id is not null then private.waiting_list_entry_json(v_entry) end,
    'offer_url', case email.kind when 'waiting_list_offer' then private.link_url('w', private.offer_token(v_entry)) end,
    'questions', case email.kind when 'answers_reminder' then (
      select json_agg(coalesce(q.translations -> e.locale::text ->> 'label', q.label) order by q.position, q.id)
      from public.questions q
      join public.events e on e.id = q.event_id
      where q.event_id = v_attendee.event_id and q.key = any (private.unanswered(v_attendee))
    ) end,
    'answer_url', case email.kind when 'answers_reminder' then private.link_url('g', private.guest_token(v_attendee)) end,
    'opt_out_url', case when private.can_be_switched_off(email.kind)
      then private.link_url('u', private.opt_out_token(v_attendee)) end
  );
end
$$;
