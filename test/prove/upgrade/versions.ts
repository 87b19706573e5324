// The migrations since the baseline, each with the code as it was before it: out of the history of git, which a shallow clone lacks.

import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const repository = join(import.meta.dirname, '../../..')
const migrationsFolder = 'supabase/migrations'

export type Step = {
  /** Names of files, applied together: those of one commit. */
  migrations: string[]
  /** The commit whose code ran until then. */
  before: string
}

export type ExtraMigration = { name: string; sql: string }

const git = (...args: string[]) =>
  execFileSync('git', ['-C', repository, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()

export const migrationFiles = () => readdirSync(join(repository, migrationsFolder)).sort()

/** @returns the steps from the baseline to now; or why there is no way to know the versions before. */
export function stepsSinceBaseline(): Step[] | string {
  const files = migrationFiles().slice(1)
  if (files.length === 0) return 'there is no migration since the baseline'
  try {
    if (git('rev-parse', '--is-shallow-repository') !== 'false') return 'this clone has no history'
    const steps: Step[] = []
    for (const file of files) {
      const commit = git('log', '--diff-filter=A', '--format=%H', '-1', '--', join(migrationsFolder, file))
      // One that is not committed yet follows what is.
      const before = git('rev-parse', '--verify', commit === '' ? 'HEAD' : `${commit}^1`)
      const last = steps.at(-1)
      if (last?.before === before) last.migrations.push(file)
      else steps.push({ migrations: [file], before })
    }
    return steps
  } catch {
    return 'this is no clone of a git repository'
  }
}

/** HEAD where files of it are changed, else its first parent; undefined where the clone has none. */
export function commitBefore(): string | undefined {
  try {
    return git('rev-parse', '--verify', git('status', '--porcelain', '--untracked-files=no') === '' ? 'HEAD^1' : 'HEAD')
  } catch {
    return undefined
  }
}

/** Writes the code of a commit into a folder, to run with the packages of now. */
export async function unpack(commit: string, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const tar = `${folder}.tar`
  const parts = ['bin', 'docs', 'package.json', 'scripts', 'src', 'supabase', 'test']
  await promisify(execFile)('git', ['-C', repository, 'archive', '--format=tar', '-o', tar, commit, ...parts])
  await promisify(execFile)('tar', ['-xf', tar, '-C', folder])
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** A folder for `applyMigrations` with the first so many migrations, and others after them. */
export function projectWith(folder: string, files: string[], extra: ExtraMigration[] = []): string {
  const target = join(folder, migrationsFolder)
  mkdirSync(target, { recursive: true })
  const config = join('supabase', 'config.toml')
  if (!existsSync(join(folder, config))) cpSync(join(repository, config), join(folder, config))
  for (const file of files) cpSync(join(repository, migrationsFolder, file), join(target, file))
  for (const { name, sql } of extra) writeFileSync(join(target, name), sql)
  return folder
}
