// The address and the key that a command is given, for those that speak HTTP alone.

import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { isWellFormedKey } from '../gateway/api-key.ts'
import { hostOf, isLoopback } from '../process/loopback.ts'
import { CommandError } from './command-error.ts'
import type { Terminal } from './commands/terminal.ts'

export type Given = { url?: string; keyFile?: string }
export type Surroundings = Pick<Terminal, 'environment' | 'stdin' | 'print' | 'say'>

/** @throws CommandError 2: what is missing or wrong */
export async function givenConnection({ url, keyFile }: Given, { environment, stdin, say }: Surroundings) {
  const address = url ?? environment.USHER_URL
  if (!address) throw new CommandError(2, 'Which Usher? Give its address with --url, or set USHER_URL.')
  const base = baseOf(address)
  const key = await readKey(keyFile, environment, stdin)
  if (key === undefined)
    throw new CommandError(2, `A key is needed for ${base}: set USHER_KEY, or name a file with --key-file.`)
  warnOfPlainHttp(base, say)
  return { url: base, key }
}

export function warnOfPlainHttp(url: string, say: (text: string) => void): void {
  if (url.startsWith('https:') || isLoopback(hostOf(url))) return
  say(`Warning: ${url} is not encrypted, so others on the network can read the key and the data. Use https.`)
}

export function baseOf(url: string): string {
  // URL.parse is newer than Node 20.
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.search !== '' || parsed.hash !== '') {
    throw new CommandError(2, `${url} is not the address of an Usher, such as https://usher.example.com.`)
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new CommandError(2, 'The address of Usher holds no user name or password: give the key by USHER_KEY.')
  }
  return parsed.href.replace(/\/+$/, '').replace(/\/api\/v1$/, '')
}

export async function readKey(
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
