-- errands to their end, of orders. Written by `npm run db:migration` from supabase/schemas, and parted from the migration
-- before.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- One table, and no other meanwhile: claims of e-mails read attendees and orders after e-mails, and registrations write these before.
drop trigger orders_050_fixed on public.orders;

create trigger orders_050_fixed_promo_code
  before update of promo_code, promo_code_id on public.orders
  for each row
  execute function
    private.tg__assert_unchanged_with_hint('For another discount cancel the order, and register anew with the promo code.', 'promo_code', 'promo_code_id');

create trigger orders_050_fixed
  before update of organisation_id, event_id, reference, currency on public.orders
  for each row
  execute function private.tg__assert_unchanged('organisation_id', 'event_id', 'reference', 'currency');
