-- cheaper single calls. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

-- As triggers lead from one table to the next, so that none of them and this wait for each other. Within a block, for the command line
-- begins no transaction by name.
do $$
begin
  lock table public.orders, public.attendees, public.ticket_types, public.payments in access exclusive mode;
end
$$;

drop trigger attendees_010_blank_is_empty on public.attendees;

drop trigger attendees_100_guard on public.attendees;

drop trigger attendees_310_spread_amount_off on public.attendees;

drop trigger attendees_350_notify_insert on public.attendees;

drop trigger attendees_700_audit_insert on public.attendees;

drop trigger attendees_800_explain on public.attendees;

drop trigger attendees_900_updated_at on public.attendees;

drop trigger orders_010_blank_is_empty on public.orders;

drop trigger orders_200_deadline on public.orders;

drop trigger orders_800_explain on public.orders;

drop trigger payments_300_received_at on public.payments;

drop trigger payments_700_audit_insert on public.payments;

drop trigger ticket_types_010_blank_is_empty on public.ticket_types;

drop trigger ticket_types_600_notify_sold_out on public.ticket_types;

drop trigger ticket_types_800_explain on public.ticket_types;

drop trigger ticket_types_900_updated_at on public.ticket_types;

create or replace function api.cancel_order (
  order_id uuid,
  dry_run boolean default null::boolean,
  notify public.notify default null::public.notify,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_affected jsonb;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('order_id');
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
    v_affected := private.affected_by_order(v_order);
    if dry_run then
      v_data := private.whole_order_json(v_order.id);
    end if;
    update public.orders o set status = 'cancelled' where o.id = v_order.id returning * into v_order;
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(dry_run, v_affected, private.notify_of_cancelled_tickets(notify, v_order.id)),
      'data', coalesce(v_data, private.whole_order_json(v_order.id))
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'cancel_order', jsonb_build_object('order_id', order_id, 'notify', notify), v_outcome -> 'effect'
    );
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.check_in (
  event_id uuid,
  code text default null::text,
  attendee_id uuid default null::uuid,
  device text default null::text,
  check_in_point_id uuid default null::uuid,
  direction public.check_in_direction default null::public.check_in_direction,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json;
  v_check_in public.check_ins;
begin
  if idempotency_key is not null then
    v_outcome := private.replay_outcome(idempotency_key, request_fingerprint);
    if v_outcome is not null then
      return v_outcome;
    end if;
  end if;

  insert into public.check_ins (event_id, check_in_point_id, code, attendee_id, direction, device)
  values (
    check_in.event_id, check_in.check_in_point_id, check_in.code, check_in.attendee_id, coalesce(check_in.direction, 'entry'),
    check_in.device
  )
  returning * into v_check_in;
  -- What the judge read of the event: another query of it, under row level security, would take a fiftieth of a scan.
  v_outcome := private.check_in_outcome(v_check_in, nullif(current_setting('usher.starts_at', true), '')::timestamptz);
  if idempotency_key is not null then
    v_outcome := private.record_outcome(idempotency_key, request_fingerprint, v_outcome);
  end if;
  return v_outcome;
end
$$;

create or replace function api.check_in_batch (
  event_id uuid,
  scans jsonb,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_scans jsonb[];
  v_judged integer := 0;
  v_known_ids text[];
  v_results json;
  v_accepted integer;
  v_first_at timestamptz;
  v_starts_at timestamptz;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  select e.starts_at into v_starts_at from public.events e where e.id = check_in_batch.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  v_scans := array(
    select s from jsonb_array_elements(scans) s order by (s ->> 'scanned_at')::timestamptz, s ->> 'scan_id'
  );

  -- One batch of an event at a time: no other may add a scan between the look-up and the insert.
  perform private.limit_lock_waits();
  perform pg_advisory_xact_lock(3, hashtext(check_in_batch.event_id::text));
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_scans := v_scans[:c_part];
  end if;
  perform private.limit_lock_waits();
  perform private.lock_orders_of(event_id, v_scans);
  v_known_ids := array(
    select c.scan_id
    from public.check_ins c
    where c.event_id = check_in_batch.event_id
      and c.scan_id = any (array(select s ->> 'scan_id' from unnest(v_scans) s))
  );

  loop
    insert into public.check_ins (
      event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at
    )
    select
      check_in_batch.event_id, s.check_in_point_id, s.code, s.attendee_id, coalesce(s.direction, 'entry'), s.device, s.scan_id, s.admitted,
      s.scanned_at
    from jsonb_to_recordset(to_jsonb(v_scans[v_judged + 1:v_judged + c_part])) s (
      scan_id text, check_in_point_id uuid, code text, attendee_id uuid, direction public.check_in_direction, admitted boolean,
      scanned_at timestamptz, device text
    )
    where s.scan_id <> all (v_known_ids)
    order by s.scanned_at, s.scan_id;
    v_judged := least(v_judged + c_part, cardinality(v_scans));
    exit when v_judged = cardinality(v_scans) or private.is_time_up();
  end loop;

  select
    json_agg(
      json_build_object(
        'scan_id', s.scan_id,
        'replayed', s.scan_id = any (v_known_ids),
        'check_in', private.check_in_json(row(c.*)::public.check_ins)
      )
      order by s.scanned_at, s.scan_id
    ),
    count(*) filter (where c.result = 'accepted'),
    min(c.scanned_at) filter (where c.result = 'accepted')
  into v_results, v_accepted, v_first_at
  from jsonb_to_recordset(to_jsonb(v_scans[:v_judged])) s (scan_id text, scanned_at timestamptz)
  cross join lateral (
    select c.* from public.check_ins c where c.event_id = check_in_batch.event_id and c.scan_id = s.scan_id offset 0
  ) c;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warning_of_early_scan(
      json_build_object(
        'status', 200,
        'data', json_build_object(
          'object', 'check_in_batch',
          'event_id', check_in_batch.event_id,
          'accepted', v_accepted,
          'rejected', json_array_length(v_results) - v_accepted,
          'remaining', jsonb_array_length(scans) - v_judged,
          'results', v_results
        )
      ),
      v_first_at,
      v_starts_at
    )
  );
end
$$;

create or replace function api.get_order (
  order_id uuid
)
  returns json
  language plpgsql
  stable
  set search_path to ''
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

create or replace function api.list_orders (
  event_id uuid default null::uuid,
  search text default null::text,
  status public.order_status default null::public.order_status,
  payment_status public.payment_status[] default null::public.payment_status[],
  overdue boolean default null::boolean,
  due_after timestamp with time zone default null::timestamp with time zone,
  due_before timestamp with time zone default null::timestamp with time zone,
  email text default null::text,
  reference text default null::text,
  external_id text default null::text,
  updated_since timestamp with time zone default null::timestamp with time zone,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_size integer := private.page_size("limit");
  -- Newest first; or by their deadline, where that is asked for.
  v_is_by_deadline boolean := overdue is true or num_nonnulls(due_after, due_before) > 0;
  v_due_before timestamptz := least(due_before, case when overdue then now() + interval '1 microsecond' end, 'infinity');
  v_before uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  v_after private.start_position;
  v_page private.start_position[];
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  v_chunk integer := v_size + 1;
  v_read integer := 0;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_order public.orders;
  v_item json;
  v_items json[] := '{}';
  v_cursors text[] := '{}';
begin
  if due_after >= due_before then
    perform private.refuse_value('due_after', 'due_after is not before due_before.', 'Send an earlier due_after, or a later due_before.');
  end if;
  if v_is_by_deadline then
    v_after := private.after_start_cursor(cursor);
    if v_after.starts_at < due_after then
      v_after := row(due_after, '00000000-0000-0000-0000-000000000000');
    end if;
  else
    v_before := private.before_cursor(cursor);
  end if;
  loop
    if reference is not null then
      v_ids := array(select o.id from public.orders o where o.reference = upper(list_orders.reference));
    elsif external_id is not null then
      v_ids := array(select o.id from public.orders o where o.external_id = list_orders.external_id);
    elsif v_is_by_deadline then
      v_page := private.page_of_due_orders(
        list_orders.event_id, list_orders.status, list_orders.payment_status, list_orders.email,
        case when v_read > 1000 then updated_since end, case when v_read > 1000 then v_patterns end, v_due_before, v_after, v_chunk
      );
      v_ids := array(select p.id from unnest(v_page) with ordinality p (starts_at, id, place) order by p.place);
    else
      -- Most pages of what was updated since a time, or of what a search matches, are among the newest anyway; where they are not,
      -- little was, or does.
      v_ids := private.page_of_orders(
        list_orders.event_id, list_orders.status, list_orders.payment_status, list_orders.email,
        case when v_read > 1000 then updated_since end, case when v_read > 1000 then v_patterns end, v_before, v_chunk
      );
    end if;
    for v_order in
      select o.*
      from unnest(case when v_patterns is null then v_ids else private.matching_orders(v_ids, v_patterns) end) with ordinality i (id, place)
      cross join lateral (select o.* from public.orders o where o.id = i.id offset 0) o
      where (list_orders.event_id is null or o.event_id = list_orders.event_id)
        and (list_orders.status is null or o.status = list_orders.status)
        and (list_orders.payment_status is null or o.payment_status = any (list_orders.payment_status))
        and (list_orders.email is null or o.email_lower = lower(list_orders.email))
        and (list_orders.external_id is null or o.external_id = list_orders.external_id)
        and (updated_since is null or o.updated_at >= updated_since)
        and case
          when v_is_by_deadline
            then (o.payment_status in ('awaiting_payment', 'partially_paid') or o.cancellation_reason = 'expired')
              and (o.payment_due_at, o.id) > (v_after.starts_at, v_after.id) and o.payment_due_at < v_due_before
          else o.id < v_before
        end
      order by i.place
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.whole_order_json(v_order.id);
      v_items := v_items || v_item;
      if v_is_by_deadline then
        v_cursors := v_cursors || private.encode_start_cursor(row(v_order.payment_due_at, v_order.id)::private.start_position);
      end if;
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1
      or reference is not null or external_id is not null or cardinality(v_ids) < v_chunk;
    if v_is_by_deadline then
      v_after := v_page[v_chunk];
    else
      v_before := v_ids[v_chunk];
    end if;
    v_read := v_read + v_chunk;
    v_chunk := 1000;
  end loop;
  return private.page(v_items, v_size, case when v_is_by_deadline then v_cursors end);
end
$$;

create or replace function api.record_invoice_payment (
  order_id uuid,
  amount bigint,
  method public.payment_method default null::public.payment_method,
  currency text default null::text,
  received_at timestamp with time zone default null::timestamp with time zone,
  external_reference text default null::text,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_warning jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if external_reference is not null then
    v_warning := private.warning_of_reference(order_id, external_reference);
  end if;
  insert into public.payments (order_id, amount, method, currency, received_at, external_reference)
  values (
    record_invoice_payment.order_id, record_invoice_payment.amount, coalesce(record_invoice_payment.method, 'invoice'),
    record_invoice_payment.currency, coalesce(record_invoice_payment.received_at, now()),
    record_invoice_payment.external_reference
  );

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(json_build_object('status', 201, 'data', private.paid_order_json(order_id)), v_warning)
  );
end
$$;

create or replace function api.record_refund (
  order_id uuid,
  amount bigint,
  method public.payment_method default null::public.payment_method,
  currency text default null::text,
  refunded_at timestamp with time zone default null::timestamp with time zone,
  external_reference text default null::text,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  perform private.assert_not_by_name('order_id');

  insert into public.refunds (order_id, amount, method, currency, refunded_at, external_reference)
  values (
    record_refund.order_id, record_refund.amount, coalesce(record_refund.method, 'bank_transfer'), record_refund.currency,
    coalesce(record_refund.refunded_at, now()), record_refund.external_reference
  );
  perform private.assert_refund_confirmed(jsonb_build_object(
    'order_id', order_id, 'amount', amount, 'method', method, 'currency', currency, 'refunded_at', refunded_at,
    'external_reference', external_reference
  ));

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.whole_order_json(order_id))
  );
end
$$;

create or replace function api.register_attendee (
  event_id uuid,
  ticket_type_id uuid default null::uuid,
  name text default null::text,
  email text default null::text,
  company text default null::text,
  attendees jsonb default null::jsonb,
  payment_method public.payment_method default null::public.payment_method,
  promo_code text default null::text,
  send_email boolean default null::boolean,
  external_id text default null::text,
  metadata jsonb default null::jsonb,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := case when idempotency_key is not null then private.replay_outcome(idempotency_key, request_fingerprint) end;
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_foreign record;
begin
  if v_outcome is not null then
    return v_outcome;
  elsif jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group has 1 to 50 attendees.', 'attendees');
  end if;

  -- A ticket type of the caller is of an event of the caller.
  select g.place - 1 as index, g.guest ? 'ticket_type_id' as names_its_own into v_foreign
  from jsonb_array_elements(v_guests) with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce((g.guest ->> 'ticket_type_id')::uuid, register_attendee.ticket_type_id)
      and t.event_id = register_attendee.event_id
  )
  order by g.place
  limit 1;
  if found then
    if not exists (select from public.events e where e.id = register_attendee.event_id) then
      perform private.refuse_not_found('event_id');
    end if;
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  if external_id is not null or attendees is not null then
    perform private.lock_external_ids(private.current_organisation_id(), external_id, v_guests);
  end if;

  v_outcome := (private.register(array[row(
    private.uuid_v7(), event_id, ticket_type_id, name, email, company, v_guests, payment_method, promo_code, send_email, external_id,
    metadata, idempotency_key, request_fingerprint
  )::private.registration]))[1];
  return case when idempotency_key is null then v_outcome else private.record_outcome(idempotency_key, request_fingerprint, v_outcome) end;
end
$$;

create or replace function api.reopen_order (
  order_id uuid,
  payment_due_at timestamp with time zone default null::timestamp with time zone,
  notify public.notify default null::public.notify,
  dry_run boolean default null::boolean,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_reopened record;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    if dry_run then
      v_data := private.whole_order_json(order_id);
    end if;
    v_reopened := private.reopen_order(order_id, payment_due_at, notify);
    v_outcome := private.with_warnings(
      json_build_object(
        'status', 200,
        'effect', private.effect_json(
          dry_run,
          jsonb_build_object(
            'orders', 1, 'attendees', v_reopened.tickets, 'refund_due', 0, 'currency', (v_reopened."order").currency
          ),
          v_reopened.notice
        ),
        'data', coalesce(v_data, private.whole_order_json(order_id))
      ),
      private.warning_of_deadline(v_reopened."order")
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.send_payment_reminder (
  order_id uuid,
  dry_run boolean default null::boolean,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    if dry_run then
      v_data := private.whole_order_json(order_id);
    end if;
    v_order := private.remind_buyer(order_id);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object('orders', 1, 'attendees', 0, 'refund_due', 0, 'currency', v_order.currency),
        '{"emails": 1, "told": 1}'
      ),
      'data', coalesce(v_data, private.whole_order_json(order_id))
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.update_order (
  order_id uuid,
  changes jsonb,
  if_version integer[] default null::integer[],
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_order public.orders;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select o.* into v_order from public.orders o where o.id = update_order.order_id for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  perform private.assert_version(v_order.version, if_version);
  update public.orders o
  set payment_due_at = (jsonb_populate_record(v_order, changes)).payment_due_at
  where o.id = v_order.id
  returning * into v_order;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 200, 'data', private.whole_order_json(v_order.id)), private.warning_of_deadline(v_order)
    )
  );
end
$$;

create or replace function api.void_payment (
  payment_id uuid,
  reason text default null::text,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
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

create or replace function private.announce_registrations (
  registrations private.registration[]
)
  returns json[]
  language plpgsql
  security definer
  set search_path to ''
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_recent_id uuid := private.first_uuid_v7(now() - interval '10 minutes');
  v_outcomes json[];
begin
  with registered as materialized (
    select i.ordinality as place, o.*, a.*
    from unnest(registrations) with ordinality i
    cross join lateral (
      select o as "order", o.id, o.reference, o.payment_method, o.organisation_id, o.created_at from public.orders o where o.id = i.order_id offset 0
    ) o
    cross join lateral (
      select
        json_agg(private.attendee_json(a.attendee, true, t.name, o.reference) order by a.id) as attendees,
        json_agg(private.attendee_json(a.attendee, false, t.name, o.reference) order by a.id) as attendees_without_codes,
        bool_or(t.price > 0) as has_price,
        -- Ids tell the time. In the order of the one index of addresses: see 00-ground/pages.sql. Not `exists`, which may hash an organisation.
        bool_or((
          select true from public.attendees r
          where r.organisation_id = any (array[v_organisation_id]) and r.email_lower = a.email_lower and r.id >= v_recent_id and r.id < a.id
            and coalesce(r.event_id = a.event_id, false) and lower(r.name) = lower(a.name) and coalesce(r.status <> 'cancelled', false)
          order by r.organisation_id desc, r.id desc
          limit 1
        )) as is_repeated
      -- Apart, for the order of the aggregate would be had from the primary key, by reading it all.
      from (
        select a.id, a.event_id, a.ticket_type_id, a.email_lower, a.name, a as attendee from public.attendees a where a.order_id = i.order_id offset 0
      ) a
      cross join lateral (select t.name, t.price from public.ticket_types t where t.id = a.ticket_type_id offset 0) t
    ) a
    where o.organisation_id = v_organisation_id and o.created_at = now()
  ), announced as (
    insert into public.notifications (organisation_id, type, data, subject_id)
    select r.organisation_id, t.type, r.data, r.id
    from (
      select r.place, r.id, r.organisation_id, r.payment_method, private.order_json(r."order", r.attendees_without_codes, '[]') as data
      from registered r
      offset 0
    ) r
    cross join unnest(
      case when r.payment_method is null then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[]
    ) with ordinality t (type, place)
    order by r.place, t.place
  )
  -- Not private.with_warnings, which reads the JSON of the order once more.
  select array_agg(
    case
      when o.warnings = '{}' then json_build_object('status', 201, 'data', o.data)
      else json_build_object('status', 201, 'data', o.data, 'warnings', to_json(o.warnings))
    end
    order by o.place
  ) into v_outcomes
  from (
    select
      r.place,
      private.order_json(r."order", r.attendees, '[]') as data,
      array_remove(
        array[
          case when r.has_price and r.payment_method is null then private.warning_of_gift() end,
          case when r.is_repeated then private.warning_of_repetition() end
        ],
        null
      ) as warnings
    from registered r
    offset 0
  ) o;
  return v_outcomes;
end
$$;

create or replace function private.arrival_json (
  attendee public.attendees,
  check_in public.check_ins,
  ticket_type_name text default null::text,
  reference text default null::text
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_point json;
begin
  -- A statement of its own: an expression that contains a query costs every scan, even where the query is not run.
  if check_in.check_in_point_id is not null then
    select json_build_object('id', p.id, 'name', p.name) into v_point from public.check_in_points p where p.id = check_in.check_in_point_id;
  end if;
  -- As text, for json keeps the order of its fields and cannot be appended to.
  return (left(private.attendee_json(attendee, true, ticket_type_name, reference, false)::text, -1) || ', "check_in" : ' || json_build_object(
    'id', check_in.id,
    'direction', check_in.direction,
    'check_in_point', v_point,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'device', check_in.device
  ) || '}')::json;
end
$$;

create or replace function private.attendee_json (
  attendee public.attendees,
  with_code boolean default true,
  ticket_type_name text default null::text,
  reference text default null::text,
  with_url boolean default true
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- As private.rfc3339, without a call for each time.
  v_rfc3339 constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
begin
  if ticket_type_name is null then
    select n.ticket_type_name, n.reference into ticket_type_name, reference from private.names_of(attendee) n;
  end if;
  return json_build_object(
    'object', 'attendee',
    'id', attendee.id,
    'order_id', attendee.order_id,
    'event_id', attendee.event_id,
    'ticket_type_id', attendee.ticket_type_id,
    'order', json_build_object('id', attendee.order_id, 'reference', reference),
    'ticket_type', json_build_object('id', attendee.ticket_type_id, 'name', ticket_type_name),
    'name', attendee.name,
    'email', attendee.email,
    'company', attendee.company,
    'price', attendee.price,
    'discount', attendee.discount,
    'currency', attendee.currency,
    'status', attendee.status,
    'ticket_code', case when with_code then attendee.ticket_code end,
    'ticket_url', case when with_code and with_url and attendee.erased_at is null then private.ticket_url(attendee.ticket_token) end,
    'checked_in_at', to_char(attendee.checked_in_at at time zone 'UTC', v_rfc3339),
    'ticket_email', json_build_object(
      'status', attendee.ticket_email_status,
      'sent_at', to_char(attendee.ticket_email_sent_at at time zone 'UTC', v_rfc3339),
      'last_error', attendee.ticket_email_last_error
    ),
    'cancelled_at', to_char(attendee.cancelled_at at time zone 'UTC', v_rfc3339),
    'erased_at', to_char(attendee.erased_at at time zone 'UTC', v_rfc3339),
    'external_id', attendee.external_id,
    'metadata', attendee.metadata,
    'version', attendee.version,
    'created_at', to_char(attendee.created_at at time zone 'UTC', v_rfc3339),
    'updated_at', to_char(attendee.updated_at at time zone 'UTC', v_rfc3339)
  );
end
$$;

create or replace function private.check_in_json (
  check_in public.check_ins
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_earlier json;
begin
  if check_in.earlier_check_in_id is not null then
    select json_build_object('id', c.id, 'scanned_at', private.rfc3339(c.scanned_at), 'device', c.device) into v_earlier
    from public.check_ins c
    where c.id = check_in.earlier_check_in_id;
  end if;
  return json_build_object(
    'object', 'check_in',
    'id', check_in.id,
    'event_id', check_in.event_id,
    'result', check_in.result,
    'reason', check_in.reason,
    'direction', check_in.direction,
    'check_in_point_id', check_in.check_in_point_id,
    'admitted', check_in.admitted,
    'earlier', v_earlier,
    'exited_at', private.rfc3339(check_in.exited_at),
    'attendee', private.door_attendee_json(check_in.attendee_id),
    'device', check_in.device,
    'scan_id', check_in.scan_id,
    'scanned_at', private.rfc3339(check_in.scanned_at),
    'undone_at', private.rfc3339(check_in.undone_at),
    'created_at', private.rfc3339(check_in.created_at),
    'updated_at', private.rfc3339(check_in.updated_at)
  );
end
$$;

create or replace function private.check_in_outcome (
  check_in public.check_ins,
  starts_at timestamp with time zone
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_param text;
begin
  if check_in.result = 'accepted' then
    return private.with_warning_of_early_scan(
      json_build_object('status', 200, 'data', private.check_in_json(check_in)), check_in.scanned_at, starts_at
    );
  end if;
  v_param := case when check_in.code is null then 'attendee_id' else 'code' end;
  return json_build_object(
    'status', case check_in.reason when 'not_found' then 404 else 409 end,
    'error', json_build_object(
      'code', check_in.reason,
      'message', case check_in.reason
        when 'not_found' then case v_param when 'code' then 'No ticket has this code.' else 'No attendee has this id.' end
        when 'wrong_event' then 'This ticket is for another event.'
        when 'already_checked_in' then 'This ticket was checked in before.'
        when 'cancelled' then 'This ticket was cancelled.'
        when 'unpaid' then 'This ticket is not paid for yet.'
        when 'event_cancelled' then 'The event was cancelled.'
        when 'not_admitted_here' then 'This ticket is not for this check-in point.'
        when 'point_closed' then 'This check-in point is not open.'
        when 'not_inside' then 'This person has not come in here.'
      end,
      'param', case check_in.reason
        when 'event_cancelled' then 'event_id' when 'point_closed' then 'check_in_point_id' else v_param
      end,
      'details', json_build_object('check_in', private.check_in_json(check_in)),
      'hint', case check_in.reason
        when 'not_found' then 'Scan again, or look the person up by name: find_attendees.'
        when 'wrong_event' then 'details.check_in.attendee.event_id is the event the ticket is for.'
        when 'already_checked_in' then 'details.check_in.earlier says when and where they came in.'
        when 'cancelled' then 'The person needs a new ticket.'
        when 'unpaid' then 'Record the payment of the order first.'
        when 'event_cancelled' then 'No ticket of this event can be checked in.'
        when 'not_admitted_here' then 'The check-in point lists the ticket types that it admits.'
        when 'point_closed' then 'Look at its opens_at, closes_at and status.'
        when 'not_inside' then 'There is no entry to end. Scan it as an entry to let them in.'
      end
    )
  );
end
$$;

create or replace function private.has_tickets (
  order_id uuid
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return exists (select from public.attendees a where a.order_id = has_tickets.order_id);
end
$$;

create or replace function private.is_sound_attendee (
  attendee public.attendees
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return attendee.discount between 0 and attendee.price
    and (attendee.company is null or private.is_sound_line('company', attendee.company, 200))
    and (attendee.external_id is null and attendee.metadata = '{}' or private.is_sound_extra(attendee.external_id, attendee.metadata));
end
$$;

create or replace function private.is_sound_check_in (
  check_in public.check_ins
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return
    length(check_in.code) between 1 and 200
    and (check_in.device is null or private.is_sound_line('device', check_in.device, 100))
    and length(check_in.scan_id) between 1 and 100
    and case check_in.result
      when 'accepted' then check_in.reason is null and check_in.attendee_id is not null
        and (check_in.admission_key is null or check_in.direction = 'entry' and check_in.undone_at is null)
      else check_in.reason is not null and num_nonnulls(check_in.undone_at, check_in.admission_key) = 0
    end;
end
$$;

create or replace function private.is_sound_order (
  "order" public.orders
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return
    ("order".company is null or private.is_sound_line('company', "order".company, 200))
    and ("order".external_id is null and "order".metadata = '{}' or private.is_sound_extra("order".external_id, "order".metadata))
    and "order".subtotal >= "order".discount_total and "order".discount_total >= 0
    -- It held when the order was completed, and neither voids nor refunds change it.
    and ("order".status <> 'completed' or "order".amount_paid + "order".amount_voided >= "order".subtotal - "order".discount_total)
    and "order".amount_voided >= 0 and "order".amount_refunded between 0 and "order".amount_paid
    and "order".payment_due_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ("order".status = 'cancelled') = ("order".cancellation_reason is not null);
end
$$;

create or replace function private.is_sound_ticket_type (
  ticket_type public.ticket_types
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return
    length(btrim(ticket_type.name)) between 1 and 200 and ticket_type.name !~ '[[:cntrl:]]'
    and length(ticket_type.description) <= 20000
    and ticket_type.price between 0 and 100000000000
    and ticket_type.quantity >= 0
    and ticket_type.quantity_sold >= 0
    and ticket_type.quantity_held >= 0
    and ticket_type.quantity_sold + ticket_type.quantity_held <= ticket_type.quantity
    and ticket_type.min_per_order >= 1 and ticket_type.max_per_order >= ticket_type.min_per_order
    and ticket_type.sales_start_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ticket_type.sales_end_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ticket_type.sales_end_at > ticket_type.sales_start_at
    and (
      ticket_type.external_id is null and ticket_type.metadata = '{}' or private.is_sound_extra(ticket_type.external_id, ticket_type.metadata)
    );
end
$$;

create or replace function private.lock_own_event_shared (
  event_id uuid
)
  returns public.events
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid;
  v_event public.events;
begin
  if current_setting('usher.locked_event', true) is distinct from event_id::text then
    select e.organisation_id into v_organisation_id from public.events e where e.id = lock_own_event_shared.event_id;
    if private.is_foreign(v_organisation_id) then
      perform private.refuse_not_found('event_id');
    end if;
    perform pg_advisory_xact_lock_shared(1, hashtext(event_id::text));
    perform set_config('usher.locked_event', event_id::text, true);
  end if;
  select e.* into v_event from public.events e where e.id = lock_own_event_shared.event_id;
  -- Deleted meanwhile.
  if v_event.id is null then
    perform private.refuse_not_found('event_id');
  end if;
  return v_event;
end
$$;

create or replace function private.order_json (
  "order" public.orders,
  attendees json,
  payments json,
  refunds json default '[]'::json
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  -- As private.rfc3339, without a call for each time.
  v_rfc3339 constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
begin
  return json_build_object(
    'object', 'order',
    'id', "order".id,
    'event_id', "order".event_id,
    'reference', "order".reference,
    'status', "order".status,
    'payment_status', "order".payment_status,
    'name', "order".name,
    'email', "order".email,
    'company', "order".company,
    'currency', "order".currency,
    'subtotal', "order".subtotal,
    'discount_total', "order".discount_total,
    'total', "order".total,
    'amount_paid', "order".amount_paid,
    'amount_due', private.amount_due("order"),
    'amount_refunded', "order".amount_refunded,
    'amount_refundable', private.amount_refundable("order"),
    'payment_method', "order".payment_method,
    'payment_due_at', to_char("order".payment_due_at at time zone 'UTC', v_rfc3339),
    'payment_reminded_at', to_char("order".payment_reminded_at at time zone 'UTC', v_rfc3339),
    'promo_code', "order".promo_code,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'refunds', refunds,
    'completed_at', to_char("order".completed_at at time zone 'UTC', v_rfc3339),
    'cancelled_at', to_char("order".cancelled_at at time zone 'UTC', v_rfc3339),
    'cancellation_reason', "order".cancellation_reason,
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', to_char("order".created_at at time zone 'UTC', v_rfc3339),
    'updated_at', to_char("order".updated_at at time zone 'UTC', v_rfc3339)
  );
end
$$;

create or replace function private.order_payments_json (
  order_id uuid
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select coalesce(json_agg(
      private.payment_json(p, (select v.created_at from public.payment_voids v where v.payment_id = p.id)) order by p.id
    ), '[]')
    from public.payments p
    where p.order_id = order_payments_json.order_id
  );
end
$$;

create or replace function private.order_refunds_json (
  order_id uuid
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select coalesce(json_agg(private.refund_json(r) order by r.id), '[]')
    from public.refunds r
    where r.order_id = order_refunds_json.order_id
  );
end
$$;

create or replace function private.paid_order_json (
  order_id uuid
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_after uuid := private.first_uuid_v7(clock_timestamp());
  v_order json;
begin
  set constraints all immediate;
  set constraints all deferred;
  select n.data into v_order
  from public.notifications n
  where n.subject_id = paid_order_json.order_id
    and n.type = 'order.completed'
    and n.id > v_after
    and n.transaction_id = pg_current_xact_id()
    and not private.is_foreign(n.organisation_id);
  if found then
    return v_order;
  end if;
  return private.whole_order_json(order_id);
end
$$;

create or replace function private.payment_json (
  payment public.payments,
  voided_at timestamp with time zone
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return json_build_object(
    'object', 'payment',
    'id', payment.id,
    'order_id', payment.order_id,
    'event_id', payment.event_id,
    'method', payment.method,
    'amount', payment.amount,
    'currency', payment.currency,
    'received_at', private.rfc3339(payment.received_at),
    'external_reference', payment.external_reference,
    'source', payment.source,
    'voided_at', private.rfc3339(voided_at),
    'created_at', private.rfc3339(payment.created_at)
  );
end
$$;

create or replace function private.pending_email_json (
  email public.emails
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set plan_cache_mode to 'force_generic_plan'
  set enable_seqscan to 'off'
  as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_event public.events;
  v_offer json;
  v_others uuid[];
begin
  if email.sent_with is not null then
    v_others := array(
      select e.id
      from public.emails e
      where e.sent_with = email.id and e.id <> email.id and coalesce(e.claim = email.claim, false)
    );
  end if;
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = coalesce(email.order_id, v_attendee.order_id);
  v_offer := private.waiting_list_offer_json(email.waiting_list_entry_id);
  select e.* into v_event from public.events e where e.id = coalesce(v_order.event_id, (v_offer ->> 'event_id')::uuid);
  return json_build_object(
    'id', email.id,
    'claim', email.claim,
    'attempt', email.attempts,
    'kind', email.kind,
    'organisation', (
      select json_build_object(
        'id', g.id,
        'name', g.name,
        'reply_to', g.reply_to_email,
        'accent_colour', g.accent_colour,
        'payment_instructions', g.payment_instructions,
        'logo_version', private.logo_version(g.id)
      )
      from public.organisations g
      where g.id = email.organisation_id
    ),
    'event', private.event_json(v_event),
    'previous', email.previous,
    'ticket_type', (select json_build_object('name', t.name) from public.ticket_types t where t.id = v_attendee.ticket_type_id),
    'attendee', case when v_attendee.id is not null then json_build_object(
      'id', v_attendee.id,
      'name', v_attendee.name,
      'email', v_attendee.email,
      'company', v_attendee.company,
      'status', v_attendee.status,
      'ticket_code', case email.kind when 'ticket' then v_attendee.ticket_code end,
      -- Where the tickets of the order are not e-mailed, no other e-mail brings one.
      'ticket_url', case when email.kind = 'ticket' or email.kind not in ('event_cancelled', 'ticket_cancelled') and v_order.send_email
        then private.ticket_url(v_attendee.ticket_token) end,
      -- A calendar keeps the entry of the event while its mailbox has another ticket.
      'has_another_ticket', exists (
        select from public.attendees a
        where a.organisation_id = v_attendee.organisation_id and a.email_lower = v_attendee.email_lower
          and a.event_id = v_attendee.event_id and a.id <> v_attendee.id and a.status <> 'cancelled'
      )
    ) end,
    'order', case when email.order_id is null then json_build_object('reference', v_order.reference)
      else private.order_json(v_order, '[]', '[]', '[]') end,
    'others', case email.kind when 'ticket' then (
      select coalesce(json_agg(private.other_ticket_json(i) order by i), '[]') from unnest(v_others) i
    ) end,
    'holders', case when v_attendee.id is not null and email.kind <> 'ticket' then private.holders_json(email.kind, v_attendee) end,
    'guests', case email.kind when 'order_confirmation' then private.guests_json(v_order.id) end,
    'lines', case when email.order_id is not null then private.order_lines_json(v_order.id) end,
    'payment', (
      select private.payment_json(p, v.created_at)::jsonb || jsonb_build_object('is_latest', not exists (
        select from public.payments l
        where l.order_id = p.order_id
          and l.id > p.id
          and not exists (select from public.payment_voids v where v.payment_id = l.id)
      ))
      from public.payments p
      left join public.payment_voids v on v.payment_id = p.id
      where p.id = email.payment_id
    ),
    'waiting_list_entry', v_offer,
    'opt_out_url', case when private.can_be_switched_off(email.kind) then private.opt_out_url(v_attendee) end
  );
end
$$;

create or replace function private.price_attendee (
  attendee public.attendees,
  "order" public.orders
)
  returns public.attendees
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_percent_off numeric;
  v_amount_off bigint;
begin
  -- Only ticket types of this event: otherwise the totals would reveal the price of another organisation's ticket type.
  attendee.price := coalesce((
    select t.price from public.ticket_types t where t.id = attendee.ticket_type_id and t.event_id = "order".event_id
  ), 0);
  if "order".promo_code_id is not null and attendee.price > 0 then
    select c.percent_off, c.amount_off into v_percent_off, v_amount_off
    from public.promo_codes c
    where c.id = "order".promo_code_id
      and (c.ticket_type_ids = '{}' or attendee.ticket_type_id = any (c.ticket_type_ids));
    if found then
      attendee.promo_code_id := "order".promo_code_id;
      if v_amount_off is null then
        attendee.discount := round(attendee.price * v_percent_off / 100);
      else
        -- Sees the rows that the same statement has added already, and under the lock of the order those of others. What a cancelled
        -- ticket had is free again.
        attendee.discount := least(attendee.price, greatest(0, v_amount_off - coalesce((
          select sum(a.discount) from public.attendees a where a.order_id = "order".id and a.status <> 'cancelled'
        ), 0)));
        perform set_config('usher.spreads_amount_off', 'on', true);
      end if;
    end if;
  end if;
  return attendee;
end
$$;

create or replace function private.refuse_payment (
  payment public.payments
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  select o.* into v_order
  from public.orders o
  where o.id = payment.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  v_due := private.amount_due(v_order);

  -- A completed order is payable again once a payment was voided, or money for a ticket that stands was returned.
  if v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status <> 'pending' and v_due = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif payment.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif payment.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record at most what is due, and refund the rest.'
    );
  -- A day for clocks that differ, and for dates of another time zone.
  elsif payment.received_at > now() + interval '1 day' then
    perform private.refuse_value(
      'received_at', 'received_at is more than a day ahead.', 'Record the payment when the money is there.'
    );
  end if;
end
$$;

create or replace function private.register (
  registrations private.registration[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- Without claims, as in SQL of Studio, there is no caller to answer: triggers announce.
  perform set_config('usher.announces', case when private.current_organisation_id() is null then 'off' else 'on' end, true);
  perform private.add_registrations(registrations);
  perform set_config('usher.announces', 'off', true);
  -- Whoever is added to them from now on is notified of.
  perform set_config('usher.adds_to_order', 'on', true);
  return private.announce_registrations(registrations);
end
$$;

create or replace function private.tg_attendees__add_up()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order_ids uuid[];
  v_uses private.use_move[] := '{}';
  v_move record;
begin
  if tg_op = 'INSERT' then
    -- Complimentary tickets have nothing to add up.
    if current_setting('usher.sells', true) is distinct from 'on' then
      return null;
    end if;
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    v_uses := array(select row(n.promo_code_id, 1)::private.use_move from new_rows n where n.promo_code_id is not null);
  else
    -- Attendees that became cancelled, or are no more. Not a join of the two transition tables: its plan would be that of the first call,
    -- which sees one row, and a nested loop over the 10,000 rows of a cancelled event takes minutes.
    select coalesce(array_agg(distinct c.order_id), '{}'),
      coalesce(array_agg(row(c.promo_code_id, c.uses)::private.use_move) filter (where c.promo_code_id is not null), '{}')
    into v_order_ids, v_uses
    from (
      (
        select n.id, n.order_id, n.promo_code_id, -1 as uses from new_rows n where n.status = 'cancelled'
        except
        select o.id, o.order_id, o.promo_code_id, -1 from old_rows o where o.status = 'cancelled'
      )
      union all
      (
        select o.id, o.order_id, o.promo_code_id, 1 from old_rows o where o.status = 'cancelled'
        except
        select n.id, n.order_id, n.promo_code_id, 1 from new_rows n where n.status = 'cancelled'
      )
    ) c;
    -- A cancelled order keeps its totals, so cancelling an event locks and adds up no order here.
    v_order_ids := array(select o.id from public.orders o where o.id = any (v_order_ids) and o.status <> 'cancelled');
  end if;

  if v_order_ids <> '{}' then
    -- Lock before adding up: an update that waited for a row sees its new version, but uses the sums computed before the wait.
    perform 1 from public.orders o where o.id = any (v_order_ids) order by o.id for no key update;
    update public.orders o
    set subtotal = s.subtotal, discount_total = s.discount_total
    from (
      select a.order_id, sum(a.price) as subtotal, sum(a.discount) as discount_total
      from public.attendees a
      where a.order_id = any (v_order_ids) and a.status <> 'cancelled'
      group by a.order_id
    ) s
    where o.id = s.order_id
      and o.status <> 'cancelled'
      -- A new ticket may complete an order even if it is free.
      and (tg_op = 'INSERT' and o.status = 'pending' or (o.subtotal, o.discount_total) <> (s.subtotal, s.discount_total));
    if tg_op <> 'INSERT' then
      update public.orders o
      set status = 'cancelled'
      where o.id = any (v_order_ids)
        and o.status <> 'cancelled'
        and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
    elsif exists (
      select from public.orders o
      where o.id = any (v_order_ids)
        and o.promo_code_id is not null
        and not exists (select from public.attendees a where a.order_id = o.id and a.promo_code_id is not null)
    ) then
      perform private.refuse(
        409, 'promo_code_not_applicable', 'The promo code is not for any of these tickets.', 'promo_code',
        hint => 'Its ticket_type_ids say what it is for; free tickets use no code.'
      );
    end if;
  end if;

  if v_uses <> '{}' then
    for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
      perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
    end loop;
  end if;
  return null;
end
$$;

create or replace function private.tg_attendees__audit_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_actor public.audit_actor;
begin
  if current_setting('usher.adds_to_order', true) is distinct from 'on' then
    return null;
  end if;
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
    v_actor := private.audit_actor();
    insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
    select
      n.organisation_id, 'created', 'attendee', n.id, v_actor, private.current_api_key_id(),
      case v_actor when 'member' then (private.claims() ->> 'sub')::uuid end, private.current_source()
    from new_rows n
    where (select o.created_at from public.orders o where o.id = n.order_id) <> now();
  end if;
  return null;
end
$$;

create or replace function private.tg_attendees__count_places()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_moves private.place_move[];
  v_move private.place_move;
  v_event public.events;
  v_event_id uuid;
  v_taken bigint;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := '{}';
begin
  -- In the order in which everybody takes the locks: events, and in each its ticket types.
  if tg_op = 'INSERT' then
    v_moves := array(
      select row(n.event_id, n.ticket_type_id, count(*), -count(n.waiting_list_entry_id))::private.place_move
      from new_rows n
      group by n.event_id, n.ticket_type_id
      order by n.event_id, n.ticket_type_id
    );
  else
    v_moves := array(
      select row(m.event_id, m.ticket_type_id, sum(m.places), 0)::private.place_move
      from (
        select o.event_id, o.ticket_type_id, -1 as places from old_rows o where o.status <> 'cancelled'
        union all
        select n.event_id, n.ticket_type_id, 1 from new_rows n where n.status <> 'cancelled'
      ) m
      group by m.event_id, m.ticket_type_id
      having sum(m.places) <> 0
      order by m.event_id, m.ticket_type_id
    );
  end if;

  foreach v_move in array v_moves loop
    if v_move.places > 0 and v_event.id is distinct from v_move.event_id then
      if tg_op = 'UPDATE' then
        perform private.lock_event_shared(v_move.event_id);
      end if;
      select e.* into v_event from public.events e where e.id = v_move.event_id;
      perform private.assert_takes_registrations(v_event);
      if v_event.capacity is not null then
        v_limited := v_limited || v_event;
      end if;
    elsif v_move.places < 0 and v_move.event_id <> all (v_given_back) then
      v_given_back := v_given_back || v_move.event_id;
    end if;
  end loop;
  if v_limited <> '{}' or v_given_back <> '{}' then
    perform private.lock_event_capacity(e.id)
    from (select l.id from unnest(v_limited) l union select g.id from unnest(v_given_back) g (id) order by 1) e;
  end if;

  foreach v_move in array v_moves loop
    perform private.move_places(v_move.ticket_type_id, v_move.places, v_move.held);
  end loop;

  foreach v_event in array v_limited loop
    v_taken := private.places_taken(v_event.id);
    if v_taken > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    elsif v_taken = v_event.capacity then
      -- An accepted offer takes a place that was taken before.
      if (select sum(m.places + m.held) from unnest(v_moves) m where m.event_id = v_event.id) > 0 then
        perform private.notify_of_full_event(v_event.id);
      end if;
    end if;
  end loop;

  foreach v_event_id in array v_given_back loop
    perform private.offer_places(v_event_id);
  end loop;
  return null;
end
$$;

create or replace function private.tg_attendees__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_holder public.attendees;
begin
  if tg_op = 'INSERT' then
    select o.* into v_order from public.orders o where o.id = new.order_id;
    if private.is_foreign(v_order.organisation_id) then
      perform private.refuse_not_found('order_id');
    end if;
    -- A new order is seen by this transaction alone, which has the event lock since it added it. Any other is locked, so that it is neither
    -- cancelled nor completed without this ticket, and so that its totals are updated by one transaction at a time: the event lock before
    -- the order, as everywhere.
    if v_order.created_at <> now() then
      perform private.lock_event_shared(v_order.event_id);
      select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
      if not found then
        perform private.refuse_not_found('order_id');
      end if;
      perform set_config('usher.adds_to_order', 'on', true);
    end if;
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      select a.* into v_holder
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
      if v_holder.status = 'cancelled' then
        -- The person comes after all: their identifier goes with the new ticket.
        update public.attendees a set external_id = null where a.id = v_holder.id and a.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', a.id, a.created_at, a.xmin) from public.attendees a where a.id = v_holder.id;
      end if;
    end if;
    -- The fields that Usher sets: price, status, ticket code and the status of the ticket e-mail.
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency or new.event_id <> v_order.event_id or new.organisation_id <> v_order.organisation_id
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.ticket_token, new.checked_in_at, new.cancelled_at, new.erased_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'event_id', v_order.event_id, 'organisation_id', v_order.organisation_id,
        'promo_code_id', null, 'ticket_code', null, 'ticket_token', null, 'checked_in_at', null, 'cancelled_at', null, 'erased_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    if new.waiting_list_entry_id is not null then
      perform private.accept_offer(new);
    end if;
    new.currency := v_order.currency;
    new.price := 0;
    new.discount := 0;
    if v_order.payment_method is not null then
      new := private.price_attendee(new, v_order);
      perform set_config('usher.sells', 'on', true);
    end if;
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Create a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.ticket_token := private.random_token();
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.email_status;
    if new.ticket_email_status = 'queued' then
      perform set_config('usher.queues_tickets', 'on', true);
    end if;
  else
    if new.erased_at is distinct from old.erased_at and pg_trigger_depth() = 1 and current_setting('usher.erasing', true) is distinct from 'on' then
      perform private.refuse(
        409, 'read_only_field', 'A person is erased by a function, which finds every copy.', 'erased_at', hint => 'Call erase_attendee.'
      );
    elsif old.erased_at is not null
      and ((new.name, new.email, new.company, new.external_id, new.metadata)
        is distinct from (old.name, old.email, old.company, old.external_id, old.metadata)
        or new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued') then
      perform private.refuse(
        409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Register the person who comes instead.'
      );
    end if;

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at, a.xmin)
      from public.attendees a
      where a.organisation_id = new.organisation_id and a.external_id = new.external_id and a.id <> new.id;
    end if;

    if new.ticket_code is null then
      -- Reissue: the new code is e-mailed to the present holder.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A used or cancelled ticket cannot be reissued.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person again.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_token := private.random_token();
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' or old.erased_at is not null then old.ticket_email_status
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.email_status;
    elsif new.ticket_code <> old.ticket_code or new.ticket_token is distinct from old.ticket_token then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.',
        case when new.ticket_code <> old.ticket_code then 'ticket_code' else 'ticket_token' end,
        hint => 'Clear ticket_code to generate a new one.'
      );
    end if;

    -- Status transitions, then the status of the ticket e-mail.
    if new.status <> old.status then
      if old.status = 'cancelled' and new.status = 'awaiting_payment' and private.is_reopening(new.order_id) then
        -- The e-mail was waiting for the payment, and waits again.
        if new.ticket_email_status = 'cancelled' and new.erased_at is null then
          new.ticket_email_status := 'waiting';
        end if;
      elsif old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
        perform private.refuse(
          409, 'invalid_transition', 'An attendee cannot go from its present status to this one.', 'status',
          jsonb_build_object('from', old.status, 'to', new.status),
          'Allowed: awaiting_payment to active or cancelled; active to cancelled.'
        );
      end if;
      if new.status = 'active' then
        select o.* into v_order from public.orders o where o.id = new.order_id for share;
        if v_order.status <> 'completed' then
          perform private.refuse(
            409, 'payment_due', 'The ticket becomes active when its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and new.status <> 'active' then
      perform private.refuse_inactive_ticket(
        new.status, 'A ticket whose status is not active is not sent: ticket_email_status stays as it is.'
      );
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;

    -- The settings are for the triggers on the statement, which fire only where something is left for them. The state of the e-mail is not
    -- edited.
    if (new.name, new.email, new.company, new.status, new.ticket_type_id, new.ticket_code, new.external_id, new.metadata, new.erased_at)
      is distinct from
      (old.name, old.email, old.company, old.status, old.ticket_type_id, old.ticket_code, old.external_id, old.metadata, old.erased_at) then
      new.version := old.version + 1;
      perform set_config('usher.edits_attendees', 'on', true);
    end if;
    if (new.status = 'cancelled') <> (old.status = 'cancelled') or new.ticket_type_id <> old.ticket_type_id then
      perform set_config('usher.moves_places', 'on', true);
    end if;
    if (new.ticket_email_status = 'queued') <> (old.ticket_email_status = 'queued') then
      perform set_config('usher.queues_tickets', 'on', true);
    end if;
  end if;

  -- Whoever buys for themselves was looked at with the order.
  if (new.name, new.email) is distinct from (
    case tg_op when 'INSERT' then v_order.name else old.name end, case tg_op when 'INSERT' then v_order.email else old.email end
  ) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;

  if tg_op = 'INSERT'
    or (new.name, new.email, new.company, new.external_id, new.search_text)
      is distinct from (old.name, old.email, old.company, old.external_id, old.search_text) then
    if tg_op = 'UPDATE' then
      select o.* into v_order from public.orders o where o.id = new.order_id;
    end if;
    new.search_text := private.search_form(
      concat_ws(' ', new.name, new.company, v_order.reference) || E'\t' || concat_ws(' ', new.email, new.external_id) || E'\n'
        || concat_ws(
          ' ', nullif(v_order.name, new.name), nullif(v_order.email, new.email), nullif(v_order.company, new.company),
          nullif(v_order.external_id, new.external_id)
        )
    );
  end if;

  new.cancelled_at := case
    when new.status <> 'cancelled' then null
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    else now()
  end;
  return new;
end
$$;

create or replace function private.tg_attendees__guard_checked_in()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if pg_trigger_depth() > 1 then
    new.updated_at := now();
  elsif new.checked_in_at is distinct from old.checked_in_at then
    perform private.refuse(
      409, 'read_only_field', 'checked_in_at is derived from the check-ins and cannot be edited.', 'checked_in_at',
      hint => 'Add a check-in, or set undone_at of the accepted one.'
    );
  end if;
  return new;
end
$$;

create or replace function private.tg_attendees__notify_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_first uuid[];
begin
  if current_setting('usher.adds_to_order', true) is distinct from 'on' or current_setting('usher.announces', true) = 'on' then
    return null;
  end if;
  if exists (
    select from new_rows n
    where n.order_id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
  ) then
    v_first := array(
      select n.order_id
      from (select r.order_id, count(*) as attendees from new_rows r group by r.order_id) n
      where (select count(*) from public.attendees a where a.order_id = n.order_id) = n.attendees
    );
    insert into private.order_notices (types, order_ids)
    select
      -- A complimentary order is complete before it has attendees; any other one completes, and says so, after this.
      case o.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(o.id order by o.id)
    from public.orders o
    where o.id = any (v_first)
      and o.id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    group by o.status;

    insert into public.notifications (organisation_id, type, data, subject_id)
    -- The row as it is: its discount may have been set after it was added.
    select
      n.organisation_id, 'attendee.updated', (select private.attendee_json(a, with_url => false) from public.attendees a where a.id = n.id),
      n.order_id
    from new_rows n
    where n.order_id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    order by n.id;
  end if;
  return null;
end
$$;

create or replace function private.tg_attendees__notify_update()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_nestloop to 'off'
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if current_setting('usher.edits_attendees', true) is distinct from 'on' then
    return null;
  end if;
  -- Every edit increments the version; a later statement of the transaction may hold none.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    n.organisation_id,
    case
      when n.erased_at is not null and o.erased_at is null then 'attendee.erased'
      when n.status = 'cancelled' and o.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(
      row(n.*)::public.attendees,
      true,
      (select t.name from public.ticket_types t where t.id = n.ticket_type_id),
      (select o.reference from public.orders o where o.id = n.order_id),
      false
    ),
    n.order_id
  from new_rows n
  join old_rows o on o.id = n.id
  where n.version <> o.version
    -- An attendee who is as new as what announces the order is in there as they are at the end.
    and not (
      n.created_at = now()
      and n.status <> 'cancelled'
      and n.erased_at is null
      and (
        current_setting('usher.announces', true) = 'on'
        or n.order_id in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
      )
    )
  order by n.id;
  return null;
end
$$;

create or replace function private.tg_attendees__queue_ticket_email()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_dequeued_ids uuid[];
begin
  if current_setting('usher.queues_tickets', true) is distinct from 'on' then
    return null;
  elsif tg_op = 'INSERT' then
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued' order by n.id;
  else
    -- Not joins of the two transition tables: see tg_attendees__add_up.
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued';
    v_dequeued_ids := array(
      select o.id from old_rows o where o.ticket_email_status = 'queued'
      except
      select n.id from new_rows n where n.ticket_email_status = 'queued'
    );
    if v_dequeued_ids <> '{}' then
      update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
      where e.attendee_id = any (v_dequeued_ids) and e.kind = 'ticket' and e.status = 'queued';
    end if;
  end if;
  return null;
end
$$;

create or replace function private.tg_attendees__spread_amount_off()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_ids uuid[];
  v_discounts bigint[];
begin
  if current_setting('usher.spreads_amount_off', true) is distinct from 'on' then
    return null;
  end if;
  perform set_config('usher.spreads_amount_off', 'off', true);
  select array_agg(s.id), array_agg(s.discount) into v_ids, v_discounts
  from (
    select
      r.id,
      r.given,
      r.share + (row_number() over (partition by r.order_id order by r.remainder desc, r.id) <= r.whole - sum(r.share) over (partition by r.order_id))::integer
        as discount
    from (
      -- Numeric: the product of two amounts exceeds a bigint.
      select
        l.id, l.order_id, l.given, l.whole,
        div(l.price * l.whole, l.subtotal) as share,
        mod(l.price * l.whole, l.subtotal) as remainder
      from (
        select
          n.id, n.order_id, n.price, n.discount as given,
          sum(n.discount) over (partition by n.order_id) as whole,
          sum(n.price) over (partition by n.order_id) as subtotal
        from new_rows n
        where (select c.amount_off from public.promo_codes c where c.id = n.promo_code_id) is not null
      ) l
    ) r
  ) s
  where s.discount <> s.given;
  -- By key, not by a join, whose plan would be that of the first call.
  if v_ids is not null then
    update public.attendees a set discount = v_discounts[array_position(v_ids, a.id)] where a.id = any (v_ids);
  end if;
  return null;
end
$$;

create or replace function private.tg_check_ins__broadcast()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if to_regnamespace('realtime') is not null then
    perform private.broadcast_check_ins(array(select n.id from new_rows n where n.result = 'accepted'));
  end if;
  return null;
end
$$;

create or replace function private.tg_check_ins__judge()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_code text := private.as_ticket_code(new.code);
  v_ticket_type_id uuid;
  v_timezone text;
  v_starts_at text;
  v_point public.check_in_points;
  v_point_is_gone boolean;
begin
  if num_nonnulls(new.code, new.attendee_id) <> 1 then
    if new.code is null then
      perform private.refuse_value('code', 'Give the code of the ticket, or attendee_id.');
    end if;
    perform private.refuse_value('attendee_id', 'Give either the code of the ticket or attendee_id, not both.');
  elsif new.code is null then
    -- Locked at once, so that it keeps the code by which it is found below. Not `=`: the planner might prefer an index that begins with the
    -- organisation.
    select a.ticket_code into v_code
    from public.attendees a
    where a.id = new.attendee_id
      and a.organisation_id is not distinct from (
        select e.organisation_id from public.events e where e.id = new.event_id and not private.is_foreign(e.organisation_id)
      )
    for no key update;
  end if;

  -- One statement, for each costs a scan as much as what it reads. No attendee is locked before the event is known to be the caller's.
  select
    e.organisation_id, e.timezone, a.id, a.ticket_type_id,
    -- A scanner's clock may be ahead: no scan is later than now.
    least(new.scanned_at, now()),
    -- Whoever leaves is asked for nothing but an entry.
    case
      when e.status = 'cancelled' and new.direction = 'entry' then 'event_cancelled'
      when a.id is null then 'not_found'
      when a.event_id <> e.id then 'wrong_event'
      when new.direction = 'exit' then null
      when a.status = 'cancelled' then 'cancelled'
      when a.status = 'awaiting_payment' then 'unpaid'
    end::public.check_in_reason,
    'accepted'::public.check_in_result, 'event', null::uuid, null::timestamptz, null::timestamptz,
    -- For api.check_in, which warns of an early scan.
    set_config('usher.starts_at', e.starts_at::text, true)
  into
    new.organisation_id, v_timezone, new.attendee_id, v_ticket_type_id, new.scanned_at, new.reason,
    new.result, new.admission_key, new.earlier_check_in_id, new.exited_at, new.undone_at, v_starts_at
  from public.events e
  left join lateral (
    select h.id, h.event_id, h.status, h.ticket_type_id
    from public.attendees h
    where h.organisation_id = e.organisation_id and h.ticket_code = v_code
    for no key update
  ) a on true
  where e.id = new.event_id and not private.is_foreign(e.organisation_id);
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  if new.check_in_point_id is not null then
    -- Locked, so that its admission is the one that the key is made by: see tg_check_in_points__assert_unused.
    select p.* into v_point
    from public.check_in_points p
    where p.id = new.check_in_point_id and p.event_id = new.event_id
    for key share;
    if found then
      new.admission_key := concat_ws(
        '/', v_point.id,
        case v_point.admission when 'once_per_day' then to_char(new.scanned_at at time zone v_timezone, 'YYYY-MM-DD') end
      );
    else
      -- A scan made offline is logged all the same: the person may be in, and the others of its batch are not to wait.
      if new.scan_id is null then
        perform private.refuse_not_found('check_in_point_id');
      end if;
      new.check_in_point_id := null;
      v_point_is_gone := true;
    end if;
    if new.reason is null and new.direction = 'entry' then
      new.reason := case
        when v_point_is_gone or v_point.status = 'archived' or new.scanned_at < v_point.opens_at or new.scanned_at >= v_point.closes_at
          then 'point_closed'
        when v_point.ticket_type_ids <> '{}' and v_ticket_type_id <> all (v_point.ticket_type_ids) then 'not_admitted_here'
      end::public.check_in_reason;
    end if;
  end if;

  -- The same statement may hold an earlier scan of the ticket: it is in the log already, while the attendee is updated at its end.
  if new.reason is null and new.direction = 'entry' then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.admission_key = new.admission_key;
    if found then
      new.reason := 'already_checked_in';
    end if;
  elsif new.reason is null then
    select c.id into new.earlier_check_in_id
    from public.check_ins c
    where c.attendee_id = new.attendee_id and c.check_in_point_id is not distinct from new.check_in_point_id
      and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null and c.exited_at is null
    order by c.scanned_at desc, c.id desc
    limit 1;
    if not found or v_point_is_gone then
      new.earlier_check_in_id := null;
      new.reason := 'not_inside';
    end if;
  end if;

  -- Of an entry that is accepted, as most are, all is said.
  if new.reason is not null or new.direction = 'exit' or not new.admitted then
    if new.reason is null and not new.admitted then
      new.earlier_check_in_id := null;
      new.reason := 'turned_away';
    end if;
    new.admission_key := null;
    if new.reason is not null then
      new.result := 'rejected';
    else
      update public.check_ins c
      set
        exited_at = greatest(c.scanned_at, new.scanned_at),
        admission_key = case when v_point.admission = 're_entry' then null else c.admission_key end
      where c.id = new.earlier_check_in_id;
    end if;
  end if;
  return new;
end
$$;

create or replace function private.tg_check_ins__notify_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    n.organisation_id,
    case n.direction when 'entry' then 'attendee.checked_in' else 'attendee.checked_out' end::public.notification_type,
    private.arrival_json(
      a.attendee,
      row(n.*)::public.check_ins,
      (select t.name from public.ticket_types t where t.id = a.ticket_type_id),
      (select o.reference from public.orders o where o.id = a.order_id)
    ),
    a.order_id
  from new_rows n
  -- One index look-up per row under any plan, and so in the order of the scans.
  cross join lateral (
    select a as attendee, a.ticket_type_id, a.order_id from public.attendees a where a.id = n.attendee_id offset 0
  ) a
  where n.result = 'accepted';
  return null;
end
$$;

create or replace function private.tg_order_notices__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select o.organisation_id, t.type, o.data, n.order_id
  from unnest(new.order_ids) n (order_id)
  -- One index look-up per order, however many there are; a deleted order is skipped.
  cross join lateral (
    select
      a.organisation_id,
      private.order_json(
        a."order",
        a.attendees,
        case when a.amount_paid + a.amount_voided > 0 then private.order_payments_json(a.id) else '[]' end,
        case when a.amount_refunded > 0 then private.order_refunds_json(a.id) else '[]' end
      ) as data
    from (
      select o as "order", o.id, o.organisation_id, o.amount_paid, o.amount_voided, o.amount_refunded, t.attendees
      from public.orders o
      -- As private.attendees_of_order_json, without a call for each order: a cancelled event has thousands.
      cross join lateral (
        select json_agg(
          private.attendee_json(a.attendee, false, (select t.name from public.ticket_types t where t.id = a.ticket_type_id), o.reference)
          order by a.id
        ) as attendees
        from (select a.id, a.ticket_type_id, a as attendee from public.attendees a where a.order_id = o.id offset 0) a
      ) t
      where o.id = n.order_id
      offset 0
    ) a
    where a.attendees is not null
    offset 0
  ) o
  cross join unnest(new.types) t (type);
  delete from private.order_notices n where n.id = new.id;
  -- Whoever is added to them from now on is notified of; so is an order that has no attendees yet.
  perform set_config('usher.adds_to_order', 'on', true);
  return null;
end
$$;

create or replace function private.tg_orders__confirm()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if current_setting('usher.sells', true) is distinct from 'on' then
    return null;
  end if;
  insert into public.emails (organisation_id, kind, order_id, next_attempt_at)
  select
    n.organisation_id,
    'order_confirmation',
    n.id,
    now() + case
      when n.source = 'studio' and current_setting('usher.registers', true) is distinct from 'on' then interval '10 minutes'
      else '0'
    end
  from new_rows n
  where n.payment_method is not null and n.send_email
  order by n.id;
  return null;
end
$$;

create or replace function private.tg_orders__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_holder public.orders;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_own_event_shared(new.event_id);
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      select o.* into v_holder
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
      if v_holder.status = 'cancelled' and v_holder.amount_paid = v_holder.amount_refunded then
        -- As of a cancelled attendee: see tg_attendees__guard. Money that is to be returned is looked up by the identifier.
        update public.orders o set external_id = null where o.id = v_holder.id and o.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin) from public.orders o where o.id = v_holder.id;
      end if;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid, new.amount_voided, new.amount_refunded) <> (0, 0, 0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(
        new.reference, new.promo_code_id, new.completed_at, new.cancelled_at, new.cancellation_reason, new.payment_remind_at,
        new.payment_reminded_at, new.payment_check_at
      ) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'amount_voided', 0, 'amount_refunded', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null,
        'cancellation_reason', null, 'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      if new.payment_method is null then
        perform private.refuse_value('promo_code', 'A promo code needs a payment method.', 'Send payment_method, or leave promo_code out.');
      end if;
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
    if not private.is_contact(new.name, new.email) then
      perform private.refuse_contact(new.name, new.email);
    end if;

    -- It has no tickets yet: complimentary, it is complete; any other one completes with them, or with its payment.
    if new.payment_method is null then
      new.status := 'completed';
      new.payment_status := 'not_required';
      new.completed_at := now();
    else
      new.payment_status := 'awaiting_payment';
      perform set_config('usher.sells', 'on', true);
    end if;
    return new;
  end if;

  -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
  if pg_trigger_depth() = 1 then
    if new.amount_paid is distinct from old.amount_paid then
      perform private.refuse(
        409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
        hint => 'Add a payment instead.'
      );
    elsif (new.amount_voided, new.amount_refunded) is distinct from (old.amount_voided, old.amount_refunded) then
      perform private.refuse(
        409, 'read_only_field', 'amount_voided and amount_refunded are added up from rows of their own and cannot be edited.', 'amount_refunded',
        hint => 'Add a row to payment_voids or refunds instead.'
      );
    elsif (new.subtotal, new.discount_total) is distinct from (old.subtotal, old.discount_total) then
      perform private.refuse(
        409, 'read_only_field', 'subtotal and discount_total are added up from the tickets and cannot be edited.', 'subtotal',
        hint => 'Add or cancel attendees instead.'
      );
    elsif (new.payment_method is null) <> (old.payment_method is null) then
      perform private.refuse(
        409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
        hint => 'Create a new order.'
      );
    end if;
  end if;
  if (new.name, new.email, new.status, new.external_id) is distinct from (old.name, old.email, old.status, old.external_id) then
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) and not (old.cancellation_reason = 'expired' and new.status = 'pending' and private.is_reopening(new.id)) then
      perform private.refuse(
        409, 'invalid_transition',
        case when old.cancellation_reason = 'expired'
          then 'The status of an order that has expired is changed by reopen_order alone.'
          else 'An order cannot go from its present status to this one.'
        end,
        'status', jsonb_build_object('from', old.status, 'to', new.status),
        case when old.cancellation_reason = 'expired'
          then 'Call reopen_order: it makes an order that has expired pending again, while there are places.'
          else 'Allowed: pending to completed or cancelled; completed to cancelled.'
        end
      );
    end if;
    if (new.name, new.email) is distinct from (old.name, old.email) and not private.is_contact(new.name, new.email) then
      perform private.refuse_contact(new.name, new.email);
    end if;
  end if;

  -- An order completes when nothing is due; one that is to be paid needs tickets as well, and has them where it has a subtotal. The generated
  -- column total has no value yet in a BEFORE trigger, hence the differences.
  if new.status = 'pending' or new.status = 'completed' and old.status = 'pending' then
    if new.amount_paid - new.amount_refunded >= new.subtotal - new.discount_total
      and (new.payment_method is null or new.subtotal > 0 or private.has_tickets(new.id)) then
      new.status := 'completed';
      new.completed_at := coalesce(new.completed_at, now());
      new.payment_check_at := null;
    elsif new.status = 'completed' then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded = new.amount_paid then 'refunded'
    else 'paid'
  end::public.payment_status;

  -- The reason comes with the cancellation; expired has to be true.
  if new.status = 'cancelled' or num_nonnulls(new.cancelled_at, new.cancellation_reason) > 0 then
    new.cancelled_at := case
      when new.status <> 'cancelled' then null
      when old.cancelled_at is not null then old.cancelled_at
      else now()
    end;
    if pg_trigger_depth() = 1 and new.cancellation_reason is distinct from old.cancellation_reason
      and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
        is distinct from ('cancelled', 'expired', 'pending', true) then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'cancellation_reason',
        hint => 'Set status to cancelled instead.'
      );
    end if;
    new.cancellation_reason := case when new.status = 'cancelled' then coalesce(new.cancellation_reason, 'requested') end;
  end if;
  if (
    new.name, new.email, new.company, new.status, new.subtotal, new.amount_paid, new.amount_refunded, new.payment_due_at, new.external_id,
    new.metadata
  ) is distinct from (
    old.name, old.email, old.company, old.status, old.subtotal, old.amount_paid, old.amount_refunded, old.payment_due_at, old.external_id,
    old.metadata
  ) then
    new.version := old.version + 1;
  end if;
  return new;
end
$$;

create or replace function private.tg_orders__notice()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if tg_op = 'INSERT' then
    -- Whoever registers announces.
    if current_setting('usher.announces', true) = 'on' then
      return null;
    end if;
    insert into private.order_notices (types, order_ids)
    select
      case n.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(n.id order by n.id)
    from new_rows n
    group by n.status;
    return null;
  end if;
  -- Not a join of the two transition tables: see tg_attendees__add_up.
  insert into private.order_notices (types, order_ids)
  select
    case
      when n.status = 'completed' then '{order.completed}'
      when n.status = 'pending' then '{order.reopened}'
      -- Both: who is subscribed to cancellations misses none.
      when n.cancellation_reason = 'expired' then '{order.cancelled,order.expired}'
      else '{order.cancelled}'
    end::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status, n.cancellation_reason from new_rows n
    except
    select o.id, o.status, o.cancellation_reason from old_rows o
  ) n
  group by n.status, n.cancellation_reason;
  return null;
end
$$;

create or replace function private.tg_orders__update_attendees()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- Arrays, not a join: a join would keep the plan of its first call, which after a cancelled event scans the table for
  -- every order.
  v_completed uuid[];
  v_cancelled uuid[];
begin
  select array_agg(n.id) filter (where n.status = 'completed'), array_agg(n.id) filter (where n.status = 'cancelled')
  into v_completed, v_cancelled
  from new_rows n;
  if v_completed is not null then
    update public.attendees a set status = 'active' where a.order_id = any (v_completed) and a.status = 'awaiting_payment';
  end if;
  if v_cancelled is not null then
    update public.attendees a set status = 'cancelled' where a.order_id = any (v_cancelled) and a.status <> 'cancelled';
  end if;
  return null;
end
$$;

create or replace function private.tg_payment_voids__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  select p.organisation_id, 'payment.voided', private.payment_json(p, new.created_at), p.order_id from public.payments p where p.id = new.payment_id;
  return null;
end
$$;

create or replace function private.tg_payments__audit_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_actor public.audit_actor := private.audit_actor();
begin
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, user_id, source)
  values (
    new.organisation_id, 'created', 'payment', new.id, v_actor,
    case v_actor when 'api_key' then new.recorded_by end,
    case v_actor when 'member' then (private.claims() ->> 'sub')::uuid end,
    case v_actor when 'api_key' then new.source else private.current_source() end
  );
  return null;
end
$$;

create or replace function private.tg_payments__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_currency text;
begin
  loop
    -- Before the insert, so that a second payment in the same statement sees the first. An update that waits for another payment compares
    -- what that one left. Its conditions are those of private.refuse_payment, what is due as private.amount_due has it.
    update public.orders o
    set amount_paid = o.amount_paid + new.amount, payment_method = new.method
    where o.id = new.order_id
      and o.status <> 'cancelled'
      and (o.status = 'pending' or o.total - o.amount_paid + o.amount_refunded > 0)
      and (new.amount > greatest(o.total - o.amount_paid + o.amount_refunded, 0)) is not true
      and (new.currency <> o.currency) is not true
      and (new.received_at > now() + interval '1 day') is not true
      and not private.is_foreign(o.organisation_id)
    -- No row would empty new.currency, which is given.
    returning o.organisation_id, o.event_id, o.currency into new.organisation_id, new.event_id, v_currency;
    if found then
      new.currency := v_currency;
      return new;
    end if;
    perform private.refuse_payment(new);
  end loop;
end
$$;

create or replace function private.tg_payments__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'payment.recorded', private.payment_json(new, null), new.order_id);
  return null;
end
$$;

create or replace function private.tg_ticket_types__notify_sold_out()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- No `when` of the trigger: Postgres reads and plans it for each ticket that is issued, which costs twice as much.
  if new.quantity is null or new.quantity = 0 or new.quantity_sold + new.quantity_held < new.quantity
    or old.quantity_sold + old.quantity_held >= old.quantity then
    return null;
  end if;
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new), new.id);
  return null;
end
$$;

create or replace function private.whole_order_json (
  order_id uuid
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select private.order_json(
      o,
      private.attendees_of_order_json(o.id, o.reference),
      case when o.amount_paid + o.amount_voided > 0 then private.order_payments_json(o.id) else '[]' end,
      case when o.amount_refunded > 0 then private.order_refunds_json(o.id) else '[]' end
    )
    from public.orders o
    where o.id = whole_order_json.order_id and not private.is_foreign(o.organisation_id)
  );
end
$$;

create or replace function private.with_warning_of_early_scan (
  outcome json,
  scanned_at timestamp with time zone,
  starts_at timestamp with time zone
)
  returns json
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  if scanned_at < starts_at - interval '1 day' then
    return private.with_warnings(outcome, private.warning(
      'check_in_early', 'The event starts more than a day later. Undo the check-in if it was a test.'
    ));
  end if;
  return outcome;
end
$$;

create trigger attendees_010_blank_is_empty
  before insert or update of name,
    email,
    company,
    status,
    event_id,
    ticket_type_id,
    order_id,
    price,
    discount,
    currency,
    ticket_email_status,
    ticket_email_sent_at,
    ticket_email_last_error,
    ticket_code,
    cancelled_at,
    erased_at,
    external_id,
    metadata,
    created_at,
    updated_at,
    id, organisation_id, promo_code_id, waiting_list_entry_id, version, ticket_token, search_text on public.attendees
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('order_id', 'ticket_type_id', 'name', 'email');

create trigger attendees_100_checked_in
  before update of checked_in_at on public.attendees
  for each row
  execute function private.tg_attendees__guard_checked_in();

create trigger attendees_100_guard
  before insert or update of name,
    email,
    company,
    status,
    event_id,
    ticket_type_id,
    order_id,
    price,
    discount,
    currency,
    ticket_email_status,
    ticket_email_sent_at,
    ticket_email_last_error,
    ticket_code,
    cancelled_at,
    erased_at,
    external_id,
    metadata,
    created_at,
    updated_at,
    id, organisation_id, promo_code_id, waiting_list_entry_id, version, ticket_token, search_text on public.attendees
  for each row
  execute function private.tg_attendees__guard();

create trigger attendees_310_spread_amount_off
  after insert on public.attendees referencing new table as new_rows
  for each statement
  execute function private.tg_attendees__spread_amount_off();

create trigger attendees_350_notify_insert
  after insert on public.attendees referencing new table as new_rows
  for each statement
  execute function private.tg_attendees__notify_insert();

create trigger attendees_700_audit_insert
  after insert on public.attendees referencing new table as new_rows
  for each statement
  execute function private.tg_attendees__audit_insert();

create trigger attendees_800_explain
  before insert or update of name,
    email,
    company,
    status,
    event_id,
    ticket_type_id,
    order_id,
    price,
    discount,
    currency,
    ticket_email_status,
    ticket_email_sent_at,
    ticket_email_last_error,
    ticket_code,
    cancelled_at,
    erased_at,
    external_id,
    metadata,
    created_at,
    updated_at,
    id, organisation_id, promo_code_id, waiting_list_entry_id, version, ticket_token, search_text on public.attendees
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger attendees_900_updated_at
  before update of name,
    email,
    company,
    status,
    event_id,
    ticket_type_id,
    order_id,
    price,
    discount,
    currency,
    ticket_email_status,
    ticket_email_sent_at,
    ticket_email_last_error,
    ticket_code,
    cancelled_at,
    erased_at,
    external_id,
    metadata,
    created_at,
    updated_at,
    id, organisation_id, promo_code_id, waiting_list_entry_id, version, ticket_token, search_text on public.attendees
  for each row
  execute function private.tg__set_updated_at('email_lower', 'checked_in');

create trigger orders_010_blank_is_empty
  before insert or update of name,
    email,
    company,
    reference,
    status,
    payment_status,
    event_id,
    currency,
    payment_due_at,
    payment_remind_at,
    payment_reminded_at,
    promo_code,
    send_email,
    completed_at,
    cancelled_at,
    cancellation_reason,
    source,
    external_id,
    metadata, created_at, updated_at, id, organisation_id, promo_code_id, version, payment_check_at on public.orders
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'name', 'email');

create trigger orders_200_deadline
  before insert or update of status,
    subtotal, discount_total, payment_due_at, payment_remind_at, payment_reminded_at, payment_check_at on public.orders
  for each row
  when (((new.payment_method is not null) or (new.payment_due_at is not null)))
  execute function private.tg_orders__guard_deadline();

create trigger orders_800_explain
  before insert or update of name,
    email,
    company,
    reference,
    status,
    payment_status,
    event_id,
    currency,
    payment_due_at,
    payment_remind_at,
    payment_reminded_at,
    promo_code,
    send_email,
    completed_at,
    cancelled_at,
    cancellation_reason,
    source,
    external_id,
    metadata, created_at, updated_at, id, organisation_id, promo_code_id, version, payment_check_at on public.orders
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger payments_700_audit_insert
  after insert on public.payments
  for each row
  execute function private.tg_payments__audit_insert();

create trigger ticket_types_010_blank_is_empty
  before insert or update of name,
    event_id,
    price,
    quantity,
    status,
    visibility,
    sales_start_at,
    sales_end_at,
    min_per_order,
    max_per_order,
    description,
    "position", external_id, metadata, created_at, updated_at, id, organisation_id, version on public.ticket_types
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'name');

create trigger ticket_types_600_notify_sold_out
  after update of quantity, quantity_sold on public.ticket_types
  for each row
  execute function private.tg_ticket_types__notify_sold_out();

create trigger ticket_types_800_explain
  before insert or update of name,
    event_id,
    price,
    quantity,
    status,
    visibility,
    sales_start_at,
    sales_end_at,
    min_per_order,
    max_per_order,
    description,
    "position", external_id, metadata, created_at, updated_at, id, organisation_id, version on public.ticket_types
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

create trigger ticket_types_900_updated_at
  before update on public.ticket_types
  for each row
  execute function private.tg__set_updated_at('updated_at');

comment on column public.notifications.data is 'The object in the JSON shape of the API at that time: an order with its attendees, without ticket codes.';

revoke all on function private.announce_registrations(private.registration[]) from public;

grant execute on function private.announce_registrations(private.registration[]) to scope_attendees_write;

revoke all on function private.has_tickets(uuid) from public;

revoke all on function private.paid_order_json(uuid) from public;

grant execute on function private.paid_order_json(uuid) to scope_orders_write;

revoke all on function private.payment_json(public.payments, timestamp with time zone) from public;

revoke all on function private.refuse_payment(public.payments) from public;

revoke all on function private.tg_attendees__guard_checked_in() from public;

revoke all on function private.tg_payments__audit_insert() from public;

revoke all on function private.whole_order_json(uuid) from public;

grant execute on function private.whole_order_json(uuid) to scope_orders_read, scope_orders_write;

revoke all
  on function private.with_warning_of_early_scan(json, timestamp with time zone, timestamp with time zone)
  from public;

grant execute
  on function private.with_warning_of_early_scan(json, timestamp with time zone, timestamp with time zone)
  to scope_checkin_write;

-- For calls that have begun with the functions of before, until the next migration.
grant execute on function private.payment_json(public.payments, timestamp with time zone) to scope_orders_read, scope_orders_write;
