-- Payments: what was received for an order, one row each. Their sum is amount_paid of the order, which completes when nothing
-- is due. Append-only: payments are never changed or deleted.

create table public.payments (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  order_id uuid not null,
  method public.payment_method not null default 'invoice',
  amount bigint not null,
  currency text not null,
  received_at timestamptz not null default now(),
  external_reference text,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  constraint payments_pkey primary key (id),
  constraint payments_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint payments_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint payments_amount_is_positive check (amount > 0),
  constraint payments_received_at_is_finite check (
    received_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint payments_external_reference_is_one_line check (
    length(btrim(external_reference)) between 1 and 255 and external_reference !~ '[[:cntrl:]]'
  )
);
comment on table public.payments is 'Money received for orders. Add a row to record a payment; the order completes when nothing is due.';
comment on column public.payments.amount is 'In minor units of currency, which is the order''s.';
comment on column public.payments.external_reference is 'Its reference in another system, such as an invoice number or a bank reference.';
comment on column public.payments.recorded_by is 'The API key that recorded it. Empty if it was recorded by hand.';

create index payments_order_id_idx on public.payments (order_id);
create index payments_recorded_by_idx on public.payments (recorded_by);

-- Security definer: it updates the order, of which a key with orders:write may change only the status.
create function private.tg_payments__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  if tg_op <> 'INSERT' then
    -- Deleting an API key empties recorded_by of its payments.
    if tg_op = 'UPDATE' and new.recorded_by is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
      return new;
    end if;
    perform private.refuse(
      409, 'append_only', 'Payments are a log: they are never changed or deleted.', hint => 'Cancel the order to mark what is to be refunded.'
    );
  end if;

  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_due := v_order.total - v_order.amount_paid;

  if v_order.status <> 'pending' then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record at most what is due, and refund the rest.'
    );
  end if;

  -- Before the insert, so that a second payment in the same statement sees the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method
  where o.id = v_order.id;
  return new;
end
$$;
create trigger payments_100_guard before insert or update or delete on public.payments
  for each row execute function private.tg_payments__guard();
create trigger payments_100_no_truncate before truncate on public.payments
  for each statement execute function private.tg__refuse_truncate();

revoke all on public.payments from anon, authenticated, service_role;

alter table public.payments enable row level security;
create policy payments_select_own on public.payments for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy payments_insert_own on public.payments for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy payments_select_membership on public.payments for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy payments_insert_membership on public.payments for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));
grant select on public.payments to scope_orders_read, scope_orders_write, authenticated;
grant insert (order_id, method, amount, currency, received_at, external_reference) on public.payments
  to scope_orders_write, authenticated;

create function private.payment_json(payment public.payments) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'payment',
    'id', payment.id,
    'order_id', payment.order_id,
    'event_id', payment.event_id,
    'method', payment.method,
    'amount', payment.amount,
    'currency', payment.currency,
    'received_at', private.rfc3339(payment.received_at),
    'external_reference', payment.external_reference,
    'source', payment.source,
    'created_at', private.rfc3339(payment.created_at)
  );
end
$$;
grant execute on function private.payment_json(public.payments) to scope_orders_read, scope_orders_write;

create function private.order_payments_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(private.payment_json(p) order by p.id), '[]')
    from public.payments p
    where p.order_id = order_payments_json.order_id
  );
end
$$;
grant execute on function private.order_payments_json(uuid) to scope_orders_read, scope_orders_write;
