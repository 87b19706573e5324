-- The ticket of an attendee, and what else an attendee is told.

-- Once per statement, so that cancelling an event cancels its queued e-mails in one update. Fires before the totals, whose
-- changes queue others. Security definer: no role may write emails.
create function private.tg_attendees__queue_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_dequeued_ids uuid[];
begin
  if tg_op = 'INSERT' then
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
  else
    -- Not joins of the two transition tables: see tg_attendees__add_up.
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued';
    v_dequeued_ids := array(
      select o.id from old_rows o where o.ticket_email_status = 'queued'
      except
      select n.id from new_rows n where n.ticket_email_status = 'queued'
    );
    if v_dequeued_ids <> '{}' then
      update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
      where e.attendee_id = any (v_dequeued_ids) and e.kind = 'ticket' and e.status = 'queued';
    end if;
  end if;
  return null;
end
$$;
create trigger attendees_340_queue_ticket_email_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__queue_ticket_email();
create trigger attendees_340_queue_ticket_email_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement when (current_setting('usher.queues_tickets', true) = 'on')
  execute function private.tg_attendees__queue_ticket_email();

-- To attendees, one for each address of an event; returns how many. Security definer, like all that follows: no role may write e-mails.
create function private.queue_attendee_emails(
  kind public.email_kind, attendee_ids uuid[], previous jsonb default null, send_at timestamptz default now()
) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_emails integer;
begin
  insert into public.emails (organisation_id, kind, attendee_id, previous, next_attempt_at)
  select distinct on (a.event_id, a.email_lower) a.organisation_id, queue_attendee_emails.kind, a.id, queue_attendee_emails.previous, send_at
  from public.attendees a
  where a.id = any (attendee_ids)
    and a.erased_at is null
    and (select o.send_email from public.orders o where o.id = a.order_id)
  order by a.event_id, a.email_lower, a.id;
  get diagnostics v_emails = row_count;
  return v_emails;
end
$$;

-- Tells those whose tickets this transaction cancelled: of an order, or one of them. Returns how many e-mails.
create function private.notify_of_cancelled_tickets(order_id uuid, attendee_id uuid default null) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return private.queue_attendee_emails(
    'ticket_cancelled',
    array(
      select a.id
      from public.attendees a
      where a.order_id = notify_of_cancelled_tickets.order_id
        and not private.is_foreign(a.organisation_id)
        and a.id = coalesce(notify_of_cancelled_tickets.attendee_id, a.id)
        and a.cancelled_at = now()
    )
  );
end
$$;
grant execute on function private.notify_of_cancelled_tickets to scope_orders_write, scope_attendees_write;
