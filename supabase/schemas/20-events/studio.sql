-- The sales of each event: a view for organisers in Studio, and for members over the Data API. As all such views it runs with the rights of
-- whoever reads it, so each person sees the rows of their own organisations, and shows no ticket code.

create view public.event_sales with (security_invoker = true) as
select
  e.name as event,
  e.status,
  e.starts_at,
  t.name as ticket_type,
  private.money_text(t.price, e.currency) as price,
  t.quantity_sold as sold,
  private.quantity_available(t, p.places_left) as available,
  coalesce(a.checked_in, 0) as checked_in,
  private.money_text(coalesce(a.ordered, 0)::bigint, e.currency) as ordered,
  t.event_id,
  t.id as ticket_type_id,
  e.organisation_id
from public.events e
join public.ticket_types t on t.event_id = e.id
cross join lateral (
  select e.capacity - sum(o.quantity_sold + o.quantity_held) as places_left from public.ticket_types o where o.event_id = e.id
) p
left join lateral (
  select count(*) filter (where a.checked_in) as checked_in, sum(a.price - a.discount) as ordered
  from public.attendees a
  where a.ticket_type_id = t.id and a.status <> 'cancelled'
) a on true
-- Whoever may not read attendees, as at the door, would see none of them in.
where private.claims() ->> 'role' is distinct from 'authenticated'
  or e.organisation_id in (select private.organisations_as('{owner,manager,viewer}'))
order by e.starts_at desc nulls first, e.id, t.position, t.id;
comment on view public.event_sales is 'Tickets sold, revenue and people inside, by ticket type.';
comment on column public.event_sales.event is 'Name of the event.';
comment on column public.event_sales.status is 'Status of the event.';
comment on column public.event_sales.starts_at is 'When the event starts.';
comment on column public.event_sales.ticket_type is 'Name of the ticket type.';
comment on column public.event_sales.price is 'Price of a ticket, with its currency.';
comment on column public.event_sales.sold is 'Tickets that take a place.';
comment on column public.event_sales.available is 'Tickets left, within the capacity of the event: neither sold nor held for the waiting list. Empty: no limit.';
comment on column public.event_sales.checked_in is 'People inside.';
comment on column public.event_sales.ordered is 'Value of its tickets less discounts, paid or not.';
comment on column public.event_sales.event_id is 'The event.';
comment on column public.event_sales.ticket_type_id is 'The ticket type.';
comment on column public.event_sales.organisation_id is 'The organisation it belongs to.';
select private.keep_view('public.event_sales');

revoke all on public.event_sales from anon, authenticated, service_role;
grant select on public.event_sales to authenticated;

-- Ids by what people call things, for statements in the SQL editor; each runs with the rights of its caller.
create function public.the_event(slug text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(select e.id from public.events e where e.slug = lower(btrim(the_event.slug)) limit 2),
    'There is no event with this slug.', 'Several events have this slug, of different organisations.', 'slug'
  );
end
$$;
comment on function public.the_event is
  'The id of the event with this slug. Refuses an unknown slug, so that a statement never silently changes nothing.';
revoke all on function public.the_event from public, anon, service_role;
grant execute on function public.the_event to authenticated;
