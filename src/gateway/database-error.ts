// One wrapper for everything the database can raise: in comes the error as PostgREST words it, out goes the refusal.
// Usher's own functions raise PTxyz with code and param in the detail (private.refuse); the rest is what Postgres itself says.

import { ApiError, invalidTokenChallenge, outcomeUnknown, toApiError, unavailable } from './api-error.ts'
import { validationFailed } from './validation.ts'

/** As postgrest-js hands it on; a proxy in between may leave out everything but the message. */
type DatabaseError = { code?: string; message: string; details?: unknown; hint?: unknown }

// Certainly rolled back, or never begun: 40P01 deadlock, 40001 serialisation, 55P03 lock timeout, 57014 statement timeout, 53xxx
// resources, 57P03 no connections taken now, PGRST000, 002 and 003 PostgREST that got no connection.
const passing = /^(40P01|40001|55P03|57014|53...|57P03|PGRST00[023])$/
// The connection broke, perhaps after the commit: 08xxx connection, 40003 completion unknown, 57P0x shutdown, PGRST001 PostgREST
// that lost its connection in the middle of the request.
const broken = /^(08...|40003|57P0.|PGRST001)$/
const deadlockOrSerialisation = /^(40P01|40001)$/
// A race of Postgres's own, of a lock with an update that is just being rolled back; it has no code but XX000.
const raceOfPostgres = /^new multixact has more than one updating member/
const uniqueViolation = '23505'
// Of fetch, as postgrest-js hands it on: there was no connection to send anything on.
const neverSent = /\((ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)\)/
// Check, foreign key and not-null violations, and values that are malformed, too long or out of range.
const badValue = /^(23514|23503|23502|22...)$/

/** It rolled back only because somebody else was at it at the same moment: a second try may find its way, or a better refusal. */
export function lostRace({ code = '', message }: DatabaseError): boolean {
  return deadlockOrSerialisation.test(code) || code === uniqueViolation || raceOfPostgres.test(message)
}

/**
 * @param status of the HTTP answer; 0 when there was none.
 * @param args names of the arguments sent, to find the field that a constraint speaks of.
 * @param repeatable see `DataApi`.
 */
export function refusalOfDatabase(
  error: DatabaseError,
  status: number,
  args: string[],
  repeatable?: boolean,
): ApiError {
  const code = error.code ?? ''
  const raised = /^PT(\d{3})$/.exec(code)
  if (raised) return refusalRaised(Number(raised[1]), error)
  if (passing.test(code) || raceOfPostgres.test(error.message)) return unavailable(error)
  if (broken.test(code)) return lost(error, repeatable)
  if (code === uniqueViolation) return refusalOfUniqueness(error, args)
  if (badValue.test(code)) return refusalOfValue(error, args)
  if (code === '42501') {
    return new ApiError(403, 'forbidden', 'The database does not allow this to the role of the operation.', {
      cause: error,
    })
  }
  return /^([0-9A-Z]{5}|PGRST\d+)$/.test(code) ? toApiError(error) : refusalFromBetween(error, status, repeatable)
}

/** Of whatever stands between us and Postgres, or of nobody. PostgREST says 400 with an empty code when its connection breaks. */
function refusalFromBetween(error: DatabaseError, status: number, repeatable: boolean | undefined): ApiError {
  if (status === 429 || (status === 0 && neverSent.test(String(error.details)))) return unavailable(error)
  const certain = status > 400 && status < 500 && status !== 408
  return certain ? toApiError(error) : lost(error, repeatable)
}

const lost = (error: DatabaseError, repeatable: boolean | undefined): ApiError =>
  repeatable === undefined ? unavailable(error) : outcomeUnknown(error, repeatable)

function refusalRaised(status: number, error: DatabaseError): ApiError {
  const detail = JSON.parse(String(error.details)) as { code: string; param?: string; details?: unknown }
  return new ApiError(status, detail.code, error.message, {
    param: detail.param,
    details: detail.details,
    hint: typeof error.hint === 'string' ? error.hint : undefined,
    headers: status === 401 ? invalidTokenChallenge : {},
    cause: error,
  })
}

function refusalOfUniqueness(error: DatabaseError, args: string[]): ApiError {
  // A key reads from the outside in, `events_organisation_id_slug_key`: what is taken stands last.
  const param = fieldsNamed(error, args).at(-1)
  // No field of the caller's: two of our own codes met, or two requests did. Another try finds its way.
  if (param === undefined) return unavailable(error)
  return new ApiError(409, 'already_exists', `Another object has this ${param} already.`, { param, cause: error })
}

function refusalOfValue(error: DatabaseError, args: string[]): ApiError {
  const constraint = constraintOf(error)
  if (constraint === undefined) {
    return validationFailed([{ param: 'input', message: 'has a value that the database does not accept' }])
  }
  // A rule begins with its subject: `events_ends_at_is_after_starts_at`.
  const [param] = fieldsNamed(error, args)
  // A rule that no input can break by itself was broken by us.
  if (param === undefined) return toApiError(error)
  const table = /relation "([a-z_]+)"/.exec(error.message)?.[1] ?? ''
  const rule = constraint.slice(constraint.startsWith(`${table}_`) ? table.length + 1 : 0).replaceAll('_', ' ')
  return validationFailed([{ param, message: `breaks the rule "${rule}"` }])
}

/** The caller's fields in the name of a constraint, `table_column_reads_as_a_rule`, as they follow there. Values are never repeated. */
function fieldsNamed(error: DatabaseError, args: string[]): string[] {
  const name = `${constraintOf(error) ?? ''}_`
  const position = (field: string) => name.indexOf(`_${field}_`)
  return args.filter((field) => position(field) >= 0).sort((a, b) => position(a) - position(b))
}

function constraintOf(error: DatabaseError): string | undefined {
  return /constraint "([a-z0-9_]+)"/.exec(error.message)?.[1]
}
