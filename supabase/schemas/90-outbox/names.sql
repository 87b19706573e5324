-- What webhook endpoints are called: see 00-ground/names.sql. An organisation has few (90-outbox/endpoints.sql).

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('webhook_endpoint', 'id', null, 'o.id = $5', null, 'o.id'),
  ('webhook_endpoint', 'url', '{events:write}', 'o.organisation_id = $1 and private.search_form(o.url) = $4', '{events:write}', 'left(o.url, 200)'),
  (
    'webhook_endpoint', 'description',
    '{events:write}', 'o.organisation_id = $1 and private.search_form(o.description) = $4',
    '{events:write}', 'o.description'
  ),
  ('webhook_endpoint', 'status', null, null, '{events:write}', 'o.status');
