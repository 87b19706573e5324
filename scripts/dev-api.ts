// The API of `npm run dev`: the service that `usher start` starts, on the stack that scripts/dev.ts keeps running.

import { readConfig } from '../src/cli/config.ts'
import { joinRunning, start } from '../src/cli/start.ts'
import { createLog, openLogStream } from '../src/process/log.ts'
import { StartError } from '../src/process/start-error.ts'
import { stopSignal, untilAborted } from '../src/process/stop-signals.ts'

const say = (text: string): void => void process.stderr.write(`${text}\n`)

const stopping = stopSignal(() => process.exit(1))
// scripts/dev.ts has ended, however that came about.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
try {
  const config = readConfig(process.env)
  const log = createLog(config.logLevel, await openLogStream(config.logFormat))
  const { url, stop } = await start(config, log, say, stopping, joinRunning)
  say(`The API is ready at ${url} after ${Math.round(performance.now())} ms.`)
  await untilAborted(stopping)
  await stop()
  process.exit(0)
} catch (error) {
  if (!(error instanceof StartError)) throw error
  say(error.message)
  process.exit(1)
}
