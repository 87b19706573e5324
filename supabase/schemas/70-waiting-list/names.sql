-- Finding entries of the waiting list by the person who waits: see 00-ground/names.sql.

create index waiting_list_entries_organisation_id_email_lower_idx on public.waiting_list_entries (organisation_id, email_lower);
create index waiting_list_entries_organisation_id_name_idx
  on public.waiting_list_entries (organisation_id, private.search_form(name));

create function private.find_waiting_list_entry(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'attendees:read' = any (query.scopes);
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select w.id, 'id' as matches, null::real as likeness from public.waiting_list_entries w where not query.nearest and w.id = query.id
      union all
      select w.id, 'external_id', null from public.waiting_list_entries w
      where not query.nearest and w.organisation_id = query.organisation_id and w.external_id = query.name
      union all
      (
        select w.id, 'email', null from public.waiting_list_entries w
        where not query.nearest and v_may_read and w.organisation_id = query.organisation_id and w.email_lower = lower(query.name)
          and (query.event_id is null or w.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select w.id, 'name', null from public.waiting_list_entries w
        where not query.nearest and v_may_read and w.organisation_id = query.organisation_id
          and private.search_form(w.name) = query.form and (query.event_id is null or w.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select w.id, extensions.similarity(private.search_form(w.name), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select w.id, w.name from public.waiting_list_entries w
            where w.event_id = any (array[e.id])
            order by w.event_id desc, w.id desc
            limit 50
          ) w
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'waiting_list_entry', 'id', f.id)
    || case when v_may_read
      then jsonb_build_object(
        'name', w.name, 'email', w.email, 'status', w.status,
        'ticket_type', (select t.name from public.ticket_types t where t.id = w.ticket_type_id)
      )
      else '{}' end
    || jsonb_build_object('event', private.event_shown(w.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select w.* from public.waiting_list_entries w where w.id = f.id offset 0) w
  where w.organisation_id = query.organisation_id and (query.event_id is null or w.event_id = query.event_id);
end
$$;
