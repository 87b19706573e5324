-- Demo data for the first start: one organisation, one published event, a free, a paid and a nearly sold-out ticket type, and a
-- few guests. One statement per table, as an organiser would add the rows in Studio.

insert into public.organisations (name, slug, reply_to_email) values ('Demo Events', 'demo', 'hello@demo.example');

insert into public.events (
  organisation_id, name, slug, description, starts_at, ends_at, timezone,
  venue_name, venue_address, venue_city, venue_postcode, venue_country, capacity, currency, registration_page
)
select
  o.id, 'Lantern Conference', 'lantern-conference', 'Two days of talks about open doors.',
  (current_date + 30 + time '09:00') at time zone 'Europe/Berlin',
  (current_date + 31 + time '18:00') at time zone 'Europe/Berlin', 'Europe/Berlin',
  'Old Gasworks', 'Kaistrasse 1', 'Hamburg', '20457', 'DE', 250, 'EUR', 'by_link'
from public.organisations o where o.slug = 'demo';

insert into public.ticket_types (event_id, name, description, price, quantity, position)
select e.id, t.name, t.description, t.price, t.quantity, t.position
from public.events e
cross join (values
  ('Community', 'Free entry to all talks.', 0, 200, 0),
  ('Professional', 'Talks and the workshops.', 14900, 50, 1),
  ('Front row', 'Three seats, two of them taken.', 29900, 3, 2)
) as t (name, description, price, quantity, position)
where e.slug = 'lantern-conference';

update public.events set status = 'published' where slug = 'lantern-conference';

insert into public.orders (event_id, name, email, send_email, external_id)
select e.id, g.name, g.email, false, g.external_id
from public.events e
cross join (values
  ('Ada Lovelace', 'ada@example.com', 'demo-guest-1'),
  ('Grace Hopper', 'grace@example.com', 'demo-guest-2'),
  ('Katherine Johnson', 'katherine@example.com', 'demo-guest-3')
) as g (name, email, external_id)
where e.slug = 'lantern-conference';

insert into public.attendees (order_id, ticket_type_id, name, email)
select o.id, t.id, o.name, o.email
from public.orders o
join public.ticket_types t on t.event_id = o.event_id
  and t.name = case o.external_id when 'demo-guest-1' then 'Community' else 'Front row' end
where o.external_id like 'demo-guest-%';
