-- delete and order events. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop trigger events_100_in_use on public.events;

drop trigger events_500_note_change on public.events;

drop function api.list_events(text, public.event_status, public.event_phase, timestamp with time zone, timestamp
  with time zone, text, text, integer);

drop function private.event_phase(timestamp with time zone, timestamp with time zone);

drop function private.page(json[], integer);

create type private.start_position as (
  starts_at timestamp with time zone,
  id uuid
);

create type public.event_sort as enum (
  'created_at',
  'starts_at'
);

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

create or replace function private.tg_events__delete()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if exists (select from public.orders o where o.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: it has orders.', hint => 'Cancel it instead: set its status to cancelled.'
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

create index events_organisation_id_status_starts_at_idx on public.events
  using btree (organisation_id, status, coalesce(starts_at, 'infinity'::timestamp with time zone), id);

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

create policy events_delete_own on public.events
  for delete
  to scope_events_write
  using ((organisation_id = ( select private.current_organisation_id() as current_organisation_id)));

comment on column public.events.status is 'draft, published, then cancelled or completed; a completed one may be published again until its end. A draft without orders can be deleted.';

comment on function api.complete_event(uuid, text, text) is 'Closes an event to further registrations, and its waiting list: 200. 404 not_found; 409 invalid_transition.';

comment on function api.delete_event(uuid, text, text) is 'Deletes a draft without orders, with its ticket types, promo codes, check-in points and waiting list: 200. 404 not_found; 409 in_use.';

comment on function api.list_events(text, public.event_status, public.event_phase, timestamp
  with time zone, timestamp with time zone, text, public.event_sort, text, integer) is 'Events of the organisation, newest first or by start, by any of the filters: { data, has_more, next_cursor }.';

comment on function api.publish_event(uuid, text, text) is 'Opens a draft event for registrations, or a completed one again until its end: 200. 404 not_found; 409 invalid_transition, event_not_publishable, event_ended.';

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

revoke all on function private.encode_start_cursor(private.start_position) from public;

grant execute on function private.encode_start_cursor(private.start_position) to scope_events_read;

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

revoke all on function private.page(json[], integer, text[]) from public;

grant execute on function private.page(json[], integer, text[]) to api_key;

revoke all on function private.tg_events__delete() from public;

grant delete on table public.events to scope_events_write;
