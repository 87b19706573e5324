-- one form and repairs, of refunds. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

create trigger refunds_050_amount
  before insert on public.refunds
  for each row
  when ((new.amount <= 0))
  execute function
    private.tg__refuse_value('amount', 'A refund is above 0.', 'Write what was returned, without a sign.');
