-- stop scans in time. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

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

comment on function api.check_in_batch(uuid, jsonb, text, text) is 'Judges up to 500 offline scans in the order of scanned_at, each once: 200 with a verdict for each that it reached in time. 404 not_found; 422 validation_failed.';

revoke all on function private.is_time_up() from public;

grant execute on function private.is_time_up() to scope_attendees_write, scope_checkin_write;

revoke all on function private.limit_lock_waits() from public;

grant execute on function private.limit_lock_waits() to scope_attendees_write, scope_checkin_write;
