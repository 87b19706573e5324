-- The order page: what the buyer of an order sees at /o/TOKEN, without a key. The link stands in the buyer's e-mails alone.

-- It ends with the address of the buyer, so also when the buyer is erased.
create function private.order_token("order" public.orders) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.link_token("order".id, 'order', "order".id::text, "order".email_lower);
end
$$;

-- What an order is for, a line for each ticket type and price: of an order that was cancelled what was cancelled with it, which its totals have.
create function private.order_lines_json("order" public.orders) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object(
      'name', l.name, 'quantity', l.quantity, 'price', l.price, 'discount', l.discount, 'total', l.quantity * l.price - l.discount
    ) order by l.first_id), '[]')
    from (
      select t.name, a.price, count(*) as quantity, sum(a.discount)::bigint as discount, min(a.id::text) as first_id
      from public.attendees a
      join public.ticket_types t on t.id = a.ticket_type_id
      where a.order_id = "order".id
        and (a.status <> 'cancelled' or "order".status = 'cancelled' and a.cancelled_at = "order".cancelled_at)
      group by t.id, a.price
    ) l
  );
end
$$;

-- The first thousand tickets, and one more where there are more. Those that reach nobody but the buyer are the buyer's own, with their secrets;
-- none where the tickets are not e-mailed, as in e-mails.
create function private.order_tickets_json("order" public.orders) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(json_build_object(
      'name', (g.attendee).name,
      'company', (g.attendee).company,
      'ticket_type', t.name,
      'status', (g.attendee).status,
      'ticket_token', case when g.is_own then (g.attendee).ticket_token end,
      'guest_token', case
        when g.is_own and private.acts_in_time(g.attendee, e, '{correct,pass_on}') && e.guests_may then private.guest_token(g.attendee)
      end,
      'ticket_code', case when g.is_own and (g.attendee).status = 'active' then (g.attendee).ticket_code end
    ) order by g.id), '[]')
    from (
      select
        a.id, a as attendee,
        a.status <> 'cancelled' and "order".send_email
          and (a.email_lower = "order".email_lower or private.takes_no_mail(a.email)) as is_own
      from public.attendees a
      where a.order_id = "order".id and a.erased_at is null
      order by a.id
      limit 1001
    ) g
    join public.ticket_types t on t.id = (g.attendee).ticket_type_id
    join public.events e on e.id = t.event_id
  );
end
$$;

-- Null where the link leads to no order: it was changed, or its buyer has another address or was erased.
-- Security definer: the gateway may read no table.
create function api.get_order_page(token text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'organisation', private.look_of(g) || jsonb_build_object(
        'payment_instructions', g.payment_instructions, 'seller_details', g.seller_details, 'tax_note', g.tax_note
      ),
      'event', private.event_json(e),
      'order', private.order_json(o, '[]'),
      'lines', private.order_lines_json(o),
      'tickets', private.order_tickets_json(o)
    )
    from public.orders o
    join public.events e on e.id = o.event_id
    join public.organisations g on g.id = o.organisation_id
    where o.id = private.id_of_link(token) and private.order_token(o) = token
  );
end
$$;
comment on function api.get_order_page is
  'Content of the order page of a link: { organisation, event, order, lines, tickets }. null if the link is not valid. For the gateway.';
grant execute on function api.get_order_page to gateway;
