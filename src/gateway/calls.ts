// One call of one operation, from REST or MCP: scope, input, token, one RPC, answer. What the call does is decided in the SQL
// function of the same name, never here.

import { hash } from 'node:crypto'
import * as z from 'zod'
import { whereToLook } from '../operations/identifiers.ts'
import { characters, withoutControl } from '../operations/inputs.ts'
import { besideChanges, isList, isRead, type Operation, pathParameters, roleOf } from '../operations/operation.ts'
import { ApiError } from './api-error.ts'
import type { Caller } from './caller.ts'
import { errorFor, nameFor } from './header-names.ts'
import type { Name } from './names.ts'
import type { Queue } from './queue.ts'
import type { Source, Tokens } from './tokens.ts'
import { parseInput } from './validation.ts'

export type Answer = {
  status: number
  body: Record<string, unknown>
  /** The answer was recorded earlier under the same idempotency key. */
  replayed: boolean
}

/** What a call needs. */
export type Gateway = { tokens: Tokens; queue: Queue }

/** What a write returns in SQL. An error is returned, not raised, where it must commit. */
type Outcome = {
  status: number
  data?: unknown
  /** What it did to other objects, or would do (dry run). */
  effect?: unknown
  warnings?: unknown
  error?: { code: string; message: string; param?: string; details?: unknown; hint?: string } | null
  replayed?: boolean
}

/** Chosen by the caller, up to 255 characters; kept 24 hours. */
export const IdempotencyKeySchema = z
  .string()
  .min(1, 'must not be empty')
  .check(characters(255))
  // A header shows letters of UTF-8 as several characters, some of which are control characters.
  .regex(withoutControl, {
    error: ({ input }) =>
      /[^\0-\x7f]/.test(String(input)) ? 'must be written in ASCII' : 'must not contain control characters',
  })
  .refine((key) => key.isWellFormed(), 'must be text in Unicode')
  .describe('Text of up to 255 characters, new for each intended effect. Send the same key when you repeat the call.')

const idempotencyInputs = {
  api: z.strictObject({ [nameFor('api', 'idempotency_key')]: IdempotencyKeySchema }),
  mcp: z.strictObject({ idempotency_key: IdempotencyKeySchema }),
  page: z.strictObject({ idempotency_key: IdempotencyKeySchema }),
}

/**
 * @param idempotencyKey of a write, as it was sent.
 * @param sent what `input` has ids in the place of.
 * @throws ApiError, or an unexpected error.
 */
export async function call(
  gateway: Gateway,
  operation: Operation,
  caller: Caller,
  input: Record<string, unknown>,
  idempotencyKey?: unknown,
  sent: Name[] = [],
): Promise<Answer> {
  await requireScope(operation, caller)
  const args = parseInput(operation.input, inPlace(operation, input), {
    judged: operation.judged,
    source: caller.source,
    elsewhere: caller.source === 'api' ? pathParameters(operation) : [],
    isQuery: caller.source === 'api' && isRead(operation),
  })
  const names = isIrreversible(operation, args) ? sent.map(byId) : sent
  if (isRead(operation)) {
    const result = await callDatabase(gateway, operation, caller, args, true, names)
    const body = isList(operation) ? (result as Record<string, unknown>) : { data: result }
    return { status: 200, body, replayed: false }
  }

  const keyName = nameFor(caller.source, 'idempotency_key')
  // An empty one is refused: its caller relies on it.
  const { [keyName]: idempotency_key } =
    idempotencyKey == null ? {} : parseInput(idempotencyInputs[caller.source], { [keyName]: idempotencyKey })
  const keyed =
    idempotency_key === undefined
      ? args
      : { ...args, idempotency_key, request_fingerprint: fingerprint(operation, args, names) }
  const repeatable = idempotency_key !== undefined || args.dry_run === true
  const outcome = (await callDatabase(gateway, operation, caller, keyed, repeatable, names)) as Outcome
  const { status, data, effect, warnings, error, replayed = false } = outcome
  if (error) {
    throw errorFor(caller.source, new ApiError(status, error.code, error.message, { ...error, replayed }))
  }
  return {
    status,
    body: { data, ...(effect !== undefined && { effect }), ...(warnings !== undefined && { warnings }) },
    replayed,
  }
}

async function callDatabase(
  { tokens, queue }: Gateway,
  operation: Operation,
  caller: Caller,
  args: Record<string, unknown>,
  repeatable: boolean,
  names: Name[],
): Promise<unknown> {
  const { name } = operation
  const { organisation_id } = caller.principal
  const token = await tokens.forPrincipal(caller.principal, roleOf(operation), caller.source)
  try {
    if (names.length > 0) {
      const byNames = { operation: name, names, args }
      const about = { name, args }
      return await queue.alone({ fn: 'call_by_names', args: byNames, token, repeatable, about }, organisation_id)
    }
    const rpc = { fn: name, args, token, repeatable }
    return await (isRead(operation)
      ? queue.read(operation, rpc, organisation_id)
      : queue.write(operation, rpc, organisation_id))
  } catch (error) {
    // The key has changed since it was resolved: the cached principal is stale.
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) caller.forget()
    throw error instanceof ApiError ? errorFor(caller.source, withWayOut(caller.source, error)) : error
  } finally {
    // The database checks the key in the transaction of every call.
    caller.confirmed = true
  }
}

/** Each field where it is declared: what stands beside `changes` is in the body of a PATCH. What is given twice is left to the validation. */
function inPlace(operation: Operation, sent: Record<string, unknown>): Record<string, unknown> {
  const beside = besideChanges(operation)
  if (beside.length === 0 || typeof (sent.changes ?? {}) !== 'object') return sent
  const placed: Record<string, unknown> = { ...sent }
  const changes: Record<string, unknown> = { ...(sent.changes as object | undefined) }
  for (const name of beside) {
    if (!Object.hasOwn(changes, name) || Object.hasOwn(placed, name)) continue
    placed[name] = changes[name]
    delete changes[name]
  }
  return { ...placed, changes }
}

/** The database enforces scopes by role; checking here first names the missing scope, without a round trip. @throws ApiError 403 */
export async function requireScope({ scope, name }: Operation, caller: Caller): Promise<void> {
  if (caller.has(scope)) return
  // The scope may have been added within the last minute.
  await caller.refresh()
  if (caller.has(scope)) return
  throw new ApiError(403, 'missing_scope', `The API key lacks the scope ${scope}, which ${name} needs.`, {
    details: { scope },
    hint: 'Use a key that has the scope, or add the scope to this key.',
  })
}

const isIrreversible = (
  { irreversible, irreversibleChange = '' }: Operation,
  { changes, dry_run }: Record<string, unknown>,
) =>
  dry_run !== true && (irreversible || (changes as Record<string, unknown> | undefined)?.[irreversibleChange] === true)

const byId = (name: Name): Name => ({ ...name, by_id: /^(attendee|order|waiting_list_entry)$/.test(name.kind) })

const hasGeneralHint = ({ hint }: ApiError) =>
  hint === undefined || hint === '' || hint.startsWith('Check the identifier')

/** An object that was not found is looked for in the words of the interface. */
function withWayOut(source: Source, error: ApiError): ApiError {
  // A refusal that says more than that there is no such object says more than this.
  if (error.code !== 'not_found' || error.param === undefined || !hasGeneralHint(error)) return error
  const argument = error.param.split('.').findLast((step) => !/^\d+$/.test(step)) ?? ''
  const hint = whereToLook(argument, source)
  return hint === undefined ? error : error.with(error.message, { hint })
}

/**
 * Equal for the same operation and input, whatever the order of object members. Names are part of it as they were sent: an id that
 * stands in the place of one is made of it.
 */
function fingerprint(operation: Operation, args: Record<string, unknown>, names: Name[]): string {
  const event = names.find(({ param }) => param === 'event')?.id
  const said = [operation.name, event === undefined ? args : { ...args, event }]
  return hash('sha256', JSON.stringify(said, withSortedMembers))
}

function withSortedMembers(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
