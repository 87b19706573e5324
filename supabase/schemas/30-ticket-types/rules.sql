-- What holds for a ticket type whoever writes it, beside its constraints: one trigger for each rule.

create function private.tg_ticket_types__refuse_quantity() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued or held for the waiting list.', 'quantity',
    jsonb_strip_nulls(jsonb_build_object('quantity_sold', new.quantity_sold, 'quantity_held', nullif(new.quantity_held, 0))),
    "row" => to_jsonb(new)
  );
  return new;
end
$$;
create trigger ticket_types_100_quantity before update of quantity on public.ticket_types
  for each row when (new.quantity >= 0 and new.quantity < new.quantity_sold + new.quantity_held)
  execute function private.tg_ticket_types__refuse_quantity();
