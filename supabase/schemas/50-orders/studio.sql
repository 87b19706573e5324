-- Orders that are not paid, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.unpaid_orders with (security_invoker = true) as
select
  o.organisation_id,
  o.event_id,
  e.name as event,
  o.id as order_id,
  o.reference,
  o.name,
  o.email,
  o.company,
  private.money_text(o.total, o.currency) as total,
  private.money_text(o.amount_paid - o.amount_refunded, o.currency) as paid,
  private.money_text(private.amount_due(o), o.currency) as due,
  private.amount_due(o) as amount_due,
  o.currency,
  o.created_at,
  now() - o.created_at as age,
  o.payment_due_at
from public.orders o
join public.events e on e.id = o.event_id
where o.payment_status in ('awaiting_payment', 'partially_paid')
order by o.created_at;
comment on view public.unpaid_orders is 'Orders of which something is due, the oldest first. paid is what was received and not returned.';
create trigger unpaid_orders_100_read_only instead of insert or update or delete on public.unpaid_orders
  for each row execute function private.tg__refuse_write();

revoke all on public.unpaid_orders from anon, authenticated, service_role;
grant select on public.unpaid_orders to authenticated;
