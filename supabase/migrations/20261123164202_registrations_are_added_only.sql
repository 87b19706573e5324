-- registrations are added only. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

create or replace function private.tg__refuse_write()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  perform private.refuse(
    405, 'method_not_allowed', coalesce(tg_argv[0], 'This is a view: it is only read.'), hint => 'Change the rows of the tables that it shows.'
  );
  return null;
end
$$;

create trigger registrations_110_add_only
  instead of delete or update on public.registrations
  for each row
  execute function private.tg__refuse_write('This is a view: registrations are read and added.');
