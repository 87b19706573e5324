// What runs on a data directory, written as each process starts: read by the command line while a server runs, and by the
// next start to find what a killed Usher left behind. A record may outlive its processes; check each with isRunning.

import { readFileSync, rmSync } from 'node:fs'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'
import type { ProcessIdentity } from './processes.ts'

export type RunRecord = {
  usher: ProcessIdentity
  postgres?: ProcessIdentity & { port: number }
  postgrest?: ProcessIdentity
  dataApiUrl?: string
  /** True once the database is bootstrapped and migrated, and PostgREST answers. */
  ready: boolean
}

export function readRunRecord(directory: DataDirectory): RunRecord | null {
  try {
    return JSON.parse(readFileSync(directory.running, 'utf8')) as RunRecord
  } catch {
    return null
  }
}

export function writeRunRecord(directory: DataDirectory, record: RunRecord): void {
  writeFileAtomically(directory.running, `${JSON.stringify(record, null, 2)}\n`)
}

export function removeRunRecord(directory: DataDirectory): void {
  rmSync(directory.running, { force: true })
}
