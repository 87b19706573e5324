-- Operations on orders. The rules are in the triggers of 50-orders/rules.sql, so that they hold for Studio as well. An order is
-- answered with its attendees and payments.

-- An order of the caller's organisation with its attendees, payments and refunds, or null: without ticket codes, which a key for orders may
-- not see. Security definer: such a key has no other right to attendees, and a query that meets row level security is planned anew whenever
-- the role changes.
create function private.whole_order_json(order_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select private.order_json(o, (
      select coalesce(json_agg(
        private.attendee_json(a, false, (select t.name from public.ticket_types t where t.id = a.ticket_type_id), o.reference) order by a.id
      ), '[]')
      from public.attendees a
      where a.order_id = o.id
    ))
    from public.orders o
    where o.id = whole_order_json.order_id and not private.is_foreign(o.organisation_id)
  );
end
$$;
grant execute on function private.whole_order_json to scope_orders_read, scope_orders_write;

-- Ids of a page of orders, newest first: see 00-ground/pages.sql. One of the two indexes has them, and the other is asked for nothing.
create function private.page_of_orders(
  event_id uuid,
  status public.order_status,
  payment_statuses public.payment_status[],
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_event_ids uuid[] := array(
    select e.id from public.events e where e.id = page_of_orders.event_id and e.organisation_id = any (v_organisation_ids)
  );
begin
  return array(
    select f.id
    from unnest(enum_range(null::public.order_status)) s (status)
    cross join unnest(coalesce(payment_statuses, enum_range(null::public.payment_status))) p (status)
    cross join lateral (
      (
        select o.id
        from public.orders o
        where page_of_orders.event_id is null and o.organisation_id = any (v_organisation_ids)
          and o.status = s.status and o.payment_status = p.status and o.id < before
        order by o.organisation_id desc, o.id desc
        limit size
      )
      union all
      (
        select o.id
        from public.orders o
        where o.event_id = any (v_event_ids) and o.status = s.status and o.payment_status = p.status and o.id < before
        order by o.event_id desc, o.id desc
        limit size
      )
    ) f
    where page_of_orders.status is null or s.status = page_of_orders.status
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_orders to scope_orders_read;

-- The same of orders that are to be paid by a deadline, of which something is due, or that have expired: by the deadline, the earliest
-- first. Those that are overdue had it before now.
create function private.page_of_due_orders(
  event_id uuid,
  status public.order_status,
  payment_statuses public.payment_status[],
  due_before timestamptz,
  after private.start_position,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_event_ids uuid[] := array(
    select e.id from public.events e where e.id = page_of_due_orders.event_id and e.organisation_id = any (v_organisation_ids)
  );
begin
  return array(
    select f.id
    from unnest(enum_range(null::public.order_status)) s (status)
    cross join unnest(coalesce(payment_statuses, enum_range(null::public.payment_status))) p (status)
    cross join lateral (
      (
        select o.payment_due_at, o.id
        from public.orders o
        where page_of_due_orders.event_id is null and o.organisation_id = any (v_organisation_ids)
          and o.status = s.status and o.payment_status = p.status
          and (o.payment_status in ('awaiting_payment', 'partially_paid') or o.cancellation_reason = 'expired')
          and (o.payment_due_at, o.id) > (after.starts_at, after.id) and o.payment_due_at < due_before
        order by o.organisation_id, o.payment_due_at, o.id
        limit size
      )
      union all
      (
        select o.payment_due_at, o.id
        from public.orders o
        where o.event_id = any (v_event_ids)
          and o.status = s.status and o.payment_status = p.status
          and (o.payment_status in ('awaiting_payment', 'partially_paid') or o.cancellation_reason = 'expired')
          and (o.payment_due_at, o.id) > (after.starts_at, after.id) and o.payment_due_at < due_before
        order by o.event_id, o.payment_due_at, o.id
        limit size
      )
    ) f
    where page_of_due_orders.status is null or s.status = page_of_due_orders.status
    order by f.payment_due_at, f.id
    limit size
  );
end
$$;
grant execute on function private.page_of_due_orders to scope_orders_read;
grant execute on function private.encode_start_cursor, private.after_start_cursor to scope_orders_read;

-- Those of the given orders of which an attendee, or the contact, matches every pattern, in their order; without them all of an event, or of
-- the organisation. Security definer: a key for orders has no right to attendees.
create function private.matching_orders(order_ids uuid[], patterns text[], event_id uuid default null) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  if order_ids is null then
    return array(
      select distinct a.order_id
      from unnest(private.search_attendees(patterns, null, matching_orders.event_id, size => null)) f (id)
      join public.attendees a on a.id = f.id
    );
  end if;
  return array(
    select i.id
    from unnest(order_ids) with ordinality i (id, place)
    where exists (
      select from public.attendees a
      where a.order_id = i.id
        and a.organisation_id is not distinct from private.current_organisation_id()
        and a.search_text ~ all (patterns)
    )
    order by i.place
  );
end
$$;
grant execute on function private.matching_orders to scope_orders_read;

create function api.list_orders(
  event_id uuid default null,
  search text default null,
  status public.order_status default null,
  payment_status public.payment_status[] default null,
  overdue boolean default null,
  due_after timestamptz default null,
  due_before timestamptz default null,
  email text default null,
  reference text default null,
  external_id text default null,
  payment_reference text default null,
  updated_after timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  -- Newest first; or by their deadline, where that is asked for.
  v_is_by_deadline boolean := overdue is true or num_nonnulls(due_after, due_before) > 0;
  v_due_before timestamptz := least(due_before, case when overdue then now() + interval '1 microsecond' end, 'infinity');
  v_before uuid := case when v_is_by_deadline then private.before_cursor(null) else private.before_cursor(cursor) end;
  v_after private.start_position := private.after_start_cursor(case when v_is_by_deadline then cursor end);
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  -- What is named is few, and so is what one buyer ordered.
  v_named uuid[] := case
    when reference is not null
      then array(select o.id from public.orders o where o.reference = private.code_form(list_orders.reference))
    when external_id is not null then array(select o.id from public.orders o where o.external_id = list_orders.external_id)
    when payment_reference is not null
      then array(select distinct p.order_id from public.payments p where p.external_reference = payment_reference)
    when email is not null then array(select o.id from public.orders o where o.email_lower = lower(list_orders.email))
  end;
  v_chunk integer;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_order public.orders;
  v_item json;
  v_items json[] := '{}';
  v_cursors text[] := '{}';
begin
  if due_after >= due_before then
    perform private.refuse_value('due_after', 'due_after must be before due_before.', 'Send an earlier due_after, or a later due_before.');
  elsif v_after.starts_at < due_after then
    v_after := row(due_after, '00000000-0000-0000-0000-000000000000');
  end if;
  -- Most pages of what was updated since a time, or of what a search matches, are among the newest anyway; where they are not, little was,
  -- or does, and all of that is read.
  foreach v_chunk in array case
    when v_named is null and (v_patterns is not null or updated_after is not null) then array[v_size + 1, 1000, null] else array[v_size + 1]
  end loop
    v_ids := case
      when v_named is not null then v_named
      when v_chunk is null and v_patterns is not null then private.matching_orders(null, v_patterns, list_orders.event_id)
      when v_chunk is null then array(select o.id from public.orders o where o.updated_at >= updated_after)
      when v_is_by_deadline then private.page_of_due_orders(
        list_orders.event_id, list_orders.status, list_orders.payment_status, v_due_before, v_after, v_chunk
      )
      else private.page_of_orders(list_orders.event_id, list_orders.status, list_orders.payment_status, v_before, v_chunk)
    end;
    for v_order in
      select o.*
      from unnest(case when v_patterns is null then v_ids else private.matching_orders(v_ids, v_patterns) end) i (id)
      join public.orders o on o.id = i.id
      where (list_orders.event_id is null or o.event_id = list_orders.event_id)
        and (list_orders.status is null or o.status = list_orders.status)
        and (list_orders.payment_status is null or o.payment_status = any (list_orders.payment_status))
        and (list_orders.email is null or o.email_lower = lower(list_orders.email))
        and (list_orders.external_id is null or o.external_id = list_orders.external_id)
        and (updated_after is null or o.updated_at >= updated_after)
        and case
          when v_is_by_deadline
            then (o.payment_status in ('awaiting_payment', 'partially_paid') or o.cancellation_reason = 'expired')
              and (o.payment_due_at, o.id) > (v_after.starts_at, v_after.id) and o.payment_due_at < v_due_before
          else o.id < v_before
        end
      order by case when v_is_by_deadline then o.payment_due_at end, case when v_is_by_deadline then o.id end, o.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.whole_order_json(v_order.id);
      v_items := v_items || v_item;
      v_cursors := v_cursors || private.encode_start_cursor(row(v_order.payment_due_at, v_order.id)::private.start_position);
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1 or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
    select o.payment_due_at, o.id into v_after from public.orders o where o.id = v_before;
  end loop;
  return private.page(v_items, v_size, case when v_is_by_deadline then v_cursors end);
end
$$;
comment on function api.list_orders is
  'Orders of the organisation with their attendees, newest first or by deadline, with optional filters: { data, has_more, next_cursor }.';
grant execute on function api.list_orders to scope_orders_read;

-- Ids of a page of payments, the last received first: see 00-ground/pages.sql.
create function private.page_of_payments(
  event_id uuid, order_id uuid, received_after timestamptz, before private.start_position, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_event_ids uuid[] := array(
    select e.id from public.events e where e.id = page_of_payments.event_id and e.organisation_id = any (v_organisation_ids)
  );
  v_from timestamptz := coalesce(received_after, '-infinity');
begin
  -- Of one order there are few.
  if order_id is not null then
    return array(
      select p.id from public.payments p
      where p.order_id = page_of_payments.order_id and (p.organisation_id = any (v_organisation_ids)) is true
    );
  end if;
  return array(
    select f.id
    from (
      (
        select p.received_at, p.id
        from public.payments p
        where page_of_payments.event_id is null and p.organisation_id = any (v_organisation_ids)
          and (p.received_at, p.id) < (before.starts_at, before.id) and p.received_at >= v_from
        order by p.organisation_id desc, p.received_at desc, p.id desc
        limit size
      )
      union all
      (
        select p.received_at, p.id
        from public.payments p
        where p.event_id = any (v_event_ids) and (p.received_at, p.id) < (before.starts_at, before.id) and p.received_at >= v_from
        order by p.event_id desc, p.received_at desc, p.id desc
        limit size
      )
    ) f
    order by f.received_at desc, f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_payments to scope_orders_read;

create function api.list_payments(
  event_id uuid default null,
  order_id uuid default null,
  received_after timestamptz default null,
  received_before timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before private.start_position := private.after_start_cursor(cursor);
  v_items json[];
  v_cursors text[];
begin
  if cursor is null then
    v_before := row('infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  end if;
  if v_before.starts_at >= received_before then
    v_before := row(received_before, '00000000-0000-0000-0000-000000000000');
  end if;
  select
    array_agg(private.payment_json(p, (select v.created_at from public.payment_voids v where v.payment_id = p.id)) order by p.received_at desc, p.id desc),
    array_agg(private.encode_start_cursor(row(p.received_at, p.id)::private.start_position) order by p.received_at desc, p.id desc)
  into v_items, v_cursors
  from (
    select p.*
    from unnest(private.page_of_payments(
      list_payments.event_id, list_payments.order_id, received_after, v_before, v_size + 1
    )) i (id)
    join public.payments p on p.id = i.id
    where (list_payments.event_id is null or p.event_id = list_payments.event_id)
      and (received_after is null or p.received_at >= received_after)
      and (p.received_at, p.id) < (v_before.starts_at, v_before.id)
    order by p.received_at desc, p.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size, v_cursors);
end
$$;
comment on function api.list_payments is
  'Payments of the organisation, the last received first, with optional filters: { data, has_more, next_cursor }.';
grant execute on function api.list_payments to scope_orders_read;

create function api.get_order(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_order json := private.whole_order_json(order_id);
begin
  if v_order is null then
    perform private.refuse_not_found('order_id');
  end if;
  return v_order;
end
$$;
comment on function api.get_order is 'One order with its attendees. 404 not_found.';
grant execute on function api.get_order to scope_orders_read;

create function api.record_invoice_payment(
  order_id uuid,
  amount bigint,
  method public.payment_method default null,
  currency text default null,
  received_at timestamptz default null,
  external_reference text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_payment public.payments;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.payments (order_id, amount, method, currency, received_at, external_reference)
  values (
    record_invoice_payment.order_id, record_invoice_payment.amount, coalesce(record_invoice_payment.method, 'invoice'),
    record_invoice_payment.currency, coalesce(record_invoice_payment.received_at, now()),
    record_invoice_payment.external_reference
  )
  returning * into v_payment;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 201, 'data', private.whole_order_json(order_id)), variadic private.warnings_of_payment(v_payment)
  ));
end
$$;
comment on function api.record_invoice_payment is
  'Records money received for an order, which completes when nothing is due: 201 with the order. 404 not_found; 409 order_expired, nothing_due, wrong_currency, overpayment; 422 validation_failed.';
grant execute on function api.record_invoice_payment to scope_orders_write;

create function api.void_payment(
  payment_id uuid,
  reason text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order_id uuid;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select p.order_id into v_order_id from public.payments p where p.id = void_payment.payment_id;
  if not found then
    perform private.refuse_not_found('payment_id');
  end if;
  insert into public.payment_voids (payment_id, reason) values (void_payment.payment_id, void_payment.reason);

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.whole_order_json(v_order_id))
  );
end
$$;
comment on function api.void_payment is
  'Voids a payment recorded by mistake. Its order is payable again; a completed order keeps its tickets: 201 with the order. 404 not_found; 409 payment_voided, payment_refunded; 422 validation_failed.';
grant execute on function api.void_payment to scope_orders_write;

-- What this transaction changed of one order: the tickets that it cancelled, and its money. Security definer: a key for orders may not read
-- attendees.
create function private.effect_of_change(former public.orders, dry_run boolean, notice jsonb default null) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select private.effect_json(
      dry_run,
      jsonb_build_object(
        'orders', 1,
        'attendees', (
          select count(*) from public.attendees a where a.order_id = o.id and a.status = 'cancelled' and a.cancelled_at = now()
        ),
        'refund_due', private.amount_refundable(o) - private.amount_refundable(former),
        'currency', o.currency
      ),
      notice
    )
    from public.orders o
    where o.id = former.id and not private.is_foreign(o.organisation_id)
  );
end
$$;
grant execute on function private.effect_of_change to scope_orders_write;

-- The outcome of a change that could be tried out: its effect, and the order, which a dry run has left as it was.
create function private.record_change(
  order_id uuid,
  effect json,
  warnings jsonb[],
  idempotency_key text,
  request_fingerprint text,
  dry_run boolean,
  status integer default 200
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object(
        'status', case when dry_run then 200 else status end, 'effect', effect, 'data', private.whole_order_json(order_id)
      ),
      variadic warnings
    ),
    dry_run
  );
end
$$;
grant execute on function private.record_change to scope_orders_write;

create function api.record_refund(
  order_id uuid,
  amount bigint,
  method public.payment_method default null,
  currency text default null,
  refunded_at timestamptz default null,
  external_reference text default null,
  idempotency_key text default null,
  request_fingerprint text default null,
  dry_run boolean default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_refund public.refunds;
  v_effect json;
  v_warnings jsonb[];
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select o.* into v_order from public.orders o where o.id = record_refund.order_id for no key update;
    insert into public.refunds (order_id, amount, method, currency, refunded_at, external_reference)
    values (
      record_refund.order_id, record_refund.amount, coalesce(record_refund.method, 'bank_transfer'), record_refund.currency,
      coalesce(record_refund.refunded_at, now()), record_refund.external_reference
    )
    returning * into v_refund;
    v_effect := private.effect_of_change(v_order, dry_run);
    v_warnings := private.warnings_of_refund(v_refund);
    perform private.undo_if_dry_run(dry_run);
    -- In parts it is as much.
    if v_order.amount_refunded + amount > (
      select o.confirm_refunds_above from public.organisations o where o.id = private.current_organisation_id()
    ) then
      perform private.assert_confirmed(
        'record_refund',
        jsonb_build_object(
          'order_id', order_id, 'amount', amount, 'method', method, 'currency', currency, 'refunded_at', refunded_at,
          'external_reference', external_reference
        ),
        json_build_object('refunded', amount, 'currency', v_order.currency)
      );
    end if;
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_change(order_id, v_effect, v_warnings, idempotency_key, request_fingerprint, dry_run, 201);
end
$$;
comment on function api.record_refund is
  'Records money returned for a paid or cancelled order: 201 with the order. Or reports the effect: 200. 404 not_found; 409 payment_due, nothing_refundable, wrong_currency, refund_too_high; 422 validation_failed.';
grant execute on function api.record_refund to scope_orders_write;

create function api.cancel_order(
  order_id uuid,
  dry_run boolean default null,
  notify public.notify default null,
  idempotency_key text default null,
  request_fingerprint text default null,
  amount_retained bigint default null,
  message text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_effect json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select o.* into v_order from public.orders o where o.id = cancel_order.order_id for no key update;
    if not found then
      perform private.refuse_not_found('order_id');
    end if;
    if v_order.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This order is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    update public.orders o set status = 'cancelled', amount_retained = coalesce(cancel_order.amount_retained, o.amount_retained)
    where o.id = v_order.id;
    v_effect := private.effect_of_change(
      v_order, dry_run, private.notify_of_cancelled_tickets(notify, v_order.id, message => message)
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'cancel_order', jsonb_build_object('order_id', order_id, 'notify', notify, 'amount_retained', amount_retained, 'message', message),
      v_effect
    );
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_change(order_id, v_effect, '{}', idempotency_key, request_fingerprint, dry_run);
end
$$;
comment on function api.cancel_order is
  'Cancels an order and its tickets and, on request, e-mails its attendees and buyer; or reports the effect. Money paid and not retained becomes refund_due: 200. 404 not_found; 409 invalid_transition; 422 validation_failed.';
grant execute on function api.cancel_order to scope_orders_write;

create function api.update_order(
  order_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null,
  expire_now boolean default null,
  dry_run boolean default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_new public.orders;
  v_effect json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select o.* into v_order from public.orders o where o.id = update_order.order_id for no key update;
    if not found then
      perform private.refuse_not_found('order_id');
    end if;
    perform private.assert_version(v_order.version, if_version);
    v_new := jsonb_populate_record(v_order, private.with_merged_metadata(changes, v_order.metadata));
    if expire_now then
      if (changes ? 'payment_due_at' and v_new.payment_due_at <= now()) is not true then
        perform private.refuse_value('expire_now', 'expire_now needs a payment_due_at in the past.', 'Send both, or leave expire_now out.');
      elsif v_order.status = 'pending' and v_order.amount_paid > v_order.amount_refunded then
        perform private.refuse_value('expire_now', 'An order that is paid in part does not expire.', 'Cancel it with cancel_order.');
      end if;
      -- As soon as the courier looks. One before the order was made is refused as it is.
      if v_new.payment_due_at >= v_order.created_at then
        v_new.payment_due_at := now();
      end if;
    end if;
    update public.orders o set
      (name, email, company, amount_retained, payment_due_at, external_id, metadata)
        = (v_new.name, v_new.email, v_new.company, v_new.amount_retained, v_new.payment_due_at, v_new.external_id, v_new.metadata)
    where o.id = v_order.id
    returning * into v_new;
    v_effect := private.effect_of_change(v_order, dry_run);
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- Undone; the variables keep what it would have done.
  end;
  return private.record_change(
    order_id, v_effect, array[case when changes ? 'payment_due_at' then private.warning_of_deadline(v_new) end],
    idempotency_key, request_fingerprint, dry_run
  );
end
$$;
comment on function api.update_order is
  'Changes the contact, external_id, metadata, retained amount or payment deadline of an order, or reports the effect: 200. 404 not_found; 409 already_exists, order_completed, order_cancelled, order_expired; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_order to scope_orders_write;
