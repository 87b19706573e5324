-- Erasing what the waiting list has of people.

-- Erases entries, and answers how many. Who still waits is taken off, and an offered place goes to the next: these last, for whoever has
-- locked one that waits waits for nothing else. Their copies: private.erase_rows.
create function private.erase_waiting_list_entries(entry_ids uuid[]) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_statement constant text := format(
    $sql$update public.waiting_list_entries w
    set %s, status = case when w.status in ('waiting', 'offered') then 'cancelled' else w.status end
    where w.id = any ($1)$sql$,
    private.erasing_assignments('waiting_list_entries')
  );
  v_waiting_ids uuid[];
begin
  v_waiting_ids := array(select w.id from public.waiting_list_entries w where w.id = any (entry_ids) and w.status = 'waiting');
  execute v_statement using array(select i from unnest(entry_ids) i where i <> all (v_waiting_ids));
  execute v_statement using v_waiting_ids;
  return cardinality(entry_ids);
end
$$;
