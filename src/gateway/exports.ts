// Files of many rows, read page by page as the key that asked for them: each page is an RPC of its own, in which the database checks the key
// again. Must know nothing of how a file is written.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Operation, roleOf } from '../operations/operation.ts'
import { ApiError } from './api-error.ts'
import type { Gateway } from './calls.ts'
import type { Principal } from './principals.ts'
import type { Source } from './tokens.ts'
import { parseInput } from './validation.ts'

type Input = Record<string, unknown>
export type Row = Record<string, unknown>
type Page = { as_of: string; rows: Row[]; next_cursor: string | null }

export type OpenExport = {
  operation: Operation
  /** Moment from which on rows are left out, RFC 3339. */
  asOf: string
  fields: string[] | undefined
  /** Throws ApiError 401 or 403 once the key is revoked, expired or without the scope. */
  pages: AsyncIterable<Row[]>
  /** Aborted where another export needs the place of one that is read too slowly. */
  signal: AbortSignal
  /** To be called when the file is sent, or given up. */
  close(): void
}

// Short pages, and pauses four times as long, keep the p95 of another key's calls near what it is alone: see
// docs/contribute/performance.md.
const rowsOfPage = 50
const pause = 4
/** After a page of which no row matches: there may be many in a row, and whoever waits for the file gets no byte. */
const pauseAfterNothing = 1
const leastPauseMs = 5
const mostPauseMs = 1_000
const atOncePerOrganisation = 2
// The speed below which a reader makes way: 25 rows a second, once so much time is lost. Any slower, two links held back all exports.
const mostMsOfPage = 2_000
const mostMsLost = 10_000
// Of a page, while the database is busy or away.
const tries = 5
const longestMs = 60 * 60_000

/** `lostMs` by a reader who takes pages slower than they may be; `waitingSince` is unset while the reader waits for us. */
type Reading = { lostMs: number; waitingSince?: number | undefined; makeWay: AbortController }

const lostMsOf = ({ lostMs, waitingSince = Number.POSITIVE_INFINITY }: Reading): number =>
  lostMs + Math.max(performance.now() - waitingSince, 0)

/** Those of each organisation, in this process. */
const running = new Map<string, Set<Reading>>()

/** @throws ApiError where the others of the organisation are all read at a speed. */
function begin(organisation: string): Reading {
  const others = running.get(organisation) ?? new Set()
  if (others.size >= atOncePerOrganisation) {
    // The oldest comes first.
    const slow = others.values().find((other) => lostMsOf(other) > mostMsLost)
    if (slow === undefined) throw tooManyExports()
    slow.makeWay.abort()
    others.delete(slow)
  }
  const reading: Reading = { lostMs: 0, makeWay: new AbortController() }
  running.set(organisation, others.add(reading))
  return reading
}

function end(organisation: string, reading: Reading): void {
  const all = running.get(organisation)
  all?.delete(reading)
  if (all?.size === 0) running.delete(organisation)
}

/**
 * Reads the first page, and keeps in the audit trail who exports what.
 * @param input that of the operation: of a link, it was checked when it was made, by another version perhaps.
 * @param link by which it is downloaded.
 * @throws ApiError
 */
export async function openExport(
  { tokens, queue }: Gateway,
  operation: Operation,
  principal: Principal,
  source: Source,
  input: Input,
  link?: { id: string },
): Promise<OpenExport> {
  const args = parseInput(operation.input, input)
  const { fields, ...filters } = args as Input & { fields?: string[] }
  const organisation = principal.organisation_id
  const reading = begin(organisation)
  const close = () => end(organisation, reading)

  const rpc = async (fn: string, sent: Input) => {
    const token = await tokens.forPrincipal(principal, roleOf(operation), source)
    const about = { name: operation.name, args }
    return queue.alone({ fn, args: sent, token, repeatable: true, about }, `exports ${organisation}`)
  }
  const pageAt = async (cursor?: string) => {
    const sent = { ...filters, size: rowsOfPage, ...(cursor !== undefined && { cursor }) }
    return (await rpc(`${operation.name}_page`, sent)) as Page
  }
  try {
    const first = await pageAt()
    await rpc('begin_export', { operation: operation.name, arguments: args, ...(link && { link_id: link.id }) })
    const pages = pagesFrom(first, pageAt, reading)
    return { operation, asOf: first.as_of, fields, pages, signal: reading.makeWay.signal, close }
  } catch (error) {
    close()
    throw error
  }
}

type PageAt = (cursor: string) => Promise<Page>

async function* pagesFrom(
  { rows, next_cursor: cursor }: Page,
  pageAt: PageAt,
  reading: Reading,
): AsyncGenerator<Row[]> {
  const end = performance.now() + longestMs
  for (;;) {
    reading.waitingSince = performance.now()
    yield rows
    // What is in buffers when the last page is taken has to be read as well.
    if (cursor === null) return
    reading.lostMs = Math.max(lostMsOf(reading) - mostMsOfPage, 0)
    reading.waitingSince = undefined
    if (performance.now() > end) throw new Error('An export took too long.')
    const before = performance.now()
    ;({ rows, next_cursor: cursor } = await persistently(pageAt, cursor))
    const times = rows.length === 0 ? pauseAfterNothing : pause
    await sleep(Math.min(Math.max(times * (performance.now() - before), leastPauseMs), mostPauseMs))
  }
}

/** A file must not be lost to a moment in which the database is away. */
async function persistently(pageAt: PageAt, cursor: string): Promise<Page> {
  for (let tried = 1; ; tried++) {
    try {
      return await pageAt(cursor)
    } catch (error) {
      if (tried === tries || !(error instanceof ApiError) || error.status !== 503 || !error.retryable) throw error
      await sleep(250 * 2 ** tried)
    }
  }
}

const tooManyExports = () =>
  new ApiError(429, 'too_many_exports', 'The organisation has two exports running.', {
    hint: 'Wait until one of them is complete.',
    headers: { 'Retry-After': '15' },
  })
