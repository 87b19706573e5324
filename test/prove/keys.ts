// Somebody who takes keys and scopes away while they are in use: from the commit on, nothing may be answered to them.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { issueKey, revokeKey } from '../../src/local/admin.ts'
import type { Crowd } from './clients.ts'
import type { Random } from './random.ts'
import type { Send } from './send.ts'

const path = '/attendees?limit=1'
const apis = [0, 1]

/** @returns how many keys lost what they had. */
export async function changeKeys(
  send: Send,
  crowd: Crowd,
  database: () => Promise<pg.Client>,
  random: Random,
  until: () => boolean,
): Promise<number> {
  const isAnswered = async (api: number, key: string) => {
    const answer = await send(api, key, 'GET', path).catch(() => undefined)
    return answer !== undefined && answer.status < 300
  }
  let changed = 0
  let client: pg.Client | undefined
  while (!until()) {
    try {
      client ??= await database()
      const scopes = ['attendees:read', 'events:read'] as const
      const key = await issueKey(client, { organisation: 'prove', name: 'to be lost', scopes, confirmations: 'none' })
      const newest = "select id, prefix from public.api_keys where name = 'to be lost' order by id desc limit 1"
      const { id, prefix } = (await client.query<{ id: string; prefix: string }>(newest)).rows[0] ?? {}
      // Both processes know it now, or are to learn of it later.
      for (const api of apis) await isAnswered(api, key)
      const isRevoked = random.next() < 0.5
      if (isRevoked) await revokeKey(client, prefix ?? '')
      else await client.query("update public.api_keys set scopes = '{events:read}' where id = $1", [id])
      changed += 1
      for (const api of [...apis, ...apis]) {
        const about = isRevoked ? 'a revoked key' : 'a key without the scope'
        if (await isAnswered(api, key)) crowd.trespasses.push({ about, detail: `${path} through API ${api + 1}` })
      }
    } catch {
      // Of a commit without an answer nobody knows.
      await client?.end().catch(() => {})
      client = undefined
    }
    await sleep(random.between(50, 250))
  }
  await client?.end().catch(() => {})
  return changed
}
