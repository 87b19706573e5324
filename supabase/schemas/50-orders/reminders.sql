-- Reminders of payments by hand: once a day at most, those of the courier (50-orders/deadlines.sql) included.

-- When the buyer of an order may be reminded again; null: nobody has reminded them, or it did not reach them.
create function private.next_reminder_at(order_id uuid) returns timestamptz
language plpgsql stable security definer set search_path = ''
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

-- Why the buyer is not reminded now, as the code of the error; null: they are.
create function private.not_reminded_because("order" public.orders) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return case
    when "order".cancellation_reason = 'expired' then 'order_expired'
    when "order".status = 'cancelled' then 'order_cancelled'
    when private.amount_due("order") = 0 then 'nothing_due'
    when "order".status = 'pending' and "order".payment_due_at <= now() and "order".amount_paid = "order".amount_refunded then 'order_expired'
    when private.unmailed_because("order".email, "order".send_email, 'mailed') is not null then 'buyer_not_mailed'
    when private.next_reminder_at("order".id) > now() then 'reminded_recently'
  end;
end
$$;

-- The order, once its buyer is reminded. Security definer: no role may write e-mails.
create function private.remind_buyer(order_id uuid) returns public.orders
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Locked, so that a payment of this moment is seen, and a second reminder waits for the first.
  v_order public.orders := private.lock_order_of_money(order_id, 'order_id');
  v_next timestamptz;
begin
  case private.not_reminded_because(v_order)
    when 'order_expired' then
      if v_order.status = 'cancelled' then
        perform private.refuse_expired(v_order);
      end if;
      perform private.refuse(
        409, 'order_expired', 'The deadline of this order has passed, and the order is expiring.', 'order_id',
        jsonb_build_object('payment_due_at', private.rfc3339(v_order.payment_due_at)), 'Change payment_due_at first.'
      );
    when 'order_cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order cannot be paid.', 'order_id');
    when 'nothing_due' then
      perform private.refuse(
        409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
      );
    when 'buyer_not_mailed' then
      perform private.refuse(
        409, 'buyer_not_mailed', 'This order has e-mails switched off.', 'order_id',
        jsonb_build_object('reason', private.unmailed_because(v_order.email, v_order.send_email, 'mailed')),
        'Remind them by telephone or in an e-mail of your own.'
      );
    when 'reminded_recently' then
      v_next := private.next_reminder_at(v_order.id);
      perform private.refuse(
        409, 'reminded_recently', 'The buyer was reminded within the last 24 hours.', 'order_id',
        jsonb_build_object('next_reminder_at', private.rfc3339(v_next)),
        format('The next reminder is possible from %s on.', private.rfc3339(v_next))
      );
    else
      update public.orders o set payment_reminded_at = now() where o.id = v_order.id returning * into v_order;
      perform private.queue_order_emails('payment_reminder', array[v_order.id]);
  end case;
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
  v_order public.orders;
  v_effect json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    v_order := private.remind_buyer(order_id);
    v_effect := private.effect_of_change(v_order, dry_run, notice => '{"emails": 1, "told": 1}');
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_change(order_id, v_effect, '{}', idempotency_key, request_fingerprint, dry_run);
end
$$;
comment on function api.send_payment_reminder is
  'E-mails the buyer a payment reminder, or reports the effect: 200 with the order. 404 not_found; 409 nothing_due, order_cancelled, order_expired, buyer_not_mailed, reminded_recently.';
grant execute on function api.send_payment_reminder to scope_orders_write;

-- An order with something due, and what became of its reminder, as the operation answers it.
create type private.reminder as (
  order_id uuid,
  reference text,
  name text,
  email text,
  amount_due bigint,
  currency text,
  -- Null: left for the next call.
  result text,
  code text,
  next_reminder_at text
);

-- Reminds the buyers of an event, or those of its orders that are given: at most 1,000, whose deadlines come first. Answers all that have
-- something due, or all that are given. Security definer: no role may write e-mails.
create function private.remind_buyers(event_id uuid, order_ids uuid[]) returns setof private.reminder
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Under the event lock no order becomes unpaid, but for a void or a refund.
  v_event public.events := private.lock_own_event_shared(event_id);
  v_due uuid[];
  v_reminded uuid[];
begin
  v_due := case
    when order_ids is null then array(
      select o.id
      from public.orders o
      where o.event_id = v_event.id
        and o.status in ('pending', 'completed')
        and o.payment_status in ('awaiting_payment', 'partially_paid')
    )
    else array(select o.id from public.orders o where o.id = any (order_ids) and o.event_id = v_event.id)
  end;
  if cardinality(v_due) < (select count(distinct i) from unnest(order_ids) i) then
    perform private.refuse_not_found('order_ids');
  end if;

  v_reminded := array(
    select o.id
    from public.orders o
    where o.id = any (v_due) and private.not_reminded_because(o) is null
    order by o.payment_due_at, o.id
    limit 1000
  );
  -- Locked, so that a payment of this moment is seen, and a second reminder waits for the first: then those that still are to be.
  perform from public.orders o where o.id = any (v_reminded) order by o.id for no key update;
  v_reminded := array(
    select o.id
    from public.orders o
    where o.id = any (v_reminded) and private.not_reminded_because(o) is null
  );
  update public.orders o set payment_reminded_at = now() where o.id = any (v_reminded);
  perform private.queue_order_emails('payment_reminder', v_reminded);

  return query
    select
      o.id, o.reference, o.name, o.email, private.amount_due(o), o.currency,
      case when o.id = any (v_reminded) then 'reminded' when n.code is not null then 'not_reminded' end,
      n.code,
      case when n.code = 'reminded_recently' then private.rfc3339(private.next_reminder_at(o.id)) end
    from public.orders o
    cross join lateral (
      select case when o.id <> all (v_reminded) then private.not_reminded_because(o) end as code
    ) n
    -- What was paid meanwhile is told of those that were asked for.
    where o.id = any (v_due) and (order_ids is not null or private.amount_due(o) > 0)
    order by o.id = any (v_reminded) desc, o.payment_due_at, o.id;
end
$$;
grant execute on function private.remind_buyers to scope_orders_write;

create function api.send_payment_reminders(
  event_id uuid,
  order_ids uuid[] default null,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_reminders private.reminder[];
  v_reminded bigint;
  v_not_told jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    v_reminders := array(select r from private.remind_buyers(event_id, order_ids) r);
    v_reminded := (select count(*) from unnest(v_reminders) r where r.result = 'reminded');
    v_not_told := (
      select coalesce(jsonb_agg(jsonb_build_object('reason', c.code, 'count', c.times) order by c.code), '[]')
      from (select r.code, count(*) as times from unnest(v_reminders) r where r.code is not null group by r.code) c
    );
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object(
          'orders', v_reminded, 'attendees', 0, 'refund_due', 0,
          'currency', (select e.currency from public.events e where e.id = event_id)
        ),
        jsonb_build_object('emails', v_reminded, 'told', v_reminded, 'not_told', v_not_told)
      ),
      'data', json_build_object(
        'object', 'payment_reminders',
        'event_id', event_id,
        'reminded', v_reminded,
        'not_reminded', (select count(*) from unnest(v_reminders) r where r.code is not null),
        'remaining', (select count(*) from unnest(v_reminders) r where r.result is null),
        'results', (
          select coalesce(json_agg(r), '[]') from (select r.* from unnest(v_reminders) r limit 1000) r where r.result is not null
        )
      )
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'send_payment_reminders', jsonb_build_object('event_id', event_id, 'order_ids', order_ids),
      json_build_object('told', v_reminded)
    );
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.send_payment_reminders is
  'E-mails payment reminders to the buyers of an event, or reports the effect: 200 with the number reminded, and the rest with a reason. 404 not_found; 422 validation_failed, idempotency_key_reused.';
grant execute on function api.send_payment_reminders to scope_orders_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function private.assert_manages_order(order_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.orders o where o.id = assert_manages_order.order_id and private.is_managed(o.organisation_id)
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
  'E-mails the buyer a payment reminder, at most once a day. Returns the address.';
revoke all on function public.send_payment_reminder from public, anon, service_role;
grant execute on function public.send_payment_reminder to authenticated;

create function public.send_payment_reminders(event_id uuid)
returns table (name text, email text, reference text, amount_due bigint, currency text, result text)
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.events e where e.id = send_payment_reminders.event_id and private.is_managed(e.organisation_id)
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  return query
    select r.name, r.email, r.reference, r.amount_due, r.currency, coalesce(r.code, r.result)
    from private.remind_buyers(send_payment_reminders.event_id, null) r
    where r.result is not null;
end
$$;
comment on function public.send_payment_reminders is
  'E-mails a payment reminder to all buyers of an event with an amount due, each at most once a day and 1,000 at a time. Returns the number reminded, and the rest with a reason.';
revoke all on function public.send_payment_reminders from public, anon, service_role;
grant execute on function public.send_payment_reminders to authenticated;
