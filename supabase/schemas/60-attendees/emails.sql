-- The ticket of an attendee, and what else an attendee is told. All security definer: no role may write e-mails.

-- The e-mail of a ticket follows ticket_email_status: where it becomes queued there is one, and where it is queued no more none waits. Fires
-- before the totals, whose changes queue others. One statement for all tickets of a cancelled event.
create function private.tg_attendees__queue_tickets() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_withdrawn uuid[];
begin
  if tg_op = 'INSERT' then
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
    return null;
  end if;
  insert into public.emails (organisation_id, attendee_id)
  select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
  except
  select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued'
  order by 2;
  v_withdrawn := array(
    select o.id from old_rows o where o.ticket_email_status = 'queued'
    except
    select n.id from new_rows n where n.ticket_email_status = 'queued'
  );
  if v_withdrawn <> '{}' then
    update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
    -- An expression, so that the planner does not read the index of all that is queued.
    where e.attendee_id = any (v_withdrawn) and e.kind = 'ticket' and coalesce(e.status = 'queued', false);
  end if;
  return null;
end
$$;
create trigger attendees_340_queue_ticket_email_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__queue_tickets();
create trigger attendees_340_queue_ticket_email_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__queue_tickets();

-- A ticket that is asked for again while its e-mail waits after a failure, by now for up to a day, gets another in its place, which is due at
-- once and has all its attempts. A late report on one of the former does not count for it: it may have gone to another address. What is
-- being sent is left alone.
create function private.tg_attendees__send_now() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.emails e set status = 'cancelled', next_attempt_at = null
  where e.attendee_id = new.id and e.kind = 'ticket' and coalesce(e.status = 'queued', false) and e.claim is null and e.last_error is not null;
  if found then
    insert into public.emails (organisation_id, attendee_id) values (new.organisation_id, new.id);
  end if;
  return null;
end
$$;
-- Where the status is written, whatever it was; the courier leaves it out where it stays.
create trigger attendees_350_send_now after update of ticket_email_status on public.attendees
  for each row when (new.ticket_email_status = 'queued' and old.ticket_email_status = 'queued' and old.ticket_email_last_error is not null)
  execute function private.tg_attendees__send_now();
create trigger attendees_350_send_now_reissued after update of ticket_code on public.attendees
  for each row when (
    new.ticket_email_status = 'queued' and old.ticket_email_status = 'queued' and old.ticket_email_last_error is not null
    and new.ticket_code <> old.ticket_code
  )
  execute function private.tg_attendees__send_now();

-- Attendees as recipients: those whose ticket page an e-mail may link to first. `known_until`: whoever registered later knows nothing else.
-- `kind`: whoever switched such e-mails off gets none, whomever they are for.
create function private.recipients(
  attendee_ids uuid[], notify public.notify, known_until timestamptz default 'infinity', kind public.email_kind default null
) returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select row(a.organisation_id, a.id, null, null, a.email_lower, case
      when a.erased_at is not null then 'erased'
      when private.takes_no_mail(a.email) then 'no_address'
      when a.created_at > known_until then 'registered_since'
      when u.event_id is not null then 'switched_off'
      when notify = 'mailed' and not o.send_email then 'send_email_false'
    end, o.send_email, a.cancelled_at)::private.recipient
    from public.attendees a
    join public.orders o on o.id = a.order_id
    left join public.email_opt_outs u
      on u.event_id = a.event_id and u.email_lower = a.email_lower and private.can_be_switched_off(kind)
    where a.id = any (attendee_ids)
    order by o.send_email desc, a.id
  );
end
$$;

-- Those of the recipients who get an e-mail: one for each address and what was cancelled together, but for those that have one pending. A
-- buyer has one for each order, which names its money, and then none of the waiting list.
create function private.addressees(recipients private.recipient[], pending text[] default '{}') returns private.recipient[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select row(
      a.organisation_id, a.attendee_id, a.waiting_list_entry_id, a.order_id, a.email_lower, null, a.is_mailed, a.cancelled_at
    )::private.recipient
    from (
      select distinct on (r.email_lower, r.order_id, r.cancelled_at) r.*
      from (
        select r.*, bool_or(r.order_id is not null) over (partition by r.email_lower) as is_buyer
        from unnest(recipients) with ordinality r
        where r.reason is null
      ) r
      where r.email_lower not in (select unnest(pending)) and (r.waiting_list_entry_id is null or not r.is_buyer)
      order by r.email_lower, r.order_id, r.cancelled_at, r.ordinality
    ) a
  );
end
$$;

-- How many of the recipients are told: { told, not_told: [{ reason, count }] }. Who shares the address of somebody who is told is told.
create function private.told_of(recipients private.recipient[]) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_build_object(
      'told', coalesce(sum(c.count) filter (where c.reason is null), 0),
      'not_told', coalesce(
        jsonb_agg(jsonb_build_object('reason', c.reason, 'count', c.count) order by c.count desc, c.reason) filter (where c.reason is not null),
        '[]'
      )
    )
    from (
      select a.reason, count(*)
      from (
        select case when not bool_or(r.reason is null) over (partition by r.email_lower) then r.reason end as reason
        from unnest(recipients) r
      ) a
      group by a.reason
    ) c
  );
end
$$;

-- Queues the e-mails of a notice: what private.told_of answers, and { emails }, with those that are pending. `previous` and `mailed`: what
-- the recipients knew before, and those who were told since because their orders have e-mails.
create function private.tell(
  kind public.email_kind,
  recipients private.recipient[],
  message text,
  previous jsonb default null,
  mailed jsonb default null,
  send_at timestamptz default now(),
  pending text[] default '{}'
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_emails integer;
begin
  insert into public.emails (organisation_id, kind, attendee_id, waiting_list_entry_id, order_id, previous, message, next_attempt_at)
  select
    r.organisation_id,
    case
      when r.attendee_id is not null then tell.kind
      when r.order_id is not null then 'order_cancelled'
      when tell.kind = 'event_changed' then 'waiting_list_offer'
      else 'waiting_list_cancelled'
    end,
    r.attendee_id,
    r.waiting_list_entry_id,
    r.order_id,
    nullif(coalesce(
      -- Whom the last such e-mail did not reach still knows what was before it.
      (
        select (array_agg(case when l.status in ('cancelled', 'failed', 'bounced') then coalesce(l.previous, 'null') end order by l.id desc))[1]
        from public.emails l
        where tell.kind = 'event_changed' and (
          l.attendee_id = r.attendee_id and l.kind = 'event_changed'
          or l.waiting_list_entry_id = r.waiting_list_entry_id and l.kind = 'waiting_list_offer'
        )
      ),
      case when r.is_mailed then mailed end,
      tell.previous
    ), 'null'),
    tell.message,
    send_at
  from unnest(private.addressees(recipients, pending)) r;
  get diagnostics v_emails = row_count;
  return private.told_of(recipients) || jsonb_build_object('emails', cardinality(pending) + v_emails);
end
$$;

-- Tells of tickets of an order that were cancelled: their holders, of those that were cancelled together; and the buyer, unless they know,
-- that the order is cancelled. One that stays and was not paid in full is confirmed anew, guest or not, where these tickets cost something:
-- what the buyer was asked to pay is too much. Answers as private.tell; a buyer who is a guest as well counts once.
create function private.tell_of_cancelled_tickets(
  order_id uuid, attendee_ids uuid[], notify public.notify, message text, is_buyer_told boolean default false
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_recipients private.recipient[] := private.recipients(attendee_ids, notify);
  v_cost bigint := (select sum(a.price - a.discount) from public.attendees a where a.id = any (attendee_ids));
  v_reason text;
  v_notice jsonb;
begin
  select o.* into v_order from public.orders o where o.id = tell_of_cancelled_tickets.order_id;
  if v_order.status = 'cancelled' and not is_buyer_told then
    v_recipients := private.with_buyers(v_recipients, array[v_order.id], notify);
  end if;
  v_notice := private.tell('ticket_cancelled', v_recipients, message);
  if v_order.status <> 'cancelled' and not is_buyer_told and v_order.payment_method is not null and v_cost > 0
    and v_order.total + v_cost > v_order.amount_paid - v_order.amount_refunded then
    v_reason := private.unmailed_because(v_order.email, v_order.send_email, notify);
    if v_reason is null then
      -- By the e-mail that waits already or another: it shows what the order is when it is sent. Locked, so that no courier takes it with what
      -- the order was before this transaction.
      update public.emails e set message = coalesce(tell_of_cancelled_tickets.message, e.message)
      where e.order_id = v_order.id and e.kind = 'order_confirmation' and coalesce(e.status = 'queued', false) and e.claim is null;
      if not found then
        insert into public.emails (organisation_id, kind, order_id, message)
        values (v_order.organisation_id, 'order_confirmation', v_order.id, tell_of_cancelled_tickets.message);
      end if;
      v_notice := v_notice || jsonb_build_object('emails', (v_notice ->> 'emails')::integer + 1);
    end if;
    if not exists (select from unnest(v_recipients) r where r.email_lower = v_order.email_lower) then
      v_notice := v_notice || private.told_of(
        v_recipients || row(v_order.organisation_id, null, null, v_order.id, v_order.email_lower, v_reason, v_order.send_email, null)::private.recipient
      );
    end if;
  end if;
  return v_notice;
end
$$;

-- Tells of the tickets that this transaction cancelled: all of an order, or one of them. Answers as private.tell, or null where nobody is
-- to be told.
create function private.notify_of_cancelled_tickets(
  notify public.notify, order_id uuid, attendee_id uuid default null, message text default null
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
begin
  message := private.sound_message(message, notify);
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  end if;
  perform private.assert_not_foreign(
    (select o.organisation_id from public.orders o where o.id = notify_of_cancelled_tickets.order_id), 'order_id'
  );
  return private.tell_of_cancelled_tickets(
    order_id,
    array(
      select a.id
      from public.attendees a
      where a.order_id = notify_of_cancelled_tickets.order_id
        and a.id = coalesce(notify_of_cancelled_tickets.attendee_id, a.id)
        and a.cancelled_at = now()
    ),
    notify,
    message
  );
end
$$;
grant execute on function private.notify_of_cancelled_tickets to scope_orders_write, scope_attendees_write;

-- For owners and managers who are signed in, and for the SQL editor. Who was told has an e-mail about it that did not fail; tickets that an
-- event took with it are told by public.notify_attendees.
create function public.notify_cancelled(order_id uuid, notify public.notify default 'mailed', message text default null) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_failed constant public.email_status[] := '{cancelled,failed,bounced}';
  v_attendee_ids uuid[];
begin
  perform private.assert_manages_order(order_id);
  message := private.sound_message(message, notify);
  -- Locked, so that a second call of this moment sees whom the first has told.
  select o.* into v_order from public.orders o where o.id = notify_cancelled.order_id for no key update;
  if coalesce(notify, 'nobody') = 'nobody' then
    return 0;
  end if;
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.order_id = v_order.id
      and a.status = 'cancelled'
      and a.cancelled_at is distinct from (select e.cancelled_at from public.events e where e.id = v_order.event_id)
      and (a.email_lower, a.cancelled_at) not in (
        select t.email_lower, t.cancelled_at
        from public.attendees t
        join public.emails e on e.attendee_id = t.id
        where t.order_id = v_order.id
          and e.kind in ('ticket_cancelled', 'event_cancelled')
          and e.created_at >= t.cancelled_at
          and e.status <> all (v_failed)
      )
  );
  return private.tell_of_cancelled_tickets(
    v_order.id, v_attendee_ids, notify, message, v_order.cancellation_reason is not distinct from 'event_cancelled'
      -- Of an order that stays, by a confirmation since, or one that waits.
      or v_order.status <> 'cancelled' and exists (
        select from public.emails e
        where e.order_id = v_order.id and e.kind = 'order_confirmation' and e.status <> all (v_failed)
          and coalesce(e.sent_at, now()) >= (select max(a.cancelled_at) from public.attendees a where a.id = any (v_attendee_ids))
      )
      or exists (
        select from public.emails e
        where e.order_id = v_order.id and e.kind in ('order_cancelled', 'order_expired') and e.created_at >= v_order.cancelled_at
          and e.status <> all (v_failed)
      )
      or exists (
        select
        from public.attendees t
        join public.emails e on e.attendee_id = t.id
        where t.order_id = v_order.id and t.email_lower = v_order.email_lower
          and e.kind = 'ticket_cancelled' and e.created_at >= v_order.cancelled_at and e.status <> all (v_failed)
      )
  ) ->> 'emails';
end
$$;
comment on function public.notify_cancelled is
  'E-mails the holders of cancelled tickets of an order, and its buyer, each once. mailed: unless the order has e-mails switched off; everybody: always. message: your own words. For tickets cancelled with their event, call notify_attendees. Returns the number of e-mails.';
revoke all on function public.notify_cancelled from public, anon, service_role;
grant execute on function public.notify_cancelled to authenticated;

-- One e-mail tells all tickets of an address: where the address of its own is corrected or erased, it tells another as well. What is being
-- sent was written before.
create function private.tg_attendees__tell_others() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, attendee_id, previous, message, next_attempt_at)
  select e.organisation_id, e.kind, o.id, e.previous, e.message, e.next_attempt_at
  from public.emails e
  cross join lateral (
    select a.id
    from public.attendees a
    where a.id = any (private.tickets_of_address(e.kind, old))
      and case e.kind when 'event_changed' then a.status <> 'cancelled' else a.cancelled_at = old.cancelled_at end
    order by a.id
    limit 1
  ) o
  where e.attendee_id = old.id and e.kind in ('event_changed', 'event_cancelled', 'ticket_cancelled') and coalesce(e.status = 'queued', false)
    and (e.claim is null or e.claimed_until <= now());
  return null;
end
$$;
create trigger attendees_500_tell_others after update of email on public.attendees
  for each row when (new.email_lower <> old.email_lower)
  execute function private.tg_attendees__tell_others();

-- An address that no ticket of the event has any more, because it was corrected or erased or the ticket deleted, is forgotten. Whoever takes
-- another of its last tickets at this moment waits, and then sees that there is none.
create function private.tg_attendees__forget_opt_out() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'UPDATE' and new.email_lower = old.email_lower then
    return null;
  end if;
  perform from public.email_opt_outs u where u.event_id = old.event_id and u.email_lower = old.email_lower for update;
  delete from public.email_opt_outs u
  where u.event_id = old.event_id
    and u.email_lower = old.email_lower
    and not exists (
      select from public.attendees a
      where a.organisation_id = old.organisation_id and a.email_lower = old.email_lower and a.event_id = old.event_id
    );
  return null;
end
$$;
create trigger attendees_500_forget_opt_out after update of email or delete on public.attendees
  for each row execute function private.tg_attendees__forget_opt_out();
