-- installation. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

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
    set newcomers = array(select distinct n.name from unnest(i.newcomers || v_names) n (name))
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

comment on function api.announce_installation() is 'Announces the names in the caller''s token: { held }, whether the database belongs to another installation, where webhooks and e-mails are held.';

comment on function api.outbox_depth() is 'What is pending: [{ kind, owed, oldest_seconds, late_seconds, held }]. late_seconds is how long what is due has waited; held, whether the database belongs to another installation than the caller.';

comment on table private.installations is 'Where deliveries are sent from: the Postgres cluster and the names of the installation. newcomers are names that announced themselves and are not known yet.';

revoke all on function api.announce_installation() from public;

grant execute on function api.announce_installation() to courier;

revoke all on function private.announced_names() from public;

revoke all on function private.is_at_home(private.installations, text[]) from public;

revoke all on function private.is_held() from public;

revoke all on function private.release_deliveries() from public;
