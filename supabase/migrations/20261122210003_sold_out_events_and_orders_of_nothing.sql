-- sold out events and orders of nothing. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function private.move_places (
  ticket_type_id uuid,
  places integer,
  held integer default 0
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_ticket_type public.ticket_types;
  v_left integer;
begin
  update public.ticket_types t set quantity_sold = t.quantity_sold + places, quantity_held = t.quantity_held + held
  where t.id = move_places.ticket_type_id
    and (places + held <= 0 or t.quantity is null or t.quantity_sold + t.quantity_held + places + held <= t.quantity)
  returning * into v_ticket_type;
  if not found then
    select t.* into v_ticket_type from public.ticket_types t where t.id = move_places.ticket_type_id;
    v_left := v_ticket_type.quantity - v_ticket_type.quantity_sold - v_ticket_type.quantity_held;
    perform private.refuse(
      409, 'sold_out', 'There are not enough tickets of this type left.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      -- The waiting list takes nobody while a ticket is left, nor for a type that is issued in groups.
      hint => case
        when v_left >= v_ticket_type.min_per_order then 'Register fewer people, choose another ticket type, or raise its quantity.'
        when v_ticket_type.min_per_order > 1 then 'Choose another ticket type, or raise its quantity.'
        else 'Choose another ticket type, raise its quantity, or join the waiting list.'
      end
    );
  end if;
  if places > 0 then
    perform private.assert_on_sale(v_ticket_type);
  end if;
end
$$;

create or replace function private.notify_of_full_event (
  event_id uuid
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select t.organisation_id, 'ticket_type.sold_out', t.data
  from (
    select t.organisation_id, t.position, t.id, private.ticket_type_json(t) as data
    from public.ticket_types t
    where t.event_id = notify_of_full_event.event_id
      and (t.quantity is null or t.quantity_sold + t.quantity_held < t.quantity)
  ) t
  where t.data ->> 'sales_status' = 'sold_out'
  order by t.position, t.id;
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
  v_taken bigint;
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
    v_taken := private.places_taken(v_event.id);
    if v_taken > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    elsif v_taken = v_event.capacity then
      -- An accepted offer takes a place that was taken before.
      if (select sum(m.places + m.held) from unnest(v_moves) m where m.event_id = v_event.id) > 0 then
        perform private.notify_of_full_event(v_event.id);
      end if;
    end if;
  end loop;

  foreach v_event_id in array v_given_back loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;

create or replace function private.tg_events__notify_full()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_taken bigint := private.places_taken(new.id);
begin
  if v_taken >= new.capacity and (old.capacity is null or v_taken < old.capacity) then
    perform private.notify_of_full_event(new.id);
  end if;
  return null;
end
$$;

create or replace function private.tg_orders__guard_deadline()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  -- How long before the deadline the buyer is reminded.
  v_lead interval := '72 hours';
  v_before timestamptz;
begin
  if tg_op = 'INSERT' then
    if new.status = 'pending' and new.payment_due_at is null then
      select new.created_at + make_interval(hours => 24 * e.payment_due_days) into new.payment_due_at
      from public.events e
      where e.id = new.event_id;
    end if;
    -- Not at once where the deadline is near from the beginning: in the middle.
    v_lead := least(v_lead, greatest(new.payment_due_at - new.created_at, interval '0') / 2);
  else
    v_before := old.payment_due_at;
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_reminded_at is distinct from now() then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'payment_reminded_at',
        hint => 'Change payment_due_at instead: the buyer is reminded of each deadline.'
      );
    end if;
    if new.payment_reminded_at is distinct from old.payment_reminded_at then
      new.payment_remind_at := null;
    end if;
    -- An order that comes to nothing is complete with its first ticket: nobody has anything to pay by a deadline.
    if old.status = 'pending' and new.status = 'completed' and new.subtotal = new.discount_total and new.amount_paid = 0 then
      new.payment_due_at := null;
      new.payment_remind_at := null;
      v_before := null;
    end if;
  end if;
  if new.payment_due_at is distinct from v_before then
    if new.cancellation_reason = 'expired' then
      perform private.refuse_expired(new);
    elsif new.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order has no payment deadline.', 'payment_due_at');
    elsif new.status = 'completed' then
      perform private.refuse(
        409, 'order_completed', 'A completed order keeps its tickets: a payment deadline would have no effect.', 'payment_due_at',
        hint => 'Cancel the order if it is not to be paid any more.'
      );
    end if;
    new.payment_reminded_at := null;
    new.payment_remind_at := case when new.send_email then new.payment_due_at - v_lead end;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid < new.subtotal - new.discount_total
      then least(new.payment_remind_at, new.payment_due_at)
  end;
  return new;
end
$$;

create or replace function private.tg_ticket_types__notify_sold_out()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new));
  return null;
end
$$;

create trigger events_600_notify_full
  after update of capacity on public.events
  for each row
  when (((new.capacity < old.capacity) or ((new.capacity is not null) and (old.capacity is null))))
  execute function private.tg_events__notify_full();

revoke all on function private.notify_of_full_event(uuid) from public;

revoke all on function private.tg_events__notify_full() from public;
