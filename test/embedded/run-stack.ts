// A program that runs the stack on the data directory named by its argument until it is killed, and says when it is up:
// one line of JSON. For tests of what happens when a whole process ends.

import { startEmbeddedStack } from '../../src/local/stack.ts'

const [dataDir = ''] = process.argv.slice(2)
const starting = startEmbeddedStack({ dataDir, progress: (message) => process.stderr.write(`${message}\n`) })
// From the first moment, so that no signal finds nobody listening; one that comes while it starts, the start itself heeds.
process.once('SIGTERM', () => {
  void starting.then(
    (stack) => stack.stop(),
    () => {},
  )
})
const stack = await starting
process.stdout.write(`${JSON.stringify({ databaseUrl: stack.databaseUrl, dataApiUrl: stack.dataApiUrl })}\n`)
process.stderr.write(`${await stack.failed}\n`)
