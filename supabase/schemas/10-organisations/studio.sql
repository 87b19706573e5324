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
comment on view public.members is 'Who may sign in for an organisation, by name. To change it, edit organisation_members.';
comment on column public.members.organisation_id is 'The organisation.';
comment on column public.members.name is 'Their name: that of their account, or else as typed into organisation_members.';
comment on column public.members.email is 'Their e-mail address: that of their account, or else as typed into organisation_members.';
comment on column public.members.role is 'What they may do: owner, manager, door or viewer.';
comment on column public.members.created_at is 'When they became a member.';
comment on column public.members.user_id is 'Their account, of auth.users.';
create trigger members_100_read_only instead of insert or update or delete on public.members
  for each row execute function private.tg__refuse_write();

revoke all on public.members from anon, authenticated, service_role;
grant select on public.members to authenticated;
