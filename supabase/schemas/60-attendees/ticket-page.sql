-- The ticket page: what the holder of a ticket sees at /t/TOKEN, without a key. The token is attendees.ticket_token.

create function private.ticket_url(ticket_token text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.link_url('t', ticket_token);
end
$$;
grant execute on function private.ticket_url to scope_attendees_read, scope_attendees_write;

-- The link by which a holder acts on the ticket. It ends with the ticket code and the address, so with a ticket that is passed on.
create function private.guest_token(attendee public.attendees) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.link_token(attendee.id, 'guest', attendee.id::text, attendee.email_lower, attendee.ticket_token);
end
$$;

create function private.attendee_of_link(token text) returns public.attendees
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = private.id_of_link(token) and a.erased_at is null;
  return case when private.guest_token(v_attendee) = token then v_attendee end;
end
$$;

-- Null where no ticket has the token: it never existed, was replaced by a reissue, or its holder was erased. The ticket code is there only
-- while it admits.
-- Security definer: the gateway may read no table.
create function api.get_ticket_page(token text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'organisation', private.look_of(g),
      'event', private.event_json(e),
      'ticket_type', json_build_object('name', t.name),
      'order', json_build_object('reference', o.reference),
      'attendee', json_build_object(
        'id', a.id,
        'name', a.name,
        'company', a.company,
        'status', a.status,
        'ticket_code', case when a.status = 'active' and e.status <> 'cancelled' then a.ticket_code end,
        'checked_in_at', private.rfc3339(a.checked_in_at),
        'updated_at', private.rfc3339(a.updated_at),
        -- Whether changes are e-mailed; null: none will be.
        'emails', case when a.status <> 'cancelled' and e.status <> 'cancelled' and not private.takes_no_mail(a.email)
          then not private.has_opted_out(a) end
      )
    )
    from public.attendees a
    join public.events e on e.id = a.event_id
    join public.ticket_types t on t.id = a.ticket_type_id
    join public.orders o on o.id = a.order_id
    join public.organisations g on g.id = a.organisation_id
    where a.ticket_token = get_ticket_page.token and a.erased_at is null
  );
end
$$;
comment on function api.get_ticket_page is
  'Content of the ticket page of a token: { organisation, event, ticket_type, order, attendee }, or null. For the gateway.';
grant execute on function api.get_ticket_page to gateway;
