-- one form and repairs, of views. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

drop view public.event_sales;

drop view public.order_export;

create view public.event_sales with (security_invoker=true) as
  select e.name as event,
    e.status,
    e.starts_at,
    t.name as ticket_type,
    private.money_text(t.price, e.currency) as price,
    t.quantity_sold as sold,
    private.quantity_available(t.*, p.places_left) as available,
    coalesce(a.checked_in, (0)::bigint) as checked_in,
    private.money_text((coalesce(a.ordered, (0)::numeric))::bigint, e.currency) as ordered,
    t.event_id,
    t.id as ticket_type_id,
    e.organisation_id
   from (((public.events e
     join public.ticket_types t on ((t.event_id = e.id)))
     cross join lateral ( select (e.capacity - sum((o.quantity_sold + o.quantity_held))) as places_left
           from public.ticket_types o
          where (o.event_id = e.id)) p)
     left join lateral ( select count(*) filter (where a_1.checked_in) as checked_in,
            sum((a_1.price - a_1.discount)) as ordered
           from public.attendees a_1
          where ((a_1.ticket_type_id = t.id) and (a_1.status <> 'cancelled'::public.attendee_status))) a on (true))
  where (((private.claims() ->> 'role'::text) is distinct from 'authenticated'::text) or (e.organisation_id in ( select private.organisations_as('{owner,manager,viewer}'::public.organisation_role[]) as organisations_as)))
  order by e.starts_at desc, e.id, t."position", t.id;

revoke all on table public.event_sales from anon;

revoke all on table public.event_sales from service_role;

create view public.no_shows with (security_invoker=true) as
  select a.name,
    a.email,
    a.company,
    t.name as ticket_type,
    o.reference,
    e.name as event,
    a.event_id,
    a.id as attendee_id,
    a.organisation_id
   from (((public.attendees a
     join public.events e on ((e.id = a.event_id)))
     join public.ticket_types t on ((t.id = a.ticket_type_id)))
     join public.orders o on ((o.id = a.order_id)))
  where ((a.status = 'active'::public.attendee_status) and (a.checked_in_at is null) and (e.status = any (array['published'::public.event_status, 'completed'::public.event_status])) and (coalesce(e.ends_at, e.starts_at) < now()))
  order by a.event_id, (lower(a.name)), a.id;

revoke all on table public.no_shows from anon;

revoke all on table public.no_shows from service_role;

create view public.order_export with (security_invoker=true) as
  select o.organisation_id,
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
   from ((public.orders o
     join public.events e on ((e.id = o.event_id)))
     cross join lateral ( select private.amount_due(o.*) as amount_due,
            private.amount_refundable(o.*) as amount_refundable) d);

revoke all on table public.order_export from anon;

revoke all on table public.order_export from service_role;

create trigger event_sales_100_read_only
  instead of insert or delete or update on public.event_sales
  for each row
  execute function private.tg__refuse_write();

create trigger no_shows_100_read_only
  instead of insert or delete or update on public.no_shows
  for each row
  execute function private.tg__refuse_write();

create trigger order_export_100_read_only
  instead of insert or delete or update on public.order_export
  for each row
  execute function private.tg__refuse_write();

comment on view public.event_sales is 'Tickets sold of each ticket type, what they come to, and how many people are in.';

comment on view public.no_shows is 'Who had a ticket and did not come, of events that are over.';

comment on view public.order_export is 'Every order, a row each, to be exported, with what it comes to and what was paid.';

revoke all on table public.event_sales from authenticated;

grant select on table public.event_sales to authenticated;

revoke all on table public.event_sales from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.event_sales
  to postgres;

revoke all on table public.no_shows from authenticated;

grant select on table public.no_shows to authenticated;

revoke all on table public.order_export from authenticated;

grant select on table public.order_export to authenticated;

revoke all on table public.order_export from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.order_export
  to postgres;

grant select on table public.order_export to scope_orders_read;

comment on column public.event_sales.event is 'Name of the event.';

comment on column public.event_sales.status is 'Status of the event.';

comment on column public.event_sales.starts_at is 'When the event starts.';

comment on column public.event_sales.ticket_type is 'Name of the ticket type.';

comment on column public.event_sales.price is 'Price of a ticket, with its currency.';

comment on column public.event_sales.sold is 'Tickets that hold a place.';

comment on column public.event_sales.available is 'How many are left: neither sold nor held for the waiting list, and not more than the capacity of the event allows. Empty: no limit.';

comment on column public.event_sales.checked_in is 'How many people are in.';

comment on column public.event_sales.ordered is 'What its tickets come to, less discounts, paid or not.';

comment on column public.event_sales.event_id is 'The event.';

comment on column public.event_sales.ticket_type_id is 'The ticket type.';

comment on column public.event_sales.organisation_id is 'The organisation that it belongs to.';

comment on column public.no_shows.name is 'Name of the person.';

comment on column public.no_shows.email is 'E-mail address of the person.';

comment on column public.no_shows.company is 'Company of the person.';

comment on column public.no_shows.ticket_type is 'Name of the ticket type.';

comment on column public.no_shows.reference is 'Short code of the order that can be read over the telephone.';

comment on column public.no_shows.event is 'Name of the event.';

comment on column public.no_shows.event_id is 'The event. Filter by it.';

comment on column public.no_shows.attendee_id is 'The attendee.';

comment on column public.no_shows.organisation_id is 'The organisation that it belongs to.';

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
