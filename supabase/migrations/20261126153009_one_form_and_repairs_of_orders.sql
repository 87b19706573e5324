-- one form and repairs, of orders. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '5min';

drop trigger orders_010_blank_is_empty on public.orders;

drop trigger orders_800_explain on public.orders;

create trigger orders_010_blank_is_empty
  before insert or update of name,
    email,
    company,
    reference,
    status,
    payment_status,
    event_id,
    currency,
    amount_retained,
    payment_due_at,
    payment_remind_at,
    payment_reminded_at,
    promo_code,
    send_email,
    completed_at,
    cancelled_at,
    cancellation_reason,
    source,
    external_id,
    metadata, created_at, updated_at, id, organisation_id, promo_code_id, version, payment_check_at on public.orders
  for each row
  when (private.is_typed())
  execute function private.tg__take_blank_as_empty('event_id', 'name', 'email');

create trigger orders_200_deadline_of_paid
  before update of amount_paid on public.orders
  for each row
  when (((new.status = 'pending'::public.order_status) and (new.payment_due_at is not null)))
  execute function private.tg_orders__guard_deadline();

create trigger orders_800_explain
  before insert or update of name,
    email,
    company,
    reference,
    status,
    payment_status,
    event_id,
    currency,
    amount_retained,
    payment_due_at,
    payment_remind_at,
    payment_reminded_at,
    promo_code,
    send_email,
    completed_at,
    cancelled_at,
    cancellation_reason,
    source,
    external_id,
    metadata, created_at, updated_at, id, organisation_id, promo_code_id, version, payment_check_at on public.orders
  for each row
  when (private.is_typed())
  execute function private.tg__explain_mistakes();

-- An order that is paid in part is looked at no more: the trigger says when.
update public.orders set payment_check_at = payment_check_at
where status = 'pending' and payment_status = 'partially_paid' and payment_check_at is not null;
