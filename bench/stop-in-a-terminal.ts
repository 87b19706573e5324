// Measures how often Ctrl-C leaves a process running, and how long stopping takes: `npm run bench:stop -- [checkout] [runs]`.
// Runs `npm start` in a pseudo-terminal, types Ctrl-C once it is ready, and counts the processes on its data directory a second after npm
// has ended.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { environment, freePort, processesOn, waitFor } from '../test/cli/support.ts'
import { openTerminal } from '../test/support/pseudo-terminal.ts'

const [checkout = join(import.meta.dirname, '..'), runs = '9'] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'usher-bench-'))
const dataDir = join(folder, 'data')
const times: number[] = []
let left = 0
for (let run = 0; run < Number(runs); run += 1) {
  const env = environment(dataDir, { PORT: String(await freePort()) })
  const terminal = openTerminal('npm start', { cwd: checkout, env })
  await waitFor(() => terminal.screen().includes('Usher is ready'))
  await sleep(500)
  const typed = Date.now()
  terminal.type('\x03')
  await terminal.ended
  times.push(Date.now() - typed)
  await sleep(1_000)
  const remaining = processesOn(dataDir)
  if (remaining.length > 0) left += 1
  console.log(`run ${run + 1}: npm ended after ${times.at(-1)} ms; left running: ${remaining.length}`)
}
for (const pid of execFileSync('ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n')) {
  const [, id, command = ''] = /^\s*(\d+) (.*)$/.exec(pid) ?? []
  if (command.includes(dataDir)) process.kill(Number(id), 'SIGKILL')
}
rmSync(folder, { recursive: true, force: true })
times.sort((a, b) => a - b)
console.log(`${left} of ${runs} runs left a process running; npm ended after ${times[0]} to ${times.at(-1)} ms`)
