// One stack for the whole run: embedded Postgres and PostgREST in a temporary folder, and the API in front of them. Tests
// share it and each makes its own organisation, so tenancy is tested by everything.

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { appendFile, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { pristineVariable, sharePristine, startScratchDatabase } from '../../scripts/support/scratch-database.ts'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { useTemporaryFolder } from '../../scripts/support/temporary-folder.ts'
import { applyMigrations } from '../../src/local/migrate.ts'
import { startEmbeddedStack } from '../../src/local/stack.ts'
import { createLog } from '../../src/process/log.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Base URL of the API. */
    apiUrl: string
    /** Postgres as the role Studio uses. */
    databaseUrl: string
    dataApiUrl: string
    jwtSecret: string
    /** A data directory that nothing runs on: see data-directory.ts. */
    templateDataDirectory: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = useTemporaryFolder()
  // What a test, or a worker that is ended, leaves behind goes with it.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const [template, dataDir] = [join(folder, 'template'), join(folder, 'shared')]
  await makeTemplate(folder, template)
  await promisify(execFile)('cp', ['-a', template, dataDir])
  // Plans as the connections of the API make them, once for each statement, for the role of Studio too: a tenth of the CPU time of a run.
  await appendFile(
    join(dataDir, 'database', 'postgresql.conf'),
    'synchronous_commit = off\nautovacuum = off\nmax_wal_size = 1GB\nplan_cache_mode = force_generic_plan\nenable_seqscan = off\njit = off\n',
  )
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('error') })
  project.provide('apiUrl', app.url)
  project.provide('databaseUrl', stack.databaseUrl)
  project.provide('dataApiUrl', stack.dataApiUrl)
  project.provide('jwtSecret', stack.jwtSecret)
  project.provide('templateDataDirectory', template)

  return async () => {
    await app.close()
    await stack.stop()
  }
}

/** As a first start leaves it, but that copies are small and find ports of their own, and that nothing waits for the disk: what has
 * to outlive a killed process does so without. */
async function makeTemplate(folder: string, dataDir: string): Promise<void> {
  const { signal } = new AbortController()
  if (process.env[pristineVariable] === undefined) await sharePristine(folder, signal)
  await mkdir(dataDir)
  const database = await startScratchDatabase(signal, dataDir)
  await applyMigrations(database.databaseUrl)
  await database.stop()
  for (const file of ['postgres.port', 'postgres.log']) await rm(join(dataDir, file))
  await appendFile(join(dataDir, 'database', 'postgresql.conf'), 'fsync = off\nfull_page_writes = off\n')
}
