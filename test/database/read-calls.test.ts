// Whoever holds a token may call api.read_calls directly: it does what the role may do, reads alone.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { actAs } from './actor.ts'
import { functionsIn } from './catalogue.ts'

type Call = { operation: string; args: object }

type Answers = { answers: { answer?: object; error?: { code: string } }[] }

/** What each call is answered: its answer, the code of its error, or null for one that is to be sent on its own. */
async function read(role: string, organisationId: string, calls: Call[]) {
  return actAs(role, { organisation_id: organisationId }, async ({ rows }) => {
    const readTogether = async (some: Call[]) => {
      const [found] = await rows<Answers>('select api.read_calls($1::json) as answers', [JSON.stringify(some)])
      return found?.answers.map(({ answer, error }) => answer ?? error?.code ?? null) ?? []
    }
    const answers = await readTogether(calls)
    // On a busy machine the time may be up before the last; the first call always begins.
    for (const [i, call] of calls.entries()) answers[i] ??= (await readTogether([call]))[0] ?? null
    return answers
  })
}

test('a role reads what it may read, with the defaults, types and refusals of each operation', async () => {
  const organisation = await createOrganisation()
  const { id } = await organisation.event()
  const answers = await read('scope_events_read', organisation.id, [
    { operation: 'get_event', args: { event_id: id } },
    { operation: 'get_event', args: { event_id: randomUUID() } },
    { operation: 'list_events', args: {} },
    { operation: 'list_events', args: { limit: 1, status: 'published' } },
    // What PostgREST or Postgres refuse, and what is of another scope, is answered when it is sent on its own.
    { operation: 'get_event', args: { event_id: 'no id' } },
    { operation: 'get_event', args: { event_id: id, other: 1 } },
    { operation: 'get_event', args: {} },
    { operation: 'get_order', args: { order_id: id } },
  ])
  expect(answers).toMatchObject([{ id }, 'PT404', { data: [{ id }] }, { data: [{ id }] }, null, null, null, null])
})

test('a role reads nothing of another organisation', async () => {
  const { id } = await (await createOrganisation()).event()
  const other = await createOrganisation()
  expect(await read('scope_events_read', other.id, [{ operation: 'get_event', args: { event_id: id } }])).toEqual([
    'PT404',
  ])
})

test('nothing is called that writes, that runs with other rights, or that is no function', async () => {
  const { id } = await createOrganisation()
  const names = (await functionsIn('api'))
    .filter(({ volatility, securityDefiner }) => volatility !== 's' || securityDefiner)
    .map(({ name }) => name)
  expect(names).toContain('get_ticket_page')
  const refused = [...names, 'read_calls', 'no_function', 'get_event(null); select', 'pg_sleep']
  for (let i = 0; i < refused.length; i += 100) {
    const part = refused.slice(i, i + 100)
    const calls = part.map((operation) => ({ operation, args: {} }))
    expect(await read('scope_events_read', id, calls)).toEqual(part.map(() => 'PT422'))
  }
})
