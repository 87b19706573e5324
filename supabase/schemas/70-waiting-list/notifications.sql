-- What is notified of the waiting list.

-- Security definer: no role may write the outbox. An acceptance is notified of at the end of the transaction, when there is an attendee.
create function private.tg_waiting_list_entries__notify() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'UPDATE' and new.status = old.status then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data, subject_id)
  values (
    new.organisation_id,
    ('waiting_list_entry.' || case new.status when 'waiting' then 'created' else new.status::text end)::public.notification_type,
    private.waiting_list_entry_json(new),
    new.id
  );
  if new.status = 'offered' and new.send_email then
    insert into public.emails (organisation_id, kind, waiting_list_entry_id)
    values (new.organisation_id, 'waiting_list_offer', new.id);
  end if;
  return null;
end
$$;
create trigger waiting_list_entries_600_notify after insert or update of status on public.waiting_list_entries
  for each row when (new.status <> 'accepted')
  execute function private.tg_waiting_list_entries__notify();
create constraint trigger waiting_list_entries_600_notify_accepted after update on public.waiting_list_entries
  deferrable initially deferred
  for each row when (new.status = 'accepted' and old.status <> 'accepted')
  execute function private.tg_waiting_list_entries__notify();
