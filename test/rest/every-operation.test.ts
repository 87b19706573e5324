// Rules of every operation over REST: it finds nothing of another organisation, a dry run changes nothing, and a write
// is answered again under its key.

import { beforeAll, expect, test } from 'vitest'
import { restRequestOf } from '../../scripts/support/rest-request.ts'
import { kindOf } from '../../src/operations/identifiers.ts'
import { operations } from '../../src/operations/index.ts'
import { isRead, type Operation } from '../../src/operations/operation.ts'
import { examples } from '../support/operation-arguments.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { enqueued } from '../support/outbox.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { fingerprint } from '../support/rows-of.ts'

let ours: TestOrganisation
let send: ReturnType<typeof rest>
beforeAll(async () => {
  ours = await createOrganisation()
  send = rest(await ours.key())
})

type Arguments = Record<string, unknown>

/** Right arguments, about an event that they name where the operation takes one. */
async function argumentsOf({ name, input }: Operation, organisation: TestOrganisation): Promise<Arguments> {
  const event = await organisation.event()
  const ofEvent =
    'event_id' in input.shape ? { event_id: event.id } : 'event_ids' in input.shape && { event_ids: [event.id] }
  return { ...ofEvent, ...(await examples[name]?.(event)) }
}

function call({ name }: Operation, args: Arguments, more: Record<string, string> = {}) {
  const { method, path, body, headers } = restRequestOf(name, args)
  return send(method, path, body, { ...headers, ...more })
}

/** Every row, once the deliveries are made: any test of an outbox makes them. */
async function rowsOf({ id }: TestOrganisation) {
  await enqueued(id)
  return fingerprint(id)
}

/** Calls operations about objects of the organisation, whose rows stay as they are. @returns the wrong answers. */
async function problemsOf(
  chosen: Operation[],
  organisation: TestOrganisation,
  more: Arguments,
  isRight: (answer: RestAnswer, args: Arguments) => boolean,
): Promise<string[]> {
  const calls: [Operation, Arguments][] = []
  for (const operation of chosen) calls.push([operation, { ...(await argumentsOf(operation, organisation)), ...more }])
  const before = await rowsOf(organisation)
  const problems: string[] = []
  for (const [operation, args] of calls) {
    const answer = await call(operation, args)
    if (!isRight(answer, args)) problems.push(`${operation.name} ${answer.status} ${JSON.stringify(answer.body)}`)
  }
  expect(await rowsOf(organisation)).toEqual(before)
  return problems
}

test('what is of another organisation is not found', async () => {
  const naming = operations.filter(({ input }) =>
    Object.keys(input.shape).some((field) => kindOf(field) !== undefined || field === 'event'),
  )
  const isNothing = ({ status, body: { data, error } }: RestAnswer, args: Arguments) =>
    (status === 200 && data.length === 0) || (status === 404 && error.code === 'not_found' && error.param in args)
  expect(await problemsOf(naming, await createOrganisation(), {}, isNothing)).toEqual([])
})

const writes = operations.filter((operation) => !isRead(operation))

test('a dry run says that it is one, and changes nothing', async () => {
  const tried = writes.filter(({ input }) => 'dry_run' in input.shape)
  const isDry = ({ body: { data, effect } }: RestAnswer) => (effect ?? data).dry_run === true
  expect(await problemsOf(tried, ours, { dry_run: true, idempotency_key: 'tried' }, isDry)).toEqual([])
})

// A link to a file is answered at another address (test/http/export-page.test.ts), and a plan is applied once
// (apply-event.test.ts).
const repeated = writes.filter(({ name }) => !/^(export_|apply_event)/.test(name))

test.each(repeated)('$name is answered again under its idempotency key', async (operation) => {
  const { dry_run: _, ...args } = await argumentsOf(operation, ours)
  const key = { 'Idempotency-Key': `${operation.name} once` }
  const [first, again] = [await call(operation, args, key), await call(operation, args, key)]
  expect(first.status).toBeLessThan(300)
  expect([again.status, again.headers.get('idempotent-replayed'), again.body]).toEqual([
    first.status,
    'true',
    first.body,
  ])
})
