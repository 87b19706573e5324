-- one form and repairs. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop function api.cancel_attendee(uuid, boolean, public.notify, text, text);

drop function api.cancel_event(uuid, boolean, public.notify, text, text);

drop function api.cancel_order(uuid, boolean, public.notify, text, text);

drop function
  api.list_attendees(uuid, uuid, uuid, text, public.attendee_status, boolean, public.email_status, text, text, text,
  timestamp with time zone, text, integer);

drop function api.record_refund(uuid, bigint, public.payment_method, text, timestamp
  with time zone, text, text, text);

drop function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
  with time zone, public.webhook_delivery_status, text, text);

drop function api.update_event(uuid, jsonb, public.notify, boolean, integer[], text, text);

drop function api.update_order(uuid, jsonb, integer[], text, text);

drop function private.assert_valid_name(text);

drop function private.confirm_anew(public.orders, public.notify, private.recipient[]);

drop function private.create_api_key(text, text, public.api_scope[], text, bytea, timestamp
  with time zone, uuid, public.api_key_confirmations);

drop function private.notify_of_cancelled_tickets(public.notify, uuid, uuid);

drop function private.notify_of_event(uuid, public.notify);

drop function
  private.page_of_attendees(uuid, uuid, uuid, public.attendee_status, boolean, public.email_status, text, timestamp
  with time zone, text[], uuid, integer);

drop function private.refuse(integer, text, text, text, jsonb, text);

drop function private.refuse_contact(text, text);

drop function private.refuse_value(text, text, text);

drop function private.row_meant(jsonb, jsonb, text, text);

drop function
  private.search_attendees(text[], text, uuid, uuid, public.attendee_status, boolean, public.email_status, timestamp
  with time zone, uuid, integer);

drop function private.tell(public.email_kind, private.recipient[], jsonb, timestamp with time zone, text[]);

drop function private.tell_of_cancelled_tickets(uuid, uuid[], public.notify, boolean);

drop function public.create_api_key(text, public.api_scope[], uuid, timestamp
  with time zone, public.api_key_confirmations);

drop function public.notify_attendees(uuid, public.notify);

drop function public.notify_cancelled(uuid, public.notify);

create table private.cancellations (
  event_id uuid not null,
  claims jsonb not null,
  notify public.notify,
  message text,
  attempts integer not null default 0,
  next_attempt_at timestamp with time zone not null default now(),
  constraint cancellations_pkey primary key (event_id)
);

alter table private.cancellations
  enable row level security;

create or replace function api.allow_client (
  secret_hash text,
  client_id text,
  name text,
  returns_to text,
  resource text,
  scopes public.api_scope[],
  days integer
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_most_grants constant integer := 100;
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
  v_expires_at timestamptz := now() + make_interval(days => least(greatest(days, 1), 30));
  v_grant public.api_keys;
begin
  if v_key.id is null then
    perform private.refuse(401, 'invalid_api_key', 'Nobody is signed in.', hint => 'Sign in with a key for people.');
  end if;
  -- Before any of its grants, as whoever revokes it. Who allows twice at once finds the grant of the first.
  perform from public.api_keys k where k.id = v_key.id for no key update;
  perform private.act_as(v_key);

  select k.* into v_grant
  from private.oauth_grants g
  join public.api_keys k on k.id = g.api_key_id
  where g.sign_in_hash = decode(allow_client.secret_hash, 'hex')
    and g.client_id = allow_client.client_id
    and g.resource = allow_client.resource
    and g.returns_to = allow_client.returns_to
    and k.parent_id = v_key.id
    and private.is_usable_key(k)
  order by k.id desc
  limit 1
  for no key update of k;

  if found then
    update public.api_keys k
    set
      scopes = (select array_agg(distinct s order by s) from unnest(v_grant.scopes || allow_client.scopes) s),
      expires_at = v_expires_at
    where k.id = v_grant.id
    returning k.* into v_grant;
  else
    if (select count(*) from public.api_keys k where k.parent_id = v_key.id and private.is_usable_key(k)) >= v_most_grants then
      perform private.refuse(
        409, 'too_many_grants', format('A key has at most %s grants that can be used.', v_most_grants),
        hint => 'End some of them at /oauth/grants, or sign in with another key.'
      );
    end if;
    insert into public.api_keys (organisation_id, kind, parent_id, name, prefix, scopes, expires_at)
    values (
      v_key.organisation_id, 'grant', v_key.id, allow_client.name,
      'usher_grant_' || left(replace(gen_random_uuid()::text, '-', ''), 12), allow_client.scopes, v_expires_at
    )
    returning * into v_grant;
    insert into private.oauth_grants (api_key_id, client_id, returns_to, resource, sign_in_hash)
    values (
      v_grant.id, allow_client.client_id, allow_client.returns_to, allow_client.resource,
      decode(allow_client.secret_hash, 'hex')
    );
  end if;

  update private.oauth_clients c set used_at = now() where c.client_id = allow_client.client_id;
  return json_build_object('id', v_grant.id);
end
$$;

create or replace function api.cancel_attendee (
  attendee_id uuid,
  dry_run boolean default null::boolean,
  notify public.notify default null::public.notify,
  idempotency_key text default null::text,
  request_fingerprint text default null::text,
  amount_retained bigint default null::bigint,
  message text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_affected jsonb;
  v_refundable bigint;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('attendee_id');
  end if;
  begin
    perform private.lock_order_of(attendee_id);
    select a.* into v_attendee from public.attendees a where a.id = cancel_attendee.attendee_id for no key update;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    if v_attendee.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This attendee is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    -- Whether the order changes, too: cancelling its last ticket cancels it, and cancelling one with a price lowers its
    -- totals.
    v_affected := jsonb_build_object('attendees', 1, 'currency', v_attendee.currency, 'orders', (v_attendee.price > 0 or not exists (
      select from public.attendees a
      where a.order_id = v_attendee.order_id and a.id <> v_attendee.id and a.status <> 'cancelled'
    ))::integer);
    v_refundable := private.refundable_of(v_attendee.order_id);
    if dry_run then
      v_data := private.attendee_json(v_attendee);
    end if;
    update public.attendees a set status = 'cancelled' where a.id = v_attendee.id returning * into v_attendee;
    if amount_retained > 0 then
      perform private.retain_of(v_attendee.order_id, amount_retained);
    end if;
    v_affected := v_affected || jsonb_build_object('refund_due', private.refundable_of(v_attendee.order_id) - v_refundable);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run, v_affected, private.notify_of_cancelled_tickets(notify, v_attendee.order_id, v_attendee.id, message)
      ),
      'data', coalesce(v_data, private.attendee_json(v_attendee))
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'cancel_attendee', jsonb_build_object('attendee_id', attendee_id, 'notify', notify, 'amount_retained', amount_retained, 'message', message),
      v_outcome -> 'effect'
    );
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.cancel_event (
  event_id uuid,
  dry_run boolean default null::boolean,
  notify public.notify default null::public.notify,
  idempotency_key text default null::text,
  request_fingerprint text default null::text,
  message text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_affected jsonb;
  v_event public.events;
  v_new public.events;
  v_is_large boolean;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select e.* into v_event from public.events e where e.id = cancel_event.event_id;
    -- One that is being cancelled is locked for minutes.
    if v_event.cancelling_since is null then
      select e.* into v_event from public.events e where e.id = cancel_event.event_id for no key update;
    end if;
    if v_event.id is null then
      perform private.refuse_not_found('event_id');
    end if;
    v_is_large := v_event.cancelling_since is not null or private.places_taken(event_id) > 5000;
    -- Counted before they are cancelled, and under the exclusive event lock, so that the numbers are of what is cancelled at once.
    if not v_is_large then
      perform private.lock_event_exclusive(event_id);
    end if;
    v_affected := private.affected_by_event(event_id, is_cancelled => true);
    if v_is_large then
      v_outcome := private.cancel_later(v_event, v_affected, dry_run, notify, message);
    else
      v_new := private.set_event_status(event_id, 'cancelled');
      v_outcome := json_build_object(
        'status', 200,
        'effect', private.effect_json(dry_run, v_affected, private.notify_of_event(event_id, notify, message)),
        'data', private.event_json(case when dry_run then v_event else v_new end)
      );
    end if;
    perform private.undo_if_dry_run(dry_run);
    if v_event.cancelling_since is null then
      perform private.assert_confirmed(
        'cancel_event',
        jsonb_build_object(
          'event_id', event_id, 'notify', notify, 'message', message,
          'announced', private.announced(v_event) || jsonb_build_object('slug', v_event.slug)
        ),
        v_outcome -> 'effect', v_affected -> 'hidden'
      );
    end if;
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.cancel_order (
  order_id uuid,
  dry_run boolean default null::boolean,
  notify public.notify default null::public.notify,
  idempotency_key text default null::text,
  request_fingerprint text default null::text,
  amount_retained bigint default null::bigint,
  message text default null::text
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
  v_refundable bigint;
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
    v_refundable := private.amount_refundable(v_order);
    if dry_run then
      v_data := private.whole_order_json(v_order.id);
    end if;
    update public.orders o set status = 'cancelled', amount_retained = coalesce(cancel_order.amount_retained, o.amount_retained)
    where o.id = v_order.id
    returning * into v_order;
    v_affected := v_affected || jsonb_build_object('refund_due', private.amount_refundable(v_order) - v_refundable);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(dry_run, v_affected, private.notify_of_cancelled_tickets(notify, v_order.id, message => message)),
      'data', coalesce(v_data, private.whole_order_json(v_order.id))
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'cancel_order', jsonb_build_object('order_id', order_id, 'notify', notify, 'amount_retained', amount_retained, 'message', message),
      v_outcome -> 'effect'
    );
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.carry_out_cancellation (
  event_id uuid
)
  returns boolean
  language plpgsql
  security definer
  set search_path to ''
  set statement_timeout to '10min'
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_request private.cancellations;
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = carry_out_cancellation.event_id for no key update skip locked;
  select c.* into v_request from private.cancellations c where c.event_id = v_event.id;
  if not found then
    return false;
  end if;
  perform
    set_config('request.jwt.claims', v_request.claims::text, true),
    set_config('usher.checked', v_request.claims ->> 'organisation_id', true);
  if v_event.cancelling_since is not null then
    v_event := private.set_event_status(v_event.id, 'cancelled');
  end if;
  if v_event.status = 'cancelled' then
    perform private.notify_of_event(v_event.id, v_request.notify, v_request.message);
  end if;
  delete from private.cancellations c where c.event_id = v_event.id;
  return true;
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
        'counted_on_arrival', c.scanned_at = c.created_at,
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

create or replace function api.claim_cancellations (
  "limit" integer
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_ids uuid[];
begin
  if private.is_held() then
    return '[]';
  end if;
  with claimed as (
    update private.cancellations c
    set attempts = c.attempts + 1, next_attempt_at = now() + interval '2 seconds' * 2 ^ least(c.attempts, 8)
    where c.event_id = any (array(
      select o.event_id
      from private.cancellations o
      join public.events e on e.id = o.event_id
      where o.next_attempt_at <= now()
      order by o.next_attempt_at
      limit claim_cancellations."limit"
      for no key update skip locked
    ))
    returning c.event_id
  )
  select array_agg(c.event_id) into v_ids from claimed c;
  return (select coalesce(json_agg(json_build_object('id', i)), '[]') from unnest(v_ids) i);
end
$$;

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
  v_waiting jsonb;
  v_event public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  v_warning := private.warning_of_waiting_list(event_id);
  v_waiting := private.affected_by_event(event_id, is_cancelled => true) -> 'waiting_list';
  v_event := private.set_event_status(event_id, 'completed');
  perform private.assert_completion_confirmed(v_event, v_waiting);
  return private.record_outcome(
    idempotency_key, request_fingerprint,
    private.with_warnings(json_build_object('status', 200, 'data', private.event_json(v_event)), v_warning)
  );
end
$$;

create or replace function api.export_attendees_page (
  event_id uuid default null::uuid,
  ticket_type_id uuid default null::uuid,
  status public.attendee_status default null::public.attendee_status,
  checked_in boolean default null::boolean,
  updated_since timestamp with time zone default null::timestamp with time zone,
  cursor text default null::text,
  size integer default 250
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- Of those that changed there may be few: more are looked at.
  v_scanned integer := case when updated_since is null then size else size * 10 end;
  v_ids uuid[];
begin
  perform private.assert_own_event(export_attendees_page.event_id);
  perform private.assert_own_ticket_type(export_attendees_page.ticket_type_id);
  v_ids := private.page_of_attendees(
    null, export_attendees_page.event_id, export_attendees_page.ticket_type_id, export_attendees_page.status,
    export_attendees_page.checked_in, null, null, null, null, private.before_export_cursor(cursor), v_scanned
  );
  return private.export_page(
    array(
      select to_json(v)
      from unnest(v_ids) with ordinality i (id, place)
      cross join lateral (
        -- Not of the view: members who may read that see no codes.
        select x.*, a.ticket_code from public.attendee_export x join public.attendees a on a.id = x.id where x.id = i.id offset 0
      ) v
      where export_attendees_page.updated_since is null
        or exists (select from public.attendees a where a.id = i.id and a.updated_at >= export_attendees_page.updated_since)
      order by i.place
      limit size + 1
    ),
    size,
    case when cardinality(v_ids) = v_scanned then private.encode_cursor(v_ids[v_scanned]) end
  );
end
$$;

create or replace function api.get_confirmation (
  secret_hash text,
  confirmation_id uuid
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
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
  v_asked private.confirmations;
begin
  select c.* into v_asked
  from private.confirmations c
  where c.id = confirmation_id and c.organisation_id = v_key.organisation_id;
  if not found then
    return null;
  end if;
  return (
    select json_build_object(
      'state', case
        when v_asked.spent_at is not null then 'spent'
        when v_asked.expires_at <= now() then 'expired'
        -- They are not those that were asked for: so many others in their place would count as much.
        when v_asked.operation = 'erase_person'
          and private.digest_of_people(array(select r from private.rows_to_erase(v_asked.organisation_id, v_asked.arguments) r))
            is distinct from v_asked.arguments ->> 'digest' then 'expired'
        when v_asked.confirmed_at is not null then 'confirmed'
        else 'open'
      end,
      'operation', v_asked.operation,
      'scope', v_asked.scope,
      'may_confirm', v_asked.scope = any (v_key.scopes),
      'asked_by', json_build_object('name', k.name, 'prefix', k.prefix, 'kind', k.kind),
      'expires_at', private.rfc3339(v_asked.expires_at),
      -- Of people and money only for whoever may do it.
      'effect', case when v_asked.scope = any (v_key.scopes) then
        case when 'orders:read' = any (v_key.scopes) or not v_asked.operation like 'cancel%' then v_asked.effect
          else v_asked.effect || '{"refund_due": null}' end
      end,
      'changes', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'changes' end,
      'news', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'news' end,
      'message', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'message' end,
      'steps', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'steps' end,
      'more_steps', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'more_steps' end,
      'subject', case when v_asked.scope = any (v_key.scopes) then private.subject_of_confirmation(v_asked) end
    )
    from public.api_keys k
    where k.id = v_asked.api_key_id
  );
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
  "limit" integer default null::integer,
  inside boolean default null::boolean
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
    select o.id into v_order_id from public.orders o where o.reference = private.code_form(list_attendees.reference);
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
        case when v_read > 1000 then updated_since end, case when v_read > 1000 then v_patterns end, v_before, v_chunk, list_attendees.inside
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
        and (list_attendees.inside is null or a.inside = list_attendees.inside)
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

create or replace function api.list_emails (
  order_id uuid default null::uuid,
  attendee_id uuid default null::uuid,
  kind public.email_kind default null::public.email_kind,
  status public.email_status default null::public.email_status,
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
  v_ids uuid[] := private.page_of_emails(order_id, attendee_id, kind, status, private.before_cursor(cursor), v_size + 1);
begin
  return private.page(
    array(select j.json from unnest(v_ids) with ordinality i (id, place) cross join lateral private.email_json(i.id) j (json) order by i.place),
    v_size
  );
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
      v_ids := array(select o.id from public.orders o where o.reference = private.code_form(list_orders.reference));
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

create or replace function api.poll_queues()
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  as $$
declare
  v_held constant boolean := private.is_held();
begin
  return array_to_json(array_remove(
    array[
      case when private.are_notifications_queued() or (not v_held and private.are_webhooks_due()) then 'webhooks' end,
      case when not v_held and private.are_emails_due() then 'ticket_emails' end,
      case when private.are_logos_due() then 'logos' end,
      case when not v_held and private.are_cancellations_due() then 'cancellations' end
    ],
    null
  ));
end
$$;

create or replace function api.purge (
  retention_days integer default 30,
  "limit" integer default 1000,
  audit_retention_days integer default 365
)
  returns integer
  language plpgsql
  security definer
  set search_path to ''
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_hashjoin to 'off'
  set enable_mergejoin to 'off'
  set enable_sort to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_before timestamptz := now() - make_interval(days => greatest(retention_days, 1));
  v_purged integer;
  v_rows integer;
begin
  perform set_config('usher.erasing', 'on', true);
  delete from private.idempotency_records r
  where (r.family_id, r.idempotency_key) in (
    select e.family_id, e.idempotency_key from private.idempotency_records e
    where e.expires_at < now() order by e.expires_at limit purge."limit" for update skip locked
  );
  get diagnostics v_purged = row_count;

  v_purged := v_purged + private.purge_oauth("limit") + private.purge_confirmations("limit");

  -- A plan that was applied or is too old still says so for an hour.
  delete from private.event_plans p
  where p.id = any (array(
    select o.id from private.event_plans o
    where o.expires_at < now() - interval '1 hour' order by o.expires_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from private.export_links l
  where l.id = any (array(
    select o.id from private.export_links o
    where o.expires_at < now() - interval '1 hour' order by o.expires_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.webhook_deliveries d
  where d.id = any (array(
    select o.id from public.webhook_deliveries o
    where o.created_at < v_before
      and (
        o.status <> 'pending'
        or exists (select from public.webhook_endpoints w where w.id = o.webhook_endpoint_id and w.status = 'disabled')
      )
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.notifications n
  where n.id = any (array(
    select o.id from public.notifications o
    where o.created_at < v_before
      and not exists (select from public.webhook_deliveries d where d.notification_id = o.id)
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = o.organisation_id and q.transaction_id = o.transaction_id
      )
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.emails e
  where e.id = any (array(
    select o.id from public.emails o
    where o.created_at < v_before and o.status <> 'queued' order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  -- The audit trail is kept for longer, without the person.
  with purged as (
    delete from public.waiting_list_entries w
    where w.id = any (array(
      select o.id from public.waiting_list_entries o
      where o.updated_at < v_before and o.status in ('expired', 'cancelled')
      order by o.updated_at limit purge."limit" for update skip locked
    ))
    returning w.id
  ),
  forgotten as (
    update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
    from purged p
    where e.object_id = p.id and e.changes is not null
  )
  select count(*) into v_rows from purged;
  v_purged := v_purged + v_rows;

  delete from public.audit_entries e
  where e.id = any (array(
    select o.id from public.audit_entries o
    where o.created_at < now() - make_interval(days => greatest(audit_retention_days, 1))
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  perform set_config('usher.erasing', '', true);
  -- Once everything else is done, because it reads the subscriptions of all endpoints. A replaced one is needed only for queued transactions
  -- that had committed before it was replaced.
  if v_purged >= "limit" then
    return v_purged;
  end if;
  delete from private.webhook_subscriptions s
  where s.id in (
    select c.id
    from (
      select
        s.id,
        s.organisation_id,
        lead(s.transaction_id) over changes as next_transaction_id,
        lead(s.snapshot) over changes as next_snapshot
      from private.webhook_subscriptions s
      window changes as (partition by s.webhook_endpoint_id order by s."position")
    ) c
    where c.next_snapshot is not null
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = c.organisation_id
          and (q.transaction_id = c.next_transaction_id or pg_visible_in_snapshot(q.transaction_id, c.next_snapshot))
      )
    limit purge."limit"
  );
  get diagnostics v_rows = row_count;
  return v_purged + v_rows;
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
  request_fingerprint text default null::text,
  dry_run boolean default null::boolean
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
  v_data json;
  v_warning jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if dry_run is not true then
    perform private.assert_not_by_name('order_id');
  end if;
  begin
    if external_reference is not null then
      v_warning := private.warning_of_refund_reference(order_id, external_reference);
    end if;
    select o.* into v_order from public.orders o where o.id = record_refund.order_id for no key update;
    if dry_run then
      v_data := private.whole_order_json(order_id);
    end if;
    insert into public.refunds (order_id, amount, method, currency, refunded_at, external_reference)
    values (
      record_refund.order_id, record_refund.amount, coalesce(record_refund.method, 'bank_transfer'), record_refund.currency,
      coalesce(record_refund.refunded_at, now()), record_refund.external_reference
    );
    v_outcome := private.with_warnings(
      json_build_object(
        'status', case when dry_run then 200 else 201 end,
        'effect', private.effect_of_change(dry_run, v_order),
        'data', coalesce(v_data, private.whole_order_json(order_id))
      ),
      variadic array_prepend(v_warning, private.warnings_of_refund(order_id, amount, refunded_at))
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_refund_confirmed(jsonb_build_object(
      'order_id', order_id, 'amount', amount, 'method', method, 'currency', currency, 'refunded_at', refunded_at,
      'external_reference', external_reference
    ));
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.redeliver_webhooks (
  webhook_endpoint_id uuid,
  since timestamp with time zone default null::timestamp with time zone,
  until timestamp with time zone default null::timestamp with time zone,
  status public.webhook_delivery_status default null::public.webhook_delivery_status,
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
  v_statuses public.webhook_delivery_status[] :=
    case when redeliver_webhooks.status is null then '{failed,pending}' else array[redeliver_webhooks.status] end;
  v_webhook_endpoint public.webhook_endpoints;
  v_redelivered integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- The endpoint is locked before its deliveries, as everywhere.
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = redeliver_webhooks.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.assert_sendable(webhook_endpoint_id, 'webhook_endpoint.test');

  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id in (
    select f.id
    from public.webhook_deliveries f
    where f.webhook_endpoint_id = v_webhook_endpoint.id
      and f.status = any (v_statuses)
      and (f.status <> 'pending' or (f.next_attempt_at > now() and coalesce(f.claimed_until <= now(), true)))
      and f.type = any (v_webhook_endpoint.types)
      and (since is null or f.updated_at >= since)
      and (until is null or f.created_at < until)
    order by f.id
    limit 10000
    for no key update
  );
  get diagnostics v_redelivered = row_count;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object(
      'object', 'webhook_redelivery', 'webhook_endpoint_id', webhook_endpoint_id, 'redelivered', v_redelivered
    )
  ));
end
$$;

create or replace function api.resend_email (
  email_id uuid,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
  as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.resend_email(email_id))
  );
end
$$;

create or replace function api.resolve_api_key (
  key_hash text
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_key public.api_keys;
begin
  select k.* into v_key
  from private.api_key_hashes h
  join public.api_keys k on k.id = h.api_key_id
  where h.key_hash = decode(resolve_api_key.key_hash, 'hex');

  if not private.is_usable_key(v_key) then
    perform private.refuse_key(v_key);
  end if;

  update public.api_keys k set last_used_at = now()
  where k.id = v_key.id and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute');

  return (
    select json_build_object(
      'api_key_id', v_key.id,
      'kind', v_key.kind,
      'family_id', v_key.family_id,
      'organisation_id', v_key.organisation_id,
      'scopes', to_jsonb(v_key.scopes),
      'rate_limit_per_minute', p.rate_limit_per_minute
    )
    from public.organisations o
    join public.plans p on p.name = o.plan
    where o.id = v_key.organisation_id
  );
end
$$;

create or replace function api.start_sign_in (
  key_hash text,
  secret_hash text
)
  returns integer
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_key public.api_keys;
  v_expires_at timestamptz;
begin
  select k.* into v_key
  from private.api_key_hashes h
  join public.api_keys k on k.id = h.api_key_id
  where h.key_hash = decode(start_sign_in.key_hash, 'hex');
  if not private.is_usable_key(v_key) then
    perform private.refuse_key(v_key);
  elsif v_key.kind <> 'person' then
    perform private.refuse(403, 'forbidden', 'This API key is for a program.', hint => 'Sign in with a key for people.');
  end if;

  insert into private.oauth_sign_ins (secret_hash, api_key_id, expires_at)
  values (
    decode(start_sign_in.secret_hash, 'hex'), v_key.id, least(now() + interval '30 days', v_key.expires_at)
  )
  returning expires_at into v_expires_at;
  return ceil(extract(epoch from v_expires_at - now()));
end
$$;

create or replace function api.update_event (
  event_id uuid,
  changes jsonb,
  notify public.notify default null::public.notify,
  dry_run boolean default null::boolean,
  if_version integer[] default null::integer[],
  idempotency_key text default null::text,
  request_fingerprint text default null::text,
  message text default null::text
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
    v_notice := private.notify_of_event(event_id, notify, message);
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
      private.warning_of_windows(v_event, v_new), private.warning_of_timezone(v_event, v_new)
    );
    perform private.undo_if_dry_run(dry_run);
    if private.is_asking() then
      v_news := private.news_of_event(v_event, v_new, v_notice);
      perform private.assert_notice_confirmed(
        'update_event',
        jsonb_build_object(
          'event_id', event_id, 'changes', changes, 'notify', notify, 'if_version', if_version, 'news', v_news -> 'news',
          'message', message
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
  request_fingerprint text default null::text,
  expire_now boolean default null::boolean,
  dry_run boolean default null::boolean
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
  v_new public.orders;
  v_data json;
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
      v_new.payment_due_at := private.deadline_to_expire(v_order, (changes ->> 'payment_due_at')::timestamptz);
    end if;
    if dry_run then
      v_data := private.whole_order_json(v_order.id);
    end if;
    update public.orders o set
      (name, email, company, amount_retained, payment_due_at, external_id, metadata)
        = (v_new.name, v_new.email, v_new.company, v_new.amount_retained, v_new.payment_due_at, v_new.external_id, v_new.metadata)
    where o.id = v_order.id
    returning * into v_new;
    v_outcome := private.with_warnings(
      json_build_object(
        'status', 200,
        'effect', private.effect_of_change(dry_run, v_order),
        'data', coalesce(v_data, private.whole_order_json(v_order.id))
      ),
      case when changes ? 'payment_due_at' then private.warning_of_deadline(v_new) end
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;

create or replace function api.update_ticket_type (
  ticket_type_id uuid,
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
  v_ticket_type public.ticket_types;
  v_new public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- More places are offered to the waiting list, for which the capacity lock comes before the ticket type.
  if changes ?| '{quantity,status,sales_end_at}' then
    perform private.lock_event_capacity(t.event_id) from public.ticket_types t where t.id = update_ticket_type.ticket_type_id;
  end if;
  select t.* into v_ticket_type from public.ticket_types t where t.id = update_ticket_type.ticket_type_id for no key update;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.assert_version(v_ticket_type.version, if_version);

  v_new := jsonb_populate_record(v_ticket_type, private.with_merged_metadata(changes, v_ticket_type.metadata));
  update public.ticket_types t set
    name = v_new.name,
    description = v_new.description,
    price = v_new.price,
    quantity = v_new.quantity,
    min_per_order = v_new.min_per_order,
    max_per_order = v_new.max_per_order,
    sales_start_at = v_new.sales_start_at,
    sales_end_at = v_new.sales_end_at,
    visibility = v_new.visibility,
    status = v_new.status,
    position = v_new.position,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where t.id = v_ticket_type.id
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.with_warnings(
      json_build_object('status', 200, 'data', private.ticket_type_json(v_ticket_type)),
      case when changes ? 'price' then private.warning_of_price(v_ticket_type) end,
      private.warning_of_offset(changes, v_ticket_type.event_id)
    )
  );
end
$$;

create or replace function api.update_waiting_list_entry (
  waiting_list_entry_id uuid,
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
  v_entry public.waiting_list_entries;
  v_new public.waiting_list_entries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  v_entry := private.lock_waiting_list_entry(waiting_list_entry_id);
  perform private.assert_version(v_entry.version, if_version);

  v_new := jsonb_populate_record(v_entry, private.with_merged_metadata(changes, v_entry.metadata));
  update public.waiting_list_entries w set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    offer_expires_at = v_new.offer_expires_at,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where w.id = v_entry.id
  returning * into v_entry;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.waiting_list_entry_json(v_entry))
  );
end
$$;

create or replace function private.addressees (
  recipients private.recipient[],
  pending text[] default '{}'::text[]
)
  returns private.recipient[]
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return array(
    select row(a.organisation_id, a.attendee_id, a.waiting_list_entry_id, a.email_lower, null, a.order_id)::private.recipient
    from (
      select distinct on (r.email_lower, r.order_id) r.*
      from (
        select r.*, bool_or(r.order_id is not null) over (partition by r.email_lower) as is_buyer
        from unnest(recipients) with ordinality r
        where r.reason is null
      ) r
      where r.email_lower not in (select unnest(pending)) and (r.waiting_list_entry_id is null or not r.is_buyer)
      order by r.email_lower, r.order_id, r.ordinality
    ) a
  );
end
$$;

create or replace function private.affected_by_event (
  event_id uuid,
  is_cancelled boolean default false
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
  v_refund_due bigint := 0;
begin
  select e.* into v_event from public.events e where e.id = affected_by_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if is_cancelled then
    v_refund_due := (
      select coalesce(sum(private.refundable_if_cancelled(o)), 0)
      from public.orders o
      where o.event_id = v_event.id and o.status <> 'cancelled' and o.amount_paid > 0
    );
  end if;
  return jsonb_build_object(
    'orders', (
      select count(*) from public.orders o where o.event_id = v_event.id and o.status <> 'cancelled'
    ),
    'attendees', (
      select count(*)
      from public.ticket_types t
      join public.attendees a on a.ticket_type_id = t.id
      where t.event_id = v_event.id and a.status <> 'cancelled'
    ),
    -- Whose waiting ends with the event, or who was offered a place by what was changed.
    'waiting_list', (
      select count(*)
      from public.waiting_list_entries w
      where w.event_id = v_event.id
        and case when is_cancelled then w.status in ('waiting', 'offered') else w.status = 'offered' and w.offered_at = now() end
    ),
    -- Of these, who is e-mailed the offer.
    'offers', (
      select count(*)
      from public.waiting_list_entries w
      where w.event_id = v_event.id and w.status = 'offered' and w.offered_at = now() and w.send_email and not private.takes_no_mail(w.email)
    ),
    'refund_due', case when not is_cancelled or private.reads_orders() then v_refund_due end,
    -- For whoever confirms.
    'hidden', case when is_cancelled and not private.reads_orders() then jsonb_build_object('refund_due', v_refund_due) else '{}' end,
    'currency', v_event.currency
  );
end
$$;

create or replace function private.affected_by_order (
  "order" public.orders
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select jsonb_build_object('orders', 1, 'attendees', count(*), 'currency', "order".currency)
    from public.attendees a
    where a.order_id = "order".id
      and a.organisation_id = private.current_organisation_id()
      and a.status <> 'cancelled'
  );
end
$$;

create or replace function private.amount_refundable (
  "order" public.orders
)
  returns bigint
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return greatest(
    "order".amount_paid - "order".amount_refunded - "order".amount_retained
      - case "order".status when 'cancelled' then 0 else "order".subtotal - "order".discount_total end,
    0
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

create or replace function private.are_cancellations_due()
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return exists (select from private.cancellations c where c.next_attempt_at <= now());
end
$$;

create or replace function private.assert_as_given (
  "row" jsonb,
  given jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  perform private.refuse(
    409, 'read_only_field', 'Usher sets this field of a new row itself.', g.key, hint => 'Leave it out.', "row" => "row"
  )
  from jsonb_each(given) g
  where jsonb_strip_nulls("row") -> g.key <> g.value;
end
$$;

create or replace function private.assert_as_planned (
  plan private.event_plans,
  result jsonb,
  steps jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_changed text[] := array(
    select r.key from jsonb_each(plan.read) r where r.value is distinct from result -> 'read' -> r.key order by r.key
  );
  v_taken jsonb := jsonb_path_query_first(steps, '$[*].error ? (@.code == "already_exists")');
begin
  if v_changed <> '{}' then
    perform private.refuse_plan(
      'changed', 'What the plan is about was changed since.', jsonb_build_object('changed', v_changed)
    );
  elsif v_taken is not null then
    perform private.refuse(
      409, 'already_exists', v_taken ->> 'message', v_taken ->> 'param', v_taken -> 'details', 'Leave out plan_id for a new plan.'
    );
  elsif (result ->> 'refusals')::integer > 0 then
    perform private.refuse_plan(
      'changed', 'A step of the plan is refused by now.', jsonb_build_object('step', jsonb_path_query_first(steps, '$[*] ? (@.action == "refuse")'))
    );
  elsif md5(steps::text) <> plan.steps_digest then
    perform private.refuse_plan('changed', 'The plan would do something else by now.');
  end if;
end
$$;

create or replace function private.assert_completion_confirmed (
  event public.events,
  waiting_list jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  if event.starts_at > now() then
    perform private.assert_confirmed(
      'complete_event', jsonb_build_object('event_id', event.id, 'announced', private.announced(event)),
      json_build_object('waiting_list', waiting_list)
    );
  end if;
end
$$;

create or replace function private.assert_confirmed (
  operation text,
  arguments jsonb,
  effect json,
  hidden jsonb default '{}'::jsonb
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- Postgres may log the refusal: the gateway adds these from the call.
  c_personal constant text[] := '{email,names,external_reference,message}';
  v_fingerprint bytea;
  v_confirmed_by uuid;
begin
  if not private.is_asking() then
    return;
  end if;
  -- What guests of an order are told has its event.
  v_fingerprint := sha256(convert_to(concat_ws(' ', operation, arguments, (
    select private.announced(e)
    from public.orders o
    join public.events e on e.id = o.event_id
    where o.organisation_id = private.current_organisation_id() and o.id = coalesce(
      (arguments ->> 'order_id')::uuid, (select a.order_id from public.attendees a where a.id = (arguments ->> 'attendee_id')::uuid)
    )
  )), 'UTF8'));

  update private.confirmations c
  set spent_at = now(), arguments = '{}', fingerprint = sha256(uuid_send(gen_random_uuid())), forget_at = now() + interval '90 days'
  where c.id = (
    select o.id
    from private.confirmations o
    where o.api_key_id = private.current_api_key_id()
      and o.fingerprint = v_fingerprint
      and o.confirmed_at is not null
      and o.spent_at is null
      and o.expires_at > now()
      and private.is_within(assert_confirmed.operation, assert_confirmed.effect::jsonb || hidden, o.effect)
      -- Who confirmed may have lost the right to.
      and exists (
        select from public.api_keys k where k.id = o.confirmed_by and private.is_usable_key(k) and o.scope = any (k.scopes)
      )
    order by o.confirmed_at
    limit 1
    for update
  )
  returning c.confirmed_by into v_confirmed_by;
  if not found then
    perform private.refuse(
      428, 'confirmation_required', 'A person has to confirm this first.',
      -- As text: refusals leave nulls out.
      details => jsonb_build_object(
        'operation', operation, 'arguments', (arguments - c_personal)::text, 'of_call', c_personal, 'effect', effect, 'hidden', hidden,
        'fingerprint', encode(v_fingerprint, 'hex')
      ),
      hint => 'Repeat the call once they have.'
    );
  end if;
  -- The entries of the act itself name the key that asked.
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, source, changes)
  values (
    private.current_organisation_id(), 'confirmed',
    case
      when arguments ? 'attendee_id' then 'attendee'
      when arguments ? 'order_id' then 'order'
      when arguments ? 'event_id' then 'event'
      else 'organisation'
    end::public.audit_object,
    coalesce(arguments ->> 'attendee_id', arguments ->> 'order_id', arguments ->> 'event_id', private.current_organisation_id()::text)::uuid,
    'api_key', v_confirmed_by, 'api', jsonb_build_object('operation', jsonb_build_object('from', null, 'to', operation))
  );
end
$$;

create or replace function private.assert_sendable (
  webhook_endpoint_id uuid,
  type public.notification_type
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint from public.webhook_endpoints w where w.id = assert_sendable.webhook_endpoint_id;
  if v_webhook_endpoint.status = 'disabled' then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id',
      hint => 'Enable it first' || case when private.is_by_hand() then '.' else ': update_webhook_endpoint.' end
    );
  elsif type <> 'webhook_endpoint.test' and type <> all (v_webhook_endpoint.types) then
    perform private.refuse(
      409, 'type_not_subscribed', 'The webhook endpoint does not subscribe to this type any more.', 'type',
      hint => 'Add the type to the endpoint first.'
    );
  end if;
end
$$;

create or replace function private.assert_valid_name (
  name text,
  "row" jsonb default null::jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  if private.is_one_line(name, 200) is not true then
    perform private.refuse_value('name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.', "row");
  end if;
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
    'inside', attendee.inside,
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
  v_form text := private.person_form(guest ->> 'name');
  -- What is searched begins with the name. Where an address has 2,000 guests, an import of 1,000 more ends by it, and not in time without.
  v_searched text := private.search_form(v_form) || ' ';
  v_attendee public.attendees;
begin
  if v_external_id is null then
    select a.* into v_attendee
    from public.attendees a
    where a.organisation_id = v_organisation_id
      and a.email_lower = v_email
      and a.event_id = attendee_of_guest.event_id
      and starts_with(a.search_text, v_searched)
      and private.person_form(a.name) = v_form
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
      and private.person_form(f.name) = v_form
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

create or replace function private.attendees_to_tell (
  event public.events
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
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = event.id
      and case event.status when 'cancelled' then a.cancelled_at = event.cancelled_at else a.status <> 'cancelled' end
  );
end
$$;

create or replace function private.call_courier (
  in_any_case boolean default false
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if not in_any_case
    and not private.are_webhooks_due()
    -- What no endpoint is subscribed to can wait for the call that is made in any case.
    and not exists (
      select from public.webhook_endpoints w
      where w.status = 'enabled'
        and exists (select from private.notification_queue q where q.organisation_id = w.organisation_id)
    )
    and not private.are_emails_due()
    and not exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
    and not exists (
      select from unnest(private.organisations_with_deadlines()) o (organisation_id)
      cross join lateral (
        select from public.orders d
        where d.organisation_id = o.organisation_id and d.payment_check_at <= now()
        limit 1
      ) d
    )
    and not private.are_logos_due()
    and not private.are_cancellations_due()
  then
    return;
  end if;
  perform net.http_post(
    url => (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_url'),
    headers => jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || (select s.decrypted_secret from vault.decrypted_secrets s where s.name = 'usher_courier_secret')
    ),
    -- Longer than a run takes, so that its response is recorded.
    timeout_milliseconds => 60000
  );
end
$$;

create or replace function private.cancel_later (
  event public.events,
  affected jsonb,
  dry_run boolean,
  notify public.notify,
  message text
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  perform private.assert_not_foreign(event.organisation_id, 'event_id');
  message := private.sound_message(message, notify);
  if event.cancelling_since is not null then
    select c.notify, c.message into notify, message from private.cancellations c where c.event_id = event.id;
  end if;
  -- It was carried out a moment ago.
  if event.status <> 'published' or event.cancelling_since is not null and not found then
    perform private.refuse_transition((select e.status from public.events e where e.id = event.id), 'cancelled');
  elsif event.cancelling_since is null and dry_run is not true then
    -- One may be left of an event that was completed since, and published again.
    insert into private.cancellations (event_id, claims, notify, message) values (event.id, private.claims(), notify, message)
    on conflict on constraint cancellations_pkey do update
      set claims = excluded.claims, notify = excluded.notify, message = excluded.message, attempts = 0, next_attempt_at = now();
    update public.events e set cancelling_since = now() where e.id = event.id returning * into event;
  end if;
  return json_build_object(
    'status', case when dry_run then 200 else 202 end,
    'effect', private.effect_json(dry_run, affected, private.notice_of_cancellation(event, notify)),
    'data', private.event_json(event)
  );
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
      'amount_retained', sum(o.amount_retained)::bigint,
      'amount_refundable', sum(private.amount_refundable(o))::bigint
    )
    from public.orders o
    where o.id = any (order_ids) and o.status = 'cancelled' and o.payment_method is not null
    having count(*) > 0
  );
end
$$;

create or replace function private.carry_out_event (
  arguments jsonb,
  organisation_id uuid,
  event_id uuid,
  source_id uuid
)
  returns jsonb
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_lists constant text[] := '{ticket_types,promo_codes,check_in_points}';
  v_changes jsonb := coalesce(arguments -> 'changes', '{}') - 'status';
  v_status public.event_status := arguments #>> '{changes,status}';
  v_is_copy boolean := source_id is not null;
  v_only_listed boolean := coalesce((arguments ->> 'archive_missing')::boolean, false);
  v_base public.events;
  v_event public.events;
  v_move private.event_move;
  v_rows jsonb := '{}';
  v_places jsonb;
  v_types jsonb;
  v_type_places jsonb;
  v_read jsonb := '{}';
  v_table text;
  v_is_listed boolean;
  v_pass integer;
  v_items jsonb;
  v_item jsonb;
  v_row jsonb;
  v_fields jsonb;
  v_name text;
  v_key text;
  v_step jsonb;
  v_steps jsonb[] := '{}';
  v_unchanged integer := 0;
  v_refusals integer := 0;
  v_taken text[] := '{}';
  v_refused text[] := '{}';
  v_copies jsonb := '{}';
  v_notice jsonb;
  v_warnings jsonb[] := '{}';
  v_state text;
  v_message text;
  v_detail text;
  v_hint text;
  v_rule text;
begin
  if event_id is not null then
    perform private.lock_event_of_plan(event_id, arguments);
  end if;
  select e.* into v_base from public.events e where e.id = coalesce(event_id, source_id);
  v_move := private.move_of_plan(v_base, arguments, v_is_copy);

  if v_base.id is not null then
    v_read := jsonb_build_object('event', v_base.version);
    foreach v_table in array v_lists loop
      -- What a copy leaves out is not read.
      continue when v_is_copy and v_only_listed and arguments -> v_table = '[]';
      v_is_listed := arguments ? v_table or v_table = 'ticket_types' and arguments ?| v_lists;
      if v_is_listed or v_move.distance is not null or v_is_copy then
        v_items := private.rows_of_event(
          v_table, v_base.id, v_is_copy or not v_is_listed, not (v_is_copy or v_is_listed)
        );
        if v_is_copy then
          -- A copy is in the same order, whichever row is added first.
          v_items := (
            select coalesce(jsonb_agg(r || jsonb_build_object('position', n - 1) order by n), '[]')
            from jsonb_array_elements(v_items) with ordinality i (r, n)
          );
        end if;
        v_rows := v_rows || jsonb_build_object(v_table, v_items);
        v_read := v_read || jsonb_build_object(v_table, (
          select md5(string_agg(concat(r ->> 'id', r ->> 'version'), ' ' order by r ->> 'id')) from jsonb_array_elements(v_rows -> v_table) r
        ));
      end if;
    end loop;
  end if;

  foreach v_table in array '{events}' || v_lists || '{status}' loop
    v_places := private.places_by_name(coalesce(v_rows -> v_table, '[]'));
    -- First what the list names, then the other rows of the event or of the one that is copied.
    for v_pass in 1..2 loop
      v_items := case
        when v_table in ('events', 'status') then case v_pass when 1 then '[{}]' else '[]' end::jsonb
        when v_pass = 1 then coalesce(arguments -> v_table, '[]')
        when case when v_only_listed and arguments ? v_table then not v_is_copy else v_is_copy or v_move.distance is not null end then (
          select coalesce(jsonb_agg(r), '[]')
          from jsonb_array_elements(v_rows -> v_table) r
          where r ->> 'status' = 'active' and r ->> 'id' <> all (v_taken)
        )
        else '[]'
      end;
      for v_item in select i from jsonb_array_elements(v_items) i loop
        begin
          v_row := case v_pass when 2 then v_item end;
          v_name := coalesce(v_item ->> 'code', v_item ->> 'name', v_item ->> 'id');
          if v_table = 'events' then
            v_name := coalesce(v_changes ->> 'name', v_base.name);
            v_step := private.carry_out_fields(organisation_id, v_base, v_changes, v_move);
          elsif v_table = 'status' then
            continue when v_refusals > 0 or coalesce(v_status, v_event.status) = v_event.status;
            v_name := v_event.name;
            perform private.set_event_status(v_event.id, v_status);
            v_step := jsonb_build_object(
              'action', 'change', 'kind', 'event', 'name', v_event.name, 'id', v_event.id,
              'changes', jsonb_build_object('status', jsonb_build_array(v_event.status, v_status))
            );
          else
            v_fields := '{}';
            if v_pass = 1 then
              v_row := private.row_of_item(v_table, coalesce(v_rows -> v_table, '[]'), v_places, v_item);
              -- Twice in the list: the same row, or two new ones of one name.
              v_key := coalesce(v_row ->> 'id', concat_ws(' ', v_table, private.form_of_name(v_table, v_name), v_item ->> 'external_id'));
              if v_key = any (v_taken) then
                perform private.refuse_value(
                  (private.planned_fields(v_table))[1], 'The list has this twice.', 'Leave one out, or tell them apart by id or external_id.'
                );
              end if;
              v_taken := v_taken || v_key;
              if num_nonnulls(v_item ->> 'percent_off', v_item ->> 'amount_off') = 1 then
                -- One kind of discount takes the place of the other.
                v_fields := '{"percent_off": null, "amount_off": null}';
              end if;
              v_fields := v_fields || (v_item - '{id,ticket_types}'::text[]);
              if v_item ? 'ticket_types' then
                v_fields := v_fields || jsonb_build_object(
                  'ticket_type_ids', private.ticket_types_meant(v_types, v_type_places, v_item -> 'ticket_types', v_copies, v_refused)
                );
              end if;
            end if;
            if v_pass = 2 and v_only_listed and arguments ? v_table then
              v_fields := jsonb_build_object('status', case v_table when 'promo_codes' then 'disabled' else 'archived' end);
            else
              v_fields := coalesce(private.moved_times(v_row - array(select jsonb_object_keys(v_fields)), v_move), '{}') || v_fields;
            end if;
            if v_is_copy and v_row is null then
              v_fields := jsonb_build_object('position', jsonb_array_length(v_rows -> v_table)) || v_fields;
            end if;
            if v_is_copy and v_row -> 'ticket_type_ids' <> '[]' and not v_fields ? 'ticket_type_ids' then
              v_fields := v_fields || jsonb_build_object('ticket_type_ids', (
                select coalesce(jsonb_agg(v_copies -> i order by v_copies ->> i), '[]')
                from jsonb_array_elements_text(v_row -> 'ticket_type_ids') i
                where v_copies ? i
              ));
              -- It was for ticket types that are not copied; with none it would be for all.
              if v_fields -> 'ticket_type_ids' = '[]' and v_pass = 1 then
                perform private.refuse_value(
                  'ticket_types', 'The ticket types that it is for are not copied.', 'Name ticket_types for it; an empty list is for all.'
                );
              end if;
              continue when v_fields -> 'ticket_type_ids' = '[]';
            end if;
            v_step := private.carry_out_item(v_table, v_event, v_base, v_row, v_fields, v_is_copy);
            if v_is_copy and v_table = 'ticket_types' and v_row is not null then
              v_copies := v_copies || jsonb_build_object(v_row ->> 'id', v_step -> 'id');
            end if;
          end if;
        exception when others then
          get stacked diagnostics
            v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint,
            v_rule = constraint_name;
          -- Of two that take one value at once the gateway calls the second again, which is refused as it is elsewhere.
          if v_state !~ '^(PT4|22|23)' or v_state = '23505' then
            raise;
          end if;
          v_refusals := v_refusals + 1;
          v_refused := array_remove(v_refused || array[private.search_form(v_name), private.search_form(v_item ->> 'external_id')], null);
          v_step := jsonb_build_object(
            'action', 'refuse', 'kind', rtrim(case v_table when 'status' then 'events' else v_table end, 's'), 'name', v_name,
            'error', case
              -- The message of a value is not said in details as well.
              when v_state like 'PT4%' then (v_detail::jsonb - case when v_detail::jsonb -> 'details' ? 'fields' then 'details' else '' end)
                || jsonb_strip_nulls(jsonb_build_object('message', v_message, 'hint', nullif(v_hint, '')))
              -- What no trigger says in a sentence. The row that Postgres would show stays out.
              else jsonb_build_object(
                'code', 'validation_failed', 'message', 'It breaks a rule of the database: ' || coalesce(nullif(v_rule, ''), v_state)
              )
            end
          );
        end;
        if v_pass = 1 and v_step ->> 'action' in ('create', 'change') and v_table <> 'status' then
          v_warnings := v_warnings || private.step_warnings(
            v_table, (v_step ->> 'id')::uuid, case v_table when 'events' then v_changes else v_item end, v_event
          );
        end if;
        if v_step ->> 'action' = 'unchanged' then
          -- Of the event only if it was to be something.
          v_unchanged := v_unchanged + (v_table <> 'events' or v_changes <> '{}')::integer;
        else
          v_steps := v_steps || v_step;
        end if;
        if v_table = 'events' then
          select e.* into v_event from public.events e where e.id = coalesce((v_step ->> 'id')::uuid, carry_out_event.event_id);
        end if;
      end loop;
    end loop;
    -- Without the event there is nothing to add to.
    exit when v_event.id is null;
    if v_table = 'ticket_types' and arguments ?| v_lists then
      v_types := private.rows_of_event(v_table, v_event.id, false, false);
      v_type_places := private.places_by_name(v_types);
    end if;
  end loop;

  if v_refusals = 0 and event_id is not null then
    v_notice := private.notify_of_event(event_id, (arguments ->> 'notify')::public.notify);
  end if;
  select e.* into v_event from public.events e where e.id = v_event.id;
  return jsonb_build_object(
    'warnings', to_jsonb(array(
      select distinct w from unnest(v_warnings || private.plan_warnings(v_base, v_event, source_id, v_move.distance is not null)) w
      where w is not null
      limit 20
    )),
    'read', v_read, 'steps', to_jsonb(v_steps), 'unchanged', v_unchanged, 'refusals', v_refusals, 'notice', v_notice,
    -- What is only added concerns nobody who is there.
    'affected', case when event_id is not null and v_base.id is not null then private.affected_by_event(event_id) || case
      when v_notice is null and not exists (select from unnest(v_steps) s where s ->> 'action' in ('change', 'archive'))
        then '{"orders": 0, "attendees": 0}'::jsonb
      else '{}'
    end end,
    'news', case when event_id is not null and v_event.id is not null and private.is_asking() then private.news_of_event(v_base, v_event, v_notice) end,
    'event', jsonb_build_object(
      'id', v_event.id, 'name', v_event.name, 'status', v_event.status,
      'starts_at', private.zoned_time(v_event.starts_at, v_event.timezone), 'ends_at', private.zoned_time(v_event.ends_at, v_event.timezone), 'timezone', v_event.timezone
    )
  );
end
$$;

create or replace function private.carry_out_fields (
  organisation_id uuid,
  base public.events,
  changes jsonb,
  move private.event_move
)
  returns jsonb
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_fields jsonb := private.moved_times(to_jsonb(base) - array(select jsonb_object_keys(changes)), move)
    || changes || case when changes ? 'venue' then private.venue_columns(changes -> 'venue') else '{}' end;
  v_event public.events;
  v_id uuid;
begin
  if base.id is not null and not move.is_copy then
    v_fields := private.fields_to_change('events', to_jsonb(base), v_fields);
    if v_fields is null then
      return jsonb_build_object('action', 'unchanged', 'id', base.id);
    end if;
    v_event := private.change_event(base, v_fields);
    return jsonb_build_object(
      'action', 'change', 'kind', 'event', 'name', base.name, 'id', base.id,
      'changes', private.plan_changes(to_jsonb(base), v_fields, base, v_event)
    );
  end if;
  v_fields := private.with_merged_metadata(v_fields, to_jsonb(base.metadata));
  if move.is_copy then
    -- Its slug is made from its name, and an external_id belongs to one event.
    v_fields := (to_jsonb(base) - '{slug,external_id}'::text[]) || v_fields;
  end if;
  v_fields := private.planned_row('events', v_fields);
  if v_fields ->> 'name' is null then
    perform private.refuse_value(
      'name', 'A new event needs a name.', 'Name it in changes; to change an event that exists, name that as event.'
    );
  end if;
  v_id := private.add_row('events', 'organisation_id', organisation_id, v_fields);
  select e.* into v_event from public.events e where e.id = v_id;
  return jsonb_build_object(
    'action', 'create', 'kind', 'event', 'name', v_event.name, 'id', v_event.id,
    'changes', private.plan_of_new('name', v_fields, v_event) || jsonb_build_object('status', v_event.status)
  );
end
$$;

create or replace function private.carry_out_item (
  "table" text,
  event public.events,
  was public.events,
  "row" jsonb,
  fields jsonb,
  is_copy boolean
)
  returns jsonb
  language plpgsql
  set search_path to ''
  as $$
declare
  v_label text := (private.planned_fields("table"))[1];
  v_fields jsonb;
  v_id uuid := "row" ->> 'id';
begin
  if "row" is null or is_copy then
    v_fields := private.planned_row("table", coalesce("row" - 'external_id', '{}') || private.with_merged_metadata(fields, "row" -> 'metadata'));
    if v_fields ->> v_label is null then
      perform private.refuse_value(v_label, 'What is to be added needs a name, or a promo code its code.');
    end if;
    v_id := private.add_row("table", 'event_id', event.id, v_fields);
    return jsonb_build_object(
      'action', 'create', 'kind', rtrim("table", 's'), 'name', v_fields -> v_label, 'id', v_id,
      -- How often a point lets a ticket in is fixed with its first scan, so its default is said.
      'changes', private.plan_of_new(v_label, case "table" when 'check_in_points' then '{"admission": "once"}' else '{}' end::jsonb || v_fields, event)
    );
  end if;

  v_fields := private.fields_to_change("table", "row", fields);
  if v_fields is null then
    return jsonb_build_object('action', 'unchanged', 'id', v_id);
  end if;
  case "table"
    when 'ticket_types' then perform api.update_ticket_type(v_id, v_fields);
    when 'promo_codes' then perform api.update_promo_code(v_id, v_fields);
    when 'check_in_points' then perform api.update_check_in_point(v_id, v_fields);
  end case;
  return jsonb_strip_nulls(jsonb_build_object(
    'action', case when v_fields ->> 'status' in ('archived', 'disabled') then 'archive' else 'change' end,
    'kind', rtrim("table", 's'), 'name', "row" -> v_label, 'id', v_id,
    -- Said, because a change alone does not bring it back.
    'status', case when not v_fields ? 'status' and "row" ->> 'status' <> 'active' then "row" -> 'status' end
  )) || jsonb_build_object('changes', private.plan_changes("row", v_fields, was, event));
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
      select n.name, n.email, n.company, n.external_id, n.metadata
      from jsonb_populate_record(a, private.with_merged_metadata(c.change, a.metadata)) n
    ),
    ticket_type_id = coalesce((c.change ->> 'ticket_type_id')::uuid, a.ticket_type_id),
    ticket_code = case when (c.change ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  from unnest(changes) c (change)
  where a.id = (c.change ->> 'attendee_id')::uuid
  returning a.*;
end
$$;

create or replace function private.change_event (
  was public.events,
  changes jsonb
)
  returns public.events
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_new public.events := jsonb_populate_record(
    "was", private.with_merged_metadata(changes, "was".metadata) || case when changes ? 'venue' then private.venue_columns(changes -> 'venue') else '{}' end
  );
begin
  update public.events e set
    name = v_new.name,
    slug = v_new.slug,
    description = v_new.description,
    starts_at = v_new.starts_at,
    ends_at = v_new.ends_at,
    timezone = v_new.timezone,
    locale = v_new.locale,
    venue_name = v_new.venue_name,
    venue_address = v_new.venue_address,
    venue_city = v_new.venue_city,
    venue_postcode = v_new.venue_postcode,
    venue_country = v_new.venue_country,
    online_url = v_new.online_url,
    capacity = v_new.capacity,
    waiting_list_offer_hours = v_new.waiting_list_offer_hours,
    currency = v_new.currency,
    payment_due_days = v_new.payment_due_days,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where e.id = "was".id
  returning * into v_new;
  return v_new;
end
$$;

create or replace function private.changes_between (
  old_row jsonb,
  new_row jsonb
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select jsonb_object_agg(
      f.key,
      case
        when f.key in ('ticket_code', 'code') then '{}'
        when new_row = '{}' then jsonb_build_object('from', f.value)
        else jsonb_build_object('from', f.value, 'to', new_row -> f.key)
      end
    )
    from jsonb_each(old_row) f
    where f.value is distinct from coalesce(new_row -> f.key, 'null')
      and f.key not in (
        'version', 'created_at', 'updated_at', 'last_used_at', 'email_lower', 'checked_in', 'inside', 'quantity_sold', 'quantity_held', 'times_redeemed',
        'search_text', 'failing_since', 'last_failed_at', 'ticket_email_status', 'ticket_email_sent_at', 'ticket_email_last_error',
        'admission_key', 'ticket_token', 'payment_remind_at', 'payment_reminded_at', 'payment_check_at'
      )
  );
end
$$;

create or replace function private.check_request()
  returns void
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_claims constant jsonb := coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}');
  v_role constant text := v_claims ->> 'role';
  v_headers jsonb;
  v_organisation_id uuid;
  v_scope public.api_scope;
  v_is_usable boolean;
  v_kind public.api_key_kind;
  v_scopes public.api_scope[];
begin
  -- Whoever else calls the Data API of this project is none of Usher's business.
  if v_role is null or v_role <> 'api_key' and v_role not like 'scope\_%' then
    perform set_config('usher.checked', 'on', true);
    return;
  end if;
  -- Schema public is behind the Data API for people who sign in. A key calls functions of schema api, and nothing else.
  v_headers := current_setting('request.headers', true);
  if current_setting('request.path', true) not like '/rpc/%'
    or coalesce(v_headers ->> 'content-profile', 'api') <> 'api'
    or coalesce(v_headers ->> 'accept-profile', 'api') <> 'api' then
    perform private.refuse(403, 'forbidden', 'API keys call functions of schema api only.');
  end if;

  v_organisation_id := v_claims ->> 'organisation_id';
  select private.is_usable_key(k), k.kind, k.scopes into v_is_usable, v_kind, v_scopes
  from public.api_keys k
  where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = v_organisation_id;
  if v_is_usable is not true then
    perform private.refuse_key((
      select k from public.api_keys k where k.id = (v_claims ->> 'api_key_id')::uuid and k.organisation_id = v_organisation_id
    ));
  elsif v_kind = 'person' then
    perform private.refuse(
      403, 'key_for_people', 'This API key is for a person, who signs in with it on pages.', hint => 'Create a key for the program.'
    );
  end if;

  if v_role <> 'api_key' then
    v_scope := private.scope_of_role(v_role);
    if v_scope <> all (v_scopes) then
      perform private.refuse(
        403, 'missing_scope', 'The API key lacks the scope this operation needs.',
        details => jsonb_build_object('scope', v_scope),
        hint => 'Use a key that has the scope, or add the scope to this key.'
      );
    end if;
  end if;
  -- Last: what is refused is not checked.
  perform set_config('usher.checked', v_organisation_id::text, true);
end
$$;

create or replace function private.code_form (
  code text
)
  returns text
  language plpgsql
  immutable
  strict
  set search_path to ''
  as $$
begin
  return translate(upper(regexp_replace(normalize(code, nfkc), '[^0-9A-Za-z]', '', 'g')), 'OIL', '011');
end
$$;

create or replace function private.confirm_anew (
  "order" public.orders,
  notify public.notify,
  recipients private.recipient[],
  message text
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
  update public.emails e set message = coalesce(confirm_anew.message, e.message)
  where e.order_id = "order".id and e.kind = 'order_confirmation' and e.status = 'queued' and e.claim is null;
  if not found then
    insert into public.emails (organisation_id, kind, order_id, message)
    values ("order".organisation_id, 'order_confirmation', "order".id, confirm_anew.message);
  end if;
  return jsonb_build_object('emails', 1, 'told', v_buyers, 'not_told', '[]'::jsonb);
end
$$;

create or replace function private.count_entries (
  attendee_ids uuid[]
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  update public.attendees a
  set (checked_in_at, inside) = (
    select min(e.scanned_at), coalesce(bool_or(e.exited_at is null and (e.left_at > e.scanned_at) is not true), false)
    from (
      select
        c.scanned_at, c.exited_at,
        max(c.exited_at) over (order by c.scanned_at, c.id rows between unbounded preceding and 1 preceding) as left_at
      from public.check_ins c
      where c.attendee_id = a.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) e
  )
  where a.id = any (attendee_ids);
end
$$;

create or replace function private.create_api_key (
  organisation_slug text,
  name text,
  scopes public.api_scope[],
  prefix text,
  key_hash bytea,
  expires_at timestamp with time zone default null::timestamp with time zone,
  family_id uuid default null::uuid,
  confirmations public.api_key_confirmations default 'asked'::public.api_key_confirmations,
  kind public.api_key_kind default 'key'::public.api_key_kind
)
  returns public.api_keys
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid;
  v_key public.api_keys;
begin
  select o.id into v_organisation_id from public.organisations o where o.slug = organisation_slug;
  if not found then
    perform private.refuse(
      404, 'not_found', 'There is no organisation with this slug.', 'organisation',
      hint => 'Create it first: usher organisations create.'
    );
  end if;

  insert into public.api_keys (organisation_id, family_id, name, prefix, scopes, expires_at, confirmations, kind)
  values (
    v_organisation_id, create_api_key.family_id, create_api_key.name, create_api_key.prefix,
    create_api_key.scopes, create_api_key.expires_at, create_api_key.confirmations, create_api_key.kind
  )
  returning * into v_key;

  insert into private.api_key_hashes (api_key_id, key_hash) values (v_key.id, create_api_key.key_hash);
  return v_key;
end
$$;

create or replace function private.deadline_to_expire (
  "order" public.orders,
  payment_due_at timestamp with time zone
)
  returns timestamp with time zone
  language plpgsql
  set search_path to ''
  as $$
begin
  if (payment_due_at <= now()) is not true then
    perform private.refuse_value('expire_now', 'expire_now goes with a payment_due_at that is over.', 'Send both, or leave expire_now out.');
  elsif "order".status = 'pending' and "order".amount_paid > "order".amount_refunded then
    perform private.refuse_value('expire_now', 'An order that is paid in part does not expire.', 'Cancel it with cancel_order.');
  end if;
  -- One before the order was made is refused as it is.
  return case when payment_due_at < "order".created_at then payment_due_at else now() end;
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
      hint => 'Wait until they are sent or given up, five days at most; or set their status to cancelled.'
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
  v_may_record_payments boolean := coalesce('orders:write' = any (private.current_scopes()), false);
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
          and (
            ((v_now - a.xmin::text::bigint) & 4294967295) <= v_now - v_since
            -- What is due changes with the order alone.
            or v_may_record_payments and a.status = 'awaiting_payment' and exists (
              select from public.orders o
              where o.id = a.order_id and ((v_now - o.xmin::text::bigint) & 4294967295) <= v_now - v_since
            )
          )
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
        'order', case when v_may_record_payments and a.status = 'awaiting_payment' then (
          select json_build_object('id', o.id, 'amount_due', private.amount_due(o), 'currency', o.currency)
          from public.orders o where o.id = a.order_id
        ) end,
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

create or replace function private.effect_json (
  dry_run boolean,
  affected jsonb,
  notice jsonb default null::jsonb
)
  returns json
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return json_build_object(
    'dry_run', coalesce(dry_run, false),
    'orders', affected -> 'orders',
    'attendees', affected -> 'attendees',
    'waiting_list', coalesce(affected -> 'waiting_list', '0'),
    'emails', coalesce((notice ->> 'emails')::integer, 0) + coalesce((affected ->> 'offers')::integer, 0),
    'told', coalesce((notice ->> 'told')::integer, 0) + coalesce((affected ->> 'offers')::integer, 0),
    'not_told', coalesce(notice -> 'not_told', case (affected ->> 'attendees')::integer when 0 then '[]' else jsonb_build_array(
      jsonb_build_object('reason', coalesce(notice ->> 'nobody_because', 'notify_nobody'), 'count', affected -> 'attendees')
    ) end),
    'refund_due', affected -> 'refund_due',
    'currency', affected -> 'currency'
  );
end
$$;

create or replace function private.effect_of_change (
  dry_run boolean,
  former public.orders
)
  returns json
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select private.effect_json(dry_run, jsonb_build_object(
      'orders', 1, 'attendees', 0, 'refund_due', private.amount_refundable(o) - private.amount_refundable(former), 'currency', o.currency
    ))
    from public.orders o
    where o.id = former.id
  );
end
$$;

create or replace function private.email_json (
  email_id uuid
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_reads_orders boolean := private.reads_orders();
begin
  return (
    select json_build_object(
      'object', 'email',
      'id', e.id,
      'kind', e.kind,
      'status', e.status,
      'to', case when e.order_id is null or v_reads_orders then coalesce(e.sent_to, a.email, w.email) end,
      'order_id', coalesce(e.order_id, a.order_id),
      'attendee_id', e.attendee_id,
      'waiting_list_entry_id', e.waiting_list_entry_id,
      'attempts', e.attempts,
      'next_attempt_at', private.rfc3339(e.next_attempt_at),
      'sent_at', private.rfc3339(e.sent_at),
      'error', case when e.order_id is null or v_reads_orders then e.last_error end,
      'created_at', private.rfc3339(e.created_at),
      'updated_at', private.rfc3339(e.updated_at)
    )
    from public.emails e
    left join public.attendees a on a.id = e.attendee_id
    left join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
    where e.id = email_json.email_id
  );
end
$$;

create or replace function private.erase_attendee (
  attendee_id uuid,
  dry_run boolean default null::boolean
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
  v_form text;
  v_is_alone boolean;
  v_erasing private.erasing;
  v_erased private.erased;
begin
  perform private.lock_event_shared(a.event_id) from public.attendees a where a.id = erase_attendee.attendee_id;
  select o.* into v_order
  from public.orders o
  where o.id = (select a.order_id from public.attendees a where a.id = erase_attendee.attendee_id)
  for no key update;
  -- All of the order at once: where its contact is erased, what is searched of each changes.
  perform from public.attendees a where a.order_id = v_order.id order by a.id for no key update;
  select a.* into v_attendee from public.attendees a where a.id = erase_attendee.attendee_id;
  if v_attendee.erased_at is not null then
    perform private.refuse(409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Nothing is left to erase.');
  end if;
  v_form := private.search_form(v_attendee.name);
  v_is_alone := not exists (
    select from public.attendees a
    where a.order_id = v_order.id and a.email_lower = v_attendee.email_lower and private.search_form(a.name) <> v_form
  );
  v_erasing := row(
    v_attendee.organisation_id,
    array[v_attendee.id],
    case when private.search_form(v_order.name) = v_form or v_is_alone and v_order.email_lower = v_attendee.email_lower
      then array[v_order.id] else '{}' end,
    array(
      select w.id from public.waiting_list_entries w
      where w.event_id = v_attendee.event_id
        and (
          w.id = v_attendee.waiting_list_entry_id
          or w.email_lower = v_attendee.email_lower and private.search_form(w.name) = v_form
        )
    ),
    '{}', v_attendee.email_lower, array[v_form], '{}', false
  );
  v_erased := private.erase_rows(v_erasing);
  return json_build_object(
    'object', 'erasure',
    'attendee_id', v_attendee.id,
    'order_id', v_attendee.order_id,
    'event_id', v_attendee.event_id,
    'erased_at', case when dry_run is not true then private.rfc3339(now()) end,
    'attendees', v_erased.attendees,
    'orders', v_erased.orders,
    'waiting_list_entries', v_erased.waiting_list_entries,
    'notifications', v_erased.notifications,
    'webhook_deliveries', v_erased.webhook_deliveries,
    'ticket_emails', v_erased.emails,
    'audit_entries', v_erased.audit_entries,
    'idempotency_records', v_erased.idempotency_records,
    'kept', private.kept_of(v_erasing)
  );
end
$$;

create or replace function private.erase_rows (
  erasing private.erasing
)
  returns private.erased
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_external_ids constant text[] := array(
    select a.external_id from public.attendees a where a.id = any (erasing.attendee_ids) and a.external_id is not null
  );
  v_attendees integer;
  v_orders integer;
  v_entries integer;
  v_erased private.erased;
begin
  perform set_config('usher.erasing', 'on', true);
  execute format('update public.orders o set %s where o.id = any ($1)', private.erasing_assignments('orders')) using erasing.order_ids;
  get diagnostics v_orders = row_count;
  execute format(
    $sql$update public.attendees a
    set %s, erased_at = now(),
      ticket_email_status = case when a.ticket_email_status in ('waiting', 'queued') then 'cancelled' else a.ticket_email_status end
    where a.id = any ($1)$sql$,
    private.erasing_assignments('attendees')
  ) using erasing.attendee_ids;
  get diagnostics v_attendees = row_count;
  -- What is searched of the others has the contact.
  update public.attendees a set search_text = '' where a.order_id = any (erasing.order_ids) and a.id <> all (erasing.attendee_ids);
  v_entries := private.erase_waiting_list_entries(erasing.entry_ids);

  v_erased := private.erase_copies(erasing, v_external_ids);
  v_erased.audit_entries := v_erased.audit_entries + private.erase_members(erasing);
  perform set_config('usher.erasing', '', true);
  v_erased.attendees := v_attendees;
  v_erased.orders := v_orders;
  v_erased.waiting_list_entries := v_entries;
  return v_erased;
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
      v_fields := v_fields || jsonb_build_object(
        'param', 'email', 'message', 'This is not an e-mail address. ' || private.hint_for_address(guest ->> 'email')
      );
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

create or replace function private.errors_of_guests (
  guests jsonb
)
  returns json[]
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
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
          private.person_form(g.guest ->> 'name') as name
        from jsonb_array_elements(guests) with ordinality g (guest, place)
      ) g
      window same_person as (partition by g.error is null, g.email, g.name order by g.place)
    ) g
    order by g.place
  );
end
$$;

create or replace function private.event_json (
  event public.events
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return json_build_object(
    'object', 'event',
    'id', event.id,
    'name', event.name,
    'slug', event.slug,
    'description', event.description,
    'status', event.status,
    'phase', private.event_phase(event),
    'starts_at', private.rfc3339(event.starts_at),
    'ends_at', private.rfc3339(event.ends_at),
    'timezone', event.timezone,
    'locale', event.locale,
    'venue', case
      when num_nonnulls(
        event.venue_name, event.venue_address, event.venue_city, event.venue_postcode, event.venue_country
      ) > 0 then json_build_object(
        'name', event.venue_name,
        'address', event.venue_address,
        'city', event.venue_city,
        'postcode', event.venue_postcode,
        'country', event.venue_country
      )
    end,
    'online_url', event.online_url,
    'capacity', event.capacity,
    'waiting_list_offer_hours', event.waiting_list_offer_hours,
    'currency', event.currency,
    'payment_due_days', event.payment_due_days,
    'published_at', private.rfc3339(event.published_at),
    'cancelling_since', private.rfc3339(event.cancelling_since),
    'cancelled_at', private.rfc3339(event.cancelled_at),
    'completed_at', private.rfc3339(event.completed_at),
    'external_id', event.external_id,
    'metadata', event.metadata,
    'version', event.version,
    'created_at', private.rfc3339(event.created_at),
    'updated_at', private.rfc3339(event.updated_at)
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
  v_most_types constant integer := 20;
  v_most_devices constant integer := 20;
  v_ticket_type_ids uuid[] := array(
    select t.id from public.ticket_types t
    where t.event_id = event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  v_places_left bigint := event.capacity - (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.id = any (v_ticket_type_ids)
  );
  -- Without a check-in point and without an exit nobody comes in twice: checked_in_at says all, and the check-ins are not read.
  v_has_visits boolean := exists (select from public.check_in_points p where p.event_id = event.id)
    or exists (select from public.check_ins c where c.event_id = event.id and c.direction = 'exit');
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
      a.ticket_type_id, a.status, a.checked_in, a.inside, a.ticket_email_status,
      date_bin('15 minutes', a.created_at, timestamptz 'epoch') as registered,
      date_bin(
        '15 minutes', case when not v_has_visits and a.status <> 'cancelled' then a.checked_in_at end, timestamptz 'epoch'
      ) as arrived,
      count(*) as tickets
    from public.attendees a
    where a.ticket_type_id = any (v_ticket_type_ids)
    group by grouping sets ((1, 2, 3, 4, 5), (1, 6), (7))
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
      where v_has_visits and c.event_id = event.id and c.reason is null and c.direction = 'entry' and c.undone_at is null
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
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled' and g.inside), 0) as inside,
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
  registrations as (
    select g.ticket_type_id, date_trunc("interval"::text, g.registered, event.timezone) as starts_at, sum(g.tickets) as tickets
    from groups g
    where g.registered is not null
    group by 1, 2
  ),
  buckets as (
    select
      date_trunc("interval"::text, s.starts_at, event.timezone) as starts_at,
      sum(s.registrations) as registrations,
      sum(s.arrivals) as arrivals
    from (
      select r.starts_at, r.tickets as registrations, 0 as arrivals from registrations r
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
        'inside', coalesce(sum(k.inside), 0),
        'cancelled', coalesce(sum(k.cancelled), 0)
      )
      from kinds k
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object(
        'id', k.id, 'name', k.name, 'sold', k.sold, 'available', k.available, 'pending_payment', k.pending_payment,
        'checked_in', k.checked_in, 'inside', k.inside, 'cancelled', k.cancelled
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
        'starts_at', private.rfc3339(b.starts_at), 'registrations', b.registrations, 'arrivals', b.arrivals,
        'ticket_types', (
          select coalesce(json_agg(json_build_object('id', k.id, 'name', k.name, 'registrations', r.tickets)), '[]')
          from (
            select r.ticket_type_id, r.tickets from registrations r where r.starts_at = b.starts_at order by 2 desc, 1 limit v_most_types
          ) r
          join kinds k on k.id = r.ticket_type_id
        )
      ) order by b.starts_at), '[]')
      from (select * from buckets b order by b.starts_at desc limit v_most_buckets) b
    ),
    'timeline_is_complete', (select count(*) <= v_most_buckets from buckets)
  ) into v_summary;
  return v_summary;
end
$$;

create or replace function private.expire_orders (
  order_ids uuid[]
)
  returns uuid[]
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_ids uuid[];
begin
  v_ids := array(
    select o.id
    from public.orders o
    where o.id = any (order_ids) and o.payment_check_at is not null and o.payment_due_at <= now() and o.amount_paid = o.amount_refunded
    order by o.id
    for no key update skip locked
  );
  if v_ids <> '{}' then
    update public.orders o set status = 'cancelled', cancellation_reason = 'expired' where o.id = any (v_ids);
  end if;
  return v_ids;
end
$$;

create or replace function private.fields_to_change (
  "table" text,
  old_row jsonb,
  fields jsonb
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_row jsonb := private.planned_row("table", fields);
begin
  return (
    select jsonb_object_agg(f.key, v_row -> f.key)
    from jsonb_each(private.with_merged_metadata(v_row, old_row -> 'metadata')) f
    where f.value is distinct from old_row -> f.key
  );
end
$$;

create or replace function private.find_attendee (
  query private.name_query
)
  returns setof private.candidate
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'attendees:read' = any (query.scopes);
  v_may_see boolean := v_may_read or 'checkin:write' = any (query.scopes);
  v_may_write boolean := 'attendees:write' = any (query.scopes);
  v_pattern text := case when v_may_see and not query.nearest then private.name_pattern(query.form) end;
  v_near uuid[] := case when v_may_see and query.nearest then array(
    select distinct s.id
    from unnest(private.near_patterns(query.form)) p (pattern)
    cross join lateral unnest(
      private.search_attendees(array[p.pattern], case when v_may_read then E'\n' else E'\t' end, query.event_id)
    ) s (id)
  ) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select a.id, 'id' as matches, null::real as likeness from public.attendees a where not query.nearest and a.id = query.id
      union all
      (
        -- Of the order; where that has several tickets, they are the candidates.
        select a.id, 'reference', null
        from public.orders o
        cross join lateral (select a.id from public.attendees a where a.order_id = o.id limit 11) a
        where not query.nearest and o.organisation_id = query.organisation_id and o.reference = private.code_form(query.name)
      )
      union all
      select a.id, 'external_id', null from public.attendees a
      where not query.nearest and (v_may_read or v_may_write) and a.organisation_id = query.organisation_id and a.external_id = query.name
      union all
      (
        select a.id, 'email', null from public.attendees a
        where not query.nearest and v_may_read and a.organisation_id = query.organisation_id and a.email_lower = lower(query.name)
          and (query.event_id is null or a.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select a.id, 'name', null from public.attendees a
        where uuid_hash(a.organisation_id) = uuid_hash(query.organisation_id)
          and a.search_text like v_pattern
          and (a.organisation_id = query.organisation_id) is true
          and (query.event_id is null or a.event_id = query.event_id)
          and private.search_form(a.name) = query.form
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select i.id, extensions.similarity(private.search_form(a.name), query.form) as likeness
          from unnest(v_near) i (id)
          cross join lateral (select a.name from public.attendees a where a.id = i.id offset 0) a
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select a.id, f.matches, f.likeness, jsonb_build_object('object', 'attendee', 'id', a.id)
    || case when v_may_see
      then jsonb_build_object('name', a.name, 'company', a.company, 'status', a.status, 'ticket_type', n.ticket_type_name)
      else '{}' end
    || case when v_may_read then jsonb_build_object('email', a.email, 'order', n.reference) else '{}' end
    || jsonb_build_object('event', private.event_shown(a.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select a.*, a as attendee from public.attendees a where a.id = f.id offset 0) a
  cross join lateral private.names_of(a.attendee) n
  where a.organisation_id = query.organisation_id and (query.event_id is null or a.event_id = query.event_id);
end
$$;

create or replace function private.find_order (
  query private.name_query
)
  returns setof private.candidate
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'orders:read' = any (query.scopes);
  v_pattern text := case when v_may_read then private.name_pattern(query.form) end;
  -- Where the contact is not the attendee, the contact follows a line feed.
  v_pattern_after text := '%' || E'\n' || left(v_pattern, -2) || '%';
  v_ids uuid[] := '{}';
  v_id uuid;
begin
  if query.nearest then
    v_ids := case when v_may_read then array(
      select a.order_id
      from unnest(private.near_patterns(query.form)) p (pattern)
      cross join lateral unnest(private.search_attendees(array[p.pattern], null, query.event_id)) s (id)
      cross join lateral (select a.order_id from public.attendees a where a.id = s.id offset 0) a
    ) end;
  elsif v_pattern is not null then
    -- One after the other, for an order may have any number of attendees.
    loop
      select a.order_id into v_id
      from unnest(array[v_pattern, v_pattern_after]) p (pattern)
      cross join lateral (
        select a.order_id, a.event_id
        from public.attendees a
        where uuid_hash(a.organisation_id) = uuid_hash(query.organisation_id)
          and a.search_text like p.pattern
          and (a.organisation_id = query.organisation_id) is true
        offset 0
      ) a
      cross join lateral (select o.name from public.orders o where o.id = a.order_id offset 0) o
      where (query.event_id is null or a.event_id = query.event_id)
        and a.order_id <> all (v_ids)
        and private.search_form(o.name) = query.form
      limit 1;
      exit when not found;
      v_ids := v_ids || v_id;
      exit when cardinality(v_ids) > 10;
    end loop;
  end if;
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select o.id, 'id' as matches, null::real as likeness from public.orders o where not query.nearest and o.id = query.id
      union all
      select o.id, 'reference', null from public.orders o
      where not query.nearest and o.organisation_id = query.organisation_id and o.reference = private.code_form(query.name)
      union all
      select o.id, 'external_id', null from public.orders o
      where not query.nearest and o.organisation_id = query.organisation_id and o.external_id = query.name
      union all
      (
        select o.id, 'email', null from public.orders o
        where not query.nearest and v_may_read and o.organisation_id = query.organisation_id and o.email_lower = lower(query.name)
          and (query.event_id is null or o.event_id = query.event_id)
        limit 11
      )
      union all
      select i.id, 'name', null from unnest(v_ids) i (id) where not query.nearest
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select i.id, greatest(
            extensions.similarity(private.search_form(o.name), query.form), extensions.similarity(lower(o.reference), query.form)
          ) as likeness
          from (select distinct i.id from unnest(v_ids) i (id)) i
          cross join lateral (select o.name, o.reference from public.orders o where o.id = i.id offset 0) o
          where query.nearest
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select o.id, f.matches, f.likeness, jsonb_build_object('object', 'order', 'id', o.id)
    || case when v_may_read
      then jsonb_build_object(
        'reference', o.reference, 'name', o.name, 'email', o.email, 'status', o.status, 'payment_status', o.payment_status,
        'total', o.total, 'currency', o.currency
      )
      else '{}' end
    || jsonb_build_object('event', private.event_shown(o.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select o.* from public.orders o where o.id = f.id offset 0) o
  where o.organisation_id = query.organisation_id and (query.event_id is null or o.event_id = query.event_id);
end
$$;

create or replace function private.find_promo_code (
  query private.name_query
)
  returns setof private.candidate
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select c.id, 'id' as matches, null::real as likeness from public.promo_codes c where not query.nearest and c.id = query.id
      union all
      (
        select c.id, 'code', null from public.promo_codes c
        where not query.nearest and v_may_read and c.organisation_id = query.organisation_id and lower(c.code) = lower(normalize(query.name, nfc))
          and (query.event_id is null or c.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select c.id, extensions.similarity(lower(c.code), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select c.id, c.code from public.promo_codes c
            where c.event_id = any (array[e.id])
            order by c.event_id desc, c.id desc
            limit 50
          ) c
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'promo_code', 'id', f.id)
    || case when v_may_read then jsonb_build_object('code', c.code, 'status', c.status) else '{}' end
    || jsonb_build_object('event', private.event_shown(c.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select c.* from public.promo_codes c where c.id = f.id offset 0) c
  where c.organisation_id = query.organisation_id and (query.event_id is null or c.event_id = query.event_id);
end
$$;

create or replace function private.form_of_name (
  "table" text,
  name text
)
  returns text
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return case "table" when 'promo_codes' then lower(normalize(name, nfc)) else private.search_form(btrim(name)) end;
end
$$;

create or replace function private.former_holders (
  object_ids uuid[]
)
  returns setof private.former_holder
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_entry record;
  h private.former_holder;
begin
  for v_entry in
    select e.object_type::text as object, e.object_id, e.id, e.changes, e.created_at, n.event_id, n.name, lower(n.email) as address
    from public.audit_entries e
    left join lateral (
      select a.event_id, a.name, a.email from public.attendees a where a.id = e.object_id and e.object_type = 'attendee'
      union all
      select o.event_id, o.name, o.email from public.orders o where o.id = e.object_id and e.object_type = 'order'
      union all
      select w.event_id, w.name, w.email from public.waiting_list_entries w where w.id = e.object_id and e.object_type = 'waiting_list_entry'
    ) n on true
    where e.object_id = any (object_ids) and e.changes is not null
    order by e.object_id desc, e.id desc
  loop
    if v_entry.object_id is distinct from h.object_id then
      h.object := v_entry.object;
      h.object_id := v_entry.object_id;
      h.event_id := coalesce(v_entry.event_id, (v_entry.changes #>> '{event_id,from}')::uuid);
      h.address := v_entry.address;
      h.name := v_entry.name;
    end if;
    h.entry_id := v_entry.id;
    h.leaves := v_entry.changes ? 'email' and lower(v_entry.changes #>> '{email,from}') is distinct from lower(v_entry.changes #>> '{email,to}');
    if v_entry.changes ? 'email' then
      h.address := lower(v_entry.changes #>> '{email,from}');
    end if;
    if v_entry.changes ? 'name' then
      h.name := v_entry.changes #>> '{name,from}';
    end if;
    h.form := private.search_form(h.name);
    h.company := v_entry.changes #>> '{company,from}';
    h.created_at := v_entry.created_at;
    h.has_address := coalesce(h.address = v_entry.address, false);
    h.is_theirs := h.has_address and h.form = private.search_form(v_entry.name);
    return next h;
  end loop;
end
$$;

create or replace function private.forms_meant (
  rows private.personal_row[],
  names text[],
  everyone boolean
)
  returns text[]
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return case
    when everyone then null
    when names is not null then array(select distinct private.search_form(n) from unnest(names) n)
    else array(
      select distinct r.form
      from unnest(forms_meant.rows) r
      where r.object <> 'member' or not exists (select from unnest(forms_meant.rows) g where g.object <> 'member')
    )
  end;
end
$$;

create or replace function private.hint_for_address (
  address text
)
  returns text
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_odd text := substring(address from '[^!-~]');
  v_code_point text := upper(to_hex(ascii(v_odd)));
begin
  return concat_ws(
    ' ',
    'Write it as in name@example.com.',
    'The character U+' || lpad(v_code_point, greatest(4, length(v_code_point)), '0') || ' is not allowed in it.',
    case when ascii(v_odd) > 127 then 'A domain with letters beyond ASCII is written with xn--, as in name@xn--bcher-kva.de.' end
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
        'attendees', jsonb_build_array(private.with_merged_metadata(v_guest, '{}'))
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
    elsif jsonb_populate_record(v_attendee, private.with_merged_metadata(v_changes, v_attendee.metadata)) is not distinct from v_attendee then
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

create or replace function private.is_contact (
  name text,
  email text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return coalesce(private.is_one_line(name, 200) and private.is_email_address(email), false);
end
$$;

create or replace function private.is_email_address (
  address text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return length(address) <= 254 and strpos(address, '@') <= 65
    and address ~ '^[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+([.][A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?[.])+[A-Za-z][A-Za-z0-9-]{0,61}[A-Za-z0-9]$';
end
$$;

create or replace function private.is_internal_url (
  url text
)
  returns boolean
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_host constant text := rtrim(
    translate(lower(normalize(substring(url from '^https?://(\[[^]]*\]|[^][/?#@:]*)'), nfkc)), '。', '.'), '.'
  );
  v_address inet;
begin
  if v_host ~ '(^|\.)localhost$' or v_host in ('127.0.0.1', '[::1]') then
    return not exists (
      select from private.installations i where not exists (select from unnest(i.names) n (name) where n.name like 'project:%')
    );
  elsif v_host ~ '\.local$' then
    return true;
  elsif v_host !~ '^\[|(^|\.)([0-9]+|0x[0-9a-f]*)$' then
    return false;
  elsif v_host ~ '(^|\.)0[0-9]' or v_host !~ '^([0-9]{1,3}\.){3}[0-9]{1,3}$|^\[' then
    return true;
  end if;
  v_address := btrim(v_host, '[]');
  return case family(v_address)
    when 4 then v_address <<= any ('{
      0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 168.63.129.16, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24,
      192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/3
    }'::inet[])
    else not v_address <<= '2000::/3' or v_address <<= any ('{2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20}'::inet[])
  end;
exception when invalid_text_representation then
  return true;
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
    and private.is_one_line(value #>> '{}', max_length);
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
      or v_order.status = 'pending' and v_order.amount_paid = v_order.amount_refunded and coalesce(v_order.payment_due_at <= now(), false)
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

create or replace function private.is_one_line (
  text text,
  characters integer
)
  returns boolean
  language plpgsql
  immutable
  strict
  set search_path to ''
  as $$
begin
  return length(btrim(text)) <= characters and text !~ '[[:cntrl:]]' and private.person_form(text) <> '';
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
    and "order".amount_retained between 0 and "order".amount_paid - "order".amount_refunded
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
    private.is_one_line(ticket_type.name, 200)
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

create or replace function private.key_of_sign_in (
  secret_hash text
)
  returns public.api_keys
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_key public.api_keys;
begin
  select k.* into v_key
  from private.oauth_sign_ins s
  join public.api_keys k on k.id = s.api_key_id
  where s.secret_hash = decode(key_of_sign_in.secret_hash, 'hex') and s.expires_at > now() and k.kind = 'person';
  if private.is_usable_key(v_key) then
    return v_key;
  end if;
  return null;
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
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_lock_key integer;
begin
  for v_lock_key in
    select i.lock_key from private.external_ids_of(organisation_id, null, guests) i
    union
    select hashtext(concat_ws(' ', lock_guests.event_id, 'guest', lower(g.guest ->> 'email'), private.person_form(g.guest ->> 'name')))
    from jsonb_array_elements(guests) g (guest)
    where g.guest ->> 'external_id' is null
    order by 1
  loop
    perform pg_advisory_xact_lock(6, v_lock_key);
  end loop;
end
$$;

create or replace function private.lock_orders_of (
  event_id uuid,
  scans jsonb[]
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_codes text[] := array(select private.code_form(s ->> 'code') from unnest(scans) s);
  v_attendee_ids uuid[] := array(
    select a.id from public.attendees a where a.organisation_id = v_organisation_id and a.ticket_code = any (v_codes)
  ) || array(select (s ->> 'attendee_id')::uuid from unnest(scans) s where s ->> 'attendee_id' is not null);
begin
  perform private.lock_event_shared(event_id);
  perform 1
  from public.orders o
  where o.id = any (array(
    select a.order_id from public.attendees a
    where a.id = any (v_attendee_ids) and a.organisation_id is not distinct from v_organisation_id
  ))
  order by o.id
  for share;
  perform 1
  from public.attendees a
  where a.id = any (v_attendee_ids) and a.organisation_id is not distinct from v_organisation_id
  order by a.id
  for no key update;
end
$$;

create or replace function private.members_of_address (
  organisation_id uuid,
  address text,
  forms text[]
)
  returns setof private.personal_row
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return query
  select
    'member', not bool_or(f.has_address), f.user_id, null::uuid, coalesce((array_agg(f.name order by f.created_at desc))[1], ''), f.form,
    null, null, max(f.created_at)
  from (
    select m.user_id, m.name, coalesce(private.search_form(m.name), '') as form, true as has_address, m.created_at
    from public.organisation_members m
    where m.organisation_id = members_of_address.organisation_id and lower(m.email) = address
    union all
    -- Entries of members are few.
    select n.user_id, n.name, coalesce(private.search_form(n.name), ''), false, n.created_at
    from (
      select
        e.object_id as user_id, coalesce(m.name, e.changes #>> '{name,to}', e.changes #>> '{name,from}', l.name) as name, e.created_at
      from public.audit_entries e
      left join public.organisation_members m on m.organisation_id = e.organisation_id and m.user_id = e.object_id
      -- An entry has only what it changed.
      left join lateral (
        select coalesce(o.changes #>> '{name,to}', o.changes #>> '{name,from}') as name
        from public.audit_entries o
        where o.object_id = e.object_id and o.organisation_id = e.organisation_id and o.object_type = 'member'
          and coalesce(o.changes #>> '{name,to}', o.changes #>> '{name,from}') is not null
        order by o.id desc
        limit 1
      ) l on true
      where e.organisation_id = members_of_address.organisation_id and e.object_type = 'member'
        and address in (lower(e.changes #>> '{email,from}'), lower(e.changes #>> '{email,to}'))
    ) n
  ) f
  where forms is null or f.form = '' or f.form = any (forms)
  group by f.user_id, f.form;
end
$$;

create or replace function private.moved_times (
  "row" jsonb,
  move private.event_move
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_time record;
  v_times jsonb := '{}';
begin
  for v_time in
    select
      f.key as field, f.value::timestamptz as before,
      ((f.value::timestamptz at time zone move.from_zone) + move.distance) at time zone move.to_zone as after
    from jsonb_each_text("row") f
    where f.key in ('starts_at', 'ends_at', 'sales_start_at', 'sales_end_at', 'valid_from', 'valid_until', 'opens_at', 'closes_at')
      and f.value is not null
      and move.distance is not null
      and (move.is_copy or f.key in ('starts_at', 'ends_at', 'opens_at', 'closes_at') or f.value::timestamptz > now())
    order by f.key desc
  loop
    if not move.is_copy and v_time.before > now() and v_time.after <= now() then
      perform private.refuse_value(
        v_time.field, format('With this move, %s would be in the past.', v_time.field),
        format('Move the event less far, or change %s first.', v_time.field)
      );
    end if;
    v_times := v_times || jsonb_build_object(v_time.field, v_time.after);
  end loop;
  return v_times;
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
        and e.previous is distinct from v_now
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

create or replace function private.not_reminded_because (
  "order" public.orders,
  next_reminder_at timestamp with time zone
)
  returns text
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return case
    when "order".cancellation_reason = 'expired' then 'order_expired'
    when "order".status = 'cancelled' then 'order_cancelled'
    when private.amount_due("order") = 0 then 'nothing_due'
    when "order".status = 'pending' and "order".payment_due_at <= now() and "order".amount_paid = "order".amount_refunded then 'order_expired'
    when private.unmailed_because("order", 'mailed') is not null then 'buyer_not_mailed'
    when next_reminder_at > now() then 'reminded_recently'
  end;
end
$$;

create or replace function private.notice_of_cancellation (
  event public.events,
  notify public.notify
)
  returns jsonb
  language plpgsql
  stable
  security definer
  set search_path to ''
  as $$
declare
  v_recipients private.recipient[];
begin
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  end if;
  v_recipients := private.recipients_of_cancellation(event, private.attendees_to_tell(event), notify);
  return private.told_of(v_recipients) || jsonb_build_object('emails', cardinality(private.addressees(v_recipients)));
end
$$;

create or replace function private.notify_of_cancelled_tickets (
  notify public.notify,
  order_id uuid,
  attendee_id uuid default null::uuid,
  message text default null::text
)
  returns jsonb
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  message := private.sound_message(message, notify);
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
    notify,
    message => message
  );
end
$$;

create or replace function private.notify_of_event (
  event_id uuid,
  notify public.notify,
  message text default null::text
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
  v_settled text[] := '{}';
  v_kind public.email_kind := 'event_changed';
  v_send_at timestamptz := now() + interval '10 minutes';
  v_notice jsonb;
  v_first jsonb;
begin
  message := private.sound_message(message, notify);
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
  v_attendees := private.attendees_to_tell(v_event);
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
        and e.previous <> v_news
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
    -- Whose e-mail waits, and says what is as it was again: it will not be sent.
    v_settled := array(
      select a.email_lower
      from public.emails e
      join public.attendees a on a.id = e.attendee_id
      where e.attendee_id = any (v_attendees) and e.kind = 'event_changed' and e.status = 'queued' and e.claim is null
        and e.previous = v_news
    );
    -- An e-mail that waits shows what is when it is sent, whomever it is for.
    v_recipients := array(
      select row(
        r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.email_lower,
        case
          when r.email_lower in (select unnest(v_pending)) then nullif(r.reason, 'send_email_false')
          when v_change.previous = v_news or r.email_lower in (select unnest(v_settled)) then coalesce(r.reason, 'nothing_to_tell')
          else r.reason
        end,
        r.order_id
      )::private.recipient
      from unnest(v_recipients || v_offers) with ordinality r
      order by r.ordinality
    );
    -- What waits says the newest.
    update public.emails e set message = notify_of_event.message
    where e.status = 'queued' and e.claim is null and notify_of_event.message is not null
      and (
        e.kind = 'event_changed' and e.attendee_id = any (v_attendees)
        or e.kind = 'waiting_list_offer' and e.waiting_list_entry_id = any (array(select o.waiting_list_entry_id from unnest(v_offers) o))
      );
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
        r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.email_lower,
        case when v_change.mailed = v_news then 'told_before' when r.email_lower in (select unnest(v_settled)) then 'nothing_to_tell' end,
        r.order_id
      )::private.recipient
      from unnest(v_mailed) r
      where r.reason is null
    );
    v_first := private.tell(v_kind, v_told_before, v_change.mailed, v_send_at, v_pending, message);
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
  v_notice := private.tell(v_kind, v_recipients, v_change.previous, v_send_at, v_pending, message);

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
    'amount_retained', "order".amount_retained,
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

create or replace function private.page_of_attendees (
  order_id uuid,
  event_id uuid,
  ticket_type_id uuid,
  status public.attendee_status,
  checked_in boolean,
  ticket_email_status public.email_status,
  email text,
  updated_since timestamp with time zone,
  patterns text[],
  before uuid,
  size integer,
  inside boolean default null::boolean
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
  v_email_lower text := lower(email);
  v_event_id uuid;
  v_ticket_type_ids uuid[];
  v_statuses public.attendee_status[] :=
    case when page_of_attendees.status is null then enum_range(null::public.attendee_status) else array[page_of_attendees.status] end;
  v_checked_in boolean[];
  v_inside boolean[];
  v_email_statuses public.email_status[] :=
    case when page_of_attendees.ticket_email_status is null then enum_range(null::public.email_status)
    else array[page_of_attendees.ticket_email_status] end;
begin
  if page_of_attendees.order_id is not null then
    return array(select a.id from public.attendees a where a.order_id = page_of_attendees.order_id);
  elsif v_email_lower is not null then
    return array(
      select a.id
      from public.attendees a
      where a.organisation_id = any (v_organisation_ids)
        and a.email_lower = v_email_lower
        and a.id < before
      order by a.organisation_id desc, a.id desc
      limit size
    );
  elsif patterns is not null then
    return private.search_attendees(
      patterns, E'\n', page_of_attendees.event_id, page_of_attendees.ticket_type_id, page_of_attendees.status, page_of_attendees.checked_in,
      page_of_attendees.ticket_email_status, updated_since, before, size, page_of_attendees.inside
    );
  elsif updated_since is not null then
    return array(
      with changed as materialized (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids) and a.updated_at >= updated_since
        order by a.organisation_id, a.updated_at, a.id
      )
      select c.id from changed c where c.id < before order by c.id desc limit size
    );
  end if;
  -- Whoever is inside came in.
  select array_agg(c.checked_in), array_agg(c.inside) into v_checked_in, v_inside
  from (values (false, false), (true, false), (true, true)) c (checked_in, inside)
  where c.checked_in = coalesce(page_of_attendees.checked_in, c.checked_in) and c.inside = coalesce(page_of_attendees.inside, c.inside);
  if page_of_attendees.event_id is null and page_of_attendees.ticket_type_id is null then
    return array(
      select f.id
      from unnest(v_statuses) s (status)
      cross join unnest(v_checked_in, v_inside) c (checked_in, inside)
      cross join unnest(v_email_statuses) e (status)
      cross join lateral (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids)
          and a.status = s.status
          and a.checked_in = c.checked_in
          and a.inside = c.inside
          and a.ticket_email_status = e.status
          and a.id < before
        order by a.organisation_id desc, a.id desc
        limit size
      ) f
      order by f.id desc
      limit size
    );
  end if;
  if page_of_attendees.ticket_type_id is null then
    v_event_id := page_of_attendees.event_id;
    v_ticket_type_ids := array(select t.id from public.ticket_types t where t.event_id = v_event_id);
  else
    select t.event_id into v_event_id from public.ticket_types t where t.id = page_of_attendees.ticket_type_id;
    v_ticket_type_ids := array[page_of_attendees.ticket_type_id];
  end if;
  if v_event_id <> page_of_attendees.event_id
    or not exists (select from public.events e where e.id = v_event_id and e.organisation_id = any (v_organisation_ids)) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_ticket_type_ids) t (id)
    cross join unnest(v_statuses) s (status)
    cross join unnest(v_checked_in, v_inside) c (checked_in, inside)
    cross join unnest(v_email_statuses) e (status)
    cross join lateral (
      select a.id
      from public.attendees a
      where a.ticket_type_id = any (array[t.id])
        and a.status = s.status
        and a.checked_in = c.checked_in
        and a.inside = c.inside
        and a.ticket_email_status = e.status
        and a.id < before
      order by a.ticket_type_id desc, a.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;

create or replace function private.page_of_emails (
  order_id uuid,
  attendee_id uuid,
  kind public.email_kind,
  status public.email_status,
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
  v_organisation_id uuid := private.current_organisation_id();
  v_kinds public.email_kind[] :=
    case when page_of_emails.kind is null then enum_range(null::public.email_kind) else array[page_of_emails.kind] end;
  v_statuses public.email_status[] :=
    case when page_of_emails.status is null then enum_range(null::public.email_status) else array[page_of_emails.status] end;
begin
  if num_nonnulls(page_of_emails.order_id, page_of_emails.attendee_id) > 0 then
    return array(
      select e.id
      from (
        select e.* from public.emails e where e.order_id = page_of_emails.order_id and page_of_emails.attendee_id is null
        union all
        select e.*
        from public.attendees a
        join public.emails e on e.attendee_id = a.id
        where a.order_id = page_of_emails.order_id and page_of_emails.attendee_id is null
        union all
        select e.*
        from public.attendees a
        join public.emails e on e.attendee_id = a.id
        where a.id = page_of_emails.attendee_id and a.order_id = coalesce(page_of_emails.order_id, a.order_id)
      ) e
      -- An expression, so that the planner does not scan the index of the organisation.
      where coalesce(e.organisation_id = v_organisation_id and e.id < before, false) and e.kind = any (v_kinds) and e.status = any (v_statuses)
      order by e.id desc
      limit size
    );
  end if;
  return array(
    select e.id
    from public.emails e
    where e.organisation_id = any (array[v_organisation_id]) and e.kind = any (v_kinds) and e.status = any (v_statuses) and e.id < before
    order by e.organisation_id desc, e.id desc
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
    'message', email.message,
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

create or replace function private.person_form (
  name text
)
  returns text
  language plpgsql
  immutable
  strict
  set search_path to ''
  as $$
begin
  name := translate(name, E'`\t\n\x0b\f\r', '''     ');
  if octet_length(name) > length(name) then
    name := regexp_replace(
      name,
      '[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0'
      '\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]',
      '', 'g'
    );
    name := normalize(
      translate(
        name,
        E'\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u02ca\u02cb\u2018\u2019\u201b\u2032\u2035\u055a\u05f3\ua78b\ua78c\uff07\uff40'
        '\u02d7\u058a\u05be\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d'
        '\u0085\u1680\u2028\u2029',
        repeat('''', 21) || repeat('-', 16) || repeat(' ', 4)
      ),
      nfkd
    );
  end if;
  if strpos(name, '  ') > 0 then
    name := regexp_replace(name, ' +', ' ', 'g');
  end if;
  return lower(btrim(name));
end
$$;

create or replace function private.plan_changes (
  old_row jsonb,
  fields jsonb,
  was public.events,
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
  return (
    select jsonb_object_agg(n.key, jsonb_build_array(o.value, n.value))
    from jsonb_each(private.plan_words(private.with_merged_metadata(fields, old_row -> 'metadata'), event)) n
    left join jsonb_each(private.plan_words(
      (select jsonb_object_agg(f.key, old_row -> f.key) from jsonb_object_keys(fields) f (key)), was
    )) o using (key)
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
  v_warnings jsonb[] := case when base.id = event.id
    then array[private.warning_of_capacity(base, event), private.warning_of_timezone(base, event)] else '{}' end;
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
      where o.event_id = event.id
        and case event.status when 'cancelled' then o.cancelled_at = event.cancelled_at else o.status <> 'cancelled' end
    ),
    notify
  ) || private.recipients_on_waiting_list(event, notify);
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
    where w.event_id = event.id
      and case event.status
        when 'cancelled' then w.status = 'cancelled' and w.updated_at = event.cancelled_at
        else w.status in ('waiting', 'offered')
      end
    order by w.offered_at is null, w.id
  );
end
$$;

create or replace function private.refundable_if_cancelled (
  "order" public.orders
)
  returns bigint
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return "order".amount_paid - "order".amount_refunded - "order".amount_retained - private.amount_refundable("order");
end
$$;

create or replace function private.refuse (
  status integer,
  code text,
  message text,
  param text default null::text,
  details jsonb default null::jsonb,
  hint text default null::text,
  "row" jsonb default null::jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  raise exception using
    errcode = 'PT' || status,
    message = private.in_column(param, message),
    detail = jsonb_strip_nulls(jsonb_build_object('code', code, 'param', param, 'details', details, 'row', private.which("row"))),
    hint = coalesce(hint, '');
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
      perform private.refuse(409, 'read_only_field', 'This field is fixed once the row exists.', v_column, hint => refuse_changed.hint, "row" => "row");
    end if;
  end loop;
end
$$;

create or replace function private.refuse_contact (
  name text,
  email text,
  "row" jsonb default null::jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.assert_valid_name(name, "row");
  perform private.refuse_value(
    'email',
    case when email ~ '[^ -~]' then 'This e-mail address has a character that is invisible or not ASCII.' else 'This is not an e-mail address.' end,
    private.hint_for_address(email), "row"
  );
end
$$;

create or replace function private.refuse_past_deadline (
  "order" public.orders
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
      'payment_due_at was read as %s, which is %s.',
      (select private.clock_time("order".payment_due_at, e.timezone) from public.events e where e.id = "order".event_id),
      case when "order".payment_due_at < "order".created_at then 'before the order was made' else 'in the past' end
    ),
    'Write the year first, as in 2026-12-10 18:00 Europe/Berlin. If the order is to expire now: expire_now in update_order, now() by hand.'
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
          then 'Money that came for it is returned at the bank, and neither it nor its return is recorded. A refund cannot be taken back yet: note one that the bank sent back in your books, and send it anew.'
        else 'Money that came for it is returned at the bank, and neither it nor its return is recorded.'
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
        then 'A cancelled order keeps it until its money is returned. Or give that order another external_id.'
        else 'A cancelled order has it: give that order another external_id, or none.'
      end
    );
  end if;
  perform private.refuse_taken('external_id', holder.id, holder.created_at, row_xmin);
end
$$;

create or replace function private.refuse_value (
  param text,
  message text,
  hint text default null::text,
  "row" jsonb default null::jsonb
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  message := private.in_column(param, message);
  perform private.refuse(
    422, 'validation_failed', message, param,
    jsonb_build_object('fields', jsonb_build_array(jsonb_build_object('param', param, 'message', message))), hint,
    "row"
  );
end
$$;

create or replace function private.remind_buyer (
  order_id uuid
)
  returns public.orders
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_next timestamptz;
begin
  -- Locked, so that a payment of this moment is seen, and a second reminder waits for the first.
  select o.* into v_order
  from public.orders o
  where o.id = remind_buyer.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('order_id');
  end if;
  v_next := private.next_reminder_at(v_order.id);
  case private.not_reminded_because(v_order, v_next)
    when 'order_expired' then
      if v_order.status = 'cancelled' then
        perform private.refuse_expired(v_order);
      end if;
      perform private.refuse(
        409, 'order_expired', 'The deadline of this order has passed, and it expires now.', 'order_id',
        jsonb_build_object('payment_due_at', private.rfc3339(v_order.payment_due_at)), 'Change payment_due_at first.'
      );
    when 'order_cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order is not to be paid.', 'order_id');
    when 'nothing_due' then
      perform private.refuse(
        409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
      );
    when 'buyer_not_mailed' then
      perform private.refuse(
        409, 'buyer_not_mailed', 'The buyer of this order gets no e-mails.', 'order_id',
        jsonb_build_object('reason', private.unmailed_because(v_order, 'mailed')),
        'Remind them by telephone or in an e-mail of your own.'
      );
    when 'reminded_recently' then
      perform private.refuse(
        409, 'reminded_recently', 'The buyer was reminded within the last 24 hours.', 'order_id',
        jsonb_build_object('next_reminder_at', private.rfc3339(v_next)),
        format('The next reminder is possible from %s on.', private.rfc3339(v_next))
      );
    else
      update public.orders o set payment_reminded_at = now() where o.id = v_order.id returning * into v_order;
      perform private.queue_order_emails('payment_reminder', array[v_order.id]);
  end case;
  return v_order;
end
$$;

create or replace function private.remind_of_payments (
  order_ids uuid[]
)
  returns uuid[]
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_ids uuid[];
begin
  v_ids := array(
    select o.id
    from public.orders o
    where o.id = any (order_ids) and o.payment_check_at <= now() and (o.payment_due_at > now() or o.amount_paid > o.amount_refunded)
    order by o.id
    for no key update skip locked
  );
  if v_ids <> '{}' then
    update public.orders o set payment_reminded_at = now() where o.id = any (v_ids);
    perform private.queue_order_emails('payment_reminder', v_ids);
  end if;
  return v_ids;
end
$$;

create or replace function private.reopen_order (
  order_id uuid,
  payment_due_at timestamp with time zone,
  notify public.notify,
  out "order" public.orders,
  out tickets integer,
  out notice jsonb
)
  returns record
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_order public.orders;
  v_due_at timestamptz;
  v_attendee_ids uuid[];
  v_missing jsonb;
  v_reason text;
begin
  select o.* into v_order from public.orders o where o.id = reopen_order.order_id;
  if private.is_foreign(v_order.organisation_id) then
    perform private.refuse_not_found('order_id');
  end if;
  -- Locks in the order in which everybody takes them: see 20-events/locks.sql.
  v_event := private.lock_event_shared(v_order.event_id);
  select o.* into v_order from public.orders o where o.id = reopen_order.order_id for no key update;
  if v_order.status is distinct from 'cancelled' then
    perform private.refuse(
      409, 'invalid_transition', 'Only an order that has expired is reopened.', 'status',
      jsonb_build_object('from', v_order.status, 'to', 'pending'),
      case v_order.status when 'pending' then 'Change its payment_due_at instead.' else 'A completed order keeps its tickets.' end
    );
  elsif v_order.cancellation_reason <> 'expired' then
    perform private.refuse(
      409, 'order_cancelled', 'This order did not expire: it was cancelled, which is for good.', 'order_id',
      jsonb_build_object('cancellation_reason', v_order.cancellation_reason), 'Register the guests again.'
    );
  end if;
  perform private.assert_takes_registrations(v_event);
  v_due_at := coalesce(payment_due_at, now() + make_interval(hours => 24 * v_event.payment_due_days));
  if v_due_at <= now() then
    perform private.refuse_value(
      'payment_due_at', 'The new deadline is not in the future.', 'Send a later time, or leave it out for the days of the event.'
    );
  end if;

  -- Those that the expiry cancelled, in its transaction; whoever was cancelled before stays so.
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.order_id = v_order.id and a.status = 'cancelled' and a.cancelled_at = v_order.cancelled_at
    order by a.id
    for no key update
  );
  if v_attendee_ids = '{}' then
    perform private.refuse(
      409, 'order_cancelled', 'No ticket of this order is left: they were deleted.', 'order_id', hint => 'Register the guests again.'
    );
  end if;
  if v_order.promo_code_id is not null then
    perform from public.promo_codes c where c.id = v_order.promo_code_id for no key update;
    perform private.assert_uses_left(v_order.promo_code_id, v_attendee_ids);
  end if;
  if v_event.capacity is not null then
    perform private.lock_event_capacity(v_event.id);
  end if;
  perform from public.ticket_types t
  where t.id = any (array(select a.ticket_type_id from public.attendees a where a.id = any (v_attendee_ids)))
  order by t.id
  for no key update;
  v_missing := private.missing_places(v_event, v_attendee_ids);
  if v_missing is not null then
    perform private.refuse(
      409, 'sold_out', 'There are not enough places left for all tickets of this order.',
      case when v_missing ? 'missing' then 'ticket_type_id' else 'event_id' end,
      v_missing,
      'Raise the quantity of the ticket types, or the capacity of the event, or register fewer guests anew.'
    );
  end if;

  perform set_config('usher.reopening', v_order.id::text, true);
  update public.orders o set status = 'pending', payment_due_at = v_due_at where o.id = v_order.id;
  update public.attendees a set status = 'awaiting_payment' where a.id = any (v_attendee_ids);
  perform set_config('usher.reopening', '', true);
  select o.* into "order" from public.orders o where o.id = v_order.id;
  tickets := cardinality(v_attendee_ids);

  -- The buyer was told that it is cancelled; a confirmation has again what is to be paid, by when, and for whom.
  v_reason := case when coalesce(notify, 'nobody') = 'nobody' then 'notify_nobody' else private.unmailed_because("order", notify) end;
  if v_reason is null then
    insert into public.emails (organisation_id, kind, order_id) values (v_order.organisation_id, 'order_confirmation', v_order.id);
    notice := '{"emails": 1, "told": 1, "not_told": []}';
  else
    notice := jsonb_build_object('not_told', jsonb_build_array(jsonb_build_object('reason', v_reason, 'count', 1)));
  end if;
end
$$;

create or replace function private.resend_email (
  email_id uuid
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_email public.emails;
  v_attendee public.attendees;
begin
  select e.* into v_email from public.emails e where e.id = resend_email.email_id and e.organisation_id = private.current_organisation_id();
  if not found then
    perform private.refuse_not_found('email_id');
  elsif v_email.kind = 'ticket' then
    -- Attendees are locked before their e-mails.
    select a.* into v_attendee from public.attendees a where a.id = v_email.attendee_id for no key update;
    if v_attendee.status <> 'active' then
      perform private.refuse_inactive_ticket(v_attendee.status);
    end if;
    update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id;
    return private.email_json(
      (select e.id from public.emails e where e.attendee_id = v_attendee.id and e.kind = 'ticket' order by e.created_at desc, e.id desc limit 1)
    );
  end if;
  select e.* into v_email from public.emails e where e.id = v_email.id for no key update;
  if v_email.kind = 'payment_reminder' then
    -- Its own operation bounds how often.
    perform private.refuse(
      409, 'email_obsolete', 'A reminder is not sent again.', 'email_id', hint => 'Send another one with send_payment_reminder.'
    );
  elsif private.is_obsolete(v_email) then
    perform private.refuse(
      409, 'email_obsolete', 'This e-mail is out of date, or has no recipient any more.', 'email_id',
      hint => 'Look at its order, attendee or event: what holds now is told by another e-mail.'
    );
  end if;
  update public.emails e set status = 'queued' where e.id = v_email.id;
  return private.email_json(v_email.id);
end
$$;

create or replace function private.retain_of (
  order_id uuid,
  amount bigint
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if ('orders:write' = any (private.current_scopes())) is not true then
    perform private.refuse(403, 'missing_scope', 'What is retained of an order needs the scope orders:write.', 'amount_retained');
  end if;
  update public.orders o set amount_retained = o.amount_retained + amount
  where o.id = retain_of.order_id and o.organisation_id = private.current_organisation_id();
end
$$;

create or replace function private.rotate_api_key (
  prefix text,
  new_prefix text,
  new_key_hash bytea,
  overlap interval
)
  returns public.api_keys
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_old public.api_keys;
begin
  select k.* into v_old from public.api_keys k where k.prefix = rotate_api_key.prefix for no key update;
  if not found then
    perform private.refuse(404, 'not_found', 'There is no API key with this prefix.', 'prefix', hint => 'usher keys list shows them.');
  end if;
  if not private.is_usable_key(v_old) then
    perform private.refuse_key(v_old);
  elsif v_old.kind = 'grant' then
    perform private.refuse(
      409, 'api_key_rotated', 'A grant has no key to rotate: its client renews its tokens by itself.', 'prefix',
      hint => 'Revoke it; the person can sign in again.'
    );
  end if;
  if exists (select from public.api_keys k where k.family_id = v_old.family_id and k.id > v_old.id) then
    perform private.refuse(
      409, 'api_key_rotated', 'This API key was rotated before and is about to expire.', 'prefix',
      hint => 'Rotate the key that replaced it: usher keys list shows it.'
    );
  end if;

  update public.api_keys k set expires_at = least(k.expires_at, now() + overlap) where k.id = v_old.id;

  return private.create_api_key(
    (select o.slug from public.organisations o where o.id = v_old.organisation_id),
    v_old.name, v_old.scopes, new_prefix, new_key_hash, v_old.expires_at, v_old.family_id, v_old.confirmations, v_old.kind
  );
end
$$;

create or replace function private.row_meant (
  rows jsonb,
  places jsonb,
  reference text,
  param text,
  "table" text default 'ticket_types'::text
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_found jsonb[] := array(
    select rows -> p.place
    from (
      select jsonb_array_elements_text(places -> ('=' || reference))::integer as place
      union
      select jsonb_array_elements_text(places -> ('~' || private.form_of_name("table", reference)))::integer
    ) p
    order by p.place
  );
  v_in_use jsonb[];
begin
  if places ? ('#' || reference) then
    return rows -> (places -> ('#' || reference) ->> 0)::integer;
  elsif cardinality(v_found) < 2 then
    return v_found[1];
  end if;
  v_in_use := array(select r from unnest(v_found) r where r ->> 'status' = 'active');
  if cardinality(v_in_use) <> 1 then
    perform private.refuse_ambiguous(param, (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'id', r -> 'id', 'name', r -> 'name', 'status', r -> 'status', 'price', r -> 'price', 'external_id', r -> 'external_id'
      )))
      from unnest(v_found[1:10]) r
    ));
  end if;
  return v_in_use[1];
end
$$;

create or replace function private.row_of_item (
  "table" text,
  rows jsonb,
  places jsonb,
  item jsonb
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_label text := (private.planned_fields("table"))[1];
  v_place jsonb := places -> ('=' || (item ->> 'external_id')) -> 0;
  v_row jsonb;
begin
  if item ? 'id' then
    v_row := private.row_meant(rows, places, item ->> 'id', 'id', "table");
    if v_row is null then
      perform private.refuse(
        404, 'not_found', 'The event has nothing with this id, external_id or name.', 'id',
        jsonb_build_object('names', (
          select coalesce(jsonb_agg(n.name), '[]') from (select r -> v_label as name from jsonb_array_elements(rows) r limit 10) n
        )),
        'Leave id out to add it as new.'
      );
    end if;
  elsif v_place is not null then
    v_row := rows -> v_place::integer;
  elsif item ->> v_label is not null then
    v_row := private.row_meant(rows, places, item ->> v_label, v_label, "table");
    if v_row ->> 'external_id' is not null and item ->> 'external_id' is not null then
      v_row := null;
    end if;
  end if;
  return v_row;
end
$$;

create or replace function private.rows_of_address (
  organisation_id uuid,
  address text,
  forms text[],
  most integer
)
  returns setof private.personal_row
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
  v_organisation_ids constant uuid[] := array[organisation_id];
  v_attendee_ids uuid[];
  v_object_ids uuid[];
begin
  -- That of everybody who was erased.
  if address = private.erased_fields() ->> 'email' then
    return;
  end if;
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.organisation_id = any (v_organisation_ids) and a.email_lower = address and a.erased_at is null
      and (forms is null or private.search_form(a.name) = any (forms))
    order by a.organisation_id desc, a.id desc
    limit most
  );
  return query
  select 'attendee', false, a.id, a.event_id, a.name, private.search_form(a.name), a.company, a.status::text, a.created_at
  from public.attendees a
  where a.id = any (v_attendee_ids);

  return query
  select 'order', false, o.id, o.event_id, o.name, o.form, o.company, o.status::text, o.created_at
  from (
    select o.*, private.search_form(o.name) as form
    from public.orders o
    where o.id = any (array(
      select o.id
      from public.orders o
      where o.organisation_id = any (v_organisation_ids) and o.email_lower = address
        and (forms is null or private.search_form(o.name) = any (forms))
      order by o.organisation_id desc, o.id desc
      limit most
    ))
    union
    -- The contact of their ticket's order, by name.
    select o.*, private.search_form(o.name)
    from public.attendees a
    cross join lateral (select o.* from public.orders o where o.id = a.order_id offset 0) o
    where a.id = any (v_attendee_ids) and private.search_form(o.name) = private.search_form(a.name)
  ) o;

  return query
  select 'waiting_list_entry', false, w.id, w.event_id, w.name, private.search_form(w.name), w.company, w.status::text, w.created_at
  from public.waiting_list_entries w
  where w.id = any (array(
    select w.id
    from public.waiting_list_entries w
    where w.organisation_id = any (v_organisation_ids) and w.email_lower = address
      and (forms is null or private.search_form(w.name) = any (forms))
    order by w.organisation_id desc, w.id desc
    limit most
  ));

  -- What left the address; and, of names that are meant, what stayed under it and was called so before.
  if forms is null then
    v_object_ids := array(
      select e.object_id
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.changes #>> '{email,from}' is not null
        and lower(e.changes #>> '{email,from}') = address
        and e.object_type in ('attendee', 'order', 'waiting_list_entry')
      order by e.organisation_id desc, e.id desc
      limit most
    );
  else
    v_object_ids := array(select r.id from private.rows_of_address(organisation_id, address, null, most) r where r.object <> 'member');
  end if;
  return query
  select distinct on (f.object_id, f.form)
    f.object, true, f.object_id, f.event_id, f.name, f.form, f.company, null, f.created_at
  from (
    select
      h.*,
      bool_or(h.form = any (forms)) over (partition by h.object_id) as is_meant,
      bool_or(h.leaves) over (partition by h.object_id order by h.entry_id desc) as is_over
    from private.former_holders(v_object_ids) h
    where h.address = rows_of_address.address and h.name is not null
  ) f
  where (forms is null or f.form = any (forms) or f.is_meant and f.is_over) and not f.is_theirs
  order by f.object_id, f.form, f.entry_id desc;

  return query
  select m.* from private.members_of_address(organisation_id, address, forms) m;
end
$$;

create or replace function private.rows_of_event (
  "table" text,
  event_id uuid,
  in_use boolean,
  timed boolean
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_most constant integer := 500;
  v_fields text[] := private.planned_fields("table");
  v_times text := (select string_agg(format('r.%I', f), ', ') from unnest(v_fields) f where f ~ '_at$|^valid_');
  v_rows jsonb;
begin
  execute format(
    'select coalesce(jsonb_agg(to_jsonb(r) || jsonb_build_object(''folded'', private.form_of_name(%L, r.%I)) order by r.%I, r.id), ''[]'')
     from (
       select r.* from public.%I r
       where r.event_id = $1 and (not $2 or r.status = ''active'') and (not $3 or num_nonnulls(%s) > 0)
       limit $4
     ) r',
    "table", v_fields[1], case "table" when 'ticket_types' then 'position' else 'created_at' end, "table", v_times
  )
  into v_rows using event_id, in_use, timed, v_most + 1;
  if jsonb_array_length(v_rows) > v_most then
    perform private.refuse_value(
      "table", 'The event has more than 500 of these, which is too many for one plan.',
      'Change them one by one. A copy leaves them out if this list is empty and archive_missing is true.'
    );
  end if;
  return v_rows;
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
  size integer default 50,
  inside boolean default null::boolean
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
        and (search_attendees.inside is null or a.inside = search_attendees.inside)
        and (search_attendees.ticket_email_status is null or a.ticket_email_status = search_attendees.ticket_email_status)
        and (search_attendees.updated_since is null or a.updated_at >= search_attendees.updated_since)
    )
    select f.id from found f order by f.id desc limit size
  );
end
$$;

create or replace function private.search_form (
  text text
)
  returns text
  language plpgsql
  immutable
  strict
  set search_path to ''
  as $$
begin
  text := private.person_form(text);
  if octet_length(text) > length(text) then
    text := translate(regexp_replace(text, '[\u0300-\u036f]', '', 'g'), 'øłđðħıŧ', 'olddhit');
    text := replace(replace(replace(replace(text, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');
  end if;
  return text;
end
$$;

create or replace function private.sound_message (
  message text,
  notify public.notify
)
  returns text
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  message := nullif(btrim(message, E' \t\r\n'), '');
  if message is not null and coalesce(notify, 'nobody') = 'nobody' then
    perform private.refuse_value('message', 'A message needs recipients.', 'Set notify to mailed or everybody.');
  elsif length(message) > 1000 then
    perform private.refuse_value('message', 'A message has at most 1000 characters.', 'Say the rest on a page, and its address here.');
  end if;
  return message;
end
$$;

create or replace function private.tell (
  kind public.email_kind,
  recipients private.recipient[],
  previous jsonb default null::jsonb,
  send_at timestamp with time zone default now(),
  pending text[] default '{}'::text[],
  message text default null::text
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
  insert into public.emails (organisation_id, kind, attendee_id, waiting_list_entry_id, order_id, previous, message, next_attempt_at)
  select
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
    nullif(coalesce(
      -- Whom the last such e-mail did not reach still knows what was before it.
      (
        select (array_agg(case when l.status in ('cancelled', 'failed', 'bounced') then coalesce(l.previous, 'null') end order by l.id desc))[1]
        from public.emails l
        where tell.kind = 'event_changed' and (
          l.attendee_id = r.attendee_id and l.kind = 'event_changed'
          or l.waiting_list_entry_id = r.waiting_list_entry_id and l.kind = 'waiting_list_offer'
        )
      ),
      tell.previous
    ), 'null'),
    tell.message,
    send_at
  from unnest(private.addressees(recipients, pending)) r;
  get diagnostics v_emails = row_count;
  return private.told_of(recipients) || jsonb_build_object('emails', cardinality(pending) + v_emails);
end
$$;

create or replace function private.tell_of_cancelled_tickets (
  order_id uuid,
  attendee_ids uuid[],
  notify public.notify,
  is_buyer_told boolean default false,
  message text default null::text
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
    v_notice := private.told_together(v_notice, private.tell('ticket_cancelled', private.recipients(v_ids, notify), message => message));
  end loop;
  if v_order.status = 'cancelled' and not is_buyer_told then
    v_notice := private.told_together(v_notice, private.tell('order_cancelled', array(
      select r from unnest(private.with_buyers(v_recipients, array[v_order.id], notify)) r where r.order_id is not null
    ), message => message));
  elsif v_order.status <> 'cancelled' and v_order.payment_method is not null and not is_buyer_told then
    v_cost := (select sum(a.price - a.discount) from public.attendees a where a.id = any (attendee_ids));
    if v_cost > 0 and v_order.total + v_cost > v_order.amount_paid - v_order.amount_refunded then
      v_notice := private.told_together(v_notice, private.confirm_anew(v_order, notify, v_recipients, message));
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
  if tg_op = 'UPDATE' and to_jsonb(new) ->> 'recorded_by' is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
    return new;
  elsif tg_op = 'DELETE' and private.is_deleted_wholly(old.organisation_id) then
    return old;
  elsif current_setting('usher.erasing', true) = 'on' then
    return coalesce(new, old);
  end if;
  perform private.refuse(409, 'append_only', tg_argv[0], hint => tg_argv[1], "row" => to_jsonb(old));
  return null;
end
$$;

create or replace function private.tg__assert_derived_untouched()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_column text;
begin
  foreach v_column in array tg_argv[1:] loop
    if to_jsonb(new) -> v_column is distinct from coalesce(to_jsonb(old) -> v_column, 'null')
      -- SQL that sets updated_at = now() itself passes: that is the value it gets.
      and not (v_column = 'updated_at' and (to_jsonb(new) ->> v_column)::timestamptz is not distinct from now()) then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', v_column, hint => tg_argv[0], "row" => to_jsonb(new)
      );
    end if;
  end loop;
  return new;
end
$$;

create or replace function private.tg__assert_name()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.assert_valid_name(new.name, to_jsonb(new));
  return new;
end
$$;

create or replace function private.tg__assert_not_in_use()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_reference text;
  v_in_use boolean;
begin
  foreach v_reference in array tg_argv[2:] loop
    execute format(
      'select exists (select from public.%I where %I = $1)', split_part(v_reference, '.', 1), split_part(v_reference, '.', 2)
    ) into v_in_use using old.id;
    if v_in_use then
      perform private.refuse(409, 'in_use', tg_argv[0], hint => tg_argv[1], "row" => to_jsonb(old));
    end if;
  end loop;
  return old;
end
$$;

create or replace function private.tg__explain_mistakes()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_new jsonb;
  v_old jsonb;
  v_given jsonb;
  v_detail text;
  v_hint text;
begin
  if not private.explains_mistakes(counts => true) then
    return new;
  end if;
  v_new := to_jsonb(new);
  v_old := to_jsonb(old);
  v_given := (
    select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(v_new) e where e.value is distinct from v_old -> e.key
  ) - array(select a.attname::text from pg_catalog.pg_attribute a where a.attrelid = tg_relid and a.attnum > 0 and a.attgenerated <> '');
  perform private.assert_possible_values(tg_relid, v_new, v_given, tg_op = 'INSERT');
  perform private.assert_checks_hold(tg_relid, v_new, v_given);
  -- What no constraint bounds.
  perform private.refuse_value(e.key, format('The text in %s has at most 20000 characters.', e.key))
  from jsonb_each(v_given) e
  where jsonb_typeof(e.value) = 'string' and length(e.value #>> '{}') > 20000;
  perform private.assert_not_taken(tg_relid, v_new, v_given, v_old ->> 'id');
  perform private.assert_references_exist(tg_relid, v_new, v_given);
  return new;
exception when sqlstate 'PT404' or sqlstate 'PT409' or sqlstate 'PT422' then
  get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
  raise exception using
    errcode = sqlstate, message = sqlerrm, hint = v_hint, detail = jsonb_strip_nulls(v_detail::jsonb || jsonb_build_object('row', private.which(v_new)));
end
$$;

create or replace function private.tg__refuse_value()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse_value(tg_argv[0], tg_argv[1], tg_argv[2], to_jsonb(new));
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
      perform private.refuse_value(v_column, format('The time in %s is between the years 1900 and 9999.', v_column), "row" => v_new);
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
      hint => 'Set status to cancelled instead; to remove what identifies the person, call erase_attendee.', "row" => to_jsonb(old)
    );
  end if;
  return old;
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
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id', "row" => to_jsonb(new));
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
    if new.status = 'cancelled' or new.inside or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency or new.event_id <> v_order.event_id or new.organisation_id <> v_order.organisation_id
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.ticket_token, new.checked_in_at, new.cancelled_at, new.erased_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'inside', false, 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
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
        hint => 'Create a new order.', "row" => to_jsonb(new)
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
        409, 'read_only_field', 'A person is erased by a function, which finds every copy.', 'erased_at', hint => 'Call erase_attendee.',
        "row" => to_jsonb(new)
      );
    elsif old.erased_at is not null
      and ((new.name, new.email, new.company, new.external_id, new.metadata)
        is distinct from (old.name, old.email, old.company, old.external_id, old.metadata)
        or new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued') then
      perform private.refuse(
        409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Register the person who comes instead.', "row" => to_jsonb(new)
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
          hint => 'Undo the check-in first, or register the person again.', "row" => to_jsonb(new)
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
        hint => 'Clear ticket_code to generate a new one.', "row" => to_jsonb(new)
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
          'Allowed: awaiting_payment to active or cancelled; active to cancelled.', "row" => to_jsonb(new)
        );
      end if;
      if new.status = 'active' then
        select o.* into v_order from public.orders o where o.id = new.order_id for share;
        if v_order.status <> 'completed' then
          perform private.refuse(
            409, 'payment_due', 'The ticket becomes active when its order is completed.', 'status', hint => 'Record the payment instead.',
            "row" => to_jsonb(new)
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
        409, 'no_address', 'This attendee has no address that takes mail.', 'email', hint => 'Correct the address. If that does not send the ticket, ask for it again.',
        "row" => to_jsonb(new)
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
    perform private.refuse_contact(new.name, new.email, to_jsonb(new));
  end if;

  if tg_op = 'INSERT'
    or (new.name, new.email, new.company, new.external_id, new.search_text)
      is distinct from (old.name, old.email, old.company, old.external_id, old.search_text) then
    if tg_op = 'UPDATE' then
      select o.* into v_order from public.orders o where o.id = new.order_id;
    end if;
    new.search_text := private.search_form(concat_ws(' ', new.name, new.company, v_order.reference)) || E'\t'
      || private.search_form(concat_ws(' ', new.email, new.external_id)) || E'\n'
      || private.search_form(concat_ws(
        ' ', nullif(v_order.name, new.name), nullif(v_order.email, new.email), nullif(v_order.company, new.company),
        nullif(v_order.external_id, new.external_id)
      ));
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
  elsif (new.checked_in_at, new.inside) is distinct from (old.checked_in_at, old.inside) then
    perform private.refuse(
      409, 'read_only_field', 'This is derived from the check-ins and cannot be edited.',
      case when new.checked_in_at is distinct from old.checked_in_at then 'checked_in_at' else 'inside' end,
      hint => 'Add a check-in, or set undone_at of the accepted one.', "row" => to_jsonb(new)
    );
  end if;
  return new;
end
$$;

create or replace function private.tg_attendees__tell_others()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  insert into public.emails (organisation_id, kind, attendee_id, previous, message, next_attempt_at)
  select e.organisation_id, e.kind, o.id, e.previous, e.message, e.next_attempt_at
  from public.emails e
  cross join lateral (
    select a.id
    from public.attendees a
    where a.id = any (case e.kind when 'ticket_cancelled' then private.tickets_beside(old) else private.tickets_of_address(old) end)
      and case e.kind when 'event_changed' then a.status <> 'cancelled' else a.cancelled_at = old.cancelled_at end
    order by a.id
    limit 1
  ) o
  where e.attendee_id = old.id and e.kind in ('event_changed', 'event_cancelled', 'ticket_cancelled') and e.status = 'queued'
    and (e.claim is null or e.claimed_until <= now());
  return null;
end
$$;

create or replace function private.tg_check_in_points__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_most constant integer := 100;
begin
  if tg_op = 'INSERT' then
    if not exists (
      select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id
    ) or private.is_foreign(new.organisation_id) then
      perform private.refuse_not_found('event_id');
    end if;
    -- The door list has all of them on each page.
    if (select count(*) from public.check_in_points p where p.event_id = new.event_id) >= v_most then
      perform private.refuse_value(
        'event_id', 'An event has at most 100 check-in points.', 'Delete those at which nothing was scanned, or change one.', "row" => to_jsonb(new)
      );
    end if;
  end if;
  -- Only when the list is set: a point whose ticket type was deleted can still be edited and archived.
  if tg_op = 'INSERT' or new.ticket_type_ids <> old.ticket_type_ids then
    new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
    if exists (
      select from unnest(new.ticket_type_ids) i (id)
      where not exists (select from public.ticket_types t where t.id = i.id and t.event_id = new.event_id)
    ) then
      perform private.refuse_value(
        'ticket_type_ids', 'A listed ticket type does not belong to the event.',
        'List the ticket types of the event to find their identifiers.', "row" => to_jsonb(new)
      );
    end if;
  end if;
  return new;
end
$$;

create or replace function private.tg_check_ins__admit()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  perform private.count_entries(array(select n.attendee_id from new_rows n where n.result = 'accepted'));
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
      409, 'append_only', 'Check-ins are a log: they are never deleted.', hint => 'Set undone_at to take an acceptance back.', "row" => to_jsonb(old)
    );
  end if;
  -- Deleting an API key empties api_key_id of its scans, and an exit ends its entry; besides undone_at, no other column may change.
  if pg_trigger_depth() > 1 then
    v_free := v_free || '{exited_at,admission_key}';
  end if;
  if to_jsonb(new) - v_free <> to_jsonb(old) - v_free
    or (new.api_key_id is not null and new.api_key_id is distinct from old.api_key_id) then
    perform private.refuse(
      409, 'append_only', 'Check-ins are a log: only undone_at can be set.', hint => 'Set undone_at to take an acceptance back.',
      "row" => to_jsonb(old)
    );
  end if;
  if new.undone_at is distinct from old.undone_at then
    if old.result = 'rejected' then
      perform private.refuse(409, 'check_in_not_accepted', 'A rejected check-in cannot be undone.', 'check_in_id', "row" => to_jsonb(old));
    elsif old.undone_at is not null then
      perform private.refuse(
        409, 'check_in_already_undone', 'This check-in was undone before.', 'check_in_id',
        jsonb_build_object('undone_at', private.rfc3339(old.undone_at)), "row" => to_jsonb(old)
      );
    end if;
    new.undone_at := now();
    new.admission_key := null;
  end if;
  return new;
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
  v_code text := private.code_form(new.code);
  v_ticket_type_id uuid;
  v_timezone text;
  v_starts_at text;
  v_is_too_early boolean;
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
    -- A scanner's clock may be wrong: no scan is later than now, or earlier than its event.
    case when new.scanned_at between e.created_at and now() then new.scanned_at else now() end,
    new.scanned_at < e.created_at and new.scan_id is null,
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
    new.organisation_id, v_timezone, new.attendee_id, v_ticket_type_id, new.scanned_at, v_is_too_early, new.reason,
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
  elsif v_is_too_early then
    perform private.refuse_value('scanned_at', 'scanned_at is before the event was made.', 'Leave scanned_at out: it is then now.');
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
        -- The event as such lets in again, as a point with re_entry does.
        admission_key = case when coalesce(v_point.admission, 're_entry') <> 're_entry' then c.admission_key end
      where c.id = new.earlier_check_in_id;
    end if;
  end if;
  return new;
end
$$;

create or replace function private.tg_check_ins__undo()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_key text;
begin
  if new.direction = 'exit' then
    -- Where an exit emptied it, it had no day.
    select coalesce(c.admission_key, c.check_in_point_id::text, 'event') into v_key
    from public.check_ins c
    where c.id = new.earlier_check_in_id and c.undone_at is null;
    if exists (
      select from public.check_ins c
      where c.attendee_id = new.attendee_id and c.admission_key = v_key and c.id <> new.earlier_check_in_id
    ) then
      perform private.refuse(
        409, 'already_checked_in', 'The person came in again since.', 'check_in_id', hint => 'Undo the later check-in first.', "row" => to_jsonb(new)
      );
    end if;
    update public.check_ins c set exited_at = null, admission_key = v_key
    where c.id = new.earlier_check_in_id and c.undone_at is null;
  end if;
  perform private.count_entries(array[new.attendee_id]);
  return null;
end
$$;

create or replace function private.tg_emails__cancel()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if tg_when = 'AFTER' then
    update public.attendees a set ticket_email_status = 'cancelled' where a.id = new.attendee_id and a.ticket_email_status = 'queued';
    return null;
  elsif old.status <> 'queued' then
    perform private.refuse(
      409, 'invalid_transition', 'Only an e-mail that is queued can be cancelled.', 'status',
      jsonb_build_object('from', old.status, 'to', new.status), 'Leave it as it is: it shows what was sent.'
    );
  end if;
  new.next_attempt_at := null;
  new.claim := null;
  new.claimed_until := null;
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
      end, "row" => to_jsonb(old)
    );
  elsif old.status <> 'draft' then
    perform private.refuse(
      409, 'in_use', 'The event is in use: only a draft can be deleted.', 'status', jsonb_build_object('status', old.status),
      case old.status
        when 'published' then 'Take it back to draft first, or cancel it.'
        when 'completed' then 'Leave it; until its end it can be published again, and taken back to draft.'
        else 'Leave it: a cancelled event stays for those who look it up.'
      end, "row" => to_jsonb(old)
    );
  elsif exists (select from public.check_ins c where c.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: tickets were scanned at it, and the log of the door is kept.',
      hint => 'Leave it a draft, or publish and cancel it.', "row" => to_jsonb(old)
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
        hint => 'Add dates and a ticket type, then publish it.', "row" => to_jsonb(new)
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
        hint => 'To close registration set sales_end_at of its ticket types, or complete the event. Cancelling it is for good.',
        "row" => to_jsonb(new)
      );
    end if;

    if old.status <> 'published' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.', "row" => to_jsonb(new)
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      -- Of an event that is published again all may be archived, as they may be while it is published.
      if old.status = 'draft' and not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.', "row" => to_jsonb(new)
        );
      end if;
    end if;

    -- Currency and capacity, against what is sold already.
    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency', "row" => to_jsonb(new));
    end if;

    if new.capacity is distinct from old.capacity then
      -- A raised quantity is offered to the waiting list without the event lock.
      perform private.lock_event_capacity(new.id);
      if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
        perform private.refuse(
          409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
          jsonb_build_object('places_taken', private.places_taken(new.id)), "row" => to_jsonb(new)
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
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.',
        "row" => to_jsonb(new)
      );
    end if;
  end if;

  -- A value that stays is not checked: a currency is withdrawn, and an address may be from before the rule.
  if (tg_op = 'INSERT' or new.currency <> old.currency) and not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'The currency is not an ISO 4217 currency in use.', 'Write its three capital letters, such as EUR.', "row" => to_jsonb(new)
    );
  end if;
  if (tg_op = 'INSERT' or new.online_url is distinct from old.online_url) and not private.is_web_url(new.online_url) then
    perform private.refuse_value(
      'online_url',
      'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters.',
      'Copy the address again, and leave out what stands before an @ in the name of the server.', "row" => to_jsonb(new)
    );
  end if;

  -- The timestamps follow the status.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  if new.status <> 'published' then
    new.cancelling_since := null;
  end if;
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
  v_most bigint;
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
      or (new.subtotal, new.discount_total, new.amount_paid, new.amount_voided, new.amount_refunded, new.amount_retained) <> (0, 0, 0, 0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(
        new.reference, new.promo_code_id, new.completed_at, new.cancelled_at, new.cancellation_reason, new.payment_remind_at,
        new.payment_reminded_at, new.payment_check_at
      ) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'amount_voided', 0, 'amount_refunded', 0, 'amount_retained', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null,
        'cancellation_reason', null, 'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      if new.payment_method is null then
        perform private.refuse_value('promo_code', 'A promo code needs a payment method.', 'Send payment_method, or leave promo_code out.', "row" => to_jsonb(new));
      end if;
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(normalize(btrim(new.promo_code), nfc));
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
    if not private.is_contact(new.name, new.email) then
      perform private.refuse_contact(new.name, new.email, to_jsonb(new));
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
        hint => 'Add a payment instead.', "row" => to_jsonb(new)
      );
    elsif (new.amount_voided, new.amount_refunded) is distinct from (old.amount_voided, old.amount_refunded) then
      perform private.refuse(
        409, 'read_only_field', 'amount_voided and amount_refunded are added up from rows of their own and cannot be edited.', 'amount_refunded',
        hint => 'Add a row to payment_voids or refunds instead.', "row" => to_jsonb(new)
      );
    elsif (new.subtotal, new.discount_total) is distinct from (old.subtotal, old.discount_total) then
      perform private.refuse(
        409, 'read_only_field', 'subtotal and discount_total are added up from the tickets and cannot be edited.', 'subtotal',
        hint => 'Add or cancel attendees instead. For another discount cancel the order, and register anew with a promo code.', "row" => to_jsonb(new)
      );
    elsif (new.payment_method is null) <> (old.payment_method is null) then
      perform private.refuse(
        409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
        hint => 'Create a new order.', "row" => to_jsonb(new)
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
        end, "row" => to_jsonb(new)
      );
    end if;
    if (new.name, new.email) is distinct from (old.name, old.email) and not private.is_contact(new.name, new.email) then
      perform private.refuse_contact(new.name, new.email, to_jsonb(new));
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
        hint => 'Record the payment instead.', "row" => to_jsonb(new)
      );
    end if;
  end if;

  if new.amount_retained > 0 then
    v_most := greatest(
      new.amount_paid - new.amount_refunded - case new.status when 'cancelled' then 0 else new.subtotal - new.discount_total end, 0
    );
    if new.amount_retained > v_most and new.amount_retained <> old.amount_retained and pg_trigger_depth() = 1 then
      perform private.refuse_value(
        'amount_retained', 'amount_retained is more than was received and is neither returned nor the price of tickets that stand.',
        format('At most %s in all, of which %s is retained already, in minor units.', v_most, old.amount_retained)
      );
    end if;
    -- What is returned, voided or owed again is retained no longer.
    new.amount_retained := least(new.amount_retained, v_most);
  end if;

  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded > 0 and new.amount_refunded + new.amount_retained = new.amount_paid then 'refunded'
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
        hint => 'Set status to cancelled instead.', "row" => to_jsonb(new)
      );
    end if;
    new.cancellation_reason := case when new.status = 'cancelled' then coalesce(new.cancellation_reason, 'requested') end;
  end if;
  if (
    new.name, new.email, new.company, new.status, new.subtotal, new.amount_paid, new.amount_refunded, new.amount_retained,
    new.payment_due_at, new.external_id, new.metadata
  ) is distinct from (
    old.name, old.email, old.company, old.status, old.subtotal, old.amount_paid, old.amount_refunded, old.amount_retained,
    old.payment_due_at, old.external_id, old.metadata
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
  v_is_paid_in_part boolean := new.status = 'pending' and new.amount_paid > new.amount_refunded;
  -- Of an order that somebody adds with the time at which it was made elsewhere, the days of the event may be over.
  v_is_computed boolean := tg_op = 'INSERT' and new.payment_due_at is null;
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
    -- What was overdue and paid in part is not paid at all: the buyer learns of it, and has time.
    if new.status = 'pending' and old.amount_paid > old.amount_refunded and new.amount_paid = new.amount_refunded
      and new.payment_due_at <= now() then
      new.payment_due_at := now() + v_lead;
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
    if new.payment_due_at < now() and not v_is_computed then
      perform private.refuse_past_deadline(new);
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
  -- The buyer who paid a part is reminded again when the deadline comes.
  if v_is_paid_in_part and new.send_email and new.payment_remind_at is null
    and (new.payment_reminded_at < new.payment_due_at - interval '1 day') is not false then
    new.payment_remind_at := new.payment_due_at;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid - new.amount_refunded < new.subtotal - new.discount_total
      then least(new.payment_remind_at, case when not v_is_paid_in_part then new.payment_due_at end)
  end;
  return new;
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
    set amount_paid = o.amount_paid + new.amount
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

create or replace function private.tg_promo_codes__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- Depth 1 is a statement of a person or an operation; the trigger that counts redemptions runs one level deeper.
  if pg_trigger_depth() = 1
    and new.times_redeemed is distinct from (case when tg_op = 'INSERT' then 0 else old.times_redeemed end) then
    perform private.refuse(
      409, 'read_only_field', 'times_redeemed is counted from the attendees and cannot be edited.', 'times_redeemed', "row" => to_jsonb(new)
    );
  end if;
  -- As buyers type it on one device and organisers on another.
  new.code := normalize(new.code, nfc);
  -- Before the unique index, whose error would reveal that a code of another organisation exists.
  if tg_op = 'INSERT' and not exists (
    select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else lower(new.code) <> lower(old.code) end) then
    perform private.refuse_taken('code', c.id, c.created_at, c.xmin)
    from public.promo_codes c
    where c.event_id = new.event_id and lower(c.code) = lower(new.code) and c.id <> new.id;
  end if;
  -- Only when the list is set: a code whose ticket type was deleted can still be edited and disabled.
  if tg_op = 'INSERT' or new.ticket_type_ids <> old.ticket_type_ids then
    new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
    if exists (
      select from unnest(new.ticket_type_ids) i (id)
      where not exists (
        select from public.ticket_types t
        where t.id = i.id and t.event_id = new.event_id and t.organisation_id = new.organisation_id
      )
    ) then
      perform private.refuse(
        422, 'validation_failed', 'A listed ticket type does not belong to the event.', 'ticket_type_ids',
        hint => 'List the ticket types of the event to find their identifiers.', "row" => to_jsonb(new)
      );
    end if;
  end if;
  if tg_op = 'UPDATE' and new.max_redemptions < new.times_redeemed and new.max_redemptions is distinct from old.max_redemptions then
    perform private.refuse(
      409, 'limit_below_redeemed', 'The limit cannot be less than the uses already made.', 'max_redemptions',
      jsonb_build_object('times_redeemed', new.times_redeemed), "row" => to_jsonb(new)
    );
  end if;
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

create or replace function private.tg_ticket_types__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if new.quantity_sold is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_sold end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_sold is counted from the attendees and cannot be edited.', 'quantity_sold',
      hint => 'Add or cancel attendees instead.', "row" => to_jsonb(new)
    );
  elsif new.quantity_held is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_held end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_held is counted from the offers of the waiting list and cannot be edited.', 'quantity_held',
      hint => 'Cancel entries of the waiting list instead.', "row" => to_jsonb(new)
    );
  end if;
  if tg_op = 'UPDATE' and new.quantity is distinct from old.quantity and new.quantity >= 0 and new.quantity < new.quantity_sold + new.quantity_held then
    perform private.refuse(
      409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued, and held for the waiting list.', 'quantity',
      jsonb_strip_nulls(jsonb_build_object('quantity_sold', new.quantity_sold, 'quantity_held', nullif(new.quantity_held, 0))), "row" => to_jsonb(new)
    );
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else new.external_id is distinct from old.external_id end) then
    perform private.refuse_taken('external_id', t.id, t.created_at, t.xmin)
    from public.ticket_types t
    where t.organisation_id = new.organisation_id and t.external_id = new.external_id and t.id <> new.id;
  end if;
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
      409, 'in_use', 'This person is still on the waiting list.', hint => 'Set status to cancelled first.', "row" => to_jsonb(old)
    );
  end if;
  return old;
end
$$;

create or replace function private.tg_waiting_list_entries__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_ticket_type public.ticket_types;
begin
  if tg_op = 'INSERT' then
    v_event := private.lock_own_event_shared(new.event_id);
    if new.status <> 'waiting' or num_nonnulls(new.offered_at, new.offer_expires_at) > 0 then
      perform private.assert_as_given(
        to_jsonb(new), jsonb_build_object('status', 'waiting', 'offered_at', null, 'offer_expires_at', null)
      );
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    perform private.assert_takes_registrations(v_event);
    perform private.lock_event_capacity(new.event_id);
    select t.* into v_ticket_type
    from public.ticket_types t
    where t.id = new.ticket_type_id and t.event_id = new.event_id
    for no key update;
    if not found then
      perform private.refuse_not_found('ticket_type_id');
    end if;
    if not private.is_on_sale(v_ticket_type) then
      perform private.refuse_not_on_sale(v_ticket_type);
    end if;
    if v_ticket_type.min_per_order > 1 then
      perform private.refuse(
        409, 'quantity_not_allowed', 'The waiting list is for one ticket, and an order has more of this type.', 'ticket_type_id',
        jsonb_build_object('ticket_type_id', v_ticket_type.id, 'min_per_order', v_ticket_type.min_per_order), "row" => to_jsonb(new)
      );
    end if;
    perform private.assert_sold_out(v_event, v_ticket_type);
    -- Made under the locks: the order of ids is that of joining.
    new.id := private.uuid_v7();
  else
    -- Depth 1 is a statement of a person or an operation; triggers offer and accept one level deeper.
    if new.status <> old.status and not (
      (old.status, new.status) in (('waiting', 'cancelled'), ('offered', 'cancelled'))
      or (old.status, new.status) = ('offered', 'expired') and new.offer_expires_at <= now()
      or (old.status, new.status) in (('waiting', 'offered'), ('offered', 'accepted')) and pg_trigger_depth() > 1
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An entry of the waiting list cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: waiting or offered to cancelled; offered to expired after its deadline. Places are offered by Usher.', "row" => to_jsonb(new)
      );
    end if;
    if new.offer_expires_at is distinct from old.offer_expires_at
      and (old.status, new.status) not in (('waiting', 'offered'), ('offered', 'offered')) then
      perform private.refuse(
        409, 'read_only_field', 'Only an offer that stands has a deadline to be moved.', 'offer_expires_at', hint => 'Leave it as it is.',
        "row" => to_jsonb(new)
      );
    elsif new.status = 'offered' and new.offer_expires_at is null then
      perform private.refuse_value('offer_expires_at', 'An offer has a deadline.', 'Move it, or cancel the entry.', "row" => to_jsonb(new));
    end if;
  end if;

  -- Before the unique indexes, whose errors would make two of these wait for one another.
  if new.status in ('waiting', 'offered') and (tg_op = 'INSERT' or lower(new.email) <> old.email_lower) then
    perform private.refuse_taken('email', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.ticket_type_id = new.ticket_type_id and w.email_lower = lower(new.email) and w.status in ('waiting', 'offered')
      and w.id <> new.id;
  end if;
  if tg_op = 'INSERT' or new.external_id is distinct from old.external_id then
    perform private.refuse_taken('external_id', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.organisation_id = new.organisation_id and w.external_id = new.external_id and w.id <> new.id;
  end if;
  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email, to_jsonb(new));
  end if;
  return new;
end
$$;

create or replace function private.tg_webhook_endpoints__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_most_endpoints constant integer := 50;
begin
  -- The policy refuses one of another organisation, which nobody waits for.
  if tg_op = 'INSERT' and not private.is_foreign(new.organisation_id) then
    -- One at a time: two concurrent inserts would not count each other.
    perform pg_advisory_xact_lock(5, hashtext(new.organisation_id::text));
    if (select count(*) from public.webhook_endpoints w where w.organisation_id = new.organisation_id) >= v_most_endpoints then
      perform private.refuse(
        409, 'too_many_webhook_endpoints', format('An organisation has at most %s webhook endpoints.', v_most_endpoints),
        hint => 'Delete one that is not needed, or let one endpoint subscribe to more types.'
      );
    end if;
  end if;
  -- What is already pending is still sent, so the old types count, too. Disabling needs none of these scopes.
  if private.current_api_key_id() is not null then
    if tg_op = 'INSERT' then
      perform private.assert_scopes_to_read(new.types);
    elsif (new.url, new.types) is distinct from (old.url, old.types) or (old.status = 'disabled' and new.status = 'enabled') then
      perform private.assert_scopes_to_read(new.types || old.types);
    end if;
  end if;
  if (tg_op = 'INSERT' or new.url <> old.url) and private.is_internal_url(new.url) then
    perform private.refuse_value(
      'url', 'A webhook endpoint has a public address: nothing is sent to this machine or its network.',
      'Give the https address by which others reach it. This machine is allowed for developing: with npm start.'
    );
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if tg_op = 'INSERT' or new.event_ids is distinct from old.event_ids then
    new.event_ids := array(select distinct e from unnest(new.event_ids) e order by e);
    if cardinality(new.event_ids) > 100 then
      perform private.refuse_value('event_ids', 'An endpoint names at most 100 events.', 'Leave event_ids empty for all events.');
    end if;
    if exists (
      -- One of a draft that was deleted since may stay.
      select from unnest(new.event_ids) i (id)
      where i.id <> all (coalesce(old.event_ids, '{}'))
        and not exists (select from public.events e where e.id = i.id and e.organisation_id = new.organisation_id)
    ) then
      perform private.refuse_not_found('event_ids');
    end if;
  end if;
  if new.status = 'enabled' then
    new.disabled_reason := null;
    -- Once enabled again or given a new URL, an endpoint has five days again before it is disabled.
    if tg_op = 'UPDATE' and (old.status = 'disabled' or new.url <> old.url) then
      new.failing_since := null;
    end if;
  end if;
  return new;
end
$$;

create or replace function private.told_of (
  recipients private.recipient[]
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select jsonb_build_object(
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
    cross join lateral (
      select case when private.person_form(e.value) = '' then '' else regexp_replace(e.value, '^' || v_blanks || '|' || v_blanks || '$', '', 'g') end as trimmed
    ) t
    where (t.trimmed = '' or t.trimmed <> e.value and e.key <> all ('{description,payment_instructions,last_response_body}'))
      and "row" -> e.key is distinct from old_row -> e.key
  );
end
$$;

create or replace function private.verify_check_ins (
  event_id uuid
)
  returns setof private.disagreement
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set jit to 'off'
  set enable_seqscan to 'off'
  as $$
declare
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_check_ins.event_id);
begin
  return query
  with entries as (
    select c.attendee_id, min(c.scanned_at) as first_at, bool_or(c.exited_at is null and (c.left_at > c.scanned_at) is not true) as is_inside
    from (
      select
        c.*,
        max(c.exited_at) over (
          partition by c.attendee_id order by c.scanned_at, c.id rows between unbounded preceding and 1 preceding
        ) as left_at
      from public.check_ins c
      where c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
        and (verify_check_ins.event_id is null or c.event_id = verify_check_ins.event_id)
    ) c
    group by c.attendee_id
  )
  select
    case when a.checked_in_at is distinct from n.first_at then 'checked_in_at is the first entry that stands' else 'inside is an entry that nobody left' end,
    'attendees', a.id, concat_ws(' ', a.checked_in_at, a.inside), concat_ws(' ', n.first_at, n.is_inside)
  from public.attendees a
  left join entries n on n.attendee_id = a.id
  where (a.checked_in_at is distinct from n.first_at or a.inside <> coalesce(n.is_inside, false))
    and (verify_check_ins.event_id is null or a.ticket_type_id = any (v_type_ids));

  return query
  select
    'nobody came in twice at one point, on one day, without leaving where that lets in again', 'attendees', c.attendee_id, count(*)::text, '1'
  from public.check_ins c
  join public.events e on e.id = c.event_id
  left join public.check_in_points p on p.id = c.check_in_point_id
  where c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    and (coalesce(p.admission, 're_entry') <> 're_entry' or c.exited_at is null)
    -- Days are those of the time zone of the event, which may be another since.
    and (p.admission is distinct from 'once_per_day' or c.scanned_at > now() - interval '23 hours')
    and (verify_check_ins.event_id is null or c.event_id = verify_check_ins.event_id)
  group by c.attendee_id, c.check_in_point_id, case p.admission when 'once_per_day' then (c.scanned_at at time zone e.timezone)::date end
  having count(*) > 1;

  return query
  select
    'who left has an exit that stands, and who is inside has none', 'check_ins', c.id,
    coalesce('left at ' || c.exited_at, 'inside'), case when x.earlier_check_in_id is null then 'inside' else 'left' end
  from public.check_ins c
  left join (
    select distinct x.earlier_check_in_id
    from public.check_ins x
    where x.direction = 'exit' and x.result = 'accepted' and x.undone_at is null
      and (verify_check_ins.event_id is null or x.event_id = verify_check_ins.event_id)
  ) x on x.earlier_check_in_id = c.id
  where c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    and (c.exited_at is not null) <> (x.earlier_check_in_id is not null)
    and (verify_check_ins.event_id is null or c.event_id = verify_check_ins.event_id);
end
$$;

create or replace function private.verify_orders (
  event_id uuid
)
  returns setof private.disagreement
  language plpgsql
  stable
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set jit to 'off'
  set enable_seqscan to 'off'
  as $$
declare
  -- What is older may have lost what it is held against: tickets may be deleted, and e-mails are kept for a day at least.
  v_since timestamptz := now() - interval '23 hours';
  v_order_ids uuid[] := array(select o.id from public.orders o where o.event_id = verify_orders.event_id);
begin
  return query
  with deleted as materialized (
    select e.changes #>> '{order_id,from}' as order_id
    from public.audit_entries e
    where e.object_type = 'attendee' and e.action = 'deleted' and e.created_at > v_since
  ),
  lines as (
    select
      a.order_id,
      count(*) as tickets,
      count(*) filter (where a.status <> 'cancelled') as standing,
      coalesce(sum(a.price) filter (where a.status <> 'cancelled'), 0)::bigint as subtotal,
      coalesce(sum(a.discount) filter (where a.status <> 'cancelled'), 0)::bigint as discount,
      -- A cancelled ticket was a line of its order until then, hence those that were cancelled together with it.
      coalesce(sum(a.price) filter (where a.cancelled_at = c.cancelled_at), 0)::bigint as last_subtotal,
      coalesce(sum(a.discount) filter (where a.cancelled_at = c.cancelled_at), 0)::bigint as last_discount,
      sum(a.price)::bigint as prices,
      sum(a.price - a.discount)::bigint as cost,
      bool_or(a.status = 'active') as has_active,
      bool_or(a.status = 'awaiting_payment') as has_awaiting
    from public.attendees a
    join public.orders c on c.id = a.order_id
    where verify_orders.event_id is null or a.order_id = any (v_order_ids)
    group by a.order_id
  ),
  received as (
    select
      p.order_id, coalesce(sum(p.amount) filter (where v.id is null), 0)::bigint as paid,
      coalesce(sum(p.amount) filter (where v.id is not null), 0)::bigint as voided
    from public.payments p
    left join public.payment_voids v on v.payment_id = p.id
    where verify_orders.event_id is null or p.order_id = any (v_order_ids)
    group by p.order_id
  ),
  returned as (
    select r.order_id, sum(r.amount)::bigint as refunded
    from public.refunds r
    where verify_orders.event_id is null or r.order_id = any (v_order_ids)
    group by r.order_id
  )
  select d.*
  from public.orders o
  left join lines l on l.order_id = o.id
  left join received p on p.order_id = o.id
  left join returned r on r.order_id = o.id
  cross join lateral (
    select
      coalesce(l.tickets, 0) as tickets, coalesce(l.standing, 0) as standing, coalesce(l.subtotal, 0) as subtotal,
      coalesce(l.discount, 0) as discount, coalesce(l.last_subtotal, 0) as last_subtotal, coalesce(l.last_discount, 0) as last_discount,
      coalesce(p.paid, 0) as paid, coalesce(p.voided, 0) as voided, coalesce(r.refunded, 0) as refunded,
      o.amount_paid - o.amount_refunded as kept,
      -- What is paid in part does not expire.
      least(o.payment_remind_at, case when o.amount_paid = o.amount_refunded then o.payment_due_at end) as check_at
  ) s
  -- Not a list of values, whose expressions Postgres prepares anew for each order.
  cross join lateral unnest(array[
    case when o.status <> 'cancelled' and (o.subtotal, o.discount_total, o.total) <> (s.subtotal, s.discount, s.subtotal - s.discount)
      then row(
        'totals are the sums of the tickets that stand', 'orders', o.id,
        concat_ws(' ', o.subtotal, o.discount_total, o.total), concat_ws(' ', s.subtotal, s.discount, s.subtotal - s.discount)
      )::private.disagreement end,
    case when o.status = 'cancelled' and (o.subtotal, o.discount_total) <> (s.last_subtotal, s.last_discount)
      and (
        o.subtotal < s.last_subtotal or o.discount_total < s.last_discount
        or o.cancelled_at > v_since and o.id::text not in (select e.order_id from deleted e where e.order_id is not null)
      )
      then row(
        'totals of a cancelled order are those it had', 'orders', o.id,
        concat_ws(' ', o.subtotal, o.discount_total), concat_ws(' ', s.last_subtotal, s.last_discount)
      )::private.disagreement end,
    case when o.payment_method is null and l.prices > 0 then row(
        'complimentary tickets cost nothing', 'orders', o.id,
        l.prices::text, '0'
      )::private.disagreement end,
    case when (o.amount_paid, o.amount_voided) <> (s.paid, s.voided)
      then row(
        'amount_paid is the sum of the payments that are not voided, and the rest is amount_voided', 'orders', o.id,
        concat_ws(' ', o.amount_paid, o.amount_voided), concat_ws(' ', s.paid, s.voided)
      )::private.disagreement end,
    case when o.amount_refunded > o.amount_paid or o.amount_refunded <> s.refunded
      then row(
        'amount_refunded is the sum of the refunds, and at most what was paid', 'orders', o.id,
        o.amount_refunded::text, least(s.refunded, s.paid)::text
      )::private.disagreement end,
    case when o.amount_retained > greatest(s.kept - case o.status when 'cancelled' then 0 else o.total end, 0) then row(
        'an order retains at most what it would have to refund', 'orders', o.id,
        o.amount_retained::text, 'at most ' || greatest(s.kept - case o.status when 'cancelled' then 0 else o.total end, 0)
      )::private.disagreement end,
    case when s.kept > coalesce(l.cost, 0) and o.created_at > v_since
      and o.id::text not in (select e.order_id from deleted e where e.order_id is not null)
      then row(
        'nobody paid more than the order ever cost', 'orders', o.id,
        s.kept::text, 'at most ' || coalesce(l.cost, 0)
      )::private.disagreement end,
    case when o.status = 'pending' and s.kept >= o.total and s.tickets > 0 then row(
        'an order is completed when nothing is due, and not before', 'orders', o.id,
        'pending', 'completed'
      )::private.disagreement
      when o.status = 'completed' and o.amount_paid + o.amount_voided < o.total then row(
        'an order is completed when nothing is due, and not before', 'orders', o.id,
        'completed', 'pending'
      )::private.disagreement end,
    case when (o.status = 'cancelled') <> (o.cancelled_at is not null)
        or o.status = 'completed' and o.completed_at is null
        or o.status = 'pending' and o.completed_at is not null
      then row(
        'an order has the moments of its status', 'orders', o.id,
        concat_ws(', ', 'completed_at ' || o.completed_at, 'cancelled_at ' || o.cancelled_at), 'those of ' || o.status
      )::private.disagreement end,
    case when (o.status = 'cancelled') <> (o.cancellation_reason is not null)
        or o.cancellation_reason = 'expired'
          and (o.completed_at is not null or o.payment_due_at is null or o.payment_due_at > o.cancelled_at)
      then row(
        'a cancelled order says why, and one that expired had a deadline, which was over', 'orders', o.id,
        coalesce(o.cancellation_reason::text, 'no reason'), 'one that fits'
      )::private.disagreement end,
    case when o.payment_check_at is distinct from
        case when o.status = 'pending' and s.kept < o.total then s.check_at end
      then row(
        'the courier looks at each deadline of what is due, and at no other', 'orders', o.id,
        coalesce(o.payment_check_at::text, 'never'),
        coalesce(case when o.status = 'pending' and s.kept < o.total then s.check_at end::text, 'never')
      )::private.disagreement end,
    case when o.payment_due_at is null and o.payment_remind_at is not null
        or o.payment_remind_at <= o.payment_reminded_at + interval '1 day'
        or o.payment_remind_at > o.payment_due_at
      then row(
        'Usher reminds of a deadline before it, and not within a day of a reminder', 'orders', o.id,
        o.payment_remind_at::text, 'before ' || coalesce(o.payment_due_at::text, 'nothing')
      )::private.disagreement end,
    case when o.status = 'pending' and l.has_active then row(
        'tickets of a pending order wait', 'orders', o.id,
        'active', 'awaiting_payment'
      )::private.disagreement end,
    case when o.status = 'completed' and l.has_awaiting then row(
        'tickets of a completed order are good', 'orders', o.id,
        'awaiting_payment', 'active'
      )::private.disagreement end,
    case when o.status = 'cancelled' and (l.has_active or l.has_awaiting) then row(
        'tickets of a cancelled order are cancelled', 'orders', o.id,
        'not cancelled', 'cancelled'
      )::private.disagreement end,
    -- One that was added by hand may have no ticket yet.
    case when o.status <> 'cancelled' and s.standing = 0 and s.tickets > 0 then row(
        'an order that stands has a ticket that does', 'orders', o.id,
        o.status::text, 'cancelled'
      )::private.disagreement end,
    case when o.payment_status::text <> case
        when o.status <> 'cancelled' and s.kept < o.total
          then case s.kept when 0 then 'awaiting_payment' else 'partially_paid' end
        when s.kept > case o.status when 'completed' then o.total else 0 end + o.amount_retained then 'refund_due'
        when s.kept > o.amount_retained or o.amount_paid > 0 and o.amount_refunded = 0 then 'paid'
        when o.amount_paid > 0 then 'refunded'
        else 'not_required'
      end
      then row(
        'payment_status follows from status and amounts', 'orders', o.id,
        o.payment_status::text,
        format(
          'what follows from %s, total %s, paid %s, refunded %s, retained %s', o.status, o.total, o.amount_paid, o.amount_refunded, o.amount_retained
        )
      )::private.disagreement end
  ]) d
  where d."check" is not null and (verify_orders.event_id is null or o.event_id = verify_orders.event_id);

  return query
  select 'a discount is of a code and at most the price', 'attendees', a.id, a.discount::text, format('at most %s, with a code', a.price)
  from public.attendees a
  where (a.discount not between 0 and a.price or a.discount > 0 and a.promo_code_id is null)
    and (verify_orders.event_id is null or a.order_id = any (v_order_ids));

  -- An order keeps what it has when the amount of its code is changed.
  return query
  select 'an order has at most the amount off of its code', 'orders', o.id, s.discount::text, 'at most ' || c.amount_off
  from public.orders o
  join public.promo_codes c on c.id = o.promo_code_id
  cross join lateral (
    select sum(a.discount) as discount from public.attendees a where a.order_id = o.id and a.status <> 'cancelled'
  ) s
  where s.discount > c.amount_off
    and o.created_at > v_since
    and not exists (
      select from public.audit_entries e
      where e.object_id = c.id and e.object_type = 'promo_code' and e.changes ?| '{amount_off,percent_off}'
    )
    and (verify_orders.event_id is null or o.event_id = verify_orders.event_id);

  return query
  select 'the buyer of an order that expired is told so once', 'orders', o.id, m.times::text, m.expected::text
  from public.orders o
  cross join lateral (
    select
      (select count(*) from public.emails m where m.order_id = o.id and m.kind = 'order_expired' and m.created_at = o.cancelled_at) as times,
      case when o.cancellation_reason = 'expired' and o.send_email then 1 else 0 end as expected
  ) m
  where o.cancelled_at > v_since and m.times <> m.expected
    and (verify_orders.event_id is null or o.event_id = verify_orders.event_id);

  return query
  select 'a cancelled event has no order that stands', 'orders', o.id, o.status::text, 'cancelled'
  from public.events e
  join public.orders o on o.event_id = e.id
  where e.status = 'cancelled' and o.status <> 'cancelled'
    and (verify_orders.event_id is null or e.id = verify_orders.event_id);
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
      and private.person_form(o.name) = private.person_form(former.name)
      and o.payment_method is not null
      and not private.is_foreign(o.organisation_id)
  );
end
$$;

create or replace function private.warning_of_deadline (
  "order" public.orders
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
  if "order".payment_due_at <= now() then
    return private.warning('expires_now', 'The order expires now: its tickets are cancelled within seconds.');
  end if;
  return (
    select private.warning('due_after_event', 'The deadline of the payment is after the end of the event: until then the tickets are unpaid, and do not admit.')
    from public.events e
    where e.id = "order".event_id and e.ends_at < "order".payment_due_at and not private.is_foreign(e.organisation_id)
  );
end
$$;

create or replace function private.warning_of_timezone (
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
  if before.status <> 'published' or event.timezone = before.timezone or event.starts_at is distinct from before.starts_at then
    return null;
  end if;
  return private.warning('hours_moved', format(
    'The event starts at the same moment, and by the clock at %s instead of %s. If it is to keep its hours, change starts_at and ends_at.',
    private.clock_time(event.starts_at, event.timezone), private.clock_time(before.starts_at, before.timezone)
  ));
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
      '%s is due again, and reminders ask for it: the order stands. If a second payment was returned, which needs no record, record that payment as well, so that the two cancel out; if it is not to be paid, cancel the ticket or the order.',
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

create or replace function private.which (
  "row" jsonb
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if "row" is not null and private.is_by_hand() then
    return jsonb_build_object('id', "row" -> 'id', 'name', "row" -> 'name', 'reference', "row" -> 'reference');
  end if;
  return null;
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

create or replace function private.with_merged_metadata (
  changes jsonb,
  metadata jsonb
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if jsonb_typeof(changes -> 'metadata') is distinct from 'object' then
    return changes;
  end if;
  return changes || jsonb_build_object('metadata',
    coalesce(nullif(metadata, 'null') - array(select jsonb_object_keys(changes -> 'metadata')), '{}') || jsonb_strip_nulls(changes -> 'metadata')
  );
end
$$;

create or replace function private.without_people (
  document jsonb,
  whose jsonb,
  fields jsonb
)
  returns jsonb
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_is_of text;
  v_of_attendee text;
  v_former_id text;
  v_was_theirs boolean;
  v_is_theirs boolean;
begin
  if jsonb_typeof(document) = 'array' then
    return (
      select coalesce(jsonb_agg(
        case when jsonb_typeof(e.value) in ('object', 'array') then private.without_people(e.value, whose, fields) else e.value end
        order by e.place
      ), '[]')
      from jsonb_array_elements(document) with ordinality e (value, place)
    );
  elsif jsonb_typeof(document) <> 'object' then
    return document;
  end if;
  v_is_of := whose ->> (document ->> 'id');
  v_of_attendee := whose ->> (document ->> 'attendee_id');
  v_is_theirs := coalesce(
    v_is_of in ('person', 'order') or v_of_attendee = 'person' or whose ->> (document ->> 'waiting_list_entry_id') = 'person', false
  );
  v_was_theirs := not v_is_theirs and coalesce(v_is_of = 'former' or v_of_attendee = 'former', false);
  if not v_is_theirs and document ->> 'object' = 'email' then
    v_is_theirs := document ->> 'attendee_id' is null and whose ->> (document ->> 'order_id') is not distinct from 'order'
      or coalesce(
        whose ? concat_ws(
          ' ', 'address', coalesce(document ->> 'attendee_id', document ->> 'order_id', document ->> 'waiting_list_entry_id'),
          lower(document ->> 'to')
        ),
        false
      );
  elsif v_was_theirs then
    v_former_id := case v_is_of when 'former' then document ->> 'id' else document ->> 'attendee_id' end;
    v_is_theirs := case
      when document ->> 'email' is null then whose ? concat_ws(' ', 'name', v_former_id, private.search_form(document ->> 'name'))
      else whose ? concat_ws(' ', 'held', v_former_id, lower(document ->> 'email'), private.search_form(document ->> 'name'))
        or whose ? 'everyone' and lower(document ->> 'email') = whose ->> 'address'
    end;
  elsif not v_is_theirs and document ? 'result' and document ->> 'attendee_id' is null then
    -- A guest whom an import refused.
    v_is_theirs := coalesce(whose ? ('external_id ' || (document ->> 'external_id')), false);
  end if;
  return (
    select coalesce(jsonb_object_agg(
      f.key,
      case
        when v_is_theirs and fields ? f.key then fields -> f.key
        -- Of an e-mail that could not be delivered.
        when v_is_theirs and f.key = 'to' then fields -> 'email'
        when v_is_theirs and f.key in ('last_error', 'error') and jsonb_typeof(f.value) = 'string' then 'null'
        when f.key = 'ticket_email'
          and (v_is_theirs or v_was_theirs and strpos(lower(f.value ->> 'last_error'), whose ->> 'address') > 0)
          then f.value || '{"last_error": null}'
        when jsonb_typeof(f.value) in ('object', 'array') and f.value not in ('{}', '[]')
          then private.without_people(f.value, whose, fields)
        else f.value
      end
    ), '{}')
    from jsonb_each(document) f
  );
end
$$;

create or replace function public.create_api_key (
  name text,
  scopes public.api_scope[],
  organisation_id uuid default null::uuid,
  expires_at timestamp with time zone default null::timestamp with time zone,
  confirmations public.api_key_confirmations default 'asked'::public.api_key_confirmations,
  for_person boolean default false
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_organisation_id uuid := private.organisation_meant(organisation_id, '{owner}');
  v_key text := private.new_api_key();
  v_row public.api_keys;
begin
  if coalesce(cardinality(scopes), 0) = 0 or array_position(scopes, null) is not null then
    perform private.refuse_value('scopes', 'A key has at least one scope.', 'events:read, for example.');
  elsif expires_at <= now() then
    perform private.refuse_value('expires_at', 'A key expires in the future.', 'Leave it empty for a key that does not expire.');
  elsif for_person and confirmations = 'none' then
    perform private.refuse_value('confirmations', 'confirmations none is for programs.', 'Leave it out: a person confirms, and calls nothing.');
  end if;
  v_row := private.create_api_key(
    (select o.slug from public.organisations o where o.id = v_organisation_id), name, scopes, left(v_key, 19),
    sha256(v_key::bytea), expires_at, confirmations => confirmations,
    kind => case when for_person then 'person' else 'key' end::public.api_key_kind
  );
  return json_build_object(
    'key', v_key, 'prefix', v_row.prefix, 'name', v_row.name, 'scopes', v_row.scopes, 'expires_at', private.rfc3339(v_row.expires_at)
  );
end
$$;

revoke all
  on function public.create_api_key(text, public.api_scope[], uuid, timestamp
    with time zone, public.api_key_confirmations, boolean)
  from anon;

revoke all
  on function public.create_api_key(text, public.api_scope[], uuid, timestamp
    with time zone, public.api_key_confirmations, boolean)
  from service_role;

create or replace function public.notify_attendees (
  event_id uuid,
  notify public.notify default 'mailed'::public.notify,
  message text default null::text
)
  returns integer
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  perform from public.events e
  where e.id = notify_attendees.event_id
    and (
      private.claims() ->> 'role' is distinct from 'authenticated'
      or e.organisation_id in (select private.organisations_as('{owner,manager}'))
    )
  for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return coalesce((private.notify_of_event(event_id, notify, message) ->> 'emails')::integer, 0);
end
$$;

revoke all on function public.notify_attendees(uuid, public.notify, text) from anon;

revoke all on function public.notify_attendees(uuid, public.notify, text) from service_role;

create or replace function public.notify_cancelled (
  order_id uuid,
  notify public.notify default 'mailed'::public.notify,
  message text default null::text
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
  message := private.sound_message(message, notify);
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
    message => message,
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

revoke all on function public.notify_cancelled(uuid, public.notify, text) from anon;

revoke all on function public.notify_cancelled(uuid, public.notify, text) from service_role;

create or replace function public.the_order (
  reference text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return private.only_one(
    array(select o.id from public.orders o where o.reference = private.code_form(the_order.reference) limit 2),
    'There is no order with this reference.', 'Several orders have this reference, of different organisations.', 'reference'
  );
end
$$;

create or replace function public.the_organisation (
  slug text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return private.only_one(
    array(select o.id from public.organisations o where o.slug = lower(btrim(the_organisation.slug))),
    'There is no organisation with this slug.', null, 'slug'
  );
end
$$;

revoke all on function public.the_organisation(text) from anon;

revoke all on function public.the_organisation(text) from service_role;

create or replace function public.the_ticket_type (
  event_slug text,
  name text
)
  returns uuid
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return private.only_one(
    array(
      select t.id from public.ticket_types t
      where t.event_id = public.the_event(event_slug) and private.search_form(t.name) = private.search_form(the_ticket_type.name)
      limit 2
    ),
    'This event has no ticket type with this name.', 'Several ticket types of this event have this name.', 'name'
  );
end
$$;

alter table private.cancellations
  add constraint cancellations_event_id_fkey foreign key (event_id) references public.events(id) on delete cascade;

comment on column public.api_keys.kind is 'key: made for a program. person: somebody signs in with it on pages, and no program calls with it. grant: what a person allowed a client that they signed in from.';

comment on column public.api_keys.name is 'What it is for, for people. Of a person: their name. Of a grant: what the client calls itself.';

comment on column public.attendees.checked_in is 'Whether they came in. Generated.';

comment on column public.attendees.inside is 'Whether they came in and did not leave: no exit was scanned where they came in, or came in before. Derived from check_ins, not edited.';

comment on column public.attendees.price is 'Price of the ticket when it was registered, in minor units (49.90 is 4990); 0 where the order has no payment method.';

comment on column public.audit_entries.action is 'created, updated, deleted; or confirmed by a person, over MCP.';

comment on column public.audit_entries.changes is 'Of an update each changed field as { from, to }; of a deletion each field as { from }. Empty for what was created, for the object shows it; of an export, which is no object, its operation and arguments; of a confirmation its operation. Secrets and ticket codes are named without values.';

comment on column public.check_ins.admission_key is 'Internal: what an entry uses up, once for each attendee: the check-in point, or event, and at a point with once_per_day the day. Emptied when it is undone, or ended by an exit at a point with re_entry, or at the event.';

comment on column public.check_ins.scanned_at is 'When it was scanned: between when the event was made and now.';

comment on column public.emails.message is 'What the organiser adds in their own words, at most 1000 characters. Empty: nothing.';

comment on column public.emails.status is 'queued, sent, delivered, bounced, failed or cancelled. Set it to cancelled so that it is not sent. Set it to queued to send the e-mail once more, or at once where it waits after a failure; a ticket that was sent by its attendee.';

comment on column public.events.cancelling_since is 'Since when the API is to cancel it: a large event is cancelled a little later, as a whole. Kept by Usher.';

comment on column public.orders.amount_retained is 'What the organiser keeps of what was cancelled, such as a fee, in minor units: it is not to be refunded. At most what was received and is neither returned nor the price of tickets that stand.';

comment on column public.orders.payment_check_at is 'Internal: when the courier next looks at the deadline: to remind, then to cancel what is unpaid. Kept by Usher.';

comment on column public.orders.payment_due_at is 'When it is to be paid by. After that an unpaid order is cancelled as expired; one that is paid in part stays pending. Empty: no deadline. Set from payment_due_days of the event; change it to give more time, or to now() to let it expire. One that has expired: call reopen_order.';

comment on column public.orders.payment_method is 'How it is to be paid. Empty: its tickets are complimentary. How each payment came stands in payments.';

comment on column public.payments.amount is 'In minor units of currency, which is the order''s: 49.90 is 4990. Above 0.';

comment on column public.promo_codes.amount_off is 'Taken off each order, in minor units (49.90 is 4990), spread over the tickets that use it. Empty: percent_off.';

comment on column public.refunds.amount is 'In minor units of currency, which is the order''s: 49.90 is 4990. At most what was paid and not refunded yet.';

comment on column public.ticket_types.price is 'In minor units (cents) of the event''s currency: 49.90 is 4990. 0 is free.';

comment on column public.webhook_endpoints.url is 'A public https address. This machine, by http as well, only in development.';

comment on function
  api.apply_event(text, text, text, jsonb, jsonb, jsonb, jsonb, boolean, public.notify, text, text, text) is
  'Plans an event as it is to be, or applies the plan exactly: 200. 404 not_found; 409 plan_outdated, already_exists; 422 ambiguous_name, validation_failed.';

comment on function api.cancel_attendee(uuid, boolean, public.notify, text, text, bigint, text) is
  'Cancels one ticket and tells its holder and the buyer if asked to, gives its place back and takes its price off the order, which is cancelled with its last ticket; or reports the effect of doing so: 200. 403 missing_scope; 404 not_found; 409 invalid_transition; 422 validation_failed.';

comment on function api.cancel_event(uuid, boolean, public.notify, text, text, text) is 'Cancels an event with its orders and tickets, and tells its attendees and buyers if asked to, or reports the effect of doing so: 200. Of more than 5,000 tickets records that it is to be cancelled: 202. 404 not_found; 409 invalid_transition.';

comment on function api.cancel_order(uuid, boolean, public.notify, text, text, bigint, text) is
  'Cancels an order and its tickets, and tells its attendees and buyer if asked to, or reports the effect of doing so; what was paid and is not retained becomes refund_due: 200. 404 not_found; 409 invalid_transition; 422 validation_failed.';

comment on function api.carry_out_cancellation(uuid) is 'Cancels a large event as it was asked for, with its orders and tickets, and tells its guests. false: that is done, or being done.';

comment on function api.claim_cancellations(integer) is 'Large events to cancel now: [{ id }].';

comment on function api.claim_emails(integer, integer) is 'E-mails that are due, of every kind, claimed for lease_seconds: [{ id, claim, attempt, kind, organisation, event, previous, message, ticket_type, attendee, others, holders, guests, order, lines, payment, waiting_list_entry, opt_out_url }]. "others" are tickets that go in the same e-mail; each is settled by its email_id.';

comment on function api.enforce_payment_deadlines(integer) is 'Reminds of payment deadlines and cancels unpaid orders after them, at most "limit": { expired, reminded, has_more }. For the courier.';

comment on function api.get_confirmation(text, uuid) is 'A request for a confirmation, for the person who is signed in in a browser: { state, operation, scope, may_confirm, asked_by, expires_at, effect, changes, news, message, steps, more_steps, subject }. null where it is none of their organisation, or nobody is signed in. For the gateway.';

comment on function
  api.list_attendees(uuid, uuid, uuid, text, public.attendee_status, boolean, public.email_status, text, text, text,
  timestamp with time zone, text, integer, boolean) is 'Attendees of the organisation, newest first, by any of the filters: { data, has_more, next_cursor }.';

comment on function api.list_emails(uuid, uuid, public.email_kind, public.email_status, text, integer) is
  'E-mails to attendees, buyers and whoever waits, newest first, by any of the filters: { data, has_more, next_cursor }.';

comment on function api.poll_queues() is 'The names of the queues in which something is due: of webhooks, ticket_emails, logos and cancellations. For the courier, once a second.';

comment on function api.record_refund(uuid, bigint, public.payment_method, text, timestamp
  with time zone, text, text, text, boolean) is 'Records money that was returned for a paid or cancelled order: 201 with the order, or reports the effect of doing so: 200. 404 not_found; 409 payment_due, nothing_refundable, wrong_currency, refund_too_high; 422 validation_failed.';

comment on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
  with time zone, public.webhook_delivery_status, text, text) is 'Queues again what failed for a webhook endpoint, and makes due what waits for its next attempt, at most 10,000: 200 with how many. 404 not_found; 409 webhook_endpoint_disabled.';

comment on function api.resend_email(uuid, text, text) is 'Queues an e-mail once more, and makes one due at once that waits after a failure: 200. 404 not_found; 409 email_obsolete, and of a ticket ticket_not_active, no_address, attendee_erased.';

comment on function api.resolve_api_key(text) is 'The principal behind a key: { api_key_id, kind, family_id, organisation_id, scopes, rate_limit_per_minute }. Takes the SHA-256 of the key in hex. 401 when the key is unknown, revoked or expired.';

comment on function api.start_sign_in(text, text) is 'Signs a browser in with an API key: for how many seconds. Takes the SHA-256 of the key and of the browser''s secret in hex. 401 when the key is unknown, revoked or expired, 403 when it is a program''s. For the gateway.';

comment on function api.update_event(uuid, jsonb, public.notify, boolean, integer[], text, text, text) is
  'Changes fields of an event; absent ones stay, null clears; tells its attendees, or reports the effect with the event as it is, if asked to: 200. 404 not_found; 409 capacity_below_sold, event_has_orders, already_exists; 412 version_mismatch; 422 validation_failed.';

comment on function api.update_order(uuid, jsonb, integer[], text, text, boolean, boolean) is
  'Corrects the contact of an order, its external_id and metadata, what is retained of it, or sets, moves or clears the payment deadline of a pending one, or reports the effect of doing so: 200. 404 not_found; 409 already_exists, order_completed, order_cancelled, order_expired; 412 version_mismatch; 422 validation_failed.';

comment on function private.check_request() is 'PostgREST pre-request: refuses a revoked, expired or down-scoped key, and one for people, inside the request''s own transaction.';

comment on function public.create_api_key(text, public.api_scope[], uuid, timestamp
  with time zone, public.api_key_confirmations, boolean) is 'Creates an API key, as its owner: { key, prefix, name, scopes, expires_at }. The key is shown here and never again. confirmations: none is for programs. for_person: the name is a person''s, who signs in with it on pages.';

comment on function public.notify_attendees(uuid, public.notify, text) is 'Tells the attendees of an event by e-mail what changed since they were last told, ten minutes later, and repeats the offers of its waiting list, or that it was cancelled, with its buyers and its waiting list: mailed those whose orders have e-mails, everybody all of them; of changes nobody who switched these e-mails off. message: what you add in your own words. Returns how many e-mails.';

comment on function public.notify_cancelled(uuid, public.notify, text) is 'Tells the holders of the cancelled tickets of an order, and its buyer, by e-mail, each once: mailed unless the order has no e-mails, everybody all the same. message: what you add in your own words. What was cancelled with its event: call notify_attendees. Returns how many e-mails.';

comment on function public.the_organisation(text) is 'The id of the organisation with this slug. Refuses one that is not there.';

comment on table private.cancellations is 'Large events that the courier is to cancel, with the claims of the key that asked for it. Revoking the key afterwards does not withdraw the request.';

comment on table private.oauth_sign_ins is 'Browsers that are signed in with a key for people.';

comment on table public.emails is 'E-mails to attendees and buyers, pending and sent. Written by Usher only. Set status to cancelled to keep one from being sent, or to queued to send one once more; a ticket, by ticket_email_status of the attendee.';

revoke all on function api.cancel_attendee(uuid, boolean, public.notify, text, text, bigint, text) from public;

grant execute
  on function api.cancel_attendee(uuid, boolean, public.notify, text, text, bigint, text)
  to scope_attendees_write;

revoke all on function api.cancel_event(uuid, boolean, public.notify, text, text, text) from public;

grant execute on function api.cancel_event(uuid, boolean, public.notify, text, text, text) to scope_events_write;

revoke all on function api.cancel_order(uuid, boolean, public.notify, text, text, bigint, text) from public;

grant execute
  on function api.cancel_order(uuid, boolean, public.notify, text, text, bigint, text)
  to scope_orders_write;

revoke all on function api.carry_out_cancellation(uuid) from public;

grant execute on function api.carry_out_cancellation(uuid) to courier;

revoke all on function api.claim_cancellations(integer) from public;

grant execute on function api.claim_cancellations(integer) to courier;

revoke all
  on function
    api.list_attendees(uuid, uuid, uuid, text, public.attendee_status, boolean, public.email_status, text, text,
    text, timestamp with time zone, text, integer, boolean)
  from public;

grant execute
  on function
    api.list_attendees(uuid, uuid, uuid, text, public.attendee_status, boolean, public.email_status, text, text,
    text, timestamp with time zone, text, integer, boolean)
  to scope_attendees_read;

revoke all
  on function api.list_emails(uuid, uuid, public.email_kind, public.email_status, text, integer)
  from public;

grant execute
  on function api.list_emails(uuid, uuid, public.email_kind, public.email_status, text, integer)
  to scope_attendees_read;

revoke all
  on function api.record_refund(uuid, bigint, public.payment_method, text, timestamp
    with time zone, text, text, text, boolean)
  from public;

grant execute
  on function api.record_refund(uuid, bigint, public.payment_method, text, timestamp
    with time zone, text, text, text, boolean)
  to scope_orders_write;

revoke all
  on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
    with time zone, public.webhook_delivery_status, text, text)
  from public;

revoke all
  on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
    with time zone, public.webhook_delivery_status, text, text)
  from postgres;

grant execute
  on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
    with time zone, public.webhook_delivery_status, text, text)
  to postgres;

grant execute
  on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
    with time zone, public.webhook_delivery_status, text, text)
  to scope_events_write;

revoke all on function api.resend_email(uuid, text, text) from public;

grant execute on function api.resend_email(uuid, text, text) to scope_attendees_write;

revoke all
  on function api.update_event(uuid, jsonb, public.notify, boolean, integer[], text, text, text)
  from public;

grant execute
  on function api.update_event(uuid, jsonb, public.notify, boolean, integer[], text, text, text)
  to scope_events_write;

revoke all on function api.update_order(uuid, jsonb, integer[], text, text, boolean, boolean) from public;

grant execute
  on function api.update_order(uuid, jsonb, integer[], text, text, boolean, boolean)
  to scope_orders_write;

revoke all on function private.addressees(private.recipient[], text[]) from public;

revoke all on function private.are_cancellations_due() from public;

revoke all on function private.assert_completion_confirmed(public.events, jsonb) from public;

grant execute on function private.assert_completion_confirmed(public.events, jsonb) to scope_events_write;

revoke all on function private.assert_valid_name(text, jsonb) from public;

grant execute on function private.assert_valid_name(text, jsonb) to api_key, authenticated;

revoke all on function private.attendees_to_tell(public.events) from public;

revoke all on function private.cancel_later(public.events, jsonb, boolean, public.notify, text) from public;

grant execute
  on function private.cancel_later(public.events, jsonb, boolean, public.notify, text)
  to scope_events_write;

revoke all on function private.clock_time(timestamp with time zone, text) from scope_events_write;

grant execute on function private.clock_time(timestamp with time zone, text) to scope_events_write;

revoke all on function private.code_form(text) from public;

grant execute on function private.code_form(text) to api_key, authenticated;

revoke all on function private.confirm_anew(public.orders, public.notify, private.recipient[], text) from public;

revoke all on function private.count_entries(uuid[]) from public;

revoke all
  on function private.create_api_key(text, text, public.api_scope[], text, bytea, timestamp
    with time zone, uuid, public.api_key_confirmations, public.api_key_kind)
  from public;

revoke all on function private.deadline_to_expire(public.orders, timestamp with time zone) from public;

grant execute
  on function private.deadline_to_expire(public.orders, timestamp with time zone)
  to scope_orders_write;

revoke all on function private.effect_of_change(boolean, public.orders) from public;

grant execute on function private.effect_of_change(boolean, public.orders) to scope_orders_write;

revoke all on function private.email_json(uuid) from public;

grant execute on function private.email_json(uuid) to scope_attendees_read;

revoke all on function private.form_of_name(text, text) from public;

grant execute on function private.form_of_name(text, text) to scope_events_write;

revoke all on function private.hint_for_address(text) from public;

grant execute on function private.hint_for_address(text) to scope_attendees_write;

revoke all on function private.is_internal_url(text) from public;

grant execute on function private.is_internal_url(text) to authenticated, scope_events_write;

revoke all on function private.is_one_line(text, integer) from public;

grant execute on function private.is_one_line(text, integer) to api_key, authenticated;

revoke all on function private.notice_of_cancellation(public.events, public.notify) from public;

revoke all on function private.notify_of_cancelled_tickets(public.notify, uuid, uuid, text) from public;

grant execute
  on function private.notify_of_cancelled_tickets(public.notify, uuid, uuid, text)
  to scope_attendees_write, scope_orders_write;

revoke all on function private.notify_of_event(uuid, public.notify, text) from public;

grant execute on function private.notify_of_event(uuid, public.notify, text) to scope_events_write;

revoke all
  on function
    private.page_of_attendees(uuid, uuid, uuid, public.attendee_status, boolean, public.email_status, text,
    timestamp with time zone, text[], uuid, integer, boolean)
  from public;

grant execute
  on function
    private.page_of_attendees(uuid, uuid, uuid, public.attendee_status, boolean, public.email_status, text,
    timestamp with time zone, text[], uuid, integer, boolean)
  to scope_attendees_read;

revoke all
  on function private.page_of_emails(uuid, uuid, public.email_kind, public.email_status, uuid, integer)
  from public;

grant execute
  on function private.page_of_emails(uuid, uuid, public.email_kind, public.email_status, uuid, integer)
  to scope_attendees_read;

revoke all on function private.person_form(text) from api_key;

grant execute on function private.person_form(text) to api_key;

revoke all on function private.person_form(text) from authenticated;

grant execute on function private.person_form(text) to authenticated;

revoke all on function private.places_taken(uuid) from scope_events_write;

grant execute on function private.places_taken(uuid) to scope_events_write;

revoke all on function private.reads_orders() from scope_attendees_read;

grant execute on function private.reads_orders() to scope_attendees_read;

revoke all on function private.refuse(integer, text, text, text, jsonb, text, jsonb) from public;

grant execute
  on function private.refuse(integer, text, text, text, jsonb, text, jsonb)
  to api_key, authenticated;

revoke all on function private.refuse_contact(text, text, jsonb) from public;

revoke all on function private.refuse_past_deadline(public.orders) from public;

revoke all on function private.refuse_value(text, text, text, jsonb) from public;

grant execute on function private.refuse_value(text, text, text, jsonb) to api_key, authenticated;

revoke all on function private.resend_email(uuid) from public;

grant execute on function private.resend_email(uuid) to scope_attendees_write;

revoke all on function private.retain_of(uuid, bigint) from public;

grant execute on function private.retain_of(uuid, bigint) to scope_attendees_write;

revoke all on function private.row_meant(jsonb, jsonb, text, text, text) from public;

grant execute on function private.row_meant(jsonb, jsonb, text, text, text) to scope_events_write;

revoke all
  on function
    private.search_attendees(text[], text, uuid, uuid, public.attendee_status, boolean, public.email_status,
    timestamp with time zone, uuid, integer, boolean)
  from public;

revoke all on function private.sound_message(text, public.notify) from public;

revoke all
  on function private.tell(public.email_kind, private.recipient[], jsonb, timestamp with time zone, text[], text)
  from public;

revoke all on function private.tell_of_cancelled_tickets(uuid, uuid[], public.notify, boolean, text) from public;

revoke all on function private.tg_emails__cancel() from public;

revoke all on function private.told_of(private.recipient[]) from public;

revoke all on function private.warning_of_timezone(public.events, public.events) from public;

grant execute on function private.warning_of_timezone(public.events, public.events) to scope_events_write;

revoke all on function private.which(jsonb) from public;

grant execute on function private.which(jsonb) to api_key, authenticated;

revoke all on function private.with_merged_metadata(jsonb, jsonb) from public;

grant execute on function private.with_merged_metadata(jsonb, jsonb) to api_key;

revoke all
  on function public.create_api_key(text, public.api_scope[], uuid, timestamp
    with time zone, public.api_key_confirmations, boolean)
  from public;

grant execute
  on function public.create_api_key(text, public.api_scope[], uuid, timestamp
    with time zone, public.api_key_confirmations, boolean)
  to authenticated;

revoke all on function public.notify_attendees(uuid, public.notify, text) from public;

grant execute on function public.notify_attendees(uuid, public.notify, text) to authenticated;

revoke all on function public.notify_cancelled(uuid, public.notify, text) from public;

grant execute on function public.notify_cancelled(uuid, public.notify, text) to authenticated;

revoke all on function public.the_organisation(text) from public;

grant execute on function public.the_organisation(text) to authenticated;

revoke all (inside) on table public.attendees from authenticated;

grant select (inside) on table public.attendees to authenticated;

revoke all (message) on table public.emails from authenticated;

grant select (message) on table public.emails to authenticated;

revoke all (attempts) on table public.emails from scope_attendees_read;

grant select (attempts) on table public.emails to scope_attendees_read;

revoke all (attendee_id) on table public.emails from scope_attendees_read;

grant select (attendee_id) on table public.emails to scope_attendees_read;

revoke all (created_at) on table public.emails from scope_attendees_read;

grant select (created_at) on table public.emails to scope_attendees_read;

revoke all (id) on table public.emails from scope_attendees_read;

grant select (id) on table public.emails to scope_attendees_read;

revoke all (kind) on table public.emails from scope_attendees_read;

grant select (kind) on table public.emails to scope_attendees_read;

revoke all (last_error) on table public.emails from scope_attendees_read;

grant select (last_error) on table public.emails to scope_attendees_read;

revoke all (next_attempt_at) on table public.emails from scope_attendees_read;

grant select (next_attempt_at) on table public.emails to scope_attendees_read;

revoke all (order_id) on table public.emails from scope_attendees_read;

grant select (order_id) on table public.emails to scope_attendees_read;

revoke all (organisation_id) on table public.emails from scope_attendees_read;

grant select (organisation_id) on table public.emails to scope_attendees_read;

revoke all (sent_at) on table public.emails from scope_attendees_read;

grant select (sent_at) on table public.emails to scope_attendees_read;

revoke all (sent_to) on table public.emails from scope_attendees_read;

grant select (sent_to) on table public.emails to scope_attendees_read;

revoke all (status) on table public.emails from scope_attendees_read;

grant select (status) on table public.emails to scope_attendees_read;

revoke all (updated_at) on table public.emails from scope_attendees_read;

grant select (updated_at) on table public.emails to scope_attendees_read;

revoke all (waiting_list_entry_id) on table public.emails from scope_attendees_read;

grant select (waiting_list_entry_id) on table public.emails to scope_attendees_read;

revoke all (amount_retained) on table public.orders from authenticated;

grant update (amount_retained) on table public.orders to authenticated;

revoke all (amount_retained) on table public.orders from scope_orders_write;

grant update (amount_retained) on table public.orders to scope_orders_write;

insert into private.personal_columns (table_name, column_name, erased_as, field) values ('emails', 'message', 'null', NULL);
