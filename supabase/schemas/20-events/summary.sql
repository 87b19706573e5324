-- The figures of an event in one answer. They are counted from its rows when they are asked for, so that a registration pays for no
-- counter; in one snapshot, so that they agree with one another.

create type public.summary_interval as enum ('hour', 'day', 'week');

-- The event is known to be the caller's. Security definer: a key with events:read has no right to attendees and orders, and gets
-- numbers of them; money only if it also has orders:read.
create function private.event_summary(event public.events, "interval" public.summary_interval) returns json
language plpgsql stable security definer
set search_path = '' set work_mem = '16MB'
as $$
declare
  v_most_buckets constant integer := 200;
  v_most_rows constant integer := 200;
  v_most_types constant integer := 20;
  v_most_devices constant integer := 20;
  v_ticket_type_ids uuid[] := array(
    select t.id from public.ticket_types t
    where t.event_id = event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  v_places_left bigint := event.capacity - (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.id = any (v_ticket_type_ids)
  );
  -- Without a check-in point and without an exit nobody comes in twice: checked_in_at says all, and the check-ins are not read.
  v_has_visits boolean := exists (select from public.check_in_points p where p.event_id = event.id)
    or exists (select from public.check_ins c where c.event_id = event.id and c.direction = 'exit');
  v_daily_point_ids uuid[] := array(
    select p.id from public.check_in_points p where p.event_id = event.id and p.admission = 'once_per_day'
  );
  v_with_money boolean := private.reads_orders();
  v_revenue json;
  v_summary json;
  v_today date := now() at time zone event.timezone;
begin
  if v_with_money then
    -- The other orders have nothing due and nothing paid.
    select json_build_object(
      'currency', event.currency,
      'due', coalesce(sum(private.amount_due(o)) filter (where o.payment_status in ('awaiting_payment', 'partially_paid')), 0),
      'paid', coalesce(sum(o.amount_paid), 0),
      'refunded', coalesce(sum(o.amount_refunded), 0),
      'refundable', coalesce(sum(private.amount_refundable(o)) filter (where o.payment_status = 'refund_due'), 0)
    ) into v_revenue
    from public.orders o
    where o.event_id = any (array[event.id])
      and o.organisation_id is not distinct from private.current_organisation_id()
      and o.status = any (enum_range(null::public.order_status))
      and o.payment_status = any ('{awaiting_payment,partially_paid,paid,refund_due,refunded}'::public.payment_status[]);
  end if;

  -- Attendees are read from an index alone. A quarter of an hour is a part of every hour and day, whatever the time zone.
  with groups as materialized (
    select
      a.ticket_type_id, a.status, a.checked_in, a.inside, a.ticket_email_status,
      date_bin('15 minutes', a.created_at, timestamptz 'epoch') as registered,
      date_bin(
        '15 minutes', case when not v_has_visits and a.status <> 'cancelled' then a.checked_in_at end, timestamptz 'epoch'
      ) as arrived,
      count(*) as tickets
    from public.attendees a
    where a.ticket_type_id = any (v_ticket_type_ids)
    group by grouping sets ((1, 2, 3, 4, 5), (1, 6), (7))
  ),
  -- Entries that stand are read once: of each person where they came in, and on which days, when first. Accepted is what has no
  -- reason; the result is not asked for, for there is an index in which it comes first.
  visits as materialized (
    select
      c.check_in_point_id, c.attendee_id, c.day,
      min(c.scanned_at) as arrived_at,
      bool_or(c.day = v_today) as came_today,
      bool_or(c.exited_at is null and (c.day = v_today or c.check_in_point_id <> all (v_daily_point_ids))) as is_inside
    from (
      select c.check_in_point_id, c.attendee_id, c.scanned_at, c.exited_at, (c.scanned_at at time zone event.timezone)::date as day
      from public.check_ins c
      where v_has_visits and c.event_id = event.id and c.reason is null and c.direction = 'entry' and c.undone_at is null
        and c.attendee_id not in (
          select a.id from public.attendees a
          where a.ticket_type_id = any (v_ticket_type_ids) and a.status = 'cancelled' and a.checked_in
        )
    ) c
    group by grouping sets ((1, 2), (2, 3))
  ),
  kinds as (
    select
      t.id, t.name, t.position, t.status,
      private.quantity_available(t, v_places_left) as available,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled'), 0) as sold,
      coalesce(sum(g.tickets) filter (where g.status = 'awaiting_payment'), 0) as pending_payment,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled' and g.checked_in), 0) as checked_in,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled' and g.inside), 0) as inside,
      coalesce(sum(g.tickets) filter (where g.status = 'cancelled'), 0) as cancelled
    from public.ticket_types t
    left join groups g on g.ticket_type_id = t.id
    where t.id = any (v_ticket_type_ids)
    group by t.id
  ),
  points as (
    select
      p.id, p.name,
      (
        select coalesce(sum(k.sold), 0) from kinds k where p.ticket_type_ids = '{}' or k.id = any (p.ticket_type_ids)
      ) as expected,
      coalesce(i.arrived, 0) as arrived, coalesce(i.arrived_today, 0) as arrived_today, coalesce(i.inside, 0) as inside
    from public.check_in_points p
    left join (
      select
        v.check_in_point_id,
        count(*) as arrived,
        count(*) filter (where v.came_today) as arrived_today,
        count(*) filter (where v.is_inside) as inside
      from visits v
      where v.check_in_point_id is not null
      group by 1
    ) i on i.check_in_point_id = p.id
    where p.event_id = event.id and p.status = 'active'
  ),
  -- Every scan is read once, by the index of the event: 0.1 s for 100,000. An index of devices would cost each scan more.
  devices as materialized (
    select
      c.device, c.check_in_point_id,
      count(*) as scans,
      count(*) filter (where c.reason is null and c.undone_at is null and c.direction = 'entry') as entries,
      count(*) filter (where c.reason is null and c.undone_at is null and c.direction = 'exit') as exits,
      count(*) filter (where c.reason is not null) as rejected,
      max(c.scanned_at) as last_scan_at
    from public.check_ins c
    where c.event_id = event.id
    group by 1, 2
  ),
  -- People, each once a day, by when they first came in on that day, wherever.
  arrivals as (
    select g.arrived, g.tickets as people from groups g where g.arrived is not null
    union all
    select date_bin('15 minutes', v.arrived_at, timestamptz 'epoch'), count(*) from visits v where v.day is not null group by 1
  ),
  registrations as (
    select g.ticket_type_id, date_trunc("interval"::text, g.registered, event.timezone) as starts_at, sum(g.tickets) as tickets
    from groups g
    where g.registered is not null
    group by 1, 2
  ),
  buckets as (
    select
      date_trunc("interval"::text, s.starts_at, event.timezone) as starts_at,
      sum(s.registrations) as registrations,
      sum(s.arrivals) as arrivals
    from (
      select r.starts_at, r.tickets as registrations, 0 as arrivals from registrations r
      union all
      select a.arrived, 0, a.people from arrivals a
    ) s
    group by 1
    order by 1 desc
    limit v_most_buckets + 1
  )
  select json_build_object(
    'object', 'event_summary',
    'event_id', event.id,
    'tickets', (
      select json_build_object(
        'sold', coalesce(sum(k.sold), 0),
        -- Without a limit of the event, one active ticket type without a limit has no end.
        'available', least(
          case when v_places_left < 0 then 0 else v_places_left end,
          case when not coalesce(bool_or(k.available is null) filter (where k.status = 'active'), false)
            then coalesce(sum(k.available) filter (where k.status = 'active'), 0) end
        ),
        'pending_payment', coalesce(sum(k.pending_payment), 0),
        'checked_in', coalesce(sum(k.checked_in), 0),
        'inside', coalesce(sum(k.inside), 0),
        'cancelled', coalesce(sum(k.cancelled), 0)
      )
      from kinds k
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object(
        'id', k.id, 'name', k.name, 'sold', k.sold, 'available', k.available, 'pending_payment', k.pending_payment,
        'checked_in', k.checked_in, 'inside', k.inside, 'cancelled', k.cancelled
      ) order by k.position, k.id), '[]')
      from (select * from kinds k order by k.position, k.id limit v_most_rows) k
    ),
    'check_in_points', (
      select coalesce(json_agg(json_build_object(
        'id', p.id, 'name', p.name, 'expected', p.expected, 'arrived', p.arrived, 'arrived_today', p.arrived_today,
        'inside', p.inside
      ) order by p.id), '[]')
      from points p
    ),
    'devices', (
      select coalesce(json_agg(json_build_object(
        'device', d.device, 'check_in_point_id', d.check_in_point_id, 'check_in_point', p.name, 'entries', d.entries,
        'exits', d.exits, 'rejected', d.rejected, 'last_scan_at', private.rfc3339(d.last_scan_at)
      ) order by d.scans desc, d.device, d.check_in_point_id), '[]')
      from (select * from devices d order by d.scans desc, d.device, d.check_in_point_id limit v_most_devices) d
      left join public.check_in_points p on p.id = d.check_in_point_id
    ),
    'devices_left_out', (select greatest(count(*) - v_most_devices, 0) from devices),
    'revenue', v_revenue,
    'promo_codes', (
      select coalesce(json_agg(json_build_object(
        'id', c.id, 'code', c.code, 'times_redeemed', c.times_redeemed, 'max_redemptions', c.max_redemptions,
        'discount', case when v_with_money then (
          select coalesce(sum(a.discount), 0) from public.attendees a where a.promo_code_id = c.id and a.status <> 'cancelled'
        ) end
      ) order by c.times_redeemed desc, c.id), '[]')
      from (
        select c.* from public.promo_codes c
        where c.event_id = event.id
        order by c.times_redeemed desc, c.id
        limit v_most_rows
      ) c
    ),
    'ticket_emails', (
      select json_build_object(
        'bounced', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'bounced'), 0),
        'failed', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'failed'), 0)
      )
      from groups g
    ),
    'interval', "interval",
    'timezone', event.timezone,
    'timeline', (
      select coalesce(json_agg(json_build_object(
        'starts_at', private.rfc3339(b.starts_at), 'registrations', b.registrations, 'arrivals', b.arrivals,
        'ticket_types', (
          select coalesce(json_agg(json_build_object('id', k.id, 'name', k.name, 'registrations', r.tickets)), '[]')
          from (
            select r.ticket_type_id, r.tickets from registrations r where r.starts_at = b.starts_at order by 2 desc, 1 limit v_most_types
          ) r
          join kinds k on k.id = r.ticket_type_id
        )
      ) order by b.starts_at), '[]')
      from (select * from buckets b order by b.starts_at desc limit v_most_buckets) b
    ),
    'timeline_is_complete', (select count(*) <= v_most_buckets from buckets)
  ) into v_summary;
  return v_summary;
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
  'Figures of an event: tickets by type, money, arrivals over time, scans by device, promo codes, e-mails that bounced. 404 not_found.';
grant execute on function api.get_event_summary to scope_events_read;
