-- errands to their end. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

-- Views before a table, as who reads them. Of tables attendees alone, for claims of e-mails read these after e-mails, and registrations write
-- them before: orders, e-mails and refunds have migrations of their own.
drop view public.event_sales;

drop view public.order_export;

drop view public.undelivered_tickets;

drop trigger attendees_050_fixed_discount on public.attendees;

drop function api.list_audit_entries(public.audit_object, uuid, text, integer);

drop function api.list_notifications(public.notification_type, uuid, text, integer);

drop function api.list_orders(uuid, text, public.order_status, public.payment_status[], boolean, timestamp
  with time zone, timestamp with time zone, text, text, text, timestamp with time zone, text, integer);

alter type private.recipient add attribute order_id uuid cascade;

create or replace function api.complete_event (
  event_id uuid,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_warning jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  v_warning := private.warning_of_waiting_list(event_id);
  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 200, 'data', private.event_json(private.set_event_status(event_id, 'completed'))), v_warning
  ));
end
$$;

create or replace function api.get_ticket_page (
  token text
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
    select json_build_object(
      'organisation', json_build_object(
        'id', g.id,
        'name', g.name,
        'reply_to', g.reply_to_email,
        'accent_colour', g.accent_colour,
        'logo_version', private.logo_version(g.id)
      ),
      'event', private.event_json(e),
      'ticket_type', json_build_object('name', t.name),
      'order', json_build_object('reference', o.reference),
      'attendee', json_build_object(
        'id', a.id,
        'name', a.name,
        'company', a.company,
        'status', a.status,
        'ticket_code', case when a.status = 'active' and e.status <> 'cancelled' then a.ticket_code end,
        'checked_in_at', private.rfc3339(a.checked_in_at),
        'updated_at', private.rfc3339(a.updated_at),
        -- Whether changes are e-mailed; null: none will be.
        'emails', case when a.status <> 'cancelled' and e.status <> 'cancelled' and not private.takes_no_mail(a.email)
          then not private.has_opted_out(a) end
      )
    )
    from public.attendees a
    join public.events e on e.id = a.event_id
    join public.ticket_types t on t.id = a.ticket_type_id
    join public.orders o on o.id = a.order_id
    join public.organisations g on g.id = a.organisation_id
    where a.ticket_token = get_ticket_page.token and a.erased_at is null
  );
end
$$;

create or replace function api.import_attendees (
  event_id uuid,
  attendees jsonb,
  ticket_type_id uuid default null::uuid,
  send_email boolean default null::boolean,
  dry_run boolean default null::boolean,
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
  -- As many as a batch of registrations: larger parts are no cheaper.
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_has_empty_lines constant boolean := attendees::text like '%""%';
  v_guests jsonb[] := array(
    select case when v_has_empty_lines then private.without_empty_lines(g.guest) else g.guest end
    from jsonb_array_elements(attendees) with ordinality g (guest, place)
    order by g.place
  );
  v_sent integer := cardinality(v_guests);
  v_errors json[];
  v_verdicts json[] := '{}';
  v_judged integer := 0;
  v_ticket_type_ids uuid[];
  v_digest text := md5(attendees::text);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if v_has_empty_lines then
    attendees := to_jsonb(v_guests);
  end if;
  if v_sent not between 1 and 1000 then
    perform private.refuse_value('attendees', 'An import has 1 to 1000 attendees.', 'Send the rest in further calls.');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = import_attendees.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  -- Locks in the order of 20-events/locks.sql.
  perform private.limit_lock_waits();
  perform private.lock_guests(v_organisation_id, event_id, attendees);
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_guests := v_guests[:c_part];
    attendees := to_jsonb(v_guests);
  end if;
  perform private.limit_lock_waits();
  perform private.lock_attendees_of_import(event_id, ticket_type_id, attendees);

  v_errors := private.errors_of_guests(attendees);
  begin
    loop
      perform private.limit_lock_waits();
      begin
        v_verdicts := v_verdicts || private.import_guests(
          event_id, ticket_type_id, send_email, v_guests[v_judged + 1:v_judged + c_part],
          v_errors[v_judged + 1:v_judged + c_part]
        );
      exception
        when lock_not_available then
          if v_judged = 0 then
            raise;
          end if;
          -- What is judged stays; somebody else has what the rest needs.
          exit;
      end;
      v_judged := cardinality(v_verdicts);
      exit when v_judged = cardinality(v_guests) or private.is_time_up();
    end loop;

    -- An import takes no payment.
    v_ticket_type_ids := array(
      select distinct coalesce(v_guests[v.place] ->> 'ticket_type_id', import_attendees.ticket_type_id::text)::uuid
      from unnest(v_verdicts) with ordinality v (verdict, place)
      where v.verdict ->> 'result' = 'created'
    );
    v_outcome := private.with_warnings(
      (
        select json_build_object('status', 200, 'data', json_build_object(
          'object', 'attendee_import',
          'event_id', import_attendees.event_id,
          'dry_run', coalesce(dry_run, false),
          'created', count(*) filter (where v.verdict ->> 'result' = 'created'),
          'updated', count(*) filter (where v.verdict ->> 'result' = 'updated'),
          'unchanged', count(*) filter (where v.verdict ->> 'result' = 'unchanged'),
          'refused', count(*) filter (where v.verdict ->> 'result' = 'refused'),
          'remaining', v_sent - v_judged,
          'results', json_agg(
            json_build_object(
              'external_id', case when jsonb_typeof(v_guests[v.place] -> 'external_id') = 'string' then left(v_guests[v.place] ->> 'external_id', 255) end,
              'result', v.verdict -> 'result',
              -- Of what is rolled back there is nothing to look up.
              'attendee_id', case when dry_run is not true or v.verdict ->> 'result' <> 'created' then v.verdict -> 'attendee_id' end,
              'order_id', case when dry_run is not true or v.verdict ->> 'result' <> 'created' then v.verdict -> 'order_id' end,
              'status', v.verdict -> 'status',
              'error', v.verdict -> 'error'
            )
            order by v.place
          )
        ))
        from unnest(v_verdicts) with ordinality v (verdict, place)
      ),
      private.warning_of_gifts(v_ticket_type_ids),
      private.warning_of_former_addresses((
        select count(*) from unnest(v_verdicts) v (verdict) where (v.verdict ->> 'is_at_former_address')::boolean
      ))
    );
    perform private.undo_if_dry_run(dry_run);
    if send_email then
      perform private.assert_notice_confirmed(
        'import_attendees', jsonb_build_object('event_id', event_id, 'ticket_type_id', ticket_type_id, 'digest', v_digest),
        json_build_object('told', v_outcome #> '{data,created}')
      );
    end if;
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.list_attendees (
  event_id uuid default null::uuid,
  order_id uuid default null::uuid,
  ticket_type_id uuid default null::uuid,
  search text default null::text,
  status public.attendee_status default null::public.attendee_status,
  checked_in boolean default null::boolean,
  ticket_email_status public.email_status default null::public.email_status,
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
  v_before uuid := private.before_cursor(cursor);
  v_order_id uuid := order_id;
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  v_chunk integer := v_size + 1;
  v_read integer := 0;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_attendee public.attendees;
  v_item json;
  v_items json[] := '{}';
begin
  if reference is not null then
    select o.id into v_order_id from public.orders o where o.reference = upper(list_attendees.reference);
  end if;
  loop
    if reference is not null and v_order_id is null then
      v_ids := '{}';
    elsif external_id is not null then
      v_ids := array(select a.id from public.attendees a where a.external_id = list_attendees.external_id);
    else
      -- Most pages of what was updated since a time, or of what a search matches, are among the newest anyway; where they are not,
      -- little was, or does.
      v_ids := private.page_of_attendees(
        v_order_id, list_attendees.event_id, list_attendees.ticket_type_id, list_attendees.status, list_attendees.checked_in,
        list_attendees.ticket_email_status, list_attendees.email,
        case when v_read > 1000 then updated_since end, case when v_read > 1000 then v_patterns end, v_before, v_chunk
      );
    end if;
    for v_attendee in
      select a.*
      from unnest(v_ids) i (id)
      cross join lateral (select a.* from public.attendees a where a.id = i.id offset 0) a
      where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
        and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
        and (reference is null or a.order_id = v_order_id)
        and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
        and (list_attendees.status is null or a.status = list_attendees.status)
        and (list_attendees.checked_in is null or a.checked_in = list_attendees.checked_in)
        and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
        and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
        and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
        and (updated_since is null or a.updated_at >= updated_since)
        and (v_patterns is null or split_part(a.search_text, E'\n', 1) ~ all (v_patterns))
        and a.id < v_before
      order by a.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_item := private.attendee_json(v_attendee);
      v_items := v_items || v_item;
      v_bytes := v_bytes - pg_column_size(v_item);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1
      or v_order_id is not null or external_id is not null or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
    v_read := v_read + v_chunk;
    v_chunk := 1000;
  end loop;
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_audit_entries (
  object_type public.audit_object default null::public.audit_object,
  object_id uuid default null::uuid,
  created_since timestamp with time zone default null::timestamp with time zone,
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
  v_before uuid := private.before_cursor(cursor);
  v_types public.audit_object[] := private.auditable_objects();
  v_ids uuid[];
  v_items json[];
begin
  if object_type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_audit_entries.object_type);
  end if;
  v_ids := private.page_of_audit_entries(
    v_types, list_audit_entries.object_id, list_audit_entries.created_since, v_before, v_size + 1
  );
  v_items := array(
    select json_build_object(
      'object', 'audit_entry',
      'id', e.id,
      'action', e.action,
      'object_type', e.object_type,
      'object_id', e.object_id,
      'actor', e.actor,
      'actor_name', private.actor_name(e.entry),
      'api_key_id', e.api_key_id,
      'user_id', e.user_id,
      'source', e.source,
      'changes', e.changes,
      'created_at', private.rfc3339(e.created_at)
    )
    from unnest(v_ids) i (id)
    cross join lateral (select e.*, e as entry from public.audit_entries e where e.id = i.id offset 0) e
    where e.object_type = any (v_types)
    order by e.id desc
  );
  return private.page(v_items, v_size);
end
$$;

create or replace function api.list_notifications (
  type public.notification_type default null::public.notification_type,
  after uuid default null::uuid,
  created_since timestamp with time zone default null::timestamp with time zone,
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
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_types public.notification_type[] := private.readable_types();
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_notification public.notifications;
  v_item json;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is no longer kept.',
        case when cursor is null then 'after' else 'cursor' end,
        hint => 'Leave it out to start from the oldest that is kept.'
      );
    end if;
  end if;

  if type is not null then
    v_types := array(select t from unnest(v_types) t where t = list_notifications.type);
  end if;
  v_ids := private.page_of_notifications(
    v_types, coalesce(v_last.transaction_id, '0'), coalesce(v_last.id, '00000000-0000-0000-0000-000000000000'), created_since, v_size + 1
  );
  for v_notification in
    select n.*
    from unnest(v_ids) i (id)
    cross join lateral (select n.* from public.notifications n where n.id = i.id offset 0) n
    order by n.transaction_id, n.id
  loop
    v_item := json_build_object(
      'object', 'notification',
      'id', v_notification.id,
      'type', v_notification.type,
      'created_at', private.rfc3339(v_notification.created_at),
      'data', v_notification.data
    );
    v_items := v_items || v_item;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size);
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
  payment_reference text default null::text,
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
  v_organisation_id uuid := private.current_organisation_id();
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
    elsif payment_reference is not null and v_is_by_deadline then
      v_ids := array(
        select o.id
        from (
          select distinct p.order_id
          from public.payments p
          where p.organisation_id = v_organisation_id and p.external_reference = payment_reference
        ) p
        cross join lateral (select o.* from public.orders o where o.id = p.order_id offset 0) o
        order by o.payment_due_at, o.id
      );
    elsif payment_reference is not null then
      v_ids := array(
        select distinct p.order_id
        from public.payments p
        where p.organisation_id = v_organisation_id and p.external_reference = payment_reference and p.order_id < v_before
        order by p.order_id desc
        limit v_chunk
      );
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
      or num_nonnulls(reference, external_id) > 0 or payment_reference is not null and v_is_by_deadline
      or cardinality(v_ids) < v_chunk;
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

create or replace function api.outbox_depth()
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_held boolean := private.is_held();
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'pending', k.pending,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0),
      'failing', k.failing,
      'last_error', k.last_error,
      'held', v_held
    ))
    from (
      select
        'webhooks' as kind,
        coalesce(sum(d.pending), 0) as pending,
        min(d.oldest) as oldest,
        min(d.due) as due,
        coalesce(sum(d.failing), 0) as failing,
        null::text as last_error
      from (
        select d.pending, d.failing, d.oldest, case when w.failing_since is null and not d.busy then d.due end as due
        from (
          select
            d.webhook_endpoint_id,
            count(*) as pending,
            -- The attempt that is being made has not failed.
            count(*) filter (where d.attempts > (d.claim is not null)::integer) as failing,
            min(d.created_at) as oldest,
            min(d.next_attempt_at) as due,
            coalesce(bool_or(d.claimed_until > now()), false) as busy
          from public.webhook_deliveries d
          where d.status = 'pending'
          group by d.webhook_endpoint_id
        ) d
        join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
        union all
        select n.pending, 0, q.created_at, q.created_at
        from private.notification_queue q
        cross join lateral (
          select count(*) as pending
          from public.notifications n
          where n.organisation_id = q.organisation_id
            and n.transaction_id = q.transaction_id
            and n.id > coalesce(q.after_id, '00000000-0000-0000-0000-000000000000')
        ) n
        where exists (
          select from public.webhook_endpoints w where w.organisation_id = q.organisation_id and w.status = 'enabled'
        )
      ) d
      union all
      select
        'ticket_emails',
        count(*),
        min(e.created_at),
        min(e.next_attempt_at),
        count(*) filter (where e.attempts > 0 and e.last_error is not null),
        (array_agg(e.last_error order by e.last_attempt_at desc) filter (where e.attempts > 0 and e.last_error is not null))[1]
      from public.emails e
      where e.status = 'queued'
    ) k
  );
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
    private.with_warnings(
      json_build_object('status', 201, 'data', private.paid_order_json(order_id)),
      variadic array_prepend(v_warning, private.warnings_of_payment(order_id, amount, received_at))
    )
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
  v_warning jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  perform private.assert_not_by_name('order_id');

  if external_reference is not null then
    v_warning := private.warning_of_refund_reference(order_id, external_reference);
  end if;
  insert into public.refunds (order_id, amount, method, currency, refunded_at, external_reference)
  values (
    record_refund.order_id, record_refund.amount, coalesce(record_refund.method, 'bank_transfer'), record_refund.currency,
    coalesce(record_refund.refunded_at, now()), record_refund.external_reference
  );
  perform private.assert_refund_confirmed(jsonb_build_object(
    'order_id', order_id, 'amount', amount, 'method', method, 'currency', currency, 'refunded_at', refunded_at,
    'external_reference', external_reference
  ));

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 201, 'data', private.whole_order_json(order_id)),
    variadic array_prepend(v_warning, private.warnings_of_refund(order_id, amount, refunded_at))
  ));
end
$$;

create or replace function api.settle_emails (
  results json
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set plan_cache_mode to 'force_generic_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_hashjoin to 'off'
  set enable_mergejoin to 'off'
  as $$
declare
  v_pauses constant interval[] :=
    '{30 seconds,2 minutes,10 minutes,30 minutes,2 hours,6 hours,12 hours,12 hours,12 hours,24 hours,24 hours,24 hours}';
  v_ids constant uuid[] := array(select (r ->> 'email_id')::uuid from json_array_elements(results) r);
  v_attendee_ids uuid[] := array(select e.attendee_id from public.emails e where e.id = any (v_ids) and e.kind = 'ticket');
  v_tickets public.emails[];
begin
  -- Attendees are locked before their e-mails, as when tickets are cancelled or re-issued. Only a ticket changes them.
  v_attendee_ids := array(
    select a.id from public.attendees a where a.id = any (v_attendee_ids) order by a.id for no key update
  );

  with settled as (
    update public.emails e
    set claim = null,
      claimed_until = null,
      status = case
        when r.error is null then 'sent'
        when r.permanent or e.attempts > cardinality(v_pauses) then 'failed'
        else 'queued'
      end::public.email_status,
      sent_at = case when r.error is null then now() end,
      message_id = r.message_id,
      last_error = r.error,
      next_attempt_at = case
        when r.error is not null and r.permanent is not true then now() + private.retry_delay(e.attempts, v_pauses)
      end
    from json_to_recordset(results) r (email_id uuid, claim uuid, message_id text, error text, permanent boolean)
    -- By the ids, and an expression, so that the planner does not scan the index of everything queued.
    where e.id = any (v_ids) and e.id = r.email_id and e.claim = r.claim and coalesce(e.status = 'queued', false)
    returning e.*
  )
  select array_agg(row(s.*)::public.emails) into v_tickets from settled s where s.kind = 'ticket';
  if v_tickets is null then
    return;
  end if;

  -- The code or address changed while the e-mail was in flight: queue another one.
  insert into public.emails (organisation_id, attendee_id)
  select a.organisation_id, a.id
  from unnest(v_tickets) t
  join public.attendees a on a.id = t.attendee_id
  where a.ticket_email_status = 'queued' and t.status <> 'queued' and (t.sent_code, t.sent_to) <> (a.ticket_code, a.email);

  update public.attendees a
  set ticket_email_status = t.status,
    ticket_email_sent_at = coalesce(t.sent_at, a.ticket_email_sent_at),
    ticket_email_last_error = t.last_error
  from unnest(v_tickets) t
  where a.id = any (v_attendee_ids)
    and a.id = t.attendee_id
    and a.ticket_email_status = 'queued'
    and t.status <> 'queued'
    and coalesce((t.sent_code, t.sent_to) = (a.ticket_code, a.email), true);
  -- What is tried again stays queued. The status is not written: that is to ask for it at once, see 60-attendees/emails.sql.
  if exists (select from unnest(v_tickets) t where t.status = 'queued') then
    update public.attendees a set ticket_email_last_error = t.last_error
    from unnest(v_tickets) t
    where a.id = any (v_attendee_ids) and a.id = t.attendee_id and a.ticket_email_status = 'queued' and t.status = 'queued';
  end if;
end
$$;

create or replace function api.update_attendee (
  attendee_id uuid,
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
  v_former public.attendees;
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if (changes ->> 'reissue_ticket')::boolean then
    perform private.assert_not_by_name('attendee_id');
  end if;

  if changes ? 'ticket_type_id' then
    perform private.lock_event_of(attendee_id);
  end if;
  select a.* into v_former from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.assert_version(v_former.version, if_version);
  if changes ? 'ticket_type_id' and not exists (
    select from public.ticket_types t where t.id = (changes ->> 'ticket_type_id')::uuid and t.event_id = v_former.event_id
  ) then
    perform private.refuse_not_found('ticket_type_id');
  end if;

  select c.* into v_attendee
  from private.change_attendees(array[changes || jsonb_build_object('attendee_id', v_former.id)]) c;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 200, 'data', private.attendee_json(v_attendee)),
    private.warning_of_former_addresses(private.is_at_former_address(v_former, v_attendee)::integer),
    private.warning_of_kept_price(v_former, v_attendee),
    private.warning_of_buyer(v_former, v_attendee)
  ));
end
$$;

create or replace function api.update_event (
  event_id uuid,
  changes jsonb,
  notify public.notify default null::public.notify,
  dry_run boolean default null::boolean,
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
  v_event public.events;
  v_new public.events;
  v_notice jsonb;
  v_news jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  begin
    select e.* into v_event from public.events e where e.id = update_event.event_id for no key update;
    if not found then
      perform private.refuse_not_found('event_id');
    end if;
    perform private.assert_version(v_event.version, if_version);

    v_new := private.change_event(v_event, changes);
    v_notice := private.notify_of_event(event_id, notify);
    v_outcome := case when notify is null and dry_run is not true
      then json_build_object('status', 200, 'data', private.event_json(v_new))
      else json_build_object(
        'status', 200,
        'effect', private.event_effect(event_id, dry_run, v_notice),
        'data', private.event_json(case when dry_run then v_event else v_new end)
      )
    end;
    v_outcome := private.with_warnings(
      v_outcome, private.warning_of_offset_in(changes, v_new.timezone), private.warning_of_capacity(v_event, v_new),
      private.warning_of_windows(v_event, v_new)
    );
    perform private.undo_if_dry_run(dry_run);
    if private.is_asking() then
      v_news := private.news_of_event(v_event, v_new, v_notice);
      perform private.assert_notice_confirmed(
        'update_event',
        jsonb_build_object(
          'event_id', event_id, 'changes', changes, 'notify', notify, 'if_version', if_version, 'news', v_news -> 'news'
        ),
        (coalesce((v_outcome -> 'effect')::jsonb, '{}') || jsonb_build_object('told', v_news -> 'told'))::json
      );
    end if;
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
  update public.orders o set
    (name, email, company, payment_due_at, external_id, metadata) = (
      select n.name, n.email, n.company, n.payment_due_at, n.external_id, n.metadata from jsonb_populate_record(v_order, changes) n
    )
  where o.id = v_order.id
  returning * into v_order;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 200, 'data', private.whole_order_json(v_order.id)),
      case when changes ? 'payment_due_at' then private.warning_of_deadline(v_order) end
    )
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
        bool_or(case when t.quantity_held > 0 then private.has_offer(a.ticket_type_id, a.email_lower) end) as has_offer,
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
      cross join lateral (
        select t.name, t.price, t.quantity_held from public.ticket_types t where t.id = a.ticket_type_id offset 0
      ) t
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

create or replace function private.attendee_of_guest (
  event_id uuid,
  ticket_type_id uuid,
  guest jsonb,
  taken uuid[] default '{}'::uuid[]
)
  returns public.attendees
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_external_id text := guest ->> 'external_id';
  v_ticket_type_id text := lower(coalesce(guest ->> 'ticket_type_id', attendee_of_guest.ticket_type_id::text));
  v_email text := lower(guest ->> 'email');
  v_name text := lower(btrim(guest ->> 'name'));
  v_attendee public.attendees;
begin
  if v_external_id is null then
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = v_organisation_id
      and a.email_lower = v_email
      and a.event_id = attendee_of_guest.event_id
      and lower(a.name) = v_name
    order by a.status = 'cancelled', a.id
    limit 1;
    return v_attendee;
  end if;

  select a.* into v_attendee
  from public.attendees a
  where a.organisation_id = v_organisation_id and a.external_id = v_external_id;
  if not found then
    -- Among the newest of the address: that of an office may have thousands.
    select f.* into v_attendee
    from (
      select a.*
      from public.attendees a
      where a.organisation_id = v_organisation_id and a.email_lower = v_email
      order by a.organisation_id desc, a.email_lower desc, a.id desc
      limit 100
    ) f
    where f.event_id = attendee_of_guest.event_id
      and lower(f.name) = v_name
      and f.external_id is null
      and f.status <> 'cancelled'
      and f.id <> all (taken)
      and coalesce(f.ticket_type_id::text = v_ticket_type_id, true)
    order by f.id
    limit 1;
  end if;
  return v_attendee;
end
$$;

create or replace function private.cancelled_money_json (
  order_ids uuid[]
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_generic_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  as $$
begin
  return (
    select json_build_object(
      'currency', min(o.currency),
      -- What was returned after the cancellation was not to be paid again.
      'amount_unpaid', sum(greatest(o.total - o.amount_paid + (
        select coalesce(sum(r.amount), 0) from public.refunds r where r.order_id = o.id and r.created_at < o.cancelled_at
      ), 0))::bigint,
      'amount_refundable', sum(private.amount_refundable(o))::bigint
    )
    from public.orders o
    where o.id = any (order_ids) and o.status = 'cancelled' and o.payment_method is not null
    having count(*) > 0
  );
end
$$;

create or replace function private.cancelled_money_of (
  kind public.email_kind,
  attendee public.attendees
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_generic_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  as $$
begin
  return private.cancelled_money_json(array(
    select o.id
    from public.orders o
    where o.id = any (case kind
        when 'ticket_cancelled' then array[attendee.order_id]
        when 'event_cancelled' then private.orders_of_address(attendee)
      end)
      and o.email_lower = attendee.email_lower
      and (kind = 'ticket_cancelled' or o.cancelled_at = attendee.cancelled_at)
  ));
end
$$;

create or replace function private.carry_out_by_hand (
  arguments jsonb,
  organisation_id uuid,
  event_id uuid,
  source_id uuid
)
  returns public.events
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_result jsonb := private.carry_out_event(arguments, organisation_id, event_id, source_id);
  v_error jsonb := jsonb_path_query_first(v_result, '$.steps[*].error');
  v_event public.events;
begin
  if v_error is not null then
    perform private.refuse(
      case v_error ->> 'code' when 'validation_failed' then 422 when 'not_found' then 404 else 409 end,
      v_error ->> 'code', v_error ->> 'message', v_error ->> 'param', v_error -> 'details', v_error ->> 'hint'
    );
  end if;
  select e.* into v_event from public.events e where e.id = (v_result #>> '{event,id}')::uuid;
  return v_event;
end
$$;

create or replace function private.change_attendees (
  changes jsonb[]
)
  returns setof public.attendees
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return query
  update public.attendees a set
    (name, email, company, external_id, metadata) = (
      select n.name, n.email, n.company, n.external_id, n.metadata from jsonb_populate_record(a, c.change) n
    ),
    ticket_type_id = coalesce((c.change ->> 'ticket_type_id')::uuid, a.ticket_type_id),
    ticket_code = case when (c.change ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  from unnest(changes) c (change)
  where a.id = (c.change ->> 'attendee_id')::uuid
  returning a.*;
end
$$;

create or replace function private.clock_time (
  moment timestamp with time zone,
  timezone text
)
  returns text
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return to_char(moment at time zone timezone, 'YYYY-MM-DD HH24:MI') || ' ' || timezone;
end
$$;

create or replace function private.confirm_anew (
  "order" public.orders,
  notify public.notify,
  recipients private.recipient[]
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_reason text := private.unmailed_because("order", notify);
  v_buyers integer := (not exists (select from unnest(recipients) r where r.email_lower = "order".email_lower))::integer;
begin
  if v_reason is not null then
    return jsonb_build_object(
      'emails', 0, 'told', 0,
      'not_told', case v_buyers when 0 then '[]' else jsonb_build_array(jsonb_build_object('reason', v_reason, 'count', 1)) end
    );
  end if;
  -- Locked, so that no courier takes it with what the order was before this transaction.
  perform from public.emails e
  where e.order_id = "order".id and e.kind = 'order_confirmation' and e.status = 'queued' and e.claim is null
  for no key update;
  if not found then
    insert into public.emails (organisation_id, kind, order_id) values ("order".organisation_id, 'order_confirmation', "order".id);
  end if;
  return jsonb_build_object('emails', 1, 'told', v_buyers, 'not_told', '[]'::jsonb);
end
$$;

create or replace function private.delete_organisation (
  slug text
)
  returns jsonb
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_tables constant regclass[] := '{
    public.webhook_deliveries, public.webhook_endpoints, public.emails, public.email_opt_outs, public.check_ins, public.refunds,
    public.payment_voids, public.payments, public.attendees, public.waiting_list_entries, public.orders, public.check_in_points,
    public.promo_codes, public.ticket_types, public.events, public.notifications, private.notification_queue, private.idempotency_records,
    private.event_plans, private.confirmations, private.export_links, public.api_keys, private.organisation_logos,
    public.organisation_members
  }';
  v_organisation public.organisations;
  v_name text;
  v_count bigint;
  v_table regclass;
  v_deleted jsonb := '{}';
begin
  select o.* into v_organisation from public.organisations o where o.slug = delete_organisation.slug for update;
  if not found then
    perform private.refuse(404, 'not_found', 'There is no organisation with this slug.', 'slug', hint => 'Look it up in organisations.');
  end if;

  -- Whoever uses a key is still at work, a guest may be on the way, and a queued e-mail may be the one that says that it is cancelled.
  select min(k.prefix) into v_name
  from public.api_keys k where k.organisation_id = v_organisation.id and private.is_usable_key(k);
  if v_name is not null then
    perform private.refuse(
      409, 'in_use', format('The organisation is in use: the API key %s is not revoked.', v_name), 'slug', hint => 'Revoke its keys first.'
    );
  end if;
  select min(e.slug) into v_name
  from public.events e
  where e.organisation_id = v_organisation.id
    and coalesce(e.ends_at, e.starts_at, 'infinity') > now()
    and (e.status = 'published' or e.status = 'draft' and exists (select from public.orders o where o.event_id = e.id));
  if v_name is not null then
    perform private.refuse(
      409, 'in_use', format('The organisation is in use: the event %s is not over.', v_name), 'slug',
      hint => 'Wait for its end, or cancel it and tell its guests.'
    );
  end if;
  select count(*) into v_count from public.emails e where e.organisation_id = v_organisation.id and e.status = 'queued';
  if v_count > 0 then
    perform private.refuse(
      409, 'in_use', format('The organisation is in use: e-mails wait to be sent: %s.', v_count), 'slug',
      hint => 'Wait until they are sent or given up, five days at most; or set their status to cancelled, and next_attempt_at to null.'
    );
  end if;

  -- The fan-out holds it shared, and skips an organisation whose lock it does not get.
  perform pg_advisory_xact_lock(8, hashtext(v_organisation.id::text));
  perform set_config('usher.deletes_organisation', v_organisation.id::text, true);
  perform set_config('usher.switches_on', 'on', true);
  -- The audit trail is last: it logs what is deleted before.
  foreach v_table in array v_tables || '{public.organisations, public.audit_entries}'::regclass[] loop
    execute format(
      'delete from %s where %I = $1', v_table, case v_table when 'public.organisations'::regclass then 'id' else 'organisation_id' end
    ) using v_organisation.id;
    get diagnostics v_count = row_count;
    if v_count > 0 then
      v_deleted := v_deleted || jsonb_build_object((select c.relname from pg_catalog.pg_class c where c.oid = v_table), v_count);
    end if;
  end loop;
  perform set_config('usher.deletes_organisation', '', true);
  perform set_config('usher.switches_on', '', true);
  return v_deleted;
end
$$;

create or replace function private.door_list (
  event_id uuid,
  cursor text
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_bitmapscan to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_size constant integer := 1000;
  v_event public.events;
  v_ticket_type_ids uuid[];
  v_salt bytea := private.door_salt(event_id);
  v_salt_text text := private.base64url(v_salt);
  v_now bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_cursor bytea;
  v_since bigint := 0;
  v_next bigint;
  v_last uuid := '00000000-0000-0000-0000-000000000000';
  v_ids uuid[];
  v_has_more boolean;
begin
  if cursor !~ '^[A-Za-z0-9_-]{64}$' then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not valid.', 'cursor',
      hint => 'Send next_cursor of the previous answer unchanged, or leave the cursor out to start again.'
    );
  end if;
  v_cursor := decode(translate(cursor, '-_', '+/'), 'base64');
  if substr(v_cursor, 1, 16) = v_salt then
    v_since := ('x' || encode(substr(v_cursor, 17, 8), 'hex'))::bit(64)::bigint;
    v_next := ('x' || encode(substr(v_cursor, 25, 8), 'hex'))::bit(64)::bigint;
    v_last := encode(substr(v_cursor, 33, 16), 'hex')::uuid;
    if least(v_since, v_next) < 0 or greatest(v_since, v_next) > v_now or (v_since > 0 and v_now - v_since > 2000000000) then
      v_since := 0;
      v_last := '00000000-0000-0000-0000-000000000000';
    end if;
  end if;
  if v_last = '00000000-0000-0000-0000-000000000000' then
    v_next := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  end if;

  select e.* into v_event from public.events e where e.id = door_list.event_id and e.organisation_id is not distinct from private.current_organisation_id();
  v_ticket_type_ids := array(
    select t.id from public.ticket_types t
    where t.event_id = v_event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  -- `offset 0` keeps the planner from walking the primary key through everybody's attendees in the order of the page.
  if v_since = 0 then
    v_ids := array(
      select f.id
      from (select a.id from public.attendees a where a.ticket_type_id = any (v_ticket_type_ids) offset 0) f
      where f.id > v_last
      order by f.id
      limit v_size + 1
    );
  else
    v_ids := array(
      select f.id
      from (
        select a.id
        from public.attendees a
        where a.ticket_type_id = any (v_ticket_type_ids)
          and ((v_now - a.xmin::text::bigint) & 4294967295) <= v_now - v_since
        offset 0
      ) f
      where f.id > v_last
      order by f.id
      limit v_size + 1
    );
  end if;
  v_has_more := cardinality(v_ids) > v_size;

  return json_build_object(
    'object', 'door_list',
    'event', json_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status, 'starts_at', private.rfc3339(v_event.starts_at),
      'ends_at', private.rfc3339(v_event.ends_at), 'timezone', v_event.timezone,
      'accent_colour', (select o.accent_colour from public.organisations o where o.id = v_event.organisation_id)
    ),
    'server_time', private.rfc3339(clock_timestamp()),
    'salt', v_salt_text,
    'complete', v_since = 0,
    'tickets_total', (select count(*) from public.attendees a where a.ticket_type_id = any (v_ticket_type_ids)),
    'points', (
      select coalesce(json_agg(private.check_in_point_json(p) order by p.id), '[]')
      from public.check_in_points p where p.event_id = v_event.id
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object('id', t.id, 'name', t.name) order by t.position, t.id), '[]')
      from public.ticket_types t where t.id = any (v_ticket_type_ids)
    ),
    'tickets', (
      select coalesce(json_agg(json_build_object(
        'attendee_id', a.id,
        'code_hash', private.base64url(sha256(convert_to(v_salt_text || a.ticket_code, 'UTF8'))),
        'name', a.name,
        'company', a.company,
        'ticket_type_id', a.ticket_type_id,
        'status', a.status,
        -- Never changed, so that it is no change that the list would miss. The company of the order may be.
        'reference', (select o.reference from public.orders o where o.id = a.order_id),
        'entries', case when a.checked_in then private.standing_entries(a.id) else '[]' end
      ) order by a.id), '[]')
      from unnest(v_ids[1:v_size]) i (id)
      cross join lateral (select a.* from public.attendees a where a.id = i.id offset 0) a
    ),
    'has_more', v_has_more,
    'next_cursor', private.base64url(
      v_salt || case when v_has_more
        then int8send(v_since) || int8send(v_next) || uuid_send(v_ids[v_size])
        else int8send(v_next) || int8send(v_next) || uuid_send('00000000-0000-0000-0000-000000000000')
      end
    )
  );
end
$$;

create or replace function private.error_of_guest (
  guest jsonb
)
  returns json
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_known jsonb;
  v_fields jsonb := '[]';
begin
  -- Most guests have these fields alone, in form.
  if jsonb_typeof(guest) = 'object' then
    if guest - '{name,email,external_id}'::text[] = '{}' and private.is_line(guest -> 'name', 200)
      and jsonb_typeof(guest -> 'email') = 'string' and private.is_email_address(guest ->> 'email')
      and (guest -> 'external_id' is null or private.is_line(guest -> 'external_id', 255)) then
      return null;
    end if;
  end if;
  v_known := to_jsonb(jsonb_populate_record(null::private.guest, '{}')) - 'waiting_list_entry_id';
  if jsonb_typeof(guest) <> 'object' then
    v_fields := '[{"param": null, "message": "A guest is an object with a name and an email."}]';
  else
    if private.is_line(guest -> 'name', 200) is not true then
      v_fields := v_fields || '{"param": "name", "message": "A name is one line of 1 to 200 characters."}'::jsonb;
    end if;
    if coalesce(guest ->> 'email', '') = '' then
      v_fields := v_fields || '{"param": "email", "message": "An email is required."}'::jsonb;
    elsif jsonb_typeof(guest -> 'email') is distinct from 'string' or not private.is_email_address(guest ->> 'email') then
      v_fields := v_fields || '{"param": "email", "message": "This is not an e-mail address."}'::jsonb;
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', l.field, 'message', format(
        '%s %s is one line of 1 to %s characters.', case when l.field ~ '^[aeiou]' then 'An' else 'A' end, l.field, l.characters
      ))), '[]')
      from json_each_text(private.lines_of_guest()) l (field, characters)
      where guest ->> l.field is not null and not private.is_line(guest -> l.field, l.characters::integer)
    );
    if guest ? 'metadata' and not private.is_metadata(guest -> 'metadata') then
      v_fields := v_fields || '{"param": "metadata", "message": "Metadata is a flat object of at most 50 keys with text, numbers that are kept exactly, true, false or null."}'::jsonb;
    end if;
    if guest ? 'ticket_type_id' and (
      guest ->> 'ticket_type_id' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
    ) is not true then
      v_fields := v_fields || '{"param": "ticket_type_id", "message": "This is not the id of a ticket type."}'::jsonb;
    end if;
    v_fields := v_fields || (
      select coalesce(jsonb_agg(jsonb_build_object('param', left(f.name, 100), 'message', 'A guest has no such field.')), '[]')
      from (
        select n.name from jsonb_object_keys(guest) n (name)
        where not v_known ? n.name
        order by n.name
        limit 10
      ) f
    );
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

create or replace function private.event_matches (
  event public.events,
  starts_after timestamp with time zone,
  starts_before timestamp with time zone,
  phase public.event_phase,
  patterns text[]
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return (starts_after is null or coalesce(event.starts_at >= starts_after, false))
    and (starts_before is null or coalesce(event.starts_at < starts_before, false))
    and (phase is null or private.event_phase(event) = phase)
    and (
      patterns is null
      or private.search_form(concat_ws(' ', event.name, event.slug, event.venue_name, event.venue_city)) ~ all (patterns)
    );
end
$$;

create or replace function private.event_summary (
  event public.events,
  "interval" public.summary_interval
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_bitmapscan to 'off'
  set enable_sort to 'off'
  set work_mem to '16MB'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_most_buckets constant integer := 200;
  v_most_rows constant integer := 200;
  v_most_devices constant integer := 20;
  v_ticket_type_ids uuid[] := array(
    select t.id from public.ticket_types t
    where t.event_id = event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  v_places_left bigint := event.capacity - (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.id = any (v_ticket_type_ids)
  );
  -- Without a check-in point nobody comes in twice: checked_in_at says all, and the check-ins are not read.
  v_has_points boolean := exists (select from public.check_in_points p where p.event_id = event.id);
  v_daily_point_ids uuid[] := array(
    select p.id from public.check_in_points p where p.event_id = event.id and p.admission = 'once_per_day'
  );
  v_with_money boolean := private.reads_orders();
  v_revenue json;
  v_summary json;
  v_today date := now() at time zone event.timezone;
begin
  if v_with_money then
    -- The other orders have nothing due and nothing paid.
    select json_build_object(
      'currency', event.currency,
      'due', coalesce(sum(private.amount_due(o)) filter (where o.payment_status in ('awaiting_payment', 'partially_paid')), 0),
      'paid', coalesce(sum(o.amount_paid), 0),
      'refunded', coalesce(sum(o.amount_refunded), 0),
      'refundable', coalesce(sum(private.amount_refundable(o)) filter (where o.payment_status = 'refund_due'), 0)
    ) into v_revenue
    from public.orders o
    where o.event_id = any (array[event.id])
      and o.organisation_id is not distinct from private.current_organisation_id()
      and o.status = any (enum_range(null::public.order_status))
      and o.payment_status = any ('{awaiting_payment,partially_paid,paid,refund_due,refunded}'::public.payment_status[]);
  end if;

  -- Attendees are read from an index alone. A quarter of an hour is a part of every hour and day, whatever the time zone.
  with groups as materialized (
    select
      a.ticket_type_id, a.status, a.checked_in, a.ticket_email_status,
      date_bin('15 minutes', a.created_at, timestamptz 'epoch') as registered,
      date_bin(
        '15 minutes', case when not v_has_points and a.status <> 'cancelled' then a.checked_in_at end, timestamptz 'epoch'
      ) as arrived,
      count(*) as tickets
    from public.attendees a
    where a.ticket_type_id = any (v_ticket_type_ids)
    group by grouping sets ((1, 2, 3, 4), (5), (6))
  ),
  -- Entries that stand are read once: of each person where they came in, and on which days, when first. Accepted is what has no
  -- reason; the result is not asked for, for there is an index in which it comes first.
  visits as materialized (
    select
      c.check_in_point_id, c.attendee_id, c.day,
      min(c.scanned_at) as arrived_at,
      bool_or(c.day = v_today) as came_today,
      bool_or(c.exited_at is null and (c.day = v_today or c.check_in_point_id <> all (v_daily_point_ids))) as is_inside
    from (
      select c.check_in_point_id, c.attendee_id, c.scanned_at, c.exited_at, (c.scanned_at at time zone event.timezone)::date as day
      from public.check_ins c
      where v_has_points and c.event_id = event.id and c.reason is null and c.direction = 'entry' and c.undone_at is null
        and c.attendee_id not in (
          select a.id from public.attendees a
          where a.ticket_type_id = any (v_ticket_type_ids) and a.status = 'cancelled' and a.checked_in
        )
    ) c
    group by grouping sets ((1, 2), (2, 3))
  ),
  kinds as (
    select
      t.id, t.name, t.position, t.status,
      private.quantity_available(t, v_places_left) as available,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled'), 0) as sold,
      coalesce(sum(g.tickets) filter (where g.status = 'awaiting_payment'), 0) as pending_payment,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled' and g.checked_in), 0) as checked_in,
      coalesce(sum(g.tickets) filter (where g.status = 'cancelled'), 0) as cancelled
    from public.ticket_types t
    left join groups g on g.ticket_type_id = t.id
    where t.id = any (v_ticket_type_ids)
    group by t.id
  ),
  points as (
    select
      p.id, p.name,
      (
        select coalesce(sum(k.sold), 0) from kinds k where p.ticket_type_ids = '{}' or k.id = any (p.ticket_type_ids)
      ) as expected,
      coalesce(i.arrived, 0) as arrived, coalesce(i.arrived_today, 0) as arrived_today, coalesce(i.inside, 0) as inside
    from public.check_in_points p
    left join (
      select
        v.check_in_point_id,
        count(*) as arrived,
        count(*) filter (where v.came_today) as arrived_today,
        count(*) filter (where v.is_inside) as inside
      from visits v
      where v.check_in_point_id is not null
      group by 1
    ) i on i.check_in_point_id = p.id
    where p.event_id = event.id and p.status = 'active'
  ),
  -- Every scan is read once, by the index of the event: 0.1 s for 100,000. An index of devices would cost each scan more.
  devices as materialized (
    select
      c.device, c.check_in_point_id,
      count(*) as scans,
      count(*) filter (where c.reason is null and c.undone_at is null and c.direction = 'entry') as entries,
      count(*) filter (where c.reason is null and c.undone_at is null and c.direction = 'exit') as exits,
      count(*) filter (where c.reason is not null) as rejected,
      max(c.scanned_at) as last_scan_at
    from public.check_ins c
    where c.event_id = event.id
    group by 1, 2
  ),
  -- People, each once a day, by when they first came in on that day, wherever.
  arrivals as (
    select g.arrived, g.tickets as people from groups g where g.arrived is not null
    union all
    select date_bin('15 minutes', v.arrived_at, timestamptz 'epoch'), count(*) from visits v where v.day is not null group by 1
  ),
  buckets as (
    select
      date_trunc("interval"::text, s.starts_at, event.timezone) as starts_at,
      sum(s.registrations) as registrations,
      sum(s.arrivals) as arrivals
    from (
      select g.registered as starts_at, g.tickets as registrations, 0 as arrivals from groups g where g.registered is not null
      union all
      select a.arrived, 0, a.people from arrivals a
    ) s
    group by 1
    order by 1 desc
    limit v_most_buckets + 1
  )
  select json_build_object(
    'object', 'event_summary',
    'event_id', event.id,
    'tickets', (
      select json_build_object(
        'sold', coalesce(sum(k.sold), 0),
        -- Without a limit of the event, one active ticket type without a limit has no end.
        'available', least(
          case when v_places_left < 0 then 0 else v_places_left end,
          case when not coalesce(bool_or(k.available is null) filter (where k.status = 'active'), false)
            then coalesce(sum(k.available) filter (where k.status = 'active'), 0) end
        ),
        'pending_payment', coalesce(sum(k.pending_payment), 0),
        'checked_in', coalesce(sum(k.checked_in), 0),
        'cancelled', coalesce(sum(k.cancelled), 0)
      )
      from kinds k
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object(
        'id', k.id, 'name', k.name, 'sold', k.sold, 'available', k.available, 'pending_payment', k.pending_payment,
        'checked_in', k.checked_in, 'cancelled', k.cancelled
      ) order by k.position, k.id), '[]')
      from (select * from kinds k order by k.position, k.id limit v_most_rows) k
    ),
    'check_in_points', (
      select coalesce(json_agg(json_build_object(
        'id', p.id, 'name', p.name, 'expected', p.expected, 'arrived', p.arrived, 'arrived_today', p.arrived_today,
        'inside', p.inside
      ) order by p.id), '[]')
      from points p
    ),
    'devices', (
      select coalesce(json_agg(json_build_object(
        'device', d.device, 'check_in_point_id', d.check_in_point_id, 'check_in_point', p.name, 'entries', d.entries,
        'exits', d.exits, 'rejected', d.rejected, 'last_scan_at', private.rfc3339(d.last_scan_at)
      ) order by d.scans desc, d.device, d.check_in_point_id), '[]')
      from (select * from devices d order by d.scans desc, d.device, d.check_in_point_id limit v_most_devices) d
      left join public.check_in_points p on p.id = d.check_in_point_id
    ),
    'devices_left_out', (select greatest(count(*) - v_most_devices, 0) from devices),
    'revenue', v_revenue,
    'promo_codes', (
      select coalesce(json_agg(json_build_object(
        'id', c.id, 'code', c.code, 'times_redeemed', c.times_redeemed, 'max_redemptions', c.max_redemptions,
        'discount', case when v_with_money then (
          select coalesce(sum(a.discount), 0) from public.attendees a where a.promo_code_id = c.id and a.status <> 'cancelled'
        ) end
      ) order by c.times_redeemed desc, c.id), '[]')
      from (
        select c.* from public.promo_codes c
        where c.event_id = event.id
        order by c.times_redeemed desc, c.id
        limit v_most_rows
      ) c
    ),
    'ticket_emails', (
      select json_build_object(
        'bounced', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'bounced'), 0),
        'failed', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'failed'), 0)
      )
      from groups g
    ),
    'interval', "interval",
    'timezone', event.timezone,
    'timeline', (
      select coalesce(json_agg(json_build_object(
        'starts_at', private.rfc3339(b.starts_at), 'registrations', b.registrations, 'arrivals', b.arrivals
      ) order by b.starts_at), '[]')
      from (select * from buckets b order by b.starts_at desc limit v_most_buckets) b
    ),
    'timeline_is_complete', (select count(*) <= v_most_buckets from buckets)
  ) into v_summary;
  return v_summary;
end
$$;

create or replace function private.event_to_plan (
  event_id uuid
)
  returns public.events
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
begin
  select e.* into v_event
  from public.events e
  where e.id = event_to_plan.event_id
    and (
      private.claims() ->> 'role' is distinct from 'authenticated'
      or e.organisation_id in (select private.organisations_as('{owner,manager}'))
    );
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return v_event;
end
$$;

create or replace function private.first_uuid_v7 (
  moment timestamp with time zone
)
  returns uuid
  language plpgsql
  immutable
  strict
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (lpad(to_hex(floor(extract(epoch from greatest(moment, '1970-01-01Z')) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
end
$$;

create or replace function private.has_offer (
  ticket_type_id uuid,
  email_lower text
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return exists (
    select from public.waiting_list_entries w
    where w.ticket_type_id = has_offer.ticket_type_id and w.email_lower = has_offer.email_lower
      and w.status in ('waiting', 'offered') and w.status = 'offered'
  );
end
$$;

create or replace function private.import_guests (
  event_id uuid,
  ticket_type_id uuid,
  send_email boolean,
  guests jsonb[],
  errors json[]
)
  returns json[]
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_guest jsonb;
  v_attendee public.attendees;
  v_identified uuid[] := '{}';
  v_changes jsonb;
  v_error json;
  v_verdicts json[] := array_fill(null::json, array[cardinality(guests)]);
  v_added integer[] := '{}';
  v_added_calls jsonb[] := '{}';
  v_changed integer[] := '{}';
  v_changed_calls jsonb[] := '{}';
  v_is_at_former_address boolean[] := '{}';
  v_answers json[];
  v_answer json;
begin
  for v_place in 1..cardinality(guests) loop
    v_guest := guests[v_place];
    v_attendee := private.attendee_of_guest(import_guests.event_id, import_guests.ticket_type_id, v_guest, v_identified);
    v_error := errors[v_place];
    v_changes := case when v_error is null then v_guest - '{ticket_type_id,external_id}'::text[] end;
    if v_error is null and v_attendee.id is not null and v_attendee.external_id is null and v_guest ->> 'external_id' is not null then
      -- Another guest of the list with this e-mail address and name is another attendee.
      v_identified := v_identified || v_attendee.id;
      v_changes := v_guest - 'ticket_type_id';
    end if;
    if v_error is not null then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', v_error);
    elsif v_attendee.id is null and coalesce(v_guest ->> 'ticket_type_id', import_guests.ticket_type_id::text) is null then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'validation_failed', 'message', 'A new attendee needs a ticket type.', 'param', 'ticket_type_id',
        'hint', 'Give each new attendee a ticket_type_id, or one beside the list.'
      ));
    elsif v_attendee.id is null then
      v_added := v_added || v_place;
      v_added_calls := v_added_calls || jsonb_build_object(
        'event_id', import_guests.event_id,
        'ticket_type_id', import_guests.ticket_type_id,
        'send_email', coalesce(import_guests.send_email, false),
        'attendees', jsonb_build_array(v_guest)
      );
    elsif v_attendee.event_id <> import_guests.event_id then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'error', json_build_object(
        'code', 'already_exists', 'message', 'An attendee of another event has this external_id.', 'param', 'external_id',
        'details', json_build_object('id', v_attendee.id), 'hint', 'Use one external_id for each person and event.'
      ));
    elsif v_attendee.status = 'cancelled' then
      -- Not registered anew: a sync that sends whom it knows would undo every cancellation.
      v_verdicts[v_place] := json_build_object('result', 'refused', 'attendee_id', v_attendee.id, 'error', json_build_object(
        'code', 'cancelled', 'message', 'The ticket of this guest was cancelled.',
        'param', case when v_guest ->> 'external_id' is null then 'email' else 'external_id' end,
        'hint', 'If they come after all, register them with register_attendee, which takes the same external_id.'
      ));
    elsif v_attendee.ticket_type_id <> (v_guest ->> 'ticket_type_id')::uuid then
      v_verdicts[v_place] := json_build_object('result', 'refused', 'attendee_id', v_attendee.id, 'error', json_build_object(
        'code', 'read_only_field', 'message', 'The ticket type of an attendee cannot be changed.', 'param', 'ticket_type_id',
        'hint', 'Cancel the attendee, and register the person again.'
      ));
    elsif jsonb_populate_record(v_attendee, v_changes) is not distinct from v_attendee then
      v_verdicts[v_place] := json_build_object(
        'result', 'unchanged', 'attendee_id', v_attendee.id, 'order_id', v_attendee.order_id, 'status', v_attendee.status
      );
    else
      v_changed := v_changed || v_place;
      v_changed_calls := v_changed_calls || (v_changes || jsonb_build_object('attendee_id', v_attendee.id));
      v_is_at_former_address := v_is_at_former_address
        || private.is_at_former_address(v_attendee, jsonb_populate_record(v_attendee, v_changes));
    end if;
  end loop;

  v_answers := private.import_calls('update_attendee_calls', v_changed_calls);
  for i in 1..cardinality(v_changed) loop
    v_answer := v_answers[i] #> '{outcome,data}';
    v_verdicts[v_changed[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'updated', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status',
      'is_at_former_address', v_is_at_former_address[i]
    ) end;
  end loop;

  v_answers := private.import_calls('import_attendee_calls', v_added_calls);
  for i in 1..cardinality(v_added) loop
    v_answer := v_answers[i] #> '{outcome,data,attendees,0}';
    v_verdicts[v_added[i]] := case when v_answer is null then private.refused_guest(v_answers[i]) else json_build_object(
      'result', 'created', 'attendee_id', v_answer -> 'id', 'order_id', v_answer -> 'order_id', 'status', v_answer -> 'status'
    ) end;
  end loop;
  return v_verdicts;
end
$$;

create or replace function private.index_expression (
  expression text
)
  returns text
  language plpgsql
  immutable
  strict
  set search_path to ''
  as $$
begin
  return case when expression like '%e?%' then expression else '' end;
end
$$;

create or replace function private.is_at_former_address (
  former public.attendees,
  present public.attendees
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return lower(former.email) <> lower(present.email)
    and former.ticket_email_status in ('sent', 'delivered', 'bounced')
    and present.ticket_email_status = former.ticket_email_status
    and present.status = 'active'
    and present.checked_in_at is null;
end
$$;

create or replace function private.is_deleted_wholly (
  organisation_id uuid
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return coalesce(current_setting('usher.deletes_organisation', true) = organisation_id::text, false);
end
$$;

create or replace function private.is_month_for_day (
  over date,
  today date
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_month constant integer := extract(month from over);
  v_day constant integer := extract(day from over);
begin
  if v_day > 12 or over >= today then
    return false;
  end if;
  return make_date(extract(year from over)::integer, v_day, v_month) >= today;
end
$$;

create or replace function private.is_obsolete (
  email public.emails
)
  returns boolean
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
begin
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = email.order_id;
  if private.is_erased(email) or private.can_be_switched_off(email.kind) and private.has_opted_out(v_attendee) then
    return true;
  end if;
  -- Of a ticket the attendee says so: see private.tg_attendees__guard.
  if email.kind <> 'ticket' and private.takes_no_mail(coalesce(
    v_attendee.email, v_order.email, (select w.email from public.waiting_list_entries w where w.id = email.waiting_list_entry_id)
  )) then
    return true;
  end if;
  return case email.kind
    when 'ticket' then v_attendee.status <> 'active'
    when 'ticket_cancelled' then v_attendee.status <> 'cancelled'
    when 'event_changed' then v_attendee.status = 'cancelled' or (
      select e.status not in ('published', 'completed') or private.announced(e) = email.previous from public.events e where e.id = v_attendee.event_id
    )
    -- One that is left without tickets for a day is not confirmed.
    when 'order_confirmation' then v_order.status = 'cancelled' or (
      email.created_at < now() - interval '1 day' and not exists (select from public.attendees a where a.order_id = v_order.id)
    )
    -- A deadline that was moved or cleared since is not the one that it reminds of.
    when 'payment_reminder' then private.amount_due(v_order) = 0 or v_order.payment_reminded_at is null
      or v_order.status = 'pending' and coalesce(v_order.payment_due_at <= now(), false)
    when 'order_expired' then v_order.status <> 'cancelled'
    when 'order_cancelled' then v_order.status <> 'cancelled'
    when 'waiting_list_offer' then (
      select w.status <> 'offered' or w.offer_expires_at <= now()
      from public.waiting_list_entries w where w.id = email.waiting_list_entry_id
    )
    when 'payment_received' then exists (select from public.payment_voids v where v.payment_id = email.payment_id)
    when 'payment_voided' then not private.has_receipt(email.payment_id)
    when 'event_cancelled' then false
    -- Of any other kind: who has no good ticket of a published event is told nothing of it.
    else v_attendee.id is not null and (
      v_attendee.status <> 'active' or (select e.status <> 'published' from public.events e where e.id = v_attendee.event_id)
    )
  end;
end
$$;

create or replace function private.is_sound_email (
  kind public.email_kind,
  status public.email_status,
  next_attempt_at timestamp with time zone,
  attendee_id uuid,
  order_id uuid,
  payment_id uuid,
  waiting_list_entry_id uuid
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  if (status = 'queued') <> (next_attempt_at is not null) then
    return false;
  elsif kind = 'ticket' then
    return attendee_id is not null;
  end if;
  return case
    when kind in ('order_confirmation', 'payment_reminder', 'order_expired', 'order_cancelled') then order_id is not null
    when kind in ('payment_received', 'payment_voided') then order_id is not null and payment_id is not null
    when kind in ('waiting_list_offer', 'waiting_list_cancelled') then waiting_list_entry_id is not null
    else attendee_id is not null
  end;
end
$$;

create or replace function private.like_pattern (
  expression text
)
  returns text
  language plpgsql
  immutable
  strict
  set search_path to ''
  as $$
begin
  -- Both escape by a backslash.
  return '%' || replace(regexp_replace(expression, '([%_])', '\\\1', 'g'), 'e?', '%') || '%';
end
$$;

create or replace function private.lock_attendees_of_import (
  event_id uuid,
  ticket_type_id uuid,
  guests jsonb
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_guest jsonb;
  v_id uuid;
  v_ids uuid[] := '{}';
begin
  perform private.lock_event_shared(event_id);
  for v_guest in select g.guest from jsonb_array_elements(guests) g (guest) loop
    v_id := (private.attendee_of_guest(event_id, ticket_type_id, v_guest, v_ids)).id;
    if v_id is not null then
      v_ids := v_ids || v_id;
    end if;
  end loop;
  if v_ids = '{}' then
    return;
  end if;
  perform 1
  from public.orders o
  where o.id = any (array(select a.order_id from public.attendees a where a.id = any (v_ids)))
  order by o.id
  for share;
  perform 1 from public.attendees a where a.id = any (v_ids) order by a.id for no key update;
end
$$;

create or replace function private.lock_event_of (
  attendee_id uuid
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  perform private.lock_event_shared(a.event_id)
  from public.attendees a
  where a.organisation_id = private.current_organisation_id() and a.id = lock_event_of.attendee_id;
end
$$;

create or replace function private.matching_orders (
  order_ids uuid[],
  patterns text[]
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
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

create or replace function private.move_places (
  ticket_type_id uuid,
  places integer,
  held integer default 0
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_ticket_type public.ticket_types;
  v_left integer;
begin
  update public.ticket_types t set quantity_sold = t.quantity_sold + places, quantity_held = t.quantity_held + held
  where t.id = move_places.ticket_type_id
    and (places + held <= 0 or t.quantity is null or t.quantity_sold + t.quantity_held + places + held <= t.quantity)
  returning * into v_ticket_type;
  if not found then
    select t.* into v_ticket_type from public.ticket_types t where t.id = move_places.ticket_type_id;
    v_left := v_ticket_type.quantity - v_ticket_type.quantity_sold - v_ticket_type.quantity_held;
    perform private.refuse(
      409, 'sold_out', 'There are not enough tickets of this type left.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      -- The waiting list takes nobody while a ticket is left, nor for a type that is issued in groups.
      hint => case
        when v_left >= v_ticket_type.min_per_order then 'Register fewer people, choose another ticket type, or raise its quantity.'
        when v_ticket_type.min_per_order > 1 then 'Choose another ticket type, or raise its quantity.'
        else 'Choose another ticket type, raise its quantity, or join the waiting list.'
      end || private.way_to_held_place(v_ticket_type.quantity_held)
    );
  end if;
  -- A ticket of an order that is reopened was sold in time.
  if places > 0 and not private.is_on_sale(v_ticket_type) and coalesce(current_setting('usher.reopening', true), '') = '' then
    perform private.refuse_not_on_sale(v_ticket_type);
  end if;
end
$$;

create or replace function private.near_patterns (
  form text
)
  returns text[]
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return array(
    select distinct h.half
    from (
      select w.word from regexp_split_to_table(split_part(form, '@', 1), '[^[:alnum:]]+') w (word) where length(w.word) >= 3 order by length(w.word) desc, w.word limit 3
    ) w
    cross join lateral (
      values (left(w.word, greatest(3, length(w.word) / 2))), (right(w.word, greatest(3, length(w.word) / 2)))
    ) h (half)
  );
end
$$;

create or replace function private.news_of_event (
  was public.events,
  event public.events,
  notice jsonb
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_before jsonb := private.announced(was);
  v_now jsonb := private.announced(event);
  v_told integer := coalesce((notice ->> 'told')::integer, 0);
begin
  if v_now <> v_before then
    v_told := greatest(v_told, (
      select count(*)
      from public.emails e
      where e.organisation_id = event.organisation_id and e.status = 'queued'
        and (
          e.kind in ('event_changed', 'event_cancelled', 'ticket_cancelled', 'order_cancelled', 'waiting_list_cancelled')
          -- An offer that was repeated; the first is a notice of nothing.
          or e.kind = 'waiting_list_offer'
            and e.created_at > (select w.offered_at from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
        )
        and event.id = coalesce(
          (select a.event_id from public.attendees a where a.id = e.attendee_id),
          (select o.event_id from public.orders o where o.id = e.order_id),
          (select w.event_id from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
        )
    ));
  end if;
  v_before := coalesce(notice -> 'previous', v_before);
  if event.status = 'cancelled' then
    v_before := v_before || '{"status": "published"}';
    v_now := v_now || '{"status": "cancelled"}';
  end if;
  return jsonb_build_object('told', v_told, 'news', (
    select coalesce(jsonb_object_agg(n.key, jsonb_build_array(v_before -> n.key, n.value)), '{}')
    from jsonb_each(v_now) n
    where n.value is distinct from v_before -> n.key
  ));
end
$$;

create or replace function private.notify_of_cancelled_tickets (
  notify public.notify,
  order_id uuid,
  attendee_id uuid default null::uuid
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  end if;
  perform private.assert_not_foreign(
    (select o.organisation_id from public.orders o where o.id = notify_of_cancelled_tickets.order_id), 'order_id'
  );
  return private.tell_of_cancelled_tickets(
    order_id,
    array(
      select a.id
      from public.attendees a
      where a.order_id = notify_of_cancelled_tickets.order_id
        and a.id = coalesce(notify_of_cancelled_tickets.attendee_id, a.id)
        and a.cancelled_at = now()
    ),
    notify
  );
end
$$;

create or replace function private.notify_of_event (
  event_id uuid,
  notify public.notify
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_change private.unannounced_changes;
  v_news jsonb;
  v_attendees uuid[];
  v_recipients private.recipient[];
  v_offers private.recipient[];
  v_mailed private.recipient[];
  v_told_before private.recipient[] := '{}';
  v_pending text[] := '{}';
  v_kind public.email_kind := 'event_changed';
  v_send_at timestamptz := now() + interval '10 minutes';
  v_notice jsonb;
  v_first jsonb;
begin
  select e.* into v_event from public.events e where e.id = notify_of_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  elsif v_event.status not in ('published', 'cancelled') then
    return '{"nobody_because": "event_not_published"}';
  end if;
  select c.* into v_change from private.unannounced_changes c where c.event_id = v_event.id;
  if not found then
    return '{"nobody_because": "nothing_to_tell"}';
  end if;
  v_attendees := array(
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = v_event.id
      and case v_event.status when 'cancelled' then a.cancelled_at = v_event.cancelled_at else a.status <> 'cancelled' end
  );
  if v_event.status = 'cancelled' then
    v_news := '"cancelled"';
    v_kind := 'event_cancelled';
    v_send_at := now();
    v_recipients := private.recipients_of_cancellation(v_event, v_attendees, notify);
  else
    v_news := private.announced(v_event);
    v_recipients := private.recipients(v_attendees, notify, v_change.changed_at, v_kind);
    v_offers := private.recipients_of_offers(v_event, notify, v_change.changed_at);
    -- Locked, so that no courier takes one with what the event was before this transaction. One to an address that has switched off since
    -- will not be sent.
    v_pending := array(
      select a.email_lower
      from public.emails e
      join public.attendees a on a.id = e.attendee_id
      where e.attendee_id = any (v_attendees) and e.kind = 'event_changed' and e.status = 'queued' and e.claim is null
        and not exists (select from public.email_opt_outs u where u.event_id = a.event_id and u.email_lower = a.email_lower)
      for no key update of e
    ) || array(
      select w.email_lower
      from public.emails e
      join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
      where e.waiting_list_entry_id = any (array(select o.waiting_list_entry_id from unnest(v_offers) o))
        and e.kind = 'waiting_list_offer' and e.status = 'queued' and e.claim is null
        -- Whoever has a ticket as well is told as an attendee.
        and w.email_lower not in (select r.email_lower from unnest(v_recipients) r where r.reason is null)
      for no key update of e
    );
    v_recipients := v_recipients || v_offers;
  end if;

  if v_change.mailed is not null then
    v_mailed := case v_event.status
      when 'cancelled' then private.recipients_of_cancellation(v_event, v_attendees, 'mailed')
      else private.recipients(v_attendees, 'mailed', v_change.changed_at, v_kind)
        || private.recipients_of_offers(v_event, 'mailed', v_change.changed_at)
    end;
    -- They know more than the others, or all of it.
    v_told_before := array(
      select row(
        r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.email_lower, case when v_change.mailed = v_news then 'told_before' end,
        r.order_id
      )::private.recipient
      from unnest(v_mailed) r
      where r.reason is null
    );
    v_first := private.tell(v_kind, v_told_before, v_change.mailed, v_send_at, v_pending);
    v_pending := array(
      select unnest(v_pending) union select r.email_lower from unnest(v_told_before) r where r.reason is null
    );
    -- The others. Whoever shares the address of somebody who was told was told, but not of the money of an order. Joins by equality: there
    -- may be tens of thousands.
    v_recipients := array(
      select row(
        r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.email_lower,
        coalesce(case when r.order_id is null and (r.attendee_id is null or not t.is_only_buyer) then t.reason end, r.reason), r.order_id
      )::private.recipient
      from unnest(v_recipients) with ordinality r
      left join (
        select t.email_lower, min(t.reason) as reason, bool_and(t.order_id is not null) as is_only_buyer
        from unnest(v_told_before) t
        where t.reason is not null
        group by t.email_lower
      ) t using (email_lower)
      where coalesce(r.attendee_id, r.order_id, r.waiting_list_entry_id) not in (
        select coalesce(t.attendee_id, t.order_id, t.waiting_list_entry_id) from unnest(v_told_before) t
      )
      order by r.ordinality
    );
  end if;
  v_notice := private.tell(v_kind, v_recipients, v_change.previous, v_send_at, v_pending);

  if exists (select from unnest(v_recipients) r where r.reason = 'send_email_false') then
    update private.unannounced_changes c set mailed = v_news where c.event_id = v_event.id;
  else
    delete from private.unannounced_changes c where c.event_id = v_event.id;
  end if;
  if v_first is not null then
    -- `emails` of the second has those of the first, as pending.
    v_notice := private.told_together(v_first, v_notice) || jsonb_build_object('emails', v_notice -> 'emails');
  end if;
  return v_notice || jsonb_build_object('previous', v_change.previous);
end
$$;

create or replace function private.order_lines_json (
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
    select coalesce(json_agg(json_build_object(
      'name', l.name, 'quantity', l.quantity, 'price', l.price, 'discount', l.discount, 'total', l.quantity * l.price - l.discount
    ) order by l.first_id), '[]')
    from (
      select t.name, a.price, count(*) as quantity, sum(a.discount)::bigint as discount, min(a.id::text) as first_id
      from public.attendees a
      join public.ticket_types t on t.id = a.ticket_type_id
      join public.orders o on o.id = a.order_id
      where a.order_id = order_lines_json.order_id
        -- Of one that was cancelled what was cancelled with it, which its totals have.
        and (a.status <> 'cancelled' or o.status = 'cancelled' and a.cancelled_at = o.cancelled_at)
      group by t.id, a.price
    ) l
  );
end
$$;

create or replace function private.orders_of_address (
  attendee public.attendees
)
  returns uuid[]
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_generic_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  as $$
begin
  return array(
    (
      select case when o.event_id = attendee.event_id then o.id end
      from public.orders o
      where o.organisation_id = attendee.organisation_id and o.email_lower = attendee.email_lower and o.id <= attendee.order_id
      order by o.organisation_id desc, o.email_lower desc, o.id desc
      limit 500
    )
    union all
    (
      select case when o.event_id = attendee.event_id then o.id end
      from public.orders o
      where o.organisation_id = attendee.organisation_id and o.email_lower = attendee.email_lower and o.id > attendee.order_id
      order by o.organisation_id, o.email_lower, o.id
      limit 500
    )
  );
end
$$;

create or replace function private.page_of_audit_entries (
  object_types public.audit_object[],
  object_id uuid,
  created_since timestamp with time zone,
  before uuid,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_since timestamptz := coalesce(created_since, '-infinity');
  -- An entry is written after its transaction began, which is its time.
  v_after uuid := coalesce(private.first_uuid_v7(created_since), '00000000-0000-0000-0000-000000000000');
begin
  if page_of_audit_entries.object_id is not null then
    return array(
      select e.id from public.audit_entries e
      where e.object_id = any (array[page_of_audit_entries.object_id]) and e.id < before and e.id > v_after
        and e.created_at >= v_since
      order by e.object_id desc, e.id desc
      limit size
    );
  end if;
  return array(
    select f.id
    from unnest(object_types) t (object_type)
    cross join lateral (
      select e.id
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.object_type = t.object_type
        and e.id < before and e.id > v_after and e.created_at >= v_since
      order by e.organisation_id desc, e.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.page_of_notifications (
  types public.notification_type[],
  after_transaction_id xid8,
  after_id uuid,
  created_since timestamp with time zone,
  size integer
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_before_transaction_id xid8 := pg_snapshot_xmin(pg_current_snapshot());
  v_since timestamptz := coalesce(created_since, '-infinity');
  v_since_id uuid := private.first_uuid_v7(created_since);
  v_since_transaction_id xid8;
begin
  -- What was written before that time, by whomever, has a transaction that is older than all which began from then on. Of a hundred such
  -- the latest, for one of them may have run for long.
  if v_since_id is not null then
    select max(w.transaction_id) into v_since_transaction_id
    from (select n.transaction_id from public.notifications n where n.id < v_since_id order by n.id desc limit 100) w;
    if (coalesce(v_since_transaction_id, '0'), v_since_id) > (after_transaction_id, after_id) then
      after_transaction_id := coalesce(v_since_transaction_id, '0');
      after_id := v_since_id;
    end if;
  end if;
  return array(
    select f.id
    from unnest(types) t (type)
    cross join lateral (
      select n.transaction_id, n.id
      from public.notifications n
      where n.organisation_id = any (v_organisation_ids)
        and n.type = t.type
        and (n.transaction_id, n.id) > (after_transaction_id, after_id)
        and n.transaction_id < v_before_transaction_id
        and n.created_at >= v_since
      order by n.organisation_id, n.transaction_id, n.id
      limit size
    ) f
    order by f.transaction_id, f.id
    limit size
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
      ),
      -- The calendar entry is as new as the last change of the event or the ticket.
      'updated_at', private.rfc3339(v_attendee.updated_at)
    ) end,
    'order', case when email.order_id is null then json_build_object('reference', v_order.reference)
      else private.order_json(v_order, '[]', '[]', '[]') end,
    'others', case email.kind when 'ticket' then (
      select coalesce(json_agg(private.other_ticket_json(i) order by i), '[]') from unnest(v_others) i
    ) end,
    'holders', case when v_attendee.id is not null and email.kind <> 'ticket' then private.holders_json(email.kind, v_attendee) end,
    'money', case
      when email.kind = 'order_cancelled' then private.cancelled_money_json(array[v_order.id])
      when email.kind in ('ticket_cancelled', 'event_cancelled') then private.cancelled_money_of(email.kind, v_attendee)
    end,
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

create or replace function private.plan_warnings (
  base public.events,
  event public.events,
  source_id uuid,
  moves boolean
)
  returns jsonb[]
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- When all is done: a ticket type may have been raised as well.
  v_warnings jsonb[] := array[case when base.id = event.id then private.warning_of_capacity(base, event) end];
begin
  if (base.id is null or source_id is not null) and exists (
    select from public.events e
    where e.organisation_id = event.organisation_id and e.id <> event.id and private.search_form(e.name) = private.search_form(event.name)
  ) then
    v_warnings := v_warnings || private.warning(
      'name_taken', 'Another event has this name. To change that one, name it as event.'
    );
  end if;
  if base.id = event.id and not moves then
    v_warnings := v_warnings || private.warning_of_windows(base, event);
  end if;
  return v_warnings;
end
$$;

create or replace function private.quantity_available (
  ticket_type public.ticket_types,
  places_left bigint
)
  returns integer
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  -- Null is no limit, and least() ignores it. So would greatest(places_left, 0), and turn no limit into 0.
  return least(
    ticket_type.quantity - ticket_type.quantity_sold - ticket_type.quantity_held,
    case when places_left < 0 then 0 else places_left end
  );
end
$$;

create or replace function private.recipient_of_entry (
  entry public.waiting_list_entries,
  notify public.notify
)
  returns private.recipient
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return row(entry.organisation_id, null, entry.id, entry.email_lower, case
    when entry.email = private.erased_fields() ->> 'email' then 'erased'
    when private.takes_no_mail(entry.email) then 'no_address'
    when notify = 'mailed' and not entry.send_email then 'send_email_false'
  end, null)::private.recipient;
end
$$;

create or replace function private.recipients (
  attendee_ids uuid[],
  notify public.notify,
  known_until timestamp with time zone default 'infinity'::timestamp with time zone,
  kind public.email_kind default null::public.email_kind
)
  returns private.recipient[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_can_be_switched_off boolean := coalesce(private.can_be_switched_off(kind), false);
begin
  return array(
    select row(a.organisation_id, a.id, null, a.email_lower, case
      when a.erased_at is not null then 'erased'
      when private.takes_no_mail(a.email) then 'no_address'
      when a.created_at > known_until then 'registered_since'
      when a.has_opted_out then 'switched_off'
      when notify = 'mailed' and not a.send_email then 'send_email_false'
    end, null)::private.recipient
    from (
      select a.*, u.event_id is not null as has_opted_out, (select o.send_email from public.orders o where o.id = a.order_id) as send_email
      from public.attendees a
      left join public.email_opt_outs u on u.event_id = a.event_id and u.email_lower = a.email_lower and v_can_be_switched_off
      where a.id = any (attendee_ids)
    ) a
    order by a.send_email desc, a.id
  );
end
$$;

create or replace function private.recipients_of_cancellation (
  event public.events,
  attendee_ids uuid[],
  notify public.notify
)
  returns private.recipient[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return private.with_buyers(
    private.recipients(attendee_ids, notify),
    array(
      select o.id
      from public.orders o
      where o.event_id = event.id and o.status = 'cancelled' and o.cancelled_at = event.cancelled_at
    ),
    notify
  ) || private.recipients_on_waiting_list(event, notify);
end
$$;

create or replace function private.recipients_of_offers (
  event public.events,
  notify public.notify,
  changed_at timestamp with time zone
)
  returns private.recipient[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return array(
    select private.recipient_of_entry(w, notify)
    from public.waiting_list_entries w
    where w.event_id = event.id and w.status = 'offered' and w.offered_at < changed_at and w.offer_expires_at > now()
    order by w.id
  );
end
$$;

create or replace function private.recipients_on_waiting_list (
  event public.events,
  notify public.notify
)
  returns private.recipient[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return array(
    select private.recipient_of_entry(w, notify)
    from public.waiting_list_entries w
    where w.event_id = event.id and w.status = 'cancelled' and w.updated_at = event.cancelled_at
    order by w.offered_at is null, w.id
  );
end
$$;

create or replace function private.refuse_changed (
  "row" jsonb,
  old_row jsonb,
  columns text[],
  hint text default null::text
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_column text;
begin
  foreach v_column in array columns loop
    if "row" -> v_column is distinct from old_row -> v_column then
      perform private.refuse(409, 'read_only_field', 'This field is fixed once the row exists.', v_column, hint => refuse_changed.hint);
    end if;
  end loop;
end
$$;

create or replace function private.refuse_month_for_day (
  due_at timestamp with time zone,
  event_id uuid
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  perform private.refuse_value(
    'payment_due_at',
    format(
      'payment_due_at was read as %s: the order would expire now.',
      (select private.clock_time(due_at, e.timezone) from public.events e where e.id = refuse_month_for_day.event_id)
    ),
    'Write the year first, as in 2026-12-10 18:00 Europe/Berlin; or now() if the order is to expire now.'
  );
end
$$;

create or replace function private.refuse_not_found (
  param text
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if private.is_by_hand() then
    perform private.refuse(
      404, 'not_found', format('There is no such %s: see %s.', replace(regexp_replace(param, '_ids?$', ''), '_', ' '), param), param,
      hint => case when param ~ '_ids?$' then 'Copy its id from the row that you mean.' else 'Check how it is spelt in the row that you mean.' end
    );
  end if;
  perform private.refuse(
    404, 'not_found', 'There is no such object in your organisation.', param,
    hint => 'Check the identifier, and that the key belongs to the organisation that owns the object.'
  );
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
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status),
      case
        when v_order.amount_refunded > 0 and v_order.status = 'cancelled'
          then 'Money that came for it is returned at the bank, and not recorded. A refund cannot be taken back yet: note one that the bank sent back in your books, and send it anew.'
        else 'Money that came for it is returned at the bank, and not recorded.'
      end
    );
  elsif payment.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif payment.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record amount_due. What was sent beyond it is returned at the bank, and not recorded: a refund of it would be due again.'
    );
  -- A day for clocks that differ, and for dates of another time zone.
  elsif payment.received_at > now() + interval '1 day' then
    perform private.refuse_value(
      'received_at', 'received_at is more than a day ahead.', 'Record the payment when the money is there.'
    );
  end if;
end
$$;

create or replace function private.refuse_taken_by_order (
  holder public.orders,
  row_xmin xid
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  if holder.status = 'cancelled' then
    perform private.refuse(
      409, 'already_exists', 'Another object has this external_id already.', 'external_id',
      jsonb_build_object('object', 'order', 'id', holder.id),
      case when holder.amount_paid > holder.amount_refunded
        then 'A cancelled order keeps it until its money is returned: see record_refund. Or give that order another one by update_order.'
        else 'A cancelled order has it: give that order another one, or none, by update_order.'
      end
    );
  end if;
  perform private.refuse_taken('external_id', holder.id, holder.created_at, row_xmin);
end
$$;

create or replace function private.search_attendees (
  patterns text[],
  until text default '
'::text,
  event_id uuid default null::uuid,
  ticket_type_id uuid default null::uuid,
  status public.attendee_status default null::public.attendee_status,
  checked_in boolean default null::boolean,
  ticket_email_status public.email_status default null::public.email_status,
  updated_since timestamp with time zone default null::timestamp with time zone,
  before uuid default 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid,
  size integer default 50
)
  returns uuid[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  -- The index takes no array of patterns. Three words narrow enough; the others are compared.
  v_first text := private.like_pattern(patterns[1]);
  v_second text := coalesce(private.like_pattern(patterns[2]), v_first);
  v_third text := coalesce(private.like_pattern(patterns[3]), v_first);
  v_first_expression text := private.index_expression(patterns[1]);
  v_second_expression text := coalesce(private.index_expression(patterns[2]), v_first_expression);
begin
  return array(
    -- Apart from the order, for which the planner would read the primary key.
    with found as materialized (
      select a.id
      from public.attendees a
      where uuid_hash(a.organisation_id) = uuid_hash(v_organisation_id)
        and a.search_text like v_first
        and a.search_text like v_second
        and a.search_text like v_third
        and a.search_text ~ v_first_expression
        and a.search_text ~ v_second_expression
        -- In brackets: no other index fits.
        and (a.organisation_id = v_organisation_id) is true
        and (a.id < before) is true
        and case when until is null then a.search_text else split_part(a.search_text, until, 1) end ~ all (patterns)
        and (search_attendees.event_id is null or a.event_id = search_attendees.event_id)
        and (search_attendees.ticket_type_id is null or a.ticket_type_id = search_attendees.ticket_type_id)
        and (search_attendees.status is null or a.status = search_attendees.status)
        and (search_attendees.checked_in is null or a.checked_in = search_attendees.checked_in)
        and (search_attendees.ticket_email_status is null or a.ticket_email_status = search_attendees.ticket_email_status)
        and (search_attendees.updated_since is null or a.updated_at >= search_attendees.updated_since)
    )
    select f.id from found f order by f.id desc limit size
  );
end
$$;

create or replace function private.search_patterns (
  search text
)
  returns text[]
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_special constant text := '([][\\.*+?(){}|^$])';
  v_words text[] := private.search_words(private.search_form(search));
  v_spelt text[] := v_words;
begin
  if length(btrim(search)) > 100 or coalesce(length(v_words[1]), 0) < 3 then
    perform private.refuse_value(
      'search', 'A search has 3 to 100 characters, with a word of at least 3.', 'Write more of the name or the e-mail address.'
    );
  end if;
  if octet_length(search) > length(search) then
    v_spelt := private.search_words(private.search_form(regexp_replace(normalize(search, nfc), '([äöüøÄÖÜØ])', '\1e', 'g')));
  end if;
  -- Without three characters that are sure there is no trigram to look up.
  if exists (select from unnest(v_spelt) w (word) where length(regexp_replace(w.word, '([aou])e', '\1', 'g')) >= 3) then
    return array(
      select regexp_replace(regexp_replace(w.word, v_special, '\\\1', 'g'), '([aou])e', '\1e?', 'g')
      from unnest(v_spelt) w (word)
      order by length(regexp_replace(w.word, '([aou])e', '\1', 'g')) desc, w.word
    );
  end if;
  return array(
    select regexp_replace(w.word, v_special, '\\\1', 'g') from unnest(v_words) with ordinality w (word, place) order by w.place
  );
end
$$;

create or replace function private.search_words (
  form text
)
  returns text[]
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_punctuation constant text := '[!-/:-@[-`{-~\u00a1-\u00bf\u2010-\u205e]';
begin
  return array(
    select w.word
    from (select distinct w.word from regexp_split_to_table(form, '\s+') w (word)) w
    where w.word <> ''
      and (w.word !~ ('^' || v_punctuation || '+$') or form ~ ('^(\s|' || v_punctuation || ')+$'))
    order by length(w.word) desc, w.word
  );
end
$$;

create or replace function private.standing_entries (
  attendee_id uuid
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
    select coalesce(json_agg(json_build_object(
      'check_in_point_id', f.check_in_point_id,
      'scanned_at', private.rfc3339(f.scanned_at),
      'exited_at', private.rfc3339(f.exited_at),
      'day', nullif(split_part(f.admission_key, '/', 2), ''),
      'check_in_id', f.id
    ) order by f.id), '[]')
    from (
      select
        c.*,
        row_number() over (partition by c.check_in_point_id order by c.admission_key is null, c.scanned_at desc, c.id desc) as place
      from public.check_ins c
      where c.attendee_id = standing_entries.attendee_id
        and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) f
    where f.admission_key is not null or f.place = 1
  );
end
$$;

create or replace function private.takes_no_mail (
  address text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return lower(address) like '%.invalid';
end
$$;

create or replace function private.tell (
  kind public.email_kind,
  recipients private.recipient[],
  previous jsonb default null::jsonb,
  send_at timestamp with time zone default now(),
  pending text[] default '{}'::text[]
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_emails integer;
begin
  if private.can_be_switched_off(kind) then
    insert into private.opt_out_keys default values on conflict do nothing;
  end if;
  insert into public.emails (organisation_id, kind, attendee_id, waiting_list_entry_id, order_id, previous, next_attempt_at)
  select distinct on (r.email_lower, r.order_id)
    r.organisation_id,
    case
      when r.attendee_id is not null then tell.kind
      when r.order_id is not null then 'order_cancelled'
      when tell.kind = 'event_changed' then 'waiting_list_offer'
      else 'waiting_list_cancelled'
    end,
    r.attendee_id,
    r.waiting_list_entry_id,
    r.order_id,
    tell.previous,
    send_at
  from (
    select r.*, bool_or(r.order_id is not null) over (partition by r.email_lower) as is_buyer
    from unnest(recipients) with ordinality r
    where r.reason is null
  ) r
  where r.email_lower not in (select unnest(pending)) and (r.waiting_list_entry_id is null or not r.is_buyer)
  order by r.email_lower, r.order_id, r.ordinality;
  get diagnostics v_emails = row_count;
  return (
    select jsonb_build_object(
      'emails', cardinality(pending) + v_emails,
      'told', coalesce(sum(c.count) filter (where c.reason is null), 0),
      'not_told', coalesce(
        jsonb_agg(jsonb_build_object('reason', c.reason, 'count', c.count) order by c.count desc, c.reason) filter (where c.reason is not null),
        '[]'
      )
    )
    from (
      select a.reason, count(*)
      from (
        select case when not bool_or(r.reason is null) over (partition by r.email_lower) then r.reason end as reason
        from unnest(recipients) r
      ) a
      group by a.reason
    ) c
  );
end
$$;

create or replace function private.tell_of_cancelled_tickets (
  order_id uuid,
  attendee_ids uuid[],
  notify public.notify,
  is_buyer_told boolean default false
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_recipients private.recipient[] := private.recipients(attendee_ids, notify);
  v_ids uuid[];
  v_cost bigint;
  v_notice jsonb := '{"emails": 0, "told": 0, "not_told": []}';
begin
  select o.* into v_order from public.orders o where o.id = tell_of_cancelled_tickets.order_id;
  for v_ids in
    select array_agg(a.id) from public.attendees a where a.id = any (attendee_ids) group by a.cancelled_at order by a.cancelled_at
  loop
    v_notice := private.told_together(v_notice, private.tell('ticket_cancelled', private.recipients(v_ids, notify)));
  end loop;
  if v_order.status = 'cancelled' and not is_buyer_told then
    v_notice := private.told_together(v_notice, private.tell('order_cancelled', array(
      select r from unnest(private.with_buyers(v_recipients, array[v_order.id], notify)) r where r.order_id is not null
    )));
  elsif v_order.status <> 'cancelled' and v_order.payment_method is not null and not is_buyer_told then
    v_cost := (select sum(a.price - a.discount) from public.attendees a where a.id = any (attendee_ids));
    if v_cost > 0 and v_order.total + v_cost > v_order.amount_paid - v_order.amount_refunded then
      v_notice := private.told_together(v_notice, private.confirm_anew(v_order, notify, v_recipients));
    end if;
  end if;
  return v_notice;
end
$$;

create or replace function private.tg__assert_append_only()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- Deleting an API key empties recorded_by.
  if tg_op = 'UPDATE' and new.recorded_by is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
    return new;
  elsif tg_op = 'DELETE' and private.is_deleted_wholly(old.organisation_id) then
    return old;
  end if;
  perform private.refuse(409, 'append_only', tg_argv[0], hint => tg_argv[1]);
  return null;
end
$$;

create or replace function private.tg__assert_unchanged()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse_changed(to_jsonb(new), to_jsonb(old), tg_argv);
  return new;
end
$$;

create or replace function private.tg__assert_unchanged_with_hint()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse_changed(to_jsonb(new), to_jsonb(old), tg_argv[1:], tg_argv[0]);
  return new;
end
$$;

create or replace function private.tg__take_blank_as_empty()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_new jsonb := to_jsonb(new);
  v_old jsonb := to_jsonb(old);
  v_trimmed jsonb := private.trimmed_values(v_new, v_old);
  v_column name;
begin
  if v_trimmed <> '{}' then
    new := jsonb_populate_record(new, v_trimmed);
    v_new := v_new || v_trimmed;
  end if;
  -- Which columns are times is looked up where a value is infinite, or written with another year than most.
  if v_new::text ~ '": "(-?infinity"|\d{5,}-|9999-|(0\d|1[0-8])\d\d-|1900-|[^"]* BC")' and private.explains_mistakes(counts => false) then
    for v_column in
      select a.attname
      from pg_catalog.pg_attribute a
      where a.attrelid = tg_relid and a.attnum > 0 and v_new -> a.attname is distinct from v_old -> a.attname
        and a.atttypid = 'timestamptz'::regtype
        and (v_new ->> a.attname)::timestamptz not between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    loop
      perform private.refuse_value(v_column, format('The time in %s is between the years 1900 and 9999.', v_column));
    end loop;
  end if;
  if tg_op = 'INSERT' then
    foreach v_column in array coalesce(tg_argv, '{}') loop
      if v_new ->> v_column is null then
        perform private.refuse_empty(tg_relid, v_column);
      end if;
    end loop;
  end if;
  return new;
end
$$;

create or replace function private.tg_attendees__assert_over()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if old.status <> 'cancelled' and not private.is_deleted_wholly(old.organisation_id) then
    perform private.refuse(
      409, 'in_use', 'A ticket that stands cannot be deleted: its order and everybody who was told of it count on it.',
      hint => 'Set status to cancelled instead; to remove what identifies the person, call erase_attendee.'
    );
  end if;
  return old;
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
      perform private.refuse(
        409, 'sold_out', 'The event is full.', 'event_id',
        hint => 'Raise the capacity of the event.'
          || private.way_to_held_place((select sum(t.quantity_held) from public.ticket_types t where t.event_id = v_event.id))
      );
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
      when not v_order.send_email or private.takes_no_mail(new.email) then 'not_requested'
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
        when private.takes_no_mail(new.email) then 'not_requested'
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
    elsif new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and private.takes_no_mail(new.email) then
      perform private.refuse(
        409, 'no_address', 'This attendee has no address that takes mail.', 'email', hint => 'Correct the address. If that does not send the ticket, ask for it again.'
      );
    end if;
    -- What failed before says nothing of what is sent now.
    if new.ticket_email_status = 'queued' and (old.ticket_email_status <> 'queued' or new.ticket_code <> old.ticket_code) then
      new.ticket_email_last_error := null;
    end if;
    -- Whose address is corrected to one that takes mail was sent nothing so far.
    if new.email <> old.email and new.erased_at is null and new.status <> 'cancelled' then
      if private.takes_no_mail(new.email) then
        if new.ticket_email_status in ('waiting', 'queued') then
          new.ticket_email_status := 'not_requested';
        end if;
      elsif new.ticket_email_status = 'not_requested' and private.takes_no_mail(old.email)
        and (select o.send_email from public.orders o where o.id = new.order_id) then
        new.ticket_email_status := case new.status when 'active' then 'queued' else 'waiting' end::public.email_status;
      end if;
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case
        when v_order.send_email and not private.takes_no_mail(new.email) then 'queued'
        else 'not_requested'
      end::public.email_status;
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
    -- Not joins of the two transition tables: see tg_attendees__add_up. An e-mail of several tickets lists them as they were queued.
    insert into public.emails (organisation_id, attendee_id)
    select n.organisation_id, n.id from new_rows n where n.ticket_email_status = 'queued'
    except
    select o.organisation_id, o.id from old_rows o where o.ticket_email_status = 'queued'
    order by 2;
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

create or replace function private.tg_attendees__send_now()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  update public.emails e set status = 'cancelled', next_attempt_at = null
  where e.attendee_id = new.id and e.kind = 'ticket' and e.status = 'queued' and e.claim is null and e.last_error is not null;
  if found then
    insert into public.emails (organisation_id, attendee_id) values (new.organisation_id, new.id);
  end if;
  return null;
end
$$;

create or replace function private.tg_check_ins__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_free text[] := '{undone_at,updated_at,api_key_id}';
begin
  if tg_op = 'DELETE' then
    if private.is_deleted_wholly(old.organisation_id) then
      return old;
    end if;
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: they are never deleted.', hint => 'Set undone_at to take an acceptance back.'
    );
  end if;
  -- Deleting an API key empties api_key_id of its scans, and an exit ends its entry; besides undone_at, no other column may change.
  if pg_trigger_depth() > 1 then
    v_free := v_free || '{exited_at,admission_key}';
  end if;
  if to_jsonb(new) - v_free <> to_jsonb(old) - v_free
    or (new.api_key_id is not null and new.api_key_id is distinct from old.api_key_id) then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: only undone_at can be set.', hint => 'Set undone_at to take an acceptance back.'
    );
  end if;
  if new.undone_at is distinct from old.undone_at then
    if old.result = 'rejected' then
      perform private.refuse(409, 'check_in_not_accepted', 'A rejected check-in cannot be undone.', 'check_in_id');
    elsif old.undone_at is not null then
      perform private.refuse(
        409, 'check_in_already_undone', 'This check-in was undone before.', 'check_in_id',
        jsonb_build_object('undone_at', private.rfc3339(old.undone_at))
      );
    end if;
    new.undone_at := now();
    new.admission_key := null;
  end if;
  return new;
end
$$;

create or replace function private.tg_emails__send_again()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if new.kind = 'ticket' and old.status <> 'queued' then
    perform private.refuse(
      409, 'read_only_field', 'A ticket is sent once more by its attendee, not by the status of its e-mail.', 'status',
      hint => 'Set ticket_email_status of the attendee to queued.'
    );
  end if;
  new.attempts := 0;
  new.next_attempt_at := now();
  new.claim := null;
  new.claimed_until := null;
  new.last_error := null;
  return new;
end
$$;

create or replace function private.tg_events__delete()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- What belongs to it is gone then.
  if private.is_deleted_wholly(old.organisation_id) then
    return old;
  elsif exists (select from public.orders o where o.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: it has orders.',
      hint => case
        when old.status in ('draft', 'published') then 'Cancel it instead: set its status to cancelled.'
        else 'Leave it: its orders stay for those who look them up.'
      end
    );
  elsif old.status <> 'draft' then
    perform private.refuse(
      409, 'in_use', 'The event is in use: only a draft can be deleted.', 'status', jsonb_build_object('status', old.status),
      case old.status
        when 'published' then 'Take it back to draft first, or cancel it.'
        when 'completed' then 'Leave it; until its end it can be published again, and taken back to draft.'
        else 'Leave it: a cancelled event stays for those who look it up.'
      end
    );
  elsif exists (select from public.check_ins c where c.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: tickets were scanned at it, and the log of the door is kept.',
      hint => 'Leave it a draft, or publish and cancel it.'
    );
  end if;
  -- People who wait are taken off the list first, as anybody is.
  update public.waiting_list_entries w set status = 'cancelled' where w.event_id = old.id and w.status in ('waiting', 'offered');
  -- The audit trail forgets them, as when an entry is purged.
  update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
  from public.waiting_list_entries w
  where w.event_id = old.id and e.object_id = w.id and e.changes is not null;
  delete from public.waiting_list_entries w where w.event_id = old.id;
  delete from public.check_in_points p where p.event_id = old.id;
  delete from public.promo_codes c where c.event_id = old.id;
  delete from public.ticket_types t where t.event_id = old.id;
  return old;
end
$$;

create or replace function private.tg_events__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name, new.locale));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    -- Registrations hold the event lock shared: none is in flight during the checks below.
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.lock_event_exclusive(new.id);
    end if;

    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed'), ('completed', 'published')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status',
        hint => 'To close registration set sales_end_at of its ticket types, or complete the event. Cancelling it is for good.'
      );
    end if;

    if old.status <> 'published' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      -- Of an event that is published again all may be archived, as they may be while it is published.
      if old.status = 'draft' and not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    -- Currency and capacity, against what is sold already.
    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity then
      -- A raised quantity is offered to the waiting list without the event lock.
      perform private.lock_event_capacity(new.id);
      if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
        perform private.refuse(
          409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
          jsonb_build_object('places_taken', private.places_taken(new.id))
        );
      end if;
    end if;
  end if;

  -- Unique values. Row level security refuses a foreign row only after this trigger, so nothing is looked up for one: the
  -- answer would reveal values of another organisation.
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else (new.slug, new.external_id) is distinct from (old.slug, old.external_id) end)
    and not private.is_foreign(new.organisation_id) then
    perform private.refuse_taken('slug', e.id, e.created_at, e.xmin)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at, e.xmin)
    from public.events e
    where e.organisation_id = new.organisation_id and e.external_id = new.external_id and e.id <> new.id;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- pg_timezone_names reads files, in some 20 ms, so a zone that another event has is accepted without it.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- A value that stays is not checked: a currency is withdrawn, and an address may be from before the rule.
  if (tg_op = 'INSERT' or new.currency <> old.currency) and not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'The currency is not an ISO 4217 currency in use.', 'Write its three capital letters, such as EUR.'
    );
  end if;
  if (tg_op = 'INSERT' or new.online_url is distinct from old.online_url) and not private.is_web_url(new.online_url) then
    perform private.refuse_value(
      'online_url',
      'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters.',
      'Copy the address again, and leave out what stands before an @ in the name of the server.'
    );
  end if;

  -- The timestamps follow the status.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  new.cancelled_at := case when new.status = 'cancelled' then case when old.status = 'cancelled' then old.cancelled_at else now() end end;
  new.completed_at := case when new.status = 'completed' then case when old.status = 'completed' then old.completed_at else now() end end;
  return new;
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
        perform private.refuse_taken_by_order(o, o.xmin) from public.orders o where o.id = v_holder.id;
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
      where c.event_id = new.event_id and lower(c.code) = lower(btrim(new.promo_code));
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
        hint => 'Add or cancel attendees instead. For another discount cancel the order, and register anew with a promo code.'
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
      perform private.refuse_taken_by_order(o, o.xmin)
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

create or replace function private.tg_orders__guard_deadline()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- How long before the deadline the buyer is reminded.
  v_lead interval := '72 hours';
  v_before timestamptz;
  v_next timestamptz;
begin
  if tg_op = 'INSERT' then
    if new.status = 'pending' and new.payment_due_at is null then
      select new.created_at + make_interval(hours => 24 * e.payment_due_days) into new.payment_due_at
      from public.events e
      where e.id = new.event_id;
    end if;
    -- Not at once where the deadline is near from the beginning: in the middle.
    v_lead := least(v_lead, greatest(new.payment_due_at - new.created_at, interval '0') / 2);
  else
    v_before := old.payment_due_at;
    if old.status = 'cancelled' and new.status = 'pending' then
      v_lead := least(v_lead, (new.payment_due_at - now()) / 2);
    end if;
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_reminded_at is distinct from now() then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'payment_reminded_at',
        hint => 'Call send_payment_reminder to remind the buyer now.'
      );
    end if;
    -- One by hand stands for the courier's own of the next day as well.
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_remind_at <= now() + interval '1 day' then
      new.payment_remind_at := null;
    end if;
    -- An order that comes to nothing is complete with its first ticket: nobody has anything to pay by a deadline.
    if old.status = 'pending' and new.status = 'completed' and new.subtotal = new.discount_total and new.amount_paid = 0 then
      new.payment_due_at := null;
      new.payment_remind_at := null;
      v_before := null;
    end if;
  end if;
  if new.payment_due_at is distinct from v_before then
    if new.cancellation_reason = 'expired' then
      perform private.refuse_expired(new);
    elsif new.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order has no payment deadline.', 'payment_due_at');
    elsif new.status = 'completed' then
      perform private.refuse(
        409, 'order_completed', 'A completed order keeps its tickets: a payment deadline would have no effect.', 'payment_due_at',
        hint => 'Cancel the order if it is not to be paid any more.'
      );
    end if;
    -- Two such days are weeks apart: a deadline of yesterday was meant so.
    if new.payment_due_at < now() - interval '7 days' and pg_trigger_depth() = 1 and private.is_by_hand() then
      if private.is_month_for_day(new.payment_due_at::date, current_date) then
        perform private.refuse_month_for_day(new.payment_due_at, new.event_id);
      end if;
    end if;
    new.payment_reminded_at := null;
    new.payment_remind_at := case when new.send_email then new.payment_due_at - v_lead end;
    -- Nobody is reminded twice a day, unless the deadline is too near for that.
    if tg_op = 'UPDATE' and new.payment_remind_at is not null then
      v_next := private.next_reminder_at(new.id);
      if v_next > new.payment_remind_at and v_next < new.payment_due_at - interval '12 hours' then
        new.payment_remind_at := v_next;
      end if;
    end if;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid - new.amount_refunded < new.subtotal - new.discount_total
      then least(new.payment_remind_at, new.payment_due_at)
  end;
  return new;
end
$$;

create or replace function private.tg_refunds__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_left bigint;
begin
  select o.* into v_order
  from public.orders o
  where o.id = new.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_left := v_order.amount_paid - v_order.amount_refunded;
  if v_order.status <> 'cancelled' and (v_order.status = 'pending' or v_order.amount_paid < v_order.total) then
    perform private.refuse(
      409, 'payment_due', 'Something is still due for this order.', 'order_id', jsonb_build_object('status', v_order.status),
      'Cancel the order first, or void the payment if it was recorded by mistake.'
    );
  elsif v_left = 0 then
    perform private.refuse(
      409, 'nothing_refundable', 'Nothing was paid for this order that is not refunded yet.', 'order_id',
      hint => case when v_order.amount_refunded > 0
        then 'A refund cannot be taken back yet: note one that the bank sent back in your books, and send it anew without a second record.'
      end
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The refund is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_left then
    perform private.refuse(
      409, 'refund_too_high', 'The refund is more than what was paid and not refunded yet.', 'amount',
      jsonb_build_object('amount_left', v_left), 'Record at most amount_left.'
    );
  end if;
  update public.orders o set amount_refunded = o.amount_refunded + new.amount where o.id = v_order.id;
  return new;
end
$$;

create or replace function private.tg_registrations__register()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
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
          409, 'read_only_field', 'Usher sets this field of a new row itself.', v_kept, hint => 'Leave it out.'
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
  perform set_config('usher.registers', 'on', true);
  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    new.organisation_id, new.event_id, new.name, new.email, new.company, new.send_email, new.payment_method, new.promo_code,
    new.external_id, new.metadata
  )
  returning id, organisation_id, reference, promo_code, created_at
  into new.order_id, new.organisation_id, new.reference, new.promo_code, new.created_at;
  perform set_config('usher.registers', 'off', true);
  insert into public.attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata)
  values (
    new.order_id, new.ticket_type_id, new.waiting_list_entry_id, new.name, new.email, new.company, new.external_id, new.metadata
  )
  returning id into new.attendee_id;
  select a.status into new.status from public.attendees a where a.id = new.attendee_id;
  return new;
end
$$;

create or replace function private.tg_waiting_list_entries__assert_over()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if old.status in ('waiting', 'offered') and not private.is_deleted_wholly(old.organisation_id) then
    perform private.refuse(
      409, 'in_use', 'This person is still on the waiting list.', hint => 'Set status to cancelled first.'
    );
  end if;
  return old;
end
$$;

create or replace function private.ticket_type_json (
  ticket_type public.ticket_types,
  currency text,
  places_left bigint
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
    select json_build_object(
      'object', 'ticket_type',
      'id', ticket_type.id,
      'event_id', ticket_type.event_id,
      'name', ticket_type.name,
      'description', ticket_type.description,
      'price', ticket_type.price,
      'currency', currency,
      'quantity', ticket_type.quantity,
      'quantity_sold', ticket_type.quantity_sold,
      'quantity_held', ticket_type.quantity_held,
      'quantity_available', a.available,
      'min_per_order', ticket_type.min_per_order,
      'max_per_order', ticket_type.max_per_order,
      'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
      'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
      'visibility', ticket_type.visibility,
      'status', ticket_type.status,
      'sales_status', case
        when ticket_type.status = 'archived' then 'archived'
        when now() >= (select e.ends_at from public.events e where e.id = ticket_type.event_id) then 'ended'
        when now() < ticket_type.sales_start_at then 'upcoming'
        when now() >= ticket_type.sales_end_at then 'ended'
        when a.available = 0 then 'sold_out'
        else 'on_sale'
      end,
      'position', ticket_type.position,
      'external_id', ticket_type.external_id,
      'metadata', ticket_type.metadata,
      'version', ticket_type.version,
      'created_at', private.rfc3339(ticket_type.created_at),
      'updated_at', private.rfc3339(ticket_type.updated_at)
    )
    from (select private.quantity_available(ticket_type, places_left) as available offset 0) a
  );
end
$$;

create or replace function private.told_together (
  one jsonb,
  other jsonb
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return jsonb_build_object(
    'emails', (one ->> 'emails')::integer + (other ->> 'emails')::integer,
    'told', (one ->> 'told')::integer + (other ->> 'told')::integer,
    'not_told', (
      select coalesce(jsonb_agg(jsonb_build_object('reason', n.reason, 'count', n.count) order by n.count desc, n.reason), '[]')
      from (
        select n.reason, sum(n.count) as count
        from jsonb_to_recordset((one -> 'not_told') || (other -> 'not_told')) n (reason text, count integer)
        group by n.reason
      ) n
    )
  );
end
$$;

create or replace function private.trimmed_values (
  "row" jsonb,
  old_row jsonb default null::jsonb
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_blanks constant text := '[ \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+';
begin
  return (
    select coalesce(jsonb_object_agg(e.key, nullif(t.trimmed, '')), '{}')
    from jsonb_each_text("row") e
    cross join lateral (select regexp_replace(e.value, '^' || v_blanks || '|' || v_blanks || '$', '', 'g') as trimmed) t
    where (t.trimmed = '' or t.trimmed <> e.value and e.key <> all ('{description,payment_instructions,last_response_body}'))
      and "row" -> e.key is distinct from old_row -> e.key
  );
end
$$;

create or replace function private.unmailed_because (
  "order" public.orders,
  notify public.notify
)
  returns text
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return case
    when "order".email = private.erased_fields() ->> 'email' then 'erased'
    when private.takes_no_mail("order".email) then 'no_address'
    when notify = 'mailed' and not "order".send_email then 'send_email_false'
  end;
end
$$;

create or replace function private.warning_of_amount (
  amount bigint,
  expected bigint,
  currency text,
  what text,
  remedy text
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return case when private.minor_units(currency) > 1 and amount * private.minor_units(currency) = expected then private.warning(
    'amount_low',
    format(
      '%s is recorded, and %s was %s: amounts are in minor units. %s',
      private.money_text(amount, currency), private.money_text(expected, currency), what, format(remedy, expected, expected - amount)
    )
  ) end;
end
$$;

create or replace function private.warning_of_buyer (
  former public.attendees,
  present public.attendees
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if lower(former.email) = lower(present.email)
    or (private.current_scopes() && '{orders:read,orders:write}'::public.api_scope[]) is not true then
    return null;
  end if;
  return (
    select private.warning(
      'buyer_has_former_address',
      'The contact of the order still has the former e-mail address, and receipts and reminders go there. If it is the same person, correct it with update_order.'
    )
    from public.orders o
    where o.id = present.order_id
      and o.email_lower = lower(former.email)
      and lower(o.name) = lower(former.name)
      and o.payment_method is not null
      and not private.is_foreign(o.organisation_id)
  );
end
$$;

create or replace function private.warning_of_former_addresses (
  tickets bigint
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  if tickets > 0 then
    return private.warning('ticket_at_former_address', format(
      '%s e-mailed to the former address, and nothing to the new one. resend_ticket sends a ticket there. If another person comes, '
      'update_attendee with reissue_ticket sends them a new code, and the former one admits nobody.',
      case tickets when 1 then 'The ticket was' else tickets || ' tickets were' end
    ));
  end if;
  return null;
end
$$;

create or replace function private.warning_of_kept_price (
  former public.attendees,
  present public.attendees
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if former.ticket_type_id = present.ticket_type_id then
    return null;
  end if;
  return (
    select private.warning('price_kept', format(
      'The ticket keeps its price of %s, and the new ticket type has another. For another price cancel the ticket, and register the person again.',
      private.money_text(present.price, present.currency)
    ))
    from public.ticket_types t
    where t.id = present.ticket_type_id and t.price <> present.price and not private.is_foreign(t.organisation_id)
  );
end
$$;

create or replace function private.warning_of_offer()
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return private.warning(
    'has_offer', 'The waiting list holds another place of this ticket type for the same e-mail address. Cancel that entry, or cancel this ticket and use accept_waiting_list_offer.'
  );
end
$$;

create or replace function private.warning_of_reference (
  order_id uuid,
  external_reference text
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
begin
  return private.warning_of_repeated_reference('payment', order_id, (
    select p.order_id
    from public.payments p
    where p.organisation_id = v_organisation_id
      and p.external_reference = warning_of_reference.external_reference
      and not exists (select from public.payment_voids v where v.payment_id = p.id)
    limit 1
  ));
end
$$;

create or replace function private.warning_of_refund_reference (
  order_id uuid,
  external_reference text
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
begin
  return private.warning_of_repeated_reference('refund', order_id, (
    select r.order_id
    from public.refunds r
    where r.organisation_id = v_organisation_id and r.external_reference = warning_of_refund_reference.external_reference
    limit 1
  ));
end
$$;

create or replace function private.warning_of_repeated_reference (
  what text,
  order_id uuid,
  other_order_id uuid
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if other_order_id is null then
    return null;
  elsif other_order_id = warning_of_repeated_reference.order_id then
    return private.warning('reference_repeated', format('Another %s of this order has the same external_reference.', what));
  end if;
  return private.warning('reference_repeated', format(
    'A %s of %s has the same external_reference.',
    what,
    case when private.reads_orders()
      then 'order ' || (select o.reference from public.orders o where o.id = other_order_id)
      else 'another order'
    end
  ));
end
$$;

create or replace function private.warning_of_waiting_list (
  event_id uuid
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_waiting integer;
  v_offered integer;
begin
  select count(*), count(*) filter (where w.status = 'offered') into v_waiting, v_offered
  from public.waiting_list_entries w
  where w.event_id = warning_of_waiting_list.event_id
    and w.status in ('waiting', 'offered')
    and w.organisation_id = private.current_organisation_id();
  if v_waiting = 0 then
    return null;
  end if;
  return private.warning('waiting_list_ended', format(
    'The waiting list ended with the event: %s, and nobody was told. Publishing the event again does not bring it back.',
    case v_waiting when 1 then '1 person was on it' else v_waiting || ' people were on it' end
      || case when v_offered > 0 then format(', %s with an offer of a place', v_offered) else '' end
  ));
end
$$;

create or replace function private.warning_of_windows (
  before public.events,
  event public.events
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if event.starts_at <> before.starts_at and (
    exists (
      select from public.ticket_types t
      where t.event_id = event.id and t.status = 'active' and (t.sales_start_at > now() or t.sales_end_at > now())
    )
    or exists (
      select from public.promo_codes c
      where c.event_id = event.id and c.status = 'active' and (c.valid_from > now() or c.valid_until > now())
    )
    or exists (
      select from public.check_in_points p
      where p.event_id = event.id and p.status = 'active' and coalesce(p.opens_at, p.closes_at) is not null
    )
  ) then
    return private.warning(
      'windows_stay', 'Sales, promo codes and check-in points keep their times. To move all with the event, use apply_event with move.'
    );
  elsif event.ends_at > before.ends_at and exists (
    select from public.check_in_points p
    where p.event_id = event.id and p.status = 'active' and p.closes_at >= before.ends_at and p.closes_at < event.ends_at
  ) then
    return private.warning('windows_stay', 'A check-in point keeps its times, and now closes before the event ends. Change its closes_at.');
  end if;
  return null;
end
$$;

create or replace function private.warnings_of_payment (
  order_id uuid,
  amount bigint,
  received_at timestamp with time zone
)
  returns jsonb[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = warnings_of_payment.order_id and not private.is_foreign(o.organisation_id);
  return array[
    private.warning_of_amount(
      amount, private.amount_due(v_order) + amount, v_order.currency, 'due', 'If that was received, void this payment and record %s.'
    ),
    -- A day for dates without a time, and of another time zone.
    case when received_at < v_order.created_at - interval '1 day' then private.warning(
      'received_before_order', 'received_at is more than a day before the order was made. If it is a mistake, void the payment and record it anew.'
    ) end
  ];
end
$$;

create or replace function private.warnings_of_refund (
  order_id uuid,
  amount bigint,
  refunded_at timestamp with time zone
)
  returns jsonb[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_former public.orders;
  v_due_again bigint;
begin
  select o.* into v_order from public.orders o where o.id = warnings_of_refund.order_id and not private.is_foreign(o.organisation_id);
  v_former := v_order;
  v_former.amount_refunded := v_order.amount_refunded - warnings_of_refund.amount;
  v_due_again := private.amount_due(v_order) - private.amount_due(v_former);
  return array[
    case when v_due_again > 0 then private.warning('due_again', format(
      '%s is due again, and reminders ask for it: the order stands. If more was received than is recorded, record that payment as well; if it is not to be paid, cancel the ticket or the order.',
      private.money_text(v_due_again, v_order.currency)
    )) end,
    private.warning_of_amount(
      amount, private.amount_refundable(v_former), v_order.currency, 'to be returned', 'If that was returned, record another refund of %2$s.'
    ),
    case when refunded_at < (
      select min(p.received_at)
      from public.payments p
      where p.order_id = v_order.id and not exists (select from public.payment_voids v where v.payment_id = p.id)
    ) - interval '1 day' then private.warning(
      'refunded_before_payment', 'refunded_at is more than a day before the first payment of the order was received. A refund cannot be changed: note the right date in your books.'
    ) end
  ];
end
$$;

create or replace function private.way_to_held_place (
  held bigint
)
  returns text
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return case
    when coalesce(held, 0) = 0 then ''
    when private.is_by_hand()
      then $way$ For whoever is offered a place: select accept_offer(the_waiting_list_entry('who@example.com', 'my-event')).$way$
    else ' For whoever is offered a place: accept_waiting_list_offer.'
  end;
end
$$;

create or replace function private.with_buyers (
  recipients private.recipient[],
  order_ids uuid[],
  notify public.notify
)
  returns private.recipient[]
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return recipients || array(
    select row(b.organisation_id, null, null, b.email_lower, b.reason, b.id)::private.recipient
    from (
      select o.id, o.organisation_id, o.email_lower, private.unmailed_because(o, notify) as reason
      from public.orders o
      where o.id = any (order_ids)
        and o.status = 'cancelled'
        and o.payment_method is not null
        -- One that never had a ticket was never confirmed.
        and (o.subtotal > 0 or private.has_tickets(o.id))
    ) b
    left join (
      select r.email_lower, bool_or(r.reason is null) as is_told from unnest(recipients) r group by r.email_lower
    ) a using (email_lower)
    where a.email_lower is null or b.reason is null and not a.is_told
    order by b.id
  );
end
$$;

create or replace function private.without_empty_lines (
  guest jsonb
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_field text;
begin
  for v_field in select f from json_object_keys(private.lines_of_guest()) f loop
    if guest -> v_field = '""' then
      guest := jsonb_set(guest, array[v_field], 'null');
    end if;
  end loop;
  return guest;
end
$$;

create or replace function public.copy_event (
  event_id uuid,
  starts_at timestamp with time zone,
  name text default null::text
)
  returns uuid
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_event public.events := private.event_to_plan(event_id);
begin
  if starts_at is null then
    perform private.refuse_value('starts_at', 'A copy needs a start of its own.');
  end if;
  v_event := private.carry_out_by_hand(
    jsonb_build_object('changes', jsonb_strip_nulls(jsonb_build_object('starts_at', starts_at, 'name', name))),
    v_event.organisation_id, null, v_event.id
  );
  raise notice 'The copy starts at %.', private.clock_time(v_event.starts_at, v_event.timezone);
  return v_event.id;
end
$$;

create or replace function public.move_event (
  event_id uuid,
  starts_at timestamp with time zone
)
  returns text
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_event public.events := private.event_to_plan(event_id);
begin
  if starts_at is null then
    perform private.refuse_value('starts_at', 'Say when it is to start.', 'Write it as 2028-05-02 09:00 Europe/Berlin.');
  elsif v_event.starts_at is null then
    perform private.refuse_value(
      'starts_at', 'The event has no start from which it could move.', 'Set starts_at and ends_at of the event.'
    );
  end if;
  v_event := private.carry_out_by_hand(jsonb_build_object('move', starts_at), v_event.organisation_id, v_event.id, null);
  return private.clock_time(v_event.starts_at, v_event.timezone);
end
$$;

revoke all on function public.move_event(uuid, timestamp with time zone) from anon;

revoke all on function public.move_event(uuid, timestamp with time zone) from service_role;

create or replace function public.notify_cancelled (
  order_id uuid,
  notify public.notify default 'mailed'::public.notify
)
  returns integer
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order public.orders;
  v_failed constant public.email_status[] := '{cancelled,failed,bounced}';
  v_attendee_ids uuid[];
begin
  perform private.assert_manages_order(order_id);
  -- Locked, so that a second call of this moment sees whom the first has told.
  select o.* into v_order from public.orders o where o.id = notify_cancelled.order_id for no key update;
  if coalesce(notify, 'nobody') = 'nobody' then
    return 0;
  end if;
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.order_id = v_order.id
      and a.status = 'cancelled'
      and a.cancelled_at is distinct from (select e.cancelled_at from public.events e where e.id = v_order.event_id)
      and (a.email_lower, a.cancelled_at) not in (
        select t.email_lower, t.cancelled_at
        from public.attendees t
        join public.emails e on e.attendee_id = t.id
        where t.order_id = v_order.id
          and e.kind in ('ticket_cancelled', 'event_cancelled')
          and e.created_at >= t.cancelled_at
          and e.status <> all (v_failed)
      )
  );
  return private.tell_of_cancelled_tickets(
    v_order.id, v_attendee_ids, notify,
    is_buyer_told => v_order.cancellation_reason is not distinct from 'event_cancelled'
      -- Of an order that stays, by a confirmation since, or one that waits.
      or v_order.status <> 'cancelled' and exists (
        select from public.emails e
        where e.order_id = v_order.id and e.kind = 'order_confirmation' and e.status <> all (v_failed)
          and coalesce(e.sent_at, now()) >= (select max(a.cancelled_at) from public.attendees a where a.id = any (v_attendee_ids))
      )
      or exists (
        select from public.emails e
        where e.order_id = v_order.id and e.kind in ('order_cancelled', 'order_expired') and e.created_at >= v_order.cancelled_at
          and e.status <> all (v_failed)
      )
      or exists (
        select
        from public.attendees t
        join public.emails e on e.attendee_id = t.id
        where t.order_id = v_order.id and t.email_lower = v_order.email_lower
          and e.kind = 'ticket_cancelled' and e.created_at >= v_order.cancelled_at and e.status <> all (v_failed)
      )
  ) ->> 'emails';
end
$$;

revoke all on function public.notify_cancelled(uuid, public.notify) from anon;

revoke all on function public.notify_cancelled(uuid, public.notify) from service_role;

create or replace function public.the_attendee (
  email text,
  event_slug text default null::text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return private.only_one(
    array(
      with found as materialized (
        select a.id, a.status <> 'cancelled' as stands from public.attendees a
        where a.email_lower = lower(btrim(the_attendee.email))
          and (event_slug is null or a.event_id = public.the_event(event_slug))
      )
      -- Whoever cancelled and registered again has one ticket.
      select f.id from found f where f.stands or not exists (select from found f where f.stands) limit 2
    ),
    'There is no attendee with this e-mail address.', 'Several attendees have this e-mail address.', 'email'
  );
end
$$;

create or replace function public.the_event (
  slug text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return private.only_one(
    array(select e.id from public.events e where e.slug = lower(btrim(the_event.slug)) limit 2),
    'There is no event with this slug.', 'Several events have this slug, of different organisations.', 'slug'
  );
end
$$;

create or replace function public.the_member (
  email text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return private.only_one(
    array(select distinct m.user_id from public.members m where lower(m.email) = lower(btrim(the_member.email)) limit 2),
    'There is no member with this e-mail address.', 'Several members have this e-mail address.', 'email'
  );
end
$$;

revoke all on function public.the_member(text) from anon;

revoke all on function public.the_member(text) from service_role;

create view public.event_sales with (security_invoker=true) as
  select e.name as event,
    e.status,
    e.starts_at,
    t.name as ticket_type,
    private.money_text(t.price, e.currency) as price,
    t.quantity_sold as sold,
    private.quantity_available(t.*, p.places_left) as available,
    coalesce(a.checked_in, (0)::bigint) as checked_in,
    private.money_text((coalesce(a.ordered, (0)::numeric))::bigint, e.currency) as ordered,
    t.event_id,
    t.id as ticket_type_id,
    e.organisation_id
   from (((public.events e
     join public.ticket_types t on ((t.event_id = e.id)))
     cross join lateral ( select (e.capacity - sum((o.quantity_sold + o.quantity_held))) as places_left
           from public.ticket_types o
          where (o.event_id = e.id)) p)
     left join lateral ( select count(*) filter (where a_1.checked_in) as checked_in,
            sum((a_1.price - a_1.discount)) as ordered
           from public.attendees a_1
          where ((a_1.ticket_type_id = t.id) and (a_1.status <> 'cancelled'::public.attendee_status))) a on (true))
  order by e.starts_at desc, e.id, t."position", t.id;

revoke all on table public.event_sales from anon;

revoke all on table public.event_sales from service_role;

create view public.order_export with (security_invoker=true) as
  select o.organisation_id,
    o.id,
    o.event_id,
    e.name as event,
    e.timezone,
    o.reference,
    o.status,
    o.payment_status,
    o.name,
    o.email,
    o.company,
    o.currency,
    o.subtotal,
    private.money_decimal(o.subtotal, o.currency) as subtotal_decimal,
    o.discount_total,
    private.money_decimal(o.discount_total, o.currency) as discount_total_decimal,
    o.total,
    private.money_decimal(o.total, o.currency) as total_decimal,
    o.amount_paid,
    private.money_decimal(o.amount_paid, o.currency) as amount_paid_decimal,
    o.amount_refunded,
    private.money_decimal(o.amount_refunded, o.currency) as amount_refunded_decimal,
    d.amount_due,
    private.money_decimal(d.amount_due, o.currency) as amount_due_decimal,
    o.payment_method,
    o.promo_code,
    o.source,
    private.rfc3339(o.payment_due_at) as payment_due_at,
    private.local_time(o.payment_due_at, e.timezone) as payment_due_at_local,
    private.rfc3339(o.completed_at) as completed_at,
    private.local_time(o.completed_at, e.timezone) as completed_at_local,
    private.rfc3339(o.cancelled_at) as cancelled_at,
    private.local_time(o.cancelled_at, e.timezone) as cancelled_at_local,
    o.cancellation_reason,
    o.external_id,
    o.metadata,
    private.rfc3339(o.created_at) as created_at,
    private.local_time(o.created_at, e.timezone) as created_at_local,
    private.rfc3339(o.updated_at) as updated_at,
    private.local_time(o.updated_at, e.timezone) as updated_at_local,
    d.amount_refundable,
    private.money_decimal(d.amount_refundable, o.currency) as amount_refundable_decimal
   from ((public.orders o
     join public.events e on ((e.id = o.event_id)))
     cross join lateral ( select private.amount_due(o.*) as amount_due,
            private.amount_refundable(o.*) as amount_refundable) d);

revoke all on table public.order_export from anon;

revoke all on table public.order_export from service_role;

create view public.undelivered_tickets with (security_invoker=true) as
  select a.name,
    a.email,
    a.ticket_email_status,
    a.ticket_email_last_error as error,
    a.ticket_email_sent_at as sent_at,
    e.name as event,
    a.event_id,
    a.id as attendee_id,
    a.organisation_id
   from (public.attendees a
     join public.events e on ((e.id = a.event_id)))
  where (((a.ticket_email_status = any (array['bounced'::public.email_status, 'failed'::public.email_status])) or ((a.ticket_email_status = 'queued'::public.email_status) and (a.ticket_email_last_error is not null))) and (a.status <> 'cancelled'::public.attendee_status))
  order by a.event_id, (lower(a.name)), a.id;

revoke all on table public.undelivered_tickets from anon;

revoke all on table public.undelivered_tickets from service_role;

create trigger attendees_050_fixed_discount
  before update of discount on public.attendees
  for each row
  when ((pg_trigger_depth() = 0))
  execute function
    private.tg__assert_unchanged_with_hint('For another discount cancel the ticket, and register anew with a promo code.', 'discount');

create trigger attendees_350_send_now_reissued
  after update of ticket_code on public.attendees
  for each row
  when (((new.ticket_email_status = 'queued'::public.email_status) and (old.ticket_email_last_error is
    not null) and (new.ticket_code <> old.ticket_code)))
  execute function private.tg_attendees__send_now();

create trigger attendees_350_send_now
  after update of ticket_email_status on public.attendees
  for each row
  when
    (((new.ticket_email_status = 'queued'::public.email_status) and (old.ticket_email_status =
    'queued'::public.email_status) and (old.ticket_email_last_error is not null)))
  execute function private.tg_attendees__send_now();

create trigger event_sales_100_read_only
  instead of insert or delete or update on public.event_sales
  for each row
  execute function private.tg__refuse_write();

create trigger order_export_100_read_only
  instead of insert or delete or update on public.order_export
  for each row
  execute function private.tg__refuse_write();

create trigger undelivered_tickets_100_read_only
  instead of insert or delete or update on public.undelivered_tickets
  for each row
  execute function private.tg__refuse_write();

comment on column public.attendees.ticket_email_status is 'State of the ticket e-mail. Set it to queued to send it once more, or at once where it waits after a failure.';

comment on function api.cancel_attendee(uuid, boolean, public.notify, text, text) is 'Cancels one ticket and tells its holder and the buyer if asked to, gives its place back and takes its price off the order, which is cancelled with its last ticket; or reports the effect of doing so: 200. 404 not_found; 409 invalid_transition.';

comment on function api.cancel_event(uuid, boolean, public.notify, text, text) is 'Cancels an event with its orders and tickets, and tells its attendees and buyers if asked to, or reports the effect of doing so: 200. 404 not_found; 409 invalid_transition.';

comment on function api.cancel_order(uuid, boolean, public.notify, text, text) is 'Cancels an order and its tickets, and tells its attendees and buyer if asked to, or reports the effect of doing so; what was paid becomes refund_due: 200. 404 not_found; 409 invalid_transition.';

comment on function api.list_audit_entries(public.audit_object, uuid, timestamp
  with time zone, text, integer) is 'Who changed what of the objects that the key may read, newest first: { data, has_more, next_cursor }.';

comment on function api.list_notifications(public.notification_type, uuid, timestamp
  with time zone, text, integer) is 'Notifications that the key may read, oldest first, after a given one or since a time if any: { data, has_more, next_cursor }. 404 not_found.';

comment on function api.list_orders(uuid, text, public.order_status, public.payment_status[], boolean, timestamp
  with time zone,
  timestamp with time zone,
  text, text, text, text, timestamp with time zone, text, integer) is 'Orders of the organisation with their attendees, newest first, or by their deadline where that is asked for, by any of the filters: { data, has_more, next_cursor }.';

comment on function api.outbox_depth() is 'What is pending: [{ kind, pending, oldest_seconds, late_seconds, failing, last_error, held }]. late_seconds is how long what is due has waited; failing, how many have failed and are tried again, with the newest error of e-mails; held, whether the database belongs to another installation than the caller.';

comment on function api.resend_ticket(uuid, text, text) is 'Queues the ticket e-mail of an attendee once more, and makes one due at once that waits after a failure: 200. 404 not_found; 409 ticket_not_active, no_address, attendee_erased.';

comment on function api.update_attendee(uuid, jsonb, integer[], text, text) is 'Corrects an attendee, moves them to another ticket type of the event, whose price they do not take, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 attendee_erased, ticket_not_reissuable, already_exists, and of a ticket type event_not_published, event_ended, sold_out, ticket_type_archived, sales_not_started, sales_ended; 412 version_mismatch; 422 validation_failed.';

comment on function api.update_order(uuid, jsonb, integer[], text, text) is 'Corrects the contact of an order, its external_id and metadata, or sets, moves or clears the payment deadline of a pending one, which in the past is due now: 200. 404 not_found; 409 already_exists, order_completed, order_cancelled, order_expired; 412 version_mismatch; 422 validation_failed.';

comment on function private.delete_organisation(text) is 'Deletes an organisation with everything of it, its audit trail included: the number of rows of each table. Refused while one of its keys works, an event of it is not over or cancelled, or an e-mail waits.';

comment on function public.move_event(uuid, timestamp with time zone) is 'Moves an event to another start: its end, check-in points, and sales and promo codes that have not begun or ended move along. Returns the new start in the time zone of the event.';

comment on function public.notify_attendees(uuid, public.notify) is 'Tells the attendees of an event by e-mail what changed since they were last told, ten minutes later, and repeats the offers of its waiting list, or that it was cancelled, with its buyers and its waiting list: mailed those whose orders have e-mails, everybody all of them; of changes nobody who switched these e-mails off. Returns how many e-mails.';

comment on function public.notify_cancelled(uuid, public.notify) is 'Tells the holders of the cancelled tickets of an order, and its buyer, by e-mail, each once: mailed unless the order has no e-mails, everybody all the same. What was cancelled with its event: call notify_attendees. Returns how many e-mails.';

comment on function public.the_attendee(text, text) is 'The id of the attendee with this e-mail address, at the event of this slug or at any; one whose ticket stands comes before cancelled ones. Refuses none, and several.';

comment on function public.the_member(text) is 'The account of the member with this e-mail address. Refuses one that is not there.';

comment on view public.event_sales is 'Tickets sold of each ticket type, what they come to, and how many people are in.';

comment on view public.order_export is 'Every order, a row each, to be exported, with what it comes to and what was paid.';

comment on view public.undelivered_tickets is 'Tickets whose e-mail did not arrive, and why; those that are tried again as well.';

revoke all
  on function api.list_audit_entries(public.audit_object, uuid, timestamp with time zone, text, integer)
  from public;

grant execute
  on function api.list_audit_entries(public.audit_object, uuid, timestamp with time zone, text, integer)
  to scope_events_write;

revoke all
  on function api.list_notifications(public.notification_type, uuid, timestamp with time zone, text, integer)
  from public;

grant execute
  on function api.list_notifications(public.notification_type, uuid, timestamp with time zone, text, integer)
  to scope_events_write;

revoke all
  on function api.list_orders(uuid, text, public.order_status, public.payment_status[], boolean, timestamp
    with time zone, timestamp with time zone, text, text, text, text, timestamp with time zone, text, integer)
  from public;

grant execute
  on function api.list_orders(uuid, text, public.order_status, public.payment_status[], boolean, timestamp
    with time zone, timestamp with time zone, text, text, text, text, timestamp with time zone, text, integer)
  to scope_orders_read;

revoke all on function private.amount_refundable(public.orders) from authenticated;

grant execute on function private.amount_refundable(public.orders) to authenticated;

revoke all on function private.attendee_of_guest(uuid, uuid, jsonb, uuid[]) from public;

grant execute on function private.attendee_of_guest(uuid, uuid, jsonb, uuid[]) to scope_attendees_write;

revoke all on function private.cancelled_money_json(uuid[]) from public;

revoke all on function private.cancelled_money_of(public.email_kind, public.attendees) from public;

revoke all on function private.carry_out_by_hand(jsonb, uuid, uuid, uuid) from public;

revoke all on function private.clock_time(timestamp with time zone, text) from public;

revoke all on function private.confirm_anew(public.orders, public.notify, private.recipient[]) from public;

revoke all on function private.delete_organisation(text) from public;

revoke all on function private.event_to_plan(uuid) from public;

revoke all on function private.has_offer(uuid, text) from public;

revoke all on function private.index_expression(text) from public;

revoke all on function private.is_at_former_address(public.attendees, public.attendees) from public;

grant execute
  on function private.is_at_former_address(public.attendees, public.attendees)
  to scope_attendees_write;

revoke all on function private.is_deleted_wholly(uuid) from public;

grant execute on function private.is_deleted_wholly(uuid) to api_key, authenticated;

revoke all on function private.is_month_for_day(date, date) from public;

revoke all on function private.like_pattern(text) from public;

revoke all on function private.lock_attendees_of_import(uuid, uuid, jsonb) from public;

grant execute on function private.lock_attendees_of_import(uuid, uuid, jsonb) to scope_attendees_write;

revoke all on function private.lock_event_of(uuid) from public;

grant execute on function private.lock_event_of(uuid) to scope_attendees_write;

revoke all on function private.orders_of_address(public.attendees) from public;

revoke all
  on function private.page_of_audit_entries(public.audit_object[], uuid, timestamp with time zone, uuid, integer)
  from public;

grant execute
  on function private.page_of_audit_entries(public.audit_object[], uuid, timestamp with time zone, uuid, integer)
  to scope_events_write;

revoke all
  on function private.page_of_notifications(public.notification_type[], xid8, uuid, timestamp
    with time zone, integer)
  from public;

grant execute
  on function private.page_of_notifications(public.notification_type[], xid8, uuid, timestamp
    with time zone, integer)
  to scope_events_write;

revoke all on function private.quantity_available(public.ticket_types, bigint) from public;

grant execute
  on function private.quantity_available(public.ticket_types, bigint)
  to authenticated, scope_events_read, scope_events_write;

revoke all on function private.recipient_of_entry(public.waiting_list_entries, public.notify) from public;

revoke all on function private.recipients_of_cancellation(public.events, uuid[], public.notify) from public;

revoke all
  on function private.recipients_of_offers(public.events, public.notify, timestamp with time zone)
  from public;

revoke all on function private.refuse_changed(jsonb, jsonb, text[], text) from public;

grant execute on function private.refuse_changed(jsonb, jsonb, text[], text) to api_key, authenticated;

revoke all on function private.refuse_month_for_day(timestamp with time zone, uuid) from public;

revoke all on function private.refuse_taken_by_order(public.orders, xid) from public;

revoke all on function private.search_words(text) from public;

grant execute on function private.search_words(text) to api_key;

revoke all on function private.takes_no_mail(text) from public;

revoke all on function private.tell_of_cancelled_tickets(uuid, uuid[], public.notify, boolean) from public;

revoke all on function private.tg__assert_unchanged_with_hint() from public;

revoke all on function private.tg_attendees__send_now() from public;

revoke all on function private.told_together(jsonb, jsonb) from public;

revoke all on function private.trimmed_values(jsonb, jsonb) from public;

grant execute on function private.trimmed_values(jsonb, jsonb) to authenticated;

revoke all on function private.warning_of_amount(bigint, bigint, text, text, text) from public;

revoke all on function private.warning_of_buyer(public.attendees, public.attendees) from public;

grant execute on function private.warning_of_buyer(public.attendees, public.attendees) to scope_attendees_write;

revoke all on function private.warning_of_former_addresses(bigint) from public;

grant execute on function private.warning_of_former_addresses(bigint) to scope_attendees_write;

revoke all on function private.warning_of_kept_price(public.attendees, public.attendees) from public;

grant execute
  on function private.warning_of_kept_price(public.attendees, public.attendees)
  to scope_attendees_write;

revoke all on function private.warning_of_offer() from public;

revoke all on function private.warning_of_refund_reference(uuid, text) from public;

grant execute on function private.warning_of_refund_reference(uuid, text) to scope_orders_write;

revoke all on function private.warning_of_repeated_reference(text, uuid, uuid) from public;

revoke all on function private.warning_of_waiting_list(uuid) from public;

grant execute on function private.warning_of_waiting_list(uuid) to scope_events_write;

revoke all on function private.warning_of_windows(public.events, public.events) from public;

grant execute on function private.warning_of_windows(public.events, public.events) to scope_events_write;

revoke all on function private.warnings_of_payment(uuid, bigint, timestamp with time zone) from public;

grant execute
  on function private.warnings_of_payment(uuid, bigint, timestamp with time zone)
  to scope_orders_write;

revoke all on function private.warnings_of_refund(uuid, bigint, timestamp with time zone) from public;

grant execute on function private.warnings_of_refund(uuid, bigint, timestamp with time zone) to scope_orders_write;

revoke all on function private.way_to_held_place(bigint) from public;

revoke all on function private.with_buyers(private.recipient[], uuid[], public.notify) from public;

revoke all on function private.without_empty_lines(jsonb) from public;

grant execute on function private.without_empty_lines(jsonb) to scope_attendees_write;

revoke all on function public.move_event(uuid, timestamp with time zone) from public;

grant execute on function public.move_event(uuid, timestamp with time zone) to authenticated;

revoke all on function public.notify_cancelled(uuid, public.notify) from public;

grant execute on function public.notify_cancelled(uuid, public.notify) to authenticated;

revoke all on function public.the_member(text) from public;

grant execute on function public.the_member(text) to authenticated;

revoke all (ticket_type_id) on table public.attendees from scope_attendees_write;

grant insert (ticket_type_id), update (ticket_type_id) on table public.attendees to scope_attendees_write;

revoke all (company) on table public.orders from scope_orders_write;

grant update (company) on table public.orders to scope_orders_write;

revoke all (email) on table public.orders from scope_orders_write;

grant update (email) on table public.orders to scope_orders_write;

revoke all (external_id) on table public.orders from scope_orders_write;

grant update (external_id) on table public.orders to scope_orders_write;

revoke all (metadata) on table public.orders from scope_orders_write;

grant update (metadata) on table public.orders to scope_orders_write;

revoke all (name) on table public.orders from scope_orders_write;

grant update (name) on table public.orders to scope_orders_write;

revoke all on table public.event_sales from authenticated;

grant select on table public.event_sales to authenticated;

revoke all on table public.event_sales from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.event_sales
  to postgres;

revoke all on table public.order_export from authenticated;

grant select on table public.order_export to authenticated;

revoke all on table public.order_export from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.order_export
  to postgres;

grant select on table public.order_export to scope_orders_read;

revoke all on table public.undelivered_tickets from authenticated;

grant select on table public.undelivered_tickets to authenticated;

revoke all on table public.undelivered_tickets from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.undelivered_tickets
  to postgres;

comment on column public.event_sales.event is 'Name of the event.';
comment on column public.event_sales.status is 'Status of the event.';
comment on column public.event_sales.starts_at is 'When the event starts.';
comment on column public.event_sales.ticket_type is 'Name of the ticket type.';
comment on column public.event_sales.price is 'Price of a ticket, with its currency.';
comment on column public.event_sales.sold is 'Tickets that hold a place.';
comment on column public.event_sales.available is 'How many are left: neither sold nor held for the waiting list, and not more than the capacity of the event allows. Empty: no limit.';
comment on column public.event_sales.checked_in is 'How many people are in.';
comment on column public.event_sales.ordered is 'What its tickets come to, less discounts, paid or not.';
comment on column public.event_sales.event_id is 'The event.';
comment on column public.event_sales.ticket_type_id is 'The ticket type.';
comment on column public.event_sales.organisation_id is 'The organisation that it belongs to.';
comment on column public.order_export.organisation_id is 'The organisation that it belongs to.';
comment on column public.order_export.id is 'Identifier of the order.';
comment on column public.order_export.event_id is 'The event that it belongs to.';
comment on column public.order_export.event is 'Name of the event.';
comment on column public.order_export.timezone is 'IANA name of the zone the event is held in, which is that of the local times.';
comment on column public.order_export.reference is 'Short code of the order that can be read over the telephone.';
comment on column public.order_export.status is 'pending, completed when nothing is due, or cancelled.';
comment on column public.order_export.payment_status is 'Follows from status and amounts.';
comment on column public.order_export.name is 'Name of the contact, who is the buyer.';
comment on column public.order_export.email is 'E-mail address of the contact.';
comment on column public.order_export.company is 'Company of the contact.';
comment on column public.order_export.currency is 'ISO 4217 code, three capital letters.';
comment on column public.order_export.subtotal is 'Sum of the prices of its tickets, in minor units.';
comment on column public.order_export.subtotal_decimal is 'subtotal as a decimal.';
comment on column public.order_export.discount_total is 'Sum of the discounts of its tickets, in minor units.';
comment on column public.order_export.discount_total_decimal is 'discount_total as a decimal.';
comment on column public.order_export.total is 'subtotal minus discount_total, in minor units.';
comment on column public.order_export.total_decimal is 'total as a decimal.';
comment on column public.order_export.amount_paid is 'Sum of the payments that are not voided, in minor units.';
comment on column public.order_export.amount_paid_decimal is 'amount_paid as a decimal.';
comment on column public.order_export.amount_refunded is 'Sum of the refunds, in minor units.';
comment on column public.order_export.amount_refunded_decimal is 'amount_refunded as a decimal.';
comment on column public.order_export.amount_due is 'What is still to be paid, in minor units.';
comment on column public.order_export.amount_due_decimal is 'amount_due as a decimal.';
comment on column public.order_export.payment_method is 'How it is paid. Empty: its tickets are complimentary.';
comment on column public.order_export.promo_code is 'The code that the buyer gave.';
comment on column public.order_export.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.order_export.payment_due_at is 'When it is to be paid by, in UTC. Empty: no deadline.';
comment on column public.order_export.payment_due_at_local is 'payment_due_at as clocks at the event show it.';
comment on column public.order_export.completed_at is 'When it was completed, in UTC.';
comment on column public.order_export.completed_at_local is 'completed_at as clocks at the event show it.';
comment on column public.order_export.cancelled_at is 'When it was cancelled, in UTC.';
comment on column public.order_export.cancelled_at_local is 'cancelled_at as clocks at the event show it.';
comment on column public.order_export.cancellation_reason is 'Why it was cancelled: requested by somebody, expired unpaid, or event_cancelled.';
comment on column public.order_export.external_id is 'The organiser''s own identifier.';
comment on column public.order_export.metadata is 'The organiser''s own flat object.';
comment on column public.order_export.created_at is 'When it was made, in UTC.';
comment on column public.order_export.created_at_local is 'created_at as clocks at the event show it.';
comment on column public.order_export.updated_at is 'When it was last changed, in UTC.';
comment on column public.order_export.updated_at_local is 'updated_at as clocks at the event show it.';
comment on column public.order_export.amount_refundable is 'What is to be returned: paid beyond what is owed and not refunded yet, in minor units.';
comment on column public.order_export.amount_refundable_decimal is 'amount_refundable as a decimal.';
comment on column public.undelivered_tickets.name is 'Name of the person.';
comment on column public.undelivered_tickets.email is 'Address that the ticket was sent to.';
comment on column public.undelivered_tickets.ticket_email_status is 'bounced or failed, or queued: it has failed for now, and is tried again.';
comment on column public.undelivered_tickets.error is 'Why it was not sent or came back.';
comment on column public.undelivered_tickets.sent_at is 'When it was last sent.';
comment on column public.undelivered_tickets.event is 'Name of the event.';
comment on column public.undelivered_tickets.event_id is 'The event. Filter by it.';
comment on column public.undelivered_tickets.attendee_id is 'The attendee.';
comment on column public.undelivered_tickets.organisation_id is 'The organisation that it belongs to.';
