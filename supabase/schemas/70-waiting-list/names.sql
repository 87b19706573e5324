-- What entries of the waiting list are called, by the person who waits: see 00-ground/names.sql.

create index waiting_list_entries_organisation_id_email_lower_idx on public.waiting_list_entries (organisation_id, email_lower);
create index waiting_list_entries_organisation_id_name_idx
  on public.waiting_list_entries (organisation_id, private.search_form(name));

insert into private.object_names (kind, name, finders, finds, readers, shows) values
  ('waiting_list_entry', 'id', null, 'o.id = $5', null, 'o.id'),
  ('waiting_list_entry', 'external_id', null, 'o.organisation_id = $1 and o.external_id = $3', null, null),
  ('waiting_list_entry', 'email', '{attendees:read}', 'o.organisation_id = $1 and o.email_lower = lower($3)', '{attendees:read}', 'o.email'),
  ('waiting_list_entry', 'name', '{attendees:read}', 'o.organisation_id = $1 and private.search_form(o.name) = $4', '{attendees:read}', 'o.name'),
  ('waiting_list_entry', 'status', null, null, '{attendees:read}', 'o.status'),
  ('waiting_list_entry', 'ticket_type', null, null, '{attendees:read}', '(select t.name from public.ticket_types t where t.id = o.ticket_type_id)'),
  ('waiting_list_entry', 'event', null, null, null, $$private.object_shown('event', o.event_id, $2)$$);
