// A data directory as a first start leaves it, without a demo. The first start was made once for the whole run: a copy spares a
// test 2.5 s of CPU time.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { findDataDirectory } from '../../src/local/data-directory.ts'
import { type RunRecord, readRunRecord } from '../../src/local/run-record.ts'

/** @returns its path, which whoever asked removes. */
export const makeDataDirectory = async (): Promise<string> =>
  copyDataDirectory(await mkdtemp(join(tmpdir(), 'usher-test-')))

/** @param dataDir made if it is not there */
export async function copyDataDirectory(dataDir: string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await promisify(execFile)('cp', ['-a', `${inject('templateDataDirectory')}/.`, dataDir])
  return dataDir
}

/** What is recorded of it, whether that runs or not. */
export function recordOf(dataDir: string): RunRecord {
  const directory = findDataDirectory(dataDir)
  const record = directory === null ? null : readRunRecord(directory)
  if (record === null) throw new Error(`nothing is recorded to run on ${dataDir}`)
  return record
}
