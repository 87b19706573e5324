// People who sign in through Supabase Auth, and whoever does not, over PostgREST: each table and view, each column alone, each verb, with
// another organisation's rows in mind. What may be tried is in test/database/privileges.json; that nothing comes of it is row level security.

import { beforeAll, expect, test } from 'vitest'
import { columnsOf, functionsIn } from '../../database/catalogue.ts'
import { type DataApiAnswer, send, sign } from '../../database/data-api-client.ts'
import {
  columnList,
  privilegesOf,
  sharedTables,
  tables,
  type Verb,
  verbs,
  views,
} from '../../database/expected-privileges.ts'
import { createTenant, join, signUp, type Tenant } from '../../database/tenant-fixture.ts'
import { fingerprint } from '../../support/rows-of.ts'

const people = ['owner', 'manager', 'door', 'viewer', 'nobody', 'anon'] as const
type Person = (typeof people)[number]

let them: Tenant
const tokens = new Map<Person, string | undefined>()
beforeAll(async () => {
  const [ours, theirs] = await Promise.all([createTenant(), createTenant()])
  them = theirs
  for (const person of people) {
    if (person === 'anon') continue
    const claims = await signUp()
    if (person !== 'nobody') await join(ours.id, claims, person)
    tokens.set(person, await sign({ ...claims, role: 'authenticated' }))
  }
})

const relations = [...Object.keys(tables).filter((table) => table.startsWith('public.')), ...views]
/** The rows of a registration are added through its view. */
const viewVerbs: Record<string, readonly Verb[]> = { 'public.registrations': ['select', 'insert'] }

function mayTry(person: Person, relation: string, verb: Verb, column: string, all: string[]): boolean {
  if (person === 'anon') return false
  if (views.includes(relation)) return (viewVerbs[relation] ?? ['select']).includes(verb)
  const granted = privilegesOf('authenticated', relation)[verb]
  return granted !== undefined && (granted === '*' ? all : columnList(granted)).includes(column)
}

function requestOf(relation: string, verb: Verb, column: string): Parameters<typeof send>[0] {
  const name = relation.replace('public.', '')
  const owner = sharedTables.includes(relation)
    ? 'name=eq.none'
    : name === 'organisations'
      ? `id=eq.${them.id}`
      : `organisation_id=eq.${them.id}`
  const profile = { [verb === 'select' ? 'Accept-Profile' : 'Content-Profile']: 'public', Prefer: 'return=minimal' }
  switch (verb) {
    case 'select':
      return { path: `/${name}?${owner}&select=${column}`, headers: profile }
    case 'insert':
      return { method: 'POST', path: `/${name}`, body: { [column]: null }, headers: profile }
    case 'update':
      return {
        method: 'PATCH',
        path: `/${name}?${owner}&select=${owner.split('=')[0]}`,
        body: { [column]: null },
        headers: { ...profile, Prefer: 'return=representation' },
      }
    case 'delete':
      return { method: 'DELETE', path: `/${name}?${owner}`, headers: { ...profile, Prefer: 'return=minimal' } }
  }
}

// Row level security refuses with the same SQLSTATE, and other words.
const isDenied = ({ sqlstate, body }: DataApiAnswer) =>
  sqlstate === '42501' && /^permission denied/.test(String((body as { message?: string }).message))

test.for(people)(
  '%s may try what is committed, and reaches no row of another organisation',
  async (person, { task }) => {
    const before = await fingerprint(them.id)
    const problems: string[] = []
    let tried = 0
    const tryOne = async (relation: string, verb: Verb, column: string, all: string[]) => {
      const answer = await send(requestOf(relation, verb, column), tokens.get(person))
      tried += 1
      const what = `${verb} ${column} of ${relation}`
      if (isDenied(answer) === mayTry(person, relation, verb, column, all))
        problems.push(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`)
      if (answer.status >= 500) problems.push(`${what}: ${answer.status}`)
      if (verb !== 'insert' && Array.isArray(answer.body) && answer.body.length > 0)
        problems.push(`${what}: rows of theirs`)
    }
    for (const relation of relations) {
      const all = await columnsOf(relation)
      for (const verb of verbs) {
        const columns = verb === 'delete' ? all.slice(0, 1) : all
        for (let i = 0; i < columns.length; i += 4) {
          await Promise.all(columns.slice(i, i + 4).map((column) => tryOne(relation, verb, column, all)))
        }
      }
    }
    expect(problems).toEqual([])
    expect(await fingerprint(them.id)).toEqual(before)
    task.meta.figures = `${tried} combinations of table or view, column and verb`
  },
)

test.for(people)('%s calls no function of the schemas for keys and for Usher itself', async (person, { task }) => {
  const functions = await functionsIn('api', 'private')
  const answers = await Promise.all(
    functions.map(async ({ schema, name, arguments: names }) => {
      const body = Object.fromEntries(names.map((argument) => [argument, null]))
      const answer = await send(
        { method: 'POST', path: `/rpc/${name}`, body, headers: { 'Content-Profile': schema } },
        tokens.get(person),
      )
      return [schema, name, answer.status < 400] as const
    }),
  )
  expect(answers.filter(([, , isCalled]) => isCalled)).toEqual([])
  task.meta.figures = `${answers.length} functions`
})
