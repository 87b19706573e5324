-- What a payment or a refund, or the deadline of an order, is warned of.

-- Another payment, or another refund, has the same reference. Partial ones may share the number of an invoice, so they are told of their order.
create function private.warning_of_repeated_reference(what text, order_id uuid, other_order_id uuid) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  if other_order_id is null then
    return null;
  elsif other_order_id = warning_of_repeated_reference.order_id then
    return private.warning('reference_repeated', format('Another %s of this order has the same external_reference.', what));
  end if;
  return private.warning('reference_repeated', format(
    'A %s of %s has the same external_reference.',
    what,
    case when private.reads_orders()
      then 'order ' || (select o.reference from public.orders o where o.id = other_order_id)
      else 'another order'
    end
  ));
end
$$;

-- 49 for 49.00, where that is all there was to pay or to return.
create function private.warning_of_amount(amount bigint, expected bigint, currency text, what text, remedy text) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return case when private.minor_units(currency) > 1 and amount * private.minor_units(currency) = expected then private.warning(
    'amount_low',
    format(
      '%s is recorded, and %s was %s. Amounts are in minor units. %s',
      private.money_text(amount, currency), private.money_text(expected, currency), what, format(remedy, expected, expected - amount)
    )
  ) end;
end
$$;

-- Of a payment that was just recorded, as those of a refund. Security definer: they also read the order of a key that may only write orders.
create function private.warnings_of_payment(payment public.payments) returns jsonb[]
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = payment.order_id and not private.is_foreign(o.organisation_id);
  return array[
    case when payment.external_reference is not null then private.warning_of_repeated_reference('payment', payment.order_id, (
      select p.order_id
      from public.payments p
      where p.organisation_id = payment.organisation_id and p.external_reference = payment.external_reference and p.id <> payment.id
        and not exists (select from public.payment_voids v where v.payment_id = p.id)
      limit 1
    )) end,
    private.warning_of_amount(
      payment.amount, private.amount_due(v_order) + payment.amount, v_order.currency, 'due',
      'If that is the amount received, void this payment and record %s.'
    ),
    -- A day for dates without a time, and of another time zone.
    case when payment.received_at < v_order.created_at - interval '1 day' then private.warning(
      'received_before_order', 'received_at is more than a day before the order. If that is a mistake, void the payment and record it again.'
    ) end
  ];
end
$$;
grant execute on function private.warnings_of_payment to scope_orders_write;

create function private.warnings_of_refund(refund public.refunds) returns jsonb[]
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_former public.orders;
  v_due_again bigint;
begin
  select o.* into v_order from public.orders o where o.id = refund.order_id and not private.is_foreign(o.organisation_id);
  v_former := v_order;
  v_former.amount_refunded := v_order.amount_refunded - refund.amount;
  v_due_again := private.amount_due(v_order) - private.amount_due(v_former);
  return array[
    case when refund.external_reference is not null then private.warning_of_repeated_reference('refund', refund.order_id, (
      select r.order_id
      from public.refunds r
      where r.organisation_id = refund.organisation_id and r.external_reference = refund.external_reference and r.id <> refund.id
      limit 1
    )) end,
    case when v_due_again > 0 then private.warning('due_again', format(
      '%s is due again and reminders will ask for it, because the order is still valid. If you returned a double payment, record that payment as well. If nothing more is to be paid, cancel the ticket or the order.',
      private.money_text(v_due_again, v_order.currency)
    )) end,
    private.warning_of_amount(
      refund.amount, private.amount_refundable(v_former), v_order.currency, 'to be returned',
      'If that is the amount returned, record another refund of %2$s.'
    ),
    case when refund.refunded_at < (
      select min(p.received_at)
      from public.payments p
      where p.order_id = v_order.id and not exists (select from public.payment_voids v where v.payment_id = p.id)
    ) - interval '1 day' then private.warning(
      'refunded_before_payment', 'refunded_at is more than a day before the first payment of the order. A refund cannot be changed: note the right date in your books.'
    ) end
  ];
end
$$;
grant execute on function private.warnings_of_refund to scope_orders_write;

-- Security definer: a key for orders may not read events.
create function private.warning_of_deadline("order" public.orders) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
begin
  if "order".payment_due_at <= now() then
    return private.warning('expires_now', 'The order expires now, and its tickets are cancelled within seconds.');
  end if;
  return (
    select private.warning('due_after_event', 'The payment deadline is after the end of the event. Unpaid tickets do not admit.')
    from public.events e
    where e.id = "order".event_id and e.ends_at < "order".payment_due_at and not private.is_foreign(e.organisation_id)
  );
end
$$;
grant execute on function private.warning_of_deadline to scope_orders_write;
