-- The members of an organisation by name, for organisers. With the rights of whoever reads it: see 20-events/studio.sql.

create view public.members with (security_invoker = true) as
select
  m.organisation_id,
  c.name,
  c.email,
  m.role,
  m.created_at,
  m.user_id
from public.organisation_members m
cross join lateral private.member_contact(m.organisation_id, m.user_id) c
order by m.organisation_id, lower(coalesce(c.name, c.email)), m.user_id;
comment on view public.members is 'Members who can sign in for an organisation, by name. Edit organisation_members to change them.';
comment on column public.members.organisation_id is 'The organisation.';
comment on column public.members.name is 'Name: from the account, otherwise from organisation_members.';
comment on column public.members.email is 'E-mail address: from the account, otherwise from organisation_members.';
comment on column public.members.role is 'Role: owner, manager, door or viewer.';
comment on column public.members.created_at is 'When they became a member.';
comment on column public.members.user_id is 'Their account, of auth.users.';
select private.keep_view('public.members');

revoke all on public.members from anon, authenticated, service_role;
grant select on public.members to authenticated;

-- The organisation of a slug: see 20-events/studio.sql.
create function public.the_organisation(slug text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(select o.id from public.organisations o where o.slug = lower(btrim(the_organisation.slug))),
    'There is no organisation with this slug.', null, 'slug'
  );
end
$$;
comment on function public.the_organisation is 'The id of the organisation with this slug. Refuses an unknown slug.';
revoke all on function public.the_organisation from public, anon, service_role;
grant execute on function public.the_organisation to authenticated;

-- The account of a member: see 20-events/studio.sql.
create function public.the_member(email text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(select distinct m.user_id from public.members m where lower(m.email) = lower(btrim(the_member.email)) limit 2),
    'There is no member with this e-mail address.', 'Several members have this e-mail address.', 'email'
  );
end
$$;
comment on function public.the_member is 'The account of the member with this e-mail address. Refuses an unknown address.';
revoke all on function public.the_member from public, anon, service_role;
grant execute on function public.the_member to authenticated;
