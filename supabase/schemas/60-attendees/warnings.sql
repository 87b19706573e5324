-- What a registration is warned of.

create function private.warning_of_gift() returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return private.warning(
    'ticket_given_away', 'A ticket that has a price was given away. If it is to be paid, cancel it and register with payment_method.'
  );
end
$$;
grant execute on function private.warning_of_gift to scope_attendees_write;

-- The same of tickets of these types, none of which was paid for. Security definer: a registering key may not read prices.
create function private.warning_of_gifts(ticket_type_ids uuid[]) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
begin
  return case when exists (
    select from public.ticket_types t
    where t.id = any (ticket_type_ids) and t.organisation_id = private.current_organisation_id() and t.price > 0
  ) then private.warning_of_gift() end;
end
$$;
grant execute on function private.warning_of_gifts to scope_attendees_write;

create function private.warning_of_repetition() returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return private.warning(
    'person_repeated', 'A person of the same name and e-mail address was registered for this event within ten minutes. Cancel one of the two if it was meant once.'
  );
end
$$;
grant execute on function private.warning_of_repetition to scope_attendees_write;
