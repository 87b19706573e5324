// Writes src/openapi/examples.json anew, `npm run examples`: starts Usher on a temporary folder, tells it the story, and keeps
// what it answers. Told twice, the story reads the same, so a changed line is a changed answer.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/config.ts'
import { findRunningStack } from '../src/embedded/stack.ts'
import { createLog } from '../src/gateway/log.ts'
import { start } from '../src/start.ts'
import { tellStory } from './examples/story.ts'

const dataDir = await mkdtemp(join(tmpdir(), 'usher-examples-'))
try {
  const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('error'), () => {})
  try {
    const databaseUrl = (await findRunningStack(dataDir))?.databaseUrl
    if (databaseUrl === undefined) throw new Error('the database is not running')
    const examples = await tellStory(usher.url, databaseUrl)
    const file = join(import.meta.dirname, '..', 'src', 'openapi', 'examples.json')
    await writeFile(file, `${JSON.stringify(examples, null, 2)}\n`)
    console.log(`recorded ${examples.length} examples`)
  } finally {
    await usher.stop()
  }
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
