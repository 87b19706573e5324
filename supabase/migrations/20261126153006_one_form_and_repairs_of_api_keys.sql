-- one form and repairs, of api_keys. Written by `npm run db:migration` from supabase/schemas, and parted by the tables that it locks.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- A name that is invisible was allowed, and would break the constraint.
update public.api_keys set name = 'Unnamed' where private.person_form(name) = '';

drop trigger api_keys_950_shrink_grants on public.api_keys;

drop trigger api_keys_960_delete_grants on public.api_keys;

alter table public.api_keys
  drop constraint api_keys_grant_has_a_parent_and_an_end;

alter table public.api_keys
  drop constraint api_keys_name_is_one_line;

alter table public.api_keys
  drop constraint api_keys_prefix_is_of_its_kind;

alter table public.api_keys
  add constraint api_keys_grant_has_a_parent_and_an_end check ((kind = 'grant'::public.api_key_kind) = (parent_id is
    not null) and (kind <> 'grant'::public.api_key_kind or expires_at is not null)) not valid;

alter table public.api_keys
  add constraint api_keys_prefix_is_of_its_kind check (prefix ~
case kind
    when 'grant'::public.api_key_kind then '^usher_grant_[0-9a-z]{12}$'::text
    else '^usher_live_[0-9A-Za-z]{8}$'::text
end) not valid;

create trigger api_keys_950_shrink_grants
  after update of scopes, expires_at, revoked_at on public.api_keys
  for each row
  when ((new.kind <> 'grant'::public.api_key_kind))
  execute function private.tg_api_keys__shrink_grants();

create trigger api_keys_960_delete_grants
  after delete on public.api_keys
  for each row
  when ((old.kind <> 'grant'::public.api_key_kind))
  execute function private.tg_api_keys__delete_grants();

alter table public.api_keys
  add constraint api_keys_name_is_one_line check (private.is_one_line(name, 200)) not valid;
