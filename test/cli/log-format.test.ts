// What the log looks like, and that nothing of it is lost at the end. In a terminal: lifecycle.test.ts.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { cleanUp, repository, spawnUsher, temporaryFolder } from './support.ts'

afterAll(cleanUp)

// As `bin/usher.js` has it.
const compiled = { NODE_COMPILE_CACHE: join(repository, 'node_modules/.cache/usher') }
const importOf = (file: string) => pathToFileURL(join(repository, 'src', file)).href

/** A program that logs so many lines, and a request, and is gone at once. */
function program(lines: number): string {
  const file = join(temporaryFolder(), 'program.mjs')
  writeFileSync(
    file,
    `import { createLog, openLogStream } from '${importOf('process/log.ts')}'
     const log = createLog('info', await openLogStream(process.env.LOG_FORMAT))
     for (let i = 0; i < ${lines}; i += 1) log.info({ i }, 'a line')
     log.info({ request_id: 'x', method: 'GET', path: '/api/v1/me', status: 200, key: 'secret' }, 'request')
     process.exit(0)`,
  )
  return file
}

const isJson = (line: string) => line.startsWith('{') && JSON.parse(line)

test('into a pipe it is JSON, and complete when the process exits', async () => {
  const { ended } = spawnUsher([program(1_000)], { dataDir: '', command: [process.execPath], env: compiled })
  const lines = (await ended).stderr.trim().split('\n')
  expect(lines).toHaveLength(1_001)
  expect(lines.every(isJson)).toBe(true)
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ msg: 'request', path: '/api/v1/me', status: 200 })
})

test('LOG_FORMAT=pretty makes it lines for a person, which are complete as well', async () => {
  const env = { LOG_FORMAT: 'pretty', ...compiled }
  const { ended } = spawnUsher([program(1_000)], { dataDir: '', command: [process.execPath], env })
  const lines = (await ended).stderr.trim().split('\n')
  expect(lines).toHaveLength(1_001)
  expect(lines[0]).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: a line \{"i":0\}$/)
  expect(lines.at(-1)).toMatch(/INFO: request GET \/api\/v1\/me 200 \{"request_id":"x"/)
})
