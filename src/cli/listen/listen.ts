// `usher listen`: reads the log of notifications and forwards each one to a receiver, signed, in the order of the log. One that is not accepted
// is sent again until it is, and later ones wait: nothing is skipped.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient, Refusal } from '../client.ts'
import { CommandError, Failed } from '../command-error.ts'
import { type Given, givenConnection, type Surroundings } from '../given.ts'
import { forward } from './forward.ts'
import { openState, type State } from './state.ts'

export type ListenOptions = Given & {
  forwardTo?: string
  types?: string[]
  replay?: string
  fromNow?: true
  printSecret?: true
}

type Notification = { id: string; type: string; created_at: string; data: unknown }
type Page = { data: Notification[]; has_more: boolean }
type Key = { data: { prefix: string; organisation: { name: string } } }

const pollMs = 2_000
const longestWaitSeconds = 30
// The time in an id is that of its row, and created_at that of its transaction.
const longestTransactionMs = 60_000

/** Ctrl-C ends it at once: notifications that are not in its file by then are forwarded next time. @throws CommandError */
export async function listen(options: ListenOptions, around: Surroundings): Promise<void> {
  const { forwardTo, types, replay, fromNow, printSecret } = options
  const { print, say } = around
  const connection = await givenConnection(options, around)
  const { file, state, keep } = openState(connection, around.environment)
  if (printSecret) return print(state.secret)
  const receiver = receiverOf(forwardTo)
  const client = createClient(connection, say, new AbortController().signal, Number.POSITIVE_INFINITY)
  const { prefix, organisation } = (await client.call<Key>('GET', '/me')).data
  const livemode = !prefix.startsWith('usher_test_')

  /** @returns whether it was accepted */
  const send = async ({ id, type, created_at, data }: Notification): Promise<boolean> => {
    const startedAt = performance.now()
    const webhook = { secrets: [state.secret], webhook_id: id, type, timestamp: created_at, livemode, data }
    const answer = await forward(receiver, webhook)
    print([new Date().toISOString(), type, id, answer, `${Math.round(performance.now() - startedAt)} ms`].join('  '))
    return typeof answer === 'number' && answer >= 200 && answer <= 299
  }
  if (replay !== undefined) {
    if (!(await send(await find(client, replay)))) throw new Failed()
    return
  }

  if (fromNow || state.since === undefined) {
    Object.assign(state, { after: undefined, since: client.serverTime().toISOString() })
    // That clock is exact to a second: what has happened within it is past.
    state.after = (await readOn(client, state, say)).data.at(-1)?.id
    keep()
  }
  say(`Signing secret: ${state.secret} (kept in ${file})`)
  say(
    `Forwarding the notifications of ${organisation.name} to ${receiver.origin}${receiver.pathname} from ${state.since} on. Ctrl-C stops it.`,
  )
  for (;;) {
    const { data, has_more } = await readOn(client, state, say)
    for (const notification of data) {
      const isChosen = types === undefined || types.includes(notification.type)
      for (let failed = 0; isChosen && !(await send(notification)); failed++) {
        const pause = Math.min(2 ** failed, longestWaitSeconds)
        say(`Not accepted. Sending it again in ${pause} s …`)
        await sleep(pause * 1_000)
      }
      Object.assign(state, { after: notification.id, since: notification.created_at })
      keep()
    }
    if (!has_more) await sleep(pollMs)
  }
}

function receiverOf(url = ''): URL {
  if (URL.canParse(url) && /^https?:/i.test(url)) return new URL(url)
  throw new CommandError(2, 'Give the address of your receiver, such as --forward-to http://localhost:4242/hooks.')
}

const read = (client: Client, position: Record<string, string>): Promise<Page> =>
  client.call('GET', `/notifications?${new URLSearchParams({ limit: '100', ...position })}`)
const since = (time: string) => ({ created_after: time })

/** The next page; from the time of the last one if the log no longer has it. */
async function readOn(client: Client, state: State, say: (text: string) => void): Promise<Page> {
  const fromItsTime = () => read(client, since(String(state.since)))
  if (state.after === undefined) return fromItsTime()
  return read(client, { after: state.after }).catch((error: unknown) => {
    if (!(error instanceof Refusal) || error.code !== 'not_found') throw error
    say(`The log no longer has ${state.after}: going on from ${state.since}.`)
    state.after = undefined
    return fromItsTime()
  })
}

/** The notification with this id, whose first digits are its time. @throws CommandError 1 */
async function find(client: Client, id: string): Promise<Notification> {
  const time = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
  let position = since(new Date((time || Date.now()) - longestTransactionMs).toISOString()) as Record<string, string>
  for (;;) {
    const { data, has_more } = await read(client, position)
    const found = data.find((each) => each.id === id)
    if (found !== undefined) return found
    if (!has_more) throw new CommandError(1, `The log has no notification ${id}. It keeps them for 30 days.`)
    position = { after: data.at(-1)?.id ?? '' }
  }
}
