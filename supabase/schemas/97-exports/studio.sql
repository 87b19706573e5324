-- What leaves the house: a row for each guest, order, movement of money and scan, as it stands in a file. Organisers export these views in
-- Studio, and the API exports them page by page (operations.sql), so that both have the same columns. They have the rights of whoever reads
-- them: see 20-events/studio.sql. None has a ticket code, a token, or anything of the e-mails.
--
-- The order of columns is published: new ones come at the end. Times are text, in UTC and as clocks at the event show them; amounts are in
-- minor units and as decimals.

create function private.local_time(moment timestamptz, timezone text) returns text
language plpgsql stable strict set search_path = ''
as $$
begin
  return to_char(moment at time zone timezone, 'YYYY-MM-DD HH24:MI:SS');
end
$$;
grant execute on function private.local_time to scope_attendees_read, scope_orders_read, authenticated;

create view public.attendee_export with (security_invoker = true) as
select
  a.organisation_id,
  a.id,
  a.event_id,
  e.name as event,
  e.timezone,
  a.order_id,
  o.reference as order_reference,
  a.ticket_type_id,
  t.name as ticket_type,
  a.name,
  a.email,
  a.company,
  a.status,
  a.price,
  private.money_decimal(a.price, a.currency) as price_decimal,
  a.discount,
  private.money_decimal(a.discount, a.currency) as discount_decimal,
  a.currency,
  private.rfc3339(a.checked_in_at) as checked_in_at,
  private.local_time(a.checked_in_at, e.timezone) as checked_in_at_local,
  private.rfc3339(a.cancelled_at) as cancelled_at,
  private.local_time(a.cancelled_at, e.timezone) as cancelled_at_local,
  private.rfc3339(a.erased_at) as erased_at,
  private.local_time(a.erased_at, e.timezone) as erased_at_local,
  a.external_id,
  a.metadata,
  private.rfc3339(a.created_at) as created_at,
  private.local_time(a.created_at, e.timezone) as created_at_local,
  private.rfc3339(a.updated_at) as updated_at,
  private.local_time(a.updated_at, e.timezone) as updated_at_local,
  a.answers || a.sensitive_answers as answers
from public.attendees a
join public.events e on e.id = a.event_id
join public.ticket_types t on t.id = a.ticket_type_id
join public.orders o on o.id = a.order_id;
comment on view public.attendee_export is 'Attendees for export, without ticket codes.';
select private.keep_view('public.attendee_export');

create view public.order_export with (security_invoker = true) as
select
  o.organisation_id,
  o.id,
  o.event_id,
  e.name as event,
  e.timezone,
  o.reference,
  o.status,
  o.payment_status,
  o.name,
  o.email,
  o.company,
  o.currency,
  o.subtotal,
  private.money_decimal(o.subtotal, o.currency) as subtotal_decimal,
  o.discount_total,
  private.money_decimal(o.discount_total, o.currency) as discount_total_decimal,
  o.total,
  private.money_decimal(o.total, o.currency) as total_decimal,
  o.amount_paid,
  private.money_decimal(o.amount_paid, o.currency) as amount_paid_decimal,
  o.amount_refunded,
  private.money_decimal(o.amount_refunded, o.currency) as amount_refunded_decimal,
  d.amount_due,
  private.money_decimal(d.amount_due, o.currency) as amount_due_decimal,
  o.payment_method,
  o.promo_code,
  o.source,
  private.rfc3339(o.payment_due_at) as payment_due_at,
  private.local_time(o.payment_due_at, e.timezone) as payment_due_at_local,
  private.rfc3339(o.completed_at) as completed_at,
  private.local_time(o.completed_at, e.timezone) as completed_at_local,
  private.rfc3339(o.cancelled_at) as cancelled_at,
  private.local_time(o.cancelled_at, e.timezone) as cancelled_at_local,
  o.cancellation_reason,
  o.external_id,
  o.metadata,
  private.rfc3339(o.created_at) as created_at,
  private.local_time(o.created_at, e.timezone) as created_at_local,
  private.rfc3339(o.updated_at) as updated_at,
  private.local_time(o.updated_at, e.timezone) as updated_at_local,
  d.amount_refundable,
  private.money_decimal(d.amount_refundable, o.currency) as amount_refundable_decimal,
  o.amount_retained,
  private.money_decimal(o.amount_retained, o.currency) as amount_retained_decimal
from public.orders o
join public.events e on e.id = o.event_id
cross join lateral (select private.amount_due(o) as amount_due, private.amount_refundable(o) as amount_refundable) d;
comment on view public.order_export is 'Orders for export, with totals and payments.';
select private.keep_view('public.order_export');

-- A void stands beside the payment that it takes back, on the day on which it was recorded: a file of an earlier month stays as it was.
create view public.payment_export with (security_invoker = true) as
select
  l.organisation_id,
  l.id,
  l.type,
  l.payment_id,
  l.order_id,
  o.reference as order_reference,
  l.event_id,
  e.name as event,
  e.timezone,
  o.name,
  o.email,
  o.company,
  private.rfc3339(l.booked_at) as booked_at,
  private.local_time(l.booked_at, e.timezone) as booked_at_local,
  l.amount,
  private.money_decimal(l.amount, l.currency) as amount_decimal,
  l.currency,
  l.method,
  l.external_reference,
  l.reason,
  l.source,
  private.rfc3339(l.created_at) as created_at,
  private.local_time(l.created_at, e.timezone) as created_at_local
from (
  select
    'payment' as type, p.organisation_id, p.id, null::uuid as payment_id, p.order_id, p.event_id, p.received_at as booked_at, p.amount,
    p.currency, p.method, p.external_reference, null as reason, p.source, p.created_at
  from public.payments p
  union all
  select
    'void', v.organisation_id, v.id, v.payment_id, p.order_id, p.event_id, v.created_at, -p.amount,
    p.currency, p.method, p.external_reference, v.reason, v.source, v.created_at
  from public.payment_voids v
  join public.payments p on p.id = v.payment_id
  union all
  select
    'refund', r.organisation_id, r.id, null, r.order_id, r.event_id, r.refunded_at, -r.amount,
    r.currency, r.method, r.external_reference, null, r.source, r.created_at
  from public.refunds r
) l
join public.orders o on o.id = l.order_id
join public.events e on e.id = l.event_id;
comment on view public.payment_export is
  'Payments, voids and refunds for export to accounting. Amounts are signed, so that their sum is the balance.';
select private.keep_view('public.payment_export');

create view public.check_in_export with (security_invoker = true) as
select
  c.organisation_id,
  c.id,
  c.event_id,
  e.name as event,
  e.timezone,
  c.check_in_point_id,
  p.name as check_in_point,
  c.attendee_id,
  a.name,
  a.company,
  t.name as ticket_type,
  c.direction,
  c.result,
  c.reason,
  c.admitted,
  c.device,
  c.source,
  private.rfc3339(c.scanned_at) as scanned_at,
  private.local_time(c.scanned_at, e.timezone) as scanned_at_local,
  private.rfc3339(c.exited_at) as exited_at,
  private.local_time(c.exited_at, e.timezone) as exited_at_local,
  private.rfc3339(c.undone_at) as undone_at,
  private.local_time(c.undone_at, e.timezone) as undone_at_local,
  private.rfc3339(c.created_at) as created_at,
  private.local_time(c.created_at, e.timezone) as created_at_local
from public.check_ins c
join public.events e on e.id = c.event_id
left join public.check_in_points p on p.id = c.check_in_point_id
left join public.attendees a on a.id = c.attendee_id
left join public.ticket_types t on t.id = a.ticket_type_id;
comment on view public.check_in_export is 'Scans for export, without the scanned codes.';
select private.keep_view('public.check_in_export');

-- What the columns are, which mean the same wherever they stand but in the views that are named.
do $$
declare
  v_column record;
begin
  for v_column in
    select a.attrelid::regclass as "view", a.attname, case
        when a.attname ~ '_local$' then replace(a.attname, '_local', ' in the time zone of the event.')
        when a.attname ~ '_decimal$' then replace(a.attname, '_decimal', ' as a decimal.')
        else c.comment
      end as comment
    from pg_catalog.pg_class v
    join pg_catalog.pg_attribute a on a.attrelid = v.oid and a.attnum > 0
    left join (
      values
        ('organisation_id', null::name[], 'The organisation it belongs to.'),
        ('id', '{attendee_export}', 'Identifier of the attendee.'),
        ('id', '{order_export}', 'Identifier of the order.'),
        ('id', '{payment_export}', 'Identifier of the payment, void or refund.'),
        ('id', '{check_in_export}', 'Identifier of the scan.'),
        ('event_id', null, 'The event it belongs to.'),
        ('event', null, 'Name of the event.'),
        ('timezone', null, 'IANA time zone of the event, used for the local times.'),
        ('order_id', null, 'The order.'),
        ('order_reference', null, 'Short code of the order, easy to read over the telephone.'),
        ('ticket_type_id', null, 'The ticket type.'),
        ('ticket_type', null, 'Name of the ticket type.'),
        ('name', '{attendee_export,check_in_export}', 'Name of the person.'),
        ('name', '{order_export,payment_export}', 'Name of the buyer.'),
        ('email', '{attendee_export}', 'E-mail address of the person.'),
        ('email', '{order_export,payment_export}', 'E-mail address of the contact.'),
        ('company', '{attendee_export,check_in_export}', 'Company of the person.'),
        ('company', '{order_export,payment_export}', 'Company of the contact.'),
        ('status', '{attendee_export}', 'active, awaiting_payment, or cancelled.'),
        ('status', '{order_export}', 'pending, completed when nothing is due, or cancelled.'),
        ('price', null, 'Price of the ticket, in minor units.'),
        ('discount', null, 'Discount of the promo code, in minor units.'),
        ('currency', null, 'ISO 4217 code, three capital letters.'),
        ('checked_in_at', null, 'Time of the accepted check-in, in UTC.'),
        ('cancelled_at', null, 'When it was cancelled, in UTC.'),
        ('erased_at', null, 'When the personal data was erased, in UTC.'),
        ('external_id', null, 'Your own identifier.'),
        ('metadata', null, 'Your own flat JSON object.'),
        ('answers', null, 'Answers to the questions of the event, by key.'),
        ('created_at', '{attendee_export}', 'When it was added, in UTC.'),
        ('created_at', '{order_export}', 'When it was created, in UTC.'),
        ('created_at', '{payment_export,check_in_export}', 'When it was recorded, in UTC.'),
        ('updated_at', null, 'When it was last changed, in UTC.'),
        ('reference', null, 'Short code of the order, easy to read over the telephone.'),
        ('payment_status', null, 'Follows from status and amounts.'),
        ('subtotal', null, 'Sum of the prices of its tickets, in minor units.'),
        ('discount_total', null, 'Sum of the discounts of its tickets, in minor units.'),
        ('total', null, 'subtotal minus discount_total, in minor units.'),
        ('amount_paid', null, 'Sum of the payments that are not voided, in minor units.'),
        ('amount_refunded', null, 'Sum of the refunds, in minor units.'),
        ('amount_due', null, 'Amount due, in minor units.'),
        ('payment_method', null, 'Payment method. Empty: complimentary tickets.'),
        ('promo_code', null, 'Promo code of the buyer.'),
        ('source', null, 'Where it came from: the REST API, MCP, or Studio.'),
        ('payment_due_at', null, 'Payment deadline, in UTC. Empty: none.'),
        ('completed_at', null, 'When it was completed, in UTC.'),
        ('cancellation_reason', null, 'Why it was cancelled: requested by somebody, expired unpaid, or event_cancelled.'),
        ('amount_refundable', null, 'Refund due: paid beyond the total, and neither refunded nor retained, in minor units.'),
        ('amount_retained', null, 'Amount retained after cancellations, in minor units.'),
        ('type', null, 'payment, void or refund.'),
        ('payment_id', null, 'For a void: the voided payment.'),
        ('booked_at', null, 'Date of the booking, in UTC: payment received, refund sent, or void recorded.'),
        ('amount', null, 'In minor units; negative for a void or refund.'),
        ('method', null, 'Method of the payment or refund.'),
        ('external_reference', null, 'Reference in another system, such as a bank reference; for a void, that of the payment.'),
        ('reason', '{payment_export}', 'Of a void: why.'),
        ('reason', '{check_in_export}', 'Why it was rejected.'),
        ('check_in_point_id', null, 'The check-in point. Empty: the whole event.'),
        ('check_in_point', null, 'Name of the check-in point. Empty: the whole event.'),
        ('attendee_id', null, 'Holder of the ticket. Empty: no ticket has the code.'),
        ('direction', null, 'entry or exit.'),
        ('result', null, 'accepted or rejected.'),
        ('admitted', null, 'Whether an offline scanner let the person in.'),
        ('device', null, 'Scanner or entrance.'),
        ('scanned_at', null, 'When it was scanned, in UTC.'),
        ('exited_at', null, 'For an entry: when an exit scan ended it, in UTC.'),
        ('undone_at', null, 'When the check-in was undone, in UTC.')
    ) c (name, views, comment) on c.name = a.attname and (c.views is null or v.relname = any (c.views))
    where v.oid in ('public.attendee_export'::regclass, 'public.order_export'::regclass, 'public.payment_export'::regclass, 'public.check_in_export'::regclass)
  loop
    execute format('comment on column %s.%I is %L', v_column."view", v_column.attname, v_column.comment);
  end loop;
end
$$;

revoke all on public.attendee_export, public.order_export, public.payment_export, public.check_in_export
  from anon, authenticated, service_role;
grant select on public.attendee_export, public.order_export, public.payment_export, public.check_in_export to authenticated;
grant select on public.attendee_export, public.check_in_export to scope_attendees_read;
grant select on public.order_export, public.payment_export to scope_orders_read;
