// Stops the Postgres and PostgREST that a killed Usher left running. The caller holds the lock, so every server on the data directory is
// an orphan. It must never signal a process that is not provably ours: recorded with its pid and start time, or with the command line of
// our program on our files.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  identify,
  isRunning,
  type ProcessIdentity,
  processesRunning,
  type StopStep,
  stopProcess,
} from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import type { DataDirectory } from './data-directory.ts'
import { readPidFile, stopPostgresSteps } from './postgres.ts'
import { stopPostgrestSteps } from './postgrest.ts'
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
  disownPidFile(directory.database)
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

// Postgres does not start if the pid in its pid file now belongs to another program. The file must not be deleted: Postgres also uses
// it to find processes that still use the folder. A pid file with the pid of its own parent process counts as stale for Postgres.
function disownPidFile(databaseDir: string): void {
  const pidFile = readPidFile(databaseDir)
  if (pidFile === null || identify(pidFile.pid) === null) return
  const path = join(databaseDir, 'postmaster.pid')
  const [, ...others] = readFileSync(path, 'utf8').split('\n')
  writeFileSync(path, [process.pid, ...others].join('\n'))
}
