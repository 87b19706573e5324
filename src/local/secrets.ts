// The passwords and the token secret of a data directory: created once, kept in a file that only its owner may read. They must never
// appear in a log, a progress message or an error.

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { StartError } from '../process/start-error.ts'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'

export type Secrets = {
  /** Of `supabase_admin`, the superuser, which is used for bootstrapping only. */
  superuserPassword: string
  postgresPassword: string
  authenticatorPassword: string
  /** Signs and verifies tokens, HS256. */
  jwtSecret: string
}

export function loadOrCreateSecrets(directory: DataDirectory): Secrets {
  const existing = readSecrets(directory)
  if (existing?.jwtSecret) return existing
  if (existing === null && existsSync(directory.database)) {
    throw new StartError(
      `${directory.secrets} is missing. The database beside it cannot be opened without it. ` +
        'Restore the file, or set USHER_DATA_DIR to a new folder to start afresh.',
    )
  }
  const secrets = {
    superuserPassword: randomSecret(),
    postgresPassword: randomSecret(),
    authenticatorPassword: randomSecret(),
    // Whoever had the file removes the secret of tokens from it. The passwords are those of the database, and stay.
    ...existing,
    jwtSecret: randomSecret(),
  }
  writeFileAtomically(directory.secrets, `${JSON.stringify(secrets, null, 2)}\n`)
  return secrets
}

/** Null if there are none yet. */
export function readSecrets(directory: DataDirectory): Secrets | null {
  if (!existsSync(directory.secrets)) return null
  try {
    return JSON.parse(readFileSync(directory.secrets, 'utf8')) as Secrets
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not valid JSON' : `cannot be read (${(error as Error).message})`
    throw new StartError(`${directory.secrets} ${reason}. Restore it from a backup.`)
  }
}

/** 256 bits in an alphabet that needs no escaping in a URL, in SQL or in an environment variable. */
const randomSecret = (): string => randomBytes(32).toString('base64url')
