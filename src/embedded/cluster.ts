// A fresh Postgres: `createCluster` makes its files, `bootstrap` makes it look like a hosted Supabase project. Both may be
// interrupted at any point and simply run again. Nothing here touches a database that already holds data.

import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { StartError } from '../start-error.ts'
import type { PostgresAccount } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { databaseUrlFor, withClient } from './database.ts'
import { run } from './processes.ts'
import type { Secrets } from './secrets.ts'

export const superuser = 'supabase_admin'

// Where a setting belongs to the installation and not to one start, so that it can be changed in postgresql.conf.
// Errors raised for a client are the client's to report: the log is for the server's own affairs, and stays small.
const settings = {
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'log',
  log_checkpoints: 'off',
}

export async function createCluster(options: {
  databaseDir: string
  binaries: PostgresBinaries
  account: PostgresAccount
  password: string
  /** False leaves out flushing to disk, for a database that is thrown away. */
  durable: boolean
  signal: AbortSignal
}): Promise<void> {
  const { databaseDir, binaries, account, signal } = options
  removeUnfinished(databaseDir)
  // initdb may die half-way, so it works under another name until it is done.
  const workshop = mkdtempSync(`${databaseDir}.partial-`)
  const cluster = join(workshop, 'database')
  const passwordFile = join(workshop, 'password')
  mkdirSync(cluster, { mode: 0o700 })
  writeFileSync(passwordFile, `${options.password}\n`, { mode: 0o600 })
  if (account.owner !== null) {
    for (const path of [workshop, cluster, passwordFile]) chownSync(path, account.owner.uid, account.owner.gid)
  }
  try {
    await initdb(binaries.initdb, cluster, passwordFile, options.durable, account, signal)
    renameSync(cluster, databaseDir)
  } finally {
    rmSync(workshop, { recursive: true, force: true })
  }
}

/** Creates Supabase's roles and schemas, unless they are there already. */
export async function bootstrap(port: number, secrets: Secrets): Promise<void> {
  await withClient(databaseUrlFor(superuser, secrets.superuserPassword, port), async (client) => {
    const done = await client.query("select from pg_roles where rolname = 'authenticator'")
    if (done.rowCount !== 0) return
    await client.query('begin')
    await client.query(readFileSync(join(import.meta.dirname, 'bootstrap.sql'), 'utf8'))
    await client.query(`alter role postgres password ${client.escapeLiteral(secrets.postgresPassword)}`)
    await client.query(`alter role authenticator password ${client.escapeLiteral(secrets.authenticatorPassword)}`)
    await client.query('commit')
  })
}

async function initdb(
  program: string,
  cluster: string,
  passwordFile: string,
  durable: boolean,
  account: PostgresAccount,
  signal: AbortSignal,
): Promise<void> {
  // The built-in C.UTF-8 orders and folds letters alike on every platform and with every version of its libraries.
  const command = [
    ...account.prefix,
    program,
    `--pgdata=${cluster}`,
    `--username=${superuser}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
    ...Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`),
  ]
  const { ok, ended, stderr } = await run(command[0] ?? program, command.slice(1), {
    cwd: dirname(cluster),
    env: postgresEnvironment(),
    ...(account.uid === undefined ? {} : { uid: account.uid, gid: account.gid }),
    signal,
  })
  if (!ok) throw new StartError(`The database could not be created: ${program} ended with ${ended}.\n${stderr.trim()}`)
}

/** Only what the programs need: settings meant for a psql in the same shell are none of theirs. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  const { PATH, SystemRoot, TEMP } = process.env
  return { PATH, SystemRoot, TEMP, LC_ALL: 'C', TZ: 'UTC' }
}

function removeUnfinished(databaseDir: string): void {
  if (existsSync(databaseDir)) throw new Error(`${databaseDir} exists`)
  const parent = dirname(databaseDir)
  for (const entry of readdirSync(parent)) {
    if (entry.startsWith(`${basename(databaseDir)}.partial-`)) rmSync(join(parent, entry), { recursive: true })
  }
}
