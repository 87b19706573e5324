// Reading the log over REST as an integrator does: on from the last seen, page by page, again and again.

import { setTimeout as sleep } from 'node:timers/promises'
import type * as z from 'zod'
import type { NotificationSchema } from '../../src/operations/notifications.ts'
import type { rest } from './rest.ts'

export type Notification = z.infer<typeof NotificationSchema>
type Send = ReturnType<typeof rest>

/** All pages that there are now. */
export async function readOn(send: Send, query: Record<string, string> = {}): Promise<Notification[]> {
  const seen: Notification[] = []
  for (let cursor: string | null = null; ; ) {
    const { body } = await send('GET', `/notifications?${new URLSearchParams({ ...query, ...(cursor && { cursor }) })}`)
    seen.push(...body.data)
    cursor = body.next_cursor
    if (cursor === null) return seen
  }
}

/** Reads on until it saw enough. A notification shows once no older transaction is open, and other tests have theirs in
 * the same cluster, so it asks again, for two minutes at most. */
export async function readUntil(
  send: Send,
  enough: (seen: Notification[]) => boolean,
  query: Record<string, string> = {},
): Promise<Notification[]> {
  const seen: Notification[] = []
  const deadline = Date.now() + 120_000
  while (Date.now() < deadline) {
    const last = seen.at(-1)
    seen.push(...(await readOn(send, { ...query, ...(last && { after: last.id }) })))
    if (enough(seen)) return seen
    await sleep(50)
  }
  throw new Error(`Not told of within two minutes; seen: ${seen.map(({ type }) => type).join(', ')}`)
}
