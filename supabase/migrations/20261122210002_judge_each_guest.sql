-- judge each guest. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop function private.lock_attendees_of_import(uuid, text[]);

create or replace function api.import_attendees (
  event_id uuid,
  attendees jsonb,
  ticket_type_id uuid default null::uuid,
  send_email boolean default null::boolean,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  -- As many as a batch of registrations: larger parts are no cheaper.
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_guests jsonb[] := array(select g.guest from jsonb_array_elements(attendees) with ordinality g (guest, place) order by g.place);
  v_sent integer := cardinality(v_guests);
  v_errors json[];
  v_verdicts json[] := '{}';
  v_judged integer := 0;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if v_sent not between 1 and 1000 then
    perform private.refuse_value('attendees', 'An import has 1 to 1000 attendees.', 'Send the rest in further calls.');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = import_attendees.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  -- Locks in the order of 20_places.sql.
  perform private.limit_lock_waits();
  perform private.lock_guests(v_organisation_id, event_id, attendees);
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_guests := v_guests[:c_part];
    attendees := to_jsonb(v_guests);
  end if;
  perform private.limit_lock_waits();
  perform private.lock_attendees_of_import(event_id, attendees);

  v_errors := private.errors_of_guests(attendees);
  loop
    perform private.limit_lock_waits();
    v_verdicts := v_verdicts || private.import_guests(
      v_organisation_id, event_id, ticket_type_id, send_email, v_guests[v_judged + 1:v_judged + c_part],
      v_errors[v_judged + 1:v_judged + c_part]
    );
    v_judged := cardinality(v_verdicts);
    exit when v_judged = cardinality(v_guests) or private.is_time_up();
  end loop;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    (
      select json_build_object('status', 200, 'data', json_build_object(
        'object', 'attendee_import',
        'event_id', import_attendees.event_id,
        'created', count(*) filter (where v.verdict ->> 'result' = 'created'),
        'updated', count(*) filter (where v.verdict ->> 'result' = 'updated'),
        'unchanged', count(*) filter (where v.verdict ->> 'result' = 'unchanged'),
        'refused', count(*) filter (where v.verdict ->> 'result' = 'refused'),
        'remaining', v_sent - v_judged,
        'results', json_agg(
          json_build_object(
            'external_id', left(v_guests[v.place] ->> 'external_id', 255),
            'result', v.verdict -> 'result',
            'attendee_id', v.verdict -> 'attendee_id',
            'order_id', v.verdict -> 'order_id',
            'status', v.verdict -> 'status',
            'error', v.verdict -> 'error'
          )
          order by v.place
        )
      ))
      from unnest(v_verdicts) with ordinality v (verdict, place)
    )
  );
end
$$;

create or replace function private.attendee_of_guest (
  organisation_id uuid,
  event_id uuid,
  guest jsonb
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_external_id text := guest ->> 'external_id';
  v_email text := lower(guest ->> 'email');
  v_name text := lower(btrim(guest ->> 'name'));
  v_id uuid;
begin
  if v_external_id is not null then
    select a.id into v_id
    from public.attendees a
    where a.organisation_id = attendee_of_guest.organisation_id and a.external_id = v_external_id;
  else
    select a.id into v_id
    from public.attendees a
    where a.organisation_id = attendee_of_guest.organisation_id
      and a.email_lower = v_email
      and a.event_id = attendee_of_guest.event_id
      and lower(a.name) = v_name
    order by a.status = 'cancelled', a.id
    limit 1;
  end if;
  return v_id;
end
$$;

create or replace function private.error_of_guest (
  guest jsonb
)
  returns json
  language plpgsql
  immutable
  set search_path to ''
  as $$
declare
  v_fields jsonb := '[]';
begin
  if jsonb_typeof(guest) <> 'object' then
    v_fields := '[{"param": null, "message": "A guest is an object with a name and an email."}]';
  else
    if private.is_line(guest -> 'name', 200) is not true then
      v_fields := v_fields || '{"param": "name", "message": "A name is one line of 1 to 200 characters."}'::jsonb;
    end if;
    if jsonb_typeof(guest -> 'email') is distinct from 'string' or not private.is_email_address(guest ->> 'email') then
      v_fields := v_fields || '{"param": "email", "message": "This is not an e-mail address."}'::jsonb;
    end if;
    if guest ->> 'company' is not null and not private.is_line(guest -> 'company', 200) then
      v_fields := v_fields || '{"param": "company", "message": "A company is one line of 1 to 200 characters."}'::jsonb;
    end if;
    if guest ->> 'external_id' is not null and not private.is_line(guest -> 'external_id', 255) then
      v_fields := v_fields || '{"param": "external_id", "message": "An external_id is one line of 1 to 255 characters."}'::jsonb;
    end if;
    if guest ? 'metadata' and not private.is_metadata(guest -> 'metadata') then
      v_fields := v_fields || '{"param": "metadata", "message": "Metadata is a flat object of at most 50 keys with text, numbers that are kept exactly, true, false or null."}'::jsonb;
    end if;
    if guest ? 'ticket_type_id' and (
      guest ->> 'ticket_type_id' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
    ) is not true then
      v_fields := v_fields || '{"param": "ticket_type_id", "message": "This is not the id of a ticket type."}'::jsonb;
    end if;
    if guest - '{name,email,company,external_id,metadata,ticket_type_id}'::text[] <> '{}' then
      v_fields := v_fields || (
        select jsonb_agg(jsonb_build_object('param', left(f.name, 100), 'message', 'A guest has no such field.'))
        from (
          select n.name from jsonb_object_keys(guest) n (name)
          where n.name <> all ('{name,email,company,external_id,metadata,ticket_type_id}')
          order by n.name
          limit 10
        ) f
      );
    end if;
  end if;
  if v_fields = '[]' then
    return null;
  end if;
  return json_build_object(
    'code', 'validation_failed', 'message', v_fields -> 0 -> 'message', 'param', v_fields -> 0 -> 'param',
    'details', json_build_object('fields', v_fields), 'hint', 'Correct the fields named in details.fields, and send the guest again.'
  );
end
$$;

create or replace function private.errors_of_guests (
  guests jsonb
)
  returns json[]
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return array(
    select coalesce(g.error, case
      when g.has_external_id_before then json_build_object(
        'code', 'already_exists', 'message', 'An earlier guest of the list has this external_id.', 'param', 'external_id',
        'hint', 'Send each external_id once.'
      )
      when g.has_person_before then json_build_object(
        'code', 'already_exists', 'message', 'An earlier guest of the list has this e-mail address and name.', 'param', 'email',
        'hint', 'If they are two people, give each an external_id.'
      )
    end)
    from (
      select
        g.place,
        g.error,
        g.external_id is not null
          and count(*) over (partition by g.error is null, g.external_id order by g.place) > 1 as has_external_id_before,
        count(*) over same_person > 1
          and (g.external_id is null or count(*) filter (where g.external_id is null) over same_person > 0) as has_person_before
      from (
        select
          g.place,
          private.error_of_guest(g.guest) as error,
          g.guest ->> 'external_id' as external_id,
          lower(g.guest ->> 'email') as email,
          lower(btrim(g.guest ->> 'name')) as name
        from jsonb_array_elements(guests) with ordinality g (guest, place)
      ) g
      window same_person as (partition by g.error is null, g.email, g.name order by g.place)
    ) g
    order by g.place
  );
end
$$;

create or replace function private.import_guests (
  organisation_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  send_email boolean,
  guests jsonb[],
  errors json[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  as $$
declare
  v_guest record;
  v_error json;
  v_verdicts json[] := array_fill(null::json, array[cardinality(guests)]);
  v_added bigint[] := '{}';
  v_added_calls jsonb[] := '{}';
  v_changed bigint[] := '{}';
  v_changed_calls jsonb[] := '{}';
  v_answers json[];
  v_answer json;
begin
  for v_guest in
    select g.place, g.guest, a.id, a.event_id, a.order_id, a.ticket_type_id, a.status, a.name, a.email, a.company, a.metadata
    from unnest(guests) with ordinality g (guest, place)
    left join lateral (
      select a.* from public.attendees a
      where a.id = private.attendee_of_guest(import_guests.organisation_id, import_guests.event_id, g.guest)
      offset 0
    ) a on true
    order by g.place
  loop
    v_error := errors[v_guest.place];
    if v_error is not null then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'error', v_error);
    elsif v_guest.id is null and coalesce(v_guest.guest ->> 'ticket_type_id', import_guests.ticket_type_id::text) is null then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'validation_failed', 'message', 'A new attendee needs a ticket type.', 'param', 'ticket_type_id',
        'hint', 'Give each new attendee a ticket_type_id, or one beside the list.'
      ));
    elsif v_guest.id is null then
      v_added := v_added || v_guest.place;
      v_added_calls := v_added_calls || jsonb_build_object(
        'event_id', import_guests.event_id,
        'ticket_type_id', import_guests.ticket_type_id,
        'send_email', coalesce(import_guests.send_email, false),
        'attendees', jsonb_build_array(v_guest.guest)
      );
    elsif v_guest.event_id <> import_guests.event_id then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'already_exists', 'message', 'An attendee of another event has this external_id.', 'param', 'external_id',
        'details', json_build_object('id', v_guest.id), 'hint', 'Use one external_id for each person and event.'
      ));
    elsif v_guest.status = 'cancelled' then
      -- Not registered anew: a sync that sends whom it knows would undo every cancellation.
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'attendee_id', v_guest.id, 'error', json_build_object(
        'code', 'cancelled', 'message', 'The ticket of this guest was cancelled.',
        'param', case when v_guest.guest ->> 'external_id' is null then 'email' else 'external_id' end,
        'hint', 'If they come after all, register them with register_attendee, which takes the same external_id.'
      ));
    elsif v_guest.ticket_type_id <> (v_guest.guest ->> 'ticket_type_id')::uuid then
      v_verdicts[v_guest.place] := json_build_object('result', 'refused', 'attendee_id', v_guest.id, 'error', json_build_object(
        'code', 'read_only_field', 'message', 'The ticket type of an attendee cannot be changed.', 'param', 'ticket_type_id',
        'hint', 'Cancel the attendee, and register the person again.'
      ));
    elsif (v_guest.name, v_guest.email, v_guest.company, v_guest.metadata) is not distinct from (
      coalesce(v_guest.guest ->> 'name', v_guest.name),
      coalesce(v_guest.guest ->> 'email', v_guest.email),
      case when v_guest.guest ? 'company' then v_guest.guest ->> 'company' else v_guest.company end,
      coalesce(v_guest.guest -> 'metadata', v_guest.metadata)
    ) then
      v_verdicts[v_guest.place] := json_build_object(
        'result', 'unchanged', 'attendee_id', v_guest.id, 'order_id', v_guest.order_id, 'status', v_guest.status
      );
    else
      v_changed := v_changed || v_guest.place;
      v_changed_calls := v_changed_calls || (jsonb_build_object(
        'attendee_id', v_guest.id, 'name', v_guest.name, 'email', v_guest.email, 'company', v_guest.company,
        'metadata', v_guest.metadata
      ) || (v_guest.guest - 'ticket_type_id' - 'external_id'));
    end if;
  end loop;

  v_answers := private.import_calls('update_attendee_calls', v_changed_calls);
  for i in 1..cardinality(v_changed) loop
    v_answer := v_answers[i] #> '{outcome,data}';
    v_verdicts[v_changed[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'updated', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;

  v_answers := private.import_calls('register_attendee_calls', v_added_calls);
  for i in 1..cardinality(v_added) loop
    v_answer := v_answers[i] #> '{outcome,data,attendees,0}';
    v_verdicts[v_added[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'created', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;
  return v_verdicts;
end
$$;

create or replace function private.is_line (
  value jsonb,
  max_length integer
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return jsonb_typeof(value) = 'string'
    and length(btrim(value #>> '{}')) between 1 and max_length
    and length(value #>> '{}') <= max_length
    and value #>> '{}' !~ '[[:cntrl:]\u0080-\u009f]';
end
$$;

create or replace function private.lock_attendees_of_import (
  event_id uuid,
  guests jsonb
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_ids uuid[];
begin
  perform private.lock_event_shared(event_id);
  v_ids := array(
    select private.attendee_of_guest(v_organisation_id, lock_attendees_of_import.event_id, g.guest) from jsonb_array_elements(guests) g (guest)
  );
  perform 1
  from public.orders o
  where o.id = any (array(select a.order_id from public.attendees a where a.id = any (v_ids)))
  order by o.id
  for share;
  perform 1 from public.attendees a where a.id = any (v_ids) order by a.id for no key update;
end
$$;

create or replace function private.lock_guests (
  organisation_id uuid,
  event_id uuid,
  guests jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
declare
  v_lock_key integer;
begin
  for v_lock_key in
    select i.lock_key from private.external_ids_of(organisation_id, null, guests) i
    union
    select hashtext(concat_ws(' ', lock_guests.event_id, 'guest', lower(g.guest ->> 'email'), lower(btrim(g.guest ->> 'name'))))
    from jsonb_array_elements(guests) g (guest)
    where g.guest ->> 'external_id' is null
    order by 1
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
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
  v_holder public.attendees;
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
      select a.* into v_holder
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
      if v_holder.status = 'cancelled' then
        -- The person comes after all: their identifier goes with the new ticket.
        update public.attendees a set external_id = null where a.id = v_holder.id;
      elsif found then
        perform private.refuse_taken('external_id', v_holder.id, v_holder.created_at);
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
    new := private.price_attendee(new, v_order);
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
    end::public.ticket_email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is derived from the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

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
      new.ticket_token := private.random_token();
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' or old.erased_at is not null then old.ticket_email_status
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.ticket_email_status;
    elsif new.ticket_code <> old.ticket_code or new.ticket_token is distinct from old.ticket_token then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.',
        case when new.ticket_code <> old.ticket_code then 'ticket_code' else 'ticket_token' end,
        hint => 'Clear ticket_code to generate a new one.'
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
  v_holder public.orders;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      select o.* into v_holder
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
      if v_holder.status = 'cancelled' then
        -- As of a cancelled attendee: see tg_attendees__guard.
        update public.orders o set external_id = null where o.id = v_holder.id;
      elsif found then
        perform private.refuse_taken('external_id', v_holder.id, v_holder.created_at);
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
      elsif (new.amount_voided, new.amount_refunded) <> (old.amount_voided, old.amount_refunded) then
        perform private.refuse(
          409, 'read_only_field', 'Voids and refunds are rows of their own, added up here.', 'amount_refunded',
          hint => 'Add a row to payment_voids or refunds instead.'
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
    when new.amount_refunded > 0 and new.amount_refunded = new.amount_paid then 'refunded'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.status = 'cancelled' then 'not_required'
    when new.status = 'completed' and new.subtotal - new.discount_total = 0 and new.amount_paid = 0 then 'not_required'
    when new.status = 'completed' and new.amount_paid >= new.subtotal - new.discount_total then 'paid'
    when new.amount_paid = 0 then 'awaiting_payment'
    else 'partially_paid'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  -- The reason comes with the cancellation; expired has to be true.
  if tg_op = 'UPDATE' and pg_trigger_depth() = 1 and new.cancellation_reason is distinct from old.cancellation_reason
    and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
      is distinct from ('cancelled', 'expired', 'pending', true) then
    perform private.refuse(
      409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'cancellation_reason',
      hint => 'Set status to cancelled instead.'
    );
  end if;
  if new.status = 'cancelled' then
    new.cancellation_reason := coalesce(new.cancellation_reason, 'requested');
  end if;
  return new;
end
$$;

comment on column public.attendees.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled attendee gives it to whoever is registered under it by the API.';

comment on column public.orders.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled order gives it to one that is made under it by the API.';

comment on function api.import_attendees(uuid, jsonb, uuid, boolean, text, text) is 'Registers or updates up to 1000 guests of an event, matched by external_id, or by e-mail address and name, with a verdict for each that it reached in time: 200. A refused guest has the error of register_attendee or update_attendee, or cancelled. 404 not_found; 422 validation_failed, idempotency_key_reused.';

revoke all on function private.attendee_of_guest(uuid, uuid, jsonb) from public;

grant execute on function private.attendee_of_guest(uuid, uuid, jsonb) to scope_attendees_write;

revoke all on function private.error_of_guest(jsonb) from public;

grant execute on function private.error_of_guest(jsonb) to scope_attendees_write;

revoke all on function private.errors_of_guests(jsonb) from public;

grant execute on function private.errors_of_guests(jsonb) to scope_attendees_write;

revoke all on function private.import_guests(uuid, uuid, uuid, boolean, jsonb[], json[]) from public;

grant execute
  on function private.import_guests(uuid, uuid, uuid, boolean, jsonb[], json[])
  to scope_attendees_write;

revoke all on function private.is_line(jsonb, integer) from public;

grant execute on function private.is_line(jsonb, integer) to scope_attendees_write;

revoke all on function private.lock_attendees_of_import(uuid, jsonb) from public;

grant execute on function private.lock_attendees_of_import(uuid, jsonb) to scope_attendees_write;

revoke all on function private.lock_guests(uuid, uuid, jsonb) from public;

grant execute on function private.lock_guests(uuid, uuid, jsonb) to scope_attendees_write;
