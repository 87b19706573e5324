-- What ticket types are called: see 00-ground/names.sql. Every scope that has to do with tickets reads their names.

create index ticket_types_organisation_id_name_idx on public.ticket_types (organisation_id, private.search_form(name));

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('ticket_type', 'id', null, 'o.id = $5', null, 'o.id'),
  ('ticket_type', 'external_id', null, 'o.organisation_id = $1 and o.external_id = $3', null, null),
  (
    'ticket_type', 'name',
    '{events:read,events:write,attendees:read,attendees:write,checkin:write}', 'o.organisation_id = $1 and private.search_form(o.name) = $4',
    '{events:read,events:write,attendees:read,attendees:write,checkin:write}', 'o.name'
  ),
  ('ticket_type', 'status', null, null, '{events:read,events:write}', 'o.status'),
  ('ticket_type', 'price', null, null, '{events:read,events:write}', 'o.price'),
  ('ticket_type', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
