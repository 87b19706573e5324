-- What promo codes are called: see 00-ground/names.sql.

create index promo_codes_organisation_id_code_idx on public.promo_codes (organisation_id, lower(code));

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('promo_code', 'id', null, 'o.id = $5', null, 'o.id'),
  (
    'promo_code', 'code',
    '{events:read,events:write}', 'o.organisation_id = $1 and lower(o.code) = lower(normalize($3, nfc))',
    '{events:read,events:write}', 'o.code'
  ),
  ('promo_code', 'status', null, null, '{events:read,events:write}', 'o.status'),
  ('promo_code', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
