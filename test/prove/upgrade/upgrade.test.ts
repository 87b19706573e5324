// The version before, its courier too, on the schema of now, and then in the place of it the code of now: `npm run prove -- --upgrade` has each
// migration, and what is restored.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { rollThrough } from './rounds.ts'
import { commitBefore, type Step, stepsSinceBaseline } from './versions.ts'

const steps = stepsSinceBaseline()
const before = commitBefore()
// The baseline alone may have changed.
const unmigrated = before === undefined ? undefined : { migrations: [], before }
const step: Step | undefined = typeof steps === 'string' ? unmigrated : steps.at(-1)

test.skipIf(step === undefined)(
  `the schema of now leaves no call of the version before unanswered${step === undefined ? `: ${steps}` : ''}`,
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'usher-test-'))
    const seed = Math.floor(Math.random() * 1e6)
    try {
      const report = await rollThrough(folder, [step as Step], {
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
