-- The id of a ticket type by its name: see 20-events/studio.sql.

create function public.the_ticket_type(event_slug text, name text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(
      select t.id from public.ticket_types t
      where t.event_id = public.the_event(event_slug) and private.search_form(t.name) = private.search_form(the_ticket_type.name)
      limit 2
    ),
    'This event has no ticket type with this name.', 'Several ticket types of this event have this name.', 'name'
  );
end
$$;
comment on function public.the_ticket_type is
  'The id of a ticket type, by the slug of its event and its own name.';
revoke all on function public.the_ticket_type from public, anon, service_role;
grant execute on function public.the_ticket_type to authenticated;
