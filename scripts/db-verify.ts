// Proves that supabase/migrations reach exactly what supabase/schemas say: `npm run db:verify`, or with the folder that
// contains supabase/ as its argument. Writes nothing.

import { join, resolve } from 'node:path'
import { diff, encodeId } from '@supabase/pg-delta/core'
import { StartError } from '../src/process/start-error.ts'
import { type Catalogue, readCatalogues } from './catalogue.ts'
import { withProjectDatabases } from './project-databases.ts'
import { diffSnapshots } from './snapshot-diff.ts'

/** '' and the number of objects compared when they agree; otherwise the differences, for a person. */
export async function verifyMigrations(projectDir: string): Promise<{ differences: string; objects: number }> {
  return withProjectDatabases(projectDir, async (databases) => {
    const { schemas, migrations } = await readCatalogues(databases)
    return { differences: diffCatalogues(schemas, migrations), objects: schemas.snapshot.size }
  })
}

/** `-` stands before what only the schemas have, `+` before what only the migrations have. */
export function diffCatalogues(schemas: Catalogue, migrations: Catalogue): string {
  const differences = diffSnapshots(schemas.snapshot, migrations.snapshot)
  if (differences !== '') return differences
  // Facts that the text does not show, such as a dependency recorded in one database only.
  return diff(migrations.facts, schemas.facts).map(describeDelta).join('\n')
}

function describeDelta(delta: ReturnType<typeof diff>[number]): string {
  if (delta.verb === 'set') return `  ${encodeId(delta.id)}: ${delta.attr}`
  const mark = delta.verb === 'add' || delta.verb === 'link' ? '-' : '+'
  if ('fact' in delta) return `${mark} ${encodeId(delta.fact.id)}`
  return `${mark} ${encodeId(delta.edge.from)} ${delta.edge.kind} ${encodeId(delta.edge.to)}`
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
