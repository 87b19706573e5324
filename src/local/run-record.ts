// Records which processes run on a data directory, as each of them starts, for other commands. A record may outlive its processes: check
// each with isRunning.

import { readFileSync, rmSync } from 'node:fs'
import type { ProcessIdentity } from '../process/processes.ts'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'

export type RunRecord = {
  usher: { pid: number }
  postgres?: ProcessIdentity & { port: number }
  postgrest?: ProcessIdentity & { port?: number; adminPort?: number }
  dataApiUrl?: string
  /** Where the process that started the stack serves the API and its metrics; the address by which others know the API. */
  api?: { host: string; port: number; forThisMachine: boolean; publicUrl?: string }
  metrics?: { host: string; port: number }
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

/** The ports in use that are recorded so far. */
export function portsOf({ api, metrics, postgres, postgrest }: RunRecord): number[] {
  const ports = [api?.port, metrics?.port, postgres?.port, postgrest?.port, postgrest?.adminPort]
  return ports.filter((port) => port !== undefined)
}

export function writeRunRecord(directory: DataDirectory, record: RunRecord): void {
  writeFileAtomically(directory.running, `${JSON.stringify(record, null, 2)}\n`)
}

export function removeRunRecord(directory: DataDirectory): void {
  rmSync(directory.running, { force: true })
}
