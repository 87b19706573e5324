-- refuse writes to views. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function private.tg__refuse_write()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse(
    405, 'method_not_allowed', 'This is a view: it is only read.', hint => 'Change the rows of the tables that it shows.'
  );
  return null;
end
$$;

create trigger arrivals_100_read_only
  instead of insert or delete or update on public.arrivals
  for each row
  execute function private.tg__refuse_write();

create trigger door_list_100_read_only
  instead of insert or delete or update on public.door_list
  for each row
  execute function private.tg__refuse_write();

create trigger event_sales_100_read_only
  instead of insert or delete or update on public.event_sales
  for each row
  execute function private.tg__refuse_write();

create trigger failing_webhook_endpoints_100_read_only
  instead of insert or delete or update on public.failing_webhook_endpoints
  for each row
  execute function private.tg__refuse_write();

create trigger undelivered_tickets_100_read_only
  instead of insert or delete or update on public.undelivered_tickets
  for each row
  execute function private.tg__refuse_write();

create trigger unpaid_orders_100_read_only
  instead of insert or delete or update on public.unpaid_orders
  for each row
  execute function private.tg__refuse_write();

revoke all on function private.tg__refuse_write() from public;
