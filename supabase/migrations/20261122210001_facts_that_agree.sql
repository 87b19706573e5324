-- facts that agree. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop trigger attendees_400_add_up_delete on public.attendees;

drop trigger attendees_500_count_places_delete on public.attendees;

drop trigger attendees_900_updated_at on public.attendees;

drop trigger attendees_900_version on public.attendees;

drop trigger check_in_points_900_updated_at on public.check_in_points;

drop trigger check_in_points_900_version on public.check_in_points;

drop trigger events_100_in_use on public.events;

drop trigger events_500_note_change on public.events;

drop trigger events_900_updated_at on public.events;

drop trigger events_900_version on public.events;

drop trigger orders_900_updated_at on public.orders;

drop trigger orders_900_version on public.orders;

drop trigger organisations_900_updated_at on public.organisations;

drop trigger promo_codes_900_updated_at on public.promo_codes;

drop trigger promo_codes_900_version on public.promo_codes;

drop trigger ticket_types_900_updated_at on public.ticket_types;

drop trigger ticket_types_900_version on public.ticket_types;

drop trigger waiting_list_entries_900_updated_at on public.waiting_list_entries;

drop trigger waiting_list_entries_900_version on public.waiting_list_entries;

drop trigger webhook_endpoints_900_updated_at on public.webhook_endpoints;

drop trigger webhook_endpoints_900_version on public.webhook_endpoints;

drop view public.arrivals;

drop view public.unpaid_orders;

drop function api.list_events(text, public.event_status, public.event_phase, timestamp with time zone, timestamp
  with time zone, text, text, integer);

drop function private.event_phase(timestamp with time zone, timestamp with time zone);

drop function private.lock_attendees_of_import(uuid, text[]);

drop function private.page(json[], integer);

create table private.installations (
  is_only boolean not null default true,
  system_identifier bigint not null,
  names text[] not null,
  newcomers text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  constraint installations_is_one_row check (is_only),
  constraint installations_pkey primary key (is_only)
);

alter table private.installations
  enable row level security;

create type private.start_position as (
  starts_at timestamp with time zone,
  id uuid
);

create type public.event_sort as enum (
  'created_at',
  'starts_at'
);

create or replace function api.announce_installation()
  returns json
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_names text[] := private.announced_names();
  v_system_identifier bigint := (select c.system_identifier from pg_control_system() c);
  v_installation private.installations;
  v_is_at_home boolean;
begin
  if v_names is null then
    return json_build_object('held', private.is_held());
  end if;
  select i.* into v_installation from private.installations i;
  if not found then
    insert into private.installations (system_identifier, names) values (v_system_identifier, v_names) on conflict do nothing;
    select i.* into v_installation from private.installations i;
  end if;

  -- Not found: it was released meanwhile.
  v_is_at_home := not found or private.is_at_home(v_installation, v_names);
  if not v_is_at_home then
    update private.installations i
    set newcomers = array(select distinct n.name from unnest(i.newcomers || v_names) n (name) limit 50)
    where not v_names <@ i.newcomers;
  else
    -- The names of a file system that does not keep them would become ever more.
    update private.installations i
    set system_identifier = v_system_identifier,
      newcomers = '{}',
      names = array(
        select n.name
        from unnest(v_names || i.newcomers || i.names) with ordinality n (name, place)
        group by n.name order by min(n.place) limit 50
      )
    where i.system_identifier <> v_system_identifier or i.newcomers <> '{}' or not v_names <@ i.names;
  end if;
  return json_build_object('held', not v_is_at_home);
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
  as $$
declare
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_scans jsonb[];
  v_judged integer := 0;
  v_known_ids text[];
  v_results json;
  v_accepted integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if not exists (select from public.events e where e.id = check_in_batch.event_id) then
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
    count(*) filter (where c.result = 'accepted')
  into v_results, v_accepted
  from jsonb_to_recordset(to_jsonb(v_scans[:v_judged])) s (scan_id text, scanned_at timestamptz)
  cross join lateral (
    select c.* from public.check_ins c where c.event_id = check_in_batch.event_id and c.scan_id = s.scan_id offset 0
  ) c;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
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
    )
  );
end
$$;

create or replace function api.claim_ticket_emails (
  "limit" integer,
  lease_seconds integer default 600
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  as $$
declare
  -- Thirteen attempts are made. A row that is claimed far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_claimed json;
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 1);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with due as (
      select
        d.id,
        d.next_attempt_at,
        u.in_flight + row_number() over (partition by o.organisation_id order by d.is_mailing, d.next_attempt_at, d.id) as turn,
        l.last_attempt_at
      from unnest(private.organisations_with_queued_emails()) o (organisation_id)
      cross join lateral (
        select count(*) as in_flight
        from public.emails e
        where e.organisation_id = o.organisation_id and e.claimed_until > v_now
      ) u
      left join lateral (
        select e.last_attempt_at
        from public.emails e
        where e.organisation_id = o.organisation_id and e.last_attempt_at is not null
        order by e.organisation_id desc, e.last_attempt_at desc
        limit 1
      ) l on true
      cross join (values (false), (true)) m (is_mailing)
      cross join lateral (
        select e.id, e.is_mailing, e.next_attempt_at
        from public.emails e
        where e.organisation_id = o.organisation_id
          and e.status = 'queued'
          and e.is_mailing = m.is_mailing
          and e.next_attempt_at <= v_now
        order by e.organisation_id, e.is_mailing, e.next_attempt_at
        limit claim_ticket_emails."limit"
      ) d
    )
    select d.id
    from due d
    order by d.turn, d.last_attempt_at nulls first, d.next_attempt_at, d.id
    limit claim_ticket_emails."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  perform api.settle_ticket_email(
    e.id, e.claim, error => format('Gave up after %s attempts without a recorded result.', v_most_claims), permanent => true
  )
  from public.emails e
  where e.id = any (v_candidates) and e.attempts >= v_most_claims and e.claim is not null;

  -- Still queued and due. An expression, so that the planner does not scan the index of everything due; an array, because a
  -- join might scan it, too.
  v_candidates := array(
    select e.id
    from public.emails e
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  -- One e-mail tells all tickets of an address: where its own was cancelled since, it tells another.
  update public.emails e
  set attendee_id = coalesce(
    (
      select a.id
      from public.attendees c
      join public.attendees a
        on a.organisation_id = c.organisation_id and a.email_lower = c.email_lower and a.event_id = c.event_id
      where c.id = e.attendee_id
        and a.status <> 'cancelled'
        and (select o.send_email from public.orders o where o.id = a.order_id)
      limit 1
    ),
    e.attendee_id
  )
  where e.id = any (v_candidates)
    and e.kind = 'event_changed'
    and (select a.status from public.attendees a where a.id = e.attendee_id) = 'cancelled';
  update public.emails e set status = 'cancelled', next_attempt_at = null, claim = null, claimed_until = null
  where e.id = any (v_candidates) and private.is_moot(e);
  -- An order that has no tickets yet is confirmed when it has.
  update public.emails e set next_attempt_at = v_now + interval '10 minutes'
  where e.id = any (v_candidates)
    and e.kind = 'order_confirmation'
    and e.next_attempt_at is not null
    and not exists (select from public.attendees a where a.order_id = e.order_id);
  with claimed as (
    update public.emails e
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = e.attempts + 1,
      last_attempt_at = v_now,
      sent_to = coalesce(
        (select a.email from public.attendees a where a.id = e.attendee_id), (select o.email from public.orders o where o.id = e.order_id),
        (select w.email from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
      ),
      sent_code = case e.kind when 'ticket' then (select a.ticket_code from public.attendees a where a.id = e.attendee_id) end
    where e.id = any (v_candidates) and coalesce(e.next_attempt_at <= v_now, false)
    returning e.*
  )
  select coalesce(json_agg(private.pending_email_json(row(c.*)::public.emails)), '[]') into v_claimed from claimed c;
  return v_claimed;
end
$$;

create or replace function api.claim_webhooks (
  "limit" integer,
  lease_seconds integer default 60
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set plan_cache_mode to 'force_custom_plan'
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  as $$
declare
  v_most_per_endpoint constant integer := 4;
  -- Half and a quarter of `concurrency` in src/courier/webhooks.ts (64 webhooks per courier): change them together.
  v_most_per_organisation constant integer := 32;
  v_most_failing constant integer := 16;
  -- Deliveries to fan out first: about 10 ms.
  v_fan_out constant integer := 200;
  -- Ten attempts are made. A row that is claimed far more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 20;
  v_claim constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_until timestamptz;
  v_candidates uuid[];
  v_claimed json;
begin
  if private.is_held() then
    return '[]';
  end if;
  perform pg_advisory_xact_lock(4, 0);
  perform private.fan_out(v_fan_out);
  v_now := clock_timestamp();
  v_until := v_now + make_interval(secs => lease_seconds);

  v_candidates := array(
    with endpoints as materialized (
      select
        w.id,
        w.organisation_id,
        w.failing_since is not null as failing,
        w.last_failed_at,
        c.in_flight,
        sum(c.in_flight) over (partition by w.organisation_id) as in_flight_of_organisation,
        sum(c.in_flight) over (partition by w.organisation_id, w.failing_since is not null) as in_flight_of_its_kind
      from public.webhook_endpoints w
      cross join lateral (
        select count(*)::integer as in_flight
        from public.webhook_deliveries d
        where d.webhook_endpoint_id = w.id and d.claimed_until > v_now
      ) c
      where w.status = 'enabled'
    ),
    due as (
      select
        d.id, d.next_attempt_at, e.in_flight + d.place as turn, e.organisation_id, e.in_flight_of_organisation,
        e.failing, e.last_failed_at, e.in_flight_of_its_kind
      from endpoints e
      cross join lateral (
        select f.id, f.next_attempt_at, row_number() over (order by f.next_attempt_at) as place
        from (
          select d.id, d.next_attempt_at
          from public.webhook_deliveries d
          where d.webhook_endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= v_now
          order by d.webhook_endpoint_id, d.next_attempt_at
          limit greatest(case when e.failing then 1 else v_most_per_endpoint end - e.in_flight, 0)
        ) f
      ) d
    ),
    -- Failing endpoints are limited first, and organisations after that, so that failing ones delay no other. Among them
    -- organisations take turns, and the endpoint that has not been tried for longest comes first: a single failure among a
    -- thousand is soon over.
    failing as (
      select
        d.*,
        row_number() over (order by d.turn_of_organisation, d.last_failed_at nulls first, d.next_attempt_at, d.id) as place_of_failing
      from (
        select
          d.*,
          d.in_flight_of_its_kind + row_number() over (
            partition by d.organisation_id order by d.last_failed_at nulls first, d.next_attempt_at, d.id
          ) as turn_of_organisation
        from due d
        where d.failing
      ) d
    ),
    admitted as (
      select d.id, d.next_attempt_at, d.turn, d.organisation_id, d.in_flight_of_organisation from due d where not d.failing
      union all
      select f.id, f.next_attempt_at, f.turn, f.organisation_id, f.in_flight_of_organisation
      from failing f
      where f.place_of_failing <= v_most_failing - (select coalesce(sum(e.in_flight), 0) from endpoints e where e.failing)
    ),
    placed as (
      select
        d.*,
        row_number() over (partition by d.organisation_id order by d.turn, d.next_attempt_at, d.id) as place_of_organisation
      from admitted d
    )
    select p.id
    from placed p
    where p.in_flight_of_organisation + p.place_of_organisation <= v_most_per_organisation
    order by p.turn, p.next_attempt_at
    limit claim_webhooks."limit"
  );
  if v_candidates = '{}' then
    return '[]';
  end if;

  -- Skips locked rows rather than wait: other couriers wait for the lock that this transaction holds.
  update public.webhook_deliveries d
  set status = 'failed', last_error = format('Gave up after %s attempts without a recorded result.', v_most_claims)
  where d.id in (
    select f.id from public.webhook_deliveries f
    where f.id = any (v_candidates) and coalesce(f.next_attempt_at <= v_now, false) and f.attempts >= v_most_claims
    for no key update skip locked
  );

  -- Still pending and due. An expression, so that the planner does not scan the index of everything due; an array, because a
  -- join might scan it, too.
  v_candidates := array(
    select d.id
    from public.webhook_deliveries d
    where d.id = any (v_candidates) and coalesce(d.next_attempt_at <= v_now, false)
    for no key update skip locked
  );
  with claimed as (
    update public.webhook_deliveries d
    set claim = v_claim,
      claimed_until = v_until,
      next_attempt_at = v_until,
      attempts = d.attempts + 1,
      last_attempt_at = v_now
    where d.id = any (v_candidates)
    returning d.*
  )
  select coalesce(
    json_agg(json_build_object(
      'id', c.id,
      'claim', c.claim,
      'attempt', c.attempts,
      'webhook_endpoint_id', w.id,
      'url', w.url,
      'secrets', (
        select json_agg(s.secret order by s.expires_at desc nulls first)
        from private.webhook_secrets s
        where s.webhook_endpoint_id = w.id and (s.expires_at is null or s.expires_at > v_now)
      ),
      'webhook_id', n.id,
      'type', n.type,
      'timestamp', private.rfc3339(n.created_at),
      'data', n.data
    )),
    '[]'
  ) into v_claimed
  from claimed c
  join public.webhook_endpoints w on w.id = c.webhook_endpoint_id
  join public.notifications n on n.id = c.notification_id;
  return v_claimed;
end
$$;

create or replace function api.delete_event (
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
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  delete from public.events e where e.id = delete_event.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'event', 'id', event_id, 'deleted', true)
  ));
end
$$;

create or replace function api.enforce_payment_deadlines (
  "limit" integer default 100
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_bitmapscan to 'off'
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  as $$
declare
  v_due uuid[];
begin
  -- Nobody is reminded where e-mails are held, so nobody is late there.
  if private.is_held() then
    return json_build_object('expired', 0, 'reminded', 0, 'has_more', false);
  end if;
  v_due := array(
    with due as (
      select
        d.id, d.payment_check_at, row_number() over (partition by o.organisation_id order by d.payment_check_at, d.id) as turn
      from unnest(private.organisations_with_deadlines()) o (organisation_id)
      cross join lateral (
        select d.id, d.payment_check_at
        from public.orders d
        where d.organisation_id = o.organisation_id and d.payment_check_at <= now()
        order by d.organisation_id, d.payment_check_at, d.id
        limit enforce_payment_deadlines."limit"
      ) d
    )
    select d.id from due d order by d.turn, d.payment_check_at, d.id limit enforce_payment_deadlines."limit"
  );
  return json_build_object(
    'expired', cardinality(private.expire_orders(v_due)),
    'reminded', cardinality(private.remind_of_payments(v_due)),
    'has_more', cardinality(v_due) >= enforce_payment_deadlines."limit"
  );
end
$$;

create or replace function api.expire_waiting_list_offers()
  returns json
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_most constant integer := 100;
  v_event_id uuid;
  v_expired integer := 0;
begin
  -- Nobody reads an offer where e-mails are held.
  if private.is_held() then
    return json_build_object('expired', 0, 'has_more', false);
  end if;
  for v_event_id in
    select w.event_id
    from public.waiting_list_entries w
    where w.status = 'offered' and w.offer_expires_at <= now()
    group by w.event_id
    order by min(w.offer_expires_at)
  loop
    -- As private.lock_event_shared, without waiting.
    continue when not pg_try_advisory_xact_lock_shared(1, hashtext(v_event_id::text));
    update public.waiting_list_entries w set status = 'expired'
    where w.id = any (array(
      select d.id
      from public.waiting_list_entries d
      where d.event_id = v_event_id and d.status = 'offered' and d.offer_expires_at <= now()
      order by d.id
      limit v_most
      for no key update skip locked
    ));
    get diagnostics v_expired = row_count;
    exit when v_expired > 0;
  end loop;
  return json_build_object(
    'expired', v_expired,
    'has_more', v_expired > 0 and exists (
      select from public.waiting_list_entries w where w.status = 'offered' and w.offer_expires_at <= now()
    )
  );
end
$$;

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
    begin
      v_verdicts := v_verdicts || private.import_guests(
        v_organisation_id, event_id, ticket_type_id, send_email, v_guests[v_judged + 1:v_judged + c_part],
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
            'external_id', case when jsonb_typeof(v_guests[v.place] -> 'external_id') = 'string' then left(v_guests[v.place] ->> 'external_id', 255) end,
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

create or replace function api.list_events (
  search text default null::text,
  status public.event_status default null::public.event_status,
  phase public.event_phase default null::public.event_phase,
  starts_after timestamp with time zone default null::timestamp with time zone,
  starts_before timestamp with time zone default null::timestamp with time zone,
  external_id text default null::text,
  sort public.event_sort default null::public.event_sort,
  cursor text default null::text,
  "limit" integer default null::integer
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  as $$
declare
  v_size integer := private.page_size("limit");
  v_by_start boolean := coalesce(sort = 'starts_at', false);
  v_before uuid := private.before_cursor(case when not v_by_start then cursor end);
  v_after private.start_position := private.after_start_cursor(case when v_by_start then cursor end);
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_event public.events;
  v_item json;
  v_items json[];
  v_cursors text[];
begin
  if external_id is not null then
    v_ids := array(select e.id from public.events e where e.external_id = list_events.external_id);
  elsif v_by_start then
    v_ids := private.find_events_by_start(
      list_events.status, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns, v_after, v_size + 1
    );
  else
    v_ids := private.find_events(
      list_events.status, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns, v_before, v_size + 1
    );
  end if;
  for v_event in
    select e.*
    from unnest(v_ids) with ordinality i (id, place)
    cross join lateral (select e.* from public.events e where e.id = i.id offset 0) e
    where (list_events.status is null or e.status = list_events.status)
      and e.id < v_before
      and (coalesce(e.starts_at, 'infinity'), e.id) > (v_after.starts_at, v_after.id)
      and private.event_matches(e, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns)
    order by i.place
  loop
    v_item := private.event_json(v_event);
    v_items := v_items || v_item;
    if v_by_start then
      v_cursors := v_cursors || private.encode_start_cursor((coalesce(v_event.starts_at, 'infinity'), v_event.id));
    end if;
    v_bytes := v_bytes - pg_column_size(v_item);
    exit when v_bytes < 0 and cardinality(v_items) > 1;
  end loop;
  return private.page(v_items, v_size, v_cursors);
end
$$;

create or replace function api.outbox_depth()
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  as $$
declare
  v_held boolean := private.is_held();
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'owed', k.pending,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0),
      'held', v_held
    ))
    from (
      select
        'webhooks' as kind,
        coalesce(sum(d.pending), 0) as pending,
        min(d.oldest) as oldest,
        min(d.due) as due
      from (
        select d.pending, d.oldest, case when w.failing_since is null and not d.busy then d.due end as due
        from (
          select
            d.webhook_endpoint_id,
            count(*) as pending,
            min(d.created_at) as oldest,
            min(d.next_attempt_at) as due,
            coalesce(bool_or(d.claimed_until > now()), false) as busy
          from public.webhook_deliveries d
          where d.status = 'pending'
          group by d.webhook_endpoint_id
        ) d
        join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
        union all
        select n.pending, q.created_at, q.created_at
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
      select 'ticket_emails', count(*), min(e.created_at), min(e.next_attempt_at)
      from public.emails e
      where e.status = 'queued'
    ) k
  );
end
$$;

create or replace function api.redeliver_webhooks (
  webhook_endpoint_id uuid,
  since timestamp with time zone,
  until timestamp with time zone default null::timestamp with time zone,
  status public.webhook_delivery_status default null::public.webhook_delivery_status,
  idempotency_key text default null::text,
  request_fingerprint text default null::text
)
  returns json
  language plpgsql
  set search_path to ''
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
      and f.created_at >= since
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

create or replace function private.after_restore()
  returns text
  language plpgsql
  set search_path to ''
  as $$
declare
  v_organisation_id uuid;
begin
  for v_organisation_id in select distinct q.organisation_id from private.notification_queue q loop
    while private.fan_out_organisation(v_organisation_id, 10000) > 0 loop
      null;
    end loop;
  end loop;
  if exists (select from private.notification_queue) then
    raise exception 'Webhook endpoints are being edited: stop everything that uses the database, and run it again.';
  end if;
  update public.notifications n set transaction_id = '0' where n.transaction_id <> '0';
  delete from private.webhook_subscriptions s
  where exists (
    select from private.webhook_subscriptions l
    where l.webhook_endpoint_id = s.webhook_endpoint_id and l."position" > s."position"
  );
  update private.webhook_subscriptions s set transaction_id = '0', snapshot = '1:1:' where s.transaction_id <> '0';
  return 'Done: notifications and webhooks continue from here.'
    || case when private.is_held() then ' Deliveries are held until you run "select private.release_deliveries()".' else '' end;
end
$$;

create or replace function private.after_start_cursor (
  cursor text
)
  returns private.start_position
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_bytes bytea;
  v_microseconds bigint;
  v_position private.start_position := row('-infinity', '00000000-0000-0000-0000-000000000000');
begin
  if cursor is null then
    return v_position;
  end if;
  if cursor ~ '^[A-Za-z0-9_-]{32}$' then
    v_bytes := decode(translate(cursor, '-_', '+/'), 'base64');
    -- Since 2000, as Postgres sends a time. Days and the rest apart, for an interval of microseconds alone is not exact.
    v_microseconds := ('x' || encode(substr(v_bytes, 1, 8), 'hex'))::bit(64)::bigint;
    v_position.id := encode(substr(v_bytes, 9), 'hex')::uuid;
    if v_microseconds = 9223372036854775807 then
      v_position.starts_at := 'infinity';
      return v_position;
    elsif v_microseconds / 86400000000 between -40000 and 3000000 then
      v_position.starts_at := (
        timestamp '2000-01-01'
        + make_interval(days => (v_microseconds / 86400000000)::integer)
        + (v_microseconds % 86400000000) * interval '1 microsecond'
      ) at time zone 'UTC';
      return v_position;
    end if;
  end if;
  perform private.refuse(
    422, 'validation_failed', 'The cursor is not valid.', 'cursor',
    hint => 'Send next_cursor of the previous page in the same order unchanged, or leave the cursor out to start again.'
  );
end
$$;

create or replace function private.amount_due (
  "order" public.orders
)
  returns bigint
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return case "order".status when 'cancelled' then 0 else greatest(
    "order".subtotal - "order".discount_total - "order".amount_paid + "order".amount_refunded,
    0
  ) end;
end
$$;

create or replace function private.announced_names()
  returns text[]
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return nullif(array(select jsonb_array_elements_text(private.claims() -> 'installation')), '{}');
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

create or replace function private.encode_start_cursor (
  "position" private.start_position
)
  returns text
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return translate(encode(timestamptz_send("position".starts_at) || uuid_send("position".id), 'base64'), '+/', '-_');
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
      or private.search_form(concat_ws(' ', event.name, event.slug, event.venue_name, event.venue_city)) like all (patterns)
    );
end
$$;

create or replace function private.event_phase (
  event public.events
)
  returns public.event_phase
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return case
    when event.status = 'draft' or now() < event.starts_at then 'upcoming'
    when now() < event.ends_at then 'ongoing'
    else 'ended'
  end::public.event_phase;
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
  as $$
declare
  v_most_buckets constant integer := 200;
  v_most_rows constant integer := 200;
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
  v_with_money boolean := 'orders:read' = any (private.current_scopes());
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
      least(t.quantity - t.quantity_sold - t.quantity_held, case when v_places_left < 0 then 0 else v_places_left end) as available,
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

create or replace function private.find_events_by_start (
  status public.event_status,
  starts_after timestamp with time zone,
  starts_before timestamp with time zone,
  phase public.event_phase,
  patterns text[],
  after private.start_position,
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
  as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.event_status[] := case
    when find_events_by_start.status is null then enum_range(null::public.event_status)
    else array[find_events_by_start.status]
  end;
  v_after_start timestamptz := after.starts_at;
  v_after_id uuid := after.id;
begin
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join lateral (
      select e.id, coalesce(e.starts_at, 'infinity') as starts_at
      from public.events e
      where e.organisation_id = any (v_organisation_ids)
        and e.status = s.status
        and (coalesce(e.starts_at, 'infinity'), e.id) > (v_after_start, v_after_id)
        and private.event_matches(e, starts_after, starts_before, phase, patterns)
      order by e.organisation_id, coalesce(e.starts_at, 'infinity'), e.id
      limit size
    ) f
    order by f.starts_at, f.id
    limit size
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

create or replace function private.is_at_home (
  installation private.installations,
  names text[]
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  if names is null or names && installation.names then
    return installation.system_identifier = (select c.system_identifier from pg_control_system() c)
      or exists (select from unnest(names) n (name) where n.name like 'project:%' and n.name = any (installation.names));
  end if;
  return false;
end
$$;

create or replace function private.is_currency (
  code text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return code = any ('{
    AED,AFN,ALL,AMD,AOA,ARS,AUD,AWG,AZN,BAM,BBD,BDT,BHD,BIF,BMD,BND,BOB,BRL,BSD,BTN,BWP,BYN,BZD,CAD,CDF,CHF,CLP,CNY,COP,CRC,
    CUP,CVE,CZK,DJF,DKK,DOP,DZD,EGP,ERN,ETB,EUR,FJD,FKP,GBP,GEL,GHS,GIP,GMD,GNF,GTQ,GYD,HKD,HNL,HTG,HUF,IDR,ILS,INR,IQD,IRR,
    ISK,JMD,JOD,JPY,KES,KGS,KHR,KMF,KPW,KRW,KWD,KYD,KZT,LAK,LBP,LKR,LRD,LSL,LYD,MAD,MDL,MGA,MKD,MMK,MNT,MOP,MRU,MUR,MVR,MWK,
    MXN,MYR,MZN,NAD,NGN,NIO,NOK,NPR,NZD,OMR,PAB,PEN,PGK,PHP,PKR,PLN,PYG,QAR,RON,RSD,RUB,RWF,SAR,SBD,SCR,SDG,SEK,SGD,SHP,SLE,
    SOS,SRD,SSP,STN,SVC,SYP,SZL,THB,TJS,TMT,TND,TOP,TRY,TTD,TWD,TZS,UAH,UGX,USD,UYU,UZS,VED,VES,VND,VUV,WST,XAF,XCD,XCG,XOF,
    XPF,YER,ZAR,ZMW,ZWG
  }'::text[]);
end
$$;

create or replace function private.is_held()
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_installation private.installations;
begin
  select i.* into v_installation from private.installations i;
  return v_installation.is_only is not null and not private.is_at_home(v_installation, private.announced_names());
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
    and length(value #>> '{}') <= max_length
    and value #>> '{}' ~ '[^[:space:]\u00a0\u2000-\u200b\u3000\ufeff]'
    and value #>> '{}' !~ '[[:cntrl:]\u0080-\u009f]';
end
$$;

create or replace function private.is_moot (
  email public.emails
)
  returns boolean
  language plpgsql
  stable
  security definer
  set search_path to ''
  as $$
declare
  v_attendee public.attendees;
  v_order public.orders;
begin
  select a.* into v_attendee from public.attendees a where a.id = email.attendee_id;
  select o.* into v_order from public.orders o where o.id = email.order_id;
  if private.is_erased(email) then
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
    when 'payment_reminder' then
      v_order.status <> 'pending' or v_order.payment_reminded_at is null or v_order.payment_due_at <= now()
    when 'order_expired' then v_order.status <> 'cancelled'
    when 'waiting_list_offer' then (
      select w.status <> 'offered' or w.offer_expires_at <= now()
      from public.waiting_list_entries w where w.id = email.waiting_list_entry_id
    )
    when 'payment_received' then exists (select from public.payment_voids v where v.payment_id = email.payment_id)
    else false
  end;
end
$$;

create or replace function private.is_settled (
  "order" public.orders
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return "order".amount_paid - "order".amount_refunded >= "order".subtotal - "order".discount_total
    and ("order".payment_method is null or exists (select from public.attendees a where a.order_id = "order".id));
end
$$;

create or replace function private.is_time_up()
  returns boolean
  language plpgsql
  set search_path to ''
  as $$
declare
  v_limit interval := current_setting('statement_timeout');
begin
  return v_limit > interval '0' and clock_timestamp() > statement_timestamp() + v_limit / 3;
end
$$;

create or replace function private.is_web_url (
  url text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return length(url) <= 2000
    and url ~ '^https?://[^/?#@\\[:space:]]+([/?#][^[:space:]]*)?$'
    and url !~ '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]';
end
$$;

create or replace function private.limit_lock_waits()
  returns void
  language plpgsql
  set search_path to ''
  as $$
declare
  v_limit interval := current_setting('statement_timeout');
  v_left interval := statement_timestamp() + v_limit * 0.6 - clock_timestamp();
begin
  if v_limit > interval '0' then
    -- Any statement may wait a moment, as for a table that another one extends.
    perform set_config('lock_timeout', ceil(greatest(date_part('epoch', v_left), 1) * 1000)::text, true);
  end if;
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

create or replace function private.move_places (
  ticket_type_id uuid,
  places integer,
  held integer default 0
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
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
      end
    );
  end if;
  if places > 0 then
    perform private.assert_on_sale(v_ticket_type);
  end if;
end
$$;

create or replace function private.notify_of_full_event (
  event_id uuid
)
  returns void
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select t.organisation_id, 'ticket_type.sold_out', t.data
  from (
    select t.organisation_id, t.position, t.id, private.ticket_type_json(t) as data
    from public.ticket_types t
    where t.event_id = notify_of_full_event.event_id
      and (t.quantity is null or t.quantity_sold + t.quantity_held < t.quantity)
  ) t
  where t.data ->> 'sales_status' = 'sold_out'
  order by t.position, t.id;
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
    'payment_due_at', private.rfc3339("order".payment_due_at),
    'payment_reminded_at', private.rfc3339("order".payment_reminded_at),
    'promo_code', "order".promo_code,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'refunds', refunds,
    'completed_at', private.rfc3339("order".completed_at),
    'cancelled_at', private.rfc3339("order".cancelled_at),
    'cancellation_reason', "order".cancellation_reason,
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', private.rfc3339("order".created_at),
    'updated_at', private.rfc3339("order".updated_at)
  );
end
$$;

create or replace function private.page (
  items json[],
  size integer,
  cursors text[] default null::text[]
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
declare
  v_kept integer := least(coalesce(cardinality(items), 0), size);
  v_bytes integer := private.page_bytes();
  v_sum bigint := 0;
begin
  if pg_column_size(items) > v_bytes then
    for i in 1..v_kept loop
      v_sum := v_sum + pg_column_size(items[i]);
      if v_sum > v_bytes and i > 1 then
        v_kept := i - 1;
        exit;
      end if;
    end loop;
  end if;
  return json_build_object(
    'data', coalesce(to_json(items[1:v_kept]), '[]'),
    'has_more', coalesce(cardinality(items), 0) > v_kept,
    'next_cursor', case
      when cardinality(items) > v_kept then coalesce(cursors[v_kept], private.encode_cursor((items[v_kept] ->> 'id')::uuid))
    end
  );
end
$$;

create or replace function private.refuse_transition (
  "from" public.event_status,
  "to" public.event_status
)
  returns void
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse(
    409, 'invalid_transition', 'An event cannot go from its present status to this one.', 'status',
    jsonb_build_object('from', "from", 'to', "to"),
    'Allowed: draft to published; published to draft, cancelled or completed; completed to published until its end.'
  );
end
$$;

create or replace function private.release_deliveries()
  returns text
  language plpgsql
  set search_path to ''
  as $$
begin
  delete from private.installations;
  return 'Released: webhooks and e-mails are sent from here, also those that were pending when the database was copied.';
end
$$;

create or replace function private.tg__refuse_write()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse(
    405, 'method_not_allowed', 'This is a view: it is only read.', hint => 'Change the rows of the tables that it shows.'
  );
  return null;
end
$$;

create or replace function private.tg__set_updated_at()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if tg_nargs > 0 and pg_trigger_depth() = 1 and to_jsonb(new) - tg_argv = to_jsonb(old) - tg_argv then
    return new;
  end if;
  new.updated_at := now();
  return new;
end
$$;

create or replace function private.tg_attendees__add_up()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order_ids uuid[];
  v_uses private.use_move[] := '{}';
  v_move record;
begin
  if tg_op = 'INSERT' then
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    v_uses := array(select row(n.promo_code_id, 1)::private.use_move from new_rows n where n.promo_code_id is not null);
  else
    -- Attendees that became cancelled. Not a join of the two transition tables: its plan would be that of the first call, which
    -- sees one row, and a nested loop over the 10,000 rows of a cancelled event takes minutes.
    select coalesce(array_agg(distinct c.order_id), '{}'),
      coalesce(array_agg(row(c.promo_code_id, -1)::private.use_move) filter (where c.promo_code_id is not null), '{}')
    into v_order_ids, v_uses
    from (
      select n.id, n.order_id, n.promo_code_id from new_rows n where n.status = 'cancelled'
      except
      select o.id, o.order_id, o.promo_code_id from old_rows o where o.status = 'cancelled'
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

  for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
    perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
  end loop;
  return null;
end
$$;

create or replace function private.tg_attendees__assert_over()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if old.status <> 'cancelled' then
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
  as $$
declare
  v_moves private.place_move[] := '{}';
  v_event_id uuid;
  v_event public.events;
  v_taken bigint;
  v_limited public.events[] := '{}';
  v_given_back uuid[] := '{}';
  v_move record;
begin
  if tg_op = 'UPDATE' then
    v_moves := v_moves || array(
      select row(o.event_id, o.ticket_type_id, -1, 0)::private.place_move from old_rows o where o.status <> 'cancelled'
    );
  end if;
  v_moves := v_moves || array(
    select row(
      n.event_id, n.ticket_type_id, 1, case when tg_op = 'INSERT' and n.waiting_list_entry_id is not null then -1 else 0 end
    )::private.place_move
    from new_rows n
    where n.status <> 'cancelled'
  );
  v_moves := array(
    select row(m.event_id, m.ticket_type_id, sum(m.places)::integer, sum(m.held)::integer)::private.place_move
    from unnest(v_moves) m
    group by m.event_id, m.ticket_type_id
    having sum(m.places) <> 0
  );

  for v_move in
    select m.event_id, bool_or(m.places > 0) as takes, bool_or(m.places < 0) as gives_back
    from unnest(v_moves) m
    group by m.event_id
    order by m.event_id
  loop
    v_event := null;
    if v_move.takes then
      v_event := private.lock_event_shared(v_move.event_id);
      perform private.assert_takes_registrations(v_event);
      if v_event.capacity is not null then
        v_limited := v_limited || v_event;
      end if;
    end if;
    if v_move.gives_back then
      v_given_back := v_given_back || v_move.event_id;
    end if;
    if v_move.gives_back or v_event.capacity is not null then
      perform private.lock_event_capacity(v_move.event_id);
    end if;
  end loop;

  for v_move in select m.* from unnest(v_moves) m order by m.ticket_type_id loop
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
        update public.attendees a set external_id = null where a.id = v_holder.id and a.external_id = new.external_id;
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

create or replace function private.tg_attendees__notify_insert()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_first uuid[];
begin
  -- A scalar subquery is one look-up per row under any plan.
  if exists (select from new_rows n where (select o.created_at from public.orders o where o.id = n.order_id) <> now()) then
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

    insert into public.notifications (organisation_id, type, data)
    -- The row as it is: its discount may have been set after it was added.
    select n.organisation_id, 'attendee.updated', (select private.attendee_json(a, with_url => false) from public.attendees a where a.id = n.id)
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
  as $$
begin
  -- Every change of these columns increments the version; a check-in, for example, leaves nothing to compare.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
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
    )
  from new_rows n
  join old_rows o on o.id = n.id
  where (n.name, n.email, n.company, n.status, n.ticket_type_id, n.ticket_code, n.external_id, n.metadata, n.erased_at)
    is distinct from
    (o.name, o.email, o.company, o.status, o.ticket_type_id, o.ticket_code, o.external_id, o.metadata, o.erased_at)
    -- An attendee who is as new as what announces the order is in there as they are at the end.
    and not (
      n.created_at = now()
      and n.status <> 'cancelled'
      and n.erased_at is null
      and n.order_id in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    )
  order by n.id;
  return null;
end
$$;

create or replace function private.tg_events__delete()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if exists (select from public.orders o where o.event_id = old.id) then
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
  update public.audit_entries e set changes = e.changes - '{name,email,company,external_id,metadata}'::text[]
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
  as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name));
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
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
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
    perform private.refuse_taken('slug', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at)
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

create or replace function private.tg_events__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  -- An update that changes nothing notifies of nothing.
  if new.version = old.version then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new)
  );
  return null;
end
$$;

create or replace function private.tg_events__notify_full()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_taken bigint := private.places_taken(new.id);
begin
  if v_taken >= new.capacity and (old.capacity is null or v_taken < old.capacity) then
    perform private.notify_of_full_event(new.id);
  end if;
  return null;
end
$$;

create or replace function private.tg_order_notices__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select o.organisation_id, t.type, o.data
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
      select o as "order", o.id, o.organisation_id, o.amount_paid, o.amount_voided, o.amount_refunded,
        private.attendees_of_order_json(o.id, o.reference) as attendees
      from public.orders o
      where o.id = n.order_id
      offset 0
    ) a
    where a.attendees::text <> '[]'
    offset 0
  ) o
  cross join unnest(new.types) t (type);
  delete from private.order_notices n where n.id = new.id;
  return null;
end
$$;

create or replace function private.tg_orders__confirm()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
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
      if v_holder.status = 'cancelled' and v_holder.amount_paid = v_holder.amount_refunded then
        -- As of a cancelled attendee: see tg_attendees__guard. Money that is to be returned is looked up by the identifier.
        update public.orders o set external_id = null where o.id = v_holder.id and o.external_id = new.external_id;
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
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded = new.amount_paid then 'refunded'
    else 'paid'
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

create or replace function private.tg_orders__guard_deadline()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  -- How long before the deadline the buyer is reminded.
  v_lead interval := '72 hours';
  v_before timestamptz;
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
    if new.payment_reminded_at is distinct from old.payment_reminded_at and new.payment_reminded_at is distinct from now() then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'payment_reminded_at',
        hint => 'Change payment_due_at instead: the buyer is reminded of each deadline.'
      );
    end if;
    if new.payment_reminded_at is distinct from old.payment_reminded_at then
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
    new.payment_reminded_at := null;
    new.payment_remind_at := case when new.send_email then new.payment_due_at - v_lead end;
  end if;
  new.payment_check_at := case
    when new.status = 'pending' and new.amount_paid < new.subtotal - new.discount_total
      then least(new.payment_remind_at, new.payment_due_at)
  end;
  return new;
end
$$;

create or replace function private.tg_payments__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_due := private.amount_due(v_order);

  -- A completed order is payable again once a payment was voided, or money for a ticket that stands was returned.
  if v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status <> 'pending' and v_due = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record at most what is due, and refund the rest.'
    );
  end if;

  -- Before the insert, so that a second payment in the same statement sees the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method
  where o.id = v_order.id;
  return new;
end
$$;

create or replace function private.tg_registrations__register()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
declare
  v_given jsonb;
  v_kept text;
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
  if not exists (select from public.events e where e.id = new.event_id) then
    perform private.refuse_not_found('event_id');
  elsif not exists (select from public.ticket_types t where t.id = new.ticket_type_id and t.event_id = new.event_id) then
    perform private.refuse_not_found('ticket_type_id');
  end if;
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

create or replace function private.tg_ticket_types__notify_sold_out()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if exists (
    select from public.events e
    where e.id = new.event_id
      and e.capacity <= private.places_taken(e.id) - (new.quantity_sold + new.quantity_held - old.quantity_sold - old.quantity_held)
  ) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (new.organisation_id, 'ticket_type.sold_out', private.ticket_type_json(new));
  return null;
end
$$;

create or replace function private.tg_webhook_endpoints__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
declare
  v_most_endpoints constant integer := 50;
begin
  if tg_op = 'INSERT' then
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

create view public.arrivals with (security_invoker=true) as
  select f.organisation_id,
    f.event_id,
    f.event,
    f.check_in_point_id,
    p.name as check_in_point,
    (f.arrived_at)::date as day,
    date_trunc('hour'::text, f.arrived_at) as hour,
    count(*) as arrived
   from (( select e.organisation_id,
            c.event_id,
            e.name as event,
            c.check_in_point_id,
            min((c.scanned_at at time zone e.timezone)) as arrived_at
           from ((public.check_ins c
             join public.events e on ((e.id = c.event_id)))
             join public.attendees a on ((a.id = c.attendee_id)))
          where ((c.direction = 'entry'::public.check_in_direction) and (c.result = 'accepted'::public.check_in_result) and (c.undone_at is null) and (a.status <> 'cancelled'::public.attendee_status))
          group by e.id, c.event_id, c.check_in_point_id, c.attendee_id, (((c.scanned_at at time zone e.timezone))::date)) f
     left join public.check_in_points p on ((p.id = f.check_in_point_id)))
  group by f.organisation_id, f.event_id, f.event, f.check_in_point_id, p.name, ((f.arrived_at)::date), (date_trunc('hour'::text, f.arrived_at))
  order by f.event_id, (date_trunc('hour'::text, f.arrived_at)), p.name, f.check_in_point_id;

revoke all on table public.arrivals from anon;

revoke all on table public.arrivals from service_role;

create view public.registrations with (security_invoker=true) as
  select a.organisation_id,
    a.event_id,
    a.ticket_type_id,
    a.name,
    a.email,
    a.company,
    o.payment_method,
    o.promo_code,
    o.send_email,
    a.waiting_list_entry_id,
    a.external_id,
    a.metadata,
    o.id as order_id,
    o.reference,
    a.id as attendee_id,
    a.status,
    a.created_at
   from (public.attendees a
     join public.orders o on ((o.id = a.order_id)));

revoke all on table public.registrations from anon;

revoke all on table public.registrations from service_role;

create view public.unpaid_orders with (security_invoker=true) as
  select o.organisation_id,
    o.event_id,
    e.name as event,
    o.id as order_id,
    o.reference,
    o.name,
    o.email,
    o.company,
    private.money_text(o.total, o.currency) as total,
    private.money_text((o.amount_paid - o.amount_refunded), o.currency) as paid,
    private.money_text(private.amount_due(o.*), o.currency) as due,
    private.amount_due(o.*) as amount_due,
    o.currency,
    o.created_at,
    (now() - o.created_at) as age,
    o.payment_due_at
   from (public.orders o
     join public.events e on ((e.id = o.event_id)))
  where (o.payment_status = any (array['awaiting_payment'::public.payment_status, 'partially_paid'::public.payment_status]))
  order by o.created_at;

revoke all on table public.unpaid_orders from anon;

revoke all on table public.unpaid_orders from service_role;

-- Events are few, and a migration is one transaction.
-- squawk-ignore require-concurrent-index-creation
create index events_organisation_id_status_starts_at_idx on public.events
  using btree (organisation_id, status, coalesce(starts_at, 'infinity'::timestamp with time zone), id);

create trigger arrivals_100_read_only
  instead of insert or delete or update on public.arrivals
  for each row
  execute function private.tg__refuse_write();

create trigger attendees_100_over
  before delete on public.attendees
  for each row
  execute function private.tg_attendees__assert_over();

create trigger attendees_900_updated_at
  before update on public.attendees
  for each row
  execute function private.tg__set_updated_at('email_lower', 'checked_in');

create trigger attendees_900_version
  before update on public.attendees
  for each row
  when
    (((new.name is distinct from old.name) or (new.email is distinct from old.email) or (new.company is distinct from
    old.company) or (new.status is distinct from old.status) or (new.ticket_type_id is distinct from old.ticket_type_id)
    or (new.ticket_code is distinct from old.ticket_code) or (new.external_id is distinct from old.external_id) or
    (new.metadata is distinct from old.metadata) or (new.erased_at is distinct from old.erased_at)))
  execute function private.tg__count_version();

create trigger check_in_points_900_updated_at
  before update on public.check_in_points
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger check_in_points_900_version
  before update on public.check_in_points
  for each row
  when
    (((new.name is distinct from old.name) or (new.ticket_type_ids is distinct from old.ticket_type_ids) or
    (new.opens_at is distinct from old.opens_at) or (new.closes_at is distinct from old.closes_at) or
    (new.admission is distinct from old.admission) or (new.status is distinct from old.status)))
  execute function private.tg__count_version();

create trigger door_list_100_read_only
  instead of insert or delete or update on public.door_list
  for each row
  execute function private.tg__refuse_write();

create trigger event_sales_100_read_only
  instead of insert or delete or update on public.event_sales
  for each row
  execute function private.tg__refuse_write();

create trigger events_100_delete
  before delete on public.events
  for each row
  execute function private.tg_events__delete();

create trigger events_500_note_change
  after update on public.events
  for each row
  when
    (((old.status = any (array['published'::public.event_status, 'completed'::public.event_status])) and ((new.status =
    'cancelled'::public.event_status) or
    ((new.status = any (array['published'::public.event_status, 'completed'::public.event_status])) and ((new.name is
    distinct from old.name) or (new.starts_at is distinct from old.starts_at) or
    (new.ends_at is distinct from old.ends_at) or (new.timezone is distinct from old.timezone) or
    (new.venue_name is distinct from old.venue_name) or (new.venue_address is distinct from old.venue_address) or
    (new.venue_city is distinct from old.venue_city) or (new.venue_postcode is distinct from old.venue_postcode) or
    (new.venue_country is distinct from old.venue_country) or (new.online_url is distinct from old.online_url))))))
  execute function private.tg_events__note_change();

create trigger events_600_notify_full
  after update of capacity on public.events
  for each row
  when (((new.capacity < old.capacity) or ((new.capacity is not null) and (old.capacity is null))))
  execute function private.tg_events__notify_full();

create trigger events_900_updated_at
  before update on public.events
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger events_900_version
  before update on public.events
  for each row
  when
    (((new.name is distinct from old.name) or (new.slug is distinct from old.slug) or (new.description is distinct from
    old.description) or (new.status is distinct from old.status) or (new.starts_at is distinct from old.starts_at) or
    (new.ends_at is distinct from old.ends_at) or (new.timezone is distinct from old.timezone) or
    (new.locale is distinct from old.locale) or (new.venue_name is distinct from old.venue_name) or
    (new.venue_address is distinct from old.venue_address) or (new.venue_city is distinct from old.venue_city) or
    (new.venue_postcode is distinct from old.venue_postcode) or (new.venue_country is distinct from old.venue_country)
    or (new.online_url is distinct from old.online_url) or (new.capacity is distinct from old.capacity) or
    (new.waiting_list_offer_hours is distinct from old.waiting_list_offer_hours) or
    (new.currency is distinct from old.currency) or (new.payment_due_days is distinct from old.payment_due_days) or
    (new.external_id is distinct from old.external_id) or (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger failing_webhook_endpoints_100_read_only
  instead of insert or delete or update on public.failing_webhook_endpoints
  for each row
  execute function private.tg__refuse_write();

create trigger orders_900_updated_at
  before update on public.orders
  for each row
  execute function private.tg__set_updated_at('email_lower', 'total');

create trigger orders_900_version
  before update on public.orders
  for each row
  when
    (((new.name is distinct from old.name) or (new.email is distinct from old.email) or (new.company is distinct from
    old.company) or (new.status is distinct from old.status) or (new.subtotal is distinct from old.subtotal) or
    (new.amount_paid is distinct from old.amount_paid) or (new.amount_refunded is distinct from old.amount_refunded) or
    (new.payment_due_at is distinct from old.payment_due_at) or (new.external_id is distinct from old.external_id) or
    (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger organisations_900_updated_at
  before update on public.organisations
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger payments_300_received_at
  before insert on public.payments
  for each row
  when ((new.received_at > (now() + '1 day'::interval)))
  execute function
    private.tg__refuse_value('received_at', 'received_at is more than a day ahead.',
    'Record the payment when the money is there.');

create trigger promo_codes_900_updated_at
  before update on public.promo_codes
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger promo_codes_900_version
  before update on public.promo_codes
  for each row
  when
    (((new.code is distinct from old.code) or (new.percent_off is distinct from old.percent_off) or (new.amount_off is
    distinct from old.amount_off) or (new.valid_from is distinct from old.valid_from) or
    (new.valid_until is distinct from old.valid_until) or (new.max_redemptions is distinct from old.max_redemptions) or
    (new.ticket_type_ids is distinct from old.ticket_type_ids) or (new.status is distinct from old.status)))
  execute function private.tg__count_version();

create trigger refunds_300_refunded_at
  before insert on public.refunds
  for each row
  when ((new.refunded_at > (now() + '1 day'::interval)))
  execute function
    private.tg__refuse_value('refunded_at', 'refunded_at is more than a day ahead.',
    'Record the refund when the money is sent.');

create trigger registrations_100_register
  instead of insert on public.registrations
  for each row
  execute function private.tg_registrations__register();

create trigger ticket_types_900_updated_at
  before update on public.ticket_types
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger ticket_types_900_version
  before update on public.ticket_types
  for each row
  when
    (((new.name is distinct from old.name) or (new.description is distinct from old.description) or (new.price is
    distinct from old.price) or (new.quantity is distinct from old.quantity) or
    (new.min_per_order is distinct from old.min_per_order) or (new.max_per_order is distinct from old.max_per_order) or
    (new.sales_start_at is distinct from old.sales_start_at) or (new.sales_end_at is distinct from old.sales_end_at) or
    (new.visibility is distinct from old.visibility) or (new.status is distinct from old.status) or
    (new."position" is distinct from old."position") or (new.external_id is distinct from old.external_id) or
    (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger undelivered_tickets_100_read_only
  instead of insert or delete or update on public.undelivered_tickets
  for each row
  execute function private.tg__refuse_write();

create trigger unpaid_orders_100_read_only
  instead of insert or delete or update on public.unpaid_orders
  for each row
  execute function private.tg__refuse_write();

create trigger waiting_list_entries_900_updated_at
  before update on public.waiting_list_entries
  for each row
  execute function private.tg__set_updated_at('email_lower');

create trigger waiting_list_entries_900_version
  before update on public.waiting_list_entries
  for each row
  when
    (((new.name is distinct from old.name) or (new.email is distinct from old.email) or (new.company is distinct from
    old.company) or (new.send_email is distinct from old.send_email) or (new.status is distinct from old.status) or
    (new.offered_at is distinct from old.offered_at) or (new.offer_expires_at is distinct from old.offer_expires_at) or
    (new.external_id is distinct from old.external_id) or (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger webhook_endpoints_900_updated_at
  before update on public.webhook_endpoints
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger webhook_endpoints_900_version
  before update on public.webhook_endpoints
  for each row
  when
    (((new.url is distinct from old.url) or (new.description is distinct from old.description) or (new.types is distinct
    from old.types) or (new.event_ids is distinct from old.event_ids) or (new.status is distinct from old.status)))
  execute function private.tg__count_version();

create policy events_delete_own on public.events
  for delete
  to scope_events_write
  using ((organisation_id = ( select private.current_organisation_id() as current_organisation_id)));

comment on column public.attendees.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled attendee gives it to whoever is registered under it by the API.';

comment on column public.events.currency is 'ISO 4217. All prices and orders of the event are in it. A change leaves the numbers of prices and discounts as they are: change them, too. Fixed once there is an order.';

comment on column public.events.online_url is 'Where it is to be followed on the Internet: http or https, without a user name or password.';

comment on column public.events.status is 'draft, published, then cancelled or completed; a completed one may be published again until its end. A draft without orders can be deleted.';

comment on column public.orders.amount_refunded is 'Sum of the refunds, not edited. What is due is total, less amount_paid, plus amount_refunded.';

comment on column public.orders.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled order gives it to one that is made under it by the API.';

comment on column public.payments.received_at is 'When the money was received; at most a day ahead.';

comment on column public.refunds.refunded_at is 'When the money was returned; at most a day ahead.';

comment on function api.announce_installation() is 'Announces the names in the caller''s token: { held }, whether the database belongs to another installation, where webhooks and e-mails are held.';

comment on function api.check_in_batch(uuid, jsonb, text, text) is 'Judges up to 500 offline scans in the order of scanned_at, each once: 200 with a verdict for each that it reached in time. 404 not_found; 422 validation_failed.';

comment on function api.complete_event(uuid, text, text) is 'Closes an event to further registrations, and its waiting list: 200. 404 not_found; 409 invalid_transition.';

comment on function api.delete_event(uuid, text, text) is 'Deletes a draft without orders, with its ticket types, promo codes, check-in points and waiting list: 200. 404 not_found; 409 in_use.';

comment on function api.import_attendees(uuid, jsonb, uuid, boolean, text, text) is 'Registers or updates up to 1000 guests of an event, matched by external_id, or by e-mail address and name, with a verdict for each that it reached in time: 200. A refused guest has the error of register_attendee or update_attendee, or cancelled. 404 not_found; 422 validation_failed, idempotency_key_reused.';

comment on function api.list_events(text, public.event_status, public.event_phase, timestamp
  with time zone, timestamp with time zone, text, public.event_sort, text, integer) is 'Events of the organisation, newest first or by start, by any of the filters: { data, has_more, next_cursor }.';

comment on function api.outbox_depth() is 'What is pending: [{ kind, owed, oldest_seconds, late_seconds, held }]. late_seconds is how long what is due has waited; held, whether the database belongs to another installation than the caller.';

comment on function api.publish_event(uuid, text, text) is 'Opens a draft event for registrations, or a completed one again until its end: 200. 404 not_found; 409 invalid_transition, event_not_publishable, event_ended.';

comment on function api.redeliver_webhooks(uuid, timestamp with time zone, timestamp
  with time zone, public.webhook_delivery_status, text, text) is 'Queues again what failed for a webhook endpoint since a time, and makes due what waits for its next attempt, at most 10,000: 200 with how many. 404 not_found; 409 webhook_endpoint_disabled.';

comment on table private.installations is 'Where deliveries are sent from: the Postgres cluster and the names of the installation. newcomers are names that announced themselves and are not known yet.';

comment on table public.attendees is 'The people who come. Cancel one by setting status to cancelled: this frees the place, and check-in no longer accepts the ticket. Only a cancelled one can be deleted.';

comment on table public.refunds is 'Money returned for orders that are paid or cancelled. Add a row to record a refund; refund_due ends when nothing is left to refund. What is returned for a ticket that stands is due again.';

comment on view public.arrivals is 'How many people came in, by check-in point (empty: the event as such), day and hour of the event''s time zone. Each person counts once a day at each point.';

comment on view public.registrations is 'Attendees with their orders. Add a row to register a guest: event, ticket type, name, e-mail, and payment_method invoice if it is to be paid.';

comment on view public.unpaid_orders is 'Orders of which something is due, the oldest first. paid is what was received and not returned.';

revoke all on function api.announce_installation() from public;

grant execute on function api.announce_installation() to courier;

revoke all on function api.delete_event(uuid, text, text) from public;

grant execute on function api.delete_event(uuid, text, text) to scope_events_write;

revoke all
  on function api.list_events(text, public.event_status, public.event_phase, timestamp with time zone, timestamp
    with time zone, text, public.event_sort, text, integer)
  from public;

grant execute
  on function api.list_events(text, public.event_status, public.event_phase, timestamp with time zone, timestamp
    with time zone, text, public.event_sort, text, integer)
  to scope_events_read;

revoke all on function private.after_start_cursor(text) from public;

grant execute on function private.after_start_cursor(text) to scope_events_read;

revoke all on function private.amount_due(public.orders) from public;

grant execute
  on function private.amount_due(public.orders)
  to authenticated, scope_attendees_write, scope_orders_read, scope_orders_write;

revoke all on function private.announced_names() from public;

revoke all on function private.attendee_of_guest(uuid, uuid, jsonb) from public;

grant execute on function private.attendee_of_guest(uuid, uuid, jsonb) to scope_attendees_write;

revoke all on function private.encode_start_cursor(private.start_position) from public;

grant execute on function private.encode_start_cursor(private.start_position) to scope_events_read;

revoke all on function private.error_of_guest(jsonb) from public;

grant execute on function private.error_of_guest(jsonb) to scope_attendees_write;

revoke all on function private.errors_of_guests(jsonb) from public;

grant execute on function private.errors_of_guests(jsonb) to scope_attendees_write;

revoke all on function private.event_phase(public.events) from public;

grant execute on function private.event_phase(public.events) to scope_events_read, scope_events_write;

revoke all
  on function private.find_events_by_start(public.event_status, timestamp with time zone, timestamp
    with time zone, public.event_phase, text[], private.start_position, integer)
  from public;

grant execute
  on function private.find_events_by_start(public.event_status, timestamp with time zone, timestamp
    with time zone, public.event_phase, text[], private.start_position, integer)
  to scope_events_read;

revoke all on function private.import_guests(uuid, uuid, uuid, boolean, jsonb[], json[]) from public;

grant execute
  on function private.import_guests(uuid, uuid, uuid, boolean, jsonb[], json[])
  to scope_attendees_write;

revoke all on function private.is_at_home(private.installations, text[]) from public;

revoke all on function private.is_currency(text) from public;

revoke all on function private.is_held() from public;

revoke all on function private.is_line(jsonb, integer) from public;

grant execute on function private.is_line(jsonb, integer) to scope_attendees_write;

revoke all on function private.is_time_up() from public;

grant execute on function private.is_time_up() to scope_attendees_write, scope_checkin_write;

revoke all on function private.is_web_url(text) from public;

revoke all on function private.limit_lock_waits() from public;

grant execute on function private.limit_lock_waits() to scope_attendees_write, scope_checkin_write;

revoke all on function private.lock_attendees_of_import(uuid, jsonb) from public;

grant execute on function private.lock_attendees_of_import(uuid, jsonb) to scope_attendees_write;

revoke all on function private.lock_guests(uuid, uuid, jsonb) from public;

grant execute on function private.lock_guests(uuid, uuid, jsonb) to scope_attendees_write;

revoke all on function private.notify_of_full_event(uuid) from public;

revoke all on function private.page(json[], integer, text[]) from public;

grant execute on function private.page(json[], integer, text[]) to api_key;

revoke all on function private.release_deliveries() from public;

revoke all on function private.tg__refuse_write() from public;

revoke all on function private.tg_attendees__assert_over() from public;

revoke all on function private.tg_events__delete() from public;

revoke all on function private.tg_events__notify_full() from public;

revoke all on function private.tg_registrations__register() from public;

grant delete on table public.events to scope_events_write;

revoke all on table public.arrivals from authenticated;

grant select on table public.arrivals to authenticated;

revoke all on table public.arrivals from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update on table public.arrivals to postgres;

revoke all on table public.registrations from authenticated;

grant insert, select on table public.registrations to authenticated;

revoke all on table public.unpaid_orders from authenticated;

grant select on table public.unpaid_orders to authenticated;

revoke all on table public.unpaid_orders from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.unpaid_orders
  to postgres;

-- The guard works payment_status out anew: what was returned for tickets that stand is due again.
update public.orders set status = status where status = 'completed' and amount_refunded > 0;
