-- Attendees: the people who come, each with a ticket code. An attendee who is not cancelled holds a place, and is a line of
-- the order: its totals are the sums of the prices and discounts of those who are not cancelled.

create type public.attendee_status as enum ('active', 'awaiting_payment', 'cancelled');
create type public.ticket_email_status as enum (
  'not_requested', 'waiting', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'cancelled'
);

create table public.attendees (
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  event_id uuid not null,
  order_id uuid not null,
  ticket_type_id uuid not null,
  name text not null,
  email text not null,
  email_lower text not null generated always as (lower(email)) stored,
  company text,
  price bigint not null default 0,
  discount bigint not null default 0,
  currency text not null,
  promo_code_id uuid,
  status public.attendee_status not null default 'active',
  ticket_code text not null,
  checked_in_at timestamptz,
  ticket_email_status public.ticket_email_status not null default 'queued',
  ticket_email_sent_at timestamptz,
  ticket_email_last_error text,
  cancelled_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint attendees_pkey primary key (id),
  constraint attendees_organisation_id_ticket_code_key unique (organisation_id, ticket_code),
  constraint attendees_order_id_fkey foreign key (order_id, event_id, organisation_id)
    references public.orders (id, event_id, organisation_id),
  constraint attendees_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint attendees_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id),
  constraint attendees_discount_is_at_most_the_price check (discount between 0 and price),
  constraint attendees_name_is_one_line check (length(btrim(name)) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint attendees_email_is_an_address check (email ~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' and length(email) <= 254),
  constraint attendees_company_is_one_line check (length(btrim(company)) between 1 and 200 and company !~ '[[:cntrl:]]'),
  constraint attendees_ticket_code_is_readable check (ticket_code ~ '^[0-9A-HJKMNP-TV-Z]{16}$'),
  constraint attendees_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint attendees_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.attendees is 'The people who come. Cancel one by setting status to cancelled: the place is free again and the ticket stops scanning.';
comment on column public.attendees.ticket_code is 'What the QR code holds: 80 random bits, given by Usher. Clear it to have a new one given; the old one then stops scanning.';
comment on column public.attendees.price is 'What the ticket cost when it was registered, in minor units; 0 where the order has no payment method.';
comment on column public.attendees.discount is 'What the promo code took off the price, rounded half up.';
comment on column public.attendees.checked_in_at is 'When they came in. Kept by check_ins, not edited.';

create unique index attendees_organisation_id_external_id_key on public.attendees (organisation_id, external_id)
  where external_id is not null;
create index attendees_order_id_idx on public.attendees (order_id);
create index attendees_event_id_idx on public.attendees (event_id, id desc);
create index attendees_organisation_id_id_idx on public.attendees (organisation_id, id desc);
-- A column, because behind row level security no index on lower() is used: the function might leak what it is given.
create index attendees_organisation_id_email_lower_idx on public.attendees (organisation_id, email_lower);
create index attendees_promo_code_id_idx on public.attendees (promo_code_id);
create index attendees_ticket_type_id_idx on public.attendees (ticket_type_id);

-- The price of a ticket, and what the promo code of its order takes off it: half up, on each ticket, so that an order is
-- always the sum of its lines. A code is used by the tickets it makes cheaper, and by no others.
create function private.price_attendee(attendee public.attendees, "order" public.orders) returns public.attendees
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

-- Security definer: it reads order and ticket type beyond what a registering key may see.
create function private.tg_attendees__guard() returns trigger
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
create trigger attendees_050_fixed
  before update of organisation_id, event_id, order_id, price, discount, currency, promo_code_id on public.attendees
  for each row execute function private.tg__refuse_change(
    'organisation_id', 'event_id', 'order_id', 'price', 'discount', 'currency', 'promo_code_id'
  );
create trigger attendees_100_guard before insert or update on public.attendees
  for each row execute function private.tg_attendees__guard();
create trigger attendees_100_no_truncate before truncate on public.attendees
  for each statement execute function private.tg__refuse_truncate();
create trigger attendees_900_updated_at before update on public.attendees
  for each row execute function private.tg__set_updated_at();
-- Not for checked_in_at and the state of the e-mail: those are news, not edits.
create trigger attendees_900_version before update of
    name, email, company, status, ticket_type_id, ticket_code, external_id, metadata
  on public.attendees
  for each row execute function private.tg__count_version();

-- How many of a ticket type an order may have, or must: asked once a statement, so that a group comes in as one.
create function private.tg_attendees__limit_per_order() returns trigger
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
create trigger attendees_300_limit_per_order after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__limit_per_order();

create type private.use_move as (promo_code_id uuid, uses integer);

-- Keeps what follows from the lines of an order: uses of promo codes, and its totals. An order that loses its last ticket
-- is cancelled; one that is cancelled keeps the totals it had. Security definer: adding up is no right of whoever registers.
create function private.tg_attendees__add_up() returns trigger
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

  if tg_op = 'INSERT' and exists (
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
    end if;
  end if;

  for v_move in select m.promo_code_id, sum(m.uses)::integer as uses from unnest(v_uses) m group by 1 order by 1 loop
    perform private.move_redemptions(v_move.promo_code_id, v_move.uses);
  end loop;
  return null;
end
$$;
create trigger attendees_400_add_up_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__add_up();
create trigger attendees_400_add_up_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__add_up();
create trigger attendees_400_add_up_delete after delete on public.attendees
  referencing old table as old_rows
  for each statement execute function private.tg_attendees__add_up();

-- Takes places of one ticket type, or gives them back, exactly, under any concurrency. The update of the row is what makes
-- two buyers of the last place wait for one another, so it comes as late in the transaction as it can.
-- Security definer: counting is no right of whoever registers.
create function private.move_places(ticket_type_id uuid, places integer) returns void
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

create type private.place_move as (event_id uuid, ticket_type_id uuid, places integer);

-- Once a statement, not once a row: cancelling an event of ten thousand is one update of each ticket type. All gates
-- before all ticket types, in the order of their ids.
create function private.tg_attendees__count_places() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_moves private.place_move[] := '{}';
  v_event_id uuid;
  v_event public.events;
  v_limited public.events[] := '{}';
  v_move record;
begin
  if tg_op in ('UPDATE', 'DELETE') then
    v_moves := v_moves || array(
      select row(o.event_id, o.ticket_type_id, -1)::private.place_move from old_rows o where o.status <> 'cancelled'
    );
  end if;
  if tg_op in ('INSERT', 'UPDATE') then
    v_moves := v_moves || array(
      select row(n.event_id, n.ticket_type_id, 1)::private.place_move from new_rows n where n.status <> 'cancelled'
    );
  end if;
  v_moves := array(
    select row(m.event_id, m.ticket_type_id, sum(m.places)::integer)::private.place_move
    from unnest(v_moves) m
    group by m.event_id, m.ticket_type_id
    having sum(m.places) <> 0
  );

  for v_event_id in select distinct m.event_id from unnest(v_moves) m where m.places > 0 order by m.event_id loop
    v_event := private.pass_gate(v_event_id);
    if v_event.status <> 'published' then
      perform private.refuse_unpublished(v_event.status);
    end if;
    if v_event.capacity is not null then
      perform private.pass_gate_one_by_one(v_event_id);
      v_limited := v_limited || v_event;
    end if;
  end loop;

  for v_move in select m.* from unnest(v_moves) m order by m.ticket_type_id loop
    perform private.move_places(v_move.ticket_type_id, v_move.places);
  end loop;

  foreach v_event in array v_limited loop
    if private.places_taken(v_event.id) > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    end if;
  end loop;
  return null;
end
$$;
create trigger attendees_500_count_places_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
create trigger attendees_500_count_places_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__count_places();
create trigger attendees_500_count_places_delete after delete on public.attendees
  referencing old table as old_rows
  for each statement execute function private.tg_attendees__count_places();

-- What happens to an order happens to its tickets: for all orders of a statement at once, so that cancelling an event is
-- one update of its attendees.
create function private.tg_orders__update_attendees() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.attendees a
  set status = case n.status when 'cancelled' then 'cancelled' else 'active' end::public.attendee_status
  from new_rows n
  where a.order_id = n.id
    and (n.status = 'cancelled' and a.status <> 'cancelled' or n.status = 'completed' and a.status = 'awaiting_payment');
  return null;
end
$$;
create trigger orders_500_update_attendees after update on public.orders
  referencing new table as new_rows
  for each statement execute function private.tg_orders__update_attendees();

revoke all on public.attendees from anon, authenticated, service_role;

alter table public.attendees enable row level security;
create policy attendees_select_own on public.attendees for select
  to scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy attendees_update_own on public.attendees for update to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy attendees_insert_own on public.attendees for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy attendees_select_membership on public.attendees for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy attendees_update_membership on public.attendees for update to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
grant select on public.attendees to scope_attendees_read, scope_attendees_write, authenticated;
-- The door learns who stands before it, not how to reach them.
grant select (
  id, organisation_id, event_id, ticket_type_id, name, company, status, checked_in_at
) on public.attendees to scope_checkin_write;
grant insert (
  organisation_id, event_id, order_id, ticket_type_id, name, email, company, external_id, metadata
) on public.attendees to scope_attendees_write;
grant update (name, email, company, status, ticket_code, ticket_email_status, external_id, metadata) on public.attendees
  to scope_attendees_write;
grant update (name, email, company, status, ticket_code, external_id, metadata) on public.attendees to authenticated;

-- Nobody is handed a ticket that would not let them in.
create function private.refuse_inactive_ticket(status public.attendee_status) returns void
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
create function private.attendee_json(attendee public.attendees, with_code boolean default true) returns json
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

create function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_since timestamptz default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.decode_cursor(cursor);
  -- First, so that the list is walked by the index on order_id.
  v_referred uuid := (select o.id from public.orders o where o.reference = upper(list_attendees.reference));
  v_items json[];
begin
  select array_agg(private.attendee_json(p) order by p.id desc) into v_items
  from (
    select a.*
    from public.attendees a
    where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
      and (list_attendees.order_id is null or a.order_id = list_attendees.order_id)
      and (list_attendees.reference is null or a.order_id = v_referred)
      and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
      and (list_attendees.status is null or a.status = list_attendees.status)
      and (checked_in is null or (a.checked_in_at is not null) = checked_in)
      and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
      and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
      and (updated_since is null or a.updated_at >= updated_since)
      and (v_before is null or a.id < v_before)
    order by a.id desc
    limit v_size + 1
  ) p;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_attendees(uuid, uuid, uuid, public.attendee_status, boolean, text, text, text, timestamptz, text, integer) is
  'Attendees of the organisation, newest first, by any of the filters: { data, has_more, next_cursor }.';
grant execute on function api.list_attendees(uuid, uuid, uuid, public.attendee_status, boolean, text, text, text, timestamptz, text, integer)
  to scope_attendees_read;

create function api.get_attendee(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_attendee.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.attendee_json(v_attendee);
end
$$;
comment on function api.get_attendee(uuid) is 'One attendee. 404 not_found.';
grant execute on function api.get_attendee(uuid) to scope_attendees_read;

create function api.get_ticket_qr(attendee_id uuid) returns json
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

create function api.update_attendee(
  attendee_id uuid,
  changes jsonb,
  if_version integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_new public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.require_version(v_attendee.version, if_version);

  v_new := jsonb_populate_record(v_attendee, changes);
  update public.attendees a set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    external_id = v_new.external_id,
    metadata = v_new.metadata,
    ticket_code = case when (changes ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  where a.id = v_attendee.id
  returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.update_attendee(uuid, jsonb, integer, text, text) is
  'Corrects an attendee, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 ticket_not_reissuable, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_attendee(uuid, jsonb, integer, text, text) to scope_attendees_write;

-- The order before its attendee, as everywhere: cancelling a ticket changes the totals of its order.
-- Security definer: a key for attendees has no right to orders.
create function private.lock_order_of(attendee_id uuid) returns void
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

create function api.cancel_attendee(
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
grant execute on function api.cancel_attendee(uuid, boolean, text, text) to scope_attendees_write;

create function api.resend_ticket(attendee_id uuid, idempotency_key text default null, request_fingerprint text default null)
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
comment on function api.resend_ticket(uuid, text, text) is
  'Queues the ticket e-mail of an attendee once more: 200. 404 not_found; 409 ticket_not_active.';
grant execute on function api.resend_ticket(uuid, text, text) to scope_attendees_write;
