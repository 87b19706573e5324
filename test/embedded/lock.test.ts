import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'

test('of two starts at the same moment exactly one gets the lock', async () => {
  const home = mkdtempSync(join(tmpdir(), 'usher-locks-'))
  const folders = Array.from({ length: 5 }, (_, index) => join(home, String(index)))
  for (const folder of folders) mkdirSync(folder, { mode: 0o700 })
  const args = [join(import.meta.dirname, 'race-locks.ts'), String(Date.now() + 1500), ...folders]
  const racers = [1, 2].map(() => spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] }))
  const got = await Promise.all(
    racers.map(async ({ stdout }) => {
      const [line] = await once(createInterface(stdout), 'line')
      return JSON.parse(line) as string[]
    }),
  )
  expect(got.flat().toSorted()).toEqual(folders)
  for (const { stdin } of racers) stdin.end()
  rmSync(home, { recursive: true })
})
