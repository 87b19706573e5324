// The type of an operation: one plain value from which REST routes (http/rest.ts), MCP tools (http/mcp/tools.ts) and the OpenAPI
// document are made. Its name is the name of its SQL function in schema `api`.

import * as z from 'zod'
import type { ErrorCode } from './error-codes.ts'

/** The scopes of an API key (docs/spec.md, "Scopes"). Each is a database role: `events:read` is `scope_events_read`. */
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

/** Groups of tools that an MCP client may have listed in place of the default list (src/http/mcp/selection.ts). */
export const toolsets = {
  account: 'the key, its requests, and the audit trail',
  events: 'events, ticket types, promo codes and check-in points',
  orders: 'orders, payments and refunds',
  attendees: 'registration, import, attendees and tickets',
  waiting_list: 'waiting lists of sold-out ticket types',
  door: 'check-ins',
  webhooks: 'webhook endpoints, deliveries and notifications',
} as const

export type Toolset = keyof typeof toolsets

export type Operation = {
  /** Name of the operation, of its function in schema `api`, and of its MCP tool. */
  name: string
  /** For people: of the tool, and in the list of operations of the OpenAPI document. */
  title: string
  /** For a model that decides whether to call it: what it needs first, and what to do on each error. */
  description: string
  /** GET reads: its SQL function is stable and returns the data. Anything else writes, and returns an outcome. */
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /api/v1, with `{name}` for path parameters. */
  path: `/${string}`
  /** Codes of its own refusals, beside those that it has by rule: see errorsOf. */
  errors?: readonly ErrorCode[]
  /** The function in schema `api` that takes a list of its calls, for calls that arrive together. */
  batch?: 'register_attendees' | 'check_in_many'
  /** Null: any valid key will do. */
  scope: Scope | null
  /** It ends: days, such as 2027-03-01, a year apart at least, and the name of the operation to use in its place. */
  deprecated?: { since: string; sunset: string; instead: string }
  /** The toolset of MCP that lists it. */
  toolset: Toolset
  /** true: only its toolset lists it, not the default list of MCP, which has room for 45 tools. */
  unlisted?: true
  /** false: it is no tool of MCP, for a model has no use for it. */
  mcp?: false
  /**
   * Paths of the fields under `data` that MCP answers unless `fields` names others, such as `id` and `order.reference`; `*` stands for
   * all fields that no path begins with. A change answers the changed fields besides. Left out: all. Of a list, fields of its items.
   */
  lean?: readonly string[]
  /** Of a list inside the answer, the only items that MCP answers: those with this value at this path. */
  leanItems?: { list: string; path: string; value: string }
  /** It answers one object, and reads as much for it as for a list. */
  heavy?: true
  /** Its answer is large: REST compresses it for a client that accepts gzip. */
  compressed?: true
  /** Bounds of the REST body, where a call may send more than others (src/http/middleware/json-body.ts). */
  bodyLimit?: { bytes: number; values: number }
  /** Its keys are the arguments of the SQL function. A PATCH takes `changes`, beside which all but `if_version` stand in the body over REST. */
  input: z.ZodObject
  /** It takes people and orders by id or reference alone, except in a dry run. */
  irreversible?: true
  /** The member of `changes` that makes it so. */
  irreversibleChange?: string
  /**
   * Over MCP a person confirms it, where the key asks for that: always, or by what it would do. Its SQL function calls
   * private.assert_confirmed, or private.assert_notice_confirmed.
   */
  confirmed?: 'always' | 'by_effect'
  /**
   * The field of `input` that lists what the SQL function judges one by one: an item of the wrong form is refused there, with a verdict
   * of its own, and does not refuse the call.
   */
  judged?: string
  /** When it answers 202, with the same body: it is carried out later. */
  later?: string
  /**
   * The body over REST as published, where `input`, which validates it, cannot say that it or a part has one of several forms: its name,
   * theirs, and those of its parts.
   */
  body?: { name: string; forms: Record<string, z.ZodObject>; parts?: Record<string, z.ZodType> }
  /** The whole body of a successful answer. */
  output: z.ZodObject
  /** Images of the answer, by file extension: REST serves `path.png`; an MCP result includes the PNG. */
  pictures?: Record<string, Picture>
  /**
   * It makes a link to a file of rows, which REST also serves at GET of the same path. The function `NAME_page` answers the file page by
   * page, to whoever may make the link, and takes the same input but `fields`.
   */
  csv?: Csv
  /**
   * Behaviour hints for MCP clients, as in the specification's ToolAnnotations; reads need none. `openWorld`: it may send an
   * e-mail or a webhook.
   */
  hints?: { destructive: boolean; idempotent: boolean; openWorld: boolean }
}

/** As its file has it: index.ts says the toolset. */
export type Declared = Omit<Operation, 'toolset'>

/** `draw` takes the data of the answer. */
export type Picture = { mediaType: string; draw: (data: unknown) => Promise<Buffer | string> }

/** `columns` are published in their order: new ones come at the end. */
export type Csv = { name: string; columns: readonly string[] }

/** Names of fields, with blanks between them. */
export const names = (text: string): readonly string[] => text.trim().split(/\s+/)

/** What GET of a file takes. */
export function inputOfCsv({ input }: Operation): z.ZodObject {
  const bom = z.boolean('must be true or false').optional()
  return input.safeExtend({
    bom: bom.describe('Begin with a byte order mark, as Excel needs. Files from a link always do.'),
  })
}

/** The database role that an operation runs as. */
export function roleOf(operation: Operation): string {
  return operation.scope === null ? 'api_key' : `scope_${operation.scope.replace(':', '_')}`
}

export function isRead(operation: Operation): boolean {
  return operation.method === 'GET'
}

/** Whether it answers a page of a list; otherwise one object under `data`. */
export function isList(operation: Operation): boolean {
  return 'has_more' in operation.output.shape
}

/** Whether it answers one object that has a version, and so an ETag. */
export function hasVersion({ output }: Operation): boolean {
  const data: unknown = output.shape.data
  return data instanceof z.ZodObject && 'version' in data.shape
}

/** Codes of its own refusals, as in the comment on its function. What every operation answers is in http/openapi/responses.ts. */
export function errorsOf(operation: Operation): ErrorCode[] {
  return [
    ...(pathParameters(operation).length > 0 ? (['not_found'] as const) : []),
    ...(operation.errors ?? []),
    ...('if_version' in operation.input.shape ? (['version_mismatch'] as const) : []),
  ]
}

/** Names of the inputs that are path parameters. */
export function pathParameters(operation: Operation): string[] {
  return [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)
}

/** Names of the inputs that a PATCH takes beside `changes`, and in its body over REST. */
export function besideChanges(operation: Operation): string[] {
  if (operation.method !== 'PATCH') return []
  const others = ['changes', 'if_version', ...pathParameters(operation)]
  return Object.keys(operation.input.shape).filter((name) => !others.includes(name))
}
