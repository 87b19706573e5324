// One wrapper for everything the database can raise: in comes the error as PostgREST words it, out goes the refusal.
// Usher's own functions raise PTxyz with code and param in the detail (private.refuse); the rest is what Postgres itself says.

import { Refusal, toRefusal, unavailable } from './refusal.ts'
import { validationFailed } from './validation.ts'

type DatabaseError = { code: string; message: string; details?: unknown; hint?: unknown }

// 40P01 deadlock, 40001 serialisation, 55P03 lock timeout, 57014 statement timeout, 53xxx resources, 57P0x shutdown,
// 08xxx connection, PGRST00x PostgREST without a connection.
const passing = /^(40P01|40001|55P03|57014|53...|57P0.|08...|PGRST00.)$/
// Check, foreign key and uniqueness violations, text that does not fit, numbers out of range, malformed values.
const badValue = /^(23514|23503|23505|23502|22...)$/

/** @param args names of the arguments sent, to find the field that a constraint speaks of. */
export function refusalOfDatabase(error: DatabaseError, args: string[]): Refusal {
  const raised = /^PT(\d{3})$/.exec(error.code)
  if (raised) return refusalRaised(Number(raised[1]), error)
  if (passing.test(error.code)) return unavailable(error)
  if (badValue.test(error.code)) return refusalOfConstraint(error, args)
  if (error.code === '42501') {
    return new Refusal(403, 'forbidden', 'The database does not allow this to the role of the operation.', {
      cause: error,
    })
  }
  return toRefusal(error)
}

function refusalRaised(status: number, error: DatabaseError): Refusal {
  const detail = JSON.parse(String(error.details)) as { code: string; param?: string; details?: unknown }
  return new Refusal(status, detail.code, error.message, {
    param: detail.param,
    details: detail.details,
    hint: typeof error.hint === 'string' ? error.hint : undefined,
    headers: status === 401 ? { 'WWW-Authenticate': 'Bearer realm="usher", error="invalid_token"' } : {},
    cause: error,
  })
}

/** Constraints are named `table_column_reads_as_a_rule`; the rule names the field. Values are never repeated. */
function refusalOfConstraint(error: DatabaseError, args: string[]): Refusal {
  const constraint = /constraint "([a-z0-9_]+)"/.exec(error.message)?.[1]
  const field = args.find((name) => constraint?.includes(`_${name}_`)) ?? 'input'
  const rule = constraint === undefined ? 'has a value the database does not accept' : `violates ${constraint}`
  return validationFailed([{ param: field, message: rule }])
}
