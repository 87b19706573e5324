-- Attendees: the people who come, each with a ticket code. An attendee who is not cancelled is a line of the order
-- (19_totals.sql) and holds a place (20_places.sql).

create type public.attendee_status as enum ('active', 'awaiting_payment', 'cancelled');
create type public.ticket_email_status as enum (
  'not_requested', 'waiting', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'cancelled'
);

-- Half of each page is left free, as for orders: most updates, such as a check-in, write to none of the indexes then.
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
) with (fillfactor = 50);
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

-- Security definer: it reads order and ticket type beyond what a registering key may see.
create function private.tg_attendees__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  if tg_op = 'INSERT' then
    -- The event lock before the order, as everywhere; then the order, so that it is not cancelled or completed past a ticket
    -- it does not know of, and its totals are added up by one at a time.
    perform private.lock_event_shared(o.event_id) from public.orders o where o.id = new.order_id;
    select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
    perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
    end if;
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.checked_in_at, new.cancelled_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'promo_code_id', null, 'ticket_code', null, 'checked_in_at', null, 'cancelled_at', null
      ));
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

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = new.organisation_id and a.external_id = new.external_id and a.id <> new.id;
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

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
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
  for each row execute function private.tg__assert_unchanged(
    'organisation_id', 'event_id', 'order_id', 'price', 'discount', 'currency', 'promo_code_id'
  );
create trigger attendees_050_derived before update of cancelled_at, version, created_at, updated_at on public.attendees
  for each row execute function private.tg__assert_derived_untouched(
    'Set status to cancelled to cancel the ticket.', 'cancelled_at', 'version', 'created_at', 'updated_at'
  );
create trigger attendees_100_in_use before delete on public.attendees
  for each row execute function private.tg__assert_not_in_use(
    'The attendee is in use: there are check-ins with their ticket.', 'Cancel the ticket instead: set status to cancelled.',
    'check_ins.attendee_id'
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

-- What happens to an order happens to its tickets: for all orders of a statement at once, so that cancelling an event is
-- one update of its attendees.
create function private.tg_orders__update_attendees() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Arrays and no join: its plan would be that of the first call, and after a cancelled event scan the table for every order.
  v_completed uuid[] := array(select n.id from new_rows n where n.status = 'completed');
  v_cancelled uuid[] := array(select n.id from new_rows n where n.status = 'cancelled');
begin
  if v_completed <> '{}' then
    update public.attendees a set status = 'active' where a.order_id = any (v_completed) and a.status = 'awaiting_payment';
  end if;
  if v_cancelled <> '{}' then
    update public.attendees a set status = 'cancelled' where a.order_id = any (v_cancelled) and a.status <> 'cancelled';
  end if;
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
