-- The workspace settings, for an owner who is signed in and for the SQL editor: organisations, members and API keys. Security definer
-- where they write what members may not; those check the role themselves.

-- The organisation that a caller means: the one named, or the only one there is. Refuses one in which they have none of the roles.
-- In the SQL editor every organisation may be meant.
create function private.organisation_meant(organisation_id uuid, roles public.organisation_role[]) returns uuid
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_ids uuid[];
begin
  if private.claims() ->> 'role' = 'authenticated' then
    v_ids := array(select o from private.organisations_as(roles) o);
  else
    v_ids := array(select o.id from public.organisations o where organisation_id is null or o.id = organisation_id limit 2);
  end if;
  if organisation_id is null and cardinality(v_ids) = 1 then
    return v_ids[1];
  elsif organisation_id is null then
    perform private.refuse_value('organisation_id', 'Say which organisation.', 'There is more than one, or none.');
  elsif organisation_id <> all (v_ids) then
    perform private.refuse_not_found('organisation_id');
  end if;
  return organisation_id;
end
$$;

-- As src/gateway/api-key.ts makes them: 32 random characters, and a checksum of 6, which is the CRC-32 of IEEE 802.3.
create function private.new_api_key(is_test boolean) returns text
language plpgsql volatile set search_path = ''
as $$
declare
  v_digits constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  v_random bytea := sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
  v_number numeric := 0;
  v_key text := '';
  v_checksum text := '';
  v_crc bigint := x'ffffffff'::bigint;
begin
  for i in 0..31 loop
    v_number := v_number * 256 + get_byte(v_random, i);
  end loop;
  for i in 1..32 loop
    v_key := v_key || substr(v_digits, (v_number % 62)::integer + 1, 1);
    v_number := div(v_number, 62);
  end loop;
  v_key := case when is_test then 'usher_test_' else 'usher_live_' end || v_key;
  for i in 0..length(v_key) - 1 loop
    v_crc := v_crc # get_byte(v_key::bytea, i);
    for bit in 1..8 loop
      v_crc := (v_crc >> 1) # (case when v_crc & 1 = 1 then x'edb88320'::bigint else 0 end);
    end loop;
  end loop;
  v_crc := v_crc # x'ffffffff'::bigint;
  for i in 1..6 loop
    v_checksum := substr(v_digits, (v_crc % 62)::integer + 1, 1) || v_checksum;
    v_crc := v_crc / 62;
  end loop;
  return v_key || v_checksum;
end
$$;

create function public.create_api_key(
  name text,
  scopes public.api_scope[],
  organisation_id uuid default null,
  expires_at timestamptz default null,
  confirmations public.api_key_confirmations default 'asked',
  for_person boolean default false
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.organisation_meant(organisation_id, '{owner}');
  v_key text := private.new_api_key((select o.is_test from public.organisations o where o.id = v_organisation_id));
  v_row public.api_keys;
begin
  if coalesce(cardinality(scopes), 0) = 0 or array_position(scopes, null) is not null then
    perform private.refuse_value('scopes', 'A key needs at least one scope.', 'events:read, for example.');
  elsif expires_at <= now() then
    perform private.refuse_value('expires_at', 'expires_at must be in the future.', 'Leave it empty for a key that does not expire.');
  elsif for_person and confirmations = 'none' then
    perform private.refuse_value('confirmations', 'confirmations: none is only for keys for programs.', 'Leave it out for a person, whose key calls nothing.');
  end if;
  v_row := private.create_api_key(
    (select o.slug from public.organisations o where o.id = v_organisation_id), name, scopes, left(v_key, 19),
    sha256(v_key::bytea), expires_at, confirmations => confirmations,
    kind => case when for_person then 'person' else 'key' end::public.api_key_kind
  );
  return json_build_object(
    'key', v_key, 'prefix', v_row.prefix, 'name', v_row.name, 'scopes', v_row.scopes, 'expires_at', private.rfc3339(v_row.expires_at)
  );
end
$$;
comment on function public.create_api_key is
  'Creates an API key, as an owner: { key, prefix, name, scopes, expires_at }. The key is shown only here. confirmations: none is for programs. for_person: a key for the person of this name to sign in with on pages.';
revoke all on function public.create_api_key from public, anon, service_role;
grant execute on function public.create_api_key to authenticated;

create function public.rotate_api_key(prefix text, overlap_hours integer default 24) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key text := private.new_api_key(coalesce(prefix like 'usher\_test\_%', false));
  v_row public.api_keys;
begin
  if not exists (
    select from public.api_keys k
    where k.prefix = rotate_api_key.prefix
      and (private.claims() ->> 'role' is distinct from 'authenticated' or k.organisation_id in (select private.organisations_as('{owner}')))
  ) then
    perform private.refuse_not_found('prefix');
  end if;
  if overlap_hours is null or overlap_hours not between 0 and 720 then
    perform private.refuse_value('overlap_hours', 'The overlap is from 0 to 720 hours.', 'Use 0 if the old key has leaked.');
  end if;
  v_row := private.rotate_api_key(prefix, left(v_key, 19), sha256(v_key::bytea), make_interval(hours => overlap_hours));
  return json_build_object(
    'key', v_key, 'prefix', v_row.prefix, 'name', v_row.name, 'scopes', v_row.scopes, 'expires_at', private.rfc3339(v_row.expires_at)
  );
end
$$;
comment on function public.rotate_api_key is
  'Replaces the API key with this prefix: { key, prefix, name, scopes, expires_at }. The old key works for overlap_hours more. The new key is shown only here.';
revoke all on function public.rotate_api_key from public, anon, service_role;
grant execute on function public.rotate_api_key to authenticated;

-- With the rights of its caller, as an edit of the row: its policy lets owners.
create function public.revoke_api_key(prefix text) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_row public.api_keys;
begin
  update public.api_keys k set revoked_at = coalesce(k.revoked_at, now()) where k.prefix = revoke_api_key.prefix returning k.* into v_row;
  if not found then
    perform private.refuse_not_found('prefix');
  end if;
  return json_build_object('prefix', v_row.prefix, 'name', v_row.name, 'revoked_at', private.rfc3339(v_row.revoked_at));
end
$$;
comment on function public.revoke_api_key is 'Revokes the API key with this prefix: { prefix, name, revoked_at }. Its next request is refused.';
revoke all on function public.revoke_api_key from public, anon, service_role;
grant execute on function public.revoke_api_key to authenticated;

-- Supabase Auth sends invitations to sign up; this gives somebody who has an account a role in the organisation.
create function public.invite_member(
  email text,
  role public.organisation_role default 'viewer',
  organisation_id uuid default null,
  name text default null
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation_id uuid := private.organisation_meant(organisation_id, '{owner}');
  v_user_id uuid;
begin
  select u.id into v_user_id from auth.users u where lower(u.email) = lower(btrim(invite_member.email));
  if not found then
    perform private.refuse(
      404, 'not_found', 'There is no account with this e-mail address.', 'email',
      hint => 'Invite them in Studio under Authentication, Users, Invite. Then repeat this.'
    );
  end if;
  -- Not `on conflict` alone: what explains mistakes would take the member who is there for one.
  update public.organisation_members m set role = invite_member.role, name = coalesce(invite_member.name, m.name)
  where m.organisation_id = v_organisation_id and m.user_id = v_user_id;
  if not found then
    insert into public.organisation_members as m (organisation_id, user_id, role, name)
    values (v_organisation_id, v_user_id, invite_member.role, invite_member.name)
    on conflict on constraint organisation_members_pkey do update set role = excluded.role, name = coalesce(excluded.name, m.name);
  end if;
  return json_build_object('organisation_id', v_organisation_id, 'user_id', v_user_id, 'role', invite_member.role);
end
$$;
comment on function public.invite_member is
  'Gives a person with an account a role in the organisation, or changes it: { organisation_id, user_id, role }. name: for an account without one.';
revoke all on function public.invite_member from public, anon, service_role;
grant execute on function public.invite_member to authenticated;

-- A person who owns an organisation may found another; the first one comes from the SQL editor or the command line.
create function public.create_organisation(name text, slug text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_user_id uuid := case private.claims() ->> 'role' when 'authenticated' then auth.uid() end;
  v_organisation public.organisations;
begin
  if v_user_id is not null and not exists (select from private.organisations_as('{owner}')) then
    perform private.refuse(
      403, 'forbidden', 'Only an owner of an organisation can create another.', hint => 'Ask the operator of this project.'
    );
  elsif exists (select from public.organisations o where o.slug = create_organisation.slug) then
    perform private.refuse(409, 'already_exists', 'Another organisation has this slug.', 'slug', hint => 'Choose another one.');
  elsif slug is null or slug !~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' then
    perform private.refuse_value('slug', 'A slug has at most 63 lower-case letters, digits and hyphens.', 'acme-events, for example.');
  end if;
  insert into public.organisations (name, slug) values (create_organisation.name, create_organisation.slug)
  returning * into v_organisation;
  if v_user_id is not null then
    insert into public.organisation_members (organisation_id, user_id, role) values (v_organisation.id, v_user_id, 'owner');
  end if;
  return json_build_object('id', v_organisation.id, 'name', v_organisation.name, 'slug', v_organisation.slug, 'plan', v_organisation.plan);
end
$$;
comment on function public.create_organisation is
  'Creates an organisation with the caller as owner: { id, name, slug, plan }.';
revoke all on function public.create_organisation from public, anon, service_role;
grant execute on function public.create_organisation to authenticated;

-- The twin has the look and the settings of the organisation, so that what is tried is what guests will see.
create function public.create_test_organisation(organisation_id uuid default null) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_user_id uuid := case private.claims() ->> 'role' when 'authenticated' then auth.uid() end;
  v_organisation public.organisations;
begin
  select o.* into v_organisation
  from public.organisations o
  where o.id = private.organisation_meant(organisation_id, '{owner}');
  if v_organisation.is_test then
    perform private.refuse_value('organisation_id', 'This is a test organisation.', 'Name the live one.');
  end if;
  v_organisation.id := private.uuid_v7();
  v_organisation.slug := left(v_organisation.slug, 58) || '-test';
  v_organisation.is_test := true;
  v_organisation.created_at := now();
  v_organisation.updated_at := now();
  insert into public.organisations values (v_organisation.*) on conflict (slug) do nothing;
  if not found then
    perform private.refuse(
      409, 'already_exists', 'There is an organisation with the slug of the twin.', 'slug', hint => 'Look in organisations for the one with is_test.'
    );
  end if;
  if v_user_id is not null then
    insert into public.organisation_members (organisation_id, user_id, role) values (v_organisation.id, v_user_id, 'owner');
  end if;
  return json_build_object('id', v_organisation.id, 'name', v_organisation.name, 'slug', v_organisation.slug, 'plan', v_organisation.plan);
end
$$;
comment on function public.create_test_organisation is
  'Creates a test twin of an organisation, as its owner: SLUG-test, with the same look and settings: { id, name, slug, plan }. In it everything works, and no e-mail is sent.';
revoke all on function public.create_test_organisation from public, anon, service_role;
grant execute on function public.create_test_organisation to authenticated;
