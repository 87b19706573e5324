-- The cancellation of a large event: a call records the request, and the courier carries it out in one transaction, which may take minutes. Until
-- that is committed the event is what it was.

create table private.cancellations (
  event_id uuid not null,
  claims jsonb not null,
  notify public.notify,
  message text,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  constraint cancellations_pkey primary key (event_id),
  constraint cancellations_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade
);
comment on table private.cancellations is 'Large events waiting for the courier to cancel them, with the claims of the requesting key. Revoking the key afterwards does not withdraw the request.';
alter table private.cancellations enable row level security;

-- Records the request, once, and answers what it will do, as an outcome. A call that finds it recorded answers it as it was
-- asked for first. Security definer: no role may read or write requests.
create function private.cancel_later(
  event public.events, affected jsonb, dry_run boolean, notify public.notify, message text
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_recipients private.recipient[];
  v_notice jsonb;
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
  -- What private.notify_of_event will answer once it is cancelled.
  if notify <> 'nobody' then
    v_recipients := private.recipients_of_event(event, notify);
    v_notice := private.told_of(v_recipients) || jsonb_build_object('emails', cardinality(private.addressees(v_recipients)));
  end if;
  return json_build_object(
    'status', case when dry_run then 200 else 202 end,
    'effect', private.effect_json(dry_run, affected, v_notice),
    'data', private.event_json(event)
  );
end
$$;
grant execute on function private.cancel_later to scope_events_write;

-- Without a lease: what is being carried out has its event locked, and is not claimed; what failed comes again after a pause that doubles.
create function api.claim_cancellations("limit" integer) returns json
language plpgsql volatile security definer set search_path = ''
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
comment on function api.claim_cancellations is 'Large events to cancel now: [{ id }].';
grant execute on function api.claim_cancellations to courier;

-- As the key that asked, so that the audit trail names it. Where somebody has cancelled the event by hand since, guests are told as was asked;
-- where it was completed, nothing is done. The Data API gives it the time of its setting, not that of the role.
create function api.carry_out_cancellation(event_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' set statement_timeout = '10min'
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
comment on function api.carry_out_cancellation is
  'Cancels a large event as requested, with its orders and tickets, and e-mails its guests. false: done already, or in progress.';
grant execute on function api.carry_out_cancellation to courier;
