// Stops the Postgres and PostgREST that a killed Usher left running. The caller holds the lock, so every server on the data directory is
// an orphan. It must never signal a process that is not provably ours: told by the command line of our program on our files.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandOf, type ProcessIdentity, processesRunning } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import type { PostgresBinaries } from './binaries.ts'
import type { DataDirectory } from './data-directory.ts'
import { postgresCommand, stopPostgres } from './postgres.ts'
import { stopPostgrest } from './postgrest.ts'

export async function stopOrphans(
  directory: DataDirectory,
  binaries: PostgresBinaries,
  postgrest: string,
  progress: (message: string) => void,
): Promise<void> {
  const stopAll = async (command: string, stop: (orphan: ProcessIdentity) => Promise<boolean>) => {
    for (const orphan of processesRunning(command)) {
      progress(`Stopping process ${orphan.pid}, left over from an Usher that was killed …`)
      if (await stop(orphan)) continue
      throw new StartError(
        `Process ${orphan.pid}, left over from an earlier start, does not stop. Kill it and start again.`,
      )
    }
  }
  await stopAll(commandOf(postgrest, directory.postgrestConfig), stopPostgrest)
  await stopAll(postgresCommand(binaries, directory), stopPostgres)
  disownPidFile(join(directory.database, 'postmaster.pid'))
}

// Postgres does not start if the pid in its pid file now belongs to another program. The file must not be deleted: Postgres also uses
// it to find processes that still use the folder. A pid file with the pid of its own parent process counts as stale for Postgres.
function disownPidFile(file: string): void {
  if (!existsSync(file)) return
  const [, ...others] = readFileSync(file, 'utf8').split('\n')
  writeFileSync(file, [process.pid, ...others].join('\n'))
}
