// What a killed Usher leaves behind: its Postgres and PostgREST go on running. Takes a data directory that is locked by us,
// so that anything running on it is left over, and stops it. It must never signal a process that is not provably one of ours.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DataDirectory } from './data-directory.ts'
import { readPidFile, stopPostgresSteps } from './postgres.ts'
import { stopPostgrestSteps } from './postgrest.ts'
import { commandLine, identify, isRunning, type ProcessIdentity, type StopStep, stopProcess } from './processes.ts'
import { readRunRecord, removeRunRecord } from './run-record.ts'
import { StartError } from './start-error.ts'

export async function stopOrphans(directory: DataDirectory, progress: (message: string) => void): Promise<void> {
  const record = readRunRecord(directory)
  const orphans: [ProcessIdentity | null | undefined, StopStep[]][] = [
    [record?.postgrest, stopPostgrestSteps],
    [record?.postgres, stopPostgresSteps],
    [findPostgres(directory.database), stopPostgresSteps],
  ]
  for (const [identity, steps] of orphans) {
    if (!identity || !isRunning(identity)) continue
    progress(`Stopping process ${identity.pid}, left over from an Usher that was killed …`)
    if (!(await stopProcess(identity, steps))) {
      throw new StartError(
        `Process ${identity.pid}, left over from an earlier start, does not end. End it, and start again.`,
      )
    }
  }
  forgetStrangers(directory.database)
  removeRunRecord(directory)
}

// Postgres notes its pid in its own folder. That pid is Postgres only if its command line names this very folder.
function findPostgres(databaseDir: string): ProcessIdentity | null {
  const noted = readPidFile(databaseDir)
  if (noted === null) return null
  const identity = identify(noted.pid)
  const command = commandLine(noted.pid)
  return command.includes('postgres') && command.includes(` -D ${databaseDir} `) ? identity : null
}

// A note whose pid now belongs to some other program keeps Postgres from starting. It may not simply be deleted: Postgres
// also reads from it how to find processes that still use the folder. A pid that is its parent's it knows to be outdated.
function forgetStrangers(databaseDir: string): void {
  const noted = readPidFile(databaseDir)
  if (noted === null || identify(noted.pid) === null) return
  const path = join(databaseDir, 'postmaster.pid')
  const [, ...others] = readFileSync(path, 'utf8').split('\n')
  writeFileSync(path, [process.pid, ...others].join('\n'))
}
