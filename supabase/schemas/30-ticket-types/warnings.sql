-- What a change of a ticket type is warned of.

-- 299 for 299.00. A price that stands beside others was probably meant: they say what is usual.
create function private.warning_of_price(ticket_type public.ticket_types) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_currency text;
begin
  if ticket_type.price not between 1 and 9999 then
    return null;
  end if;
  select e.currency into v_currency from public.events e where e.id = ticket_type.event_id;
  if ticket_type.price >= 10 * private.minor_units(v_currency) or exists (
    select from public.ticket_types t where t.event_id = ticket_type.event_id and t.price > 0 and t.id <> ticket_type.id
  ) then
    return null;
  end if;
  return private.warning('price_low', format(
    'The price is %s because prices are in minor units. For %s, send %s.',
    private.money_text(ticket_type.price, v_currency),
    private.money_text(ticket_type.price * private.minor_units(v_currency), v_currency),
    ticket_type.price * private.minor_units(v_currency)
  ));
end
$$;
grant execute on function private.warning_of_price to scope_events_write;
