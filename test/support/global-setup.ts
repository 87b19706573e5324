// One stack for the whole run: embedded Postgres and PostgREST in a temporary folder, and the API in front of them. Tests
// share it and each makes its own organisation, so tenancy is tested by everything.

import { appendFile, chmod, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { startEmbeddedStack } from '../../src/embedded/stack.ts'
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
  const folder = await mkdtemp(join(tmpdir(), 'usher-test-'))
  // What a test, or a worker that is ended, leaves behind goes with it.
  await chmod(folder, 0o711)
  process.env.TMPDIR = folder
  const [template, dataDir] = [join(folder, 'template'), join(folder, 'shared')]
  await makeTemplate(template)
  await cp(template, dataDir, { recursive: true, preserveTimestamps: true })
  await appendFile(join(dataDir, 'database', 'postgresql.conf'), 'synchronous_commit = off\n')
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
    await rm(folder, { recursive: true, force: true })
  }
}

/** As a first start leaves it, but that copies find ports of their own, and that nothing waits for the disk: what has to outlive a
 * killed process does so without. */
async function makeTemplate(dataDir: string): Promise<void> {
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  await stack.stop()
  await rm(join(dataDir, 'postgres.port'))
  await appendFile(join(dataDir, 'database', 'postgresql.conf'), 'fsync = off\nfull_page_writes = off\n')
}
