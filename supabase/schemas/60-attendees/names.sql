-- What attendees are called: see 00-ground/names.sql. Who works at the door sees names and references, as find_attendees does; without a right to
-- read attendees they are found by what Usher or the caller gave them. The reference is that of the order; where that has several tickets, they
-- are the candidates.

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('attendee', 'id', null, 'o.id = $5', null, 'o.id'),
  (
    'attendee', 'reference',
    null, 'o.order_id = (select r.id from public.orders r where r.organisation_id = $1 and r.reference = private.code_form($3))',
    null, null
  ),
  ('attendee', 'external_id', '{attendees:read,attendees:write}', 'o.organisation_id = $1 and o.external_id = $3', null, null),
  ('attendee', 'email', '{attendees:read}', 'o.organisation_id = $1 and o.email_lower = lower($3)', '{attendees:read}', 'o.email'),
  (
    -- search_text begins with the name and a space. Nobody is looked for without any letter or digit: the index of trigrams would read all.
    'attendee', 'name',
    '{attendees:read,checkin:write}', $$
      uuid_hash(o.organisation_id) = uuid_hash($1) and private.search_form(o.name) = $4
        and o.search_text like case when $4 ~ '[^ -/:-@[-`{-~]' then regexp_replace($4, '([\\%_])', '\\\1', 'g') || ' %' end
    $$,
    '{attendees:read,checkin:write}', 'o.name'
  ),
  ('attendee', 'company', null, null, '{attendees:read,checkin:write}', 'o.company'),
  ('attendee', 'status', null, null, '{attendees:read,checkin:write}', 'o.status'),
  (
    'attendee', 'ticket_type',
    null, null,
    '{attendees:read,checkin:write}', '(select t.name from public.ticket_types t where t.id = o.ticket_type_id)'
  ),
  ('attendee', 'order', null, null, '{attendees:read}', '(select r.reference from public.orders r where r.id = o.order_id)'),
  ('attendee', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
