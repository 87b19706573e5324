-- one choice of who is erased. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '2s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop function private.members_of_address(uuid, text, text[]);

create or replace function api.get_confirmation (
  secret_hash text,
  confirmation_id uuid
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
  v_asked private.confirmations;
begin
  select c.* into v_asked
  from private.confirmations c
  where c.id = confirmation_id and c.organisation_id = v_key.organisation_id;
  if not found then
    return null;
  end if;
  return (
    select json_build_object(
      'state', case
        when v_asked.spent_at is not null then 'spent'
        when v_asked.expires_at <= now() then 'expired'
        -- They are not those that were asked for: so many others in their place would count as much.
        when v_asked.operation = 'erase_person'
          and private.digest_of_people(array(select r from private.rows_to_erase(v_asked.organisation_id, v_asked.arguments) r))
            is distinct from v_asked.arguments ->> 'digest' then 'expired'
        when v_asked.confirmed_at is not null then 'confirmed'
        else 'open'
      end,
      'operation', v_asked.operation,
      'scope', v_asked.scope,
      'may_confirm', v_asked.scope = any (v_key.scopes),
      'asked_by', json_build_object('name', k.name, 'prefix', k.prefix, 'kind', k.kind),
      'expires_at', private.rfc3339(v_asked.expires_at),
      -- Of people and money only for whoever may do it.
      'effect', case when v_asked.scope = any (v_key.scopes) then
        case when 'orders:read' = any (v_key.scopes) or not v_asked.operation like 'cancel%' then v_asked.effect
          else v_asked.effect || '{"refund_due": null}' end
      end,
      'changes', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'changes' end,
      'news', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'news' end,
      'steps', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'steps' end,
      'more_steps', case when v_asked.scope = any (v_key.scopes) then v_asked.arguments -> 'more_steps' end,
      'subject', case when v_asked.scope = any (v_key.scopes) then private.subject_of_confirmation(v_asked) end
    )
    from public.api_keys k
    where k.id = v_asked.api_key_id
  );
end
$$;

create or replace function private.erase_members (
  erasing private.erasing
)
  returns integer
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_user_ids constant uuid[] := array(
    select m.id from private.members_of_address(erasing.organisation_id, erasing.address, erasing.forms) m
  );
  v_entries integer;
begin
  if v_user_ids = '{}' then
    return 0;
  end if;
  execute format(
    'update public.organisation_members m set %s where m.organisation_id = $1 and m.user_id = any ($2) and lower(m.email) = $3',
    private.erasing_assignments('organisation_members')
  ) using erasing.organisation_id, v_user_ids, erasing.address;
  update public.audit_entries e
  set changes = e.changes || jsonb_strip_nulls(jsonb_build_object(
    'name', case when e.changes ? 'name' then '{}'::jsonb end, 'email', case when e.changes ? 'email' then '{}'::jsonb end
  ))
  where e.object_id = any (v_user_ids) and coalesce(e.organisation_id = erasing.organisation_id and e.object_type = 'member', false)
    and e.changes ?| '{name,email}';
  get diagnostics v_entries = row_count;
  return v_entries;
end
$$;

create or replace function private.erase_people (
  organisation_id uuid,
  email text,
  names text[],
  everyone boolean,
  dry_run boolean
)
  returns json
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  -- Rows of each kind that one call locks, and those of a part.
  c_most constant integer := 5000;
  c_part constant integer := 200;
  v_address text := lower(btrim(email));
  v_all private.personal_row[];
  v_rows private.personal_row[];
  v_forms text[];
  -- Of the rows those of the names that are meant: a member without a name goes with whoever does.
  v_meant text[];
  v_shown jsonb;
  v_others integer;
  v_not_found integer;
  v_opt_outs integer;
  v_order_ids uuid[];
  v_part uuid[];
  v_done integer := 0;
  v_erasing private.erasing;
  v_whole private.erasing;
  v_erased private.erased;
  v_sum private.erased := row(0, 0, 0, 0, 0, 0, 0, 0);
  v_remaining integer := 0;
begin
  perform private.assert_not_foreign(organisation_id, 'organisation_id');
  if names is not null and everyone then
    perform private.refuse_value('everyone', 'Send either names or everyone, not both.', 'everyone erases all who have the address.');
  elsif cardinality(names) not between 1 and 100 or array_position(names, null) is not null then
    perform private.refuse_value('names', 'names has 1 to 100 names.', 'Leave it out where the address has one name alone.');
  end if;
  v_all := array(select r from private.rows_of_address(organisation_id, v_address, null, c_most) r);
  v_forms := private.forms_meant(v_all, names, everyone);
  -- Of an address that has no ticket of the event any more. Nothing else finds them.
  perform private.limit_lock_waits();
  perform set_config('usher.switches_on', 'on', true);
  delete from public.email_opt_outs u
  where u.organisation_id = erase_people.organisation_id and u.email_lower = v_address
    and not exists (
      select from public.attendees a
      where a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
    );
  get diagnostics v_opt_outs = row_count;
  perform set_config('usher.switches_on', '', true);
  if v_all = '{}' and v_opt_outs = 0 then
    perform private.refuse(
      404, 'not_found', 'Nobody in your organisation has this e-mail address.', 'email',
      hint => 'Whoever was erased is not found again. Look for the person by name: they may have another address.'
    );
  elsif names is null and cardinality(v_forms) > 1 then
    v_shown := private.people_json(v_all, 20, 3);
    perform private.refuse(
      409, 'several_people', 'Several people have this e-mail address.', 'names',
      case when v_shown -> 'people' = '[]' then '{}' else v_shown end
        || jsonb_build_object('count', (select count(distinct r.form) from unnest(v_all) r)),
      'Ask who is meant, and send their names; or everyone true, if all are.'
    );
  end if;

  v_rows := private.lock_people(organisation_id, v_address, v_forms, c_most);
  v_meant := array(
    select distinct r.form from unnest(v_rows) r where v_forms is null or r.object <> 'member' or r.form = any (v_forms)
  );
  if v_meant = '{}' and v_all <> '{}' then
    perform private.refuse(
      404, 'not_found', 'Nobody of one of these names has this e-mail address.', 'names', private.people_json(v_all, 20, 3),
      'Send the names as find_person answers them.'
    );
  end if;
  v_others := (
    select count(distinct r.form)
    from unnest(v_all) r
    where r.object <> 'member' and r.form <> all (v_forms)
      and not exists (select from unnest(v_rows) w where (w.id, w.form) = (r.id, r.form))
  );
  v_not_found := (
    select count(*)
    from unnest(v_forms) f
    where names is not null and f <> all (v_meant)
  );

  v_whole := row(
    organisation_id,
    array(select r.id from unnest(v_rows) r where r.object = 'attendee' and not r.is_former),
    array(select r.id from unnest(v_rows) r where r.object = 'order' and not r.is_former),
    array(
      select r.id from unnest(v_rows) r where r.object = 'waiting_list_entry' and not r.is_former
      union
      select a.waiting_list_entry_id from public.attendees a
      where a.waiting_list_entry_id is not null
        and a.id = any (array(select r.id from unnest(v_rows) r where r.object = 'attendee' and not r.is_former))
    ),
    array(select r.id from unnest(v_rows) r where r.is_former and r.object <> 'member'),
    v_address,
    v_forms,
    array(select r.id || ' ' || r.form from unnest(v_rows) r where r.is_former and r.object <> 'member'),
    coalesce(everyone, false)
  );
  -- A part has whole orders, so that the log of each is read once.
  v_order_ids := array(
    select a.order_id from public.attendees a where a.id = any (v_whole.attendee_ids)
    union
    select i from unnest(v_whole.order_ids) i
    order by 1
  );
  -- A part locks the endpoints of its own deliveries in the order of their ids; of several parts all are locked before.
  if cardinality(v_order_ids) > c_part then
    perform from public.webhook_endpoints w where w.organisation_id = erase_people.organisation_id order by w.id for no key update;
  end if;
  loop
    v_part := v_order_ids[v_done + 1:v_done + c_part];
    v_erasing := v_whole;
    v_erasing.attendee_ids := array(
      select a.id from public.attendees a where a.id = any (v_whole.attendee_ids) and a.order_id = any (v_part)
    );
    v_erasing.order_ids := array(select i from unnest(v_whole.order_ids) i where i = any (v_part));
    if v_done > 0 then
      v_erasing.entry_ids := '{}';
      v_erasing.former_ids := '{}';
    end if;
    v_erased := private.erase_rows(v_erasing);
    v_sum := row(
      v_sum.attendees + v_erased.attendees, v_sum.orders + v_erased.orders,
      v_sum.waiting_list_entries + v_erased.waiting_list_entries, v_sum.emails + v_erased.emails,
      v_sum.notifications + v_erased.notifications, v_sum.webhook_deliveries + v_erased.webhook_deliveries,
      v_sum.audit_entries + v_erased.audit_entries, v_sum.idempotency_records + v_erased.idempotency_records
    );
    v_done := v_done + c_part;
    exit when v_done >= cardinality(v_order_ids) or private.is_time_up(0.5);
  end loop;
  if v_done < cardinality(v_order_ids) or cardinality(v_rows) >= c_most then
    v_remaining := (
      select count(*) from private.rows_of_address(organisation_id, v_address, v_forms, c_most)
    );
  end if;

  return json_build_object(
    'object', 'person_erasure',
    'erased_at', case when dry_run is not true then private.rfc3339(now()) end,
    'people', cardinality(v_meant),
    'attendees', v_sum.attendees,
    'orders', v_sum.orders,
    'waiting_list_entries', v_sum.waiting_list_entries,
    'emails', v_sum.emails,
    'notifications', v_sum.notifications,
    'webhook_deliveries', v_sum.webhook_deliveries,
    'audit_entries', v_sum.audit_entries,
    'idempotency_records', v_sum.idempotency_records,
    'remaining', v_remaining,
    'kept', private.kept_of(v_whole) || private.kept_besides(organisation_id, v_address, v_others, v_not_found),
    'digest', private.digest_of_people(v_rows),
    'currency', coalesce(
      (select e.currency from public.events e where e.id = any (array(select r.event_id from unnest(v_rows) r)) limit 1), 'EUR'
    )
  );
end
$$;

create or replace function private.forms_meant (
  rows private.personal_row[],
  names text[],
  everyone boolean
)
  returns text[]
  language plpgsql
  immutable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return case
    when everyone then null
    when names is not null then array(select distinct private.person_form(n) from unnest(names) n)
    else array(
      select distinct r.form
      from unnest(forms_meant.rows) r
      where r.object <> 'member' or not exists (select from unnest(forms_meant.rows) g where g.object <> 'member')
    )
  end;
end
$$;

create or replace function private.lock_people (
  organisation_id uuid,
  address text,
  forms text[],
  most integer
)
  returns private.personal_row[]
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_rows private.personal_row[];
  v_ids uuid[];
  v_locked uuid[];
  v_order_ids uuid[];
  v_attendee_ids uuid[];
  v_event_ids uuid[];
  v_event_id uuid;
begin
  for v_round in 1..5 loop
    v_rows := array(select r from private.rows_of_address(organisation_id, address, forms, most) r);
    v_ids := array(select r.id from unnest(v_rows) r order by r.id);
    exit when v_ids = v_locked;
    perform private.limit_lock_waits();
    v_event_ids := array(select distinct r.event_id from unnest(v_rows) r where r.event_id is not null order by r.event_id);
    foreach v_event_id in array v_event_ids loop
      perform private.lock_event_shared(v_event_id);
    end loop;
    v_order_ids := array(select a.order_id from public.attendees a where a.id = any (v_ids));
    perform from public.orders o where o.id = any (v_ids || v_order_ids) order by o.id for no key update;
    v_attendee_ids := array(select a.id from public.attendees a where a.order_id = any (v_ids));
    perform from public.attendees a where a.id = any (v_ids || v_attendee_ids) order by a.id for no key update;
    -- They go with the last ticket of the address, in whatever order the tickets are.
    perform from public.email_opt_outs u
    where u.event_id = any (v_event_ids) and u.email_lower = address
    order by u.event_id
    for update;
    perform from public.waiting_list_entries w where w.id = any (v_ids) and w.status <> 'waiting' order by w.id for no key update;
    v_locked := v_ids;
  end loop;
  return v_rows;
end
$$;

create or replace function private.members_of_address (
  organisation_id uuid,
  address text,
  forms text[]
)
  returns setof private.personal_row
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return query
  select
    'member', not bool_or(f.has_address), f.user_id, null::uuid, coalesce((array_agg(f.name order by f.created_at desc))[1], ''), f.form,
    null, null, max(f.created_at)
  from (
    select m.user_id, m.name, coalesce(private.person_form(m.name), '') as form, true as has_address, m.created_at
    from public.organisation_members m
    where m.organisation_id = members_of_address.organisation_id and lower(m.email) = address
    union all
    -- Entries of members are few.
    select n.user_id, n.name, coalesce(private.person_form(n.name), ''), false, n.created_at
    from (
      select
        e.object_id as user_id, coalesce(m.name, e.changes #>> '{name,to}', e.changes #>> '{name,from}', l.name) as name, e.created_at
      from public.audit_entries e
      left join public.organisation_members m on m.organisation_id = e.organisation_id and m.user_id = e.object_id
      -- An entry has only what it changed.
      left join lateral (
        select coalesce(o.changes #>> '{name,to}', o.changes #>> '{name,from}') as name
        from public.audit_entries o
        where o.object_id = e.object_id and o.organisation_id = e.organisation_id and o.object_type = 'member'
          and coalesce(o.changes #>> '{name,to}', o.changes #>> '{name,from}') is not null
        order by o.id desc
        limit 1
      ) l on true
      where e.organisation_id = members_of_address.organisation_id and e.object_type = 'member'
        and address in (lower(e.changes #>> '{email,from}'), lower(e.changes #>> '{email,to}'))
    ) n
  ) f
  where forms is null or f.form = '' or f.form = any (forms)
  group by f.user_id, f.form;
end
$$;

create or replace function private.people_json (
  rows private.personal_row[],
  most integer,
  most_records integer
)
  returns jsonb
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_reads_orders constant boolean := private.may_read_rows('order');
  v_reads_people constant boolean := private.may_read_rows('attendee');
  v_scopes constant public.api_scope[] :=
    case when private.claims() ? 'organisation_id' then private.current_scopes() else '{events:read}' end;
  v_people jsonb;
  v_visible integer;
  v_all integer;
begin
  with people as (
    select
      r.form,
      bool_or(r.may_read) as may_read,
      max(r.created_at) as last_at,
      (array_agg(r.name order by r.created_at desc, r.id) filter (where r.may_read))[1] as name,
      (array_agg(distinct r.company) filter (where r.may_read and r.company is not null))[:3] as companies,
      count(*) filter (where r.object = 'attendee' and not r.is_former) as attendees,
      count(*) filter (where r.object = 'order' and not r.is_former) as orders,
      count(*) filter (where r.object = 'waiting_list_entry' and not r.is_former) as waiting_list_entries,
      count(*) filter (where r.object = 'member' and not r.is_former) as members,
      count(*) filter (where r.is_former) as passed_on,
      array_agg(row(r.object, r.is_former, r.id, r.event_id, r.name, r.form, r.company, r.status, r.created_at)::private.personal_row
        order by r.created_at desc, r.id) filter (where r.may_read) as rows
    from (
      select r.*, case r.object when 'order' then v_reads_orders else v_reads_people end as may_read
      from unnest(people_json.rows) r
    ) r
    group by r.form
  )
  select
    count(*), count(*) filter (where p.may_read),
    jsonb_agg(
      jsonb_build_object(
        'name', p.name,
        'companies', coalesce(to_jsonb(p.companies), '[]'),
        'attendees', p.attendees,
        'orders', p.orders,
        'waiting_list_entries', p.waiting_list_entries,
        'members', p.members,
        'passed_on', p.passed_on,
        'records', (
          select coalesce(jsonb_agg(jsonb_build_object(
            'object', r.object,
            'id', r.id,
            'passed_on', r.is_former,
            'event', case when exists (select from public.events e where e.id = r.event_id)
              then private.event_shown(r.event_id, v_scopes) - '{status,slug,starts_at,object}'::text[] end,
            'status', r.status,
            'created_at', private.rfc3339(r.created_at)
          ) order by r.place), '[]')
          from unnest(p.rows[:greatest(2, least(most_records, 100 / (select count(*)::integer from people)))])
            with ordinality r (object, is_former, id, event_id, name, form, company, status, created_at, place)
        )
      )
      order by p.last_at desc, p.form
    ) filter (where p.may_read and p.place <= most)
  into v_all, v_visible, v_people
  from (select p.*, row_number() over (order by p.may_read desc, p.last_at desc, p.form) as place from people p) p;
  return jsonb_build_object(
    'people', coalesce(v_people, '[]'), 'hidden', v_all - v_visible, 'more', v_visible > most
  );
end
$$;

create or replace function private.people_to_erase (
  confirmation private.confirmations
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  return (
    select json_agg(json_build_object(
      'name', p.name, 'tickets', p.tickets, 'orders', p.orders, 'waiting_list', p.entries, 'is_member', p.is_member
    ) order by p.last_at desc, p.form)
    from (
      select
        r.form, max(r.created_at) as last_at,
        -- Of a member without a name there is the address alone.
        coalesce(nullif((array_agg(r.name order by r.created_at desc, r.id))[1], ''), confirmation.arguments ->> 'email') as name,
        bool_or(r.object = 'member') as is_member,
        count(*) filter (where r.object = 'attendee' and not r.is_former) as tickets,
        count(*) filter (where r.object = 'order' and not r.is_former) as orders,
        count(*) filter (where r.object = 'waiting_list_entry' and not r.is_former) as entries
      from private.rows_to_erase(confirmation.organisation_id, confirmation.arguments) r
      group by r.form
      order by last_at desc, r.form
      limit 21
    ) p
  );
end
$$;

create or replace function private.rows_of_address (
  organisation_id uuid,
  address text,
  forms text[],
  most integer
)
  returns setof private.personal_row
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_sort to 'off'
  set enable_incremental_sort to 'off'
  set jit to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_organisation_ids constant uuid[] := array[organisation_id];
  v_attendee_ids uuid[];
  v_object_ids uuid[];
begin
  -- That of everybody who was erased.
  if address = private.erased_fields() ->> 'email' then
    return;
  end if;
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.organisation_id = any (v_organisation_ids) and a.email_lower = address and a.erased_at is null
      and (forms is null or private.person_form(a.name) = any (forms))
    order by a.organisation_id desc, a.id desc
    limit most
  );
  return query
  select 'attendee', false, a.id, a.event_id, a.name, private.person_form(a.name), a.company, a.status::text, a.created_at
  from public.attendees a
  where a.id = any (v_attendee_ids);

  return query
  select 'order', false, o.id, o.event_id, o.name, o.form, o.company, o.status::text, o.created_at
  from (
    select o.*, private.person_form(o.name) as form
    from public.orders o
    where o.id = any (array(
      select o.id
      from public.orders o
      where o.organisation_id = any (v_organisation_ids) and o.email_lower = address
        and (forms is null or private.person_form(o.name) = any (forms))
      order by o.organisation_id desc, o.id desc
      limit most
    ))
    union
    -- The contact of their ticket's order, by name.
    select o.*, private.person_form(o.name)
    from public.attendees a
    cross join lateral (select o.* from public.orders o where o.id = a.order_id offset 0) o
    where a.id = any (v_attendee_ids) and private.person_form(o.name) = private.person_form(a.name)
  ) o;

  return query
  select 'waiting_list_entry', false, w.id, w.event_id, w.name, private.person_form(w.name), w.company, w.status::text, w.created_at
  from public.waiting_list_entries w
  where w.id = any (array(
    select w.id
    from public.waiting_list_entries w
    where w.organisation_id = any (v_organisation_ids) and w.email_lower = address
      and (forms is null or private.person_form(w.name) = any (forms))
    order by w.organisation_id desc, w.id desc
    limit most
  ));

  -- What left the address; and, of names that are meant, what stayed under it and was called so before.
  if forms is null then
    v_object_ids := array(
      select e.object_id
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.changes #>> '{email,from}' is not null
        and lower(e.changes #>> '{email,from}') = address
        and e.object_type in ('attendee', 'order', 'waiting_list_entry')
      order by e.organisation_id desc, e.id desc
      limit most
    );
  else
    v_object_ids := array(select r.id from private.rows_of_address(organisation_id, address, null, most) r where r.object <> 'member');
  end if;
  return query
  select distinct on (f.object_id, f.form)
    f.object, true, f.object_id, f.event_id, f.name, f.form, f.company, null, f.created_at
  from (
    select
      h.*,
      bool_or(h.form = any (forms)) over (partition by h.object_id) as is_meant,
      bool_or(h.leaves) over (partition by h.object_id order by h.entry_id desc) as is_over
    from private.former_holders(v_object_ids) h
    where h.address = rows_of_address.address and h.name is not null
  ) f
  where (forms is null or f.form = any (forms) or f.is_meant and f.is_over) and not f.is_theirs
  order by f.object_id, f.form, f.entry_id desc;

  return query
  select m.* from private.members_of_address(organisation_id, address, forms) m;
end
$$;

create or replace function private.rows_to_erase (
  organisation_id uuid,
  arguments jsonb
)
  returns setof private.personal_row
  language plpgsql
  stable
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  c_most constant integer := 5000;
  v_address text := lower(btrim(arguments ->> 'email'));
  v_names text[];
begin
  if jsonb_typeof(arguments -> 'names') = 'array' then
    v_names := array(select jsonb_array_elements_text(arguments -> 'names'));
  end if;
  return query
  select r.*
  from private.rows_of_address(
    organisation_id, v_address,
    private.forms_meant(
      array(select f from private.rows_of_address(organisation_id, v_address, null, c_most) f), v_names, (arguments ->> 'everyone')::boolean
    ),
    c_most
  ) r;
end
$$;

comment on function api.find_person(text) is 'Who stands under an e-mail address, by name, with their tickets, orders and entries of the waiting list, and whether they are a member; nobody is an empty list.';

comment on function public.find_person(text, uuid) is 'Who stands under an e-mail address, by name, with their tickets, orders and entries of the waiting list, and whether they are a member.';

revoke all on function private.forms_meant(private.personal_row[], text[], boolean) from public;

revoke all on function private.members_of_address(uuid, text, text[]) from public;

revoke all on function private.members_of_address(uuid, text, text[]) from postgres;

grant execute on function private.members_of_address(uuid, text, text[]) to postgres;
