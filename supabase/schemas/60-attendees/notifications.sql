-- What is notified of attendees. All security definer: no role may write the outbox.

-- Announces an order that gets its first attendees, and notifies of those added to an order that was announced before. Those of a new
-- order are in its order.created. Fires before the totals, whose changes notify of other attendees.
create function private.tg_attendees__notify_insert() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_first uuid[];
begin
  if current_setting('usher.adds_to_order', true) is distinct from 'on' or current_setting('usher.announces', true) = 'on' then
    return null;
  end if;
  if exists (
    select from new_rows n
    where n.order_id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
  ) then
    v_first := array(
      select n.order_id
      from (select r.order_id, count(*) as attendees from new_rows r group by r.order_id) n
      where (select count(*) from public.attendees a where a.order_id = n.order_id) = n.attendees
    );
    insert into private.order_notices (types, order_ids)
    select
      -- A complimentary order is complete before it has attendees; any other one completes, and says so, after this.
      case o.status when 'completed' then '{order.created,order.completed}' else '{order.created}' end::public.notification_type[],
      array_agg(o.id order by o.id)
    from public.orders o
    where o.id = any (v_first)
      and o.id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    group by o.status;

    insert into public.notifications (organisation_id, type, data, subject_id)
    -- The row as it is: its discount may have been set after it was added.
    select
      n.organisation_id, 'attendee.updated', (select private.attendee_json(a, with_url => false) from public.attendees a where a.id = n.id),
      n.order_id
    from new_rows n
    where n.order_id not in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
    order by n.id;
  end if;
  return null;
end
$$;
create trigger attendees_350_notify_insert after insert on public.attendees
  referencing new table as new_rows
  for each statement execute function private.tg_attendees__notify_insert();

-- The plan is cached, and made for the one row of the first call: without nested loops it serves the 25,000 rows of a cancelled
-- event as well.
create function private.tg_attendees__notify_update() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if current_setting('usher.edits_attendees', true) is distinct from 'on' then
    return null;
  end if;
  -- Every edit increments the version; a later statement of the transaction may hold none.
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
    -- An attendee who is as new as what announces the order is in there as they are at the end.
    and not (
      n.created_at = now()
      and n.status <> 'cancelled'
      and n.erased_at is null
      and (
        current_setting('usher.announces', true) = 'on'
        or n.order_id in (select unnest(c.order_ids) from private.order_notices c where 'order.created' = any (c.types))
      )
    )
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
