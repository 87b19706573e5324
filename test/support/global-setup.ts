// One stack for the whole run: embedded Postgres and PostgREST in a temporary folder, and the API in front of them. Tests
// share it and each makes its own organisation, so tenancy is tested by everything.

import { mkdtemp, rm } from 'node:fs/promises'
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
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-test-'))
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('error') })
  project.provide('apiUrl', app.url)
  project.provide('databaseUrl', stack.databaseUrl)
  project.provide('dataApiUrl', stack.dataApiUrl)
  project.provide('jwtSecret', stack.jwtSecret)

  return async () => {
    await app.close()
    await stack.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
