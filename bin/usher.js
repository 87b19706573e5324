#!/usr/bin/env node
// Starts the command line if this Node can run TypeScript. Plain JavaScript, so that an older Node gets a sentence.

import module from 'node:module'
import { join } from 'node:path'

// Node 22 warns of its SQLite, which undici loads and Usher does not use: between lines of a JSON log.
for (const show of process.listeners('warning')) {
  process.off('warning', show)
  process.on('warning', (warning) => warning.name === 'ExperimentalWarning' || show(warning))
}

if (process.features.typescript) {
  // Half of the time of a command is stripping types and compiling. Without a folder that it may write to, nothing is kept.
  module.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/usher'))
  const { main } = await import('../src/cli/cli.ts')
  await main()
} else {
  process.stderr.write(
    `Usher needs Node 22.18 or newer. This is ${process.version}. Install Node 24, or run \`npm install\` without --omit=optional ` +
      'on Linux or Windows, which brings it: then use `npm start`, or `npx usher`.\n',
  )
  process.exitCode = 1
}
