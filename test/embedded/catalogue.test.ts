// That the comparison behind `db:verify` sees a difference of every kind: what pg-delta reads, and what it does not and our own
// queries ask for. A new version of pg-delta has to pass this.

import { Client } from 'pg'
import { expect, test } from 'vitest'
import { readCatalogue } from '../../scripts/catalogue.ts'
import { diffCatalogues } from '../../scripts/db-verify.ts'
import { startScratchDatabase } from '../../scripts/support/scratch-database.ts'

const before = `
create role toy_reader nologin;
create role toy_writer nologin;
create role toy_keeper nologin;
create role toy_guest nologin;
create role toy_setter nologin;
grant toy_reader to toy_guest;
create schema toys;
create schema attic;
create type toys.mood as enum ('calm', 'glad', 'cross');
create type toys.size as enum ('small', 'big');
create domain toys.label as text;
create type toys.pair as (left_one int);
create table toys.bears (id int primary key, name text not null, mood toys.mood, size text default 'small', note text, age int);
create table toys.dolls (id int primary key, name text) with (fillfactor = 50);
create table toys.cars (id int constraint cars_id_is_positive check (id > 0));
create table toys.trains (id int);
create table toys.planes (id int);
create table toys.ships (id int primary key, name text);
create index bears_name_idx on toys.bears (name);
create index bears_age_idx on toys.bears (age);
create view toys.young with (security_invoker = true) as select id, name from toys.bears where id < 3;
create view toys.old as select id, name from toys.bears;
create sequence toys.tickets;
create statistics toys.bears_statistics on name, age from toys.bears;
create function toys.body() returns int language sql as 'select 1';
create function toys.volatile() returns int language sql as 'select 1';
create function toys.definer() returns int language sql as 'select 1';
create function toys.path() returns int language sql set search_path = '' as 'select 1';
create function toys.granted() returns int language sql as 'select 1';
create function toys.arguments(a int) returns int language sql as 'select 1';
create function toys.trigger() returns trigger language plpgsql as 'begin return new; end';
create trigger dropped before insert on toys.bears for each row execute function toys.trigger();
create trigger disabled before insert on toys.bears for each row execute function toys.trigger();
alter table toys.bears enable row level security;
create policy narrowed on toys.bears for select to toy_reader using (true);
create policy renamed on toys.bears for update to toy_reader using (true);
create publication toys_changes for table toys.bears;
insert into toys.ships (id, name) values (1, 'Ark');
`

/** A difference, and the object in which it has to show; one object for each. */
const differences: [change: string, object: string][] = [
  // What pg-delta reads.
  ["create or replace function toys.body() returns int language sql as 'select 2'", 'function toys.body()'],
  ['alter function toys.volatile() stable', 'function toys.volatile()'],
  ['alter function toys.definer() security definer', 'function toys.definer()'],
  ["alter function toys.path() set search_path = 'public'", 'function toys.path()'],
  ['grant execute on function toys.granted() to toy_reader', 'function toys.granted()'],
  ['drop function toys.arguments(int)', 'function toys.arguments(integer)'],
  ["comment on table toys.bears is 'Bears'", 'table toys.bears'],
  ['grant select (note) on toys.bears to toy_reader', 'column toys.bears.note'],
  ["alter table toys.bears alter column size set default 'big'", 'column toys.bears.size'],
  ['alter table toys.bears alter column name drop not null', 'column toys.bears.name'],
  ['alter table toys.bears alter column age type bigint using age::bigint', 'column toys.bears.age'],
  ['grant usage on schema attic to toy_reader', 'schema attic'],
  ['grant usage on type toys.size to toy_reader', 'enum toys.size'],
  ["alter type toys.mood rename value 'glad' to 'merry'", 'enum toys.mood'],
  [
    'alter domain toys.label add constraint label_is_short check (length(value) < 9)',
    'constraint label_is_short on toys.label',
  ],
  ['alter type toys.pair add attribute right_one int', 'composite toys.pair'],
  ['alter table toys.dolls set (fillfactor = 90)', 'table toys.dolls'],
  ['alter table toys.cars drop constraint cars_id_is_positive', 'constraint cars_id_is_positive on toys.cars'],
  ['alter table toys.trains enable row level security', 'table toys.trains'],
  ['alter table toys.planes force row level security', 'table toys.planes'],
  ['drop index toys.bears_name_idx', 'index toys.bears_name_idx'],
  ['alter view toys.young set (security_invoker = false)', 'view toys.young'],
  ['alter sequence toys.tickets increment 5', 'sequence toys.tickets'],
  ['drop trigger dropped on toys.bears', 'trigger dropped on toys.bears'],
  ['alter table toys.bears disable trigger disabled', 'trigger disabled on toys.bears'],
  ['alter policy narrowed on toys.bears using (age > 3)', 'policy narrowed on toys.bears'],
  ['alter policy renamed on toys.bears rename to better_name', 'policy better_name on toys.bears'],
  ["alter publication toys_changes set (publish = 'insert')", 'publication toys_changes'],
  [
    'alter default privileges in schema toys grant select on tables to toy_reader',
    'default privileges of postgres in toys on tables',
  ],
  ['alter role toy_writer createrole', 'role toy_writer'],
  ["alter role toy_writer set statement_timeout = '1s'", 'settings of toy_writer'],
  ['grant toy_writer to authenticator', 'membership of authenticator in toy_writer'],
  ['revoke toy_reader from toy_guest; grant toy_reader to toy_keeper', 'membership of toy_keeper in toy_reader'],
  // What it does not read.
  ["comment on role toy_reader is 'Reads'", 'role toy_reader'],
  ['alter role toy_keeper connection limit 3', 'role toy_keeper'],
  ["alter role toy_guest valid until '2099-01-01'", 'role toy_guest'],
  ['grant toy_setter to postgres with set false', 'membership of postgres in toy_setter'],
  ["alter role toy_setter in database postgres set statement_timeout = '1s'", 'settings of toy_setter'],
  ['grant create on database postgres to toy_reader', 'database'],
  ['alter index toys.bears_pkey set (fillfactor = 50)', 'index toys.bears_pkey'],
  ['alter table toys.dolls cluster on dolls_pkey', 'index toys.dolls_pkey'],
  ["comment on index toys.bears_age_idx is 'By age'", 'index toys.bears_age_idx'],
  ['alter table toys.dolls alter column name set compression pglz', 'column toys.dolls.name'],
  ['grant select (id) on toys.young to toy_reader', 'column toys.young.id'],
  ["comment on column toys.young.name is 'Of a young bear'", 'column toys.young.name'],
  ["alter view toys.old alter column name set default 'Bruin'", 'column toys.old.name'],
  ['drop statistics toys.bears_statistics', 'statistics toys.bears_statistics'],
  ["update toys.ships set name = 'Argo'", 'rows of toys.ships'],
]

test('the comparison of two databases sees a difference of every kind', async () => {
  const database = await startScratchDatabase(new AbortController().signal)
  const run = async (statements: string[]) => {
    const client = new Client({ connectionString: database.databaseUrl })
    await client.connect()
    try {
      for (const statement of statements) await client.query(statement)
    } finally {
      await client.end()
    }
  }
  try {
    await run([before])
    const catalogue = await readCatalogue(database.databaseUrl)
    await run(differences.map(([change]) => change))
    const seen = diffCatalogues(catalogue, await readCatalogue(database.databaseUrl)).split('\n')
    const missed = differences.filter(
      ([, object]) => !['-', '+', ' '].some((sign) => seen.includes(`${sign} ${object}`)),
    )
    expect(missed).toEqual([])
    await run(['create cast (toys.pair as text) with inout'])
    await expect(readCatalogue(database.databaseUrl)).rejects.toThrow(/cannot be compared.*"cast"/s)
  } finally {
    await database.remove()
  }
})
