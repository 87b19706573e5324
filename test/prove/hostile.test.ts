// Hostile requests, a few: `npm run prove -- --hostile` sends a hundred thousand, and measures what they leave.

import { pino } from 'pino'
import { afterAll, expect, inject, test } from 'vitest'
import { makeApp } from '../../scripts/support/serve-app.ts'
import { openListener } from '../../src/http/listener.ts'
import { hostile } from './hostile/hostile.ts'

// The listener that `usher start` opens, and one with time limits that a test can wait for.
const listener = await openListener({ host: '127.0.0.1', port: 0 })
const impatient = await openListener({
  host: '127.0.0.1',
  port: 0,
  timeouts: { headersMs: 1_000, requestMs: 2_000, idleMs: 2_000 },
})
afterAll(async () => {
  await Promise.all([listener.close(), impatient.close()])
})

test('hostile requests are refused in the documented shape, and do no harm', async () => {
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => errors.push(line) })
  const parts = { dataApiUrl: inject('dataApiUrl'), jwtSecret: inject('jwtSecret'), log }
  const app = await makeApp(parts, listener.url)
  listener.serve(app)
  impatient.serve(app)
  const seed = Math.floor(Math.random() * 1e6)
  const report = await hostile(
    {
      apiUrl: listener.url,
      slowUrl: impatient.url,
      databaseUrl: inject('databaseUrl'),
      isShared: true,
      complaints: () => errors,
    },
    { seed, requests: 1_000, pace: 0.05 },
  )
  expect(report.problems, `npm run prove -- --hostile --seed ${seed}`).toEqual([])
  expect(report.requests).toBe(1_000)
  // Not all was turned away at the first step.
  expect(report.statuses.get('200')).toBeGreaterThan(50)
  expect(report.succeeded.size).toBeGreaterThan(20)
})
