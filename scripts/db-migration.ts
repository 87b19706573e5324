// Writes the migration that takes supabase/migrations to what supabase/schemas say: `npm run db:migration NAME`. Applies it to
// a scratch database and compares, and says what a person has to look at or add. Never changes an existing migration.

import { readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { type Action, encodeId, type Plan, type Policy, plan } from '@supabase/pg-delta'
import { applyMigrations } from '../src/local/migrate.ts'
import { StartError } from '../src/process/start-error.ts'
import { type Catalogue, readCatalogue, readCatalogues } from './catalogue.ts'
import { diffCatalogues } from './db-verify.ts'
import { readKeywords, toReadableSql } from './migration-sql.ts'
import { type ProjectDatabases, withProjectDatabases } from './project-databases.ts'

type WrittenMigration = {
  /** Paths, in the order in which they are applied; empty when there is nothing to do. */
  files: string[]
  /** What a person should look at before the migration is committed. */
  warnings: string[]
  /** What the migration does not reach, as of `db:verify`; '' when it reaches the schemas. */
  differences: string
}

type Options = {
  /** Takes an object that only changed its name for the same object, where that is unambiguous. */
  renames?: boolean
}

// Not pg-delta's profile `supabase`: it hides the role postgres and with it who owns what, and then leaves a new table open to
// anon, whom the default privileges let in. Both databases are bootstrapped alike, so there is nothing to hide; left out is only
// what Postgres does by itself when postgres, who applies the migrations, makes an object or a role.
const policy: Policy = {
  id: 'usher',
  filter: [addedTo('acl', 'grantee'), addedTo('membership', 'member')],
}

function addedTo(kind: string, field: string): NonNullable<Policy['filter']>[number] {
  return { match: { all: [{ kind }, { verb: 'add' }, { idField: { field, glob: 'postgres' } }] }, action: 'exclude' }
}

const makesPostgresTheOwner = /^alter .* owner to "postgres"$/i

export async function writeMigration(
  projectDir: string,
  name: string,
  { renames = false }: Options = {},
): Promise<WrittenMigration> {
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name)) {
    throw new StartError(
      `${JSON.stringify(name)} is no name for a migration: use snake_case, such as add_waiting_list.`,
    )
  }
  return withProjectDatabases(projectDir, (databases) => writeMigrationFrom(databases, projectDir, name, renames))
}

/** From what the project's two databases say, where they run already. */
export async function writeMigrationFrom(
  databases: ProjectDatabases,
  projectDir: string,
  name: string,
  renames = false,
): Promise<WrittenMigration> {
  const { schemas, migrations } = await readCatalogues(databases)
  const before = diffCatalogues(schemas, migrations)
  if (before === '') return { files: [], warnings: [], differences: '' }
  const steps = planSteps(migrations, schemas, renames)
  const keywords = await readKeywords(databases.migrations)
  const last = [...newViewComments(migrations, schemas, steps.actions), ...newRows(migrations, schemas)]
  const files = writeFiles(projectDir, name, steps.actions, keywords, last)
  await applyWritten(files, () => applyMigrations(databases.migrations, { projectDir, signal: databases.signal }))
  const differences = diffCatalogues(schemas, await readCatalogue(databases.migrations))
  return { files, warnings: warningsOf(steps, keywords), differences }
}

async function applyWritten(files: string[], apply: () => Promise<void>): Promise<void> {
  try {
    await apply()
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    const paths = files.map((file) => relative('', file)).join(' and ')
    throw new StartError(`${paths} was written, but is to be mended by hand or deleted:\n${error.message}`)
  }
}

function planSteps(migrations: Catalogue, schemas: Catalogue, renames: boolean): Plan {
  try {
    const steps = plan(migrations.facts, schemas.facts, { policy, renames: renames ? 'auto' : 'prompt' })
    return { ...steps, actions: steps.actions.filter(({ sql }) => !makesPostgresTheOwner.test(sql)) }
  } catch (error) {
    throw new StartError(
      `pg-delta cannot plan this change; write the migration by hand.\n  ${(error as Error).message}`,
    )
  }
}

/** Statements that add the reference rows which only the schemas have. A table of which some were taken out or changed is for a person. */
function newRows(migrations: Catalogue, schemas: Catalogue): string[] {
  const linesOf = ({ rows }: Catalogue, table: string) =>
    new Set(rows.filter((row) => row.table === table).map(({ line }) => line))
  return schemas.rows.flatMap(({ table, line, insert }) => {
    const before = linesOf(migrations, table)
    const onlyAdded = before.isSubsetOf(linesOf(schemas, table))
    return insert !== null && onlyAdded && !before.has(line) ? [insert] : []
  })
}

/** Comments on columns of views: those that are new, and all of a view that is made again, which lost them. */
function newViewComments(migrations: Catalogue, schemas: Catalogue, actions: Action[]): string[] {
  const before = new Set(migrations.viewComments.map(({ statement }) => statement))
  const made = new Set(
    actions.map(({ sql }) => /^create (?:or replace |materialized )*view (\S+)/i.exec(sql.replaceAll('"', ''))?.[1]),
  )
  const ofView = schemas.viewComments.filter(({ view, statement }) => made.has(view) || !before.has(statement))
  return ofView.length === 0 ? [] : [ofView.map(({ statement }) => statement).join('\n')]
}

function writeFiles(
  projectDir: string,
  name: string,
  actions: Action[],
  keywords: Set<string>,
  last: string[],
): string[] {
  const folder = join(projectDir, 'supabase', 'migrations')
  const first = nextVersion(folder)
  return inTransactions(name, actions).map(([title, transaction], index, { length }) => {
    const path = join(folder, `${formatVersion(first + index * 1000)}_${title}.sql`)
    writeFileSync(path, migrationText(title, transaction, keywords, index === length - 1 ? last : []), { flag: 'wx' })
    return path
  })
}

/**
 * One file for each transaction. New enum values go first, since they may be used only after their commit; all the rest is one
 * transaction, so that nobody calls a function between its drop and its return.
 */
function inTransactions(name: string, actions: Action[]): [name: string, actions: Action[]][] {
  const outside = actions.find((action) => action.transactionality === 'nonTransactional')
  if (outside !== undefined) {
    throw new StartError(
      `A migration is applied in one transaction, which cannot contain this statement:\n  ${outside.sql}`,
    )
  }
  const { values = [], rest = [] } = Object.groupBy(actions, (action) =>
    action.transactionality === 'commitBoundaryAfter' ? 'values' : 'rest',
  )
  if (values.length === 0 || rest.length === 0) return [[name, actions]]
  return [
    [`${name}_enum_values`, values],
    [name, rest],
  ]
}

/** In milliseconds: now, but later than the last migration, since they are applied in the order of their versions. */
function nextVersion(folder: string): number {
  const times = readdirSync(folder)
    .map((file) => /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)_.*\.sql$/.exec(file)?.slice(1).map(Number))
    .map(([year = 0, month = 1, ...rest] = []) => Date.UTC(year, month - 1, ...rest))
  return Math.max(Date.now(), ...times.map((time) => time + 1000))
}

function formatVersion(time: number): string {
  return new Date(time).toISOString().replace(/\D/g, '').slice(0, 14)
}

function migrationText(name: string, actions: Action[], keywords: Set<string>, last: string[]): string {
  const head = [
    `-- ${name.replaceAll('_', ' ')}. Written by \`npm run db:migration\` from supabase/schemas.`,
    '',
    // Writers wait behind it for so long at most; src/local/migrate.ts tries again.
    "set local lock_timeout = '2s';",
    "set local statement_timeout = '60s';",
    // A function may stand before what it uses.
    ...(actions.some(({ sql }) => /^create (or replace )?(function|procedure)/i.test(sql))
      ? ['set local check_function_bodies = off;']
      : []),
  ].join('\n')
  const statements = actions.map((action) => {
    const sql = toReadableSql(action.sql, keywords)
    return action.dataLoss === 'destructive' ? `-- This loses data.\n${sql}` : sql
  })
  return `${[head, ...statements, ...last].join('\n\n')}\n`
}

function warningsOf({ actions, renameCandidates }: Plan, keywords: Set<string>): string[] {
  const say = (prefix: string, action: Action) =>
    `${prefix}: ${toReadableSql(action.sql, keywords).replaceAll(/\s+/g, ' ')}`
  return [
    ...actions.filter(({ dataLoss }) => dataLoss === 'destructive').map((action) => say('loses data', action)),
    ...actions
      .filter(({ verb, dataLoss }) => verb === 'drop' && dataLoss !== 'destructive')
      .map((action) => say('drops', action)),
    ...actions
      .filter(({ verb, rewriteRisk }) => verb === 'alter' && rewriteRisk)
      .map((action) => say('may rewrite the table', action)),
    ...renameCandidates.map(
      ({ from, to, status }) => `may be a rename (${status}): ${encodeId(from)} to ${encodeId(to)}`,
    ),
  ]
}

if (import.meta.main) {
  try {
    const { positionals, values } = parseArgs({ allowPositionals: true, options: { renames: { type: 'boolean' } } })
    const [name] = positionals
    if (name === undefined || positionals.length > 1)
      throw new StartError('Usage: npm run db:migration NAME [-- --renames]')
    const projectDir = join(import.meta.dirname, '..')
    const { files, warnings, differences } = await writeMigration(projectDir, name, {
      renames: values.renames ?? false,
    })
    if (files.length === 0) console.log('Nothing to do: the migrations reach the schemas.')
    for (const file of files) console.log(`wrote ${relative('', file)}`)
    if (warnings.length > 0) console.log(['\nLook at these before you commit:', ...warnings].join('\n  '))
    if (files.length > 0 && differences === '') console.log('With it, the migrations reach the schemas.')
    if (differences !== '') {
      console.error(
        '\nThe migration does not reach the schemas yet: pg-delta does not plan what is below. Add it by hand, until ' +
          `\`npm run db:verify\` passes (- only in the schemas, + only by migrations):\n\n${differences}`,
      )
      process.exitCode = 1
    }
  } catch (error) {
    console.error(error instanceof StartError ? error.message : error)
    process.exitCode = 1
  }
}
