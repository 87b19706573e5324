-- tell who has a value in the same microsecond. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop function private.refuse_taken(text, uuid, timestamp with time zone);

create or replace function private.refuse_taken (
  param text,
  id uuid,
  created_at timestamp with time zone,
  row_xmin xid default null::xid
)
  returns void
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_is_older boolean := created_at <> now();
begin
  -- Of requests that are sent together, one pair of transactions in a hundred begins in the same microsecond.
  if not v_is_older and row_xmin is not null then
    v_is_older := pg_xact_status(
      -- The row is new, so its transaction counts from the same multiple of 2^32 as the present one.
      ((pg_current_xact_id()::text::bigint >> 32 << 32) + row_xmin::text::bigint)::text::xid8
    ) = 'committed';
  end if;
  perform private.refuse(
    409, 'already_exists', format('Another object has this %s already.', param), param,
    case when v_is_older then jsonb_build_object('id', id) end
  );
end
$$;

create or replace function private.tg_attendees__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_order public.orders;
  v_holder public.attendees;
begin
  if tg_op = 'INSERT' then
    select o.* into v_order from public.orders o where o.id = new.order_id;
    if private.is_foreign(v_order.organisation_id) then
      perform private.refuse_not_found('order_id');
    end if;
    -- A new order is seen by this transaction alone, which has the event lock since it added it. Any other is locked, so that it is neither
    -- cancelled nor completed without this ticket, and so that its totals are updated by one transaction at a time: the event lock before
    -- the order, as everywhere.
    if v_order.created_at <> now() then
      perform private.lock_event_shared(v_order.event_id);
      select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
      if not found then
        perform private.refuse_not_found('order_id');
      end if;
      perform set_config('usher.adds_to_order', 'on', true);
    end if;
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      select a.* into v_holder
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
      if v_holder.status = 'cancelled' then
        -- The person comes after all: their identifier goes with the new ticket.
        update public.attendees a set external_id = null where a.id = v_holder.id and a.external_id = new.external_id;
      elsif found then
        perform private.refuse_taken('external_id', a.id, a.created_at, a.xmin) from public.attendees a where a.id = v_holder.id;
      end if;
    end if;
    -- The fields that Usher sets: price, status, ticket code and the status of the ticket e-mail.
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency or new.event_id <> v_order.event_id or new.organisation_id <> v_order.organisation_id
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.ticket_token, new.checked_in_at, new.cancelled_at, new.erased_at) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'event_id', v_order.event_id, 'organisation_id', v_order.organisation_id,
        'promo_code_id', null, 'ticket_code', null, 'ticket_token', null, 'checked_in_at', null, 'cancelled_at', null, 'erased_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    if new.waiting_list_entry_id is not null then
      perform private.accept_offer(new);
    end if;
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Create a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.ticket_token := private.random_token();
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is derived from the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.erased_at is distinct from old.erased_at and pg_trigger_depth() = 1 and current_setting('usher.erasing', true) is distinct from 'on' then
      perform private.refuse(
        409, 'read_only_field', 'A person is erased by a function, which finds every copy.', 'erased_at', hint => 'Call erase_attendee.'
      );
    elsif old.erased_at is not null
      and ((new.name, new.email, new.company, new.external_id, new.metadata)
        is distinct from (old.name, old.email, old.company, old.external_id, old.metadata)
        or new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued') then
      perform private.refuse(
        409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Register the person who comes instead.'
      );
    end if;

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at, a.xmin)
      from public.attendees a
      where a.organisation_id = new.organisation_id and a.external_id = new.external_id and a.id <> new.id;
    end if;

    if new.ticket_code is null then
      -- Reissue: the new code is e-mailed to the present holder.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A used or cancelled ticket cannot be reissued.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person again.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_token := private.random_token();
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' or old.erased_at is not null then old.ticket_email_status
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.email_status;
    elsif new.ticket_code <> old.ticket_code or new.ticket_token is distinct from old.ticket_token then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.',
        case when new.ticket_code <> old.ticket_code then 'ticket_code' else 'ticket_token' end,
        hint => 'Clear ticket_code to generate a new one.'
      );
    end if;

    -- Status transitions, then the status of the ticket e-mail.
    if new.status <> old.status then
      if old.status = 'cancelled' and new.status = 'awaiting_payment' and private.is_reopening(new.order_id) then
        -- The e-mail was waiting for the payment, and waits again.
        if new.ticket_email_status = 'cancelled' and new.erased_at is null then
          new.ticket_email_status := 'waiting';
        end if;
      elsif old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
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
            409, 'payment_due', 'The ticket becomes active when its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and new.status <> 'active' then
      perform private.refuse_inactive_ticket(
        new.status, 'A ticket whose status is not active is not sent: ticket_email_status stays as it is.'
      );
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;

    -- checked_in_at and the state of the e-mail are not edited.
    if (new.name, new.email, new.company, new.status, new.ticket_type_id, new.ticket_code, new.external_id, new.metadata, new.erased_at)
      is distinct from
      (old.name, old.email, old.company, old.status, old.ticket_type_id, old.ticket_code, old.external_id, old.metadata, old.erased_at) then
      new.version := old.version + 1;
    end if;
    -- For the triggers on the statement, which fire only where something is left for them.
    if (new.status = 'cancelled') <> (old.status = 'cancelled') or new.ticket_type_id <> old.ticket_type_id then
      perform set_config('usher.moves_places', 'on', true);
    end if;
    if (new.ticket_email_status = 'queued') <> (old.ticket_email_status = 'queued') then
      perform set_config('usher.queues_tickets', 'on', true);
    end if;
  end if;

  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;

  if tg_op = 'INSERT'
    or (new.name, new.email, new.company, new.external_id, new.search_text)
      is distinct from (old.name, old.email, old.company, old.external_id, old.search_text) then
    if tg_op = 'UPDATE' then
      select o.* into v_order from public.orders o where o.id = new.order_id;
    end if;
    new.search_text := private.search_form(
      concat_ws(' ', new.name, new.company, v_order.reference) || E'\t' || concat_ws(' ', new.email, new.external_id) || E'\n'
        || concat_ws(
          ' ', nullif(v_order.name, new.name), nullif(v_order.email, new.email), nullif(v_order.company, new.company),
          nullif(v_order.external_id, new.external_id)
        )
    );
  end if;

  new.cancelled_at := case
    when new.status <> 'cancelled' then null
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    else now()
  end;
  return new;
end
$$;

create or replace function private.tg_events__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name, new.locale));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    -- Registrations hold the event lock shared: none is in flight during the checks below.
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.lock_event_exclusive(new.id);
    end if;

    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed'), ('completed', 'published')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
      );
    end if;

    if old.status <> 'published' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      -- Of an event that is published again all may be archived, as they may be while it is published.
      if old.status = 'draft' and not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    -- Currency and capacity, against what is sold already.
    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity then
      -- A raised quantity is offered to the waiting list without the event lock.
      perform private.lock_event_capacity(new.id);
      if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
        perform private.refuse(
          409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
          jsonb_build_object('places_taken', private.places_taken(new.id))
        );
      end if;
    end if;
  end if;

  -- Unique values. Row level security refuses a foreign row only after this trigger, so nothing is looked up for one: the
  -- answer would reveal values of another organisation.
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else (new.slug, new.external_id) is distinct from (old.slug, old.external_id) end)
    and not private.is_foreign(new.organisation_id) then
    perform private.refuse_taken('slug', e.id, e.created_at, e.xmin)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at, e.xmin)
    from public.events e
    where e.organisation_id = new.organisation_id and e.external_id = new.external_id and e.id <> new.id;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- pg_timezone_names reads files, in some 20 ms, so a zone that another event has is accepted without it.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- A value that stays is not checked: a currency is withdrawn, and an address may be from before the rule.
  if (tg_op = 'INSERT' or new.currency <> old.currency) and not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'The currency is not an ISO 4217 currency in use.', 'Write its three capital letters, such as EUR.'
    );
  end if;
  if (tg_op = 'INSERT' or new.online_url is distinct from old.online_url) and not private.is_web_url(new.online_url) then
    perform private.refuse_value(
      'online_url',
      'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters.',
      'Copy the address again, and leave out what stands before an @ in the name of the server.'
    );
  end if;

  -- The timestamps follow the status.
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

create or replace function private.tg_orders__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
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
        perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin) from public.orders o where o.id = v_holder.id;
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
      perform private.refuse_taken('external_id', o.id, o.created_at, o.xmin)
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

create or replace function private.tg_promo_codes__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  -- Depth 1 is a statement of a person or an operation; the trigger that counts redemptions runs one level deeper.
  if pg_trigger_depth() = 1
    and new.times_redeemed is distinct from (case when tg_op = 'INSERT' then 0 else old.times_redeemed end) then
    perform private.refuse(
      409, 'read_only_field', 'times_redeemed is counted from the attendees and cannot be edited.', 'times_redeemed'
    );
  end if;
  -- Before the unique index, whose error would reveal that a code of another organisation exists.
  if tg_op = 'INSERT' and not exists (
    select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else lower(new.code) <> lower(old.code) end) then
    perform private.refuse_taken('code', c.id, c.created_at, c.xmin)
    from public.promo_codes c
    where c.event_id = new.event_id and lower(c.code) = lower(new.code) and c.id <> new.id;
  end if;
  -- Only when the list is set: a code whose ticket type was deleted can still be edited and disabled.
  if tg_op = 'INSERT' or new.ticket_type_ids <> old.ticket_type_ids then
    new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
    if exists (
      select from unnest(new.ticket_type_ids) i (id)
      where not exists (
        select from public.ticket_types t
        where t.id = i.id and t.event_id = new.event_id and t.organisation_id = new.organisation_id
      )
    ) then
      perform private.refuse(
        422, 'validation_failed', 'A listed ticket type does not belong to the event.', 'ticket_type_ids',
        hint => 'List the ticket types of the event to find their identifiers.'
      );
    end if;
  end if;
  if tg_op = 'UPDATE' and new.max_redemptions < new.times_redeemed and new.max_redemptions is distinct from old.max_redemptions then
    perform private.refuse(
      409, 'limit_below_redeemed', 'The limit cannot be less than the uses already made.', 'max_redemptions',
      jsonb_build_object('times_redeemed', new.times_redeemed)
    );
  end if;
  return new;
end
$$;

create or replace function private.tg_registrations__register()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_given jsonb;
  v_kept text;
  v_organisation_id uuid;
begin
  if num_nonnulls(new.order_id, new.reference, new.attendee_id, new.status, new.created_at) > 0 then
    v_given := jsonb_strip_nulls(to_jsonb(new));
    foreach v_kept in array '{order_id,reference,attendee_id,status,created_at}'::text[] loop
      if v_given ? v_kept then
        perform private.refuse(
          409, 'read_only_field', 'Usher sets this field of a new row itself.', v_kept, hint => 'Leave it out.'
        );
      end if;
    end loop;
  end if;
  -- The tables' own triggers that explain mistakes leave alone what a trigger writes.
  new := jsonb_populate_record(new, private.blank_values(to_jsonb(new)));
  select e.organisation_id into v_organisation_id from public.events e where e.id = new.event_id;
  if new.event_id is null then
    perform private.refuse_empty(tg_relid, 'event_id');
  elsif v_organisation_id is null then
    perform private.refuse_not_found('event_id');
  elsif new.organisation_id <> v_organisation_id then
    perform private.refuse_other_organisation();
  elsif new.ticket_type_id is null then
    perform private.refuse_empty(tg_relid, 'ticket_type_id');
  elsif not exists (select from public.ticket_types t where t.id = new.ticket_type_id and t.event_id = new.event_id) then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.refuse_taken('external_id', o.id, o.created_at)
  from public.orders o
  where o.organisation_id = v_organisation_id and o.external_id = new.external_id;
  perform private.refuse_taken('external_id', a.id, a.created_at)
  from public.attendees a
  where a.organisation_id = v_organisation_id and a.external_id = new.external_id;
  new.send_email := coalesce(new.send_email, true);
  new.metadata := coalesce(new.metadata, '{}');

  -- The order is confirmed at once.
  perform set_config('usher.registers', 'on', true);
  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    new.organisation_id, new.event_id, new.name, new.email, new.company, new.send_email, new.payment_method, new.promo_code,
    new.external_id, new.metadata
  )
  returning id, organisation_id, reference, promo_code, created_at
  into new.order_id, new.organisation_id, new.reference, new.promo_code, new.created_at;
  perform set_config('usher.registers', 'off', true);
  insert into public.attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata)
  values (
    new.order_id, new.ticket_type_id, new.waiting_list_entry_id, new.name, new.email, new.company, new.external_id, new.metadata
  )
  returning id into new.attendee_id;
  select a.status into new.status from public.attendees a where a.id = new.attendee_id;
  return new;
end
$$;

create or replace function private.tg_ticket_types__guard()
  returns trigger
  language plpgsql
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
begin
  if new.quantity_sold is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_sold end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_sold is counted from the attendees and cannot be edited.', 'quantity_sold',
      hint => 'Add or cancel attendees instead.'
    );
  elsif new.quantity_held is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_held end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_held is counted from the offers of the waiting list and cannot be edited.', 'quantity_held',
      hint => 'Cancel entries of the waiting list instead.'
    );
  end if;
  if tg_op = 'UPDATE' and new.quantity is distinct from old.quantity and new.quantity >= 0 and new.quantity < new.quantity_sold + new.quantity_held then
    perform private.refuse(
      409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued, and held for the waiting list.', 'quantity',
      jsonb_strip_nulls(jsonb_build_object('quantity_sold', new.quantity_sold, 'quantity_held', nullif(new.quantity_held, 0)))
    );
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else new.external_id is distinct from old.external_id end) then
    perform private.refuse_taken('external_id', t.id, t.created_at, t.xmin)
    from public.ticket_types t
    where t.organisation_id = new.organisation_id and t.external_id = new.external_id and t.id <> new.id;
  end if;
  return new;
end
$$;

create or replace function private.tg_waiting_list_entries__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set plan_cache_mode to 'force_generic_plan'
  as $$
declare
  v_event public.events;
  v_ticket_type public.ticket_types;
begin
  if tg_op = 'INSERT' then
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    if new.status <> 'waiting' or num_nonnulls(new.offered_at, new.offer_expires_at) > 0 then
      perform private.assert_as_given(
        to_jsonb(new), jsonb_build_object('status', 'waiting', 'offered_at', null, 'offer_expires_at', null)
      );
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    perform private.assert_takes_registrations(v_event);
    perform private.lock_event_capacity(new.event_id);
    select t.* into v_ticket_type
    from public.ticket_types t
    where t.id = new.ticket_type_id and t.event_id = new.event_id
    for no key update;
    if not found then
      perform private.refuse_not_found('ticket_type_id');
    end if;
    if not private.is_on_sale(v_ticket_type) then
      perform private.refuse_not_on_sale(v_ticket_type);
    end if;
    if v_ticket_type.min_per_order > 1 then
      perform private.refuse(
        409, 'quantity_not_allowed', 'The waiting list is for one ticket, and an order has more of this type.', 'ticket_type_id',
        jsonb_build_object('ticket_type_id', v_ticket_type.id, 'min_per_order', v_ticket_type.min_per_order)
      );
    end if;
    perform private.assert_sold_out(v_event, v_ticket_type);
    -- Made under the locks: the order of ids is that of joining.
    new.id := private.uuid_v7();
  else
    -- Depth 1 is a statement of a person or an operation; triggers offer and accept one level deeper.
    if new.status <> old.status and not (
      (old.status, new.status) in (('waiting', 'cancelled'), ('offered', 'cancelled'))
      or (old.status, new.status) = ('offered', 'expired') and new.offer_expires_at <= now()
      or (old.status, new.status) in (('waiting', 'offered'), ('offered', 'accepted')) and pg_trigger_depth() > 1
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An entry of the waiting list cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: waiting or offered to cancelled; offered to expired after its deadline. Places are offered by Usher.'
      );
    end if;
    if new.offer_expires_at is distinct from old.offer_expires_at
      and (old.status, new.status) not in (('waiting', 'offered'), ('offered', 'offered')) then
      perform private.refuse(
        409, 'read_only_field', 'Only an offer that stands has a deadline to be moved.', 'offer_expires_at', hint => 'Leave it as it is.'
      );
    elsif new.status = 'offered' and new.offer_expires_at is null then
      perform private.refuse_value('offer_expires_at', 'An offer has a deadline.', 'Move it, or cancel the entry.');
    end if;
  end if;

  -- Before the unique indexes, whose errors would make two of these wait for one another.
  if new.status in ('waiting', 'offered') and (tg_op = 'INSERT' or lower(new.email) <> old.email_lower) then
    perform private.refuse_taken('email', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.ticket_type_id = new.ticket_type_id and w.email_lower = lower(new.email) and w.status in ('waiting', 'offered')
      and w.id <> new.id;
  end if;
  if tg_op = 'INSERT' or new.external_id is distinct from old.external_id then
    perform private.refuse_taken('external_id', w.id, w.created_at, w.xmin)
    from public.waiting_list_entries w
    where w.organisation_id = new.organisation_id and w.external_id = new.external_id and w.id <> new.id;
  end if;
  if (tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email)) and not private.is_contact(new.name, new.email) then
    perform private.refuse_contact(new.name, new.email);
  end if;
  return new;
end
$$;

revoke all on function private.refuse_taken(text, uuid, timestamp with time zone, xid) from public;

grant execute
  on function private.refuse_taken(text, uuid, timestamp with time zone, xid)
  to api_key, authenticated;
