// Opens the data directory and defines its layout. It must never loosen the mode of a folder, nor change the mode of a folder that
// contains other files.

import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { StartError } from '../process/start-error.ts'

export type DataDirectory = ReturnType<typeof pathsIn>

export function openDataDirectory(configured: string): DataDirectory {
  const wanted = resolve(configured)
  try {
    const created = mkdirSync(wanted, { recursive: true, mode: 0o700 })
    const path = realpathSync(wanted)
    refuseForeignOwner(path, 'set USHER_DATA_DIR to a folder of your own')
    // An empty folder that was created for Usher, such as a volume, becomes private as well; a folder in use keeps its mode.
    if (created !== undefined || readdirSync(path).length === 0) chmodSync(path, 0o700)
    return pathsIn(path)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(
      `The data directory ${wanted} cannot be used (${(error as Error).message}). Set USHER_DATA_DIR to another folder.`,
    )
  }
}

/** The same paths without creating or changing anything. Null: there is no such folder. */
export function findDataDirectory(configured: string): DataDirectory | null {
  try {
    return pathsIn(realpathSync(resolve(configured)))
  } catch {
    return null
  }
}

/** Readers see the old content or the new, never a part of it, even after a crash. */
export function writeFileAtomically(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`
  rmSync(temporary, { force: true })
  writeFileSync(temporary, content, { mode: 0o600, flag: 'wx', flush: true })
  giveToFolderOwner(temporary)
  renameSync(temporary, path)
}

/** As root in another user's folder: the new file becomes theirs, so that they can continue without root. */
export function giveToFolderOwner(path: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  if (uid !== 0) chownSync(path, uid, gid)
}

/** Root may use the folder of any user; others only their own. */
export function refuseForeignOwner(path: string, alternative: string): void {
  const owner = lstatSync(path).uid
  const self = process.getuid?.()
  if (self === undefined || self === 0 || owner === self) return
  throw new StartError(`${path} belongs to another user (uid ${owner}). Start Usher as that user, or ${alternative}.`)
}

/** @param path absolute, with symbolic links resolved, so that two names of one folder share one lock. */
const pathsIn = (path: string) => ({
  path,
  /** The data directory of Postgres. It exists only once initdb has finished. */
  database: join(path, 'database'),
  secrets: join(path, 'secrets.json'),
  /** The port that Postgres used last, kept so that a connection saved in a SQL client keeps working. */
  port: join(path, 'postgres.port'),
  /** Which processes run here: see run-record.ts. */
  running: join(path, 'running.json'),
  lock: join(path, 'lock'),
  postgresLog: join(path, 'postgres.log'),
  postgrestConfig: join(path, 'postgrest.conf'),
  postgrestLog: join(path, 'postgrest.log'),
})
