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

/**
 * Where the log goes: readable lines if standard error is a terminal, else JSON. Writes are synchronous, so that nothing is lost when the
 * process exits.
 */
export async function openLogStream(format = process.stderr.isTTY ? 'pretty' : 'json'): Promise<DestinationStream> {
  const stream = format === 'json' ? pino.destination({ dest: 2, sync: true }) : await openPretty()
  // Writing to a closed terminal must not end the process in the middle of a stop.
  stream.on('error', () => {})
  return stream
}

async function openPretty() {
  // Loaded here: a service logs JSON and does not need it.
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination: 2,
    sync: true,
    colorize: process.stderr.isTTY && !process.env.NO_COLOR,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    messageFormat: '{msg}{if method} {method}{end}{if path} {path}{end}{if status} {status}{end}',
    ignore: 'method,path,status',
  })
}
