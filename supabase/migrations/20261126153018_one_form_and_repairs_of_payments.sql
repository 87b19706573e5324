-- one form and repairs, of payments. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

create trigger payments_050_amount
  before insert on public.payments
  for each row
  when ((new.amount <= 0))
  execute function
    private.tg__refuse_value('amount', 'A payment is above 0.', 'For money that was returned add a row to refunds.');
