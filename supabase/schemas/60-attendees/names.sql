-- Finding attendees by what they are called: see 00-ground/names.sql. Who works at the door sees names and references, as find_attendees
-- does; without a right to read attendees they are found by what Usher or the caller gave them.

create function private.find_attendee(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'attendees:read' = any (query.scopes);
  v_may_see boolean := v_may_read or 'checkin:write' = any (query.scopes);
  v_may_write boolean := 'attendees:write' = any (query.scopes);
  v_pattern text := case when v_may_see and not query.nearest then private.name_pattern(query.form) end;
  v_near uuid[] := case when v_may_see and query.nearest then array(
    select distinct s.id
    from unnest(private.near_patterns(query.form)) p (pattern)
    cross join lateral unnest(
      private.search_attendees(array[p.pattern], case when v_may_read then E'\n' else E'\t' end, query.event_id)
    ) s (id)
  ) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select a.id, 'id' as matches, null::real as likeness from public.attendees a where not query.nearest and a.id = query.id
      union all
      (
        -- Of the order; where that has several tickets, they are the candidates.
        select a.id, 'reference', null
        from public.orders o
        cross join lateral (select a.id from public.attendees a where a.order_id = o.id limit 11) a
        where not query.nearest and o.organisation_id = query.organisation_id and o.reference = private.code_form(query.name)
      )
      union all
      select a.id, 'external_id', null from public.attendees a
      where not query.nearest and (v_may_read or v_may_write) and a.organisation_id = query.organisation_id and a.external_id = query.name
      union all
      (
        select a.id, 'email', null from public.attendees a
        where not query.nearest and v_may_read and a.organisation_id = query.organisation_id and a.email_lower = lower(query.name)
          and (query.event_id is null or a.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select a.id, 'name', null from public.attendees a
        where uuid_hash(a.organisation_id) = uuid_hash(query.organisation_id)
          and a.search_text like v_pattern
          and (a.organisation_id = query.organisation_id) is true
          and (query.event_id is null or a.event_id = query.event_id)
          and private.search_form(a.name) = query.form
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select i.id, extensions.similarity(private.search_form(a.name), query.form) as likeness
          from unnest(v_near) i (id)
          cross join lateral (select a.name from public.attendees a where a.id = i.id offset 0) a
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select a.id, f.matches, f.likeness, jsonb_build_object('object', 'attendee', 'id', a.id)
    || case when v_may_see
      then jsonb_build_object('name', a.name, 'company', a.company, 'status', a.status, 'ticket_type', n.ticket_type_name)
      else '{}' end
    || case when v_may_read then jsonb_build_object('email', a.email, 'order', n.reference) else '{}' end
    || jsonb_build_object('event', private.event_shown(a.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select a.*, a as attendee from public.attendees a where a.id = f.id offset 0) a
  cross join lateral private.names_of(a.attendee) n
  where a.organisation_id = query.organisation_id and (query.event_id is null or a.event_id = query.event_id);
end
$$;
