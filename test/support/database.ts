// The database as a person at the SQL editor sees it (role postgres), and as any other role with any claims.

import pg from 'pg'
import { inject } from 'vitest'

/** One pool for a worker: without isolation the files that it runs share this module, so no file may end it. */
export const studio = new pg.Pool({
  connectionString: inject('databaseUrl'),
  max: 4,
  idleTimeoutMillis: 0,
  allowExitOnIdle: true,
})
// Keeps the connection of a statement that was refused. The pool would close it, and each new one compiles every function again.
studio.query = (async (...args: [string, unknown[]]) => {
  const client = await studio.connect()
  try {
    return await client.query(...args)
  } finally {
    client.release()
  }
}) as pg.Pool['query']
// A connection that idles while the stack stops, after the last test.
studio.on('error', () => {})

/** First row of a statement run as Studio's role. */
export async function row<T extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<T> {
  const { rows } = await studio.query<T>(sql, values)
  if (!rows[0]) throw new Error(`no row: ${sql}`)
  return rows[0]
}

/** The id of the row that a statement inserts or finds. */
export const idOf = async (sql: string, values: unknown[] = []): Promise<string> =>
  (await row<{ id: string }>(sql, values)).id

/** To use in a statement that takes rows out of a log, as the purge does and no person can: `delete from … using ${asPurge}`. */
export const asPurge = "(select set_config('usher.erasing', 'on', true) offset 0) as as_purge"

/** A transaction held open on a connection of its own until it is told to commit; rolled back if it never is. */
export async function during<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await studio.connect()
  try {
    await client.query('begin')
    return await work(client)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** What `private.refuse` raised: { status, code, param } of the refusal, or the SQLSTATE alone. */
export async function refusalOf(work: Promise<unknown>): Promise<{ sqlstate: string; code?: string; param?: string }> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error
    const sqlstate = error.code ?? ''
    // Which row it is is told in test/database/errors-in-studio.test.ts.
    const { row: _, ...detail } = JSON.parse(sqlstate.startsWith('PT') ? (error.detail ?? '{}') : '{}')
    return { sqlstate, ...detail }
  }
  throw new Error('nothing was refused')
}
