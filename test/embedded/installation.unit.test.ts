// What a data directory is known by: names that a move keeps, and of which a copy has none.

import { chmodSync, cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { namesOfDataDirectory } from '../../src/local/installation.ts'

function dataDirectory() {
  const folder = mkdtempSync(join(tmpdir(), 'usher-installation-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  mkdirSync(join(dataDir, 'database', 'global'), { recursive: true })
  writeFileSync(join(dataDir, 'database', 'PG_VERSION'), '17\n')
  writeFileSync(join(dataDir, 'database', 'global', 'pg_control'), 'control')
  return { folder, dataDir }
}

test('a move of the folder, what Postgres writes and a change of mode keep every name', () => {
  const { folder, dataDir } = dataDirectory()
  const names = namesOfDataDirectory(dataDir)
  expect(names[0]).toMatch(/^inodes:\d+:\d+:\d+$/)
  mkdirSync(join(folder, 'elsewhere'))
  const moved = join(folder, 'elsewhere', 'usher')
  renameSync(dataDir, moved)
  writeFileSync(join(moved, 'database', 'global', 'pg_control'), 'written again')
  writeFileSync(join(moved, 'database', 'postmaster.pid'), '1')
  chmodSync(join(moved, 'database'), 0o750)
  // When it was made is told from when it was changed, which in a new one may be the same.
  expect(namesOfDataDirectory(moved)).toEqual(expect.arrayContaining(names))
})

test('a copy has none of them, even with all times preserved and put in the place of the original', () => {
  const { folder, dataDir } = dataDirectory()
  const names = namesOfDataDirectory(dataDir)
  cpSync(dataDir, join(folder, 'backup'), { recursive: true, preserveTimestamps: true })
  renameSync(dataDir, join(folder, 'original'))
  renameSync(join(folder, 'backup'), dataDir)
  const ofTheCopy = namesOfDataDirectory(dataDir)
  // When it was made is among them, unless that was in the same tick of the clock as the last change.
  expect(ofTheCopy[0]).toMatch(/^inodes:/)
  for (const name of ofTheCopy) expect(names).not.toContain(name)
})

test('where there is no database there are none', () => {
  expect(namesOfDataDirectory(join(tmpdir(), 'usher-installation-that-is-not-there'))).toEqual([])
})
