-- Accepting an offer of the waiting list for somebody, for organisers: with the rights of the caller, as every row that they add. To
-- decline it, they cancel the entry.

create function public.accept_offer(waiting_list_entry_id uuid, payment_method public.payment_method default null) returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_reference text;
begin
  insert into public.registrations (
    event_id, ticket_type_id, name, email, company, send_email, metadata, payment_method, waiting_list_entry_id
  )
  select w.event_id, w.ticket_type_id, w.name, w.email, w.company, w.send_email, w.metadata, accept_offer.payment_method, w.id
  from public.waiting_list_entries w
  where w.id = accept_offer.waiting_list_entry_id
  returning reference into v_reference;
  if v_reference is null then
    perform private.refuse_not_found('waiting_list_entry_id');
  end if;
  return v_reference;
end
$$;
comment on function public.accept_offer is
  'Accepts a waiting-list offer and registers the person. Returns the reference of the order. Complimentary unless payment_method is given.';
revoke all on function public.accept_offer from public, anon, service_role;
grant execute on function public.accept_offer to authenticated;

-- The id of an entry: see 20-events/studio.sql.
create function public.the_waiting_list_entry(email text, event_slug text default null) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(
      select w.id from public.waiting_list_entries w
      where w.email_lower = lower(btrim(the_waiting_list_entry.email)) and w.status in ('waiting', 'offered')
        and (event_slug is null or w.event_id = public.the_event(event_slug))
      limit 2
    ),
    'This e-mail address is not on the waiting list.', 'This e-mail address is on several waiting lists.', 'email'
  );
end
$$;
comment on function public.the_waiting_list_entry is
  'The id of the waiting or offered entry with this e-mail address, at the event with this slug or at any. Refuses no match and several.';
revoke all on function public.the_waiting_list_entry from public, anon, service_role;
grant execute on function public.the_waiting_list_entry to authenticated;
