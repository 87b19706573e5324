// Where Usher is, and a key for it: told by whoever has only an address and a key, found by whoever works where Usher runs.

import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { isWellFormedKey, prefixOf } from '../../gateway/api-key.ts'
import { urlOf } from '../../http/listener.ts'
import { findOrganisationOfEvent, issueKey, revokeKey, withDatabase } from '../../local/admin.ts'
import { hostOf, isLoopback } from '../../process/loopback.ts'
import { CommandError } from '../command-error.ts'
import { findRunning, type Terminal } from '../commands/terminal.ts'
import { type Config, readConfig } from '../config.ts'

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
  if (url.startsWith('http:') && !isLoopback(hostOf(url))) {
    say(`Warning: ${url} is not encrypted, so others on the network can read the key and the list. Use https.`)
  }
  if (key !== undefined) return { url, key, close: async () => {} }
  if (database !== undefined) return withKeyOfItsOwn(url, database, asked)
  throw new CommandError(
    2,
    `A key is needed for ${url}: set USHER_KEY, or give a file that holds it with --key-file (- reads standard input). It needs events:read and attendees:write.`,
  )
}

function baseOf(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.search !== '' || parsed.hash !== '') {
    throw new CommandError(2, `${url} is not the address of an Usher, such as https://usher.example.com.`)
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new CommandError(2, 'The address of Usher holds no user name or password: give the key by USHER_KEY.')
  }
  return parsed.href.replace(/\/+$/, '').replace(/\/api\/v1$/, '')
}

async function readKey(
  file: string | undefined,
  { USHER_KEY }: NodeJS.ProcessEnv,
  stdin: NodeJS.ReadableStream,
): Promise<string | undefined> {
  const key = (file === undefined ? (USHER_KEY ?? '') : await readSecret(file, stdin)).trim()
  if (key === '' && file === undefined) return undefined
  if (isWellFormedKey(key)) return key
  const where = file === undefined ? 'USHER_KEY' : file === '-' ? 'Standard input' : file
  throw new CommandError(2, `${where} contains no complete API key, such as usher_live_….`)
}

async function readSecret(file: string, stdin: NodeJS.ReadableStream): Promise<string> {
  try {
    return file === '-' ? await text(stdin) : await readFile(file, 'utf8')
  } catch (error) {
    throw new CommandError(2, `The key cannot be read from ${file}. ${(error as Error).message}.`)
  }
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
