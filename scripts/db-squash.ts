// Puts one baseline in the place of all migrations: `npm run db:squash`. The baseline is the schema files, one after the other. Only
// until the first release: from then on, installations have applied the migrations, and go on from there.

import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { StartError } from '../src/process/start-error.ts'
import { verifyMigrations } from './db-verify.ts'
import { schemaFiles } from './project-databases.ts'

/** @returns the path of the baseline */
function squashMigrations(projectDir: string): string {
  const releases = execFileSync('git', ['tag', '--list', 'v*'], { cwd: projectDir, encoding: 'utf8' }).trim()
  if (releases !== '') {
    throw new StartError(
      `There is a release (${releases.split('\n')[0]}): its migrations are kept. Write one with npm run db:migration.`,
    )
  }
  const folder = join(projectDir, 'supabase')
  const files = schemaFiles(folder)
  const text = files.map((file) => `-- ${file}\n\n${readFileSync(join(folder, file), 'utf8').trimEnd()}`).join('\n\n')
  const migrations = globSync('migrations/*.sql', { cwd: folder }).sort()
  const version = new Date().toISOString().replace(/\D/g, '').slice(0, 14)
  const path = join(folder, 'migrations', `${version}_baseline.sql`)
  writeFileSync(path, `${head}\n${text}\n`, { flag: 'wx' })
  for (const migration of migrations) rmSync(join(folder, migration))
  return path
}

const head = `-- The whole database, as supabase/schemas described it when this baseline was made: those files, in the order of supabase/config.toml.
-- Read the schemas instead: they are kept current, and later migrations change what is below.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
`

if (import.meta.main) {
  const projectDir = join(import.meta.dirname, '..')
  try {
    console.log(`wrote ${relative('', squashMigrations(projectDir))}`)
    const { differences } = await verifyMigrations(projectDir)
    if (differences !== '') throw new StartError(`The baseline does not reach the schemas:\n\n${differences}`)
  } catch (error) {
    console.error(error instanceof StartError ? error.message : error)
    process.exitCode = 1
  }
}
