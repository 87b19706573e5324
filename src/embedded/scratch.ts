// A temporary database, bootstrapped like the real one but without PostgREST and without flushing to disk: for checks that need a cluster
// of their own, since roles belong to a cluster and not to a database.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPostgres } from './binaries.ts'
import { openDataDirectory } from './data-directory.ts'
import { databaseUrlFor } from './database.ts'
import { startDatabase } from './database-server.ts'
import { createSecrets, type Secrets } from './secrets.ts'

export type ScratchDatabase = {
  /** Connects as the role `postgres`. */
  databaseUrl: string
  /** Stops it and deletes its files. */
  remove: () => Promise<void>
}

type Pristine = { path: string; secrets: Secrets }

// What no migration has touched yet: made once in a process, and copied, which takes a fifth of the time.
let pristine: Promise<Pristine> | undefined

async function makePristine(signal: AbortSignal): Promise<Pristine> {
  const { path } = openDataDirectory(mkdtempSync(join(tmpdir(), 'usher-pristine-')))
  process.once('exit', () => rmSync(path, { recursive: true, force: true }))
  const secrets = createSecrets()
  await (await startOn(path, secrets, signal)).stop()
  return { path, secrets }
}

const startOn = async (path: string, secrets: Secrets, signal: AbortSignal) =>
  startDatabase({
    directory: openDataDirectory(path),
    binaries: await findPostgres(),
    secrets,
    durable: false,
    progress: () => {},
    signal,
  })

export async function startScratchDatabase(signal: AbortSignal): Promise<ScratchDatabase> {
  const path = mkdtempSync(join(tmpdir(), 'usher-scratch-'))
  const deleteFiles = () => rmSync(path, { recursive: true, force: true })
  try {
    pristine ??= makePristine(signal)
    const { path: original, secrets } = await pristine.catch((error: unknown) => {
      pristine = undefined
      throw error
    })
    await promisify(execFile)('cp', ['-a', `${original}/.`, path])
    // Each finds a port of its own.
    rmSync(join(path, 'postgres.port'))
    const server = await startOn(path, secrets, signal)
    return {
      databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, server.port),
      remove: async () => {
        await server.stop()
        deleteFiles()
      },
    }
  } catch (error) {
    deleteFiles()
    throw error
  }
}
