// One round: clients at work while parts are killed, stopped and cut off; then calm, and everything is held against the history.

import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createOrganisation, issueKey } from '../../src/database/admin.ts'
import { scopes } from '../../src/operations/operation.ts'
import { startWebhookReceiver, status } from '../support/webhook-receiver.ts'
import { type Crowd, createCrowd, type Hall } from './clients.ts'
import { checkHistory, type Problem } from './history.ts'
import { cuts } from './proxy.ts'
import { createRandom, type Random } from './random.ts'
import { type ProveStack, startProveStack } from './stack.ts'
import { readState } from './state.ts'

export type Round = {
  seed: number
  seconds: number
  /** How many seconds lie between two faults, on the average. */
  pause: number
  clients?: number
  /** Breaks the database before the clients come: a superuser's statements. */
  mutate?: (database: pg.Client) => Promise<void>
  historyFile?: string
  say?: (line: string) => void
}

export type Report = {
  problems: Problem[]
  calls: number
  outcomes: Record<string, number>
  faults: string[]
  notifications: number
  tally: Map<string, number>
}

/** @param dataDir a data directory whose database is migrated; everything in it may be changed. */
export async function prove(dataDir: string, round: Round): Promise<Report> {
  const { seed, seconds, pause, clients = 6, mutate, historyFile, say = () => {} } = round
  const stack = await startProveStack(dataDir)
  const receiver = await startWebhookReceiver()
  try {
    await stack.settled()
    const received = new Set<string>()
    let isCalm = false
    const receiving = createRandom(seed + 1)
    receiver.answerWith((response, webhook) => {
      if (!isCalm && receiving.next() < 0.1) return status(500)(response, webhook)
      received.add(String(webhook.headers['webhook-id']))
      status(204)(response, webhook)
    })

    const { hall, keys, stranger } = await openHall(stack, clients, receiver.url)
    if (mutate) await withClient(stack.superuserUrl, mutate)

    const crowd = createCrowd(hall, stack.apiUrls, keys, `k${seed}`)
    const until = Date.now() + seconds * 1000
    const isOver = () => Date.now() > until
    const faults = wreak(stack, createRandom(seed), pause, isOver, say)
    await Promise.all([
      ...keys.map((_, i) => crowd.work(i, createRandom(seed + 100 + i), isOver)),
      crowd.edit(createRandom(seed + 50), () => connected(stack.databaseUrl), isOver),
      crowd.spy(stranger, createRandom(seed + 51), isOver),
      faults,
    ])

    isCalm = true
    await stack.settled()
    const database = await connected(stack.databaseUrl)
    try {
      const problems = await comeToRest(database)
      const state = await readState(database, {
        prefix: `k${seed}`,
        keys: [...new Set(crowd.history.map(({ key }) => key))],
        received,
        mailFolder: stack.mailFolder,
      })
      if (historyFile) {
        appendFileSync(historyFile, crowd.history.map((attempt) => `${JSON.stringify(attempt)}\n`).join(''))
      }
      problems.push(...checkHistory(crowd.history, state))
      for (const path of new Set(crowd.leaks))
        problems.push({ rule: 'invariant', about: 'another organisation reads', detail: path })
      return reportOf(crowd, problems, await faults, received.size, state.effects.length)
    } finally {
      await database.end()
    }
  } finally {
    await stack.stop()
    await receiver.close()
  }
}

function reportOf(crowd: Crowd, problems: Problem[], faults: string[], notifications: number, effects: number): Report {
  const outcomes: Record<string, number> = { effects }
  for (const { outcome } of crowd.history) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  return { problems, calls: crowd.history.length, outcomes, faults, notifications, tally: crowd.tally }
}

export async function connected(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  // Of a connection that is killed while nothing runs on it.
  client.on('error', () => {})
  await client.connect()
  return client
}

export async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connected(connectionString)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** An event with few places, a key for each client, an endpoint for every type, and a stranger. */
export async function openHall(
  stack: ProveStack,
  clients: number,
  receiverUrl: string,
): Promise<{ hall: Hall; keys: string[]; stranger: string }> {
  const database = await connected(stack.databaseUrl)
  try {
    const one = async (sql: string, values: unknown[] = []) =>
      (await database.query<{ id: string }>(sql, values)).rows[0]?.id ?? ''
    const organisation = await createOrganisation(database, { name: 'Prove', slug: 'prove', plan: 'enterprise' })
    await createOrganisation(database, { name: 'Stranger', slug: 'stranger', plan: 'enterprise' })
    const key = (slug: string) =>
      issueKey(database, { organisation: slug, name: 'prove', scopes, confirmations: 'none' })
    const eventId = await one(
      `insert into public.events (organisation_id, name, slug, starts_at, ends_at, capacity)
       values ($1, 'Prove', 'prove', now() + interval '1 day', now() + interval '2 days', 20) returning id`,
      [organisation.id],
    )
    const type = (name: string, price: number, quantity: number | null) =>
      one('insert into public.ticket_types (event_id, name, price, quantity) values ($1, $2, $3, $4) returning id', [
        eventId,
        name,
        price,
        quantity,
      ])
    const ticketTypeIds: Hall['ticketTypeIds'] = [
      await type('few', 0, 4),
      await type('priced', 999, 20),
      await type('many', 0, null),
    ]
    await one(
      "insert into public.promo_codes (event_id, code, percent_off, max_redemptions) values ($1, 'FEW', 33, 7)",
      [eventId],
    )
    const pointId = await one(
      "insert into public.check_in_points (event_id, name, admission) values ($1, 'Gate', 're_entry') returning id",
      [eventId],
    )
    await database.query(
      `insert into public.webhook_endpoints (organisation_id, url, types)
       values ($1, $2, array_remove(enum_range(null::public.notification_type), 'webhook_endpoint.test'))`,
      [organisation.id, `${receiverUrl}/hooks`],
    )
    await database.query("update public.events set status = 'published' where id = $1", [eventId])
    const keys: string[] = []
    for (let i = 0; i < clients; i++) keys.push(await key('prove'))
    return { hall: { eventId, ticketTypeIds, pointId }, keys, stranger: await key('stranger') }
  } finally {
    await database.end()
  }
}

/** Faults, one after the other, until it is over. @returns what was done. */
async function wreak(
  stack: ProveStack,
  random: Random,
  pause: number,
  isOver: () => boolean,
  say: (line: string) => void,
): Promise<string[]> {
  const done: string[] = []
  const lasting: Promise<void>[] = []
  const names = Object.keys(stack.proxies)
  while (!isOver()) {
    await sleep(random.between(pause * 500, pause * 1500))
    if (isOver()) break
    const milliseconds = random.between(100, 1500)
    const kind = random.below(10)
    let what: string
    if (kind < 5) {
      const [name, how] = [random.pick(names) ?? '', random.pick(cuts) ?? 'drop']
      what = `${how} ${name} ${milliseconds} ms`
      lasting.push(stack.proxies[name]?.cut(how, milliseconds) ?? Promise.resolve())
    } else if (kind < 6) {
      what = `SIGKILL a backend${stack.killBackend(random.below(100)) ? '' : ', of which there was none'}`
    } else {
      const part = random.pick(stack.parts) ?? ''
      const signal = kind < 8 ? 'SIGSTOP' : 'SIGKILL'
      what = `${signal} ${part}${signal === 'SIGSTOP' ? ` ${milliseconds} ms` : ''}`
      if (!stack.signal(part, signal)) what += ', which did not run'
      if (signal === 'SIGSTOP') lasting.push(sleep(milliseconds).then(() => void stack.signal(part, 'SIGCONT')))
    }
    done.push(what)
    say(what)
  }
  await Promise.all(lasting)
  // What was stopped, then killed and started again in between, was not woken; nor does it need to be.
  for (const part of stack.parts) stack.signal(part, 'SIGCONT')
  return done
}

/** Until no call is under way, and everything that is to be sent was: what would be tried again in minutes is due now. */
export async function comeToRest(database: pg.Client): Promise<Problem[]> {
  const deadline = Date.now() + 240_000
  const pendingSql = `select
    (select count(*)::int from pg_stat_activity where state <> 'idle' and usename = 'authenticator') as calls,
    (select count(*)::int from private.notification_queue) as queued,
    (select count(*)::int from public.webhook_deliveries where status = 'pending') as webhooks,
    (select count(*)::int from public.emails where status = 'queued') as emails`
  // Of those who died: nobody else takes what they have claimed until then.
  await database.query("update public.emails set next_attempt_at = now(), claimed_until = null where status = 'queued'")
  await database.query(
    "update public.webhook_deliveries set next_attempt_at = now(), claimed_until = null where status = 'pending'",
  )
  let quiet = 0
  for (;;) {
    const { rows } = await database.query<Record<string, number>>(pendingSql)
    const pending = rows[0] ?? {}
    const { calls = 0, ...rest } = pending
    // The courier polls: its own calls come and go.
    quiet = Object.values(rest).every((n) => n === 0) && calls <= 1 ? quiet + 1 : 0
    if (quiet > 3) return []
    if (Date.now() > deadline)
      return [{ rule: 'webhook lost', about: 'what is pending', detail: JSON.stringify(pending) }]
    await database.query(
      "update public.webhook_deliveries set next_attempt_at = now() where status = 'pending' and claim is null and next_attempt_at > now()",
    )
    await database.query(
      "update public.emails set next_attempt_at = now() where status = 'queued' and claim is null and next_attempt_at > now()",
    )
    await sleep(150)
  }
}
