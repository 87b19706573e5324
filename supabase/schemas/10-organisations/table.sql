-- Organisations own everything; nothing is visible across them. A plan sets the rate limit of their API keys; members are
-- the people who sign in. In a test organisation everything works, and nothing reaches a person.

-- What members may do is in docs/guides/members.md, and in the policies of each table.
create type public.organisation_role as enum ('owner', 'manager', 'door', 'viewer');

create table public.plans (
  name text not null,
  rate_limit_per_minute integer not null,
  constraint plans_pkey primary key (name),
  constraint plans_name_is_a_slug check (name ~ '^[a-z][a-z0-9_-]{0,39}$'),
  constraint plans_rate_limit_is_positive check (rate_limit_per_minute > 0)
);
comment on table public.plans is 'Plans of organisations, with their limits. Add a row to offer another plan.';
comment on column public.plans.name is 'Short name: up to 40 lower-case letters, digits, hyphens and underscores, the first a letter.';
comment on column public.plans.rate_limit_per_minute is 'Requests a minute for each API key of an organisation on this plan, at least 1.';

insert into public.plans (name, rate_limit_per_minute) values
  ('starter', 600),
  ('standard', 6000),
  ('enterprise', 60000);

create table public.organisations (
  name text not null,
  slug text not null,
  plan text not null default 'standard',
  reply_to_email text,
  accent_colour text,
  logo_url text,
  payment_instructions text,
  seller_details text,
  tax_note text,
  confirm_refunds_above bigint,
  embed_origins text[] not null default '{}',
  is_test boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  constraint organisations_pkey primary key (id),
  constraint organisations_slug_key unique (slug),
  constraint organisations_plan_fkey foreign key (plan) references public.plans (name),
  constraint organisations_name_is_one_line check (private.is_one_line(name, 200)),
  constraint organisations_reply_to_email_is_an_address check (private.is_email_address(reply_to_email)),
  constraint organisations_accent_colour_is_hexadecimal check (accent_colour ~ '^#[0-9a-f]{6}$'),
  constraint organisations_logo_url_is_https check (private.is_courier_url(logo_url)),
  constraint organisations_payment_instructions_are_bounded check (length(payment_instructions) <= 2000),
  constraint organisations_seller_details_are_bounded check (length(seller_details) <= 1000),
  constraint organisations_tax_note_is_bounded check (length(tax_note) <= 1000),
  constraint organisations_confirm_refunds_above_is_not_negative check (confirm_refunds_above >= 0),
  constraint organisations_embed_origins_are_https check (
    cardinality(embed_origins) <= 20 and array_position(embed_origins, null) is null
    and array_to_string(embed_origins, ' ') ~ '^(https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?( |$))*$'
  ),
  constraint organisations_slug_is_a_slug check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')
);
comment on constraint organisations_name_is_one_line on public.organisations is
  'A name is one line of 1 to 200 characters. Write at least one letter, and no line breaks.';
comment on constraint organisations_reply_to_email_is_an_address on public.organisations is
  'This is not an e-mail address. Write it as in name@example.com, or leave it empty.';
comment on constraint organisations_accent_colour_is_hexadecimal on public.organisations is
  'A colour is written as # and six hexadecimal digits. Write it as in #26306b, or leave it empty.';
comment on constraint organisations_logo_url_is_https on public.organisations is
  'The URL of a logo is an https address without a password. Give the address of a PNG or JPEG, or leave it empty.';
comment on constraint organisations_payment_instructions_are_bounded on public.organisations is
  'Payment instructions have at most 2000 characters. Write less, or link to a page.';
comment on constraint organisations_seller_details_are_bounded on public.organisations is
  'Seller details have at most 1000 characters. Write the name, the address and the numbers that a receipt needs.';
comment on constraint organisations_tax_note_is_bounded on public.organisations is
  'A tax note has at most 1000 characters. Write what a receipt has to say about tax.';
comment on constraint organisations_embed_origins_are_https on public.organisations is
  'embed_origins has at most 20 origins: https:// and the name of a server, in lower case and without a path. Write it as in https://www.example.com.';
comment on table public.organisations is 'Owners of events. Nothing is visible across organisations.';
comment on column public.organisations.name is 'Name for people, and the sender name of ticket e-mails.';
comment on column public.organisations.slug is 'Short name for addresses and the command line: up to 63 lower-case letters, digits and, inside, hyphens.';
comment on column public.organisations.plan is 'Name of its plan, which limits requests per minute for each key.';
comment on column public.organisations.reply_to_email is 'Reply-to address of ticket e-mails.';
comment on column public.organisations.accent_colour is 'Colour of its e-mails and ticket pages, such as #26306b. Empty: the colour of Usher.';
comment on column public.organisations.logo_url is 'Logo in e-mails and on ticket pages: the https address of a PNG or JPEG.';
comment on column public.organisations.payment_instructions is 'How the buyer pays an invoice: account, deadline, reference.';
comment on column public.organisations.seller_details is 'Seller on receipts, in lines: name, address, tax number. Empty: the name of the organisation.';
comment on column public.organisations.tax_note is 'What receipts say about tax, such as "Prices include 19% VAT".';
comment on column public.organisations.confirm_refunds_above is
  'Total refunds of an order above which a person confirms a refund over MCP, in minor units. Empty: every refund.';
comment on column public.organisations.embed_origins is
  'Origins whose pages may show registration pages in a frame, such as https://www.example.com, up to 20. Empty: none.';
comment on column public.organisations.is_test is
  'Whether it is for tests: e-mails are kept and not sent, keys begin usher_test_ and ticket codes TEST-. Fixed once it exists.';

create table public.organisation_members (
  user_id uuid not null,
  role public.organisation_role not null default 'viewer',
  name text,
  email text,
  created_at timestamptz not null default now(),
  organisation_id uuid not null,
  constraint organisation_members_pkey primary key (organisation_id, user_id),
  constraint organisation_members_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint organisation_members_user_id_fkey foreign key (user_id)
    references auth.users (id) on delete cascade,
  constraint organisation_members_name_is_one_line check (private.is_one_line(name, 200)),
  constraint organisation_members_email_is_an_address check (private.is_email_address(email))
);
comment on table public.organisation_members is 'People who can sign in for an organisation, each with a role: owner, manager, door or viewer.';
comment on column public.organisation_members.user_id is 'The person, of auth.users.';
comment on column public.organisation_members.role is 'Role: owner, manager, door or viewer.';
comment on column public.organisation_members.name is 'Name of the person if the account has none: one line, up to 200 characters. The view members shows both.';
comment on column public.organisation_members.email is 'E-mail address of the person if the account has none, such as name@example.com.';
comment on column public.organisation_members.organisation_id is 'The organisation.';

create index organisation_members_user_id_idx on public.organisation_members (user_id);
-- For private.members_of_address.
create index organisation_members_organisation_id_email_idx on public.organisation_members (organisation_id, lower(email))
  where email is not null;

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('organisation_members', 'name', 'null', null),
  ('organisation_members', 'email', 'null', null);

-- What a member is called: as their account has it, where it has, and else as it was typed. People choose the name of their account
-- themselves, so it is shown on one line and bounded. Security definer: no role of members reads auth.users.
create function private.member_contact(organisation_id uuid, user_id uuid, out name text, out email text)
language plpgsql stable security definer set search_path = ''
as $$
begin
  select
    coalesce(
      nullif(btrim(left(regexp_replace(
        coalesce(nullif(u.raw_user_meta_data ->> 'full_name', ''), u.raw_user_meta_data ->> 'name'), '[[:cntrl:]]+', ' ', 'g'
      ), 200)), ''),
      m.name
    ),
    coalesce(nullif(u.email, ''), m.email)
  into name, email
  from (select member_contact.organisation_id, member_contact.user_id) i
  left join auth.users u on u.id = i.user_id
  left join public.organisation_members m on m.organisation_id = i.organisation_id and m.user_id = i.user_id;
end
$$;
grant execute on function private.member_contact to authenticated;

-- What pages and e-mails show of an organisation.
create function private.look_of(organisation public.organisations) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  return jsonb_build_object(
    'name', organisation.name, 'reply_to', organisation.reply_to_email, 'accent_colour', organisation.accent_colour,
    'logo_url', organisation.logo_url, 'is_test', organisation.is_test
  );
end
$$;

-- Security definer: a policy on organisation_members that reads organisation_members would recurse.
create function private.member_organisation_ids() returns setof uuid
language sql stable security definer set search_path = ''
as $$
  select m.organisation_id from public.organisation_members m where m.user_id = (select auth.uid())
$$;
grant execute on function private.member_organisation_ids to authenticated;

-- Organisations of the caller in one of these roles. Security definer for the same reason.
create function private.organisations_as(roles public.organisation_role[]) returns setof uuid
language sql stable security definer set search_path = ''
as $$
  select m.organisation_id from public.organisation_members m
  where m.user_id = (select auth.uid()) and m.role = any (roles)
$$;
grant execute on function private.organisations_as to authenticated;

-- Whether the caller manages an organisation: owners and managers who are signed in, and whoever works in the SQL editor.
create function private.is_managed(organisation_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return private.claims() ->> 'role' is distinct from 'authenticated'
    or organisation_id in (select private.organisations_as('{owner,manager}'));
end
$$;

-- A member cannot take the last owner away, themselves included; Studio can. One change of owners at a time. Security definer: a
-- member may lock no organisation.
create function private.tg_organisation_members__keep_an_owner() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if private.claims() ->> 'role' is distinct from 'authenticated' or tg_op = 'UPDATE' and new.role = 'owner' then
    return coalesce(new, old);
  end if;
  perform 1 from public.organisations o where o.id = old.organisation_id for no key update;
  if not exists (
    select from public.organisation_members m
    where m.organisation_id = old.organisation_id and m.user_id <> old.user_id and m.role = 'owner'
  ) then
    perform private.refuse(
      409, 'last_owner', 'An organisation keeps at least one owner.', 'role', hint => 'Make somebody else an owner first.'
    );
  end if;
  return coalesce(new, old);
end
$$;
-- Security definer: a member may not read who has an account.
create function private.tg_organisation_members__assert_account() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if not exists (select from auth.users u where u.id = new.user_id) then
    perform private.refuse(
      404, 'not_found', 'There is no account with this user_id.', 'user_id',
      hint => 'Invite them under Authentication first, then call invite_member with their address.'
    );
  end if;
  return new;
end
$$;
create trigger organisation_members_300_account before insert on public.organisation_members
  for each row when (new.user_id is not null) execute function private.tg_organisation_members__assert_account();
select private.keep_table('public.organisation_members');
create trigger organisation_members_100_keep_an_owner before update or delete on public.organisation_members
  for each row when (old.role = 'owner') execute function private.tg_organisation_members__keep_an_owner();

create function private.tg_organisations__normalise() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.accent_colour := lower(new.accent_colour);
  new.payment_instructions := btrim(new.payment_instructions, E' \t\r\n');
  new.seller_details := btrim(new.seller_details, E' \t\r\n');
  new.tax_note := btrim(new.tax_note, E' \t\r\n');
  return new;
end
$$;

-- A slug is taken across organisations, of which a member sees their own. Security definer for that.
create function private.tg_organisations__assert_slug_is_free() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if exists (select from public.organisations o where o.slug = new.slug and o.id <> new.id) then
    perform private.refuse_taken('slug', null, null);
  end if;
  return new;
end
$$;
create trigger organisations_300_slug before update of slug on public.organisations
  for each row execute function private.tg_organisations__assert_slug_is_free();
select private.keep_table('public.organisations', fixed => '{is_test}',
  in_use => array['The organisation is in use: it has events.', 'Revoke its API keys and remove its members instead.', 'events.organisation_id']);
create trigger organisations_200_normalise before insert or update of accent_colour, payment_instructions, seller_details, tax_note
  on public.organisations
  for each row execute function private.tg_organisations__normalise();

select private.keep_table('public.plans',
  in_use => array['The plan is in use: organisations are on it.', 'Change plan in the rows of these organisations first.', 'organisations.plan']);

create policy plans_select_all on public.plans for select to api_key, authenticated using (true);
grant select on public.plans to api_key, authenticated;

create policy organisations_select_own on public.organisations for select to api_key
  using (id = (select private.current_organisation_id()));
create policy organisations_select_membership on public.organisations for select to authenticated
  using (id in (select private.member_organisation_ids()));
create policy organisations_update_ownership on public.organisations for update to authenticated
  using (id in (select private.organisations_as('{owner}')));
grant select on public.organisations to api_key, authenticated;
grant update (
  name, slug, reply_to_email, accent_colour, logo_url, payment_instructions, seller_details, tax_note, confirm_refunds_above, embed_origins
) on public.organisations to authenticated;

create policy organisation_members_select_membership on public.organisation_members for select to authenticated
  using (organisation_id in (select private.member_organisation_ids()));
create policy organisation_members_insert_ownership on public.organisation_members for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner}')));
create policy organisation_members_update_ownership on public.organisation_members for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
create policy organisation_members_delete_ownership on public.organisation_members for delete to authenticated
  using (organisation_id in (select private.organisations_as('{owner}')));
grant select, delete on public.organisation_members to authenticated;
grant insert (organisation_id, user_id, role, name, email) on public.organisation_members to authenticated;
grant update (role, name, email) on public.organisation_members to authenticated;
