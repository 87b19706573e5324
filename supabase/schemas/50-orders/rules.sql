-- What holds for an order whoever writes it: one trigger for each rule, which fire in the order of their numbers. 100 to 150 look at what was
-- written, 200 and 210 say what follows from it for the status, 300 and 310 for the deadline of the payment, 500 at the contact.
--   A new order: event, external_id, promo_code; follow_amounts; deadline, schedule; contact.
--   A change: external_id, kept, retained; transition, follow_amounts; deadline, schedule; contact.
-- Security definer where a rule reads what a registering key may not see, or calls what it may not call.

-- Its event takes registrations, and says organisation and currency. People leave out what Usher sets; keys have no right to these columns.
create function private.tg_orders__take_event() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events := private.lock_own_event_shared(new.event_id);
begin
  perform private.assert_takes_registrations(v_event);
  if private.is_by_hand() then
    perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
      'status', 'pending', 'payment_status', 'not_required', 'amount_retained', 0, 'currency', v_event.currency, 'reference', null,
      'promo_code_id', null, 'completed_at', null, 'cancelled_at', null, 'cancellation_reason', null,
      'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
    ));
  end if;
  new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
  new.currency := v_event.currency;
  -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
  new.reference := private.random_code(8);
  return new;
end
$$;
create trigger orders_100_event before insert on public.orders
  for each row execute function private.tg_orders__take_event();

-- A new order of the API or of a page gets the external_id of a cancelled one, unless its money is to be returned: that is looked up by it. An
-- order that exists takes none away. Of new orders that people add, private.assert_not_taken refuses them.
create function private.tg_orders__take_external_id() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_holder public.orders;
begin
  if tg_op = 'INSERT' and private.is_by_hand() then
    return new;
  end if;
  select o.* into v_holder
  from public.orders o
  -- As private.lock_scanned_attendee.
  where o.external_id = new.external_id and o.organisation_id is not distinct from new.organisation_id and o.id <> new.id;
  if not found then
    return new;
  elsif v_holder.status <> 'cancelled' then
    perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin) from public.orders o where o.id = v_holder.id;
  elsif tg_op = 'UPDATE' or v_holder.amount_paid > v_holder.amount_refunded then
    perform private.refuse(
      409, 'already_exists', 'Another object has this external_id already.', 'external_id',
      jsonb_build_object('object', 'order', 'id', v_holder.id),
      case when v_holder.amount_paid > v_holder.amount_refunded
        then 'A cancelled order keeps it until its money is refunded. You can also give that order another external_id.'
        else 'A cancelled order has it. Change or clear the external_id of that order.'
      end
    );
  end if;
  update public.orders o set external_id = null where o.id = v_holder.id and o.external_id = new.external_id;
  return new;
end
$$;
create trigger orders_110_external_id before insert or update of external_id on public.orders
  for each row when (new.external_id is not null)
  execute function private.tg_orders__take_external_id();

create function private.tg_orders__find_promo_code() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.payment_method is null then
    perform private.refuse_value(
      'promo_code', 'A promo code needs a payment method.', 'Send payment_method, or leave promo_code out.', "row" => to_jsonb(new)
    );
  end if;
  -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
  select c.id, c.code into new.promo_code_id, new.promo_code
  from public.promo_codes c
  where c.event_id = new.event_id and lower(c.code) = lower(normalize(btrim(new.promo_code), nfc));
  if not found then
    perform private.refuse_not_found('promo_code');
  end if;
  return new;
end
$$;
create trigger orders_120_promo_code before insert on public.orders
  for each row when (new.promo_code is not null)
  execute function private.tg_orders__find_promo_code();

-- A key has no right to these columns.
create function private.tg_orders__assert_kept() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_kept constant text := 'Usher keeps this field itself; it cannot be edited.';
  v_refusal text[] := case
    when (new.payment_method is null) <> (old.payment_method is null) then array[
      'payment_method', 'The payment method of an order is fixed, because ticket prices depend on it.', 'Create a new order.'
    ]
    -- Reminders set it to the present.
    when new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_reminded_at is distinct from now()
      then array['payment_reminded_at', v_kept, 'Call send_payment_reminder to remind the buyer now.']
    -- The reason comes with the cancellation; expired has to be true.
    when new.cancellation_reason is distinct from old.cancellation_reason
      and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
        is distinct from ('cancelled', 'expired', 'pending', true)
      then array['cancellation_reason', v_kept, 'Set status to cancelled instead.']
  end;
begin
  if v_refusal is not null then
    perform private.refuse(409, 'read_only_field', v_refusal[2], v_refusal[1], hint => v_refusal[3], "row" => to_jsonb(new));
  end if;
  return new;
end
$$;
create trigger orders_140_kept
  before update of payment_method, payment_reminded_at, cancellation_reason on public.orders
  for each row when (private.is_typed())
  execute function private.tg_orders__assert_kept();

-- Of columns: what the triggers of payments and tickets change says nothing of it.
create function private.tg_orders__assert_retainable() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_most bigint := private.amount_retainable(new);
begin
  if new.amount_retained > v_most then
    perform private.refuse_value(
      'amount_retained', 'amount_retained is more than was received, less refunds and the price of valid tickets.',
      format('At most %s in total, including %s already retained, in minor units.', v_most, old.amount_retained)
    );
  end if;
  return new;
end
$$;
create trigger orders_150_retained before update of amount_retained on public.orders
  for each row when (new.amount_retained <> old.amount_retained)
  execute function private.tg_orders__assert_retainable();

create function private.tg_orders__change_status() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if (old.status, new.status) not in (('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled'))
    and not (old.cancellation_reason = 'expired' and new.status = 'pending' and private.is_reopening(new.id)) then
    perform private.refuse(
      409, 'invalid_transition',
      case when old.cancellation_reason = 'expired'
        then 'Only reopen_order changes the status of an expired order.'
        else 'An order cannot change from its current status to this one.'
      end,
      'status', jsonb_build_object('from', old.status, 'to', new.status),
      case when old.cancellation_reason = 'expired'
        then 'Call reopen_order to reopen an expired order while places are left.'
        else 'Allowed: pending to completed or cancelled; completed to cancelled.'
      end, "row" => to_jsonb(new)
    );
  end if;
  new.cancelled_at := case when new.status = 'cancelled' then now() end;
  new.cancellation_reason := case when new.status = 'cancelled' then coalesce(new.cancellation_reason, 'requested') end;
  return new;
end
$$;
create trigger orders_200_transition before update on public.orders
  for each row when (new.status <> old.status)
  execute function private.tg_orders__change_status();

-- An order completes when nothing is due; one that is to be paid needs tickets as well, and has them where it has a subtotal. Its payment
-- status follows.
create function private.tg_orders__follow_amounts() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- The generated column total has no value yet in a BEFORE trigger.
  v_total bigint := new.subtotal - new.discount_total;
  v_received bigint := new.amount_paid - new.amount_refunded;
  v_retainable bigint;
begin
  if new.status = 'cancelled' or old.status = 'completed' then
    null; -- It stays what it is.
  elsif v_received >= v_total and (new.payment_method is null or new.subtotal > 0 or tg_op = 'UPDATE' and private.has_tickets(new.id)) then
    new.status := 'completed';
    new.completed_at := coalesce(new.completed_at, now());
    -- It comes to nothing: nobody has anything to pay by a deadline.
    if tg_op = 'UPDATE' and v_total = 0 and new.amount_paid = 0 then
      new.payment_due_at := null;
    end if;
  elsif new.status = 'completed' then
    perform private.refuse(
      409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
      hint => 'Record the payment instead.', "row" => to_jsonb(new)
    );
  end if;
  -- What is returned, voided or owed again is retained no longer.
  v_retainable := private.amount_retainable(new);
  new.amount_retained := least(new.amount_retained, v_retainable);
  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and v_received < v_total
      then case when v_received > 0 then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when v_retainable > new.amount_retained then 'refund_due'
    when new.amount_refunded > 0 and new.amount_refunded + new.amount_retained = new.amount_paid then 'refunded'
    else 'paid'
  end::public.payment_status;
  return new;
end
$$;
create trigger orders_210_follow_amounts before insert or update on public.orders
  for each row execute function private.tg_orders__follow_amounts();

-- What was typed is shown as it was read: 10.12.2026 may be 12 October, and whose order expires is told within seconds.
create function private.tg_orders__assert_deadline() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.payment_due_at is not distinct from old.payment_due_at then
    return new;
  elsif new.cancellation_reason = 'expired' then
    perform private.refuse_expired(new);
  elsif new.status = 'cancelled' then
    perform private.refuse(409, 'order_cancelled', 'A cancelled order has no payment deadline.', 'payment_due_at');
  elsif new.status = 'completed' then
    perform private.refuse(
      409, 'order_completed', 'A completed order keeps its tickets: a payment deadline would have no effect.', 'payment_due_at',
      hint => 'Cancel the order if payment is no longer expected.'
    );
  elsif new.payment_due_at < now() then
    perform private.refuse_value(
      'payment_due_at',
      format(
        'payment_due_at was read as %s, which is %s.',
        (select private.clock_time(new.payment_due_at, e.timezone) from public.events e where e.id = new.event_id),
        case when new.payment_due_at < new.created_at then 'before the order was made' else 'in the past' end
      ),
      'Write the year first, as in 2026-12-10 18:00 Europe/Berlin. To expire the order now, send expire_now to update_order, or set now() by hand.'
    );
  end if;
  return new;
end
$$;
create trigger orders_300_deadline before insert or update of payment_due_at on public.orders
  for each row execute function private.tg_orders__assert_deadline();

-- When it is to be paid by, when the courier reminds of that, 72 hours before, and when it looks next. An order that is pending is to be
-- paid: a complimentary one is completed from the beginning.
create function private.tg_orders__schedule_payment() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_is_paid_in_part boolean := new.status = 'pending' and new.amount_paid > new.amount_refunded;
  v_next timestamptz;
begin
  if new.status = 'pending' and tg_op = 'INSERT' then
    new.payment_due_at := coalesce(new.payment_due_at, (
      select new.created_at + make_interval(hours => 24 * e.payment_due_days) from public.events e where e.id = new.event_id
    ));
  -- What was overdue and paid in part is not paid at all: the buyer learns of it, and has time.
  elsif new.status = 'pending' and old.amount_paid > old.amount_refunded and not v_is_paid_in_part and new.payment_due_at <= now() then
    new.payment_due_at := now() + interval '72 hours';
  end if;
  if new.payment_due_at is distinct from old.payment_due_at then
    new.payment_reminded_at := null;
    -- In the middle, where the deadline is near from the beginning.
    new.payment_remind_at := case when new.send_email then new.payment_due_at - least(interval '72 hours', case
      when tg_op = 'INSERT' then greatest(new.payment_due_at - new.created_at, interval '0') / 2
      when old.status = 'cancelled' then (new.payment_due_at - now()) / 2
    end) end;
    -- Nobody is reminded twice a day, unless the deadline is too near for that.
    if tg_op = 'UPDATE' and new.payment_remind_at is not null then
      v_next := private.next_reminder_at(new.id);
      if v_next > new.payment_remind_at and v_next < new.payment_due_at - interval '12 hours' then
        new.payment_remind_at := v_next;
      end if;
    end if;
  -- One by hand stands for the courier's own of the next day as well.
  elsif new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_remind_at <= now() + interval '1 day' then
    new.payment_remind_at := null;
  end if;
  -- The buyer who paid a part is reminded again when the deadline comes.
  if v_is_paid_in_part and new.send_email and new.payment_remind_at is null
    and (new.payment_reminded_at < new.payment_due_at - interval '1 day') is not false then
    new.payment_remind_at := new.payment_due_at;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid - new.amount_refunded < new.subtotal - new.discount_total
      then least(new.payment_remind_at, case when not v_is_paid_in_part then new.payment_due_at end)
  end;
  return new;
end
$$;
create trigger orders_310_schedule before insert or update on public.orders
  for each row when (new.payment_method is not null)
  execute function private.tg_orders__schedule_payment();
