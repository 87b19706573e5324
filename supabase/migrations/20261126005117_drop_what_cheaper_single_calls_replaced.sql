-- drop what cheaper single calls replaced. Written by `npm run db:migration` from supabase/schemas, and parted from the migration before:
-- a call that waited for its locks goes on with the functions that it began with.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- Waits for these calls. As triggers lead from one table to the next; within a block, for the command line begins no transaction by name.
do $$
begin
  lock table public.payments, public.orders, public.attendees, public.ticket_types in access exclusive mode;
end
$$;

revoke all on function private.payment_json(public.payments, timestamp with time zone) from scope_orders_read, scope_orders_write;

revoke all on function private.order_payments_json(uuid) from scope_orders_read;

revoke all on function private.order_payments_json(uuid) from scope_orders_write;

revoke all on function private.order_refunds_json(uuid) from scope_orders_read;

revoke all on function private.order_refunds_json(uuid) from scope_orders_write;

revoke all on function private.refund_json(public.refunds) from scope_orders_read;

revoke all on function private.refund_json(public.refunds) from scope_orders_write;

drop function private.is_settled(public.orders);

drop function private.order_attendees_json(uuid, text);

drop function private.payment_json(public.payments);

drop function private.registration_outcomes(uuid[]);

drop function private.warning_of_early_scan(timestamp with time zone, timestamp with time zone);

drop function private.whole_order_json(public.orders);
