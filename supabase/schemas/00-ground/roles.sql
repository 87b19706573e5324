-- Roles, and the schemas that they may use. One role for each scope of API keys, one for what any key may do, one for the gateway before
-- it knows the key, and one for the courier. The gateway calls the database as the one role that an operation declares, so what a key may
-- do is written in grants and policies, never in the gateway.
-- Roles are shared by all databases of a cluster, so each is created only where it is missing.

do $$
declare
  v_role text;
begin
  foreach v_role in array array[
    'gateway',
    'api_key',
    'scope_events_read',
    'scope_orders_read',
    'scope_attendees_read',
    'scope_events_write',
    'scope_attendees_write',
    'scope_checkin_write',
    'scope_orders_write',
    'courier'
  ] loop
    if not exists (select from pg_catalog.pg_roles r where r.rolname = v_role) then
      execute pg_catalog.format('create role %I nologin', v_role);
    end if;
    -- A scope role may do whatever any valid key may do.
    if v_role like 'scope\_%' then
      execute pg_catalog.format('grant api_key to %I', v_role);
    end if;
    -- PostgREST logs in as authenticator, which inherits nothing and switches to the role that the token names.
    execute pg_catalog.format('grant %I to authenticator', v_role);
  end loop;
end
$$;

comment on role gateway is 'The gateway before authentication. Its functions resolve a key or token, read a ticket page and run the steps of a sign-in.';
comment on role api_key is 'Any valid API key. Every scope_* role inherits it.';
comment on role courier is 'The delivery worker: leases and settles pending webhook deliveries and ticket e-mails.';

create schema api;
comment on schema api is 'One function per operation: the only schema the Data API exposes.';

create schema private;
comment on schema private is 'Key hashes, idempotency records and the helpers of policies, triggers and operations. Never exposed.';

-- PostgreSQL grants execute on every new function to public. Only the form without a schema revokes that default; from here
-- on a function can be executed only by the roles granted beside it.
alter default privileges revoke execute on functions from public;

grant usage on schema api to gateway, api_key, courier;
grant usage on schema private to gateway, api_key, courier, authenticated, service_role;

create type public.api_scope as enum (
  'events:read',
  'orders:read',
  'attendees:read',
  'events:write',
  'attendees:write',
  'checkin:write',
  'orders:write'
);
