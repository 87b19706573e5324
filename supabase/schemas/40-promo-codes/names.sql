-- Finding promo codes by their code: see 00-ground/names.sql.

create index promo_codes_organisation_id_code_idx on public.promo_codes (organisation_id, lower(code));

create function private.find_promo_code(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
declare
  v_found private.candidate[];
  v_may_read boolean := query.scopes && '{events:read,events:write}';
  v_newest uuid[] := case when query.nearest and v_may_read then private.newest_events(query) end;
begin
  v_found := array(
    select row(f.id, f.matches, f.likeness, null)::private.candidate
    from (
      select c.id, 'id' as matches, null::real as likeness from public.promo_codes c where not query.nearest and c.id = query.id
      union all
      (
        select c.id, 'code', null from public.promo_codes c
        where not query.nearest and v_may_read and c.organisation_id = query.organisation_id and lower(c.code) = lower(normalize(query.name, nfc))
          and (query.event_id is null or c.event_id = query.event_id)
        limit 11
      )
      union all
      (
        select n.id, 'nearest', n.likeness
        from (
          select c.id, extensions.similarity(lower(c.code), query.form) as likeness
          from unnest(v_newest) e (id)
          cross join lateral (
            select c.id, c.code from public.promo_codes c
            where c.event_id = any (array[e.id])
            order by c.event_id desc, c.id desc
            limit 50
          ) c
        ) n
        where private.is_near(n.likeness)
        order by n.likeness desc
        limit 5
      )
    ) f
  );
  return query
  select f.id, f.matches, f.likeness, jsonb_build_object('object', 'promo_code', 'id', f.id)
    || case when v_may_read then jsonb_build_object('code', c.code, 'status', c.status) else '{}' end
    || jsonb_build_object('event', private.event_shown(c.event_id, query.scopes))
  from unnest(v_found) f
  cross join lateral (select c.* from public.promo_codes c where c.id = f.id offset 0) c
  where c.organisation_id = query.organisation_id and (query.event_id is null or c.event_id = query.event_id);
end
$$;
