// What an operation is. One plain value per operation says everything the projections need: REST routes (rest.ts) and MCP
// tools (mcp.ts) are made from it, and its name is the name of the SQL function in schema `api`.

import type * as z from 'zod'

/** The scopes of an API key (SPEC.md, Authentication). Each is a database role: `events:read` is `scope_events_read`. */
export const scopes = [
  'events:read',
  'orders:read',
  'attendees:read',
  'events:write',
  'attendees:write',
  'checkin:write',
  'orders:write',
] as const

export type Scope = (typeof scopes)[number]

export type Operation = {
  /** Name of the operation, of its function in schema `api`, and of its MCP tool. */
  name: string
  title: string
  /** One sentence for a person in a list of operations. */
  summary: string
  /** For a model that decides whether to call it: what it needs first, and what to do on each refusal. */
  description: string
  /** GET reads: its SQL function is stable and answers the data. Anything else writes, and answers an outcome. */
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /api/v1, with `{name}` for the inputs that stand in the path. */
  path: `/${string}`
  /** Null: any valid key. */
  scope: Scope | null
  /** Keys are the arguments of the SQL function. A PATCH takes `changes`, which is its body over REST, and `if_version`. */
  input: z.ZodObject
  /** The whole body of a successful answer. */
  output: z.ZodObject
  /** Pictures of what it answers, by file extension: REST serves `path.png`; over MCP a PNG comes with the result. */
  pictures?: Record<string, Picture>
  /** Behaviour hints for MCP clients, as in the specification's ToolAnnotations; reads need none. */
  hints?: { destructive: boolean; idempotent: boolean }
}

/** Drawn from the data of an answer. */
export type Picture = { mediaType: string; draw: (data: unknown) => Promise<Buffer | string> }

/** The database role an operation is called as. */
export function roleOf(operation: Operation): string {
  return operation.scope === null ? 'api_key' : `scope_${operation.scope.replace(':', '_')}`
}

export function isRead(operation: Operation): boolean {
  return operation.method === 'GET'
}

/** Whether the answer is a page of a list; anything else is one object under `data`. */
export function isList(operation: Operation): boolean {
  return 'has_more' in operation.output.shape
}

/** The inputs that stand in the path. */
export function pathParameters(operation: Operation): string[] {
  return [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)
}
