-- The log of requests: one line for each answered call of a key, so that a developer can tell why a call failed. The gateway writes lines in
-- batches, after the answers: a process that crashes loses those of its last two seconds, and busy organisations are cut off
-- (src/http/request-log.ts). Bodies, query values and parameters of paths are not in it.

create table private.requests (
  organisation_id uuid not null,
  id uuid not null default private.uuid_v7(),
  api_key_id uuid not null,
  source public.request_source not null,
  method text not null,
  route text,
  status integer not null,
  code text,
  param text,
  duration_ms integer not null,
  request_id text not null,
  idempotency_key text,
  created_at timestamptz not null,
  -- The one index by organisation: a second one would cost every line, and so few are kept that filters need none.
  constraint requests_pkey primary key (organisation_id, id),
  constraint requests_organisation_id_fkey foreign key (organisation_id) references public.organisations (id) on delete cascade
);
comment on table private.requests is 'Log of requests: the newest 20,000 of an organisation, for three days.';

-- For api.purge.
create index requests_created_at_idx on private.requests (created_at);

alter table private.requests enable row level security;
-- As the audit trail: who may see what other keys do needs events:write. Idempotency keys are whatever their caller chose.
create policy requests_select_own on private.requests for select to api_key
  using (
    organisation_id = (select private.current_organisation_id())
    and (api_key_id = (select private.current_api_key_id()) or (select 'events:write' = any (private.current_scopes())))
  );
grant select on private.requests to api_key;

-- Security definer: gateway may write no table.
create function api.record_requests(lines json) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  with added as (
    insert into private.requests (
      organisation_id, api_key_id, source, method, route, status, code, param, duration_ms, request_id, idempotency_key, created_at
    )
    select
      l.organisation_id, l.api_key_id, l.source, l.method, l.route, l.status, l.code, l.param, l.duration_ms, l.request_id,
      l.idempotency_key, l.created_at
    from json_populate_recordset(null::private.requests, lines) l
    -- One that was deleted meanwhile has no log, nor has one while it is deleted or emptied: the lines of the others do not wait for it.
    join public.organisations o on o.id = l.organisation_id
    -- Ids are made in this order, which is that of the list.
    order by l.created_at
    for key share of o skip locked
    returning organisation_id
  ),
  -- Of the twenty busiest: to count to 20,000 takes some milliseconds, and a quiet one is cut after three days.
  surplus as materialized (
    select o.organisation_id, (
      select k.id from private.requests k where k.organisation_id = o.organisation_id order by k.id desc offset 20000 limit 1
    ) as id
    from (select a.organisation_id from added a group by a.organisation_id order by count(*) desc limit 20) o
  )
  delete from private.requests r
  using surplus
  where r.organisation_id = surplus.organisation_id and r.id <= surplus.id;
end
$$;
comment on function api.record_requests is
  'Adds lines to the log of requests, in the order of their answers, and deletes all but the newest 20,000 of busy organisations.';
grant execute on function api.record_requests to gateway;

create function api.list_requests(
  status integer default null,
  failed boolean default null,
  route text default null,
  request_id text default null,
  created_after timestamptz default null,
  created_before timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_items json[];
begin
  v_items := array(
    select json_build_object(
      'object', 'request',
      'id', r.id,
      'request_id', r.request_id,
      'source', r.source,
      'method', r.method,
      'route', r.route,
      'status', r.status,
      'code', r.code,
      'param', r.param,
      'duration_ms', r.duration_ms,
      'api_key_id', r.api_key_id,
      'idempotency_key', r.idempotency_key,
      'created_at', private.rfc3339(r.created_at)
    )
    from private.requests r
    where r.id < v_before
      and (list_requests.status is null or r.status = list_requests.status)
      and (failed is null or (r.status >= 400) = failed)
      and (list_requests.route is null or r.route = list_requests.route)
      and (list_requests.request_id is null or r.request_id = list_requests.request_id)
      and (created_after is null or r.created_at >= created_after)
      and (created_before is null or r.created_at < created_before)
    order by r.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_requests is
  'Requests of the calling key, or with events:write those of its organisation, newest first: { data, has_more, next_cursor }.';
grant execute on function api.list_requests to api_key;
