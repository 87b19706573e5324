// What `usher listen` keeps of a key at an Usher: the signing secret, and how far the log has been forwarded. The file is replaced as a whole,
// so a Ctrl-C leaves the one before.

import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { prefixOf } from '../../gateway/api-key.ts'
import { CommandError } from '../command-error.ts'

/** `after` is the last notification that was forwarded or left out; `since` its time, or that of the first start. */
export type State = { secret: string; after?: string; since?: string }

/** @throws CommandError 1 */
export function openState({ url, key }: { url: string; key: string }, { XDG_STATE_HOME }: NodeJS.ProcessEnv) {
  const ofUrl = createHash('sha256').update(url).digest('hex').slice(0, 8)
  const folder = XDG_STATE_HOME || join(homedir(), '.local', 'state')
  const file = join(folder, 'usher', `${prefixOf(key)}.${ofUrl}.json`)
  // Of this process: two of one key replace the same file.
  const next = `${file}.${process.pid}`
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const newState = () => ({ secret: `whsec_${randomBytes(32).toString('base64')}` })
    const state: State = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : newState()
    if (typeof state?.secret !== 'string') throw new Error('it has no signing secret')
    const keep = () => {
      writeFileSync(next, `${JSON.stringify(state)}\n`, { mode: 0o600 })
      renameSync(next, file)
    }
    keep()
    return { file, state, keep }
  } catch (error) {
    const { message } = error as Error
    throw new CommandError(1, `${file} cannot be used: ${message}. Remove it, or set XDG_STATE_HOME to another folder.`)
  }
}
