-- Check-in points, and the operations on them: gates, days and workshops of an event, each of which admits a ticket by a rule of its own.
-- What the rule means for a scan is in rules.sql.

create type public.check_in_admission as enum ('once', 'once_per_day', 're_entry');
create type public.check_in_point_status as enum ('active', 'archived');

create table public.check_in_points (
  name text not null,
  event_id uuid not null,
  status public.check_in_point_status not null default 'active',
  admission public.check_in_admission not null default 'once',
  opens_at timestamptz,
  closes_at timestamptz,
  ticket_type_ids uuid[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  constraint check_in_points_pkey primary key (id),
  constraint check_in_points_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint check_in_points_name_is_one_line check (private.is_one_line(name, 200)),
  constraint check_in_points_ticket_type_ids_are_bounded check (cardinality(ticket_type_ids) <= 100),
  constraint check_in_points_opens_at_and_closes_at_are_finite check (
    opens_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and closes_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint check_in_points_closes_at_is_after_opens_at check (closes_at > opens_at)
);
comment on table public.check_in_points is 'Places where tickets are scanned, such as gates, days and workshops. Archive one to close it permanently.';
comment on column public.check_in_points.name is 'Name for people.';
comment on column public.check_in_points.status is 'active or archived. An archived point admits nobody.';
comment on column public.check_in_points.admission is 'once; once_per_day, in the time zone of the event; or re_entry: an exit scan lets the ticket in again. Fixed once there are scans.';
comment on column public.check_in_points.opens_at is 'Earlier scans are rejected. Empty: always open before closes_at.';
comment on column public.check_in_points.closes_at is 'Scans from this time on are rejected. Empty: no closing time.';
comment on column public.check_in_points.ticket_type_ids is 'Ticket types that it admits, up to 100. Empty: all of the event.';

create index check_in_points_event_id_id_idx on public.check_in_points (event_id, id);

comment on constraint check_in_points_name_is_one_line on public.check_in_points is
  'A name is one line of 1 to 200 characters. Write at least one letter, and no line breaks.';
comment on constraint check_in_points_closes_at_is_after_opens_at on public.check_in_points is
  'A check-in point must close after it opens. Change opens_at and closes_at together.';

create function private.tg_check_in_points__assert_event() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if not exists (select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id) then
    perform private.refuse_not_found('event_id');
  -- The door list has all of them on each page.
  elsif (select count(*) from public.check_in_points p where p.event_id = new.event_id) >= 100 then
    perform private.refuse_value(
      'event_id', 'An event has at most 100 check-in points.', 'Delete one without scans, or change one.', "row" => to_jsonb(new)
    );
  end if;
  return new;
end
$$;

-- Acceptances are unique by a key that the admission determines. Scans hold the point `for key share` while they are judged.
-- Security definer: whoever edits a point may not read the scans.
create function private.tg_check_in_points__assert_unused() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1 from public.check_in_points p where p.id = old.id for update;
  if exists (select from public.check_ins c where c.check_in_point_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'This check-in point has scans.', case tg_op when 'UPDATE' then 'admission' else 'check_in_point_id' end,
      hint => case tg_op
        when 'UPDATE' then 'Its admission rule is fixed. Archive it and create another.'
        else 'Archive it instead: set its status to archived.'
      end
    );
  end if;
  return case tg_op when 'UPDATE' then new else old end;
end
$$;

select private.keep_table('public.check_in_points', filled => '{organisation_id}', fixed => '{organisation_id,event_id}', versioned => true,
  of_event => true);
create trigger check_in_points_100_event before insert on public.check_in_points
  for each row execute function private.tg_check_in_points__assert_event();
create trigger check_in_points_100_in_use before delete on public.check_in_points
  for each row execute function private.tg_check_in_points__assert_unused();
create trigger check_in_points_200_admission before update on public.check_in_points
  for each row when (new.admission <> old.admission) execute function private.tg_check_in_points__assert_unused();

create policy check_in_points_select_own on public.check_in_points for select
  to scope_events_read, scope_events_write, scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_insert_own on public.check_in_points for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_update_own on public.check_in_points for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_delete_own on public.check_in_points for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy check_in_points_select_membership on public.check_in_points for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy check_in_points_insert_membership on public.check_in_points for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy check_in_points_update_membership on public.check_in_points for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.check_in_points to scope_events_read, scope_events_write, authenticated;
grant select (id, organisation_id, name) on public.check_in_points to scope_attendees_read;
grant insert (organisation_id, event_id, name, ticket_type_ids, opens_at, closes_at, admission, status)
  on public.check_in_points to scope_events_write, authenticated;
grant update (name, ticket_type_ids, opens_at, closes_at, admission, status)
  on public.check_in_points to scope_events_write, authenticated;
grant delete on public.check_in_points to scope_events_write;

create function private.check_in_point_json(point public.check_in_points) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'check_in_point',
    'id', point.id,
    'event_id', point.event_id,
    'name', point.name,
    'ticket_type_ids', point.ticket_type_ids,
    'opens_at', private.rfc3339(point.opens_at),
    'closes_at', private.rfc3339(point.closes_at),
    'admission', point.admission,
    'status', point.status,
    'version', point.version,
    'created_at', private.rfc3339(point.created_at),
    'updated_at', private.rfc3339(point.updated_at)
  );
end
$$;
grant execute on function private.check_in_point_json to scope_events_read, scope_events_write;

create function api.list_check_in_points(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_after uuid := coalesce(private.decode_cursor(cursor), '00000000-0000-0000-0000-000000000000');
begin
  if not exists (select from public.events e where e.id = list_check_in_points.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  return private.page(
    array(
      select private.check_in_point_json(p)
      from public.check_in_points p
      where p.event_id = list_check_in_points.event_id and p.id > v_after
      order by p.id
      limit v_size + 1
    ),
    v_size
  );
end
$$;
comment on function api.list_check_in_points is
  'Check-in points of an event, the oldest first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_check_in_points to scope_events_read;

create function api.get_check_in_point(check_in_point_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_point public.check_in_points;
begin
  select p.* into v_point from public.check_in_points p where p.id = get_check_in_point.check_in_point_id;
  if not found then
    perform private.refuse_not_found('check_in_point_id');
  end if;
  return private.check_in_point_json(v_point);
end
$$;
comment on function api.get_check_in_point is 'One check-in point. 404 not_found.';
grant execute on function api.get_check_in_point to scope_events_read;

create function api.create_check_in_point(
  event_id uuid,
  name text,
  ticket_type_ids uuid[] default null,
  -- As written: see private.warning_of_offset.
  opens_at text default null,
  closes_at text default null,
  admission public.check_in_admission default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_point public.check_in_points;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_check_in_point.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.check_in_points (organisation_id, event_id, name, ticket_type_ids, opens_at, closes_at, admission)
  values (
    v_organisation_id, create_check_in_point.event_id, create_check_in_point.name, coalesce(create_check_in_point.ticket_type_ids, '{}'),
    create_check_in_point.opens_at::timestamptz, create_check_in_point.closes_at::timestamptz, coalesce(create_check_in_point.admission, 'once')
  )
  returning * into v_point;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 201, 'data', private.check_in_point_json(v_point)),
    private.warning_of_offset(jsonb_build_object('opens_at', opens_at, 'closes_at', closes_at), v_point.event_id)
  ));
end
$$;
comment on function api.create_check_in_point is 'Adds a check-in point to an event: 201. 404 not_found; 422 validation_failed.';
grant execute on function api.create_check_in_point to scope_events_write;

create function api.update_check_in_point(
  check_in_point_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_point public.check_in_points;
  v_new public.check_in_points;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select p.* into v_point from public.check_in_points p where p.id = update_check_in_point.check_in_point_id for no key update;
  if not found then
    perform private.refuse_not_found('check_in_point_id');
  end if;
  perform private.assert_version(v_point.version, if_version);

  v_new := jsonb_populate_record(v_point, changes);
  update public.check_in_points p set
    name = v_new.name,
    ticket_type_ids = v_new.ticket_type_ids,
    opens_at = v_new.opens_at,
    closes_at = v_new.closes_at,
    admission = v_new.admission,
    status = v_new.status
  where p.id = v_point.id
  returning * into v_point;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 200, 'data', private.check_in_point_json(v_point)),
    private.warning_of_offset(changes, v_point.event_id)
  ));
end
$$;
comment on function api.update_check_in_point is
  'Changes fields of a check-in point (status archived closes it permanently): 200. 404 not_found; 409 in_use; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_check_in_point to scope_events_write;

create function api.delete_check_in_point(
  check_in_point_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  delete from public.check_in_points p where p.id = delete_check_in_point.check_in_point_id;
  if not found then
    perform private.refuse_not_found('check_in_point_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'check_in_point', 'id', check_in_point_id, 'deleted', true)
  ));
end
$$;
comment on function api.delete_check_in_point is 'Deletes a check-in point without scans: 200. 404 not_found; 409 in_use.';
grant execute on function api.delete_check_in_point to scope_events_write;
