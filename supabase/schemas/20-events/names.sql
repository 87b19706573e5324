-- Finding events by what they are called: see 00-ground/names.sql.

create index events_organisation_id_name_idx on public.events (organisation_id, private.search_form(name));

-- An event as a candidate shows it, and as others show theirs. Who may not read events gets the id.
create function private.event_shown(event_id uuid, scopes public.api_scope[]) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_event public.events;
begin
  if not scopes && '{events:read,events:write,checkin:write}' then
    return jsonb_build_object('object', 'event', 'id', event_id);
  end if;
  select e.* into v_event from public.events e where e.id = event_shown.event_id;
  return jsonb_build_object('object', 'event', 'id', v_event.id, 'name', v_event.name, 'status', v_event.status)
    || case when scopes && '{events:read,events:write}'
      then jsonb_build_object('slug', v_event.slug, 'starts_at', private.rfc3339(v_event.starts_at))
      else '{}' end;
end
$$;

-- The newest events of an organisation, or the one that is given: among what belongs to them the nearest is looked for.
create function private.newest_events(query private.name_query) returns uuid[]
language plpgsql stable set search_path = ''
as $$
begin
  if query.event_id is not null then
    return array[query.event_id];
  end if;
  return array(
    select e.id
    from unnest(enum_range(null::public.event_status)) s (status)
    cross join lateral (
      select e.id from public.events e
      where e.organisation_id = any (array[query.organisation_id]) and e.status = s.status
      order by e.organisation_id desc, e.id desc
      limit 100
    ) e
  );
end
$$;

create function private.find_event(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_may_read boolean := query.scopes && '{events:read,events:write,checkin:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  if query.nearest then
    return query
    select n.id, 'nearest', n.likeness, private.event_shown(n.id, query.scopes)
    from (
      select e.id, greatest(
        extensions.similarity(private.search_form(e.name), query.form), extensions.similarity(e.slug, query.form)
      ) as likeness
      from public.events e
      where e.id = any (v_newest)
    ) n
    where private.is_near(n.likeness)
    order by n.likeness desc
    limit 5;
    return;
  end if;
  return query
  select f.id, f.matches, null::real, private.event_shown(f.id, query.scopes)
  from (
    select e.id, 'id' as matches from public.events e where e.id = query.id and e.organisation_id = query.organisation_id
    union all
    select e.id, 'slug' from public.events e
    where e.organisation_id = query.organisation_id and e.slug = query.form and e.slug <> ''
    union all
    select e.id, 'external_id' from public.events e
    where e.organisation_id = query.organisation_id and e.external_id = query.name
    union all
    (
      select e.id, 'name' from public.events e
      where v_may_read and e.organisation_id = query.organisation_id and private.search_form(e.name) = query.form
      limit 11
    )
  ) f;
end
$$;
