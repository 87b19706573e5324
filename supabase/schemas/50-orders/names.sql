-- What orders are called: see 00-ground/names.sql.

create index orders_organisation_id_name_idx on public.orders (organisation_id, private.search_form(name));

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('order', 'id', null, 'o.id = $5', null, 'o.id'),
  ('order', 'reference', null, 'o.organisation_id = $1 and o.reference = private.code_form($3)', '{orders:read}', 'o.reference'),
  ('order', 'external_id', null, 'o.organisation_id = $1 and o.external_id = $3', null, null),
  ('order', 'email', '{orders:read}', 'o.organisation_id = $1 and o.email_lower = lower($3)', '{orders:read}', 'o.email'),
  ('order', 'name', '{orders:read}', 'o.organisation_id = $1 and private.search_form(o.name) = $4', '{orders:read}', 'o.name'),
  ('order', 'status', null, null, '{orders:read}', 'o.status'),
  ('order', 'payment_status', null, null, '{orders:read}', 'o.payment_status'),
  ('order', 'total', null, null, '{orders:read}', 'o.total'),
  ('order', 'currency', null, null, '{orders:read}', 'o.currency'),
  ('order', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
