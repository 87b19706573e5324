// The logger: pino, with secrets redacted and errors reduced to code, message and stack. Must never log personal data.

import { type DestinationStream, type Logger, pino } from 'pino'

/** Errors without details and hints; of requests and responses only what a log line names itself. */
export const serializers = { err: describeError, req: () => undefined, res: () => undefined }

/** Logs go to standard error: standard output is for results. */
export function createLog(level: string, destination: DestinationStream = pino.destination(2)): Logger {
  return pino(
    {
      level,
      base: null,
      // A second line of defence: nothing logs these on purpose.
      redact: ['*.authorization', '*.headers', '*.key', '*.token', '*.email', '*.body'],
      serializers,
    },
    destination,
  )
}

/** Leaves out details and hints, where database errors repeat values (an e-mail address in a unique violation). */
function describeError(error: unknown): Record<string, unknown> {
  if (typeof error !== 'object' || error === null) return { message: String(error) }
  const { code, message, stack, cause } = error as Record<string, unknown>
  return {
    code,
    message,
    ...(error instanceof Error && { stack }),
    ...(cause !== undefined && { cause: describeError(cause) }),
  }
}
