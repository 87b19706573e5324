-- Reminders of payments by hand: once a day at most, those of the courier (50-orders/deadlines.sql) included.

-- When the buyer of an order may be reminded again; null: nobody has reminded them, or it did not reach them.
create function private.next_reminder_at(order_id uuid) returns timestamptz
language plpgsql stable security definer set search_path = '' set enable_seqscan = off
as $$
begin
  return (
    select max(e.created_at) + interval '1 day'
    from public.emails e
    where e.order_id = next_reminder_at.order_id
      and e.kind = 'payment_reminder'
      and e.status not in ('cancelled', 'failed', 'bounced')
  );
end
$$;

-- Why the buyer is not e-mailed; null: they are.
create function private.unmailed_because("order" public.orders, notify public.notify) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return case
    when "order".email = private.erased_fields() ->> 'email' then 'erased'
    when lower("order".email) like '%.invalid' then 'no_address'
    when notify = 'mailed' and not "order".send_email then 'send_email_false'
  end;
end
$$;

-- The order, once its buyer is reminded. Security definer: no role may write e-mails.
create function private.remind_buyer(order_id uuid) returns public.orders
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_reason text;
  v_next timestamptz;
begin
  -- Locked, so that a payment of this moment is seen, and a second reminder waits for the first.
  select o.* into v_order
  from public.orders o
  where o.id = remind_buyer.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  elsif v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status = 'cancelled' then
    perform private.refuse(409, 'order_cancelled', 'A cancelled order is not to be paid.', 'order_id');
  elsif private.amount_due(v_order) = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif v_order.status = 'pending' and v_order.payment_due_at <= now() then
    perform private.refuse(
      409, 'order_expired', 'The deadline of this order has passed, and it expires now.', 'order_id',
      jsonb_build_object('payment_due_at', private.rfc3339(v_order.payment_due_at)), 'Give it more time with update_order first.'
    );
  end if;
  v_reason := private.unmailed_because(v_order, 'mailed');
  v_next := private.next_reminder_at(v_order.id);
  if v_reason is not null then
    perform private.refuse(
      409, 'buyer_not_mailed', 'The buyer of this order gets no e-mails.', 'order_id', jsonb_build_object('reason', v_reason),
      'Remind them by telephone or in an e-mail of your own.'
    );
  elsif v_next > now() then
    perform private.refuse(
      409, 'reminded_recently', 'The buyer was reminded within the last 24 hours.', 'order_id',
      jsonb_build_object('next_reminder_at', private.rfc3339(v_next)),
      format('The next reminder is possible from %s on.', private.rfc3339(v_next))
    );
  end if;
  update public.orders o set payment_reminded_at = now() where o.id = v_order.id returning * into v_order;
  perform private.queue_order_emails('payment_reminder', array[v_order.id]);
  return v_order;
end
$$;
grant execute on function private.remind_buyer to scope_orders_write;

create function api.send_payment_reminder(
  order_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_before public.orders;
  v_order public.orders;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select o.* into v_before from public.orders o where o.id = send_payment_reminder.order_id;
    v_order := private.remind_buyer(order_id);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object('orders', 1, 'attendees', 0, 'refund_due', 0, 'currency', v_order.currency),
        '{"emails": 1, "told": 1}'
      ),
      'data', private.whole_order_json(case when dry_run then v_before else v_order end)
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.send_payment_reminder is
  'E-mails the buyer of an order that something is due, or reports that it would: 200 with the order. 404 not_found; 409 nothing_due, order_cancelled, order_expired, buyer_not_mailed, reminded_recently.';
grant execute on function api.send_payment_reminder to scope_orders_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function private.assert_manages_order(order_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.orders o
    where o.id = assert_manages_order.order_id
      and (
        private.claims() ->> 'role' is distinct from 'authenticated'
        or o.organisation_id in (select private.organisations_as('{owner,manager}'))
      )
  ) then
    perform private.refuse_not_found('order_id');
  end if;
end
$$;

create function public.send_payment_reminder(order_id uuid) returns text
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.assert_manages_order(order_id);
  return (private.remind_buyer(order_id)).email;
end
$$;
comment on function public.send_payment_reminder is
  'E-mails the buyer of an order that something is due, at most once a day. Returns the address that it goes to.';
revoke all on function public.send_payment_reminder from public, anon, service_role;
grant execute on function public.send_payment_reminder to authenticated;
