// Two scratch clusters for a project folder, for roles belong to a cluster: one gets the schema files in the order of
// supabase/config.toml, the other the migrations as they are applied everywhere, both as `postgres`. Nothing of them is kept.

import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { type Client, DatabaseError } from 'pg'
import { withClient } from '../src/local/client.ts'
import { applyMigrations } from '../src/local/migrate.ts'
import { StartError } from '../src/process/start-error.ts'
import { interruption } from '../src/process/stop-signals.ts'
import { type ScratchDatabase, startScratchDatabase } from './support/scratch-database.ts'

export type ProjectDatabases = { schemas: string; migrations: string; signal: AbortSignal }

/** Gives the connection strings to `use`, and removes both clusters after it. */
export async function withProjectDatabases<T>(
  projectDir: string,
  use: (databases: ProjectDatabases) => Promise<T>,
): Promise<T> {
  const { signal, release } = interruption()
  const started: ScratchDatabase[] = []
  const start = async (apply: (databaseUrl: string) => Promise<void>): Promise<string> => {
    const database = await startScratchDatabase(signal)
    started.push(database)
    await apply(database.databaseUrl)
    signal.throwIfAborted()
    return database.databaseUrl
  }
  try {
    const results = await Promise.allSettled([
      start((databaseUrl) => applySchemas(databaseUrl, projectDir)),
      start((databaseUrl) => applyMigrations(databaseUrl, { projectDir, signal })),
    ])
    const [schemas, migrations] = results.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
    if (schemas === undefined || migrations === undefined) throw new Error('two databases were expected')
    return await use({ schemas, migrations, signal })
  } finally {
    await Promise.all(started.map((database) => database.remove()))
    release()
  }
}

async function applySchemas(databaseUrl: string, projectDir: string): Promise<void> {
  const folder = join(projectDir, 'supabase')
  await withClient(databaseUrl, async (client) => {
    for (const path of schemaFiles(folder)) await applyFile(client, join(folder, path))
  })
}

/**
 * The files of supabase/schemas in the order in which they are applied: that of `schema_paths` in supabase/config.toml, or of their
 * names if it has none, as for the Supabase CLI.
 * @returns paths within supabase/
 */
export function schemaFiles(folder: string): string[] {
  const config = join(folder, 'config.toml')
  const found = globSync('schemas/**/*.sql', { cwd: folder }).sort()
  const list = existsSync(config) && /^schema_paths = \[\n(.*?)^\]/ms.exec(readFileSync(config, 'utf8'))?.[1]
  if (!list) return found
  const files = [...list.matchAll(/^ *"\.\/(.+)",$/gm)].map(([, path = '']) => path)
  const unlisted = found.filter((path) => !files.includes(path))
  if (unlisted.length > 0) {
    throw new StartError(
      `Add to schema_paths in supabase/config.toml, where it belongs in the order: ${unlisted.join(', ')}.`,
    )
  }
  return files
}

async function applyFile(client: Client, path: string): Promise<void> {
  const sql = readFileSync(path, 'utf8')
  try {
    await client.query(sql)
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error
    const line = error.position === undefined ? '' : `:${sql.slice(0, Number(error.position)).split('\n').length}`
    const more = [error.detail, error.hint, error.where].filter((text) => text !== undefined)
    throw new StartError([`${relative('', path)}${line}: ${error.message}`, ...more].join('\n  '))
  }
}
