// That `db:migration` writes a migration which reaches the schema files, says what needs a person, and leaves alone what is
// none of its business. In a copy of supabase/, never in the checkout's own.

import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { writeMigration, writeMigrationFrom } from '../../scripts/db-migration.ts'
import { type ProjectDatabases, withProjectDatabases } from '../../scripts/project-databases.ts'
import { withClient } from '../../src/local/client.ts'
import { cleanUp, temporaryFolder } from './support.ts'

afterEach(cleanUp)

// The toys are alone in their project: the whole of supabase/ takes seconds more.
const base = 'create role courier nologin; create schema private; grant usage on schema private to courier;'

const toys = `
create type public.toy_mood as enum ('calm', 'glad');
create table public.toys (
  id bigint generated always as identity primary key,
  name text not null,
  mood public.toy_mood not null default 'calm'
);
alter table public.toys enable row level security;
create policy toys_select on public.toys for select to courier using (name <> 'secret');
revoke all on public.toys from anon, authenticated, service_role;
grant select on public.toys to courier;

create function private.greet_toy(name text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return 'Hello, ' || name;
end
$$;
grant execute on function private.greet_toy(text) to courier;

create function private.count_toys() returns bigint
language plpgsql stable set search_path = ''
as $$
begin
  return (select count(*) from public.toys);
end
$$;
grant execute on function private.count_toys() to courier;
comment on function private.count_toys() is 'How many toys there are.';

create view public.glad_toys with (security_invoker = true) as select t.id, t.name from public.toys t where t.mood = 'glad';
comment on column public.glad_toys.name is 'What it''s called.';

create table private.toy_makers (name text not null, toys jsonb not null, since text);
insert into private.toy_makers (name, toys) values ('Bob', '["bear"]');
`

const changedToys = [
  // A function body, with quotes and capitals that formatting must leave alone.
  ["return 'Hello, ' || name;", `-- Who's there?\n  return 'It''s a "Greeting", ' || NAME;`],
  // Arguments, and with them the signature.
  ['private.count_toys() returns', 'private.count_toys(mood public.toy_mood) returns'],
  ['from public.toys);', 'from public.toys t where t.mood = count_toys.mood);'],
  ['on function private.count_toys() to', 'on function private.count_toys(public.toy_mood) to'],
  ['on function private.count_toys() is', 'on function private.count_toys(public.toy_mood) is'],
  // A view that has to be made again, which loses its comments.
  ['select t.id, t.name from', 'select t.id, t.colour, t.name from'],
  // A value within the others.
  ["('calm', 'glad')", "('calm', 'sleepy', 'glad')"],
  [
    "default 'calm'\n);",
    "default 'calm',\n  colour text\n);\ncomment on column public.toys.colour is 'Any name of a colour.';",
  ],
].reduce((sql, [from = '', to = '']) => {
  expect(sql).toContain(from)
  return sql.replace(from, () => to)
}, toys)

const newObjects = `
grant update (colour) on public.toys to courier;
create policy toys_update on public.toys for update to courier using (mood <> 'glad') with check (colour is not null);
comment on policy toys_update on public.toys is 'Glad toys stay as they are.';
create view public.sleepy_toys with (security_invoker = true) as select t.id, t.colour from public.toys t where t.mood = 'sleepy';
revoke all on public.sleepy_toys from anon, authenticated, service_role;
grant select on public.sleepy_toys to courier;
comment on view public.sleepy_toys is 'Toys that are not to be woken.';
comment on column public.sleepy_toys.colour is 'Of any toy.';
alter table public.toys add constraint toys_colour_is_short check (length(colour) between 1 and 50 and colour <> 'none');
insert into private.toy_makers (name, toys) values ('Ann''s', 'null');
`

test('db:migration writes what db:verify accepts: a body, arguments, a column, an enum value, a policy, a view, a check, a row', async () => {
  const { project, schemas } = toyProject(base + toys, ['config.toml'])
  writeFileSync(schemas, base + changedToys + newObjects)
  const { files, warnings, differences } = await writeMigration(project, 'toys_at_rest')
  expect(differences).toBe('')
  expect(files.map((file) => file.replace(/^.*\d{14}/, ''))).toEqual([
    '_toys_at_rest_enum_values.sql',
    '_toys_at_rest.sql',
  ])
  const versions = readdirSync(join(project, 'supabase', 'migrations')).map((name) => name.slice(0, 14))
  expect(versions.toSorted().slice(-3)).toEqual([toyVersion, ...files.map((file) => /\d{14}/.exec(file)?.[0])])

  const [first = '', second = ''] = files.map((file) => readFileSync(file, 'utf8'))
  expect(first).toContain("alter type public.toy_mood add value 'sleepy' before 'glad';")
  expect(second).not.toContain('add value')
  for (const sql of [first, second]) {
    expect(sql).toMatch(
      /^-- toys at rest.* .*\n\nset local lock_timeout = '2s';\nset local statement_timeout = '60s';\n/,
    )
  }
  const whole = first + second
  expect(whole).toContain(`-- Who's there?\n  return 'It''s a "Greeting", ' || NAME;`)
  expect(whole).toContain('drop function private.count_toys();')
  expect(whole).toContain('grant execute on function private.count_toys(public.toy_mood) to courier;')
  expect(whole).toContain('create policy toys_update on public.toys')
  expect(whole).toContain("comment on view public.sleepy_toys is 'Toys that are not to be woken.';")
  expect(whole).toContain("comment on column public.glad_toys.name is 'What it''s called.';")
  expect(whole).toContain("insert into private.toy_makers (name, toys, since) values ('Ann''s', 'null', NULL);")
  expect(whole).not.toContain("'Bob'")
  expect(warnings.toSorted()).toEqual([
    'drops: drop function private.count_toys();',
    'drops: drop view public.glad_toys;',
  ])

  // From the start, which is what db:verify does with them.
  await withProjectDatabases(project, async (databases) => {
    const all = readdirSync(join(project, 'supabase', 'migrations'))
    const again = await writeMigrationFrom(databases, project, 'nothing_more')
    expect(again).toEqual({ files: [], warnings: [], differences: '' })
    expect(readdirSync(join(project, 'supabase', 'migrations'))).toEqual(all)
    await saysWhatLosesData(databases, project)
  })
})

/** And what is to be added by hand. */
async function saysWhatLosesData(databases: ProjectDatabases, project: string): Promise<void> {
  const [surplus, missing] = [
    'alter table public.toys add column size int',
    "insert into public.toys (name) values ('bear')",
  ]
  await withClient(databases.migrations, (client) => client.query(surplus))
  await withClient(databases.schemas, (client) => client.query(missing))
  const { files, warnings, differences } = await writeMigrationFrom(databases, project, 'one_bear')
  expect(warnings).toEqual(['loses data: alter table public.toys drop column size;'])
  expect(readFileSync(files[0] ?? '', 'utf8')).toContain('-- This loses data.\nalter table public.toys')
  expect(differences).toMatch(/^- rows of public\.toys$/)
}

test.each(['', 'Toys', 'two words', '../up', 'a__b', '1st'])('%j is no name for a migration', async (name) => {
  await expect(writeMigration(temporaryFolder(), name)).rejects.toThrow(/is no name for a migration/)
})

// Later than any clock, so that the order of the versions is tested and not the time of the test.
const toyVersion = '20990101000000'

function toyProject(
  sql: string,
  parts = ['config.toml', 'schemas', 'migrations'],
): { project: string; schemas: string } {
  const project = temporaryFolder()
  const [from, to] = [join(import.meta.dirname, '..', '..', 'supabase'), join(project, 'supabase')]
  for (const part of parts) cpSync(join(from, part), join(to, part), { recursive: true })
  for (const folder of ['schemas', 'migrations']) mkdirSync(join(to, folder), { recursive: true })
  const schemas = join(to, 'schemas', '99_toys.sql')
  writeFileSync(schemas, sql)
  const config = join(to, 'config.toml')
  if (parts.includes('config.toml')) {
    const text = readFileSync(config, 'utf8')
    const others = parts.includes('schemas') ? '$1' : ''
    writeFileSync(
      config,
      text.replace(/^schema_paths = \[\n(.*?)^\]/ms, `schema_paths = [\n${others}  "./schemas/99_toys.sql",\n]`),
    )
  }
  writeFileSync(join(to, 'migrations', `${toyVersion}_toys.sql`), sql)
  return { project, schemas }
}
