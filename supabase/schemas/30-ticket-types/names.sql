-- Finding ticket types by what they are called: see 00-ground/names.sql.

create index ticket_types_organisation_id_name_idx on public.ticket_types (organisation_id, private.search_form(name));

-- Every scope that has to do with tickets reads what they are called.
create function private.find_ticket_type(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write,attendees:read,attendees:write,checkin:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select t.id, 'id' as matches, null::real as likeness from public.ticket_types t where not query.nearest and t.id = query.id
      union all
      select t.id, 'external_id', null from public.ticket_types t
      where not query.nearest and t.organisation_id = query.organisation_id and t.external_id = query.name
      union all
      (
        select t.id, 'name', null from public.ticket_types t
        where not query.nearest and v_may_read and t.organisation_id = query.organisation_id
          and private.search_form(t.name) = query.form and (query.event_id is null or t.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select t.id, extensions.similarity(private.search_form(t.name), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select t.id, t.name from public.ticket_types t
            where t.event_id = any (array[e.id])
            order by t.event_id, t.position, t.id
            limit 50
          ) t
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'ticket_type', 'id', f.id)
    || case when v_may_read then jsonb_build_object('name', t.name) else '{}' end
    || case when query.scopes && '{events:read,events:write}' then jsonb_build_object('status', t.status, 'price', t.price) else '{}' end
    || jsonb_build_object('event', private.event_shown(t.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select t.* from public.ticket_types t where t.id = f.id offset 0) t
  where t.organisation_id = query.organisation_id and (query.event_id is null or t.event_id = query.event_id);
end
$$;
