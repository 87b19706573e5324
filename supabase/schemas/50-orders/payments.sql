-- Payments: what was received for an order, one row each. The sum of those that are not voided is amount_paid of the order, which
-- completes when nothing is due. Append-only: a wrong payment is voided, money that was returned is a refund, each by a row.

create table public.payments (
  order_id uuid not null,
  amount bigint not null,
  currency text not null,
  method public.payment_method not null default 'invoice',
  received_at timestamptz not null default now(),
  external_reference text,
  event_id uuid not null,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  constraint payments_pkey primary key (id),
  constraint payments_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint payments_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint payments_amount_is_positive check (amount > 0),
  constraint payments_received_at_is_finite check (received_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'),
  constraint payments_external_reference_is_one_line check (
    length(btrim(external_reference)) between 1 and 255 and external_reference !~ '[[:cntrl:]]'
  )
);
comment on constraint payments_amount_is_positive on public.payments is
  'A payment must be above 0. To record a refund, add a row to refunds.';
comment on constraint payments_external_reference_is_one_line on public.payments is
  'external_reference is one line of 1 to 255 characters. Write at least one letter, and no line breaks.';
comment on table public.payments is 'Money received for orders. Add a row to record a payment; the order completes when nothing is due. Add a row to payment_voids to void a wrong one.';
comment on column public.payments.order_id is 'The order that was paid.';
comment on column public.payments.amount is 'In minor units of the order''s currency: 49.90 is 4990. Above 0.';
comment on column public.payments.currency is 'ISO 4217 code, three capital letters.';
comment on column public.payments.method is 'How it was paid.';
comment on column public.payments.received_at is 'When the money was received; at most a day ahead.';
comment on column public.payments.external_reference is 'Reference in another system, such as an invoice number or a bank reference.';
comment on column public.payments.recorded_by is 'The API key that recorded it. Empty if it was recorded by hand.';

create index payments_order_id_idx on public.payments (order_id);
create index payments_recorded_by_idx on public.payments (recorded_by);
-- For private.warnings_of_payment.
create index payments_organisation_id_external_reference_idx on public.payments (organisation_id, external_reference)
  where external_reference is not null;

-- For private.page_of_payments and private.page_of_payment_lines.
create index payments_organisation_id_received_at_idx on public.payments (organisation_id, received_at, id);
create index payments_event_id_received_at_idx on public.payments (event_id, received_at, id);

-- The order that a payment, a void or a refund is of, locked until the end of the transaction. Security definer, as the guards that ask for it:
-- a key for orders may change neither its sums nor lock what it may not see.
create function private.lock_order_of_money(order_id uuid, param text) returns public.orders
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  select o.* into v_order
  from public.orders o
  where o.id = lock_order_of_money.order_id and not private.is_foreign(o.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found(param);
  end if;
  return v_order;
end
$$;

-- Before the insert, so that a second payment in the same statement sees the first. A completed order is payable again once a payment was
-- voided, or money for a ticket that stands was returned.
create function private.tg_payments__pay() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders := private.lock_order_of_money(new.order_id, 'order_id');
  v_due bigint := private.amount_due(v_order);
begin
  if new.amount <= 0 then
    perform private.refuse_broken('payments_amount_is_positive', to_jsonb(new));
  elsif v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status <> 'pending' and v_due = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status),
      'Return the money at the bank, and record neither the payment nor its return.'
        || case when v_order.amount_refunded > 0 and v_order.status = 'cancelled'
          then ' A refund cannot be voided. If the bank sent it back, note that in your books and pay it again.'
          else ''
        end
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The currency of the payment differs from that of the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than the amount due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record amount_due. Return the rest at the bank without recording it: a recorded refund would be due again.'
    );
  -- A day for clocks that differ, and for dates of another time zone.
  elsif new.received_at > now() + interval '1 day' then
    perform private.refuse_value(
      'received_at', 'received_at is more than a day ahead.', 'Record the payment when the money has arrived.'
    );
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := v_order.currency;
  update public.orders o set amount_paid = o.amount_paid + new.amount where o.id = v_order.id;
  return new;
end
$$;
select private.keep_table('public.payments', filled => '{organisation_id,event_id,currency}', derived => null,
  append_only => 'Payments are a log: they are never changed or deleted. '
    'Add a row to payment_voids for a wrong payment, or to refunds for returned money.');
create trigger payments_100_pay before insert on public.payments
  for each row execute function private.tg_payments__pay();

create policy payments_select_own on public.payments for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy payments_insert_own on public.payments for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy payments_select_membership on public.payments for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy payments_insert_membership on public.payments for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.payments to scope_orders_read, scope_orders_write, authenticated;
grant insert (order_id, method, amount, currency, received_at, external_reference) on public.payments
  to scope_orders_write, authenticated;

-- Voids: payments that were recorded by mistake. A completed order stays completed, with its tickets, and is payable again.
create table public.payment_voids (
  payment_id uuid not null,
  reason text,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  constraint payment_voids_pkey primary key (id),
  constraint payment_voids_payment_id_key unique (payment_id),
  constraint payment_voids_payment_id_fkey foreign key (payment_id) references public.payments (id),
  constraint payment_voids_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint payment_voids_reason_is_one_line check (length(btrim(reason)) between 1 and 255 and reason !~ '[[:cntrl:]]')
);
comment on table public.payment_voids is 'Payments recorded by mistake. Add a row with payment_id to void one. Its order is payable again; a completed order keeps its tickets.';
comment on column public.payment_voids.payment_id is 'The voided payment.';
comment on column public.payment_voids.reason is 'Reason for people: one line, up to 255 characters.';
comment on column public.payment_voids.recorded_by is 'The API key that voided it. Empty if it was voided by hand.';

create index payment_voids_recorded_by_idx on public.payment_voids (recorded_by);
-- For private.page_of_payment_lines.
create index payment_voids_organisation_id_created_at_idx on public.payment_voids (organisation_id, created_at, id);

-- Money that was returned.
create table public.refunds (
  order_id uuid not null,
  amount bigint not null,
  currency text not null,
  method public.payment_method not null default 'bank_transfer',
  refunded_at timestamptz not null default now(),
  external_reference text,
  event_id uuid not null,
  source public.request_source not null default private.current_source(),
  recorded_by uuid default private.current_api_key_id(),
  created_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  constraint refunds_pkey primary key (id),
  constraint refunds_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint refunds_recorded_by_fkey foreign key (recorded_by) references public.api_keys (id) on delete set null,
  constraint refunds_amount_is_positive check (amount > 0),
  constraint refunds_refunded_at_is_finite check (refunded_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'),
  constraint refunds_external_reference_is_one_line check (
    length(btrim(external_reference)) between 1 and 255 and external_reference !~ '[[:cntrl:]]'
  )
);
comment on constraint refunds_amount_is_positive on public.refunds is
  'A refund must be above 0. Write the returned amount without a sign.';
comment on table public.refunds is 'Money returned for paid or cancelled orders. Add a row to record a refund; refund_due ends when nothing is left to refund. Money returned for a valid ticket is due again.';
comment on column public.refunds.order_id is 'The order whose money was returned.';
comment on column public.refunds.amount is 'In minor units of the order''s currency: 49.90 is 4990. At most the amount paid and not yet refunded.';
comment on column public.refunds.currency is 'ISO 4217 code, three capital letters.';
comment on column public.refunds.method is 'How it was returned.';
comment on column public.refunds.refunded_at is 'When the money was returned; at most a day ahead.';
comment on column public.refunds.external_reference is 'Reference in another system, such as a credit note or a bank reference: one line, up to 255 characters.';
comment on column public.refunds.recorded_by is 'The API key that recorded it. Empty if it was recorded by hand.';

create index refunds_order_id_idx on public.refunds (order_id);
create index refunds_recorded_by_idx on public.refunds (recorded_by);
-- For private.warnings_of_refund.
create index refunds_organisation_id_external_reference_idx on public.refunds (organisation_id, external_reference)
  where external_reference is not null;
-- For private.page_of_payment_lines.
create index refunds_organisation_id_refunded_at_idx on public.refunds (organisation_id, refunded_at, id);
create index refunds_event_id_refunded_at_idx on public.refunds (event_id, refunded_at, id);

create function private.tg_payment_voids__take_back() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders := private.lock_order_of_money(
    (select p.order_id from public.payments p where p.id = new.payment_id), 'payment_id'
  );
  v_amount bigint := (select p.amount from public.payments p where p.id = new.payment_id);
begin
  if exists (select from public.payment_voids v where v.payment_id = new.payment_id) then
    perform private.refuse(409, 'payment_voided', 'This payment is already voided.', 'payment_id');
  elsif v_order.amount_paid - v_amount < v_order.amount_refunded then
    perform private.refuse(
      409, 'payment_refunded', 'Refunds of this order exceed the payments that would remain.', 'payment_id',
      jsonb_build_object('amount_refunded', v_order.amount_refunded),
      'Keep a payment whose money was returned: it was received.'
    );
  end if;
  new.organisation_id := v_order.organisation_id;
  update public.orders o
  set amount_paid = o.amount_paid - v_amount, amount_voided = o.amount_voided + v_amount
  where o.id = v_order.id;
  return new;
end
$$;
select private.keep_table('public.payment_voids', filled => '{organisation_id}', derived => null,
  append_only => 'Corrections of payments are a log: they are never changed or deleted.');
create trigger payment_voids_100_take_back before insert on public.payment_voids
  for each row execute function private.tg_payment_voids__take_back();

create function private.tg_refunds__return() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders := private.lock_order_of_money(new.order_id, 'order_id');
  v_left bigint := v_order.amount_paid - v_order.amount_refunded;
begin
  if new.amount <= 0 then
    perform private.refuse_broken('refunds_amount_is_positive', to_jsonb(new));
  elsif v_order.status <> 'cancelled' and (v_order.status = 'pending' or v_order.amount_paid < v_order.total) then
    perform private.refuse(
      409, 'payment_due', 'This order still has an amount due.', 'order_id', jsonb_build_object('status', v_order.status),
      'Cancel the order first, or void the payment if it was recorded by mistake.'
    );
  elsif v_left = 0 then
    perform private.refuse(
      409, 'nothing_refundable', 'All payments of this order are already refunded.', 'order_id',
      hint => case when v_order.amount_refunded > 0
        then 'A refund cannot be voided. If the bank sent it back, note that in your books and pay it again without a second record.'
      end
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The currency of the refund differs from that of the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_left then
    perform private.refuse(
      409, 'refund_too_high', 'The refund is more than the amount paid and not yet refunded.', 'amount',
      jsonb_build_object('amount_left', v_left), 'Record at most amount_left.'
    );
  elsif new.refunded_at > now() + interval '1 day' then
    perform private.refuse_value(
      'refunded_at', 'refunded_at is more than a day ahead.', 'Record the refund when the money is sent.', to_jsonb(new)
    );
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := v_order.currency;
  update public.orders o set amount_refunded = o.amount_refunded + new.amount where o.id = v_order.id;
  return new;
end
$$;
select private.keep_table('public.refunds', filled => '{organisation_id,event_id,currency}', derived => null,
  append_only => 'Corrections of payments are a log: they are never changed or deleted.');
create trigger refunds_100_return before insert on public.refunds
  for each row execute function private.tg_refunds__return();

create policy payment_voids_select_own on public.payment_voids for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy payment_voids_insert_own on public.payment_voids for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy payment_voids_select_membership on public.payment_voids for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy payment_voids_insert_membership on public.payment_voids for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.payment_voids to scope_orders_read, scope_orders_write, authenticated;
grant insert (payment_id, reason) on public.payment_voids to scope_orders_write, authenticated;

create policy refunds_select_own on public.refunds for select to scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy refunds_insert_own on public.refunds for insert to scope_orders_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy refunds_select_membership on public.refunds for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy refunds_insert_membership on public.refunds for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.refunds to scope_orders_read, scope_orders_write, authenticated;
grant insert (order_id, method, amount, currency, refunded_at, external_reference) on public.refunds
  to scope_orders_write, authenticated;

create function private.payment_json(payment public.payments, voided_at timestamptz) returns json
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
    'voided_at', private.rfc3339(voided_at),
    'created_at', private.rfc3339(payment.created_at)
  );
end
$$;
grant execute on function private.payment_json to scope_orders_read;

create function private.refund_json(refund public.refunds) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'refund',
    'id', refund.id,
    'order_id', refund.order_id,
    'event_id', refund.event_id,
    'method', refund.method,
    'amount', refund.amount,
    'currency', refund.currency,
    'refunded_at', private.rfc3339(refund.refunded_at),
    'external_reference', refund.external_reference,
    'source', refund.source,
    'created_at', private.rfc3339(refund.created_at)
  );
end
$$;
