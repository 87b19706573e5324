// Files of many rows, read page by page as the key that asked for them: each page is an RPC of its own, in which the database checks the key
// again. Must know nothing of how a file is written.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Operation, roleOf } from '../operations/operation.ts'
import { ApiError } from './api-error.ts'
import type { DataApi } from './data-api.ts'
import type { Places } from './places.ts'
import type { Principal } from './principals.ts'
import type { Source, Tokens } from './tokens.ts'
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
  /** To be called when the file is sent, or given up. */
  close(): void
}

export type Exports = {
  /**
   * Reads the first page, and keeps in the audit trail who exports what. `input` is that of the operation: of a link, it was checked when it
   * was made, by another version perhaps.
   * @param link counted as downloaded.
   * @throws ApiError
   */
  open(
    operation: Operation,
    principal: Principal,
    source: Source,
    input: Input,
    link?: { id: string },
  ): Promise<OpenExport>
}

// Short pages, and pauses four times as long, keep the p95 of another key's calls near what it is alone: docs/performance.md has figures.
const rowsOfPage = 50
const pause = 4
/** After a page of which no row matches: there may be many in a row, and whoever waits for the file gets no byte. */
const pauseAfterNothing = 1
const leastPauseMs = 5
const mostPauseMs = 1_000
const atOncePerOrganisation = 2
// Of a page, while the database is busy or away.
const tries = 5
const longestMs = 60 * 60_000

export function createExports({
  dataApi,
  tokens,
  places,
}: {
  dataApi: DataApi
  tokens: Tokens
  places: Places
}): Exports {
  const running = new Map<string, number>()

  /** @returns what gives the place back, once. */
  function begin(organisation: string): () => void {
    const already = running.get(organisation) ?? 0
    if (already >= atOncePerOrganisation) throw tooManyExports()
    running.set(organisation, already + 1)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      const left = (running.get(organisation) ?? 1) - 1
      if (left > 0) running.set(organisation, left)
      else running.delete(organisation)
    }
  }

  return {
    async open(operation, principal, source, input, link) {
      const args = parseInput(operation.input, input)
      const { fields, ...filters } = args as Input & { fields?: string[] }
      const organisation = principal.organisation_id
      const close = begin(organisation)

      const rpc = async (fn: string, sent: Input) => {
        const token = await tokens.forPrincipal(principal, roleOf(operation), source)
        const leave = await places.enter(`exports ${organisation}`)
        return dataApi.rpc(fn, sent, token, true, { name: operation.name, args }).finally(leave)
      }
      const page = (cursor?: string) =>
        rpc(`${operation.name}_page`, {
          ...filters,
          size: rowsOfPage,
          ...(cursor !== undefined && { cursor }),
        }) as Promise<Page>

      async function* pages(first: Page): AsyncGenerator<Row[]> {
        const end = performance.now() + longestMs
        yield first.rows
        for (let cursor = first.next_cursor; cursor !== null; ) {
          if (performance.now() > end) throw new Error('An export took too long.')
          const before = performance.now()
          const next = await persistently(page, cursor)
          cursor = next.next_cursor
          const times = next.rows.length === 0 ? pauseAfterNothing : pause
          await sleep(Math.min(Math.max(times * (performance.now() - before), leastPauseMs), mostPauseMs))
          yield next.rows
        }
      }

      try {
        const first = await page()
        await rpc('begin_export', { operation: operation.name, arguments: args, ...(link && { link_id: link.id }) })
        return { operation, asOf: first.as_of, fields, pages: pages(first), close }
      } catch (error) {
        close()
        throw error
      }
    },
  }
}

/** A file must not be lost to a moment in which the database is away. */
async function persistently(page: (cursor: string) => Promise<Page>, cursor: string): Promise<Page> {
  for (let tried = 1; ; tried++) {
    try {
      return await page(cursor)
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
