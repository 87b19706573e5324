// What a key may do: its scopes as they are now, whatever the gateway remembers of them.

import { expect, test } from 'vitest'
import { restRequestOf } from '../../scripts/support/rest-request.ts'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { operations } from '../../src/operations/index.ts'
import { type Scope, scopes } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'
import { examples } from '../support/operation-arguments.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { type RestAnswer, rest } from '../support/rest.ts'

const scoped = operations.flatMap(({ name, scope }) => (scope === null ? [] : [{ name, scope }]))

const grant = (key: string, chosen: readonly Scope[]) =>
  studio.query('update public.api_keys set scopes = $2::public.api_scope[] where prefix = $1', [prefixOf(key), chosen])

function expectMissing(scope: Scope, { status, body }: RestAnswer): void {
  expect([status, body.error.code, body.error.details]).toEqual([403, 'missing_scope', { scope }])
  expect(body.error.hint).toBeTruthy()
}

async function arrange(...chosen: Scope[]) {
  const { event, key } = await createOrganiser({}, ...chosen)
  const send = async (name: string): Promise<RestAnswer> => {
    const { method, path, body, headers } = restRequestOf(name, (await examples[name]?.(event)) ?? {})
    return rest(key)(method, path, body, headers)
  }
  return { event, key, send }
}

const allBut = (scope: Scope) => scopes.filter((s) => s !== scope)

// Without any input, which is looked at later.
test.each(scopes)('what needs %s is refused to a key that has every other scope', async (scope) => {
  const key = await (await createOrganisation()).key(...allBut(scope))
  const needing = operations.filter((operation) => operation.scope === scope)
  expect(needing.length).toBeGreaterThan(0)
  for (const { method, path } of needing) {
    const ids = path.replaceAll(/\{\w+\}/g, '01a1fa45-8fac-7c28-a535-aaa9447abaa9')
    const answer = await rest(key)(method, ids, method === 'GET' ? undefined : {})
    expectMissing(scope, answer)
    expect(answer.body.error.message).toContain(scope)
  }
})

// A subscription needs the scope that reads its objects: what the endpoints of the examples are subscribed to.
const toRead: Record<string, Scope[]> = {
  create_webhook_endpoint: ['orders:read', 'attendees:read'],
  update_webhook_endpoint: ['events:read', 'orders:read'],
  rotate_webhook_secret: ['orders:read'],
  redeliver_webhook: ['orders:read'],
}

test.each(scoped)('$name needs nothing but $scope, and to read what it tells of', async ({ name, scope }) => {
  const { send } = await arrange(scope, ...(toRead[name] ?? []))
  expect((await send(name)).status).toBeLessThan(300)
})

test.each(operations.filter(({ scope }) => scope === null))('$name needs no scope at all', async ({ name }) => {
  const { send } = await arrange('orders:write')
  expect((await send(name)).status).toBe(200)
})

// One of each scope, since the database refuses them all at one place, and those that share RPCs or answer with a picture.
const oneOfEach = scoped.filter(
  ({ name, scope }, i) =>
    scoped.findIndex((other) => other.scope === scope) === i ||
    ['register_attendee', 'check_in', 'get_event', 'get_ticket_qr'].includes(name),
)
test.each(oneOfEach)(
  '$name is refused on the very next request after $scope was taken away in Studio',
  async ({ name, scope }) => {
    const { event, key, send } = await arrange()
    expect((await rest(key)('GET', '/me')).status).toBe(200)
    await grant(key, allBut(scope))
    const sold = await event.sold()
    expectMissing(scope, await send(name))
    expectMissing(scope, await send(name))
    if (name === 'register_attendee') expect(await event.sold()).toBe(sold)
  },
)

test('a scope added in Studio serves at once, also to a key that was just refused', async () => {
  const { key, send } = await arrange('events:read')
  expect((await send('list_events')).status).toBe(200)
  expectMissing('checkin:write', await send('check_in'))
  await grant(key, ['events:read', 'checkin:write'])
  expect((await send('check_in')).status).toBe(200)
  expect((await send('list_events')).status).toBe(200)
  expect((await rest(key)('GET', '/me')).body.data.scopes).toEqual(['events:read', 'checkin:write'])
})
