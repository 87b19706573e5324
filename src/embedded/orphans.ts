// What a killed Usher leaves behind: its Postgres and PostgREST go on running. Takes a data directory that is locked by us,
// so that anything running on it is left over, and stops it. It must never signal a process that is not provably one of ours:
// either it was recorded with its pid and the time it started, or its command line is that of our program on our files.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from '../start-error.ts'
import type { DataDirectory } from './data-directory.ts'
import { readPidFile, stopPostgresSteps } from './postgres.ts'
import { stopPostgrestSteps } from './postgrest.ts'
import { identify, isRunning, type ProcessIdentity, processesRunning, type StopStep, stopProcess } from './processes.ts'
import { readRunRecord, removeRunRecord } from './run-record.ts'

export async function stopOrphans(
  directory: DataDirectory,
  programs: { postgres: string; postgrest: string },
  progress: (message: string) => void,
): Promise<void> {
  const record = readRunRecord(directory)
  const postgrest = processesRunning(programs.postgrest, directory.postgrestConfig)
  await stopAll([record?.postgrest, ...postgrest], stopPostgrestSteps, progress)
  const postgres = processesRunning(programs.postgres, '-D', directory.database)
  await stopAll([record?.postgres, ...postgres], stopPostgresSteps, progress)
  forgetStrangers(directory.database)
  removeRunRecord(directory)
}

async function stopAll(
  orphans: (ProcessIdentity | undefined)[],
  steps: StopStep[],
  progress: (message: string) => void,
): Promise<void> {
  for (const orphan of orphans) {
    if (orphan === undefined || !isRunning(orphan)) continue
    progress(`Stopping process ${orphan.pid}, left over from an Usher that was killed …`)
    if (await stopProcess(orphan, steps)) continue
    throw new StartError(
      `Process ${orphan.pid}, left over from an earlier start, does not end. End it, and start again.`,
    )
  }
}

// Postgres notes its pid in its own folder, and a note whose pid now belongs to some other program keeps it from starting.
// The note may not simply be deleted: Postgres also reads from it how to find processes that still use the folder. One that
// names Postgres's own parent it knows to be outdated.
function forgetStrangers(databaseDir: string): void {
  const noted = readPidFile(databaseDir)
  if (noted === null || identify(noted.pid) === null) return
  const path = join(databaseDir, 'postmaster.pid')
  const [, ...others] = readFileSync(path, 'utf8').split('\n')
  writeFileSync(path, [process.pid, ...others].join('\n'))
}
