// Destination of the log: readable lines if standard error is a terminal, else JSON. Writes are synchronous, so that nothing is
// lost when the process exits.

import { type DestinationStream, pino } from 'pino'

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
