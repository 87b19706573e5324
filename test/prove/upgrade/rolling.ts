// A rolling upgrade under load: clients write through the API of the version before while a migration is applied, then through both
// versions, then through the new one. Nothing is killed, so each call has to be answered.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { applyMigrations } from '../../../src/local/migrate.ts'
import { openMailServer } from '../../courier/mail-server.ts'
import { startWebhookReceiver, status } from '../../support/webhook-receiver.ts'
import { type Crowd, createCrowd } from '../clients.ts'
import type { Problem } from '../history.ts'
import { comeToRest, connected, holdAgainst, openHall, withClient } from '../prove.ts'
import { createRandom } from '../random.ts'
import { createSend } from '../send.ts'
import { type ProveStack, startProveStack } from '../stack.ts'
import { fillTheRest } from './fill.ts'

export type Stage = {
  /** A folder for `applyMigrations`, which has what is to be applied now. */
  projectDir: string
  /** The code that is deployed then. */
  code: string
  /** Somebody reads every table in one transaction, for as long as the migration has not given up once. */
  isRead?: boolean
}

export type Upgrade = {
  seed: number
  /** The code that runs at first. */
  code: string
  stages: Stage[]
  /** Acknowledged writes between two acts. */
  writes: number
  clients?: number
  /** With one API, which is all that is replaced. */
  isSmall?: boolean
  say?: (line: string) => void
}

export type Report = {
  problems: Problem<string>[]
  calls: number
  outcomes: Record<string, number>
  notifications: number
  rows: number
  retries: number
  tally: Map<string, number>
}

/** @param dataDir a data directory whose database has the schema that the first code was made for. */
export async function upgrade(dataDir: string, round: Upgrade): Promise<Report> {
  const { seed, code, stages, writes, clients = 4, isSmall, say = () => {} } = round
  const mailServer = await openMailServer()
  const logFile = `${dataDir}.log`
  const stack = await startProveStack(dataDir, { mailPort: mailServer.port, code, isSmall, logFile })
  const receiver = await startWebhookReceiver()
  const prefix = `k${seed}`
  const problems: Problem<string>[] = []
  const add = (rule: string, about: string, details: string[]) =>
    problems.push(...details.map((detail) => ({ rule, about, detail })))
  try {
    await stack.settled()
    receiver.answerWith(status(204))
    const { hall, keys, stranger } = await openHall(stack, clients, receiver.url)
    const crowd = createCrowd(hall, createSend(stack.apiUrls, 30_000), keys, prefix)
    let isOver = false
    const until = () => isOver
    const working = Promise.all([
      // Most of a small round is waiting for processes to start, which need not be filled with writes.
      ...keys.map((_, i) => crowd.work(i, createRandom(seed + 100 + i), until, isSmall ? 50 : 0)),
      crowd.edit(createRandom(seed + 50), () => connected(stack.databaseUrl), until),
      crowd.spy(stranger, createRandom(seed + 51), until),
    ])
    let retries = 0
    try {
      await fillTheRest(stack.databaseUrl)
      await moreWrites(crowd, writes)
      for (const { projectDir, code: next, isRead = false } of stages) {
        const said = await migrate(stack, projectDir, isRead)
        retries += said.filter((line) => line.includes('Trying again')).length
        said.forEach(say)
        // The version before, on the new schema.
        await moreWrites(crowd, writes)
        for (const part of isSmall ? ['API 1'] : ['API 1', 'courier', 'API 2']) {
          say(`deploying ${part} …`)
          await stack.deploy(part, next)
          await moreWrites(crowd, writes)
        }
      }
    } catch (error) {
      problems.push({ rule: 'upgrade', about: 'it stopped', detail: (error as Error).message })
    }
    isOver = true
    await working
    return await withClient(stack.databaseUrl, async (database) => {
      problems.push(...(await comeToRest(database, false)))
      const received = new Set(receiver.received.map(({ headers }) => String(headers['webhook-id'])))
      const { mailed, ...end } = await holdAgainst(database, crowd, {
        prefix,
        received,
        mailServer,
        copies: {},
        courierCuts: [],
      })
      problems.push(...end.problems)
      add('unanswered', 'a call, though nothing was killed', unanswered(crowd))
      // What the parts said meanwhile, to find the cause by.
      if (problems.length > 0) {
        const said = readFileSync(logFile, 'utf8').split('\n')
        add('log', 'a warning or an error', said.filter((line) => line.startsWith('{')).slice(-20))
      }
      const { rows } = await database.query<{ count: number }>(
        "select sum(n_live_tup)::int as count from pg_stat_user_tables where schemaname in ('public', 'private')",
      )
      return { ...end, problems, notifications: receiver.received.length, rows: rows[0]?.count ?? 0, retries }
    })
  } finally {
    await stack.stop()
    await receiver.close()
    await mailServer.close()
  }
}

/** What no upgrade may do to a call: an error of the server, or none within the time of a client. A closed connection is repeated. */
const unanswered = (crowd: Crowd): string[] =>
  crowd.history
    // 23 is the code of a DOMException of the time-out.
    .filter(({ outcome, why = '' }) => outcome === 'unknown' && /^5|^23$|timeout/i.test(why))
    .map(({ key, operation, why }) => `${operation} ${key}: ${why}`)

/** Waits until so many more calls were acknowledged. */
export async function moreWrites(crowd: Crowd, writes: number): Promise<void> {
  const done = () => crowd.history.reduce((sum, { outcome }) => sum + (outcome === 'ok' ? 1 : 0), 0)
  const wanted = done() + writes
  const deadline = Date.now() + 120_000
  while (done() < wanted) {
    if (Date.now() > deadline) throw new Error(`${wanted - done()} writes do not come.`)
    await sleep(20)
  }
}

/** Applies what is pending. @returns what it said. */
async function migrate(stack: ProveStack, projectDir: string, isRead: boolean): Promise<string[]> {
  const said: string[] = []
  const reader = await connected(stack.databaseUrl)
  let reading: Promise<unknown> = Promise.resolve()
  try {
    if (isRead) {
      await reader.query('begin')
      await reader.query('select from public.orders, public.attendees, public.events limit 1')
    }
    await applyMigrations(stack.databaseUrl, {
      projectDir,
      progress(message) {
        said.push(message)
        if (message.includes('Trying again')) reading = reader.query('commit')
      },
    })
    return said
  } finally {
    await reading
    await reader.end()
  }
}
