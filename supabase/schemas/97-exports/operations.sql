-- Exports: a file of many rows, which the gateway reads page by page, and the link to one. A file goes by keyset from the moment of its
-- first page: what is added later is left out, and each row is as it is when its page is read. A file that is newest first begins
-- with what was there when the transaction of its first page began.

-- It goes on after the last item that it has room for, or else at `next_cursor`, after the last row that was looked at.
create function private.export_page(items json[], size integer, next_cursor text, cursors text[] default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_page json := private.page(items, size, cursors);
begin
  return json_build_object(
    'as_of', private.rfc3339(now()),
    'rows', v_page -> 'data',
    'next_cursor', coalesce(v_page ->> 'next_cursor', export_page.next_cursor)
  );
end
$$;
grant execute on function private.export_page to scope_attendees_read, scope_orders_read;

create function api.export_attendees_page(
  event_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  updated_after timestamptz default null,
  cursor text default null,
  size integer default 250
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  -- Of those that changed there may be few: more are looked at.
  v_scanned integer := case when updated_after is null then size else size * 10 end;
  v_ids uuid[];
begin
  perform private.assert_own_objects(export_attendees_page.event_id, export_attendees_page.ticket_type_id);
  v_ids := private.page_of_attendees(
    export_attendees_page.event_id, export_attendees_page.ticket_type_id, export_attendees_page.status, export_attendees_page.checked_in, null,
    coalesce(private.decode_cursor(cursor), private.first_uuid_v7(now() + interval '1 millisecond')), v_scanned
  );
  return private.export_page(
    array(
      select to_json(v)
      from unnest(v_ids) with ordinality i (id, place)
      cross join lateral (
        -- Not of the view: members who may read that see no codes.
        select x.*, a.ticket_code from public.attendee_export x join public.attendees a on a.id = x.id where x.id = i.id offset 0
      ) v
      where export_attendees_page.updated_after is null
        or exists (select from public.attendees a where a.id = i.id and a.updated_at >= export_attendees_page.updated_after)
      order by i.place
      limit size + 1
    ),
    size,
    case when cardinality(v_ids) = v_scanned then private.encode_cursor(v_ids[v_scanned]) end
  );
end
$$;
comment on function api.export_attendees_page is
  'A page of the file from export_attendees: { as_of, rows, next_cursor }. 404 not_found (event_id, ticket_type_id). For the gateway.';
grant execute on function api.export_attendees_page to scope_attendees_read;

create function api.export_attendees(
  event_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  updated_after timestamptz default null,
  fields text[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return private.export_link(
    'export_attendees', 'public.attendee_export',
    jsonb_build_object(
      'event_id', event_id, 'ticket_type_id', ticket_type_id, 'status', status, 'checked_in', checked_in, 'updated_after', updated_after,
      'fields', fields
    ),
    case when updated_after is null then private.page_of_attendees(
      event_id, ticket_type_id, status, checked_in, null, private.before_cursor(null), 10001
    ) end,
    idempotency_key, request_fingerprint
  );
end
$$;
comment on function api.export_attendees is
  'Creates a link to a file of attendees, valid for 15 minutes: 201 with { url, expires_at, good_for_minutes, rows, columns }. 404 not_found (event_id, ticket_type_id).';
grant execute on function api.export_attendees to scope_attendees_read;

create function api.export_orders_page(
  event_id uuid default null,
  status public.order_status default null,
  payment_status public.payment_status[] default null,
  updated_after timestamptz default null,
  cursor text default null,
  size integer default 250
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_scanned integer := case when updated_after is null then size else size * 10 end;
  v_ids uuid[];
begin
  perform private.assert_own_objects(export_orders_page.event_id);
  v_ids := private.page_of_orders(
    export_orders_page.event_id, export_orders_page.status, export_orders_page.payment_status,
    coalesce(private.decode_cursor(cursor), private.first_uuid_v7(now() + interval '1 millisecond')), v_scanned
  );
  return private.export_page(
    array(
      select to_json(v)
      from unnest(v_ids) with ordinality i (id, place)
      cross join lateral (select x.* from public.order_export x where x.id = i.id offset 0) v
      where export_orders_page.updated_after is null
        or exists (select from public.orders o where o.id = i.id and o.updated_at >= export_orders_page.updated_after)
      order by i.place
      limit size + 1
    ),
    size,
    case when cardinality(v_ids) = v_scanned then private.encode_cursor(v_ids[v_scanned]) end
  );
end
$$;
comment on function api.export_orders_page is
  'A page of the file from export_orders: { as_of, rows, next_cursor }. 404 not_found (event_id). For the gateway.';
grant execute on function api.export_orders_page to scope_orders_read;

create function api.export_orders(
  event_id uuid default null,
  status public.order_status default null,
  payment_status public.payment_status[] default null,
  updated_after timestamptz default null,
  fields text[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return private.export_link(
    'export_orders', 'public.order_export',
    jsonb_build_object(
      'event_id', event_id, 'status', status, 'payment_status', payment_status, 'updated_after', updated_after, 'fields', fields
    ),
    case when updated_after is null then private.page_of_orders(event_id, status, payment_status, private.before_cursor(null), 10001) end,
    idempotency_key, request_fingerprint
  );
end
$$;
comment on function api.export_orders is
  'Creates a link to a file of orders, valid for 15 minutes: 201 with { url, expires_at, good_for_minutes, rows, columns }. 404 not_found (event_id).';
grant execute on function api.export_orders to scope_orders_read;

-- Where a file of payments is: it is in the order of the books, the oldest first, and leaves out what was recorded after its beginning. At
-- the beginning only `as_of` is set.
create type private.payment_position as (as_of timestamptz, booked_at timestamptz, id uuid);

-- Ids of the lines of a page of payments, and when they were booked. A void is found by its organisation, for there are few. Security
-- definer, as all finders: see 00-ground/pages.sql.
create function private.page_of_payment_lines(
  event_id uuid, received_after timestamptz, received_before timestamptz, "position" private.payment_position, size integer
) returns table (id uuid, booked_at timestamptz)
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_as_of timestamptz := "position".as_of;
  v_at timestamptz := greatest(received_after, "position".booked_at, '-infinity');
  v_id uuid := case when v_at = "position".booked_at then "position".id else '00000000-0000-0000-0000-000000000000' end;
  v_until timestamptz := coalesce(received_before, 'infinity');
begin
  return query
  select l.id, l.booked_at
  from (
    (
      select p.id, p.received_at as booked_at
      from public.payments p
      where page_of_payment_lines.event_id is null and p.organisation_id = v_organisation_id
        and (p.received_at, p.id) > (v_at, v_id) and p.received_at < v_until and p.created_at <= v_as_of
      order by p.received_at, p.id
      limit size
    )
    union all
    (
      select p.id, p.received_at
      from public.payments p
      where p.event_id = page_of_payment_lines.event_id and (p.organisation_id = v_organisation_id) is true
        and (p.received_at, p.id) > (v_at, v_id) and p.received_at < v_until and p.created_at <= v_as_of
      order by p.received_at, p.id
      limit size
    )
    union all
    (
      select v.id, v.created_at
      from public.payment_voids v
      where v.organisation_id = v_organisation_id
        and (v.created_at, v.id) > (v_at, v_id) and v.created_at < v_until and v.created_at <= v_as_of
        and (
          page_of_payment_lines.event_id is null
          or exists (select from public.payments p where p.id = v.payment_id and p.event_id = page_of_payment_lines.event_id)
        )
      order by v.created_at, v.id
      limit size
    )
    union all
    (
      select r.id, r.refunded_at
      from public.refunds r
      where page_of_payment_lines.event_id is null and r.organisation_id = v_organisation_id
        and (r.refunded_at, r.id) > (v_at, v_id) and r.refunded_at < v_until and r.created_at <= v_as_of
      order by r.refunded_at, r.id
      limit size
    )
    union all
    (
      select r.id, r.refunded_at
      from public.refunds r
      where r.event_id = page_of_payment_lines.event_id and (r.organisation_id = v_organisation_id) is true
        and (r.refunded_at, r.id) > (v_at, v_id) and r.refunded_at < v_until and r.created_at <= v_as_of
      order by r.refunded_at, r.id
      limit size
    )
  ) l
  order by l.booked_at, l.id
  limit size;
end
$$;
grant execute on function private.page_of_payment_lines to scope_orders_read;

create function api.export_payments_page(
  event_id uuid default null,
  received_after timestamptz default null,
  received_before timestamptz default null,
  cursor text default null,
  size integer default 250
) returns json
language plpgsql stable set search_path = '' set timezone = 'UTC'
as $$
declare
  v_position private.payment_position := row(now(), null, null);
  v_items json[];
  v_cursors text[];
begin
  if cursor is not null then
    begin
      -- The gateway sends back what it was answered.
      v_position := cursor::private.payment_position;
    exception when invalid_text_representation or datetime_field_overflow or invalid_datetime_format then
      perform private.refuse_value('cursor', 'The cursor is not valid.');
    end;
  end if;
  perform private.assert_own_objects(export_payments_page.event_id);
  select
    array_agg(to_json(v) order by l.booked_at, l.id),
    array_agg(row(v_position.as_of, l.booked_at, l.id)::private.payment_position::text order by l.booked_at, l.id)
  into v_items, v_cursors
  from private.page_of_payment_lines(
    export_payments_page.event_id, export_payments_page.received_after, export_payments_page.received_before, v_position, size + 1
  ) l
  cross join lateral (select x.* from public.payment_export x where x.id = l.id offset 0) v;
  return private.export_page(v_items, size, null, v_cursors);
end
$$;
comment on function api.export_payments_page is
  'A page of the file from export_payments: { as_of, rows, next_cursor }. 404 not_found (event_id). For the gateway.';
grant execute on function api.export_payments_page to scope_orders_read;

create function api.export_payments(
  event_id uuid default null,
  received_after timestamptz default null,
  received_before timestamptz default null,
  fields text[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return private.export_link(
    'export_payments', 'public.payment_export',
    jsonb_build_object(
      'event_id', event_id, 'received_after', received_after, 'received_before', received_before, 'fields', fields
    ),
    array(select l.id from private.page_of_payment_lines(event_id, received_after, received_before, row(now(), null, null), 10001) l),
    idempotency_key, request_fingerprint
  );
end
$$;
comment on function api.export_payments is
  'Creates a link to a file of payments, voids and refunds, valid for 15 minutes: 201 with { url, expires_at, good_for_minutes, rows, columns }. 404 not_found (event_id).';
grant execute on function api.export_payments to scope_orders_read;

create function api.export_check_ins_page(
  event_id uuid default null,
  result public.check_in_result default null,
  cursor text default null,
  size integer default 250
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  perform private.assert_own_objects(export_check_ins_page.event_id);
  v_ids := private.page_of_check_ins(
    null, export_check_ins_page.event_id, export_check_ins_page.result,
    coalesce(private.decode_cursor(cursor), private.first_uuid_v7(now() + interval '1 millisecond')), size + 1
  );
  return private.export_page(
    array(
      select to_json(v)
      from unnest(v_ids) with ordinality i (id, place)
      cross join lateral (select x.* from public.check_in_export x where x.id = i.id offset 0) v
      order by i.place
    ),
    size,
    null
  );
end
$$;
comment on function api.export_check_ins_page is
  'A page of the file from export_check_ins: { as_of, rows, next_cursor }. 404 not_found (event_id). For the gateway.';
grant execute on function api.export_check_ins_page to scope_attendees_read;

create function api.export_check_ins(
  event_id uuid default null,
  result public.check_in_result default null,
  fields text[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return private.export_link(
    'export_check_ins', 'public.check_in_export',
    jsonb_build_object('event_id', event_id, 'result', result, 'fields', fields),
    private.page_of_check_ins(null, event_id, result, private.before_cursor(null), 10001),
    idempotency_key, request_fingerprint
  );
end
$$;
comment on function api.export_check_ins is
  'Creates a link to a file of scans, valid for 15 minutes: 201 with { url, expires_at, good_for_minutes, rows, columns }. 404 not_found (event_id).';
grant execute on function api.export_check_ins to scope_attendees_read;
