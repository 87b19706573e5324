// One call of one operation, whichever door it came in by: scope, input, token, one RPC, answer. Everything the call
// means happens in the SQL function of the same name.

import { createHash } from 'node:crypto'
import * as z from 'zod'
import { isList, isRead, type Operation, roleOf } from '../operation.ts'
import type { DataApi } from './data-api.ts'
import type { Principal, Principals } from './principals.ts'
import { Refusal } from './refusal.ts'
import type { Source, Tokens } from './tokens.ts'
import { parseInput } from './validation.ts'

/** Who calls, as the door found out. `key` is the secret itself: never log a Caller. */
export type Caller = { key: string; principal: Principal; source: Source }

export type Answer = {
  status: number
  body: Record<string, unknown>
  /** The answer was recorded earlier under the same idempotency key. */
  replayed: boolean
}

/** @throws Refusal, whatever the reason. */
export type Call = (
  operation: Operation,
  caller: Caller,
  input: Record<string, unknown>,
  idempotencyKey?: unknown,
) => Promise<Answer>

/** What a write answers in SQL, so that a refusal can commit and a replay can say so. */
type Outcome = {
  status: number
  data?: unknown
  /** What it did, or in a dry run would do, beyond the object itself. */
  effect?: unknown
  error?: { code: string; message: string; param?: string; details?: unknown; hint?: string } | null
  replayed?: boolean
}

/** Chosen by the caller, up to 255 characters; kept 24 hours. */
export const IdempotencyKeySchema = z
  .string('must be text')
  .min(1, 'must not be empty')
  .max(255, 'must be at most 255 characters')
  .refine((key) => !/\p{Cc}/u.test(key) && key.isWellFormed(), 'must not hold control characters')
  .describe('Any text of up to 255 characters, new for each intended effect. Repeat it when repeating the call.')

const IdempotencyInput = z.strictObject({ idempotency_key: IdempotencyKeySchema.optional() })

export function createCall({
  dataApi,
  tokens,
  principals,
  onWritten = () => {},
}: {
  dataApi: DataApi
  tokens: Tokens
  principals: Principals
  /** Something was written, and something may be owed to somebody. */
  onWritten?: (() => void) | undefined
}): Call {
  async function run(operation: Operation, caller: Caller, args: Record<string, unknown>): Promise<unknown> {
    const token = await tokens.forPrincipal(caller.principal, roleOf(operation), caller.source)
    try {
      return await dataApi.rpc(operation.name, args, token)
    } catch (error) {
      // The key changed since it was resolved: the next request must not be told so by the cache.
      if (error instanceof Refusal && (error.status === 401 || error.status === 403))
        principals.forget(caller.principal)
      throw error
    }
  }

  /** A refusal that needs no database must still not be told to a key that was revoked within the last minute. */
  async function whileValid<T>(caller: Caller, work: () => T): Promise<T> {
    try {
      return work()
    } catch (refusal) {
      await principals.resolve(caller.key)
      throw refusal
    }
  }

  return async (operation, caller, input, idempotencyKey) => {
    await requireScope(operation, caller, principals)
    const args = await whileValid(caller, () => parseInput(operation.input, input))

    if (isRead(operation)) {
      const result = await run(operation, caller, args)
      const body = isList(operation) ? (result as Record<string, unknown>) : { data: result }
      return { status: 200, body, replayed: false }
    }

    const { idempotency_key } = await whileValid(caller, () =>
      parseInput(IdempotencyInput, { idempotency_key: idempotencyKey }),
    )
    const outcome = (await run(operation, caller, {
      ...args,
      ...(idempotency_key !== undefined && { idempotency_key, request_fingerprint: fingerprint(operation, args) }),
    })) as Outcome
    const { status, data, effect, error, replayed = false } = outcome
    if (!replayed) onWritten()
    if (error) throw new Refusal(status, error.code, error.message, { ...error, replayed })
    return { status, body: effect === undefined ? { data } : { data, effect }, replayed }
  }
}

/** The database enforces the scope by the role; asking here first gives the answer its name, without a round trip. */
async function requireScope({ scope, name }: Operation, caller: Caller, principals: Principals): Promise<void> {
  if (scope === null || caller.principal.scopes.includes(scope)) return
  // Perhaps the scope was added within the last minute, or the key revoked: ask before refusing.
  caller.principal = await principals.resolve(caller.key)
  if (caller.principal.scopes.includes(scope)) return
  throw new Refusal(403, 'missing_scope', `The API key lacks the scope ${scope}, which ${name} needs.`, {
    details: { scope },
    hint: 'Use a key that has the scope, or add the scope to this key.',
  })
}

/** Same operation and same input, same fingerprint: schemas put the fields in order. */
function fingerprint(operation: Operation, args: Record<string, unknown>): string {
  return createHash('sha256')
    .update(JSON.stringify([operation.name, args]))
    .digest('hex')
}
