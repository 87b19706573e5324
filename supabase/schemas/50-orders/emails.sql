-- What the buyer is told: that the order was placed, paid, has expired or was cancelled, and that a receipt is taken back. What queues them is
-- security definer: no role may write e-mails.

-- To the buyers of orders that have e-mails.
create function private.queue_order_emails(kind public.email_kind, order_ids uuid[], payment_id uuid default null) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id, payment_id)
  select o.organisation_id, queue_order_emails.kind, o.id, queue_order_emails.payment_id
  from public.orders o
  where o.id = any (order_ids) and o.send_email
  order by o.id;
end
$$;

-- An order that somebody adds in Studio is confirmed a little later: its attendees are rows that follow it.
create function private.tg_orders__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (select from new_rows n where n.payment_method is not null and n.send_email) then
    insert into public.emails (organisation_id, kind, order_id, next_attempt_at)
    select n.organisation_id, 'order_confirmation', n.id, now() + case n.source when 'studio' then interval '10 minutes' else '0' end
    from new_rows n
    where n.payment_method is not null and n.send_email
    order by n.id;
  end if;
  return null;
end
$$;
create trigger orders_500_confirm after insert on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__confirm();

-- A row of the view registrations has all of the order.
create function private.confirm_now(order_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.emails e set next_attempt_at = now()
  from public.orders o
  where o.id = confirm_now.order_id and o.created_at = now() and e.order_id = o.id and e.kind = 'order_confirmation'
    and coalesce(e.status = 'queued', false);
end
$$;
grant execute on function private.confirm_now to authenticated;

create function private.tg_payments__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.queue_order_emails('payment_received', array[new.order_id], new.id);
  return null;
end
$$;
create trigger payments_500_confirm after insert on public.payments
  for each row execute function private.tg_payments__confirm();

-- The receipt of a payment was sent, or is on its way: one that the retention has removed was sent.
create function private.has_receipt(payment_id uuid) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
begin
  return coalesce(
    (
      select bool_or(e.status in ('sent', 'delivered') or e.claim is not null)
      from public.emails e
      where e.payment_id = has_receipt.payment_id and e.kind = 'payment_received'
    ),
    true
  );
end
$$;

-- Whoever got the receipt of a payment is told that it was voided.
create function private.tg_payment_voids__tell() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- Locked, so that no courier takes the receipt between this transaction's look and its end.
  perform from public.emails e where e.payment_id = new.payment_id and e.kind = 'payment_received' for no key update;
  if private.has_receipt(new.payment_id) then
    perform private.queue_order_emails('payment_voided', array[p.order_id], p.id) from public.payments p where p.id = new.payment_id;
  end if;
  return null;
end
$$;
create trigger payment_voids_500_tell after insert on public.payment_voids
  for each row execute function private.tg_payment_voids__tell();

create function private.tg_orders__tell_of_expiry() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.queue_order_emails('order_expired', array[new.id]);
  return null;
end
$$;
create trigger orders_500_tell_of_expiry after update of cancellation_reason on public.orders
  for each row when (new.cancellation_reason = 'expired' and old.status = 'pending')
  execute function private.tg_orders__tell_of_expiry();

-- Why the buyer of an order, or who waits, is not e-mailed; null: they are.
create function private.unmailed_because(email text, send_email boolean, notify public.notify) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return case
    when email = private.erased_fields() ->> 'email' then 'erased'
    when private.takes_no_mail(email) then 'no_address'
    when notify = 'mailed' and not send_email then 'send_email_false'
  end;
end
$$;

-- The attendees whom a cancellation is told, and after them the buyers of those of its orders that were to be paid, once for each order. None
-- whose address is told as an attendee: that e-mail says what becomes of the money.
create function private.with_buyers(recipients private.recipient[], order_ids uuid[], notify public.notify) returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return recipients || array(
    select row(b.organisation_id, null, null, b.id, b.email_lower, b.reason, b.send_email, null)::private.recipient
    from (
      select o.*, private.unmailed_because(o.email, o.send_email, notify) as reason
      from public.orders o
      where o.id = any (order_ids)
        and o.payment_method is not null
        -- One that never had a ticket was never confirmed.
        and (o.subtotal > 0 or private.has_tickets(o.id))
    ) b
    left join (
      select r.email_lower, bool_or(r.reason is null) as is_told from unnest(recipients) r group by r.email_lower
    ) a using (email_lower)
    where a.email_lower is null or b.reason is null and not a.is_told
    order by b.id
  );
end
$$;
