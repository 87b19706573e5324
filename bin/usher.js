#!/usr/bin/env node
// Starts the command line if this Node can run TypeScript. Plain JavaScript, so that an older Node gets a sentence.

if (process.features.typescript) {
  await import('../src/cli.ts')
} else {
  process.stderr.write(
    `Usher needs Node 22.18 or newer, and this is ${process.version}. Install Node 24, or run \`npm install\` without --omit=optional ` +
      'on Linux or Windows, which brings it: then use `npm start`, or `npx usher`.\n',
  )
  process.exitCode = 1
}
