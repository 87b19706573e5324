// Runs the files *.prove.ts of this folder, and every-operation.test.ts as a whole, by vitest, on a stack of their own, one after the other: one of them measures time.

import { createVitest, type TestCase } from 'vitest/node'

declare module 'vitest' {
  interface TaskMeta {
    /** What was done, for the report. */
    figures?: string
  }
  interface ProvidedContext {
    /** What the choices of the proof are made from. */
    seed: number | undefined
  }
}

export type StrangersReport = { passed: number; problems: string[]; lines: string[] }

/** @param only a part of the name of a file. */
export async function proveStrangers(seed: number, say: (line: string) => void, only = ''): Promise<StrangersReport> {
  const report: StrangersReport = { passed: 0, problems: [], lines: [] }
  const tell = (test: TestCase) => {
    const { state, errors = [] } = test.result()
    const seconds = ((test.diagnostic()?.duration ?? 0) / 1000).toFixed(1)
    const line = [`${test.fullName} (${seconds} s)`, test.meta().figures].filter(Boolean).join(': ')
    say(`${state} ${line}`)
    report.lines.push(line)
    if (state === 'passed') report.passed += 1
    else if (state === 'failed')
      report.problems.push(
        `${test.fullName}: ${errors.map((error) => `${error.message}\n${error.diff ?? ''}`).join('\n')}`,
      )
  }
  const vitest = await createVitest('test', {
    watch: false,
    include: ['test/prove/strangers/*.prove.ts', 'test/prove/strangers/every-operation.test.ts'],
    fileParallelism: false,
    // Each test is a proof of minutes.
    testTimeout: 3_600_000,
    provide: { seed },
    reporters: [{ onTestCaseResult: tell }],
  })
  // The stack goes with it.
  const stop = () => void vitest.close().finally(() => process.exit(1))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  try {
    const { unhandledErrors } = await vitest.start([only].filter(Boolean))
    report.problems.push(...unhandledErrors.map((error) => String((error as Error).stack ?? error)))
    for (const module of vitest.state.getTestModules()) {
      report.problems.push(...module.errors().map((error) => `${module.relativeModuleId}: ${error.message}`))
    }
    return report
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stop)
    await vitest.close()
  }
}
