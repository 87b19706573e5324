// Records the answers to the story in docs/reference/examples.json and notifications.json: `npm run examples`. No courier runs, so what is pending stays.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedStack } from '../src/local/stack.ts'
import { createLog } from '../src/process/log.ts'
import { tellStory } from './examples/story.ts'
import { serveApp } from './support/serve-app.ts'

const dataDir = await mkdtemp(join(tmpdir(), 'usher-examples-'))
try {
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('error') })
  try {
    for (const [name, recorded] of Object.entries(await tellStory(app.url, stack.databaseUrl)))
      await writeFile(join(import.meta.dirname, `../docs/reference/${name}.json`), JSON.stringify(recorded))
  } finally {
    await app.close()
    await stack.stop()
  }
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
