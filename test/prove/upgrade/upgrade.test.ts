// The newest migration on a database in use, by the version before it: `npm run prove -- --upgrade` has each, and what is restored.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { rollThrough } from './rounds.ts'
import { stepsSinceBaseline } from './versions.ts'

const steps = stepsSinceBaseline()

test.skipIf(typeof steps === 'string')(
  `the newest migration leaves no call of the version before unanswered${typeof steps === 'string' ? `: ${steps}` : ''}`,
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'usher-test-'))
    const seed = Math.floor(Math.random() * 1e6)
    try {
      const report = await rollThrough(folder, steps.slice(-1) as Exclude<typeof steps, string>, {
        seed,
        writes: 8,
        isSmall: true,
        clients: 2,
      })
      expect(report.problems, `npm run prove -- --upgrade --seed ${seed}`).toEqual([])
      expect(report.outcomes.ok).toBeGreaterThan(20)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
)
