-- Check-in operations: the log, checking in one ticket or a batch of offline scans, and undo.

-- An attendee as the door sees them: without e-mail address and ticket code.
create function private.door_attendee_json(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'door_attendee',
      'id', a.id,
      'event_id', a.event_id,
      'name', a.name,
      'company', a.company,
      'status', a.status,
      'ticket_type', json_build_object('object', 'ticket_type', 'id', t.id, 'name', t.name),
      'checked_in_at', private.rfc3339(a.checked_in_at),
      'answers', private.answers_at_door(a.id)
    )
    from public.attendees a
    join public.ticket_types t on t.id = a.ticket_type_id
    where a.id = door_attendee_json.attendee_id
  );
end
$$;
grant execute on function private.door_attendee_json to scope_checkin_write, scope_attendees_read;

create function private.check_in_json(check_in public.check_ins) returns json
language plpgsql stable set search_path = ''
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
grant execute on function private.check_in_json to scope_checkin_write, scope_attendees_read;

-- The outcome of a scan. One that is rejected has the message that is read at the door: the transaction commits, for the scan is
-- logged; the status is not 2xx, so that a client that checks only the status admits no guest.
create function private.check_in_outcome(check_in public.check_ins) returns json
language plpgsql stable set search_path = ''
as $$
declare
  c_ticket constant text := case when check_in.code is null then 'attendee_id' else 'code' end;
begin
  if check_in.result = 'accepted' then
    return private.with_warnings(
      json_build_object('status', 200, 'data', private.check_in_json(check_in)),
      private.warning_of_early_scan(check_in.event_id, check_in.scanned_at)
    );
  end if;
  return (
    select json_build_object(
      'status', case check_in.reason when 'not_found' then 404 else 409 end,
      'error', json_build_object(
        'code', r.reason, 'message', r.message, 'param', r.param,
        'details', json_build_object('check_in', private.check_in_json(check_in)), 'hint', r.hint
      )
    )
    from (
      values
        ('not_found', c_ticket,
          case
            when c_ticket <> 'code' then 'No attendee has this id.'
            when private.code_form(check_in.code) like 'TEST-%' then 'No ticket here has this code, which is of a test organisation.'
            else 'No ticket has this code.'
          end,
          'Scan again, or look the person up by name: find_attendees.'),
        ('wrong_event', c_ticket, 'This ticket is for another event.', 'details.check_in.attendee.event_id is the event the ticket is for.'),
        ('already_checked_in', c_ticket, 'This ticket is already checked in.', 'details.check_in.earlier has the time and place of the entry.'),
        ('cancelled', c_ticket, 'This ticket was cancelled.', 'The person needs a new ticket.'),
        ('unpaid', c_ticket, 'This ticket is not paid for yet.', 'Record the payment of the order first.'),
        ('event_cancelled', 'event_id', 'The event was cancelled.', 'No ticket of this event can be checked in.'),
        ('not_admitted_here', c_ticket, 'This ticket is not for this check-in point.', 'The check-in point lists the ticket types that it admits.'),
        ('point_closed', 'check_in_point_id', 'This check-in point is not open.', 'Look at its opens_at, closes_at and status.'),
        ('not_inside', c_ticket, 'This person has not come in here.', 'There is no entry to end. Scan an entry to let them in.')
    ) r (reason, param, message, hint)
    where r.reason = check_in.reason::text
  );
end
$$;
grant execute on function private.check_in_outcome to scope_checkin_write;

-- One way in: logs scans, given as JSON has them, in their order; the triggers of rules.sql judge each. Answers the rows in the same order.
create function private.log_scans(scans jsonb[]) returns public.check_ins[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_check_ins public.check_ins[];
begin
  with added as (
    insert into public.check_ins as c (event_id, check_in_point_id, code, attendee_id, direction, device, scan_id, admitted, scanned_at)
    select
      s.event_id, s.check_in_point_id, s.code, s.attendee_id, coalesce(s.direction, 'entry'), s.device, s.scan_id, s.admitted,
      coalesce(s.scanned_at, now())
    from unnest(scans) with ordinality g (scan, place)
    cross join lateral jsonb_populate_record(null::public.check_ins, g.scan) s
    order by g.place
    returning c as check_in
  )
  select array_agg(a.check_in) into v_check_ins from added a;
  return v_check_ins;
end
$$;
grant execute on function private.log_scans to scope_checkin_write;

-- Calls of check_in, with an outcome for each. What only a call that is alone can be answered raises: see 00-ground/batches.sql.
create function private.check_in_calls(calls jsonb[]) returns json[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_replayed json;
  v_check_ins public.check_ins[];
begin
  if cardinality(calls) = 1 then
    v_replayed := private.replay_outcome(calls[1] ->> 'idempotency_key', calls[1] ->> 'request_fingerprint');
    if v_replayed is not null then
      return array[v_replayed];
    end if;
  elsif (
    select count(c ->> 'idempotency_key') <> count(distinct c ->> 'idempotency_key')
      or bool_or(private.replay_outcome(c ->> 'idempotency_key', c ->> 'request_fingerprint') is not null)
    from unnest(calls) c
  ) then
    raise exception 'divide';
  end if;

  v_check_ins := private.log_scans(calls);
  -- The attendee of an outcome is read below, and would show what a later scan of the same ticket did.
  if cardinality(calls) > 1 and (select count(c.attendee_id) <> count(distinct c.attendee_id) from unnest(v_check_ins) c) then
    raise exception 'divide';
  end if;
  return array(
    select private.record_outcome(
      g.call ->> 'idempotency_key', g.call ->> 'request_fingerprint', private.check_in_outcome(v_check_ins[g.place])
    )
    from unnest(calls) with ordinality g (call, place)
    order by g.place
  );
end
$$;
grant execute on function private.check_in_calls to scope_checkin_write;

create function api.check_in(
  event_id uuid,
  code text default null,
  attendee_id uuid default null,
  device text default null,
  check_in_point_id uuid default null,
  direction public.check_in_direction default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
begin
  return (private.check_in_calls(array[jsonb_build_object(
    'event_id', event_id, 'code', code, 'attendee_id', attendee_id, 'device', device, 'check_in_point_id', check_in_point_id,
    'direction', direction, 'idempotency_key', idempotency_key, 'request_fingerprint', request_fingerprint
  )]))[1];
end
$$;
comment on function api.check_in is
  'Checks a ticket in, by its code or by attendee_id: 200 with the check-in. 404 not_found; 409 wrong_event, already_checked_in, cancelled, unpaid, event_cancelled, not_admitted_here, point_closed, not_inside, each logged and with the check-in in details; 422 validation_failed.';
grant execute on function api.check_in to scope_checkin_write;

-- A cancellation or a payment of an order locks the order, and then its attendees in any order. So scans that come together, which lock many
-- attendees, take the event locks and the orders first, as everywhere, and then all their attendees in the order of their ids, before the
-- first is judged. Security definer: a key with checkin:write has no right to orders.
create function private.lock_tickets(scans jsonb[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_codes text[] := array(select private.code_form(s ->> 'code') from unnest(scans) s);
  v_attendee_ids uuid[] := array(
    select a.id from public.attendees a where a.ticket_code = any (v_codes) and a.organisation_id is not distinct from v_organisation_id
  ) || array(select (s ->> 'attendee_id')::uuid from unnest(scans) s where s ->> 'attendee_id' is not null);
begin
  perform private.lock_event_shared(e.id)
  from public.events e
  where e.id = any (array(select (s ->> 'event_id')::uuid from unnest(scans) s)) and e.organisation_id is not distinct from v_organisation_id
  order by e.id;
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
grant execute on function private.lock_tickets to scope_checkin_write;

-- What was made of uploaded scans, of which these were known before, and for how many there was no time.
create function private.check_in_batch_outcome(event_id uuid, scans jsonb[], known_ids text[], remaining integer) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_results json;
  v_accepted integer;
  v_first_at timestamptz;
begin
  select
    json_agg(
      json_build_object(
        'scan_id', c.scan_id,
        'replayed', c.scan_id = any (known_ids),
        'counted_on_arrival', c.scanned_at = c.created_at,
        'check_in', private.check_in_json(row(c.*)::public.check_ins)
      )
      order by g.place
    ),
    count(*) filter (where c.result = 'accepted'),
    min(c.scanned_at) filter (where c.result = 'accepted')
  into v_results, v_accepted, v_first_at
  from unnest(scans) with ordinality g (scan, place)
  -- One look-up for each under any plan.
  cross join lateral (
    select c.* from public.check_ins c where c.event_id = check_in_batch_outcome.event_id and c.scan_id = g.scan ->> 'scan_id' limit 1
  ) c;
  return private.with_warnings(
    json_build_object('status', 200, 'data', json_build_object(
      'object', 'check_in_batch',
      'event_id', event_id,
      'accepted', v_accepted,
      'rejected', json_array_length(v_results) - v_accepted,
      'remaining', remaining,
      'results', v_results
    )),
    private.warning_of_early_scan(event_id, v_first_at)
  );
end
$$;
grant execute on function private.check_in_batch_outcome to scope_checkin_write;

-- Scans of an offline scanner, judged in the order in which they were made. Each has a scan_id given by the scanner; a known
-- one is answered again, so the same batch may be sent until it arrives. In parts, until all are judged or the time is up.
create function api.check_in_batch(
  event_id uuid,
  scans jsonb,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  c_part constant integer := 50;
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_scans jsonb[];
  v_known_ids text[];
  v_judged integer := 0;
begin
  if v_outcome is not null then
    return v_outcome;
  elsif not exists (select from public.events e where e.id = check_in_batch.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  v_scans := array(
    select s || jsonb_build_object('event_id', event_id)
    from jsonb_array_elements(scans) s
    order by (s ->> 'scanned_at')::timestamptz, s ->> 'scan_id'
  );

  -- One batch of an event at a time: no other may add a scan between the look-up and the insert.
  perform private.limit_lock_waits();
  perform pg_advisory_xact_lock(3, hashtext(check_in_batch.event_id::text));
  -- Whoever waited long does one part, and makes way.
  if private.is_time_up() then
    v_scans := v_scans[:c_part];
  end if;
  perform private.limit_lock_waits();
  perform private.lock_tickets(v_scans);
  v_known_ids := array(
    select c.scan_id
    from public.check_ins c
    where c.event_id = check_in_batch.event_id and c.scan_id = any (array(select s ->> 'scan_id' from unnest(v_scans) s))
  );

  loop
    perform private.log_scans(array(
      select g.scan
      from unnest(v_scans[v_judged + 1:v_judged + c_part]) with ordinality g (scan, place)
      where g.scan ->> 'scan_id' <> all (v_known_ids)
      order by g.place
    ));
    v_judged := least(v_judged + c_part, cardinality(v_scans));
    exit when v_judged = cardinality(v_scans) or private.is_time_up();
  end loop;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    private.check_in_batch_outcome(event_id, v_scans[:v_judged], v_known_ids, jsonb_array_length(scans) - v_judged)
  );
end
$$;
comment on function api.check_in_batch is
  'Processes up to 500 offline scans in the order of scanned_at, each once: 200 with a result for each scan it reached in time. 404 not_found; 422 validation_failed.';
grant execute on function api.check_in_batch to scope_checkin_write;

create function api.undo_check_in(
  check_in_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_check_in public.check_ins;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  -- The attendee before the scan, as an exit does that ends an entry.
  perform private.lock_tickets(array(
    select to_jsonb(c) - 'code' from public.check_ins c where c.id = undo_check_in.check_in_id
  ));
  update public.check_ins c set undone_at = now() where c.id = undo_check_in.check_in_id
  returning * into v_check_in;
  if not found then
    perform private.refuse_not_found('check_in_id');
  end if;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 200, 'data', private.check_in_json(v_check_in))
  );
end
$$;
comment on function api.undo_check_in is
  'Undoes an accepted check-in, so that the ticket can be scanned again: 200. 404 not_found; 409 check_in_not_accepted, check_in_already_undone, already_checked_in (for an exit followed by another entry).';
grant execute on function api.undo_check_in to scope_checkin_write;

create function api.check_in_many(calls jsonb) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_calls jsonb[] := private.calls_of_batch(calls);
begin
  perform private.lock_tickets(v_calls);
  return to_json(private.answer_calls('check_in_calls', v_calls));
end
$$;
comment on function api.check_in_many is
  'Calls of check_in by one key, as one: [{ outcome } | { error: { code, message, details, hint } } | {}]. {}: send this one on its own. For the gateway.';
grant execute on function api.check_in_many to scope_checkin_write;

-- Ids of the check-ins of a page, newest first: see 00-ground/pages.sql.
create function private.page_of_check_ins(
  attendee_id uuid, event_id uuid, result public.check_in_result, before uuid, size integer
) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_event_id uuid := page_of_check_ins.event_id;
  v_results public.check_in_result[] :=
    case when page_of_check_ins.result is null then enum_range(null::public.check_in_result) else array[page_of_check_ins.result] end;
begin
  if page_of_check_ins.attendee_id is not null then
    return array(
      select f.id
      from (select c.* from public.check_ins c where c.attendee_id = page_of_check_ins.attendee_id offset 0) f
      where f.organisation_id = v_organisation_id and f.result = any (v_results) and f.id < before
        and (v_event_id is null or f.event_id = v_event_id)
      order by f.id desc
      limit size
    );
  elsif v_event_id is not null and not exists (select from public.events e where e.id = v_event_id and e.organisation_id = v_organisation_id) then
    return '{}';
  end if;
  return array(
    select f.id
    from unnest(v_results) r (result)
    cross join lateral (
      (
        select c.id from public.check_ins c
        where v_event_id is null and c.organisation_id = v_organisation_id and c.result = r.result and c.id < before
        order by c.id desc
        limit size
      )
      union all
      (
        select c.id from public.check_ins c
        where c.event_id = v_event_id and c.result = r.result and c.id < before
        order by c.id desc
        limit size
      )
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_check_ins to scope_attendees_read;

create function api.list_check_ins(
  event_id uuid default null,
  attendee_id uuid default null,
  result public.check_in_result default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
begin
  return private.page(
    array(
      select private.check_in_json(c)
      from unnest(private.page_of_check_ins(
        list_check_ins.attendee_id, list_check_ins.event_id, list_check_ins.result, private.before_cursor(cursor), v_size + 1
      )) i (id)
      join public.check_ins c on c.id = i.id
      order by c.id desc
    ),
    v_size
  );
end
$$;
comment on function api.list_check_ins is 'Check-in log, newest first, including rejected scans: { data, has_more, next_cursor }.';
grant execute on function api.list_check_ins to scope_attendees_read;

-- Ids of the attendees of a page, newest first, each word of the search being in their name, their company or the reference of
-- their order: neither e-mail addresses nor external_ids count here, so that no search tells one. Security definer: a key with
-- checkin:write has no right to orders.
create function private.page_of_door_attendees(event_id uuid, search text, before uuid, size integer) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return private.search_attendees(
    private.search_patterns(search), E'\t', page_of_door_attendees.event_id, before => page_of_door_attendees.before, size => page_of_door_attendees.size
  );
end
$$;
grant execute on function private.page_of_door_attendees to scope_checkin_write;

create function api.find_attendees(
  event_id uuid, search text, cursor text default null, "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := least(private.page_size("limit"), 50);
begin
  if not exists (select from public.events e where e.id = find_attendees.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.page(
    array(
      select private.door_attendee_json(f.id)
      from unnest(
        private.page_of_door_attendees(find_attendees.event_id, search, private.before_cursor(cursor), v_size + 1)
      ) with ordinality f (id, place)
      order by f.place
    ),
    v_size
  );
end
$$;
comment on function api.find_attendees is
  'Attendees of an event by parts of name, company or order reference, newest first: { data, has_more, next_cursor }. 404 not_found; 422 validation_failed.';
grant execute on function api.find_attendees to scope_checkin_write;
