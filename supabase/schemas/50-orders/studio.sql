-- Orders that are not paid, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.unpaid_orders with (security_invoker = true) as
select
  o.name,
  o.email,
  o.company,
  o.reference,
  private.money_text(private.amount_due(o), o.currency) as due,
  private.money_text(o.amount_paid - o.amount_refunded, o.currency) as paid,
  private.money_text(o.total, o.currency) as total,
  o.payment_due_at,
  now() - o.created_at as age,
  o.created_at,
  e.name as event,
  private.amount_due(o) as amount_due,
  o.currency,
  o.event_id,
  o.id as order_id,
  o.organisation_id
from public.orders o
join public.events e on e.id = o.event_id
-- An order that has no tickets yet owes nothing.
where o.payment_status in ('awaiting_payment', 'partially_paid') and private.amount_due(o) > 0
order by o.created_at;
comment on view public.unpaid_orders is 'Orders with an amount due, oldest first. paid is the amount received and not refunded.';
comment on column public.unpaid_orders.name is 'Name of the buyer.';
comment on column public.unpaid_orders.email is 'E-mail address of the contact.';
comment on column public.unpaid_orders.company is 'Company of the contact.';
comment on column public.unpaid_orders.reference is 'Short code of the order, easy to read over the telephone.';
comment on column public.unpaid_orders.due is 'Amount due, with its currency.';
comment on column public.unpaid_orders.paid is 'Amount received and not refunded, with its currency.';
comment on column public.unpaid_orders.total is 'Total of the order, with its currency.';
comment on column public.unpaid_orders.payment_due_at is 'Payment deadline. Empty: none.';
comment on column public.unpaid_orders.age is 'How long ago it was made.';
comment on column public.unpaid_orders.created_at is 'When it was made.';
comment on column public.unpaid_orders.event is 'Name of the event.';
comment on column public.unpaid_orders.amount_due is 'Amount due, in minor units.';
comment on column public.unpaid_orders.currency is 'ISO 4217 code, three capital letters.';
comment on column public.unpaid_orders.event_id is 'The event. Filter by it.';
comment on column public.unpaid_orders.order_id is 'The order.';
comment on column public.unpaid_orders.organisation_id is 'The organisation it belongs to.';
select private.keep_view('public.unpaid_orders');

revoke all on public.unpaid_orders from anon, authenticated, service_role;
grant select on public.unpaid_orders to authenticated;

-- Ids by reference: see 20-events/studio.sql.
create function public.the_order(reference text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(select o.id from public.orders o where o.reference = private.code_form(the_order.reference) limit 2),
    'There is no order with this reference.', 'Several orders have this reference, of different organisations.', 'reference'
  );
end
$$;
comment on function public.the_order is
  'The id of the order with this reference. Refuses an unknown reference.';
revoke all on function public.the_order from public, anon, service_role;
grant execute on function public.the_order to authenticated;

create function public.the_payment(order_reference text, amount bigint) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(
      select p.id from public.payments p
      where p.order_id = public.the_order(order_reference) and p.amount = the_payment.amount
        and not exists (select from public.payment_voids v where v.payment_id = p.id)
      order by p.id desc
      limit 1
    ),
    'This order has no valid payment of this amount.', 'Several payments.', 'amount'
  );
end
$$;
comment on function public.the_payment is
  'The id of the latest valid payment of an order with this amount, in minor units.';
revoke all on function public.the_payment from public, anon, service_role;
grant execute on function public.the_payment to authenticated;
