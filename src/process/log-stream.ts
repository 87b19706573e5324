// Where the log is written: lines for a person where standard error is a terminal, else JSON. Both are written synchronously, so
// that nothing is lost when the process exits.

import { type DestinationStream, pino } from 'pino'

export async function openLogStream(format = process.stderr.isTTY ? 'pretty' : 'json'): Promise<DestinationStream> {
  const stream = format === 'json' ? pino.destination({ dest: 2, sync: true }) : await openPretty()
  // A terminal that was closed must not end the process in the middle of a stop.
  stream.on('error', () => {})
  return stream
}

async function openPretty() {
  // Loaded here, because a service has no use for it.
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
