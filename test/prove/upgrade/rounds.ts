// The rounds of `npm run prove -- --upgrade`: databases at the schema of a version before, and what is applied to them.

import { appendFile, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startScratchDatabase } from '../../../scripts/support/scratch-database.ts'
import { applyMigrations } from '../../../src/local/migrate.ts'
import { type Report, type Stage, type Upgrade, upgrade } from './rolling.ts'
import { type ExtraMigration, migrationFiles, projectWith, repository, type Step, unpack } from './versions.ts'

type Options = Omit<Upgrade, 'code' | 'stages'> & {
  /** Migrations beside those of the project: rehearsed after the last of them, with somebody who reads for long. */
  extra?: ExtraMigration[]
}

/** Upgrades a database through steps, from the schema before the first of them to that of now. @param folder an empty one. */
export async function rollThrough(folder: string, steps: Step[], options: Options): Promise<Report> {
  const { extra = [], ...round } = options
  const files = migrationFiles()
  const codes: string[] = []
  for (const [i, { before }] of steps.entries()) codes.push(await unpack(before, join(folder, `version${i}`)))
  const stages: Stage[] = []
  const [first] = steps[0]?.migrations ?? []
  const applied = first === undefined ? [...files] : files.slice(0, files.indexOf(first))
  const dataDir = await databaseWith(folder, applied)
  for (const [i, { migrations }] of steps.entries()) {
    applied.push(...migrations)
    const projectDir = projectWith(join(folder, `project${i}`), applied)
    stages.push({ projectDir, code: codes[i + 1] ?? repository })
  }
  if (extra.length > 0) {
    stages.push({ projectDir: projectWith(join(folder, 'extra'), applied, extra), code: repository, isRead: true })
  }
  return upgrade(dataDir, { ...round, code: codes[0] ?? repository, stages })
}

/** A data directory that nothing runs on, with so many migrations. */
export async function databaseWith(folder: string, files: string[]): Promise<string> {
  const dataDir = join(folder, 'data')
  await mkdir(dataDir)
  const database = await startScratchDatabase(new AbortController().signal, dataDir)
  await applyMigrations(database.databaseUrl, { projectDir: projectWith(join(folder, 'start'), files) })
  await database.stop()
  for (const file of ['postgres.port', 'postgres.log']) await rm(join(dataDir, file))
  await appendFile(join(dataDir, 'database', 'postgresql.conf'), 'fsync = off\nfull_page_writes = off\n')
  return dataDir
}
