import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Files that take longest, mostly waiting for processes to start and stop. They begin first, so that none of them is alone at the end.
const longest = [
  'gateway/database-health',
  'embedded/stack',
  'courier/cancellations',
  'prove/',
  'browser/door-page',
  'browser/door-shift',
  'browser/guest-story',
  'browser/event-story',
  'properties/interleavings',
  'courier/emails-in-browser',
  'browser/docs-page',
  'browser/ticket-page-browser',
  'http/key-attempts',
  'courier/end-to-end',
  'cli/',
  'courier/edge-function',
  'mcp/',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = longest.findIndex((part) => moduleId.includes(`/test/${part}`))
      return place === -1 ? longest.length : place
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

// biome-ignore lint/style/noDefaultExport: vitest reads the default export.
export default defineConfig(({ mode }) => ({
  test: {
    // Tests wait half of the time, and share one stack on organisations of their own: more files at a time than there are cores.
    maxWorkers: availableParallelism() + 2,
    // A worker imports the server once and not once for each file, which is a quarter of the CPU time. So helpers keep nothing
    // that belongs to a test, and hooks stand in test files.
    isolate: false,
    // Ten times what is measured on a quiet machine: a test waits for what it awaits, and on a slow or busy machine that takes long. No
    // test has a limit of its own, but where the limit is what is tested.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    sequence: { sequencer: LongestFirst },
    // One project for both kinds: the files of another one begin in workers of their own, which import the server again.
    ...(mode === 'unit'
      ? { include: ['test/**/*.unit.test.ts'] }
      : { include: ['test/**/*.test.ts'], globalSetup: 'test/support/global-setup.ts' }),
  },
}))
