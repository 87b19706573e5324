-- The figures of an event in one answer. They are counted from its rows when they are asked for, so that a registration pays for no
-- counter; in one snapshot, so that they agree with one another.

create type public.summary_interval as enum ('hour', 'day', 'week');

-- The tickets of a type.
create type private.type_figures as (
  id uuid, name text, "position" integer, is_active boolean, available bigint, sold bigint, pending_payment bigint, checked_in bigint,
  inside bigint, cancelled bigint, emails_bounced bigint, emails_failed bigint
);

-- Read from an index of the attendees alone. Here and below the event is the caller's; private.event_summary alone calls what follows.
create function private.figures_of_types(event public.events, places_left bigint) returns private.type_figures[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select row(
      t.id, t.name, t.position, t.status = 'active', private.quantity_available(t, places_left), a.sold, a.pending_payment, a.checked_in,
      a.inside, a.cancelled, a.emails_bounced, a.emails_failed
    )::private.type_figures
    from public.ticket_types t
    cross join lateral (
      select
        count(*) filter (where a.status <> 'cancelled') as sold,
        count(*) filter (where a.status = 'awaiting_payment') as pending_payment,
        count(*) filter (where a.status <> 'cancelled' and a.checked_in) as checked_in,
        count(*) filter (where a.status <> 'cancelled' and a.inside) as inside,
        count(*) filter (where a.status = 'cancelled') as cancelled,
        count(*) filter (where a.ticket_email_status = 'bounced') as emails_bounced,
        count(*) filter (where a.ticket_email_status = 'failed') as emails_failed
      from public.attendees a
      where a.ticket_type_id = t.id
    ) a
    where t.event_id = event.id and t.organisation_id is not distinct from private.current_organisation_id()
    order by t.position, t.id
  );
end
$$;

-- Its money, and what became of its promo codes.
create function private.summary_of_sales(event public.events, with_money boolean, out revenue json, out promo_codes json)
language plpgsql stable set search_path = ''
as $$
begin
  if with_money then
    revenue := (
      select json_build_object(
        'currency', event.currency,
        'due', coalesce(sum(private.amount_due(o)) filter (where o.payment_status in ('awaiting_payment', 'partially_paid')), 0),
        'paid', coalesce(sum(o.amount_paid), 0),
        'refunded', coalesce(sum(o.amount_refunded), 0),
        'refundable', coalesce(sum(private.amount_refundable(o)) filter (where o.payment_status = 'refund_due'), 0)
      )
      from public.orders o
      where o.event_id = event.id
        and o.organisation_id is not distinct from private.current_organisation_id()
        and o.status = any (enum_range(null::public.order_status))
        -- The other orders have nothing due and nothing paid.
        and o.payment_status = any ('{awaiting_payment,partially_paid,paid,refund_due,refunded}'::public.payment_status[])
    );
  end if;
  promo_codes := (
    select coalesce(json_agg(json_build_object(
      'id', c.id, 'code', c.code, 'times_redeemed', c.times_redeemed, 'max_redemptions', c.max_redemptions,
      'discount', case when with_money then (
        select coalesce(sum(a.discount), 0) from public.attendees a where a.promo_code_id = c.id and a.status <> 'cancelled'
      ) end
    ) order by c.times_redeemed desc, c.id), '[]')
    from (
      select c.* from public.promo_codes c where c.event_id = event.id order by c.times_redeemed desc, c.id limit 200
    ) c
  );
end
$$;

-- When and where people came in: entries that stand, of tickets that do. Accepted is what has no reason; the result is not asked for, for
-- there is an index in which it comes first.
create function private.visits(event_id uuid, ticket_type_ids uuid[])
returns table (check_in_point_id uuid, attendee_id uuid, scanned_at timestamptz, exited_at timestamptz)
language plpgsql stable set search_path = ''
as $$
begin
  return query
  select c.check_in_point_id, c.attendee_id, c.scanned_at, c.exited_at
  from public.check_ins c
  where c.event_id = visits.event_id and c.reason is null and c.direction = 'entry' and c.undone_at is null
    and c.attendee_id not in (
      select a.id from public.attendees a
      where a.ticket_type_id = any (visits.ticket_type_ids) and a.status = 'cancelled' and a.checked_in
    );
end
$$;

-- Its check-in points, and the 20 devices that scan most, with how many more there are. Every scan is read, by the index of the event: 0.1 s
-- for 100,000. An index of devices would cost each scan more.
create function private.summary_of_door(
  event public.events, types private.type_figures[], out check_in_points json, out devices json, out devices_left_out bigint
)
language plpgsql stable set search_path = ''
as $$
declare
  v_midnight timestamptz := date_trunc('day', now(), event.timezone);
  v_type_ids uuid[] := array(select k.id from unnest(types) k);
begin
  check_in_points := (
    select coalesce(json_agg(json_build_object(
      'id', p.id,
      'name', p.name,
      'expected', (
        select coalesce(sum(k.sold), 0) from unnest(types) k where p.ticket_type_ids = '{}' or k.id = any (p.ticket_type_ids)
      ),
      'arrived', coalesce(i.arrived, 0),
      'arrived_today', coalesce(i.arrived_today, 0),
      -- Where each day counts for itself, whoever stayed overnight is not inside.
      'inside', coalesce(case p.admission when 'once_per_day' then i.inside_today else i.inside end, 0)
    ) order by p.id), '[]')
    from public.check_in_points p
    left join (
      select
        v.check_in_point_id,
        count(*) as arrived,
        count(*) filter (where v.came_today) as arrived_today,
        count(*) filter (where v.is_inside) as inside,
        count(*) filter (where v.is_inside_today) as inside_today
      from (
        select
          v.check_in_point_id,
          bool_or(v.scanned_at >= v_midnight) as came_today,
          bool_or(v.exited_at is null) as is_inside,
          bool_or(v.exited_at is null and v.scanned_at >= v_midnight) as is_inside_today
        from private.visits(event.id, v_type_ids) v
        group by v.check_in_point_id, v.attendee_id
      ) v
      group by v.check_in_point_id
    ) i on i.check_in_point_id = p.id
    where p.event_id = event.id and p.status = 'active'
  );
  select
    coalesce(json_agg(json_build_object(
      'device', d.device, 'check_in_point_id', d.check_in_point_id, 'check_in_point', p.name, 'entries', d.entries,
      'exits', d.exits, 'rejected', d.rejected, 'last_scan_at', private.rfc3339(d.last_scan_at)
    ) order by d.place) filter (where d.place <= 20), '[]'),
    count(*) filter (where d.place > 20)
  into devices, devices_left_out
  from (
    select
      c.device, c.check_in_point_id,
      count(*) filter (where c.reason is null and c.undone_at is null and c.direction = 'entry') as entries,
      count(*) filter (where c.reason is null and c.undone_at is null and c.direction = 'exit') as exits,
      count(*) filter (where c.reason is not null) as rejected,
      max(c.scanned_at) as last_scan_at,
      row_number() over (order by count(*) desc, c.device, c.check_in_point_id) as place
    from public.check_ins c
    where c.event_id = event.id
    group by 1, 2
  ) d
  left join public.check_in_points p on p.id = d.check_in_point_id;
end
$$;

-- Registrations and arrivals by time, the newest 200 periods. People arrive once a day, when they first came in on that day, wherever.
create function private.summary_of_time(
  event public.events, types private.type_figures[], "interval" public.summary_interval, out timeline json, out is_complete boolean
)
language plpgsql stable set search_path = ''
as $$
declare
  v_type_ids uuid[] := array(select k.id from unnest(types) k);
  -- Without a check-in point and without an exit nobody comes in twice: checked_in_at says all, and the check-ins are not read.
  v_has_visits boolean := exists (select from public.check_in_points p where p.event_id = event.id)
    or exists (select from public.check_ins c where c.event_id = event.id and c.direction = 'exit');
begin
  with registrations as (
    select a.ticket_type_id, date_trunc("interval"::text, a.created_at, event.timezone) as starts_at, count(*) as tickets
    from public.attendees a
    where a.ticket_type_id = any (v_type_ids)
    group by 1, 2
  ),
  arrivals as (
    select date_trunc("interval"::text, f.arrived_at, event.timezone) as starts_at, count(*) as people
    from (
      select a.checked_in_at as arrived_at
      from public.attendees a
      where not v_has_visits and a.ticket_type_id = any (v_type_ids) and a.status <> 'cancelled' and a.checked_in
      union all
      select min(v.scanned_at)
      from private.visits(event.id, v_type_ids) v
      where v_has_visits
      group by v.attendee_id, (v.scanned_at at time zone event.timezone)::date
    ) f
    group by 1
  ),
  periods as (
    select starts_at, sum(s.tickets) as registrations, sum(s.people) as arrivals, row_number() over (order by starts_at desc) as place
    from (
      select r.starts_at, r.tickets, 0 as people from registrations r
      union all
      select a.starts_at, 0, a.people from arrivals a
    ) s
    group by starts_at
  )
  select
    coalesce(json_agg(json_build_object(
      'starts_at', private.rfc3339(b.starts_at), 'registrations', b.registrations, 'arrivals', b.arrivals,
      'ticket_types', (
        select coalesce(json_agg(
          json_build_object('id', k.id, 'name', k.name, 'registrations', r.tickets) order by r.tickets desc, k.id
        ), '[]')
        from (
          select r.ticket_type_id, r.tickets from registrations r where r.starts_at = b.starts_at order by 2 desc, 1 limit 20
        ) r
        join unnest(types) k on k.id = r.ticket_type_id
      )
    ) order by b.starts_at) filter (where b.place <= 200), '[]'),
    count(*) <= 200
  into timeline, is_complete
  from periods b;
end
$$;

-- Security definer: a key with events:read has no right to attendees and orders, and gets numbers of them; money only if it also has
-- orders:read.
create function private.event_summary(event public.events, "interval" public.summary_interval) returns json
language plpgsql stable security definer
set search_path = '' set work_mem = '16MB'
as $$
declare
  v_places_left bigint := event.capacity - (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.event_id = event.id
  );
  v_types private.type_figures[] := private.figures_of_types(event, v_places_left);
  v_sales record := private.summary_of_sales(event, private.reads_orders());
  v_door record := private.summary_of_door(event, v_types);
  v_time record := private.summary_of_time(event, v_types, "interval");
begin
  return (
    select json_build_object(
      'object', 'event_summary',
      'event_id', event.id,
      'tickets', json_build_object(
        'sold', coalesce(sum(k.sold), 0),
        -- Without a limit of the event, one active ticket type without a limit has no end.
        'available', least(
          case when v_places_left < 0 then 0 else v_places_left end,
          case when not coalesce(bool_or(k.available is null) filter (where k.is_active), false)
            then coalesce(sum(k.available) filter (where k.is_active), 0) end
        ),
        'pending_payment', coalesce(sum(k.pending_payment), 0),
        'checked_in', coalesce(sum(k.checked_in), 0),
        'inside', coalesce(sum(k.inside), 0),
        'cancelled', coalesce(sum(k.cancelled), 0)
      ),
      'ticket_types', coalesce(json_agg(json_build_object(
        'id', k.id, 'name', k.name, 'sold', k.sold, 'available', k.available, 'pending_payment', k.pending_payment,
        'checked_in', k.checked_in, 'inside', k.inside, 'cancelled', k.cancelled
      ) order by k.position, k.id) filter (where k.place <= 200), '[]'),
      'check_in_points', v_door.check_in_points,
      'devices', v_door.devices,
      'devices_left_out', v_door.devices_left_out,
      'revenue', v_sales.revenue,
      'promo_codes', v_sales.promo_codes,
      'questions', private.summary_of_questions(event.id),
      'ticket_emails', json_build_object(
        'bounced', coalesce(sum(k.emails_bounced), 0),
        'failed', coalesce(sum(k.emails_failed), 0)
      ),
      'interval', "interval",
      'timezone', event.timezone,
      'timeline', v_time.timeline,
      'timeline_is_complete', v_time.is_complete
    )
    from unnest(v_types) with ordinality k (
      id, name, "position", is_active, available, sold, pending_payment, checked_in, inside, cancelled, emails_bounced, emails_failed, place
    )
  );
end
$$;
grant execute on function private.event_summary to scope_events_read;

create function api.get_event_summary(event_id uuid, "interval" public.summary_interval default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = get_event_summary.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return private.event_summary(v_event, coalesce("interval", 'day'));
end
$$;
comment on function api.get_event_summary is
  'Figures of an event: tickets by type, money, arrivals over time, scans by device, promo codes, bounced e-mails. 404 not_found.';
grant execute on function api.get_event_summary to scope_events_read;
