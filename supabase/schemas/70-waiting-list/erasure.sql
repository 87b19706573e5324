-- Erasing what the waiting list has of a person.

-- Erases the entries of a person, with every copy: see private.erase_person.
create function private.erase_waiting_list_entries(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_entry public.waiting_list_entries;
begin
  for v_entry in
    update public.waiting_list_entries w
    set name = 'Erased', email = 'erased@erased.invalid', company = null, external_id = null, metadata = '{}',
      status = case when w.status in ('waiting', 'offered') then 'cancelled' else w.status end
    where w.id = any (entry_ids)
    returning w.*
  loop
    perform private.erase_copies(v_entry.organisation_id, v_entry.id, null, v_entry.created_at);
  end loop;
end
$$;
