import { defineConfig } from 'vitest/config'

// biome-ignore lint/style/noDefaultExport: vitest reads the default export.
export default defineConfig({
  test: {
    maxWorkers: Number(process.env.W ?? 2),
    testTimeout: 20_000,
    hookTimeout: 30_000,
    isolate: process.env.ISO !== '0',
    pool: (process.env.POOL ?? 'forks') as 'forks',
    experimental: { viteModuleRunner: process.env.NATIVE !== '1' },
    projects: [
      { test: { name: 'unit', include: ['test/**/*.unit.test.ts'] } },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.unit.test.ts'],
          globalSetup: 'test/support/global-setup.ts',
        },
      },
    ],
  },
})
