-- Orders: pending -> completed -> cancelled, or pending -> cancelled. An order completes when nothing is due. One that expired may be
-- pending again: 50-orders/reopening.sql.
-- Its amounts are derived: the totals from its tickets (60-attendees/totals.sql), what was paid, voided and refunded from its payments and
-- their corrections (50-orders/payments.sql).

create type public.order_status as enum ('pending', 'completed', 'cancelled');
create type public.payment_status as enum ('not_required', 'awaiting_payment', 'partially_paid', 'paid', 'refund_due', 'refunded');
create type public.payment_method as enum ('invoice', 'bank_transfer', 'card', 'cash', 'other');
create type public.cancellation_reason as enum ('requested', 'expired', 'event_cancelled');

-- Fillfactor 50 leaves half of each page free: an update then stays on its page and, unless it changes a status or a time that lists
-- filter by, writes to none of the indexes.
create table public.orders (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  reference text not null,
  status public.order_status not null default 'pending',
  payment_status public.payment_status not null default 'not_required',
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  send_email boolean not null default true,
  currency text not null,
  subtotal bigint not null default 0,
  discount_total bigint not null default 0,
  total bigint not null generated always as (subtotal - discount_total) stored,
  amount_paid bigint not null default 0,
  amount_voided bigint not null default 0,
  amount_refunded bigint not null default 0,
  payment_method public.payment_method,
  payment_due_at timestamptz,
  payment_remind_at timestamptz,
  payment_reminded_at timestamptz,
  payment_check_at timestamptz,
  promo_code text,
  promo_code_id uuid,
  source public.request_source not null default private.current_source(),
  completed_at timestamptz,
  cancelled_at timestamptz,
  cancellation_reason public.cancellation_reason,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint orders_pkey primary key (id),
  constraint orders_id_event_id_organisation_id_key unique (id, event_id, organisation_id),
  constraint orders_organisation_id_reference_key unique (organisation_id, reference),
  constraint orders_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  constraint orders_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id)
) with (fillfactor = 50);

-- What holds for every order, whoever writes it, beside what its guard sees to. One function: Postgres plans each check constraint anew for
-- every statement.
create function private.is_sound_order("order" public.orders) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return
    ("order".company is null or private.is_sound_line('company', "order".company, 200))
    and private.is_sound_extra("order".external_id, "order".metadata)
    and "order".subtotal >= "order".discount_total and "order".discount_total >= 0
    -- It held when the order was completed, and neither voids nor refunds change it.
    and ("order".status <> 'completed' or "order".amount_paid + "order".amount_voided >= "order".subtotal - "order".discount_total)
    and "order".amount_voided >= 0 and "order".amount_refunded between 0 and "order".amount_paid
    and "order".payment_due_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ("order".status = 'cancelled') = ("order".cancellation_reason is not null);
end
$$;
grant execute on function private.is_sound_order to api_key, authenticated;
alter table public.orders add constraint orders_are_sound check (private.is_sound_order(orders));
comment on table public.orders is 'Registrations: the contact, and the amounts due and paid. The people who come are its attendees.';
comment on column public.orders.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.orders.organisation_id is 'The organisation that it belongs to.';
comment on column public.orders.event_id is 'The event that it belongs to.';
comment on column public.orders.status is 'pending, completed when nothing is due, or cancelled.';
comment on column public.orders.payment_status is 'Follows from status and amounts. Kept by Usher.';
comment on column public.orders.name is 'Name of the contact, who is the buyer.';
comment on column public.orders.email is 'E-mail address of the contact.';
comment on column public.orders.email_lower is 'The address in lower case, for look-ups. Generated.';
comment on column public.orders.company is 'Company of the contact.';
comment on column public.orders.currency is 'ISO 4217 code, three capital letters.';
comment on column public.orders.total is 'subtotal minus discount_total. Generated.';
comment on column public.orders.promo_code_id is 'The promo code that was used. Kept by Usher.';
comment on column public.orders.source is 'Where it came from: the REST API, MCP, or Studio.';
comment on column public.orders.completed_at is 'When it was completed. Kept by Usher.';
comment on column public.orders.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.orders.cancellation_reason is 'Why it was cancelled: requested by somebody, expired unpaid, or event_cancelled. Kept by Usher.';
comment on column public.orders.external_id is 'The organiser''s own identifier, unique within the organisation. A cancelled order gives it to one that is made under it by the API.';
comment on column public.orders.metadata is 'The organiser''s own flat object: at most 50 keys.';
comment on column public.orders.version is 'Number of edits; the ETag over REST. Kept by Usher.';
comment on column public.orders.created_at is 'When the row was added.';
comment on column public.orders.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.orders.reference is 'Short code that can be read over the telephone: no I, L, O or U. Generated by Usher.';
comment on column public.orders.send_email is 'Whether its tickets are e-mailed to the attendees.';
comment on column public.orders.amount_paid is 'Sum of the payments that are not voided, not edited.';
comment on column public.orders.amount_voided is 'Sum of the payments that were voided, not edited.';
comment on column public.orders.amount_refunded is 'Sum of the refunds, not edited. What is due is total, less amount_paid, plus amount_refunded.';
comment on column public.orders.subtotal is 'Sum of the prices of its tickets, not edited. In minor units of currency, like all amounts. A cancelled order keeps its last value.';
comment on column public.orders.discount_total is 'Sum of the discounts of its tickets, not edited.';
comment on column public.orders.payment_method is 'How it is paid. Empty: its tickets are complimentary. Once there is a payment: the method of the latest.';
comment on column public.orders.payment_due_at is 'When it is to be paid by. After that a pending order is cancelled as expired. Empty: no deadline. Set from payment_due_days of the event; change it to give more time. One that has expired: call reopen_order.';
comment on column public.orders.payment_remind_at is 'When the buyer is to be reminded of payment_due_at; empty once they were. Kept by Usher.';
comment on column public.orders.payment_reminded_at is 'When the buyer was last reminded, by Usher or by hand; empty once payment_due_at is another. Kept by Usher.';
comment on column public.orders.payment_check_at is 'When the courier next looks at the deadline: to remind, then to cancel. Kept by Usher.';
comment on column public.orders.promo_code is 'The code that the buyer gave; case does not matter. Needs a payment method.';

create unique index orders_organisation_id_external_id_key on public.orders (organisation_id, external_id)
  where external_id is not null;
create index orders_promo_code_id_idx on public.orders (promo_code_id) where promo_code_id is not null;
-- For private.page_of_orders.
create index orders_organisation_id_states_idx on public.orders (organisation_id, status, payment_status, id);
create index orders_event_id_states_idx on public.orders (event_id, status, payment_status, id);
create index orders_organisation_id_email_lower_idx on public.orders (organisation_id, email_lower, id);
create index orders_organisation_id_updated_at_idx on public.orders (organisation_id, updated_at, id);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('orders', 'name', '"Erased"', 'name'),
  ('orders', 'email', '"erased@erased.invalid"', 'email'),
  ('orders', 'company', 'null', 'company'),
  ('orders', 'external_id', 'null', 'external_id'),
  ('orders', 'metadata', '{}', 'metadata');

-- Whether nothing is due. An order that is to be paid completes only once it has tickets.
-- The generated column total has no value yet in a BEFORE trigger, hence the difference.
create function private.is_settled("order" public.orders) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  -- Statements of their own: an expression that contains a query costs every order, even where the query is not run.
  if "order".amount_paid - "order".amount_refunded < "order".subtotal - "order".discount_total then
    return false;
  elsif "order".payment_method is null then
    return true;
  end if;
  return exists (select from public.attendees a where a.order_id = "order".id);
end
$$;

-- What is still to be paid: what the tickets cost, less the money that was received and not returned. Nothing of a cancelled order.
create function private.amount_due("order" public.orders) returns bigint
language plpgsql immutable set search_path = ''
as $$
begin
  return case "order".status when 'cancelled' then 0 else greatest(
    "order".subtotal - "order".discount_total - "order".amount_paid + "order".amount_refunded,
    0
  ) end;
end
$$;
grant execute on function private.amount_due to scope_attendees_write, scope_orders_read, scope_orders_write, authenticated;

-- What was received beyond what is owed, and not refunded yet: everything of a cancelled order.
create function private.amount_refundable("order" public.orders) returns bigint
language plpgsql immutable set search_path = ''
as $$
begin
  return greatest(
    "order".amount_paid - "order".amount_refunded
      - case "order".status when 'cancelled' then 0 else "order".subtotal - "order".discount_total end,
    0
  );
end
$$;
grant execute on function private.amount_refundable to scope_attendees_write, scope_orders_read, scope_orders_write;

-- What cancelling an order would add to it.
create function private.refundable_if_cancelled("order" public.orders) returns bigint
language plpgsql immutable set search_path = ''
as $$
begin
  return "order".amount_paid - "order".amount_refunded - private.amount_refundable("order");
end
$$;

-- Whether this transaction is reopening the order: see private.reopen_order.
create function private.is_reopening(order_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return current_setting('usher.reopening', true) is not distinct from order_id::text;
end
$$;

-- Security definer: it reads events, promo codes and references beyond what a registering key may see.
create function private.tg_orders__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_holder public.orders;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_event_shared(new.event_id);
    if private.is_foreign(v_event.organisation_id) then
      perform private.refuse_not_found('event_id');
    end if;
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      select o.* into v_holder
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
      if v_holder.status = 'cancelled' and v_holder.amount_paid = v_holder.amount_refunded then
        -- As of a cancelled attendee: see tg_attendees__guard. Money that is to be returned is looked up by the identifier.
        update public.orders o set external_id = null where o.id = v_holder.id and o.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', v_holder.id, v_holder.created_at);
      end if;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid, new.amount_voided, new.amount_refunded) <> (0, 0, 0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(
        new.reference, new.promo_code_id, new.completed_at, new.cancelled_at, new.cancellation_reason, new.payment_remind_at,
        new.payment_reminded_at, new.payment_check_at
      ) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'amount_voided', 0, 'amount_refunded', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null,
        'cancellation_reason', null, 'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      if new.payment_method is null then
        perform private.refuse_value('promo_code', 'A promo code needs a payment method.', 'Send payment_method, or leave promo_code out.');
      end if;
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
  else
    -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.amount_voided, new.amount_refunded) <> (old.amount_voided, old.amount_refunded) then
        perform private.refuse(
          409, 'read_only_field', 'amount_voided and amount_refunded are added up from rows of their own and cannot be edited.', 'amount_refunded',
          hint => 'Add a row to payment_voids or refunds instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'subtotal and discount_total are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
          hint => 'Create a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) and not (old.cancellation_reason = 'expired' and new.status = 'pending' and private.is_reopening(new.id)) then
      perform private.refuse(
        409, 'invalid_transition',
        case when old.cancellation_reason = 'expired'
          then 'The status of an order that has expired is changed by reopen_order alone.'
          else 'An order cannot go from its present status to this one.'
        end,
        'status', jsonb_build_object('from', old.status, 'to', new.status),
        case when old.cancellation_reason = 'expired'
          then 'Call reopen_order: it makes an order that has expired pending again, while there are places.'
          else 'Allowed: pending to completed or cancelled; completed to cancelled.'
        end
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;

  -- Derived fields: completion, payment status and timestamps.
  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded = new.amount_paid then 'refunded'
    else 'paid'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when new.status <> 'cancelled' then null
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    else now()
  end;
  -- The reason comes with the cancellation; expired has to be true.
  if tg_op = 'UPDATE' and pg_trigger_depth() = 1 and new.cancellation_reason is distinct from old.cancellation_reason
    and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
      is distinct from ('cancelled', 'expired', 'pending', true) then
    perform private.refuse(
      409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'cancellation_reason',
      hint => 'Set status to cancelled instead.'
    );
  end if;
  new.cancellation_reason := case when new.status = 'cancelled' then coalesce(new.cancellation_reason, 'requested') end;
  if tg_op = 'UPDATE'
    and (
      new.name, new.email, new.company, new.status, new.subtotal, new.amount_paid, new.amount_refunded, new.payment_due_at, new.external_id,
      new.metadata
    ) is distinct from (
      old.name, old.email, old.company, old.status, old.subtotal, old.amount_paid, old.amount_refunded, old.payment_due_at, old.external_id,
      old.metadata
    ) then
    new.version := old.version + 1;
  end if;
  return new;
end
$$;
create trigger orders_010_blank_is_empty before insert or update on public.orders
  for each row when (pg_trigger_depth() = 0 and private.is_by_hand())
  execute function private.tg__take_blank_as_empty('event_id', 'name', 'email');
create trigger orders_800_explain before insert or update on public.orders
  for each row when (pg_trigger_depth() = 0 and private.is_by_hand())
  execute function private.tg__explain_mistakes();
create trigger orders_050_fixed
  before update of organisation_id, event_id, reference, currency, promo_code, promo_code_id on public.orders
  for each row execute function private.tg__assert_unchanged(
    'organisation_id', 'event_id', 'reference', 'currency', 'promo_code', 'promo_code_id'
  );
create trigger orders_050_derived
  before update of payment_status, payment_remind_at, payment_check_at, completed_at, cancelled_at, version, created_at, updated_at
  on public.orders
  for each row execute function private.tg__assert_derived_untouched(
    'Record a payment, or set status to cancelled, instead.',
    'payment_status', 'payment_remind_at', 'payment_check_at', 'completed_at', 'cancelled_at', 'version', 'created_at', 'updated_at'
  );
create trigger orders_100_in_use before delete on public.orders
  for each row execute function private.tg__assert_not_in_use(
    'The order is in use: it has attendees or payments.', 'Cancel it instead: set its status to cancelled.',
    'attendees.order_id', 'payments.order_id'
  );
create trigger orders_100_guard before insert or update on public.orders
  for each row execute function private.tg_orders__guard();
create trigger orders_900_updated_at before update on public.orders
  for each row execute function private.tg__set_updated_at('email_lower', 'total');
revoke all on public.orders from anon, authenticated, service_role;

alter table public.orders enable row level security;
-- A registering key sees only the order that its own transaction creates.
create policy orders_select_new on public.orders for select to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()) and created_at = now());
create policy orders_select_own on public.orders for select to scope_orders_read, scope_orders_write, scope_attendees_read
  using (organisation_id = (select private.current_organisation_id()));
create policy orders_update_own on public.orders for update to scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy orders_insert_own on public.orders for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy orders_select_membership on public.orders for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy orders_insert_membership on public.orders for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy orders_update_membership on public.orders for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.orders to scope_orders_read, scope_orders_write, scope_attendees_write, authenticated;
-- list_attendees finds attendees by the reference of their order.
grant select (id, organisation_id, reference) on public.orders to scope_attendees_read;
grant update (status, payment_due_at) on public.orders to scope_orders_write;
grant insert (
  id, organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
) on public.orders to scope_attendees_write;
grant insert (
  organisation_id, event_id, name, email, company, send_email, payment_method, payment_due_at, promo_code, external_id, metadata
) on public.orders to authenticated;
grant update (name, email, company, status, payment_due_at, external_id, metadata) on public.orders to authenticated;

create function private.order_json("order" public.orders, attendees json, payments json, refunds json default '[]') returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'order',
    'id', "order".id,
    'event_id', "order".event_id,
    'reference', "order".reference,
    'status', "order".status,
    'payment_status', "order".payment_status,
    'name', "order".name,
    'email', "order".email,
    'company', "order".company,
    'currency', "order".currency,
    'subtotal', "order".subtotal,
    'discount_total', "order".discount_total,
    'total', "order".total,
    'amount_paid', "order".amount_paid,
    'amount_due', private.amount_due("order"),
    'amount_refunded', "order".amount_refunded,
    'amount_refundable', private.amount_refundable("order"),
    'payment_method', "order".payment_method,
    'payment_due_at', private.rfc3339("order".payment_due_at),
    'payment_reminded_at', private.rfc3339("order".payment_reminded_at),
    'promo_code', "order".promo_code,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'refunds', refunds,
    'completed_at', private.rfc3339("order".completed_at),
    'cancelled_at', private.rfc3339("order".cancelled_at),
    'cancellation_reason', "order".cancellation_reason,
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', private.rfc3339("order".created_at),
    'updated_at', private.rfc3339("order".updated_at)
  );
end
$$;
grant execute on function private.order_json to scope_attendees_write, scope_orders_read, scope_orders_write;
