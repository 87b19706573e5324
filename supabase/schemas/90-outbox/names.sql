-- Finding webhook endpoints by their URL or description: see 00-ground/names.sql. An organisation has few (90-outbox/endpoints.sql).

create function private.find_webhook_endpoint(query private.name_query) returns setof private.candidate
language plpgsql stable set search_path = ''
as $$
begin
  return query
  select n.id, n.matches, n.likeness, jsonb_build_object(
    'object', 'webhook_endpoint', 'id', n.id, 'url', left(n.url, 200), 'description', n.description, 'status', n.status
  )
  from (
    select
      w.id, w.url, w.description, w.status,
      case
        when query.nearest then 'nearest'
        when w.id = query.id then 'id'
        when private.search_form(w.url) = query.form then 'url'
        when private.search_form(w.description) = query.form then 'description'
      end as matches,
      greatest(
        extensions.similarity(private.search_form(left(w.url, 200)), query.form),
        extensions.similarity(private.search_form(w.description), query.form)
      ) as likeness
    from (
      select w.* from public.webhook_endpoints w
      where 'events:write' = any (query.scopes) and w.organisation_id = any (array[query.organisation_id])
      order by w.organisation_id, w.id desc
      limit 100
    ) w
  ) n
  where n.matches is not null and (not query.nearest or private.is_near(n.likeness))
  order by n.likeness desc
  limit case when query.nearest then 5 else 11 end;
end
$$;
