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
  private.local_time(a.updated_at, e.timezone) as updated_at_local
from public.attendees a
join public.events e on e.id = a.event_id
join public.ticket_types t on t.id = a.ticket_type_id
join public.orders o on o.id = a.order_id;
comment on view public.attendee_export is 'Everybody who is registered, a row each, to be exported: without ticket codes.';
comment on column public.attendee_export.organisation_id is 'The organisation that it belongs to.';
comment on column public.attendee_export.id is 'Identifier of the attendee.';
comment on column public.attendee_export.event_id is 'The event that it belongs to.';
comment on column public.attendee_export.event is 'Name of the event.';
comment on column public.attendee_export.timezone is 'IANA name of the zone the event is held in, which is that of the local times.';
comment on column public.attendee_export.order_id is 'The order.';
comment on column public.attendee_export.order_reference is 'Short code of the order that can be read over the telephone.';
comment on column public.attendee_export.ticket_type_id is 'The ticket type.';
comment on column public.attendee_export.ticket_type is 'Name of the ticket type.';
comment on column public.attendee_export.name is 'Name of the person.';
comment on column public.attendee_export.email is 'E-mail address of the person.';
comment on column public.attendee_export.company is 'Company of the person.';
comment on column public.attendee_export.status is 'active, awaiting_payment, or cancelled.';
comment on column public.attendee_export.price is 'Price of the ticket, in minor units.';
comment on column public.attendee_export.price_decimal is 'price as a decimal.';
comment on column public.attendee_export.discount is 'Discount of the promo code, in minor units.';
comment on column public.attendee_export.discount_decimal is 'discount as a decimal.';
comment on column public.attendee_export.currency is 'ISO 4217 code, three capital letters.';
comment on column public.attendee_export.checked_in_at is 'Time of the accepted check-in, in UTC.';
comment on column public.attendee_export.checked_in_at_local is 'checked_in_at as clocks at the event show it.';
comment on column public.attendee_export.cancelled_at is 'When it was cancelled, in UTC.';
comment on column public.attendee_export.cancelled_at_local is 'cancelled_at as clocks at the event show it.';
comment on column public.attendee_export.erased_at is 'When what identified the person was erased, in UTC.';
comment on column public.attendee_export.erased_at_local is 'erased_at as clocks at the event show it.';
comment on column public.attendee_export.external_id is 'The organiser''s own identifier.';
comment on column public.attendee_export.metadata is 'The organiser''s own flat object.';
comment on column public.attendee_export.created_at is 'When it was added, in UTC.';
comment on column public.attendee_export.created_at_local is 'created_at as clocks at the event show it.';
comment on column public.attendee_export.updated_at is 'When it was last changed, in UTC.';
comment on column public.attendee_export.updated_at_local is 'updated_at as clocks at the event show it.';
create trigger attendee_export_100_read_only instead of insert or update or delete on public.attendee_export
  for each row execute function private.tg__refuse_write();

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
comment on view public.order_export is 'Every order, a row each, to be exported, with what it comes to and what was paid.';
comment on column public.order_export.organisation_id is 'The organisation that it belongs to.';
comment on column public.order_export.id is 'Identifier of the order.';
comment on column public.order_export.event_id is 'The event that it belongs to.';
comment on column public.order_export.event is 'Name of the event.';
comment on column public.order_export.timezone is 'IANA name of the zone the event is held in, which is that of the local times.';
comment on column public.order_export.reference is 'Short code of the order that can be read over the telephone.';
comment on column public.order_export.status is 'pending, completed when nothing is due, or cancelled.';
comment on column public.order_export.payment_status is 'Follows from status and amounts.';
comment on column public.order_export.name is 'Name of the contact, who is the buyer.';
comment on column public.order_export.email is 'E-mail address of the contact.';
comment on column public.order_export.company is 'Company of the contact.';
comment on column public.order_export.currency is 'ISO 4217 code, three capital letters.';
comment on column public.order_export.subtotal is 'Sum of the prices of its tickets, in minor units.';
comment on column public.order_export.subtotal_decimal is 'subtotal as a decimal.';
comment on column public.order_export.discount_total is 'Sum of the discounts of its tickets, in minor units.';
comment on column public.order_export.discount_total_decimal is 'discount_total as a decimal.';
comment on column public.order_export.total is 'subtotal minus discount_total, in minor units.';
comment on column public.order_export.total_decimal is 'total as a decimal.';
comment on column public.order_export.amount_paid is 'Sum of the payments that are not voided, in minor units.';
comment on column public.order_export.amount_paid_decimal is 'amount_paid as a decimal.';
comment on column public.order_export.amount_refunded is 'Sum of the refunds, in minor units.';
comment on column public.order_export.amount_refunded_decimal is 'amount_refunded as a decimal.';
comment on column public.order_export.amount_due is 'What is still to be paid, in minor units.';
comment on column public.order_export.amount_due_decimal is 'amount_due as a decimal.';
comment on column public.order_export.payment_method is 'How it is to be paid. Empty: its tickets are complimentary.';
comment on column public.order_export.promo_code is 'The code that the buyer gave.';
comment on column public.order_export.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.order_export.payment_due_at is 'When it is to be paid by, in UTC. Empty: no deadline.';
comment on column public.order_export.payment_due_at_local is 'payment_due_at as clocks at the event show it.';
comment on column public.order_export.completed_at is 'When it was completed, in UTC.';
comment on column public.order_export.completed_at_local is 'completed_at as clocks at the event show it.';
comment on column public.order_export.cancelled_at is 'When it was cancelled, in UTC.';
comment on column public.order_export.cancelled_at_local is 'cancelled_at as clocks at the event show it.';
comment on column public.order_export.cancellation_reason is 'Why it was cancelled: requested by somebody, expired unpaid, or event_cancelled.';
comment on column public.order_export.external_id is 'The organiser''s own identifier.';
comment on column public.order_export.metadata is 'The organiser''s own flat object.';
comment on column public.order_export.created_at is 'When it was made, in UTC.';
comment on column public.order_export.created_at_local is 'created_at as clocks at the event show it.';
comment on column public.order_export.updated_at is 'When it was last changed, in UTC.';
comment on column public.order_export.updated_at_local is 'updated_at as clocks at the event show it.';
comment on column public.order_export.amount_refundable is 'What is to be returned: paid beyond what is owed, and neither refunded yet nor retained, in minor units.';
comment on column public.order_export.amount_refundable_decimal is 'amount_refundable as a decimal.';
comment on column public.order_export.amount_retained is 'What the organiser keeps of what was cancelled, in minor units.';
comment on column public.order_export.amount_retained_decimal is 'amount_retained as a decimal.';
create trigger order_export_100_read_only instead of insert or update or delete on public.order_export
  for each row execute function private.tg__refuse_write();

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
  'Money, a row for each payment, void and refund, to be exported to accounting: amounts are signed, so that their sum is what is left.';
comment on column public.payment_export.organisation_id is 'The organisation that it belongs to.';
comment on column public.payment_export.id is 'Identifier of the payment, void or refund.';
comment on column public.payment_export.type is 'payment, void or refund.';
comment on column public.payment_export.payment_id is 'Of a void: the payment that it takes back.';
comment on column public.payment_export.order_id is 'The order.';
comment on column public.payment_export.order_reference is 'Short code of the order that can be read over the telephone.';
comment on column public.payment_export.event_id is 'The event that it belongs to.';
comment on column public.payment_export.event is 'Name of the event.';
comment on column public.payment_export.timezone is 'IANA name of the zone the event is held in, which is that of the local times.';
comment on column public.payment_export.name is 'Name of the contact, who is the buyer.';
comment on column public.payment_export.email is 'E-mail address of the contact.';
comment on column public.payment_export.company is 'Company of the contact.';
comment on column public.payment_export.booked_at is 'Of a payment when it was received, of a refund when it was returned, of a void when it was recorded, in UTC.';
comment on column public.payment_export.booked_at_local is 'booked_at as clocks at the event show it.';
comment on column public.payment_export.amount is 'In minor units; of a void or refund below 0.';
comment on column public.payment_export.amount_decimal is 'amount as a decimal.';
comment on column public.payment_export.currency is 'ISO 4217 code, three capital letters.';
comment on column public.payment_export.method is 'How it was paid or returned.';
comment on column public.payment_export.external_reference is 'Its reference in another system, such as a bank reference; of a void that of the payment.';
comment on column public.payment_export.reason is 'Of a void: why.';
comment on column public.payment_export.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.payment_export.created_at is 'When it was recorded, in UTC.';
comment on column public.payment_export.created_at_local is 'created_at as clocks at the event show it.';
create trigger payment_export_100_read_only instead of insert or update or delete on public.payment_export
  for each row execute function private.tg__refuse_write();

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
comment on view public.check_in_export is 'Every scan at the door, a row each, to be exported: without the codes that were scanned.';
comment on column public.check_in_export.organisation_id is 'The organisation that it belongs to.';
comment on column public.check_in_export.id is 'Identifier of the scan.';
comment on column public.check_in_export.event_id is 'The event that it belongs to.';
comment on column public.check_in_export.event is 'Name of the event.';
comment on column public.check_in_export.timezone is 'IANA name of the zone the event is held in, which is that of the local times.';
comment on column public.check_in_export.check_in_point_id is 'The check-in point. Empty: the event as such.';
comment on column public.check_in_export.check_in_point is 'Name of the check-in point. Empty: the event as such.';
comment on column public.check_in_export.attendee_id is 'Whose ticket it is. Empty: no ticket has the code.';
comment on column public.check_in_export.name is 'Name of the person.';
comment on column public.check_in_export.company is 'Company of the person.';
comment on column public.check_in_export.ticket_type is 'Name of the ticket type.';
comment on column public.check_in_export.direction is 'entry or exit.';
comment on column public.check_in_export.result is 'accepted or rejected.';
comment on column public.check_in_export.reason is 'Why it was rejected.';
comment on column public.check_in_export.admitted is 'What an offline scanner said: whether it let the person in.';
comment on column public.check_in_export.device is 'Scanner or entrance.';
comment on column public.check_in_export.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.check_in_export.scanned_at is 'When it was scanned, in UTC.';
comment on column public.check_in_export.scanned_at_local is 'scanned_at as clocks at the event show it.';
comment on column public.check_in_export.exited_at is 'Of an entry: when the person left by an exit scan, in UTC.';
comment on column public.check_in_export.exited_at_local is 'exited_at as clocks at the event show it.';
comment on column public.check_in_export.undone_at is 'When the acceptance was taken back, in UTC.';
comment on column public.check_in_export.undone_at_local is 'undone_at as clocks at the event show it.';
comment on column public.check_in_export.created_at is 'When it was recorded, in UTC.';
comment on column public.check_in_export.created_at_local is 'created_at as clocks at the event show it.';
create trigger check_in_export_100_read_only instead of insert or update or delete on public.check_in_export
  for each row execute function private.tg__refuse_write();

revoke all on public.attendee_export, public.order_export, public.payment_export, public.check_in_export
  from anon, authenticated, service_role;
grant select on public.attendee_export, public.order_export, public.payment_export, public.check_in_export to authenticated;
grant select on public.attendee_export, public.check_in_export to scope_attendees_read;
grant select on public.order_export, public.payment_export to scope_orders_read;
