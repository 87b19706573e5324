-- The page of an offer: where the person who is offered a place takes it or lets it go, at /w/TOKEN. Its link is in the e-mails of the offer
-- alone.

-- Each offer has its own link. It ends when the address is corrected or erased.
create function private.offer_token(entry public.waiting_list_entries) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.link_token(entry.id, 'offer', entry.id::text, entry.email_lower, extract(epoch from entry.offered_at)::text);
end
$$;

create function private.entry_of_offer(token text) returns public.waiting_list_entries
language plpgsql stable set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  select w.* into v_entry from public.waiting_list_entries w where w.id = private.id_of_link(token);
  return case when private.offer_token(v_entry) = token then v_entry end;
end
$$;

-- Security definer, these three: the gateway may read no table. The status of an accepted offer is that of its ticket.
create function api.get_offer_page(token text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'organisation', private.look_of(g),
      'event', private.event_json(e),
      'ticket_type', json_build_object('name', t.name, 'price', t.price),
      'offer', json_build_object(
        'name', w.name,
        'status', case
          when w.status = 'accepted' then coalesce(a.status::text, 'cancelled')
          when w.status = 'offered' and w.offer_expires_at <= now() then 'expired'
          else w.status::text
        end,
        'expires_at', private.rfc3339(w.offer_expires_at)
      ),
      'order', json_build_object(
        'reference', o.reference,
        'amount_due', case when o.id is not null then private.amount_due(o) end,
        'payment_due_at', private.rfc3339(o.payment_due_at)
      )
    )
    from private.entry_of_offer(token) w
    join public.events e on e.id = w.event_id
    join public.ticket_types t on t.id = w.ticket_type_id
    join public.organisations g on g.id = w.organisation_id
    left join public.attendees a on a.waiting_list_entry_id = w.id
    left join public.orders o on o.id = a.order_id
  );
end
$$;
comment on function api.get_offer_page is
  'Content of the page of an offer: { organisation, event, ticket_type, offer, order }. null if the link is not valid. For the gateway.';
grant execute on function api.get_offer_page to gateway;

create function api.take_offer(token text, pays boolean) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries := private.entry_of_offer(token);
  v_price bigint := (select t.price from public.ticket_types t where t.id = v_entry.ticket_type_id);
begin
  if v_entry.id is not null then
    if v_price > 0 and not pays then
      perform private.refuse_value('pays', 'The place has a price by now.');
    end if;
    perform private.register_offered(v_entry, case when v_price > 0 then 'invoice'::public.payment_method end);
  end if;
  -- Once more, now that the entry is locked.
  if (private.entry_of_offer(token)).id is null then
    perform private.refuse_not_found('token');
  end if;
end
$$;
comment on function api.take_offer is
  'Accepts an offer by the link of its e-mail, as accept_waiting_list_offer; an invoice pays for what has a price. 404 not_found; 422 validation_failed where it has a price and the guest was shown none. For the gateway.';
grant execute on function api.take_offer to gateway;

create function api.decline_offer(token text) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries := private.lock_waiting_list_entry((private.entry_of_offer(token)).id);
begin
  if private.offer_token(v_entry) <> token then
    perform private.refuse_not_found('token');
  end if;
  perform private.assert_offered(v_entry);
  update public.waiting_list_entries w set status = 'cancelled' where w.id = v_entry.id;
end
$$;
comment on function api.decline_offer is
  'Declines an offer by the link of its e-mail, as cancel_waiting_list_entry. 404 not_found; 409 not_offered, offer_expired. For the gateway.';
grant execute on function api.decline_offer to gateway;
