// Which tools a client has listed, and whether it may write: `?toolsets=door,webhooks&read_only=true`, or the headers X-MCP-Toolsets
// and X-MCP-Readonly. The names are those of GitHub's MCP server. A tool that is not listed can be called all the same.

import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { Request } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import type { Caller } from '../../gateway/caller.ts'
import { isRead, type Operation, toolsets } from '../../operations/operation.ts'

export type Selection = {
  /** Sorted, each once. */
  toolsets: string[]
  readOnly: boolean
}

const names = ['default', 'all', ...Object.keys(toolsets)]

/** @throws ProtocolError InvalidRequest for a name that does not exist: a client shows it when it connects. */
export function selectionOf({ query, headers }: Pick<Request, 'query' | 'headers'>): Selection {
  const chosen = new Set(wordsOf(query.toolsets ?? headers['x-mcp-toolsets']))
  for (const name of chosen) {
    if (!names.includes(name)) throw invalid(`There is no such toolset. Toolsets: ${names.join(', ')}.`)
  }
  return {
    toolsets: chosen.size === 0 ? ['default'] : [...chosen].sort(),
    // Either is a promise, which the other does not take back.
    readOnly: isTrue('read_only', query.read_only) || isTrue('X-MCP-Readonly', headers['x-mcp-readonly']),
  }
}

export function isListed(operation: Operation, { toolsets, readOnly }: Selection): boolean {
  if (readOnly && !isRead(operation)) return false
  const isOfDefault = !operation.unlisted && toolsets.includes('default')
  return isOfDefault || toolsets.includes('all') || toolsets.includes(operation.toolset)
}

/** How to get at each tool that a text names and the list lacks; '' where there is none. */
export type Ways = (text: string) => string

export function waysTo(operations: readonly Operation[], caller: Caller, selection: Selection): Ways {
  const wayTo = (operation: Operation) => {
    const { name, scope, toolset } = operation
    if (!caller.has(scope)) return [`${name} needs a key with ${scope}.`]
    if (selection.readOnly && !isRead(operation)) return [`${name} needs a connection without read_only.`]
    if (isListed(operation, selection)) return []
    return [
      `${name} is not listed, but can be called. To list it, connect with toolsets=${[...selection.toolsets, toolset].join(',')}.`,
    ]
  }
  return (text) => {
    const named = new Set(text.match(/\b[a-z]+(_[a-z]+)+\b/g))
    return operations.flatMap((operation) => (named.has(operation.name) ? wayTo(operation) : [])).join(' ')
  }
}

/** The same at the end of a refusal or a warning. */
export function withWays<Said extends { message: string; hint?: string }>(said: Said, ways: Ways): Said {
  const how = ways(`${said.message} ${said.hint ?? ''}`)
  if (how === '') return said
  return said.hint === undefined
    ? { ...said, message: `${said.message} ${how}` }
    : { ...said, hint: `${said.hint} ${how}` }
}

/** @throws ApiError 403 */
export function requireAllowed(operation: Operation, { readOnly }: Selection): void {
  if (!readOnly || isRead(operation)) return
  throw new ApiError(403, 'read_only', `${operation.name} writes, and this connection is read-only.`, {
    hint: 'Connect without read_only to change something. Nothing was changed.',
  })
}

const invalid = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidRequest, message)

const wordsOf = (value: unknown): string[] =>
  [value]
    .flat()
    .filter((text) => typeof text === 'string')
    .flatMap((text) => text.split(','))
    .map((name) => name.trim().toLowerCase())
    .filter(Boolean)

function isTrue(param: string, value: unknown): boolean {
  if (value === undefined) return false
  const word = wordsOf(value).join()
  if (!['true', 'false', '1', '0'].includes(word)) throw invalid(`${param} must be true or false.`)
  return word === 'true' || word === '1'
}
