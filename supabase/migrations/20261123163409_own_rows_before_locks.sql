-- own rows before locks. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function api.check_in_many (
  calls jsonb
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_event_id uuid;
begin
  -- As check_in_batch does: tickets are locked in one order before the first is judged.
  for v_event_id in
    select e.id from public.events e where e.id in (select (c ->> 'event_id')::uuid from unnest(v_calls) c) order by 1
  loop
    perform private.lock_orders_of(v_event_id, v_calls);
  end loop;
  return to_json(private.answer_calls('check_in_calls', v_calls));
end
$$;

create or replace function private.lock_own_event_shared (
  event_id uuid
)
  returns public.events
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = lock_own_event_shared.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  v_event := private.lock_event_shared(event_id);
  -- Deleted meanwhile.
  if v_event.id is null then
    perform private.refuse_not_found('event_id');
  end if;
  return v_event;
end
$$;

create or replace function private.remind_buyer (
  order_id uuid
)
  returns public.orders
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_next timestamptz;
begin
  -- Locked, so that a payment of this moment is seen, and a second reminder waits for the first.
  select o.* into v_order
  from public.orders o
  where o.id = remind_buyer.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  v_next := private.next_reminder_at(v_order.id);
  case private.not_reminded_because(v_order, v_next)
    when 'order_expired' then
      if v_order.status = 'cancelled' then
        perform private.refuse_expired(v_order);
      end if;
      perform private.refuse(
        409, 'order_expired', 'The deadline of this order has passed, and it expires now.', 'order_id',
        jsonb_build_object('payment_due_at', private.rfc3339(v_order.payment_due_at)), 'Give it more time with update_order first.'
      );
    when 'order_cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order is not to be paid.', 'order_id');
    when 'nothing_due' then
      perform private.refuse(
        409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
      );
    when 'buyer_not_mailed' then
      perform private.refuse(
        409, 'buyer_not_mailed', 'The buyer of this order gets no e-mails.', 'order_id',
        jsonb_build_object('reason', private.unmailed_because(v_order, 'mailed')),
        'Remind them by telephone or in an e-mail of your own.'
      );
    when 'reminded_recently' then
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

create or replace function private.tg_check_ins__judge()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_attendee public.attendees;
  v_point public.check_in_points;
  v_point_is_gone boolean := false;
  v_code text := private.as_ticket_code(new.code);
  v_key text;
begin
  if new.code is null and new.attendee_id is null then
    perform private.refuse_value('code', 'Give the code of the ticket, or attendee_id.');
  elsif new.code is not null and new.attendee_id is not null then
    perform private.refuse_value('attendee_id', 'Give either the code of the ticket or attendee_id, not both.');
  end if;

  select e.* into v_event from public.events e where e.id = new.event_id;
  if private.is_foreign(v_event.organisation_id) then
    perform private.refuse_not_found('event_id');
  end if;
  new.organisation_id := v_event.organisation_id;
  -- A scanner's clock may be ahead: no scan is later than now.
  new.scanned_at := least(new.scanned_at, now());

  if new.code is null then
    -- Not `=`: the planner might prefer an index that begins with the organisation.
    select a.* into v_attendee
    from public.attendees a
    where a.id = new.attendee_id and a.organisation_id is not distinct from new.organisation_id
    for no key update;
  else
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = new.organisation_id and a.ticket_code = v_code
    for no key update;
  end if;
  new.attendee_id := v_attendee.id;

  if new.check_in_point_id is not null then
    -- Locked, so that its admission is the one that the key is made by: see tg_check_in_points__assert_unused.
    select p.* into v_point
    from public.check_in_points p
    where p.id = new.check_in_point_id and p.event_id = new.event_id
    for key share;
    if not found then
      -- A scan made offline is logged all the same: the person may be in, and the others of its batch are not to wait.
      if new.scan_id is null then
        perform private.refuse_not_found('check_in_point_id');
      end if;
      new.check_in_point_id := null;
      v_point_is_gone := true;
    end if;
  end if;
  v_key := concat_ws(
    '/', coalesce(new.check_in_point_id::text, 'event'),
    case v_point.admission when 'once_per_day' then to_char(new.scanned_at at time zone v_event.timezone, 'YYYY-MM-DD') end
  );

  -- Whoever leaves is asked for nothing but an entry.
  new.reason := case
    when v_event.status = 'cancelled' and new.direction = 'entry' then 'event_cancelled'
    when v_attendee.id is null then 'not_found'
    when v_attendee.event_id <> new.event_id then 'wrong_event'
    when new.direction = 'exit' then null
    when v_attendee.status = 'cancelled' then 'cancelled'
    when v_attendee.status = 'awaiting_payment' then 'unpaid'
    when v_point_is_gone or v_point.status = 'archived' or new.scanned_at < v_point.opens_at or new.scanned_at >= v_point.closes_at
      then 'point_closed'
    when v_point.ticket_type_ids <> '{}' and v_attendee.ticket_type_id <> all (v_point.ticket_type_ids) then 'not_admitted_here'
  end::public.check_in_reason;
  -- The same statement may hold an earlier scan of the ticket: it is in the log already, while the attendee is updated at its end.
  new.earlier_check_in_id := null;
  if new.reason is null and new.direction = 'entry' then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.admission_key = v_key;
    if found then
      new.reason := 'already_checked_in';
    end if;
  elsif new.reason is null then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.check_in_point_id is not distinct from new.check_in_point_id
      and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null and c.exited_at is null
    order by c.scanned_at desc, c.id desc
    limit 1;
    if not found or v_point_is_gone then
      new.earlier_check_in_id := null;
      new.reason := 'not_inside';
    end if;
  end if;
  if new.reason is null and not new.admitted then
    new.earlier_check_in_id := null;
    new.reason := 'turned_away';
  end if;

  new.result := case when new.reason is null then 'accepted' else 'rejected' end::public.check_in_result;
  new.admission_key := case when new.result = 'accepted' and new.direction = 'entry' then v_key end;
  new.exited_at := null;
  new.undone_at := null;
  if new.result = 'accepted' and new.direction = 'exit' then
    update public.check_ins c
    set
      exited_at = greatest(c.scanned_at, new.scanned_at),
      admission_key = case when v_point.admission = 're_entry' then null else c.admission_key end
    where c.id = new.earlier_check_in_id;
  end if;
  return new;
end
$$;

create or replace function private.tg_orders__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_holder public.orders;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_own_event_shared(new.event_id);
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      select o.* into v_holder
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
      if v_holder.status = 'cancelled' and v_holder.amount_paid = v_holder.amount_refunded then
        -- As of a cancelled attendee: see tg_attendees__guard. Money that is to be returned is looked up by the identifier.
        update public.orders o set external_id = null where o.id = v_holder.id and o.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin) from public.orders o where o.id = v_holder.id;
      end if;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid, new.amount_voided, new.amount_refunded) <> (0, 0, 0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(
        new.reference, new.promo_code_id, new.completed_at, new.cancelled_at, new.cancellation_reason, new.payment_remind_at,
        new.payment_reminded_at, new.payment_check_at
      ) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'amount_voided', 0, 'amount_refunded', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null,
        'cancellation_reason', null, 'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      if new.payment_method is null then
        perform private.refuse_value('promo_code', 'A promo code needs a payment method.', 'Send payment_method, or leave promo_code out.');
      end if;
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
  else
    -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.amount_voided, new.amount_refunded) <> (old.amount_voided, old.amount_refunded) then
        perform private.refuse(
          409, 'read_only_field', 'amount_voided and amount_refunded are added up from rows of their own and cannot be edited.', 'amount_refunded',
          hint => 'Add a row to payment_voids or refunds instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'subtotal and discount_total are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
          hint => 'Create a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) and not (old.cancellation_reason = 'expired' and new.status = 'pending' and private.is_reopening(new.id)) then
      perform private.refuse(
        409, 'invalid_transition',
        case when old.cancellation_reason = 'expired'
          then 'The status of an order that has expired is changed by reopen_order alone.'
          else 'An order cannot go from its present status to this one.'
        end,
        'status', jsonb_build_object('from', old.status, 'to', new.status),
        case when old.cancellation_reason = 'expired'
          then 'Call reopen_order: it makes an order that has expired pending again, while there are places.'
          else 'Allowed: pending to completed or cancelled; completed to cancelled.'
        end
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;

  -- Derived fields: completion, payment status and timestamps.
  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded = new.amount_paid then 'refunded'
    else 'paid'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when new.status <> 'cancelled' then null
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    else now()
  end;
  -- The reason comes with the cancellation; expired has to be true.
  if tg_op = 'UPDATE' and pg_trigger_depth() = 1 and new.cancellation_reason is distinct from old.cancellation_reason
    and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
      is distinct from ('cancelled', 'expired', 'pending', true) then
    perform private.refuse(
      409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'cancellation_reason',
      hint => 'Set status to cancelled instead.'
    );
  end if;
  new.cancellation_reason := case when new.status = 'cancelled' then coalesce(new.cancellation_reason, 'requested') end;
  if tg_op = 'UPDATE'
    and (
      new.name, new.email, new.company, new.status, new.subtotal, new.amount_paid, new.amount_refunded, new.payment_due_at, new.external_id,
      new.metadata
    ) is distinct from (
      old.name, old.email, old.company, old.status, old.subtotal, old.amount_paid, old.amount_refunded, old.payment_due_at, old.external_id,
      old.metadata
    ) then
    new.version := old.version + 1;
  end if;
  return new;
end
$$;

create or replace function private.tg_payment_voids__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_amount bigint;
begin
  select o.* into v_order
  from public.orders o
  where o.id = (select p.order_id from public.payments p where p.id = new.payment_id) and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('payment_id');
  end if;
  select p.amount into v_amount from public.payments p where p.id = new.payment_id;
  if exists (select from public.payment_voids v where v.payment_id = new.payment_id) then
    perform private.refuse(409, 'payment_voided', 'This payment was voided before.', 'payment_id');
  elsif v_order.amount_paid - v_amount < v_order.amount_refunded then
    perform private.refuse(
      409, 'payment_refunded', 'More was refunded than would be left of the payments.', 'payment_id',
      jsonb_build_object('amount_refunded', v_order.amount_refunded),
      'A payment whose money was returned stays: it was received.'
    );
  end if;
  new.organisation_id := v_order.organisation_id;
  update public.orders o
  set amount_paid = o.amount_paid - v_amount, amount_voided = o.amount_voided + v_amount
  where o.id = v_order.id;
  return new;
end
$$;

create or replace function private.tg_payments__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  select o.* into v_order
  from public.orders o
  where o.id = new.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_due := private.amount_due(v_order);

  -- A completed order is payable again once a payment was voided, or money for a ticket that stands was returned.
  if v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status <> 'pending' and v_due = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record at most what is due, and refund the rest.'
    );
  end if;

  -- Before the insert, so that a second payment in the same statement sees the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method
  where o.id = v_order.id;
  return new;
end
$$;

create or replace function private.tg_refunds__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_left bigint;
begin
  select o.* into v_order
  from public.orders o
  where o.id = new.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_left := v_order.amount_paid - v_order.amount_refunded;
  if v_order.status <> 'cancelled' and (v_order.status = 'pending' or v_order.amount_paid < v_order.total) then
    perform private.refuse(
      409, 'payment_due', 'Something is still due for this order.', 'order_id', jsonb_build_object('status', v_order.status),
      'Cancel the order first, or void the payment if it was recorded by mistake.'
    );
  elsif v_left = 0 then
    perform private.refuse(409, 'nothing_refundable', 'Nothing was paid for this order that is not refunded yet.', 'order_id');
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The refund is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_left then
    perform private.refuse(
      409, 'refund_too_high', 'The refund is more than what was paid and not refunded yet.', 'amount',
      jsonb_build_object('amount_left', v_left), 'Record at most amount_left.'
    );
  end if;
  update public.orders o set amount_refunded = o.amount_refunded + new.amount where o.id = v_order.id;
  return new;
end
$$;

create or replace function private.tg_waiting_list_entries__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_ticket_type public.ticket_types;
begin
  if tg_op = 'INSERT' then
    v_event := private.lock_own_event_shared(new.event_id);
    if new.status <> 'waiting' or num_nonnulls(new.offered_at, new.offer_expires_at) > 0 then
      perform private.assert_as_given(
        to_jsonb(new), jsonb_build_object('status', 'waiting', 'offered_at', null, 'offer_expires_at', null)
      );
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    perform private.assert_takes_registrations(v_event);
    perform private.lock_event_capacity(new.event_id);
    select t.* into v_ticket_type
    from public.ticket_types t
    where t.id = new.ticket_type_id and t.event_id = new.event_id
    for no key update;
    if not found then
      perform private.refuse_not_found('ticket_type_id');
    end if;
    if not private.is_on_sale(v_ticket_type) then
      perform private.refuse_not_on_sale(v_ticket_type);
    end if;
    if v_ticket_type.min_per_order > 1 then
      perform private.refuse(
        409, 'quantity_not_allowed', 'The waiting list is for one ticket, and an order has more of this type.', 'ticket_type_id',
        jsonb_build_object('ticket_type_id', v_ticket_type.id, 'min_per_order', v_ticket_type.min_per_order)
      );
    end if;
    perform private.assert_sold_out(v_event, v_ticket_type);
    -- Made under the locks: the order of ids is that of joining.
    new.id := private.uuid_v7();
  else
    -- Depth 1 is a statement of a person or an operation; triggers offer and accept one level deeper.
    if new.status <> old.status and not (
      (old.status, new.status) in (('waiting', 'cancelled'), ('offered', 'cancelled'))
      or (old.status, new.status) = ('offered', 'expired') and new.offer_expires_at <= now()
      or (old.status, new.status) in (('waiting', 'offered'), ('offered', 'accepted')) and pg_trigger_depth() > 1
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An entry of the waiting list cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: waiting or offered to cancelled; offered to expired after its deadline. Places are offered by Usher.'
      );
    end if;
    if new.offer_expires_at is distinct from old.offer_expires_at
      and (old.status, new.status) not in (('waiting', 'offered'), ('offered', 'offered')) then
      perform private.refuse(
        409, 'read_only_field', 'Only an offer that stands has a deadline to be moved.', 'offer_expires_at', hint => 'Leave it as it is.'
      );
    elsif new.status = 'offered' and new.offer_expires_at is null then
      perform private.refuse_value('offer_expires_at', 'An offer has a deadline.', 'Move it, or cancel the entry.');
    end if;
  end if;

  -- Before the unique indexes, whose errors would make two of these wait for one another.
  if new.status in ('waiting', 'offered') and (tg_op = 'INSERT' or lower(new.email) <> old.email_lower) then
    perform private.refuse_taken('email', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.ticket_type_id = new.ticket_type_id and w.email_lower = lower(new.email) and w.status in ('waiting', 'offered')
      and w.id <> new.id;
  end if;
  if tg_op = 'INSERT' or new.external_id is distinct from old.external_id then
    perform private.refuse_taken('external_id', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.organisation_id = new.organisation_id and w.external_id = new.external_id and w.id <> new.id;
  end if;
  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;
  return new;
end
$$;

create or replace function private.tg_webhook_endpoints__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_most_endpoints constant integer := 50;
begin
  -- The policy refuses one of another organisation, which nobody waits for.
  if tg_op = 'INSERT' and not private.is_foreign(new.organisation_id) then
    -- One at a time: two concurrent inserts would not count each other.
    perform pg_advisory_xact_lock(5, hashtext(new.organisation_id::text));
    if (select count(*) from public.webhook_endpoints w where w.organisation_id = new.organisation_id) >= v_most_endpoints then
      perform private.refuse(
        409, 'too_many_webhook_endpoints', format('An organisation has at most %s webhook endpoints.', v_most_endpoints),
        hint => 'Delete one that is not needed, or let one endpoint subscribe to more types.'
      );
    end if;
  end if;
  -- What is already pending is still sent, so the old types count, too. Disabling needs none of these scopes.
  if private.current_api_key_id() is not null then
    if tg_op = 'INSERT' then
      perform private.assert_scopes_to_read(new.types);
    elsif (new.url, new.types) is distinct from (old.url, old.types) or (old.status = 'disabled' and new.status = 'enabled') then
      perform private.assert_scopes_to_read(new.types || old.types);
    end if;
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if tg_op = 'INSERT' or new.event_ids is distinct from old.event_ids then
    new.event_ids := array(select distinct e from unnest(new.event_ids) e order by e);
    if cardinality(new.event_ids) > 100 then
      perform private.refuse_value('event_ids', 'An endpoint names at most 100 events.', 'Leave event_ids empty for all events.');
    end if;
    if exists (
      -- One of a draft that was deleted since may stay.
      select from unnest(new.event_ids) i (id)
      where i.id <> all (coalesce(old.event_ids, '{}'))
        and not exists (select from public.events e where e.id = i.id and e.organisation_id = new.organisation_id)
    ) then
      perform private.refuse_not_found('event_ids');
    end if;
  end if;
  if new.status = 'enabled' then
    new.disabled_reason := null;
    -- Once enabled again or given a new URL, an endpoint has five days again before it is disabled.
    if tg_op = 'UPDATE' and (old.status = 'disabled' or new.url <> old.url) then
      new.failing_since := null;
    end if;
  end if;
  return new;
end
$$;

revoke all on function private.is_foreign(uuid) from authenticated;

grant execute on function private.is_foreign(uuid) to authenticated;

revoke all on function private.is_foreign(uuid) from scope_events_write;

grant execute on function private.is_foreign(uuid) to scope_events_write;

revoke all on function private.lock_own_event_shared(uuid) from public;
