-- batches. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop trigger orders_600_notify_insert on public.orders;

alter table public.attendees
  drop constraint attendees_order_id_fkey;

drop function private.tg_orders__notify_insert();

alter role authenticator set enable_seqscan to 'off';

create type private.registration_call as (
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text,
  attendees jsonb,
  payment_method public.payment_method,
  promo_code text,
  send_email boolean,
  external_id text,
  metadata jsonb,
  idempotency_key text,
  request_fingerprint text
);

create type private.registration as (
  order_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text,
  guests jsonb,
  payment_method public.payment_method,
  promo_code text,
  send_email boolean,
  external_id text,
  metadata jsonb
);

create or replace function api.check_in_many (
  calls jsonb
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_event_id uuid;
begin
  -- As check_in_batch does: tickets are locked in one order before the first is judged.
  for v_event_id in select distinct (c ->> 'event_id')::uuid from unnest(v_calls) c order by 1 loop
    perform private.lock_orders_of(v_event_id, array(select private.as_ticket_code(c ->> 'code') from unnest(v_calls) c));
  end loop;
  return to_json(private.answer_calls('check_in_calls', v_calls));
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
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_organisation_id uuid;
  v_foreign record;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group has 1 to 50 attendees.', 'attendees');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
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
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  if external_id is not null or attendees is not null then
    perform private.lock_external_ids(v_organisation_id, external_id, v_guests);
  end if;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 201, 'data', (private.add_registrations(array[row(
      private.uuid_v7(), event_id, ticket_type_id, name, email, company, v_guests, payment_method, promo_code, send_email, external_id,
      metadata
    )::private.registration]))[1])
  );
end
$$;

create or replace function api.register_attendees (
  calls jsonb
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_key integer;
begin
  for v_key in
    select distinct hashtext(concat_ws(' ', private.current_organisation_id(), i.kind, i.external_id))
    from unnest(v_calls) c
    cross join lateral (
      select 'order' as kind, c ->> 'external_id' as external_id where c ? 'attendees'
      union all
      select 'attendee', g ->> 'external_id' from jsonb_array_elements(coalesce(c -> 'attendees', jsonb_build_array(c))) g
    ) i
    where i.external_id is not null
    order by 1
  loop
    perform pg_advisory_xact_lock(6, v_key);
  end loop;
  return to_json(private.answer_calls('register_attendee_calls', v_calls));
end
$$;

create or replace function private.add_registrations (
  registrations private.registration[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_orders public.orders[];
  v_attendees public.attendees[];
begin
  with added as (
    insert into public.orders (id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata)
    select
      r.order_id,
      r.event_id,
      coalesce(r.name, r.guests #>> '{0,name}'),
      coalesce(r.email, r.guests #>> '{0,email}'),
      case when coalesce(r.name, r.email, r.company) is null then r.guests #>> '{0,company}' else r.company end,
      coalesce(r.send_email, true),
      r.payment_method,
      r.promo_code,
      r.external_id,
      coalesce(r.metadata, '{}')
    from unnest(registrations) r
    returning *
  )
  select array_agg(row(a.*)::public.orders) into v_orders from added a;

  with added as (
    insert into public.attendees (event_id, order_id, ticket_type_id, name, email, company, external_id, metadata)
    select
      r.event_id, r.order_id, coalesce(g.ticket_type_id, r.ticket_type_id), g.name, g.email, g.company, g.external_id,
      coalesce(g.metadata, '{}')
    from unnest(registrations) r
    cross join lateral jsonb_to_recordset(r.guests) g (
      ticket_type_id uuid, name text, email text, company text, external_id text, metadata jsonb
    )
    returning *
  )
  select array_agg(row(a.*)::public.attendees) into v_attendees from added a;

  -- The triggers of attendees have set the totals of an order that is to be paid, and with them its status and its tickets'.
  if exists (select from unnest(registrations) r where r.payment_method is not null) then
    v_orders := array(select o from public.orders o where o.id = any (array(select r.id from unnest(v_orders) r)));
    v_attendees := array(select a from public.attendees a where a.id = any (array(select r.id from unnest(v_attendees) r)));
  end if;

  return array(
    select private.order_json(row(o.*)::public.orders, a.attendees, '[]')
    from unnest(registrations) with ordinality r
    join unnest(v_orders) o on o.id = r.order_id
    join (
      select a.order_id, json_agg(private.attendee_json(row(a.*)::public.attendees) order by a.id) as attendees
      from unnest(v_attendees) a
      group by a.order_id
    ) a on a.order_id = r.order_id
    order by r.ordinality
  );
end
$$;

create or replace function private.answer_calls (
  operation text,
  calls jsonb[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_half integer := cardinality(calls) / 2;
  v_outcomes json[];
  v_message text;
  v_detail text;
  v_hint text;
begin
  begin
    set constraints all deferred;
    execute format('select private.%I($1)', operation) into v_outcomes using calls;
    -- What deferred triggers do, or refuse, is part of the attempt.
    set constraints all immediate;
    return array(select json_build_object('outcome', o.outcome) from unnest(v_outcomes) with ordinality o (outcome, place) order by o.place);
  exception
    when serialization_failure or deadlock_detected or lock_not_available then
      raise;
    when others then
      if cardinality(calls) = 1 then
        get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
        -- refuse_taken leaves out the id of an object of the same transaction, which here may be that of another call.
        if sqlstate not like 'PT%' or v_detail::jsonb ->> 'code' = 'already_exists' and v_detail::jsonb -> 'details' is null then
          return array['{}'::json];
        end if;
        return array[json_build_object('error', json_build_object(
          'code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint
        ))];
      end if;
  end;
  return private.answer_calls(operation, calls[:v_half]) || private.answer_calls(operation, calls[v_half + 1:]);
end
$$;

create or replace function private.calls_of_batch (
  calls jsonb
)
  returns jsonb[]
  language plpgsql
  set search_path to ''
  as $$
begin
  if jsonb_array_length(calls) not between 1 and 100 then
    perform private.refuse_value('calls', 'A batch has 1 to 100 calls.');
  end if;
  perform private.lock_idempotency_key(c ->> 'idempotency_key')
  from jsonb_array_elements(calls) c
  where c ? 'idempotency_key'
  order by c ->> 'idempotency_key';
  return array(select c.call from jsonb_array_elements(calls) with ordinality c (call, place) order by c.place);
end
$$;

create or replace function private.check_in_calls (
  calls jsonb[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_call record;
  v_outcomes json[];
begin
  for v_call in
    select r.*
    from unnest(calls) with ordinality c (call, place)
    cross join lateral jsonb_to_record(c.call) r (
      event_id uuid, code text, device text, idempotency_key text, request_fingerprint text
    )
    order by c.place
  loop
    v_outcomes := v_outcomes || api.check_in(
      v_call.event_id, v_call.code, v_call.device, v_call.idempotency_key, v_call.request_fingerprint
    );
  end loop;
  return v_outcomes;
end
$$;

create or replace function private.lock_idempotency_key (
  idempotency_key text
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(private.claims() ->> 'family_id' || ' ' || idempotency_key, 0));
end
$$;

create or replace function private.random_code (
  length integer
)
  returns text
  language plpgsql
  set search_path to ''
  as $$
declare
  v_bytes bytea := sha256(uuid_send(gen_random_uuid()));
  v_code text := '';
begin
  for i in 0..length - 1 loop
    v_code := v_code || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (get_byte(v_bytes, i) & 31), 1);
  end loop;
  return v_code;
end
$$;

create or replace function private.register_attendee_calls (
  calls jsonb[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_calls private.registration_call[] := array(
    select jsonb_populate_record(null::private.registration_call, c.call)
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
  v_call private.registration_call := v_calls[1];
  v_registrations private.registration[];
  v_orders json[];
begin
  if cardinality(calls) = 1 then
    return array[api.register_attendee(
      v_call.event_id, v_call.ticket_type_id, v_call.name, v_call.email, v_call.company, v_call.attendees, v_call.payment_method,
      v_call.promo_code, v_call.send_email, v_call.external_id, v_call.metadata, v_call.idempotency_key, v_call.request_fingerprint
    )];
  end if;

  -- A key that is sent twice, and an outcome to replay, are for calls that are alone.
  if (select count(c.idempotency_key) <> count(distinct c.idempotency_key) from unnest(v_calls) c) then
    raise exception 'divide';
  end if;
  foreach v_call in array v_calls loop
    if private.replay_outcome(v_call.idempotency_key, v_call.request_fingerprint) is not null then
      raise exception 'divide';
    end if;
    v_call.attendees := coalesce(v_call.attendees, jsonb_build_array(jsonb_build_object(
      'name', v_call.name, 'email', v_call.email, 'company', v_call.company, 'external_id', v_call.external_id,
      'metadata', v_call.metadata
    )));
    v_registrations := v_registrations || row(
      private.uuid_v7(), v_call.event_id, v_call.ticket_type_id, v_call.name, v_call.email, v_call.company, v_call.attendees,
      v_call.payment_method, v_call.promo_code, v_call.send_email, v_call.external_id, v_call.metadata
    )::private.registration;
  end loop;
  if exists (
    select from unnest(v_registrations) r
    cross join lateral jsonb_array_elements(r.guests) g
    where jsonb_array_length(r.guests) > 50 or not exists (
      select from public.ticket_types t
      where t.id = coalesce((g ->> 'ticket_type_id')::uuid, r.ticket_type_id) and t.event_id = r.event_id
    )
  ) then
    raise exception 'divide';
  end if;

  v_orders := private.add_registrations(v_registrations);
  return array(
    select private.record_outcome(
      c.idempotency_key, c.request_fingerprint, json_build_object('status', 201, 'data', v_orders[c.ordinality])
    )
    from unnest(v_calls) with ordinality c
    order by c.ordinality
  );
end
$$;

create or replace function private.replay_outcome (
  idempotency_key text,
  request_fingerprint text
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_family_id uuid := (private.claims() ->> 'family_id')::uuid;
  v_record private.idempotency_records;
begin
  if idempotency_key is null or v_family_id is null then
    return null;
  end if;

  perform private.lock_idempotency_key(idempotency_key);
  select r.* into v_record
  from private.idempotency_records r
  where r.family_id = v_family_id
    and r.idempotency_key = replay_outcome.idempotency_key
    and r.expires_at > now();
  if not found then
    return null;
  end if;

  if v_record.request_fingerprint is distinct from private.fingerprint_for_role(replay_outcome.request_fingerprint) then
    perform private.refuse(
      422, 'idempotency_key_reused', 'This idempotency key was used for a different request.', 'idempotency_key',
      hint => 'Repeat the first request unchanged, or send a new key.'
    );
  end if;
  -- Built as text, so that the fields keep their order.
  return ('{"replayed": true, ' || substr(v_record.outcome::text, 2))::json;
end
$$;

create or replace function private.tg_attendees__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order public.orders;
begin
  if tg_op = 'INSERT' then
    -- The event lock before the order, as everywhere. The order is locked so that it is neither cancelled nor completed
    -- without this ticket, and so that its totals are updated by one transaction at a time.
    perform private.lock_event_shared(o.event_id) from public.orders o where o.id = new.order_id;
    select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
    perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
    end if;
    -- The fields that Usher sets: price, status, ticket code and the status of the ticket e-mail.
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency or new.event_id <> v_order.event_id or new.organisation_id <> v_order.organisation_id
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.checked_in_at, new.cancelled_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'event_id', v_order.event_id, 'organisation_id', v_order.organisation_id,
        'promo_code_id', null, 'ticket_code', null, 'checked_in_at', null, 'cancelled_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Create a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.ticket_email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is derived from the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at)
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
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' then 'not_requested'
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.ticket_email_status;
    elsif new.ticket_code <> old.ticket_code then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.', 'ticket_code', hint => 'Clear it to generate a new one.'
      );
    end if;

    -- Status transitions, then the status of the ticket e-mail.
    if new.status <> old.status then
      if old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
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
      perform private.refuse_inactive_ticket(new.status);
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.ticket_email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
  end if;

  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create or replace function private.tg_orders__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_event public.events;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid) <> (0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(new.reference, new.promo_code_id, new.completed_at, new.cancelled_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
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
  else
    -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'The totals are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
          hint => 'Create a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
  end if;

  -- Derived fields: completion, payment status and timestamps.
  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' and new.amount_paid = 0 then 'awaiting_payment'
    when new.status = 'pending' then 'partially_paid'
    when new.status = 'cancelled' and new.amount_paid > 0 then 'refund_due'
    when new.status = 'cancelled' then 'not_required'
    when new.amount_paid > new.subtotal - new.discount_total then 'refund_due'
    when new.amount_paid > 0 then 'paid'
    else 'not_required'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create or replace function private.tg_orders__notice()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if tg_op = 'INSERT' then
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
    array[case n.status when 'completed' then 'order.completed' else 'order.cancelled' end]::public.notification_type[],
    array_agg(n.id order by n.id)
  from (
    select n.id, n.status from new_rows n where n.status in ('completed', 'cancelled')
    except
    select o.id, o.status from old_rows o
  ) n
  group by n.status;
  return null;
end
$$;

create or replace function private.uuid_v7()
  returns uuid
  language plpgsql
  set search_path to ''
  as $$
declare
  v_microseconds bigint := date_part('epoch', clock_timestamp()) * 1000000;
begin
  return encode(
    overlay(
      uuid_send(gen_random_uuid())
      placing int8send((v_microseconds / 1000 << 16) | x'7000'::bigint | (v_microseconds % 1000 * 4096 / 1000))
      from 1 for 8
    ),
    'hex'
  )::uuid;
end
$$;

alter table public.attendees
  add constraint attendees_order_id_fkey foreign key (order_id) references public.orders(id);

create trigger orders_600_notice_insert
  after insert on public.orders referencing new table as new_rows
  for each statement
  execute function private.tg_orders__notice();

comment on function api.check_in_many(jsonb) is 'Calls of check_in by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';

comment on function api.register_attendees(jsonb) is 'Calls of register_attendee by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';

revoke all on function api.check_in_many(jsonb) from public;

grant execute on function api.check_in_many(jsonb) to scope_checkin_write;

revoke all on function api.register_attendees(jsonb) from public;

grant execute on function api.register_attendees(jsonb) to scope_attendees_write;

revoke all on function private.add_registrations(private.registration[]) from public;

grant execute on function private.add_registrations(private.registration[]) to scope_attendees_write;

revoke all on function private.answer_calls(text, jsonb[]) from public;

grant execute on function private.answer_calls(text, jsonb[]) to api_key;

revoke all on function private.calls_of_batch(jsonb) from public;

grant execute on function private.calls_of_batch(jsonb) to api_key;

revoke all on function private.check_in_calls(jsonb[]) from public;

grant execute on function private.check_in_calls(jsonb[]) to scope_checkin_write;

revoke all on function private.lock_idempotency_key(text) from public;

grant execute on function private.lock_idempotency_key(text) to api_key;

revoke all on function private.register_attendee_calls(jsonb[]) from public;

grant execute on function private.register_attendee_calls(jsonb[]) to scope_attendees_write;

revoke all (id) on table public.orders from scope_attendees_write;

grant insert (id) on table public.orders to scope_attendees_write;
