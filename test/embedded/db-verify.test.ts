// That a migration which does not reach the schema files is found, and reported so that a person can mend it.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { verifyMigrations } from '../../scripts/db-verify.ts'
import { diffSnapshots } from '../../scripts/snapshot-diff.ts'
import { cleanUp, temporaryFolder } from './support.ts'

afterEach(cleanUp)

const schema = `
create schema api;
create role toy_reader nologin;
grant usage on schema api to toy_reader;
create type public.mood as enum ('calm', 'glad');
create table public.toys (
  id bigint generated always as identity primary key,
  name text not null constraint toys_name_is_not_blank check (name <> ''),
  mood public.mood not null default 'calm'
);
alter table public.toys enable row level security;
create policy toys_select on public.toys for select to toy_reader using (name <> 'secret');
create function api.count_toys() returns bigint language sql stable set search_path = '' as 'select count(*) from public.toys';
insert into public.toys (name) values ('bear');
`

const drift = `
alter table public.toys add column colour text;
alter type public.mood add value 'cross';
drop policy toys_select on public.toys;
comment on table public.toys is 'Toys';
`

test('db:verify finds what a migration does that the schemas do not say', async () => {
  const project = toyProject({ '20250101000000_toys.sql': schema, '20250102000000_drift.sql': drift })
  const { differences } = await verifyMigrations(project)
  const objects = differences.split('\n').filter((line) => /^(.) \S/.test(line) || /^ {2}\S/.test(line))
  expect(objects).toEqual([
    '- policy toys_select on public.toys',
    '+ column public.toys.colour',
    '  enum public.mood',
    '  table public.toys',
    '  rows of public.toys',
  ])
  expect(differences).toContain("+   'cross'")
  expect(differences).toContain('+   comment: Toys')
})

test('db:verify agrees when migrations reach the schemas by another way', async () => {
  const project = toyProject({
    '20250101000000_toys.sql': schema.replace("'calm', 'glad'", "'calm'").replace(/create policy.*\n/, ''),
    '20250102000000_more.sql': `
      create policy toys_select on public.toys for select to toy_reader using (name <> 'secret');
      alter type public.mood add value 'glad';`,
  })
  const { differences, objects } = await verifyMigrations(project)
  expect(differences).toBe('')
  expect(objects).toBeGreaterThan(10)
})

test('a mistake in a schema file is reported with its file and line', async () => {
  const project = toyProject({}, `${schema}\ncreate tabel public.typo ();\n`)
  await expect(verifyMigrations(project)).rejects.toThrow(/schemas\/01_toys\.sql:\d+: syntax error at or near "tabel"/)
})

test('a difference is shown with the lines around it and without the rest', () => {
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`)
  const changed = lines.with(3, 'third').with(15, 'fifteenth')
  const shown = diffSnapshots(new Map([['thing', lines.join('\n')]]), new Map([['thing', changed.join('\n')]]))
  expect(shown.split('\n')).toEqual([
    '  thing',
    '    line 1',
    '    line 2',
    '-   line 3',
    '+   third',
    '    line 4',
    '    line 5',
    '    …',
    '    line 13',
    '    line 14',
    '-   line 15',
    '+   fifteenth',
    '    line 16',
    '    line 17',
  ])
})

function toyProject(migrations: Record<string, string>, schemas = schema): string {
  const project = temporaryFolder()
  for (const folder of ['schemas', 'migrations']) mkdirSync(join(project, 'supabase', folder), { recursive: true })
  writeFileSync(join(project, 'supabase', 'config.toml'), 'project_id = "toy"\n')
  writeFileSync(join(project, 'supabase', 'schemas', '01_toys.sql'), schemas)
  for (const [name, sql] of Object.entries(migrations)) {
    writeFileSync(join(project, 'supabase', 'migrations', name), sql)
  }
  return project
}
