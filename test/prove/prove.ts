// One round: clients at work while parts are killed, stopped and cut off; then calm, and everything is held against the history.

import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createOrganisation, issueKey } from '../../src/local/admin.ts'
import { scopes } from '../../src/operations/operation.ts'
import { type MailServer, openMailServer, refuse } from '../courier/mail-server.ts'
import { hang, reset, startWebhookReceiver, status } from '../support/webhook-receiver.ts'
import { type Crowd, createCrowd, type Hall, type Stranger } from './clients.ts'
import { type Aim, wreak } from './faults.ts'
import { actAsGuests } from './guests.ts'
import { checkHistory, type Problem, type State } from './history.ts'
import { changeKeys } from './keys.ts'
import { createRandom } from './random.ts'
import { checkRateLimits } from './rate-limits.ts'
import { createPress, createSend } from './send.ts'
import { type ProveStack, startProveStack } from './stack.ts'
import { type Mailed, readState } from './state.ts'
import { actAsVisitors, openPages } from './visitors.ts'

export type Round = {
  seed: number
  seconds: number
  /** How many seconds lie between two faults, on the average. */
  pause: number
  clients?: number
  /** Breaks the database before the clients come: a superuser's statements. */
  mutate?: ((database: pg.Client) => Promise<void>) | undefined
  /** Where the programs are; those of this repository if it is left out. */
  tree?: string | undefined
  aim?: Aim | undefined
  /** Parts that are killed first. */
  kill?: string[]
  /** Also what takes seconds: a table that is larger than a file may be where the disk is full, and what becomes of rate limits. */
  isWhole?: boolean
  historyFile?: string
  say?: (line: string) => void
}

export type Report = {
  problems: Problem[]
  calls: number
  outcomes: Record<string, number>
  faults: string[]
  notifications: number
  emails: number
  /** E-mails that came more than once. */
  repeated: number
  /** Keys that lost what they had. */
  keys: number
  /** Requests that the network sent twice. */
  copies: number
  tally: Map<string, number>
}

const failures = [status(500), hang, reset, status(302, { Location: '/elsewhere' })]

/** @param dataDir a data directory whose database is migrated; everything in it may be changed. */
export async function prove(dataDir: string, round: Round): Promise<Report> {
  const { seed, seconds, pause, clients = 6, mutate, tree, aim, kill, isWhole, historyFile, say = () => {} } = round
  const random = createRandom(seed + 1)
  let isCalm = false
  const isUnwell = () => !isCalm && random.next() < 0.1
  const mailServer = await openMailServer({
    onRcptTo: (_address, _session, callback) => callback(isUnwell() ? refuse(451, 'Come again') : undefined),
  })
  const receiver = await startWebhookReceiver()
  const stack = await startProveStack(dataDir, { mailPort: mailServer.port, code: tree })
  try {
    await stack.settled()
    const received = new Set<string>()
    receiver.answerWith((response, webhook) => {
      if (isUnwell()) return random.one(failures)(response, webhook)
      received.add(String(webhook.headers['webhook-id']))
      status(204)(response, webhook)
    })

    const { hall, keys, stranger } = await openHall(stack, clients, receiver.url)
    const pages = await withClient(stack.databaseUrl, (client) => openPages(client, hall.eventId))
    await withClient(stack.databaseUrl, letGuestsAct)
    if (isWhole) await withClient(stack.superuserUrl, fill)
    if (mutate) await withClient(stack.superuserUrl, mutate)

    const send = createSend(stack.apiUrls)
    const prefix = `k${seed}`
    const crowd = createCrowd(hall, send, keys, prefix)
    const until = Date.now() + seconds * 1000
    const isOver = () => Date.now() > until
    const database = () => connected(stack.databaseUrl)
    const [faults, changedKeys] = await Promise.all([
      wreak(stack, createRandom(seed), { pause, aim, kill, isOver, now: crowd.now, say }),
      changeKeys(send, crowd, database, createRandom(seed + 52), isOver),
      ...keys.map((_, i) => crowd.work(i, createRandom(seed + 100 + i), isOver)),
      crowd.edit(createRandom(seed + 50), database, isOver),
      crowd.spy(stranger, createRandom(seed + 51), isOver),
      ...[53, 54].map((n) =>
        actAsGuests(crowd, createPress(stack.apiUrls), prefix, createRandom(seed + n), {
          connect: database,
          until: isOver,
        }),
      ),
      ...[55, 56].map((n) =>
        actAsVisitors(crowd, createPress(stack.apiUrls), prefix, createRandom(seed + n), { pages, until: isOver }),
      ),
    ])

    isCalm = true
    await stack.settled()
    // What the dead have claimed, and what is in flight as well, may be claimed again.
    const released = { from: crowd.now(), until: crowd.now() }
    const end = await withClient(stack.databaseUrl, async (client) => {
      const stuck = await comeToRest(client, true)
      const found = await holdAgainst(client, crowd, {
        prefix,
        received,
        mailServer,
        copies: copiesOf(stack, prefix),
        courierCuts: [...faults.filter(({ touchesCourier }) => touchesCourier), released],
      })
      return { ...found, problems: [...stuck, ...found.problems] }
    })
    if (historyFile) {
      appendFileSync(historyFile, crowd.history.map((attempt) => `${JSON.stringify(attempt)}\n`).join(''))
    }
    if (isWhole) {
      end.problems.push(...(await withClient(stack.superuserUrl, (client) => checkRateLimits(stack, send, client))))
    }
    const { mailed, ...held } = end
    return {
      ...held,
      faults: faults.map(({ what }) => what),
      notifications: received.size,
      emails: mailed.size,
      repeated: [...mailed.values()].filter(({ length }) => length > 1).length,
      keys: changedKeys,
      copies: Object.values(stack.proxies).reduce((sum, { copies }) => sum + copies.length, 0),
    }
  } finally {
    await stack.stop()
    await receiver.close()
    await mailServer.close()
  }
}

type Seen = Pick<State, 'copies' | 'courierCuts'> & { prefix: string; received: Set<string>; mailServer: MailServer }

/** What was answered, against what is there and what was received in the end. */
export async function holdAgainst(
  database: pg.Client,
  { history, trespasses, tally, now }: Crowd,
  { prefix, received, mailServer, copies, courierCuts }: Seen,
) {
  const mailed: Mailed = new Map()
  for (const { messageId = '', envelope, at } of mailServer.received) {
    const id = /^<([^@]+)@/.exec(messageId)?.[1] ?? messageId
    mailed.set(id, [...(mailed.get(id) ?? []), { at: now() - (Date.now() - at), to: envelope.to }])
  }
  const keys = [...new Set(history.map(({ key }) => key))]
  const state = await readState(database, { prefix, keys, received, mailed })
  const problems = checkHistory(history, { ...state, copies, courierCuts, trespasses })
  const outcomes: Record<string, number> = {}
  for (const { outcome } of history) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  return { problems, calls: history.length, outcomes, tally, mailed }
}

/** Of each key how often its request was sent once more than it came: found by its idempotency key, or without one by its metadata. */
function copiesOf({ proxies }: ProveStack, prefix: string): Record<string, number> {
  const copies: Record<string, number> = {}
  const sent = new RegExp(`"prove":"(?<traced>[^"]+)"|${prefix} \\d+ (?<keyed>[^"\\r\\n]+) \\d+`, 'g')
  for (const request of Object.values(proxies).flatMap((proxy) => proxy.copies)) {
    for (const { groups } of request.matchAll(sent)) {
      const key = groups?.keyed ?? groups?.traced ?? ''
      copies[key] = (copies[key] ?? 0) + 1
    }
  }
  return copies
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

/** An event with few places, a key for each client, an endpoint for every type, and a stranger: a test organisation. */
export async function openHall(
  stack: ProveStack,
  clients: number,
  receiverUrl: string,
): Promise<{ hall: Hall; keys: string[]; stranger: Stranger }> {
  const database = await connected(stack.databaseUrl)
  try {
    const one = async (sql: string, values: unknown[] = []) =>
      (await database.query<{ id: string }>(sql, values)).rows[0]?.id ?? ''
    const organisation = await createOrganisation(database, { name: 'Prove', slug: 'prove', plan: 'enterprise' })
    const other = { name: 'Stranger', slug: 'stranger', plan: 'enterprise', test: true }
    const { id: strangerId } = await createOrganisation(database, other)
    const key = (slug: string) =>
      issueKey(database, { organisation: slug, name: 'prove', scopes, confirmations: 'none' })
    const openEvent = async (organisationId: string, capacity: number | null) =>
      one(
        `insert into public.events (organisation_id, name, slug, starts_at, ends_at, capacity)
       values ($1, 'Prove', 'prove', now() + interval '1 day', now() + interval '2 days', $2) returning id`,
        [organisationId, capacity],
      )
    const [eventId, eventOfStranger] = [await openEvent(organisation.id, 24), await openEvent(strangerId, null)]
    const type = (...values: [eventId: string, name: string, price: number, quantity: number | null]) =>
      one(
        'insert into public.ticket_types (event_id, name, price, quantity) values ($1, $2, $3, $4) returning id',
        values,
      )
    const ticketTypeIds: Hall['ticketTypeIds'] = [
      await type(eventId, 'few', 0, 4),
      await type(eventId, 'priced', 999, 20),
      await type(eventId, 'many', 0, null),
    ]
    const typeOfStranger = await type(eventOfStranger, 'many', 0, null)
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
       select id, $1, '{*}' from public.organisations`,
      [`${receiverUrl}/hooks`],
    )
    await database.query("update public.events set status = 'published'")
    const keys: string[] = []
    for (let i = 0; i < clients; i++) keys.push(await key('prove'))
    return {
      hall: { eventId, ticketTypeIds, pointId },
      keys,
      stranger: { key: await key('stranger'), eventId: eventOfStranger, ticketTypeId: typeOfStranger },
    }
  } finally {
    await database.end()
  }
}

async function letGuestsAct(database: pg.Client): Promise<void> {
  await database.query('update public.events set guests_may = enum_range(null::public.guest_act)')
  await database.query(
    "insert into public.questions (event_id, key, label, required) select id, 'note', 'A note?', true from public.events",
  )
}

/** 20 MiB of idempotency records, of somebody else: a keyed write adds one, at the end. */
async function fill(database: pg.Client): Promise<void> {
  await database.query(
    `insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
     select o.id, o.id, 'filling ' || i, '', to_json((select string_agg(md5(concat(i, j)), '') from generate_series(1, 55) j))
     from public.organisations o, generate_series(1, 10000) i
     where o.slug = 'stranger'`,
  )
}

/**
 * Until no call is under way, and everything that is to be sent was: what would be tried again in minutes is due now.
 * @param couriersDied whether some were killed, so that what they had claimed is to be taken by others.
 */
export async function comeToRest(database: pg.Client, couriersDied: boolean): Promise<Problem[]> {
  const patienceMs = 60_000
  let deadline = Date.now() + patienceMs
  let least = Number.POSITIVE_INFINITY
  const pendingSql = `select
    (select count(*)::int from pg_stat_activity where state <> 'idle' and usename = 'authenticator') as calls,
    (select count(*)::int from public.webhook_deliveries where status = 'pending') as webhooks,
    (select count(*)::int from public.notifications where queued_for is not null) as queued,
    (select count(*)::int from public.emails where status = 'queued') as emails`
  // Nobody else takes what they had claimed before that claim ends. One who lives would have it taken while they send it.
  if (couriersDied) {
    await database.query(
      "update public.emails set next_attempt_at = now(), claimed_until = null where status = 'queued'",
    )
    await database.query(
      "update public.webhook_deliveries set next_attempt_at = now(), claimed_until = null where status = 'pending'",
    )
  }
  let quiet = 0
  for (;;) {
    const { rows } = await database.query<Record<string, number>>(pendingSql)
    const pending = rows[0] ?? {}
    const { calls = 0, ...rest } = pending
    // The courier polls: its own calls come and go.
    quiet = Object.values(rest).every((n) => n === 0) && calls <= 1 ? quiet + 1 : 0
    if (quiet > 3) return []
    const left = Object.values(pending).reduce((sum, n) => sum + n, 0)
    if (left < least) [least, deadline] = [left, Date.now() + patienceMs]
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
