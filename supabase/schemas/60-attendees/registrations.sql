-- Registration: an order with its attendees, either complimentary and completed at once, or payable and pending until paid; or one attendee more
-- of an order that is pending. Whoever registers, a call, a batch of them, an import, an offer that is accepted or a row of the view, has an array
-- of calls of register_attendee, as JSON
-- (private.with_guests); private.register answers an outcome for each. The rules are in the triggers of orders and attendees (rules.sql).

-- A guest of a registration, of an import or of the waiting list, as JSON has one.
create type private.guest as (
  ticket_type_id uuid,
  waiting_list_entry_id uuid,
  name text,
  email text,
  company text,
  external_id text,
  metadata jsonb,
  answers jsonb
);

-- A single guest is given by the fields of the call itself.
create function private.with_guests(call jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return case when jsonb_typeof(call -> 'attendees') = 'array' then call
    else call || jsonb_build_object('attendees', jsonb_build_array(call - 'ticket_type_id')) end;
end
$$;
grant execute on function private.with_guests to scope_attendees_write, authenticated;

create function private.lock_key_of_external_id(kind text, external_id text) returns integer
language plpgsql stable set search_path = ''
as $$
begin
  return hashtext(concat_ws(' ', private.current_organisation_id(), kind, external_id));
end
$$;
grant execute on function private.lock_key_of_external_id to scope_attendees_write;

-- Locks the external_ids of registrations in one global order: two groups that name the same ones crosswise would otherwise each wait for an
-- index entry of the other. Taken before every other lock of a registration, so that the second finds what the first has added.
create function private.lock_external_ids(calls jsonb[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform pg_advisory_xact_lock(6, k.lock_key)
  from (
    select private.lock_key_of_external_id('order', c ->> 'external_id') as lock_key from unnest(calls) c where c ->> 'external_id' is not null
    union
    select private.lock_key_of_external_id('attendee', g ->> 'external_id')
    from unnest(calls) c
    cross join lateral jsonb_array_elements(c -> 'attendees') g
    where g ->> 'external_id' is not null
    order by 1
  ) k;
end
$$;
grant execute on function private.lock_external_ids to scope_attendees_write;

-- The first mistake of all. A ticket type of the caller is of an event of the caller.
create function private.assert_registrable(calls jsonb[]) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_is_sized boolean;
  v_has_doubles boolean;
  v_foreign record;
begin
  select
    bool_and(jsonb_array_length(c -> 'attendees') between 1 and 50),
    bool_or(jsonb_array_length(c -> 'attendees') > 1 and (
      select count(g ->> 'external_id') <> count(distinct g ->> 'external_id') from jsonb_array_elements(c -> 'attendees') g
    ))
  into v_is_sized, v_has_doubles
  from unnest(calls) c;
  if not v_is_sized then
    perform private.refuse(422, 'validation_failed', 'A group must have 1 to 50 attendees.', 'attendees');
  elsif v_has_doubles then
    perform private.refuse(
      409, 'already_exists', 'Two attendees of the group have the same external_id.', 'external_id', hint => 'Send each external_id once.'
    );
  end if;
  select c.call ->> 'event_id' as event_id, case when g.guest ? 'ticket_type_id' then format('attendees.%s.', g.place - 1) end as path
  into v_foreign
  from unnest(calls) c (call)
  cross join lateral jsonb_array_elements(c.call -> 'attendees') with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce(g.guest ->> 'ticket_type_id', c.call ->> 'ticket_type_id')::uuid and t.event_id = (c.call ->> 'event_id')::uuid
  )
  limit 1;
  if found then
    if not exists (select from public.events e where e.id = v_foreign.event_id::uuid) then
      perform private.refuse_not_found('event_id');
    end if;
    perform private.refuse_not_found(concat(v_foreign.path, 'ticket_type_id'));
  end if;
end
$$;
grant execute on function private.assert_registrable to scope_attendees_write;

-- Adds all orders in one statement and all attendees in another, so that the triggers on statements run once: the ids of the orders. Top-level
-- name, e-mail address and company are the buyer's; without them the first guest is the buyer. A call with order_id stands alone, and adds no order.
create function private.add_registrations(calls jsonb[]) returns uuid[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_order_ids uuid[];
begin
  if calls[1] ->> 'order_id' is not null then
    v_order_ids := array[(calls[1] ->> 'order_id')::uuid];
  else
    with added as (
      insert into public.orders (event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata)
      select
        r.event_id, coalesce(r.name, g.first ->> 'name'), coalesce(r.email, g.first ->> 'email'),
        case when coalesce(r.name, r.email, r.company) is null then g.first ->> 'company' else r.company end,
        coalesce(r.send_email, true), r.payment_method, r.promo_code, r.external_id, coalesce(r.metadata, '{}')
      from unnest(calls) with ordinality c (call, place)
      cross join lateral jsonb_to_record(c.call) r (
        event_id uuid, name text, email text, company text, send_email boolean, payment_method public.payment_method, promo_code text,
        external_id text, metadata jsonb
      )
      cross join lateral (select c.call #> '{attendees,0}' as first) g
      order by c.place
      returning id
    )
    select array_agg(a.id) into v_order_ids from added a;
  end if;

  insert into public.attendees (
    event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata, answers
  )
  select
    (c.call ->> 'event_id')::uuid, v_order_ids[c.place], coalesce(g.ticket_type_id, (c.call ->> 'ticket_type_id')::uuid), g.waiting_list_entry_id,
    g.name, g.email, g.company, g.external_id, coalesce(g.metadata, '{}'), coalesce(g.answers, '{}')
  from unnest(calls) with ordinality c (call, place)
  cross join lateral jsonb_populate_recordset(null::private.guest, c.call -> 'attendees') g;
  return v_order_ids;
end
$$;
grant execute on function private.add_registrations to scope_attendees_write, authenticated;

-- The order of another attendee, locked as their own triggers lock it: its event. Security definer: a registering key may not read orders.
create function private.lock_pending_order(order_id uuid) returns uuid
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  perform private.lock_event_shared(o.event_id)
  from public.orders o
  where o.id = lock_pending_order.order_id and not private.is_foreign(o.organisation_id);
  select o.* into v_order
  from public.orders o
  where o.id = lock_pending_order.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  elsif v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status = 'cancelled' then
    perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
  elsif v_order.status = 'completed' then
    perform private.refuse(
      409, 'order_completed', 'This order is completed and takes no more attendees.', 'order_id', hint => 'Register the person in a new order.'
    );
  end if;
  return v_order.event_id;
end
$$;
grant execute on function private.lock_pending_order to scope_attendees_write;

-- The outcomes of registrations: orders that this transaction has added for the calling key, or the attendee whom it has added to one, as its
-- triggers have left them. Security definer: a registering key may not read prices, and under row level security the planner may read the whole organisation for each order.
create function private.outcomes_of_registrations(order_ids uuid[]) returns json[]
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id constant uuid := private.current_organisation_id();
  v_recent_id constant uuid := private.first_uuid_v7(now() - interval '10 minutes');
begin
  return array(
    -- Not private.with_warnings, which reads the JSON of the order once more.
    select case
      when w.warnings = '{}' then json_build_object('status', 201, 'data', r.data)
      else json_build_object('status', 201, 'data', r.data, 'warnings', to_json(w.warnings))
    end
    from unnest(order_ids) with ordinality i (id, place)
    join public.orders o on o.id = i.id
    cross join lateral (
      select
        json_agg(private.attendee_json(a, true, t.name, o.reference) order by a.id) as attendees,
        bool_or(t.price > 0) as has_price,
        bool_or(case when t.quantity_held > 0 then private.has_offer(a.ticket_type_id, a.email_lower) end) as has_offer,
        -- Of the same name and address within ten minutes: ids tell the time. In the order of the one index of addresses, with nothing that
        -- another one has: the primary key would have all that the on-sale registered in these ten minutes, for each guest.
        bool_or((
          select true from public.attendees r
          where r.organisation_id = any (array[o.organisation_id]) and r.email_lower = a.email_lower and r.id >= v_recent_id and r.id < a.id
            and (r.event_id = a.event_id and r.status <> 'cancelled') is true and private.person_form(r.name) = private.person_form(a.name)
          order by r.organisation_id desc, r.id desc
          limit 1
        )) as is_repeated
      from public.attendees a
      join public.ticket_types t on t.id = a.ticket_type_id
      where a.order_id = o.id and a.created_at = now()
    ) a
    cross join lateral (
      select case when o.created_at = now() then private.order_json(o, a.attendees) else a.attendees -> 0 end as data
    ) r
    cross join lateral (select array_remove(
      array[
        case when a.has_price and o.payment_method is null then private.warning_of_gift() end,
        case when a.is_repeated then private.warning_of_repetition() end,
        case when a.has_offer then private.warning_of_offer() end
      ],
      null
    ) as warnings) w
    where a.attendees is not null and o.organisation_id = coalesce(v_organisation_id, o.organisation_id)
    order by i.place
  );
end
$$;
grant execute on function private.outcomes_of_registrations to scope_attendees_write;

-- Who was shown an amount orders at that amount, or not at all. Security definer: a registering key may not read orders.
create function private.assert_totals(calls jsonb[], order_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'total_changed', 'The order comes to another amount than expected_total.', 'expected_total',
    jsonb_build_object('total', o.total, 'currency', o.currency), 'Show the buyer the new total first.'
  )
  from unnest(calls, order_ids) c (call, order_id)
  join public.orders o on o.id = c.order_id
  where o.total <> (c.call ->> 'expected_total')::bigint;
end
$$;
grant execute on function private.assert_totals to scope_attendees_write;

-- Raises if anything is refused; private.answer_calls then tries call by call.
create function private.register(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcomes json[];
  v_order_ids uuid[];
begin
  if cardinality(calls) = 1 then
    v_outcomes[1] := private.replay_outcome(calls[1] ->> 'idempotency_key', calls[1] ->> 'request_fingerprint');
    if v_outcomes[1] is not null then
      return v_outcomes;
    end if;
    -- Whoever has several took the locks of all.
    perform private.lock_external_ids(calls);
    if calls[1] ->> 'order_id' is not null then
      calls[1] := calls[1] || jsonb_build_object('event_id', private.lock_pending_order((calls[1] ->> 'order_id')::uuid));
    end if;
  elsif (
    select count(c ->> 'idempotency_key') <> count(distinct c ->> 'idempotency_key')
      or bool_or(private.replay_outcome(c ->> 'idempotency_key', c ->> 'request_fingerprint') is not null)
    from unnest(calls) c
  ) then
    raise exception 'Replays are answered only to calls sent alone.';
  end if;
  perform private.assert_registrable(calls);
  v_order_ids := private.add_registrations(calls);
  if exists (select from unnest(calls) c where c ->> 'expected_total' is not null) then
    perform private.assert_totals(calls, v_order_ids);
  end if;
  if private.is_page() then
    perform private.assert_page_takes_orders(v_order_ids);
  end if;
  v_outcomes := private.outcomes_of_registrations(v_order_ids);
  for i in 1..cardinality(calls) loop
    v_outcomes[i] := private.record_outcome(calls[i] ->> 'idempotency_key', calls[i] ->> 'request_fingerprint', v_outcomes[i]);
  end loop;
  return v_outcomes;
end
$$;
grant execute on function private.register to scope_attendees_write;

-- One guest, given by the top-level fields, or up to 50 in `attendees`, all or none. A guest of a group without ticket_type_id gets the
-- top-level one.
create function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  expected_total bigint default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  answers jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return (private.register(array[private.with_guests(jsonb_build_object(
    'event_id', event_id, 'ticket_type_id', ticket_type_id, 'name', name, 'email', email, 'company', company, 'attendees', attendees,
    'payment_method', payment_method, 'promo_code', promo_code, 'expected_total', expected_total, 'send_email', send_email,
    'external_id', external_id, 'metadata', metadata, 'answers', answers,
    'idempotency_key', idempotency_key, 'request_fingerprint', request_fingerprint
  ))]))[1];
end
$$;
comment on function api.register_attendee is
  'Registers a guest, or a group of up to 50: 201 with the order and its attendees, complimentary unless payment_method is given. 404 not_found; 409 event_not_published, event_ended, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, total_changed, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';
grant execute on function api.register_attendee to scope_attendees_write;

create function api.add_attendee(
  order_id uuid,
  ticket_type_id uuid,
  name text,
  email text,
  company text default null,
  external_id text default null,
  metadata jsonb default null,
  answers jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return (private.register(array[private.with_guests(jsonb_build_object(
    'order_id', order_id, 'ticket_type_id', ticket_type_id, 'name', name, 'email', email, 'company', company,
    'external_id', external_id, 'metadata', metadata, 'answers', answers,
    'idempotency_key', idempotency_key, 'request_fingerprint', request_fingerprint
  ))]))[1];
end
$$;
comment on function api.add_attendee is
  'Adds a guest to a pending order, with the payment method and promo code of the order: 201 with the attendee. 404 not_found; 409 order_completed, order_cancelled, order_expired, event_not_published, event_ended, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';
grant execute on function api.add_attendee to scope_attendees_write;

-- Its calls by one key, as one. Locks that would otherwise be taken call by call are taken here, in one order for all batches.
create function api.register_attendees(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := array(select private.with_guests(c) from unnest(private.calls_of_batch(calls)) with ordinality c (c, place) order by place);
begin
  perform private.lock_external_ids(v_calls);
  return to_json(private.answer_calls('register', v_calls));
end
$$;
comment on function api.register_attendees is
  'Calls of register_attendee by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.register_attendees to scope_attendees_write;

-- The same for one guest, as a row: for members over the Data API, and whoever writes SQL. An order with its only attendee, by the rights of
-- the caller.
create view public.registrations with (security_invoker = true) as
select
  a.name,
  a.email,
  a.company,
  a.event_id,
  a.ticket_type_id,
  o.payment_method,
  o.promo_code,
  o.send_email,
  a.status,
  o.reference,
  a.external_id,
  a.metadata,
  a.answers,
  a.created_at,
  a.waiting_list_entry_id,
  o.id as order_id,
  a.id as attendee_id,
  a.organisation_id
from public.attendees a
join public.orders o on o.id = a.order_id;
comment on view public.registrations is
  'Attendees with their orders. Add a row to register a guest: event, ticket type, name, e-mail, and payment_method invoice if it is to be paid.';
comment on column public.registrations.name is 'Name of the person.';
comment on column public.registrations.email is 'Address the ticket is sent to.';
comment on column public.registrations.company is 'Company of the person.';
comment on column public.registrations.event_id is 'The event. Required, with ticket_type_id, name and email.';
comment on column public.registrations.ticket_type_id is 'The kind of ticket.';
comment on column public.registrations.payment_method is 'Payment method, such as invoice. Empty: complimentary.';
comment on column public.registrations.promo_code is 'Promo code of the buyer. Needs a payment method.';
comment on column public.registrations.send_email is 'Whether the ticket is e-mailed.';
comment on column public.registrations.status is 'active, awaiting_payment, or cancelled. Left out of a new row.';
comment on column public.registrations.reference is 'Short code of the order. Left out of a new row.';
comment on column public.registrations.external_id is 'Your own identifier, unique within the organisation.';
comment on column public.registrations.metadata is 'Your own flat JSON object, at most 50 keys.';
comment on column public.registrations.answers is 'Answers to the questions of the event, by key.';
comment on column public.registrations.created_at is 'When it was registered. Left out of a new row.';
comment on column public.registrations.waiting_list_entry_id is 'The waiting-list entry whose offer it accepts.';
comment on column public.registrations.order_id is 'The order. Left out of a new row.';
comment on column public.registrations.attendee_id is 'The attendee. Left out of a new row.';
comment on column public.registrations.organisation_id is 'The organisation of the event.';

create function private.tg_registrations__register() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_given constant jsonb := jsonb_strip_nulls(to_jsonb(new));
  v_kept text;
  v_organisation_id uuid;
  v_constraint text;
begin
  foreach v_kept in array '{order_id,reference,attendee_id,status,created_at}'::text[] loop
    if v_given ? v_kept then
      perform private.refuse(
        409, 'read_only_field', 'Usher sets this field when it adds the row.', v_kept, hint => 'Leave it out.', "row" => to_jsonb(new)
      );
    end if;
  end loop;
  -- The tables' own triggers that explain mistakes leave alone what a trigger writes.
  new := jsonb_populate_record(new, private.trimmed_values(to_jsonb(new)));
  select e.organisation_id into v_organisation_id from public.events e where e.id = new.event_id;
  if new.event_id is null then
    perform private.refuse_empty(tg_relid, 'event_id');
  elsif v_organisation_id is null then
    perform private.refuse_not_found('event_id');
  elsif new.organisation_id <> v_organisation_id then
    perform private.refuse_other_organisation();
  elsif new.ticket_type_id is null then
    perform private.refuse_empty(tg_relid, 'ticket_type_id');
  elsif not exists (select from public.ticket_types t where t.id = new.ticket_type_id and t.event_id = new.event_id) then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.refuse_taken('external_id', o.id, o.created_at)
  from public.orders o
  where o.organisation_id = v_organisation_id and o.external_id = new.external_id;
  perform private.refuse_taken('external_id', a.id, a.created_at)
  from public.attendees a
  where a.organisation_id = v_organisation_id and a.external_id = new.external_id;

  new.order_id := (private.add_registrations(array[private.with_guests(to_jsonb(new))]))[1];
  perform private.confirm_now(new.order_id);
  select r.* into new from public.registrations r where r.order_id = new.order_id;
  return new;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  perform private.refuse_broken(v_constraint, to_jsonb(new));
  raise;
end
$$;
create trigger registrations_100_register instead of insert on public.registrations
  for each row execute function private.tg_registrations__register();
select private.keep_view('public.registrations', 'This view only shows and adds registrations.', 'update or delete');

revoke all on public.registrations from anon, authenticated, service_role;
grant select, insert on public.registrations to authenticated;
