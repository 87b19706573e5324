-- What is notified of attendees. All security definer: no role may write the outbox.

-- An order is announced at the end of the transaction that adds its first attendees, as it is then; whoever is added later is told of alone.
-- The first row that fires announces all orders of the transaction, which costs a batch of 50 half of what one by one would; the
-- others find theirs announced.
create function private.tg_attendees__announce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_announced_by xid8;
begin
  select n.transaction_id into v_announced_by
  from public.notifications n
  where n.subject_id = new.order_id and n.type = 'order.created';
  if v_announced_by = pg_current_xact_id() then
    return null;
  end if;
  -- The log of long ago is purged.
  if v_announced_by is not null or exists (
    select from public.attendees a where a.order_id = new.order_id and a.created_at < now()
  ) then
    insert into public.notifications (organisation_id, type, data, subject_id)
    select a.organisation_id, 'attendee.created', private.attendee_json(a, with_url => false), a.order_id
    from public.attendees a
    where a.id = new.id;
    return null;
  end if;
  perform private.notify_of_orders(new.order_id || array(
    select distinct a.order_id from public.attendees a
    -- Of this transaction, and after this one: triggers fire in the order in which rows were added.
    where a.organisation_id = new.organisation_id and a.updated_at = now() and a.id > new.id and a.created_at = now()
      and a.order_id <> new.order_id
      -- Counted, so that they are read by key: as joins they would read what others have.
      and (select count(*) from public.attendees f where f.order_id = a.order_id and f.created_at < now()) = 0
      and (select count(*) from public.notifications n where n.subject_id = a.order_id and n.type = 'order.created') = 0
    order by a.order_id
  ), '{order.created,order.completed}');
  return null;
end
$$;
create constraint trigger attendees_350_announce after insert on public.attendees
  deferrable initially deferred
  for each row execute function private.tg_attendees__announce();

create function private.tg_attendees__notify_update() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- Every edit increments the version.
  if (select sum(n.version) from new_rows n) = (select sum(o.version) from old_rows o) then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  select
    n.organisation_id,
    case
      when n.erased_at is not null and o.erased_at is null then 'attendee.erased'
      when n.status = 'cancelled' and o.status <> 'cancelled' then 'attendee.cancelled'
      else 'attendee.updated'
    end::public.notification_type,
    private.attendee_json(
      row(n.*)::public.attendees,
      true,
      (select t.name from public.ticket_types t where t.id = n.ticket_type_id),
      (select o.reference from public.orders o where o.id = n.order_id),
      false
    ),
    n.order_id
  from new_rows n
  join old_rows o on o.id = n.id
  where n.version <> o.version
    -- Whoever is new is announced as they are at the end of the transaction.
    and (n.created_at <> now() or n.status = 'cancelled' or n.erased_at is not null)
  order by n.id;
  return null;
end
$$;
create trigger attendees_350_notify_update after update on public.attendees
  referencing old table as old_rows new table as new_rows
  for each statement execute function private.tg_attendees__notify_update();

create function private.tg_attendees__notify_bounce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (
    new.organisation_id,
    'email.bounced',
    private.bounce_json(
      'ticket', new.event_id, new.order_id, new.id, new.email, new.ticket_email_status, new.ticket_email_sent_at, new.ticket_email_last_error
    ),
    new.order_id
  );
  return null;
end
$$;
create trigger attendees_600_notify_bounce after update of ticket_email_status on public.attendees
  for each row when (new.ticket_email_status in ('bounced', 'failed') and new.ticket_email_status <> old.ticket_email_status)
  execute function private.tg_attendees__notify_bounce();
