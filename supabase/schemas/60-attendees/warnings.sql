-- What a registration is warned of.

create function private.warning_of_gift() returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return private.warning(
    'ticket_given_away', 'A priced ticket was given free of charge. If it should be paid, cancel it and register with payment_method.'
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
    'person_repeated', 'A person with the same name and e-mail address was registered for this event within ten minutes. If that is a duplicate, cancel one of the two.'
  );
end
$$;
grant execute on function private.warning_of_repetition to scope_attendees_write;

-- Whether the ticket of an attendee is with an address that is no longer theirs, and nothing was sent to the present one.
create function private.is_at_former_address(former public.attendees, present public.attendees) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return lower(former.email) <> lower(present.email)
    and former.ticket_email_status in ('sent', 'delivered', 'bounced')
    and present.ticket_email_status = former.ticket_email_status
    and present.status = 'active'
    and present.checked_in_at is null;
end
$$;
grant execute on function private.is_at_former_address to scope_attendees_write;

-- Null for no tickets.
create function private.warning_of_former_addresses(tickets bigint) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  if tickets > 0 then
    return private.warning('ticket_at_former_address', format(
      '%s e-mailed to the former address, and nothing to the new one. Call resend_ticket to send the ticket. If another person comes, '
      'call update_attendee with reissue_ticket to send a new code and stop the former one.',
      case tickets when 1 then 'The ticket was' else tickets || ' tickets were' end
    ));
  end if;
  return null;
end
$$;
grant execute on function private.warning_of_former_addresses to scope_attendees_write;

-- Of a change of an attendee: the ticket is with a former address, it keeps its price in a ticket type with another one, or the contact of the
-- order, who is told of its money, is who they were. Security definer: a key for attendees may read neither prices, which it is not told, nor
-- orders. One that may not see the contact is told nothing, lest it guesses who it is.
create function private.warnings_of_attendee(former public.attendees, present public.attendees) returns jsonb[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array[
    private.warning_of_former_addresses(private.is_at_former_address(former, present)::integer),
    case when former.ticket_type_id <> present.ticket_type_id then (
      select private.warning('price_kept', format(
        'The ticket keeps its price of %s, which differs from the new ticket type. To charge the new price, cancel the ticket and register the person again.',
        private.money_text(present.price, present.currency)
      ))
      from public.ticket_types t
      where t.id = present.ticket_type_id and t.price <> present.price and not private.is_foreign(t.organisation_id)
    ) end,
    case when lower(former.email) <> lower(present.email) and private.current_scopes() && '{orders:read,orders:write}' then (
      select private.warning(
        'buyer_has_former_address',
        'The contact of the order still has the former e-mail address, so receipts and reminders go there. If it is the same person, correct it with update_order.'
      )
      from public.orders o
      where o.id = present.order_id
        and o.email_lower = lower(former.email)
        and private.person_form(o.name) = private.person_form(former.name)
        and o.payment_method is not null
        and not private.is_foreign(o.organisation_id)
    ) end
  ];
end
$$;
grant execute on function private.warnings_of_attendee to scope_attendees_write;
