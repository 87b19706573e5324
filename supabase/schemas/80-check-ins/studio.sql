-- Who is expected at the door, and who came when, for organisers. With the rights of whoever reads them: see 20-events/studio.sql.

create view public.door_list with (security_invoker = true) as
select
  a.name,
  a.company,
  t.name as ticket_type,
  a.status,
  a.checked_in_at,
  o.reference,
  e.name as event,
  a.event_id,
  a.id as attendee_id,
  a.organisation_id
from public.attendees a
join public.events e on e.id = a.event_id
join public.ticket_types t on t.id = a.ticket_type_id
join public.orders o on o.id = a.order_id
where a.status <> 'cancelled'
order by a.event_id, lower(a.name), a.id;
comment on view public.door_list is 'Expected guests by name. The function ticket_codes has their ticket codes.';
comment on column public.door_list.name is 'Name of the person.';
comment on column public.door_list.company is 'Company of the person.';
comment on column public.door_list.ticket_type is 'Name of the ticket type.';
comment on column public.door_list.status is 'active or awaiting_payment. Only an active ticket is admitted.';
comment on column public.door_list.checked_in_at is 'Time of check-in. Empty: not checked in.';
comment on column public.door_list.reference is 'Short code of the order, easy to read over the telephone.';
comment on column public.door_list.event is 'Name of the event.';
comment on column public.door_list.event_id is 'The event. Filter by it.';
comment on column public.door_list.attendee_id is 'The attendee.';
comment on column public.door_list.organisation_id is 'The organisation it belongs to.';

create view public.no_shows with (security_invoker = true) as
select
  a.name,
  a.email,
  a.company,
  t.name as ticket_type,
  o.reference,
  e.name as event,
  a.event_id,
  a.id as attendee_id,
  a.organisation_id
from public.attendees a
join public.events e on e.id = a.event_id
join public.ticket_types t on t.id = a.ticket_type_id
join public.orders o on o.id = a.order_id
where a.status = 'active' and a.checked_in_at is null and e.status in ('published', 'completed') and coalesce(e.ends_at, e.starts_at) < now()
order by a.event_id, lower(a.name), a.id;
comment on view public.no_shows is 'No-shows: guests of past events who had a ticket and did not check in.';
comment on column public.no_shows.name is 'Name of the person.';
comment on column public.no_shows.email is 'E-mail address of the person.';
comment on column public.no_shows.company is 'Company of the person.';
comment on column public.no_shows.ticket_type is 'Name of the ticket type.';
comment on column public.no_shows.reference is 'Short code of the order, easy to read over the telephone.';
comment on column public.no_shows.event is 'Name of the event.';
comment on column public.no_shows.event_id is 'The event. Filter by it.';
comment on column public.no_shows.attendee_id is 'The attendee.';
comment on column public.no_shows.organisation_id is 'The organisation it belongs to.';

-- Days and hours are without a time zone: one with it is shown in that of the session, which in Studio is UTC.
create view public.arrivals with (security_invoker = true) as
select
  f.event,
  p.name as check_in_point,
  f.arrived_at::date as day,
  date_trunc('hour', f.arrived_at) as hour,
  count(*) as arrived,
  f.event_id,
  f.check_in_point_id,
  f.organisation_id
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
  'Arrivals by check-in point (empty: the whole event), day and hour in the event''s time zone. Each person counts once a day at each point.';
comment on column public.arrivals.event is 'Name of the event.';
comment on column public.arrivals.check_in_point is 'Name of the check-in point. Empty: the whole event.';
comment on column public.arrivals.day is 'Day in the event''s time zone.';
comment on column public.arrivals.hour is 'Start of the hour in the event''s time zone.';
comment on column public.arrivals.arrived is 'Number of arrivals.';
comment on column public.arrivals.event_id is 'The event. Filter by it.';
comment on column public.arrivals.check_in_point_id is 'The check-in point. Empty: the whole event.';
comment on column public.arrivals.organisation_id is 'The organisation of the event.';
select private.keep_view('public.door_list');
select private.keep_view('public.no_shows');
select private.keep_view('public.arrivals');

revoke all on public.door_list from anon, authenticated, service_role;
revoke all on public.no_shows from anon, authenticated, service_role;
revoke all on public.arrivals from anon, authenticated, service_role;
grant select on public.door_list to authenticated;
grant select on public.no_shows to authenticated;
grant select on public.arrivals to authenticated;
