-- People by their e-mail address for owners and managers who are signed in, and for the SQL editor, which names the organisation if there
-- are several.

create function public.find_person(email text, organisation_id uuid default null) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return private.find_people(private.organisation_meant(organisation_id, '{owner,manager}'), email);
end
$$;
comment on function public.find_person is
  'People with an e-mail address, by name, with their tickets, orders and waiting-list entries, and whether they are a member.';
revoke all on function public.find_person from public, anon, service_role;
grant execute on function public.find_person to authenticated;

create function public.erase_person(
  email text,
  names text[] default null,
  everyone boolean default null,
  organisation_id uuid default null
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  return (private.erase_people(private.organisation_meant(organisation_id, '{owner,manager}'), email, names, everyone, false) - 'digest')::json;
end
$$;
comment on function public.erase_person is
  'Erases the personal data of a person by e-mail address: in tickets, orders, waiting-list entries and every log. If several people have it, name them or send everyone. Returns a receipt. Figures, money and tickets stay.';
revoke all on function public.erase_person from public, anon, service_role;
grant execute on function public.erase_person to authenticated;
