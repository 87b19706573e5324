-- What a change of a promo code is warned of.

create function private.warning_of_percentage(promo_code public.promo_codes) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return case when promo_code.percent_off < 1 then private.warning(
    'percent_off_low', format('The code takes off %s percent. To take off a quarter, send 25.', promo_code.percent_off::float8)
  ) end;
end
$$;
grant execute on function private.warning_of_percentage to scope_events_write;
