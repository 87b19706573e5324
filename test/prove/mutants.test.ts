// Each mutant still finds what it breaks: one that does not would prove nothing.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnDatabase, startOwnDatabase } from '../support/own-database.ts'
import { mutants } from './mutants.ts'

let database: OwnDatabase
let client: pg.Client
beforeAll(async () => {
  database = await startOwnDatabase()
  client = new pg.Client({ connectionString: database.databaseUrl })
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await database.remove()
})

test.each(Object.entries(mutants))('%s', async (_name, { database: mutate, source = [] }) => {
  for (const [file, from] of source)
    expect(readFileSync(join(import.meta.dirname, '../..', file), 'utf8')).toContain(from)
  await client.query('begin')
  try {
    await mutate?.(client)
  } finally {
    await client.query('rollback')
  }
})
