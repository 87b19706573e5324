-- What is told to whoever waits: that a place is offered to them (notifications.sql), once more where the event changes, and that the event
-- was cancelled.

-- Whom the cancellation of the event took off its waiting list, or would take, offers first, and nobody whom it had lost before. With
-- `changed_at`, who holds an offer that is older than this change of the event: they have read of another. An offer made since says what is.
create function private.recipients_on_waiting_list(event public.events, notify public.notify, changed_at timestamptz)
returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select row(
      w.organisation_id, null, w.id, null, w.email_lower, private.unmailed_because(w.email, w.send_email, notify), w.send_email,
      event.cancelled_at
    )::private.recipient
    from public.waiting_list_entries w
    where w.event_id = event.id
      and case
        when event.status = 'cancelled' then w.status = 'cancelled' and w.updated_at = event.cancelled_at
        when changed_at is null then w.status in ('waiting', 'offered')
        else w.status = 'offered' and w.offered_at < changed_at and w.offer_expires_at > now()
      end
    order by w.offered_at is null, w.id
  );
end
$$;
