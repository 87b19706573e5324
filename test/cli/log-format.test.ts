// What the log looks like: lines for a person in a terminal, JSON for everything else, and nothing of it lost at the end.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { copyDataDirectory } from '../support/data-directory.ts'
import { hasTerminals, openTerminal } from '../support/pseudo-terminal.ts'
import { cleanUp, end, environment, freePort, repository, spawnUsher, temporaryFolder, waitFor } from './support.ts'

afterAll(cleanUp)

const importOf = (file: string) => pathToFileURL(join(repository, 'src', file)).href

/** A program that logs so many lines, and a request, and is gone at once. */
function program(lines: number): string {
  const file = join(temporaryFolder(), 'program.mjs')
  writeFileSync(
    file,
    `import { createLog } from '${importOf('process/log.ts')}'
     import { openLogStream } from '${importOf('process/log-stream.ts')}'
     const log = createLog('info', await openLogStream(process.env.LOG_FORMAT))
     for (let i = 0; i < ${lines}; i += 1) log.info({ i }, 'a line')
     log.info({ request_id: 'x', method: 'GET', path: '/api/v1/me', status: 200, key: 'secret' }, 'request')
     process.exit(0)`,
  )
  return file
}

const isJson = (line: string) => line.startsWith('{') && JSON.parse(line)

test('into a pipe it is JSON, and complete when the process exits', async () => {
  const { ended } = spawnUsher([program(1_000)], { dataDir: '', command: [process.execPath] })
  const lines = (await ended).stderr.trim().split('\n')
  expect(lines).toHaveLength(1_001)
  expect(lines.every(isJson)).toBe(true)
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ msg: 'request', path: '/api/v1/me', status: 200 })
})

test('LOG_FORMAT=pretty makes it lines for a person, which are complete as well', async () => {
  const env = { LOG_FORMAT: 'pretty' }
  const { ended } = spawnUsher([program(1_000)], { dataDir: '', command: [process.execPath], env })
  const lines = (await ended).stderr.trim().split('\n')
  expect(lines).toHaveLength(1_001)
  expect(lines[0]).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: a line \{"i":0\}$/)
  expect(lines.at(-1)).toMatch(/INFO: request GET \/api\/v1\/me 200 \{"request_id":"x"/)
})

// A machine of continuous integration has to have one, or this would be skipped without anybody noticing.
test.skipIf(!hasTerminals && process.env.CI !== 'true')('in a terminal it is lines for a person', async () => {
  const port = await freePort()
  const dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  const env = environment(dataDir, { PORT: String(port) })
  const terminal = openTerminal('npm start', { cwd: repository, env })
  onTestFinished(() => end(terminal.child))
  await waitFor(() => terminal.screen().includes('/check-ins'), 30_000)
  await fetch(`http://127.0.0.1:${port}/health`)
  await expect.poll(terminal.screen).toMatch(/INFO.*: .*request GET \/health 200/)
  expect(terminal.screen()).not.toContain('{"level"')
  terminal.type('\x03')
  await terminal.ended
})
