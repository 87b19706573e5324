-- Reopening: an order that has expired is pending again, with the tickets that its expiry took: the same prices, codes and reference. Its
-- places and uses of the promo code are taken anew, under the locks and within the limits of a registration. When something was sold, and
-- for how much, is not asked again: sales windows and the dates of the code were kept once.

-- Locks what the tickets of an order take, a promo code and places, and refuses when there is not enough of it.
create function private.assert_room_for("order" public.orders, attendee_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_promo_code public.promo_codes;
  v_uses bigint := (select count(a.promo_code_id) from public.attendees a where a.id = any (attendee_ids));
  v_left bigint;
  v_missing jsonb;
begin
  select c.* into v_promo_code from public.promo_codes c where c.id = "order".promo_code_id for no key update;
  if v_promo_code.times_redeemed + v_uses > v_promo_code.max_redemptions then
    perform private.refuse(
      409, 'promo_code_used_up', 'The promo code has too few uses left for these tickets.', 'promo_code',
      jsonb_build_object(
        'promo_code_id', v_promo_code.id, 'needed', v_uses, 'available', v_promo_code.max_redemptions - v_promo_code.times_redeemed
      ),
      'Raise its max_redemptions, or register the guests again without it.'
    );
  end if;
  select e.* into v_event from public.events e where e.id = "order".event_id;
  if v_event.capacity is not null then
    perform private.lock_event_capacity(v_event.id);
  end if;
  perform from public.ticket_types t
  where t.id = any (array(select a.ticket_type_id from public.attendees a where a.id = any (attendee_ids)))
  order by t.id
  for no key update;
  v_left := v_event.capacity - private.places_taken(v_event.id);
  v_missing := (
    select jsonb_agg(
      jsonb_build_object('ticket_type_id', t.id, 'name', t.name, 'needed', n.needed, 'available', t.available) order by t.place, t.id
    )
    from (select a.ticket_type_id, count(*) as needed from public.attendees a where a.id = any (attendee_ids) group by a.ticket_type_id) n
    cross join lateral (
      select t.id, t.name, t.position as place, t.quantity - least(t.quantity, t.quantity_sold + t.quantity_held) as available
      from public.ticket_types t
      where t.id = n.ticket_type_id
    ) t
    where t.available < n.needed
  );
  if v_missing is not null or v_left < cardinality(attendee_ids) then
    perform private.refuse(
      409, 'sold_out', 'Too few places are left for all tickets of this order.',
      case when v_missing is not null then 'ticket_type_id' else 'event_id' end,
      jsonb_strip_nulls(jsonb_build_object(
        'missing', v_missing,
        'event', case when v_left < cardinality(attendee_ids)
          then jsonb_build_object('needed', cardinality(attendee_ids), 'available', greatest(v_left, 0))
        end
      )),
      'Raise the quantity of the ticket types or the capacity of the event, or register fewer guests.'
    );
  end if;
end
$$;

-- Locks an order that has expired, and may be reopened, and its event before it: see 20-events/locks.sql.
create function private.lock_expired_order(order_id uuid) returns public.orders
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = lock_expired_order.order_id;
  perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
  v_event := private.lock_event_shared(v_order.event_id);
  select o.* into v_order from public.orders o where o.id = lock_expired_order.order_id for no key update;
  if v_order.status is distinct from 'cancelled' then
    perform private.refuse(
      409, 'invalid_transition', 'Only an expired order can be reopened.', 'status',
      jsonb_build_object('from', v_order.status, 'to', 'pending'),
      case v_order.status when 'pending' then 'Change its payment_due_at instead.' else 'A completed order keeps its tickets.' end
    );
  elsif v_order.cancellation_reason <> 'expired' then
    perform private.refuse(
      409, 'order_cancelled', 'This order was cancelled, not expired, and cannot be reopened.', 'order_id',
      jsonb_build_object('cancellation_reason', v_order.cancellation_reason), 'Register the guests again.'
    );
  end if;
  perform private.assert_takes_registrations(v_event);
  return v_order;
end
$$;

-- Answers the order, the number of its tickets that are back, and whom it told, as private.tell. Without payment_due_at the deadline is the
-- days of its event from now. Security definer: it changes attendees and takes places, which a key for orders may not.
create function private.reopen_order(
  order_id uuid,
  payment_due_at timestamptz,
  notify public.notify,
  out "order" public.orders,
  out tickets integer,
  out notice jsonb
)
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders := private.lock_expired_order(order_id);
  v_due_at timestamptz := coalesce(payment_due_at, (
    select now() + make_interval(hours => 24 * e.payment_due_days) from public.events e where e.id = v_order.event_id
  ));
  v_attendee_ids uuid[];
  v_reason text;
begin
  if v_due_at <= now() then
    perform private.refuse_value(
      'payment_due_at', 'The new deadline is not in the future.', 'Send a later time, or leave it out to use payment_due_days of the event.'
    );
  end if;
  -- Those that the expiry cancelled, in its transaction; whoever was cancelled before stays so.
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.order_id = v_order.id and a.status = 'cancelled' and a.cancelled_at = v_order.cancelled_at
    order by a.id
    for no key update
  );
  if v_attendee_ids = '{}' then
    perform private.refuse(
      409, 'order_cancelled', 'All tickets of this order were deleted.', 'order_id', hint => 'Register the guests again.'
    );
  end if;
  perform private.assert_room_for(v_order, v_attendee_ids);

  perform set_config('usher.reopening', v_order.id::text, true);
  update public.orders o set status = 'pending', payment_due_at = v_due_at where o.id = v_order.id;
  update public.attendees a set status = 'awaiting_payment' where a.id = any (v_attendee_ids);
  perform set_config('usher.reopening', '', true);
  select o.* into "order" from public.orders o where o.id = v_order.id;
  tickets := cardinality(v_attendee_ids);
  -- The buyer was told that it is cancelled; a confirmation has again what is to be paid, by when, and for whom.
  v_reason := case when coalesce(notify, 'nobody') = 'nobody' then 'notify_nobody' else private.unmailed_because("order".email, "order".send_email, notify) end;
  if v_reason is null then
    insert into public.emails (organisation_id, kind, order_id) values (v_order.organisation_id, 'order_confirmation', v_order.id);
  end if;
  notice := case when v_reason is null
    then '{"emails": 1, "told": 1, "not_told": []}'
    else jsonb_build_object('not_told', jsonb_build_array(jsonb_build_object('reason', v_reason, 'count', 1)))
  end;
end
$$;
grant execute on function private.reopen_order to scope_orders_write;

create function api.reopen_order(
  order_id uuid,
  payment_due_at timestamptz default null,
  notify public.notify default null,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_reopened record;
  v_effect json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    v_reopened := private.reopen_order(order_id, payment_due_at, notify);
    v_effect := private.effect_json(
      dry_run,
      jsonb_build_object('orders', 1, 'attendees', v_reopened.tickets, 'refund_due', 0, 'currency', (v_reopened."order").currency),
      v_reopened.notice
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_change(
    order_id, v_effect, array[private.warning_of_deadline(v_reopened."order")], idempotency_key, request_fingerprint, dry_run
  );
end
$$;
comment on function api.reopen_order is
  'Reopens an expired order with its tickets and a new deadline while places are left, or reports the effect: 200 with the order. 404 not_found; 409 invalid_transition, order_cancelled, event_not_published, event_ended, sold_out, promo_code_used_up; 422 validation_failed.';
grant execute on function api.reopen_order to scope_orders_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.reopen_order(order_id uuid, payment_due_at timestamptz default null, notify public.notify default 'nobody')
returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.assert_manages_order(order_id);
  return (private.reopen_order(order_id, payment_due_at, notify)).tickets;
end
$$;
comment on function public.reopen_order is
  'Reopens an expired order while places are left, with the given deadline or that of the event. mailed and everybody e-mail the buyer. Returns the number of restored tickets.';
revoke all on function public.reopen_order from public, anon, service_role;
grant execute on function public.reopen_order to authenticated;
