// An app of the test's own in front of the shared stack, for what must not touch the shared one: its counters, its log.

import { pino } from 'pino'
import { afterAll, inject, onTestFinished } from 'vitest'
import { serveApp } from '../../scripts/support/serve-app.ts'

type Parts = Partial<Parameters<typeof serveApp>[0]>

const serve = (parts: Parts = {}) =>
  serveApp({
    dataApiUrl: inject('dataApiUrl'),
    jwtSecret: inject('jwtSecret'),
    log: pino({ level: 'silent' }),
    ...parts,
  })

/** For one test. */
export async function ownApp(parts?: Parts): Promise<{ url: string }> {
  const app = await serve(parts)
  onTestFinished(app.close)
  return app
}

/** For all tests of a file. */
export async function appOfThisFile(parts?: Parts): Promise<{ url: string }> {
  const app = await serve(parts)
  afterAll(app.close)
  return app
}
