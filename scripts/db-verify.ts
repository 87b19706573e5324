// Proves that supabase/migrations reach exactly what supabase/schemas say: `npm run db:verify`, or with the folder that
// contains supabase/ as its argument. Two scratch clusters, for roles belong to a cluster; one gets the migrations, as they
// are applied everywhere, the other the schema files in the order of their names, both as `postgres`. Nothing is kept.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { Client, DatabaseError } from 'pg'
import { interruption } from '../src/embedded/interruption.ts'
import { applyMigrations } from '../src/embedded/migrate.ts'
import { startScratchDatabase } from '../src/embedded/scratch.ts'
import { StartError } from '../src/start-error.ts'
import { type Snapshot, takeReferenceRows, takeSnapshot } from './catalogue.ts'
import { diffSnapshots } from './snapshot-diff.ts'

/** '' and the number of objects compared when they agree; otherwise the differences, for a person. */
export async function verifyMigrations(projectDir: string): Promise<{ differences: string; objects: number }> {
  const { signal, release } = interruption()
  try {
    const results = await Promise.allSettled([
      snapshotAfter(signal, (databaseUrl) => applySchemas(databaseUrl, projectDir)),
      snapshotAfter(signal, (databaseUrl) => applyMigrations(databaseUrl, { projectDir, signal })),
    ])
    const [schemas, migrations] = results.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
    if (schemas === undefined || migrations === undefined) throw new Error('two databases were expected')
    return { differences: diffSnapshots(schemas, migrations), objects: schemas.size }
  } finally {
    release()
  }
}

async function snapshotAfter(signal: AbortSignal, apply: (databaseUrl: string) => Promise<void>): Promise<Snapshot> {
  const database = await startScratchDatabase(signal)
  try {
    await apply(database.databaseUrl)
    signal.throwIfAborted()
    const client = new Client({ connectionString: database.databaseUrl })
    await client.connect()
    try {
      return new Map([...(await takeSnapshot(client)), ...(await takeReferenceRows(client))])
    } finally {
      await client.end()
    }
  } finally {
    await database.remove()
  }
}

async function applySchemas(databaseUrl: string, projectDir: string): Promise<void> {
  const folder = join(projectDir, 'supabase', 'schemas')
  const files = existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.sql'))
        .sort()
    : []
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    for (const name of files) await applyFile(client, join(folder, name))
  } finally {
    await client.end()
  }
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

if (import.meta.main) {
  try {
    const { differences, objects } = await verifyMigrations(resolve(process.argv[2] ?? join(import.meta.dirname, '..')))
    if (differences === '') {
      console.log(`migrations reach the schemas: ${objects} objects compared`)
    } else {
      console.error(
        `Migrations do not reach the schemas (- only in the schemas, + only by migrations):\n\n${differences}`,
      )
      process.exitCode = 1
    }
  } catch (error) {
    console.error(error instanceof StartError ? error.message : error)
    process.exitCode = 1
  }
}
