-- The rest of the surface: registrations with money, QR codes of tickets, webhook endpoints and the outbox.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.

-- In one transaction, as the Supabase CLI applies it: it rewrites orders and attendees, and whoever registers waits.
-- squawk-ignore-file ban-drop-not-null, constraint-missing-not-valid, adding-foreign-key-constraint, changing-column-type, adding-not-nullable-field, require-concurrent-index-creation
set local lock_timeout = '5s';
set local statement_timeout = '60s';

alter table public.ticket_types
  alter column max_per_order drop not null,
  alter column max_per_order drop default;

-- Payments wrote one of the enum; a person may have written anything.
alter table public.orders alter column payment_method type public.payment_method using case
  when payment_method in ('invoice', 'bank_transfer', 'card', 'cash') then payment_method
  when payment_method is not null then 'other'
end::public.payment_method;
alter table public.orders
  add column promo_code text,
  add column promo_code_id uuid;
alter table public.orders
  add constraint orders_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id),
  add constraint orders_promo_code_needs_a_payment_method check (promo_code is null or payment_method is not null);

alter table public.attendees
  add column price bigint not null default 0,
  add column discount bigint not null default 0,
  add column currency text,
  add column promo_code_id uuid;

-- What is there already: the currency of its order, and the money of an order in equal parts on the tickets that stand, or
-- where none does, on all of them. No triggers: nothing happens to anybody.
alter table public.orders disable trigger user;
alter table public.attendees disable trigger user;
update public.orders set payment_method = 'invoice' where payment_method is null and subtotal > 0;
update public.attendees a set currency = o.currency from public.orders o where a.order_id = o.id;
update public.attendees a
set price = o.subtotal / l.tickets + (l.place <= o.subtotal % l.tickets)::integer,
  discount = o.discount_total / l.tickets + (l.place <= o.discount_total % l.tickets)::integer
from public.orders o
join (
  select
    t.id,
    t.order_id,
    row_number() over (partition by t.order_id order by t.id) as place,
    count(*) over (partition by t.order_id) as tickets
  from public.attendees t
  where t.status <> 'cancelled'
    or not exists (select from public.attendees s where s.order_id = t.order_id and s.status <> 'cancelled')
) l on l.order_id = o.id
where a.id = l.id and o.subtotal > 0;
-- An order that has lost its last ticket is cancelled.
update public.orders o
set status = 'cancelled',
  cancelled_at = now(),
  payment_status = case when o.amount_paid > 0 then 'refund_due' else 'not_required' end::public.payment_status
where o.status <> 'cancelled'
  and exists (select from public.attendees a where a.order_id = o.id)
  and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
alter table public.attendees enable trigger user;
alter table public.orders enable trigger user;

alter table public.attendees alter column currency set not null;
alter table public.attendees
  add constraint attendees_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id),
  add constraint attendees_discount_is_at_most_the_price check (discount between 0 and price);

drop function api.register_attendee(uuid, uuid, text, text, text, boolean, text, text);

drop function private.attendee_json(public.attendees);

-- UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits of what is left of the microseconds (its method 3), then
-- random. So ids sort by creation, also the guests of one registration, and keyset pages walk them. PostgreSQL has its own
-- from version 18 on.
create or replace function private.uuid_v7() returns uuid
language plpgsql volatile set search_path = ''
as $$
declare
  v_microseconds bigint := extract(epoch from clock_timestamp()) * 1000000;
begin
  return (
    lpad(to_hex(v_microseconds / 1000), 12, '0')
    || '7'
    || lpad(to_hex(v_microseconds % 1000 * 4096 / 1000), 3, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 17)
  )::uuid;
end
$$;

-- What the calling key may do, as of now.
create or replace function private.current_scopes() returns public.api_scope[]
language plpgsql stable set search_path = ''
as $$
begin
  return (select k.scopes from public.api_keys k where k.id = private.current_api_key_id());
end
$$;

grant execute on function private.current_scopes() to api_key;

-- Security definer: it counts orders and tickets that the editing role may not be allowed to read.
create or replace function private.tg_events__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.close_gate(new.id);
    end if;

    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
      );
    end if;

    if old.status = 'draft' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity and new.capacity > 0 and new.capacity < private.places_taken(new.id) then
      perform private.refuse(
        409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
        jsonb_build_object('places_taken', private.places_taken(new.id))
      );
    end if;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- The list of zones is read from files, in some 20 ms: a zone that an event is in already is one.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- The moments belong to the status; nobody sets them by hand.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  new.cancelled_at := case when new.status = 'cancelled' then case when old.status = 'cancelled' then old.cancelled_at else now() end end;
  new.completed_at := case when new.status = 'completed' then case when old.status = 'completed' then old.completed_at else now() end end;
  return new;
end
$$;

comment on column public.ticket_types.min_per_order is 'How many of them an order that has any must have at least.';

comment on column public.ticket_types.max_per_order is 'How many of them an order may have. Empty: no limit.';

-- places_left: what the event's own capacity still allows, or null.
create or replace function private.ticket_type_json(ticket_type public.ticket_types, currency text, places_left bigint)
returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'ticket_type',
      'id', ticket_type.id,
      'event_id', ticket_type.event_id,
      'name', ticket_type.name,
      'description', ticket_type.description,
      'price', ticket_type.price,
      'currency', currency,
      'quantity', ticket_type.quantity,
      'quantity_sold', ticket_type.quantity_sold,
      'quantity_available', a.available,
      'min_per_order', ticket_type.min_per_order,
      'max_per_order', ticket_type.max_per_order,
      'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
      'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
      'visibility', ticket_type.visibility,
      'status', ticket_type.status,
      'sales_status', case
        when ticket_type.status = 'archived' then 'archived'
        when now() < ticket_type.sales_start_at then 'upcoming'
        when now() >= ticket_type.sales_end_at then 'ended'
        when a.available = 0 then 'sold_out'
        else 'on_sale'
      end,
      'position', ticket_type.position,
      'external_id', ticket_type.external_id,
      'metadata', ticket_type.metadata,
      'version', ticket_type.version,
      'created_at', private.rfc3339(ticket_type.created_at),
      'updated_at', private.rfc3339(ticket_type.updated_at)
    )
    from (
      -- The lesser of what there is; null, which least passes over, is no limit. greatest would pass it over, too.
      select least(
        ticket_type.quantity - ticket_type.quantity_sold,
        case when places_left < 0 then 0 else places_left end
      ) as available
    ) a
  );
end
$$;

create or replace function api.create_ticket_type(
  event_id uuid,
  name text,
  description text default null,
  price bigint default null,
  quantity integer default null,
  min_per_order integer default null,
  max_per_order integer default null,
  sales_start_at timestamptz default null,
  sales_end_at timestamptz default null,
  visibility public.ticket_type_visibility default null,
  "position" integer default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_ticket_type public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_ticket_type.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.ticket_types (
    organisation_id, event_id, name, description, price, quantity, min_per_order, max_per_order,
    sales_start_at, sales_end_at, visibility, position, external_id, metadata
  )
  values (
    v_organisation_id, create_ticket_type.event_id, create_ticket_type.name, create_ticket_type.description,
    coalesce(create_ticket_type.price, 0), create_ticket_type.quantity,
    coalesce(create_ticket_type.min_per_order, 1), create_ticket_type.max_per_order,
    create_ticket_type.sales_start_at, create_ticket_type.sales_end_at,
    coalesce(create_ticket_type.visibility, 'public'), coalesce(create_ticket_type.position, 0),
    create_ticket_type.external_id, coalesce(create_ticket_type.metadata, '{}')
  )
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 201, 'data', private.ticket_type_json(v_ticket_type))
  );
end
$$;

-- Takes uses of a code, or gives them back, exactly, under any concurrency: the update of the row is what makes two buyers
-- of the last use wait for one another.
-- Security definer: counting is no right of whoever registers.
create or replace function private.move_redemptions(promo_code_id uuid, uses integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_promo_code public.promo_codes;
begin
  update public.promo_codes c set times_redeemed = c.times_redeemed + uses
  where c.id = move_redemptions.promo_code_id
    and (uses < 0 or c.max_redemptions is null or c.times_redeemed + uses <= c.max_redemptions)
  returning * into v_promo_code;
  if not found then
    perform private.refuse(
      409, 'promo_code_used_up', 'The promo code has not enough uses left for these tickets.', 'promo_code',
      hint => 'Register without it, or raise its max_redemptions.'
    );
  end if;

  if uses < 0 then
    return;
  elsif v_promo_code.status = 'disabled' then
    perform private.refuse(
      409, 'promo_code_disabled', 'The promo code is disabled.', 'promo_code', hint => 'Register without it, or enable it.'
    );
  elsif now() < v_promo_code.valid_from then
    perform private.refuse(
      409, 'promo_code_not_started', 'The promo code is not valid yet.', 'promo_code',
      jsonb_build_object('valid_from', private.rfc3339(v_promo_code.valid_from))
    );
  elsif now() >= v_promo_code.valid_until then
    perform private.refuse(
      409, 'promo_code_expired', 'The promo code is not valid any more.', 'promo_code',
      jsonb_build_object('valid_until', private.rfc3339(v_promo_code.valid_until))
    );
  end if;
end
$$;

comment on column public.orders.subtotal is 'In minor units of currency, like all amounts. Added up from the prices of its tickets, not edited; once it is cancelled, as it was then.';

comment on column public.orders.discount_total is 'Added up from the discounts of its tickets, not edited.';

comment on column public.orders.payment_method is 'How it is paid. Empty: its tickets are complimentary. Once there is a payment, how the latest came in.';

comment on column public.orders.promo_code is 'The code the buyer gave, in upper or lower case; it needs a payment method.';

create index orders_promo_code_id_idx on public.orders (promo_code_id);

-- Whether nothing is due: an order that is to be paid completes with its tickets, not before it has any.
-- A generated column has no value yet in a BEFORE trigger, hence the sum in place of total.
create or replace function private.is_settled("order" public.orders) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return "order".amount_paid >= "order".subtotal - "order".discount_total
    and ("order".payment_method is null or exists (select from public.attendees a where a.order_id = "order".id));
end
$$;

-- Security definer: it reads event, promo code and references beyond what a registering key may see.
create or replace function private.tg_orders__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
begin
  if tg_op = 'INSERT' then
    v_event := private.pass_gate(new.event_id);
    perform private.refuse_foreign(v_event.organisation_id, 'event_id');
    if v_event.status <> 'published' then
      perform private.refuse_unpublished(v_event.status);
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;
    new.status := 'pending';
    new.subtotal := 0;
    new.discount_total := 0;
    new.amount_paid := 0;

    if new.promo_code is null then
      new.promo_code_id := null;
    else
      -- As the organiser writes it. Whether it is valid is asked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    loop
      new.reference := private.random_code(8);
      exit when not exists (
        select from public.orders o where o.organisation_id = new.organisation_id and o.reference = new.reference
      );
    end loop;
  else
    -- Depth 1 is a statement of a person or an API; the sums themselves come from triggers, one deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'The totals are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: its tickets have their prices by it.', 'payment_method',
          hint => 'Make a new order.'
        );
      end if;
    end if;
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes with its tickets, when nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' and new.amount_paid = 0 then 'awaiting_payment'
    when new.status = 'pending' then 'partially_paid'
    when new.status = 'cancelled' and new.amount_paid > 0 then 'refund_due'
    when new.status = 'cancelled' then 'not_required'
    when new.amount_paid > new.subtotal - new.discount_total then 'refund_due'
    when new.amount_paid > 0 then 'paid'
    else 'not_required'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create or replace trigger orders_050_fixed
  before update of organisation_id, event_id, reference, currency, promo_code, promo_code_id on public.orders
  for each row execute function private.tg__refuse_change(
    'organisation_id', 'event_id', 'reference', 'currency', 'promo_code', 'promo_code_id'
  );

create or replace trigger orders_900_version before update of
    name, email, company, status, subtotal, amount_paid, external_id, metadata
  on public.orders
  for each row execute function private.tg__count_version();

grant insert (
  organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
) on public.orders to scope_attendees_write;

create or replace function private.order_json("order" public.orders, attendees json, payments json) returns json
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
    'amount_due', case when "order".status = 'cancelled' then 0 else greatest("order".total - "order".amount_paid, 0) end,
    'payment_method', "order".payment_method,
    'promo_code', "order".promo_code,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'completed_at', private.rfc3339("order".completed_at),
    'cancelled_at', private.rfc3339("order".cancelled_at),
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', private.rfc3339("order".created_at),
    'updated_at', private.rfc3339("order".updated_at)
  );
end
$$;

comment on column public.attendees.price is 'What the ticket cost when it was registered, in minor units; 0 where the order has no payment method.';

comment on column public.attendees.discount is 'What the promo code took off the price, rounded half up.';

create index attendees_promo_code_id_idx on public.attendees (promo_code_id);

-- Security definer: it reads order and ticket type beyond what a registering key may see.
create or replace function private.tg_attendees__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  if tg_op = 'INSERT' then
    -- The gate before the order, as everywhere; then the order, so that it is not cancelled or completed past a ticket it
    -- does not know of, and its totals are added up by one at a time.
    perform private.pass_gate(o.event_id) from public.orders o where o.id = new.order_id;
    select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
    perform private.refuse_foreign(v_order.organisation_id, 'order_id');
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Make a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.checked_in_at := null;
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.ticket_email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is kept by the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.ticket_code is null then
      -- A ticket is re-issued: the new code goes to whoever holds it now.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A ticket that was used or cancelled cannot be issued anew.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person anew.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' then 'not_requested'
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.ticket_email_status;
    elsif new.ticket_code <> old.ticket_code then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are given, not chosen.', 'ticket_code', hint => 'Clear it to have a new one given.'
      );
    end if;

    if new.status <> old.status then
      if old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
        perform private.refuse(
          409, 'invalid_transition', 'An attendee cannot go from its present status to this one.', 'status',
          jsonb_build_object('from', old.status, 'to', new.status),
          'Allowed: awaiting_payment to active or cancelled; active to cancelled.'
        );
      end if;
      if new.status = 'active' then
        select o.* into v_order from public.orders o where o.id = new.order_id for share;
        if v_order.status <> 'completed' then
          perform private.refuse(
            409, 'payment_due', 'The ticket is good once its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and new.status <> 'active' then
      perform private.refuse_inactive_ticket(new.status);
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.ticket_email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;
  end if;

  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create or replace trigger attendees_050_fixed
  before update of organisation_id, event_id, order_id, price, discount, currency, promo_code_id on public.attendees
  for each row execute function private.tg__refuse_change(
    'organisation_id', 'event_id', 'order_id', 'price', 'discount', 'currency', 'promo_code_id'
  );

grant insert (
  organisation_id, event_id, order_id, ticket_type_id, name, email, company, external_id, metadata
) on public.attendees to scope_attendees_write;

-- Nobody is handed a ticket that would not let them in.
create or replace function private.refuse_inactive_ticket(status public.attendee_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'ticket_not_active', 'Only the ticket of an active attendee is handed out.', 'status',
    jsonb_build_object('status', status), 'A cancelled ticket stays cancelled; an unpaid one is good when it is paid.'
  );
end
$$;

grant execute on function private.refuse_inactive_ticket(public.attendee_status) to scope_attendees_read, scope_attendees_write;

-- The ticket code lets people in, and is told only to those who handle tickets.
create or replace function private.attendee_json(attendee public.attendees, with_code boolean default true) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'attendee',
    'id', attendee.id,
    'order_id', attendee.order_id,
    'event_id', attendee.event_id,
    'ticket_type_id', attendee.ticket_type_id,
    'name', attendee.name,
    'email', attendee.email,
    'company', attendee.company,
    'price', attendee.price,
    'discount', attendee.discount,
    'currency', attendee.currency,
    'status', attendee.status,
    'ticket_code', case when with_code then attendee.ticket_code end,
    'checked_in_at', private.rfc3339(attendee.checked_in_at),
    'ticket_email', json_build_object(
      'status', attendee.ticket_email_status,
      'sent_at', private.rfc3339(attendee.ticket_email_sent_at),
      'last_error', attendee.ticket_email_last_error
    ),
    'cancelled_at', private.rfc3339(attendee.cancelled_at),
    'external_id', attendee.external_id,
    'metadata', attendee.metadata,
    'version', attendee.version,
    'created_at', private.rfc3339(attendee.created_at),
    'updated_at', private.rfc3339(attendee.updated_at)
  );
end
$$;

grant execute on function private.attendee_json(public.attendees, boolean) to scope_attendees_read, scope_attendees_write;

-- Totals: what a ticket costs, and what follows from the tickets of an order: how many there may be, its sums, and the uses of
-- its promo code. Kept by triggers on attendees, from wherever a row is changed.

-- The price of a ticket, and what the promo code of its order takes off it: half up, on each ticket, so that an order is
-- always the sum of its lines. A code is used by the tickets it makes cheaper, and by no others.
create or replace function private.price_attendee(attendee public.attendees, "order" public.orders) returns public.attendees
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_percent_off numeric;
begin
  attendee.currency := "order".currency;
  attendee.price := 0;
  attendee.discount := 0;
  attendee.promo_code_id := null;
  if "order".payment_method is null then
    return attendee;
  end if;

  attendee.price := coalesce((select t.price from public.ticket_types t where t.id = attendee.ticket_type_id), 0);
  if "order".promo_code_id is not null and attendee.price > 0 then
    select c.percent_off into v_percent_off
    from public.promo_codes c
    where c.id = "order".promo_code_id
      and (c.ticket_type_ids = '{}' or attendee.ticket_type_id = any (c.ticket_type_ids));
    if found then
      attendee.promo_code_id := "order".promo_code_id;
      attendee.discount := round(attendee.price * v_percent_off / 100);
    end if;
  end if;
  return attendee;
end
$$;

-- How many of a ticket type an order may have, or must: asked once a statement, so that a group comes in as one.
create or replace function private.tg_attendees__limit_per_order() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  select t.* into v_ticket_type
  from (select distinct n.order_id, n.ticket_type_id from new_rows n) n
  join public.ticket_types t on t.id = n.ticket_type_id
  where (t.min_per_order > 1 or t.max_per_order is not null)
    and (
      select count(*) from public.attendees a
      where a.order_id = n.order_id and a.ticket_type_id = t.id and a.status <> 'cancelled'
    ) not between t.min_per_order and coalesce(t.max_per_order, 2147483647)
  limit 1;
  if found then
    perform private.refuse(
      409, 'quantity_not_allowed', 'An order cannot have this number of tickets of this type.', 'ticket_type_id',
      jsonb_build_object(
        'ticket_type_id', v_ticket_type.id,
        'min_per_order', v_ticket_type.min_per_order,
        'max_per_order', v_ticket_type.max_per_order
      ),
      'Register from min_per_order to max_per_order of them in one order.'
    );
  end if;
  return null;
end
$$;

create or replace trigger attendees_300_limit_per_order after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__limit_per_order();

create type private.use_move as (promo_code_id uuid, uses integer);

-- Keeps what follows from the lines of an order: uses of promo codes, and its totals. An order that loses its last ticket
-- is cancelled; one that is cancelled keeps the totals it had. Security definer: adding up is no right of whoever registers.
create or replace function private.tg_attendees__add_up() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order_ids uuid[];
  v_uses private.use_move[] := '{}';
  v_move record;
begin
  if tg_op = 'INSERT' then
    v_order_ids := array(select distinct n.order_id from new_rows n where n.status = 'awaiting_payment' or n.price > 0);
    v_uses := array(select row(n.promo_code_id, 1)::private.use_move from new_rows n where n.promo_code_id is not null);
  elsif tg_op = 'DELETE' then
    v_order_ids := array(select distinct o.order_id from old_rows o where o.status <> 'cancelled');
    v_uses := array(
      select row(o.promo_code_id, -1)::private.use_move
      from old_rows o
      where o.promo_code_id is not null and o.status <> 'cancelled'
    );
  else
    -- Who is cancelled and was not. No join of the two: its plan would be that of the first call, which sees one row, and a
    -- nested loop over the ten thousand of a cancelled event takes minutes.
    select coalesce(array_agg(distinct c.order_id), '{}'),
      coalesce(array_agg(row(c.promo_code_id, -1)::private.use_move) filter (where c.promo_code_id is not null), '{}')
    into v_order_ids, v_uses
    from (
      select n.id, n.order_id, n.promo_code_id from new_rows n where n.status = 'cancelled'
      except
      select o.id, o.order_id, o.promo_code_id from old_rows o where o.status = 'cancelled'
    ) c;
  end if;

  if v_order_ids <> '{}' then
    -- Locked before they are added up: an update that waits for a row sees its new version, but goes on with the sums it had.
    perform 1 from public.orders o where o.id = any (v_order_ids) order by o.id for no key update;
    update public.orders o
    set subtotal = s.subtotal, discount_total = s.discount_total
    from (
      select a.order_id, sum(a.price) as subtotal, sum(a.discount) as discount_total
      from public.attendees a
      where a.order_id = any (v_order_ids) and a.status <> 'cancelled'
      group by a.order_id
    ) s
    where o.id = s.order_id
      and o.status <> 'cancelled'
      -- A new ticket may complete an order also where it costs nothing.
      and (tg_op = 'INSERT' and o.status = 'pending' or (o.subtotal, o.discount_total) <> (s.subtotal, s.discount_total));
    if tg_op <> 'INSERT' then
      update public.orders o
      set status = 'cancelled'
      where o.id = any (v_order_ids)
        and o.status <> 'cancelled'
        and not exists (select from public.attendees a where a.order_id = o.id and a.status <> 'cancelled');
    elsif exists (
      select from public.orders o
      where o.id = any (v_order_ids)
        and o.promo_code_id is not null
        and not exists (select from public.attendees a where a.order_id = o.id and a.promo_code_id is not null)
    ) then
      perform private.refuse(
        409, 'promo_code_not_applicable', 'The promo code is not for any of these tickets.', 'promo_code',
        hint => 'Its ticket_type_ids say what it is for; free tickets use no code.'
      );
    end if;
  end if;

  for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
    perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
  end loop;
  return null;
end
$$;

create or replace trigger attendees_400_add_up_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__add_up();

create or replace trigger attendees_400_add_up_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__add_up();

create or replace trigger attendees_400_add_up_delete after delete on public.attendees
  referencing old table as old_rows
  for each statement execute function private.tg_attendees__add_up();

-- Places: an attendee who is not cancelled holds one, of the ticket type and of the event. Counted by triggers on attendees,
-- from wherever a row is changed; no more are taken than there are.

-- Takes places of one ticket type, or gives them back, exactly, under any concurrency. The update of the row is what makes
-- two buyers of the last place wait for one another, so it comes as late in the transaction as it can.
-- Security definer: counting is no right of whoever registers.
create or replace function private.move_places(ticket_type_id uuid, places integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_ticket_type public.ticket_types;
begin
  update public.ticket_types t set quantity_sold = t.quantity_sold + places
  where t.id = move_places.ticket_type_id
    and (places < 0 or t.quantity is null or t.quantity_sold + places <= t.quantity)
  returning * into v_ticket_type;
  if not found then
    perform private.refuse(
      409, 'sold_out', 'There are not enough tickets of this type left.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      hint => 'Choose another ticket type, or raise its quantity.'
    );
  end if;

  if places < 0 then
    return;
  elsif v_ticket_type.status = 'archived' then
    perform private.refuse(
      409, 'ticket_type_archived', 'This ticket type is archived and no longer issued.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id),
      hint => 'Choose an active ticket type.'
    );
  elsif now() < v_ticket_type.sales_start_at then
    perform private.refuse(
      409, 'sales_not_started', 'The sale of this ticket type has not started.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id, 'sales_start_at', private.rfc3339(v_ticket_type.sales_start_at))
    );
  elsif now() >= v_ticket_type.sales_end_at then
    perform private.refuse(
      409, 'sales_ended', 'The sale of this ticket type has ended.', 'ticket_type_id',
      jsonb_build_object('ticket_type_id', ticket_type_id, 'sales_end_at', private.rfc3339(v_ticket_type.sales_end_at))
    );
  end if;
end
$$;

-- Security definer: it adds up the order, which a recording key may not change beyond its status.
create or replace function private.tg_payments__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  if tg_op <> 'INSERT' then
    -- A key may be deleted, and then its payments forget it.
    if tg_op = 'UPDATE' and new.recorded_by is null and to_jsonb(new) - 'recorded_by' = to_jsonb(old) - 'recorded_by' then
      return new;
    end if;
    perform private.refuse(
      409, 'append_only', 'Payments are a log: they are never changed or deleted.', hint => 'Cancel the order to mark what is to be refunded.'
    );
  end if;

  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  perform private.refuse_foreign(v_order.organisation_id, 'order_id');
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

  -- Here and not after the insert, so that a second payment in the same statement finds the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method
  where o.id = v_order.id;
  return new;
end
$$;

-- Reading, paying and cancelling orders. An order is answered with its attendees and payments, so this stands behind all three.

-- The attendees of an order without their ticket codes, which are no business of finance. Its callers have seen to it that
-- the order is theirs to read.
create or replace function private.attendees_of_order_json(order_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select coalesce(json_agg(private.attendee_json(a, with_code => false) order by a.id), '[]')
    from public.attendees a
    where a.order_id = attendees_of_order_json.order_id
  );
end
$$;

-- The same for whoever may read orders. Security definer: a key for orders has no other right to attendees.
create or replace function private.order_attendees_json(order_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  if exists (
    select from public.orders o
    where o.id = order_attendees_json.order_id and o.organisation_id = private.current_organisation_id()
  ) then
    return private.attendees_of_order_json(order_id);
  end if;
  return '[]';
end
$$;

create or replace function api.get_ticket_qr(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_ticket_qr.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  return json_build_object(
    'object', 'ticket_qr',
    'attendee_id', v_attendee.id,
    'event_id', v_attendee.event_id,
    'name', v_attendee.name,
    'ticket_code', v_attendee.ticket_code
  );
end
$$;

comment on function api.get_ticket_qr(uuid) is 'What the QR code of a ticket holds. 404 not_found; 409 ticket_not_active.';

grant execute on function api.get_ticket_qr(uuid) to scope_attendees_read;

-- The order before its attendee, as everywhere: cancelling a ticket changes the totals of its order.
-- Security definer: a key for attendees has no right to orders.
create or replace function private.lock_order_of(attendee_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1
  from public.orders o
  where o.organisation_id = private.current_organisation_id()
    and o.id = (select a.order_id from public.attendees a where a.id = lock_order_of.attendee_id)
  for no key update;
end
$$;

grant execute on function private.lock_order_of(uuid) to scope_attendees_write;

create or replace function api.cancel_attendee(
  attendee_id uuid,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_orders integer;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    perform private.lock_order_of(attendee_id);
    select a.* into v_attendee from public.attendees a where a.id = cancel_attendee.attendee_id for no key update;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    if v_attendee.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This attendee is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    -- The order is cancelled with its last ticket, and costs less without one that had a price.
    v_orders := (v_attendee.price > 0 or not exists (
      select from public.attendees a
      where a.order_id = v_attendee.order_id and a.id <> v_attendee.id and a.status <> 'cancelled'
    ))::integer;
    update public.attendees a set status = 'cancelled' where a.id = v_attendee.id returning * into v_attendee;
    v_outcome := json_build_object(
      'status', 200,
      'effect', json_build_object('dry_run', coalesce(dry_run, false), 'orders', v_orders, 'attendees', 1),
      'data', private.attendee_json(v_attendee)
    );
    if dry_run then
      perform private.undo_dry_run();
    end if;
  exception when sqlstate 'UD001' then
    null; -- Everything above is undone; what it would have answered is kept.
  end;
  if dry_run then
    return v_outcome; -- Nothing happened, so there is nothing to record.
  end if;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome);
end
$$;

comment on function api.cancel_attendee(uuid, boolean, text, text) is
  'Cancels one ticket, gives its place back and takes its price off the order, which is cancelled with its last ticket; or says what that would do: 200. 404 not_found; 409 invalid_transition.';

create or replace function api.resend_ticket(attendee_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = resend_ticket.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;

-- Registering guests: one order with its attendees, complimentary and completed at once, or to be paid and pending until it
-- is. Everything that must hold (event published, places left, sale open, promo code valid) is held by the triggers of
-- orders and attendees, so that a row added in Studio meets the same rules.

-- One guest, named by the fields of their own, or up to 50 in `attendees`, all or none: [{ ticket_type_id, name, email,
-- company, external_id, metadata }]. What a guest of a group leaves out, the ticket type, comes from beside the list; name,
-- e-mail address and company there are the buyer's, who is the first guest unless they are given.
create or replace function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_organisation_id uuid;
  v_foreign record;
  v_order public.orders;
  v_attendees json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group is of 1 to 50 attendees.', 'attendees');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  select g.place - 1 as index, g.guest ? 'ticket_type_id' as names_its_own into v_foreign
  from jsonb_array_elements(v_guests) with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce((g.guest ->> 'ticket_type_id')::uuid, register_attendee.ticket_type_id)
      and t.event_id = register_attendee.event_id
  )
  limit 1;
  if found then
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    v_organisation_id,
    register_attendee.event_id,
    coalesce(register_attendee.name, v_guests #>> '{0,name}'),
    coalesce(register_attendee.email, v_guests #>> '{0,email}'),
    case
      when coalesce(register_attendee.name, register_attendee.email, register_attendee.company) is null
        then v_guests #>> '{0,company}'
      else register_attendee.company
    end,
    coalesce(register_attendee.send_email, true),
    register_attendee.payment_method,
    register_attendee.promo_code,
    register_attendee.external_id,
    coalesce(register_attendee.metadata, '{}')
  )
  returning * into v_order;

  insert into public.attendees (
    organisation_id, event_id, order_id, ticket_type_id, name, email, company, external_id, metadata
  )
  select
    v_organisation_id, v_order.event_id, v_order.id, coalesce(g.ticket_type_id, register_attendee.ticket_type_id),
    g.name, g.email, g.company, g.external_id, coalesce(g.metadata, '{}')
  from jsonb_to_recordset(v_guests) g (
    ticket_type_id uuid, name text, email text, company text, external_id text, metadata jsonb
  );

  -- The tickets decide what there is to pay, and with it whether they are good already.
  if v_order.payment_method is not null then
    select o.* into v_order from public.orders o where o.id = v_order.id;
  end if;
  select json_agg(private.attendee_json(a) order by a.id) into v_attendees
  from public.attendees a
  where a.order_id = v_order.id;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 201, 'data', private.order_json(v_order, v_attendees, '[]'))
  );
end
$$;

comment on function api.register_attendee(uuid, uuid, text, text, text, jsonb, public.payment_method, text, boolean, text, jsonb, text, text) is
  'Registers a guest, or a group of up to 50: 201 with the order and its attendees, complimentary, or to be paid where there is a payment method. 404 not_found; 409 event_not_published, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';

grant execute on function api.register_attendee(uuid, uuid, text, text, text, jsonb, public.payment_method, text, boolean, text, jsonb, text, text)
  to scope_attendees_write;

-- A code read aloud or typed may come in lower case, with blanks or hyphens.
create or replace function private.as_ticket_code(code text) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return upper(regexp_replace(code, '[[:space:]-]', '', 'g'));
end
$$;

grant execute on function private.as_ticket_code(text) to scope_checkin_write;

-- Security definer: it changes the attendee, which a scanning key may not.
create or replace function private.tg_check_ins__judge() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_attendee public.attendees;
begin
  select e.* into v_event from public.events e where e.id = new.event_id;
  perform private.refuse_foreign(v_event.organisation_id, 'event_id');
  new.organisation_id := v_event.organisation_id;
  -- A scanner's clock may be ahead of ours; nobody came in tomorrow.
  new.scanned_at := least(new.scanned_at, now());

  select a.* into v_attendee
  from public.attendees a
  where a.organisation_id = new.organisation_id
    and a.ticket_code = private.as_ticket_code(new.code)
  for no key update;

  new.attendee_id := v_attendee.id;
  new.reason := case
    when v_event.status = 'cancelled' then 'event_cancelled'
    when v_attendee.id is null then 'not_found'
    when v_attendee.event_id <> new.event_id then 'wrong_event'
    when v_attendee.status = 'cancelled' then 'cancelled'
    when v_attendee.status = 'awaiting_payment' then 'unpaid'
    when v_attendee.checked_in_at is not null then 'already_checked_in'
  end::public.check_in_reason;
  new.result := case when new.reason is null then 'accepted' else 'rejected' end::public.check_in_result;
  new.undone_at := null;

  -- Here and not after the insert, so that a second scan in the same statement finds the first.
  if new.result = 'accepted' then
    update public.attendees a set checked_in_at = new.scanned_at where a.id = new.attendee_id;
  end if;
  return new;
end
$$;

-- Whoever cancels an order or pays for it locks it, and then its attendees in whichever order. So a batch, which locks many
-- attendees one after the other, first waits for the gate and the orders, as everywhere, and holds them meanwhile.
-- Security definer: a scanning key has no right to orders.
create or replace function private.lock_orders_of(event_id uuid, codes text[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.pass_gate(event_id);
  perform 1
  from public.orders o
  where o.id in (
    select a.order_id from public.attendees a
    where a.organisation_id = private.current_organisation_id() and a.ticket_code = any (codes)
  )
  order by o.id
  for share;
end
$$;

grant execute on function private.lock_orders_of(uuid, text[]) to scope_checkin_write;

-- Scans of a scanner that was offline, judged in the order in which they were made. Each has an id of the scanner's own, and
-- one that is known already is answered again, so the same batch may be sent until it arrives.
create or replace function api.check_in_batch(
  event_id uuid,
  scans jsonb,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_scan record;
  v_check_in public.check_ins;
  v_known boolean;
  v_results json[] := '{}';
  v_accepted integer := 0;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  if not exists (select from public.events e where e.id = check_in_batch.event_id) then
    perform private.refuse_not_found('event_id');
  end if;

  -- One batch of an event at a time: between looking for a known scan and adding it nobody else may add it.
  perform pg_advisory_xact_lock(3, hashtext(check_in_batch.event_id::text));
  perform private.lock_orders_of(
    event_id, array(select private.as_ticket_code(s ->> 'code') from jsonb_array_elements(scans) s)
  );

  for v_scan in
    select s.*
    from jsonb_to_recordset(scans) as s (scan_id text, code text, scanned_at timestamptz, device text)
    order by s.scanned_at, s.scan_id
  loop
    select c.* into v_check_in
    from public.check_ins c
    where c.event_id = check_in_batch.event_id and c.scan_id = v_scan.scan_id;
    v_known := found;
    if not v_known then
      insert into public.check_ins (event_id, code, device, scan_id, scanned_at)
      values (check_in_batch.event_id, v_scan.code, v_scan.device, v_scan.scan_id, v_scan.scanned_at)
      returning * into v_check_in;
    end if;
    v_accepted := v_accepted + (v_check_in.result = 'accepted')::integer;
    v_results := v_results || json_build_object(
      'scan_id', v_check_in.scan_id,
      'replayed', v_known,
      'check_in', private.check_in_json(v_check_in)
    );
  end loop;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object(
      'status', 200,
      'data', json_build_object(
        'object', 'check_in_batch',
        'event_id', check_in_batch.event_id,
        'accepted', v_accepted,
        'rejected', cardinality(v_results) - v_accepted,
        'results', to_json(v_results)
      )
    )
  );
end
$$;

-- Webhook endpoints: where an organisation wants to hear of what happens, and of which types. Signed with a secret of their
-- own (https://www.standardwebhooks.com), which is shown at creation and rotation and never again.

-- What can happen. The object of a type's name is what its data holds, as the API answers it.
create type public.notification_type as enum (
  'order.created',
  'order.completed',
  'order.cancelled',
  'attendee.checked_in',
  'attendee.check_in_undone',
  'attendee.updated',
  'attendee.cancelled',
  'event.published',
  'event.updated',
  'event.cancelled',
  'webhook_endpoint.test'
);

create type public.webhook_endpoint_status as enum ('enabled', 'disabled');

-- Whoever hears of an object must be allowed to read it.
create or replace function private.scope_to_read(type public.notification_type) returns public.api_scope
language plpgsql immutable set search_path = ''
as $$
begin
  return case split_part(type::text, '.', 1)
    when 'order' then 'orders:read'
    when 'attendee' then 'attendees:read'
    when 'event' then 'events:read'
    else 'events:write'
  end::public.api_scope;
end
$$;

grant execute on function private.scope_to_read(public.notification_type) to scope_events_write;

create table public.webhook_endpoints (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  url text not null,
  description text,
  types public.notification_type[] not null,
  status public.webhook_endpoint_status not null default 'enabled',
  disabled_reason text,
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_endpoints_pkey primary key (id),
  constraint webhook_endpoints_id_organisation_id_key unique (id, organisation_id),
  constraint webhook_endpoints_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  -- No credentials in it, for it is shown in lists. Without TLS only to this machine, where the courier allows that.
  constraint webhook_endpoints_url_is_https check (
    url ~ '^(https://([^][/?#@:[:space:][:cntrl:]]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?([/?#][^[:space:][:cntrl:]]*)?$'
    and length(url) <= 2000
  ),
  constraint webhook_endpoints_description_is_one_line check (
    length(btrim(description)) between 1 and 200 and description !~ '[[:cntrl:]]'
  ),
  constraint webhook_endpoints_types_are_chosen check (
    cardinality(types) > 0 and array_position(types, null) is null and 'webhook_endpoint.test' <> all (types)
  ),
  constraint webhook_endpoints_disabled_reason_is_bounded check (length(disabled_reason) <= 500)
);

comment on table public.webhook_endpoints is 'Addresses that hear of what happens. Set status to disabled to stop sending, delete the row to forget it.';

comment on column public.webhook_endpoints.url is 'An https address. http only for this machine, while developing.';

comment on column public.webhook_endpoints.types is 'What it hears of.';

comment on column public.webhook_endpoints.disabled_reason is 'Why Usher stopped sending. Empty where a person did.';

create index webhook_endpoints_organisation_id_id_idx on public.webhook_endpoints (organisation_id, id desc);

-- One that signs, and for a while after a rotation the one before it.
create table private.webhook_secrets (
  id uuid not null default private.uuid_v7(),
  webhook_endpoint_id uuid not null,
  secret text not null,
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint webhook_secrets_pkey primary key (id),
  constraint webhook_secrets_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id)
    references public.webhook_endpoints (id) on delete cascade,
  constraint webhook_secrets_secret_is_standard check (secret ~ '^whsec_[A-Za-z0-9+/]{43}=$')
);

comment on table private.webhook_secrets is 'What webhooks are signed with. It has to be known to sign, so it is kept as it is, where no role may read it.';

create index webhook_secrets_webhook_endpoint_id_idx on private.webhook_secrets (webhook_endpoint_id);

alter table private.webhook_secrets enable row level security;

-- What an endpoint of a key is told, the key must be allowed to read, also when it changes where that goes.
create or replace function private.require_scopes_to_read(types public.notification_type[]) returns void
language plpgsql stable set search_path = ''
as $$
declare
  v_missing public.api_scope;
begin
  select private.scope_to_read(t) into v_missing
  from unnest(types) t
  where private.scope_to_read(t) <> all (private.current_scopes())
  limit 1;
  if found then
    perform private.refuse(
      403, 'missing_scope', 'The API key lacks a scope that reading what the endpoint hears of needs.', 'types',
      jsonb_build_object('scope', v_missing), 'Use a key that has the scope, or choose other types.'
    );
  end if;
end
$$;

grant execute on function private.require_scopes_to_read(public.notification_type[]) to scope_events_write;

create or replace function private.tg_webhook_endpoints__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- What was owed before is still sent, so the types before count, too. Anybody may make an endpoint be silent.
  if private.current_api_key_id() is not null then
    if tg_op = 'INSERT' then
      perform private.require_scopes_to_read(new.types);
    elsif (new.url, new.types) is distinct from (old.url, old.types) or (old.status = 'disabled' and new.status = 'enabled') then
      perform private.require_scopes_to_read(new.types || old.types);
    end if;
  end if;
  new.types := array(select distinct t from unnest(new.types) t order by t);
  if new.status = 'enabled' then
    new.disabled_reason := null;
  end if;
  return new;
end
$$;

create or replace trigger webhook_endpoints_050_fixed before update of organisation_id on public.webhook_endpoints
  for each row execute function private.tg__refuse_change('organisation_id');

create or replace trigger webhook_endpoints_100_guard before insert or update on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__guard();

create or replace trigger webhook_endpoints_900_updated_at before update on public.webhook_endpoints
  for each row execute function private.tg__set_updated_at();

create or replace trigger webhook_endpoints_900_version before update on public.webhook_endpoints
  for each row execute function private.tg__count_version();

-- 256 bits, drawn through sha256 from two random UUIDs, in the form that libraries for Standard Webhooks take.
create or replace function private.add_webhook_secret(webhook_endpoint_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.webhook_secrets (webhook_endpoint_id, secret)
  values (
    add_webhook_secret.webhook_endpoint_id,
    'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
  );
end
$$;

-- Security definer: secrets are nobody's to write.
create or replace function private.tg_webhook_endpoints__add_secret() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.add_webhook_secret(new.id);
  return null;
end
$$;

create or replace trigger webhook_endpoints_500_add_secret after insert on public.webhook_endpoints
  for each row execute function private.tg_webhook_endpoints__add_secret();

revoke all on public.webhook_endpoints from anon, authenticated, service_role;

alter table public.webhook_endpoints enable row level security;

create policy webhook_endpoints_select_own on public.webhook_endpoints for select to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_insert_own on public.webhook_endpoints for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_update_own on public.webhook_endpoints for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_delete_own on public.webhook_endpoints for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));

create policy webhook_endpoints_select_membership on public.webhook_endpoints for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

create policy webhook_endpoints_insert_membership on public.webhook_endpoints for insert to authenticated
  with check (organisation_id in (select private.member_organisation_ids()));

create policy webhook_endpoints_update_membership on public.webhook_endpoints for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

create policy webhook_endpoints_delete_membership on public.webhook_endpoints for delete to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select, delete on public.webhook_endpoints to scope_events_write, authenticated;

grant insert (organisation_id, url, description, types) on public.webhook_endpoints to scope_events_write, authenticated;

grant update (url, description, types, status) on public.webhook_endpoints to scope_events_write, authenticated;

create or replace function private.webhook_endpoint_json(webhook_endpoint public.webhook_endpoints, secret text default null) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_endpoint',
    'id', webhook_endpoint.id,
    'url', webhook_endpoint.url,
    'description', webhook_endpoint.description,
    'types', webhook_endpoint.types,
    'status', webhook_endpoint.status,
    'disabled_reason', webhook_endpoint.disabled_reason,
    'secret', secret,
    'version', webhook_endpoint.version,
    'created_at', private.rfc3339(webhook_endpoint.created_at),
    'updated_at', private.rfc3339(webhook_endpoint.updated_at)
  );
end
$$;

grant execute on function private.webhook_endpoint_json(public.webhook_endpoints, text) to scope_events_write;

-- The secret that signs, if it was made in this very transaction: at creation and rotation, and never again.
-- Security definer: secrets are nobody's to read.
create or replace function private.new_webhook_secret(webhook_endpoint_id uuid) returns text
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (
    select s.secret
    from public.webhook_endpoints w
    join private.webhook_secrets s on s.webhook_endpoint_id = w.id
    where w.id = new_webhook_secret.webhook_endpoint_id
      and w.organisation_id = private.current_organisation_id()
      and s.expires_at is null
      and s.created_at = now()
  );
end
$$;

grant execute on function private.new_webhook_secret(uuid) to scope_events_write;

create or replace function api.list_webhook_endpoints(cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.webhook_endpoint_json(p) order by p.id desc) into v_items
  from (
    select w.*
    from public.webhook_endpoints w
    where v_before is null or w.id < v_before
    order by w.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_webhook_endpoints(text, integer) is
  'Webhook endpoints of the organisation, newest first: { data, has_more, next_cursor }.';

grant execute on function api.list_webhook_endpoints(text, integer) to scope_events_write;

create or replace function api.get_webhook_endpoint(webhook_endpoint_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = get_webhook_endpoint.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  return private.webhook_endpoint_json(v_webhook_endpoint);
end
$$;

comment on function api.get_webhook_endpoint(uuid) is 'One webhook endpoint, without its secret. 404 not_found.';

grant execute on function api.get_webhook_endpoint(uuid) to scope_events_write;

create or replace function api.create_webhook_endpoint(
  url text,
  types public.notification_type[],
  description text default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  insert into public.webhook_endpoints (organisation_id, url, types, description)
  values (
    private.current_organisation_id(), create_webhook_endpoint.url, create_webhook_endpoint.types,
    create_webhook_endpoint.description
  )
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object(
      'status', 201,
      'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
    )
  );
end
$$;

comment on function api.create_webhook_endpoint(text, public.notification_type[], text, text, text) is
  'Adds a webhook endpoint: 201 with it and its secret, which is not shown again. 403 missing_scope; 422 validation_failed.';

grant execute on function api.create_webhook_endpoint(text, public.notification_type[], text, text, text) to scope_events_write;

create or replace function api.update_webhook_endpoint(
  webhook_endpoint_id uuid,
  changes jsonb,
  if_version integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
  v_new public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = update_webhook_endpoint.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.require_version(v_webhook_endpoint.version, if_version);

  v_new := jsonb_populate_record(v_webhook_endpoint, changes);
  update public.webhook_endpoints w set
    url = v_new.url,
    description = v_new.description,
    types = v_new.types,
    status = v_new.status
  where w.id = v_webhook_endpoint.id
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_endpoint_json(v_webhook_endpoint))
  );
end
$$;

comment on function api.update_webhook_endpoint(uuid, jsonb, integer, text, text) is
  'Changes fields of a webhook endpoint (status enabled or disabled): 200. 403 missing_scope; 404 not_found; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_webhook_endpoint(uuid, jsonb, integer, text, text) to scope_events_write;

create or replace function api.delete_webhook_endpoint(
  webhook_endpoint_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  delete from public.webhook_endpoints w where w.id = delete_webhook_endpoint.webhook_endpoint_id;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 200,
    'data', json_build_object('object', 'webhook_endpoint', 'id', webhook_endpoint_id, 'deleted', true)
  ));
end
$$;

comment on function api.delete_webhook_endpoint(uuid, text, text) is
  'Forgets a webhook endpoint with its secrets and deliveries: 200. 404 not_found.';

grant execute on function api.delete_webhook_endpoint(uuid, text, text) to scope_events_write;

-- The secret that signs goes on signing beside its successor for so many hours; any before it stops now.
-- Security definer: secrets are nobody's to write.
create or replace function private.replace_webhook_secret(webhook_endpoint_id uuid, overlap_hours integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.refuse_foreign(w.organisation_id, 'webhook_endpoint_id')
  from public.webhook_endpoints w
  where w.id = replace_webhook_secret.webhook_endpoint_id;
  delete from private.webhook_secrets s
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id and s.expires_at is not null;
  update private.webhook_secrets s set expires_at = now() + make_interval(hours => overlap_hours)
  where s.webhook_endpoint_id = replace_webhook_secret.webhook_endpoint_id;
  perform private.add_webhook_secret(webhook_endpoint_id);
end
$$;

grant execute on function private.replace_webhook_secret(uuid, integer) to scope_events_write;

create or replace function api.rotate_webhook_secret(
  webhook_endpoint_id uuid,
  overlap_hours integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = rotate_webhook_secret.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.require_scopes_to_read(v_webhook_endpoint.types);
  perform private.replace_webhook_secret(v_webhook_endpoint.id, least(greatest(coalesce(overlap_hours, 24), 0), 168));

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object(
      'status', 200,
      'data', private.webhook_endpoint_json(v_webhook_endpoint, private.new_webhook_secret(v_webhook_endpoint.id))
    )
  );
end
$$;

comment on function api.rotate_webhook_secret(uuid, integer, text, text) is
  'Gives a webhook endpoint a new secret; the one before it signs beside it for overlap_hours (24): 200 with the new one, which is not shown again. 403 missing_scope; 404 not_found.';

grant execute on function api.rotate_webhook_secret(uuid, integer, text, text) to scope_events_write;

-- The outbox. What happens is written down in the transaction in which it happens, once as a notification, and once as a
-- delivery for each webhook endpoint that wants to hear of it. Nothing is sent from here: the courier does that.

create table public.notifications (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  type public.notification_type not null,
  data json not null,
  transaction_id xid8 not null default pg_current_xact_id(),
  created_at timestamptz not null default now(),
  constraint notifications_pkey primary key (id),
  constraint notifications_id_organisation_id_key unique (id, organisation_id),
  constraint notifications_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade
);

comment on table public.notifications is 'What happened, oldest first: the outbox, readable as a log. Written by Usher alone.';

comment on column public.notifications.data is 'The object as the API answered it then: an order as it was at the end of that transaction, and without ticket codes.';

comment on column public.notifications.transaction_id is
  'Ids are given before a transaction ends and may become visible out of order; whoever reads on from the last they saw must miss none. So the log is in the order of transactions, and shows those before which none is open.';

create index notifications_organisation_id_transaction_id_id_idx on public.notifications (organisation_id, transaction_id, id);

create type public.webhook_delivery_status as enum ('pending', 'delivered', 'failed', 'cancelled');

create table public.webhook_deliveries (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  webhook_endpoint_id uuid not null,
  notification_id uuid not null,
  type public.notification_type not null,
  status public.webhook_delivery_status not null default 'pending',
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  last_attempt_at timestamptz,
  last_response_status integer,
  last_response_body text,
  last_response_milliseconds integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_deliveries_pkey primary key (id),
  constraint webhook_deliveries_webhook_endpoint_id_fkey foreign key (webhook_endpoint_id, organisation_id)
    references public.webhook_endpoints (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_notification_id_fkey foreign key (notification_id, organisation_id)
    references public.notifications (id, organisation_id) on delete cascade,
  constraint webhook_deliveries_attempts_are_not_negative check (attempts >= 0),
  constraint webhook_deliveries_pending_have_a_next_attempt check ((status = 'pending') = (next_attempt_at is not null)),
  constraint webhook_deliveries_last_response_body_is_an_excerpt check (length(last_response_body) <= 1024)
);

comment on table public.webhook_deliveries is 'One notification for one webhook endpoint, and how sending it went.';

comment on column public.webhook_deliveries.status is 'Set it to pending to have it sent once more.';

comment on column public.webhook_deliveries.last_response_body is 'The first 1024 characters of what the endpoint answered.';

create index webhook_deliveries_webhook_endpoint_id_idx on public.webhook_deliveries (webhook_endpoint_id, id desc);

create index webhook_deliveries_notification_id_idx on public.webhook_deliveries (notification_id);

create index webhook_deliveries_organisation_id_id_idx on public.webhook_deliveries (organisation_id, id desc);

create index webhook_deliveries_next_attempt_at_idx on public.webhook_deliveries (next_attempt_at) where status = 'pending';

-- Nothing is sent to an endpoint that is disabled, nor of a type that it does not hear of any more.
create or replace function private.refuse_unsendable(webhook_endpoint_id uuid, type public.notification_type) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
begin
  select w.* into v_webhook_endpoint from public.webhook_endpoints w where w.id = refuse_unsendable.webhook_endpoint_id;
  if v_webhook_endpoint.status = 'disabled' then
    perform private.refuse(
      409, 'webhook_endpoint_disabled', 'The webhook endpoint is disabled.', 'webhook_endpoint_id', hint => 'Enable it first.'
    );
  elsif type <> 'webhook_endpoint.test' and type <> all (v_webhook_endpoint.types) then
    perform private.refuse(
      409, 'type_not_subscribed', 'The webhook endpoint does not hear of this type any more.', 'type',
      hint => 'Add the type to the endpoint first.'
    );
  end if;
end
$$;

grant execute on function private.refuse_unsendable(uuid, public.notification_type) to scope_events_write;

-- Setting a delivery to pending owes it once more, from the beginning; a settled one has no next attempt.
create or replace function private.tg_webhook_deliveries__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status = 'pending' and old.status <> 'pending' then
    perform private.refuse_unsendable(new.webhook_endpoint_id, new.type);
    new.attempts := 0;
    new.next_attempt_at := coalesce(new.next_attempt_at, now());
  elsif new.status <> 'pending' then
    new.next_attempt_at := null;
  end if;
  return new;
end
$$;

create or replace trigger webhook_deliveries_100_guard before update on public.webhook_deliveries
  for each row execute function private.tg_webhook_deliveries__guard();

create or replace trigger webhook_deliveries_900_updated_at before update on public.webhook_deliveries
  for each row execute function private.tg__set_updated_at();

-- What an endpoint does not hear of any more, it is not sent any more either. Security definer, like all that follows: the
-- outbox is nobody's to write.
create or replace function private.tg_webhook_endpoints__cancel_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.webhook_deliveries d set status = 'cancelled'
  where d.webhook_endpoint_id = new.id
    and d.status = 'pending'
    and d.type <> 'webhook_endpoint.test'
    and d.type <> all (new.types);
  return null;
end
$$;

create or replace trigger webhook_endpoints_500_cancel_deliveries after update on public.webhook_endpoints
  for each row when (new.types is distinct from old.types)
  execute function private.tg_webhook_endpoints__cancel_deliveries();

create or replace function private.tg_notifications__owe_deliveries() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  select n.organisation_id, w.id, n.id, n.type
  from new_rows n
  join public.webhook_endpoints w on w.organisation_id = n.organisation_id
  where w.status = 'enabled' and n.type = any (w.types)
  order by w.id
  -- An endpoint that is being deleted is waited for, and then owed nothing if it is gone: nothing that happens may fail by it.
  for key share of w;
  return null;
end
$$;

create or replace trigger notifications_500_owe_deliveries after insert on public.notifications
  referencing new table as new_rows
  for each statement execute function private.tg_notifications__owe_deliveries();

-- Orders tell of themselves when the transaction ends: only then are their attendees and payments all there.
create or replace function private.tg_orders__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
  v_types public.notification_type[] := case new.status
    when 'completed' then '{order.completed}'
    when 'cancelled' then '{order.cancelled}'
    else '{}'
  end;
  v_data json;
begin
  if tg_op = 'INSERT' then
    v_types := 'order.created'::public.notification_type || v_types;
  end if;
  select o.* into v_order from public.orders o where o.id = new.id;
  if not found then
    return null;
  end if;
  v_data := private.order_json(
    v_order, private.attendees_of_order_json(v_order.id), private.order_payments_json(v_order.id)
  );
  insert into public.notifications (organisation_id, type, data)
  select v_order.organisation_id, t.type, v_data from unnest(v_types) t (type);
  return null;
end
$$;

create constraint trigger orders_600_notify_insert after insert on public.orders
  deferrable initially deferred
  for each row execute function private.tg_orders__notify();

create constraint trigger orders_600_notify_update after update on public.orders
  deferrable initially deferred
  for each row when (new.status <> old.status) execute function private.tg_orders__notify();

-- Who comes with a new order is told of with it; who is added to one that was there is told of here.
create or replace function private.tg_attendees__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' and exists (select from public.orders o where o.id = new.order_id and o.created_at = now()) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when tg_op = 'UPDATE' and new.status = 'cancelled' and old.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(new)
  );
  return null;
end
$$;

create or replace trigger attendees_600_notify_insert after insert on public.attendees
  for each row execute function private.tg_attendees__notify();

create or replace trigger attendees_600_notify_update after update on public.attendees
  for each row when (
    (new.name, new.email, new.company, new.status, new.ticket_type_id, new.ticket_code, new.external_id, new.metadata)
    is distinct from
    (old.name, old.email, old.company, old.status, old.ticket_type_id, old.ticket_code, old.external_id, old.metadata)
  )
  execute function private.tg_attendees__notify();

create or replace function private.tg_check_ins__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data)
  select
    a.organisation_id,
    case tg_op when 'INSERT' then 'attendee.checked_in' else 'attendee.check_in_undone' end::public.notification_type,
    private.attendee_json(a)
  from public.attendees a
  where a.id = new.attendee_id;
  return null;
end
$$;

create or replace trigger check_ins_600_notify_insert after insert on public.check_ins
  for each row when (new.result = 'accepted') execute function private.tg_check_ins__notify();

create or replace trigger check_ins_600_notify_update after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__notify();

create or replace function private.tg_events__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- A row that is saved as it was is no news.
  if to_jsonb(new) - 'version' - 'updated_at' = to_jsonb(old) - 'version' - 'updated_at' then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new)
  );
  return null;
end
$$;

create or replace trigger events_600_notify after update on public.events
  for each row execute function private.tg_events__notify();

revoke all on public.notifications, public.webhook_deliveries from anon, authenticated, service_role;

-- A key reads of the log what it might read of the objects.
create or replace function private.readable_types() returns public.notification_type[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select t from unnest(enum_range(null::public.notification_type)) t
    where private.scope_to_read(t) = any (private.current_scopes())
  );
end
$$;

grant execute on function private.readable_types() to scope_events_write;

alter table public.notifications enable row level security;

create policy notifications_select_own on public.notifications for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );

create policy notifications_select_membership on public.notifications for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select on public.notifications to scope_events_write, authenticated;

alter table public.webhook_deliveries enable row level security;

create policy webhook_deliveries_select_own on public.webhook_deliveries for select to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );

create policy webhook_deliveries_update_own on public.webhook_deliveries for update to scope_events_write
  using (
    organisation_id = (select private.current_organisation_id())
    and type = any ((select private.readable_types())::public.notification_type[])
  );

create policy webhook_deliveries_select_membership on public.webhook_deliveries for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));

grant select on public.webhook_deliveries to scope_events_write, authenticated;

grant update (status, attempts, next_attempt_at) on public.webhook_deliveries to scope_events_write;

create or replace function private.webhook_delivery_json(webhook_delivery public.webhook_deliveries) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'webhook_delivery',
    'id', webhook_delivery.id,
    'webhook_endpoint_id', webhook_delivery.webhook_endpoint_id,
    'notification_id', webhook_delivery.notification_id,
    'type', webhook_delivery.type,
    'status', webhook_delivery.status,
    'attempts', webhook_delivery.attempts,
    'next_attempt_at', private.rfc3339(webhook_delivery.next_attempt_at),
    'last_attempt_at', private.rfc3339(webhook_delivery.last_attempt_at),
    'last_response', case when webhook_delivery.last_response_status is not null then json_build_object(
      'status', webhook_delivery.last_response_status,
      'body', webhook_delivery.last_response_body,
      'milliseconds', webhook_delivery.last_response_milliseconds
    ) end,
    'last_error', webhook_delivery.last_error,
    'delivered_at', private.rfc3339(webhook_delivery.delivered_at),
    'created_at', private.rfc3339(webhook_delivery.created_at),
    'updated_at', private.rfc3339(webhook_delivery.updated_at)
  );
end
$$;

grant execute on function private.webhook_delivery_json(public.webhook_deliveries) to scope_events_write;

-- Oldest first, to read on from the last one seen: `after` is the id of a notification, which is also the webhook-id of what
-- was delivered; `cursor` walks the pages as in any list.
create or replace function api.list_notifications(
  type public.notification_type default null,
  after uuid default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_last_id uuid := coalesce(private.decode_cursor(cursor), after);
  v_last public.notifications;
  v_items json[];
begin
  if v_last_id is not null then
    select n.* into v_last from public.notifications n where n.id = v_last_id;
    if not found then
      perform private.refuse(
        404, 'not_found', 'There is no such notification, or it is no longer kept.',
        case when cursor is null then 'after' else 'cursor' end,
        hint => 'Leave it out to start from the oldest that is kept.'
      );
    end if;
  end if;

  select array_agg(p.item order by p.transaction_id, p.id) into v_items
  from (
    select
      n.transaction_id,
      n.id,
      json_build_object(
        'object', 'notification',
        'id', n.id,
        'type', n.type,
        'created_at', private.rfc3339(n.created_at),
        'data', n.data
      ) as item
    from public.notifications n
    where (v_last_id is null or (n.transaction_id, n.id) > (v_last.transaction_id, v_last.id))
      and (list_notifications.type is null or n.type = list_notifications.type)
      and n.transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    order by n.transaction_id, n.id
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_notifications(public.notification_type, uuid, text, integer) is
  'What happened, oldest first, from after the notification that is named, as far as the key may read it: { data, has_more, next_cursor }. 404 not_found.';

grant execute on function api.list_notifications(public.notification_type, uuid, text, integer) to scope_events_write;

create or replace function api.list_webhook_deliveries(
  webhook_endpoint_id uuid default null,
  notification_id uuid default null,
  type public.notification_type default null,
  status public.webhook_delivery_status default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  v_items json[];
begin
  select array_agg(private.webhook_delivery_json(p) order by p.id desc) into v_items
  from (
    select d.*
    from public.webhook_deliveries d
    where (list_webhook_deliveries.webhook_endpoint_id is null or d.webhook_endpoint_id = list_webhook_deliveries.webhook_endpoint_id)
      and (list_webhook_deliveries.notification_id is null or d.notification_id = list_webhook_deliveries.notification_id)
      and (list_webhook_deliveries.type is null or d.type = list_webhook_deliveries.type)
      and (list_webhook_deliveries.status is null or d.status = list_webhook_deliveries.status)
      and (v_before is null or d.id < v_before)
    order by d.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;

comment on function api.list_webhook_deliveries(uuid, uuid, public.notification_type, public.webhook_delivery_status, text, integer) is
  'Deliveries to webhook endpoints, newest first, by any of the filters: { data, has_more, next_cursor }.';

grant execute on function api.list_webhook_deliveries(uuid, uuid, public.notification_type, public.webhook_delivery_status, text, integer)
  to scope_events_write;

create or replace function api.redeliver_webhook(
  webhook_delivery_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_delivery public.webhook_deliveries;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select d.* into v_webhook_delivery
  from public.webhook_deliveries d
  where d.id = redeliver_webhook.webhook_delivery_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_delivery_id');
  end if;
  perform private.refuse_unsendable(v_webhook_delivery.webhook_endpoint_id, v_webhook_delivery.type);
  update public.webhook_deliveries d set status = 'pending', attempts = 0, next_attempt_at = now()
  where d.id = v_webhook_delivery.id
  returning * into v_webhook_delivery;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_delivery_json(v_webhook_delivery))
  );
end
$$;

comment on function api.redeliver_webhook(uuid, text, text) is
  'Owes a delivery once more, whatever became of it, with the same webhook-id: 200. 404 not_found; 409 webhook_endpoint_disabled, type_not_subscribed.';

grant execute on function api.redeliver_webhook(uuid, text, text) to scope_events_write;

-- Tells one endpoint of itself. Security definer: the outbox is nobody's to write.
create or replace function private.notify_test(webhook_endpoint_id uuid) returns public.webhook_deliveries
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_webhook_endpoint public.webhook_endpoints;
  v_notification_id uuid;
  v_webhook_delivery public.webhook_deliveries;
begin
  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = notify_test.webhook_endpoint_id and w.organisation_id = private.current_organisation_id();
  insert into public.notifications (organisation_id, type, data)
  values (v_webhook_endpoint.organisation_id, 'webhook_endpoint.test', private.webhook_endpoint_json(v_webhook_endpoint))
  returning id into v_notification_id;
  insert into public.webhook_deliveries (organisation_id, webhook_endpoint_id, notification_id, type)
  values (v_webhook_endpoint.organisation_id, v_webhook_endpoint.id, v_notification_id, 'webhook_endpoint.test')
  returning * into v_webhook_delivery;
  return v_webhook_delivery;
end
$$;

grant execute on function private.notify_test(uuid) to scope_events_write;

create or replace function api.test_webhook_endpoint(
  webhook_endpoint_id uuid,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if not exists (select from public.webhook_endpoints w where w.id = test_webhook_endpoint.webhook_endpoint_id) then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.refuse_unsendable(webhook_endpoint_id, 'webhook_endpoint.test');

  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object(
    'status', 201,
    'data', private.webhook_delivery_json(private.notify_test(webhook_endpoint_id))
  ));
end
$$;

comment on function api.test_webhook_endpoint(uuid, text, text) is
  'Owes a webhook endpoint a notification of type webhook_endpoint.test: 201 with the delivery. 404 not_found; 409 webhook_endpoint_disabled.';

grant execute on function api.test_webhook_endpoint(uuid, text, text) to scope_events_write;
