-- What events are called: see 00-ground/names.sql.

create index events_organisation_id_name_idx on public.events (organisation_id, private.search_form(name));

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('event', 'id', null, 'o.id = $5', null, 'o.id'),
  ('event', 'slug', null, $$o.organisation_id = $1 and o.slug = $4 and $4 <> ''$$, '{events:read,events:write}', 'o.slug'),
  ('event', 'external_id', null, 'o.organisation_id = $1 and o.external_id = $3', null, null),
  (
    'event', 'name',
    '{events:read,events:write,checkin:write}', 'o.organisation_id = $1 and private.search_form(o.name) = $4',
    '{events:read,events:write,checkin:write}', 'o.name'
  ),
  ('event', 'status', null, null, '{events:read,events:write,checkin:write}', 'o.status'),
  ('event', 'starts_at', null, null, '{events:read,events:write}', 'private.rfc3339(o.starts_at)');
