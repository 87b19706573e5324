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
  if (existing !== null) return existing.jwtSecret ? existing : renewJwtSecret(directory, existing)
  if (existsSync(directory.database)) {
    throw new StartError(
      `${directory.secrets} is missing, and without it the database beside it cannot be opened. ` +
        'Restore the file, or set USHER_DATA_DIR to a new folder to start afresh.',
    )
  }
  const created = createSecrets()
  writeFileAtomically(directory.secrets, `${JSON.stringify(created, null, 2)}\n`)
  return created
}

/** Whoever had the file removes the secret of tokens from it. The passwords are those of the database, and stay. */
function renewJwtSecret(directory: DataDirectory, existing: Secrets): Secrets {
  const renewed = { ...existing, jwtSecret: randomSecret() }
  writeFileAtomically(directory.secrets, `${JSON.stringify(renewed, null, 2)}\n`)
  return renewed
}

/** Null if there are none yet. */
export function readSecrets(directory: DataDirectory): Secrets | null {
  let text: string
  try {
    text = readFileSync(directory.secrets, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new StartError(`${directory.secrets} cannot be read (${(error as Error).message}).`)
  }
  try {
    return JSON.parse(text) as Secrets
  } catch {
    throw new StartError(`${directory.secrets} is not valid JSON. Restore it from a backup.`)
  }
}

function createSecrets(): Secrets {
  return {
    superuserPassword: randomSecret(),
    postgresPassword: randomSecret(),
    authenticatorPassword: randomSecret(),
    jwtSecret: randomSecret(),
  }
}

// 256 bits in an alphabet that needs no escaping in a URL, in SQL or in an environment variable.
function randomSecret(): string {
  return randomBytes(32).toString('base64url')
}
