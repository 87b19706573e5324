-- apply_event: an event as it is to be, with its ticket types, promo codes and check-in points, in one body. A plan is made by doing
-- everything and undoing it, so plan and act cannot differ, and the rules are those of the tables. public.copy_event and
-- public.move_event do the same by hand.

create table private.event_plans (
  id text not null default lower(private.random_code(10)),
  organisation_id uuid not null,
  family_id uuid not null,
  arguments jsonb not null,
  event_id uuid,
  source_id uuid,
  read jsonb not null,
  steps_digest text not null,
  refusals integer not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '10 minutes',
  applied_at timestamptz,
  constraint event_plans_pkey primary key (id),
  constraint event_plans_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);
comment on table private.event_plans is 'Plans of apply_event, kept for ten minutes for the family of API keys that asked. At most 50 for each family.';
comment on column private.event_plans.read is 'Versions of the objects that the plan was made from, by kind.';
create index event_plans_organisation_id_idx on private.event_plans (organisation_id, created_at);
create index event_plans_expires_at_idx on private.event_plans (expires_at);
alter table private.event_plans enable row level security;

-- All ways in which a plan cannot be applied have one code; details.reason tells them apart.
create function private.refuse_plan(reason text, message text, details jsonb default '{}') returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'plan_outdated', message, 'plan_id', jsonb_build_object('reason', reason) || details,
    case reason
      when 'applied' then 'The plan was carried out. Read the event to see the result.'
      when 'refused' then 'Correct the refused steps, and leave out plan_id for a new plan.'
      when 'arguments' then 'Send plan_id alone or with the same arguments. Leave out plan_id for a new plan.'
      else 'Leave out plan_id and review the new plan.'
    end
  );
end
$$;
grant execute on function private.refuse_plan to scope_events_write;

-- The plan that the arguments ask for. Without an event it is the one with the external_id or the slug that is to be, else a new one.
create function private.new_event_plan(arguments jsonb) returns private.event_plans
language plpgsql volatile set search_path = ''
as $$
declare
  v_plan private.event_plans;
  v_ids uuid[];
begin
  if arguments = '{}' then
    perform private.refuse_value('changes', 'There is nothing to plan.', 'Send changes, a list, move or copy_of.');
  elsif arguments ?& '{event,copy_of}' then
    perform private.refuse_value('event', 'A copy is a new event.', 'Leave out event or copy_of.');
  elsif arguments ? 'copy_of' then
    v_plan.source_id := private.resolve_name('event', arguments ->> 'copy_of', null, 'copy_of');
  elsif arguments ? 'event' then
    v_plan.event_id := private.resolve_name('event', arguments ->> 'event', null, 'event');
  else
    v_ids := array(
      select e.id
      from public.events e
      where e.organisation_id = private.current_organisation_id()
        and (e.external_id = arguments #>> '{changes,external_id}' or e.slug = arguments #>> '{changes,slug}')
    );
    if cardinality(v_ids) > 1 then
      perform private.refuse_ambiguous('event', to_jsonb(v_ids));
    end if;
    v_plan.event_id := v_ids[1];
  end if;
  v_plan.arguments := arguments;
  return v_plan;
end
$$;
grant execute on function private.new_event_plan to scope_events_write;

-- Keeps a new plan, and drops the oldest ones of the family; or that it is applied. Security definer, as what opens one: plans are reached by
-- these only.
create function private.keep_event_plan(plan private.event_plans, result jsonb) returns private.event_plans
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id constant uuid := private.current_organisation_id();
  v_family_id constant uuid := (private.claims() ->> 'family_id')::uuid;
  v_most constant integer := 50;
begin
  if plan.id is not null then
    update private.event_plans p set applied_at = now(), event_id = (result #>> '{event,id}')::uuid
    where p.id = plan.id and p.family_id = v_family_id;
    return plan;
  end if;
  delete from private.event_plans p
  where p.id in (
    select o.id from private.event_plans o
    where o.organisation_id = v_organisation_id and o.family_id = v_family_id
    order by o.applied_at is not null, o.created_at desc, o.id
    offset v_most - 1
    for update skip locked
  );
  insert into private.event_plans (organisation_id, family_id, arguments, event_id, source_id, read, steps_digest, refusals)
  values (
    v_organisation_id, v_family_id, plan.arguments, plan.event_id, plan.source_id, result -> 'read', result ->> 'steps_digest',
    (result ->> 'refusals')::integer
  )
  returning * into plan;
  return plan;
end
$$;
grant execute on function private.keep_event_plan to scope_events_write;

-- The plan, if it may be applied; locked, so that of two that apply it one finds it applied. `arguments` are those sent beside its id.
create function private.open_event_plan(plan_id text, arguments jsonb) returns private.event_plans
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_plan private.event_plans;
  v_differing text[];
begin
  select p.* into v_plan
  from private.event_plans p
  where p.id = plan_id
    and p.organisation_id = private.current_organisation_id()
    and p.family_id = (private.claims() ->> 'family_id')::uuid
  for update;
  if not found then
    perform private.refuse_plan('unknown', 'This API key has no such plan. Plans are kept for ten minutes.');
  elsif v_plan.applied_at is not null then
    perform private.refuse_plan('applied', 'The plan was applied already.', jsonb_build_object('event_id', v_plan.event_id));
  elsif v_plan.expires_at <= now() then
    perform private.refuse_plan(
      'expired', 'The plan is older than ten minutes.', jsonb_build_object('expires_at', private.rfc3339(v_plan.expires_at))
    );
  end if;
  -- Those of the plan alone go without saying; an argument that is left out would be one that differs.
  if open_event_plan.arguments <> '{}' then
    v_differing := array(
      select coalesce(p.key, s.key)
      from jsonb_each(v_plan.arguments) p
      full join jsonb_each(open_event_plan.arguments) s using (key)
      where p.value is distinct from s.value
      order by 1
    );
    if v_differing <> '{}' then
      perform private.refuse_plan(
        'arguments', 'The arguments differ from those of the plan.', jsonb_build_object('arguments', v_differing)
      );
    end if;
  end if;
  if v_plan.refusals > 0 then
    perform private.refuse_plan('refused', 'The plan has refused steps, so it cannot be applied.');
  end if;
  return v_plan;
end
$$;
grant execute on function private.open_event_plan to scope_events_write;

-- Refuses what would be done if it is not what the plan said.
create function private.assert_as_planned(plan private.event_plans, result jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_changed text[] := array(
    select r.key from jsonb_each(plan.read) r where r.value is distinct from result -> 'read' -> r.key order by r.key
  );
  v_taken jsonb := jsonb_path_query_first(result, '$.steps[*].error ? (@.code == "already_exists")');
begin
  if v_changed <> '{}' then
    perform private.refuse_plan(
      'changed', 'An object of the plan was changed since.', jsonb_build_object('changed', v_changed)
    );
  elsif v_taken is not null then
    perform private.refuse(
      409, 'already_exists', v_taken ->> 'message', v_taken ->> 'param', v_taken -> 'details', 'Leave out plan_id for a new plan.'
    );
  elsif (result ->> 'refusals')::integer > 0 then
    perform private.refuse_plan('changed', 'A step of the plan is refused now.', jsonb_build_object('step', result #> '{steps,0}'));
  elsif result ->> 'steps_digest' <> plan.steps_digest then
    perform private.refuse_plan('changed', 'The plan would do something else now.');
  end if;
end
$$;
grant execute on function private.assert_as_planned to scope_events_write;

-- The answer: a plan says what each step changes, and once it is applied which objects are new.
create function private.event_plan_json(plan private.event_plans, result jsonb, is_applied boolean) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_most_steps constant integer := 100;
  v_event constant jsonb := result -> 'event';
begin
  return json_build_object(
    'object', 'event_plan',
    'plan_id', plan.id,
    'applied', is_applied,
    'expires_at', private.rfc3339(plan.expires_at),
    'event', json_build_object(
      'id', case when is_applied or plan.event_id is not null then v_event -> 'id' end, 'name', v_event -> 'name', 'status', v_event -> 'status',
      'starts_at', v_event -> 'starts_at', 'ends_at', v_event -> 'ends_at', 'timezone', v_event -> 'timezone'
    ),
    'notify', plan.arguments -> 'notify',
    'refusals', result -> 'refusals',
    'unchanged', result -> 'unchanged',
    'steps', (
      select coalesce(json_agg(f.fields order by s.n), '[]')
      from jsonb_array_elements(result -> 'steps') with ordinality s (step, n)
      -- In this order, which jsonb does not keep.
      cross join lateral (
        select json_object_agg(f.name, s.step -> f.name order by f.n) as fields
        from unnest('{action,kind,name,id,status,changes,error}'::text[]) with ordinality f (name, n)
        where s.step ? f.name and f.name <> case when is_applied then 'changes' else 'id' end
      ) f
      where s.n <= v_most_steps
    ),
    'more_steps', greatest(jsonb_array_length(result -> 'steps') - v_most_steps, 0)
  );
end
$$;
grant execute on function private.event_plan_json to scope_events_write;

create function api.apply_event(
  event text default null,
  copy_of text default null,
  move text default null,
  changes jsonb default null,
  ticket_types jsonb default null,
  promo_codes jsonb default null,
  check_in_points jsonb default null,
  questions jsonb default null,
  archive_missing boolean default null,
  notify public.notify default null,
  plan_id text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_arguments jsonb := (
    select coalesce(jsonb_object_agg(a.key, a.value), '{}')
    from jsonb_each(jsonb_build_object(
      'event', event, 'copy_of', copy_of, 'move', move, 'changes', changes, 'ticket_types', ticket_types, 'promo_codes', promo_codes,
      'check_in_points', check_in_points, 'questions', questions, 'archive_missing', archive_missing, 'notify', notify
    )) a
    where a.value <> 'null'
  );
  v_is_planned boolean := plan_id is not null;
  v_plan private.event_plans;
  v_result jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  v_plan := case when v_is_planned then private.open_event_plan(plan_id, v_arguments) else private.new_event_plan(v_arguments) end;

  begin
    v_result := private.carry_out_event(v_plan.arguments, private.current_organisation_id(), v_plan.event_id, v_plan.source_id);
    perform private.undo_if_dry_run(not v_is_planned);
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the result.
  end;

  if v_is_planned then
    perform private.assert_as_planned(v_plan, v_result);
    perform private.assert_notice_confirmed(
      'apply_event',
      jsonb_build_object(
        'plan_id', plan_id, 'event_id', v_plan.event_id, 'news', v_result #> '{news,news}',
        'steps', jsonb_path_query_array(v_result, '$.steps[0 to 19]'), 'more_steps', greatest(jsonb_array_length(v_result -> 'steps') - 20, 0)
      ),
      json_build_object('attendees', v_result #> '{affected,attendees}', 'orders', v_result #> '{affected,orders}', 'told', v_result #> '{news,told}')
    );
  end if;
  v_plan := private.keep_event_plan(v_plan, v_result);

  v_outcome := json_build_object('status', 200, 'data', private.event_plan_json(v_plan, v_result, v_is_planned));
  if v_plan.event_id is not null then
    v_outcome := json_build_object(
      'status', 200, 'data', v_outcome -> 'data',
      'effect', private.effect_json(not v_is_planned, v_result -> 'affected', nullif(v_result -> 'notice', 'null'))
    );
  end if;
  return private.record_outcome(
    idempotency_key, request_fingerprint,
    private.with_warnings(v_outcome, variadic array(select jsonb_array_elements(v_result -> 'warnings'))), not v_is_planned
  );
end
$$;
comment on function api.apply_event is
  'Plans the described event, or applies a plan exactly: 200. 404 not_found; 409 plan_outdated, already_exists; 422 ambiguous_name, validation_failed.';
grant execute on function api.apply_event to scope_events_write;

-- For owners and managers who are signed in, and whoever works in the SQL editor: carries it out at once, or refuses what its first refused
-- step says.
create function private.carry_out_by_hand(event_id uuid, arguments jsonb, is_copy boolean) returns public.events
language plpgsql volatile set search_path = ''
as $$
declare
  v_event public.events;
  v_result jsonb;
  v_error jsonb;
begin
  select e.* into v_event
  from public.events e
  where e.id = carry_out_by_hand.event_id and private.is_managed(e.organisation_id);
  if not found then
    perform private.refuse_not_found('event_id');
  elsif v_event.starts_at is null and not is_copy then
    perform private.refuse_value(
      'starts_at', 'The event has no start to move from.', 'Set starts_at and ends_at of the event.'
    );
  end if;
  v_result := private.carry_out_event(
    arguments, v_event.organisation_id, case when not is_copy then v_event.id end, case when is_copy then v_event.id end
  );
  v_error := jsonb_path_query_first(v_result, '$.steps[*].error');
  if v_error is not null then
    perform private.refuse(
      case v_error ->> 'code' when 'validation_failed' then 422 when 'not_found' then 404 else 409 end,
      v_error ->> 'code', v_error ->> 'message', v_error ->> 'param', v_error -> 'details', v_error ->> 'hint'
    );
  end if;
  select e.* into v_event from public.events e where e.id = (v_result #>> '{event,id}')::uuid;
  return v_event;
end
$$;

-- A copy of an event as a draft, at another start. A time without a zone is read in that of the session, so the start is said as people at
-- the event read it.
create function public.copy_event(event_id uuid, starts_at timestamptz, name text default null) returns uuid
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_copy public.events;
begin
  if starts_at is null then
    perform private.refuse_value('starts_at', 'A copy needs its own start.');
  end if;
  v_copy := private.carry_out_by_hand(
    event_id, jsonb_build_object('changes', jsonb_strip_nulls(jsonb_build_object('starts_at', starts_at, 'name', name))), true
  );
  raise notice 'The copy starts at %.', private.clock_time(v_copy.starts_at, v_copy.timezone);
  return v_copy.id;
end
$$;
comment on function public.copy_event is
  'Copies an event with its ticket types, promo codes and check-in points as a draft with another start, and moves all times. Returns the id of the copy.';
revoke all on function public.copy_event from public, anon, service_role;
grant execute on function public.copy_event to authenticated;

-- The event itself at another start.
create function public.move_event(event_id uuid, starts_at timestamptz) returns text
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
begin
  if starts_at is null then
    perform private.refuse_value('starts_at', 'Give the start.', 'Write it as 2028-05-02 09:00 Europe/Berlin.');
  end if;
  v_event := private.carry_out_by_hand(event_id, jsonb_build_object('move', starts_at), false);
  return private.clock_time(v_event.starts_at, v_event.timezone);
end
$$;
comment on function public.move_event is
  'Moves an event to another start, with its end, its check-in points, and future times of sales and promo codes. Returns the new start in the time zone of the event.';
revoke all on function public.move_event from public, anon, service_role;
grant execute on function public.move_event to authenticated;
