-- Run once by the superuser `supabase_admin` on a new embedded database: the roles, privileges and `auth` schema of a hosted Supabase
-- project, so that a migration that applies here applies there. The caller sets the passwords in the same transaction. Usher's own roles
-- and tables must never be created here: they come by migration, as the role `postgres`.

-- The role of organisers in Studio, and of migrations. It is not a superuser; it may create and grant roles.
create role postgres login createrole createdb replication bypassrls;
alter role postgres set search_path = "$user", public, extensions;
grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres with admin option;
grant pg_create_subscription to postgres;
alter database postgres owner to postgres;
-- Postgres would take 10.12.2026 for 12 October. Now it refuses what may be either. On Supabase it is a step of the set-up, for the owner of
-- the project to choose: docs/operate/supabase.md.
alter role postgres set datestyle to 'ISO, YMD';

-- The roles of the Data API. PostgREST connects as authenticator, which may switch to any role granted to it.
create role anon nologin;
create role authenticated nologin;
create role service_role nologin bypassrls;
create role authenticator login noinherit;
grant anon, authenticated, service_role to authenticator;
grant anon, authenticated, service_role, authenticator to postgres with admin option;
alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';

-- As on hosted Supabase, postgres may configure PostgREST by setting this on authenticator.
grant set on parameter pgrst.db_pre_request to postgres;

-- Every object created in public is open to the roles of the Data API until a migration revokes it. Hosted projects have these defaults,
-- so they are needed here as well: a test then catches a table whose migration does not revoke them.
grant usage on schema public to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on sequences to postgres, anon, authenticated, service_role;

create schema extensions;
grant all on schema extensions to postgres;
grant usage on schema extensions to anon, authenticated, service_role;

-- Supabase Auth. Its server does not run here; the table and the functions that migrations refer to match the real ones, with the
-- columns that applications use. postgres may read, write and reference users, but create nothing in the schema.
create role supabase_auth_admin login noinherit createrole;
alter role supabase_auth_admin set search_path = auth;
create schema auth;
grant all on schema auth to supabase_auth_admin;
grant usage on schema auth to postgres, anon, authenticated, service_role;

create table auth.users (
  id uuid not null,
  aud varchar(255),
  role varchar(255),
  email varchar(255),
  raw_app_meta_data jsonb,
  raw_user_meta_data jsonb,
  created_at timestamptz,
  updated_at timestamptz,
  constraint users_pkey primary key (id)
);
create unique index users_email_partial_key on auth.users (email);
comment on table auth.users is 'Auth: Stores user login data within a secure schema.';
alter table auth.users enable row level security;
alter table auth.users owner to supabase_auth_admin;
grant all on auth.users to postgres;
grant select on auth.users to postgres with grant option;

create function auth.jwt() returns jsonb
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')
  )::jsonb
$$;

create function auth.uid() returns uuid
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
  )::uuid
$$;

create function auth.role() returns text
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
  )::text
$$;

alter function auth.jwt() owner to supabase_auth_admin;
alter function auth.uid() owner to supabase_auth_admin;
alter function auth.role() owner to supabase_auth_admin;

-- PostgREST reloads its schema cache when the schema changes, as on hosted Supabase.
create function extensions.pgrst_ddl_watch() returns event_trigger
language plpgsql
set search_path = ''
as $$
begin
  if exists (select from pg_event_trigger_ddl_commands() c where c.schema_name is distinct from 'pg_temp') then
    notify pgrst, 'reload schema';
  end if;
end
$$;

create function extensions.pgrst_drop_watch() returns event_trigger
language plpgsql
set search_path = ''
as $$
begin
  if exists (select from pg_event_trigger_dropped_objects() d where not d.is_temporary) then
    notify pgrst, 'reload schema';
  end if;
end
$$;

create event trigger pgrst_ddl_watch on ddl_command_end execute function extensions.pgrst_ddl_watch();
create event trigger pgrst_drop_watch on sql_drop execute function extensions.pgrst_drop_watch();
