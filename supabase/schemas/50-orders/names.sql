-- Finding orders by what they are called: see 00-ground/names.sql. Their contact is in the search_text of their attendees.

create function private.find_order(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := 'orders:read' = any (query.scopes);
  v_pattern text := case when v_may_read then private.name_pattern(query.form) end;
  -- Where the contact is not the attendee, the contact follows a line feed.
  v_pattern_after text := '%' || E'\n' || left(v_pattern, -2) || '%';
  v_ids uuid[] := '{}';
  v_id uuid;
begin
  if query.nearest then
    v_ids := case when v_may_read then array(
      select a.order_id
      from unnest(private.near_patterns(query.form)) p (pattern)
      cross join lateral unnest(private.search_attendees(array[p.pattern], null, query.event_id)) s (id)
      cross join lateral (select a.order_id from public.attendees a where a.id = s.id offset 0) a
    ) end;
  elsif v_pattern is not null then
    -- One after the other, for an order may have any number of attendees.
    loop
      select a.order_id into v_id
      from unnest(array[v_pattern, v_pattern_after]) p (pattern)
      cross join lateral (
        select a.order_id, a.event_id
        from public.attendees a
        where uuid_hash(a.organisation_id) = uuid_hash(query.organisation_id)
          and a.search_text like p.pattern
          and (a.organisation_id = query.organisation_id) is true
        offset 0
      ) a
      cross join lateral (select o.name from public.orders o where o.id = a.order_id offset 0) o
      where (query.event_id is null or a.event_id = query.event_id)
        and a.order_id <> all (v_ids)
        and private.search_form(o.name) = query.form
      limit 1;
      exit when not found;
      v_ids := v_ids || v_id;
      exit when cardinality(v_ids) > 10;
    end loop;
  end if;
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select o.id, 'id' as matches, null::real as likeness from public.orders o where not query.nearest and o.id = query.id
      union all
      select o.id, 'reference', null from public.orders o
      where not query.nearest and o.organisation_id = query.organisation_id and o.reference = private.code_form(query.name)
      union all
      select o.id, 'external_id', null from public.orders o
      where not query.nearest and o.organisation_id = query.organisation_id and o.external_id = query.name
      union all
      (
        select o.id, 'email', null from public.orders o
        where not query.nearest and v_may_read and o.organisation_id = query.organisation_id and o.email_lower = lower(query.name)
          and (query.event_id is null or o.event_id = query.event_id)
        limit 11
      )
      union all
      select i.id, 'name', null from unnest(v_ids) i (id) where not query.nearest
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select i.id, greatest(
            extensions.similarity(private.search_form(o.name), query.form), extensions.similarity(lower(o.reference), query.form)
          ) as likeness
          from (select distinct i.id from unnest(v_ids) i (id)) i
          cross join lateral (select o.name, o.reference from public.orders o where o.id = i.id offset 0) o
          where query.nearest
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select o.id, f.matches, f.likeness, jsonb_build_object('object', 'order', 'id', o.id)
    || case when v_may_read
      then jsonb_build_object(
        'reference', o.reference, 'name', o.name, 'email', o.email, 'status', o.status, 'payment_status', o.payment_status,
        'total', o.total, 'currency', o.currency
      )
      else '{}' end
    || jsonb_build_object('event', private.event_shown(o.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select o.* from public.orders o where o.id = f.id offset 0) o
  where o.organisation_id = query.organisation_id and (query.event_id is null or o.event_id = query.event_id);
end
$$;
