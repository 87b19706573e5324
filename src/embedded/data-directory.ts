// The layout of the data directory: takes the path a person configured, gives back absolute paths of everything kept in it.
// It must never loosen the mode of a folder, nor change that of one that holds other people's files.

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { StartError } from '../start-error.ts'

export type DataDirectory = {
  /** Absolute, with symbolic links resolved, so that two names of one folder are one folder. */
  path: string
  /** Postgres's own folder. It exists only once initdb has finished. */
  database: string
  secrets: string
  /** The port Postgres listened on last, kept so that a saved connection in a SQL client goes on working. */
  port: string
  /** Which processes run here: see run-record.ts. */
  running: string
  lock: string
  postgresLog: string
  postgrestConfig: string
  postgrestLog: string
}

export function openDataDirectory(configured: string): DataDirectory {
  const wanted = resolve(configured)
  try {
    const created = mkdirSync(wanted, { recursive: true, mode: 0o700 })
    const path = realpathSync(wanted)
    refuseForeignFolder(path)
    // A folder someone made for us, such as an empty volume, becomes private as well; one already in use keeps its mode.
    if (created !== undefined || readdirSync(path).length === 0) chmodSync(path, 0o700)
    return layOut(path)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(
      `The data directory ${wanted} cannot be used (${(error as Error).message}). Set USHER_DATA_DIR to another folder.`,
    )
  }
}

/** The same paths for a folder that is only looked at: nothing is created, and null means there is no such folder. */
export function findDataDirectory(configured: string): DataDirectory | null {
  try {
    return layOut(realpathSync(resolve(configured)))
  } catch {
    return null
  }
}

/** Readers see the old content or the new, never half of it, also after a crash in the middle. */
export function writeFileAtomically(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`
  rmSync(temporary, { force: true })
  writeFileSync(temporary, content, { mode: 0o600, flag: 'wx', flush: true })
  giveToFolderOwner(temporary)
  renameSync(temporary, path)
}

/** Root at work in somebody's folder leaves files that are theirs, so that they can go on without root. */
export function giveToFolderOwner(path: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  if (uid !== 0) chownSync(path, uid, gid)
}

function refuseForeignFolder(path: string): void {
  const owner = statSync(path).uid
  const self = process.getuid?.()
  if (self === undefined || self === 0 || owner === self) return
  throw new StartError(
    `${path} belongs to another user (uid ${owner}). Start Usher as that user, or set USHER_DATA_DIR to a folder of your own.`,
  )
}

function layOut(path: string): DataDirectory {
  return {
    path,
    database: join(path, 'database'),
    secrets: join(path, 'secrets.json'),
    port: join(path, 'postgres.port'),
    running: join(path, 'running.json'),
    lock: join(path, 'lock'),
    postgresLog: join(path, 'postgres.log'),
    postgrestConfig: join(path, 'postgrest.conf'),
    postgrestLog: join(path, 'postgrest.log'),
  }
}
