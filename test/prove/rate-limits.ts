// When all else is quiet: Redis is killed, stopped and cut off. Calls go on; each API process counts for itself then, and together with the
// other once Redis is back.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createOrganisation, issueKey } from '../../src/local/admin.ts'
import type { Problem } from './history.ts'
import type { Send } from './send.ts'
import type { ProveStack } from './stack.ts'

const perMinute = 10
const apis = 2
const awayMs = 3_000

/** @param superuser connected as one, for the plan. @returns none where there is no Redis. */
export async function checkRateLimits(stack: ProveStack, send: Send, superuser: pg.Client): Promise<Problem[]> {
  const proxy = stack.proxies['API–Redis']
  if (proxy === undefined) return []
  const problems: Problem[] = []
  await superuser.query("insert into public.plans (name, rate_limit_per_minute) values ('limited', $1)", [perMinute])
  await createOrganisation(superuser, { name: 'Limited', slug: 'limited', plan: 'limited' })

  /** How many of a new key's calls, far more than it may make, are let through. */
  async function letThrough(when: string): Promise<number> {
    const key = await issueKey(superuser, { organisation: 'limited', name: when, scopes: ['events:read'] })
    const calls = Array.from({ length: 3 * apis * perMinute }, (_, i) => send(i, key, 'GET', '/events?limit=1'))
    const statuses = (await Promise.allSettled(calls)).map((call) =>
      call.status === 'fulfilled' ? call.value.status : String(call.reason),
    )
    for (const status of new Set(statuses.filter((status) => status !== 200 && status !== 429)))
      problems.push({ rule: 'undocumented answer', about: when, detail: String(status) })
    return statuses.filter((status) => status === 200).length
  }
  const expectAtMost = (most: number, when: string, count: number) => {
    if (count < 1 || count > most)
      problems.push({
        rule: 'trespass',
        about: `a key over its limit, ${when}`,
        detail: `${count} calls, not 1 to ${most}`,
      })
  }
  /** It takes a moment until a process is connected again. */
  async function expectTogether(when: string): Promise<void> {
    const deadline = Date.now() + 30_000
    let count = await letThrough(when)
    while (count > perMinute && Date.now() < deadline) {
      await sleep(500)
      count = await letThrough(when)
    }
    expectAtMost(perMinute, when, count)
  }

  await expectTogether('Redis is there')
  const ways: [how: string, begin: () => Promise<void>][] = [
    ['killed', async () => void stack.signal('Redis', 'SIGKILL')],
    ['stopped', () => sleep(awayMs)],
    ['cut off', () => proxy.cut('refuse', awayMs)],
    ['silent', () => proxy.cut('stall', awayMs)],
  ]
  for (const [how, begin] of ways) {
    if (how === 'stopped') stack.signal('Redis', 'SIGSTOP')
    const isOver = begin()
    expectAtMost(apis * perMinute, `Redis is ${how}`, await letThrough(`Redis is ${how}`))
    await isOver
    stack.signal('Redis', 'SIGCONT')
    await expectTogether(`Redis was ${how}`)
  }
  return problems
}
