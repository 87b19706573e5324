// The folder of a run of the checks or tests: everything temporary is made in it, and goes with it.

import { accessSync, chmodSync, constants, mkdtempSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

// Of Linux, a file system in memory. A run needs less than a tenth of this.
const memory = '/dev/shm'
const prefix = 'usher-test-'
const enoughBytes = 4 * 1024 ** 3

/** Makes it, in memory where there is room, for there a file takes a tenth of the CPU time; the processes of this one use it. */
export function useTemporaryFolder(): string {
  // Within that of the process that started this one, so that it goes with it.
  const isWithin = basename(tmpdir()).startsWith(prefix)
  const folder = mkdtempSync(join(isRoomy(memory) && !isWithin ? memory : tmpdir(), prefix))
  // Postgres may run as another user.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  return folder
}

function isRoomy(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize >= enoughBytes
  } catch {
    return false
  }
}
