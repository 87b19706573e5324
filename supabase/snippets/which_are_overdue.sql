-- Not paid by their deadline: paid in part and still pending, expired (cancelled), or about to. More time for one that has expired:
--   select reopen_order(the_order('XXXXXXXX'), '2028-05-02 18:00 Europe/Berlin');
-- A reminder for one that has not:
--   select send_payment_reminder(the_order('XXXXXXXX'));
select reference, name, email, company, status, payment_due_at, total, currency
from orders
where payment_due_at < now() and (payment_status in ('awaiting_payment', 'partially_paid') or cancellation_reason = 'expired')
order by payment_due_at;
