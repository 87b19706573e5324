-- one form and repairs, of promo_codes. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

create trigger promo_codes_300_code
  before insert or update of code on public.promo_codes
  for each row
  when
    ((new.code !~
    '^[^\u0001-\u0020\u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufeff]{1,50}$'::text))
  execute function
    private.tg__refuse_value('code', 'A promo code is one word of 1 to 50 letters, digits or signs.',
    'Write it without blanks and invisible characters.');

-- Codes are compared in their composed form. Where two would be one, both stay as they are.
update public.promo_codes c set code = normalize(c.code, nfc)
where c.code is not nfc normalized and not exists (
  select from public.promo_codes o
  where o.event_id = c.event_id and o.id <> c.id and lower(normalize(o.code, nfc)) = lower(normalize(c.code, nfc))
);
