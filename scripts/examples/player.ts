// Plays a story over REST against a running server, and records the answers in the identifiers and times of the story.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Example } from '../../src/http/openapi/examples.ts'
import { restRequestOf } from '../support/rest-request.ts'
import type { Normaliser } from './normaliser.ts'

type Input = Record<string, unknown>
// biome-ignore lint/suspicious/noExplicitAny: the story reads from answers what the server is known to put there.
type Body = any

/** How a step departs from what the rest do: another caller, or a body that is not what the input says. */
export type Way = { key?: string; text?: string; type?: string }

export type Stage = {
  apiUrl: string
  key: string
  normaliser: Normaliser
  database: pg.ClientBase
  organisationId: string
}

export type Player = {
  recorded: Example[]
  /** Some days later: every event draws nearer, or lies behind. */
  chapter(now: string): Promise<void>
  /** The deadline of an order comes, and the courier looks. */
  expireOrder(id: string): Promise<void>
  /** Waits until a list is no longer empty: older transactions, also of other organisations, have to end first. */
  untilListed(list: string): Promise<void>
  /** A step that others need and nobody has to read. @returns the body of the answer. */
  play(operation: string, title: string, input: Input): Promise<Body>
  /** A step that becomes an example. */
  show(operation: string, title: string, input: Input): Promise<Body>
  /** A step that becomes an example of being refused with this code. */
  refuse(operation: string, code: string, title: string, input: Input, way?: Way): Promise<void>
}

export function createPlayer({ apiUrl, key, normaliser, database, organisationId }: Stage): Player {
  const recorded: Example[] = []
  const steps = new Set<string>()

  async function send(operation: string, title: string, input: Input, way: Way = {}): Promise<Example> {
    const step = `${operation} ${title}`
    // What a step makes is named after it.
    if (steps.has(step)) throw new Error(`the story has two steps of ${operation} with the title ${title}`)
    steps.add(step)
    const { method, path, body, headers } = restRequestOf(operation, normaliser.reveal(input))
    const text = way.text ?? (body && JSON.stringify(body))
    const response = await fetch(`${apiUrl}/api/v1${path}`, {
      method,
      headers: {
        ...headers,
        Authorization: `Bearer ${way.key ?? key}`,
        ...(text !== undefined && { 'Content-Type': way.type ?? 'application/json' }),
      },
      ...(text !== undefined && { body: text }),
    })
    const answer = (await response.json()) as Input
    return { operation, title, input, status: response.status, body: normaliser.tell(answer, step) }
  }

  async function succeed(operation: string, title: string, input: Input): Promise<Example> {
    const example = await send(operation, title, input)
    if (example.status < 400) return example
    throw new Error(`${operation} (${title}) was refused: ${JSON.stringify(example.body)}`)
  }

  return {
    recorded,
    async chapter(now) {
      const before = normaliser.shift()
      normaliser.setNow(now)
      const by = (normaliser.shift() - before) / 1000
      // One statement for each: the entries of the audit trail of one statement have no order.
      const { rows: events } = await database.query(
        'select id from public.events where organisation_id = $1 order by name',
        [organisationId],
      )
      const moved = []
      for (const { id } of events) {
        const { rows } = await database.query<{ starts_at: Date | null; ends_at: Date | null }>(
          `update public.events
           set starts_at = starts_at + make_interval(secs => $2), ends_at = ends_at + make_interval(secs => $2)
           where id = $1 returning starts_at, ends_at`,
          [id, by],
        )
        moved.push(...rows)
      }
      for (const at of moved.flatMap(({ starts_at, ends_at }) => [starts_at, ends_at])) {
        if (at !== null) normaliser.reveal(new Date(at.getTime() - normaliser.shift()).toISOString())
      }
    },
    async expireOrder(id) {
      const real = normaliser.reveal(id)
      await database.query('update public.orders set payment_due_at = now() where id = $1', [real])
      await database.query('select private.expire_orders($1)', [[real]])
    },
    async untilListed(list) {
      const headers = { Authorization: `Bearer ${key}` }
      for (let tries = 0; tries < 100; tries++) {
        const response = await fetch(`${apiUrl}/api/v1${list}`, { headers })
        if (((await response.json()) as Body).data.length > 0) return
        await sleep(100)
      }
      throw new Error(`nothing is listed at ${list} after ten seconds`)
    },
    play: async (operation, title, input) => (await succeed(operation, title, input)).body,
    async show(operation, title, input) {
      const example = await succeed(operation, title, input)
      recorded.push(example)
      return example.body
    },
    async refuse(operation, code, title, input, way) {
      const example = await send(operation, title, input, way)
      const { error } = example.body as { error?: { code: string } }
      if (error?.code !== code) {
        throw new Error(`${operation} (${title}) did not answer ${code}: ${JSON.stringify(example)}`)
      }
      recorded.push(example)
    },
  }
}
