// Creates a new Postgres: `createCluster` runs initdb, `bootstrap` adds the roles and schemas of a hosted Supabase project. Both may be
// interrupted at any point and run again. They must never change a database that has data.

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
import { commandOf, processesRunning, run, stopProcess } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import type { PostgresAccount } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { databaseUrlFor, withClient } from './client.ts'
import type { Secrets } from './secrets.ts'

export const superuser = 'supabase_admin'

// Settings of the cluster rather than of one start, so that they can be changed in postgresql.conf. Errors of a statement are reported to
// its client, not in the log, which stays small.
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
  /** False: does not flush to disk, for a temporary database. */
  durable: boolean
  signal: AbortSignal
}): Promise<void> {
  const { databaseDir, binaries, account, durable, signal } = options
  if (existsSync(databaseDir)) throw new Error(`${databaseDir} exists`)
  // initdb may be killed half-way, so it works in a temporary folder that is renamed when it is done.
  const temporary = mkdtempSync(`${databaseDir}.partial-`)
  const cluster = join(temporary, 'database')
  const passwordFile = join(temporary, 'password')
  mkdirSync(cluster, { mode: 0o700 })
  writeFileSync(passwordFile, `${options.password}\n`, { mode: 0o600 })
  if (account.owner !== null) {
    for (const path of [temporary, cluster, passwordFile]) chownSync(path, account.owner.uid, account.owner.gid)
  }
  // The built-in C.UTF-8 sorts and folds case alike on every platform and with every library version.
  const command = [
    ...account.prefix,
    binaries.initdb,
    // First: removeUnfinished recognises the process by it.
    pgdata(cluster),
    `--username=${superuser}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    // A temporary database is copied and deleted: with segments of 16 MB, most of it would be an empty write-ahead log.
    ...(durable ? [] : ['--no-sync', '--wal-segsize=1']),
    ...Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`),
  ]
  try {
    const options = { cwd: temporary, env: postgresEnvironment(), ...account.user, signal }
    const { failure, stderr } = await run(command, options)
    if (failure !== undefined) {
      throw new StartError(`The database could not be created: initdb ended with ${failure}.\n${stderr.trim()}`)
    }
    renameSync(cluster, databaseDir)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** Ends the initdb of a start that was killed, which runs on without it, and deletes what such a start left beside the database. */
export async function removeUnfinished(databaseDir: string, binaries: PostgresBinaries): Promise<void> {
  const parent = dirname(databaseDir)
  for (const entry of readdirSync(parent)) {
    if (!entry.startsWith(`${basename(databaseDir)}.partial-`)) continue
    const temporary = join(parent, entry)
    // First, because it makes and deletes files there, between which not everything would be deleted.
    for (const orphan of processesRunning(commandOf(binaries.initdb, pgdata(join(temporary, 'database'))))) {
      await stopProcess(orphan, [['SIGKILL', 5000]])
    }
    rmSync(temporary, { recursive: true, force: true })
  }
}

const pgdata = (cluster: string) => `--pgdata=${cluster}`

/** Creates the roles and schemas of Supabase, unless they exist. */
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

/** Only what the programs need, without variables such as PGOPTIONS that are meant for a psql in the same shell. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
}
