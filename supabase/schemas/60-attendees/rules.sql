-- The rules of a row of attendees, whoever writes it: one trigger each. A row meets, in this order:
--   010 blanks are taken off what a person types    050 a person leaves what is fixed or derived   (private.keep_table)
--   100 a new ticket belongs to an order; whoever was erased stays so
--   110 a new ticket has nothing that Usher sets    120 an external_id has one holder
--   130 an offer of the waiting list is accepted    140 the order makes price, status and whether an e-mail goes
--   200 the ticket code is generated                300 the status goes one way
--   400 the ticket's e-mail is asked for            410 its state follows the status and the address
--   500 a contact can be written to (private.keep_table)    510 the row can be found
--   800 mistakes of a person are explained          900 an edit counts                             (private.keep_table)
-- Then, once for all rows of the statement: numbers per order are checked and amounts off spread (totals.sql), e-mails queued (emails.sql),
-- changes notified of (notifications.sql), and sums, uses and places counted (totals.sql). At the end of the transaction the order is
-- announced (notifications.sql).
-- Functions that read orders or ticket types are security definer: whoever registers may not see them.

-- A new order is seen by this transaction alone, which has the event lock since it added it. Any other is locked, so that it is neither
-- cancelled nor completed without this ticket, and so that its totals are updated by one transaction at a time: the event lock before the
-- order, as everywhere.
create function private.tg_attendees__belong_to_order() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id;
  if private.is_foreign(v_order.organisation_id) then
    perform private.refuse_not_found('order_id');
  end if;
  if v_order.created_at <> now() then
    perform private.lock_event_shared(v_order.event_id);
    select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
    if not found then
      perform private.refuse_not_found('order_id');
    end if;
  end if;
  if v_order.status = 'cancelled' then
    perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id', "row" => to_jsonb(new));
  elsif new.organisation_id <> v_order.organisation_id or new.event_id <> v_order.event_id or new.currency <> v_order.currency then
    perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
      'organisation_id', v_order.organisation_id, 'event_id', v_order.event_id, 'currency', v_order.currency
    ));
  end if;
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := v_order.currency;
  return new;
end
$$;
create trigger attendees_100_belong_to_order before insert on public.attendees
  for each row execute function private.tg_attendees__belong_to_order();

-- A person is erased by a function, which finds every copy; who was erased is edited no more, and sent nothing.
create function private.tg_attendees__stay_erased() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.erased_at is distinct from old.erased_at and current_setting('usher.erasing', true) is distinct from 'on' then
    perform private.refuse(
      409, 'read_only_field', 'Only a function can erase a person, because it finds every copy.', 'erased_at', hint => 'Call erase_attendee.',
      "row" => to_jsonb(new)
    );
  elsif old.erased_at is not null
    and ((new.name, new.email, new.company, new.external_id, new.metadata)
      is distinct from (old.name, old.email, old.company, old.external_id, old.metadata)
      or new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued') then
    perform private.refuse(
      409, 'attendee_erased', 'This attendee was erased.', 'attendee_id', hint => 'Register the new person instead.', "row" => to_jsonb(new)
    );
  end if;
  return new;
end
$$;
create trigger attendees_100_stay_erased
  before update of name, email, company, external_id, metadata, ticket_email_status, erased_at on public.attendees
  for each row when (coalesce(new.erased_at, old.erased_at) is not null)
  execute function private.tg_attendees__stay_erased();

-- Not a `when`, here and in the next two: Postgres plans one for each statement, which takes longer than the call.
create function private.tg_attendees__set_nothing_of_ushers() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.status = 'cancelled' or new.inside or new.ticket_email_status <> 'queued' or new.price <> 0 or new.discount <> 0
    or num_nonnulls(new.promo_code_id, new.ticket_code, new.ticket_token, new.checked_in_at, new.cancelled_at, new.erased_at) > 0 then
    perform private.assert_as_given(to_jsonb(new), '{
      "status": "active", "inside": false, "ticket_email_status": "queued", "price": 0, "discount": 0, "promo_code_id": null,
      "ticket_code": null, "ticket_token": null, "checked_in_at": null, "cancelled_at": null, "erased_at": null
    }');
  end if;
  return new;
end
$$;
create trigger attendees_110_set_nothing_of_ushers before insert on public.attendees
  for each row execute function private.tg_attendees__set_nothing_of_ushers();

-- Whoever registers by the API or a page under the identifier of a cancelled ticket comes after all: it goes with the new one. An edit takes
-- none away.
create function private.tg_attendees__hold_external_id() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_holder record;
begin
  if new.external_id is null or (case tg_op when 'INSERT' then private.is_by_hand() else new.external_id = old.external_id end) then
    return new;
  end if;
  select a.id, a.status, a.created_at, a.xmin into v_holder
  from public.attendees a
  where a.external_id = new.external_id and a.organisation_id is not distinct from new.organisation_id and a.id <> new.id;
  if tg_op = 'INSERT' and v_holder.status = 'cancelled' then
    update public.attendees a set external_id = null where a.id = v_holder.id and a.external_id = new.external_id;
  elsif v_holder.id is not null then
    perform private.refuse_taken('external_id', v_holder.id, v_holder.created_at, v_holder.xmin);
  end if;
  return new;
end
$$;
create trigger attendees_120_hold_external_id before insert or update of external_id on public.attendees
  for each row execute function private.tg_attendees__hold_external_id();

-- Locks the offer, and accepts it. The place is the one that is held: see tg_attendees__count.
create function private.tg_attendees__accept_offer() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_entry public.waiting_list_entries;
begin
  if new.waiting_list_entry_id is null then
    return new;
  end if;
  select w.* into v_entry
  from public.waiting_list_entries w
  where w.id = new.waiting_list_entry_id and w.event_id = new.event_id
  for no key update;
  if not found then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  perform private.assert_offered(v_entry);
  if v_entry.ticket_type_id <> new.ticket_type_id then
    perform private.refuse_value(
      'ticket_type_id', 'The offer is for another ticket type.', 'Register the ticket type of the waiting list entry.'
    );
  end if;
  update public.waiting_list_entries w set status = 'accepted' where w.id = v_entry.id;
  return new;
end
$$;
create trigger attendees_130_accept_offer before insert on public.attendees
  for each row execute function private.tg_attendees__accept_offer();

-- Tickets of an order without a payment method are complimentary. What is to be paid is sent when it is paid.
create function private.tg_attendees__be_made_by_order() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id;
  new.status := case v_order.status when 'completed' then 'active' else 'awaiting_payment' end;
  if v_order.payment_method is not null then
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more paid tickets.', 'order_id',
        hint => 'Create a new order.', "row" => to_jsonb(new)
      );
    end if;
  end if;
  new.ticket_email_status := case
    when not v_order.send_email or private.takes_no_mail(new.email) then 'not_requested'
    when new.status = 'active' then 'queued'
    else 'waiting'
  end;
  return new;
end
$$;
create trigger attendees_140_be_made_by_order before insert on public.attendees
  for each row execute function private.tg_attendees__be_made_by_order();

-- A scanner knows the ticket of a test organisation by its code, also offline.
create function private.new_ticket_code(organisation_id uuid) returns text
language plpgsql volatile set search_path = ''
as $$
begin
  return (select case when o.is_test then 'TEST-' else '' end from public.organisations o where o.id = organisation_id)
    || private.random_code(16);
end
$$;

create function private.tg_attendees__get_ticket_code() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  new.ticket_code := private.new_ticket_code(new.organisation_id);
  new.ticket_token := private.random_token();
  return new;
end
$$;
create trigger attendees_200_get_ticket_code before insert on public.attendees
  for each row execute function private.tg_attendees__get_ticket_code();

-- A ticket is reissued by emptying its code: the new one is e-mailed to the present holder.
create function private.tg_attendees__reissue() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.ticket_code is not null then
    perform private.refuse(
      409, 'read_only_field', 'Ticket codes are generated and cannot be chosen.',
      case when new.ticket_code <> old.ticket_code then 'ticket_code' else 'ticket_token' end,
      hint => 'Clear ticket_code to generate a new one.', "row" => to_jsonb(new)
    );
  elsif new.checked_in_at is not null or new.status = 'cancelled' then
    perform private.refuse(
      409, 'ticket_not_reissuable', 'A used or cancelled ticket cannot be reissued.', 'ticket_code',
      hint => 'Undo the check-in first, or register the person again.', "row" => to_jsonb(new)
    );
  end if;
  new.ticket_code := private.new_ticket_code(new.organisation_id);
  new.ticket_token := private.random_token();
  new.ticket_email_status := case
    when old.ticket_email_status = 'not_requested' or old.erased_at is not null then old.ticket_email_status
    when private.takes_no_mail(new.email) then 'not_requested'
    when new.status = 'active' then 'queued'
    else 'waiting'
  end;
  return new;
end
$$;
create trigger attendees_200_reissue before update of ticket_code, ticket_token on public.attendees
  for each row when (new.ticket_code is distinct from old.ticket_code or new.ticket_token is distinct from old.ticket_token)
  execute function private.tg_attendees__reissue();

-- awaiting_payment to active or cancelled, active to cancelled; back again only with an order that is reopened.
create function private.tg_attendees__change_status() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if (old.status, new.status) = ('active', 'awaiting_payment')
    or old.status = 'cancelled' and not (new.status = 'awaiting_payment' and private.is_reopening(new.order_id)) then
    perform private.refuse(
      409, 'invalid_transition', 'An attendee cannot change from its current status to this one.', 'status',
      jsonb_build_object('from', old.status, 'to', new.status),
      'Allowed: awaiting_payment to active or cancelled; active to cancelled.', "row" => to_jsonb(new)
    );
  elsif new.status = 'active' then
    perform from public.orders o where o.id = new.order_id and o.status = 'completed' for share;
    if not found then
      perform private.refuse(
        409, 'payment_due', 'The ticket becomes active when its order is completed.', 'status', hint => 'Record the payment instead.',
        "row" => to_jsonb(new)
      );
    end if;
  end if;
  new.cancelled_at := case new.status when 'cancelled' then now() end;
  return new;
end
$$;
create trigger attendees_300_change_status before update of status on public.attendees
  for each row when (new.status <> old.status)
  execute function private.tg_attendees__change_status();

-- Only a good ticket is sent, to an address that takes mail. What failed before says nothing of what is sent now.
create function private.tg_attendees__ask_for_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.status <> 'active' then
    perform private.refuse_inactive_ticket(
      new.status, 'Only active tickets are sent: ticket_email_status cannot be changed.'
    );
  elsif private.takes_no_mail(new.email) then
    perform private.refuse(
      409, 'no_address', 'This attendee has no deliverable address.', 'email', hint => 'Correct the address. If that does not send the ticket, queue it again.',
      "row" => to_jsonb(new)
    );
  end if;
  new.ticket_email_last_error := null;
  return new;
end
$$;
create trigger attendees_400_ask_for_ticket_email before update of ticket_email_status, ticket_code on public.attendees
  for each row when (new.ticket_email_status = 'queued' and (old.ticket_email_status <> 'queued' or new.ticket_code <> old.ticket_code))
  execute function private.tg_attendees__ask_for_ticket_email();

-- The e-mail of a ticket whose status or address changes: it waits for the payment, and goes to addresses that take mail.
create function private.tg_attendees__state_of_ticket_email() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_is_wanted boolean := not private.takes_no_mail(new.email) and (select o.send_email from public.orders o where o.id = new.order_id);
begin
  if new.status = 'cancelled' then
    if new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;
  elsif old.status = 'cancelled' then
    -- Of a reopened order: it was waiting for the payment.
    if new.ticket_email_status = 'cancelled' and new.erased_at is null then
      new.ticket_email_status := 'waiting';
    end if;
  elsif new.erased_at is null and new.email <> old.email then
    -- Whose address is corrected to one that takes mail was sent nothing so far.
    if private.takes_no_mail(new.email) and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'not_requested';
    elsif new.ticket_email_status = 'not_requested' and private.takes_no_mail(old.email) and v_is_wanted then
      new.ticket_email_status := case new.status when 'active' then 'queued' else 'waiting' end;
    end if;
  end if;
  if new.status = 'active' and new.ticket_email_status = 'waiting' then
    new.ticket_email_status := case when old.status <> 'active' and v_is_wanted then 'queued' else 'not_requested' end;
  end if;
  return new;
end
$$;
create trigger attendees_410_state_of_ticket_email before update of status, email, ticket_email_status on public.attendees
  for each row when (new.status <> old.status or new.email <> old.email or new.ticket_email_status = 'waiting')
  execute function private.tg_attendees__state_of_ticket_email();

-- What the door may see, a tab, the rest of the attendee, and on a second line the contact of the order where it differs.
create function private.tg_attendees__be_found() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id;
  new.search_text := private.search_form(concat_ws(' ', new.name, new.company, v_order.reference)) || E'\t'
    || private.search_form(concat_ws(' ', new.email, new.external_id)) || E'\n'
    || private.search_form(concat_ws(
      ' ', nullif(v_order.name, new.name), nullif(v_order.email, new.email), nullif(v_order.company, new.company),
      nullif(v_order.external_id, new.external_id)
    ));
  return new;
end
$$;
create trigger attendees_510_be_found before insert or update of name, email, company, external_id, search_text on public.attendees
  for each row execute function private.tg_attendees__be_found();

-- A ticket that stands is cancelled first: that takes it off the order, gives its place back and notifies. Nothing then hangs on a
-- deletion, so no trigger adds up or counts one.
create trigger attendees_100_over before delete on public.attendees
  for each row when (old.status <> 'cancelled' and not private.is_deleted_wholly(old.organisation_id))
  execute function private.tg__refuse(
    409, 'in_use', 'A valid ticket cannot be deleted, because its order depends on it.',
    'Set status to cancelled instead. To remove personal data, call erase_attendee.'
  );
