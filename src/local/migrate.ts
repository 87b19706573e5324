// Applies supabase/migrations with the Supabase CLI, as on a hosted project, as the role `postgres`. It changes nothing if all of them are
// applied. It must never run as a superuser.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import { withClient } from './client.ts'

const projectRoot = join(import.meta.dirname, '..', '..')

// Seconds between attempts at a migration that did not get a lock in time: it gives up soon, for whoever comes after it waits behind it, and
// what it waited behind may take a while.
const pauses = [1, 2, 4, 8, 15, 15, 15, 15, 15]

type MigrateOptions = {
  /** The folder that contains supabase/. */
  projectDir?: string
  progress?: (message: string) => void
  signal?: AbortSignal
}

export async function applyMigrations(databaseUrl: string, options: MigrateOptions = {}): Promise<void> {
  const { projectDir = projectRoot, progress, signal } = options
  const { pending, unknown, baseline } = await compareMigrations(databaseUrl, projectDir)
  if (unknown.some((version) => version < baseline)) {
    throw new StartError(
      'The database is from a version before the first release of Usher and cannot be upgraded. ' +
        'Nothing in it was changed. Set USHER_DATA_DIR to another folder, or move this one away, to start with an empty database.',
    )
  }
  if (unknown.length > 0) {
    throw new StartError(
      `The database is from a newer Usher: it has migrations that this one lacks (${unknown.join(', ')}). ` +
        'Update Usher, or set USHER_DATA_DIR to another folder.',
    )
  }
  // Starting the CLI takes half a second, which most starts can skip.
  if (pending.length === 0) return
  progress?.(pending.length === 1 ? 'Applying 1 migration …' : `Applying ${pending.length} migrations …`)
  for (const pause of [...pauses, null]) {
    const { failure, stderr } = await push(databaseUrl, projectDir, signal)
    if (failure === undefined) return
    const isBusy = /lock timeout|deadlock detected/.test(stderr)
    if (!isBusy || pause === null) {
      throw new StartError(
        `The migrations could not be applied (supabase db push, ${failure}):\n${stderr.trim()}${
          isBusy ? '\nAnother transaction holds a table: look in pg_stat_activity. Then start again.' : ''
        }`,
      )
    }
    progress?.(`A migration did not get its locks, because the tables are in use. Trying again in ${pause} s …`)
    await sleep(pause * 1000, undefined, { signal }).catch(() => signal?.throwIfAborted())
  }
}

/**
 * Versions that only the files have (`pending`), and that only the database has (`unknown`), both sorted; and that of the first file, the
 * `baseline`, which replaced what is older. `isNew` where none of ours was applied.
 */
export async function compareMigrations(
  databaseUrl: string,
  projectDir = projectRoot,
): Promise<{ pending: string[]; unknown: string[]; baseline: string; isNew: boolean }> {
  const versions = migrationVersions(projectDir).sort()
  const files = new Set(versions)
  const applied = new Set(await appliedVersions(databaseUrl))
  return {
    pending: [...files.difference(applied)],
    unknown: [...applied.difference(files)].sort(),
    baseline: versions[0] ?? '',
    isNew: files.isDisjointFrom(applied),
  }
}

function migrationVersions(projectDir: string): string[] {
  const folder = join(projectDir, 'supabase', 'migrations')
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((name) => /^(\d+)_.*\.sql$/.exec(name)?.[1] ?? [])
}

/** Names that the migrations create in schema `public`. A first `db push` fails where an object of the project has one of them. */
export function namesInPublic(projectDir = projectRoot): string[] {
  const folder = join(projectDir, 'supabase', 'migrations')
  const sql = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  const created = /^create (?:or replace )?(?:table|view|type|function) "?public"?\."?(\w+)/gim
  return [...new Set(sql.flatMap((text) => [...text.matchAll(created)].map(([, name = '']) => name)))].sort()
}

async function appliedVersions(databaseUrl: string): Promise<string[]> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query(
      "select to_regclass('supabase_migrations.schema_migrations') is not null as exists",
    )
    if (!rows[0].exists) return []
    const versions = await client.query<{ version: string }>(
      'select version from supabase_migrations.schema_migrations',
    )
    return versions.rows.map((row) => row.version)
  })
}

async function push(databaseUrl: string, projectDir: string, signal: AbortSignal | undefined) {
  const url = new URL(databaseUrl)
  // In the environment, not on the command line, which every user of the machine can read.
  const password = decodeURIComponent(url.password)
  url.password = ''
  const local = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
  // --include-all: a branch merged late may add a migration older than the last one applied here.
  const args = ['db', 'push', `--remote=${url.href}`, '--include-all', '--yes', `--workdir=${projectDir}`]
  return run([process.execPath, cli(), ...args], {
    cwd: projectDir,
    env: {
      ...withoutPostgresVariables(process.env),
      PGPASSWORD: password,
      ...(local ? { PGSSLMODE: 'disable' } : {}),
      SUPABASE_TELEMETRY_DISABLED: '1',
      SUPABASE_NO_UPDATE_NOTIFIER: '1',
    },
    signal,
  })
}

function cli(): string {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('supabase/package.json')), 'dist', 'supabase.js')
  } catch {
    throw new StartError('The npm package `supabase` is not installed. Run `npm install`.')
  }
}

// PGHOST, PGOPTIONS and the like are meant for a psql in the same shell, on another database.
function withoutPostgresVariables(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !/^PG[A-Z]+$/.test(name)))
}
