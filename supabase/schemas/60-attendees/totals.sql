-- Totals: the price of a ticket, the number of tickets per order, the sums of an order, and the uses of its promo code.
-- Kept by triggers on attendees, so they hold wherever a row is changed.

-- The price of a ticket that is to be paid, and its discount, in minor units, so that an order is always the sum of its lines. A percentage is rounded half
-- up for each ticket. Of an amount off the order, a ticket takes what the tickets before it have left; those that one statement adds
-- share it afterwards. A promo code is used by the tickets it is for, unless they are free.
create function private.price_attendee(attendee public.attendees, "order" public.orders) returns public.attendees
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_percent_off numeric;
  v_amount_off bigint;
begin
  -- Only ticket types of this event: otherwise the totals would reveal the price of another organisation's ticket type.
  attendee.price := coalesce((
    select t.price from public.ticket_types t where t.id = attendee.ticket_type_id and t.event_id = "order".event_id
  ), 0);
  if "order".promo_code_id is not null then
    select c.percent_off, c.amount_off into v_percent_off, v_amount_off
    from public.promo_codes c
    where c.id = "order".promo_code_id
      and (c.ticket_type_ids = '{}' or attendee.ticket_type_id = any (c.ticket_type_ids))
      -- What it unlocks uses it, whatever the price.
      and (attendee.price > 0 or c.unlocks);
    if found then
      attendee.promo_code_id := "order".promo_code_id;
      if v_amount_off is null then
        attendee.discount := round(attendee.price * coalesce(v_percent_off, 0) / 100);
      else
        -- Sees the rows that the same statement has added already, and under the lock of the order those of others. What a cancelled
        -- ticket had is free again.
        attendee.discount := least(attendee.price, greatest(0, v_amount_off - coalesce((
          select sum(a.discount) from public.attendees a where a.order_id = "order".id and a.status <> 'cancelled'
        ), 0)));
      end if;
    end if;
  end if;
  return attendee;
end
$$;

-- Spreads what the tickets of one order and statement were given of an amount off, in proportion to their prices: each share is
-- rounded down, and the units that are left over go to the largest remainders, the earlier ticket first. So the shares add up
-- exactly, and none is above its price. Fires before the rows are added up.
create function private.tg_attendees__spread_amount_off() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ids uuid[];
  v_discounts bigint[];
begin
  if not exists (select from new_rows n where n.promo_code_id is not null) then
    return null;
  end if;
  select array_agg(s.id), array_agg(s.discount) into v_ids, v_discounts
  from (
    select
      r.id,
      r.given,
      r.share + (row_number() over (partition by r.order_id order by r.remainder desc, r.id) <= r.whole - sum(r.share) over (partition by r.order_id))::integer
        as discount
    from (
      -- Numeric: the product of two amounts exceeds a bigint.
      select
        l.id, l.order_id, l.given, l.whole,
        div(l.price * l.whole, l.subtotal) as share,
        mod(l.price * l.whole, l.subtotal) as remainder
      from (
        select
          n.id, n.order_id, n.price, n.discount as given,
          sum(n.discount) over (partition by n.order_id) as whole,
          sum(n.price) over (partition by n.order_id) as subtotal
        from new_rows n
        where (select c.amount_off from public.promo_codes c where c.id = n.promo_code_id) is not null
      ) l
    ) r
  ) s
  where s.discount <> s.given;
  -- By key, not by a join, whose plan would be that of the first call.
  if v_ids is not null then
    update public.attendees a set discount = v_discounts[array_position(v_ids, a.id)] where a.id = any (v_ids);
  end if;
  return null;
end
$$;
create trigger attendees_310_spread_amount_off after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__spread_amount_off();

-- min_per_order and max_per_order of a ticket type. Checked once per statement, so that a group counts as a whole.
create function private.tg_attendees__limit_per_order() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  -- Most ticket types have no limit.
  if not exists (
    select from new_rows n
    where (select t.min_per_order > 1 or t.max_per_order is not null from public.ticket_types t where t.id = n.ticket_type_id)
  ) then
    return null;
  end if;
  select t.* into v_ticket_type
  from (select distinct n.order_id, n.ticket_type_id from new_rows n) n
  join public.ticket_types t on t.id = n.ticket_type_id
  where (t.min_per_order > 1 or t.max_per_order is not null)
    and (
      select count(*) from public.attendees a
      where a.order_id = n.order_id and a.ticket_type_id = t.id and a.status <> 'cancelled'
    ) not between t.min_per_order and coalesce(t.max_per_order, 2147483647)
  limit 1;
  if found then
    perform private.refuse(
      409, 'quantity_not_allowed', 'An order cannot have this number of tickets of this type.', 'ticket_type_id',
      jsonb_build_object(
        'ticket_type_id', v_ticket_type.id,
        'min_per_order', v_ticket_type.min_per_order,
        'max_per_order', v_ticket_type.max_per_order
      ),
      'Register between min_per_order and max_per_order in one order.'
    );
  end if;
  return null;
end
$$;
create trigger attendees_300_limit_per_order after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__limit_per_order();

-- The totals of orders. An order that loses its last ticket is cancelled. A cancelled one keeps its totals, so cancelling an event locks and adds
-- up none here.
create function private.add_up(order_ids uuid[], with_new boolean) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  -- Locked before they are added up: an update that waited for a row sees its new version, but uses the sums computed before the wait.
  v_ids constant uuid[] := array(
    select o.id from public.orders o where o.id = any (order_ids) and o.status <> 'cancelled' order by o.id for no key update
  );
begin
  update public.orders o
  set subtotal = s.subtotal, discount_total = s.discount_total
  from (
    select a.order_id, sum(a.price) as subtotal, sum(a.discount) as discount_total
    from public.attendees a
    where a.order_id = any (v_ids) and a.status <> 'cancelled'
    group by a.order_id
  ) s
  where o.id = s.order_id
    -- A new ticket may complete an order even if it is free.
    and (with_new and o.status = 'pending' or (o.subtotal, o.discount_total) <> (s.subtotal, s.discount_total));
  if not with_new then
    update public.orders o
    set status = 'cancelled'
    where o.id = any (v_ids) and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
  end if;
end
$$;

-- The code of an order is for one of its tickets at least.
create function private.assert_code_applies(order_ids uuid[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if exists (
    select from public.orders o
    where o.id = any (order_ids) and o.promo_code_id is not null
      and not exists (select from public.attendees a where a.order_id = o.id and a.promo_code_id is not null)
  ) then
    perform private.refuse(
      409, 'promo_code_not_applicable', 'The promo code applies to none of these tickets.', 'promo_code',
      hint => 'See its ticket_type_ids. Free tickets need no code.'
    );
  end if;
end
$$;

-- What attendees count for, once a statement, however many it writes: the totals of their order, a use of the promo code that they were sold
-- with, and a place. Everybody takes the locks of these in this order. Security definer: callers may not change these sums.
create function private.tg_attendees__count() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order_ids uuid[];
begin
  if tg_op = 'INSERT' then
    -- Complimentary tickets have nothing to add up, and use no code.
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    if v_order_ids <> '{}' then
      perform private.add_up(v_order_ids, with_new => true);
      perform private.assert_code_applies(v_order_ids);
      perform private.move_redemptions(u.promo_code_id, u.uses::integer)
      from (select n.promo_code_id, count(*) as uses from new_rows n where n.promo_code_id is not null group by 1 order by 1) u;
    end if;
    perform private.move_places_of_events(array(
      select row(n.event_id, n.ticket_type_id, count(*), -count(n.waiting_list_entry_id))::private.place_move
      from new_rows n
      group by n.event_id, n.ticket_type_id
      order by n.event_id, n.ticket_type_id
    ));
    return null;
  end if;

  -- Most updates, such as that of a scan, change nothing that counts. Not a join of the two transition tables, here and below: its plan would be
  -- that of the first call, which sees one row, and a nested loop over the 10,000 rows of a cancelled event takes minutes.
  v_order_ids := array(
    select c.order_id from (
      select n.id, n.order_id, n.ticket_type_id, n.status = 'cancelled' as is_over from new_rows n
      except
      select o.id, o.order_id, o.ticket_type_id, o.status = 'cancelled' from old_rows o
    ) c group by c.order_id
  );
  if v_order_ids = '{}' then
    return null;
  end if;
  perform private.add_up(v_order_ids, with_new => false);
  perform private.move_redemptions(u.promo_code_id, u.uses::integer)
  from (
    select c.promo_code_id, sum(c.uses) as uses
    from (
      select n.promo_code_id, 1 as uses from new_rows n where n.status <> 'cancelled' and n.promo_code_id is not null
      union all
      select o.promo_code_id, -1 from old_rows o where o.status <> 'cancelled' and o.promo_code_id is not null
    ) c
    group by c.promo_code_id
    having sum(c.uses) <> 0
    order by c.promo_code_id
  ) u;
  perform private.move_places_of_events(array(
    select row(c.event_id, c.ticket_type_id, sum(c.places), 0)::private.place_move
    from (
      select o.event_id, o.ticket_type_id, -1 as places from old_rows o where o.status <> 'cancelled'
      union all
      select n.event_id, n.ticket_type_id, 1 from new_rows n where n.status <> 'cancelled'
    ) c
    group by c.event_id, c.ticket_type_id
    having sum(c.places) <> 0
    order by c.event_id, c.ticket_type_id
  ));
  return null;
end
$$;
create trigger attendees_400_count_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__count();
create trigger attendees_400_count_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__count();
