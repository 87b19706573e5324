-- What the buyer is told: that the order was placed, paid, has expired or was cancelled, and that a receipt is taken back. What queues them is security definer: no role may write e-mails.

-- To the buyers of orders.
create function private.queue_order_emails(kind public.email_kind, order_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id)
  select o.organisation_id, queue_order_emails.kind, o.id
  from public.orders o
  where o.id = any (order_ids) and o.send_email
  order by o.id;
end
$$;

-- An order that somebody types is confirmed a little later: its attendees are rows that follow it. Argument: how much.
create function private.tg_orders__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (select from new_rows n where n.payment_method is not null and n.send_email) then
    return null;
  end if;
  insert into public.emails (organisation_id, kind, order_id, next_attempt_at)
  select n.organisation_id, 'order_confirmation', n.id, now() + tg_argv[0]::interval
  from new_rows n
  where n.payment_method is not null and n.send_email
  order by n.id;
  return null;
end
$$;
create trigger orders_500_confirm after insert on public.orders
  referencing new table as new_rows
  for each statement when (not private.is_typed()) execute function private.tg_orders__confirm('0');
create trigger orders_500_confirm_typed after insert on public.orders
  referencing new table as new_rows
  for each statement when (private.is_typed()) execute function private.tg_orders__confirm('10 minutes');

create function private.tg_payments__confirm() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, order_id, payment_id)
  select o.organisation_id, 'payment_received', o.id, new.id
  from public.orders o
  where o.id = new.order_id and o.send_email;
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
  insert into public.emails (organisation_id, kind, order_id, payment_id)
  select o.organisation_id, 'payment_voided', o.id, new.payment_id
  from public.payments p
  join public.orders o on o.id = p.order_id
  where p.id = new.payment_id and o.send_email and private.has_receipt(new.payment_id);
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

-- The attendees whom a cancellation is told, and after them the buyers of those of its orders that were to be paid, once for each order. None whose address is told as an attendee: that e-mail says what becomes of the money.
create function private.with_buyers(recipients private.recipient[], order_ids uuid[], notify public.notify) returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return recipients || array(
    select row(b.organisation_id, null, null, b.email_lower, b.reason, b.id)::private.recipient
    from (
      select o.id, o.organisation_id, o.email_lower, private.unmailed_because(o, notify) as reason
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

-- Confirms an order to its buyer anew, by an e-mail that waits already or another: it shows what the order is when it is sent. Answers as
-- private.tell; a buyer who is one of the recipients is counted there.
create function private.confirm_anew(
  "order" public.orders, notify public.notify, recipients private.recipient[], message text
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_reason text := private.unmailed_because("order", notify);
  v_buyers integer := (not exists (select from unnest(recipients) r where r.email_lower = "order".email_lower))::integer;
begin
  if v_reason is not null then
    return jsonb_build_object(
      'emails', 0, 'told', 0,
      'not_told', case v_buyers when 0 then '[]' else jsonb_build_array(jsonb_build_object('reason', v_reason, 'count', 1)) end
    );
  end if;
  -- Locked, so that no courier takes it with what the order was before this transaction.
  update public.emails e set message = coalesce(confirm_anew.message, e.message)
  where e.order_id = "order".id and e.kind = 'order_confirmation' and e.status = 'queued' and e.claim is null;
  if not found then
    insert into public.emails (organisation_id, kind, order_id, message)
    values ("order".organisation_id, 'order_confirmation', "order".id, confirm_anew.message);
  end if;
  return jsonb_build_object('emails', 1, 'told', v_buyers, 'not_told', '[]'::jsonb);
end
$$;

-- What an order is for, a line for each ticket type and price.
create function private.order_lines_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object(
      'name', l.name, 'quantity', l.quantity, 'price', l.price, 'discount', l.discount, 'total', l.quantity * l.price - l.discount
    ) order by l.first_id), '[]')
    from (
      select t.name, a.price, count(*) as quantity, sum(a.discount)::bigint as discount, min(a.id::text) as first_id
      from public.attendees a
      join public.ticket_types t on t.id = a.ticket_type_id
      join public.orders o on o.id = a.order_id
      where a.order_id = order_lines_json.order_id
        -- Of one that was cancelled what was cancelled with it, which its totals have.
        and (a.status <> 'cancelled' or o.status = 'cancelled' and a.cancelled_at = o.cancelled_at)
      group by t.id, a.price
    ) l
  );
end
$$;
