// Names a data directory by what a move, a restart, an upgrade and another mount of its file system keep, and a copy lacks: the inode
// numbers of files that Postgres never replaces, and when the folder was made. Either is enough. Neither its path nor its device counts:
// containers and reboots change them.

import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { findDataDirectory } from './data-directory.ts'

/** None: the database does not exist. */
export function namesOfDataDirectory(dataDir: string): string[] {
  const database = findDataDirectory(dataDir)?.database
  if (database === undefined) return []
  const stat = (...path: string[]) => lstatSync(join(database, ...path), { bigint: true, throwIfNoEntry: false })
  const files = [stat(), stat('PG_VERSION'), stat('global', 'pg_control')]
  const [folder] = files
  if (folder === undefined) return []
  // Three of them: on a new volume a copy may be given the same number, but hardly all of them.
  const names = [`inodes:${files.map((file) => file?.ino ?? 0).join(':')}`]
  // Where the file system does not record it, Node answers 0 or the time of the last change.
  if (folder.birthtimeNs > 0n && folder.birthtimeNs !== folder.ctimeNs) names.push(`made:${folder.birthtimeNs}`)
  return names
}
