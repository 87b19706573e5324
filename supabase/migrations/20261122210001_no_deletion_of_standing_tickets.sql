-- no deletion of standing tickets. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop trigger attendees_400_add_up_delete on public.attendees;

drop trigger attendees_500_count_places_delete on public.attendees;

create or replace function private.tg_attendees__add_up()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order_ids uuid[];
  v_uses private.use_move[] := '{}';
  v_move record;
begin
  if tg_op = 'INSERT' then
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    v_uses := array(select row(n.promo_code_id, 1)::private.use_move from new_rows n where n.promo_code_id is not null);
  else
    -- Attendees that became cancelled. Not a join of the two transition tables: its plan would be that of the first call, which
    -- sees one row, and a nested loop over the 10,000 rows of a cancelled event takes minutes.
    select coalesce(array_agg(distinct c.order_id), '{}'),
      coalesce(array_agg(row(c.promo_code_id, -1)::private.use_move) filter (where c.promo_code_id is not null), '{}')
    into v_order_ids, v_uses
    from (
      select n.id, n.order_id, n.promo_code_id from new_rows n where n.status = 'cancelled'
      except
      select o.id, o.order_id, o.promo_code_id from old_rows o where o.status = 'cancelled'
    ) c;
    -- A cancelled order keeps its totals, so cancelling an event locks and adds up no order here.
    v_order_ids := array(select o.id from public.orders o where o.id = any (v_order_ids) and o.status <> 'cancelled');
  end if;

  if v_order_ids <> '{}' then
    -- Lock before adding up: an update that waited for a row sees its new version, but uses the sums computed before the wait.
    perform 1 from public.orders o where o.id = any (v_order_ids) order by o.id for no key update;
    update public.orders o
    set subtotal = s.subtotal, discount_total = s.discount_total
    from (
      select a.order_id, sum(a.price) as subtotal, sum(a.discount) as discount_total
      from public.attendees a
      where a.order_id = any (v_order_ids) and a.status <> 'cancelled'
      group by a.order_id
    ) s
    where o.id = s.order_id
      and o.status <> 'cancelled'
      -- A new ticket may complete an order even if it is free.
      and (tg_op = 'INSERT' and o.status = 'pending' or (o.subtotal, o.discount_total) <> (s.subtotal, s.discount_total));
    if tg_op <> 'INSERT' then
      update public.orders o
      set status = 'cancelled'
      where o.id = any (v_order_ids)
        and o.status <> 'cancelled'
        and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
    elsif exists (
      select from public.orders o
      where o.id = any (v_order_ids)
        and o.promo_code_id is not null
        and not exists (select from public.attendees a where a.order_id = o.id and a.promo_code_id is not null)
    ) then
      perform private.refuse(
        409, 'promo_code_not_applicable', 'The promo code is not for any of these tickets.', 'promo_code',
        hint => 'Its ticket_type_ids say what it is for; free tickets use no code.'
      );
    end if;
  end if;

  for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
    perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
  end loop;
  return null;
end
$$;

create or replace function private.tg_attendees__assert_over()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if old.status <> 'cancelled' then
    perform private.refuse(
      409, 'in_use', 'A ticket that stands cannot be deleted: its order and everybody who was told of it count on it.',
      hint => 'Set status to cancelled instead; to remove what identifies the person, call erase_attendee.'
    );
  end if;
  return old;
end
$$;

create or replace function private.tg_attendees__count_places()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_moves private.place_move[] := '{}';
  v_event_id uuid;
  v_event public.events;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := '{}';
  v_move record;
begin
  if tg_op = 'UPDATE' then
    v_moves := v_moves || array(
      select row(o.event_id, o.ticket_type_id, -1, 0)::private.place_move from old_rows o where o.status <> 'cancelled'
    );
  end if;
  v_moves := v_moves || array(
    select row(
      n.event_id, n.ticket_type_id, 1, case when tg_op = 'INSERT' and n.waiting_list_entry_id is not null then -1 else 0 end
    )::private.place_move
    from new_rows n
    where n.status <> 'cancelled'
  );
  v_moves := array(
    select row(m.event_id, m.ticket_type_id, sum(m.places)::integer, sum(m.held)::integer)::private.place_move
    from unnest(v_moves) m
    group by m.event_id, m.ticket_type_id
    having sum(m.places) <> 0
  );

  for v_move in
    select m.event_id, bool_or(m.places > 0) as takes, bool_or(m.places < 0) as gives_back
    from unnest(v_moves) m
    group by m.event_id
    order by m.event_id
  loop
    v_event := null;
    if v_move.takes then
      v_event := private.lock_event_shared(v_move.event_id);
      perform private.assert_takes_registrations(v_event);
      if v_event.capacity is not null then
        v_limited := v_limited || v_event;
      end if;
    end if;
    if v_move.gives_back then
      v_given_back := v_given_back || v_move.event_id;
    end if;
    if v_move.gives_back or v_event.capacity is not null then
      perform private.lock_event_capacity(v_move.event_id);
    end if;
  end loop;

  for v_move in select m.* from unnest(v_moves) m order by m.ticket_type_id loop
    perform private.move_places(v_move.ticket_type_id, v_move.places, v_move.held);
  end loop;

  foreach v_event in array v_limited loop
    if private.places_taken(v_event.id) > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    end if;
  end loop;

  foreach v_event_id in array v_given_back loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;

create trigger attendees_100_over
  before delete on public.attendees
  for each row
  execute function private.tg_attendees__assert_over();

comment on table public.attendees is 'The people who come. Cancel one by setting status to cancelled: this frees the place, and check-in no longer accepts the ticket. Only a cancelled one can be deleted.';

revoke all on function private.tg_attendees__assert_over() from public;
