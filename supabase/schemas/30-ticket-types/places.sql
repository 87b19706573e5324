-- Places of a ticket type: whether it is on sale, and the counters that no registration exceeds.

create function private.assert_on_sale(ticket_type public.ticket_types) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if ticket_type.status = 'archived' then
    perform private.refuse(
      409, 'ticket_type_archived', 'This ticket type is archived and no longer available.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id),
      hint => 'Choose an active ticket type.'
    );
  elsif now() < ticket_type.sales_start_at then
    perform private.refuse(
      409, 'sales_not_started', 'Sales of this ticket type have not started.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id, 'sales_start_at', private.rfc3339(ticket_type.sales_start_at))
    );
  elsif now() >= ticket_type.sales_end_at then
    perform private.refuse(
      409, 'sales_ended', 'Sales of this ticket type have ended.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type.id, 'sales_end_at', private.rfc3339(ticket_type.sales_end_at))
    );
  end if;
end
$$;

-- Takes places of one ticket type, or releases them if negative, exactly under any concurrency; `held` is how many more are held for
-- offers, so that an offer which is accepted moves one from there. The update locks the row, so two buyers of the last place wait for
-- each other; it comes as late in the transaction as possible.
-- Security definer: callers may not change the counters.
create function private.move_places(ticket_type_id uuid, places integer, held integer) returns void
language plpgsql volatile security definer set search_path = ''
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
      409, 'sold_out', 'Not enough tickets of this type are left.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      -- The waiting list takes nobody while a ticket is left, nor for a type that is issued in groups.
      hint => case
        when v_left >= v_ticket_type.min_per_order then 'Register fewer people, choose another ticket type, or raise its quantity.'
        when v_ticket_type.min_per_order > 1 then 'Choose another ticket type, or raise its quantity.'
        else 'Choose another ticket type, raise its quantity, or join the waiting list.'
      end || private.way_to_held_place(v_ticket_type.quantity_held)
    );
  end if;
  -- A ticket of an order that is reopened was sold in time.
  if places > 0 and coalesce(current_setting('usher.reopening', true), '') = '' then
    perform private.assert_on_sale(v_ticket_type);
  end if;
end
$$;
