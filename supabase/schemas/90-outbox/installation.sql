-- The installation that the database belongs to, so that a copy of it sends nothing by itself: a copied data directory, or a dump
-- restored elsewhere, holds what the original has yet to send. There webhooks and e-mails are held until they are released.

-- One row, written by the first process that announces itself; and one more where a dump was restored over it, for the key lets both be. A
-- name tells where a process found the database: a data directory or the address of a Supabase project. `project:` begins a name that leads
-- to one project in the world.
create table private.installations (
  system_identifier bigint not null,
  names text[] not null,
  newcomers text[] not null default '{}',
  created_at timestamptz not null default now(),
  constraint installations_pkey primary key (system_identifier, created_at)
);
comment on table private.installations is 'The installation that sends deliveries: its Postgres cluster and names. newcomers: names announced and not yet known.';
alter table private.installations enable row level security;

-- Whether the caller is where deliveries are sent from. A cluster may be exchanged below a `project:` name, as in an upgrade of
-- Postgres; any other name, such as http://kong:8000, may be that of another cluster elsewhere. Without names a caller is an earlier version
-- of the courier.
create function private.is_at_home(installation private.installations, names text[]) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  if names is null or names && installation.names then
    return installation.system_identifier = (select c.system_identifier from pg_control_system() c)
      or exists (select from unnest(names) n (name) where n.name like 'project:%' and n.name = any (installation.names));
  end if;
  return false;
end
$$;

-- Whether deliveries are held for the caller: anything here is of another installation. Reads one row: every claim asks.
create function private.is_held() returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_names constant text[] := nullif(array(select jsonb_array_elements_text(private.claims() -> 'installation')), '{}');
begin
  return exists (select from private.installations i where not private.is_at_home(i, v_names));
end
$$;

-- The first names to be announced are those of the installation. Later ones are newcomers, and known as soon as a known one is
-- announced to the same database: the inner and the outer address of a project are one installation, while nobody announces the
-- names of the original to a copy.
create function api.announce_installation() returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_names constant text[] := nullif(array(select jsonb_array_elements_text(private.claims() -> 'installation')), '{}');
  v_system_identifier bigint := (select c.system_identifier from pg_control_system() c);
begin
  if v_names is null then
    return json_build_object('held', private.is_held());
  end if;
  if not exists (select from private.installations) then
    -- Of two that are the first, one waits, and finds the row of the other.
    lock table private.installations in share row exclusive mode;
    insert into private.installations (system_identifier, names)
    select v_system_identifier, v_names
    where not exists (select from private.installations);
  end if;

  update private.installations i
  set newcomers = array(select distinct n.name from unnest(i.newcomers || v_names) n (name) limit 50)
  where not v_names <@ i.newcomers and not private.is_at_home(i, v_names);
  -- The names of a file system that does not keep them would become ever more.
  update private.installations i
  set system_identifier = v_system_identifier,
    newcomers = '{}',
    names = array(
      select n.name
      from unnest(v_names || i.newcomers || i.names) with ordinality n (name, place)
      group by n.name order by min(n.place) limit 50
    )
  where (i.system_identifier <> v_system_identifier or i.newcomers <> '{}' or not v_names <@ i.names) and private.is_at_home(i, v_names);
  return json_build_object('held', private.is_held());
end
$$;
comment on function api.announce_installation is
  'Announces the names in the caller''s token: { held }. held: the database belongs to another installation, so webhooks and e-mails wait.';
grant execute on function api.announce_installation to courier;

-- Forgets the installation: the database belongs to the one that is announced next.
create function private.release_deliveries() returns text
language plpgsql volatile set search_path = ''
as $$
begin
  delete from private.installations;
  return 'Released: webhooks and e-mails are sent from here, including those pending when the database was copied.';
end
$$;

-- A dump restored into another cluster starts the count of transactions anew. Run once after a restore, before Usher starts: it puts the log
-- before every new transaction.
create function private.after_restore() returns text
language plpgsql volatile set search_path = ''
as $$
begin
  update public.notifications n set transaction_id = '0' where n.transaction_id <> '0';
  return 'Done: notifications and webhooks continue from here.'
    || case when private.is_held() then ' Deliveries are held until you run "select private.release_deliveries()".' else '' end;
end
$$;
