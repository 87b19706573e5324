// One round: so many requests on so many connections, each answer held against what is promised, and afterwards the database and the server.

import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import pg from 'pg'
import { type Disagreement, disagreementsSql } from '../../../src/local/invariants.ts'
import { createRandom, type Random } from '../random.ts'
import { generate } from './generate.ts'
import { judge } from './judge.ts'
import type { HostileRequest } from './request.ts'
import { type Stage, setStage } from './stage.ts'
import { type Connection, exchangeOn, type Outcome, openConnection } from './wire.ts'

export type Target = {
  apiUrl: string
  /** For requests that a limit of the server's ends; where its limits are shorter. */
  slowUrl?: string
  databaseUrl: string
  /** Others use the database, too. */
  isShared?: boolean
  /** Of the process of the API, after collecting garbage. Undefined where it is not a process of its own. */
  measure?: () => Promise<Measured | undefined>
  /** Why it has ended, if it has; and what it logged as an error. */
  complaints?: () => string[]
}

export type Measured = { rss: number; heap: number; external: number; handles: number }

export type Round = {
  seed: number
  requests: number
  /** This request alone. */
  only?: number
  connections?: number
  /** What the pauses of slow clients are multiplied by. */
  pace?: number
  /** After how many requests there is a new stage. */
  stageEvery?: number
  say?: (line: string) => void
}

export type Report = {
  problems: string[]
  requests: number
  seconds: number
  /** How many of each kind, and of each status. */
  kinds: Map<string, number>
  statuses: Map<string, number>
  /** Operations of REST with an answer below 300. */
  succeeded: Set<string>
  slowest: { milliseconds: number; what: string }
  measured: { after: number; memory: Measured }[]
}

export async function hostile(target: Target, round: Round): Promise<Report> {
  const { seed, requests, only, connections = 32, pace = 1, say = () => {} } = round
  const database = new pg.Client({ connectionString: target.databaseUrl })
  await database.connect()
  const report: Report = {
    problems: [],
    requests: 0,
    seconds: 0,
    kinds: new Map(),
    statuses: new Map(),
    succeeded: new Set(),
    slowest: { milliseconds: 0, what: '' },
    measured: [],
  }
  try {
    const stages = createStages(database, target.apiUrl, round)
    const startedAt = performance.now()
    const first = only ?? 0
    const end = only === undefined ? requests : only + 1
    let next = first
    const slowOnes: Promise<void>[] = []
    const measureAt = new Set(Array.from({ length: 10 }, (_, i) => Math.floor((requests * (i + 1)) / 10)))

    const work = async (worker: number): Promise<void> => {
      const random = createRandom(seed + worker)
      let connection: Connection | undefined
      while (next < end) {
        const number = next++
        const request = generate(seed, number, await stages.at(number))
        const take = (outcome: Outcome) => note(report, round, number, request, outcome)
        if (request.isSlow) {
          slowOnes.push(slowLane(() => alone(request, target.slowUrl ?? target.apiUrl, random, pace).then(take)))
        } else if (request.isAlone) take(await alone(request, target.apiUrl, random))
        else {
          if (connection === undefined || connection.used >= 50) {
            connection?.socket.destroy()
            connection = openConnection(new URL(target.apiUrl), addressFrom(random))
          }
          let outcome = await exchangeOn(connection, request)
          // An idle connection may be closed at any moment: the next request is then sent again.
          if (outcome.answers.length === 0 && connection.used > 1 && ['closed', 'reset'].includes(outcome.end)) {
            connection = openConnection(new URL(target.apiUrl), addressFrom(random))
            outcome = await exchangeOn(connection, request)
          }
          if (outcome.end !== 'open') connection = undefined
          take(outcome)
        }
        if (target.measure && measureAt.has(number + 1)) {
          const memory = await target.measure()
          if (memory === undefined) break
          report.measured.push({ after: number + 1, memory })
          say(`${number + 1} requests, ${report.problems.length} problems, ${describe(memory)}`)
        }
        if (report.problems.length > 2_000) break
      }
      connection?.socket.destroy()
    }
    const slowLane = pLimit(100)
    await Promise.all(Array.from({ length: only === undefined ? connections : 1 }, (_, i) => work(i)))
    await Promise.all(slowOnes)
    report.seconds = (performance.now() - startedAt) / 1000
    if (target.measure) await judgeMemory(report, target.measure)
    const broken = await disagreements(database, target.isShared ? stages.events : [null])
    report.problems.push(...(target.complaints?.() ?? []), ...broken)
    return report
  } finally {
    await database.end()
  }
}

const alone = (request: HostileRequest, url: string, random: Random, pace = 1): Promise<Outcome> =>
  exchangeOn(openConnection(new URL(url), addressFrom(random)), request, pace)

/** Of this machine (Linux has all of 127.0.0.0/8), so that what is limited by address is limited for few. */
const addressFrom = (random: Random): string =>
  `127.${random.between(1, 250)}.${random.between(0, 250)}.${random.between(1, 250)}`

/** The last few stages, for requests that are under way may still be about the one before. */
function createStages(database: pg.Client, apiUrl: string, { requests, stageEvery: every = 1_000 }: Round) {
  const stages = new Map<number, Promise<Stage>>()
  const events: string[] = []
  // One connection makes them all.
  let last: Promise<unknown> = Promise.resolve()
  function stage(place: number): Promise<Stage> {
    const known = stages.get(place)
    if (known !== undefined) return known
    const made = last.then(() => setStage(database, apiUrl))
    last = made.then(
      (stage) => events.push(...stage.events),
      () => {},
    )
    stages.set(place, made)
    stages.delete(place - 3)
    return made
  }
  return {
    events,
    at(number: number): Promise<Stage> {
      const place = Math.floor(number / every)
      // So that nothing waits for the next one, if there is one.
      const isHalfway = number % every === Math.floor(every / 2)
      if (isHalfway && (place + 1) * every < requests) void stage(place + 1).catch(() => {})
      return stage(place)
    },
  }
}

function note(
  report: Report,
  { seed, say = () => {} }: Round,
  number: number,
  request: HostileRequest,
  outcome: Outcome,
): void {
  const count = (tally: Map<string, number>, name: string) => tally.set(name, (tally.get(name) ?? 0) + 1)
  report.requests += 1
  count(report.kinds, request.kind)
  for (const { status } of outcome.answers) {
    count(report.statuses, String(status))
    if (request.operation !== undefined && status < 300) report.succeeded.add(request.operation.name)
  }
  if (outcome.answers.length === 0) count(report.statuses, outcome.end)
  if (!request.isSlow && outcome.milliseconds > report.slowest.milliseconds)
    report.slowest = { milliseconds: outcome.milliseconds, what: `--only ${number}, ${request.kind}` }
  for (const rule of judge(request, outcome)) {
    const problem = `--seed ${seed} --only ${number} (${request.kind}): ${rule}\n    ${shown(request)}`
    report.problems.push(problem)
    if (report.problems.length <= 40) say(problem)
  }
}

/** The request, to be read and sent again. */
function shown({ steps }: HostileRequest): string {
  const text = steps.map((step) => (Buffer.isBuffer(step) ? JSON.stringify(step.toString('latin1')) : String(step)))
  return text
    .join(' ')
    .replace(/Bearer usher_live_\w+/g, 'Bearer …')
    .slice(0, 1_500)
}

const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MB`

export const describe = ({ rss, heap, external, handles }: Measured): string =>
  `RSS ${megabytes(rss)}, heap ${megabytes(heap)}, buffers ${megabytes(external)}, ${handles} handles`

// Pools and caches fill during the first fifth. What is below is noise of the allocator, and of what is kept for a minute.
const slack = { rss: 96 * 1024 * 1024, heap: 24 * 1024 * 1024, external: 32 * 1024 * 1024, handles: 40 }

/** The end against the first fifth, once the last connection is gone. */
async function judgeMemory({ measured, problems, requests }: Report, measure: Required<Target>['measure']) {
  const warm = measured[1]?.memory ?? (await measure())
  let memory = await measure()
  if (warm === undefined || memory === undefined) return
  const grown = (now: Measured) =>
    (Object.keys(slack) as (keyof Measured)[]).filter((of) => now[of] > warm[of] + slack[of])
  const deadline = Date.now() + 120_000
  while (grown(memory).length > 0 && Date.now() < deadline) {
    await sleep(2_000)
    memory = (await measure()) ?? memory
  }
  measured.push({ after: requests, memory })
  for (const name of grown(memory)) problems.push(`${name} grew from ${warm[name]} to ${memory[name]}`)
}

/** @param events of a database that others change, too; undefined for all. */
async function disagreements(database: pg.Client, events: (string | null)[]): Promise<string[]> {
  const rows: Disagreement[] = []
  for (const event of events) rows.push(...(await database.query<Disagreement>(disagreementsSql, [event])).rows)
  return rows.map(({ check, id, stored, expected }) => `invariant: ${check}: ${id} has ${stored}, expected ${expected}`)
}
