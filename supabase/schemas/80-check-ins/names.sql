-- Finding check-in points by their name: see 00-ground/names.sql.

create index check_in_points_organisation_id_name_idx on public.check_in_points (organisation_id, private.search_form(name));

create function private.find_check_in_point(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write,checkin:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select p.id, 'id' as matches, null::real as likeness from public.check_in_points p where not query.nearest and p.id = query.id
      union all
      (
        select p.id, 'name', null from public.check_in_points p
        where not query.nearest and v_may_read and p.organisation_id = query.organisation_id
          and private.search_form(p.name) = query.form and (query.event_id is null or p.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select p.id, extensions.similarity(private.search_form(p.name), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select p.id, p.name from public.check_in_points p
            where p.event_id = any (array[e.id])
            order by p.event_id, p.id
            limit 50
          ) p
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'check_in_point', 'id', f.id)
    || case when v_may_read then jsonb_build_object('name', p.name, 'status', p.status) else '{}' end
    || jsonb_build_object('event', private.event_shown(p.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select p.* from public.check_in_points p where p.id = f.id offset 0) p
  where p.organisation_id = query.organisation_id and (query.event_id is null or p.event_id = query.event_id);
end
$$;
