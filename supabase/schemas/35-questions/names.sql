-- What questions are called: see 00-ground/names.sql.

create index questions_organisation_id_key_idx on public.questions (organisation_id, key);

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('question', 'id', null, 'o.id = $5', null, 'o.id'),
  ('question', 'key', '{events:read,events:write}', 'o.organisation_id = $1 and o.key = $3', '{events:read,events:write}', 'o.key'),
  ('question', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
