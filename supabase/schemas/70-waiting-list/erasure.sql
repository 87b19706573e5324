-- Erasing what the waiting list has of a person.

-- Erases the entries of a person, with every copy: see private.erase_person.
create function private.erase_waiting_list_entries(entry_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
as $$
declare
  v_entry public.waiting_list_entries;
begin
  for v_entry in
    execute format(
      $sql$update public.waiting_list_entries w
      set %s, status = case when w.status in ('waiting', 'offered') then 'cancelled' else w.status end
      where w.id = any ($1)
      returning w.*$sql$,
      private.erasing_assignments('waiting_list_entries')
    ) using entry_ids
  loop
    perform private.erase_copies(v_entry.organisation_id, v_entry.id, null, array[v_entry.id]);
  end loop;
end
$$;
