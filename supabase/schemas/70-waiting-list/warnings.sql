-- What a registration is warned of beside the waiting list.

-- By key: the first states are those of the unique index. Asked only where the ticket type holds places for offers.
create function private.has_offer(ticket_type_id uuid, email_lower text) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return exists (
    select from public.waiting_list_entries w
    where w.ticket_type_id = has_offer.ticket_type_id and w.email_lower = has_offer.email_lower
      and w.status in ('waiting', 'offered') and w.status = 'offered'
  );
end
$$;

create function private.warning_of_offer() returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return private.warning(
    'has_offer', 'The waiting list holds another place of this ticket type for the same e-mail address. Cancel that entry, or cancel this ticket and call accept_waiting_list_offer.'
  );
end
$$;
