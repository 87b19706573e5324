// Maps every error that PostgREST reports to an ApiError. Usher's own functions raise PTxyz with code and param in the detail
// (private.refuse); everything else comes from Postgres or PostgREST. Values that a caller sent are never repeated.

import { ApiError, invalidTokenChallenge, outcomeUnknown, outOfTime, toApiError, unavailable } from './api-error.ts'
import { validationFailed } from './validation.ts'

/** As supabase-js returns it; from a proxy in between, only the message is certain. */
export type DatabaseError = { code?: string; message: string; details?: unknown; hint?: unknown }

// Certainly rolled back, or never started: 40P01 deadlock, 40001 serialisation, 55P03 lock timeout, 53xxx resources,
// 57P03 not accepting connections, PGRST000, 002 and 003 PostgREST without a connection.
const transient = /^(40P01|40001|55P03|53...|57P03|PGRST00[023])$/
// PostgREST refuses the token, mostly because of its time, or cannot check it; nothing was executed.
const tokenRefused = /^PGRST30[0-3]$/
// Rolled back because it took longer than the role's statement_timeout: the same again would, too.
const statementTimeout = '57014'
// The connection broke, perhaps after the commit: 08xxx connection, 40003 completion unknown, 57P0x shutdown, PGRST001 PostgREST
// lost its connection during the request.
const connectionLost = /^(08...|40003|57P0.|PGRST001)$/
const deadlockOrSerialisation = /^(40P01|40001)$/
// A race inside Postgres, between a lock and an update that is being rolled back; its code is only XX000.
const raceOfPostgres = /^new multixact has more than one updating member/
// Rolled back because a file may not grow (a quota, RLIMIT_FSIZE); also XX000. A disk that is full is 53100.
const noRoom = /^could not (extend|write to) file .*: (File too large|Disk quota exceeded)$/
const changesMany =
  /^(apply|update|complete|unpublish|cancel|delete)_event$|^(cancel|update|reopen)_order$|^erase_|reminders$|^message_/
const uniqueViolation = '23505'
const checkViolation = '23514'
// Causes of a failed fetch, in postgrest-js's details: there was no connection, so nothing was sent.
const neverSent = /\((ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)\)/
// Check, foreign key and not-null violations, and values that are malformed, too long or out of range.
const badValue = /^(23514|23503|23502|22...)$/

/** Rolled back only because of a concurrent call: a retry may succeed, or get a more precise error. */
export function lostRace({ code = '', message }: DatabaseError): boolean {
  return deadlockOrSerialisation.test(code) || code === uniqueViolation || raceOfPostgres.test(message)
}

/** The token was refused, not what was called with it. */
export const refusedToken = ({ code = '' }: { code?: string }): boolean => tokenRefused.test(code)

/** The check constraint that a call broke: its comment has the sentence to refuse with (api.explain_rule). */
export const brokenRule = (error: DatabaseError): string | undefined =>
  error.code === checkViolation ? constraintOf(error) : undefined

/**
 * @param status of the HTTP response; 0 if there was none.
 * @param args names of the fields sent, to find the one that a constraint is about.
 * @param repeatable see `DataApi`.
 * @param fn the SQL function, where a statement of its own was sent for it.
 */
export function apiErrorOfDatabase(
  error: DatabaseError,
  status: number,
  args: string[],
  repeatable?: boolean,
  fn?: string,
): ApiError {
  const code = error.code ?? ''
  const raised = /^PT(\d{3})$/.exec(code)
  if (raised) return raisedError(Number(raised[1]), error)
  if (transient.test(code) || tokenRefused.test(code)) return unavailable(error)
  if (raceOfPostgres.test(error.message) || noRoom.test(error.message)) return unavailable(error)
  if (code === statementTimeout) return outOfTime(error, lessThan(args, fn))
  if (connectionLost.test(code)) return answerLost(error, repeatable)
  if (code === uniqueViolation) return uniquenessError(error, args)
  if (badValue.test(code)) return valueError(error, args)
  if (code === '42501') {
    return new ApiError(403, 'forbidden', 'The database does not permit this to the role of the operation.', {
      cause: error,
    })
  }
  return /^([0-9A-Z]{5}|PGRST\d+)$/.test(code) ? toApiError(error) : transportError(error, status, repeatable)
}

/** What to send in place of a request that took too long. */
function lessThan(args: string[], fn: string | undefined): string {
  if (fn === 'import_attendees' || fn === 'check_in_batch') return 'Send the list in parts, each half as long.'
  if (args.includes('limit')) return 'Ask for less: a smaller limit, or another filter or search.'
  // What may itself be what others wait for.
  if (fn !== undefined && changesMany.test(fn))
    return 'The change is too large for one request, or waited for another one. Send it again when no other one runs, then in smaller parts.'
  return 'Find the blocking change, such as one of thousands of tickets, and send the request after it.'
}

/** From a proxy in front of PostgREST, or without any response. PostgREST itself answers 400 with an empty code when its connection breaks. */
function transportError(error: DatabaseError, status: number, repeatable: boolean | undefined): ApiError {
  if (status === 429 || (status === 0 && neverSent.test(String(error.details)))) return unavailable(error)
  const certain = status > 400 && status < 500 && status !== 408
  return certain ? toApiError(error) : answerLost(error, repeatable)
}

const answerLost = (error: DatabaseError, repeatable: boolean | undefined): ApiError =>
  repeatable === undefined ? unavailable(error) : outcomeUnknown(error, repeatable)

function raisedError(status: number, error: DatabaseError): ApiError {
  const detail = JSON.parse(String(error.details)) as { code: string; param?: string; details?: unknown }
  return new ApiError(status, detail.code, error.message, {
    param: detail.param,
    details: detail.details,
    hint: typeof error.hint === 'string' ? error.hint : undefined,
    headers: status === 401 ? invalidTokenChallenge : {},
    cause: error,
  })
}

function uniquenessError(error: DatabaseError, args: string[]): ApiError {
  // Key names list columns from the outside in, `events_organisation_id_slug_key`: the value that is taken is in the last.
  const param = fieldsNamed(error, args).at(-1)
  // Not a field of the caller's: two generated codes or two requests collided. A retry succeeds.
  if (param === undefined) return unavailable(error)
  return new ApiError(409, 'already_exists', `Another object has this ${param} already.`, { param, cause: error })
}

function valueError(error: DatabaseError, args: string[]): ApiError {
  const constraint = constraintOf(error)
  if (constraint === undefined) {
    return validationFailed([{ param: 'input', message: 'has a value that the database does not accept' }])
  }
  // Constraint names begin with their subject: `events_ends_at_is_after_starts_at`.
  const [param] = fieldsNamed(error, args)
  // No field of the caller's can break this rule: the fault is Usher's.
  if (param === undefined) return toApiError(error)
  const table = /relation "([a-z_]+)"/.exec(error.message)?.[1] ?? ''
  const rule = constraint.slice(constraint.startsWith(`${table}_`) ? table.length + 1 : 0).replaceAll('_', ' ')
  return validationFailed([{ param, message: `breaks the rule "${rule}"` }])
}

/** The caller's fields that the name of the constraint contains (`table_column_reads_as_a_rule`), in their order there. */
function fieldsNamed(error: DatabaseError, args: string[]): string[] {
  const name = `${constraintOf(error) ?? ''}_`
  const position = (field: string) => name.indexOf(`_${field}_`)
  return args.filter((field) => position(field) >= 0).sort((a, b) => position(a) - position(b))
}

function constraintOf(error: DatabaseError): string | undefined {
  return /constraint "([a-z0-9_]+)"/.exec(error.message)?.[1]
}

/** Names of the fields sent: the arguments, and the members of `changes` and of list items. */
export function fieldsOf(args: Record<string, unknown>): string[] {
  const inside = [args.changes, ...Object.values(args).filter(Array.isArray).flat()]
  return [...new Set([args, ...inside.filter(isObject)].flatMap(Object.keys))]
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
