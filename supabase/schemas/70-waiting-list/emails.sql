-- What is told to whoever is offered a place.

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

-- What the e-mail of an offer shows besides its event.
create function private.waiting_list_offer_json(waiting_list_entry_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select private.waiting_list_entry_json(w) from public.waiting_list_entries w where w.id = waiting_list_offer_json.waiting_list_entry_id
  );
end
$$;
