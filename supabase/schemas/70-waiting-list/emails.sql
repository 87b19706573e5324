-- What is told to whoever waits: that a place is offered to them, once more where the event changes, and that the event was cancelled.

-- To people whom the waiting list offers a place. Security definer: no role may write e-mails.
create function private.queue_waiting_list_emails(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into public.emails (organisation_id, kind, waiting_list_entry_id)
  select w.organisation_id, 'waiting_list_offer', w.id
  from public.waiting_list_entries w
  where w.id = any (entry_ids)
  order by w.id;
end
$$;

create function private.recipient_of_entry(entry public.waiting_list_entries, notify public.notify) returns private.recipient
language plpgsql stable set search_path = ''
as $$
begin
  return row(entry.organisation_id, null, entry.id, entry.email_lower, case
    when entry.email = private.erased_fields() ->> 'email' then 'erased'
    when private.takes_no_mail(entry.email) then 'no_address'
    when notify = 'mailed' and not entry.send_email then 'send_email_false'
  end, null)::private.recipient;
end
$$;

-- Whom the cancellation of the event took off its waiting list, or would take, offers first, and nobody whom it had lost before.
create function private.recipients_on_waiting_list(event public.events, notify public.notify) returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select private.recipient_of_entry(w, notify)
    from public.waiting_list_entries w
    where w.event_id = event.id
      and case event.status
        when 'cancelled' then w.status = 'cancelled' and w.updated_at = event.cancelled_at
        else w.status in ('waiting', 'offered')
      end
    order by w.offered_at is null, w.id
  );
end
$$;

-- Who holds an offer that is older than a change of the event: they have read of another. An offer that was made since says what is.
create function private.recipients_of_offers(event public.events, notify public.notify, changed_at timestamptz) returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select private.recipient_of_entry(w, notify)
    from public.waiting_list_entries w
    where w.event_id = event.id and w.status = 'offered' and w.offered_at < changed_at and w.offer_expires_at > now()
    order by w.id
  );
end
$$;

-- What an e-mail to them shows besides its event.
create function private.waiting_list_offer_json(waiting_list_entry_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select private.waiting_list_entry_json(w) from public.waiting_list_entries w where w.id = waiting_list_offer_json.waiting_list_entry_id
  );
end
$$;
