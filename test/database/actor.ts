// Acting as a role: the Data API's own way, `set role` and claims for the length of a transaction. Nothing an actor does
// is kept, so many may act upon the same rows.

import type pg from 'pg'
import { during, refusalOf, studio } from '../support/database.ts'

export type Claims = Record<string, string>

export type Actor = {
  /** Rows that the statement gave back. */
  rows<T extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<T[]>
  /** How many rows the statement touched. */
  touched(sql: string, values?: unknown[]): Promise<number>
  /** What refused the statement. @throws when nothing did. */
  refusal(sql: string, values?: unknown[]): ReturnType<typeof refusalOf>
  /** The SQLSTATE that refused the statement, or `allowed`; either way as if it had not been tried. */
  attempt(sql: string, values?: unknown[]): Promise<string>
}

export async function actAs<T>(role: string, claims: Claims, work: (actor: Actor) => Promise<T>): Promise<T> {
  const client = await studio.connect()
  try {
    await client.query('begin')
    // postgres may become authenticator, and so whatever authenticator may become.
    await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
      JSON.stringify({ ...claims, role }),
      role,
    ])
    return await work(actor(client))
  } finally {
    await client.query('rollback')
    client.release()
  }
}

// Each in a subtransaction, which `raise` takes back: what was allowed happened, and is gone.
const attempting = `
  create function pg_temp.attempt(statement text) returns text language plpgsql as $$
  begin
    execute statement;
    raise exception sqlstate 'DONE0';
  exception when others then
    return case sqlstate when 'DONE0' then 'allowed' else sqlstate end;
  end
  $$;
  grant execute on function pg_temp.attempt to public`

/** The SQLSTATE that refused each statement, or `allowed`, in one call: many that are tried by themselves take ten times as long. */
export async function attempts(role: string, claims: Claims, statements: string[]): Promise<Record<string, string>> {
  return during(async (client) => {
    await client.query(attempting)
    await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
      JSON.stringify({ ...claims, role }),
      role,
    ])
    const { rows } = await client.query<{ statement: string; outcome: string }>(
      'select s as statement, pg_temp.attempt(s) as outcome from unnest($1::text[]) s',
      [statements],
    )
    return Object.fromEntries(rows.map(({ statement, outcome }) => [statement, outcome]))
  })
}

function actor(client: pg.PoolClient): Actor {
  const inSavepoint = async <T>(work: () => Promise<T>): Promise<T> => {
    await client.query('savepoint attempt')
    try {
      return await work()
    } finally {
      await client.query('rollback to attempt')
    }
  }
  return {
    rows: async <T extends pg.QueryResultRow>(sql: string, values: unknown[] = []) =>
      (await client.query<T>(sql, values)).rows,
    touched: async (sql, values = []) => (await client.query(sql, values)).rowCount ?? 0,
    refusal: (sql, values = []) => inSavepoint(() => refusalOf(client.query(sql, values))),
    attempt: (sql, values = []) =>
      inSavepoint(() =>
        client.query(sql, values).then(
          () => 'allowed',
          (error: pg.DatabaseError) => String(error.code),
        ),
      ),
  }
}
