-- Views that answer an organiser's questions in Studio, and for members over the Data API. They run with the rights of whoever reads
-- them, so each person sees the rows of their own organisations, and no view shows a ticket code.

-- "EUR 49.00": minor units in the decimals of the currency (ISO 4217).
create function private.money_text(amount bigint, currency text) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_decimals integer := case
    when currency in (
      'BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'
    ) then 0
    when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then 3
    else 2
  end;
begin
  return currency || ' ' || round(amount / (10::numeric ^ v_decimals), v_decimals);
end
$$;
grant execute on function private.money_text(bigint, text) to authenticated;

create view public.event_sales with (security_invoker = true) as
select
  e.organisation_id,
  t.event_id,
  e.name as event,
  e.status,
  e.starts_at,
  t.id as ticket_type_id,
  t.name as ticket_type,
  private.money_text(t.price, e.currency) as price,
  t.quantity_sold as sold,
  t.quantity - t.quantity_sold - t.quantity_held as available,
  coalesce(a.checked_in, 0) as checked_in,
  private.money_text(coalesce(a.ordered, 0)::bigint, e.currency) as ordered
from public.events e
join public.ticket_types t on t.event_id = e.id
left join lateral (
  select count(*) filter (where a.checked_in) as checked_in, sum(a.price - a.discount) as ordered
  from public.attendees a
  where a.ticket_type_id = t.id and a.status <> 'cancelled'
) a on true
order by e.starts_at desc nulls first, e.id, t.position, t.id;
comment on view public.event_sales is 'Tickets sold of each ticket type, what they come to, and how many people are in.';

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

create view public.door_list with (security_invoker = true) as
select
  a.organisation_id,
  a.event_id,
  e.name as event,
  a.id as attendee_id,
  a.name,
  a.company,
  t.name as ticket_type,
  o.reference,
  a.status,
  a.checked_in_at
from public.attendees a
join public.events e on e.id = a.event_id
join public.ticket_types t on t.id = a.ticket_type_id
join public.orders o on o.id = a.order_id
where a.status <> 'cancelled'
order by a.event_id, lower(a.name), a.id;
comment on view public.door_list is 'Who is expected, by name. Ticket codes are in the function ticket_codes.';

-- Days and hours are without a time zone: one with it is shown in that of the session, which in Studio is UTC.
create view public.arrivals with (security_invoker = true) as
select
  f.organisation_id,
  f.event_id,
  f.event,
  f.check_in_point_id,
  p.name as check_in_point,
  f.arrived_at::date as day,
  date_trunc('hour', f.arrived_at) as hour,
  count(*) as arrived
from (
  select
    e.organisation_id,
    c.event_id,
    e.name as event,
    c.check_in_point_id,
    min(c.scanned_at at time zone e.timezone) as arrived_at
  from public.check_ins c
  join public.events e on e.id = c.event_id
  join public.attendees a on a.id = c.attendee_id
  where c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null and a.status <> 'cancelled'
  group by e.id, c.event_id, c.check_in_point_id, c.attendee_id, (c.scanned_at at time zone e.timezone)::date
) f
left join public.check_in_points p on p.id = f.check_in_point_id
group by f.organisation_id, f.event_id, f.event, f.check_in_point_id, p.name, f.arrived_at::date, date_trunc('hour', f.arrived_at)
order by f.event_id, hour, check_in_point, f.check_in_point_id;
comment on view public.arrivals is
  'How many people came in, by check-in point (empty: the event as such), day and hour of the event''s time zone. Each person counts once a day at each point.';

create view public.undelivered_tickets with (security_invoker = true) as
select
  a.organisation_id,
  a.event_id,
  e.name as event,
  a.id as attendee_id,
  a.name,
  a.email,
  a.ticket_email_status,
  a.ticket_email_last_error as error,
  a.ticket_email_sent_at as sent_at
from public.attendees a
join public.events e on e.id = a.event_id
where a.ticket_email_status in ('bounced', 'failed') and a.status <> 'cancelled'
order by a.event_id, lower(a.name), a.id;
comment on view public.undelivered_tickets is 'Tickets whose e-mail did not arrive, and why.';

create view public.failing_webhook_endpoints with (security_invoker = true) as
select
  w.organisation_id,
  w.id as webhook_endpoint_id,
  w.url,
  w.description,
  w.status,
  w.failing_since,
  w.disabled_reason,
  d.last_response_status,
  d.last_error,
  d.last_attempt_at
from public.webhook_endpoints w
left join lateral (
  select d.last_response_status, d.last_error, d.last_attempt_at
  from public.webhook_deliveries d
  where d.webhook_endpoint_id = w.id and d.last_attempt_at is not null and d.status <> 'delivered'
  order by d.id desc
  limit 1
) d on true
where w.failing_since is not null or w.disabled_reason is not null
order by w.failing_since nulls last;
comment on view public.failing_webhook_endpoints is 'Webhook endpoints that do not answer as they should, with the last failure.';

-- Postgres refuses a write to a view of several tables with SQLSTATE 55000, before it looks at privileges, and PostgREST makes a 500 of that.
-- With these triggers a member is refused for want of the privilege, as with a table, and an organiser in Studio reads a sentence.
create function private.tg__refuse_write() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    405, 'method_not_allowed', 'This is a view: it is only read.', hint => 'Change the rows of the tables that it shows.'
  );
  return null;
end
$$;
create trigger event_sales_100_read_only instead of insert or update or delete on public.event_sales
  for each row execute function private.tg__refuse_write();
create trigger unpaid_orders_100_read_only instead of insert or update or delete on public.unpaid_orders
  for each row execute function private.tg__refuse_write();
create trigger door_list_100_read_only instead of insert or update or delete on public.door_list
  for each row execute function private.tg__refuse_write();
create trigger arrivals_100_read_only instead of insert or update or delete on public.arrivals
  for each row execute function private.tg__refuse_write();
create trigger undelivered_tickets_100_read_only instead of insert or update or delete on public.undelivered_tickets
  for each row execute function private.tg__refuse_write();
create trigger failing_webhook_endpoints_100_read_only instead of insert or update or delete on public.failing_webhook_endpoints
  for each row execute function private.tg__refuse_write();

revoke all on
  public.event_sales, public.unpaid_orders, public.door_list, public.arrivals, public.undelivered_tickets,
  public.failing_webhook_endpoints
from anon, authenticated, service_role;
grant select on
  public.event_sales, public.unpaid_orders, public.door_list, public.arrivals, public.undelivered_tickets,
  public.failing_webhook_endpoints
to authenticated;
