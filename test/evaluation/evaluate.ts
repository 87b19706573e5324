// `npm run evaluate`: serves the errands to whatever client plays them, and judges what became of them. See README.md.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { startEmbeddedStack } from '../../src/local/stack.ts'
import { createLog } from '../../src/process/log.ts'
import { stopSignal, untilAborted } from '../../src/process/stop-signals.ts'
import { errands } from './errands/index.ts'
import { serveErrands } from './serve.ts'

const help = `Usage: npm run evaluate -- --serve PORT [--errand NAME]

Gives a model the errands of an organiser (test/evaluation/errands), each in three wordings. Starts an Usher of its own,
which sends nothing. Prints words, an address and a key for each errand and wording: play them with any MCP client.
Runs until it is stopped. Takes 20 seconds to start.

  --serve PORT    The loopback port of the errands.
  --errand NAME   Only this errand.

Judge errand NAME in wording N:
  curl http://127.0.0.1:PORT/verdicts/NAME/N -d 'ANSWER OF THE MODEL'`

const { values } = parseArgs({
  options: { help: { type: 'boolean' }, errand: { type: 'string' }, serve: { type: 'string' } },
})
if (values.serve === undefined) console.log(help)
else await serve(Number(values.serve))

async function serve(port: number): Promise<void> {
  const stopping = stopSignal(() => process.exit(1))
  const chosen = errands.filter(({ name }) => values.errand === undefined || name === values.errand)
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-errands-'))
  try {
    const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
    const database = new pg.Pool({ connectionString: stack.databaseUrl, max: 2 })
    const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('error') })
    try {
      const served = await serveErrands(chosen, { database, apiUrl: app.url, port })
      console.log(JSON.stringify(served.entries, null, 2))
      await untilAborted(stopping)
      await served.close()
    } finally {
      await app.close()
      await database.end()
      await stack.stop()
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
