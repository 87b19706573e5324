// A temporary database, bootstrapped like the real one but without PostgREST and without flushing to disk: for checks that need a cluster
// of their own, since roles belong to a cluster and not to a database.

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPostgres } from '../../src/local/binaries.ts'
import { databaseUrlFor, withClient } from '../../src/local/client.ts'
import { superuser } from '../../src/local/cluster.ts'
import { openDataDirectory } from '../../src/local/data-directory.ts'
import { startDatabase } from '../../src/local/database-server.ts'
import { loadOrCreateSecrets, type Secrets } from '../../src/local/secrets.ts'

export type ScratchDatabase = {
  /** Connects as the role `postgres`. */
  databaseUrl: string
  /** Stops it and keeps its files. */
  stop: () => Promise<unknown>
  /** Stops it and deletes its files. */
  remove: () => Promise<void>
}

/** Names a data directory that `sharePristine` has made: processes that are given it copy it, and each spares an initdb. */
export const pristineVariable = 'USHER_PRISTINE_DATABASE'

// Made once in a process, and copied, which takes a fifth of the time.
let pristine: Promise<string> | undefined

async function makeOwnPristine(signal: AbortSignal): Promise<string> {
  const path = mkdtempSync(join(tmpdir(), 'usher-pristine-'))
  process.once('exit', () => rmSync(path, { recursive: true, force: true }))
  await makePristine(path, signal)
  return path
}

/** Makes one in a folder, for this process and those that it starts. */
export async function sharePristine(folder: string, signal: AbortSignal): Promise<void> {
  const path = join(folder, 'pristine')
  mkdirSync(path)
  await makePristine(path, signal)
  process.env[pristineVariable] = path
}

/** Makes a data directory whose database is bootstrapped, without a migration and with as few files as possible. */
async function makePristine(path: string, signal: AbortSignal): Promise<void> {
  const { secrets, server } = await startOn(path, signal)
  try {
    await withClient(databaseUrlFor(superuser, secrets.superuserPassword, server.port), async (client) => {
      // A third of the files, which nothing needs: databases are made from template1.
      await client.query("update pg_database set datistemplate = false where datname = 'template0'")
      await client.query('drop database template0')
    })
  } finally {
    await server.stop()
  }
  const { port, postgresLog } = openDataDirectory(path)
  // Each copy finds a port of its own.
  for (const file of [port, postgresLog]) rmSync(file)
}

async function startOn(path: string, signal: AbortSignal) {
  const directory = openDataDirectory(path)
  const secrets: Secrets = loadOrCreateSecrets(directory)
  const binaries = await findPostgres()
  const server = await startDatabase({ directory, binaries, secrets, durable: false, progress: () => {}, signal })
  return { secrets, server }
}

/** @param path an empty folder. Default: one in the system's temporary folder. */
export async function startScratchDatabase(
  signal: AbortSignal,
  path = mkdtempSync(join(tmpdir(), 'usher-scratch-')),
): Promise<ScratchDatabase> {
  const deleteFiles = () => rmSync(path, { recursive: true, force: true })
  try {
    const original = process.env[pristineVariable] ?? (await ownPristine(signal))
    await promisify(execFile)('cp', ['-a', `${original}/.`, path])
    const { secrets, server } = await startOn(path, signal)
    return {
      databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, server.port),
      stop: server.stop,
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

function ownPristine(signal: AbortSignal): Promise<string> {
  pristine ??= makeOwnPristine(signal).catch((error: unknown) => {
    pristine = undefined
    throw error
  })
  return pristine
}
