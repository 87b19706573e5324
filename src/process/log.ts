// The log: JSON lines. In come a level and where to write, out goes a pino logger that blanks secrets and cuts errors down to
// what they may say.

import { type DestinationStream, type Logger, pino } from 'pino'

/** Errors by code and message, and nothing of requests and responses but what a line says itself. */
export const serializers = { err: describeError, req: () => undefined, res: () => undefined }

/** Logs go to standard error: standard output is for what a person or a script asked for. */
export function createLog(level: string, destination: DestinationStream = pino.destination(2)): Logger {
  return pino(
    {
      level,
      base: null,
      // A belt beside the braces: nothing logs these, and if something did, this would blank them.
      redact: ['*.authorization', '*.headers', '*.key', '*.token', '*.email', '*.body'],
      serializers,
    },
    destination,
  )
}

/** Database errors repeat values in their details and hints (an e-mail address in a unique violation): code and message only. */
function describeError(error: unknown): Record<string, unknown> {
  if (typeof error !== 'object' || error === null) return { message: String(error) }
  const { code, message, stack, cause } = error as {
    code?: unknown
    message?: unknown
    stack?: unknown
    cause?: unknown
  }
  return {
    code,
    message,
    ...(error instanceof Error && { stack }),
    ...(cause !== undefined && { cause: describeError(cause) }),
  }
}
