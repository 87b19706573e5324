// A program that takes the lock of each data directory named by its arguments, a second apart from the given moment on, writes which it
// got (one line of JSON) and keeps them until its standard input ends.

import { openDataDirectory } from '../../src/local/data-directory.ts'
import { acquireLock } from '../../src/local/lock.ts'

const [first = '', ...folders] = process.argv.slice(2)
const held: { folder: string; release: () => void }[] = []
for (const [index, folder] of folders.entries()) {
  // Without sleeping, so that two programs arrive within a millisecond.
  while (Date.now() < Number(first) + index * 1000);
  const lock = await Promise.try(() => acquireLock(openDataDirectory(folder))).catch(() => null)
  if (lock !== null) held.push({ folder, ...lock })
}
process.stdout.write(`${JSON.stringify(held.map(({ folder }) => folder))}\n`)
process.stdin.on('end', () => held.forEach(({ release }) => void release())).resume()
