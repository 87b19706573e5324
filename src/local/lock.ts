// Allows one Usher per data directory, by the lock of a SQLite file. The operating system takes that lock atomically, even between two
// simultaneous starts, and releases it when the process ends, so it can never be stale.

import { DatabaseSync } from 'node:sqlite'
import { StartError } from '../process/start-error.ts'
import { type DataDirectory, giveToFolderOwner } from './data-directory.ts'
import { readRunRecord } from './run-record.ts'

const SQLITE_BUSY = 5

/** @throws StartError, if another Usher has it. */
export function acquireLock(directory: DataDirectory): { release: () => void } {
  let file: DatabaseSync | null = null
  try {
    // Of two that start at once, each may meet a short lock of the other: both let it go and try again.
    file = new DatabaseSync(directory.lock, { timeout: 250 })
    giveToFolderOwner(directory.lock)
    file.exec('pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    file?.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) throw alreadyRunning(directory)
    throw new StartError(
      `${directory.path} cannot be locked (${(error as Error).message}). Set USHER_DATA_DIR to a folder on a local disk.`,
    )
  }
  const held = file
  return { release: () => held.isOpen && held.close() }
}

/** Names the process, unless it has only just begun. */
function alreadyRunning(directory: DataDirectory): StartError {
  const holder = readRunRecord(directory)?.usher.pid
  return new StartError(
    `Usher is already running on ${directory.path}${holder === undefined ? '' : ` (process ${holder})`}. ` +
      'Stop it first, or set USHER_DATA_DIR to another folder.',
  )
}
