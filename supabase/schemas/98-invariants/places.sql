-- Invariants of places: what is sold, held, redeemed and waited for.

create function private.verify_places(event_id uuid) returns setof private.disagreement
language plpgsql stable set search_path = ''
as $$
declare
  v_since timestamptz := now() - interval '23 hours';
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_places.event_id);
begin
  return query
  with sold as (
    select a.ticket_type_id, count(*) as places
    from public.attendees a
    where a.status <> 'cancelled' and (verify_places.event_id is null or a.ticket_type_id = any (v_type_ids))
    group by a.ticket_type_id
  ),
  offered as (
    select
      w.ticket_type_id, count(*) filter (where w.status = 'offered') as places,
      min(w.id::text) filter (where w.status = 'waiting') as first_waiting
    from public.waiting_list_entries w
    where w.status in ('offered', 'waiting') and (verify_places.event_id is null or w.event_id = verify_places.event_id)
    group by w.ticket_type_id
  ),
  types as materialized (
    select t as type, coalesce(s.places, 0) as sold, coalesce(h.places, 0) as held, h.first_waiting::uuid as first_waiting
    from public.ticket_types t
    left join sold s on s.ticket_type_id = t.id
    left join offered h on h.ticket_type_id = t.id
    where verify_places.event_id is null or t.event_id = verify_places.event_id
  ),
  events as materialized (
    select e as event, y.taken
    from public.events e
    join (select (x.type).event_id, sum(x.sold + x.held) as taken from types x group by 1) y on y.event_id = e.id
  )
  select 'quantity_sold is how many hold a ticket', 'ticket_types', (y.type).id, (y.type).quantity_sold::text, y.sold::text
  from types y
  where (y.type).quantity_sold <> y.sold
  union all
  select 'quantity_held is how many offers stand', 'ticket_types', (y.type).id, (y.type).quantity_held::text, y.held::text
  from types y
  where (y.type).quantity_held <> y.held
  union all
  select 'no more tickets and offers than there are of a type', 'ticket_types', (y.type).id, (y.sold + y.held)::text, 'at most ' || (y.type).quantity
  from types y
  where y.sold + y.held > (y.type).quantity
  union all
  select 'no more tickets and offers than the event has places', 'events', (e.event).id, e.taken::text, 'at most ' || (e.event).capacity
  from events e
  where e.taken > (e.event).capacity
  union all
  -- The first who waits stands for all: whoever comes after them would be told of as well. Where nobody is offered anything, places may be free.
  select 'nobody waits for a place that is free', 'waiting_list_entries', y.first_waiting, 'waiting', 'offered'
  from types y
  join events e on (e.event).id = (y.type).event_id
  where y.first_waiting is not null
    and (e.event).status = 'published' and (e.event).ends_at > now()
    and (y.type).status = 'active' and ((y.type).sales_end_at is null or (y.type).sales_end_at > now())
    and ((y.type).quantity is null or y.sold + y.held < (y.type).quantity)
    and ((e.event).capacity is null or e.taken < (e.event).capacity);

  return query
  select 'whoever waits joined after everybody who was offered the same', 'waiting_list_entries', w.id, 'waiting', 'offered before ' || o.last_id
  from (
    select w.ticket_type_id, max(w.id::text)::uuid as last_id
    from public.waiting_list_entries w
    where w.offered_at is not null and (verify_places.event_id is null or w.event_id = verify_places.event_id)
    group by w.ticket_type_id
  ) o
  join public.waiting_list_entries w on w.ticket_type_id = o.ticket_type_id and w.status = 'waiting' and w.id < o.last_id;

  return query
  select 'an offer that was accepted has one attendee, and no other has any', 'waiting_list_entries', w.id, c.tickets::text, c.expected::text
  from public.waiting_list_entries w
  cross join lateral (
    select
      (select count(*) from public.attendees a where a.waiting_list_entry_id = w.id) as tickets,
      case w.status when 'accepted' then 1 else 0 end as expected
  ) c
  where c.tickets <> c.expected
    -- A cancelled ticket may be deleted.
    and (
      c.tickets > 0
      or w.updated_at > v_since and not exists (
        select from public.audit_entries e
        where e.object_type = 'attendee' and e.action = 'deleted' and e.created_at > v_since
          and e.changes #>> '{waiting_list_entry_id,from}' = w.id::text
      )
    )
    and (verify_places.event_id is null or w.event_id = verify_places.event_id);

  return query
  select 'nobody waits for an event that is cancelled', 'waiting_list_entries', w.id, w.status::text, 'cancelled'
  from public.events e
  join public.waiting_list_entries w on w.event_id = e.id
  where e.status = 'cancelled' and w.status in ('waiting', 'offered') and (verify_places.event_id is null or e.id = verify_places.event_id);

  return query
  with uses as (
    select a.promo_code_id, count(*) as times
    from public.attendees a
    where a.promo_code_id is not null and a.status <> 'cancelled'
      and (verify_places.event_id is null or a.ticket_type_id = any (v_type_ids))
    group by a.promo_code_id
  )
  select d."check", 'promo_codes', c.id, d.differs[1], d.differs[2]
  from public.promo_codes c
  left join uses u on u.promo_code_id = c.id
  cross join lateral (
    values
      (
        'times_redeemed is how many tickets have the code',
        case when c.times_redeemed <> coalesce(u.times, 0) then array[c.times_redeemed::text, coalesce(u.times, 0)::text] end
      ),
      (
        'no more uses of a code than it allows',
        case when u.times > c.max_redemptions then array[u.times::text, 'at most ' || c.max_redemptions] end
      )
  ) d ("check", differs)
  where d.differs is not null and (verify_places.event_id is null or c.event_id = verify_places.event_id);

  -- A unique index sees to it; one that was damaged does not.
  return query
  select 'no two tickets have one code', 'attendees', min(a.id::text)::uuid, count(*)::text, '1'
  from public.attendees a
  where verify_places.event_id is null or a.ticket_type_id = any (v_type_ids)
  group by a.organisation_id, a.ticket_code
  having count(*) > 1;
end
$$;
