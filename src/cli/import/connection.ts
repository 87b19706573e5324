// Where Usher is, and a key for it: told by whoever has only an address and a key, found by whoever works where Usher runs.

import { prefixOf } from '../../gateway/api-key.ts'
import { urlOf } from '../../http/listener.ts'
import { findOrganisationOfEvent, issueKey, revokeKey, withDatabase } from '../../local/admin.ts'
import { CommandError } from '../command-error.ts'
import { findRunning, type Terminal } from '../commands/terminal.ts'
import { type Config, readConfig } from '../config.ts'
import { baseOf, readKey, warnOfPlainHttp } from '../given.ts'

export type Connection = {
  url: string
  key: string
  /** Ends what was made for this command alone. */
  close(): Promise<void>
}

type Asked = { url?: string; keyFile?: string; organisation?: string; event: string }

// Longer than any import takes, for a command that is killed takes its key back no more.
const keyLastsMs = 6 * 60 * 60 * 1000

/** @throws CommandError 2: what it lacks, and how to give it */
export async function connect(
  asked: Asked,
  { environment, stdin, say }: Pick<Terminal, 'environment' | 'stdin' | 'say'>,
): Promise<Connection> {
  const told = asked.url ?? (environment.USHER_URL || undefined)
  const key = await readKey(asked.keyFile, environment, stdin)
  const { url, database } =
    told === undefined ? await findHere(readConfig(environment)) : { url: baseOf(told), database: undefined }
  warnOfPlainHttp(url, say)
  if (key !== undefined) return { url, key, close: async () => {} }
  if (database !== undefined) return withKeyOfItsOwn(url, database, asked)
  throw new CommandError(
    2,
    `A key is needed for ${url}: set USHER_KEY, or give a file that holds it with --key-file (- reads standard input). It needs events:read and attendees:write.`,
  )
}

/** The Usher that runs on this machine, or that is configured, and its database where that can be reached. */
async function findHere(config: Config): Promise<{ url: string; database: string | undefined }> {
  const running = await findRunning(config)
  const api = running?.record.api
  const url = api ? urlOf(api) : config.publicUrl
  if (url !== undefined) return { url, database: config.databaseUrl ?? running?.databaseUrl }
  const where = 'give its address: --url https://usher.example.com, or USHER_URL.'
  throw new CommandError(
    2,
    config.database.kind === 'supabase'
      ? `Which Usher? Set PUBLIC_URL, or ${where}`
      : `No Usher runs on ${config.database.dataDir}. Start it with npm start, or ${where}`,
  )
}

/** Whoever may make keys needs none: one is made for this import, with what it needs, and revoked after it. */
async function withKeyOfItsOwn(url: string, database: string, asked: Asked): Promise<Connection> {
  const key = await withDatabase(database, async (client) =>
    issueKey(client, {
      organisation: asked.organisation ?? (await findOrganisationOfEvent(client, asked.event)),
      name: 'usher import',
      scopes: ['events:read', 'attendees:read', 'attendees:write'],
      expiresAt: new Date(Date.now() + keyLastsMs),
    }),
  )
  return {
    url,
    key,
    close: async () => void (await withDatabase(database, (client) => revokeKey(client, prefixOf(key)))),
  }
}
