-- The sales of each event: a view for organisers in Studio, and for members over the Data API. As all such views it runs with the rights of
-- whoever reads it, so each person sees the rows of their own organisations, and shows no ticket code.

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
create trigger event_sales_100_read_only instead of insert or update or delete on public.event_sales
  for each row execute function private.tg__refuse_write();

revoke all on public.event_sales from anon, authenticated, service_role;
grant select on public.event_sales to authenticated;

-- Ids by what people call things, for statements in the SQL editor; each runs with the rights of its caller.
create function public.the_event(slug text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(select e.id from public.events e where e.slug = the_event.slug limit 2),
    'There is no event with this slug.', 'Several events have this slug, of different organisations.', 'slug'
  );
end
$$;
comment on function public.the_event is
  'The id of the event with this slug. Refuses one that is not there, so that a statement with it changes something or says why not.';
revoke all on function public.the_event from public, anon, service_role;
grant execute on function public.the_event to authenticated;
