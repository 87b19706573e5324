-- Registration: one order with its attendees, either complimentary and completed at once, or payable and pending until paid.
-- The rules (event published, places left, sale open, promo code valid) are in the triggers of orders and attendees, so that a
-- row added in Studio meets the same ones.

-- The external_ids that a registration gives to its order and its guests, with the key of the lock of each.
create function private.external_ids_of(organisation_id uuid, order_external_id text, guests jsonb)
returns table (kind text, external_id text, lock_key integer)
language plpgsql stable set search_path = ''
as $$
begin
  return query
  select i.kind, i.external_id, hashtext(concat_ws(' ', external_ids_of.organisation_id, i.kind, i.external_id))
  from (
    select 'order' as kind, order_external_id as external_id
    union all
    select 'attendee', g.guest ->> 'external_id' from jsonb_array_elements(guests) g (guest)
  ) i
  where i.external_id is not null;
end
$$;
grant execute on function private.external_ids_of to scope_attendees_write;

-- Locks the external_ids of a registration in one global order: two groups that name the same ones crosswise would otherwise
-- each wait for an index entry of the other. Taken before every other lock of a registration, so that the second finds what the
-- first has added.
create function private.lock_external_ids(organisation_id uuid, order_external_id text, guests jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_external_id record;
begin
  for v_external_id in
    select i.lock_key, count(*) as times
    from private.external_ids_of(organisation_id, order_external_id, guests) i
    group by i.kind, i.external_id, i.lock_key
    order by i.lock_key
  loop
    if v_external_id.times > 1 then
      perform private.refuse(
        409, 'already_exists', 'Two attendees of the group have the same external_id.', 'external_id', hint => 'Send each external_id once.'
      );
    end if;
    perform pg_advisory_xact_lock(6, v_external_id.lock_key);
  end loop;
end
$$;
grant execute on function private.lock_external_ids to scope_attendees_write;

-- A guest of a registration, of an import or of the waiting list, as JSON has one.
create type private.guest as (
  ticket_type_id uuid,
  waiting_list_entry_id uuid,
  name text,
  email text,
  company text,
  external_id text,
  metadata jsonb
);

-- Fields of a guest that are one line, if they are given, with the most characters of each. For imports: the API checks all others.
create function private.lines_of_guest() returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return '{"company": 200, "external_id": 255}';
end
$$;
grant execute on function private.lines_of_guest to scope_attendees_write;

-- The arguments of a call of register_attendee, with the id of its order, and its guests in one form.
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
  metadata jsonb,
  idempotency_key text,
  request_fingerprint text
);

-- Announces registrations, and answers their outcomes: orders that this transaction has added for the calling key, as its triggers have left
-- them, in the order as given. Both show the same rows, the notifications without ticket codes. An order that is to be paid
-- announces its completion itself. Security definer: no role may write the outbox, and under row level security the planner may read the
-- whole organisation for each order.
create function private.announce_registrations(registrations private.registration[]) returns json[]
language plpgsql volatile security definer set search_path = ''
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
        bool_or(case when t.quantity_held > 0 then private.has_offer(a.ticket_type_id, a.email_lower) end) as has_offer,
        -- Ids tell the time. In the order of the one index of addresses: see 00-ground/pages.sql. Not `exists`, which may hash an organisation.
        bool_or((
          select true from public.attendees r
          where r.organisation_id = any (array[v_organisation_id]) and r.email_lower = a.email_lower and r.id >= v_recent_id and r.id < a.id
            and coalesce(r.event_id = a.event_id, false) and private.person_form(r.name) = a.form and coalesce(r.status <> 'cancelled', false)
          order by r.organisation_id desc, r.id desc
          limit 1
        )) as is_repeated
      -- Apart, for the order of the aggregate would be had from the primary key, by reading it all.
      from (
        select a.id, a.event_id, a.ticket_type_id, a.email_lower, private.person_form(a.name) as form, a as attendee from public.attendees a where a.order_id = i.order_id offset 0
      ) a
      cross join lateral (
        select t.name, t.price, t.quantity_held from public.ticket_types t where t.id = a.ticket_type_id offset 0
      ) t
    ) a
    where o.organisation_id = v_organisation_id and o.created_at = now()
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
          case when r.is_repeated then private.warning_of_repetition() end,
          case when r.has_offer then private.warning_of_offer() end
        ],
        null
      ) as warnings
    from registered r
    offset 0
  ) o;
  return v_outcomes;
end
$$;
grant execute on function private.announce_registrations to scope_attendees_write;

-- Adds all orders in one statement and all attendees in another, so that the triggers on statements run once. The events and ticket types
-- are known to be the caller's.
create function private.add_registrations(registrations private.registration[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
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
  from unnest(registrations) r;

  insert into public.attendees (
    event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata
  )
  select
    r.event_id, r.order_id, coalesce(g.ticket_type_id, r.ticket_type_id), g.waiting_list_entry_id, g.name, g.email, g.company, g.external_id,
    coalesce(g.metadata, '{}')
  from unnest(registrations) r
  cross join lateral jsonb_populate_recordset(null::private.guest, r.guests) g;
end
$$;
grant execute on function private.add_registrations to scope_attendees_write;

-- The same, with an outcome for each registration, in their order. The orders are announced here, once they have their attendees, and not at
-- the end of the transaction: the rows are read once for both.
create function private.register(registrations private.registration[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.add_registrations(registrations);
  return private.announce_registrations(registrations);
end
$$;
grant execute on function private.register to scope_attendees_write;

-- One guest, given by the top-level fields, or up to 50 in `attendees`, all or none. A guest of a group without ticket_type_id gets the top-level one. Top-level name, e-mail address
-- and company are the buyer's; without them the first guest is the buyer.
create function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
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
comment on function api.register_attendee is
  'Registers a guest, or a group of up to 50: 201 with the order and its attendees, complimentary unless payment_method is given. 404 not_found; 409 event_not_published, event_ended, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';
grant execute on function api.register_attendee to scope_attendees_write;

-- The same for one guest, as a row: for members over the Data API, and whoever writes SQL. An order with its only attendee, by the rules of
-- their tables and the rights of the caller.
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
comment on column public.registrations.email is 'Address that the ticket is sent to.';
comment on column public.registrations.company is 'Company of the person.';
comment on column public.registrations.event_id is 'The event. Needed, as are ticket_type_id, name and email.';
comment on column public.registrations.ticket_type_id is 'The kind of ticket.';
comment on column public.registrations.payment_method is 'How it is paid, such as invoice. Empty: complimentary.';
comment on column public.registrations.promo_code is 'The code that the buyer gave. Needs a payment method.';
comment on column public.registrations.send_email is 'Whether the ticket is e-mailed.';
comment on column public.registrations.status is 'active, awaiting_payment, or cancelled. Left out of a new row.';
comment on column public.registrations.reference is 'Short code of the order. Left out of a new row.';
comment on column public.registrations.external_id is 'The organiser''s own identifier, unique within the organisation.';
comment on column public.registrations.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.registrations.created_at is 'When it was registered. Left out of a new row.';
comment on column public.registrations.waiting_list_entry_id is 'The entry of the waiting list whose offer it accepts.';
comment on column public.registrations.order_id is 'The order. Left out of a new row.';
comment on column public.registrations.attendee_id is 'The attendee. Left out of a new row.';
comment on column public.registrations.organisation_id is 'The organisation of the event.';

create function private.tg_registrations__register() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_given jsonb;
  v_kept text;
  v_organisation_id uuid;
begin
  if num_nonnulls(new.order_id, new.reference, new.attendee_id, new.status, new.created_at) > 0 then
    v_given := jsonb_strip_nulls(to_jsonb(new));
    foreach v_kept in array '{order_id,reference,attendee_id,status,created_at}'::text[] loop
      if v_given ? v_kept then
        perform private.refuse(
          409, 'read_only_field', 'Usher sets this field of a new row itself.', v_kept, hint => 'Leave it out.', "row" => to_jsonb(new)
        );
      end if;
    end loop;
  end if;
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
  new.send_email := coalesce(new.send_email, true);
  new.metadata := coalesce(new.metadata, '{}');

  -- The order is confirmed at once.
  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    new.organisation_id, new.event_id, new.name, new.email, new.company, new.send_email, new.payment_method, new.promo_code,
    new.external_id, new.metadata
  )
  returning id, organisation_id, reference, promo_code, created_at
  into new.order_id, new.organisation_id, new.reference, new.promo_code, new.created_at;
  insert into public.attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata)
  values (
    new.order_id, new.ticket_type_id, new.waiting_list_entry_id, new.name, new.email, new.company, new.external_id, new.metadata
  )
  returning id into new.attendee_id;
  select a.status into new.status from public.attendees a where a.id = new.attendee_id;
  return new;
end
$$;
create trigger registrations_100_register instead of insert on public.registrations
  for each row execute function private.tg_registrations__register();
-- Without it Postgres calls it no view that can be updated before it looks at privileges, and PostgREST answers 500.
create trigger registrations_110_add_only instead of update or delete on public.registrations
  for each row execute function private.tg__refuse_write('This is a view: registrations are read and added.');

revoke all on public.registrations from anon, authenticated, service_role;
grant select, insert on public.registrations to authenticated;

-- The operation's function of the same name in the plural. Locks that would otherwise be taken call by call are taken here, in one
-- order for all batches.
create function api.register_attendees(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
  v_lock_key integer;
begin
  for v_lock_key in
    select distinct i.lock_key
    from unnest(v_calls) c
    cross join lateral private.external_ids_of(
      private.current_organisation_id(), c ->> 'external_id', private.guests_of_call(c)
    ) i
    where c ? 'external_id' or c ? 'attendees'
    order by i.lock_key
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
  return to_json(private.answer_calls('register_attendee_calls', v_calls));
end
$$;
comment on function api.register_attendees is
  'Calls of register_attendee by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.register_attendees to scope_attendees_write;

-- A single guest is given by the fields of the call itself.
create function private.guests_of_call(call jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return coalesce(call -> 'attendees', jsonb_build_array(call));
end
$$;
grant execute on function private.guests_of_call to scope_attendees_write;

-- Each with the id of its order.
create function private.registrations_of_calls(calls jsonb[]) returns private.registration[]
language plpgsql volatile set search_path = ''
as $$
begin
  return array(
    select jsonb_populate_record(
      null::private.registration,
      c.call || jsonb_build_object('order_id', private.uuid_v7(), 'guests', private.guests_of_call(c.call))
    )
    from unnest(calls) with ordinality c (call, place)
    order by c.place
  );
end
$$;
grant execute on function private.registrations_of_calls to scope_attendees_write;

create function private.assert_known_ticket_types(registrations private.registration[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if exists (
    select from unnest(registrations) r
    cross join lateral jsonb_array_elements(r.guests) g
    where not exists (
      select from public.ticket_types t
      where t.id = coalesce((g ->> 'ticket_type_id')::uuid, r.ticket_type_id) and t.event_id = r.event_id
    )
  ) then
    raise exception 'divide';
  end if;
end
$$;
grant execute on function private.assert_known_ticket_types to scope_attendees_write;

-- Raises if anything is refused, without saying which call it was: a call that is alone gets the error of its operation.
create function private.register_attendee_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_registrations private.registration[] := private.registrations_of_calls(calls);
  v_one private.registration := v_registrations[1];
  v_outcomes json[];
begin
  if cardinality(calls) = 1 then
    return array[api.register_attendee(
      v_one.event_id, v_one.ticket_type_id, v_one.name, v_one.email, v_one.company, calls[1] -> 'attendees', v_one.payment_method,
      v_one.promo_code, v_one.send_email, v_one.external_id, v_one.metadata, v_one.idempotency_key, v_one.request_fingerprint
    )];
  end if;

  -- A key that is sent twice, an outcome to replay, and a group of the wrong size are for calls that are alone.
  if (
    select count(r.idempotency_key) <> count(distinct r.idempotency_key)
      or bool_or(private.replay_outcome(r.idempotency_key, r.request_fingerprint) is not null)
      or bool_or(jsonb_array_length(r.guests) not between 1 and 50)
    from unnest(v_registrations) r
  ) then
    raise exception 'divide';
  end if;
  perform private.assert_known_ticket_types(v_registrations);

  v_outcomes := private.register(v_registrations);
  return array(
    select private.record_outcome(r.idempotency_key, r.request_fingerprint, v_outcomes[r.ordinality])
    from unnest(v_registrations) with ordinality r
    order by r.ordinality
  );
end
$$;
grant execute on function private.register_attendee_calls to scope_attendees_write;
