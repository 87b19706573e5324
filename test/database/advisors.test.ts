// The Security and Performance Advisors of Supabase, as a project's dashboard shows them: the rules of splinter, by their numbers, as of
// its commit 55db5b1 (github.com/supabase/splinter, lints/).

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { during } from '../support/database.ts'

const rules = join(import.meta.dirname, 'splinter')
// The identifier of a view has 63 bytes.
const viewOf = (file: string) => `lint."${file.replace('.sql', '').slice(0, 63)}"`

type Advice = { rule: string; object: string; schema: string }

/** Everything that the rules find where the Data API serves the schemas api and public. */
async function advice(): Promise<Advice[]> {
  return during(async (client) => {
    await client.query("create schema lint; set local pgrst.db_schemas = 'api, public'")
    const found: Advice[] = []
    for (const file of readdirSync(rules)) {
      await client.query(readFileSync(join(rules, file), 'utf8'))
      const { rows } = await client.query(
        `select metadata ->> 'schema' as schema, metadata ->> 'name' as object from ${viewOf(file)} order by 2`,
      )
      found.push(...rows.map((row) => ({ rule: file.slice(0, 4), ...row })))
    }
    return found
  })
}

const explained: Record<string, string> = {
  '0001': 'composite keys: an index on one of the columns does, and rows of plans are not deleted',
  '0005': 'says how much a database was used',
  '0008': 'tables of private, which only functions of their owner read',
  '0029': 'functions for people who sign in, explained one by one in docs/operations.md',
}

test('the advisors find nothing but what is explained', async () => {
  const found = await advice()
  expect(found.filter(({ rule }) => !(rule in explained))).toEqual([])
  const withoutPolicy = found.filter(({ rule }) => rule === '0008')
  expect([...new Set(withoutPolicy.map(({ schema }) => schema))]).toEqual(['private'])

  const lent = found.filter(({ rule }) => rule === '0029').map(({ object }) => object)
  const operations = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const section = operations.slice(operations.indexOf('### What the advisors say')).split(/\n#/)[0] ?? ''
  expect(section.match(/(?<=^\| `)\w+/gm)?.sort()).toEqual(lent)
})
