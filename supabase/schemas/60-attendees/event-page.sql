-- The registration page of an event, /e/ORGANISATION/EVENT: what it shows, and what may come of its form, which anybody can send. The page registers
-- by api.register_attendee, with a key of its own; what was added is judged here, when nobody can change a ticket type or a code any more.

-- The event whose page it is, by the slugs; null where there is no page. A draft has none.
create function private.event_of_page(organisation text, event text) returns public.events
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event
  from public.organisations o
  join public.events e on e.organisation_id = o.id and e.slug = event_of_page.event and e.slug <> ''
  where o.slug = event_of_page.organisation and e.registration_page <> 'off' and e.status <> 'draft';
  return v_event;
end
$$;

-- A code that can be used now.
create function private.code_of_page(event_id uuid, code text) returns public.promo_codes
language plpgsql stable set search_path = ''
as $$
declare
  v_code public.promo_codes;
begin
  select c.* into v_code
  from public.promo_codes c
  where c.event_id = code_of_page.event_id and lower(c.code) = lower(normalize(btrim(code_of_page.code), nfc));
  return case when private.promo_code_json(v_code) ->> 'state' = 'valid' then v_code end;
end
$$;

-- The ticket types that the page offers, with what a code does to each: whether it takes the code, and the price that a percentage leaves.
create function private.ticket_types_of_page(event public.events, code public.promo_codes) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_places_left bigint := event.capacity - private.places_taken(event.id);
begin
  return (
    select coalesce(jsonb_agg(
      private.ticket_type_json(t, event, v_places_left)::jsonb || jsonb_build_object(
        'takes_code', c.takes_code,
        'price_with_code', t.price - case when c.takes_code then round(t.price * coalesce(code.percent_off, 0) / 100) else 0 end
      )
      order by t.position, t.id
    ), '[]')
    from public.ticket_types t
    cross join lateral (
      select coalesce((code.ticket_type_ids = '{}' or t.id = any (code.ticket_type_ids)) and (t.price > 0 or code.unlocks), false) as takes_code
    ) c
    where t.event_id = event.id and t.status = 'active' and (t.visibility = 'public' or c.takes_code and code.unlocks)
  );
end
$$;

-- Security definer: the gateway may read no table. `tickets` are those that are chosen, a number by ticket type.
create function api.get_event_page(organisation text, event text, code text default null, tickets jsonb default '{}') returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_event public.events := private.event_of_page(organisation, event);
  v_code public.promo_codes := private.code_of_page(v_event.id, code);
  v_types jsonb := private.ticket_types_of_page(v_event, v_code);
begin
  return (
    select json_build_object(
      'organisation', private.look_of(g) || jsonb_build_object('embed_origins', g.embed_origins),
      'event', private.event_json(v_event),
      'key', json_build_object('api_key_id', k.id, 'family_id', k.family_id, 'organisation_id', k.organisation_id),
      'ticket_types', v_types,
      'questions', (
        select coalesce(jsonb_agg(
          to_jsonb(q) - '{event_id,organisation_id,at_door,delete_after_days,ask,position,status,version,created_at,updated_at}'::text[]
          order by q.position, q.id
        ), '[]')
        from public.questions q
        where q.event_id = v_event.id and q.status = 'active' and q.ask <> 'ticket_page'
      ),
      'code', v_code.code,
      -- As private.price_attendee: a percentage off each ticket, an amount off the order.
      'total', (
        select coalesce(sum(n.quantity * (t ->> 'price_with_code')::bigint), 0) - coalesce(least(
          coalesce(v_code.amount_off, 0), sum(n.quantity * (t ->> 'price')::bigint) filter (where (t ->> 'takes_code')::boolean)
        ), 0)
        from jsonb_array_elements(v_types) t
        cross join lateral (select coalesce((tickets ->> (t ->> 'id'))::integer, 0) as quantity) n
        where t ->> 'sales_status' = 'on_sale'
      )
    )
    from public.organisations g
    join public.api_keys k on k.event_id = v_event.id and private.is_usable_key(k)
    where g.id = v_event.organisation_id
  );
end
$$;
comment on function api.get_event_page is
  'Content of the registration page of an event: { organisation, event, key, ticket_types, questions, code, total }, or null. For the gateway.';
grant execute on function api.get_event_page to gateway;

-- The event of the calling page.
create function private.assert_own_page(event_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (
    select from public.api_keys k
    join public.events e on e.id = k.event_id
    where k.id = private.current_api_key_id() and e.id = assert_own_page.event_id and e.registration_page <> 'off'
  ) then
    perform private.refuse_not_found('event_id');
  end if;
end
$$;

-- What a page may sell: what it shows, for its price, to guests who answered what has to be answered. The tickets are added and their types
-- locked, so none of this changes any more. Nobody has tickets sent to one address all day long.
create function private.assert_page_takes_orders(order_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most_per_hour constant integer := 5;
  v_guest record;
begin
  perform private.assert_own_page(o.event_id) from public.orders o where o.id = any (order_ids);
  for v_guest in
    select
      a as attendee, o.payment_method, t.price, row_number() over (partition by o.id order by a.id) - 1 as place,
      t.visibility = 'hidden' and c.unlocks is not true as is_hidden,
      (
        select q.key from public.questions q
        where q.event_id = a.event_id and q.required and q.ask <> 'ticket_page' and private.is_unanswered(q, a)
        order by q.position, q.id
        limit 1
      ) as unanswered
    from public.orders o
    join public.attendees a on a.order_id = o.id
    join public.ticket_types t on t.id = a.ticket_type_id
    left join public.promo_codes c on c.id = a.promo_code_id
    where o.id = any (order_ids)
    order by a.id
  loop
    if v_guest.is_hidden then
      perform private.refuse_not_found(format('attendees.%s.ticket_type_id', v_guest.place));
    elsif v_guest.price > 0 and v_guest.payment_method is distinct from 'invoice' then
      perform private.refuse_value('payment_method', 'This ticket is paid by invoice.');
    elsif private.takes_no_mail((v_guest.attendee).email) then
      perform private.refuse_value(format('attendees.%s.email', v_guest.place), 'The ticket cannot be e-mailed to this address.');
    elsif v_guest.unanswered is not null then
      perform private.refuse_value(format('attendees.%s.answers.%s', v_guest.place, v_guest.unanswered), 'This question needs an answer.');
    elsif (
      select count(distinct r.order_id)
      from public.attendees r
      where r.organisation_id = (v_guest.attendee).organisation_id and r.email_lower = (v_guest.attendee).email_lower
        and r.id >= private.first_uuid_v7(now() - interval '1 hour') and r.event_id = (v_guest.attendee).event_id
    ) > v_most_per_hour then
      perform private.refuse(
        429, 'rate_limited', 'Too many registrations with this e-mail address.', format('attendees.%s.email', v_guest.place),
        hint => 'Wait for an hour, or ask the organiser.'
      );
    end if;
  end loop;
end
$$;

create function private.assert_page_takes_entry(entry public.waiting_list_entries) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.assert_own_page(entry.event_id);
  if exists (select from public.ticket_types t where t.id = entry.ticket_type_id and t.visibility = 'hidden') then
    perform private.refuse_not_found('ticket_type_id');
  elsif private.takes_no_mail(entry.email) then
    perform private.refuse_value('email', 'Nothing can be e-mailed to this address.');
  end if;
end
$$;
grant execute on function private.assert_page_takes_orders, private.assert_page_takes_entry to scope_attendees_write;
