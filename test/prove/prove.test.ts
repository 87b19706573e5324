// The proof, for a few seconds: `npm run prove` has it for minutes, and with broken builds.

import { rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { makeDataDirectory } from '../support/data-directory.ts'
import { prove } from './prove.ts'

test('what is acknowledged is there once, whatever dies', async () => {
  const dataDir = await makeDataDirectory()
  const seed = Math.floor(Math.random() * 1e6)
  try {
    const report = await prove(dataDir, { seed, seconds: 5, pause: 0.5, kill: ['courier', 'API 1'] })
    expect(report.problems, `npm run prove -- --seed ${seed}`).toEqual([])
    expect(report.calls).toBeGreaterThan(0)
    expect(report.faults.length).toBeGreaterThan(0)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})
