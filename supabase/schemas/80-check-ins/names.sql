-- What check-in points are called: see 00-ground/names.sql.

create index check_in_points_organisation_id_name_idx on public.check_in_points (organisation_id, private.search_form(name));

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('check_in_point', 'id', null, 'o.id = $5', null, 'o.id'),
  (
    'check_in_point', 'name',
    '{events:read,events:write,checkin:write}', 'o.organisation_id = $1 and private.search_form(o.name) = $4',
    '{events:read,events:write,checkin:write}', 'o.name'
  ),
  ('check_in_point', 'status', null, null, '{events:read,events:write,checkin:write}', 'o.status'),
  ('check_in_point', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
