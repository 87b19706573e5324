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
  'Registers whoever is offered a place of the waiting list: the reference of the order. Complimentary unless payment_method is given.';
revoke all on function public.accept_offer from public, anon, service_role;
grant execute on function public.accept_offer to authenticated;
