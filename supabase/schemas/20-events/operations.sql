-- Operations on events. The rules are in the triggers of 20-events/table.sql, so that they hold for Studio as well. Every change
-- of status goes through private.set_event_status.

create function private.event_matches(
  event public.events, starts_after timestamptz, starts_before timestamptz, phase public.event_phase, patterns text[]
) returns boolean
language plpgsql stable set search_path = ''
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
grant execute on function private.event_matches to scope_events_read;

-- Ids of the events of a page, newest first: see 00-ground/pages.sql. Dates, phase and search have no index: they are compared from the
-- newest on until the page is full, and an organisation has hundreds of events, not hundreds of thousands.
create function private.page_of_events(
  status public.event_status,
  starts_after timestamptz,
  starts_before timestamptz,
  phase public.event_phase,
  patterns text[],
  before uuid,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.event_status[] :=
    case when page_of_events.status is null then enum_range(null::public.event_status) else array[page_of_events.status] end;
begin
  return array(
    select f.id
    from unnest(v_statuses) s (status)
    cross join lateral (
      select e.id
      from public.events e
      where e.organisation_id = any (v_organisation_ids)
        and e.status = s.status
        and e.id < before
        and private.event_matches(e, starts_after, starts_before, phase, patterns)
      order by e.organisation_id desc, e.id desc
      limit size
    ) f
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_events to scope_events_read;

-- The same by start, those without one last.
create function private.page_of_events_by_start(
  status public.event_status,
  starts_after timestamptz,
  starts_before timestamptz,
  phase public.event_phase,
  patterns text[],
  after private.start_position,
  size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids uuid[] := array[private.current_organisation_id()];
  v_statuses public.event_status[] := case
    when page_of_events_by_start.status is null then enum_range(null::public.event_status)
    else array[page_of_events_by_start.status]
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
grant execute on function private.page_of_events_by_start to scope_events_read;

-- In which zone the times of what belongs to an event are said, for whoever may see that: any key of the organisation; and its name, for
-- whoever reads events. Security definer, for no key reads events by the mere right to see their orders, tickets or scans.
create function private.timezones_of(event_ids uuid[]) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_reads_events boolean := private.current_scopes() && '{events:read,events:write,checkin:write}';
begin
  return (
    select coalesce(json_object_agg(e.id, json_build_object('timezone', e.timezone, 'name', case when v_reads_events then e.name end)), '{}')
    from unnest(event_ids[1:100]) i (id)
    join public.events e on e.id = i.id
    where e.organisation_id = v_organisation_id
  );
end
$$;
grant execute on function private.timezones_of to api_key;

create function api.event_timezones(event_ids uuid[]) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return private.timezones_of(event_ids);
end
$$;
comment on function api.event_timezones is 'IANA time zones of events of the organisation, and their names: { id: { timezone, name } }, of at most 100.';
grant execute on function api.event_timezones to api_key;

create type public.event_sort as enum ('created_at', 'starts_at');

create function api.list_events(
  search text default null,
  status public.event_status default null,
  phase public.event_phase default null,
  starts_after timestamptz default null,
  starts_before timestamptz default null,
  external_id text default null,
  sort public.event_sort default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
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
    v_ids := private.page_of_events_by_start(
      list_events.status, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns, v_after, v_size + 1
    );
  else
    v_ids := private.page_of_events(
      list_events.status, list_events.starts_after, list_events.starts_before, list_events.phase, v_patterns, v_before, v_size + 1
    );
  end if;
  for v_event in
    select e.*
    from unnest(v_ids) with ordinality i (id, place)
    -- The fence: without it a page of events that were never analysed reads 881 pages of 8 kB, with it fewer than 800.
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
comment on function api.list_events is
  'Events of the organisation, newest first or by start, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_events to scope_events_read;

create function api.get_event(event_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = get_event.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return private.event_json(v_event);
end
$$;
comment on function api.get_event is 'One event. 404 not_found.';
grant execute on function api.get_event to scope_events_read;

-- The columns that a venue sets, by RFC 7396: a member that the object leaves out keeps its value, null clears it, and null
-- in place of the object clears all of them.
create function private.venue_columns(venue jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  if jsonb_typeof(venue) = 'object' then
    return (select coalesce(jsonb_object_agg('venue_' || m.key, m.value), '{}') from jsonb_each(venue) m);
  end if;
  return '{"venue_name": null, "venue_address": null, "venue_city": null, "venue_postcode": null, "venue_country": null}';
end
$$;
grant execute on function private.venue_columns to scope_events_write;

create function private.add_event(organisation_id uuid, fields jsonb) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_new public.events := jsonb_populate_record(null::public.events, fields || private.venue_columns(fields -> 'venue'));
begin
  insert into public.events (
    organisation_id, name, slug, description, guest_notes, starts_at, ends_at, timezone, locale,
    venue_name, venue_address, venue_city, venue_postcode, venue_country,
    online_url, capacity, waiting_list_offer_hours, guests_may, guests_may_until, registration_page, currency, payment_due_days, external_id,
    metadata
  )
  values (
    add_event.organisation_id, v_new.name, v_new.slug, v_new.description, coalesce(v_new.guest_notes, '{}'), v_new.starts_at, v_new.ends_at,
    coalesce(v_new.timezone, 'UTC'), coalesce(v_new.locale, 'en'),
    v_new.venue_name, v_new.venue_address, v_new.venue_city, v_new.venue_postcode, v_new.venue_country,
    v_new.online_url, v_new.capacity, coalesce(v_new.waiting_list_offer_hours, 24), coalesce(v_new.guests_may, '{}'),
    v_new.guests_may_until, coalesce(v_new.registration_page, 'off'), coalesce(v_new.currency, 'EUR'),
    v_new.payment_due_days, v_new.external_id, coalesce(v_new.metadata, '{}')
  )
  returning * into v_new;
  return v_new;
end
$$;
grant execute on function private.add_event to scope_events_write;

create function api.create_event(
  name text,
  slug text default null,
  description text default null,
  guest_notes jsonb default null,
  -- As written: see private.warning_of_offset.
  starts_at text default null,
  ends_at text default null,
  timezone text default null,
  locale public.locale default null,
  venue jsonb default null,
  online_url text default null,
  capacity integer default null,
  waiting_list_offer_hours integer default null,
  guests_may public.guest_act[] default null,
  guests_may_until timestamptz default null,
  registration_page public.registration_page default null,
  currency text default null,
  payment_due_days integer default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_event public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  v_event := private.add_event(private.current_organisation_id(), jsonb_build_object(
    'name', name, 'slug', slug, 'description', description, 'guest_notes', guest_notes, 'starts_at', starts_at, 'ends_at', ends_at, 'timezone', timezone,
    'locale', locale, 'venue', venue, 'online_url', online_url, 'capacity', capacity, 'waiting_list_offer_hours', waiting_list_offer_hours,
    'guests_may', guests_may, 'guests_may_until', guests_may_until, 'registration_page', registration_page,
    'currency', currency, 'payment_due_days', payment_due_days, 'external_id', external_id, 'metadata', metadata
  ));
  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 201, 'data', private.event_json(v_event)),
    private.warning_of_offset(jsonb_build_object('starts_at', starts_at, 'ends_at', ends_at), v_event.id)
  ));
end
$$;
comment on function api.create_event is 'Creates a draft event: 201. 409 already_exists (slug, external_id); 422 validation_failed.';
grant execute on function api.create_event to scope_events_write;

-- An absent key keeps its field, null clears it; the same holds for the members of the venue.
create function private.change_event("was" public.events, changes jsonb) returns public.events
language plpgsql volatile set search_path = ''
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
    guest_notes = coalesce(v_new.guest_notes, '{}'),
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
    guests_may = v_new.guests_may,
    guests_may_until = v_new.guests_may_until,
    registration_page = v_new.registration_page,
    currency = v_new.currency,
    payment_due_days = v_new.payment_due_days,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where e.id = "was".id
  returning * into v_new;
  return v_new;
end
$$;
grant execute on function private.change_event to scope_events_write;

create function api.update_event(
  event_id uuid,
  changes jsonb,
  notify public.notify default null,
  dry_run boolean default null,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null,
  message text default null
) returns json
language plpgsql volatile set search_path = ''
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
        'effect', private.effect_json(dry_run, private.affected_by_event(event_id), v_notice),
        'data', private.event_json(case when dry_run then v_event else v_new end)
      )
    end;
    v_outcome := private.with_warnings(
      v_outcome, variadic private.warning_of_offset(changes, event_id) || private.warnings_of_event(v_event, v_new)
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
comment on function api.update_event is
  'Changes fields of an event. Absent fields stay, null clears. On request it e-mails the attendees, or reports the effect without changing anything: 200. 404 not_found; 409 capacity_below_sold, event_has_orders, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_event to scope_events_write;

-- The only path from status to status; the guard decides which are allowed.
create function private.set_event_status(event_id uuid, status public.event_status) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
begin
  select e.* into v_event from public.events e where e.id = set_event_status.event_id for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  -- The guard lets Studio save a row unchanged; an operation that would change nothing is an error.
  if v_event.status = set_event_status.status then
    perform private.refuse_transition(v_event.status, set_event_status.status);
  end if;
  update public.events e set status = set_event_status.status where e.id = v_event.id returning * into v_event;
  return v_event;
end
$$;
grant execute on function private.set_event_status to scope_events_write;

create function api.publish_event(event_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', private.event_json(private.set_event_status(event_id, 'published'))
  ));
end
$$;
comment on function api.publish_event is
  'Opens a draft event for registrations, or a completed one again until its end: 200. 404 not_found; 409 invalid_transition, event_not_publishable, event_ended.';
grant execute on function api.publish_event to scope_events_write;

create function api.complete_event(event_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
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
  -- Before the event has begun a person confirms it: publishing it again does not bring the waiting list back.
  if v_event.starts_at > now() then
    perform private.assert_confirmed(
      'complete_event', jsonb_build_object('event_id', v_event.id, 'announced', private.announced(v_event)),
      json_build_object('waiting_list', v_waiting)
    );
  end if;
  return private.record_outcome(
    idempotency_key, request_fingerprint,
    private.with_warnings(json_build_object('status', 200, 'data', private.event_json(v_event)), v_warning)
  );
end
$$;
comment on function api.complete_event is
  'Closes an event to further registrations, and its waiting list: 200. 404 not_found; 409 invalid_transition.';
grant execute on function api.complete_event to scope_events_write;

-- Orders and attendees that a change of an event affects, and what its cancellation makes refundable. Security definer: an editing key may
-- not read them. Money only for keys that read it.
create function private.affected_by_event(event_id uuid, is_cancelled boolean default false) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_refund_due bigint := 0;
begin
  select e.* into v_event from public.events e where e.id = affected_by_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if is_cancelled then
    v_refund_due := (
      select coalesce(sum(o.amount_paid - o.amount_refunded - o.amount_retained - private.amount_refundable(o)), 0)
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
grant execute on function private.affected_by_event to scope_events_write;

create function api.unpublish_event(
  event_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_event public.events;
  v_new public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    select e.* into v_event from public.events e where e.id = unpublish_event.event_id for no key update;
    v_new := private.set_event_status(event_id, 'draft');
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(dry_run, private.affected_by_event(event_id)),
      'data', private.event_json(case when dry_run then v_event else v_new end)
    );
    perform private.undo_if_dry_run(dry_run);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.unpublish_event is
  'Returns an event without orders to draft, or reports the effect: 200. 404 not_found; 409 invalid_transition, event_has_orders.';
grant execute on function api.unpublish_event to scope_events_write;

-- The update of a larger event may take longer than a call may, 8 s: 25,000 tickets took 11.
create function api.cancel_event(
  event_id uuid,
  dry_run boolean default null,
  notify public.notify default null,
  idempotency_key text default null,
  request_fingerprint text default null,
  message text default null
) returns json
language plpgsql volatile set search_path = ''
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
comment on function api.cancel_event is
  'Cancels an event with its orders and tickets and, on request, e-mails its attendees and buyers; or reports the effect: 200. For more than 5,000 tickets it records the request: 202. 404 not_found; 409 invalid_transition.';
grant execute on function api.cancel_event to scope_events_write;

create function api.delete_event(event_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
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
comment on function api.delete_event is
  'Deletes a draft without orders, with its ticket types, promo codes, check-in points and waiting list: 200. 404 not_found; 409 in_use.';
grant execute on function api.delete_event to scope_events_write;
