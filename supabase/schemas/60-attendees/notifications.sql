-- What is notified of attendees. All security definer: no role may write the outbox.

-- An order is announced at the end of the transaction that adds its first attendees, as it is then and by the first of them; whoever is added
-- later is told of alone.
create function private.tg_attendees__announce() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_first public.attendees;
begin
  select a.* into v_first from public.attendees a where a.order_id = new.order_id order by a.id limit 1;
  if v_first.id = new.id then
    -- A complimentary order is complete before it has attendees; any other one completes, and says so, after this.
    perform private.notify_of_order(
      new.order_id, case new.status when 'active' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[]
    );
  elsif v_first.created_at <> now() then
    insert into public.notifications (organisation_id, type, data, subject_id)
    select a.organisation_id, 'attendee.updated', private.attendee_json(a, with_url => false), a.order_id
    from public.attendees a
    where a.id = new.id;
  end if;
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
